/* Walks over the cut surface to the nearest point, which give nodes their distances. */
#ifndef UN_SURFACE_DISTANCE_H
#define UN_SURFACE_DISTANCE_H

#include "surface/cut.h"

/* ---- walks (tet_walk.c) ---- */

/* Where in its triangle a nearest point lies: 0..2 corner, 3..5 the edge that leaves this corner.
 */
enum { UN_CORNER = 0, UN_EDGE = 3, UN_INSIDE = 6 };

typedef struct un_nearest {
    double square; /* of the distance */
    un_vec3 x;
    int32_t feature;
} un_nearest;

/* What walks need to know of the surface. */
typedef struct un_walks {
    const un_cut *cut;
    int32_t *first, *around; /* by vertex: its triangles */
    uint8_t *partial; /* by vertex: another rank knows more triangles around it; NULL: one rank */
} un_walks;
un_status un_walks_build(un_walks *walks, un_arena *arena, const un_cut *cut);

typedef struct un_walk {
    un_vec3 p; /* looks for the point nearest to this */
    un_nearest best;
    int32_t triangle, home; /* that the best point lies in, and the rank that numbers it so */
    int32_t step;
    int32_t at[2]; /* stopped at this corner, or at the edge from it to the second; -1: none */
} un_walk;

/* All three walk to a locally nearest point, and are false where the walk stops at a vertex some of
 * whose triangles only another rank knows (`at`). home is not set. */
bool un_walk_from(const un_walks *walks, un_walk *w, int32_t triangle);
/* From the triangles around a vertex. */
bool un_walk_around(const un_walks *walks, un_walk *w, int32_t vertex);
/* Goes on at corner a, or at the edge from it to b (-1: none). triangle: -1 if the best point so
 * far lies in a triangle that is not known here, and stays -1 if no nearer one is found. */
bool un_walk_on(const un_walks *walks, un_walk *w, int32_t a, int32_t b);

/* ---- nodes (tet_distance.c) ---- */

/* The nearest point so far. Its position only serves to choose among neighbours. */
typedef struct un_foot {
    int32_t triangle;
    float x[3];
} un_foot;

/* Nodes of cut tets; layers away from them; all nodes again. */
typedef enum un_distance_stage {
    UN_DISTANCE_START,
    UN_DISTANCE_LAYERS,
    UN_DISTANCE_SWEEPS
} un_distance_stage;

typedef struct un_distances {
    un_walks walks;
    const un_cut *cut;
    const un_tets *mesh;
    const un_tet_graph *graph;
    un_distance_stage stage;
    un_foot *foot;         /* by node; infinitely far where there is none yet */
    uint8_t *done;         /* by node */
    _Atomic uint8_t *mark; /* by node: next to one that is done */
    uint8_t *next;         /* by node: in the next layer */
    un_part own;           /* this rank's nodes */
    const int32_t *list;   /* nodes of the layer, from the first own one; NULL: all own ones */
    int32_t *list_room;    /* for all own nodes */
    int64_t list_count;    /* of them */
    un_foot *found;        /* by own node */
    float *phi;
    /* over ranks (distance_ranks.c); NULL on one */
    uint8_t *fresh;      /* by node: found or improved in this layer or sweep */
    int32_t *home;       /* by node: the rank that numbers the foot's triangle */
    int32_t *found_home; /* by own node */
    uint8_t *stopped;    /* by own node: its walk goes on with another rank */
    struct un_distance_mail *mail;
} un_distances;

/* How far a node's walk gets on this rank: there is nothing to start from; it ends here; it stops
 * (`at`); it starts from a vertex (at[0]) or a triangle (`triangle` and `home`) of another rank. */
typedef enum un_walk_outcome {
    UN_WALK_NONE,
    UN_WALK_ENDED,
    UN_WALK_STOPPED,
    UN_WALK_VERTEX_AWAY,
    UN_WALK_TRIANGLE_AWAY
} un_walk_outcome;
un_walk_outcome un_distance_walk(const un_distances *s, int32_t n, un_walk *w);
/* What a walk has found for node n. */
void un_distance_take(un_distances *s, int32_t n, const un_walk *w);

/* ---- over ranks (distance_ranks.c) ---- */

un_status un_distance_ranks_begin(un_context *ctx, un_arena *arena, un_distances *s);
void un_distance_ranks_end(un_context *ctx, un_distances *s);
/* Walks that stopped go on with the ranks that know the way, until all have ended. */
un_status un_distance_finish(un_context *ctx, un_distances *s, bool *any);

#endif
