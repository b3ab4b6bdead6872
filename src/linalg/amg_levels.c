/* Levels of the aggregation multigrid: the rows of a graph made ready to sweep, and Galerkin sums
 * over aggregates.
 *
 * With prolongation that is 1 inside an aggregate, A_c = P^T A P sums entries over pairs of
 * aggregates. Coarse matrices are kept as off-diagonal entries and row sums ("excess"): both are
 * only ever added, so a part whose rows sum to zero keeps this exactly in floats, and the diagonal
 * follows from them. */
#include "linalg/amg.h"

/* Blocks: enough to keep threads busy, but large, since aggregates and sweeps are worse at their
 * edges. */
#define BLOCK_ROWS_MIN 4096
#define BLOCKS 32
/* Systems with more rows are for many ranks, which share blocks out: they have smaller ones, and on
 * coarse levels, where ranks would wait for the one with the largest block, far smaller ones. So do
 * coarse levels of grids of any size. */
#define ROWS_SHARED ((int64_t)1 << 20)
#define BLOCK_ROWS_SHARED 4096
#define BLOCK_ROWS_COARSE 512
/* Levels of at most this many rows are gathered: a sweep over them costs less than its messages. */
#define ROWS_GATHERED 8192
#define ROWS_GATHERED_SHARED 1024
/* An entry below this share of its row's diagonal counts as zero: on lattices some couplings cancel
 * up to round-off. */
#define DROP 1e-7f
/* The smoother's diagonal is raised where couplings to other blocks exceed this share of it. */
#define OUTER_MAX 0.9f
/* Row sums below this share of the diagonal are round-off; as in components.c. */
#define ANCHOR 1e-10
/* A row stays out of the coarse level if its sum exceeds this share of its couplings: a sweep
 * solves it, and in an aggregate such a stiff row would hold the others back [Notay 2010]. */
#define DOMINANT 1.f
/* Scaled diagonals below this are left to the caller: products with the inverse would overflow
 * floats. */
#define DIAGONAL_MIN 1e-24f
/* Room for entries below the diagonal in a row of A; lattices have 3 and 4, graded tets 4.3. Blocks
 * with more are filled again. */
#define ROW_ENTRIES 5

int64_t un_amg_grain(int64_t n, int64_t finest, bool small)
{
    if (finest <= ROWS_SHARED) {
        int64_t fewest = small && n < finest ? BLOCK_ROWS_COARSE : BLOCK_ROWS_MIN;
        return un_max64(fewest, (n + BLOCKS - 1) / BLOCKS);
    }
    int64_t least = n < finest ? BLOCK_ROWS_COARSE : BLOCK_ROWS_SHARED;
    return un_max64(least, (n + UN_AMG_BLOCKS_MAX - 1) / UN_AMG_BLOCKS_MAX);
}

int64_t un_amg_gathered(int64_t finest, bool small)
{
    return finest <= ROWS_SHARED && !small ? ROWS_GATHERED : ROWS_GATHERED_SHARED;
}

typedef struct build {
    un_amg_level *level;
    const un_amg_graph *g;
    float *diagonal, *excess;
    bool sums;                                  /* row sums are kept on every level */
    bool some;                                  /* there is room for ROW_ENTRIES in each row */
    int32_t *outer_id;                          /* rows with couplings to other blocks */
    int32_t missing[UN_AMG_BLOCKS_MAX];         /* by block: entries that found no room */
    int32_t outer_rows[UN_AMG_BLOCKS_MAX];      /* how many, from the block's first row on */
    int32_t outer_first[UN_AMG_BLOCKS_MAX + 1]; /* by block: its entries, later their place */
} build;

/* Where a block's entries start: at most half of a symmetric graph's entries before its first row i
 * are in lower halves of blocks. Many entries of A may be zero, so at first there is room for some
 * only. Each block has room for one more, so that an entry can be written before it is known
 * whether it counts. */
static int32_t room_before(const build *p, int64_t i, int64_t block)
{
    const un_amg_graph *g = p->g;
    int64_t entries = g->row[i] - (g->val_a ? i : 0);
    return (int32_t)((p->some ? ROW_ENTRIES * i : entries / 2) + block);
}

/* A row's diagonal, and whether the row is fit for the coarse level; entries up to `end` may be in
 * the lower half. */
typedef struct own {
    float diagonal, excess, couplings;
    int32_t end;
} own;

static inline own own_of_a(const un_amg_graph *g, int32_t i)
{
    double sum = 0, all = 0;
    int32_t at = g->row[i];
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        sum += g->val_a[k];
        all += fabs(g->val_a[k]);
        at += g->col[k] < i;
    }
    double diagonal = at < g->row[i + 1] && g->col[at] == i ? g->val_a[at] : 0;
    return (own){(float)(diagonal * g->scale),
                 fabs(sum) > ANCHOR * diagonal ? (float)(sum * g->scale) : 0,
                 (float)((all - diagonal) * g->scale), at};
}

static inline own own_of_coarse(const un_amg_graph *g, int32_t i)
{
    own o = {g->excess[i], g->excess[i], 0, g->row[i + 1]};
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        o.diagonal -= g->val[k];
        o.couplings += fabsf(g->val[k]);
    }
    return o;
}

/* All rows of a block, without the couplings to other blocks. A processor cannot predict which
 * entries stay: hence no branches. */
static inline void fill_block(build *p, int32_t begin, int32_t end, bool of_a)
{
    const un_amg_graph g = *p->g;
    const un_amg_level level = *p->level;
    int64_t block = begin / level.grain;
    int32_t *row = level.row + block, *outer_id = p->outer_id + begin;
    int32_t at = room_before(p, begin, block), room = room_before(p, end, block);
    int32_t outer_rows = 0, outer_all = 0, missing = 0;
    for (int32_t i = begin; i < end; i++) {
        own o = of_a ? own_of_a(&g, i) : own_of_coarse(&g, i);
        bool out = !(o.diagonal > DIAGONAL_MIN) || o.excess >= DOMINANT * o.couplings;
        level.aggregate[i] = out ? UN_AMG_OUT : UN_AMG_FREE;
        level.inverse[i] = o.diagonal > DIAGONAL_MIN ? 1 / o.diagonal : 0;
        p->diagonal[i] = o.diagonal;
        if (of_a || p->sums) p->excess[i] = o.excess;
        float limit = DROP * o.diagonal;
        int32_t outer = 0;
        row[i] = at;
        for (int32_t k = g.row[i]; k < o.end; k++) {
            int32_t j = g.col[k];
            float val = of_a ? (float)(g.val_a[k] * g.scale) : g.val[k];
            bool large = fabsf(val) > limit, inside = (j >= begin) & (j < end);
            level.col[at] = j;
            level.val[at] = val;
            bool lower = large & inside & (j < i);
            missing += lower & (at == room);
            at += lower & (at < room);
            outer += large & !inside;
        }
        for (int32_t k = g.row[i + 1] - 1; k >= o.end && g.col[k] >= end; k--)
            outer += fabsf(un_amg_entry(&g, k)) > limit;
        outer_id[outer_rows] = i;
        outer_rows += outer > 0;
        outer_all += outer;
    }
    row[end] = at;
    p->missing[block] = missing;
    p->outer_rows[block] = outer_rows;
    p->outer_first[block + 1] = outer_all;
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    build *p = arg;
    if (p->g->val_a)
        fill_block(p, (int32_t)begin, (int32_t)end, true);
    else
        fill_block(p, (int32_t)begin, (int32_t)end, false);
}

static void fill_outer(void *arg, int64_t begin, int64_t end)
{
    build *p = arg;
    const un_amg_graph *g = p->g;
    un_amg_level *level = p->level;
    int64_t block = begin / level->grain;
    int32_t at = p->outer_first[block], first = level->outer_first[block];
    for (int32_t q = first; q < level->outer_first[block + 1]; q++) {
        int32_t i = p->outer_id[begin + q - first];
        float d = p->diagonal[i], limit = DROP * d, sum = 0;
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
            int32_t j = g->col[k];
            float val = un_amg_entry(g, k);
            if ((j >= begin && j < end) || !(fabsf(val) > limit)) continue;
            level->outer_col[at] = j;
            level->outer_val[at++] = val;
            sum += fabsf(val);
        }
        float raise = sum > OUTER_MAX * d ? 0.5f * (sum - OUTER_MAX * d) : 0;
        level->outer_id[q] = i;
        level->outer_row[q + 1] = at;
        level->outer_raise[q] = raise;
        if (d > DIAGONAL_MIN) level->inverse[i] = 1 / (d + raise);
    }
}

un_status un_amg_build_level(un_amg *amg, un_amg_level *level, const un_amg_graph *g, bool finest)
{
    un_context *ctx = amg->ctx;
    size_t *capacity = level->capacity;
    int32_t n = g->n;
    level->n = n; /* the first level is the finest */
    level->grain = un_amg_grain(n, amg->level[0].n, un_amg_small(amg));
    if (!level->cut) level->own = (un_part){0, n};
    int64_t blocks = un_amg_blocks(level);
    UN_AMG_NEED(ctx, level->row, capacity[0], n + blocks);
    UN_AMG_NEED(ctx, level->outer_first, capacity[1], blocks + 1);
    UN_AMG_NEED(ctx, level->inverse, capacity[2], n);
    UN_AMG_NEED(ctx, level->aggregate, capacity[3], n);
    UN_AMG_NEED(ctx, level->first, capacity[4], blocks + 1);
    UN_AMG_NEED(ctx, level->b, capacity[5], n);
    UN_AMG_NEED(ctx, level->x, capacity[6], n);
    UN_AMG_NEED(ctx, amg->member, amg->capacity_member, n);
    bool v_cycle = amg->scheme == UN_AMG_SMOOTHED || amg->scheme == UN_AMG_GEOMETRIC;
    bool whole = !finest || amg->scheme == UN_AMG_CHENTANEZ;
    if (whole) UN_AMG_NEED(ctx, level->diagonal, capacity[7], n);
    if (whole || v_cycle) UN_AMG_NEED(ctx, level->v, capacity[8], n);
    if (whole && amg->scheme != UN_AMG_SMOOTHED) UN_AMG_NEED(ctx, level->y, capacity[9], n);
    if (whole && !v_cycle) UN_AMG_NEED(ctx, level->w, capacity[18], n);
    bool sums = amg->scheme == UN_AMG_CHENTANEZ;
    if (sums) UN_AMG_NEED(ctx, level->excess, capacity[19], n);
    /* The row sums of the finest level are kept in its vectors until it is swept, and so is its
     * diagonal, unless cycles need them. */
    build p = {.level = level,
               .g = g,
               .diagonal = whole ? level->diagonal : level->b,
               .excess = sums ? level->excess : level->x,
               .sums = sums,
               .outer_id = amg->member};
    p.some = g->val_a && g->row[n] - n > 2 * ROW_ENTRIES * (int64_t)n;
    for (bool fits = false; !fits;) {
        int32_t room = room_before(&p, n, blocks);
        UN_AMG_NEED(ctx, level->col, capacity[10], room);
        UN_AMG_NEED(ctx, level->val, capacity[11], room);
        un_amg_for_blocks(ctx, level, fill_rows, &p);
        fits = true;
        for (int64_t k = 0; k < blocks && p.some; k++) fits &= p.missing[k] == 0;
        p.some = false;
    }
    level->outer_first[0] = 0;
    for (int64_t k = 0; k < blocks; k++) {
        level->outer_first[k + 1] = level->outer_first[k] + p.outer_rows[k];
        p.outer_first[k + 1] += p.outer_first[k];
    }
    int32_t outer_rows = level->outer_first[blocks], outer = p.outer_first[blocks];
    UN_AMG_NEED(ctx, level->outer_id, capacity[12], outer_rows);
    UN_AMG_NEED(ctx, level->outer_row, capacity[13], outer_rows + 1);
    UN_AMG_NEED(ctx, level->outer_raise, capacity[14], outer_rows);
    UN_AMG_NEED(ctx, level->outer_sum, capacity[15], outer_rows);
    UN_AMG_NEED(ctx, level->outer_col, capacity[16], outer);
    UN_AMG_NEED(ctx, level->outer_val, capacity[17], outer);
    level->outer_row[0] = 0;
    un_amg_for_blocks(ctx, level, fill_outer, &p);
    return UN_OK;
}

/* ---- Galerkin sums ---- */

/* Few blocks, since each has a marker as long as the coarse level. */
#define GATHER_BLOCKS_MAX 16
/* Room for entries of a coarse row; lattices and graded tets have 12 to 15. If rows have more, the
 * sums are made again. */
#define COARSE_ENTRIES 20

typedef struct gather {
    const un_amg_level *fine;
    const un_amg_graph *g;
    int32_t coarse_count;
    un_part held; /* coarse rows of this rank */
    int64_t grain;
    const int32_t *member_first, *member;
    int32_t *marker;
    un_amg_full *full;
    int64_t *room;  /* by block, and the end: where its entries start */
    int32_t *count; /* by block: its entries, including those without room */
} gather;

/* Lists the members of each aggregate, one aggregate of a block after the other; then -1 for rows
 * in none. */
static void list_members(void *arg, int64_t begin, int64_t end)
{
    un_amg *amg = ((void **)arg)[0];
    const un_amg_level *level = ((void **)arg)[1];
    int32_t *first = amg->member_first;
    int64_t block = begin / level->grain;
    int32_t c0 = level->first[block], c1 = level->first[block + 1], at = (int32_t)begin;
    for (int32_t c = c0; c < c1; c++) first[c] = 0;
    for (int64_t i = begin; i < end; i++)
        if (level->aggregate[i] >= 0) first[level->aggregate[i]]++;
    for (int32_t c = c0; c < c1; c++) {
        at += first[c];
        first[c] = at;
    }
    for (int64_t i = end - 1; i >= begin; i--)
        if (level->aggregate[i] >= 0) amg->member[--first[level->aggregate[i]]] = (int32_t)i;
    for (; at < end; at++) amg->member[at] = -1;
}

/* Row by row, the aggregates that the rows of an aggregate couple to; marker holds the place of
 * each. Rows are counted from the first of this rank. */
static void gather_rows(void *arg, int64_t begin, int64_t end)
{
    gather *p = arg;
    const un_amg_graph *g = p->g;
    const int32_t *aggregate = p->fine->aggregate;
    un_amg_full *full = p->full;
    int64_t block = begin / p->grain, last = p->fine->own.end;
    int32_t *marker = p->marker + block * p->coarse_count;
    int32_t *col = full->col + p->room[block], at = 0;
    float *val = full->val + p->room[block];
    int64_t room = p->room[block + 1] - p->room[block];
    for (int32_t c = 0; c < p->coarse_count; c++) marker[c] = -1;
    for (int32_t c = (int32_t)(p->held.begin + begin); c < p->held.begin + end; c++) {
        int32_t start = at;
        float excess = 0;
        for (int32_t m = p->member_first[c]; m < last; m++) {
            int32_t i = p->member[m];
            if (i < 0 || aggregate[i] != c) break;
            excess += g->excess[i];
            for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
                int32_t other = aggregate[g->col[k]];
                if (other == c) continue;
                float entry = un_amg_entry(g, k);
                if (other < 0) {
                    excess -= entry; /* x = 0 there: the coupling stays on the diagonal */
                    continue;
                }
                if (entry == 0) continue;
                int32_t place = marker[other];
                if (place < start) {
                    marker[other] = place = at++;
                    if (place >= room) continue;
                    col[place] = other;
                    val[place] = entry;
                } else if (place < room)
                    val[place] += entry;
            }
        }
        full->row[c + 1] = at - start;
        full->excess[c] = excess;
    }
    p->count[block] = at;
}

void un_amg_close_rows(un_amg_full *full, int32_t coarse_count, int64_t grain, const int64_t *room,
                       const int32_t *count, un_amg_graph *coarse)
{
    full->row[0] = 0;
    for (int32_t c = 0; c < coarse_count; c++) full->row[c + 1] += full->row[c];
    for (int64_t k = 1; k * grain < coarse_count; k++) {
        int32_t to = full->row[k * grain];
        memmove(full->col + to, full->col + room[k], (size_t)count[k] * sizeof *full->col);
        memmove(full->val + to, full->val + room[k], (size_t)count[k] * sizeof *full->val);
    }
    *coarse = (un_amg_graph){.n = coarse_count,
                             .row = full->row,
                             .col = full->col,
                             .val = full->val,
                             .excess = full->excess};
}

/* The same where ranks have gathered their own rows: entries stand among those of all ranks. */
static un_status close_own_rows(un_amg *amg, const gather *p, int64_t blocks, un_amg_graph *coarse)
{
    un_context *ctx = amg->ctx;
    un_amg_full *full = p->full;
    int32_t *row = full->row;
    int64_t entries = 0;
    for (int64_t k = 0; k < blocks; k++) entries += p->count[k];
    un_range range = un_ranks_range(ctx, entries);
    size_t room = (size_t)un_max64(range.total, p->room[blocks]) + 1;
    UN_TRY(un_array_reserve(ctx, (void **)&full->col, &full->capacity[2], room, sizeof *full->col));
    UN_TRY(un_array_reserve(ctx, (void **)&full->val, &full->capacity[3], room, sizeof *full->val));
    for (int64_t k = 1, to = blocks > 0 ? p->count[0] : 0; k < blocks; to += p->count[k++]) {
        memmove(full->col + to, full->col + p->room[k], (size_t)p->count[k] * sizeof *full->col);
        memmove(full->val + to, full->val + p->room[k], (size_t)p->count[k] * sizeof *full->val);
    }
    memmove(full->col + range.begin, full->col, (size_t)entries * sizeof *full->col);
    memmove(full->val + range.begin, full->val, (size_t)entries * sizeof *full->val);
    row[p->held.begin] = (int32_t)range.begin;
    for (int64_t c = p->held.begin; c < p->held.end; c++) row[c + 1] += row[c];
    row[p->coarse_count] = (int32_t)range.total;
    *coarse = (un_amg_graph){.n = p->coarse_count,
                             .row = full->row,
                             .col = full->col,
                             .val = full->val,
                             .excess = full->excess};
    return UN_OK;
}

un_status un_amg_build_coarse(un_amg *amg, const un_amg_level *fine, const un_amg_graph *g,
                              int32_t coarse_count, int slot, un_amg_graph *coarse)
{
    un_context *ctx = amg->ctx;
    un_amg_full *full = &amg->full[slot];
    un_part fine_blocks = un_amg_own_blocks(fine);
    un_part held = {fine->first[fine_blocks.begin], fine->first[fine_blocks.end]};
    int64_t rows = held.end - held.begin;
    int64_t grain = un_max64(256, (rows + GATHER_BLOCKS_MAX - 1) / GATHER_BLOCKS_MAX);
    int64_t blocks = (rows + grain - 1) / grain, room[GATHER_BLOCKS_MAX + 1] = {0};
    int32_t count[GATHER_BLOCKS_MAX];
    UN_AMG_NEED(ctx, amg->member_first, amg->capacity_member_first, coarse_count);
    UN_AMG_NEED(ctx, amg->member, amg->capacity_member, fine->n);
    UN_AMG_NEED(ctx, amg->marker, amg->capacity_marker, blocks * coarse_count);
    UN_AMG_NEED(ctx, full->row, full->capacity[0], (size_t)coarse_count + 1);
    UN_AMG_NEED(ctx, full->excess, full->capacity[1], coarse_count);
    void *listing[2] = {amg, (void *)fine};
    un_amg_for_blocks(ctx, fine, list_members, listing);
    gather p = {fine,        g,           coarse_count, held, grain, amg->member_first,
                amg->member, amg->marker, full,         room, count};
    for (int64_t k = 0; k < blocks; k++)
        room[k + 1] = room[k] + COARSE_ENTRIES * un_min64(grain, rows - k * grain);
    for (bool fits = false; !fits;) {
        UN_AMG_NEED(ctx, full->col, full->capacity[2], room[blocks]);
        UN_AMG_NEED(ctx, full->val, full->capacity[3], room[blocks]);
        un_parallel_for(ctx, rows, grain, gather_rows, &p);
        fits = true;
        for (int64_t k = 0; k < blocks; k++) fits &= count[k] <= room[k + 1] - room[k];
        if (!fits) /* now the needed room is known */
            for (int64_t k = 0; k < blocks; k++) room[k + 1] = room[k] + count[k];
    }
    if (fine->cut) return close_own_rows(amg, &p, blocks, coarse);
    un_amg_close_rows(full, coarse_count, grain, room, count, coarse);
    return UN_OK;
}
