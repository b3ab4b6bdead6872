/* Sizing: the wanted edge of cells S(x), m [Ando13 section 4, eq. 15].
 *
 *     S = min(custom, source, film, max(depth, V(min(curvature, solid curvature, strain))))
 *
 * each between the finest and the coarsest cell; V lets through what the camera sees and gives the
 * coarsest surface cell elsewhere. Evaluated at nodes, which any mesh can provide, then limited so
 * that sizes change slowly from place to place. */
#ifndef UN_SIZING_H
#define UN_SIZING_H

#include "base/base.h"
#include "bodies/bodies.h"
#include "mesh/mesh.h"
#include "particles/particles.h"
#include "scene/scene.h"
#include "sources/sources.h"

/* ---- nodes: where sizes are evaluated, on any mesh ---- */

/* Of near_count: there are more neighbours than fit the list. */
#define UN_NEAR_MANY 255

typedef struct un_sizing_slopes un_sizing_slopes;

/* The nodes of a mesh and their neighbours. Nodes may be corners of cells, their centres, or both.
 * Fast if nodes that are close in space are close in the arrays too (as along a Morton curve). */
typedef struct un_sizing_nodes {
    int32_t count, dim;
    const un_vec3 *x;        /* m */
    const uint8_t *level;    /* size class of the smallest cell at the node */
    const double *cell;      /* by level: edge of the cells, m */
    double finest, coarsest; /* edges of the smallest and the largest possible cells, m */
    const uint8_t *used;     /* nodes that matter: un_sizing_choose */
    /* Neighbours of node n: near[near_first[n]] and the next, near_count[n] of them. Nodes that do
     * not matter have none. Lists may name them, which does no harm, nor does naming one twice. */
    const int32_t *near_first; /* count + 1 */
    const uint8_t *near_count;
    const int32_t *near;
    const float *near_length; /* distance to each neighbour, m; NULL: by code */
    const uint8_t *near_code;
    float length[256]; /* by code, m */
    /* Complete lists of nodes whose near_count is UN_NEAR_MANY; their list above is full, up to
     * near_first[n + 1]. */
    int32_t many_count;
    const int32_t *many, *many_first; /* the nodes, ascending; many_count + 1 */
    const int32_t *many_near;
    const float *many_length;
    /* How the mesh computes derivatives; NULL: from the neighbours (slopes.c). */
    const un_sizing_slopes *slopes;
    void *mesh; /* for slopes */
    /* Over ranks: the mesh whose own nodes this rank finds sizes for. Fields are to be known at its
     * ghosts. Other nodes have no neighbours. NULL: all nodes are here. */
    const un_tets *shared;
    /* The same for leaves: fields are to be known at all leaves that this rank knows; own leaves
     * and those of the next ring have neighbours. */
    const un_leaves *leaves;
} un_sizing_nodes;

/* The nodes that this rank finds sizes for. */
static inline un_part un_sizing_own(const un_sizing_nodes *nodes)
{
    if (nodes->leaves) return un_leaves_own(nodes->leaves);
    return nodes->shared ? un_tets_own_nodes(nodes->shared) : (un_part){0, nodes->count};
}
/* A parallel loop over the nodes that this rank knows. */
static inline void un_sizing_each(un_context *ctx, const un_sizing_nodes *nodes, int64_t grain,
                                  un_parallel_body *body, void *arg)
{
    if (nodes->leaves)
        un_leaves_each(nodes->leaves, grain, body, arg);
    else
        un_parallel_for(ctx, nodes->count, grain, body, arg);
}
/* Over ranks, all know of a failure before the next message. */
static inline un_status un_sizing_agree(un_context *ctx, const un_sizing_nodes *nodes,
                                        un_status status)
{
    return nodes->shared || nodes->leaves ? un_ranks_agree(ctx, status) : status;
}
/* Values at ghosts, from their owners. */
static inline un_status un_sizing_share(const un_sizing_nodes *nodes, float *value)
{
    un_field field = {"value", value, NULL, sizeof *value};
    if (nodes->leaves) un_leaves_spread(nodes->leaves, value, sizeof *value);
    return nodes->shared ? un_tets_share(nodes->shared, &field, 1) : UN_OK;
}

typedef struct un_sizing_flow {
    const un_vec3 *u; /* at nodes, right where phi < 0 */
    const float *phi;
    double deep;  /* m: strain counts where -deep <= phi < 0 */
    double speed; /* m/s */
} un_sizing_flow;

struct un_sizing_slopes {
    /* div(grad phi / |grad phi|), 1/m, at nodes with band[n]; 0 at others. phi may be infinite. */
    un_status (*curvature)(un_context *ctx, un_arena *arena, float *kappa,
                           const un_sizing_nodes *nodes, const float *phi, const uint8_t *band);
    /* The length over which the velocity changes by `speed`: speed / |e|, e the strain tensor, from
     * velocities in the liquid alone. Infinite or NaN: unknown. */
    un_status (*strain)(un_context *ctx, un_arena *arena, float *length,
                        const un_sizing_nodes *nodes, const un_sizing_flow *flow);
    /* Unit vector along the gradient of a field at node n; zero where it is flat. */
    un_vec3 (*direction)(const un_sizing_nodes *nodes, int32_t n, const float *field);
};
extern const un_sizing_slopes un_sizing_slopes_near; /* from the neighbours */

/* Finds the nodes that matter: those in the liquid and up to two cells outside it. Needs count,
 * level and cell. The array is in the arena. */
un_status un_sizing_choose(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                           const float *phi);
/* The nodes of tets, for a level set phi at them; all arrays are in the arena (tets.c). Nodes may
 * have been moved. */
un_status un_sizing_nodes_tets(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                               const un_tets *mesh, const float *phi);

/* The leaves of an octree, in the same way (leaves.c). */
un_status un_sizing_nodes_leaves(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                                 const un_leaves *leaves, const float *phi);

/* How many of a node's neighbours are in its first list. */
static inline int32_t un_sizing_listed(const un_sizing_nodes *nodes, int64_t n)
{
    int32_t room = nodes->near_first[n + 1] - nodes->near_first[n], count = nodes->near_count[n];
    return count < room ? count : room;
}

/* ---- sizes ---- */

typedef struct un_sizing_def {
    const un_scene *scene;
    const un_sizing_nodes *nodes;
    const float *phi;          /* at nodes: the liquid's level set; may be infinite */
    const float *wall;         /* at nodes: distance to solids and closed sides; NULL: none */
    const float *solid;        /* at nodes: distance to solids, negative inside; NULL: none */
    const float *narrow;       /* at nodes near solids: how thick these are there; NULL: unknown */
    const un_vec3 *velocity;   /* at nodes, right where phi < 0; NULL: no strain yet */
    const un_sources *sources; /* NULL: none */
    const un_bodies *bodies;   /* beside those that the liquid moves no depth makes cells coarser;
                                  NULL: none */
    double time;               /* s, for camera and custom */
    double scale;              /* of all sizes, from the budget; 1: none */
} un_sizing_def;

/* What [Hong09]'s deformability leaves of the size that depth allows, at nodes: 1 .. 0.5. scale: a
 * factor on its thresholds (deformability.c). */
void un_sizing_deformability(un_context *ctx, float *share, const un_sizing_def *def, double scale);

/* size: at nodes; those that do not matter get the coarsest. Runs Lua when the scene has a camera
 * or a custom formula: from one thread. Over ranks, at own nodes and ghosts. */
un_status un_sizing_evaluate(un_context *ctx, un_arena *arena, float *size,
                             const un_sizing_def *def);

/* Lowers sizes until none exceeds a neighbour's by more than grade times their distance (limit.c).
 * Nodes that do not matter keep their size, which must be at least every other. Over ranks, sizes
 * at ghosts may be anything; they are those of their owners afterwards. */
un_status un_sizing_limit(un_context *ctx, un_arena *arena, float *size,
                          const un_sizing_nodes *nodes, double grade);

/* ---- what draws a grid that warps (monitor.c) ---- */

/* finest: cells of the grid along the longest side. */
un_status un_monitor_init(un_context *ctx, un_monitor *monitor, un_vec3 size, int32_t finest);
void un_monitor_free(un_context *ctx, un_monitor *monitor);

typedef struct un_monitor_def {
    const un_scene *scene;
    const un_warp *warp;
    const un_walls *walls; /* on the warp */
    const float *phi;      /* at cells of reference space: the level set */
    const un_vec3 *u;      /* at cells, right where phi < 0; NULL: not known yet */
    double strength;       /* the largest density is 1 + strength */
    double time;           /* s, for camera and custom */
} un_monitor_def;
/* Runs Lua when the scene has a camera or a custom formula: from one thread. */
un_status un_monitor_find(un_context *ctx, un_arena *arena, un_monitor *monitor,
                          const un_monitor_def *def);

/* ---- sizes at particles (particles.c) ---- */

/* The sizes at particles begin .. end - 1: the mesh interpolates its nodes' sizes. From any thread.
 */
typedef void un_sizing_at(const void *arg, const un_particles *particles, int64_t begin,
                          int64_t end, double *size);
/* Gives these particles their wanted size. It shrinks at once and grows slowly, so that detail
 * appears where it is needed and fades where it was. dt: in paces of the scene (un_scene_pace). */
void un_sizing_to_particles(un_context *ctx, un_particles *particles, un_part part,
                            un_sizing_at *at, const void *arg, double dt);
typedef struct un_sizing_on_tets {
    const un_tets *mesh;
    const float *size; /* at nodes */
    const un_tet_bins *bins;
} un_sizing_on_tets;
un_sizing_at un_sizing_at_tets; /* linear in each tet */
typedef struct un_sizing_on_leaves {
    const un_leaves *leaves;
    const float *size;   /* at leaves */
    const int32_t *leaf; /* at particles */
} un_sizing_on_leaves;
un_sizing_at un_sizing_at_leaves;
void un_sizing_forget(un_particles *particles); /* any size is as good before the first */

/* ---- the budget (budget.c) ---- */

typedef struct un_budget {
    double scale; /* of all sizes, to stay inside; 1: none */
    double most;  /* particles that it allows; 0: any number */
    bool warned;  /* that cells become larger */
} un_budget;
/* Enlarges the wanted sizes if there will be more particles than the budget allows. most: how many
 * it allows with the present mesh; 0: any. range: volumes between which particles are resized.
 * Over ranks, own particles are seen and changed. */
void un_budget_keep(un_context *ctx, un_budget *budget, un_markers *markers,
                    const un_resize_def *range, double most, int32_t step);

/* The scale that keeps a run inside its budget. expected(arg, f): how many particles there will be
 * once their sizes, as they are wanted now, are f times as large. Over the budget the scale grows
 * at once by what is needed, well under it it shrinks slowly; never below 1. particles_max 0: any
 * number. */
typedef double un_sizing_expected(void *arg, double factor);
double un_sizing_budget(double scale, double particles_max, un_sizing_expected *expected,
                        void *arg);

#endif
