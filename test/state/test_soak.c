/* A sloshing tank with an emitter and a drain in balance, for many steps: memory stays, the ledger
 * of volume agrees with the particles, a step takes as long at the end as it did at first.
 * `test_state soak all` takes 10,000 steps. test-labels: slow */
#include <time.h>

#include "promises/promise.h"

static int step_count = 200;

static const char tank[] =
    "scene { domain = { size = {1, 0.6, 0.4} },\n"
    "detail = { coarsest = 5, finest = 10 }, frames = { count = 9, rate = 24 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.35, 0.4} },\n"
    "  box { min = {0.5, 0, 0}, max = {1, 0.2, 0.4} } },\n"
    "solids = { solid { box { min = {0.45, 0, 0.1}, max = {0.55, 0.12, 0.3} }, pose = function(t)\n"
    "  return { by = {0.2 * math.sin(5 * t), 0, 0} } end } },\n"
    "sources = { emitter { shape = box { min = {0, 0.45, 0.1}, max = {0.1, 0.55, 0.3} },\n"
    "    velocity = {0.2, 0, 0} },\n"
    "  drain { shape = box { min = {0.7, 0.28, 0}, max = {1, 0.6, 0.4} } } } }\n";

/* What the ledger expects, and what has come and gone. */
static double ledger(const world *w, double *throughput)
{
    un_state s;
    double volumes[4];
    un_state_init(&s, w->ctx);
    check_ok(w->ctx, w->method->save(w->state, &s));
    check_ok(w->ctx, un_state_take(&s, "sources.ledger", volumes, 4, 8));
    un_state_free(&s);
    *throughput = volumes[1] + volumes[2];
    return volumes[0] + volumes[1] - volumes[2];
}

static double held(const world *w)
{
    const un_particles *p = w->method->particles(w->state);
    double sum = 0;
    for (int32_t q = 0; q < p->count; q++) sum += p->volume[q];
    return sum;
}

static void soak(const un_method *method)
{
    world w;
    promise_begin(&w, method, 1, tank);
    double worst = 0, throughput = 0, seconds[2] = {0, 0}, particles[2] = {0, 0}, error = 0;
    size_t used[2] = {0, 0};
    int counts[2] = {0, 0};
    for (int step = 0; step < step_count; step++) {
        clock_t clock_before = clock();
        world_step(&w, 1e6);
        double took = (double)(clock() - clock_before) / CLOCKS_PER_SEC;
        int part = 5 * step / step_count; /* the second fifth against the last */
        if (part == 1 || part == 4) {
            seconds[part == 4] += took;
            particles[part == 4] += (double)w.step.particles;
            counts[part == 4]++;
            if (un_context_bytes(w.ctx) > used[part == 4])
                used[part == 4] = un_context_bytes(w.ctx);
        }
        error = fmax(error, fabs(w.step.volume_error));
        double expected = ledger(&w, &throughput);
        double off = method->particles ? fabs(expected - held(&w)) : 0;
        worst = fmax(worst, off / fmax(throughput, 1e-3));
    }
    for (int i = 0; i < 2; i++) seconds[i] /= counts[i], particles[i] /= counts[i];
    printf(
        "%s: %d steps, %.3g s simulated, %.3g m3 came and went; ledger off by %.2g of it, volume "
        "by %.2g %% at most; %.1f and %.1f kB; %.0f and %.0f particles; %.3g and %.3g ms a step\n",
        method->traits.name, step_count, w.time, throughput, worst, 100 * error, (double)used[0] / 1e3,
        (double)used[1] / 1e3, particles[0], particles[1], 1e3 * seconds[0], 1e3 * seconds[1]);
    check_below(worst, 1e-9);
    if (step_count >= 2000) {
        check_below((double)used[1], 1.1 * (double)used[0]);
        check_below(seconds[1] / particles[1], 1.25 * seconds[0] / particles[0]);
        assert_true(particles[1] < 1.3 * particles[0]);
    }
    world_end(&w);
}

static const promise promises[] = {{"lasts", soak, NULL, false}};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "all") == 0) step_count = 10000;
    return promises_run(promises, 1, NULL, NULL);
}
