/* Bodies that the liquid moves, without liquid: mass, motion, contacts. */
#include "check.h"

#include "bodies/bodies.h"
#include "scene/files.h"

#define HEAD "method = \"uniform\", liquid = { box { min = {0, 0, 0}, max = {.1, .1, .1} } }"
#define FLAT                                                                                       \
    "method = \"uniform\", domain = { size = {1, 1} }, liquid = { box { min = {0, 0}, max = {.1, " \
    ".1} } }"

typedef struct world {
    un_context *ctx;
    un_scene *scene;
    un_bodies *bodies;
    double time, dt; /* dt: of the last step */
} world;

static void begin(world *w, const char *text)
{
    *w = (world){.ctx = check_context()};
    w->scene = load_valid(w->ctx, text);
    check_ok(w->ctx, un_bodies_create(w->ctx, w->scene, &w->bodies));
}

static void end(world *w)
{
    un_bodies_destroy(w->bodies);
    un_scene_destroy(w->scene);
    check_context_end(w->ctx);
}

static void step(world *w, double dt)
{
    check_ok(w->ctx, un_bodies_update(w->bodies, w->time, dt));
    un_bodies_begin(w->bodies, w->scene->def.gravity, 0.5 * (w->dt + dt), dt);
    check_ok(w->ctx, un_bodies_touch(w->bodies, dt));
    un_bodies_advance(w->bodies, dt);
    w->time += dt;
    w->dt = dt;
}

static void run(world *w, double until, double dt)
{
    while (w->time < until - 1e-9) step(w, dt);
}

static un_vec3 centre(const world *w, int32_t b)
{
    const un_body *body = &w->bodies->body[b];
    return un_pose_apply(&body->to, body->centre);
}

/* ---- mass ---- */

static void check_mass(const char *shape, double volume, un_vec3 at, un_vec3 moments)
{
    world w;
    char text[512];
    snprintf(text, sizeof text, "scene { " HEAD ", solids = { solid { %s, density = 100 } } }",
             shape);
    begin(&w, text);
    const un_body *b = &w.bodies->body[0];
    check_near(b->mass, 100 * volume, 100 * volume * 2e-3);
    check_near(un_length(un_sub(b->centre, at)), 0, 1e-3);
    const double wanted[3] = {moments.x, moments.y, moments.z};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            check_near(b->inertia[i][j], i == j ? 100 * volume * wanted[i] : 0,
                       3e-3 * 100 * volume * wanted[0]);
    end(&w);
}

static void masses_are_those_of_the_formulas(void **state)
{
    (void)state;
    check_mass("box { min = {.2, .3, .4}, max = {.4, .7, .5} }", 0.008, un_v3(.3, .5, .45),
               un_v3((.16 + .01) / 12, (.04 + .01) / 12, (.04 + .16) / 12));
    check_mass("sphere { center = {.4, .5, .6}, radius = .2 }", 4 * UN_PI / 3 * 0.008,
               un_v3(.4, .5, .6), un_v3(.016, .016, .016));
    check_mass("cylinder { from = {.5, .5, .3}, to = {.5, .5, .7}, radius = .1 }",
               UN_PI * 0.01 * 0.4, un_v3(.5, .5, .5),
               un_v3((.03 + .16) / 12, (.03 + .16) / 12, .005));
    /* a half ball: 3/8 of the radius off its plane */
    double r = .2, about = 0.4 - 9.0 / 64;
    check_mass("subtract { sphere { center = {.5, .5, .5}, radius = .2 }, box { min = {0, .5, 0}, "
               "max = {1, 1, 1} } }",
               2 * UN_PI / 3 * r * r * r, un_v3(.5, .5 - 3 * r / 8, .5),
               un_v3(about * r * r, .4 * r * r, about * r * r));
}

static void flat_bodies_weigh_by_area(void **state)
{
    (void)state;
    world w;
    begin(&w, "scene { " FLAT ", solids = { sphere { center = {.5, .5}, radius = .2, density = 10 "
              "}, box { min = {.1, .1}, max = {.2, .3}, density = 10, spin = 2 } } }");
    const un_body *disc = &w.bodies->body[0], *box = &w.bodies->body[1];
    check_near(disc->mass, 10 * UN_PI * .04, 1e-3);
    check_near(disc->inertia[2][2], 10 * UN_PI * .04 * .02, 1e-5);
    check_near(box->mass, 10 * .02, 1e-4);
    check_near(box->inertia[2][2], 10 * .02 * .05 / 12, 1e-5);
    check_near(box->spin.z, 2, 0);
    end(&w);
}

/* ---- motion ---- */

static void bodies_fall_and_spin_freely(void **state)
{
    (void)state;
    world w;
    begin(&w, "scene { " HEAD ", solids = { box { min = {.4, .6, .4}, max = {.5, .9, .6}, density "
              "= 100, velocity = {.3, 1, 0}, spin = {4, 1, 2} }, sphere { center = {.2, .5, .2}, "
              "radius = .1, density = 5, hold = \"y rx\", velocity = {.1, 1, 0}, spin = {1, 1, 0} "
              "} } }");
    const un_body *b = &w.bodies->body[0];
    un_vec3 from = centre(&w, 0), l[2];
    for (int k = 0; k < 2; k++) {
        un_pose pose = b->to;
        un_vec3 s = un_pose_unrotate(&pose, b->spin);
        const double v[3] = {s.x, s.y, s.z};
        double m[3] = {0};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) m[i] += b->inertia[i][j] * v[j];
        l[k] = un_pose_rotate(&pose, un_v3(m[0], m[1], m[2]));
        if (k == 0) run(&w, 0.25, 0.01);
    }
    check_near(un_length(un_sub(l[1], l[0])), 0, 1e-12 * un_length(l[0]));
    un_vec3 wanted = un_add(from, un_v3(.3 * .25, 1 * .25 - 9.81 * .25 * .25 / 2, 0));
    check_near(un_length(un_sub(centre(&w, 0), wanted)), 0, 1e-12);
    const un_body *held = &w.bodies->body[1];
    check_near(centre(&w, 1).y, held->centre.y, 1e-15);
    check_near(centre(&w, 1).x, held->centre.x + .025, 1e-12);
    check_near(held->spin.x, 0, 0);
    check_near(held->spin.y, 1, 1e-9);
    end(&w);
}

/* ---- contacts ---- */

static void stacks_of_five_boxes_rest(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++)
        for (int k = flat ? 0 : 2; k < 3; k++) {
            world w;
            const double steps[] = {1.0 / 240, 1.0 / 96, 1.0 / 48};
            begin(&w, flat ? "scene { " FLAT ", solids = (function() local s = {} for i = 1, 5 do "
                             "s[i] = box { min = {.4, .15 * i - .15}, max = {.55, .15 * i}, "
                             "density = 300 } end return s end)() }"
                           : "scene { " HEAD ", solids = (function() local s = {} for i = 1, 5 do "
                             "s[i] = box { min = {.4, .15 * i - .15, .4}, max = {.55, .15 * i, "
                             ".55}, density = 300 } end return s end)() }");
            run(&w, 1, steps[k]);
            for (int32_t b = 0; b < 5; b++) {
                const un_body *body = &w.bodies->body[b];
                check_near(un_length(un_sub(centre(&w, b), body->centre)), 0, 0.004);
                check_near(un_length(body->velocity), 0, 0.002);
            }
            end(&w);
        }
}

static void nothing_passes_through_anything(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        world w;
        const double steps[] = {0.001, 0.01, 0.04};
        begin(&w, k < 3 ? "scene { " HEAD ", solids = { box { min = {.5, 0, 0}, max = {.505, 1, 1} "
                          "}, box { min = {.2, .45, .45}, max = {.22, .55, .55}, density = 300, "
                          "velocity = {80, 3, 0}, spin = {0, 9, 30}, restitution = .5 }, sphere { "
                          "center = {.8, .5, .5}, radius = .02, density = 9, velocity = {-200, 0, "
                          "20} } } }"
                        : "scene { " FLAT ", solids = { box { min = {.5, 0}, max = {.505, 1} "
                          "}, box { min = {.2, .45}, max = {.22, .55}, density = 300, "
                          "velocity = {80, 3}, spin = 30, restitution = .5 }, sphere { "
                          "center = {.8, .5}, radius = .02, density = 9, velocity = {-200, 20} } } "
                          "}");
        while (w.time < 50 * steps[k % 3]) {
            step(&w, steps[k % 3]);
            un_vec3 a = centre(&w, 1), b = centre(&w, 2);
            assert_true(a.x > 0 && a.x < 0.5 && b.x > 0.5 && b.x < 1);
            assert_true(a.y > 0 && a.y < 1 && b.y > 0 && b.y < 1 && a.z >= 0 && a.z < 1);
        }
        end(&w);
    }
}

static void balls_bounce_as_high_as_restitution_says(void **state)
{
    (void)state;
    world w;
    begin(&w, "scene { " HEAD ", solids = { sphere { center = {.5, .7, .5}, radius = .1, density = "
              "100, restitution = .8 }, sphere { center = {.2, .7, .2}, radius = .1, density = 100 "
              "} } }");
    double high = 0, dead = 0;
    bool down = false;
    while (w.time < 0.85) {
        step(&w, 1.0 / 240);
        down = down || w.bodies->body[0].velocity.y > 0;
        if (down) high = fmax(high, centre(&w, 0).y);
        if (down) dead = fmax(dead, centre(&w, 1).y);
    }
    check_near(high, 0.1 + 0.64 * 0.6, 0.02);
    check_near(dead, 0.1, 0.002);
    end(&w);
}

/* On a slope of 30 degrees boxes hold if the friction exceeds tan 30 = 0.577. */
static void friction_holds_on_slopes(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        world w;
        char text[512];
        double grip = k ? 0.3 : 0.7;
        snprintf(text, sizeof text,
                 "scene { " HEAD ", gravity = {-4.905, -8.4957, 0}, solids = { box { min = {.8, 0, "
                 ".4}, max = {.9, .1, .5}, density = 300, friction = %g } } }",
                 grip);
        begin(&w, text);
        run(&w, 0.4, 1.0 / 120);
        double way = 0.5 * (4.905 - grip * 8.4957) * 0.16;
        check_near(centre(&w, 0).x, 0.85 - (k ? way : 0), k ? 0.02 * way : 0.001);
        check_near(centre(&w, 0).y, 0.05, 0.001);
        end(&w);
    }
}

static void collisions_keep_the_momentum(void **state)
{
    (void)state;
    world w;
    begin(&w, "scene { " HEAD ", gravity = {0, 0, 0}, solids = { sphere { center = {.3, .5, .5}, "
              "radius = .1, density = 100, velocity = {2, 0, 0}, restitution = 1 }, box { min = "
              "{.6, .42, .45}, max = {.7, .62, .6}, density = 50, spin = {0, 1, 2} } } }");
    const un_body *a = &w.bodies->body[0], *b = &w.bodies->body[1];
    un_vec3 p = un_scale(a->velocity, a->mass);
    run(&w, 0.15, 0.01);
    un_vec3 after = un_add(un_scale(a->velocity, a->mass), un_scale(b->velocity, b->mass));
    assert_true(b->velocity.x > 0.5);
    check_near(un_length(un_sub(after, p)), 0, 1e-12 * un_length(p));
    end(&w);
}

/* Balls, discs and cylinders are round about axes, however they lie; boxes are not. */
static void round_bodies_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *domain;
        un_vec3 push; /* what is left of the spin {1, 2, 3} */
    } cases[] = {
        {"sphere { center = {.5, .5, .5}, radius = .2", "1, 1, 1", {0, 0, 0}},
        {"cylinder { from = {.3, .5, .5}, to = {.7, .5, .5}, radius = .1", "1, 1, 1", {0, 2, 3}},
        {"cylinder { from = {.3, .3, .5}, to = {.7, .7, .5}, radius = .1", "1, 1, 1", {-.5, .5, 3}},
        {"box { min = {.4, .4, .4}, max = {.6, .6, .6}", "1, 1, 1", {1, 2, 3}},
        {"sphere { center = {.5, .5}, radius = .2", "1, 1", {1, 2, 0}},
        {"box { min = {.4, .4}, max = {.6, .6}", "1, 1", {1, 2, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        char text[400];
        snprintf(text, sizeof text,
                 "scene { method = 'uniform', domain = { size = {%s} }, liquid = { box { min = {0, "
                 "0, 0}, max = {.1, .1, .1} } }, solids = { %s, density = 300 } } }",
                 cases[i].domain, cases[i].shape);
        begin(&w, text);
        un_vec3 left = un_body_pushing_turn(&w.bodies->body[0], un_v3(1, 2, 3));
        check_near(un_length(un_sub(left, cases[i].push)), 0, 1e-6);
        end(&w);
    }
}

static void states_are_saved_bit_for_bit(void **state)
{
    (void)state;
    world w, v;
    const char *text = "scene { " HEAD ", solids = (function() local s = {} for i = 1, 4 do "
                       "s[i] = box { min = {.3 + .03 * i, .2 * i - .15, .4}, max = {.5 + .03 * i, "
                       ".2 * i, .55}, density = 300, restitution = .3 } end return s end)() }";
    begin(&w, text);
    begin(&v, text);
    run(&w, 0.5, 0.01);
    int64_t count = un_bodies_save(w.bodies, NULL);
    double *numbers = un_alloc(w.ctx, (size_t)count, sizeof *numbers);
    un_bodies_save(w.bodies, numbers);
    bool sound;
    check_ok(v.ctx, un_bodies_load(v.bodies, numbers, count, &sound));
    assert_true(sound);
    v.time = w.time;
    v.dt = w.dt;
    run(&w, 0.8, 0.01);
    run(&v, 0.8, 0.01);
    for (int32_t b = 0; b < 4; b++) {
        assert_memory_equal(&w.bodies->body[b].to, &v.bodies->body[b].to, sizeof(un_pose));
        assert_memory_equal(&w.bodies->body[b].spin, &v.bodies->body[b].spin, sizeof(un_vec3));
    }
    numbers[5] = NAN;
    check_ok(v.ctx, un_bodies_load(v.bodies, numbers, count, &sound));
    assert_false(sound);
    check_ok(v.ctx, un_bodies_load(v.bodies, numbers, count - 1, &sound));
    assert_false(sound);
    un_free(w.ctx, numbers);
    end(&w);
    end(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masses_are_those_of_the_formulas),
        cmocka_unit_test(flat_bodies_weigh_by_area),
        cmocka_unit_test(bodies_fall_and_spin_freely),
        cmocka_unit_test(stacks_of_five_boxes_rest),
        cmocka_unit_test(nothing_passes_through_anything),
        cmocka_unit_test(balls_bounce_as_high_as_restitution_says),
        cmocka_unit_test(friction_holds_on_slopes),
        cmocka_unit_test(collisions_keep_the_momentum),
        cmocka_unit_test(round_bodies_are_known),
        cmocka_unit_test(states_are_saved_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
