/* Promises of every method: a scene looks the same at any size, in its own time. No tuned constant
 * is in metres or seconds of its own. */
#include "promises/promise.h"

#define STEPS 16
#define LENGTH 1024.0 /* 4^5, so that times scale by 2^5: exact in binary */
#define TIME 32.0

/* A dam that breaks over a sill, in a domain `length` m long. */
static void begin(world *w, const un_method *method, double length)
{
    char text[512];
    snprintf(text, sizeof text,
             "local l = %.17g\nscene { domain = { size = {l, l, l / 4} },"
             " detail = { coarsest = 4, finest = 12 },"
             " liquid = { box { min = {0, 0, -l}, max = {l / 2, l / 2, l} } },"
             " solids = { box { min = {0.75 * l, -l, -l}, max = {0.875 * l, l / 8, l} } } }",
             length);
    promise_begin(w, method, CHECK_THREADS, text);
}

/* 1 m beside 1 km and 1 mm: the same but for exponents, and for rounding in some solvers. */
static void any_size_is_the_same(const un_method *method)
{
    for (int small = 0; small < 2; small++) {
        world w, other;
        double length = small ? 1 / LENGTH : LENGTH, time = small ? 1 / TIME : TIME;
        begin(&w, method, 1);
        begin(&other, method, length);
        for (int step = 0; step < STEPS; step++) {
            world_step(&w, 1.5);
            world_step(&other, 1.5 * time);
            check_near(other.time / time, w.time, 1e-10);
        }
        assert_true(w.max_speed > 1);
        check_near(other.step.volume_error, w.step.volume_error, 1e-10);
        assert_int_equal(other.step.particles, w.step.particles);
        const un_particles *p = method->particles ? method->particles(w.state) : NULL;
        const un_particles *q = p ? method->particles(other.state) : NULL;
        for (int64_t i = 0; p && i < p->count; i++)
            for (int a = 0; a < 3; a++) {
                check_near(q->x[a][i] / length, p->x[a][i], 1e-10);
                check_near(q->v[a][i] * time / length, p->v[a][i], 1e-10);
            }
        world_end(&w);
        world_end(&other);
    }
}

int main(void)
{
    static const promise promises[] = {
        {"any_size_is_the_same", any_size_is_the_same, NULL, true},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
