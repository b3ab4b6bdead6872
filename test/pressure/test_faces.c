/* Projection with velocities on faces: the faces themselves, rest on any tree, order, what is
 * found at nodes and tets, walls, threads. */
#include "pressure/tet_pool.h"
#include "transfer/transfer.h"

typedef struct face_pool {
    tet_pool pool;
    un_faces faces;
    double *u, *p;
    uint8_t *known;
    un_pressure *pressure;
    un_face_projection in;
    un_face_projection_report report;
} face_pool;

static void face_pool_begin(face_pool *f, int32_t threads, int32_t coarsest, int32_t finest,
                            tet_detail *detail, const void *arg)
{
    memset(f, 0, sizeof *f);
    tet_pool *p = &f->pool;
    tet_pool_begin(p, threads, un_v3(1, 1, 1), coarsest, finest, detail, arg);
    check_ok(p->ctx, un_faces_number(p->ctx, &p->arena, &f->faces, &p->mesh));
    un_arena_reset(&p->arena);
    check_ok(p->ctx, un_pressure_create(p->ctx, NULL, &f->pressure));
    f->u = un_alloc_zero(p->ctx, (size_t)f->faces.count, sizeof *f->u);
    f->known = un_alloc_zero(p->ctx, (size_t)f->faces.count, 1);
    f->p = un_alloc_zero(p->ctx, (size_t)p->mesh.tet_count, sizeof *f->p);
    f->in = (un_face_projection){.mesh = &p->mesh,
                                 .faces = &f->faces,
                                 .u = f->u,
                                 .known = f->known,
                                 .phi = p->phi,
                                 .p = f->p,
                                 .dt = 0.01,
                                 .density = 1000,
                                 .tolerance = 1e-10,
                                 .iteration_limit = 3000};
}

static void face_pool_end(face_pool *f)
{
    un_context *ctx = f->pool.ctx;
    un_pressure_destroy(f->pressure);
    un_faces_free(ctx, &f->faces);
    un_free(ctx, f->u);
    un_free(ctx, f->known);
    un_free(ctx, f->p);
    tet_pool_end(&f->pool);
}

static void face_pool_move(face_pool *f, tet_velocity *u, const void *arg)
{
    const un_tets *mesh = &f->pool.mesh;
    for (int32_t i = 0; i < f->faces.count; i++)
        f->u[i] = un_dot(u(un_face_center(&f->faces, mesh, i), arg),
                         un_normalize(un_face_area(&f->faces, mesh, i)));
}

static void face_pool_project(face_pool *f)
{
    check_ok(f->pool.ctx, un_face_pressure_project(f->pressure, &f->in, &f->report));
    assert_true(f->report.solve.finite && f->report.solve.converged);
    const char *reason;
    if (f->report.tet_count > 0 && !un_csr_validate(&f->pressure->matrix, &reason))
        fail_msg("%s", reason);
}

static void faces_close_every_tet(void **state)
{
    (void)state;
    face_pool f;
    tet_spots spots = {12, 3, 0.06};
    face_pool_begin(&f, 2, 4, 32, tet_spotted, &spots);
    const un_tets *mesh = &f.pool.mesh;
    int64_t boundary = 0;
    for (int32_t i = 0; i < f.faces.count; i++) {
        int32_t t = un_face_tet(&f.faces, i), other = f.faces.other[i];
        assert_int_equal(f.faces.of_tet[t][f.faces.corner[i] & 3], i);
        boundary += other < 0;
        un_vec3 area = un_face_area(&f.faces, mesh, i);
        un_vec3 way = un_sub(un_face_center(&f.faces, mesh, i), un_tets_center(mesh, t));
        assert_true(un_dot(area, way) > 0);
        if (other < 0) continue;
        way = un_sub(un_tets_center(mesh, other), un_tets_center(mesh, t));
        assert_true(un_dot(area, way) > 0.3 * un_length(area) * un_length(way));
    }
    assert_int_equal(2 * (int64_t)f.faces.count - boundary, 4 * (int64_t)mesh->tet_count);
    for (int32_t t = 0; t < mesh->tet_count; t++) {
        un_vec3 sum = {0, 0, 0};
        double size = 0;
        for (int i = 0; i < 4; i++) {
            int32_t face = f.faces.of_tet[t][i];
            un_vec3 area = un_face_area(&f.faces, mesh, face);
            sum = un_mad(sum, area, un_face_tet(&f.faces, face) == t ? 1 : -1);
            size += un_length(area);
        }
        check_below(un_length(sum), 1e-12 * size);
    }
    face_pool_end(&f);
}

/* Any gravity, any height, grading through the surface: to the precision of phi. */
static void tilted_water_rests_on_any_tree(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        face_pool f;
        tet_spots spots = {(int32_t)(4 * seed), seed, 0.05};
        face_pool_begin(&f, 1, 4, 32, tet_spotted, &spots);
        for (uint64_t k = 0; k < 3; k++) {
            tet_tilt tilt = {.up = tet_direction(100 * seed + k)};
            tilt.height = un_dot(tilt.up, un_v3(0.2 + 0.6 * un_random(k, seed), 0.5, 0.5));
            f.in.gravity = un_scale(tilt.up, -G);
            tet_pool_fill(&f.pool, tet_tilted, &tilt);
            memset(f.u, 0, (size_t)f.faces.count * sizeof *f.u);
            memset(f.p, 0, (size_t)f.pool.mesh.tet_count * sizeof *f.p);
            face_pool_project(&f);
            double fastest = 0;
            for (int32_t i = 0; i < f.faces.count; i++)
                if (f.known[i]) fastest = fmax(fastest, fabs(f.u[i]));
            check_below(fastest, 1e-5 * G * f.in.dt);
            assert_true(f.report.tet_count > 300);
            for (int32_t t = 0; t < f.pool.mesh.tet_count; t++) {
                double depth = -tet_tilted(un_tets_center(&f.pool.mesh, t), &tilt);
                check_near(f.p[t], depth > 1e-9 ? 1000 * G * depth : 0, 0.1);
            }
        }
        face_pool_end(&f);
    }
}

/* The solver stops at a share of what flows, also where tets all but touch the surface: with a
 * share of pressures over distances as small as that the water below would stay as it is. */
static void water_rests_where_tets_touch_the_surface(void **state)
{
    (void)state;
    face_pool f;
    face_pool_begin(&f, 1, 16, 16, tet_finest, NULL);
    double touch = 0;
    for (int32_t t = 0; t < f.pool.mesh.tet_count; t++) {
        double y = un_tets_center(&f.pool.mesh, t).y;
        if (y < 0.7) touch = fmax(touch, y);
    }
    tet_tilt tilt = {.up = un_v3(0, 1, 0), .height = touch + 1e-6};
    f.in.gravity = un_scale(tilt.up, -G);
    f.in.tolerance = 1e-4;
    tet_pool_fill(&f.pool, tet_tilted, &tilt);
    face_pool_project(&f);
    for (int32_t i = 0; i < f.faces.count; i++)
        if (f.known[i]) check_below(fabs(f.u[i]), 2e-3 * G * f.in.dt);
    face_pool_end(&f);
}

#define RADIUS 0.367
static const un_vec3 ball_center = {0.503, 0.491, 0.507};

static double ball_phi(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_length(un_sub(x, ball_center)) - RADIUS;
}

/* q = (r^2 - R^2) e^x vanishes on the sphere: its gradient must be projected away. */
static double ball_q(un_vec3 x)
{
    un_vec3 r = un_sub(x, ball_center);
    return (un_dot(r, r) - RADIUS * RADIUS) * exp(r.x);
}

static un_vec3 ball_gradient(un_vec3 x, const void *arg)
{
    (void)arg;
    un_vec3 r = un_sub(x, ball_center);
    un_vec3 g = un_scale(r, 2 * exp(r.x));
    g.x += ball_q(x);
    return g;
}

static double ball_error(int32_t finest)
{
    face_pool f;
    face_pool_begin(&f, 2, finest, finest, tet_finest, NULL);
    tet_pool_fill(&f.pool, ball_phi, NULL);
    face_pool_move(&f, ball_gradient, NULL);
    face_pool_project(&f);
    double sum = 0, count = 0;
    for (int32_t t = 0; t < f.pool.mesh.tet_count; t++) {
        if (f.pressure->index[t] < 0) continue;
        double q = f.p[t] * f.in.dt / f.in.density;
        double error = q - ball_q(un_tets_center(&f.pool.mesh, t));
        sum += error * error;
        count++;
    }
    face_pool_end(&f);
    return sqrt(sum / count);
}

static void pressure_in_a_ball_is_of_second_order(void **state)
{
    (void)state;
    double coarse = ball_error(12), fine = ball_error(24);
    double order = log2(coarse / fine);
    print_message("pressure in a ball: %.2e, %.2e, order %.2f\n", coarse, fine, order);
    assert_true(order > 1.7);
}

/* A rigid motion through faces to nodes and tets: steady exactly, and turning to second order. */
static un_vec3 turning(un_vec3 x, const void *arg)
{
    (void)arg;
    return un_v3(0.3 - 2 * x.y, 0.1 + 2 * x.x, -0.7);
}

static void steady_velocity_comes_back(void **state)
{
    (void)state;
    face_pool f;
    tet_spots spots = {12, 3, 0.06};
    face_pool_begin(&f, 2, 4, 32, tet_spotted, &spots);
    un_context *ctx = f.pool.ctx;
    const un_tets *mesh = &f.pool.mesh;
    size_t nodes = (size_t)mesh->node_count, tets = (size_t)mesh->tet_count;
    un_vec3 *node = un_alloc(ctx, nodes, sizeof *node), *tet = un_alloc(ctx, tets, sizeof *tet);
    uint8_t *known = un_alloc(ctx, nodes + tets, 1);
    un_vec3 steady = {0.3, -1.1, 0.7};
    memset(f.known, 1, (size_t)f.faces.count);
    face_pool_move(&f, tet_steady, &steady);
    un_transfer_faces_to_nodes(ctx, node, known, f.u, f.known, &f.faces, mesh);
    for (size_t n = 0; n < nodes; n++) {
        assert_int_equal(known[n], 1);
        check_below(un_length(un_sub(node[n], steady)), 1e-12);
    }
    face_pool_move(&f, turning, NULL);
    un_transfer_faces_to_tets(ctx, tet, known, f.u, f.known, &f.faces, mesh);
    for (int32_t t = 0; t < mesh->tet_count; t++) {
        un_vec3 error = un_sub(tet[t], turning(un_tets_center(mesh, t), NULL));
        check_below(un_length(error), 0.7 * un_tets_size(mesh, t));
    }
    /* none that is unknown counts, and a node without enough is unknown */
    memset(f.known, 0, (size_t)f.faces.count);
    un_transfer_faces_to_nodes(ctx, node, known, f.u, f.known, &f.faces, mesh);
    for (size_t n = 0; n < nodes; n++) assert_int_equal(known[n], 0);
    un_free(ctx, node);
    un_free(ctx, tet);
    un_free(ctx, known);
    face_pool_end(&f);
}

/* A wave of eight cells; the share of it that velocities on faces lose on the way to nodes and
 * back, away from the walls. */
static un_vec3 wavy(un_vec3 x, const void *arg)
{
    (void)arg;
    double k = 2 * UN_PI;
    return un_v3(sin(k * x.y), sin(k * x.z), sin(k * x.x));
}
static double lost_on_the_way(const face_pool *f, const un_vec3 *node)
{
    const un_tets *mesh = &f->pool.mesh;
    double *back = un_alloc(f->pool.ctx, (size_t)f->faces.count, sizeof *back);
    double kept = 0, all = 0;
    un_transfer_nodes_to_faces(f->pool.ctx, back, node, &f->faces, mesh);
    for (int32_t i = 0; i < f->faces.count; i++) {
        un_vec3 x = un_face_center(&f->faces, mesh, i);
        un_vec3 off = un_v3(fabs(x.x - 0.5), fabs(x.y - 0.5), fabs(x.z - 0.5));
        if (off.x > 0.3 || off.y > 0.3 || off.z > 0.3) continue;
        kept += back[i] * f->u[i];
        all += f->u[i] * f->u[i];
    }
    un_free(f->pool.ctx, back);
    return 1 - kept / all;
}

static void nodes_get_back_what_they_smooth_away(void **state)
{
    (void)state;
    face_pool f;
    face_pool_begin(&f, 2, 8, 8, tet_finest, NULL);
    un_context *ctx = f.pool.ctx;
    const un_tets *mesh = &f.pool.mesh;
    un_vec3 *node = un_alloc(ctx, (size_t)mesh->node_count, sizeof *node);
    un_vec3 *lost = un_alloc(ctx, (size_t)mesh->node_count, sizeof *lost);
    un_vec3 *tet = un_alloc(ctx, (size_t)mesh->tet_count, sizeof *tet);
    uint8_t *known_node = un_alloc(ctx, (size_t)mesh->node_count, 1);
    uint8_t *known_tet = un_alloc(ctx, (size_t)mesh->tet_count, 1);
    memset(f.known, 1, (size_t)f.faces.count);
    face_pool_move(&f, wavy, NULL);
    un_transfer_faces_to_nodes(ctx, node, known_node, f.u, f.known, &f.faces, mesh);
    un_transfer_faces_to_tets(ctx, tet, known_tet, f.u, f.known, &f.faces, mesh);
    double before = lost_on_the_way(&f, node);
    un_face_velocities made = {&f.faces, mesh, f.u, f.known, node, tet, known_node, known_tet, 0};
    check_ok(ctx, un_transfer_find_lost(ctx, &f.pool.arena, lost, &made));
    un_transfer_add_nodes(ctx, node, lost, mesh->node_count);
    un_arena_reset(&f.pool.arena);
    double after = lost_on_the_way(&f, node);
    check_below(-before, -0.05);
    check_below(fabs(after), 0.3 * before);
    un_free(ctx, node);
    un_free(ctx, lost);
    un_free(ctx, tet);
    un_free(ctx, known_node);
    un_free(ctx, known_tet);
    face_pool_end(&f);
}

/* A wild flow in a closed, full tank with a ball in it, with one thread and with three. */
static void closed_tanks_lose_all_divergence(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        face_pool f;
        tet_spots spots = {9, 5, 0.07};
        face_pool_begin(&f, threads, 4, 16, tet_spotted, &spots);
        tank_solid(&f.pool.tank, tank_sphere(&f.pool.tank, un_v3(0.4, 0.5, 0.5), 0.2),
                   un_v3(0, 0, 0));
        tet_pool_walls(&f.pool);
        f.in.walls = &f.pool.walls;
        tet_pool_fill(&f.pool, tet_everywhere, NULL);
        face_pool_move(&f, tet_wild, NULL);
        face_pool_project(&f);
        assert_true(f.report.solve.singular_count >= 1);
        check_below(f.report.max_divergence, 1e-4);
        for (int32_t i = 0; i < f.faces.count; i++)
            if (f.faces.other[i] < 0 && f.known[i]) assert_true(f.u[i] == 0);
        size_t bytes = (size_t)f.faces.count * sizeof *first;
        if (first)
            assert_memory_equal(first, f.u, bytes);
        else
            first = memcpy(malloc(bytes), f.u, bytes);
        face_pool_end(&f);
    }
    free(first);
}

static void shares_of_triangles(void **state)
{
    (void)state;
    double all[3] = {1, 2, 3}, none[3] = {-1, 0, -2}, one[3] = {-1, 1, -1}, two[3] = {1, -1, 1};
    assert_true(un_triangle_fraction(all) == 1);
    assert_true(un_triangle_fraction(none) == 0);
    check_near(un_triangle_fraction(one), 0.25, 1e-15);
    check_near(un_triangle_fraction(two), 0.75, 1e-15);
}

static void no_liquid_is_no_system(void **state)
{
    (void)state;
    face_pool f;
    face_pool_begin(&f, 1, 4, 4, tet_finest, NULL);
    for (int32_t n = 0; n < f.pool.mesh.node_count; n++) f.pool.phi[n] = 1;
    face_pool_project(&f);
    assert_int_equal(f.report.tet_count, 0);
    assert_int_equal(f.report.solve.iterations, 0);
    assert_true(f.report.max_divergence == 0);
    face_pool_end(&f);
}

/* Under P = f.x + c the liquid moves as under the force -f, and c does nothing, on a graded mesh
 * with a solid in it and liquid of varying density. */
static void surface_pressure_is_a_force(void **state)
{
    (void)state;
    for (int linear = 0; linear < 2; linear++) {
        un_vec3 slope = linear ? un_v3(700, -300, 450) : un_v3(0, 0, 0);
        face_pool f[2];
        float *light[2];
        double *surface = NULL;
        for (int k = 0; k < 2; k++) {
            tet_spots spots = {9, 5, 0.07};
            face_pool_begin(&f[k], 2, 4, 16, tet_spotted, &spots);
            tank_solid(&f[k].pool.tank, tank_sphere(&f[k].pool.tank, un_v3(0.3, 0.3, 0.5), 0.17),
                       un_v3(0, 0, 0));
            tet_pool_walls(&f[k].pool);
            f[k].in.walls = &f[k].pool.walls;
            tet_pool_fill(&f[k].pool, ball_phi, NULL);
            face_pool_move(&f[k], tet_wild, NULL);
            f[k].in.gravity = un_v3(1, -9, 2);
            f[k].in.tolerance = 1e-12;
            light[k] = un_alloc(f[k].pool.ctx, (size_t)f[k].pool.mesh.tet_count, sizeof(float));
            for (int32_t t = 0; t < f[k].pool.mesh.tet_count; t++) light[k][t] = 1.25f;
            f[k].in.lightness = light[k];
        }
        const un_tets *mesh = &f[0].pool.mesh;
        un_vec3 push = un_scale(slope, -1.25 * f[0].in.dt / f[0].in.density);
        for (int32_t i = 0; i < f[0].faces.count; i++)
            f[0].u[i] += un_dot(push, un_normalize(un_face_area(&f[0].faces, mesh, i)));
        surface = un_alloc(f[1].pool.ctx, (size_t)mesh->node_count, sizeof *surface);
        for (int32_t n = 0; n < mesh->node_count; n++)
            surface[n] = 5000 + un_dot(slope, mesh->x[n]);
        f[1].in.surface = surface;
        for (int k = 0; k < 2; k++) face_pool_project(&f[k]);
        assert_true(f[0].report.tet_count > 300);
        for (int32_t i = 0; i < f[0].faces.count; i++) {
            assert_int_equal(f[0].known[i], f[1].known[i]);
            if (f[0].known[i]) check_near(f[0].u[i], f[1].u[i], 1e-9);
        }
        for (int32_t t = 0; t < mesh->tet_count; t++) {
            double there = 5000 + un_dot(slope, un_tets_center(mesh, t));
            if (f[0].pressure->index[t] >= 0) check_near(f[1].p[t] - f[0].p[t], there, 1e-4);
        }
        /* from its own answer as the guess nothing is left to be done */
        face_pool_move(&f[1], tet_wild, NULL);
        face_pool_project(&f[1]);
        check_below(f[1].report.solve.iterations, 1);
        un_free(f[1].pool.ctx, surface);
        for (int k = 0; k < 2; k++) {
            un_free(f[k].pool.ctx, light[k]);
            face_pool_end(&f[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faces_close_every_tet),
        cmocka_unit_test(tilted_water_rests_on_any_tree),
        cmocka_unit_test(water_rests_where_tets_touch_the_surface),
        cmocka_unit_test(pressure_in_a_ball_is_of_second_order),
        cmocka_unit_test(steady_velocity_comes_back),
        cmocka_unit_test(nodes_get_back_what_they_smooth_away),
        cmocka_unit_test(closed_tanks_lose_all_divergence),
        cmocka_unit_test(shares_of_triangles),
        cmocka_unit_test(no_liquid_is_no_system),
        cmocka_unit_test(surface_pressure_is_a_force),
    };
    check_races_in("closed*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
