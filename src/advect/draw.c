/* Edges of thick liquid, and drops on walls.
 *
 * The level set rounds off edges and leaves the particles in them outside. Water flings them off.
 * Thick liquid sheds no drops, but these particles would fly beside it as drops, or stand out of
 * its surface as a ragged seam. So they count as part of it and are pulled gradually back to the
 * level set.
 *
 * Under surface tension drops smaller than a cell stay on a wall that they touch: their velocity
 * relative to it decays within the period of a wave as long as a cell, as long as tension is
 * stronger than weight, and they are slower than such a wave. Without this, a bead with a contact
 * angle of 30 degrees shed the edge that the level set does not see all over the floor. */
#include "advect/advect.h"

/* The time this takes, in paces of the scene (un_scene_pace). Pulled in quickly (0.02 s), a thread
 * four cells thick lost up to 8 % of its volume, because it grows denser before it grows wider; at
 * 0.04 s it lost 3 %, at 0.1 s 1 %, with less smooth edges. */
#define DRAWN_TIME 0.05

/* Drops no further from a wall than this, in finest cells, touch it. */
#define TOUCHES 0.5

typedef struct draw_args {
    un_markers *markers;
    un_particles *particles;
    const un_walls *walls;
    const un_cling *cling;
    un_draw_in which;
    double dt, pace;
    const float *phi; /* on the grid: at cells */
} draw_args;

/* Slows down a drop of radius r that touches a wall, which is not nearer than `least`. */
static void hold_drop(const draw_args *a, int64_t q, double r, double least)
{
    un_particles *p = a->particles;
    double h = a->cling->h, tension = a->cling->tension;
    if (!(tension > a->cling->gravity * r * r) || !(least < TOUCHES * h)) return;
    un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), wall = {0, 0, 0};
    double near = un_walls_distance_exact(a->walls, x);
    if (!(near < TOUCHES * h)) return;
    double d = near + 1e-6 * h; /* sides are no bodies */
    int32_t body = un_bodies_nearest(a->walls->bodies, x, &d);
    if (body >= 0) wall = un_body_velocity(&a->walls->bodies->body[body], x);
    un_vec3 slip = un_sub(v, wall);
    if (!(un_dot(slip, slip) < tension / h)) return;
    un_particle_set_velocity(p, q, un_mad(wall, slip, exp(-a->dt * sqrt(tension / (h * h * h)))));
}

static void draw_in(void *arg, int64_t begin, int64_t end)
{
    draw_args *a = arg;
    un_markers *m = a->markers;
    un_particles *p = &m->particles;
    for (int64_t q = begin; q < end; q++) {
        double depth = m->depth[q];
        if (!(depth > 0)) continue;
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) hold_drop(a, q, m->radius[q], m->wall[q]);
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
    draw_args a = {.markers = markers,
                   .particles = &markers->particles,
                   .walls = walls,
                   .cling = cling,
                   .which = which,
                   .dt = dt,
                   .pace = pace};
    if (cling->viscous || cling->tension > 0 || which != UN_DRAW_HELD)
        un_parallel_part(ctx, un_markers_own(markers), 16384, draw_in, &a);
}

/* ---- on the grid ---- */

/* Particles that the level set leaves outside, by more than their own radius, touch the wall as
 * drops do, whether they fly or not. Those nearer to it are the surface's own: held too, they made
 * a wave of 32 cells that climbs a wall 2.1 % too slow instead of 1.7. */
UN_KERNEL void hold_in_grid(const draw_args *a, int64_t begin, int64_t end, int dim)
{
    const un_particles *p = a->particles;
    const un_grid *g = a->walls->grid;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        if (un_grid_sample_in(g, a->phi, x, dim) > un_particle_ball(p, q))
            hold_drop(a, q, un_particle_ball(p, q), un_walls_distance(a->walls, x) - g->h);
    }
}

static void hold_drops(void *arg, int64_t begin, int64_t end)
{
    const draw_args *a = arg;
    UN_BY_DIM(a->walls->grid->dim, hold_in_grid(a, begin, end, dim));
}

void un_advect_hold_drops(un_context *ctx, un_particles *particles, const float *phi,
                          const un_walls *walls, const un_cling *cling, double dt)
{
    draw_args a = {.particles = particles, .walls = walls, .cling = cling, .dt = dt, .phi = phi};
    if (cling->tension > 0) un_parallel_for(ctx, particles->count, 16384, hold_drops, &a);
}
