/* The pressure's difference across a face or a group of faces, for leaves.c, which says what it is,
 * and leaves_force.c. */
#ifndef UN_PRESSURE_LEAVES_H
#define UN_PRESSURE_LEAVES_H

#include "pressure/system.h"

/* As in project.c. */
#define UN_LEAF_AREA_MIN 1e-3
/* Least depth of a liquid leaf, in edges. */
#define UN_LEAF_DEPTH_MIN 1e-6

typedef struct un_leaf_args {
    un_pressure *pr;
    const un_leaf_projection *in;
    const un_leaves *m;
    uint8_t *plain;  /* by leaf */
    double *wanted;  /* by row: the divergence, 1/s */
    double *heap;    /* by row: the outflow that parts heaps */
    double *parting; /* by face: the velocity that does, or NULL */
    /* What rows are multiplied by: entries have no unit then, and scenes of any size have the same
     * matrix to the last bit. */
    double scale;
    bool shared; /* ranks share the rows: they know some of the leaves */
    un_part own; /* this one's; not shared: all */
} un_leaf_args;

/* Over ranks (leaves_ranks.c). Numbers own unknowns as on one rank, and gets the numbers of others.
 */
un_status un_leaf_pressure_number_parts(un_leaf_args *s);
/* Rows are assembled: which ones of others own rows couple to, and those next to bodies, once they
 * are known. */
un_status un_leaf_pressure_know_rows(const un_leaf_args *s);

/* Columns for the bodies that the liquid moves, and what the surface's pressure does to them.
 * Shared rows: fails on all ranks or on none (leaves_force.c). */
un_status un_leaf_couple(un_leaf_args *s);

/* One derivative and what it is made of: (sum w_i p_i) / d. */
typedef struct un_side_rule {
    int count;        /* leaves */
    int32_t leaf[5];  /* the last is the large one */
    double weight[5]; /* a_s, then -1 */
    double area[4];   /* open, of the small faces */
    double total;     /* their sum */
    double distance;
} un_side_rule;

static inline double un_leaf_open_share(const un_leaf_projection *in, int32_t f)
{
    double a = in->walls->area[f];
    return a < UN_LEAF_AREA_MIN ? 0 : a;
}

static inline double un_leaf_open_area(const un_leaf_args *s, int32_t f)
{
    return un_leaf_open_share(s->in, f) * s->scale * un_leaf_face_area(s->m, f);
}

static inline void un_leaf_group_rule(const un_leaf_args *s, int32_t large, int32_t group,
                                      un_side_rule *r)
{
    const un_leaves *m = s->m;
    int n = un_leaves_group_size(m);
    r->count = n + 1;
    r->total = 0;
    for (int k = 0; k < n; k++) {
        int32_t f = m->group[group][k];
        r->leaf[k] = m->face_side[f] / 6;
        r->area[k] = un_leaf_open_area(s, f);
        r->total += r->area[k];
    }
    for (int k = 0; k < n; k++) r->weight[k] = r->total > 0 ? r->area[k] / r->total : 0;
    r->leaf[n] = large;
    r->weight[n] = -1;
    r->distance = 0.75 * un_leaf_size(m, large);
}

static inline double un_leaf_depth(const un_leaf_args *s, int32_t q)
{
    return fmin(s->in->phi[q], -UN_LEAF_DEPTH_MIN * un_leaf_size(s->m, q));
}

/* What p_z is in row q, over p_q, for z without an unknown. */
static inline double un_leaf_ghost(const un_leaf_args *s, int32_t q, int32_t z, bool sibling)
{
    if (sibling && s->plain[q]) return 1;
    return fmax(s->in->phi[z], 0) / un_leaf_depth(s, q);
}

#endif
