#include "particles/particles.h"

void un_particles_free(un_context *ctx, un_particles *p)
{
    for (int a = 0; a < 3; a++) {
        un_free(ctx, p->x[a]);
        un_free(ctx, p->v[a]);
    }
    un_free(ctx, p->volume);
    un_free(ctx, p->flags);
    un_free(ctx, p->spare_double);
    un_free(ctx, p->spare_float);
    un_free(ctx, p->spare_byte);
    *p = (un_particles){0};
}

size_t un_particles_bytes_each(void)
{
    return 7 * sizeof(double) + 2 * sizeof(float) + 2;
}

un_status un_particles_reserve(un_context *ctx, un_particles *p, int64_t count)
{
    if (count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "%.1f billion particles are more than this version can number; "
                       "lower detail.finest",
                       (double)count / 1e9);
    if ((size_t)count <= p->capacity) return UN_OK;
    /* All arrays share one capacity, raised only once each has grown. */
    size_t target = p->capacity + p->capacity / 4;
    if (target < (size_t)count) target = (size_t)count;
    void **arrays[] = {(void **)&p->x[0],         (void **)&p->x[1],      (void **)&p->x[2],
                       (void **)&p->v[0],         (void **)&p->v[1],      (void **)&p->v[2],
                       (void **)&p->spare_double, (void **)&p->volume,    (void **)&p->spare_float,
                       (void **)&p->flags,        (void **)&p->spare_byte};
    size_t sizes[] = {8, 8, 8, 8, 8, 8, 8, 4, 4, 1, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *moved = un_realloc(ctx, *arrays[i], target, sizes[i]);
        if (!moved) return UN_ERROR_MEMORY;
        *arrays[i] = moved;
    }
    p->capacity = target;
    return UN_OK;
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
        if (kept != i) {
            for (int a = 0; a < 3; a++) {
                p->x[a][kept] = p->x[a][i];
                p->v[a][kept] = p->v[a][i];
            }
            p->volume[kept] = p->volume[i];
            p->flags[kept] = p->flags[i];
        }
        kept++;
    }
    p->count = kept;
    return removed;
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
