/* Face neighbours, and checks that do not rely on how the mesh was built. */
#include "mesh/tets_internal.h"

/* ---- adjacency, from the incidence ---- */

typedef struct adjacency_args {
    const un_tets *mesh;
    int32_t *adjacency;
} adjacency_args;

static bool has_node(const int32_t tet[4], int32_t n)
{
    return tet[0] == n || tet[1] == n || tet[2] == n || tet[3] == n;
}

/* Two sides of the same tet are not neighbours. */
static bool is_copy(const un_tets *mesh, int32_t t, int32_t other)
{
    if (!mesh->parted || mesh->level[t] != mesh->level[other]) return false;
    un_vec3 d = un_sub(un_tets_center(mesh, t), un_tets_center(mesh, other));
    return un_dot(d, d) == 0;
}

static void find_neighbours(void *arg, int64_t begin, int64_t end)
{
    adjacency_args *args = arg;
    const un_tets *mesh = args->mesh;
    for (int64_t t = begin; t < end; t++)
        for (int i = 0; i < 4; i++) {
            const int32_t *n = mesh->tet[t];
            int32_t p = n[(i + 1) % 4], q = n[(i + 2) % 4], r = n[(i + 3) % 4], found = -1;
            for (int32_t k = mesh->first[p]; k < mesh->first[p + 1] && found < 0; k++) {
                int32_t other = mesh->corner[k] / 4;
                if (other != t && has_node(mesh->tet[other], q) && has_node(mesh->tet[other], r) &&
                    !is_copy(mesh, (int32_t)t, other))
                    found = other;
            }
            args->adjacency[4 * t + i] = found;
        }
}

/* Copies of a tet may share a face where a thin wall ends: there only what is mutual counts. */
typedef struct mutual_args {
    const int32_t *found;
    int32_t *adjacency;
} mutual_args;

static void keep_mutual(void *arg, int64_t begin, int64_t end)
{
    const mutual_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        int32_t other = a->found[c], back = (int32_t)(c / 4);
        a->adjacency[c] = other >= 0 && has_node(a->found + 4 * (int64_t)other, back) ? other : -1;
    }
}

un_status un_tets_adjacency(const un_tets *mesh, un_arena *arena, int32_t *adjacency)
{
    int64_t tets = mesh->tet_count;
    adjacency_args a = {mesh, adjacency};
    if (mesh->parted) a.adjacency = un_arena_alloc(arena, 4 * (size_t)tets, sizeof *a.adjacency);
    if (!a.adjacency) return UN_ERROR_MEMORY;
    un_parallel_for(mesh->ctx, tets, 1024, find_neighbours, &a);
    mutual_args m = {a.adjacency, adjacency};
    if (mesh->parted) un_parallel_for(mesh->ctx, 4 * tets, 16384, keep_mutual, &m);
    return UN_OK;
}

/* ---- validate ---- */

typedef struct face_args {
    const un_tets *mesh;
    uint64_t *key;  /* by face 4 t + i: its lower two nodes */
    int32_t *third; /* its highest */
} face_args;

static void list_faces(void *arg, int64_t begin, int64_t end)
{
    face_args *args = arg;
    for (int64_t k = begin; k < end; k++) {
        const int32_t *n = args->mesh->tet[k / 4];
        int32_t f[3] = {n[(k + 1) % 4], n[(k + 2) % 4], n[(k + 3) % 4]};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 2; j++)
                if (f[j] > f[j + 1]) {
                    int32_t swap = f[j];
                    f[j] = f[j + 1];
                    f[j + 1] = swap;
                }
        args->key[k] = (uint64_t)f[0] << 32 | (uint32_t)f[1];
        args->third[k] = f[2];
    }
}

static void node_place(const un_tets *mesh, int32_t n, int32_t at[3])
{
    for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(mesh->node_key[n] >> a);
}

static bool in_boundary(const un_tets *mesh, uint64_t key, int32_t third)
{
    int32_t at[3][3];
    node_place(mesh, (int32_t)(key >> 32), at[0]);
    node_place(mesh, (int32_t)(key & 0xffffffff), at[1]);
    node_place(mesh, third, at[2]);
    for (int a = 0; a < 3; a++)
        if (at[0][a] == at[1][a] && at[0][a] == at[2][a] &&
            (at[0][a] == 0 || at[0][a] == 2 * mesh->tree->n[a]))
            return true;
    return false;
}

/* Faces with equal lower nodes follow each other in `order`; few of them, so pairs are compared. */
static void count_faces(const face_args *faces, const int32_t *order, int64_t count,
                        un_tets_report *report)
{
    for (int64_t begin = 0, end; begin < count; begin = end) {
        uint64_t key = faces->key[order[begin]];
        for (end = begin; end < count && faces->key[order[end]] == key;) end++;
        for (int64_t k = begin; k < end; k++) {
            int32_t third = faces->third[order[k]], same = 0;
            bool first = true;
            for (int64_t j = begin; j < end; j++)
                if (faces->third[order[j]] == third) {
                    same++;
                    if (j < k) first = false;
                }
            if (!first) continue;
            bool boundary = in_boundary(faces->mesh, key, third);
            if (boundary) report->boundary_faces++;
            if (same != (boundary ? 1 : 2)) report->unmatched_faces++;
        }
    }
}

/* Do the tet's volume and gradients match its nodes, up to round-off? */
static bool is_measured(const un_tets *mesh, int32_t t, const un_vec3 p[4], double volume)
{
    double h = un_tets_size(mesh, t), v[4], steepest = 0, off = 0;
    const un_tet_shape *s = un_tets_shape(mesh, t);
    for (int i = 0; i < 4; i++)
        for (int a = 0; a < 3; a++) steepest = fmax(steepest, fabs(s->gradient[i][a]));
    for (int a = 0; a < 3; a++) { /* gradients of the coordinates, from node 0 */
        for (int i = 0; i < 4; i++) {
            un_vec3 e = un_sub(p[i], p[0]);
            v[i] = a == 0 ? e.x : a == 1 ? e.y : e.z;
        }
        un_vec3 g = un_tets_gradient(mesh, t, v);
        off = fmax(off, un_length(un_sub(g, un_v3(a == 0, a == 1, a == 2))));
    }
    return off <= 1e-9 * (1 + steepest) &&
           fabs(un_tets_volume(mesh, t) - volume) <= 1e-9 * h * h * h;
}

/* Angles between the faces of a tet, degrees, from its nodes: exact unless nodes were moved. */
static void measure_tet(const un_tets *mesh, int32_t t, un_tets_report *report)
{
    un_vec3 p[4], x[4], normal[4];
    double unit = mesh->tree->unit;
    for (int i = 0; i < 4; i++) {
        int32_t at[3], n = mesh->tet[t][i];
        un_vec3 home = un_tets_home(mesh, mesh->node_key[n]);
        node_place(mesh, n, at);
        x[i] = mesh->x[n];
        p[i] = x[i].x == home.x && x[i].y == home.y && x[i].z == home.z ? un_v3(at[0], at[1], at[2])
                                                                        : un_scale(x[i], 1 / unit);
    }
    double det = un_dot(un_sub(p[1], p[0]), un_cross(un_sub(p[2], p[0]), un_sub(p[3], p[0])));
    if (!(det > 0)) report->misoriented_tets++;
    double volume = det / 6 * unit * unit * unit;
    report->volume += volume;
    if (!is_measured(mesh, t, x, volume)) report->mismeasured_tets++;
    report->kind_count[mesh->shapes[mesh->shape[t]].kind]++;
    for (int i = 0; i < 4; i++) {
        un_vec3 o = p[(i + 1) % 4], u = un_sub(p[(i + 2) % 4], o), v = un_sub(p[(i + 3) % 4], o);
        normal[i] = un_normalize(un_cross(u, v));
        if (un_dot(normal[i], un_sub(p[i], o)) > 0) normal[i] = un_scale(normal[i], -1);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            double cosine = un_clamp(-un_dot(normal[i], normal[j]), -1, 1);
            double angle = acos(cosine) * 180 / UN_PI;
            report->min_angle = fmin(report->min_angle, angle);
            report->max_angle = fmax(report->max_angle, angle);
        }
}

un_status un_tets_validate(const un_tets *mesh, un_arena *arena, un_tets_report *report)
{
    *report = (un_tets_report){.min_angle = 180};
    int64_t face_count = 4 * (int64_t)mesh->tet_count;
    face_args faces = {.mesh = mesh};
    faces.key = un_arena_alloc(arena, (size_t)face_count + 1, sizeof *faces.key);
    faces.third = un_arena_alloc(arena, (size_t)face_count + 1, sizeof *faces.third);
    int32_t *order = un_arena_alloc(arena, (size_t)face_count + 1, sizeof *order);
    if (!faces.key || !faces.third || !order) return UN_ERROR_MEMORY;
    un_parallel_for(mesh->ctx, face_count, 4096, list_faces, &faces);
    UN_TRY(un_parallel_sort64(mesh->ctx, arena, order, faces.key, face_count, 64));
    count_faces(&faces, order, face_count, report);
    for (int32_t t = 0; t < mesh->tet_count; t++) measure_tet(mesh, t, report);
    return UN_OK;
}
