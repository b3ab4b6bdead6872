/* Viscosity on the faces of leaves: what it must keep, and flows that are known, on cells of
 * several sizes. */
#include "check.h"
#include "viscosity/cup.h"

static const tet_spots spots = {3, 5, 0.25};
static const un_vec3 middle = {0.51, 0.48, 0.53};

/* Faces of the cup's tree. */
typedef struct basin {
    cup c;
    un_leaves leaves;
    un_leaf_walls walls; /* only what the solve asks for */
    float *phi;          /* at leaves */
    double *u, *was;     /* at faces */
    uint8_t *known, *solved;
    un_viscous_leaves step;
} basin;

static double brick(un_vec3 x, const void *arg)
{
    (void)arg;
    un_vec3 d = un_sub(x, middle);
    return fmax(fabs(d.x + 0.3 * d.y), fmax(fabs(d.y - 0.2 * d.z), fabs(d.z + 0.1 * d.x))) - 0.3;
}

static double everywhere(un_vec3 x, const void *arg)
{
    (void)x, (void)arg;
    return -1;
}

static void basin_begin(basin *b, int32_t threads, un_vec3 size, int32_t coarsest, int32_t finest,
                        tet_level_set *liquid)
{
    memset(b, 0, sizeof *b);
    cup *c = &b->c;
    cup_begin(c, threads, size, coarsest, finest, tet_spotted, &spots);
    tet_pool_fill(&c->pool, liquid, NULL);
    b->leaves.ctx = c->ctx;
    check_ok(c->ctx, un_leaves_build(&b->leaves, c->ctx, &c->pool.tree));
    const un_leaves *m = &b->leaves;
    size_t leaves = (size_t)m->count, faces = (size_t)m->face_count;
    b->phi = un_alloc(c->ctx, leaves, sizeof *b->phi);
    b->walls.volume = un_alloc(c->ctx, leaves, sizeof *b->walls.volume);
    b->u = un_alloc_zero(c->ctx, faces, sizeof *b->u);
    b->was = un_alloc_zero(c->ctx, faces, sizeof *b->was);
    b->known = un_alloc_zero(c->ctx, faces, 1);
    b->solved = un_alloc_zero(c->ctx, faces, 1);
    for (size_t n = 0; n < leaves; n++) {
        b->phi[n] = (float)liquid(m->x[n], NULL);
        b->walls.volume[n] = 1;
    }
    for (size_t f = 0; f < faces; f++) {
        int32_t other = m->face_other[f];
        b->known[f] = b->phi[m->face_side[f] / 6] < 0 || (other >= 0 && b->phi[other] < 0);
    }
}

static void basin_solve(basin *b)
{
    cup *c = &b->c;
    b->step = (un_viscous_leaves){.solve = c->in,
                                  .leaves = &b->leaves,
                                  .walls = &b->walls,
                                  .phi = b->phi,
                                  .u = b->u,
                                  .known = b->known,
                                  .solved = b->solved};
    memcpy(b->was, b->u, (size_t)b->leaves.face_count * sizeof *b->u);
    check_ok(c->ctx,
             un_viscosity_step_leaves(c->viscosity, &c->pool.arena, &b->step, c->u, &c->report));
    un_arena_reset(&c->pool.arena);
    assert_true(c->report.solve.converged);
}

static void basin_end(basin *b)
{
    un_context *ctx = b->c.ctx;
    un_free(ctx, b->phi);
    un_free(ctx, b->walls.volume);
    un_free(ctx, b->u);
    un_free(ctx, b->was);
    un_free(ctx, b->known);
    un_free(ctx, b->solved);
    un_leaves_free(&b->leaves);
    cup_end(&b->c);
}

static double rigid(const basin *b, int64_t f)
{
    un_vec3 x = un_sub(un_leaf_face_center(&b->leaves, f), middle);
    un_vec3 u = un_add(un_v3(0.3, -0.2, 0.1), un_cross(un_v3(1, 2, -0.5), x));
    return un_vec3_at(u, un_leaf_face_axis(&b->leaves, f));
}

static double noise(const basin *b, int64_t f)
{
    (void)b;
    return un_random((uint64_t)f, 3) - 0.5;
}

/* A drop that drifts and turns costs no work, with cells of any size at its surface. What is beyond
 * it goes on in the same way. */
static void rigid_motion_is_left_alone(void **state)
{
    (void)state;
    for (int thick = 0; thick < 2; thick++) {
        basin b;
        int32_t beyond = 0;
        basin_begin(&b, 2, un_v3(1, 1, 1), 4, 16, brick);
        b.c.in.viscosity_all = thick ? 1e4 : 0.3;
        for (int64_t f = 0; f < b.leaves.face_count; f++) b.u[f] = b.known[f] ? rigid(&b, f) : 9;
        basin_solve(&b);
        for (int64_t f = 0; f < b.leaves.face_count; f++) {
            if (b.known[f]) check_near(b.u[f], rigid(&b, f), 1e-6);
            /* specks of liquid beyond them have their own mind */
            if (b.solved[f]) check_near(b.u[f], rigid(&b, f), 1e-2);
            beyond += b.solved[f];
        }
        assert_in_range(b.c.report.node_count, 500, 10000);
        assert_in_range(beyond, 500, 10000);
        basin_end(&b);
    }
}

/* Of noise, all is gone but what is rigid, of which nothing is; in thin liquid much of it stays. */
static void thick_liquid_is_smooth(void **state)
{
    (void)state;
    double left[2];
    for (int thick = 0; thick < 2; thick++) {
        basin b;
        double sum = 0, was = 0;
        basin_begin(&b, 2, un_v3(1, 1, 1), 4, 16, brick);
        b.c.in.viscosity_all = thick ? 1e9 : 30;
        for (int64_t f = 0; f < b.leaves.face_count; f++) b.u[f] = noise(&b, f);
        basin_solve(&b);
        for (int64_t f = 0; f < b.leaves.face_count; f++) {
            if (!b.known[f]) continue;
            sum += b.u[f] * b.u[f];
            was += b.was[f] * b.was[f];
        }
        left[thick] = sqrt(sum / was);
        basin_end(&b);
    }
    if (getenv("VERBOSE")) printf("noise left: thin %g, thick %g\n", left[0], left[1]);
    check_below(left[1], 0.15);
    check_below(left[0], 0.95);
    check_below(0.5, left[0]);
}

/* Between plates that move against each other: u = y. */
static void couette(void **state)
{
    (void)state;
    basin b;
    basin_begin(&b, 2, un_v3(1, 1, 1), 2, 8, everywhere);
    cup *c = &b.c;
    cup_no_walls(c);
    for (int32_t n = 0; n < c->mesh->node_count; n++) {
        un_vec3 x = c->mesh->x[n];
        if (x.y < 1e-9 || x.y > 1 - 1e-9 || x.x < 1e-9 || x.x > 1 - 1e-9)
            cup_hold(c, n, un_v3(x.y, 0, 0));
    }
    c->in.dt = 1e13;
    c->in.tolerance = 1e-14;
    basin_solve(&b);
    for (int64_t f = 0; f < b.leaves.face_count; f++) {
        double y = un_leaf_face_center(&b.leaves, f).y;
        check_near(b.u[f], un_leaf_face_axis(&b.leaves, f) == 0 ? y : 0, 1e-8);
    }
    basin_end(&b);
}

/* Between plates at rest under a force: u = G / (2 mu) y (h - y); cells of two sizes. */
static double poiseuille_error(int32_t cells)
{
    basin b;
    double mu = 3, force = 8 * mu, error = 0;
    basin_begin(&b, 2, un_v3(1, 1, 0.25), cells / 2, cells, everywhere);
    cup *c = &b.c;
    cup_no_walls(c);
    c->in.viscosity_all = mu;
    c->in.dt = 1e9;
    for (int32_t n = 0; n < c->mesh->node_count; n++) {
        un_vec3 x = c->mesh->x[n];
        if (x.y < 1e-9 || x.y > 1 - 1e-9 || x.x < 1e-9 || x.x > 1 - 1e-9)
            cup_hold(c, n, un_v3(force / (2 * mu) * x.y * (1 - x.y), 0, 0));
    }
    for (int64_t f = 0; f < b.leaves.face_count; f++)
        b.u[f] = un_leaf_face_axis(&b.leaves, f) == 0 ? force / 1000 * c->in.dt : 0;
    basin_solve(&b);
    for (int32_t n = 0; n < c->mesh->node_count; n++) {
        double y = c->mesh->x[n].y;
        error = fmax(error, fabs(c->u[n].x - force / (2 * mu) * y * (1 - y)));
    }
    basin_end(&b);
    return error;
}

static void poiseuille(void **state)
{
    (void)state;
    double e[3];
    for (int i = 0; i < 3; i++) e[i] = poiseuille_error(8 << i);
    if (getenv("VERBOSE")) printf("poiseuille: %g %g %g\n", e[0], e[1], e[2]);
    check_below(e[0], 0.1);
    check_below(1.6, log2(e[1] / e[2]));
}

/* A rod afloat, pulled at along its length by forces that add up to nothing, as in test_nodes.c:
 * its rate of stretching, at the middle, over what 3 mu [Trouton 1906] allows. */
#define ROD_HALF 1.3
#define ROD_RADIUS 0.27

static double rod(un_vec3 x, const void *arg)
{
    (void)arg;
    return fmax(hypot(x.y - 0.52, x.z - 0.49) - ROD_RADIUS, fabs(x.x - 1.5) - ROD_HALF);
}

static double rod_softness(int32_t coarsest, bool keeps_volume)
{
    basin b;
    basin_begin(&b, 2, un_v3(3, 1, 1), coarsest, 48, rod);
    b.c.in.viscosity_all = 1e4;
    b.c.in.dt = 100;
    b.c.in.tolerance = 1e-9;
    b.c.in.keeps_volume = keeps_volume;
    for (int64_t f = 0; f < b.leaves.face_count; f++)
        b.u[f] =
            un_leaf_face_axis(&b.leaves, f) == 0 ? un_leaf_face_center(&b.leaves, f).x - 1.5 : 0;
    basin_solve(&b);
    double third = ROD_HALF / 3, w = 0, wx = 0, wu = 0, wxx = 0, wxu = 0;
    for (int64_t f = 0; f < b.leaves.face_count; f++) {
        double x = un_leaf_face_center(&b.leaves, f).x - 1.5;
        if (!b.known[f] || un_leaf_face_axis(&b.leaves, f) != 0 || fabs(x) > third) continue;
        w += 1;
        wx += x;
        wu += b.u[f];
        wxx += x * x;
        wxu += x * b.u[f];
    }
    double rate = (wxu - wx * wu / w) / (wxx - wx * wx / w);
    double theory = 1000 * (ROD_HALF * ROD_HALF - third * third / 5) / (2 * 3 * 1e4 * 100);
    if (getenv("VERBOSE")) printf("rod, coarsest %d: %g\n", coarsest, rate / theory);
    basin_end(&b);
    return rate / theory;
}

/* Three times the viscosity, where viscous stress by itself gives two; with cells of two sizes at
 * the rod's surface, too. */
static void rods_resist_as_trouton_says(void **state)
{
    (void)state;
    check_near(rod_softness(48, true), 1, 0.04);
    check_near(rod_softness(24, true), 1, 0.08);
    check_near(rod_softness(48, false), 1.5, 0.08);
}

static void same_bits(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        basin b;
        basin_begin(&b, threads, un_v3(1, 1, 1), 4, 16, brick);
        b.c.in.viscosity_all = 20;
        for (int64_t f = 0; f < b.leaves.face_count; f++) b.u[f] = noise(&b, f);
        basin_solve(&b);
        size_t bytes = (size_t)b.leaves.face_count * sizeof *first;
        if (threads == 1) first = memcpy(malloc(bytes), b.u, bytes);
        assert_memory_equal(first, b.u, bytes);
        basin_end(&b);
    }
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rigid_motion_is_left_alone),
                                       cmocka_unit_test(thick_liquid_is_smooth),
                                       cmocka_unit_test(couette),
                                       cmocka_unit_test(poiseuille),
                                       cmocka_unit_test(rods_resist_as_trouton_says),
                                       cmocka_unit_test(same_bits)};
    check_races_in("same_bits");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
