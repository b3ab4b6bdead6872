/* What methods with particles on graded tets show on several ranks. Each rank writes its particles
 * and a part of the checkpoint, and all find probes and make the surface together. For cells rank 0
 * makes a state of its own, as from a checkpoint: it then needs the memory of one rank. */
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
    UN_TRY(need_fetched(a, (size_t)(end - begin) * size));
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

/* One rank after the other adds its part. */
static void hash_part(const un_adaptive *a, un_hashing *h, const void *bytes, size_t count)
{
    if (a->ranks.any) un_ranks_begin_turn(a->core.ctx, h, sizeof *h);
    un_hashing_add(h, bytes, count);
    if (a->ranks.any) un_ranks_end_turn(a->core.ctx, h, sizeof *h);
    un_hashing_end(h);
}

uint64_t un_adaptive_hash(const un_adaptive *a)
{
    un_part nodes = un_tets_own_nodes(&a->mesh.tets), own = un_markers_own(&a->markers);
    const un_particle_share *s = a->markers.share;
    size_t count = (size_t)(nodes.end - nodes.begin);
    un_hashing h = {.hash = (uint64_t)(s ? s->own.total : a->markers.particles.count)};
    hash_part(a, &h, a->node.phi + nodes.begin, count * sizeof *a->node.phi);
    hash_part(a, &h, a->node.u + nodes.begin, count * sizeof *a->node.u);
    hash_part(a, &h, a->markers.particles.flags + own.begin, (size_t)(own.end - own.begin));
    return h.hash;
}

/* ---- rank 0 has it all ---- */

void un_adaptive_show_nothing(un_adaptive *a)
{
    un_adaptive *whole = a->ranks.whole;
    a->ranks.whole = NULL;
    a->ranks.has_probed = false;
    if (!whole) return;
    un_adaptive_free(whole);
    un_free(a->core.ctx, whole);
}

/* Takes the pieces of a section, in order. */
static un_status collect(un_adaptive *a, un_state *to, const un_section *from)
{
    int64_t step = 1 << 18;
    bool first = un_rank(a->core.ctx) == 0;
    void *all = NULL;
    un_status status = UN_OK;
    if (first) status = un_state_add_own(to, from->name, from->count, from->width, &all);
    if (all && !from->fetch)
        memcpy(all, un_section_data(from), (size_t)from->count * (size_t)from->width);
    UN_TRY(un_ranks_agree(a->core.ctx, status));
    for (int64_t at = 0; from->fetch && at < from->count; at += step) {
        const void *data;
        int64_t end = un_min64(at + step, from->count);
        UN_TRY(from->fetch(from->fetch_arg, from, at, first ? end : at, &data));
        if (first)
            memcpy((char *)all + (size_t)at * (size_t)from->width, data,
                   (size_t)(end - at) * (size_t)from->width);
    }
    return UN_OK;
}

static un_status load_whole(un_adaptive *a, const un_state *all)
{
    un_adaptive *whole = un_alloc_zero(a->core.ctx, 1, sizeof *whole);
    if (!whole) return UN_ERROR_MEMORY;
    a->ranks.whole = whole;
    UN_TRY(un_adaptive_begin(whole, a->core.ctx, a->core.scene));
    return un_adaptive_load(whole, all);
}

/* ---- probes without that ---- */

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

un_status un_adaptive_gather_ranks(void *state, unsigned what)
{
    un_adaptive *a = state;
    un_context *ctx = a->core.ctx;
    unsigned probes = UN_SHOW_PROBES | UN_SHOW_FRONTS;
    if (!a->ranks.any || !(what & (UN_SHOW_ALL | probes))) return UN_OK;
    if (un_ranks_max(ctx, a->ranks.whole != NULL) > 0) return UN_OK;
    bool cells = what & UN_SHOW_ALL && !(what & UN_SHOW_PROBES);
    if (!cells) return un_adaptive_probe_ranks(a, what);
    un_state mine, all;
    un_state_init(&mine, ctx);
    un_state_init(&all, ctx);
    un_status status = un_adaptive_save(a, &mine);
    for (int32_t k = 0; k < mine.count && status == UN_OK; k++)
        status = collect(a, &all, &mine.sections[k]);
    if (status == UN_OK && un_rank(ctx) == 0) status = load_whole(a, &all);
    un_state_free(&mine);
    un_state_free(&all);
    return un_ranks_agree(ctx, status);
}
