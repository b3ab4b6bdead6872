/* What liquid on tets got from a projection: momentum, and what bodies and walls took of it. */
#include "pressure/system.h"

typedef struct impulse_args {
    const un_pressure *pr;
    const un_tet_projection *in;
    const un_vec3 *before;
    int64_t first; /* this rank's first tet, less its number on one rank */
    double size[UN_LEVELS_MAX + 1];
} impulse_args;

/* The other side of what the pressure does to bodies and walls: -sum_n q_n sum_t V_open G_n. */
static void press_rows(void *arg, int64_t begin, int64_t end, double *sums)
{
    const impulse_args *a = arg;
    const un_tets *m = a->in->mesh;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = a->pr->place[r];
        un_vec3 area = {0, 0, 0};
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
            int32_t t = m->corner[e] / 4, i = m->corner[e] % 4;
            const un_tet_shape *shape = un_tets_shape(m, t);
            double h = a->size[m->level[t]], w = shape->volume * h * h * un_tet_open(a->in, t);
            const double *g = shape->gradient[i];
            area = un_mad(area, un_v3(g[0], g[1], g[2]), w);
        }
        sums[0] -= a->pr->x[r] * area.x;
        sums[1] -= a->pr->x[r] * area.y;
        sums[2] -= a->pr->x[r] * area.z;
    }
}

static void impulse_tets(void *arg, int64_t begin, int64_t end, double *sums)
{
    const impulse_args *a = arg;
    const un_tet_projection *in = a->in;
    for (int64_t t = begin + a->first; t < end + a->first; t++) {
        if (!in->known[t]) continue;
        const int32_t *n = in->mesh->tet[t];
        double phi[4] = {in->phi[n[0]], in->phi[n[1]], in->phi[n[2]], in->phi[n[3]]};
        double mass = in->density * un_tets_volume(in->mesh, (int32_t)t);
        if (in->walls) mass *= (double)in->walls->open[t];
        if (in->lightness) mass /= (double)in->lightness[t];
        mass *= 1 - un_tet_fraction(phi);
        un_vec3 change = un_sub(in->u[t], a->before[t]);
        sums[0] += mass * change.x;
        sums[1] += mass * change.y;
        sums[2] += mass * change.z;
        sums[3] += mass;
    }
}

void un_tet_impulse(const un_pressure *pr, const un_tet_projection *in, const un_vec3 *before,
                    un_vec3 gravity, un_impulse *out)
{
    impulse_args a = {.pr = pr, .in = in, .before = before};
    double sums[4], press[3];
    const un_octree *tree = in->mesh->tree;
    const un_tet_share *share = in->mesh->share;
    for (int32_t l = 0; l <= tree->level_max; l++) a.size[l] = un_octree_size(tree, l);
    if (share) {
        a.first = share->tet_begin - share->tets.begin;
        un_ranks_sums(pr->ctx, share->tets, 4, impulse_tets, &a, sums);
    } else {
        un_parallel_sums(pr->ctx, in->mesh->tet_count, 4, impulse_tets, &a, sums);
    }
    out->momentum = un_v3(sums[0], sums[1], sums[2]);
    out->mass = un_v3(sums[3], sums[3], sums[3]);
    if (in->surface) return;
    un_range rows = {pr->own.begin, pr->own.end, pr->matrix.n};
    if (share)
        un_ranks_sums(pr->ctx, rows, 3, press_rows, &a, press);
    else
        un_parallel_sums(pr->ctx, pr->matrix.n, 3, press_rows, &a, press);
    out->momentum =
        un_mad(un_scale(un_v3(press[0], press[1], press[2]), in->density), gravity, sums[3]);
}
