/* The only interface to C++: plain arrays in, a file out. */
#ifndef UN_VDB_SHIM_H
#define UN_VDB_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct un_vdb_frame {
    double voxel; /* m */
    bool surface; /* false: no level set is wanted */
    int32_t vertex_count, triangle_count;
    const double *position, *velocity; /* three to a vertex; velocity may be NULL */
    const int32_t *triangle;
    int32_t particle_count;
    const double *x[3], *v[3];
    int32_t frame;
} un_vdb_frame;

/* Grid "surface", a level set, and grid "vel", m/s, under the names Houdini expects. An existing
 * file is overwritten. False: message says why. */
bool un_vdb_write(const un_vdb_frame *frame, const char *path, char *message, size_t size);

#ifdef __cplusplus
}
#endif

#endif
