/* Moves nodes that the surface comes too near to. A cut at the share t of an edge violates the
 * edge's node if t is below a limit, by the edge's length; the node moves to the nearest cut that
 * violates it, and lies on the surface from then on, where its edges have no cuts any more.
 *
 * The order matters: moved nodes take cuts away from their neighbours. Outer nodes come first, then
 * inner ones. An edge with a cut joins an outer and an inner node, so nodes of one turn do not
 * depend on each other: the result is that of moving one after the other, for which the angles are
 * proven. Moving all at once would lower the least angle to 10.6 degrees. */
#include "mesh/stuffing_internal.h"

/* Long edges join corners or centres of leaves, short ones a corner and a centre. In a hundred
 * random fields of 35,000 tets these limits keep dihedral angles within 11.4 to 161.6 degrees;
 * those of [Labelle & Shewchuk 2007], 0.24999 and 0.41189, within 10.1 to 162.6. */
#define ALPHA_LONG 0.26
#define ALPHA_SHORT 0.4

/* The limit for node n on its edge to m: as far as on edges of whole tets in the smallest leaf at
 * n, so that these keep their angles. An edge from a centre to the middle of the brick's side is
 * half a long one; the middle stays where it is. */
static double alpha(const un_tets *lattice, int64_t n, int32_t m)
{
    uint64_t a = lattice->node_key[n], b = lattice->node_key[m];
    int32_t axes = 0, side = 0;
    double square = 0, half = 1 << (lattice->tree->level_max - lattice->node_level[n]);
    for (int k = 0; k < 3; k++) {
        int32_t at = (int32_t)un_morton_gather(a >> k), d = at - (int32_t)un_morton_gather(b >> k);
        axes += d != 0;
        square += (double)d * d;
        side |= at == 0 || at == 2 * lattice->tree->n[k];
    }
    if (axes == 1 && square == half * half) return side ? 0 : 2 * ALPHA_LONG;
    if (axes < 3) return fmin(0.5, ALPHA_LONG * sqrt(4 * half * half / square));
    return ALPHA_SHORT * sqrt(3 * half * half / square);
}

typedef struct warp {
    double distance;
    int32_t edge;
} warp;

static void consider(const un_stuffing_work *w, int64_t n, int32_t m, warp *best)
{
    int32_t e = un_stuffing_edge(w, (int32_t)n, m);
    double t = m > n ? w->edge_t[e] : 1 - w->edge_t[e];
    if (!(t < alpha(w->lattice, n, m))) return;
    double d = t * un_length(un_sub(w->lattice->x[m], w->lattice->x[n]));
    if (d < best->distance || (d == best->distance && e < best->edge)) *best = (warp){d, e};
}

static void warp_node(un_stuffing_work *w, int64_t n)
{
    const un_tets *lattice = w->lattice;
    warp best = {INFINITY, INT32_MAX};
    for (int32_t k = lattice->first[n]; k < lattice->first[n + 1]; k++) {
        int32_t t = lattice->corner[k] / 4;
        if (!w->mixed[t]) continue;
        for (int i = 0; i < 4; i++) {
            int32_t m = lattice->tet[t][i];
            /* nodes on n's side may be moved meanwhile; that makes no difference */
            if (__atomic_load_n(&w->sign[m], __ATOMIC_RELAXED) * w->sign[n] < 0)
                consider(w, n, m, &best);
        }
    }
    if (best.edge == INT32_MAX) return;
    int32_t e = best.edge;
    un_vec3 a = lattice->x[w->edge_low[e]], b = lattice->x[w->edge_high[e]];
    w->x[n] = un_mad(a, un_sub(b, a), w->edge_t[e]);
    w->on[n] = w->edge_on[e];
    w->moved[n] = 1;
    __atomic_store_n(&w->sign[n], 0, __ATOMIC_RELAXED);
}

static void warp_outer(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t n = begin; n < end; n++)
        if (w->near[n] && w->sign[n] > 0) warp_node(w, n);
}

static void warp_inner(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t n = begin; n < end; n++)
        if (w->near[n] && w->sign[n] < 0) warp_node(w, n);
}

static double count_bad(void *arg, int64_t begin, int64_t end)
{
    int64_t count = 0;
    for (int64_t t = begin; t < end; t++) count += un_stuffing_bad(arg, t);
    return (double)count;
}

void un_stuffing_warp(un_stuffing_work *w)
{
    un_context *ctx = w->mesh->ctx;
    un_parallel_for(ctx, w->lattice->node_count, 2048, warp_outer, w);
    un_parallel_for(ctx, w->lattice->node_count, 2048, warp_inner, w);
    if (!w->flat) w->bad = (int64_t)un_parallel_sum(ctx, w->lattice->tet_count, count_bad, w);
}
