/* What every method with particles saves and takes back. Only src/method/ includes this. */
#ifndef UN_METHOD_SAVING_H
#define UN_METHOD_SAVING_H

#include "method/sources.h"
#include "state/state.h"

/* flags: instead of the particles' own; NULL: those. */
un_status un_save_particles(un_state *out, const un_particles *particles, const uint8_t *flags);
/* Fails unless all is finite and in the domain. `particles` is empty but for `sized`. */
un_status un_load_particles(un_context *ctx, const un_state *in, un_particles *particles,
                            un_vec3 domain);
un_status un_save_sources(un_state *out, const un_sources *sources);
un_status un_load_sources(const un_state *in, un_sources *sources);
/* The step that placed the solids last, so that they can be placed there again. */
un_status un_save_bodies(un_state *out, const un_bodies *bodies);
un_status un_load_bodies(const un_state *in, un_bodies *bodies);

/* A number that tells whether what was found again from a checkpoint is what it was. */
uint64_t un_saving_hash(uint64_t hash, const void *bytes, size_t count);
un_status un_save_hash(un_state *out, uint64_t hash);
/* Another machine or compiler may round otherwise: that is said, and no error. */
un_status un_load_hash(un_context *ctx, const un_state *in, uint64_t hash);

#endif
