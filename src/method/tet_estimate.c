/* What is known of a run of method `tet` beforehand: its first state. How it grows is told by a
 * rehearsal (src/run/rehearse.c). */
#include "method/tet.h"

un_status un_tet_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    UN_TRY(un_uniform_estimate(ctx, scene, estimate));
    void *state = NULL;
    double before = (double)un_context_bytes(ctx);
    UN_TRY(un_method_tet.create(ctx, scene, &state));
    const un_tet *s = state;
    estimate->cell_count = s->tree.leaf_count;
    estimate->particle_count = estimate->particle_count_max = s->particles.count;
    /* Sampling the liquid evenly may take more than any step of it later. */
    estimate->bytes = fmax(un_tet_bytes(s), (double)un_context_peak_bytes(ctx) - before);
    un_method_tet.destroy(state);
    return UN_OK;
}
