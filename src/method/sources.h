/* Emitters, drains and open sides, for every method with particles. Only src/method/ includes
 * this. */
#ifndef UN_METHOD_SOURCES_H
#define UN_METHOD_SOURCES_H

#include "particles/particles.h"
#include "scene/scene.h"

typedef struct un_emitter {
    un_vec3 shift; /* of its lattice so far */
    bool started;
} un_emitter;

typedef struct un_sources {
    un_context *ctx;
    const un_scene_def *def;
    const un_grid *grid; /* whose half cells emission fills */
    const un_walls *walls;
    un_emitter *emitters; /* by source */
    /* ledger, m3 */
    double volume_start, volume_in, volume_out;
} un_sources;

un_status un_sources_init(un_sources *sources, un_context *ctx, const un_scene_def *def,
                          const un_grid *grid, const un_walls *walls);
void un_sources_free(un_sources *sources);
/* Takes away what is outside the domain or in an open drain; what is in an emitter is carried
 * along. */
un_status un_sources_remove(un_sources *sources, un_arena *arena, un_particles *particles,
                            double time);
/* Density and viscosity of mixed particles from `first` on. */
un_status un_sources_give_matter(un_sources *sources, un_particles *particles, int32_t first,
                                 const un_matter *matter);
/* Appends what emitters bring in a step of dt that ended at `time`. settle is called for each new
 * particle, with whether it belongs to the first filling of its shape: false takes it back. from:
 * what was there when the step began has moved on with the stream to where the particle is now; if
 * that was air, the particle takes nobody's place. */
typedef un_status un_sources_settle(void *arg, int32_t particle, un_vec3 from, bool first_filling,
                                    bool *keep);
un_status un_sources_emit(un_sources *sources, un_particles *particles, double time, double dt,
                          un_sources_settle *settle, void *arg);
static inline double un_sources_expected(const un_sources *s)
{
    return s->volume_start + s->volume_in - s->volume_out;
}

#endif
