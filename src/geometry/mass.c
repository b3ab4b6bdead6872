/* Volume, centre and second moments of a shape, and points on its surface.
 *
 * A cube is cut into eight until it lies wholly inside or outside, which a distance that is never
 * too large tells. In the smallest cubes the surface is taken as flat: the part of a cube below a
 * plane at the distance d with the normal n is about 1/2 - d / (h (|n_x| + |n_y| + |n_z|)), exact
 * for planes across an axis; what lies beside that is a tenth of a cube's volume at most, and
 * errors of neighbours cancel. */
#include "geometry/shape.h"

/* Cuts down to the smallest cubes. */
#define CUTS 7
#define CUTS_FLAT 10

typedef struct sums {
    const un_shape *shape;
    int dim;
    un_vec3 origin; /* moments are taken about it */
    double v, x[3], xx[3][3];
} sums;

static void add_cube(sums *s, un_vec3 middle, double h, double share)
{
    un_vec3 r = un_sub(middle, s->origin);
    double x[3] = {r.x, r.y, r.z}, v = share * (s->dim == 2 ? h * h : h * h * h);
    s->v += v;
    for (int i = 0; i < s->dim; i++) {
        s->x[i] += v * x[i];
        for (int j = 0; j < s->dim; j++)
            s->xx[i][j] += v * (x[i] * x[j] + (i == j ? h * h / 12 : 0));
    }
}

static void add_part(sums *s, un_vec3 middle, double h, int cuts)
{
    double d = un_shape_distance(s->shape, middle);
    if (fabs(d) >= 0.5 * h * sqrt(s->dim)) {
        if (d < 0) add_cube(s, middle, h, 1);
        return;
    }
    if (cuts == 0) {
        un_vec3 n = un_shape_normal(s->shape, middle);
        double span = fabs(n.x) + fabs(n.y) + (s->dim == 3 ? fabs(n.z) : 0);
        add_cube(s, middle, h, un_clamp(0.5 - d / (h * span), 0, 1));
        return;
    }
    for (int c = 0; c < 1 << s->dim; c++) {
        double q = 0.25 * h;
        un_vec3 to = un_v3(c & 1 ? q : -q, c & 2 ? q : -q, s->dim == 2 ? 0 : c & 4 ? q : -q);
        add_part(s, un_add(middle, to), 0.5 * h, cuts - 1);
    }
}

/* The middle and the edge of a cube around the shape. */
static un_vec3 cube_around(const un_shape *shape, int dim, double *edge)
{
    un_box3 b = un_shape_bounds(shape);
    un_vec3 side = un_sub(b.max, b.min), middle = un_scale(un_add(b.min, b.max), 0.5);
    if (dim == 2) middle.z = side.z = 0;
    *edge = fmax(side.x, fmax(side.y, side.z));
    return middle;
}

bool un_shape_mass(const un_shape *shape, int32_t dim, un_shape_sums *out)
{
    double edge;
    un_vec3 middle = cube_around(shape, dim, &edge);
    *out = (un_shape_sums){0};
    if (!un_finite3(middle) || !isfinite(edge)) return false;
    sums s = {.shape = shape, .dim = dim, .origin = middle};
    add_part(&s, middle, edge, dim == 2 ? CUTS_FLAT : CUTS);
    if (!(s.v > 0)) return false;
    double c[3] = {s.x[0] / s.v, s.x[1] / s.v, s.x[2] / s.v};
    out->volume = s.v;
    out->centre = un_add(middle, un_v3(c[0], c[1], c[2]));
    double trace = 0;
    for (int i = 0; i < 3; i++) trace += s.xx[i][i] - s.v * c[i] * c[i];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out->inertia[i][j] = (i == j ? trace : 0) - (s.xx[i][j] - s.v * c[i] * c[j]);
    return true;
}

static bool has_holes(const un_shape *shape)
{
    if (shape->kind == SHAPE_MOVE) return has_holes(shape->move.part);
    if (shape->kind < SHAPE_UNION || shape->kind > SHAPE_SUBTRACT) return shape->open;
    for (int32_t i = 0; i < shape->csg.part_count; i++)
        if (has_holes(shape->csg.parts[i])) return true;
    return false;
}

bool un_shape_is_closed(const un_shape *shape)
{
    un_box3 b = un_shape_bounds(shape);
    return un_finite3(b.min) && un_finite3(b.max) && !has_holes(shape);
}

/* ---- points on the surface ---- */

typedef struct points {
    const un_shape *shape;
    un_vec3 *x;
    int32_t count, room;
    double near; /* no two are closer */
} points;

/* Adds a point unless it is not on the surface or one is there already. */
static void add_point(points *p, un_vec3 x)
{
    if (p->count == p->room) return;
    if (!un_finite3(x) || fabs(un_shape_distance(p->shape, x)) > 0.01 * p->near) return;
    for (int32_t i = 0; i < p->count; i++) {
        un_vec3 way = un_sub(x, p->x[i]);
        if (un_dot(way, way) < p->near * p->near) return;
    }
    p->x[p->count++] = x;
}

/* Corners that a lattice would miss. */
static void add_corners(points *p, const un_shape *part, const un_pose *to, int dim)
{
    if (part->kind == SHAPE_BOX) {
        for (int c = 0; c < 1 << dim; c++) {
            const un_box3 *b = &part->box;
            un_vec3 x = un_v3(c & 1 ? b->max.x : b->min.x, c & 2 ? b->max.y : b->min.y,
                              dim == 2 ? 0
                              : c & 4  ? b->max.z
                                       : b->min.z);
            add_point(p, un_pose_apply(to, x));
        }
    } else if (part->kind == SHAPE_MOVE) {
        un_pose pose = un_pose_compose(to, &part->move.pose);
        add_corners(p, part->move.part, &pose, dim);
    } else if (part->kind >= SHAPE_UNION && part->kind <= SHAPE_SUBTRACT) {
        for (int32_t i = 0; i < part->csg.part_count; i++)
            add_corners(p, part->csg.parts[i], to, dim);
    }
}

/* Samples so many to the longest side are drawn to the surface. */
#define LATTICE 10
#define LATTICE_FLAT 48
#define DRAWS 6

int32_t un_shape_points(const un_shape *shape, int32_t dim, un_vec3 *x, int32_t room)
{
    double edge;
    un_vec3 middle = cube_around(shape, dim, &edge);
    if (!un_finite3(middle) || !(edge > 0)) return 0;
    int32_t n = dim == 2 ? LATTICE_FLAT : LATTICE;
    double h = edge / n;
    points p = {.shape = shape, .x = x, .room = room, .near = 0.5 * h};
    un_pose here = un_pose_identity();
    add_corners(&p, shape, &here, dim);
    for (int32_t k = dim == 2 ? 0 : -1; k <= (dim == 2 ? 0 : n); k++)
        for (int32_t j = -1; j <= n; j++)
            for (int32_t i = -1; i <= n; i++) {
                double at = 0.5 * (n - 1);
                un_vec3 q =
                    un_add(middle, un_v3((i - at) * h, (j - at) * h, dim == 2 ? 0 : (k - at) * h));
                double d = un_shape_distance(shape, q);
                if (fabs(d) > 0.9 * h) continue;
                for (int draw = 0; draw < DRAWS && fabs(d) > 1e-6 * h; draw++) {
                    un_vec3 along = un_shape_normal(shape, q);
                    if (dim == 2) along = un_normalize(un_v3(along.x, along.y, 0));
                    q = un_mad(q, along, -d);
                    d = un_shape_distance(shape, q);
                }
                add_point(&p, q);
            }
    return p.count;
}
