/* Velocities from mesh to mesh, where meshes conform to the liquid [Chentanez07 section 3.1].
 *
 * The flow is a field on the lattice that the old mesh was cut from: linear in its tets, which fill
 * the whole domain, so that paths need not care for the liquid's surface. At each node of a lattice
 * tet with liquid in it, velocity U and slope J fit the normal velocities of the faces around it,
 *
 *     min sum_f A_f [n_f.(U + J (x_f - x)) - u_f]^2 + ridge |J|^2,   tr J = 0.
 *
 * Beyond, nodes take the mean of U + J (x - x_m) over neighbours m that have one: linear
 * extrapolation keeps the volume of a surface that it carries. But it may not be much faster than
 * the liquid that it comes from: the slopes of a front that meets a wall are as large as its speed
 * over a cell, and liquid that got velocities from there threw jets (scenes/hemisphere.lua at 48
 * cells: 15 m/s, now 6). On closed sides it goes no farther than to the side: liquid that ran
 * into it would be lost.
 *
 * In drops and sheets of a few tets, faces tell neither slopes nor what is beyond them, and a fit
 * of noise would throw liquid away. So a fit may depart from what it starts with, the mean of the
 * tets around it or what neighbours predict, only as far as the velocities of these tets do.
 *
 * A velocity that linear interpolation and fits cannot hold would be lost in every step. So the
 * faces' residuals u_f - n.I(U)(x_f) are fitted in each tet too, and RETURNED of them comes back
 * where a path ends. All of it would let noise grow.
 *
 * Where a flow is curved, as around a ball of few cells, fits exceed it on one side. So CORRECTED
 * of the mean residual around a node is added to its velocity first. */
#include "transfer/transfer.h"

#include "surface/surface.h"

#define RETURNED 0.5
/* Momentum that bodies in a drop lose in 8 steps, in water and in syrup: 5.3 and 8.4 % without, 2.8
 * and 3.9 with 0.5, 1.9 and 1.4 with 0.75, 1.9 and 2.4 with 1. A standing wave at 16 cells loses
 * 5.2, 3.1, 2.2 and 1.3 % a period. */
#define CORRECTED 0.75
/* Weight of the slopes in the sum of squares, at nodes of the mesh and at others. A standing wave
 * at 16 cells gains 0.3 % a period with a ridge of 2e-4, loses 0.6 % with 1e-3 and 1.7 % with 5e-3.
 */
#define RIDGE 1e-3
#define RIDGE_OUTSIDE 2e-2
/* How far U and J h may depart from what the fit starts with, over the most that tets around do. A
 * linear flow keeps below it. Noise in a sheet of one tet grows from 3.5 to 7.7 m/s beyond it, and
 * to 17 without this. */
#define STRAY 1.0
#define STRAY_SLOPE 2.0
/* Weight of closed sides over that of all faces around. Without it a front that meets one loses up
 * to half more of its volume into it. */
#define HELD 10.0
/* Share of slopes that is left from one layer beyond the surface to the next. */
#define FADE 0.8
/* Speed beyond the liquid, over the fastest liquid that it comes from. With 1.25 the hemisphere's
 * splash is a tenth faster; with 1 the mean velocity above a wave is 0.1 % too small. */
#define FASTER 1.1

#define NODE_GRAIN 512

void un_flow_free(un_context *ctx, un_flow *flow)
{
    un_free(ctx, flow->u);
    un_free(ctx, flow->slope);
    un_free(ctx, flow->known);
    un_free(ctx, flow->rest);
    un_free(ctx, flow->gone);
    un_free(ctx, flow->fastest);
    *flow = (un_flow){0};
}

/* ---- fits at nodes ---- */

#define UNKNOWNS 12
typedef struct fit {
    double a[UNKNOWNS][UNKNOWNS]; /* lower half */
    double b[UNKNOWNS];
    double weight;
} fit;

static void add_row(fit *s, const double row[UNKNOWNS], double value, double weight)
{
    for (int i = 0; i < UNKNOWNS; i++) {
        double w = weight * row[i];
        for (int j = 0; j <= i; j++) s->a[i][j] += w * row[j];
        s->b[i] += w * value;
    }
}

/* Sums over faces. A row of the fit is n times (1, d), so its square is that of n times that of
 * (1, d): 6 times 10 different sums instead of 78. */
#define PAIRS 6
#define PRODUCTS 12 /* and two that are zero: whole vectors */
typedef struct gathered {
    double sum[PAIRS][PRODUCTS];
    double b[3][4];
    double weight;
} gathered;

/* Out of line, or compilers take the products apart and add them one by one. */
static __attribute__((noinline)) void add_products(gathered *restrict s,
                                                   const double pair[restrict PAIRS],
                                                   const double flow[restrict 3],
                                                   const double product[restrict PRODUCTS])
{
    for (int c = 0; c < PAIRS; c++)
        for (int k = 0; k < PRODUCTS; k++) s->sum[c][k] += pair[c] * product[k];
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < 4; k++) s->b[c][k] += flow[c] * product[k];
}

static void spread_sums(fit *s, const gathered *g)
{
    static const uint8_t pair[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
    static const uint8_t product[4][4] = {{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 5, 7, 8}, {3, 6, 8, 9}};
    for (int i = 0; i < UNKNOWNS; i++) {
        int of = i < 3 ? i : (i - 3) / 3, by = i < 3 ? 0 : (i - 3) % 3 + 1;
        for (int j = 0; j <= i; j++) {
            int other = j < 3 ? j : (j - 3) / 3, with = j < 3 ? 0 : (j - 3) % 3 + 1;
            s->a[i][j] = g->sum[pair[of][other]][product[by][with]];
        }
        s->b[i] = g->b[of][by];
    }
    s->weight = g->weight;
}

/* Cholesky; the ridge makes it positive definite but for U where normals do not span space. */
static void solve_fit(fit *s)
{
    double tiny = 1e-9 * s->weight, inverse[UNKNOWNS];
    for (int i = 0; i < UNKNOWNS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = s->a[i][j];
            for (int k = 0; k < j; k++) sum -= s->a[i][k] * s->a[j][k];
            if (i > j)
                s->a[i][j] = sum * inverse[j];
            else
                inverse[i] = 1 / sqrt(fmax(sum, tiny));
        }
    }
    for (int i = 0; i < UNKNOWNS; i++) {
        for (int k = 0; k < i; k++) s->b[i] -= s->a[i][k] * s->b[k];
        s->b[i] *= inverse[i];
    }
    for (int i = UNKNOWNS - 1; i >= 0; i--) {
        for (int k = i + 1; k < UNKNOWNS; k++) s->b[i] -= s->a[k][i] * s->b[k];
        s->b[i] *= inverse[i];
    }
}

typedef struct args {
    un_flow *flow;
    const un_flow_def *in;
    int32_t layer;
} args;

/* The faces of the tets that were cut from lattice tet T, in units of h from x. */
static int32_t add_faces(gathered *s, const un_stuffing *m, const double *u, int32_t T, un_vec3 x,
                         double h)
{
    int32_t count = 0;
    for (int32_t t = m->source_tet[T]; t < m->source_tet[T + 1]; t++)
        for (int i = 0; i < 4; i++, count++) {
            int32_t f = m->tet_face[t][i];
            double area = un_length(m->area[f]);
            un_vec3 n = un_scale(m->area[f], 1 / area);
            un_vec3 d = un_scale(un_sub(m->center[f], x), 1 / h);
            un_vec3 a = m->area[f];
            const double pair[PAIRS] = {a.x * n.x, a.x * n.y, a.x * n.z,
                                        a.y * n.y, a.y * n.z, a.z * n.z};
            const double product[PRODUCTS] = {
                1, d.x, d.y, d.z, d.x * d.x, d.x * d.y, d.x * d.z, d.y * d.y, d.y * d.z, d.z * d.z};
            const double flow[3] = {a.x * u[f], a.y * u[f], a.z * u[f]};
            add_products(s, pair, flow, product);
            s->weight += area;
        }
    return count;
}

/* The mean velocity of the tets around node n. */
static un_vec3 mean_around(const args *a, int64_t n)
{
    const un_stuffing *m = a->flow->mesh;
    const un_tets *l = &m->lattice;
    un_vec3 sum = {0};
    double volume = 0;
    for (int32_t k = l->first[n]; k < l->first[n + 1]; k++) {
        int32_t T = l->corner[k] / 4;
        for (int32_t t = m->source_tet[T]; t < m->source_tet[T + 1]; t++) {
            sum = un_mad(sum, a->in->u_tet[t], m->volume[t]);
            volume += m->volume[t];
        }
    }
    return un_scale(sum, 1 / volume);
}

/* Keeps a fit near to what it starts with, and finds the fastest liquid around it. */
static void limit(const args *a, double x[UNKNOWNS], const double start[UNKNOWNS], int64_t n,
                  double h)
{
    const un_stuffing *m = a->flow->mesh;
    const un_tets *l = &m->lattice;
    double most = 0, stray = 0, slope = 0, fastest = 0;
    for (int32_t k = l->first[n]; k < l->first[n + 1]; k++) {
        int32_t T = l->corner[k] / 4;
        for (int32_t t = m->source_tet[T]; t < m->source_tet[T + 1]; t++) {
            un_vec3 d = un_scale(un_sub(un_stuffing_center(m, t), l->x[n]), 1 / h);
            const double *j = start + 3;
            un_vec3 v = un_v3(start[0] + j[0] * d.x + j[1] * d.y + j[2] * d.z,
                              start[1] + j[3] * d.x + j[4] * d.y + j[5] * d.z,
                              start[2] + j[6] * d.x + j[7] * d.y + j[8] * d.z);
            un_vec3 off = un_sub(a->in->u_tet[t], v);
            most = fmax(most, un_dot(off, off));
            fastest = fmax(fastest, un_dot(a->in->u_tet[t], a->in->u_tet[t]));
        }
    }
    most = sqrt(most);
    a->flow->fastest[n] = (float)sqrt(fastest);
    for (int i = 0; i < UNKNOWNS; i++)
        *(i < 3 ? &stray : &slope) += (x[i] - start[i]) * (x[i] - start[i]);
    double share = fmin(1, STRAY * most / fmax(sqrt(stray), 1e-300));
    double share_slope = fmin(1, STRAY_SLOPE * most / fmax(sqrt(slope), 1e-300));
    for (int i = 0; i < UNKNOWNS; i++)
        x[i] = start[i] + (i < 3 ? share : share_slope) * (x[i] - start[i]);
}

static un_vec3 along(const float j[9], un_vec3 d)
{
    return un_v3(j[0] * d.x + j[1] * d.y + j[2] * d.z, j[3] * d.x + j[4] * d.y + j[5] * d.z,
                 j[6] * d.x + j[7] * d.y + j[8] * d.z);
}

/* The mean of U + J (x - x_m) over neighbours m with known <= layer; false: there are none. */
static bool predict(const un_flow *flow, int64_t n, int32_t layer, un_vec3 *u, double slope[9])
{
    const un_tets *l = &flow->mesh->lattice;
    double weight = 0;
    *u = un_v3(0, 0, 0);
    memset(slope, 0, 9 * sizeof *slope);
    for (int32_t k = l->first[n]; k < l->first[n + 1]; k++)
        for (int i = 0; i < 4; i++) {
            int32_t m = l->tet[l->corner[k] / 4][i];
            int known = __atomic_load_n(&flow->known[m], __ATOMIC_RELAXED);
            if (known == 0 || known > layer) continue;
            un_vec3 d = un_sub(l->x[n], l->x[m]);
            double w = 1 / un_dot(d, d);
            *u = un_mad(*u, un_add(flow->u[m], along(flow->slope[m], d)), w);
            for (int c = 0; c < 9; c++) slope[c] += w * flow->slope[m][c];
            weight += w;
        }
    if (weight == 0) return false;
    *u = un_scale(*u, 1 / weight);
    for (int c = 0; c < 9; c++) slope[c] /= weight;
    return true;
}

static void mark_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t n = begin; n < end; n++) a->flow->known[a->flow->mesh->node_source[n]] = 1;
}

static void mark_gone(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_stuffing *m = a->flow->mesh;
    for (int64_t b = begin; b < end; b++) {
        if (!a->in->gone[b]) continue;
        const int32_t *n = m->lattice.tet[m->source[m->face_tet[m->boundary[b]][0]]];
        for (int i = 0; i < 4; i++) __atomic_store_n(&a->flow->gone[n[i]], 1, __ATOMIC_RELAXED);
    }
}

/* Is x on or beyond this side, which is closed? */
static bool at_side(const args *a, un_vec3 x, int side)
{
    un_vec3 size = a->in->size;
    double beyond[6] = {-x.x, x.x - size.x, -x.y, x.y - size.y, -x.z, x.z - size.z};
    double near = 1e-6 * a->flow->mesh->tree.h;
    return beyond[side] >= -near && !(a->in->open && a->in->open[side]);
}

/* On closed sides nothing moves through them. row: what the fit is a difference to. */
static void hold_sides(fit *s, const args *a, un_vec3 x, const double row[UNKNOWNS])
{
    for (int side = 0; side < 6; side++) {
        if (!at_side(a, x, side)) continue;
        double normal[UNKNOWNS] = {0};
        normal[side / 2] = 1;
        add_row(s, normal, -row[side / 2], HELD * s->weight);
    }
}

/* layer 1: nodes of the mesh. layer 2: others around cut tets, which have few faces on one side:
 * they start from the first ones, and faces only correct that. */
static void fit_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    un_flow *flow = a->flow;
    const un_stuffing *m = flow->mesh;
    const un_tets *l = &m->lattice;
    bool first = a->layer == 1;
    for (int64_t n = begin; n < end; n++) {
        if ((__atomic_load_n(&flow->known[n], __ATOMIC_RELAXED) == 1) != first) continue;
        fit s;
        gathered sums = {0};
        int32_t count = 0;
        double h = un_octree_size(&m->tree, l->node_level[n]), slope[9] = {0}, row[UNKNOWNS];
        un_vec3 u = {0};
        for (int32_t k = l->first[n]; k < l->first[n + 1]; k++)
            count += add_faces(&sums, m, a->in->u, l->corner[k] / 4, l->x[n], h);
        if (count == 0) continue;
        spread_sums(&s, &sums);
        double ridge = first ? RIDGE : RIDGE_OUTSIDE;
        if (!first && predict(flow, n, 1, &u, slope)) {
            /* the fit is of the difference */
            row[0] = u.x, row[1] = u.y, row[2] = u.z;
            for (int i = 0; i < 9; i++) row[3 + i] = slope[i] * h;
            for (int i = 0; i < UNKNOWNS; i++)
                for (int j = 0; j < UNKNOWNS; j++)
                    s.b[i] -= (j <= i ? s.a[i][j] : s.a[j][i]) * row[j];
            for (int i = 0; i < 3; i++) s.a[i][i] += ridge * s.weight;
        } else {
            u = mean_around(a, n);
            memset(row, 0, sizeof row);
        }
        double start[UNKNOWNS] = {u.x, u.y, u.z};
        memcpy(start + 3, row + 3, 9 * sizeof *row);
        for (int i = 3; i < UNKNOWNS; i++) s.a[i][i] += ridge * s.weight;
        static const double trace[UNKNOWNS] = {[3] = 1, [7] = 1, [11] = 1};
        add_row(&s, trace, -(row[3] + row[7] + row[11]), s.weight);
        if (!flow->gone[n]) hold_sides(&s, a, l->x[n], row);
        solve_fit(&s);
        for (int i = 0; i < UNKNOWNS; i++) s.b[i] += row[i];
        limit(a, s.b, start, n, h);
        flow->u[n] = un_v3(s.b[0], s.b[1], s.b[2]);
        for (int i = 0; i < 9; i++) flow->slope[n][i] = (float)(s.b[3 + i] / h);
        if (!first) __atomic_store_n(&flow->known[n], 2, __ATOMIC_RELAXED);
    }
}

/* ---- beyond the liquid ---- */

/* On closed sides nothing moves through them, where the mesh does not reach either: liquid may come
 * up to a dry one by the end of the step, from the track's reach at most. (Sides that stop it at
 * once keep more of its energy, but then fronts that meet them throw jets at twice the speed of
 * free fall.) */
static void stop_at_sides(const args *a, un_vec3 x, un_vec3 *u)
{
    double *along[3] = {&u->x, &u->y, &u->z};
    for (int side = 0; side < 6; side++) {
        if (!at_side(a, x, side)) continue;
        double out = side % 2 ? 1 : -1, speed = out * *along[side / 2];
        double gap = a->in->track ? un_track_distance(a->in->track, x, NULL) : 0;
        *along[side / 2] = gap > 0 ? out * fmin(speed, gap / a->in->dt) : 0;
    }
}

/* Keeps the speed at node n near to that of the liquid it comes from. */
static void slow_down(const un_flow *flow, int64_t n, int32_t layer, un_vec3 *u, double slope[9])
{
    const un_tets *l = &flow->mesh->lattice;
    float fastest = 0;
    for (int32_t k = l->first[n]; k < l->first[n + 1]; k++)
        for (int i = 0; i < 4; i++) {
            int32_t m = l->tet[l->corner[k] / 4][i];
            int known = __atomic_load_n(&flow->known[m], __ATOMIC_RELAXED);
            if (known > 0 && known <= layer) fastest = fmaxf(fastest, flow->fastest[m]);
        }
    flow->fastest[n] = fastest;
    double speed = un_length(*u), share = FASTER * fastest / fmax(speed, 1e-300);
    if (share >= 1) return;
    *u = un_scale(*u, share);
    for (int c = 0; c < 9; c++) slope[c] *= share;
}

/* Nodes of this layer get known = layer + 1; others are only read. */
static void extend_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    un_flow *flow = a->flow;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 u;
        double slope[9];
        if (__atomic_load_n(&flow->known[n], __ATOMIC_RELAXED) > 0) continue;
        if (!predict(flow, n, a->layer, &u, slope)) continue;
        slow_down(flow, n, a->layer, &u, slope);
        if (!flow->gone[n]) stop_at_sides(a, flow->mesh->lattice.x[n], &u);
        flow->u[n] = u;
        for (int c = 0; c < 9; c++) flow->slope[n][c] = (float)(FADE * slope[c]);
        __atomic_store_n(&flow->known[n], (uint8_t)(a->layer + 1), __ATOMIC_RELAXED);
    }
}

static void rest_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->flow->known[n] == 0) a->flow->u[n] = un_v3(0, 0, 0);
}

/* ---- residuals ---- */

static un_vec3 in_tet(const un_flow *flow, int32_t T, un_vec3 x)
{
    const un_tets *l = &flow->mesh->lattice;
    const un_tet_shape *s = un_tets_shape(l, T);
    un_vec3 d = un_sub(x, l->x[l->tet[T][3]]), sum = flow->u[l->tet[T][3]];
    double scale = 1 / un_tets_size(l, T);
    for (int i = 0; i < 3; i++) {
        const double *g = s->gradient[i];
        double w = (g[0] * d.x + g[1] * d.y + g[2] * d.z) * scale;
        sum = un_mad(sum, un_sub(flow->u[l->tet[T][i]], flow->u[l->tet[T][3]]), w);
    }
    return sum;
}

static void fit_rest(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_stuffing *m = a->flow->mesh;
    for (int64_t T = begin; T < end; T++) {
        double c[6] = {0}, trace;
        un_vec3 b = {0};
        for (int32_t t = m->source_tet[T]; t < m->source_tet[T + 1]; t++)
            for (int i = 0; i < 4; i++) {
                int32_t f = m->tet_face[t][i];
                double area = un_length(m->area[f]);
                un_vec3 n = un_scale(m->area[f], 1 / area);
                double r = a->in->u[f] - un_dot(n, in_tet(a->flow, (int32_t)T, m->center[f]));
                c[0] += area * n.x * n.x, c[1] += area * n.y * n.y, c[2] += area * n.z * n.z;
                c[3] += area * n.x * n.y, c[4] += area * n.x * n.z, c[5] += area * n.y * n.z;
                b = un_mad(b, n, area * r);
            }
        a->flow->rest[T] = un_v3(0, 0, 0);
        trace = c[0] + c[1] + c[2];
        if (!(trace > 0)) continue;
        for (int i = 0; i < 3; i++) c[i] += 0.01 * trace;
        double xx = c[1] * c[2] - c[5] * c[5], xy = c[4] * c[5] - c[3] * c[2];
        double xz = c[3] * c[5] - c[4] * c[1], yy = c[0] * c[2] - c[4] * c[4];
        double yz = c[3] * c[4] - c[0] * c[5], zz = c[0] * c[1] - c[3] * c[3];
        double det = c[0] * xx + c[3] * xy + c[4] * xz;
        a->flow->rest[T] =
            un_scale(un_v3(xx * b.x + xy * b.y + xz * b.z, xy * b.x + yy * b.y + yz * b.z,
                           xz * b.x + yz * b.y + zz * b.z),
                     1 / det);
    }
}

/* The mean of the residuals around a node of the mesh, in part, is added to its velocity. */
static void correct_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    un_flow *flow = a->flow;
    const un_stuffing *m = flow->mesh;
    const un_tets *l = &m->lattice;
    for (int64_t n = begin; n < end; n++) {
        if (flow->known[n] != 1) continue;
        un_vec3 u = {0};
        double volume = 0, *along[3] = {&u.x, &u.y, &u.z};
        for (int32_t k = l->first[n]; k < l->first[n + 1]; k++) {
            int32_t T = l->corner[k] / 4;
            for (int32_t t = m->source_tet[T]; t < m->source_tet[T + 1]; t++) {
                u = un_mad(u, flow->rest[T], m->volume[t]);
                volume += m->volume[t];
            }
        }
        for (int side = 0; side < 6 && !flow->gone[n]; side++)
            if (at_side(a, l->x[n], side)) *along[side / 2] = 0;
        flow->u[n] = un_mad(flow->u[n], u, CORRECTED / volume);
    }
}

un_status un_flow_fit(un_context *ctx, un_flow *flow, const un_flow_def *in)
{
    const un_stuffing *mesh = in->mesh;
    args a = {.flow = flow, .in = in};
    int32_t nodes = mesh->lattice.node_count, tets = mesh->lattice.tet_count;
    flow->mesh = mesh;
#define NEED(array, which, count)                                                                  \
    UN_TRY(un_array_need(ctx, (void **)&flow->array, &flow->capacity[which], (size_t)(count) + 1,  \
                         sizeof *flow->array))
    NEED(u, 0, nodes);
    NEED(slope, 1, nodes);
    NEED(known, 2, nodes);
    NEED(rest, 3, tets);
    NEED(gone, 4, nodes);
    NEED(fastest, 5, nodes);
#undef NEED
    memset(flow->known, 0, (size_t)nodes);
    memset(flow->gone, 0, (size_t)nodes);
    if (in->gone) un_parallel_for(ctx, mesh->boundary_count, 4096, mark_gone, &a);
    un_parallel_for(ctx, mesh->lattice_node_count, 8192, mark_nodes, &a);
    for (a.layer = 1; a.layer <= 2; a.layer++)
        un_parallel_for(ctx, nodes, NODE_GRAIN, fit_nodes, &a);
    un_parallel_for(ctx, tets, 1024, fit_rest, &a);
    un_parallel_for(ctx, nodes, NODE_GRAIN, correct_nodes, &a);
    for (a.layer = 2; a.layer <= in->layers; a.layer++)
        un_parallel_for(ctx, nodes, NODE_GRAIN, extend_nodes, &a);
    un_parallel_for(ctx, nodes, 8192, rest_nodes, &a);
    un_parallel_for(ctx, tets, 1024, fit_rest, &a);
    return UN_OK;
}

/* ---- paths ---- */

static un_vec3 sample(const un_flow *flow, const un_tets_place *p)
{
    const int32_t *n = flow->mesh->lattice.tet[p->tet];
    const un_vec3 *u = flow->u;
    return un_v3(
        p->w[0] * u[n[0]].x + p->w[1] * u[n[1]].x + p->w[2] * u[n[2]].x + p->w[3] * u[n[3]].x,
        p->w[0] * u[n[0]].y + p->w[1] * u[n[1]].y + p->w[2] * u[n[2]].y + p->w[3] * u[n[3]].y,
        p->w[0] * u[n[0]].z + p->w[1] * u[n[1]].z + p->w[2] * u[n[2]].z + p->w[3] * u[n[3]].z);
}

un_vec3 un_flow_at(const un_flow *flow, un_vec3 x)
{
    un_tets_place place;
    un_tets_locate(&flow->mesh->lattice, x, &place);
    return sample(flow, &place);
}

bool un_flow_gone(const un_flow *flow, un_vec3 x)
{
    un_tets_place place;
    un_tets_locate(&flow->mesh->lattice, x, &place);
    const int32_t *n = flow->mesh->lattice.tet[place.tet];
    return flow->gone[n[0]] || flow->gone[n[1]] || flow->gone[n[2]] || flow->gone[n[3]];
}

/* Ralston's third-order Runge-Kutta. */
un_vec3 un_flow_trace(const un_flow *flow, un_vec3 x, double dt)
{
    un_vec3 a = un_flow_at(flow, x);
    un_vec3 b = un_flow_at(flow, un_mad(x, a, 0.5 * dt));
    un_vec3 c = un_flow_at(flow, un_mad(x, b, 0.75 * dt));
    return un_mad(un_mad(un_mad(x, a, dt * 2 / 9), b, dt * 3 / 9), c, dt * 4 / 9);
}

typedef struct carry {
    const un_flow *flow;
    double *u;
    const un_stuffing *mesh;
    double dt;
} carry;

static void carry_faces(void *arg, int64_t begin, int64_t end)
{
    carry *c = arg;
    for (int64_t f = begin; f < end; f++) {
        un_tets_place place;
        un_vec3 foot = un_flow_trace(c->flow, c->mesh->center[f], -c->dt);
        un_tets_locate(&c->flow->mesh->lattice, foot, &place);
        un_vec3 u = un_mad(sample(c->flow, &place), c->flow->rest[place.tet], RETURNED);
        c->u[f] = un_dot(u, un_normalize(c->mesh->area[f]));
    }
}

void un_flow_to_faces(un_context *ctx, double *u, const un_flow *flow, const un_stuffing *mesh,
                      double dt)
{
    carry c = {flow, u, mesh, dt};
    un_parallel_for(ctx, mesh->face_count, 512, carry_faces, &c);
}
