/* Smoothed aggregation [Vanek, Mandel & Brezina 1996]: prolongation that is constant on each
 * aggregate, then improved by one step of damped Jacobi,
 *
 *     P = (I - omega D^-1 A) P_0.
 *
 * Corrections are smoother than with plain aggregation, so a V-cycle is enough. In exchange coarse
 * rows have more entries, and aggregates are larger to limit their number. */
#include "linalg/amg.h"

/* 4/3 divided by the largest eigenvalue of D^-1 A, which is at most 2 where couplings are
 * negative. */
#define OMEGA (2.f / 3)

typedef struct smoothing {
    const un_amg_graph *g;
    const int32_t *aggregate;
    const float *diagonal;
} smoothing;

static void add(un_amg_parents *parents, int32_t id, float weight)
{
    for (int32_t q = 0; q < parents->count; q++)
        if (parents->id[q] == id) {
            parents->weight[q] += weight;
            return;
        }
    if (parents->count == UN_AMG_PARENTS_MAX) return;
    parents->id[parents->count] = id;
    parents->weight[parents->count++] = weight;
}

static void row_of(const void *arg, int32_t i, un_amg_parents *parents)
{
    const smoothing *s = arg;
    const un_amg_graph *g = s->g;
    if (s->aggregate[i] < 0) return;
    float factor = -OMEGA / s->diagonal[i];
    add(parents, s->aggregate[i], 1 - OMEGA);
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        int32_t j = g->col[k];
        float entry = j == i ? 0 : un_amg_entry(g, k);
        if (entry != 0 && s->aggregate[j] >= 0) add(parents, s->aggregate[j], factor * entry);
    }
}

un_status un_amg_smooth_transfer(un_amg *amg, int32_t l, const un_amg_graph *g,
                                 const float *diagonal, int32_t *coarse_count)
{
    un_amg_level *level = &amg->level[l];
    UN_TRY(un_amg_aggregate(amg, level, g, coarse_count));
    if (*coarse_count == 0) return UN_OK;
    smoothing s = {g, level->aggregate, diagonal};
    return un_amg_build_transfer(amg, level, &amg->transfer[l], *coarse_count, row_of, &s);
}
