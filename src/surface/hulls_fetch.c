/* Hulls over ranks: a rank gets those near its part of the mesh.
 *
 * Hulls are numbered over all ranks, and their tree of boxes is that of one rank, but a rank has
 * only some blocks of eight and nodes of the lowest level; it asks their ranks for those that a
 * search may come to. Arrays have their full length, and pages that nobody touches take up no
 * memory. */
#include "surface/hulls.h"

/* Blocks that a rank gets at once: 3 MB. */
#define BATCH 2048

typedef struct wanting {
    const un_hulls *hulls;
    un_lanes8 lo[3], hi[3];
    float reach;
    uint8_t *want;
} wanting;

/* Several threads may mark the same block. */
static void mark(uint8_t *want, int64_t block)
{
    __atomic_store_n(&want[block], 1, __ATOMIC_RELAXED);
}

static void want_below(const wanting *w, int32_t level, int64_t node)
{
    const un_hulls *h = w->hulls;
    const un_group_box *box = h->boxes.nodes + h->boxes.level_first[level] + node;
    un_lanes8 gap2 = un_boxes_gaps(box, w->lo, w->hi);
    un_lanes8 reach = un_lanes8_load(box->radius) + w->reach;
    reach *= reach;
    for (uint32_t left = un_lanes8_less(gap2, reach); left; left &= left - 1) {
        int64_t child = 8 * node + __builtin_ctz(left);
        if (level > 1)
            want_below(w, level - 1, child);
        else
            mark(w->want, child);
    }
}

void un_hulls_want(const un_hulls *hulls, un_box3 box, double reach, uint8_t *want)
{
    wanting w = {.hulls = hulls, .want = want};
    double lo[3] = {box.min.x, box.min.y, box.min.z}, hi[3] = {box.max.x, box.max.y, box.max.z};
    if (hulls->boxes.level_count == 1) mark(want, 0);
    if (hulls->boxes.level_count < 2 || !un_finite3(box.min) || !un_finite3(box.max)) return;
    for (int32_t x = 0; x < 3; x++) {
        w.lo[x] = un_lanes8_all((float)lo[x]);
        w.hi[x] = un_lanes8_all((float)hi[x]);
    }
    /* as un_hulls_gather */
    w.reach = (float)reach + hulls->boxes.room + 1e-18f;
    want_below(&w, hulls->boxes.level_count - 1, 0);
}

typedef struct fetching {
    const un_hulls *hulls;
    int64_t *wanted; /* blocks of others, ascending */
    int64_t count;
    un_hull_block *blocks; /* room for a batch */
    un_group_box *nodes;
} fetching;

static un_status need(fetching *f, const uint8_t *want)
{
    const un_hulls *h = f->hulls;
    for (int64_t b = 0; b < h->block_count; b++) f->count += want[b] && !h->here[b];
    UN_ALLOC(h->ctx, f->wanted, f->count + 1);
    UN_ALLOC(h->ctx, f->blocks, un_min64(f->count, BATCH) + 1);
    UN_ALLOC(h->ctx, f->nodes, un_min64(f->count, BATCH) + 1);
    f->count = 0;
    for (int64_t b = 0; b < h->block_count; b++)
        if (want[b] && !h->here[b]) f->wanted[f->count++] = b;
    return UN_OK;
}

static un_status fetch_batch(const fetching *f, int64_t begin, int64_t end)
{
    const un_hulls *h = f->hulls;
    un_exchange *halo = NULL;
    un_field fields[2] = {{"hulls", h->blocks + h->own.begin, f->blocks, sizeof *f->blocks},
                          {"boxes", h->boxes.nodes + h->own.begin, f->nodes, sizeof *f->nodes}};
    UN_TRY(un_exchange_create_halo(h->ctx, h->own, f->wanted + begin, end - begin, &halo));
    un_status status = un_exchange_run(halo, fields, 2);
    un_exchange_destroy(halo);
    for (int64_t k = begin; k < end && status == UN_OK; k++) {
        int64_t b = f->wanted[k];
        h->blocks[b] = f->blocks[k - begin];
        h->boxes.nodes[b] = f->nodes[k - begin];
        h->here[b] = 1;
    }
    return status;
}

un_status un_hulls_fetch(const un_hulls *hulls, const uint8_t *want)
{
    un_context *ctx = hulls->ctx;
    fetching f = {.hulls = hulls};
    un_status status = un_ranks_agree(ctx, need(&f, want));
    if (status == UN_OK) {
        int64_t most = (int64_t)un_ranks_max(ctx, (double)f.count);
        for (int64_t begin = 0; begin < most && status == UN_OK; begin += BATCH)
            status = fetch_batch(&f, un_min64(begin, f.count), un_min64(begin + BATCH, f.count));
    }
    un_free(ctx, f.wanted);
    un_free(ctx, f.blocks);
    un_free(ctx, f.nodes);
    return status;
}
