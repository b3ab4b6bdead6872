/* Sizes as a field: slow in space, the same for any number of threads, with cameras and formulas,
 * damaged input and failing memory. */
#include "fields.h"

static const double level[6] = {0.5, 0.47, 0.5, 0, 1, 0};

/* ---- slow in space ---- */

/* The largest S_n - S_m over |x_n - x_m| between nodes near the liquid. */
static double steepest(const bench *b)
{
    double most = 0;
    for (int32_t t = 0; t < b->mesh.tet_count; t++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                int32_t n = b->mesh.tet[t][i], m = b->mesh.tet[t][j];
                double h = un_octree_size(&b->tree, b->mesh.node_level[n]);
                double g = un_octree_size(&b->tree, b->mesh.node_level[m]);
                if (n == m || b->phi[n] >= 2 * h || b->phi[m] >= 2 * g) continue;
                double d = un_length(un_sub(b->mesh.x[n], b->mesh.x[m]));
                most = fmax(most, (b->size[n] - b->size[m]) / d);
            }
    return most;
}

static void slow_in_space(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bench b;
        bench_begin(&b, 2,
                    "local function spike(x, y, z, a, b, c, s)\n"
                    "  return (x - a)^2 + (y - b)^2 + (z - c)^2 < .002 and s or math.huge end\n"
                    "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 128 },\n"
                    "sizing = { custom = function(x, y, z)\n"
                    "  local s = math.min(spike(x, y, z, .2, .3, .4, .01),\n"
                    "    spike(x, y, z, .7, .4, .8, .02), spike(x, y, z, .9, .1, .1, .03))\n"
                    "  if s < math.huge then return s end end } }");
        if (i < 2)
            bench_uniform(&b, i ? 32 : 16);
        else
            bench_graded(&b, 100 << i, 1000 + (uint64_t)i);
        bench_fields(&b, plane_set, level);
        bench_evaluate(&b);
        check_below(steepest(&b), 0.3 + 1e-4);
        extent e = bench_extent(&b, -1, 0);
        check_below(e.least, 0.05); /* the spikes are there */
        check_below(0.1, e.most);
        bench_end(&b);
    }
}

/* It is the largest such field: nothing is smaller than what some neighbour or its own term asks
 * for. Away from a single small place it is a cone. */
static void no_slower_than_asked(void **state)
{
    (void)state;
    bench b;
    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 1, finest = 64 }, " ALONE(
                   "custom = function(x, y, z)\n"
                   "  if x + z < .01 then return .02 end end") " }",
               32, plane_set, (double[]){0, 2, 0, 0, 1, 0});
    bench_evaluate(&b);
    for (int32_t n = 0; n < b.mesh.node_count; n++) {
        double d = hypot(b.mesh.x[n].x, b.mesh.x[n].z), s = b.size[n];
        check_below(0.02 + 0.3 * d - 1e-6, s); /* a path along edges is no shorter than the line */
        check_below(s, 0.02 + 0.3 * (1.25 * d + 0.01));
    }
    bench_end(&b);
}

/* ---- camera ---- */

#define CUBES "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 64 },\n"

/* Wavy everywhere: 1/64 where it is seen, 1/16 where it is not. */
static double wavy_set(un_vec3 x, const double *p)
{
    (void)p;
    return 0.7 * (x.y - 0.5 - 0.02 * sin(40 * x.x) * sin(40 * x.z));
}

/* Sizes at the surface near x, z. */
static double size_at(const bench *b, double x, double z)
{
    double least = INFINITY;
    for (int32_t n = 0; n < b->mesh.node_count; n++)
        if (fabs(b->phi[n]) < 0.02 && hypot(b->mesh.x[n].x - x, b->mesh.x[n].z - z) < 0.08)
            least = fmin(least, b->size[n]);
    return least;
}

static void camera(void **state)
{
    (void)state;
    bench b;
    bench_make(&b,
               CUBES "sizing = { depth = false, camera = { eye = {.2, .5, -2}, "
                     "target = {.2, .5, 0}, fov = 8, aspect = 1 } } }",
               32, wavy_set, NULL);
    bench_evaluate(&b);
    check_below(size_at(&b, 0.2, 0.3), 0.03);
    check_below(size_at(&b, 0.2, 0.9), 0.03);
    check_near(size_at(&b, 0.8, 0.3), 1.0 / 16, 1e-6);
    check_near(size_at(&b, 0.8, 0.9), 1.0 / 16, 1e-6);
    bench_end(&b);

    /* It does not look behind itself. */
    bench_make(&b,
               CUBES "sizing = { depth = false, camera = { eye = {.5, .5, .5}, "
                     "target = {.5, .5, 1}, fov = 90, aspect = 1 } } }",
               32, wavy_set, NULL);
    bench_evaluate(&b);
    check_below(size_at(&b, 0.5, 0.9), 0.03);
    check_near(size_at(&b, 0.5, 0.1), 1.0 / 16, 1e-6);
    bench_end(&b);

    /* Wider pictures see more; straight down is a direction too. */
    double size[2];
    for (int i = 0; i < 2; i++) {
        bench_make(&b,
                   i ? CUBES "sizing = { depth = false, camera = { eye = {.5, 4, .5}, "
                             "target = {.5, 0, .5}, fov = 3, aspect = 8 } } }"
                     : CUBES "sizing = { depth = false, camera = { eye = {.5, 4, .5}, "
                             "target = {.5, 0, .5}, fov = 3, aspect = 1 } } }",
                   32, wavy_set, NULL);
        bench_evaluate(&b);
        check_below(size_at(&b, 0.5, 0.5), 0.03);
        size[i] = size_at(&b, 0.9, 0.5);
        check_near(size_at(&b, 0.5, 0.9), 1.0 / 16, 1e-6);
        bench_end(&b);
    }
    check_near(size[0], 1.0 / 16, 1e-6);
    check_below(size[1], 0.03);
}

static void moving_camera(void **state)
{
    (void)state;
    bench b;
    bench_make(&b,
               CUBES "sizing = { depth = false, camera = { eye = function(t) return "
                     "{t, .5, -2} end, target = function(t) return {t, .5, 0} end, "
                     "fov = 6, aspect = 1 } } }",
               32, wavy_set, NULL);
    for (int i = 0; i < 2; i++) {
        b.def.time = i ? 0.8 : 0.2;
        bench_evaluate(&b);
        check_below(size_at(&b, b.def.time, 0.5), 0.03);
        check_near(size_at(&b, 1 - b.def.time, 0.5), 1.0 / 16, 1e-6);
    }
    bench_end(&b);
    bench_make(&b,
               CUBES "sizing = { camera = { target = {0, 0, 0}, eye = function(t)\n"
                     "return {t == 1 and 0 or 1, 0, 0} end } } }",
               16, wavy_set, NULL);
    b.def.time = 1;
    assert_int_equal(un_sizing_evaluate(b.ctx, &b.arena, b.size, &b.def), UN_ERROR_SCENE);
    assert_non_null(strstr(un_context_message(b.ctx), "at t = 1 s"));
    bench_end(&b);
}

/* ---- custom ---- */

static void custom(void **state)
{
    (void)state;
    bench b;
    /* alone, it decides; slopes below the limit arrive unchanged */
    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 2, finest = 64 }, " ALONE(
                   "custom = function(x, y, z, t) return .03 + .2 * x + t end") " }",
               32, plane_set, level);
    b.def.time = 0.01;
    bench_evaluate(&b);
    for (int32_t n = 0; n < b.mesh.node_count; n++)
        if (b.phi[n] < 0) check_near(b.size[n], 0.04 + 0.2 * b.mesh.x[n].x, 1e-6);
    bench_end(&b);

    /* with others, the smaller one; it is not asked far from the liquid */
    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 64 },\n"
               "sizing = { custom = function(x, y, z, t)\n"
               "  assert(y < .6)\n  if x < .5 then return 1e-9 end return 1e9 end } }",
               32, plane_set, level);
    bench_evaluate(&b);
    check_near(b.size[bench_node(&b, un_v3(0.2, 0.3, 0.5))], 1.0 / 64, 1e-8);
    check_near(b.size[bench_node(&b, un_v3(0.9, 0.45, 0.5))], 1.0 / 16, 1e-8);
    bench_end(&b);

    bench_make(&b,
               "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 64 },\n"
               "sizing = {\n custom = function(x, y, z, t)\n  return t > 1 and y > .4 and -1 or 1 "
               "end }, frames = { count = 10 } }",
               32, plane_set, level);
    bench_evaluate(&b);
    b.def.time = 2;
    assert_int_equal(un_sizing_evaluate(b.ctx, &b.arena, b.size, &b.def), UN_ERROR_SCENE);
    const char *message = un_context_message(b.ctx);
    assert_true(strncmp(message, "dam.lua:3: sizing.custom must return", 36) == 0);
    assert_non_null(strstr(message, "got -1 (in sizing.custom at x, y, z, t = "));
    bench_end(&b);
}

/* ---- hostile ---- */

static void damaged_fields(void **state)
{
    (void)state;
    bench b;
    bench_begin(&b, 2,
                "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 64 },"
                " solids = { sphere { center = {.5, .5, .5}, radius = .1 } } }");
    bench_graded(&b, 300, 5);
    bench_fields(&b, wavy_set, NULL);
    b.velocity = malloc((size_t)b.mesh.node_count * sizeof *b.velocity);
    b.def.velocity = b.velocity;
    const float odd[6] = {NAN, INFINITY, -INFINITY, 0, 1e30f, -1e30f};
    for (int round = 0; round < 4; round++) {
        for (int32_t n = 0; n < b.mesh.node_count; n++) {
            double roll = un_random((uint64_t)n, (uint64_t)round);
            if (roll < 0.1 * (round + 1)) b.phi[n] = odd[(int)(roll * 1e6) % 6];
            b.velocity[n] = un_v3(odd[(int)(roll * 1e7) % 6], 1, 2);
        }
        b.def.scale = round ? 1 : 1e300;
        bench_evaluate(&b);
        for (int32_t n = 0; n < b.mesh.node_count; n++)
            assert_true(b.size[n] >= (float)(1.0 / 64) && b.size[n] <= 0.25f);
    }
    for (int32_t n = 0; n < b.mesh.node_count; n++) b.phi[n] = INFINITY; /* no liquid at all */
    bench_evaluate(&b);
    check_near(b.size[0], 0.25, 0);
    bench_end(&b);
}

/* ---- threads and memory ---- */

static uint64_t hash_sizes(int32_t threads)
{
    bench b;
    uint64_t hash = 0;
    bench_begin(&b, threads,
                "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 128 },\n"
                "solids = { sphere { center = {.5, .5, .5}, radius = .1 } }, sizing = {\n"
                "camera = { eye = {0, 1, 2}, target = {.5, .5, .5} },\n"
                "custom = function(x) if x < .1 then return .01 end end } }");
    bench_graded(&b, 5000, 5);
    assert_true(b.mesh.node_count > 20000);
    bench_fields(&b, wavy_set, NULL);
    b.velocity = malloc((size_t)b.mesh.node_count * sizeof *b.velocity);
    for (int32_t n = 0; n < b.mesh.node_count; n++) {
        un_vec3 x = b.mesh.x[n];
        b.velocity[n] = un_v3(sin(30 * x.y), cos(20 * x.z), sin(10 * x.x * x.y));
    }
    b.def.velocity = b.velocity;
    bench_evaluate(&b);
    for (int32_t n = 0; n < b.mesh.node_count; n++) {
        uint32_t bits;
        memcpy(&bits, &b.size[n], sizeof bits);
        hash = un_hash64(hash ^ bits);
    }
    bench_end(&b);
    return hash;
}

static void threads(void **state)
{
    (void)state;
    uint64_t one = hash_sizes(1);
    for (int32_t t = 2; t <= 4; t++) assert_true(hash_sizes(t) == one);
}

static un_status evaluate_all(un_context *ctx, void *arg)
{
    (void)arg;
    un_status status = UN_OK;
    un_scene *scene = NULL;
    un_octree tree;
    un_tets mesh;
    un_arena arena;
    float *phi = NULL, *size = NULL;
    un_vec3 *velocity = NULL;
    double x = 0.5;
    uint8_t reach = 4;
    UN_TRY(un_scene_load(ctx, "dam.lua", NULL, 0, &scene));
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 4, 8);
    un_tets_init(ctx, &mesh);
    un_octree_request request = {1, {&x, &x, &x}, NULL, &reach};
    UN_TRY_DONE(un_octree_build(&tree, &arena, &request));
    UN_TRY_DONE(un_tets_build(&mesh, &arena, &tree));
    UN_ALLOC_DONE(ctx, phi, mesh.node_count);
    UN_ALLOC_DONE(ctx, size, mesh.node_count);
    UN_ALLOC_DONE(ctx, velocity, mesh.node_count);
    for (int32_t n = 0; n < mesh.node_count; n++) {
        phi[n] = (float)wavy_set(mesh.x[n], NULL);
        velocity[n] = mesh.x[n];
    }
    un_sizing_nodes nodes;
    un_sizing_def def = {.scene = scene,
                         .nodes = &nodes,
                         .phi = phi,
                         .solid = phi,
                         .velocity = velocity,
                         .scale = 1};
    un_arena_free(&arena); /* every allocation of its own */
    UN_TRY_DONE(un_sizing_nodes_tets(ctx, &arena, &nodes, &mesh, phi));
    status = un_sizing_evaluate(ctx, &arena, size, &def);
done:
    un_free(ctx, velocity);
    un_free(ctx, size);
    un_free(ctx, phi);
    un_tets_free(&mesh);
    un_octree_free(&tree);
    un_arena_free(&arena);
    un_scene_destroy(scene);
    return status;
}

static void failing_memory(void **state)
{
    (void)state;
    write_text("dam.lua",
               "scene { method = 'tet', " WATER ", detail = { coarsest = 4, finest = 8 },"
               "sizing = { custom = function() return 1 end,\n"
               "camera = { eye = {0, 1, 2}, target = {.5, .5, .5} } } }");
    check_allocation_failures(evaluate_all, NULL, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_in_space), cmocka_unit_test(no_slower_than_asked),
        cmocka_unit_test(camera),        cmocka_unit_test(moving_camera),
        cmocka_unit_test(custom),        cmocka_unit_test(damaged_fields),
        cmocka_unit_test(threads),       cmocka_unit_test(failing_memory),
    };
    check_races_in("threads");
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
