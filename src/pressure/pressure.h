/* Pressure: assembly, projection to a divergence-free velocity, friction at walls. */
#ifndef UN_PRESSURE_H
#define UN_PRESSURE_H

#include "base/base.h"
#include "linalg/linalg.h"
#include "mesh/mesh.h"

typedef struct un_pressure {
    un_context *ctx;
    const un_grid *grid;
    un_solver *solver;
    double *p;      /* at cells, Pa; the guess for the next step, zero outside the liquid */
    int32_t *index; /* at cells: the unknown's number, -1 none */
    int32_t *cell;  /* of each unknown */
    un_csr matrix;
    double *rhs, *x;
    size_t capacity_cell, capacity_row, capacity_col, capacity_val, capacity_rhs, capacity_x;
} un_pressure;

un_status un_pressure_create(un_context *ctx, const un_grid *grid, un_pressure **pressure);
void un_pressure_destroy(un_pressure *pressure);

typedef struct un_projection {
    double *const *u;      /* face velocities, changed in place */
    uint8_t *const *known; /* set to 1 at faces the projection has made valid, 0 elsewhere */
    const float *phi;      /* at cells; liquid where negative */
    const un_walls *walls;
    double dt, density, tolerance;
    int32_t iteration_limit;
    double expansion;           /* 1/s: divergence wanted everywhere in the liquid */
    const float *colour;        /* at cells: the particles' volume fraction; may be NULL */
    double crowding_time;       /* s in which crowded or thinned liquid inside is to even out */
    const int32_t *source_cell; /* cells that liquid is being added to, and how fast, 1/s */
    const double *source_rate;
    int32_t source_count;
} un_projection;

typedef struct un_projection_report {
    un_solve_report solve;
    int64_t cell_count;    /* liquid cells */
    double max_divergence; /* left over, 1/s */
} un_projection_report;

un_status un_pressure_project(un_pressure *pressure, const un_projection *projection,
                              un_projection_report *report);

/* Closed faces take the extrapolated velocity less what points into the wall: zero through the
 * domain's sides. Call after extrapolation, for the velocities before and after the projection
 * alike: their difference is what particles get, and it must not push them off the wall. Faces with
 * known = 1 are the projection's and stay. */
void un_pressure_constrain(un_context *ctx, double *const u[3], uint8_t *const known[3],
                           const un_grid *grid, const un_walls *walls);
/* Slows what slides along rough solids: the slip falls by the solid's friction each 1/100 s. */
void un_pressure_friction(un_context *ctx, double *const u[3], const un_grid *grid,
                          const un_walls *walls, double dt);

/* Bytes for a number of liquid cells, the grid's own arrays included. */
double un_pressure_bytes(const un_grid *grid, double liquid_cells);

#endif
