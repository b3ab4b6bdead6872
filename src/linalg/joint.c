/* Parts of a graph whose rows several ranks share.
 *
 * Each rank finds the parts of its own rows. Couplings to rows of other ranks join some of these;
 * their least rows are listed on all ranks with the pairs that are joined, of which there are few,
 * and every rank joins them in the same way. */
#include "linalg/linalg.h"

#include <stdlib.h>

/* ---- sets ---- */

un_status un_ids_add(un_context *ctx, un_ids *ids, int32_t id)
{
    if (ids->count > 0 && ids->id[ids->count - 1] == id) return UN_OK;
    return un_ids_append(ctx, ids, id);
}

#define IDS_MIN 64 /* room for, at first */

un_status un_ids_append(un_context *ctx, un_ids *ids, int32_t id)
{
    size_t count = ids->room ? (size_t)ids->count + 1 : IDS_MIN;
    UN_TRY(un_array_reserve(ctx, (void **)&ids->id, &ids->room, count, sizeof *ids->id));
    ids->id[ids->count++] = id;
    return UN_OK;
}

static void insert_ids(int32_t *id, int64_t count)
{
    for (int64_t k = 1; k < count; k++) {
        int32_t moved = id[k];
        int64_t n = k;
        for (; n > 0 && id[n - 1] > moved; n--) id[n] = id[n - 1];
        id[n] = moved;
    }
}

/* In place, by eight bits after eight, the highest first: none of them is negative. */
static void sort_ids(int32_t *id, int64_t count, int shift)
{
    int32_t end[256] = {0}, next[256];
    for (int64_t k = 0; k < count; k++) end[id[k] >> shift & 255]++;
    for (int32_t d = 0, at = 0; d < 256; d++) {
        next[d] = at;
        end[d] = at += end[d];
    }
    for (int32_t d = 0; d < 256; d++)
        while (next[d] < end[d]) {
            int32_t *there = &id[next[d]], to = *there >> shift & 255;
            int32_t swap = id[next[to]];
            id[next[to]++] = *there;
            *there = swap;
        }
    for (int32_t d = 0, begin = 0; d < 256 && shift > 0; begin = end[d++]) {
        int32_t some = end[d] - begin;
        if (some > 32)
            sort_ids(id + begin, some, shift - 8);
        else
            insert_ids(id + begin, some);
    }
}

void un_ids_sort(un_ids *ids)
{
    bool sorted = true;
    int64_t kept = 0;
    for (int64_t k = 1; k < ids->count && sorted; k++) sorted = ids->id[k - 1] < ids->id[k];
    if (sorted) return;
    if (ids->count <= 32) {
        insert_ids(ids->id, ids->count);
    } else {
        int32_t most = 0;
        int shift = 0;
        for (int64_t k = 0; k < ids->count; k++) most |= ids->id[k];
        UN_ASSERT(most >= 0);
        while (most >> shift > 255) shift += 8;
        sort_ids(ids->id, ids->count, shift);
    }
    for (int64_t k = 0; k < ids->count; k++)
        if (k == 0 || ids->id[k] != ids->id[k - 1]) ids->id[kept++] = ids->id[k];
    ids->count = kept;
}

int64_t un_ids_find(const un_ids *ids, int32_t id)
{
    int64_t low = 0, high = ids->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ids->id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ids->count && ids->id[low] == id ? low : -1;
}

/* ---- parts ---- */

typedef struct pair {
    int32_t own, other;
} pair;

static int compare_pairs(const void *a, const void *b)
{
    const pair *p = a, *q = b;
    if (p->own != q->own) return p->own < q->own ? -1 : 1;
    return (p->other > q->other) - (p->other < q->other);
}

/* Couplings to rows of ranks before this one; their own list the others. */
static un_status list_pairs(un_context *ctx, const un_csr *a, un_part own, const int32_t *root,
                            pair **pairs, int64_t *pair_count)
{
    size_t room = 0;
    int64_t count = 0;
    for (int64_t i = own.begin; i < own.end; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1] && a->col[k] < own.begin; k++) {
            if (a->val[k] == 0) continue;
            pair p = {root[i], root[a->col[k]]};
            if (count > 0 && compare_pairs(&p, &(*pairs)[count - 1]) == 0) continue;
            UN_TRY(un_array_reserve(ctx, (void **)pairs, &room, (size_t)count + 1, sizeof p));
            (*pairs)[count++] = p;
        }
    if (count > 0) qsort(*pairs, (size_t)count, sizeof **pairs, compare_pairs);
    *pair_count = 0;
    for (int64_t k = 0; k < count; k++)
        if (k == 0 || compare_pairs(&(*pairs)[k], &(*pairs)[k - 1]) != 0)
            (*pairs)[(*pair_count)++] = (*pairs)[k];
    return UN_OK;
}

static int32_t first_of(int32_t *root, int32_t k)
{
    while (root[k] != k) k = root[k] = root[root[k]];
    return k;
}

static un_status join_pairs(un_context *ctx, un_joint *joint, const pair *pairs, int64_t count)
{
    un_ids ids = {0};
    for (int64_t k = 0; k < count; k++) {
        UN_TRY(un_ids_add(ctx, &ids, pairs[k].own));
        joint->id = ids.id;
        UN_TRY(un_ids_add(ctx, &ids, pairs[k].other));
        joint->id = ids.id;
    }
    un_ids_sort(&ids);
    joint->count = ids.count;
    UN_ALLOC(ctx, joint->root, ids.count + 1);
    size_t sums = (size_t)(ids.count * joint->width + joint->more_count);
    joint->sums = un_alloc_zero(ctx, sums + 1, sizeof *joint->sums);
    if (!joint->sums) return UN_ERROR_MEMORY;
    joint->more = joint->sums + ids.count * joint->width;
    for (int32_t k = 0; k < ids.count; k++) joint->root[k] = k;
    for (int64_t k = 0; k < count; k++) {
        int32_t i = first_of(joint->root, (int32_t)un_ids_find(&ids, pairs[k].own));
        int32_t j = first_of(joint->root, (int32_t)un_ids_find(&ids, pairs[k].other));
        joint->root[i > j ? i : j] = i > j ? j : i;
    }
    for (int32_t k = 0; k < ids.count; k++) joint->root[k] = first_of(joint->root, k);
    return UN_OK;
}

un_status un_joint_build(un_context *ctx, const un_csr *a, un_part own, int32_t *root,
                         un_halo *near, int32_t width, int32_t more, un_joint *joint)
{
    pair *pairs = NULL, *all = NULL;
    int64_t count = 0, all_count = 0;
    *joint = (un_joint){.width = width, .more_count = more};
    un_halo_share(near, root, sizeof *root);
    un_status status = list_pairs(ctx, a, own, root, &pairs, &count);
    if (status == UN_OK)
        status = un_ranks_list(ctx, pairs, count, sizeof *pairs, (void **)&all, &all_count);
    if (status == UN_OK) status = join_pairs(ctx, joint, all, all_count);
    un_free(ctx, pairs);
    un_free(ctx, all);
    return status;
}

int64_t un_joint_find(const un_joint *joint, int32_t id)
{
    un_ids ids = {joint->id, joint->count, 0};
    return un_ids_find(&ids, id);
}

void un_joint_sum(un_context *ctx, un_joint *joint)
{
    un_ranks_add(ctx, joint->sums, joint->count * joint->width + joint->more_count);
    for (int64_t k = 0; k < joint->count; k++)
        for (int32_t w = 0; w < joint->width && joint->root[k] != k; w++)
            joint->sums[joint->root[k] * joint->width + w] += joint->sums[k * joint->width + w];
}

void un_joint_free(un_context *ctx, un_joint *joint)
{
    un_free(ctx, joint->id);
    un_free(ctx, joint->root);
    un_free(ctx, joint->sums);
}
