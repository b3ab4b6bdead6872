/* Volume kept under viscous stress.
 *
 * [Batty11] solves for viscosity and pressure in turn. Viscous stress alone lets liquid be squeezed
 * like a sponge: a column that is pressed together does not grow wider, and resists with 2 mu times
 * the rate of strain instead of 3 mu [Trouton 1906]. The projection that follows restores the
 * volume, but not the missing stiffness: at any cell size and time step, threads stretch and bend
 * half as much again as they should, while their twist is stiff enough, so they fold where they
 * should coil. The remedy is to solve for pressure and velocity at once [Larionov et al. 2017,
 * Variational Stokes]:
 *
 *     (M + dt K) v - dt B^T p = M v_old,   B v = 0
 *
 * The solve is repeated with a corrected pressure [Uzawa]: p changes by mu times the remaining
 * divergence. For viscous stress alone the eigenvalues of that step are at most 3/2, that of a
 * swelling drop, because (div v)^2 <= 3 D:D, and 1/2 where liquid is confined: Chebyshev's
 * iteration for that range leaves 1/2, 1/7, 1/26 of the error. The effect of inertia is left to the
 * projection that follows.
 *
 * p and the divergence are means at nodes, from which tets take theirs: with one condition per tet
 * there would be more conditions than velocities, and the mesh would lock. Where viscosity jumps, a
 * node's mu is the least around it: the less viscous side gives way. */
#include "viscosity/nodes.h"

/* Centre and half width of the range of eigenvalues. */
#define CENTRE 1.0
#define HALF_WIDTH 0.5

typedef struct args {
    un_viscous_volume *keep;
    un_viscosity *v;
    const un_viscous_def *in;
    const un_tets *mesh;
    const un_stress_nodes *stress;
    double old, new; /* weights of the last step and of the divergence in the next step */
    int64_t first_tet, first_node; /* of this rank's, less their numbers on one rank */
} args;

static double viscosity_of(const args *s, int32_t t)
{
    return un_viscous_mean(s->in->viscosity, s->mesh->tet[t], s->in->viscosity_all);
}

/* Volume of liquid, as the stress counts it. */
static void find_volumes(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    for (int64_t t = begin; t < end; t++) {
        double volume = (double)s->stress->whole[t] * un_tets_volume(m, (int32_t)t);
        s->keep->volume[t] = s->stress->stiff[t] > 0 ? (float)volume : 0;
    }
}

/* Finds divergences of tets; adds up mu times the squared strain times the volume. */
static void look_at_tets(void *arg, int64_t begin, int64_t end, double *strain)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    for (int64_t t = begin + s->first_tet; t < end + s->first_tet; t++) {
        double w = (double)s->keep->volume[t];
        s->keep->flux[t] = 0;
        if (!(w > 0)) continue;
        const un_tet_shape *shape = un_tets_shape(m, (int32_t)t);
        double d[3][3] = {{0}};
        double over = 1 / un_tets_size(m, (int32_t)t), square = 0;
        for (int i = 0; i < 4; i++) {
            const double *g = shape->gradient[i];
            un_vec3 u = un_scale(s->in->u[m->tet[t][i]], over);
            for (int k = 0; k < 3; k++) {
                d[0][k] += u.x * g[k];
                d[1][k] += u.y * g[k];
                d[2][k] += u.z * g[k];
            }
        }
        for (int c = 0; c < 9; c++) {
            double both = 0.5 * (d[c / 3][c % 3] + d[c % 3][c / 3]);
            square += both * both;
        }
        s->keep->flux[t] = (float)(w * (d[0][0] + d[1][1] + d[2][2]));
        *strain += w * viscosity_of(s, (int32_t)t) * square;
    }
}

static void look_beyond(void *arg, int64_t begin, int64_t end)
{
    args s = *(args *)arg;
    double unused = 0;
    s.first_tet = 0;
    look_at_tets(&s, begin, end, &unused);
}

/* Adds up mu times the squared divergence times the volume. */
static void find_divergence(void *arg, int64_t begin, int64_t end, double *squares)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    const un_viscous_def *in = s->in;
    for (int64_t n = begin + s->first_node; n < end + s->first_node; n++) {
        double sum = 0, total = 0, least = INFINITY;
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            if (!(s->keep->volume[t] > 0)) continue;
            sum += (double)s->keep->flux[t];
            total += (double)s->keep->volume[t];
            if (in->viscosity) least = fmin(least, viscosity_of(s, t));
        }
        s->keep->divergence[n] = 0;
        if (!(total > 0)) continue;
        if (!in->viscosity) least = in->viscosity_all;
        double divergence = sum / total;
        s->keep->divergence[n] = in->dt * least * divergence;
        *squares += 0.25 * total * least * divergence * divergence;
    }
}

static void next_step(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    double *step = s->keep->step;
    for (int64_t n = begin; n < end; n++) {
        step[n] = s->old * step[n] - s->new * s->keep->divergence[n];
        if (s->in->p) s->in->p[n] += step[n] / s->in->dt;
    }
}

/* Takes the guess, smoothed: a mode that alternates from node to node does not show in the
 * divergence, and would grow from step to step. */
static void first_step(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    const double *p = s->in->p;
    for (int64_t n = begin; n < end; n++) {
        double sum = 0, total = 0;
        for (int32_t e = m->first[n]; p && e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4;
            const int32_t *k = m->tet[t];
            double w = (double)s->keep->volume[t];
            sum += 0.25 * w * (p[k[0]] + p[k[1]] + p[k[2]] + p[k[3]]);
            total += w;
        }
        s->keep->step[n] = total > 0 ? s->in->dt * sum / total : 0;
    }
}

static void keep_guess(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t n = begin; n < end; n++) s->in->p[n] = s->keep->step[n] / s->in->dt;
}

/* What the pressure in tet t does to its corner i. */
static inline un_vec3 push_corner(const void *arg, int32_t t, int i)
{
    const args *s = arg;
    const double *p = s->keep->step, *g = un_tets_shape(s->mesh, t)->gradient[i];
    const int32_t *k = s->mesh->tet[t];
    double mean = 0.25 * (p[k[0]] + p[k[1]] + p[k[2]] + p[k[3]]);
    double w = mean * (double)s->keep->volume[t] / un_tets_size(s->mesh, t);
    return un_v3(g[0] * w, g[1] * w, g[2] * w);
}

static void push_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_tets *m = s->mesh;
    const un_viscous_walls *walls = s->in->walls;
    for (int64_t r = begin; r < end; r++) {
        int32_t n = s->v->node[r];
        un_vec3 force = {0, 0, 0};
        if (n >= m->node_count) return; /* bodies come last */
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++)
            force = un_add(force, push_corner(s, m->corner[e] / 4, m->corner[e] % 4));
        if (walls && walls->kind[n] == UN_WALL_SLIDES)
            force = un_block_times(walls->free[n], force);
        s->v->b[r] = un_add(s->v->b[r], force);
    }
}

static void push(args *s)
{
    un_parallel_part(s->v->ctx, un_viscosity_rows(s->v), un_block_grain(s->v->matrix.n), push_rows,
                     s);
    un_dragged_push(s->stress, push_corner, s);
}

static un_status share_step(const args *s)
{
    un_field field = {"step", s->keep->step, NULL, sizeof *s->keep->step};
    return un_tets_share(s->mesh, &field, 1);
}

un_status un_viscous_volume_begin(un_viscous_volume *keep, un_arena *arena,
                                  const un_stress_nodes *stress)
{
    un_viscosity *v = stress->v;
    const un_viscous_def *in = stress->in;
    args s = {.keep = keep, .v = v, .in = in, .mesh = in->mesh, .stress = stress};
    int64_t nodes = in->mesh->node_count, tets = in->mesh->tet_count;
    *keep = (un_viscous_volume){
        .flux = un_arena_alloc(arena, (size_t)tets + 1, sizeof *keep->flux),
        .volume = un_arena_alloc(arena, (size_t)tets + 1, sizeof *keep->volume),
        .divergence = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *keep->divergence),
        .step = un_arena_alloc(arena, (size_t)nodes + 1, sizeof *keep->step)};
    bool able = keep->flux && keep->volume && keep->divergence && keep->step;
    UN_TRY(un_tets_agree(in->mesh, able ? UN_OK : UN_ERROR_MEMORY));
    if (in->mesh->share) memset(keep->divergence, 0, (size_t)nodes * sizeof *keep->divergence);
    un_parallel_for(v->ctx, tets, 8192, find_volumes, &s);
    un_parallel_for(v->ctx, nodes, 4096, first_step, &s);
    UN_TRY(share_step(&s));
    if (!in->p) return UN_OK;
    un_parallel_for(v->ctx, nodes, 16384, keep_guess, &s);
    push(&s);
    return UN_OK;
}

double un_viscous_volume_error(un_viscous_volume *keep, const un_stress_nodes *stress)
{
    un_viscosity *v = stress->v;
    const un_viscous_def *in = stress->in;
    args s = {.keep = keep, .v = v, .in = in, .mesh = in->mesh, .stress = stress};
    const un_tet_share *share = in->mesh->share;
    un_part own = un_tets_own(in->mesh);
    double strain, squares;
    if (share) {
        s.first_tet = share->tet_begin - share->tets.begin;
        s.first_node = share->node_begin - share->nodes.begin;
        un_parallel_part(v->ctx, (un_part){0, own.begin}, 4096, look_beyond, &s);
        un_parallel_part(v->ctx, (un_part){own.end, in->mesh->tet_count}, 4096, look_beyond, &s);
        un_ranks_sums(v->ctx, share->tets, 1, look_at_tets, &s, &strain);
        un_ranks_sums(v->ctx, share->nodes, 1, find_divergence, &s, &squares);
    } else {
        un_parallel_sums(v->ctx, in->mesh->tet_count, 1, look_at_tets, &s, &strain);
        un_parallel_sums(v->ctx, in->mesh->node_count, 1, find_divergence, &s, &squares);
    }
    return strain > 0 ? sqrt(squares / strain) : 0;
}

void un_viscous_chebyshev(double *rho, double *last, double *divergence)
{
    /* [Saad 2003, algorithm 12.1] */
    double before = *rho;
    *rho = before > 0 ? 1 / (2 * CENTRE / HALF_WIDTH - before) : HALF_WIDTH / CENTRE;
    *last = before > 0 ? before * *rho : 0;
    *divergence = before > 0 ? 2 * *rho / HALF_WIDTH : 1 / CENTRE;
}

un_status un_viscous_volume_push(un_viscous_volume *keep, const un_stress_nodes *stress)
{
    un_viscosity *v = stress->v;
    const un_viscous_def *in = stress->in;
    args s = {.keep = keep, .v = v, .in = in, .mesh = in->mesh, .stress = stress};
    un_viscous_chebyshev(&keep->rho, &s.old, &s.new);
    un_parallel_for(v->ctx, in->mesh->node_count, 16384, next_step, &s);
    UN_TRY(share_step(&s));
    push(&s);
    return UN_OK;
}
