/* Both sides of thin walls on the leaves of an octree.
 *
 * As on the grid (walls_thin.c), below some two cells of thickness a leaf belongs to one side of a
 * wall: that of its seat, which is its centre or, where that lies in the wall, the nearest open
 * place. A leaf no longer counts leaves as near whose seats it does not see, faces between such
 * leaves are closed, and corners behind the wall are as deep as the seat sees them. Particles
 * belong to the leaf whose seat they see. */
#include "mesh/mesh.h"

#include "mesh/thin.h"

/* Seats keep this distance from the wall, in leaves. */
#define SEAT_MARGIN 0.02
/* How far corners are from the centre, in leaves, and a little. */
#define CORNER 0.88

typedef struct part_args {
    un_leaf_walls *w;
    un_leaves *m;
    uint8_t *blind; /* by leaf: there are leaves that it does not see */
} part_args;

static double distance_at(const un_bodies *bodies, un_vec3 x)
{
    double d = 1e30;
    un_bodies_nearest(bodies, x, &d);
    return d;
}

/* Is the way between two places open? from, to: their distances to solids. */
static bool sees(const un_bodies *bodies, un_vec3 a, double from, un_vec3 b, double to)
{
    double length = un_length(un_sub(b, a));
    if (!(from > 0) || !(to > 0)) return false;
    return from + to >= length || un_thin_sees(bodies, a, b, from);
}

/* At the leaf's seat. */
static inline double seat_distance(const part_args *a, int64_t c)
{
    return fmax(a->w->solid[c], SEAT_MARGIN * un_leaf_size(a->m, c));
}

/* ---- where walls are thin ---- */

static void find_narrow(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    un_leaf_walls *w = a->w;
    const un_leaves *m = a->m;
    double most = UN_THIN * un_octree_size(m->tree, 0);
    for (int64_t c = begin; c < end; c++) {
        double h = un_leaf_size(m, c), d = w->solid[c];
        w->narrow[c] = INFINITY;
        if (fabs(d) > UN_THIN * h) continue;
        bool still = w->solid[c] == w->still[c];
        float found = still ? w->thickness[c] : -1;
        if (found < 0)
            found = (float)un_thin_thickness(w->walls->bodies, still, m->x[c], d, m->tree->h, most);
        if (still) w->thickness[c] = found;
        if (found < (float)most) w->narrow[c] = found;
    }
}

static double find_thin(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    double count = 0;
    for (int64_t c = begin; c < end; c++) {
        a->m->thin[c] = a->w->narrow[c] < (float)(UN_THIN * un_leaf_size(a->m, c));
        count += a->m->thin[c];
    }
    return count;
}

/* Leaves that are not thin need seats too: they may not see one that is. */
static void find_seats(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    const un_leaves *m = a->m;
    const un_bodies *bodies = a->w->walls->bodies;
    for (int64_t c = begin; c < end; c++) {
        double h = un_leaf_size(m, c), d = a->w->solid[c], near = 1e30;
        m->seat[c] = m->x[c];
        if (d > SEAT_MARGIN * h || (!m->thin[c] && d < -CORNER * h)) continue;
        int32_t b = un_bodies_nearest(bodies, m->x[c], &near);
        un_vec3 n = un_body_normal(&bodies->body[b], m->x[c]);
        m->seat[c] = un_mad(m->x[c], n, SEAT_MARGIN * h - d);
        if (m->dim == 2) m->seat[c].z = 0;
    }
}

/* ---- who sees whom ---- */

static void find_near(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    un_leaves *m = a->m;
    const un_octree *tree = m->tree;
    const un_bodies *bodies = a->w->walls->bodies;
    for (int64_t c = begin; c < end; c++) {
        int32_t *near = m->near + (ptrdiff_t)m->near_count * c;
        double h = un_leaf_size(m, c);
        for (int n = 0; n < m->near_count; n++) {
            int32_t there = near[n];
            if (there < 0 || there == c || (!m->thin[c] && !m->thin[there])) continue;
            un_vec3 from = m->seat[c], to = m->seat[there];
            double d = seat_distance(a, c), e = seat_distance(a, there);
            if (tree->level[there] > tree->level[c]) { /* the middle of the cube */
                un_vec3 step = {n % 3 - 1, n / 3 % 3 - 1, m->dim == 2 ? 0 : n / 9 - 1};
                to = un_mad(m->x[c], step, h);
                e = distance_at(bodies, to);
            }
            bool seen = there < c ? sees(bodies, to, e, from, d) : sees(bodies, from, d, to, e);
            if (seen) continue;
            near[n] = -1;
            m->even[c] = 0;
            a->blind[c] = 1;
        }
    }
}

/* ---- fractions ---- */

static double seen_from(const part_args *a, int64_t c, un_vec3 x)
{
    const un_bodies *bodies = a->w->walls->bodies;
    double d = distance_at(bodies, x), h = un_leaf_size(a->m, c);
    un_vec3 seat = a->m->seat[c];
    if (fabs(d) < UN_SNAP * a->m->tree->h) d = 0;
    if (sees(bodies, seat, seat_distance(a, c), x, d)) return d;
    double depth = un_thin_depth(bodies, seat, x, seat_distance(a, c), h);
    return d > 0 || depth < d - UN_DEEPER * h ? depth : d;
}

static void part_leaves(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        double v[8], h = un_leaf_size(m, c);
        if (!m->thin[c] || seat_distance(a, c) > CORNER * h) continue;
        for (int k = 0; k < 8; k++) {
            un_vec3 d = un_v3(k & 1 ? 0.5 : -0.5, k >> 1 & 1 ? 0.5 : -0.5,
                              m->dim == 2  ? 0
                              : k >> 2 & 1 ? 0.5
                                           : -0.5);
            v[k] = m->dim == 2 && k > 3 ? v[k - 4] : seen_from(a, c, un_mad(m->x[c], d, h));
        }
        a->w->volume[c] = (float)(un_leaf_walls_within(a->w, m, m->x[c], h, -1) *
                                  un_walls_cell_fraction(v, m->dim));
    }
}

/* Does the leaf see what lies beyond its side? */
static bool sees_side(const un_leaves *m, int32_t c, int side)
{
    return un_leaf_beyond(m, c, side) >= 0;
}

static void part_faces(void *arg, int64_t begin, int64_t end)
{
    static const int cycle[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    const part_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, other = m->face_other[f];
        if (other < 0 || (!m->thin[c] && !m->thin[other])) continue;
        if (!sees_side(m, c, side)) {
            a->w->area[f] = 0;
            continue;
        }
        if (seat_distance(a, c) > CORNER * un_leaf_size(m, c)) continue;
        int axis = side / 2, t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        un_vec3 x = un_leaf_face_center(m, f);
        double half = 0.5 * un_leaf_size(m, c), v[4];
        for (int k = 0; k < (m->dim == 2 ? 2 : 4); k++) {
            double at[3] = {x.x, x.y, x.z};
            at[t1] += half * (m->dim == 2 ? (k & 1 ? 1 : -1) : cycle[k][0]);
            if (m->dim == 3) at[t2] += half * cycle[k][1];
            un_vec3 y = {at[0], at[1], at[2]};
            v[k] = seen_from(a, m->thin[c] ? c : other, y);
        }
        if (m->dim == 2) v[2] = v[1], v[3] = v[0];
        double open =
            un_leaf_walls_within(a->w, m, x, 2 * half, axis) * un_walls_face_fraction(v, m->dim);
        a->w->area[f] = fminf(a->w->area[f], (float)open);
    }
}

static void find_bodies(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, other = m->face_other[f];
        if (a->w->area[f] >= 1 || a->w->body[f] >= 0) continue;
        if (other < 0 || (!m->thin[c] && !m->thin[other])) continue;
        double near = 2 * un_leaf_size(m, c);
        a->w->body[f] =
            (int16_t)un_bodies_nearest(a->w->walls->bodies, un_leaf_face_center(m, f), &near);
    }
}

un_status un_leaf_walls_part(un_leaf_walls *w, un_leaves *m)
{
    un_context *ctx = w->ctx;
    part_args a = {w, m, NULL};
    UN_TRY(un_array_need(ctx, (void **)&m->thin, &m->capacity[8], (size_t)m->count + 1, 1));
    UN_TRY(un_array_need(ctx, (void **)&m->seat, &m->capacity[9], (size_t)m->count + 1,
                         sizeof *m->seat));
    un_parallel_for(ctx, m->count, 512, find_narrow, &a);
    m->parted = un_parallel_sum(ctx, m->count, find_thin, &a) > 0;
    if (!m->parted) return UN_OK;
    un_parallel_for(ctx, m->count, 512, find_seats, &a);
    a.blind = un_alloc_zero(ctx, (size_t)m->count, 1);
    if (!a.blind) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, m->count, 256, find_near, &a);
    for (int32_t c = 0; c < m->count; c++) m->thin[c] |= (uint8_t)(2 * a.blind[c]);
    un_free(ctx, a.blind);
    un_parallel_for(ctx, m->count, 256, part_leaves, &a);
    un_parallel_for(ctx, m->face_count, 256, part_faces, &a);
    un_parallel_for(ctx, m->face_count, 1024, find_bodies, &a);
    return UN_OK;
}

/* ---- particles ---- */

/* The leaf in the cube around `from` that holds x; -1 if x is farther away or the cube is divided.
 */
static inline int32_t step_beside(const un_leaves *m, int32_t from, un_vec3 x)
{
    const un_octree *tree = m->tree;
    un_vec3 d = un_scale(un_sub(x, m->x[from]), tree->inverse_edge[tree->level[from]]);
    double at[3] = {d.x, d.y, d.z};
    static const int step[3] = {1, 3, 9};
    int n = m->near_count / 2;
    for (int a = 0; a < m->dim; a++) {
        if (!(fabs(at[a]) < 1.5)) return -1;
        n += at[a] < -0.5 ? -step[a] : at[a] >= 0.5 ? step[a] : 0;
    }
    int32_t c = un_leaf_near(m, from)[n];
    return c >= 0 && tree->level[c] <= tree->level[from] ? c : -1;
}

int32_t un_leaves_home(const un_leaves *m, const un_bodies *bodies, int32_t guess, un_vec3 x)
{
    int32_t c = m->parted || !un_leaves_knows(m, guess, 0) ? -1 : step_beside(m, guess, x);
    if (c < 0) c = un_octree_find_near(m->tree, guess, x);
    if (!m->parted || !m->thin[c]) return c;
    double near = 1e30, h = un_leaf_size(m, c);
    int32_t b = un_bodies_nearest(bodies, x, &near);
    if (near >= un_length(un_sub(x, m->seat[c])) ||
        sees(bodies, x, near, m->seat[c], distance_at(bodies, m->seat[c])))
        return c;
    /* beyond the wall: away from it, or beside it */
    un_vec3 n = un_body_normal(&bodies->body[b], x), size = m->tree->size;
    for (int k = 0; k < 2 + 2 * m->dim; k++) {
        un_vec3 way = k < 2 ? un_scale(n, k == 0 ? 0.75 : 1.25)
                            : un_v3(k / 2 == 1 ? 1 : 0, k / 2 == 2 ? 1 : 0, k / 2 == 3 ? 1 : 0);
        if (k >= 2 && k & 1) way = un_scale(way, -1);
        un_vec3 y = un_min3(un_max3(un_mad(x, way, h), un_v3(0, 0, 0)), size);
        int32_t there = un_octree_find(m->tree, y);
        if (there != c &&
            sees(bodies, x, near, m->seat[there], distance_at(bodies, m->seat[there])))
            return there;
    }
    return c;
}

int32_t un_leaves_step(const un_leaves *m, int32_t from, un_vec3 x)
{
    if (!m->parted) {
        int32_t beside = step_beside(m, from, x);
        if (beside >= 0) return beside;
    }
    int32_t c = un_octree_find(m->tree, x);
    if (!m->parted || c == from || (!m->thin[c] && !m->thin[from])) return c;
    const int32_t *near = un_leaf_near(m, from);
    for (int n = 0; n < m->near_count; n++)
        if (near[n] == c) return c;
    return from;
}
