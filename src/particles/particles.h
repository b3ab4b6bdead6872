/* Particles: structure of arrays, seeding, sorting along a space-filling curve, position
 * correction. */
#ifndef UN_PARTICLES_H
#define UN_PARTICLES_H

#include "base/base.h"
#include "geometry/geometry.h"
#include "mesh/mesh.h"
#include "sources/sources.h"

/* flags: flies by itself, away from the liquid; near the surface; newly emitted inside the liquid;
 * slower than a bump of its cell's size collapses; a drop among much larger particles (drops.c);
 * two bits that count halvings along the surface (resize.c); outside thick liquid (sheets.c) */
enum {
    UN_PARTICLE_BALLISTIC = 1,
    UN_PARTICLE_SURFACE = 2,
    UN_PARTICLE_EMITTED = 4,
    UN_PARTICLE_CALM = 8,
    UN_PARTICLE_DEEP = 8, /* on a grid that warps: it stands for the liquid of its cell */
    UN_PARTICLE_LANDED = 16,
    UN_PARTICLE_HALVED = 32,
    UN_PARTICLE_HALVED_MASK = 96,
    UN_PARTICLE_THIN = 128,
    UN_PARTICLE_APART = UN_PARTICLE_BALLISTIC | UN_PARTICLE_LANDED /* drops of their own */
};

typedef struct un_particles {
    int32_t count;
    size_t capacity;
    bool flat;     /* 2D: z and its velocity are 0, volumes are areas */
    double *x[3];  /* position, m */
    double *v[3];  /* velocity, m/s */
    float *volume; /* m3, or m2 */
    uint8_t *flags;
    /* Steps are those of a leapfrog: forces act on the velocity in the middle of a step, which
     * moves the particle. v is the velocity at the end of the step, and v - fall / 128 * lead the
     * one in its middle. lead: gravity times half of the step; fall: how much of it the particle
     * follows, 128 in free fall, 0 at rest */
    un_vec3 lead;
    uint8_t *fall;
    float *size; /* wanted edge of the cells around it, m; NULL unless reserved as sized */
    bool sized;  /* set before the first reserve */
    /* kg/m3 and Pa s, where the liquid is not uniform; NULL unless reserved as mixed */
    float *density, *viscosity;
    bool mixed; /* set before the first reserve */
    /* On a grid that warps: where the particle is in its reference space, m, and how the velocity
     * changes around it, 1/s: affine[3 a + b] is dv_a/dx_b. NULL unless reserved as warped */
    double *xi[3];
    float *affine[9];
    bool warped;  /* set before the first reserve */
    float *depth; /* m, level set of the simulation; only in frames read back, else NULL */
    /* one spare array of each width, so that reordering is a gather and a swap */
    double *spare_double;
    float *spare_float;
    uint8_t *spare_byte;
} un_particles;

static inline un_vec3 un_particle_position(const un_particles *p, int64_t i)
{
    return un_v3(p->x[0][i], p->x[1][i], p->x[2][i]);
}
static inline void un_particle_set_position(un_particles *p, int64_t i, un_vec3 x)
{
    p->x[0][i] = x.x;
    p->x[1][i] = x.y;
    p->x[2][i] = x.z;
}
static inline void un_particle_set_velocity(un_particles *p, int64_t i, un_vec3 v)
{
    p->v[0][i] = v.x;
    p->v[1][i] = v.y;
    p->v[2][i] = v.z;
}
static inline un_vec3 un_particle_velocity(const un_particles *p, int64_t i)
{
    return un_v3(p->v[0][i], p->v[1][i], p->v[2][i]);
}

#define UN_FALL_FREE 128
/* Below this share of free fall a particle counts as supported: noise at rest, or lifted by
 * pressure. */
#define UN_FALL_LEAST 0.25
/* The velocity in the middle of the last step. */
static inline un_vec3 un_particle_middle(const un_particles *p, int64_t i)
{
    return un_mad(un_particle_velocity(p, i), p->lead, p->fall[i] * (-1.0 / UN_FALL_FREE));
}
/* The scalar product with this vector tells how much of free fall a change of velocity in dt is. */
static inline un_vec3 un_particle_fall_unit(un_vec3 gravity, double dt)
{
    double whole = un_dot(gravity, gravity) * dt;
    return un_scale(gravity, whole > 0 ? UN_FALL_FREE / whole : 0);
}
static inline uint8_t un_fall_of(double product)
{
    return product < UN_FALL_LEAST * UN_FALL_FREE ? 0 : (uint8_t)fmin(product + 0.5, UINT8_MAX);
}
/* How much of free fall a change of velocity is. */
static inline uint8_t un_particle_fall(un_vec3 change, un_vec3 unit)
{
    return un_fall_of(un_dot(change, unit));
}

/* Radius of a ball (2D: a disc) of the particle's volume, m. */
static inline double un_particle_ball(const un_particles *p, int64_t i)
{
    return p->flat ? sqrt(p->volume[i] * (1 / UN_PI)) : cbrt(p->volume[i] * (3 / (4 * UN_PI)));
}

/* Some of the particles. It shares the arrays and must be neither freed nor reordered. */
static inline un_particles un_particles_part(const un_particles *p, un_part part)
{
    un_particles view = *p;
    for (int a = 0; a < 3; a++) {
        view.x[a] += part.begin;
        view.v[a] += part.begin;
    }
    view.volume += part.begin;
    view.flags += part.begin;
    if (p->fall) view.fall += part.begin;
    if (p->size) view.size += part.begin;
    if (p->density) view.density += part.begin;
    if (p->viscosity) view.viscosity += part.begin;
    view.count = (int32_t)(part.end - part.begin);
    view.capacity = (size_t)view.count;
    return view;
}

/* Copies all data of particle `from` to `to`. */
static inline void un_particle_copy(un_particles *p, int64_t to, int64_t from)
{
    for (int a = 0; a < 3; a++) {
        p->x[a][to] = p->x[a][from];
        p->v[a][to] = p->v[a][from];
    }
    p->volume[to] = p->volume[from];
    p->flags[to] = p->flags[from];
    if (p->fall) p->fall[to] = p->fall[from];
    if (p->size) p->size[to] = p->size[from];
    if (p->density) p->density[to] = p->density[from];
    if (p->viscosity) p->viscosity[to] = p->viscosity[from];
    for (int a = 0; a < 3 && p->warped; a++) p->xi[a][to] = p->xi[a][from];
    for (int a = 0; a < 9 && p->warped; a++) p->affine[a][to] = p->affine[a][from];
}

void un_particles_free(un_context *ctx, un_particles *particles);
/* Makes room for `count` particles in total; keeps the contents. */
un_status un_particles_reserve(un_context *ctx, un_particles *particles, int64_t count);
/* Releases unused capacity. */
un_status un_particles_trim(un_context *ctx, un_particles *particles);
/* Gives back the pages of room that no particle is in. */
void un_particles_rest(un_particles *particles);
size_t un_particles_bytes_each(void); /* without a size, which takes 4 more */
/* Keeps the particles with keep[i] != 0, in order; returns the volume removed. */
double un_particles_filter(un_particles *particles, const uint8_t *keep);
/* Particle i becomes the former particle order[i]; order is a permutation. */
void un_particles_reorder(un_context *ctx, un_particles *particles, const int32_t *order);
/* As above, but only the `count` particles named by order remain. */
void un_particles_take(un_context *ctx, un_particles *particles, const int32_t *order,
                       int32_t count);
/* Summed in fixed order: the same bits for any thread count. */
double un_particles_volume(un_context *ctx, const un_particles *particles);

/* Energies, J, and momentum, kg m/s; density: for particles without their own (sums.c). */
typedef struct un_particle_sums {
    double energy_kinetic, energy_potential, max_speed;
    un_vec3 momentum;
    bool finite; /* all velocities and positions are */
} un_particle_sums;
void un_particles_sum(un_context *ctx, un_particle_sums *sums, const un_particles *particles,
                      un_vec3 gravity, double density);
/* Its parts, for sums over ranks: adds what the particles [begin, end) add, UN_PARTICLE_SUMS
 * numbers; the square of the fastest speed; and what follows from both. */
#define UN_PARTICLE_SUMS 5
void un_particles_add_sums(const un_particles *particles, int64_t begin, int64_t end,
                           un_vec3 gravity, double *sums);
double un_particles_fastest(un_context *ctx, const un_particles *particles);
void un_particles_set_sums(un_particle_sums *out, const double sums[UN_PARTICLE_SUMS],
                           double fastest, double density);
/* Number of particles that lie outside the domain or hold impossible values. */
int64_t un_particles_unsound(un_context *ctx, const un_particles *particles, un_vec3 domain);

/* What forces on the mesh gave the liquid in a step, and its mass as the mesh weighs it, by axis.
 */
typedef struct un_impulse {
    un_vec3 momentum; /* kg m/s */
    un_vec3 mass;     /* kg */
} un_impulse;
/* Velocities in the middle of the last step. */
void un_particles_note(un_context *ctx, un_vec3 *was, const un_particles *particles);
/* After the transfer from the mesh: the particles, which had the velocities `was` before, get what
 * is missing to the mesh's impulse (momentum.c). gravity: what it changed, m/s; density: of
 * particles without their own. */
void un_particles_keep_momentum(un_context *ctx, un_particles *particles, const un_vec3 *was,
                                const un_impulse *mesh, un_vec3 gravity, double density);
/* The same where other ranks have particles too. sum: adds up what `values` finds of all of them,
 * as un_parallel_sums does of those at hand. */
typedef un_status un_particles_summer(void *arg, int32_t width, un_parallel_values *values,
                                      void *values_arg, double *sums);
typedef struct un_settling {
    const un_vec3 *was;
    const un_impulse *mesh;
    un_vec3 gravity;
    double density;
    un_particles_summer *sum;
    void *arg;
} un_settling;
un_status un_particles_keep_all(un_context *ctx, un_particles *particles, const un_settling *def);

/* Particles in their order, a window at a time, where no rank holds all of them. Each rank asks for
 * windows of its part, and all ask together. */
enum {
    UN_PLACES = 1,
    UN_VELOCITIES = 2,
    UN_VOLUMES = 4,
    UN_FLAGS = 8,
    UN_MATTER = 16,
    UN_DEPTHS = 32
};
typedef struct un_particle_stream {
    int64_t count;
    un_part part; /* of this rank; parts follow one another */
    void *arg;
    /* These fields of particles begin, begin + 1, ... as particles 0, 1, ... of view, until the
     * next call. */
    un_status (*window)(void *arg, unsigned fields, int64_t begin, int64_t end, un_particles *view);
    bool mixed; /* they have densities and viscosities of their own */
    bool depth; /* there are depths */
} un_particle_stream;

/* ---- moving particles (open.c): never through a solid, however thin ---- */

/* True if the straight path from a to b stays in the domain and out of solids, at their poses at
 * the start and at the end of the step. a itself must. */
bool un_open_way(const un_walls *walls, un_vec3 a, un_vec3 b);
/* As above, and b is at least `margin` from walls, or at least no closer than a. */
bool un_open_move(const un_walls *walls, un_vec3 a, un_vec3 b, double margin);

/* ---- seeding (seed.c) ---- */

/* Eight particles per cell, in 2D four: each half cell of the lattice has one jittered particle
 * that carries the volume of liquid in it. */
typedef struct un_seed_def {
    const un_grid *grid;
    const un_shape *shape;
    const un_walls *walls; /* nothing is seeded inside them */
    un_vec3 velocity;
    un_vec3 shift; /* of the lattice, m; for emission */
    /* Emission: only lattice points that were not in the shape one step ago, when the lattice was
     * at shift - step, cut to the stream's rim. Zero: everything in the shape, cut to its
     * surface. */
    un_vec3 step;
    bool emitting;
    double jitter;   /* emission: share of a half cell within which a particle is placed */
    double share;    /* emission: of a half cell's volume that its particle carries; 0: all */
    uint64_t stream; /* of random numbers */
} un_seed_def;

/* Appends particles. volume: the volume added. */
un_status un_particles_seed(un_context *ctx, un_particles *particles, const un_seed_def *def,
                            double *volume);
/* Of several ranks, all together: rows of half cells lie along x, plane by plane along z. counts:
 * particles by row, on all ranks; allocated. */
un_status un_particles_count_rows(un_context *ctx, const un_seed_def *def, double **counts,
                                  int64_t *row_count);
/* The row of cells that a row of half cells is in. */
void un_particles_row_of_cells(const un_seed_def *def, int64_t row, int32_t *j, int32_t *k);
/* Appends the particles of these rows, those of other ranks being between them. volume: of all, on
 * all ranks. */
un_status un_particles_seed_rows(un_context *ctx, un_particles *particles, const un_seed_def *def,
                                 const int64_t *rows, int64_t count, double *volume);
/* The cross-section of a stream that its half cells represent, without walls, m2 (2D: m): the
 * emitter's shadow, except that each half cell treats the rim as a plane. Uses only the grid, shape
 * and velocity of def. */
double un_particles_stream_area(un_context *ctx, const un_seed_def *def);
/* Number of particles that un_particles_seed would append. */
int64_t un_particles_seed_count(un_context *ctx, const un_seed_def *def);
/* Fraction of the unit cube, centred on the origin, below the plane n.x = d; n is a unit normal. */
double un_cube_below_plane(un_vec3 n, double d);

/* ---- emitters, drains and open sides (emit.c) ---- */

/* Removes particles outside the domain or in an open drain; particles in an emitter move with its
 * stream. */
un_status un_particles_remove(un_sources *sources, un_arena *arena, un_particles *particles,
                              double time);
/* The same, but only finds which are to be kept. */
void un_particles_sort_out(un_sources *sources, uint8_t *keep, un_particles *particles,
                           double time);
/* Sets density and viscosity of mixed particles from `first` on. */
un_status un_particles_give_matter(un_sources *sources, un_particles *particles, int32_t first,
                                   const un_matter *matter);
/* Appends the particles that emitters add in a step of dt that ended at `time`. settle is called
 * for each new particle and told whether it belongs to the first filling of its shape; *keep =
 * false takes the particle back. from: where the particle's place in the stream was when the step
 * began; if that was air, the particle displaces no liquid. */
typedef un_status un_particles_settle(void *arg, int32_t particle, un_vec3 from, bool first_filling,
                                      bool *keep);
un_status un_particles_emit(un_sources *sources, un_particles *particles, double time, double dt,
                            un_particles_settle *settle, void *arg);

/* ---- probes (probe.c) ---- */

/* The farthest place along an axis, up (sign 1) or down (-1), where liquid lies on a floor: on what
 * is below it along gravity. NaN where all is dry. */
double un_particles_wet(un_context *ctx, const un_particles *particles, const un_walls *walls,
                        un_vec3 gravity, int32_t axis, double sign);
/* Volume per second through a rectangle across an axis, m3/s (2D: through a line, m2/s); h: the
 * finest cells'. */
double un_particles_flux(un_context *ctx, const un_particles *particles, un_vec3 min, un_vec3 max,
                         int32_t axis, double h);
/* The same of all ranks' particles, which all call, with the bits of one rank. own: this rank's and
 * their numbers among all; rank 0 gets to know how far the floor is wet. */
un_status un_particles_wet_listed(un_context *ctx, const un_particles *particles,
                                  const un_listed *own, const un_walls *walls, un_vec3 gravity,
                                  int32_t axis, double sign, double *wet);
un_status un_particles_flux_summed(const un_particles *particles, un_particles_summer *sum,
                                   void *arg, un_vec3 min, un_vec3 max, int32_t axis, double h,
                                   double *flux);

/* ---- bins (bins.c): which particles lie in which cell ---- */

#define UN_BLOCK 8 /* cells along a side of a block */

/* Cells are numbered by blocks of 8^3, in 2D 8^2, along a Morton curve, x fastest within a block;
 * particles are sorted by that number. */
typedef struct un_bins {
    un_context *ctx;
    const un_grid *grid;
    int32_t blocks[3];
    int32_t block_count, block_cells; /* of a block: 512, in 2D 64 */
    int32_t *order;                   /* block numbers (x fastest), along the curve */
    /* Blocks whose cells are here: all, or those of some bars (un_bins_hold). */
    int32_t held_count;
    int32_t *rank;     /* block number -> its place among those; held_count: it is not here */
    int32_t *coloured; /* those, by colour */
    int32_t colour_begin[9];
    int32_t *begin; /* by cell number: its first particle; one more at the end */
    size_t begin_room;
} un_bins;

/* The bar that a block is part of: bars have the sides of blocks. */
static inline int32_t un_bins_bar(const un_bins *b, int32_t block)
{
    return block / b->blocks[0];
}
/* Does this rank compute the block? */
static inline bool un_bins_owns(const un_bins *b, int32_t block)
{
    return !b->grid->bars || un_bars_owns(b->grid->bars, un_bins_bar(b, block));
}

un_status un_bins_create(un_context *ctx, const un_grid *grid, un_bins **bins);
/* From now on only blocks of some bars are here, NULL: all; cells of others are empty. Sort before
 * using them. */
un_status un_bins_hold(un_bins *bins, const uint8_t *held);
/* The same for the blocks with a mark, by number. */
un_status un_bins_hold_marked(un_bins *bins, const uint8_t *mark);
void un_bins_destroy(un_bins *bins);
size_t un_bins_bytes(const un_grid *grid);
static inline uint32_t un_bins_cell(const un_bins *b, int32_t i, int32_t j, int32_t k)
{
    int32_t block =
        (i / UN_BLOCK) + b->blocks[0] * ((j / UN_BLOCK) + b->blocks[1] * (k / UN_BLOCK));
    return (uint32_t)(b->rank[block] * b->block_cells) +
           (uint32_t)((i % UN_BLOCK) + UN_BLOCK * ((j % UN_BLOCK) + UN_BLOCK * (k % UN_BLOCK)));
}
/* Sorts the particles and finds each cell's range. Positions must be finite and in the grid. */
un_status un_bins_sort(un_bins *bins, un_arena *arena, un_particles *particles);
/* The same, but in each cell by ids rather than in the order they had (NULL: in that order), and
 * without those that are listed. */
typedef struct un_bins_gone {
    const int32_t *list;
    int32_t count;
} un_bins_gone;
un_status un_bins_sort_by_id(un_bins *bins, un_arena *arena, un_particles *particles,
                             const uint32_t *id, const un_bins_gone *gone);
/* Sorts any things by keys below key_count: order lists them, begin says where each key's range in
 * it starts, with one more entry at the end. */
un_status un_bins_order(un_context *ctx, un_arena *arena, int32_t *order, int32_t *begin,
                        const uint32_t *keys, int64_t count, int64_t key_count);
/* Turns counts into offsets from `first` on; returns where the last one ends. */
static inline int64_t un_bins_offsets(int64_t *counts, int64_t count, int64_t first)
{
    for (int64_t b = 0; b < count; b++) {
        int64_t n = counts[b];
        counts[b] = first;
        first += n;
    }
    return first;
}
/* Sums over the particles that ranks compute, by bars (un_bars_sum): of a bar block by block along
 * x, of a block in the order of particles. first: by block, where its particles lie; NULL: where
 * sorting has put them. */
void un_bins_sums(const un_bins *bins, const int32_t *first, int32_t width,
                  un_parallel_values *values, void *arg, double *sums);
/* Calls body for every block that holds particles, with its range of particles, such that no two
 * blocks within a cell of each other run at the same time, and each place is added to in an order
 * that does not depend on the threads: a body may add to cells and faces up to one cell outside its
 * block. */
/* Rows around a rank's own that its scatters write to: two of copies of particles, which may have
 * left them since they were sorted, and one more. */
#define UN_SCATTER_REACH 4
typedef void un_block_body(void *arg, int64_t begin, int64_t end);
void un_bins_scatter(const un_bins *bins, un_block_body *body, void *arg);
/* The same for bodies that go by cells. corner: the lowest cell of the block; first: by cell of the
 * block, x fastest, its first particle; one more at the end. */
typedef void un_cells_body(void *arg, const int32_t corner[3], const int32_t *first);
void un_bins_scatter_cells(const un_bins *bins, un_cells_body *body, void *arg);

/* ---- particles of any cells, over ranks (near_cells.c) ---- */

/* Whose the particles are. A rank has those of whole blocks, and among them copies of others'. */
typedef struct un_bins_share {
    const int32_t *owner; /* by place of a block along the curve: its rank */
    const int64_t *first; /* the same: the number of its first particle among all; one more */
    un_exchange *halo;    /* all copies, and where they lie */
    const int32_t *slot;
    int32_t slot_count;
} un_bins_share;
/* By number of a block (not by its place), allocated. */
un_status un_bins_find_owners(const un_bins *bins, const un_bins_share *share, int32_t **owner);
/* By particle here: its number among all; allocated. */
un_status un_bins_find_ids(const un_bins *bins, const un_bins_share *share, int64_t count,
                           uint32_t **id);
/* Values of copies from those whose they are. */
un_status un_bins_share_copies(un_context *ctx, const un_bins_share *share, const char *name,
                               void *array, size_t size);

/* The particles of all ranks in some cells, in their order: positions, volumes and flags alone. */
typedef struct un_near_cells {
    un_context *ctx;
    un_particles particles;
    un_bins *bins; /* all other cells are empty */
    uint32_t *id;  /* their numbers among all */
    int32_t *own;  /* which of this rank's they are; -1: another rank's */
    un_exchange *copies;
    int32_t *slot; /* where copies lie, as they arrive */
} un_near_cells;
/* wanted: by cell of the grid; rows: by row of cells, whether any is. id: by particle here. Frees
 * what was made if it fails. */
un_status un_near_cells_get(un_context *ctx, un_near_cells *near, const un_bins *bins,
                            const un_bins_share *share, const un_particles *particles,
                            const uint32_t *id, const uint8_t *wanted, const uint8_t *rows);
void un_near_cells_free(un_near_cells *near);
/* Values of all of them, `size` bytes each, from those of this rank's particles. */
un_status un_near_cells_values(const un_near_cells *near, const char *name, void *values,
                               const void *here, size_t size);

/* ---- on a grid that warps (warp.c, warp_resize.c): particles are `warped` ---- */

/* The particles in reference space: their places there and, if not NULL, other volumes. It shares
 * the arrays and must be neither freed nor reordered. */
static inline un_particles un_particles_view(const un_particles *p, float *volume)
{
    un_particles view = *p;
    for (int a = 0; a < 3; a++) view.x[a] = p->xi[a];
    if (volume) view.volume = volume;
    view.warped = false;
    return view;
}
/* Finds xi from x, beginning with the last xi. */
void un_particles_locate(un_context *ctx, un_particles *particles, const un_warp *warp);
/* Takes over places, velocities and volumes of particles that are in space alone. */
un_status un_particles_adopt(un_context *ctx, un_particles *particles, const un_particles *from,
                             const un_warp *warp);
/* Finds x from xi, from particle `first` on. seeded: positions and volumes are those of seeding in
 * reference space, and become those in space. */
void un_particles_map(un_context *ctx, un_particles *particles, const un_warp *warp, int32_t first,
                      bool seeded);
/* share[q]: the particle's volume in reference space. */
void un_particles_shares(un_context *ctx, float *share, const un_particles *particles,
                         const un_warp *warp);
/* A lower bound of the distance from x, at xi, to closed sides and solids, m. walls: in space;
 * on_warp: sampled. */
double un_warp_clearance(const un_walls *walls, const un_walls *on_warp, un_vec3 x, un_vec3 xi);
/* The same at particles. */
void un_particles_clearances(un_context *ctx, float *wall, const un_particles *particles,
                             const un_walls *walls, const un_walls *on_warp);
/* Splits particles that fill much more than their share of a cell and merges those that fill much
 * less, within cells. Sort them and find their shares again if *changed. */
typedef struct un_warp_resize {
    const un_warp *warp;
    const un_bins *bins;
    float *share;          /* scratch afterwards */
    const float *phi;      /* at cells of reference space */
    const un_walls *walls; /* in space */
    uint64_t stream;       /* of random numbers: the step */
} un_warp_resize;
un_status un_particles_resize_warped(un_context *ctx, un_arena *arena, un_particles *particles,
                                     const un_warp_resize *def, bool *changed);

/* ---- position correction (correct.c) ---- */

/* Moves crowded particles apart; near the surface only along it. phi: at cell centres. Rows of
 * UN_BLOCK cells with nothing but liquid for `deep` <= UN_PHI_REACH cells around are left out; 0:
 * none are. */
un_status un_particles_correct(un_context *ctx, un_arena *arena, un_particles *particles,
                               const un_bins *bins, const float *phi, const un_walls *walls,
                               int32_t deep);

/* ---- particles of many sizes ---- */

/* Half the spacing at which particles of this volume fill space: a quarter of the edge of a cell
 * that eight of them fill. */
static inline double un_particle_radius(double volume)
{
    return 0.5 * cbrt(volume);
}
/* The spacing itself, of particles of a 2D or a 3D scene. */
static inline double un_particles_spacing(const un_particles *p, double volume)
{
    return p->flat ? sqrt(volume) : cbrt(volume);
}
/* Half of that for many, in single precision (markers.c). */
void un_particles_radii(float *radius, const float *volume, int64_t count, bool flat);

/* Groups of consecutive particles, which lie close together when they are sorted along a curve,
 * under a tree of boxes: finds neighbours of any size (groups.c). */
#define UN_GROUP 8
/* The boxes and largest radii of eight siblings in the tree; empty lanes have a radius of NaN. */
typedef struct un_group_box {
    _Alignas(32) float lo[3][8]; /* for vector loads */
    float hi[3][8], radius[8];
} un_group_box;
typedef struct un_groups {
    int64_t count; /* particles */
    int32_t group_count;
    const double *x[3];
    const float *radius;
    un_group_box *boxes; /* levels of the tree, the groups first, eight to a box */
    int32_t level_first[UN_LEVELS_MAX + 1];
    int32_t level_count;
} un_groups;

/* Keeps pointers to x and radius, not copies; the boxes come from the arena. */
un_status un_groups_build(un_context *ctx, un_arena *arena, un_groups *groups,
                          const double *const x[3], const float *radius, int64_t count);
/* A box around the group's particles, rounded outwards to single precision. */
static inline un_box3 un_groups_bounds(const un_groups *groups, int32_t group)
{
    const un_group_box *b = groups->boxes + group / 8;
    int c = group % 8;
    return (un_box3){un_v3((double)b->lo[0][c], (double)b->lo[1][c], (double)b->lo[2][c]),
                     un_v3((double)b->hi[0][c], (double)b->hi[1][c], (double)b->hi[2][c])};
}
/* The largest radius in the group. */
static inline float un_groups_radius(const un_groups *groups, int32_t group)
{
    return groups->boxes[group / 8].radius[group % 8];
}
/* Writes the groups, ascending, that may hold a particle j within reach + factor r_j of the box;
 * returns their number, or -1 - (that number) when the list is too short and only capacity of them
 * were written. reach and factor are not negative. */
int32_t un_groups_near(const un_groups *groups, un_box3 box, double reach, double factor,
                       int32_t *list, int32_t capacity);

/* Particles sorted by tet: all that the transfers need to know about where they are. */
typedef struct un_tet_bins {
    int32_t *tet; /* at particles; -1: a copy in a tet that this rank does not know */
    /* By tet: its first particle; one more at the end. Of tets around own nodes of other ranks, the
     * range may hold such copies too. */
    int32_t *begin;
    size_t capacity_tet, capacity_begin;
    struct un_particle_share *share; /* NULL: all particles are here */
    /* By leaf, over ranks: its first particle among those of all ranks, and the end; NULL where all
     * are here. `begin` then counts own particles. */
    int32_t *all;
    size_t capacity_all;
    /* Where thin walls part the tets: by particle, where un_tets_locate_closed finds its tet
     * (un_tets_seats). Undefined elsewhere. */
    un_vec3 *seat;
    size_t capacity_seat;
} un_tet_bins;
void un_tet_bins_free(un_context *ctx, un_tet_bins *bins);
/* After sorting, where thin walls part the tets: seats of own particles. */
un_status un_tet_bins_find_seats(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                                 const un_particles *particles, const un_tets *mesh);
/* An own particle q that is at x as when it was sorted, in its tet: as the walls were then. */
static inline void un_tet_bins_place(const un_tet_bins *bins, const un_tets *mesh, int64_t q,
                                     un_vec3 x, un_tets_place *place)
{
    if (un_tets_locate_in(mesh, bins->tet[q], x, place)) return;
    if (mesh->parted)
        un_tets_locate_closed(mesh, bins->seat[q], place);
    else
        un_tets_locate(mesh, x, place);
}
/* Positions and places of eight particles from q on; the last one again where there are only
 * `count`. */
static inline void un_tet_bins_eight(un_eight *x, int32_t tet[8], const un_tet_bins *bins,
                                     const un_particles *p, int64_t q, int64_t count)
{
    un_eight_load(x, p->x, q, count);
    for (int64_t n = 0; n < 8; n++) tet[n] = bins->tet[q + (n < count ? n : count - 1)];
}
/* Finds each particle's tet, sorts the particles by tet and finds each tet's range. */
un_status un_tet_bins_sort(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                           un_particles *particles, const un_tets *mesh);

/* Position correction in the overlap form of [Ando13 section 3]: pairs closer than
 * r_i + r_j are pushed apart by mass; within six radii of the surface only along it
 * (correct_sized.c). phi and normal: at particles, of the level set. Ballistic particles stay where
 * they are and push no others. The groups' boxes no longer fit afterwards. */
typedef struct un_correct_def {
    const un_groups *groups;
    const float *radius;
    const float *phi;       /* at particles, m */
    const float *normal[3]; /* at particles: gradient of phi, unit or zero */
    const float *wall;      /* at particles: a lower bound of the distance to walls, m */
    const un_walls *walls;
    double dt; /* of the step, s; INFINITY: correct particles at rest too */
    const struct un_particle_share *share; /* NULL: all particles are here */
} un_correct_def;
/* Over ranks only own particles move. */
un_status un_particles_correct_sized(un_context *ctx, un_arena *arena, un_particles *particles,
                                     const un_correct_def *def);
/* Groups are taken in batches: those with numbers from a multiple of UN_CORRECT_BATCH on. Over
 * ranks, all groups of a batch that holds own particles must be here (un_correct_groups), and all
 * others closer than reach + r_j to the box that un_correct_boxes gives for such a batch; where it
 * gives more than one, those whose particles own ones touch. It returns their number. first, end:
 * the batch here. */
#define UN_CORRECT_BATCH 8
#define UN_CORRECT_BOXES (UN_CORRECT_BATCH * UN_GROUP)
/* Where the curve jumps, groups in a row lie far apart: a batch wider than this, in largest radii,
 * is taken group by group. Of a group that is wider than this, each particle has a box. */
#define UN_CORRECT_WIDTH 24.0
#define UN_CORRECT_GROUP_WIDTH 12.0
int32_t un_correct_boxes(const un_groups *groups, int32_t first, int32_t end,
                         un_box3 box[UN_CORRECT_BOXES], float reach[UN_CORRECT_BOXES]);

/* The same by leaf: `tet` and `begin` then name leaves. */
un_status un_leaf_bins_sort(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                            un_particles *particles, const un_leaves *leaves,
                            const un_bodies *bodies);

/* ---- markers (markers.c): particles of many sizes on tets or leaves ---- */

#include "particles/share.h"

/* Numbers on one rank of the groups of all batches that hold own particles; none if there are no
 * own ones. */
static inline un_part un_correct_groups(const un_particle_share *s)
{
    const int64_t batch = UN_GROUP * UN_CORRECT_BATCH;
    if (s->own.begin == s->own.end) return (un_part){0, 0};
    int64_t groups = (s->own.total + UN_GROUP - 1) / UN_GROUP;
    int64_t end = (s->own.end + batch - 1) / batch * UN_CORRECT_BATCH;
    return (un_part){s->own.begin / batch * UN_CORRECT_BATCH, un_min64(end, groups)};
}

/* The per-particle arrays are valid until the particles are sorted again. */
typedef struct un_markers {
    un_particles particles;
    un_tet_bins bins;
    un_groups groups;
    float *radius;    /* m */
    float *depth;     /* the level set at the particle, m */
    float *normal[3]; /* its direction */
    float *wall;      /* a lower bound of the distance to walls, m */
    uint8_t
        *flags_before; /* flags that mesh and level set were built with; checkpoints hold these */
    int64_t ballistic; /* number of ballistic particles */
    un_arena lists;    /* groups, from one sorting to the next */
    size_t capacity[7];
    un_particle_share *share; /* NULL: all particles are here */
} un_markers;
/* This rank's own particles, between sorting and resizing. */
static inline un_part un_markers_own(const un_markers *m)
{
    return un_particle_own(m->share, m->particles.count);
}

void un_markers_init(un_context *ctx, un_markers *markers);
void un_markers_free(un_context *ctx, un_markers *markers);
/* Frees everything but the particles. */
void un_markers_release(un_context *ctx, un_markers *markers);
/* Gives back the pages of room for particles that are not there. */
void un_markers_rest(un_markers *markers);
/* Finds radii and groups of the particles in their present order. */
un_status un_markers_group(un_context *ctx, un_markers *markers);
/* Builds the groups again after particles have moved; the order is still good enough. */
un_status un_markers_regroup(un_context *ctx, un_markers *markers);
/* Sorts the particles by tet, then groups them; by leaf, without groups. Empties the arena. */
un_status un_markers_sort(un_context *ctx, un_arena *arena, un_markers *markers,
                          const un_tets *mesh);
un_status un_markers_sort_leaves(un_context *ctx, un_arena *arena, un_markers *markers,
                                 const un_leaves *leaves, const un_bodies *bodies);
un_status un_markers_keep_flags(un_context *ctx, un_markers *markers);
/* Sums over the particles of all ranks, each counted where it is own, before and after resizing;
 * with the bits of un_parallel_sums on one rank. values gets indices here and must add its elements
 * one by one. */
un_status un_markers_sums(un_context *ctx, const un_markers *markers, int32_t width,
                          un_parallel_values *values, void *arg, double *sums);
un_status un_markers_volume(un_context *ctx, const un_markers *markers, double *volume);
/* un_particles_wet and un_particles_flux of all ranks' particles, which all call this after
 * sorting: with the bits of one rank. */
un_status un_markers_wet(un_context *ctx, const un_markers *markers, const un_walls *walls,
                         un_vec3 gravity, int32_t axis, double sign, double *wet);
un_status un_markers_flux(un_context *ctx, const un_markers *markers, un_vec3 min, un_vec3 max,
                          int32_t axis, double h, double *flux);

/* ---- the octree that particles ask for (request.c) ---- */

/* Ratio of a leaf's edge to a particle's. A dam break of 128 cells takes 126 s to t = 0.6 s at 2.5,
 * 53 at 2.8 and 34 at 3.2: sheets and spray fill their leaves badly, and most leaves there hold one
 * or two particles. */
#define UN_LEAF_WIDTH 2.8
/* Level of the leaf that particle q asks for. */
typedef struct un_leaf_wishes {
    int32_t level_max;
    float least[2][UN_LEVELS_MAX]; /* by calm and level: the least volume that asks for no finer */
} un_leaf_wishes;
un_leaf_wishes un_leaf_wishes_make(const un_particles *particles, const un_octree *tree);
static inline int32_t un_leaf_wish(const un_leaf_wishes *wishes, const un_particles *p, int64_t q)
{
    const float *least = wishes->least[(p->flags[q] & UN_PARTICLE_CALM) != 0];
    int32_t level = 0;
    while (level < wishes->level_max && p->volume[q] < least[level]) level++;
    return level;
}
un_status un_particles_build_tree(un_context *ctx, un_arena *arena, un_octree *tree,
                                  const un_particles *particles);
/* The same tree from the particles of all ranks, which lie anywhere; parts have about the same
 * work. part: as in un_octree_build_ranks. */
un_status un_particles_build_tree_ranks(un_context *ctx, un_arena *arena, un_octree *tree,
                                        un_tree_share *part, const un_particles *particles);
/* Builds a tree at most one level nearer to the wanted sizes of the particles. level: of the tets
 * or leaves that they are sorted by. Sets *done, and builds no tree, if all leaves are fine enough
 * and settled_ok. */
un_status un_particles_refine_tree(un_context *ctx, un_arena *arena, un_octree *tree,
                                   const un_markers *markers, const uint8_t *level, bool settled_ok,
                                   bool *done);
/* The same over ranks, from their own particles. */
un_status un_particles_refine_tree_ranks(un_context *ctx, un_arena *arena, un_octree *tree,
                                         un_tree_share *part, const un_markers *markers,
                                         const uint8_t *level, bool settled_ok, bool *done);
/* Every rank has all of a tree: divides it into parts of about the same work, if the leaves in the
 * shape hold eight particles each. Afterwards a rank has its part and what is around it. */
un_status un_particles_divide_tree(un_context *ctx, un_arena *arena, un_octree *tree,
                                   un_tree_share *part, const un_shape *shape);
/* Particles too small for the liquid around them become UN_PARTICLE_LANDED and ask for no leaves
 * (drops.c). found: true if there are any, so the tree must be built again. */
un_status un_particles_part_drops(un_context *ctx, un_arena *arena, un_markers *markers,
                                  const un_octree *tree, bool *found);
/* The same over ranks, from resizing to sorting, with the tree that they share; found: on all. */
un_status un_particles_part_drops_ranks(un_context *ctx, un_arena *arena, un_markers *markers,
                                        const un_octree *tree, const un_tree_share *part,
                                        bool *found);

/* ---- sheets and threads thinner than a cell (sheets.c, evening.c) ---- */

typedef struct un_sheets_def {
    double h;        /* finest cells', m */
    double dt, pace; /* s; pace: un_scene_pace */
    double strength; /* solver.sheets: 0 none */
    const un_walls *walls;
    const float *wall;  /* at particles: a lower bound of the distance to walls, m; NULL: from the
                           walls' grid */
    const uint8_t *own; /* by particle: 1 where it is to change; NULL: all */
} un_sheets_def;
/* What the last evening found, for resizing: by particle, until the particles are sorted. */
typedef struct un_sheets {
    bool any;
    float *gap;     /* spacing over diameter; below 0 in a thread, 0 where there is no layer */
    float *axis[3]; /* a sheet's normal, a thread's direction */
    size_t capacity[4];
} un_sheets;
void un_sheets_free(un_context *ctx, un_sheets *sheets);
/* Evens velocities and positions of the particles marked UN_PARTICLE_THIN that form sheets or
 * threads. Velocities are those in the middle of the step. Momentum is kept to round-off; so is the
 * centre of mass, away from walls. sheets: may be NULL. */
un_status un_particles_even_sheets(un_context *ctx, un_arena *arena, un_particles *particles,
                                   const un_sheets_def *def, un_sheets *sheets);
/* The same for markers, between sorting and resizing (sheets_ranks.c). Over ranks own particles
 * change, and sheets is right at them; def->own is not used. */
un_status un_markers_even_sheets(un_context *ctx, un_arena *arena, un_markers *markers,
                                 const un_sheets_def *def, un_sheets *sheets);

/* Splits particles much larger than their wanted size and merges much smaller ones with their
 * nearest neighbours [Ando13 section 4] (resize.c); particles must be sized. Volume, momentum and
 * centre of mass are kept to round-off of the volumes, but near the surface new particles are moved
 * tangent to it, and near walls away from them. */
typedef struct un_resize_def {
    const un_groups *groups;
    const float *radius;
    const float *phi; /* at particles */
    const float *normal[3];
    const un_walls *walls;
    double volume_min, volume_max; /* of a particle of the finest and the coarsest cells */
    const un_sheets *sheets;       /* these stay covered; NULL: none */
    uint64_t stream;               /* of random numbers: the step */
    un_particle_share *share;      /* NULL: all particles are here */
} un_resize_def;
/* Over ranks: an own particle i that splits or merges asks for copies of all whole groups with
 * particles j closer than UN_RESIZE_FACTOR (reach + r_j), with all that a particle has and the
 * arrays of the definition, axes of sheets excepted. gap: of its sheet; 0: none. */
#define UN_RESIZE_FACTOR 1.5
static inline float un_resize_reach(float radius, float gap)
{
    return radius * fmaxf(1, 2 * fabsf(gap));
}
typedef struct un_resize_report {
    int64_t split_count, merge_count;
} un_resize_report;
/* Appends new particles and removes merged ones. The others keep their order; the caller's groups
 * and per-particle arrays are invalid afterwards. Over ranks only own particles are left, and their
 * numbers are listed; the report is that of all ranks. */
un_status un_particles_resize(un_context *ctx, un_arena *arena, un_particles *particles,
                              const un_resize_def *def, un_resize_report *report);
/* Which particles split or merge. Reads volumes and sheets of the definition. */
void un_particles_find_resized(un_context *ctx, uint8_t *resized, const un_particles *particles,
                               const un_resize_def *def);
/* Over ranks, for resizing: drops copies, and gets those of what own particles may merge with or
 * split beside, where they are now. sheets: those of the definition, NULL: none. Nothing happens on
 * one rank. */
un_status un_markers_fetch_near(un_context *ctx, un_arena *arena, un_markers *markers,
                                un_sheets *sheets, const un_resize_def *def);
/* Upper bound on the number of particles once resizing has settled, with all wanted sizes times
 * scale. Reads only the volumes of def. share: over ranks, between sorting and resizing; of all. */
double un_particles_expected(un_context *ctx, const un_particles *particles,
                             const un_particle_share *share, const un_resize_def *def,
                             double scale);

/* Seeds eight particles per leaf (four in a quadtree), as un_particles_seed does on a grid: each
 * half cell of a leaf has a jittered particle that carries the liquid in it. size: set to the
 * leaf's edge. */
typedef struct un_seed_leaves_def {
    const un_octree *tree;
    const un_shape *shape;
    const un_walls *walls;
    un_vec3 velocity;
    uint64_t stream;
    const un_tree_share *part; /* over ranks: only this rank's leaves; volume: of all ranks */
} un_seed_leaves_def;
un_status un_particles_seed_leaves(un_context *ctx, un_particles *particles,
                                   const un_seed_leaves_def *def, double *volume);

#endif
