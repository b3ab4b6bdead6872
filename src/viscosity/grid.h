/* Strain of velocities on the faces of a staggered grid, with walls. Only src/viscosity/grid*.c
 * include this. */
#ifndef UN_VISCOSITY_GRID_H
#define UN_VISCOSITY_GRID_H

#include "viscosity/round.h"

/* What a face is to viscous liquid. */
enum {
    UN_FACE_OPEN,   /* its velocity is solved for, if viscous liquid is around it */
    UN_FACE_STICKS, /* in a wall, whose velocity it has */
    UN_FACE_SLIDES, /* beyond a side of the domain that liquid slides along */
    UN_FACE_EMITS   /* in an emitter, whose velocity it has */
};

/* A body that the liquid moves. */
typedef struct un_moved_body {
    int32_t body;
    un_vec3 centre;
    double length;    /* m: what spins are multiplied with */
    double change[6]; /* of its velocity, and of its spin times that */
} un_moved_body;

typedef struct un_stress_grid {
    const un_viscous_grid *in;
    const un_grid *g;
    un_viscosity *v;
    float *share;     /* at cells, for each of its 8 (2D: 4) parts: open and liquid, 0 to 1 */
    float *open;      /* the same without regard to liquid */
    uint8_t *near;    /* at cells: 1 if one of the 27 around it (2D: 9) has viscous liquid */
    uint8_t *kind[3]; /* at faces; set where cells are near */
    float *wall[3];   /* at faces near bodies: distance to them, m; NULL without bodies */
    uint8_t *solved;  /* that of v */
    un_moved_body *body;
    int32_t body_count, *number; /* number: by the scene's body, -1: none; NULL: there are none */
    bool sliding;                /* some body lets liquid slide */
    double snap;                 /* m: nearer than this is on a wall */
} un_stress_grid;

/* How a strain depends on a moved body. */
typedef struct un_push {
    int32_t body; /* its number from 1; 0: it depends on none */
    double by[6]; /* coefficients of the body's changes */
} un_push;

/* A rate of strain, 1/s: the sum of coef times face velocities, plus a constant of walls. The work
 * that it costs in a step is weight times its square, halved. */
#define UN_STRAIN_MAX 6
typedef struct un_strain {
    double weight; /* dt times viscosity times volume, Pa s2 m3 */
    double constant;
    double volume; /* of the liquid that it stands for, m3 */
    un_push push;
    int count;
    int32_t cell[UN_STRAIN_MAX]; /* of faces that are solved for */
    uint8_t axis[UN_STRAIN_MAX];
    double coef[UN_STRAIN_MAX];
} un_strain;
/* The most strains that touch a place between cells: see below. */
#define UN_STRAINS_MAX 4

static inline void un_stress_at(const un_grid *g, int64_t c, int32_t at[3])
{
    at[0] = (int32_t)(c % g->n[0]);
    at[1] = (int32_t)(c / g->n[0] % g->n[1]);
    at[2] = (int32_t)(c / g->stride[2]);
    if (g->dim == 2) at[2] = 0;
}
/* Cells whose lower faces lie between two cells. */
static inline bool un_stress_inside(const un_grid *g, const int32_t at[3])
{
    return at[0] > 0 && at[1] > 0 && (g->dim == 2 || at[2] > 0);
}

/* ---- several ranks (grid_ranks.c) ---- */

/* So many rows beside its own a rank finds shares and kinds of faces in; what they are found from
 * it knows in one more. Kinds follow from shares along y and then along z, in a row less each. */
#define UN_STRESS_SHARES 5
#define UN_STRESS_KINDS 3
/* Copies of so many rows of velocities serve strains, and faces that follow. */
#define UN_STRESS_BESIDE 2
/* Loops over rows of cells, and over cells, of this rank. */
void un_stress_over_rows(const un_stress_grid *s, int32_t wide, un_parallel_body *body, void *arg);
void un_stress_over_cells(const un_stress_grid *s, un_parallel_body *body, void *arg);
void un_stress_over_unknowns(const un_stress_grid *s, un_parallel_body *body, void *arg);
/* Sums over cells. */
void un_stress_sums(const un_stress_grid *s, int32_t width, un_parallel_values *values, void *arg,
                    double *sums);
un_status un_stress_share_input(const un_stress_grid *s);
un_status un_stress_share_velocities(const un_stress_grid *s);
/* Numbers cells whose index is not negative, then places of bodies. */
un_status un_stress_number(un_stress_grid *s);
/* row[r + 1] of own rows holds the number of their entries, and afterwards the end. */
un_status un_stress_start_rows(const un_stress_grid *s);
/* Bodies' rows come last, and so belong to the last rank. */
static inline bool un_stress_has_bodies(const un_stress_grid *s)
{
    return s->body_count > 0 &&
           (!s->v->shared || un_rank(s->v->ctx) + 1 == un_rank_count(s->v->ctx));
}
/* Of the last rank to all. */
void un_stress_tell_bodies(const un_stress_grid *s);

/* ---- shares (grid_shares.c) ---- */

void un_stress_find_shares(const un_stress_grid *s);
/* Sets `near`, from 1 where there is liquid; scratch: at cells. */
void un_stress_spread(un_stress_grid *s, uint8_t *scratch);
/* Sums over the parts of cells around a place of share times `of` (at cells; NULL: times all), in
 * cells: cell c; the lower face of c; the lower edge of c between axes a and b. */
double un_stress_cell(const un_stress_grid *s, int64_t c, const float *of, double all);
double un_stress_face(const un_stress_grid *s, int64_t c, int a, const float *of, double all);
double un_stress_edge(const un_stress_grid *s, int64_t c, int a, int b, const float *of,
                      double all);

/* The open part of the cubes around a cell and an edge, in cells. */
double un_stress_cell_open(const un_stress_grid *s, int64_t c);
double un_stress_edge_open(const un_stress_grid *s, int64_t c, int a, int b);

/* ---- strains (grid_strain.c) ---- */

void un_stress_find_kinds(const un_stress_grid *s);
/* The velocity of a face that is not open. */
double un_stress_held(const un_stress_grid *s, int axis, const int32_t at[3]);
/* Between an open face and one in a wall next to it along b (way: 1 if the wall is above, -1): how
 * far the wall is from the open face, in cells, and its velocity there. */
typedef struct un_ghost {
    double theta, speed;
} un_ghost;
un_ghost un_stress_ghost(const un_stress_grid *s, int a, int b, const int32_t open_at[3],
                         const int32_t wall_at[3], int way);
/* du_a/da in the cell at `at`: false if there is none. */
bool un_strain_cell(const un_stress_grid *s, const int32_t at[3], int a, un_strain *out);
/* du_a/db + du_b/da at the lower edge between both axes of that cell. Returns how many: two where
 * both terms are apart, or both sides of the edge. */
int un_strain_edge(const un_stress_grid *s, const int32_t at[3], int a, int b, un_strain out[2]);
/* What a body in the cell that lets liquid slide does to it: no strains, but velocities relative to
 * the body. */
int un_strain_wall(const un_stress_grid *s, const int32_t at[3], un_strain out[UN_STRAINS_MAX]);
/* Its value for velocities u. */
static inline double un_strain_value(const un_stress_grid *s, const un_strain *e,
                                     double *const u[3])
{
    double sum = e->constant;
    for (int k = 0; e->push.body > 0 && k < 6; k++)
        sum += e->push.by[k] * s->body[e->push.body - 1].change[k];
    for (int k = 0; k < e->count; k++) sum += e->coef[k] * u[e->axis[k]][e->cell[k]];
    return sum;
}
/* The coefficient of the lower face of cell c. */
static inline double un_strain_of(const un_strain *e, int axis, int64_t c)
{
    for (int k = 0; k < e->count; k++)
        if (e->axis[k] == axis && e->cell[k] == c) return e->coef[k];
    return 0;
}

/* ---- rows (grid.c) ---- */

/* The row of cell c, itself first, then cells, then bodies. val NULL: only the places. */
void un_stress_row(const un_stress_grid *s, int64_t c, un_row *row, double (*val)[9], double b[3]);

/* ---- bodies that the liquid moves (grid_bodies.c) ---- */

un_status un_stress_find_bodies(un_stress_grid *s, un_arena *arena);
/* Gives the bodies their changes. */
void un_stress_move_bodies(const un_stress_grid *s);
/* Adds `times` the velocity along an axis of a body of the scene at x, if it is moved. */
void un_push_add(const un_stress_grid *s, un_push *push, int32_t body, int axis, un_vec3 x,
                 double times);
/* Rows of moved bodies; `which`: 0 a body's velocity, 1 its spin. Counts their entries in row[r +
 * 1]; fills them in; adds to b what the pressure p, times dt, does. */
void un_stress_count_bodies(const un_stress_grid *s);
un_status un_stress_fill_bodies(const un_stress_grid *s);
void un_stress_push_bodies(const un_stress_grid *s, const double *p);
/* Is it free to move along (0 to 2) or about (3 to 5) an axis? */
bool un_stress_body_moves(const un_stress_grid *s, int32_t k, int motion);

/* ---- volume (grid_volume.c) ---- */

typedef struct un_grid_volume {
    double *divergence; /* at cells, times dt mu */
    double *step;       /* at cells: change of dt times the pressure */
    double rho;         /* of Chebyshev's iteration */
} un_grid_volume;
un_status un_grid_volume_begin(un_grid_volume *keep, un_arena *arena, const un_stress_grid *s);
double un_grid_volume_error(un_grid_volume *keep, const un_stress_grid *s);
un_status un_grid_volume_push(un_grid_volume *keep, const un_stress_grid *s);

#endif
