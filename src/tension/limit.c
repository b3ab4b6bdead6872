/* The step that surface tension allows.
 *
 * The shortest wave on cells of the edge h has the wave number pi / h and the frequency
 * sqrt(sigma k^3 / rho); explicit tension is stable while a step is shorter than
 *
 *     dt_c = sqrt(rho h^3 / (2 pi sigma))      [Brackbill, Kothe & Zemach 1992]
 *
 * or so. The curvature here is that of a smoothed surface, in which such waves hardly show. */
#include "tension/tension.h"

/* In dt_c; see docs/tension.md. */
#define STEPS 3.5

double un_tension_step_limit(const un_scene_def *def, double h)
{
    double sigma = def->fluid.surface_tension;
    return sigma > 0 ? STEPS * sqrt(def->fluid.density * h * h * h / (2 * UN_PI * sigma))
                     : INFINITY;
}

double un_tension_hold(const un_scene_def *def, double h, double kick)
{
    return kick * 2 * def->fluid.surface_tension / (def->fluid.density * h * h);
}
