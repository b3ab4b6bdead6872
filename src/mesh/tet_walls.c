/* Closed sides and solids on the tets.
 *
 * Solids enter the pressure equation through the open volume of each tet [Ando13 section 3, after
 * Batty et al. 2007]: the distance is sampled at the nodes, and the part of a tet where its linear
 * interpolant is positive is open. This is exact for planes. Sides that coincide with the brick's
 * boundary cut nothing and are left out, so that they do not blur the others. The mesh is new every
 * step, but most nodes stay where they were; distances to static solids are computed only at new
 * nodes, since for a solid from a mesh file they are nearly all of the cost. So is how thick they
 * are behind the surface: where that is less than two cells, tets are parted (tets_parts.c). */
#include "mesh/mesh.h"

#include "mesh/thin.h"

/* A solid's distance is computed within this many coarsest cells of its box; beyond, the distance
 * to the box is used. */
#define BAND 3
/* Thickness that has not been asked for yet. */
#define UNKNOWN -1.0f

static inline double cut(double positive, double other)
{
    return positive / (positive - other);
}

/* Adds the part with corners at the barycentric points p, whose volume is `share`. */
static void add_part(double integral[4], double share, double p[4][4])
{
    for (int i = 0; i < 4; i++)
        integral[i] += 0.25 * share * (p[0][i] + p[1][i] + p[2][i] + p[3][i]);
}

void un_tet_open_integrals(const double v[4], double integral[4])
{
    int pos[4], neg[4], p = 0, n = 0;
    for (int i = 0; i < 4; i++) {
        integral[i] = 0;
        if (v[i] > 0)
            pos[p++] = i;
        else
            neg[n++] = i;
    }
    if (p == 4)
        for (int i = 0; i < 4; i++) integral[i] = 0.25;
    if (p == 1 || p == 3) {
        /* The corner that stands alone, and its cuts. */
        int a = p == 1 ? pos[0] : neg[0];
        const int *others = p == 1 ? neg : pos;
        double part[4][4] = {{0}}, share = 1;
        part[3][a] = 1;
        for (int k = 0; k < 3; k++) {
            int b = others[k];
            double s = p == 1 ? cut(v[a], v[b]) : 1 - cut(v[b], v[a]);
            part[k][a] = 1 - s;
            part[k][b] = s;
            share *= s;
        }
        if (p == 1) {
            add_part(integral, share, part);
        } else {
            add_part(integral, -share, part);
            for (int i = 0; i < 4; i++) integral[i] += 0.25;
        }
    }
    if (p == 2) {
        int p0 = pos[0], p1 = pos[1], n0 = neg[0], n1 = neg[1];
        double s = cut(v[p0], v[n0]), t = cut(v[p0], v[n1]);
        double q = cut(v[p1], v[n0]), r = cut(v[p1], v[n1]);
        double a[4] = {0}, b[4] = {0}, c[4] = {0}, d[4] = {0}, e0[4] = {0}, e1[4] = {0};
        e0[p0] = e1[p1] = 1;
        a[p0] = 1 - s, a[n0] = s;
        b[p0] = 1 - t, b[n1] = t;
        c[p1] = 1 - q, c[n0] = q;
        d[p1] = 1 - r, d[n1] = r;
        const double *parts[3][4] = {{e0, a, b, e1}, {a, b, e1, d}, {a, e1, c, d}};
        double share[3] = {s * t, r * s * (1 - t), (1 - s) * q * r};
        for (int k = 0; k < 3; k++) {
            double part[4][4];
            for (int m = 0; m < 4; m++) memcpy(part[m], parts[k][m], sizeof part[m]);
            add_part(integral, share[k], part);
        }
    }
}

/* ---- distances ---- */

/* The nearest of the bodies that move, or of those that stand still. */
static void nearest_body(const un_tet_walls *tw, un_vec3 x, bool moving, double *d, int16_t *body)
{
    const un_bodies *bodies = tw->walls->bodies;
    double band = BAND * un_octree_size(tw->mesh->tree, 0);
    for (int32_t b = 0; b < bodies->count; b++) {
        if (bodies->body[b].moves != moving) continue;
        double bound = un_body_box_distance(&bodies->body[b], x);
        if (bound > 0 && bound >= *d)
            continue; /* where several overlap, the one that x is deepest in counts */
        double e = bound > band ? bound : un_body_distance(&bodies->body[b], x);
        if (e >= *d) continue;
        *d = e;
        *body = (int16_t)b;
    }
}

/* Finds a node by its order among those of the old mesh, at or after *k. */
static bool find_old(const un_tet_walls *tw, uint64_t order, int32_t *k)
{
    while (*k < tw->old_count && tw->old_order[*k] < order) ++*k;
    return *k < tw->old_count && tw->old_order[*k] == order;
}

static void keep_order(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    for (int64_t n = begin; n < end; n++) tw->old_order[n] = un_tets_order(tw->mesh, n);
}

static void sample_still(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    const un_tets *mesh = tw->mesh;
    int32_t k = (int32_t)un_lower_bound(tw->old_order, tw->old_count, un_tets_order(mesh, begin));
    for (int64_t n = begin; n < end; n++) {
        if (find_old(tw, un_tets_order(mesh, n), &k)) {
            tw->still[n] = tw->old_still[k];
            tw->still_body[n] = tw->old_still_body[k];
            tw->thickness[n] = tw->old_thickness[k];
            continue;
        }
        double d = 1e30;
        int16_t body = -1;
        nearest_body(tw, mesh->x[n], false, &d, &body);
        tw->still[n] = (float)d;
        tw->still_body[n] = body;
        tw->thickness[n] = UNKNOWN;
    }
}

/* ---- thin walls ---- */

/* How thick the solid next to node n is, or around it; INFINITY where none is near, or it is thick.
 */
static float narrow_at(un_tet_walls *tw, int64_t n, double d, bool still)
{
    const un_octree *tree = tw->mesh->tree;
    double h = un_octree_size(tree, tw->mesh->node_level[n]);
    double most = UN_THIN * un_octree_size(tree, 0);
    if (fabs(d) > UN_THIN * h) return INFINITY;
    float found = still ? tw->thickness[n] : UNKNOWN;
    if (found == UNKNOWN)
        found =
            (float)un_thin_thickness(tw->walls->bodies, still, tw->mesh->x[n], d, tree->h, most);
    if (still) tw->thickness[n] = found;
    return found < (float)most ? found : INFINITY;
}

/* Distance to the sides that lie inside the brick: upper sides where the brick goes beyond the
 * domain. */
static double cutting_sides(const un_tet_walls *tw, un_vec3 x)
{
    const un_octree *tree = tw->mesh->tree;
    const bool *open = tw->walls->scene->def.domain.open;
    double size[3] = {tree->size.x, tree->size.y, tree->size.z}, at[3] = {x.x, x.y, x.z};
    double d = 1e30, root = un_octree_size(tree, 0);
    for (int a = 0; a < 3; a++)
        if (!open[2 * a + 1] && tree->roots[a] * root - size[a] > UN_SNAP * tree->h)
            d = fmin(d, size[a] - at[a]);
    return d;
}

static bool cuts_anything(const un_tet_walls *tw)
{
    return tw->walls->bodies->count > 0 || cutting_sides(tw, un_v3(0, 0, 0)) < 1e29;
}

typedef struct sample_args {
    un_tet_walls *tw;
    float *solid, *narrow; /* at plain nodes: distance to solids, their thickness */
    int16_t *body;
    uint8_t *thin;
} sample_args;

static double sample_solids(void *arg, int64_t begin, int64_t end)
{
    const sample_args *a = arg;
    un_tet_walls *tw = a->tw;
    double count = 0;
    for (int64_t n = begin; n < end; n++) {
        double d = tw->still[n];
        int16_t body = tw->still_body[n];
        if (tw->walls->bodies->moving) nearest_body(tw, tw->mesh->x[n], true, &d, &body);
        a->solid[n] = (float)d;
        a->body[n] = body;
        a->narrow[n] = narrow_at(tw, n, d, d == (double)tw->still[n]);
        /* next to thicker walls sizing asks for cells that see them */
        a->thin[n] = d > 0 && a->narrow[n] < UN_THIN * tw->mesh->tree->h;
        count += a->thin[n];
    }
    return count;
}

static void sample_nodes(void *arg, int64_t begin, int64_t end)
{
    const sample_args *a = arg;
    un_tet_walls *tw = a->tw;
    const un_tets *mesh = tw->mesh;
    double snap = UN_SNAP * mesh->tree->h;
    for (int64_t n = begin; n < end; n++) {
        double d = un_walls_sides(tw->walls, mesh->x[n]);
        double cutting = tw->cut ? cutting_sides(tw, mesh->x[n]) : 1e30;
        if (tw->phi_solid) {
            int64_t plain = mesh->parted ? mesh->origin[n] : n;
            double solid = mesh->parted ? mesh->side[n] : a->solid[n];
            tw->phi_solid[n] = (float)solid;
            tw->body[n] = a->body[plain];
            tw->narrow[n] = a->narrow[plain];
            d = fmin(d, solid);
            cutting = fmin(cutting, solid);
        }
        tw->phi[n] = fabs(d) < snap ? 0.0f : (float)d;
        if (tw->cut) tw->cut[n] = fabs(cutting) < snap ? 0.0f : (float)cutting;
    }
}

/* ---- fractions ---- */

static bool tet_values(const un_tet_walls *tw, int64_t t, double v[4])
{
    const int32_t *n = tw->mesh->tet[t];
    bool cut_through = false;
    for (int i = 0; i < 4; i++) {
        v[i] = tw->cut[n[i]];
        cut_through |= v[i] < 0;
    }
    return cut_through;
}

static void sample_tets(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    for (int64_t t = begin; t < end; t++) {
        double v[4];
        /* A tet with nodes on a wall but none in it is open: the edge of a box. */
        tw->open[t] = tw->cut && tet_values(tw, t, v) ? (float)un_tet_fraction(v) : 1.0f;
    }
}

static void find_velocities(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    for (int64_t t = begin; t < end; t++) {
        tw->u_solid[t] = un_v3(0, 0, 0);
        if (tw->open[t] >= 1) continue;
        int32_t nearest = tw->mesh->tet[t][0];
        for (int i = 1; i < 4; i++)
            if (tw->cut[tw->mesh->tet[t][i]] < tw->cut[nearest]) nearest = tw->mesh->tet[t][i];
        int16_t body = tw->body[nearest];
        if (body >= 0 && tw->phi_solid[nearest] <= tw->cut[nearest])
            tw->u_solid[t] = un_body_velocity(&tw->walls->bodies->body[body],
                                              un_tets_center(tw->mesh, (int32_t)t));
    }
}

static void sum_nodes(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    const un_tets *mesh = tw->mesh;
    for (int64_t n = begin; n < end; n++) {
        double sum = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double volume = un_tets_volume(mesh, t), v[4], integral[4];
            if (tw->open[t] >= 1) {
                sum += 0.25 * volume;
            } else if (tw->open[t] > 0) {
                tet_values(tw, t, v);
                un_tet_open_integrals(v, integral);
                sum += volume * integral[mesh->corner[k] % 4];
            }
        }
        tw->node_open[n] = (float)sum;
    }
}

un_vec3 un_tet_walls_normal(const un_tet_walls *tw, int64_t n)
{
    const un_tets *mesh = tw->mesh;
    un_vec3 sum = {0, 0, 0};
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4;
        double v[4];
        for (int i = 0; i < 4; i++) v[i] = tw->phi_solid[mesh->tet[t][i]];
        sum = un_mad(sum, un_tets_gradient(mesh, t, v), un_tets_volume(mesh, t));
    }
    return un_normalize(sum);
}

/* ---- create and destroy ---- */

void un_tet_walls_init(un_context *ctx, un_tet_walls *tw, const un_walls *walls)
{
    *tw = (un_tet_walls){.ctx = ctx, .walls = walls};
}

void un_tet_walls_free(un_tet_walls *tw)
{
    void *arrays[] = {tw->cut,       tw->phi,           tw->phi_solid,  tw->body,
                      tw->open,      tw->node_open,     tw->u_solid,    tw->old_order,
                      tw->still,     tw->old_still,     tw->still_body, tw->old_still_body,
                      tw->thickness, tw->old_thickness, tw->narrow};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(tw->ctx, arrays[i]);
    *tw = (un_tet_walls){.ctx = tw->ctx, .walls = tw->walls};
}

static un_status need(un_tet_walls *tw, void *array, int slot, int32_t count, size_t size)
{
    return un_array_need(tw->ctx, array, &tw->capacity[slot], (size_t)count + 1, size);
}

static void swap(void *a, void *b, size_t *capacity_a, size_t *capacity_b)
{
    void *array;
    size_t capacity = *capacity_a;
    memcpy(&array, a, sizeof array);
    memcpy(a, b, sizeof array);
    memcpy(b, &array, sizeof array);
    *capacity_a = *capacity_b;
    *capacity_b = capacity;
}

/* Distances of the last mesh are kept until the next one has taken them over. */
static un_status keep_still(un_tet_walls *tw)
{
    const un_tets *mesh = tw->mesh;
    size_t *capacity = tw->capacity;
    swap(&tw->still, &tw->old_still, &capacity[7], &capacity[8]);
    swap(&tw->still_body, &tw->old_still_body, &capacity[9], &capacity[10]);
    swap(&tw->thickness, &tw->old_thickness, &capacity[12], &capacity[13]);
    UN_TRY(need(tw, &tw->still, 7, mesh->node_count, sizeof *tw->still));
    UN_TRY(need(tw, &tw->still_body, 9, mesh->node_count, sizeof *tw->still_body));
    UN_TRY(need(tw, &tw->thickness, 12, mesh->node_count, sizeof *tw->thickness));
    un_parallel_for(tw->ctx, mesh->node_count, 2048, sample_still, tw);
    tw->old_count = 0;
    UN_TRY(need(tw, &tw->old_order, 6, mesh->node_count, sizeof *tw->old_order));
    un_parallel_for(tw->ctx, mesh->node_count, 8192, keep_order, tw);
    tw->old_count = mesh->node_count;
    return UN_OK;
}

/* ---- all of it ---- */

static un_status begin_sampling(sample_args *a, un_arena *arena, double *thin)
{
    un_tet_walls *tw = a->tw;
    size_t count = (size_t)tw->mesh->plain_nodes + 1;
    a->solid = un_arena_alloc(arena, count, sizeof *a->solid);
    a->body = un_arena_alloc(arena, count, sizeof *a->body);
    a->narrow = un_arena_alloc(arena, count, sizeof *a->narrow);
    a->thin = un_arena_alloc(arena, count, 1);
    if (!a->solid || !a->body || !a->narrow || !a->thin) return UN_ERROR_MEMORY;
    *thin = un_parallel_sum(tw->ctx, tw->mesh->plain_nodes, sample_solids, a);
    return UN_OK;
}

/* Whether any rank meets a thin wall at its own nodes: what fills the brick does not count. */
static bool is_thin(const sample_args *a, double here)
{
    const un_tets *mesh = a->tw->mesh;
    un_part own = un_tets_own_nodes(mesh);
    bool thin = false;
    if (!mesh->share) return here > 0;
    for (int64_t n = own.begin; n < own.end; n++) thin |= a->thin[n];
    return un_ranks_max(mesh->ctx, thin) > 0;
}

static un_status finish_sampling(sample_args *a)
{
    un_tet_walls *tw = a->tw;
    un_parallel_for(tw->ctx, tw->mesh->node_count, 4096, sample_nodes, a);
    un_parallel_for(tw->ctx, tw->mesh->tet_count, 8192, sample_tets, tw);
    if (tw->walls->bodies->free_count > 0) un_tet_walls_weigh(tw);
    if (tw->u_solid) un_parallel_for(tw->ctx, tw->mesh->tet_count, 8192, find_velocities, tw);
    un_parallel_for(tw->ctx, tw->mesh->node_count, 1024, sum_nodes, tw);
    un_field fields[1] = {{"node_open", tw->node_open, NULL, sizeof *tw->node_open}};
    return un_tets_share(tw->mesh, fields, 1); /* not all tets around ghosts are here */
}

un_status un_tet_walls_move(un_tet_walls *tw, un_arena *arena, un_tets *mesh)
{
    sample_args a = {.tw = tw};
    double thin;
    /* A thin wall may pass particles in the step, and they would be on the wrong side of it: it
     * meets them where they are. */
    if (mesh->parted) {
        un_parallel_for(tw->ctx, mesh->tet_count, 8192, find_velocities, tw);
        return UN_OK;
    }
    un_status status = begin_sampling(&a, arena, &thin);
    UN_TRY(mesh->share ? un_ranks_agree(tw->ctx, status) : status);
    return finish_sampling(&a);
}

/* Distances to solids, and room for all. */
static un_status begin_mesh(sample_args *a, un_arena *arena, un_tets *mesh)
{
    un_tet_walls *tw = a->tw;
    double thin = 0;
    if (tw->walls->bodies->count > 0) {
        un_status status = keep_still(tw);
        if (status == UN_OK) status = begin_sampling(a, arena, &thin);
        UN_TRY(un_tets_agree(mesh, status));
        if (is_thin(a, thin))
            UN_TRY(un_tets_part(mesh, arena, tw->walls->bodies, a->solid, a->thin));
        UN_TRY(need(tw, &tw->phi_solid, 1, mesh->node_count, sizeof *tw->phi_solid));
        UN_TRY(need(tw, &tw->body, 2, mesh->node_count, sizeof *tw->body));
        UN_TRY(need(tw, &tw->narrow, 14, mesh->node_count, sizeof *tw->narrow));
    }
    UN_TRY(need(tw, &tw->phi, 0, mesh->node_count, sizeof *tw->phi));
    UN_TRY(need(tw, &tw->open, 3, mesh->tet_count, sizeof *tw->open));
    UN_TRY(need(tw, &tw->node_open, 4, mesh->node_count, sizeof *tw->node_open));
    if (tw->walls->bodies->moving)
        UN_TRY(need(tw, &tw->u_solid, 5, mesh->tet_count, sizeof *tw->u_solid));
    if (cuts_anything(tw)) UN_TRY(need(tw, &tw->cut, 11, mesh->node_count, sizeof *tw->cut));
    return UN_OK;
}

un_status un_tet_walls_sample(un_tet_walls *tw, un_arena *arena, un_tets *mesh)
{
    sample_args a = {.tw = tw};
    tw->mesh = mesh;
    un_status status = begin_mesh(&a, arena, mesh);
    UN_TRY(un_tets_agree(mesh, status));
    return finish_sampling(&a);
}
