/* A tank made by hand, without a scene file: domain, solids, grid, walls, and shapes for them. */
#ifndef UN_TEST_MESH_TANK_H
#define UN_TEST_MESH_TANK_H

#include "check.h"
#include "mesh/mesh.h"

typedef struct tank {
    un_context *ctx;
    un_scene scene;
    un_solid solids[8];
    un_shape_set *shapes;
    un_grid grid;
    un_bodies *bodies;
    un_walls *walls;
} tank;

/* Then add solids, then tank_build. The tank must not move in memory after tank_build. */
static inline void tank_begin_in(tank *t, un_context *ctx, un_vec3 size, int32_t finest)
{
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    t->scene.ctx = t->ctx;
    t->scene.def = un_scene_def_default();
    t->scene.def.domain.size = size;
    t->scene.def.detail.finest = finest;
    t->scene.def.solids = t->solids;
    t->shapes = un_shape_set_create(t->ctx);
    assert_non_null(t->shapes);
    t->grid = un_grid_make(size, finest);
}
static inline void tank_begin(tank *t, int32_t threads, un_vec3 size, int32_t finest)
{
    tank_begin_in(t, check_context_threads(threads), size, finest);
}

static inline void tank_solid(tank *t, const un_shape *shape, un_vec3 velocity)
{
    int32_t n = t->scene.def.solid_count++;
    t->solids[n] = (un_solid){
        .shape = shape, .velocity = velocity, .pose = -1, .moves = un_dot(velocity, velocity) > 0};
}

static inline un_shape *tank_box(tank *t, un_vec3 min, un_vec3 max)
{
    un_shape *shape;
    check_ok(t->ctx, un_shape_box(t->shapes, min, max, &shape));
    return shape;
}

static inline un_shape *tank_sphere(tank *t, un_vec3 center, double radius)
{
    un_shape *shape;
    check_ok(t->ctx, un_shape_sphere(t->shapes, center, radius, &shape));
    return shape;
}

static inline un_shape *tank_plane(tank *t, un_vec3 point, un_vec3 normal)
{
    un_shape *shape;
    check_ok(t->ctx, un_shape_plane(t->shapes, point, normal, &shape));
    return shape;
}

/* Without samples, for walls on another mesh. */
static inline void tank_build_exact(tank *t)
{
    check_ok(t->ctx, un_bodies_create(t->ctx, &t->scene, &t->bodies));
    check_ok(t->ctx, un_walls_create(t->ctx, &t->grid, t->bodies, false, &t->walls));
}

static inline void tank_build(tank *t)
{
    check_ok(t->ctx, un_bodies_create(t->ctx, &t->scene, &t->bodies));
    check_ok(t->ctx, un_walls_create(t->ctx, &t->grid, t->bodies, true, &t->walls));
}

/* The solids for a step from `time` on, and the samples of them. */
static inline void tank_move(tank *t, double time, double dt)
{
    check_ok(t->ctx, un_bodies_update(t->bodies, time, dt));
    check_ok(t->ctx, un_walls_update(t->walls));
}

static inline void tank_free(tank *t) /* but for its context */
{
    un_walls_destroy(t->walls);
    un_bodies_destroy(t->bodies);
    un_shape_set_destroy(t->shapes);
}
static inline void tank_end(tank *t)
{
    tank_free(t);
    check_context_end(t->ctx);
}

#endif
