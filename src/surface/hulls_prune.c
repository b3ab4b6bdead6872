/* Finds which hulls of pairwise near particles make up the outside of their union.
 *
 * Particles are joined within l (r_i + r_j). Every triplet of joined particles has two planes that
 * touch all three spheres from one side, its faces. A face counts only if no fourth particle,
 * joined to all three, rises above its plane: otherwise a triplet of these four has a face further
 * out. A pair counts only if no particle joined to both rises above its cone anywhere, a sphere
 * only if no particle joined to it sticks out of it. The rest has the same outside: of more than a
 * hundred triplets per surface particle, fewer than two.
 *
 * All faces at a pair (i, j) are found together. A plane that touches both spheres has the normal
 *     n = -kappa t + s (cos theta a + sin theta b),   kappa = (r_j - r_i) / L,  s^2 = 1 - kappa^2,
 * with t along the pair, at distance L, and a, b across. A particle m at p from i rises above it if
 *     cos theta (p.a) + sin theta (p.b) > q_m := (r_i - r_m + kappa p.t) / s,
 * so the planes that touch a third particle k too are where this is an equality, and whether any
 * other rises above one of them is a comparison of two products.
 *
 * A triplet is judged at its smallest particle, whose larger neighbours are few at any ratio of
 * sizes. Much smaller ones do not take part in the tests there: they could only prune more. */
#include "base/lanes.h"
#include "surface/hulls.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

/* In radii: a particle must rise by this much to count as above a plane. Far above round-off, so
 * that of particles in one plane none prunes the other. */
#define RISE 1e-6
/* Neighbours below this share of a particle's radius are left out. */
#define SMALLEST 0.25f
/* Most neighbours of a particle; some 30 in quiet liquid. Larger crowds are thinned out, and in a
 * crowd half as large a particle may give way to another within this share of its radius. */
#define HOOD_MAX 256
#define CROWDED 0.1
#define HOOD_WORDS (HOOD_MAX / 64)
/* Groups of points per block, and room for hulls per owner in it. */
#define BLOCK_GROUPS 32
#define ROOM_EACH 6
#define NEAR_MAX 2048
/* Boxes are compared in single precision. They are widened by this share, so that none is
 * missed. */
#define ROUNDING 1e-6

/* The neighbours of point i. */
typedef struct hood {
    int32_t i, count;
    double xi[3], ri, size_i;
    double x[3][HOOD_MAX], r[HOOD_MAX], size[HOOD_MAX];
    int32_t id[HOOD_MAX];
    uint8_t role[HOOD_MAX];
    uint64_t joined[HOOD_MAX][HOOD_WORDS];
    /* about a pair: across it, and the height to rise above */
    double pa[HOOD_MAX], pb[HOOD_MAX], q[HOOD_MAX];
} hood;

typedef struct prune_block {
    un_hull_entry *entry;
    int64_t capacity, count;
    bool lacking; /* room was lacking: count exceeded the capacity */
    int64_t owner_count, pair_count, triplet_count;
    int64_t face_count, cone_count, sphere_count;
} prune_block;

typedef struct prune_args {
    const un_hull_points *points;
    prune_block *blocks;
    bool again; /* only blocks that lacked room */
} prune_args;

/* Bits of the first eight values that are not above zero. */
static inline uint32_t not_above_zero(const double *v)
{
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask(_mm512_loadu_pd(v), _mm512_setzero_pd(), _CMP_LE_OQ);
#elif defined(__AVX__)
    __m256d zero = _mm256_setzero_pd();
    int low = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(v), zero, _CMP_LE_OQ));
    int high = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(v + 4), zero, _CMP_LE_OQ));
    return (uint32_t)(low | high << 4);
#else
    uint32_t bits = 0;
    for (int32_t l = 0; l < 8; l++) bits |= (uint32_t)(v[l] <= 0) << l;
    return bits;
#endif
}

/* ---- neighbours ---- */

static inline double square(double v)
{
    return v * v;
}

/* Keeps only neighbours that lie apart from those kept before, at growing distances, until half the
 * room is free. Only for crowds that no working simulation has. */
static void thin_out(hood *h)
{
    for (double apart = 0.25 * h->ri; h->count > HOOD_MAX / 2; apart *= 1.5) {
        int32_t kept = 0;
        for (int32_t j = 0; j < h->count; j++) {
            bool crowded = false;
            for (int32_t k = 0; k < kept && !crowded; k++)
                crowded = square(h->x[0][j] - h->x[0][k]) + square(h->x[1][j] - h->x[1][k]) +
                              square(h->x[2][j] - h->x[2][k]) <=
                          square(apart);
            if (crowded) continue;
            for (int32_t a = 0; a < 3; a++) h->x[a][kept] = h->x[a][j];
            h->r[kept] = h->r[j];
            h->size[kept] = h->size[j];
            h->id[kept] = h->id[j];
            h->role[kept] = h->role[j];
            kept++;
        }
        h->count = kept;
        if (!(apart > 0)) h->count = un_clampi(kept, 0, HOOD_MAX / 2);
    }
}

static uint64_t hash_point(const un_hull_points *p, int32_t i)
{
    return un_hash64(p->number ? p->number[i] : (uint64_t)i);
}

/* A particle gives way to larger ones, and to some of equal size, so that whole rows do not
 * vanish. */
static bool gives_way(const hood *h, const un_hull_points *p, int32_t j, double rj)
{
    return rj > h->ri || hash_point(p, j) > hash_point(p, h->i);
}

/* Adds the joined points of a group. False if one of them contains i entirely, because then a hull
 * with that one in place of i contains any hull of i; or if i gives way in a crowd. */
static bool add_group(hood *h, const un_hull_points *p, int32_t group)
{
    int32_t begin = UN_GROUP * group, count = un_clampi(p->count - begin, 0, UN_GROUP);
    double gap[UN_GROUP], d2[UN_GROUP];
    const double *x = p->x[0] + begin, *y = p->x[1] + begin, *z = p->x[2] + begin;
    const float *r = p->radius + begin, *size = p->size + begin;
    /* the arrays have room for a whole last group */
    for (int32_t l = 0; l < UN_GROUP; l++) {
        d2[l] = square(x[l] - h->xi[0]) + square(y[l] - h->xi[1]) + square(z[l] - h->xi[2]);
        gap[l] = d2[l] - square(p->reach * (h->size_i + size[l]));
    }
    uint32_t near = not_above_zero(gap) & ((1u << count) - 1);
    for (; near; near &= near - 1) {
        int32_t l = __builtin_ctz(near), j = begin + l;
        if (j == h->i || !(p->role[j] & UN_HULL_HELPER) || size[l] < SMALLEST * (float)h->size_i)
            continue;
        double rj = r[l];
        double close = h->count < HOOD_MAX / 2 ? rj - h->ri : fmax(rj - h->ri, CROWDED * h->ri);
        if (rj >= h->ri && d2[l] <= square(close) && gives_way(h, p, j, rj)) return false;
        if (h->count == HOOD_MAX) thin_out(h);
        int32_t at = h->count++;
        h->x[0][at] = x[l], h->x[1][at] = y[l], h->x[2][at] = z[l];
        h->r[at] = rj;
        h->size[at] = size[l];
        h->id[at] = j;
        h->role[at] = p->role[j];
    }
    return true;
}

/* Larger than i, by size and then by number. */
static inline bool is_larger(const hood *h, int32_t j)
{
    return h->size[j] > h->size_i || (h->size[j] == h->size_i && h->id[j] > h->i);
}

/* True if j may belong to a pair or triplet that is judged at i. */
static inline bool is_member(const hood *h, int32_t j)
{
    return h->role[j] & UN_HULL_OWNER && is_larger(h, j);
}

/* Finds which members of i's pairs and triplets are joined. Every pair of points is compared with
 * the same numbers everywhere, so that all results agree. */
static void find_joined(hood *h, double reach)
{
    int32_t n = h->count, padded = (n + 7) & ~7;
    for (int32_t m = n; m < padded; m++) {
        h->x[0][m] = h->x[1][m] = h->x[2][m] = h->r[m] = h->size[m] = NAN;
        h->role[m] = 0;
    }
    for (int32_t j = 0; j < n; j++) {
        if (!is_member(h, j)) continue;
        memset(h->joined[j], 0, sizeof h->joined[j]);
        double x = h->x[0][j], y = h->x[1][j], z = h->x[2][j], size = h->size[j], gap[HOOD_MAX];
        for (int32_t m = 0; m < padded; m++)
            gap[m] = square(h->x[0][m] - x) + square(h->x[1][m] - y) + square(h->x[2][m] - z) -
                     square(reach * (size + h->size[m]));
        for (int32_t m = 0; m < padded; m += 8)
            h->joined[j][m / 64] |= (uint64_t)not_above_zero(gap + m) << m % 64;
        h->joined[j][j / 64] &= ~((uint64_t)1 << j % 64);
    }
}

/* ---- judging ---- */

static void set_pair(hood *h, int32_t j, double *room)
{
    un_vec3 xi = un_v3(h->xi[0], h->xi[1], h->xi[2]);
    un_vec3 edge = un_sub(un_v3(h->x[0][j], h->x[1][j], h->x[2][j]), xi);
    double length = un_length(edge), kappa = (h->r[j] - h->ri) / length;
    double s = sqrt(1 - kappa * kappa);
    un_vec3 t = un_scale(edge, 1 / length);
    un_vec3 least = fabs(t.x) < 0.6   ? un_v3(1, 0, 0)
                    : fabs(t.y) < 0.6 ? un_v3(0, 1, 0)
                                      : un_v3(0, 0, 1);
    un_vec3 a = un_normalize(un_cross(t, least)), b = un_cross(t, a);
    double inverse = 1 / s, ri = h->ri;
    int32_t padded = (h->count + 7) & ~7;
    for (int32_t m = 0; m < padded; m++) {
        double px = h->x[0][m] - xi.x, py = h->x[1][m] - xi.y, pz = h->x[2][m] - xi.z;
        h->pa[m] = px * a.x + py * a.y + pz * a.z;
        h->pb[m] = px * b.x + py * b.y + pz * b.z;
        h->q[m] = (ri - h->r[m] + kappa * (px * t.x + py * t.y + pz * t.z)) * inverse;
    }
    *room = RISE * ri * inverse;
}

/* True if no point in `bits` rises above the plane that touches the pair in direction (ca, cb). */
static bool is_exposed(const hood *h, const uint64_t *bits, double ca, double cb, double room)
{
    for (int32_t w = 0; 64 * w < h->count; w++)
        for (uint64_t left = bits[w]; left; left &= left - 1) {
            int32_t m = 64 * w + __builtin_ctzll(left);
            if (ca * h->pa[m] + cb * h->pb[m] - h->q[m] > room) return false;
        }
    return true;
}

static void add_hull(prune_block *block, int32_t i, int32_t j, int32_t k, int32_t sides)
{
    if (block->count < block->capacity)
        block->entry[block->count] = (un_hull_entry){{i, j, k}, sides};
    block->count++;
}

static void judge_pair(const prune_args *a, prune_block *block, hood *h, int32_t j)
{
    double room;
    set_pair(h, j, &room);
    bool alone = true;
    bool image = h->role[j] & a->points->role[h->i] & UN_HULL_IMAGE;
    const uint64_t *common = h->joined[j];
    for (int32_t w = 0; 64 * w < h->count; w++)
        for (uint64_t left = common[w]; left; left &= left - 1) {
            int32_t k = 64 * w + __builtin_ctzll(left);
            double pa = h->pa[k], pb = h->pb[k], q = h->q[k], rho2 = pa * pa + pb * pb;
            if (q < -room || rho2 > square(q + room)) alone = false;
            if (k < j || !is_member(h, k)) continue;
            if (image && h->role[k] & UN_HULL_IMAGE) continue;
            block->triplet_count++;
            if (!(q * q < rho2)) continue; /* never or always above: no face */
            uint64_t others[HOOD_WORDS];
            for (int32_t v = 0; 64 * v < h->count; v++) others[v] = common[v] & h->joined[k][v];
            double across = sqrt(rho2 - q * q), inverse = 1 / rho2;
            double ca = q * pa * inverse, cb = q * pb * inverse;
            double sa = across * pb * inverse, sb = across * pa * inverse;
            int32_t left_side = is_exposed(h, others, ca - sa, cb + sb, room);
            int32_t right_side = is_exposed(h, others, ca + sa, cb - sb, room);
            if (!(left_side | right_side)) continue;
            add_hull(block, h->i, h->id[j], h->id[k], left_side | right_side << 1);
            block->face_count++;
        }
    if (alone && !image) {
        add_hull(block, h->i, h->id[j], h->id[j], 0);
        block->cone_count++;
    }
}

static void judge_point(const prune_args *a, prune_block *block, hood *h)
{
    find_joined(h, a->points->reach);
    bool alone = !(a->points->role[h->i] & UN_HULL_IMAGE);
    for (int32_t j = 0; j < h->count; j++) {
        double d = sqrt(square(h->x[0][j] - h->xi[0]) + square(h->x[1][j] - h->xi[1]) +
                        square(h->x[2][j] - h->xi[2]));
        if (d + h->r[j] > h->ri * (1 + RISE)) alone = false;
        if (!is_member(h, j)) continue;
        if (d + h->r[j] <= h->ri)
            continue; /* contained entirely; possible where size and radius differ */
        block->pair_count++;
        judge_pair(a, block, h, j);
    }
    if (alone) {
        add_hull(block, h->i, h->i, h->i, 0);
        block->sphere_count++;
    }
}

/* ---- blocks of groups ---- */

/* Finds groups with a point of at least radius `smallest` that may be joined to one within the box;
 * returns their number, of which at most `capacity` were written. */
typedef struct near_query {
    const un_hull_points *points;
    un_lanes8 lo[3], hi[3];
    float reach, smallest;
    int32_t *list, capacity, count;
} near_query;

static void find_below(near_query *q, int32_t level, int32_t node)
{
    const un_groups *g = &q->points->groups;
    const un_group_box *box = g->boxes + g->level_first[level] + node;
    un_lanes8 gap2 = un_boxes_gaps(box, q->lo, q->hi), radius = un_lanes8_load(box->radius);
    un_lanes8 reach = radius * (float)(q->points->reach * (1 + ROUNDING)) + q->reach;
    reach *= reach;
    un_lanes8 smallest = un_lanes8_all(q->smallest);
    for (uint32_t left = un_lanes8_less(gap2, reach) & un_lanes8_less(smallest, radius); left;
         left &= left - 1) {
        int32_t child = 8 * node + __builtin_ctz(left);
        if (level > 0)
            find_below(q, level - 1, child);
        else if (q->count++ < q->capacity)
            q->list[q->count - 1] = child;
    }
}

static int32_t find_near(const un_hull_points *p, un_box3 box, float radius, float smallest,
                         int32_t *list, int32_t capacity)
{
    near_query q = {.points = p, .list = list, .capacity = capacity};
    float lo[3] = {(float)box.min.x, (float)box.min.y, (float)box.min.z};
    float hi[3] = {(float)box.max.x, (float)box.max.y, (float)box.max.z}, largest = 0;
    for (int32_t a = 0; a < 3; a++) {
        q.lo[a] = un_lanes8_all(lo[a]);
        q.hi[a] = un_lanes8_all(hi[a]);
        largest = fmaxf(largest, fmaxf(fabsf(lo[a]), fabsf(hi[a])));
    }
    /* never zero: touching boxes are within a reach of zero, and its square must not underflow */
    q.reach = (float)(p->reach * radius * (1 + ROUNDING) + ROUNDING * largest) + 1e-18f;
    q.smallest = smallest * (1 - (float)ROUNDING) - FLT_MIN;
    if (p->groups.level_count > 0) find_below(&q, p->groups.level_count - 1, 0);
    return q.count;
}

/* Finds the groups near group g; returns a negative number if they do not fit. */
static int32_t find_near_group(const un_hull_points *p, int32_t g, int32_t near[NEAR_MAX])
{
    float largest = un_groups_radius(&p->groups, g), smallest = largest;
    for (int32_t q = UN_GROUP * g; q < UN_GROUP * (g + 1) && q < p->count; q++)
        smallest = p->size[q] < smallest ? p->size[q] : smallest;
    int32_t count =
        find_near(p, un_groups_bounds(&p->groups, g), largest, SMALLEST * smallest, near, NEAR_MAX);
    return count <= NEAR_MAX ? count : -count;
}

/* If the group's list is too long, for example because its points lie far apart, each point gets
 * its own list; in a crowd too dense even for that, only a part counts. */
static bool find_hood(hood *h, const un_hull_points *p, int32_t i, const int32_t *near,
                      int32_t near_count)
{
    int32_t own[NEAR_MAX];
    h->i = i;
    h->count = 0;
    for (int32_t a = 0; a < 3; a++) h->xi[a] = p->x[a][i];
    h->ri = p->radius[i];
    h->size_i = p->size[i];
    if (near_count < 0) {
        un_vec3 x = un_v3(h->xi[0], h->xi[1], h->xi[2]);
        near_count =
            find_near(p, (un_box3){x, x}, p->size[i], SMALLEST * p->size[i], own, NEAR_MAX);
        near_count = un_clampi(near_count, 0, NEAR_MAX);
        near = own;
    }
    for (int32_t n = 0; n < near_count; n++)
        if (!add_group(h, p, near[n])) return false;
    return true;
}

static void prune_groups(void *arg, int64_t begin, int64_t end)
{
    prune_args *a = arg;
    const un_hull_points *p = a->points;
    prune_block *block = a->blocks + begin / BLOCK_GROUPS;
    if (a->again && !block->lacking) return;
    *block = (prune_block){.entry = block->entry, .capacity = block->capacity};
    hood h;
    int32_t near[NEAR_MAX];
    for (int32_t g = (int32_t)begin; g < end; g++) {
        int32_t last = un_clampi(UN_GROUP * (g + 1), 0, p->count), near_count = 0;
        bool looked = false;
        for (int32_t i = UN_GROUP * g; i < last; i++) {
            if (p->role[i] & UN_HULL_ALONE) {
                add_hull(block, i, i, i, 0);
                block->sphere_count++;
            }
            if (!(p->role[i] & UN_HULL_OWNER)) continue;
            block->owner_count += !(p->role[i] & UN_HULL_IMAGE);
            if (!looked) near_count = find_near_group(p, g, near), looked = true;
            if (find_hood(&h, p, i, near, near_count)) judge_point(a, block, &h);
        }
    }
}

static void count_owners(void *arg, int64_t begin, int64_t end)
{
    prune_args *a = arg;
    const un_hull_points *p = a->points;
    int64_t count = 0, last = un_min64(UN_GROUP * end, p->count);
    for (int64_t i = UN_GROUP * begin; i < last; i++)
        count += (p->role[i] & (UN_HULL_OWNER | UN_HULL_ALONE)) != 0;
    a->blocks[begin / BLOCK_GROUPS].capacity = ROOM_EACH * count;
}

static un_status give_room(un_arena *arena, prune_block *block, int64_t capacity)
{
    block->capacity = capacity;
    block->entry = un_arena_alloc(arena, (size_t)capacity, sizeof *block->entry);
    return block->entry ? UN_OK : UN_ERROR_MEMORY;
}

static un_status collect(un_arena *arena, const prune_args *a, int64_t block_count,
                         un_hull_list *list, un_hulls_report *report)
{
    for (int64_t b = 0; b < block_count; b++) {
        const prune_block *block = a->blocks + b;
        list->count += block->count;
        report->candidate_count += block->owner_count;
        report->pair_count += block->pair_count;
        report->triplet_count += block->triplet_count;
        report->face_count += block->face_count;
        report->cone_count += block->cone_count;
        report->sphere_count += block->sphere_count;
    }
    list->entry = un_arena_alloc(arena, (size_t)list->count + 1, sizeof *list->entry);
    if (!list->entry) return UN_ERROR_MEMORY;
    un_hull_entry *to = list->entry;
    for (int64_t b = 0; b < block_count; to += a->blocks[b].count, b++)
        if (a->blocks[b].count)
            memcpy(to, a->blocks[b].entry, (size_t)a->blocks[b].count * sizeof *to);
    return UN_OK;
}

/* What the ranks found, one after the other, to all. */
static un_status unite(un_context *ctx, un_arena *arena, un_hull_list *list,
                       un_hulls_report *report)
{
    int64_t *counts[] = {&report->candidate_count, &report->pair_count, &report->triplet_count,
                         &report->face_count,      &report->cone_count, &report->sphere_count};
    void *all;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = un_ranks_total(ctx, *counts[i]);
    UN_TRY(un_ranks_list(ctx, list->entry, list->count, sizeof *list->entry, &all, &list->count));
    list->entry = un_arena_alloc(arena, (size_t)list->count + 1, sizeof *list->entry);
    if (list->entry) memcpy(list->entry, all, (size_t)list->count * sizeof *list->entry);
    un_free(ctx, all);
    return list->entry ? UN_OK : UN_ERROR_MEMORY;
}

static un_status prune(un_context *ctx, un_arena *arena, prune_args *a, un_part part,
                       un_hull_list *list, un_hulls_report *report)
{
    int64_t all = a->points->groups.group_count;
    int64_t block_count = (all + BLOCK_GROUPS - 1) / BLOCK_GROUPS;
    un_part groups = {BLOCK_GROUPS * part.begin, un_min64(all, BLOCK_GROUPS * part.end)};
    a->blocks = un_arena_alloc(arena, (size_t)block_count + 1, sizeof *a->blocks);
    if (!a->blocks) return UN_ERROR_MEMORY;
    memset(a->blocks, 0, (size_t)(block_count + 1) * sizeof *a->blocks);
    un_parallel_part(ctx, groups, BLOCK_GROUPS, count_owners, a);
    for (int64_t b = part.begin; b < part.end; b++)
        UN_TRY(give_room(arena, &a->blocks[b], a->blocks[b].capacity));
    un_parallel_part(ctx, groups, BLOCK_GROUPS, prune_groups, a);

    /* flat lattices have many hulls in one plane: blocks that lacked room are done again */
    for (int64_t b = part.begin; b < part.end; b++)
        if (a->blocks[b].count > a->blocks[b].capacity) {
            UN_TRY(give_room(arena, &a->blocks[b], a->blocks[b].count));
            a->blocks[b].lacking = a->again = true;
        }
    if (a->again) un_parallel_part(ctx, groups, BLOCK_GROUPS, prune_groups, a);
    return collect(arena, a, block_count, list, report);
}

un_status un_hulls_prune(un_context *ctx, un_arena *arena, const un_hull_points *points,
                         bool shared, un_hull_list *list, un_hulls_report *report)
{
    *list = (un_hull_list){0};
    *report = (un_hulls_report){0};
    prune_args a = {.points = points};
    int64_t blocks = (points->groups.group_count + BLOCK_GROUPS - 1) / BLOCK_GROUPS;
    un_part part = un_hulls_part(ctx, shared, blocks);
    UN_TRY(un_hulls_agree(ctx, shared, prune(ctx, arena, &a, part, list, report)));
    return shared ? unite(ctx, arena, list, report) : UN_OK;
}
