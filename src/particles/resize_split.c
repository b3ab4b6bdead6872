/* Where the halves of particles go that split; resize.c says why. */
#include "particles/resize.h"

#define AXES 24
/* Neighbours considered in a split: in a filling of one size, twice as many as touch. */
#define NEIGHBOURS 64
/* Distance of the halves from the middle, in radii; at 0.79 they touch. The mean of
 * resize.c is 0.016 with 0.6 and 0.009 with 0.75. */
#define SPLIT_DISTANCE 0.7
/* In sheets, in spacings. */
#define SHEET_STEP 0.3
#define SHEET_AXES 12

static un_vec3 normal_at(const un_resize_def *def, int32_t i)
{
    return un_v3((double)def->normal[0][i], (double)def->normal[1][i], (double)def->normal[2][i]);
}

static bool at_surface(const un_resize_def *def, int32_t i)
{
    return fabsf(def->phi[i]) < (float)UN_TANGENT_WITHIN * def->radius[i];
}

/* Obstacles for a half: positions relative to the whole, and how far its centre must stay away. */
typedef struct surroundings {
    int32_t count;
    float x[3][NEIGHBOURS], reach[NEIGHBOURS];
    double wall; /* distance to it */
    un_vec3 wall_normal;
} surroundings;

static void look_around(surroundings *s, const un_resizing *a, int32_t i, double r_half)
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

static un_vec3 random_direction(const un_resizing *a, int32_t i, uint64_t number)
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
static bool splits_across(const un_resizing *a, int32_t i)
{
    int along = a->particles->flat ? 1 : 2;
    return at_surface(a->def, i) &&
           (a->particles->flags[i] & UN_PARTICLE_HALVED_MASK) >= along * UN_PARTICLE_HALVED;
}

static uint8_t count_halving(const un_resizing *a, int32_t i)
{
    uint8_t flags = a->particles->flags[i];
    if (splits_across(a, i)) return flags & (uint8_t)~UN_PARTICLE_HALVED_MASK;
    return at_surface(a->def, i) ? (uint8_t)(flags + UN_PARTICLE_HALVED) : flags;
}

/* Candidate steps of the halves, the one with the least overlap first. At the surface they run
 * along it, so that both halves can be tangent to it; at a wall every other one runs along it. */
static void find_steps(un_vec3 step[AXES], const un_resizing *a, int32_t i, double r_half)
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
static un_halves place_halves(const un_resizing *a, int32_t i)
{
    const un_resize_def *def = a->def;
    un_vec3 x = un_particle_position(a->particles, i), step[AXES];
    double r_half = 0.5 * un_particles_spacing(a->particles, 0.5 * (double)a->particles->volume[i]);
    double margin = UN_WALL_MARGIN * r_half;
    un_halves h = {{x, x}, false};
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
        h.x[k] = un_resize_tangent(a, h.x[k], phi, normal, r_half, below ? 4 * near : near);
    }
    return h;
}

/* How close the halves come to others: the sum of 1 / d^4. */
static double nearness(const un_resizing *a, int32_t i, un_vec3 step, double reach)
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
static un_halves place_sheet_halves(const un_resizing *a, int32_t i)
{
    const un_sheets *s = a->def->sheets;
    un_vec3 x = un_particle_position(a->particles, i), best = {0, 0, 0};
    un_vec3 axis = {(double)s->axis[0][i], (double)s->axis[1][i], (double)s->axis[2][i]};
    double spacing = 2 * (double)(fabsf(s->gap[i]) * a->def->radius[i]), least = INFINITY;
    double margin = UN_WALL_MARGIN * (double)a->def->radius[i];
    un_halves h = {{x, x}, false};
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

void un_resize_find_halves(void *arg, int64_t begin, int64_t end)
{
    const un_resizing *a = arg;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->split[n];
        bool sheet = a->kind[i] == UN_RESIZE_SPLIT_SHEET;
        a->halves[n] = sheet ? place_sheet_halves(a, i) : place_halves(a, i);
    }
}

/* Halving a float is exact and both halves keep the velocity, so volume and momentum are conserved
 * exactly. */
void un_resize_split(void *arg, int64_t begin, int64_t end)
{
    const un_resizing *a = arg;
    un_particles *p = a->particles;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = a->split[n], j = a->first_new[n];
        if (!a->halves[n].found) continue;
        if (a->kind[i] != UN_RESIZE_SPLIT_SHEET) p->flags[i] = count_halving(a, i);
        un_particle_copy(p, j, i);
        p->volume[j] = 0.5f * p->volume[i];
        p->volume[i] -= p->volume[j];
        un_particle_set_position(p, i, a->halves[n].x[0]);
        un_particle_set_position(p, j, a->halves[n].x[1]);
    }
}
