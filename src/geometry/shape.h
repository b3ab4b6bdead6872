/* The private part of shapes; only geometry/ includes this. */
#ifndef UN_GEOMETRY_SHAPE_H
#define UN_GEOMETRY_SHAPE_H

#include "geometry/geometry.h"

typedef enum shape_kind {
    SHAPE_BOX,
    SHAPE_SPHERE,
    SHAPE_CYLINDER,
    SHAPE_CAPSULE,
    SHAPE_TORUS,
    SHAPE_PLANE,
    SHAPE_SAMPLED,
    SHAPE_MESH,
    SHAPE_UNION,
    SHAPE_INTERSECT,
    SHAPE_SUBTRACT,
    SHAPE_MOVE
} shape_kind;

/* A solid of revolution: the cylinder or capsule between center -+ half axis, or the torus. */
typedef struct shape_round {
    un_vec3 center, axis; /* axis: unit */
    double half;          /* length; not for the torus */
    double radius;
    double tube; /* torus only */
} shape_round;

typedef struct shape_sampled {
    double *values;
    int32_t n[3];
    un_vec3 origin;
    double h;
    bool closed; /* no inside on the grid's boundary */
} shape_sampled;

struct un_shape {
    un_shape *next; /* in its set */
    shape_kind kind;
    int32_t depth; /* of nesting, 1 for a single shape */
    bool open;     /* a mesh with holes */
    int32_t cost;  /* shapes that one evaluation visits */
    un_box3 bounds;
    union {
        un_box3 box;
        struct {
            un_vec3 center;
            double radius;
        } sphere;
        shape_round round;
        struct {
            un_vec3 point, normal; /* unit */
        } plane;
        shape_sampled sampled;
        struct mesh_tree *mesh;
        struct {
            const un_shape **parts;
            int32_t part_count;
            struct union_node *nodes; /* over the parts of a large union, else NULL */
            int32_t endless_count;    /* the first parts, which are not in the tree */
        } csg;
        struct {
            const un_shape *part;
            un_pose pose;
        } move;
    };
};

struct un_shape_set {
    un_context *ctx;
    un_shape *shapes; /* newest first */
};

/* A cleared shape of its kind, not yet in the set: shape_add it, or un_free it. */
un_shape *shape_new(un_shape_set *set, shape_kind kind);
void shape_add(un_shape_set *set, un_shape *shape);

/* fmax and fmin are calls to the maths library, because of NaN. */
static inline double larger(double a, double b)
{
    return a > b ? a : b;
}
static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}
static inline un_vec3 larger3(un_vec3 a, un_vec3 b)
{
    return un_v3(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z));
}
static inline un_vec3 smaller3(un_vec3 a, un_vec3 b)
{
    return un_v3(smaller(a.x, b.x), smaller(a.y, b.y), smaller(a.z, b.z));
}

/* v / |v|, even where |v|^2 underflows; fallback if v is zero. */
un_vec3 shape_direction(un_vec3 v, un_vec3 fallback);

/* ---- primitive.c ---- */

double primitive_distance(const un_shape *shape, un_vec3 x);
un_vec3 primitive_normal(const un_shape *shape, un_vec3 x);

/* Signed, like that of any box. */
double box_distance(const un_box3 *box, un_vec3 x);

/* ---- combine.c ---- */

/* Points that un_shape_distances handles at once: each level keeps so many on the stack. */
#define SHAPE_RUN 64

un_status shape_check_nesting(un_context *ctx, int32_t depth, int64_t cost);
/* The part that decides at x, and its distance signed as the combination uses it. */
int32_t combined_part(const un_shape *shape, un_vec3 x, double *distance);
/* count <= SHAPE_RUN */
void combined_run(const un_shape *shape, const un_vec3 *x, int32_t count, double *distance);

/* ---- sampled.c ---- */

double sampled_distance(const shape_sampled *sampled, un_vec3 x);
un_vec3 sampled_normal(const shape_sampled *sampled, un_vec3 x);

/* ---- meshquery.c, meshtree.c ---- */

void mesh_tree_free(un_context *ctx, struct mesh_tree *tree);
double mesh_distance(const struct mesh_tree *tree, un_vec3 x);
un_vec3 mesh_normal(const struct mesh_tree *tree, un_vec3 x);
void mesh_distances(const struct mesh_tree *tree, const un_vec3 *x, int32_t count,
                    double *distance);
bool mesh_entry(const struct mesh_tree *tree, un_vec3 a, un_vec3 b, double *share);

#endif
