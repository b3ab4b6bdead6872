/* Promises of every method: vessels with thin walls that move, are poured into or come from a mesh
 * file, and paddles that scrape along walls.
 * test-labels: slow */
#include "promises/promise.h"

#define GRAVITY 9.81

static void all_inside(const world *w, bool (*holds)(un_vec3))
{
    const un_particles *p = w->method->particles ? w->method->particles(w->state) : NULL;
    for (int64_t q = 0; p && q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q);
        if (!holds(x)) fail_msg("a particle is at (%g, %g, %g)", x.x, x.y, x.z);
    }
}

/* ---- moving ---- */

/* Where a glass of radius 0.05 m over (0.1, 0.03, 0.1) has gone at time t of the scene below. */
static bool in_moving_glass(un_vec3 x, double t)
{
    double angle = 20 * sin(6 * t) * UN_PI / 180, c = cos(angle), s = sin(angle);
    double dx = x.x - 0.1, dy = x.y - 0.1 - 0.03 * sin(6 * t);
    double a = c * dx + s * dy, b = c * dy - s * dx;
    return hypot(a, x.z - 0.1) < 0.05 + 1e-6 && b > -0.07 - 1e-6;
}

/* Of a method without particles. */
static void surface_ends_in_walls(world *w, bool (*holds)(un_vec3, double))
{
    un_trimesh mesh;
    check_ok(w->ctx, w->method->surface(w->state, &mesh));
    for (int32_t v = 0; v < mesh.vertex_count; v++) {
        double d = INFINITY;
        un_bodies_nearest(un_method_bodies(w->state), mesh.position[v], &d);
        if (!holds(mesh.position[v], w->step.time)) check_below(d, 0.002);
    }
    un_trimesh_free(w->ctx, &mesh);
}

/* A glass is lifted and tipped to and fro: its liquid goes along, stays in it and is not squeezed.
 */
static void moving_glasses_hold_water(const un_method *method)
{
    world w;
    promise_begin(
        &w, method, CHECK_THREADS,
        "local w = 0.2 / 24 local glass = subtract { cylinder { from = {0.1, "
        "0.03 - w, 0.1}, to = {0.1, 0.14, 0.1}, radius = 0.05 + w }, cylinder { from = {0.1, 0.03, "
        "0.1}, to = {0.1, 0.2, 0.1}, radius = 0.05 } } scene { domain = { size = {0.2, 0.2, 0.2} "
        "}, detail = { coarsest = 6, finest = 24 }, liquid = { cylinder { from = {0.1, 0.03, 0.1}, "
        "to = {0.1, 0.08, 0.1}, radius = 0.05 } }, solids = { solid { glass, pose = function(t) "
        "return { by = {0, 0.03 * math.sin(6 * t), 0}, rotate = {0, 0, 20 * math.sin(6 * t)}, "
        "about = {0.1, 0.1, 0.1} } end } } }");
    world_run(&w, 0.4);
    check_below(w.max_speed, 2);
    check_below(w.max_volume_error, 0.02);
    const un_particles *p = method->particles ? method->particles(w.state) : NULL;
    for (int64_t q = 0; p && q < p->count; q++)
        assert_true(in_moving_glass(un_particle_position(p, q), w.step.time));
    if (!p) surface_ends_in_walls(&w, in_moving_glass);
    world_end(&w);
}

/* ---- poured into ---- */

/* A column of water falls into a thin glass. */
static void glasses_catch_water(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "local w = 0.012 local glass = subtract { cylinder { from = {0.12, 0.03 - w, "
                  "0.12}, to = {0.12, 0.16, 0.12}, radius = 0.08 + w }, cylinder { from = {0.12, "
                  "0.03, 0.12}, to = {0.12, 0.3, 0.12}, radius = 0.08 } } scene { domain = { size "
                  "= {0.24, 0.24, 0.24} }, detail = { coarsest = 5, finest = 20 }, liquid = { "
                  "cylinder { from = {0.12, 0.1, 0.12}, to = {0.12, 0.2, 0.12}, radius = 0.04 } }, "
                  "solids = { glass } }");
    double sum = 0; /* of the volume's error over time: a splash swings about what is there */
    for (int frame = 1; frame <= 10; frame++)
        while (frame / 24. - w.time > 1e-9) {
            world_step(&w, frame / 24.);
            sum += w.step.volume_error * w.step.dt;
        }
    check_below(w.max_speed, 4 * sqrt(GRAVITY * 0.2));
    check_below(fabs(sum) / w.time, 0.02);
    world_end(&w);
}

/* ---- from a mesh file ---- */

#define SECTORS 24

static void write_ring(FILE *file, double r, double y)
{
    for (int i = 0; i < SECTORS; i++)
        fprintf(file, "v %.9g %.9g %.9g\n", 0.12 + r * cos(2 * UN_PI * i / SECTORS), y,
                0.12 + r * sin(2 * UN_PI * i / SECTORS));
}

/* The glass as a turned profile: two points on the axis, rings of vertices between them. */
static void write_glass(const char *path, double wall)
{
    const double grow = 1 / cos(UN_PI / SECTORS); /* the flats touch the circle */
    const double ring[][2] = {{0.08 + wall, 0.04 - wall},
                              {0.08 + wall, 0.12},
                              {0.08 + wall, 0.2},
                              {0.08, 0.2},
                              {0.08, 0.12},
                              {0.08, 0.04}};
    const int rings = sizeof ring / sizeof *ring;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int r = 0; r < rings; r++) write_ring(file, grow * ring[r][0], ring[r][1]);
    fprintf(file, "v 0.12 %.9g 0.12\nv 0.12 0.04 0.12\n", 0.04 - wall);
    int below = rings * SECTORS + 1, above = below + 1;
    for (int i = 0; i < SECTORS; i++) {
        int j = (i + 1) % SECTORS, last = (rings - 1) * SECTORS;
        fprintf(file, "f %d %d %d\nf %d %d %d\n", below, i + 1, j + 1, above, last + j + 1,
                last + i + 1);
        for (int r = 0; r + 1 < rings; r++) {
            int a = r * SECTORS + 1, b = a + SECTORS;
            fprintf(file, "f %d %d %d %d\n", a + i, b + i, b + j, a + j);
        }
    }
    assert_int_equal(fclose(file), 0);
}

static bool in_glass(un_vec3 x)
{
    return hypot(x.x - 0.12, x.z - 0.12) < 0.08 / cos(UN_PI / SECTORS) + 1e-6 && x.y > 0.04 - 1e-6;
}

static void glasses_from_files_hold_water(const un_method *method)
{
    char path[64], text[512];
    world w;
    snprintf(path, sizeof path, "/tmp/undine_glass_%ld.obj", (long)getpid());
    write_glass(path, 0.012);
    snprintf(text, sizeof text,
             "scene { domain = { size = {0.24, 0.24, 0.24} }, detail = { coarsest = 5, finest = 20 "
             "}, liquid = { cylinder { from = {0.12, 0.04, 0.12}, to = {0.12, 0.13, 0.12}, radius "
             "= 0.085 } }, solids = { mesh { file = \"%s\" } } }",
             path);
    promise_begin(&w, method, CHECK_THREADS, text);
    unlink(path);
    world_run(&w, 0.3);
    check_below(w.step.max_speed, 0.02);
    check_below(fabs(w.step.volume_error), 0.01);
    all_inside(&w, in_glass);
    world_end(&w);
}

/* ---- in two dimensions too ---- */

static bool in_trough(un_vec3 x)
{
    double c = cos(25 * UN_PI / 180), s = sin(25 * UN_PI / 180);
    double a = c * (x.x - 0.12) + s * (x.y - 0.11), b = c * (x.y - 0.11) - s * (x.x - 0.12);
    return fabs(a) < 0.06 + 1e-6 && b > -0.06 - 1e-6;
}

static void troughs_hold_water(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "local function tub(d, top) return move { box { min = {-0.06 - d, -0.06 - d, "
                  "-1}, max = {0.06 + d, top, 1} }, by = {0.12, 0.11, 0}, rotate = { axis = {0, 0, "
                  "1}, angle = 25 } } end scene { domain = { size = {0.24, 0.24, 0.06} }, detail = "
                  "{ coarsest = 6, finest = 24 }, liquid = { intersect { tub(0, 0.2), box { min = "
                  "{0, 0, -1}, max = {0.24, 0.12, 1} } } }, solids = { subtract { tub(0.01, 0.07), "
                  "tub(0, 0.2) } } }");
    world_run(&w, 0.3);
    w.max_speed = 0;
    world_run(&w, 0.55); /* still at every moment */
    check_below(w.max_speed, 0.02);
    check_below(w.max_volume_error, 0.01);
    all_inside(&w, in_trough);
    world_end(&w);
}

/* ---- scraping ---- */

/* A paddle turns in a round tank, its tip at 2.8 m/s so many cells from the wall. */
static void scrape(const un_method *method, double gap)
{
    char text[800];
    world w;
    snprintf(text, sizeof text,
             "local tip = 0.45 - %g / 20 scene { domain = { size = {1, 0.4, 1} }, detail = { "
             "coarsest = 5, finest = 20 }, liquid = { box { min = {0, 0, 0}, max = {1, 0.2, 1} } "
             "}, solids = { subtract { box { min = {-1, -1, -1}, max = {2, 2, 2} }, cylinder { "
             "from = {0.5, -2, 0.5}, to = {0.5, 3, 0.5}, radius = 0.45 } }, solid { box { min = "
             "{0.5, -1, 0.45}, max = {0.5 + tip, 1, 0.55} }, pose = function(t) return { rotate = "
             "{0, 2.8 / tip * t * 180 / math.pi, 0}, about = {0.5, 0, 0.5} } end } } }",
             gap);
    promise_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 0.15);
    check_below(w.max_speed, 4 * (2.8 + sqrt(GRAVITY * 0.4)));
    check_below(w.max_volume_error, 0.1);
    world_end(&w);
}

static void paddles_scrape_walls(const un_method *method)
{
    scrape(method, 0);
    scrape(method, 0.5);
}

int main(void)
{
    static const promise promises[] = {
        {"moving_glasses_hold_water", moving_glasses_hold_water, method_parts_thin_walls, false},
        {"glasses_catch_water", glasses_catch_water, method_parts_thin_walls, false},
        {"glasses_from_files_hold_water", glasses_from_files_hold_water, method_parts_thin_walls,
         false},
        {"troughs_hold_water", troughs_hold_water, method_is_flat, true},
        {"paddles_scrape_walls", paddles_scrape_walls, NULL, false},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
