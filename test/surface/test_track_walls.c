/* A carried surface goes on in walls: level where water rests, and not through them. */
#include "mesh/tank.h"
#include "surface/surface.h"

#define CELLS 40

/* A pool on a slope. Along the slope's normal its surface would bend in the ground. */
static void pools_start_level(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 1, un_v3(1, 1, 0.4), CELLS);
    tank_solid(&t, tank_plane(&t, un_v3(0.5, 0.5, 0), un_v3(-1, 1, 0)), un_v3(0, 0, 0));
    tank_build(&t);
    un_track_walls walls = {
        .bodies = t.bodies, .size = un_v3(1, 1, 0.4), .gravity = un_v3(0, -9.81, 0)};
    const un_shape *pool = tank_plane(&t, un_v3(0, 0.611, 0), un_v3(0, 1, 0));
    un_track track;
    check_ok(t.ctx, un_track_init(&track, t.ctx, un_v3(1, 1, 0.4), CELLS));
    check_ok(t.ctx, un_track_start(&track, &pool, 1, &walls));
    int32_t inside = 0;
    for (int32_t v = 0; v < track.mesh.vertex_count; v++) {
        un_vec3 x = track.mesh.position[v];
        double d = un_track_solid(t.bodies, x);
        if (d < -3 * track.h) continue;
        inside += d < -track.h;
        check_near(x.y, 0.611, 0.01 * track.h);
    }
    assert_true(inside > 10);
    un_track_free(&track);
    tank_end(&t);
}

static bool stay(const void *arg, un_vec3 x, un_vec3 *foot)
{
    un_vec3 open = un_track_into(arg, x, 0);
    *foot = un_add(open, un_track_way(arg, x, open));
    return true;
}

static un_vec3 stay_ahead(const void *arg, un_vec3 x)
{
    (void)arg;
    return x;
}

/* Water on one side of a wall of four cells, whose surface is shifted outwards in every step. */
static void surfaces_stay_in_walls(void **state)
{
    (void)state;
    tank t;
    un_vec3 size = {1, 0.4, 0.4};
    tank_begin(&t, 1, size, CELLS);
    tank_solid(&t, tank_box(&t, un_v3(0.5, -1, -1), un_v3(0.6, 2, 2)), un_v3(0, 0, 0));
    tank_build(&t);
    un_track_walls walls = {
        .bodies = t.bodies, .size = size, .deep = (double[]){0.025}, .gravity = un_v3(0, -9.81, 0)};
    const un_shape *water = tank_box(&t, un_v3(-1, -1, -1), un_v3(0.55, 2, 2));
    un_arena arena;
    un_arena_init(&arena, t.ctx);
    un_track track;
    check_ok(t.ctx, un_track_init(&track, t.ctx, size, CELLS));
    check_ok(t.ctx, un_track_start(&track, &water, 1, &walls));
    assert_true(track.mesh.vertex_count > 0);
    for (int step = 0; step < 30; step++) {
        un_track_motion motion = {
            .arg = &walls, .back = stay, .ahead = stay_ahead, .shift = 0.1 * track.h};
        check_ok(t.ctx, un_track_advance(&track, &arena, &motion));
        un_arena_reset(&arena);
    }
    for (int32_t v = 0; v < track.mesh.vertex_count; v++) {
        assert_true(track.mesh.position[v].x > 0.5);
        assert_true(track.mesh.position[v].x < 0.6);
    }
    un_track_free(&track);
    un_arena_free(&arena);
    tank_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_start_level),
        cmocka_unit_test(surfaces_stay_in_walls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
