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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(liquid_and_bodies_keep_their_momentum),
        cmocka_unit_test(so_they_do_on_tets),
        cmocka_unit_test(light_bodies_take_no_more_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
