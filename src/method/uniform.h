/* Inside of method `uniform`: its state and the parts of its step. Only src/method/uniform*.c
 * include this. */
#ifndef UN_METHOD_UNIFORM_H
#define UN_METHOD_UNIFORM_H

#include "advect/advect.h"
#include "method/core.h"
#include "pressure/pressure.h"
#include "surface/surface.h"
#include "tension/tension.h"
#include "viscosity/viscosity.h"

#define UN_UNIFORM_ITERATIONS 2000

/* Viscosity: its solver, the mixture, and the pressure that keeps the volume under it. */
typedef struct un_thick_grid {
    bool any;
    un_viscosity *solver;
    un_mixture mix; /* at cells */
    double *p;      /* at cells, Pa; NULL unless any is viscous */
} un_thick_grid;

/* The ranks of particles at a side of a bar, of which there are nine: whose they are, and those
 * that have copies. */
#define UN_UNIFORM_SIDES 9
#define UN_UNIFORM_TAKERS 4
typedef struct un_uniform_takers {
    int32_t count, rank[UN_UNIFORM_TAKERS];
} un_uniform_takers;

/* On several ranks (uniform_bars.c, uniform_ranks.c and others). */
typedef struct un_uniform_ranks {
    un_bars *bars;  /* NULL: one rank */
    uint8_t *inner; /* by row of cells: an own one whose particles no other rank has copies of */
    uint8_t *held;  /* by bar: it is this rank's, or next to one that is */
    un_uniform_takers *takers; /* by bar and side of it */
    int64_t total;             /* particles of all ranks */
    int64_t *block_first; /* by block along the curve: the id of its first particle; one more */
    bool counted;         /* block_first is that of the last sort */
    int32_t *block_owner; /* its rank */
    uint32_t *id, id_end; /* of own particles, between the transfer to the grid and sorting; they
                           * ascend only where bodies ask for sums */
    un_exchange *halo;    /* copies of particles, and where they lie */
    int32_t *slot, slot_count;
    un_particles arrived; /* from other ranks */
    uint32_t *arrived_id;
    size_t id_room, slot_room, arrived_room;
    un_portion portion; /* particles and cells are found when asked for */
    int32_t reach;      /* rows that liquid passes in this step */
    /* rank 0, while it shows the state (uniform_whole.c) */
    unsigned has; /* a sum of un_show */
    un_particles whole;
    un_bins *whole_bins;
    /* own particles in order, with their ids, for windows of all */
    un_listed shown;
    int32_t *shown_index;
    uint32_t *shown_id;
    size_t shown_room, shown_id_room;
    un_particles window;
    void *fetched;
    size_t fetched_room;
    double *probed; /* as un_core_probe_ranks, of the probes wet and flux */
    bool has_probed;
} un_uniform_ranks;

typedef struct un_uniform {
    un_core core;
    un_particles particles;
    un_bins *bins;
    int64_t ballistic;                /* particles that fly */
    float *normalizer, *colour, *phi; /* at cells */
    double *u[3], *u_old[3];          /* at faces; NULL for the third axis in 2D */
    uint8_t *known[3];                /* at faces: 1 projected, more: extrapolated */
    un_pressure *pressure;
    un_impulse impulse; /* of this step, if the liquid moves bodies */
    un_inflow inflow;   /* emitted inside the liquid in the last step */
    un_thick_grid thick;
    un_band band;                  /* where the liquid is deep, and the grid carries it */
    double sums[UN_PARTICLE_SUMS]; /* of all particles, after the level set */
    double max_speed;              /* of the liquid, along an axis */
    un_uniform_ranks ranks;
} un_uniform;

/* Everything but particles. */
un_status un_uniform_save(const void *state, un_state *out); /* uniform_state.c */
un_status un_uniform_load(void *state, const un_state *in);
un_status un_uniform_keep(void *state, un_state *out);
/* uniform_sift.c; see method.h */
un_status un_uniform_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                          void *arg);
/* What a cell costs, in particles: walls, level set, extrapolation. */
#define UN_UNIFORM_CELL_WORK 0.5

/* ---- parts of the step (uniform_step.c) ---- */

/* Particles sorted into cells. */
un_status un_uniform_sort(un_uniform *s);
/* The same after a step, in which the grid has carried deep liquid. */
un_status un_uniform_carry(un_uniform *s, double dt, double kick);
/* Spreads particles that have crowded together. */
un_status un_uniform_correct(un_uniform *s);
/* Finds the level set, the particles that fly, and the volume. With un_uniform_sort this is
 * everything that the next step and the outputs read. */
un_status un_uniform_level_set(un_uniform *s);
un_status un_uniform_to_grid(un_uniform *s, double dt);
un_status un_uniform_project(un_uniform *s, double dt, un_projection_report *report);
/* before: the pressure that was found earlier in this step; NULL: none. since: velocities that the
 * impulse is reckoned from. */
un_status un_uniform_apply_pressure(un_uniform *s, double dt, const double *before,
                                    double *const since[3], un_projection_report *report);
un_status un_uniform_extend(un_uniform *s, double dt);
/* Bodies that the liquid moves go to the end of the step, and the walls with them. */
un_status un_uniform_move_free(un_uniform *s, double dt);
un_status un_uniform_to_particles(un_uniform *s, double dt);
un_status un_uniform_advect(un_uniform *s, double dt);
un_status un_uniform_even_sheets(un_uniform *s, double dt);

/* ---- viscosity (uniform_viscous.c) ---- */

/* Density and viscosity at cells; velocities at faces rather than at the particles around them.
 * weight: of un_transfer_to_faces. */
un_status un_uniform_thicken(un_uniform *s, double *const weight[3]);
/* The viscous solve, and the pressure once more. */
un_status un_uniform_apply_viscosity(un_uniform *s, double dt, un_projection_report *projection,
                                     int32_t *iterations);
/* Which particles outside the level set stay part of thick liquid. */
un_cling un_uniform_cling(const un_uniform *s);
/* Velocities in walls that viscous liquid sticks to. */
un_status un_uniform_stick(un_uniform *s, double dt);

/* ---- sources (uniform_sources.c) ---- */

un_status un_uniform_remove(un_uniform *s); /* drains, open sides */
un_status un_uniform_emit(un_uniform *s, double dt);

/* ---- sums over the particles of all ranks (uniform_sums.c) ---- */

/* Marks the particles; their volume, that inside the level set, and sums for the report. */
void un_uniform_weigh(un_uniform *s, const uint8_t *thick, const un_cling *cling, double *total,
                      double *inside);
/* Of sorted particles: the probe. */
double un_uniform_flux(const un_uniform *s, const un_probe *probe);
/* un_particles_summer, after ranks have dropped their copies and before particles come or go. They
 * lie in order only where bodies ask for sums. */
un_status un_uniform_sum_own(void *state, int32_t width, un_parallel_values *values, void *arg,
                             double *sums);

/* ---- several ranks: all of these only where there are bars ---- */

/* Rows that copies lie in, along y and z. A cell's level set asks for particles in the rows on both
 * sides of its own. Faces lie at the lower edges of cells, so those of a row ask for no more of the
 * row above; but a particle of the second row below may have been moved to the first by a tenth of
 * a cell (correct.c) when it is carried to them. Of that row those have copies that are so near, in
 * cells. */
#define UN_UNIFORM_ABOVE 1
#define UN_UNIFORM_BELOW 2
#define UN_UNIFORM_REACH 1.101

/* The row of cells that a particle is in, as un_bins_sort finds it. */
static inline void un_uniform_row_of(const un_grid *g, const un_particles *p, int64_t q, int32_t *j,
                                     int32_t *k)
{
    double inverse = 1 / g->h;
    *j = un_clampi((int32_t)((p->x[1][q] - g->origin.y) * inverse), 0, g->n[1] - 1);
    *k = un_clampi((int32_t)((p->x[2][q] - g->origin.z) * inverse), 0, g->n[2] - 1);
}
static inline int32_t un_uniform_bar_of(const un_uniform *s, const un_particles *p, int64_t q)
{
    int32_t j, k;
    un_uniform_row_of(&s->core.grid, p, q, &j, &k);
    return un_bar_of(&s->ranks.bars->curve, j, k);
}

/* The same before there are bars. */
static inline int32_t un_uniform_bar_count(const un_grid *g)
{
    return (g->n[1] + UN_BAR - 1) / UN_BAR * ((g->n[2] + UN_BAR - 1) / UN_BAR);
}
static inline int32_t un_uniform_bar(const un_grid *g, int32_t j, int32_t k)
{
    return j / UN_BAR + (g->n[1] + UN_BAR - 1) / UN_BAR * (k / UN_BAR);
}
/* What the cells of each bar cost. */
static inline void un_uniform_begin_work(const un_grid *g, double *work)
{
    for (int32_t bar = 0; bar < un_uniform_bar_count(g); bar++) work[bar] = 0;
    for (int32_t k = 0; k < g->n[2]; k++)
        for (int32_t j = 0; j < g->n[1]; j++)
            work[un_uniform_bar(g, j, k)] += UN_UNIFORM_CELL_WORK * g->n[0];
}

/* ---- who has what (uniform_bars.c) ---- */

/* Gives each rank its bars and its particles of those that every rank has; does nothing on one
 * rank. */
un_status un_uniform_share_out(un_uniform *s);
/* What a rank has, as it lies: its particles, their numbers, its bars; then this, after the
 * particles have been loaded. */
un_status un_uniform_ranks_keep(un_uniform *s, un_state *out);
un_status un_uniform_ranks_take(un_uniform *s, const un_state *in);
/* The same at the start: each seeds its own. */
un_status un_uniform_ranks_seed(un_uniform *s, const un_seed_def *def);
/* Before sorting, with own particles only: cuts bars again where that pays. */
un_status un_uniform_recut(un_uniform *s);
/* Keeps the particles from `first` on that are this rank's, and their ids. */
void un_uniform_keep_own(un_uniform *s, int32_t first);
/* Room for as many; keeps those that are there. */
un_status un_uniform_need_ids(un_uniform *s, int64_t count);

/* ---- particles on their way (uniform_send.c) ---- */

/* What is sent of one: place, velocity, volume, flags, fall, id; density and viscosity. */
#define UN_UNIFORM_SENT_BYTES (6 * 8 + 4 + 1 + 1 + 4)
#define UN_UNIFORM_SENT_MATTER_BYTES (4 + 4)
/* Sends all that a particle has, with its id, and puts what arrives after those that are in `to`,
 * which has room for it. */
un_status un_uniform_send(un_exchange *e, un_particles *to, uint32_t *to_id,
                          const un_particles *from, const uint32_t *id);
/* A list of which particle goes where, from the arena. */
typedef struct un_uniform_list {
    int32_t *index, *to;
    int64_t count;
} un_uniform_list;
un_status un_uniform_begin_list(un_uniform *s, un_uniform_list *list, int64_t most);
static inline void un_uniform_add_to_list(un_uniform_list *l, int32_t index, int32_t to)
{
    if (to < 0) return;
    l->index[l->count] = index;
    l->to[l->count++] = to;
}
/* What arrives goes to ranks.arrived. */
un_status un_uniform_send_list(un_uniform *s, const un_uniform_list *list, const uint32_t *id);
/* Every rank gets the particles listed in `index`, in the order of ids. */
un_status un_uniform_send_to_all(un_uniform *s, const int32_t *index, int64_t count);
/* The order of ids, from the arena; NULL: they ascend. */
un_status un_uniform_find_id_order(un_uniform *s, const uint32_t *id, int64_t count,
                                   int32_t **order);

/* ---- sorting and copies of others' particles (uniform_ranks.c) ---- */

void un_uniform_ranks_free(un_uniform *s);
/* Own particles in the order of the curve, from the arena, and their ids. */
un_status un_uniform_list_own(un_uniform *s, int32_t **order, int32_t *count);
/* Particles to the ranks that they have come to, with copies for their neighbours; sorted. */
un_status un_uniform_ranks_sort(un_uniform *s);
un_status un_uniform_ranks_refresh(un_uniform *s); /* the copies' positions */
un_status un_uniform_ranks_drop(un_uniform *s);    /* the copies */
un_status un_uniform_ranks_reach(un_uniform *s, double dt);
/* Rows that liquid has passed in this step, by velocities of the grid or of particles; 0 on one
 * rank. */
int32_t un_uniform_ranks_stray(const un_uniform *s);
/* uniform_sheets.c */
un_status un_uniform_ranks_even_sheets(un_uniform *s, const un_sheets_def *def);
/* uniform_sources.c. Those that are gone have become the grid's, those from `first` on are new;
 * sorted. */
un_status un_uniform_ranks_carry(un_uniform *s, int32_t first, const un_bins_gone *gone);

/* ---- the whole on rank 0 (uniform_whole.c) ---- */

un_status un_uniform_gather(void *state, unsigned what); /* see method.h */
void un_uniform_whole_forget(un_uniform *s);
un_status un_uniform_stream(void *state, un_particle_stream *stream);
void un_uniform_portion(const void *state, un_portion *out);
/* Makes what `save` has put into sections from `first` on those of all ranks. */
un_status un_uniform_fetch_particles(const un_uniform *s, un_state *out, int32_t first);
void un_uniform_fetch_cells(const un_uniform *s, un_state *out, int32_t first);
/* The particles of all ranks, on rank 0 once they are there. */
const un_particles *un_uniform_shown(const un_uniform *s);
un_status un_uniform_whole_bins(un_uniform *s, const un_bins **bins);

/* ---- what it shows (uniform_outputs.c) ---- */

/* Sums for the report; fails when velocities are no longer finite. divergence: the largest of this
 * rank becomes that of all. */
un_status un_uniform_measure(un_uniform *s, un_step *report, double *divergence);
un_status un_uniform_surface(void *state, un_trimesh *mesh);
un_status un_uniform_cells(const void *state, un_cells *out);
double un_uniform_probe(const void *state, const un_probe *which);

#endif
