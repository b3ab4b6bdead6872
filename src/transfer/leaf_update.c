/* The change of velocities on the faces of an octree's leaves, to particles, with a share of the
 * velocity itself: as in method `uniform`, in leaves of many sizes. */
#include "base/lanes.h"
#include "transfer/transfer.h"

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
