/* Method `warp` with solver.surface = "level-set": the grid carries the surface and the velocities,
 * as in figure 6 of [Ibayashi18]; nothing else does.
 *
 * For whatever asks particles for volume, momentum or energy, each cell that holds liquid has one
 * at its centre, which stands for that liquid. They are made anew in each step.
 *
 * Emitters fill their shape and drains empty theirs in each step; what flows through open sides is
 * booked by the velocities there. */
#include "method/warp.h"

/* Steps of the redistancing, at the start and in each step. */
#define ROUNDS_FIRST 60
#define ROUNDS 6
/* Cells that hold less than this share of liquid have no particle. */
#define SHARE_MIN 1e-3

un_status un_warping_track_init(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    size_t cells = (size_t)s->warp.grid.cell_count;
    s->carried = strcmp(s->core.def->solver.surface, "level-set") == 0;
    if (!s->carried) return UN_OK;
    const un_scene_def *def = s->core.def;
    UN_ALLOC(ctx, s->was, cells);
    UN_ALLOC(ctx, s->flow, (size_t)def->source_count + 1);
    for (int32_t n = 0; n < def->source_count; n++) {
        un_vec3 v = def->sources[n].velocity;
        s->flow[n] =
            def->sources[n].kind == UN_SOURCE_EMITTER && un_length(v) > 0
                ? un_length(v) * un_shape_shadow(ctx, def->sources[n].shape, v, def->domain.size)
                : 0;
    }
    for (size_t c = 0; c < cells; c++) {
        s->colour[c] = 1; /* nothing is crowded */
        s->phi[c] = (float)s->warp.grid.size.x;
    }
    return UN_OK;
}

/* ---- particles that stand for cells ---- */

static double liquid_share(const un_warping *s, int64_t c)
{
    double share = un_clamp(0.5 - s->phi[c] * s->warp.grid.inverse_h, 0, 1);
    return share * fmin(s->walls->volume[c], 1);
}

static un_status stand_for_cells(un_warping *s)
{
    const un_grid *g = &s->warp.grid;
    un_particles *p = &s->particles;
    int64_t count = 0;
    for (int64_t c = 0; c < g->cell_count; c++)
        count += s->warp.jacobian[c] > 0 && liquid_share(s, c) > SHARE_MIN;
    UN_TRY(un_particles_reserve(s->core.ctx, p, count + 1));
    p->count = 0;
    for (int64_t c = 0; c < g->cell_count; c++) {
        double share = liquid_share(s, c);
        if (!(s->warp.jacobian[c] > 0) || !(share > SHARE_MIN)) continue;
        int32_t q = p->count++;
        un_vec3 xi = un_grid_center(g, (int32_t)(c % g->n[0]), (int32_t)(c / g->n[0] % g->n[1]),
                                    (int32_t)(c / g->stride[2]));
        un_particle_set_position(p, q, s->warp.centre[c]);
        un_particle_set_velocity(p, q, s->u[c]);
        p->xi[0][q] = xi.x;
        p->xi[1][q] = xi.y;
        p->xi[2][q] = g->dim == 2 ? 0 : xi.z;
        p->volume[q] = (float)(share * s->warp.jacobian[c] * g->volume);
        p->flags[q] = UN_PARTICLE_DEEP;
        p->fall[q] = 0;
        for (int i = 0; i < 9; i++) p->affine[i][q] = 0;
    }
    return un_warping_bin(s);
}

un_status un_warping_track_weigh(un_warping *s)
{
    un_context *ctx = s->core.ctx;
    un_ledger *ledger = &s->core.sources.ledger;
    double liquid;
    un_warp_mirror(ctx, s->phi, s->walls);
    un_warp_level_set(ctx, s->node_phi, s->phi, s->walls);
    UN_TRY(un_warp_volume(ctx, &s->core.arena, &liquid, s->phi, s->walls, NULL));
    un_arena_reset(&s->core.arena);
    un_ledger_weigh(ledger, liquid, liquid);
    s->ballistic = 0;
    return stand_for_cells(s);
}

/* ---- sources ---- */

static double volume_of(un_warping *s, un_status *status)
{
    double volume = 0;
    *status = un_warp_volume(s->core.ctx, &s->core.arena, &volume, s->phi, s->walls, NULL);
    un_arena_reset(&s->core.arena);
    return volume;
}

/* The level set of a shape in reference space, about. */
static double shape_level(const un_warping *s, const un_shape *shape, int64_t c)
{
    double j = s->warp.jacobian[c], scale = s->warp.grid.dim == 2 ? sqrt(j) : cbrt(j);
    return un_shape_distance(shape, s->warp.centre[c]) / scale;
}

/* An emitter that fills this share of its flow itself, in air, pushes nothing. */
#define FREE 0.9

/* Books what an emitter has brought, `moved` of it to where there was none. Where its shape was
 * liquid, a divergence in the next projection brings the rest. */
static un_status book_emitter(un_warping *s, int32_t n, double moved)
{
    const un_grid *g = &s->warp.grid;
    const un_shape *shape = s->core.def->sources[n].shape;
    un_emission *emission = &s->core.sources.emission[n];
    double flow = s->flow[n] * s->last_dt, inside = 0;
    if (!emission->started) {
        s->core.sources.ledger.in += moved;
        emission->started = true;
        return UN_OK;
    }
    s->core.sources.ledger.in += flow;
    if (!(moved < FREE * flow)) return UN_OK;
    for (int64_t c = 0; c < g->cell_count; c++)
        if (s->warp.jacobian[c] > 0 && shape_level(s, shape, c) < 0) inside += s->warp.jacobian[c];
    for (int64_t c = 0; c < g->cell_count && inside > 0; c++)
        if (s->warp.jacobian[c] > 0 && shape_level(s, shape, c) < 0)
            UN_TRY(un_inflow_add(s->core.ctx, &s->inflow, c,
                                 (flow - moved) * s->warp.jacobian[c] / inside));
    return UN_OK;
}

static un_status take_sources(un_warping *s)
{
    const un_scene_def *def = s->core.def;
    for (int32_t n = 0; n < def->source_count; n++) {
        const un_source *source = &def->sources[n];
        bool drain = source->kind == UN_SOURCE_DRAIN;
        un_status status;
        if (!un_source_active(source, s->core.time)) continue;
        double before = volume_of(s, &status);
        UN_TRY(status);
        for (int64_t c = 0; c < s->warp.grid.cell_count; c++) {
            if (!(s->warp.jacobian[c] > 0)) continue;
            double level = shape_level(s, source->shape, c);
            if (drain) {
                s->phi[c] = (float)fmax(s->phi[c], -level);
            } else {
                s->phi[c] = (float)fmin(s->phi[c], level);
                if (level < 0) s->u[c] = source->velocity;
            }
        }
        double moved = volume_of(s, &status) - before;
        UN_TRY(status);
        if (drain)
            s->core.sources.ledger.out -= moved;
        else
            UN_TRY(book_emitter(s, n, moved));
    }
    return UN_OK;
}

/* What leaves through a face of an inner cell at an open side, m3/s. */
static double leaves_through(const un_warping *s, const int32_t at[3], int axis, bool above)
{
    const un_grid *g = &s->warp.grid;
    int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
    un_vec3 xi = un_grid_center(g, at[0], at[1], at[2]);
    double half = (above ? 0.5 : -0.5) * g->h;
    xi = un_add(xi, un_v3(axis == 0 ? half : 0, axis == 1 ? half : 0, axis == 2 ? half : 0));
    if (g->dim == 2) xi.z = 0;
    un_warp_point p;
    UN_BY_DIM(g->dim, p = un_warp_point_in(&s->warp, xi, dim));
    un_vec3 area = un_cross(p.column[(axis + 1) % 3], p.column[(axis + 2) % 3]);
    double out = un_dot(s->u[c], area) * (above ? 1 : -1);
    return fmax(0, out) * liquid_share(s, c) * (g->dim == 2 ? g->h : g->h * g->h);
}

static double leaves(const un_warping *s)
{
    const un_grid *g = &s->warp.grid;
    double sum = 0;
    for (int side = 0; side < 2 * g->dim; side++) {
        int axis = side / 2, b = (axis + 1) % 3, c = (axis + 2) % 3;
        if (!s->core.def->domain.open[side]) continue;
        int32_t at[3];
        at[axis] = side & 1 ? g->n[axis] - 2 : 1;
        for (at[b] = 0; at[b] < g->n[b]; at[b]++)
            for (at[c] = 0; at[c] < g->n[c]; at[c]++)
                if (s->warp.jacobian[un_grid_cell(g, at[0], at[1], at[2])] > 0)
                    sum += leaves_through(s, at, axis, side & 1);
    }
    return sum;
}

/* ---- the step ---- */

un_status un_warping_track_shape(un_warping *s)
{
    un_status status;
    un_warp_level_set_shape(s->core.ctx, s->phi, &s->warp, s->core.def->liquid.shape);
    for (int64_t c = 0; c < s->warp.grid.cell_count; c++) s->u[c] = s->core.def->liquid.velocity;
    UN_TRY(un_warp_redistance(s->core.ctx, &s->core.arena, s->phi, &s->warp.grid, ROUNDS_FIRST));
    un_arena_reset(&s->core.arena);
    un_warp_mirror(s->core.ctx, s->phi, s->walls);
    s->core.sources.ledger.start = volume_of(s, &status);
    return status;
}

void un_warping_track_to_grid(un_warping *s)
{
    s->particles.count = 0;
    for (int64_t c = 0; c < s->warp.grid.cell_count; c++) s->known[c] = s->warp.jacobian[c] > 0;
}

void un_warping_track_drops(un_warping *s)
{
    for (int64_t c = 0; c < s->warp.grid.cell_count; c++)
        if (s->warp.jacobian[c] > 0 && !s->known[c] && s->phi[c] < 0 && s->walls->volume[c] > 0)
            s->known[c] = 1;
}

un_status un_warping_track_carry(un_warping *s, double dt)
{
    un_context *ctx = s->core.ctx;
    int64_t cells = s->warp.grid.cell_count;
    double(*from)[4] = un_arena_alloc(&s->core.arena, (size_t)cells, sizeof *from);
    double(*to)[4] = un_arena_alloc(&s->core.arena, (size_t)cells, sizeof *to);
    if (!from || !to) return UN_ERROR_MEMORY;
    s->last_dt = dt;
    s->core.sources.ledger.out += leaves(s) * dt;
    for (int64_t c = 0; c < cells; c++) {
        /* beyond what the projection has reached there is no flow */
        if (s->warp.jacobian[c] > 0 && !s->known[c]) s->u[c] = un_v3(0, 0, 0);
        from[c][0] = s->u[c].x;
        from[c][1] = s->u[c].y;
        from[c][2] = s->u[c].z;
        from[c][3] = s->phi[c];
    }
    un_carry in = {.warp = &s->warp,
                   .was = s->was,
                   .u = s->u,
                   .interpolation = un_interpolation_find(s->core.def->solver.interpolation),
                   .maccormack = s->core.def->solver.maccormack,
                   .dt = dt};
    UN_TRY(un_carry_fields(ctx, &s->core.arena, to[0], from[0], 4, &in));
    for (int64_t c = 0; c < cells; c++) {
        if (!(s->warp.jacobian[c] > 0)) continue;
        s->u[c] = un_v3(to[c][0], to[c][1], s->warp.grid.dim == 2 ? 0 : to[c][2]);
        s->phi[c] = (float)to[c][3];
    }
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

un_status un_warping_track(un_warping *s)
{
    UN_TRY(take_sources(s));
    UN_TRY(un_warp_redistance(s->core.ctx, &s->core.arena, s->phi, &s->warp.grid, ROUNDS));
    un_arena_reset(&s->core.arena);
    return un_warping_track_weigh(s);
}
