/* What method `octree` shows on several ranks. Each rank writes its particles and a part of the
 * checkpoint. For surfaces in 2D rank 0 gets all particles; in 3D all make the surface together.
 * Rank 0 gets what is at all leaves, too, where it shows that: cells, probes, surfaces in 2D. */
#include "method/octree.h"

/* ---- windows ---- */

static un_status need_fetched(un_octree_flip *s, size_t bytes)
{
    return un_array_need(s->core.ctx, &s->ranks.fetched, &s->ranks.fetched_room, bytes + 1, 1);
}

static void window_of(const un_octree_flip *s, const void *array, size_t size, int64_t begin,
                      int64_t end, void *out)
{
    un_ranks_own_window(s->core.ctx, s->ranks.particles.own, array, size, begin, end, out);
}

static void fetch_fields(const un_octree_flip *s, unsigned fields, int64_t begin, int64_t end,
                         un_particles *to)
{
    const un_particles *p = &s->markers.particles;
    for (int k = 0; k < 3 && fields & UN_PLACES; k++)
        window_of(s, p->x[k], sizeof *p->x[k], begin, end, to->x[k]);
    for (int k = 0; k < 3 && fields & UN_VELOCITIES; k++)
        window_of(s, p->v[k], sizeof *p->v[k], begin, end, to->v[k]);
    if (fields & UN_VOLUMES) window_of(s, p->volume, sizeof *p->volume, begin, end, to->volume);
    if (fields & UN_FLAGS) window_of(s, p->flags, 1, begin, end, to->flags);
    to->lead = p->lead;
    to->count = (int32_t)(end - begin);
}

/* Its own are one part of the order, so a rank has its windows. */
static un_status window(void *arg, unsigned fields, int64_t begin, int64_t end, un_particles *view)
{
    const un_octree_flip *s = arg;
    int64_t at = begin - s->ranks.particles.own.begin;
    (void)fields;
    *view = (un_particles){0};
    if (begin == end) return UN_OK;
    *view = un_particles_part(&s->markers.particles, (un_part){at, at + end - begin});
    view->depth = s->markers.depth + at;
    return UN_OK;
}

un_status un_octree_stream(void *state, un_particle_stream *stream)
{
    un_octree_flip *s = state;
    un_range own = s->ranks.particles.own;
    *stream = (un_particle_stream){.count = own.total,
                                   .part = {own.begin, own.end},
                                   .arg = s,
                                   .window = window,
                                   .depth = true};
    return UN_OK;
}

/* Elements of arrays that ranks have in ranges; own: this rank's. */
static un_status fetch(un_octree_flip *s, un_range range, const void *own, size_t size,
                       un_part window, const void **data)
{
    un_status status = need_fetched(s, (size_t)(window.end - window.begin) * size);
    UN_TRY(un_ranks_agree(s->core.ctx, status));
    *data = s->ranks.fetched;
    return un_ranks_windows(s->core.ctx, range, own, size, window, s->ranks.fetched);
}

static un_status fetch_particles(void *arg, const un_section *section, int64_t begin, int64_t end,
                                 const void **data)
{
    un_octree_flip *s = arg;
    return fetch(s, s->ranks.particles.own, section->data, (size_t)section->width,
                 (un_part){begin, end}, data);
}

un_status un_octree_save_particles(const un_octree_flip *s, un_state *out)
{
    int32_t first = out->count;
    UN_TRY(un_save_particles(out, &s->markers.particles, s->markers.flags_before));
    if (s->ranks.any)
        un_state_fetch_from(out, first, un_octree_particle_count(s), fetch_particles, (void *)s);
    return UN_OK;
}

static un_status fetch_leaves(void *arg, const un_section *section, int64_t begin, int64_t end,
                              const void **data)
{
    un_octree_flip *s = arg;
    un_part own = un_leaves_own(&s->leaves);
    un_range range = {own.begin, own.end, s->leaves.count};
    size_t size = (size_t)section->width;
    const char *all = section->data;
    return fetch(s, range, all + (size_t)own.begin * size, size, (un_part){begin, end}, data);
}

void un_octree_fetch_leaves(const un_octree_flip *s, un_state *out, int32_t first)
{
    if (s->ranks.any) un_state_fetch_from(out, first, s->leaves.count, fetch_leaves, (void *)s);
}

static un_status fetch_kept(void *arg, const un_section *section, int64_t begin, int64_t end,
                            const void **data)
{
    un_octree_flip *s = arg;
    return fetch(s, s->ranks.kept, section->data, (size_t)section->width, (un_part){begin, end},
                 data);
}

void un_octree_fetch_kept(const un_octree_flip *s, un_state *out, int32_t first)
{
    if (s->ranks.any) un_state_fetch_from(out, first, s->ranks.kept.total, fetch_kept, (void *)s);
}

uint64_t un_octree_hash(const un_octree_flip *s)
{
    un_context *ctx = s->core.ctx;
    const un_particles *p = &s->markers.particles;
    un_part leaves = un_leaves_own(&s->leaves), faces = un_leaves_own_faces(&s->leaves);
    un_hashing h = {.hash = (uint64_t)un_octree_particle_count(s)};
    un_hashing_part(ctx, s->ranks.any, &h, s->at.phi + leaves.begin,
                    (size_t)(leaves.end - leaves.begin) * sizeof *s->at.phi);
    un_hashing_part(ctx, s->ranks.any, &h, s->at.u + faces.begin,
                    (size_t)(faces.end - faces.begin) * sizeof *s->at.u);
    un_hashing_part(ctx, s->ranks.any, &h, p->flags, (size_t)p->count);
    return h.hash;
}

/* ---- rank 0 has all particles ---- */

/* Rank 0 gets what is at all leaves, and their neighbours. */
static un_status show_leaves(un_octree_flip *s, unsigned what)
{
    un_context *ctx = s->core.ctx;
    un_part own = un_leaves_own(&s->leaves), faces = un_leaves_own_faces(&s->leaves);
    un_range leaf = {own.begin, own.end, s->leaves.count};
    un_range face = {faces.begin, faces.end, s->leaves.face_count};
    un_status status = UN_OK;
    if (what == 0) return UN_OK;
    un_ranks_collect(ctx, leaf, s->at.phi, sizeof *s->at.phi);
    un_ranks_collect(ctx, leaf, s->thick.any ? s->thick.shown : s->at.p, sizeof *s->at.p);
    un_ranks_collect(ctx, face, s->at.u, sizeof *s->at.u);
    if (un_rank(ctx) == 0 && !s->ranks.shows_leaves) {
        s->ranks.shows_leaves = true;
        status = un_leaves_build(&s->ranks.all_leaves, ctx, &s->tree);
        if (status == UN_OK)
            status =
                un_leaf_walls_sample(&s->ranks.all_walls, ctx, s->core.walls, &s->ranks.all_leaves);
    }
    return un_ranks_agree(ctx, status);
}

/* What of it is at leaves. */
static unsigned shown_leaves(const un_octree_flip *s, unsigned what)
{
    unsigned at_leaves = UN_SHOW_LEVEL | UN_SHOW_PRESSURE | UN_SHOW_VELOCITY;
    return what & (s->tree.dim == 2 ? at_leaves | UN_SHOW_SURFACE : at_leaves);
}

void un_octree_show_nothing(un_octree_flip *s)
{
    if (s->ranks.shows_leaves) {
        un_leaves_free(&s->ranks.all_leaves);
        un_leaf_walls_free(&s->ranks.all_walls);
        s->ranks.shows_leaves = false;
    }
    un_markers *whole = s->ranks.whole;
    s->ranks.whole = NULL;
    s->ranks.has_probed = false;
    if (!whole) return;
    un_markers_free(s->core.ctx, whole);
    un_free(s->core.ctx, whole);
}

/* Room for all, and what shows them: radii as after sorting. */
static un_status make_whole(un_octree_flip *s, int64_t count)
{
    un_context *ctx = s->core.ctx;
    un_markers *whole = un_alloc_zero(ctx, 1, sizeof *whole);
    if (!whole) return UN_ERROR_MEMORY;
    un_markers_init(ctx, whole);
    s->ranks.whole = whole;
    whole->particles.flat = s->markers.particles.flat;
    UN_TRY(un_particles_reserve(ctx, &whole->particles, un_max64(count, 1)));
    float **arrays[2] = {&whole->radius, &whole->depth};
    for (int k = 0; k < 2; k++)
        UN_TRY(un_array_need(ctx, (void **)arrays[k], &whole->capacity[k], (size_t)count + 1,
                             sizeof **arrays));
    return UN_OK;
}

static un_status probe_particles(un_octree_flip *s, bool fronts)
{
    un_context *ctx = s->core.ctx;
    size_t count = 2 * (size_t)s->core.def->probe_count + 1;
    if (!s->ranks.probed) s->ranks.probed = un_alloc(ctx, count, sizeof *s->ranks.probed);
    UN_TRY(un_ranks_agree(ctx, s->ranks.probed ? UN_OK : UN_ERROR_MEMORY));
    UN_TRY(un_core_probe_ranks(&s->core, &s->markers, fronts, s->ranks.probed));
    s->ranks.has_probed = true;
    return UN_OK;
}

un_status un_octree_gather_ranks(void *state, unsigned what)
{
    un_octree_flip *s = state;
    un_context *ctx = s->core.ctx;
    int64_t count = un_octree_particle_count(s);
    un_particles none = {0};
    bool first = un_rank(ctx) == 0;
    if (!s->ranks.any) return UN_OK;
    UN_TRY(show_leaves(s, shown_leaves(s, what)));
    if (what & (UN_SHOW_PARTICLES | UN_SHOW_FRONTS))
        UN_TRY(probe_particles(s, what & UN_SHOW_FRONTS));
    if (!(what & UN_SHOW_SURFACE && s->tree.dim == 2)) return UN_OK;
    if (un_ranks_max(ctx, s->ranks.whole != NULL) > 0) return UN_OK;
    UN_TRY(un_ranks_agree(ctx, first ? make_whole(s, count) : UN_OK));
    un_markers *whole = s->ranks.whole;
    fetch_fields(s, UN_PLACES | UN_VELOCITIES | UN_VOLUMES | UN_FLAGS, 0, count,
                 first ? &whole->particles : &none);
    window_of(s, s->markers.depth, sizeof(float), 0, count, first ? whole->depth : NULL);
    if (!first) return UN_OK;
    whole->ballistic = s->markers.ballistic;
    un_particles_radii(whole->radius, whole->particles.volume, count, whole->particles.flat);
    return UN_OK;
}
