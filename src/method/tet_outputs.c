/* What method `tet` reports and shows: sums, surface, cells, probes. */
#include "method/tet.h"

/* ---- sums ---- */

static double wet_block(void *arg, int64_t begin, int64_t end)
{
    const un_tet *s = arg;
    double wet = 0;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = s->mesh.tet[t];
        wet += s->phi[n[0]] < 0 || s->phi[n[1]] < 0 || s->phi[n[2]] < 0 || s->phi[n[3]] < 0;
    }
    return wet;
}

un_status un_tet_measure(un_tet *s, un_step *report)
{
    report->step = s->step_count;
    report->time = s->time;
    report->ballistic = s->ballistic;
    report->cells = (int64_t)un_parallel_sum(s->ctx, s->mesh.tet_count, wet_block, s);
    report->nodes = s->mesh.node_count;
    report->volume = s->volume_now;
    report->volume_error = s->volume_error;
    UN_TRY(un_step_sum(s->ctx, report, &s->particles, s->def));
    /* Before the first step the mesh knows nothing yet. */
    if (s->step_count == 0) s->rate_max = report->max_speed / s->tree.h;
    return UN_OK;
}

/* ---- surface and cells ---- */

un_status un_tet_surface(void *state, un_trimesh *mesh)
{
    un_tet *s = state;
    un_hulls_report report;
    un_arena_free(&s->arena); /* the surface takes more than a step */
    un_hull_mesher mesher = {.particles = &s->particles,
                             .radius = s->radius,
                             .depth = s->depth,
                             .walls = s->walls,
                             .size = s->def->domain.size,
                             .coarsest = s->def->detail.coarsest,
                             .resolution = s->def->detail.surface,
                             .smoothing = s->viscous ? UN_SMOOTHING_THICK : UN_SMOOTHING,
                             .bytes_max = un_tet_surface_bytes(s)};
    UN_TRY(un_surface_mesh_hulls(s->ctx, mesh, &mesher, &report));
    if (report.resolution < s->def->detail.surface && !s->surface_coarsened)
        un_log(s->ctx, UN_LOG_WARNING,
               "step %d: the output surface is made at %d instead of %d to stay inside the budget "
               "of memory",
               s->step_count, report.resolution, s->def->detail.surface);
    s->surface_coarsened |= report.resolution < s->def->detail.surface;
    return UN_OK;
}

static double pressure_at(const un_tet *s, const un_tets_place *place)
{
    double p = 0;
    for (int k = 0; k < un_tet_pressures(s); k++)
        for (int i = 0; i < 4; i++) p += place->w[i] * s->p[k][s->mesh.tet[place->tet][i]];
    return p;
}

un_status un_tet_cells(const void *state, un_cells *out)
{
    const un_tet *s = state;
    un_tets_cells in = {.mesh = &s->mesh,
                        .phi = s->phi,
                        .walls = s->tet_walls.phi,
                        .pressure_count = un_tet_pressures(s),
                        .p = s->p,
                        .u = s->u_node};
    return un_cells_from_tets(s->ctx, out, &in);
}

/* ---- probes ---- */

static double phi_at(const un_tet *s, un_vec3 x)
{
    un_tets_place place;
    un_tets_locate(&s->mesh, un_min3(un_max3(x, un_v3(0, 0, 0)), s->def->domain.size), &place);
    return un_tet_sample(&s->mesh, s->phi, &place);
}

typedef struct front_args {
    const un_tet *s;
    int axis;
    double sign;
} front_args;

/* As in method `uniform`: the farthest place that a cube of two finest cells reaches which lies in
 * the liquid as a whole. */
static double front_nodes(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_tet *s = f->s;
    double h = s->tree.h, best = -INFINITY;
    double top[3] = {s->def->domain.size.x, s->def->domain.size.y, s->def->domain.size.z};
    for (int64_t n = begin; n < end; n++) {
        if (!(s->phi[n] <= -0.5 * h)) continue;
        double x[3] = {s->mesh.x[n].x, s->mesh.x[n].y, s->mesh.x[n].z};
        /* the cube lies in the domain */
        for (int a = 0; a < 3; a++)
            x[a] = top[a] > 2 * h ? un_clamp(x[a], h, top[a] - h) : 0.5 * top[a];
        if (f->sign * x[f->axis] + 2 * h <= best) continue;
        double reach = h; /* how far the cube may go on; beyond a cell a node there tells */
        for (int c = 0; c < 8 && reach >= 0; c++) {
            un_vec3 corner =
                un_v3(x[0] + (c & 1 ? h : -h), x[1] + (c & 2 ? h : -h), x[2] + (c & 4 ? h : -h));
            double phi = phi_at(s, corner);
            if (phi > 0) reach = -1;
            if (f->sign * ((c >> f->axis & 1) ? 1 : -1) > 0) reach = fmin(reach, -phi);
        }
        if (reach >= 0) best = fmax(best, f->sign * x[f->axis] + h + reach);
    }
    return best;
}

static double probe_front(const un_tet *s, const un_probe *probe)
{
    front_args f = {s, probe->axis, probe->sign};
    double top = probe->axis == 0   ? s->def->domain.size.x
                 : probe->axis == 1 ? s->def->domain.size.y
                                    : s->def->domain.size.z;
    double best = un_parallel_max(s->ctx, s->mesh.node_count, front_nodes, &f);
    if (!isfinite(best)) return NAN;
    return un_clamp(probe->sign * best, 0, top);
}

static double probe_height(const un_tet *s, const un_probe *probe)
{
    double step = 0.5 * s->tree.h, top = s->def->domain.size.y, above = INFINITY;
    int32_t count = (int32_t)ceil(top / step);
    for (int32_t j = count; j >= 0; j--) {
        double y = fmin(top, step * j), phi = phi_at(s, un_v3(probe->at.x, y, probe->at.z));
        if (phi < 0) return isfinite(above) ? fmin(top, y + step * phi / (phi - above)) : top;
        above = phi;
    }
    return 0;
}

static double probe_pressure(const un_tet *s, const un_probe *probe)
{
    un_tets_place place;
    un_tets_locate(&s->mesh, probe->at, &place);
    return pressure_at(s, &place);
}

double un_tet_probe(const void *state, const un_probe *which)
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
