/* Swept collisions.
 *
 * A path is followed in the frame of each body (from the body's pose at the start of the step to
 * that at its end), where the body stands still, by marching with its distance: a step never
 * exceeds the distance, so no wall is ever skipped, however fast or thin. After a hit the point
 * slides: the rest of the path loses its part into the wall. If several bodies do not agree on an
 * end within a few rounds, the point stops where it first touched one of them; if that is inside a
 * wall too (a wedge), it stays where it was, carried along by the body.
 *
 * What a body that the liquid moves takes off a particle's velocity pushes the body. */
#include "advect/advect.h"

#include <stdlib.h>

#define SLIDE_ROUNDS 4
/* A particle that comes less than this share of its way is held. It keeps no more speed than it had
 * on that way: what holds it holds it in the next step too, and FLIP would add to its speed in
 * each.
 */
#define HELD 0.5
/* A path that falls less than this towards a wall, per length, goes along it. Round-off makes every
 * other path along a slanted wall fall by 1e-17, and what slides there would stop at once. */
#define GRAZING 1e-6
/* Upper bound on marching steps; at UN_ADVECT_MARGIN per step, twenty cells of grazing. */
#define MARCH_STEPS 2000

typedef struct hit {
    double s; /* share of the path before the hit */
    un_vec3 x, normal;
} hit;

/* Direction away from the shape; in 2D within the plane. */
static un_vec3 away_from(const un_shape *shape, un_vec3 x, int32_t dim)
{
    un_vec3 n = un_shape_normal(shape, x);
    return dim == 2 ? un_normalize(un_v3(n.x, n.y, 0)) : n;
}

/* In the body's frame. True when the path from a to b comes closer than margin. */
static bool march(const un_shape *shape, un_vec3 a, un_vec3 b, double margin, int32_t dim, hit *out)
{
    un_vec3 path = un_sub(b, a);
    double length = un_length(path), t = 0;
    if (length == 0) return false;
    un_vec3 direction = un_scale(path, 1 / length);
    for (int i = 0; i < MARCH_STEPS; i++) {
        un_vec3 x = un_mad(a, direction, t);
        double d = un_shape_distance(shape, x);
        if (d < margin) {
            un_vec3 n = away_from(shape, x, dim);
            if (un_dot(direction, n) < -GRAZING) {
                *out = (hit){t / length, x, n};
                return true;
            }
            d = margin; /* leaving, or along the wall */
        }
        t += d;
        if (t >= length) {
            /* The end itself has not been tested yet. */
            if (un_shape_distance(shape, b) >= margin * 0.5) return false;
            un_vec3 n = away_from(shape, b, dim);
            if (un_dot(direction, n) >= -GRAZING) return false;
            *out = (hit){1, b, n};
            return true;
        }
    }
    *out = (hit){t / length, un_mad(a, direction, t), un_v3(0, 0, 0)};
    return true;
}

/* Moves x out of the body, if inside: a few Newton steps along the distance. */
static un_vec3 push_out(const un_shape *shape, un_vec3 x, double margin, int32_t dim)
{
    for (int i = 0; i < 8; i++) {
        double d = un_shape_distance(shape, x);
        if (d >= margin) break;
        x = un_mad(x, away_from(shape, x, dim), margin - d);
    }
    return x;
}

static void lose_normal(const un_body *body, un_vec3 x, un_vec3 n, double dt, un_vec3 *v)
{
    un_vec3 solid = un_body_velocity(body, x);
    un_vec3 slip = un_sub(*v, solid);
    double into = un_dot(slip, n);
    if (into >= 0) return;
    slip = un_mad(slip, n, -into);
    *v = un_mad(solid, slip, un_body_slip_left(body, dt));
}

/* One body, one round; true when the path was changed. */
static bool slide(const un_body *body, un_vec3 from, un_vec3 *to, double dt, un_vec3 *v,
                  double margin, int32_t dim)
{
    double local_margin = margin / body->to.scale;
    un_vec3 a = push_out(body->shape, un_pose_invert(&body->from, from), local_margin, dim);
    un_vec3 b = un_pose_invert(&body->to, *to);
    hit h;
    if (!march(body->shape, a, b, local_margin, dim, &h)) return false;
    un_vec3 rest = un_sub(b, h.x);
    rest = un_mad(rest, h.normal, fmin(0, un_dot(rest, h.normal)) * -1);
    un_vec3 end = push_out(body->shape, un_add(h.x, rest), local_margin, dim);
    /* Sliding must not pass a wall either: the path ends at a second hit. */
    hit second;
    if (march(body->shape, h.x, end, local_margin, dim, &second))
        end = push_out(body->shape, second.x, local_margin, dim);
    if (un_shape_distance(body->shape, end) < 0) end = a;
    *to = un_pose_apply(&body->to, end);
    lose_normal(body, *to, un_pose_rotate(&body->to, h.normal), dt, v);
    return true;
}

static void clamp_sides(const un_walls *walls, un_vec3 *x, un_vec3 *v, double margin)
{
    const bool *open = walls->scene->def.domain.open;
    double size[3] = {walls->grid->size.x, walls->grid->size.y, walls->grid->size.z};
    double *at[3] = {&x->x, &x->y, &x->z}, *speed[3] = {&v->x, &v->y, &v->z};
    for (int a = 0; a < walls->grid->dim; a++) {
        if (*at[a] < margin && !open[2 * a]) {
            *at[a] = margin;
            *speed[a] = fmax(*speed[a], 0);
        }
        if (*at[a] > size[a] - margin && !open[2 * a + 1]) {
            *at[a] = size[a] - margin;
            *speed[a] = fmin(*speed[a], 0);
        }
    }
}

/* The point where the straight path first meets a body, carried along by that body to the end of
 * the step. */
static un_vec3 first_contact(const un_walls *walls, un_vec3 from, un_vec3 to, double margin)
{
    un_vec3 end = to;
    int32_t dim = walls->grid->dim;
    double s = INFINITY;
    for (int32_t b = 0; b < walls->bodies->count; b++) {
        const un_body *body = &walls->bodies->body[b];
        if (!un_body_is_near(body, from, to, margin)) continue;
        double local_margin = margin / body->to.scale;
        un_vec3 x = push_out(body->shape, un_pose_invert(&body->from, from), local_margin, dim);
        hit h;
        if (!march(body->shape, x, un_pose_invert(&body->to, to), local_margin, dim, &h) ||
            h.s >= s)
            continue;
        s = h.s;
        end = un_pose_apply(&body->to, push_out(body->shape, h.x, local_margin, dim));
    }
    return end;
}

/* As slide; met learns what a free body did to the velocity. */
static bool slide_and_tell(const un_bodies *bodies, int32_t b, un_vec3 from, un_vec3 *to, double dt,
                           un_vec3 *v, double margin, int32_t dim, un_hit *met)
{
    un_vec3 was = *v;
    if (!slide(&bodies->body[b], from, to, dt, v, margin, dim)) return false;
    if (!bodies->body[b].free) return true;
    met->body = b;
    met->change = un_add(met->change, un_sub(*v, was));
    return true;
}

static un_vec3 stop_at_walls(const un_walls *walls, un_vec3 from, un_vec3 to, double dt, un_vec3 *v,
                             un_hit *met)
{
    double margin = UN_ADVECT_MARGIN * walls->grid->h;
    clamp_sides(walls, &to, v, margin);
    if (walls->bodies->count == 0) return to;
    un_vec3 aim = to;
    int32_t first_hit = -1, dim = walls->grid->dim;
    bool several = false;
    for (int round = 0; round < SLIDE_ROUNDS; round++) {
        bool changed = false;
        for (int32_t b = 0; b < walls->bodies->count; b++)
            if (un_body_is_near(&walls->bodies->body[b], from, to, margin) &&
                slide_and_tell(walls->bodies, b, from, &to, dt, v, margin, dim, met)) {
                several |= first_hit >= 0 && first_hit != b;
                first_hit = b;
                changed = true;
            }
        clamp_sides(walls, &to, v, margin);
        if (!changed) return to;
    }
    /* With one body its slide is final. Several may push the point back and forth, the last of them
     * into another body: then it stops where it first touched one. */
    if (several) {
        to = first_contact(walls, from, aim, margin);
        clamp_sides(walls, &to, v, margin);
    }
    /* Wedged between walls: stay, carried along by the body that holds it. */
    for (int32_t b = 0; b < walls->bodies->count; b++) {
        const un_body *body = &walls->bodies->body[b];
        if (!un_body_is_near(body, from, to, margin) || un_body_distance(body, to) >= 0) continue;
        to = un_pose_apply(&body->to, push_out(body->shape, un_pose_invert(&body->from, from),
                                               margin / body->to.scale, dim));
        clamp_sides(walls, &to, v, margin);
        if (un_body_distance(body, to) >= 0) continue;
        /* A body that lies against a side leaves it less room than that. */
        to = un_pose_apply(&body->to, push_out(body->shape, un_pose_invert(&body->to, to), 0, dim));
        clamp_sides(walls, &to, v, 0);
    }
    return to;
}

un_vec3 un_advect_collide_hit(const un_walls *walls, un_vec3 from, un_vec3 to, double dt,
                              un_vec3 *v, un_hit *met)
{
    *met = (un_hit){.body = -1};
    un_vec3 end = stop_at_walls(walls, from, to, dt, v, met);
    double way = un_length(un_sub(end, from)), speed = un_length(*v);
    if (way < HELD * un_length(un_sub(to, from)) && speed * dt > way) {
        un_vec3 was = *v;
        *v = un_scale(*v, way / (speed * dt));
        if (met->body >= 0) met->change = un_add(met->change, un_sub(*v, was));
    }
    return end;
}

un_vec3 un_advect_collide(const un_walls *walls, un_vec3 from, un_vec3 to, double dt, un_vec3 *v)
{
    un_hit met;
    return un_advect_collide_hit(walls, from, to, dt, v, &met);
}

/* ---- what the bodies get ---- */

/* Sums per body: the mass that hit it, kg, the impulse, N s, and its torque about the centre. */
typedef struct push {
    double mass;
    un_vec3 impulse, twist;
} push;

static double particle_mass(const un_particles *p, int64_t q, double density)
{
    return (double)p->volume[q] * (p->density ? (double)p->density[q] : density);
}

/* The share of a hit that the body takes: no more than its own mass can. */
static double share_taken(const un_body *body, const push *sum)
{
    return fmin(1, body->mass / sum->mass);
}

/* What one particle gives. */
typedef struct blow {
    uint32_t id;
    int32_t body;
    push push;
} blow;

static push push_of(const un_particles *p, int64_t q, const un_hit *met, const un_bodies *bodies,
                    double density)
{
    const un_body *body = &bodies->body[met->body];
    double mass = particle_mass(p, q, density);
    un_vec3 impulse = un_scale(met->change, -mass);
    un_vec3 r = un_sub(un_particle_position(p, q), un_pose_apply(&body->to, body->centre));
    return (push){mass, impulse, un_cross(r, impulse)};
}

static void add_push(push *to, push more)
{
    to->mass += more.mass;
    to->impulse = un_add(to->impulse, more.impulse);
    to->twist = un_add(to->twist, more.twist);
}

static int by_id(const void *a, const void *b)
{
    uint32_t i = ((const blow *)a)->id, j = ((const blow *)b)->id;
    return (i > j) - (i < j);
}

/* Those of all ranks go to all, which add them up in the order of ids. */
static un_status add_blows_of_ranks(un_context *ctx, push *sums, const un_particles *p,
                                    const un_hit *hits, const uint32_t *id, const un_bodies *bodies,
                                    double density)
{
    int64_t own = 0, count = 0;
    void *all = NULL;
    for (int64_t q = 0; q < p->count; q++) own += hits[q].body >= 0;
    blow *mine = un_alloc_zero(ctx, (size_t)own + 1, sizeof *mine);
    UN_TRY(un_ranks_agree(ctx, mine ? UN_OK : UN_ERROR_MEMORY));
    own = 0;
    for (int64_t q = 0; q < p->count; q++) {
        if (hits[q].body < 0) continue;
        mine[own].id = id[q];
        mine[own].body = hits[q].body;
        mine[own++].push = push_of(p, q, &hits[q], bodies, density);
    }
    un_status status = un_ranks_list(ctx, mine, own, sizeof *mine, &all, &count);
    un_free(ctx, mine);
    UN_TRY(status);
    blow *blows = all;
    if (count > 0) qsort(blows, (size_t)count, sizeof *blows, by_id);
    for (int64_t i = 0; i < count; i++) add_push(&sums[blows[i].body], blows[i].push);
    un_free(ctx, all);
    return UN_OK;
}

un_status un_advect_push_bodies(un_context *ctx, un_particles *p, const un_hit *hits,
                                const uint32_t *id, un_bodies *bodies, double density)
{
    push *sums = un_alloc_zero(ctx, (size_t)bodies->count + 1, sizeof *sums);
    if (!sums) return UN_ERROR_MEMORY;
    un_status status = id ? add_blows_of_ranks(ctx, sums, p, hits, id, bodies, density) : UN_OK;
    for (int64_t q = 0; q < p->count && !id; q++) /* few, in a fixed order */
        if (hits[q].body >= 0)
            add_push(&sums[hits[q].body], push_of(p, q, &hits[q], bodies, density));
    for (int64_t q = 0; q < p->count && status == UN_OK; q++) {
        if (hits[q].body < 0) continue;
        double share = share_taken(&bodies->body[hits[q].body], &sums[hits[q].body]);
        if (share < 1)
            un_particle_set_velocity(p, q,
                                     un_mad(un_particle_velocity(p, q), hits[q].change, share - 1));
    }
    for (int32_t b = 0; b < bodies->count && status == UN_OK; b++) {
        un_body *body = &bodies->body[b];
        if (!(sums[b].mass > 0)) continue;
        double share = share_taken(body, &sums[b]);
        un_body_push(body, un_scale(sums[b].impulse, share),
                     un_body_pushing_turn(body, un_scale(sums[b].twist, share)));
    }
    un_free(ctx, sums);
    return status;
}
