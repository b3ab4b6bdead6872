/* The schedule of emitters, drains and open sides. */
#include "sources/sources.h"

/* Along each side of a source's box: its width is right to a tenth. */
#define WIDTH_SAMPLES 16

un_status un_sources_init(un_sources *s, un_context *ctx, const un_scene_def *def,
                          const un_grid *grid, const un_walls *walls)
{
    *s = (un_sources){.ctx = ctx, .def = def, .grid = grid, .walls = walls};
    s->emission = un_alloc_zero(ctx, (size_t)def->source_count + 1, sizeof *s->emission);
    if (!s->emission) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < def->source_count; n++)
        s->emission[n].width =
            2 * un_shape_depth(ctx, def->sources[n].shape, NULL, def->domain.size, WIDTH_SAMPLES);
    return UN_OK;
}

void un_sources_free(un_sources *s)
{
    if (s->ctx) un_free(s->ctx, s->emission);
    *s = (un_sources){0};
}

bool un_sources_any(const un_sources *s)
{
    bool open = false;
    for (int side = 0; side < 6; side++) open |= s->def->domain.open[side];
    return open || s->def->source_count > 0;
}

bool un_sources_in_domain(const un_sources *s, un_vec3 x)
{
    un_vec3 size = s->def->domain.size;
    return x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= size.x && x.y <= size.y && x.z <= size.z;
}

un_vec3 un_sources_came_from(const un_sources *s, un_vec3 x, un_vec3 step)
{
    un_vec3 from = un_sub(x, step);
    return un_sources_in_domain(s, from) && un_walls_distance_exact(s->walls, from) > 0 ? from : x;
}
