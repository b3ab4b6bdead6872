/* Surface tension on graded tets.
 *
 * As on the grid, the distance to the surface is smoothed by 2 S - S^2; S is a few passes of the
 * mean over the tets around a node, the consistent mass matrix over its row sums. Where cells
 * change size or end at a wall the mean belongs to another place than the node's, and is moved back
 * along the slope: planes stay planes on any mesh. The curvature is that of the weak form,
 *
 *     kappa_n integral of N_n = - integral of grad N_n . n,   n = grad phi / |grad phi|
 *
 * with n constant in a tet. Into solids the distance goes on as if they were not there, as a mirror
 * image that is sheared to the contact angle theta (tet_contact.c); on them and in them the
 * curvature is the mean of the nodes around, as the weak form itself is noisy there. Sides of the
 * domain end the mesh: the slope across them, along which the mean is moved, is that of the contact
 * angle, and the weak form gets
 *
 *     - cos(theta) integral of N_n over the wall.
 *
 * At another angle the smoothed surface bends near the wall, and its curvature drives the surface
 * towards theta.
 *
 * All of it is symmetric and positive on even cells, so that no wave, however short, is driven
 * instead of restored. A quadric fitted to the distance around each node is as accurate, but drives
 * waves shorter than the ball it is fitted in: a still drop bursts (docs/tension.md). */
#include "tension/tet_contact.h"

/* Passes in S; each has a variance of h^2 / 6 along each axis. */
#define PASSES 5
/* Passes over the curvature; and more of them within so many cells of walls, where it is noisier.
 * (Everywhere, they would drive waves of a few cells: a still drop reached 0.11 instead of 0.04 of
 * sqrt(sigma / rho R).) */
#define LAST_PASSES 2 /* as sharpen() has it */
#define WALL_PASSES 2
#define WALL_REACH 2.0
/* Cells from the surface to which nodes count, and to which their curvature is found. */
#define BAND 5.0
#define INNER 2.5
/* In cells: how far the mean of an even node's neighbours is from it at most. */
#define EVEN 0.01
/* Neighbours of a node; 14 are usual. */
#define ROW_MAX 96

typedef struct link {
    int32_t to;
    float weight;
} link;

typedef struct args {
    const un_tension_tets *in;
    const un_tets *mesh;
    uint8_t *near;   /* at nodes: 1 on tets that the surface cuts */
    int32_t *number; /* at nodes: a running count of those in the band */
    int32_t count, *node;
    int32_t *first; /* by number: links to neighbours in the band */
    link *link;
    float *shift;  /* by number: slope times the way from the node to its neighbours' mean */
    uint8_t *even; /* by number: its neighbours lie evenly around the node */
    float *d[3];   /* by number */
    const float *from;
    float *to;
    bool at_walls; /* smooths there only */
    double mean;
    un_part own;     /* numbers of this rank's nodes */
    int64_t own_off; /* number among those of all ranks, less that */
    float *shared;   /* over ranks, at nodes: what ghosts are told */
} args;

static double size_at(const args *a, int32_t n)
{
    return un_octree_size(a->mesh->tree, a->mesh->node_level[n]);
}

/* ---- the band ---- */

static void find_band(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_tets *mesh = a->mesh;
    const float *phi = a->in->phi;
    for (int64_t n = begin; n < end; n++) {
        double h = size_at(a, (int32_t)n);
        a->near[n] = 0;
        a->number[n] = fabs((double)phi[n]) < BAND * h || un_contact_may_matter(a->in, n, h);
        if (!(fabs((double)phi[n]) < 2 * h)) continue;
        bool liquid = phi[n] < 0, cut = false;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && !cut; k++) {
            const int32_t *m = mesh->tet[mesh->corner[k] / 4];
            for (int i = 0; i < 4; i++) cut |= (phi[m[i]] < 0) != liquid;
        }
        a->near[n] = cut;
    }
}

static inline bool in_band(const args *a, int32_t n)
{
    return a->number[n + 1] > a->number[n];
}

static void list_band(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (in_band(a, (int32_t)n)) a->node[a->number[n]] = (int32_t)n;
}

/* The neighbours of node n in the band and their weights, in volumes of tets; and the node's own.
 */
static int32_t find_row(const args *a, int32_t n, link row[ROW_MAX], double *own)
{
    const un_tets *mesh = a->mesh;
    int32_t count = 0;
    *own = 0;
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4;
        const int32_t *m = mesh->tet[t];
        double volume = un_tets_volume(mesh, t);
        *own += 2 * volume;
        for (int i = 0; i < 4; i++) {
            if (m[i] == n) continue;
            int32_t r = 0;
            while (r < count && row[r].to != m[i]) r++;
            if (!in_band(a, m[i]) || r == ROW_MAX) {
                *own += volume;
                continue;
            }
            if (r == count) row[count++] = (link){m[i], 0};
            row[r].weight += (float)volume;
        }
    }
    return count;
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    link row[ROW_MAX];
    double own;
    for (int64_t q = begin; q < end; q++) a->first[q] = find_row(a, a->node[q], row, &own);
}

/* The mean gradient of the distance around a node. */
static un_vec3 slope_at(const un_tets *mesh, const float *field, int32_t n)
{
    un_vec3 g = {0, 0, 0};
    double total = 0;
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4;
        const int32_t *m = mesh->tet[t];
        double v[4] = {field[m[0]], field[m[1]], field[m[2]], field[m[3]]};
        double w = un_tets_volume(mesh, t);
        g = un_mad(g, un_tets_gradient(mesh, t, v), w);
        total += w;
    }
    return un_scale(g, 1 / fmax(total, DBL_MIN));
}

static void write_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    link row[ROW_MAX];
    for (int64_t q = begin; q < end; q++) {
        int32_t n = a->node[q];
        double total;
        int32_t count = find_row(a, n, row, &total);
        for (int32_t r = 0; r < count; r++) total += (double)row[r].weight;
        un_vec3 way = {0, 0, 0};
        for (int32_t r = 0; r < count; r++) {
            double weight = (double)row[r].weight / total;
            way = un_mad(way, un_sub(a->mesh->x[row[r].to], a->mesh->x[n]), weight);
            a->link[a->first[q] + r] = (link){a->number[row[r].to], (float)weight};
        }
        a->even[q] = un_length(way) < EVEN * size_at(a, n);
        un_vec3 slope = slope_at(a->mesh, a->in->phi, n);
        a->shift[q] = (float)un_dot(way, un_contact_slope(a->in, n, slope));
        a->d[0][q] = un_contact_value(a->in, n);
    }
}

/* ---- over ranks ---- */

/* Ghosts get the values of their owners; by number, in the band. Nothing happens on one rank. */
static un_status share(const args *a, float *values)
{
    const un_tet_share *s = a->mesh->share;
    if (!s) return UN_OK;
    un_field field = {"band", a->shared, NULL, sizeof *a->shared};
    for (int64_t q = a->own.begin; q < a->own.end; q++) a->shared[a->node[q]] = values[q];
    UN_TRY(un_tets_share(a->mesh, &field, 1));
    for (int32_t k = 0; k < s->ghost_count; k++)
        if (in_band(a, s->ghost[k])) values[a->number[s->ghost[k]]] = a->shared[s->ghost[k]];
    return UN_OK;
}

static un_status share_rows(un_context *ctx, un_arena *arena, args *a)
{
    const un_tets *mesh = a->mesh;
    if (!mesh->share) return UN_OK;
    a->shared = un_arena_alloc(arena, (size_t)mesh->node_count + 1, sizeof *a->shared);
    UN_TRY(un_ranks_agree(ctx, a->shared ? UN_OK : UN_ERROR_MEMORY));
    un_part own = un_tets_own_nodes(mesh);
    a->own = (un_part){a->number[own.begin], a->number[own.end]};
    UN_TRY(un_contact_values_ranks(ctx, arena, a->in, a->node, a->d[0], a->own));
    for (int32_t q = 0; q < a->count; q++) a->d[1][q] = a->even[q];
    UN_TRY(share(a, a->d[1]));
    for (int32_t q = 0; q < a->count; q++) a->even[q] = a->d[1][q] > 0;
    return share(a, a->d[0]);
}

/* ---- smoothing ---- */

static void smooth_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        float here = a->from[q], sum = here;
        for (int32_t k = a->first[q]; k < a->first[q + 1]; k++)
            sum += a->link[k].weight * (a->from[a->link[k].to] - here);
        a->to[q] = sum - a->shift[q];
    }
}

/* From d[0] to d[0]; d[1] is scratch. */
static un_status smooth(un_context *ctx, args *a, int passes)
{
    for (int pass = 0; pass < passes; pass++) {
        a->from = a->d[0];
        a->to = a->d[1];
        un_parallel_for(ctx, a->count, 2048, smooth_nodes, a);
        a->d[1] = a->d[0];
        a->d[0] = a->to;
        UN_TRY(share(a, a->d[0]));
    }
    return UN_OK;
}

static void combine(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t q = begin; q < end; q++) a->d[0][q] = 2 * a->d[2][q] - a->d[0][q];
}

/* d[0] and d[2]: the curvature after two passes T^2 and after one. Among even cells 2 T - T^2 takes
 * a quarter as much off long waves: the period of a drop of 8 cells a radius was 1.5 % too long and
 * is 0.4 %. Where sizes change it lets noise grow, and the drop sheds particles. */
static void sharpen(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        if (!a->even[q] || isnan(a->d[2][q])) continue;
        bool all = true;
        for (int32_t k = a->first[q]; k < a->first[q + 1]; k++) all &= a->even[a->link[k].to];
        if (all) a->d[0][q] = 2 * a->d[2][q] - a->d[0][q];
    }
}

/* ---- curvature ---- */

/* The weak form over the tets of node n, 1/m. */
static double curvature_at(const args *a, int32_t n)
{
    const un_tets *mesh = a->mesh;
    double sum = 0, whole = 0;
    un_vec3 wall = {0, 0, 0}; /* integral of N_n times the direction away from the wall, m2 */
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4, corner = mesh->corner[k] & 3;
        const int32_t *m = mesh->tet[t];
        double v[4], volume = un_tets_volume(mesh, t);
        for (int i = 0; i < 4; i++)
            v[i] = in_band(a, m[i]) ? a->d[0][a->number[m[i]]] : a->in->phi[m[i]];
        const double *own = un_tets_shape(mesh, t)->gradient[corner];
        un_vec3 g = un_scale(un_v3(own[0], own[1], own[2]), volume / un_tets_size(mesh, t));
        sum -= un_dot(g, un_normalize(un_tets_gradient(mesh, t, v)));
        wall = un_sub(wall, g);
        whole += 0.25 * volume;
    }
    double edge = un_length(wall);
    if (edge > 1e-3 * whole / size_at(a, n)) sum -= un_contact_cosine(a->in, n) * edge;
    return sum / whole;
}

static void find_curvature(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        int32_t n = a->node[q];
        double h = size_at(a, n);
        a->to[q] = NAN;
        if (fabs((double)a->in->phi[n]) < INNER * h && !un_contact_is_in_solid(a->in, n))
            a->to[q] = (float)un_clamp(curvature_at(a, n), -2 / h, 2 / h);
    }
}

static bool is_near_wall(const args *a, int32_t n)
{
    return a->in->walls && (double)a->in->walls->phi[n] < WALL_REACH * size_at(a, n);
}

/* Only among nodes that have one. */
static void smooth_curvature(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        a->to[q] = a->from[q];
        if (a->at_walls && !is_near_wall(a, a->node[q])) continue;
        float here = a->from[q], sum = 0, total = isnan(here) ? 0 : 0.4f;
        if (total > 0) sum = total * here;
        for (int32_t k = a->first[q]; k < a->first[q + 1]; k++) {
            float there = a->from[a->link[k].to];
            if (isnan(there)) continue;
            sum += a->link[k].weight * there;
            total += a->link[k].weight;
        }
        a->to[q] = sum / total; /* none at all: NaN */
    }
}

static void press(void *arg, int64_t begin, int64_t end, double *sums)
{
    args *a = arg;
    double sigma = a->in->def->fluid.surface_tension;
    for (int64_t q = begin - a->own_off; q < end - a->own_off; q++) {
        int32_t n = a->node[q];
        if (!a->near[n]) continue;
        a->near[n] = isfinite(a->d[0][q]);
        if (!a->near[n]) continue;
        a->in->pressure[n] = sigma * (double)a->d[0][q];
        sums[0] += a->in->pressure[n];
        sums[1] += 1;
    }
}

static void fill(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (!a->near[n]) a->in->pressure[n] = a->mean;
}

/* ---- all of it ---- */

static un_status begin(un_context *ctx, un_arena *arena, args *a)
{
    int32_t nodes = a->mesh->node_count;
    a->near = un_arena_alloc(arena, (size_t)nodes + 1, 1);
    a->number = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *a->number);
    if (!a->near || !a->number) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, nodes, 2048, find_band, a);
    a->count = (int32_t)un_parallel_scan(ctx, a->number, nodes);
    a->number[nodes] = a->count;
    size_t count = (size_t)a->count + 1;
    a->node = un_arena_alloc(arena, count, sizeof *a->node);
    a->first = un_arena_alloc(arena, count, sizeof *a->first);
    a->shift = un_arena_alloc(arena, count, sizeof *a->shift);
    a->even = un_arena_alloc(arena, count, 1);
    for (int i = 0; i < 3; i++) a->d[i] = un_arena_alloc(arena, count, sizeof *a->d[i]);
    if (!a->node || !a->first || !a->shift || !a->even || !a->d[0] || !a->d[1] || !a->d[2])
        return UN_ERROR_MEMORY;
    un_parallel_for(ctx, nodes, 8192, list_band, a);
    un_parallel_for(ctx, a->count, 1024, count_rows, a);
    int64_t links = un_parallel_scan(ctx, a->first, a->count);
    if (links > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the surface has too many cells for surface tension; lower detail.finest");
    a->first[a->count] = (int32_t)links;
    a->link = un_arena_alloc(arena, (size_t)links + 1, sizeof *a->link);
    if (!a->link) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, a->count, 1024, write_rows, a);
    return UN_OK;
}

/* d[1] becomes d[0]. */
static un_status take_next(args *a)
{
    a->d[1] = a->d[0];
    a->d[0] = a->to;
    return share(a, a->d[0]);
}

static un_status find_pressure(un_context *ctx, args *a)
{
    const un_tets *mesh = a->mesh;
    double sums[2] = {0};
    if (mesh->share) {
        un_range range = un_ranks_range(ctx, a->own.end - a->own.begin);
        a->own_off = range.begin - a->own.begin;
        un_ranks_sums(ctx, range, 2, press, a, sums);
    } else {
        un_parallel_sums(ctx, a->count, 2, press, a, sums);
    }
    a->mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
    un_parallel_part(ctx, un_tets_own_nodes(mesh), 8192, fill, a);
    un_field field = {"tension", a->in->pressure, NULL, sizeof *a->in->pressure};
    return un_tets_share(mesh, &field, 1);
}

un_status un_tension_on_tets(un_context *ctx, un_arena *arena, const un_tension_tets *in)
{
    args a = {.in = in, .mesh = in->mesh};
    UN_TRY(un_tets_agree(in->mesh, begin(ctx, arena, &a)));
    UN_TRY(share_rows(ctx, arena, &a));
    UN_TRY(smooth(ctx, &a, PASSES));
    memcpy(a.d[2], a.d[0], (size_t)a.count * sizeof *a.d[0]);
    UN_TRY(smooth(ctx, &a, PASSES));
    un_parallel_for(ctx, a.count, 8192, combine, &a);
    a.to = a.d[1];
    un_parallel_for(ctx, a.count, 1024, find_curvature, &a);
    UN_TRY(take_next(&a));
    for (int pass = 0; pass < LAST_PASSES + WALL_PASSES; pass++) {
        a.at_walls = pass >= LAST_PASSES;
        a.from = a.d[0];
        a.to = a.d[1];
        un_parallel_for(ctx, a.count, 2048, smooth_curvature, &a);
        UN_TRY(take_next(&a));
        if (pass == 0) memcpy(a.d[2], a.d[0], (size_t)a.count * sizeof *a.d[0]);
        if (pass != 1) continue;
        un_parallel_for(ctx, a.count, 2048, sharpen, &a);
        UN_TRY(share(&a, a.d[0]));
    }
    UN_TRY(find_pressure(ctx, &a));
    if (in->bodies) un_tension_pull_on_tets(ctx, in);
    return UN_OK;
}
