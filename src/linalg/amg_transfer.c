/* Multigrid transfers as sparse matrices, and the coarse matrix P^T A P that they make.
 *
 * Coarse matrices are kept as off-diagonal entries and row sums, as in amg_levels.c. With s = P 1
 * the row sums of P^T A P are P^T A s, and
 *
 *     (A s)_i = e_i s_i + sum_{j != i} a_ij (s_j - s_i),   e the row sums of A,
 *
 * so that where s = 1 and e = 0 they are exactly zero, in floats too. */
#include "linalg/amg.h"

/* Few blocks, since each has a marker as long as the coarse level. */
#define BLOCKS_MAX 16
/* Initial room for entries of a coarse row; if rows have more, the sums are made again. */
#define ROW_ENTRIES 12
/* Entries below this share of the row's largest are round-off of terms that cancel. */
#define PRUNE 1e-5f

static int64_t coarse_grain(int64_t n)
{
    return un_max64(256, (n + BLOCKS_MAX - 1) / BLOCKS_MAX);
}

/* ---- P and its transpose ---- */

typedef struct rows {
    un_amg *amg;
    un_amg_transfer *p;
    un_amg_row_of *row_of;
    const void *arg;
    int32_t n, coarse_count;
    int64_t grain;
} rows;

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    rows *r = arg;
    un_amg_parents parents;
    int32_t *count = r->amg->marker + begin / r->grain * r->coarse_count;
    memset(count, 0, (size_t)r->coarse_count * sizeof *count);
    for (int32_t i = (int32_t)begin; i < end; i++) {
        parents.count = 0;
        r->row_of(r->arg, i, &parents);
        float sum = 0;
        for (int32_t q = 0; q < parents.count; q++) {
            sum += parents.weight[q];
            count[parents.id[q]]++;
        }
        r->p->row[i + 1] = parents.count;
        r->amg->weight[i] = sum;
    }
}

/* Counts, by block of fine rows and by coarse row, become places in the transpose. */
static void place_back(void *arg, int64_t begin, int64_t end)
{
    rows *r = arg;
    int64_t blocks = (r->n + r->grain - 1) / r->grain;
    for (int64_t c = begin; c < end; c++) {
        int32_t sum = 0;
        for (int64_t k = 0; k < blocks; k++) {
            int32_t *count = &r->amg->marker[k * r->coarse_count + c], own = *count;
            *count = sum;
            sum += own;
        }
        r->p->back_row[c + 1] = sum;
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    rows *r = arg;
    un_amg_transfer *p = r->p;
    un_amg_parents parents;
    int32_t *place = r->amg->marker + begin / r->grain * r->coarse_count;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        parents.count = 0;
        r->row_of(r->arg, i, &parents);
        for (int32_t q = 0, at = p->row[i]; q < parents.count; q++, at++) {
            int32_t c = parents.id[q], back = p->back_row[c] + place[c]++;
            p->col[at] = c;
            p->val[at] = parents.weight[q];
            p->back_col[back] = i;
            p->back_val[back] = parents.weight[q];
        }
    }
}

un_status un_amg_build_transfer(un_amg *amg, const un_amg_level *level, un_amg_transfer *p,
                                int32_t coarse_count, un_amg_row_of *row_of, const void *arg)
{
    un_context *ctx = amg->ctx;
    rows r = {amg, p, row_of, arg, level->n, coarse_count, coarse_grain(level->n)};
    int64_t blocks = (level->n + r.grain - 1) / r.grain;
    UN_AMG_NEED(ctx, amg->marker, amg->capacity_marker, blocks * coarse_count);
    UN_AMG_NEED(ctx, amg->weight, amg->capacity_weight, level->n);
    UN_AMG_NEED(ctx, p->row, p->capacity[0], (size_t)level->n + 1);
    UN_AMG_NEED(ctx, p->back_row, p->capacity[3], (size_t)coarse_count + 1);
    un_parallel_for(ctx, level->n, r.grain, count_rows, &r);
    un_parallel_for(ctx, coarse_count, un_block_grain(coarse_count), place_back, &r);
    p->row[0] = p->back_row[0] = 0;
    for (int32_t i = 0; i < level->n; i++) p->row[i + 1] += p->row[i];
    for (int32_t c = 0; c < coarse_count; c++) p->back_row[c + 1] += p->back_row[c];
    int32_t entries = p->row[level->n];
    UN_AMG_NEED(ctx, p->col, p->capacity[1], entries);
    UN_AMG_NEED(ctx, p->val, p->capacity[2], entries);
    UN_AMG_NEED(ctx, p->back_col, p->capacity[4], entries);
    UN_AMG_NEED(ctx, p->back_val, p->capacity[5], entries);
    un_parallel_for(ctx, level->n, r.grain, fill_rows, &r);
    return UN_OK;
}

/* ---- P^T A P ---- */

typedef struct product {
    const un_amg_graph *g;
    const un_amg_transfer *p;
    const float *weight, *diagonal;
    un_amg_full *full;
    int32_t *marker;
    int32_t coarse_count;
    int64_t grain;
    int64_t *room;  /* by block, and the end: where its entries start */
    int32_t *count; /* by block: its entries, including those without room */
} product;

typedef struct row_sums {
    int32_t *marker, *col, start, at;
    float *val;
    int64_t room;
} row_sums;

static inline void add_entry(row_sums *s, int32_t c, float value)
{
    int32_t place = s->marker[c];
    if (place < s->start) {
        s->marker[c] = place = s->at++;
        if (place >= s->room) return;
        s->col[place] = c;
        s->val[place] = value;
    } else if (place < s->room)
        s->val[place] += value;
}

/* Drops entries that cancelled, and row c itself: the diagonal follows from the sum of the row. */
static void prune(row_sums *s, int32_t c)
{
    if (s->at > s->room) return;
    float most = 0;
    for (int32_t k = s->start; k < s->at; k++) {
        s->marker[s->col[k]] = -1; /* the entries after it move */
        if (s->col[k] != c) most = fmaxf(most, fabsf(s->val[k]));
    }
    int32_t kept = s->start;
    for (int32_t k = s->start; k < s->at; k++) {
        if (s->col[k] == c || !(fabsf(s->val[k]) > PRUNE * most)) continue;
        s->col[kept] = s->col[k];
        s->val[kept++] = s->val[k];
    }
    s->at = kept;
}

static void product_rows(void *arg, int64_t begin, int64_t end)
{
    product *p = arg;
    const un_amg_graph *g = p->g;
    const un_amg_transfer *t = p->p;
    const float *weight = p->weight;
    int64_t block = begin / p->grain;
    row_sums s = {.marker = p->marker + block * p->coarse_count,
                  .col = p->full->col + p->room[block],
                  .val = p->full->val + p->room[block],
                  .room = p->room[block + 1] - p->room[block]};
    for (int32_t c = 0; c < p->coarse_count; c++) s.marker[c] = -1;
    for (int32_t c = (int32_t)begin; c < end; c++) {
        float excess = 0;
        s.start = s.at;
        for (int32_t m = t->back_row[c]; m < t->back_row[c + 1]; m++) {
            int32_t i = t->back_col[m];
            float w = t->back_val[m], sum = g->excess[i] * weight[i];
            for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
                int32_t j = g->col[k];
                float entry = j == i ? 0 : un_amg_entry(g, k);
                if (entry == 0) continue;
                sum += entry * (weight[j] - weight[i]);
                entry *= w;
                for (int32_t q = t->row[j]; q < t->row[j + 1]; q++)
                    if (t->col[q] != c) add_entry(&s, t->col[q], entry * t->val[q]);
            }
            for (int32_t q = t->row[i]; q < t->row[i + 1]; q++)
                if (t->col[q] != c) add_entry(&s, t->col[q], w * p->diagonal[i] * t->val[q]);
            excess += w * sum;
        }
        prune(&s, c);
        p->full->row[c + 1] = s.at - s.start;
        p->full->excess[c] = excess;
    }
    p->count[block] = s.at;
}

un_status un_amg_build_galerkin(un_amg *amg, const un_amg_transfer *t, const un_amg_graph *g,
                                const float *diagonal, int32_t coarse_count, int slot,
                                un_amg_graph *coarse)
{
    un_context *ctx = amg->ctx;
    un_amg_full *full = &amg->full[slot];
    int64_t grain = coarse_grain(coarse_count), blocks = (coarse_count + grain - 1) / grain;
    int64_t room[BLOCKS_MAX + 1] = {0};
    int32_t count[BLOCKS_MAX];
    UN_AMG_NEED(ctx, amg->marker, amg->capacity_marker, blocks * coarse_count);
    UN_AMG_NEED(ctx, full->row, full->capacity[0], (size_t)coarse_count + 1);
    UN_AMG_NEED(ctx, full->excess, full->capacity[1], coarse_count);
    product p = {g, t, amg->weight, diagonal, full, amg->marker, coarse_count, grain, room, count};
    for (int64_t k = 0; k < blocks; k++) {
        int64_t rows_here = un_min64(grain, coarse_count - k * grain);
        room[k + 1] = room[k] + ROW_ENTRIES * rows_here + UN_AMG_PARENTS_MAX;
    }
    for (bool fits = false; !fits;) {
        UN_AMG_NEED(ctx, full->col, full->capacity[2], room[blocks]);
        UN_AMG_NEED(ctx, full->val, full->capacity[3], room[blocks]);
        un_parallel_for(ctx, coarse_count, grain, product_rows, &p);
        fits = true;
        for (int64_t k = 0; k < blocks; k++) fits &= count[k] <= room[k + 1] - room[k];
        /* Room only ever grows: a row takes more of it before pruning than after. */
        int64_t start = 0;
        for (int64_t k = 0; k < blocks && !fits; k++) {
            int64_t want = un_max64(room[k + 1] - start, count[k] + UN_AMG_PARENTS_MAX);
            start = room[k + 1];
            room[k + 1] = room[k] + want;
        }
    }
    un_amg_close_rows(full, coarse_count, grain, room, count, coarse);
    return UN_OK;
}

/* ---- vectors ---- */

typedef struct move {
    const un_amg_transfer *p;
    float *to;
    const float *from;
    bool set;
} move;

static void restrict_rows(void *arg, int64_t begin, int64_t end)
{
    const move *m = arg;
    const int32_t *row = m->p->back_row, *col = m->p->back_col;
    const float *val = m->p->back_val;
    for (int64_t c = begin; c < end; c++) {
        float sum = 0;
        for (int32_t k = row[c]; k < row[c + 1]; k++) sum += val[k] * m->from[col[k]];
        m->to[c] = sum;
    }
}

static void prolong_rows(void *arg, int64_t begin, int64_t end)
{
    const move *m = arg;
    const int32_t *row = m->p->row, *col = m->p->col;
    const float *val = m->p->val;
    for (int64_t i = begin; i < end; i++) {
        float sum = m->set ? 0 : m->to[i];
        for (int32_t k = row[i]; k < row[i + 1]; k++) sum += val[k] * m->from[col[k]];
        m->to[i] = sum;
    }
}

void un_amg_restrict(un_context *ctx, const un_amg_transfer *p, float *coarse, int32_t coarse_count,
                     const float *fine)
{
    move m = {p, coarse, fine, true};
    un_parallel_for(ctx, coarse_count, un_block_grain(coarse_count), restrict_rows, &m);
}

void un_amg_prolong(un_context *ctx, const un_amg_transfer *p, float *fine, int32_t fine_count,
                    const float *coarse, bool set)
{
    move m = {p, fine, coarse, set};
    un_parallel_for(ctx, fine_count, un_block_grain(fine_count), prolong_rows, &m);
}
