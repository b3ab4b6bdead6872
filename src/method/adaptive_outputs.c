/* What methods with particles on graded tets report and show: surface, cells, probes, and what is
 * known of a run beforehand. */
#include "method/adaptive.h"

double un_adaptive_step_limit(void *state)
{
    const un_adaptive *a = state;
    double rate = a->rate_max;
    if (a->core.bodies->free_count > 0)
        rate = fmax(rate, un_bodies_speed(a->core.bodies) / a->mesh.tree.h);
    return un_step_limit(a->core.def, a->mesh.tree.h, rate);
}

const un_particles *un_adaptive_particles(const void *state)
{
    return &((const un_adaptive *)state)->markers.particles;
}

const float *un_adaptive_depth(const void *state)
{
    return ((const un_adaptive *)state)->markers.depth;
}

/* ---- surface and cells ---- */

un_status un_adaptive_surface(void *state, un_trimesh *mesh)
{
    un_adaptive *a = state;
    const un_scene_def *def = a->core.def;
    const un_particle_share *share = a->markers.share;
    un_hulls_report report;
    un_arena_free(&a->core.arena); /* the surface takes more than a step */
    un_hull_mesher mesher = {.particles = &a->markers.particles,
                             .radius = a->markers.radius,
                             .depth = a->markers.depth,
                             .walls = a->core.walls,
                             .size = def->domain.size,
                             .coarsest = def->detail.coarsest,
                             .resolution = def->detail.surface,
                             .smoothing = a->thick.any ? UN_SMOOTHING_THICK : UN_SMOOTHING,
                             .bytes_max = un_adaptive_surface_bytes(a)};
    if (share) {
        mesher.shared = true;
        mesher.own = un_markers_own(&a->markers);
        mesher.range = share->own;
    }
    UN_TRY(un_surface_mesh_hulls(a->core.ctx, mesh, &mesher, &report));
    bool warn = report.resolution < def->detail.surface && !a->surface_coarsened;
    if (warn && un_rank(a->core.ctx) == 0)
        un_log(a->core.ctx, UN_LOG_WARNING,
               "step %d: the output surface is made at %d instead of %d to stay inside the budget "
               "of memory",
               a->core.step_count, report.resolution, def->detail.surface);
    a->surface_coarsened |= report.resolution < def->detail.surface;
    return UN_OK;
}

static double pressure_at(const un_adaptive *a, const un_tets_place *place)
{
    double p = 0;
    for (int k = 0; k < un_adaptive_pressures(a); k++)
        for (int i = 0; i < 4; i++)
            p += place->w[i] * a->node.p[k][a->mesh.tets.tet[place->tet][i]];
    return p;
}

un_status un_adaptive_find_cells(const un_adaptive *a, un_cells *out)
{
    un_tets_cells in = {.mesh = &a->mesh.tets,
                        .phi = a->node.phi,
                        .walls = a->mesh.walls.phi,
                        .pressure_count = un_adaptive_pressures(a),
                        .p = a->node.p,
                        .u = a->node.u};
    return un_cells_from_tets(a->core.ctx, out, &in);
}

un_status un_adaptive_cells(const void *state, un_cells *out)
{
    un_adaptive *a = (un_adaptive *)(uintptr_t)state;
    if (!a->ranks.any) return un_adaptive_find_cells(a, out);
    *out = a->ranks.cells; /* they are the caller's now */
    a->ranks.cells = (un_cells){0};
    return UN_OK;
}

/* ---- probes ---- */

static void look(const void *state, const un_tets_place *place, void *seen)
{
    const un_adaptive *a = state;
    *(un_pressure_seen *)seen = (un_pressure_seen){
        pressure_at(a, place), un_tet_sample(&a->mesh.tets, a->node.phi, place) < 0};
}

static bool is_open(const void *state, un_vec3 x)
{
    return un_core_is_open(&((const un_adaptive *)state)->core, x);
}

static double pressure_sample(const void *state, un_vec3 x, bool *wet)
{
    const un_adaptive *a = state;
    un_tets_place place;
    un_pressure_seen seen = {0};
    *wet = is_open(a, x);
    if (!*wet) return 0;
    un_tets_locate(&a->mesh.tets, x, &place);
    look(a, &place, &seen);
    *wet = seen.wet;
    return seen.p;
}

static un_status ask_pressures(const void *state, const un_vec3 *x, int64_t count,
                               un_pressure_seen *seen)
{
    const un_adaptive *a = state;
    return un_tets_ask_any(&a->mesh.tets, look, a, sizeof *seen, x, count, seen);
}

un_status un_adaptive_force_ranks(const un_adaptive *a, const un_probe *which, double *value)
{
    static const un_force_ranks with = {is_open, ask_pressures};
    return un_core_force_ranks(&a->core, which, &with, a, value);
}

static double velocity_at(const un_adaptive *a, const un_probe *which)
{
    un_tets_place place;
    un_vec3 u = {0, 0, 0};
    un_tets_locate(&a->mesh.tets, which->at, &place);
    if (!(un_tet_sample(&a->mesh.tets, a->node.phi, &place) < 0)) return NAN;
    for (int i = 0; i < 4; i++)
        u = un_mad(u, a->node.u[a->mesh.tets.tet[place.tet][i]], place.w[i]);
    return un_probe_component(u, which->axis);
}

double un_adaptive_probe(const void *state, const un_probe *which)
{
    const un_adaptive *a = state;
    const double *found = NULL;
    if (a->ranks.has_probed) found = un_core_probed(&a->core, which, a->ranks.probed);
    return found ? *found : un_adaptive_probe_here(a, which);
}

double un_adaptive_probe_here(const un_adaptive *a, const un_probe *which)
{
    un_tets_place place;
    switch (which->kind) {
    case UN_PROBE_FRONT:
        return un_probe_front_tets(a->core.ctx, a->node.phi, &a->mesh.tets, which->axis,
                                   which->sign);
    case UN_PROBE_HEIGHT:
        return un_probe_height_tets(a->node.phi, &a->mesh.tets, which->at.x, which->at.z);
    case UN_PROBE_PRESSURE:
        un_tets_locate(&a->mesh.tets, which->at, &place);
        return pressure_at(a, &place);
    case UN_PROBE_VELOCITY:
        return velocity_at(a, which);
    case UN_PROBE_WET:
    case UN_PROBE_FLUX:
        return un_core_probe(&a->core, which, &a->markers.particles);
    case UN_PROBE_FORCE:
        return un_core_force(&a->core, which, pressure_sample, a);
    }
    return NAN;
}

/* ---- before a run ---- */

/* Its first state is made for that. How a run grows is told by a rehearsal (src/run/rehearse.c). */
un_status un_adaptive_estimate(un_context *ctx, const un_scene *scene, un_estimate *estimate)
{
    UN_TRY(un_uniform_estimate(ctx, scene, estimate));
    double before = (double)un_context_bytes(ctx);
    un_adaptive *a = un_alloc_zero(ctx, 1, sizeof *a);
    if (!a) return UN_ERROR_MEMORY;
    un_status status = un_adaptive_begin(a, ctx, scene);
    if (status == UN_OK) status = un_adaptive_fill(a);
    if (status == UN_OK) {
        estimate->cell_count = a->mesh.tree.leaf_count;
        estimate->particle_count = estimate->particle_count_max = a->markers.particles.count;
        /* Sampling the liquid evenly may take more than any step of it later. */
        estimate->bytes = fmax(un_adaptive_bytes(a), (double)un_context_peak_bytes(ctx) - before);
    }
    un_adaptive_free(a);
    un_free(ctx, a);
    return status;
}
