/* Edges of thick liquid.
 *
 * The level set rounds off edges and leaves the particles in them outside. Water flings them off.
 * Thick liquid sheds no drops, but these particles would fly beside it as drops, or stand out of
 * its surface as a ragged seam. So they count as part of it and are pulled gradually back to the
 * level set. */
#include "advect/advect.h"

/* The time this takes, in paces of the scene (un_scene_pace). Pulled in quickly (0.02 s), a thread
 * four cells thick lost up to 8 % of its volume, because it grows denser before it grows wider; at
 * 0.04 s it lost 3 %, at 0.1 s 1 %, with less smooth edges. */
#define DRAWN_TIME 0.05

typedef struct draw_args {
    un_markers *markers;
    const un_walls *walls;
    const un_cling *cling;
    un_draw_in which;
    double dt, pace;
} draw_args;

static void draw_in(void *arg, int64_t begin, int64_t end)
{
    draw_args *a = arg;
    un_markers *m = a->markers;
    un_particles *p = &m->particles;
    for (int64_t q = begin; q < end; q++) {
        double depth = m->depth[q];
        if (!(depth > 0)) continue;
        if (a->which == UN_DRAW_WHOLE && p->flags[q] & UN_PARTICLE_THIN) continue;
        bool near = a->which == UN_DRAW_HELD ? un_cling_holds(a->cling, m, q, depth)
                                             : depth < un_cling_reach(a->cling, m->radius[q]);
        if (!near) continue;
        double way = depth * fmin(1, a->dt / (DRAWN_TIME * a->pace));
        un_vec3 normal = un_v3(m->normal[0][q], m->normal[1][q], m->normal[2][q]);
        un_vec3 x = un_particle_position(p, q), unused = {0, 0, 0};
        un_vec3 to = un_advect_collide(a->walls, x, un_mad(x, normal, -way), a->dt, &unused);
        un_particle_set_position(p, q, to);
    }
}

void un_advect_draw_in(un_context *ctx, un_markers *markers, const un_walls *walls,
                       const un_cling *cling, un_draw_in which, double dt, double pace)
{
    draw_args a = {markers, walls, cling, which, dt, pace};
    if (cling->viscous || cling->tension > 0 || which != UN_DRAW_HELD)
        un_parallel_for(ctx, markers->particles.count, 16384, draw_in, &a);
}
