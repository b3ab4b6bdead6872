/* Prolongation and the matrices of coarser levels: see block_sa.c. */
#include "linalg/block_sa.h"

#define MODES UN_SA_MODES
/* The most aggregates around a row: further ones are left out of P. Rows of graded tets have up to
 * some 40 neighbours. */
#define PARENTS_MAX 48

/* The row's motion from the unknowns of its own aggregate: size x 6, by rows. */
static void rigid(float *out, const un_sa *sa, const un_sa_level *l, const un_sa_level *next,
                  int32_t i, int32_t to)
{
    un_vec3 d = un_sub(l->place[i], next->place[to]);
    double s = next->scale[to], over = s > 0 ? 1 / s : 0;
    double m[6][MODES] = {{0}};
    for (int a = 0; a < 3; a++) m[a][a] = 1;
    m[0][4] = d.z * over; /* w x d */
    m[0][5] = -d.y * over;
    m[1][3] = -d.z * over;
    m[1][5] = d.x * over;
    m[2][3] = d.y * over;
    m[2][4] = -d.x * over;
    if (l->size == MODES)
        for (int a = 3; a < 6; a++) m[a][a] = l->scale[i] * over;
    for (int r = 0; r < l->size; r++)
        for (int c = 0; c < MODES; c++) out[r * MODES + c] = (float)m[r][c];
    if (l->scale || !sa->system->free) return;
    const double *free = sa->system->free[i];
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < MODES; c++)
            out[r * MODES + c] = (float)(free[3 * r] * m[0][c] + free[3 * r + 1] * m[1][c] +
                                         free[3 * r + 2] * m[2][c]);
}

typedef struct transfer_args {
    un_sa *sa;
    un_sa_level *l, *next;
    float *own; /* by row: its rigid motions */
    double omega;
} transfer_args;

static void find_own(void *arg, int64_t begin, int64_t end)
{
    transfer_args *a = arg;
    int entries = a->l->size * MODES;
    for (int64_t i = begin; i < end; i++)
        if (a->l->aggregate[i] >= 0)
            rigid(a->own + i * entries, a->sa, a->l, a->next, (int32_t)i, a->l->aggregate[i]);
}

/* The aggregates that row i takes its motion from, ascending. */
static int find_parents(const un_sa_level *l, int64_t i, int32_t *parents)
{
    int count = 0;
    for (int32_t k = l->row[i] - 1; k < l->row[i + 1]; k++) {
        int32_t to = l->aggregate[k < l->row[i] ? i : l->col[k]];
        int at = count;
        if (to < 0) continue;
        while (at > 0 && parents[at - 1] > to) at--;
        if ((at > 0 && parents[at - 1] == to) || count == PARENTS_MAX) continue;
        for (int m = count++; m > at; m--) parents[m] = parents[m - 1];
        parents[at] = to;
    }
    return count;
}

static void count_parents(void *arg, int64_t begin, int64_t end)
{
    transfer_args *a = arg;
    int32_t parents[PARENTS_MAX];
    for (int64_t i = begin; i < end; i++) a->l->p_row[i + 1] = find_parents(a->l, i, parents);
}

static inline int place_of(const int32_t *list, int count, int32_t id)
{
    for (int at = 0; at < count; at++)
        if (list[at] == id) return at;
    return -1;
}

/* y += A x, A of size s x s, x and y of size s x 6. */
static inline void add_product(float *restrict y, const float *restrict a, const float *restrict x,
                               const int s)
{
    for (int r = 0; r < s; r++) {
        float sum[MODES];
        for (int c = 0; c < MODES; c++) sum[c] = y[r * MODES + c];
        for (int k = 0; k < s; k++)
            for (int c = 0; c < MODES; c++) sum[c] += a[r * s + k] * x[k * MODES + c];
        for (int c = 0; c < MODES; c++) y[r * MODES + c] = sum[c];
    }
}

/* y += P^T Q, both of size s x 6. */
static inline void add_transposed_product(float *restrict y, const float *restrict p,
                                          const float *restrict q, const int s)
{
    for (int d = 0; d < MODES; d++) {
        float sum[MODES];
        for (int e = 0; e < MODES; e++) sum[e] = y[d * MODES + e];
        for (int r = 0; r < s; r++)
            for (int e = 0; e < MODES; e++) sum[e] += p[r * MODES + d] * q[r * MODES + e];
        for (int e = 0; e < MODES; e++) y[d * MODES + e] = sum[e];
    }
}

static inline void smooth_rows(transfer_args *a, int64_t begin, int64_t end, const int s)
{
    un_sa_level *l = a->l;
    float omega = (float)a->omega;
    for (int64_t i = begin; i < end; i++) {
        int32_t parents[PARENTS_MAX];
        float sum[PARENTS_MAX][6 * MODES];
        int count = find_parents(l, i, parents);
        memset(sum, 0, (size_t)count * sizeof *sum);
        for (int32_t k = l->row[i] - 1; k < l->row[i + 1]; k++) {
            bool self = k < l->row[i];
            int32_t j = self ? (int32_t)i : l->col[k];
            int at = l->aggregate[j] < 0 ? -1 : place_of(parents, count, l->aggregate[j]);
            if (at < 0) continue;
            const float *block = self ? l->diagonal + i * s * s : l->val + (size_t)k * s * s;
            add_product(sum[at], block, a->own + (size_t)j * s * MODES, s);
        }
        for (int at = 0; at < count; at++) {
            int32_t k = l->p_row[i] + at;
            float out[6 * MODES] = {0}, *p = l->p_val + (size_t)k * s * MODES;
            add_product(out, l->plain + i * s * s, sum[at], s);
            bool own = parents[at] == l->aggregate[i];
            for (int c = 0; c < s * MODES; c++)
                p[c] = (own ? a->own[i * s * MODES + c] : 0) - omega * out[c];
            l->p_col[k] = parents[at];
        }
    }
}

static void smooth_block(void *arg, int64_t begin, int64_t end)
{
    transfer_args *a = arg;
    if (a->l->size == 3)
        smooth_rows(a, begin, end, 3);
    else
        smooth_rows(a, begin, end, MODES);
}

/* The columns of P that this rank makes rows of, fine rows ascending in each. */
static un_status build_back(un_sa *sa, un_sa_level *l, int32_t coarse_count)
{
    int32_t first = (int32_t)l->made.begin, end = (int32_t)l->made.end, total = 0;
    int64_t known = un_sa_known_count(l), before = un_sa_known_before(l);
    UN_SA_NEED(sa->ctx, l->back_row, l->capacity[19], coarse_count);
    memset(l->back_row + first, 0, (size_t)(end - first + 1) * sizeof *l->back_row);
    for (int64_t m = 0; m < known; m++) {
        int32_t i = un_sa_known(l, before, m);
        for (int32_t k = l->p_row[i]; k < l->p_row[i + 1]; k++)
            if (l->p_col[k] >= first && l->p_col[k] < end) l->back_row[l->p_col[k]]++;
    }
    for (int32_t c = first; c <= end; c++) {
        int32_t count = l->back_row[c];
        l->back_row[c] = total;
        total += count;
    }
    UN_SA_NEED(sa->ctx, l->back_fine, l->capacity[20], total);
    UN_SA_NEED(sa->ctx, l->back_at, l->capacity[21], total);
    for (int64_t m = 0; m < known; m++) {
        int32_t i = un_sa_known(l, before, m);
        for (int32_t k = l->p_row[i]; k < l->p_row[i + 1]; k++) {
            if (l->p_col[k] < first || l->p_col[k] >= end) continue;
            int32_t at = l->back_row[l->p_col[k]]++;
            l->back_fine[at] = i;
            l->back_at[at] = k;
        }
    }
    for (int32_t c = end; c > first; c--) l->back_row[c] = l->back_row[c - 1];
    l->back_row[first] = 0;
    return UN_OK;
}

un_status un_sa_build_transfer(un_sa *sa, int32_t index, int32_t coarse_count)
{
    un_context *ctx = sa->ctx;
    un_sa_level *l = &sa->level[index];
    transfer_args a = {.sa = sa, .l = l, .next = l + 1};
    a.omega = 4.0 / 3.0 / un_sa_spectral_radius(sa, index);
    a.own = un_arena_alloc(&sa->arena, (size_t)l->n * (size_t)l->size * MODES + 1, sizeof *a.own);
    if (!a.own) return UN_ERROR_MEMORY;
    un_parallel_part(ctx, l->own, 1024, find_own, &a);
    un_layered own = {a.own, (size_t)l->size * MODES * sizeof *a.own};
    UN_TRY(un_halo_share_fields(l->near, &own, 1));
    UN_SA_NEED(ctx, l->p_row, l->capacity[16], l->n);
    un_parallel_part(ctx, l->own, 1024, count_parents, &a);
    un_sa_number_entries(sa, l, l->p_row, l->own, l->n);
    size_t entries = (size_t)l->p_row[l->n];
    UN_SA_NEED(ctx, l->p_col, l->capacity[17], entries);
    UN_SA_NEED(ctx, l->p_val, l->capacity[18], entries * (size_t)l->size * MODES);
    un_parallel_part(ctx, l->own, 256, smooth_block, &a);
    un_layered p[2] = {{l->p_col, sizeof *l->p_col},
                       {l->p_val, (size_t)l->size * MODES * sizeof *l->p_val}};
    if (l->near) UN_TRY(un_halo_share_rows(l->near, l->p_row, p, 2, NULL, 0));
    return build_back(sa, l, coarse_count);
}

/* ---- P^T A P ---- */

/* Rows are visited in a few large blocks, each of which remembers where it last met every coarse
 * column. Where ranks share them, a rank multiplies its own rows of A, gets the products of the
 * rows beside them, and makes the coarse rows of its aggregates. */
#define GATHER_BLOCKS 16

/* A P by rows of A, columns in the order they are met; then rows of P^T (A P). */
typedef struct galerkin_args {
    un_sa_level *l, *next;
    int32_t *ap_row, *ap_col;
    float *ap_val;
    int32_t *marker; /* by block and coarse column */
} galerkin_args;

static int64_t gather_grain(un_part rows)
{
    return un_max64(64, (rows.end - rows.begin + GATHER_BLOCKS - 1) / GATHER_BLOCKS);
}

static int32_t *clear_marker(const galerkin_args *a, un_part rows, int64_t begin)
{
    int64_t block = (begin - rows.begin) / gather_grain(rows);
    int32_t *marker = a->marker + block * a->next->n;
    for (int32_t c = 0; c < a->next->n; c++) marker[c] = -1;
    return marker;
}

static void count_products(void *arg, int64_t begin, int64_t end)
{
    galerkin_args *a = arg;
    const un_sa_level *l = a->l;
    int32_t *marker = clear_marker(a, l->own, begin);
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t count = 0;
        for (int32_t k = l->row[i] - 1; k < l->row[i + 1]; k++) {
            int32_t j = k < l->row[i] ? i : l->col[k];
            for (int32_t m = l->p_row[j]; m < l->p_row[j + 1]; m++) {
                count += marker[l->p_col[m]] != i;
                marker[l->p_col[m]] = i;
            }
        }
        a->ap_row[i + 1] = count;
    }
}

static inline void multiply_rows(galerkin_args *a, int32_t begin, int32_t end, const int s)
{
    const un_sa_level *l = a->l;
    int32_t *marker = clear_marker(a, l->own, begin);
    for (int32_t i = begin; i < end; i++) {
        int32_t first = a->ap_row[i], at = first;
        memset(a->ap_val + (size_t)first * s * MODES, 0,
               (size_t)(a->ap_row[i + 1] - first) * s * MODES * sizeof *a->ap_val);
        for (int32_t k = l->row[i] - 1; k < l->row[i + 1]; k++) {
            bool self = k < l->row[i];
            int32_t j = self ? i : l->col[k];
            const float *block =
                self ? l->diagonal + (size_t)i * s * s : l->val + (size_t)k * s * s;
            for (int32_t m = l->p_row[j]; m < l->p_row[j + 1]; m++) {
                int32_t c = l->p_col[m];
                if (marker[c] < first) {
                    a->ap_col[at] = c;
                    marker[c] = at++;
                }
                add_product(a->ap_val + (size_t)marker[c] * s * MODES, block,
                            l->p_val + (size_t)m * s * MODES, s);
            }
        }
    }
}

static void multiply_block(void *arg, int64_t begin, int64_t end)
{
    galerkin_args *a = arg;
    if (a->l->size == 3)
        multiply_rows(a, (int32_t)begin, (int32_t)end, 3);
    else
        multiply_rows(a, (int32_t)begin, (int32_t)end, MODES);
}

static void count_coarse(void *arg, int64_t begin, int64_t end)
{
    galerkin_args *a = arg;
    const un_sa_level *l = a->l;
    int32_t *marker = clear_marker(a, l->made, begin);
    for (int32_t c = (int32_t)begin; c < end; c++) {
        int32_t count = 0;
        marker[c] = c; /* the diagonal is not listed */
        for (int32_t k = l->back_row[c]; k < l->back_row[c + 1]; k++) {
            int32_t i = l->back_fine[k];
            for (int32_t m = a->ap_row[i]; m < a->ap_row[i + 1]; m++) {
                count += marker[a->ap_col[m]] != c;
                marker[a->ap_col[m]] = c;
            }
        }
        a->next->row[c + 1] = count;
    }
}

/* The columns of coarse row c in the three parts that sweeps use, each ascending; marker then holds
 * the place of each. */
static void list_columns(const galerkin_args *a, int32_t c, int32_t *marker)
{
    const un_sa_level *l = a->l;
    un_sa_level *next = a->next;
    int64_t block = c / next->grain * next->grain, last = block + next->grain;
    int32_t first = next->row[c], *end = next->col + first;
    int32_t count[3] = {0}; /* by part */
    for (int32_t k = l->back_row[c]; k < l->back_row[c + 1]; k++) {
        int32_t i = l->back_fine[k];
        for (int32_t m = a->ap_row[i]; m < a->ap_row[i + 1]; m++) {
            int32_t j = a->ap_col[m];
            if (j == c || marker[j] >= first) continue;
            marker[j] = first;
            int part = j < block || j >= last ? 2 : j > c;
            int32_t *to = end++, passed = part < 2 ? count[2] : 0;
            if (part < 1) passed += count[1];
            for (; passed > 0; passed--, to--) to[0] = to[-1];
            for (int32_t own = count[part]++; own > 0 && to[-1] > j; own--, to--) to[0] = to[-1];
            *to = j;
        }
    }
    next->upper[c] = first + count[0];
    next->outer[c] = first + count[0] + count[1];
    for (int32_t k = first; k < next->row[c + 1]; k++) marker[next->col[k]] = k;
}

static inline void fill_rows(galerkin_args *a, int32_t begin, int32_t end, const int s)
{
    const un_sa_level *l = a->l;
    un_sa_level *next = a->next;
    const size_t squares = MODES * MODES;
    int32_t *marker = clear_marker(a, l->made, begin);
    for (int32_t c = begin; c < end; c++) {
        int32_t first = next->row[c], last = l->back_row[c + 1];
        list_columns(a, c, marker);
        memset(next->diagonal + c * squares, 0, squares * sizeof *next->diagonal);
        memset(next->val + first * squares, 0,
               (size_t)(next->row[c + 1] - first) * squares * sizeof *next->val);
        for (int32_t k = l->back_row[c]; k < last; k++) {
            int32_t i = l->back_fine[k];
            const float *p = l->p_val + (size_t)l->back_at[k] * s * MODES;
            for (int32_t m = a->ap_row[i]; m < a->ap_row[i + 1]; m++) {
                int32_t j = a->ap_col[m];
                const float *q = a->ap_val + (size_t)m * s * MODES;
                float *out =
                    j == c ? next->diagonal + c * squares : next->val + marker[j] * squares;
                add_transposed_product(out, p, q, s);
            }
        }
    }
}

static void fill_block(void *arg, int64_t begin, int64_t end)
{
    galerkin_args *a = arg;
    if (a->l->size == 3)
        fill_rows(a, (int32_t)begin, (int32_t)end, 3);
    else
        fill_rows(a, (int32_t)begin, (int32_t)end, MODES);
}

un_status un_sa_build_coarse(un_sa *sa, int32_t index)
{
    un_context *ctx = sa->ctx;
    un_sa_level *l = &sa->level[index], *next = l + 1;
    galerkin_args a = {.l = l, .next = next};
    size_t n = (size_t)l->n, coarse = (size_t)next->n;
    int64_t grain = gather_grain(l->own), coarse_grain = gather_grain(l->made);
    a.ap_row = un_arena_alloc(&sa->arena, n + 1, sizeof *a.ap_row);
    a.marker = un_arena_alloc(&sa->arena, GATHER_BLOCKS * coarse, sizeof *a.marker);
    if (!a.ap_row || !a.marker) return UN_ERROR_MEMORY;
    un_parallel_part(ctx, l->own, grain, count_products, &a);
    un_sa_number_entries(sa, l, a.ap_row, l->own, l->n);
    size_t entries = (size_t)a.ap_row[n];
    a.ap_col = un_arena_alloc(&sa->arena, entries + 1, sizeof *a.ap_col);
    a.ap_val =
        un_arena_alloc(&sa->arena, (entries + 1) * (size_t)l->size * MODES, sizeof *a.ap_val);
    if (!a.ap_col || !a.ap_val) return UN_ERROR_MEMORY;
    un_parallel_part(ctx, l->own, grain, multiply_block, &a);
    un_layered ap[2] = {{a.ap_col, sizeof *a.ap_col},
                        {a.ap_val, (size_t)l->size * MODES * sizeof *a.ap_val}};
    if (l->near) UN_TRY(un_halo_share_rows(l->near, a.ap_row, ap, 2, NULL, 0));
    UN_SA_NEED(ctx, next->row, next->capacity[0], coarse);
    UN_SA_NEED(ctx, next->upper, next->capacity[1], coarse);
    UN_SA_NEED(ctx, next->outer, next->capacity[2], coarse);
    UN_SA_NEED(ctx, next->diagonal, next->capacity[5], coarse * MODES * MODES);
    un_parallel_part(ctx, l->made, coarse_grain, count_coarse, &a);
    un_sa_number_entries(sa, l, next->row, l->made, next->n);
    size_t filled = (size_t)next->row[coarse];
    UN_SA_NEED(ctx, next->col, next->capacity[3], filled);
    UN_SA_NEED(ctx, next->val, next->capacity[4], filled * MODES * MODES);
    un_parallel_part(ctx, l->made, coarse_grain, fill_block, &a);
    return UN_OK;
}
