/* The budget of particles.
 *
 * Whether it will be passed is seen from the sizes that particles want, several steps before they
 * have split that far. Then all wanted sizes are made larger at once, and shrink again slowly when
 * there is room. */
#include "sizing/sizing.h"

/* Shares of the budget: above, sizes grow until the aim is met; below, they shrink again. */
#define BUDGET_HIGH 0.95
#define BUDGET_AIM 0.88
#define BUDGET_LOW 0.7
/* Per call. The count goes with the second to the third power of the scale, so that a step down
 * stays within the gap between LOW and HIGH. */
#define BUDGET_SHRINK 0.97
/* The scale is sought in such steps, the count is a matter of the next few per cent anyway. */
#define BUDGET_SEARCH 1.05
#define BUDGET_SCALE_MAX 1e6
#define BUDGET_NEARLY 1.02

double un_sizing_budget(double scale, double particles_max, un_sizing_expected *expected, void *arg)
{
    if (!(particles_max > 0)) return 1;
    double share = expected(arg, 1) / particles_max, factor = 1;
    if (share < BUDGET_LOW) return fmax(1, scale * BUDGET_SHRINK);
    if (share <= BUDGET_HIGH) return scale;
    /* A budget for less than all as large as they get cannot be kept: no more than that is sought,
     * for what the scale grows beyond must be shrunk again. */
    double least = expected(arg, BUDGET_SCALE_MAX) / particles_max;
    double aim = fmax(BUDGET_AIM, BUDGET_NEARLY * least);
    while (share > aim && scale * factor < BUDGET_SCALE_MAX) {
        factor *= BUDGET_SEARCH * fmax(1, cbrt(share / fmax(8, 8 * least)));
        share = expected(arg, factor) / particles_max;
    }
    return fmin(scale * factor, BUDGET_SCALE_MAX);
}

typedef struct budget_args {
    un_context *ctx;
    un_markers *markers;
    const un_resize_def *range;
    float factor;
} budget_args;

static double expected_count(void *arg, double factor)
{
    budget_args *a = arg;
    return un_particles_expected(a->ctx, &a->markers->particles, a->markers->share, a->range,
                                 factor);
}

static void enlarge(void *arg, int64_t begin, int64_t end)
{
    budget_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->markers->particles.size[q] *= a->factor;
}

void un_budget_keep(un_context *ctx, un_budget *b, un_markers *markers, const un_resize_def *range,
                    double most, int32_t step)
{
    budget_args a = {ctx, markers, range, 1};
    double was = b->scale;
    b->most = most != 0 ? fmax(most, 1) : 0;
    b->scale = un_sizing_budget(b->scale, b->most, expected_count, &a);
    if (!(b->scale > was)) return;
    if (!b->warned)
        un_log(ctx, UN_LOG_WARNING,
               "step %d: %.0f particles would come where the budget allows %.0f; cells are made "
               "larger to stay inside it",
               step, expected_count(&a, 1), b->most);
    b->warned = true;
    a.factor = (float)(b->scale / was);
    un_parallel_part(ctx, un_markers_own(markers), 16384, enlarge, &a);
}
