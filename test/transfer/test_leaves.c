/* Velocities from the faces of leaves to particles: how far these may differ from the liquid. */
#include "check.h"

#include "transfer/transfer.h"

#define SPEED 10.0
#define GRAVITY 9.81

/* A particle twice as fast as the liquid around it, after one step. */
static double fast_particle(double dt)
{
    un_context *ctx = check_context();
    un_arena arena;
    un_octree tree;
    un_leaves leaves = {0};
    un_particles particles = {0};
    un_leaves_flow flow = {0};
    double at[3] = {0.3, 0.4, 0.5};
    un_octree_request request = {.count = 1, .x = {&at[0], &at[1], &at[2]}};
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 16);
    check_ok(ctx, un_octree_build(&tree, &arena, &request));
    check_ok(ctx, un_leaves_build(&leaves, ctx, &tree));
    double *u = un_alloc_zero(ctx, (size_t)leaves.face_count, sizeof *u);
    for (int32_t f = 0; f < leaves.face_count; f++)
        if (un_leaf_face_axis(&leaves, f) == 0) u[f] = SPEED;
    check_ok(ctx, un_leaves_flow_build(&flow, &leaves, u, NULL));
    check_ok(ctx, un_particles_reserve(ctx, &particles, 1));
    particles.count = 1;
    for (int a = 0; a < 3; a++) particles.x[a][0] = at[a], particles.v[a][0] = 0;
    particles.v[0][0] = 2 * SPEED;
    particles.volume[0] = 1e-5f;
    particles.flags[0] = 0;
    particles.fall[0] = 0;
    int32_t leaf = un_octree_find(&tree, un_v3(at[0], at[1], at[2]));
    un_tet_bins bins = {.tet = &leaf};
    un_flip flip = {
        .dt = dt, .gravity = {0, -GRAVITY, 0}, .pic = 3, .pic_quiet = 3, .quiet_speed = 0.1};
    un_transfer_leaves_to_particles(ctx, &particles, NULL, &bins, &flow, &flow, &flip);
    double speed = un_length(un_particle_velocity(&particles, 0));
    un_particles_free(ctx, &particles);
    un_leaves_flow_free(ctx, &flow);
    un_free(ctx, u);
    un_leaves_free(&leaves);
    un_octree_free(&tree);
    un_arena_free(&arena);
    check_context_end(ctx);
    return speed;
}

/* Steps that are ten times as short leave it no faster. */
static void no_particle_outruns_the_liquid(void **state)
{
    (void)state;
    double most = 1.25 * SPEED + sqrt(GRAVITY / 16);
    check_below(fast_particle(1e-3), most + 0.1);
    check_below(fast_particle(1e-4), most + 0.1);
    assert_true(fast_particle(1e-4) > 1.1 * SPEED); /* what it knows is not lost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_particle_outruns_the_liquid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
