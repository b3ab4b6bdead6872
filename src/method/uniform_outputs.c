/* What method `uniform` reports and shows: sums, surface, cells, probes. */
#include "method/uniform.h"

/* Fastest liquid on the grid, squared by axis: faces that the projection has made valid. */
static double face_block(void *arg, int64_t begin, int64_t end)
{
    const un_uniform *s = arg;
    double max = 0;
    for (int axis = 0; axis < 3; axis++)
        for (int64_t f = begin; f < end; f++) {
            double speed = fabs(s->u[axis][f]);
            if (s->known[axis][f] == 1 && !(speed <= max)) max = speed;
        }
    return max;
}

un_status un_uniform_measure(un_uniform *s, un_step *report)
{
    report->step = s->step_count;
    report->time = s->time;
    report->ballistic = s->ballistic;
    report->nodes = s->grid.node_count;
    report->volume = s->sources.ledger.found;
    report->volume_error = s->sources.ledger.error;
    UN_TRY(un_step_sum(s->ctx, report, &s->particles, s->def));
    /* Before the first step the grid knows nothing yet. */
    s->max_speed = s->step_count ? un_parallel_max(s->ctx, s->grid.cell_count, face_block, s)
                                 : report->max_speed;
    return UN_OK;
}

un_status un_uniform_surface(void *state, un_trimesh *mesh)
{
    un_uniform *s = state;
    un_mesher mesher = {.grid = &s->grid,
                        .bins = s->bins,
                        .particles = &s->particles,
                        .walls = s->walls,
                        .phi = s->phi,
                        .u = s->u,
                        .resolution = s->def->detail.surface,
                        .smoothing = UN_SMOOTHING};
    return un_surface_mesh(s->ctx, mesh, &mesher);
}

un_status un_uniform_cells(const void *state, un_cells *out)
{
    const un_uniform *s = state;
    un_grid_cells in = {&s->grid, s->phi, s->walls->volume, s->pressure->p, s->u};
    return un_cells_from_grid(s->ctx, out, &in);
}

/* The farthest place along the axis that a cube of two cells reaches that lies in the liquid as a
 * whole. What is thinner, drops and the film ahead of a front, is below what the grid resolves, and
 * single particles would make the probe jump. A cube around a node is liquid when its eight cells'
 * centres are all at least half a cell deep. */
static double node_phi(const un_uniform *s, int64_t c)
{
    const un_grid *g = &s->grid;
    double phi = -INFINITY;
    for (int n = 0; n < 8; n++) {
        int64_t m = c;
        for (int a = 0; a < 3; a++)
            if ((n >> a & 1) && g->n[a] > 3) m -= g->stride[a]; /* a side of one cell has no two */
        phi = fmax(phi, s->phi[m]);
    }
    return phi + 0.5 * g->h;
}

typedef struct front_args {
    const un_uniform *s;
    int axis;
    double sign;
} front_args;

static double front_rows(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_grid *g = &f->s->grid;
    int a = f->axis, b = (a + 1) % 3, c = (a + 2) % 3;
    int32_t first = f->sign > 0 ? g->n[a] - 2 : 2, step = f->sign > 0 ? -1 : 1;
    double front = -INFINITY, origin = a == 0 ? g->origin.x : a == 1 ? g->origin.y : g->origin.z;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % g->n[b], k = row / g->n[b];
        if (i < un_min64(2, g->n[b] - 2) || k < un_min64(2, g->n[c] - 2) || i > g->n[b] - 2 ||
            k > g->n[c] - 2)
            continue;
        double beyond = g->h; /* as if the surface stood on the side itself */
        for (int32_t n = first; n >= 2 && n <= g->n[a] - 2; n += step) {
            double phi = node_phi(f->s, i * g->stride[b] + k * g->stride[c] + n * g->stride[a]);
            if (phi < 0) {
                double at = n - step * (phi / (phi - beyond) + 1);
                front = fmax(front, f->sign * (origin + g->h * at));
                break;
            }
            beyond = phi;
        }
    }
    return front;
}

static double probe_front(const un_uniform *s, const un_probe *probe)
{
    const un_grid *g = &s->grid;
    front_args f = {s, probe->axis, probe->sign};
    int64_t rows = (int64_t)g->n[(probe->axis + 1) % 3] * g->n[(probe->axis + 2) % 3];
    double front = un_parallel_max(s->ctx, rows, front_rows, &f);
    double size = probe->axis == 0 ? g->size.x : probe->axis == 1 ? g->size.y : g->size.z;
    return isfinite(front) ? un_clamp(probe->sign * front, 0, size) : NAN;
}

/* From the top down to the first liquid; 0 where it is dry. */
static double probe_height(const un_uniform *s, const un_probe *probe)
{
    const un_grid *g = &s->grid;
    un_vec3 at = un_min3(un_max3(probe->at, un_v3(0.5 * g->h, 0, 0.5 * g->h)),
                         un_sub(g->size, un_v3(0.5 * g->h, 0, 0.5 * g->h)));
    double above = INFINITY;
    for (int32_t j = g->n[1] - 2; j >= 1; j--) {
        un_vec3 x = un_v3(at.x, un_grid_center(g, 0, j, 0).y, at.z);
        double phi = un_grid_sample(g, s->phi, x);
        if (phi < 0)
            return fmin(x.y + (above > 1e9 ? 0.5 * g->h : g->h * phi / (phi - above)), g->size.y);
        above = phi;
    }
    return 0;
}

/* p and its gradient at the nearest liquid cell; 0 outside the liquid. */
static double probe_pressure(const un_uniform *s, const un_probe *probe)
{
    const un_grid *g = &s->grid;
    un_vec3 inner = un_v3(0.5 * g->h, 0.5 * g->h, 0.5 * g->h);
    un_vec3 x = un_min3(un_max3(probe->at, inner), un_sub(g->size, inner));
    un_stencil t = un_grid_stencil(g, x, 0, 0, 0);
    int64_t c = t.base;
    const int32_t *index = s->pressure->index;
    const double *p = s->pressure->p;
    if (index[c] < 0) return 0;
    double at[3] = {probe->at.x, probe->at.y, probe->at.z}, value = p[c];
    double origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    for (int a = 0; a < 3; a++) {
        int64_t d = g->stride[a];
        int64_t i = c / d % g->n[a];
        double offset = (at[a] - origin[a]) / g->h - ((double)i + 0.5);
        bool low = index[c - d] >= 0, high = index[c + d] >= 0;
        double slope = low && high ? 0.5 * (p[c + d] - p[c - d])
                       : high      ? p[c + d] - p[c]
                       : low       ? p[c] - p[c - d]
                                   : 0;
        value += offset * slope;
    }
    return value;
}

double un_uniform_probe(const void *state, const un_probe *which)
{
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return probe_front(state, which);
    case UN_PROBE_HEIGHT:
        return probe_height(state, which);
    case UN_PROBE_PRESSURE:
        return probe_pressure(state, which);
    }
    return NAN;
}
