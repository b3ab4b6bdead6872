/* Which ranks may need copies of which particles.
 *
 * Who has particles decides who gets them. For that every rank knows the boxes of others' blocks
 * that its own may reach. A block that is wide, where the curve jumps or drops fly, is told as its
 * groups, and those that are wide themselves as their particles. To find out who may reach whom,
 * all know a few coarse boxes of each rank. */
#include "particles/copies.h"

/* Reach is widened by this share: for rounding. */
#define ROOM 1e-3
/* Coarse boxes of a rank, 0.9 kB in all: every rank gets those of all. */
#define COARSE 32
typedef struct coarse_box {
    float lo[3], hi[3], r;
} coarse_box;

/* One instruction each, where fminf and fmaxf are calls. */
static inline float lesser(float a, float b)
{
    return a < b ? a : b;
}
static inline float greater(float a, float b)
{
    return a > b ? a : b;
}

static void add_to_box(un_block_box *b, const un_copying *c, int64_t q)
{
    const un_particles *p = c->particles;
    for (int a = 0; a < 3; a++) {
        float x = (float)p->x[a][q], e = fabsf(x) * 2e-7f;
        b->lo[a] = lesser(b->lo[a], x - e);
        b->hi[a] = greater(b->hi[a], x + e);
    }
    b->r = greater(b->r, c->reach[q]);
}

static un_block_box empty_box(int64_t block)
{
    return (un_block_box){
        block, {INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}, 0, 0};
}

un_block_box un_copying_box(const un_copying *c, int64_t k, int64_t size)
{
    un_block_box b = empty_box(k);
    un_part in = un_copying_members(c, k, size);
    for (int64_t q = in.begin; q < in.end; q++) add_to_box(&b, c, q);
    return b;
}

/* Of those that ask. */
static un_block_box asking_box(const un_copying *c, int64_t group)
{
    un_block_box b = empty_box(group);
    un_part in = un_copying_members(c, group, UN_GROUP);
    for (int64_t q = in.begin; q < in.end; q++)
        if (c->asks[q]) add_to_box(&b, c, q);
    return b;
}

static bool is_empty(const un_block_box *b)
{
    return !(b->lo[0] <= b->hi[0]);
}

static void unite(un_block_box *to, const un_block_box *from)
{
    for (int a = 0; a < 3; a++) {
        to->lo[a] = fminf(to->lo[a], from->lo[a]);
        to->hi[a] = fmaxf(to->hi[a], from->hi[a]);
    }
    to->r = fmaxf(to->r, from->r);
}

/* Blocks of several ranks get the box of all of them. */
static un_status join_blocks(un_copying *c, un_block_box *box, un_part blocks)
{
    un_block_box edges[2], *all = NULL;
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

/* Wider than so many radii? */
static bool is_wider(const un_block_box *b, double than)
{
    float wide = 0;
    for (int a = 0; a < 3; a++) wide = greater(wide, b->hi[a] - b->lo[a]);
    return (double)wide > (1 + ROOM) * than * (double)b->r;
}

/* Of a group, or those of it that ask. Appends to a list; returns its new length. */
static int64_t add_group(const un_copying *c, int64_t group, const uint8_t *asks,
                         un_block_box *told, int64_t count)
{
    un_block_box b = asks ? asking_box(c, group) : un_copying_box(c, group, UN_GROUP);
    un_part in = un_copying_members(c, group, UN_GROUP);
    if (!is_wider(&b, UN_CORRECT_GROUP_WIDTH)) {
        told[count] = b;
        return count + !is_empty(&b);
    }
    for (int64_t q = in.begin; q < in.end; q++) {
        if (asks && !asks[q]) continue;
        told[count] = empty_box(group);
        add_to_box(&told[count++], c, q);
    }
    return count;
}

/* Boxes that others are told: blocks, with others' particles in the first and the last, or what
 * this rank has in wide ones: correction takes their groups one by one, however boxes are rounded.
 */
static int64_t list_told(const un_copying *c, const un_block_box *box, un_part blocks,
                         un_block_box *told)
{
    int64_t count = 0;
    for (int64_t k = blocks.begin; k < blocks.end; k++) {
        const un_block_box *b = &box[k - blocks.begin];
        bool wide = is_wider(b, UN_CORRECT_WIDTH);
        if (!wide) told[count++] = *b;
        for (int64_t g = k * UN_COPY_BLOCK_GROUPS; wide && g < (k + 1) * UN_COPY_BLOCK_GROUPS; g++)
            count = add_group(c, g, NULL, told, count);
    }
    return count;
}

/* The same where only some ask. */
static int64_t list_asking(const un_copying *c, un_block_box *told)
{
    int64_t count = 0;
    un_part groups = un_copying_units(c, UN_GROUP);
    for (int64_t g = groups.begin; g < groups.end; g++)
        count = add_group(c, g, c->asks, told, count);
    return count;
}

/* Room for what is told: most groups are not wide. */
static int64_t count_told(const un_copying *c)
{
    un_part groups = un_copying_units(c, UN_GROUP);
    int64_t count = groups.end - groups.begin;
    for (int64_t g = groups.begin; g < groups.end; g++) {
        un_block_box b = un_copying_box(c, g, UN_GROUP);
        if (is_wider(&b, UN_CORRECT_GROUP_WIDTH)) count += UN_GROUP - 1;
    }
    return count;
}

static un_box3 wide_box(const un_block_box *b)
{
    return (un_box3){un_v3((double)b->lo[0], (double)b->lo[1], (double)b->lo[2]),
                     un_v3((double)b->hi[0], (double)b->hi[1], (double)b->hi[2])};
}

static un_status build_boxes(un_copying *c, un_groups *groups, const un_block_box *b, int64_t count)
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

static un_groups_walk walk_around(const un_copying *c, const un_groups *groups,
                                  const un_block_box *b)
{
    un_groups_walk walk;
    double factor = c->factor * (1 + ROOM);
    un_groups_walk_begin(&walk, groups, wide_box(b), factor * (double)b->r, factor);
    return walk;
}

/* Each rank's boxes, in a row, in a few. */
static void share_coarse(const un_copying *c, const un_block_box *told, int64_t count,
                         coarse_box *all)
{
    coarse_box mine[COARSE];
    for (int64_t k = 0; k < COARSE; k++) {
        un_block_box box = empty_box(0);
        for (int64_t n = count * k / COARSE; n < count * (k + 1) / COARSE; n++)
            unite(&box, &told[n]);
        memcpy(mine[k].lo, box.lo, sizeof box.lo);
        memcpy(mine[k].hi, box.hi, sizeof box.hi);
        mine[k].r = box.r;
    }
    un_ranks_gather(c->ctx, all, mine, sizeof mine);
}

/* Who may reach which of the boxes. */
static un_status list_near(un_copying *c, const un_block_box *told, int64_t count,
                           const coarse_box *all)
{
    un_groups groups;
    int64_t kept = 0;
    int32_t *seen = un_arena_alloc(c->arena, (size_t)c->ranks, sizeof *seen);
    un_block_box *coarse = un_arena_alloc(c->arena, (size_t)c->ranks * COARSE, sizeof *coarse);
    if (!seen || !coarse) return UN_ERROR_MEMORY;
    memset(seen, 0xff, (size_t)c->ranks * sizeof *seen);
    for (int32_t r = 0; r < c->ranks; r++)
        for (int64_t k = (int64_t)r * COARSE; k < (int64_t)(r + 1) * COARSE; k++) {
            un_block_box box = {.rank = r, .r = all[k].r};
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
static un_status build_others(un_copying *c, const un_block_box *all, int64_t count)
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
static un_status send_boxes(un_copying *c, un_status status, const un_block_box *told)
{
    un_exchange *rounds;
    un_status made = un_exchange_create_rounds(c->ctx, &rounds);
    status = un_ranks_agree(c->ctx, status == UN_OK ? made : status);
    un_block_box *sent = NULL;
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

un_status un_copying_tell(un_copying *c)
{
    un_part blocks = un_copying_units(c, UN_COPY_BLOCK);
    int64_t mine = blocks.end - blocks.begin;
    size_t room = (size_t)count_told(c) + 1;
    un_block_box *box = un_arena_alloc(c->arena, (size_t)mine + 1, sizeof *box);
    un_block_box *told = un_arena_alloc(c->arena, room, sizeof *told);
    coarse_box *coarse = un_arena_alloc(c->arena, (size_t)c->ranks * COARSE, sizeof *coarse);
    UN_TRY(un_ranks_agree(c->ctx, box && told && coarse ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < mine; k++) box[k] = un_copying_box(c, blocks.begin + k, UN_COPY_BLOCK);
    UN_TRY(join_blocks(c, box, blocks));
    c->box = box;
    int64_t count = list_told(c, box, blocks, told);
    share_coarse(c, told, count, coarse);
    if (c->asks) count = list_asking(c, told);
    for (int64_t k = 0; k < count; k++) told[k].rank = c->me;
    un_status status = send_boxes(c, list_near(c, told, count, coarse), told);
    c->count = 0;
    return status;
}

bool un_copying_reaches(const un_copying *c, int32_t k, const un_block_box *b)
{
    un_groups_walk walk = walk_around(c, &c->others[k], b);
    return un_groups_walk_next(&walk) >= 0;
}
