/* Combinations of shapes.
 *
 * Union is min, intersection max, subtraction max(a, -b): where the parts' |d| never exceeds the
 * distance to their boundaries, neither does the result's, and slopes stay at most 1.
 *
 * A part lies within its bounds, so the signed distance to the bounds is a lower bound of the
 * part's distance. A union evaluates a costly part only where this bound cannot decide, and a union
 * of many parts searches a tree of bounds. Where a part's own value is below the bound (an
 * intersection's may be), the bound replaces it, so that skipping parts does not change the
 * result. */
#include "geometry/shape.h"

#include <stdlib.h>

/* Scenes are programs: a loop that wraps a shape again and again must neither exhaust the stack
 * (every level is a call) nor double the work without end (a shape may use the same part twice). */
#define DEPTH_MAX 200
#define COST_MAX 1000000

/* A union of at least this many parts gets a tree. With fewer, evaluating all of them is as
 * fast. */
#define TREE_LEAST 16

/* In depth-first order: the left child of a node follows it. */
typedef struct union_node {
    un_box3 box;
    int32_t right; /* 0 for a leaf */
    int32_t part;  /* of a leaf */
} union_node;

un_status shape_check_nesting(un_context *ctx, int32_t depth, int64_t cost)
{
    if (depth > DEPTH_MAX)
        return un_fail(ctx, UN_ERROR_SCENE,
                       "shapes are nested more than %d deep; put the parts side by side in one "
                       "union instead of wrapping one after the other",
                       DEPTH_MAX);
    if (cost > COST_MAX)
        return un_fail(ctx, UN_ERROR_SCENE,
                       "a shape is combined from more than %d parts, counting each use; use fewer "
                       "or a mesh file",
                       COST_MAX);
    return UN_OK;
}

/* ---- bounds ---- */

/* An empty intersection becomes a box without extent, so that min > max never occurs. */
static void close_gap(double *min, double *max)
{
    if (*min > *max) *min = *max = isfinite(*min) && isfinite(*max) ? 0.5 * (*min + *max) : 0;
}

static un_box3 combined_bounds(shape_kind kind, un_shape *const *parts, int32_t part_count)
{
    un_box3 bounds = parts[0]->bounds;
    if (kind == SHAPE_SUBTRACT) return bounds;
    for (int32_t i = 1; i < part_count; i++) {
        un_box3 b = parts[i]->bounds;
        if (kind == SHAPE_UNION) {
            bounds.min = un_min3(bounds.min, b.min);
            bounds.max = un_max3(bounds.max, b.max);
        } else {
            bounds.min = un_max3(bounds.min, b.min);
            bounds.max = un_min3(bounds.max, b.max);
        }
    }
    close_gap(&bounds.min.x, &bounds.max.x);
    close_gap(&bounds.min.y, &bounds.max.y);
    close_gap(&bounds.min.z, &bounds.max.z);
    return bounds;
}

/* ---- the tree of a union ---- */

static bool is_bounded(const un_box3 *b)
{
    return un_finite3(b->min) && un_finite3(b->max);
}

static double middle(const un_shape *part, int axis)
{
    const un_box3 *b = &part->bounds;
    return axis == 0 ? b->min.x + b->max.x : axis == 1 ? b->min.y + b->max.y : b->min.z + b->max.z;
}

typedef struct tree_order {
    const un_shape **parts;
    int axis;
} tree_order;

static int compare_middles(const void *a, const void *b, void *arg)
{
    const tree_order *order = arg;
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    double u = middle(order->parts[i], order->axis), v = middle(order->parts[k], order->axis);
    return u < v ? -1 : u > v ? 1 : (i > k) - (i < k);
}

/* Halves along the longest side; returns the next free node. */
static int32_t build_node(const un_shape **parts, int32_t *ids, int32_t count, union_node *nodes,
                          int32_t at)
{
    union_node *node = &nodes[at++];
    node->box = parts[ids[0]]->bounds;
    node->part = ids[0];
    node->right = 0;
    if (count == 1) return at;
    for (int32_t i = 1; i < count; i++) {
        node->box.min = un_min3(node->box.min, parts[ids[i]]->bounds.min);
        node->box.max = un_max3(node->box.max, parts[ids[i]]->bounds.max);
    }
    un_vec3 size = un_sub(node->box.max, node->box.min);
    tree_order order = {parts, 0};
    if (size.y > size.x) order.axis = 1;
    if (size.z > larger(size.x, size.y)) order.axis = 2;
    qsort_r(ids, (size_t)count, sizeof *ids, compare_middles, &order);
    at = build_node(parts, ids, count / 2, nodes, at);
    node->right = at;
    return build_node(parts, ids + count / 2, count - count / 2, nodes, at);
}

/* Infinite parts go first and are always evaluated: the order of a union's parts does not
 * matter. */
static un_status build_tree(un_context *ctx, un_shape *shape)
{
    const un_shape **parts = shape->csg.parts;
    int32_t *ids, endless = 0, part_count = shape->csg.part_count;
    for (int32_t i = 0; i < part_count; i++) {
        if (is_bounded(&parts[i]->bounds)) continue;
        const un_shape *held = parts[i];
        parts[i] = parts[endless];
        parts[endless++] = held;
    }
    if (part_count - endless < TREE_LEAST) return UN_OK;
    UN_ALLOC(ctx, ids, part_count);
    for (int32_t i = endless; i < part_count; i++) ids[i] = i;
    shape->csg.endless_count = endless;
    shape->csg.nodes = un_alloc(ctx, 2 * (size_t)part_count, sizeof *shape->csg.nodes);
    if (shape->csg.nodes)
        build_node(parts, ids + endless, part_count - endless, shape->csg.nodes, 0);
    un_free(ctx, ids);
    return shape->csg.nodes ? UN_OK : UN_ERROR_MEMORY;
}

/* ---- create ---- */

static un_status combine(un_shape_set *set, shape_kind kind, un_shape *const *parts,
                         int32_t part_count, un_shape **shape)
{
    UN_ASSERT(part_count >= 1);
    int32_t depth = 0;
    int64_t cost = 0;
    for (int32_t i = 0; i < part_count; i++) {
        if (parts[i]->depth > depth) depth = parts[i]->depth;
        cost += parts[i]->cost;
    }
    UN_TRY(shape_check_nesting(set->ctx, depth + 1, cost + 1));
    un_shape *s = shape_new(set, kind);
    if (!s) return UN_ERROR_MEMORY;
    s->csg.parts = un_alloc(set->ctx, (size_t)part_count, sizeof *s->csg.parts);
    if (!s->csg.parts) {
        un_free(set->ctx, s);
        return UN_ERROR_MEMORY;
    }
    for (int32_t i = 0; i < part_count; i++) s->csg.parts[i] = parts[i];
    s->csg.part_count = part_count;
    s->depth = depth + 1;
    s->cost = (int32_t)cost + 1;
    s->bounds = combined_bounds(kind, parts, part_count);
    if (kind == SHAPE_UNION && part_count >= TREE_LEAST && build_tree(set->ctx, s) != UN_OK) {
        un_free(set->ctx, s->csg.parts);
        un_free(set->ctx, s);
        return UN_ERROR_MEMORY;
    }
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}

un_status un_shape_union(un_shape_set *set, un_shape *const *parts, int32_t part_count,
                         un_shape **shape)
{
    return combine(set, SHAPE_UNION, parts, part_count, shape);
}

un_status un_shape_intersect(un_shape_set *set, un_shape *const *parts, int32_t part_count,
                             un_shape **shape)
{
    return combine(set, SHAPE_INTERSECT, parts, part_count, shape);
}

un_status un_shape_subtract(un_shape_set *set, un_shape *const *parts, int32_t part_count,
                            un_shape **shape)
{
    return combine(set, SHAPE_SUBTRACT, parts, part_count, shape);
}

/* ---- evaluate ---- */

typedef struct best_part {
    double distance;
    int32_t part;
} best_part;

static inline void take_less(best_part *best, int32_t part, double d)
{
    if (!(d < best->distance) && !(d == best->distance && part < best->part)) return;
    best->distance = d;
    best->part = part;
}

static best_part search_tree(const un_shape *shape, un_vec3 x)
{
    const union_node *nodes = shape->csg.nodes;
    best_part best = {INFINITY, shape->csg.part_count};
    for (int32_t i = 0; i < shape->csg.endless_count; i++)
        take_less(&best, i, un_shape_distance(shape->csg.parts[i], x));
    struct {
        double bound;
        int32_t node;
    } stack[64];
    int size = 1;
    stack[0].node = 0;
    stack[0].bound = box_distance(&nodes[0].box, x);
    while (size > 0) {
        size--;
        int32_t n = stack[size].node;
        double bound = stack[size].bound;
        if (bound > best.distance) continue;
        if (nodes[n].right == 0) {
            double d = un_shape_distance(shape->csg.parts[nodes[n].part], x);
            take_less(&best, nodes[n].part, larger(d, bound));
            continue;
        }
        int32_t near = n + 1, far = nodes[n].right;
        double near_bound = box_distance(&nodes[near].box, x);
        double far_bound = box_distance(&nodes[far].box, x);
        if (far_bound < near_bound) {
            double held = near_bound;
            near_bound = far_bound;
            far_bound = held;
            near = nodes[n].right;
            far = n + 1;
        }
        stack[size].node = far;
        stack[size++].bound = far_bound;
        stack[size].node = near;
        stack[size++].bound = near_bound;
    }
    if (best.part == shape->csg.part_count) best.part = 0; /* x is not finite */
    return best;
}

/* Is it worth checking the bounds first? */
static bool is_costly(const un_shape *part)
{
    return part->kind == SHAPE_MESH || part->cost > 3;
}

int32_t combined_part(const un_shape *shape, un_vec3 x, double *distance)
{
    if (shape->csg.nodes) {
        best_part best = search_tree(shape, x);
        *distance = best.distance;
        return best.part;
    }
    best_part best = {INFINITY, 0};
    for (int32_t i = 0; i < shape->csg.part_count; i++) {
        const un_shape *part = shape->csg.parts[i];
        double bound = -INFINITY;
        if (shape->kind == SHAPE_UNION && is_costly(part)) {
            bound = box_distance(&part->bounds, x);
            if (i > 0 && bound >= best.distance) continue;
        }
        double d = larger(bound, un_shape_distance(part, x));
        if (shape->kind == SHAPE_SUBTRACT && i > 0) d = -d;
        bool takes = shape->kind == SHAPE_UNION ? d < best.distance : d > best.distance;
        if (i == 0 || takes) best = (best_part){d, i};
    }
    *distance = best.distance;
    return best.part;
}

static void union_run(const un_shape *shape, const un_vec3 *x, int32_t count, double *distance)
{
    double other[SHAPE_RUN], bound[SHAPE_RUN];
    for (int32_t i = 0; i < shape->csg.part_count; i++) {
        const un_shape *part = shape->csg.parts[i];
        bool costly = is_costly(part), matters = i == 0 || !costly;
        for (int32_t k = 0; k < count && costly; k++) {
            bound[k] = box_distance(&part->bounds, x[k]);
            matters |= i == 0 || bound[k] < distance[k];
        }
        if (!matters) continue;
        un_shape_distances(part, x, count, other);
        for (int32_t k = 0; k < count; k++) {
            double d = costly ? larger(bound[k], other[k]) : other[k];
            if (i == 0 || d < distance[k]) distance[k] = d;
        }
    }
}

void combined_run(const un_shape *shape, const un_vec3 *x, int32_t count, double *distance)
{
    if (shape->csg.nodes) {
        for (int32_t k = 0; k < count; k++) distance[k] = search_tree(shape, x[k]).distance;
        return;
    }
    if (shape->kind == SHAPE_UNION) {
        union_run(shape, x, count, distance);
        return;
    }
    double other[SHAPE_RUN], sign = shape->kind == SHAPE_SUBTRACT ? -1 : 1;
    un_shape_distances(shape->csg.parts[0], x, count, distance);
    for (int32_t i = 1; i < shape->csg.part_count; i++) {
        un_shape_distances(shape->csg.parts[i], x, count, other);
        for (int32_t k = 0; k < count; k++)
            distance[k] = sign * other[k] > distance[k] ? sign * other[k] : distance[k];
    }
}
