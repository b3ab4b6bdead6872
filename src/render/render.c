/* The part of the renderer's interface that every build has. */
#include "render/render.h"

#include <stdio.h>
#include <sys/stat.h>

int32_t un_frame_count(un_context *ctx, const char *directory)
{
    char path[4200];
    struct stat found;
    int32_t count = 0;
    for (; count < 1000001; count++) {
        if (snprintf(path, sizeof path, "%s/frames/%04d", directory, count) >= (int)sizeof path)
            return 0;
        if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) break;
    }
    un_info *info = count > 0 ? un_alloc(ctx, 1, sizeof *info) : NULL;
    if (!info) return count;
    un_info_read(ctx, directory, info); /* what it could read will do */
    if (strcmp(info->status, "running") == 0 && info->frames_finished + 1 < count)
        count = info->frames_finished + 1;
    un_free(ctx, info);
    return count;
}

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
