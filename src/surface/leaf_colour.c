/* Level set of the simulation at the centres of an octree's leaves.
 *
 * As in colour.c, on each leaf with a kernel three of its edges h wide:
 *
 *     c = sum_p V_p W_h(x - x_p) / integral of W_h over open space,     phi = h F^-1(c)
 *
 * The sum comes from transfer/leaves.c. Across a flat surface c depends on the distance over h
 * alone, so that leaves of different sizes agree where the surface lies. The open part of the
 * kernel is that of half spaces: a factor 1 - F(d / h) for each closed side at distance d, exact
 * for the product of splines, and one for the nearest solid. [Hong09] has a distance to the
 * particles that is never negative; the colour function is what the other methods have, smooth in
 * the particles' positions and right about their volume.
 *
 * Leaves next to the surface keep this value; at all others phi is the distance found along the
 * leaves, by a front that moves away from the surface. [Hong09] sweeps, one leaf after the other.
 */
#include "surface/surface.h"

/* As in colour.c: below this the kernel lies in a wall, and phi is extended. */
#define NORMALIZER_MIN 0.5f
/* A leaf in the air with more colour than this is no bubble if liquid is on all its sides: a gap
 * between particles. */
#define BUBBLE_COLOUR 0.25f
/* A distance that falls by less, in edges, has settled. A decision that noise may take either way:
 * at 1e-3 a step turned noise of 1e-16 into 2e-5 m. */
#define DEPTH_NOISE 1e-9
/* Leaves next to the surface stay on their side by so much, in edges. */
#define STEADY_LEAST 1e-3
/* What a leaf's own distance weighs: what others foretell is straight, and the surface may not be.
 */
#define STEADY_OWN 4.0
/* How steep phi may be next to the surface: what lies beyond is noise. */
#define STEEP_LEAST 0.75
#define STEEP_MOST 1.33
/* What differences within the liquid or within the air weigh for that. */
#define STEEP_BESIDE 1e-3
/* Where there is no surface at all, m. */
#define FAR 1e9f

typedef struct leaf_args {
    const un_leaf_level_set *def;
    const un_leaves *m;
    float *normalizer;
    const float *from;
    uint8_t *band; /* keeps its value */
    float *steep;  /* of the band; 0 elsewhere and where it is not known */
    /* The pass that phi is known from: 0 by its own colour, then as it was extended; UNKNOWN deep
     * in walls. */
    uint8_t *known;
    uint8_t pass;
} leaf_args;

#define UNKNOWN 255
/* Where two sides cut leaves, those in the corner are two away from any with a colour. */
#define EXTEND_PASSES 2
/* How far a slope foretells, in edges of its leaf: next to a large leaf there may be a small one at
 * the far end of its neighbour, and the surface at that end says nothing here. */
#define REACH 3.0

/* ---- colour ---- */

static inline double spline(double s)
{
    s = fabs(s);
    return s < 0.5 ? 0.75 - s * s : s < 1.5 ? 0.5 * (1.5 - s) * (1.5 - s) : 0;
}

/* The part of the kernel in open space. */
static double open_part(const leaf_args *a, int64_t c)
{
    const un_leaves *m = a->m;
    const un_leaf_walls *w = a->def->walls;
    double h = un_leaf_size(m, c), part = 1;
    if (w->phi[c] > (float)(1.5 * h)) return 1;
    un_vec3 x = m->x[c], size = m->tree->size;
    double at[6] = {x.x, size.x - x.x, x.y, size.y - x.y, x.z, size.z - x.z};
    for (int side = 0; side < 2 * m->dim; side++)
        if (!a->def->open_sides[side]) part *= un_colour_profile(-at[side] / h);
    return w->solid ? part * un_colour_profile(-(double)w->solid[c] / h) : part;
}

static double distance_of(float colour)
{
    return colour <= 0 ? 1.5 : colour >= 1 ? -1.5 : un_colour_distance(colour);
}

static void find_colour(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        a->normalizer[c] = (float)open_part(a, c);
        float value = a->normalizer[c] > NORMALIZER_MIN ? a->def->colour[c] / a->normalizer[c] : 0;
        a->def->colour[c] = value;
        a->def->phi[c] = (float)(un_leaf_size(a->m, c) * distance_of(value));
    }
}

/* ---- neighbours ---- */

/* The mean of a field beyond a side, and how far the centres there are; false where the brick ends
 * or, with `only`, where no leaf has a colour of its own. */
static bool look_beyond(const leaf_args *a, int32_t c, int side, const float *field, bool only,
                        double *value, double *distance)
{
    const un_leaves *m = a->m;
    int32_t f = m->side[c][side];
    double h = un_leaf_size(m, c), sum = 0;
    int count = 0;
    if (un_leaf_beyond(m, c, side) < 0) return false;
    for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
        int32_t face = f < 0 ? m->group[~f][k] : f, own = m->face_side[face] / 6;
        int32_t there = own == c ? m->face_other[face] : own;
        if (there < 0 || (only && a->normalizer[there] <= NORMALIZER_MIN)) continue;
        sum += field[there];
        count++;
        *distance = 0.5 * (h + un_leaf_size(m, there));
    }
    if (count > 0) *value = sum / count;
    return count > 0;
}

/* The slope of the level set at a leaf next to the surface, of length up to 1; zero elsewhere. */
static un_vec3 slope_at(const leaf_args *a, int32_t c, const float *phi)
{
    double slope[3] = {0};
    bool liquid = phi[c] < 0, air = !liquid;
    for (int axis = 0; axis < a->m->dim; axis++) {
        double v[2], d[2];
        bool there[2];
        for (int k = 0; k < 2; k++) {
            there[k] = look_beyond(a, c, 2 * axis + k, phi, true, &v[k], &d[k]);
            if (!there[k]) continue;
            liquid |= v[k] < 0;
            air |= v[k] >= 0;
        }
        if (there[0] && there[1])
            slope[axis] = (v[1] - v[0]) / (d[0] + d[1]);
        else if (there[0] || there[1])
            slope[axis] = there[0] ? (phi[c] - v[0]) / d[0] : (v[1] - phi[c]) / d[1];
    }
    un_vec3 v = un_v3(slope[0], slope[1], slope[2]);
    return liquid && air ? un_scale(v, 1 / fmax(1, un_length(v))) : un_v3(0, 0, 0);
}

/* ---- at walls ---- */

/* Where the part of the kernel beyond a wall at distance s, in edges, is missing: how far from the
 * centre that of the rest lies. */
static double moment_of_rest(double s)
{
    double sum = 0, total = 0;
    for (int i = 0; i < 24; i++) {
        double t = -1.5 + (i + 0.5) / 8;
        if (t > s) break;
        sum += t * spline(t);
        total += spline(t);
    }
    return total > 0 ? -sum / total : 0;
}

/* As in colour.c: next to a solid, c is the value at the centre of what is open. */
static void move_to_centres(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaf_walls *w = a->def->walls;
    for (int64_t c = begin; c < end; c++) {
        float colour = a->def->colour[c];
        double h = un_leaf_size(a->m, c), d = w->solid[c];
        a->def->phi[c] = a->from[c];
        if (a->normalizer[c] <= NORMALIZER_MIN || d > 1.5 * h || colour <= 0.01f || colour >= 0.99f)
            continue;
        un_vec3 slope = slope_at(a, (int32_t)c, a->from);
        if (un_dot(slope, slope) == 0) continue;
        double near = 2 * h;
        int32_t b = un_bodies_nearest(w->walls->bodies, a->m->x[c], &near);
        if (b < 0) continue;
        un_vec3 n = un_body_normal(&w->walls->bodies->body[b], a->m->x[c]);
        a->def->phi[c] -= (float)(h * moment_of_rest(d / h) * un_dot(slope, n));
    }
}

static void find_known(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        a->known[c] = a->normalizer[c] > NORMALIZER_MIN ? 0 : UNKNOWN;
}

/* Others may write this pass's number meanwhile, which counts as little as UNKNOWN. */
static bool known_before(const leaf_args *a, int32_t c)
{
    return __atomic_load_n(&a->known[c], __ATOMIC_RELAXED) < a->pass;
}

/* Leaves without a colour of their own take what those around foretell. */
static void extend(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        if (a->known[c] != UNKNOWN) continue;
        const int32_t *near = un_leaf_near(m, c);
        double sum = 0, total = 0, level = 0, level_total = 0;
        for (int n = 0; n < m->near_count; n++) {
            int32_t there = near[n];
            if (there < 0 || there == c || !known_before(a, there)) continue;
            un_vec3 way = un_sub(m->x[c], m->x[there]);
            double wt = 1 / un_dot(way, way), reach = REACH * un_leaf_size(m, there);
            sum += wt * a->from[there];
            total += wt;
            if (a->pass > 1 || un_dot(way, way) > reach * reach) continue;
            un_vec3 slope = slope_at(a, there, a->from);
            if (un_dot(slope, slope) == 0) continue;
            level += wt * (a->from[there] + un_dot(slope, way));
            level_total += wt;
        }
        if (total == 0) continue;
        a->def->phi[c] = (float)(level_total > 0 ? level / level_total : sum / total);
        __atomic_store_n(&a->known[c], a->pass, __ATOMIC_RELAXED);
    }
}

/* Gaps between particles are no bubbles. */
static void fill_gaps(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        float phi = a->from[c];
        bool gap = phi >= 0 && a->def->colour[c] > BUBBLE_COLOUR;
        for (int side = 0; side < 2 * a->m->dim && gap; side++) {
            double value = -1, d;
            if (look_beyond(a, (int32_t)c, side, a->from, false, &value, &d)) gap = value < 0;
        }
        a->def->phi[c] = gap ? (float)(-0.25 * un_leaf_size(a->m, c)) : phi;
    }
}

/* ---- next to the surface ---- */

/* The value of phi beyond a side and how far away that is; false where the brick ends. */
static bool phi_beyond(const leaf_args *a, int32_t c, int side, un_centre_finder *phi,
                       double *value, double *way)
{
    const un_leaves *m = a->m;
    int32_t there = un_leaf_beyond(m, c, side);
    if (there < 0 || m->tree->level[there] >= m->tree->level[c])
        return look_beyond(a, c, side, phi->field, false, value, way);
    /* a larger leaf's centre lies askew */
    double h = un_leaf_size(m, c), x[3] = {m->x[c].x, m->x[c].y, m->x[c].z};
    x[side / 2] += side & 1 ? h : -h;
    un_vec3 at = {x[0], x[1], x[2]};
    *way = h;
    *value = un_centre_finder_at(phi, there, at);
    return true;
}

/* What lies beyond the six sides of a leaf; way: 0 where the brick ends. */
typedef struct beyond {
    double value[6], way[6];
} beyond;

static void look_around(const leaf_args *a, int32_t c, un_centre_finder *phi, beyond *b)
{
    for (int side = 0; side < 2 * a->m->dim; side++)
        if (!phi_beyond(a, c, side, phi, &b->value[side], &b->way[side])) b->way[side] = 0;
}

/* From differences to both sides, weighted as in `steady`: colours of 0 and 1 tell nothing. */
static un_vec3 normal_of(const leaf_args *a, int32_t c, double phi, const beyond *b)
{
    double slope[3] = {0}, h = un_leaf_size(a->m, c);
    for (int side = 0; side < 2 * a->m->dim; side += 2) {
        double sum = 0, total = 0;
        for (int k = 0; k < 2; k++) {
            double value = b->value[side + k], way = b->way[side + k];
            if (way == 0) continue;
            double weight = spline(value / (2 * way - h));
            if (weight == 0) continue; /* it may be as far away as FAR */
            total += weight * weight;
            sum += weight * weight * (k ? value - phi : phi - value) / way;
        }
        if (total > 0) slope[side / 2] = sum / total;
    }
    return un_normalize(un_v3(slope[0], slope[1], slope[2]));
}

/* A colour tells the distance best at the surface itself: its slope is the kernel's, and near 0 and
 * 1 noise decides. So leaves on both sides of the surface take the mean of their own distance and
 * what those across foretell, weighted by that slope squared. */
static void steady(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->m;
    un_centre_finder from;
    un_centre_finder_init(&from, m, a->from, NULL);
    for (int64_t c = begin; c < end; c++) {
        double h = un_leaf_size(m, c), phi = a->from[c];
        if (!a->band[c] || a->normalizer[c] <= NORMALIZER_MIN) continue;
        beyond b;
        look_around(a, (int32_t)c, &from, &b);
        un_vec3 n = normal_of(a, (int32_t)c, phi, &b);
        double weight = spline(phi / h), total, sum;
        total = STEADY_OWN * weight * weight + 1e-6;
        sum = total * phi;
        for (int side = 0; side < 2 * m->dim; side++) {
            double value = b.value[side], way = b.way[side];
            if (way == 0 || (value < 0) == (phi < 0)) continue;
            double along = (side & 1 ? 1 : -1) * un_vec3_at(n, side / 2);
            weight = along * along * spline(value / (2 * way - h));
            total += weight * weight;
            sum += weight * weight * (value - along * way);
        }
        double found = sum / total, least = STEADY_LEAST * h;
        a->def->phi[c] = (float)(phi < 0 ? fmin(found, -least) : fmax(found, least));
    }
}

/* Next to the surface phi need not change by 1 in a metre: colours come from a few layers of
 * particles, and particles of one size see it steeper than those of another. How steep it is, is
 * told by the leaves on both sides of the surface; phi is divided by that, which makes it the
 * distance and leaves the surface where it is. A tank with cells of many sizes looked uneven by 0.1
 * finest cells, now 0.01: the output surface rests on the depths of particles. */
static void find_steepness(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->m;
    un_centre_finder from;
    un_centre_finder_init(&from, m, a->from, NULL);
    for (int64_t c = begin; c < end; c++) {
        double h = un_leaf_size(m, c), phi = a->from[c], steep2 = 0;
        a->steep[c] = 0;
        if (!a->band[c] || a->normalizer[c] <= NORMALIZER_MIN) continue;
        beyond b;
        look_around(a, (int32_t)c, &from, &b);
        for (int axis = 0; axis < m->dim; axis++) {
            double sum = 0, total = 0;
            for (int side = 2 * axis; side < 2 * axis + 2; side++) {
                double value = b.value[side], way = b.way[side];
                if (way == 0) continue;
                double weight = spline(value / (2 * way - h));
                if (weight == 0) continue; /* it may be as far away as FAR */
                weight = (value < 0) != (phi < 0) ? 1 : STEEP_BESIDE * weight * weight;
                total += weight;
                sum += weight * (side & 1 ? value - phi : phi - value) / way;
            }
            if (total > 0) steep2 += sum / total * (sum / total);
        }
        a->steep[c] = (float)un_clamp(sqrt(steep2), STEEP_LEAST, STEEP_MOST);
    }
}

/* The mean of both sides: where the surface is curved, one is too steep by as much as the other is
 * too flat. */
static void straighten(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        if (!a->band[c]) continue;
        bool liquid = a->from[c] < 0;
        float sum = 0, count = 0, own = a->steep[c];
        for (int side = 0; side < 2 * m->dim; side++) {
            int32_t f = m->side[c][side];
            for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
                int32_t face = f < 0 ? m->group[~f][k] : f, there = m->face_side[face] / 6;
                if (there == c) there = m->face_other[face];
                if (there < 0 || !(a->steep[there] > 0) || (a->from[there] < 0) == liquid) continue;
                sum += a->steep[there];
                count += 1;
            }
        }
        if (count > 0) own = own > 0 ? 0.5f * (own + sum / count) : sum / count;
        if (own > 0) a->def->phi[c] = a->from[c] / own;
    }
}

/* ---- distance ---- */

static void find_band(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        bool liquid = a->def->phi[c] < 0, band = false;
        for (int side = 0; side < 2 * m->dim && !band; side++) {
            int32_t f = m->side[c][side];
            for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
                int32_t face = f < 0 ? m->group[~f][k] : f, own = m->face_side[face] / 6;
                int32_t there = own == c ? m->face_other[face] : own;
                band |=
                    there >= 0 && a->known[there] != UNKNOWN && (a->def->phi[there] < 0) != liquid;
            }
        }
        a->band[c] = band && a->known[c] != UNKNOWN;
    }
}

/* The mean distance beyond a side, and how far the centres there are; false where the brick ends.
 */
static bool depth_beyond(const leaf_args *a, int32_t c, int side, const double *depth,
                         double *value, double *way)
{
    const un_leaves *m = a->m;
    int32_t f = m->side[c][side], there = un_leaf_beyond(m, c, side);
    if (there < 0) return false;
    *way = 0.5 * (un_leaf_size(m, c) + un_leaf_size(m, there));
    *value = depth[there];
    if (f >= 0) return true;
    int count = un_leaves_group_size(m);
    double sum = 0;
    for (int k = 0; k < count; k++) sum += depth[m->face_side[m->group[~f][k]] / 6];
    *value = sum / count;
    *way = 0.75 * un_leaf_size(m, c);
    return true;
}

/* The nearer neighbour along each axis in leaves among their like, nearest first; returns how many
 * there are. All are one edge away. */
static int nearest_equals(const un_leaves *m, int32_t c, const double *depth, double v[3])
{
    static const int step[3] = {1, 3, 9};
    const int32_t *near = un_leaf_near(m, c) + m->near_count / 2;
    int count = 0;
    for (int axis = 0; axis < m->dim; axis++) {
        double below = depth[near[-step[axis]]], above = depth[near[step[axis]]];
        double best = below < above ? below : above;
        if (best >= (double)FAR) continue;
        int k = count++;
        for (; k > 0 && v[k - 1] > best; k--) v[k] = v[k - 1];
        v[k] = best;
    }
    return count;
}

/* The same anywhere; d: how far away each is. */
static int nearest_of(const leaf_args *a, int32_t c, const double *depth, double v[3], double d[3])
{
    int count = 0;
    for (int axis = 0; axis < a->m->dim; axis++) {
        double best = INFINITY, way = 1;
        for (int side = 2 * axis; side < 2 * axis + 2; side++) {
            double value, distance;
            if (!depth_beyond(a, c, side, depth, &value, &distance)) continue;
            if (value < best) best = value, way = distance;
        }
        if (best >= (double)FAR) continue;
        int k = count++;
        for (; k > 0 && v[k - 1] > best; k--) v[k] = v[k - 1], d[k] = d[k - 1];
        v[k] = best, d[k] = way;
    }
    return count;
}

/* |grad phi| = 1 from the nearer neighbour along each axis: t with sum ((t - v_i) / d_i)^2 = 1 over
 * those below t. Distances are relative to the nearest, v_0. */
static double solve_leaf(const leaf_args *a, int32_t c, const double *depth)
{
    double v[3], d[3], h = un_leaf_size(a->m, c);
    bool even = a->m->even[c];
    int count = even ? nearest_equals(a->m, c, depth, v) : nearest_of(a, c, depth, v, d);
    if (count == 0) return INFINITY;
    double t = even ? h : d[0], s0, s1 = 0, s2 = -1;
    if (even) { /* all multiplied by h^2 */
        s0 = 1;
        s2 = -h * h;
    } else {
        s0 = 1 / (d[0] * d[0]);
    }
    for (int n = 1; n < count && t > v[n] - v[0]; n++) {
        double way = v[n] - v[0], w = even ? 1 : 1 / (d[n] * d[n]);
        s0 += w;
        s1 += w * way;
        s2 += w * way * way;
        double root = s1 * s1 - s0 * s2;
        if (root < 0) break;
        t = (s1 + sqrt(root)) / s0;
    }
    return v[0] + t;
}

typedef struct front_args {
    const leaf_args *a;
    double *depth;       /* by leaf */
    const int32_t *leaf; /* of the front */
    double *found;       /* by place in the front */
} front_args;

static void solve_front(void *arg, int64_t begin, int64_t end)
{
    const front_args *f = arg;
    for (int64_t n = begin; n < end; n++) f->found[n] = solve_leaf(f->a, f->leaf[n], f->depth);
}

/* The front while it is made; kept: by leaf, is its distance not to be found, or has it joined? */
typedef struct joining {
    const un_leaves *m;
    const double *depth;
    uint8_t *kept;
    int32_t *front, count;
} joining;

static inline void join(joining *j, int32_t there)
{
    j->kept[there] = 1;
    j->front[j->count++] = there;
}

/* The leaves at the sides of c that c may bring nearer to the surface join the front, once each. A
 * larger leaf sees the mean over the leaves beside it. */
static void join_beside(joining *j, int32_t c)
{
    const un_leaves *m = j->m;
    double depth = j->depth[c];
    const int32_t *near = un_leaf_near(m, c) + m->near_count / 2;
    static const int step[6] = {-1, 1, -3, 3, -9, 9};
    if (m->even[c]) {
        for (int side = 0; side < 2 * m->dim; side++) {
            int32_t there = near[step[side]];
            if (!(j->kept[there] | (j->depth[there] <= depth))) join(j, there);
        }
        return;
    }
    for (int side = 0; side < 2 * m->dim; side++) {
        int32_t f = m->side[c][side], there = near[step[side]];
        if (there < 0) continue;
        for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
            if (f < 0) there = m->face_side[m->group[~f][k]] / 6;
            if (j->kept[there]) continue;
            if (j->depth[there] <= depth && m->tree->level[there] >= m->tree->level[c]) continue;
            join(j, there);
        }
    }
}

/* Leaves whose distance has changed wait until those nearer to the surface have told theirs: all up
 * to this much farther than the nearest, in finest edges, tell at once. A leaf is solved for 3
 * times then, 7 times if all tell at once. */
#define FRONT_WIDTH 1.0

typedef struct redistancing {
    double *depth, *found;
    int32_t *front, *wait, waiting;
    uint8_t *kept, *waits;
} redistancing;

/* The farthest distance that is told at once. */
static double front_limit(const leaf_args *a, const redistancing *r)
{
    const un_leaves *m = a->m;
    double least = INFINITY;
    for (int32_t i = 0; i < r->waiting; i++) /* fmin is a call */
        least = r->depth[r->wait[i]] < least ? r->depth[r->wait[i]] : least;
    if (un_leaves_in_parts(m)) least = -un_ranks_max(m->share->ctx, -least);
    return least + FRONT_WIDTH * m->tree->h;
}

/* A leaf's distance has changed. */
static inline void changes(redistancing *r, int32_t c)
{
    if (!r->waits[c]) r->wait[r->waiting++] = c;
    r->waits[c] = 1;
}

/* A rank solves for its own leaves, and hears of those around. */
static void hear_of_others(const leaf_args *a, redistancing *r, double *before)
{
    const un_leaves *m = a->m;
    un_part own = un_leaves_own(m);
    un_leaves_spread(m, r->depth, sizeof *r->depth);
    for (int32_t k = 0; k < un_leaves_runs(m); k++) {
        un_part run = un_leaves_run(m, k);
        for (int64_t c = run.begin; c < run.end; c++) {
            if (c == own.begin) c = un_min64(own.end, run.end);
            if (c == run.end || !(r->depth[c] < before[c])) continue;
            before[c] = r->depth[c];
            changes(r, (int32_t)c);
        }
    }
}

/* The leaves next to those that are told, and not told of yet. */
static int32_t next_front(const leaf_args *a, redistancing *r, double limit)
{
    const un_leaves *m = a->m;
    int32_t left = 0;
    joining j = {m, r->depth, r->kept, r->front, 0};
    for (int32_t i = 0; i < r->waiting; i++) {
        int32_t c = r->wait[i];
        if (r->depth[c] > limit) {
            r->wait[left++] = c;
            continue;
        }
        r->waits[c] = 0;
        if (un_leaves_knows(m, c, 1)) join_beside(&j, c);
    }
    r->waiting = left;
    return j.count;
}

/* Of several ranks in parts: own leaves of the front. */
static int32_t keep_own(const un_leaves *m, redistancing *r, int32_t count)
{
    un_part own = un_leaves_own(m);
    int32_t left = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t c = r->front[i];
        if (c >= own.begin && c < own.end)
            r->front[left++] = c;
        else
            r->kept[c] = 0;
    }
    return left;
}

/* Distances to the surface without a sign. A front of leaves next to those that have just changed
 * moves away from the surface: its leaves are solved for at once, from what was there before, so
 * that threads and their number make no difference. */
static un_status redistance(un_context *ctx, leaf_args *a, un_arena *arena)
{
    const un_leaves *m = a->m;
    size_t n = (size_t)m->count + 1;
    bool parts = un_leaves_in_parts(m);
    float *phi = a->def->phi;
    redistancing r = {.depth = un_arena_alloc(arena, n, sizeof *r.depth),
                      .found = un_arena_alloc(arena, n, sizeof *r.found),
                      .front = un_arena_alloc(arena, n, sizeof *r.front),
                      .wait = un_arena_alloc(arena, n, sizeof *r.wait),
                      .kept = un_arena_alloc(arena, n, 1),
                      .waits = un_arena_alloc(arena, n, 1)};
    double *before = parts ? un_arena_alloc(arena, n, sizeof *before) : r.found;
    bool able = r.depth && r.found && r.front && r.wait && r.kept && r.waits && before;
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t c = un_leaves_run(m, k).begin; c < un_leaves_run(m, k).end; c++) {
            r.kept[c] = r.waits[c] = a->band[c];
            r.depth[c] = a->band[c] ? fabs((double)phi[c]) : (double)FAR;
            if (parts) before[c] = r.depth[c];
            if (a->band[c]) r.wait[r.waiting++] = (int32_t)c;
        }
    for (;;) {
        double limit = front_limit(a, &r);
        if (limit == INFINITY) break;
        int32_t count = next_front(a, &r, limit);
        front_args f = {a, r.depth, r.front, r.found};
        if (parts) {
            count = keep_own(m, &r, count);
            un_parallel_for(ctx, count, 512, solve_front, &f);
        } else {
            un_parallel_part(ctx, un_leaves_list_own(m, count), 512, solve_front, &f);
            un_leaves_spread_list(m, count, r.found, sizeof *r.found);
        }
        for (int32_t i = 0; i < count; i++) {
            int32_t c = r.front[i];
            r.kept[c] = 0;
            if (!(r.found[i] < r.depth[c] - DEPTH_NOISE * un_leaf_size(m, c))) continue;
            r.depth[c] = r.found[i];
            changes(&r, c);
        }
        if (parts) hear_of_others(a, &r, before);
    }
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t c = un_leaves_run(m, k).begin; c < un_leaves_run(m, k).end; c++)
            if (!a->band[c] && a->known[c] != UNKNOWN)
                phi[c] = (float)(phi[c] < 0 ? -r.depth[c] : r.depth[c]);
    return UN_OK;
}

/* Beyond open sides there is air: liquid that touches them is as deep as the side is near. */
static void open_sides(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaves *m = a->m;
    un_vec3 size = m->tree->size;
    for (int64_t c = begin; c < end; c++) {
        un_vec3 x = m->x[c];
        double at[6] = {x.x, size.x - x.x, x.y, size.y - x.y, x.z, size.z - x.z};
        for (int side = 0; side < 2 * m->dim; side++)
            if (a->def->open_sides[side]) a->def->phi[c] = fmaxf(a->def->phi[c], (float)-at[side]);
    }
}

un_status un_leaf_level_set_find(un_context *ctx, un_arena *arena, const un_leaf_level_set *def)
{
    const un_leaves *m = def->leaves;
    size_t n = (size_t)m->count + 1;
    leaf_args a = {.def = def, .m = m};
    float *from = un_arena_alloc(arena, n, sizeof *from);
    a.normalizer = un_arena_alloc(arena, n, sizeof *a.normalizer);
    a.steep = un_arena_alloc(arena, n, sizeof *a.steep);
    a.band = un_arena_alloc(arena, n, 1);
    a.known = un_arena_alloc(arena, n, 1);
    bool able = from && a.normalizer && a.steep && a.band && a.known;
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    a.from = from;
    un_part own = un_leaves_own(m);
    size_t bytes = (n - 1) * sizeof *from;
    un_parallel_part(ctx, own, 1024, find_colour, &a);
    un_leaves_spread(m, a.normalizer, sizeof *a.normalizer);
    un_leaves_spread(m, def->colour, sizeof *def->colour);
    un_leaves_spread(m, def->phi, sizeof *def->phi);
    if (def->walls->solid) {
        memcpy(from, def->phi, bytes);
        un_parallel_part(ctx, own, 1024, move_to_centres, &a);
        un_leaves_spread(m, def->phi, sizeof *def->phi);
    }
    un_leaves_each(m, 8192, find_known, &a);
    for (a.pass = 1; a.pass <= EXTEND_PASSES; a.pass++) {
        memcpy(from, def->phi, bytes);
        un_parallel_part(ctx, own, 1024, extend, &a);
        un_leaves_spread(m, def->phi, sizeof *def->phi);
        un_leaves_spread(m, a.known, sizeof *a.known);
    }
    memcpy(from, def->phi, bytes);
    un_parallel_part(ctx, own, 1024, fill_gaps, &a);
    un_leaves_spread(m, def->phi, sizeof *def->phi);
    un_parallel_part(ctx, own, 1024, find_band, &a);
    un_leaves_spread(m, a.band, sizeof *a.band);
    memcpy(from, def->phi, bytes);
    un_parallel_part(ctx, own, 1024, steady, &a);
    un_leaves_spread(m, def->phi, sizeof *def->phi);
    memcpy(from, def->phi, bytes);
    un_parallel_part(ctx, own, 1024, find_steepness, &a);
    un_leaves_spread(m, a.steep, sizeof *a.steep);
    un_parallel_part(ctx, own, 1024, straighten, &a);
    un_leaves_spread(m, def->phi, sizeof *def->phi);
    UN_TRY(redistance(ctx, &a, arena));
    un_leaves_each(m, 4096, open_sides, &a);
    return UN_OK;
}

/* ---- volume ---- */

typedef struct volume_args {
    leaf_args a;
    const float *phi;
    const uint8_t *thick;
} volume_args;

static void volume_block(void *arg, int64_t begin, int64_t end, double *sums)
{
    const volume_args *v = arg;
    const un_leaves *m = v->a.m;
    const un_leaf_walls *w = v->a.def->walls;
    double sum = *sums;
    un_centre_finder phi;
    un_centre_finder_init(&phi, m, v->phi, NULL);
    for (int64_t c = begin; c < end; c++) {
        double d = v->phi[c] / un_leaf_size(m, c), open = w->volume[c] * un_leaf_volume(m, c);
        if (open <= 0 || d >= 0.87 || (v->thick && !v->thick[c])) continue;
        double part = 1;
        if (d > -0.87) {
            beyond b;
            look_around(&v->a, (int32_t)c, &phi, &b);
            part = un_cube_below_plane(normal_of(&v->a, (int32_t)c, v->phi[c], &b), -d);
        }
        sum += part * open;
    }
    *sums = sum;
}

double un_leaf_liquid_volume(un_context *ctx, const un_leaf_level_set *def, const uint8_t *thick)
{
    volume_args v = {.a = {.def = def, .m = def->leaves}, .phi = def->phi, .thick = thick};
    const un_leaves *m = def->leaves;
    un_part own = un_leaves_own(m);
    double sum = 0;
    if (m->share)
        un_ranks_sums(ctx, (un_range){own.begin, own.end, m->count}, 1, volume_block, &v, &sum);
    else
        un_parallel_sums(ctx, m->count, 1, volume_block, &v, &sum);
    return sum;
}

/* ---- where liquid is thick (thick.c) ---- */

/* Leaves that a wall leaves open by less are not core by themselves: with a thin open layer under
 * it, a film of less than a cell would be, and a sheet would leave a plate with all of its noise.
 */
#define CORE_OPEN 0.5

typedef struct thick_args {
    uint8_t *thick;
    const uint8_t *from; /* for the core: 1 where there is liquid or nothing is open */
    const un_leaf_level_set *def;
} thick_args;

/* Are the flags of all leaves around c other than this value? */
static bool all_around(const un_leaves *m, int64_t c, const uint8_t *flag, uint8_t not )
{
    const int32_t *near = un_leaf_near(m, c);
    const uint8_t *level = m->tree->level;
    for (int n = 0; n < m->near_count; n++) {
        int32_t first = near[n], last = first + 1;
        if (first < 0) continue;
        if (level[first] > level[c]) un_leaves_range(m, (int32_t)c, n, &first, &last);
        for (int32_t k = first; k < last; k++)
            if (flag[k] == not ) return false;
    }
    return true;
}

static void find_core(void *arg, int64_t begin, int64_t end)
{
    const thick_args *a = arg;
    const un_leaves *m = a->def->leaves;
    const float *phi = a->def->phi, *open = a->def->walls->volume;
    for (int64_t c = begin; c < end; c++) {
        bool core = phi[c] < 0 && open[c] >= (float)CORE_OPEN;
        a->thick[c] = core && all_around(m, c, a->from, 0);
    }
}

static void widen(void *arg, int64_t begin, int64_t end)
{
    const thick_args *a = arg;
    const un_leaves *m = a->def->leaves;
    for (int64_t c = begin; c < end; c++) {
        bool thick = a->from[c];
        if (!thick && a->def->phi[c] < (float)(1.49 * un_leaf_size(m, c)))
            thick = !all_around(m, c, a->from, 1);
        a->thick[c] = thick;
    }
}

un_status un_surface_thick_leaves(un_context *ctx, un_arena *arena, uint8_t **thick,
                                  const un_leaf_level_set *def)
{
    size_t n = (size_t)def->leaves->count + 1;
    uint8_t *first = un_arena_alloc(arena, n, 1), *second = un_arena_alloc(arena, n, 1);
    uint8_t *full = un_arena_alloc(arena, n, 1);
    bool able = first && second && full;
    UN_TRY(un_leaves_agree(def->leaves, able ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t k = 0; k < un_leaves_runs(def->leaves); k++)
        for (int64_t c = un_leaves_run(def->leaves, k).begin; c < un_leaves_run(def->leaves, k).end;
             c++)
            full[c] = def->phi[c] < 0 || !(def->walls->volume[c] > 0);
    thick_args a = {first, full, def};
    un_part own = un_leaves_own(def->leaves);
    un_parallel_part(ctx, own, 1024, find_core, &a);
    un_leaves_spread(def->leaves, a.thick, 1);
    for (int layer = 0; layer < 2; layer++) {
        const uint8_t *last = a.thick;
        a.thick = layer == 0 ? second : first;
        a.from = last;
        un_parallel_part(ctx, own, 1024, widen, &a);
        un_leaves_spread(def->leaves, a.thick, 1);
    }
    *thick = a.thick;
    return UN_OK;
}
