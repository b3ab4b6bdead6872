/* Sizing: the wanted edge of cells S(x), m [Ando13 section 4, eq. 15].
 *
 *     S = min(custom, film, max(depth, V(min(curvature, solid curvature, strain))))
 *
 * each between the finest and the coarsest cell; V lets through what the camera sees and gives the
 * coarsest surface cell elsewhere. Evaluated at the nodes of the simulation mesh, then limited so
 * that sizes change slowly from place to place. */
#ifndef UN_SIZING_H
#define UN_SIZING_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "particles/particles.h"
#include "scene/scene.h"

typedef struct un_sizing_def {
    const un_scene *scene;
    const un_tets *mesh;
    const float *phi;          /* at nodes: the liquid's level set; may be infinite */
    const un_tet_walls *walls; /* solids */
    const un_vec3 *velocity;   /* at nodes, right where phi < 0; NULL: no strain yet */
    double time;               /* s, for camera and custom */
    double scale;              /* of all sizes, from the budget; 1: none */
} un_sizing_def;

/* size: at nodes; those farther than two cells outside the liquid do not matter and get the
 * coarsest. Runs Lua when the scene has a camera or a custom formula: from one thread. */
un_status un_sizing_evaluate(un_context *ctx, un_arena *arena, float *size,
                             const un_sizing_def *def);

/* Gives particles their wanted size, which may grow by `growth` at most since it was found last: it
 * shrinks at once, so detail appears where it is needed and fades where it was (particles.c). */
void un_sizing_to_particles(un_context *ctx, un_markers *markers, const float *size,
                            const un_tets *mesh, double dt);
void un_sizing_forget(un_particles *particles); /* any size is as good before the first */

/* ---- the budget (budget.c) ---- */

typedef struct un_budget {
    double scale; /* of all sizes, to stay inside; 1: none */
    double most;  /* particles that it allows; 0: any number */
    bool warned;  /* that cells become larger */
} un_budget;
/* Makes wanted sizes larger when there will be more particles than the budget allows. most: that it
 * allows as the mesh is now; 0: any. range: volumes between which particles are resized. */
void un_budget_keep(un_context *ctx, un_budget *budget, un_particles *particles,
                    const un_resize_def *range, double most, int32_t step);

/* The scale that keeps a run inside its budget. expected(arg, f): how many particles there will be
 * once their sizes, as they are wanted now, are f times as large. Over the budget the scale grows
 * at once by what is needed, well under it it shrinks slowly; never below 1. particles_max 0: any
 * number. */
typedef double un_sizing_expected(void *arg, double factor);
double un_sizing_budget(double scale, double particles_max, un_sizing_expected *expected,
                        void *arg);

#endif
