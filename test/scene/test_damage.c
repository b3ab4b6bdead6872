/* Damaged files and failing memory: nothing crashes, nothing is left behind. */
#include "files.h"

static const char *const whole =
    "-- every kind of value once\n"
    "local posts = {}\n"
    "for i = 1, 3 do posts[i] = cylinder { from = {.2 * i, 0, .5}, to = {.2 * i, 1, .5}, "
    "radius = .02 } end\n"
    "scene {\n"
    "  method = \"tet\", domain = { size = {1, 1, .5}, open = {'top'} },\n"
    "  detail = { coarsest = 4, finest = 16, surface = 32 }, frames = { count = 4, rate = 24 },\n"
    "  gravity = { 0, -9.81, 0 }, fluid = { density = 1000, viscosity = 0 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} },\n"
    "    field(function(x, y, z) return y - 0.1 - 0.05 * math.sin(6 * x) end) },\n"
    "  solids = { union(posts), move { torus { center = {0, 0, 0}, radius = .2, tube = .05 },\n"
    "      by = {.5, .5, .25}, rotate = {0, 0, 90}, friction = .5 },\n"
    "    solid { mesh { file = 'tetra.off' }, pose = function(t)\n"
    "      return { by = {0, .1 * t, 0}, rotate = { axis = {0, 1, 0}, angle = 90 * t } } end } },\n"
    "  sources = { emitter { shape = sphere { center = {.2, .9, .25}, radius = .05 },\n"
    "    velocity = {1, 0, 0}, from = 0, to = 2 }, drain { shape = plane { point = {0, .01, 0},\n"
    "    normal = {0, 1, 0} } } },\n"
    "  probes = { front { axis = 'x' }, height { name = 'h', at = {.5, .25} } },\n"
    "  budget = { particles = 2e6, memory = '8G' }, solver = { kind = 'auto', tolerance = 1e-4 },\n"
    "  output = { surface = true, particles = true, mesh = false },\n"
    "  render = { camera = { target = function(t) return {t, 0, 0} end, fov = 30 },\n"
    "    light = { azimuth = 40, elevation = 30 }, water = {.1, .2, .3} },\n"
    "  sizing = { depth = 2, strain = false, custom = function(x, y, z, t) return .1 + x end,\n"
    "    camera = { eye = function(t) return {2 + t, 1, 1} end, target = {0, 0, 0}, fov = 40 } },\n"
    "}\n";

/* A tetrahedron without one of its faces: three open edges. */
static const char *const tetra = "OFF\n4 3 0\n0 0 0\n.2 0 0\n0 .2 0\n0 0 .2\n"
                                 "3 0 2 1\n3 0 1 3\n3 0 3 2\n";

static int enter(void **state)
{
    if (enter_folder(state) != 0) return -1;
    write_text("tetra.off", tetra);
    return 0;
}

/* Loads whatever is in dam.lua; it may be right or wrong, but must end well. */
static un_status load_any(un_context *ctx)
{
    un_scene *scene = NULL;
    un_status status = un_scene_load(ctx, "dam.lua", NULL, 0, &scene);
    if (status == UN_OK) {
        un_scene_destroy(scene);
    } else {
        assert_null(scene);
        assert_true(status == UN_ERROR_SCENE);
        assert_true(strncmp(un_context_message(ctx), "dam.lua", 7) == 0);
        assert_null(strpbrk(un_context_message(ctx), "\n\r\t\x1b"));
    }
    assert_int_equal(un_context_bytes(ctx), 0);
    return status;
}

static void the_whole_file_loads(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_scene *scene = load_valid(ctx, whole);
    assert_int_equal(scene->note_count, 1);
    assert_string_equal(scene->notes[0],
                        "dam.lua:12: mesh tetra.off has 3 open edges; what is inside "
                        "is judged by its winding number, close the holes to be "
                        "sure of it");
    un_scene_destroy(scene);
    check_context_end(ctx);
}

static void every_prefix(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    int loaded = 0;
    for (size_t n = 0; n < strlen(whole); n++) {
        write_bytes("dam.lua", whole, n);
        loaded += load_any(ctx) == UN_OK;
    }
    assert_int_equal(loaded, 1); /* all but the last line break */
    check_context_end(ctx);
}

static void mutations(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    size_t length = strlen(whole);
    char *text = malloc(length);
    int loaded = 0;
    for (uint64_t round = 0; round < 2000; round++) {
        memcpy(text, whole, length);
        int changes = 1 + (int)(un_random(round, 0) * 4);
        for (int c = 0; c < changes; c++) {
            size_t at = (size_t)(un_random(round, 1 + 3 * (uint64_t)c) * (double)length);
            double kind = un_random(round, 2 + 3 * (uint64_t)c);
            double what = un_random(round, 3 + 3 * (uint64_t)c);
            size_t from = (size_t)(what * (double)length);
            if (kind < 0.4)
                text[at] = (char)(int)(what * 256);
            else if (kind < 0.7)
                text[at] = whole[from]; /* a likelier character */
            else
                memmove(text + at, whole + from, at + 12 < length && from + 12 < length ? 12 : 1);
        }
        write_bytes("dam.lua", text, length);
        loaded += load_any(ctx) == UN_OK;
    }
    free(text);
    /* Many changes fall on digits and comments, so both outcomes must have happened. */
    assert_in_range(loaded, 20, 1500);
    check_context_end(ctx);
}

static void damaged_meshes(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    for (size_t n = 0; n < strlen(tetra); n++) {
        write_bytes("tetra.off", tetra, n);
        write_text("dam.lua", "scene { liquid = {\n mesh { file = 'tetra.off' } } }");
        if (load_any(ctx) != UN_OK)
            assert_true(strncmp(un_context_message(ctx), "dam.lua:2: mesh", 15) == 0);
    }
    write_text("tetra.off", tetra);
    check_context_end(ctx);
}

/* ---- memory ---- */

static un_status load_and_use(un_context *ctx, void *arg)
{
    (void)arg;
    un_scene *scene = NULL;
    char *text = NULL;
    const char *const set[] = {"detail.finest=8", "gravity={0, -1, 0}"};
    UN_TRY(un_scene_load(ctx, "dam.lua", set, 2, &scene));
    un_status status = un_scene_text(scene, &text);
    un_pose pose;
    for (int32_t i = 0; status == UN_OK && i < scene->def.solid_count; i++)
        status = un_scene_pose(scene, i, 0.5, &pose);
    un_viewpoint camera;
    float size;
    if (status == UN_OK) status = un_scene_camera(scene, 0.5, &camera);
    if (status == UN_OK) status = un_scene_render_camera(scene, 0.5, &camera);
    if (status == UN_OK) status = un_scene_custom_sizes(scene, 0.5, &camera.eye, 1, &size);
    un_free(ctx, text);
    un_scene_destroy(scene);
    return status;
}

static void failing_memory(void **state)
{
    (void)state;
    write_text("dam.lua", whole);
    check_allocation_failures(load_and_use, NULL, 100000);
}

/* A wrong scene must not hide that memory ran out, nor the other way round. */
static un_status load_wrong(un_context *ctx, void *arg)
{
    (void)arg;
    un_scene *scene = NULL;
    un_status status = un_scene_load(ctx, "dam.lua", NULL, 0, &scene);
    if (status == UN_ERROR_MEMORY) {
        assert_non_null(strstr(un_context_message(ctx), "out of memory"));
        return status;
    }
    assert_int_equal(status, UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx),
                        "dam.lua:1: unknown key \"desnity\" in fluid; did you mean \"density\"?");
    return UN_OK;
}

static void failing_memory_of_a_wrong_scene(void **state)
{
    (void)state;
    write_text("dam.lua", "pcall(function() return {} end) scene { fluid = { desnity = 1 } }");
    check_allocation_failures(load_wrong, NULL, 100000);
}

static void memory_cap(void **state)
{
    (void)state;
    un_context_def def = un_context_def_default();
    def.threads = 1;
    def.memory_cap = 3 << 20;
    un_context *ctx = un_context_create(&def);
    write_text("dam.lua", "local t = {} while true do pcall(function() t[#t + 1] = {} end) end");
    un_scene *scene;
    assert_int_equal(un_scene_load(ctx, "dam.lua", NULL, 0, &scene), UN_ERROR_MEMORY);
    assert_non_null(strstr(un_context_message(ctx), "cap"));
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_file_loads),
        cmocka_unit_test(every_prefix),
        cmocka_unit_test(mutations),
        cmocka_unit_test(damaged_meshes),
        cmocka_unit_test(failing_memory),
        cmocka_unit_test(failing_memory_of_a_wrong_scene),
        cmocka_unit_test(memory_cap),
    };
    return cmocka_run_group_tests(tests, enter, leave_folder);
}
