/* test-labels: timing
 * What particles of many sizes cost. Prints figures; asserts only what any machine should manage,
 * busy or not. */
#include "swarm.h"

#include <time.h>

/* Of this process, so that others on the machine do not count; two threads share it. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 0.5 * ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
}

static double even(un_vec3 x)
{
    (void)x;
    return 1.0 / 64;
}
/* From 1/512 at a point to 1/8, over the octree's levels as close as balance allows. */
static double graded(un_vec3 x)
{
    return fmin(1.0 / 8, 1.0 / 700 + 0.17 * un_length(un_sub(x, un_v3(0.3, 0.6, 0.4))));
}
/* Fine along a surface, coarse in the depth. */
static double deep(un_vec3 x)
{
    return 1.0 / 256 + 0.5 * fabs(x.y - 0.5);
}

static void measure(const char *name, int32_t level_max, leaf_size *wanted)
{
    swarm s;
    swarm_begin(&s, 2);
    tank_build(&s.tank);
    swarm_seed(&s, level_max, wanted, tank_box(&s.tank, un_v3(-1, -1, -1), un_v3(2, 0.8, 2)));
    swarm_sort(&s, ldexp(1, -level_max));
    un_particles *p = &s.p;
    float least = INFINITY, most = 0;
    for (int32_t q = 0; q < p->count; q++) {
        least = fminf(least, p->size[q]);
        most = fmaxf(most, p->size[q]);
    }
    double best_build = INFINITY, best_correct = INFINITY;
    for (int round = 0; round < 8; round++) {
        swarm_look(&s, NULL);
        const double *const x[3] = {p->x[0], p->x[1], p->x[2]};
        double t0 = processor_seconds();
        check_ok(s.tank.ctx,
                 un_groups_build(s.tank.ctx, &s.arena, &s.groups, x, s.radius, p->count));
        double t1 = processor_seconds();
        swarm_correct(&s);
        double t2 = processor_seconds();
        best_build = fmin(best_build, t1 - t0);
        best_correct = fmin(best_correct, t2 - t1);
    }
    print_message("%-8s %8d particles, sizes 1 to %3.0f: build %.3f us, correct %.3f us each\n",
                  name, p->count, (double)(most / least), 1e6 * best_build / p->count,
                  1e6 * best_correct / p->count);
    /* a tenth is to split, a tenth to merge */
    for (int32_t q = 0; q < p->count; q++)
        p->size[q] *= q % 10 == 0 ? 0.78f : q % 10 == 5 ? 1.4f : 1;
    swarm_look(&s, NULL);
    un_resize_def def = swarm_resize_def(&s, 1);
    un_resize_report report;
    int32_t count = p->count;
    double t0 = processor_seconds();
    check_ok(s.tank.ctx, un_particles_resize(s.tank.ctx, &s.arena, p, &def, &report));
    double seconds = processor_seconds() - t0;
    print_message("%18d splits, %d merges: %.2f us a split or merge\n", (int)report.split_count,
                  (int)report.merge_count,
                  1e6 * seconds / (double)(report.split_count + report.merge_count));
    check_below(1e6 * best_correct / count, 5);
    swarm_end(&s);
}

static void particles_of_many_sizes_are_handled_in_time(void **state)
{
    (void)state;
    measure("even", 6, even);
    measure("graded", 9, graded);
    measure("deep", 8, deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(particles_of_many_sizes_are_handled_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
