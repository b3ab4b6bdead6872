/* Aggregates: groups of strongly coupled rows.
 *
 * Each block of rows is visited in order. A free row starts an aggregate, which grows by the free
 * row with the strongest ties to it (the sum of its couplings to the members) until it is full.
 * Groups become compact because a row in a corner has several ties. The rows of an aggregate that
 * stays smaller than half of a full one join the neighbours they are tied to most.
 *
 * Weak couplings need no threshold: strong ones win anyway, and on graded tets a threshold leaves
 * small remainders (25 iterations instead of 11 at 222,000 nodes). */
#include "linalg/amg.h"
#include "linalg/candidates.h"

#define MEMBERS_MAX 64
#define CANDIDATES 128 /* rows found later wait for another aggregate */

typedef struct aggregation {
    un_amg_level *level;
    int32_t size;
    const un_amg_graph *g;
    int32_t *slot; /* by row: its place among the candidates, if it is one of them */
} aggregation;

static void add_ties(un_amg_candidates *c, const aggregation *p, int32_t i, int64_t begin,
                     int64_t end)
{
    const un_amg_graph *g = p->g;
    const int32_t *aggregate = p->level->aggregate;
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        int32_t j = g->col[k];
        if (j < begin || j >= end || aggregate[j] != UN_AMG_FREE) continue;
        float tie = -un_amg_entry(g, k);
        if (!(tie > 0)) continue;
        int32_t at = p->slot[j];
        if (at >= c->count || c->id[at] != j) {
            if (c->count == CANDIDATES) continue;
            at = p->slot[j] = c->count++;
            c->id[at] = j;
            c->tie[at] = 0;
        }
        c->tie[at] += tie;
    }
}

/* The aggregate in the block that row i is tied to most, -1: none. */
static int32_t nearest(const aggregation *p, int32_t i, int32_t except, int64_t begin, int64_t end)
{
    const un_amg_graph *g = p->g;
    const int32_t *aggregate = p->level->aggregate;
    int32_t found = -1;
    float most = 0;
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        int32_t j = g->col[k];
        if (j < begin || j >= end || aggregate[j] < 0 || aggregate[j] == except) continue;
        float tie = -un_amg_entry(g, k);
        if (tie > most) {
            most = tie;
            found = aggregate[j];
        }
    }
    return found;
}

static void aggregate_block(void *arg, int64_t begin, int64_t end)
{
    aggregation *p = arg;
    un_amg_level *level = p->level;
    int32_t *aggregate = level->aggregate, count = 0;
    for (int64_t i = begin; i < end; i++) p->slot[i] = 0;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        if (aggregate[i] != UN_AMG_FREE) continue;
        int32_t member[MEMBERS_MAX], size = 0;
        un_amg_candidates c;
        c.count = 0;
        for (int32_t next = i; next >= 0; next = un_amg_take_best(&c, p->slot)) {
            aggregate[next] = count;
            member[size++] = next;
            if (size == p->size) break;
            add_ties(&c, p, next, begin, end);
        }
        int32_t host = -1;
        if (size < p->size / 2)
            for (int32_t m = 0; m < size && host < 0; m++)
                host = nearest(p, member[m], count, begin, end);
        if (host < 0) {
            count++;
            continue;
        }
        for (int32_t m = 0; m < size; m++) {
            int32_t to = nearest(p, member[m], count, begin, end);
            aggregate[member[m]] = to >= 0 ? to : host;
        }
    }
    level->first[begin / level->grain + 1] = count;
}

typedef struct numbering {
    int32_t *aggregate, *first;
    int64_t grain;
} numbering;

static void number_block(void *arg, int64_t begin, int64_t end)
{
    const numbering *p = arg;
    int32_t first = p->first[begin / p->grain];
    for (int64_t i = begin; i < end; i++)
        p->aggregate[i] = p->aggregate[i] < 0 ? -1 : p->aggregate[i] + first;
}

static int32_t number_part(un_context *ctx, const numbering *p, int64_t n, un_part own)
{
    int64_t blocks = (n + p->grain - 1) / p->grain;
    p->first[0] = 0;
    for (int64_t k = 0; k < blocks; k++) p->first[k + 1] += p->first[k];
    un_parallel_part(ctx, own, p->grain, number_block, (void *)p);
    return p->first[blocks];
}

int32_t un_amg_number(un_context *ctx, int32_t *aggregate, int32_t *first, int64_t n, un_part own,
                      int64_t grain)
{
    numbering p = {aggregate, first, grain};
    return number_part(ctx, &p, n, own);
}

/* Over ranks, those of the rows beside own ones are known afterwards, too. */
un_status un_amg_aggregate(un_amg *amg, un_amg_level *level, const un_amg_graph *g, int32_t *count)
{
    UN_AMG_NEED(amg->ctx, amg->member, amg->capacity_member, level->n);
    UN_ASSERT(amg->aggregate_size <= MEMBERS_MAX);
    aggregation p = {level, amg->aggregate_size, g, amg->member};
    numbering numbers = {level->aggregate, level->first, level->grain};
    int64_t blocks = un_amg_blocks(level);
    memset(level->first, 0, (size_t)(blocks + 1) * sizeof *level->first);
    un_amg_for_blocks(amg->ctx, level, aggregate_block, &p);
    if (level->cut) un_amg_share_counts(amg, level->first + 1, blocks);
    *count = number_part(amg->ctx, &numbers, level->n, level->own);
    un_halo_share(level->near, level->aggregate, sizeof *level->aggregate);
    return UN_OK;
}
