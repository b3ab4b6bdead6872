/* What the scene says of solvers. */
#include "pressure/pressure.h"

un_status un_pressure_configure(un_solver *solver, const un_scene_def *def)
{
    un_solver_kind kind = un_solver_kind_find(def->solver.kind);
    UN_ASSERT(kind < UN_SOLVER_KIND_COUNT); /* the scene's reader saw to it */
    un_solver_set_kind(solver, kind);
    if (!def->solver.dump[0]) return UN_OK;
    return un_solver_set_dump(solver, def->solver.dump, def->solver.dump_every);
}

typedef struct add_args {
    double *p;
    const double *more;
} add_args;

static void add(void *arg, int64_t begin, int64_t end)
{
    add_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->p[n] += a->more[n];
}

void un_pressure_add(un_context *ctx, double *p, const double *more, int64_t count)
{
    add_args a = {p, more};
    un_parallel_for(ctx, count, 16384, add, &a);
}
