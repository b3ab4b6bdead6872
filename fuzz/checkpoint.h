/* The scenes whose checkpoints are fuzzed. */
#ifndef UN_FUZZ_CHECKPOINT_H
#define UN_FUZZ_CHECKPOINT_H

#include "fuzz.h"
#include "method/method.h"
#include "state/state.h"

/* Checkpoints are of these two scenes; the second's particles carry what they are made of. */
#define TINY(fluid)                                                                                \
    "scene { method = 'tet', domain = { size = {1, 1, 1} }, detail = { coarsest = 2, finest = 4 "  \
    "},\n" fluid "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.3, 0.5} } },\n"                  \
    "solids = { solid { sphere { center = {0.8, 0.2, 0.8}, radius = 0.1 }, velocity = {-1, 0, 0} " \
    "} },\n"                                                                                       \
    "sources = { emitter { shape = box { min = {0, 0, 0}, max = {0.3, 0.3, 0.3} },\n"              \
    "  velocity = {1, 0, 0} } } }\n"

static const char *const fuzz_thin = TINY("");
static const char *const fuzz_thick =
    TINY("fluid = { viscosity = function(x) return 10 * x end, density = 1200 },\n");

static inline un_scene *fuzz_scene(un_context *ctx, const char *text)
{
    un_scene *scene;
    const char *path = fuzz_file((const uint8_t *)text, strlen(text), "lua");
    FUZZ_REQUIRE(un_scene_load(ctx, path, NULL, 0, &scene) == UN_OK);
    unlink(path);
    return scene;
}

#endif
