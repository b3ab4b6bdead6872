/* The scene's own time. Rates that are tuned (how fast noise dies out, volume is corrected, crowded
 * liquid evens out, cells coarsen) were found in domains 1 m long on earth, and elsewhere go with
 * it: a scene looks the same at any size. */
#include "scene/scene.h"

#define EARTH 9.81 /* m/s2 */
/* The default of solver.pic, in 1 / pace. */
#define PIC 3.0
/* With surface tension, in shares of the frequency sqrt(sigma / rho h^3) of waves as long as a
 * cell: noise in the curvature drives them. A still drop of 16 cells a radius ends at 0.3 of
 * sqrt(sigma / rho R) without, at 0.03 with 0.06 and at 0.013 with 0.12; an oscillating one loses
 * 2 % per period. */
#define PIC_TENSION 0.1

double un_scene_pace(const un_scene_def *def)
{
    un_vec3 size = def->domain.size;
    double longest = fmax(size.x, fmax(size.y, size.z)), g = un_length(def->gravity);
    double sigma = def->fluid.surface_tension;
    /* of a drop as large as the domain */
    double swing =
        sigma > 0 ? sqrt(def->fluid.density * longest * longest * longest / sigma) : INFINITY;
    if (g > 0) return fmin(sqrt(longest * EARTH / g), swing);
    double speed = un_length(def->liquid.velocity);
    for (int32_t s = 0; s < def->source_count; s++)
        speed = fmax(speed, un_length(def->sources[s].velocity));
    if (speed > 0) return fmin(longest / speed, swing);
    return sigma > 0 ? swing : longest;
}

double un_scene_pic(const un_scene_def *def)
{
    un_vec3 size = def->domain.size;
    double h = fmax(size.x, fmax(size.y, size.z)) / def->detail.finest;
    double waves = sqrt(def->fluid.surface_tension / (def->fluid.density * h * h * h));
    return fmax(PIC / un_scene_pace(def), PIC_TENSION * waves);
}
