/* Advect: particle paths and collisions. */
#ifndef UN_ADVECT_H
#define UN_ADVECT_H

#include "base/base.h"
#include "mesh/mesh.h"
#include "particles/particles.h"
#include "surface/surface.h"
#include "transfer/transfer.h"

/* The body that the liquid moves and that a particle ran into, -1: none, and what that changed of
 * the particle's velocity. */
typedef struct un_hit {
    un_vec3 change;
    int32_t body;
} un_hit;

/* Moves every particle by dt: liquid ones along the velocity field (third-order Runge-Kutta),
 * ballistic ones by their own velocity. Velocities before are those in the middle of the step, and
 * afterwards those at its end (un_particles.lead). No particle enters a wall, whatever its speed or
 * the wall's; a particle that leaves through an open side ends outside the domain, and the caller
 * removes it. hits: by particle; NULL: nobody asks. */
void un_advect_particles(un_context *ctx, un_particles *particles, un_hit *hits, double *const u[3],
                         const un_walls *walls, un_vec3 gravity, double dt);

/* The same through a field on tets. bins: each particle's tet when they were sorted, as a first
 * guess. wall: at nodes, a lower bound of the distance to walls. */
un_status un_advect_tets(un_context *ctx, un_arena *arena, un_particles *particles, un_hit *hits,
                         const un_tet_bins *bins, const un_tets *mesh, const un_tet_field *u,
                         const float *wall, const un_walls *walls, un_vec3 gravity, double dt);

/* The same through velocities on the faces of leaves. */
typedef struct un_leaf_paths {
    const un_tet_bins *bins; /* each particle's leaf when they were sorted */
    const un_leaves_flow *flow;
    /* By particle: the flow where it is, as un_transfer_leaves_to_particles found it; NULL if
     * particles have been spread since. Those that are thin may have moved. */
    const float *start[3];
    const float *wall; /* at leaves, a lower bound of the distance to walls */
    const un_walls *walls;
    un_vec3 gravity;
    double dt;
} un_leaf_paths;
un_status un_advect_leaves(un_context *ctx, un_particles *particles, un_hit *hits,
                           const un_leaf_paths *paths);

/* The same through velocities at the centres of a grid that warps (warp.c); xi becomes a
 * guess of where the path ends. phi: the level set at cells, in reference space; walls: in space;
 * on_warp: their samples. */
void un_advect_warped(un_context *ctx, un_particles *particles, un_hit *hits, const un_vec3 *u,
                      const float *phi, const un_walls *walls, const un_walls *on_warp,
                      un_vec3 gravity, double dt);

/* Ralston's method (paths.c) at eight points: x + k dt, in the domain; how far they go in a step.
 */
static inline void un_advect_go(un_eight *to, const un_eight *x, const un_eight *k, double dt,
                                const un_grid *g)
{
    const double size[3] = {g->size.x, g->size.y, g->size.z};
    for (int a = 0; a < 3; a++)
        for (int n = 0; n < 8; n++) {
            double at = x->of[a][n] + k->of[a][n] * dt;
            at = at > 0 ? at : 0;
            to->of[a][n] = at < size[a] ? at : size[a];
        }
}
static inline void un_advect_ralston(un_eight *step, const un_eight *k1, const un_eight *k2,
                                     const un_eight *k3, double dt)
{
    for (int a = 0; a < 3; a++)
        for (int n = 0; n < 8; n++)
            step->of[a][n] = (k1->of[a][n] * 2 + k2->of[a][n] * 3 + k3->of[a][n] * 4) * (dt / 9);
}

/* How far eight points go in dt through velocities at faces (paths.c). Less than no time: back. */
void un_advect_trace(un_eight *step, const un_grid *grid, double *const u[3], const un_eight *x,
                     double dt);

/* Brings a particle's velocity v from the middle to the end of the step. A particle whose velocity
 * a wall has changed from `was` is no longer in free fall. */
static inline void un_advect_finish(un_particles *p, int64_t q, un_vec3 v, un_vec3 was,
                                    un_vec3 lead)
{
    if (v.x != was.x || v.y != was.y || v.z != was.z) p->fall[q] = 0;
    un_particle_set_velocity(p, q, un_mad(v, lead, p->fall[q] * (1.0 / UN_FALL_FREE)));
}

/* Particles keep this distance from solids and closed sides, in cells. */
#define UN_ADVECT_MARGIN 0.01
/* Sweeps a point from `from` to `to` through the step against sides and bodies. Returns where it
 * ends. *v loses its part into the walls that it hit; its slip along them falls by their friction
 * every 1/100 s. */
un_vec3 un_advect_collide(const un_walls *walls, un_vec3 from, un_vec3 to, double dt, un_vec3 *v);
un_vec3 un_advect_collide_hit(const un_walls *walls, un_vec3 from, un_vec3 to, double dt,
                              un_vec3 *v, un_hit *hit);
/* Gives the bodies what the hits took off the particles. A body lighter than what hits it in a step
 * takes only the share that its mass is of that, and the particles keep the rest. density: of
 * particles without their own. */
/* id: where other ranks have particles too, their numbers among all, in whose order impulses are
 * added up; NULL: all are here. */
un_status un_advect_push_bodies(un_context *ctx, un_particles *particles, const un_hit *hits,
                                const uint32_t *id, un_bodies *bodies, double density);

/* Most cells that liquid crosses along an axis in a second, in known tets (1) that hold particles:
 * tets that the surface barely cuts may have any velocity (tets.c). Over ranks, of all. */
double un_advect_rate_tets(un_context *ctx, const un_vec3 *u_tet, const uint8_t *known,
                           const un_tet_bins *bins, const un_tets *mesh);
/* Pulls particles at the edges of thick liquid, which the level set leaves outside, gradually back
 * to it (draw.c). HELD: those of viscous liquid or under surface tension; ALL: of any liquid;
 * WHOLE: of any that is thicker than a cell. Sheets are not drawn in: they would clump. pace:
 * un_scene_pace. */
typedef enum un_draw_in { UN_DRAW_HELD, UN_DRAW_ALL, UN_DRAW_WHOLE } un_draw_in;
void un_advect_draw_in(un_context *ctx, un_markers *markers, const un_walls *walls,
                       const un_cling *cling, un_draw_in which, double dt, double pace);

/* ---- fields that a grid carries which warps (warp_carry.c) ---- */

typedef enum un_interpolation {
    UN_INTERPOLATE_CUBIC,
    UN_INTERPOLATE_LINEAR,
    UN_INTERPOLATE_WENO6
} un_interpolation;
/* By name, as in the scene. */
un_interpolation un_interpolation_find(const char *name);

typedef struct un_carry {
    const un_warp *warp; /* the new grid */
    const un_vec3 *was;  /* at cells: the centres of the old one */
    const un_vec3 *u;    /* at cells of the old one: the flow */
    un_interpolation interpolation;
    bool maccormack; /* errors are found by going back, and half of them taken off */
    double dt;
} un_carry;
/* to: at inner cells of the new grid, what was dt ago where its liquid comes from; others keep what
 * they have. Both have `count` values at each cell, 4 at most. */
un_status un_carry_fields(un_context *ctx, un_arena *arena, double *to, const double *from,
                          int count, const un_carry *carry);

/* ---- a narrow band of particles (band.c, warp_band.c, grid_band.c) ---- */

#define UN_BAND_MAX 60 /* cells */
typedef struct un_band {
    double width; /* cells under the surface that particles fill; 0: all */
    /* at cells: 1 where one particle, UN_PARTICLE_DEEP, stands for the liquid; 2 next to those, on
     * grids that do not warp */
    uint8_t *deep;
    uint8_t *depth; /* at cells: cells to where the liquid ends, or particles are needed */
    un_vec3 *was;   /* on a grid that warps, at cells: the centres before it moved */
    double *u[3];   /* on others, at faces of deep cells and of those next to them: the velocity */
    un_curve curve; /* on others: the order of rows, by which new particles come */
} un_band;
un_status un_band_init(un_context *ctx, un_band *band, double width, const un_grid *grid,
                       bool warps);
void un_band_free(un_context *ctx, un_band *band);
/* Finds the depth from the level set. */
un_status un_band_measure(un_context *ctx, un_arena *arena, un_band *band, const float *phi,
                          const un_walls *walls);
/* Keeps the grid's centres before it moves. */
void un_band_keep(un_band *band, const un_warp *warp);
/* Carries the deep liquid to the new grid, where the particles are sorted. Sort them and find their
 * shares again afterwards. */
typedef struct un_band_carry {
    const un_warp *warp; /* the new grid */
    const un_vec3 *u;    /* at cells of the old one */
    const un_bins *bins;
    int64_t step; /* number */
    double dt;
    un_interpolation interpolation;
    const un_vec3 *carried; /* at cells of the new grid: velocities that it has found; NULL: none */
} un_band_carry;
un_status un_band_carry_deep(un_context *ctx, un_arena *arena, un_band *band,
                             un_particles *particles, const un_band_carry *in);
/* The same on a grid that stands still, after particles have moved and before they are sorted: of
 * these, those listed as gone are the grid's now. */
typedef struct un_band_step {
    double *const *u, *const *u_old; /* at faces: what particles moved with, and before forces */
    const un_walls *walls;
    un_vec3 gravity;
    double kick; /* s: how long forces acted */
    double dt;
    int64_t step;  /* number */
    double volume; /* that all particles should have together */
    int32_t reach; /* layers that liquid passes in the step, and one more; ranks know u as far and
                    * two layers more */
} un_band_step;
un_status un_band_carry_faces(un_context *ctx, un_arena *arena, un_band *band,
                              un_particles *particles, un_bins_gone *gone, const un_band_step *in);
/* Puts the velocities that the grid has carried in the place of the particles'. weight: of these,
 * at faces. */
void un_band_to_faces(un_context *ctx, const un_band *band, double *const u[3],
                      double *const weight[3], const un_grid *grid);
/* Marks the particles in deep cells. */
void un_band_mark(un_context *ctx, un_particles *particles, const un_band *band,
                  const un_grid *grid);

/* The velocity at x on a grid that warps. The last step towards it is taken along the slope of the
 * velocity, which is exact where that is linear in space. */
#define UN_ADVECT_NEAR 1e-3
UN_KERNEL un_vec3 un_advect_velocity_in(const un_vec3 *u, const un_warp *warp, un_vec3 x,
                                        un_warp_walker *w, int dim)
{
    const un_grid *g = &warp->grid;
    un_vec3 slope[3] = {{0}};
    x = un_min3(un_max3(x, un_v3(0, 0, 0)), warp->size);
    un_vec3 left = un_scale(un_warp_walk_in(warp, w, x, UN_ADVECT_NEAR, dim), g->inverse_h);
    un_vec3 v = un_warp_blend_in(g, u, &w->at.at, slope, dim);
    v = un_mad(un_mad(v, slope[0], left.x), slope[1], left.y);
    return dim == 2 ? v : un_mad(v, slope[2], left.z);
}
/* On the grid, under surface tension: drops and edges outside the level set stay on walls that they
 * touch (draw.c). phi: at cells, as the particles were marked. */
void un_advect_hold_drops(un_context *ctx, un_particles *particles, const float *phi,
                          const un_walls *walls, const un_cling *cling, double dt);

/* Semi-Lagrangian: each face of a new mesh takes its normal velocity from the old field, dt back
 * along it; the field must reach that far. If that point is outside the old liquid, the face takes
 * `drops` instead, the particles' own velocities on the new mesh, so that particles that fall in or
 * are emitted bring their momentum; and so do faces outside thick liquid, where the old field is
 * mostly an extension of it and sheets would slow down. Faces with no node within `reach` of their
 * sizes of the liquid get 0. */
typedef struct un_face_advection {
    const un_tets *mesh, *old_mesh;
    const un_faces *faces; /* of mesh */
    const float *phi;      /* at nodes of mesh */
    un_tet_field old;
    const uint8_t *old_liquid; /* at nodes: 1 in the liquid */
    const un_vec3 *drops;      /* at nodes of mesh */
    const uint8_t *drops_known;
    const uint8_t *thick; /* at tets of mesh, un_surface_thick_tets; NULL: all are */
    double dt, reach;
} un_face_advection;
void un_advect_faces(un_context *ctx, double *u, const un_face_advection *advection);

/* How far the surface may be shifted in a step, m: `most`, and up to three times as far where more
 * than 1 % of the volume is missing. A tank that a ball nearly fills has little surface to bring it
 * back with. */
static inline double un_advect_shift_most(double most, double lack, double expected)
{
    return most * un_clamp(100 * fabs(lack) / fmax(expected, DBL_MIN), 1, 3);
}
/* A surface that is carried by the flow, continued through walls, fed by emitters and cut by drains
 * and open sides (surface.c). */
typedef struct un_surface_advection {
    un_track *track;
    const un_flow *flow;
    const un_track_walls *walls;
    const un_scene_def *def; /* whose sources act at `time` */
    double time, dt;
    const un_box3 *gone; /* around walls that let go; NULL: none does */
    const float *solid;  /* at the track's nodes: distance to the solids; NULL: there are none */
    double expected;     /* m3: the volume that the new surface should hold; 0: any */
    double shift;        /* m, outwards */
    double most;         /* m: of shifts to keep the volume */
    double thicken;      /* m, as in un_track_motion */
} un_surface_advection;
un_status un_advect_surface(un_context *ctx, un_arena *arena, const un_surface_advection *in);
/* How much liquid a source will add in that step where there is none, or take away, m3. */
double un_advect_sourced(un_context *ctx, const un_surface_advection *in, const un_source *source);
/* How much will leave through the open sides in that step, m3. */
double un_advect_left(const un_surface_advection *in);

#endif
