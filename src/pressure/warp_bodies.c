/* Bodies that the liquid moves, on a grid that warps.
 *
 * A solid that moves with v takes the integral of grad N_i . v over the open part from the
 * right-hand side of node i (warp.c). So the six columns of a body have
 *
 *     J_i = int_open grad N_i,     int_open (x - centre) x grad N_i
 *
 * at the nodes that are next to it. By the same numbers the pressure pushes it, over the boundary
 * that cuts the cells exactly (coupling.c). What the pressure takes from the liquid is the sum over
 * all nodes: it is not zero where solids or closed sides cut the hat functions off. */
#include "pressure/coupling.h"
#include "pressure/warp_system.h"

/* The gradient of the hat function at a place, integrated over the open part of the cells around
 * it, and its turn about a centre. keep: 0 along axes that do not count. */
UN_KERNEL void sum_gradient(const un_warp_args *s, int64_t place, un_vec3 centre, un_vec3 keep,
                            un_vec3 *area, un_vec3 *turn, int dim)
{
    const un_walls *w = s->in->walls;
    const un_grid *g = w->grid;
    int32_t n[3];
    un_warp_node_indices(g, un_warp_node_of(w, place), n);
    *area = *turn = un_v3(0, 0, 0);
    for (int m = 0; m < 1 << dim; m++) {
        int32_t c[3] = {n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2)};
        int64_t cell = un_grid_cell(g, c[0], c[1], c[2]);
        un_element e;
        un_quadrature q;
        un_hats h;
        if (!(s->warp->jacobian[cell] > 0) || !(w->volume[cell] > (float)UN_WARP_OPEN_MIN))
            continue;
        un_warp_load_element(s, &e, c, dim);
        if (e.place[m] != place || !un_warp_is_wet(s, &e, cell, dim)) continue;
        un_warp_quadrature(s, &q, &e, cell, dim);
        for (int i = 0; i < q.count; i++) {
            double weight = un_element_hats(&e, q.at[i], &h, dim) * q.weight[i];
            un_vec3 slope = un_scale(un_hats_grad(&h, m), weight), x = {0, 0, 0};
            slope = un_v3(slope.x * keep.x, slope.y * keep.y, slope.z * keep.z);
            for (int l = 0; l < 1 << dim; l++) x = un_mad(x, e.x[l], h.value[l]);
            *area = un_add(*area, slope);
            *turn = un_add(*turn, un_cross(un_sub(x, centre), slope));
        }
    }
}

/* ---- columns ---- */

static const un_body *free_body(const un_warp_args *s, int64_t place)
{
    int16_t b = s->mover[un_warp_node_of(s->in->walls, place)];
    return b >= 0 && s->in->bodies->body[b].free ? &s->in->bodies->body[b] : NULL;
}

/* Sides of the domain stand still: what moves next to them moves along them. */
static un_vec3 along_sides(const un_warp_args *s, int64_t place)
{
    const un_grid *g = s->in->walls->grid;
    int32_t n[3];
    bool side[3] = {false, false, g->dim == 2};
    un_warp_node_indices(g, un_warp_node_of(s->in->walls, place), n);
    for (int a = 0; a < g->dim; a++) side[a] = n[a] == 1 || n[a] == g->n[a] - 1;
    return un_v3(!side[0], !side[1], !side[2]);
}

static void push_rows(void *arg, int64_t begin, int64_t end)
{
    const un_warp_args *s = arg;
    const un_grid *g = s->in->walls->grid;
    for (int64_t r = begin; r < end; r++) {
        int64_t place = s->pr->place[r];
        const un_body *body = free_body(s, place);
        un_vec3 area, turn;
        if (!body) continue;
        UN_BY_DIM(g->dim, sum_gradient(s, place, un_pose_apply(&body->to, body->centre),
                                       along_sides(s, place), &area, &turn, dim));
        turn = un_body_pushing_turn(body, turn);
        const double push[6] = {area.x, area.y, area.z, turn.x, turn.y, turn.z};
        const un_vec3 v = body->velocity, w = body->spin;
        const double u[6] = {v.x, v.y, v.z, w.x, w.y, w.z};
        for (int k = 0; k < 6; k++) {
            s->push[r][k] = push[k];
            s->pr->rhs[r] -= push[k] * u[k];
        }
    }
}

static bool push_of_place(const void *arg, int32_t place, int32_t body, double push[6])
{
    const un_warp_args *s = arg;
    if (s->mover[un_warp_node_of(s->in->walls, place)] != body) return false;
    memcpy(push, s->push[s->pr->index[place]], 6 * sizeof *push);
    return true;
}

static int32_t body_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const un_warp_args *s = arg;
    return un_coupling_collect(s->pr, body, push_of_place, s, row, push);
}

un_status un_warp_couple(un_warp_args *s, un_arena *arena)
{
    un_pressure *pr = s->pr;
    const un_warp_projection *in = s->in;
    s->push = un_arena_alloc(arena, (size_t)pr->matrix.n + 1, sizeof *s->push);
    if (!s->push) return UN_ERROR_MEMORY;
    un_parallel_for(pr->ctx, pr->matrix.n, 256, push_rows, s);
    UN_TRY(un_coupling_build(pr, in->bodies, in->density, in->density, body_rows, s));
    return un_coupling_push_surface(pr, in->bodies, in->surface, in->kick, in->density);
}

/* ---- what the liquid got ---- */

/* Is everything around a place open? Then the gradient of its hat function has no sum. */
static bool is_open(const un_warp_args *s, int64_t place)
{
    const un_walls *w = s->in->walls;
    const un_grid *g = w->grid;
    int32_t n[3];
    un_warp_node_indices(g, un_warp_node_of(w, place), n);
    for (int m = 0; m < 1 << g->dim; m++) {
        int64_t c = un_grid_cell(g, n[0] - (m & 1), n[1] - (m >> 1 & 1), n[2] - (m >> 2));
        if (!(s->warp->jacobian[c] > 0) || w->volume[c] < 1) return false;
        if (w->parts.cell_count > 0 && w->parts.at[c] >= 0) return false;
    }
    return true;
}

static void press_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_warp_args *s = arg;
    const un_warp_projection *in = s->in;
    for (int64_t r = begin; r < end; r++) {
        int64_t place = s->pr->place[r];
        un_vec3 area, turn;
        if (is_open(s, place)) continue;
        double x = s->pr->x[r];
        if (in->surface) x += in->surface[place] * in->kick / in->density;
        UN_BY_DIM(in->walls->grid->dim,
                  sum_gradient(s, place, un_v3(0, 0, 0), un_v3(1, 1, 1), &area, &turn, dim));
        sums[0] -= x * area.x;
        sums[1] -= x * area.y;
        sums[2] -= x * area.z;
    }
}

void un_warp_find_impulse(const un_warp_args *s)
{
    un_impulse *out = s->in->impulse;
    double sums[3];
    un_parallel_sums(s->pr->ctx, s->pr->matrix.n, 3, press_rows, (void *)(uintptr_t)s, sums);
    out->momentum = un_mad(un_scale(un_v3(sums[0], sums[1], sums[2]), s->in->density),
                           s->in->gravity, out->mass.x);
}
