/* Sheets and threads thinner than a cell. */
#include "swarm.h"

#define H (1.0 / 32) /* finest cell */
#define DT 0.01      /* of a pace of 1 s */
#define NOISE 0.3    /* m/s */
#define DRIFT 0.4    /* m/s along the layer */
#define THICKNESS (H / 3)

/* A layer of particles around `centre`, with e[0] across it and e[2] along it. */
typedef struct layer {
    swarm s;
    un_vec3 centre, e[3];
    double spacing, volume; /* of its particles */
} layer;

/* Positions and velocities. */
static double *copy(const un_particles *p)
{
    double *out = malloc(6 * (size_t)p->count * sizeof *out);
    for (int a = 0; a < 3; a++) {
        memcpy(out + a * p->count, p->x[a], (size_t)p->count * sizeof *out);
        memcpy(out + (3 + a) * p->count, p->v[a], (size_t)p->count * sizeof *out);
    }
    return out;
}

static un_vec3 noise(int32_t q, double size)
{
    return un_v3(size * (un_random((uint64_t)q, 1) - 0.5), size * (un_random((uint64_t)q, 2) - 0.5),
                 size * (un_random((uint64_t)q, 3) - 0.5));
}

static void begin(layer *l, int32_t threads, un_vec3 centre, double tilt)
{
    swarm_begin(&l->s, threads);
    tank_build(&l->s.tank);
    un_pose pose = un_pose_axis(un_v3(0.3, 0.2, 1), tilt);
    l->centre = centre;
    l->e[0] = un_pose_rotate(&pose, un_v3(0, 1, 0));
    l->e[1] = un_pose_rotate(&pose, un_v3(0, 0, 1));
    l->e[2] = un_pose_rotate(&pose, un_v3(1, 0, 0));
}

static void place(layer *l, int32_t q, double along, double aside)
{
    un_particles *p = &l->s.p;
    un_vec3 jitter = noise(q + 100000, 0.5 * l->spacing);
    jitter = un_mad(jitter, l->e[0], -un_dot(jitter, l->e[0]));
    un_vec3 x = un_add(un_mad(un_mad(l->centre, l->e[2], along), l->e[1], aside), jitter);
    un_particle_set_position(p, q, x);
    un_particle_set_velocity(p, q, un_mad(noise(q, NOISE), l->e[2], DRIFT));
    p->flags[q] = UN_PARTICLE_THIN | UN_PARTICLE_BALLISTIC;
    p->fall[q] = 0;
    p->volume[q] = (float)l->volume;
    p->size[q] = (float)H;
}

/* A round sheet of the given radius. */
static void make_sheet(layer *l, double radius)
{
    l->volume = 0.125 * H * H * H;
    l->spacing = sqrt(l->volume / THICKNESS);
    int32_t side = (int32_t)(2 * radius / l->spacing), count = 0;
    swarm_make(&l->s, side * side);
    for (int32_t i = 0; i < side * side; i++) {
        double x = (i % side + 0.5) * l->spacing - radius;
        double y = ((double)(i / side) + 0.5) * l->spacing - radius;
        if (x * x + y * y < radius * radius) place(l, count++, x, y);
    }
    l->s.p.count = count;
}

/* A straight thread, half a cell thick; share: of the finest volume that its particles have. */
static void make_thread(layer *l, double length, double share)
{
    l->volume = share * 0.125 * H * H * H;
    l->spacing = l->volume / (UN_PI / 16 * H * H);
    int32_t count = (int32_t)(length / l->spacing);
    swarm_make(&l->s, count);
    for (int32_t q = 0; q < count; q++) place(l, q, (q + 0.5) * l->spacing - length / 2, 0);
}

static un_status even(un_context *ctx, layer *l, double strength, un_sheets *sheets)
{
    un_sheets_def def = {
        .h = H, .dt = DT, .pace = 1, .strength = strength, .walls = l->s.tank.walls};
    un_status status = un_particles_even_sheets(ctx, &l->s.arena, &l->s.p, &def, sheets);
    un_arena_reset(&l->s.arena);
    return status;
}

static void fly(layer *l, int32_t steps, double strength)
{
    un_particles *p = &l->s.p;
    for (int32_t n = 0; n < steps; n++) {
        check_ok(l->s.tank.ctx, even(l->s.tank.ctx, l, strength, NULL));
        for (int32_t q = 0; q < p->count; q++)
            for (int a = 0; a < 3; a++) p->x[a][q] += DT * p->v[a][q];
        l->centre = un_mad(l->centre, l->e[2], DT * DRIFT);
    }
}

/* Root mean square of the distance across, m. */
static double spread(const layer *l, bool thread)
{
    double sum = 0;
    for (int32_t q = 0; q < l->s.p.count; q++) {
        un_vec3 d = un_sub(un_particle_position(&l->s.p, q), l->centre);
        sum += pow(un_dot(d, l->e[0]), 2) + (thread ? pow(un_dot(d, l->e[1]), 2) : 0);
    }
    return sqrt(sum / l->s.p.count);
}

/* Share of the sheet's middle, seen from above, that lies farther than a spacing from all
 * particles. */
static double holes(const layer *l, double radius)
{
    int32_t empty = 0, count = 600;
    for (int32_t n = 0; n < count; n++) {
        double r = radius * sqrt(un_random((uint64_t)n, 11)),
               angle = 2 * UN_PI * un_random((uint64_t)n, 12);
        double x = r * cos(angle), y = r * sin(angle), least = INFINITY;
        for (int32_t q = 0; q < l->s.p.count; q++) {
            un_vec3 d = un_sub(un_particle_position(&l->s.p, q), l->centre);
            least = fmin(least, hypot(un_dot(d, l->e[2]) - x, un_dot(d, l->e[1]) - y));
        }
        empty += least > l->spacing;
    }
    return (double)empty / count;
}

/* Without evening a quarter of a second makes a cloud of it, wherever it lies and points. */
static void sheets_stay_whole(void **state)
{
    (void)state;
    const double tilt[] = {0, 30, 0, 0};
    const double shift[] = {0, 0, 0.37 * H, 0};
    for (int n = 0; n < 4; n++) {
        layer l;
        begin(&l, 1, un_v3(0.4, 0.5 + shift[n], 0.5 + 0.6 * shift[n]), tilt[n]);
        make_sheet(&l, 0.3);
        fly(&l, 25, n < 3);
        double wide = spread(&l, false), open = holes(&l, 0.22);
        if (n < 3) {
            check_below(wide, 0.3 * H);
            check_below(open, 0.005);
        } else {
            check_below(0.6 * H, wide);
            check_below(0.04, open);
        }
        swarm_end(&l.s);
    }
}

/* Particles of a thread from end to end: the widest gap along it, and how far each lies off the
 * line between its neighbours, root mean square. */
static void look_along(const layer *l, double *gap, double *rough)
{
    int32_t count = l->s.p.count;
    un_vec3 *at = malloc((size_t)count * sizeof *at);
    double sum = 0;
    for (int32_t q = 0; q < count; q++) {
        un_vec3 d = un_sub(un_particle_position(&l->s.p, q), l->centre);
        un_vec3 x = {un_dot(d, l->e[0]), un_dot(d, l->e[1]), un_dot(d, l->e[2])};
        int32_t k = q;
        for (; k > 0 && at[k - 1].z > x.z; k--) at[k] = at[k - 1];
        at[k] = x;
    }
    *gap = 0;
    for (int32_t q = 1; q < count; q++) *gap = fmax(*gap, at[q].z - at[q - 1].z);
    for (int32_t q = 1; q + 1 < count; q++)
        sum += pow(at[q].x - 0.5 * (at[q - 1].x + at[q + 1].x), 2) +
               pow(at[q].y - 0.5 * (at[q - 1].y + at[q + 1].y), 2);
    *rough = sqrt(sum / (count - 2));
    free(at);
}

static void threads_stay_threads(void **state)
{
    (void)state;
    double gap[2], rough[2], spacing = 0;
    for (int on = 0; on < 2; on++) {
        layer l;
        begin(&l, 1, un_v3(0.4, 0.5, 0.5), 20);
        make_thread(&l, 0.6, 0.4);
        spacing = l.spacing;
        fly(&l, 25, on);
        look_along(&l, &gap[on], &rough[on]);
        swarm_end(&l.s);
    }
    check_below(rough[1], 0.2 * H);
    check_below(gap[1], 2.2 * spacing);
    check_below(0.6 * H, rough[0]);
    check_below(3.5 * spacing, gap[0]);
}

static void measure(const un_particles *p, un_vec3 *momentum, un_vec3 *centre)
{
    *momentum = *centre = un_v3(0, 0, 0);
    for (int32_t q = 0; q < p->count; q++) {
        double m = (double)p->volume[q] / (0.125 * H * H * H);
        *momentum = un_mad(*momentum, un_particle_velocity(p, q), m);
        *centre = un_mad(*centre, un_particle_position(p, q), m);
    }
}

static void sums_are_kept(void **state)
{
    (void)state;
    layer l;
    begin(&l, 1, un_v3(0.4, 0.5, 0.5), 30);
    make_sheet(&l, 0.3);
    /* unequal masses, and moves that no limit cuts */
    for (int32_t q = 0; q < l.s.p.count; q++) {
        l.s.p.volume[q] *= (float)(0.4 + un_random((uint64_t)q, 7));
        l.s.p.v[0][q] += 50;
    }
    un_vec3 momentum[2], centre[2];
    measure(&l.s.p, &momentum[0], &centre[0]);
    check_ok(l.s.tank.ctx, even(l.s.tank.ctx, &l, 0.05, NULL));
    measure(&l.s.p, &momentum[1], &centre[1]);
    double size = un_length(momentum[0]);
    check_below(un_length(un_sub(momentum[1], momentum[0])), 1e-13 * size);
    check_below(un_length(un_sub(centre[1], centre[0])), 1e-12 * l.s.p.count);
    swarm_end(&l.s);
}

/* A rotating and stretching sheet is no noise: away from its rim it keeps every velocity. */
static void affine_motion_stays(void **state)
{
    (void)state;
    layer l;
    begin(&l, 1, un_v3(0.5, 0.5, 0.5), 30);
    make_sheet(&l, 0.3);
    un_particles *p = &l.s.p;
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 d = un_sub(un_particle_position(p, q), l.centre);
        un_vec3 v = un_mad(un_cross(un_v3(1, 2, -3), d), d, 2);
        un_particle_set_velocity(p, q, v);
    }
    double *before = malloc(3 * (size_t)p->count * sizeof *before), worst = 0;
    for (int a = 0; a < 3; a++)
        memcpy(before + a * p->count, p->v[a], (size_t)p->count * sizeof *before);
    check_ok(l.s.tank.ctx, even(l.s.tank.ctx, &l, 1, NULL));
    for (int32_t q = 0; q < p->count; q++) {
        if (un_length(un_sub(un_particle_position(p, q), l.centre)) > 0.2) continue;
        for (int a = 0; a < 3; a++)
            worst = fmax(worst, fabs(p->v[a][q] - before[a * p->count + q]));
    }
    check_below(worst, 1e-12);
    free(before);
    swarm_end(&l.s);
}

/* No push outwards: a sheet that has room around it stays as wide as it is. */
static void rims_stay(void **state)
{
    (void)state;
    layer l;
    begin(&l, 1, un_v3(0.4, 0.5, 0.5), 30);
    make_sheet(&l, 0.2);
    for (int32_t q = 0; q < l.s.p.count; q++)
        un_particle_set_velocity(&l.s.p, q, un_scale(l.e[2], DRIFT));
    fly(&l, 25, 1);
    double farthest = 0;
    for (int32_t q = 0; q < l.s.p.count; q++)
        farthest = fmax(farthest, un_length(un_sub(un_particle_position(&l.s.p, q), l.centre)));
    check_below(farthest, 0.2 + 0.5 * H);
    check_below(0.2 - 0.5 * H, farthest);
    swarm_end(&l.s);
}

/* What is not thin is not touched, nor is what rests. */
static void others_are_left_alone(void **state)
{
    (void)state;
    for (int resting = 0; resting < 2; resting++) {
        layer l;
        begin(&l, 1, un_v3(0.4, 0.5, 0.5), 0);
        make_sheet(&l, 0.2);
        un_particles *p = &l.s.p;
        for (int32_t q = 0; q < p->count; q++) {
            if (resting)
                un_particle_set_velocity(p, q, un_v3(0, 0, 0));
            else
                p->flags[q] = UN_PARTICLE_BALLISTIC;
        }
        double *before = copy(p);
        check_ok(l.s.tank.ctx, even(l.s.tank.ctx, &l, 1, NULL));
        double *after = copy(p);
        assert_memory_equal(before, after, 6 * (size_t)p->count * sizeof *before);
        free(before);
        free(after);
        swarm_end(&l.s);
    }
}

static void threads_do_not_change_bits(void **state)
{
    (void)state;
    double *found[2];
    size_t bytes = 0;
    for (int n = 0; n < 2; n++) {
        layer l;
        begin(&l, n ? 3 : 1, un_v3(0.4, 0.5, 0.5), 30);
        make_sheet(&l, 0.3);
        fly(&l, 2, 1);
        found[n] = copy(&l.s.p);
        bytes = 6 * (size_t)l.s.p.count * sizeof **found;
        swarm_end(&l.s);
    }
    assert_memory_equal(found[0], found[1], bytes);
    free(found[0]);
    free(found[1]);
}

/* Sheets and threads that are stretched split in their plane or along their line, and do not merge
 * into beads, whatever sizes the particles want. */
static void resizing_keeps_them_covered(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* a stretched sheet, a thread, a sheet */
        layer l;
        un_sheets sheets = {0};
        begin(&l, 1, un_v3(0.5, 0.5, 0.5), 30);
        if (kind == 1)
            make_thread(&l, 0.6, 1);
        else
            make_sheet(&l, 0.2);
        un_particles *p = &l.s.p;
        bool stretched = kind < 2;
        for (int32_t q = 0; q < p->count; q++) {
            un_vec3 d = un_sub(un_particle_position(p, q), l.centre);
            double more = kind == 0 ? 1.3 * un_dot(d, l.e[2]) : 0;
            un_particle_set_position(p, q, un_add(l.centre, un_mad(d, l.e[2], more)));
            if (!stretched) p->size[q] = (float)(8 * H);
        }
        swarm_sort(&l.s, H);
        un_arena_reset(&l.s.arena);
        check_ok(l.s.tank.ctx, even(l.s.tank.ctx, &l, 1, &sheets));
        swarm_look(&l.s, NULL);
        un_vec3 momentum[2], centre[2];
        measure(p, &momentum[0], &centre[0]);
        double volume = un_particles_volume(l.s.tank.ctx, p);
        un_resize_def def = swarm_resize_def(&l.s, 1);
        def.volume_min = 0.125 * H * H * H;
        def.sheets = &sheets;
        un_resize_report report;
        int32_t count = p->count;
        check_ok(l.s.tank.ctx, un_particles_resize(l.s.tank.ctx, &l.s.arena, p, &def, &report));
        assert_int_equal(report.merge_count, 0);
        if (stretched)
            check_below(0.2 * count, report.split_count);
        else
            assert_int_equal(report.split_count, 0);
        measure(p, &momentum[1], &centre[1]);
        check_below(un_length(un_sub(momentum[1], momentum[0])), 1e-12 * count);
        check_below(un_length(un_sub(centre[1], centre[0])), 1e-12 * count);
        check_near(un_particles_volume(l.s.tank.ctx, p), volume, 1e-12 * volume);
        check_below(spread(&l, kind == 1), 0.2 * H);
        un_sheets_free(l.s.tank.ctx, &sheets);
        swarm_end(&l.s);
    }
}

static un_status even_once(un_context *ctx, void *arg)
{
    layer *l = arg;
    un_sheets sheets = {0};
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_sheets_def def = {.h = 0.001, .dt = DT, .pace = 1, .strength = 1, .walls = l->s.tank.walls};
    un_status status = un_particles_even_sheets(ctx, &arena, &l->s.p, &def, &sheets);
    un_arena_free(&arena);
    un_sheets_free(ctx, &sheets);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    layer l;
    begin(&l, 1, un_v3(0.4, 0.5, 0.5), 0);
    swarm_make(&l.s, 100000); /* more than a chunk of the arena each */
    for (int32_t q = 0; q < l.s.p.count; q++) {
        un_particle_set_position(&l.s.p, q,
                                 un_v3(un_random((uint64_t)q, 1), un_random((uint64_t)q, 2), 0.5));
        l.s.p.flags[q] = UN_PARTICLE_THIN;
        l.s.p.volume[q] = 1e-9f;
    }
    check_allocation_failures(even_once, &l, 40);
    swarm_end(&l.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sheets_stay_whole),
        cmocka_unit_test(threads_stay_threads),
        cmocka_unit_test(sums_are_kept),
        cmocka_unit_test(affine_motion_stays),
        cmocka_unit_test(rims_stay),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(threads_do_not_change_bits),
        cmocka_unit_test(resizing_keeps_them_covered),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    check_races_in("threads_do*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
