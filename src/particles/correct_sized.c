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
 * Eight consecutive particles form one vector. Particles that may touch any of eight such vectors
 * in a row are gathered once, in single precision relative to the middle of their box; of these
 * each vector takes those that may touch it, and each is tested against all eight.
 *
 * Over ranks these eights of vectors are those of one rank: where one holds particles of several
 * ranks, each of them has all of it, and copies of all that may touch it. */
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
    un_part own; /* this rank's particles */
    float *move[3];
} correct_args;

#define CROWD_MAX 1024

/* Particles that may touch one of a group, or of several; positions relative to a middle. */
typedef struct crowd {
    int32_t count;
    int32_t id[CROWD_MAX + UN_GROUP]; /* packing writes eight at once */
    float x[3][CROWD_MAX + UN_GROUP], r[CROWD_MAX + UN_GROUP], m[CROWD_MAX + UN_GROUP];
} crowd;

typedef double wide8 __attribute__((vector_size(64)));

/* A group in single precision, one particle per lane. */
typedef struct octet {
    un_bits8 id;    /* particles */
    uint32_t mask;  /* lanes whose particle takes part */
    un_lanes8 x[3]; /* relative to a middle */
    un_lanes8 r, m;
} octet;

/* A box relative to a middle: its own middle, half widths, and its largest radius. */
typedef struct reach_box {
    float middle[3], half[3], r;
} reach_box;

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

/* Masses are relative to that of a particle of radius r, so that their squares can be formed. */
static float mass_unit(const correct_args *a, float r)
{
    float d = 2 * r, unit = a->particles->flat ? d * d : d * d * d;
    return unit > 0 ? unit : 1;
}

/* unit: of mass. */
static void load(octet *o, const correct_args *a, int32_t group, un_vec3 middle, float unit)
{
    const un_particles *p = a->particles;
    const un_bits8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t first = group * UN_GROUP, count = un_clampi(p->count - first, 0, UN_GROUP);
    double origin[3] = {middle.x, middle.y, middle.z};
    o->id = lane + first;
    for (int axis = 0; axis < 3; axis++)
        o->x[axis] = load_relative(p->x[axis] + first, count, origin[axis]);
    o->r = load_some(a->def->radius + first, count);
    o->m = load_some(p->volume + first, count) / unit;
    o->mask = taking_part(p->flags + first, count);
}

/* Adds those of the octet's particles that may touch the box. */
static inline void gather(crowd *c, const octet *o, const reach_box *box)
{
    const un_lanes8 zero = {0};
    un_lanes8 gap2 = zero, s = o->r + box->r;
    for (int axis = 0; axis < 3; axis++) {
        un_lanes8 d = o->x[axis] - box->middle[axis];
        un_lanes8 gap = un_lanes8_max(un_lanes8_max(d, -d) - box->half[axis], zero);
        gap2 += gap * gap;
    }
    uint32_t mask = o->mask & un_lanes8_less(gap2, s * s);
    int32_t at = c->count; /* whether there are any is a toss-up */
    un_bits8_pack(c->id + at, o->id, mask);
    for (int axis = 0; axis < 3; axis++) un_lanes8_pack(c->x[axis] + at, o->x[axis], mask);
    un_lanes8_pack(c->r + at, o->r, mask);
    un_lanes8_pack(c->m + at, o->m, mask);
    c->count += __builtin_popcount(mask);
}

/* Those of the crowd that may touch the box, by their places in it; returns their number. */
static int32_t choose(int32_t *list, const crowd *c, const reach_box *box)
{
    const un_lanes8 zero = {0};
    const un_bits8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t count = 0;
    for (int32_t n = 0; n < c->count; n += UN_GROUP) {
        un_lanes8 gap2 = zero, s = un_lanes8_load(c->r + n) + box->r;
        for (int axis = 0; axis < 3; axis++) {
            un_lanes8 d = un_lanes8_load(c->x[axis] + n) - box->middle[axis];
            un_lanes8 gap = un_lanes8_max(un_lanes8_max(d, -d) - box->half[axis], zero);
            gap2 += gap * gap;
        }
        uint32_t mask = un_lanes8_less(gap2, s * s);
        if (c->count - n < UN_GROUP) mask &= (1u << (c->count - n)) - 1;
        un_bits8_pack(list + count, lane + n, mask);
        count += __builtin_popcount(mask);
    }
    return count;
}

static float distance_wanted(float ri, float rj)
{
    return ri + rj - SLACK * fminf(ri, rj);
}

/* An arbitrary direction, opposite for the two of a pair. */
static un_vec3 pair_direction(int64_t i, int64_t j)
{
    uint64_t pair = (uint64_t)(i < j ? i : j) << 32 | (uint64_t)(i < j ? j : i);
    un_vec3 n = {un_random(pair, 0) - 0.5, un_random(pair, 1) - 0.5, un_random(pair, 2) - 0.5};
    n = un_normalize(n);
    if (!(un_dot(n, n) > 0)) n = un_v3(1, 0, 0);
    return un_scale(n, i < j ? 1 : -1);
}

/* Pairs at one place, which have no direction. */
static __attribute__((noinline)) void push_apart(un_lanes8 sum[3], const correct_args *a,
                                                 const octet *o, const crowd *c,
                                                 const int32_t *list, int32_t count)
{
    const un_particle_share *share = a->def->share;
    for (int32_t i = 0; i < count; i++) {
        int32_t n = list ? list[i] : i;
        for (int k = 0; k < UN_GROUP; k++) {
            float dx = o->x[0][k] - c->x[0][n], dy = o->x[1][k] - c->x[1][n];
            float dz = o->x[2][k] - c->x[2][n], d0 = distance_wanted(o->r[k], c->r[n]);
            float near = TOGETHER * d0;
            if (o->id[k] == c->id[n] || !(dx * dx + dy * dy + dz * dz < near * near)) continue;
            un_vec3 way = pair_direction(un_particle_number(share, o->id[k]),
                                         un_particle_number(share, c->id[n]));
            float size = d0 * c->m[n] / (o->m[k] + c->m[n]);
            sum[0][k] += size * (float)way.x;
            sum[1][k] += size * (float)way.y;
            sum[2][k] += size * (float)way.z;
        }
    }
}

/* What pushes an octet: others, and those at one place with one of it. Sums of their own, so that
 * their bits do not depend on how many of a crowd are there that touch nobody. */
typedef struct pushes {
    un_lanes8 sum[3], together[3];
} pushes;

/* Adds what those of the crowd on the list push the octet by; nobody pushes itself. list: NULL for
 * the first `count`. (d0 - d) m_j / (d (m_i + m_j)) takes one root. All lanes are computed: whether
 * any is hit is a toss-up, and a wrong guess costs more. */
static inline void push(pushes *to, const correct_args *a, const octet *o, const crowd *c,
                        const int32_t *list, int32_t count)
{
    const un_bits8 id = o->id;
    const un_lanes8 x = o->x[0], y = o->x[1], z = o->x[2], r = o->r, m = o->m;
    un_lanes8 sum[3] = {to->sum[0], to->sum[1], to->sum[2]};
    un_bits8 together = {0};
    for (int32_t i = 0; i < count; i++) {
        int32_t n = list ? list[i] : i;
        un_lanes8 dx = x - c->x[0][n], dy = y - c->x[1][n], dz = z - c->x[2][n];
        un_lanes8 d2 = dx * dx + dy * dy + dz * dz, rj = un_lanes8_all(c->r[n]);
        un_lanes8 d0 = r + rj - SLACK * un_lanes8_min(r, rj), near = TOGETHER * d0;
        un_bits8 hit = (un_bits8)(d2 < d0 * d0) & (un_bits8)(id != c->id[n]);
        un_bits8 apart = (un_bits8)(d2 >= near * near);
        un_lanes8 both = m + c->m[n], inverse = un_lanes8_rsqrt(d2 * both * both);
        un_lanes8 w = (d0 - d2 * both * inverse) * c->m[n] * inverse;
        w = un_lanes8_where(hit & apart, w);
        together |= hit & ~apart;
        sum[0] += w * dx;
        sum[1] += w * dy;
        sum[2] += w * dz;
    }
    if (un_bits8_mask(together)) push_apart(to->together, a, o, c, list, count);
    for (int axis = 0; axis < 3; axis++) to->sum[axis] = sum[axis];
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

/* Groups in a row whose crowd is gathered at once. */
#define BATCH UN_CORRECT_BATCH
#define NEAR_MAX 512

typedef struct meeting {
    const correct_args *args;
    int32_t group[NEAR_MAX];
    crowd crowd;                        /* that may touch the batch */
    int32_t list[CROWD_MAX + UN_GROUP]; /* and the group */
} meeting;

static reach_box box_around(un_box3 box, float r, un_vec3 middle)
{
    un_vec3 at = un_sub(un_scale(un_add(box.min, box.max), 0.5), middle);
    un_vec3 half = un_scale(un_sub(box.max, box.min), 0.5);
    return (reach_box){
        {(float)at.x, (float)at.y, (float)at.z}, {(float)half.x, (float)half.y, (float)half.z}, r};
}

static void set_moves(const correct_args *a, int32_t group, const octet *own, const pushes *by)
{
    int32_t first = group * UN_GROUP;
    un_lanes8 sum[3];
    for (int axis = 0; axis < 3; axis++) sum[axis] = by->sum[axis] + by->together[axis];
    for (int32_t k = 0; k < UN_GROUP && first + k < a->own.end; k++) {
        if (first + k < a->own.begin) continue;
        float s[3] = {sum[0][k], sum[1][k], sum[2][k]};
        if (!(own->mask >> k & 1)) s[0] = s[1] = s[2] = 0;
        set_move(a, first + k, s);
    }
}

/* The box of groups first .. end - 1 and their largest radius; false if it is too wide. */
static bool bound_batch(const un_groups *groups, int32_t first, int32_t end, un_box3 *box, float *r)
{
    *box = un_groups_bounds(groups, first);
    *r = un_groups_radius(groups, first);
    for (int32_t g = first + 1; g < end; g++) {
        un_box3 other = un_groups_bounds(groups, g);
        *box = (un_box3){un_min3(box->min, other.min), un_max3(box->max, other.max)};
        *r = fmaxf(*r, un_groups_radius(groups, g));
    }
    un_vec3 wide = un_sub(box->max, box->min);
    return end == first + 1 ||
           !(fmax(wide.x, fmax(wide.y, wide.z)) > UN_CORRECT_WIDTH * (double)*r);
}

int32_t un_correct_boxes(const un_groups *groups, int32_t first, int32_t end,
                         un_box3 box[UN_CORRECT_BOXES], float reach[UN_CORRECT_BOXES])
{
    int32_t count = 0;
    if (bound_batch(groups, first, end, box, reach)) return 1;
    for (int32_t g = first; g < end; g++) {
        box[count] = un_groups_bounds(groups, g);
        reach[count] = un_groups_radius(groups, g);
        un_vec3 wide = un_sub(box[count].max, box[count].min);
        if (!(fmax(wide.x, fmax(wide.y, wide.z)) > UN_CORRECT_GROUP_WIDTH * (double)reach[count])) {
            count++;
            continue;
        }
        for (int32_t q = g * UN_GROUP; q < (g + 1) * UN_GROUP && q < groups->count; q++) {
            un_vec3 x = un_v3(groups->x[0][q], groups->x[1][q], groups->x[2][q]);
            box[count] = (un_box3){x, x};
            reach[count++] = groups->radius[q];
        }
    }
    return count;
}

/* Groups first .. end - 1 from one crowd; false if that is too large. */
static bool move_batch(meeting *m, int32_t first, int32_t end)
{
    const correct_args *a = m->args;
    const un_groups *groups = a->def->groups;
    un_box3 box;
    float r;
    if (!bound_batch(groups, first, end, &box, &r)) return false;
    int32_t count = un_groups_near(groups, box, (double)r, 1, m->group, NEAR_MAX);
    if (count < 0) return false;
    un_vec3 middle = un_scale(un_add(box.min, box.max), 0.5);
    reach_box around = box_around(box, r, middle);
    float unit = mass_unit(a, r);
    octet o;
    m->crowd.count = 0;
    for (int32_t n = 0; n < count; n++) {
        if (m->crowd.count > CROWD_MAX - UN_GROUP) return false;
        load(&o, a, m->group[n], middle, unit);
        gather(&m->crowd, &o, &around);
    }
    for (int32_t g = first; g < end; g++) {
        pushes by = {0};
        load(&o, a, g, middle, unit);
        around = box_around(un_groups_bounds(groups, g), un_groups_radius(groups, g), middle);
        count = choose(m->list, &m->crowd, &around);
        push(&by, a, &o, &m->crowd, m->list, count);
        set_moves(a, g, &o, &by);
    }
    return true;
}

/* One group, however many are near. */
static void move_group(meeting *m, int32_t g)
{
    const correct_args *a = m->args;
    const un_groups *groups = a->def->groups;
    un_box3 box = un_groups_bounds(groups, g);
    float r = un_groups_radius(groups, g);
    un_vec3 middle = un_scale(un_add(box.min, box.max), 0.5);
    reach_box around = box_around(box, r, middle);
    pushes by = {0};
    octet own, other;
    un_groups_walk walk;
    float unit = mass_unit(a, r);
    load(&own, a, g, middle, unit);
    m->crowd.count = 0;
    un_groups_walk_begin(&walk, groups, box, (double)r, 1);
    for (int32_t near; (near = un_groups_walk_next(&walk)) >= 0;) {
        load(&other, a, near, middle, unit);
        gather(&m->crowd, &other, &around);
        if (m->crowd.count <= CROWD_MAX - UN_GROUP) continue;
        push(&by, a, &own, &m->crowd, NULL, m->crowd.count);
        m->crowd.count = 0;
    }
    push(&by, a, &own, &m->crowd, NULL, m->crowd.count);
    set_moves(a, g, &own, &by);
}

static void find_moves(void *arg, int64_t begin, int64_t end)
{
    meeting m;
    m.args = arg;
    for (int32_t first = (int32_t)begin; first < end; first += BATCH) {
        int32_t last = first + BATCH < end ? first + BATCH : (int32_t)end;
        if (move_batch(&m, first, last)) continue;
        for (int32_t g = first; g < last; g++) move_group(&m, g);
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

/* The groups here of the batches that hold own particles. */
static un_part find_groups(const un_correct_def *def)
{
    const un_particle_share *share = def->share;
    if (!share) return (un_part){0, def->groups->group_count};
    un_part batches = un_correct_groups(share), here = {0, 0};
    if (batches.begin == batches.end) return here;
    here.begin = share->begin / UN_GROUP - (share->own.begin / UN_GROUP - batches.begin);
    here.end = here.begin + batches.end - batches.begin;
    UN_ASSERT(here.begin >= 0 && here.end <= def->groups->group_count);
    UN_ASSERT(share->group[here.begin] == batches.begin);
    UN_ASSERT(share->group[here.end - 1] == batches.end - 1);
    return here;
}

un_status un_particles_correct_sized(un_context *ctx, un_arena *arena, un_particles *particles,
                                     const un_correct_def *def)
{
    const un_particle_share *share = def->share;
    correct_args a = {.particles = particles, .def = def, .own = {0, particles->count}};
    un_part groups = find_groups(def);
    un_status status = UN_OK;
    for (int axis = 0; axis < 3; axis++) {
        a.move[axis] = un_arena_alloc(arena, (size_t)particles->count + 1, sizeof(float));
        if (!a.move[axis]) status = UN_ERROR_MEMORY;
    }
    if (share) {
        a.own = (un_part){share->begin, share->begin + share->own.end - share->own.begin};
        status = un_ranks_agree(ctx, status);
    }
    UN_TRY(status);
    un_parallel_part(ctx, groups, 64, find_moves, &a);
    un_parallel_part(ctx, a.own, 1024, apply_moves, &a);
    return UN_OK;
}
