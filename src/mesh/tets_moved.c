/* Tets whose nodes were moved off the lattice: their own shapes, and point location. */
#include "mesh/tets_internal.h"

/* ---- shapes ---- */

typedef struct moved_args {
    un_tets *mesh;
    uint8_t *moved; /* by node */
} moved_args;

static void find_moved_nodes(void *arg, int64_t begin, int64_t end)
{
    moved_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = a->mesh->x[n], home = un_tets_home(a->mesh, a->mesh->node_key[n]);
        a->moved[n] = !(x.x == home.x && x.y == home.y && x.z == home.z);
    }
}

static void find_moved_tets(void *arg, int64_t begin, int64_t end)
{
    moved_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->mesh->tet[t];
        a->mesh->own_first[t] =
            a->moved[n[0]] || a->moved[n[1]] || a->moved[n[2]] || a->moved[n[3]];
    }
}

static void measure_moved(void *arg, int64_t begin, int64_t end)
{
    moved_args *a = arg;
    un_tets *mesh = a->mesh;
    for (int64_t t = begin; t < end; t++) {
        if (mesh->own_first[t + 1] == mesh->own_first[t]) continue;
        un_tet_shape *shape = &mesh->own[mesh->own_first[t]];
        double scale = 1 / un_tets_size(mesh, (int32_t)t), edge[3][3];
        un_vec3 from = mesh->x[mesh->tet[t][0]];
        for (int i = 0; i < 3; i++) {
            un_vec3 e = un_scale(un_sub(mesh->x[mesh->tet[t][i + 1]], from), scale);
            edge[i][0] = e.x, edge[i][1] = e.y, edge[i][2] = e.z;
        }
        *shape = (un_tet_shape){.kind = mesh->shapes[mesh->shape[t]].kind};
        un_tet_shape_measure(shape, edge);
    }
}

un_status un_tets_remeasure(un_tets *mesh, un_arena *arena)
{
    un_context *ctx = mesh->ctx;
    moved_args a = {mesh, un_arena_alloc(arena, (size_t)mesh->node_count + 1, 1)};
    mesh->own_count = 0;
    if (!a.moved) return UN_ERROR_MEMORY;
    UN_TRY(un_array_need(ctx, (void **)&mesh->own_first, &mesh->capacity[10],
                         (size_t)mesh->tet_count + 1, sizeof *mesh->own_first));
    un_parallel_for(ctx, mesh->node_count, 8192, find_moved_nodes, &a);
    un_parallel_for(ctx, mesh->tet_count, 8192, find_moved_tets, &a);
    mesh->own_first[mesh->tet_count] = 0;
    int64_t count = un_parallel_scan(ctx, mesh->own_first, (int64_t)mesh->tet_count + 1);
    UN_TRY(un_array_need(ctx, (void **)&mesh->own, &mesh->capacity[11], (size_t)count,
                         sizeof *mesh->own));
    un_parallel_for(ctx, mesh->tet_count, 2048, measure_moved, &a);
    mesh->own_count = (int32_t)count;
    return UN_OK;
}

/* ---- location ---- */

/* After this many steps every tet is tried: paths through bad tets may go in circles. */
#define STEPS_MAX 200

static double weights(const un_tets *mesh, int32_t t, un_vec3 x, double w[4])
{
    const un_tet_shape *s = un_tets_shape(mesh, t);
    un_vec3 d = un_sub(x, mesh->x[mesh->tet[t][3]]);
    double scale = 1 / un_tets_size(mesh, t), least;
    w[3] = 1;
    for (int i = 0; i < 3; i++) {
        const double *g = s->gradient[i];
        w[i] = (g[0] * d.x + g[1] * d.y + g[2] * d.z) * scale;
        w[3] -= w[i];
    }
    least = fmin(fmin(w[0], w[1]), fmin(w[2], w[3]));
    return isnan(w[3]) ? -INFINITY : least;
}

/* The tet across the face opposite corner i; -1: none. */
static int32_t across(const un_tets *mesh, int32_t t, int i)
{
    const int32_t *n = mesh->tet[t];
    int32_t p = n[(i + 1) % 4], q = n[(i + 2) % 4], r = n[(i + 3) % 4];
    for (int32_t k = mesh->first[p]; k < mesh->first[p + 1]; k++) {
        int32_t other = mesh->corner[k] / 4;
        const int32_t *m = mesh->tet[other];
        if (other != t && (m[0] == q || m[1] == q || m[2] == q || m[3] == q) &&
            (m[0] == r || m[1] == r || m[2] == r || m[3] == r))
            return other;
    }
    return -1;
}

/* The next tet of the walk: across the face that x lies farthest behind, among those with a tet
 * behind. -1: x lies behind no face, or only behind the mesh's boundary. */
static int32_t nearer(const un_tets *mesh, int32_t t, const double w[4])
{
    int32_t best = -1;
    double least = 0;
    for (int i = 0; i < 4; i++) {
        if (!(w[i] < least)) continue;
        int32_t other = across(mesh, t, i);
        if (other >= 0) best = other, least = w[i];
    }
    return best;
}

void un_tets_walk(const un_tets *mesh, un_vec3 x, un_tets_place *place)
{
    double w[4], found = weights(mesh, place->tet, x, w);
    int32_t t = place->tet, step = 0;
    while (found < 0 && step < STEPS_MAX) {
        int32_t next = nearer(mesh, t, w);
        if (next < 0) break;
        found = weights(mesh, t = next, x, w);
        step++;
    }
    if (step == STEPS_MAX) {
        double best = -INFINITY;
        for (int32_t n = 0; n < mesh->tet_count; n++) {
            double least = weights(mesh, n, x, w);
            if (least > best) best = least, t = n;
        }
        found = weights(mesh, t, x, w);
    }
    double sum = 0; /* points outside, or outside by round-off, count at the boundary */
    for (int i = 0; i < 4; i++) sum += w[i] = fmax(w[i], 0);
    place->tet = t;
    for (int i = 0; i < 4; i++) place->w[i] = sum > 0 ? w[i] / sum : 0.25;
}
