/* The density of cells that a grid should have which warps [Ibayashi18 section 4.2].
 *
 *     m = 1 + strength min(1, V sum_i t_i),
 *     surface t = exp(-ALPHA d / L), solids t = exp(-ALPHA (d_solid + d_liquid) / L),
 *     strain t = 1 - exp(-|e| / (BETA pace)) in the liquid, custom t = ((h / size)^dim - 1) /
 * strength,
 *
 * d the distance to the surface, d_liquid to the liquid, L the mean side of the domain. Each term
 * is divided by its factor in the scene's sizing; V lets through what the camera sees and a part of
 * the rest. The paper adds exp(-beta |u|), which depends on the units of speed; strain does not.
 *
 * Distances are found on the monitor's lattice: each node keeps the nearest point of the surface,
 * which sweeps hand on from node to node. */
#include "sizing/sizing.h"

#define ALPHA 10.0
/* Cells of the lattice along the longest side, at most. */
#define NODES_FLAT 64
#define NODES 32
/* Strain that counts fully, per pace of the scene, is several times this. */
#define BETA 15.0
/* What the camera does not see counts this much. */
#define UNSEEN 0.2
#define SWEEP_ROUNDS 1
/* The grid is read this near to a node, in cells. */
#define NEAR 0.02

un_status un_monitor_init(un_context *ctx, un_monitor *m, un_vec3 size, int32_t finest)
{
    bool flat = !(size.z > 0);
    double side[3] = {size.x, size.y, size.z}, longest = fmax(size.x, fmax(size.y, size.z));
    *m = (un_monitor){.n = {1, 1, 1}, .spacing = {1, 1, 1}};
    size_t count = 1;
    double most = fmin(flat ? NODES_FLAT : NODES, finest);
    for (int a = 0; a < (flat ? 2 : 3); a++) {
        int32_t cells = (int32_t)fmax(4, round(most * side[a] / longest));
        m->n[a] = cells + 1;
        m->spacing[a] = side[a] / cells;
        count *= (size_t)m->n[a];
    }
    UN_ALLOC(ctx, m->density, count);
    return UN_OK;
}

void un_monitor_free(un_context *ctx, un_monitor *m)
{
    un_free(ctx, m->density);
    *m = (un_monitor){0};
}

typedef struct monitor_args {
    un_monitor *monitor;
    const un_monitor_def *def;
    un_vec3 *nearest; /* at nodes: a point of the surface */
    float *square;    /* of the distance to it, m2 */
    float *deep;      /* level set, in the liquid below 0 */
    float *strain;    /* 1/s */
    float *wanted;    /* custom size, m */
    double length, pace;
    un_viewpoint camera;
} monitor_args;

static un_vec3 place_of(const un_monitor *m, int64_t n)
{
    return un_v3((double)(n % m->n[0]) * m->spacing[0],
                 (double)(n / m->n[0] % m->n[1]) * m->spacing[1],
                 m->n[2] == 1 ? 0 : (double)(n / m->n[0] / m->n[1]) * m->spacing[2]);
}

static int64_t node_count(const un_monitor *m)
{
    return (int64_t)m->n[0] * m->n[1] * m->n[2];
}

/* Offers a point of the surface to node n at x. */
static void offer(monitor_args *a, int64_t n, un_vec3 x, un_vec3 point)
{
    un_vec3 way = un_sub(x, point);
    float square = (float)un_dot(way, way);
    if (!(square < a->square[n])) return;
    a->square[n] = square;
    a->nearest[n] = point;
}

/* A point of the surface goes to the nodes around it. */
static void enter(monitor_args *a, un_vec3 x)
{
    const un_monitor *m = a->monitor;
    double at[3] = {x.x, x.y, x.z};
    int64_t stride[3] = {1, m->n[0], (int64_t)m->n[0] * m->n[1]}, base = 0;
    int dim = m->n[2] == 1 ? 2 : 3;
    for (int d = 0; d < dim; d++)
        base += un_clampi((int32_t)(at[d] / m->spacing[d]), 0, m->n[d] - 2) * stride[d];
    for (int c = 0; c < 1 << dim; c++) {
        int64_t n = base;
        for (int d = 0; d < dim; d++) n += c >> d & 1 ? stride[d] : 0;
        offer(a, n, place_of(m, n), x);
    }
}

/* Between open cells on both sides of the surface. */
static void find_surface(monitor_args *a)
{
    const un_monitor_def *def = a->def;
    const un_grid *g = &def->warp->grid;
    const float *phi = def->phi, *open = def->walls->volume;
    for (int64_t c = 0; c < g->cell_count; c++) {
        if (!(def->warp->jacobian[c] > 0) || !(open[c] > 0)) continue;
        for (int d = 0; d < g->dim; d++) {
            int64_t m = c + g->stride[d];
            if (!(def->warp->jacobian[m] > 0) || !(open[m] > 0)) continue;
            if ((phi[c] < 0) == (phi[m] < 0)) continue;
            double t = phi[c] / (phi[c] - phi[m]);
            un_vec3 x = def->warp->centre[c];
            enter(a, un_mad(x, un_sub(def->warp->centre[m], x), t));
        }
    }
}

static void sweep(monitor_args *a)
{
    const un_monitor *m = a->monitor;
    int64_t stride[3] = {1, m->n[0], (int64_t)m->n[0] * m->n[1]};
    for (int way = 0; way < (m->n[2] == 1 ? 4 : 8) * SWEEP_ROUNDS; way++)
        for (int32_t kk = 0; kk < m->n[2]; kk++)
            for (int32_t jj = 0; jj < m->n[1]; jj++)
                for (int32_t ii = 0; ii < m->n[0]; ii++) {
                    int32_t at[3] = {way & 1 ? m->n[0] - 1 - ii : ii,
                                     way & 2 ? m->n[1] - 1 - jj : jj,
                                     way & 4 ? m->n[2] - 1 - kk : kk};
                    int64_t n = at[0] + stride[1] * at[1] + stride[2] * at[2];
                    un_vec3 x = un_v3(at[0] * m->spacing[0], at[1] * m->spacing[1],
                                      m->n[2] == 1 ? 0 : at[2] * m->spacing[2]);
                    for (int d = 0; d < 3; d++) {
                        int32_t from = at[d] + (way >> d & 1 ? 1 : -1);
                        if (from < 0 || from >= m->n[d]) continue;
                        int64_t o = n + (from - at[d]) * stride[d];
                        if (a->square[o] < 1e29f) offer(a, n, x, a->nearest[o]);
                    }
                }
}

/* Columns of nodes along y, eight next to each other along x. */
static int32_t column_groups(const un_monitor *m)
{
    return (m->n[0] + 7) / 8;
}

/* The level set and the strain at eight nodes from n on, which the walker has reached. */
static void note(monitor_args *a, const un_warp_eight *e, int64_t n, int32_t count)
{
    const un_monitor_def *def = a->def;
    const un_grid *g = &def->warp->grid;
    double phi[8], strain[8] = {0};
    un_warp_eight_sample(g, def->phi, e, phi);
    if (def->u) {
        un_eight v, slope[3], r[3];
        un_warp_eight_blend(g, def->u, e, &v, slope);
        un_warp_eight_gradient(e, slope, g->inverse_h, r);
        for (int i = 0; i < 8; i++) {
            double xy = 0.5 * (r[0].of[1][i] + r[1].of[0][i]);
            double yz = 0.5 * (r[1].of[2][i] + r[2].of[1][i]);
            double zx = 0.5 * (r[2].of[0][i] + r[0].of[2][i]);
            double xx = r[0].of[0][i], yy = r[1].of[1][i], zz = r[2].of[2][i];
            strain[i] = sqrt(xx * xx + yy * yy + zz * zz + 2 * (xy * xy + yz * yz + zx * zx));
        }
    }
    for (int32_t i = 0; i < count; i++) {
        a->deep[n + i] = (float)phi[i];
        a->strain[n + i] = (float)strain[i];
    }
}

/* The level set and the strain around each node, from the grid. */
static void look(void *arg, int64_t begin, int64_t end)
{
    monitor_args *a = arg;
    const un_monitor *m = a->monitor;
    const un_warp *w = a->def->warp;
    int32_t groups = column_groups(m);
    un_eight x, left;
    for (int64_t unit = begin; unit < end; unit++) {
        int32_t i = 8 * (int32_t)(unit % groups), k = (int32_t)(unit / groups);
        int32_t count = m->n[0] - i < 8 ? m->n[0] - i : 8;
        un_warp_eight e;
        for (int32_t j = 0; j < m->n[1]; j++) {
            int64_t n = i + m->n[0] * (j + (int64_t)m->n[1] * k);
            for (int lane = 0; lane < 8; lane++) {
                un_vec3 at = place_of(m, n + (lane < count ? lane : count - 1));
                un_vec3 xi = un_warp_inside(&w->grid, un_warp_guess(w, at));
                const double to[3] = {at.x, at.y, at.z}, from[3] = {xi.x, xi.y, xi.z};
                for (int d = 0; d < 3; d++) {
                    x.of[d][lane] = to[d];
                    /* later from where the node before was found */
                    if (j == 0) e.xi.of[d][lane] = from[d];
                }
            }
            if (j == 0) un_warp_eight_at(w, &e);
            un_warp_eight_walk(w, &e, &x, NEAR, &left);
            note(a, &e, n, count);
        }
    }
}

/* 1 in the picture, UNSEEN outside it. */
static double seen(const monitor_args *a, un_vec3 x)
{
    const un_viewpoint *c = &a->camera;
    un_vec3 forward = un_normalize(un_sub(c->target, c->eye)), up = {0, 1, 0};
    un_vec3 right = un_normalize(un_cross(forward, up)), to = un_sub(x, c->eye);
    double tan_y = tan(c->fov * UN_PI / 360), depth = un_dot(to, forward);
    double across = fabs(un_dot(to, right)), high = fabs(un_dot(to, un_cross(right, forward)));
    bool in = depth > 0 && across < 1.1 * depth * tan_y * c->aspect && high < 1.1 * depth * tan_y;
    return in ? 1 : UNSEEN;
}

static double term(double factor, double value)
{
    return factor > 0 ? value / factor : 0;
}

static void weigh(void *arg, int64_t begin, int64_t end)
{
    monitor_args *a = arg;
    const un_monitor_def *def = a->def;
    const un_scene_def *scene = &def->scene->def;
    double rate = ALPHA / a->length, h = def->warp->grid.h;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = place_of(a->monitor, n);
        double distance = sqrtf(a->square[n]), away = a->deep[n] < 0 ? 0 : distance, sum;
        sum = term(scene->sizing.depth, exp(-rate * distance));
        if (def->walls->bodies->count > 0 && scene->sizing.solid_curvature > 0) {
            double solid = 2 * a->length;
            un_bodies_nearest(def->walls->bodies, x, &solid);
            sum += term(scene->sizing.solid_curvature, exp(-rate * (fmax(solid, 0) + away)));
        }
        if (def->u && a->deep[n] < 0)
            sum += term(scene->sizing.strain, 1 - exp(-a->strain[n] * a->pace / BETA));
        if (scene->sizing.has_camera) sum *= seen(a, x);
        if (a->wanted && isfinite(a->wanted[n]))
            sum += (pow(h / a->wanted[n], scene->domain.dim) - 1) / def->strength;
        a->monitor->density[n] = (float)(1 + def->strength * un_clamp(sum, 0, 1));
    }
}

static un_status ask_custom(monitor_args *a, un_arena *arena, int64_t count)
{
    un_vec3 *x = un_arena_alloc(arena, (size_t)count, sizeof *x);
    a->wanted = un_arena_alloc(arena, (size_t)count, sizeof *a->wanted);
    if (!x || !a->wanted) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < count; n++) x[n] = place_of(a->monitor, n);
    return un_scene_custom_sizes(a->def->scene, a->def->time, x, count, a->wanted);
}

un_status un_monitor_find(un_context *ctx, un_arena *arena, un_monitor *m,
                          const un_monitor_def *def)
{
    int64_t count = node_count(m);
    monitor_args a = {.monitor = m, .def = def, .pace = un_scene_pace(&def->scene->def)};
    un_vec3 size = def->warp->size;
    a.length = size.z > 0 ? cbrt(size.x * size.y * size.z) : sqrt(size.x * size.y);
    a.nearest = un_arena_alloc(arena, (size_t)count, sizeof *a.nearest);
    a.square = un_arena_alloc(arena, (size_t)count, sizeof *a.square);
    a.deep = un_arena_alloc(arena, (size_t)count, sizeof *a.deep);
    a.strain = un_arena_alloc(arena, (size_t)count, sizeof *a.strain);
    if (!a.nearest || !a.square || !a.deep || !a.strain) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < count; n++) a.square[n] = 1e30f;
    if (def->scene->def.sizing.has_camera)
        UN_TRY(un_scene_camera(def->scene, def->time, &a.camera));
    if (def->scene->def.sizing.has_custom) UN_TRY(ask_custom(&a, arena, count));
    find_surface(&a);
    sweep(&a);
    un_parallel_for(ctx, (int64_t)column_groups(m) * m->n[2], 4, look, &a);
    un_parallel_for(ctx, count, 256, weigh, &a);
    return UN_OK;
}
