/* Walks over the cut surface to the point nearest to a given one: while it lies on an edge or a
 * corner of its triangle, the triangles beyond are tried. */
#include "surface/distance.h"

/* Upper bound on the steps of a walk, never reached (coarse nodes far away take some tens). */
#define WALK_MAX 512

/* ---- a triangle ---- */

/* Tries the edge from corner c, with direction `edge`; `along` is its dot product with p - a. */
static void nearest_on_edge(un_nearest *best, un_vec3 p, un_vec3 a, un_vec3 edge, double along,
                            int32_t c)
{
    double length2 = un_dot(edge, edge);
    int32_t feature = along <= 0 ? c : along >= length2 ? (c + 1) % 3 : UN_EDGE + c;
    double t = along <= 0 ? 0 : along >= length2 ? 1 : along / length2;
    un_vec3 x = un_mad(a, edge, t), d = un_sub(p, x);
    double square = un_dot(d, d);
    if (square < best->square) *best = (un_nearest){square, x, feature};
}

/* The nearest point is inside, or on one of the edges that p is beyond. Always a point of the
 * triangle, however thin that is. */
static un_nearest nearest_in_triangle(const un_cut *cut, int32_t t, un_vec3 p)
{
    const int32_t *v = cut->triangle[t];
    const un_vec3 *x = cut->x;
    un_vec3 a = x[v[0]], b = x[v[1]], c = x[v[2]];
    un_vec3 ab = un_sub(b, a), ac = un_sub(c, a), ap = un_sub(p, a);
    double bb = un_dot(ab, ab), bc = un_dot(ab, ac), cc = un_dot(ac, ac);
    double pb = un_dot(ap, ab), pc = un_dot(ap, ac);
    /* barycentric weights of b, c and a, times four times the square of the area */
    double area = bb * cc - bc * bc, wb = cc * pb - bc * pc, wc = bb * pc - bc * pb;
    double wa = area - wb - wc;
    if (wa >= 0 && wb >= 0 && wc >= 0 && area > 0) {
        double scale = 1 / area;
        un_vec3 y = un_mad(un_mad(a, ab, wb * scale), ac, wc * scale), d = un_sub(p, y);
        return (un_nearest){un_dot(d, d), y, UN_INSIDE};
    }
    un_nearest best = {INFINITY, a, UN_CORNER};
    bool thin = !(area > 0);
    if (wc < 0 || thin) nearest_on_edge(&best, p, a, ab, pb, 0);
    if (wa < 0 || thin)
        nearest_on_edge(&best, p, b, un_sub(c, b), un_dot(un_sub(p, b), un_sub(c, b)), 1);
    if (wb < 0 || thin) nearest_on_edge(&best, p, c, un_scale(ac, -1), cc - pc, 2);
    return best;
}

static void try_triangle(const un_walks *s, un_walk *w, int32_t t)
{
    un_nearest found = nearest_in_triangle(s->cut, t, w->p);
    if (found.square < w->best.square) w->best = found, w->triangle = t;
}

/* True if moving from a corner, at x, into the triangle leads nearer. */
static bool leads(const un_walks *s, const int32_t *corner, un_vec3 x, un_vec3 way)
{
    const un_vec3 *y = s->cut->x;
    return un_dot(un_sub(y[corner[0]], x), way) > 0 || un_dot(un_sub(y[corner[1]], x), way) > 0 ||
           un_dot(un_sub(y[corner[2]], x), way) > 0;
}

/* ---- walks ---- */

/* Tries the triangles around corner a, or around the edge from it to b (-1: none), but for the one
 * that the best point lies in. True if one of them is nearer. */
static inline bool try_around(const un_walks *s, un_walk *w, int32_t a, int32_t b)
{
    double before = w->best.square;
    int32_t from = w->triangle;
    un_vec3 at = w->best.x, way = un_sub(w->p, at);
    for (int32_t q = s->first[a]; q < s->first[a + 1]; q++) {
        int32_t t = s->around[q];
        const int32_t *v = s->cut->triangle[t];
        if (t == from || (b >= 0 && v[0] != b && v[1] != b && v[2] != b)) continue;
        if (b < 0 && !leads(s, v, at, way)) continue;
        try_triangle(s, w, t);
    }
    return w->best.square < before;
}

/* From the best point in `triangle`. */
static bool walk(const un_walks *s, un_walk *w)
{
    for (; w->step < WALK_MAX && w->best.feature != UN_INSIDE; w->step++) {
        const int32_t *v = s->cut->triangle[w->triangle];
        int32_t feature = w->best.feature;
        int32_t a = v[feature % 3], b = feature >= UN_EDGE ? v[(feature + 1) % 3] : -1;
        if (s->partial && s->partial[a]) {
            w->at[0] = a, w->at[1] = b;
            return false;
        }
        if (!try_around(s, w, a, b)) return true;
    }
    return true;
}

bool un_walk_from(const un_walks *s, un_walk *w, int32_t triangle)
{
    w->best = nearest_in_triangle(s->cut, triangle, w->p);
    w->triangle = triangle;
    w->step = 0;
    return walk(s, w);
}

bool un_walk_around(const un_walks *s, un_walk *w, int32_t vertex)
{
    w->best = (un_nearest){INFINITY, s->cut->x[vertex], UN_CORNER};
    w->triangle = s->around[s->first[vertex]];
    w->step = 0;
    for (int32_t q = s->first[vertex]; q < s->first[vertex + 1]; q++)
        try_triangle(s, w, s->around[q]);
    return walk(s, w);
}

bool un_walk_on(const un_walks *s, un_walk *w, int32_t a, int32_t b)
{
    if (!try_around(s, w, a, b)) return true;
    w->step++;
    return walk(s, w);
}

/* ---- triangles around vertices ---- */

static bool is_point_or_line(const int32_t *v)
{
    return v[0] == v[1] || v[1] == v[2] || v[2] == v[0];
}

/* Triangles that have lost a corner are left out, unless a vertex has no others. */
un_status un_walks_build(un_walks *s, un_arena *arena, const un_cut *cut)
{
    size_t vertices = (size_t)cut->vertex_count, corners = 3 * (size_t)cut->triangle_count;
    uint8_t *whole = un_arena_alloc(arena, vertices + 1, 1);
    s->cut = cut;
    s->first = un_arena_alloc(arena, vertices + 2, sizeof *s->first);
    s->around = un_arena_alloc(arena, corners + 1, sizeof *s->around);
    if (!s->first || !s->around || !whole) return UN_ERROR_MEMORY;
    memset(whole, 0, vertices + 1);
    memset(s->first, 0, (vertices + 2) * sizeof *s->first);
    for (int32_t t = 0; t < cut->triangle_count; t++)
        if (!is_point_or_line(cut->triangle[t]))
            for (int32_t c = 0; c < 3; c++) whole[cut->triangle[t][c]] = 1;
    for (int32_t fill = 0; fill < 2; fill++) {
        for (int32_t t = 0; t < cut->triangle_count; t++) {
            bool flat = is_point_or_line(cut->triangle[t]);
            for (int32_t c = 0; c < 3; c++) {
                int32_t v = cut->triangle[t][c];
                if (flat && whole[v]) continue;
                if (fill)
                    s->around[s->first[v + 1]++] = t;
                else
                    s->first[v + 2]++;
            }
        }
        if (!fill)
            for (size_t v = 2; v < vertices + 2; v++) s->first[v] += s->first[v - 1];
    }
    return UN_OK;
}
