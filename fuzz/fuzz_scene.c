#include "fuzz.h"
#include "scene/scene.h"

/* The scene is loaded, and what of it runs later is called once. It has few cells whatever it asks
 * for: a function that is sampled at millions of places says nothing new. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    un_context *ctx = fuzz_context();
    const char *path = fuzz_file(bytes, count, "lua");
    const char *const small[] = {"detail.finest=8", "detail.coarsest=2"};
    un_scene *scene = NULL;
    un_status status = un_scene_load(ctx, path, small, 2, &scene);
    if (status == UN_OK) {
        for (int32_t s = 0; s < scene->def.solid_count; s++) {
            un_pose pose;
            if (scene->def.solids[s].moves) (void)un_scene_pose(scene, s, 0.1, &pose);
        }
        un_viewpoint camera;
        if (scene->def.sizing.has_camera) (void)un_scene_camera(scene, 0.1, &camera);
        un_vec3 x = un_scale(scene->def.domain.size, 0.3);
        float size;
        if (scene->def.sizing.has_custom) (void)un_scene_custom_sizes(scene, 0.1, &x, 1, &size);
        if (scene->def.liquid.shape) (void)un_shape_distance(scene->def.liquid.shape, x);
        char *text;
        if (un_scene_text(scene, &text) == UN_OK) un_free(ctx, text);
        un_scene_destroy(scene);
    } else {
        FUZZ_REQUIRE(*un_context_message(ctx));
    }
    unlink(path);
    fuzz_context_end(ctx);
    return 0;
}
