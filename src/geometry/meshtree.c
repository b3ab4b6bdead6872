/* Building the tree: top-down, split where the surface-area heuristic over 16 bins along the
 * longest extent of the centroids is least. The top is split by one thread until there are a few
 * dozen ranges, which then become subtrees in parallel. */
#include "geometry/meshtree.h"

#define BINS 16
/* Beyond this depth ranges are halved, whatever the heuristic says, so that the depth is bounded:
 * 2^31 triangles need 11 more levels of eight. */
#define HEURISTIC_DEPTH (TREE_DEPTH_MAX - 14)
#define TASKS 64
#define TASK_LEAST 2048 /* triangles */

typedef struct prim {
    float lo[3];
    int32_t id;
    float hi[3];
    float unused;
} prim;

/* A node while the tree is built: ranges of prims. */
typedef struct range_node {
    int32_t first[TREE_WIDTH], count[TREE_WIDTH];
    int32_t child[TREE_WIDTH]; /* -1: leaf; TASK_MARK + i: task i */
} range_node;

#define TASK_MARK 0x40000000

typedef struct range_task {
    int32_t first, count, depth;
    int32_t room;       /* where its nodes begin during the build */
    int32_t node_count; /* once built */
    int32_t node_first; /* in the finished tree */
} range_task;

typedef struct builder {
    un_context *ctx;
    const un_trimesh *mesh;
    bool turned;
    prim *prims;
    range_node *top, *below; /* nodes above the tasks, and nodes of the tasks */
    int32_t top_count;
    range_task *tasks;
    int32_t task_count, task_capacity, task_size;
    mesh_tree *tree;
} builder;

/* ---- boxes ---- */

typedef struct float_box {
    float lo[3], hi[3];
} float_box;

static const float_box EMPTY = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

static inline void include(float_box *box, const float lo[3], const float hi[3])
{
    for (int a = 0; a < 3; a++) {
        box->lo[a] = lo[a] < box->lo[a] ? lo[a] : box->lo[a];
        box->hi[a] = hi[a] > box->hi[a] ? hi[a] : box->hi[a];
    }
}

static float half_area(const float_box *box)
{
    float x = box->hi[0] - box->lo[0], y = box->hi[1] - box->lo[1], z = box->hi[2] - box->lo[2];
    return x * y + y * z + z * x;
}

static inline float centroid(const prim *p, int a)
{
    return 0.5f * (p->lo[a] + p->hi[a]);
}

/* ---- splitting ---- */

typedef struct split_plan {
    int axis;
    float lo, scale; /* bin = (centroid - lo) scale */
    int bin;         /* the first bin of the right side; 0: no plan, halve */
} split_plan;

static inline int bin_of(const split_plan *plan, const prim *p)
{
    int bin = (int)((centroid(p, plan->axis) - plan->lo) * plan->scale);
    return bin < BINS ? bin : BINS - 1;
}

static split_plan plan_split(const prim *prims, int32_t count)
{
    float_box centers = EMPTY;
    for (int32_t i = 0; i < count; i++) {
        float c[3] = {centroid(&prims[i], 0), centroid(&prims[i], 1), centroid(&prims[i], 2)};
        include(&centers, c, c);
    }
    float extent[3];
    for (int a = 0; a < 3; a++) extent[a] = centers.hi[a] - centers.lo[a];
    split_plan plan = {0};
    if (extent[1] > extent[plan.axis]) plan.axis = 1;
    if (extent[2] > extent[plan.axis]) plan.axis = 2;
    /* Smaller bins would be lost in rounding. */
    if (!(extent[plan.axis] > 1e-30f)) return plan;
    plan.lo = centers.lo[plan.axis];
    plan.scale = BINS / extent[plan.axis];

    float_box boxes[BINS];
    int32_t counts[BINS] = {0};
    for (int b = 0; b < BINS; b++) boxes[b] = EMPTY;
    for (int32_t i = 0; i < count; i++) {
        int b = bin_of(&plan, &prims[i]);
        counts[b]++;
        include(&boxes[b], prims[i].lo, prims[i].hi);
    }
    float right_cost[BINS];
    float_box box = EMPTY;
    int32_t n = 0;
    for (int b = BINS - 1; b > 0; b--) {
        include(&box, boxes[b].lo, boxes[b].hi);
        n += counts[b];
        right_cost[b] = n ? half_area(&box) * (float)n : 0;
    }
    float best = INFINITY;
    box = EMPTY;
    n = 0;
    for (int b = 1; b < BINS; b++) {
        include(&box, boxes[b - 1].lo, boxes[b - 1].hi);
        n += counts[b - 1];
        if (n == 0 || n == count) continue;
        float cost = half_area(&box) * (float)n + right_cost[b];
        if (cost < best) {
            best = cost;
            plan.bin = b;
        }
    }
    return plan;
}

/* Reorders prims and returns how many go left; neither side is empty. count >= 2. */
static int32_t split(prim *prims, int32_t count, bool halve)
{
    split_plan plan = {0};
    if (!halve) plan = plan_split(prims, count);
    if (plan.bin == 0) return count / 2;
    int32_t left = 0, right = count - 1;
    while (left <= right) {
        if (bin_of(&plan, &prims[left]) < plan.bin) {
            left++;
        } else {
            prim held = prims[left];
            prims[left] = prims[right];
            prims[right--] = held;
        }
    }
    return left;
}

static float range_area(const prim *prims, int32_t count)
{
    float_box box = EMPTY;
    for (int32_t i = 0; i < count; i++) include(&box, prims[i].lo, prims[i].hi);
    return half_area(&box);
}

/* Splits a range into up to eight; always splits the one that is most costly to search. */
static int divide(prim *prims, int32_t first, int32_t count, int32_t depth, range_node *node)
{
    float cost[TREE_WIDTH];
    int n = 1;
    node->first[0] = first;
    node->count[0] = count;
    cost[0] = 0;
    while (n < TREE_WIDTH) {
        int worst = -1;
        for (int k = 0; k < n; k++)
            if (node->count[k] > TREE_LEAF && (worst < 0 || cost[k] > cost[worst])) worst = k;
        if (worst < 0) break;
        int32_t f = node->first[worst], c = node->count[worst];
        int32_t left = split(prims + f, c, depth > HEURISTIC_DEPTH);
        node->count[worst] = left;
        node->first[n] = f + left;
        node->count[n] = c - left;
        bool halve = depth > HEURISTIC_DEPTH;
        cost[worst] = halve ? (float)left : range_area(prims + f, left) * (float)left;
        cost[n] =
            halve ? (float)(c - left) : range_area(prims + f + left, c - left) * (float)(c - left);
        n++;
    }
    for (int k = 0; k < TREE_WIDTH; k++) node->child[k] = -1;
    for (int k = n; k < TREE_WIDTH; k++) node->count[k] = 0;
    return n;
}

/* Depth first, children after their parent; returns the next free node. */
static int32_t build_below(prim *prims, range_node *nodes, int32_t at, int32_t first, int32_t count,
                           int32_t depth)
{
    range_node *node = &nodes[at++];
    int n = divide(prims, first, count, depth, node);
    for (int k = 0; k < n; k++) {
        if (node->count[k] <= TREE_LEAF) continue;
        node->child[k] = at;
        at = build_below(prims, nodes, at, node->first[k], node->count[k], depth + 1);
    }
    return at;
}

/* A node above the leaves has more than TREE_LEAF triangles, and fewer than eight children only if
 * all of them are leaves: so there are at most a quarter as many nodes as triangles. */
static int32_t node_room(int32_t count)
{
    return count / 4 + 1;
}

static un_status add_task(builder *b, int32_t first, int32_t count, int32_t depth)
{
    size_t capacity = (size_t)b->task_capacity;
    UN_TRY(un_array_reserve(b->ctx, (void **)&b->tasks, &capacity, (size_t)b->task_count + 1,
                            sizeof *b->tasks));
    b->task_capacity = (int32_t)capacity;
    b->tasks[b->task_count++] = (range_task){.first = first, .count = count, .depth = depth};
    return UN_OK;
}

/* The root, and below it every node too large for a task. */
static un_status build_top(builder *b, int32_t first, int32_t count, int32_t depth, int32_t *index)
{
    int32_t at = b->top_count++;
    *index = at;
    range_node *node = &b->top[at];
    int n = divide(b->prims, first, count, depth, node);
    for (int k = 0; k < n; k++) {
        if (node->count[k] <= TREE_LEAF) continue;
        if (node->count[k] > b->task_size) {
            UN_TRY(build_top(b, node->first[k], node->count[k], depth + 1, &node->child[k]));
        } else {
            node->child[k] = TASK_MARK + b->task_count;
            UN_TRY(add_task(b, node->first[k], node->count[k], depth + 1));
        }
    }
    return UN_OK;
}

static void run_tasks(void *arg, int64_t begin, int64_t end)
{
    builder *b = arg;
    for (int64_t i = begin; i < end; i++) {
        range_task *t = &b->tasks[i];
        t->node_count = build_below(b->prims, b->below + t->room, 0, t->first, t->count, t->depth);
    }
}

/* ---- prims ---- */

static void triangle_corners(const builder *b, int32_t t, un_vec3 v[3])
{
    const int32_t *corner = b->mesh->triangle[t];
    v[0] = b->mesh->position[corner[0]];
    v[1] = b->mesh->position[corner[b->turned ? 2 : 1]];
    v[2] = b->mesh->position[corner[b->turned ? 1 : 2]];
}

/* The next float below or above: a box must not lose its triangle to rounding. */
static inline float round_down(double x)
{
    float f = (float)x;
    return (double)f > x ? nextafterf(f, -INFINITY) : f;
}
static inline float round_up(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

static un_vec3 to_tree(const mesh_tree *tree, un_vec3 x)
{
    return un_scale(un_sub(x, tree->center), tree->per_unit);
}

static void make_prims(void *arg, int64_t begin, int64_t end)
{
    builder *b = arg;
    for (int64_t t = begin; t < end; t++) {
        prim *p = &b->prims[t];
        p->id = (int32_t)t;
        for (int a = 0; a < 3; a++) {
            p->lo[a] = INFINITY;
            p->hi[a] = -INFINITY;
        }
        un_vec3 v[3];
        triangle_corners(b, (int32_t)t, v);
        for (int i = 0; i < 3; i++) {
            un_vec3 u = to_tree(b->tree, v[i]);
            double x[3] = {u.x, u.y, u.z};
            for (int a = 0; a < 3; a++) {
                float lo = round_down(x[a]), hi = round_up(x[a]);
                p->lo[a] = lo < p->lo[a] ? lo : p->lo[a];
                p->hi[a] = hi > p->hi[a] ? hi : p->hi[a];
            }
        }
    }
}

static void copy_triangles(void *arg, int64_t begin, int64_t end)
{
    builder *b = arg;
    for (int64_t i = begin; i < end; i++)
        triangle_corners(b, b->prims[i].id, b->tree->triangles[i].v);
}

/* ---- finished nodes ---- */

static const range_node *find_node(const builder *b, int32_t n, int32_t *base)
{
    *base = 0;
    if (n < b->top_count) return &b->top[n];
    int32_t low = 0, high = b->task_count - 1;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (b->tasks[middle].node_first <= n)
            low = middle;
        else
            high = middle - 1;
    }
    const range_task *t = &b->tasks[low];
    *base = t->node_first;
    return &b->below[t->room + (n - t->node_first)];
}

static void set_box(tree_node *node, int k, const prim *prims, int32_t count)
{
    float_box box = EMPTY;
    for (int32_t i = 0; i < count; i++) include(&box, prims[i].lo, prims[i].hi);
    for (int a = 0; a < 3; a++) {
        node->lo[a][k] = box.lo[a];
        node->hi[a][k] = box.hi[a];
    }
}

static un_vec3 rounded(un_vec3 a)
{
    return un_v3((float)a.x, (float)a.y, (float)a.z);
}

/* Integrals over the triangles of one child, and the coin around them, in the tree's units. */
static void set_moments(const mesh_tree *tree, tree_moments *m, int k, int32_t first, int32_t count)
{
    double area = 0;
    un_vec3 weighted = {0, 0, 0}, sum = {0, 0, 0}, middle = {0, 0, 0};
    for (int32_t t = first; t < first + count; t++) {
        const un_vec3 *v = tree->triangles[t].v;
        un_vec3 an = un_scale(un_cross(un_sub(v[1], v[0]), un_sub(v[2], v[0])),
                              0.5 * tree->per_unit * tree->per_unit);
        un_vec3 c = to_tree(tree, un_scale(un_add(v[0], un_add(v[1], v[2])), 1.0 / 3));
        double a = un_length(an);
        area += a;
        weighted = un_mad(weighted, c, a);
        middle = un_mad(middle, c, 1.0 / count);
        sum = un_add(sum, an);
    }
    /* Rounded first, since queries see the rounded values. */
    un_vec3 center = rounded(area > 0 ? un_scale(weighted, 1 / area) : middle);
    un_vec3 normal = rounded(un_normalize(sum));
    double radius2 = 0, thickness = 0, s[6] = {0};
    for (int32_t t = first; t < first + count; t++) {
        un_vec3 v[3];
        for (int i = 0; i < 3; i++) {
            v[i] = un_sub(to_tree(tree, tree->triangles[t].v[i]), center);
            double far2 = un_dot(v[i], v[i]), height = fabs(un_dot(v[i], normal));
            radius2 = far2 > radius2 ? far2 : radius2;
            thickness = height > thickness ? height : thickness;
        }
        un_vec3 an = un_scale(un_cross(un_sub(v[1], v[0]), un_sub(v[2], v[0])), 0.5);
        un_vec3 d = un_scale(un_add(v[0], un_add(v[1], v[2])), 1.0 / 3);
        s[0] += d.x * an.x;
        s[1] += d.y * an.y;
        s[2] += d.z * an.z;
        s[3] += 0.5 * (d.x * an.y + d.y * an.x);
        s[4] += 0.5 * (d.y * an.z + d.z * an.y);
        s[5] += 0.5 * (d.z * an.x + d.x * an.z);
    }
    const double c[3] = {center.x, center.y, center.z}, n[3] = {normal.x, normal.y, normal.z};
    for (int a = 0; a < 3; a++) {
        m->center[a][k] = (float)c[a];
        m->normal[a][k] = (float)n[a];
    }
    m->strength[k] = (float)(un_length(sum) / (4 * UN_PI));
    for (int a = 0; a < 6; a++) m->s[a][k] = (float)(s[a] / (4 * UN_PI));
    m->radius[k] = round_up(sqrt(radius2));
    m->thickness[k] = round_up(thickness);
}

static void finish_nodes(void *arg, int64_t begin, int64_t end)
{
    builder *b = arg;
    for (int64_t n = begin; n < end; n++) {
        int32_t base;
        const range_node *from = find_node(b, (int32_t)n, &base);
        tree_node *node = &b->tree->nodes[n];
        tree_moments *m = &b->tree->moments[n];
        memset(m, 0, sizeof *m);
        for (int k = 0; k < TREE_WIDTH; k++) {
            int32_t first = from->first[k], count = from->count[k], child = from->child[k];
            set_box(node, k, b->prims + first, count);
            m->radius[k] = -1;
            node->child[k] = node->leaf_count[k] = 0;
            if (count == 0) continue;
            set_moments(b->tree, m, k, first, count);
            if (child < 0) {
                node->child[k] = first;
                node->leaf_count[k] = count;
            } else if (child >= TASK_MARK) {
                node->child[k] = b->tasks[child - TASK_MARK].node_first;
            } else {
                node->child[k] = base + child;
            }
        }
    }
}

static un_status build_nodes(builder *b)
{
    mesh_tree *tree = b->tree;
    int32_t count = tree->triangle_count, root;
    b->task_size = count / TASKS > TASK_LEAST ? count / TASKS : TASK_LEAST;
    /* The nodes of one depth do not overlap: no more than TASKS of them exceed a task. */
    int32_t top_room = node_room(count);
    if (top_room > TASKS * TREE_DEPTH_MAX) top_room = TASKS * TREE_DEPTH_MAX;
    UN_ALLOC(b->ctx, b->top, top_room);
    UN_TRY(build_top(b, 0, count, 0, &root));
    int32_t room = 0;
    for (int32_t i = 0; i < b->task_count; i++) {
        b->tasks[i].room = room;
        room += node_room(b->tasks[i].count);
    }
    UN_ALLOC(b->ctx, b->below, room + 1);
    un_parallel_for(b->ctx, b->task_count, 1, run_tasks, b);
    tree->node_count = b->top_count;
    for (int32_t i = 0; i < b->task_count; i++) {
        b->tasks[i].node_first = tree->node_count;
        tree->node_count += b->tasks[i].node_count;
    }
    UN_ALLOC(b->ctx, tree->nodes, tree->node_count);
    UN_ALLOC(b->ctx, tree->moments, tree->node_count);
    UN_ALLOC(b->ctx, tree->triangles, count);
    un_parallel_for(b->ctx, count, 4096, copy_triangles, b);
    un_parallel_for(b->ctx, tree->node_count, 16, finish_nodes, b);
    return UN_OK;
}

static void place(mesh_tree *tree, const un_box3 *bounds)
{
    un_vec3 half = un_scale(un_sub(bounds->max, bounds->min), 0.5);
    tree->bounds = *bounds;
    tree->center = un_add(bounds->min, half);
    tree->unit = fmax(half.x, fmax(half.y, half.z));
    if (!(tree->unit > 1e-100)) tree->unit = 1e-100; /* all in one point */
    tree->per_unit = 1 / tree->unit;
}

un_status mesh_tree_build(un_context *ctx, const un_trimesh *mesh, const un_trimesh_report *report,
                          mesh_tree **out)
{
    UN_ASSERT(mesh->triangle_count > 0);
    mesh_tree *tree = un_alloc_zero(ctx, 1, sizeof *tree);
    if (!tree) return UN_ERROR_MEMORY;
    place(tree, &report->bounds);
    tree->triangle_count = mesh->triangle_count;
    tree->closed = report->open_edges == 0 && report->nonmanifold_edges == 0;
    builder b = {.ctx = ctx, .mesh = mesh, .turned = report->volume < 0, .tree = tree};
    b.prims = un_alloc(ctx, (size_t)mesh->triangle_count, sizeof *b.prims);
    un_status status = b.prims ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK) {
        un_parallel_for(ctx, mesh->triangle_count, 4096, make_prims, &b);
        status = build_nodes(&b);
    }
    un_free(ctx, b.prims);
    un_free(ctx, b.top);
    un_free(ctx, b.below);
    un_free(ctx, b.tasks);
    if (status == UN_OK)
        *out = tree;
    else
        mesh_tree_free(ctx, tree);
    return status;
}

void mesh_tree_free(un_context *ctx, mesh_tree *tree)
{
    if (!tree) return;
    un_free(ctx, tree->nodes);
    un_free(ctx, tree->moments);
    un_free(ctx, tree->triangles);
    un_free(ctx, tree);
}
