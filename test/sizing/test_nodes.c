/* Sizes on other nodes than those of tets: the centres of an octree's leaves, and tets whose nodes
 * were moved. */
#include "fields.h"

/* ---- centres of leaves ---- */

#define NEAR_MAX 64

typedef struct leaves {
    un_sizing_nodes nodes;
    un_vec3 *x;
    int32_t *first, *near;
    uint8_t *count;
    float *length, *phi, *wall, *solid, *size;
    un_vec3 *velocity;
    int32_t *node; /* by leaf: the tets' node at its centre */
} leaves;

/* Leaves that share a face, an edge or a corner with this one. */
static int32_t leaves_around(const un_octree *tree, int32_t leaf, un_vec3 x, int32_t *near)
{
    double h = un_octree_size(tree, tree->level[leaf]);
    un_vec3 top = un_v3(tree->h * tree->n[0], tree->h * tree->n[1], tree->h * tree->n[2]);
    int32_t count = 0;
    for (int k = 0; k < 64; k++) {
        un_vec3 at = un_v3(x.x + h * (0.5 * (k % 4) - 0.75), x.y + h * (0.5 * (k / 4 % 4) - 0.75),
                           x.z + h * (0.5 * (k / 16) - 0.75));
        if (!(at.x > 0 && at.y > 0 && at.z > 0 && at.x < top.x && at.y < top.y && at.z < top.z))
            continue;
        int32_t other = un_octree_find(tree, at), j = 0;
        while (j < count && near[j] != other) j++;
        if (j == count && other != leaf) near[count++] = other;
    }
    return count;
}

static int32_t node_at(const un_tets *mesh, un_vec3 x)
{
    un_tets_place place;
    un_tets_locate(mesh, x, &place);
    for (int i = 0; i < 4; i++) {
        int32_t n = mesh->tet[place.tet][i];
        if (un_length(un_sub(mesh->x[n], x)) < 1e-9) return n;
    }
    fail_msg("no node at %g %g %g", x.x, x.y, x.z);
    return -1;
}

/* Fields are those of the tets' nodes at the same places. */
static void leaves_begin(leaves *l, const bench *b)
{
    const un_octree *tree = &b->tree;
    size_t count = (size_t)tree->leaf_count;
    *l = (leaves){.x = malloc(count * sizeof *l->x),
                  .first = malloc((count + 1) * sizeof *l->first),
                  .near = malloc(NEAR_MAX * count * sizeof *l->near),
                  .count = malloc(count),
                  .length = malloc(NEAR_MAX * count * sizeof *l->length),
                  .phi = malloc(count * sizeof *l->phi),
                  .wall = malloc(count * sizeof *l->wall),
                  .solid = malloc(count * sizeof *l->solid),
                  .size = malloc(count * sizeof *l->size),
                  .velocity = malloc(count * sizeof *l->velocity),
                  .node = malloc(count * sizeof *l->node)};
    for (int32_t c = 0; c < tree->leaf_count; c++) {
        double h = 0.5 * un_octree_size(tree, tree->level[c]);
        l->x[c] = un_add(un_octree_corner(tree, c), un_v3(h, h, h));
        int32_t n = l->node[c] = node_at(&b->mesh, l->x[c]);
        l->phi[c] = b->phi[n];
        l->wall[c] = b->def.wall ? b->def.wall[n] : 0;
        l->solid[c] = b->def.solid ? b->def.solid[n] : 0;
        l->velocity[c] = b->velocity ? b->velocity[n] : un_v3(0, 0, 0);
    }
    l->nodes = (un_sizing_nodes){.count = tree->leaf_count,
                                 .dim = 3,
                                 .x = l->x,
                                 .level = tree->level,
                                 .cell = tree->edge,
                                 .finest = tree->h,
                                 .coarsest = un_octree_size(tree, 0),
                                 .near_first = l->first,
                                 .near_count = l->count,
                                 .near = l->near,
                                 .near_length = l->length};
}

/* Sizes, with the scene and the time of the tets'. */
static void leaves_evaluate(leaves *l, bench *b)
{
    un_sizing_nodes *nodes = &l->nodes;
    un_sizing_def def = b->def;
    int32_t k = 0;
    un_arena_reset(&b->arena);
    check_ok(b->ctx, un_sizing_choose(b->ctx, &b->arena, nodes, l->phi));
    for (int32_t c = 0; c < nodes->count; c++) {
        l->first[c] = k;
        l->count[c] = 0;
        if (!nodes->used[c]) continue;
        l->count[c] = (uint8_t)leaves_around(&b->tree, c, l->x[c], l->near + k);
        for (int32_t j = 0; j < l->count[c]; j++, k++)
            l->length[k] = (float)un_length(un_sub(l->x[l->near[k]], l->x[c]));
    }
    l->first[nodes->count] = k;
    def.nodes = nodes;
    def.phi = l->phi;
    def.wall = b->def.wall ? l->wall : NULL;
    def.solid = b->def.solid ? l->solid : NULL;
    def.velocity = b->velocity ? l->velocity : NULL;
    check_ok(b->ctx, un_sizing_evaluate(b->ctx, &b->arena, l->size, &def));
}

static void leaves_end(leaves *l)
{
    void *arrays[] = {l->x,    l->first, l->near, l->count,    l->length, l->phi,
                      l->wall, l->solid, l->size, l->velocity, l->node};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* How sizes at centres compare with those of tets at the same places: the largest difference, over
 * what is allowed: how much sizes may change across a cell, and a share of the size. The mean
 * ratio.
 */
typedef struct comparison {
    double worst, ratio;
    int32_t count;
} comparison;
static comparison compare(const leaves *l, const bench *b, double share)
{
    comparison r = {0};
    for (int32_t c = 0; c < l->nodes.count; c++) {
        if (!(l->phi[c] <= 1.0 / 64)) continue;
        double own = l->size[c], tets = b->size[l->node[c]];
        double change = 0.3 * un_octree_size(&b->tree, b->tree.level[c]);
        r.worst = fmax(r.worst, fabs(own - tets) / (change + share * tets));
        r.ratio += own / tets;
        r.count++;
    }
    r.ratio /= r.count;
    return r;
}

static const double level[6] = {0.5, 0.47, 0.5, 0, 1, 0};

static double wavy_set(un_vec3 x, const double *p)
{
    return 0.9 * (x.y - 0.5 - 0.03 * sin(p[0] * x.x) * sin(p[0] * x.z));
}

static un_vec3 shear(un_vec3 x)
{
    return un_v3(20 * x.y + 5 * x.y * x.y, 3 * x.x, x.z);
}

static void set_velocity(bench *b)
{
    b->velocity = malloc((size_t)b->mesh.node_count * sizeof *b->velocity);
    for (int32_t n = 0; n < b->mesh.node_count; n++)
        b->velocity[n] = b->phi[n] < 0 ? shear(b->mesh.x[n]) : un_v3(1e9, -1e9, NAN);
    b->def.velocity = b->velocity;
}

#define SOLID "solids = { sphere { center = {.5, .3, .5}, radius = .2 } }, "

/* Every term alone, and all together, on even and on graded cells. */
static void leaves_get_the_sizes_of_tets(void **state)
{
    (void)state;
    const double ball[4] = {0.51, 0.49, 0.503, 0.3}, waves[1] = {12};
    const double shallow[6] = {0.5, 0.16, 0.5, 0, 1, 0};
    const struct {
        const char *name, *text;
        level_set *set;
        const double *p;
        double share; /* of sizes that may differ beyond those of a cell's distance */
    } cases[] = {
        {"ball", ALONE("curvature = true"), ball_set, ball, 0.01},
        {"flat", "", plane_set, level, 0.01},
        {"waves", ALONE("curvature = true"), wavy_set, waves, 0.2},
        {"solid", SOLID ALONE("solid_curvature = true"), plane_set, level, 0.01},
        {"strain", ALONE("strain = true"), plane_set, level, 0.01},
        {"film", ALONE("film = true"), plane_set, shallow, 0.01},
        {"camera",
         "sizing = { depth = false, camera = { eye = {.2, .5, -2}, target = {.2, .5, 0}, "
         "fov = 8, aspect = 1 } }",
         wavy_set, waves, 0.1},
        {"custom", ALONE("custom = function(x, y, z, t) return .02 + .2 * x end"), plane_set, level,
         0},
        /* paths along the neighbours differ */
        {"limit", ALONE("custom = function(x, y, z) return .02 + .5 * math.sqrt(x^2 + z^2) end"),
         plane_set, level, 0.15},
        {"all", SOLID "sizing = { custom = function(x) return .02 + x end }", wavy_set, waves,
         0.15},
    };
    for (size_t i = CHECK_SHORT; i < 2 * sizeof cases / sizeof *cases; i += 1 + CHECK_SHORT) {
        char text[600];
        bench b;
        leaves l;
        bool graded = i % 2;
        snprintf(text, sizeof text,
                 "scene { method = 'tet', " WATER ", detail = { coarsest = %d, finest = 128 }, "
                 "%s }",
                 graded ? 2 : 1, cases[i / 2].text);
        bench_begin(&b, 2, text);
        if (graded)
            bench_graded(&b, 2000, 40);
        else
            bench_uniform(&b, 32);
        bench_fields(&b, cases[i / 2].set, cases[i / 2].p);
        set_velocity(&b);
        float *wall = malloc((size_t)b.mesh.node_count * sizeof *wall);
        for (int32_t n = 0; n < b.mesh.node_count; n++) wall[n] = (float)b.mesh.x[n].y;
        b.def.wall = wall;
        bench_evaluate(&b);
        leaves_begin(&l, &b);
        leaves_evaluate(&l, &b);
        /* between cells of different sizes, curvature of tets is up to an eighth off */
        double share = cases[i / 2].share + (graded ? 0.2 : 0);
        comparison r = compare(&l, &b, share);
        assert_true(r.count > 4000);
        if (!(r.worst < 1 && fabs(r.ratio - 1) < 0.1))
            fail_msg("%s, graded %d: worst %g, mean ratio %g", cases[i / 2].name, graded, r.worst,
                     r.ratio);
        leaves_end(&l);
        free(wall);
        bench_end(&b);
    }
}

static double sheet_set(un_vec3 x, const double *p)
{
    return fabs(x.y - 0.511) - 0.5 * p[0];
}

/* A ball gets cells of a quarter of its radius, as it does on tets, and thin sheets fine ones. */
static void leaves_show_balls_and_sheets(void **state)
{
    (void)state;
    const double h = 1.0 / 32;
    const struct {
        level_set *set;
        double p[4], least, most; /* cells */
    } cases[] = {{ball_set, {0.51, 0.49, 0.503, 0.3}, 0.95 * 8 * 0.3, 1.05 * 8 * 0.3},
                 {sheet_set, {1 * h}, 0.2, 0.71},
                 {sheet_set, {2 * h}, 0.2, 0.71},
                 {sheet_set, {4.1 * h}, 3, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b;
        leaves l;
        bench_make(&b,
                   "scene { method = 'tet', " WATER
                   ", detail = { coarsest = 1, finest = 256 }," ALONE("curvature = true") " }",
                   32, cases[i].set, cases[i].p);
        leaves_begin(&l, &b);
        leaves_evaluate(&l, &b);
        double least = INFINITY;
        for (int32_t c = 0; c < l.nodes.count; c++)
            if (fabs(l.phi[c]) < h) least = fmin(least, l.size[c] / h);
        if (!(least >= cases[i].least && least <= cases[i].most))
            fail_msg("case %d: %g cells", (int)i, least);
        leaves_end(&l);
        bench_end(&b);
    }
}

static uint64_t hash_leaves(int32_t threads)
{
    bench b;
    leaves l;
    uint64_t hash = 0;
    bench_begin(&b, threads,
                "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 128 }, " SOLID
                "}");
    bench_graded(&b, 3000, 5);
    bench_fields(&b, wavy_set, (const double[1]){30});
    set_velocity(&b);
    leaves_begin(&l, &b);
    leaves_evaluate(&l, &b);
    for (int32_t c = 0; c < l.nodes.count; c++) {
        uint32_t bits;
        memcpy(&bits, &l.size[c], sizeof bits);
        hash = un_hash64(hash ^ bits);
    }
    /* what is no number does no harm */
    const float odd[6] = {NAN, INFINITY, -INFINITY, 0, 1e30f, -1e30f};
    for (int32_t c = 0; c < l.nodes.count; c++) {
        double roll = un_random((uint64_t)c, 1);
        if (roll < 0.2) l.phi[c] = odd[(int)(roll * 1e6) % 6];
        l.velocity[c] = un_v3(odd[(int)(roll * 1e7) % 6], 1, 2);
    }
    leaves_evaluate(&l, &b);
    for (int32_t c = 0; c < l.nodes.count; c++)
        assert_true(l.size[c] >= (float)(1.0 / 128) && l.size[c] <= 0.25f);
    leaves_end(&l);
    bench_end(&b);
    return hash;
}

static void leaves_with_threads(void **state)
{
    (void)state;
    uint64_t one = hash_leaves(1);
    assert_true(hash_leaves(2) == one);
    assert_true(hash_leaves(3) == one);
}

/* ---- two dimensions ---- */

/* A disc has the curvature of a ridge: cells of half its radius. */
static void squares(void **state)
{
    (void)state;
    enum { SIDE = 48, COUNT = SIDE * SIDE };
    static un_vec3 x[COUNT];
    static int32_t first[COUNT + 1], near[4 * COUNT];
    static uint8_t level_of[COUNT], count[COUNT];
    static float length[4 * COUNT], phi[COUNT], size[COUNT];
    const double cell[1] = {1.0 / SIDE};
    un_context *ctx = check_context();
    un_arena arena;
    un_scene *scene = load_valid(ctx, "scene { domain = { size = {1, 1} }, method = 'uniform', "
                                      "liquid = { box { min = {0, 0}, max = {1, .5} } } }");
    un_arena_init(&arena, ctx);
    int32_t k = 0;
    for (int32_t n = 0; n < COUNT; n++) {
        int32_t i = n % SIDE, j = n / SIDE;
        x[n] = un_v3((i + 0.5) / SIDE, (j + 0.5) / SIDE, 0);
        phi[n] = (float)(hypot(x[n].x - 0.51, x[n].y - 0.49) - 0.3);
        first[n] = k;
        if (i > 0) near[k++] = n - 1;
        if (i < SIDE - 1) near[k++] = n + 1;
        if (j > 0) near[k++] = n - SIDE;
        if (j < SIDE - 1) near[k++] = n + SIDE;
        count[n] = (uint8_t)(k - first[n]);
    }
    first[COUNT] = k;
    for (int32_t e = 0; e < k; e++) length[e] = (float)cell[0];
    un_sizing_nodes nodes = {.count = COUNT,
                             .dim = 2,
                             .x = x,
                             .level = level_of,
                             .cell = cell,
                             .finest = 1.0 / 256,
                             .coarsest = 1,
                             .near_first = first,
                             .near_count = count,
                             .near = near,
                             .near_length = length};
    check_ok(ctx, un_sizing_choose(ctx, &arena, &nodes, phi));
    for (int32_t n = 0; n < COUNT; n++)
        if (!nodes.used[n]) count[n] = 0;
    un_scene_def *def = (un_scene_def *)&scene->def;
    def->sizing.depth = def->sizing.solid_curvature = def->sizing.strain = def->sizing.film = 0;
    def->sizing.curvature = 0.5;
    un_sizing_def in = {.scene = scene, .nodes = &nodes, .phi = phi, .scale = 1};
    check_ok(ctx, un_sizing_evaluate(ctx, &arena, size, &in));
    for (int32_t n = 0; n < COUNT; n++)
        if (fabs(phi[n]) < 0.5 / SIDE) check_near(size[n], 0.5 * 0.5 * 0.3, 0.08 * 0.25 * 0.3);
    un_arena_free(&arena);
    un_scene_destroy(scene);
    check_context_end(ctx);
}

/* ---- tets with moved nodes ---- */

static void shake(bench *b)
{
    for (int32_t n = 0; n < b->mesh.node_count; n++) {
        bool inside = true;
        for (int a = 0; a < 3; a++) {
            uint32_t at = un_morton_gather(b->mesh.node_key[n] >> a);
            inside &= at > 0 && at < 2 * (uint32_t)b->tree.n[a];
        }
        if (n % 3 || !inside) continue;
        uint64_t q = (uint64_t)n;
        double way = 0.2 * un_octree_size(&b->tree, b->mesh.node_level[n]);
        b->mesh.x[n] = un_add(b->mesh.x[n], un_v3(way * (2 * un_random(q, 1) - 1),
                                                  way * (2 * un_random(q, 2) - 1),
                                                  way * (2 * un_random(q, 3) - 1)));
    }
    check_ok(b->ctx, un_tets_remeasure(&b->mesh, &b->arena));
    assert_true(b->mesh.own_count > 0);
}

/* Sizes change as slowly as promised over the true distances, but not more slowly: along some edge
 * at each node, or they are what was asked for. */
static void moved_nodes_have_true_distances(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bench b;
        bench_begin(&b, 2,
                    "scene { method = 'tet', " WATER
                    ", detail = { coarsest = 1, finest = 64 }, " ALONE(
                        "custom = function(x, y, z)\n"
                        "  if x + z < .1 then return .02 end end") " }");
        if (i == 0)
            bench_uniform(&b, 16);
        else
            bench_graded(&b, 300, 7);
        shake(&b);
        bench_fields(&b, plane_set, (double[]){0, 2, 0, 0, 1, 0});
        bench_evaluate(&b);
        float *allowed = malloc((size_t)b.mesh.node_count * sizeof *allowed);
        for (int32_t n = 0; n < b.mesh.node_count; n++)
            allowed[n] = b.mesh.x[n].x + b.mesh.x[n].z < 0.1 ? 0.02f : 0.5f;
        for (int32_t t = 0; t < b.mesh.tet_count; t++)
            for (int k = 0; k < 16; k++) {
                int32_t n = b.mesh.tet[t][k / 4], m = b.mesh.tet[t][k % 4];
                double d = un_length(un_sub(b.mesh.x[n], b.mesh.x[m]));
                if (n != m) allowed[n] = fminf(allowed[n], (float)(b.size[m] + 0.3 * d));
            }
        for (int32_t n = 0; n < b.mesh.node_count; n++)
            check_near(b.size[n], fmaxf(allowed[n], 1.0f / 64), 1e-6);
        free(allowed);
        bench_end(&b);
    }
}

/* The terms see moved nodes where they are: flat stays flat and a ball a ball. */
static void moved_nodes_get_the_same_sizes(void **state)
{
    (void)state;
    const double tilted[6] = {0.5, 0.51, 0.5, 0.3, 1, -0.2}, ball[4] = {0.51, 0.49, 0.503, 0.3};
    bench b;
    bench_begin(&b, 2, "scene { method = 'tet', " WATER ", detail = { finest = 64 } }");
    bench_uniform(&b, 32);
    shake(&b);
    bench_fields(&b, plane_set, tilted);
    bench_evaluate(&b);
    extent e = bench_extent(&b, -0.05, 0.02);
    check_near(e.least, 1.0 / 32, 1e-7);
    check_near(e.most, 1.0 / 32, 1e-7);
    bench_end(&b);

    bench_begin(&b, 2,
                "scene { method = 'tet', " WATER
                ", detail = { coarsest = 1, finest = 128 }, " ALONE("curvature = true") " }");
    bench_uniform(&b, 32);
    shake(&b);
    bench_fields(&b, ball_set, ball);
    bench_evaluate(&b);
    e = bench_extent(&b, -0.01, 0.01);
    check_near(e.least, 0.25 * 0.3, 0.25 * 0.25 * 0.3);
    check_near(e.most, 0.25 * 0.3, 0.25 * 0.25 * 0.3);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_get_the_sizes_of_tets),
        cmocka_unit_test(leaves_show_balls_and_sheets),
        cmocka_unit_test(leaves_with_threads),
        cmocka_unit_test(squares),
        cmocka_unit_test(moved_nodes_have_true_distances),
        cmocka_unit_test(moved_nodes_get_the_same_sizes),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
