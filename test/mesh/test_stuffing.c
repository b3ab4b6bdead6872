/* Isosurface stuffing: conformity, angles, volumes, walls, location. */
#include "check.h"
#include "mesh/mesh.h"

/* Fields: what is liquid, and where solids are. */
typedef struct field {
    enum { BALL, BALLS, NOISE, SHEET, LAYER } kind;
    un_vec3 at, normal;
    double radius; /* half the thickness of a sheet */
    double solid;  /* radius of a ball in the middle; 0: none */
    uint64_t seed;
} field;

static double ball(un_vec3 x, un_vec3 at, double radius)
{
    return un_length(un_sub(x, at)) - radius;
}

static double liquid_at(const field *f, un_vec3 x)
{
    if (f->kind == BALL) return ball(x, f->at, f->radius);
    if (f->kind == BALLS) { /* overlapping ones of many sizes */
        double d = INFINITY;
        for (uint64_t i = 0; i < 40; i++) {
            un_vec3 at = un_v3(un_random(3 * i, f->seed), un_random(3 * i + 1, f->seed),
                               un_random(3 * i + 2, f->seed));
            d = fmin(d, ball(x, at, f->radius * un_random(i, f->seed + 1)));
        }
        return d;
    }
    if (f->kind == NOISE) { /* any value anywhere: the worst that a mesher can get */
        uint64_t bits[3];
        memcpy(bits, &x, sizeof bits);
        return f->radius *
               (un_random(bits[0] ^ un_hash64(bits[1] ^ un_hash64(bits[2])), f->seed) - 0.5);
    }
    double d = un_dot(un_sub(x, f->at), f->normal);
    return f->kind == SHEET ? fabs(d) - f->radius : d;
}

static void evaluate(void *arg, int64_t count, const un_vec3 *x, double *liquid, double *solid)
{
    const field *f = arg;
    for (int64_t i = 0; i < count; i++) {
        liquid[i] = liquid_at(f, x[i]);
        if (solid) solid[i] = ball(x[i], un_v3(0.5, 0.5, 0.5), f->solid);
    }
}

static un_stuffing_def def_of(field *f)
{
    un_stuffing_def def = un_stuffing_default();
    def.field = evaluate;
    def.arg = f;
    def.solids = f->solid > 0;
    return def;
}

static un_stuffing_report stuff(un_context *ctx, un_stuffing *mesh, un_vec3 size, int32_t finest,
                                const un_stuffing_def *def)
{
    un_arena arena;
    un_stuffing_report report;
    un_arena_init(&arena, ctx);
    un_stuffing_init(ctx, mesh, size, 4, finest);
    check_ok(ctx, un_stuffing_build(mesh, &arena, def));
    check_ok(ctx, un_stuffing_validate(mesh, &arena, &report));
    un_arena_free(&arena);
    assert_int_equal(report.unmatched_faces, 0);
    assert_int_equal(report.misoriented_tets, 0);
    assert_int_equal(report.wrong_faces, 0);
    assert_int_equal(report.wrong_nodes, 0);
    return report;
}

static void bounds_angles(const un_stuffing_report *report)
{
    check_below(10.7, report->min_angle);
    check_below(report->max_angle, 164.8);
}

static void ball_in_air(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    field f = {.kind = BALL, .at = {0.51, 0.48, 0.5}, .radius = 0.31};
    un_stuffing_def def = def_of(&f);
    un_stuffing mesh;
    double volume = 4 * UN_PI / 3 * pow(f.radius, 3), last = 1;
    for (int32_t finest = 12; finest <= 48; finest *= 2) {
        un_stuffing_report r = stuff(ctx, &mesh, un_v3(1, 1, 1), finest, &def);
        bounds_angles(&r);
        assert_int_equal(mesh.boundary_count, r.behind_count[UN_BEHIND_AIR]);
        double error = fabs(r.volume / volume - 1);
        check_below(error, 0.3 * last); /* second order */
        last = error;
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

static void adversarial_fields(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (uint64_t seed = 0; seed < (CHECK_SHORT ? 1 : 3); seed++) {
        field f = {.kind = NOISE, .radius = 1, .seed = seed};
        un_stuffing_def def = def_of(&f);
        def.linear = seed % 2;
        un_stuffing mesh;
        un_stuffing_report r = stuff(ctx, &mesh, un_v3(1, 0.7, 0.5), 16, &def);
        bounds_angles(&r);
        un_stuffing_free(&mesh);
        f = (field){.kind = BALLS, .radius = 0.15, .seed = seed};
        r = stuff(ctx, &mesh, un_v3(1, 1, 1), 32, &def);
        bounds_angles(&r);
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

/* A sheet of 1.1 leaves has no holes, whatever its direction. */
static void thin_sheets_are_whole(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const int32_t finest = 24;
    for (uint64_t seed = 0; seed < (CHECK_SHORT ? 2 : 5); seed++) {
        un_vec3 n = un_normalize(un_v3(un_random(0, seed) - 0.5, un_random(1, seed) - 0.5,
                                       seed == 0 ? 20 : un_random(2, seed) - 0.5));
        field f = {.kind = SHEET, .at = {0.5, 0.5, 0.503}, .normal = n, .radius = 0.55 / finest};
        un_stuffing_def def = def_of(&f);
        un_stuffing mesh;
        un_stuffing_report r = stuff(ctx, &mesh, un_v3(1, 1, 1), finest, &def);
        bounds_angles(&r);
        un_vec3 u = un_normalize(un_cross(n, un_v3(n.y, n.z, n.x))), v = un_cross(n, u);
        int holes = 0;
        for (uint64_t i = 0; i < 2000; i++) {
            double a = 0.7 * (un_random(2 * i, 77) - 0.5),
                   b = 0.7 * (un_random(2 * i + 1, 77) - 0.5);
            un_tets_place place;
            un_vec3 x = un_mad(un_mad(f.at, u, a), v, b);
            holes += !un_stuffing_locate(&mesh, x, -1, &place);
        }
        assert_int_equal(holes, 0);
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

/* Water in a box up to an odd height: sides are flat and whole, the surface meets them without a
 * chamfer. */
static void fills_a_box(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    /* Sides on planes of coarse leaves, of fine ones, of none. */
    const un_vec3 sizes[] = {{1, 1, 1}, {1, 0.6875, 0.71875}, {1, 0.7, 0.83}};
    for (int i = 0; i < 3; i++) {
        un_vec3 size = sizes[i];
        double height = i ? 0.37 : 11.5 / 32; /* half-way between nodes, too */
        field f = {.kind = LAYER, .at = {0, height, 0}, .normal = {0, 1, 0}};
        un_stuffing_def def = def_of(&f);
        un_stuffing mesh;
        un_stuffing_report r = stuff(ctx, &mesh, size, 32, &def);
        bounds_angles(&r);
        bool chamfered = i == 2; /* where two sides meet, too */
        check_near(r.volume / (height * size.x * size.z), 1, chamfered ? 0.015 : 1e-6);
        assert_int_equal(r.behind_count[UN_BEHIND_WALL], 0); /* a body may be anywhere */
        assert_int_equal(r.behind_count[UN_BEHIND_SIDE + 3], 0);
        un_vec3 lo = size, hi = un_v3(0, 0, 0);
        double floor = 0;
        for (int32_t n = 0; n < mesh.node_count; n++) {
            lo = un_min3(lo, mesh.x[n]);
            hi = un_max3(hi, mesh.x[n]);
        }
        check_near(un_length(un_sub(lo, un_v3(0, 0, 0))), 0, 1e-12);
        check_near(un_length(un_sub(hi, un_v3(size.x, height, size.z))), 0, 1e-6);
        for (int32_t b = 0; b < mesh.boundary_count; b++) {
            int32_t k = mesh.boundary[b];
            if (mesh.face_behind[k] == UN_BEHIND_SIDE + 2) floor -= mesh.area[k].y;
        }
        check_near(floor, size.x * size.z, chamfered ? 0.02 : 1e-9);
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

/* A ball in deep water: the wall is where it should be, and air does not reach it. */
static void goes_around_solids(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int deep = 0; deep < 2; deep++) {
        field f = {
            .kind = LAYER, .at = {0, deep ? 0.9 : 0.53, 0}, .normal = {0, 1, 0}, .solid = 0.21};
        un_stuffing_def def = def_of(&f);
        un_stuffing mesh;
        un_stuffing_report r = stuff(ctx, &mesh, un_v3(1, 1, 1), 32, &def);
        bounds_angles(&r);
        double wall = 0, top = f.at.y - 0.5 + f.solid;
        for (int32_t b = 0; b < mesh.boundary_count; b++) {
            int32_t k = mesh.boundary[b];
            if (mesh.face_behind[k] != UN_BEHIND_WALL) continue;
            wall += un_length(mesh.area[k]);
            check_near(ball(mesh.center[k], un_v3(0.5, 0.5, 0.5), f.solid), 0, 0.15 / 32);
        }
        double area = 2 * UN_PI * f.solid * fmin(top, 2 * f.solid);
        check_near(wall / area, 1, deep ? 0.01 : 0.1);
        if (deep) check_near(r.volume, 0.9 - 4 * UN_PI / 3 * pow(f.solid, 3), 0.01);
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

/* Against a search through all tets and faces. */
static void locates_points(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    field f = {.kind = BALLS, .radius = 0.2, .seed = 5, .solid = 0.15};
    un_stuffing_def def = def_of(&f);
    un_stuffing mesh;
    stuff(ctx, &mesh, un_v3(1, 0.9, 1), 16, &def);
    int32_t inside = 0;
    for (uint64_t i = 0; i < 600; i++) {
        un_vec3 x = un_v3(1.4 * un_random(3 * i, 9) - 0.2, 1.4 * un_random(3 * i + 1, 9) - 0.2,
                          1.4 * un_random(3 * i + 2, 9) - 0.2);
        if (i % 3 == 0) { /* on a node, an edge or a face */
            const int32_t *n = mesh.tet[(i * 7919) % (uint64_t)mesh.tet_count];
            x = i % 2 ? mesh.x[n[0]] : un_scale(un_add(mesh.x[n[1]], mesh.x[n[2]]), 0.5);
        }
        double nearest = INFINITY, w[4];
        bool expected = false;
        for (int32_t t = 0; t < mesh.tet_count && !expected; t++) {
            un_stuffing_weights(&mesh, t, x, w);
            expected = fmin(fmin(w[0], w[1]), fmin(w[2], w[3])) >= -1e-12;
        }
        un_tets_place place;
        bool found = un_stuffing_locate(&mesh, x, (int32_t)i, &place);
        if (i % 3) assert_int_equal(found, expected);
        inside += found;
        un_vec3 at = un_v3(0, 0, 0);
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            at = un_mad(at, mesh.x[mesh.tet[place.tet][k]], place.w[k]);
            sum += place.w[k];
            check_below(-1e-9, place.w[k]);
        }
        check_near(sum, 1, 1e-12);
        double distance = un_length(un_sub(at, x));
        if (found) check_near(distance, 0, 1e-12);
        /* Nothing of the boundary is nearer: sampled on its faces. */
        for (int32_t b = 0; b < mesh.boundary_count && !found; b++) {
            const int32_t *n = mesh.face[mesh.boundary[b]];
            nearest = fmin(nearest, un_length(un_sub(x, mesh.center[mesh.boundary[b]])));
            for (int k = 0; k < 3; k++) {
                un_vec3 p = mesh.x[n[k]], q = mesh.x[n[(k + 1) % 3]];
                nearest = fmin(nearest, un_length(un_sub(x, p)));
                nearest = fmin(nearest, un_length(un_sub(x, un_scale(un_add(p, q), 0.5))));
            }
        }
        check_below(distance, found ? 1e-9 : nearest + 1e-12);
    }
    assert_true(inside > 200 && inside < 500);
    un_vec3 strange[] = {{NAN, NAN, NAN}, {INFINITY, -INFINITY, 0}, {1e300, 0, -1e300}};
    for (int i = 0; i < 3; i++) {
        un_tets_place place;
        un_stuffing_locate(&mesh, strange[i], INT32_MAX, &place);
        assert_true(place.tet >= 0 && place.tet < mesh.tet_count && isfinite(place.w[0]));
    }
    un_stuffing_free(&mesh);
    check_context_end(ctx);
}

/* Fields that are no numbers, or nowhere negative. */
static void nothing(void *arg, int64_t count, const un_vec3 *x, double *liquid, double *solid)
{
    (void)x, (void)solid;
    for (int64_t i = 0; i < count; i++) liquid[i] = *(double *)arg;
}

static void makes_empty_and_full_meshes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double values[] = {NAN, 1, INFINITY, 0, -1, -INFINITY};
    for (int i = 0; i < 6; i++) {
        un_stuffing_def def = un_stuffing_default();
        def.field = nothing;
        def.arg = &values[i];
        un_stuffing mesh;
        un_stuffing_report r = stuff(ctx, &mesh, un_v3(1, 1, 1), 8, &def);
        check_near(r.volume, values[i] < 0, 1e-12);
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

static double size_of(void *arg, un_vec3 x)
{
    (void)arg;
    return x.x < 0.5 ? 1.0 / 16 : 1;
}

/* Deep inside, leaves are as fine as they are wanted to be and no finer. */
static void obeys_the_size(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    field f = {.kind = LAYER, .at = {0, 0.9, 0}, .normal = {0, 1, 0}};
    un_stuffing_def def = def_of(&f);
    def.size = size_of;
    un_stuffing mesh;
    stuff(ctx, &mesh, un_v3(1, 1, 1), 32, &def);
    un_tets_place place;
    un_stuffing_locate(&mesh, un_v3(0.3, 0.3, 0.6), -1, &place);
    check_near(un_octree_size(&mesh.tree, mesh.level[place.tet]), 1.0 / 16, 1e-12);
    un_stuffing_locate(&mesh, un_v3(0.9, 0.1, 0.6), -1, &place);
    check_near(un_octree_size(&mesh.tree, mesh.level[place.tet]), 1.0 / 4, 1e-12);
    un_stuffing_free(&mesh);
    check_context_end(ctx);
}

/* Along x, from the finest leaves to four times their size. */
static double size_along_x(void *arg, un_vec3 x)
{
    (void)arg;
    return un_clamp((x.x - 0.3) * 0.6, 1.0 / 32, 4.0 / 32);
}

/* Leaves of several sizes along the surface, its walls and the sides: still conforming, and no
 * angle is worse. */
static void is_graded_along_the_surface(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const field fields[] = {
        {.kind = BALL, .at = {0.51, 0.48, 0.5}, .radius = 0.41},
        {.kind = BALLS, .radius = 0.3, .seed = 1},
        {.kind = LAYER, .at = {0.5, 0.47, 0.5}, .normal = {0.1, 0.99, 0.1}},
        {.kind = LAYER, .at = {0.5, 0.52, 0.5}, .normal = {0.1, 0.99, 0.1}, .solid = 0.21},
        {.kind = SHEET, .at = {0.5, 0.5, 0.5}, .normal = {0.1, 0.7, 0.7}, .radius = 0.09},
        {.kind = NOISE, .radius = 1, .seed = 3}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        field f = fields[i];
        un_stuffing_def def = def_of(&f);
        def.size = size_along_x;
        def.graded = true;
        un_stuffing mesh;
        un_stuffing_report r = stuff(ctx, &mesh, un_v3(1, 0.9375, 0.71), 32, &def);
        bounds_angles(&r);
        int32_t faces[UN_LEVELS_MAX + 1] = {0};
        for (int32_t b = 0; b < mesh.boundary_count; b++)
            faces[mesh.level[mesh.face_tet[mesh.boundary[b]][0]]]++;
        for (int32_t l = 1; l <= 3; l++)
            if (f.kind != NOISE) assert_true(faces[l] > 20);
        un_stuffing_free(&mesh);
    }
    check_context_end(ctx);
}

static void has_the_same_bits_for_any_threads(void **state)
{
    (void)state;
    un_stuffing mesh[2];
    un_context *ctx[2];
    for (int k = 0; k < 2; k++) {
        un_arena arena;
        ctx[k] = check_context_threads(k ? 4 : 1);
        field f = {.kind = BALLS, .radius = 0.2, .seed = 3, .solid = 0.1};
        un_stuffing_def def = def_of(&f);
        un_arena_init(&arena, ctx[k]);
        un_stuffing_init(ctx[k], &mesh[k], un_v3(1, 1, 1), 4, 32);
        check_ok(ctx[k], un_stuffing_build(&mesh[k], &arena, &def));
        un_arena_free(&arena);
    }
    const un_stuffing *a = &mesh[0], *b = &mesh[1];
    assert_int_equal(a->node_count, b->node_count);
    assert_int_equal(a->tet_count, b->tet_count);
    assert_int_equal(a->face_count, b->face_count);
    size_t nodes = (size_t)a->node_count, tets = (size_t)a->tet_count,
           faces = (size_t)a->face_count;
    assert_memory_equal(a->x, b->x, nodes * sizeof *a->x);
    assert_memory_equal(a->on, b->on, nodes * sizeof *a->on);
    assert_memory_equal(a->tet, b->tet, tets * sizeof *a->tet);
    assert_memory_equal(a->volume, b->volume, tets * sizeof *a->volume);
    assert_memory_equal(a->face, b->face, faces * sizeof *a->face);
    assert_memory_equal(a->face_tet, b->face_tet, faces * sizeof *a->face_tet);
    assert_memory_equal(a->face_behind, b->face_behind, faces);
    assert_memory_equal(a->area, b->area, faces * sizeof *a->area);
    assert_memory_equal(a->corner, b->corner, 4 * tets * sizeof *a->corner);
    assert_memory_equal(a->rim, b->rim, (size_t)a->rim_count * sizeof *a->rim);
    for (int k = 0; k < 2; k++) {
        un_stuffing_free(&mesh[k]);
        check_context_end(ctx[k]);
    }
}

static void sees_broken_meshes(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    field f = {.kind = BALL, .at = {0.5, 0.5, 0.5}, .radius = 0.3};
    un_stuffing_def def = def_of(&f);
    un_stuffing mesh;
    un_stuffing_report r;
    un_arena arena;
    un_arena_init(&arena, ctx);
    stuff(ctx, &mesh, un_v3(1, 1, 1), 16, &def);
    int32_t t = mesh.tet_count / 2, *n = mesh.tet[t], first = n[0], second = n[1];
    n[0] = second, n[1] = first; /* inside out */
    check_ok(ctx, un_stuffing_validate(&mesh, &arena, &r));
    assert_int_equal(r.misoriented_tets, 1);
    n[0] = n[1] = second; /* other faces */
    check_ok(ctx, un_stuffing_validate(&mesh, &arena, &r));
    assert_true(r.unmatched_faces > 0 && r.wrong_nodes > 0);
    n[0] = first, n[1] = second;
    int32_t k = mesh.face_count / 2;
    mesh.area[k] = un_scale(mesh.area[k], 1.1);
    check_ok(ctx, un_stuffing_validate(&mesh, &arena, &r));
    assert_true(r.unmatched_faces == 0 && r.wrong_faces > 0);
    un_arena_free(&arena);
    un_stuffing_free(&mesh);
    check_context_end(ctx);
}

static un_status build_once(un_context *ctx, void *arg)
{
    field f = {.kind = BALL, .at = {0.5, 0.5, 0.5}, .radius = 0.3, .solid = 0.1};
    un_stuffing_def def = def_of(&f);
    un_stuffing mesh;
    un_arena arena;
    (void)arg;
    un_arena_init(&arena, ctx);
    un_stuffing_init(ctx, &mesh, un_v3(1, 1, 1), 2, 8);
    un_status status = un_stuffing_build(&mesh, &arena, &def);
    assert_true(status == UN_OK || mesh.tet_count == 0);
    un_stuffing_free(&mesh);
    un_arena_free(&arena);
    return status;
}

static void survives_no_memory(void **state)
{
    (void)state;
    check_allocation_failures(build_once, NULL, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ball_in_air),
        cmocka_unit_test(adversarial_fields),
        cmocka_unit_test(thin_sheets_are_whole),
        cmocka_unit_test(fills_a_box),
        cmocka_unit_test(goes_around_solids),
        cmocka_unit_test(locates_points),
        cmocka_unit_test(makes_empty_and_full_meshes),
        cmocka_unit_test(obeys_the_size),
        cmocka_unit_test(is_graded_along_the_surface),
        cmocka_unit_test(has_the_same_bits_for_any_threads),
        cmocka_unit_test(sees_broken_meshes),
        cmocka_unit_test(survives_no_memory),
    };
    check_races_in("has_the_same*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
