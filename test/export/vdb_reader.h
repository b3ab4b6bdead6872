/* Reads a .vdb by OpenVDB itself, for tests in C. */
#ifndef UN_TEST_VDB_READER_H
#define UN_TEST_VDB_READER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vdb_grid {
    char type[32], grid_class[32];
    double voxel[3];      /* m */
    double origin[3];     /* where index 0, 0, 0 is, m */
    double background[3]; /* of scalar grids the first */
    int64_t active;
    int32_t min[3], max[3]; /* of the active voxels */
} vdb_grid;

int vdb_grid_count(const char *path); /* -1: not readable */
/* False: there is no such grid. */
bool vdb_grid_read(const char *path, const char *name, vdb_grid *grid);
/* The value at a voxel, and whether it is active; of scalar grids the first. */
bool vdb_value(const char *path, const char *name, const int32_t ijk[3], double value[3]);

#ifdef __cplusplus
}
#endif

#endif
