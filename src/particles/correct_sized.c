/* Position correction for particles of many sizes [Ando13 section 3, after Ando 2012].
 *
 *     dx_i = k sum_j (d0 - d) n_ij m_j / (m_i + m_j)     over pairs with d < d0,
 *     d0 = r_i + r_j - s min(r_i, r_j)
 *
 * all from the old positions (Jacobi), never farther than a share of r_i. Near the surface only the
 * tangential part is kept, so that the correction neither raises nor lowers the surface. The
 * paper's pull towards the interface is left out: it costs a tank a fifth of its volume in seconds
 * (methods.md). The weights are masses, so next to a large particle the small one moves.
 *
 * Eight consecutive particles form one vector. Particles that may touch any of them are gathered
 * once, in single precision relative to the middle of their box, and each is tested against all
 * eight. */
#include "particles/groups.h"
#include "particles/particles.h"

/* s. At 0 the particles of an even filling would just touch, and round-off would move them. The
 * density of a jittered tank settles to within 7.8, 6.6, 6.2, 5.9 % per cell at 0.2, 0.1, 0.04, 0;
 * after 32 rounds its particles still move by 0.00003, 0.0003, 0.001, 0.002 radii per round. */
#define SLACK 0.04f
/* k. 0.7 is no more even, and causes a quarter more motion. */
#define STRENGTH 0.5f
/* A particle moves at most this far in a step, in radii. */
#define MOVE_MAX 0.4f
/* Nor farther than this share of the distance it travels in the step: motion is what disorders
 * particles, and in still water each correction would dent the surface. */
#define MOVE_WAYS 0.3f
/* Above this depth, in radii, particles move only along the surface [Ando13]; the second value is
 * how much deeper they move freely again. */
#define SURFACE_DEPTH 6.0f
#define SURFACE_FADE 2.0f
/* A particle closer to a wall than this, in radii, does not move closer. */
#define WALL_MARGIN 0.08
/* A pair closer than this share of r_i + r_j has no direction. */
#define TOGETHER 1e-5f

typedef struct correct_args {
    un_particles *particles;
    const un_correct_def *def;
    float *move[3];
} correct_args;

#define CROWD_MAX 512

/* Particles that may touch one of a group; positions relative to the group's middle. */
typedef struct crowd {
    un_vec3 middle;
    int32_t count;
    int32_t id[CROWD_MAX + UN_GROUP]; /* packing writes eight at once */
    float x[3][CROWD_MAX + UN_GROUP], r[CROWD_MAX + UN_GROUP], m[CROWD_MAX + UN_GROUP];
} crowd;

typedef double wide8 __attribute__((vector_size(64)));

/* A group in single precision, one particle per lane. */
typedef struct octet {
    int32_t first;  /* particle */
    uint32_t mask;  /* lanes whose particle takes part */
    un_lanes8 x[3]; /* relative to a middle */
    un_lanes8 r, m;
} octet;

static un_lanes8 load_relative(const double *x, int32_t count, double middle)
{
    wide8 v = {0};
    if (count == UN_GROUP)
        memcpy(&v, x, sizeof v);
    else
        memcpy(&v, x, (size_t)count * sizeof *x);
    return __builtin_convertvector(v - middle, un_lanes8);
}

static un_lanes8 load_some(const float *v, int32_t count)
{
    un_lanes8 out = {0};
    if (count == UN_GROUP) return un_lanes8_load(v);
    memcpy(&out, v, (size_t)count * sizeof *v);
    return out;
}

/* Mask of all particles that are not ballistic. */
static uint32_t taking_part(const uint8_t *flags, int32_t count)
{
    uint64_t eight = 0;
    uint32_t mask = 0;
    if (count == UN_GROUP) {
        memcpy(&eight, flags, sizeof eight);
        if (!(eight & UN_PARTICLE_BALLISTIC * 0x0101010101010101u)) return 0xff;
    }
    for (int32_t k = 0; k < count; k++) mask |= (uint32_t) !(flags[k] & UN_PARTICLE_BALLISTIC) << k;
    return mask;
}

static void load(octet *o, const correct_args *a, int32_t group, un_vec3 middle)
{
    const un_particles *p = a->particles;
    o->first = group * UN_GROUP;
    int32_t count = un_clampi(p->count - o->first, 0, UN_GROUP);
    double origin[3] = {middle.x, middle.y, middle.z};
    for (int axis = 0; axis < 3; axis++)
        o->x[axis] = load_relative(p->x[axis] + o->first, count, origin[axis]);
    o->r = load_some(a->def->radius + o->first, count);
    o->m = load_some(p->volume + o->first, count);
    o->mask = taking_part(p->flags + o->first, count);
}

/* Adds the octet's particles that may touch the box of half widths `half` and largest radius r. */
static void gather(crowd *c, const octet *o, const float half[3], float r)
{
    const un_lanes8 zero = {0};
    un_lanes8 gap2 = zero, s = o->r + r;
    for (int axis = 0; axis < 3; axis++) {
        un_lanes8 gap = un_lanes8_max(o->x[axis], -o->x[axis]) - half[axis];
        gap = un_lanes8_max(gap, zero);
        gap2 += gap * gap;
    }
    uint32_t mask = o->mask & un_lanes8_less(gap2, s * s);
    if (!mask) return;
    const un_bits8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t at = c->count;
    un_bits8_pack(c->id + at, lane + o->first, mask);
    for (int axis = 0; axis < 3; axis++) un_lanes8_pack(c->x[axis] + at, o->x[axis], mask);
    un_lanes8_pack(c->r + at, o->r, mask);
    un_lanes8_pack(c->m + at, o->m, mask);
    c->count += __builtin_popcount(mask);
}

/* An arbitrary direction, opposite for the two of a pair. */
static un_vec3 pair_direction(int32_t i, int32_t j)
{
    uint64_t pair = (uint64_t)(i < j ? i : j) << 32 | (uint64_t)(i < j ? j : i);
    un_vec3 n = {un_random(pair, 0) - 0.5, un_random(pair, 1) - 0.5, un_random(pair, 2) - 0.5};
    n = un_normalize(n);
    if (!(un_dot(n, n) > 0)) n = un_v3(1, 0, 0);
    return un_scale(n, i < j ? 1 : -1);
}

/* Adds the crowd's push on the octet. self: the crowd is the octet itself, lane by lane. */
static void push(un_lanes8 sum[3], const octet *o, const crowd *c, bool self)
{
    const un_bits8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int32_t n = 0; n < c->count; n++) {
        un_lanes8 dx = o->x[0] - c->x[0][n], dy = o->x[1] - c->x[1][n], dz = o->x[2] - c->x[2][n];
        un_lanes8 d2 = dx * dx + dy * dy + dz * dz, rj = un_lanes8_all(c->r[n]);
        un_lanes8 d0 = o->r + rj - SLACK * un_lanes8_min(o->r, rj);
        un_bits8 hit = (un_bits8)(d2 < d0 * d0);
        if (self) hit &= (un_bits8)(lane != c->id[n] - o->first);
        if (!un_bits8_mask(hit)) continue;
        un_lanes8 d = un_lanes8_sqrt(d2);
        un_bits8 together = hit & (un_bits8)(d < TOGETHER * d0);
        un_lanes8 w = (d0 - d) * c->m[n] / (d * (o->m + c->m[n]));
        w = un_lanes8_where(hit & ~together, w);
        sum[0] += w * dx;
        sum[1] += w * dy;
        sum[2] += w * dz;
        for (uint32_t mask = un_bits8_mask(together); mask; mask &= mask - 1) {
            int k = __builtin_ctz(mask);
            un_vec3 way = pair_direction(o->first + k, c->id[n]);
            float size = d0[k] * c->m[n] / (o->m[k] + c->m[n]);
            sum[0][k] += size * (float)way.x;
            sum[1][k] += size * (float)way.y;
            sum[2][k] += size * (float)way.z;
        }
    }
}

/* Limits the move, and near the surface keeps only its tangential part. */
static void set_move(const correct_args *a, int32_t q, const float sum[3])
{
    const un_correct_def *def = a->def;
    float r = def->radius[q], move[3] = {STRENGTH * sum[0], STRENGTH * sum[1], STRENGTH * sum[2]};
    float depth = -def->phi[q] / r;
    float along = un_clamp((SURFACE_DEPTH + SURFACE_FADE - depth) / SURFACE_FADE, 0, 1);
    float n[3] = {def->normal[0][q], def->normal[1][q], def->normal[2][q]};
    float across = along * (move[0] * n[0] + move[1] * n[1] + move[2] * n[2]);
    for (int axis = 0; axis < 3; axis++) move[axis] -= across * n[axis];
    float length = sqrtf(move[0] * move[0] + move[1] * move[1] + move[2] * move[2]);
    const un_particles *p = a->particles;
    un_vec3 v = un_particle_velocity(p, q);
    float most = fminf(MOVE_MAX * r, MOVE_WAYS * (float)(un_length(v) * def->dt));
    float scale = length > most ? most / length : 1;
    for (int axis = 0; axis < 3; axis++) a->move[axis][q] = scale * move[axis];
}

/* Groups that may touch one of eight groups in a row, so that the tree is walked once for all
 * eight. */
#define SHORTLIST_MAX 512
typedef struct shortlist {
    int32_t count; /* -1: too many */
    int32_t group[SHORTLIST_MAX];
    un_group_box boxes[SHORTLIST_MAX / 8];
} shortlist;

static void make_shortlist(shortlist *list, const un_groups *groups, int32_t first, int32_t end)
{
    un_box3 box = un_groups_bounds(groups, first);
    float r = un_groups_radius(groups, first);
    for (int32_t g = first + 1; g < end; g++) {
        un_box3 other = un_groups_bounds(groups, g);
        box = (un_box3){un_min3(box.min, other.min), un_max3(box.max, other.max)};
        r = fmaxf(r, un_groups_radius(groups, g));
    }
    list->count = un_groups_near(groups, box, (double)r, 1, list->group, SHORTLIST_MAX);
    if (list->count < 0) {
        list->count = -1;
        return;
    }
    for (int32_t n = 0; n < (list->count + 7) / 8 * 8; n++) {
        const un_group_box *from = groups->boxes + list->group[n < list->count ? n : 0] / 8;
        un_group_box *to = list->boxes + n / 8;
        int c = n < list->count ? list->group[n] % 8 : 0;
        for (int axis = 0; axis < 3; axis++) {
            to->lo[axis][n % 8] = from->lo[axis][c];
            to->hi[axis][n % 8] = from->hi[axis][c];
        }
        to->radius[n % 8] = n < list->count ? from->radius[c] : NAN;
    }
}

/* The current group: its particles, the crowd that may touch them, and the resulting moves. */
typedef struct meeting {
    const correct_args *args;
    un_vec3 middle;
    float half[3], r;
    octet own;
    un_lanes8 sum[3];
    crowd crowd;
} meeting;

static void meet(meeting *m, int32_t group)
{
    octet other;
    if (group * UN_GROUP == m->own.first) return;
    load(&other, m->args, group, m->middle);
    gather(&m->crowd, &other, m->half, m->r);
    if (m->crowd.count <= CROWD_MAX - UN_GROUP) return;
    push(m->sum, &m->own, &m->crowd, false);
    m->crowd.count = 0;
}

static void move_group(meeting *m, int32_t g, const shortlist *list)
{
    const un_groups *groups = m->args->def->groups;
    un_box3 box = un_groups_bounds(groups, g);
    un_vec3 wide = un_scale(un_sub(box.max, box.min), 0.5);
    m->middle = un_scale(un_add(box.min, box.max), 0.5);
    m->half[0] = (float)wide.x;
    m->half[1] = (float)wide.y;
    m->half[2] = (float)wide.z;
    m->r = un_groups_radius(groups, g);
    for (int axis = 0; axis < 3; axis++) m->sum[axis] = un_lanes8_all(0);
    load(&m->own, m->args, g, m->middle);
    m->crowd.count = 0;
    gather(&m->crowd, &m->own, m->half, m->r);
    push(m->sum, &m->own, &m->crowd, true);
    m->crowd.count = 0;
    if (list->count >= 0) {
        un_groups_query query = un_groups_query_make(box, (double)m->r, 1);
        for (int32_t n = 0; n < list->count; n += 8) {
            uint32_t mask = un_groups_reached(&query, list->boxes + n / 8);
            for (; mask; mask &= mask - 1) meet(m, list->group[n + __builtin_ctz(mask)]);
        }
    } else {
        un_groups_walk walk;
        un_groups_walk_begin(&walk, groups, box, (double)m->r, 1);
        for (int32_t near; (near = un_groups_walk_next(&walk)) >= 0;) meet(m, near);
    }
    push(m->sum, &m->own, &m->crowd, false);
    for (int32_t k = 0; k < UN_GROUP && m->own.first + k < m->args->particles->count; k++) {
        float s[3] = {m->sum[0][k], m->sum[1][k], m->sum[2][k]};
        if (!(m->own.mask >> k & 1)) s[0] = s[1] = s[2] = 0;
        set_move(m->args, m->own.first + k, s);
    }
}

static void find_moves(void *arg, int64_t begin, int64_t end)
{
    const correct_args *a = arg;
    shortlist list;
    meeting m;
    m.args = a;
    for (int32_t first = (int32_t)begin; first < end; first += 8) {
        int32_t last = first + 8 < end ? first + 8 : (int32_t)end;
        make_shortlist(&list, a->def->groups, first, last);
        for (int32_t g = first; g < last; g++) move_group(&m, g, &list);
    }
}

/* True if the path to x + move is open and does not end too close to a wall, or at least no closer
 * than x. */
static bool may_go(const correct_args *a, int64_t q, un_vec3 x, un_vec3 move)
{
    const un_walls *walls = a->def->walls;
    un_vec3 to = un_add(x, move);
    double margin = WALL_MARGIN * (double)a->def->radius[q];
    if ((double)a->def->wall[q] - un_length(move) > margin) /* open sides are no walls */
        return un_grid_encloses(walls->grid, to);
    return un_open_move(walls, x, to, margin);
}

/* The move without its part towards the wall, so that particles pressed against a wall can still
 * separate along it. */
static un_vec3 slide(const correct_args *a, int64_t q, un_vec3 x, un_vec3 move)
{
    const un_walls *walls = a->def->walls;
    double e = 0.05 * (double)a->def->radius[q], d = un_walls_distance_exact(walls, x);
    un_vec3 n = {un_walls_distance_exact(walls, un_v3(x.x + e, x.y, x.z)) - d,
                 un_walls_distance_exact(walls, un_v3(x.x, x.y + e, x.z)) - d,
                 un_walls_distance_exact(walls, un_v3(x.x, x.y, x.z + e)) - d};
    n = un_normalize(n);
    return un_mad(move, n, -fmin(0, un_dot(move, n)));
}

static void apply_moves(void *arg, int64_t begin, int64_t end)
{
    const correct_args *a = arg;
    un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 move = {(double)a->move[0][q], (double)a->move[1][q], (double)a->move[2][q]};
        un_vec3 x = un_particle_position(p, q);
        if (!(un_dot(move, move) > 0)) continue;
        if (!may_go(a, q, x, move)) {
            move = slide(a, q, x, move);
            if (!may_go(a, q, x, move)) continue;
        }
        un_particle_set_position(p, q, un_add(x, move));
    }
}

un_status un_particles_correct_sized(un_context *ctx, un_arena *arena, un_particles *particles,
                                     const un_correct_def *def)
{
    correct_args a = {.particles = particles, .def = def};
    for (int axis = 0; axis < 3; axis++) {
        a.move[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof(float));
        if (!a.move[axis]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, def->groups->group_count, 64, find_moves, &a);
    un_parallel_for(ctx, particles->count, 4096, apply_moves, &a);
    return UN_OK;
}
