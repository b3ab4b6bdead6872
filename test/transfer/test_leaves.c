/* Velocities from particles to the faces of leaves: the sums are those of the formula; and back:
 * how far particles may differ from the liquid. */
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

/* ---- gathering ---- */

#define GIVERS 4000

static double hat(double s)
{
    return fmax(1 - fabs(s), 0);
}

static double spline(double s)
{
    s = fabs(s);
    return s < 0.5 ? 0.75 - s * s : s < 1.5 ? 0.5 * (1.5 - s) * (1.5 - s) : 0;
}

/* Random particles, one leaf after the other. */
static void make_givers(un_context *ctx, un_particles *p, un_tet_bins *bins, const un_octree *tree,
                        bool flat)
{
    int32_t n = 0;
    check_ok(ctx, un_particles_reserve(ctx, p, GIVERS));
    bins->tet = un_alloc(ctx, GIVERS, sizeof *bins->tet);
    bins->begin = un_alloc(ctx, (size_t)tree->leaf_count + 1, sizeof *bins->begin);
    for (int32_t c = 0; c < tree->leaf_count; c++) {
        bins->begin[c] = n;
        for (uint64_t i = 0; i < GIVERS; i++) {
            un_vec3 x = {un_random(i, 1), un_random(i, 2), flat ? 0 : un_random(i, 3)};
            if (un_octree_find(tree, x) != c) continue;
            un_particle_set_position(p, n, x);
            un_vec3 v = {un_random(i, 4) - 0.5, un_random(i, 5) - 0.5, flat ? 0 : un_random(i, 6)};
            un_particle_set_velocity(p, n, v);
            p->volume[n] = (float)(0.1 + un_random(i, 7));
            p->flags[n] = p->fall[n] = 0;
            bins->tet[n++] = c;
        }
    }
    bins->begin[tree->leaf_count] = n;
    p->count = n;
    assert_int_equal(n, GIVERS);
}

/* Weighted velocity and weight at a place, or with axis -1 volume. */
static void sum_givers(double sum[2], const un_particles *p, un_vec3 at, double h, int axis,
                       int dim)
{
    sum[0] = sum[1] = 0;
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 d = un_scale(un_sub(un_particle_position(p, q), at), 1 / h);
        double w = p->volume[q];
        for (int a = 0; a < dim; a++)
            w *= axis < 0 ? spline(un_vec3_at(d, a)) : hat(un_vec3_at(d, a));
        sum[0] += w * (axis < 0 ? 1 : p->v[axis][q]);
        sum[1] += w;
    }
}

static void gathers_as_the_formula_says(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        un_context *ctx = check_context();
        un_arena arena;
        un_octree tree;
        un_leaves m = {0};
        un_particles p = {.flat = flat};
        un_tet_bins bins = {0};
        double at[3][12], sum[2];
        for (uint64_t i = 0; i < 12; i++)
            for (uint64_t a = 0; a < 3; a++) at[a][i] = un_random(i, 20 + a);
        un_octree_request request = {.count = 12, .x = {at[0], at[1], at[2]}};
        un_arena_init(&arena, ctx);
        un_octree_init(ctx, &tree, un_v3(1, 1, !flat), 4, 16);
        check_ok(ctx, un_octree_build(&tree, &arena, &request));
        check_ok(ctx, un_leaves_build(&m, ctx, &tree));
        make_givers(ctx, &p, &bins, &tree, flat);
        double *u = un_alloc(ctx, (size_t)m.face_count, sizeof *u);
        uint8_t *known = un_alloc(ctx, (size_t)m.face_count, 1);
        float *colour = un_alloc(ctx, (size_t)m.count, sizeof *colour);
        un_leaf_gather out = {u, known, colour, NULL};
        check_ok(ctx, un_transfer_to_leaves(ctx, &arena, &out, &m, &bins, &p));
        for (int32_t f = 0; f < m.face_count; f++) {
            double h = un_leaf_face_size(&m, f);
            sum_givers(sum, &p, un_leaf_face_center(&m, f), h, un_leaf_face_axis(&m, f), m.dim);
            if (sum[1] > 1e-3) check_near(u[f], sum[0] / sum[1], 1e-4);
            assert_true(known[f] || sum[1] < 1e-3);
        }
        for (int32_t c = 0; c < m.count; c++) {
            sum_givers(sum, &p, m.x[c], un_leaf_size(&m, c), -1, m.dim);
            double wanted = sum[0] / un_leaf_volume(&m, c);
            check_near(colour[c], wanted, 1e-5 * wanted);
        }
        un_free(ctx, u);
        un_free(ctx, known);
        un_free(ctx, colour);
        un_tet_bins_free(ctx, &bins);
        un_particles_free(ctx, &p);
        un_leaves_free(&m);
        un_octree_free(&tree);
        un_arena_free(&arena);
        check_context_end(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_particle_outruns_the_liquid),
                                       cmocka_unit_test(gathers_as_the_formula_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
