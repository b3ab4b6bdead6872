/* The pressure of the last projection at a point. */
#include "pressure/pressure.h"

static double pressure_of(const un_pressure *pr, int64_t c)
{
    return pr->more ? pr->p[c] + pr->more[c] : pr->p[c];
}

double un_pressure_at(const un_pressure *pr, un_vec3 x)
{
    const un_grid *g = pr->grid;
    double half = 0.5 * g->h;
    un_vec3 inner = un_v3(half, half, g->half[2] * g->h);
    int64_t c = un_grid_cell_at(g, un_min3(un_max3(x, inner), un_sub(g->size, inner)));
    const int32_t *index = pr->index;
    if (index[c] < 0) return 0;
    double at[3] = {x.x, x.y, x.z}, value = pressure_of(pr, c);
    double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    for (int a = 0; a < g->dim; a++) {
        int64_t d = g->stride[a];
        int64_t i = c / d % g->n[a];
        double offset = (at[a] - origin[a]) / g->h - ((double)i + 0.5);
        bool low = index[c - d] >= 0, high = index[c + d] >= 0;
        double here = pressure_of(pr, c);
        double slope = low && high ? 0.5 * (pressure_of(pr, c + d) - pressure_of(pr, c - d))
                       : high      ? pressure_of(pr, c + d) - here
                       : low       ? here - pressure_of(pr, c - d)
                                   : 0;
        value += offset * slope;
    }
    return value;
}

void un_pressure_forget(un_pressure *pr)
{
    for (int64_t c = 0; c < pr->grid->cell_count; c++) pr->index[c] = -1;
}

double un_warp_pressure_at(const double *p, const double *phi, const un_walls *walls, un_vec3 x,
                           un_vec3 weight)
{
    int64_t place[8];
    double share[8], sum = 0, known = 0, level = 0;
    int count = un_warp_places_around(walls, x, place, share);
    for (int m = 0; m < count; m++) {
        bool held = phi[place[m]] < 0 && p[place[m]] == 0;
        if (held) continue;
        sum += share[m] * p[place[m]];
        known += share[m];
        level += share[m] *
                 un_dot(weight, un_sub(x, walls->warp->node[un_warp_node_of(walls, place[m])]));
    }
    return known > 0 ? (sum + (known < 1 - 1e-9 ? level : 0)) / known : 0;
}
