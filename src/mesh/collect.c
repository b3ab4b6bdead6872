/* Two passes over fixed blocks: count, then write. */
#include "mesh/collect.h"

typedef struct collector {
    un_lister *emit;
    const void *arg;
    int64_t grain;
    int64_t at[UN_BLOCKS_MAX + 1]; /* by block: first place */
    uint64_t *out;
} collector;

static void count_block(void *arg, int64_t begin, int64_t end)
{
    collector *c = arg;
    c->at[begin / c->grain + 1] = c->emit(c->arg, begin, end, NULL);
}

static void write_block(void *arg, int64_t begin, int64_t end)
{
    collector *c = arg;
    c->emit(c->arg, begin, end, c->out + c->at[begin / c->grain]);
}

un_status un_collect(un_context *ctx, un_arena *arena, un_lister *emit, const void *arg,
                     int64_t count, uint64_t **list, int64_t *list_count, int64_t more)
{
    collector c = {.emit = emit, .arg = arg, .grain = un_block_grain(count)};
    un_parallel_for(ctx, count, c.grain, count_block, &c);
    int64_t block_count = (count + c.grain - 1) / c.grain;
    for (int64_t b = 0; b < block_count; b++) c.at[b + 1] += c.at[b];
    *list_count = c.at[block_count];
    *list = c.out = un_arena_alloc(arena, (size_t)(*list_count + more) + 1, sizeof *c.out);
    if (!c.out) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, count, c.grain, write_block, &c);
    return UN_OK;
}
