/* Examines a mesh: is it closed, manifold, in one piece, right side out?
 *
 * Vertices at the same place count as one. Every edge is stored with its lower vertex; the few
 * edges of a vertex are then sorted by their other end, so that equal edges are adjacent. */
#include "geometry/geometry.h"

#include <stdlib.h>

/* ---- welding ---- */

typedef struct weld_key {
    uint64_t x, y, z;
} weld_key;

static weld_key key_of(un_vec3 p)
{
    weld_key k;
    p = un_add(p, un_v3(0, 0, 0)); /* -0 is 0 */
    memcpy(&k.x, &p.x, sizeof k.x);
    memcpy(&k.y, &p.y, sizeof k.y);
    memcpy(&k.z, &p.z, sizeof k.z);
    return k;
}

/* first[n] becomes the lowest vertex at the place of n. */
static un_status weld(un_context *ctx, const un_trimesh *mesh, int32_t *first)
{
    size_t size = 16;
    while (size < 2 * (size_t)mesh->vertex_count) size *= 2;
    int32_t *table;
    UN_ALLOC(ctx, table, size);
    for (size_t i = 0; i < size; i++) table[i] = -1;
    for (int32_t n = 0; n < mesh->vertex_count; n++) {
        weld_key k = key_of(mesh->position[n]);
        size_t slot = un_hash64(k.x ^ un_hash64(k.y ^ un_hash64(k.z))) & (size - 1);
        for (; table[slot] >= 0; slot = (slot + 1) & (size - 1)) {
            weld_key other = key_of(mesh->position[table[slot]]);
            if (memcmp(&k, &other, sizeof k) == 0) break;
        }
        if (table[slot] < 0) table[slot] = n;
        first[n] = table[slot];
    }
    un_free(ctx, table);
    return UN_OK;
}

/* ---- edges ---- */

/* The far end of an edge and which way its triangle runs along it. */
typedef struct edge_end {
    int32_t other;
    int32_t forward; /* from the lower vertex */
} edge_end;

typedef struct edge_task {
    const int64_t *start; /* per vertex */
    edge_end *ends;
} edge_task;

static bool welded(const un_trimesh *mesh, const int32_t *first, int32_t t, int32_t v[3])
{
    for (int i = 0; i < 3; i++) v[i] = first[mesh->triangle[t][i]];
    return v[0] != v[1] && v[1] != v[2] && v[2] != v[0];
}

static void file_edges(const un_trimesh *mesh, const int32_t *first, int64_t *start, edge_end *ends)
{
    int32_t v[3];
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        if (!welded(mesh, first, t, v)) continue;
        for (int i = 0; i < 3; i++) {
            int32_t a = v[i], b = v[(i + 1) % 3], low = a < b ? a : b, high = a < b ? b : a;
            if (ends)
                ends[start[low]++] = (edge_end){high, a == low};
            else
                start[low + 1]++;
        }
    }
}

static int compare_ends(const void *a, const void *b)
{
    int32_t p = ((const edge_end *)a)->other, q = ((const edge_end *)b)->other;
    return (p > q) - (p < q);
}

/* Most vertices have three such edges: insertion sort, except for the hub of a huge fan. */
static void sort_ends(edge_end *ends, int64_t count)
{
    if (count > 64) {
        qsort(ends, (size_t)count, sizeof *ends, compare_ends);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        edge_end held = ends[i];
        int64_t k = i;
        for (; k > 0 && ends[k - 1].other > held.other; k--) ends[k] = ends[k - 1];
        ends[k] = held;
    }
}

static void count_edges(void *arg, int64_t begin, int64_t end, double *sums)
{
    const edge_task *task = arg;
    for (int64_t n = begin; n < end; n++) {
        edge_end *ends = task->ends + task->start[n];
        int64_t count = task->start[n + 1] - task->start[n];
        sort_ends(ends, count);
        for (int64_t i = 0; i < count;) {
            int64_t uses = 0, forward = 0;
            int32_t other = ends[i].other;
            for (; i < count && ends[i].other == other; i++, uses++) forward += ends[i].forward;
            if (uses == 1)
                sums[0] += 1;
            else if (uses != 2 || forward != 1)
                sums[1] += 1;
        }
    }
}

static un_status examine_edges(un_context *ctx, const un_trimesh *mesh, const int32_t *first,
                               un_trimesh_report *report)
{
    int64_t *start = un_alloc_zero(ctx, (size_t)mesh->vertex_count + 2, sizeof *start);
    if (!start) return UN_ERROR_MEMORY;
    edge_end *ends = un_alloc(ctx, 3 * (size_t)mesh->triangle_count + 1, sizeof *ends);
    if (!ends) {
        un_free(ctx, start);
        return UN_ERROR_MEMORY;
    }
    /* Counts are stored one place up: filling in moves each start to the next vertex's, and so
     * leaves the starts in place. */
    file_edges(mesh, first, start + 1, NULL);
    for (int32_t n = 0; n <= mesh->vertex_count; n++) start[n + 1] += start[n];
    file_edges(mesh, first, start + 1, ends);
    edge_task task = {start, ends};
    double sums[2];
    un_parallel_sums(ctx, mesh->vertex_count, 2, count_edges, &task, sums);
    report->open_edges = (int32_t)fmin(sums[0], INT32_MAX);
    report->nonmanifold_edges = (int32_t)fmin(sums[1], INT32_MAX);
    un_free(ctx, ends);
    un_free(ctx, start);
    return UN_OK;
}

/* ---- pieces ---- */

static int32_t root_of(int32_t *parent, int32_t n)
{
    while (parent[n] != n) {
        parent[n] = parent[parent[n]];
        n = parent[n];
    }
    return n;
}

/* Every vertex met adds a piece, and every joint takes one away. */
static int32_t count_components(const un_trimesh *mesh, const int32_t *first, int32_t *parent)
{
    int32_t v[3], count = 0;
    for (int32_t n = 0; n < mesh->vertex_count; n++) parent[n] = -1;
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        welded(mesh, first, t, v);
        for (int i = 0; i < 3; i++) {
            if (parent[v[i]] < 0) {
                parent[v[i]] = v[i];
                count++;
            }
            int32_t a = root_of(parent, v[0]), b = root_of(parent, v[i]);
            if (a != b) count--;
            if (a < b)
                parent[b] = a;
            else
                parent[a] = b;
        }
    }
    return count;
}

/* ---- volume ---- */

typedef struct volume_task {
    const un_trimesh *mesh;
    un_vec3 center;
} volume_task;

/* Sums tetrahedra to the middle of the bounds, which closes an open mesh as well as any point. */
static double sum_volume(void *arg, int64_t begin, int64_t end)
{
    const volume_task *task = arg;
    const un_vec3 *x = task->mesh->position;
    double sum = 0;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *v = task->mesh->triangle[t];
        un_vec3 a = un_sub(x[v[0]], task->center), b = un_sub(x[v[1]], task->center);
        un_vec3 c = un_sub(x[v[2]], task->center);
        sum += un_dot(a, un_cross(b, c));
    }
    return sum / 6;
}

/* Of the vertices that triangles use. */
static un_box3 used_bounds(const un_trimesh *mesh)
{
    un_box3 b = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (int32_t t = 0; t < mesh->triangle_count; t++)
        for (int i = 0; i < 3; i++) {
            un_vec3 p = mesh->position[mesh->triangle[t][i]];
            b.min.x = p.x < b.min.x ? p.x : b.min.x;
            b.min.y = p.y < b.min.y ? p.y : b.min.y;
            b.min.z = p.z < b.min.z ? p.z : b.min.z;
            b.max.x = p.x > b.max.x ? p.x : b.max.x;
            b.max.y = p.y > b.max.y ? p.y : b.max.y;
            b.max.z = p.z > b.max.z ? p.z : b.max.z;
        }
    if (mesh->triangle_count == 0) b = (un_box3){{0, 0, 0}, {0, 0, 0}};
    return b;
}

un_status un_trimesh_examine(un_context *ctx, const un_trimesh *mesh, un_trimesh_report *report)
{
    *report = (un_trimesh_report){0};
    int32_t *first = un_alloc(ctx, (size_t)mesh->vertex_count + 1, sizeof *first);
    int32_t *parent = un_alloc(ctx, (size_t)mesh->vertex_count + 1, sizeof *parent);
    un_status status = first && parent ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK) status = weld(ctx, mesh, first);
    if (status == UN_OK) status = examine_edges(ctx, mesh, first, report);
    if (status == UN_OK) {
        report->component_count = count_components(mesh, first, parent);
        report->bounds = used_bounds(mesh);
        volume_task task = {mesh, un_scale(un_add(report->bounds.min, report->bounds.max), 0.5)};
        report->volume = un_parallel_sum(ctx, mesh->triangle_count, sum_volume, &task);
    }
    un_free(ctx, parent);
    un_free(ctx, first);
    return status;
}
