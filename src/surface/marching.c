/* Marching tetrahedra, closed in the brick's boundary.
 *
 * The free surface is the cut (cut.c). Beyond the brick is air: each liquid node of the boundary
 * carries a vertex at its own position, and each boundary face is filled with its liquid part.
 * Sides of these caps are either the segment that the face shares with the cut, or lie on an edge
 * of the boundary, which always has two boundary faces: the mesh is closed and manifold, caps are
 * flat, their rims sharp. */
#include "surface/contour.h"
#include "surface/cut.h"

#define NODE_GRAIN 8192

typedef struct marching {
    un_cut *cut;
    const un_tets *mesh;
    uint8_t *side;   /* by node: bit 2 axis + s, in the low or high side of the brick */
    int32_t *number; /* by node: its vertex, for liquid nodes of the boundary */
    uint8_t *corner; /* by node: 1 if it has one */
    int64_t grain;   /* tets */
    int64_t first[UN_BLOCKS_MAX + 1]; /* by block of tets: cap triangles */
    const int32_t *node;              /* of the vertices at nodes */
    un_trimesh *surface;
} marching;

static void find_sides(void *arg, int64_t begin, int64_t end)
{
    marching *m = arg;
    for (int64_t n = begin; n < end; n++) {
        m->side[n] = un_cut_sides(m->mesh, (int32_t)n);
        m->corner[n] = m->side[n] && m->cut->liquid[n];
    }
}

/* The cap in the face opposite corner i, if that is a boundary face; returns the number of
 * triangles. */
static int32_t cap_face(const marching *m, int32_t t, int32_t i, int32_t triangle[2][3])
{
    int32_t order[4], p[3], count = 0, start = 0;
    un_tet_corner_first(i, order);
    for (int32_t c = 0; c < 3; c++) {
        p[c] = m->mesh->tet[t][order[c + 1]];
        count += m->cut->liquid[p[c]];
    }
    if (count == 0 || !(m->side[p[0]] & m->side[p[1]] & m->side[p[2]])) return 0;
    if (!triangle) return count == 2 ? 2 : 1;
    if (count == 3) {
        for (int32_t c = 0; c < 3; c++) triangle[0][c] = m->number[p[c]];
        return 1;
    }
    /* rotate so that the node of the other sign comes first */
    while (m->cut->liquid[p[start]] != (count == 1)) start++;
    int32_t a = p[start], b = p[(start + 1) % 3], c = p[(start + 2) % 3];
    int32_t ab = un_cut_vertex(m->cut, a, b), ac = un_cut_vertex(m->cut, a, c);
    if (count == 1) {
        triangle[0][0] = m->number[a], triangle[0][1] = ab, triangle[0][2] = ac;
        return 1;
    }
    triangle[0][0] = m->number[b], triangle[0][1] = m->number[c], triangle[0][2] = ac;
    triangle[1][0] = m->number[b], triangle[1][1] = ac, triangle[1][2] = ab;
    return 2;
}

/* At least three nodes in the boundary, one of them liquid. */
static bool may_have_cap(const marching *m, int32_t t)
{
    const int32_t *n = m->mesh->tet[t];
    int32_t sides = 0, liquid = 0;
    for (int32_t c = 0; c < 4; c++) {
        sides += m->side[n[c]] != 0;
        liquid |= m->corner[n[c]];
    }
    return liquid && sides >= 3;
}

static void count_caps(void *arg, int64_t begin, int64_t end)
{
    marching *m = arg;
    int64_t count = 0;
    for (int64_t t = begin; t < end; t++)
        if (may_have_cap(m, (int32_t)t))
            for (int32_t i = 0; i < 4; i++) count += cap_face(m, (int32_t)t, i, NULL);
    m->first[begin / m->grain + 1] = count;
}

static void write_caps(void *arg, int64_t begin, int64_t end)
{
    marching *m = arg;
    int32_t(*triangle)[3] =
        m->surface->triangle + m->cut->triangle_count + m->first[begin / m->grain];
    for (int64_t t = begin; t < end; t++)
        if (may_have_cap(m, (int32_t)t))
            for (int32_t i = 0; i < 4; i++) {
                int32_t cap[2][3], count = cap_face(m, (int32_t)t, i, cap);
                memcpy(triangle, cap, (size_t)count * sizeof *triangle);
                triangle += count;
            }
}

static void number_corners(void *arg, int64_t begin, int64_t end)
{
    marching *m = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t vertex = m->cut->vertex_count + (int32_t)i;
        m->number[m->node[i]] = vertex;
        m->surface->position[vertex] = m->mesh->x[m->node[i]];
    }
}

static un_status contour(un_context *ctx, un_arena *arena, marching *m)
{
    un_cut *cut = m->cut;
    const un_tets *mesh = m->mesh;
    un_trimesh *surface = m->surface;
    size_t nodes = (size_t)mesh->node_count + 1;
    m->side = un_arena_alloc(arena, nodes, 1);
    m->corner = un_arena_alloc(arena, nodes, 1);
    m->number = un_arena_alloc(arena, nodes, sizeof *m->number);
    if (!m->side || !m->corner || !m->number) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, find_sides, m);
    int32_t *node, corner_count;
    UN_TRY(un_cut_list(ctx, arena, m->corner, mesh->node_count, &node, &corner_count));
    m->node = node;

    m->grain = un_block_grain(mesh->tet_count);
    int64_t blocks = (mesh->tet_count + m->grain - 1) / m->grain;
    un_parallel_for(ctx, mesh->tet_count, m->grain, count_caps, m);
    for (int64_t b = 0; b < blocks; b++) m->first[b + 1] += m->first[b];
    un_cut_count_triangles(ctx, cut);
    int64_t vertex_count = (int64_t)cut->vertex_count + corner_count;
    int64_t triangle_count = cut->triangle_count + m->first[blocks];
    if (vertex_count > INT32_MAX || triangle_count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the surface has %.3g vertices and %.3g triangles, more than 2.1e9 can be "
                       "numbered; lower detail.surface",
                       (double)vertex_count, (double)triangle_count);
    UN_ALLOC(ctx, surface->position, vertex_count);
    UN_ALLOC(ctx, surface->triangle, triangle_count);
    surface->vertex_count = (int32_t)vertex_count;
    surface->triangle_count = (int32_t)triangle_count;
    memcpy(surface->position, cut->x, (size_t)cut->vertex_count * sizeof *cut->x);
    cut->triangle = surface->triangle;
    un_cut_write_triangles(ctx, cut);
    un_parallel_for(ctx, corner_count, NODE_GRAIN, number_corners, m);
    un_parallel_for(ctx, mesh->tet_count, m->grain, write_caps, m);
    return UN_OK;
}

un_status un_cut_contour(un_context *ctx, un_arena *arena, un_cut *cut, un_trimesh *surface)
{
    *surface = (un_trimesh){0};
    marching m = {.cut = cut, .mesh = cut->mesh, .surface = surface};
    un_status status = contour(ctx, arena, &m);
    if (status != UN_OK) un_trimesh_free(ctx, surface);
    return status;
}

un_status un_tets_contour(un_context *ctx, un_arena *arena, const float *phi, const un_tets *mesh,
                          un_trimesh *surface)
{
    un_cut cut;
    *surface = (un_trimesh){0};
    UN_TRY(un_cut_find(ctx, arena, &cut, phi, mesh, NULL));
    un_cut_interpolate(ctx, &cut, phi, UN_SURFACE_HAIR);
    return un_cut_contour(ctx, arena, &cut, surface);
}
