/* On the leaves of an octree: gravity by the pressure's operator, bodies in the system, and the
 * momentum that a projection gave the liquid. */
#include "pressure/coupling.h"
#include "pressure/leaves.h"

/* ---- bodies ---- */

/* What a body's motion adds to the outflow of a leaf, as the right-hand side has it. */
static bool push_of_body(const void *arg, int32_t q, int32_t body, double push[6])
{
    const un_leaf_args *s = arg;
    const un_leaves *m = s->m;
    const un_leaf_walls *w = s->in->walls;
    const un_body *b = &s->in->bodies->body[body];
    if (un_body_box_distance(b, m->x[q]) > 2 * un_leaf_size(m, q)) return false;
    un_vec3 centre = un_pose_apply(&b->to, b->centre);
    bool any = false;
    for (int i = 0; i < 6; i++) push[i] = 0;
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t g = m->side[q][side];
        for (int k = 0; k < (g < 0 ? un_leaves_group_size(m) : 1); k++) {
            int32_t f = g < 0 ? m->group[~g][k] : g;
            double closed = 1 - un_leaf_open_share(s->in, f);
            if (closed == 0 || w->body[f] != body) continue;
            un_vec3 e = un_v3(side / 2 == 0, side / 2 == 1, side / 2 == 2);
            un_vec3 turn =
                un_body_pushing_turn(b, un_cross(un_sub(un_leaf_face_center(m, f), centre), e));
            double flux = (side & 1 ? 1 : -1) * closed * s->scale * un_leaf_face_area(m, f);
            const double sum[6] = {e.x, e.y, e.z, turn.x, turn.y, turn.z};
            for (int i = 0; i < 6; i++) push[i] += flux * sum[i];
            any = true;
        }
    }
    return any;
}

static int32_t body_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const un_leaf_args *s = arg;
    return un_coupling_collect(s->pr, body, push_of_body, s, row, push);
}

un_status un_leaf_couple(un_leaf_args *s)
{
    un_pressure *pr = s->pr;
    const un_leaf_projection *in = s->in;
    double unit = in->density / s->scale;
    if (s->shared) {
        UN_TRY(un_coupling_build_ranks(pr, in->bodies, in->density, unit, push_of_body, s));
        if (un_coupling_any(pr)) UN_TRY(un_leaf_pressure_know_rows(s));
    } else {
        UN_TRY(un_coupling_build(pr, in->bodies, in->density, unit, body_rows, s));
    }
    return un_coupling_push_surface(pr, in->bodies, in->surface, in->kick, in->density);
}

/* ---- what the liquid got ---- */

typedef struct impulse_args {
    un_leaf_args s;
    const double *before;
} impulse_args;

/* The liquid between the centres beside a face, m3 (2D: m2): open, and up to the surface. */
static double face_liquid(const un_leaf_args *s, int32_t f)
{
    const un_leaves *m = s->m;
    int32_t c = m->face_side[f] / 6, other = m->face_other[f];
    bool own = s->pr->index[c] >= 0, there = other >= 0 && s->pr->index[other] >= 0;
    if (!own && !there) return 0;
    double way = un_leaf_size(m, c), area = un_leaf_open_area(s, f);
    if (other < 0) return 0.5 * way * area;
    if (m->tree->level[other] < m->tree->level[c]) way = 0.75 * un_leaf_size(m, other);
    if (!there) way /= 1 - un_leaf_ghost(s, c, other, false);
    if (!own) way /= 1 - un_leaf_ghost(s, other, c, false);
    return way * area;
}

/* By axis: momentum, mass. */
static void impulse_faces(void *arg, int64_t begin, int64_t end, double *sums)
{
    const impulse_args *a = arg;
    const un_leaf_projection *in = a->s.in;
    for (int64_t f = begin; f < end; f++) {
        int axis = a->s.m->face_side[f] % 6 / 2;
        double mass = in->density * face_liquid(&a->s, (int32_t)f);
        sums[axis] += mass * (in->u[f] - a->before[f]);
        sums[3 + axis] += mass;
    }
}

/* The other side of what the pressure does to bodies and walls. */
static void press_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_leaf_args *s = &((const impulse_args *)arg)->s;
    const un_leaves *m = s->m;
    for (int64_t n = begin; n < end; n++) {
        int32_t q = s->pr->place[n];
        for (int side = 0; side < 2 * m->dim; side++) {
            int32_t g = m->side[q][side];
            for (int k = 0; k < (g < 0 ? un_leaves_group_size(m) : 1); k++)
                sums[side / 2] += (side & 1 ? 1 : -1) * s->pr->x[n] *
                                  un_leaf_open_area(s, g < 0 ? m->group[~g][k] : g);
        }
    }
}

void un_leaf_impulse(const un_pressure *pr, const un_leaf_projection *in, const double *before,
                     un_vec3 gravity, un_impulse *out)
{
    impulse_args a = {
        .s = {.pr = (un_pressure *)(uintptr_t)pr, .in = in, .m = in->leaves, .scale = 1},
        .before = before};
    double sums[6], press[3];
    const un_leaves *m = in->leaves;
    bool parts = un_leaves_in_parts(m);
    un_part own = un_leaves_own_faces(m);
    if (parts)
        un_ranks_sums(pr->ctx, (un_range){own.begin, own.end, m->face_count}, 6, impulse_faces, &a,
                      sums);
    else
        un_parallel_sums(pr->ctx, m->face_count, 6, impulse_faces, &a, sums);
    out->momentum = un_v3(sums[0], sums[1], sums[2]);
    out->mass = un_v3(sums[3], sums[4], sums[5]);
    if (in->surface) return;
    if (parts)
        un_ranks_sums(pr->ctx, (un_range){pr->own.begin, pr->own.end, pr->matrix.n}, 3, press_rows,
                      &a, press);
    else
        un_parallel_sums(pr->ctx, pr->matrix.n, 3, press_rows, &a, press);
    out->momentum = un_add(un_scale(un_v3(press[0], press[1], press[2]), in->density),
                           un_v3(sums[3] * gravity.x, sums[4] * gravity.y, sums[5] * gravity.z));
}

/* ---- gravity ---- */

typedef struct accelerate_args {
    un_leaf_args s;
    double *u, *before;
    un_vec3 change;
} accelerate_args;

static void accelerate(void *arg, int64_t begin, int64_t end)
{
    const accelerate_args *a = arg;
    const un_leaves *m = a->s.m;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, other = m->face_other[f];
        double change = un_vec3_at(a->change, side / 2);
        a->before[f] = a->u[f];
        if (other >= 0 && m->tree->level[other] < m->tree->level[c]) {
            un_side_rule r;
            un_leaf_group_rule(&a->s, other, ~m->side[other][side ^ 1], &r);
            un_vec3 way = {0, 0, 0};
            for (int k = 0; k < r.count; k++) way = un_mad(way, m->x[r.leaf[k]], r.weight[k]);
            if (r.total > 0) change = (side & 1 ? -1 : 1) * un_dot(way, a->change) / r.distance;
        }
        a->u[f] += change;
    }
}

void un_leaf_accelerate(un_context *ctx, double *u, double *before, un_vec3 change,
                        const un_leaves *leaves, un_leaf_walls *walls)
{
    un_leaf_projection in = {.leaves = leaves, .walls = walls};
    accelerate_args a = {
        .s = {.in = &in, .m = leaves, .scale = 1}, .u = u, .before = before, .change = change};
    if (!un_leaves_in_parts(leaves)) {
        un_parallel_for(ctx, leaves->face_count, 4096, accelerate, &a);
        return;
    }
    un_parallel_part(ctx, un_leaves_own_faces(leaves), 4096, accelerate, &a);
    un_leaves_spread_faces(leaves, u, sizeof *u);
    un_leaves_spread_faces(leaves, before, sizeof *before);
}
