/* The schedule of emitters, drains and open sides. */
#include "sources/sources.h"

un_status un_sources_init(un_sources *s, un_context *ctx, const un_scene_def *def,
                          const un_grid *grid, const un_walls *walls)
{
    *s = (un_sources){.ctx = ctx, .def = def, .grid = grid, .walls = walls};
    s->emission = un_alloc_zero(ctx, (size_t)def->source_count + 1, sizeof *s->emission);
    return s->emission ? UN_OK : UN_ERROR_MEMORY;
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
