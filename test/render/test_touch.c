/* Water that touches solids: faces of both meshes coincide, overlap or leave a gap, which pictures
 * must not show; through glass one sees the water. */
#include "output/output.h"
#include "render/splash.h"

#include <unistd.h>

#define WIDTH 64
#define HEIGHT 48
#define CELL 0.0625

static char folder[] = "/tmp/undine-touch-XXXXXX";
static const char *const names[] = {"frames/0000/surface.ply", "scene.lua", "frames/0000",
                                    "frames/0001", "frames"};

typedef struct picture {
    uint8_t rgb[WIDTH * HEIGHT * 3];
} picture;

static void name(char *path, const char *rest)
{
    snprintf(path, 128, "%s/%s", folder, rest);
}

static int set_up(void **state)
{
    (void)state;
    char path[128];
    if (!mkdtemp(folder)) return -1;
    for (int i = 4; i >= 2; i--) {
        name(path, names[i]);
        if (mkdir(path, 0777)) return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        name(path, names[i]);
        remove(path);
    }
    return rmdir(folder);
}

static void write_scene(const char *solids)
{
    char path[128];
    name(path, "scene.lua");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "scene { domain = { size = {1, 1, 1} }, detail = { finest = 16, surface = 16 },\n"
            "  liquid = { sphere { center = {.5, .5, .5}, radius = .1 } }, solids = { %s } }\n",
            solids);
    fclose(file);
}

static void write_water(splash_field *field, double by)
{
    char path[128];
    splash_mesh mesh;
    name(path, names[0]);
    splash_march(&mesh, field, &by, un_v3(1, 1, 1), CELL);
    splash_write(&mesh, path);
    splash_free(&mesh);
}

/* Skips the test in builds without Embree. */
static un_renderer *open_renderer(un_context *ctx, double height)
{
    un_render_def def = un_render_def_default();
    un_renderer *r;
    def.width = WIDTH, def.height = HEIGHT, def.samples = 4;
    def.has_eye = def.has_target = def.has_fov = true;
    def.eye[0] = 0.5, def.eye[1] = height, def.eye[2] = 3;
    def.target[0] = def.target[2] = 0.5, def.target[1] = 0.3;
    def.fov = 25;
    un_status status = un_renderer_create(ctx, folder, &def, &r);
    if (status == UN_ERROR_UNAVAILABLE) {
        check_context_end(ctx);
        skip();
    }
    check_ok(ctx, status);
    return r;
}

static double brightness(const picture *p)
{
    double sum = 0;
    for (size_t i = 0; i < sizeof p->rgb; i++) sum += p->rgb[i];
    return sum / (double)sizeof p->rgb;
}

static double on_floor(const void *by, un_vec3 x)
{
    return fmax(x.y - 0.5, 0.25 + *(const double *)by - x.y);
}

static double in_cup(const void *by, un_vec3 x)
{
    double round = hypot(x.x - 0.5, x.z - 0.5) - 0.25 - *(const double *)by;
    return fmax(round, fmax(x.y - 0.5, 0.1 - x.y));
}

/* Still water's bottom wanders by rounding from frame to frame. */
static void check_steady(un_context *ctx, un_renderer *r, splash_field *field)
{
    static const double by[] = {0, -1e-5, 2e-6, 1e-5, 2e-5, 0.005};
    static picture p;
    double first = 0;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        write_water(field, by[i]);
        check_ok(ctx, un_renderer_frame(r, 0, p.rgb));
        if (i == 0) first = brightness(&p);
        check_near(brightness(&p), first, 0.02 * first);
    }
}

static void water_on_a_solid_floor_does_not_flicker(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    write_scene("box { min = {-1, -1, -1}, max = {2, .25, 2} }");
    un_renderer *r = open_renderer(ctx, 1.5);
    check_steady(ctx, r, on_floor);
    un_renderer_destroy(r);
    check_context_end(ctx);
}

#define CUP                                                                                        \
    "solid { %s subtract { cylinder { from = {.5, 0, .5}, to = {.5, .7, .5}, radius = .35 }, "     \
    "cylinder { from = {.5, .1, .5}, to = {.5, 1, .5}, radius = .25 } } }"

static void write_cup(const char *material)
{
    char solids[400];
    snprintf(solids, sizeof solids, CUP, material);
    write_scene(solids);
}

/* From the side the water in a cup is seen if the cup is glass, and only then; it does not flicker.
 */
static void glass_shows_its_water(void **state)
{
    (void)state;
    static picture full, empty;
    un_context *ctx = check_context();
    write_water(in_cup, 0);
    for (int glass = 0; glass < 2; glass++) {
        write_cup(glass ? "material = \"glass\"," : "");
        un_renderer *r = open_renderer(ctx, 0.4);
        check_ok(ctx, un_renderer_frame(r, 0, full.rgb));
        check_ok(ctx, un_renderer_frame(r, 1, empty.rgb)); /* no surface */
        if (glass) check_steady(ctx, r, in_cup);
        un_renderer_destroy(r);
        int32_t bluer = 0, dark = 0;
        for (int32_t p = 0; p < WIDTH * HEIGHT; p++) {
            const uint8_t *a = full.rgb + 3 * p, *b = empty.rgb + 3 * p;
            bluer += a[2] - a[0] > b[2] - b[0] + 15;
            dark += glass && a[0] + a[1] + a[2] < 90;
        }
        assert_int_equal(dark, 0);
        if (glass)
            assert_true(bluer > WIDTH * HEIGHT / 20);
        else
            assert_int_equal(bluer, 0);
    }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(water_on_a_solid_floor_does_not_flicker),
        cmocka_unit_test(glass_shows_its_water),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
