/* The output surface of method `uniform`, made by several ranks: rank 0 gets that of one rank, bit
 * by bit. */
#include "method/method.h"
#include "output/scratch.h"

#include "ranks/group.h"

/* A pool with a solid; above it sheets, threads and drops, some across the borders of bars; an
 * emitter, and a solid that moves. The lattice is finer than the cells, coarser, or not in step. */
static const char splash[] =
    "local drops = {}\n"
    "for i = 1, 60 do drops[i] = sphere { center = {0.1 + 0.8 * (i * 0.37 %% 1),\n"
    "    0.45 + 0.25 * (i * 0.61 %% 1), 1.4 * (i * 0.83 %% 1)}, radius = 0.015 } end\n"
    "scene { domain = { size = {1, 0.8, 1.4}, open = {\"top\"} },\n"
    "detail = { finest = %d, surface = %d }, frames = { count = 3, rate = 24 },\n"
    "fluid = { viscosity = %g },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {1, 0.2, 1.4} },\n"
    "    box { min = {0.2, 0.5, 0.1}, max = {0.7, 0.51, 1.3} },\n"
    "    box { min = {0.8, 0.4, 0.1}, max = {0.82, 0.42, 1.3} }, union(drops) },\n"
    "    velocity = {0.4, 0.5, 0.3} },\n"
    "solids = { sphere { center = {0.5, 0.2, 0.7}, radius = 0.15 },\n"
    "    box { min = {0.1, 0.1, 0.3}, max = {0.3, 0.35, 0.5}, velocity = {0.2, 0, 0.5} } },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.6, 0.6}, radius = 0.05 },\n"
    "    velocity = {0, -1, 2} } } }\n";

static un_scene *load(un_context *ctx, int finest, int surface, double viscosity)
{
    char text[4096];
    un_scene *scene;
    const char *set = "method=uniform";
    snprintf(text, sizeof text, splash, finest, surface, viscosity);
    scratch_write("scene.lua", text, strlen(text));
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), &set, 1, &scene));
    return scene;
}

static void compare(const un_trimesh *mesh, const un_trimesh *wanted)
{
    if (un_ranks_rank(group) > 0) {
        assert_int_equal(mesh->vertex_count, 0);
        return;
    }
    assert_true(wanted->vertex_count > 300);
    assert_int_equal(mesh->vertex_count, wanted->vertex_count);
    assert_int_equal(mesh->triangle_count, wanted->triangle_count);
    size_t v = (size_t)wanted->vertex_count, t = (size_t)wanted->triangle_count;
    assert_memory_equal(mesh->triangle, wanted->triangle, t * sizeof *mesh->triangle);
    assert_memory_equal(mesh->position, wanted->position, v * sizeof *mesh->position);
    assert_memory_equal(mesh->normal, wanted->normal, v * sizeof *mesh->normal);
    assert_memory_equal(mesh->velocity, wanted->velocity, v * sizeof *mesh->velocity);
}

static void follow(int finest, int surface, double viscosity, int32_t threads)
{
    const un_method *method = &un_method_uniform;
    un_context *alone = check_context(), *ctx = group_context_failing(threads, 0, 0);
    un_scene *scene = load(alone, finest, surface, viscosity);
    void *one, *many;
    check_ok(alone, un_method_create(method, alone, scene, NULL, &one));
    check_ok(ctx, un_method_create(method, ctx, scene, NULL, &many));
    for (int step = 0; step < 4; step++) {
        un_step a, b;
        un_trimesh mesh, wanted;
        if (step > 0) check_ok(alone, method->step(one, 0.02, &a));
        if (step > 0) check_ok(ctx, method->step(many, 0.02, &b));
        check_ok(alone, method->surface(one, &wanted));
        check_ok(ctx, method->gather(many, UN_SHOW_SURFACE));
        check_ok(ctx, method->surface(many, &mesh));
        compare(&mesh, &wanted);
        un_trimesh_free(alone, &wanted);
        un_trimesh_free(ctx, &mesh);
    }
    un_method_destroy(method, one);
    un_method_destroy(method, many);
    un_scene_destroy(scene);
    check_context_end(ctx);
    check_context_end(alone);
}

static void is_that_of_one_rank(void **state)
{
    (void)state;
    follow(32, 70, 0, 1);
    follow(31, 20, 0, 2);  /* layers of the last block: one, beyond the domain */
    follow(24, 100, 3, 1); /* threads of viscous liquid */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_that_of_one_rank, scratch_begin, scratch_end)};
    group_run(tests);
}
