/* Volume, connected pieces and edge counts of a triangle mesh. */
#include "surface/contour.h"

/* V = 1/6 sum of x0 . (x1 x x2) (divergence theorem), about the first vertex, so that a small mesh
 * far from the origin loses nothing to cancellation. Summed in blocks, which keeps round-off near
 * that of one block. */
double un_surface_volume(const un_trimesh *mesh)
{
    enum { BLOCK = 1024 };
    double volume = 0;
    if (mesh->vertex_count == 0) return 0;
    un_vec3 anchor = mesh->position[0];
    for (int64_t begin = 0; begin < mesh->triangle_count; begin += BLOCK) {
        double part = 0;
        for (int64_t t = begin; t < un_min64(begin + BLOCK, mesh->triangle_count); t++) {
            const int32_t *v = mesh->triangle[t];
            un_vec3 a = un_sub(mesh->position[v[0]], anchor);
            un_vec3 b = un_sub(mesh->position[v[1]], anchor);
            un_vec3 c = un_sub(mesh->position[v[2]], anchor);
            part += un_dot(a, un_cross(b, c));
        }
        volume += part;
    }
    return volume / 6;
}

/* The least vertex of the piece found so far; shortens the path as it goes. */
static int32_t root(int32_t *parent, int32_t v)
{
    while (parent[v] != v) {
        parent[v] = parent[parent[v]];
        v = parent[v];
    }
    return v;
}

static un_status check_ids(un_context *ctx, const un_trimesh *mesh)
{
    for (int64_t t = 0; t < mesh->triangle_count; t++)
        for (int32_t c = 0; c < 3; c++)
            if (mesh->triangle[t][c] < 0 || mesh->triangle[t][c] >= mesh->vertex_count)
                return un_fail(ctx, UN_ERROR_ARGUMENT,
                               "triangle %lld names vertex %d, but the mesh has %d", (long long)t,
                               mesh->triangle[t][c], mesh->vertex_count);
    return UN_OK;
}

un_status un_surface_components(un_context *ctx, const un_trimesh *mesh, int32_t *component,
                                int32_t *component_count)
{
    UN_TRY(check_ids(ctx, mesh));
    for (int32_t v = 0; v < mesh->vertex_count; v++) component[v] = v;
    for (int64_t t = 0; t < mesh->triangle_count; t++) {
        int32_t a = root(component, mesh->triangle[t][0]);
        for (int32_t c = 1; c < 3; c++) {
            int32_t b = root(component, mesh->triangle[t][c]);
            component[a > b ? a : b] = a < b ? a : b;
            a = a < b ? a : b;
        }
    }
    /* A parent comes before its children, so one ascending sweep numbers the roots and copies every
     * other vertex's number from its parent. */
    int32_t count = 0;
    for (int32_t v = 0; v < mesh->vertex_count; v++)
        component[v] = component[v] == v ? count++ : component[component[v]];
    *component_count = count;
    return UN_OK;
}

un_status un_surface_examine(un_context *ctx, const un_trimesh *mesh, un_surface_topology *report)
{
    *report = (un_surface_topology){0};
    un_status status = UN_OK;
    int32_t *component = NULL, component_count;
    int64_t *first = NULL;
    int32_t(*edge)[2] = NULL; /* by lesser vertex: greater vertex, direction */
    size_t vertices = (size_t)mesh->vertex_count, corners = 3 * (size_t)mesh->triangle_count;
    UN_ALLOC_DONE(ctx, component, vertices);
    UN_TRY_DONE(un_surface_components(ctx, mesh, component, &component_count));
    first = un_alloc_zero(ctx, vertices + 2, sizeof *first);
    if (!first) {
        status = UN_ERROR_MEMORY;
        goto done;
    }
    UN_ALLOC_DONE(ctx, edge, corners);

    /* Counting sort of the half edges by their lesser vertex. */
    for (int32_t fill = 0; fill < 2; fill++) {
        for (size_t e = 0; e < corners; e++) {
            int32_t a = mesh->triangle[e / 3][e % 3], b = mesh->triangle[e / 3][(e + 1) % 3];
            int32_t lesser = a < b ? a : b;
            if (fill) {
                int32_t *place = edge[first[lesser + 1]++];
                place[0] = a < b ? b : a;
                place[1] = a < b ? 1 : -1;
            } else {
                first[lesser + 2]++;
            }
        }
        if (!fill)
            for (size_t v = 2; v < vertices + 2; v++) first[v] += first[v - 1];
    }
    int64_t edge_count = 0, used_count = 0;
    for (size_t v = 0; v < vertices; v++)
        for (int64_t e = first[v]; e < first[v + 1]; e++) {
            int32_t other = edge[e][0], count = 0, ways = 0;
            if (other < 0) continue; /* counted with an earlier half edge */
            for (int64_t f = e; f < first[v + 1]; f++)
                if (edge[f][0] == other) {
                    count++;
                    ways += edge[f][1];
                    edge[f][0] = -1;
                }
            edge_count++;
            report->open_edges += count == 1;
            report->nonmanifold_edges += count > 2;
            report->misoriented_edges += count == 2 && ways != 0;
        }
    /* Reuse `first` to mark which vertices and which pieces have a triangle. */
    memset(first, 0, (vertices + 2) * sizeof *first);
    for (size_t e = 0; e < corners; e++) first[mesh->triangle[e / 3][e % 3]] |= 1;
    for (size_t v = 0; v < vertices; v++)
        if (first[v] & 1) {
            used_count++;
            first[component[v]] |= 2;
        }
    for (size_t v = 0; v < vertices; v++) report->component_count += (first[v] & 2) != 0;
    report->euler = (int32_t)(used_count - edge_count + mesh->triangle_count);
done:
    un_free(ctx, component);
    un_free(ctx, first);
    un_free(ctx, edge);
    return status;
}
