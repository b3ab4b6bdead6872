/* The flow between meshes that conform to the liquid: exact where velocities are linear, and near
 * that for waves, beyond the surface too. */
#include "check.h"
#include "surface/surface.h"
#include "transfer/transfer.h"

typedef struct tank {
    un_context *ctx;
    un_arena arena;
    un_track track;
    un_stuffing mesh;
    un_bodies bodies;
    un_flow flow;
    double *u;
    un_vec3 *u_tet;
} tank;

typedef un_vec3 velocity(un_vec3 x);

static double wavy(const void *arg, un_vec3 x)
{
    (void)arg;
    return 0.95 * (x.y - 0.5 - 0.03 * cos(UN_PI * x.x));
}

/* closed: NULL, or which of the sides are. */
static void begin_behind(tank *t, int32_t cells, un_track_shape *shape, velocity *of,
                         const bool closed[6])
{
    bool open[6] = {true, true, true, true, true, true}; /* to any velocity */
    for (int side = 0; side < 6; side++) open[side] = !(closed && closed[side]);
    *t = (tank){.ctx = check_context()};
    un_arena_init(&t->arena, t->ctx);
    check_ok(t->ctx, un_track_init(&t->track, t->ctx, un_v3(1, 1, 0.25), 2 * cells));
    check_ok(t->ctx, un_track_begin(&t->track, shape, NULL));
    un_stuffing_init(t->ctx, &t->mesh, un_v3(1, 1, 0.25), 4, cells);
    un_track_stuffing def = {.track = &t->track, .bodies = &t->bodies};
    check_ok(t->ctx, un_track_stuff(&t->mesh, &t->arena, &def));
    un_arena_reset(&t->arena);
    t->u = un_alloc(t->ctx, (size_t)t->mesh.face_count, sizeof *t->u);
    for (int32_t f = 0; f < t->mesh.face_count; f++)
        t->u[f] = un_dot(of(t->mesh.center[f]), un_normalize(t->mesh.area[f]));
    t->u_tet = un_alloc(t->ctx, (size_t)t->mesh.tet_count, sizeof *t->u_tet);
    un_stuffing_velocities(t->ctx, t->u_tet, &t->mesh, t->u);
    un_flow_def fit = {&t->mesh, t->u, t->u_tet, un_v3(1, 1, 0.25), open, NULL, 5, &t->track, 0.05};
    check_ok(t->ctx, un_flow_fit(t->ctx, &t->flow, &fit));
}

static void begin_in(tank *t, int32_t cells, un_track_shape *shape, velocity *of)
{
    begin_behind(t, cells, shape, of, NULL);
}

static void begin(tank *t, int32_t cells, velocity *of)
{
    begin_in(t, cells, wavy, of);
}

static void end(tank *t)
{
    un_free(t->ctx, t->u);
    un_free(t->ctx, t->u_tet);
    un_flow_free(t->ctx, &t->flow);
    un_stuffing_free(&t->mesh);
    un_track_free(&t->track);
    un_arena_free(&t->arena);
    check_context_end(t->ctx);
}

static un_vec3 shear(un_vec3 x)
{
    return un_v3(0.3 + 2 * x.x - x.y, 0.5 - x.y + x.z, x.x - x.z);
}

/* The worst and the mean error `above` the surface, along its normals. */
static double worst_error(const tank *t, velocity *of, double above, double *mean)
{
    double worst = 0, sum = 0, area = 0;
    for (int32_t v = 0; v < t->track.mesh.vertex_count; v++) {
        un_vec3 n = t->track.mesh.normal[v], x = un_mad(t->track.mesh.position[v], n, above);
        if (!(x.x > 0 && x.x < 1 && x.z > 0 && x.z < 0.25)) continue;
        un_vec3 d = un_sub(un_flow_at(&t->flow, x), of(x));
        worst = fmax(worst, un_length(d));
        sum += un_dot(d, n);
        area += 1;
    }
    *mean = sum / area;
    return worst;
}

static void linear_velocities_are_exact(void **state)
{
    (void)state;
    tank t;
    double mean;
    begin(&t, 16, shear);
    check_below(worst_error(&t, shear, 0, &mean), 0.05);
    check_below(worst_error(&t, shear, t.mesh.tree.h, &mean), 0.1);
    end(&t);
}

/* Of a standing wave; 1 m/s at the middle of the surface. */
static un_vec3 wave(un_vec3 x)
{
    double k = UN_PI, s = sinh(k * 0.5);
    return un_v3(-sin(k * x.x) * cosh(k * x.y) / s, cos(k * x.x) * sinh(k * x.y) / s, 0);
}

static void waves_keep_their_height(void **state)
{
    (void)state;
    tank t;
    double mean;
    begin(&t, 16, wave);
    check_below(worst_error(&t, wave, 0, &mean), 0.05);
    check_below(fabs(mean), 0.001);
    check_below(worst_error(&t, wave, -t.mesh.tree.h, &mean), 0.005);
    end(&t);
}

/* The side ahead of a front stops it: it gets there within a step of 0.05 s, but no farther, where
 * its liquid would be lost. Along the side it goes on. */
static double front(const void *arg, un_vec3 x)
{
    (void)arg;
    return x.x - 0.94;
}

static un_vec3 ahead(un_vec3 x)
{
    (void)x;
    return un_v3(3, 1, 0);
}

static void dry_sides_stop_fronts(void **state)
{
    (void)state;
    tank t;
    begin_behind(&t, 16, front, ahead, (const bool[6]){[1] = true});
    for (int i = 1; i < 16; i++) {
        un_vec3 u = un_flow_at(&t.flow, un_v3(1, i / 16.0, 0.125));
        check_near(u.x, 0.06 / 0.05, 1e-6);
        check_near(u.y, 1, 0.01);
    }
    end(&t);
    begin_in(&t, 16, front, ahead);
    check_near(un_flow_at(&t.flow, un_v3(1, 0.5, 0.125)).x, 3, 0.01);
    end(&t);
}

/* A sheet of one layer of tets, or less. */
static double sheet(const void *arg, un_vec3 x)
{
    (void)arg;
    return fabs(x.y - 0.47 - 0.3 * x.x) / 1.05 - 0.03;
}

/* No two faces agree. */
static un_vec3 noise(un_vec3 x)
{
    double s = sin(4321 * x.x + 9876 * x.y + 5432 * x.z) * 1e4;
    double a = s - floor(s), b = 13 * a - floor(13 * a), c = 17 * b - floor(17 * b);
    return un_v3(2 * a - 1, 2 * b - 1, 2 * c - 1);
}

static void noise_does_not_grow(void **state)
{
    (void)state;
    tank t;
    double most = 0, fastest = 0;
    begin_in(&t, 16, sheet, noise);
    assert_true(t.mesh.tet_count > 100);
    for (int32_t i = 0; i < t.mesh.tet_count; i++) most = fmax(most, un_length(t.u_tet[i]));
    for (int32_t n = 0; n < t.mesh.lattice.node_count; n++)
        fastest = fmax(fastest, un_length(t.flow.u[n]));
    check_below(fastest, 2.5 * most);
    end(&t);
}

/* Both sides of the sheet run apart along it. */
static un_vec3 steep(un_vec3 x)
{
    double d = x.y - 0.47 - 0.3 * x.x;
    return un_v3(40 * d, 12 * d, 0);
}

/* Slopes that are large for the speed do not go on beyond the liquid. */
static void air_is_hardly_faster_than_liquid(void **state)
{
    (void)state;
    tank t;
    begin_in(&t, 16, sheet, steep);
    double most = 0, fastest = 0;
    for (int32_t i = 0; i < t.mesh.tet_count; i++) most = fmax(most, un_length(t.u_tet[i]));
    for (int32_t n = 0; n < t.mesh.lattice.node_count; n++)
        if (t.flow.known[n] > 2) fastest = fmax(fastest, un_length(t.flow.u[n]));
    check_below(fastest, 1.11 * most);
    assert_true(fastest > 0.9 * most);
    end(&t);
}

/* Velocities that no linear fit holds: the flow has the momentum of its faces. */
static un_vec3 curved(un_vec3 x)
{
    double d = (x.y - 0.25) / 0.12;
    return un_v3(exp(-d * d), 0, 0);
}

static void curved_flow_keeps_its_momentum(void **state)
{
    (void)state;
    tank t;
    double found = 0, wanted = 0;
    begin(&t, 16, curved);
    for (int32_t i = 0; i < t.mesh.tet_count; i++) {
        un_vec3 x = un_stuffing_center(&t.mesh, i);
        if (fabs(x.y - 0.25) > 0.06) continue; /* where it bends to one side */
        found += t.mesh.volume[i] * un_flow_at(&t.flow, x).x;
        wanted += t.mesh.volume[i] * curved(x).x;
    }
    if (getenv("VERBOSE")) print_message("curved: %g\n", found / wanted - 1);
    check_below(fabs(found / wanted - 1), 0.03);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_velocities_are_exact),
        cmocka_unit_test(waves_keep_their_height),
        cmocka_unit_test(dry_sides_stop_fronts),
        cmocka_unit_test(noise_does_not_grow),
        cmocka_unit_test(air_is_hardly_faster_than_liquid),
        cmocka_unit_test(curved_flow_keeps_its_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
