/* Probes of particles over ranks: the bits of one rank. */
#include "particles/particles.h"

#include "mesh/tank.h"

#include "group.h"

#define COUNT 6000

/* A film on the floor that gets thinner along x, so that only all of its particles together make it
 * wet up to some place; above it others move through a rectangle. */
static void fill(un_context *ctx, un_particles *p)
{
    check_ok(ctx, un_particles_reserve(ctx, p, COUNT));
    for (int32_t q = 0; q < COUNT; q++) {
        uint64_t i = (uint64_t)q;
        bool film = q % 2 == 0;
        double x = un_random(i, 1), y = film ? 0.01 : un_random(i, 2);
        un_particle_set_position(p, q, un_v3(x, y, 0.3 + 0.4 * un_random(i, 3)));
        for (int a = 0; a < 3; a++) p->v[a][q] = un_random(i, 4 + (uint64_t)a) - 0.3;
        p->volume[q] = (float)((film ? 1.4e-6 : 3e-6) * (1.2 - x) * (0.5 + un_random(i, 8)));
        p->flags[q] = 0;
    }
    p->count = COUNT;
}

static void are_those_of_one_rank(void **state)
{
    (void)state;
    un_context *ctx = group_context(), *alone = check_context();
    un_vec3 size = un_v3(1, 1, 1), down = un_v3(0, -9.81, 0);
    tank one;
    un_particles all = {0};
    tank_begin_in(&one, alone, size, 32);
    tank_build(&one);
    fill(alone, &all);
    double wanted[3] = {
        un_particles_wet(alone, &all, one.walls, down, 0, 1),
        un_particles_wet(alone, &all, one.walls, down, 2, -1),
        un_particles_flux(alone, &all, un_v3(0.5, 0.1, 0), un_v3(0.5, 0.9, 1), 0, one.grid.h)};
    assert_true(wanted[0] > 0.3 && wanted[0] < 0.95 && fabs(wanted[2]) > 0);
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        un_markers m;
        double found[3];
        un_range range = group_range(spread, COUNT);
        un_markers_init(ctx, &m);
        fill(ctx, &m.particles);
        un_particle_share share = {.ctx = ctx, .own = range, .begin = (int32_t)range.begin};
        m.share = &share;
        check_ok(ctx, un_markers_wet(ctx, &m, one.walls, down, 0, 1, &found[0]));
        check_ok(ctx, un_markers_wet(ctx, &m, one.walls, down, 2, -1, &found[1]));
        check_ok(ctx, un_markers_flux(ctx, &m, un_v3(0.5, 0.1, 0), un_v3(0.5, 0.9, 1), 0,
                                      one.grid.h, &found[2]));
        assert_memory_equal(found, wanted, sizeof found);
        m.share = NULL;
        un_markers_free(ctx, &m);
    }
    un_particles_free(alone, &all);
    tank_free(&one);
    check_context_end(alone);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_those_of_one_rank)};
    group_run(tests);
}
