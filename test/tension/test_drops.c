/* Surface tension in methods: the pressure in a drop, a drop at rest, its period, beads at their
 * contact angle. Without gravity; density and tension are 1. test-labels: slow */
#include "method/world.h"

#define FLUID " gravity = {0, 0, 0}, fluid = { density = 1, surface_tension = 1 },"
#define R 0.25

static const char flat_drop[] =
    "scene { domain = { size = {1, 1} }, detail = { finest = 32 }," FLUID
    " liquid = { sphere { center = {0.51, 0.52}, radius = 0.25 } } }";
static const char drop[] = "scene { method = 'uniform', detail = { finest = 24 }," FLUID
                           " liquid = { sphere { center = {0.51, 0.52, 0.49}, radius = 0.25 } } }";
static const char tet_drop[] =
    "scene { method = 'tet', detail = { coarsest = 8, finest = 32 }," FLUID
    " liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.25 } } }";

/* Cells are large inside the drop and away from it. */
static const char flat_leaf_drop[] =
    "scene { method = 'octree', domain = { size = {1, 1} }, detail = { coarsest = 8, finest = 32 "
    "}," FLUID " liquid = { sphere { center = {0.51, 0.52}, radius = 0.25 } } }";
static const char leaf_drop[] =
    "scene { method = 'octree', detail = { coarsest = 8, finest = 32 }," FLUID
    " liquid = { sphere { center = {0.51, 0.52, 0.49}, radius = 0.25 } } }";

/* The grid gathers around the drop. */
static const char flat_warp_drop[] =
    "scene { method = 'warp', domain = { size = {1, 1} }, detail = { finest = 32 }," FLUID
    " liquid = { sphere { center = {0.51, 0.52}, radius = 0.25 } } }";
static const char warp_drop[] =
    "scene { method = 'warp', detail = { finest = 24 }," FLUID
    " liquid = { sphere { center = {0.51, 0.52, 0.49}, radius = 0.25 } } }";

static const char carried_drop[] =
    "scene { method = 'conforming', detail = { coarsest = 4, finest = 16 }," FLUID
    " liquid = { sphere { center = {0.51, 0.52, 0.49}, radius = 0.25 } } }";

/* Speeds in sqrt(sigma / rho R), the pressure as a share of the jump. */
static void drop_rests(const un_method *method, const char *text, double end, double jump,
                       double pressure, double speed)
{
    world w;
    un_probe centre = {.kind = UN_PROBE_PRESSURE, .at = {0.51, 0.52, 0.49}};
    world_begin(&w, method, CHECK_THREADS, text);
    double sum = 0, count = 0;
    while (end - w.time > 1e-9) {
        world_step(&w, end);
        sum += method->probe(w.state, &centre);
        count += 1;
    }
    if (getenv("VERBOSE"))
        printf("pressure %g of the jump, speed %g, %g steps\n", sum / count / jump,
               w.max_speed * sqrt(R), count);
    check_near(sum / count, jump, pressure * jump);
    check_below(w.max_speed * sqrt(R), speed);
    check_below(w.max_volume_error, 0.02);
    world_end(&w);
}

static void a_flat_drop_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_uniform, flat_drop, 0.96, 1 / R, 0.01, 0.1); /* three periods */
}

static void a_drop_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_uniform, drop, 0.1, 2 / R, 0.02, 0.1);
}

static void a_drop_on_tets_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_tet, tet_drop, 0.06, 2 / R, 0.02, 0.1);
}

static void a_flat_drop_on_leaves_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_octree, flat_leaf_drop, 0.96, 1 / R, 0.01, 0.1);
}

static void a_drop_on_leaves_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_octree, leaf_drop, 0.06, 2 / R, 0.02,
               0.13); /* methods differ in jitter */
}

static void a_flat_warped_drop_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_warp, flat_warp_drop, 0.96, 1 / R, 0.01, 0.1);
}

static void a_warped_drop_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_warp, warp_drop, 0.06, 2 / R, 0.02, 0.1);
}

static void a_carried_drop_rests(void **state)
{
    (void)state;
    drop_rests(&un_method_conforming, carried_drop, 0.1, 2 / R, 0.01, 0.1);
}

/* Mode 2 of a drop, [Lamb, section 275]: omega^2 = 8 sigma / rho R^3; by its height at the axis. */
static void a_carried_drop_swings(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_conforming, CHECK_THREADS,
                "scene { method = 'conforming', detail = { coarsest = 4, finest = 16 }," FLUID
                " liquid = { field(function(x, y, z) local a, b, c = x - 0.5, y - 0.5, z - 0.5"
                " local r = math.sqrt(a * a + b * b + c * c) + 1e-9"
                " return r - 0.25 * (1 + 0.08 * (1.5 * b * b / (r * r) - 0.5)) end) } }");
    double before = 0, crossings[3] = {0}, period = 2 * UN_PI / sqrt(8 / (R * R * R)), most = 0;
    int count = 0;
    while (w.time < 1.5 * period && count < 3) {
        un_probe top = {.kind = UN_PROBE_HEIGHT, .at = {0.5, 0, 0.5}};
        double wide = w.method->probe(w.state, &top) - 0.75;
        if (w.time > 0 && (wide > 0) != (before > 0))
            crossings[count++] = w.time - w.step.dt * wide / (wide - before);
        before = wide;
        most = fmax(most, w.max_speed);
        world_step(&w, 3);
    }
    assert_int_equal(count, 3);
    check_near(crossings[2] - crossings[0], period, 0.03 * period);
    check_below(most, 0.65); /* of the wave itself: 0.45 */
    world_end(&w);
}

/* Mode 2 of a flat drop, [Lamb, section 273]: omega^2 = 6 sigma / rho R^3. */
static void flat_drop_swings(const un_method *method)
{
    world w;
    char text[500];
    snprintf(text, sizeof text,
             "scene { method = '%s', domain = { size = {1, 1} }, detail = { coarsest = 8, finest = "
             "32 }," FLUID " liquid = { field(function(x, y) local a, b = x - 0.5, y - 0.5"
             " local r = math.sqrt(a * a + b * b) + 1e-9"
             " return r - 0.25 * (1 + 0.05 * (a * a - b * b) / (r * r)) end) } }",
             method->traits.name);
    world_begin(&w, method, CHECK_THREADS, text);
    double before = 0, crossings[8], period = 2 * UN_PI / sqrt(6 / (R * R * R));
    int count = 0;
    while (w.time < 1.6 * period && count < 8) {
        double t = w.time, wide = 0;
        for (int side = 0; side < 4; side++) {
            un_probe front = {.kind = UN_PROBE_FRONT, .axis = side / 2, .sign = side % 2 ? 1 : -1};
            wide += (side / 2 ? -1 : 1) * front.sign * w.method->probe(w.state, &front);
        }
        if (t > 0 && (wide > 0) != (before > 0))
            crossings[count++] = t - w.step.dt * wide / (wide - before);
        before = wide;
        world_step(&w, 3);
    }
    assert_true(count >= 3);
    if (getenv("VERBOSE")) printf("period %g of theory\n", (crossings[2] - crossings[0]) / period);
    check_near(2 * (crossings[2] - crossings[0]) / 2, period, 0.03 * period);
    world_end(&w);
}

static void a_flat_drop_swings(void **state)
{
    (void)state;
    flat_drop_swings(&un_method_uniform);
}

static void a_flat_drop_on_leaves_swings(void **state)
{
    (void)state;
    flat_drop_swings(&un_method_octree);
}

static void a_flat_warped_drop_swings(void **state)
{
    (void)state;
    flat_drop_swings(&un_method_warp);
}

/* A cap that begins at its contact angle, on a side or a solid, stays as it is. */
/* Of two angles, on a side and on a solid: 0 to 3. */
static void bead_keeps_its_angle(const un_method *method, int i)
{
    static const double angles[] = {60, 120};
    world w;
    char text[600];
    bool solid = i % 2;
    double theta = angles[i / 2] * UN_PI / 180, floor = solid ? 0.15 : 0, r = 0.22;
    snprintf(text, sizeof text,
             "scene { domain = { size = {1, 0.7}, contact_angle = %g }, detail = { finest = 48 "
             "}," FLUID " solids = { box { min = {-1, -1}, max = {2, %g}, contact_angle = %g } "
             "}, liquid = { sphere { center = {0.503, %.9g}, radius = %g } } }",
             solid ? 90 : angles[i / 2], solid ? floor : -0.5, angles[i / 2],
             floor - r * cos(theta), r);
    world_begin(&w, method, CHECK_THREADS, text);
    un_probe top = {.kind = UN_PROBE_FRONT, .axis = 1, .sign = 1};
    double begun = w.method->probe(w.state, &top);
    while (w.time < 0.5) world_step(&w, 0.5);
    if (getenv("VERBOSE"))
        printf("%g degrees%s: height %g cells off, fastest %g\n", angles[i / 2],
               solid ? ", solid" : "", 48 * (w.method->probe(w.state, &top) - begun), w.max_speed);
    /* half a cell: a change of the angle by 4 degrees */
    check_near(w.method->probe(w.state, &top), begun, 0.5 / 48);
    world_end(&w);
}

static void a_bead_keeps_its_angle(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) bead_keeps_its_angle(&un_method_uniform, i);
}

static void a_warped_bead_keeps_its_angle(void **state)
{
    (void)state;
    bead_keeps_its_angle(&un_method_warp, 1);
    bead_keeps_its_angle(&un_method_warp, 2);
}

/* A cap as flat as 30 degrees, 4.5 cells high, on a side, on a solid between cells and on one that
 * cuts them: no film runs out from its edge. */
static void a_flat_bead_stays_on_its_plate(void **state)
{
    (void)state;
    static const double floors[] = {0, 4.0 / 48, 0.1};
    for (int i = 0; i < 3; i++) {
        world w;
        char text[600];
        double floor = floors[i], r = 0.7;
        snprintf(text, sizeof text,
                 "scene { domain = { size = {1, 0.4}, contact_angle = %g }, detail = { finest = 48 "
                 "}," FLUID " solids = { box { min = {-1, -1}, max = {2, %.9g}, contact_angle = 30 "
                 "} }, liquid = { sphere { center = {0.503, %.9g}, radius = %g } } }",
                 i == 0 ? 30.0 : 90.0, i == 0 ? -0.5 : floor, floor - r * cos(UN_PI / 6), r);
        world_begin(&w, &un_method_uniform, CHECK_THREADS, text);
        un_probe top = {.kind = UN_PROBE_FRONT, .axis = 1, .sign = 1};
        double begun = w.method->probe(w.state, &top);
        while (w.time < 0.5) world_step(&w, 0.5);
        check_near(w.method->probe(w.state, &top), begun, 0.25 / 48);
        check_below(w.max_speed, 0.7); /* a film ran out at 1.2 to 26 */
        world_end(&w);
    }
}

/* The same in 3D on tets: a cap of 0.02 m3 on a side and on a solid that cuts its cells. */
static void a_bead_on_tets_keeps_its_angle(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;
        char text[700];
        double angle = i ? 120 : 60, c = cos(angle * UN_PI / 180), floor = i ? 0.1 : 0;
        double r = cbrt(3 * 0.02 / (UN_PI * (2 + c) * (1 - c) * (1 - c)));
        snprintf(text, sizeof text,
                 "scene { method = 'tet', domain = { size = {1, 0.75, 1}, contact_angle = %g }, "
                 "detail = { coarsest = 12, finest = 24 }," FLUID " solids = { box { min = {-1, "
                 "-1, -1}, max = {2, %g, 2}, contact_angle = %g } }, liquid = { sphere { center = "
                 "{0.503, %.9g, 0.497}, radius = %.9g } } }",
                 i ? 90 : angle, i ? floor : -0.5, angle, floor - r * c, r);
        world_begin(&w, &un_method_tet, CHECK_THREADS, text);
        un_probe top = {.kind = UN_PROBE_FRONT, .axis = 1, .sign = 1};
        double begun = w.method->probe(w.state, &top), sum = 0, count = 0;
        while (w.time < 0.15) {
            world_step(&w, 0.15);
            sum += w.method->probe(w.state, &top);
            count++;
        }
        check_near(sum / count, begun, 0.3 / 24);
        check_near(w.method->probe(w.state, &top), begun, 0.5 / 24);
        check_below(w.max_speed * sqrt(R), 1.5);
        world_end(&w);
    }
}

/* A bead as flat as 30 degrees, 3 cells high: drops that leave its edge stay on the floor. */
static void a_flat_bead_on_tets_sheds_little(void **state)
{
    (void)state;
    world w;
    char text[600];
    double c = cos(UN_PI / 6), r = 0.72;
    snprintf(text, sizeof text,
             "scene { domain = { size = {1, 0.375, 1}, contact_angle = 30 }, detail = { coarsest = "
             "16, finest = 32 }," FLUID
             " liquid = { sphere { center = {0.503, %.9g, 0.497}, radius = %g } } }",
             -r * c, r);
    world_begin(&w, &un_method_tet, CHECK_THREADS, text);
    while (w.time < 0.08) world_step(&w, 0.08);
    double share = (double)w.step.ballistic / (double)w.step.particles;
    if (getenv("VERBOSE")) printf("%g fly\n", share);
    check_below(share, 0.02);
    world_end(&w);
}

/* A flat puddle that should be a bead gathers at once: without tension nothing would move. */
static void a_square_becomes_round(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_uniform, CHECK_THREADS,
                "scene { domain = { size = {1, 1} }, detail = { finest = 32 }," FLUID
                " liquid = { box { min = {0.3, 0.3}, max = {0.7, 0.7} } } }");
    un_probe right = {.kind = UN_PROBE_FRONT, .axis = 0, .sign = 1};
    double begun = w.method->probe(w.state, &right);
    while (w.time < 0.08) world_step(&w, 0.08);
    assert_true(w.method->probe(w.state, &right) > begun + 0.01);
    world_end(&w);
}

static void tension_shortens_steps(void **state)
{
    (void)state;
    world w;
    world_begin(&w, &un_method_uniform, 1, flat_drop);
    double h = 1.0 / 32;
    check_near(w.method->step_limit(w.state), 3.5 * sqrt(h * h * h / (2 * UN_PI)), 1e-9);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_drop_rests),
        cmocka_unit_test(a_drop_rests),
        cmocka_unit_test(a_drop_on_tets_rests),
        cmocka_unit_test(a_flat_drop_swings),
        cmocka_unit_test(a_flat_drop_on_leaves_rests),
        cmocka_unit_test(a_drop_on_leaves_rests),
        cmocka_unit_test(a_flat_warped_drop_rests),
        cmocka_unit_test(a_warped_drop_rests),
        cmocka_unit_test(a_flat_warped_drop_swings),
        cmocka_unit_test(a_carried_drop_rests),
        cmocka_unit_test(a_carried_drop_swings),
        cmocka_unit_test(a_flat_drop_on_leaves_swings),
        cmocka_unit_test(a_bead_keeps_its_angle),
        cmocka_unit_test(a_warped_bead_keeps_its_angle),
        cmocka_unit_test(a_flat_bead_stays_on_its_plate),
        cmocka_unit_test(a_bead_on_tets_keeps_its_angle),
        cmocka_unit_test(a_flat_bead_on_tets_sheds_little),
        cmocka_unit_test(a_square_becomes_round),
        cmocka_unit_test(tension_shortens_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
