/* The part of the renderer's interface that every build has. */
#include "render/render.h"

un_render_def un_render_def_default(void)
{
    return (un_render_def){
        .width = 1280, .height = 720, .samples = 8, .fov = 30, .water = true, .cut_axis = -1};
}

#ifndef UN_WITH_RENDER

un_status un_renderer_create(un_context *ctx, const char *directory, const un_render_def *def,
                             un_renderer **renderer)
{
    (void)directory, (void)def;
    *renderer = NULL;
    return un_fail(ctx, UN_ERROR_UNAVAILABLE,
                   "this build cannot render: install Embree 3 (Debian: libembree-dev) and build "
                   "again with the CMake option UNDINE_RENDER=ON");
}

void un_renderer_destroy(un_renderer *renderer)
{
    (void)renderer;
}

un_status un_renderer_frame(un_renderer *renderer, int32_t frame, uint8_t *rgb)
{
    (void)renderer, (void)frame, (void)rgb;
    return UN_ERROR_UNAVAILABLE;
}

#endif
