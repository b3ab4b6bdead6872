/* What rank 0 needs of all particles to fit volumes of a surface that ranks have made: those of
 * thin liquid, and of all others one that stands for the body. Its volume is added up in the order
 * of all particles, a window at a time. */
#include "surface/mesher.h"

#include "particles/particles.h"

/* A particle of thin liquid. */
typedef struct flying {
    uint32_t id;
    float volume, size;
    uint8_t flags, drop;
    un_vec3 velocity;
    un_slim_entry entry;
} flying;
/* Two that hulls connect. */
typedef struct flying_pair {
    uint32_t id[2];
} flying_pair;

static un_status gather_flying(un_mesher_region *r, void **all, int64_t *all_count)
{
    un_context *ctx = r->ctx;
    const un_particles *p = r->in->particles;
    flying *mine = un_alloc_zero(ctx, (size_t)r->slim_count + 1, sizeof *mine);
    int32_t *to = un_alloc_zero(ctx, (size_t)r->slim_count + 1, sizeof *to);
    un_status status = un_ranks_agree(ctx, mine && to ? UN_OK : UN_ERROR_MEMORY);
    for (int32_t i = 0; status == UN_OK && i < r->slim_count; i++) {
        int32_t q = r->slim[i];
        mine[i].id = r->id[q];
        mine[i].volume = p->volume[q], mine[i].size = r->size[q];
        mine[i].flags = p->flags[q], mine[i].drop = r->drop[q];
        mine[i].velocity = un_particle_velocity(p, q);
        mine[i].entry = r->entry[i];
    }
    if (status == UN_OK)
        status =
            un_exchange_send(ctx, "flying", mine, to, r->slim_count, sizeof *mine, all, all_count);
    un_free(ctx, mine);
    un_free(ctx, to);
    return status;
}

static un_status gather_pairs(un_mesher_region *r, void **all, int64_t *all_count)
{
    un_context *ctx = r->ctx;
    const int32_t *piece = r->hulls ? r->hulls->piece : NULL;
    int32_t count = 0, most = piece ? r->near.count : 0;
    flying_pair *mine = un_alloc(ctx, (size_t)most + 1, sizeof *mine);
    int32_t *to = un_alloc_zero(ctx, (size_t)most + 1, sizeof *to);
    un_status status = un_ranks_agree(ctx, mine && to ? UN_OK : UN_ERROR_MEMORY);
    for (int32_t i = 0; status == UN_OK && i < most; i++)
        if (piece[i] != i) mine[count++] = (flying_pair){{r->near_id[i], r->near_id[piece[i]]}};
    if (status == UN_OK)
        status = un_exchange_send(ctx, "pairs", mine, to, count, sizeof *mine, all, all_count);
    un_free(ctx, mine);
    un_free(ctx, to);
    return status;
}

static un_status need_particles(un_lattice_mesher *s, un_mesher_rank0 *z)
{
    un_arena *arena = &s->arena;
    un_particles *p = &z->particles;
    size_t count = (size_t)(z->body + z->count) + 1;
    p->count = z->body + z->count;
    p->volume = un_arena_alloc(arena, count, sizeof *p->volume);
    p->flags = un_arena_alloc(arena, count, 1);
    s->size = un_arena_alloc(arena, count, sizeof *s->size);
    s->drop = un_arena_alloc(arena, count, 1);
    z->id = un_arena_alloc(arena, count, sizeof *z->id);
    s->slim.particle = un_arena_alloc(arena, count, sizeof *s->slim.particle);
    s->slim.place = un_arena_alloc(arena, count, sizeof *s->slim.place);
    s->slim.entry = un_arena_alloc(arena, count, sizeof *s->slim.entry);
    bool able = p->volume && p->flags && s->size && s->drop && z->id;
    able = able && s->slim.particle && s->slim.place && s->slim.entry;
    for (int a = 0; a < 3; a++) {
        p->v[a] = un_arena_alloc(arena, count, sizeof *p->v[a]);
        able = able && p->v[a];
    }
    if (!able) return UN_ERROR_MEMORY;
    if (z->body) {
        p->volume[0] = s->size[0] = 0;
        p->flags[0] = s->drop[0] = 0;
        p->v[0][0] = p->v[1][0] = p->v[2][0] = 0;
        s->slim.place[0] = -1;
    }
    return UN_OK;
}

static un_status take_flying(un_lattice_mesher *s, un_mesher_rank0 *z, const flying *all,
                             int64_t count)
{
    z->count = (int32_t)count;
    z->body = z->r->in->stream->count > count;
    UN_TRY(need_particles(s, z));
    int32_t *order = un_arena_alloc(&s->arena, (size_t)count + 1, sizeof *order);
    if (!order) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < z->count; i++) z->id[i] = all[i].id;
    UN_TRY(un_parallel_sort(s->ctx, &s->arena, order, z->id, count, 32));
    s->slim.count = z->count;
    for (int32_t i = 0; i < z->count; i++) {
        const flying *from = &all[order[i]];
        int32_t q = z->body + i;
        z->id[i] = from->id;
        z->particles.volume[q] = from->volume;
        z->particles.flags[q] = from->flags;
        un_particle_set_velocity(&z->particles, q, from->velocity);
        s->size[q] = from->size;
        s->drop[q] = from->drop;
        s->slim.particle[i] = q;
        s->slim.place[q] = i;
        s->slim.entry[i] = from->entry;
    }
    return UN_OK;
}

/* A particle on rank 0 by its number; the body's, if it is not of thin liquid. */
static int32_t find_particle(const un_mesher_rank0 *z, uint32_t id)
{
    int32_t low = 0, high = z->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (z->id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < z->count && z->id[low] == id ? z->body + low : 0;
}

static int32_t find_first(int32_t *piece, int32_t q)
{
    while (piece[q] != q) q = piece[q] = piece[piece[q]];
    return q;
}

/* Pieces of all hulls. */
static un_status unite_pairs(un_lattice_mesher *s, un_mesher_rank0 *z, const flying_pair *pair,
                             int64_t count)
{
    int32_t *piece = NULL;
    UN_ALLOC(s->ctx, piece, z->particles.count + 1);
    s->hulls = un_alloc_zero(s->ctx, 1, sizeof *s->hulls);
    if (!s->hulls) {
        un_free(s->ctx, piece);
        return UN_ERROR_MEMORY;
    }
    s->hulls->ctx = s->ctx;
    s->hulls->piece = piece;
    for (int32_t q = 0; q < z->particles.count; q++) piece[q] = q;
    for (int64_t n = 0; n < count; n++) {
        int32_t a = find_first(piece, find_particle(z, pair[n].id[0]));
        int32_t b = find_first(piece, find_particle(z, pair[n].id[1]));
        piece[a > b ? a : b] = a > b ? b : a;
    }
    for (int32_t q = 0; q < z->particles.count; q++) piece[q] = find_first(piece, q);
    return UN_OK;
}

un_status un_mesher_gather_thin(un_mesher_region *r, un_lattice_mesher *s, un_mesher_rank0 *z)
{
    un_context *ctx = r->ctx;
    void *all = NULL, *pairs = NULL;
    int64_t count = 0, pair_count = 0;
    un_status status = UN_OK;
    if (r->slim_total > 0) {
        UN_TRY(gather_flying(r, &all, &count));
        status = gather_pairs(r, &pairs, &pair_count);
    }
    if (status == UN_OK && un_rank(ctx) == 0) {
        status = take_flying(s, z, all, count);
        if (status == UN_OK && r->slim_total > 0) status = unite_pairs(s, z, pairs, pair_count);
        for (int32_t v = 0; status == UN_OK && v < s->mesh->vertex_count; v++)
            if ((uint32_t)s->nearest[v] != UN_MESHER_NOBODY)
                s->nearest[v] = find_particle(z, (uint32_t)s->nearest[v]);
    }
    un_free(ctx, all);
    un_free(ctx, pairs);
    return un_ranks_agree(ctx, status);
}

/* ---- volumes ---- */

#define WINDOW (1 << 18)

/* All ranks: rank 0 has the pieces of what it knows, the others none. */
static un_status weigh_all(un_mesher_region *r, const un_mesher_rank0 *z, un_pieces *pieces,
                           const int32_t *number)
{
    const un_particle_stream *stream = r->in->stream;
    int32_t next = 0;
    for (int64_t begin = 0; begin < stream->count; begin += WINDOW) {
        un_particles view;
        int64_t end = un_min64(begin + WINDOW, stream->count);
        UN_TRY(stream->window(stream->arg, UN_VOLUMES, pieces ? begin : end, end, &view));
        for (int64_t id = begin; pieces && id < end; id++) {
            bool thin = next < z->count && z->id[next] == (uint32_t)id;
            int32_t piece = number[thin ? z->body + next : 0];
            next += thin;
            if (piece >= 0) pieces->piece[piece].wanted += view.volume[id - begin];
        }
    }
    return UN_OK;
}

static un_status weigh(void *arg, un_pieces *pieces, const int32_t *number)
{
    un_mesher_rank0 *z = arg;
    UN_TRY(un_ranks_agree(z->r->ctx, UN_OK));
    un_status status = weigh_all(z->r, z, pieces, number);
    z->alone = status != UN_OK;
    return status;
}

un_status un_mesher_fit_volume_ranks(un_mesher_region *r, un_lattice_mesher *s, un_mesher_rank0 *z)
{
    un_context *ctx = r->ctx;
    un_mesher in = *r->in;
    un_status status;
    if (un_rank(ctx) > 0) {
        UN_TRY(un_ranks_agree(ctx, UN_OK));
        UN_TRY(weigh_all(r, NULL, NULL, NULL));
        return un_ranks_agree(ctx, UN_OK);
    }
    in.particles = &z->particles;
    s->in = &in;
    s->weigh = weigh;
    s->weigh_arg = z;
    status = un_mesher_fit_volume(s);
    s->in = r->in;
    /* if it failed before weighing, the others wait to begin that */
    return z->alone ? status : un_ranks_agree(ctx, status);
}
