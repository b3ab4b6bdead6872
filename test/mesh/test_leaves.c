/* Leaves of an octree as cells: faces, fields between them, values carried on; in 2D and 3D. */
#include "mesh/mesh.h"
#include "tank.h"
#include "trees.h"

typedef struct leaf_case {
    un_context *ctx;
    un_octree tree;
    un_leaves leaves;
} leaf_case;

static void begin(leaf_case *l, const check_tree_def *def, bool flat, uint64_t seed)
{
    check_tree_def d = *def;
    memset(l, 0, sizeof *l);
    if (flat) d.size.z = 0;
    l->ctx = check_context();
    check_build_tree(l->ctx, &l->tree, &d, seed);
    check_ok(l->ctx, un_leaves_build(&l->leaves, l->ctx, &l->tree));
}

static void end(leaf_case *l)
{
    un_leaves_free(&l->leaves);
    un_octree_free(&l->tree);
    check_context_end(l->ctx);
}

/* Every side has its faces, whose areas fill it; each face is owned once. */
static void numbers_faces(void **state)
{
    (void)state;
    for (int n = 0; n < 2 * CHECK_TREE_COUNT; n++) {
        leaf_case l;
        begin(&l, &check_trees[n / 2], n % 2, (uint64_t)n);
        const un_leaves *m = &l.leaves;
        const char *wrong = un_leaves_validate(m);
        if (wrong) fail_msg("tree %d: %s", n, wrong);
        double sides = 0, boundary = 0, faces = 0;
        for (int32_t c = 0; c < m->count; c++) {
            double h = un_leaf_size(m, c);
            sides += 2 * m->dim * (m->dim == 2 ? h : h * h);
        }
        for (int32_t f = 0; f < m->face_count; f++) {
            faces += un_leaf_face_area(m, f);
            if (m->face_other[f] < 0) boundary += un_leaf_face_area(m, f);
        }
        check_near(2 * faces - boundary, sides, 1e-9 * sides);
        end(&l);
    }
}

/* Families find what is around them at once; each cube's leaf is the one that a search finds. */
static void finds_what_is_near(void **state)
{
    (void)state;
    for (int n = 0; n < 2 * CHECK_TREE_COUNT; n++) {
        leaf_case l;
        begin(&l, &check_trees[n / 2], n % 2, (uint64_t)n);
        const un_leaves *m = &l.leaves;
        for (int32_t c = 0; c < m->count; c++) {
            int32_t s = 1 << (l.tree.level_max - l.tree.level[c]), at[3];
            for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(l.tree.key[c] >> a);
            for (int k = 0; k < m->near_count; k++) {
                int32_t there =
                    un_octree_find_at(&l.tree, at[0] + (k % 3 - 1) * s, at[1] + (k / 3 % 3 - 1) * s,
                                      m->dim == 2 ? 0 : at[2] + (k / 9 - 1) * s);
                assert_int_equal(un_leaf_near(m, c)[k], there);
                if (there < 0) continue;
                assert_int_equal(un_octree_find_near(&l.tree, c, m->x[there]), there);
                if (m->tree->level[there] <= m->tree->level[c])
                    assert_int_equal(un_leaves_step(m, c, m->x[there]), there);
            }
        }
        end(&l);
    }
}

/* Ranges of what is around a leaf hold it all once, whatever is empty. */
static void joins_ranges_around(void **state)
{
    (void)state;
    for (int n = 0; n < 2 * CHECK_TREE_COUNT; n++) {
        leaf_case l;
        begin(&l, &check_trees[n / 2], n % 2, (uint64_t)n);
        const un_leaves *m = &l.leaves;
        int32_t *first = un_alloc(l.ctx, (size_t)m->count + 1, sizeof *first);
        uint8_t *seen = un_alloc(l.ctx, (size_t)m->count, 1);
        first[0] = 0;
        for (int32_t c = 0; c < m->count; c++)
            first[c + 1] = first[c] + (int32_t)(3 * un_random((uint64_t)c, 5));
        for (int32_t c = 0; c < m->count; c++) {
            int32_t range[UN_LEAVES_AROUND][2], wanted = 0, found = 0;
            memset(seen, 0, (size_t)m->count);
            for (int k = 0; k < m->near_count; k++) {
                int32_t a, b;
                un_leaves_range(m, c, k, &a, &b);
                for (int32_t q = a; q < b; q++) {
                    if (!seen[q]) wanted += first[q + 1] - first[q];
                    seen[q] = 1;
                }
            }
            int count = un_leaves_around(m, first, c, range);
            for (int k = 0; k < count; k++) {
                found += range[k][1] - range[k][0];
                for (int32_t q = 0; q < m->count; q++)
                    if (first[q + 1] > range[k][0] && first[q] < range[k][1])
                        assert_true(seen[q] || first[q] == first[q + 1]);
            }
            assert_int_equal(found, wanted);
        }
        un_free(l.ctx, first);
        un_free(l.ctx, seen);
        end(&l);
    }
}

static double linear(un_vec3 x)
{
    return 0.3 + 1.7 * x.x - 0.6 * x.y + 0.9 * x.z;
}

static un_vec3 linear_flow(un_vec3 x)
{
    return un_v3(0.2 + x.x - 2 * x.y + 0.5 * x.z, 1.5 * x.x + 0.7 * x.y - x.z,
                 -0.4 + 0.3 * x.x + x.y + 0.1 * x.z);
}

static const check_tree_def graded = {{1, 1, 1}, 4, 32, 30, 1, false};

/* Away from the boundary linear fields are exact, whatever the sizes. */
static void keeps_linear_fields(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        leaf_case l;
        begin(&l, &graded, flat, 7);
        const un_leaves *m = &l.leaves;
        float *field = un_alloc(l.ctx, (size_t)m->count, sizeof *field);
        double *u = un_alloc(l.ctx, (size_t)m->face_count, sizeof *u), worst = 0;
        for (int32_t c = 0; c < m->count; c++) field[c] = (float)linear(m->x[c]);
        for (int32_t f = 0; f < m->face_count; f++)
            u[f] = un_vec3_at(linear_flow(un_leaf_face_center(m, f)), un_leaf_face_axis(m, f));
        un_leaves_flow flow = {0};
        check_ok(l.ctx, un_leaves_flow_build(&flow, m, u, NULL));
        for (uint64_t i = 0; i < 4000; i++) {
            un_vec3 x = {0.3 + 0.4 * un_random(i, 1), 0.3 + 0.4 * un_random(i, 2),
                         flat ? 0 : 0.3 + 0.4 * un_random(i, 3)};
            int32_t c = un_octree_find(&l.tree, x);
            check_near(un_leaves_sample(m, field, c, x), linear(x), 1e-6);
            un_vec3 v = un_leaves_flow_at(&flow, c, x), exact = linear_flow(x);
            if (flat) exact.z = 0;
            worst = fmax(worst, un_length(un_sub(v, exact)));
            check_near(un_length(un_sub(v, un_leaves_velocity_at(m, u, x))), 0, 1e-15);
        }
        check_near(worst, 0, 1e-6); /* patches are in single precision */
        un_leaves_flow_free(l.ctx, &flow);
        un_free(l.ctx, field);
        un_free(l.ctx, u);
        end(&l);
    }
}

/* Random velocities have no jump where a leaf meets a larger one. */
static void is_continuous(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        leaf_case l;
        begin(&l, &graded, flat, 11);
        if (!flat) { /* the same points once more, balanced at corners */
            un_arena arena;
            un_arena_init(&arena, l.ctx);
            check_points points = check_make_points(l.ctx, &graded, &l.tree, 11);
            un_octree_request request = check_request(&points);
            l.tree.corners = true;
            check_ok(l.ctx, un_octree_build(&l.tree, &arena, &request));
            check_ok(l.ctx, un_leaves_build(&l.leaves, l.ctx, &l.tree));
            check_free_points(l.ctx, &points);
            un_arena_free(&arena);
        }
        const un_leaves *m = &l.leaves;
        double *u = un_alloc(l.ctx, (size_t)m->face_count, sizeof *u), worst = 0;
        for (int32_t f = 0; f < m->face_count; f++) u[f] = un_random((uint64_t)f, 5) - 0.5;
        for (int32_t f = 0; f < m->face_count; f++) {
            int32_t c = m->face_side[f] / 6, other = m->face_other[f];
            if (other < 0) continue;
            un_vec3 x = un_leaf_face_center(m, f);
            double h = un_leaf_size(m, c), d[3] = {0};
            for (int a = 0; a < m->dim; a++)
                if (a != un_leaf_face_axis(m, f))
                    d[a] = 0.9 * h * (un_random((uint64_t)(3 * f + a), 6) - 0.5);
            x = un_add(x, un_v3(d[0], d[1], d[2]));
            un_leaves_flow flow = {.leaves = m, .u = u};
            double jump = un_length(
                un_sub(un_leaves_flow_at(&flow, c, x), un_leaves_flow_at(&flow, other, x)));
            worst = fmax(worst, jump);
        }
        check_near(worst, 0, 1e-6);
        un_free(l.ctx, u);
        end(&l);
    }
}

/* Many points in one go have the values and slopes of single ones. */
static void samples_many_points_alike(void **state)
{
    enum { COUNT = 2000 };
    static double x[3][COUNT], value[COUNT];
    static un_vec3 slope[COUNT];
    static int32_t leaf[COUNT];
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        leaf_case l;
        begin(&l, &graded, flat, 13);
        const un_leaves *m = &l.leaves;
        float *field = un_alloc(l.ctx, (size_t)m->count, sizeof *field);
        for (int32_t c = 0; c < m->count; c++) field[c] = (float)un_random((uint64_t)c, 7);
        for (int i = 0; i < COUNT; i++) {
            for (int a = 0; a < 3; a++) x[a][i] = un_random((uint64_t)i, (uint64_t)a);
            if (flat) x[2][i] = 0;
            leaf[i] = un_octree_find(&l.tree, un_v3(x[0][i], x[1][i], x[2][i]));
        }
        un_leaves_sample_points(m, field, INFINITY, COUNT, leaf,
                                (const double *const[]){x[0], x[1], x[2]}, value, slope);
        for (int i = 0; i < COUNT; i++) {
            un_vec3 at = {x[0][i], x[1][i], x[2][i]};
            check_near(value[i], un_leaves_sample(m, field, leaf[i], at), 1e-6);
            un_vec3 single = un_leaves_slope(m, field, leaf[i], at);
            check_near(un_length(un_sub(slope[i], single)), 0, 1e-4);
        }
        un_free(l.ctx, field);
        end(&l);
    }
}

/* Far from its zero a distance is a plane in each leaf; nearer it is exact. */
static void samples_far_points_by_planes(void **state)
{
    enum { COUNT = 2000 };
    static double x[3][COUNT], value[COUNT];
    static un_vec3 slope[COUNT];
    static int32_t leaf[COUNT];
    const double far = 2;
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        leaf_case l;
        begin(&l, &graded, flat, 13);
        const un_leaves *m = &l.leaves;
        const un_vec3 n = un_normalize(un_v3(1, 2, flat ? 0 : -1));
        float *field = un_alloc(l.ctx, (size_t)m->count, sizeof *field);
        for (int32_t c = 0; c < m->count; c++) field[c] = (float)(un_dot(n, m->x[c]) - 0.6);
        for (int i = 0; i < COUNT; i++) {
            for (int a = 0; a < 3; a++) x[a][i] = un_random((uint64_t)i, (uint64_t)a);
            if (flat) x[2][i] = 0;
            leaf[i] = un_octree_find(&l.tree, un_v3(x[0][i], x[1][i], x[2][i]));
        }
        un_leaves_sample_points(m, field, far, COUNT, leaf,
                                (const double *const[]){x[0], x[1], x[2]}, value, slope);
        int planes = 0;
        for (int i = 0; i < COUNT; i++) {
            un_vec3 at = {x[0][i], x[1][i], x[2][i]};
            double h = un_leaf_size(m, leaf[i]), exact = un_dot(n, at) - 0.6;
            if (fabs((double)field[leaf[i]]) <= far * h) {
                check_near(value[i], un_leaves_sample(m, field, leaf[i], at), 1e-6);
                continue;
            }
            planes++;
            assert_true(un_length(slope[i]) < 1 + 1e-12);
            check_near(value[i], exact, 0.6 * h);
            if (!m->even[leaf[i]]) continue;
            check_near(value[i], exact, 1e-5);
            check_near(un_length(un_sub(slope[i], n)), 0, 1e-4);
        }
        assert_true(planes > COUNT / 20 && planes < COUNT);
        un_free(l.ctx, field);
        end(&l);
    }
}

/* Velocities at eight points are those at single ones, in any leaves, with patches made
 * beforehand or not. */
static void flows_at_eight_alike(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool flat = k & 1, patches = k & 2;
        leaf_case l;
        begin(&l, &graded, flat, 13);
        const un_leaves *m = &l.leaves;
        double *u[2];
        un_leaves_flow flow[2] = {{.leaves = m}, {.leaves = m}};
        un_flow_cache cache[2];
        for (int i = 0; i < 2; i++) {
            u[i] = un_alloc(l.ctx, (size_t)m->face_count, sizeof **u);
            for (int32_t f = 0; f < m->face_count; f++)
                u[i][f] = un_random((uint64_t)f, (uint64_t)i) - 0.5;
            flow[i].u = u[i];
        }
        if (patches)
            check_ok(l.ctx, un_leaves_flow_build_two(&flow[0], &flow[1], m, u[0], u[1], NULL));
        for (int i = 0; i < 2; i++) un_flow_cache_init(&cache[i], &flow[i]);
        int32_t leaf[8] = {0};
        for (uint64_t n = 0; n < 500; n++) {
            un_eight x, out[2];
            for (int i = 0; i < 8; i++) {
                uint64_t id = 8 * n + (uint64_t)i;
                /* every second time the leaves of the last */
                if (!(n & 1)) leaf[i] = (int32_t)(un_random(id, 2) * m->count);
                un_vec3 c = m->x[leaf[i]], at = un_scale(un_v3(1, 1, 1), un_leaf_size(m, leaf[i]));
                x.of[0][i] = c.x + (un_random(id, 3) - 0.5) * at.x;
                x.of[1][i] = c.y + (un_random(id, 4) - 0.5) * at.y;
                x.of[2][i] = flat ? 0 : c.z + (un_random(id, 5) - 0.5) * at.z;
            }
            un_flow_cache_eight(&out[0], &cache[0], leaf, &x, &out[1], &cache[1]);
            for (int i = 0; i < 16; i++) {
                int q = i / 2;
                const un_eight *found = &out[i & 1];
                un_vec3 at = {x.of[0][q], x.of[1][q], x.of[2][q]};
                un_vec3 v = un_leaves_flow_at(&flow[i & 1], leaf[q], at);
                un_vec3 got = {found->of[0][q], found->of[1][q], found->of[2][q]};
                check_near(un_length(un_sub(v, got)), 0, 1e-6);
            }
        }
        for (int i = 0; i < 2; i++) {
            un_leaves_flow_free(l.ctx, &flow[i]);
            un_free(l.ctx, u[i]);
        }
        end(&l);
    }
}

/* Eight leaves at once are what each is by itself; points near their sides may lie in or out. */
static void eights_are_what_each_is(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        leaf_case l;
        begin(&l, &graded, flat, 29);
        const un_leaves *m = &l.leaves;
        int in = 0, out = 0;
        for (uint64_t n = 0; n < 500; n++) {
            un_eight x, centre;
            double edge[8];
            int32_t leaf[8];
            for (int i = 0; i < 8; i++) {
                uint64_t id = 8 * n + (uint64_t)i;
                leaf[i] = n < 8 ? m->count - 1 - i : (int32_t)(un_random(id, 2) * m->count);
                un_vec3 at = m->x[leaf[i]];
                double wide = 1.3 * un_leaf_size(m, leaf[i]), c[3] = {at.x, at.y, at.z};
                for (int a = 0; a < 3; a++)
                    x.of[a][i] = c[a] + (un_random(id, 3 + (uint64_t)a) - 0.5) * wide;
            }
            un_leaves_of_eight(&centre, edge, m, leaf);
            uint32_t inside = un_leaves_inside_eight(m, leaf, &x);
            for (int i = 0; i < 8; i++) {
                int32_t c = leaf[i];
                un_vec3 way = un_sub(un_v3(x.of[0][i], x.of[1][i], x.of[2][i]), m->x[c]);
                double half = 0.5 * un_leaf_size(m, c);
                bool here =
                    fabs(way.x) < half && fabs(way.y) < half && (flat || fabs(way.z) < half);
                assert_int_equal(inside >> i & 1, here);
                in += here;
                out += !here;
                assert_true(edge[i] == un_leaf_size(m, c) && centre.of[0][i] == m->x[c].x &&
                            centre.of[1][i] == m->x[c].y && centre.of[2][i] == m->x[c].z);
            }
        }
        assert_true(in > 1000 && out > 1000);
        end(&l);
    }
}

static void carries_values(void **state)
{
    (void)state;
    leaf_case a, b;
    begin(&a, &graded, false, 3);
    begin(&b, &graded, false, 4);
    double *p = un_alloc(a.ctx, (size_t)a.leaves.count, sizeof *p);
    double *q = un_alloc(a.ctx, (size_t)b.leaves.count, sizeof *q);
    for (int32_t c = 0; c < a.leaves.count; c++) p[c] = c + 1;
    un_leaf_memory memory = {0};
    check_ok(a.ctx, un_leaf_memory_keep(a.ctx, &memory, &a.tree, p));
    un_leaf_memory_recall(a.ctx, &memory, &b.tree, q);
    for (int32_t c = 0; c < b.leaves.count; c++)
        assert_int_equal((int)q[c] - 1, un_octree_find(&a.tree, un_octree_corner(&b.tree, c)));
    un_leaf_memory_free(a.ctx, &memory);
    un_free(a.ctx, p);
    un_free(a.ctx, q);
    end(&a);
    end(&b);
}

/* A wall that is thin for some of the leaves takes away its own volume wherever it stands, also
 * where the domain ends inside the brick. */
static void walls_take_their_volume(void **state)
{
    (void)state;
    const check_tree_def def = {{1, 1, 0.3125}, 8, 16, 12, 0, false};
    for (int n = 0; n < 16; n++) {
        tank t;
        un_octree tree;
        un_leaves leaves = {0};
        un_leaf_walls walls = {0};
        double at = 0.3 + 0.011 * n, thick = 0.15, open = 0;
        tank_begin(&t, 1, def.size, def.finest);
        tank_solid(&t, tank_box(&t, un_v3(at, -1, -1), un_v3(at + thick, 2, 2)), un_v3(0, 0, 0));
        tank_build_exact(&t);
        check_build_tree(t.ctx, &tree, &def, (uint64_t)n);
        check_ok(t.ctx, un_leaves_build(&leaves, t.ctx, &tree));
        check_ok(t.ctx, un_leaf_walls_sample(&walls, t.ctx, t.walls, &leaves));
        for (int32_t c = 0; c < leaves.count; c++)
            open += walls.volume[c] * un_leaf_volume(&leaves, c);
        check_near(open, (1 - thick) * def.size.z, 1e-6);
        un_leaf_walls_free(&walls);
        un_leaves_free(&leaves);
        un_octree_free(&tree);
        tank_end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_faces),           cmocka_unit_test(finds_what_is_near),
        cmocka_unit_test(joins_ranges_around),     cmocka_unit_test(samples_far_points_by_planes),
        cmocka_unit_test(flows_at_eight_alike),    cmocka_unit_test(keeps_linear_fields),
        cmocka_unit_test(is_continuous),           cmocka_unit_test(samples_many_points_alike),
        cmocka_unit_test(carries_values),          cmocka_unit_test(walls_take_their_volume),
        cmocka_unit_test(eights_are_what_each_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
