/* Bodies in the linear system of a projection; only src/pressure includes this. */
#ifndef UN_PRESSURE_COUPLING_H
#define UN_PRESSURE_COUPLING_H

#include "pressure/pressure.h"

/* The rows that a body pushes on, ascending, and how much it adds to what flows out of each, by its
 * velocity along x, y, z and its spin about them. row NULL: only counts them. */
typedef int32_t un_coupling_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6]);

/* Those among all rows of the system. push_of says how much the body pushes on the unknown at a
 * place; false: not at all. */
typedef bool un_coupling_push_of(const void *arg, int32_t place, int32_t body, double push[6]);
int32_t un_coupling_collect(const un_pressure *pressure, int32_t body, un_coupling_push_of *push_of,
                            const void *arg, int32_t *row, double (*push)[6]);

/* Builds the columns. density: of the liquid; unit: N s in a row for an x of 1. */
un_status un_coupling_build(un_pressure *pressure, un_bodies *bodies, double density, double unit,
                            un_coupling_rows *rows, const void *arg);
/* The same for bodies that are heavier by what `more` adds to their mass: along the axes, then
 * about them, and between. */
typedef void un_coupling_mass(const void *arg, int32_t body, double mass[6][6]);
un_status un_coupling_build_heavier(un_pressure *pressure, un_bodies *bodies, double density,
                                    double unit, un_coupling_rows *rows, un_coupling_mass *more,
                                    const void *arg);
static inline bool un_coupling_any(const un_pressure *pressure)
{
    return pressure->coupling.columns.count > 0;
}
/* Without the rows that have let go, whose x is given; what they push is moved into rhs. */
un_status un_coupling_confine(un_pressure *pressure, double *rhs);
un_status un_coupling_need_together(un_pressure *pressure);
/* C C^T x by row, into coupling.together. */
void un_coupling_find_together(un_pressure *pressure);
/* Gives the bodies the impulse of x, or of a pressure q by row; what q does to the velocity is
 * taken from the right-hand side. */
void un_coupling_push(un_pressure *pressure, un_bodies *bodies);
void un_coupling_push_given(un_pressure *pressure, un_bodies *bodies, const double *q);
/* The same with the pressure at the surface, by place, of which a step gives kick / density;
 * surface may be NULL. */
un_status un_coupling_push_surface(un_pressure *pressure, un_bodies *bodies, const double *surface,
                                   double kick, double density);
/* Gives the i-th coupled body an impulse, N s, and one of torque, N m s. */
void un_coupling_kick(const un_pressure *pressure, un_bodies *bodies, int32_t i,
                      const double impulse[6]);
void un_coupling_free(un_context *ctx, un_coupling *coupling);

#endif
