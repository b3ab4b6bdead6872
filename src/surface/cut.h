/* The zero surface of a level set on tets as triangles, shared by contouring and redistancing. */
#ifndef UN_SURFACE_CUT_H
#define UN_SURFACE_CUT_H

#include "surface/surface.h"

/* The nodes that share an edge with node n: to[first[n]] .. to[first[n + 1]] (tet_graph.c). */
typedef struct un_tet_graph {
    int32_t *first, *to;
} un_tet_graph;
un_status un_tet_graph_build(un_context *ctx, un_arena *arena, un_tet_graph *graph,
                             const un_tets *mesh);

/* A vertex for every mesh edge whose ends differ in sign, one or two triangles for every tet that
 * has such edges. All arrays come from the arena. Over ranks: of the surface around this rank's own
 * nodes, and vertices of ghosts on edges that nobody uses. */
typedef struct un_cut {
    const un_tets *mesh;
    int32_t tet_count, *tet;   /* the cut tets, ascending */
    int32_t node_count, *node; /* their nodes, ascending */
    int32_t *place;            /* by mesh node: index in node[]; -1: none */
    int32_t vertex_count;
    int32_t *first;     /* by index in node[]: its first vertex; one more at the end */
    int32_t *from, *to; /* of a vertex: the edge, lesser node first; ascending */
    un_vec3 *x;         /* of a vertex */
    int32_t *same; /* by vertex: the one that stands for it; NULL: every one stands for itself */
    int32_t triangle_count;
    int32_t triangle_first[UN_BLOCKS_MAX + 1]; /* by block of cut tets */
    int32_t (*triangle)[3]; /* counter-clockwise seen from the air; in the order of the cut tets */
    uint8_t *liquid;        /* by mesh node */
    un_part own;            /* of node[]: nodes of this rank */
} un_cut;

/* Zero and NaN are air. */
static inline bool un_cut_liquid(float phi)
{
    return phi < 0;
}

/* Finds cut tets and edges from the signs of phi; x is allocated, not set. graph may be NULL; with
 * it, finding the edges is faster. */
un_status un_cut_find(un_context *ctx, un_arena *arena, un_cut *cut, const float *phi,
                      const un_tets *mesh, const un_tet_graph *graph);
/* Sets x where phi interpolates to zero, at least `hair` of the edge off its ends; half way where a
 * value is not finite. */
void un_cut_interpolate(un_context *ctx, un_cut *cut, const float *phi, double hair);
/* Moves vertices close to a node onto it and merges all that then coincide: a walk over the surface
 * would get stuck in triangles that are points. Some triangles will have one vertex several
 * times. */
un_status un_cut_merge(un_arena *arena, un_cut *cut);
/* The node that a vertex is so close to; -1: none. */
int32_t un_cut_next_to(const un_cut *cut, int32_t v);
/* Builds the triangles, from x. */
un_status un_cut_triangulate(un_context *ctx, un_arena *arena, un_cut *cut);
/* The same in two steps, between which the caller makes room for triangle_count of them. */
void un_cut_count_triangles(un_context *ctx, un_cut *cut);
void un_cut_write_triangles(un_context *ctx, un_cut *cut);
/* For an output surface over ranks (cut_ranks.c): x becomes that of all ranks' vertices, numbered
 * as on one, and `same` tells the number there of a vertex here; first, from and to stay this
 * rank's, and of the tets its own remain. */
un_status un_cut_unite(un_context *ctx, un_arena *arena, un_cut *cut);
/* Over ranks: vertices on edges whose lesser node is a ghost get the x of their owners. */
un_status un_cut_share_vertices(un_context *ctx, un_cut *cut);
/* Vertices on edges whose lesser node is this rank's own. */
static inline un_part un_cut_own_vertices(const un_cut *cut)
{
    return (un_part){cut->first[cut->own.begin], cut->first[cut->own.end]};
}
/* The vertex on the edge between two mesh nodes of different sign. */
static inline int32_t un_cut_vertex(const un_cut *cut, int32_t a, int32_t b)
{
    int32_t lesser = a < b ? a : b, greater = a < b ? b : a;
    int32_t v = cut->first[cut->place[lesser]];
    while (cut->to[v] != greater) v++;
    return cut->same ? cut->same[v] : v;
}

/* Corner i of a tet first, then the others so that the tet stays positively oriented. */
static inline void un_tet_corner_first(int32_t i, int32_t order[4])
{
    order[0] = i, order[1] = i ^ 1, order[2] = i ^ 2, order[3] = i ^ 3;
}

/* Bit 2 axis + s: the node lies in the low or high side of the brick. */
static inline uint8_t un_cut_sides(const un_tets *mesh, int32_t n)
{
    int32_t sides = 0;
    for (int32_t a = 0; a < 3; a++) {
        uint32_t at = un_morton_gather(mesh->node_key[n] >> a);
        uint32_t high = (uint32_t)mesh->tree->roots[a] << (mesh->tree->level_max + 1);
        sides |= (at == 0) << 2 * a | (at == high) << (2 * a + 1);
    }
    return (uint8_t)sides;
}

/* The cut's triangles with caps in the brick's boundary, as a mesh (marching.c); `triangle` will be
 * the mesh's own. Over ranks, rank 0 gets the mesh of all, and the cut's vertices are united. */
un_status un_cut_contour(un_context *ctx, un_arena *arena, un_cut *cut, un_trimesh *surface);
/* Groups vertices of the cut's mesh that are nearer to the same node than to the other ends of
 * their edges, in the form that un_surface_merge takes; the list comes from the arena
 * (cluster.c). Over ranks, after un_cut_contour, and rank 0 gets it. */
un_status un_cut_clusters(un_context *ctx, un_arena *arena, const un_cut *cut, int32_t vertex_count,
                          int32_t **same);
/* The nearer end of the edge of vertex v, which is at x; -1: the vertex lies in a side of the
 * brick. */
int32_t un_cut_nearest(const un_cut *cut, int32_t v, un_vec3 x);
/* Over ranks: those ends of all vertices to rank 0, numbered as on one rank, above INT32_MAX for
 * none (cut_ranks.c). */
un_status un_cut_gather_nearest(un_context *ctx, un_arena *arena, const un_cut *cut,
                                uint32_t **all);
/* Keeps vertices at least `hair` of an edge off its ends. */
void un_cut_keep_off(un_context *ctx, un_cut *cut, double hair);
/* The distance of every node to the cut's triangles, with the sign of the node (tet_distance.c).
 * Over ranks: of this rank's own nodes and ghosts; others keep phi. */
un_status un_cut_distance(un_context *ctx, un_arena *arena, float *phi, const un_cut *cut,
                          const un_tet_graph *graph);

/* The indices with keep[i] != 0, ascending. */
un_status un_cut_list(un_context *ctx, un_arena *arena, const uint8_t *keep, int64_t count,
                      int32_t **list, int32_t *list_count);
/* The same where there is room for them; returns how many they are. */
int32_t un_cut_list_into(un_context *ctx, int32_t *list, const uint8_t *keep, int64_t count);

#endif
