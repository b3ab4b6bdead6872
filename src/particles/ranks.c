/* Particles on tets over ranks: who has which.
 *
 * A particle belongs to the rank of its tet, and tets are numbered along the curve, of which every
 * rank has a part: so sorted particles are those of one rank, cut into ranges. A particle first
 * goes to the rank that has its place, which knows its tet; where that tet belongs to the leaf
 * beside it, or is beside the place itself, on another rank, it goes on. Sorting is by tet and,
 * within a tet, by the number that the particle had before, as the stable sort of one rank does it.
 *
 * Copies of others' particles come in ranks_copies.c. */
#include "particles/ranks.h"

void un_particle_share_free(un_particle_share *s)
{
    un_free(s->ctx, s->group);
    un_free(s->ctx, s->id);
    un_free(s->ctx, s->room);
    un_free(s->ctx, s->beside);
    un_exchange_destroy(s->copies);
    un_particles_free(s->ctx, &s->arrived);
    *s = (un_particle_share){.ctx = s->ctx};
}

int32_t un_particle_fields(un_field fields[UN_PARTICLE_FIELDS], const un_particles *from,
                           un_particles *to)
{
    static const char *const names[6] = {"x", "y", "z", "vx", "vy", "vz"};
    int32_t count = 0;
    for (int a = 0; a < 3; a++) fields[count++] = (un_field){names[a], from->x[a], to->x[a], 8};
    for (int a = 0; a < 3; a++) fields[count++] = (un_field){names[3 + a], from->v[a], to->v[a], 8};
    fields[count++] = (un_field){"volume", from->volume, to->volume, 4};
    fields[count++] = (un_field){"flags", from->flags, to->flags, 1};
    fields[count++] = (un_field){"fall", from->fall, to->fall, 1};
    if (from->sized) fields[count++] = (un_field){"size", from->size, to->size, 4};
    if (from->mixed) {
        fields[count++] = (un_field){"density", from->density, to->density, 4};
        fields[count++] = (un_field){"viscosity", from->viscosity, to->viscosity, 4};
    }
    return count;
}

static un_status need_ids(un_particle_share *s, int64_t count)
{
    return un_array_reserve(s->ctx, (void **)&s->id, &s->capacity_id, (size_t)count + 1,
                            sizeof *s->id);
}

/* ---- to their ranks ---- */

typedef struct place_args {
    const un_particles *particles;
    const un_tets *mesh;
    const un_tree_share *tree;
    const un_leaves *leaves; /* instead of both */
    const un_bodies *bodies;
    int32_t ranks;
    int32_t *to;
    const un_vec3 *seat;   /* NULL: at the particles' places */
    const int32_t *seated; /* ranks of their tets */
    int32_t *tet;          /* NULL: not asked for */
    int64_t *kept;         /* how many stayed; NULL likewise */
} place_args;

/* The rank that has the particle's place. */
static void find_ranks(void *arg, int64_t begin, int64_t end)
{
    const place_args *a = arg;
    for (int64_t q = begin; q < end; q++)
        a->to[q] =
            un_ranks_owner(a->tree->first, a->ranks,
                           un_tets_place_key(a->mesh, un_particle_position(a->particles, q)));
}

/* Where thin walls part the tets. */
static void find_seated(void *arg, int64_t begin, int64_t end)
{
    const place_args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        un_tets_place place;
        un_tets_locate_closed(a->mesh, a->seat[q], &place);
        a->tet[q] = place.tet;
        a->to[q] = a->seated[q];
    }
}

/* The rank that has its tet, which this one knows. */
static void find_tets(void *arg, int64_t begin, int64_t end)
{
    const place_args *a = arg;
    un_part own = un_tets_own(a->mesh);
    int32_t me = un_rank(a->mesh->ctx);
    for (int64_t q = begin; q < end; q++) {
        un_tets_place place;
        un_tets_locate(a->mesh, un_particle_position(a->particles, q), &place);
        a->tet[q] = place.tet;
        a->to[q] = place.tet >= own.begin && place.tet < own.end
                       ? me
                       : un_tets_node_owner(a->mesh, a->tree, a->mesh->tet[place.tet][3]);
    }
}

/* The rank that has its leaf. */
static void find_leaf_ranks(void *arg, int64_t begin, int64_t end)
{
    const place_args *a = arg;
    const un_octree *tree = a->leaves->tree;
    const int64_t *first = a->leaves->share->leaf;
    int32_t c = 0, r = un_rank(a->leaves->share->ctx);
    uint64_t low = first[r] < tree->leaf_count ? tree->key[first[r]] : UINT64_MAX;
    uint64_t high = first[r + 1] < tree->leaf_count ? tree->key[first[r + 1]] : UINT64_MAX;
    for (int64_t q = begin; q < end; q++) {
        uint64_t key = un_morton((uint32_t)un_octree_index(tree, a->particles->x[0][q], 0),
                                 (uint32_t)un_octree_index(tree, a->particles->x[1][q], 1),
                                 (uint32_t)un_octree_index(tree, a->particles->x[2][q], 2));
        if (!a->leaves->parted && key >= low && key < high) { /* most stay */
            a->to[q] = un_rank(a->leaves->share->ctx);
            continue;
        }
        c = un_leaves_home(a->leaves, a->bodies, c, un_particle_position(a->particles, q));
        if (c < first[r] || c >= first[r + 1])
            for (r = 0; c >= first[r + 1];) r++;
        a->to[q] = r;
    }
}

/* Takes what has arrived, after those that stayed. */
static un_status append(un_particle_share *s, un_particles *p, const uint32_t *id)
{
    un_particles *in = &s->arrived;
    un_field fields[UN_PARTICLE_FIELDS];
    int64_t at = p->count, more = in->count;
    UN_TRY(un_particles_reserve(s->ctx, p, un_max64(at + more, 1)));
    UN_TRY(need_ids(s, at + more));
    int32_t count = un_particle_fields(fields, in, p);
    for (int32_t f = 0; f < count; f++)
        memcpy((char *)fields[f].to + (size_t)at * fields[f].size, fields[f].from,
               (size_t)more * fields[f].size);
    memcpy(s->id + at, id, (size_t)more * sizeof *id);
    p->count = (int32_t)(at + more);
    return UN_OK;
}

/* tet: of particles here, if not NULL; those that stay keep theirs. */
static un_status run_moves(un_particle_share *s, un_arena *arena, un_particles *p, un_exchange *e,
                           const uint8_t *keep, int32_t *tet)
{
    un_context *ctx = s->ctx;
    int64_t count = un_exchange_count(e);
    un_particles *in = &s->arrived;
    in->sized = p->sized;
    in->mixed = p->mixed;
    in->flat = p->flat;
    un_status status = un_particles_reserve(ctx, in, un_max64(count, 1));
    uint32_t *id = un_arena_alloc(arena, (size_t)count + 1, sizeof *id);
    UN_TRY(un_ranks_agree(ctx, id ? status : UN_ERROR_MEMORY));
    un_field fields[UN_PARTICLE_FIELDS + 1];
    int32_t field_count = un_particle_fields(fields, p, in);
    fields[field_count++] = (un_field){"id", s->id, id, sizeof *id};
    UN_TRY(un_exchange_run(e, fields, field_count));
    in->count = (int32_t)count;
    int32_t kept = 0;
    for (int32_t q = 0; q < p->count; q++)
        if (keep[q]) {
            if (tet) tet[kept] = tet[q];
            s->id[kept++] = s->id[q];
        }
    un_particles_filter(p, keep);
    return un_ranks_agree(ctx, append(s, p, id));
}

static un_status move_all(un_particle_share *s, un_arena *arena, un_particles *p,
                          const place_args *args, un_parallel_body *find)
{
    un_context *ctx = s->ctx;
    int32_t me = un_rank(ctx);
    int64_t count = p->count, gone = 0;
    place_args a = *args;
    a.to = un_arena_alloc(arena, (size_t)count + 1, sizeof *a.to);
    uint8_t *keep = un_arena_alloc(arena, (size_t)count + 1, 1);
    UN_TRY(un_ranks_agree(ctx, a.to && keep ? UN_OK : UN_ERROR_MEMORY));
    un_parallel_for(ctx, count, 4096, find, &a);
    for (int64_t q = 0; q < count; q++) {
        keep[q] = a.to[q] == me;
        gone += !keep[q];
        if (keep[q]) a.to[q] = -1;
    }
    if (a.kept) *a.kept = count - gone;
    if (un_ranks_total(ctx, gone) == 0) return UN_OK;
    un_exchange *moves;
    UN_TRY(un_exchange_create_moves(ctx, a.to, count, &moves));
    un_status status = run_moves(s, arena, p, moves, keep, a.tet);
    s->move_bytes += un_exchange_bytes(moves);
    s->moved += gone;
    un_exchange_destroy(moves);
    return status;
}

/* ---- sorting ---- */

/* Into the order of their numbers; tet: their tets, which follow. */
static un_status order_by_id(un_particle_share *s, un_arena *arena, un_particles *p, int32_t *tet)
{
    bool sorted = true;
    int32_t bits = 1;
    for (int32_t q = 1; q < p->count && sorted; q++) sorted = s->id[q - 1] < s->id[q];
    if (sorted) return UN_OK;
    int32_t *order = un_arena_alloc(arena, (size_t)p->count + 1, sizeof *order);
    int32_t *was = un_arena_alloc(arena, (size_t)p->count + 1, sizeof *was);
    if (!order || !was) return UN_ERROR_MEMORY;
    while (bits < 32 && s->id_total >> bits) bits++;
    UN_TRY(un_parallel_sort(s->ctx, arena, order, s->id, p->count, bits));
    un_particles_reorder(s->ctx, p, order);
    if (!tet) return UN_OK;
    memcpy(was, tet, (size_t)p->count * sizeof *was);
    for (int32_t q = 0; q < p->count; q++) tet[q] = was[order[q]];
    return UN_OK;
}

static un_status need_tets(un_context *ctx, un_tet_bins *bins, int64_t count)
{
    return un_array_reserve(ctx, (void **)&bins->tet, &bins->capacity_tet, (size_t)count + 1,
                            sizeof *bins->tet);
}

/* Seats of particles from `from` on. All ranks call it. */
static un_status find_seats(un_context *ctx, un_arena *arena, un_vec3 **seat, int32_t **rank,
                            const un_particles *p, const un_tets *mesh, int64_t from)
{
    size_t count = (size_t)(p->count - from);
    un_vec3 *x = un_arena_alloc(arena, count + 1, sizeof *x);
    *seat = un_arena_alloc(arena, count + 1, sizeof **seat);
    *rank = un_arena_alloc(arena, count + 1, sizeof **rank);
    UN_TRY(un_ranks_agree(ctx, x && *seat && *rank ? UN_OK : UN_ERROR_MEMORY));
    for (size_t k = 0; k < count; k++) x[k] = un_particle_position(p, from + (int64_t)k);
    return un_tets_seats(mesh, x, (int64_t)count, *seat, *rank);
}

/* The tets of particles that have come since the others' were found. */
static un_status find_rest(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                           const un_particles *p, const un_tets *mesh, int64_t found)
{
    un_vec3 *seat = NULL;
    int32_t *rank;
    UN_TRY(un_ranks_agree(ctx, need_tets(ctx, bins, p->count)));
    if (mesh->parted) UN_TRY(find_seats(ctx, arena, &seat, &rank, p, mesh, found));
    for (int64_t q = found; q < p->count; q++) {
        un_tets_place place;
        un_tets_locate_closed(mesh, seat ? seat[q - found] : un_particle_position(p, q), &place);
        bins->tet[q] = place.tet;
    }
    return UN_OK;
}

un_status un_markers_sort_ranks(un_context *ctx, un_arena *arena, un_markers *m,
                                const un_tets *mesh, const un_tree_share *tree)
{
    un_particle_share *s = m->share;
    un_particles *p = &m->particles;
    place_args a = {.particles = p, .mesh = mesh, .tree = tree, .ranks = un_rank_count(ctx)};
    UN_TRY(move_all(s, arena, p, &a, find_ranks));
    un_arena_reset(arena);
    int64_t found = 0;
    un_status status = need_tets(ctx, &m->bins, p->count);
    UN_TRY(un_ranks_agree(ctx, status));
    a.tet = m->bins.tet;
    a.kept = &found;
    un_vec3 *seat;
    int32_t *rank;
    if (mesh->parted) {
        UN_TRY(find_seats(ctx, arena, &seat, &rank, p, mesh, 0));
        a.seat = seat;
        a.seated = rank;
    }
    UN_TRY(move_all(s, arena, p, &a, mesh->parted ? find_seated : find_tets));
    un_arena_reset(arena);
    UN_TRY(find_rest(ctx, arena, &m->bins, p, mesh, found));
    un_arena_reset(arena);
    status = order_by_id(s, arena, p, m->bins.tet);
    un_arena_reset(arena);
    if (status == UN_OK) status = un_tet_bins_sort_known(ctx, arena, &m->bins, p, mesh);
    un_arena_reset(arena);
    UN_TRY(un_ranks_agree(ctx, status));
    s->own = un_ranks_range(ctx, p->count);
    s->id_total = s->own.total;
    s->begin = 0;
    m->bins.share = s;
    return un_markers_copy_around(ctx, arena, m, mesh, tree);
}

/* ---- by leaf ---- */

/* By leaf, the first of all particles. */
static un_status number_leaves(un_context *ctx, un_markers *m, const un_leaves *leaves)
{
    un_tet_bins *bins = &m->bins;
    un_part own = un_leaves_own(leaves);
    un_status status = un_array_need(ctx, (void **)&bins->all, &bins->capacity_all,
                                     (size_t)leaves->count + 1, sizeof *bins->all);
    UN_TRY(un_ranks_agree(ctx, status));
    for (int64_t c = own.begin; c < own.end; c++)
        bins->all[c] = (int32_t)(m->share->own.begin + bins->begin[c]);
    un_ranks_spread(ctx, leaves->share->leaf, bins->all, sizeof *bins->all);
    bins->all[leaves->count] = (int32_t)m->share->own.total;
    return UN_OK;
}

un_status un_markers_sort_leaves_ranks(un_context *ctx, un_arena *arena, un_markers *m,
                                       const un_leaves *leaves, const un_bodies *bodies)
{
    un_particle_share *s = m->share;
    un_particles *p = &m->particles;
    place_args a = {
        .particles = p, .leaves = leaves, .bodies = bodies, .ranks = un_rank_count(ctx)};
    UN_TRY(move_all(s, arena, p, &a, find_leaf_ranks));
    un_arena_reset(arena);
    un_status status = order_by_id(s, arena, p, NULL);
    un_arena_reset(arena);
    if (status == UN_OK) status = un_markers_sort_leaves(ctx, arena, m, leaves, bodies);
    UN_TRY(un_ranks_agree(ctx, status));
    un_exchange_destroy(s->copies);
    s->copies = NULL;
    s->own = un_ranks_range(ctx, p->count);
    s->id_total = s->own.total;
    s->begin = 0;
    m->bins.share = s;
    return number_leaves(ctx, m, leaves);
}

un_status un_particle_share_number(un_particle_share *s, const un_particles *p)
{
    UN_TRY(un_ranks_agree(s->ctx, need_ids(s, p->count)));
    for (int64_t q = 0; q < p->count; q++) s->id[q] = (uint32_t)(s->own.begin + q);
    s->id_total = s->own.total;
    s->own = (un_range){0};
    return UN_OK;
}
