/* Faces to particles, by linear interpolation on the staggered grid [Zhu & Bridson 2005; Bridson,
 * Fluid Simulation, ch. 7], and what is done to all faces. */
#include "transfer/transfer.h"

#include "base/lanes.h"

/* ---- over all faces ---- */

typedef struct all_args {
    double *const *u, *const *other;
    uint8_t *const *known;
    const un_grid *grid;
    un_vec3 change;
} all_args;

static void mark_reached(void *arg, int64_t begin, int64_t end)
{
    all_args *a = arg;
    for (int axis = 0; axis < a->grid->dim; axis++) {
        uint8_t *restrict known = a->known[axis];
        const double *restrict weight = a->other[axis];
        for (int64_t f = begin; f < end; f++) known[f] = weight[f] > 0;
    }
}

void un_transfer_mark_reached(un_context *ctx, uint8_t *const known[3], double *const weight[3],
                              const un_grid *grid)
{
    all_args a = {.known = known, .other = weight, .grid = grid};
    un_parallel_runs(ctx, un_grid_own_cells(grid, 0), un_block_grain(grid->cell_count),
                     mark_reached, &a);
}

static void accelerate(void *arg, int64_t begin, int64_t end)
{
    all_args *a = arg;
    double change[3] = {a->change.x, a->change.y, a->change.z};
    for (int axis = 0; axis < a->grid->dim; axis++) {
        double *restrict u = a->u[axis], *restrict before = a->other[axis];
        for (int64_t f = begin; f < end; f++) {
            before[f] = u[f];
            u[f] += change[axis];
        }
    }
}

void un_transfer_accelerate(un_context *ctx, double *const u[3], double *const before[3],
                            un_vec3 change, const un_grid *grid)
{
    all_args a = {.u = u, .other = before, .grid = grid, .change = change};
    un_parallel_runs(ctx, un_grid_own_cells(grid, 0), un_block_grain(grid->cell_count), accelerate,
                     &a);
}

static double fastest(void *arg, int64_t begin, int64_t end)
{
    const all_args *a = arg;
    double max = 0;
    for (int axis = 0; axis < a->grid->dim; axis++)
        for (int64_t f = begin; f < end; f++) {
            double speed = fabs(a->u[axis][f]);
            if (a->known[axis][f] == 1 && !(speed <= max)) max = speed;
        }
    return max;
}

double un_transfer_max_speed(un_context *ctx, double *const u[3], uint8_t *const known[3],
                             const un_grid *grid)
{
    all_args a = {.u = u, .known = known, .grid = grid};
    return un_runs_max(ctx, un_grid_own_cells(grid, 0), fastest, &a);
}

/* ---- back to the particles ---- */

typedef struct particles_args {
    un_particles *particles;
    double *const *u_new, *const *u_old;
    const un_grid *grid;
    const un_flip *flip;
    double pic, pic_quiet; /* shares in this step */
    double inverse_quiet;  /* one over the square of the quiet speed */
    bool viscous;
    un_vec3 fall_unit;
} particles_args;

/* The share of PIC for particle q, which would be `pic` in water. */
static double viscous_pic(const particles_args *a, int64_t q, double pic, double stir)
{
    const un_flip *flip = a->flip;
    const un_particles *p = a->particles;
    double nu = p->viscosity ? (double)p->viscosity[q] / (double)p->density[q] : flip->thickness;
    double h = a->grid->h;
    if (!(nu > 0)) return pic;
    if (flip->pic_thick) return 1;
    double noise = un_noise_share(nu, h, flip->quiet_speed);
    double rate = flip->pic + noise * (flip->pic_quiet - flip->pic) / (1 + stir * stir);
    return 1 - exp(-(rate + UN_VISCOUS_PIC * nu / (h * h)) * flip->dt);
}

static void update_one(const particles_args *a, int64_t q, un_vec3 now, un_vec3 before)
{
    un_particles *p = a->particles;
    const un_flip *flip = a->flip;
    bool flat = a->grid->dim == 2;
    un_vec3 was = un_particle_middle(p, q);
    if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
        p->v[0][q] = was.x + flip->dt * flip->gravity.x;
        p->v[1][q] = was.y + flip->dt * flip->gravity.y;
        if (!flat) p->v[2][q] = was.z + flip->dt * flip->gravity.z;
        p->fall[q] = UN_FALL_FREE;
        return;
    }
    un_vec3 v = un_add(was, un_sub(now, before));
    double stir = un_dot(now, now) * a->inverse_quiet;
    double pic = a->pic + (a->pic_quiet - a->pic) / (1 + stir * stir);
    if (a->viscous) pic = viscous_pic(a, q, pic, stir);
    un_vec3 slip = un_sub(v, now);
    double way = un_flip_way(v, now, flip, a->grid->h);
    v = un_mad(v, slip, -un_flip_share(pic, slip, flip->dt, way));
    p->v[0][q] = v.x;
    p->v[1][q] = v.y;
    if (!flat) p->v[2][q] = v.z;
    p->fall[q] = un_particle_fall(un_sub(v, was), a->fall_unit);
}

UN_KERNEL un_doubles8 dot_eight(const un_doubles8 a[3], const un_doubles8 b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* un_flip_share, with its un_flip_way. slip2: the square of the slip. */
UN_KERNEL un_doubles8 share_eight(const particles_args *a, un_doubles8 pic, un_doubles8 slip2,
                                  un_doubles8 v2, un_doubles8 speed2)
{
    const un_flip *flip = a->flip;
    double h = a->grid->h, g2 = un_dot(flip->gravity, flip->gravity);
    un_doubles8 most = un_doubles8_all(h), way = un_doubles8_sqrt(slip2) * flip->dt;
    un_longs8 same = (slip2 * slip2 <= g2 * h * h) | (v2 <= speed2);
    if (g2 != 0 && !un_longs8_all(same)) {
        un_doubles8 less = UN_SLIP_SHARE * un_doubles8_sqrt(speed2) + sqrt(sqrt(g2) * h);
        less *= flip->dt;
        most = un_doubles8_choose(same | (less >= h), most, less);
    }
    un_longs8 far = way > most;
    if (un_longs8_all(~far)) return pic;
    un_doubles8 kept = 1 - most / way;
    return un_doubles8_choose(far & (kept > pic), kept, pic);
}

/* What update_one does, for eight particles. */
static void update_eight(const particles_args *a, un_particles *p, int64_t q,
                         const un_eight *now_at, const un_eight *before_at)
{
    const un_flip *flip = a->flip;
    const double lead[3] = {p->lead.x, p->lead.y, p->lead.z};
    const double gravity[3] = {flip->gravity.x, flip->gravity.y, flip->gravity.z};
    const un_doubles8 unit[3] = {un_doubles8_all(a->fall_unit.x), un_doubles8_all(a->fall_unit.y),
                                 un_doubles8_all(a->fall_unit.z)};
    un_longs8 flies = (un_longs8_of_bytes(p->flags + q) & UN_PARTICLE_BALLISTIC) != 0;
    un_doubles8 fall = __builtin_convertvector(un_longs8_of_bytes(p->fall + q), un_doubles8);
    un_doubles8 was[3], v[3], now[3], slip[3], change[3];
    fall *= -1.0 / UN_FALL_FREE;
    for (int axis = 0; axis < 3; axis++) {
        now[axis] = un_doubles8_load(now_at->of[axis], 8);
        was[axis] = un_doubles8_load(p->v[axis] + q, 8) + lead[axis] * fall;
        v[axis] = was[axis] + (now[axis] - un_doubles8_load(before_at->of[axis], 8));
        slip[axis] = v[axis] - now[axis];
    }
    un_doubles8 speed2 = dot_eight(now, now), stir = speed2 * a->inverse_quiet;
    un_doubles8 pic = a->pic + (a->pic_quiet - a->pic) / (1 + stir * stir);
    un_doubles8 share = share_eight(a, pic, dot_eight(slip, slip), dot_eight(v, v), speed2);
    for (int axis = 0; axis < 3; axis++) {
        v[axis] += slip[axis] * -share;
        change[axis] = v[axis] - was[axis];
        v[axis] = un_doubles8_choose(flies, was[axis] + flip->dt * gravity[axis], v[axis]);
        memcpy(p->v[axis] + q, &v[axis], sizeof v[axis]);
    }
    un_doubles8 freely = dot_eight(change, unit), part = freely + 0.5; /* as un_fall_of */
    part = un_doubles8_choose(part < UINT8_MAX, part, un_doubles8_all(UINT8_MAX));
    part = un_doubles8_choose(freely < UN_FALL_LEAST * UN_FALL_FREE, un_doubles8_all(0), part);
    part = un_doubles8_choose(flies, un_doubles8_all(UN_FALL_FREE), part);
    un_doubles8_to_bytes(p->fall + q, part);
}

/* Fewer than eight, in the same way: compilers round a product with a sum once or twice, and not
 * the same in update_one. */
static void update_some(const particles_args *a, int64_t q, int64_t count, const un_eight *now,
                        const un_eight *before)
{
    const un_particles *p = a->particles;
    double v[3][8] = {0};
    uint8_t flags[8] = {0}, fall[8] = {0};
    un_particles some = {
        .v = {v[0], v[1], v[2]}, .flags = flags, .fall = fall, .lead = p->lead, .count = 8};
    memcpy(flags, p->flags + q, (size_t)count);
    memcpy(fall, p->fall + q, (size_t)count);
    for (int axis = 0; axis < 3; axis++)
        memcpy(v[axis], p->v[axis] + q, (size_t)count * sizeof **v);
    update_eight(a, &some, 0, now, before);
    memcpy(p->fall + q, fall, (size_t)count);
    for (int axis = 0; axis < 3; axis++)
        memcpy(p->v[axis] + q, v[axis], (size_t)count * sizeof **v);
}

static void update(void *arg, int64_t begin, int64_t end)
{
    const particles_args *a = arg;
    bool plain = a->grid->dim == 3 && !a->viscous;
    un_eight x, sampled[2];
    const un_eight *now = &sampled[0], *before = &sampled[1];
    for (int64_t q = begin; q < end; q += 8) {
        int64_t count = un_min64(end - q, 8);
        un_eight_load(&x, a->particles->x, q, count);
        un_faces_sample_two(sampled, a->grid, a->u_new, a->u_old, &x);
        if (plain && count == 8)
            update_eight(a, a->particles, q, now, before);
        else if (plain)
            update_some(a, q, count, now, before);
        for (int64_t n = 0; n < count && !plain; n++)
            update_one(a, q + n, un_v3(now->of[0][n], now->of[1][n], now->of[2][n]),
                       un_v3(before->of[0][n], before->of[1][n], before->of[2][n]));
    }
}

void un_transfer_to_particles(un_context *ctx, un_particles *particles, double *const u_new[3],
                              double *const u_old[3], const un_grid *grid, const un_flip *flip)
{
    particles_args a = {.particles = particles,
                        .u_new = u_new,
                        .u_old = u_old,
                        .grid = grid,
                        .flip = flip,
                        .viscous = particles->viscosity || flip->thickness > 0,
                        .pic = 1 - exp(-flip->pic * flip->dt),
                        .pic_quiet = 1 - exp(-flip->pic_quiet * flip->dt),
                        .inverse_quiet = 1 / (flip->quiet_speed * flip->quiet_speed),
                        .fall_unit = un_particle_fall_unit(flip->gravity, flip->dt)};
    un_parallel_for(ctx, particles->count, 4096, update, &a);
}
