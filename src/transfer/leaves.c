/* Velocities between particles and the faces of an octree's leaves, and the particles' volume at
 * leaves.
 *
 *     u_f = sum_p V_p w(x_p - x_f) v_p / sum_p V_p w(x_p - x_f)
 *     c   = sum_p V_p W(x_p - x_c) / h^dim
 *
 * w is the product of hat functions as wide as the face's leaf, the smaller of its two: in a leaf
 * among its like this is the transfer of method `uniform`. Each face gathers from the particles in
 * the cubes around its leaf, which lie one after the other in memory, so that no two threads write
 * to one place. [Hong09] takes one particle's radius instead, which misses faces between large
 * particles. The same particles give c, the colour function before walls are seen to
 * (surface/leaf_colour.c): W is the product of quadratic splines three edges h wide. */
#include "base/lanes.h"
#include "transfer/leaves.h"

typedef struct gather_args {
    double *u;
    uint8_t *known;
    float *colour;
    float (*centre)[4];
    un_leaf_givers from;
    int64_t count; /* of particles, of all ranks */
    double fine;
    const un_leaves *m;
    const int32_t *begin; /* by leaf: its first of those */
    const un_particles *particles;
} gather_args;

/* Places are whole numbers up to this. */
#define FINE 0x40000000

/* Weights and weighted velocities at the faces of one leaf, by side; eight particles are added at
 * once, in single precision, from their places relative to the leaf's centre. */
typedef struct face_sums {
    un_lanes8 w[6], wv[6];
    un_lanes8 volume; /* at the centre */
} face_sums;

static inline un_lanes8 hat(un_lanes8 s)
{
    return un_lanes8_positive(1 - un_lanes8_abs(s));
}

static inline un_lanes8 spline(un_lanes8 s)
{
    un_lanes8 wide = un_lanes8_positive(1.5f - un_lanes8_abs(s));
    un_lanes8 narrow = un_lanes8_positive(0.5f - un_lanes8_abs(s));
    return 0.5f * wide * wide - 1.5f * narrow * narrow;
}

/* Those of the particles at .. at + n - 1 that are first .. end - 1; n is 1 or 8. upper: upper
 * faces too. */
UN_KERNEL void add_some(const un_leaf_givers *a, int64_t at, int n, int64_t first, int64_t end,
                        const int32_t centre[3], float inverse, bool upper, face_sums *sums,
                        int dim)
{
    un_lanes8 s[3], c[3];
    un_lanes8 volume = un_lanes8_some(a->volume + at, n);
    if (at < first || at + n > end) volume = un_lanes8_within(volume, at, first, end);
    for (int axis = 0; axis < dim; axis++) {
        un_bits8 x = {a->x[axis][at]};
        if (n == 8) memcpy(&x, a->x[axis] + at, sizeof x);
        s[axis] = (un_lanes8) __builtin_convertvector(x - centre[axis], un_floats8) * inverse;
        c[axis] = hat(s[axis]);
    }
    un_lanes8 smooth = volume;
    for (int axis = 0; axis < dim; axis++) smooth *= spline(s[axis]);
    sums->volume += smooth;
    for (int axis = 0; axis < dim; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        un_lanes8 across = volume * c[t1];
        if (dim == 3) across *= c[t2];
        un_lanes8 v = un_lanes8_some(a->v[axis] + at, n);
        un_lanes8 w = across * hat(s[axis] + 0.5f);
        sums->w[2 * axis] += w;
        sums->wv[2 * axis] += w * v;
        if (!upper) continue;
        w = across * hat(s[axis] - 0.5f);
        sums->w[2 * axis + 1] += w;
        sums->wv[2 * axis + 1] += w * v;
    }
}

/* Particles by number; those of ranks lie elsewhere in the arrays. */
UN_KERNEL void add_particles(const gather_args *a, int64_t first, int64_t end,
                             const int32_t centre[3], float inverse, bool upper, face_sums *sums,
                             int dim)
{
    int64_t last = a->count - 8; /* nothing beyond the arrays is read */
    un_leaf_givers from = a->from;
    if (from.stretch) un_leaf_givers_shift(&from, first);
    for (int64_t q = first; last >= 0 && q < end; q += 8)
        add_some(&from, q < last ? q : last, 8, q, end, centre, inverse, upper, sums, dim);
    for (int64_t q = first; last < 0 && q < end; q++)
        add_some(&from, q, 1, q, end, centre, inverse, upper, sums, dim);
}

/* Where the particles are that the faces of leaf c are the mean of, on these sides of it. */
static void find_centres(const gather_args *a, int32_t c, const int *sides, int count,
                         const int32_t (*range)[2], int ranges, const int32_t centre[3],
                         double inverse)
{
    int dim = a->m->dim;
    double sums[6][4] = {{0}};
    for (int n = 0; n < ranges; n++) {
        un_leaf_givers from = a->from;
        if (from.stretch) un_leaf_givers_shift(&from, range[n][0]);
        for (int64_t q = range[n][0]; q < range[n][1]; q++) {
            double s[3] = {0}, w[3] = {1, 1, 1};
            for (int axis = 0; axis < dim; axis++) {
                s[axis] = (from.x[axis][q] - centre[axis]) * inverse;
                w[axis] = fmax(1 - fabs(s[axis]), 0);
            }
            for (int k = 0; k < count; k++) {
                int axis = sides[k] / 2;
                double along = s[axis] - (sides[k] & 1 ? 0.5 : -0.5), at[3] = {s[0], s[1], s[2]};
                double weight = from.volume[q] * fmax(1 - fabs(along), 0);
                for (int b = 0; b < dim; b++) weight *= b == axis ? 1 : w[b];
                at[axis] = along;
                for (int b = 0; b < dim; b++) sums[k][b] += weight * at[b];
                sums[k][3] += weight;
            }
        }
    }
    for (int k = 0; k < count; k++) {
        float *to = a->centre[a->m->side[c][sides[k]]];
        double total = sums[k][3];
        for (int b = 0; b < 3; b++) to[b] = (float)(total > 0 ? sums[k][b] / total : 0);
        to[3] = (float)(total / un_leaf_volume(a->m, c));
    }
}

UN_KERNEL void gather_leaf(const gather_args *a, int32_t c, int dim)
{
    const un_leaves *m = a->m;
    face_sums sums;
    memset(&sums, 0, sizeof sums);
    int own[6], count = 0;
    bool upper = false;
    for (int side = 0; side < 2 * dim; side++) {
        int32_t f = m->side[c][side];
        if (f < 0 || m->face_side[f] != 6 * c + side) continue;
        own[count++] = side;
        upper = upper || side & 1;
    }
    int32_t range[UN_LEAVES_AROUND][2];
    int ranges = un_leaves_around(m, a->begin, c, range);
    float inverse = (float)(1 / (a->fine * un_leaf_size(m, c)));
    int32_t centre[3];
    for (int axis = 0; axis < 3; axis++)
        centre[axis] = (int32_t)lrint(a->fine * un_vec3_at(m->x[c], axis));
    for (int n = 0; n < ranges; n++)
        add_particles(a, range[n][0], range[n][1], centre, inverse, upper, &sums, dim);
    a->colour[c] = (float)(un_lanes8_sum(sums.volume) / un_leaf_volume(m, c));
    for (int k = 0; k < count; k++) {
        int32_t f = m->side[c][own[k]];
        double w = un_lanes8_sum(sums.w[own[k]]);
        a->known[f] = w > 0;
        a->u[f] = a->known[f] ? un_lanes8_sum(sums.wv[own[k]]) / w : 0;
    }
    if (a->centre)
        find_centres(a, c, own, count, (const int32_t(*)[2])range, ranges, centre, inverse);
}

static void gather_leaves(void *arg, int64_t begin, int64_t end)
{
    const gather_args *a = arg;
    for (int64_t c = begin; c < end; c++) UN_BY_DIM(a->m->dim, gather_leaf(a, (int32_t)c, dim));
}

static void find_middles(void *arg, int64_t begin, int64_t end)
{
    const gather_args *a = arg;
    const un_particles *p = a->particles;
    double lead[3] = {p->lead.x, p->lead.y, p->lead.z};
    for (int axis = 0; axis < a->m->dim; axis++) {
        float share = (float)(lead[axis] * (1.0 / UN_FALL_FREE));
        for (int64_t q = begin; q < end; q++)
            a->from.v[axis][q] = (float)p->v[axis][q] - (float)p->fall[q] * share;
        for (int64_t q = begin; q < end; q++) {
            double x = a->fine * p->x[axis][q];
            x = x < FINE ? x : FINE;
            a->from.x[axis][q] = (int32_t)(x > -FINE ? x + 0.5 : -FINE);
        }
    }
}

un_status un_transfer_to_leaves(un_context *ctx, un_arena *arena, const un_leaf_gather *out,
                                const un_leaves *leaves, const un_tet_bins *bins,
                                const un_particles *particles)
{
    gather_args a = {.u = out->u,
                     .known = out->known,
                     .colour = out->colour,
                     .centre = out->centre,
                     .m = leaves,
                     .begin = bins->all ? bins->all : bins->begin,
                     .particles = particles};
    un_vec3 size = leaves->tree->size;
    un_leaf_givers *from = &a.from;
    a.fine = FINE / fmax(size.x, fmax(size.y, size.z));
    a.count = a.begin[leaves->count];
    from->volume = particles->volume;
    un_status status = UN_OK;
    for (int axis = 0; axis < leaves->dim; axis++) {
        from->v[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof **from->v);
        from->x[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof **from->x);
        if (!from->v[axis] || !from->x[axis]) status = UN_ERROR_MEMORY;
    }
    if (status == UN_OK) un_parallel_for(ctx, particles->count, 16384, find_middles, &a);
    if (leaves->share) status = un_leaf_givers_fetch(ctx, arena, from, leaves, bins, status);
    UN_TRY(status);
    un_parallel_part(ctx, un_leaves_own(leaves), 256, gather_leaves, &a);
    un_leaves_spread_faces(leaves, out->u, sizeof *out->u);
    un_leaves_spread_faces(leaves, out->known, sizeof *out->known);
    un_leaves_spread(leaves, out->colour, sizeof *out->colour);
    if (out->centre) un_leaves_spread_faces(leaves, out->centre, sizeof *out->centre);
    return UN_OK;
}

/* ---- beyond the liquid ---- */

typedef struct extend_args {
    double *u, *w;
    uint8_t *known;
    const un_leaves *m;
    const int32_t *list; /* faces to be given a value */
    double *value[2];    /* of those; known[..] is set in the end */
    uint8_t *found;
    uint8_t *beside; /* by leaf: any of its faces is known */
} extend_args;

static void add_face(const extend_args *a, int32_t f, double sum[3])
{
    if (!a->known[f]) return;
    sum[0] += 1;
    sum[1] += a->u[f];
    if (a->w) sum[2] += a->w[f];
}

/* The faces of a leaf across an axis. */
static void add_leaf(const extend_args *a, int32_t c, int axis, double sum[3])
{
    const un_leaves *m = a->m;
    if (!a->beside[c]) return;
    for (int side = 2 * axis; side < 2 * axis + 2; side++) {
        int32_t f = m->side[c][side];
        if (f >= 0)
            add_face(a, f, sum);
        else
            for (int k = 0; k < un_leaves_group_size(m); k++) add_face(a, m->group[~f][k], sum);
    }
}

static void tell_leaves(const extend_args *a, int32_t f)
{
    a->beside[a->m->face_side[f] / 6] = 1;
    if (a->m->face_other[f] >= 0) a->beside[a->m->face_other[f]] = 1;
}

static void extend_faces(void *arg, int64_t begin, int64_t end)
{
    static const int step[3] = {1, 3, 9};
    const extend_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t n = begin; n < end; n++) {
        int32_t f = a->list[n], leaf[2] = {m->face_side[f] / 6, m->face_other[f]};
        int axis = un_leaf_face_axis(m, f);
        double sum[3] = {0};
        for (int k = 0; k < 2 && leaf[k] >= 0; k++) {
            const int32_t *near = un_leaf_near(m, leaf[k]);
            add_leaf(a, leaf[k], axis, sum);
            for (int t = 0; t < 2 * m->dim; t++) {
                if (t / 2 == axis) continue;
                int32_t c = near[m->near_count / 2 + (t & 1 ? step[t / 2] : -step[t / 2])];
                if (c >= 0) add_leaf(a, c, axis, sum);
            }
        }
        a->found[n] = sum[0] > 0;
        if (!a->found[n]) continue;
        a->value[0][n] = sum[1] / sum[0];
        if (a->w) a->value[1][n] = sum[2] / sum[0];
    }
}

/* What has been found for the list takes its place; the rest of the list stays. */
static int32_t take_found(const extend_args *a, int32_t *list, int32_t count, int32_t layer)
{
    int32_t left = 0;
    for (int32_t n = 0; n < count; n++) {
        int32_t f = list[n];
        if (!a->found[n]) {
            list[left++] = f;
            continue;
        }
        a->u[f] = a->value[0][n];
        if (a->w) a->w[f] = a->value[1][n];
        a->known[f] = (uint8_t)(layer + 2);
        tell_leaves(a, f);
    }
    return left;
}

/* What is farther away is air. */
static void clear_rest(const extend_args *a, const int32_t *list, int32_t count)
{
    for (int32_t n = 0; n < count; n++) {
        a->u[list[n]] = 0;
        if (a->w) a->w[list[n]] = 0;
    }
}

/* A rank that knows some of the faces finds its own, and hears of the others. */
static void extend_in_parts(un_context *ctx, extend_args *a, int32_t *list, int32_t count,
                            int32_t *other, int32_t layers)
{
    const un_leaves *m = a->m;
    un_part own = un_leaves_own_faces(m);
    int32_t mine = 0, others = 0;
    for (int32_t n = 0; n < count; n++) {
        if (list[n] >= own.begin && list[n] < own.end)
            list[mine++] = list[n];
        else
            other[others++] = list[n];
    }
    for (int32_t layer = 0; layer < layers; layer++) {
        un_parallel_for(ctx, mine, 2048, extend_faces, a);
        mine = take_found(a, list, mine, layer);
        un_leaves_spread_faces(m, a->known, 1);
        un_leaves_spread_faces(m, a->u, sizeof *a->u);
        if (a->w) un_leaves_spread_faces(m, a->w, sizeof *a->w);
        int32_t left = 0;
        for (int32_t n = 0; n < others; n++) {
            if (a->known[other[n]])
                tell_leaves(a, other[n]);
            else
                other[left++] = other[n];
        }
        others = left;
    }
    clear_rest(a, list, mine);
    clear_rest(a, other, others);
}

un_status un_transfer_extrapolate_leaves(un_context *ctx, un_arena *arena, double *u, double *w,
                                         uint8_t *known, const un_leaves *m, int32_t layers)
{
    extend_args a = {.u = u, .w = w, .known = known, .m = m};
    int32_t *list = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof *list);
    a.found = un_arena_alloc(arena, (size_t)m->face_count + 1, 1);
    for (int k = 0; k < 2; k++)
        a.value[k] = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof **a.value);
    a.beside = un_arena_alloc(arena, (size_t)m->count + 1, 1);
    bool able = list && a.found && a.value[0] && a.value[1] && a.beside;
    int32_t *other = list;
    if (un_leaves_in_parts(m)) {
        other = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof *other);
        able = able && other;
    }
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    memset(a.beside, 0, (size_t)m->count);
    int32_t count = 0;
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t f = un_leaves_face_run(m, k).begin; f < un_leaves_face_run(m, k).end; f++) {
            if (known[f])
                tell_leaves(&a, (int32_t)f);
            else
                list[count++] = (int32_t)f;
        }
    a.list = list;
    if (un_leaves_in_parts(m)) {
        extend_in_parts(ctx, &a, list, count, other, layers);
        return UN_OK;
    }
    for (int32_t layer = 0; layer < layers; layer++) {
        un_parallel_part(ctx, un_leaves_list_own(m, count), 2048, extend_faces, &a);
        un_leaves_spread_list(m, count, a.found, 1);
        un_leaves_spread_list(m, count, a.value[0], sizeof **a.value);
        if (w) un_leaves_spread_list(m, count, a.value[1], sizeof **a.value);
        count = take_found(&a, list, count, layer);
    }
    clear_rest(&a, list, count);
    return UN_OK;
}

/* ---- back to the particles ---- */

typedef struct update_args {
    un_particles *particles;
    float *const *at;
    const un_tet_bins *bins;
    const un_leaves_flow *now, *before;
    const un_flip *flip;
    double h;
    un_vec3 fall_unit;
} update_args;

/* In thick liquid: the share of the rate of water that is quiet, and a rate beside it, 1/s, in a
 * leaf with this edge; as on the grid (faces.c). */
static void thicken(const un_flip *flip, double h, double *noise, double *more)
{
    *noise = un_noise_share(flip->thickness, h, flip->quiet_speed);
    *more = flip->pic_thick ? 1e30 : UN_VISCOUS_PIC * flip->thickness / (h * h);
}

/* now, before: the liquid's velocity at the particle. */
static void update_one(const update_args *a, int64_t q, un_vec3 now, un_vec3 before)
{
    un_particles *p = a->particles;
    const un_flip *flip = a->flip;
    un_vec3 was = un_particle_middle(p, q), v = un_add(was, un_sub(now, before));
    double h = un_leaf_size(a->now->leaves, a->bins->tet[q]);
    /* the deep liquid under a wave is slow, and its cells are large: they are quiet at lower
     * speeds, and their detail lives longer (a wave over cells of 1/6 m lost 10 % of its energy
     * in a period when they were quiet at higher ones, now 3) */
    double coarse = fmax(1, h / a->h), quiet = flip->quiet_speed * flip->quiet_speed;
    double size2 = coarse * coarse, stir = un_dot(now, now) * size2 / quiet;
    double rate = flip->pic / size2, noise = 1, more = 0;
    if (flip->thickness > 0) thicken(flip, h, &noise, &more);
    rate += noise * (flip->pic_quiet / size2 - rate) / (1 + stir * stir) + more;
    if (p->flags[q] & UN_PARTICLE_LANDED) rate += un_drop_drag(p, un_sub(v, now), q);
    un_vec3 slip = un_sub(v, now);
    double share =
        un_flip_share(1 - exp(-rate * flip->dt), slip, flip->dt, un_flip_way(v, now, flip, h));
    v = un_mad(v, slip, -share);
    un_particle_set_velocity(p, q, v);
    p->fall[q] = un_particle_fall(un_sub(v, was), a->fall_unit);
}

static un_doubles8 load_some(const double *v, int64_t count)
{
    un_doubles8 out = {0};
    if (count == 8)
        memcpy(&out, v, sizeof out);
    else
        memcpy(&out, v, (size_t)count * sizeof *v);
    return out;
}

static void fly(const update_args *a, int64_t q)
{
    un_particles *p = a->particles;
    un_vec3 was = un_particle_middle(p, q);
    un_particle_set_velocity(p, q, un_mad(was, a->flip->gravity, a->flip->dt));
    p->fall[q] = UN_FALL_FREE;
}

/* As update_one for up to eight at once, where that is simple. Which of a particle's two ways is
 * taken, and what it gives, does not depend on the other seven: ranks have others. */
static void update_eight(const update_args *a, int64_t first, int64_t count, const int32_t leaf[8],
                         const un_eight *now_at, const un_eight *before_at)
{
    un_particles *p = a->particles;
    const un_flip *flip = a->flip;
    const un_octree *tree = a->now->leaves->tree;
    const double lead[3] = {p->lead.x, p->lead.y, p->lead.z};
    const double unit[3] = {a->fall_unit.x, a->fall_unit.y, a->fall_unit.z};
    const un_doubles8 one = {1, 1, 1, 1, 1, 1, 1, 1};
    double edge[8] = {1, 1, 1, 1, 1, 1, 1, 1}, fallen[8] = {0};
    for (int64_t n = 0; n < count; n++) {
        edge[n] = tree->edge[tree->level[leaf[n]]];
        fallen[n] = p->fall[first + n];
    }
    double g2 = un_dot(flip->gravity, flip->gravity);
    un_doubles8 falls = un_doubles8_load(fallen, 8) / UN_FALL_FREE;
    un_doubles8 h = un_doubles8_load(edge, 8), was[3], slip[3], now[3], v[3];
    un_doubles8 speed2 = {0}, slip2 = {0}, change = {0};
    for (int axis = 0; axis < 3; axis++) {
        now[axis] = load_some(now_at->of[axis], count);
        was[axis] = load_some(p->v[axis] + first, count) - falls * lead[axis];
        slip[axis] = was[axis] - load_some(before_at->of[axis], count);
        speed2 += now[axis] * now[axis];
        slip2 += slip[axis] * slip[axis];
    }
    /* those that un_flip_way and un_flip_share may slow down */
    un_longs8 fast = slip2 * (flip->dt * flip->dt) > h * h;
    if (g2 > 0) fast |= slip2 * slip2 > g2 * h * h;
    un_doubles8 size = h / a->h, size2 = size * size;
    size2 = (un_doubles8)(((un_longs8)size2 & (size > 1)) | ((un_longs8)one & (size <= 1)));
    un_doubles8 stir = speed2 * size2 / (flip->quiet_speed * flip->quiet_speed);
    un_doubles8 rate = (flip->pic + (flip->pic_quiet - flip->pic) / (1 + stir * stir)) / size2;
    if (flip->thickness > 0) {
        double noise[8], more[8];
        for (int n = 0; n < 8; n++) thicken(flip, edge[n], &noise[n], &more[n]);
        rate = (rate - flip->pic / size2) * un_doubles8_load(noise, 8) + flip->pic / size2;
        rate += un_doubles8_load(more, 8);
    }
    un_doubles8 left = un_doubles8_exp(-rate * flip->dt);
    for (int axis = 0; axis < 3; axis++) {
        v[axis] = now[axis] + left * slip[axis];
        change += (v[axis] - was[axis]) * unit[axis];
    }
    uint64_t flags = 0,
             other = (UN_PARTICLE_BALLISTIC | UN_PARTICLE_LANDED) * UINT64_C(0x0101010101010101);
    memcpy(&flags, p->flags + first, (size_t)count);
    un_bits8 any = __builtin_convertvector(fast, un_bits8);
    if (count == 8 && !(flags & other) && !un_bits8_mask(any)) { /* mostly */
        for (int axis = 0; axis < 3; axis++) memcpy(p->v[axis] + first, &v[axis], sizeof v[axis]);
        for (int n = 0; n < 8; n++) p->fall[first + n] = un_fall_of(change[n]);
        return;
    }
    for (int64_t n = 0; n < count; n++) {
        int64_t q = first + n;
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            fly(a, q);
        } else if (fast[n] || p->flags[q] & UN_PARTICLE_LANDED) {
            update_one(a, q, un_eight_of(now_at, n), un_eight_of(before_at, n));
        } else {
            un_particle_set_velocity(p, q, un_v3(v[0][n], v[1][n], v[2][n]));
            p->fall[q] = un_fall_of(change[n]);
        }
    }
}

static void update(void *arg, int64_t begin, int64_t end)
{
    const update_args *a = arg;
    un_particles *p = a->particles;
    un_flow_cache now_at, before_at;
    un_flow_cache_init(&now_at, a->now);
    un_flow_cache_init(&before_at, a->before);
    for (int64_t first = begin; first < end; first += 8) {
        int64_t count = un_min64(end - first, 8);
        un_eight x, now, before;
        int32_t leaf[8];
        un_tet_bins_eight(&x, leaf, a->bins, p, first, count);
        un_flow_cache_eight(&now, &now_at, leaf, &x, &before, &before_at);
        for (int axis = 0; a->at && axis < 3; axis++)
            for (int64_t n = 0; n < count; n++) a->at[axis][first + n] = (float)now.of[axis][n];
        update_eight(a, first, count, leaf, &now, &before);
    }
}

void un_transfer_leaves_to_particles(un_context *ctx, un_particles *particles, float *const at[3],
                                     const un_tet_bins *bins, const un_leaves_flow *now,
                                     const un_leaves_flow *before, const un_flip *flip)
{
    update_args a = {particles,
                     at,
                     bins,
                     now,
                     before,
                     flip,
                     now->leaves->tree->h,
                     un_particle_fall_unit(flip->gravity, flip->dt)};
    un_parallel_for(ctx, particles->count, 2048, update, &a);
}

/* ---- marking ---- */

/* Particles this close to the surface, in cells, count as near it. */
#define SURFACE_DEPTH 1.5
/* Drops in a leaf this many times wider than their own stay drops (particles/drops.c). */
#define LANDED_WIDTH 2.0

typedef struct mark_args {
    un_markers *markers;
    const un_leaves *m;
    const float *phi, *wall;
    const uint8_t *thick;
    const un_cling *cling;
} mark_args;

/* Is there liquid in any of the leaves around x, those whose centres surround it? */
static bool touches_liquid(const mark_args *a, int32_t c, un_vec3 x)
{
    const un_leaves *m = a->m;
    const int32_t *near = un_leaf_near(m, c);
    un_vec3 d = un_sub(x, m->x[c]);
    int way[3] = {d.x < 0 ? -1 : 1, d.y < 0 ? -3 : 3, d.z < 0 ? -9 : 9};
    for (int k = 0; k < 1 << m->dim; k++) {
        int n = m->near_count / 2;
        for (int b = 0; b < m->dim; b++) n += k >> b & 1 ? way[b] : 0;
        if (near[n] >= 0 && a->phi[near[n]] < 0) return true;
    }
    return false;
}

/* Where the level set slopes by less, deep in the liquid, there is no direction to the surface:
 * what is left of it would be that of noise. */
#define SLOPE_MIN 0.1
/* In leaves whose centres are this far from the surface, in edges, depths need not be exact. Slopes
 * matter for 8 radii (particles/correct_sized.c), two edges. */
#define DEEP 3.0
/* Particles whose depth is found in one go. */
#define MARK_BATCH 256

static void mark_batch(mark_args *a, int64_t begin, int64_t end, double *sums)
{
    un_markers *s = a->markers;
    un_particles *p = &s->particles;
    const un_leaves *m = a->m;
    double gravity = a->cling->gravity, depths[MARK_BATCH];
    un_vec3 slopes[MARK_BATCH];
    const double *const places[3] = {p->x[0] + begin, p->x[1] + begin, p->x[2] + begin};
    un_leaves_sample_points(m, a->phi, DEEP, end - begin, s->bins.tet + begin, places, depths,
                            slopes);
    for (int64_t q = begin; q < end; q++) {
        int32_t c = s->bins.tet[q];
        un_vec3 x = un_particle_position(p, q);
        double h = un_leaf_size(m, c), depth = depths[q - begin];
        bool deep = depth < -h, clings = !deep && un_cling_holds(a->cling, s, q, depth);
        bool wet = deep || clings || touches_liquid(a, c, x);
        un_vec3 g = un_scale(slopes[q - begin], 1 / fmax(un_length(slopes[q - begin]), SLOPE_MIN));
        s->depth[q] = (float)depth;
        s->normal[0][q] = (float)g.x;
        s->normal[1][q] = (float)g.y;
        s->normal[2][q] = (float)g.z;
        s->wall[q] = (float)(a->wall[c] - un_length(un_sub(x, m->x[c])));
        un_vec3 u = un_particle_velocity(p, q);
        bool calm = un_dot(u, u) < gravity * h + a->cling->tension / h;
        double most = LANDED_WIDTH * UN_LEAF_WIDTH; /* the root is taken where it may matter */
        bool small = h > most * 1.99 * (double)s->radius[q] &&
                     h > most * un_particles_spacing(p, p->volume[q]);
        /* a particle without cells of its own flies until it meets the surface itself */
        if (small && !clings && depth > (double)s->radius[q]) wet = false;
        bool landed = small && p->flags[q] & UN_PARTICLE_APART;
        bool thin = a->thick && !a->thick[c];
        int flags = p->flags[q] & UN_PARTICLE_HALVED_MASK;
        flags |= (depth > -SURFACE_DEPTH * h ? UN_PARTICLE_SURFACE : 0) |
                 (calm ? UN_PARTICLE_CALM : 0) | (landed ? UN_PARTICLE_LANDED : 0);
        p->flags[q] =
            (uint8_t)((wet ? flags : UN_PARTICLE_BALLISTIC) | (thin ? UN_PARTICLE_THIN : 0));
        if (!wet)
            sums[0] += 1;
        else if (depth < 0 && !thin)
            sums[1] += p->volume[q];
    }
}

static void mark_particles(void *arg, int64_t begin, int64_t end, double *sums)
{
    for (int64_t q = begin; q < end; q += MARK_BATCH)
        mark_batch(arg, q, q + MARK_BATCH < end ? q + MARK_BATCH : end, sums);
}

double un_transfer_mark_leaves(un_context *ctx, un_markers *markers, const un_leaves *leaves,
                               const float *phi, const float *wall, const uint8_t *thick,
                               const un_cling *cling)
{
    double sums[2] = {0};
    mark_args a = {markers, leaves, phi, wall, thick, cling};
    un_markers_sums(ctx, markers, 2, mark_particles, &a, sums); /* between sorting and resizing */
    markers->ballistic = (int64_t)sums[0];
    return sums[1];
}

un_status un_emitted_place_leaves(un_context *ctx, un_emitted *emitted, const un_octree *tree,
                                  const un_markers *markers)
{
    const un_particles *p = &markers->particles;
    un_status status = un_emitted_need(ctx, emitted, tree->leaf_count);
    if (markers->share) return un_emitted_place_ranks(ctx, emitted, tree, markers, status);
    UN_TRY(status);
    memset(emitted->volume, 0, (size_t)tree->leaf_count * sizeof *emitted->volume);
    for (int32_t q = 0; q < p->count; q++)
        if (p->flags[q] & UN_PARTICLE_EMITTED)
            emitted->volume[un_octree_find(tree, un_particle_position(p, q))] += p->volume[q];
    return UN_OK;
}

typedef struct reached_args {
    uint8_t *reached;
    const un_leaves *m;
    const int32_t *first;
} reached_args;

static void find_reached(void *arg, int64_t begin, int64_t end)
{
    const reached_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        const int32_t *near = un_leaf_near(a->m, c);
        bool any = false, looked_at = un_leaves_knows(a->m, c, 1); /* by particles of this rank */
        for (int n = 0; looked_at && n < a->m->near_count && !any; n++)
            any = near[n] >= 0 && a->first[near[n]] < a->first[near[n] + 1];
        a->reached[c] = any;
    }
}

void un_transfer_reached_leaves(un_context *ctx, uint8_t *reached, const un_leaves *leaves,
                                const un_tet_bins *bins)
{
    reached_args a = {reached, leaves, bins->begin};
    (void)ctx;
    if (un_leaves_in_parts(leaves)) memset(reached, 0, (size_t)leaves->count);
    un_leaves_each(leaves, 4096, find_reached, &a);
}

/* ---- the fastest ---- */

typedef struct rate_args {
    const double *u;
    const uint8_t *known;
    const int32_t *first; /* by leaf: its first particle */
    const un_leaves *m;
    int64_t begin; /* the first face */
} rate_args;

/* Faces of leaves without particles may have any velocity. */
static double rate_block(void *arg, int64_t begin, int64_t end)
{
    const rate_args *a = arg;
    const int32_t *first = a->first;
    double max = 0;
    for (int64_t f = a->begin + begin; f < a->begin + end; f++) {
        int32_t c = a->m->face_side[f] / 6, other = a->m->face_other[f];
        bool holds = first[c] < first[c + 1] || (other >= 0 && first[other] < first[other + 1]);
        if (a->known[f] != 1 || !holds) continue;
        double rate = fabs(a->u[f]) / un_leaf_face_size(a->m, f);
        if (!(rate <= max)) max = rate;
    }
    return max;
}

double un_transfer_rate_leaves(un_context *ctx, const double *u, const uint8_t *known,
                               const un_tet_bins *bins, const un_leaves *leaves)
{
    un_part own = un_leaves_own_faces(leaves);
    rate_args a = {u, known, bins->all ? bins->all : bins->begin, leaves, own.begin};
    double max = un_parallel_max(ctx, own.end - own.begin, rate_block, &a);
    return leaves->share ? un_ranks_max(ctx, max) : max;
}
