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

/* How thick the solid next to a leaf is; INFINITY: it is thick, or far. solid, still: distances
 * from its centre x to all solids and to those that stand still. known: the thickness behind these,
 * -1 if it has not been asked yet. */
static float narrow_at(const un_bodies *bodies, const un_octree *tree, un_vec3 x, double h,
                       float solid, float still, float *known)
{
    double most = UN_THIN * un_octree_size(tree, 0), d = solid;
    if (fabs(d) > UN_THIN * h) return INFINITY;
    bool stands = solid == still;
    float found = stands ? *known : -1;
    if (found < 0) found = (float)un_thin_thickness(bodies, stands, x, d, tree->h, most);
    if (stands) *known = found;
    return found < (float)most ? found : INFINITY;
}

static inline bool is_thin(float narrow, double h)
{
    return narrow < (float)(UN_THIN * h);
}

static void find_thin(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    un_leaf_walls *w = a->w;
    const un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        double h = un_leaf_size(m, c);
        w->narrow[c] = narrow_at(w->walls->bodies, m->tree, m->x[c], h, w->solid[c], w->still[c],
                                 &w->thickness[c]);
        m->thin[c] = is_thin(w->narrow[c], h);
    }
}

/* d: the distance from its centre x to solids. Leaves that are not thin need seats too: they may
 * not see one that is. */
static un_vec3 seat_of(const un_bodies *bodies, int dim, un_vec3 x, double h, double d, bool thin)
{
    double near = 1e30;
    if (d > SEAT_MARGIN * h || (!thin && d < -CORNER * h)) return x;
    int32_t b = un_bodies_nearest(bodies, x, &near);
    un_vec3 seat = un_mad(x, un_body_normal(&bodies->body[b], x), SEAT_MARGIN * h - d);
    if (dim == 2) seat.z = 0;
    return seat;
}

static void find_seats(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++)
        m->seat[c] = seat_of(a->w->walls->bodies, m->dim, m->x[c], un_leaf_size(m, c),
                             a->w->solid[c], m->thin[c]);
}

/* What parts a leaf from others. */
typedef struct leaf_side {
    un_vec3 seat;
    double distance; /* of the seat from solids */
    bool thin;
} leaf_side;

/* Of a leaf that this rank does not know, asked anew; the bodies are where the leaves were parted.
 */
static leaf_side ask_side(const un_bodies *bodies, const un_leaves *m, int32_t c)
{
    const un_octree *tree = m->tree;
    un_vec3 x = un_leaf_centre(tree, c);
    double h = un_leaf_size(m, c), near = un_thin_nearest(bodies, x, false, 1e30);
    float still = (float)near, solid = still, thickness = -1;
    if (bodies->moving) solid = (float)un_thin_nearest(bodies, x, true, still);
    leaf_side s = {.thin = is_thin(narrow_at(bodies, tree, x, h, solid, still, &thickness), h)};
    s.seat = seat_of(bodies, m->dim, x, h, solid, s.thin);
    s.distance = fmax(solid, SEAT_MARGIN * h);
    return s;
}

/* ---- who sees whom ---- */

static leaf_side side_of(const part_args *a, int32_t c)
{
    if (!un_leaves_knows(a->m, c, 0)) return ask_side(a->w->walls->bodies, a->m, c);
    return (leaf_side){a->m->seat[c], seat_distance(a, c), a->m->thin[c]};
}

/* Is `there`, in cube n around leaf c, hidden from it by a thin wall? */
static bool is_hidden(const un_bodies *bodies, const un_leaves *m, int32_t c, const leaf_side *own,
                      int32_t there, const leaf_side *other, int n)
{
    un_vec3 to = other->seat;
    double e = other->distance;
    if (!own->thin && !other->thin) return false;
    if (m->tree->level[there] > m->tree->level[c]) { /* the middle of the cube */
        un_vec3 step = {n % 3 - 1, n / 3 % 3 - 1, m->dim == 2 ? 0 : n / 9 - 1};
        to = un_mad(un_leaf_centre(m->tree, c), step, un_leaf_size(m, c));
        e = distance_at(bodies, to);
    }
    return there < c ? !sees(bodies, to, e, own->seat, own->distance)
                     : !sees(bodies, own->seat, own->distance, to, e);
}

static void find_near(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        int32_t *near = m->near + (ptrdiff_t)m->near_count * c;
        leaf_side own = side_of(a, (int32_t)c);
        for (int n = 0; n < m->near_count; n++) {
            int32_t there = near[n];
            if (there < 0 || there == c) continue;
            if (!own.thin && un_leaves_knows(m, there, 0) && !m->thin[there]) continue; /* mostly */
            leaf_side other = side_of(a, there);
            if (!is_hidden(a->w->walls->bodies, m, (int32_t)c, &own, there, &other, n)) continue;
            near[n] = -1;
            m->even[c] = 0;
            a->blind[c] = 1;
        }
    }
}

/* Is leaf c, which this rank does not know, next to a thin wall, or does not see all around it?
 * *seat: its own. */
static bool ask_thin(const un_bodies *bodies, const un_leaves *m, int32_t c, un_vec3 *seat)
{
    int32_t near[UN_LEAVES_AROUND];
    leaf_side own = ask_side(bodies, m, c);
    *seat = own.seat;
    if (own.thin) return true;
    un_leaves_list_around(m, c, near);
    for (int n = 0; n < m->near_count; n++) {
        if (near[n] < 0 || near[n] == c) continue;
        leaf_side other = ask_side(bodies, m, near[n]);
        if (is_hidden(bodies, m, c, &own, near[n], &other, n)) return true;
    }
    return false;
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

bool un_leaf_beside_thin(const un_leaves *m, int64_t f)
{
    int32_t c = m->face_side[f] / 6, other = m->face_other[f];
    return other >= 0 && (m->thin[c] || (un_leaves_knows(m, other, 0) && m->thin[other]));
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
        if (!un_leaf_beside_thin(m, f)) continue;
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
        if (a->w->area[f] >= 1 || a->w->body[f] >= 0 || !un_leaf_beside_thin(m, f)) continue;
        double near = 2 * un_leaf_face_size(m, f);
        a->w->body[f] =
            (int16_t)un_bodies_nearest(a->w->walls->bodies, un_leaf_face_center(m, f), &near);
    }
}

static un_status need_sides(un_context *ctx, un_leaves *m)
{
    UN_TRY(un_array_need(ctx, (void **)&m->thin, &m->capacity[8], (size_t)m->count + 1, 1));
    UN_TRY(un_array_need(ctx, (void **)&m->seat, &m->capacity[9], (size_t)m->count + 1,
                         sizeof *m->seat));
    un_leaves_forget(m, m->thin, 1);
    un_leaves_forget(m, m->seat, sizeof *m->seat);
    return UN_OK;
}

/* Over ranks, next to any leaf of all. */
static bool has_thin(const un_leaves *m)
{
    bool any = false;
    for (int32_t k = 0; k < un_leaves_runs(m) && !any; k++) {
        un_part run = un_leaves_run(m, k);
        any = memchr(m->thin + run.begin, 1, (size_t)(run.end - run.begin)) != NULL;
    }
    return un_leaves_in_parts(m) ? un_ranks_max(m->share->ctx, any) > 0 : any;
}

static void tell_blind(void *arg, int64_t begin, int64_t end)
{
    const part_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        if (!a->blind[c]) continue;
        a->m->thin[c] |= 2;
        a->m->word[c] &= ~(0xff << UN_LEAF_COARSE);
    }
}

un_status un_leaf_walls_part(un_leaf_walls *w, un_leaves *m)
{
    part_args a = {w, m, NULL};
    UN_TRY(un_leaves_agree(m, need_sides(w->ctx, m)));
    un_leaves_each(m, 512, find_thin, &a);
    m->parted = has_thin(m);
    if (!m->parted) return UN_OK;
    a.blind = un_alloc_zero(w->ctx, (size_t)m->count, 1);
    if (!a.blind) return UN_ERROR_MEMORY;
    un_leaves_each(m, 512, find_seats, &a);
    un_leaves_each(m, 256, find_near, &a);
    un_leaves_each(m, 4096, tell_blind, &a);
    un_leaves_each(m, 256, part_leaves, &a);
    un_leaves_each_face(m, 256, part_faces, &a);
    un_leaves_each_face(m, 1024, find_bodies, &a);
    un_free(w->ctx, a.blind);
    return UN_OK;
}

/* ---- particles ---- */

/* The leaf in the cube around `from` that holds x; -1 if x is farther away or the cube is divided.
 * Without branches along the axes: on which side x lies is a toss-up. */
static inline int32_t step_beside(const un_leaves *m, int32_t from, un_vec3 x)
{
    const un_octree *tree = m->tree;
    un_vec3 d = un_scale(un_sub(x, m->x[from]), tree->inverse_edge[tree->level[from]]);
    double at[3] = {d.x, d.y, d.z};
    static const int step[3] = {1, 3, 9};
    int n = m->near_count / 2;
    bool around = true;
    for (int a = 0; a < m->dim; a++) {
        around &= fabs(at[a]) < 1.5;
        n += step[a] * ((at[a] >= 0.5) - (at[a] < -0.5));
    }
    if (!around) return -1;
    int32_t c = un_leaf_near(m, from)[n];
    return c >= 0 && tree->level[c] <= tree->level[from] ? c : -1;
}

/* The leaf's seat; false if no thin wall is near it. */
static bool find_seat(const un_leaves *m, const un_bodies *bodies, int32_t c, un_vec3 *seat)
{
    if (!un_leaves_knows(m, c, 0)) return ask_thin(bodies, m, c, seat);
    *seat = m->seat[c];
    return m->thin[c];
}

int32_t un_leaves_home(const un_leaves *m, const un_bodies *bodies, int32_t guess, un_vec3 x)
{
    int32_t c = m->parted || !un_leaves_knows(m, guess, 0) ? -1 : step_beside(m, guess, x);
    un_vec3 seat;
    if (c < 0) c = un_octree_find_near(m->tree, guess, x);
    if (!m->parted || !find_seat(m, bodies, c, &seat)) return c;
    double near = 1e30, h = un_leaf_size(m, c);
    int32_t b = un_bodies_nearest(bodies, x, &near);
    if (near >= un_length(un_sub(x, seat)) ||
        sees(bodies, x, near, seat, distance_at(bodies, seat)))
        return c;
    /* beyond the wall: away from it, or beside it */
    un_vec3 n = un_body_normal(&bodies->body[b], x), size = m->tree->size;
    for (int k = 0; k < 2 + 2 * m->dim; k++) {
        un_vec3 way = k < 2 ? un_scale(n, k == 0 ? 0.75 : 1.25)
                            : un_v3(k / 2 == 1 ? 1 : 0, k / 2 == 2 ? 1 : 0, k / 2 == 3 ? 1 : 0);
        if (k >= 2 && k & 1) way = un_scale(way, -1);
        un_vec3 y = un_min3(un_max3(un_mad(x, way, h), un_v3(0, 0, 0)), size);
        int32_t there = un_octree_find(m->tree, y);
        if (there == c) continue;
        find_seat(m, bodies, there, &seat);
        if (sees(bodies, x, near, seat, distance_at(bodies, seat))) return there;
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
    if (!m->parted || c == from) return c;
    if (!m->thin[from] && !un_leaves_knows(m, c, 0)) return ~c;
    if (!m->thin[from] && !m->thin[c]) return c;
    const int32_t *near = un_leaf_near(m, from);
    for (int n = 0; n < m->near_count; n++)
        if (near[n] == c) return c;
    return from;
}
