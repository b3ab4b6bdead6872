/* Bodies that viscous liquid on tets sticks to and moves. */
#include "check.h"
#include "viscosity/cup.h"

static const tet_spots spots = {3, 5, 0.25};

/* A drop around a ball that moves and spins through it. */
static void drop_begin(cup *c, int32_t threads, double density)
{
    cup_begin(c, threads, un_v3(1, 1, 1), 4, 16, tet_spotted, &spots);
    tank *t = &c->pool.tank;
    tank_solid(t, tank_sphere(t, un_v3(0.53, 0.48, 0.51), 0.17), un_v3(1, 2, -1));
    un_solid *s = &t->solids[0];
    s->density = density;
    s->moves = true;
    s->spin = un_v3(4, -3, 2);
    assert_true(un_shape_mass(s->shape, 3, &s->sums));
    cup_walls(c);
    for (int32_t n = 0; n < c->mesh->node_count; n++)
        c->pool.phi[n] = (float)(un_length(un_sub(c->mesh->x[n], un_v3(0.5, 0.5, 0.5))) - 0.41);
    /* cells reach from the drop to the sides, which shall not hold it */
    for (int32_t n = 0; n < c->mesh->node_count; n++)
        if (c->walls.body[n] < 0) c->walls.kind[n] = UN_WALL_NONE;
    un_bodies_begin(t->bodies, un_v3(0, 0, 0), c->in.dt, c->in.dt);
    un_viscous_walls_follow(c->ctx, &c->walls, &c->pool.walls);
    c->in.bodies = t->bodies;
}

/* Momentum, and that about the origin, of the drop and the ball. */
static void weigh(const cup *c, const un_vec3 *u, un_vec3 *along, un_vec3 *about)
{
    const un_tets *m = c->mesh;
    const un_body *body = &c->pool.tank.bodies->body[0];
    *along = un_scale(body->velocity, body->mass);
    *about = un_add(un_cross(un_pose_apply(&body->to, body->centre), *along),
                    un_scale(body->spin, body->inertia[0][0]));
    for (int32_t t = 0; t < m->tet_count; t++) {
        double depth[4], integral[4];
        for (int i = 0; i < 4; i++) depth[i] = -(double)c->pool.phi[m->tet[t][i]];
        un_tet_open_integrals(depth, integral);
        double mass = 1000 * un_tets_volume(m, t) * (double)c->pool.walls.open[t];
        for (int i = 0; i < 4; i++) {
            un_vec3 p = un_scale(u[m->tet[t][i]], mass * integral[i]);
            *along = un_add(*along, p);
            *about = un_add(*about, un_cross(m->x[m->tet[t][i]], p));
        }
    }
}

static void momentum_is_shared(void **state)
{
    (void)state;
    static const double densities[] = {10, 3000};
    for (int i = 0; i < 2; i++) {
        cup c;
        un_vec3 along[2], about[2];
        drop_begin(&c, 2, densities[i]);
        const un_body *body = &c.pool.tank.bodies->body[0];
        for (int32_t n = 0; n < c.mesh->node_count; n++)
            c.u[n] = un_v3(un_random((uint64_t)n, 1), -un_random((uint64_t)n, 2), 0.1);
        un_vec3 was = body->velocity, spun = body->spin;
        weigh(&c, c.u, &along[0], &about[0]);
        cup_solve(&c);
        weigh(&c, c.u, &along[1], &about[1]);
        double all = un_length(along[0]);
        check_below(un_length(un_sub(along[1], along[0])) / all, 1e-8);
        check_below(un_length(un_sub(about[1], about[0])) / all, 1e-8);
        /* and much is shared */
        check_below(0.2, un_length(un_sub(body->velocity, was)));
        check_below(0.2, un_length(un_sub(body->spin, spun)));
        cup_end(&c);
    }
}

/* Liquid that moves with the ball does not change its motion; one that is held stays. */
static void rigid_motion_is_kept(void **state)
{
    (void)state;
    cup c;
    drop_begin(&c, 2, 500);
    un_body *body = &c.pool.tank.bodies->body[0];
    un_vec3 was = body->velocity, spun = body->spin;
    for (int32_t n = 0; n < c.mesh->node_count; n++) c.u[n] = un_body_velocity(body, c.mesh->x[n]);
    cup_solve(&c);
    check_below(un_length(un_sub(body->velocity, was)), 1e-9);
    check_below(un_length(un_sub(body->spin, spun)), 1e-8);
    for (int32_t n = 0; n < c.mesh->node_count; n++)
        if (c.reached[n])
            check_below(un_length(un_sub(c.u[n], un_body_velocity(body, c.mesh->x[n]))), 1e-8);
    memset(c.u, 0, (size_t)c.mesh->node_count * sizeof *c.u);
    body->inverse.along[1] = 0;
    for (int i = 0; i < 3; i++) body->inverse.about[2][i] = body->inverse.about[i][2] = 0;
    cup_solve(&c);
    check_near(body->velocity.y, was.y, 0);
    check_near(body->spin.z, spun.z, 0);
    check_below(body->velocity.x, 0.9 * was.x);
    check_below(body->spin.x, 0.9 * spun.x);
    cup_end(&c);
}

/* A lid over a floor that lies between nodes, wherever: the shear is that of the gap. */
static void walls_between_nodes(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 1; i < 8; i++) {
        cup c;
        double floor = 0.125 + 0.125 * i / 8;
        cup_begin(&c, 2, un_v3(1, 1, 1), 8, 8, tet_finest, NULL);
        tank *t = &c.pool.tank;
        tank_solid(t, tank_box(t, un_v3(-1, -1, -1), un_v3(2, floor, 2)), un_v3(0, 0, 0));
        for (int side = 0; side < 6; side++)
            t->scene.def.domain.slip[side] = side == UN_SIDE_TOP ? 0 : INFINITY;
        cup_walls(&c);
        for (int32_t n = 0; n < c.mesh->node_count; n++) {
            un_vec3 x = c.mesh->x[n];
            double u = (x.y - floor) / (1 - floor);
            if (u > 0 && (x.y > 1 - 1e-9 || x.x < 1e-9 || x.x > 1 - 1e-9))
                cup_hold(&c, n, un_v3(u, 0, 0));
        }
        c.in.dt = 1e9;
        cup_solve(&c);
        for (int32_t n = 0; n < c.mesh->node_count; n++) {
            double u = (c.mesh->x[n].y - floor) / (1 - floor);
            if (c.reached[n] && u > 0) worst = fmax(worst, fabs(c.u[n].x - u));
        }
        cup_end(&c);
    }
    if (getenv("VERBOSE")) printf("floor between nodes: off by %g\n", worst);
    check_below(worst, 0.01);
}

static void same_bits(void **state)
{
    (void)state;
    un_vec3 *first = NULL, velocity = {0, 0, 0};
    for (int threads = 1; threads <= 4; threads *= 2) {
        cup c;
        drop_begin(&c, threads, 700);
        cup_solve(&c);
        size_t bytes = (size_t)c.mesh->node_count * sizeof *c.u;
        un_vec3 now = c.pool.tank.bodies->body[0].velocity;
        if (first) assert_memory_equal(first, c.u, bytes);
        if (first) assert_memory_equal(&velocity, &now, sizeof now);
        if (!first) first = memcpy(malloc(bytes), c.u, bytes);
        velocity = now;
        cup_end(&c);
    }
    free(first);
}

static un_status solve_once(un_context *ctx, void *arg)
{
    cup *c = arg;
    un_viscosity *v;
    un_viscous_report report;
    un_arena arena;
    un_arena_init(&arena, ctx);
    UN_TRY(un_viscosity_create(ctx, &v));
    un_status status = un_viscosity_solve(v, &arena, &c->in, &report);
    un_viscosity_destroy(v);
    un_arena_free(&arena);
    return status;
}

static void memory_may_end(void **state)
{
    (void)state;
    cup c;
    drop_begin(&c, 1, 500);
    c.in.tolerance = 1e-4;
    check_allocation_failures(solve_once, &c, 200);
    cup_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum_is_shared),  cmocka_unit_test(rigid_motion_is_kept),
        cmocka_unit_test(walls_between_nodes), cmocka_unit_test(same_bits),
        cmocka_unit_test(memory_may_end),
    };
    check_races_in("same_bits");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
