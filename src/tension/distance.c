/* Distances to the surface in a band around it.
 *
 * Every cell of the band keeps the nearest point of the surface that it knows of, its foot. Cells
 * next to the surface begin with the nearest crossing along an axis; the others take the best of
 * their neighbours' feet, layer by layer. Each then moves its foot until the line to it stands
 * upright on the surface, the zero set of the multilinear phi. A foot always lies on the surface,
 * so that a distance is never too short, and hardly too long: an error e in the foot's place makes
 * one of e^2 / 2d in the distance. */
#include "tension/lattice.h"

/* Steps towards the foot, and the residual, in cells, that needs no more. */
#define STEPS 4
#define CLOSE 0.02
/* Gradients below this belong to no surface. */
#define FLAT 0.1

/* ---- sampling ---- */

UN_KERNEL double sample_in(const un_tension_lattice *l, const double x[3], double g[3], int dim)
{
    double f[3] = {0};
    int64_t base = 0;
    for (int a = 0; a < dim; a++) {
        double s = un_clamp(x[a], 0, l->n[a] - 1.001);
        int32_t i = (int32_t)s;
        f[a] = s - i;
        base += i * l->stride[a];
    }
    const float *v = l->phi + base, *w = v + l->stride[2];
    int64_t sy = l->stride[1];
    double dx0 = v[1] - v[0], dx1 = v[sy + 1] - v[sy];
    double a = v[0] + dx0 * f[0], b = v[sy] + dx1 * f[0];
    double low = a + (b - a) * f[1];
    g[0] = dx0 + (dx1 - dx0) * f[1];
    g[1] = b - a;
    g[2] = 0;
    if (dim == 2) return low;
    double dx2 = w[1] - w[0], dx3 = w[sy + 1] - w[sy];
    double c = w[0] + dx2 * f[0], d = w[sy] + dx3 * f[0];
    double high = c + (d - c) * f[1];
    g[0] += (dx2 + (dx3 - dx2) * f[1] - g[0]) * f[2];
    g[1] += (d - c - g[1]) * f[2];
    g[2] = high - low;
    return low + (high - low) * f[2];
}

double un_lattice_sample(const un_tension_lattice *l, const double x[3], double gradient[3])
{
    return l->dim == 2 ? sample_in(l, x, gradient, 2) : sample_in(l, x, gradient, 3);
}

/* ---- the band ---- */

static bool is_liquid(const un_tension_lattice *l, int64_t c)
{
    return l->phi[c] < 0;
}

/* Cells with a crossing towards a neighbour. The outermost cells of the lattice stay out. */
static void mark_near(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = row * l->n[0], j = row % l->n[1], k = row / l->n[1];
        memset(l->near + first, 0, (size_t)l->n[0]);
        if (j == 0 || j == l->n[1] - 1 || (l->dim == 3 && (k == 0 || k == l->n[2] - 1))) continue;
        for (int64_t c = first + 1; c < first + l->n[0] - 1; c++) {
            bool liquid = is_liquid(l, c), crossed = false;
            for (int a = 0; a < l->dim; a++)
                crossed |= is_liquid(l, c - l->stride[a]) != liquid ||
                           is_liquid(l, c + l->stride[a]) != liquid;
            if (crossed) l->near[c] = UN_NEAR;
        }
    }
}

typedef struct widen_args {
    un_tension_lattice *l;
    int axis;
    const uint8_t *from;
    uint8_t *to;
    uint8_t *any; /* by row of `from`: has a mark */
} widen_args;

static void find_marked_rows(void *arg, int64_t begin, int64_t end)
{
    widen_args *w = arg;
    int32_t n = w->l->n[0];
    for (int64_t row = begin; row < end; row++) {
        const uint8_t *from = w->from + row * n;
        uint8_t any = 0;
        for (int32_t i = 0; i < n; i++) any |= from[i];
        w->any[row] = any;
    }
}

/* The largest mark within UN_BAND along an axis, of UN_NEAR as UN_BESIDE elsewhere. */
static void widen_rows(void *arg, int64_t begin, int64_t end)
{
    widen_args *w = arg;
    const un_tension_lattice *l = w->l;
    int32_t n = l->n[0];
    int64_t rows = w->axis == 0 ? 0 : l->stride[w->axis] / n,
            size = w->axis == 0 ? 1 : l->n[w->axis];
    for (int64_t row = begin; row < end; row++) {
        uint8_t *to = w->to + row * n;
        const uint8_t *from = w->from + row * n;
        memcpy(to, from, (size_t)n);
        if (w->axis == 0) {
            int32_t seen = -n;
            for (int32_t i = 0; w->any[row] && i < n; i++) {
                if (from[i]) seen = i;
                if (!to[i] && i - seen <= UN_BAND) to[i] = UN_BESIDE;
            }
            seen = 2 * n;
            for (int32_t i = n - 1; w->any[row] && i >= 0; i--) {
                if (from[i]) seen = i;
                if (!to[i] && seen - i <= UN_BAND) to[i] = UN_BESIDE;
            }
            continue;
        }
        int64_t at = row / rows % size;
        for (int64_t d = -UN_BAND; d <= UN_BAND; d++) {
            if (d == 0 || at + d < 0 || at + d >= size || !w->any[row + d * rows]) continue;
            const uint8_t *other = from + d * rows * n;
            for (int32_t i = 0; i < n; i++)
                if (!to[i]) to[i] = other[i] ? UN_BESIDE : 0;
        }
    }
}

/* Keeps the marks off the lattice's boundary, where cells lack neighbours; counts them by row. */
typedef struct count_args {
    un_tension_lattice *l;
    int64_t *first;
} count_args;

static void count_band(void *arg, int64_t begin, int64_t end)
{
    count_args *a = arg;
    un_tension_lattice *l = a->l;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = row * l->n[0], j = row % l->n[1], k = row / l->n[1], count = 0;
        uint8_t *near = l->near + first;
        if (j == 0 || j == l->n[1] - 1 || (l->dim == 3 && (k == 0 || k == l->n[2] - 1)))
            memset(near, 0, (size_t)l->n[0]);
        near[0] = near[l->n[0] - 1] = 0;
        for (int32_t i = 0; i < l->n[0]; i++) count += near[i] != 0;
        a->first[row] = count;
    }
}

static void number_band(void *arg, int64_t begin, int64_t end)
{
    count_args *a = arg;
    un_tension_lattice *l = a->l;
    for (int64_t row = begin; row < end; row++) {
        int32_t number = (int32_t)a->first[row];
        for (int64_t c = row * l->n[0]; c < (row + 1) * l->n[0]; c++) {
            l->number[c] = l->near[c] ? number : -1;
            if (l->near[c]) l->cell[number++] = (int32_t)c;
        }
    }
}

static un_status find_band(un_tension_lattice *l, un_arena *arena)
{
    int64_t rows = l->count / l->n[0], total = 0;
    uint8_t *other = un_arena_alloc(arena, (size_t)l->count, 1);
    uint8_t *any = un_arena_alloc(arena, (size_t)rows, 1);
    count_args a = {l, un_arena_alloc(arena, (size_t)rows, sizeof *a.first)};
    if (!other || !any || !a.first) return UN_ERROR_MEMORY;
    un_parallel_for(l->ctx, rows, 64, mark_near, l);
    for (int axis = 0; axis < l->dim; axis++) {
        widen_args w = {l, axis, l->near, other, any};
        un_parallel_for(l->ctx, rows, 64, find_marked_rows, &w);
        un_parallel_for(l->ctx, rows, 64, widen_rows, &w);
        uint8_t *near = l->near;
        l->near = other;
        other = near;
    }
    un_parallel_for(l->ctx, rows, 64, count_band, &a);
    for (int64_t row = 0; row < rows; row++) {
        int64_t count = a.first[row];
        a.first[row] = total;
        total += count;
    }
    size_t n = (size_t)total + 1;
    l->band_count = (int32_t)total;
    l->cell = un_arena_alloc(arena, n, sizeof *l->cell);
    l->foot = un_arena_alloc(arena, n, sizeof *l->foot);
    l->foot_next = un_arena_alloc(arena, n, sizeof *l->foot_next);
    l->pass = un_arena_alloc(arena, n, 1);
    for (int i = 0; i < 3; i++) l->d[i] = un_arena_alloc(arena, n, sizeof *l->d[i]);
    if (!l->cell || !l->foot || !l->foot_next || !l->pass || !l->d[0] || !l->d[1] || !l->d[2])
        return UN_ERROR_MEMORY;
    un_parallel_for(l->ctx, rows, 64, number_band, &a);
    return UN_OK;
}

/* ---- feet ---- */

static double square_to(const double x[3], const double y[3])
{
    double dx = x[0] - y[0], dy = x[1] - y[1], dz = x[2] - y[2];
    return dx * dx + dy * dy + dz * dz;
}

bool un_lattice_settle(const un_tension_lattice *l, double y[3], double normal[3])
{
    double g[3];
    for (int i = 0; i < 3; i++) {
        double v = un_lattice_sample(l, y, g), square = g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
        if (square < FLAT * FLAT) return false;
        double step = un_clamp(v / square, -1, 1), inverse = 1 / sqrt(square);
        for (int a = 0; a < 3; a++) {
            y[a] -= step * g[a];
            normal[a] = g[a] * inverse;
        }
        if (fabs(v) < 1e-4) return true;
    }
    return fabs(un_lattice_sample(l, y, g)) < CLOSE;
}

/* Moves the foot y of x along the surface; keeps the best that it finds. */
static void improve(const un_tension_lattice *l, const double x[3], double y[3])
{
    double z[3] = {y[0], y[1], y[2]}, normal[3], least = square_to(x, y);
    for (int step = 0; step < STEPS; step++) {
        if (!un_lattice_settle(l, z, normal)) return;
        double square = square_to(x, z), along = 0, slide = 0, t[3];
        if (square < least || step == 0) {
            memcpy(y, z, sizeof z);
            least = square;
        }
        for (int a = 0; a < 3; a++) along += (x[a] - z[a]) * normal[a];
        for (int a = 0; a < 3; a++) {
            t[a] = x[a] - z[a] - along * normal[a];
            slide += t[a] * t[a];
        }
        if (slide < CLOSE * CLOSE) return;
        double scale = fmin(1, 1 / sqrt(slide));
        for (int a = 0; a < 3; a++) z[a] += scale * t[a];
    }
}

static void keep_foot(float (*foot)[3], int64_t n, const double y[3])
{
    for (int a = 0; a < 3; a++) foot[n][a] = (float)y[a];
}

/* Cells next to the surface: the nearest crossing along an axis. */
static void start_feet(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    for (int64_t n = begin; n < end; n++) {
        int64_t c = l->cell[n];
        double x[3], least = INFINITY, y[3];
        un_lattice_place(l, c, x);
        memcpy(y, x, sizeof x);
        keep_foot(l->foot, n, y);
        l->pass[n] = UINT8_MAX;
        if (l->near[c] != UN_NEAR) continue;
        for (int side = 0; side < 2 * l->dim; side++) {
            int a = side / 2, sign = side % 2 ? 1 : -1;
            int64_t m = c + sign * l->stride[a];
            if (is_liquid(l, m) == is_liquid(l, c)) continue;
            double here = l->phi[c], there = l->phi[m], share = here / (here - there);
            if (!(share < least)) continue;
            least = share;
            memcpy(y, x, sizeof x);
            y[a] += sign * share;
        }
        improve(l, x, y);
        keep_foot(l->foot, n, y);
        l->pass[n] = 0;
    }
}

/* The best of the neighbours' feet that earlier passes found. */
static bool best_foot(const un_tension_lattice *l, int64_t c, const double x[3], double y[3])
{
    double least = INFINITY;
    for (int i = 0; i < (l->dim == 2 ? 9 : 27); i++) {
        int64_t m = c + i % 3 - 1 + (i / 3 % 3 - 1) * l->stride[1];
        if (l->dim == 3) m += (i / 9 - 1) * l->stride[2];
        int32_t q = l->number[m];
        if (q < 0 || __atomic_load_n(&l->pass[q], __ATOMIC_RELAXED) >= l->now) continue;
        double other[3] = {(double)l->foot[q][0], (double)l->foot[q][1], (double)l->foot[q][2]};
        double square = square_to(x, other);
        if (square >= least) continue;
        least = square;
        memcpy(y, other, sizeof other);
    }
    return least < INFINITY;
}

static double spread_feet(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    double found = 0;
    for (int64_t n = begin; n < end; n++) {
        double x[3], y[3];
        if (l->pass[n] != UINT8_MAX) continue;
        un_lattice_place(l, l->cell[n], x);
        if (!best_foot(l, l->cell[n], x, y)) continue;
        improve(l, x, y);
        keep_foot(l->foot, n, y);
        __atomic_store_n(&l->pass[n], l->now, __ATOMIC_RELAXED);
        found += 1;
    }
    return found;
}

/* Once more, now that all have feet. */
static void better_feet(void *arg, int64_t begin, int64_t end)
{
    un_tension_lattice *l = arg;
    for (int64_t n = begin; n < end; n++) {
        double x[3], y[3],
            own[3] = {(double)l->foot[n][0], (double)l->foot[n][1], (double)l->foot[n][2]};
        un_lattice_place(l, l->cell[n], x);
        if (!best_foot(l, l->cell[n], x, y)) memcpy(y, own, sizeof own);
        if (square_to(x, y) < square_to(x, own) - 1e-4)
            improve(l, x, y);
        else
            memcpy(y, own, sizeof own);
        keep_foot(l->foot_next, n, y);
        float distance = (float)sqrt(square_to(x, y));
        l->d[0][n] = is_liquid(l, l->cell[n]) ? -distance : distance;
    }
}

un_status un_lattice_distance(un_tension_lattice *l, un_arena *arena)
{
    UN_TRY(find_band(l, arena));
    un_parallel_for(l->ctx, l->band_count, 1024, start_feet, l);
    for (l->now = 1; l->now <= 2 * UN_BAND; l->now++)
        if (un_parallel_sum(l->ctx, l->band_count, spread_feet, l) == 0) break;
    un_parallel_for(l->ctx, l->band_count, 1024, better_feet, l);
    return UN_OK;
}
