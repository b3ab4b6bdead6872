/* Bodies that the liquid moves, in the projection on tets that conform to them.
 *
 * A wall face f of a body has the velocity m_f.U, m_f = (n, r x n) and U the body's velocity and
 * spin. The pressure there is that of its tet, and what the gradient makes of the way from centre
 * to face: along the normal by the face's own change of velocity, over the distance d; along the
 * face by the gradient of the last solve. With the weight's part, which is known,
 *
 *     M (U - U*) = rho sum_f A m_f [q_t + d (u*_f - e_f - m_f.U) + G.(x_f - x_t)_along
 *                                   + dt g.x_f]
 *
 * (q as in stuffed.c, in units of p dt / rho; e_f is what a face has to go until it meets the
 * body). The second term is the inertia of the liquid between the centres and the body: it joins
 * the body's mass, M + rho sum A d m m^T, so that light bodies are stable and momentum is kept. The
 * first is the columns' (coupling.c); the rest is known.
 *
 * Faces are chords of round bodies and cut their edges. The liquid there weighs on the body as if
 * the faces followed it: without, a ball of 3.6 cells' radius lies 0.05 cells too deep. So it does
 * between faces and a thin wall that the mesh takes for thicker.
 *
 * At the water line open faces cut the corner between surface and body, and the liquid behind them
 * leans on the body, too: without, a floating ball of 3.6 cells' radius drifted at 14 mm/s in still
 * water, now at 0.5. */
#include "pressure/stuffed_bodies.h"

#include "pressure/coupling.h"

/* The mean over a face of its depth in the body, over that in the middle: as of a paraboloid. */
#define MEAN_DEPTH 0.75
/* In leaves: deeper is no chord. */
#define DEPTH_MAX 0.3
/* In leaves: open faces nearer to a body are at its water line. */
#define WATER_LINE 0.5

void un_stuffed_motion(double motion[6], const un_body *body, const un_stuffing *mesh, int32_t f)
{
    un_vec3 n = un_normalize(mesh->area[f]);
    un_vec3 arm = un_sub(mesh->center[f], un_pose_apply(&body->to, body->centre));
    un_vec3 turn = un_body_pushing_turn(body, un_cross(arm, n));
    const double m[6] = {n.x, n.y, n.z, turn.x, turn.y, turn.z};
    memcpy(motion, m, sizeof m);
}

/* Is the face at place b a wall of the body? */
static bool is_wall_of(const un_stuffed_bodies *s, int64_t b, int32_t body)
{
    return s->in->rim->body[b] == body && isnan(s->air[s->in->mesh->boundary[b]]);
}

/* Boundary faces come in the order of their tets. */
static int32_t rows_of_body(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const un_stuffed_bodies *s = arg;
    const un_stuffing *mesh = s->in->mesh;
    int32_t count = 0, last = -1;
    for (int32_t b = 0; b < mesh->boundary_count; b++) {
        if (!is_wall_of(s, b, body)) continue;
        int32_t f = mesh->boundary[b], t = mesh->face_tet[f][0];
        double m[6], area = un_length(mesh->area[f]);
        if (t != last) {
            if (row) {
                row[count] = t;
                memset(push[count], 0, sizeof push[count]);
            }
            count++;
        }
        last = t;
        if (!row) continue;
        un_stuffed_motion(m, &s->in->rim->bodies->body[body], mesh, f);
        for (int i = 0; i < 6; i++) push[count - 1][i] += area * m[i];
    }
    return count;
}

/* A d of a face, m3. */
static double layer(const un_stuffing *mesh, int32_t f)
{
    return 0.75 * mesh->volume[mesh->face_tet[f][0]];
}

/* rho sum A d m m^T */
static void add_layer(const void *arg, int32_t body, double mass[6][6])
{
    const un_stuffed_bodies *s = arg;
    const un_stuffing *mesh = s->in->mesh;
    for (int32_t b = 0; b < mesh->boundary_count; b++) {
        if (!is_wall_of(s, b, body)) continue;
        int32_t f = mesh->boundary[b];
        double m[6], weight = s->in->density * layer(mesh, f);
        un_stuffed_motion(m, &s->in->rim->bodies->body[body], mesh, f);
        for (int i = 0; i < 36; i++) mass[i / 6][i % 6] += weight * m[i / 6] * m[i % 6];
    }
}

static void find_hidden(void *arg, int64_t begin, int64_t end)
{
    un_stuffed_bodies *s = arg;
    const un_stuffing *mesh = s->in->mesh;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = mesh->boundary[b], body = s->in->rim->body[b];
        double most = DEPTH_MAX * un_stuffing_leaf(mesh, f);
        s->hidden[b] = 0;
        s->chamfer[b] = -1;
        if (mesh->face_behind[f] == UN_BEHIND_AIR && !isnan(s->in->rim->foot[b].x)) {
            double d = WATER_LINE * un_stuffing_leaf(mesh, f);
            s->chamfer[b] = un_bodies_nearest(s->in->rim->bodies, mesh->center[f], &d);
        }
        if (body < 0 || mesh->face_behind[f] != UN_BEHIND_WALL) continue;
        double grown = s->in->rim->grown ? s->in->rim->grown[body] : 0;
        double depth = grown - un_body_distance(&s->in->rim->bodies->body[body], mesh->center[f]);
        double mean = MEAN_DEPTH * un_clamp(depth, -most, most) - grown;
        s->hidden[b] = mean * un_length(mesh->area[f]);
    }
}

un_status un_stuffed_bodies_couple(un_stuffed_bodies *s, un_arena *arena)
{
    un_bodies *bodies = s->in->rim->bodies;
    s->velocity = un_arena_alloc(arena, (size_t)bodies->count + 1, sizeof *s->velocity);
    s->spin = un_arena_alloc(arena, (size_t)bodies->count + 1, sizeof *s->spin);
    size_t faces = (size_t)s->in->mesh->boundary_count + 1;
    s->hidden = un_arena_alloc(arena, faces, sizeof *s->hidden);
    s->chamfer = un_arena_alloc(arena, faces, sizeof *s->chamfer);
    if (!s->velocity || !s->spin || !s->hidden || !s->chamfer) return UN_ERROR_MEMORY;
    un_parallel_for(s->pr->ctx, s->in->mesh->boundary_count, 512, find_hidden, s);
    for (int32_t b = 0; b < bodies->count; b++) {
        s->velocity[b] = bodies->body[b].velocity;
        s->spin[b] = bodies->body[b].spin;
    }
    return un_coupling_build_heavier(s->pr, bodies, s->in->density, s->in->density, rows_of_body,
                                     add_layer, s);
}

/* What the liquid between an open face at the water line and the body pushes it with. The face's
 * push upwards carries that liquid's own weight. */
static void add_chamfer(double impulse[6], const un_stuffed_bodies *s, int32_t b,
                        const un_body *body)
{
    const un_stuffing *mesh = s->in->mesh;
    int32_t f = mesh->boundary[b];
    un_vec3 g = s->in->gravity, down = un_normalize(g), a = mesh->area[f];
    double q = s->in->density * s->in->dt * un_dot(g, un_sub(mesh->center[f], s->in->rim->foot[b]));
    un_vec3 push = un_scale(un_mad(a, down, -un_dot(a, down)), q);
    un_vec3 arm = un_sub(mesh->center[f], un_pose_apply(&body->to, body->centre));
    un_vec3 turn = un_body_pushing_turn(body, un_cross(arm, push));
    const double more[6] = {push.x, push.y, push.z, turn.x, turn.y, turn.z};
    for (int k = 0; k < 6; k++) impulse[k] += more[k];
}

static void lean(void *arg, int64_t begin, int64_t end)
{
    const un_stuffed_bodies *s = arg;
    const un_stuffed_rim *rim = s->in->rim;
    const un_stuffing *mesh = s->in->mesh;
    for (int64_t i = begin; i < end; i++) {
        int32_t of = s->pr->coupling.body[i].body;
        un_body *body = &rim->bodies->body[of];
        un_vec3 centre = un_pose_apply(&body->to, body->centre), middle = {0, 0, 0};
        double impulse[6] = {0}, hidden = 0;
        body->velocity = s->velocity[of];
        body->spin = s->spin[of];
        for (int32_t b = 0; b < mesh->boundary_count; b++) {
            if (s->chamfer[b] == of) add_chamfer(impulse, s, b, body);
            if (!is_wall_of(s, b, of)) continue;
            int32_t f = mesh->boundary[b], t = mesh->face_tet[f][0];
            double m[6], area = un_length(mesh->area[f]);
            un_vec3 g = s->gradient[t], n = un_normalize(mesh->area[f]);
            un_vec3 along = un_mad(g, n, -un_dot(g, n));
            double q = un_dot(along, un_sub(mesh->center[f], un_stuffing_center(mesh, t)));
            q += s->in->dt * un_dot(s->in->gravity, un_sub(mesh->center[f], s->reference));
            double sum =
                area * q + layer(mesh, f) * (s->in->u[f] - un_stuffed_wall_speed(rim, mesh, b));
            un_stuffed_motion(m, body, mesh, f);
            for (int k = 0; k < 6; k++) impulse[k] += s->in->density * sum * m[k];
            hidden += s->hidden[b];
            middle = un_mad(middle, un_sub(mesh->center[f], centre), s->hidden[b]);
        }
        un_vec3 lift = un_scale(s->in->gravity, -s->in->density * s->in->dt);
        un_vec3 turn = un_body_pushing_turn(body, un_cross(middle, lift));
        const double more[6] = {hidden * lift.x, hidden * lift.y, hidden * lift.z,
                                turn.x,          turn.y,          turn.z};
        for (int k = 0; k < 6; k++) impulse[k] += more[k];
        un_coupling_kick(s->pr, rim->bodies, (int32_t)i, impulse);
    }
}

void un_stuffed_bodies_lean(const un_stuffed_bodies *s)
{
    un_parallel_for(s->pr->ctx, s->pr->coupling.body_count, 1, lean, (void *)s);
}
