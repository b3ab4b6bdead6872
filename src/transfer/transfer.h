/* Transfer: particles <-> mesh. */
#ifndef UN_TRANSFER_H
#define UN_TRANSFER_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "particles/particles.h"

/* Face velocities: the mean over particles, weighted by volume and a linear kernel. Faces that no
 * particle reaches have weight 0 and velocity 0. */
void un_transfer_to_faces(un_context *ctx, double *const u[3], double *const weight[3],
                          const un_grid *grid, const un_bins *bins, const un_particles *particles);

/* known[a][f]: 1 where particles reach the face, else 0. */
void un_transfer_mark_reached(un_context *ctx, uint8_t *const known[3], double *const weight[3],
                              const un_grid *grid);
/* before <- u, u <- u + change. */
void un_transfer_accelerate(un_context *ctx, double *const u[3], double *const before[3],
                            un_vec3 change, const un_grid *grid);
/* other <- u - other. */
void un_transfer_difference(un_context *ctx, double *other, const double *u, int64_t count);
/* At faces that this rank knows. */
void un_transfer_difference_leaves(double *other, const double *u, const un_leaves *leaves);
/* The largest speed on faces with known = 1, m/s. */
double un_transfer_max_speed(un_context *ctx, double *const u[3], uint8_t *const known[3],
                             const un_grid *grid);

/* known[a][f] != 0 marks faces with a value. Each of `layers` passes gives faces next to known ones
 * the mean of those and marks them: 2 in the first pass, 3 in the second, ... w: a second field to
 * extrapolate, or NULL. */
un_status un_transfer_extrapolate(un_context *ctx, un_arena *arena, double *const u[3],
                                  double *const w[3], uint8_t *const known[3], const un_grid *grid,
                                  int32_t layers);

/* v <- (1 - share) (v + u_new - u_old) + share u_new at each particle that does not fly; those that
 * do get gravity alone. v is taken in the middle of the last step and left in the middle of this
 * one, which lies dt later. The share of PIC is 1 - exp(-rate dt): one rate where the liquid moves,
 * one where it is quiet, so that results do not depend on the number of steps. */
typedef struct un_flip {
    double dt;
    un_vec3 gravity;
    double pic, pic_quiet; /* rates, 1/s */
    double quiet_speed;    /* m/s: at rest well below, in motion well above */
    double thickness;      /* kinematic viscosity, m2/s, unless particles have their own */
    bool pic_thick;        /* on the grid: viscous liquid takes the grid's velocity itself */
} un_flip;
/* The share of PIC that keeps a particle from passing more than a cell of the liquid around it in a
 * step. Otherwise streams that meet within a cell fly on through each other, and every impact adds
 * to the fastest of them (10 instead of 6 m/s in a dam that breaks around objects). slip: the
 * particle's velocity relative to the liquid. */
static inline double un_flip_share(double share, un_vec3 slip, double dt, double h)
{
    double way = un_length(slip) * dt;
    return way > h ? fmax(share, 1 - h / way) : share;
}
/* The way h for un_flip_share, less for a particle that is faster than the liquid around it: beyond
 * the speed of waves as long as a cell it may differ by this share of the liquid's speed. Where
 * liquid is pressed along a wall, particles that have been there for long gain from each that
 * arrives (scenes/dam.lua with 60 to 96 cells: up to 11.6 m/s in a corner, now 8.4). Slower ones
 * are left alone, and all are without gravity. v, now: of the particle and of the liquid. */
#define UN_SLIP_SHARE 0.03
static inline double un_flip_way(un_vec3 v, un_vec3 now, const un_flip *flip, double h)
{
    un_vec3 slip = un_sub(v, now);
    double slip2 = un_dot(slip, slip), g2 = un_dot(flip->gravity, flip->gravity);
    double speed2 = un_dot(now, now);
    if (slip2 * slip2 <= g2 * h * h || g2 == 0 || un_dot(v, v) <= speed2) return h; /* most */
    return fmin(h, (UN_SLIP_SHARE * sqrt(speed2) + sqrt(sqrt(g2) * h)) * flip->dt);
}
void un_transfer_to_particles(un_context *ctx, un_particles *particles, double *const u_new[3],
                              double *const u_old[3], const un_grid *grid, const un_flip *flip);

/* ---- on a grid that warps: velocities at cell centres, APIC (warp.c) ---- */

/* The mean over particles, each with its affine velocity [Jiang et al. 2015]. known: 1 where
 * particles reach the cell, else 0, with velocity 0. */
un_status un_transfer_to_centres(un_context *ctx, un_arena *arena, un_vec3 *u, uint8_t *known,
                                 const un_warp *warp, const un_bins *bins,
                                 const un_particles *particles);
/* Particles outside the liquid fall the more freely the farther out they are, between these, in
 * cells. If they followed the liquid until they fly, those that creep up along a wall would fall
 * and rise again, at 15 cm/s in still water. */
#define UN_FALLS_FROM 0.25
#define UN_FALLS_TO 1.0
/* The share of free fall at eight places. phi: at cells, in reference space. */
void un_transfer_falls_eight(const float *phi, const un_walls *walls, const un_warp_eight *e,
                             double falls[8]);
/* Particles that do not fly take the velocity at their place, and how it changes around it; where
 * the liquid is quiet they forget that at the rate flip->pic_quiet. Those that fly get gravity. As
 * in un_transfer_to_particles, v is left in the middle of the step. */
void un_transfer_from_centres(un_context *ctx, un_particles *particles, const un_vec3 *u,
                              const float *phi, const un_walls *walls, const un_flip *flip);
/* Each of `layers` passes gives cells next to known ones the mean of those and marks them: 2, 3,
 * ... Then the velocity of cells in solids loses its part into them, and their slip falls by
 * friction; known ones (1) keep theirs. Padding mirrors the cells next to it; where liquid has let
 * go of the side (p = -0.0 at its nodes) it follows them. */
typedef struct un_centres_extend {
    un_vec3 *u;
    uint8_t *known;
    const un_warp *warp;
    const un_walls *walls; /* on the warp */
    const double *p;       /* at nodes; NULL: nothing lets go */
    int32_t layers;
    double dt;
} un_centres_extend;
un_status un_transfer_extend_centres(un_context *ctx, un_arena *arena,
                                     const un_centres_extend *def);
/* Velocities on faces of reference space: the mean of the cells on both sides. From the arena. */
un_status un_transfer_centres_to_faces(un_context *ctx, un_arena *arena, double *u_face[3],
                                       const un_vec3 *u, const un_warp *warp);
/* Most cells that liquid crosses along an axis in a second, in known cells (1). */
double un_transfer_rate_centres(un_context *ctx, const un_vec3 *u, const uint8_t *known,
                                const un_warp *warp);

/* ---- on tets (tets.c) ---- */

/* Volume and mass-weighted mean velocity at nodes; each particle is distributed by its barycentric
 * coordinates. A particle larger than the cells around it counts as 2^3, 4^3 or 8^3 parts spread
 * over the cube that it fills. known[n]: 1 where at least a thousandth of a cell is filled; else 0,
 * and the velocity is unreliable, or 0 where no particle reaches. */
un_status un_transfer_to_nodes(un_context *ctx, un_arena *arena, float *volume, un_vec3 *u,
                               uint8_t *known, const un_tets *mesh, const un_tet_bins *bins,
                               const un_particles *particles);
/* Mean density and viscosity (x and y) of mixed particles at nodes; zero where none reaches. */
un_status un_transfer_matter_to_nodes(un_context *ctx, un_arena *arena, un_vec3 *matter,
                                      uint8_t *known, const un_tets *mesh, const un_tet_bins *bins,
                                      const un_particles *particles);
/* The centre of the particles' mass at each node, relative to the node: the node's mean velocity is
 * the velocity at this point. */
un_status un_transfer_centres(un_context *ctx, un_arena *arena, un_vec3 *centre, uint8_t *known,
                              const un_tets *mesh, const un_tet_bins *bins,
                              const un_particles *particles);
/* Interpolates a nodal field to the particles and back, at nodes where `where` is above 0; out is u
 * itself at others and where there is no particle. */
un_status un_transfer_blur(un_context *ctx, un_arena *arena, un_vec3 *out, const un_vec3 *u,
                           const float *where, const un_tets *mesh, const un_tet_bins *bins,
                           const un_particles *particles);
/* Each of `layers` passes gives nodes next to known ones the mean of those and marks them: 2 in the
 * first pass, 3 in the second, ... w: a second field to extrapolate, or NULL. Over ranks, all is to
 * be known at ghosts, and is afterwards. */
un_status un_transfer_extrapolate_nodes(un_context *ctx, un_arena *arena, un_vec3 *u, un_vec3 *w,
                                        uint8_t *known, const un_tets *mesh, int32_t layers);
/* Tets take the mean of their known nodes, except those with keep[t] = 1; keep may be NULL. Over
 * ranks this is right at tets around own nodes, if ghosts are. */
void un_transfer_nodes_to_tets(un_context *ctx, un_vec3 *u_tet, const un_vec3 *u_node,
                               const uint8_t *known, const un_tets *mesh, const uint8_t *keep);
/* Nodes take the mean of their known tets, weighted by volume (and open share, if not NULL);
 * known_node: 1 if a node has a known tet, else 0. Over ranks, own nodes and ghosts. */
un_status un_transfer_tets_to_nodes(un_context *ctx, un_vec3 *u_node, uint8_t *known_node,
                                    const un_vec3 *u_tet, const uint8_t *known_tet,
                                    const un_tets *mesh, const float *open);

/* A velocity field with values at nodes and at the centres of tets, continuous and linear on the
 * four parts into which the centre divides a tet [Ando13 section 3]. */
typedef struct un_tet_field {
    const un_vec3 *tet, *node;
} un_tet_field;
/* If w_k is the smallest coordinate, the point lies opposite node k, and x = 4 w_k x_centre + sum_i
 * (w_i - w_k) x_i. */
static inline un_vec3 un_tet_field_at(const un_tet_field *f, const un_tets *mesh,
                                      const un_tets_place *p)
{
    double a = p->w[0] < p->w[1] ? p->w[0] : p->w[1];
    double b = p->w[2] < p->w[3] ? p->w[2] : p->w[3];
    double k = a < b ? a : b;
    const int32_t *n = mesh->tet[p->tet];
    un_vec3 u = un_scale(f->tet[p->tet], 4 * k);
    for (int i = 0; i < 4; i++) u = un_mad(u, f->node[n[i]], p->w[i] - k);
    return u;
}
/* Fields at places that may be other ranks' (ask.c); all ranks call it, with any number of
 * questions. */
#define UN_ASKED_MAX 2
typedef struct un_tet_question {
    un_vec3 x;
    int32_t rank, tet; /* where to look first, -1: nowhere; then where it was found, there */
    bool found;
    un_vec3 value[UN_ASKED_MAX]; /* of the fields */
} un_tet_question;
un_status un_tet_ask(un_context *ctx, un_arena *arena, const un_tets *mesh,
                     const un_tet_field *fields, int32_t field_count, un_tet_question *questions,
                     int64_t count);
/* Viscosity also damps particle motion finer than cells, which the mesh does not see, at this rate
 * times nu / h^2. Damping all of it, which is PIC, would add a tenth to the viscosity. */
#define UN_VISCOUS_PIC 1.0
/* How much noise damping quiet liquid still needs beside its own viscosity: 1 in water, little
 * where the Reynolds number of a cell at the quiet speed is small. */
static inline double un_noise_share(double nu, double h, double quiet_speed)
{
    double re = quiet_speed * h / nu;
    return nu > 0 ? 0.1 * re / (1 + 0.1 * re) : 1;
}

/* As un_transfer_to_particles: v <- (1 - pic) (v + change) + pic (u + sharp), with sharp, at nodes,
 * the detail that a round trip through the mesh blurs [Hammerquist & Nairn 2017, XPIC of order 2]:
 * noise goes, waves stay. NULL: none. Particles spread over parts do not get it, because their way
 * back differs from their way to the mesh. The rate of PIC is weaker for larger particles [Ando13
 * eq. 14]: here flip->pic and pic_quiet are rates in 1/s for particles of radius_min; quiet_speed
 * is also theirs and grows with the root of the radius. */
un_status un_transfer_tets_to_particles(un_context *ctx, un_arena *arena, un_particles *particles,
                                        const un_tet_bins *bins, const un_tets *mesh,
                                        const un_tet_field *u, const un_tet_field *change,
                                        const un_vec3 *sharp, const un_flip *flip,
                                        double radius_min);

/* ---- the step's change (change.c) ---- */

/* Adds the same change to all. */
void un_transfer_add(un_context *ctx, un_vec3 *u, int64_t count, un_vec3 change);
/* u - was where known is 1, else 0; change may be `was` itself. */
void un_transfer_change(un_context *ctx, un_vec3 *change, const un_vec3 *u, const un_vec3 *was,
                        const uint8_t *known, int64_t count);
/* u += change where known. */
void un_transfer_add_change(un_context *ctx, un_vec3 *u, const un_vec3 *change,
                            const uint8_t *known, int64_t count);

/* ---- non-uniform liquids (mix.c) ---- */

typedef struct un_mixture {
    double density_all, viscosity_all; /* kg/m3, Pa s: used where the arrays are NULL */
    float *density, *viscosity;        /* at nodes */
    float *lightness;                  /* at tets: density_all over the local density */
    size_t capacity[3];
} un_mixture;
static inline double un_mixture_viscosity(const un_mixture *m, int64_t n)
{
    return m->viscosity ? (double)m->viscosity[n] : m->viscosity_all;
}
/* Kinematic viscosity at node n, m2/s. */
static inline double un_mixture_thickness(const un_mixture *m, int64_t n)
{
    return m->viscosity ? (double)(m->viscosity[n] / m->density[n])
                        : m->viscosity_all / m->density_all;
}
/* Fills the arrays, if particles carry their own matter. Empties the arena. */
un_status un_transfer_mix(un_context *ctx, un_arena *arena, un_mixture *mix, const un_tets *mesh,
                          const un_tet_bins *bins, const un_particles *particles);
void un_mixture_free(un_context *ctx, un_mixture *mix); /* the arrays */
/* A node's velocity is the mean over the particles around it; at the surface that is the velocity
 * of a point inside. A spinning drop would seem to lag behind there, and viscosity would brake all
 * of it. This extrapolates it along the local gradient to the node itself, in viscous liquid; round
 * trips then keep all linear velocities. Empties the arena. */
un_status un_transfer_move_to_nodes(un_context *ctx, un_arena *arena, un_vec3 *u_node,
                                    const un_mixture *mix, const un_tets *mesh,
                                    const un_tet_bins *bins, const un_particles *particles);

/* ---- the same on the staggered grid (face_centres.c) ---- */

/* At cells; mix->lightness stays NULL. Empties the arena. */
un_status un_transfer_mix_cells(un_context *ctx, un_arena *arena, un_mixture *mix,
                                const un_grid *grid, const un_bins *bins,
                                const un_particles *particles);
/* After un_transfer_to_faces, where viscosity (at cells; NULL: everywhere) is above 0. Empties the
 * arena. */
un_status un_transfer_move_to_faces(un_context *ctx, un_arena *arena, double *const u[3],
                                    double *const weight[3], const float *viscosity,
                                    const un_grid *grid, const un_bins *bins,
                                    const un_particles *particles);

/* ---- calming quiet liquid (calm.c) ---- */

typedef struct un_calm_def {
    un_vec3 *u_tet; /* the mean of u_node, replaced by that of the calmed velocity */
    un_vec3 *sharp; /* at nodes, set: detail that a round trip through the particles would blur */
    float *quiet;   /* at nodes, set: 1 at rest, 0 in motion */
    const un_vec3 *u_node;
    const uint8_t *known_node;
    const un_tets *mesh;
    const un_tet_bins *bins;
    const un_particles *particles;
    const un_mixture *mix;
    bool viscous;
    double quiet_speed, dt, pace; /* pace: un_scene_pace */
} un_calm_def;
/* Empties the arena. Over ranks, u_node is to be known at ghosts; sharp and quiet are afterwards,
 * and u_tet at tets around own nodes. */
un_status un_transfer_calm(un_context *ctx, un_arena *arena, un_calm_def *def);

/* Quiet is slower than this share of sqrt(g h), the speed at which a bump of one cell collapses. */
#define UN_QUIET_SHARE 0.1
static inline double un_quiet_speed(double gravity, double h)
{
    return UN_QUIET_SHARE * sqrt(gravity * h);
}
/* The rate at which quiet liquid relaxes to the mesh's velocity, in a pace (un_scene_pace). A
 * 32-cell tank at rest starts with 2.1 cm/s at 30, 1.8 at 60 and 1.6 at 200; a standing wave at 48
 * cells keeps its height. */
#define UN_PIC_QUIET 200.0

/* ---- marking particles (mark.c) ---- */

/* The level set rounds off edges and leaves the particles in them outside. Water flings them off.
 * Thick liquid sheds no drops, nor does liquid that surface tension holds together: there they stay
 * part of it. */
typedef struct un_cling {
    bool viscous;          /* some of the liquid is viscous */
    double thickness;      /* kinematic viscosity of particles without their own, m2/s */
    double tension;        /* over the density, m3/s2 */
    double gravity;        /* m/s2 */
    double h;              /* of the finest cells, m */
    double reach;          /* m: cells of the grid count as liquid up to here */
    double touch;          /* m: particles that are no farther outside belong to the liquid */
    const un_walls *walls; /* those that are thin hide cells from particles; NULL: none */
} un_cling;
/* True if particle q lies outside the level set but sticks to the liquid nearby. Viscous liquid is
 * thick if it does not outrun viscosity while it falls by the particle's radius; tension holds a
 * particle if it is stronger than its weight. */
bool un_cling_holds(const un_cling *cling, const un_markers *markers, int64_t q, double depth);
/* The same on the grid, where particles have one size. */
bool un_cling_holds_in_grid(const un_cling *cling, const un_particles *particles, int64_t q,
                            double depth);
/* How far outside a particle of this radius may lie, m. */
double un_cling_reach(const un_cling *cling, double radius);

/* On the grid: marks particles as ballistic if none of the eight (2D: four) cells whose centres
 * surround them is liquid (phi < 0), unless they cling (NULL: none does). Returns their number, and
 * the volume of particles where phi < 0 in `thick` cells (NULL: in all). */
int64_t un_transfer_mark_ballistic(un_context *ctx, un_particles *particles, const float *phi,
                                   const un_grid *grid, const uint8_t *thick, const un_cling *cling,
                                   double *volume_inside);
/* The same of particles [begin, end): adds their number and volume to the sums. */
void un_transfer_mark_some(un_particles *particles, const float *phi, const un_grid *grid,
                           const uint8_t *thick, const un_cling *cling, int64_t begin, int64_t end,
                           double sums[2]);
/* On tets: also sets depth, normal and distance to walls of each particle, from the level set phi
 * and the distance to walls at nodes. Counts ballistic particles; returns the volume of particles
 * where phi < 0 in `thick` tets (NULL: in all). Over ranks, sets those of this rank's own
 * particles; count and volume are of all ranks. */
double un_transfer_mark(un_context *ctx, un_markers *markers, const un_tets *mesh, const float *phi,
                        const float *wall, const uint8_t *thick, const un_cling *cling);

/* Volume that emitters added inside the liquid, at nodes, m3: the next projection makes room for
 * it. */
typedef struct un_emitted {
    double *volume;
    bool any; /* else volume is not valid */
    size_t capacity;
} un_emitted;
/* Distributes the particles marked as emitted to the nodes of a new mesh. Call before
 * un_transfer_mark, which clears the mark. */
un_status un_emitted_place(un_context *ctx, un_emitted *emitted, const un_tets *mesh,
                           const un_particles *particles);
/* One more of them. */
void un_emitted_add(un_emitted *emitted, const un_tets *mesh, const un_tets_place *place,
                    double volume);
un_status un_emitted_need(un_context *ctx, un_emitted *emitted, int64_t nodes);
void un_emitted_free(un_context *ctx, un_emitted *emitted);

/* ---- on leaves of an octree (leaves.c) ---- */

/* From the particles, sorted by leaf. */
typedef struct un_leaf_gather {
    double *u;      /* velocity, by face */
    uint8_t *known; /* by face: 1 where particles reach it, else 0, with velocity 0 */
    float *colour;  /* by leaf: their smoothed share of its volume, as if there were no walls */
    /* By face: the centre of the particles that u is the mean of, from the face, in its edges; then
     * how much of it they fill. NULL: nobody asks. */
    float (*centre)[4];
} un_leaf_gather;
un_status un_transfer_to_leaves(un_context *ctx, un_arena *arena, const un_leaf_gather *out,
                                const un_leaves *leaves, const un_tet_bins *bins,
                                const un_particles *particles);
/* As un_transfer_move_to_faces, where known is 1. Empties the arena. */
un_status un_transfer_move_to_leaf_faces(un_context *ctx, un_arena *arena, double *u,
                                         const uint8_t *known, const float (*centre)[4],
                                         const un_leaves *leaves);
/* As un_transfer_extrapolate; faces farther than `layers` away get 0. */
un_status un_transfer_extrapolate_leaves(un_context *ctx, un_arena *arena, double *u, double *w,
                                         uint8_t *known, const un_leaves *leaves, int32_t layers);
/* As un_transfer_to_particles. at: by axis and particle, the flow where it is; NULL: nobody asks.
 */
void un_transfer_leaves_to_particles(un_context *ctx, un_particles *particles, float *const at[3],
                                     const un_tet_bins *bins, const un_leaves_flow *now,
                                     const un_leaves_flow *before, const un_flip *flip);
/* As un_transfer_mark, with phi and the distance to walls at centres of leaves. */
double un_transfer_mark_leaves(un_context *ctx, un_markers *markers, const un_leaves *leaves,
                               const float *phi, const float *wall, const uint8_t *thick,
                               const un_cling *cling);
/* As un_emitted_place, by leaf. */
un_status un_emitted_place_leaves(un_context *ctx, un_emitted *emitted, const un_octree *tree,
                                  const un_markers *markers);
/* Leaves that hold particles or are next to some that do: 1, others 0. Over ranks, this rank's
 * particles, and leaves around which it knows all. */
void un_transfer_reached_leaves(un_context *ctx, uint8_t *reached, const un_leaves *leaves,
                                const un_tet_bins *bins);
/* Most cells that liquid crosses in a second, at known faces (1) of leaves that hold particles. */
double un_transfer_rate_leaves(un_context *ctx, const double *u, const uint8_t *known,
                               const un_tet_bins *bins, const un_leaves *leaves);
/* Drag rate, 1/s, of drop q in liquid whose cells do not resolve it: it stops within some radii, as
 * a sphere with a drag coefficient of 1 does. slip: its velocity relative to the liquid. */
static inline double un_drop_drag(const un_particles *p, un_vec3 slip, int64_t q)
{
    return 0.75 * un_length(slip) / un_particles_spacing(p, p->volume[q]);
}

/* ---- normal velocities on the faces of tets (tet_faces.c) ---- */

/* The velocity whose normal components best fit those on the known (1) faces of a node, or of a tet
 * if all four are known. known_*: 1 where there is one, else 0, with velocity 0. */
void un_transfer_faces_to_nodes(un_context *ctx, un_vec3 *u_node, uint8_t *known_node,
                                const double *u, const uint8_t *known, const un_faces *faces,
                                const un_tets *mesh);
void un_transfer_faces_to_tets(un_context *ctx, un_vec3 *u_tet, uint8_t *known_tet, const double *u,
                               const uint8_t *known, const un_faces *faces, const un_tets *mesh);
/* Velocities on faces, and what the functions above made of them. */
typedef struct un_face_velocities {
    const un_faces *faces;
    const un_tets *mesh;
    const double *u;
    const uint8_t *known;
    const un_vec3 *node, *tet;
    const uint8_t *known_node, *known_tet;
    double dt; /* s: in fast liquid less is given back */
} un_face_velocities;
/* What nodes smooth away: they are means over cells, so velocities on faces made of theirs differ
 * from u. lost: by node, a fit of the difference, 0 at surfaces. */
un_status un_transfer_find_lost(un_context *ctx, un_arena *arena, un_vec3 *lost,
                                const un_face_velocities *v);
void un_transfer_add_nodes(un_context *ctx, un_vec3 *u, const un_vec3 *more, int32_t count);
/* The normal component of the mean over a face's nodes. */
void un_transfer_nodes_to_faces(un_context *ctx, double *u, const un_vec3 *u_node,
                                const un_faces *faces, const un_tets *mesh);

/* ---- from mesh to mesh, where meshes conform to the liquid (flow.c) ---- */

/* Velocities at all nodes of the lattice that a mesh was cut from: in the liquid those of its
 * faces, extended from there. */
typedef struct un_flow {
    const un_stuffing *mesh; /* must outlive it */
    un_vec3 *u;
    float (*slope)[9]; /* du_i / dx_j, 1/s, i first */
    uint8_t *known;    /* 1 in or next to the liquid, then by layer; 0 beyond, where u is 0 */
    un_vec3 *rest;     /* by tet: what u lacks of the faces' velocities */
    uint8_t *gone;     /* by node: 1 next to a wall that lets go */
    float *fastest;    /* by node, m/s: the liquid around it, or that its u comes from */
    size_t capacity[6];
} un_flow;

void un_flow_free(un_context *ctx, un_flow *flow);
typedef struct un_flow_def {
    const un_stuffing *mesh;
    const double *u;      /* at faces, along their normals */
    const un_vec3 *u_tet; /* of these at tets */
    un_vec3 size;         /* of the domain */
    const bool *open;     /* its sides; NULL: none is */
    const uint8_t *gone;  /* by place in mesh->boundary: 1 at walls that let go; NULL: none does */
    int32_t layers;       /* of nodes to extend to */
    /* The liquid's surface, which comes to dry sides within dt at the earliest; NULL: never. */
    const struct un_track *track;
    double dt;
} un_flow_def;
un_status un_flow_fit(un_context *ctx, un_flow *flow, const un_flow_def *def);
/* Does a wall next to x let go? */
bool un_flow_gone(const un_flow *flow, un_vec3 x);
/* The velocity at any point, and where liquid there goes in dt, which may be negative. */
un_vec3 un_flow_at(const un_flow *flow, un_vec3 x);
un_vec3 un_flow_trace(const un_flow *flow, un_vec3 x, double dt);
/* u at the faces of a new mesh, dt later. */
void un_flow_to_faces(un_context *ctx, double *u, const un_flow *flow, const un_stuffing *mesh,
                      double dt);

/* The velocity of each tet that fits its faces' best; faces of a uniform velocity. */
void un_stuffing_velocities(un_context *ctx, un_vec3 *u_tet, const un_stuffing *mesh,
                            const double *u);
void un_stuffing_uniform(un_context *ctx, double *u, const un_stuffing *mesh, un_vec3 velocity);
typedef struct un_stuffing_sums {
    double energy_kinetic, energy_potential; /* J */
    un_vec3 momentum;                        /* kg m/s */
    double volume;                           /* m3 */
    double max_speed;                        /* m/s */
    double rate;                             /* the most leaves that liquid crosses in a second */
} un_stuffing_sums;
/* track: the surface that the mesh follows, which knows what is thickened; NULL: nothing is. */
void un_stuffing_sum(un_context *ctx, un_stuffing_sums *sums, const un_stuffing *mesh,
                     const un_vec3 *u_tet, const struct un_track *track, un_vec3 gravity,
                     double density);
/* Through the rectangle from min to max across the axis, m3/s. */
double un_stuffing_flux(un_context *ctx, const un_stuffing *mesh, const un_vec3 *u_tet, un_vec3 min,
                        un_vec3 max, int axis);
/* In an emitter: faces take its velocity, and its tets the divergence that brings `volume` in dt.
 */
void un_stuffing_emit(un_context *ctx, double *u, double *divergence, const un_stuffing *mesh,
                      const un_source *source, double volume, double dt);
/* What flows out of the mesh into a shape, through faces at the air not farther from it than
 * `margin`, m3/s. */
double un_stuffing_drained(un_context *ctx, const un_stuffing *mesh, const double *u,
                           const un_shape *shape, double margin);
/* Velocities of vertices. */
void un_flow_to_points(un_context *ctx, un_vec3 *u, const un_flow *flow, const un_vec3 *x,
                       int64_t count);

#endif
