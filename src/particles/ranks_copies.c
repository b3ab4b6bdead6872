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
 * Who has particles decides who gets them. For that every rank knows the boxes of others' blocks
 * that its own may reach. A block that is wide, where the curve jumps or drops fly, is told as its
 * groups. To find out who may reach whom, all know a few coarse boxes of each rank. A group or a
 * block that lies across the border of two ranks is put together from both. */
#include "particles/ranks.h"

#define BLOCK_GROUPS UN_CORRECT_BATCH
#define BLOCK (BLOCK_GROUPS * UN_GROUP)
/* Reach is widened by this share: for rounding. */
#define ROOM 1e-3
/* How far parts of a large particle may lie from its place, in its edges; and the nodes that these
 * give to, in edges of its cell. */
#define PARTS_REACH 1.0
/* Particles whose edge is below this many of their cell's have no parts in tets of equal cells
 * (0.75 in transfer/tets.c; less here, for rounding). */
#define PARTS_FROM 0.74
#define NODES_REACH 4.0
/* Coarse boxes of a rank, 0.9 kB in all: every rank gets those of all. */
#define COARSE 32
typedef struct coarse_box {
    float lo[3], hi[3], r;
} coarse_box;

/* The box of a block's particles, or of those on one rank. */
typedef struct block_box {
    int64_t block;
    float lo[3], hi[3], r;
    int32_t rank;
} block_box;

typedef struct copying {
    un_context *ctx;
    un_arena *arena;
    const un_particles *particles;
    un_range own;        /* particles here: those, from 0 on */
    const float *reach;  /* of own particles */
    const uint8_t *asks; /* own particles that need others; NULL: all, and whole blocks */
    double factor;       /* times the sum of reaches */
    int32_t me, ranks;
    int32_t other_count;  /* ranks that may reach this one's particles */
    int32_t *other;       /* these ranks */
    un_groups *others;    /* the trees of their blocks */
    uint8_t *near;        /* the block goes near them */
    const block_box *box; /* of own blocks */
    uint8_t *wanted;      /* by rank: the group goes there */
    int32_t *set;         /* ranks that are wanted */
    int32_t set_count;
    uint8_t *split[2];   /* by rank: the first and the last group, if others have a part */
    int32_t *index, *to; /* particles, and ranks that they go to */
    int64_t count;
    size_t capacity_index, capacity_to;
    /* NULL: what nodes need does not matter */
    const un_tets *mesh;
    const un_tree_share *tree;
    const int32_t *tet; /* of own particles */
} copying;

/* ---- boxes of blocks ---- */

/* One instruction each, where fminf and fmaxf are calls. */
static inline float lesser(float a, float b)
{
    return a < b ? a : b;
}
static inline float greater(float a, float b)
{
    return a > b ? a : b;
}

static void add_to_box(block_box *b, const copying *c, int64_t q)
{
    const un_particles *p = c->particles;
    for (int a = 0; a < 3; a++) {
        float x = (float)p->x[a][q], e = fabsf(x) * 2e-7f;
        b->lo[a] = lesser(b->lo[a], x - e);
        b->hi[a] = greater(b->hi[a], x + e);
    }
    b->r = greater(b->r, c->reach[q]);
}

static block_box empty_box(int64_t block)
{
    return (block_box){
        block, {INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}, 0, 0};
}

/* Own particles of group or block k, of `size` particles. */
static un_part members(const copying *c, int64_t k, int64_t size)
{
    int64_t begin = un_max64(k * size, c->own.begin), end = un_min64((k + 1) * size, c->own.end);
    return (un_part){begin - c->own.begin, end - c->own.begin};
}

static block_box box_of(const copying *c, int64_t k, int64_t size)
{
    block_box b = empty_box(k);
    un_part in = members(c, k, size);
    for (int64_t q = in.begin; q < in.end; q++) add_to_box(&b, c, q);
    return b;
}

/* Of those that ask. */
static block_box asking_box(const copying *c, int64_t group)
{
    block_box b = empty_box(group);
    un_part in = members(c, group, UN_GROUP);
    for (int64_t q = in.begin; q < in.end; q++)
        if (c->asks[q]) add_to_box(&b, c, q);
    return b;
}

static bool is_empty(const block_box *b)
{
    return !(b->lo[0] <= b->hi[0]);
}

static void unite(block_box *to, const block_box *from)
{
    for (int a = 0; a < 3; a++) {
        to->lo[a] = fminf(to->lo[a], from->lo[a]);
        to->hi[a] = fmaxf(to->hi[a], from->hi[a]);
    }
    to->r = fmaxf(to->r, from->r);
}

static un_part own_units(const copying *c, int64_t size)
{
    if (c->own.begin == c->own.end) return (un_part){0, 0};
    return (un_part){c->own.begin / size, (c->own.end - 1) / size + 1};
}

/* Blocks of several ranks get the box of all of them. */
static un_status join_blocks(copying *c, block_box *box, un_part blocks)
{
    block_box edges[2], *all = NULL;
    int64_t count = 0, all_count = 0;
    if (blocks.begin < blocks.end) {
        edges[count++] = box[0];
        if (blocks.end - blocks.begin > 1) edges[count++] = box[blocks.end - 1 - blocks.begin];
    }
    UN_TRY(un_ranks_list(c->ctx, edges, count, sizeof *edges, (void **)&all, &all_count));
    for (int64_t k = 0; k < all_count; k++)
        if (all[k].block >= blocks.begin && all[k].block < blocks.end)
            unite(&box[all[k].block - blocks.begin], &all[k]);
    un_free(c->ctx, all);
    return UN_OK;
}

/* Correction takes the groups of such a block one by one, however boxes are rounded. */
static bool is_wide(const block_box *b)
{
    float wide = 0;
    for (int a = 0; a < 3; a++) wide = greater(wide, b->hi[a] - b->lo[a]);
    return (double)wide > (1 + ROOM) * UN_CORRECT_WIDTH * (double)b->r;
}

/* Boxes that others are told: blocks, or the groups of wide ones. Blocks of
 * several ranks, the first and the last, are told whole. */
static int64_t list_told(const copying *c, const block_box *box, un_part blocks, block_box *told)
{
    int64_t count = 0;
    for (int64_t k = blocks.begin; k < blocks.end; k++) {
        const block_box *b = &box[k - blocks.begin];
        bool whole = k == blocks.begin || k == blocks.end - 1 || !is_wide(b);
        if (whole) told[count++] = *b;
        for (int64_t g = k * BLOCK_GROUPS; !whole && g < (k + 1) * BLOCK_GROUPS; g++)
            told[count++] = box_of(c, g, UN_GROUP);
    }
    for (int64_t k = 0; k < count; k++) told[k].rank = c->me;
    return count;
}

/* The same where only some ask. */
static int64_t list_asking(const copying *c, block_box *told)
{
    int64_t count = 0;
    un_part groups = own_units(c, UN_GROUP);
    for (int64_t g = groups.begin; g < groups.end; g++) {
        told[count] = asking_box(c, g);
        told[count].rank = c->me;
        count += !is_empty(&told[count]);
    }
    return count;
}

static un_box3 wide_box(const block_box *b)
{
    return (un_box3){un_v3((double)b->lo[0], (double)b->lo[1], (double)b->lo[2]),
                     un_v3((double)b->hi[0], (double)b->hi[1], (double)b->hi[2])};
}

static un_status build_boxes(copying *c, un_groups *groups, const block_box *b, int64_t count)
{
    un_box3 *box = un_arena_alloc(c->arena, (size_t)count + 1, sizeof *box);
    float *radius = un_arena_alloc(c->arena, (size_t)count + 1, sizeof *radius);
    if (!box || !radius) return UN_ERROR_MEMORY;
    for (int64_t k = 0; k < count; k++) {
        box[k] = wide_box(&b[k]);
        radius[k] = b[k].r;
    }
    return un_groups_build_boxes(c->ctx, c->arena, groups, box, radius, count);
}

static un_groups_walk walk_around(const copying *c, const un_groups *groups, const block_box *b)
{
    un_groups_walk walk;
    double factor = c->factor * (1 + ROOM);
    un_groups_walk_begin(&walk, groups, wide_box(b), factor * (double)b->r, factor);
    return walk;
}

/* Each rank's boxes, in a row, in a few. */
static void share_coarse(const copying *c, const block_box *told, int64_t count, coarse_box *all)
{
    coarse_box mine[COARSE];
    for (int64_t k = 0; k < COARSE; k++) {
        block_box box = empty_box(0);
        for (int64_t n = count * k / COARSE; n < count * (k + 1) / COARSE; n++)
            unite(&box, &told[n]);
        memcpy(mine[k].lo, box.lo, sizeof box.lo);
        memcpy(mine[k].hi, box.hi, sizeof box.hi);
        mine[k].r = box.r;
    }
    un_ranks_gather(c->ctx, all, mine, sizeof mine);
}

/* Who may reach which of the boxes. */
static un_status list_near(copying *c, const block_box *told, int64_t count, const coarse_box *all)
{
    un_groups groups;
    int64_t kept = 0;
    int32_t *seen = un_arena_alloc(c->arena, (size_t)c->ranks, sizeof *seen);
    block_box *coarse = un_arena_alloc(c->arena, (size_t)c->ranks * COARSE, sizeof *coarse);
    if (!seen || !coarse) return UN_ERROR_MEMORY;
    memset(seen, 0xff, (size_t)c->ranks * sizeof *seen);
    for (int32_t r = 0; r < c->ranks; r++)
        for (int64_t k = (int64_t)r * COARSE; k < (int64_t)(r + 1) * COARSE; k++) {
            block_box box = {.rank = r, .r = all[k].r};
            memcpy(box.lo, all[k].lo, sizeof box.lo);
            memcpy(box.hi, all[k].hi, sizeof box.hi);
            if (r != c->me && !is_empty(&box)) coarse[kept++] = box;
        }
    UN_TRY(build_boxes(c, &groups, coarse, kept));
    for (int64_t k = 0; k < count; k++) {
        un_groups_walk walk = walk_around(c, &groups, &told[k]);
        for (int32_t n; (n = un_groups_walk_next(&walk)) >= 0;) {
            int32_t r = coarse[n].rank;
            if (seen[r] == (int32_t)k) continue;
            seen[r] = (int32_t)k;
            size_t room = (size_t)c->count + 1;
            UN_TRY(un_array_reserve(c->ctx, (void **)&c->index, &c->capacity_index, room,
                                    sizeof *c->index));
            UN_TRY(un_array_reserve(c->ctx, (void **)&c->to, &c->capacity_to, room, sizeof *c->to));
            c->index[c->count] = (int32_t)k;
            c->to[c->count++] = r;
        }
    }
    return UN_OK;
}

/* What others tell, in the order of ranks. */
static un_status build_others(copying *c, const block_box *all, int64_t count)
{
    for (int64_t k = 0; k < count; k++) c->other_count += k == 0 || all[k].rank != all[k - 1].rank;
    size_t others = (size_t)c->other_count + 1;
    c->other = un_arena_alloc(c->arena, others, sizeof *c->other);
    c->others = un_arena_alloc(c->arena, others, sizeof *c->others);
    c->near = un_arena_alloc(c->arena, others, 1);
    if (!c->other || !c->others || !c->near) return UN_ERROR_MEMORY;
    for (int64_t k = 0, r = 0, end; k < count; k = end, r++) {
        for (end = k; end < count && all[end].rank == all[k].rank;) end++;
        c->other[r] = all[k].rank;
        UN_TRY(build_boxes(c, &c->others[r], all + k, end - k));
    }
    return UN_OK;
}

/* Boxes to the ranks that may reach them. status: of this rank so far. */
static un_status send_boxes(copying *c, un_status status, const block_box *told)
{
    un_exchange *rounds;
    un_status made = un_exchange_create_rounds(c->ctx, &rounds);
    status = un_ranks_agree(c->ctx, status == UN_OK ? made : status);
    block_box *sent = NULL;
    if (status == UN_OK) {
        sent = un_alloc(c->ctx, (size_t)c->count + 1, sizeof *sent);
        for (int64_t k = 0; k < c->count && sent; k++) sent[k] = told[c->index[k]];
        un_round round = {.from = sent, .to = c->to, .count = c->count, .size = sizeof *sent};
        status = un_exchange_round(rounds, sent ? UN_OK : UN_ERROR_MEMORY, &round);
        if (status == UN_OK) {
            status = un_exchange_late(rounds);
            if (status == UN_OK) status = build_others(c, round.in, round.in_count);
            status = un_ranks_agree(c->ctx, status);
        }
    }
    un_free(c->ctx, sent);
    un_exchange_destroy(rounds);
    return status;
}

static un_status tell_blocks(copying *c)
{
    un_part blocks = own_units(c, BLOCK);
    int64_t mine = blocks.end - blocks.begin;
    size_t room = (size_t)mine * BLOCK_GROUPS + 1;
    block_box *box = un_arena_alloc(c->arena, (size_t)mine + 1, sizeof *box);
    block_box *told = un_arena_alloc(c->arena, room, sizeof *told);
    coarse_box *coarse = un_arena_alloc(c->arena, (size_t)c->ranks * COARSE, sizeof *coarse);
    UN_TRY(un_ranks_agree(c->ctx, box && told && coarse ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < mine; k++) box[k] = box_of(c, blocks.begin + k, BLOCK);
    UN_TRY(join_blocks(c, box, blocks));
    c->box = box;
    int64_t count = list_told(c, box, blocks, told);
    share_coarse(c, told, count, coarse);
    if (c->asks) count = list_asking(c, told);
    un_status status = send_boxes(c, list_near(c, told, count, coarse), told);
    c->count = 0;
    return status;
}

/* ---- who gets a group ---- */

/* k: in the list of other ranks. */
static bool reaches(const copying *c, int32_t k, const block_box *b)
{
    un_groups_walk walk = walk_around(c, &c->others[k], b);
    return un_groups_walk_next(&walk) >= 0;
}

static void want(copying *c, int32_t rank)
{
    if (c->wanted[rank]) return;
    c->wanted[rank] = 1;
    c->set[c->set_count++] = rank;
}

static void want_nothing(copying *c)
{
    for (int32_t k = 0; k < c->set_count; k++) c->wanted[c->set[k]] = 0;
    c->set_count = 0;
}

static void want_owners(copying *c, int32_t t)
{
    const un_tets *mesh = c->mesh;
    un_part own = un_tets_own_nodes(mesh);
    for (int i = 0; i < 4; i++) {
        int32_t n = mesh->tet[t][i];
        if (n < own.begin || n >= own.end) want(c, un_tets_node_owner(mesh, c->tree, n));
    }
}

static double fold(double x, double top)
{
    if (x < 0) x = -x;
    if (x > top) x = 2 * top - x;
    return un_clamp(x, 0, top);
}

/* The eight parts of a particle, as transfer/tets.c places them; false if this rank does not know
 * the tet of one. */
static bool want_parts(copying *c, un_vec3 x, double edge)
{
    un_vec3 top = c->mesh->tree->size;
    for (int i = 0; i < 8; i++) {
        double d[3] = {0.5 * (i & 1) - 0.25, 0.5 * (i >> 1 & 1) - 0.25, 0.5 * (i >> 2) - 0.25};
        un_tets_place place;
        un_vec3 at = {fold(x.x + edge * d[0], top.x), fold(x.y + edge * d[1], top.y),
                      fold(x.z + edge * d[2], top.z)};
        if (!un_tets_locate_here(c->mesh, at, &place)) return false;
        want_owners(c, place.tet);
    }
    return true;
}

/* Ranks whose nodes the particle may give to. */
static void want_nodes(copying *c, int64_t q)
{
    const un_tets *mesh = c->mesh;
    const un_particles *p = c->particles;
    int32_t t = c->tet[q];
    want_owners(c, t);
    double h = un_tets_size(mesh, t), least = PARTS_FROM * h;
    bool even = un_tets_shape(mesh, t)->kind == UN_TET_BCC;
    bool small = (double)p->volume[q] < least * least * least; /* at most eight parts */
    if (even && small) return;
    double beside = mesh->parted ? NODES_REACH * h : 0; /* where un_tets_locate may look */
    double edge = cbrt(p->volume[q]), far = PARTS_REACH * edge + NODES_REACH * h + beside;
    un_vec3 x = un_particle_position(p, q), wide = {far, far, far};
    un_box3 around = {un_sub(x, wide), un_add(x, wide)};
    if (un_tree_share_has_box(mesh->tree, c->tree, around)) return; /* most of them */
    if (small && want_parts(c, x, edge)) return;
    un_tree_share_in_box(mesh->tree, c->tree, around, c->wanted, c->set, &c->set_count);
}

static bool is_split(const copying *c, int64_t group)
{
    return group * UN_GROUP < c->own.begin ||
           un_min64((group + 1) * UN_GROUP, c->own.total) > c->own.end;
}

/* The block that a group is in, with the particles of all ranks. */
static const block_box *block_of(const copying *c, int64_t group)
{
    return &c->box[group / BLOCK_GROUPS - own_units(c, BLOCK).begin];
}

static void find_wanted(copying *c, int64_t group)
{
    un_part in = members(c, group, UN_GROUP);
    /* a group of several ranks goes where any of its block may be needed */
    block_box box = is_split(c, group) ? *block_of(c, group) : box_of(c, group, UN_GROUP);
    want_nothing(c);
    for (int64_t q = in.begin; c->mesh && q < in.end; q++) want_nodes(c, q);
    for (int32_t k = 0; k < c->other_count; k++)
        if (c->near[k] && !c->wanted[c->other[k]] && reaches(c, k, &box)) want(c, c->other[k]);
}

static un_status list_group(copying *c, int64_t group)
{
    un_part in = members(c, group, UN_GROUP);
    for (int32_t k = 0; k < c->set_count; k++) {
        int32_t r = c->set[k];
        if (r == c->me) continue;
        size_t room = (size_t)c->count + UN_GROUP;
        UN_TRY(un_array_reserve(c->ctx, (void **)&c->index, &c->capacity_index, room,
                                sizeof *c->index));
        UN_TRY(un_array_reserve(c->ctx, (void **)&c->to, &c->capacity_to, room, sizeof *c->to));
        for (int64_t q = in.begin; q < in.end; q++) {
            c->index[c->count] = (int32_t)q;
            c->to[c->count++] = r;
        }
    }
    return UN_OK;
}

/* A rank that gets a part of a group must get all of it. */
typedef struct claim {
    int64_t group;
    int32_t rank;
} claim;

/* Claims of this rank on groups that it has a part of: of those to whom it gives, and its own on
 * all of its first and last block; where only some ask, on its first and last group. */
static un_status list_claims(copying *c, claim **claims, int64_t *count)
{
    un_part groups = own_units(c, UN_GROUP), blocks = own_units(c, BLOCK);
    int64_t last = (c->own.total + UN_GROUP - 1) / UN_GROUP, n = 0;
    *claims = un_arena_alloc(c->arena, 2 * (size_t)(c->ranks + BLOCK_GROUPS), sizeof **claims);
    *count = 0;
    if (!*claims) return UN_ERROR_MEMORY;
    memset(*claims, 0, 2 * (size_t)(c->ranks + BLOCK_GROUPS) * sizeof **claims);
    if (groups.begin == groups.end) return UN_OK;
    for (int side = 0; side < 2; side++) {
        int64_t group = side ? groups.end - 1 : groups.begin;
        int64_t block = side ? blocks.end - 1 : blocks.begin;
        if (side && groups.end - groups.begin == 1) break;
        for (int32_t r = 0; r < c->ranks; r++)
            if (c->split[side][r]) (*claims)[n++] = (claim){group, r};
        if (c->asks) (*claims)[n++] = (claim){group, c->me};
        if (c->asks) continue;
        if (side && blocks.end - blocks.begin == 1 && groups.end - groups.begin > 1) continue;
        for (int64_t g = block * BLOCK_GROUPS; g < (block + 1) * BLOCK_GROUPS && g < last; g++)
            (*claims)[n++] = (claim){g, c->me};
    }
    *count = n;
    return UN_OK;
}

static un_status list_copies(copying *c)
{
    un_part groups = own_units(c, UN_GROUP);
    un_status status = UN_OK;
    claim *mine = NULL, *all = NULL;
    int64_t mine_count = 0, all_count = 0, block = -1;
    for (int side = 0; side < 2; side++) memset(c->split[side], 0, (size_t)c->ranks);
    /* the first and the last group wait for the claims of others */
    for (int64_t g = groups.begin; g < groups.end; g++) {
        if (g != groups.begin && g != groups.end - 1) continue;
        memset(c->near, 1, (size_t)c->other_count);
        if (!is_split(c, g)) continue;
        find_wanted(c, g);
        memcpy(c->split[g == groups.begin ? 0 : 1], c->wanted, (size_t)c->ranks);
        c->split[g == groups.begin ? 0 : 1][c->me] = 0;
    }
    UN_TRY(un_ranks_agree(c->ctx, list_claims(c, &mine, &mine_count)));
    UN_TRY(un_ranks_list(c->ctx, mine, mine_count, sizeof *mine, (void **)&all, &all_count));
    for (int64_t g = groups.begin; g < groups.end && status == UN_OK; g++) {
        if (g / BLOCK_GROUPS != block) {
            block = g / BLOCK_GROUPS;
            for (int32_t k = 0; k < c->other_count; k++) c->near[k] = reaches(c, k, block_of(c, g));
        }
        find_wanted(c, g);
        /* blocks of several ranks are the first and the last */
        int64_t first = groups.begin / BLOCK_GROUPS, last = (groups.end - 1) / BLOCK_GROUPS;
        if (block == first || block == last)
            for (int64_t k = 0; k < all_count; k++)
                if (all[k].group == g) want(c, all[k].rank);
        status = list_group(c, g);
    }
    un_free(c->ctx, all);
    return un_ranks_agree(c->ctx, status);
}

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

static un_status bring(copying *c, un_markers *m, const un_copied *arrays, int32_t array_count)
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

static un_status copy(copying *c, un_markers *m, const un_copied *arrays, int32_t count)
{
    un_particle_share *s = m->share;
    size_t ranks = (size_t)c->ranks;
    uint8_t *room = un_arena_alloc(c->arena, 3 * ranks, 1);
    c->set = un_arena_alloc(c->arena, ranks, sizeof *c->set);
    UN_TRY(un_ranks_agree(c->ctx, room && c->set ? UN_OK : UN_ERROR_MEMORY));
    memset(room, 0, 3 * ranks);
    c->wanted = room;
    for (int side = 0; side < 2; side++) c->split[side] = room + (1 + (size_t)side) * ranks;
    un_status status = tell_blocks(c);
    if (status == UN_OK) status = list_copies(c);
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
    copying c = {.ctx = ctx,
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
    copying c = {.ctx = ctx,
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
    for (int32_t q = 0; q < m->particles.count; q++)
        reach[q] = un_resize_reach(m->radius[q], sheets ? sheets->gap[q] : 0);
    un_particles_find_resized(ctx, asks, &m->particles, def);
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
