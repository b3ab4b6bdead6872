/* Particle paths through a field on tets: the same Runge-Kutta as paths.c. */
#include "advect/advect.h"

/* Collisions keep particles off walls by a hundredth of a cell; twice that is clear of them. */
#define MARGIN 0.02

typedef struct path_args {
    un_particles *particles;
    un_hit *hits;
    const un_tet_bins *bins;
    const un_tets *mesh;
    const un_tet_field *u;
    const float *wall;
    const un_walls *walls;
    un_vec3 lead;
    double dt;
    uint8_t *unsure; /* over ranks: 1 where this one does not know enough */
} path_args;

/* false: another rank knows it. */
static bool velocity(un_vec3 *u, const path_args *a, un_vec3 x, un_tets_place *place)
{
    if (un_tets_locate_in(a->mesh, place->tet, x, place)) {
        if (a->unsure && !un_tets_knows(a->mesh, place->tet)) return false;
    } else if (!un_tets_locate_here(a->mesh, x, place)) {
        return false;
    }
    *u = un_tet_field_at(a->u, a->mesh, place);
    return true;
}

static un_vec3 in_domain(const path_args *a, un_vec3 x)
{
    return un_min3(un_max3(x, un_v3(0, 0, 0)), a->walls->grid->size);
}

/* Where the path leads next, after stage `stage` of three. */
static un_vec3 next_place(const path_args *a, un_vec3 x, un_vec3 k, int stage)
{
    return in_domain(a, un_mad(x, k, stage == 0 ? 0.5 * a->dt : 0.75 * a->dt));
}

static un_vec3 whole_step(const un_vec3 k[3], double dt)
{
    return un_scale(un_mad(un_mad(un_scale(k[0], 2), k[1], 3), k[2], 4), dt / 9);
}

/* false: it leads to where another rank knows the velocity. */
static bool find_step(un_vec3 *step, const path_args *a, int64_t q)
{
    un_vec3 x = un_particle_position(a->particles, q), at = x, k[3];
    un_tets_place place = {.tet = a->bins->tet[q]};
    for (int stage = 0; stage < 3; stage++) {
        if (!velocity(&k[stage], a, at, &place)) return false;
        at = next_place(a, x, k[stage], stage);
    }
    *step = whole_step(k, a->dt);
    return true;
}

static void move_one(const path_args *a, int64_t q, un_vec3 step)
{
    un_particles *p = a->particles;
    const un_tets *mesh = a->mesh;
    un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), to = un_add(x, step);
    /* Distances change by no more than the distance travelled: a node of the tet where the particle
     * began tells whether it can meet a wall. Position correction may have moved it a little. */
    int32_t tet = a->bins->tet[q];
    double reach = a->wall[mesh->tet[tet][0]] - un_length(un_sub(to, mesh->x[mesh->tet[tet][0]]));
    bool free = !a->walls->bodies->moving && reach > un_length(step) + MARGIN * a->walls->grid->h;
    un_vec3 was = v;
    un_hit hit = {.body = -1};
    if (!free) to = un_advect_collide_hit(a->walls, x, to, a->dt, &v, &hit);
    if (a->hits) a->hits[q] = hit;
    un_particle_set_position(p, q, to);
    un_advect_finish(p, q, v, was, a->lead);
}

static void move(void *arg, int64_t begin, int64_t end)
{
    path_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 step;
        if (a->unsure) a->unsure[q] = 0;
        if (p->flags[q] & UN_PARTICLE_BALLISTIC)
            step = un_scale(un_particle_velocity(p, q), a->dt);
        else if (!find_step(&step, a, q)) {
            a->unsure[q] = 1;
            continue;
        }
        move_one(a, q, step);
    }
}

/* Paths that lead through the parts of several ranks. */
static un_status move_unsure(un_context *ctx, un_arena *arena, const path_args *a, un_part own)
{
    const un_particles *p = a->particles;
    int64_t count = 0, k = 0;
    for (int64_t q = own.begin; q < own.end; q++) count += a->unsure[q];
    if (un_ranks_total(ctx, count) == 0) return UN_OK;
    un_tet_question *at = un_arena_alloc(arena, (size_t)count + 1, sizeof *at);
    un_vec3(*slope)[3] = un_arena_alloc(arena, (size_t)count + 1, sizeof *slope);
    UN_TRY(un_ranks_agree(ctx, at && slope ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t q = own.begin; q < own.end; q++)
        if (a->unsure[q])
            at[k++] = (un_tet_question){
                .x = un_particle_position(p, q), .rank = un_rank(ctx), .tet = a->bins->tet[q]};
    for (int stage = 0; stage < 3; stage++) {
        UN_TRY(un_tet_ask(ctx, arena, a->mesh, a->u, 1, at, count));
        k = 0;
        for (int64_t q = own.begin; q < own.end; q++) {
            if (!a->unsure[q]) continue;
            slope[k][stage] = at[k].value[0];
            at[k].x = next_place(a, un_particle_position(p, q), slope[k][stage], stage);
            k++;
        }
    }
    k = 0;
    for (int64_t q = own.begin; q < own.end; q++)
        if (a->unsure[q]) move_one(a, q, whole_step(slope[k++], a->dt));
    return UN_OK;
}

un_status un_advect_tets(un_context *ctx, un_arena *arena, un_particles *particles, un_hit *hits,
                         const un_tet_bins *bins, const un_tets *mesh, const un_tet_field *u,
                         const float *wall, const un_walls *walls, un_vec3 gravity, double dt)
{
    path_args a = {particles, hits, bins, mesh, u, wall, walls, un_scale(gravity, 0.5 * dt),
                   dt,        NULL};
    un_part own = un_particle_own(bins->share, particles->count);
    if (bins->share) {
        a.unsure = un_arena_alloc(arena, (size_t)particles->count + 1, 1);
        UN_TRY(un_ranks_agree(ctx, a.unsure ? UN_OK : UN_ERROR_MEMORY));
    }
    un_parallel_part(ctx, own, 512, move, &a);
    if (bins->share) UN_TRY(move_unsure(ctx, arena, &a, own));
    particles->lead = a.lead;
    return UN_OK;
}

typedef struct rate_args {
    const un_vec3 *u;
    const uint8_t *known;
    const un_tet_bins *bins;
    const un_tets *mesh;
    int64_t first; /* own tet */
} rate_args;

static double rate_block(void *arg, int64_t begin, int64_t end)
{
    const rate_args *a = arg;
    double max = 0;
    for (int64_t t = a->first + begin; t < a->first + end; t++) {
        if (a->known[t] != 1 || a->bins->begin[t] == a->bins->begin[t + 1]) continue;
        un_vec3 u = a->u[t];
        double speed = fmax(fabs(u.x), fmax(fabs(u.y), fabs(u.z)));
        max = fmax(max, speed / un_tets_size(a->mesh, (int32_t)t));
    }
    return max;
}

double un_advect_rate_tets(un_context *ctx, const un_vec3 *u_tet, const uint8_t *known,
                           const un_tet_bins *bins, const un_tets *mesh)
{
    un_part own = un_tets_own(mesh);
    rate_args a = {u_tet, known, bins, mesh, own.begin};
    double max = un_parallel_max(ctx, own.end - own.begin, rate_block, &a);
    return mesh->share ? un_ranks_max(ctx, max) : max;
}
