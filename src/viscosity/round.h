/* One round of a viscous solve (round.c); private to this folder. */
#ifndef UN_VISCOSITY_ROUND_H
#define UN_VISCOSITY_ROUND_H

#include "viscosity/viscosity.h"

/* Solves matrix x = b of v from the x that is there. report: of the rounds before, whose kind of
 * solver and set-up are used again; of all of them after it. has_free: v->free is set. */
un_status un_viscosity_round(un_viscosity *v, bool has_free, double tolerance,
                             int32_t iteration_limit, un_block_report *report);

/* The rows of this rank, and sums over those of all. */
static inline un_part un_viscosity_rows(const un_viscosity *v)
{
    return v->shared ? (un_part){v->rows.begin, v->rows.end} : (un_part){0, v->matrix.n};
}
void un_viscosity_sums(const un_viscosity *v, int32_t width, un_parallel_values *values, void *arg,
                       double *sums);

/* After a round: what the solver's tolerance leaves of the equations, summed, but for the bodies'
 * spins: momentum that nobody gave (momentum.c). bodies: the first place of bodies, which have two
 * each, velocity and spin. */
un_vec3 un_viscosity_left_over(const un_viscosity *v, int64_t bodies);

#endif
