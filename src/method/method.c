/* The table of methods, and what they share. */
#include "method/method.h"

static const un_method *const methods[] = {&un_method_uniform};

const un_method *un_method_find(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i]->name, name) == 0) return methods[i];
    return NULL;
}

void un_step_init(un_step *step)
{
    *step = (un_step){0};
}

void un_stage_end(un_step *step, int32_t stage, double *clock)
{
    double now = un_seconds();
    step->stage_seconds[stage] += now - *clock;
    *clock = now;
}

void un_cells_free(un_context *ctx, un_cells *cells)
{
    un_free(ctx, cells->min);
    un_free(ctx, cells->size);
    un_free(ctx, cells->level);
    un_free(ctx, cells->pressure);
    un_free(ctx, cells->velocity);
    *cells = (un_cells){0};
}
