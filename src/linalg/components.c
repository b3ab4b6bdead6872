/* Disconnected parts of a system, and the undetermined constants of singular parts.
 *
 * Rows are joined by a union-find that all threads share: a root is only ever linked to a smaller
 * root, so each part ends with its smallest row as root whatever the order, and the labels are the
 * same for any thread count. */
#include "linalg/components.h"

#include <stdatomic.h>

/* A row counts as anchored if its sum exceeds this share of its diagonal. */
#define ANCHOR 1e-10
/* A column fixes the constant of a part if its entries there sum to more than this share of their
 * absolute values. For a body inside the liquid the sums are zero up to round-off, and open areas
 * are kept in single precision. */
#define SEEN 1e-6
/* As many sums as un_parallel_sums takes at once. */
#define SUMS_MAX 16
#define PARTS_GRAIN 2048

void un_components_free(un_components *parts)
{
    un_free(parts->ctx, parts->code);
    un_free(parts->ctx, parts->flags);
    un_free(parts->ctx, parts->sums);
}

typedef struct search {
    const un_csr *a;
    _Atomic int32_t *parent;
    _Atomic uint8_t *flags;
    _Atomic double largest;
    int64_t first; /* row of this rank */
} search;

static int32_t find_root(_Atomic int32_t *parent, int32_t i)
{
    for (;;) {
        int32_t up = atomic_load_explicit(&parent[i], memory_order_relaxed);
        if (up == i) return i;
        int32_t above = atomic_load_explicit(&parent[up], memory_order_relaxed);
        if (above != up)
            atomic_compare_exchange_weak_explicit(&parent[i], &up, above, memory_order_relaxed,
                                                  memory_order_relaxed);
        i = above;
    }
}

static void join(_Atomic int32_t *parent, int32_t i, int32_t j)
{
    for (;;) {
        i = find_root(parent, i);
        j = find_root(parent, j);
        if (i == j) return;
        int32_t low = i < j ? i : j, high = i < j ? j : i;
        if (atomic_compare_exchange_strong_explicit(&parent[high], &high, low, memory_order_relaxed,
                                                    memory_order_relaxed))
            return;
    }
}

static void start_rows(void *arg, int64_t begin, int64_t end)
{
    search *p = arg;
    for (int64_t i = begin; i < end; i++)
        atomic_store_explicit(&p->parent[i], (int32_t)i, memory_order_relaxed);
}

enum { ROW_ANCHORED = 1, ROW_EMPTY = 2, PART_ANCHORED = 4 };

/* Joins rows with their neighbours. Also finds the sum of all entries, which shows whether one is
 * not finite, and the largest diagonal. */
static void join_rows(void *arg, int64_t begin, int64_t end, double *total)
{
    search *p = arg;
    const un_csr *a = p->a;
    double all = *total, largest = 0;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t last = i;
        double sum = 0, diagonal = 0;
        bool empty = true;
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
            int32_t j = a->col[k];
            sum += a->val[k];
            empty &= a->val[k] == 0;
            if (j == i) diagonal = a->val[k];
            if (j >= i || j < p->first || a->val[k] == 0) continue;
            /* most neighbours have the same parent as the one before */
            int32_t up = atomic_load_explicit(&p->parent[j], memory_order_relaxed);
            if (up != last) join(p->parent, i, j);
            last = up;
        }
        all += sum;
        largest = diagonal > largest ? diagonal : largest;
        uint8_t flags = empty ? ROW_EMPTY : sum > ANCHOR * diagonal ? ROW_ANCHORED : 0;
        atomic_store_explicit(&p->flags[i], flags, memory_order_relaxed);
    }
    double before = atomic_load_explicit(&p->largest, memory_order_relaxed);
    while (largest > before &&
           !atomic_compare_exchange_weak_explicit(&p->largest, &before, largest,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    *total = all;
}

static void join_own(void *arg, int64_t begin, int64_t end, double *total)
{
    const search *p = arg;
    join_rows(arg, p->first + begin, p->first + end, total);
}

static void anchor_rows(void *arg, int64_t begin, int64_t end)
{
    search *p = arg;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t root = find_root(p->parent, i);
        atomic_store_explicit(&p->parent[i], root, memory_order_relaxed);
        if ((atomic_load_explicit(&p->flags[i], memory_order_relaxed) & ROW_ANCHORED) &&
            !(atomic_load_explicit(&p->flags[root], memory_order_relaxed) & PART_ANCHORED))
            atomic_fetch_or_explicit(&p->flags[root], PART_ANCHORED, memory_order_relaxed);
    }
}

static void join_entries(void *arg, int64_t begin, int64_t end)
{
    search *p = arg;
    const un_csr *a = p->a;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t last = i;
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) {
            int32_t j = a->col[k];
            if (j >= i || j < p->first || a->val[k] == 0) continue;
            int32_t up = atomic_load_explicit(&p->parent[j], memory_order_relaxed);
            if (up != last) join(p->parent, i, j);
            last = up;
        }
    }
}

static void root_rows(void *arg, int64_t begin, int64_t end)
{
    search *p = arg;
    for (int32_t i = (int32_t)begin; i < end; i++)
        atomic_store_explicit(&p->parent[i], find_root(p->parent, i), memory_order_relaxed);
}

void un_csr_parts(un_context *ctx, const un_csr *a, un_part own, int32_t *root)
{
    search p = {.a = a, .parent = (_Atomic int32_t *)root, .first = own.begin};
    un_parallel_part(ctx, own, PARTS_GRAIN, start_rows, &p);
    un_parallel_part(ctx, own, PARTS_GRAIN, join_entries, &p);
    un_parallel_part(ctx, own, PARTS_GRAIN, root_rows, &p);
}

/* By now, roots hold the code of their part, -1 - label, and all other rows their root. */
static void label_rows(void *arg, int64_t begin, int64_t end)
{
    un_components *parts = arg;
    for (int64_t i = begin; i < end; i++)
        if (parts->code[i] >= 0) parts->code[i] = parts->code[parts->code[i]];
}

/* Roots get their codes; those of singular parts are numbered in their order. */
static void number_roots(un_components *parts, int32_t n)
{
    parts->count = parts->singular_count = parts->mean_count = 0;
    for (int32_t i = 0; i < n; i++) {
        if (parts->code[i] != i) continue;
        parts->count++;
        parts->code[i] = UN_ANCHORED;
        if (parts->flags[i] & PART_ANCHORED) continue;
        parts->singular_count++;
        parts->code[i] = parts->flags[i] & ROW_EMPTY ? UN_EMPTY : UN_SINGULAR - parts->mean_count++;
    }
}

/* The same where ranks share the rows: a part is made of local parts, which have been joined. What
 * is known of those that are not, goes with the sums of those that are. */
static un_status join_roots(un_components *parts, const un_csr *a, un_joint *joint)
{
    un_part own = un_spread_part(parts->spread, a->n);
    UN_TRY(un_joint_build(parts->ctx, a, own, parts->code, parts->spread->near, 1, 3, joint));
    for (int64_t i = own.begin; i < own.end; i++) {
        if (parts->code[i] != i) continue;
        int64_t k = un_joint_find(joint, (int32_t)i);
        bool anchored = parts->flags[i] & PART_ANCHORED, empty = parts->flags[i] & ROW_EMPTY;
        if (k >= 0)
            joint->sums[k] = anchored;
        else {
            joint->more[0] += 1;
            joint->more[1] += !anchored;
            joint->more[2] += !anchored && !empty;
        }
    }
    un_joint_sum(parts->ctx, joint);
    return UN_OK;
}

/* Roots of singular parts, ascending: known to all. */
static un_status list_singular(un_components *parts, const un_csr *a, const un_joint *joint,
                               un_ids *all)
{
    un_context *ctx = parts->ctx;
    un_part own = un_spread_part(parts->spread, a->n);
    un_ids here = {0};
    un_status status = UN_OK;
    if (joint->more[2] > 0) {
        for (int64_t i = own.begin; status == UN_OK && i < own.end; i++)
            if (parts->code[i] == i && !(parts->flags[i] & (PART_ANCHORED | ROW_EMPTY)) &&
                un_joint_find(joint, (int32_t)i) < 0)
                status = un_ids_add(ctx, &here, (int32_t)i);
        if (status == UN_OK)
            status = un_ranks_list(ctx, here.id, here.count, sizeof *here.id, (void **)&all->id,
                                   &all->count);
        un_free(ctx, here.id);
        all->room = (size_t)un_max64(all->count, 1); /* of one there always is */
    }
    for (int64_t k = 0; status == UN_OK && k < joint->count; k++)
        if (joint->root[k] == k && !(joint->sums[k] > 0))
            status = un_ids_add(ctx, all, joint->id[k]);
    un_ids_sort(all);
    return status;
}

static un_status number_roots_of_ranks(un_components *parts, const un_csr *a)
{
    un_context *ctx = parts->ctx;
    un_part own = un_spread_part(parts->spread, a->n);
    un_joint joint = {0};
    un_ids singular = {0};
    un_status status = join_roots(parts, a, &joint);
    if (status == UN_OK) status = list_singular(parts, a, &joint, &singular);
    UN_TRY_DONE(status);
    parts->count = (int32_t)joint.more[0];
    parts->singular_count = (int32_t)joint.more[1];
    parts->mean_count = (int32_t)singular.count;
    for (int64_t k = 0; k < joint.count; k++) {
        parts->count += joint.root[k] == k;
        parts->singular_count += joint.root[k] == k && !(joint.sums[k] > 0);
    }
    for (int64_t i = own.begin; i < own.end; i++) {
        if (parts->code[i] != i) continue;
        int64_t k = un_joint_find(&joint, (int32_t)i);
        int32_t root = k < 0 ? (int32_t)i : joint.id[joint.root[k]];
        bool anchored = k < 0 ? parts->flags[i] & PART_ANCHORED : joint.sums[joint.root[k]] > 0;
        bool empty = k < 0 && parts->flags[i] & ROW_EMPTY;
        parts->code[i] = anchored ? UN_ANCHORED
                         : empty  ? UN_EMPTY
                                  : UN_SINGULAR - (int32_t)un_ids_find(&singular, root);
    }
done:
    un_joint_free(ctx, &joint);
    un_free(ctx, singular.id);
    return status;
}

un_status un_components_find(un_components *parts, const un_csr *a, bool *finite)
{
    un_context *ctx = parts->ctx;
    size_t n = (size_t)a->n;
    un_part own = un_spread_part(parts->spread, a->n);
    double all;
    UN_TRY(
        un_array_need(ctx, (void **)&parts->code, &parts->capacity_code, n, sizeof *parts->code));
    UN_TRY(un_array_need(ctx, (void **)&parts->flags, &parts->capacity_flags, n,
                         sizeof *parts->flags));
    search p = {a, (_Atomic int32_t *)parts->code, (_Atomic uint8_t *)parts->flags, 0, own.begin};
    int64_t grain = un_block_grain(a->n);
    parts->n = a->n;
    un_parallel_part(ctx, own, grain, start_rows, &p);
    un_parallel_sums(ctx, own.end - own.begin, 1, join_own, &p, &all);
    parts->largest = atomic_load_explicit(&p.largest, memory_order_relaxed);
    double most[2] = {parts->largest, !isfinite(all)};
    if (parts->spread) un_ranks_most(ctx, most, 2);
    parts->largest = most[0];
    *finite = most[1] == 0;
    un_parallel_part(ctx, own, grain, anchor_rows, &p);
    if (parts->spread)
        UN_TRY(number_roots_of_ranks(parts, a));
    else
        number_roots(parts, a->n);
    if (parts->singular_count == 0) return UN_OK;
    un_parallel_part(ctx, own, grain, label_rows, parts);
    UN_TRY(un_array_need(ctx, (void **)&parts->sums, &parts->capacity_sums,
                         2 * (size_t)parts->mean_count, sizeof *parts->sums));
    double *sizes = parts->sums + parts->mean_count;
    memset(sizes, 0, (size_t)parts->mean_count * sizeof *sizes);
    for (int64_t i = own.begin; i < own.end; i++)
        if (parts->code[i] <= UN_SINGULAR) sizes[UN_SINGULAR - parts->code[i]] += 1;
    if (parts->spread) un_ranks_add(ctx, sizes, parts->mean_count);
    return UN_OK;
}

bool un_components_pin(un_components *parts, const un_columns *c)
{
    int32_t pinned = 0, kept = 0;
    un_part own = un_spread_part(parts->spread, parts->n);
    if (parts->mean_count == 0) return false;
    if (parts->spread) un_halo_share(parts->spread->pushed, parts->code, sizeof *parts->code);
    double *sizes = parts->sums + parts->mean_count;
    for (int32_t m = 0; m < parts->mean_count; m++) {
        bool seen = false;
        for (int32_t k = 0; k < c->count && !seen; k++) {
            double sum = 0, most = 0;
            for (int32_t e = c->first[k]; e < c->first[k + 1]; e++) {
                if (parts->code[c->row[e]] != UN_SINGULAR - m) continue;
                sum += c->val[e];
                most += fabs(c->val[e]);
            }
            seen = fabs(sum) > SEEN * most;
        }
        int32_t code = seen ? UN_ANCHORED : UN_SINGULAR - kept;
        for (int64_t i = own.begin; i < own.end && (seen || kept < m); i++)
            if (parts->code[i] == UN_SINGULAR - m) parts->code[i] = code;
        if (parts->spread) un_halo_share(parts->spread->pushed, parts->code, sizeof *parts->code);
        if (!seen) sizes[kept++] = sizes[m];
        pinned += seen;
    }
    memmove(parts->sums + kept, sizes, (size_t)kept * sizeof *sizes);
    parts->mean_count -= pinned;
    parts->singular_count -= pinned;
    return pinned > 0;
}

/* ---- means ---- */

typedef struct means {
    un_components *parts;
    double *v;
} means;

static void sum_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    means *p = arg;
    const int32_t *code = p->parts->code;
    for (int64_t i = begin; i < end; i++)
        if (code[i] <= UN_SINGULAR) sums[UN_SINGULAR - code[i]] += p->v[i];
}

static void subtract_rows(void *arg, int64_t begin, int64_t end)
{
    means *p = arg;
    const int32_t *code = p->parts->code;
    const double *sums = p->parts->sums;
    for (int64_t i = begin; i < end; i++)
        if (code[i] <= UN_SINGULAR)
            p->v[i] -= sums[UN_SINGULAR - code[i]];
        else if (code[i] == UN_EMPTY)
            p->v[i] = 0;
}

void un_components_remove_means(un_components *parts, double *v)
{
    if (parts->singular_count == 0) return;
    means p = {parts, v};
    double *sums = parts->sums, *sizes = sums + parts->mean_count;
    if (parts->mean_count <= SUMS_MAX)
        un_spread_sums(parts->ctx, parts->spread, parts->n, parts->mean_count, sum_rows, &p, sums);
    else if (parts->spread)
        un_spread_sum_in_turn(parts->spread, parts->mean_count, sum_rows, &p, sums);
    else {
        memset(sums, 0, (size_t)parts->mean_count * sizeof *sums);
        sum_rows(&p, 0, parts->n, sums);
    }
    for (int32_t m = 0; m < parts->mean_count; m++) sums[m] /= sizes[m];
    un_parallel_part(parts->ctx, un_spread_part(parts->spread, parts->n), un_block_grain(parts->n),
                     subtract_rows, &p);
}
