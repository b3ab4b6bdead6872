/* Which keys of a scene a run may be resumed with when they have changed: every key that
 * docs/scene.md lists is refused, accepted with a warning, or of no consequence. */
#include "method/world.h"
#include "run/loop.h"

/* What a changed key does to --resume. Keys of sizing are asked of adaptive methods only, some also
 * of those whose cells gather (SIZED), and two of these alone (WARPING). */
typedef enum verdict {
    REFUSED,
    REFUSED_ADAPTIVE,
    REFUSED_GRADED, /* by these and by `conforming` */
    REFUSED_SIZED,
    REFUSED_WARPING,
    WARNED,
    WARNED_ADAPTIVE,
    FREE
} verdict;

static const struct {
    const char *key;      /* as in docs/scene.md */
    const char *override; /* a value that the scene does not have */
    verdict verdict;
} keys[] = {
    {"domain.size", "domain.size={1,1.25,1}", REFUSED},
    {"domain.open", "domain.open={'top'}", REFUSED},
    {"domain.slip", "domain.slip=0.2", REFUSED},
    {"domain.contact_angle", "domain.contact_angle=60", REFUSED},
    {"detail.finest", "detail.finest=17", REFUSED},
    {"detail.coarsest", "detail.coarsest=3", REFUSED_GRADED},
    {"detail.surface", "detail.surface=9", FREE},
    {"frames.count", "frames.count=9", FREE}, /* too few are refused elsewhere */
    {"frames.rate", "frames.rate=25", REFUSED},
    {"gravity", "gravity={0,-9,0}", REFUSED},
    {"fluid.density", "fluid.density=900", REFUSED},
    {"fluid.viscosity", "fluid.viscosity=2", REFUSED},
    {"fluid.surface_tension", "fluid.surface_tension=2", REFUSED},
    {"liquid", "liquid={box{min={0,0,0},max={.5,.51,1}}}", REFUSED},
    {"liquid.velocity", "liquid.velocity={0,0,1}", REFUSED},
    {"solids", "solids={}", REFUSED},
    {"solids", "solids={sphere{center={.7,.3,.5},radius=.21}}", REFUSED},
    {"solids", "solids={sphere{center={.7,.3,.5},radius=.2,friction=0.5}}", REFUSED},
    {"solids", "solids={sphere{center={.7,.3,.5},radius=.2,slip=0.5}}", REFUSED},
    {"solids", "solids={sphere{center={.7,.3,.5},radius=.2,contact_angle=60}}", REFUSED},
    {"solids", "solids={sphere{center={.7,.3,.5},radius=.2,velocity={1,0,0}}}", REFUSED},
    {"sources", "sources={}", REFUSED},
    {"sources", "sources={drain{shape=box{min={0,0,0},max={.2,.1,.3}}}}", REFUSED},
    {"sources", "sources={drain{shape=box{min={0,0,0},max={.2,.1,.2}},from=1}}", REFUSED},
    {"probes", "probes={}", REFUSED},
    {"probes", "probes={front{axis='y'}}", REFUSED},
    {"sizing.depth", "sizing.depth=0.5", REFUSED_SIZED},
    {"sizing.curvature", "sizing.curvature=0.5", REFUSED_GRADED},
    {"sizing.solid_curvature", "sizing.solid_curvature=0.5", REFUSED_SIZED},
    {"sizing.strain", "sizing.strain=0.5", REFUSED_SIZED},
    {"sizing.strength", "sizing.strength=2", REFUSED_WARPING},
    {"sizing.warp", "sizing.warp='poisson'", REFUSED_WARPING},
    {"sizing.follow", "sizing.follow=false", REFUSED_WARPING},
    {"sizing.film", "sizing.film=false", REFUSED_GRADED},
    {"sizing.deformability", "sizing.deformability=true", REFUSED_GRADED},
    {"sizing.sources", "sizing.sources=false", REFUSED_GRADED},
    {"sizing.camera", "sizing.camera={eye={1,1,3},target={0,0,0}}", REFUSED_SIZED},
    {"sizing.custom", "sizing.custom=function(x,y,z,t) return 0.1 end", REFUSED_SIZED},
    {"budget.particles", "budget.particles=1e6", WARNED_ADAPTIVE},
    {"budget.memory", "budget.memory='8G'", WARNED_ADAPTIVE},
    {"solver.kind", "solver.kind='mic'", WARNED},
    {"solver.tolerance", "solver.tolerance=1e-5", WARNED},
    {"solver.dump", "solver.dump='folder'", FREE},
    {"solver.dump_every", "solver.dump_every=3", FREE},
    {"solver.cfl", "solver.cfl=2", WARNED},
    {"solver.pic", "solver.pic=4", WARNED},
    {"solver.sheets", "solver.sheets=0.5", WARNED},
    {"solver.suction", "solver.suction=true", WARNED},
    {"solver.thickening", "solver.thickening=0.5", WARNED},
    {"solver.band", "solver.band=4", WARNED},
    {"solver.surface", "solver.surface='hulls'", REFUSED_ADAPTIVE},
    {"solver.surface", "solver.surface='level-set'", REFUSED_WARPING},
    {"solver.interpolation", "solver.interpolation='weno6'", WARNED},
    {"solver.maccormack", "solver.maccormack=true", WARNED},
    {"solver.stress", "solver.stress='split'", REFUSED},
    {"solver.coupling", "solver.coupling='pic'", REFUSED},
    {"output.surface", "output.surface=false", FREE},
    {"output.particles", "output.particles=false", FREE},
    {"output.mesh", "output.mesh=true", FREE},
    {"render.camera", "render.camera={eye={1,1,3}}", FREE},
    {"render.light.azimuth", "render.light={azimuth=9}", FREE},
    {"render.light.elevation", "render.light={elevation=9}", FREE},
    {"render.water", "render.water={1,1,1}", FREE},
    {"render.solid", "render.solid={1,1,1}", FREE},
    {"render.background", "render.background={1,1,1}", FREE},
};
#define KEY_COUNT (sizeof keys / sizeof *keys)

static const char scene_text[] =
    "scene { method = 'tet', detail = { coarsest = 4, finest = 16 },\n"
    "fluid = { surface_tension = 1 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.5, 1} } },\n"
    "solids = { sphere { center = {0.7, 0.3, 0.5}, radius = 0.2 } },\n"
    "sources = { drain { shape = box { min = {0, 0, 0}, max = {0.2, 0.1, 0.2} } } },\n"
    "probes = { front { axis = 'x' } } }\n";

static char said[2000];

static void keep(void *user, un_log_level level, const char *message)
{
    (void)user;
    (void)level;
    snprintf(said, sizeof said, "%s", message);
}

/* The scene's likeness with an override, or without. */
static char *likeness(un_context *ctx, const char *path, const un_method *method,
                      const char *override, bool warps)
{
    un_scene *scene;
    char *text;
    const char *list[] = {override, "method=warp", "fluid.surface_tension=0"};
    int skipped = override ? 0 : 1;
    check_ok(ctx, un_scene_load(ctx, path, list + skipped, (warps ? 3 : 1) - skipped, &scene));
    check_ok(ctx, un_likeness(ctx, scene, method, &text));
    un_scene_destroy(scene);
    return text;
}

static void a_changed_key_is_seen(void **state)
{
    (void)state;
    const un_method *method;
    char path[] = "/tmp/undine_test_XXXXXX";
    scene_file(path, scene_text);
    for (int32_t m = 0; (method = un_method_at(m)); m++)
        for (size_t i = 0; i < KEY_COUNT; i++) {
            un_context_def def = un_context_def_default();
            def.threads = 1;
            def.log = keep;
            un_context *ctx = un_context_create(&def);
            verdict v = keys[i].verdict;
            bool adaptive = method->traits.adaptive;
            bool warps = method->traits.warps, graded = method->traits.graded;
            if (v == REFUSED_WARPING && !warps) { /* other methods do not know it */
                un_context_destroy(ctx);
                continue;
            }
            bool refused = v == REFUSED || v == REFUSED_WARPING ||
                           (v == REFUSED_ADAPTIVE && adaptive) ||
                           (v == REFUSED_GRADED && (adaptive || graded)) ||
                           (v == REFUSED_SIZED && (adaptive || graded || warps));
            warps = v == REFUSED_WARPING;
            bool warned = v == WARNED || (v == WARNED_ADAPTIVE && adaptive);
            char *was = likeness(ctx, path, method, NULL, warps);
            char *is = likeness(ctx, path, method, keys[i].override, warps);
            said[0] = 0;
            check_ok(ctx, un_likeness_compare(ctx, was, was));
            assert_string_equal(said, "");
            un_status status = un_likeness_compare(ctx, was, is);
            if (status != (refused ? UN_ERROR_SCENE : UN_OK))
                fail_msg("%s, %s: status %d", method->traits.name, keys[i].override, (int)status);
            if (warned != (strstr(said, keys[i].key) != NULL))
                fail_msg("%s, %s: said \"%s\"", method->traits.name, keys[i].override, said);
            un_free(ctx, was);
            un_free(ctx, is);
            check_context_end(ctx);
        }
    unlink(path);
}

/* The rows of docs/scene.md that name a key: | `solver.cfl` | ... */
static void every_documented_key_is_listed(void **state)
{
    (void)state;
    static const char *const tables[] = {"domain.", "detail.", "frames.", "gravity", "fluid.",
                                         "liquid",  "solids",  "sources", "probes",  "sizing.",
                                         "budget.", "solver.", "output.", "render."};
    /* `method` is what a checkpoint is of */
    static const char *const others[] = {"method", "sizing", "render"};
    FILE *file = fopen(UN_SOURCE_DIR "/docs/scene.md", "r");
    char line[2000], key[64];
    int found = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        bool ours = false, listed = false;
        if (sscanf(line, "| `%63[a-z_.]` |", key) != 1) continue;
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            ours |= strncmp(key, tables[i], strlen(tables[i])) == 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            ours &= strcmp(key, others[i]) != 0;
        if (!ours) continue;
        for (size_t i = 0; i < KEY_COUNT; i++) listed |= strcmp(key, keys[i].key) == 0;
        if (!listed) fail_msg("what does --resume say when %s has changed? List it here", key);
        found++;
    }
    fclose(file);
    assert_true(found >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_key_is_seen),
        cmocka_unit_test(every_documented_key_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
