/* What viscous liquid does in more than one method. */
#ifndef UN_TEST_METHOD_VISCOUS_H
#define UN_TEST_METHOD_VISCOUS_H

#include "method/world.h"

/* ---- a ball that sinks ---- */

#define VISCOUS_BALL_MU 500.0

/* The speed at which a ball of radius 0.1 m sinks along the axis of a cylinder `wide` times as wide
 * [Haberman & Sayre 1958]. */
static inline double viscous_ball_theory(double density, double wide)
{
    double k = 1 / wide;
    double more = (1 - 0.75857 * pow(k, 5)) /
                  (1 - 2.105 * k + 2.0865 * pow(k, 3) - 1.7068 * pow(k, 5) + 0.72603 * pow(k, 6));
    return 2.0 / 9 * (density - 1000) * 9.81 * 0.01 / (VISCOUS_BALL_MU * more);
}

/* The ball in that cylinder, closed and full, `high` radii high. */
static inline void viscous_ball_begin(world *w, const un_method *method, int cells, double density,
                                      double wide, double high)
{
    char text[1024];
    double r = 0.1 * wide, h = 0.1 * high;
    snprintf(text, sizeof text,
             "scene { method = '%s', domain = { size = {%g, %g, %g} },\n"
             "detail = { coarsest = %d, finest = %d }, fluid = { viscosity = %g },\n"
             "liquid = { box { min = {0, 0, 0}, max = {2, 2, 2} } },\n"
             "solids = { solid { shape = subtract { box { min = {-1, -1, -1}, max = {2, 2, 2} },\n"
             "  cylinder { from = {%g, -3, %g}, to = {%g, 3, %g}, radius = %g } } },\n"
             "  solid { shape = sphere { center = {%g, %g, %g}, radius = 0.1 },\n"
             "    density = %g, name = 'ball' } } }",
             method->traits.name, 2 * r, h, 2 * r, cells, cells, VISCOUS_BALL_MU, r, r, r, r, r, r,
             h / 2, r, density);
    world_begin(w, method, CHECK_THREADS, text);
}

/* The last of the scene's bodies. */
static inline const un_body *viscous_ball(const world *w)
{
    const un_bodies *bodies = un_method_bodies(w->state);
    return &bodies->body[bodies->count - 1];
}

/* How fast it sinks after a while, over what theory says. */
static inline double viscous_ball_speed(const un_method *method, int cells, double wide, double end)
{
    world w;
    viscous_ball_begin(&w, method, cells, 2000, wide, 8);
    world_run(&w, end);
    double speed = -viscous_ball(&w)->velocity.y / viscous_ball_theory(2000, wide);
    if (getenv("VERBOSE")) printf("ball: %g\n", speed);
    world_end(&w);
    return speed;
}

/* ---- a blob of honey that turns ---- */

/* Viscosity and density of the blob's two halves. */
#define VISCOUS_HALVES                                                                             \
    "fluid = { viscosity = function(x, y, z) return x < 0.5 and 1 or 500 end,\n"                   \
    "  density = function(x, y, z) return x < 0.5 and 700 or 1000 end }"

static inline un_particles *viscous_particles(const world *w)
{
    return (un_particles *)(uintptr_t)w->method->particles(w->state);
}

/* Lets the particles turn about `middle`. */
static inline void viscous_turn(world *w, un_vec3 middle, un_vec3 turn)
{
    un_particles *p = viscous_particles(w);
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 v = un_cross(turn, un_sub(un_particle_position(p, q), middle));
        p->v[0][q] = v.x;
        p->v[1][q] = v.y;
        if (w->scene->def.domain.dim == 3) p->v[2][q] = v.z;
    }
}

/* The angular momentum about `middle`; particles have kept viscosity and density. */
static inline un_vec3 viscous_spin(const world *w, un_vec3 middle, double *mass)
{
    const un_particles *p = viscous_particles(w);
    un_vec3 l = un_v3(0, 0, 0);
    *mass = 0;
    for (int32_t q = 0; q < p->count; q++) {
        double m = (double)p->volume[q] * (double)p->density[q];
        un_vec3 x = un_sub(un_particle_position(p, q), middle);
        l = un_mad(l, un_cross(x, un_particle_velocity(p, q)), m);
        *mass += m;
        assert_true(p->viscosity[q] >= 1 && p->viscosity[q] <= 500);
        assert_true(p->density[q] >= 700 && p->density[q] <= 1000);
    }
    return l;
}

/* The share of it that is lost in half a second. */
static inline double viscous_spin_lost(world *w, un_vec3 middle)
{
    double before, after;
    un_vec3 first = viscous_spin(w, middle, &before);
    world_run(w, 0.5);
    un_vec3 last = viscous_spin(w, middle, &after);
    check_near(after / before, 1, 1e-5);
    double lost = un_length(un_sub(last, first)) / un_length(first);
    if (getenv("VERBOSE")) printf("spin lost: %g\n", lost);
    return lost;
}

#endif
