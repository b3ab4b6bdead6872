/* The simulation's level set: flat water is flat up to the walls, and has its volume. */
#include "surface/vessel.h"

static void profile_and_distance_are_inverse(void **state)
{
    (void)state;
    double last = 1;
    for (int n = -160; n <= 160; n++) {
        double s = n / 100.0, c = un_colour_profile(s);
        assert_true(c >= 0 && c <= 1 && c <= last);
        last = c;
        check_near(c + un_colour_profile(-s), 1, 1e-15);
        /* near the ends the profile is cubic: a digit in c is three in s */
        if (fabs(s) <= 1.49) check_near(un_colour_distance(c), s, 1e-6);
    }
    for (int n = 1; n < 1000; n++)
        check_near(un_colour_profile(un_colour_distance(n / 1000.0)), n / 1000.0, 1e-9);
    check_near(un_colour_distance(0), 1.5, 0);
    check_near(un_colour_distance(-1), 1.5, 0);
    check_near(un_colour_distance(NAN), 1.5, 0);
    check_near(un_colour_distance(1), -1.5, 0);
    check_near(un_colour_profile(2), 0, 0);
    check_near(un_colour_profile(-2), 1, 0);
    /* against its definition: the spline's integral from s on */
    for (int n = -20; n <= 20; n++) {
        double s = n / 13.0, sum = 0, dx = 1e-4;
        for (double x = s + 0.5 * dx; x < 1.5; x += dx) {
            double a = fabs(x);
            sum += dx * (a < 0.5 ? 0.75 - a * a : a < 1.5 ? 0.5 * (1.5 - a) * (1.5 - a) : 0);
        }
        check_near(un_colour_profile(s), sum, 1e-4);
    }
}

/* A lattice of half cells without jitter, the last layer as thick as the height asks. */
static void fill_flat(vessel *v, double height)
{
    const un_grid *g = &v->tank.grid;
    double s = 0.5 * g->h;
    int32_t n[3] = {(int32_t)round(g->size.x / s), (int32_t)ceil(height / s - 1e-9),
                    (int32_t)round(g->size.z / s)};
    un_particles *p = &v->particles;
    check_ok(v->tank.ctx, un_particles_reserve(v->tank.ctx, p, (int64_t)n[0] * n[1] * n[2]));
    for (int32_t k = 0; k < n[2]; k++)
        for (int32_t j = 0; j < n[1]; j++)
            for (int32_t i = 0; i < n[0]; i++) {
                int32_t q = p->count++;
                double thick = fmin(s, height - j * s);
                p->x[0][q] = (i + 0.5) * s;
                p->x[1][q] = j * s + 0.5 * thick;
                p->x[2][q] = (k + 0.5) * s;
                for (int a = 0; a < 3; a++) p->v[a][q] = 0;
                p->volume[q] = (float)(s * s * thick);
                p->flags[q] = 0;
            }
    vessel_refresh(v);
}

static void flat_water_is_flat_up_to_walls_edges_and_corners(void **state)
{
    (void)state;
    static const double heights[] = {0.437, 0.5, 0.53, 0.475, 0.21, 0.75};
    for (int n = 0; n < 6; n++) {
        vessel v;
        vessel_begin(&v, 2, un_v3(1, 1, 0.8), 20);
        vessel_build(&v);
        fill_flat(&v, heights[n]);
        const un_grid *g = &v.tank.grid;
        int crossings = 0;
        for (int32_t k = 1; k < g->n[2] - 1; k++)
            for (int32_t j = 1; j < g->n[1] - 1; j++)
                for (int32_t i = 1; i < g->n[0] - 1; i++) {
                    un_vec3 x = un_grid_center(g, i, j, k);
                    int64_t c = un_grid_cell(g, i, j, k);
                    double phi = v.phi[c], above = v.phi[c + g->stride[1]], want = x.y - heights[n];
                    if (fabs(want) > 0.1 * g->h) assert_true(phi * want > 0);
                    if (fabs(want) < 0.25 * g->h) check_near(phi, want, 0.03 * g->h);
                    if (!(phi < 0 && above >= 0)) continue;
                    /* where the pressure will see the surface */
                    check_near(x.y + g->h * phi / (phi - above), heights[n], 0.035 * g->h);
                    crossings++;
                }
        assert_int_equal(crossings, 20 * 16);
        double volume = un_colour_volume(v.tank.ctx, v.phi, g, v.tank.walls, NULL);
        check_near(volume / 0.8, heights[n], 0.02 * g->h);
        vessel_end(&v);
    }
}

/* A full tank is full everywhere; an empty one has nothing. */
/* A quadratic B-spline, one by one. */
static double spline(double x)
{
    x = fabs(x);
    return x < 0.5 ? 0.75 - x * x : x < 1.5 ? 0.5 * (1.5 - x) * (1.5 - x) : 0;
}

static void colours_are_sums_over_particles(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(1, 0.7, 0.6), 20);
    vessel_build(&v);
    const un_grid *g = &v.tank.grid;
    un_particles *p = &v.particles;
    check_ok(v.tank.ctx, un_particles_reserve(v.tank.ctx, p, 4001));
    p->count = 4001;
    for (int32_t q = 0; q < p->count; q++) {
        double crowd = q % 2 ? 1 : 0.2; /* half of them in few cells */
        p->x[0][q] = crowd * un_random((uint64_t)q, 1);
        p->x[1][q] = 0.7 * crowd * un_random((uint64_t)q, 2);
        p->x[2][q] = 0.6 * un_random((uint64_t)q, 3);
        p->volume[q] = (float)(1e-5 * (1 + q % 3));
        p->flags[q] = 0;
    }
    check_ok(v.tank.ctx, un_bins_sort(v.bins, &v.arena, p));
    un_colour_sum(v.tank.ctx, v.colour, g, v.bins, p, v.tank.walls);
    double *sum = calloc((size_t)g->cell_count, sizeof *sum);
    for (int32_t q = 0; q < p->count; q++)
        for (int n = 0; n < 27; n++) {
            un_vec3 x = un_particle_position(p, q);
            int64_t c = un_grid_cell_at(g, x) + n % 3 - 1 + (n / 3 % 3 - 1) * g->stride[1] +
                        (n / 9 - 1) * g->stride[2];
            un_vec3 centre =
                un_grid_center(g, (int32_t)(c % g->n[0]), (int32_t)(c / g->n[0] % g->n[1]),
                               (int32_t)(c / g->stride[2]));
            un_vec3 d = un_scale(un_sub(centre, x), g->inverse_h);
            sum[c] += p->volume[q] / (g->h * g->h * g->h) * spline(d.x) * spline(d.y) * spline(d.z);
        }
    for (int64_t c = 0; c < g->cell_count; c++) check_near(v.colour[c], sum[c], 1e-5);
    free(sum);
    vessel_end(&v);
}

static void full_and_empty(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(1, 1, 1), 12);
    tank_solid(&v.tank, tank_box(&v.tank, un_v3(0.25, 0, 0.25), un_v3(0.5, 0.5, 0.75)),
               un_v3(0, 0, 0));
    vessel_build(&v);
    vessel_refresh(&v);
    check_near(un_colour_volume(v.tank.ctx, v.phi, &v.tank.grid, v.tank.walls, NULL), 0, 0);
    vessel_pour(&v, tank_box(&v.tank, un_v3(-1, -1, -1), un_v3(2, 2, 2)), un_v3(0, 0, 0));
    double open = 1 - 0.25 * 0.5 * 0.5;
    check_near(v.volume, open, 1e-6);
    check_near(un_colour_volume(v.tank.ctx, v.phi, &v.tank.grid, v.tank.walls, NULL), open, 2e-3);
    for (int64_t c = 0; c < v.tank.grid.cell_count; c++)
        if (v.tank.walls->volume[c] > 0) check_below(v.phi[c], -0.6 * v.tank.grid.h);
    vessel_end(&v);
}

/* A sphere of seeded particles has its volume, with an error that falls with the cells. */
static void drops_have_their_volume(void **state)
{
    (void)state;
    double error[2], want = 4.0 / 3 * UN_PI * 0.3 * 0.3 * 0.3;
    for (int n = 0; n < 2; n++) {
        vessel v;
        vessel_begin(&v, 2, un_v3(1, 1, 1), n ? 40 : 16);
        vessel_build(&v);
        vessel_pour(&v, tank_sphere(&v.tank, un_v3(0.5, 0.5, 0.5), 0.3), un_v3(0, 0, 0));
        check_near(v.volume / want, 1, 0.01);
        double volume = un_colour_volume(v.tank.ctx, v.phi, &v.tank.grid, v.tank.walls, NULL);
        error[n] = fabs(volume / want - 1);
        vessel_end(&v);
    }
    check_below(error[0], 0.03);
    check_below(error[1], 0.005);
}

/* Water around a ball that it covers has no dry gap along it. */
static void solids_are_wet_up_to_their_surface(void **state)
{
    (void)state;
    vessel v;
    vessel_begin(&v, 2, un_v3(1, 1, 1), 20);
    tank_solid(&v.tank, tank_sphere(&v.tank, un_v3(0.5, 0.35, 0.5), 0.2), un_v3(0, 0, 0));
    vessel_build(&v);
    vessel_pour(&v, tank_plane(&v.tank, un_v3(0, 0.7, 0), un_v3(0, 1, 0)), un_v3(0, 0, 0));
    const un_grid *g = &v.tank.grid;
    for (int32_t k = 1; k < g->n[2] - 1; k++)
        for (int32_t j = 1; j < 12; j++)
            for (int32_t i = 1; i < g->n[0] - 1; i++) {
                int64_t c = un_grid_cell(g, i, j, k);
                if (v.tank.walls->volume[c] > 0.1) check_below(v.phi[c], -0.2 * g->h);
            }
    check_near(un_colour_volume(v.tank.ctx, v.phi, g, v.tank.walls, NULL) / v.volume, 1, 0.01);
    vessel_end(&v);
}

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    float *first = NULL;
    double volume = 0;
    for (int32_t threads = 1; threads <= 4; threads++) {
        vessel v;
        vessel_begin(&v, threads, un_v3(1, 1, 1), 24);
        vessel_build(&v);
        vessel_pour(&v, tank_sphere(&v.tank, un_v3(0.5, 0.5, 0.5), 0.4), un_v3(0, 0, 0));
        size_t bytes = (size_t)v.tank.grid.cell_count * sizeof *first;
        double found = un_colour_volume(v.tank.ctx, v.phi, &v.tank.grid, v.tank.walls, NULL);
        if (!first) first = memcpy(malloc(bytes), v.phi, bytes);
        if (threads == 1) volume = found;
        assert_memory_equal(first, v.phi, bytes);
        assert_true(volume == found);
        vessel_end(&v);
    }
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_and_distance_are_inverse),
        cmocka_unit_test(flat_water_is_flat_up_to_walls_edges_and_corners),
        cmocka_unit_test(colours_are_sums_over_particles),
        cmocka_unit_test(full_and_empty),
        cmocka_unit_test(drops_have_their_volume),
        cmocka_unit_test(solids_are_wet_up_to_their_surface),
        cmocka_unit_test(same_bits_for_any_thread_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
