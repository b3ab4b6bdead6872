/* Bodies in the pressure system: momentum, and iterations with light bodies. */
#include "pressure/tet_pool.h"

#include <stdio.h>

#define N 20

typedef struct blob {
    tank t;
    un_pressure *pressure;
    double *u[3];
    uint8_t *known[3];
    float *phi;
} blob;

static void add_body(tank *t, un_vec3 center, double radius, double density, un_vec3 velocity)
{
    int32_t n = t->scene.def.solid_count;
    tank_solid(t, tank_sphere(t, center, radius), velocity);
    un_solid *s = &t->solids[n];
    s->density = density;
    s->moves = true;
    s->spin = un_v3(1, -2, 3);
    assert_true(un_shape_mass(s->shape, 3, &s->sums));
}

/* Liquid in a ball of this radius, with a velocity that is anything but free of divergence. */
static void build(blob *b, double radius)
{
    tank_build(&b->t);
    const un_grid *g = &b->t.grid;
    size_t cells = (size_t)g->cell_count;
    check_ok(b->t.ctx, un_pressure_create(b->t.ctx, g, &b->pressure));
    b->phi = un_alloc(b->t.ctx, cells, sizeof *b->phi);
    for (int a = 0; a < 3; a++) {
        b->u[a] = un_alloc(b->t.ctx, cells, sizeof *b->u[a]);
        b->known[a] = un_alloc_zero(b->t.ctx, cells, 1);
        for (size_t c = 0; c < cells; c++) b->u[a][c] = un_random(c, (uint64_t)a) - 0.3;
    }
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                un_vec3 x = un_sub(un_grid_center(g, i, j, k), un_v3(0.5, 0.5, 0.5));
                b->phi[un_grid_cell(g, i, j, k)] = (float)(un_length(x) - radius);
            }
    un_bodies_begin(b->t.bodies, un_v3(0, 0, 0), 0.01, 0.01);
}

static void end(blob *b)
{
    for (int a = 0; a < 3; a++) {
        un_free(b->t.ctx, b->u[a]);
        un_free(b->t.ctx, b->known[a]);
    }
    un_free(b->t.ctx, b->phi);
    un_pressure_destroy(b->pressure);
    tank_end(&b->t);
}

static un_projection_report project(blob *b, double tolerance)
{
    un_projection_report report;
    un_projection in = {.u = b->u,
                        .known = b->known,
                        .phi = b->phi,
                        .walls = b->t.walls,
                        .dt = 0.01,
                        .kick = 0.01,
                        .density = 1000,
                        .tolerance = tolerance,
                        .iteration_limit = 1000,
                        .pace = 1,
                        .bodies = b->t.bodies};
    check_ok(b->t.ctx, un_pressure_project(b->pressure, &in, &report));
    assert_true(report.solve.converged);
    return report;
}

/* The part of the way between two cells that is liquid. */
static double filled(double a, double b)
{
    if (a < 0 && b < 0) return 1;
    return a < 0 ? a / (a - b) : b < 0 ? b / (b - a) : 0;
}

/* Of the liquid on the faces, as the projection weighs it, and of the bodies. */
static un_vec3 momentum(const blob *b)
{
    const un_grid *g = &b->t.grid;
    double sum[3] = {0};
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < g->cell_count; f++) {
            double area = b->t.walls->area[a][f];
            if (area < 1e-3 || f < g->stride[a]) continue;
            area *= filled(b->phi[f], b->phi[f - g->stride[a]]);
            sum[a] += 1000 * g->volume * area * b->u[a][f];
        }
    un_vec3 all = un_v3(sum[0], sum[1], sum[2]);
    for (int32_t n = 0; n < b->t.bodies->count; n++) {
        const un_body *body = &b->t.bodies->body[n];
        if (body->free) all = un_mad(all, body->velocity, body->mass);
    }
    return all;
}

/* A drop that touches no wall, with a ball inside and one that sticks out of it. */
static void liquid_and_bodies_keep_their_momentum(void **state)
{
    (void)state;
    blob b;
    tank_begin(&b.t, 2, un_v3(1, 1, 1), N);
    add_body(&b.t, un_v3(0.48, 0.53, 0.5), 0.12, 300, un_v3(1, 0.3, -0.2));
    add_body(&b.t, un_v3(0.5, 0.81, 0.45), 0.1, 2500, un_v3(0, -2, 0));
    build(&b, 0.36);
    un_vec3 before = momentum(&b), was = b.t.bodies->body[0].velocity;
    un_projection_report report = project(&b, 1e-10);
    un_vec3 after = momentum(&b);
    check_near(un_length(un_sub(after, before)), 0, 1e-10 * un_length(before));
    assert_true(un_length(un_sub(b.t.bodies->body[0].velocity, was)) > 0.1);
    check_below(report.max_divergence, 1e-4); /* velocities of solids are single precision */
    end(&b);
}

/* The same on graded tets. Nodes in the air lie on the surface, so that pressure is continuous
 * there and sums of its gradient vanish; elsewhere ghosts keep momentum only as well as they know
 * the surface. */
static void so_they_do_on_tets(void **state)
{
    (void)state;
    tet_pool p;
    tet_spots spots = {6, 3, 0.2};
    tet_pool_begin(&p, 2, un_v3(1, 1, 1), 8, 32, tet_spotted, &spots);
    add_body(&p.tank, un_v3(0.48, 0.53, 0.5), 0.12, 10, un_v3(1, 0.3, -0.2));
    add_body(&p.tank, un_v3(0.5, 0.73, 0.45), 0.1, 2500, un_v3(0, -2, 0));
    tet_pool_walls(&p);
    for (int32_t n = 0; n < p.mesh.node_count; n++)
        p.phi[n] = un_length(un_sub(p.mesh.x[n], un_v3(0.5, 0.5, 0.5))) < 0.3 ? -1 : 1e-12f;
    tet_pool_move(&p, tet_wild, NULL);
    const un_bodies *bodies = p.tank.bodies;
    un_bodies_begin(p.tank.bodies, un_v3(0, 0, 0), 0.01, 0.01);
    un_vec3 was = bodies->body[0].velocity, sum[2] = {{0, 0, 0}, {0, 0, 0}};
    double all = 0;
    p.in.bodies = p.tank.bodies;
    un_vec3 *before;
    size_t tets = (size_t)p.mesh.tet_count;
    before = un_alloc(p.ctx, tets, sizeof *before);
    memcpy(before, p.u, tets * sizeof *before);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t n = 0; n < bodies->count; n++)
            sum[pass] = un_mad(sum[pass], bodies->body[n].velocity, bodies->body[n].mass);
        if (pass == 0) tet_pool_project(&p);
    }
    for (int32_t t = 0; t < p.mesh.tet_count; t++) {
        if (!p.known[t]) continue;
        double mass = 1000 * un_tets_volume(&p.mesh, t) * (double)p.walls.open[t];
        sum[0] = un_mad(sum[0], before[t], mass);
        sum[1] = un_mad(sum[1], p.u[t], mass);
        all += mass * un_length(before[t]);
    }
    if (getenv("VERBOSE")) printf("%g of %g\n", un_length(un_sub(sum[1], sum[0])), all);
    check_near(un_length(un_sub(sum[1], sum[0])), 0, 1e-10 * all);
    assert_true(un_length(un_sub(bodies->body[0].velocity, was)) > 0.1);
    un_free(p.ctx, before);
    tet_pool_end(&p);
}

/* And on tets that conform to them. */
typedef struct stuffed {
    un_arena arena;
    un_track track;
    un_stuffing mesh;
    un_stuffed_rim rim;
    double *u, *p;
} stuffed;

static double drop(const void *arg, un_vec3 x)
{
    (void)arg;
    return un_length(un_sub(x, un_v3(0.5, 0.5, 0.5))) - 0.36;
}

static void stuffed_begin(stuffed *s, tank *t, int32_t cells)
{
    *s = (stuffed){.rim.bodies = t->bodies};
    un_arena_init(&s->arena, t->ctx);
    check_ok(t->ctx, un_track_init(&s->track, t->ctx, un_v3(1, 1, 1), 2 * cells));
    check_ok(t->ctx, un_track_begin(&s->track, drop, NULL));
    un_stuffing_init(t->ctx, &s->mesh, un_v3(1, 1, 1), 4, cells);
    un_track_stuffing stuffing = {.track = &s->track, .bodies = t->bodies};
    check_ok(t->ctx, un_track_stuff(&s->mesh, &s->arena, &stuffing));
    size_t boundary = (size_t)s->mesh.boundary_count + 1;
    s->rim.foot = un_arena_alloc(&s->arena, boundary, sizeof *s->rim.foot);
    s->rim.wall = un_arena_alloc(&s->arena, boundary, sizeof *s->rim.wall);
    s->rim.body = un_arena_alloc(&s->arena, boundary, sizeof *s->rim.body);
    s->u = un_arena_alloc(&s->arena, (size_t)s->mesh.face_count, sizeof *s->u);
    s->p = un_arena_alloc(&s->arena, (size_t)s->mesh.tet_count, sizeof *s->p);
    for (int32_t f = 0; f < s->mesh.face_count; f++) s->u[f] = un_random((uint64_t)f, 1) - 0.3;
    un_stuffed_find_rim(t->ctx, &s->rim, &s->mesh, &s->track);
    for (int32_t b = 0; b < s->mesh.boundary_count; b++)
        if (!isnan(s->rim.foot[b].x)) s->rim.foot[b] = s->mesh.center[s->mesh.boundary[b]];
    un_bodies_begin(t->bodies, un_v3(0, 0, 0), 0.01, 0.01);
}

static un_stuffed_projection_report stuffed_project(stuffed *s, tank *t, double tolerance)
{
    un_stuffed_projection_report report;
    un_stuffed_projection in = {.mesh = &s->mesh,
                                .u = s->u,
                                .p = s->p,
                                .rim = &s->rim,
                                .dt = 0.01,
                                .density = 1000,
                                .tolerance = tolerance,
                                .iteration_limit = 1000};
    un_pressure *pressure;
    check_ok(t->ctx, un_pressure_create(t->ctx, NULL, &pressure));
    check_ok(t->ctx, un_stuffed_pressure_project(pressure, &s->arena, &in, &report));
    assert_true(report.solve.converged);
    un_pressure_destroy(pressure);
    return report;
}

static void stuffed_end(stuffed *s, tank *t)
{
    un_stuffing_free(&s->mesh);
    un_track_free(&s->track);
    un_arena_free(&s->arena);
    tank_end(t);
}

/* Normal velocities on faces, each for the liquid between the centres beside it. */
static un_vec3 stuffed_momentum(const stuffed *s)
{
    const un_stuffing *m = &s->mesh;
    un_vec3 sum = {0, 0, 0};
    for (int32_t f = 0; f < m->face_count; f++) {
        const int32_t *t = m->face_tet[f];
        un_vec3 from = un_stuffing_center(m, t[0]), n = un_normalize(m->area[f]);
        un_vec3 way = un_sub(t[1] >= 0 ? un_stuffing_center(m, t[1]) : m->center[f], from);
        double d = un_dot(way, n);
        if (m->face_behind[f] < UN_BEHIND_WALL) d = fmax(d, 0.3 * un_length(way));
        sum = un_mad(sum, m->area[f], 1000 * d * s->u[f]);
    }
    for (int32_t n = 0; n < s->rim.bodies->count; n++)
        sum = un_mad(sum, s->rim.bodies->body[n].velocity, s->rim.bodies->body[n].mass);
    return sum;
}

static void so_they_do_on_tets_that_conform(void **state)
{
    (void)state;
    tank t;
    stuffed s;
    tank_begin(&t, 2, un_v3(1, 1, 1), N);
    add_body(&t, un_v3(0.48, 0.53, 0.5), 0.12, 10, un_v3(1, 0.3, -0.2));
    add_body(&t, un_v3(0.5, 0.81, 0.45), 0.1, 2500, un_v3(0, -2, 0));
    tank_build_exact(&t);
    stuffed_begin(&s, &t, 16);
    un_vec3 before = stuffed_momentum(&s), was = t.bodies->body[0].velocity;
    un_stuffed_projection_report report = stuffed_project(&s, &t, 1e-11);
    un_vec3 after = stuffed_momentum(&s);
    check_near(un_length(un_sub(after, before)), 0, 1e-10 * un_length(before));
    assert_true(un_length(un_sub(t.bodies->body[0].velocity, was)) > 0.1);
    check_below(report.max_divergence, 1e-6);
    stuffed_end(&s, &t);
}

/* Eight bodies of a hundredth of the liquid's density take no more iterations than eight that
 * nothing moves. */
static void light_bodies_take_no_more_iterations(void **state)
{
    (void)state;
    int32_t iterations[2];
    for (int light = 0; light < 2; light++) {
        blob b;
        tank_begin(&b.t, 2, un_v3(1, 1, 1), 2 * N);
        for (int i = 0; i < 8; i++)
            add_body(&b.t, un_v3(i & 1 ? 0.36 : 0.64, i & 2 ? 0.36 : 0.64, i & 4 ? 0.36 : 0.64),
                     0.09, light ? 10 : 1e9, un_v3(0, 0, 0));
        build(&b, 0.42);
        iterations[light] = project(&b, 1e-4).solve.iterations;
        end(&b);
    }
    check_below(iterations[1], 1.2 * iterations[0] + 1e-9);
}

static void nor_on_tets_that_conform(void **state)
{
    (void)state;
    int32_t iterations[2];
    for (int light = 0; light < 2; light++) {
        tank t;
        stuffed s;
        tank_begin(&t, 2, un_v3(1, 1, 1), N);
        for (int i = 0; i < 8; i++)
            add_body(&t, un_v3(i & 1 ? 0.38 : 0.62, i & 2 ? 0.38 : 0.62, i & 4 ? 0.38 : 0.62), 0.08,
                     light ? 10 : 1e9, un_v3(0, 0, 0));
        tank_build_exact(&t);
        stuffed_begin(&s, &t, 24);
        iterations[light] = stuffed_project(&s, &t, 1e-4).solve.iterations;
        if (getenv("VERBOSE")) printf("%d iterations\n", iterations[light]);
        stuffed_end(&s, &t);
    }
    check_below(iterations[1], 1.2 * iterations[0] + 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(liquid_and_bodies_keep_their_momentum),
        cmocka_unit_test(so_they_do_on_tets),
        cmocka_unit_test(so_they_do_on_tets_that_conform),
        cmocka_unit_test(light_bodies_take_no_more_iterations),
        cmocka_unit_test(nor_on_tets_that_conform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
