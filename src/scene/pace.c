/* The scene's own time. Rates that are tuned (how fast noise dies out, volume is corrected, crowded
 * liquid evens out, cells coarsen) were found in domains 1 m long on earth, and elsewhere go with
 * it: a scene looks the same at any size. */
#include "scene/scene.h"

#define EARTH 9.81 /* m/s2 */

double un_scene_pace(const un_scene_def *def)
{
    un_vec3 size = def->domain.size;
    double longest = fmax(size.x, fmax(size.y, size.z)), g = un_length(def->gravity);
    if (g > 0) return sqrt(longest * EARTH / g);
    double speed = un_length(def->liquid.velocity);
    for (int32_t s = 0; s < def->source_count; s++)
        speed = fmax(speed, un_length(def->sources[s].velocity));
    return speed > 0 ? longest / speed : longest;
}
