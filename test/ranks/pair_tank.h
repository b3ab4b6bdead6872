/* A tank for meshes over ranks (pair_tets.h). */
#ifndef UN_TEST_PAIR_TANK_H
#define UN_TEST_PAIR_TANK_H

#include "mesh/tank.h"
#include "mesh/trees.h"

/* With a wall thicker than two finest cells and thinner than two of the coarsest, and a ball that
 * moves. */
static inline void pair_tank(tank *t, un_context *ctx, const check_tree_def *def, bool solids)
{
    un_vec3 s = def->size;
    tank_begin_in(t, ctx, s, def->finest);
    if (solids) {
        double wide = 3.3 * fmax(fmax(s.x, s.y), s.z) / def->finest;
        tank_solid(t, tank_box(t, un_v3(0.4 * s.x, 0, 0), un_v3(0.4 * s.x + wide, 0.6 * s.y, s.z)),
                   un_v3(0, 0, 0));
        tank_solid(t, tank_sphere(t, un_v3(0.7 * s.x, 0.4 * s.y, 0.5 * s.z), wide),
                   un_v3(0.3, 0.5, -0.1));
    }
    tank_build_exact(t);
}

#endif
