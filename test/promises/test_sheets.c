/* Promises of every method with particles: sheets thinner than a cell hold together, and nothing
 * outruns the fall that drives it. */
#include "promises/promise.h"

static bool has_particles(const un_method *method)
{
    return method->particles != NULL;
}

/* Share of a ring around x = z = 0.5 from which the nearest particle, seen along y, is farther than
 * `reach`. */
static double holes(const world *w, double inner, double outer, double reach)
{
    const un_particles *p = w->method->particles(w->state);
    int32_t empty = 0, count = 500;
    for (int32_t n = 0; n < count; n++) {
        double share = un_random((uint64_t)n, 1), angle = 2 * UN_PI * un_random((uint64_t)n, 2);
        double r = sqrt(inner * inner + share * (outer * outer - inner * inner));
        double x = 0.5 + r * cos(angle), z = 0.5 + r * sin(angle), least = INFINITY;
        for (int32_t q = 0; q < p->count; q++)
            least = fmin(least, hypot(p->x[0][q] - x, p->x[2][q] - z));
        empty += least > reach;
    }
    return (double)empty / count;
}

/* A jet meets a round plate and spreads as a sheet, from two fifths to a quarter of a cell thick in
 * the ring. solver.sheets closes at least half of the holes that it would have. */
static void sheets_stay_whole(const un_method *method)
{
    double found[2];
    for (int on = 0; on < 2; on++) {
        char text[640];
        world w;
        snprintf(text, sizeof text,
                 "scene { domain = { size = {1, 0.5, 1}, open = {'left', 'right', 'front', 'back'}"
                 " }, detail = { coarsest = 8, finest = 32 }, gravity = {0, 0, 0}, solids = {"
                 " cylinder { from = {0.5, 0.2, 0.5}, to = {0.5, 0.24, 0.5}, radius = 0.14 } },"
                 " sources = { emitter { shape = cylinder { from = {0.5, 0.33, 0.5},"
                 " to = {0.5, 0.37, 0.5}, radius = 0.075 }, velocity = {0, -2, 0} } },"
                 " solver = { sheets = %d } }",
                 on);
        promise_begin(&w, method, 2, text);
        world_run(&w, 10.0 / 24);
        found[on] = holes(&w, 0.28, 0.45, 0.6 / 32);
        world_end(&w);
    }
    check_below(0.02, found[0]);
    check_below(found[1], 0.5 * found[0]);
}

/* A dam breaks around objects with gaps below and between them. Energy allows sqrt(2 g H), and a
 * jet in a corner somewhat more; particles pinched in a gap must not gather speed. */
static void nothing_outruns_the_fall(const un_method *method)
{
    world w;
    promise_begin(&w, method, 2,
                  "scene { domain = { size = {1, 1, 0.5} }, detail = { coarsest = 8, finest = 24 },"
                  " liquid = { box { min = {0, 0, 0}, max = {0.3058, 0.5, 0.5} } },"
                  " solids = { sphere { center = {0.55, 0.07, 0.25}, radius = 0.09 },"
                  " torus { center = {0.75, 0.06, 0.2}, radius = 0.1, tube = 0.03 },"
                  " box { min = {0.6, 0, 0.35}, max = {0.68, 0.06, 0.43} } } }");
    world_run(&w, 0.6);
    check_below(w.max_speed, 4 * sqrt(9.81 * 0.5));
    promise_inside(&w);
    world_end(&w);
}

int main(void)
{
    static const promise promises[] = {
        {"sheets_stay_whole", sheets_stay_whole, has_particles, false},
        {"nothing_outruns_the_fall", nothing_outruns_the_fall, has_particles, false},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
