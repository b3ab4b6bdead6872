#include "particles/particles.h"

void un_particles_free(un_context *ctx, un_particles *p)
{
    for (int a = 0; a < 3; a++) {
        un_free(ctx, p->x[a]);
        un_free(ctx, p->v[a]);
        un_free(ctx, p->xi[a]);
    }
    for (int a = 0; a < 9; a++) un_free(ctx, p->affine[a]);
    un_free(ctx, p->volume);
    un_free(ctx, p->flags);
    un_free(ctx, p->fall);
    un_free(ctx, p->size);
    un_free(ctx, p->density);
    un_free(ctx, p->viscosity);
    un_free(ctx, p->depth);
    un_free(ctx, p->spare_double);
    un_free(ctx, p->spare_float);
    un_free(ctx, p->spare_byte);
    *p = (un_particles){.flat = p->flat, .sized = p->sized, .mixed = p->mixed, .warped = p->warped};
}

size_t un_particles_bytes_each(void)
{
    return 7 * sizeof(double) + 2 * sizeof(float) + 3;
}

/* Their arrays. */
typedef struct arrays {
    struct {
        void **at;
        size_t size;
    } of[27];
    int count;
} arrays;

static void add(arrays *list, void *at, size_t size, bool any)
{
    if (!any) return;
    list->of[list->count].at = at;
    list->of[list->count++].size = size;
}

static arrays list_arrays(un_particles *p)
{
    arrays list = {.count = 0};
    for (int a = 0; a < 3; a++) add(&list, &p->x[a], sizeof *p->x[a], true);
    for (int a = 0; a < 3; a++) add(&list, &p->v[a], sizeof *p->v[a], true);
    add(&list, &p->spare_double, sizeof *p->spare_double, true);
    add(&list, &p->volume, sizeof *p->volume, true);
    add(&list, &p->spare_float, sizeof *p->spare_float, true);
    add(&list, &p->flags, 1, true);
    add(&list, &p->spare_byte, 1, true);
    add(&list, &p->size, sizeof *p->size, p->sized);
    add(&list, &p->density, sizeof *p->density, p->mixed);
    add(&list, &p->viscosity, sizeof *p->viscosity, p->mixed);
    add(&list, &p->fall, 1, true);
    for (int a = 0; a < 3; a++) add(&list, &p->xi[a], sizeof *p->xi[a], p->warped);
    for (int a = 0; a < 9; a++) add(&list, &p->affine[a], sizeof *p->affine[a], p->warped);
    return list;
}

/* All arrays share one capacity, which changes only after every array has been resized. */
static un_status resize_arrays(un_context *ctx, un_particles *p, size_t target)
{
    arrays list = list_arrays(p);
    for (int i = 0; i < list.count; i++) {
        void *moved = un_realloc(ctx, *list.of[i].at, target, list.of[i].size);
        if (!moved) return UN_ERROR_MEMORY;
        *list.of[i].at = moved;
    }
    p->capacity = target;
    return UN_OK;
}

void un_particles_rest(un_particles *p)
{
    arrays list = list_arrays(p);
    for (int i = 0; i < list.count; i++)
        un_give_back(*list.of[i].at, (size_t)p->count * list.of[i].size,
                     p->capacity * list.of[i].size);
}

un_status un_particles_reserve(un_context *ctx, un_particles *p, int64_t count)
{
    if (count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "%.1f billion particles are more than this version can number; "
                       "lower detail.finest",
                       (double)count / 1e9);
    if ((size_t)count <= p->capacity) return UN_OK;
    UN_ASSERT(p->capacity == 0 || p->sized == (p->size != NULL));
    size_t target = p->capacity + p->capacity / 4;
    if (target < (size_t)count) target = (size_t)count;
    return resize_arrays(ctx, p, target);
}

un_status un_particles_trim(un_context *ctx, un_particles *p)
{
    size_t target = (size_t)p->count + 1;
    if (target >= p->capacity) return UN_OK;
    p->capacity = target; /* also safe for arrays not cut yet, should one fail */
    return resize_arrays(ctx, p, target);
}

double un_particles_filter(un_particles *p, const uint8_t *keep)
{
    int32_t kept = 0;
    double removed = 0;
    for (int32_t i = 0; i < p->count; i++) {
        if (!keep[i]) {
            removed += p->volume[i];
            continue;
        }
        if (kept != i) un_particle_copy(p, kept, i);
        kept++;
    }
    p->count = kept;
    return removed;
}

/* ---- reordering ---- */

#define GATHER_GRAIN 4096

typedef struct gather_args {
    const int32_t *order;
    const void *from;
    void *to;
} gather_args;

static void gather_doubles(void *arg, int64_t begin, int64_t end)
{
    const gather_args *g = arg;
    const double *from = g->from;
    double *to = g->to;
    for (int64_t i = begin; i < end; i++) to[i] = from[g->order[i]];
}

static void gather_floats(void *arg, int64_t begin, int64_t end)
{
    const gather_args *g = arg;
    const float *from = g->from;
    float *to = g->to;
    for (int64_t i = begin; i < end; i++) to[i] = from[g->order[i]];
}

static void gather_bytes(void *arg, int64_t begin, int64_t end)
{
    const gather_args *g = arg;
    const uint8_t *from = g->from;
    uint8_t *to = g->to;
    for (int64_t i = begin; i < end; i++) to[i] = from[g->order[i]];
}

void un_particles_take(un_context *ctx, un_particles *p, const int32_t *order, int32_t count)
{
    UN_ASSERT((size_t)count <= p->capacity);
    double **doubles[9] = {&p->x[0], &p->x[1],  &p->x[2],  &p->v[0], &p->v[1],
                           &p->v[2], &p->xi[0], &p->xi[1], &p->xi[2]};
    for (int a = 0; a < (p->warped ? 9 : 6); a++) {
        gather_args g = {order, *doubles[a], p->spare_double};
        un_parallel_for(ctx, count, GATHER_GRAIN, gather_doubles, &g);
        p->spare_double = *doubles[a];
        *doubles[a] = g.to;
    }
    float **floats[13] = {&p->volume, &p->size, &p->density, &p->viscosity};
    for (int a = 0; a < 9; a++) floats[4 + a] = &p->affine[a];
    for (int a = 0; a < 13; a++) {
        if (!*floats[a]) continue;
        gather_args g = {order, *floats[a], p->spare_float};
        un_parallel_for(ctx, count, GATHER_GRAIN, gather_floats, &g);
        p->spare_float = *floats[a];
        *floats[a] = g.to;
    }
    uint8_t **bytes[2] = {&p->flags, &p->fall};
    for (int a = 0; a < 2; a++) {
        gather_args g = {order, *bytes[a], p->spare_byte};
        un_parallel_for(ctx, count, GATHER_GRAIN, gather_bytes, &g);
        p->spare_byte = *bytes[a];
        *bytes[a] = g.to;
    }
    p->count = count;
}

void un_particles_reorder(un_context *ctx, un_particles *p, const int32_t *order)
{
    un_particles_take(ctx, p, order, p->count);
}

static double volume_block(void *arg, int64_t begin, int64_t end)
{
    const un_particles *p = arg;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += p->volume[i];
    return sum;
}

double un_particles_volume(un_context *ctx, const un_particles *p)
{
    return un_parallel_sum(ctx, p->count, volume_block, (void *)(uintptr_t)p);
}
