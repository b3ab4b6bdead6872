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
} path_args;

static un_vec3 velocity(const path_args *a, un_vec3 x, un_tets_place *place)
{
    if (!un_tets_locate_in(a->mesh, place->tet, x, place)) un_tets_locate(a->mesh, x, place);
    return un_tet_field_at(a->u, a->mesh, place);
}

static un_vec3 in_domain(const path_args *a, un_vec3 x)
{
    return un_min3(un_max3(x, un_v3(0, 0, 0)), a->walls->grid->size);
}

static void move(void *arg, int64_t begin, int64_t end)
{
    path_args *a = arg;
    un_particles *p = a->particles;
    const un_tets *mesh = a->mesh;
    double dt = a->dt;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(p, q), v = un_particle_velocity(p, q), step;
        un_tets_place place = {.tet = a->bins->tet[q]};
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            step = un_scale(v, dt);
        } else {
            un_vec3 k1 = velocity(a, x, &place);
            un_vec3 k2 = velocity(a, in_domain(a, un_mad(x, k1, 0.5 * dt)), &place);
            un_vec3 k3 = velocity(a, in_domain(a, un_mad(x, k2, 0.75 * dt)), &place);
            step = un_scale(un_mad(un_mad(un_scale(k1, 2), k2, 3), k3, 4), dt / 9);
        }
        un_vec3 to = un_add(x, step);
        /* Distances change by no more than the distance travelled: a node of the tet where the
         * particle began tells whether it can meet a wall. Position correction may have moved it a
         * little. */
        int32_t tet = a->bins->tet[q];
        double reach =
            a->wall[mesh->tet[tet][0]] - un_length(un_sub(to, mesh->x[mesh->tet[tet][0]]));
        bool free =
            !a->walls->bodies->moving && reach > un_length(step) + MARGIN * a->walls->grid->h;
        un_vec3 was = v;
        un_hit hit = {.body = -1};
        if (!free) to = un_advect_collide_hit(a->walls, x, to, dt, &v, &hit);
        if (a->hits) a->hits[q] = hit;
        un_particle_set_position(p, q, to);
        un_advect_finish(p, q, v, was, a->lead);
    }
}

void un_advect_tets(un_context *ctx, un_particles *particles, un_hit *hits, const un_tet_bins *bins,
                    const un_tets *mesh, const un_tet_field *u, const float *wall,
                    const un_walls *walls, un_vec3 gravity, double dt)
{
    path_args a = {particles, hits, bins, mesh, u, wall, walls, un_scale(gravity, 0.5 * dt), dt};
    un_parallel_for(ctx, particles->count, 2048, move, &a);
    particles->lead = a.lead;
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
