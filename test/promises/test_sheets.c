/* Promises of every method with particles: sheets thinner than a cell hold together, and nothing
 * outruns the fall that drives it. */
#include "promises/promise.h"

static bool has_particles(const un_method *method)
{
    return method->particles != NULL;
}

/* Points of a ring around x = z = 0.5, evenly spread. */
#define POINTS 1000
typedef struct ring {
    double x[POINTS], z[POINTS];
    bool seen[POINTS];
} ring;

static void make_ring(ring *r, double radius, double width)
{
    for (int32_t n = 0; n < POINTS; n++) {
        double at = radius + width * (fmod(n * 0.7548776662, 1) - 0.5);
        double angle = 2 * UN_PI * fmod(n * 0.5698402910, 1);
        r->x[n] = 0.5 + at * cos(angle);
        r->z[n] = 0.5 + at * sin(angle);
        r->seen[n] = false;
    }
}

/* Share of the ring that the surface covers, seen along y. */
static double covered(const un_trimesh *mesh, double radius, double width)
{
    ring r;
    int32_t count = 0;
    make_ring(&r, radius, width);
    for (int64_t t = 0; t < mesh->triangle_count; t++) {
        un_vec3 x[3];
        for (int c = 0; c < 3; c++) x[c] = mesh->position[mesh->triangle[t][c]];
        double away = hypot(x[0].x - 0.5, x[0].z - 0.5);
        if (fabs(away - radius) > width + 0.1) continue;
        double lo = fmin(x[0].x, fmin(x[1].x, x[2].x)), hi = fmax(x[0].x, fmax(x[1].x, x[2].x));
        for (int32_t n = 0; n < POINTS; n++) {
            int left = 0, right = 0;
            if (r.seen[n] || r.x[n] < lo || r.x[n] > hi) continue;
            for (int c = 0; c < 3; c++) {
                un_vec3 a = x[c], b = x[(c + 1) % 3];
                double side = (b.x - a.x) * (r.z[n] - a.z) - (b.z - a.z) * (r.x[n] - a.x);
                left += side >= 0;
                right += side <= 0;
            }
            r.seen[n] = left == 3 || right == 3;
            count += r.seen[n];
        }
    }
    return (double)count / POINTS;
}

/* A jet meets a round plate and spreads as a sheet: half a cell thick at r = 0.225, a third at
 * 0.34, a quarter at 0.36. The surface shows it without holes. `make validate` holds more, at 64
 * cells. */
static void sheets_stay_whole(const un_method *method)
{
    world w;
    un_trimesh mesh;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {1, 0.5, 1}, open = {'left', 'right', 'front', 'back'}"
                  " }, detail = { coarsest = 8, finest = 32 }, gravity = {0, 0, 0}, solids = {"
                  " cylinder { from = {0.5, 0.2, 0.5}, to = {0.5, 0.24, 0.5}, radius = 0.14 } },"
                  " sources = { emitter { shape = cylinder { from = {0.5, 0.33, 0.5},"
                  " to = {0.5, 0.37, 0.5}, radius = 0.075 }, velocity = {0, -2, 0} } } }");
    world_run(&w, 10.0 / 24);
    check_ok(w.ctx, method->surface(w.state, &mesh));
    check_below(0.99, covered(&mesh, 0.18, 1.0 / 32));
    check_below(0.98, covered(&mesh, 0.27, 1.0 / 32));
    check_below(0.95, covered(&mesh, 0.36, 1.0 / 32));
    un_trimesh_free(w.ctx, &mesh);
    world_end(&w);
}

/* A dam breaks around objects with gaps below and between them. Energy allows sqrt(2 g H), and a
 * jet in a corner somewhat more; particles pinched in a gap must not gather speed. The surface of
 * the splash has the volume of its particles. */
static void splashes_keep_speed_and_volume(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {1, 1, 0.5} }, detail = { coarsest = 8, finest = 24 },"
                  " liquid = { box { min = {0, 0, 0}, max = {0.3058, 0.5, 0.5} } },"
                  " solids = { sphere { center = {0.55, 0.07, 0.25}, radius = 0.09 },"
                  " torus { center = {0.75, 0.06, 0.2}, radius = 0.1, tube = 0.03 },"
                  " box { min = {0.6, 0, 0.35}, max = {0.68, 0.06, 0.43} } } }");
    world_run(&w, 0.6);
    check_below(w.max_speed, 3 * sqrt(9.81 * 0.5));
    un_trimesh mesh;
    check_ok(w.ctx, method->surface(w.state, &mesh));
    double held = un_particles_volume(w.ctx, method->particles(w.state));
    /* where the method has lost volume, so has its surface */
    check_near(un_surface_volume(&mesh) / held, 1, 0.015 + fabs(w.step.volume_error));
    un_trimesh_free(w.ctx, &mesh);
    promise_inside(&w);
    world_end(&w);
}

int main(void)
{
    static const promise promises[] = {
        {"sheets_stay_whole", sheets_stay_whole, has_particles, false},
        {"splashes_keep_speed_and_volume", splashes_keep_speed_and_volume, has_particles, false},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
