/* Which particles go to which ranks as copies, in whole groups. A group or a block that lies across
 * the border of two ranks is put together from both. */
#include "particles/copies.h"

/* How far parts of a large particle may lie from its place, in its edges; and the nodes that these
 * give to, in edges of its cell. */
#define PARTS_REACH 1.0
/* Particles whose edge is below this many of their cell's have no parts in tets of equal cells
 * (0.75 in transfer/tets.c; less here, for rounding). */
#define PARTS_FROM 0.74
#define NODES_REACH 4.0

static void want(un_copying *c, int32_t rank)
{
    if (c->wanted[rank]) return;
    c->wanted[rank] = 1;
    c->set[c->set_count++] = rank;
}

static void want_nothing(un_copying *c)
{
    for (int32_t k = 0; k < c->set_count; k++) c->wanted[c->set[k]] = 0;
    c->set_count = 0;
}

static void want_owners(un_copying *c, int32_t t)
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
static bool want_parts(un_copying *c, un_vec3 x, double edge)
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
static void want_nodes(un_copying *c, int64_t q)
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

static bool is_split(const un_copying *c, int64_t group)
{
    return group * UN_GROUP < c->own.begin ||
           un_min64((group + 1) * UN_GROUP, c->own.total) > c->own.end;
}

/* The block that a group is in, with the particles of all ranks. */
static const un_block_box *block_of(const un_copying *c, int64_t group)
{
    return &c->box[group / UN_COPY_BLOCK_GROUPS - un_copying_units(c, UN_COPY_BLOCK).begin];
}

static void find_wanted(un_copying *c, int64_t group)
{
    un_part in = un_copying_members(c, group, UN_GROUP);
    /* a group of several ranks goes where any of its block may be needed */
    un_block_box box =
        is_split(c, group) ? *block_of(c, group) : un_copying_box(c, group, UN_GROUP);
    want_nothing(c);
    for (int64_t q = in.begin; c->mesh && q < in.end; q++) want_nodes(c, q);
    for (int32_t k = 0; k < c->other_count; k++)
        if (c->near[k] && !c->wanted[c->other[k]] && un_copying_reaches(c, k, &box))
            want(c, c->other[k]);
}

static un_status list_group(un_copying *c, int64_t group)
{
    un_part in = un_copying_members(c, group, UN_GROUP);
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
static un_status list_claims(un_copying *c, claim **claims, int64_t *count)
{
    un_part groups = un_copying_units(c, UN_GROUP), blocks = un_copying_units(c, UN_COPY_BLOCK);
    int64_t last = (c->own.total + UN_GROUP - 1) / UN_GROUP, n = 0;
    *claims =
        un_arena_alloc(c->arena, 2 * (size_t)(c->ranks + UN_COPY_BLOCK_GROUPS), sizeof **claims);
    *count = 0;
    if (!*claims) return UN_ERROR_MEMORY;
    memset(*claims, 0, 2 * (size_t)(c->ranks + UN_COPY_BLOCK_GROUPS) * sizeof **claims);
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
        for (int64_t g = block * UN_COPY_BLOCK_GROUPS;
             g < (block + 1) * UN_COPY_BLOCK_GROUPS && g < last; g++)
            (*claims)[n++] = (claim){g, c->me};
    }
    *count = n;
    return UN_OK;
}

un_status un_copying_list(un_copying *c)
{
    un_part groups = un_copying_units(c, UN_GROUP);
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
        if (g / UN_COPY_BLOCK_GROUPS != block) {
            block = g / UN_COPY_BLOCK_GROUPS;
            for (int32_t k = 0; k < c->other_count; k++)
                c->near[k] = un_copying_reaches(c, k, block_of(c, g));
        }
        find_wanted(c, g);
        /* blocks of several ranks are the first and the last */
        int64_t first = groups.begin / UN_COPY_BLOCK_GROUPS,
                last = (groups.end - 1) / UN_COPY_BLOCK_GROUPS;
        if (block == first || block == last)
            for (int64_t k = 0; k < all_count; k++)
                if (all[k].group == g) want(c, all[k].rank);
        status = list_group(c, g);
    }
    un_free(c->ctx, all);
    return un_ranks_agree(c->ctx, status);
}
