/* What a viscous solve gives the liquid, so that it is just what bodies and walls lose.
 *
 * The equations of all places and of the bodies' velocities, added up, say that
 *
 *     sum M (u - u_old) + M_body dU = impulse of the walls + sum r,   r = A x - b:
 *
 * stress between liquid and bodies cancels, because a common motion strains nothing. r is what the
 * solver's tolerance leaves; without it the first sum is what the liquid got, to round-off. */
#include "viscosity/round.h"

typedef struct sum_args {
    const un_viscosity *v;
    int64_t bodies;
} sum_args;

static void sum_left_over(void *arg, int64_t begin, int64_t end, double *sums)
{
    const sum_args *a = arg;
    const un_viscosity *v = a->v;
    for (int64_t r = begin; r < end; r++) {
        int64_t k = v->node[r] - a->bodies;
        if (k >= 0 && k % 2 == 1) continue; /* a spin */
        un_vec3 sum = un_scale(v->b[r], -1);
        for (int32_t e = v->matrix.row[r]; e < v->matrix.row[r + 1]; e++)
            sum = un_add(sum, un_block_times(v->matrix.val[e], v->x[v->matrix.col[e]]));
        sums[0] += sum.x;
        sums[1] += sum.y;
        sums[2] += sum.z;
    }
}

un_vec3 un_viscosity_left_over(const un_viscosity *v, int64_t bodies)
{
    sum_args a = {v, bodies};
    double sums[3];
    un_viscosity_sums(v, 3, sum_left_over, &a, sums);
    return un_v3(sums[0], sums[1], sums[2]);
}
