/* The level set at walls on tets; private to src/tension. */
#ifndef UN_TENSION_TET_CONTACT_H
#define UN_TENSION_TET_CONTACT_H

#include "tension/tension.h"

/* Of the contact angle at the wall next to node n. */
double un_contact_cosine(const un_tension_tets *in, int32_t n);
/* True if node n lies in a wall, where the surface may go on far from where phi has it. */
bool un_contact_may_matter(const un_tension_tets *in, int64_t n, double h);
/* The level set at node n; in a wall, that of the surface that goes on in it. */
float un_contact_value(const un_tension_tets *in, int32_t n);
/* True if node n lies on a solid or in it. */
bool un_contact_is_in_solid(const un_tension_tets *in, int32_t n);
/* The slope at node n; on a wall, that of a surface which meets it at the contact angle. */
un_vec3 un_contact_slope(const un_tension_tets *in, int32_t n, un_vec3 slope);

/* Over ranks: sets the values of nodes node[own] that are in solids, whose images other ranks may
 * know. All ranks call it. */
un_status un_contact_values_ranks(un_context *ctx, un_arena *arena, const un_tension_tets *in,
                                  const int32_t *node, float *value, un_part own);

#endif
