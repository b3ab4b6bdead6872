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
 * leaves (leaf_front.c). */
#include "surface/leaf_front.h"

/* As in colour.c: below this the kernel lies in a wall, and phi is extended. */
#define NORMALIZER_MIN 0.5f
/* A leaf in the air with more colour than this is no bubble if liquid is on all its sides: a gap
 * between particles. */
#define BUBBLE_COLOUR 0.25f
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
typedef struct leaf_args {
    const un_leaf_level_set *def;
    const un_leaves *m;
    float *normalizer;
    const float *from;
    uint8_t *band; /* keeps its value */
    float *steep;  /* of the band; 0 elsewhere and where it is not known */
    /* The pass that phi is known from: 0 by its own colour, then as it was extended;
     * UN_LEAF_UNKNOWN deep in walls. */
    uint8_t *known;
    uint8_t pass;
} leaf_args;

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
        a->known[c] = a->normalizer[c] > NORMALIZER_MIN ? 0 : UN_LEAF_UNKNOWN;
}

/* Others may write this pass's number meanwhile, which counts as little as UN_LEAF_UNKNOWN. */
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
        if (a->known[c] != UN_LEAF_UNKNOWN) continue;
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
            if (weight == 0) continue; /* it may be as far away as UN_LEAF_FAR */
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
                if (weight == 0) continue; /* it may be as far away as UN_LEAF_FAR */
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

/* ---- all of it ---- */

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
                band |= there >= 0 && a->known[there] != UN_LEAF_UNKNOWN &&
                        (a->def->phi[there] < 0) != liquid;
            }
        }
        a->band[c] = band && a->known[c] != UN_LEAF_UNKNOWN;
    }
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
    un_leaf_front front = {.leaves = m, .phi = def->phi, .band = a.band, .known = a.known};
    UN_TRY(un_leaf_front_run(ctx, arena, &front));
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
