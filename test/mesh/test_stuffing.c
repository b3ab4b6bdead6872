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
        return f->radius * (un_random(bits[0] ^ un_hash64(bits[1] ^ un_hash64(bits[2])), f->seed) - 0.5);
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
    if (getenv("SHOW"))
        printf("tets %d nodes %d faces %d passes %d unmatched %ld mis %ld wrongf %ld wrongn %ld vol %.9g angles %.3f %.3f air %ld wall %ld sides %ld %ld %ld %ld %ld %ld\n", mesh->tet_count,
               mesh->node_count, mesh->face_count, mesh->passes, report.unmatched_faces, report.misoriented_tets,
               report.wrong_faces, report.wrong_nodes, report.volume, report.min_angle, report.max_angle,report.behind_count[1],report.behind_count[2],report.behind_count[3],report.behind_count[4],report.behind_count[5],report.behind_count[6],report.behind_count[7],report.behind_count[8]);
    assert_int_equal(report.unmatched_faces, 0);
    assert_int_equal(report.misoriented_tets, 0);
    assert_int_equal(report.wrong_faces, 0);
    assert_int_equal(report.wrong_nodes, 0);
    return report;
}

static void bounds_angles(const un_stuffing_report *report)
{
    check_below(8, report->min_angle);
    check_below(report->max_angle, 168);
}

static void ball_in_air(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    field f = {.kind = BALL, .at = {0.51, 0.48, 0.5}, .radius = 0.31};
    un_stuffing_def def = def_of(&f);
    un_stuffing mesh;
    double volume = 4 * UN_PI / 3 * pow(f.radius, 3), last = 1;
    for (int32_t finest = 16; finest <= 64; finest *= 2) {
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
    for (uint64_t seed = 0; seed < 4; seed++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ball_in_air),
        cmocka_unit_test(adversarial_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
