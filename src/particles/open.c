#include "particles/particles.h"

/* Within this share of the path from a solid, marching goes on only if the path leads away from it:
 * steps by ever smaller distances would not end. */
#define GRAZE 0.02
/* A path leads into the solid if its unit direction has more than this against the normal. Less
 * counts as along it. */
#define INTO 1e-3

/* In the body's frame. Marching by the distance never steps over a wall. */
static bool shape_blocks(const un_shape *shape, un_vec3 a, un_vec3 b)
{
    un_vec3 way = un_sub(b, a);
    double length = un_length(way), graze = GRAZE * length;
    un_vec3 direction = un_normalize(way);
    for (double t = 0; t < length;) {
        un_vec3 x = un_mad(a, direction, t);
        double d = un_shape_distance(shape, x);
        if (d < graze && un_dot(un_shape_normal(shape, x), direction) < -INTO) return true;
        t += fmax(d, graze);
    }
    return un_shape_distance(shape, b) <= 0;
}

bool un_open_way(const un_walls *walls, un_vec3 a, un_vec3 b)
{
    if (!un_grid_encloses(walls->grid, b)) return false;
    a = un_walls_place(walls, a);
    b = un_walls_place(walls, b);
    for (int32_t n = 0; n < walls->bodies->count; n++) {
        const un_body *body = &walls->bodies->body[n];
        if (!un_body_is_near(body, a, b, 0)) continue;
        if (shape_blocks(body->shape, un_pose_invert(&body->to, a), un_pose_invert(&body->to, b)))
            return false;
        /* Until particles are advected, a moving solid still separates them at its old pose. */
        if (body->moves && shape_blocks(body->shape, un_pose_invert(&body->from, a),
                                        un_pose_invert(&body->from, b)))
            return false;
    }
    return true;
}

/* A move is no closer to a wall if it is so by less than this share of the margin. */
#define ALONG 1e-6

bool un_open_move(const un_walls *walls, un_vec3 a, un_vec3 b, double margin)
{
    /* along a wall both distances are equal, and rounding must not decide */
    double d = un_walls_distance_exact(walls, b);
    if (d < margin && d < un_walls_distance_exact(walls, a) - ALONG * margin) return false;
    return un_open_way(walls, a, b);
}
