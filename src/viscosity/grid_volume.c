/* Volume kept under viscous stress, on the grid: as volume.c has it for nodes, with the pressure at
 * cells. There is one condition for each cell, as in the projection; faces have velocities enough
 * for that, and nothing needs smoothing. */
#include "viscosity/grid.h"

typedef struct args {
    un_grid_volume *keep;
    const un_stress_grid *s;
    double old, new; /* weights of the last step and of the divergence in the next step */
} args;

/* Strains of cells and edges, and divergences: sums[0] is that of mu times the squared strain times
 * the volume, sums[1] that of mu times the squared divergence times the volume. */
static void look_at_cells(void *arg, int64_t begin, int64_t end, double *sums)
{
    args *k = arg;
    const un_stress_grid *s = k->s;
    const un_grid *g = s->g;
    double over = 1 / s->in->dt;
    for (int64_t c = begin; c < end; c++) {
        int32_t at[3];
        un_strain e[UN_STRAINS_MAX];
        double flux = 0, volume = 0, mu = 0;
        k->keep->divergence[c] = 0;
        if (!s->near[c]) continue;
        un_stress_at(g, c, at);
        if (!un_stress_inside(g, at)) continue;
        for (int a = 0; a < g->dim; a++) {
            if (!un_strain_cell(s, at, a, e)) continue;
            double d = un_strain_value(s, e, s->in->u);
            mu = e->weight * over / e->volume;
            if (!s->in->laplacian) mu *= 0.5;
            sums[0] += mu * e->volume * d * d;
            flux += e->volume * d;
            volume = fmax(volume, e->volume);
        }
        for (int a = 0; a < g->dim; a++)
            for (int b = a + 1; b < g->dim; b++) {
                int count = un_strain_edge(s, at, a, b, e);
                for (int m = 0; m < count; m++) {
                    double d = un_strain_value(s, &e[m], s->in->u);
                    sums[0] += 0.5 * over * e[m].weight * d * d;
                }
            }
        if (!(volume > 0)) continue;
        double divergence = flux / volume;
        k->keep->divergence[c] = s->in->dt * mu * divergence;
        sums[1] += mu * volume * divergence * divergence;
    }
}

static void next_step(void *arg, int64_t begin, int64_t end)
{
    args *k = arg;
    double *step = k->keep->step, *p = k->s->in->p;
    for (int64_t c = begin; c < end; c++) {
        step[c] = k->old * step[c] - k->new * k->keep->divergence[c];
        if (p) p[c] += step[c] / k->s->in->dt;
    }
}

/* The guess, where there is viscous liquid. */
static void first_step(void *arg, int64_t begin, int64_t end)
{
    args *k = arg;
    const un_viscous_grid *in = k->s->in;
    for (int64_t c = begin; c < end; c++) {
        bool wet = k->s->near[c] && un_stress_cell(k->s, c, in->viscosity, in->viscosity_all) > 0;
        k->keep->step[c] = wet && in->p ? in->dt * in->p[c] : 0;
        if (in->p && !wet) in->p[c] = 0;
    }
}

/* b += dt B^T p, the forces on faces. */
static void push_rows(void *arg, int64_t begin, int64_t end)
{
    args *k = arg;
    const un_stress_grid *s = k->s;
    const double *p = k->keep->step;
    for (int64_t r = begin; r < end; r++) {
        int64_t c = s->v->node[r];
        int32_t at[3];
        double force[3] = {0};
        un_strain e;
        if (c >= s->g->cell_count) continue;
        un_stress_at(s->g, c, at);
        for (int a = 0; a < s->g->dim; a++)
            for (int side = 0; side < 2 && s->solved[c] >> a & 1; side++) {
                int32_t next[3] = {at[0], at[1], at[2]};
                next[a] -= side;
                int64_t m = c - side * s->g->stride[a];
                if (p[m] == 0 || !un_strain_cell(s, next, a, &e)) continue;
                force[a] += p[m] * e.volume * un_strain_of(&e, a, c);
            }
        s->v->b[r] = un_add(s->v->b[r], un_v3(force[0], force[1], force[2]));
    }
}

static un_status push(args *k)
{
    double *step = k->keep->step;
    UN_TRY(un_grid_share(k->s->g, &(un_layered){step, sizeof *step}, 1, 1));
    un_stress_over_unknowns(k->s, push_rows, k);
    un_stress_push_bodies(k->s, step);
    return UN_OK;
}

un_status un_grid_volume_begin(un_grid_volume *keep, un_arena *arena, const un_stress_grid *s)
{
    args k = {.keep = keep, .s = s};
    size_t cells = (size_t)s->g->cell_count;
    *keep = (un_grid_volume){
        .divergence = un_arena_alloc(arena, cells, sizeof *keep->divergence),
        .step = un_arena_alloc(arena, cells, sizeof *keep->step),
    };
    if (!keep->divergence || !keep->step) return UN_ERROR_MEMORY;
    un_stress_over_cells(s, first_step, &k);
    return s->in->p ? push(&k) : UN_OK;
}

double un_grid_volume_error(un_grid_volume *keep, const un_stress_grid *s)
{
    args k = {.keep = keep, .s = s};
    double sums[2];
    un_stress_sums(s, 2, look_at_cells, &k, sums);
    return sums[0] > 0 ? sqrt(sums[1] / sums[0]) : 0;
}

un_status un_grid_volume_push(un_grid_volume *keep, const un_stress_grid *s)
{
    args k = {.keep = keep, .s = s};
    un_viscous_chebyshev(&keep->rho, &k.old, &k.new);
    un_stress_over_cells(s, next_step, &k);
    return push(&k);
}
