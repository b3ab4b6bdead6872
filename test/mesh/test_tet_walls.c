/* Walls on tets: open shares and hat integrals against counting, reuse from mesh to mesh. */
#include "mesh/tank.h"

/* ---- one tet ---- */

static void hat_integrals_match_counting(void **unused)
{
    (void)unused;
    static const double values[][4] = {
        {1, -1, -2, -0.5}, {-1, 1, 2, 0.5}, {1, 2, -1, -3}, {-0.1, 1, -2, 3},    {1, 1, 1, 1},
        {-1, -1, -1, -2},  {0, 1, 1, 1},    {0, 0, 1, -1},  {0.3, 0.2, 0.1, -5}, {1, 0, 0, 0}};
    for (size_t c = 0; c < sizeof values / sizeof *values; c++) {
        const double *v = values[c];
        double integral[4], counted[4] = {0}, share = 0;
        const int n = 200000;
        for (uint64_t i = 0; i < (uint64_t)n; i++) {
            /* uniform in the tet: gaps of sorted numbers */
            double a = un_random(i, 1), b = un_random(i, 2), d = un_random(i, 3), t;
            if (a > b) t = a, a = b, b = t;
            if (b > d) t = b, b = d, d = t;
            if (a > b) t = a, a = b, b = t;
            double w[4] = {a, b - a, d - b, 1 - d};
            if (w[0] * v[0] + w[1] * v[1] + w[2] * v[2] + w[3] * v[3] <= 0) continue;
            share += 1.0 / n;
            for (int k = 0; k < 4; k++) counted[k] += w[k] / n;
        }
        un_tet_open_integrals(v, integral);
        check_near(un_tet_fraction(v), share, 4e-3);
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            check_near(integral[k], counted[k], 2e-3);
            sum += integral[k];
        }
        check_near(sum, un_tet_fraction(v), 1e-14);
    }
}

/* ---- a tank ---- */

static void build(un_context *ctx, un_arena *arena, un_octree *tree, un_tets *mesh, un_vec3 size,
                  int32_t coarsest, int32_t finest, un_vec3 fine)
{
    double x[3][1] = {{fine.x}, {fine.y}, {fine.z}};
    un_octree_request request = {.count = 1, .x = {x[0], x[1], x[2]}};
    un_octree_init(ctx, tree, size, coarsest, finest);
    un_tets_init(ctx, mesh);
    check_ok(ctx, un_octree_build(tree, arena, &request));
    check_ok(ctx, un_tets_build(mesh, arena, tree));
}

/* A tank's walls on a mesh of their own. */
typedef struct sampled {
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    un_tet_walls tw;
} sampled;

static void sample(sampled *s, tank *k, int32_t finest, un_vec3 fine)
{
    tank_build_exact(k);
    un_arena_init(&s->arena, k->ctx);
    build(k->ctx, &s->arena, &s->tree, &s->mesh, k->grid.size, 16, finest, fine);
    un_tet_walls_init(k->ctx, &s->tw, k->walls);
    check_ok(k->ctx, un_tet_walls_sample(&s->tw, &s->arena, &s->mesh));
}

static void sample_end(sampled *s)
{
    un_tet_walls_free(&s->tw);
    un_tets_free(&s->mesh);
    un_octree_free(&s->tree);
    un_arena_free(&s->arena);
}

static void sums(const un_tet_walls *tw, double *tets, double *nodes)
{
    *tets = *nodes = 0;
    for (int32_t t = 0; t < tw->mesh->tet_count; t++)
        *tets += tw->open[t] * un_tets_volume(tw->mesh, t);
    for (int32_t n = 0; n < tw->mesh->node_count; n++) *nodes += tw->node_open[n];
}

/* Sides that cut the last cells: the open volume is the domain's, exactly but for the edges where
 * two sides meet in one tet. */
static void sides_and_a_ball_leave_their_volume_open(void **unused)
{
    (void)unused;
    tank k;
    un_vec3 sizes[3] = {{1, 1, 1}, {1, 0.9, 1}, {1, 0.7, 0.55}};
    for (int i = 0; i < 3; i++)
        for (int ball = 0; ball < 2; ball++) {
            tank_begin(&k, 2, sizes[i], 16);
            double r = 0.2;
            un_vec3 center = un_scale(sizes[i], 0.5);
            if (ball) tank_solid(&k, tank_sphere(&k, center, r), un_v3(0, 0, 0));
            sampled s;
            sample(&s, &k, 64, center);
            double tets, nodes, want = sizes[i].x * sizes[i].y * sizes[i].z;
            if (ball) want -= 4.0 / 3 * UN_PI * r * r * r;
            sums(&s.tw, &tets, &nodes);
            check_near(nodes, tets, 1e-6);
            check_near(tets, want, i < 2 && !ball ? 1e-6 : 6e-3);
            sample_end(&s);
            tank_end(&k);
        }
}

/* Values taken over from the last mesh are those that asking again would give. */
static void what_stays_is_kept(void **unused)
{
    (void)unused;
    tank k;
    tank_begin(&k, 2, un_v3(1, 1, 1), 16);
    tank_solid(&k, tank_sphere(&k, un_v3(0.5, 0.5, 0.5), 0.2), un_v3(0, 0, 0));
    tank_build_exact(&k);
    const un_walls *walls = k.walls;
    un_arena arena;
    un_arena_init(&arena, k.ctx);
    un_tet_walls kept;
    un_tet_walls_init(k.ctx, &kept, walls);
    for (int round = 0; round < 4; round++) {
        un_octree tree;
        un_tets mesh;
        un_tet_walls fresh;
        un_tet_walls_init(k.ctx, &fresh, walls);
        un_vec3 fine = {0.3 + 0.1 * round, 0.6, 0.2 + 0.2 * (round % 2)};
        build(k.ctx, &arena, &tree, &mesh, un_v3(1, 1, 1), 4, 64, fine);
        check_ok(k.ctx, un_tet_walls_sample(&kept, &arena, &mesh));
        check_ok(k.ctx, un_tets_build(&mesh, &arena, &tree)); /* without the parts */
        check_ok(k.ctx, un_tet_walls_sample(&fresh, &arena, &mesh));
        size_t nodes = (size_t)mesh.node_count;
        assert_memory_equal(kept.phi, fresh.phi, nodes * sizeof *kept.phi);
        assert_memory_equal(kept.phi_solid, fresh.phi_solid, nodes * sizeof *kept.phi);
        assert_memory_equal(kept.body, fresh.body, nodes * sizeof *kept.body);
        un_tet_walls_free(&fresh);
        un_tets_free(&mesh);
        un_octree_free(&tree);
    }
    un_tet_walls_free(&kept);
    un_arena_free(&arena);
    tank_end(&k);
}

/* A pillar stands in a floor whose top is a plane of nodes: it is as deep whichever comes first. */
static void overlaps_know_no_order(void **unused)
{
    (void)unused;
    float deepest[2];
    for (int32_t first = 0; first < 2; first++) {
        tank k;
        tank_begin(&k, 2, un_v3(1, 1, 1), 16);
        for (int32_t i = 0; i < 2; i++) {
            un_box3 floor = {{-1, -1, -1}, {2, 0.25, 2}},
                    pillar = {{0.3, -1, 0.3}, {0.7, 0.6, 0.7}};
            un_box3 box = i == first ? floor : pillar;
            tank_solid(&k, tank_box(&k, box.min, box.max), un_v3(0, 0, 0));
        }
        sampled s;
        sample(&s, &k, 16, un_v3(0.5, 0.5, 0.5));
        deepest[first] = 0;
        for (int32_t n = 0; n < s.mesh.node_count; n++)
            if (s.mesh.x[n].y == 0.25) deepest[first] = fminf(deepest[first], s.tw.phi_solid[n]);
        sample_end(&s);
        tank_end(&k);
    }
    check_near(deepest[0], -0.2, 1e-6);
    check_near(deepest[1], -0.2, 1e-6);
}

/* ---- thin walls ---- */

/* A tub tilted by 25 degrees, its inside a box of half a metre. */
static un_pose tub_pose(void)
{
    un_pose pose = un_pose_axis(un_v3(0, 0, 1), 25);
    pose.translation = un_v3(0.5, 0.46, 0.5);
    return pose;
}

static un_shape *tub(tank *k, double grow, double top)
{
    un_pose pose = tub_pose();
    double r = 0.25 + grow;
    un_shape *shape;
    check_ok(k->ctx, un_shape_move(k->shapes, tank_box(k, un_v3(-r, -r, -r), un_v3(r, top, r)),
                                   &pose, &shape));
    return shape;
}

static bool in_tub(un_vec3 x)
{
    un_pose pose = tub_pose();
    un_vec3 y = un_pose_invert(&pose, x);
    return fabs(y.x) < 0.25 && y.y > -0.25 && fabs(y.z) < 0.25;
}

/* Points are in tets of their own side of a wall, in the edges of a vessel too, where no node of
 * the room may be near: planes of nodes are two of its walls. */
static void points_find_their_side(void **unused)
{
    (void)unused;
    static const double walls[] = {0.5, 0.75, 1, 1.5};
    for (size_t i = 0; i < sizeof walls / sizeof *walls; i++) {
        tank k;
        tank_begin(&k, 2, un_v3(1, 1, 1), 24);
        un_shape *parts[2] = {tub(&k, walls[i] / 24, 0.25), tub(&k, 0, 1)}, *vessel;
        check_ok(k.ctx, un_shape_subtract(k.shapes, parts, 2, &vessel));
        tank_solid(&k, vessel, un_v3(0, 0, 0));
        sampled s;
        sample(&s, &k, 24, un_v3(0.5, 0.5, 0.5));
        assert_true(s.mesh.parted);
        un_pose pose = tub_pose();
        int32_t count = 0;
        for (uint64_t p = 0; p < 400000; p++) {
            un_vec3 x = un_v3(un_random(p, 1), un_random(p, 2), un_random(p, 3));
            double d = 1e30;
            un_bodies_nearest(k.bodies, x, &d);
            if (!(d > 0.01 / 24) || d > 1.0 / 24 || un_pose_invert(&pose, x).y > 0.1) continue;
            un_tets_place place;
            un_tets_locate(&s.mesh, x, &place);
            bool inside = in_tub(x), open = false;
            for (int n = 0; n < 4; n++) {
                int32_t node = s.mesh.tet[place.tet][n];
                if (!(s.mesh.side[node] > 1e-6f)) continue;
                open = true;
                assert_true(in_tub(s.mesh.x[node]) == inside);
            }
            assert_true(open);
            count++;
        }
        assert_true(count > 30000);
        sample_end(&s);
        tank_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hat_integrals_match_counting),
        cmocka_unit_test(sides_and_a_ball_leave_their_volume_open),
        cmocka_unit_test(what_stays_is_kept),
        cmocka_unit_test(overlaps_know_no_order),
        cmocka_unit_test(points_find_their_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
