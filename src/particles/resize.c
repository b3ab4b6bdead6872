/* Splitting and merging [Ando13 section 4].
 *
 * A particle should fill an eighth of its cell: v* = (size / 2)^3, in 2D a quarter, clamped to the
 * volumes of the finest and the coarsest. With v / v* = q:
 *
 *     q > 1.9     splits into two halves, each with q > 0.95: far from merging
 *     q < 0.42    merges with the nearest that leaves q <= 1.5: a fifth below splitting
 *
 * So neither ever causes the other, and resizing ends once wanted sizes stay the same: the wanted
 * size may fall by 7 % around a merged particle and grow by 30 % around a half before they change
 * again. A particle doubles or halves at most once per call.
 *
 * Splitting departs from the paper in how it finds gaps. There each half starts at random within
 * the radius and moves to the mean of the midpoints to its 24 nearest neighbours, weighted by the
 * squared distance from the midpoint to the particle closest to it: the pair's centre of mass moves
 * by half a radius, inwards at the surface, and a hole right beside the particle goes unnoticed.
 * Here the halves lie opposite each other, so that the centre stays, along the one of 24 random
 * axes on which they overlap their neighbours and the wall least. In an even filling of which a
 * tenth was split, the mean of (1 - d / d0)^2 over overlapping pairs is 0.009, against 0.049 with
 * the paper's rule, 0.030 with that rule and opposite starts, and 0.018 on an arbitrary axis; four
 * corrections later it is 0.004, 0.009, 0.008 and 0.007.
 *
 * Near the surface the paper moves new particles up to it. So do we, side by side, but in every
 * third halving one half goes below the other. Otherwise the top layer of coarse liquid would all
 * crowd into one layer, rough and with a gap below.
 *
 * Sheets and threads thinner than a cell (sheets.c) split where their particles lie more than
 * SHEET_SPLIT diameters apart, along the sheet to where it is emptiest, or along the thread, and
 * merge only below SHEET_MERGE; THREAD_SPLIT and THREAD_MERGE are the same for threads. Halving
 * brings the ratio to 0.89 of what it was in a sheet and to 0.63 in a thread: a half is far from
 * merging here, too.
 *
 * Merging keeps volume, momentum and centre of mass. Volumes are single precision: the rounding
 * error of one merged particle is carried to the next, and its velocity makes up for it.
 *
 * Over ranks, each finds what its own particles want, with copies of what is around those that want
 * anything. Pairs are those of one rank (pairs_ranks.c). The rank of a pair's lower particle has
 * the merged one; if the wish was the other's, that one is sent. */
#include "particles/groups.h"
#include "particles/pairs.h"
#include "particles/particles.h"

#define SPLIT_ABOVE 1.9
#define MERGE_BELOW 0.42
#define MERGED_MAX 1.5
/* Particles merge only if they nearly touch: within this many r_i + r_j. */
#define MERGE_REACH 1.5
/* Nearest partners considered; if all are taken, the particle waits for the next call. */
#define PARTNERS 4
#define AXES 24
/* Neighbours considered in a split: in a filling of one size, twice as many as touch. */
#define NEIGHBOURS 64
/* Distance of the halves from the middle, in radii; at 0.79 they touch. The mean above is 0.016
 * with 0.6 and 0.009 with 0.75. */
#define SPLIT_DISTANCE 0.7
/* New particles closer to the surface than this, in radii, are made tangent to it [Ando13]. */
#define TANGENT_WITHIN 1.25
/* New particles keep this distance from walls, in radii, where they can. */
#define WALL_MARGIN 0.25

/* Spacing over diameter above which particles of a sheet and of a thread split, and up to which
 * they merge; they get no smaller than this share of the finest. */
#define SHEET_SPLIT 1.7
#define SHEET_MERGE 1.0
#define THREAD_SPLIT 1.15
#define THREAD_MERGE 0.35
#define SHEET_LEAST 0.45
#define THREAD_LEAST 0.06
/* Distance of the halves from the middle, in spacings. */
#define SHEET_STEP 0.3
#define SHEET_AXES 12

enum { KEEP, SPLIT, MERGE, GONE, SPLIT_SHEET };

typedef struct halves {
    un_vec3 x[2];
    bool found;
} halves;

typedef struct resize_args {
    un_particles *particles;
    const un_resize_def *def;
    uint8_t *kind;                /* by particle */
    int32_t *split, *small;       /* particles to split, to merge */
    halves *halves;               /* by split */
    int32_t (*partner)[PARTNERS]; /* by small one: nearest first, -1 none */
    float (*distance)[PARTNERS];
    int32_t (*pair)[2]; /* merged ones, the lower first; -1 - k: the k-th that is sent here */
    float *merged_volume;
    un_pairs_post post;
    un_part own;        /* this rank's particles */
    int32_t *first_new; /* by split: where its second half goes */
    int64_t split_count, small_count, pair_count;
} resize_args;

static double wanted_volume(const un_particles *p, const un_resize_def *def, double size)
{
    double h = 0.5 * size;
    return un_clamp(p->flat ? h * h : h * h * h, def->volume_min, def->volume_max);
}

/* True if particle i lies in a sheet or a thread with more than the given spacing over diameter,
 * and has at least `parts` times the least volume there. */
static bool is_spread(const resize_args *a, int64_t i, double sheet, double thread, double parts)
{
    const un_sheets *s = a->def->sheets;
    if (!s || s->gap[i] == 0) return false;
    double least = (s->gap[i] < 0 ? THREAD_LEAST : SHEET_LEAST) * a->def->volume_min;
    if ((double)a->particles->volume[i] < parts * least) return false;
    return s->gap[i] > (float)sheet || s->gap[i] < (float)-thread;
}

/* True if a merge would leave a hole. */
static bool covers(const resize_args *a, int64_t i)
{
    return is_spread(a, i, SHEET_MERGE, THREAD_MERGE, 1);
}

static void classify(void *arg, int64_t begin, int64_t end)
{
    const resize_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t i = begin; i < end; i++) {
        double v = p->volume[i], wanted = wanted_volume(p, a->def, p->size[i]);
        bool splits = v > SPLIT_ABOVE * wanted && !(p->flags[i] & UN_PARTICLE_BALLISTIC);
        bool merges = v < MERGE_BELOW * wanted && !covers(a, i);
        a->kind[i] = splits ? SPLIT : merges ? MERGE : KEEP;
        if (!splits && is_spread(a, i, SHEET_SPLIT, THREAD_SPLIT, 2)) a->kind[i] = SPLIT_SHEET;
    }
}

void un_particles_find_resized(un_context *ctx, uint8_t *resized, const un_particles *particles,
                               const un_resize_def *def)
{
    resize_args a = {
        .particles = (un_particles *)(uintptr_t)particles, .def = def, .kind = resized};
    un_parallel_for(ctx, particles->count, 2048, classify, &a);
    for (int32_t i = 0; i < particles->count; i++) resized[i] = resized[i] != KEEP;
}

/* Moves a particle within TANGENT_WITHIN times `near` of the surface so that it just touches it, if
 * walls allow. */
static un_vec3 make_tangent(const resize_args *a, un_vec3 x, double phi, un_vec3 normal, double r,
                            double near)
{
    if (!(fabs(phi) < TANGENT_WITHIN * near) || !(un_dot(normal, normal) > 0.25)) return x;
    un_vec3 to = un_mad(x, un_normalize(normal), -r - phi);
    return un_open_move(a->def->walls, x, to, WALL_MARGIN * r) ? to : x;
}

static un_vec3 normal_at(const un_resize_def *def, int32_t i)
{
    return un_v3((double)def->normal[0][i], (double)def->normal[1][i], (double)def->normal[2][i]);
}

static bool at_surface(const un_resize_def *def, int32_t i)
{
    return fabsf(def->phi[i]) < (float)TANGENT_WITHIN * def->radius[i];
}

/* ---- splitting ---- */

/* Obstacles for a half: positions relative to the whole, and how far its centre must stay away. */
typedef struct surroundings {
    int32_t count;
    float x[3][NEIGHBOURS], reach[NEIGHBOURS];
    double wall; /* distance to it */
    un_vec3 wall_normal;
} surroundings;

static void look_around(surroundings *s, const resize_args *a, int32_t i, double r_half)
{
    const un_particles *p = a->particles;
    const un_walls *walls = a->def->walls;
    double step = SPLIT_DISTANCE * (double)a->def->radius[i];
    un_vec3 x = un_particle_position(p, i);
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->def->groups, (un_box3){x, x}, step + r_half, 1);
    s->count = 0;
    for (int32_t g; s->count < NEIGHBOURS && (g = un_groups_walk_next(&walk)) >= 0;)
        for (int32_t j = g * UN_GROUP; j < (g + 1) * UN_GROUP && j < p->count; j++) {
            un_vec3 d = un_sub(un_particle_position(p, j), x);
            double reach = r_half + (double)a->def->radius[j];
            if (j == i || s->count == NEIGHBOURS || !(un_length(d) < step + reach)) continue;
            s->x[0][s->count] = (float)d.x;
            s->x[1][s->count] = (float)d.y;
            s->x[2][s->count] = (float)d.z;
            s->reach[s->count++] = (float)reach;
        }
    for (int32_t n = s->count; n % UN_GROUP; n++) /* nobody: the rest of the last eight */
        s->x[0][n] = s->x[1][n] = s->x[2][n] = s->reach[n] = 0;
    s->wall = un_walls_distance_exact(walls, x);
    s->wall_normal = un_v3(0, 0, 0);
    if (s->wall >= step + r_half) return;
    double e = 0.05 * r_half;
    un_vec3 n = {un_walls_distance_exact(walls, un_v3(x.x + e, x.y, x.z)) - s->wall,
                 un_walls_distance_exact(walls, un_v3(x.x, x.y + e, x.z)) - s->wall,
                 un_walls_distance_exact(walls, un_v3(x.x, x.y, x.z + e)) - s->wall};
    s->wall_normal = un_normalize(n);
}

static double overlap(const surroundings *s, un_vec3 step, double r_half)
{
    double cost = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        un_lanes8 sum = {0};
        for (int32_t n = 0; n < s->count; n += UN_GROUP) {
            un_lanes8 dx = un_lanes8_load(s->x[0] + n) - (float)(sign * step.x);
            un_lanes8 dy = un_lanes8_load(s->x[1] + n) - (float)(sign * step.y);
            un_lanes8 dz = un_lanes8_load(s->x[2] + n) - (float)(sign * step.z);
            un_lanes8 d = un_lanes8_sqrt(dx * dx + dy * dy + dz * dz);
            un_lanes8 deep = un_lanes8_positive(un_lanes8_load(s->reach + n) - d);
            sum += deep * deep;
        }
        cost += un_lanes8_sum(sum);
        double gap = s->wall + sign * un_dot(s->wall_normal, step) - r_half;
        if (gap < 0) cost += 4 * gap * gap; /* like its own mirror image */
    }
    return cost;
}

static un_vec3 random_direction(const resize_args *a, int32_t i, uint64_t number)
{
    uint64_t stream = 128 * a->def->stream + 4 * number;
    uint64_t q = (uint64_t)un_particle_number(a->def->share, i);
    un_vec3 d = {un_random(q, stream) - 0.5, un_random(q, stream + 1) - 0.5,
                 a->particles->flat ? 0 : un_random(q, stream + 2) - 0.5};
    return un_normalize(d);
}

static un_vec3 without(un_vec3 v, un_vec3 normal)
{
    return un_mad(v, normal, -un_dot(v, normal));
}

/* Of three halvings that make eight of one, two go along the surface and the third across it; in
 * 2D, of two that make four, the second goes across. In calm liquid, particles that split now and
 * then and merge again never reach the last. */
static bool splits_across(const resize_args *a, int32_t i)
{
    int along = a->particles->flat ? 1 : 2;
    return at_surface(a->def, i) &&
           (a->particles->flags[i] & UN_PARTICLE_HALVED_MASK) >= along * UN_PARTICLE_HALVED;
}

static uint8_t count_halving(const resize_args *a, int32_t i)
{
    uint8_t flags = a->particles->flags[i];
    if (splits_across(a, i)) return flags & (uint8_t)~UN_PARTICLE_HALVED_MASK;
    return at_surface(a->def, i) ? (uint8_t)(flags + UN_PARTICLE_HALVED) : flags;
}

/* Candidate steps of the halves, the one with the least overlap first. At the surface they run
 * along it, so that both halves can be tangent to it; at a wall every other one runs along it. */
static void find_steps(un_vec3 step[AXES], const resize_args *a, int32_t i, double r_half)
{
    surroundings s;
    look_around(&s, a, i, r_half);
    double r = a->def->radius[i], cost[AXES];
    bool surface = at_surface(a->def, i), across = splits_across(a, i);
    for (int32_t n = 0; n < AXES; n++) {
        un_vec3 d = random_direction(a, i, (uint64_t)n);
        if (n % 2) d = without(d, s.wall_normal);
        if (across)
            d = normal_at(a->def, i);
        else if (surface)
            d = without(d, normal_at(a->def, i));
        d = un_scale(un_normalize(d), SPLIT_DISTANCE * r);
        double c = overlap(&s, d, r_half);
        int32_t k = n;
        for (; k > 0 && cost[k - 1] > c; k--) {
            cost[k] = cost[k - 1];
            step[k] = step[k - 1];
        }
        cost[k] = c;
        step[k] = d;
    }
}

/* The halves go both ways along the best axis, half as far where walls block that; failing that,
 * one half stays and the other moves. */
static halves place_halves(const resize_args *a, int32_t i)
{
    const un_resize_def *def = a->def;
    un_vec3 x = un_particle_position(a->particles, i), step[AXES];
    double r_half = 0.5 * un_particles_spacing(a->particles, 0.5 * (double)a->particles->volume[i]);
    double margin = WALL_MARGIN * r_half;
    halves h = {{x, x}, false};
    find_steps(step, a, i, r_half);
    for (int32_t n = 0; n < 3 * AXES && !h.found; n++) {
        bool near = n >= AXES && n < 2 * AXES, one = n >= 2 * AXES;
        un_vec3 way = un_scale(step[n % AXES], near ? 0.5 : 1);
        un_vec3 there = un_add(x, way), opposite = un_sub(x, way);
        bool first = un_open_move(def->walls, x, there, margin);
        bool second = un_open_move(def->walls, x, opposite, margin);
        h.found = (first && second) || (one && (first || second));
        if (h.found && first) h.x[0] = there;
        if (h.found && second) h.x[1] = opposite;
    }
    /* If the whole was at the surface, so are its halves: being smaller, they would leave a dimple
     * if they stayed as deep. */
    un_vec3 normal = normal_at(def, i);
    double near = at_surface(def, i) ? (double)def->radius[i] : r_half;
    bool across = splits_across(a, i);
    for (int k = 0; k < 2 && h.found; k++) {
        double way = un_dot(normal, un_sub(h.x[k], x)), phi = (double)def->phi[i] + way;
        bool below = across && way < 0;
        /* the lower half keeps clear of the other */
        if (below) phi += 2 * r_half;
        h.x[k] = make_tangent(a, h.x[k], phi, normal, r_half, below ? 4 * near : near);
    }
    return h;
}

/* How close the halves come to others: the sum of 1 / d^4. */
static double nearness(const resize_args *a, int32_t i, un_vec3 step, double reach)
{
    const un_particles *p = a->particles;
    un_vec3 x = un_particle_position(p, i);
    double cost = 0;
    un_groups_walk walk;
    un_groups_walk_begin(&walk, a->def->groups, (un_box3){x, x}, reach, 0);
    for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
        for (int32_t j = g * UN_GROUP; j < (g + 1) * UN_GROUP && j < p->count; j++) {
            un_vec3 d = un_sub(un_particle_position(p, j), x);
            if (j == i || !(un_length(d) < reach)) continue;
            for (int sign = -1; sign <= 1; sign += 2) {
                un_vec3 way = un_mad(d, step, -sign);
                double d2 = un_dot(way, way) / (reach * reach);
                cost += 1 / (d2 * d2 + 1e-6);
            }
        }
    return cost;
}

/* The halves of a particle in a sheet go apart along it, those in a thread along the thread. */
static halves place_sheet_halves(const resize_args *a, int32_t i)
{
    const un_sheets *s = a->def->sheets;
    un_vec3 x = un_particle_position(a->particles, i), best = {0, 0, 0};
    un_vec3 axis = {(double)s->axis[0][i], (double)s->axis[1][i], (double)s->axis[2][i]};
    double spacing = 2 * (double)(fabsf(s->gap[i]) * a->def->radius[i]), least = INFINITY;
    double margin = WALL_MARGIN * (double)a->def->radius[i];
    halves h = {{x, x}, false};
    for (int32_t n = 0; n < (s->gap[i] < 0 ? 1 : SHEET_AXES); n++) {
        un_vec3 d = s->gap[i] < 0 ? axis : without(random_direction(a, i, (uint64_t)n), axis);
        un_vec3 step = un_scale(un_normalize(d), SHEET_STEP * spacing);
        double cost = nearness(a, i, step, 1.5 * spacing);
        if (!(cost < least)) continue;
        if (!un_open_move(a->def->walls, x, un_add(x, step), margin) ||
            !un_open_move(a->def->walls, x, un_sub(x, step), margin))
            continue;
        least = cost;
        best = step;
        h.found = true;
    }
    h.x[0] = un_add(x, best);
    h.x[1] = un_sub(x, best);
    return h;
}

static void find_halves(void *arg, int64_t begin, int64_t end)
{
    const resize_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->split[n];
        bool sheet = a->kind[i] == SPLIT_SHEET;
        a->halves[n] = sheet ? place_sheet_halves(a, i) : place_halves(a, i);
    }
}

/* Halving a float is exact and both halves keep the velocity, so volume and momentum are conserved
 * exactly. */
static void apply_splits(void *arg, int64_t begin, int64_t end)
{
    const resize_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->split[n], j = a->first_new[n];
        if (!a->halves[n].found) continue;
        if (a->kind[i] != SPLIT_SHEET) p->flags[i] = count_halving(a, i);
        un_particle_copy(p, j, i);
        p->volume[j] = 0.5f * p->volume[i];
        p->volume[i] -= p->volume[j];
        un_particle_set_position(p, i, a->halves[n].x[0]);
        un_particle_set_position(p, j, a->halves[n].x[1]);
    }
}

/* ---- merging ---- */

/* True if the two would make a particle that need not split. */
static bool fit_together(const resize_args *a, int32_t i, int32_t j)
{
    const un_particles *p = a->particles;
    if (j == i || a->kind[j] == SPLIT || a->kind[j] == SPLIT_SHEET || covers(a, j)) return false;
    if ((p->flags[i] ^ p->flags[j]) & UN_PARTICLE_BALLISTIC) return false;
    double vi = p->volume[i], vj = p->volume[j], v = vi + vj;
    if (!(v > 0)) return false;
    double size = (vi * (double)p->size[i] + vj * (double)p->size[j]) / v;
    return v <= MERGED_MAX * wanted_volume(p, a->def, size);
}

static void find_partners(void *arg, int64_t begin, int64_t end)
{
    const resize_args *a = arg;
    const un_particles *p = a->particles;
    const float *radius = a->def->radius;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->small[n], *partner = a->partner[n];
        float *distance = a->distance[n];
        un_vec3 x = un_particle_position(p, i);
        for (int k = 0; k < PARTNERS; k++) partner[k] = -1;
        un_groups_walk walk;
        un_groups_walk_begin(&walk, a->def->groups, (un_box3){x, x},
                             MERGE_REACH * (double)radius[i], MERGE_REACH);
        for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
            for (int32_t j = g * UN_GROUP; j < (g + 1) * UN_GROUP && j < p->count; j++) {
                un_vec3 y = un_particle_position(p, j);
                float d = (float)un_length(un_sub(y, x));
                if (!(d <= (float)MERGE_REACH * (radius[i] + radius[j]))) continue;
                int k = PARTNERS;
                while (k > 0 && (partner[k - 1] < 0 || d < distance[k - 1])) k--;
                if (k == PARTNERS || !fit_together(a, i, j)) continue;
                if (!un_open_way(a->def->walls, x, y)) continue;
                for (int m = PARTNERS - 1; m > k; m--) {
                    partner[m] = partner[m - 1];
                    distance[m] = distance[m - 1];
                }
                partner[k] = j;
                distance[k] = d;
            }
    }
}

/* In the order of particles, nearest first. */
static un_status list_wishes(un_arena *arena, const resize_args *a, un_pair_wish **wishes,
                             int64_t *count)
{
    const un_particle_share *share = a->def->share;
    const float *volume = a->particles->volume;
    int64_t room = a->small_count * PARTNERS;
    *wishes = un_arena_alloc(arena, (size_t)room + 1, sizeof **wishes);
    *count = 0;
    if (!*wishes) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < room; n++) {
        int32_t i = a->small[n / PARTNERS], j = a->partner[n / PARTNERS][n % PARTNERS];
        if (j < 0) continue;
        (*wishes)[(*count)++] = (un_pair_wish){.i = (uint32_t)un_particle_number(share, i),
                                               .j = (uint32_t)un_particle_number(share, j),
                                               .distance = a->distance[n / PARTNERS][n % PARTNERS],
                                               .vi = volume[i],
                                               .vj = volume[j]};
    }
    return UN_OK;
}

/* Where a particle is here; -1: nowhere. */
static int32_t place_of(const un_particle_share *share, int64_t group_count, uint32_t number)
{
    int64_t low = 0, high = group_count;
    if (!share) return (int32_t)number;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (share->group[middle] <= number / UN_GROUP)
            low = middle;
        else
            high = middle;
    }
    if (high == 0 || share->group[low] != number / UN_GROUP) return -1;
    return (int32_t)(low * UN_GROUP + number % UN_GROUP);
}

static bool is_own(const resize_args *a, int32_t i)
{
    return i >= a->own.begin && i < a->own.end;
}

static un_partner partner_at(const resize_args *a, int32_t j)
{
    const un_particles *p = a->particles;
    un_partner o = {
        .volume = p->volume[j], .size = p->size[j], .phi = a->def->phi[j], .fall = p->fall[j]};
    if (p->density) {
        o.density = p->density[j];
        o.viscosity = p->viscosity[j];
    }
    for (int axis = 0; axis < 3; axis++) {
        o.x[axis] = p->x[axis][j];
        o.v[axis] = p->v[axis][j];
        o.normal[axis] = a->def->normal[axis][j];
    }
    return o;
}

/* Of the pairs of this rank's particles, those that it has the merged one of; the others go. */
static un_status keep_pairs(un_context *ctx, un_arena *arena, resize_args *a, const un_pair *pairs,
                            int64_t count)
{
    const un_particle_share *share = a->def->share;
    int32_t groups = a->def->groups->group_count;
    a->pair = un_arena_alloc(arena, (size_t)count + 1, sizeof *a->pair);
    a->merged_volume = un_arena_alloc(arena, (size_t)count + 1, sizeof(float));
    if (!a->pair || !a->merged_volume) return UN_ERROR_MEMORY;
    if (share) UN_TRY(un_pairs_address(ctx, arena, &a->post, share->own, pairs, count));
    for (int64_t n = 0; n < count; n++) {
        int32_t i = place_of(share, groups, pairs[n].lower), slot = share ? a->post.slot[n] : -1;
        int32_t j = place_of(share, groups, pairs[n].upper);
        if (is_own(a, j)) {
            a->kind[j] = GONE;
            if (slot >= 0) a->post.out[slot] = partner_at(a, j);
        }
        if (!is_own(a, i)) continue;
        UN_ASSERT(j >= 0 || slot >= 0);
        a->merged_volume[a->pair_count] = pairs[n].volume;
        a->pair[a->pair_count][0] = i;
        a->pair[a->pair_count++][1] = slot >= 0 ? -1 - slot : j;
    }
    return UN_OK;
}

static un_status choose_pairs(un_context *ctx, un_arena *arena, resize_args *a)
{
    const un_particle_share *share = a->def->share;
    un_pair_wish *wishes;
    un_pair *pairs;
    int64_t count, pair_count;
    un_status status = list_wishes(arena, a, &wishes, &count);
    if (share) {
        UN_TRY(un_ranks_agree(ctx, status));
        UN_TRY(un_pairs_choose_ranks(ctx, arena, share->own, wishes, count, &pairs, &pair_count));
    } else {
        UN_TRY(status);
        UN_TRY(
            un_pairs_choose(ctx, arena, wishes, count, a->particles->count, &pairs, &pair_count));
    }
    return keep_pairs(ctx, arena, a, pairs, pair_count);
}

/* Weighted mean of i and j: exact where they agree. */
static double blend(double i, double j, double share_j)
{
    return i + share_j * (j - i);
}

static void apply_merges(void *arg, int64_t begin, int64_t end)
{
    const resize_args *a = arg;
    const un_resize_def *def = a->def;
    un_particles *p = a->particles;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->pair[n][0], j = a->pair[n][1];
        un_partner o = j < 0 ? a->post.in[-1 - j] : partner_at(a, j);
        double vi = p->volume[i], vj = o.volume, share = vj / (vi + vj);
        double x[3], normal[3], mass_share = share, heavier = (vi + vj) / a->merged_volume[n];
        if (p->density) {
            double mi = vi * (double)p->density[i], mj = vj * (double)o.density;
            mass_share = mj / (mi + mj);
            p->density[i] = (float)blend((double)p->density[i], (double)o.density, share);
            heavier = (mi + mj) / ((double)a->merged_volume[n] * (double)p->density[i]);
            p->viscosity[i] = (float)blend((double)p->viscosity[i], (double)o.viscosity, share);
        }
        for (int axis = 0; axis < 3; axis++) {
            x[axis] = blend(p->x[axis][i], o.x[axis], mass_share);
            p->v[axis][i] = blend(p->v[axis][i], o.v[axis], mass_share) * heavier;
            normal[axis] = blend((double)def->normal[axis][i], (double)o.normal[axis], share);
        }
        p->fall[i] = (uint8_t)(blend(p->fall[i], o.fall, mass_share) + 0.5);
        p->volume[i] = a->merged_volume[n];
        p->flags[i] &= (uint8_t) ~(UN_PARTICLE_HALVED_MASK | UN_PARTICLE_LANDED);
        p->size[i] = (float)blend((double)p->size[i], (double)o.size, share);
        double phi = blend((double)def->phi[i], (double)o.phi, share);
        double r = 0.5 * un_particles_spacing(p, (double)p->volume[i]);
        un_vec3 middle = {x[0], x[1], x[2]}, n_middle = {normal[0], normal[1], normal[2]};
        un_particle_set_position(p, i, make_tangent(a, middle, phi, n_middle, r, r));
    }
}

/* ---- both ---- */

static un_status list_kinds(un_arena *arena, resize_args *a)
{
    int32_t begin = (int32_t)a->own.begin, end = (int32_t)a->own.end;
    for (int32_t i = begin; i < end; i++) {
        a->split_count += a->kind[i] == SPLIT || a->kind[i] == SPLIT_SHEET;
        a->small_count += a->kind[i] == MERGE;
    }
    a->split = un_arena_alloc(arena, (size_t)a->split_count + 1, sizeof *a->split);
    a->first_new = un_arena_alloc(arena, (size_t)a->split_count + 1, sizeof *a->first_new);
    a->halves = un_arena_alloc(arena, (size_t)a->split_count + 1, sizeof *a->halves);
    a->small = un_arena_alloc(arena, (size_t)a->small_count + 1, sizeof *a->small);
    a->partner = un_arena_alloc(arena, (size_t)a->small_count + 1, sizeof *a->partner);
    a->distance = un_arena_alloc(arena, (size_t)a->small_count + 1, sizeof *a->distance);
    if (!a->split || !a->first_new || !a->halves || !a->small || !a->partner || !a->distance)
        return UN_ERROR_MEMORY;
    for (int32_t i = begin, s = 0, m = 0; i < end; i++) {
        if (a->kind[i] == SPLIT || a->kind[i] == SPLIT_SHEET) a->split[s++] = i;
        if (a->kind[i] == MERGE) a->small[m++] = i;
    }
    return UN_OK;
}

/* The remaining particles in order, then the new ones. */
static void close_ranks(un_context *ctx, const resize_args *a, int32_t *order, int32_t total)
{
    int32_t kept = 0;
    for (int32_t i = (int32_t)a->own.begin; i < total; i++) {
        if (i == a->own.end) i = a->particles->count; /* past copies of others */
        if (i < total && (i >= a->particles->count || a->kind[i] != GONE)) order[kept++] = i;
    }
    un_particles_take(ctx, a->particles, order, kept);
}

/* Numbers as on one rank: what is left on all ranks, then what is new on all. */
static void number_all(un_context *ctx, un_particle_share *share, int64_t kept, int64_t added)
{
    un_range old = un_ranks_range(ctx, kept), new = un_ranks_range(ctx, added);
    for (int64_t k = 0; k < kept; k++) share->id[k] = (uint32_t)(old.begin + k);
    for (int64_t k = 0; k < added; k++) share->id[kept + k] = (uint32_t)(old.total + new.begin + k);
    share->id_total = old.total + new.total;
    share->own = (un_range){0};
}

static un_status find_changes(un_context *ctx, un_arena *arena, resize_args *a)
{
    a->kind = un_arena_alloc(arena, (size_t)a->particles->count + 1, 1);
    un_status status = a->kind ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK) {
        un_parallel_for(ctx, a->particles->count, 2048, classify, a);
        status = list_kinds(arena, a);
    }
    if (a->def->share) status = un_ranks_agree(ctx, status);
    UN_TRY(status);
    un_parallel_for(ctx, a->split_count, 64, find_halves, a);
    un_parallel_for(ctx, a->small_count, 64, find_partners, a);
    return choose_pairs(ctx, arena, a);
}

un_status un_particles_resize(un_context *ctx, un_arena *arena, un_particles *particles,
                              const un_resize_def *def, un_resize_report *report)
{
    UN_ASSERT(particles->sized);
    un_particle_share *share = def->share;
    resize_args a = {.particles = particles, .def = def, .own = {0, particles->count}};
    int64_t count = particles->count, total = count;
    int32_t *order = NULL;
    *report = (un_resize_report){0};
    if (share) a.own = (un_part){share->begin, share->begin + share->own.end - share->own.begin};
    un_status status = find_changes(ctx, arena, &a);
    /* Everything that can fail comes before any change. */
    for (int64_t n = 0; n < a.split_count && status == UN_OK; n++) {
        a.first_new[n] = (int32_t)total;
        total += a.halves[n].found;
    }
    int64_t added = total - count, own = a.own.end - a.own.begin;
    if (status == UN_OK) {
        order = un_arena_alloc(arena, (size_t)total + 1, sizeof *order);
        status = order ? un_particles_reserve(ctx, particles, total) : UN_ERROR_MEMORY;
    }
    if (share && status == UN_OK)
        status = un_array_need(ctx, (void **)&share->id, &share->capacity_id,
                               (size_t)(own + added) + 1, sizeof *share->id);
    if (share) status = un_ranks_agree(ctx, status);
    UN_TRY(status);
    un_pairs_send(ctx, &a.post);
    un_parallel_for(ctx, a.pair_count, 256, apply_merges, &a);
    un_parallel_for(ctx, a.split_count, 256, apply_splits, &a);
    if (a.pair_count > 0 || share)
        close_ranks(ctx, &a, order, (int32_t)total);
    else
        particles->count = (int32_t)total;
    if (share) number_all(ctx, share, particles->count - added, added);
    double changes[2] = {(double)added, (double)a.pair_count};
    if (share) un_ranks_add(ctx, changes, 2);
    *report = (un_resize_report){(int64_t)changes[0], (int64_t)changes[1]};
    return UN_OK;
}

/* ---- what it will come to ---- */

typedef struct expected_args {
    const un_particles *particles;
    const un_resize_def *def;
    double scale;
    int64_t shift; /* from numbers of all ranks to those here */
} expected_args;

static void expected_block(void *arg, int64_t begin, int64_t end, double *count)
{
    const expected_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t i = begin + a->shift; i < end + a->shift; i++) {
        double q = p->volume[i] / wanted_volume(p, a->def, a->scale * p->size[i]);
        bool splits = q > SPLIT_ABOVE && !(p->flags[i] & UN_PARTICLE_BALLISTIC);
        *count += splits ? exp2(ceil(log2(q / SPLIT_ABOVE))) : fmin(1, q / MERGE_BELOW);
    }
}

double un_particles_expected(un_context *ctx, const un_particles *particles,
                             const un_particle_share *share, const un_resize_def *def, double scale)
{
    expected_args a = {.particles = particles, .def = def, .scale = scale};
    double count;
    if (share) {
        a.shift = share->begin - share->own.begin;
        un_ranks_sums(ctx, share->own, 1, expected_block, &a, &count);
    } else {
        un_parallel_sums(ctx, particles->count, 1, expected_block, &a, &count);
    }
    return count;
}
