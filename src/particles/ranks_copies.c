/* Copies of other ranks' particles.
 *
 * A rank needs, in whole groups as on one rank:
 *  - particles in tets around its own nodes, and large ones whose parts may lie there: what nodes
 *    gather (transfer/tets.c);
 *  - all that may touch its own particles: position correction looks around blocks of eight groups
 *    in a row, so a block that holds an own particle is needed whole, and every group that its box
 *    may reach;
 *  - all that may touch those of its own particles that split or merge: resizing. They are few, so
 *    a rank tells boxes of these alone.
 * copies_near.c finds out who may need what, copies_list.c lists what goes to whom, and this file
 * sends it, puts it in its place, and sorts all into bins. */
#include "particles/copies.h"

/* ---- what arrives ---- */

/* The elements before own ones, and after. */
static void insert(char *array, const char *arrived, size_t size, int64_t own, int64_t lower,
                   int64_t upper)
{
    memmove(array + (size_t)lower * size, array, (size_t)own * size);
    memcpy(array, arrived, (size_t)lower * size);
    memcpy(array + (size_t)(lower + own) * size, arrived + (size_t)lower * size,
           (size_t)upper * size);
}

static un_status number_groups(un_particle_share *s, const int64_t *number, int64_t lower,
                               int64_t count)
{
    int64_t own = s->own.end - s->own.begin, groups = (count + UN_GROUP - 1) / UN_GROUP;
    UN_TRY(un_array_need(s->ctx, (void **)&s->group, &s->capacity_group, (size_t)groups + 1,
                         sizeof *s->group));
    for (int64_t g = 0; g < groups; g++) {
        int64_t q = g * UN_GROUP;
        int64_t n = q < lower         ? number[q]
                    : q < lower + own ? s->own.begin + q - lower
                                      : number[q - own];
        if (n % UN_GROUP != 0)
            return un_fail(s->ctx, UN_ERROR_ARGUMENT, "rank %d got a part of a group of particles",
                           un_rank(s->ctx));
        s->group[g] = n / UN_GROUP;
    }
    return UN_OK;
}

/* So many bytes of each copy are sent at once: what is on its way has to be somewhere twice. */
#define BATCH 16

static un_status make_room(un_context *ctx, un_particle_share *s, un_particles *p, int64_t count,
                           const un_copied *arrays, int32_t array_count)
{
    int64_t own = p->count, total = own + count;
    UN_TRY(un_particles_reserve(ctx, p, un_max64(total, 1)));
    for (int32_t k = 0; k < array_count; k++)
        UN_TRY(un_array_reserve(ctx, arrays[k].array, arrays[k].capacity, (size_t)total + 1,
                                arrays[k].size));
    return un_array_need(ctx, (void **)&s->room, &s->capacity_room, BATCH * (size_t)count + 1, 1);
}

/* Fields to the copies' places, as many at once as there is room for. Numbers come first, since
 * they say how many copies come before own particles. */
static un_status bring_fields(un_particle_share *s, un_field *fields, int32_t field_count,
                              int64_t own, int64_t *lower)
{
    int64_t count = un_exchange_count(s->copies);
    for (int32_t first = 0, end; first < field_count; first = end) {
        size_t bytes = 0;
        for (end = first; end < field_count && bytes + fields[end].size <= BATCH; end++) {
            if (end > 0) fields[end].to = s->room + (size_t)count * bytes;
            bytes += fields[end].size;
        }
        UN_TRY(un_exchange_run(s->copies, fields + first, end - first));
        const int64_t *theirs = fields[0].to;
        if (first == 0)
            for (*lower = 0; *lower < count && theirs[*lower] < s->own.begin;) ++*lower;
        for (int32_t f = first; f < end; f++)
            if (f > 0)
                insert((char *)(uintptr_t)fields[f].from, fields[f].to, fields[f].size, own, *lower,
                       count - *lower);
    }
    return UN_OK;
}

static un_status bring(un_copying *c, un_markers *m, const un_copied *arrays, int32_t array_count)
{
    un_context *ctx = c->ctx;
    un_particle_share *s = m->share;
    un_particles *p = &m->particles;
    int64_t count = un_exchange_count(s->copies), own = p->count, lower = 0;
    un_status status = make_room(ctx, s, p, count, arrays, array_count);
    if (status == UN_OK) status = un_exchange_reserve(s->copies, BATCH);
    int64_t *number = un_arena_alloc(c->arena, (size_t)(own + count) + 1, sizeof *number);
    int64_t *theirs = un_arena_alloc(c->arena, (size_t)count + 1, sizeof *theirs);
    UN_TRY(un_ranks_agree(ctx, number && theirs ? status : UN_ERROR_MEMORY));
    for (int64_t q = 0; q < own; q++) number[q] = s->own.begin + q;
    un_field fields[UN_FIELDS_MAX] = {{"number", number, theirs, sizeof *number}};
    int32_t field_count = 1 + un_particle_fields(fields + 1, p, p);
    UN_ASSERT(field_count + array_count < UN_FIELDS_MAX);
    for (int32_t k = 0; k < array_count; k++)
        fields[field_count++] =
            (un_field){arrays[k].name, *(void **)arrays[k].array, NULL, arrays[k].size};
    UN_TRY(bring_fields(s, fields, field_count, own, &lower));
    p->count = (int32_t)(own + count);
    s->begin = (int32_t)lower;
    return un_ranks_agree(ctx, number_groups(s, theirs, lower, own + count));
}

static un_status copy(un_copying *c, un_markers *m, const un_copied *arrays, int32_t count)
{
    un_particle_share *s = m->share;
    size_t ranks = (size_t)c->ranks;
    uint8_t *room = un_arena_alloc(c->arena, 3 * ranks, 1);
    c->set = un_arena_alloc(c->arena, ranks, sizeof *c->set);
    UN_TRY(un_ranks_agree(c->ctx, room && c->set ? UN_OK : UN_ERROR_MEMORY));
    memset(room, 0, 3 * ranks);
    c->wanted = room;
    for (int side = 0; side < 2; side++) c->split[side] = room + (1 + (size_t)side) * ranks;
    un_status status = un_copying_tell(c);
    if (status == UN_OK) status = un_copying_list(c);
    un_exchange_destroy(s->copies);
    s->copies = NULL;
    if (status == UN_OK)
        status = un_exchange_create_copies(c->ctx, c->index, c->to, c->count, &s->copies);
    un_free(c->ctx, c->index);
    un_free(c->ctx, c->to);
    UN_TRY(status);
    status = bring(c, m, arrays, count);
    s->halo_bytes += un_exchange_bytes(s->copies);
    s->copied += c->count;
    return status;
}

/* ---- bins of all ---- */

/* Own particles' tets go to their places among the copies. */
static un_status spread_tets(un_context *ctx, un_markers *m)
{
    un_tet_bins *bins = &m->bins;
    size_t own = (size_t)(m->share->own.end - m->share->own.begin);
    UN_TRY(un_array_reserve(ctx, (void **)&bins->tet, &bins->capacity_tet,
                            (size_t)m->particles.count + 1, sizeof *bins->tet));
    memmove(bins->tet + m->share->begin, bins->tet, own * sizeof *bins->tet);
    return UN_OK;
}

/* Seats of own particles; copies get theirs from their owners. */
static un_status find_seats(un_context *ctx, un_arena *arena, un_markers *m, const un_tets *mesh)
{
    if (!mesh->parted) return UN_OK;
    UN_TRY(un_tet_bins_find_seats(ctx, arena, &m->bins, &m->particles, mesh));
    un_arena_reset(arena);
    un_field field = {"seats", m->bins.seat, NULL, sizeof *m->bins.seat};
    return un_particle_refresh(m->share, &field, 1);
}

/* Own particles that others may have in tets around their nodes. Looking a place up costs more than
 * all else that is done with a copy, so copies say whether it is needed. */
static void mark_beside(un_markers *m, const un_tets *mesh)
{
    un_part own = un_tets_own_nodes(mesh);
    for (int32_t q = 0; q < m->particles.count; q++) {
        bool beside = false;
        for (int i = 0; i < 4; i++) {
            int32_t n = mesh->tet[m->bins.tet[q]][i];
            beside |= n < own.begin || n >= own.end;
        }
        m->share->beside[q] = beside;
    }
}

/* Copies in tets around own nodes are sorted like own particles, because ranks number the tets that
 * they both know in the same order. */
static un_status bin_copies(un_markers *m, const un_tets *mesh)
{
    un_tet_bins *bins = &m->bins;
    un_particle_share *s = m->share;
    const un_particles *p = &m->particles;
    int64_t own = s->own.end - s->own.begin, count = p->count;
    un_part tets = un_tets_own(mesh);
    for (int64_t q = 0; q < count; q++) {
        if (q == s->begin) q += own;
        if (q >= count) break;
        un_tets_place place;
        bins->tet[q] = -1;
        if (!s->beside[q]) continue;
        un_tets_locate_closed(mesh, mesh->parted ? bins->seat[q] : un_particle_position(p, q),
                              &place);
        bins->tet[q] = un_tets_knows(mesh, place.tet) ? place.tet : -1;
    }
    int32_t next = 0, last = -1;
    int64_t last_end = 0;
    for (int64_t q = 0; q < count; q++) {
        int32_t t = bins->tet[q];
        if (t < 0) continue;
        if (t < last)
            return un_fail(s->ctx, UN_ERROR_ARGUMENT, "rank %d got particles in another order",
                           un_rank(s->ctx));
        /* tets between get nothing; after an own one, what is unknown is not its own */
        bool from_own = last >= tets.begin && last < tets.end;
        for (; next <= t; next++)
            bins->begin[next] = (int32_t)(from_own && next > last && next < t ? last_end : q);
        last = t;
        last_end = q + 1;
    }
    for (; next <= mesh->tet_count; next++) bins->begin[next] = (int32_t)last_end;
    return UN_OK;
}

un_status un_markers_copy_around(un_context *ctx, un_arena *arena, un_markers *m,
                                 const un_tets *mesh, const un_tree_share *tree)
{
    un_particles *p = &m->particles;
    un_status status = un_array_need(ctx, (void **)&m->radius, &m->capacity[0],
                                     (size_t)p->count + 1, sizeof *m->radius);
    if (status == UN_OK)
        status = un_array_need(ctx, (void **)&m->share->beside, &m->share->capacity_beside,
                               (size_t)p->count + 1, 1);
    UN_TRY(un_ranks_agree(ctx, status));
    mark_beside(m, mesh);
    un_copied beside = {&m->share->beside, &m->share->capacity_beside, 1, "beside"};
    un_particles_radii(m->radius, p->volume, p->count, p->flat);
    un_copying c = {.ctx = ctx,
                    .arena = arena,
                    .particles = p,
                    .own = m->share->own,
                    .reach = m->radius,
                    .factor = 1,
                    .me = un_rank(ctx),
                    .ranks = un_rank_count(ctx),
                    .mesh = mesh,
                    .tree = tree,
                    .tet = m->bins.tet};
    UN_TRY(copy(&c, m, &beside, 1));
    un_arena_reset(arena);
    UN_TRY(un_ranks_agree(ctx, spread_tets(ctx, m)));
    UN_TRY(find_seats(ctx, arena, m, mesh));
    status = bin_copies(m, mesh);
    if (status == UN_OK) status = un_markers_group(ctx, m);
    return un_ranks_agree(ctx, status);
}

/* ---- later ---- */

un_status un_particle_refresh(un_particle_share *s, const un_field *fields, int32_t count)
{
    un_field sent[UN_FIELDS_MAX];
    if (!s) return UN_OK;
    size_t copies = (size_t)un_exchange_count(s->copies), bytes = 0, at = 0;
    int64_t own = s->own.end - s->own.begin;
    UN_ASSERT(count <= UN_FIELDS_MAX);
    for (int32_t f = 0; f < count; f++) bytes += copies * fields[f].size;
    UN_TRY(un_ranks_agree(
        s->ctx, un_array_need(s->ctx, (void **)&s->room, &s->capacity_room, bytes + 1, 1)));
    size_t before = un_exchange_bytes(s->copies);
    for (int32_t f = 0; f < count; at += copies * fields[f].size, f++)
        sent[f] = (un_field){fields[f].name,
                             (const char *)fields[f].from + (size_t)s->begin * fields[f].size,
                             s->room + at, fields[f].size};
    UN_TRY(un_exchange_run(s->copies, sent, count));
    s->halo_bytes += un_exchange_bytes(s->copies) - before;
    for (int32_t f = 0; f < count; f++) {
        size_t size = fields[f].size, lower = (size_t)s->begin;
        char *to = (char *)(uintptr_t)fields[f].from;
        memcpy(to, sent[f].to, lower * size);
        memcpy(to + (lower + (size_t)own) * size, (char *)sent[f].to + lower * size,
               (copies - lower) * size);
    }
    return UN_OK;
}

void un_markers_drop_copies(un_markers *m, const un_layered *arrays, int32_t count)
{
    un_particle_share *s = m->share;
    if (!s) return;
    un_particles *p = &m->particles;
    un_field fields[UN_PARTICLE_FIELDS];
    size_t own = (size_t)(s->own.end - s->own.begin), begin = (size_t)s->begin;
    int32_t field_count = un_particle_fields(fields, p, p);
    for (int32_t f = 0; f < field_count; f++)
        memmove(fields[f].to, (char *)fields[f].to + begin * fields[f].size, own * fields[f].size);
    for (int32_t k = 0; k < count; k++)
        memmove(arrays[k].array, (char *)arrays[k].array + begin * arrays[k].size,
                own * arrays[k].size);
    un_exchange_destroy(s->copies);
    s->copies = NULL;
    p->count = (int32_t)own;
    s->begin = 0;
}

static un_status fetch(un_context *ctx, un_arena *arena, un_markers *m, const float *reach,
                       double factor, const uint8_t *asks, const un_copied *arrays, int32_t count)
{
    un_particle_share *s = m->share;
    un_copying c = {.ctx = ctx,
                    .arena = arena,
                    .particles = &m->particles,
                    .own = s->own,
                    .reach = reach ? reach : m->radius,
                    .asks = asks,
                    .factor = factor,
                    .me = un_rank(ctx),
                    .ranks = un_rank_count(ctx)};
    un_status status = copy(&c, m, arrays, count);
    un_arena_reset(arena);
    return status;
}

un_status un_markers_fetch(un_context *ctx, un_arena *arena, un_markers *m, const float *reach,
                           double factor, const un_copied *arrays, int32_t count)
{
    if (!m->share) return UN_OK;
    return fetch(ctx, arena, m, reach, factor, NULL, arrays, count);
}

/* Arrays by particle that correction and resizing ask for. */
#define MARKER_ARRAYS 6
static void marker_arrays(un_copied arrays[MARKER_ARRAYS], un_markers *m)
{
    static const char *const names[MARKER_ARRAYS] = {"radius",   "depth",    "normal_x",
                                                     "normal_y", "normal_z", "wall"};
    float **array[MARKER_ARRAYS] = {&m->radius,    &m->depth,     &m->normal[0],
                                    &m->normal[1], &m->normal[2], &m->wall};
    for (int k = 0; k < MARKER_ARRAYS; k++)
        arrays[k] = (un_copied){array[k], &m->capacity[k], sizeof(float), names[k]};
}

static void drop(un_markers *m, const un_copied *arrays, int32_t count)
{
    un_layered kept[UN_FIELDS_MAX];
    for (int32_t k = 0; k < count; k++)
        kept[k] = (un_layered){*(void **)arrays[k].array, arrays[k].size};
    un_markers_drop_copies(m, kept, count);
}

un_status un_markers_fetch_near(un_context *ctx, un_arena *arena, un_markers *m, un_sheets *sheets,
                                const un_resize_def *def)
{
    if (!m->share) return UN_OK;
    un_copied arrays[MARKER_ARRAYS + 4];
    int32_t count = MARKER_ARRAYS - 1; /* all but distances to walls */
    marker_arrays(arrays, m);
    if (sheets) {
        static const char *const names[3] = {"axis_x", "axis_y", "axis_z"};
        arrays[count++] = (un_copied){&sheets->gap, &sheets->capacity[0], sizeof(float), "gap"};
        for (int a = 0; a < 3; a++)
            arrays[count++] =
                (un_copied){&sheets->axis[a], &sheets->capacity[1 + a], sizeof(float), names[a]};
    }
    drop(m, arrays, count);
    float *reach = un_arena_alloc(arena, (size_t)m->particles.count + 1, sizeof *reach);
    uint8_t *asks = un_arena_alloc(arena, (size_t)m->particles.count + 1, 1);
    UN_TRY(un_ranks_agree(ctx, reach && asks ? UN_OK : UN_ERROR_MEMORY));
    un_particles_find_resized(ctx, asks, &m->particles, def);
    for (int32_t q = 0; q < m->particles.count; q++)
        reach[q] = un_resize_reach(m->radius[q], sheets && asks[q] ? sheets->gap[q] : 0);
    return fetch(ctx, arena, m, reach, UN_RESIZE_FACTOR, asks, arrays, count);
}

un_status un_markers_fetch_touching(un_context *ctx, un_arena *arena, un_markers *m)
{
    un_copied arrays[MARKER_ARRAYS];
    if (!m->share) return UN_OK;
    marker_arrays(arrays, m);
    return un_markers_fetch(ctx, arena, m, NULL, 1, arrays, MARKER_ARRAYS);
}

void un_markers_drop_touching(un_markers *m)
{
    un_copied arrays[MARKER_ARRAYS];
    if (!m->share) return;
    marker_arrays(arrays, m);
    drop(m, arrays, MARKER_ARRAYS);
}
