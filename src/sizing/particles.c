/* Wanted sizes at particles, from those at nodes. */
#include "sizing/sizing.h"

/* Time in which a particle's wanted size may double, in paces of the scene (un_scene_pace). It
 * shrinks at once: detail appears where it is needed and fades where it was, and sizes near a
 * threshold do not flicker. */
#define COARSEN_TIME 0.15

/* Particles whose sizes are found in one go. */
#define BATCH 256

typedef struct sizes_args {
    un_particles *particles;
    un_sizing_at *at;
    const void *arg;
    double growth;
} sizes_args;

static void particle_sizes(void *arg, int64_t begin, int64_t end)
{
    sizes_args *a = arg;
    un_particles *p = a->particles;
    double size[BATCH];
    for (int64_t first = begin; first < end; first += BATCH) {
        int64_t last = un_min64(first + BATCH, end);
        a->at(a->arg, p, first, last, size);
        for (int64_t q = first; q < last; q++)
            p->size[q] = (float)fmin(size[q - first], p->size[q] * a->growth);
    }
}

void un_sizing_to_particles(un_context *ctx, un_particles *particles, un_part part,
                            un_sizing_at *at, const void *arg, double dt)
{
    sizes_args a = {particles, at, arg, exp2(dt / COARSEN_TIME)};
    un_parallel_part(ctx, part, 2048, particle_sizes, &a);
}

void un_sizing_at_tets(const void *arg, const un_particles *p, int64_t begin, int64_t end,
                       double *size)
{
    const un_sizing_on_tets *on = arg;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q);
        un_tets_place place;
        un_tet_bins_place(on->bins, on->mesh, q, x, &place);
        size[q - begin] = un_tet_sample(on->mesh, on->size, &place);
    }
}

void un_sizing_forget(un_particles *p)
{
    for (int32_t q = 0; q < p->count; q++) p->size[q] = FLT_MAX;
}
