/* The scene's solver settings. */
#include "pressure/pressure.h"

un_status un_pressure_configure(un_solver *solver, const un_scene_def *def)
{
    un_solver_kind kind = un_solver_kind_find(def->solver.kind);
    UN_ASSERT(kind < UN_SOLVER_KIND_COUNT); /* checked when the scene was read */
    un_solver_set_kind(solver, kind);
    if (!def->solver.dump[0]) return UN_OK;
    return un_solver_set_dump(solver, def->solver.dump, def->solver.dump_every);
}
