/* Aggregates for plain aggregation: groups of strongly coupled rows.
 *
 * In each block of rows, in their order: a free row starts an aggregate, which grows by the free
 * row most strongly tied to it (the sum of its couplings to the members) until it is full. Compact
 * groups follow by themselves, since a row in a nook has several ties. What remains smaller than
 * AGGREGATE_MIN joins the neighbour it is tied to most.
 *
 * Rows that their diagonal dominates stay out of the coarse level: a sweep settles them, and stiff
 * rows in an aggregate would only hold its other rows back [Notay 2010]. */
#include "linalg/amg.h"

#define AGGREGATE_SIZE 8
#define AGGREGATE_MIN 4
/* A row stays out when its sum exceeds this share of its couplings. */
#define DOMINANT 1.f
/* Couplings below this share of a row's strongest are not followed. */
#define WEAK 0.25f
#define CANDIDATES_MAX 96

enum { FREE = -1, OUT = -2 };

typedef struct aggregation {
    un_amg_level *level;
    const un_amg_graph *g;
} aggregation;

typedef struct candidates {
    int32_t id[CANDIDATES_MAX];
    float tie[CANDIDATES_MAX];
    int32_t count;
} candidates;

static float strongest(const un_amg_graph *g, int32_t i)
{
    float most = 0;
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
        if (g->col[k] != i) most = fmaxf(most, -un_amg_entry(g, k));
    return most;
}

static void add_ties(candidates *c, const aggregation *p, int32_t i, int64_t begin, int64_t end)
{
    const un_amg_graph *g = p->g;
    const int32_t *aggregate = p->level->aggregate;
    float limit = WEAK * strongest(g, i);
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        int32_t j = g->col[k], at = 0;
        if (j < begin || j >= end || aggregate[j] != FREE || j == i) continue;
        float tie = -un_amg_entry(g, k);
        if (!(tie > limit)) continue;
        while (at < c->count && c->id[at] != j) at++;
        if (at == c->count) {
            if (at == CANDIDATES_MAX) continue;
            c->id[at] = j;
            c->tie[at] = 0;
            c->count++;
        }
        c->tie[at] += tie;
    }
}

/* The aggregate in the block that row i is tied to most, -1 none. */
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
    const un_amg_graph *g = p->g;
    un_amg_level *level = p->level;
    int32_t *aggregate = level->aggregate, count = 0;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        float sum = 0;
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
            if (g->col[k] != i) sum += fabsf(un_amg_entry(g, k));
        aggregate[i] = level->inverse[i] == 0 || g->excess[i] >= DOMINANT * sum ? OUT : FREE;
    }
    for (int32_t i = (int32_t)begin; i < end; i++) {
        if (aggregate[i] != FREE) continue;
        int32_t member[AGGREGATE_SIZE], size = 0;
        candidates c = {.count = 0};
        int32_t next = i;
        while (next >= 0) {
            aggregate[next] = count;
            member[size++] = next;
            if (size == AGGREGATE_SIZE) break;
            add_ties(&c, p, next, begin, end);
            int32_t best = -1;
            for (int32_t at = 0; at < c.count; at++)
                if (best < 0 || c.tie[at] > c.tie[best]) best = at;
            next = best < 0 ? -1 : c.id[best];
            if (best >= 0) {
                c.count--;
                c.id[best] = c.id[c.count];
                c.tie[best] = c.tie[c.count];
            }
        }
        int32_t host = -1;
        if (size < AGGREGATE_MIN)
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

static void number_block(void *arg, int64_t begin, int64_t end)
{
    un_amg_level *level = ((aggregation *)arg)->level;
    int32_t first = level->first[begin / level->grain];
    for (int64_t i = begin; i < end; i++)
        level->aggregate[i] = level->aggregate[i] < 0 ? -1 : level->aggregate[i] + first;
}

un_status un_amg_aggregate(un_amg *amg, un_amg_level *level, const un_amg_graph *g, int32_t *count)
{
    aggregation p = {level, g};
    level->first[0] = 0;
    un_parallel_for(amg->ctx, level->n, level->grain, aggregate_block, &p);
    int64_t blocks = un_amg_blocks(level);
    for (int64_t k = 0; k < blocks; k++) level->first[k + 1] += level->first[k];
    un_parallel_for(amg->ctx, level->n, level->grain, number_block, &p);
    *count = level->first[blocks];
    return UN_OK;
}
