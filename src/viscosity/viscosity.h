/* Viscosity: implicit viscous solves. */
#ifndef UN_VISCOSITY_H
#define UN_VISCOSITY_H

#include "base/base.h"
#include "linalg/linalg.h"
#include "mesh/mesh.h"
#include "transfer/transfer.h"

/* ---- walls (walls.c) ---- */

/* How liquid meets walls at nodes. */
enum { UN_WALL_NONE, UN_WALL_STICKS, UN_WALL_SLIDES };

typedef struct un_viscous_walls {
    uint8_t *kind;     /* at nodes */
    un_vec3 *u;        /* at nodes: the wall's velocity; zero where there is none */
    int32_t *body;     /* at nodes: the body there that the liquid moves, -1: none; NULL: nowhere */
    double (*free)[9]; /* at nodes that slide: projection onto the free directions */
    bool slides;       /* any node does; else `free` is not valid */
    uint8_t *held;     /* at nodes: 1 where viscous liquid has the velocity u, 2 where a body does
                          that the liquid moves */
    size_t capacity[5];
} un_viscous_walls;

void un_viscous_walls_free(un_context *ctx, un_viscous_walls *walls);
/* Finds nodes on or inside solids and closed sides. Bodies that the liquid moves have the velocity
 * from before this step's forces. */
un_status un_viscous_walls_find(un_context *ctx, un_viscous_walls *walls,
                                const un_tet_walls *tet_walls);
/* Gives nodes of bodies that the liquid moves the velocity that these have by now. */
void un_viscous_walls_follow(un_context *ctx, un_viscous_walls *walls,
                             const un_tet_walls *tet_walls);
/* Makes liquid in an active emitter move at the emitter's velocity, at `time`: otherwise thick
 * liquid would hang in the emitter or pull on it. Then sets `held`, gives held nodes their velocity
 * and marks them as known. */
void un_viscous_walls_hold(un_context *ctx, un_viscous_walls *walls, un_vec3 *u_node,
                           uint8_t *known_node, const un_tets *mesh, const un_mixture *mix,
                           const un_scene_def *def, double time);
/* Gives nodes that walls hold their velocity again, but not those of bodies that the liquid moves;
 * `was` becomes a copy of all. */
void un_viscous_walls_stick(un_context *ctx, const un_viscous_walls *walls, un_vec3 *u_node,
                            un_vec3 *was, int64_t nodes);
/* For corner i of a tet, where it slides: its area of wall over the slip length there, m. Times
 * viscosity and velocity, that is the drag. */
double un_viscous_wall_drag(const un_tet_walls *tet_walls, int32_t tet, int i);
/* The part of a sliding node's velocity that the solid prescribes: the solid's velocity less its
 * free part. */
un_vec3 un_viscous_given(const un_viscous_walls *walls, int64_t n);
/* Projects node n's row of a system, its diagonal first, onto the free directions on both sides.
 * Unknowns from node_count on are no nodes. */
void un_viscous_free_row(const un_viscous_walls *walls, int64_t node_count, int64_t n,
                         const un_row *r, double (*val)[9], un_vec3 *b);

/* ---- full stress at nodes [Batty11 sections 3 and 4] (nodes.c) ---- */

typedef struct un_viscosity {
    un_context *ctx;
    un_block_solver *solver;
    int32_t *index;  /* at nodes: the unknown's number, -1 none */
    int32_t *node;   /* of each unknown */
    uint8_t *solved; /* on the grid, at cells, by bit: its lower faces that are solved for */
    un_curve curve;  /* on the grid: the order of its rows, by which cells are numbered */
    un_block_csr matrix;
    un_range rows; /* of this rank; all, where ranks do not share the system */
    bool shared;
    un_vec3 *b, *x, *place;
    double *mass;            /* of unknowns, kg */
    double (*free)[9];       /* of unknowns, if nodes slide */
    double (*stress)[16][9]; /* by shape of tets: integral of grad N_i . stress of N_j, edge 1 */
    size_t capacity[10], capacity_free, capacity_solved;
} un_viscosity;

un_status un_viscosity_create(un_context *ctx, un_viscosity **viscosity);
void un_viscosity_destroy(un_viscosity *viscosity);

typedef struct un_viscous_fit un_viscous_fit;

typedef struct un_viscous_def {
    const un_tets *mesh;
    un_vec3 *u; /* at nodes, m/s; changed in place where the liquid is viscous, and at its walls */
    uint8_t *reached;    /* at nodes: set to 1 there, else 0; may be NULL */
    const uint8_t *told; /* at nodes: 1 where u is meaningful; tets with a node that is neither told
                            nor stuck are left out; NULL: all are told */
    const float *phi;    /* at nodes; liquid where negative */
    const un_tet_walls *tet_walls; /* NULL: everything is open */
    const un_viscous_walls *walls; /* NULL: there are none */
    un_bodies *bodies; /* those that the liquid sticks to and moves are dragged; NULL: none */
    const float *viscosity, *density;  /* at nodes, Pa s and kg/m3; NULL: uniform */
    double viscosity_all, density_all; /* used where those are NULL */
    double dt, tolerance;
    int32_t iteration_limit;
    bool keeps_volume; /* by a pressure of its own (volume.c): */
    double *p;         /* at nodes, Pa: the guess, then the result; NULL: starts from zero */
    bool laplacian;    /* each component separately; wrong at surfaces and where viscosity varies */
    const un_viscous_fit *fit; /* faces have the mass instead of nodes (leaves.c); NULL: none */
} un_viscous_def;

typedef struct un_viscous_report {
    un_block_report solve;
    int32_t node_count; /* unknown velocities */
    int32_t tet_count;  /* tets with viscous liquid */
    int32_t rounds;     /* of pressure */
    double squeezed;    /* divergence over strain, rms, after the last round */
    double seconds_assembly;
    un_vec3 impulse; /* kg m/s: what the liquid got, if it moves bodies: just what bodies and walls
                      * lost, whatever the solver's tolerance */
} un_viscous_report;

/* (M + dt K) u_new = M u. Nothing changes if dt is 0. */
un_status un_viscosity_solve(un_viscosity *viscosity, un_arena *arena, const un_viscous_def *def,
                             un_viscous_report *report);
/* Assembles only: matrix, b, the guess x and masses, of unknowns. */
un_status un_viscosity_assemble(un_viscosity *viscosity, un_arena *arena, const un_viscous_def *def,
                                un_viscous_report *report);
/* The same for normal velocities on faces, as one system (faces.c). def->u: the nodal velocity
 * found from them, with the walls' velocity at nodes that stick; not changed. */
typedef struct un_viscous_faces {
    const un_faces *faces;
    double *u;            /* changed in place */
    const uint8_t *known; /* 1: in the liquid */
} un_viscous_faces;
un_status un_viscosity_solve_faces(un_viscosity *viscosity, un_arena *arena,
                                   const un_viscous_def *def, const un_viscous_faces *on,
                                   un_viscous_report *report);
/* The mean of v over a tet's nodes, or `all` if v is NULL. */
static inline double un_viscous_mean(const float *v, const int32_t *n, double all)
{
    return v ? 0.25 * ((double)v[n[0]] + v[n[1]] + v[n[2]] + v[n[3]]) : all;
}
/* Bytes for this many nodes in the liquid. */
double un_viscosity_bytes(double nodes);

/* One step of Chebyshev's iteration for the pressure that keeps volume: weights of the last change
 * and of the divergence. rho: kept from step to step, 0 at first. */
void un_viscous_chebyshev(double *rho, double *last, double *divergence);

/* ---- full stress on the faces of a staggered grid [Batty & Bridson 2008] (grid.c) ---- */

typedef struct un_viscous_grid {
    double *const *u;      /* at faces, m/s; changed in place where the liquid is viscous */
    uint8_t *const *known; /* 1: the face belongs to the liquid and has its mass; others follow */
    double *const *guess;  /* at faces; NULL: u */
    const float *phi;      /* at cells; liquid where negative */
    const un_walls *walls; /* bodies at the end of the step */
    un_bodies *bodies; /* those of the walls: those that the liquid moves are dragged; NULL: none */
    const float *viscosity, *density;  /* at cells, Pa s and kg/m3; NULL: uniform */
    double viscosity_all, density_all; /* used where those are NULL */
    double time, dt, tolerance;        /* time: which emitters are active */
    int32_t iteration_limit;
    bool keeps_volume; /* by a pressure of its own: */
    double *p;         /* at cells, Pa: the guess, then the result; NULL: starts from zero */
    bool laplacian;    /* as in un_viscous_def */
} un_viscous_grid;
/* (M + dt K) u_new = M u. Ranks share it by the bars of the grid: each knows fields in its own,
 * and gets u in the layer beside it, too. */
un_status un_viscosity_solve_grid(un_viscosity *viscosity, un_arena *arena,
                                  const un_viscous_grid *def, un_viscous_report *report);
/* After the projection that follows: faces around the liquid whose velocity was solved for and that
 * are not known are marked 2. */
void un_viscosity_mark_grid(const un_viscosity *viscosity, const un_grid *grid,
                            uint8_t *const known[3]);
/* Faces in walls that viscous liquid sticks to take the velocity that makes it the wall's at the
 * wall, for particles nearby: after the solve. u: after extrapolation; other: a second field, or
 * NULL. Several ranks know both in the rows beside their own. */
un_status un_viscosity_stick_grid(un_viscosity *viscosity, un_arena *arena,
                                  const un_viscous_grid *def, double *const u[3],
                                  double *const other[3]);
/* Bytes for this many cells of liquid, including the arrays over the whole grid. */
double un_viscosity_grid_bytes(const un_grid *grid, double liquid_cells);

/* ---- a viscous step on tets and on faces (tets.c) ---- */

/* The fraction of sub-nodal velocity that survives a viscous step; h is the cell's edge. The solve
 * at nodes does not see how tets or faces differ from the mean of their nodes. If that difference
 * were kept, it would grow where pressure feeds it: a sheet of 10 Pa s two cells high (half that of
 * scenes/huppert_round.lua) boils once it is thinner, at dt nu / h^2 = 3. From a rate of 1 on it is
 * as still as with PIC. Liquid of low viscosity keeps nearly all of it. The fraction must fall
 * faster than 1 / dt: with a backward step instead of exp, a light ball in syrup rose a fifth too
 * fast, however long the steps. */
static inline double un_viscous_rest(double nu, double h, double dt)
{
    return exp(-3 * nu * dt / (h * h));
}

typedef struct un_viscous_step {
    un_viscous_def solve; /* u and reached are set here */
    const un_mixture *mix;
    bool pic; /* tets and faces take their nodes' velocity, not its change [Batty11 5.2] */
} un_viscous_step;
/* Velocities at tets: the step's change so far (u_tet - was_tet where known_tet is 1) goes to nodes
 * and is added to u_node; the change that the solve makes there comes back. */
un_status un_viscosity_step_tets(un_viscosity *viscosity, un_arena *arena, un_viscous_step *step,
                                 un_vec3 *u_tet, const un_vec3 *was_tet, const uint8_t *known_tet,
                                 const un_vec3 *u_node, un_viscous_report *report);
/* Velocities on faces. u_node: the nodal velocity found from them; was_node: a copy of it.
 * implicit: solves on the faces as one system [Batty11 5.1]; else faces get the nodes' change. */
un_status un_viscosity_step_faces(un_viscosity *viscosity, un_arena *arena, un_viscous_step *step,
                                  const un_viscous_faces *on, un_vec3 *u_node,
                                  const un_vec3 *was_node, bool implicit,
                                  un_viscous_report *report);

/* ---- a viscous step on the faces of an octree's leaves (leaves.c) ---- */

typedef struct un_viscous_leaves {
    un_viscous_def solve; /* on tets of the same octree; u, reached and fit are set here */
    const un_leaves *leaves;
    const un_leaf_walls *walls;
    const float *phi;     /* at leaves; liquid where negative */
    double *u;            /* at faces, changed in place */
    const uint8_t *known; /* at faces; 1: of the liquid */
    uint8_t *solved;      /* at faces, set: 1 where u is what nodes say and was not known */
    bool pic;             /* faces take their nodes' velocity, and keep none of their own */
} un_viscous_leaves;
/* u_node: at nodes; set. The nodes' velocities of step->walls are given. */
un_status un_viscosity_step_leaves(un_viscosity *viscosity, un_arena *arena,
                                   un_viscous_leaves *step, un_vec3 *u_node,
                                   un_viscous_report *report);

/* ---- a viscous step on tets that conform to surface and walls (stuffed.c) ---- */

typedef struct un_viscous_stuffed {
    const un_stuffing *mesh;
    double *u;               /* at faces, along their normals; changed in place */
    un_vec3 *u_node;         /* at nodes, of these; changed in place */
    un_bodies *bodies;       /* those that the liquid sticks to and moves are dragged */
    const un_scene_def *def; /* viscosity, density, slip along sides */
    double dt, tolerance;
    int32_t iteration_limit;
    bool keeps_volume; /* by a pressure of its own */
    double *p;         /* at nodes: that pressure, Pa; NULL: nobody asks */
    bool laplacian;    /* as in un_viscous_def */
} un_viscous_stuffed;
un_status un_viscosity_step_stuffed(un_viscosity *viscosity, un_arena *arena,
                                    const un_viscous_stuffed *step, un_viscous_report *report);

#endif
