/* Particles to faces and back: constants, linear fields, momentum, extrapolation, FLIP, flight. */
#include "mesh/tank.h"
#include "transfer/transfer.h"

typedef struct bath {
    tank tank;
    un_particles particles;
    un_bins *bins;
    un_arena arena;
    double *u[3], *w[3];
    uint8_t *known[3];
} bath;

static void bath_begin(bath *b, int32_t threads, int32_t count)
{
    memset(b, 0, sizeof *b);
    tank_begin(&b->tank, threads, un_v3(1, 0.8, 0.6), 20);
    tank_build(&b->tank);
    un_context *ctx = b->tank.ctx;
    size_t cells = (size_t)b->tank.grid.cell_count;
    un_arena_init(&b->arena, ctx);
    check_ok(ctx, un_bins_create(ctx, &b->tank.grid, &b->bins));
    for (int a = 0; a < 3; a++) {
        b->u[a] = un_alloc_zero(ctx, cells, sizeof(double));
        b->w[a] = un_alloc_zero(ctx, cells, sizeof(double));
        b->known[a] = un_alloc_zero(ctx, cells, 1);
    }
    un_particles *p = &b->particles;
    check_ok(ctx, un_particles_reserve(ctx, p, count));
    p->count = count;
    for (uint64_t q = 0; q < (uint64_t)count; q++) {
        p->x[0][q] = un_random(q, 1);
        p->x[1][q] = 0.8 * un_random(q, 2);
        p->x[2][q] = 0.6 * un_random(q, 3);
        for (uint64_t a = 0; a < 3; a++) p->v[a][q] = un_random(q, 4 + a) - 0.5;
        p->volume[q] = (float)(1e-5 * (0.5 + un_random(q, 7)));
        p->flags[q] = 0;
    }
    check_ok(ctx, un_bins_sort(b->bins, &b->arena, p));
}

static void bath_end(bath *b)
{
    un_context *ctx = b->tank.ctx;
    un_particles_free(ctx, &b->particles);
    un_bins_destroy(b->bins);
    un_arena_free(&b->arena);
    for (int a = 0; a < 3; a++) {
        un_free(ctx, b->u[a]);
        un_free(ctx, b->w[a]);
        un_free(ctx, b->known[a]);
    }
    tank_end(&b->tank);
}

static void to_faces(bath *b)
{
    un_transfer_to_faces(b->tank.ctx, b->u, b->w, &b->tank.grid, b->bins, &b->particles);
}

static un_vec3 face(const un_grid *g, int axis, int64_t c)
{
    int32_t i = (int32_t)(c % g->n[0]), j = (int32_t)(c / g->n[0] % g->n[1]);
    un_vec3 x = un_grid_center(g, i, j, (int32_t)(c / g->stride[2]));
    double *at[3] = {&x.x, &x.y, &x.z};
    *at[axis] -= 0.5 * g->h;
    return x;
}

static double component(un_vec3 v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

static un_vec3 linear(un_vec3 x)
{
    return un_v3(1 + x.x - 2 * x.y, 0.5 * x.z - x.x, 2 * x.y + 0.3 * x.z - 1);
}

static void constants_arrive_exactly(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 5000);
    for (int32_t q = 0; q < b.particles.count; q++)
        for (int a = 0; a < 3; a++) b.particles.v[a][q] = a + 1;
    to_faces(&b);
    int reached = 0;
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < b.tank.grid.cell_count; f++) {
            if (b.w[a][f] > 0) check_near(b.u[a][f], a + 1, 1e-12);
            if (b.w[a][f] == 0) assert_true(b.u[a][f] == 0);
            reached += b.w[a][f] > 0;
        }
    assert_true(reached > 3 * 19 * 15 * 11);
    bath_end(&b);
}

/* Particles at every corner of a cell's eighths see a linear field alike from both sides, so the
 * mean at a face inside is its value there. */
static void linear_fields_arrive_from_a_lattice(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 8 * 20 * 16 * 12);
    const un_grid *g = &b.tank.grid;
    un_particles *p = &b.particles;
    for (int32_t q = 0; q < p->count; q++) {
        double half = 0.5 * g->h;
        un_vec3 x = {(q % 40 + 0.5) * half, (q / 40 % 32 + 0.5) * half, (q / 1280 + 0.5) * half};
        un_vec3 v = linear(x);
        for (int a = 0; a < 3; a++) {
            p->x[a][q] = component(x, a);
            p->v[a][q] = component(v, a);
        }
        p->volume[q] = 1e-5f;
    }
    check_ok(b.tank.ctx, un_bins_sort(b.bins, &b.arena, p));
    to_faces(&b);
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < g->cell_count; f++) {
            un_vec3 x = face(g, a, f);
            if (un_walls_sides(b.tank.walls, x) < 0.99 * g->h) continue;
            check_near(b.u[a][f], component(linear(x), a), 1e-12);
        }
    bath_end(&b);
}

static void momentum_is_kept(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 20000);
    to_faces(&b);
    for (int a = 0; a < 3; a++) {
        double grid = 0, mass = 0, particles = 0, volume = 0;
        for (int64_t f = 0; f < b.tank.grid.cell_count; f++) {
            grid += b.w[a][f] * b.u[a][f];
            mass += b.w[a][f];
        }
        for (int32_t q = 0; q < b.particles.count; q++) {
            particles += b.particles.volume[q] * b.particles.v[a][q];
            volume += b.particles.volume[q];
        }
        check_near(grid, particles, 1e-14);
        check_near(mass, volume, 1e-14);
    }
    bath_end(&b);
}

/* One by one, for particles that have been spread since they were sorted, too. */
static void faces_get_the_sum_over_particles(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 9001);
    const un_grid *g = &b.tank.grid;
    un_particles *p = &b.particles;
    size_t bytes = (size_t)g->cell_count * sizeof(double);
    double *u = malloc(bytes), *w = malloc(bytes), size[3] = {1, 0.8, 0.6};
    p->lead = un_v3(0.1, -0.2, 0.3);
    for (int32_t q = 0; q < p->count; q++) {
        p->fall[q] = (uint8_t)(q % 129);
        for (int a = 0; a < 3; a++) {
            double move = 0.2 * g->h * (un_random((uint64_t)q, 40 + (uint64_t)a) - 0.5);
            p->x[a][q] = un_clamp(p->x[a][q] + move, 0, size[a]);
        }
    }
    to_faces(&b);
    for (int a = 0; a < 3; a++) {
        memset(u, 0, bytes);
        memset(w, 0, bytes);
        for (int32_t q = 0; q < p->count; q++) {
            un_vec3 x = un_particle_position(p, q), v = un_particle_middle(p, q);
            for (int64_t n = 0; n < 27; n++) { /* around its cell */
                int64_t f = un_grid_cell_at(g, x) + n % 3 - 1 + (n / 3 % 3 - 1) * g->stride[1] +
                            (n / 9 - 1) * g->stride[2];
                un_vec3 d = un_scale(un_sub(face(g, a, f), x), g->inverse_h);
                double share = fmax(0, 1 - fabs(d.x)) * fmax(0, 1 - fabs(d.y)) *
                               fmax(0, 1 - fabs(d.z)) * p->volume[q];
                u[f] += share * component(v, a);
                w[f] += share;
            }
        }
        for (int64_t f = 0; f < g->cell_count; f++) {
            check_near(b.w[a][f], w[f], 1e-17);
            if (w[f] > 1e-7) check_near(b.u[a][f], u[f] / w[f], 1e-9);
        }
    }
    free(u);
    free(w);
    bath_end(&b);
}

static void same_bits_for_any_thread_count(void **state)
{
    (void)state;
    double *first = NULL;
    for (int32_t threads = 1; threads <= 4; threads++) {
        bath b;
        bath_begin(&b, threads, 20000);
        to_faces(&b);
        size_t bytes = (size_t)b.tank.grid.cell_count * sizeof(double);
        if (!first) first = memcpy(malloc(bytes), b.u[1], bytes);
        assert_memory_equal(first, b.u[1], bytes);
        bath_end(&b);
    }
    free(first);
}

/* ---- extrapolation ---- */

static void layers_are_added_one_by_one(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 1);
    const un_grid *g = &b.tank.grid;
    int64_t seed = un_grid_cell(g, 8, 8, 7), other = un_grid_cell(g, 11, 8, 7);
    for (int a = 0; a < 3; a++) {
        b.known[a][seed] = b.known[a][other] = 1;
        b.u[a][seed] = 3;
        b.u[a][other] = 6;
        b.w[a][seed] = -1;
        b.w[a][other] = -2;
    }
    check_ok(b.tank.ctx, un_transfer_extrapolate(b.tank.ctx, &b.arena, b.u, b.w, b.known, g, 2));
    for (int a = 0; a < 3; a++) {
        assert_int_equal(b.known[a][seed], 1);
        assert_int_equal(b.known[a][seed + 1], 2);
        assert_int_equal(b.known[a][seed + g->stride[1]], 2);
        assert_int_equal(b.known[a][seed + 2 * g->stride[2]], 3);
        assert_int_equal(b.known[a][seed + 3 * g->stride[2]], 0);
        assert_true(b.u[a][seed + 3 * g->stride[2]] == 0);
        check_near(b.u[a][seed - g->stride[1]], 3, 0);
        check_near(b.u[a][seed + 1], 3, 0); /* first layer: neighbours of the first layer not yet */
        check_near(b.u[a][seed + 2], 6, 0);
        check_near(b.w[a][seed + 1], -1, 0);
        check_near(b.w[a][seed - 2], -1, 0);
        /* second layer, between 3 from below and 3 from the left */
        check_near(b.u[a][seed + g->stride[1] - 1], 3, 0);
        /* seed + 1 + up has 3 from the left, 3 from below, 6 from the right */
        check_near(b.u[a][seed + 1 + g->stride[1]], 3, 1e-12);
    }
    bath_end(&b);
}

static void extrapolation_fills_everything_and_stops_at_the_edge(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 1);
    const un_grid *g = &b.tank.grid;
    for (int a = 0; a < 3; a++) {
        b.known[a][0] = 1;
        b.u[a][0] = 2.5;
    }
    check_ok(b.tank.ctx, un_transfer_extrapolate(b.tank.ctx, &b.arena, b.u, NULL, b.known, g, 60));
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < g->cell_count; f++) {
            assert_true(b.known[a][f] > 0);
            check_near(b.u[a][f], 2.5, 1e-12);
        }
    bath_end(&b);
}

/* ---- back to the particles ---- */

static void set_linear(bath *b, double *const u[3], double scale)
{
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < b->tank.grid.cell_count; f++)
            u[a][f] = scale * component(linear(face(&b->tank.grid, a, f)), a);
}

/* The rate of PIC whose share in a step of dt this is. */
static double rate_of(double share, double dt)
{
    return -log(1 - share) / dt;
}

/* pic = 0 adds the change, pic = 1 takes the field, in between is in between. */
static void flip_and_pic(void **state)
{
    (void)state;
    static const double shares[] = {0, 1, 0.25};
    for (int n = 0; n < 3; n++) {
        bath b;
        bath_begin(&b, 2, 3000);
        un_particles *p = &b.particles;
        double *before = malloc((size_t)p->count * sizeof *before);
        memcpy(before, p->v[2], (size_t)p->count * sizeof *before);
        set_linear(&b, b.u, 1);
        set_linear(&b, b.w, 0.5);
        un_flip flip = {.dt = 0.01, /* without gravity nothing is held back */
                        .pic = rate_of(shares[n], 0.01),
                        .pic_quiet = rate_of(shares[n], 0.01),
                        .quiet_speed = 0.1};
        un_transfer_to_particles(b.tank.ctx, p, b.u, b.w, &b.tank.grid, &flip);
        for (int32_t q = 0; q < p->count; q++) {
            double now = linear(un_particle_position(p, q)).z, full = before[q] + 0.5 * now;
            check_near(p->v[2][q], full + shares[n] * (now - full), 1e-12);
        }
        free(before);
        bath_end(&b);
    }
}

/* The share of the quiet applies to what hardly moves, that of the moving to what does. */
static void quiet_liquid_takes_the_quiet_share(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 100);
    for (int moving = 0; moving < 2; moving++) {
        un_particles *p = &b.particles;
        for (int a = 0; a < 3; a++)
            for (int64_t f = 0; f < b.tank.grid.cell_count; f++)
                b.u[a][f] = b.w[a][f] = moving ? 2 : 1e-6;
        for (int32_t q = 0; q < p->count; q++) p->v[0][q] = 0.5;
        un_flip flip = {.dt = 0.01,
                        .pic = rate_of(0.1, 0.01),
                        .pic_quiet = rate_of(0.8, 0.01),
                        .quiet_speed = 0.1};
        un_transfer_to_particles(b.tank.ctx, p, b.u, b.w, &b.tank.grid, &flip);
        double want = moving ? 0.5 + 0.1 * (2 - 0.5) : 0.2 * 0.5;
        for (int32_t q = 0; q < p->count; q++) check_near(p->v[0][q], want, 1e-3);
    }
    bath_end(&b);
}

/* A particle that would pass three cells of the liquid around it in a step passes one. */
static void particles_stay_with_their_liquid(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 100);
    un_particles *p = &b.particles;
    double dt = 0.01, slip = b.tank.grid.h / dt;
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < b.tank.grid.cell_count; f++) b.u[a][f] = b.w[a][f] = a == 0;
    for (int32_t q = 0; q < p->count; q++) {
        double share = q % 2 ? 3 : 0.9;
        un_particle_set_velocity(p, q, un_v3(1, share * slip, 0));
    }
    un_flip flip = {.dt = dt, .quiet_speed = 1e-3};
    un_transfer_to_particles(b.tank.ctx, p, b.u, b.w, &b.tank.grid, &flip);
    for (int32_t q = 0; q < p->count; q++) {
        check_near(p->v[0][q], 1, 1e-12);
        check_near(p->v[1][q], (q % 2 ? 1 : 0.9) * slip, 1e-9 * slip);
    }
    bath_end(&b);
}

/* Particles faster than the liquid are held to it by the speed of short waves, slower ones are not.
 */
static void particles_do_not_outrun_their_liquid(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 100);
    un_particles *p = &b.particles;
    double most = 1 + UN_SLIP_SHARE + sqrt(10 * b.tank.grid.h);
    for (int a = 0; a < 3; a++)
        for (int64_t f = 0; f < b.tank.grid.cell_count; f++) b.u[a][f] = b.w[a][f] = a == 0;
    for (int32_t q = 0; q < p->count; q++)
        un_particle_set_velocity(p, q, un_v3(q % 2 ? 5 : -0.99, 0, 0));
    un_flip flip = {.dt = 1e-6, .gravity = un_v3(0, -10, 0), .quiet_speed = 1e-3};
    un_transfer_to_particles(b.tank.ctx, p, b.u, b.w, &b.tank.grid, &flip);
    for (int32_t q = 0; q < p->count; q++) check_near(p->v[0][q], q % 2 ? most : -0.99, 1e-9);
    bath_end(&b);
}

static void what_flies_gets_gravity_alone(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 100);
    set_linear(&b, b.u, 1);
    b.particles.flags[7] = UN_PARTICLE_BALLISTIC;
    un_vec3 before = un_particle_velocity(&b.particles, 7);
    un_flip flip = {
        .dt = 0.1, .gravity = un_v3(1, -9, 2), .pic = 1, .pic_quiet = 1, .quiet_speed = 1};
    un_transfer_to_particles(b.tank.ctx, &b.particles, b.u, b.w, &b.tank.grid, &flip);
    un_vec3 want = un_mad(before, flip.gravity, 0.1);
    check_near(un_length(un_sub(un_particle_velocity(&b.particles, 7), want)), 0, 1e-14);
    bath_end(&b);
}

/* Eight at a time or alone: some slow, some faster than their liquid, some flying. */
static void particles_do_not_depend_on_those_beside_them(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 3001);
    un_context *ctx = b.tank.ctx;
    const un_grid *g = &b.tank.grid;
    un_particles *p = &b.particles, alone = {0};
    float *phi = malloc((size_t)g->cell_count * sizeof *phi);
    for (int64_t c = 0; c < g->cell_count; c++) phi[c] = (float)(0.1 * (face(g, 1, c).y - 0.3));
    set_linear(&b, b.u, 1);
    set_linear(&b, b.w, 0.7);
    p->lead = un_v3(0.01, -0.05, 0.02);
    check_ok(ctx, un_particles_reserve(ctx, &alone, p->count));
    for (int32_t q = 0; q < p->count; q++) {
        for (int a = 0; a < 3; a++) p->v[a][q] *= q % 4 ? 1 : 20;
        p->fall[q] = (uint8_t)(40 * (q % 4));
        p->flags[q] = q % 50 == 0 ? UN_PARTICLE_BALLISTIC : 0;
        un_particle_set_position(&alone, q, un_particle_position(p, q));
        un_particle_set_velocity(&alone, q, un_particle_velocity(p, q));
        alone.volume[q] = p->volume[q];
        alone.fall[q] = p->fall[q];
        alone.flags[q] = p->flags[q];
    }
    alone.lead = p->lead;
    alone.count = p->count;
    un_flip flip = {
        .dt = 0.01, .gravity = un_v3(1, -9, 2), .pic = 1, .pic_quiet = 3, .quiet_speed = 1};
    double inside, one, sum = 0;
    un_transfer_to_particles(ctx, p, b.u, b.w, g, &flip);
    int64_t flying = un_transfer_mark_ballistic(ctx, p, phi, g, NULL, NULL, &inside);
    for (int32_t q = 0; q < p->count; q++) {
        un_particles part = un_particles_part(&alone, (un_part){q, q + 1});
        un_transfer_to_particles(ctx, &part, b.u, b.w, g, &flip);
        flying -= un_transfer_mark_ballistic(ctx, &part, phi, g, NULL, NULL, &one);
        sum += one;
    }
    for (int a = 0; a < 3; a++)
        assert_memory_equal(p->v[a], alone.v[a], (size_t)p->count * sizeof *p->v[a]);
    assert_memory_equal(p->fall, alone.fall, (size_t)p->count);
    assert_memory_equal(p->flags, alone.flags, (size_t)p->count);
    assert_int_equal(flying, 0);
    check_near(sum, inside, 1e-12 * inside);
    un_particles_free(ctx, &alone);
    free(phi);
    bath_end(&b);
}

/* ---- who flies ---- */

static void particles_without_liquid_around_them_fly(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 4000);
    const un_grid *g = &b.tank.grid;
    un_particles *p = &b.particles;
    float *phi = malloc((size_t)g->cell_count * sizeof *phi);
    for (int64_t c = 0; c < g->cell_count; c++)
        phi[c] = (float)(face(g, 1, c).y + 0.5 * g->h - 0.3);
    for (int32_t q = 0; q < p->count; q++) p->flags[q] = q % 2; /* what was does not count */
    double inside = 0, want = 0;
    int64_t count = un_transfer_mark_ballistic(b.tank.ctx, p, phi, g, NULL, NULL, &inside),
            flying = 0;
    for (int32_t q = 0; q < p->count; q++) {
        /* the last liquid centres lie at 0.275: in reach of what is below 0.325 */
        bool fly = p->x[1][q] > 0.325;
        if (fabs(p->x[1][q] - 0.325) > 1e-6) assert_int_equal(p->flags[q], fly);
        flying += fly;
        if (p->x[1][q] < 0.3) want += p->volume[q];
    }
    assert_int_equal(count, flying);
    assert_true(flying > 1000 && flying < 3000);
    check_near(inside, want, 1e-4 * want);
    free(phi);
    bath_end(&b);
}

static un_status extrapolate_once(un_context *ctx, void *arg)
{
    bath *b = arg;
    un_arena arena;
    un_arena_init(&arena, ctx);
    un_status status = un_transfer_extrapolate(ctx, &arena, b->u, NULL, b->known, &b->tank.grid, 1);
    un_arena_free(&arena);
    return status;
}

static void failing_allocations_are_clean(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 1, 10);
    check_allocation_failures(extrapolate_once, &b, 10);
    bath_end(&b);
}

/* The mean over particles is the velocity at their centre; moved to the face it is that of the
 * face, at walls too. */
static void faces_take_the_velocity_at_their_place(void **state)
{
    (void)state;
    bath b;
    bath_begin(&b, 2, 30000);
    un_particles *p = &b.particles;
    const un_grid *g = &b.tank.grid;
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 v = linear(un_particle_position(p, q));
        p->v[0][q] = v.x;
        p->v[1][q] = v.y;
        p->v[2][q] = v.z;
    }
    double error[2] = {0, 0};
    for (int moved = 0; moved < 2; moved++) {
        to_faces(&b);
        if (moved)
            check_ok(b.tank.ctx,
                     un_transfer_move_to_faces(b.tank.ctx, &b.arena, b.u, b.w, NULL, g, b.bins, p));
        for (int a = 0; a < 3; a++)
            for (int64_t f = 0; f < g->cell_count; f++) {
                un_vec3 x = face(g, a, f);
                if (!(b.w[a][f] > 0) || un_walls_sides(b.tank.walls, x) < 0.1 * g->h) continue;
                error[moved] = fmax(error[moved], fabs(b.u[a][f] - component(linear(x), a)));
            }
    }
    assert_true(error[0] > 0.01);
    check_below(error[1], 1e-9);
    bath_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_arrive_exactly),
        cmocka_unit_test(linear_fields_arrive_from_a_lattice),
        cmocka_unit_test(momentum_is_kept),
        cmocka_unit_test(faces_get_the_sum_over_particles),
        cmocka_unit_test(same_bits_for_any_thread_count),
        cmocka_unit_test(layers_are_added_one_by_one),
        cmocka_unit_test(extrapolation_fills_everything_and_stops_at_the_edge),
        cmocka_unit_test(flip_and_pic),
        cmocka_unit_test(quiet_liquid_takes_the_quiet_share),
        cmocka_unit_test(particles_stay_with_their_liquid),
        cmocka_unit_test(particles_do_not_outrun_their_liquid),
        cmocka_unit_test(what_flies_gets_gravity_alone),
        cmocka_unit_test(particles_do_not_depend_on_those_beside_them),
        cmocka_unit_test(particles_without_liquid_around_them_fly),
        cmocka_unit_test(failing_allocations_are_clean),
        cmocka_unit_test(faces_take_the_velocity_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
