/* Waves that surface tension drives: their period, and threads that it breaks or holds. Without
 * gravity; density and tension are 1. */
#include "method/world.h"

#define FLUID " gravity = {0, 0, 0}, fluid = { density = 1, surface_tension = 1 },"

/* A standing wave as long as the domain, 32 cells: omega^2 = k^3 tanh(k depth). Its sides are
 * mirrors, as the surface meets them at right angles. */
static void wave_swings(const un_method *method, const char *size, int zeros)
{
    world w;
    char text[400];
    snprintf(text, sizeof text,
             "scene { domain = { size = {%s} }, detail = { coarsest = 16, finest = 32 }," FLUID
             " liquid = { field(function(x, y) return y - 0.4 - 0.02 * math.cos(2 * math.pi * x) "
             "end) } }",
             size);
    world_begin(&w, method, CHECK_THREADS, text);
    un_probe middle = {.kind = UN_PROBE_HEIGHT, .at = {0.5, 0, 0.06}}, end = middle;
    end.at.x = 0.02;
    double k = 2 * UN_PI, period = k / sqrt(k * k * k * tanh(0.4 * k)), before = 0, zero[3];
    int count = 0;
    while (w.time < 1.5 * period && count < zeros) {
        double high = w.method->probe(w.state, &middle) - w.method->probe(w.state, &end);
        if (w.time > 0 && (high > 0) != (before > 0))
            zero[count++] = w.time - w.step.dt * high / (high - before);
        before = high;
        world_step(&w, 2);
    }
    assert_int_equal(count, zeros);
    if (getenv("VERBOSE"))
        printf("period %g of theory\n", 2 * (zero[zeros - 1] - zero[0]) / (zeros - 1) / period);
    check_near(2 * (zero[zeros - 1] - zero[0]) / (zeros - 1), period, 0.02 * period);
    world_end(&w);
}

static void a_flat_wave_swings(void **state)
{
    (void)state;
    wave_swings(&un_method_uniform, "1, 0.75", 3);
}

static void a_flat_warped_wave_swings(void **state)
{
    (void)state;
    wave_swings(&un_method_warp, "1, 0.75", 3);
}

static void a_wave_on_tets_swings(void **state)
{
    (void)state;
    wave_swings(&un_method_tet, "1, 0.75, 0.125", 2);
}

/* Half a wave on a thread of radius a between two mirrors. Its kinetic energy at a time and at half
 * of it. */
static void run_thread(const un_method *method, double ka, double time, double energy[2])
{
    world w;
    char text[500];
    double a = 0.11, length = UN_PI * a / ka;
    snprintf(text, sizeof text,
             "scene { domain = { size = {%.9g, 0.4, 0.4} }, detail = { coarsest = 12, finest = %d "
             "}," FLUID " liquid = { field(function(x, y, z) return math.sqrt((y - 0.2)^2 + (z - "
             "0.2)^2) - %g * (1 + 0.05 * math.cos(math.pi * x / %.9g)) end) } }",
             length, (int)round(fmax(length, 0.4) * 45), a, length);
    world_begin(&w, method, CHECK_THREADS, text);
    while (w.time < time / 2 - 1e-9) world_step(&w, time / 2);
    energy[0] = w.step.energy_kinetic;
    while (w.time < time - 1e-9) world_step(&w, time);
    energy[1] = w.step.energy_kinetic;
    world_end(&w);
}

/* From rest a mode grows as cosh(s t), and its energy as sinh(s t)^2. The fastest has k a = 0.697
 * and s = 0.3433 sqrt(sigma / rho a^3) [Rayleigh 1878]. sinh(x) / sinh(x / 2) = 2 cosh(x / 2). */
static void thread_breaks(const un_method *method)
{
    double energy[2], time = 0.18;
    run_thread(method, 0.697, time, energy);
    double s = 2 * acosh(0.5 * sqrt(energy[1] / energy[0])) / time;
    double exact = 0.3433 / sqrt(0.11 * 0.11 * 0.11);
    check_near(s, exact, 0.1 * exact);
}

static void threads_break_at_their_rate(void **state)
{
    (void)state;
    thread_breaks(&un_method_uniform);
    thread_breaks(&un_method_tet);
}

/* Waves shorter than the thread's circumference swing: k a = 1.3 comes to rest every 0.16 s. */
static void short_waves_do_not_break_threads(void **state)
{
    (void)state;
    double energy[2];
    run_thread(&un_method_uniform, 1.3, 0.162, energy);
    check_below(energy[1], 0.3 * energy[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_wave_swings),
        cmocka_unit_test(a_flat_warped_wave_swings),
        cmocka_unit_test(a_wave_on_tets_swings),
        cmocka_unit_test(threads_break_at_their_rate),
        cmocka_unit_test(short_waves_do_not_break_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
