/* Bodies that the liquid moves: mass, motion, checkpoints.
 *
 * A step is that of a leapfrog, as for the particles: velocities are those in the middle of steps.
 *
 *   begin    gravity and last step's contacts change the velocity; places stay
 *   (the projection adds the impulse of the pressure, pressure/bodies.c)
 *   touch    contacts add what is missing, or take back what is too much
 *   advance  places follow
 *
 * Contacts are foreseen so that the liquid around a body that lies on the floor is not told that
 * the body falls. */
#include "bodies/free.h"

/* ---- mass ---- */

static void invert(double out[3][3], const double m[3][3])
{
    double c[3][3], det = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int a = (i + 1) % 3, b = (i + 2) % 3, p = (j + 1) % 3, q = (j + 2) % 3;
            c[j][i] = m[a][p] * m[b][q] - m[a][q] * m[b][p];
        }
    for (int j = 0; j < 3; j++) det += m[0][j] * c[j][0];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) out[i][j] = det != 0 ? c[i][j] / det : 0;
}

/* R I R^T */
static void inertia_in_place(double out[3][3], const un_body *body, const un_pose *pose)
{
    double half[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            half[i][j] = 0;
            for (int k = 0; k < 3; k++) half[i][j] += pose->rotation[i][k] * body->inertia[k][j];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            out[i][j] = 0;
            for (int k = 0; k < 3; k++) out[i][j] += half[i][k] * pose->rotation[j][k];
        }
}

/* Without the rows and columns of axes that are held. */
static void inverse_inertia(double out[3][3], const un_body *body, const un_pose *pose)
{
    double m[3][3];
    inertia_in_place(m, body, pose);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            if (body->hold >> (3 + i) & 1 || body->hold >> (3 + j) & 1) m[i][j] = i == j;
    invert(out, m);
    for (int i = 0; i < 3; i++)
        if (body->hold >> (3 + i) & 1) out[i][i] = 0;
}

static void find_inverse_mass(un_body *body)
{
    for (int i = 0; i < 3; i++) body->inverse.along[i] = body->hold >> i & 1 ? 0 : 1 / body->mass;
    inverse_inertia(body->inverse.about, body, &body->to);
}

static un_vec3 multiply(const double m[3][3], un_vec3 v)
{
    return un_v3(m[0][0] * v.x + m[0][1] * v.y + m[0][2] * v.z,
                 m[1][0] * v.x + m[1][1] * v.y + m[1][2] * v.z,
                 m[2][0] * v.x + m[2][1] * v.y + m[2][2] * v.z);
}

void un_body_push(un_body *body, un_vec3 impulse, un_vec3 twist)
{
    const un_inverse_mass *m = &body->inverse;
    body->velocity = un_add(body->velocity, un_v3(m->along[0] * impulse.x, m->along[1] * impulse.y,
                                                  m->along[2] * impulse.z));
    body->spin = un_add(body->spin, multiply(m->about, twist));
}

/* ---- motion ---- */

void un_body_shift(un_body *body, un_vec3 way, un_vec3 turn)
{
    un_vec3 centre = un_add(un_pose_apply(&body->to, body->centre), way);
    un_pose by = un_pose_axis(turn, un_length(turn) * 180 / UN_PI), turned;
    double q[4];
    turned = un_pose_compose(&by, &body->to);
    un_pose_quaternion(&turned, q); /* so that it stays a rotation */
    body->to = un_pose_of_quaternion(q, un_v3(0, 0, 0));
    body->to.translation = un_sub(centre, un_pose_rotate(&body->to, body->centre));
    find_inverse_mass(body);
}

void un_bodies_begin(un_bodies *bodies, un_vec3 gravity, double kick, double dt)
{
    for (int32_t b = 0; b < bodies->count; b++) {
        un_body *body = &bodies->body[b];
        if (!body->free) continue;
        body->from = body->to;
        body->dt = dt;
        un_body_find_bounds(body);
        body->old_velocity = body->velocity;
        body->old_spin = body->spin;
        un_body_push(body, un_scale(gravity, body->mass * kick), un_v3(0, 0, 0));
    }
    double last = bodies->contacts->kick;
    un_contacts_foresee(bodies, last > 0 ? kick / last : 0);
    bodies->contacts->kick = kick;
}

un_status un_bodies_touch(un_bodies *bodies, double dt)
{
    return un_contacts_solve(bodies, dt);
}

/* The angular momentum stays as it is while the body turns. */
static void turn_spin(un_body *body)
{
    double before[3][3];
    if (body->hold >> 3) return;
    inertia_in_place(before, body, &body->from);
    body->spin = multiply(body->inverse.about, multiply(before, body->spin));
}

void un_bodies_advance(un_bodies *bodies, double dt)
{
    for (int32_t b = 0; b < bodies->count; b++) {
        un_body *body = &bodies->body[b];
        if (!body->free) continue;
        double share = dt * un_contacts_share(bodies, b, dt);
        un_body_shift(body, un_scale(body->velocity, share), un_scale(body->spin, share));
        turn_spin(body);
    }
    un_contacts_part(bodies);
    for (int32_t b = 0; b < bodies->count; b++)
        if (bodies->body[b].free) un_body_find_bounds(&bodies->body[b]);
}

double un_bodies_speed(const un_bodies *bodies)
{
    double fastest = 0;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *body = &bodies->body[b];
        if (!body->free) continue;
        fastest = fmax(fastest, un_length(body->velocity) +
                                    un_length(body->spin) * bodies->contacts->reach[b]);
    }
    return fastest;
}

/* ---- checkpoints ---- */

#define POSE_NUMBERS 13
#define BODY_NUMBERS (2 * POSE_NUMBERS + 7)
#define CONTACT_NUMBERS 14

static double *put3(double *to, un_vec3 v)
{
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    return to + 3;
}

static const double *take3(const double *from, un_vec3 *v)
{
    *v = un_v3(from[0], from[1], from[2]);
    return from + 3;
}

int64_t un_bodies_save(const un_bodies *bodies, double *to)
{
    const un_contacts *c = bodies->contacts;
    if (!c) return 0;
    int64_t count = 2 + (int64_t)bodies->free_count * BODY_NUMBERS + c->count * CONTACT_NUMBERS;
    if (!to) return count;
    *to++ = c->kick;
    *to++ = c->count;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *body = &bodies->body[b];
        if (!body->free) continue;
        const un_pose *poses[2] = {&body->from, &body->to};
        for (int p = 0; p < 2; p++) {
            memcpy(to, poses[p]->rotation, sizeof poses[p]->rotation);
            to = put3(to + 9, poses[p]->translation);
            *to++ = poses[p]->scale;
        }
        to = put3(put3(to, body->velocity), body->spin);
        *to++ = body->dt;
    }
    for (int32_t i = 0; i < c->count; i++) {
        const un_contact *k = &c->contact[i];
        const double numbers[] = {k->a,        k->b,        k->point,  k->push,
                                  k->slide[0], k->slide[1], k->before, k->bounce};
        memcpy(to, numbers, sizeof numbers);
        to = put3(put3(to + 8, k->x), k->normal);
    }
    return count;
}

static bool is_sound(const double *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(numbers[i])) return false;
    return true;
}

static bool is_index(double number, int32_t low, int32_t count)
{
    return number >= low && number < count && number == floor(number);
}

un_status un_bodies_load(un_bodies *bodies, const double *from, int64_t count, bool *sound)
{
    un_contacts *c = bodies->contacts;
    *sound = false;
    if (count < 2 || !is_sound(from, count) || !is_index(from[1], 0, INT32_MAX)) return UN_OK;
    int64_t contacts = (int64_t)from[1];
    if (count != 2 + (int64_t)bodies->free_count * BODY_NUMBERS + contacts * CONTACT_NUMBERS)
        return UN_OK;
    UN_TRY(un_array_need(bodies->ctx, (void **)&c->contact, &c->capacity[0], (size_t)contacts + 1,
                         sizeof *c->contact));
    c->kick = from[0];
    c->count = (int32_t)contacts;
    from += 2;
    for (int32_t b = 0; b < bodies->count; b++) {
        un_body *body = &bodies->body[b];
        if (!body->free) continue;
        un_pose *poses[2] = {&body->from, &body->to};
        for (int p = 0; p < 2; p++) {
            memcpy(poses[p]->rotation, from, sizeof poses[p]->rotation);
            from = take3(from + 9, &poses[p]->translation);
            poses[p]->scale = *from++;
        }
        from = take3(take3(from, &body->velocity), &body->spin);
        body->dt = *from++;
        un_body_find_bounds(body);
        find_inverse_mass(body);
    }
    for (int32_t i = 0; i < c->count; i++) {
        un_contact *k = &c->contact[i];
        if (!is_index(from[0], 0, bodies->count) || !is_index(from[1], -6, bodies->count) ||
            !is_index(from[2], -1, UN_SHAPE_POINTS))
            return UN_OK;
        *k = (un_contact){.a = (int32_t)from[0],
                          .b = (int32_t)from[1],
                          .point = (int32_t)from[2],
                          .push = from[3],
                          .slide = {from[4], from[5]},
                          .before = from[6],
                          .bounce = from[7]};
        from = take3(take3(from + 8, &k->x), &k->normal);
    }
    *sound = true;
    return UN_OK;
}

/* ---- create and destroy ---- */

static void weigh(un_body *body, const un_solid *solid)
{
    const un_shape_sums *sums = &solid->sums;
    body->mass = solid->density * sums->volume;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) body->inertia[i][j] = solid->density * sums->inertia[i][j];
    find_inverse_mass(body);
    body->velocity = solid->velocity;
    body->spin = solid->spin;
    double *v[6] = {&body->velocity.x, &body->velocity.y, &body->velocity.z,
                    &body->spin.x,     &body->spin.y,     &body->spin.z};
    for (int i = 0; i < 6; i++)
        if (body->hold >> i & 1) *v[i] = 0;
}

un_status un_free_bodies_create(un_bodies *bodies)
{
    un_context *ctx = bodies->ctx;
    int32_t count = bodies->count, dim = bodies->scene->def.domain.dim, used = 0;
    un_contacts *c = bodies->contacts = un_alloc_zero(ctx, 1, sizeof *c);
    if (!c) return UN_ERROR_MEMORY;
    UN_ALLOC(ctx, c->first, count + 1);
    UN_ALLOC(ctx, c->reach, count + 1);
    UN_ALLOC(ctx, c->seen, count + 1);
    UN_ALLOC(ctx, c->points, (size_t)count * UN_SHAPE_POINTS);
    for (int32_t b = 0; b < count; b++) {
        un_body *body = &bodies->body[b];
        c->first[b] = used;
        used += un_shape_points(body->shape, dim, c->points + used, UN_SHAPE_POINTS);
        c->reach[b] = 0;
        for (int32_t p = c->first[b]; p < used; p++)
            c->reach[b] = fmax(c->reach[b], un_length(un_sub(c->points[p], body->centre)));
        if (!body->free) continue;
        weigh(body, &bodies->scene->def.solids[b]);
        un_body_find_round(body, c->points + c->first[b], used - c->first[b], c->reach[b], dim);
    }
    c->first[count] = used;
    return UN_OK;
}

void un_free_bodies_destroy(un_bodies *bodies)
{
    un_contacts *c = bodies->contacts;
    if (!c) return;
    un_free(bodies->ctx, c->points);
    un_free(bodies->ctx, c->first);
    un_free(bodies->ctx, c->reach);
    un_free(bodies->ctx, c->seen);
    un_free(bodies->ctx, c->contact);
    un_free(bodies->ctx, c->old);
    un_free(bodies->ctx, c);
}
