/* Transfer: particles <-> mesh. */
#ifndef UN_TRANSFER_H
#define UN_TRANSFER_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "particles/particles.h"

/* Face velocities: the mean of the particles' weighted by volume and a linear kernel. Faces that no
 * particle reaches have weight 0 and velocity 0. */
void un_transfer_to_faces(un_context *ctx, double *const u[3], double *const weight[3],
                          const un_grid *grid, const un_bins *bins, const un_particles *particles);

/* known[a][f]: 1 where particles reach the face, else 0. */
void un_transfer_mark_reached(un_context *ctx, uint8_t *const known[3], double *const weight[3],
                              const un_grid *grid);
/* before <- u, u <- u + change. */
void un_transfer_accelerate(un_context *ctx, double *const u[3], double *const before[3],
                            un_vec3 change, const un_grid *grid);
/* The fastest of the faces with known = 1, m/s. */
double un_transfer_max_speed(un_context *ctx, double *const u[3], uint8_t *const known[3],
                             const un_grid *grid);

/* known[a][f] != 0 marks faces with a value. Each of `layers` passes gives faces next to known
 * ones the mean of those and marks them: 2 after the first pass, 3 after the second, ... w may be
 * NULL: a second field that goes along. */
un_status un_transfer_extrapolate(un_context *ctx, un_arena *arena, double *const u[3],
                                  double *const w[3], uint8_t *const known[3], const un_grid *grid,
                                  int32_t layers);

/* v <- (1 - share) (v + u_new - u_old) + share u_new at each particle that does not fly; those that
 * do get gravity alone. The share of PIC is 1 - exp(-rate dt): one rate where the liquid moves, one
 * where it is quiet, so that results do not depend on the number of steps. */
typedef struct un_flip {
    double dt;
    un_vec3 gravity;
    double pic, pic_quiet; /* rates, 1/s */
    double quiet_speed;    /* m/s: at rest well below, in motion well above */
    double thickness;      /* on tets: kinematic viscosity, m2/s, unless particles have their own */
} un_flip;
void un_transfer_to_particles(un_context *ctx, un_particles *particles, double *const u_new[3],
                              double *const u_old[3], const un_grid *grid, const un_flip *flip);

/* ---- on tets (tets.c) ---- */

/* Volume and mean velocity at nodes, weighted by mass, each particle shared out by its barycentric
 * coordinates. A particle larger than the cells around it counts as 2^3, 4^3 or 8^3 spread over the
 * cube that it fills. known[n]: 1 where a thousandth of a cell is filled, else 0, with a velocity
 * that is not to be trusted: 0 where no particle reaches. */
un_status un_transfer_to_nodes(un_context *ctx, un_arena *arena, float *volume, un_vec3 *u,
                               uint8_t *known, const un_tets *mesh, const un_tet_bins *bins,
                               const un_particles *particles);
/* Mean density and viscosity (x and y) at nodes, of mixed particles; zero where none reaches. */
un_status un_transfer_matter_to_nodes(un_context *ctx, un_arena *arena, un_vec3 *matter,
                                      uint8_t *known, const un_tets *mesh, const un_tet_bins *bins,
                                      const un_particles *particles);
/* Where the particles' mass at each node has its centre, as seen from the node: mean velocities at
 * the node are those of this place. */
un_status un_transfer_centres(un_context *ctx, un_arena *arena, un_vec3 *centre, uint8_t *known,
                              const un_tets *mesh, const un_tet_bins *bins,
                              const un_particles *particles);
/* What interpolating a nodal field to the particles and bringing it back makes of it, at nodes
 * where `where` is above 0; u itself at others and where no particle is. */
un_status un_transfer_blur(un_context *ctx, un_arena *arena, un_vec3 *out, const un_vec3 *u,
                           const float *where, const un_tets *mesh, const un_tet_bins *bins,
                           const un_particles *particles);
/* Each of `layers` passes gives nodes next to known ones the mean of those and marks them: 2 after
 * the first pass, 3 after the second, ... w may be NULL: a second field that goes along. */
un_status un_transfer_extrapolate_nodes(un_context *ctx, un_arena *arena, un_vec3 *u, un_vec3 *w,
                                        uint8_t *known, const un_tets *mesh, int32_t layers);
/* Tets take the mean of their known nodes; keep, when not NULL: not those with keep[t] = 1. */
void un_transfer_nodes_to_tets(un_context *ctx, un_vec3 *u_tet, const un_vec3 *u_node,
                               const uint8_t *known, const un_tets *mesh, const uint8_t *keep);
/* Nodes take the mean of their known tets, weighted by volume (and open share, if not NULL);
 * known_node: 1 where there is one, else 0. */
void un_transfer_tets_to_nodes(un_context *ctx, un_vec3 *u_node, uint8_t *known_node,
                               const un_vec3 *u_tet, const uint8_t *known_tet, const un_tets *mesh,
                               const float *open);

/* A velocity field with values at nodes and at the centres of tets, continuous and linear on the
 * four parts into which the centre divides a tet [Ando13 section 3]. */
typedef struct un_tet_field {
    const un_vec3 *tet, *node;
} un_tet_field;
/* With the smallest coordinate w_k the point lies opposite node k, and x = 4 w_k x_centre +
 * sum_i (w_i - w_k) x_i. */
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
/* Viscosity takes what is finer than cells, which the mesh does not see, off particles at this
 * times nu / h^2. In full, which is PIC, it would add a tenth to the viscosity. */
#define UN_VISCOUS_PIC 1.0
/* How much the means against noise in quiet liquid are needed where viscosity is at work itself:
 * 1 in water, little where the Reynolds number of a cell at the quiet speed is small. */
static inline double un_noise_share(double nu, double h, double quiet_speed)
{
    double re = quiet_speed * h / nu;
    return nu > 0 ? 0.1 * re / (1 + 0.1 * re) : 1;
}

/* As un_transfer_to_particles: v <- (1 - pic) (v + change) + pic (u + sharp), sharp at nodes being
 * what bringing velocities to the mesh and back blurs [Hammerquist & Nairn 2017, XPIC of order 2]:
 * noise goes, waves stay. NULL: none; nor for particles that were spread over parts, whose way back
 * is another one than they came. The rate of PIC is weaker for
 * larger particles [Ando13 eq. 14]: flip->pic and pic_quiet are rates in 1/s here, of particles of
 * radius_min; quiet_speed belongs to them too and grows with the root of the radius. */
void un_transfer_tets_to_particles(un_context *ctx, un_particles *particles,
                                   const un_tet_bins *bins, const un_tets *mesh,
                                   const un_tet_field *u, const un_tet_field *change,
                                   const un_vec3 *sharp, const un_flip *flip, double radius_min);

/* ---- the step's change (change.c) ---- */

/* Adds the same to all. */
void un_transfer_add(un_context *ctx, un_vec3 *u, int64_t count, un_vec3 change);
/* u - was where known is 1, else 0; change may be `was` itself. */
void un_transfer_change(un_context *ctx, un_vec3 *change, const un_vec3 *u, const un_vec3 *was,
                        const uint8_t *known, int64_t count);
/* u += change where known. */
void un_transfer_add_change(un_context *ctx, un_vec3 *u, const un_vec3 *change,
                            const uint8_t *known, int64_t count);

/* ---- liquids that are not the same everywhere (mix.c) ---- */

typedef struct un_mixture {
    double density_all, viscosity_all; /* kg/m3, Pa s: where the arrays are NULL */
    float *density, *viscosity;        /* at nodes */
    float *lightness;                  /* at tets: density_all over that of the liquid there */
    size_t capacity[3];
} un_mixture;
static inline double un_mixture_viscosity(const un_mixture *m, int64_t n)
{
    return m->viscosity ? (double)m->viscosity[n] : m->viscosity_all;
}
/* Kinematic, m2/s. */
static inline double un_mixture_thickness(const un_mixture *m, int64_t n)
{
    return m->viscosity ? (double)(m->viscosity[n] / m->density[n])
                        : m->viscosity_all / m->density_all;
}
/* The arrays, of particles that carry their own matter. Empties the arena. */
un_status un_transfer_mix(un_context *ctx, un_arena *arena, un_mixture *mix, const un_tets *mesh,
                          const un_tet_bins *bins, const un_particles *particles);
void un_mixture_free(un_context *ctx, un_mixture *mix); /* the arrays */
/* Velocities of nodes are means over the particles around, at the surface those of a place inside:
 * a spinning drop would seem to lag behind there, and viscosity would brake all of it. This carries
 * them on to the nodes of viscous liquid along the gradient around, after which transfers to and
 * fro keep all linear velocities. Empties the arena. */
un_status un_transfer_move_to_nodes(un_context *ctx, un_arena *arena, un_vec3 *u_node,
                                    const un_mixture *mix, const un_tets *mesh,
                                    const un_tet_bins *bins, const un_particles *particles);

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
    double quiet_speed, dt;
} un_calm_def;
/* Empties the arena. */
un_status un_transfer_calm(un_context *ctx, un_arena *arena, un_calm_def *def);

/* What counts as quiet: a share of sqrt(g h), the speed at which a bump of one cell collapses. */
#define UN_QUIET_SHARE 0.1
static inline double un_quiet_speed(double gravity, double h)
{
    return UN_QUIET_SHARE * sqrt(fmax(gravity, 1e-6) * h);
}
/* The rate at which quiet liquid relaxes to the mesh's velocity, 1/s. A 32-cell tank at rest starts
 * with 2.1 cm/s at 30, 1.8 at 60 and 1.6 at 200; a standing wave at 48 cells keeps its height. */
#define UN_PIC_QUIET 200.0

/* ---- marking particles (mark.c) ---- */

/* The level set cuts edges round and leaves the particles in them outside. Water flings them off.
 * Thick liquid sheds nothing: they are part of it. */
typedef struct un_cling {
    bool viscous;     /* some of the liquid is */
    double thickness; /* kinematic viscosity of particles without their own, m2/s */
    double gravity;   /* m/s2 */
    double h;         /* of the finest cells, m */
} un_cling;
/* True if particle q lies outside the level set but sticks to viscous liquid nearby: liquid is
 * thick if it does not outrun viscosity while it falls by the particle's radius. */
bool un_cling_holds(const un_cling *cling, const un_markers *markers, int64_t q, double depth);
/* How far outside a particle of this radius may lie, m. */
double un_cling_reach(const un_cling *cling, double radius);

/* On the grid: particles fly that have no liquid cell (phi < 0) among the eight, in 2D four, whose
 * centres surround them. Returns their number, and the volume of particles where phi < 0. */
int64_t un_transfer_mark_ballistic(un_context *ctx, un_particles *particles, const float *phi,
                                   const un_grid *grid, double *volume_inside);
/* On tets, and depth, normal, distance to walls and flags of each particle, from the level set phi
 * and the distance to walls at nodes. Counts those that fly; returns the volume of particles where
 * phi < 0. */
double un_transfer_mark(un_context *ctx, un_markers *markers, const un_tets *mesh, const float *phi,
                        const float *wall, const un_cling *cling);

/* Volume that emitters brought inside the liquid, at nodes, m3: the next projection makes room. */
typedef struct un_emitted {
    double *volume;
    bool any; /* else volume is void */
    size_t capacity;
} un_emitted;
/* Shares out the particles marked as emitted to the nodes of a new mesh. Before un_transfer_mark,
 * which takes the mark from them. */
un_status un_emitted_place(un_context *ctx, un_emitted *emitted, const un_tets *mesh,
                           const un_particles *particles);
un_status un_emitted_need(un_context *ctx, un_emitted *emitted, int64_t nodes);
void un_emitted_free(un_context *ctx, un_emitted *emitted);

/* ---- normal velocities on the faces of tets (tet_faces.c) ---- */

/* The velocity whose normal components come nearest to those on the known (1) faces of a node: of
 * a tet, where all four are known. known_*: 1 where there is one, else 0, with velocity 0. */
void un_transfer_faces_to_nodes(un_context *ctx, un_vec3 *u_node, uint8_t *known_node,
                                const double *u, const uint8_t *known, const un_faces *faces,
                                const un_tets *mesh);
void un_transfer_faces_to_tets(un_context *ctx, un_vec3 *u_tet, uint8_t *known_tet, const double *u,
                               const uint8_t *known, const un_faces *faces, const un_tets *mesh);
/* The normal component of the mean over a face's nodes. */
void un_transfer_nodes_to_faces(un_context *ctx, double *u, const un_vec3 *u_node,
                                const un_faces *faces, const un_tets *mesh);

#endif
