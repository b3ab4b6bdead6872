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
#include "particles/resize.h"

#define SPLIT_ABOVE 1.9
#define MERGE_BELOW 0.42
#define MERGED_MAX 1.5
/* Particles merge only if they nearly touch: within this many r_i + r_j. */
#define MERGE_REACH 1.5
/* Spacing over diameter above which particles of a sheet and of a thread split, and up to which
 * they merge; they get no smaller than this share of the finest. */
#define SHEET_SPLIT 1.7
#define SHEET_MERGE 1.0
#define THREAD_SPLIT 1.15
#define THREAD_MERGE 0.35
#define SHEET_LEAST 0.45
#define THREAD_LEAST 0.06

static double wanted_volume(const un_particles *p, const un_resize_def *def, double size)
{
    double h = 0.5 * size;
    return un_clamp(p->flat ? h * h : h * h * h, def->volume_min, def->volume_max);
}

/* True if particle i lies in a sheet or a thread with more than the given spacing over diameter,
 * and has at least `parts` times the least volume there. */
static bool is_spread(const un_resizing *a, int64_t i, double sheet, double thread, double parts)
{
    const un_sheets *s = a->def->sheets;
    if (!s || s->gap[i] == 0) return false;
    double least = (s->gap[i] < 0 ? THREAD_LEAST : SHEET_LEAST) * a->def->volume_min;
    if ((double)a->particles->volume[i] < parts * least) return false;
    return s->gap[i] > (float)sheet || s->gap[i] < (float)-thread;
}

/* True if a merge would leave a hole. */
static bool covers(const un_resizing *a, int64_t i)
{
    return is_spread(a, i, SHEET_MERGE, THREAD_MERGE, 1);
}

static void classify(void *arg, int64_t begin, int64_t end)
{
    const un_resizing *a = arg;
    const un_particles *p = a->particles;
    for (int64_t i = begin; i < end; i++) {
        double v = p->volume[i], wanted = wanted_volume(p, a->def, p->size[i]);
        bool splits = v > SPLIT_ABOVE * wanted && !(p->flags[i] & UN_PARTICLE_BALLISTIC);
        bool merges = v < MERGE_BELOW * wanted && !covers(a, i);
        a->kind[i] = splits ? UN_RESIZE_SPLIT : merges ? UN_RESIZE_MERGE : UN_RESIZE_KEEP;
        if (!splits && is_spread(a, i, SHEET_SPLIT, THREAD_SPLIT, 2))
            a->kind[i] = UN_RESIZE_SPLIT_SHEET;
    }
}

void un_particles_find_resized(un_context *ctx, uint8_t *resized, const un_particles *particles,
                               const un_resize_def *def)
{
    un_resizing a = {
        .particles = (un_particles *)(uintptr_t)particles, .def = def, .kind = resized};
    un_parallel_for(ctx, particles->count, 2048, classify, &a);
    for (int32_t i = 0; i < particles->count; i++) resized[i] = resized[i] != UN_RESIZE_KEEP;
}

un_vec3 un_resize_tangent(const un_resizing *a, un_vec3 x, double phi, un_vec3 normal, double r,
                          double near)
{
    if (!(fabs(phi) < UN_TANGENT_WITHIN * near) || !(un_dot(normal, normal) > 0.25)) return x;
    un_vec3 to = un_mad(x, un_normalize(normal), -r - phi);
    return un_open_move(a->def->walls, x, to, UN_WALL_MARGIN * r) ? to : x;
}

/* ---- merging ---- */

/* True if the two would make a particle that need not split. */
static bool fit_together(const un_resizing *a, int32_t i, int32_t j)
{
    const un_particles *p = a->particles;
    if (j == i || a->kind[j] == UN_RESIZE_SPLIT || a->kind[j] == UN_RESIZE_SPLIT_SHEET ||
        covers(a, j))
        return false;
    if ((p->flags[i] ^ p->flags[j]) & UN_PARTICLE_BALLISTIC) return false;
    double vi = p->volume[i], vj = p->volume[j], v = vi + vj;
    if (!(v > 0)) return false;
    double size = (vi * (double)p->size[i] + vj * (double)p->size[j]) / v;
    return v <= MERGED_MAX * wanted_volume(p, a->def, size);
}

static void find_partners(void *arg, int64_t begin, int64_t end)
{
    const un_resizing *a = arg;
    const un_particles *p = a->particles;
    const float *radius = a->def->radius;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->small[n], *partner = a->partner[n];
        float *distance = a->distance[n];
        un_vec3 x = un_particle_position(p, i);
        for (int k = 0; k < UN_PARTNERS; k++) partner[k] = -1;
        un_groups_walk walk;
        un_groups_walk_begin(&walk, a->def->groups, (un_box3){x, x},
                             MERGE_REACH * (double)radius[i], MERGE_REACH);
        for (int32_t g; (g = un_groups_walk_next(&walk)) >= 0;)
            for (int32_t j = g * UN_GROUP; j < (g + 1) * UN_GROUP && j < p->count; j++) {
                un_vec3 y = un_particle_position(p, j);
                float d = (float)un_length(un_sub(y, x));
                if (!(d <= (float)MERGE_REACH * (radius[i] + radius[j]))) continue;
                int k = UN_PARTNERS;
                while (k > 0 && (partner[k - 1] < 0 || d < distance[k - 1])) k--;
                if (k == UN_PARTNERS || !fit_together(a, i, j)) continue;
                if (!un_open_way(a->def->walls, x, y)) continue;
                for (int m = UN_PARTNERS - 1; m > k; m--) {
                    partner[m] = partner[m - 1];
                    distance[m] = distance[m - 1];
                }
                partner[k] = j;
                distance[k] = d;
            }
    }
}

/* In the order of particles, nearest first. */
static un_status list_wishes(un_arena *arena, const un_resizing *a, un_pair_wish **wishes,
                             int64_t *count)
{
    const un_particle_share *share = a->def->share;
    const float *volume = a->particles->volume;
    int64_t room = a->small_count * UN_PARTNERS;
    *wishes = un_arena_alloc(arena, (size_t)room + 1, sizeof **wishes);
    *count = 0;
    if (!*wishes) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < room; n++) {
        int32_t i = a->small[n / UN_PARTNERS], j = a->partner[n / UN_PARTNERS][n % UN_PARTNERS];
        if (j < 0) continue;
        (*wishes)[(*count)++] =
            (un_pair_wish){.i = (uint32_t)un_particle_number(share, i),
                           .j = (uint32_t)un_particle_number(share, j),
                           .distance = a->distance[n / UN_PARTNERS][n % UN_PARTNERS],
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

static bool is_own(const un_resizing *a, int32_t i)
{
    return i >= a->own.begin && i < a->own.end;
}

static un_partner partner_at(const un_resizing *a, int32_t j)
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
static un_status keep_pairs(un_context *ctx, un_arena *arena, un_resizing *a, const un_pair *pairs,
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
            a->kind[j] = UN_RESIZE_GONE;
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

static un_status choose_pairs(un_context *ctx, un_arena *arena, un_resizing *a)
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
    const un_resizing *a = arg;
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
        un_particle_set_position(p, i, un_resize_tangent(a, middle, phi, n_middle, r, r));
    }
}

/* ---- both ---- */

static un_status list_kinds(un_arena *arena, un_resizing *a)
{
    int32_t begin = (int32_t)a->own.begin, end = (int32_t)a->own.end;
    for (int32_t i = begin; i < end; i++) {
        a->split_count += a->kind[i] == UN_RESIZE_SPLIT || a->kind[i] == UN_RESIZE_SPLIT_SHEET;
        a->small_count += a->kind[i] == UN_RESIZE_MERGE;
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
        if (a->kind[i] == UN_RESIZE_SPLIT || a->kind[i] == UN_RESIZE_SPLIT_SHEET) a->split[s++] = i;
        if (a->kind[i] == UN_RESIZE_MERGE) a->small[m++] = i;
    }
    return UN_OK;
}

/* The remaining particles in order, then the new ones. */
static void close_ranks(un_context *ctx, const un_resizing *a, int32_t *order, int32_t total)
{
    int32_t kept = 0;
    for (int32_t i = (int32_t)a->own.begin; i < total; i++) {
        if (i == a->own.end) i = a->particles->count; /* past copies of others */
        if (i < total && (i >= a->particles->count || a->kind[i] != UN_RESIZE_GONE))
            order[kept++] = i;
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

static un_status find_changes(un_context *ctx, un_arena *arena, un_resizing *a)
{
    a->kind = un_arena_alloc(arena, (size_t)a->particles->count + 1, 1);
    un_status status = a->kind ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK) {
        un_parallel_for(ctx, a->particles->count, 2048, classify, a);
        status = list_kinds(arena, a);
    }
    if (a->def->share) status = un_ranks_agree(ctx, status);
    UN_TRY(status);
    un_parallel_for(ctx, a->split_count, 64, un_resize_find_halves, a);
    un_parallel_for(ctx, a->small_count, 64, find_partners, a);
    return choose_pairs(ctx, arena, a);
}

un_status un_particles_resize(un_context *ctx, un_arena *arena, un_particles *particles,
                              const un_resize_def *def, un_resize_report *report)
{
    UN_ASSERT(particles->sized);
    un_particle_share *share = def->share;
    un_resizing a = {.particles = particles, .def = def, .own = {0, particles->count}};
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
    un_parallel_for(ctx, a.split_count, 256, un_resize_split, &a);
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
