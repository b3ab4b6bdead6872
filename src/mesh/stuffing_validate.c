/* Checks of a stuffed mesh, from its tets and nodes alone. */
#include "mesh/stuffing_internal.h"

typedef struct check_args {
    const un_stuffing *mesh;
    uint64_t *key;  /* by corner 4 t + i: the lower two nodes of the face opposite */
    int32_t *third; /* its highest */
} check_args;

static void list_faces(void *arg, int64_t begin, int64_t end)
{
    check_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        const int32_t *n = a->mesh->tet[c / 4];
        int32_t p = n[(c + 1) & 3], q = n[(c + 2) & 3], r = n[(c + 3) & 3];
        int32_t low = p < q ? p : q, high = p < q ? q : p, middle = r;
        if (r < low) middle = low, low = r;
        if (r > high) middle = high, high = r;
        a->key[c] = (uint64_t)low << 32 | (uint32_t)middle;
        a->third[c] = high;
    }
}

/* Corners [begin, end) of `order` have faces with the same two lower nodes. */
static void check_group(const check_args *a, const int32_t *order, int64_t begin, int64_t end,
                        un_stuffing_report *report)
{
    const un_stuffing *mesh = a->mesh;
    for (int64_t k = begin; k < end; k++) {
        int32_t c = order[k], third = a->third[c], tets = 0, lowest = c;
        for (int64_t j = begin; j < end; j++)
            if (a->third[order[j]] == third) {
                tets++;
                if (order[j] < lowest) lowest = order[j];
            }
        if (lowest != c) continue;
        uint64_t key = a->key[c];
        bool inside = !mesh->on[key >> 32] || !mesh->on[key & 0xffffffff] || !mesh->on[third];
        if (tets > 2 || (tets == 1 && inside)) report->unmatched_faces++;
        int32_t f = mesh->tet_face[c / 4][c & 3];
        if (mesh->face_tet[f][0] != c / 4 || (mesh->face_tet[f][1] >= 0) != (tets == 2) ||
            (mesh->face_behind[f] == UN_BEHIND_TET) != (tets == 2))
            report->wrong_faces++;
        report->behind_count[mesh->face_behind[f]]++;
    }
}

/* Normals of faces must point out of the first tet into the second and sum to zero around a tet. */
static void check_normals(const un_stuffing *mesh, int32_t t, un_stuffing_report *report)
{
    un_vec3 sum = un_v3(0, 0, 0);
    double size = 0;
    for (int i = 0; i < 4; i++) {
        int32_t f = mesh->tet_face[t][i];
        double sign = un_stuffing_sign(mesh, t, i);
        un_vec3 up = un_sub(mesh->x[mesh->tet[t][i]], mesh->center[f]);
        if (!(sign * un_dot(mesh->area[f], up) < 0)) report->wrong_faces++;
        sum = un_mad(sum, mesh->area[f], sign);
        size += un_length(mesh->area[f]);
    }
    if (!(un_length(sum) <= 1e-9 * size)) report->wrong_faces++;
}

void un_stuffing_angles(const un_vec3 p[4], double *least, double *greatest)
{
    un_vec3 normal[4];
    for (int i = 0; i < 4; i++) {
        un_vec3 o = p[(i + 1) & 3], u = un_sub(p[(i + 2) & 3], o), v = un_sub(p[(i + 3) & 3], o);
        normal[i] = un_normalize(un_cross(u, v));
        if (un_dot(normal[i], un_sub(p[i], o)) > 0) normal[i] = un_scale(normal[i], -1);
    }
    *least = 180, *greatest = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            double angle = acos(un_clamp(-un_dot(normal[i], normal[j]), -1, 1)) * 180 / UN_PI;
            *least = fmin(*least, angle);
            *greatest = fmax(*greatest, angle);
        }
}

static void check_tet(const un_stuffing *mesh, int32_t t, un_stuffing_report *report)
{
    un_vec3 p[4];
    for (int i = 0; i < 4; i++) p[i] = mesh->x[mesh->tet[t][i]];
    double volume =
        un_dot(un_sub(p[1], p[0]), un_cross(un_sub(p[2], p[0]), un_sub(p[3], p[0]))) / 6;
    if (!(volume > 0) || !(fabs(volume - mesh->volume[t]) <= 1e-9 * volume))
        report->misoriented_tets++;
    report->volume += volume;
    check_normals(mesh, t, report);
    double least, greatest;
    un_stuffing_angles(p, &least, &greatest);
    report->min_angle = fmin(report->min_angle, least);
    report->max_angle = fmax(report->max_angle, greatest);
}

static void check_nodes(const un_stuffing *mesh, un_stuffing_report *report)
{
    for (int32_t n = 0; n < mesh->node_count; n++) {
        bool wrong = mesh->first[n + 1] <= mesh->first[n];
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t c = mesh->corner[k];
            wrong |=
                mesh->tet[c / 4][c & 3] != n || (k > mesh->first[n] && mesh->corner[k - 1] >= c);
        }
        report->wrong_nodes += wrong;
    }
    if (mesh->first[mesh->node_count] != 4 * mesh->tet_count) report->wrong_nodes++;
}

un_status un_stuffing_validate(const un_stuffing *mesh, un_arena *arena, un_stuffing_report *report)
{
    *report = (un_stuffing_report){.min_angle = 180};
    int64_t corners = 4 * (int64_t)mesh->tet_count;
    check_args a = {mesh, un_arena_alloc(arena, (size_t)corners + 1, sizeof *a.key),
                    un_arena_alloc(arena, (size_t)corners + 1, sizeof *a.third)};
    int32_t *order = un_arena_alloc(arena, (size_t)corners + 1, sizeof *order);
    if (!a.key || !a.third || !order) return UN_ERROR_MEMORY;
    un_parallel_for(mesh->ctx, corners, 4096, list_faces, &a);
    UN_TRY(un_parallel_sort64(mesh->ctx, arena, order, a.key, corners, 64));
    for (int64_t begin = 0, end; begin < corners; begin = end) {
        for (end = begin; end < corners && a.key[order[end]] == a.key[order[begin]];) end++;
        check_group(&a, order, begin, end, report);
    }
    for (int32_t t = 0; t < mesh->tet_count; t++) check_tet(mesh, t, report);
    check_nodes(mesh, report);
    return UN_OK;
}

void un_stuffing_common_angles(const un_stuffing *mesh, double share, double *least,
                               double *greatest)
{
    int64_t below[1801] = {0}, above[1801] = {0}, rest = (int64_t)(share * mesh->tet_count);
    for (int32_t t = 0; t < mesh->tet_count; t++) {
        un_vec3 p[4];
        double low, high;
        for (int i = 0; i < 4; i++) p[i] = mesh->x[mesh->tet[t][i]];
        un_stuffing_angles(p, &low, &high);
        below[(int)(10 * low)]++;
        above[(int)(10 * high)]++;
    }
    int i = 0, k = 1800;
    for (int64_t left = rest; i < 1800 && left >= below[i]; i++) left -= below[i];
    for (int64_t left = rest; k > 0 && left >= above[k]; k--) left -= above[k];
    *least = 0.1 * i;
    *greatest = 0.1 * (k + 1);
}
