/* Marching tetrahedra, closed in the brick's boundary.
 *
 * The free surface is the cut (cut.c). Beyond the brick is air: each liquid node of the boundary
 * carries a vertex at its own position, and each boundary face is filled with its liquid part.
 * Sides of these caps are either the segment that the face shares with the cut, or lie on an edge
 * of the boundary, which always has two boundary faces: the mesh is closed and manifold, caps are
 * flat, their rims sharp. */
#include "ranks/ranks.h"
#include "surface/contour.h"
#include "surface/cut.h"

#define NODE_GRAIN 8192

typedef struct marching {
    un_cut *cut;
    const un_tets *mesh;
    uint8_t *side;   /* by node: bit 2 axis + s, in the low or high side of the brick */
    int32_t *number; /* by node: its vertex, for liquid nodes of the boundary */
    uint8_t *corner; /* by node: 1 if it has one */
    un_part tets;    /* this rank's */
    int64_t grain;   /* tets */
    int64_t first[UN_BLOCKS_MAX + 1]; /* by block of tets: cap triangles */
    int32_t (*cap)[3];                /* those */
    int32_t *node, corner_count;      /* of the vertices at nodes; over ranks, own ones */
    int32_t corner_first;             /* vertex */
    un_vec3 *position;                /* of these vertices */
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
    for (int64_t t = m->tets.begin + begin; t < m->tets.begin + end; t++)
        if (may_have_cap(m, (int32_t)t))
            for (int32_t i = 0; i < 4; i++) count += cap_face(m, (int32_t)t, i, NULL);
    m->first[begin / m->grain + 1] = count;
}

static void write_caps(void *arg, int64_t begin, int64_t end)
{
    marching *m = arg;
    int32_t(*triangle)[3] = m->cap + m->first[begin / m->grain];
    for (int64_t t = m->tets.begin + begin; t < m->tets.begin + end; t++)
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
        m->number[m->node[i]] = m->corner_first + (int32_t)i;
        m->position[i] = m->mesh->x[m->node[i]];
    }
}

/* Finds the nodes in the boundary that have a vertex. */
static un_status find_corners(un_context *ctx, un_arena *arena, marching *m)
{
    const un_tets *mesh = m->mesh;
    un_part own = un_tets_own_nodes(mesh);
    size_t nodes = (size_t)mesh->node_count + 1;
    m->side = un_arena_alloc(arena, nodes, 1);
    m->corner = un_arena_alloc(arena, nodes, 1);
    m->number = un_arena_alloc(arena, nodes, sizeof *m->number);
    if (!m->side || !m->corner || !m->number) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, find_sides, m);
    UN_TRY(un_cut_list(ctx, arena, m->corner + own.begin, own.end - own.begin, &m->node,
                       &m->corner_count));
    for (int32_t i = 0; i < m->corner_count; i++) m->node[i] += (int32_t)own.begin;
    return UN_OK;
}

static int64_t count_all_caps(un_context *ctx, marching *m)
{
    int64_t count = m->tets.end - m->tets.begin;
    m->grain = un_block_grain(count);
    int64_t blocks = (count + m->grain - 1) / m->grain;
    un_parallel_for(ctx, count, m->grain, count_caps, m);
    for (int64_t b = 0; b < blocks; b++) m->first[b + 1] += m->first[b];
    return m->first[blocks];
}

static un_status need_surface(un_context *ctx, un_trimesh *surface, int64_t vertex_count,
                              int64_t triangle_count)
{
    if (vertex_count > INT32_MAX || triangle_count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_MEMORY,
                       "the surface has %.3g vertices and %.3g triangles, more than 2.1e9 can be "
                       "numbered; lower detail.surface",
                       (double)vertex_count, (double)triangle_count);
    UN_ALLOC(ctx, surface->position, vertex_count);
    UN_ALLOC(ctx, surface->triangle, triangle_count);
    surface->vertex_count = (int32_t)vertex_count;
    surface->triangle_count = (int32_t)triangle_count;
    return UN_OK;
}

static un_status contour(un_context *ctx, un_arena *arena, marching *m)
{
    un_cut *cut = m->cut;
    un_trimesh *surface = m->surface;
    UN_TRY(find_corners(ctx, arena, m));
    int64_t caps = count_all_caps(ctx, m);
    un_cut_count_triangles(ctx, cut);
    UN_TRY(need_surface(ctx, surface, (int64_t)cut->vertex_count + m->corner_count,
                        cut->triangle_count + caps));
    memcpy(surface->position, cut->x, (size_t)cut->vertex_count * sizeof *cut->x);
    cut->triangle = surface->triangle;
    un_cut_write_triangles(ctx, cut);
    m->corner_first = cut->vertex_count;
    m->position = surface->position + cut->vertex_count;
    m->cap = surface->triangle + cut->triangle_count;
    un_parallel_for(ctx, m->corner_count, NODE_GRAIN, number_corners, m);
    un_parallel_for(ctx, m->tets.end - m->tets.begin, m->grain, write_caps, m);
    return UN_OK;
}

/* ---- over ranks: each lists what it has, and rank 0 puts the lists one after the other ---- */

static un_status list_corners(un_context *ctx, un_arena *arena, marching *m)
{
    UN_TRY(find_corners(ctx, arena, m));
    m->position = un_arena_alloc(arena, (size_t)m->corner_count + 1, sizeof *m->position);
    return m->position ? UN_OK : UN_ERROR_MEMORY;
}

static un_status list_triangles(un_context *ctx, un_arena *arena, marching *m, int64_t *caps)
{
    UN_TRY(un_cut_triangulate(ctx, arena, m->cut));
    *caps = count_all_caps(ctx, m);
    m->cap = un_arena_alloc(arena, (size_t)*caps + 1, sizeof *m->cap);
    return m->cap ? UN_OK : UN_ERROR_MEMORY;
}

static un_status contour_ranks(un_context *ctx, un_arena *arena, marching *m)
{
    un_cut *cut = m->cut;
    un_trimesh *all = m->surface;
    int64_t cap_count = 0;
    UN_TRY(un_cut_unite(ctx, arena, cut));
    UN_TRY(un_ranks_agree(ctx, list_corners(ctx, arena, m)));
    un_range corners = un_ranks_range(ctx, m->corner_count);
    m->corner_first = cut->vertex_count + (int32_t)corners.begin;
    un_parallel_for(ctx, m->corner_count, NODE_GRAIN, number_corners, m);
    un_field field = {"number", m->number, NULL, sizeof *m->number};
    UN_TRY(un_tets_share(m->mesh, &field, 1));
    UN_TRY(un_ranks_agree(ctx, list_triangles(ctx, arena, m, &cap_count)));
    un_parallel_for(ctx, m->tets.end - m->tets.begin, m->grain, write_caps, m);
    un_range triangles = un_ranks_range(ctx, cut->triangle_count);
    un_range caps = un_ranks_range(ctx, cap_count);
    un_status status = UN_OK;
    if (un_rank(ctx) == 0)
        status =
            need_surface(ctx, all, cut->vertex_count + corners.total, triangles.total + caps.total);
    UN_TRY(un_ranks_agree(ctx, status));
    if (un_rank(ctx) == 0)
        memcpy(all->position, cut->x, (size_t)cut->vertex_count * sizeof *cut->x);
    un_ranks_own_window(ctx, corners, m->position, sizeof *m->position, 0, corners.total,
                        all->position ? all->position + cut->vertex_count : NULL);
    un_ranks_own_window(ctx, triangles, cut->triangle, sizeof *cut->triangle, 0, triangles.total,
                        all->triangle);
    un_ranks_own_window(ctx, caps, m->cap, sizeof *m->cap, 0, caps.total,
                        all->triangle ? all->triangle + triangles.total : NULL);
    return UN_OK;
}

un_status un_cut_contour(un_context *ctx, un_arena *arena, un_cut *cut, un_trimesh *surface)
{
    *surface = (un_trimesh){0};
    marching m = {
        .cut = cut, .mesh = cut->mesh, .tets = un_tets_own(cut->mesh), .surface = surface};
    un_status status = m.mesh->share ? contour_ranks(ctx, arena, &m) : contour(ctx, arena, &m);
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
