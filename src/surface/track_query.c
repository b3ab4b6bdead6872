/* The distance to a carried surface.
 *
 * Triangles are found through the lattice's cubes, which hold them in order. The distance is exact,
 * with the sign of the normals at the nearest point: where several triangles share it, of their
 * sum, weighted by their angles there. Between vertices the mesh is a chord of the surface; their
 * normals n_i tell how far it bulges,
 *     d -= 1/2 sum b_i (x_i - foot).n_i,
 * at most BULGE cells. Without that a turning sphere shrinks. */
#include "surface/surface.h"

#define BULGE 0.15
/* Triangles as near as the nearest one, relative in squared distance. */
#define TIE 1e-9

#define TIES 16 /* at most; a vertex of a contour has no more triangles */
/* Cubes hold their triangles up to this, in cells. */
#define SLACK 1e-9

typedef struct nearest {
    double d2;
    int32_t triangle;
    un_vec3 foot;
    double b[3];
    int32_t tie_count; /* triangles that share the foot, the first included, */
    int32_t tie[TIES];
    double tie_b[TIES][3]; /* and its barycentric coordinates in them */
} nearest;

/* The point of triangle abc nearest to x, by its barycentric coordinates. */
static void nearest_point(un_vec3 x, un_vec3 a, un_vec3 b, un_vec3 c, double w[3])
{
    un_vec3 ab = un_sub(b, a), ac = un_sub(c, a), ax = un_sub(x, a);
    double d1 = un_dot(ab, ax), d2 = un_dot(ac, ax);
    w[0] = w[1] = w[2] = 0;
    if (d1 <= 0 && d2 <= 0) {
        w[0] = 1;
        return;
    }
    un_vec3 bx = un_sub(x, b);
    double d3 = un_dot(ab, bx), d4 = un_dot(ac, bx);
    if (d3 >= 0 && d4 <= d3) {
        w[1] = 1;
        return;
    }
    double vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) {
        w[1] = d1 / (d1 - d3);
        w[0] = 1 - w[1];
        return;
    }
    un_vec3 cx = un_sub(x, c);
    double d5 = un_dot(ab, cx), d6 = un_dot(ac, cx);
    if (d6 >= 0 && d5 <= d6) {
        w[2] = 1;
        return;
    }
    double vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) {
        w[2] = d2 / (d2 - d6);
        w[0] = 1 - w[2];
        return;
    }
    double va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
        w[2] = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        w[1] = 1 - w[2];
        return;
    }
    double sum = 1 / (va + vb + vc);
    w[1] = vb * sum;
    w[2] = vc * sum;
    w[0] = 1 - w[1] - w[2];
}

/* The triangle's normal times its angle at the foot: of a corner its own, else equal for all. */
static un_vec3 weighted_normal(const un_vec3 v[3], const double w[3])
{
    un_vec3 n = un_normalize(un_cross(un_sub(v[1], v[0]), un_sub(v[2], v[0])));
    for (int i = 0; i < 3; i++) {
        if (w[i] < 1) continue;
        un_vec3 p = un_normalize(un_sub(v[(i + 1) % 3], v[i]));
        un_vec3 q = un_normalize(un_sub(v[(i + 2) % 3], v[i]));
        return un_scale(n, acos(un_clamp(un_dot(p, q), -1, 1)));
    }
    return n;
}

static void try_triangle(nearest *best, const un_track *track, un_vec3 x, int32_t t)
{
    const int32_t *c = track->mesh.triangle[t];
    const un_vec3 *p = track->mesh.position;
    un_vec3 v[3] = {p[c[0]], p[c[1]], p[c[2]]};
    double w[3];
    nearest_point(x, v[0], v[1], v[2], w);
    un_vec3 foot = un_v3(w[0] * v[0].x + w[1] * v[1].x + w[2] * v[2].x,
                         w[0] * v[0].y + w[1] * v[1].y + w[2] * v[2].y,
                         w[0] * v[0].z + w[1] * v[1].z + w[2] * v[2].z);
    un_vec3 d = un_sub(x, foot);
    double d2 = un_dot(d, d);
    if (d2 > best->d2 * (1 + TIE)) return;
    if (best->triangle < 0 || d2 < best->d2 * (1 - TIE)) {
        best->d2 = d2;
        best->triangle = t;
        best->foot = foot;
        memcpy(best->b, w, sizeof w);
        best->tie_count = 0;
    }
    if (best->tie_count == TIES) return;
    best->tie[best->tie_count] = t;
    memcpy(best->tie_b[best->tie_count++], w, sizeof w);
}

/* A sum over the triangles at the foot; only its sign along x - foot counts. */
static un_vec3 normal_at(const un_track *track, const nearest *at)
{
    un_vec3 sum = {0};
    for (int32_t i = 0; i < at->tie_count; i++) {
        const int32_t *c = track->mesh.triangle[at->tie[i]];
        const un_vec3 *p = track->mesh.position;
        sum = un_add(sum, weighted_normal((un_vec3[3]){p[c[0]], p[c[1]], p[c[2]]}, at->tie_b[i]));
    }
    return sum;
}

/* Cubes along one axis within r of x. */
static void cube_range(const un_lattice *l, int axis, double x, double r, int32_t *lo, int32_t *hi)
{
    double origin = axis == 0 ? l->origin.x : axis == 1 ? l->origin.y : l->origin.z;
    *lo = (int32_t)un_clamp(floor((x - r - origin) / l->h[axis]), 0, l->n[axis] - 2);
    *hi = (int32_t)un_clamp(floor((x + r - origin) / l->h[axis]), 0, l->n[axis] - 2);
}

/* How far x lies outside cube i along an axis. */
static double gap(const un_lattice *l, int axis, double x, int32_t i)
{
    double origin = axis == 0 ? l->origin.x : axis == 1 ? l->origin.y : l->origin.z;
    double s = x - origin - l->h[axis] * i, slack = SLACK * l->h[axis];
    double out = (s < 0 ? -s : s - l->h[axis]) - slack;
    return out > 0 ? out : 0;
}

/* The triangles of a row in the cubes lo to hi. away: the row's squared distance. */
static void try_row(nearest *best, const un_track *track, un_vec3 x, int64_t row, double away,
                    int32_t lo, int32_t hi)
{
    int32_t first = track->stretch[un_track_stretch(track, row, lo)];
    int32_t last = track->stretch[un_track_stretch(track, row, hi) + 1];
    int32_t column = -1;
    double d2 = 0;
    for (int32_t t = first; t < last && track->column[t] <= hi; t++) {
        if (track->column[t] < lo) continue;
        if (track->column[t] != column) {
            column = track->column[t];
            double dx = gap(&track->lattice, 0, x.x, column);
            d2 = dx * dx + away;
        }
        if (d2 <= best->d2) try_triangle(best, track, x, t);
    }
}

/* From the cubes around x outwards: the nearest triangle is found early, and few others are left
 * to try. */
static void search(nearest *best, const un_track *track, un_vec3 x)
{
    const un_lattice *l = &track->lattice;
    double r = sqrt(best->d2);
    int32_t lo[3], hi[3], mid[3];
    cube_range(l, 0, x.x, r, &lo[0], &hi[0]);
    cube_range(l, 1, x.y, r, &lo[1], &hi[1]);
    cube_range(l, 2, x.z, r, &lo[2], &hi[2]);
    for (int a = 1; a < 3; a++) mid[a] = lo[a] + (hi[a] - lo[a]) / 2;
    for (int32_t p = 0; p <= 2 * (hi[2] - lo[2]) + 1; p++) {
        int32_t k = mid[2] + (p % 2 ? (p + 1) / 2 : -(p / 2));
        if (k < lo[2] || k > hi[2]) continue;
        double dz = gap(l, 2, x.z, k);
        if (dz * dz > best->d2) continue;
        for (int32_t q = 0; q <= 2 * (hi[1] - lo[1]) + 1; q++) {
            int32_t j = mid[1] + (q % 2 ? (q + 1) / 2 : -(q / 2));
            if (j < lo[1] || j > hi[1]) continue;
            double dy = gap(l, 1, x.y, j);
            double away = dy * dy + dz * dz;
            if (away > best->d2) continue;
            try_row(best, track, x, k * (int64_t)l->n[1] + j, away, lo[0], hi[0]);
        }
    }
}

static double bulge(const un_track *track, const nearest *at)
{
    const int32_t *c = track->mesh.triangle[at->triangle];
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += at->b[i] *
               un_dot(un_sub(track->mesh.position[c[i]], at->foot), track->mesh.normal[c[i]]);
    return un_clamp(0.5 * sum, -BULGE * track->h, BULGE * track->h);
}

/* Places that are no numbers count as 0. */
static int64_t within(double v, int32_t n)
{
    return !(v > 0) ? 0 : v < n - 1 ? (int64_t)v : n - 1;
}

/* The nearest node in the lattice. */
static void nearest_node(const un_lattice *l, un_vec3 x, int64_t n[3])
{
    n[0] = within(rint((x.x - l->origin.x) / l->h[0]), l->n[0]);
    n[1] = within(rint((x.y - l->origin.y) / l->h[1]), l->n[1]);
    n[2] = within(rint((x.z - l->origin.z) / l->h[2]), l->n[2]);
}

/* ---- far from the surface ---- */

/* Steps to the neighbours that come first in the order of blocks, with their lengths. */
#define EARLIER 13
/* Such steps make distances too long by 9 %. */
#define DETOUR 1.09

static void sweep(un_track *t, bool backwards)
{
    const int32_t *n = t->blocks;
    int64_t count = (int64_t)n[0] * n[1] * n[2];
    for (int64_t s = 0; s < count; s++) {
        int64_t b = backwards ? count - 1 - s : s;
        int64_t i = b % n[0], j = b / n[0] % n[1], k = b / ((int64_t)n[0] * n[1]);
        float least = t->far[b];
        for (int q = 0; q < EARLIER; q++) {
            int64_t di = q % 3 - 1, dj = q / 3 % 3 - 1, dk = q / 9 - 1;
            if (backwards) di = -di, dj = -dj, dk = -dk;
            if (i + di < 0 || i + di >= n[0] || j + dj < 0 || j + dj >= n[1] || k + dk < 0 ||
                k + dk >= n[2])
                continue;
            float way = sqrtf((float)(di * di + dj * dj + dk * dk));
            least = fminf(least, way + t->far[b + di + n[0] * (dj + n[1] * dk)]);
        }
        t->far[b] = least;
    }
}

void un_track_find_far(un_track *t)
{
    const un_lattice *l = &t->lattice;
    const int32_t *n = t->blocks;
    int64_t count = (int64_t)n[0] * n[1] * n[2];
    for (int64_t b = 0; b < count; b++) t->far[b] = FLT_MAX / 4;
    for (int32_t v = 0; v < t->mesh.vertex_count; v++) {
        int64_t node = t->edge[v] / 3;
        int64_t i = node % l->n[0], j = node / l->n[0] % l->n[1];
        int64_t k = node / ((int64_t)l->n[0] * l->n[1]);
        i /= UN_TRACK_BLOCK, j /= UN_TRACK_BLOCK, k /= UN_TRACK_BLOCK;
        t->far[i + n[0] * (j + n[1] * k)] = 0;
    }
    sweep(t, false);
    sweep(t, true);
    /* from any point of one block to any point of the other */
    double edge = UN_TRACK_BLOCK * t->h;
    for (int64_t b = 0; b < count; b++)
        t->far[b] = (float)(fmax(0, t->far[b] / DETOUR - sqrt(3.0)) * edge);
}

static double far_distance(const un_track *t, const int64_t node[3], double phi)
{
    int64_t b =
        node[0] / UN_TRACK_BLOCK +
        t->blocks[0] * (node[1] / UN_TRACK_BLOCK + t->blocks[1] * (node[2] / UN_TRACK_BLOCK));
    return copysign(fmax(t->reach, t->far[b]), phi);
}

/* False: nothing is within reach, m. */
static bool find_nearest(nearest *best, const un_track *track, un_vec3 x, int32_t *hint,
                         double reach)
{
    best->d2 = reach * reach;
    best->triangle = -1;
    if (hint && *hint >= 0 && *hint < track->mesh.triangle_count)
        try_triangle(best, track, x, *hint);
    best->d2 *= 1 + 2 * TIE;
    best->triangle = -1;
    search(best, track, x);
    if (hint && best->triangle >= 0) *hint = best->triangle;
    return best->triangle >= 0;
}

static double signed_distance(const un_track *track, un_vec3 x, const nearest *at)
{
    double side = un_dot(un_sub(x, at->foot), normal_at(track, at));
    return copysign(sqrt(at->d2), side) - bulge(track, at);
}

double un_track_distance(const un_track *track, un_vec3 x, int32_t *hint)
{
    const un_lattice *l = &track->lattice;
    double reach = track->reach;
    int64_t n[3];
    nearest at;
    nearest_node(l, x, n);
    double phi = l->phi[n[0] + l->n[0] * (n[1] + l->n[1] * n[2])];
    if (!(fabs(phi) < reach)) return far_distance(track, n, phi);
    if (!find_nearest(&at, track, x, hint, track->reach)) return copysign(reach, phi);
    return un_clamp(signed_distance(track, x, &at), -reach, reach);
}

typedef struct points {
    float *phi;
    const un_track *track;
    const un_track_points *in;
} points;

static void measure_points(void *arg, int64_t begin, int64_t end)
{
    const points *a = arg;
    const un_track *track = a->track;
    const un_lattice *l = &track->lattice;
    int32_t last = -1;
    for (int64_t i = begin; i < end; i++) {
        un_vec3 x = a->in->x[i];
        int64_t n[3];
        nearest at;
        nearest_node(l, x, n);
        double phi = l->phi[n[0] + l->n[0] * (n[1] + l->n[1] * n[2])];
        double most = a->in->within * a->in->size[a->in->level[i]];
        a->phi[i] = (float)copysign(INFINITY, phi);
        if (!(fabs(phi) < track->reach) && fabs(far_distance(track, n, phi)) > most) continue;
        if (!find_nearest(&at, track, x, &last, most)) continue;
        double d = signed_distance(track, x, &at);
        /* the sign is known, the nearest triangle's may be doubtful */
        a->phi[i] = (float)(fabs(phi) < track->reach ? d : copysign(d, phi));
    }
}

void un_track_to_points(un_context *ctx, float *phi, const un_track *track,
                        const un_track_points *in)
{
    points a = {phi, track, in};
    un_parallel_for(ctx, in->count, 1024, measure_points, &a);
}

/* ---- surfaces that grow ---- */

double un_track_grown(const un_track *track, un_vec3 x, int32_t *hint,
                      const un_track_growth *growth, double *fill)
{
    const un_lattice *l = &track->lattice;
    double reach = track->reach, more = 0, share = 0;
    int64_t n[3];
    nearest at;
    nearest_node(l, x, n);
    double phi = l->phi[n[0] + l->n[0] * (n[1] + l->n[1] * n[2])];
    if (fill) *fill = 1;
    if (!(fabs(phi) < reach)) return far_distance(track, n, phi);
    if (!find_nearest(&at, track, x, hint, track->reach)) return copysign(reach, phi);
    for (int i = 0; i < 3; i++) {
        int32_t v = track->mesh.triangle[at.triangle][i];
        more += at.b[i] * growth->more[v];
        if (fill) share += at.b[i] * growth->fill[v];
    }
    if (fill) *fill = share;
    return un_clamp(signed_distance(track, x, &at) - more, -reach, reach);
}

double un_track_fill(const un_track *track, un_vec3 x)
{
    nearest at;
    double share = 0;
    if (!find_nearest(&at, track, x, NULL, track->reach)) return 1;
    for (int i = 0; i < 3; i++)
        share += at.b[i] * track->fill[track->mesh.triangle[at.triangle][i]];
    return share;
}

un_vec3 un_track_foot(const un_track *track, un_vec3 x, int32_t *hint)
{
    nearest at;
    if (!find_nearest(&at, track, x, hint, track->reach)) return x;
    const int32_t *c = track->mesh.triangle[at.triangle];
    un_vec3 n = {0};
    for (int i = 0; i < 3; i++) n = un_mad(n, track->mesh.normal[c[i]], at.b[i]);
    return un_mad(x, un_normalize(n), -signed_distance(track, x, &at));
}
