/* What a run of method `tet` will take: the first state is made, and the rest is experience. */
#include "method/tet.h"

/* A splash multiplies the surface: figure 3 of [Ando13] peaks at six times its first particles. */
#define GROWTH 4.0
#define MERGED 0.125

un_status un_tet_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    const un_scene_def *def = &scene->def;
    un_estimate even;
    UN_TRY(un_uniform_estimate(ctx, scene, &even));
    void *state = NULL;
    UN_TRY(un_method_tet.create(ctx, scene, &state));
    const un_tet *s = state;
    *estimate = even;
    estimate->cell_count = s->tree.leaf_count;
    estimate->particle_count = s->particles.count;
    /* What emitters bring comes at the finest size and is merged later, down to what the first
     * liquid has for its volume; where there is none, to an eighth. */
    double finer = MERGED;
    if (even.particle_count > 0 && s->particles.count > 0)
        finer = fmin(1, (double)s->particles.count / (double)even.particle_count);
    double most = GROWTH * s->particles.count +
                  finer * (double)(even.particle_count_max - even.particle_count);
    most = fmin(most, (double)even.particle_count_max);
    if (def->budget.particles > 0) most = fmin(most, def->budget.particles);
    estimate->particle_count_max = (int64_t)fmax(most, s->particles.count);
    estimate->bytes =
        UN_TET_FIXED_BYTES + un_tet_bytes_each(s) * (double)estimate->particle_count_max;
    un_method_tet.destroy(state);
    return UN_OK;
}
