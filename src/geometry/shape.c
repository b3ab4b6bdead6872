/* Shapes: the set that owns them, placement, and evaluation. */
#include "geometry/shape.h"

un_shape_set *un_shape_set_create(un_context *ctx)
{
    un_shape_set *set = un_alloc_zero(ctx, 1, sizeof *set);
    if (set) set->ctx = ctx;
    return set;
}

static void shape_free(un_context *ctx, un_shape *shape)
{
    switch (shape->kind) {
    case SHAPE_SAMPLED:
        un_free(ctx, shape->sampled.values);
        break;
    case SHAPE_MESH:
        mesh_tree_free(ctx, shape->mesh);
        break;
    case SHAPE_UNION:
    case SHAPE_INTERSECT:
    case SHAPE_SUBTRACT:
        un_free(ctx, shape->csg.parts);
        un_free(ctx, shape->csg.nodes);
        break;
    default:
        break;
    }
    un_free(ctx, shape);
}

void un_shape_set_destroy(un_shape_set *set)
{
    if (!set) return;
    while (set->shapes) {
        un_shape *next = set->shapes->next;
        shape_free(set->ctx, set->shapes);
        set->shapes = next;
    }
    un_free(set->ctx, set);
}

un_shape *shape_new(un_shape_set *set, shape_kind kind)
{
    un_shape *shape = un_alloc_zero(set->ctx, 1, sizeof *shape);
    if (!shape) return NULL;
    shape->kind = kind;
    shape->depth = shape->cost = 1;
    return shape;
}

void shape_add(un_shape_set *set, un_shape *shape)
{
    shape->next = set->shapes;
    set->shapes = shape;
}

/* ---- bounds ---- */

/* r times [lo, hi], added to [*min, *max]. A rotation by a right angle has round-off, which must
 * not make every side of an infinite box infinite. */
static void add_interval(double *min, double *max, double r, double lo, double hi)
{
    if (r == 0 || (fabs(r) < 1e-14 && (isinf(lo) || isinf(hi)))) return;
    *min += fmin(r * lo, r * hi);
    *max += fmax(r * lo, r * hi);
}

static un_box3 moved_bounds(const un_pose *pose, const un_box3 *b)
{
    double lo[3], hi[3];
    const double t[3] = {pose->translation.x, pose->translation.y, pose->translation.z};
    for (int i = 0; i < 3; i++) {
        const double *r = pose->rotation[i];
        lo[i] = hi[i] = t[i];
        add_interval(&lo[i], &hi[i], r[0] * pose->scale, b->min.x, b->max.x);
        add_interval(&lo[i], &hi[i], r[1] * pose->scale, b->min.y, b->max.y);
        add_interval(&lo[i], &hi[i], r[2] * pose->scale, b->min.z, b->max.z);
    }
    return (un_box3){{lo[0], lo[1], lo[2]}, {hi[0], hi[1], hi[2]}};
}

/* ---- placement ---- */

un_status un_shape_move(un_shape_set *set, const un_shape *part, const un_pose *pose,
                        un_shape **shape)
{
    UN_ASSERT(isfinite(pose->scale) && pose->scale > 0 && un_finite3(pose->translation));
    /* A placement of a placement is one placement. */
    bool again = part->kind == SHAPE_MOVE;
    const un_shape *base = again ? part->move.part : part;
    UN_TRY(shape_check_nesting(set->ctx, base->depth + 1, (int64_t)base->cost + 1));
    un_shape *s = shape_new(set, SHAPE_MOVE);
    if (!s) return UN_ERROR_MEMORY;
    s->move.part = base;
    s->move.pose = again ? un_pose_compose(pose, &part->move.pose) : *pose;
    s->depth = base->depth + 1;
    s->cost = base->cost + 1;
    s->bounds = moved_bounds(&s->move.pose, &base->bounds);
    shape_add(set, s);
    *shape = s;
    return UN_OK;
}

/* ---- evaluate ---- */

double un_shape_distance(const un_shape *shape, un_vec3 x)
{
    double d;
    switch (shape->kind) {
    case SHAPE_SAMPLED:
        return sampled_distance(&shape->sampled, x);
    case SHAPE_MESH:
        return mesh_distance(shape->mesh, x);
    case SHAPE_UNION:
    case SHAPE_INTERSECT:
    case SHAPE_SUBTRACT:
        combined_part(shape, x, &d);
        return d;
    case SHAPE_MOVE:
        d = un_shape_distance(shape->move.part, un_pose_invert(&shape->move.pose, x));
        return d * shape->move.pose.scale;
    default:
        return primitive_distance(shape, x);
    }
}

un_vec3 un_shape_normal(const un_shape *shape, un_vec3 x)
{
    double d;
    switch (shape->kind) {
    case SHAPE_SAMPLED:
        return sampled_normal(&shape->sampled, x);
    case SHAPE_MESH:
        return mesh_normal(shape->mesh, x);
    case SHAPE_UNION:
    case SHAPE_INTERSECT:
    case SHAPE_SUBTRACT: {
        int32_t which = combined_part(shape, x, &d);
        un_vec3 n = un_shape_normal(shape->csg.parts[which], x);
        return shape->kind == SHAPE_SUBTRACT && which > 0 ? un_scale(n, -1) : n;
    }
    case SHAPE_MOVE: {
        un_vec3 n = un_shape_normal(shape->move.part, un_pose_invert(&shape->move.pose, x));
        return un_normalize(un_pose_rotate(&shape->move.pose, n));
    }
    default:
        return primitive_normal(shape, x);
    }
}

bool un_shape_entry(const un_shape *shape, un_vec3 a, un_vec3 b, double *share)
{
    *share = INFINITY;
    switch (shape->kind) {
    case SHAPE_MESH:
        return mesh_entry(shape->mesh, a, b, share);
    case SHAPE_UNION:
        for (int32_t i = 0; i < shape->csg.part_count; i++) {
            double part;
            if (!un_shape_entry(shape->csg.parts[i], a, b, &part)) return false;
            *share = smaller(*share, part);
        }
        return true;
    case SHAPE_MOVE:
        return un_shape_entry(shape->move.part, un_pose_invert(&shape->move.pose, a),
                              un_pose_invert(&shape->move.pose, b), share);
    default:
        return false;
    }
}

un_box3 un_shape_bounds(const un_shape *shape)
{
    return shape->bounds;
}

static void moved_run(const un_shape *shape, const un_vec3 *x, int32_t count, double *distance)
{
    if (count < 1) return;
    un_vec3 at_rest[SHAPE_RUN];
    for (int32_t k = 0; k < count; k++) at_rest[k] = un_pose_invert(&shape->move.pose, x[k]);
    un_shape_distances(shape->move.part, at_rest, count, distance);
    for (int32_t k = 0; k < count; k++) distance[k] *= shape->move.pose.scale;
}

void un_shape_distances(const un_shape *shape, const un_vec3 *x, int32_t count, double *distance)
{
    switch (shape->kind) {
    case SHAPE_MESH:
        mesh_distances(shape->mesh, x, count, distance);
        return;
    case SHAPE_UNION:
    case SHAPE_INTERSECT:
    case SHAPE_SUBTRACT:
        for (int32_t k = 0; k < count; k += SHAPE_RUN)
            combined_run(shape, x + k, count - k < SHAPE_RUN ? count - k : SHAPE_RUN, distance + k);
        return;
    case SHAPE_MOVE:
        for (int32_t k = 0; k < count; k += SHAPE_RUN)
            moved_run(shape, x + k, count - k < SHAPE_RUN ? count - k : SHAPE_RUN, distance + k);
        return;
    default:
        for (int32_t k = 0; k < count; k++) distance[k] = un_shape_distance(shape, x[k]);
    }
}
