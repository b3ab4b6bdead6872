/* Particles of any cells, whichever ranks have them.
 *
 * A rank marks cells. Those of its own blocks it looks up, for the others it asks the ranks that
 * have them, cell by cell. Cells are numbered along the curve, so both together are in the order of
 * one rank. What is known of particles only later comes the same way. */
#include "particles/particles.h"

/* ---- own particles and copies among them ---- */

un_status un_bins_find_owners(const un_bins *b, const un_bins_share *share, int32_t **owner)
{
    UN_ALLOC(b->ctx, *owner, b->block_count + 1);
    for (int32_t n = 0; n < b->block_count; n++) (*owner)[b->order[n]] = share->owner[n];
    return UN_OK;
}

un_status un_bins_share_copies(un_context *ctx, const un_bins_share *share, const char *name,
                               void *array, size_t size)
{
    char *arrived = un_alloc(ctx, (size_t)share->slot_count + 1, size);
    un_field field = {name, array, arrived, size};
    un_status status = un_ranks_agree(ctx, arrived ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = un_exchange_run(share->halo, &field, 1);
    for (int32_t i = 0; status == UN_OK && i < share->slot_count; i++)
        memcpy((char *)array + (size_t)share->slot[i] * size, arrived + (size_t)i * size, size);
    un_free(ctx, arrived);
    return status;
}

un_status un_bins_find_ids(const un_bins *b, const un_bins_share *share, int64_t count,
                           uint32_t **id)
{
    int32_t me = un_rank(b->ctx);
    *id = un_alloc_zero(b->ctx, (size_t)count + 1, sizeof **id);
    UN_TRY(un_ranks_agree(b->ctx, *id ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t n = 0; n < b->block_count; n++) {
        const int32_t *first = b->begin + (int64_t)b->rank[b->order[n]] * b->block_cells;
        if (share->owner[n] != me) continue;
        for (int32_t q = first[0]; q < first[b->block_cells]; q++)
            (*id)[q] = (uint32_t)(share->first[n] + q - first[0]);
    }
    return un_bins_share_copies(b->ctx, share, "id", *id, sizeof **id);
}

/* ---- which cells ---- */

/* A cell that another rank has: its place along the curve. */
typedef struct request {
    uint32_t cell;
    int32_t from; /* who asks */
} request;

typedef struct fetching {
    un_near_cells *near;
    const un_bins *bins;
    const un_bins_share *share;
    const un_particles *particles;
    const uint32_t *id;
    const uint8_t *wanted, *rows;
    uint8_t *block; /* by number: has a wanted cell */
    /* what this rank asks for: by request in the order of cells, and whom */
    request *asked;
    int32_t *whom, *count;
    int64_t asked_count, own_count;
    int32_t *at; /* by request: its first among those that arrive */
    un_particles arrived;
    uint32_t *arrived_id;
} fetching;

typedef void each_cell(fetching *f, int32_t place, int32_t cell, int64_t at);

/* Calls for the wanted cells along the curve. */
static void for_wanted(fetching *f, each_cell *call)
{
    const un_bins *b = f->bins;
    const un_grid *g = b->grid;
    for (int32_t n = 0; n < b->block_count; n++) {
        int32_t block = b->order[n], low[3] = {UN_BLOCK * (block % b->blocks[0]),
                                               UN_BLOCK * (block / b->blocks[0] % b->blocks[1]),
                                               UN_BLOCK * (block / (b->blocks[0] * b->blocks[1]))};
        int32_t high[3];
        for (int a = 0; a < 3; a++) high[a] = un_clampi(low[a] + UN_BLOCK, 0, g->n[a]);
        for (int32_t k = low[2]; k < high[2]; k++)
            for (int32_t j = low[1]; j < high[1]; j++) {
                if (!f->rows[j + (int64_t)g->n[1] * k]) continue;
                int64_t row = un_grid_cell(g, 0, j, k);
                int32_t first = UN_BLOCK * (j - low[1] + UN_BLOCK * (k - low[2]));
                for (int32_t i = low[0]; i < high[0]; i++)
                    if (f->wanted[row + i]) call(f, n, first + i - low[0], row + i);
            }
    }
}

/* Own particles of a cell. */
static un_part particles_of(const un_bins *b, int32_t place, int32_t cell)
{
    const int32_t *first = b->begin + (int64_t)b->rank[b->order[place]] * b->block_cells + cell;
    return (un_part){first[0], first[1]};
}

static void count_cell(fetching *f, int32_t place, int32_t cell, int64_t at)
{
    (void)at;
    f->block[f->bins->order[place]] = 1;
    if (f->share->owner[place] != un_rank(f->near->ctx)) {
        f->asked_count++;
        return;
    }
    un_part in = particles_of(f->bins, place, cell);
    f->own_count += in.end - in.begin;
}

static void ask_cell(fetching *f, int32_t place, int32_t cell, int64_t at)
{
    (void)at;
    int32_t owner = f->share->owner[place], me = un_rank(f->near->ctx);
    if (owner == me) return;
    f->whom[f->asked_count] = owner;
    f->asked[f->asked_count++] =
        (request){(uint32_t)place * (uint32_t)f->bins->block_cells + (uint32_t)cell, me};
}

static un_status list_requests(fetching *f)
{
    un_context *ctx = f->near->ctx;
    f->block = un_alloc_zero(ctx, (size_t)f->bins->block_count + 1, 1);
    if (!f->block) return UN_ERROR_MEMORY;
    for_wanted(f, count_cell);
    UN_ALLOC(ctx, f->asked, f->asked_count + 1);
    UN_ALLOC(ctx, f->whom, f->asked_count + 1);
    UN_ALLOC(ctx, f->at, f->asked_count + 1);
    f->asked_count = 0;
    for_wanted(f, ask_cell);
    return UN_OK;
}

/* ---- what others want of this rank ---- */

/* Their particles, and the number in each cell, which goes back. */
static un_status answer(fetching *f, const request *in, int64_t count, int32_t **cells,
                        int32_t **index, int32_t **to, int64_t *sent)
{
    un_context *ctx = f->near->ctx;
    const un_bins *b = f->bins;
    int64_t total = 0, at = 0;
    UN_ALLOC(ctx, *cells, count + 1);
    for (int64_t i = 0; i < count; i++) {
        un_part p = particles_of(b, (int32_t)(in[i].cell / (uint32_t)b->block_cells),
                                 (int32_t)(in[i].cell % (uint32_t)b->block_cells));
        (*cells)[i] = (int32_t)(p.end - p.begin);
        total += p.end - p.begin;
    }
    UN_ALLOC(ctx, *index, total + 1);
    UN_ALLOC(ctx, *to, total + 1);
    for (int64_t i = 0; i < count; i++) {
        un_part p = particles_of(b, (int32_t)(in[i].cell / (uint32_t)b->block_cells),
                                 (int32_t)(in[i].cell % (uint32_t)b->block_cells));
        for (int64_t q = p.begin; q < p.end; q++) {
            (*index)[at] = (int32_t)q;
            (*to)[at++] = in[i].from;
        }
    }
    *sent = total;
    return UN_OK;
}

/* Ranks answer one after the other, each in the order of cells. */
static un_status take_counts(fetching *f, const int32_t *cells, const request *in, int64_t in_count)
{
    un_context *ctx = f->near->ctx;
    int32_t ranks = un_rank_count(ctx), sum = 0;
    int64_t *next = un_alloc_zero(ctx, (size_t)ranks + 1, sizeof *next), arrived;
    int32_t *back = un_alloc(ctx, (size_t)in_count + 1, sizeof *back);
    void *counts = NULL;
    un_status status = un_ranks_agree(ctx, next && back ? UN_OK : UN_ERROR_MEMORY);
    for (int64_t i = 0; status == UN_OK && i < in_count; i++) back[i] = in[i].from;
    if (status == UN_OK)
        status =
            un_exchange_send(ctx, "cells", cells, back, in_count, sizeof *cells, &counts, &arrived);
    if (status == UN_OK) {
        UN_ASSERT(arrived == f->asked_count);
        for (int64_t i = 0; i < f->asked_count; i++) next[f->whom[i] + 1]++;
        for (int32_t r = 0; r < ranks; r++) next[r + 1] += next[r];
        /* f->at: so far which answer it is */
        for (int64_t i = 0; i < f->asked_count; i++) f->at[i] = (int32_t)next[f->whom[i]]++;
        for (int64_t i = 0; i < f->asked_count; i++) f->count[i] = ((int32_t *)counts)[f->at[i]];
        for (int64_t k = 0; k < arrived; k++) {
            int32_t count = ((int32_t *)counts)[k];
            ((int32_t *)counts)[k] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < f->asked_count; i++) f->at[i] = ((int32_t *)counts)[f->at[i]];
    }
    un_free(ctx, counts);
    un_free(ctx, next);
    un_free(ctx, back);
    return status;
}

static un_status need_arrived(fetching *f, int64_t count)
{
    un_context *ctx = f->near->ctx;
    for (int a = 0; a < 3; a++) UN_ALLOC(ctx, f->arrived.x[a], count + 1);
    UN_ALLOC(ctx, f->arrived.volume, count + 1);
    UN_ALLOC(ctx, f->arrived.flags, count + 1);
    UN_ALLOC(ctx, f->arrived_id, count + 1);
    return UN_OK;
}

static un_status fetch(fetching *f, const int32_t *index, const int32_t *to, int64_t sent)
{
    un_context *ctx = f->near->ctx;
    const un_particles *p = f->particles;
    UN_TRY(un_exchange_create_copies(ctx, index, to, sent, &f->near->copies));
    UN_TRY(un_ranks_agree(ctx, need_arrived(f, un_exchange_count(f->near->copies))));
    un_field fields[6] = {{"x", p->x[0], f->arrived.x[0], sizeof(double)},
                          {"y", p->x[1], f->arrived.x[1], sizeof(double)},
                          {"z", p->x[2], f->arrived.x[2], sizeof(double)},
                          {"volume", p->volume, f->arrived.volume, sizeof(float)},
                          {"flags", p->flags, f->arrived.flags, 1},
                          {"id", f->id, f->arrived_id, sizeof *f->id}};
    return un_exchange_run(f->near->copies, fields, 6);
}

static un_status ask_all(fetching *f)
{
    un_context *ctx = f->near->ctx;
    void *in = NULL;
    int64_t in_count, sent = 0;
    int32_t *cells = NULL, *index = NULL, *to = NULL;
    UN_TRY(un_exchange_send(ctx, "asked", f->asked, f->whom, f->asked_count, sizeof *f->asked, &in,
                            &in_count));
    un_status status = un_ranks_agree(ctx, answer(f, in, in_count, &cells, &index, &to, &sent));
    if (status == UN_OK) status = take_counts(f, cells, in, in_count);
    if (status == UN_OK) status = fetch(f, index, to, sent);
    un_free(ctx, in);
    un_free(ctx, cells);
    un_free(ctx, index);
    un_free(ctx, to);
    return status;
}

/* ---- both together ---- */

static void put_cell(fetching *f, int32_t place, int32_t cell, int64_t at)
{
    un_near_cells *near = f->near;
    un_particles *to = &near->particles;
    un_bins *b = near->bins;
    bool own = f->share->owner[place] == un_rank(near->ctx);
    const un_particles *from = own ? f->particles : &f->arrived;
    const uint32_t *id = own ? f->id : f->arrived_id;
    un_part in = own ? particles_of(f->bins, place, cell)
                     : (un_part){f->at[f->asked_count],
                                 f->at[f->asked_count] + (int64_t)f->count[f->asked_count]};
    (void)at;
    if (!own) f->asked_count++;
    int32_t *count = b->begin + (int64_t)b->rank[b->order[place]] * b->block_cells + cell;
    *count = (int32_t)(in.end - in.begin);
    for (int64_t q = in.begin; q < in.end; q++) {
        int32_t n = to->count++;
        for (int a = 0; a < 3; a++) to->x[a][n] = from->x[a][q];
        to->volume[n] = from->volume[q];
        to->flags[n] = from->flags[q];
        near->id[n] = id[q];
        near->own[n] = own ? (int32_t)q : -1;
        if (!own) near->slot[q] = n;
    }
}

static un_status need_near(fetching *f)
{
    un_near_cells *near = f->near;
    un_context *ctx = near->ctx;
    int64_t copies = un_exchange_count(near->copies), count = f->own_count + copies;
    for (int a = 0; a < 3; a++) UN_ALLOC(ctx, near->particles.x[a], count + 1);
    UN_ALLOC(ctx, near->particles.volume, count + 1);
    UN_ALLOC(ctx, near->particles.flags, count + 1);
    UN_ALLOC(ctx, near->id, count + 1);
    UN_ALLOC(ctx, near->own, count + 1);
    UN_ALLOC(ctx, near->slot, copies + 1);
    UN_TRY(un_bins_create(ctx, f->bins->grid, &near->bins));
    return un_bins_hold_marked(near->bins, f->block);
}

static void put_all(fetching *f)
{
    un_bins *b = f->near->bins;
    int64_t cells = (int64_t)(b->held_count + 1) * b->block_cells;
    int32_t sum = 0;
    if (b->held_count == b->block_count) cells -= b->block_cells;
    memset(b->begin, 0, ((size_t)cells + 1) * sizeof *b->begin);
    f->asked_count = 0;
    for_wanted(f, put_cell);
    for (int64_t c = 0; c <= cells; c++) {
        int32_t count = b->begin[c];
        b->begin[c] = sum;
        sum += count;
    }
}

un_status un_near_cells_get(un_context *ctx, un_near_cells *near, const un_bins *bins,
                            const un_bins_share *share, const un_particles *particles,
                            const uint32_t *id, const uint8_t *wanted, const uint8_t *rows)
{
    *near = (un_near_cells){.ctx = ctx};
    fetching f = {.near = near,
                  .bins = bins,
                  .share = share,
                  .particles = particles,
                  .id = id,
                  .wanted = wanted,
                  .rows = rows};
    un_status status = list_requests(&f);
    if (status == UN_OK) {
        f.count = un_alloc(ctx, (size_t)f.asked_count + 1, sizeof *f.count);
        if (!f.count) status = UN_ERROR_MEMORY;
    }
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK) status = ask_all(&f);
    if (status == UN_OK) status = un_ranks_agree(ctx, need_near(&f));
    if (status == UN_OK) put_all(&f);
    for (int a = 0; a < 3; a++) un_free(ctx, f.arrived.x[a]);
    un_free(ctx, f.arrived.volume);
    un_free(ctx, f.arrived.flags);
    un_free(ctx, f.arrived_id);
    un_free(ctx, f.block);
    un_free(ctx, f.asked);
    un_free(ctx, f.whom);
    un_free(ctx, f.count);
    un_free(ctx, f.at);
    if (status != UN_OK) un_near_cells_free(near);
    return status;
}

void un_near_cells_free(un_near_cells *near)
{
    un_context *ctx = near->ctx;
    if (!ctx) return;
    for (int a = 0; a < 3; a++) un_free(ctx, near->particles.x[a]);
    un_free(ctx, near->particles.volume);
    un_free(ctx, near->particles.flags);
    un_free(ctx, near->id);
    un_free(ctx, near->own);
    un_free(ctx, near->slot);
    un_bins_destroy(near->bins);
    un_exchange_destroy(near->copies);
    *near = (un_near_cells){0};
}

un_status un_near_cells_values(const un_near_cells *near, const char *name, void *values,
                               const void *here, size_t size)
{
    un_context *ctx = near->ctx;
    int64_t count = un_exchange_count(near->copies);
    char *arrived = un_alloc(ctx, (size_t)count + 1, size);
    un_field field = {name, here, arrived, size};
    un_status status = un_ranks_agree(ctx, arrived ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = un_exchange_run(near->copies, &field, 1);
    for (int64_t i = 0; status == UN_OK && i < count; i++)
        memcpy((char *)values + (size_t)near->slot[i] * size, arrived + (size_t)i * size, size);
    for (int32_t n = 0; status == UN_OK && n < near->particles.count; n++)
        if (near->own[n] >= 0)
            memcpy((char *)values + (size_t)n * size,
                   (const char *)here + (size_t)near->own[n] * size, size);
    un_free(ctx, arrived);
    return status;
}
