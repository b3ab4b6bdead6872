/* The divergence wanted from the projection on tets: to correct the volume by the ledger, to even
 * out crowding, and to make room for emitted liquid. */
#include "pressure/crowding.h"
#include "pressure/pressure.h"

/* An excess of the volume fraction that counts as a heap. */
#define CROWDING_HEAP 0.3
/* Smaller deviations of the volume fraction count as noise. The bound is larger deep inside where
 * cells of several sizes meet, and smaller near the surface, where dips of a few per cent of a cell
 * drive eddies. Within CROWDING_DEPTH cells of the surface the profile is too low to tell. */
#define CROWDING_NOISE 0.08
#define CROWDING_GRADED 0.12
#define CROWDING_SHALLOW 0.04
#define CROWDING_DEPTH 0.5

/* True where cells of different sizes meet: hat functions are lopsided there, and evenly spread
 * particles do not sum to one. */
static bool is_graded(const un_tets *mesh, int64_t n)
{
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4;
        un_tet_kind kind = un_tets_shape(mesh, t)->kind;
        if (kind != UN_TET_BCC && kind != UN_TET_BOUNDARY) return true;
    }
    return false;
}

/* The relative excess of liquid around a node, compared with a node at its depth, beyond the noise
 * of the estimate. Splitting and merging move volume by up to a radius; thinned liquid would stay
 * thin, because the flow is divergence-free, and show as a dip that never closes. Next to solids
 * the fraction is less exact, and nothing is corrected; nor in a side that cuts cells, where it is
 * not known: such nodes drew water at 5 cm/s for ever. */
static double crowding_at(const un_divergence_def *d, int64_t n, double h)
{
    if (!(d->phi[n] < -CROWDING_DEPTH * h)) return fmax(0, d->colour[n] - 1 - CROWDING_HEAP);
    if (d->walls->cut && d->walls->cut[n] <= 0) return 0;
    double crowding = d->colour[n] / un_colour_tets_profile(d->phi[n], h) - 1;
    double size = fabs(crowding) - CROWDING_SHALLOW;
    if (size <= 0) return 0;
    if (d->walls->phi_solid && d->walls->phi_solid[n] < 2 * h) return 0;
    bool graded = is_graded(d->mesh, n);
    if (graded || d->phi[n] < -1.5 * h)
        size = fabs(crowding) - (graded ? CROWDING_GRADED : CROWDING_NOISE);
    return size > 0 ? copysign(size, crowding) : 0;
}

static void wanted_divergence(void *arg, int64_t begin, int64_t end)
{
    const un_divergence_def *d = arg;
    for (int64_t n = begin; n < end; n++) {
        double h = un_octree_size(d->mesh->tree, d->mesh->node_level[n]), sigma = d->expansion;
        double crowding = d->phi[n] < 0 ? crowding_at(d, n, h) : 0;
        sigma = un_crowding_add(sigma, crowding, crowding - CROWDING_HEAP, d->dt, d->pace);
        if (d->emitted && d->walls->node_open[n] > 0)
            sigma += d->emitted[n] / (d->walls->node_open[n] * d->dt);
        d->source[n] = (float)sigma;
    }
}

void un_pressure_want_divergence(un_context *ctx, un_divergence_def *def)
{
    un_parallel_part(ctx, un_tets_own_nodes(def->mesh), 8192, wanted_divergence, def);
}
