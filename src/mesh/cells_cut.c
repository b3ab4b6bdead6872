/* Cells cut by an axis-aligned plane.
 *
 * An edge is cut if one end lies above the plane and the other does not. The polygon of a convex
 * cell consists of the points of its cut edges, in order of their direction from the middle. A
 * point is identified by its edge, or by its node if the plane passes through the node. So
 * neighbours share points exactly, whatever the round-off of their places, and polygons that shrink
 * to an edge or a point are recognised. */
#include "mesh/mesh.h"

#define EDGES_MAX 12

typedef struct edges {
    int8_t count;
    int8_t end[EDGES_MAX][2];
} edges;

static const edges *edges_of(int32_t type)
{
    static const edges tetra = {6, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}};
    static const edges voxel = {12,
                                {{0, 1},
                                 {2, 3},
                                 {4, 5},
                                 {6, 7},
                                 {0, 2},
                                 {1, 3}, /* along x, y */
                                 {4, 6},
                                 {5, 7},
                                 {0, 4},
                                 {1, 5},
                                 {2, 6},
                                 {3, 7}}};
    static const edges hexahedron = {12,
                                     {{0, 1},
                                      {1, 2},
                                      {2, 3},
                                      {3, 0},
                                      {4, 5},
                                      {5, 6},
                                      {6, 7},
                                      {7, 4},
                                      {0, 4},
                                      {1, 5},
                                      {2, 6},
                                      {3, 7}}};
    switch (type) {
    case UN_CELL_TETRA:
        return &tetra;
    case UN_CELL_VOXEL:
        return &voxel;
    case UN_CELL_HEXAHEDRON:
        return &hexahedron;
    default:
        return NULL;
    }
}

typedef struct cut_args {
    const un_cells *cells;
    un_slice *out;
    int32_t axis;
    double at;
    int32_t
        *corners; /* by cell: how many its polygon has, 0: none; then, summed, the first of them */
    int32_t *polygon; /* by cell: its polygon, 1 or 0 at first */
    uint64_t *key;    /* by corner of a polygon */
    int32_t *order;   /* of the keys */
    int32_t *point;   /* by place in that order: 1 if the point is new; then its number */
} cut_args;

static inline double along(un_vec3 x, int32_t axis)
{
    return axis == 0 ? x.x : axis == 1 ? x.y : x.z;
}

static inline void set_along(un_vec3 *x, int32_t axis, double value)
{
    *(axis == 0 ? &x->x : axis == 1 ? &x->y : &x->z) = value;
}

static inline uint64_t key_of(int32_t a, int32_t b)
{
    return a < b ? (uint64_t)a << 32 | (uint32_t)b : (uint64_t)b << 32 | (uint32_t)a;
}

static un_vec3 place_of(const cut_args *a, uint64_t key)
{
    un_vec3 p = a->cells->point[key >> 32], q = a->cells->point[key & UINT32_MAX];
    double from = along(p, a->axis), to = along(q, a->axis);
    un_vec3 x = from != to ? un_mad(p, un_sub(q, p), (a->at - from) / (to - from)) : p;
    set_along(&x, a->axis, a->at);
    return x;
}

/* Grows with the angle of the direction (u, v), once around. */
static double turn(double u, double v)
{
    double sum = fabs(u) + fabs(v), slope = sum > 0 ? v / sum : 0;
    return u < 0 ? 2 - slope : slope < 0 ? 4 + slope : slope;
}

static void order_corners(const cut_args *a, uint64_t *key, int32_t count)
{
    int32_t b = (a->axis + 1) % 3, c = (a->axis + 2) % 3;
    un_vec3 place[EDGES_MAX], middle = {0, 0, 0};
    double angle[EDGES_MAX];
    for (int32_t i = 0; i < count; i++) {
        place[i] = place_of(a, key[i]);
        middle = un_mad(middle, place[i], 1.0 / count);
    }
    for (int32_t i = 0; i < count; i++) {
        un_vec3 way = un_sub(place[i], middle);
        double own = turn(along(way, b), along(way, c));
        uint64_t moved = key[i];
        int32_t k = i;
        for (; k > 0 && angle[k - 1] > own; k--) {
            angle[k] = angle[k - 1];
            key[k] = key[k - 1];
        }
        angle[k] = own;
        key[k] = moved;
    }
}

/* Finds the corners of cell c's polygon, in order if wanted; returns how many. */
static int32_t cut_cell(const cut_args *a, int64_t c, uint64_t key[EDGES_MAX], bool ordered)
{
    const un_cells *cells = a->cells;
    const int32_t *corner = cells->corner + cells->first[c];
    int32_t corners = cells->first[c + 1] - cells->first[c], above = 0, in = 0, count = 0;
    double x[UN_CELL_CORNERS_MAX];
    for (int32_t i = 0; i < corners; i++) {
        x[i] = along(cells->point[corner[i]], a->axis);
        above += x[i] > a->at;
        in += x[i] == a->at;
    }
    const edges *e = edges_of(cells->type[c]);
    if (!e) {
        if (in < corners) return 0;
        for (int32_t i = 0; i < corners; i++) key[i] = key_of(corner[i], corner[i]);
        if (ordered) order_corners(a, key, corners);
        return corners;
    }
    if (above == 0 || above == corners) return 0;
    for (int32_t i = 0; i < e->count; i++) {
        int32_t p = e->end[i][0], q = e->end[i][1], k = 0;
        if ((x[p] > a->at) == (x[q] > a->at)) continue;
        int32_t low = x[p] > a->at ? q : p;
        key[count] =
            x[low] == a->at ? key_of(corner[low], corner[low]) : key_of(corner[p], corner[q]);
        while (key[k] != key[count]) k++;
        if (k == count) count++; /* a new one */
    }
    if (count < 3) return 0;
    if (ordered) order_corners(a, key, count);
    return count;
}

static void count_corners(void *arg, int64_t begin, int64_t end)
{
    cut_args *a = arg;
    uint64_t key[EDGES_MAX];
    for (int64_t c = begin; c < end; c++) {
        a->corners[c] = cut_cell(a, c, key, false);
        a->polygon[c] = a->corners[c] > 0;
    }
}

static void fill_polygons(void *arg, int64_t begin, int64_t end)
{
    cut_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        if (a->polygon[c + 1] == a->polygon[c]) continue;
        uint64_t key[EDGES_MAX];
        int32_t count = cut_cell(a, c, key, true), i = a->polygon[c];
        memcpy(a->key + a->corners[c], key, (size_t)count * sizeof *key);
        a->out->cell[i] = (int32_t)c;
        a->out->first[i + 1] = a->corners[c] + count;
    }
}

static void find_points(void *arg, int64_t begin, int64_t end)
{
    cut_args *a = arg;
    for (int64_t k = begin; k < end; k++)
        a->point[k] = k == 0 || a->key[a->order[k]] != a->key[a->order[k - 1]];
}

static void place_points(void *arg, int64_t begin, int64_t end)
{
    cut_args *a = arg;
    for (int64_t k = begin; k < end; k++) {
        bool fresh = a->point[k + 1] > a->point[k];
        int32_t n = a->point[k] - !fresh;
        if (fresh) a->out->point[n] = place_of(a, a->key[a->order[k]]);
        a->out->corner[a->order[k]] = n;
    }
}

static un_status share_points(un_context *ctx, un_arena *arena, cut_args *a, int64_t corners)
{
    a->order = un_arena_alloc(arena, (size_t)corners + 1, sizeof *a->order);
    a->point = un_arena_alloc(arena, (size_t)corners + 1, sizeof *a->point);
    if (!a->order || !a->point) return UN_ERROR_MEMORY;
    UN_TRY(un_parallel_sort64(ctx, arena, a->order, a->key, corners, 64));
    un_parallel_for(ctx, corners, 8192, find_points, a);
    a->point[corners] = 0;
    int64_t count = un_parallel_scan(ctx, a->point, corners + 1);
    UN_ALLOC(ctx, a->out->point, count + 1);
    a->out->point_count = (int32_t)count;
    un_parallel_for(ctx, corners, 8192, place_points, a);
    return UN_OK;
}

static un_status cut_cells(un_context *ctx, un_arena *arena, cut_args *a)
{
    int64_t cells = a->cells->count;
    a->corners = un_arena_alloc(arena, (size_t)cells + 1, sizeof *a->corners);
    a->polygon = un_arena_alloc(arena, (size_t)cells + 1, sizeof *a->polygon);
    if (!a->corners || !a->polygon) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, cells, 8192, count_corners, a);
    a->corners[cells] = a->polygon[cells] = 0;
    int64_t corners = un_parallel_scan(ctx, a->corners, cells + 1);
    int64_t count = un_parallel_scan(ctx, a->polygon, cells + 1);
    if (corners > INT32_MAX)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "a cut through %lld cells is too large",
                       (long long)count);
    a->key = un_arena_alloc(arena, (size_t)corners + 1, sizeof *a->key);
    if (!a->key) return UN_ERROR_MEMORY;
    UN_ALLOC(ctx, a->out->first, count + 1);
    UN_ALLOC(ctx, a->out->corner, corners + 1);
    UN_ALLOC(ctx, a->out->cell, count + 1);
    a->out->count = (int32_t)count;
    a->out->first[0] = 0;
    un_parallel_for(ctx, cells, 8192, fill_polygons, a);
    return share_points(ctx, arena, a, corners);
}

un_status un_cells_cut(un_context *ctx, un_slice *slice, const un_cells *cells, int32_t axis,
                       double at)
{
    cut_args a = {.cells = cells, .out = slice, .axis = axis, .at = at};
    un_arena arena;
    *slice = (un_slice){0};
    un_arena_init(&arena, ctx);
    un_status status = cut_cells(ctx, &arena, &a);
    un_arena_free(&arena);
    if (status != UN_OK) un_slice_free(ctx, slice);
    return status;
}

void un_slice_free(un_context *ctx, un_slice *slice)
{
    un_free(ctx, slice->point);
    un_free(ctx, slice->first);
    un_free(ctx, slice->corner);
    un_free(ctx, slice->cell);
    *slice = (un_slice){0};
}
