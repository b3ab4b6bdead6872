/* Viscosity: implicit viscous solves. */
#ifndef UN_VISCOSITY_H
#define UN_VISCOSITY_H

#include "base/base.h"
#include "linalg/linalg.h"
#include "mesh/mesh.h"

/* ---- walls (walls.c) ---- */

/* How liquid meets walls at nodes. */
enum { UN_WALL_NONE, UN_WALL_STICKS, UN_WALL_SLIDES };

typedef struct un_viscous_walls {
    uint8_t *kind;     /* at nodes */
    un_vec3 *u;        /* at nodes: of the wall; zero where there is none */
    double (*free)[9]; /* at nodes that slide: projection onto what is free */
    bool slides;       /* any node does; else the last is void */
    size_t capacity[3];
} un_viscous_walls;

void un_viscous_walls_free(un_context *ctx, un_viscous_walls *walls);
/* Nodes on or inside solids and closed sides. */
un_status un_viscous_walls_find(un_context *ctx, un_viscous_walls *walls,
                                const un_tet_walls *tet_walls);
/* Of corner i of a tet, where it slides: the area of wall that belongs to it, over the slip length
 * there, m. Times viscosity and velocity that is the drag. */
double un_viscous_wall_drag(const un_tet_walls *tet_walls, int32_t tet, int i);

/* ---- full stress at nodes [Batty11 sections 3 and 4] (nodes.c) ---- */

typedef struct un_viscosity {
    un_context *ctx;
    un_block_solver *solver;
    int32_t *index; /* at nodes: the unknown's number, -1 none */
    int32_t *node;  /* of each unknown */
    un_block_csr matrix;
    un_vec3 *b, *x, *place;
    double *mass;            /* of unknowns, kg */
    double (*free)[9];       /* of unknowns, where nodes slide */
    double (*stress)[16][9]; /* by shape of tets: integral of grad N_i . stress of N_j, edge 1 */
    size_t capacity[10], capacity_free;
} un_viscosity;

un_status un_viscosity_create(un_context *ctx, un_viscosity **viscosity);
void un_viscosity_destroy(un_viscosity *viscosity);

typedef struct un_viscous_def {
    const un_tets *mesh;
    un_vec3 *u; /* at nodes, m/s; changed in place where the liquid is viscous, and at its walls */
    uint8_t *reached;                  /* at nodes: set to 1 there, else 0; NULL: nobody asks */
    const uint8_t *told;               /* at nodes: 1 where u says something; tets with another
                                          node that sticks to nothing are left out; NULL: all */
    const float *phi;                  /* at nodes; liquid where negative */
    const un_tet_walls *tet_walls;     /* NULL: everything is open */
    const un_viscous_walls *walls;     /* NULL: there are none */
    const float *viscosity, *density;  /* at nodes, Pa s and kg/m3; NULL: the same everywhere, */
    double viscosity_all, density_all; /* this */
    double dt, tolerance;
    int32_t iteration_limit;
    bool keeps_volume; /* by a pressure of its own (volume.c): */
    double *p;         /* at nodes, Pa: a guess of it, and then it; NULL: from nothing */
    bool laplacian;    /* each component by itself; wrong at surfaces and where viscosity varies */
} un_viscous_def;

typedef struct un_viscous_report {
    un_block_report solve;
    int32_t node_count; /* unknown velocities */
    int32_t tet_count;  /* tets with viscous liquid */
    int32_t rounds;     /* of pressure */
    double squeezed;    /* divergence over strain, rms, that those left */
    double seconds_assembly;
} un_viscous_report;

/* (M + dt K) u_new = M u. With dt of 0 nothing changes. */
un_status un_viscosity_solve(un_viscosity *viscosity, un_arena *arena, const un_viscous_def *def,
                             un_viscous_report *report);
/* Only the system: matrix, b, the guess x and masses, of unknowns. */
un_status un_viscosity_assemble(un_viscosity *viscosity, un_arena *arena, const un_viscous_def *def,
                                un_viscous_report *report);
/* The same on velocities along the normals of faces, as one system (faces.c). def->u: what they
 * make at nodes, with walls' velocities at those that stick; left as it is. */
typedef struct un_viscous_faces {
    const un_faces *faces;
    double *u;            /* changed in place */
    const uint8_t *known; /* 1: in the liquid */
} un_viscous_faces;
un_status un_viscosity_solve_faces(un_viscosity *viscosity, un_arena *arena,
                                   const un_viscous_def *def, const un_viscous_faces *on,
                                   un_viscous_report *report);
/* Of a tet with these nodes: the mean of v there, or where there is no v what holds for all. */
static inline double un_viscous_mean(const float *v, const int32_t *n, double all)
{
    return v ? 0.25 * ((double)v[n[0]] + v[n[1]] + v[n[2]] + v[n[3]]) : all;
}
/* Volume kept under viscous stress (volume.c): the guess of its pressure, into b; after a solve,
 * the divergence over the strain, rms; and the pressure against that, into b. stiff: as in nodes.c.
 */
typedef struct un_viscous_volume {
    float *volume, *flux; /* at tets: of liquid, m3; the divergence times that */
    double *divergence;   /* at nodes, times dt mu */
    double *step;         /* at nodes: of dt times the pressure */
    double rho;           /* of Chebyshev's iteration; 0 before its first step */
} un_viscous_volume;
un_status un_viscous_volume_begin(un_viscous_volume *keep, un_arena *arena, un_viscosity *viscosity,
                                  const un_viscous_def *def, const double *stiff);
double un_viscous_volume_error(un_viscous_volume *keep, un_viscosity *viscosity,
                               const un_viscous_def *def);
void un_viscous_volume_push(un_viscous_volume *keep, un_viscosity *viscosity,
                            const un_viscous_def *def);
/* Bytes for so many nodes in the liquid. */
double un_viscosity_bytes(double nodes);

#endif
