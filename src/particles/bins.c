/* Particles sorted by cell, cells numbered by blocks along a Morton curve: neighbours in space are
 * neighbours in memory, for the particles and for the grid around them. */
#include "particles/particles.h"

#include "base/lanes.h"

/* Orders the blocks by their Morton code. */
static un_status order_blocks(un_bins *b, un_arena *arena)
{
    uint32_t *keys = un_arena_alloc(arena, (size_t)b->block_count, sizeof *keys);
    if (!keys) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < b->block_count; n++) {
        uint32_t i = (uint32_t)(n % b->blocks[0]), j = (uint32_t)(n / b->blocks[0] % b->blocks[1]);
        uint32_t k = (uint32_t)(n / (b->blocks[0] * b->blocks[1]));
        /* 10 bits per axis: ties beyond 1024 blocks along a side only cost locality */
        keys[n] = (uint32_t)un_morton(i & 1023, j & 1023, k & 1023);
    }
    return un_parallel_sort(b->ctx, arena, b->order, keys, b->block_count, 30);
}

/* Blocks of one colour have the same parity along each axis. */
static void colour_blocks(un_bins *b)
{
    int32_t at = 0;
    for (int colour = 0; colour < 8; colour++) {
        b->colour_begin[colour] = at;
        for (int32_t r = 0; r < b->block_count; r++) {
            int32_t n = b->order[r];
            if (b->rank[n] == b->held_count) continue;
            int32_t i = n % b->blocks[0], j = n / b->blocks[0] % b->blocks[1];
            int32_t k = n / (b->blocks[0] * b->blocks[1]);
            if (((i & 1) | (j & 1) << 1 | (k & 1) << 2) == colour) b->coloured[at++] = n;
        }
    }
    b->colour_begin[8] = at;
}

/* Of the blocks that are here; where some are not, one more block stands for all of them. */
static int64_t count_cells(const un_bins *b)
{
    return (int64_t)(b->held_count + (b->held_count < b->block_count)) * b->block_cells;
}

/* Ranks of blocks that are not here are -1 so far. */
static un_status hold_ranked(un_bins *b)
{
    for (int32_t n = 0; n < b->block_count; n++)
        if (b->rank[n] < 0) b->rank[n] = b->held_count;
    colour_blocks(b);
    return un_array_need(b->ctx, (void **)&b->begin, &b->begin_room, (size_t)count_cells(b) + 2,
                         sizeof *b->begin);
}

un_status un_bins_hold(un_bins *b, const uint8_t *held)
{
    b->held_count = 0;
    for (int32_t r = 0; r < b->block_count; r++) {
        bool here = !held || held[un_bins_bar(b, b->order[r])];
        b->rank[b->order[r]] = here ? b->held_count++ : -1;
    }
    return hold_ranked(b);
}

un_status un_bins_hold_marked(un_bins *b, const uint8_t *mark)
{
    b->held_count = 0;
    for (int32_t r = 0; r < b->block_count; r++)
        b->rank[b->order[r]] = mark[b->order[r]] ? b->held_count++ : -1;
    return hold_ranked(b);
}

static void count_blocks(const un_grid *grid, int32_t blocks[3])
{
    for (int a = 0; a < 3; a++) blocks[a] = (grid->n[a] + UN_BLOCK - 1) / UN_BLOCK;
}

static int32_t block_cells(const un_grid *grid)
{
    return grid->dim == 2 ? UN_BLOCK * UN_BLOCK : UN_BLOCK * UN_BLOCK * UN_BLOCK;
}

size_t un_bins_bytes(const un_grid *grid)
{
    int32_t b[3];
    count_blocks(grid, b);
    return (size_t)b[0] * (size_t)b[1] * (size_t)b[2] * ((size_t)block_cells(grid) + 3) *
           sizeof(int32_t);
}

static un_status allocate(un_bins *b)
{
    count_blocks(b->grid, b->blocks);
    int64_t count = (int64_t)b->blocks[0] * b->blocks[1] * b->blocks[2];
    b->block_cells = block_cells(b->grid);
    if (count * b->block_cells >= INT32_MAX)
        return un_fail(b->ctx, UN_ERROR_MEMORY,
                       "a uniform grid of %d x %d x %d cells is too large; lower detail.finest",
                       b->grid->n[0], b->grid->n[1], b->grid->n[2]);
    b->block_count = (int32_t)count;
    UN_ALLOC(b->ctx, b->order, b->block_count);
    UN_ALLOC(b->ctx, b->rank, b->block_count);
    UN_ALLOC(b->ctx, b->coloured, b->block_count);
    return UN_OK;
}

un_status un_bins_create(un_context *ctx, const un_grid *grid, un_bins **bins)
{
    un_bins *b = un_alloc_zero(ctx, 1, sizeof *b);
    if (!b) return UN_ERROR_MEMORY;
    b->ctx = ctx;
    b->grid = grid;
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_status status = allocate(b);
    if (status == UN_OK) status = order_blocks(b, &arena);
    if (status == UN_OK) status = un_bins_hold(b, NULL);
    un_arena_free(&arena);
    if (status != UN_OK) {
        un_bins_destroy(b);
        return status;
    }
    *bins = b;
    return UN_OK;
}

void un_bins_destroy(un_bins *b)
{
    if (!b) return;
    un_free(b->ctx, b->order);
    un_free(b->ctx, b->rank);
    un_free(b->ctx, b->coloured);
    un_free(b->ctx, b->begin);
    un_free(b->ctx, b);
}

/* ---- sorting ---- */

#define SORT_GRAIN 2048

typedef struct order_args {
    int32_t *begin;
    const int32_t *order;
    const uint32_t *keys;
} order_args;

/* The first thing with a key also ends the ranges of the unused keys before it. */
static void find_ranges(void *arg, int64_t begin, int64_t end)
{
    order_args *a = arg;
    for (int64_t i = begin; i < end; i++) {
        uint32_t key = a->keys[a->order[i]];
        int64_t before = i ? (int64_t)a->keys[a->order[i - 1]] : -1;
        for (int64_t k = before + 1; k <= key; k++) a->begin[k] = (int32_t)i;
    }
}

un_status un_bins_order(un_context *ctx, un_arena *arena, int32_t *order, int32_t *begin,
                        const uint32_t *keys, int64_t count, int64_t key_count)
{
    int32_t bits = 1;
    while (key_count >> bits) bits++;
    UN_TRY(un_parallel_sort(ctx, arena, order, keys, count, bits));
    order_args a = {begin, order, keys};
    un_parallel_for(ctx, count, SORT_GRAIN, find_ranges, &a);
    for (int64_t k = count ? (int64_t)keys[order[count - 1]] + 1 : 0; k <= key_count; k++)
        begin[k] = (int32_t)count;
    return UN_OK;
}

typedef struct sort_args {
    un_bins *bins;
    un_particles *particles;
    uint32_t *keys;
} sort_args;

static void find_key(const sort_args *s, double *const x[3], int64_t q)
{
    const un_grid *g = s->bins->grid;
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z}, inverse = 1 / g->h;
    int32_t c[3];
    for (int a = 0; a < 3; a++)
        c[a] = un_clampi((int32_t)((x[a][q] - origin[a]) * inverse), 0, g->n[a] - 1);
    s->keys[q] = un_bins_cell(s->bins, c[0], c[1], c[2]);
}

/* Eight from q on, with the same keys. */
static void find_keys_eight(const sort_args *s, double *const x[3], int64_t q)
{
    const un_bins *b = s->bins;
    const un_grid *g = b->grid;
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z}, inverse = 1 / g->h;
    un_bits8 block = {0}, cell = {0};
    for (int a = 2; a >= 0; a--) {
        un_doubles8 at = (un_doubles8_load(x[a] + q, 8) - origin[a]) * inverse;
        at = un_doubles8_place(at, g->n[a] - 1);
        un_bits8 c = __builtin_convertvector(at, un_bits8);
        block = block * b->blocks[a] + c / UN_BLOCK;
        cell = cell * UN_BLOCK + c % UN_BLOCK;
    }
    for (int n = 0; n < 8; n++)
        s->keys[q + n] = (uint32_t)(b->rank[block[n]] * b->block_cells + cell[n]);
}

static void find_keys(void *arg, int64_t begin, int64_t end)
{
    const sort_args *s = arg;
    const un_particles *p = s->particles;
    double *const *x = p->warped ? p->xi : p->x;
    for (; begin + 8 <= end; begin += 8) find_keys_eight(s, x, begin);
    for (; begin < end; begin++) find_key(s, x, begin);
}

/* gone: particles that come last; NULL: none. */
static un_status find_order(un_bins *b, un_arena *arena, un_particles *p, const un_bins_gone *gone,
                            int32_t **order)
{
    int64_t n = p->count, cell_total = count_cells(b);
    uint32_t *keys = un_arena_alloc(arena, (size_t)n + 1, sizeof *keys);
    *order = un_arena_alloc(arena, (size_t)n + 1, sizeof **order);
    if (!keys || !*order) return UN_ERROR_MEMORY;
    sort_args s = {.bins = b, .particles = p, .keys = keys};
    un_parallel_for(b->ctx, n, SORT_GRAIN, find_keys, &s);
    for (int32_t i = 0; gone && i < gone->count; i++) keys[gone->list[i]] = (uint32_t)cell_total;
    return un_bins_order(b->ctx, arena, *order, b->begin, keys, n, cell_total + (gone != NULL));
}

un_status un_bins_sort(un_bins *b, un_arena *arena, un_particles *p)
{
    int32_t *order;
    UN_TRY(find_order(b, arena, p, NULL, &order));
    un_particles_reorder(b->ctx, p, order);
    return UN_OK;
}

typedef struct settle_args {
    const int32_t *begin;
    int32_t *order;
    const uint32_t *id;
} settle_args;

/* Puts the particles of each cell into the order of their ids; most are in it. */
static void settle_cells(void *arg, int64_t begin, int64_t end)
{
    const settle_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        for (int32_t i = a->begin[c] + 1; i < a->begin[c + 1]; i++) {
            int32_t q = a->order[i], k = i;
            for (; k > a->begin[c] && a->id[a->order[k - 1]] > a->id[q]; k--)
                a->order[k] = a->order[k - 1];
            a->order[k] = q;
        }
}

un_status un_bins_sort_by_id(un_bins *b, un_arena *arena, un_particles *p, const uint32_t *id,
                             const un_bins_gone *gone)
{
    int32_t *order;
    UN_TRY(find_order(b, arena, p, gone, &order));
    settle_args s = {b->begin, order, id};
    if (id) un_parallel_for(b->ctx, count_cells(b), 4096, settle_cells, &s);
    un_particles_take(b->ctx, p, order, p->count - gone->count);
    return UN_OK;
}

/* ---- scatter ---- */

typedef struct scatter_args {
    const un_bins *bins;
    const int32_t *list;
    un_block_body *body;
    un_cells_body *cells; /* NULL: body */
    void *arg;
} scatter_args;

static void scatter_blocks(void *arg, int64_t begin, int64_t end)
{
    scatter_args *s = arg;
    const un_bins *b = s->bins;
    for (int64_t n = begin; n < end; n++) {
        int32_t block = s->list[n];
        const int32_t *first = b->begin + (int64_t)b->rank[block] * b->block_cells;
        if (first[0] == first[b->block_cells]) continue;
        if (!s->cells) {
            s->body(s->arg, first[0], first[b->block_cells]);
            continue;
        }
        const int32_t corner[3] = {block % b->blocks[0] * UN_BLOCK,
                                   block / b->blocks[0] % b->blocks[1] * UN_BLOCK,
                                   block / (b->blocks[0] * b->blocks[1]) * UN_BLOCK};
        s->cells(s->arg, corner, first);
    }
}

static void scatter_coloured(scatter_args *s)
{
    const un_bins *b = s->bins;
    for (int colour = 0; colour < 8; colour++) {
        s->list = b->coloured + b->colour_begin[colour];
        un_parallel_for(b->ctx, b->colour_begin[colour + 1] - b->colour_begin[colour], 1,
                        scatter_blocks, s);
    }
}

void un_bins_scatter(const un_bins *b, un_block_body *body, void *arg)
{
    scatter_args s = {.bins = b, .body = body, .arg = arg};
    scatter_coloured(&s);
}

void un_bins_scatter_cells(const un_bins *b, un_cells_body *body, void *arg)
{
    scatter_args s = {.bins = b, .cells = body, .arg = arg};
    scatter_coloured(&s);
}
