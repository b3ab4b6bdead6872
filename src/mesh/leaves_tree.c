/* What a rank that knows some of the leaves builds tets on: its own leaves, and those that touch
 * them. */
#include "mesh/families.h"
#include "mesh/mesh.h"

/* Does leaf c have a place of keys [low, end) in the cubes of its size around it? As
 * octree_ranks.c chooses what a rank knows of a tree. */
static bool touches(const un_octree *tree, int32_t c, uint64_t low, uint64_t end)
{
    un_leaf_place p = un_leaf_place_of(tree, c);
    uint64_t places = (uint64_t)1 << 3 * (tree->level_max - tree->level[c]);
    for (uint32_t set = UN_BESIDE_ALL & ~p.outside; set; set &= set - 1) {
        uint64_t first = un_beside_key(p.at, p.size, __builtin_ctz(set));
        if (first < end && first + places > low) return true;
    }
    return false;
}

un_status un_leaves_part_tree(un_octree *part, const un_leaves *leaves)
{
    const un_octree *tree = leaves->tree;
    un_part own = un_leaves_own(leaves);
    uint8_t *known = part->known;
    size_t room = part->capacity_known, count = (size_t)tree->leaf_count;
    *part = *tree;
    part->partial = true;
    part->known = known;
    part->capacity_known = room;
    UN_TRY(un_array_need(leaves->ctx, (void **)&part->known, &part->capacity_known, count + 1, 1));
    memset(part->known, 0, count);
    if (own.begin == own.end) return UN_OK;
    uint64_t low = tree->key[own.begin];
    uint64_t end = own.end < tree->leaf_count ? tree->key[own.end] : UINT64_MAX;
    memset(part->known + own.begin, UN_LEAF_OWN, (size_t)(own.end - own.begin));
    for (int32_t k = 0; k < un_leaves_runs(leaves); k++)
        for (int64_t c = un_leaves_run(leaves, k).begin; c < un_leaves_run(leaves, k).end; c++)
            if (leaves->share->ring[c] == 1 && touches(tree, (int32_t)c, low, end))
                part->known[c] = UN_LEAF_GHOST;
    return UN_OK;
}
