/* Wanted sizes at particles, from those at nodes. */
#include "sizing/sizing.h"

/* Time in which a particle's wanted size may double, s. It shrinks at once: detail appears where it
 * is needed and fades where it was, and what lies at a threshold does not flicker. */
#define COARSEN_TIME 0.15

typedef struct sizes_args {
    un_markers *markers;
    const float *size;
    const un_tets *mesh;
    double growth;
} sizes_args;

static void particle_sizes(void *arg, int64_t begin, int64_t end)
{
    sizes_args *a = arg;
    un_particles *p = &a->markers->particles;
    for (int64_t q = begin; q < end; q++) {
        un_tets_place place;
        un_vec3 x = un_particle_position(p, q);
        if (!un_tets_locate_in(a->mesh, a->markers->bins.tet[q], x, &place))
            un_tets_locate(a->mesh, x, &place);
        double size = un_tet_sample(a->mesh, a->size, &place);
        p->size[q] = (float)fmin(size, p->size[q] * a->growth);
    }
}

void un_sizing_to_particles(un_context *ctx, un_markers *markers, const float *size,
                            const un_tets *mesh, double dt)
{
    sizes_args a = {markers, size, mesh, exp2(dt / COARSEN_TIME)};
    un_parallel_for(ctx, markers->particles.count, 8192, particle_sizes, &a);
}

void un_sizing_forget(un_particles *p)
{
    for (int32_t q = 0; q < p->count; q++) p->size[q] = FLT_MAX;
}
