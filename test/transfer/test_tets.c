/* Particles to tets and back: momentum kept, linear fields exact, nothing depends on threads. */
#include "check.h"

#include "advect/advect.h"
#include "transfer/transfer.h"

typedef struct world {
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_particles particles;
    un_tet_bins bins;
    float *volume;
    un_vec3 *u_node, *u_tet;
    uint8_t *known, *known_tet;
} world;

/* A graded mesh, fine around one corner, and `count` particles anywhere; volumes as their cells
 * want, times `blow`. */
static void begin(world *w, int32_t threads, int32_t count, double blow)
{
    *w = (world){.ctx = check_context_threads(threads)};
    un_arena_init(&w->arena, w->ctx);
    un_octree_init(w->ctx, &w->tree, un_v3(1, 1, 0.5), 4, 32);
    un_tets_init(w->ctx, &w->mesh);
    double fine[3] = {0.1, 0.2, 0.1};
    un_octree_request request = {.count = 1, .x = {&fine[0], &fine[1], &fine[2]}};
    check_ok(w->ctx, un_octree_build(&w->tree, &w->arena, &request));
    check_ok(w->ctx, un_tets_build(&w->mesh, &w->arena, &w->tree));
    check_ok(w->ctx, un_particles_reserve(w->ctx, &w->particles, count));
    w->particles.count = count;
    for (int32_t q = 0; q < count; q++) {
        un_particles *p = &w->particles;
        un_vec3 x = {un_random((uint64_t)q, 1), un_random((uint64_t)q, 2),
                     0.5 * un_random((uint64_t)q, 3)};
        un_tets_place place;
        un_tets_locate(&w->mesh, x, &place);
        double half = 0.5 * un_tets_size(&w->mesh, place.tet);
        p->x[0][q] = x.x, p->x[1][q] = x.y, p->x[2][q] = x.z;
        p->v[0][q] = 1 + 2 * x.x - x.y, p->v[1][q] = x.z - 3 * x.x, p->v[2][q] = 0.5 * x.y + x.z;
        p->volume[q] = (float)(blow * half * half * half);
        p->flags[q] = 0;
    }
    check_ok(w->ctx, un_tet_bins_sort(w->ctx, &w->arena, &w->bins, &w->particles, &w->mesh));
    size_t nodes = (size_t)w->mesh.node_count, tets = (size_t)w->mesh.tet_count;
    w->volume = malloc(nodes * sizeof *w->volume);
    w->u_node = malloc(nodes * sizeof *w->u_node);
    w->u_tet = malloc(tets * sizeof *w->u_tet);
    w->known = malloc(nodes);
    w->known_tet = malloc(tets);
}

static void end(world *w)
{
    un_particles_free(w->ctx, &w->particles);
    un_tet_bins_free(w->ctx, &w->bins);
    un_tets_free(&w->mesh);
    un_octree_free(&w->tree);
    un_arena_free(&w->arena);
    free(w->volume), free(w->u_node), free(w->u_tet), free(w->known), free(w->known_tet);
    check_context_end(w->ctx);
}

static un_vec3 linear(un_vec3 x)
{
    return un_v3(1 + 2 * x.x - x.y, x.z - 3 * x.x, 0.5 * x.y + x.z);
}

static void sorting_finds_each_particles_tet(void **unused)
{
    (void)unused;
    world w;
    begin(&w, 2, 5000, 1);
    for (int32_t t = 0; t < w.mesh.tet_count; t++)
        for (int32_t q = w.bins.begin[t]; q < w.bins.begin[t + 1]; q++) {
            un_tets_place place;
            assert_int_equal(w.bins.tet[q], t);
            assert_true(
                un_tets_locate_in(&w.mesh, t, un_particle_position(&w.particles, q), &place));
        }
    assert_int_equal(w.bins.begin[0], 0);
    assert_int_equal(w.bins.begin[w.mesh.tet_count], 5000);
    end(&w);
}

/* Also of particles so large that they count as 8, 64 or 512. */
static void volume_and_momentum_are_kept(void **unused)
{
    (void)unused;
    double blows[4] = {1, 8, 100, 1000};
    for (int b = 0; b < 4; b++) {
        world w;
        begin(&w, 2, 3000, blows[b]);
        check_ok(w.ctx, un_transfer_to_nodes(w.ctx, &w.arena, w.volume, w.u_node, w.known, &w.mesh,
                                             &w.bins, &w.particles));
        double volume = 0, want = 0;
        un_vec3 momentum = {0, 0, 0}, want_momentum = {0, 0, 0};
        for (int32_t n = 0; n < w.mesh.node_count; n++) {
            volume += w.volume[n];
            momentum = un_mad(momentum, w.u_node[n], w.volume[n]);
            assert_int_equal(w.known[n], w.volume[n] > 0);
        }
        for (int32_t q = 0; q < w.particles.count; q++) {
            want += w.particles.volume[q];
            want_momentum =
                un_mad(want_momentum, un_particle_velocity(&w.particles, q), w.particles.volume[q]);
        }
        check_near(volume, want, 1e-6 * want);
        check_near(momentum.x, want_momentum.x, 2e-6 * want);
        check_near(momentum.y, want_momentum.y, 2e-6 * want);
        check_near(momentum.z, want_momentum.z, 2e-6 * want);
        end(&w);
    }
}

/* What nodes change by comes to particles as these came to nodes, however large they are for their
 * cells: all momentum that the pressure gives arrives. */
static void changes_arrive_as_momentum_left(void **unused)
{
    (void)unused;
    double blows[4] = {1, 8, 60, 1000};
    for (int b = 0; b < 4; b++) {
        world w;
        begin(&w, 2, 300, blows[b]);
        un_particles *p = &w.particles;
        check_ok(w.ctx, un_transfer_to_nodes(w.ctx, &w.arena, w.volume, w.u_node, w.known, &w.mesh,
                                             &w.bins, p));
        un_vec3 given = {0, 0, 0}, got = {0, 0, 0};
        double total = 0;
        for (int32_t n = 0; n < w.mesh.node_count; n++) {
            uint64_t i = (uint64_t)n;
            w.u_node[n] = un_v3(un_random(i, 8), un_random(i, 9), un_random(i, 10));
            w.known[n] = 1;
            given = un_mad(given, w.u_node[n], w.volume[n]);
            total += w.volume[n];
        }
        for (int32_t q = 0; q < p->count; q++)
            got = un_mad(got, un_particle_velocity(p, q), -(double)p->volume[q]);
        un_transfer_nodes_to_tets(w.ctx, w.u_tet, w.u_node, w.known, &w.mesh, NULL);
        un_tet_field change = {w.u_tet, w.u_node};
        un_flip flip = {.dt = 0.01, .quiet_speed = 1};
        check_ok(w.ctx, un_transfer_tets_to_particles(w.ctx, &w.arena, p, &w.bins, &w.mesh, &change,
                                                      &change, NULL, &flip, 1));
        for (int32_t q = 0; q < p->count; q++)
            got = un_mad(got, un_particle_velocity(p, q), p->volume[q]);
        check_below(un_length(un_sub(got, given)), 1e-5 * total);
        end(&w);
    }
}

/* Tets take the mean of their nodes: what is next to nothing must not count as much as liquid. */
static void a_tiny_drop_moves_no_cells(void **unused)
{
    (void)unused;
    world w;
    begin(&w, 2, 1, 1e-4);
    check_ok(w.ctx, un_transfer_to_nodes(w.ctx, &w.arena, w.volume, w.u_node, w.known, &w.mesh,
                                         &w.bins, &w.particles));
    int32_t touched = 0;
    for (int32_t n = 0; n < w.mesh.node_count; n++) {
        touched += w.volume[n] > 0;
        assert_int_equal(w.known[n], 0);
    }
    assert_int_equal(touched, 4);
    end(&w);
}

/* Heavy and light particles side by side: means are by mass, so that momentum is kept, and so
 * are the places that means at nodes belong to. */
static void momentum_of_mixed_liquid_is_kept(void **unused)
{
    (void)unused;
    world w;
    begin(&w, 2, 3000, 2);
    un_particles *p = &w.particles;
    p->mixed = true;
    check_ok(w.ctx, un_particles_reserve(w.ctx, p, 6000));
    un_vec3 want = {0, 0, 0}, sum = {0, 0, 0};
    for (int32_t q = 0; q < p->count; q++) {
        p->density[q] = q % 2 ? 1.5f : 9000;
        p->viscosity[q] = 0;
        for (int axis = 0; axis < 3; axis++) p->v[axis][q] *= q % 2 ? 3 : -1;
        want = un_mad(want, un_particle_velocity(p, q), (double)p->volume[q] * p->density[q]);
    }
    size_t nodes = (size_t)w.mesh.node_count;
    un_vec3 *matter = malloc(nodes * sizeof *matter), *centre = malloc(nodes * sizeof *centre);
    check_ok(w.ctx, un_transfer_to_nodes(w.ctx, &w.arena, w.volume, w.u_node, w.known, &w.mesh,
                                         &w.bins, p));
    check_ok(w.ctx,
             un_transfer_matter_to_nodes(w.ctx, &w.arena, matter, w.known, &w.mesh, &w.bins, p));
    double size = 0;
    for (size_t n = 0; n < nodes; n++) {
        sum = un_mad(sum, w.u_node[n], w.volume[n] * matter[n].x);
        size += w.volume[n] * matter[n].x * un_length(w.u_node[n]);
    }
    assert_true(un_length(un_sub(sum, want)) < 1e-6 * size);
    /* a velocity linear in space comes to nodes as it is at their centres of mass */
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 v = linear(un_particle_position(p, q));
        p->v[0][q] = v.x, p->v[1][q] = v.y, p->v[2][q] = v.z;
    }
    check_ok(w.ctx, un_transfer_to_nodes(w.ctx, &w.arena, w.volume, w.u_node, w.known, &w.mesh,
                                         &w.bins, p));
    check_ok(w.ctx, un_transfer_centres(w.ctx, &w.arena, centre, w.known, &w.mesh, &w.bins, p));
    for (size_t n = 0; n < nodes; n++) {
        if (!w.known[n]) continue;
        un_vec3 moved = linear(un_add(w.mesh.x[n], centre[n]));
        assert_true(un_length(un_sub(w.u_node[n], moved)) < 1e-5);
    }
    free(matter), free(centre);
    end(&w);
}

/* A linear velocity at nodes is linear everywhere, whatever the tets hold that they took from
 * them. */
static void linear_fields_are_sampled_exactly(void **unused)
{
    (void)unused;
    world w;
    begin(&w, 2, 100, 1);
    for (int32_t n = 0; n < w.mesh.node_count; n++) {
        w.u_node[n] = linear(w.mesh.x[n]);
        w.known[n] = 1;
    }
    un_transfer_nodes_to_tets(w.ctx, w.u_tet, w.u_node, w.known, &w.mesh, NULL);
    un_tet_field field = {w.u_tet, w.u_node};
    for (uint64_t i = 0; i < 3000; i++) {
        un_vec3 x = {un_random(i, 5), un_random(i, 6), 0.5 * un_random(i, 7)};
        un_tets_place place;
        un_tets_locate(&w.mesh, x, &place);
        un_vec3 got = un_tet_field_at(&field, &w.mesh, &place), want = linear(x);
        check_near(un_length(un_sub(got, want)), 0, 1e-12);
    }
    /* the value at a centre is the tet's own */
    w.u_tet[7] = un_v3(5, 6, 7);
    un_tets_place place;
    un_tets_locate(&w.mesh, un_tets_center(&w.mesh, 7), &place);
    assert_int_equal(place.tet, 7);
    check_near(un_length(un_sub(un_tet_field_at(&field, &w.mesh, &place), w.u_tet[7])), 0, 1e-12);
    end(&w);
}

static void constants_spread_to_all_nodes(void **unused)
{
    (void)unused;
    world w;
    begin(&w, 2, 100, 1);
    memset(w.known, 0, (size_t)w.mesh.node_count);
    w.known[w.mesh.node_count / 2] = 1;
    w.u_node[w.mesh.node_count / 2] = un_v3(1, 2, 3);
    check_ok(w.ctx,
             un_transfer_extrapolate_nodes(w.ctx, &w.arena, w.u_node, NULL, w.known, &w.mesh, 100));
    for (int32_t n = 0; n < w.mesh.node_count; n++) {
        assert_int_not_equal(w.known[n], 0);
        check_near(un_length(un_sub(w.u_node[n], un_v3(1, 2, 3))), 0, 1e-12);
    }
    memset(w.known_tet, 0, (size_t)w.mesh.tet_count);
    w.known_tet[3] = 1;
    w.u_tet[3] = un_v3(4, 4, 4);
    check_ok(w.ctx, un_transfer_tets_to_nodes(w.ctx, w.u_node, w.known, w.u_tet, w.known_tet,
                                              &w.mesh, NULL));
    int32_t reached = 0;
    for (int32_t n = 0; n < w.mesh.node_count; n++) reached += w.known[n];
    assert_int_equal(reached, 4);
    end(&w);
}

/* With no PIC the change alone arrives; in quiet liquid velocities go to the mesh's at the quiet
 * rate; larger particles are damped less. */
static void particles_take_the_change(void **unused)
{
    (void)unused;
    world w;
    begin(&w, 2, 2000, 1);
    un_vec3 *zero = calloc((size_t)w.mesh.tet_count, sizeof *zero);
    for (int32_t n = 0; n < w.mesh.node_count; n++) w.u_node[n] = un_v3(10, 0, 0);
    for (int32_t t = 0; t < w.mesh.tet_count; t++) w.u_tet[t] = un_v3(10, 0, 0);
    un_tet_field u = {w.u_tet, w.u_node}, none = {zero, zero};
    un_flip flip = {.dt = 0.01, .quiet_speed = 1e-3};
    un_vec3 before = un_particle_velocity(&w.particles, 11);
    check_ok(w.ctx, un_transfer_tets_to_particles(w.ctx, &w.arena, &w.particles, &w.bins, &w.mesh,
                                                  &none, &u, NULL, &flip, 1e-3));
    check_near(w.particles.v[0][11], before.x + 10, 1e-9);
    check_near(w.particles.v[1][11], before.y, 1e-9);
    /* in motion, at a rate of 5 for the smallest */
    flip.pic = 5;
    flip.pic_quiet = 5;
    double r = un_particle_radius(w.particles.volume[11]);
    check_ok(w.ctx, un_transfer_tets_to_particles(w.ctx, &w.arena, &w.particles, &w.bins, &w.mesh,
                                                  &u, &none, NULL, &flip, r));
    check_near(w.particles.v[1][11], before.y * exp(-0.05), 1e-6);
    before = un_particle_velocity(&w.particles, 11);
    check_ok(w.ctx, un_transfer_tets_to_particles(w.ctx, &w.arena, &w.particles, &w.bins, &w.mesh,
                                                  &u, &none, NULL, &flip, r / 2));
    check_near(w.particles.v[1][11], before.y * exp(-0.05 / 4), 1e-6);
    w.particles.flags[11] = UN_PARTICLE_BALLISTIC;
    flip.gravity = un_v3(0, -10, 0);
    before = un_particle_velocity(&w.particles, 11);
    check_ok(w.ctx, un_transfer_tets_to_particles(w.ctx, &w.arena, &w.particles, &w.bins, &w.mesh,
                                                  &u, &u, NULL, &flip, r));
    check_near(w.particles.v[0][11], before.x, 0);
    check_near(w.particles.v[1][11], before.y - 0.1, 1e-12);
    free(zero);
    end(&w);
}

static void threads_give_the_same_bits(void **unused)
{
    (void)unused;
    world one, four;
    begin(&one, 1, 4000, 8);
    begin(&four, 4, 4000, 8);
    check_ok(one.ctx, un_transfer_to_nodes(one.ctx, &one.arena, one.volume, one.u_node, one.known,
                                           &one.mesh, &one.bins, &one.particles));
    check_ok(four.ctx, un_transfer_to_nodes(four.ctx, &four.arena, four.volume, four.u_node,
                                            four.known, &four.mesh, &four.bins, &four.particles));
    assert_memory_equal(one.u_node, four.u_node, (size_t)one.mesh.node_count * sizeof *one.u_node);
    assert_memory_equal(one.volume, four.volume, (size_t)one.mesh.node_count * sizeof *one.volume);
    end(&one);
    end(&four);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_finds_each_particles_tet),
        cmocka_unit_test(volume_and_momentum_are_kept),
        cmocka_unit_test(changes_arrive_as_momentum_left),
        cmocka_unit_test(a_tiny_drop_moves_no_cells),
        cmocka_unit_test(momentum_of_mixed_liquid_is_kept),
        cmocka_unit_test(linear_fields_are_sampled_exactly),
        cmocka_unit_test(constants_spread_to_all_nodes),
        cmocka_unit_test(particles_take_the_change),
        cmocka_unit_test(threads_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
