/* Level set of the simulation on tets, from the particles' volumes.
 *
 *     c_n = sum_p V_p N_n(x_p) / integral of N_n over open space,
 *     c   <- M c / M 1, M the consistent mass matrix, PASSES times,        phi = l F^-1(c)
 *
 * The hat function of a BCC node has the variance h^2 / 12 along each axis, a pass with the mass
 * matrix adds h^2 / 6. Across a flat surface c falls along the profile F of a spline of the same
 * variance, l^2 / 4. h is the local cell's edge.
 *
 * Where cells of several sizes meet, and at walls, hat functions are lopsided: c_n is then the
 * value not at the node but at the centre of gravity of its kernel, and phi is moved from there to
 * the node along its gradient. Nodes at walls have less open space, see fewer particles and are
 * noisier: their weight is smaller by the same factor.
 *
 * Where particles lie apart inside the liquid, c falls, but not to zero: these are not bubbles and
 * are filled.
 *
 * As in colour.c the division makes walls invisible, and phi is smooth in the particles' positions,
 * so that nothing flickers at rest. [Ando13] steps with the union of hulls instead (hulls.c):
 * sharper by half a cell, but bumpy by a share of the particles' radius, which the pressure takes
 * for waves. */
#include "surface/surface.h"

/* With one pass, half of the speed in a tank at rest is noise of the kernel; with two, a third of
 * that. */
#define PASSES 2
/* Width of the kernel in cells: sqrt(4 (1/12 + PASSES/6)). */
#define WIDTH 1.29099444874
/* Beyond this many widths F is 0 or 1. */
#define FAR 1.5
/* EMPTY: a node with less c is empty. EMPTY_LAYERS: layers of air nodes around empty ones. FILLED:
 * depth of filled nodes, in cells. */
#define EMPTY 0.25
#define EMPTY_LAYERS 2
#define FILLED 0.05
/* A node with less than this share of its hat function in open space has no value; phi is extended
 * there. */
#define OPEN_MIN 0.25
/* Deep in the liquid and in the air c says no more how far the surface is: 0.97 instead of 1, by
 * chance, is half a cell. There a node's trust is this small, beside 1 at the surface. */
#define TRUST_MIN 0.01
/* From here on a tet's nodes are near enough to the surface for its slope. */
#define TRUST_SLOPE 0.25
/* Layers of nodes in walls into which phi is extended: enough for all that matter. */
#define EXTEND_LAYERS 12
/* Slopes next to walls come of phi and phi of slopes: after one round water on a ramp was pushed up
 * by a third of its weight, after four by a twentieth. */
#define SLOPE_ROUNDS 4
/* Nodes within so many cells of a wall may have neighbours in it. */
#define REACH 2.0

typedef struct tet_sum {
    double volume, weight, c;
    un_vec3 at;
} tet_sum;

typedef struct colour_args {
    float *phi, *colour;
    const float *volume;
    const un_tets *mesh;
    const un_tet_walls *walls;
    float *from, *to;                 /* c before and after a pass */
    float (*from_at)[3], (*to_at)[3]; /* centre of gravity of the kernel, from the node */
    float *weight;     /* at nodes: open share of a node's space, 0 where it has no value */
    tet_sum *sums;     /* at tets */
    float (*slope)[3]; /* at nodes near walls and in them: gradient of phi */
    float *trust;      /* at nodes: how far phi can be extended from there */
    uint8_t *known, *fresh, *empty;
    un_part own; /* nodes of this rank */
} colour_args;

/* Of several ranks each finds what its own nodes have; ghosts then get it from their owners. */
#define SHARED(a, member)                                                                          \
    (un_field)                                                                                     \
    {                                                                                              \
#member, (a)->member, NULL, sizeof *(a)->member                                            \
    }

static bool is_own(const colour_args *a, int64_t n)
{
    return n >= a->own.begin && n < a->own.end;
}

static void divide(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->from_at[n][0] = a->from_at[n][1] = a->from_at[n][2] = 0;
        a->weight[n] = a->from[n] = 0;
        a->known[n] = 0;
        if (!is_own(a, n)) continue;
        double open = a->walls->node_open[n], full = 0, shared = 0;
        un_vec3 sum = {0, 0, 0};
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double v = 0.25 * un_tets_volume(mesh, t), w = v * a->walls->open[t];
            /* integral of N_n x: V (x_n + sum of all nodes) / 20 */
            un_vec3 x = un_scale(un_sub(un_tets_center(mesh, t), mesh->x[n]), 0.8);
            sum = un_mad(sum, x, w);
            full += v;
            shared += w;
        }
        double inverse = shared > 0 ? 1 / shared : 0;
        a->from_at[n][0] = (float)(sum.x * inverse);
        a->from_at[n][1] = (float)(sum.y * inverse);
        a->from_at[n][2] = (float)(sum.z * inverse);
        double h = un_octree_size(mesh->tree, mesh->node_level[n]);
        if (mesh->parted && mesh->side[n] <= 0)
            full = fmax(full, 0.5 * h * h * h); /* tets of its side are not all */
        a->known[n] = open > 0 && open > OPEN_MIN * full;
        a->weight[n] = a->known[n] ? (float)fmin(1, 2 * open / (h * h * h)) : 0;
        a->from[n] = open > 0 ? fminf(a->volume[n] / (float)open, 4.0f) : 0;
    }
}

/* Sums over a tet's nodes: weights, weighted c, weighted positions. */
static void sum_tets(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *m = mesh->tet[t];
        double weight = 0, c = 0;
        un_vec3 at = {0, 0, 0};
        if (mesh->share && !un_tets_knows(mesh, (int32_t)t)) continue; /* no own node asks */
        for (int i = 0; i < 4; i++) {
            const float *off = a->from_at[m[i]];
            double g = a->weight[m[i]];
            weight += g;
            c += g * a->from[m[i]];
            at = un_mad(at, un_add(mesh->x[m[i]], un_v3(off[0], off[1], off[2])), g);
        }
        double v = un_tets_volume(mesh, (int32_t)t) * a->walls->open[t];
        a->sums[t] = (tet_sum){v, v * weight, v * c, un_scale(at, v)};
    }
}

static void smooth(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->to[n] = a->to_at[n][0] = a->to_at[n][1] = a->to_at[n][2] = 0;
        if (!a->known[n] || !is_own(a, n)) continue;
        double volume = 0, c = 0, total = 0;
        un_vec3 at = {0, 0, 0}, x = mesh->x[n];
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            const tet_sum *s = &a->sums[mesh->corner[k] / 4];
            volume += s->volume;
            total += s->weight;
            c += s->c;
            at = un_add(at, s->at);
        }
        /* The node itself counts twice: the mass matrix of a tet is V (1 + delta_ij) / 20. */
        double own = volume * a->weight[n];
        const float *off = a->from_at[n];
        at = un_mad(at, un_add(x, un_v3(off[0], off[1], off[2])), own);
        double inverse = 1 / (total + own);
        at = un_sub(un_scale(at, inverse), x);
        a->to[n] = (float)((c + own * a->from[n]) * inverse);
        a->to_at[n][0] = (float)at.x;
        a->to_at[n][1] = (float)at.y;
        a->to_at[n][2] = (float)at.z;
    }
}

/* From the kernel's centre to the node, and from c to a distance. */
static void invert(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        double l = WIDTH * un_octree_size(mesh->tree, mesh->node_level[n]), c = a->from[n];
        a->colour[n] = a->known[n] ? a->from[n] : 0;
        a->trust[n] = (float)fmax(4 * c * (1 - c), TRUST_MIN);
        a->phi[n] = 1e30f;
        if (!a->known[n] || !is_own(a, n)) continue;
        if (c > 0.02 && c < 0.98) {
            un_vec3 g = {0, 0, 0};
            double total = 0;
            for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
                int32_t t = mesh->corner[k] / 4;
                const int32_t *m = mesh->tet[t];
                if (!a->known[m[0]] || !a->known[m[1]] || !a->known[m[2]] || !a->known[m[3]])
                    continue;
                double v[4] = {a->from[m[0]], a->from[m[1]], a->from[m[2]], a->from[m[3]]};
                double w = un_tets_volume(mesh, t);
                g = un_mad(g, un_tets_gradient(mesh, t, v), w);
                total += w;
            }
            const float *at = a->from_at[n];
            if (total > 0) c -= (g.x * at[0] + g.y * at[1] + g.z * at[2]) / total;
        }
        a->phi[n] = (float)(l * (c <= 0 ? FAR : c >= 1 ? -FAR : un_colour_distance(c)));
    }
}

/* Whether the surface passes between a node and its neighbours, as far as these have values. */
static bool near_surface(const colour_args *a, int64_t n)
{
    const un_tets *mesh = a->mesh;
    bool liquid = false, air = false;
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && !(liquid && air); k++) {
        const int32_t *m = mesh->tet[mesh->corner[k] / 4];
        if (!a->known[m[0]] || !a->known[m[1]] || !a->known[m[2]] || !a->known[m[3]]) continue;
        for (int i = 0; i < 4; i++) {
            liquid |= a->phi[m[i]] < 0;
            air |= a->phi[m[i]] >= 0;
        }
    }
    return liquid && air;
}

/* The gradient at nodes from which phi is extended: the mean over tets whose nodes have values.
 * Only next to the surface: deep inside, where particles lie unevenly, it is noise. */
static void find_slopes(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        double h = un_octree_size(mesh->tree, mesh->node_level[n]), total = 0;
        un_vec3 g = {0, 0, 0};
        a->slope[n][0] = a->slope[n][1] = a->slope[n][2] = 0;
        a->fresh[n] = 0;
        if (!a->known[n] || (double)a->walls->phi[n] > REACH * h) continue;
        a->fresh[n] = 1;
        if (!near_surface(a, n)) continue;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            const int32_t *m = mesh->tet[t];
            if (!a->known[m[0]] || !a->known[m[1]] || !a->known[m[2]] || !a->known[m[3]]) continue;
            double v[4] = {a->phi[m[0]], a->phi[m[1]], a->phi[m[2]], a->phi[m[3]]};
            double w = un_tets_volume(mesh, t);
            /* nodes that walls leave little of, or far from the surface, say little */
            double least = 1;
            for (int i = 0; i < 4; i++) {
                least = fmin(least, a->trust[m[i]]);
                w *= a->weight[m[i]];
            }
            w *= fmin(1, least / TRUST_SLOPE);
            g = un_mad(g, un_tets_gradient(mesh, t, v), w);
            total += w;
        }
        g = un_scale(g, 1 / fmax(total, un_length(g)));
        a->slope[n][0] = (float)g.x;
        a->slope[n][1] = (float)g.y;
        a->slope[n][2] = (float)g.z;
        a->fresh[n] = 0;
    }
}

/* Nodes around those take their slope. */
static void spread_slopes(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        if (!a->fresh[n]) continue;
        double total = 0, slope[3] = {0};
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            const int32_t *m = mesh->tet[mesh->corner[k] / 4];
            for (int i = 0; i < 4; i++) {
                const float *g = a->slope[m[i]];
                if (a->fresh[m[i]] || (g[0] == 0 && g[1] == 0 && g[2] == 0)) continue;
                for (int axis = 0; axis < 3; axis++) slope[axis] += g[axis];
                total += 1;
            }
        }
        if (total == 0) continue;
        for (int axis = 0; axis < 3; axis++) a->slope[n][axis] = (float)(slope[axis] / total);
    }
}

/* The width along the slope of a kernel that a solid cuts off. Its centre was moved by `at` off the
 * solid, which is `near` away from the node: with m = |at|, a bell's variance, a quarter of its
 * width squared, is less by m (m + near) across the solid. */
static double cut_width(double width, const float slope[3], const float at[3], double near)
{
    double m2 = at[0] * at[0] + at[1] * at[1] + at[2] * at[2], m = sqrt(m2);
    double along = slope[0] * at[0] + slope[1] * at[1] + slope[2] * at[2];
    double g2 = slope[0] * slope[0] + slope[1] * slope[1] + slope[2] * slope[2];
    if (!(m2 > 0 && g2 > 0)) return width;
    double less = 4 * m * fmax(m + near, 0) * along * along / (m2 * g2);
    return sqrt(fmax(width * width - less, 0.25 * width * width));
}

/* Next to walls kernels are lopsided and few tets tell the gradient of c: phi is moved from the
 * kernel's centre to the node by the slope instead. */
static void move_to_nodes(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        const float *g = a->slope[n], *at = a->from_at[n];
        double c = a->from[n], l = WIDTH * un_octree_size(mesh->tree, mesh->node_level[n]);
        if ((g[0] == 0 && g[1] == 0 && g[2] == 0) || !(c > 0.02 && c < 0.98)) continue;
        const float *solid = a->walls->phi_solid;
        if (solid && solid[n] <= a->walls->phi[n] &&
            a->weight[n] < 0.999f) /* not graded, but cut */
            l = cut_width(l, g, at, solid[n]);
        a->phi[n] =
            (float)(l * un_colour_distance(c)) - (g[0] * at[0] + g[1] * at[1] + g[2] * at[2]);
    }
}

/* In walls, one layer at a time: the mean of what the neighbours that have a value foretell, by
 * their trust. Their mean alone would bend a level surface at a slanting wall, where they lie
 * higher or lower; so would those far from the surface, and the pressure then pushed liquid at the
 * waterline up the wall by a quarter of its weight. */
static double extend(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    double found = 0;
    for (int64_t n = a->own.begin + begin; n < a->own.begin + end; n++) {
        a->fresh[n] = 0;
        if (a->known[n]) continue;
        double sum = 0, total = 0, trust = 0, slope[3] = {0};
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            const int32_t *m = mesh->tet[mesh->corner[k] / 4];
            for (int i = 0; i < 4; i++) {
                if (!a->known[m[i]]) continue;
                const float *g = a->slope[m[i]];
                un_vec3 d = un_sub(mesh->x[n], mesh->x[m[i]]);
                double w = a->trust[m[i]];
                sum += w * (a->phi[m[i]] + g[0] * d.x + g[1] * d.y + g[2] * d.z);
                for (int axis = 0; axis < 3; axis++) slope[axis] += w * g[axis];
                trust += w * w;
                total += w;
            }
        }
        if (total == 0) continue;
        a->phi[n] = (float)(sum / total);
        a->trust[n] = (float)(trust / total);
        for (int axis = 0; axis < 3; axis++) a->slope[n][axis] = (float)(slope[axis] / total);
        a->fresh[n] = 1;
        found++;
    }
    return found;
}

static void adopt(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->known[n] |= a->fresh[n];
}

/* Where particles happen to lie apart inside the liquid, mostly where large ones lie in small
 * cells, c falls below a half without being near zero. These are not bubbles, but the pressure
 * would be zero there, and S would refine liquid deep below the surface, which makes more of them.
 * Air is what is empty, or within EMPTY_LAYERS nodes of it; the rest is liquid. Nodes in walls do
 * not count. */
static void find_empty(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->empty[n] = a->known[n] && a->from[n] < EMPTY;
}

static void find_beside_empty(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->fresh[n] = 0;
        if (a->phi[n] < 0 || a->empty[n] || !a->known[n]) continue;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && !a->fresh[n]; k++) {
            const int32_t *m = mesh->tet[mesh->corner[k] / 4];
            for (int i = 0; i < 4; i++) a->fresh[n] |= a->phi[m[i]] >= 0 && a->empty[m[i]];
        }
    }
}

static void adopt_empty(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->empty[n] |= a->fresh[n];
}

static void fill_rest(void *arg, int64_t begin, int64_t end)
{
    colour_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->phi[n] >= 0 && a->known[n] && !a->empty[n])
            a->phi[n] = (float)(-FILLED * un_octree_size(a->mesh->tree, a->mesh->node_level[n]));
}

static un_status fill_bubbles(un_context *ctx, colour_args *a)
{
    int64_t nodes = a->mesh->node_count;
    un_parallel_for(ctx, nodes, 4096, find_empty, a);
    for (int layer = 0; layer < EMPTY_LAYERS; layer++) {
        un_parallel_for(ctx, nodes, 1024, find_beside_empty, a);
        UN_TRY(un_tets_share(a->mesh, &SHARED(a, fresh), 1));
        un_parallel_for(ctx, nodes, 4096, adopt_empty, a);
    }
    un_parallel_for(ctx, nodes, 4096, fill_rest, a);
    return UN_OK;
}

/* c at nodes, smoothed, in a->from. */
static un_status find_colour(un_context *ctx, colour_args *a)
{
    const un_tets *mesh = a->mesh;
    un_parallel_for(ctx, mesh->node_count, 512, divide, a);
    un_field fields[] = {SHARED(a, from), SHARED(a, from_at), SHARED(a, weight), SHARED(a, known)};
    UN_TRY(un_tets_share(mesh, fields, 4));
    for (int pass = 0; pass < PASSES; pass++) {
        un_parallel_for(ctx, mesh->tet_count, 2048, sum_tets, a);
        un_parallel_for(ctx, mesh->node_count, 512, smooth, a);
        float *c = a->from, (*at)[3] = a->from_at;
        a->from = a->to;
        a->from_at = a->to_at;
        a->to = c;
        a->to_at = at;
        un_field moved[] = {SHARED(a, from), SHARED(a, from_at)};
        UN_TRY(un_tets_share(mesh, moved, 2));
    }
    return UN_OK;
}

static un_status find_phi(un_context *ctx, colour_args *a)
{
    const un_tets *mesh = a->mesh;
    un_parallel_for(ctx, mesh->node_count, 512, invert, a);
    UN_TRY(un_tets_share(mesh, &SHARED(a, phi), 1));
    for (int round = 0; a->walls->cut && round < SLOPE_ROUNDS; round++) {
        un_parallel_for(ctx, mesh->node_count, 1024, find_slopes, a);
        un_field slopes[] = {SHARED(a, slope), SHARED(a, fresh)};
        UN_TRY(un_tets_share(mesh, slopes, 2));
        un_parallel_for(ctx, mesh->node_count, 1024, spread_slopes, a);
        un_parallel_for(ctx, mesh->node_count, 1024, move_to_nodes, a);
        un_field moved[] = {SHARED(a, slope), SHARED(a, phi)};
        UN_TRY(un_tets_share(mesh, moved, 2));
    }
    return UN_OK;
}

static un_status extend_layer(un_context *ctx, colour_args *a, bool *any)
{
    const un_tets *mesh = a->mesh;
    un_field fields[] = {SHARED(a, phi), SHARED(a, trust), SHARED(a, slope), SHARED(a, fresh)};
    double found = un_parallel_sum(ctx, a->own.end - a->own.begin, extend, a);
    *any = (mesh->share ? un_ranks_total(ctx, (int64_t)found) : (int64_t)found) > 0;
    if (!*any) return UN_OK;
    UN_TRY(un_tets_share(mesh, fields, 4));
    un_parallel_for(ctx, mesh->node_count, 4096, adopt, a);
    return UN_OK;
}

double un_colour_tets_profile(double phi, double h)
{
    return un_colour_profile(phi / (WIDTH * h));
}

un_status un_colour_tets(un_context *ctx, un_arena *arena, float *phi, float *colour,
                         const float *volume, const un_tets *mesh, const un_tet_walls *walls)
{
    colour_args a = {.phi = phi,
                     .colour = colour,
                     .volume = volume,
                     .mesh = mesh,
                     .walls = walls,
                     .own = un_tets_own_nodes(mesh)};
    size_t count = (size_t)mesh->node_count + 1;
    a.from = un_arena_alloc(arena, count, sizeof *a.from);
    a.to = un_arena_alloc(arena, count, sizeof *a.to);
    a.from_at = un_arena_alloc(arena, count, sizeof *a.from_at);
    a.to_at = un_arena_alloc(arena, count, sizeof *a.to_at);
    a.weight = un_arena_alloc(arena, count, sizeof *a.weight);
    a.slope = un_arena_alloc(arena, count, sizeof *a.slope);
    a.trust = un_arena_alloc(arena, count, sizeof *a.trust);
    a.sums = un_arena_alloc(arena, (size_t)mesh->tet_count + 1, sizeof *a.sums);
    a.known = un_arena_alloc(arena, count, 1);
    a.fresh = un_arena_alloc(arena, count, 1);
    a.empty = un_arena_alloc(arena, count, 1);
    bool all = a.from && a.to && a.from_at && a.to_at && a.weight && a.slope && a.trust && a.sums &&
               a.known && a.fresh && a.empty;
    UN_TRY(un_tets_agree(mesh, all ? UN_OK : UN_ERROR_MEMORY));
    UN_TRY(find_colour(ctx, &a));
    UN_TRY(find_phi(ctx, &a));
    UN_TRY(fill_bubbles(ctx, &a));
    bool any = true;
    for (int layer = 0; any && layer < EXTEND_LAYERS; layer++) UN_TRY(extend_layer(ctx, &a, &any));
    return UN_OK;
}
