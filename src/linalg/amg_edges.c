/* P^T A P for transfers that are means of two, coupling by coupling.
 *
 * With row sums e, A = diag(e) - sum over pairs i > j of a_ij (1_i - 1_j)(1_i - 1_j)^T, so that
 *
 *     P^T A P = sum_i e_i p_i p_i^T - sum_{i > j} a_ij d d^T,   d = p_i - p_j,   p_i row i of P.
 *
 * Most pairs of neighbours share a parent: p_i = (k + l) / 2 and p_j = (k + m) / 2 leave d = (l -
 * m) / 2, and the coupling adds a_ij / 4 to one coarse coupling. A product of sparse matrices would
 * use each coupling eight times and add terms that cancel.
 *
 * Coarse rows belong to blocks as in amg_mean.c. A block sums the lower half of its own rows and
 * spills its contributions to rows of other blocks, which add them in the order of the blocks. The
 * matrix is kept as off-diagonal entries and row sums, as in amg_levels.c: where e = 0 and rows of
 * P sum to 1, coarse row sums are exactly zero. The air, -1, acts as one more coarse row: it takes
 * the weight that rows of P with a sum below 1 lack, and e_i is a coupling to it. */
#include "linalg/amg.h"

/* Initial room by block: chunks beyond one for each coarse row, and spilled values. If it is too
 * small, the sums are made again. */
#define CHUNK_SHARE 0.125
#define SPILL_SHARE 6
#define ROOM_MIN 4096
/* Entries below this share of the row's largest are round-off of terms that cancel. */
#define PRUNE 1e-5f

/* One block: its coarse rows, and its contributions to others. */
typedef struct target {
    const int32_t *starts; /* by block: its first coarse row */
    int32_t first;
    uint32_t count;
    int32_t *size; /* by row: entries */
    float *excess;
    un_amg_chunk *chunk; /* the first chunk of a row has the row's number */
    int32_t *next;       /* by chunk: the next chunk of its row, -1: none */
    int32_t chunk_count, chunk_room;
    un_amg_spill *spill;
    int32_t spill_count, spill_room;               /* counts go on beyond the room */
    int32_t last;                                  /* the block last spilled to */
    int32_t *head, *tail;                          /* by block: the values for it */
    int32_t outer_count, entry_count, entry_first; /* of the whole matrix */
} target;

typedef struct edges {
    const un_amg_level *level;
    const un_amg_means *p;
    const float *excess;
    un_amg_full *full;
    int32_t *next;          /* by coarse row: where its next entry goes */
    un_amg_records spilled; /* by blocks of other ranks */
    target *target;         /* by block */
} edges;

static void start_spilling(target *t, int64_t blocks)
{
    t->spill_count = 0;
    for (int64_t k = 0; k < blocks; k++) t->head[k] = -1;
}

static void spill(target *t, int32_t row, int32_t col, float value)
{
    const int32_t *first = t->starts;
    int32_t k = t->last, at = t->spill_count++;
    if (at >= t->spill_room) return;
    while (row < first[k]) k--;
    while (row >= first[k + 1]) k++;
    t->spill[at] = (un_amg_spill){row, col, value, -1};
    if (t->head[k] < 0)
        t->head[k] = at;
    else
        t->spill[t->tail[k]].next = at;
    t->tail[k] = at;
    t->last = k;
}

static void clear(target *t, int32_t chunk)
{
    t->next[chunk] = -1;
    for (int k = 0; k < UN_AMG_CHUNK; k++) {
        t->chunk[chunk].col[k] = -1;
        t->chunk[chunk].val[k] = 0;
    }
}

/* Adds an entry to a row; chunk: the row's last one. */
static void append(target *t, int32_t chunk, uint32_t r, int32_t col, float value)
{
    int32_t at = t->size[r] % UN_AMG_CHUNK;
    if (at == 0 && t->size[r] > 0) {
        int32_t next = t->chunk_count++;
        if (next >= t->chunk_room) return;
        t->next[chunk] = next;
        chunk = next;
        clear(t, chunk);
    }
    t->chunk[chunk].col[at] = col;
    t->chunk[chunk].val[at] = value;
    t->size[r]++;
}

/* Adds to the column's entry if there is one. With vector types of gcc and clang, one instruction
 * compares all columns; without them the compiler compares one after the other. */
typedef int32_t columns __attribute__((vector_size(sizeof(int32_t) * UN_AMG_CHUNK), may_alias));
typedef float values __attribute__((vector_size(sizeof(float) * UN_AMG_CHUNK), may_alias));
typedef int64_t halves __attribute__((vector_size(sizeof(int32_t) * UN_AMG_CHUNK), may_alias));

static inline bool add_to_chunk(un_amg_chunk *chunk, int32_t col, float value)
{
    columns *own = (columns *)chunk->col;
    values *val = (values *)chunk->val, all = value - (values){0};
    columns same = *own == col;
    halves hit = (halves)same;
    *val += (values)((columns)all & same);
    return (hit[0] | hit[1] | hit[2] | hit[3]) != 0;
}

/* Adds to the coupling of two coarse rows. -1 is the air, where the value is zero: a row's coupling
 * to it is in the row's sum. */
static inline void add_coupling(target *t, int32_t k, int32_t l, float value)
{
    int32_t row = k > l ? k : l, other = k > l ? l : k;
    if (k == l) return;
    uint32_t r = (uint32_t)(row - t->first);
    if (r >= t->count) {
        spill(t, row, other, value);
        return;
    }
    if (other < 0) {
        t->excess[r] -= value;
        return;
    }
    int32_t chunk = (int32_t)r;
    while (!add_to_chunk(t->chunk + chunk, other, value)) {
        int32_t next = t->next[chunk];
        if (next < 0) {
            append(t, chunk, r, other, value);
            return;
        }
        chunk = next;
    }
}

static void parents_of(const un_amg_means *p, int32_t i, un_amg_parents *out)
{
    const int32_t *pair = p->pair[i];
    out->count = 0;
    if (pair[0] <= UN_AMG_ODD) {
        int32_t odd = UN_AMG_ODD - pair[0];
        for (int32_t k = p->row[odd]; k < p->row[odd + 1]; k++) {
            out->id[out->count] = p->col[k];
            out->weight[out->count++] = p->val[k];
        }
    } else if (pair[0] >= 0) {
        bool same = pair[0] == pair[1];
        out->id[0] = pair[0];
        out->weight[0] = same ? 1 : 0.5f;
        out->count = 1;
        if (same || pair[1] < 0) return;
        out->id[1] = pair[1];
        out->weight[1] = 0.5f;
        out->count = 2;
    }
}

/* For rows of P that are not pairs. */
static void add_edge_in_full(target *t, const un_amg_means *p, int32_t i, int32_t j, float entry)
{
    un_amg_parents d, other;
    parents_of(p, i, &d);
    other.count = 0;
    if (j >= 0) parents_of(p, j, &other);
    int32_t own = d.count;
    for (int32_t q = 0; q < other.count; q++) {
        int32_t m = 0;
        while (m < own && d.id[m] != other.id[q]) m++;
        if (m == own) {
            UN_ASSERT(d.count < UN_AMG_PARENTS_MAX);
            m = d.count++;
            d.id[m] = other.id[q];
            d.weight[m] = 0;
        }
        d.weight[m] -= other.weight[q];
    }
    float sum = 0;
    for (int32_t q = 0; q < d.count; q++) sum += d.weight[q];
    for (int32_t q = 0; q < d.count; q++) {
        if (d.weight[q] == 0) continue;
        if (sum != 0) add_coupling(t, d.id[q], -1, entry * d.weight[q] * sum);
        for (int32_t m = 0; m < q; m++)
            if (d.weight[m] != 0)
                add_coupling(t, d.id[q], d.id[m], -entry * d.weight[q] * d.weight[m]);
    }
}

/* Adds -entry d d^T, where row i has the parents a and b, and row j, or the air, has c and d. */
static inline void add_pairs(target *t, int32_t a, int32_t b, int32_t c, int32_t d, float entry)
{
    float quarter = 0.25f * entry;
    bool a_shared = (a == c) | (a == d), b_shared = (b == c) | (b == d);
    if (a_shared | b_shared) {
        int32_t shared = a_shared ? a : b;
        add_coupling(t, a_shared ? b : a, shared == c ? d : c, quarter);
        return;
    }
    add_coupling(t, a, b, -quarter);
    add_coupling(t, c, d, -quarter);
    add_coupling(t, a, c, quarter);
    add_coupling(t, a, d, quarter);
    add_coupling(t, b, c, quarter);
    add_coupling(t, b, d, quarter);
}

/* j = -1: the air, which is its own parent. */
static inline void add_edge(target *t, const un_amg_means *p, int32_t i, int32_t j, float entry)
{
    static const int32_t air[2] = {-1, -1};
    const int32_t *own = p->pair[i], *other = j < 0 ? air : p->pair[j];
    if (own[0] <= UN_AMG_ODD || other[0] <= UN_AMG_ODD)
        add_edge_in_full(t, p, i, j, entry);
    else
        add_pairs(t, own[0], own[1], other[0], other[1], entry);
}

static void add_block(void *arg, int64_t begin, int64_t end)
{
    edges *p = arg;
    const un_amg_level *level = p->level;
    int64_t block = begin / level->grain;
    const int32_t *row = level->row + block;
    target t = p->target[block];
    t.chunk_count = (int32_t)t.count;
    start_spilling(&t, un_amg_blocks(level));
    memset(t.size, 0, t.count * sizeof *t.size);
    for (int32_t r = 0; r < (int32_t)t.count; r++) clear(&t, r);
    memset(t.excess, 0, t.count * sizeof *t.excess);
    for (int32_t i = (int32_t)begin; i < end; i++) {
        for (int32_t k = row[i]; k < row[i + 1]; k++)
            add_edge(&t, p->p, i, level->col[k], level->val[k]);
        if (p->excess[i] != 0) add_edge(&t, p->p, i, -1, -p->excess[i]);
    }
    for (int32_t q = level->outer_first[block]; q < level->outer_first[block + 1]; q++)
        for (int32_t k = level->outer_row[q]; k < level->outer_row[q + 1]; k++)
            if (level->outer_col[k] < begin)
                add_edge(&t, p->p, level->outer_id[q], level->outer_col[k], level->outer_val[k]);
    p->target[block] = t;
}

static void add_record(target *t, const un_amg_record *r)
{
    add_coupling(t, r->row, r->col, r->value);
}

/* What own blocks have spilled for those of other ranks, to them. */
static un_status send_spilled(un_amg *amg, edges *p)
{
    un_part own = un_amg_own_blocks(p->level);
    p->spilled.count = 0;
    for (int64_t b = own.begin; b < own.end; b++)
        for (int64_t to = 0; to < un_amg_blocks(p->level); to++) {
            if (to >= own.begin && to < own.end) continue;
            const target *t = &p->target[b];
            for (int32_t k = t->head[to]; k >= 0; k = t->spill[k].next) {
                const un_amg_spill *s = &t->spill[k];
                UN_TRY(un_amg_record_add(
                    amg, &p->spilled, (un_amg_record){(int32_t)to, s->row, s->col, s->value, 0}));
            }
        }
    return un_amg_records_send(amg, p->level, &p->spilled);
}

/* Adds the values that other blocks have spilled. */
static void collect_block(void *arg, int64_t begin, int64_t end)
{
    edges *p = arg;
    const un_amg_level *level = p->level;
    (void)end;
    int64_t block = begin / level->grain;
    target t = p->target[block];
    const un_amg_records *far = &p->spilled;
    un_part own = un_amg_own_blocks(level);
    int32_t k = far->first[block], last = k + far->before[block];
    for (; k < last; k++) add_record(&t, &far->sorted[k]);
    for (int64_t from = own.begin; from < own.end; from++) {
        const target *other = &p->target[from];
        for (int32_t q = other->head[block]; q >= 0; q = other->spill[q].next) {
            const un_amg_spill *s = &other->spill[q];
            add_coupling(&t, s->row, s->col, s->value);
        }
    }
    for (; k < far->first[block + 1]; k++) add_record(&t, &far->sorted[k]);
    p->target[block].chunk_count = t.chunk_count;
}

/* Entry k of a row; the chunk of entry k - 1 is known. */
static inline void step(const target *t, int32_t *chunk, int32_t k)
{
    if (k > 0 && k % UN_AMG_CHUNK == 0) *chunk = t->next[*chunk];
}

/* Drops entries that cancelled, and counts couplings to rows of other blocks. */
static void prune_block(void *arg, int64_t begin, int64_t end)
{
    edges *p = arg;
    (void)end;
    target *t = &p->target[begin / p->level->grain];
    t->outer_count = 0;
    for (int32_t r = 0; r < (int32_t)t->count; r++) {
        int32_t from = r, to = r, size = t->size[r], kept = 0;
        float most = 0;
        for (int32_t k = 0; k < size; k++) {
            step(t, &from, k);
            float value = fabsf(t->chunk[from].val[k % UN_AMG_CHUNK]);
            most = value > most ? value : most;
        }
        from = r;
        for (int32_t k = 0; k < size; k++) {
            step(t, &from, k);
            float val = t->chunk[from].val[k % UN_AMG_CHUNK];
            int32_t col = t->chunk[from].col[k % UN_AMG_CHUNK];
            if (!(fabsf(val) > PRUNE * most)) continue;
            step(t, &to, kept);
            t->chunk[to].col[kept % UN_AMG_CHUNK] = col;
            t->chunk[to].val[kept++ % UN_AMG_CHUNK] = val;
            t->outer_count += col < t->first;
        }
        t->size[r] = kept;
    }
}

/* ---- the whole matrix: each entry of the lower half stands for two ---- */

/* Counts a block's own entries; entries of other blocks' rows are handed to those blocks. */
static void count_block(void *arg, int64_t begin, int64_t end)
{
    edges *p = arg;
    (void)end;
    int64_t block = begin / p->level->grain;
    target t = p->target[block];
    int32_t *length = p->full->row + 1;
    start_spilling(&t, un_amg_blocks(p->level));
    for (int32_t r = 0; r < (int32_t)t.count; r++) {
        int32_t c = t.first + r, chunk = r;
        length[c] = t.size[r];
        for (int32_t k = 0; k < t.size[r]; k++) {
            step(&t, &chunk, k);
            int32_t other = t.chunk[chunk].col[k % UN_AMG_CHUNK];
            if (other < t.first)
                spill(&t, other, c, t.chunk[chunk].val[k % UN_AMG_CHUNK]);
            else
                length[other]++; /* an earlier row */
        }
    }
    p->target[block] = t;
}

/* Finds the places of a block's rows, counted from the block's first entry. */
static void place_block(void *arg, int64_t begin, int64_t end)
{
    edges *p = arg;
    (void)end;
    int64_t block = begin / p->level->grain;
    target *t = &p->target[block];
    int32_t *length = p->full->row + 1, at = 0;
    for (int64_t from = block + 1; from < un_amg_own_blocks(p->level).end; from++)
        for (int32_t k = p->target[from].head[block]; k >= 0; k = p->target[from].spill[k].next)
            length[p->target[from].spill[k].row]++;
    for (int32_t k = p->spilled.first[block]; k < p->spilled.first[block + 1]; k++)
        length[p->spilled.sorted[k].row]++;
    for (int32_t c = t->first; c < t->first + (int32_t)t->count; c++) {
        p->next[c] = at;
        at += length[c];
    }
    t->entry_count = at;
}

/* Lower entries come first, then those of rows below, in their order. */
static void mirror_block(void *arg, int64_t begin, int64_t end)
{
    edges *p = arg;
    (void)end;
    int64_t block = begin / p->level->grain;
    const target *t = &p->target[block];
    un_amg_full *full = p->full;
    int32_t *next = p->next, last = t->first + (int32_t)t->count;
    for (int32_t c = t->first; c < last; c++) next[c] += t->entry_first;
    for (int32_t c = t->first; c < last; c++) {
        int32_t chunk = c - t->first, size = t->size[chunk];
        for (int32_t k = 0; k < size; k++) {
            step(t, &chunk, k);
            int32_t other = t->chunk[chunk].col[k % UN_AMG_CHUNK], own = next[c]++;
            float val = t->chunk[chunk].val[k % UN_AMG_CHUNK];
            full->col[own] = other;
            full->val[own] = val;
            if (other < t->first) continue;
            int32_t back = next[other]++;
            full->col[back] = c;
            full->val[back] = val;
        }
    }
    for (int64_t from = block + 1; from < un_amg_own_blocks(p->level).end; from++)
        for (int32_t k = p->target[from].head[block]; k >= 0; k = p->target[from].spill[k].next) {
            const un_amg_spill *s = &p->target[from].spill[k];
            int32_t at = next[s->row]++;
            full->col[at] = s->col;
            full->val[at] = s->value;
        }
    for (int32_t k = p->spilled.first[block]; k < p->spilled.first[block + 1]; k++) {
        const un_amg_record *s = &p->spilled.sorted[k]; /* of later blocks, all of them */
        int32_t at = next[s->row]++;
        full->col[at] = s->col;
        full->val[at] = s->value;
    }
    for (int32_t c = t->first; c < last; c++) full->row[c + 1] = next[c];
}

/* Gives each block its part of the arrays. */
static un_status lay_out(un_amg *amg, edges *p, un_amg_full *full)
{
    int64_t blocks = un_amg_blocks(p->level), chunks = 0, spills = 0;
    for (int64_t b = 0; b < blocks; b++) {
        chunks += p->target[b].chunk_room;
        spills += p->target[b].spill_room;
    }
    UN_AMG_NEED(amg->ctx, amg->half, amg->capacity_half, chunks + 1);
    UN_AMG_NEED(amg->ctx, amg->half_next, amg->capacity_half_next, chunks);
    UN_AMG_NEED(amg->ctx, amg->spill, amg->capacity_spill, spills);
    /* at the beginning of a cache line */
    un_amg_chunk *half =
        (un_amg_chunk *)(((uintptr_t)amg->half + sizeof *half - 1) & ~(sizeof *half - 1));
    chunks = spills = 0;
    for (int64_t b = 0; b < blocks; b++) {
        target *t = &p->target[b];
        t->size = amg->half_size + t->first;
        t->excess = full->excess + t->first;
        t->chunk = half + chunks;
        t->next = amg->half_next + chunks;
        t->spill = amg->spill + spills;
        chunks += t->chunk_room;
        spills += t->spill_room;
    }
    return UN_OK;
}

/* Was there room for everything? If not, makes it for the next attempt. */
static bool fits(edges *p)
{
    bool all = true;
    for (int64_t b = 0; b < un_amg_blocks(p->level); b++) {
        target *t = &p->target[b];
        all &= t->spill_count <= t->spill_room && t->chunk_count <= t->chunk_room;
        t->spill_room = (int32_t)un_max64(t->spill_room, t->spill_count);
        if (t->chunk_count > t->chunk_room) t->chunk_room *= 2;
    }
    return all;
}

static un_status sum_edges(un_amg *amg, edges *p)
{
    un_context *ctx = amg->ctx;
    const un_amg_level *level = p->level;
    bool sent = !level->cut;
    for (bool done = false; !done;) {
        UN_TRY(lay_out(amg, p, p->full));
        un_amg_for_blocks(ctx, level, add_block, p);
        if (!fits(p)) continue;
        if (!sent) UN_TRY(send_spilled(amg, p));
        sent = true;
        un_amg_for_blocks(ctx, level, collect_block, p);
        done = fits(p);
    }
    un_amg_for_blocks(ctx, level, prune_block, p);
    return UN_OK;
}

/* The whole matrix, from its lower half. */
static un_status mirror(un_amg *amg, edges *p, int32_t coarse_count)
{
    un_context *ctx = amg->ctx;
    const un_amg_level *level = p->level;
    un_amg_full *full = p->full;
    un_part own = un_amg_own_blocks(level);
    int64_t entries = 0;
    for (int64_t b = own.begin; b < own.end; b++)
        p->target[b].spill_room =
            (int32_t)un_max64(p->target[b].spill_room, p->target[b].outer_count);
    UN_TRY(lay_out(amg, p, full)); /* chunks stay where they are */
    un_amg_for_blocks(ctx, level, count_block, p);
    if (level->cut) UN_TRY(send_spilled(amg, p));
    un_amg_for_blocks(ctx, level, place_block, p);
    for (int64_t b = own.begin; b < own.end; b++) entries += p->target[b].entry_count;
    un_range range = {0, entries, entries};
    if (level->cut) range = un_ranks_range(ctx, entries);
    entries = range.begin;
    for (int64_t b = own.begin; b < own.end; b++) {
        p->target[b].entry_first = (int32_t)entries;
        entries += p->target[b].entry_count;
    }
    UN_AMG_NEED(ctx, full->col, full->capacity[2], range.total);
    UN_AMG_NEED(ctx, full->val, full->capacity[3], range.total);
    full->row[level->first[own.begin]] = (int32_t)range.begin;
    un_amg_for_blocks(ctx, level, mirror_block, p);
    full->row[coarse_count] = (int32_t)range.total;
    return UN_OK;
}

un_status un_amg_build_edges(un_amg *amg, const un_amg_level *level, const un_amg_means *means,
                             const float *excess, int32_t coarse_count, int slot,
                             un_amg_graph *coarse)
{
    un_context *ctx = amg->ctx;
    un_amg_full *full = &amg->full[slot];
    un_part own = un_amg_own_blocks(level);
    int64_t blocks = un_amg_blocks(level), held = own.end - own.begin;
    int32_t *heads = NULL;
    un_status status = UN_OK;
    UN_AMG_NEED(ctx, full->row, full->capacity[0], (size_t)coarse_count + 1);
    UN_AMG_NEED(ctx, full->excess, full->capacity[1], coarse_count);
    UN_AMG_NEED(ctx, amg->half_size, amg->capacity_half_size, 2 * (size_t)coarse_count);
    edges p = {.level = level,
               .p = means,
               .excess = excess,
               .full = full,
               .next = amg->half_size + coarse_count};
    UN_ALLOC_DONE(ctx, p.target, blocks);
    memset(p.target, 0, (size_t)blocks * sizeof *p.target); /* those of other ranks are empty */
    UN_ALLOC_DONE(ctx, heads, 2 * blocks * held + 1);
    for (int64_t b = own.begin; b < own.end; b++) {
        int32_t rows = level->first[b + 1] - level->first[b];
        p.target[b] = (target){.starts = level->first,
                               .last = (int32_t)b,
                               .head = heads + 2 * (b - own.begin) * blocks,
                               .tail = heads + (2 * (b - own.begin) + 1) * blocks,
                               .first = level->first[b],
                               .count = (uint32_t)rows,
                               .chunk_room = rows + (int32_t)(CHUNK_SHARE * rows) + ROOM_MIN / 16,
                               .spill_room = SPILL_SHARE * rows + ROOM_MIN};
    }
    status = sum_edges(amg, &p);
    if (status == UN_OK) status = mirror(amg, &p, coarse_count);
done:
    un_amg_records_free(amg, &p.spilled);
    un_free(ctx, p.target);
    un_free(ctx, heads);
    *coarse = (un_amg_graph){.n = coarse_count,
                             .row = full->row,
                             .col = full->col,
                             .val = full->val,
                             .excess = full->excess};
    return status;
}
