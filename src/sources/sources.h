/* Sources: liquid that enters and leaves. The schedule of emitters and drains, and the ledger,
 * which tells how much liquid there should be. This folder does not know particles:
 * particles/emit.c seeds them. */
#ifndef UN_SOURCES_H
#define UN_SOURCES_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "scene/scene.h"

/* ---- the ledger (ledger.c) ---- */

/* The expected and the measured volume, m3. */
typedef struct un_ledger {
    double start, in, out; /* at the start; added; removed */
    double found, error;   /* last measured; relative to the expected volume */
    double carried;        /* by the particles, when last measured */
    double rate;           /* the divergence wanted last, 1/s */
} un_ledger;

static inline double un_ledger_expected(const un_ledger *ledger)
{
    return ledger->start + ledger->in - ledger->out;
}
/* Records the measured volume, updates the error. carried: by particles; `found` without any. */
void un_ledger_weigh(un_ledger *ledger, double found, double carried);
/* The divergence that corrects the error in the next step, 1/s: gentle, bounded. pace:
 * un_scene_pace; sink: by how much it may fall below that of the last step. */
double un_ledger_expansion(un_ledger *ledger, double pace, double sink);

/* ---- the schedule (sources.c) ---- */

/* How far the stream of an emitter has advanced. */
typedef struct un_emission {
    un_vec3 shift; /* of its seeding lattice so far, m */
    bool started;
    double share; /* of a half cell's volume that its particle carries; 0: not found yet */
    double width; /* of the source's shape where it is widest, m: its narrowest extent there */
} un_emission;

typedef struct un_sources {
    un_context *ctx;
    const un_scene_def *def;
    const un_grid *grid; /* emission fills its half cells */
    const un_walls *walls;
    un_emission *emission; /* by source */
    un_ledger ledger;
} un_sources;

un_status un_sources_init(un_sources *sources, un_context *ctx, const un_scene_def *def,
                          const un_grid *grid, const un_walls *walls);
void un_sources_free(un_sources *sources);
/* Is the source open at this time? */
static inline bool un_source_active(const un_source *source, double time)
{
    return time >= source->from && time <= source->to;
}
/* Can liquid enter or leave: is there an open side or a source? */
bool un_sources_any(const un_sources *sources);
/* Where liquid of the stream that is at x now was one step ago. x itself if that place is in a wall
 * or outside the domain: a stream that starts there must be pushed. */
un_vec3 un_sources_came_from(const un_sources *sources, un_vec3 x, un_vec3 step);
bool un_sources_in_domain(const un_sources *sources, un_vec3 x);

/* ---- volume that appears inside the liquid (inflow.c) ---- */

/* Cells of a grid, and what was added to each since the last projection, m3 (m2 in 2D). A cell may
 * stand more than once. */
typedef struct un_inflow {
    int32_t *cell;
    double *volume;
    int32_t count;
    size_t capacity[2];
} un_inflow;
un_status un_inflow_add(un_context *ctx, un_inflow *inflow, int64_t cell, double volume);
/* Room for so many, not filled. */
un_status un_inflow_need(un_context *ctx, un_inflow *inflow, int32_t count);
/* Are all cells below this number? */
bool un_inflow_validate(const un_inflow *inflow, int64_t cell_count);
void un_inflow_free(un_context *ctx, un_inflow *inflow);

#endif
