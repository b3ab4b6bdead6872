/* Graded BCC tetrahedra on an octree [Labelle & Shewchuk 2007; Ando13 section 4].
 *
 * Nodes are the corners and centres of leaves, and the middles of their faces in the brick's
 * boundary. Up to scale there is only a handful of tets, so a tet stores its nodes, a shape index
 * and the level of its size; gradients, volume and stiffness come from the table of shapes. Where
 * nodes were moved, tets have shapes of their own. */
#ifndef UN_MESH_TETS_H
#define UN_MESH_TETS_H

#include "mesh/octree.h"

typedef enum un_tet_kind {
    UN_TET_BCC,
    UN_TET_BISECTED,
    UN_TET_QUADRISECTED,
    UN_TET_HALF_PYRAMID,
    UN_TET_BOUNDARY /* at the brick's boundary; like bisected or quadrisected ones */
} un_tet_kind;

/* For a leaf of edge 1. */
typedef struct un_tet_shape {
    un_tet_kind kind;
    int8_t edge[3][3];      /* from node 0 to nodes 1, 2, 3, in half leaf edges; table only */
    double gradient[4][3];  /* of the barycentric coordinates; times 1 / leaf edge */
    double volume;          /* times leaf edge cubed */
    double stiffness[4][4]; /* volume gradient_i . gradient_j; times leaf edge */
} un_tet_shape;

#define UN_TET_SHAPES_MAX 256

typedef struct un_tets {
    un_context *ctx;
    const un_octree *tree;
    int32_t node_count, tet_count;
    uint64_t end_key;    /* of the brick's upper corner, as node_key */
    uint64_t *node_key;  /* Morton code of the node's coordinates in units; see un_tets_order */
    un_vec3 *x;          /* of nodes, m */
    uint8_t *node_level; /* the finest level of the leaves that meet at the node */
    int32_t (*tet)[4];   /* nodes, positively oriented; tets are numbered along the leaves */
    uint8_t *shape;
    uint8_t *level; /* of the leaf whose edge scales the shape */
    /* By leaf and face (-x, +x, -y, +y, -z, +z): the tets of the cone from the face to the centre,
     * for point location. face_tet: the first; tets_internal.h says how the others follow. */
    int32_t (*face_tet)[6];
    uint8_t (*face_code)[6];
    /* By node: its tets, as 4 t + corner, ascending; node n has first[n] .. first[n + 1]. */
    int32_t *first, *corner;
    un_tet_shape shapes[UN_TET_SHAPES_MAX];
    int32_t shape_count;
    /* Shapes of tets whose nodes were moved, for a leaf of edge 1 like those of the table; tet t
     * has own[own_first[t]] if own_first[t + 1] is greater than own_first[t]. */
    int32_t own_count; /* 0: no node was moved, and own_first is undefined */
    int32_t *own_first;
    un_tet_shape *own;
    /* On the other sides of thin walls nodes and tets have copies, see un_tets_part, which come
     * right after them. The arrays are undefined unless parted. */
    int32_t plain_nodes, plain_tets; /* without copies */
    bool parted;
    const struct un_bodies *bodies; /* whose walls they are */
    int32_t *part;                  /* by tet as they were numbered before, and the end: its first
                                     * copy, itself; the others follow */
    int32_t *origin;     /* by node: its number before, or that of what it is a copy of */
    float *side;         /* by node: distance to the solids as its side sees it */
    size_t capacity[15]; /* of the arrays, in the order above */
    /* Over ranks: what is this one's; the rest but its ghosts only fills the brick. NULL: all is
     * here. */
    struct un_tet_share *share;
} un_tets;

/* Nodes are numbered by ascending order: all that belong to a leaf follow one another, and leaves
 * follow the curve. A node belongs to the leaf whose half-open box holds it, one in the brick's
 * upper faces to the leaf it ends at. */
static inline uint64_t un_tets_order(const un_tets *mesh, int64_t n)
{
    return un_morton_order(mesh->node_key[n], mesh->end_key);
}
/* True if node n is a copy of the one before. */
static inline bool un_tets_is_copy(const un_tets *mesh, int64_t n)
{
    return mesh->parted && n > 0 && mesh->origin[n] == mesh->origin[n - 1];
}

/* Nodes of a finest leaf have orders of the leaf's key and so many bits more. */
#define UN_TETS_ORDER_BITS 6

void un_tets_init(un_context *ctx, un_tets *mesh);
void un_tets_free(un_tets *mesh);
/* Builds the mesh from a built tree, which must outlive it. In parallel; arrays keep their
 * capacity. */
un_status un_tets_build(un_tets *mesh, un_arena *arena, const un_octree *tree);
/* To be called after nodes were moved (x was changed): tets with moved nodes get shapes of their
 * own, from the places of their nodes. A tet that was turned inside out has a negative volume;
 * un_tets_validate counts those. */
un_status un_tets_remeasure(un_tets *mesh, un_arena *arena);
/* Frees everything but the nodes and the node numbers of tets: a third of the memory is left. For
 * meshes that will only be contoured. */
void un_tets_strip(un_tets *mesh);

/* A point in a tet: its barycentric coordinates, which sum to 1 and are not below -1e-9 for points
 * in the brick (those outside count at its boundary). */
typedef struct un_tets_place {
    int32_t tet;
    double w[4];
} un_tets_place;
void un_tets_locate(const un_tets *mesh, un_vec3 x, un_tets_place *place);
/* The same, but beside thin walls also tets without an open node, which have no velocity. */
void un_tets_locate_closed(const un_tets *mesh, un_vec3 x, un_tets_place *place);
/* As un_tets_locate, which these two are; over ranks false, with place undefined, if this rank does
 * not know the tet. */
bool un_tets_locate_here(const un_tets *mesh, un_vec3 x, un_tets_place *place);
/* As above if the tet is known or guessed: false, with place unchanged, if x is not in it. */
bool un_tets_locate_in(const un_tets *mesh, int32_t tet, un_vec3 x, un_tets_place *place);

static inline double un_tets_size(const un_tets *mesh, int32_t t)
{
    return un_octree_size(mesh->tree, mesh->level[t]);
}
/* The shape from the table, or the tet's own if a node was moved. */
static inline const un_tet_shape *un_tets_shape(const un_tets *mesh, int32_t t)
{
    if (mesh->own_count > 0 && mesh->own_first[t + 1] > mesh->own_first[t])
        return &mesh->own[mesh->own_first[t]];
    return &mesh->shapes[mesh->shape[t]];
}
static inline double un_tets_volume(const un_tets *mesh, int32_t t)
{
    double h = un_tets_size(mesh, t);
    return un_tets_shape(mesh, t)->volume * h * h * h;
}
static inline un_vec3 un_tets_center(const un_tets *mesh, int32_t t)
{
    const int32_t *n = mesh->tet[t];
    const un_vec3 *x = mesh->x;
    return un_v3(0.25 * (x[n[0]].x + x[n[1]].x + x[n[2]].x + x[n[3]].x),
                 0.25 * (x[n[0]].y + x[n[1]].y + x[n[2]].y + x[n[3]].y),
                 0.25 * (x[n[0]].z + x[n[1]].z + x[n[2]].z + x[n[3]].z));
}
/* Gradient of the linear function with values v at the tet's nodes. */
static inline un_vec3 un_tets_gradient(const un_tets *mesh, int32_t t, const double v[4])
{
    const un_tet_shape *s = un_tets_shape(mesh, t);
    double scale = 1 / un_tets_size(mesh, t), g[3];
    for (int a = 0; a < 3; a++)
        g[a] = scale * (s->gradient[0][a] * v[0] + s->gradient[1][a] * v[1] +
                        s->gradient[2][a] * v[2] + s->gradient[3][a] * v[3]);
    return un_v3(g[0], g[1], g[2]);
}

/* Linear interpolation of a nodal field. */
static inline double un_tet_sample(const un_tets *mesh, const float *v, const un_tets_place *p)
{
    const int32_t *n = mesh->tet[p->tet];
    return p->w[0] * v[n[0]] + p->w[1] * v[n[1]] + p->w[2] * v[n[2]] + p->w[3] * v[n[3]];
}

/* ---- a mesh over ranks (tets_ranks.c) ---- */

/* What is this rank's of a mesh that was built on its tree (un_octree_build_ranks). Nodes and tets
 * of its leaves are its own: the same, in the same order, as on one rank, and so are the tets
 * around its nodes. Ghosts are the other nodes of these tets; their levels are as on one rank, too,
 * but not the tets around them. All else in the rank's mesh only fills the brick. */
typedef struct un_tet_share {
    un_context *ctx;
    un_range nodes, tets;          /* its own, numbered as on one rank */
    int32_t node_begin, tet_begin; /* the first of them in the rank's mesh; the others follow */
    int32_t ghost_count;           /* nodes of others */
    int32_t *ghost;                /* their numbers in the rank's mesh, ascending */
    int64_t *ghost_id;             /* and on one rank */
    const un_tree_share *tree;     /* that the mesh was built on */
    un_exchange *halo;             /* from their owners */
    char *arrived;                 /* room for what comes, */
    size_t element;                /* for so many bytes a ghost, on all ranks */
    size_t capacity_ghost, capacity_id, capacity_arrived;
    bool wide; /* set by the caller: nodes of all tets here are ghosts, and the copies of these */
} un_tet_share;
void un_tet_share_free(un_tet_share *part);
/* part: zero but for ctx, or of an earlier call. */
un_status un_tet_share_find(un_tet_share *part, un_arena *arena, un_tets *mesh,
                            const un_tree_share *tree);
/* Arrays at nodes: ghosts get the values of their owners. `to` of the fields is not used. Nothing
 * happens where all is here. */
un_status un_tets_share(const un_tets *mesh, const un_field *fields, int32_t count);
/* A failure of one rank is one of all, to be found out before ranks wait for each other. */
static inline un_status un_tets_agree(const un_tets *mesh, un_status status)
{
    return mesh->share ? un_ranks_agree(mesh->share->ctx, status) : status;
}
/* The key of the finest cube in which un_tets_locate_closed looks for x: the rank that has it knows
 * the tet. */
uint64_t un_tets_place_key(const un_tets *mesh, un_vec3 x);
/* A field at nodes, at places that other ranks may know: the rank that has one tells. All ranks
 * call it. */
typedef struct un_tets_sampled {
    double value;
    un_vec3 slope;
} un_tets_sampled;
un_status un_tets_ask(const un_tets *mesh, const float *field, const un_vec3 *x, int64_t count,
                      un_tets_sampled *answers);
/* The same for anything: tell sets `size` bytes of what is at a place, or one by it. */
typedef void un_tets_answer(const void *arg, const un_tets_place *place, void *out);
un_status un_tets_ask_any(const un_tets *mesh, un_tets_answer *tell, const void *arg, size_t size,
                          const un_vec3 *x, int64_t count, void *answers);
/* Where un_tets_locate_closed finds for each of the places what un_tets_locate finds for it on one
 * rank: the same places, but for some next to thin walls, whose tet is beside them and may be
 * another rank's (tets_seats.c). Right where some rank knows the tet to be another. rank: of the
 * tets, -1 if this one knows neither place nor tet; or NULL. All ranks call it, or one. */
un_status un_tets_seats(const un_tets *mesh, const un_vec3 *x, int64_t count, un_vec3 *seat,
                        int32_t *rank);
/* The rank that a node belongs to, which is this rank's or a ghost. */
int32_t un_tets_node_owner(const un_tets *mesh, const un_tree_share *tree, int32_t n);
/* This rank's own nodes and tets. */
static inline un_part un_tets_own_nodes(const un_tets *mesh)
{
    const un_tet_share *s = mesh->share;
    if (!s) return (un_part){0, mesh->node_count};
    return (un_part){s->node_begin, s->node_begin + s->nodes.end - s->nodes.begin};
}
static inline un_part un_tets_own(const un_tets *mesh)
{
    const un_tet_share *s = mesh->share;
    if (!s) return (un_part){0, mesh->tet_count};
    return (un_part){s->tet_begin, s->tet_begin + s->tets.end - s->tets.begin};
}

/* The place of a node among ghosts; -1: it is none. */
int32_t un_tet_share_ghost(const un_tet_share *part, int32_t n);
/* The number on one rank of a node that is this rank's or a ghost. */
#define UN_TET_SHARE_NOWHERE UINT32_MAX
uint32_t un_tet_share_number(const un_tet_share *part, int32_t n);
/* The other way; -1: it is neither. */
int32_t un_tet_share_node(const un_tet_share *part, uint32_t number);

/* Of all ranks. */
static inline int64_t un_tets_node_total(const un_tets *mesh)
{
    return mesh->share ? mesh->share->nodes.total : mesh->node_count;
}
/* True if a tet touches an own node: it is as on one rank, and so are values at it. */
static inline bool un_tets_knows(const un_tets *mesh, int32_t t)
{
    un_part own = un_tets_own_nodes(mesh);
    for (int i = 0; i < 4; i++)
        if (mesh->tet[t][i] >= own.begin && mesh->tet[t][i] < own.end) return true;
    return false;
}

/* Face neighbours: adjacency[4 t + i] is the tet across the face opposite node i, -1 none. The
 * faces of method `staggered` are made from it; `tet` does not need it. */
un_status un_tets_adjacency(const un_tets *mesh, un_arena *arena, int32_t *adjacency);

typedef struct un_tets_report {
    int64_t unmatched_faces;     /* inside the brick, with one tet or more than two */
    int64_t boundary_faces;      /* in the brick's boundary */
    int64_t misoriented_tets;    /* without positive volume */
    int64_t mismeasured_tets;    /* whose shape does not match their nodes */
    double volume;               /* sum over the tets, m3 */
    double min_angle, max_angle; /* dihedral, degrees */
    int64_t kind_count[5];
} un_tets_report;
/* Counts faces; conforming meshes have none unmatched. */
un_status un_tets_validate(const un_tets *mesh, un_arena *arena, un_tets_report *report);

#endif
