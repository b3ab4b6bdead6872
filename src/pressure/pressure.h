/* Pressure: assembly, projection to a divergence-free velocity, friction at walls. */
#ifndef UN_PRESSURE_H
#define UN_PRESSURE_H

#include "base/base.h"
#include "linalg/linalg.h"
#include "mesh/mesh.h"
#include "particles/particles.h"
#include "sources/sources.h"
#include "surface/surface.h"

/* Applies solver.kind and solver.dump of the scene; creates the folder (solver.c). */
un_status un_pressure_configure(un_solver *solver, const un_scene_def *def);
/* p += more. */
void un_pressure_add(un_context *ctx, double *p, const double *more, int64_t count);

/* Bodies that the liquid moves, as columns of the system (coupling.c). */
typedef struct un_coupled_body {
    int32_t body, first_row, row_count, first_column, column_count;
    bool light;          /* much lighter than the liquid */
    double factor[6][6]; /* L with L L^T the inverse of its mass */
} un_coupled_body;
typedef struct un_coupling {
    un_columns columns; /* count 0: nothing is coupled */
    int32_t weak;       /* of them, at the end; see un_system */
    un_coupled_body *body;
    int32_t body_count;
    double unit;       /* N s in a row for an x of 1 */
    int32_t *body_row; /* by body: the rows it pushes on, */
    double (*push)[6]; /* and how */
    int32_t *first, *row;
    double *val, *set_val;
    double *together; /* by row: C C^T x */
    size_t capacity[8];
} un_coupling;

/* The system of a projection. Its unknowns sit at some of a mesh's places: cells of the grid, nodes
 * or tets. Memory is kept from step to step. */
typedef struct un_pressure {
    un_context *ctx;
    un_solver *solver;
    int32_t *index; /* by place: the unknown's number, -1 none */
    int32_t *place; /* by unknown */
    un_csr matrix;
    double *rhs, *x;
    bool again; /* the matrix is that of the last solve */
    /* Rows that have let go of a wall (release.c). */
    uint8_t *free;
    int32_t free_count, solve_count; /* of the last projection; solve_count: solves that it took */
    double *set_val, *set_rhs;       /* the system without them; NULL until there are any */
    un_coupling coupling;
    /* Several ranks, as un_system has it: rows of this one, and copies of those next to them, all
     * columns of own rows among them. Without `beside` all rows are here. */
    un_part own;
    un_halo *beside;
    int64_t *first; /* by rank: its first row; and the end */
    /* on the grid only: */
    const un_grid *grid;
    un_curve curve;     /* the order of the grid's rows, by which cells are numbered */
    un_ids near;        /* on several ranks: rows of cells beside own ones */
    double *p;          /* at cells, Pa; the guess for the next step, zero outside the liquid */
    const double *more; /* at cells, Pa: the rest of the pressure, for probes; NULL: none */
    size_t capacity[10];
} un_pressure;
/* Where liquid has let go of a wall, a pressure is -0.0: the next step begins with that. */
static inline bool un_pressure_let_go(double p)
{
    return p == 0 && signbit(p);
}

/* grid: NULL for projections on tets. */
un_status un_pressure_create(un_context *ctx, const un_grid *grid, un_pressure **pressure);
void un_pressure_destroy(un_pressure *pressure);

/* ---- on the grid: pressure at cells, velocities on faces (project.c) ---- */

typedef struct un_projection {
    double *const *u;      /* face velocities, changed in place */
    uint8_t *const *known; /* set to 1 at faces the projection has made valid, 0 elsewhere */
    const float *phi;      /* at cells; liquid where negative */
    un_walls *walls;       /* their velocities follow `bodies` */
    /* At cells, Pa: the surface's pressure, linear between a liquid cell and the one in the air.
     * Must be set in all liquid cells and next to them; away from the surface any smooth values
     * will do. NULL: zero */
    const double *surface;
    double dt, kick; /* s: the step, in which liquid moves; the time that pressure acts */
    double density, tolerance;
    const float *densities; /* at cells, kg/m3; NULL: `density` everywhere */
    const double *before;   /* at cells, Pa: as in un_tet_projection; NULL: nothing */
    int32_t iteration_limit;
    double let_go;       /* m/s: pressure that pulls liquid onto a wall by more than this lets it
                          * go; 0: never */
    double expansion;    /* 1/s: divergence wanted everywhere in the liquid */
    double pace;         /* s: un_scene_pace, in which crowded liquid evens out */
    const float *colour; /* at cells: the particles' volume fraction; may be NULL */
    /* at cells: beyond `deepest` particles do not tell crowding; NULL: they do everywhere */
    const uint8_t *depth;
    double deepest;
    const un_inflow *inflow; /* cells that liquid was added to; NULL: none */
    un_bodies *bodies; /* those of the walls: gets the pressure's impulses on bodies that the liquid
                        * moves; NULL: there are none */
} un_projection;

typedef struct un_projection_report {
    un_solve_report solve;
    int64_t cell_count;    /* liquid cells */
    double max_divergence; /* left over, 1/s */
} un_projection_report;

/* After un_pressure_project, what all forces since `before` gave the liquid on the faces, with the
 * masses that the projection reckons with: open, and up to the surface. */
void un_pressure_impulse(const un_pressure *pr, const un_projection *in, double *const before[3],
                         un_impulse *out);
un_status un_pressure_project(un_pressure *pressure, const un_projection *projection,
                              un_projection_report *report);

/* Pressure at x, Pa, from the nearest liquid cell and the slope there; 0 outside the liquid. */
double un_pressure_at(const un_pressure *pressure, un_vec3 x);
/* Forgets which cells are liquid, until the next projection. */
void un_pressure_forget(un_pressure *pressure);

/* Faces and tets open by less than this share are slivers (slivers.c). A dam that breaks around
 * objects, 24 cells, 48 starts with `uniform`: fastest particle 26 m/s without, 10 m/s at 0.25, 8
 * at 0.35. A paddle at 2.8 m/s half a cell from a round wall, 20 cells: 55 m/s without. */
#define UN_SLIVER 0.35
/* Closed faces and slivers take the extrapolated velocity without its part into the wall: zero
 * through the domain's sides. Call after extrapolation, for the velocities after the projection and
 * before it (w; may be NULL) alike: particles get the difference, and it must not push them off the
 * wall. Faces with known = 1 belong to the projection and are not changed. */
un_status un_pressure_constrain(un_context *ctx, double *const u[3], double *const w[3],
                                uint8_t *const known[3], const un_grid *grid,
                                const un_walls *walls);
/* Slows liquid that slides along rough solids: the slip falls by the solid's friction every 1/100
 * s. Viscous liquid has rules of its own: viscosity is at cells, NULL where there is none. */
void un_pressure_friction(un_context *ctx, double *const u[3], const un_grid *grid,
                          const un_walls *walls, const float *viscosity, double dt);

/* After the projections of a step, takes velocities of slivers out of the liquid's (slivers.c).
 * known: as the projection left it; becomes 0 for slivers at solids that stand still, to be
 * extrapolated. */
void un_pressure_calm_grid(un_context *ctx, double *const u[3], uint8_t *const known[3],
                           const un_walls *walls);
/* p: as the projection left it, -0 where the wall has let go. */
/* Afterwards: the faces that tell how the projection changed the liquid's velocity. Those are the
 * known ones but for slivers at solids that move, which have a velocity between both. */
void un_pressure_find_changed(un_context *ctx, uint8_t *const changed[3], uint8_t *const known[3],
                              const un_walls *walls);
void un_pressure_find_changed_leaves(un_context *ctx, uint8_t *changed, const uint8_t *known,
                                     const un_leaves *leaves, const un_leaf_walls *walls);
void un_pressure_calm_leaves(un_context *ctx, double *u, uint8_t *known, const un_leaves *leaves,
                             const un_leaf_walls *walls, const double *p);
void un_pressure_calm_tets(un_context *ctx, un_vec3 *u, uint8_t *known, uint8_t *changed,
                           const un_tet_walls *walls);
void un_pressure_calm_faces(un_context *ctx, double *u, uint8_t *known, const un_faces *faces,
                            const un_tet_walls *walls);

/* ---- on a grid that warps: nodal pressure, velocities at cells [Ibayashi18 section 6]
 * (warp.c) ---- */

typedef struct un_warp_projection {
    const un_warp *warp;
    const un_walls *walls; /* on the warp */
    un_vec3 *u;            /* at cells, changed in place */
    uint8_t *known;        /* at cells: set to 1 where the projection has made u valid, else 0 */
    const double *phi;     /* at places, m, a distance near the surface; liquid where negative */
    double *p;             /* at places, Pa: the guess, then the result; 0 in the air */
    const double *surface; /* at places, Pa: the surface's pressure, as in un_projection, linear in
                            * each cell; NULL: zero */
    const float *source;   /* at cells, 1/s: divergence wanted; NULL: none */
    const un_inflow *inflow;
    double dt, kick, density, tolerance; /* as in un_projection */
    int32_t iteration_limit;
    double let_go;
    un_bodies *bodies;   /* as in un_projection */
    un_impulse *impulse; /* `mass` given: what pressure and gravity, which changed velocities by so
                          * much, gave the liquid; told from what the pressure does to bodies and
                          * walls, as in un_tet_impulse. NULL: nobody asks */
    un_vec3 gravity;
    bool first_order; /* p = 0 at air nodes, for comparison */
} un_warp_projection;
un_status un_warp_pressure_project(un_pressure *pressure, un_arena *arena,
                                   const un_warp_projection *projection,
                                   un_projection_report *report);
/* Pressure at x, Pa. Nodes that solids hold take what the weight (density times gravity, N/m3)
 * makes of the others'. p, phi: at places. */
double un_warp_pressure_at(const double *p, const double *phi, const un_walls *walls, un_vec3 x,
                           un_vec3 weight);
/* Divergence wanted at cells: the ledger's, and what evens out crowding, as in un_projection. phi
 * and colour: at cells. */
typedef struct un_warp_divergence {
    float *source; /* set, 1/s */
    const un_walls *walls;
    const float *phi, *colour;
    const uint8_t *depth; /* at cells: beyond `deepest` particles do not tell crowding; NULL: they
                           * do everywhere */
    double deepest;
    double expansion, dt, pace;
} un_warp_divergence;
void un_warp_want_divergence(un_context *ctx, const un_warp_divergence *def);

/* ---- on tets: nodal pressure, velocities at tets [Ando13 section 3] (tets.c, ghost.c) ---- */

typedef struct un_tet_projection {
    const un_tets *mesh;    /* over ranks: not with bodies */
    un_vec3 *u;             /* at tets, changed in place */
    uint8_t *known;         /* at tets: set to 1 where the projection has made u valid, else 0 */
    const float *phi;       /* at nodes; liquid where negative. Over ranks: at its own nodes and
                             * ghosts, elsewhere positive */
    un_tet_walls *walls;    /* NULL: everything is open; their velocities follow `bodies` */
    const un_vec3 *u_solid; /* at tets; NULL: nothing moves */
    double *p;              /* at nodes, Pa: the guess, then the result; 0 at air nodes */
    const double *surface;  /* at nodes, Pa: the surface's pressure, linear in each tet; as in
                             * un_projection. NULL: zero */
    const double *before;   /* at nodes, Pa: what an earlier projection of this step found, which
                             * walls feel too; NULL: nothing */
    const float *source;    /* at nodes, 1/s: divergence wanted; NULL: none */
    const float *lightness; /* at tets: `density` over the local density; NULL: 1 */
    double dt, density, tolerance;
    int32_t iteration_limit;
    double let_go;     /* as in un_projection */
    un_bodies *bodies; /* as in un_projection */
    bool first_order;  /* p = 0 at air nodes, for comparison */
    bool by_row;       /* ghosts by row instead of eq. 12, see ghost.c; calmer where phi is noisy */
} un_tet_projection;

typedef struct un_tet_projection_report {
    un_solve_report solve;
    int32_t node_count;    /* unknowns: liquid nodes without those left out */
    int32_t left_count;    /* liquid nodes at the surface that were left out, see tets.c */
    int32_t cut_count;     /* tets that the surface cuts */
    int32_t obtuse_count;  /* cut tets with couplings that eq. 12 cannot use */
    bool cautious;         /* solved twice: the first matrix was not positive definite */
    double max_divergence; /* left over at nodes, 1/s */
} un_tet_projection_report;

/* As un_pressure_impulse. Ghosts keep momentum only as well as they know the surface, so that what
 * the pressure gives is told from what it does to bodies and walls, where no other force acts than
 * gravity, which changed velocities by so much. */
void un_tet_impulse(const un_pressure *pr, const un_tet_projection *in, const un_vec3 *before,
                    un_vec3 gravity, un_impulse *out);
un_status un_tet_pressure_project(un_pressure *pressure, un_arena *arena,
                                  const un_tet_projection *projection,
                                  un_tet_projection_report *report);

/* ---- on tets: pressure at tets, normal velocities on faces [Batty11] (faces.c) ---- */

typedef struct un_face_projection {
    const un_tets *mesh;
    const un_faces *faces;
    double *u;              /* at faces, along their normals; changed in place */
    uint8_t *known;         /* at faces: set to 1 where the projection has made u valid, else 0 */
    const float *phi;       /* at nodes; a tet is liquid where the mean of its four is negative */
    un_tet_walls *walls;    /* NULL: everything is open; their velocities follow `bodies` */
    const bool *open_sides; /* of the domain; NULL: all closed */
    double *p;              /* at tets, Pa: the guess, then the result; 0 in the air */
    const double *surface;  /* as in un_tet_projection */
    const float *source;    /* at nodes, 1/s: divergence wanted; NULL: none */
    const float *lightness; /* at tets: `density` over the local density; NULL: 1 */
    un_vec3 gravity;        /* acts in the projection itself */
    const double *before;   /* at tets, as in un_tet_projection */
    double let_go;          /* as in un_projection */
    double dt, density, tolerance;
    int32_t iteration_limit;
    un_bodies *bodies; /* as in un_projection */
} un_face_projection;

typedef struct un_face_projection_report {
    un_solve_report solve;
    int32_t tet_count;     /* liquid tets */
    double max_divergence; /* left over, 1/s */
} un_face_projection_report;

un_status un_face_pressure_project(un_pressure *pressure, const un_face_projection *projection,
                                   un_face_projection_report *report);

/* ---- on tets that conform to surface and walls [Chentanez07] (stuffed.c) ---- */

/* What lies beyond the faces of mesh->boundary, by place there (stuffed_boundary.c). */
typedef struct un_stuffed_rim {
    un_vec3 *foot; /* at the air: the nearest point of the liquid's surface; NAN at walls */
    double *wall;  /* at walls: the normal velocity, m/s; of bodies that the liquid moves what comes
                    * to theirs */
    int32_t *body; /* such a body, -1 none; NULL: there are none */
    un_bodies *bodies;
    const double *grown; /* by body, as in un_track_walls; NULL: none */
} un_stuffed_rim;
void un_stuffed_find_rim(un_context *ctx, un_stuffed_rim *rim, const un_stuffing *mesh,
                         const un_track *track);
/* The wall's normal velocity at place b, with the body's. */
double un_stuffed_wall_speed(const un_stuffed_rim *rim, const un_stuffing *mesh, int64_t b);

typedef struct un_stuffed_projection {
    const un_stuffing *mesh;
    double *u;      /* at faces, along their normals; changed in place */
    double *p;      /* at tets, Pa: the guess, then the result */
    un_vec3 *slope; /* at tets, Pa/m: set to its gradient */
    bool warm;      /* the guess is one, and good enough for gradients between its tets */
    /* Its bodies get the pressure's impulses. */
    const un_stuffed_rim *rim;
    const double *surface;  /* by place in mesh->boundary: the pressure at the foot, Pa; NULL: 0 */
    const uint8_t *gone;    /* by place there: 1 at walls that have let go; NULL: none */
    const bool *open_sides; /* of the domain; NULL: all closed */
    const double *source;   /* at tets, 1/s: divergence wanted; NULL: none */
    un_vec3 gravity;        /* acts in the projection itself */
    double dt, density, tolerance;
    int32_t corrections; /* further solves, for gradients between centres that are oblique */
    int32_t iteration_limit;
    /* For several projections on one mesh, emptied before the first; NULL: there is only one. */
    struct un_stuffed_room *room;
} un_stuffed_projection;

/* Scratch of a projection, from its arena. */
typedef struct un_stuffed_room {
    double *air, *oblique, *flux;
    int32_t *rim;
    un_vec3 *gradient;
    struct un_stuffed_path *path;
} un_stuffed_room;

typedef struct un_stuffed_projection_report {
    un_solve_report solve; /* iterations of all solves */
    double max_divergence; /* left over, 1/s */
} un_stuffed_projection_report;

un_status un_stuffed_pressure_project(un_pressure *pressure, un_arena *arena,
                                      const un_stuffed_projection *projection,
                                      un_stuffed_projection_report *report);

/* Air faces that would pass a wall within dt become walls; liquid may still move up to the true
 * wall in that time. Returns how many there are. */
int64_t un_stuffed_meet_walls(un_context *ctx, un_stuffed_rim *rim, const un_stuffing *mesh,
                              const double *u, const un_track_walls *walls, double dt);
/* Walls that pull by more than the slack of release.c let go: `gone` becomes 1, and the foot lies
 * in the wall. Walls that liquid runs into again hold it again. Returns how many have changed. */
typedef struct un_stuffed_release {
    uint8_t *gone;
    un_stuffed_rim *rim;
    const un_stuffing *mesh;
    const double *u, *p;
    const bool *open_sides;
    double let_go; /* m/s; 0: nothing does */
    double scale;  /* dt / density */
} un_stuffed_release;
int64_t un_stuffed_let_go(un_context *ctx, const un_stuffed_release *release);
/* The box around walls that have let go, this much larger; empty if there are none. */
un_box3 un_stuffed_gone_in(const un_stuffing *mesh, const uint8_t *gone, double margin);
/* The pressure at the tets of a new mesh, from the old one's and its gradient. */
void un_stuffed_pressure_carry(un_context *ctx, double *p, const un_stuffing *mesh,
                               const double *p_old, const un_vec3 *slope, const un_stuffing *old);
/* p and what viscous liquid adds to it at the nodes of the old mesh, at tets. */
void un_stuffed_pressure_total(un_context *ctx, double *total, const un_stuffing *mesh,
                               const double *p, const double *node, const un_stuffing *old);
/* At x, Pa; 0 outside the mesh. weight: density times gravity, N/m3. */
double un_stuffed_pressure_at(const un_stuffing *mesh, const double *p, un_vec3 x, un_vec3 weight,
                              bool *wet);

/* The tets' guess from the pressure at nodes; and the pressure at nodes from the tets in the
 * liquid, corrected for the weight (density times gravity, N/m3) between centre and node
 * (face_nodes.c). */
void un_face_pressure_guess(un_context *ctx, double *p_tet, double *p_node, const un_tets *mesh);
void un_face_pressure_to_nodes(const un_pressure *pressure, double *p_node, double *p_tet,
                               const un_tets *mesh, const float *phi, un_vec3 weight);

/* ---- on leaves of an octree: pressure at centres, velocities on faces (leaves.c) ---- */

typedef struct un_leaf_projection {
    const un_leaves *leaves;
    double *u;             /* at faces, changed in place */
    double *before;        /* at faces: what particles take u's change from; or NULL */
    uint8_t *known;        /* at faces: set to 1 where the projection has made u valid, else 0 */
    const float *phi;      /* at centres; liquid where negative */
    un_leaf_walls *walls;  /* their velocities follow `bodies` */
    const double *surface; /* at centres, Pa: the surface's pressure, as in un_projection */
    un_bodies *bodies;     /* as in un_projection */
    double *p;             /* at centres, Pa: the guess, then the result; 0 in the air */
    double dt, kick;       /* as in un_projection */
    double density, tolerance;
    int32_t iteration_limit;
    double let_go, expansion, pace;
    const float *colour;   /* at centres: the particles' volume fraction; may be NULL */
    const double *emitted; /* at leaves: volume that appeared there, m3; NULL: none */
    const double *earlier; /* at leaves, Pa: as `before` in un_tet_projection; NULL: nothing */
    bool again;            /* another projection follows in this step, which parts heaps */
} un_leaf_projection;

typedef struct un_leaf_projection_report {
    un_solve_report solve;
    int32_t cell_count;    /* liquid leaves */
    double max_divergence; /* left over, 1/s */
} un_leaf_projection_report;

un_status un_leaf_pressure_project(un_pressure *pressure, un_arena *arena,
                                   const un_leaf_projection *projection,
                                   un_leaf_projection_report *report);
/* before <- u, u <- u + what the pressure's gradient makes of change.x, so that pressure can
 * balance it exactly. */
/* As un_tet_impulse. */
void un_leaf_impulse(const un_pressure *pr, const un_leaf_projection *in, const double *before,
                     un_vec3 gravity, un_impulse *out);
void un_leaf_accelerate(un_context *ctx, double *u, double *before, un_vec3 change,
                        const un_leaves *leaves, un_leaf_walls *walls);
/* Pressure at x, Pa, from the leaf that holds it and the slope there; 0 outside the liquid. */
double un_leaf_pressure_at(const un_leaves *leaves, const double *p, const float *phi, un_vec3 x);
/* As un_pressure_constrain and un_pressure_friction. */
un_status un_leaf_constrain(un_context *ctx, un_arena *arena, double *u, const uint8_t *known,
                            const un_leaves *leaves, const un_leaf_walls *walls);
void un_leaf_friction(un_context *ctx, double *u, const un_leaves *leaves,
                      const un_leaf_walls *walls, double dt);

/* ---- on tets: the divergence wanted (divergence.c) ---- */

typedef struct un_divergence_def {
    float *source; /* at nodes, set, 1/s */
    const un_tets *mesh;
    const un_tet_walls *walls;
    const float *phi, *colour; /* at nodes: level set; the particles' volume fraction */
    const double *emitted;     /* at nodes: volume that appeared there, m3; NULL: none */
    double expansion;          /* everywhere, 1/s */
    double dt, pace;           /* s; pace: un_scene_pace */
} un_divergence_def;
/* Over ranks, at own nodes. */
void un_pressure_want_divergence(un_context *ctx, un_divergence_def *def);

/* ---- on tets: velocities at walls (constrain_nodes.c) ---- */

typedef struct un_node_constraint {
    un_vec3 *u, *change; /* at nodes: the velocity, and the step's change in it; both changed */
    const uint8_t *known;
    const un_tets *mesh;
    const un_tet_walls *walls;
    const bool *open_sides;
    const double *p;     /* at nodes: where it has let go of walls (un_pressure_let_go) */
    const uint8_t *held; /* at nodes: 1 where viscous liquid sticks, 2 where it does to a body that
                            it moves; NULL: nowhere */
    const un_vec3 *u_held; /* at nodes: the velocity there */
    double dt;
} un_node_constraint;
/* Stops nodes on closed sides and in solids from moving into them, and applies friction; over
 * ranks, own nodes and ghosts. */
un_status un_pressure_constrain_nodes(un_context *ctx, un_node_constraint *def);

/* Bytes for this many liquid cells, including the arrays over the whole grid. */
double un_pressure_bytes(const un_grid *grid, double liquid_cells);

/* ---- the force on a solid (force.c) ---- */

/* The pressure at x, Pa; *wet is set if liquid is there. */
typedef double un_pressure_sample(const void *state, un_vec3 x, bool *wet);

typedef struct un_force {
    const un_body *body;
    const un_grid *grid; /* of finest cells */
    un_vec3 gravity;
    double density;
    int32_t axis;
    un_pressure_sample *pressure;
    const void *state;
} un_force;
/* The component of the force along the axis, N (2D: N/m). */
double un_pressure_force(un_context *ctx, const un_force *force);
/* The same over ranks, which ask one another for the pressure: `ask` is called by all, once, with
 * places in open space. is_open: as a un_pressure_sample would decide it. */
typedef struct un_pressure_seen {
    double p;
    uint64_t wet; /* 1 or 0 */
} un_pressure_seen;
typedef struct un_force_ranks {
    bool (*is_open)(const void *state, un_vec3 x);
    un_status (*ask)(const void *state, const un_vec3 *x, int64_t count, un_pressure_seen *seen);
} un_force_ranks;
un_status un_pressure_force_ranks(un_context *ctx, const un_force *force,
                                  const un_force_ranks *with, double *value);

#endif
