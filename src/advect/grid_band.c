/* The narrow band on a grid that stands still [Ferstl, Ando, Wojtan, Westermann & Thuerey 2016]:
 * particles fill the liquid down to a few cells under its surface, and the faces carry the velocity
 * of deeper liquid,
 *
 *     u(x_f) <- u(y),   y: where the liquid at the middle x_f of a face was before the step,
 *
 * by the paths that particles take to the centres of cells, in the mean between these, and by
 * cubics between faces. Faces of deep cells and of those next to them are carried: all others have
 * particles on all sides.
 *
 * What is deep, and how particles come from deep cells and go to them, is as in warp_band.c. One
 * particle in each deep cell stands for its liquid, with the mean velocity of its faces. The
 * volume of all together is what the ledger expects. */
#include "advect/advect.h"
#include "base/lanes.h"

#define GRAIN 8
/* A cell is deep this much beyond the band. */
#define BEYOND 0.5
/* Of random numbers. */
#define STREAM 0xbad
/* Liquid does not come from farther outside the domain than this, in cells. */
#define OUTSIDE 1e-3
/* The volume of a particle that stands for a cell, in cells. */
#define LEAST 0.7
#define MOST 1.4

typedef struct carry_args {
    const un_band_step *in;
    const un_grid *grid;
    un_band *band;
    un_particles *particles;
    uint8_t *deep;  /* at cells: now; 2: next to such a cell */
    uint8_t *parts; /* at cells: those whose liquid was deep, a bit for each */
    double *way[3]; /* at cells of some depth: from the centre to where its liquid was */
    int32_t *first; /* by own step along the curve: the first of its row's new particles, from
                     * `base` on */
    un_part steps;  /* own ones */
    un_runs rows;
    int32_t base;
    uint8_t *goes; /* at old particles: 1 if it is the grid's now */
    un_vec3 fall_unit;
    float factor;
} carry_args;

/* Where eight points were; a bit for each that was outside. */
static uint32_t find_feet(un_eight *foot, const carry_args *a, const un_eight *x)
{
    const un_grid *g = a->grid;
    const double size[3] = {g->size.x, g->size.y, g->size.z};
    uint32_t outside = 0;
    un_advect_trace(foot, g, a->in->u, x, -a->in->dt);
    for (int d = 0; d < g->dim; d++)
        for (int n = 0; n < 8; n++) {
            double at = x->of[d][n] + foot->of[d][n], in = at > 0 ? at : 0;
            in = in < size[d] ? in : size[d];
            outside |= (uint32_t)(fabs(at - in) > OUTSIDE * g->h) << n;
            foot->of[d][n] = in;
        }
    if (g->dim == 2)
        for (int n = 0; n < 8; n++) foot->of[2][n] = 0;
    return outside;
}

/* ---- what is deep ---- */

UN_KERNEL double depth_in(const carry_args *a, un_vec3 x, bool *was_deep, int dim)
{
    const un_grid *g = a->grid;
    un_stencil t = un_grid_stencil_in(g, x, 0.5, dim);
    double depth = 0;
    *was_deep = false;
    for (int m = 0; m < 1 << dim; m++) {
        int64_t c = t.base + (m & 1) + (m >> 1 & 1) * g->stride[1] + (m >> 2) * g->stride[2];
        double w = 1;
        for (int d = 0; d < dim; d++) w *= m >> d & 1 ? t.f[d] : 1 - t.f[d];
        depth += w * a->band->depth[c];
        *was_deep |= a->band->deep[c] == 1;
    }
    return depth;
}

/* Has the liquid of a cell let go of a side of the domain? */
static bool leaves_side(const carry_args *a, const int32_t at[3], int64_t c)
{
    const un_grid *g = a->grid;
    double least = OUTSIDE * g->h / a->in->dt;
    for (int d = 0; d < g->dim; d++) {
        if (at[d] == 1 && a->in->u[d][c] > least) return true;
        if (at[d] == g->n[d] - 2 && a->in->u[d][c + g->stride[d]] < -least) return true;
    }
    return false;
}

/* The points of the parts of a cell that are looked at in this step: evenly spread over each part
 * from step to step, by an offset of its own. */
static void find_points(un_eight *x, const carry_args *a, const int32_t at[3])
{
    static const double turn[2][3] = {{0.7548776662466927, 0.5698402909980532, 0},
                                      {0.8191725133961645, 0.6710436067037893, 0.5497004779019703}};
    const un_grid *g = a->grid;
    un_vec3 corner = un_grid_node_position(g, at[0], at[1], at[2]);
    const double low[3] = {corner.x, corner.y, corner.z};
    uint64_t cell = (uint64_t)un_grid_cell(g, at[0], at[1], at[2]);
    for (int n = 0; n < 8; n++) {
        int m = n & ((1 << g->dim) - 1);
        for (int d = 0; d < 3; d++) {
            if (d >= g->dim) {
                x->of[d][n] = 0;
                continue;
            }
            double s = un_random(cell * 8 + (uint64_t)m, STREAM + (uint64_t)d) +
                       (double)a->in->step * turn[g->dim - 2][d];
            x->of[d][n] = low[d] + 0.5 * ((m >> d & 1) + s - floor(s)) * g->h;
        }
    }
}

/* Parts of a cell whose liquid comes from deep cells. */
static uint32_t find_parts(const carry_args *a, const int32_t at[3])
{
    const un_grid *g = a->grid;
    un_eight x, foot;
    find_points(&x, a, at);
    uint32_t outside = find_feet(&foot, a, &x), parts = 0;
    for (int m = 0; m < 1 << g->dim; m++)
        if (!(outside >> m & 1) && a->band->deep[un_grid_cell_at(g, un_eight_of(&foot, m))] == 1)
            parts |= 1u << m;
    return parts;
}

/* Eight cells along a row. */
UN_KERNEL int32_t plan_eight_in(carry_args *a, int32_t at[3], int64_t c, int32_t count, int dim)
{
    const un_grid *g = a->grid;
    un_eight x, foot;
    int32_t total = 0;
    un_vec3 centre = un_grid_center(g, at[0], at[1], at[2]);
    bool any = false;
    for (int n = 0; n < count; n++) any |= a->band->depth[c + n] > 0;
    if (!any) return 0;
    for (int n = 0; n < 8; n++) {
        x.of[0][n] = centre.x + (n < count ? n : 0) * g->h;
        x.of[1][n] = centre.y;
        x.of[2][n] = dim == 2 ? 0 : centre.z;
    }
    uint32_t outside = find_feet(&foot, a, &x);
    for (int d = 0; d < dim; d++)
        for (int n = 0; n < count; n++) a->way[d][c + n] = foot.of[d][n] - x.of[d][n];
    for (int n = 0; n < count; n++, at[0]++) {
        bool was_deep;
        if (a->band->depth[c + n] == 0) continue;
        double depth = depth_in(a, un_eight_of(&foot, n), &was_deep, dim);
        bool deep =
            !(outside >> n & 1) && depth > a->band->width + BEYOND && !leaves_side(a, at, c + n);
        a->deep[c + n] = deep;
        if (!deep && was_deep) a->parts[c + n] = (uint8_t)find_parts(a, at);
        total += deep ? 1 : __builtin_popcount(a->parts[c + n]);
    }
    return total;
}

static void plan_rows(void *arg, int64_t begin, int64_t end)
{
    carry_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {1, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])},
                inner = g->n[0] - 1;
        int64_t c = un_grid_cell(g, 0, at[1], at[2]);
        bool outside = at[1] == 0 || at[1] == g->n[1] - 1;
        if (g->dim == 3) outside |= at[2] == 0 || at[2] == g->n[2] - 1;
        memset(a->deep + c, 0, (size_t)g->n[0]);
        memset(a->parts + c, 0, (size_t)g->n[0]);
        for (int32_t i = 0; i < g->n[0]; i++) a->way[0][c + i] = NAN; /* not known */
        int32_t *count_of =
            &a->first[un_curve_step(&a->band->curve, at[1], at[2]) - a->steps.begin];
        *count_of = 0;
        for (int32_t i = 1; i < inner && !outside; i += 8) {
            int32_t count = (int32_t)un_min64(inner - i, 8);
            at[0] = i;
            UN_BY_DIM(g->dim, *count_of += plan_eight_in(a, at, c + i, count, dim));
        }
    }
}

/* Marks cells next to deep ones. */
static void widen_rows(void *arg, int64_t begin, int64_t end)
{
    carry_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
        uint8_t *to = a->band->deep + un_grid_cell(g, 0, j, k);
        memset(to, 0, (size_t)g->n[0]);
        for (int32_t z = k - (g->dim == 3); z <= k + (g->dim == 3); z++)
            for (int32_t y = j - 1; y <= j + 1; y++) {
                if (z < 0 || y < 0 || y >= g->n[1] || z >= g->n[2]) continue;
                const uint8_t *from = a->deep + un_grid_cell(g, 0, y, z);
                for (int32_t i = 1; i < g->n[0] - 1; i++)
                    to[i] |= (uint8_t)((from[i - 1] | from[i] | from[i + 1]) << 1);
            }
        const uint8_t *deep = a->deep + un_grid_cell(g, 0, j, k);
        for (int32_t i = 0; i < g->n[0]; i++)
            if (deep[i]) to[i] = 1;
    }
}

/* ---- velocities at faces ---- */

/* Weights of a cubic through four values, from the one below; a line where one is missing. */
static void cubic_weights(double f, bool whole, double w[4])
{
    w[0] = w[3] = 0;
    w[1] = 1 - f;
    w[2] = f;
    if (!whole) return;
    w[0] = f * (-0.5 + f * (1 - 0.5 * f));
    w[1] = 1 + f * f * (-2.5 + 1.5 * f);
    w[2] = f * (0.5 + f * (2 - 1.5 * f));
    w[3] = f * f * (-0.5 + 0.5 * f);
}

/* Four by four by four values around the one at v, or four by four: rows at once. */
UN_KERNEL double whole_cubic(const un_grid *g, const double *v, double w[3][4], int dim)
{
    un_doubles4 sum = {0};
    for (int z = 0; z < (dim == 2 ? 1 : 4); z++)
        for (int y = 0; y < 4; y++) {
            const double *row = v + (y - 1) * g->stride[1] - 1;
            if (dim == 3) row += (z - 1) * g->stride[2];
            sum += un_doubles4_load(row) * (dim == 2 ? w[1][y] : w[1][y] * w[2][z]);
        }
    sum *= un_doubles4_load(w[0]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The same where some of them lie outside the domain and have no weight. */
UN_KERNEL double part_cubic(const un_grid *g, const double *v, double w[3][4], int dim)
{
    double sum = 0;
    for (int n = 0; n < (dim == 2 ? 16 : 64); n++) {
        int x = n & 3, y = n >> 2 & 3, z = n >> 4;
        double weight = w[0][x] * w[1][y] * (dim == 2 ? 1 : w[2][z]);
        if (weight == 0) continue;
        int64_t at = x - 1 + (y - 1) * g->stride[1];
        sum += weight * v[dim == 2 ? at : at + (z - 1) * g->stride[2]];
    }
    return sum;
}

/* The velocity along an axis at x, by cubics where all faces lie in the domain. */
UN_KERNEL double cubic_at(const un_grid *g, const double *u, un_vec3 x, int axis, int dim)
{
    const double s[3] = {(x.x - g->origin.x) * g->inverse_h, (x.y - g->origin.y) * g->inverse_h,
                         (x.z - g->origin.z) * g->inverse_h};
    double w[3][4];
    bool all = true;
    for (int d = 0; d < dim; d++) {
        double t = s[d] - (d == axis ? 0 : 0.5);
        int32_t i = un_clampi((int32_t)t, 0, g->n[d] - 2);
        bool whole = i >= 2 && i + 2 < g->n[d] - (d != axis);
        cubic_weights(un_clamp(t - i, 0, 1), whole, w[d]);
        u += i * g->stride[d];
        all &= whole;
    }
    return all ? whole_cubic(g, u, w, dim) : part_cubic(g, u, w, dim);
}

/* The lower face of cell c = (i, j, k) across an axis. */
UN_KERNEL double carry_face_in(const carry_args *a, const int32_t at[3], int64_t c, int axis,
                               int dim)
{
    const un_grid *g = a->grid;
    un_vec3 x = un_grid_face_center(g, axis, at[0], at[1], at[2]);
    int64_t low = c - g->stride[axis];
    if (isnan(a->way[0][low])) low = c;
    if (isnan(a->way[0][c])) c = low;
    if (isnan(a->way[0][c])) return a->in->u[axis][un_grid_cell(g, at[0], at[1], at[2])];
    x.x += 0.5 * (a->way[0][low] + a->way[0][c]);
    x.y += 0.5 * (a->way[1][low] + a->way[1][c]);
    if (dim == 3) x.z += 0.5 * (a->way[2][low] + a->way[2][c]);
    return cubic_at(g, a->in->u[axis], x, axis, dim);
}

static void carry_rows(void *arg, int64_t begin, int64_t end)
{
    const carry_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {1, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])},
                inner = g->n[0] - 1;
        if (at[1] == 0 || at[1] == g->n[1] - 1) continue;
        if (g->dim == 3 && (at[2] == 0 || at[2] == g->n[2] - 1)) continue;
        for (int axis = 0; axis < g->dim; axis++) {
            int32_t first = axis == 0 ? 2 : 1; /* not the sides of the domain */
            if (axis > 0 && at[axis] == 1) continue;
            int64_t c = un_grid_cell(g, first, at[1], at[2]), below = c - g->stride[axis];
            for (at[0] = first; at[0] < inner; at[0]++, c++, below++) {
                if (!a->band->deep[c] && !a->band->deep[below]) continue;
                UN_BY_DIM(g->dim, a->band->u[axis][c] = carry_face_in(a, at, c, axis, dim));
            }
        }
    }
}

typedef struct to_faces_args {
    const un_band *band;
    double *const *u, *const *weight;
    const un_grid *grid;
} to_faces_args;

static void put_rows(void *arg, int64_t begin, int64_t end)
{
    const to_faces_args *a = arg;
    const un_grid *g = a->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        if (at[1] == 0 || at[1] == g->n[1] - 1) continue;
        if (g->dim == 3 && (at[2] == 0 || at[2] == g->n[2] - 1)) continue;
        int64_t c = un_grid_cell(g, 0, at[1], at[2]);
        for (int axis = 0; axis < g->dim; axis++) {
            const uint8_t *deep = a->band->deep + c, *below = deep - g->stride[axis];
            if (axis > 0 && at[axis] == 1) continue;
            for (int32_t i = axis == 0 ? 2 : 1; i < g->n[0] - 1; i++) {
                if (!deep[i] && !below[i]) continue;
                a->u[axis][c + i] = a->band->u[axis][c + i];
                a->weight[axis][c + i] = 1;
            }
        }
    }
}

void un_band_to_faces(un_context *ctx, const un_band *band, double *const u[3],
                      double *const weight[3], const un_grid *grid)
{
    to_faces_args a = {band, u, weight, grid};
    if (band->width > 0) un_parallel_runs(ctx, un_grid_own_rows(grid, 0), 32, put_rows, &a);
}

/* ---- particles ---- */

/* A new particle; v: its velocity in the middle of the step, change: by forces. */
static void add(const carry_args *a, int32_t q, un_vec3 x, un_vec3 v, un_vec3 change, double volume,
                uint8_t flags)
{
    un_particles *p = a->particles;
    uint8_t fall = un_particle_fall(change, a->fall_unit);
    un_particle_set_position(p, q, x);
    un_particle_set_velocity(p, q, un_mad(v, p->lead, fall * (1.0 / UN_FALL_FREE)));
    p->volume[q] = (float)volume;
    p->flags[q] = flags;
    p->fall[q] = fall;
}

/* The one that stands for a deep cell: the means of its faces. */
static void add_deep(const carry_args *a, int32_t q, const int32_t at[3], int64_t c)
{
    const un_grid *g = a->grid;
    un_vec3 x = un_grid_center(g, at[0], at[1], at[2]);
    double v[3] = {0}, change[3] = {0};
    for (int d = 0; d < g->dim; d++) {
        int64_t high = c + g->stride[d];
        const double *u = a->in->u[d], *old = a->in->u_old[d], *now = a->band->u[d];
        double low_u = at[d] == 1 ? 0 : now[c], high_u = at[d] == g->n[d] - 2 ? 0 : now[high];
        v[d] = 0.5 * (low_u + high_u);
        change[d] = 0.5 * (u[c] - old[c] + u[high] - old[high]);
    }
    if (g->dim == 2) x.z = 0;
    add(a, q, x, un_v3(v[0], v[1], v[2]), un_v3(change[0], change[1], change[2]), g->volume,
        UN_PARTICLE_DEEP);
}

static void place_rows(void *arg, int64_t begin, int64_t end)
{
    const carry_args *a = arg;
    const un_grid *g = a->grid;
    un_eight x, foot, now, before;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {1, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        const int32_t *first =
            &a->first[un_curve_step(&a->band->curve, at[1], at[2]) - a->steps.begin];
        int32_t q = a->base + first[0];
        if (first[0] == first[1]) continue;
        for (; at[0] < g->n[0] - 1; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            if (a->deep[c]) {
                add_deep(a, q++, at, c);
                continue;
            }
            if (!a->parts[c]) continue;
            find_points(&x, a, at);
            (void)find_feet(&foot, a, &x);
            un_faces_sample_eight(&now, g, a->in->u, &foot);
            un_faces_sample_eight(&before, g, a->in->u_old, &foot);
            for (int m = 0; m < 1 << g->dim; m++) {
                if (!(a->parts[c] >> m & 1)) continue;
                un_vec3 v = un_eight_of(&now, m);
                add(a, q++, un_eight_of(&x, m), v, un_sub(v, un_eight_of(&before, m)),
                    g->volume / (1 << g->dim), 0);
            }
        }
    }
}

static void scale_deep(void *arg, int64_t begin, int64_t end)
{
    const carry_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++)
        if (p->flags[q] & UN_PARTICLE_DEEP) p->volume[q] *= a->factor;
}

/* A volume as a whole number of small parts of a cell: their sum is the same in any order, and so
 * on any number of ranks. */
#define PARTS 0x1p24
static double whole_volume(const carry_args *a, int64_t q)
{
    return rint(a->particles->volume[q] / a->grid->volume * PARTS);
}

/* Marks those of the old particles that are the grid's now; the volume of the others. */
static double mark_gone(void *arg, int64_t begin, int64_t end)
{
    const carry_args *a = arg;
    const un_particles *p = a->particles;
    double stays = 0;
    for (int64_t q = begin; q < end; q++) {
        int64_t c = un_grid_cell_at(a->grid, un_particle_position(p, q));
        a->goes[q] = (p->flags[q] & UN_PARTICLE_DEEP) || a->deep[c];
        if (!a->goes[q]) stays += whole_volume(a, q);
    }
    return stays;
}

static double sum_volume(void *arg, int64_t begin, int64_t end, bool deep)
{
    const carry_args *a = arg;
    const un_particles *p = a->particles;
    double sum = 0;
    for (int64_t q = a->base + begin; q < a->base + end; q++)
        if (((p->flags[q] & UN_PARTICLE_DEEP) != 0) == deep) sum += whole_volume(a, q);
    return sum;
}
static double sum_deep(void *arg, int64_t begin, int64_t end)
{
    return sum_volume(arg, begin, end, true);
}
static double sum_new(void *arg, int64_t begin, int64_t end)
{
    return sum_volume(arg, begin, end, false);
}

static void list_gone(int32_t *list, const carry_args *a, un_bins_gone *gone)
{
    *gone = (un_bins_gone){.list = list};
    for (int32_t q = 0; q < a->base; q++)
        if (a->goes[q]) list[gone->count++] = q;
}

static un_status allocate(carry_args *a, un_arena *arena)
{
    size_t cells = (size_t)a->grid->cell_count, count = (size_t)a->particles->count + 1;
    a->deep = un_arena_alloc(arena, cells, 1);
    a->parts = un_arena_alloc(arena, cells, 1);
    a->first = un_arena_alloc(arena, (size_t)(a->steps.end - a->steps.begin) + 1, sizeof *a->first);
    a->goes = un_arena_alloc(arena, count, 1);
    for (int d = 0; d < a->grid->dim; d++) {
        a->way[d] = un_arena_alloc(arena, cells, sizeof *a->way[d]);
        if (!a->way[d]) return UN_ERROR_MEMORY;
    }
    return a->deep && a->parts && a->first && a->goes ? UN_OK : UN_ERROR_MEMORY;
}

/* Velocities of deep cells' faces; what neighbours on other ranks have found goes to and fro. */
static un_status carry(un_context *ctx, carry_args *a)
{
    const un_grid *g = a->grid;
    un_band *band = a->band;
    un_layered ways[3], faces[3];
    for (int d = 0; d < g->dim; d++) {
        ways[d] = (un_layered){a->way[d], sizeof *a->way[d]};
        faces[d] = (un_layered){band->u[d], sizeof *band->u[d]};
    }
    UN_TRY(un_grid_share(g, &(un_layered){a->deep, 1}, 1, a->in->reach));
    UN_TRY(un_grid_share(g, ways, g->dim, 1));
    un_parallel_runs(ctx, a->rows, GRAIN, widen_rows, a);
    UN_TRY(un_grid_share(g, &(un_layered){band->deep, 1}, 1, 2));
    un_parallel_runs(ctx, a->rows, GRAIN, carry_rows, a);
    return un_grid_share(g, faces, g->dim, 1);
}

/* The volume of all together becomes what the ledger expects. stays: of old particles. */
static void keep_volume(un_context *ctx, carry_args *a, int64_t total, double stays)
{
    double sums[2] = {un_parallel_sum(ctx, total, sum_deep, a),
                      stays + un_parallel_sum(ctx, total, sum_new, a)};
    un_ranks_add(ctx, sums, 2);
    double unit = a->grid->volume / PARTS, deep = sums[0] * unit;
    if (!(deep > 0)) return;
    a->factor = (float)un_clamp((a->in->volume - sums[1] * unit) / deep, LEAST, MOST);
    un_parallel_for(ctx, a->particles->count, 4096, scale_deep, a);
}

un_status un_band_carry_faces(un_context *ctx, un_arena *arena, un_band *band, un_particles *p,
                              un_bins_gone *gone, const un_band_step *in)
{
    const un_grid *g = in->walls->grid;
    int64_t total = 0;
    carry_args a = {.in = in,
                    .grid = g,
                    .band = band,
                    .particles = p,
                    .base = p->count,
                    .rows = un_grid_own_rows(g, 0),
                    .steps = un_grid_own_steps(g, &band->curve),
                    .fall_unit = un_particle_fall_unit(in->gravity, in->kick)};
    int64_t steps = a.steps.end - a.steps.begin;
    UN_TRY(allocate(&a, arena));
    int32_t *list = un_arena_alloc(arena, (size_t)p->count + 1, sizeof *list);
    if (!list) return UN_ERROR_MEMORY;
    un_layered was[2] = {{band->deep, 1}, {band->depth, 1}};
    UN_TRY(un_grid_share(g, was, 2, in->reach));
    memset(a.first, 0, (size_t)(steps + 1) * sizeof *a.first);
    un_parallel_runs(ctx, a.rows, GRAIN, plan_rows, &a);
    for (int64_t step = 0; step <= steps; step++) {
        int32_t count = a.first[step];
        a.first[step] = (int32_t)total;
        total += count;
    }
    UN_TRY(un_particles_reserve(ctx, p, p->count + total));
    UN_TRY(carry(ctx, &a));
    double stays = un_parallel_sum(ctx, a.base, mark_gone, &a);
    list_gone(list, &a, gone);
    un_parallel_runs(ctx, a.rows, GRAIN, place_rows, &a);
    p->count += (int32_t)total;
    keep_volume(ctx, &a, total, stays);
    return UN_OK;
}
