/* Nodes and tets over ranks: which are a rank's own, and values at nodes of others.
 *
 * Nodes follow the leaves that they belong to, and so do tets; a rank's own are those of its
 * leaves, one after the other. A rank knows which nodes of others it needs and, from the tree,
 * whose they are, but not their numbers there: it sends their orders, and the owner finds them. */
#include "mesh/tets_internal.h"

void un_tet_share_free(un_tet_share *part)
{
    un_free(part->ctx, part->ghost);
    un_free(part->ctx, part->ghost_id);
    un_free(part->ctx, part->arrived);
    un_exchange_destroy(part->halo);
    *part = (un_tet_share){.ctx = part->ctx};
}

int32_t un_tets_node_from(const un_tets *mesh, uint64_t order)
{
    int32_t low = 0, high = mesh->node_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (un_tets_order(mesh, middle) < order)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first tet of the leaves whose centres are at or after the node. A tet's last node is the
 * centre of the leaf it belongs to, or a copy of that. */
static int32_t tet_from(const un_tets *mesh, int32_t node)
{
    int32_t low = 0, high = mesh->tet_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (mesh->tet[middle][3] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_own(un_tet_share *part, const un_tets *mesh, const un_tree_share *tree)
{
    const un_octree *t = mesh->tree;
    int32_t node_end = mesh->node_count - 1; /* the last is nowhere */
    part->node_begin = part->tet_begin = 0;
    if (tree->begin == tree->end) {
        part->nodes = un_ranks_range(part->ctx, 0);
        part->tets = un_ranks_range(part->ctx, 0);
        return;
    }
    part->node_begin = un_tets_node_from(mesh, t->key[tree->begin] << UN_TETS_ORDER_BITS);
    if (tree->end < t->leaf_count)
        node_end = un_tets_node_from(mesh, t->key[tree->end] << UN_TETS_ORDER_BITS);
    part->tet_begin = tet_from(mesh, part->node_begin);
    part->nodes = un_ranks_range(part->ctx, node_end - part->node_begin);
    part->tets = un_ranks_range(part->ctx, tet_from(mesh, node_end) - part->tet_begin);
}

/* Copies of a wanted node are wanted, too. */
static void want_copies(const un_tets *mesh, uint8_t *wanted)
{
    for (int32_t n = 1; n < mesh->node_count; n++)
        if (un_tets_is_copy(mesh, n)) wanted[n] |= wanted[n - 1];
    for (int32_t n = mesh->node_count - 1; n > 0; n--)
        if (un_tets_is_copy(mesh, n)) wanted[n - 1] |= wanted[n];
}

/* Nodes of others in tets around the rank's own nodes, or in all tets that are here. */
static un_status find_ghosts(un_tet_share *part, un_arena *arena, const un_tets *mesh)
{
    int32_t begin = part->node_begin, end = begin + (int32_t)(part->nodes.end - part->nodes.begin);
    uint8_t *wanted = un_arena_alloc(arena, (size_t)mesh->node_count + 1, 1);
    if (!wanted) return UN_ERROR_MEMORY;
    memset(wanted, 0, (size_t)mesh->node_count);
    for (int32_t t = 0; t < mesh->tet_count; t++) {
        const int32_t *n = mesh->tet[t];
        int own = 0;
        for (int i = 0; i < 4; i++) own += n[i] >= begin && n[i] < end;
        if (own == 4 || (own == 0 && !part->wide)) continue;
        for (int i = 0; i < 4; i++) wanted[n[i]] = 1;
    }
    wanted[mesh->node_count - 1] = 0; /* nowhere */
    if (part->wide) want_copies(mesh, wanted);
    if (end > begin) memset(wanted + begin, 0, (size_t)(end - begin));
    int32_t count = 0;
    for (int32_t n = 0; n < mesh->node_count; n++) count += wanted[n];
    UN_TRY(un_array_need(part->ctx, (void **)&part->ghost, &part->capacity_ghost, (size_t)count + 1,
                         sizeof *part->ghost));
    UN_TRY(un_array_need(part->ctx, (void **)&part->ghost_id, &part->capacity_id, (size_t)count + 1,
                         sizeof *part->ghost_id));
    part->ghost_count = 0;
    for (int32_t n = 0; n < mesh->node_count; n++)
        if (wanted[n]) part->ghost[part->ghost_count++] = n;
    return UN_OK;
}

int32_t un_tets_node_owner(const un_tets *mesh, const un_tree_share *tree, int32_t n)
{
    return un_ranks_owner(tree->first, un_rank_count(mesh->ctx),
                          un_tets_order(mesh, n) >> UN_TETS_ORDER_BITS);
}

int32_t un_tet_share_ghost(const un_tet_share *part, int32_t n)
{
    int32_t low = 0, high = part->ghost_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (part->ghost[middle] < n)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->ghost_count && part->ghost[low] == n ? low : -1;
}

uint32_t un_tet_share_number(const un_tet_share *part, int32_t n)
{
    int64_t own = part->nodes.begin + n - part->node_begin;
    if (own >= part->nodes.begin && own < part->nodes.end) return (uint32_t)own;
    int32_t ghost = un_tet_share_ghost(part, n);
    return ghost < 0 ? UN_TET_SHARE_NOWHERE : (uint32_t)part->ghost_id[ghost];
}

int32_t un_tet_share_node(const un_tet_share *part, uint32_t number)
{
    int64_t own = (int64_t)number - part->nodes.begin;
    if (own >= 0 && number < part->nodes.end) return part->node_begin + (int32_t)own;
    int32_t low = 0, high = part->ghost_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (part->ghost_id[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->ghost_count && part->ghost_id[low] == number ? part->ghost[low] : -1;
}

typedef struct question {
    uint64_t order;
    int32_t from; /* the rank that asks */
    int32_t copy; /* 0: the node itself */
} question;

/* The rank's numbers of the nodes that are asked for, and who asked. */
static un_status answer(un_tet_share *part, const un_tets *mesh, const question *asked,
                        int64_t count, int32_t *index, int32_t *to)
{
    int32_t begin = part->node_begin, end = begin + (int32_t)(part->nodes.end - part->nodes.begin);
    for (int64_t k = 0; k < count; k++) {
        int32_t n = un_tets_node_from(mesh, asked[k].order) + asked[k].copy;
        if (n < begin || n >= end || un_tets_order(mesh, n) != asked[k].order)
            return un_fail(part->ctx, UN_ERROR_ARGUMENT,
                           "rank %d asks for a node that rank %d does not have", asked[k].from,
                           un_rank(part->ctx));
        index[k] = n;
        to[k] = asked[k].from;
    }
    return UN_OK;
}

static un_status take_questions(un_tet_share *part, un_arena *arena, const un_tets *mesh,
                                un_exchange *questions, const question *mine)
{
    un_context *ctx = part->ctx;
    int64_t count = un_exchange_count(questions);
    question *asked = un_arena_alloc(arena, (size_t)count + 1, sizeof *asked);
    int32_t *index = un_arena_alloc(arena, (size_t)count + 1, sizeof *index);
    int32_t *to = un_arena_alloc(arena, (size_t)count + 1, sizeof *to);
    UN_TRY(un_ranks_agree(ctx, asked && index && to ? UN_OK : UN_ERROR_MEMORY));
    un_field field = {"nodes", mine, asked, sizeof *asked};
    UN_TRY(un_exchange_run(questions, &field, 1));
    UN_TRY(un_ranks_agree(ctx, answer(part, mesh, asked, count, index, to)));
    return un_exchange_create_copies(ctx, index, to, count, &part->halo);
}

static int32_t copy_of(const un_tets *mesh, int32_t n)
{
    int32_t copy = 0;
    for (; un_tets_is_copy(mesh, n); n--) copy++;
    return copy;
}

static un_status ask(un_tet_share *part, un_arena *arena, const un_tets *mesh,
                     const un_tree_share *tree)
{
    un_context *ctx = part->ctx;
    size_t count = (size_t)part->ghost_count;
    question *mine = un_arena_alloc(arena, count + 1, sizeof *mine);
    int32_t *to = un_arena_alloc(arena, count + 1, sizeof *to);
    UN_TRY(un_ranks_agree(ctx, mine && to ? UN_OK : UN_ERROR_MEMORY));
    for (size_t k = 0; k < count; k++) {
        uint64_t order = un_tets_order(mesh, part->ghost[k]);
        memset(&mine[k], 0, sizeof mine[k]);
        mine[k].order = order;
        mine[k].from = un_rank(ctx);
        mine[k].copy = copy_of(mesh, part->ghost[k]);
        to[k] = un_tets_node_owner(mesh, tree, part->ghost[k]);
    }
    un_exchange *questions;
    UN_TRY(un_exchange_create_moves(ctx, to, (int64_t)count, &questions));
    un_status status = take_questions(part, arena, mesh, questions, mine);
    un_exchange_destroy(questions);
    return status;
}

/* Numbers of ghosts as on one rank; and their levels, for not all leaves around them are here. */
static un_status number_ghosts(un_tet_share *part, un_arena *arena, un_tets *mesh)
{
    int64_t *id = un_arena_alloc(arena, (size_t)mesh->node_count + 1, sizeof *id);
    UN_TRY(un_ranks_agree(part->ctx, id ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t n = part->nodes.begin; n < part->nodes.end; n++)
        id[part->node_begin + n - part->nodes.begin] = n;
    un_field fields[2] = {{"id", id, NULL, sizeof *id}, {"level", mesh->node_level, NULL, 1}};
    UN_TRY(un_tets_share(mesh, fields, 2));
    for (int32_t k = 0; k < part->ghost_count; k++) part->ghost_id[k] = id[part->ghost[k]];
    return UN_OK;
}

un_status un_tet_share_find(un_tet_share *part, un_arena *arena, un_tets *mesh,
                            const un_tree_share *tree)
{
    un_exchange_destroy(part->halo);
    part->halo = NULL;
    part->element = 0;
    mesh->share = part;
    part->tree = tree;
    find_own(part, mesh, tree);
    UN_TRY(un_ranks_agree(part->ctx, find_ghosts(part, arena, mesh)));
    UN_TRY(ask(part, arena, mesh, tree));
    return number_ghosts(part, arena, mesh);
}

un_status un_tets_share(const un_tets *mesh, const un_field *fields, int32_t count)
{
    un_tet_share *part = mesh->share;
    un_field sent[UN_FIELDS_MAX] = {{0}};
    if (!part) return UN_OK;
    size_t ghosts = (size_t)part->ghost_count, element = 0, at = 0;
    UN_ASSERT(count <= UN_FIELDS_MAX);
    for (int32_t f = 0; f < count; f++) element += fields[f].size;
    if (element > part->element) { /* else there is room, on all ranks */
        un_status status = un_array_need(part->ctx, (void **)&part->arrived,
                                         &part->capacity_arrived, ghosts * element + 1, 1);
        UN_TRY(un_ranks_agree(part->ctx, status));
        part->element = element;
    }
    for (int32_t f = 0; f < count; at += ghosts * fields[f].size, f++)
        sent[f] = (un_field){fields[f].name, fields[f].from, part->arrived + at, fields[f].size};
    UN_TRY(un_exchange_run(part->halo, sent, count));
    for (int32_t f = 0; f < count; f++)
        for (size_t k = 0; k < ghosts; k++)
            memcpy((char *)fields[f].from + (size_t)part->ghost[k] * fields[f].size,
                   (const char *)sent[f].to + k * fields[f].size, fields[f].size);
    return UN_OK;
}

/* ---- places ---- */

typedef struct sample_args {
    const un_tets *mesh;
    const float *field;
} sample_args;

static void sample(const void *arg, const un_tets_place *place, void *answer)
{
    const sample_args *a = arg;
    un_tets_sampled *out = answer;
    double v[4];
    for (int i = 0; i < 4; i++) v[i] = a->field[a->mesh->tet[place->tet][i]];
    out->value = un_tet_sample(a->mesh, a->field, place);
    out->slope = un_tets_gradient(a->mesh, place->tet, v);
}

/* Questions about places, which go to the ranks that have these, and the answers. */
typedef struct places {
    int64_t count, asked_count;
    int32_t *to, *from; /* by question; by question of others: who asks */
    un_vec3 *seat;      /* by question */
    int32_t *me;        /* by question: this rank */
    un_vec3 *asked;     /* places of others */
    size_t size;        /* bytes of an answer */
    char *known;        /* what is there */
    char *told;         /* in the order of ranks */
    int64_t *next;      /* by rank: its next answer */
    un_exchange *out, *back;
} places;

static void places_free(un_context *ctx, places *p)
{
    void *blocks[] = {p->to, p->from, p->me, p->asked, p->known, p->told, p->next, p->seat};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    un_exchange_destroy(p->out);
    un_exchange_destroy(p->back);
}

static un_status need_questions(un_context *ctx, places *p)
{
    UN_ALLOC(ctx, p->seat, p->count + 1);
    UN_ALLOC(ctx, p->to, p->count + 1);
    UN_ALLOC(ctx, p->me, p->count + 1);
    p->told = un_alloc(ctx, (size_t)p->count + 1, p->size);
    if (!p->told) return UN_ERROR_MEMORY;
    UN_ALLOC(ctx, p->next, un_rank_count(ctx) + 1);
    return UN_OK;
}

static void find_owners(const un_tets *mesh, places *p)
{
    int32_t ranks = un_rank_count(mesh->ctx);
    memset(p->next, 0, ((size_t)ranks + 1) * sizeof *p->next);
    for (int64_t k = 0; k < p->count; k++) {
        p->to[k] =
            un_ranks_owner(mesh->share->tree->first, ranks, un_tets_place_key(mesh, p->seat[k]));
        p->me[k] = un_rank(mesh->ctx);
        p->next[p->to[k] + 1]++;
    }
    for (int32_t r = 0; r < ranks; r++) p->next[r + 1] += p->next[r];
}

static un_status need_asked(un_context *ctx, places *p)
{
    p->asked_count = un_exchange_count(p->out);
    UN_ALLOC(ctx, p->from, p->asked_count + 1);
    UN_ALLOC(ctx, p->asked, p->asked_count + 1);
    p->known = un_alloc_zero(ctx, (size_t)p->asked_count + 1, p->size);
    return p->known ? UN_OK : UN_ERROR_MEMORY;
}

static un_status ask_places(const un_tets *mesh, un_tets_answer *tell, const void *arg,
                            const un_vec3 *x, places *p)
{
    un_context *ctx = mesh->ctx;
    UN_TRY(un_ranks_agree(ctx, need_questions(ctx, p)));
    UN_TRY(un_tets_seats(mesh, x, p->count, p->seat, NULL));
    find_owners(mesh, p);
    UN_TRY(un_exchange_create_moves(ctx, p->to, p->count, &p->out));
    UN_TRY(un_ranks_agree(ctx, need_asked(ctx, p)));
    un_field out[2] = {{"place", p->seat, p->asked, sizeof *x},
                       {"rank", p->me, p->from, sizeof *p->me}};
    UN_TRY(un_exchange_run(p->out, out, 2));
    for (int64_t k = 0; k < p->asked_count; k++) {
        un_tets_place place;
        un_tets_locate_closed(mesh, p->asked[k], &place); /* a seat */
        tell(arg, &place, p->known + (size_t)k * p->size);
    }
    UN_TRY(un_exchange_create_moves(ctx, p->from, p->asked_count, &p->back));
    un_field back = {"value", p->known, p->told, p->size};
    return un_exchange_run(p->back, &back, 1);
}

un_status un_tets_ask_any(const un_tets *mesh, un_tets_answer *tell, const void *arg, size_t size,
                          const un_vec3 *x, int64_t count, void *answers)
{
    places p = {.count = count, .size = size};
    un_status status = ask_places(mesh, tell, arg, x, &p);
    for (int64_t k = 0; status == UN_OK && k < count; k++)
        memcpy((char *)answers + (size_t)k * size, p.told + (size_t)p.next[p.to[k]]++ * size, size);
    places_free(mesh->ctx, &p);
    return status;
}

un_status un_tets_ask(const un_tets *mesh, const float *field, const un_vec3 *x, int64_t count,
                      un_tets_sampled *answers)
{
    sample_args a = {mesh, field};
    return un_tets_ask_any(mesh, sample, &a, sizeof *answers, x, count, answers);
}
