/* Transfers along a lattice as pairs of coarse rows.
 *
 * Nearly every row of P is the mean of two coarse rows, or is one of them (amg_geometric.c): two
 * numbers are enough, and neither weights nor a transpose need memory. Rows where the scale changes
 * have more parents or other weights and are listed in full.
 *
 * A coarse row belongs to the block of the fine row that survives as it. P^T adds each block's rows
 * to its own coarse rows; the few entries that lead to rows of another block are listed for that
 * block, which adds them afterwards, in their order. */
#include "linalg/amg.h"

typedef struct gathering {
    const un_amg_level *level;
    un_amg_means *p;
    const int32_t (*other)[2];
    un_amg_row_of *row_of;
    const void *arg;
    int32_t odd_rows[UN_AMG_BLOCKS_MAX + 1], odd_entries[UN_AMG_BLOCKS_MAX + 1];
    int32_t *far;    /* entries, by own source and target */
    int64_t first;   /* own block */
    int32_t *listed; /* rows that are odd or have far entries, by block from its first row on */
    int32_t listed_count[UN_AMG_BLOCKS_MAX];
} gathering;

static inline bool within(const un_amg_level *level, int64_t block, int32_t c)
{
    return c >= level->first[block] && c < level->first[block + 1];
}

static int64_t block_of(const un_amg_level *level, int32_t c)
{
    int64_t low = 0, high = un_amg_blocks(level) - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (level->first[middle] <= c)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Stores a row of P as a pair, if it is one. */
static bool as_pair(const un_amg_parents *parents, int32_t pair[2])
{
    const int32_t *id = parents->id;
    const float *weight = parents->weight;
    pair[0] = pair[1] = -1;
    if (parents->count > 2) return false;
    if (parents->count == 0) return true;
    pair[0] = id[0];
    if (parents->count == 1) {
        if (weight[0] == 1) pair[1] = id[0];
        return weight[0] == 1 || weight[0] == 0.5f;
    }
    pair[1] = id[1];
    return weight[0] == 0.5f && weight[1] == 0.5f;
}

/* True for nearly all rows: halfway between two rows that survive, or a survivor. */
static inline bool simple_pair(const gathering *g, int32_t i, int32_t pair[2])
{
    const int32_t *coarse = g->level->aggregate, *other = g->other[i];
    bool survives = coarse[i] >= 0;
    if (!survives && (coarse[i] == UN_AMG_OUT || other[0] < 0 || other[1] < 0)) return false;
    pair[0] = coarse[survives ? i : other[0]];
    pair[1] = coarse[survives ? i : other[1]];
    return pair[0] >= 0 && pair[1] >= 0 && (survives || pair[0] != pair[1]);
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    gathering *g = arg;
    const un_amg_level *level = g->level;
    int64_t block = begin / level->grain;
    un_amg_parents parents;
    int32_t rows = 0, entries = 0, listed = 0;
    int32_t *far_of = g->far + (block - g->first) * un_amg_blocks(level);
    for (int64_t t = 0; t < un_amg_blocks(level); t++) far_of[t] = 0;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t *pair = g->p->pair[i];
        if (g->other && simple_pair(g, i, pair) && within(level, block, pair[0]) &&
            within(level, block, pair[1]))
            continue;
        parents.count = 0;
        g->row_of(g->arg, i, &parents);
        bool far = false, odd = !as_pair(&parents, pair);
        for (int32_t q = 0; q < parents.count; q++) {
            if (within(level, block, parents.id[q])) continue;
            far_of[block_of(level, parents.id[q])]++;
            far = true;
        }
        if (far || odd) g->listed[begin + listed++] = i;
        if (!odd) continue;
        pair[0] = UN_AMG_ODD - rows++;
        entries += parents.count;
    }
    g->listed_count[block] = listed;
    g->odd_rows[block + 1] = rows;
    g->odd_entries[block + 1] = entries;
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    (void)end;
    gathering *g = arg;
    const un_amg_level *level = g->level;
    un_amg_means *p = g->p;
    int64_t block = begin / level->grain;
    int32_t row = g->odd_rows[block], at = g->odd_entries[block];
    un_amg_parents parents;
    for (int32_t k = 0; k < g->listed_count[block]; k++) {
        int32_t i = g->listed[begin + k];
        bool odd = p->pair[i][0] <= UN_AMG_ODD;
        parents.count = 0;
        g->row_of(g->arg, i, &parents);
        for (int32_t q = 0; q < parents.count; q++) {
            int32_t c = parents.id[q];
            if (odd) {
                p->col[at] = c;
                p->val[at++] = parents.weight[q];
            }
            if (within(level, block, c)) continue;
            int32_t far = g->far[(block - g->first) * un_amg_blocks(level) + block_of(level, c)]++;
            p->far_row[far] = i;
            p->far_col[far] = c;
            p->far_val[far] = parents.weight[q];
        }
        if (!odd) continue;
        p->pair[i][0] = UN_AMG_ODD - row;
        p->row[++row] = at;
    }
}

/* ---- several ranks ---- */

/* Rows of P of the rows beside this rank's own, which couplings ask for. */
static void count_beside(un_amg *amg, gathering *g, int32_t *rows, int32_t *entries)
{
    (void)amg;
    un_amg_parents parents;
    for (int64_t k = 0; k < g->level->beside.count; k++) {
        int32_t i = g->level->beside.id[k], *pair = g->p->pair[i];
        parents.count = 0;
        g->row_of(g->arg, i, &parents);
        if (as_pair(&parents, pair)) continue;
        pair[0] = UN_AMG_ODD;
        ++*rows;
        *entries += parents.count;
    }
}

static void fill_beside(gathering *g, int32_t row)
{
    un_amg_means *p = g->p;
    int32_t at = p->row[row];
    un_amg_parents parents;
    for (int64_t k = 0; k < g->level->beside.count; k++) {
        int32_t i = g->level->beside.id[k];
        if (p->pair[i][0] > UN_AMG_ODD) continue;
        parents.count = 0;
        g->row_of(g->arg, i, &parents);
        for (int32_t q = 0; q < parents.count; q++) {
            p->col[at] = parents.id[q];
            p->val[at++] = parents.weight[q];
        }
        p->pair[i][0] = UN_AMG_ODD - row;
        p->row[++row] = at;
    }
}

/* Entries that lead to coarse rows of another block, to its rank; and a plan for the values that
 * they take. */
static un_status send_far(un_amg *amg, un_amg_level *level, un_amg_means *p)
{
    un_context *ctx = amg->ctx;
    un_amg_records records = {0};
    un_ids rows = {0};
    un_wishes wishes = {0}; /* whoever gets an entry wants the row's values */
    un_status status = UN_OK;
    for (int64_t t = 0; t < un_amg_blocks(level); t++) {
        int32_t rank = un_spread_owner(level->cut, un_rank_count(ctx), t * level->grain);
        for (int32_t k = p->far_first[t]; k < p->far_first[t + 1]; k++) {
            UN_TRY_DONE(un_amg_record_add(
                amg, &records,
                (un_amg_record){(int32_t)t, p->far_row[k], p->far_col[k], p->far_val[k], 0}));
            if (rank != un_rank(ctx)) UN_TRY_DONE(un_wishes_add(ctx, &wishes, rank, p->far_row[k]));
        }
    }
    UN_TRY_DONE(un_amg_records_send(amg, level, &records));
    int64_t count = records.sorted_count;
    UN_TRY_DONE(un_array_need(ctx, (void **)&p->far_row, &p->capacity[5], (size_t)count,
                              sizeof *p->far_row));
    UN_TRY_DONE(un_array_need(ctx, (void **)&p->far_col, &p->capacity[6], (size_t)count,
                              sizeof *p->far_col));
    UN_TRY_DONE(un_array_need(ctx, (void **)&p->far_val, &p->capacity[7], (size_t)count,
                              sizeof *p->far_val));
    memcpy(p->far_first, records.first, (size_t)(un_amg_blocks(level) + 1) * sizeof *p->far_first);
    for (int64_t k = 0; k < count; k++) {
        const un_amg_record *r = &records.sorted[k];
        p->far_row[k] = r->row;
        p->far_col[k] = r->col;
        p->far_val[k] = r->value;
        if (r->row < level->own.begin || r->row >= level->own.end)
            UN_TRY_DONE(un_ids_add(ctx, &rows, r->row));
    }
    un_ids_sort(&rows);
    status = un_wishes_plan(ctx, &wishes, NULL, level->cut, &rows, &level->far);
done:
    un_amg_records_free(amg, &records);
    un_wishes_free(ctx, &wishes);
    un_free(ctx, rows.id);
    return status;
}

un_status un_amg_build_means(un_amg *amg, un_amg_level *level, un_amg_means *p,
                             const int32_t (*other)[2], un_amg_row_of *row_of, const void *arg)
{
    un_context *ctx = amg->ctx;
    int64_t blocks = un_amg_blocks(level);
    int32_t odd_rows = 0, odd_entries = 0; /* of rows beside this rank's own */
    gathering g = {.level = level, .p = p, .other = other, .row_of = row_of, .arg = arg};
    UN_AMG_NEED(ctx, p->pair, p->capacity[0], level->n);
    UN_AMG_NEED(ctx, p->far_first, p->capacity[4], blocks + 1);
    UN_AMG_NEED(ctx, amg->table, amg->capacity_table, level->n);
    g.listed = amg->table; /* no longer needed: places have been found */
    un_part own_blocks = un_amg_own_blocks(level);
    int64_t held = own_blocks.end - own_blocks.begin;
    UN_AMG_NEED(ctx, amg->far, amg->capacity_far, held * blocks + 1);
    g.far = amg->far;
    g.first = own_blocks.begin;
    un_amg_for_blocks(ctx, level, count_rows, &g);
    if (level->cut) count_beside(amg, &g, &odd_rows, &odd_entries);
    int32_t far = 0;
    for (int64_t t = 0; t < blocks; t++) {
        p->far_first[t] = far;
        for (int64_t s = 0; s < held; s++) {
            int32_t own = g.far[s * blocks + t];
            g.far[s * blocks + t] = far;
            far += own;
        }
        g.odd_rows[t + 1] += g.odd_rows[t];
        g.odd_entries[t + 1] += g.odd_entries[t];
    }
    p->far_first[blocks] = far;
    odd_rows += g.odd_rows[blocks];
    odd_entries += g.odd_entries[blocks];
    UN_AMG_NEED(ctx, p->row, p->capacity[1], odd_rows + 1);
    UN_AMG_NEED(ctx, p->col, p->capacity[2], odd_entries);
    UN_AMG_NEED(ctx, p->val, p->capacity[3], odd_entries);
    UN_AMG_NEED(ctx, p->far_row, p->capacity[5], far);
    UN_AMG_NEED(ctx, p->far_col, p->capacity[6], far);
    UN_AMG_NEED(ctx, p->far_val, p->capacity[7], far);
    p->row[0] = 0;
    un_amg_for_blocks(ctx, level, fill_rows, &g);
    if (!level->cut) return UN_OK;
    fill_beside(&g, g.odd_rows[blocks]);
    return send_far(amg, level, p);
}

/* ---- vectors ---- */

typedef struct move {
    const un_amg_level *level;
    const un_amg_means *p;
    float *to;
    const float *from;
} move;

static void restrict_block(void *arg, int64_t begin, int64_t end)
{
    const move *m = arg;
    const un_amg_means *p = m->p;
    int64_t block = begin / m->level->grain;
    int32_t first = m->level->first[block];
    uint32_t count = (uint32_t)(m->level->first[block + 1] - first);
    float *to = m->to + first;
    memset(to, 0, count * sizeof *to);
    for (int64_t i = begin; i < end; i++) {
        int32_t a = p->pair[i][0];
        if (a > UN_AMG_ODD) {
            uint32_t u = (uint32_t)(a - first), v = (uint32_t)(p->pair[i][1] - first);
            float half = 0.5f * m->from[i];
            if (u < count) to[u] += half;
            if (v < count) to[v] += half;
        } else
            for (int32_t k = p->row[UN_AMG_ODD - a]; k < p->row[UN_AMG_ODD - a + 1]; k++) {
                uint32_t u = (uint32_t)(p->col[k] - first);
                if (u < count) to[u] += p->val[k] * m->from[i];
            }
    }
}

static void restrict_far(void *arg, int64_t begin, int64_t end)
{
    const move *m = arg;
    const un_amg_means *p = m->p;
    int64_t block = begin / m->level->grain;
    (void)end;
    for (int32_t k = p->far_first[block]; k < p->far_first[block + 1]; k++)
        m->to[p->far_col[k]] += p->far_val[k] * m->from[p->far_row[k]];
}

void un_amg_restrict_means(un_context *ctx, const un_amg_level *level, const un_amg_means *p,
                           float *coarse, const float *fine)
{
    move m = {level, p, coarse, fine};
    un_amg_for_blocks(ctx, level, restrict_block, &m);
    un_halo_share(level->far, (float *)fine, sizeof *fine);
    if (level->n > level->grain) un_amg_for_blocks(ctx, level, restrict_far, &m);
}

static void prolong_block(void *arg, int64_t begin, int64_t end)
{
    const move *m = arg;
    const un_amg_means *p = m->p;
    const float *from = m->from;
    for (int64_t i = begin; i < end; i++) {
        int32_t a = p->pair[i][0], b = p->pair[i][1];
        float sum = 0;
        if (a > UN_AMG_ODD) {
            if (a >= 0) sum += from[a];
            if (b >= 0) sum += from[b];
            sum *= 0.5f;
        } else
            for (int32_t k = p->row[UN_AMG_ODD - a]; k < p->row[UN_AMG_ODD - a + 1]; k++)
                sum += p->val[k] * from[p->col[k]];
        m->to[i] += sum;
    }
}

void un_amg_prolong_means(un_context *ctx, const un_amg_level *level, const un_amg_means *p,
                          float *fine, const float *coarse)
{
    move m = {level, p, fine, coarse};
    un_amg_for_blocks(ctx, level, prolong_block, &m);
}
