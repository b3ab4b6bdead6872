/* The surface pulls on bodies that the liquid moves, along the line where it meets them.
 *
 * The liquid's pressure jumps by sigma kappa across the surface, which adds up to a pull along the
 * surface's edge. A wall takes it; a body must get it, or a drop that sits on one would set both in
 * motion. The pull on a length ds of the line is
 *
 *     sigma t ds,   t = sin(theta) n - cos(theta) s
 *
 * with n the body's normal, s the direction along the body from the liquid to the air, and theta
 * the contact angle: t lies in a surface that meets the body at theta. (At another angle the kink
 * at the wall has a curvature of its own, which the pressure has already.) Level set and distance
 * are linear in each simplex, and so the line is straight in it. */
#include "tension/lattice.h"

typedef struct corner {
    un_vec3 x;
    double liquid, body; /* level set; distance to the body */
} corner;

typedef struct pull {
    un_vec3 impulse, twist;
} pull;

static bool changes_sign(const corner *c, int count)
{
    bool air = false, liquid = false, in = false, out = false;
    for (int i = 0; i < count; i++) {
        air |= c[i].liquid >= 0;
        liquid |= c[i].liquid < 0;
        out |= c[i].body >= 0;
        in |= c[i].body < 0;
    }
    return air && liquid && in && out;
}

/* The point of a triangle where both are zero. */
static bool find_point(un_vec3 *x, const corner *a, const corner *b, const corner *c)
{
    double l0 = a->liquid, l1 = b->liquid - l0, l2 = c->liquid - l0;
    double d0 = a->body, d1 = b->body - d0, d2 = c->body - d0;
    double det = l1 * d2 - l2 * d1;
    if (det == 0) return false;
    double u = (l2 * d0 - l0 * d2) / det, v = (l0 * d1 - l1 * d0) / det;
    if (!(u >= 0 && v >= 0 && u + v <= 1)) return false;
    *x = un_mad(un_mad(a->x, un_sub(b->x, a->x), u), un_sub(c->x, a->x), v);
    return true;
}

/* Adds the pull on a length of the line around x. slope: of the level set. */
static void add_pull(pull *sum, const un_body *body, un_vec3 x, un_vec3 slope, double length)
{
    double theta = body->contact_angle * UN_PI / 180;
    un_vec3 n = un_body_normal(body, x);
    un_vec3 s = un_normalize(un_mad(slope, n, -un_dot(slope, n)));
    un_vec3 t = un_mad(un_scale(n, sin(theta)), s, -cos(theta));
    un_vec3 arm = un_sub(x, un_pose_apply(&body->to, body->centre));
    sum->impulse = un_mad(sum->impulse, t, length);
    sum->twist = un_mad(sum->twist, un_cross(arm, t), length);
}

/* The gradient of the level set in a tet. */
static un_vec3 slope_of(const corner c[4])
{
    un_vec3 e[3], g = {0, 0, 0};
    for (int i = 0; i < 3; i++) e[i] = un_sub(c[i + 1].x, c[0].x);
    double det = un_dot(e[0], un_cross(e[1], e[2]));
    for (int i = 0; i < 3; i++)
        g = un_mad(g, un_cross(e[(i + 1) % 3], e[(i + 2) % 3]),
                   (c[i + 1].liquid - c[0].liquid) / det);
    return g;
}

static void pull_in_tet(pull *sum, const un_body *body, const corner c[4])
{
    un_vec3 end[4], middle;
    int count = 0;
    if (!changes_sign(c, 4)) return;
    for (int i = 0; i < 4; i++)
        count += find_point(&end[count], &c[(i + 1) % 4], &c[(i + 2) % 4], &c[(i + 3) % 4]);
    if (count < 2) return;
    middle = un_scale(un_add(end[0], end[1]), 0.5);
    add_pull(sum, body, middle, slope_of(c), un_length(un_sub(end[1], end[0])));
}

/* 2D: the line is a point. */
static void pull_in_triangle(pull *sum, const un_body *body, const corner c[3])
{
    un_vec3 x, e1 = un_sub(c[1].x, c[0].x), e2 = un_sub(c[2].x, c[0].x);
    if (!changes_sign(c, 3) || !find_point(&x, &c[0], &c[1], &c[2])) return;
    double l1 = c[1].liquid - c[0].liquid, l2 = c[2].liquid - c[0].liquid;
    double det = e1.x * e2.y - e1.y * e2.x;
    un_vec3 slope = {(l1 * e2.y - l2 * e1.y) / det, (l2 * e1.x - l1 * e2.x) / det, 0};
    add_pull(sum, body, x, slope, 1);
}

static void apply(un_body *body, const pull *sum, double strength)
{
    un_vec3 twist = un_body_pushing_turn(body, sum->twist);
    un_body_push(body, un_scale(sum->impulse, strength), un_scale(twist, strength));
}

/* ---- on the grid: cubes between the centres of cells ---- */

/* Six tets of a cube, or two triangles of a square, around the diagonal from corner 0. */
static const uint8_t cube_tet[6][4] = {{0, 1, 3, 7}, {0, 3, 2, 7}, {0, 2, 6, 7},
                                       {0, 6, 4, 7}, {0, 4, 5, 7}, {0, 5, 1, 7}};
static const uint8_t square_triangle[2][3] = {{0, 1, 3}, {0, 3, 2}};

static void pull_in_cube(pull *sum, const un_body *body, const un_tension_lattice *l, int64_t c)
{
    corner at[8], part[4];
    int corners = 1 << l->dim;
    bool air = false, liquid = false;
    if (l->mark && !(l->mark[c] & UN_OWN_LEVEL)) return;
    for (int i = 0; i < corners; i++) {
        int64_t m = c + (i & 1) + (i >> 1 & 1) * l->stride[1];
        if (l->dim == 3) m += (i >> 2) * l->stride[2];
        at[i].liquid = l->phi[m] * l->in->grid->h;
        air |= !(at[i].liquid < 0);
        liquid |= at[i].liquid < 0;
        double x[3];
        un_lattice_place(l, m, x);
        at[i].x = un_lattice_world(l, x);
    }
    if (!air || !liquid) return;
    for (int i = 0; i < corners; i++) at[i].body = un_body_distance(body, at[i].x);
    if (!changes_sign(at, corners)) return;
    for (int p = 0; p < (l->dim == 2 ? 2 : 6); p++) {
        for (int i = 0; i <= l->dim; i++)
            part[i] = at[l->dim == 2 ? square_triangle[p][i] : cube_tet[p][i]];
        if (l->dim == 2)
            pull_in_triangle(sum, body, part);
        else
            pull_in_tet(sum, body, part);
    }
}

/* The cubes that a body's box touches. */
static void find_cubes(const un_tension_lattice *l, const un_body *body, int32_t from[3],
                       int32_t to[3])
{
    const un_grid *g = l->in->grid;
    double low[3] = {body->bounds.min.x - g->origin.x, body->bounds.min.y - g->origin.y,
                     body->bounds.min.z - g->origin.z};
    double high[3] = {body->bounds.max.x - g->origin.x, body->bounds.max.y - g->origin.y,
                      body->bounds.max.z - g->origin.z};
    for (int a = 0; a < 3; a++) {
        from[a] = to[a] = 0;
        if (a >= l->dim) continue;
        from[a] = (int32_t)un_clamp(floor(low[a] / g->h - 0.5) + l->pad[a], 0, l->n[a] - 2);
        to[a] = (int32_t)un_clamp(floor(high[a] / g->h - 0.5) + l->pad[a], 0, l->n[a] - 2);
    }
}

static void pull_bodies(void *arg, int64_t begin, int64_t end)
{
    const un_tension_lattice *l = arg;
    for (int64_t b = begin; b < end; b++) {
        un_body *body = &l->in->bodies->body[b];
        pull sum = {0};
        int32_t from[3], to[3];
        if (!body->free) continue;
        find_cubes(l, body, from, to);
        for (int32_t k = from[2]; k <= to[2]; k++)
            for (int32_t j = from[1]; j <= to[1]; j++)
                for (int32_t i = from[0]; i <= to[0]; i++)
                    pull_in_cube(&sum, body, l,
                                 i + j * l->stride[1] + (l->dim == 2 ? 0 : k * l->stride[2]));
        apply(body, &sum, l->in->def->fluid.surface_tension * l->in->kick);
    }
}

void un_lattice_pull(const un_tension_lattice *l)
{
    un_parallel_for(l->ctx, l->in->bodies->count, 1, pull_bodies, (void *)l);
}

/* ---- on tets ---- */

typedef struct tet_args {
    const un_tension_tets *in;
    const un_body *body;
    int64_t first; /* this rank's first tet, less its number on one rank */
} tet_args;

static void pull_in_tets(void *arg, int64_t begin, int64_t end, double *sums)
{
    const tet_args *a = arg;
    const un_tets *mesh = a->in->mesh;
    const float *phi = a->in->phi;
    pull sum = {un_v3(sums[0], sums[1], sums[2]), un_v3(sums[3], sums[4], sums[5])};
    for (int64_t t = begin + a->first; t < end + a->first; t++) {
        const int32_t *n = mesh->tet[t];
        int liquid = 0;
        for (int i = 0; i < 4; i++) liquid += phi[n[i]] < 0;
        if (liquid == 0 || liquid == 4) continue;
        if (!un_body_is_near(a->body, mesh->x[n[0]], mesh->x[n[2]], un_tets_size(mesh, (int32_t)t)))
            continue;
        corner c[4];
        for (int i = 0; i < 4; i++)
            c[i] = (corner){mesh->x[n[i]], phi[n[i]], un_body_distance(a->body, mesh->x[n[i]])};
        pull_in_tet(&sum, a->body, c);
    }
    const double values[6] = {sum.impulse.x, sum.impulse.y, sum.impulse.z,
                              sum.twist.x,   sum.twist.y,   sum.twist.z};
    for (int i = 0; i < 6; i++) sums[i] = values[i];
}

void un_tension_pull_on_tets(un_context *ctx, const un_tension_tets *in)
{
    for (int32_t b = 0; b < in->bodies->count; b++) {
        const un_tet_share *share = in->mesh->share;
        tet_args a = {in, &in->bodies->body[b], share ? share->tet_begin - share->tets.begin : 0};
        double s[6];
        if (!in->bodies->body[b].free) continue;
        if (share)
            un_ranks_sums(ctx, share->tets, 6, pull_in_tets, &a, s);
        else
            un_parallel_sums(ctx, in->mesh->tet_count, 6, pull_in_tets, &a, s);
        pull sum = {un_v3(s[0], s[1], s[2]), un_v3(s[3], s[4], s[5])};
        apply(&in->bodies->body[b], &sum, in->def->fluid.surface_tension * in->kick);
    }
}
