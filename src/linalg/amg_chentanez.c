/* Transfers of [Chentanez07 section 3.5]: rows are coarse or fine, and a fine row takes the average
 * of its coarse neighbours.
 *
 * Labelling is greedy, as in the paper: among the rows next to a fine row, the one with the most
 * unlabelled neighbours becomes coarse, and its neighbours become fine. Departure: blocks of rows
 * are labelled independently, each from its first row instead of a random one, so that threads have
 * work and the result does not depend on them. Each fine row has a coarse neighbour in its
 * block. */
#include "linalg/amg.h"

/* Rows with more unlabelled neighbours count as having this many. */
#define BUCKETS 64

enum { FINE = -3, COARSE = -4 };

typedef struct labelling {
    const un_amg_graph *g;
    un_amg_level *level;
    /* lists of rows by how many unlabelled neighbours they have; -1 ends, count < 0: in no list */
    int32_t *next, *previous, *count;
} labelling;

typedef struct lists {
    int32_t head[BUCKETS + 1];
    int32_t top;
} lists;

static int32_t bucket(int32_t count)
{
    return count < 0 ? 0 : count < BUCKETS ? count : BUCKETS;
}

/* Rows in a list have previous >= -1, others -2. */
static void take_out(labelling *p, lists *list, int32_t i)
{
    if (p->previous[i] == -2) return;
    if (p->previous[i] >= 0)
        p->next[p->previous[i]] = p->next[i];
    else
        list->head[bucket(p->count[i])] = p->next[i];
    if (p->next[i] >= 0) p->previous[p->next[i]] = p->previous[i];
    p->previous[i] = -2;
}

static void put_in(labelling *p, lists *list, int32_t i)
{
    int32_t b = bucket(p->count[i]);
    p->next[i] = list->head[b];
    p->previous[i] = -1;
    if (p->next[i] >= 0) p->previous[p->next[i]] = i;
    list->head[b] = i;
    if (b > list->top) list->top = b;
}

/* The row of the k-th entry if it is a neighbour in the block, else -1. */
static inline int32_t neighbour(const un_amg_graph *g, int32_t i, int32_t k, int64_t begin,
                                int64_t end)
{
    int32_t j = g->col[k];
    return j == i || j < begin || j >= end || un_amg_entry(g, k) == 0 ? -1 : j;
}

static void make_coarse(labelling *p, lists *list, int32_t c, int64_t begin, int64_t end)
{
    const un_amg_graph *g = p->g;
    int32_t *label = p->level->aggregate;
    take_out(p, list, c);
    label[c] = COARSE;
    for (int32_t k = g->row[c]; k < g->row[c + 1]; k++) {
        int32_t f = neighbour(g, c, k, begin, end);
        if (f < 0 || label[f] != UN_AMG_FREE) continue;
        take_out(p, list, f);
        label[f] = FINE;
        for (int32_t m = g->row[f]; m < g->row[f + 1]; m++) {
            int32_t u = neighbour(g, f, m, begin, end);
            if (u < 0 || label[u] != UN_AMG_FREE) continue;
            take_out(p, list, u);
            p->count[u]--;
            put_in(p, list, u);
        }
    }
}

static void label_block(void *arg, int64_t begin, int64_t end)
{
    labelling *p = arg;
    const un_amg_graph *g = p->g;
    un_amg_level *level = p->level;
    int32_t *label = level->aggregate;
    lists list = {.top = 0};
    for (int b = 0; b <= BUCKETS; b++) list.head[b] = -1;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        if (level->inverse[i] != 0) label[i] = UN_AMG_FREE; /* stiff rows too, as in the paper */
        p->previous[i] = -2;
        p->count[i] = 0;
        for (int32_t k = g->row[i]; k < g->row[i + 1]; k++)
            p->count[i] += neighbour(g, i, k, begin, end) >= 0;
    }
    for (int32_t i = (int32_t)begin; i < end; i++) {
        if (label[i] != UN_AMG_FREE) continue;
        make_coarse(p, &list, i, begin, end);
        for (;;) {
            while (list.top > 0 && list.head[list.top] < 0) list.top--;
            if (list.head[list.top] < 0) break;
            make_coarse(p, &list, list.head[list.top], begin, end);
        }
    }
    int32_t count = 0;
    for (int64_t i = begin; i < end; i++) label[i] = label[i] == COARSE ? count++ : -1;
    level->first[begin / level->grain + 1] = count;
}

static void number_block(void *arg, int64_t begin, int64_t end)
{
    un_amg_level *level = ((labelling *)arg)->level;
    int32_t first = level->first[begin / level->grain];
    for (int64_t i = begin; i < end; i++)
        if (level->aggregate[i] >= 0) level->aggregate[i] += first;
}

static void row_of(const void *arg, int32_t i, un_amg_parents *parents)
{
    const labelling *p = arg;
    const un_amg_graph *g = p->g;
    const int32_t *coarse = p->level->aggregate;
    if (coarse[i] >= 0) {
        parents->id[0] = coarse[i];
        parents->weight[0] = 1;
        parents->count = 1;
        return;
    }
    for (int32_t k = g->row[i]; k < g->row[i + 1] && parents->count < UN_AMG_PARENTS_MAX; k++)
        if (coarse[g->col[k]] >= 0 && un_amg_entry(g, k) != 0)
            parents->id[parents->count++] = coarse[g->col[k]];
    for (int32_t q = 0; q < parents->count; q++) parents->weight[q] = 1.f / (float)parents->count;
}

un_status un_amg_average_transfer(un_amg *amg, int32_t l, const un_amg_graph *g,
                                  int32_t *coarse_count)
{
    un_amg_level *level = &amg->level[l];
    size_t n = (size_t)level->n;
    UN_AMG_NEED(amg->ctx, amg->member, amg->capacity_member, 3 * n);
    labelling p = {g, level, amg->member, amg->member + n, amg->member + 2 * n};
    level->first[0] = 0;
    un_parallel_for(amg->ctx, level->n, level->grain, label_block, &p);
    int64_t blocks = un_amg_blocks(level);
    for (int64_t k = 0; k < blocks; k++) level->first[k + 1] += level->first[k];
    un_parallel_for(amg->ctx, level->n, level->grain, number_block, &p);
    *coarse_count = level->first[blocks];
    if (*coarse_count == 0) return UN_OK;
    return un_amg_build_transfer(amg, level, &amg->transfer[l], *coarse_count, row_of, &p);
}
