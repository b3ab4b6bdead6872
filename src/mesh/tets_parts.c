/* Tets on both sides of a thin wall [virtual nodes, after Molino, Bao & Fedkiw 2004].
 *
 * A wall thinner than a tet leaves liquid on both of its sides in the same tet, and a node inside
 * the wall belongs to tets on both sides. One value there would serve both: pressure, velocity and
 * volume would leak through. So nodes and tets get a copy for each further side.
 *
 *  - Two open nodes of a tet see each other if the edge between them does not meet a solid. Nodes
 *    that see each other, directly or through others of the tet, are a side of the tet.
 *  - Around a node, sides of its tets that share an open node belong together. Each group has a
 *    node of its own: the first the node itself, the others copies at the same place.
 *  - Tets inside the wall have nodes of their own too, so that no side reaches another through
 *    them.
 *  - A tet has a copy for each further side, unless all of its nodes are the same.
 *  - A copy comes right after what it is a copy of: nodes and tets still follow the curve.
 *
 * The distance to the wall has a ridge inside it, where the far side comes nearer. Seen from a
 * side, a node inside or behind the wall is as deep as the straight line from the nearest open node
 * of that side says: d (1 - length / way), way being the length outside the wall. Linear
 * interpolation along the line is then zero where the wall begins.
 *
 * Over ranks, the owner of a node knows the tets around it and groups them; other ranks that know
 * one of these tets ask for the group of its sides. */
#include "mesh/mesh.h"

#include "mesh/collect.h"
#include "mesh/tets_internal.h"
#include "mesh/thin.h"

#define ENTRIES_MAX 256
#define NONE 0xff

/* A side of a tet around the node in question. */
typedef struct entry {
    int32_t place; /* of the tet in the list, -1: not listed */
    int32_t open[4], count;
    uint8_t side, corner, group;
} entry;

typedef struct parting {
    un_tets *mesh;
    const un_bodies *bodies;
    const float *distance;
    const uint8_t *thin;
    double snap;            /* nodes nearer than this lie on the surface, and are not open */
    uint64_t *tets, *nodes; /* those near thin walls */
    int64_t tet_count, node_count;
    uint64_t *edges; /* of these tets, between nodes that may not see each other; ascending */
    uint8_t *seen;   /* by edge */
    int64_t edge_count;
    int32_t *place;         /* by tet: in the list, -1 */
    uint8_t (*side)[4];     /* by listed tet and corner: its side, NONE in a wall */
    uint8_t *side_count;    /* by listed tet */
    uint8_t (*group)[4][4]; /* by listed tet, side and corner */
    int32_t *first_tet;     /* by listed tet: number of copies, then that of tets before it */
    int32_t *node_at;       /* by plain node: number of copies, then its number */
} parting;

/* ---- sides of tets ---- */

static bool is_listed(const parting *s, int64_t t)
{
    const int32_t *n = s->mesh->tet[t];
    bool open = false, near = false, deep = false;
    double h = un_tets_size(s->mesh, (int32_t)t);
    for (int i = 0; i < 4; i++) {
        double d = s->distance[n[i]];
        open |= d > s->snap;
        near |= s->thin[n[i]] || (d <= s->snap && d > -2 * h);
        deep |= d < -h;
    }
    return open ? near : !deep;
}

static int64_t list_tets(const void *arg, int64_t begin, int64_t end, uint64_t *out)
{
    const parting *s = arg;
    int64_t count = 0;
    for (int64_t t = begin; t < end; t++) {
        if (!is_listed(s, t)) continue;
        if (out) out[count] = (uint64_t)t;
        count++;
    }
    return count;
}

/* Every edge is asked once: half a dozen tets share it, and solids from a file take long to answer.
 */
static uint64_t key_of(int32_t a, int32_t b)
{
    return (uint64_t)(a < b ? a : b) << 32 | (uint64_t)(a < b ? b : a);
}

static bool is_doubtful(const parting *s, int32_t a, int32_t b)
{
    if (!(s->distance[a] > s->snap) || !(s->distance[b] > s->snap)) return false;
    if (!s->thin[a] && !s->thin[b]) return false;
    const un_vec3 *x = s->mesh->x;
    return (double)s->distance[a] + (double)s->distance[b] < un_length(un_sub(x[a], x[b]));
}

static int64_t list_edges(const void *arg, int64_t begin, int64_t end, uint64_t *out)
{
    const parting *s = arg;
    int64_t count = 0;
    for (int64_t k = begin; k < end; k++) {
        const int32_t *n = s->mesh->tet[s->tets[k]];
        for (int i = 1; i < 4; i++)
            for (int j = 0; j < i; j++) {
                if (!is_doubtful(s, n[i], n[j])) continue;
                if (out) out[count] = key_of(n[i], n[j]);
                count++;
            }
    }
    return count;
}

static void look_along(void *arg, int64_t begin, int64_t end)
{
    parting *s = arg;
    const un_vec3 *x = s->mesh->x;
    for (int64_t e = begin; e < end; e++) {
        int32_t a = (int32_t)(s->edges[e] >> 32), b = (int32_t)(s->edges[e] & 0xffffffff);
        s->seen[e] = un_thin_sees(s->bodies, x[a], x[b], s->distance[a]);
    }
}

static un_status find_seen(parting *s, un_arena *arena)
{
    un_context *ctx = s->mesh->ctx;
    int64_t count, unique = 0;
    UN_TRY(un_collect(ctx, arena, list_edges, s, s->tet_count, &s->edges, &count, 0));
    UN_TRY(un_parallel_sort_keys(ctx, arena, s->edges, count, 64));
    for (int64_t e = 0; e < count; e++)
        if (e == 0 || s->edges[e] != s->edges[e - 1]) s->edges[unique++] = s->edges[e];
    s->edge_count = unique;
    s->seen = un_arena_alloc(arena, (size_t)unique + 1, 1);
    if (!s->seen) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, unique, 64, look_along, s);
    return UN_OK;
}

static bool sees(const parting *s, int32_t a, int32_t b)
{
    if (!is_doubtful(s, a, b)) return true;
    return s->seen[un_lower_bound(s->edges, s->edge_count, key_of(a, b))];
}

static void find_sides(void *arg, int64_t begin, int64_t end)
{
    parting *s = arg;
    for (int64_t k = begin; k < end; k++) {
        const int32_t *n = s->mesh->tet[s->tets[k]];
        uint8_t *side = s->side[k], count = 0;
        s->place[s->tets[k]] = (int32_t)k;
        for (int i = 0; i < 4; i++) {
            side[i] = NONE;
            if (!(s->distance[n[i]] > s->snap)) continue;
            side[i] = count++;
            for (int j = 0; j < i; j++) {
                if (side[j] == NONE || side[j] == side[i] || !sees(s, n[j], n[i])) continue;
                uint8_t from = side[i] > side[j] ? side[i] : side[j];
                uint8_t to = side[i] > side[j] ? side[j] : side[i];
                for (int m = 0; m <= i; m++)
                    if (side[m] != NONE && side[m] >= from) {
                        if (side[m] == from)
                            side[m] = to;
                        else
                            side[m]--;
                    }
                count--;
            }
        }
        s->side_count[k] = count;
        memset(s->group[k], 0, sizeof s->group[k]);
    }
}

/* ---- groups around nodes ---- */

static int64_t list_nodes(const void *arg, int64_t begin, int64_t end, uint64_t *out)
{
    const parting *s = arg;
    const un_tets *mesh = s->mesh;
    int64_t count = 0, own = un_tets_own_nodes(mesh).begin;
    for (int64_t n = own + begin; n < own + end; n++) {
        double h = un_octree_size(mesh->tree, mesh->node_level[n]);
        bool listed = false;
        if ((double)s->distance[n] < 4 * h)
            for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && !listed; k++)
                listed = s->place[mesh->corner[k] / 4] >= 0;
        if (!listed) continue;
        if (out) out[count] = (uint64_t)n;
        count++;
    }
    return count;
}

static bool share_node(const entry *a, const entry *b)
{
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++)
            if (a->open[i] == b->open[j]) return true;
    return false;
}

/* The sides of the tets around n. */
static int32_t find_entries(const parting *s, int64_t n, entry *list)
{
    const un_tets *mesh = s->mesh;
    int32_t count = 0;
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] / 4, place = s->place[t];
        int sides = place < 0 || s->side_count[place] == 0 ? 1 : s->side_count[place];
        for (int side = 0; side < sides && count < ENTRIES_MAX; side++) {
            entry *e = &list[count];
            *e = (entry){.place = place,
                         .side = (uint8_t)side,
                         .corner = (uint8_t)(mesh->corner[k] % 4),
                         .group = NONE};
            for (int i = 0; i < 4; i++) {
                int32_t m = mesh->tet[t][i];
                if (place < 0 ? s->distance[m] > s->snap : s->side[place][i] == side)
                    e->open[e->count++] = m;
            }
            count += e->count > 0 || place >= 0;
        }
    }
    return count;
}

static void join_group(entry *list, int32_t count, int32_t first, uint8_t group)
{
    int32_t stack[ENTRIES_MAX], height = 0;
    stack[height++] = first;
    list[first].group = group;
    while (height > 0) {
        const entry *e = &list[stack[--height]];
        for (int32_t j = 0; j < count; j++)
            if (list[j].group == NONE && share_node(e, &list[j])) {
                list[j].group = group;
                stack[height++] = j;
            }
    }
}

/* Tets that are not listed keep the node itself: theirs is the first group, or one of its parts.
 * Tets inside the wall are the last. */
static uint8_t find_groups(int64_t n, entry *list, int32_t count)
{
    uint8_t groups = 0;
    for (int32_t i = 0; i < count; i++) {
        bool own = list[i].place < 0;
        for (int m = 0; m < list[i].count; m++) own |= list[i].open[m] == n;
        if (own && list[i].group == NONE) join_group(list, count, i, 0);
        if (own) groups = 1;
    }
    for (int32_t i = 0; i < count; i++)
        if (list[i].group == NONE && list[i].count > 0) join_group(list, count, i, groups++);
    bool closed = false;
    for (int32_t i = 0; i < count; i++)
        if (list[i].count == 0) {
            list[i].group = groups;
            closed = true;
        }
    return (uint8_t)(groups + closed);
}

static void group_nodes(void *arg, int64_t begin, int64_t end)
{
    parting *s = arg;
    entry list[ENTRIES_MAX];
    for (int64_t k = begin; k < end; k++) {
        int64_t n = (int64_t)s->nodes[k];
        int32_t count = find_entries(s, n, list);
        uint8_t groups = find_groups(n, list, count);
        s->node_at[n] = groups > 1 ? groups - 1 : 0;
        for (int32_t i = 0; i < count; i++)
            if (list[i].place >= 0)
                s->group[list[i].place][list[i].side][list[i].corner] = list[i].group;
    }
}

/* ---- groups of other ranks' nodes ---- */

#define CLOSED UINT64_MAX

/* Of the group that a side of a tet has around a node. */
typedef struct question {
    uint64_t node, open; /* orders of the node, and of an open node of the side or CLOSED */
    int32_t from, number, group;
} question;

/* A side's corner as one number. */
static int32_t number_of(int64_t k, int side, int corner)
{
    return (int32_t)(16 * k + 4 * side + corner);
}

/* False if all sides have the node itself there. */
static bool make_question(const parting *s, int64_t k, int side, int corner, question *out)
{
    const un_tets *mesh = s->mesh;
    un_part own = un_tets_own_nodes(mesh);
    int32_t t = (int32_t)s->tets[k], n = mesh->tet[t][corner];
    if ((n >= own.begin && n < own.end) || s->node_at[n] == 0 || s->side[k][corner] == side)
        return false;
    memset(out, 0, sizeof *out);
    out->node = un_tets_order(mesh, n);
    out->open = CLOSED;
    for (int i = 0; i < 4; i++)
        if (s->side[k][i] == side) out->open = un_tets_order(mesh, mesh->tet[t][i]);
    out->from = un_rank(mesh->ctx);
    out->number = number_of(k, side, corner);
    return true;
}

/* Corners of sides of known tets; to: whose nodes they are. Returns how many. */
static int64_t list_questions(const parting *s, question *list, int32_t *to)
{
    const un_tets *mesh = s->mesh;
    int64_t count = 0;
    for (int64_t k = 0; k < s->tet_count; k++) {
        int32_t t = (int32_t)s->tets[k];
        if (!un_tets_knows(mesh, t)) continue;
        int sides = s->side_count[k] > 0 ? s->side_count[k] : 1;
        for (int c = 0; c < 4 * sides; c++) {
            question q;
            if (!make_question(s, k, c / 4, c % 4, &q)) continue;
            if (list) {
                list[count] = q;
                to[count] = un_tets_node_owner(mesh, mesh->share->tree, mesh->tet[t][c % 4]);
            }
            count++;
        }
    }
    return count;
}

static void answer(const parting *s, question *q)
{
    entry list[ENTRIES_MAX];
    int32_t n = un_tets_node_from(s->mesh, q->node);
    int32_t m = q->open == CLOSED ? -1 : un_tets_node_from(s->mesh, q->open);
    int32_t count = find_entries(s, n, list);
    find_groups(n, list, count);
    for (int32_t i = 0; i < count; i++) {
        bool found = m < 0 && list[i].count == 0;
        for (int k = 0; k < list[i].count; k++) found |= list[i].open[k] == m;
        if (found) q->group = list[i].group;
    }
}

static un_status ask_groups(parting *s, un_arena *arena)
{
    un_context *ctx = s->mesh->ctx;
    int64_t count = list_questions(s, NULL, NULL), come;
    question *mine = un_arena_alloc(arena, (size_t)count + 1, sizeof *mine), *asked, *told;
    int32_t *to = un_arena_alloc(arena, (size_t)count + 1, sizeof *to), *back;
    UN_TRY(un_ranks_agree(ctx, mine && to ? UN_OK : UN_ERROR_MEMORY));
    list_questions(s, mine, to);
    UN_TRY(
        un_exchange_send(ctx, "questions", mine, to, count, sizeof *mine, (void **)&asked, &come));
    back = un_arena_alloc(arena, (size_t)come + 1, sizeof *back);
    un_status status = un_ranks_agree(ctx, back ? UN_OK : UN_ERROR_MEMORY);
    for (int64_t k = 0; status == UN_OK && k < come; k++) {
        answer(s, &asked[k]);
        back[k] = asked[k].from;
    }
    if (status == UN_OK)
        status = un_exchange_send(ctx, "answers", asked, back, come, sizeof *asked, (void **)&told,
                                  &count);
    un_free(ctx, asked);
    UN_TRY(status);
    for (int64_t k = 0; k < count; k++) {
        int32_t number = told[k].number;
        s->group[number / 16][number / 4 % 4][number % 4] = (uint8_t)told[k].group;
    }
    un_free(ctx, told);
    return UN_OK;
}

/* Copies of others' nodes, where this rank has use for them. */
static un_status know_others(parting *s, un_arena *arena)
{
    if (!s->mesh->share) return UN_OK;
    un_field copies = {"copies", s->node_at, NULL, sizeof *s->node_at};
    UN_TRY(un_tets_share(s->mesh, &copies, 1));
    return ask_groups(s, arena);
}

/* ---- copies ---- */

/* Is this side's tet the same as that of an earlier one? */
static bool is_repeated(const parting *s, int64_t k, int side)
{
    for (int other = 0; other < side; other++)
        if (memcmp(s->group[k][side], s->group[k][other], sizeof s->group[k][side]) == 0)
            return true;
    return false;
}

static void count_tets(void *arg, int64_t begin, int64_t end)
{
    parting *s = arg;
    for (int64_t k = begin; k < end; k++) {
        s->first_tet[k] = 0;
        for (int side = 1; side < s->side_count[k]; side++)
            s->first_tet[k] += !is_repeated(s, k, side);
    }
}

/* How deep node n is as its group sees it, from the nearest open node. */
static double depth_of(const parting *s, int64_t n, const entry *list, int32_t count, uint8_t group)
{
    const un_tets *mesh = s->mesh;
    double nearest = INFINITY, h = un_octree_size(mesh->tree, mesh->node_level[n]);
    int32_t anchor = -1;
    for (int32_t i = 0; i < count; i++)
        for (int m = 0; list[i].group == group && m < list[i].count; m++) {
            int32_t p = list[i].open[m];
            double length = un_length(un_sub(mesh->x[p], mesh->x[n]));
            if (length < nearest || (length == nearest && p < anchor)) {
                nearest = length;
                anchor = p;
            }
        }
    if (anchor < 0) return 1e30;
    return un_thin_depth(s->bodies, mesh->x[anchor], mesh->x[n], s->distance[anchor], h);
}

/* What the groups of node n see. */
static void find_depths(void *arg, int64_t begin, int64_t end)
{
    parting *s = arg;
    un_tets *mesh = s->mesh;
    entry list[ENTRIES_MAX];
    for (int64_t k = begin; k < end; k++) {
        int64_t n = (int64_t)s->nodes[k];
        int32_t count = find_entries(s, n, list);
        uint8_t groups = find_groups(n, list, count);
        double d = s->distance[n], h = un_octree_size(mesh->tree, mesh->node_level[n]);
        bool open = d > s->snap;
        float *side = mesh->side + s->node_at[n];
        for (uint8_t group = open ? 1 : 0; group < groups; group++) {
            double depth = depth_of(s, n, list, count, group);
            bool deeper = (open && group > 0) || depth < d - UN_DEEPER * h;
            side[group] = (float)(deeper ? depth : d);
        }
    }
}

/* Everything goes up, the last first. */
static void spread_nodes(const parting *s)
{
    un_tets *mesh = s->mesh;
    for (int32_t n = mesh->plain_nodes - 1; n >= 0; n--)
        for (int32_t copy = s->node_at[n]; copy < s->node_at[n + 1]; copy++) {
            mesh->node_key[copy] = mesh->node_key[n];
            mesh->x[copy] = mesh->x[n];
            mesh->node_level[copy] = mesh->node_level[n];
            mesh->origin[copy] = n;
        }
}

static void spread_tets(const parting *s)
{
    un_tets *mesh = s->mesh;
    for (int32_t t = mesh->plain_tets - 1; t >= 0; t--) {
        int32_t k = s->place[t], copy = mesh->part[t], node[4];
        uint8_t shape = mesh->shape[t], level = mesh->level[t];
        for (int i = 0; i < 4; i++) node[i] = s->node_at[mesh->tet[t][i]];
        int sides = k >= 0 && s->side_count[k] > 0 ? s->side_count[k] : 1;
        for (int side = 0; side < sides; side++) {
            if (k >= 0 && is_repeated(s, k, side)) continue;
            for (int i = 0; i < 4; i++)
                mesh->tet[copy][i] = node[i] + (k >= 0 ? s->group[k][side][i] : 0);
            mesh->shape[copy] = shape;
            mesh->level[copy++] = level;
        }
    }
}

/* ---- all of it ---- */

static un_status make_room(un_tets *mesh, int64_t node_count, int64_t tet_count)
{
    struct {
        void *array;
        int slot;
        int64_t count;
        size_t size;
    } arrays[] = {{&mesh->node_key, 0, node_count, sizeof *mesh->node_key},
                  {&mesh->x, 1, node_count, sizeof *mesh->x},
                  {&mesh->node_level, 2, node_count, sizeof *mesh->node_level},
                  {&mesh->tet, 3, tet_count, sizeof *mesh->tet},
                  {&mesh->shape, 4, tet_count, sizeof *mesh->shape},
                  {&mesh->level, 5, tet_count, sizeof *mesh->level},
                  {&mesh->first, 8, node_count + 1, sizeof *mesh->first},
                  {&mesh->corner, 9, 4 * tet_count, sizeof *mesh->corner},
                  {&mesh->part, 12, mesh->plain_tets + 1, sizeof *mesh->part},
                  {&mesh->origin, 13, node_count, sizeof *mesh->origin},
                  {&mesh->side, 14, node_count, sizeof *mesh->side}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        UN_TRY(un_array_reserve(mesh->ctx, arrays[i].array, &mesh->capacity[arrays[i].slot],
                                (size_t)arrays[i].count, arrays[i].size));
    return UN_OK;
}

/* Where nodes and tets go: behind what they follow and its copies. */
static void number_all(const parting *s)
{
    un_tets *mesh = s->mesh;
    int64_t k = 0;
    for (int32_t n = 0; n < mesh->plain_nodes; n++) s->node_at[n] += n;
    for (int32_t n = 0; n < mesh->plain_nodes; n++)
        for (int32_t copy = s->node_at[n]; copy < s->node_at[n + 1]; copy++)
            mesh->side[copy] = s->distance[n];
    for (int32_t t = 0; t <= mesh->plain_tets; t++) {
        while (k < s->tet_count && s->tets[k] < (uint64_t)t) k++;
        mesh->part[t] = t + s->first_tet[k];
    }
}

/* The tets of each node again, ascending: a counting sort. */
static void find_incidence(un_tets *mesh)
{
    memset(mesh->first, 0, ((size_t)mesh->node_count + 1) * sizeof *mesh->first);
    for (int32_t t = 0; t < mesh->tet_count; t++)
        for (int i = 0; i < 4; i++) mesh->first[mesh->tet[t][i] + 1]++;
    for (int32_t n = 0; n < mesh->node_count; n++) mesh->first[n + 1] += mesh->first[n];
    for (int32_t t = 0; t < mesh->tet_count; t++)
        for (int i = 0; i < 4; i++) mesh->corner[mesh->first[mesh->tet[t][i]]++] = 4 * t + i;
    memmove(mesh->first + 1, mesh->first, (size_t)mesh->node_count * sizeof *mesh->first);
    mesh->first[0] = 0;
}

static un_status allocate(parting *s, un_arena *arena)
{
    size_t count = (size_t)s->tet_count + 1, nodes = (size_t)s->mesh->node_count + 1;
    s->place = un_arena_alloc(arena, (size_t)s->mesh->tet_count + 1, sizeof *s->place);
    s->side = un_arena_alloc(arena, count, sizeof *s->side);
    s->side_count = un_arena_alloc(arena, count, 1);
    s->group = un_arena_alloc(arena, count, sizeof *s->group);
    s->first_tet = un_arena_alloc(arena, count, sizeof *s->first_tet);
    s->node_at = un_arena_alloc(arena, nodes, sizeof *s->node_at);
    if (!s->place || !s->side || !s->side_count || !s->group || !s->first_tet || !s->node_at)
        return UN_ERROR_MEMORY;
    memset(s->place, -1, (size_t)s->mesh->tet_count * sizeof *s->place);
    memset(s->node_at, 0, nodes * sizeof *s->node_at);
    return UN_OK;
}

static bool lists_own(const parting *s)
{
    un_part own = un_tets_own(s->mesh);
    int64_t k = un_lower_bound(s->tets, s->tet_count, (uint64_t)own.begin);
    return k < s->tet_count && s->tets[k] < (uint64_t)own.end;
}

/* Groups around this rank's nodes. */
static un_status find_own_groups(parting *s, un_arena *arena)
{
    un_context *ctx = s->mesh->ctx;
    un_part own = un_tets_own_nodes(s->mesh);
    UN_TRY(allocate(s, arena));
    UN_TRY(find_seen(s, arena));
    un_parallel_for(ctx, s->tet_count, 256, find_sides, s);
    UN_TRY(
        un_collect(ctx, arena, list_nodes, s, own.end - own.begin, &s->nodes, &s->node_count, 0));
    un_parallel_for(ctx, s->node_count, 256, group_nodes, s);
    return UN_OK;
}

static un_status make_copies(parting *s)
{
    un_tets *mesh = s->mesh;
    un_context *ctx = mesh->ctx;
    un_parallel_for(ctx, s->tet_count, 1024, count_tets, s);
    int64_t copies = un_parallel_scan(ctx, s->node_at, mesh->node_count);
    int64_t more = un_parallel_scan(ctx, s->first_tet, s->tet_count);
    s->node_at[mesh->node_count] = (int32_t)(mesh->node_count + copies);
    s->first_tet[s->tet_count] = (int32_t)more;
    if (4 * (mesh->tet_count + more) > INT32_MAX)
        return un_fail_memory(ctx, (size_t)(mesh->tet_count + more) * sizeof *mesh->tet);
    UN_TRY(make_room(mesh, mesh->node_count + copies, mesh->tet_count + more));
    number_all(s);
    un_parallel_for(ctx, s->node_count, 256, find_depths, s);
    spread_nodes(s);
    spread_tets(s);
    mesh->node_count += (int32_t)copies;
    mesh->tet_count += (int32_t)more;
    mesh->parted = true;
    find_incidence(mesh);
    return UN_OK;
}

un_status un_tets_part(un_tets *mesh, un_arena *arena, const un_bodies *bodies,
                       const float *distance, const uint8_t *thin)
{
    un_context *ctx = mesh->ctx;
    parting s = {.mesh = mesh,
                 .bodies = bodies,
                 .distance = distance,
                 .thin = thin,
                 .snap = UN_SNAP * mesh->tree->h};
    un_status status =
        un_collect(ctx, arena, list_tets, &s, mesh->tet_count, &s.tets, &s.tet_count, 0);
    bool any = s.tet_count > 0;
    UN_TRY(un_tets_agree(mesh, status));
    if (mesh->share) any = un_ranks_max(ctx, any && lists_own(&s)) > 0;
    if (!any) return UN_OK;
    mesh->bodies = bodies;
    UN_TRY(un_tets_agree(mesh, find_own_groups(&s, arena)));
    UN_TRY(know_others(&s, arena));
    UN_TRY(un_tets_agree(mesh, make_copies(&s)));
    if (!mesh->share) return UN_OK;
    UN_TRY(un_tet_share_find(mesh->share, arena, mesh, mesh->share->tree));
    un_field side = {"side", mesh->side, NULL, sizeof *mesh->side};
    return un_tets_share(mesh, &side, 1);
}
