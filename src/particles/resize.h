/* Splitting and merging. Only resize.c and resize_split.c include this. */
#ifndef UN_PARTICLES_RESIZE_H
#define UN_PARTICLES_RESIZE_H

#include "particles/groups.h"
#include "particles/pairs.h"
#include "particles/particles.h"

/* New particles closer to the surface than this, in radii, are made tangent to it [Ando13]. */
#define UN_TANGENT_WITHIN 1.25
/* New particles keep this distance from walls, in radii, where they can. */
#define UN_WALL_MARGIN 0.25

/* Nearest partners considered; if all are taken, the particle waits for the next call. */
#define UN_PARTNERS 4

enum { UN_RESIZE_KEEP, UN_RESIZE_SPLIT, UN_RESIZE_MERGE, UN_RESIZE_GONE, UN_RESIZE_SPLIT_SHEET };

typedef struct un_halves {
    un_vec3 x[2];
    bool found;
} un_halves;

typedef struct un_resizing {
    un_particles *particles;
    const un_resize_def *def;
    uint8_t *kind;                   /* by particle */
    int32_t *split, *small;          /* particles to split, to merge */
    un_halves *halves;               /* by split */
    int32_t (*partner)[UN_PARTNERS]; /* by small one: nearest first, -1 none */
    float (*distance)[UN_PARTNERS];
    int32_t (*pair)[2]; /* merged ones, the lower first; -1 - k: the k-th that is sent here */
    float *merged_volume;
    un_pairs_post post;
    un_part own;        /* this rank's particles */
    int32_t *first_new; /* by split: where its second half goes */
    int64_t split_count, small_count, pair_count;
} un_resizing;

/* Moves a particle within UN_TANGENT_WITHIN times `near` of the surface so that it just touches it,
 * if walls allow. */
un_vec3 un_resize_tangent(const un_resizing *a, un_vec3 x, double phi, un_vec3 normal, double r,
                          double near);
/* Loops over particles to split (resize_split.c): finds places for the halves; splits those that
 * have found them. */
void un_resize_find_halves(void *arg, int64_t begin, int64_t end);
void un_resize_split(void *arg, int64_t begin, int64_t end);

#endif
