/* Splitting and merging. */
#include "swarm.h"

static un_resize_report resize(swarm *s, uint64_t stream)
{
    un_resize_report report = {-1, -1};
    un_resize_def def = swarm_resize_def(s, stream);
    int32_t before = s->p.count;
    check_ok(s->tank.ctx, un_particles_resize(s->tank.ctx, &s->arena, &s->p, &def, &report));
    assert_int_equal(s->p.count, before + report.split_count - report.merge_count);
    return report;
}

/* Volume, momentum and first moment; [7]: the sum of volume times speed. */
static void measure(const un_particles *p, double m[8])
{
    memset(m, 0, 8 * sizeof *m);
    for (int32_t q = 0; q < p->count; q++) {
        double v = p->volume[q];
        m[0] += v;
        for (int a = 0; a < 3; a++) {
            m[1 + a] += v * p->v[a][q];
            m[4 + a] += v * p->x[a][q];
        }
        m[7] += v * un_length(un_particle_velocity(p, q));
    }
}

static double ratio(const un_particles *p, int32_t q)
{
    double wanted = un_clamp(pow(0.5 * (double)p->size[q], 3), 1e-9, 1e-2);
    return p->volume[q] / wanted;
}

static double even(un_vec3 x)
{
    (void)x;
    return 1.0 / 8;
}
static double wanted(un_vec3 x)
{
    return fmax(1.0 / 16, 0.5 * fabs(x.y - 0.4));
}

/* A tank at one size, to be changed to what `wanted` says. */
static void begin_tank(swarm *s, int32_t threads, bool solid)
{
    swarm_begin(s, threads);
    if (solid) {
        tank_solid(&s->tank, tank_sphere(&s->tank, un_v3(0.5, 0.5, 0.5), 0.2), un_v3(0, 0, 0));
        tank_solid(&s->tank, tank_box(&s->tank, un_v3(0.2, -1, -1), un_v3(0.201, 2, 2)),
                   un_v3(0, 0, 0));
    }
    tank_build(&s->tank);
    swarm_seed(s, 3, even, tank_box(&s->tank, un_v3(-1, -1, -1), un_v3(2, 2, 2)));
    for (int32_t q = 0; q < s->p.count; q++)
        for (uint64_t a = 0; a < 3; a++) s->p.v[a][q] = un_random((uint64_t)q, 40 + a) - 0.5;
}

static void want(swarm *s, double waver, uint64_t stream)
{
    for (int32_t q = 0; q < s->p.count; q++)
        s->p.size[q] = (float)(wanted(un_particle_position(&s->p, q)) *
                               (1 + waver * (2 * un_random((uint64_t)q, stream) - 1)));
}

/* What is foretold is not passed, and not far off. */
static void the_count_is_foretold(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 2, false);
    want(&s, 0.2, 3);
    un_resize_def def = swarm_resize_def(&s, 0);
    double expected = un_particles_expected(s.tank.ctx, &s.p, NULL, &def, 1);
    double coarser = un_particles_expected(s.tank.ctx, &s.p, NULL, &def, 2);
    assert_true(expected > s.p.count);
    check_below(coarser, 0.4 * expected);
    for (uint64_t i = 0; i < 12; i++) {
        swarm_sort(&s, 1.0 / 64);
        swarm_look(&s, NULL);
        resize(&s, i);
        assert_true(s.p.count <= expected);
    }
    check_below(0.6 * expected, s.p.count);
    swarm_end(&s);
}

/* ---- what is kept ---- */

static void volume_momentum_and_centre_are_kept(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 2, false);
    for (int32_t q = 0; q < s.p.count; q++) /* such that sums do not fit a float */
        s.p.volume[q] *= (float)(0.7 + 0.6 * un_random((uint64_t)q, 60));
    int64_t splits = 0, merges = 0;
    for (uint64_t call = 0; call < 12; call++) {
        double before[8], after[8], largest = 0;
        swarm_sort(&s, 1.0 / 64);
        want(&s, 0.5, 100 + call);
        swarm_look(&s, NULL);
        measure(&s.p, before);
        for (int32_t q = 0; q < s.p.count; q++) largest = fmax(largest, s.p.volume[q]);
        un_resize_report report = resize(&s, call);
        measure(&s.p, after);
        splits += report.split_count;
        merges += report.merge_count;
        /* what is left of the rounding is less than one particle's */
        check_near(before[0], after[0], 2e-7 * largest);
        for (int m = 1; m < 4; m++) check_near(before[m], after[m], 2e-8 * before[7]);
        for (int m = 4; m < 7; m++) check_near(before[m], after[m], 1e-9 * before[0]);
    }
    assert_true(splits > 1000 && merges > 1000);
    swarm_end(&s);
}

/* A split's halves: half the volume each, opposite, not far; all else as it was. */
static void splits_make_two_halves(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 2, false);
    un_particles *p = &s.p;
    int32_t count = p->count;
    double *before = swarm_copy(p);
    for (int32_t q = 0; q < count; q++) {
        p->size[q] = q % 5 ? 1.0f / 8 : 1.0f / 10.5f;
        p->flags[q] = 4;
    }
    swarm_look(&s, NULL);
    double *v = malloc((size_t)count * sizeof *v);
    for (int32_t q = 0; q < count; q++) v[q] = p->v[2][q];
    float volume = p->volume[0], radius = s.radius[0];
    un_resize_report report = resize(&s, 3);
    assert_int_equal(report.split_count, (count + 4) / 5);
    assert_int_equal(report.merge_count, 0);
    int32_t next = count;
    double along[3] = {0, 0, 0};
    for (int32_t q = 0; q < count; q++) {
        un_vec3 x = {before[q], before[count + q], before[2 * count + q]};
        un_vec3 a = un_sub(un_particle_position(p, q), x);
        assert_true(p->v[2][q] == v[q] && p->flags[q] == 4);
        if (q % 5) {
            assert_true(un_length(a) == 0 && p->volume[q] == volume);
            continue;
        }
        un_vec3 b = un_sub(un_particle_position(p, next), x);
        assert_true(p->v[2][next] == v[q] && p->flags[next] == 4);
        assert_true(p->size[q] == 1.0f / 10.5f && p->size[next] == p->size[q]);
        assert_true(p->volume[q] + p->volume[next] == volume);
        check_near(p->volume[q], 0.5 * (double)volume, 1e-6 * (double)volume);
        check_near(un_length(un_add(a, b)), 0, 1e-12);
        check_below(0.3 * (double)radius, un_length(a));
        check_below(un_length(a), (double)radius);
        along[0] += fabs(a.x) / un_length(a);
        along[1] += fabs(a.y) / un_length(a);
        along[2] += fabs(a.z) / un_length(a);
        next++;
    }
    for (int a = 0; a < 3; a++) check_below(0.3, along[a] / (count / 5)); /* no axis preferred */
    free(before);
    free(v);
    swarm_end(&s);
}

/* In an even filling with two neighbours missing, halves go where they were. */
static void halves_seek_gaps(void **state)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        double along = 0;
        for (uint64_t stream = 0; stream < 20; stream++) {
            swarm s;
            swarm_begin(&s, 1);
            tank_build(&s.tank);
            swarm_make(&s, 343);
            int32_t n = 0, at[3], middle = 0;
            for (int32_t c = 0; c < 343; c++) {
                at[0] = c % 7 - 3;
                at[1] = c / 7 % 7 - 3;
                at[2] = c / 49 - 3;
                int off = at[axis];
                at[axis] = 0;
                bool on_axis = !at[0] && !at[1] && !at[2];
                at[axis] = off;
                if (on_axis && abs(off) == 1) continue;
                if (on_axis && off == 0) middle = n;
                s.p.size[n] = on_axis && off == 0 ? 0.04f : 0.08f;
                swarm_place(&s, n++, un_mad(un_v3(0.5, 0.5, 0.5), un_v3(at[0], at[1], at[2]), 0.04),
                            0.02);
            }
            s.p.count = n;
            swarm_look(&s, NULL);
            assert_int_equal(resize(&s, stream).split_count, 1);
            double d[3];
            for (int a = 0; a < 3; a++) d[a] = s.p.x[a][middle] - s.p.x[a][n];
            along += fabs(d[axis]) / un_length(un_v3(d[0], d[1], d[2])) / 20;
            swarm_end(&s);
        }
        check_below(0.85, along); /* any direction would have 0.5 */
    }
}

/* ---- who merges ---- */

/* Ten small ones along a line, 1 apart but the gaps given; which pairs merge? */
static int32_t merge_row(swarm *s, const double *x, const double *q, int32_t count)
{
    swarm_make(s, count);
    for (int32_t n = 0; n < count; n++) {
        swarm_place(s, n, un_v3(0.3 + 0.02 * x[n], 0.5, 0.5), 0.01 * cbrt(q[n]));
        s->p.size[n] = 0.04f; /* wants a radius of 0.01 */
        s->p.v[0][n] = n;
    }
    swarm_look(s, NULL);
    return (int32_t)resize(s, 1).merge_count;
}

static void the_nearest_merge_once(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 1);
    tank_build(&s.tank);
    un_particles *p = &s.p;
    /* the closest pair, not the first; the third one waits */
    assert_int_equal(merge_row(&s, (double[]){0, 0.6, 1}, (double[]){0.3, 0.3, 0.3}, 3), 1);
    assert_int_equal(p->count, 2);
    assert_true(p->v[0][0] == 0);
    check_near(p->v[0][1], 1.5, 1e-12);
    check_near(p->x[0][1], 0.3 + 0.02 * 0.8, 1e-12);
    check_near(ratio(p, 1), 0.6, 1e-5);
    /* by volume: velocity, place and wanted size */
    assert_int_equal(merge_row(&s, (double[]){0, 0.6}, (double[]){0.9, 0.3}, 2), 1);
    check_near(p->v[0][0], 0.25, 1e-7);
    check_near(p->x[0][0], 0.3 + 0.02 * 0.15, 1e-9);
    /* large enough; too large together; too far; just not */
    assert_int_equal(merge_row(&s, (double[]){0, 0.6}, (double[]){0.5, 0.5}, 2), 0);
    assert_int_equal(merge_row(&s, (double[]){0, 0.6}, (double[]){1.4, 0.3}, 2), 0);
    assert_int_equal(merge_row(&s, (double[]){0, 1.05}, (double[]){0.3, 0.3}, 2), 0);
    assert_int_equal(merge_row(&s, (double[]){0, 0.95}, (double[]){0.3, 0.3}, 2), 1);
    /* the nearest of many */
    assert_int_equal(merge_row(&s, (double[]){0, 0.7, 0.65, 0.6, 0.5, 0.55, 0.66, 0.62},
                               (double[]){0.3, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, 8),
                     1);
    check_near(p->v[0][0], 3, 1e-6);
    /* the large one is passed over for one that fits */
    assert_int_equal(merge_row(&s, (double[]){-0.5, 0, 0.6}, (double[]){1.5, 0.3, 0.3}, 3), 1);
    check_near(p->v[0][1], 1.5, 1e-6);
    /* four at one place make two */
    assert_int_equal(merge_row(&s, (double[]){0, 0, 0, 0}, (double[]){0.3, 0.3, 0.3, 0.3}, 4), 2);
    /* one alone, none at all */
    assert_int_equal(merge_row(&s, (double[]){0}, (double[]){0.3}, 1), 0);
    assert_int_equal(merge_row(&s, NULL, NULL, 0), 0);
    swarm_end(&s);
}

static void ballistic_ones_keep_to_themselves(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 1);
    tank_build(&s.tank);
    for (int flags = 0; flags < 4; flags++) {
        swarm_make(&s, 2);
        for (int32_t q = 0; q < 2; q++) {
            swarm_place(&s, q, un_v3(0.5 + 0.01 * q, 0.5, 0.5), 0.007);
            s.p.size[q] = 0.04f;
            s.p.flags[q] = flags >> q & 1;
        }
        swarm_look(&s, NULL);
        bool alike = flags == 0 || flags == 3;
        assert_int_equal(resize(&s, 1).merge_count, alike);
        if (alike) assert_int_equal(s.p.flags[0], flags & 1);
        /* far too large: splits unless it flies */
        swarm_make(&s, 1);
        swarm_place(&s, 0, un_v3(0.5, 0.5, 0.5), 0.02);
        s.p.size[0] = 0.04f;
        s.p.flags[0] = flags & 1;
        swarm_look(&s, NULL);
        assert_int_equal(resize(&s, 1).split_count, !(flags & 1));
    }
    swarm_end(&s);
}

/* ---- coming to rest ---- */

static void fixed_sizes_come_to_rest(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 2, false);
    want(&s, 0, 0);
    un_resize_report report = {1, 1};
    int calls = 0;
    for (; report.split_count + report.merge_count > 0; calls++) {
        assert_true(calls < 20);
        want(&s, 0, 0);
        swarm_look(&s, NULL);
        report = resize(&s, (uint64_t)calls);
        for (int k = 0; k < 3; k++) { /* places follow, and with them what is wanted */
            swarm_sort(&s, 1.0 / 64);
            swarm_look(&s, NULL);
            swarm_correct(&s);
        }
        if (calls < 10) continue;
        /* sizes that stay with their particles: at rest within a few calls */
        int more = 0;
        for (; more < 10 && report.split_count + report.merge_count > 0; more++) {
            swarm_look(&s, NULL);
            report = resize(&s, 50 + (uint64_t)more);
        }
        assert_true(more < 6);
        break;
    }
    int32_t small = 0;
    for (int32_t q = 0; q < s.p.count; q++) {
        check_below(ratio(&s.p, q), 1.9001);
        small += ratio(&s.p, q) < 0.42;
    }
    check_below(small, 0.02 * s.p.count);
    assert_true(s.p.count > 5000);
    /* sizes that waver by 4 %: those at the edge change once, and nobody goes back */
    int64_t splits = 0, merges = 0;
    for (uint64_t call = 0; call < 30; call++) {
        swarm_sort(&s, 1.0 / 64);
        want(&s, 0.04, 300 + call);
        swarm_look(&s, NULL);
        report = resize(&s, call);
        splits += report.split_count;
        merges += report.merge_count;
    }
    check_below((double)splits, 0.4 * s.p.count);
    check_below((double)merges, 0.01 * s.p.count);
    swarm_end(&s);
}

/* From one end of the range to the other and back. */
static void all_sizes_are_reached(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 2, false);
    for (int turn = 0; turn < 2; turn++) {
        for (uint64_t call = 0; call < 10; call++) {
            for (int32_t q = 0; q < s.p.count; q++) s.p.size[q] = turn ? 0.25f : 0.08f;
            swarm_sort(&s, 1.0 / 64);
            swarm_look(&s, NULL);
            resize(&s, call);
            swarm_sort(&s, 1.0 / 64);
            swarm_look(&s, NULL);
            swarm_correct(&s);
        }
        double each = 1 / un_particles_volume(s.tank.ctx, &s.p) * s.p.count;
        check_near(each * pow(turn ? 0.125 : 0.04, 3), 1, 0.6);
    }
    /* beyond the range nothing changes: the wanted size is held to it */
    un_resize_def def = swarm_resize_def(&s, 7);
    def.volume_min = def.volume_max = s.p.volume[0];
    float first = s.p.volume[0];
    for (int32_t q = 0; q < s.p.count; q++) {
        s.p.volume[q] = first;
        s.p.size[q] = q % 4 ? q % 2 ? 1e-6f : 1e6f : q % 8 ? NAN : 0;
    }
    un_resize_report report;
    swarm_look(&s, NULL);
    def.radius = s.radius;
    check_ok(s.tank.ctx, un_particles_resize(s.tank.ctx, &s.arena, &s.p, &def, &report));
    assert_int_equal(report.split_count + report.merge_count, 0);
    swarm_end(&s);
}

/* ---- surface and walls ---- */

static double flat(un_vec3 x)
{
    return x.y - 0.7;
}

static void new_ones_at_the_surface_touch_it(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 2, false);
    un_particles *p = &s.p;
    uint8_t *keep = malloc((size_t)p->count);
    for (int32_t q = 0; q < p->count; q++) keep[q] = flat(un_particle_position(p, q)) < -0.02;
    un_particles_filter(p, keep);
    free(keep);
    int touching = 0, deep = 0;
    for (uint64_t call = 0; call < 6; call++) {
        for (int32_t q = 0; q < p->count; q++) {
            p->size[q] = call % 2 ? 1.0f / 5 : 1.0f / 11;
            p->v[0][q] = p->x[0][q]; /* to tell the new */
        }
        swarm_look(&s, flat);
        resize(&s, call);
        for (int32_t q = 0; q < p->count; q++) {
            if (p->x[0][q] == p->v[0][q]) continue;
            double depth = -flat(un_particle_position(p, q));
            double r = un_particle_radius(p->volume[q]);
            if (fabs(depth - r) < 1e-6)
                touching++;
            else {
                check_below(1.2499 * r, depth);
                deep++;
            }
        }
    }
    assert_true(touching > 50 && deep > 50);
    /* Halves of one that touched it: beside each other, both touching it; of the third halving one
     * below the other. */
    for (uint64_t stream = 0; stream < 30; stream++) {
        bool third = stream % 3 == 2;
        swarm_make(&s, 1);
        swarm_place(&s, 0, un_v3(0.5, 0.68, 0.5), 0.02);
        p->size[0] = 0.04f;
        p->flags[0] = (uint8_t)(stream % 3 * UN_PARTICLE_HALVED);
        swarm_look(&s, flat);
        resize(&s, stream);
        assert_int_equal(p->count, 2);
        double r = un_particle_radius(p->volume[0]);
        check_near(0.7 - fmax(p->x[1][0], p->x[1][1]), r, 1e-6);
        check_near(0.7 - fmin(p->x[1][0], p->x[1][1]), third ? 3 * r : r, 1e-6);
        check_near(p->x[0][0] + p->x[0][1], 1, 1e-12);
        for (int32_t q = 0; q < 2; q++)
            assert_int_equal(p->flags[q] & UN_PARTICLE_HALVED_MASK,
                             (stream + 1) % 3 * UN_PARTICLE_HALVED);
    }
    swarm_end(&s);
}

/* In 2D two halvings make four of one: the second goes across the surface, so that two rows lie
 * where one did, and the mean depth is what it was. With both along it, all would lie in the upper
 * row, and the liquid would grow. */
static void flat_quarters_fill_their_square(void **state)
{
    (void)state;
    for (uint64_t stream = 0; stream < 10; stream++) {
        swarm s;
        begin_tank(&s, 1, false);
        un_particles *p = &s.p;
        p->flat = true;
        swarm_make(&s, 1);
        swarm_place(&s, 0, un_v3(0.5, 0.68, 0.5), 0.02);
        p->volume[0] = 0.04f * 0.04f;
        p->flags[0] = 0;
        for (uint64_t halving = 0; halving < 2; halving++) {
            for (int32_t q = 0; q < p->count; q++) p->size[q] = 0.04f;
            swarm_look(&s, flat);
            resize(&s, 2 * stream + halving);
        }
        assert_int_equal(p->count, 4);
        double depth = 0;
        for (int32_t q = 0; q < 4; q++) depth += 0.25 * (0.7 - p->x[1][q]);
        check_near(depth, 0.02, 1e-6);
        for (int32_t q = 0; q < 4; q++) {
            double d = 0.7 - p->x[1][q];
            assert_true(fabs(d - 0.01) < 1e-6 || fabs(d - 0.03) < 1e-6);
            assert_int_equal(p->flags[q] & UN_PARTICLE_HALVED_MASK, 0);
        }
        swarm_end(&s);
    }
}

static void none_is_put_into_walls(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        swarm s;
        begin_tank(&s, threads, true);
        for (uint64_t call = 0; call < 12; call++) {
            swarm_sort(&s, 1.0 / 64);
            want(&s, 0.5, 100 + call);
            if (call >= 6) /* all coarse: merges */
                for (int32_t q = 0; q < s.p.count; q++) s.p.size[q] = 0.2f;
            double side = 0, after = 0;
            for (int32_t q = 0; q < s.p.count; q++)
                if (s.p.x[0][q] < 0.2) side += s.p.volume[q];
            swarm_look(&s, flat);
            resize(&s, call);
            for (int32_t q = 0; q < s.p.count; q++) {
                un_vec3 x = un_particle_position(&s.p, q);
                check_below(0, un_walls_distance_exact(s.tank.walls, x));
                if (x.x < 0.2) after += s.p.volume[q];
            }
            check_near(side, after, 1e-6 * side); /* nothing went through the plate */
        }
        double *bits = swarm_copy(&s.p);
        size_t bytes = (size_t)(3 * s.p.count) * sizeof *bits;
        if (first) {
            assert_memory_equal(first, bits, bytes);
            free(bits);
        } else
            first = bits;
        swarm_end(&s);
    }
    free(first);
}

/* A thin plate between two small ones. */
static void walls_keep_particles_apart(void **state)
{
    (void)state;
    for (int plate = 0; plate < 2; plate++) {
        swarm s;
        swarm_begin(&s, 1);
        if (plate)
            tank_solid(&s.tank, tank_box(&s.tank, un_v3(0.5, -1, -1), un_v3(0.5005, 2, 2)),
                       un_v3(0, 0, 0));
        tank_build(&s.tank);
        swarm_make(&s, 2);
        swarm_place(&s, 0, un_v3(0.494, 0.5, 0.5), 0.007);
        swarm_place(&s, 1, un_v3(0.508, 0.5, 0.5), 0.007);
        s.p.size[0] = s.p.size[1] = 0.04f;
        swarm_look(&s, NULL);
        assert_int_equal(resize(&s, 1).merge_count, !plate);
        /* and a large one beside it splits along it, not through it */
        swarm_make(&s, 1);
        swarm_place(&s, 0, un_v3(0.497, 0.5, 0.5), 0.02);
        s.p.size[0] = 0.04f;
        swarm_look(&s, NULL);
        assert_int_equal(resize(&s, 1).split_count, 1);
        if (plate) assert_true(s.p.x[0][0] < 0.5 && s.p.x[0][1] < 0.5);
        swarm_end(&s);
    }
}

/* ---- hostile ---- */

static void heaps_do_no_harm(void **state)
{
    (void)state;
    swarm s;
    swarm_begin(&s, 2);
    tank_build(&s.tank);
    swarm_make(&s, 1000);
    un_particles *p = &s.p;
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 x = un_mad(un_v3(0.5, 0.5, 0.5), swarm_point((uint64_t)q, 1), q % 2 ? 1e-4 : 0);
        swarm_place(&s, q, x, q % 7 ? 2e-4 : 0.05);
        p->size[q] = q % 3 ? 1e-3f : 0.4f;
    }
    p->volume[9] = 0;
    p->size[11] = NAN;
    p->volume[12] = 1;
    double before[8], after[8];
    measure(p, before);
    for (uint64_t call = 0; call < 5; call++) {
        swarm_look(&s, NULL);
        if (call == 2)
            for (int32_t q = 0; q < p->count; q++) {
                s.phi[q] = q % 3 ? INFINITY : -INFINITY;
                s.normal[0][q] = 1;
            }
        resize(&s, call);
    }
    measure(p, after);
    check_near(before[0], after[0], 1e-6 * before[0]);
    for (int32_t q = 0; q < p->count; q++) {
        assert_true(un_finite3(un_particle_position(p, q)));
        assert_true(p->volume[q] >= 0);
    }
    swarm_end(&s);
}

typedef struct failing {
    swarm *s;
    double *x;
} failing;

static un_status resize_once(un_context *ctx, void *arg)
{
    failing *f = arg;
    swarm *s = f->s;
    un_particles *p = &s->p, copy = {.sized = true};
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_status status = un_particles_reserve(ctx, &copy, p->count);
    if (status == UN_OK) {
        size_t n = (size_t)p->count;
        for (int a = 0; a < 3; a++) {
            memcpy(copy.x[a], p->x[a], n * sizeof(double));
            memcpy(copy.v[a], p->v[a], n * sizeof(double));
        }
        memcpy(copy.volume, p->volume, n * sizeof(float));
        memcpy(copy.size, p->size, n * sizeof(float));
        memcpy(copy.flags, p->flags, n);
        copy.count = p->count;
        un_resize_def def = swarm_resize_def(s, 1);
        un_resize_report report;
        status = un_particles_resize(ctx, &arena, &copy, &def, &report);
        if (status == UN_OK)
            assert_true(report.split_count > 10 && report.merge_count > 10);
        else { /* nothing has changed */
            assert_int_equal(copy.count, p->count);
            for (int a = 0; a < 3; a++) assert_memory_equal(copy.x[a], p->x[a], n * sizeof(double));
            assert_memory_equal(copy.volume, p->volume, n * sizeof(float));
        }
    }
    un_arena_free(&arena);
    un_particles_free(ctx, &copy);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    swarm s;
    begin_tank(&s, 1, true);
    want(&s, 0.5, 9);
    swarm_look(&s, flat);
    failing f = {.s = &s};
    check_allocation_failures(resize_once, &f, 100);
    swarm_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_count_is_foretold),
        cmocka_unit_test(volume_momentum_and_centre_are_kept),
        cmocka_unit_test(splits_make_two_halves),
        cmocka_unit_test(halves_seek_gaps),
        cmocka_unit_test(the_nearest_merge_once),
        cmocka_unit_test(ballistic_ones_keep_to_themselves),
        cmocka_unit_test(fixed_sizes_come_to_rest),
        cmocka_unit_test(all_sizes_are_reached),
        cmocka_unit_test(new_ones_at_the_surface_touch_it),
        cmocka_unit_test(flat_quarters_fill_their_square),
        cmocka_unit_test(none_is_put_into_walls),
        cmocka_unit_test(walls_keep_particles_apart),
        cmocka_unit_test(heaps_do_no_harm),
        cmocka_unit_test(failing_allocations_are_clean),
    };
    check_races_in("none_is*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
