/* Contacts of bodies that the liquid moves: with each other, with other solids, with closed sides
 * of the domain.
 *
 * Points of a body's surface are held against the distance to the other body, both ways round; the
 * nearest point is then moved along the surface to the true minimum, so that balls roll on a sphere
 * and not on its points. A point whose path meets the other surface within the step is a contact
 * before it gets there: its speed towards it must not exceed gap / dt, so that nothing is passed
 * through, however fast or thin. Impulses are found one contact after the other, many times over
 * (projected Gauss-Seidel on the accumulated impulses), with Coulomb's friction; they start from
 * those of the last step, which the liquid has felt already. Bodies that meet come to the surface
 * in one step and bounce in the next. */
#include "bodies/free.h"

/* Rounds over all contacts, there and back: as many as this work allows, in contacts; they end when
 * no speed changes by more than this share of what gravity makes in the step. A stack of five
 * boxes, ended after 200, sways at up to 1 cm/s. */
#define ROUNDS_WORK 60000
#define ROUNDS_MIN 20
#define ROUNDS_MAX 1000
#define ENOUGH 1e-5
#define PASSES 4
/* Contacts kept of a pair, one way round. */
#define KEPT 6
/* Candidates looked at. */
#define CANDIDATES 256
/* In shares of the smaller body's reach: points that near are contacts whatever their path; of
 * these, those so much above the lowest are kept; overlap that is left alone. */
#define NEAR 0.05
#define LAYER 0.05
#define SLOP 0.002
/* Overlap beyond that is removed in PART_ROUNDS rounds, by this share in each. */
#define PART_ROUNDS 8
#define PART_SHARE 0.4
/* Approaching more slowly than gravity makes in so many steps, bodies do not bounce. */
#define BOUNCE_STEPS 2.0
#define MARCH_STEPS 64
/* Radians that a body turns by in a step, at most. */
#define TURN 0.5

/* ---- surfaces ---- */

/* What a contact is with: a body, or side -1 - b of the domain. end: at the end of the step. */
static double distance_to(const un_bodies *s, int32_t b, un_vec3 x, bool end)
{
    if (b < 0) {
        un_vec3 size = s->scene->def.domain.size;
        const double at[3] = {x.x, x.y, x.z}, top[3] = {size.x, size.y, size.z};
        int side = -1 - b;
        return side & 1 ? top[side / 2] - at[side / 2] : at[side / 2];
    }
    const un_body *body = &s->body[b];
    const un_pose *pose = end ? &body->to : &body->from;
    if (!body->moves) return un_shape_distance(body->shape, x);
    return un_shape_distance(body->shape, un_pose_invert(pose, x)) * pose->scale;
}

static un_vec3 normal_of(const un_bodies *s, int32_t b, un_vec3 x, bool end)
{
    if (b < 0) {
        double n[3] = {0, 0, 0};
        n[(-1 - b) / 2] = (-1 - b) & 1 ? -1 : 1;
        return un_v3(n[0], n[1], n[2]);
    }
    const un_body *body = &s->body[b];
    const un_pose *pose = end ? &body->to : &body->from;
    un_vec3 n = body->moves
                    ? un_pose_rotate(pose, un_shape_normal(body->shape, un_pose_invert(pose, x)))
                    : un_shape_normal(body->shape, x);
    return s->scene->def.domain.dim == 2 ? un_normalize(un_v3(n.x, n.y, 0)) : n;
}

/* The direction out of b at x as seen from `step` away. On edges and corners the normal is that of
 * one of the faces, whichever rounding says; this is the mean of them all. */
static un_vec3 outward_of(const un_bodies *s, int32_t b, un_vec3 x, double step)
{
    double d[3] = {0, 0, 0};
    for (int a = 0; a < s->scene->def.domain.dim; a++) {
        un_vec3 way = un_v3(a == 0 ? step : 0, a == 1 ? step : 0, a == 2 ? step : 0);
        d[a] = distance_to(s, b, un_add(x, way), false) - distance_to(s, b, un_sub(x, way), false);
    }
    return un_normalize(un_v3(d[0], d[1], d[2]));
}

static un_vec3 velocity_at(const un_bodies *s, int32_t b, un_vec3 x)
{
    return b < 0 ? un_v3(0, 0, 0) : un_body_velocity(&s->body[b], x);
}

static un_vec3 arm_of(const un_bodies *s, int32_t b, un_vec3 x)
{
    return un_sub(x, un_pose_apply(&s->body[b].to, s->body[b].centre));
}

/* Two directions across a normal; in 2D the second is that of z. */
static void find_along(un_contact *k)
{
    un_vec3 n = k->normal, other = fabs(n.z) < 0.7 ? un_v3(0, 0, 1) : un_v3(1, 0, 0);
    k->along[0] = un_normalize(un_cross(other, n));
    k->along[1] = un_cross(n, k->along[0]);
}

/* ---- candidates ---- */

typedef struct candidate {
    int32_t point;
    un_vec3 x, normal;
    double gap, end; /* now; at the end of the step as things move now */
    bool old;        /* it was a contact in the last step */
} candidate;

typedef struct search {
    const un_bodies *s;
    int32_t a, b;
    double dt, near;
    candidate list[CANDIDATES];
    int32_t count;
} search;

/* Where the path of x relative to b comes to within `slop` of b: the share of the path, 1 or more
 * if it does not. */
static double march(const un_bodies *s, int32_t b, un_vec3 x, un_vec3 path, double slop)
{
    double length = un_length(path), t = 0;
    for (int i = 0; i < MARCH_STEPS && t < length; i++) {
        double d = distance_to(s, b, un_mad(x, path, t / length), false);
        if (d < slop) return t / length;
        t += d;
    }
    return t / length;
}

static bool was_contact(const un_contacts *c, int32_t a, int32_t b, int32_t point)
{
    for (int32_t i = 0; i < c->old_count; i++)
        if (c->old[i].a == a && c->old[i].b == b && c->old[i].point == point) return true;
    return false;
}

static void consider(search *q, int32_t point, un_vec3 x)
{
    const un_bodies *s = q->s;
    double d = distance_to(s, q->b, x, false);
    un_vec3 path = un_scale(un_sub(velocity_at(s, q->a, x), velocity_at(s, q->b, x)), q->dt);
    if (d > q->near + un_length(path)) return;
    candidate c = {.point = point, .x = x, .gap = d};
    /* Seen from a little inside a: at x itself, on an edge of b, its side might come nearer. */
    un_vec3 inside = un_mad(x, outward_of(s, q->a, x, 0.5 * q->near), -0.5 * q->near);
    c.normal = normal_of(s, q->b, inside, false);
    if (d > q->near) {
        double slop = 0.02 * q->near, share = march(s, q->b, x, path, slop);
        if (share >= 1) return;
        /* The surface where the path meets it is what stops the point. */
        c.normal = normal_of(s, q->b, un_mad(x, path, share), false);
        c.gap = -share * un_dot(path, c.normal);
        if (!(c.gap >= 0)) return;
    }
    c.end = c.gap + un_dot(path, c.normal);
    c.old = was_contact(s->contacts, q->a, q->b, point);
    if (q->count < CANDIDATES) {
        q->list[q->count++] = c;
        return;
    }
    int32_t worst = 0; /* the one that ends farthest away makes room */
    for (int32_t i = 1; i < q->count; i++)
        if (q->list[i].end > q->list[worst].end) worst = i;
    if (c.end < q->list[worst].end) q->list[worst] = c;
}

static int32_t lowest(const search *q)
{
    int32_t best = -1;
    for (int32_t i = 0; i < q->count; i++)
        if (best < 0 || q->list[i].end < q->list[best].end) best = i;
    return best;
}

/* Moves the lowest candidate along a's surface to where it is nearest to b. */
static void refine(search *q)
{
    int32_t best = lowest(q);
    if (best < 0 || q->list[best].gap > q->near) return;
    un_vec3 x = q->list[best].x;
    double d = q->list[best].gap, step = q->near;
    bool moved = false;
    for (int i = 0; i < 12; i++) {
        un_vec3 y = un_mad(x, normal_of(q->s, q->b, x, false), -step);
        for (int k = 0; k < 2; k++)
            y = un_mad(y, normal_of(q->s, q->a, y, false), -distance_to(q->s, q->a, y, false));
        double e = distance_to(q->s, q->b, y, false);
        if (e < d - 1e-4 * q->near) {
            x = y, d = e, moved = true;
        } else {
            step *= 0.5;
        }
    }
    if (moved) consider(q, -1, x);
}

static void keep(un_contacts *c, const search *q, const candidate *from)
{
    un_contact k = {.a = q->a,
                    .b = q->b,
                    .point = from->point,
                    .x = from->x,
                    .normal = from->normal,
                    .gap = from->gap};
    find_along(&k);
    c->contact[c->count++] = k;
}

/* The lowest candidate, and others of the lowest layer far from those chosen. */
static un_status choose(search *q)
{
    un_contacts *c = q->s->contacts;
    double away[CANDIDATES];
    int32_t next = lowest(q);
    if (next < 0) return UN_OK;
    double limit = fmax(q->list[next].end, 0) + q->near * (LAYER / NEAR);
    UN_TRY(un_array_reserve(q->s->ctx, (void **)&c->contact, &c->capacity[0],
                            (size_t)c->count + KEPT, sizeof *c->contact));
    for (int32_t i = 0; i < q->count; i++) away[i] = INFINITY;
    for (int kept = 0; kept < KEPT && next >= 0; kept++) {
        keep(c, q, &q->list[next]);
        un_vec3 x = q->list[next].x;
        double farthest = 1e-3 * q->near;
        next = -1;
        for (int32_t i = 0; i < q->count; i++) {
            away[i] = fmin(away[i], un_length(un_sub(q->list[i].x, x)));
            double score = away[i] * (q->list[i].old ? 1.5 : 1);
            if (q->list[i].end <= limit && score > farthest) farthest = score, next = i;
        }
    }
    return UN_OK;
}

static un_box3 box_of(const un_body *body, double margin)
{
    un_vec3 m = un_v3(margin, margin, margin);
    return (un_box3){un_sub(body->bounds.min, m), un_add(body->bounds.max, m)};
}

static bool holds(const un_box3 *box, un_vec3 x)
{
    return x.x >= box->min.x && x.y >= box->min.y && x.z >= box->min.z && x.x <= box->max.x &&
           x.y <= box->max.y && x.z <= box->max.z;
}

static double speed_of(const un_bodies *s, int32_t b)
{
    const un_body *body = &s->body[b];
    return body->moves ? un_length(body->velocity) + un_length(body->spin) * s->contacts->reach[b]
                       : 0;
}

/* Contacts of a's points with b. */
static un_status search_pair(const un_bodies *s, int32_t a, int32_t b, double near, double dt)
{
    const un_contacts *c = s->contacts;
    search q = {.s = s, .a = a, .b = b, .dt = dt, .near = near, .count = 0};
    double margin = near + dt * (speed_of(s, a) + (b < 0 ? 0 : speed_of(s, b)));
    un_box3 box = b < 0
                      ? (un_box3){{-INFINITY, -INFINITY, -INFINITY}, {INFINITY, INFINITY, INFINITY}}
                      : box_of(&s->body[b], margin);
    const un_body *body = &s->body[a];
    for (int32_t p = c->first[a]; p < c->first[a + 1]; p++) {
        un_vec3 x = body->moves ? un_pose_apply(&body->from, c->points[p]) : c->points[p];
        if (holds(&box, x)) consider(&q, p - c->first[a], x);
    }
    refine(&q);
    return choose(&q);
}

static un_status find_contacts(un_bodies *s, double dt)
{
    un_contacts *c = s->contacts;
    const un_scene_def *def = &s->scene->def;
    for (int32_t a = 0; a < s->count; a++) {
        if (!s->body[a].free) continue;
        double room = dt * speed_of(s, a), near = NEAR * c->reach[a];
        un_box3 box = box_of(&s->body[a], near + room);
        const double low[3] = {box.min.x, box.min.y, box.min.z};
        const double high[3] = {box.max.x, box.max.y, box.max.z};
        const double top[3] = {def->domain.size.x, def->domain.size.y, def->domain.size.z};
        for (int side = 0; side < 2 * def->domain.dim; side++) {
            bool far = side & 1 ? high[side / 2] < top[side / 2] : low[side / 2] > 0;
            if (!far && !def->domain.open[side]) UN_TRY(search_pair(s, a, -1 - side, near, dt));
        }
        for (int32_t b = 0; b < s->count; b++) {
            const un_body *other = &s->body[b];
            if (b == a || (other->free && b < a)) continue;
            double both = room + dt * speed_of(s, b), close = near;
            if (c->reach[b] > 0) close = fmin(near, NEAR * c->reach[b]);
            if (!un_body_is_near(other, s->body[a].bounds.min, s->body[a].bounds.max, close + both))
                continue;
            UN_TRY(search_pair(s, a, b, close, dt));
            UN_TRY(search_pair(s, b, a, close, dt));
        }
    }
    return UN_OK;
}

/* ---- impulses ---- */

static un_vec3 relative_velocity(const un_bodies *s, const un_contact *k)
{
    return un_sub(velocity_at(s, k->a, k->x), velocity_at(s, k->b, k->x));
}

static void apply(un_bodies *s, const un_contact *k, un_vec3 impulse)
{
    un_body *a = &s->body[k->a], *b = k->b >= 0 ? &s->body[k->b] : NULL;
    if (a->free) un_body_push(a, impulse, un_cross(arm_of(s, k->a, k->x), impulse));
    if (!b || !b->free) return;
    impulse = un_scale(impulse, -1);
    un_body_push(b, impulse, un_cross(arm_of(s, k->b, k->x), impulse));
}

/* The change of speed along n at the contact that an impulse of 1 along n makes. */
static double ease_of(const un_bodies *s, const un_contact *k, un_vec3 n)
{
    double sum = 0;
    for (int side = 0; side < 2; side++) {
        int32_t b = side ? k->b : k->a;
        if (b < 0 || !s->body[b].free) continue;
        const un_inverse_mass m = s->body[b].inverse;
        un_vec3 r = un_cross(arm_of(s, b, k->x), n);
        const double t[3] = {r.x, r.y, r.z};
        sum += m.along[0] * n.x * n.x + m.along[1] * n.y * n.y + m.along[2] * n.z * n.z;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) sum += t[i] * m.about[i][j] * t[j];
    }
    return sum;
}

static un_vec3 impulse_of(const un_contact *k, double push, double first, double second)
{
    return un_mad(un_mad(un_scale(k->normal, push), k->along[0], first), k->along[1], second);
}

/* The contacts become those of before. */
static void make_old(un_contacts *c)
{
    un_contact *list = c->old;
    size_t capacity = c->capacity[1];
    c->old = c->contact;
    c->old_count = c->count;
    c->capacity[1] = c->capacity[0];
    c->contact = list;
    c->capacity[0] = capacity;
    c->count = 0;
}

void un_contacts_foresee(un_bodies *s, double scale)
{
    un_contacts *c = s->contacts;
    for (int32_t i = 0; i < c->count; i++) {
        un_contact *k = &c->contact[i];
        double push = scale * fmin(k->push, k->before);
        double share = k->push > 0 ? push / k->push : 0;
        find_along(k);
        k->before = k->push;
        k->push = push;
        for (int j = 0; j < 2; j++) k->slide[j] *= share;
        k->pending = k->bounce;
        k->bounce = 0;
        apply(s, k, impulse_of(k, k->push, k->slide[0], k->slide[1]));
    }
    make_old(c);
}

static double pair_restitution(const un_bodies *s, const un_contact *k)
{
    return fmax(s->body[k->a].restitution, k->b < 0 ? 0 : s->body[k->b].restitution);
}

static double pair_grip(const un_bodies *s, const un_contact *k)
{
    double a = s->body[k->a].grip, b = k->b < 0 ? -1 : s->body[k->b].grip;
    return a < 0 ? fmax(b, 0) : b < 0 ? a : sqrt(a * b);
}

static bool is_same(const un_bodies *s, const un_contact *k, const un_contact *old)
{
    if (k->a != old->a || k->b != old->b || k->point != old->point) return false;
    /* the nearest point may be another one now */
    return k->point >= 0 || un_length(un_sub(k->x, old->x)) < NEAR * s->contacts->reach[k->a];
}

/* Takes back the foreseen impulses of contacts that are no more. */
static void take_back(un_bodies *s)
{
    const un_contacts *c = s->contacts;
    for (int32_t i = 0; i < c->old_count; i++) {
        const un_contact *o = &c->old[i];
        bool found = false;
        for (int32_t j = 0; j < c->count && !found; j++) found = is_same(s, &c->contact[j], o);
        if (!found) apply(s, o, impulse_of(o, -o->push, -o->slide[0], -o->slide[1]));
    }
}

/* Takes over what the last step knew of the contact, and sets its goal. */
static void prepare(const un_bodies *s, un_contact *k, double dt)
{
    const un_contacts *c = s->contacts;
    double e = pair_restitution(s, k);
    for (int32_t i = 0; i < c->old_count; i++) {
        const un_contact *o = &c->old[i];
        bool turned = o->a == k->b && o->b == k->a;
        if (!turned && (o->a != k->a || o->b != k->b)) continue;
        k->pending = fmax(k->pending, o->pending);
        k->bounce = fmax(k->bounce, o->bounce);
        if (turned || !is_same(s, k, o)) continue;
        k->push = o->push;
        k->before = o->before;
        for (int j = 0; j < 2; j++) k->slide[j] = o->slide[j];
    }
    k->ease[0] = ease_of(s, k, k->normal);
    for (int j = 0; j < 2; j++) k->ease[1 + j] = ease_of(s, k, k->along[j]);
    k->goal = k->gap > 0 ? -k->gap / dt : 0;
    double speed = un_dot(relative_velocity(s, k), k->normal);
    double slow = BOUNCE_STEPS * un_length(s->scene->def.gravity) * c->kick;
    if (k->pending > 0 && k->gap < 0.2 * NEAR * c->reach[k->a])
        k->goal = e * k->pending;
    else if (e > 0 && speed < k->goal && -speed > slow)
        k->bounce = fmax(k->bounce, -speed);
}

/* Returns by how much the normal speed was changed. */
static double solve_contact(un_bodies *s, un_contact *k, double grip)
{
    un_vec3 v = relative_velocity(s, k);
    double hold = grip * k->push;
    for (int j = 0; j < 2 && k->ease[1 + j] > 0 && grip > 0; j++) {
        double was = k->slide[j];
        k->slide[j] = un_clamp(was - un_dot(v, k->along[j]) / k->ease[1 + j], -hold, hold);
        apply(s, k, un_scale(k->along[j], k->slide[j] - was));
        v = relative_velocity(s, k);
    }
    if (!(k->ease[0] > 0)) return 0;
    double was = k->push;
    k->push = fmax(0, was + (k->goal - un_dot(v, k->normal)) / k->ease[0]);
    apply(s, k, un_scale(k->normal, k->push - was));
    return fabs(k->push - was) * k->ease[0];
}

static double impulse_part(const un_contact *k, int j)
{
    return j == 0 ? k->push : k->slide[j - 1];
}

/* Rounds converge slowly in stacks, and how far they come hangs on rounding. They are sped up as by
 * conjugate gradients [Silcowitz, Niebe & Erleben 2010, "A nonsmooth nonlinear conjugate gradient
 * method for interactive contact force problems"]: what a round changes is a gradient, and the next
 * one begins some way on along the directions of before. size: the squared change of the round
 * before; 0: there was none. */
static void go_on(un_bodies *s, double *size)
{
    un_contacts *c = s->contacts;
    double now = 0;
    for (int32_t i = 0; i < c->count; i++)
        for (int j = 0; j < 3; j++) {
            const un_contact *k = &c->contact[i];
            double change = impulse_part(k, j) - k->last[j];
            now += change * change * k->ease[j];
        }
    double share = *size > 0 ? now / *size : 0;
    if (!(share <= 1)) share = 0; /* that led nowhere: begin anew */
    *size = now;
    for (int32_t i = 0; i < c->count; i++) {
        un_contact *k = &c->contact[i];
        double on[3];
        for (int j = 0; j < 3; j++) {
            on[j] = share * k->way[j];
            k->way[j] = on[j] + impulse_part(k, j) - k->last[j];
        }
        k->push += on[0];
        k->slide[0] += on[1];
        k->slide[1] += on[2];
        if (share > 0) apply(s, k, impulse_of(k, on[0], on[1], on[2]));
        for (int j = 0; j < 3; j++) k->last[j] = impulse_part(k, j);
    }
}

/* There and back, so that stacks are passed through both ways, until little changes. */
static void solve_all(un_bodies *s)
{
    un_contacts *c = s->contacts;
    int32_t rounds = un_clampi(ROUNDS_WORK / (c->count + 1), ROUNDS_MIN, ROUNDS_MAX);
    double enough = ENOUGH * un_length(s->scene->def.gravity) * c->kick, change = INFINITY;
    double size = 0;
    for (int32_t i = 0; i < c->count; i++)
        for (int j = 0; j < 3; j++) {
            c->contact[i].last[j] = impulse_part(&c->contact[i], j);
            c->contact[i].way[j] = 0;
        }
    for (int32_t round = 0; round < rounds && change > enough; round++) {
        if (round > 0) go_on(s, &size);
        change = 0;
        for (int32_t i = 0; i < 2 * c->count; i++) {
            un_contact *k = &c->contact[i < c->count ? i : 2 * c->count - 1 - i];
            change = fmax(change, solve_contact(s, k, pair_grip(s, k)));
        }
    }
}

/* Faster, a body would turn too far for its points' paths to be straight. */
static void limit_spin(un_body *body, double dt)
{
    double turn = un_length(body->spin) * dt;
    if (body->free && turn > TURN) body->spin = un_scale(body->spin, TURN / turn);
}

un_status un_contacts_solve(un_bodies *s, double dt)
{
    un_contacts *c = s->contacts;
    /* A push may send a body to where nothing was sought: then once more. */
    for (int pass = 0; pass < PASSES; pass++) {
        bool again = false;
        if (pass > 0) make_old(c);
        for (int32_t b = 0; b < s->count; b++) {
            limit_spin(&s->body[b], dt);
            c->seen[b] = speed_of(s, b);
        }
        UN_TRY(find_contacts(s, dt));
        take_back(s);
        for (int32_t i = 0; i < c->count; i++) prepare(s, &c->contact[i], dt);
        solve_all(s);
        for (int32_t b = 0; b < s->count; b++) {
            limit_spin(&s->body[b], dt);
            again |= s->body[b].free && (speed_of(s, b) - c->seen[b]) * dt > NEAR * c->reach[b];
        }
        if (!again) break;
    }
    return UN_OK;
}

/* ---- ways ---- */

static double point_share(const un_bodies *s, int32_t a, int32_t b, un_vec3 x, double near,
                          double dt)
{
    un_vec3 path = un_scale(un_sub(velocity_at(s, a, x), velocity_at(s, b, x)), dt);
    double d = distance_to(s, b, x, false), length = un_length(path);
    if (d < near || d > length) return 1;
    return fmin(1, march(s, b, x, path, 0.01 * near));
}

double un_contacts_share(const un_bodies *s, int32_t a, double dt)
{
    const un_contacts *c = s->contacts;
    const un_scene_def *def = &s->scene->def;
    double near = NEAR * c->reach[a], room = dt * speed_of(s, a), share = 1;
    if (room < near) return 1;
    for (int32_t b = -2 * def->domain.dim; b < s->count; b++) {
        if (b == a || (b < 0 && def->domain.open[-1 - b])) continue;
        const un_box3 *box = &s->body[a].bounds;
        if (b >= 0 && !un_body_is_near(&s->body[b], box->min, box->max, room + dt * speed_of(s, b)))
            continue;
        for (int32_t p = c->first[a]; p < c->first[a + 1]; p++) {
            un_vec3 x = un_pose_apply(&s->body[a].from, c->points[p]);
            share = fmin(share, point_share(s, a, b, x, near, dt));
        }
    }
    return share;
}

/* ---- overlap ---- */

static un_vec3 carried(const un_body *body, un_vec3 x)
{
    return body->moves ? un_pose_apply(&body->to, un_pose_invert(&body->from, x)) : x;
}

static void shift(un_bodies *s, int32_t b, un_vec3 x, un_vec3 impulse)
{
    if (b < 0 || !s->body[b].free) return;
    un_body *body = &s->body[b];
    un_vec3 v = body->velocity, w = body->spin;
    body->velocity = body->spin = un_v3(0, 0, 0);
    un_body_push(body, impulse, un_cross(arm_of(s, b, x), impulse));
    un_vec3 way = body->velocity, turn = body->spin;
    body->velocity = v;
    body->spin = w;
    un_body_shift(body, way, turn);
}

void un_contacts_part(un_bodies *s)
{
    un_contacts *c = s->contacts;
    for (int round = 0; round < PART_ROUNDS; round++)
        for (int32_t i = 0; i < c->count; i++) {
            un_contact k = c->contact[i];
            double slop = SLOP * c->reach[k.a];
            k.x = carried(&s->body[k.a], k.x);
            double d = distance_to(s, k.b, k.x, true);
            if (d >= -slop) continue;
            double ease = ease_of(s, &k, k.normal);
            if (!(ease > 0)) continue;
            un_vec3 impulse = un_scale(k.normal, -PART_SHARE * (d + slop) / ease);
            shift(s, k.a, k.x, impulse);
            shift(s, k.b, k.x, un_scale(impulse, -1));
        }
}
