/* Both sides of thin walls on the grid.
 *
 * Below some two cells of thickness, cells and nodes in and around a wall are seen from both of its
 * sides. Three things keep the sides apart:
 *
 *  - A cell belongs to one side. Its open corners are joined along its edges where these do not
 *    meet a solid; the part with the largest distances to walls is kept, and the rest of the cell
 *    is closed, in its volume and in its faces.
 *  - The distance has a ridge inside a wall, where the far side comes nearer. Open fractions of
 *    cells and faces take the corners in or behind the wall as deep as the kept corners see them
 *    (un_thin_depth).
 *  - A cell sees those of the 27 cells around it that it reaches through open faces. Particles give
 *    their volume to cells that the cell they are in sees. Particles in the closed rest of a split
 *    cell belong to the cells beyond. */
#include "mesh/mesh.h"

#include "mesh/thin.h"

#define ALL ((1u << 27) - 1)
/* Openings below this share lead nowhere. */
#define AREA_MIN 1e-3f
/* Particles deeper than this, in cells, as the kept side of a split cell sees it, are beyond the
 * wall. */
#define BEYOND 0.3

typedef struct thin_args {
    un_walls *walls;
    uint8_t *thin; /* at nodes: open, next to a thin wall */
    uint8_t *kept; /* at cells: open corners that are kept, by bit */
    uint8_t *part; /* at cells: 1 a thin wall is near, 2 and it has a closed rest */
} thin_args;

static inline int64_t corner_node(const un_grid *g, int32_t i, int32_t j, int32_t k, int m)
{
    return un_grid_node(g, i + (m & 1), j + (m >> 1 & 1), k + (m >> 2));
}

/* Where a node is in space. */
static inline un_vec3 node_at(const un_walls *w, int32_t i, int32_t j, int32_t k)
{
    return w->warp ? un_warp_node(w->warp, i, j, k) : un_grid_node_position(w->grid, i, j, k);
}

static inline un_vec3 corner_at(const un_walls *w, int32_t i, int32_t j, int32_t k, int m)
{
    return node_at(w, i + (m & 1), j + (m >> 1 & 1), k + (m >> 2));
}

/* ---- where ---- */

static double find_thin(void *arg, int64_t begin, int64_t end)
{
    thin_args *a = arg;
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    double count = 0;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i <= g->n[0]; i++) {
            int32_t k = (int32_t)(row / (g->n[1] + 1)), j = (int32_t)(row % (g->n[1] + 1));
            int64_t n = un_grid_node(g, i, j, k);
            un_vec3 x = node_at(w, i, j, k);
            double d = w->phi[n], h = w->warp ? un_warp_edge(w->warp, i, j, k) : g->h;
            a->thin[n] = 0;
            if (!(d > UN_SNAP * g->h) || d > UN_THIN * h || un_walls_sides(w, x) <= d) continue;
            a->thin[n] = un_thin_thickness(w->bodies, false, x, d, g->h, UN_THIN * h) < UN_THIN * h;
            count += a->thin[n];
        }
    return count;
}

/* ---- sides of cells ---- */

static bool is_open(const thin_args *a, int64_t n)
{
    return (double)a->walls->phi[n] > UN_SNAP * a->walls->grid->h;
}

static bool sees(const thin_args *a, int64_t n, int64_t m, un_vec3 x, un_vec3 y)
{
    const un_walls *w = a->walls;
    double h = w->warp ? un_length(un_sub(y, x)) : w->grid->h, d = w->phi[n];
    if ((!a->thin[n] && !a->thin[m]) || d + (double)w->phi[m] >= h) return true;
    return un_thin_sees(w->bodies, x, y, d);
}

/* The open corners that belong together with corner m. */
static uint32_t corners_with(const thin_args *a, int32_t i, int32_t j, int32_t k, int m)
{
    const un_grid *g = a->walls->grid;
    uint32_t found = 1u << m, done = 0;
    while (found != done) {
        int c = __builtin_ctz(found & ~done);
        done |= 1u << c;
        for (int axis = 0; axis < g->dim; axis++) {
            int other = c ^ 1 << axis;
            int64_t n = corner_node(g, i, j, k, c), near = corner_node(g, i, j, k, other);
            if (found >> other & 1 || !is_open(a, near)) continue;
            if (sees(a, n, near, corner_at(a->walls, i, j, k, c),
                     corner_at(a->walls, i, j, k, other)))
                found |= 1u << other;
        }
    }
    return found;
}

static void find_kept(void *arg, int64_t begin, int64_t end)
{
    thin_args *a = arg;
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
            int64_t c = un_grid_cell(g, i, j, k);
            uint32_t open = 0, best = 0;
            bool near = false;
            for (int m = 0; m < 1 << g->dim; m++) {
                int64_t n = corner_node(g, i, j, k, m);
                open |= (uint32_t)is_open(a, n) << m;
                near |= a->thin[n];
            }
            a->kept[c] = (uint8_t)open;
            a->part[c] = near;
            if (!near) continue;
            double most = -1;
            for (uint32_t left = open; left;) {
                uint32_t part = corners_with(a, i, j, k, __builtin_ctz(left));
                double sum = 0;
                for (uint32_t set = part; set; set &= set - 1)
                    sum += w->phi[corner_node(g, i, j, k, __builtin_ctz(set))];
                if (sum > most) best = part;
                most = fmax(most, sum);
                left &= ~part;
            }
            a->kept[c] = (uint8_t)best;
            if (best != open) a->part[c] = 2;
        }
}

/* ---- fractions ---- */

/* Distances at the corners of cell (i, j, k) that `set` names, as those in `kept` see them. */
static void see_corners(const thin_args *a, int32_t i, int32_t j, int32_t k, uint32_t set,
                        uint32_t kept, double v[8])
{
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (; set; set &= set - 1) {
        int m = __builtin_ctz(set), nearest = -1;
        int64_t n = corner_node(g, i, j, k, m);
        v[m] = w->phi[n];
        if (kept >> m & 1) continue;
        for (uint32_t from = kept; from; from &= from - 1) {
            int p = __builtin_ctz(from);
            if (nearest < 0 ||
                __builtin_popcount((unsigned)(p ^ m)) < __builtin_popcount((unsigned)(nearest ^ m)))
                nearest = p;
        }
        if (nearest < 0) {
            v[m] = fmin(v[m], 0);
            continue;
        }
        double depth =
            un_thin_depth(w->bodies, corner_at(w, i, j, k, nearest), corner_at(w, i, j, k, m),
                          w->phi[corner_node(g, i, j, k, nearest)], g->h);
        if (is_open(a, n) || depth < v[m] - UN_DEEPER * g->h) v[m] = depth;
    }
}

static void find_fractions(void *arg, int64_t begin, int64_t end)
{
    static const int face[3][4] = {{0, 2, 6, 4}, {0, 4, 5, 1}, {0, 1, 3, 2}};
    thin_args *a = arg;
    un_walls *w = a->walls;
    const un_grid *g = w->grid;
    int corners = 1 << g->dim, sides = corners / 2;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
            int64_t c = un_grid_cell(g, i, j, k);
            double v[8];
            if (a->part[c]) {
                see_corners(a, i, j, k, (1u << corners) - 1, a->kept[c], v);
                w->volume[c] = (float)un_walls_cell_fraction(v, g->dim);
            }
            for (int axis = 0; axis < g->dim; axis++) {
                bool first = (axis == 0 ? i : axis == 1 ? j : k) == 0;
                int64_t below = first ? c : c - g->stride[axis];
                if (!a->part[c] && !a->part[below]) continue;
                uint32_t set = 0, kept = 0;
                for (int s = 0; s < sides; s++) {
                    /* the lower corners along the axis, and the same nodes as upper ones of the
                     * cell below */
                    int m = face[axis][g->dim == 2 && s == 1 ? (axis == 0 ? 1 : 3) : s];
                    set |= 1u << m;
                    bool both =
                        a->kept[c] >> m & 1 && (first || a->kept[below] >> (m | 1 << axis) & 1);
                    kept |= (uint32_t)both << m;
                }
                see_corners(a, i, j, k, set, kept, v);
                double f[4] = {0};
                for (int s = 0; s < sides; s++)
                    f[s] = v[face[axis][g->dim == 2 && s == 1 ? (axis == 0 ? 1 : 3) : s]];
                w->area[axis][c] = kept ? (float)un_walls_face_fraction(f, g->dim) : 0;
                if (w->velocity[axis]) un_walls_find_velocity(w, i, j, k, axis);
            }
        }
}

/* ---- who sees whom ---- */

static inline int64_t cell_of(const un_grid *g, int64_t c, int n)
{
    return c + n % 3 - 1 + (n / 3 % 3 - 1) * g->stride[1] + (n / 9 - 1) * g->stride[2];
}

/* The cells of the block around c that are reached from those in `from` through open faces. */
static uint32_t reach(const un_walls *w, int64_t c, uint32_t from)
{
    static const int step[3] = {1, 3, 9};
    const un_grid *g = w->grid;
    uint32_t found = from, done = 0;
    while (found != done) {
        int n = __builtin_ctz(found & ~done);
        done |= 1u << n;
        for (int axis = 0; axis < g->dim; axis++) {
            int at = n / step[axis] % 3;
            int64_t m = cell_of(g, c, n);
            if (at > 0 && w->area[axis][m] >= AREA_MIN) found |= 1u << (n - step[axis]);
            if (at < 2 && w->area[axis][m + g->stride[axis]] >= AREA_MIN)
                found |= 1u << (n + step[axis]);
        }
    }
    return found;
}

static bool is_inside(const un_grid *g, int32_t i, int32_t j, int32_t k)
{
    return i > 0 && j > 0 && i < g->n[0] - 1 && j < g->n[1] - 1 &&
           (g->dim == 2 || (k > 0 && k < g->n[2] - 1));
}

static void find_sight(void *arg, int64_t begin, int64_t end)
{
    thin_args *a = arg;
    un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
            int64_t c = un_grid_cell(g, i, j, k);
            bool near = false;
            w->sees[c] = ALL;
            if (!is_inside(g, i, j, k)) continue;
            for (int n = g->dim == 2 ? 9 : 0; n < (g->dim == 2 ? 18 : 27) && !near; n++)
                near = a->part[cell_of(g, c, n)];
            if (near) w->sees[c] = reach(w, c, 1u << 13);
        }
}

/* Sight is mutual. Closed cells see nobody and are seen by all: they hold no volume. */
static void make_mutual(void *arg, int64_t begin, int64_t end)
{
    thin_args *a = arg;
    un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t c = begin; c < end; c++) {
        uint32_t mask = w->sees[c], out = mask;
        a->walls->sight[c] = mask;
        if (mask == ALL) continue;
        for (int n = g->dim == 2 ? 9 : 0; n < (g->dim == 2 ? 18 : 27); n++) {
            int64_t m = cell_of(g, c, n);
            if (!(w->sees[m] >> (26 - n) & 1)) out &= ~(1u << n);
        }
        a->walls->sight[c] = out | 1u << 13;
    }
}

/* ---- split cells ---- */

static int64_t count_splits(const thin_args *a)
{
    int64_t count = 0;
    for (int64_t c = 0; c < a->walls->grid->cell_count; c++) {
        a->walls->split[c] = a->part[c] == 2 ? (int32_t)count++ : -1;
    }
    return count;
}

/* The cells around c that are beyond its wall: those that keep a corner which c does not. */
static uint32_t cells_beyond(const thin_args *a, int64_t c, int32_t i, int32_t j, int32_t k)
{
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    uint32_t seeds = 0;
    for (int n = g->dim == 2 ? 9 : 0; n < (g->dim == 2 ? 18 : 27); n++) {
        int64_t other = cell_of(g, c, n);
        if (n == 13) continue;
        for (int m = 0; m < 1 << g->dim; m++) {
            int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = n / 9 - 1;
            int x = (m & 1) - dx, y = (m >> 1 & 1) - dy, z = (m >> 2) - dz;
            if (x < 0 || x > 1 || y < 0 || y > 1 || z < 0 || z > 1) continue;
            if (a->kept[c] >> m & 1 || !is_open(a, corner_node(g, i, j, k, m))) continue;
            if (a->kept[other] >> (x + 2 * y + 4 * z) & 1) seeds |= 1u << n;
        }
    }
    return seeds ? reach(w, c, seeds) & ~(1u << 13) : 0;
}

static void write_splits(void *arg, int64_t begin, int64_t end)
{
    thin_args *a = arg;
    un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
            int64_t c = un_grid_cell(g, i, j, k);
            if (w->split[c] < 0) continue;
            un_split_cell *s = &w->splits[w->split[c]];
            double v[8] = {0};
            see_corners(a, i, j, k, (1u << (1 << g->dim)) - 1, a->kept[c], v);
            for (int m = 0; m < 8; m++) s->phi[m] = (float)v[m];
            s->beyond = is_inside(g, i, j, k) ? cells_beyond(a, c, i, j, k) : 0;
        }
}

uint32_t un_walls_sight_split(const un_walls *w, int64_t c, un_vec3 x)
{
    const un_grid *g = w->grid;
    const un_split_cell *s = &w->splits[w->split[c]];
    un_stencil t = un_grid_stencil_in(g, x, 0, g->dim);
    double fx = t.f[0], fy = t.f[1], fz = t.f[2], depth = 0;
    for (int m = 0; m < 1 << g->dim; m++)
        depth += s->phi[m] * (m & 1 ? fx : 1 - fx) * (m >> 1 & 1 ? fy : 1 - fy) *
                 (g->dim == 2 ? 1
                  : m >> 2    ? fz
                              : 1 - fz);
    return depth < -BEYOND * g->h && s->beyond ? s->beyond : w->sight[c];
}

/* The field at the cells whose centres surround x, by corner. Those beyond the wall take the mean
 * of the nearest on x's side: nothing changes across a wall. */
static void load_side(const un_walls *w, const float *field, un_vec3 x, const un_stencil *at,
                      double v[8])
{
    const un_grid *g = w->grid;
    int corners = 1 << g->dim;
    un_stencil in = un_grid_stencil_in(g, x, 0, g->dim);
    uint32_t sight = w->parted ? un_walls_sight(w, in.base, x) : UN_SIGHT_ALL, seen = 0;
    for (int m = 0; m < corners; m++) {
        int n = 13, step = 1;
        for (int a = 0; a < g->dim; a++, step *= 3) n += ((m >> a & 1) - (in.f[a] < 0.5)) * step;
        v[m] = field[un_warp_corner(g, at->base, m, g->dim)];
        seen |= (sight >> n & 1) << m;
    }
    for (int m = 0; m < corners && seen; m++) {
        double sum = 0;
        int count = 0;
        for (int steps = 1; !(seen >> m & 1) && count == 0; steps++)
            for (int l = 0; l < corners; l++) {
                if (!(seen >> l & 1) || __builtin_popcount((unsigned)(l ^ m)) != steps) continue;
                sum += v[l];
                count++;
            }
        if (count > 0) v[m] = sum / count;
    }
}

double un_walls_sample_side(const un_walls *w, const float *field, un_vec3 x)
{
    un_stencil at = un_grid_stencil_in(w->grid, x, 0.5, w->grid->dim);
    double v[8], sum = 0;
    load_side(w, field, x, &at, v);
    for (int m = 0; m < 1 << w->grid->dim; m++) sum += un_warp_weight(&at, m, w->grid->dim) * v[m];
    return sum;
}

un_vec3 un_walls_gradient_side(const un_walls *w, const float *field, un_vec3 x)
{
    un_stencil at = un_grid_stencil_in(w->grid, x, 0.5, w->grid->dim);
    double v[8], d[3] = {0};
    load_side(w, field, x, &at, v);
    for (int a = 0; a < w->grid->dim; a++)
        for (int m = 0; m < 1 << w->grid->dim; m++)
            d[a] += un_warp_slope(&at, m, a, w->grid->dim) * v[m] * w->grid->inverse_h;
    return un_v3(d[0], d[1], d[2]);
}

/* ---- all of it ---- */

static un_status part_walls(thin_args *a)
{
    un_walls *w = a->walls;
    const un_grid *g = w->grid;
    size_t cells = (size_t)g->cell_count;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    if (!w->sees) {
        UN_ALLOC(w->ctx, w->sees, cells);
        UN_ALLOC(w->ctx, w->sight, cells);
        UN_ALLOC(w->ctx, w->split, cells);
    }
    UN_ALLOC(w->ctx, a->kept, cells);
    UN_ALLOC(w->ctx, a->part, cells);
    un_parallel_for(w->ctx, rows, 64, find_kept, a);
    un_parallel_for(w->ctx, rows, 64, find_fractions, a);
    un_parallel_for(w->ctx, rows, 64, find_sight, a);
    un_parallel_for(w->ctx, g->cell_count, un_block_grain(g->cell_count), make_mutual, a);
    UN_TRY(un_array_need(w->ctx, (void **)&w->splits, &w->split_capacity,
                         (size_t)count_splits(a) + 1, sizeof *w->splits));
    un_parallel_for(w->ctx, rows, 64, write_splits, a);
    return UN_OK;
}

un_status un_walls_part(un_walls *w)
{
    const un_grid *g = w->grid;
    thin_args a = {.walls = w};
    if (w->bodies->count == 0) return UN_OK;
    UN_ALLOC(w->ctx, a.thin, g->node_count);
    int64_t rows = g->node_count / (g->n[0] + 1);
    double thin = un_parallel_sum(w->ctx, rows, find_thin, &a);
    un_status status = UN_OK;
    w->parted = thin > 0;
    if (w->parted) status = part_walls(&a);
    if (status != UN_OK) w->parted = false;
    un_free(w->ctx, a.thin);
    un_free(w->ctx, a.kept);
    un_free(w->ctx, a.part);
    return status;
}
