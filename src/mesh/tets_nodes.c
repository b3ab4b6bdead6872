/* Numbering of nodes and tets.
 *
 * Nodes are numbered without sorting them, in the order of un_morton_order. All nodes in the
 * half-open box of a leaf follow each other, as boxes do, and only eight places in it can be nodes:
 * the lower corners of its octants. The lower corner and the centre always are; the others are if a
 * finer leaf behind a lower face or edge makes them nodes, or if the brick ends at the face. Where
 * the brick ends at an upper face, the box holds the nodes in that face too. So a node's number is
 * its leaf's first number plus the count of lower bits set in a mask of 64 places, of which 27 can
 * be nodes. */
#include "mesh/tets_internal.h"

/* ---- which neighbours a leaf has ---- */

static void compare(const un_tets_work *w, un_leaf_info *info, int32_t c, const un_leaf_place *p,
                    uint32_t set)
{
    const un_octree *tree = w->tree;
    for (set &= ~p->outside; set; set &= set - 1) {
        int32_t d = __builtin_ctz(set);
        int32_t m = un_octree_find_key(tree, un_beside_key(p->at, p->size, d));
        if (tree->level[m] > tree->level[c]) info->finer |= 1u << d;
        if (tree->level[m] < tree->level[c]) info->larger |= 1u << d;
    }
}

static un_leaf_info neighbours_of(const un_tets_work *w, const un_family *family, int32_t k,
                                  int32_t c, const un_leaf_place *p)
{
    const uint32_t near = UN_BESIDE_ALL & ~UN_BESIDE_CORNERS;
    un_leaf_info info = {0, 0};
    if (family->first < 0) {
        compare(w, &info, c, p, near);
        return info;
    }
    for (uint32_t cubes = family->larger; cubes; cubes &= cubes - 1)
        info.larger |= near & w->steps.in_cube[k][__builtin_ctz(cubes)];
    for (uint32_t cubes = family->mixed; cubes; cubes &= cubes - 1)
        compare(w, &info, c, p, near & w->steps.in_cube[k][__builtin_ctz(cubes)]);
    return info;
}

/* Only the leaf across the corner may differ by more than one level. */
static int32_t finest_at_corner(const un_tets_work *w, const un_family *family, int32_t k,
                                int32_t c, const un_leaf_place *p)
{
    const uint32_t lower = 1u << 12 | 1u << 10 | 1u << 4 | 1u << 9 | 1u << 3 | 1u << 1;
    const un_octree *tree = w->tree;
    int32_t level = tree->level[c] + (w->info[c].finer & lower ? 1 : 0);
    bool known = family->first >= 0 && !(family->mixed >> w->steps.cube[k][0] & 1);
    if (known || (p->outside & 1)) return level;
    int32_t m = un_octree_find_at(tree, p->at[0] - 1, p->at[1] - 1, p->at[2] - 1);
    return tree->level[m] > level ? tree->level[m] : level;
}

/* Nodes in the brick's upper faces, where the leaf ends at them. */
static uint64_t upper_places(const un_leaf_place *p, uint32_t mids)
{
    uint64_t mask = 0;
    int32_t top[3];
    for (int a = 0; a < 3; a++) top[a] = p->outside >> un_face_beside(2 * a + 1) & 1 ? 2 : 1;
    for (int32_t z = 0; z <= top[2]; z++)
        for (int32_t y = 0; y <= top[1]; y++)
            for (int32_t x = 0; x <= top[0]; x++) {
                int32_t at[3] = {x, y, z}, middles = (x == 1) + (y == 1) + (z == 1);
                if (x < 2 && y < 2 && z < 2) continue;
                if (middles == 1) {
                    int32_t a = x == 1 ? 0 : y == 1 ? 1 : 2;
                    int32_t e = un_leaf_edge(a, at[(a + 1) % 3] / 2, at[(a + 2) % 3] / 2);
                    if (!(mids >> e & 1)) continue;
                }
                mask |= (uint64_t)1 << un_place_code(x, y, z);
            }
    return mask;
}

static void examine_leaf(un_tets_work *w, const un_family *family, int32_t k, int32_t c)
{
    const uint64_t corner_and_center = (uint64_t)1 << UN_CODE_CENTER | 1;
    un_leaf_place p = un_leaf_place_of(w->tree, c);
    un_leaf_info info = neighbours_of(w, family, k, c, &p);
    w->info[c] = info;
    w->corner_level[c] = (uint8_t)finest_at_corner(w, family, k, c, &p);
    uint32_t fan = info.finer | p.outside;
    if (!(fan | info.larger)) {
        w->mask[c] = corner_and_center;
        w->first_node[c] = 2;
        w->first_tet[c] = 12;
        return;
    }
    uint32_t mids = un_leaf_midpoints(w, info.finer);
    uint64_t mask = corner_and_center;
    int32_t tet_count = 0;
    for (int32_t f = 0; f < 6; f++)
        if (info.larger >> un_face_beside(f) & 1)
            tet_count += 2;
        else if (f % 2 || (fan >> un_face_beside(f) & 1))
            tet_count += 4 + __builtin_popcount(mids & w->face_edges[f]);
    for (int32_t a = 0; a < 3; a++) {
        mask |= (uint64_t)(mids >> un_leaf_edge(a, 0, 0) & 1) << (1 << a << 3);
        mask |= (uint64_t)(fan >> un_face_beside(2 * a) & 1) << ((7 ^ 1 << a) << 3);
    }
    if (p.outside & UN_BESIDE_UPPER) mask |= upper_places(&p, mids);
    w->mask[c] = mask;
    w->first_node[c] = __builtin_popcountll(mask);
    w->first_tet[c] = tet_count;
}

static void leave_out(un_tets_work *w, int64_t c)
{
    w->info[c] = (un_leaf_info){0, 0};
    w->mask[c] = 0;
    w->corner_level[c] = 0;
    w->first_node[c] = w->first_tet[c] = 0;
}

static void examine_leaves(void *arg, int64_t begin, int64_t end)
{
    un_tets_work *w = arg;
    int64_t c = un_family_begin(w->tree, begin);
    while (c < end) {
        un_family family;
        if (w->use && !w->use[c] && !un_is_family(w->tree, (int32_t)c)) {
            leave_out(w, c++);
            continue;
        }
        int32_t count = un_family_look(w->tree, (int32_t)c, UN_BESIDE_ALL, &family) ? 8 : 1;
        for (int32_t k = 0; k < count; k++) {
            if (w->use && !w->use[c + k]) {
                leave_out(w, c + k);
                continue;
            }
            examine_leaf(w, &family, k, (int32_t)c + k);
            if (w->use && w->use[c + k] < UN_LEAF_TETS) w->first_tet[c + k] = 0;
        }
        c += count;
    }
}

/* ---- parts of meshes ---- */

/* Leaves that touch a known one have nodes of its tets: those at the upper ends of its box. */
static void use_around(un_tets_work *w, int32_t c)
{
    const un_octree *tree = w->tree;
    un_leaf_place p = un_leaf_place_of(tree, c);
    for (int32_t k = 0; k < 27; k++) {
        int32_t half[3] = {k % 3, k / 3 % 3, k / 9};
        uint32_t at[3];
        if (half[0] < 2 && half[1] < 2 && half[2] < 2) continue;
        for (int a = 0; a < 3; a++) {
            int32_t x = 2 * p.at[a] + p.size * half[a];
            at[a] = (uint32_t)(x - (x == 2 * tree->n[a]));
        }
        int32_t m = un_octree_find_key(tree, un_morton(at[0], at[1], at[2]) >> 3);
        if (w->use[m] < UN_LEAF_NODES) w->use[m] = UN_LEAF_NODES;
    }
}

static un_status choose_leaves(un_tets_work *w, un_arena *arena)
{
    const un_octree *tree = w->tree;
    int32_t leaves = tree->leaf_count;
    w->use = NULL;
    if (!tree->partial) return UN_OK;
    w->use = un_arena_alloc(arena, (size_t)leaves + 1, 1);
    if (!w->use) return UN_ERROR_MEMORY;
    for (int32_t c = 0; c < leaves; c++) w->use[c] = tree->known[c] ? UN_LEAF_TETS : 0;
    for (int32_t c = 0; c < leaves; c++)
        if (tree->known[c] == UN_LEAF_GHOST) use_around(w, c); /* around own ones all are known */
    return UN_OK;
}

int32_t un_tets_node_at(const un_tets_work *w, int32_t x, int32_t y, int32_t z)
{
    const un_octree *tree = w->tree;
    int32_t upper[3] = {x == 2 * tree->n[0], y == 2 * tree->n[1], z == 2 * tree->n[2]};
    uint64_t key =
        un_morton((uint32_t)(x - upper[0]), (uint32_t)(y - upper[1]), (uint32_t)(z - upper[2]));
    int32_t m = un_octree_find_key(tree, key >> 3);
    uint32_t octant = key >> 3 * (tree->level_max - tree->level[m]) & 7;
    uint32_t code = octant << 3 | (uint32_t)(upper[0] | upper[1] << 1 | upper[2] << 2);
    UN_ASSERT(w->mask[m] >> code & 1);
    return un_leaf_node(w, m, code);
}

/* ---- arrays of nodes ---- */

static void set_node(un_tets *mesh, int32_t n, uint64_t key)
{
    mesh->node_key[n] = key;
    mesh->x[n] = un_tets_home(mesh, key);
}

/* The finest level of the leaves around a place, in units. */
static uint8_t level_around(const un_octree *tree, const int32_t at[3])
{
    uint8_t level = 0;
    for (int k = 0; k < 8; k++) {
        int32_t m = un_octree_find_at(tree, (at[0] - (k & 1)) >> 1, (at[1] - (k >> 1 & 1)) >> 1,
                                      (at[2] - (k >> 2)) >> 1);
        if (m >= 0 && tree->level[m] > level) level = tree->level[m];
    }
    return level;
}

static void fill_upper_node(const un_tets_work *w, int32_t n, int32_t c, uint32_t code)
{
    un_leaf_place p = un_leaf_place_of(w->tree, c);
    int32_t at[3];
    for (int a = 0; a < 3; a++)
        at[a] = 2 * p.at[a] + p.size * (int32_t)((code >> (3 + a) & 1) + (code >> a & 1));
    set_node(w->mesh, n, un_morton((uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]));
    w->mesh->node_level[n] = level_around(w->tree, at);
}

static void fill_nodes(void *arg, int64_t begin, int64_t end)
{
    un_tets_work *w = arg;
    const un_octree *tree = w->tree;
    for (int64_t c = begin; c < end; c++) {
        int32_t n = w->first_node[c], level = tree->level[c];
        for (uint64_t mask = w->mask[c]; mask; mask &= mask - 1, n++) {
            uint32_t code = (uint32_t)__builtin_ctzll(mask), octant = code >> 3;
            if (code & 7) {
                fill_upper_node(w, n, (int32_t)c, code);
                continue;
            }
            set_node(w->mesh, n,
                     tree->key[c] << 3 | (uint64_t)octant << 3 * (tree->level_max - level));
            /* A node that is neither corner nor centre comes from a finer leaf or the brick's
             * boundary. */
            bool wall = (octant == 6 && !(w->info[c].finer >> un_face_beside(0) & 1)) ||
                        (octant == 5 && !(w->info[c].finer >> un_face_beside(2) & 1)) ||
                        (octant == 3 && !(w->info[c].finer >> un_face_beside(4) & 1));
            w->mesh->node_level[n] = octant == 0           ? w->corner_level[c]
                                     : octant == 7 || wall ? (uint8_t)level
                                                           : (uint8_t)(level + 1);
        }
    }
}

/* ---- all of it ---- */

static un_status need(un_tets *mesh, int32_t array, void *pointer, int64_t count, size_t size)
{
    return un_array_need(mesh->ctx, pointer, &mesh->capacity[array], (size_t)count, size);
}

static un_status make_room(un_tets *mesh, int64_t leaf_count, int64_t node_count, int64_t tet_count)
{
    UN_TRY(need(mesh, 0, &mesh->node_key, node_count, sizeof *mesh->node_key));
    UN_TRY(need(mesh, 1, &mesh->x, node_count, sizeof *mesh->x));
    UN_TRY(need(mesh, 2, &mesh->node_level, node_count, sizeof *mesh->node_level));
    UN_TRY(need(mesh, 3, &mesh->tet, tet_count, sizeof *mesh->tet));
    UN_TRY(need(mesh, 4, &mesh->shape, tet_count, sizeof *mesh->shape));
    UN_TRY(need(mesh, 5, &mesh->level, tet_count, sizeof *mesh->level));
    UN_TRY(need(mesh, 6, &mesh->face_tet, leaf_count, sizeof *mesh->face_tet));
    UN_TRY(need(mesh, 7, &mesh->face_code, leaf_count, sizeof *mesh->face_code));
    UN_TRY(need(mesh, 8, &mesh->first, node_count + 1, sizeof *mesh->first));
    return need(mesh, 9, &mesh->corner, 4 * tet_count, sizeof *mesh->corner);
}

un_status un_tets_number(un_tets_work *w, un_arena *arena)
{
    un_tets *mesh = w->mesh;
    un_context *ctx = mesh->ctx;
    int32_t leaf_count = w->tree->leaf_count;
    size_t room = (size_t)leaf_count + 1;
    w->info = un_arena_alloc(arena, room, sizeof *w->info);
    w->mask = un_arena_alloc(arena, room, sizeof *w->mask);
    w->corner_level = un_arena_alloc(arena, room, sizeof *w->corner_level);
    w->first_node = un_arena_alloc(arena, room, sizeof *w->first_node);
    w->first_tet = un_arena_alloc(arena, room, sizeof *w->first_tet);
    if (!w->info || !w->mask || !w->corner_level || !w->first_node || !w->first_tet)
        return UN_ERROR_MEMORY;
    UN_TRY(choose_leaves(w, arena));
    un_parallel_for(ctx, leaf_count, UN_TETS_GRAIN, examine_leaves, w);
    int64_t node_count = un_parallel_scan(ctx, w->first_node, leaf_count);
    int64_t tet_count = un_parallel_scan(ctx, w->first_tet, leaf_count);
    if (4 * tet_count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the mesh would have %.3g tets, more than 32-bit indices can count; make "
                       "detail.finest smaller, or sizes coarser",
                       (double)tet_count);
    w->first_node[leaf_count] = (int32_t)node_count;
    w->first_tet[leaf_count] = (int32_t)tet_count;
    UN_TRY(make_room(mesh, leaf_count, node_count + 1, tet_count + UN_NOWHERE_TETS));
    mesh->node_count = (int32_t)node_count;
    mesh->tet_count = (int32_t)tet_count;
    un_parallel_for(ctx, leaf_count, UN_TETS_GRAIN, fill_nodes, w);
    return UN_OK;
}
