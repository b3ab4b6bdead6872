/* What methods with particles on graded tets show on several ranks. Each rank writes its particles
 * and a part of the checkpoint, and all find probes and make the surface together. Cells are made
 * by their ranks and collected by rank 0. */
#include "method/adaptive.h"

/* ---- windows ---- */

static un_status need_fetched(un_adaptive *a, size_t bytes)
{
    return un_array_need(a->core.ctx, &a->ranks.fetched, &a->ranks.fetched_room, bytes + 1, 1);
}

/* Its own are one part of the order, so a rank has its windows. */
static un_status window(void *arg, unsigned fields, int64_t begin, int64_t end, un_particles *view)
{
    const un_adaptive *a = arg;
    const un_particle_share *s = a->markers.share;
    int64_t at = begin - s->own.begin + s->begin;
    (void)fields;
    *view = (un_particles){0};
    if (begin == end) return UN_OK;
    *view = un_particles_part(&a->markers.particles, (un_part){at, at + end - begin});
    view->depth = a->markers.depth + at;
    return UN_OK;
}

un_status un_adaptive_stream(void *state, un_particle_stream *stream)
{
    un_adaptive *a = state;
    un_range own = a->markers.share->own;
    *stream = (un_particle_stream){.count = own.total,
                                   .part = {own.begin, own.end},
                                   .arg = a,
                                   .window = window,
                                   .mixed = a->markers.particles.mixed,
                                   .depth = true};
    return UN_OK;
}

/* Of a section that holds this rank's own. */
static un_status fetch(un_adaptive *a, un_range range, const un_section *section, int64_t begin,
                       int64_t end, const void **data)
{
    size_t size = (size_t)section->width;
    UN_TRY(un_ranks_agree(a->core.ctx, need_fetched(a, (size_t)(end - begin) * size)));
    *data = a->ranks.fetched;
    return un_ranks_windows(a->core.ctx, range, section->data, size, (un_part){begin, end},
                            a->ranks.fetched);
}
static un_status fetch_particles(void *arg, const un_section *section, int64_t begin, int64_t end,
                                 const void **data)
{
    un_adaptive *a = arg;
    return fetch(a, a->markers.share->own, section, begin, end, data);
}
static un_status fetch_nodes(void *arg, const un_section *section, int64_t begin, int64_t end,
                             const void **data)
{
    un_adaptive *a = arg;
    return fetch(a, a->ranks.tets.nodes, section, begin, end, data);
}

void un_adaptive_fetch_particles(const un_adaptive *a, un_state *out, int32_t first)
{
    if (a->ranks.any)
        un_state_fetch_from(out, first, a->markers.share->own.total, fetch_particles, (void *)a);
}

void un_adaptive_fetch_nodes(const un_adaptive *a, un_state *out, int32_t first)
{
    if (a->ranks.any)
        un_state_fetch_from(out, first, a->ranks.tets.nodes.total, fetch_nodes, (void *)a);
}

/* ---- a hash of all ---- */

uint64_t un_adaptive_hash(const un_adaptive *a)
{
    un_part nodes = un_tets_own_nodes(&a->mesh.tets), own = un_markers_own(&a->markers);
    const un_particle_share *s = a->markers.share;
    size_t count = (size_t)(nodes.end - nodes.begin);
    un_hashing h = {.hash = (uint64_t)(s ? s->own.total : a->markers.particles.count)};
    un_hashing_part(a->core.ctx, a->ranks.any, &h, a->node.phi + nodes.begin,
                    count * sizeof *a->node.phi);
    un_hashing_part(a->core.ctx, a->ranks.any, &h, a->node.u + nodes.begin,
                    count * sizeof *a->node.u);
    un_hashing_part(a->core.ctx, a->ranks.any, &h, a->markers.particles.flags + own.begin,
                    (size_t)(own.end - own.begin));
    return h.hash;
}

/* ---- probes ---- */

/* At a place: the rank that has it tells. */
static void probe_at(const un_adaptive *a, const un_probe *which, double *value)
{
    un_context *ctx = a->core.ctx;
    uint64_t key = un_tets_place_key(&a->mesh.tets, which->at);
    bool mine = un_ranks_owner(a->ranks.tree.first, un_rank_count(ctx), key) == un_rank(ctx);
    *value = mine ? un_adaptive_probe_here(a, which) : 0;
    un_ranks_add(ctx, value, 1);
}

un_status un_adaptive_probe_ranks(un_adaptive *a, unsigned what)
{
    un_context *ctx = a->core.ctx;
    const un_scene_def *def = a->core.def;
    const un_tets *mesh = &a->mesh.tets;
    un_status status = UN_OK;
    if (!a->ranks.probed) {
        size_t count = 2 * (size_t)def->probe_count + 1;
        a->ranks.probed = un_alloc(ctx, count, sizeof *a->ranks.probed);
        if (!a->ranks.probed) status = UN_ERROR_MEMORY;
    }
    UN_TRY(un_ranks_agree(ctx, status));
    for (int32_t i = 0; i < def->probe_count; i++) {
        const un_probe *p = &def->probes[i];
        double *value = &a->ranks.probed[i];
        if (p->kind == UN_PROBE_FRONT)
            UN_TRY(un_probe_front_ranks(ctx, a->node.phi, mesh, p->axis, p->sign, value));
        else if (p->kind == UN_PROBE_HEIGHT)
            UN_TRY(un_probe_height_ranks(ctx, a->node.phi, mesh, p->at.x, p->at.z, value));
        else if (p->kind == UN_PROBE_PRESSURE || p->kind == UN_PROBE_VELOCITY)
            probe_at(a, p, value);
        else if (p->kind == UN_PROBE_FORCE)
            UN_TRY(un_adaptive_force_ranks(a, p, value));
    }
    bool fronts = what & UN_SHOW_FRONTS;
    UN_TRY(un_core_probe_ranks(&a->core, &a->markers, fronts, a->ranks.probed));
    a->ranks.has_probed = true;
    return UN_OK;
}

/* ---- what rank 0 shows ---- */

void un_adaptive_show_nothing(un_adaptive *a)
{
    a->ranks.has_probed = false;
    un_cells_free(a->core.ctx, &a->ranks.cells);
}

un_status un_adaptive_gather_ranks(void *state, unsigned what)
{
    un_adaptive *a = state;
    unsigned probes = UN_SHOW_PROBES | UN_SHOW_FRONTS;
    if (!a->ranks.any) return UN_OK;
    bool cells = what & UN_SHOW_ALL && !(what & UN_SHOW_PROBES);
    if (cells) {
        un_cells_free(a->core.ctx, &a->ranks.cells);
        UN_TRY(un_adaptive_find_cells(a, &a->ranks.cells));
    }
    return what & probes ? un_adaptive_probe_ranks(a, what) : UN_OK;
}
