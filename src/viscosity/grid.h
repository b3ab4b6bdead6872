/* Strain of velocities on the faces of a staggered grid, with walls. Only src/viscosity/grid*.c
 * include this. */
#ifndef UN_VISCOSITY_GRID_H
#define UN_VISCOSITY_GRID_H

#include "viscosity/viscosity.h"

/* What a face is to viscous liquid. */
enum {
    UN_FACE_OPEN,   /* its velocity is solved for, if viscous liquid is around it */
    UN_FACE_STICKS, /* in a wall, whose velocity it has */
    UN_FACE_SLIDES, /* beyond a side of the domain that liquid slides along */
    UN_FACE_EMITS   /* in an emitter, whose velocity it has */
};

typedef struct un_stress_grid {
    const un_viscous_grid *in;
    const un_grid *g;
    un_viscosity *v;
    float *share;     /* at cells, for each of its 8 (2D: 4) parts: open and liquid, 0 to 1 */
    uint8_t *near;    /* at cells: 1 if one of the 27 around it (2D: 9) has viscous liquid */
    uint8_t *kind[3]; /* at faces; set where cells are near */
    uint8_t *solved;  /* at cells, by bit: its lower faces whose velocity is solved for */
    bool sliding;     /* some body lets liquid slide */
    double snap;      /* m: nearer than this is on a wall */
} un_stress_grid;

/* A rate of strain, 1/s: the sum of coef times face velocities, plus a constant of walls. The work
 * that it costs in a step is weight times its square, halved. */
#define UN_STRAIN_MAX 6
typedef struct un_strain {
    double weight; /* dt times viscosity times volume, Pa s2 m3 */
    double constant;
    double volume; /* of the liquid that it stands for, m3 */
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
static inline double un_strain_value(const un_strain *e, double *const u[3])
{
    double sum = e->constant;
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

/* ---- volume (grid_volume.c) ---- */

typedef struct un_grid_volume {
    double *divergence; /* at cells, times dt mu */
    double *step;       /* at cells: change of dt times the pressure */
    double rho;         /* of Chebyshev's iteration */
} un_grid_volume;
un_status un_grid_volume_begin(un_grid_volume *keep, un_arena *arena, const un_stress_grid *s);
double un_grid_volume_error(un_grid_volume *keep, const un_stress_grid *s);
void un_grid_volume_push(un_grid_volume *keep, const un_stress_grid *s);

#endif
