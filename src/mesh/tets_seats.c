/* The tets of places next to thin walls, over ranks.
 *
 * Along the edges of a vessel the tet of a place may be one beside it (tets_locate.c), up to a cell
 * away, where this rank knows nothing: so letters go from rank to rank. The rank that has the place
 * sees whether there is anything to ask, and whoever has the next place to look at looks. The
 * answer is a place, the seat, at which nobody has to ask any more. */
#include "mesh/mesh.h"

#include "mesh/tets_internal.h"

/* Such places are within this many coarsest cells of a wall: nearer than their tet is wide. */
#define NEAR 2.0

typedef struct letter {
    un_tets_crack crack; /* only x until it is known to be one */
    un_vec3 seat;
    int32_t from, number;
    int32_t next; /* the way to try next, -1: is there anything to ask? */
    int32_t rank; /* of the seat's tet */
} letter;

static int32_t rank_of(const un_tets *mesh, const un_tets_place *place)
{
    return un_tets_node_owner(mesh, mesh->share->tree, mesh->tet[place->tet][3]);
}

static bool is_found(letter *l, const un_tets *mesh, un_vec3 seat, const un_tets_place *place)
{
    l->seat = seat;
    l->rank = mesh->share ? rank_of(mesh, place) : 0;
    return true;
}

/* Goes as far as this rank knows; false: *place is where to ask next. */
static bool follow(letter *l, const un_tets *mesh, un_vec3 *place)
{
    un_tets_place at;
    *place = l->crack.x;
    if (l->next < 0 || l->next == UN_TETS_CRACK_WAYS) {
        un_tets_locate_closed(mesh, *place, &at);
        if (!un_tets_knows(mesh, at.tet)) return false;
        if (l->next > 0 || !un_tets_in_crack(mesh, *place, &at, &l->crack))
            return is_found(l, mesh, *place, &at);
        l->next = 0;
    }
    for (; l->next < UN_TETS_CRACK_WAYS; l->next++) {
        *place = un_tets_crack_way(&l->crack, l->next);
        un_tets_locate_closed(mesh, *place, &at);
        if (!un_tets_knows(mesh, at.tet)) return false;
        if (un_tets_crack_opens(mesh, &l->crack, &at)) return is_found(l, mesh, *place, &at);
    }
    return follow(l, mesh, place); /* there is none: it stays where it is */
}

typedef struct post {
    const un_tets *mesh;
    letter *mail;
    int32_t *to;
    int64_t count;
    size_t capacity[2];
} post;

static un_status put(post *p, const letter *l, int32_t to)
{
    un_context *ctx = p->mesh->ctx;
    size_t room = (size_t)p->count + 1;
    UN_TRY(un_array_reserve(ctx, (void **)&p->mail, &p->capacity[0], room, sizeof *p->mail));
    UN_TRY(un_array_reserve(ctx, (void **)&p->to, &p->capacity[1], room, sizeof *p->to));
    p->mail[p->count] = *l;
    p->to[p->count++] = to;
    return UN_OK;
}

static int32_t owner_of(const un_tets *mesh, un_vec3 x)
{
    return un_ranks_owner(mesh->share->tree->first, un_rank_count(mesh->ctx),
                          un_tets_place_key(mesh, x));
}

/* What is to be said at once; letters about the rest. */
static un_status begin(post *out, const un_vec3 *x, int64_t count, un_vec3 *seat, int32_t *rank)
{
    const un_tets *mesh = out->mesh;
    double near = NEAR * un_octree_size(mesh->tree, 0);
    for (int64_t k = 0; k < count; k++) {
        letter l = {.crack = {.x = x[k]},
                    .from = un_rank(mesh->ctx),
                    .number = (int32_t)k,
                    .next = -1,
                    .rank = -1};
        un_vec3 ask;
        double d = near;
        seat[k] = x[k];
        if (follow(&l, mesh, &ask)) {
            seat[k] = l.seat;
        } else if (l.next >= 0 || owner_of(mesh, x[k]) == l.from ||
                   (un_bodies_nearest(mesh->bodies, x[k], &d) >= 0 && d > 0)) {
            UN_TRY(put(out, &l, owner_of(mesh, ask)));
        }
        if (rank) rank[k] = l.rank;
    }
    return UN_OK;
}

/* Letters that have come go on or are done. */
static un_status pass_on(post *out, post *done, letter *come, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        un_vec3 ask;
        if (follow(&come[k], out->mesh, &ask))
            UN_TRY(put(done, &come[k], come[k].from));
        else
            UN_TRY(put(out, &come[k], owner_of(out->mesh, ask)));
    }
    return UN_OK;
}

static un_status send(post *p, letter **come, int64_t *count)
{
    un_context *ctx = p->mesh->ctx;
    un_status status =
        un_exchange_once(ctx, p->mail, p->to, p->count, sizeof *p->mail, (void **)come, count);
    p->count = 0;
    return status;
}

static un_status ask_all(post *out, post *done, un_status status, un_vec3 *seat, int32_t *rank)
{
    un_context *ctx = out->mesh->ctx;
    letter *come = NULL;
    int64_t count = 0;
    UN_TRY(un_ranks_agree(ctx, status));
    if (un_ranks_total(ctx, out->count) == 0) return UN_OK;
    do {
        UN_TRY(send(out, &come, &count));
        status = pass_on(out, done, come, count);
        un_free(ctx, come);
        UN_TRY(un_ranks_agree(ctx, status));
    } while (un_ranks_total(ctx, out->count) > 0);
    UN_TRY(send(done, &come, &count));
    for (int64_t k = 0; k < count; k++) {
        seat[come[k].number] = come[k].seat;
        if (rank) rank[come[k].number] = come[k].rank;
    }
    un_free(ctx, come);
    return UN_OK;
}

un_status un_tets_seats(const un_tets *mesh, const un_vec3 *x, int64_t count, un_vec3 *seat,
                        int32_t *rank)
{
    un_context *ctx = mesh->ctx;
    post out = {.mesh = mesh}, done = {.mesh = mesh};
    if (mesh->parted && !mesh->share) return begin(&out, x, count, seat, rank);
    if (!mesh->parted) {
        memcpy(seat, x, (size_t)count * sizeof *seat);
        for (int64_t k = 0; rank && k < count; k++) {
            un_tets_place place;
            un_tets_locate_closed(mesh, x[k], &place);
            rank[k] = un_tets_knows(mesh, place.tet) ? rank_of(mesh, &place) : -1;
        }
        return UN_OK;
    }
    un_status status = ask_all(&out, &done, begin(&out, x, count, seat, rank), seat, rank);
    post *all[] = {&out, &done};
    for (int k = 0; k < 2; k++) {
        un_free(ctx, all[k]->mail);
        un_free(ctx, all[k]->to);
    }
    return status;
}

bool un_tets_locate_here(const un_tets *mesh, un_vec3 x, un_tets_place *place)
{
    letter l = {.crack = {.x = x}, .next = -1};
    un_vec3 ask;
    if (!mesh->share || !mesh->parted) {
        un_tets_locate(mesh, x, place);
        return !mesh->share || un_tets_knows(mesh, place->tet);
    }
    if (!follow(&l, mesh, &ask)) return false;
    un_tets_locate_closed(mesh, l.seat, place);
    return true;
}
