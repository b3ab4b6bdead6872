/* Private to src/output: triangles of solids. */
#ifndef UN_OUTPUT_SOLID_H
#define UN_OUTPUT_SOLID_H

#include "output/output.h"

/* Allocates room without filling it (solid.c). */
un_status un_body_mesh_init(un_context *ctx, un_body_mesh *mesh, int32_t vertex_count,
                            int32_t triangle_count);
/* The cross-section of a solid at rest with the plane z = 0 (solid_flat.c). */
un_status un_flat_solid(un_context *ctx, const un_shape *shape, bool moves, un_vec3 domain,
                        un_body_mesh *mesh);

#endif
