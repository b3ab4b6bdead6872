/* Where the surface passes between the nodes of the lattice: signs of nodes, edges that join both
 * sides, and the place of the cut on each. */
#include "mesh/stuffing_internal.h"

/* Evaluations of the field per edge, at most. */
#define ROOT_STEPS 4
/* A cut is found once the level set there is this small, in leaf edges. */
#define ROOT_TOLERANCE 1e-4
/* Nodes this near to a side of the domain lie on it, in leaf edges. */
#define SIDE_TOLERANCE 1e-9
/* Of the differences from which the wall's normal is found, in leaf edges. */
#define NORMAL_STEP 0.05

/* ---- signs ---- */

static uint8_t brick_sides(const un_tets *lattice, int64_t n)
{
    uint64_t key = lattice->node_key[n];
    uint8_t sides = 0;
    for (int a = 0; a < 3; a++) {
        int32_t at = (int32_t)un_morton_gather(key >> a);
        if (at == 0) sides |= (uint8_t)(UN_ON_SIDE << 2 * a);
        if (at == 2 * lattice->tree->n[a]) sides |= (uint8_t)(UN_ON_SIDE << (2 * a + 1));
    }
    return sides;
}

/* The sides of the domain that cut cells and are nearer to node n than `near`. */
static uint8_t cut_sides(const un_stuffing_work *w, int64_t n, double near)
{
    const un_vec3 x = w->lattice->x[n], size = w->mesh->tree.size;
    double d[3] = {size.x - x.x, size.y - x.y, size.z - x.z};
    uint8_t sides = 0;
    for (int a = 0; a < 3; a++)
        if (w->cuts_cells[a] && fabs(d[a]) <= near) sides |= (uint8_t)(UN_ON_SIDE << (2 * a + 1));
    return sides;
}

uint8_t un_stuffing_sides_of(const un_stuffing_work *w, int64_t n)
{
    return brick_sides(w->lattice, n) | cut_sides(w, n, SIDE_TOLERANCE * w->mesh->tree.h);
}

/* Puts the node on the sides of the domain. */
static un_vec3 on_sides(const un_stuffing_work *w, un_vec3 x, uint8_t sides)
{
    const un_vec3 size = w->mesh->tree.size;
    if (sides & UN_ON_SIDE << 1) x.x = size.x;
    if (sides & UN_ON_SIDE << 3) x.y = size.y;
    if (sides & UN_ON_SIDE << 5) x.z = size.z;
    return x;
}

static double solid_at(const un_stuffing_work *w, un_vec3 x)
{
    double liquid, solid;
    w->def->field(w->def->arg, 1, &x, &liquid, &solid);
    return solid;
}

/* Moves x to the wall of the solid: two steps of Newton's method. False: the wall is farther than
 * `limit`. */
static bool snap_to_wall(const un_stuffing_work *w, un_vec3 *x, double solid, double h,
                         double limit)
{
    un_vec3 at = *x;
    double e = NORMAL_STEP * h;
    for (int step = 0; step < 2; step++) {
        un_vec3 g = un_v3(
            solid_at(w, un_v3(at.x + e, at.y, at.z)) - solid_at(w, un_v3(at.x - e, at.y, at.z)),
            solid_at(w, un_v3(at.x, at.y + e, at.z)) - solid_at(w, un_v3(at.x, at.y - e, at.z)),
            solid_at(w, un_v3(at.x, at.y, at.z + e)) - solid_at(w, un_v3(at.x, at.y, at.z - e)));
        double square = un_dot(g, g) / (4 * e * e);
        if (!(square > 0.01)) return false;
        at = un_mad(at, g, -solid / (2 * e * square));
        if (!(un_length(un_sub(at, *x)) <= limit)) return false;
        solid = solid_at(w, at);
    }
    *x = at;
    return true;
}

static void sign_node(un_stuffing_work *w, int64_t n)
{
    const un_tets *lattice = w->lattice;
    double h = un_octree_size(lattice->tree, lattice->node_level[n]), snap = w->def->snap * h;
    double liquid = w->liquid[n], solid = w->solid ? w->solid[n] : INFINITY;
    un_vec3 x = lattice->x[n];
    double sides = un_stuffing_sides(w, x);
    uint8_t exact = un_stuffing_sides_of(w, n);
    w->x[n] = x;
    w->moved[n] = w->on[n] = 0;
    w->sign[n] = 1;
    if (!(liquid <= 0) || !(solid > -snap) || !(sides > -snap)) return;
    if (liquid == 0) {
        if (!(solid >= 0 && sides >= 0)) return;
        w->sign[n] = 0;
        w->on[n] = UN_ON_SURFACE | exact;
        return;
    }
    if (exact) {
        w->sign[n] = 0;
        w->on[n] = exact;
        if (fabs(solid) <= SIDE_TOLERANCE * h) w->on[n] |= UN_ON_WALL;
        return;
    }
    if (fabs(sides) < snap) {
        w->sign[n] = 0;
        w->on[n] = cut_sides(w, n, snap);
        w->x[n] = on_sides(w, x, w->on[n]);
        w->moved[n] = 1;
        return;
    }
    if (fabs(solid) < snap && snap_to_wall(w, &w->x[n], solid, h, 1.5 * snap)) {
        w->sign[n] = 0;
        w->on[n] = UN_ON_WALL;
        w->moved[n] = 1;
        return;
    }
    if (solid == 0 || sides == 0) {
        w->sign[n] = 0;
        w->on[n] = UN_ON_WALL;
        return;
    }
    if (solid > 0 && sides > 0) w->sign[n] = -1;
}

static void sign_nodes(void *arg, int64_t begin, int64_t end)
{
    for (int64_t n = begin; n < end; n++) sign_node(arg, n);
}

static void mark_tets(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = w->lattice->tet[t];
        int8_t a = w->sign[n[0]], b = w->sign[n[1]], c = w->sign[n[2]], d = w->sign[n[3]];
        w->mixed[t] = (a < 0 || b < 0 || c < 0 || d < 0) && (a > 0 || b > 0 || c > 0 || d > 0);
    }
}

/* ---- edges ---- */

/* Nodes that meet at a node of a balanced lattice, at most: 14 in leaves of one size. */
#define AROUND_MAX 64

/* The nodes of higher number on the other side, ascending. */
static int32_t nodes_across(const un_stuffing_work *w, int64_t n, int32_t out[AROUND_MAX])
{
    const un_tets *lattice = w->lattice;
    int32_t count = 0;
    for (int32_t k = lattice->first[n]; k < lattice->first[n + 1]; k++) {
        int32_t t = lattice->corner[k] / 4;
        if (!w->mixed[t]) continue;
        for (int i = 0; i < 4; i++) {
            int32_t m = lattice->tet[t][i], at = count;
            if (m <= n || w->sign[m] * w->sign[n] >= 0) continue;
            while (at > 0 && out[at - 1] > m) at--;
            if (at > 0 && out[at - 1] == m) continue;
            UN_ASSERT(count < AROUND_MAX);
            memmove(out + at + 1, out + at, (size_t)(count - at) * sizeof *out);
            out[at] = m;
            count++;
        }
    }
    return count;
}

static void count_edges(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    int32_t across[AROUND_MAX];
    for (int64_t n = begin; n < end; n++) {
        const un_tets *lattice = w->lattice;
        bool near = false;
        for (int32_t k = lattice->first[n]; k < lattice->first[n + 1] && !near; k++)
            near = w->mixed[lattice->corner[k] / 4];
        w->near[n] = near && w->sign[n] != 0;
        w->first_edge[n] = w->near[n] ? nodes_across(w, n, across) : 0;
    }
}

static void list_edges(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t n = begin; n < end; n++) {
        int32_t e = w->first_edge[n], across[AROUND_MAX];
        if (w->first_edge[n + 1] == e) continue;
        int32_t count = nodes_across(w, n, across);
        for (int32_t i = 0; i < count; i++, e++) {
            w->edge_low[e] = (int32_t)n;
            w->edge_high[e] = across[i];
        }
    }
}

/* ---- cuts ---- */

/* A root of the level set between its inner end, t = 0, and its outer end, t = 1: the Illinois
 * variant of false position, which needs no derivatives and stays between the ends. */
typedef struct root {
    un_vec3 from, to;
    double lo, hi, f_lo, f_hi; /* bracket: f_lo < 0 <= f_hi */
    double t;
    int kept; /* -1, 1: the end that the last step kept */
    uint8_t on;
} root;

/* Where max(liquid, -solid) passes zero if both are linear, and which of them does. */
static double first_zero(double liquid[2], double solid[2], uint8_t *on)
{
    double t_liquid = liquid[1] > 0 ? liquid[0] / (liquid[0] - liquid[1]) : INFINITY;
    double t_solid = solid[1] < 0 ? solid[0] / (solid[0] - solid[1]) : INFINITY;
    *on = t_solid < t_liquid ? UN_ON_WALL : UN_ON_SURFACE;
    double t = fmin(t_liquid, t_solid);
    return isfinite(t) ? t : liquid[1] == 0 || solid[1] == 0 ? 1 : 0.5;
}

/* Where the edge leaves the domain across a side that cuts cells. */
static void stop_at_sides(const un_stuffing_work *w, root *r)
{
    const un_vec3 size = w->mesh->tree.size;
    double end[3] = {size.x, size.y, size.z}, from[3] = {r->from.x, r->from.y, r->from.z},
           to[3] = {r->to.x, r->to.y, r->to.z};
    for (int a = 0; a < 3; a++) {
        if (!w->cuts_cells[a] || !(to[a] > end[a])) continue;
        double t = (end[a] - from[a]) / (to[a] - from[a]);
        if (t < r->t) {
            r->t = t;
            r->on = (uint8_t)(UN_ON_SIDE << (2 * a + 1));
        }
    }
}

static void begin_root(const un_stuffing_work *w, int64_t e, root *r)
{
    int32_t a = w->edge_low[e], b = w->edge_high[e];
    if (w->sign[a] > 0) {
        int32_t swap = a;
        a = b, b = swap;
    }
    double liquid[2] = {w->liquid[a], w->liquid[b]};
    double solid[2] = {w->solid ? w->solid[a] : INFINITY, w->solid ? w->solid[b] : INFINITY};
    *r = (root){.from = w->lattice->x[a], .to = w->lattice->x[b], .lo = 0, .hi = 1};
    r->f_lo = fmax(liquid[0], -solid[0]);
    r->f_hi = fmax(liquid[1], -solid[1]);
    r->t = w->solid ? first_zero(liquid, solid, &r->on) : liquid[0] / (liquid[0] - liquid[1]);
    if (!w->solid) r->on = UN_ON_SURFACE;
    if (!(r->t >= 0 && r->t <= 1)) r->t = 0.5; /* values that are no numbers */
}

/* Narrows the bracket by the level set at t and finds the next t. */
static void step_root(root *r, double liquid, double solid)
{
    double f = fmax(liquid, -solid);
    r->on = liquid >= -solid ? UN_ON_SURFACE : UN_ON_WALL;
    if (f < 0) {
        r->lo = r->t, r->f_lo = f;
        if (r->kept == 1) r->f_hi *= 0.5;
        r->kept = 1;
    } else {
        r->hi = r->t, r->f_hi = f;
        if (r->kept == -1) r->f_lo *= 0.5;
        r->kept = -1;
    }
    double t = r->lo + (r->hi - r->lo) * r->f_lo / (r->f_lo - r->f_hi);
    r->t = t >= r->lo && t <= r->hi ? t : 0.5 * (r->lo + r->hi);
}

static void refine_roots(const un_stuffing_work *w, root *r, int64_t count)
{
    un_vec3 x[UN_STUFFING_BATCH];
    double liquid[UN_STUFFING_BATCH], solid[UN_STUFFING_BATCH];
    int16_t open[UN_STUFFING_BATCH];
    int64_t open_count = count;
    for (int64_t i = 0; i < count; i++) open[i] = (int16_t)i;
    for (int step = 0; step < ROOT_STEPS && open_count > 0; step++) {
        for (int64_t i = 0; i < open_count; i++) {
            const root *it = &r[open[i]];
            x[i] = un_mad(it->from, un_sub(it->to, it->from), it->t);
        }
        w->def->field(w->def->arg, open_count, x, liquid, w->solid ? solid : NULL);
        int64_t left = 0;
        for (int64_t i = 0; i < open_count; i++) {
            root *it = &r[open[i]];
            double s = w->solid ? solid[i] : INFINITY, f = fmax(liquid[i], -s);
            double near = ROOT_TOLERANCE * un_length(un_sub(it->to, it->from));
            if (fabs(f) <= near)
                it->on = liquid[i] >= -s ? UN_ON_SURFACE : UN_ON_WALL;
            else {
                step_root(it, liquid[i], s);
                open[left++] = open[i];
            }
        }
        open_count = left;
    }
}

static void cut_edges(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    root r[UN_STUFFING_BATCH];
    for (int64_t base = begin; base < end; base += UN_STUFFING_BATCH) {
        int64_t count = un_min64(end - base, UN_STUFFING_BATCH);
        for (int64_t i = 0; i < count; i++) begin_root(w, base + i, &r[i]);
        if (!w->def->linear) refine_roots(w, r, count);
        for (int64_t i = 0; i < count; i++) {
            int64_t e = base + i;
            stop_at_sides(w, &r[i]);
            w->edge_t[e] = w->sign[w->edge_low[e]] < 0 ? r[i].t : 1 - r[i].t;
            w->edge_on[e] = r[i].on;
        }
    }
}

static un_status alloc_nodes(un_stuffing_work *w)
{
    size_t nodes = (size_t)w->lattice->node_count;
    w->liquid = un_arena_alloc(w->arena, nodes, sizeof *w->liquid);
    w->solid = w->def->solids ? un_arena_alloc(w->arena, nodes, sizeof *w->solid) : NULL;
    w->sign = un_arena_alloc(w->arena, nodes, sizeof *w->sign);
    w->on = un_arena_alloc(w->arena, nodes, sizeof *w->on);
    w->moved = un_arena_alloc(w->arena, nodes, sizeof *w->moved);
    w->near = un_arena_alloc(w->arena, nodes, sizeof *w->near);
    w->x = un_arena_alloc(w->arena, nodes, sizeof *w->x);
    w->first_edge = un_arena_alloc(w->arena, nodes + 1, sizeof *w->first_edge);
    w->mixed = un_arena_alloc(w->arena, (size_t)w->lattice->tet_count, sizeof *w->mixed);
    bool ok = w->liquid && (w->solid || !w->def->solids) && w->sign && w->on && w->moved &&
              w->near && w->x && w->first_edge && w->mixed;
    return ok ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_stuffing_cut(un_stuffing_work *w)
{
    un_context *ctx = w->mesh->ctx;
    int64_t nodes = w->lattice->node_count;
    UN_TRY(alloc_nodes(w));
    UN_TRY(un_stuffing_sample(w));
    un_parallel_for(ctx, nodes, 4096, sign_nodes, w);
    un_stuffing_slide(w);
    un_parallel_for(ctx, w->lattice->tet_count, 16384, mark_tets, w);
    un_parallel_for(ctx, nodes, 2048, count_edges, w);
    w->first_edge[nodes] = 0;
    int64_t edges = un_parallel_scan(ctx, w->first_edge, nodes + 1);
    w->edge_count = (int32_t)edges; /* fewer than 14 by node, of which there are few near 2^31 */
    size_t room = (size_t)edges + 1;
    w->edge_low = un_arena_alloc(w->arena, room, sizeof *w->edge_low);
    w->edge_high = un_arena_alloc(w->arena, room, sizeof *w->edge_high);
    w->edge_t = un_arena_alloc(w->arena, room, sizeof *w->edge_t);
    w->edge_on = un_arena_alloc(w->arena, room, sizeof *w->edge_on);
    w->edge_node = un_arena_alloc(w->arena, room, sizeof *w->edge_node);
    if (!w->edge_low || !w->edge_high || !w->edge_t || !w->edge_on || !w->edge_node)
        return UN_ERROR_MEMORY;
    un_parallel_for(ctx, nodes, 2048, list_edges, w);
    un_parallel_for(ctx, edges, UN_STUFFING_BATCH, cut_edges, w);
    return UN_OK;
}
