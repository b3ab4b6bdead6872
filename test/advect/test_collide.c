/* Swept collisions: nothing passes a wall at any speed, sliding keeps what it should. */
#include "advect/advect.h"
#include "mesh/tank.h"

/* Cells along the unit side, and how many random paths a case takes. */
#define FINEST 20
#ifndef PATHS
#define PATHS 10000
#endif
#define CELL (1.0 / FINEST)

static un_vec3 random_point(uint64_t index, uint64_t stream)
{
    return un_v3(un_random(index, stream), un_random(index, stream + 1),
                 un_random(index, stream + 2));
}

/* Lengths from a thousandth of a cell to fifty cells, all scales alike. */
static un_vec3 random_path(uint64_t index, uint64_t stream)
{
    un_vec3 d = un_sub(random_point(index, stream), un_v3(0.5, 0.5, 0.5));
    double length = CELL * pow(10, -3 + 4.7 * un_random(index, stream + 3));
    return un_scale(un_normalize(d), length);
}

static double distance_from(const un_body *body, un_vec3 x)
{
    return un_shape_distance(body->shape, un_pose_invert(&body->from, x)) * body->from.scale;
}

/* Outside every body at the end and inside the closed sides. */
static void check_free(const tank *t, un_vec3 from, un_vec3 to)
{
    assert_true(un_finite3(to));
    for (int32_t b = 0; b < t->bodies->count; b++) {
        double d = un_body_distance(&t->bodies->body[b], to);
        if (d < -1e-9)
            fail_msg("body %d: from %g %g %g (distance %g) ends %g inside", b, from.x, from.y,
                     from.z, distance_from(&t->bodies->body[b], from), -d);
    }
    if (un_walls_sides(t->walls, to) < 0)
        fail_msg("from %g %g %g out of a side: %g %g %g", from.x, from.y, from.z, to.x, to.y, to.z);
}

/* Which part of space x is in, of those the bodies separate; bodies at the start or the end. */
typedef int region(const tank *t, un_vec3 x, bool at_end);

static void throw_particles(tank *t, uint64_t stream, region *part)
{
    int thrown = 0, hits = 0;
    for (uint64_t i = 0; thrown < PATHS && i < 20 * PATHS; i++) {
        un_vec3 from = random_point(i, stream), v = {0, 0, 0};
        bool inside = false;
        for (int32_t b = 0; b < t->bodies->count; b++)
            inside |= distance_from(&t->bodies->body[b], from) < 1e-3 * CELL;
        if (inside) continue;
        thrown++;
        un_vec3 aim = un_add(from, random_path(i, stream + 8));
        un_vec3 to = un_advect_collide(t->walls, from, aim, 0.01, &v);
        check_free(t, from, to);
        hits += un_length(un_sub(to, aim)) > 1e-12;
        if (part && part(t, from, false) != part(t, to, true))
            fail_msg("path %d passed a wall: %.17g %.17g %.17g towards %.17g %.17g %.17g ended at "
                     "%g %g %g",
                     (int)i, from.x, from.y, from.z, aim.x, aim.y, aim.z, to.x, to.y, to.z);
    }
    assert_int_equal(thrown, PATHS);
    assert_true(hits > PATHS / 50);
}

static void begin(tank *t)
{
    tank_begin(t, 1, un_v3(1, 1, 1), FINEST);
}

static void spheres_and_tori_are_never_entered(void **state)
{
    (void)state;
    tank t;
    un_shape *shape;
    begin(&t);
    tank_solid(&t, tank_sphere(&t, un_v3(0.5, 0.5, 0.5), 0.3), un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 1, NULL);
    tank_end(&t);
    begin(&t);
    check_ok(t.ctx,
             un_shape_torus(t.shapes, un_v3(0.5, 0.5, 0.5), un_v3(1, 2, 3), 0.3, 0.1, &shape));
    tank_solid(&t, shape, un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 2, NULL);
    tank_end(&t);
}

static int side_of_plate(const tank *t, un_vec3 x, bool at_end)
{
    const un_body *body = &t->bodies->body[0];
    return un_pose_invert(at_end ? &body->to : &body->from, x).y > 0.43;
}

/* A fiftieth of a cell, across the whole tank. */
static un_shape *thin_plate(tank *t)
{
    return tank_box(t, un_v3(-3, 0.43, -3), un_v3(4, 0.43 + CELL / 50, 4));
}

static void thin_plates_hold(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, thin_plate(&t), un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 3, side_of_plate);
    tank_end(&t);
}

static un_shape *mesh_box(tank *t, un_vec3 a, un_vec3 b)
{
    un_vec3 position[8];
    static int32_t triangle[12][3] = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6},
                                      {0, 1, 4}, {1, 5, 4}, {2, 6, 3}, {3, 6, 7},
                                      {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};
    for (int c = 0; c < 8; c++)
        position[c] = un_v3(c & 1 ? b.x : a.x, c & 2 ? b.y : a.y, c & 4 ? b.z : a.z);
    un_trimesh mesh = {
        .vertex_count = 8, .triangle_count = 12, .position = position, .triangle = triangle};
    un_shape *shape;
    un_trimesh_report report;
    check_ok(t->ctx, un_shape_mesh(t->shapes, &mesh, &shape, &report));
    assert_int_equal(report.open_edges, 0);
    check_below(0, report.volume);
    return shape;
}

static void meshes_hold(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, mesh_box(&t, un_v3(-1, 0.43, -1), un_v3(2, 0.43 + CELL / 50, 2)),
               un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 4, side_of_plate);
    tank_end(&t);
    begin(&t);
    tank_solid(&t, mesh_box(&t, un_v3(0.3, 0.2, 0.25), un_v3(0.7, 0.6, 0.8)), un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 5, NULL);
    tank_end(&t);
}

static un_shape *box_shell(tank *t, double thickness)
{
    un_shape *parts[2] = {tank_box(t, un_v3(0.3, 0.3, 0.3), un_v3(0.7, 0.7, 0.7)),
                          tank_box(t, un_v3(0.3 + thickness, 0.3 + thickness, 0.3 + thickness),
                                   un_v3(0.7 - thickness, 0.7 - thickness, 0.7 - thickness))};
    un_shape *shape;
    check_ok(t->ctx, un_shape_subtract(t->shapes, parts, 2, &shape));
    return shape;
}

static int in_box_shell(const tank *t, un_vec3 x, bool at_end)
{
    const un_body *body = &t->bodies->body[0];
    un_vec3 r = un_sub(un_pose_invert(at_end ? &body->to : &body->from, x), un_v3(0.5, 0.5, 0.5));
    return fmax(fabs(r.x), fmax(fabs(r.y), fabs(r.z))) < 0.2 - CELL / 100;
}

/* Inner edges and corners of a thin box: what is in stays in. */
static void thin_box_keeps_what_is_in_it(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, box_shell(&t, CELL / 50), un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 6, in_box_shell);
    tank_end(&t);
}

/* A wedge between two planes that meet at a sharp angle, one body or two. */
static void wedges_are_never_entered(void **state)
{
    (void)state;
    for (int bodies = 1; bodies <= 2; bodies++) {
        tank t;
        begin(&t);
        un_shape *parts[2] = {
            tank_plane(&t, un_v3(0.5, 0.2, 0.5), un_normalize(un_v3(-0.5, 1, 0))),
            tank_plane(&t, un_v3(0.5, 0.2, 0.5), un_normalize(un_v3(0.9, 1, 0.2)))};
        un_shape *both;
        check_ok(t.ctx, un_shape_union(t.shapes, parts, 2, &both));
        if (bodies == 1) tank_solid(&t, both, un_v3(0, 0, 0));
        if (bodies == 2) tank_solid(&t, parts[0], un_v3(0, 0, 0));
        if (bodies == 2) tank_solid(&t, parts[1], un_v3(0, 0, 0));
        tank_build(&t);
        throw_particles(&t, 7, NULL);
        tank_end(&t);
    }
}

/* A ball over, on and in a thin plate: sliding around the one must not lead through the other. Most
 * of all in the gap under the ball, which narrows to nothing. */
static void bodies_that_touch_hold_together(void **state)
{
    (void)state;
    static const double heights[] = {0.45, 0.61, 0.6305, 0.6311};
    for (int n = 0; n < 8; n++) {
        tank t;
        begin(&t);
        un_shape *plate = thin_plate(&t);
        un_shape *ball = tank_sphere(&t, un_v3(0.5, heights[n / 2], 0.5), 0.2);
        /* the region is asked of body 0 at rest, whichever it is */
        tank_solid(&t, n % 2 ? ball : plate, un_v3(0, 0, 0));
        tank_solid(&t, n % 2 ? plate : ball, un_v3(0, 0, 0));
        tank_build(&t);
        throw_particles(&t, 8, side_of_plate);
        tank_end(&t);
    }
}

/* Two balls that all but touch, in a corner of the tank. */
static void gaps_between_bodies(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, tank_sphere(&t, un_v3(0.3, 0.3, 0.3), 0.25), un_v3(0, 0, 0));
    tank_solid(&t, tank_sphere(&t, un_v3(0.66, 0.5, 0.55), 0.22), un_v3(0, 0, 0));
    tank_solid(&t, tank_box(&t, un_v3(0.5, -1, -1), un_v3(2, 0.25, 2)), un_v3(0, 0, 0));
    tank_build(&t);
    throw_particles(&t, 9, NULL);
    tank_end(&t);
}

/* ---- moving ---- */

static void place(tank *t, int32_t b, un_pose from, un_pose to, double dt)
{
    un_body *body = &t->bodies->body[b];
    body->moves = true;
    body->from = from;
    body->to = to;
    body->dt = dt;
    body->bounds = (un_box3){un_v3(-9, -9, -9), un_v3(9, 9, 9)};
    t->bodies->moving = true;
}

static un_pose shifted(un_vec3 by)
{
    un_pose pose = un_pose_identity();
    pose.translation = by;
    return pose;
}

static un_pose turned(un_vec3 axis, double degrees)
{
    un_pose pose = un_pose_axis(axis, degrees);
    un_vec3 middle = {0.5, 0.5, 0.5};
    pose.translation = un_sub(middle, un_pose_rotate(&pose, middle));
    return pose;
}

/* A plate that sweeps up to eight cells in a step carries along what lies before it. Nothing lies
 * behind the far side of the tank that it could be pressed through. */
static void fast_plates_hold(void **state)
{
    (void)state;
    static const double moves[] = {0.1, 1, 3, 8, -2, -8};
    for (int n = 0; n < 6; n++) {
        tank t;
        begin(&t);
        tank_solid(&t, thin_plate(&t), un_v3(0, 1, 0));
        tank_build(&t);
        place(&t, 0, shifted(un_v3(0, 0, 0)), shifted(un_v3(0.01, moves[n] * CELL, 0)), 0.01);
        throw_particles(&t, 10 + (uint64_t)n, side_of_plate);
        tank_end(&t);
    }
}

static void turning_boxes_keep_what_is_in_them(void **state)
{
    (void)state;
    static const double angles[] = {1, 20, 90, -170};
    for (int n = 0; n < 4; n++) {
        tank t;
        begin(&t);
        tank_solid(&t, box_shell(&t, CELL / 50), un_v3(0, 1, 0));
        tank_build(&t);
        un_pose from = turned(un_v3(1, 2, 0.5), 10), to = turned(un_v3(1, 2, 0.5), 10 + angles[n]);
        to.translation = un_add(to.translation, un_v3(0.03, 0.02, -0.01));
        place(&t, 0, from, to, 0.01);
        throw_particles(&t, 20 + (uint64_t)n, in_box_shell);
        tank_end(&t);
    }
}

/* Between a plate and the side that it closes in on there is no room: the sides hold. */
static void what_is_squeezed_stays_in_the_tank(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, thin_plate(&t), un_v3(0, 1, 0));
    tank_build(&t);
    place(&t, 0, shifted(un_v3(0, 0, 0)), shifted(un_v3(0, 0.6, 0)), 0.01);
    for (uint64_t i = 0; i < 1000; i++) {
        un_vec3 from = random_point(i, 60), v = random_path(i, 68);
        un_vec3 to = un_advect_collide(t.walls, from, un_add(from, v), 0.01, &v);
        assert_true(un_finite3(to) && un_finite3(v));
        assert_true(un_walls_sides(t.walls, to) >= 0);
    }
    tank_end(&t);
}

static void fast_balls_push_what_they_meet(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, tank_sphere(&t, un_v3(0.3, 0.5, 0.5), 0.15), un_v3(1, 0, 0));
    tank_build(&t);
    place(&t, 0, shifted(un_v3(0, 0, 0)), shifted(un_v3(0.4, 0.05, 0)), 0.01);
    throw_particles(&t, 30, NULL);
    /* standing in its way: struck, and as fast as it afterwards */
    un_vec3 x = {0.6, 0.52, 0.5}, v = {0, 0, 0};
    un_vec3 to = un_advect_collide(t.walls, x, x, 0.01, &v);
    check_free(&t, x, to);
    check_below(0.84, to.x);
    check_below(20, v.x);
    tank_end(&t);
}

/* ---- sliding, sides ---- */

static void sliding_keeps_the_tangential_way(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, tank_box(&t, un_v3(-1, -1, -1), un_v3(2, 0.3, 2)), un_v3(0, 0, 0));
    tank_build(&t);
    un_vec3 from = {0.2, 0.4, 0.5}, v = {3, -2, 1};
    un_vec3 to = un_advect_collide(t.walls, from, un_v3(0.5, 0.2, 0.6), 0.01, &v);
    check_near(to.x, 0.5, 1e-9);
    check_near(to.z, 0.6, 1e-9);
    check_near(to.y, 0.3, 0.011 * CELL);
    check_near(v.x, 3, 1e-12);
    check_near(v.y, 0, 1e-12);
    check_near(v.z, 1, 1e-12);
    /* along the wall and away from it, nothing is lost */
    v = un_v3(3, 0.1, 1);
    from = to;
    un_vec3 aim = {0.7, 0.31, 0.6};
    to = un_advect_collide(t.walls, from, aim, 0.01, &v);
    check_near(un_length(un_sub(to, aim)), 0, 1e-12);
    check_near(v.y, 0.1, 1e-12);
    tank_end(&t);
}

/* A particle that lies against a slanted wall and is pressed onto it goes along it, whatever
 * round-off says of the angle. */
static void sliding_along_slanted_walls(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        tank t;
        begin(&t);
        un_vec3 n = un_normalize(un_sub(random_point(i, 40), un_v3(0.5, 0.5, 0.5)));
        tank_solid(&t, tank_plane(&t, un_v3(0.5, 0.5, 0.5), n), un_v3(0, 0, 0));
        tank_build(&t);
        un_vec3 along = un_normalize(un_cross(n, random_point(i, 50)));
        un_vec3 x = un_mad(un_v3(0.5, 0.5, 0.5), n, 0.01 * CELL);
        for (int step = 0; step < 20; step++) {
            un_vec3 v = un_mad(along, n, -0.05), aim = un_mad(x, v, 0.2 * CELL);
            x = un_advect_collide(t.walls, x, aim, 0.2 * CELL, &v);
            check_near(un_dot(v, along), 1, 1e-9);
        }
        check_near(un_dot(un_sub(x, un_v3(0.5, 0.5, 0.5)), along), 4 * CELL, 1e-9);
        tank_end(&t);
    }
}

static void friction_slows_what_slides(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    tank_solid(&t, tank_box(&t, un_v3(-1, -1, -1), un_v3(2, 0.3, 2)), un_v3(0, 0, 0));
    t.solids[0].friction = 1;
    tank_build(&t);
    un_vec3 v = {3, -2, 1}, slow = v;
    un_advect_collide(t.walls, un_v3(0.2, 0.4, 0.5), un_v3(0.5, 0.2, 0.6), 0.01, &v);
    check_near(un_length(v), 0, 1e-12);
    /* as much in four steps as in one */
    t.bodies->body[0].friction = 0.4;
    for (int32_t step = 0; step < 4; step++) {
        slow.y = -2;
        un_advect_collide(t.walls, un_v3(0.2, 0.31, 0.5), un_v3(0.5, 0.2, 0.6), 0.0025, &slow);
    }
    check_near(slow.x, 3 * 0.6, 1e-9);
    check_near(slow.z, 0.6, 1e-9);
    tank_end(&t);
}

static void sides_hold_and_open_ones_let_through(void **state)
{
    (void)state;
    tank t;
    begin(&t);
    t.scene.def.domain.open[UN_SIDE_TOP] = t.scene.def.domain.open[UN_SIDE_LEFT] = true;
    tank_build(&t);
    int left = 0, top = 0;
    for (uint64_t i = 0; i < PATHS; i++) {
        un_vec3 from = random_point(i, 40), v = random_path(i, 48);
        un_vec3 aim = un_add(from, v), to = un_advect_collide(t.walls, from, aim, 0.01, &v);
        assert_true(to.x < 1 && to.y > 0 && to.z > 0 && to.z < 1);
        if (aim.x < 0) check_near(to.x, aim.x, 0);
        if (aim.y > 1) check_near(to.y, aim.y, 0);
        if (aim.x > 1) assert_true(v.x <= 0);
        left += to.x < 0;
        top += to.y > 1;
    }
    assert_true(left > 100 && top > 100);
    tank_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spheres_and_tori_are_never_entered),
        cmocka_unit_test(thin_plates_hold),
        cmocka_unit_test(meshes_hold),
        cmocka_unit_test(thin_box_keeps_what_is_in_it),
        cmocka_unit_test(wedges_are_never_entered),
        cmocka_unit_test(bodies_that_touch_hold_together),
        cmocka_unit_test(gaps_between_bodies),
        cmocka_unit_test(fast_plates_hold),
        cmocka_unit_test(turning_boxes_keep_what_is_in_them),
        cmocka_unit_test(what_is_squeezed_stays_in_the_tank),
        cmocka_unit_test(fast_balls_push_what_they_meet),
        cmocka_unit_test(sliding_keeps_the_tangential_way),
        cmocka_unit_test(sliding_along_slanted_walls),
        cmocka_unit_test(friction_slows_what_slides),
        cmocka_unit_test(sides_hold_and_open_ones_let_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
