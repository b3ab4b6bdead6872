/* Spheres that fill the space under the shell of hulls: of radius SHARE times the depth around each
 * particle (the temporary radii of [Ando13]; here they decide signs only, and never reach the
 * surface they were measured from). */
#include "base/lanes.h"
#include "surface/hulls.h"

/* The paper's k. */
#define SHARE 0.75f
/* They reach behind the surface of a solid by so many radii: a thin wall is not passed. */
#define BEHIND 1.25f

/* By group. */
static void size_balls(void *arg, int64_t begin, int64_t end)
{
    un_hull_balls *s = arg;
    const un_groups *g = s->groups;
    for (int64_t n = begin; n < end; n++) {
        un_box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
        for (int64_t q = UN_GROUP * n; q < UN_GROUP * (n + 1) && q < g->count; q++) {
            float r = -SHARE * s->depth[q];
            un_vec3 x = un_v3(g->x[0][q], g->x[1][q], g->x[2][q]), out = un_v3(r, r, r);
            s->r[q] = 0;
            if (!(r > s->radius[q] && isfinite(r)) || !un_finite3(x)) continue;
            if (s->walls) {
                double wall = r;
                un_bodies_nearest(s->walls->bodies, x, &wall);
                r = fminf(r, (float)fmax(0, wall) + BEHIND * s->radius[q]);
                out = un_v3(r, r, r);
            }
            s->r[q] = r;
            box.min = un_min3(box.min, un_sub(x, out));
            box.max = un_max3(box.max, un_add(x, out));
        }
        if (box.min.x <= box.max.x)
            un_boxes_set(&s->boxes, n, box, 0);
        else
            un_boxes_set_empty(&s->boxes, n);
    }
}

typedef struct ball_query {
    const un_hull_balls *balls;
    un_vec3 x;
    un_lanes8 at[3];
} ball_query;

/* A particle whose ball contains x, -1: none. */
static int64_t find_ball(const ball_query *b, int32_t level, int32_t node)
{
    const un_groups *g = b->balls->groups;
    const un_boxes *boxes = &b->balls->boxes;
    const un_group_box *box = boxes->nodes + boxes->level_first[level] + node;
    un_lanes8 gap2 = un_boxes_gaps(box, b->at, b->at);
    un_lanes8 reach = un_lanes8_all(boxes->room * boxes->room + FLT_MIN);
    for (uint32_t left = un_lanes8_less(gap2, reach); left; left &= left - 1) {
        int32_t child = 8 * node + __builtin_ctz(left);
        if (level > 0) {
            int64_t q = find_ball(b, level - 1, child);
            if (q >= 0) return q;
            continue;
        }
        int64_t end = un_min64(g->count, UN_GROUP * ((int64_t)child + 1));
        for (int64_t q = UN_GROUP * (int64_t)child; q < end; q++)
            if (un_hull_balls_hold(b->balls, q, b->x)) return q;
    }
    return -1;
}

int64_t un_hull_balls_at(const un_hull_balls *s, un_vec3 x)
{
    if (s->boxes.level_count == 0) return -1;
    ball_query b = {.balls = s, .x = x};
    b.at[0] = un_lanes8_all((float)x.x);
    b.at[1] = un_lanes8_all((float)x.y);
    b.at[2] = un_lanes8_all((float)x.z);
    return find_ball(&b, s->boxes.level_count - 1, 0);
}

un_status un_hull_balls_build(un_context *ctx, un_arena *arena, un_hull_balls *s)
{
    s->r = un_arena_alloc(arena, (size_t)s->groups->count + 1, sizeof *s->r);
    if (!s->r) return UN_ERROR_MEMORY;
    if (!s->depth) return UN_OK;
    int64_t box_count = un_boxes_plan(&s->boxes, s->groups->group_count);
    s->boxes.nodes = un_arena_alloc(arena, (size_t)box_count + 1, sizeof *s->boxes.nodes);
    if (!s->boxes.nodes) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, s->groups->group_count, 512, size_balls, s);
    un_boxes_build(ctx, &s->boxes);
    return UN_OK;
}
