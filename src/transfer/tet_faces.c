/* Velocities from the normal components on faces, by least squares [Batty11 section 5.1, eq. 9]. */
#include "transfer/transfer.h"

/* The normals do not span space if det / (trace / 3)^3, which is 1 at best, is below this. */
#define FLAT 0.02

/* N^T N and N^T u, added up row by row. */
typedef struct normals {
    double a[6]; /* xx yy zz xy xz yz */
    un_vec3 b;
} normals;

static inline void add_normal(normals *s, un_vec3 n, double u, double weight)
{
    s->a[0] += weight * n.x * n.x;
    s->a[1] += weight * n.y * n.y;
    s->a[2] += weight * n.z * n.z;
    s->a[3] += weight * n.x * n.y;
    s->a[4] += weight * n.x * n.z;
    s->a[5] += weight * n.y * n.z;
    s->b = un_mad(s->b, n, weight * u);
}

static bool solve_normals(const normals *s, un_vec3 *u)
{
    const double *a = s->a;
    double xx = a[1] * a[2] - a[5] * a[5], xy = a[4] * a[5] - a[3] * a[2];
    double xz = a[3] * a[5] - a[4] * a[1], yy = a[0] * a[2] - a[4] * a[4];
    double yz = a[3] * a[4] - a[0] * a[5], zz = a[0] * a[1] - a[3] * a[3];
    double det = a[0] * xx + a[3] * xy + a[4] * xz, third = (a[0] + a[1] + a[2]) / 3;
    if (!(det > FLAT * third * third * third)) return false;
    un_vec3 b = s->b;
    *u = un_scale(un_v3(xx * b.x + xy * b.y + xz * b.z, xy * b.x + yy * b.y + yz * b.z,
                        xz * b.x + yz * b.y + zz * b.z),
                  1 / det);
    return true;
}

typedef struct face_args {
    un_vec3 *out;
    uint8_t *known;
    const double *u;
    const uint8_t *known_face;
    const un_faces *faces;
    const un_tets *mesh;
} face_args;

static inline un_vec3 unit_normal(const face_args *a, int32_t f)
{
    return un_normalize(un_face_area(a->faces, a->mesh, f));
}

static void nodes(void *arg, int64_t begin, int64_t end)
{
    face_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        normals s = {0};
        for (int32_t k = a->mesh->first[n]; k < a->mesh->first[n + 1]; k++) {
            int32_t corner = a->mesh->corner[k], t = corner / 4;
            for (int c = 1; c < 4; c++) { /* its faces that meet the node */
                int32_t f = a->faces->of_tet[t][(corner + c) & 3];
                if (a->known_face[f] != 1) continue;
                /* visited from both its tets */
                double weight = a->faces->other[f] >= 0 ? 0.5 : 1;
                add_normal(&s, unit_normal(a, f), a->u[f], weight);
            }
        }
        a->out[n] = un_v3(0, 0, 0);
        a->known[n] = solve_normals(&s, &a->out[n]);
    }
}

void un_transfer_faces_to_nodes(un_context *ctx, un_vec3 *u_node, uint8_t *known_node,
                                const double *u, const uint8_t *known, const un_faces *faces,
                                const un_tets *mesh)
{
    face_args a = {u_node, known_node, u, known, faces, mesh};
    un_parallel_for(ctx, mesh->node_count, 2048, nodes, &a);
}

static void tets(void *arg, int64_t begin, int64_t end)
{
    face_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *f = a->faces->of_tet[t];
        normals s = {0};
        bool all = true;
        for (int i = 0; i < 4; i++) {
            all &= a->known_face[f[i]] == 1;
            add_normal(&s, unit_normal(a, f[i]), a->u[f[i]], 1);
        }
        a->out[t] = un_v3(0, 0, 0);
        a->known[t] = all && solve_normals(&s, &a->out[t]);
    }
}

void un_transfer_faces_to_tets(un_context *ctx, un_vec3 *u_tet, uint8_t *known_tet, const double *u,
                               const uint8_t *known, const un_faces *faces, const un_tets *mesh)
{
    face_args a = {u_tet, known_tet, u, known, faces, mesh};
    un_parallel_for(ctx, mesh->tet_count, 4096, tets, &a);
}

/* ---- back to faces ---- */

typedef struct back_args {
    double *u;
    const un_vec3 *node;
    const un_faces *faces;
    const un_tets *mesh;
} back_args;

static void to_faces(void *arg, int64_t begin, int64_t end)
{
    back_args *a = arg;
    for (int64_t f = begin; f < end; f++) {
        int32_t n[3];
        un_face_nodes(a->faces, a->mesh, (int32_t)f, n);
        un_vec3 sum = un_add(un_add(a->node[n[0]], a->node[n[1]]), a->node[n[2]]);
        un_vec3 normal = un_normalize(un_face_area(a->faces, a->mesh, (int32_t)f));
        a->u[f] = un_dot(sum, normal) / 3;
    }
}

void un_transfer_nodes_to_faces(un_context *ctx, double *u, const un_vec3 *u_node,
                                const un_faces *faces, const un_tets *mesh)
{
    back_args a = {u, u_node, faces, mesh};
    un_parallel_for(ctx, faces->count, 4096, to_faces, &a);
}

/* ---- what the way to the nodes has smoothed away ---- */

/* Liquid that crosses this many cells in a step, or more, gets nothing back: splashes keep what
 * smooths them. A wave of 24 cells crosses 0.06. */
#define WAY 0.5

typedef struct limit_args {
    un_vec3 *lost;
    const un_face_velocities *v;
} limit_args;

/* Only nodes with velocities all around, and within the range of the tets there: where velocities
 * jump, at walls that let go, the next nodes would become faster than anything around them. */
static void limit_lost(void *arg, int64_t begin, int64_t end)
{
    const limit_args *a = arg;
    const un_face_velocities *v = a->v;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 here = v->node[n], lo = here, hi = here, u = un_add(here, a->lost[n]);
        bool whole = v->known_node[n] == 1;
        double size = 0;
        for (int32_t k = v->mesh->first[n]; k < v->mesh->first[n + 1]; k++) {
            int32_t t = v->mesh->corner[k] / 4;
            whole = whole && v->known_tet[t] == 1;
            size = fmax(size, un_tets_size(v->mesh, t));
            lo = un_min3(lo, v->tet[t]);
            hi = un_max3(hi, v->tet[t]);
        }
        u = un_min3(un_max3(u, lo), hi);
        double share = whole ? 1 - un_length(here) * v->dt / (WAY * size) : 0;
        a->lost[n] = un_scale(un_sub(u, here), fmax(share, 0));
    }
}

typedef struct lost_args {
    double *lost;
    const double *u;
    const uint8_t *known;
} lost_args;

static void find_lost(void *arg, int64_t begin, int64_t end)
{
    const lost_args *a = arg;
    for (int64_t f = begin; f < end; f++) a->lost[f] = a->known[f] == 1 ? a->u[f] - a->lost[f] : 0;
}

un_status un_transfer_find_lost(un_context *ctx, un_arena *arena, un_vec3 *lost,
                                const un_face_velocities *v)
{
    double *of_faces = un_arena_alloc(arena, (size_t)v->faces->count + 1, sizeof *of_faces);
    uint8_t *reached = un_arena_alloc(arena, (size_t)v->mesh->node_count + 1, 1);
    if (!of_faces || !reached) return UN_ERROR_MEMORY;
    un_transfer_nodes_to_faces(ctx, of_faces, v->node, v->faces, v->mesh);
    lost_args l = {of_faces, v->u, v->known};
    un_parallel_for(ctx, v->faces->count, 8192, find_lost, &l);
    un_transfer_faces_to_nodes(ctx, lost, reached, of_faces, v->known, v->faces, v->mesh);
    limit_args a = {lost, v};
    un_parallel_for(ctx, v->mesh->node_count, 4096, limit_lost, &a);
    return UN_OK;
}

typedef struct add_args {
    un_vec3 *u;
    const un_vec3 *more;
} add_args;

static void add_nodes(void *arg, int64_t begin, int64_t end)
{
    const add_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->u[n] = un_add(a->u[n], a->more[n]);
}

void un_transfer_add_nodes(un_context *ctx, un_vec3 *u, const un_vec3 *more, int32_t count)
{
    add_args a = {u, more};
    un_parallel_for(ctx, count, 16384, add_nodes, &a);
}
