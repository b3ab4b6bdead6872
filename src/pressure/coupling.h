/* Bodies in the linear system of a projection; only src/pressure includes this. */
#ifndef UN_PRESSURE_COUPLING_H
#define UN_PRESSURE_COUPLING_H

#include "pressure/pressure.h"

/* Writes the rows that a body pushes on, ascending, and for each the outflow that the body adds per
 * unit of velocity along x, y, z and of spin about them. row NULL: only counts. */
typedef int32_t un_coupling_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6]);

/* Finds these rows by asking push_of for every unknown; it returns false if the body does not push
 * on the unknown at that place. */
typedef bool un_coupling_push_of(const void *arg, int32_t place, int32_t body, double push[6]);
int32_t un_coupling_collect(const un_pressure *pressure, int32_t body, un_coupling_push_of *push_of,
                            const void *arg, int32_t *row, double (*push)[6]);

/* Builds the columns. density: of the liquid; unit: N s in a row for an x of 1. */
un_status un_coupling_build(un_pressure *pressure, un_bodies *bodies, double density, double unit,
                            un_coupling_rows *rows, const void *arg);
/* The same with a mass that `more` adds to each body: a 6x6 matrix for motion along the axes and
 * spin about them. */
typedef void un_coupling_mass(const void *arg, int32_t body, double mass[6][6]);
un_status un_coupling_build_heavier(un_pressure *pressure, un_bodies *bodies, double density,
                                    double unit, un_coupling_rows *rows, un_coupling_mass *more,
                                    const void *arg);
/* Over ranks, each of which asks push_of for its own unknowns: all get to know all rows next to
 * bodies. Ranks have ranges of rows, so each body's ascend. */
un_status un_coupling_build_ranks(un_pressure *pressure, un_bodies *bodies, double density,
                                  double unit, un_coupling_push_of *push_of, const void *arg);
/* Those of other ranks. */
un_status un_coupling_list_others(const un_pressure *pressure, un_ids *rows);
static inline bool un_coupling_any(const un_pressure *pressure)
{
    return pressure->coupling.columns.count > 0;
}
/* Leaves out the rows that have let go, whose x is given; their push moves to rhs. */
un_status un_coupling_confine(un_pressure *pressure, double *rhs);
un_status un_coupling_need_together(un_pressure *pressure);
/* C C^T x by row, into coupling.together. */
void un_coupling_find_together(un_pressure *pressure);
/* Gives the bodies the impulse of x, or of a given pressure q by row, whose effect on the velocity
 * is subtracted from the right-hand side. */
void un_coupling_push(un_pressure *pressure, un_bodies *bodies);
void un_coupling_push_given(un_pressure *pressure, un_bodies *bodies, const double *q);
/* The same with a pressure at the surface, by place, times kick / density; surface may be NULL. */
un_status un_coupling_push_surface(un_pressure *pressure, un_bodies *bodies, const double *surface,
                                   double kick, double density);
/* Gives the i-th coupled body an impulse, N s, and one of torque, N m s. */
void un_coupling_kick(const un_pressure *pressure, un_bodies *bodies, int32_t i,
                      const double impulse[6]);
void un_coupling_free(un_context *ctx, un_coupling *coupling);

#endif
