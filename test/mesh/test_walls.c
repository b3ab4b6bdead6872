/* The grid, and solids as it sees them: open parts of faces and cells, velocities, distances. */
#include "mesh/tank.h"

/* ---- grid ---- */

static void grid_covers_the_domain_with_a_layer_to_spare(void **state)
{
    (void)state;
    un_grid g = un_grid_make(un_v3(1, 0.1 + 0.2, 0.55), 10);
    check_near(g.h, 0.1, 1e-15);
    assert_int_equal(g.n[0], 12);
    assert_int_equal(g.n[1], 5); /* three cells and a bit of round-off */
    assert_int_equal(g.n[2], 8);
    assert_int_equal(g.cell_count, 12 * 5 * 8);
    assert_int_equal(g.node_count, 13 * 6 * 9);
    check_near(un_grid_node_position(&g, 1, 1, 1).x, 0, 1e-15);
    g = un_grid_make(un_v3(1, 1e-4, 1), 10);
    assert_int_equal(g.n[1], 3);
}

static double linear(un_vec3 x)
{
    return 0.3 + 1.5 * x.x - 0.7 * x.y + 2.1 * x.z;
}

static void linear_fields_are_sampled_exactly(void **state)
{
    (void)state;
    un_grid g = un_grid_make(un_v3(1, 0.7, 0.6), 9);
    float *field = malloc((size_t)g.cell_count * sizeof *field);
    double *u[3];
    for (int a = 0; a < 3; a++) u[a] = malloc((size_t)g.cell_count * sizeof *u[a]);
    for (int32_t k = 0; k < g.n[2]; k++)
        for (int32_t j = 0; j < g.n[1]; j++)
            for (int32_t i = 0; i < g.n[0]; i++) {
                un_vec3 x = un_grid_center(&g, i, j, k);
                int64_t c = un_grid_cell(&g, i, j, k);
                field[c] = (float)linear(x);
                u[0][c] = linear(un_v3(x.x - 0.5 * g.h, x.y, x.z));
                u[1][c] = linear(un_v3(x.x, x.y - 0.5 * g.h, x.z));
                u[2][c] = linear(un_v3(x.x, x.y, x.z - 0.5 * g.h));
            }
    for (uint64_t n = 0; n < 2000; n++) {
        un_vec3 x = {un_random(n, 1), 0.7 * un_random(n, 2), 0.6 * un_random(n, 3)};
        if (n < 8) x = un_v3(n & 1 ? 1 : 0, n & 2 ? 0.7 : 0, n & 4 ? 0.6 : 0);
        double want = linear(x);
        check_near(un_grid_sample(&g, field, x), want, 1e-6);
        un_vec3 v = un_faces_sample(&g, u, x), d = un_grid_gradient(&g, field, x);
        check_near(v.x, want, 1e-12);
        check_near(v.y, want, 1e-12);
        check_near(v.z, want, 1e-12);
        check_near(d.x, 1.5, 1e-4);
        check_near(d.y, -0.7, 1e-4);
        check_near(d.z, 2.1, 1e-4);
        for (int a = 0; a < 3; a++) check_near(un_faces_sample_axis(&g, u[a], x, a), want, 1e-12);
    }
    free(field);
    for (int a = 0; a < 3; a++) free(u[a]);
}

/* ---- openings ---- */

static double open_volume(const tank *t)
{
    double sum = 0, h = t->grid.h;
    for (int64_t c = 0; c < t->grid.cell_count; c++) sum += t->walls->volume[c];
    return sum * h * h * h;
}

/* Open area of the faces of an axis in its plane number `at`. */
static double open_section(const tank *t, int axis, int32_t at)
{
    const un_grid *g = &t->grid;
    double sum = 0;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++)
                if ((axis == 0 ? i : axis == 1 ? j : k) == at)
                    sum += t->walls->area[axis][un_grid_cell(g, i, j, k)];
    return sum * g->h * g->h;
}

static void sides_on_faces_close_them_exactly(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 0.5, 0.7), 10);
    t.scene.def.domain.open[UN_SIDE_TOP] = true;
    tank_build(&t);
    const un_grid *g = &t.grid;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                bool in_x = i > 0 && i<g->n[0] - 1, in_z = k> 0 && k < g->n[2] - 1;
                bool in_y = j > 0; /* open above: goes on into the padding */
                assert_true(t.walls->volume[c] == (in_x && in_y && in_z));
                assert_true(t.walls->area[0][c] == (i > 1 && i < g->n[0] - 1 && in_y && in_z));
                assert_true(t.walls->area[1][c] == (j > 1 && in_x && in_z));
                assert_true(t.walls->area[2][c] == (k > 1 && k < g->n[2] - 1 && in_x && in_y));
            }
    tank_end(&t);
}

/* Sides cut cells exactly, in edges and corners too. */
static void sides_between_faces_leave_the_domains_volume(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        tank t;
        un_vec3 size = {1, 0.537, 0.762};
        tank_begin(&t, 2, size, n ? 80 : 20);
        tank_build(&t);
        check_near(open_volume(&t) / (size.x * size.y * size.z), 1, 1e-5);
        for (int32_t j = 2; j < (n ? 40 : 10); j++)
            check_near(open_section(&t, 1, j) / (size.x * size.z), 1, 1e-5);
        const un_grid *g = &t.grid; /* the top's cells, away from the other sides */
        double part = 0.537 / g->h - floor(0.537 / g->h);
        int64_t c = un_grid_cell(g, 8, 1 + (int32_t)floor(0.537 / g->h), 8);
        check_near(t.walls->volume[c], part, 1e-5);
        check_near(t.walls->area[0][c], part, 1e-5);
        tank_end(&t);
    }
}

/* Along a plane the fractions are those of the plane itself. */
static void planes_are_cut_exactly(void **state)
{
    (void)state;
    tank t;
    un_vec3 n = un_normalize(un_v3(0.3, 1, -0.2)), point = {0.5, 0.47, 0.5};
    tank_begin(&t, 2, un_v3(1, 1, 1), 12);
    tank_solid(&t, tank_plane(&t, point, n), un_v3(0, 0, 0));
    tank_build(&t);
    const un_grid *g = &t.grid;
    double volume = 0;
    for (int32_t k = 3; k < 11; k++)
        for (int32_t i = 3; i < 11; i++) {
            double height = 0; /* open part of the column, away from the other sides */
            for (int32_t j = 2; j < 12; j++) height += t.walls->volume[un_grid_cell(g, i, j, k)];
            un_vec3 x = un_grid_center(g, i, 0, k);
            double surface = point.y - (n.x * (x.x - point.x) + n.z * (x.z - point.z)) / n.y;
            check_near(height * g->h, 11 * g->h - surface, 1e-6);
            volume += height;
        }
    assert_true(volume > 0);
    tank_end(&t);
}

static double sphere_volume_error(int32_t finest)
{
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), finest);
    tank_solid(&t, tank_sphere(&t, un_v3(0.507, 0.493, 0.511), 0.31), un_v3(0, 0, 0));
    tank_build(&t);
    double error = fabs(1 - open_volume(&t) - 4.0 / 3 * UN_PI * 0.31 * 0.31 * 0.31);
    tank_end(&t);
    return error;
}

static void volume_of_a_sphere_converges_with_second_order(void **state)
{
    (void)state;
    double coarse = sphere_volume_error(12), fine = sphere_volume_error(48);
    check_below(1.7, 0.5 * log2(coarse / fine));
    check_below(fine, 5e-4);
}

static void boxes_on_faces_are_exact(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 20);
    tank_solid(&t, tank_box(&t, un_v3(0.2, 0, 0.3), un_v3(0.55, 0.4, 0.7)), un_v3(0, 0, 0));
    tank_build(&t);
    const un_grid *g = &t.grid;
    for (int32_t k = 1; k < 21; k++)
        for (int32_t j = 1; j < 21; j++)
            for (int32_t i = 1; i < 21; i++) {
                bool solid = i >= 5 && i < 12 && j < 9 && k >= 7 && k < 15;
                int64_t c = un_grid_cell(g, i, j, k);
                assert_true(t.walls->volume[c] == !solid);
                bool below = (i - 1 >= 5 && i - 1 < 12 && j < 9 && k >= 7 && k < 15);
                assert_true(t.walls->area[0][c] == (i > 1 && !solid && !below));
            }
    check_near(open_volume(&t), 1 - 0.35 * 0.4 * 0.4, 1e-9);
    tank_end(&t);
}

/* The inside of a container made by subtraction: its edges and corners too. */
static void hollows_on_faces_are_exact(void **state)
{
    (void)state;
    tank t;
    un_shape *shape;
    tank_begin(&t, 2, un_v3(1, 1, 1), 20);
    un_shape *parts[2] = {tank_box(&t, un_v3(-1, -1, -1), un_v3(2, 2, 2)),
                          tank_box(&t, un_v3(0.2, 0.1, 0.3), un_v3(0.55, 0.4, 0.7))};
    check_ok(t.ctx, un_shape_subtract(t.shapes, parts, 2, &shape));
    tank_solid(&t, shape, un_v3(0, 0, 0));
    tank_build(&t);
    check_near(open_volume(&t), 0.35 * 0.3 * 0.4, 1e-9);
    check_near(open_section(&t, 0, 8), 0.3 * 0.4, 1e-9);
    check_near(open_section(&t, 0, 5), 0, 1e-9);
    tank_end(&t);
}

/* ---- distances ---- */

static void distances_agree_with_the_shapes(void **state)
{
    (void)state;
    tank t;
    tank_begin(&t, 2, un_v3(1, 1, 1), 24);
    tank_solid(&t, tank_sphere(&t, un_v3(0.4, 0.5, 0.5), 0.2), un_v3(0, 0, 0));
    tank_solid(&t, tank_box(&t, un_v3(0.7, 0, 0), un_v3(0.8, 0.5, 1)), un_v3(0, 0, 0));
    tank_build(&t);
    for (uint64_t n = 0; n < 4000; n++) {
        un_vec3 x = {un_random(n, 1), un_random(n, 2), un_random(n, 3)};
        double sides = fmin(fmin(fmin(x.x, 1 - x.x), fmin(x.y, 1 - x.y)), fmin(x.z, 1 - x.z));
        double want = fmin(sides, fmin(un_shape_distance(t.solids[0].shape, x),
                                       un_shape_distance(t.solids[1].shape, x)));
        check_near(un_walls_sides(t.walls, x), sides, 1e-15);
        check_near(un_walls_distance_exact(t.walls, x), want, 1e-12);
        double sampled = un_walls_distance(t.walls, x);
        check_below(sampled, want + 0.9 * t.grid.h); /* nowhere much too far */
        if (fabs(want) < 0.5 * t.grid.h) check_near(sampled, want, 0.5 * t.grid.h);
    }
    un_vec3 normal = un_walls_normal(t.walls, un_v3(0.62, 0.5, 0.5));
    check_near(normal.x, 1, 1e-3);
    tank_end(&t);
}

/* ---- motion ---- */

static void moving_bodies_have_their_velocity(void **state)
{
    (void)state;
    tank t;
    un_vec3 v = {0.4, -0.3, 0.2};
    tank_begin(&t, 2, un_v3(1, 1, 1), 16);
    tank_solid(&t, tank_sphere(&t, un_v3(0.4, 0.5, 0.5), 0.2), v);
    tank_solid(&t, tank_box(&t, un_v3(0.75, 0, 0), un_v3(1, 0.25, 1)), un_v3(0, 0, 0));
    tank_build(&t);
    tank_move(&t, 0.5, 0.02);
    un_vec3 center = un_mad(un_v3(0.4, 0.5, 0.5), v, 0.52);
    check_near(un_walls_distance_exact(t.walls, center), -0.2, 1e-12);
    check_near(un_walls_distance(t.walls, un_mad(center, un_v3(0.6, 0, 0.8), 0.2)), 0,
               0.1 * t.grid.h);
    un_vec3 at = un_body_velocity(&t.bodies->body[0], center);
    check_near(un_length(un_sub(at, v)), 0, 1e-12);
    check_near(un_length(un_body_velocity(&t.bodies->body[1], un_v3(0.9, 0.1, 0.5))), 0, 0);
    double volume = open_volume(&t), sphere = 4.0 / 3 * UN_PI * 0.008;
    check_near(volume, 1 - 0.25 * 0.25 - sphere, 0.002);
    int faces = 0;
    for (int64_t c = 0; c < t.grid.cell_count; c++)
        for (int a = 0; a < 3; a++) {
            float u = t.walls->velocity[a][c];
            float w = (float)(a == 0 ? v.x : a == 1 ? v.y : v.z);
            if (u == 0) continue;
            check_near(u, w, 1e-6);
            check_below(t.walls->area[a][c], 1);
            faces++;
        }
    assert_true(faces > 100);
    /* gone again: nothing stays behind */
    tank_move(&t, 100, 0.02);
    check_near(open_volume(&t), 1 - 0.25 * 0.25, 1e-6);
    tank_end(&t);
}

static void turning_bodies_have_their_velocity(void **state)
{
    (void)state;
    un_body body = {.moves = true, .dt = 1e-4, .from = un_pose_identity()};
    double rate = 3; /* rad/s about z through the origin */
    body.to = un_pose_axis(un_v3(0, 0, 1), rate * body.dt * 180 / UN_PI);
    un_vec3 v = un_body_velocity(&body, un_v3(0.5, 0.2, 0.7));
    check_near(v.x, -rate * 0.2, 1e-3);
    check_near(v.y, rate * 0.5, 1e-3);
    check_near(v.z, 0, 1e-12);
    body.dt = 0;
    check_near(un_length(un_body_velocity(&body, un_v3(0.5, 0.2, 0.7))), 0, 0);
}

/* ---- threads, memory ---- */

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    float *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        tank t;
        tank_begin(&t, threads, un_v3(1, 0.87, 1), 20);
        tank_solid(&t, tank_sphere(&t, un_v3(0.4, 0.5, 0.5), 0.2), un_v3(1, 0, 0));
        tank_solid(&t, tank_sphere(&t, un_v3(0.7, 0.2, 0.5), 0.2), un_v3(0, 0, 0));
        tank_build(&t);
        tank_move(&t, 0.1, 0.02);
        size_t bytes = (size_t)t.grid.cell_count * sizeof *first;
        if (!first) {
            first = malloc(2 * bytes);
            memcpy(first, t.walls->volume, bytes);
            memcpy((char *)first + bytes, t.walls->velocity[0], bytes);
        }
        assert_memory_equal(first, t.walls->volume, bytes);
        assert_memory_equal((char *)first + bytes, t.walls->velocity[0], bytes);
        tank_end(&t);
    }
    free(first);
}

static un_status build_once(un_context *ctx, void *arg)
{
    tank *t = arg;
    un_bodies *bodies;
    un_walls *walls = NULL;
    UN_TRY(un_bodies_create(ctx, &t->scene, &bodies));
    un_status status = un_walls_create(ctx, &t->grid, bodies, true, &walls);
    if (status == UN_OK) status = un_bodies_update(bodies, 0, 0.1);
    if (status == UN_OK) status = un_walls_update(walls);
    un_walls_destroy(walls);
    un_bodies_destroy(bodies);
    return status;
}

static void memory_is_as_told_and_failures_are_clean(void **state)
{
    (void)state;
    for (int moving = 0; moving < 2; moving++) {
        tank t;
        tank_begin(&t, 1, un_v3(1, 1, 1), 10);
        tank_solid(&t, tank_sphere(&t, un_v3(0.4, 0.5, 0.5), 0.2), un_v3(moving, 0, 0));
        size_t before = un_context_bytes(t.ctx);
        tank_build(&t);
        check_near((double)(un_context_bytes(t.ctx) - before),
                   (double)un_walls_bytes(&t.grid, &t.scene), 4096);
        check_allocation_failures(build_once, &t, 100);
        tank_end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid_covers_the_domain_with_a_layer_to_spare),
        cmocka_unit_test(linear_fields_are_sampled_exactly),
        cmocka_unit_test(sides_on_faces_close_them_exactly),
        cmocka_unit_test(sides_between_faces_leave_the_domains_volume),
        cmocka_unit_test(planes_are_cut_exactly),
        cmocka_unit_test(volume_of_a_sphere_converges_with_second_order),
        cmocka_unit_test(boxes_on_faces_are_exact),
        cmocka_unit_test(hollows_on_faces_are_exact),
        cmocka_unit_test(distances_agree_with_the_shapes),
        cmocka_unit_test(moving_bodies_have_their_velocity),
        cmocka_unit_test(turning_bodies_have_their_velocity),
        cmocka_unit_test(same_bits_for_any_thread_count),
        cmocka_unit_test(memory_is_as_told_and_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
