/* Analytic shapes: exact signed distances, their gradients and tight bounds.
 *
 * All solids of revolution reduce to a planar problem in (t, r): t along the axis from the
 * centre, r away from it. */
#include "geometry/shape.h"

static un_vec3 perpendicular(un_vec3 a)
{
    un_vec3 least = fabs(a.x) <= fabs(a.y) && fabs(a.x) <= fabs(a.z) ? un_v3(1, 0, 0)
                    : fabs(a.y) <= fabs(a.z)                         ? un_v3(0, 1, 0)
                                                                     : un_v3(0, 0, 1);
    return un_normalize(un_cross(a, least));
}

un_vec3 shape_direction(un_vec3 v, un_vec3 fallback)
{
    double largest = larger(fabs(v.x), larger(fabs(v.y), fabs(v.z)));
    if (!(largest > 0)) return fallback;
    if (largest < 1e-100)
        v = un_scale(un_scale(v, 1e200), 1e108);
    else if (largest > 1e100)
        v = un_scale(v, 1e-208);
    return un_normalize(v);
}

/* ---- box ---- */

/* How far x lies beyond the nearer side on each axis; negative between the sides. */
static un_vec3 beyond(const un_box3 *box, un_vec3 x)
{
    return larger3(un_sub(box->min, x), un_sub(x, box->max));
}

double box_distance(const un_box3 *box, un_vec3 x)
{
    un_vec3 q = beyond(box, x);
    double inside = smaller(larger(q.x, larger(q.y, q.z)), 0);
    return inside + un_length(larger3(q, un_v3(0, 0, 0)));
}

static un_vec3 box_normal(const un_box3 *box, un_vec3 x)
{
    un_vec3 q = beyond(box, x);
    un_vec3 sign = un_v3(x.x - box->min.x < box->max.x - x.x ? -1 : 1,
                         x.y - box->min.y < box->max.y - x.y ? -1 : 1,
                         x.z - box->min.z < box->max.z - x.z ? -1 : 1);
    un_vec3 face = q.x >= q.y && q.x >= q.z ? un_v3(sign.x, 0, 0)
                   : q.y >= q.z             ? un_v3(0, sign.y, 0)
                                            : un_v3(0, 0, sign.z);
    un_vec3 out = larger3(q, un_v3(0, 0, 0));
    return shape_direction(un_v3(out.x * sign.x, out.y * sign.y, out.z * sign.z), face);
}

/* ---- solids of revolution ---- */

typedef struct planar {
    double t, r;
    un_vec3 away; /* unit, from the axis towards x */
} planar;

static double axial(const shape_round *s, un_vec3 x, un_vec3 *radial)
{
    un_vec3 d = un_sub(x, s->center);
    double t = un_dot(d, s->axis);
    *radial = un_mad(d, s->axis, -t);
    return t;
}

static planar to_plane(const shape_round *s, un_vec3 x)
{
    planar p;
    un_vec3 radial;
    p.t = axial(s, x, &radial);
    p.r = un_length(radial);
    p.away = shape_direction(radial, perpendicular(s->axis));
    return p;
}

static un_vec3 from_plane(const shape_round *s, const planar *p, double t, double r)
{
    return un_mad(un_scale(s->axis, t), p->away, r);
}

static double cylinder_distance(const shape_round *s, un_vec3 x)
{
    un_vec3 radial;
    double qt = fabs(axial(s, x, &radial)) - s->half;
    double qr = un_length(radial) - s->radius;
    double ot = larger(qt, 0), or = larger(qr, 0);
    return smaller(larger(qt, qr), 0) + sqrt(ot * ot + or * or);
}

static un_vec3 cylinder_normal(const shape_round *s, un_vec3 x)
{
    planar p = to_plane(s, x);
    double qt = fabs(p.t) - s->half, qr = p.r - s->radius, up = p.t < 0 ? -1 : 1;
    un_vec3 face = qt >= qr ? un_scale(s->axis, up) : p.away;
    return shape_direction(from_plane(s, &p, larger(qt, 0) * up, larger(qr, 0)), face);
}

static double capsule_distance(const shape_round *s, un_vec3 x)
{
    un_vec3 radial;
    double t = axial(s, x, &radial);
    un_vec3 from_core = un_mad(radial, s->axis, t - un_clamp(t, -s->half, s->half));
    return un_length(from_core) - s->radius;
}

static un_vec3 capsule_normal(const shape_round *s, un_vec3 x)
{
    planar p = to_plane(s, x);
    double t = p.t - un_clamp(p.t, -s->half, s->half);
    return shape_direction(from_plane(s, &p, t, p.r), p.away);
}

static double torus_distance(const shape_round *s, un_vec3 x)
{
    un_vec3 radial;
    double t = axial(s, x, &radial);
    double r = un_length(radial) - s->radius;
    return sqrt(t * t + r * r) - s->tube;
}

static un_vec3 torus_normal(const shape_round *s, un_vec3 x)
{
    planar p = to_plane(s, x);
    return shape_direction(from_plane(s, &p, p.t, p.r - s->radius), s->axis);
}

double primitive_distance(const un_shape *shape, un_vec3 x)
{
    switch (shape->kind) {
    case SHAPE_BOX:
        return box_distance(&shape->box, x);
    case SHAPE_SPHERE:
        return un_length(un_sub(x, shape->sphere.center)) - shape->sphere.radius;
    case SHAPE_CYLINDER:
        return cylinder_distance(&shape->round, x);
    case SHAPE_CAPSULE:
        return capsule_distance(&shape->round, x);
    case SHAPE_TORUS:
        return torus_distance(&shape->round, x);
    default:
        return un_dot(un_sub(x, shape->plane.point), shape->plane.normal);
    }
}

un_vec3 primitive_normal(const un_shape *shape, un_vec3 x)
{
    switch (shape->kind) {
    case SHAPE_BOX:
        return box_normal(&shape->box, x);
    case SHAPE_SPHERE:
        return shape_direction(un_sub(x, shape->sphere.center), un_v3(0, 1, 0));
    case SHAPE_CYLINDER:
        return cylinder_normal(&shape->round, x);
    case SHAPE_CAPSULE:
        return capsule_normal(&shape->round, x);
    case SHAPE_TORUS:
        return torus_normal(&shape->round, x);
    default:
        return shape->plane.normal;
    }
}

/* ---- create ---- */

static un_box3 grown(un_vec3 center, un_vec3 half)
{
    return (un_box3){un_sub(center, half), un_add(center, half)};
}

/* Half the extents of a disc of radius 1 across the axis. */
static un_vec3 disc_extent(un_vec3 axis)
{
    return un_v3(sqrt(larger(0, 1 - axis.x * axis.x)), sqrt(larger(0, 1 - axis.y * axis.y)),
                 sqrt(larger(0, 1 - axis.z * axis.z)));
}

static un_vec3 abs3(un_vec3 a)
{
    return un_v3(fabs(a.x), fabs(a.y), fabs(a.z));
}

un_status un_shape_box(un_shape_set *set, un_vec3 min, un_vec3 max, un_shape **shape)
{
    UN_ASSERT(un_finite3(min) && un_finite3(max));
    UN_ASSERT(min.x < max.x && min.y < max.y && min.z < max.z);
    un_shape *s = shape_new(set, SHAPE_BOX);
    if (!s) return UN_ERROR_MEMORY;
    s->box = s->bounds = (un_box3){min, max};
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}

un_status un_shape_sphere(un_shape_set *set, un_vec3 center, double radius, un_shape **shape)
{
    UN_ASSERT(un_finite3(center) && isfinite(radius) && radius > 0);
    un_shape *s = shape_new(set, SHAPE_SPHERE);
    if (!s) return UN_ERROR_MEMORY;
    s->sphere.center = center;
    s->sphere.radius = radius;
    s->bounds = grown(center, un_v3(radius, radius, radius));
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}

static un_status make_rod(un_shape_set *set, shape_kind kind, un_vec3 from, un_vec3 to,
                          double radius, un_shape **shape)
{
    UN_ASSERT(un_finite3(from) && un_finite3(to) && isfinite(radius) && radius > 0);
    un_shape *s = shape_new(set, kind);
    if (!s) return UN_ERROR_MEMORY;
    un_vec3 along = un_scale(un_sub(to, from), 0.5);
    un_vec3 axis = shape_direction(along, un_v3(0, 1, 0));
    double half = un_length(along);
    s->round =
        (shape_round){.center = un_add(from, along), .axis = axis, .half = half, .radius = radius};
    un_vec3 disc = kind == SHAPE_CYLINDER ? disc_extent(axis) : un_v3(1, 1, 1);
    s->bounds = grown(s->round.center, un_mad(abs3(along), disc, radius));
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}

un_status un_shape_cylinder(un_shape_set *set, un_vec3 from, un_vec3 to, double radius,
                            un_shape **shape)
{
    UN_ASSERT(un_length(un_sub(to, from)) > 0);
    return make_rod(set, SHAPE_CYLINDER, from, to, radius, shape);
}

un_status un_shape_capsule(un_shape_set *set, un_vec3 from, un_vec3 to, double radius,
                           un_shape **shape)
{
    return make_rod(set, SHAPE_CAPSULE, from, to, radius, shape);
}

un_status un_shape_torus(un_shape_set *set, un_vec3 center, un_vec3 axis, double radius,
                         double tube, un_shape **shape)
{
    UN_ASSERT(un_finite3(center) && un_finite3(axis) && un_dot(axis, axis) > 0);
    UN_ASSERT(isfinite(radius) && radius > 0 && isfinite(tube) && tube > 0);
    un_shape *s = shape_new(set, SHAPE_TORUS);
    if (!s) return UN_ERROR_MEMORY;
    un_vec3 a = shape_direction(axis, un_v3(0, 1, 0));
    s->round = (shape_round){.center = center, .axis = a, .radius = radius, .tube = tube};
    s->bounds = grown(center, un_mad(un_v3(tube, tube, tube), disc_extent(a), radius));
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}

un_status un_shape_plane(un_shape_set *set, un_vec3 point, un_vec3 normal, un_shape **shape)
{
    UN_ASSERT(un_finite3(point) && un_finite3(normal) && un_dot(normal, normal) > 0);
    un_shape *s = shape_new(set, SHAPE_PLANE);
    if (!s) return UN_ERROR_MEMORY;
    un_vec3 n = shape_direction(normal, un_v3(0, 1, 0));
    s->plane.point = point;
    s->plane.normal = n;
    s->bounds = grown(un_v3(0, 0, 0), un_v3(INFINITY, INFINITY, INFINITY));
    /* Only a half space that faces along an axis has a finite side. */
    if (n.x == 1) s->bounds.max.x = point.x;
    if (n.y == 1) s->bounds.max.y = point.y;
    if (n.z == 1) s->bounds.max.z = point.z;
    if (n.x == -1) s->bounds.min.x = point.x;
    if (n.y == -1) s->bounds.min.y = point.y;
    if (n.z == -1) s->bounds.min.z = point.z;
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}
