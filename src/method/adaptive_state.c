/* Methods with particles on graded tets to a checkpoint and back.
 *
 * Saved: the particles, with the flags that the mesh and the level set were made with and not those
 * that the level set then gave them; the pressures at nodes (the next guess); what was emitted
 * inside the liquid and waits for the next projection; the ledger, the scale of sizes, the rate
 * that limits the step. Found again, by the same calls as at the end of a step: octree, tets,
 * walls, groups, level set, velocity at nodes, depths and flags. */
#include "method/adaptive.h"

un_status un_adaptive_save(const un_adaptive *a, un_state *out)
{
    UN_TRY(un_adaptive_save_particles(a, out));
    UN_TRY(un_core_save(&a->core, out));
    UN_TRY(un_adaptive_save_nodes(a, out, "pressure", a->node.p[0]));
    if (a->thick.any) UN_TRY(un_adaptive_save_nodes(a, out, "viscous_pressure", a->node.p[1]));
    if (a->emitted.any)
        UN_TRY(un_adaptive_save_nodes(a, out, "emitted", a->emitted.volume));
    else
        UN_TRY(un_state_add(out, "emitted", NULL, 0, 8));
    UN_TRY(un_state_add_number(out, "scale", a->budget.scale));
    UN_TRY(un_state_add_integer(out, "scaled", a->budget.warned));
    UN_TRY(un_state_add_number(out, "most", a->budget.most));
    UN_TRY(un_state_add_number(out, "rate_max", a->rate_max));
    return un_save_hash(out, un_adaptive_hash(a));
}

static un_status load_emitted(un_adaptive *a, const un_state *in)
{
    const un_section *emitted;
    UN_TRY(un_state_array(in, "emitted", 8, &emitted));
    if (emitted->count == 0) return UN_OK;
    UN_TRY(un_emitted_need(a->core.ctx, &a->emitted, a->mesh.tets.node_count));
    return un_adaptive_take_nodes(a, in, "emitted", a->emitted.volume);
}

un_status un_adaptive_load(un_adaptive *a, const un_state *in)
{
    int64_t warned;
    UN_TRY(un_state_number(in, "scale", &a->budget.scale));
    UN_TRY(un_state_integer(in, "scaled", 0, 1, &warned));
    UN_TRY(un_state_number(in, "most", &a->budget.most));
    a->budget.warned = warned;
    UN_TRY(un_core_load(&a->core, in));
    UN_TRY(un_load_particles(&a->core, in, &a->markers.particles));
    UN_TRY(un_adaptive_share_out(a));
    UN_TRY(un_adaptive_build_tree(a)); /* drops are known by their flags */
    UN_TRY(un_adaptive_build_mesh(a));
    UN_TRY(un_adaptive_take_nodes(a, in, "pressure", a->node.p[0]));
    if (a->thick.any) UN_TRY(un_adaptive_take_nodes(a, in, "viscous_pressure", a->node.p[1]));
    UN_TRY(load_emitted(a, in));
    UN_TRY(un_adaptive_sort(a)); /* they are sorted; this finds the ranges */
    UN_TRY(un_adaptive_gather(a));
    UN_TRY(un_adaptive_level_set(a));
    UN_TRY(un_adaptive_measure(a, &a->core.last));
    UN_TRY(un_state_number(in, "rate_max", &a->rate_max));
    return un_load_hash(a->core.ctx, in, un_adaptive_hash(a));
}
