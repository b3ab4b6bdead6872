/* Multigrid by smoothed aggregation [Vanek, Mandel & Brezina 1996] for systems of 3x3 blocks.
 *
 * Strongly coupled rows form aggregates; each is one row of the next level, with six unknowns that
 * move it as a rigid body about its centre c:
 *
 *     u_i = t + w x (x_i - c) / s,   s the radius of the aggregate,
 *
 * which makes P0, and P = (1 - omega D^-1 A) P0, omega = 4/3 / rho(D^-1 A). Rigid motions cause no
 * stress, so smoothing does not reduce them. On further levels rows have places and rotations of
 * their own, so rigid motions are passed on to the coarsest level without any factorisation: t_i =
 * t + w x (c_i - c) / s, w_i = w s_i / s.
 *
 * A V-cycle with one sweep of block Gauss-Seidel down and one up, in single precision; sweeps are
 * Jacobi between the fixed blocks of rows, whose couplings raise the diagonal by half of their
 * absolute row sums, so that they converge [Baker, Falgout, Kolev & Yang 2011].
 *
 * Several ranks may share the rows (block_sa_ranks.c). */
#include "linalg/block_sa.h"
#include "linalg/candidates.h"

/* A row has no ties if all its |A_ij| are below this times sqrt(|A_ii| |A_jj|). */
#define TIE 0.01f
/* Rows of an aggregate. Smaller ones overlap more once smoothed, and coarse rows get more
 * entries. */
#define AGGREGATE_FIRST 30
#define AGGREGATE_NEXT 20
enum { FREE = -1, OUT = -2 };
/* The last level has at most this many rows, which are solved directly, */
#define DENSE_ROWS 90
/* or the next level would have more than this share of its rows. */
#define COARSENING_MIN 0.7
/* Diagonals of levels after the first are raised by this share: in single precision, a small mass
 * added to a large stiffness is lost. */
#define REGULARISE 1e-6f
#define PIVOT_MIN 1e-5

/* ---- the first level ---- */

typedef struct max_args {
    un_sa *sa;
    un_parallel_value *value;
    int64_t first;
} max_args;

static double largest_part(void *arg, int64_t begin, int64_t end)
{
    const max_args *m = arg;
    return m->value(m->sa, m->first + begin, m->first + end);
}

static double largest_rows(void *arg, int64_t begin, int64_t end)
{
    const un_block_csr *a = ((un_sa *)arg)->system->a;
    double most = 0;
    for (int64_t i = begin; i < end; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] == i)
                most = fmax(most, fmax(a->val[k][0], fmax(a->val[k][4], a->val[k][8])));
    return most;
}

/* Over the rows of all ranks. */
static double largest(un_sa *sa, un_parallel_value *value)
{
    un_part own = sa->level[0].own;
    max_args m = {sa, value, own.begin};
    double most = un_parallel_max(sa->ctx, own.end - own.begin, largest_part, &m);
    return sa->spread ? un_ranks_max(sa->ctx, most) : most;
}

static void copy_rows(void *arg, int64_t begin, int64_t end)
{
    un_sa *sa = arg;
    un_sa_level *l = &sa->level[0];
    const un_block_csr *a = sa->system->a;
    double scale = sa->scale;
    for (int64_t i = begin; i < end; i++) {
        l->place[i] = sa->system->place[i];
        int32_t at = l->row[i] = a->row[i] - (int32_t)i; /* each row loses its diagonal */
        for (int part = 0; part < 3; part++) {
            if (part == 1) l->upper[i] = at;
            if (part == 2) l->outer[i] = at;
            for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
                int32_t j = a->col[k];
                bool inside = j >= begin && j < end;
                if (j == i && part == 0)
                    for (int c = 0; c < 9; c++)
                        l->diagonal[9 * i + c] = (float)(a->val[k][c] * scale);
                if (j == i || (!inside ? 2 : j > i) != part) continue;
                for (int c = 0; c < 9; c++)
                    l->val[9 * (size_t)at + c] = (float)(a->val[k][c] * scale);
                l->col[at++] = j;
            }
        }
    }
}

static un_status need_level(un_sa *sa, un_sa_level *l, size_t entries)
{
    size_t n = (size_t)l->n, s = (size_t)l->size;
    UN_SA_NEED(sa->ctx, l->row, l->capacity[0], n);
    UN_SA_NEED(sa->ctx, l->upper, l->capacity[1], n);
    UN_SA_NEED(sa->ctx, l->outer, l->capacity[2], n);
    UN_SA_NEED(sa->ctx, l->col, l->capacity[3], entries);
    UN_SA_NEED(sa->ctx, l->val, l->capacity[4], entries * s * s);
    UN_SA_NEED(sa->ctx, l->diagonal, l->capacity[5], n * s * s);
    UN_SA_NEED(sa->ctx, l->inverse, l->capacity[6], n * s * s);
    UN_SA_NEED(sa->ctx, l->raise, l->capacity[7], n * s);
    UN_SA_NEED(sa->ctx, l->plain, l->capacity[8], n * s * s);
    UN_SA_NEED(sa->ctx, l->place, l->capacity[9], n);
    UN_SA_NEED(sa->ctx, l->b, l->capacity[10], n * s);
    UN_SA_NEED(sa->ctx, l->x, l->capacity[11], n * s);
    UN_SA_NEED(sa->ctx, l->r, l->capacity[12], n * s);
    UN_SA_NEED(sa->ctx, l->aggregate, l->capacity[13], n);
    UN_SA_NEED(sa->ctx, l->first, l->capacity[14], UN_SA_BLOCKS_MAX + 1);
    if (s == UN_SA_MODES) UN_SA_NEED(sa->ctx, l->scale, l->capacity[15], n);
    return UN_OK;
}

static un_status build_first(un_sa *sa)
{
    const un_block_csr *a = sa->system->a;
    un_sa_level *l = &sa->level[0];
    l->n = a->n;
    l->size = 3;
    l->grain = un_sa_grain(l->n);
    un_sa_divide_first(sa);
    UN_TRY(need_level(sa, l, (size_t)(a->row[a->n] - a->n)));
    double most = largest(sa, largest_rows);
    sa->scale = most > 0 && isfinite(most) ? 1 / most : 1;
    un_parallel_part(sa->ctx, l->own, l->grain, copy_rows, sa);
    l->row[l->own.end] = a->row[l->own.end] - (int32_t)l->own.end;
    l->row[l->n] = a->row[a->n] - a->n;
    return un_sa_know_beside(sa, 0);
}

/* ---- inverse diagonals for the sweeps ---- */

static void invert_rows(void *arg, int64_t begin, int64_t end)
{
    un_sa_level *l = arg;
    const int s = l->size;
    for (int64_t i = begin; i < end; i++) {
        float *diagonal = l->diagonal + i * s * s, *raise = l->raise + i * s;
        double sum[6] = {0}, a[36];
        if (s == UN_SA_MODES)
            for (int c = 0; c < s; c++) diagonal[c * s + c] *= 1 + REGULARISE;
        for (int32_t k = l->outer[i]; k < l->row[i + 1]; k++)
            for (int c = 0; c < s * s; c++)
                sum[c / s] += fabs((double)l->val[(size_t)k * s * s + c]);
        for (int c = 0; c < s * s; c++) a[c] = diagonal[c];
        un_small_inverse(a, s, PIVOT_MIN);
        for (int c = 0; c < s * s; c++) l->plain[i * s * s + c] = (float)a[c];
        for (int c = 0; c < s * s; c++) a[c] = diagonal[c];
        for (int c = 0; c < s; c++) {
            raise[c] = (float)(0.5 * sum[c]);
            a[c * s + c] += raise[c];
        }
        un_small_inverse(a, s, PIVOT_MIN);
        for (int c = 0; c < s * s; c++) l->inverse[i * s * s + c] = (float)a[c];
    }
}

/* ---- aggregates ---- */

static float block_norm(const float *a, int count)
{
    float sum = 0;
    for (int c = 0; c < count; c++) sum += a[c] * a[c];
    return sqrtf(sum);
}

typedef struct aggregation {
    un_sa_level *l;
    float *norm;   /* of diagonal blocks */
    float *tie;    /* by entry: its norm divided by those of both diagonals; 0: none */
    int32_t *slot; /* by row: its place among the candidates, if it is one of them */
} aggregation;

static void find_norms(void *arg, int64_t begin, int64_t end)
{
    aggregation *p = arg;
    int squares = p->l->size * p->l->size;
    for (int64_t i = begin; i < end; i++)
        p->norm[i] = block_norm(p->l->diagonal + i * squares, squares);
}

static void find_ties(void *arg, int64_t begin, int64_t end)
{
    aggregation *p = arg;
    const un_sa_level *l = p->l;
    int squares = l->size * l->size;
    for (int64_t i = begin; i < end; i++) {
        bool any = false;
        for (int32_t k = l->row[i]; k < l->row[i + 1]; k++) {
            float both = sqrtf(p->norm[i] * p->norm[l->col[k]]);
            float norm = block_norm(l->val + (size_t)k * squares, squares);
            p->tie[k] = both > 0 ? norm / both : 0;
            any |= p->tie[k] > TIE;
        }
        l->aggregate[i] = any ? FREE : OUT;
    }
}

static void add_ties(un_amg_candidates *c, const aggregation *p, int32_t i)
{
    const un_sa_level *l = p->l;
    for (int32_t k = l->row[i]; k < l->outer[i]; k++) {
        int32_t j = l->col[k];
        if (l->aggregate[j] != FREE) continue;
        int32_t at = p->slot[j];
        if (at >= c->count || c->id[at] != j) {
            if (c->count == UN_AMG_CANDIDATES_MAX) continue;
            at = p->slot[j] = c->count++;
            c->id[at] = j;
            c->tie[at] = 0;
        }
        c->tie[at] += p->tie[k];
    }
}

/* The aggregate in the block that row i is tied to most, -1: none. */
static int32_t nearest(const aggregation *p, int32_t i, int32_t except)
{
    const un_sa_level *l = p->l;
    int32_t found = -1;
    float most = 0;
    for (int32_t k = l->row[i]; k < l->outer[i]; k++) {
        int32_t to = l->aggregate[l->col[k]];
        if (to < 0 || to == except || !(p->tie[k] > most)) continue;
        most = p->tie[k];
        found = to;
    }
    return found;
}

/* The scheme of amg_aggregate.c, with other ties. Rows without ties need no coarser level. */
static void aggregate_block(void *arg, int64_t begin, int64_t end)
{
    aggregation *p = arg;
    un_sa_level *l = p->l;
    int32_t count = 0, *aggregate = l->aggregate;
    int32_t full = l->size == 3 ? AGGREGATE_FIRST : AGGREGATE_NEXT;
    for (int64_t i = begin; i < end; i++) p->slot[i] = 0;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        if (aggregate[i] != FREE) continue;
        int32_t member[AGGREGATE_FIRST], size = 0;
        un_amg_candidates c;
        c.count = 0;
        for (int32_t next = i; next >= 0; next = un_amg_take_best(&c, p->slot)) {
            aggregate[next] = count;
            member[size++] = next;
            if (size == full) break;
            add_ties(&c, p, next);
        }
        int32_t host = -1;
        if (size < full / 2)
            for (int32_t m = 0; m < size && host < 0; m++) host = nearest(p, member[m], count);
        if (host < 0) {
            count++;
            continue;
        }
        for (int32_t m = 0; m < size; m++) {
            int32_t to = nearest(p, member[m], count);
            aggregate[member[m]] = to >= 0 ? to : host;
        }
    }
    l->first[begin / l->grain + 1] = count;
}

static un_status aggregate_rows(un_sa *sa, un_sa_level *l, int32_t *count)
{
    aggregation p = {.l = l};
    p.norm = un_arena_alloc(&sa->arena, (size_t)l->n + 1, sizeof *p.norm);
    p.tie = un_arena_alloc(&sa->arena, (size_t)l->row[l->n] + 1, sizeof *p.tie);
    p.slot = un_arena_alloc(&sa->arena, (size_t)l->n + 1, sizeof *p.slot);
    if (!p.norm || !p.tie || !p.slot) return UN_ERROR_MEMORY;
    un_parallel_part(sa->ctx, l->own, l->grain, find_norms, &p);
    un_sa_know(l, p.norm, 1);
    un_parallel_part(sa->ctx, l->own, l->grain, find_ties, &p);
    memset(l->first, 0, (UN_SA_BLOCKS_MAX + 1) * sizeof *l->first);
    un_parallel_part(sa->ctx, l->own, l->grain, aggregate_block, &p);
    un_sa_share_counts(sa, l, l->first + 1);
    *count = un_amg_number(sa->ctx, l->aggregate, l->first, l->n, l->own, l->grain);
    if (l->near) un_halo_share(l->near, l->aggregate, sizeof *l->aggregate);
    l->made.begin = l->first[(l->own.begin + l->grain - 1) / l->grain];
    l->made.end = l->first[(l->own.end + l->grain - 1) / l->grain];
    un_arena_reset(&sa->arena);
    return UN_OK;
}

/* ---- set-up ---- */

/* Centres and radii of aggregates: places and scales of the next level. Each aggregate lies within
 * a block, whose rows are few enough to be visited in order. */
typedef struct centre_args {
    un_sa_level *l, *next;
    int32_t *count;
} centre_args;

static void find_centres(void *arg, int64_t begin, int64_t end)
{
    centre_args *c = arg;
    un_sa_level *l = c->l, *next = c->next;
    int64_t block = begin / l->grain;
    for (int32_t k = l->first[block]; k < l->first[block + 1]; k++) {
        next->place[k] = un_v3(0, 0, 0);
        next->scale[k] = 0;
        c->count[k] = 0;
    }
    for (int64_t i = begin; i < end; i++) {
        int32_t k = l->aggregate[i];
        if (k < 0) continue;
        next->place[k] = un_add(next->place[k], l->place[i]);
        c->count[k]++;
    }
    for (int32_t k = l->first[block]; k < l->first[block + 1]; k++)
        next->place[k] = un_scale(next->place[k], 1.0 / c->count[k]);
    for (int64_t i = begin; i < end; i++) {
        int32_t k = l->aggregate[i];
        if (k < 0) continue;
        un_vec3 d = un_sub(l->place[i], next->place[k]);
        double own = l->scale ? l->scale[i] : 0;
        next->scale[k] += (float)((un_dot(d, d) + own * own) / c->count[k]);
    }
    for (int32_t k = l->first[block]; k < l->first[block + 1]; k++)
        next->scale[k] = sqrtf(next->scale[k]);
}

static un_status coarsen(un_sa *sa, int32_t l, int32_t coarse_count)
{
    un_sa_level *fine = &sa->level[l], *next = &sa->level[l + 1];
    next->n = coarse_count;
    next->size = UN_SA_MODES;
    next->grain = un_sa_grain(coarse_count);
    UN_SA_NEED(sa->ctx, next->place, next->capacity[9], coarse_count);
    UN_SA_NEED(sa->ctx, next->scale, next->capacity[15], coarse_count);
    centre_args c = {fine, next, NULL};
    c.count = un_arena_alloc(&sa->arena, (size_t)coarse_count + 1, sizeof *c.count);
    if (!c.count) return UN_ERROR_MEMORY;
    un_parallel_part(sa->ctx, fine->own, fine->grain, find_centres, &c);
    UN_TRY(un_sa_build_transfer(sa, l, coarse_count));
    UN_TRY(un_sa_build_coarse(sa, l));
    un_arena_reset(&sa->arena);
    UN_TRY(need_level(sa, next, (size_t)next->row[coarse_count]));
    return un_sa_divide_next(sa, l);
}

static un_status setup(void *state, const un_block_system *system, un_block_report *report)
{
    un_sa *sa = state;
    sa->system = system;
    sa->dense = false;
    sa->rest_scale = 0;
    un_sa_forget_ranks(sa);
    UN_TRY(build_first(sa));
    int32_t l = 0;
    for (;; l++) {
        un_sa_level *level = &sa->level[l];
        un_parallel_part(sa->ctx, level->own, level->grain, invert_rows, level);
        if (l > 0 && level->n <= DENSE_ROWS) break;
        if (l + 1 == UN_SA_LEVELS_MAX) break;
        int32_t count;
        UN_TRY(aggregate_rows(sa, level, &count));
        if (count == 0 || count > COARSENING_MIN * level->n) break;
        UN_TRY(coarsen(sa, l, count));
    }
    sa->level_count = l + 1;
    if (l > 0 && sa->level[l].n <= DENSE_ROWS) UN_TRY(un_sa_factor(sa));
    double entries = 0;
    for (int32_t k = 0; k <= l; k++) {
        const un_sa_level *level = &sa->level[k];
        entries += (level->row[level->n] + level->n) * (double)(level->size * level->size);
    }
    report->level_count = sa->level_count;
    report->complexity = entries / (9.0 * (sa->level[0].row[sa->level[0].n] + sa->level[0].n));
    return UN_OK;
}

/* ---- application ---- */

/* Residuals fall from the first one on: divided by it they stay in the range of floats. */
static double largest_rest(void *arg, int64_t begin, int64_t end)
{
    const un_vec3 *r = ((un_sa *)arg)->rest;
    double most = 0;
    for (int64_t i = begin; i < end; i++)
        most = fmax(most, fmax(fabs(r[i].x), fmax(fabs(r[i].y), fabs(r[i].z))));
    return most;
}

static void again(void *state)
{
    ((un_sa *)state)->rest_scale = 0;
}

static void load_rows(void *arg, int64_t begin, int64_t end)
{
    un_sa *sa = arg;
    float *b = sa->level[0].b;
    double scale = sa->rest_scale;
    for (int64_t i = begin; i < end; i++) {
        b[3 * i] = (float)(sa->rest[i].x * scale);
        b[3 * i + 1] = (float)(sa->rest[i].y * scale);
        b[3 * i + 2] = (float)(sa->rest[i].z * scale);
    }
}

static void store_rows(void *arg, int64_t begin, int64_t end)
{
    un_sa *sa = arg;
    const float *x = sa->level[0].x;
    double scale = sa->scale / sa->rest_scale;
    for (int64_t i = begin; i < end; i++)
        sa->z[i] = un_v3(x[3 * i] * scale, x[3 * i + 1] * scale, x[3 * i + 2] * scale);
}

static void apply(void *state, un_vec3 *z, const un_vec3 *r)
{
    un_sa *sa = state;
    sa->z = z;
    sa->rest = r;
    if (sa->rest_scale == 0) {
        double most = largest(sa, largest_rest);
        sa->rest_scale = most > 0 && isfinite(most) ? 1 / most : 1;
    }
    un_part own = sa->level[0].own;
    int64_t grain = un_block_grain(sa->level[0].n);
    un_parallel_part(sa->ctx, own, grain, load_rows, sa);
    un_sa_cycle(sa, 0);
    un_parallel_part(sa->ctx, own, grain, store_rows, sa);
}

static void destroy(void *state)
{
    un_sa *sa = state;
    if (!sa) return;
    un_sa_forget_ranks(sa);
    for (int k = 0; k < UN_SA_LEVELS_MAX; k++) {
        un_sa_level *l = &sa->level[k];
        void *arrays[] = {l->row,     l->upper,    l->outer,     l->col,    l->val,   l->diagonal,
                          l->inverse, l->raise,    l->plain,     l->place,  l->b,     l->x,
                          l->r,       l->scale,    l->aggregate, l->first,  l->p_row, l->p_col,
                          l->p_val,   l->back_row, l->back_fine, l->back_at};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(sa->ctx, arrays[i]);
        un_free(sa->ctx, l->beside.id);
    }
    un_free(sa->ctx, sa->factor);
    un_free(sa->ctx, sa->solution);
    un_arena_free(&sa->arena);
    un_free(sa->ctx, sa);
}

static void spread(void *state, un_spread *spread)
{
    ((un_sa *)state)->spread = spread;
}

un_status un_block_sa_create(un_context *ctx, un_block_preconditioner *m)
{
    un_sa *sa = un_alloc_zero(ctx, 1, sizeof *sa);
    if (!sa) return UN_ERROR_MEMORY;
    sa->ctx = ctx;
    un_arena_init(&sa->arena, ctx);
    *m = (un_block_preconditioner){sa, setup, again, apply, destroy, spread};
    return UN_OK;
}
