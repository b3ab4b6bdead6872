/* The tets: those of the lattice that lie inside, and the inner parts of those that are cut.
 *
 * Signs of the nodes decide [Labelle & Shewchuk 2007, figure 3; - is inside]:
 *   none -        dropped; four zeros: kept if the level set is negative in the middle and
 *                 the tet is not flat
 *   none +        kept
 *   one -         one tet: each + gives way to the cut on its edge to the -
 *   -- 0 +        two tets: a pyramid with its tip at the 0
 *   --- +         three: the - and the cut on the long edge of the +, then a pyramid from that cut
 *   -- ++         three: a prism
 * Faces of the lattice with two - are cut into a triangle and a quad. Tets on both sides must split
 * the quad along the same diagonal, so the face alone decides: the diagonal starts at the cut of
 * the face's long edge, or, if that edge is uncut, at the end that the parity rule picks. In a
 * prism of a whole tet the two diagonals then never start at the same end. Between leaves of
 * different sizes the longer of two cut edges counts as the long one, and the order of nodes
 * decides where none is. */
#include "mesh/stuffing_internal.h"

/* Nodes 0 and 1 of a whole tet are corners of leaves, 2 and 3 centres: these pairs are its long
 * edges. */
static inline bool is_long(int i, int j)
{
    return (i ^ j) == 1;
}

typedef struct tet_signs {
    int8_t in[4], zero[4], out[4]; /* the corners inside, on the surface, outside */
    int8_t in_count, zero_count, out_count;
} tet_signs;

static inline void signs_of(const un_stuffing_work *w, int64_t t, tet_signs *s)
{
    s->in_count = s->zero_count = s->out_count = 0;
    for (int8_t i = 0; i < 4; i++) {
        int8_t sign = w->sign[w->lattice->tet[t][i]];
        if (sign < 0)
            s->in[s->in_count++] = i;
        else if (sign > 0)
            s->out[s->out_count++] = i;
        else
            s->zero[s->zero_count++] = i;
    }
}

/* A tet with all nodes on the surface: is it worth keeping? */
static bool fills_surface(const un_stuffing_work *w, int64_t t)
{
    un_vec3 p[4];
    double least, greatest;
    for (int i = 0; i < 4; i++) p[i] = w->x[w->lattice->tet[t][i]];
    un_vec3 middle = un_scale(un_add(un_add(p[0], p[1]), un_add(p[2], p[3])), 0.25);
    if (!(un_stuffing_level_set(w, middle) < 0)) return false;
    un_stuffing_angles(p, &least, &greatest);
    return least > UN_STUFFING_ANGLE_MIN && greatest < UN_STUFFING_ANGLE_MAX;
}

static int32_t count_of(const un_stuffing_work *w, int64_t t)
{
    tet_signs s;
    signs_of(w, t, &s);
    if (s.zero_count == 4) return fills_surface(w, t);
    if (s.in_count == 0) return 0;
    if (s.out_count == 0 || s.in_count == 1) return 1;
    return s.in_count + s.out_count - 1;
}

static void count_tets(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t t = begin; t < end; t++) w->mesh->source_tet[t] = count_of(w, t);
}

/* ---- nodes ---- */

static void mark_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    const un_tets *lattice = w->lattice;
    const int32_t *first = w->mesh->source_tet;
    for (int64_t n = begin; n < end; n++) {
        int32_t used = 0;
        if (w->sign[n] < 0)
            used = 1;
        else if (w->sign[n] == 0)
            for (int32_t k = lattice->first[n]; k < lattice->first[n + 1] && !used; k++) {
                int32_t t = lattice->corner[k] / 4;
                used = first[t + 1] > first[t];
            }
        w->new_id[n] = used;
    }
}

static void mark_cuts(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t e = begin; e < end; e++)
        w->edge_node[e] = w->sign[w->edge_low[e]] * w->sign[w->edge_high[e]] < 0;
}

static void write_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    un_stuffing *mesh = w->mesh;
    for (int64_t n = begin; n < end; n++) {
        int32_t id = w->new_id[n];
        if (w->new_id[n + 1] == id) continue;
        mesh->x[id] = w->x[n];
        mesh->on[id] = w->sign[n] == 0 ? w->on[n] : 0;
        mesh->node_source[id] = (int32_t)n;
    }
}

static void write_cuts(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    un_stuffing *mesh = w->mesh;
    for (int64_t e = begin; e < end; e++) {
        int32_t id = mesh->lattice_node_count + w->edge_node[e];
        if (w->edge_node[e + 1] == w->edge_node[e]) continue;
        int32_t a = w->edge_low[e], b = w->edge_high[e];
        mesh->x[id] = un_mad(w->x[a], un_sub(w->x[b], w->x[a]), w->edge_t[e]);
        mesh->on[id] = w->edge_on[e];
        mesh->node_source[id] = w->sign[a] < 0 ? a : b;
    }
}

/* ---- stencils ---- */

typedef struct stencil {
    const un_stuffing_work *w;
    const int32_t *node; /* of the lattice's tet */
    int32_t t;           /* the next tet to write */
    int32_t source, leaf;
    bool whole;
} stencil;

static inline int32_t id_of(const stencil *s, int i)
{
    return s->w->new_id[s->node[i]];
}
static inline int32_t cut_of(const stencil *s, int i, int j)
{
    const un_stuffing_work *w = s->w;
    int32_t e = un_stuffing_edge(w, s->node[i], s->node[j]);
    return w->mesh->lattice_node_count + w->edge_node[e];
}

/* A tet whose nodes are in the order of the lattice's tet. */
static void write_tet(stencil *s, const int32_t n[4])
{
    un_stuffing *mesh = s->w->mesh;
    const un_vec3 *x = mesh->x, o = x[n[0]];
    un_vec3 a = un_sub(x[n[1]], o), b = un_sub(x[n[2]], o), c = un_sub(x[n[3]], o);
    memcpy(mesh->tet[s->t], n, sizeof *mesh->tet);
    mesh->volume[s->t] = un_dot(a, un_cross(b, c)) / 6;
    mesh->source[s->t] = s->source;
    mesh->leaf[s->t] = s->leaf;
    mesh->level[s->t++] = mesh->tree.level[s->leaf];
}

/* A tet whose nodes are in any order. */
static void write_turned(stencil *s, int32_t a, int32_t b, int32_t c, int32_t d)
{
    un_stuffing *mesh = s->w->mesh;
    int32_t *n = mesh->tet[s->t];
    double *volume = &mesh->volume[s->t];
    write_tet(s, (int32_t[4]){a, b, c, d});
    if (*volume >= 0) return;
    n[2] = d, n[3] = c;
    *volume = -*volume;
}

/* Is the number of coordinates in which a exceeds p odd? */
static bool parity(uint64_t a, uint64_t p)
{
    int greater = 0;
    for (int axis = 0; axis < 3; axis++)
        greater += un_morton_gather(a >> axis) > un_morton_gather(p >> axis);
    return greater & 1;
}

/* The square of the distance between two nodes, in units. */
static int64_t square(uint64_t a, uint64_t b)
{
    int64_t sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t d = (int64_t)un_morton_gather(a >> axis) - (int64_t)un_morton_gather(b >> axis);
        sum += d * d;
    }
    return sum;
}

static bool is_along_axis(uint64_t a, uint64_t b)
{
    const uint64_t axis = 0x9249249249249249u; /* every third bit */
    uint64_t d = a ^ b;
    return ((d & axis) != 0) + ((d & axis << 1) != 0) + ((d & axis << 2) != 0) == 1;
}

/* In the face of corners i and j inside and k outside: does the quad's diagonal start at i? */
static bool starts_at_first(const stencil *s, int i, int j, int k)
{
    const uint64_t *key = s->w->lattice->node_key;
    uint64_t a = key[s->node[i]], p = key[s->node[k]];
    if (s->whole) {
        if (is_long(i, k)) return false; /* at the cut of ik, to j */
        if (is_long(j, k)) return true;
        return parity(a, p) == (i < 2);
    }
    uint64_t b = key[s->node[j]];
    int64_t d_i = square(a, p), d_j = square(b, p), edge = square(a, b);
    if (d_i != d_j) return d_j > d_i;
    /* The face may be one of whole tets, whose long edge is ij. */
    if (4 * d_i != 3 * edge || !is_along_axis(a, b)) return a < b;
    int shift = __builtin_ctzll((uint64_t)edge) / 2 - 1,
        odd = 0; /* half its length is a power of two */
    for (int axis = 0; axis < 3; axis++) odd |= (un_morton_gather(a >> axis) >> shift) & 1;
    return parity(a, p) == !odd;
}

/* The pyramid over the quad that remains of face i, j, k (i and j inside). */
static void write_pyramid(stencil *s, int32_t tip, int i, int j, int k)
{
    int32_t a = id_of(s, i), b = id_of(s, j), cut_a = cut_of(s, i, k), cut_b = cut_of(s, j, k);
    if (starts_at_first(s, i, j, k)) {
        write_turned(s, a, b, cut_b, tip);
        write_turned(s, a, cut_b, cut_a, tip);
    } else {
        write_turned(s, b, cut_a, a, tip);
        write_turned(s, b, cut_b, cut_a, tip);
    }
}

/* Corners i and j inside, k and l outside. */
static void write_prism(stencil *s, int i, int j, int k, int l)
{
    if (!starts_at_first(s, i, j, k)) {
        int swap = i;
        i = j, j = swap;
    }
    int32_t a = id_of(s, i), b = id_of(s, j);
    int32_t a2 = cut_of(s, i, l), b1 = cut_of(s, j, k);
    if (starts_at_first(s, i, j, l)) {
        UN_ASSERT(!s->whole);
        int32_t a1 = cut_of(s, i, k), b2 = cut_of(s, j, l);
        const un_vec3 *x = s->w->mesh->x;
        write_turned(s, a, b, b1, b2);
        if (un_length(un_sub(x[a1], x[b2])) < un_length(un_sub(x[a2], x[b1]))) {
            write_turned(s, a, a1, a2, b2);
            write_turned(s, a, a1, b1, b2);
        } else {
            write_turned(s, a, a1, a2, b1);
            write_turned(s, a, a2, b1, b2);
        }
        return;
    }
    write_turned(s, a, cut_of(s, i, k), a2, b1);
    write_turned(s, a, b, b1, a2);
    write_turned(s, b, b1, cut_of(s, j, l), a2);
}

/* Corners i, j, k inside, l outside. */
static void write_truncated(stencil *s, int l)
{
    int tip = l ^ 1, i = l < 2 ? 2 : 0, j = i + 1;
    if (!s->whole) {
        /* No diagonal starts at the tip. */
        int starts[4] = {0};
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < a; b++)
                if (a != l && b != l) starts[starts_at_first(s, a, b, l) ? a : b]++;
        for (tip = 0; tip == l || (tip < 4 && starts[tip] > 0);) tip++;
        if (tip == 4) { /* they turn around: there is no such division */
            s->w->flat[s->source] = 1;
            tip = l ^ 1;
        }
        for (i = 0; i == l || i == tip;) i++;
        j = 6 - i - l - tip;
    }
    int32_t c = cut_of(s, tip, l);
    write_turned(s, id_of(s, tip), id_of(s, i), id_of(s, j), c);
    write_pyramid(s, c, i, j, l);
}

static void write_parts(stencil *s, const tet_signs *signs)
{
    if (signs->out_count == 0 || signs->in_count == 1) {
        int32_t n[4];
        for (int i = 0; i < 4; i++)
            n[i] = s->w->sign[s->node[i]] > 0 ? cut_of(s, signs->in[0], i) : id_of(s, i);
        write_tet(s, n);
    } else if (signs->in_count == 3)
        write_truncated(s, signs->out[0]);
    else if (signs->out_count == 1)
        write_pyramid(s, id_of(s, signs->zero[0]), signs->in[0], signs->in[1], signs->out[0]);
    else
        write_prism(s, signs->in[0], signs->in[1], signs->out[0], signs->out[1]);
}

static void fill_tets(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    const un_tets *lattice = w->lattice;
    const int32_t *first = w->mesh->source_tet;
    int32_t leaf = -1, center = -1;
    for (int64_t t = begin; t < end; t++) {
        if (first[t + 1] == first[t]) continue;
        stencil s = {
            w, lattice->tet[t], first[t], (int32_t)t, 0, un_stuffing_whole(lattice->shape[t])};
        /* Node 3 is the centre of the leaf that owns the tet; keys count in half leaves. */
        if (s.node[3] != center) {
            center = s.node[3];
            leaf = un_octree_find_key(lattice->tree, lattice->node_key[center] >> 3);
        }
        s.leaf = leaf;
        tet_signs signs;
        signs_of(w, t, &signs);
        write_parts(&s, &signs);
        UN_ASSERT(s.t == first[t + 1]);
    }
}

/* By leaf: where its tets begin. */
static void find_leaves(void *arg, int64_t begin, int64_t end)
{
    un_stuffing *mesh = ((un_stuffing_work *)arg)->mesh;
    for (int64_t t = begin; t < end; t++) {
        int32_t from = t == 0 ? -1 : mesh->leaf[t - 1], to = mesh->leaf[t];
        for (int32_t c = from + 1; c <= to; c++) mesh->leaf_tet[c] = (int32_t)t;
    }
}

static un_status reserve(un_stuffing *mesh)
{
    un_context *ctx = mesh->ctx;
    size_t *room = mesh->capacity, nodes = (size_t)mesh->node_count + 1,
           tets = (size_t)mesh->tet_count + 1, leaves = (size_t)mesh->tree.leaf_count + 1;
    UN_TRY(un_array_need(ctx, (void **)&mesh->x, &room[0], nodes, sizeof *mesh->x));
    UN_TRY(un_array_need(ctx, (void **)&mesh->on, &room[1], nodes, sizeof *mesh->on));
    UN_TRY(un_array_need(ctx, (void **)&mesh->node_source, &room[2], nodes,
                         sizeof *mesh->node_source));
    UN_TRY(un_array_need(ctx, (void **)&mesh->tet, &room[3], tets, sizeof *mesh->tet));
    UN_TRY(un_array_need(ctx, (void **)&mesh->volume, &room[4], tets, sizeof *mesh->volume));
    UN_TRY(un_array_need(ctx, (void **)&mesh->level, &room[5], tets, sizeof *mesh->level));
    UN_TRY(un_array_need(ctx, (void **)&mesh->leaf, &room[6], tets, sizeof *mesh->leaf));
    UN_TRY(un_array_need(ctx, (void **)&mesh->source, &room[7], tets, sizeof *mesh->source));
    return un_array_need(ctx, (void **)&mesh->leaf_tet, &room[8], leaves, sizeof *mesh->leaf_tet);
}

static un_status too_many(un_context *ctx, double count, const char *what)
{
    return un_fail(ctx, UN_ERROR_MEMORY,
                   "the mesh would have %.3g %s, more than 32-bit indices can count; make its "
                   "finest size larger",
                   count, what);
}

un_status un_stuffing_fill(un_stuffing_work *w)
{
    un_stuffing *mesh = w->mesh;
    un_context *ctx = mesh->ctx;
    int64_t nodes = w->lattice->node_count, tets = w->lattice->tet_count;
    UN_TRY(un_array_need(ctx, (void **)&mesh->source_tet, &mesh->capacity[9], (size_t)tets + 1,
                         sizeof *mesh->source_tet));
    w->new_id = un_arena_alloc(w->arena, (size_t)nodes + 1, sizeof *w->new_id);
    if (!w->new_id) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, tets, 4096, count_tets, w);
    mesh->source_tet[tets] = 0;
    int64_t tet_count = un_parallel_scan(ctx, mesh->source_tet, tets + 1);
    if (tet_count > INT32_MAX / 4 - 1) return too_many(ctx, (double)tet_count, "tets");
    un_parallel_for(ctx, nodes, 4096, mark_nodes, w);
    un_parallel_for(ctx, w->edge_count, 16384, mark_cuts, w);
    w->new_id[nodes] = w->edge_node[w->edge_count] = 0;
    mesh->lattice_node_count = (int32_t)un_parallel_scan(ctx, w->new_id, nodes + 1);
    int64_t cuts = un_parallel_scan(ctx, w->edge_node, (int64_t)w->edge_count + 1);
    mesh->node_count = (int32_t)(mesh->lattice_node_count + cuts);
    mesh->tet_count = (int32_t)tet_count;
    UN_TRY(reserve(mesh));
    un_parallel_for(ctx, nodes, 8192, write_nodes, w);
    un_parallel_for(ctx, w->edge_count, 8192, write_cuts, w);
    un_parallel_for(ctx, tets, 4096, fill_tets, w);
    un_parallel_for(ctx, tet_count, 16384, find_leaves, w);
    int32_t last = tet_count ? mesh->leaf[tet_count - 1] : -1;
    for (int32_t c = last + 1; c <= mesh->tree.leaf_count; c++)
        mesh->leaf_tet[c] = (int32_t)tet_count;
    return UN_OK;
}
