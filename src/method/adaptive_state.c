/* Methods with particles on graded tets to a checkpoint and back.
 *
 * Saved: the particles, with the flags that the mesh and the level set were made with and not those
 * that the level set then gave them; the pressures at nodes (the next guess); what was emitted
 * inside the liquid and waits for the next projection; the ledger, the scale of sizes, the rate
 * that limits the step. Found again, by the same calls as at the end of a step: octree, tets,
 * walls, groups, level set, velocity at nodes, depths and flags. */
#include "method/adaptive.h"

/* ---- out ---- */

/* This rank's particles, and what is at its nodes. */
static un_status save_particles(const un_adaptive *a, un_state *out)
{
    const un_markers *m = &a->markers;
    un_part own = un_markers_own(m);
    un_particles mine = un_particles_part(&m->particles, own);
    return un_save_particles(out, &mine, m->flags_before + own.begin);
}

static un_status save_nodes(const un_adaptive *a, un_state *out)
{
    un_part own = un_tets_own_nodes(&a->mesh.tets);
    int64_t count = own.end - own.begin;
    UN_TRY(un_state_add(out, "pressure", a->node.p[0] + own.begin, count, 8));
    if (a->thick.any)
        UN_TRY(un_state_add(out, "viscous_pressure", a->node.p[1] + own.begin, count, 8));
    if (!a->emitted.any) return UN_OK;
    return un_state_add(out, "emitted", a->emitted.volume + own.begin, count, 8);
}

static un_status save_numbers(const un_adaptive *a, un_state *out)
{
    if (!a->emitted.any) UN_TRY(un_state_add(out, "emitted", NULL, 0, 8));
    UN_TRY(un_state_add_number(out, "scale", a->budget.scale));
    UN_TRY(un_state_add_integer(out, "scaled", a->budget.warned));
    UN_TRY(un_state_add_number(out, "most", a->budget.most));
    return un_state_add_number(out, "rate_max", a->rate_max);
}

un_status un_adaptive_save(const un_adaptive *a, un_state *out)
{
    int32_t first = out->count;
    UN_TRY(save_particles(a, out));
    un_adaptive_fetch_particles(a, out, first);
    UN_TRY(un_core_save(&a->core, out));
    first = out->count;
    UN_TRY(save_nodes(a, out));
    un_adaptive_fetch_nodes(a, out, first);
    UN_TRY(save_numbers(a, out));
    return un_save_hash(out, un_adaptive_hash(a));
}

/* For one of several ranks. */
un_status un_adaptive_keep(void *state, un_state *out)
{
    const un_adaptive *a = state;
    un_part own = un_markers_own(&a->markers);
    UN_TRY(save_particles(a, out));
    UN_TRY(un_core_save(&a->core, out));
    UN_TRY(save_nodes(a, out));
    UN_TRY(save_numbers(a, out));
    return un_state_add_integer(out, "ranks.own", own.end - own.begin);
}

/* ---- in ---- */

un_status un_adaptive_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                           void *arg)
{
    static const char *const shared[] = {"pressure", "viscous_pressure", "emitted", NULL};
    (void)scene;
    return un_sift_evenly(ctx, in, read, arg, shared);
}

/* By element of this rank's range: the rank that has the node now. */
static un_status find_owners(const un_adaptive *a, un_range range, int32_t **to)
{
    un_context *ctx = a->core.ctx;
    int64_t *first;
    int32_t owner = 0;
    UN_TRY(un_ranks_begins(ctx, a->ranks.tets.nodes.begin, range.total, &first));
    *to = un_alloc(ctx, (size_t)(range.end - range.begin) + 1, sizeof **to);
    for (int64_t n = range.begin; n < range.end && *to; n++) {
        while (n >= first[owner + 1]) owner++;
        (*to)[n - range.begin] = owner;
    }
    un_free(ctx, first);
    return un_ranks_agree(ctx, *to ? UN_OK : UN_ERROR_MEMORY);
}

/* Ranks have ranges of the values at all nodes, which follow one another, and get those at their
 * own nodes. */
static un_status take_nodes(un_adaptive *a, const un_state *in, const char *name, double *values)
{
    const un_tets *mesh = &a->mesh.tets;
    const un_tet_share *s = mesh->share;
    un_context *ctx = a->core.ctx;
    const un_section *section;
    un_exchange *moves;
    int32_t *to = NULL;
    if (!s) return un_state_take(in, name, values, mesh->node_count, 8);
    UN_TRY(un_ranks_agree(ctx, un_state_array(in, name, 8, &section)));
    un_range range = un_ranks_range(ctx, section->count);
    if (range.total != s->nodes.total)
        return un_fail(ctx, UN_ERROR_FILE,
                       "the checkpoint has %lld numbers in %s, and the mesh has %lld nodes",
                       (long long)range.total, name, (long long)s->nodes.total);
    UN_TRY(find_owners(a, range, &to));
    un_status status = un_exchange_create_moves(ctx, to, section->count, &moves);
    un_free(ctx, to);
    UN_TRY(status);
    memset(values, 0, (size_t)mesh->node_count * sizeof *values);
    un_field field = {name, un_section_data(section), values + s->node_begin, sizeof *values};
    status = un_exchange_run(moves, &field, 1);
    un_exchange_destroy(moves);
    UN_TRY(status);
    field = (un_field){name, values, NULL, sizeof *values};
    return un_tets_share(mesh, &field, 1);
}

static un_status load_emitted(un_adaptive *a, const un_state *in)
{
    const un_section *emitted;
    UN_TRY(un_state_array(in, "emitted", 8, &emitted));
    int64_t count = emitted->count;
    if (a->ranks.any) count = un_ranks_total(a->core.ctx, count);
    if (count == 0) return UN_OK;
    un_status status = un_emitted_need(a->core.ctx, &a->emitted, a->mesh.tets.node_count);
    UN_TRY(un_adaptive_agree(a, status));
    return take_nodes(a, in, "emitted", a->emitted.volume);
}

static un_status load_particles(un_adaptive *a, const un_state *in)
{
    int64_t warned;
    UN_TRY(un_state_number(in, "scale", &a->budget.scale));
    UN_TRY(un_state_integer(in, "scaled", 0, 1, &warned));
    UN_TRY(un_state_number(in, "most", &a->budget.most));
    a->budget.warned = warned;
    UN_TRY(un_core_load(&a->core, in));
    return un_load_particles(&a->core, in, &a->markers.particles);
}

un_status un_adaptive_load(un_adaptive *a, const un_state *in)
{
    un_adaptive_begin_share(a);
    UN_TRY(un_adaptive_agree(a, load_particles(a, in)));
    UN_TRY(un_adaptive_number(a));
    UN_TRY(un_adaptive_build_tree(a)); /* drops are known by their flags */
    UN_TRY(un_adaptive_build_mesh(a));
    UN_TRY(take_nodes(a, in, "pressure", a->node.p[0]));
    if (a->thick.any) UN_TRY(take_nodes(a, in, "viscous_pressure", a->node.p[1]));
    UN_TRY(load_emitted(a, in));
    UN_TRY(un_adaptive_sort(a)); /* they are sorted; this finds the ranges */
    UN_TRY(un_adaptive_gather(a));
    UN_TRY(un_adaptive_level_set(a));
    UN_TRY(un_adaptive_measure(a, &a->core.last));
    UN_TRY(un_state_number(in, "rate_max", &a->rate_max));
    if (a->ranks.any && !un_state_find(in, "found.hash")) return UN_OK; /* kept by this run */
    return un_load_hash(a->core.ctx, in, un_adaptive_hash(a));
}
