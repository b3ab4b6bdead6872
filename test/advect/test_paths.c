/* Particle paths: third order in a rotating flow, parabolas for what flies by itself. */
#include "advect/advect.h"
#include "mesh/tank.h"

typedef struct stream {
    tank tank;
    double *u[3];
    un_particles particles;
} stream;

typedef un_vec3 velocity_field(un_vec3 x);

static void stream_begin(stream *s, int32_t threads, velocity_field *field)
{
    memset(s, 0, sizeof *s);
    tank_begin(&s->tank, threads, un_v3(1, 1, 1), 12);
    tank_build(&s->tank);
    const un_grid *g = &s->tank.grid;
    for (int a = 0; a < 3; a++)
        s->u[a] = un_alloc(s->tank.ctx, (size_t)g->cell_count, sizeof *s->u[a]);
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                un_vec3 x = un_grid_center(g, i, j, k);
                double half = 0.5 * g->h;
                s->u[0][c] = field(un_v3(x.x - half, x.y, x.z)).x;
                s->u[1][c] = field(un_v3(x.x, x.y - half, x.z)).y;
                s->u[2][c] = field(un_v3(x.x, x.y, x.z - half)).z;
            }
}

static void stream_end(stream *s)
{
    un_particles_free(s->tank.ctx, &s->particles);
    for (int a = 0; a < 3; a++) un_free(s->tank.ctx, s->u[a]);
    tank_end(&s->tank);
}

static void add_particle(stream *s, un_vec3 x, un_vec3 v, uint8_t flags)
{
    un_particles *p = &s->particles;
    check_ok(s->tank.ctx, un_particles_reserve(s->tank.ctx, p, p->count + 1));
    int32_t q = p->count++;
    p->x[0][q] = x.x;
    p->x[1][q] = x.y;
    p->x[2][q] = x.z;
    p->v[0][q] = v.x;
    p->v[1][q] = v.y;
    p->v[2][q] = v.z;
    p->volume[q] = 1e-4f;
    p->flags[q] = flags;
    p->fall[q] = flags & UN_PARTICLE_BALLISTIC ? UN_FALL_FREE : 0;
}

/* Linear, so the grid's interpolation has no error of its own. */
static un_vec3 rotation(un_vec3 x)
{
    return un_cross(un_v3(1, 2, -1), un_sub(x, un_v3(0.5, 0.5, 0.5)));
}

static double rotation_error(int steps)
{
    stream s;
    stream_begin(&s, 2, rotation);
    un_vec3 middle = {0.5, 0.5, 0.5}, start = {0.7, 0.45, 0.62}, axis = {1, 2, -1};
    double dt = 1.5 / steps;
    add_particle(&s, start, un_v3(0, 0, 0), 0);
    for (int n = 0; n < steps; n++)
        un_advect_particles(s.tank.ctx, &s.particles, NULL, s.u, s.tank.walls, un_v3(0, -9.81, 0),
                            dt);
    un_pose turn = un_pose_axis(un_normalize(axis), un_length(axis) * 1.5 * 180 / UN_PI);
    un_vec3 want = un_add(middle, un_pose_rotate(&turn, un_sub(start, middle)));
    double error = un_length(un_sub(un_particle_position(&s.particles, 0), want));
    stream_end(&s);
    return error;
}

static void paths_are_of_third_order(void **state)
{
    (void)state;
    double error[4];
    for (int n = 0; n < 4; n++) error[n] = rotation_error(10 << n);
    check_below(error[3], 1e-5);
    for (int n = 0; n < 3; n++) check_near(log2(error[n] / error[n + 1]), 3, 0.2);
}

static un_vec3 upward(un_vec3 x)
{
    (void)x;
    return un_v3(0, 5, 0);
}

/* Gravity acts between the middles of steps of any length, as in the transfer. */
static void what_flies_by_itself_follows_a_parabola(void **state)
{
    (void)state;
    stream s;
    stream_begin(&s, 2, upward);
    un_vec3 gravity = {0, -9.81, 0}, v = {0.3, 0.2, -0.1}, x = {0.3, 0.6, 0.5};
    add_particle(&s, x, v, UN_PARTICLE_BALLISTIC);
    double t = 0, last = 0;
    for (int n = 0; n < 20; n++) {
        double dt = n % 3 ? 0.01 : 0.004;
        un_vec3 middle = un_particle_middle(&s.particles, 0);
        un_particle_set_velocity(&s.particles, 0, un_mad(middle, gravity, 0.5 * (last + dt)));
        un_advect_particles(s.tank.ctx, &s.particles, NULL, s.u, s.tank.walls, gravity, dt);
        t += last = dt;
        check_near(s.particles.v[1][0], v.y + gravity.y * t, 1e-12);
    }
    check_near(s.particles.x[0][0], x.x + v.x * t, 1e-12);
    check_near(s.particles.x[1][0], x.y + v.y * t + 0.5 * gravity.y * t * t, 1e-12);
    check_near(s.particles.x[2][0], x.z + v.z * t, 1e-12);
    stream_end(&s);
}

/* Whatever the flow says, closed sides hold; the same bits for any thread count. */
static void fast_flow_stays_in_the_tank(void **state)
{
    (void)state;
    double *first[3] = {NULL, NULL, NULL};
    size_t bytes = 5000 * sizeof(double);
    for (int32_t threads = 1; threads <= 4; threads++) {
        stream s;
        stream_begin(&s, threads, rotation);
        for (uint64_t i = 0; i < 5000; i++)
            add_particle(&s, un_v3(un_random(i, 1), un_random(i, 2), un_random(i, 3)),
                         un_v3(0, 0, 0), 0);
        for (int n = 0; n < 5; n++)
            un_advect_particles(s.tank.ctx, &s.particles, NULL, s.u, s.tank.walls, un_v3(0, 0, 0),
                                0.7);
        for (int a = 0; a < 3; a++) {
            if (threads == 1) first[a] = malloc(bytes);
            if (threads == 1) memcpy(first[a], s.particles.x[a], bytes);
            assert_memory_equal(first[a], s.particles.x[a], bytes);
            for (int q = 0; q < 5000; q++)
                assert_true(s.particles.x[a][q] > 0 && s.particles.x[a][q] < 1);
        }
        stream_end(&s);
    }
    for (int a = 0; a < 3; a++) free(first[a]);
}

/* Eight at a time or alone, far from the sides and stopped by them, some flying. */
static void paths_do_not_depend_on_those_beside_them(void **state)
{
    (void)state;
    enum { COUNT = 2001 };
    stream all, alone;
    stream_begin(&all, 2, rotation);
    stream_begin(&alone, 1, rotation);
    for (uint64_t q = 0; q < COUNT; q++) {
        un_vec3 x = {un_random(q, 1), un_random(q, 2), un_random(q, 3)};
        un_vec3 v = {un_random(q, 4) - 0.5, un_random(q, 5) - 0.5, un_random(q, 6) - 0.5};
        uint8_t flags = q % 20 == 0 ? UN_PARTICLE_BALLISTIC : 0;
        add_particle(&all, x, v, flags);
        add_particle(&alone, x, v, flags);
        all.particles.fall[q] = alone.particles.fall[q] = (uint8_t)(q % 3 * 60);
    }
    un_vec3 gravity = {0, -9.81, 0};
    int32_t stopped = 0;
    un_advect_particles(all.tank.ctx, &all.particles, NULL, all.u, all.tank.walls, gravity, 0.04);
    for (int32_t q = 0; q < COUNT; q++) {
        un_particles part = un_particles_part(&alone.particles, (un_part){q, q + 1});
        un_advect_particles(alone.tank.ctx, &part, NULL, alone.u, alone.tank.walls, gravity, 0.04);
        double side = un_walls_sides(all.tank.walls, un_particle_position(&all.particles, q));
        stopped += side < 1.01 * UN_ADVECT_MARGIN * all.tank.grid.h;
    }
    for (int a = 0; a < 3; a++) {
        assert_memory_equal(all.particles.x[a], alone.particles.x[a], COUNT * sizeof(double));
        assert_memory_equal(all.particles.v[a], alone.particles.v[a], COUNT * sizeof(double));
    }
    assert_true(stopped > 20 && stopped < COUNT / 4);
    stream_end(&all);
    stream_end(&alone);
}

/* Speeds from a crawl to a hundred cells a step, by flight and by flow: the shortcut for particles
 * far from walls must not miss a plate of a fiftieth of a cell. */
static void nothing_passes_a_thin_plate(void **state)
{
    (void)state;
    stream s;
    memset(&s, 0, sizeof s);
    tank_begin(&s.tank, 2, un_v3(1, 1, 1), 20);
    tank_solid(&s.tank, tank_box(&s.tank, un_v3(-1, 0.43, -1), un_v3(2, 0.431, 2)), un_v3(0, 0, 0));
    tank_build(&s.tank);
    for (int a = 0; a < 3; a++) {
        s.u[a] = un_alloc(s.tank.ctx, (size_t)s.tank.grid.cell_count, sizeof *s.u[a]);
        for (int64_t f = 0; f < s.tank.grid.cell_count; f++)
            s.u[a][f] = 200 * (un_random((uint64_t)f, (uint64_t)a) - 0.5);
    }
    for (uint64_t i = 0; i < 8000; i++) {
        un_vec3 x = {un_random(i, 1), un_random(i, 2), un_random(i, 3)};
        double speed = 500 * pow(un_random(i, 4), 6);
        un_vec3 v = {un_random(i, 5) - 0.5, un_random(i, 6) - 0.5, un_random(i, 7) - 0.5};
        if (x.y < 0.4299 || x.y > 0.4311)
            add_particle(&s, x, un_scale(un_normalize(v), speed),
                         i % 2 ? UN_PARTICLE_BALLISTIC : 0);
    }
    un_particles *p = &s.particles;
    uint8_t *above = malloc((size_t)p->count);
    for (int32_t q = 0; q < p->count; q++) above[q] = p->x[1][q] > 0.43;
    for (int n = 0; n < 6; n++) {
        un_advect_particles(s.tank.ctx, p, NULL, s.u, s.tank.walls, un_v3(0, 0, 0), 0.01);
        for (int32_t q = 0; q < p->count; q++) {
            assert_true((p->x[1][q] > 0.4305) == above[q]);
            check_below(0, un_walls_distance_exact(s.tank.walls, un_particle_position(p, q)));
        }
    }
    free(above);
    stream_end(&s);
}

/* Through the faces of leaves a path begins with the velocity that the particle was given before;
 * what is thin may have moved since, and looks it up again. */
static void paths_begin_with_what_is_known(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    stream s[3];
    un_leaf_paths paths = {.dt = 0.04};
    float *start[3], *wall = NULL;
    double *u = NULL;
    int32_t leaf[COUNT];
    un_octree tree;
    un_leaves leaves = {0};
    un_leaves_flow flow = {0};
    un_tet_bins bins = {.tet = leaf};
    un_arena arena;
    for (int k = 0; k < 3; k++) { /* found anew, known, known of the wrong place */
        un_context *ctx = NULL;
        stream_begin(&s[k], 1, rotation);
        ctx = s[0].tank.ctx;
        for (uint64_t q = 0; q < COUNT; q++)
            add_particle(&s[k], un_v3(un_random(q, 0), un_random(q, 1), un_random(q, 2)),
                         un_v3(0, 0, 0), 0);
        un_particles *p = &s[k].particles;
        if (k == 0) {
            un_octree_request request = {.count = 3, .x = {p->x[0], p->x[1], p->x[2]}};
            un_arena_init(&arena, ctx);
            un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 16);
            check_ok(ctx, un_octree_build(&tree, &arena, &request));
            check_ok(ctx, un_leaves_build(&leaves, ctx, &tree));
            u = un_alloc(ctx, (size_t)leaves.face_count, sizeof *u);
            wall = un_alloc_zero(ctx, (size_t)leaves.count, sizeof *wall);
            for (int32_t f = 0; f < leaves.face_count; f++)
                u[f] = un_vec3_at(rotation(un_leaf_face_center(&leaves, f)),
                                  un_leaf_face_axis(&leaves, f)) +
                       un_random((uint64_t)f, 7);
            check_ok(ctx, un_leaves_flow_build(&flow, &leaves, u, NULL));
            for (int a = 0; a < 3; a++) start[a] = un_alloc(ctx, COUNT, sizeof **start);
            for (int32_t q = 0; q < COUNT; q++)
                leaf[q] = un_octree_find(&tree, un_particle_position(p, q));
            un_flip flip = {.dt = 0.04, .pic = 3, .pic_quiet = 3, .quiet_speed = 0.1};
            un_transfer_leaves_to_particles(ctx, p, start, &bins, &flow, &flow, &flip);
        }
        paths.bins = &bins;
        paths.flow = &flow;
        paths.wall = wall;
        paths.walls = s[0].tank.walls;
        for (int a = 0; a < 3; a++) paths.start[a] = k == 0 ? NULL : start[a];
        if (k == 2)
            for (int32_t q = 0; q < COUNT; q++) {
                start[0][q] += 1;
                p->flags[q] = UN_PARTICLE_THIN;
            }
        check_ok(ctx, un_advect_leaves(ctx, p, NULL, &paths));
        for (int a = 0; a < 3; a++)
            assert_memory_equal(p->x[a], s[0].particles.x[a], COUNT * sizeof *p->x[a]);
    }
    un_context *ctx = s[0].tank.ctx;
    un_leaves_flow_free(ctx, &flow);
    for (int a = 0; a < 3; a++) un_free(ctx, start[a]);
    un_free(ctx, u);
    un_free(ctx, wall);
    un_leaves_free(&leaves);
    un_octree_free(&tree);
    un_arena_free(&arena);
    for (int k = 2; k >= 0; k--) stream_end(&s[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_of_third_order),
        cmocka_unit_test(what_flies_by_itself_follows_a_parabola),
        cmocka_unit_test(nothing_passes_a_thin_plate),
        cmocka_unit_test(paths_do_not_depend_on_those_beside_them),
        cmocka_unit_test(fast_flow_stays_in_the_tank),
        cmocka_unit_test(paths_begin_with_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
