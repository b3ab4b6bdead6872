/* Volume that emitters add inside the liquid of a grid: the next projection makes room for it. */
#include "sources/sources.h"

un_status un_inflow_add(un_context *ctx, un_inflow *f, int64_t cell, double volume)
{
    size_t count = (size_t)f->count + 1;
    UN_TRY(un_array_reserve(ctx, (void **)&f->cell, &f->capacity[0], count, sizeof *f->cell));
    UN_TRY(un_array_reserve(ctx, (void **)&f->volume, &f->capacity[1], count, sizeof *f->volume));
    f->cell[f->count] = (int32_t)cell;
    f->volume[f->count++] = volume;
    return UN_OK;
}

un_status un_inflow_need(un_context *ctx, un_inflow *f, int32_t count)
{
    size_t room = (size_t)count + 1;
    UN_TRY(un_array_need(ctx, (void **)&f->cell, &f->capacity[0], room, sizeof *f->cell));
    UN_TRY(un_array_need(ctx, (void **)&f->volume, &f->capacity[1], room, sizeof *f->volume));
    f->count = count;
    return UN_OK;
}

bool un_inflow_validate(const un_inflow *f, int64_t cell_count)
{
    for (int32_t i = 0; i < f->count; i++)
        if (f->cell[i] < 0 || f->cell[i] >= cell_count) return false;
    return true;
}

void un_inflow_free(un_context *ctx, un_inflow *f)
{
    un_free(ctx, f->cell);
    un_free(ctx, f->volume);
    *f = (un_inflow){0};
}
