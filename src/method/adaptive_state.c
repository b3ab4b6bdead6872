/* Methods with particles on graded tets to a checkpoint and back.
 *
 * Saved: the particles, with the flags that the mesh and the level set were made with and not those
 * that the level set then gave them; the pressures at nodes (the next guess); what was emitted
 * inside the liquid and waits for the next projection; the ledger, the scale of sizes, the rate
 * that limits the step. Found again, by the same calls as at the end of a step: octree, tets,
 * walls, groups, level set, velocity at nodes, depths and flags. */
#include "method/adaptive.h"

static uint64_t found_hash(const un_adaptive *a)
{
    size_t nodes = (size_t)a->mesh.tets.node_count;
    const un_particles *p = &a->markers.particles;
    uint64_t hash = un_saving_hash((uint64_t)p->count, a->node.phi, nodes * sizeof *a->node.phi);
    hash = un_saving_hash(hash, a->node.u, nodes * sizeof *a->node.u);
    return un_saving_hash(hash, p->flags, (size_t)p->count);
}

un_status un_adaptive_save(const un_adaptive *a, un_state *out)
{
    int64_t nodes = a->mesh.tets.node_count;
    UN_TRY(un_save_particles(out, &a->markers.particles, a->markers.flags_before));
    UN_TRY(un_core_save(&a->core, out));
    UN_TRY(un_state_add(out, "pressure", a->node.p[0], nodes, 8));
    if (a->thick.any) UN_TRY(un_state_add(out, "viscous_pressure", a->node.p[1], nodes, 8));
    UN_TRY(un_state_add(out, "emitted", a->emitted.volume, a->emitted.any ? nodes : 0, 8));
    UN_TRY(un_state_add_number(out, "scale", a->budget.scale));
    UN_TRY(un_state_add_integer(out, "scaled", a->budget.warned));
    UN_TRY(un_state_add_number(out, "most", a->budget.most));
    UN_TRY(un_state_add_number(out, "rate_max", a->rate_max));
    return un_save_hash(out, found_hash(a));
}

static un_status load_emitted(un_adaptive *a, const un_state *in)
{
    const un_section *emitted;
    UN_TRY(un_state_array(in, "emitted", 8, &emitted));
    if (emitted->count == 0) return UN_OK;
    UN_TRY(un_emitted_need(a->core.ctx, &a->emitted, a->mesh.tets.node_count));
    return un_state_take(in, "emitted", a->emitted.volume, a->mesh.tets.node_count, 8);
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
    UN_TRY(un_adaptive_build_tree(a)); /* drops are known by their flags */
    UN_TRY(un_adaptive_build_mesh(a));
    int64_t nodes = a->mesh.tets.node_count;
    UN_TRY(un_state_take(in, "pressure", a->node.p[0], nodes, 8));
    if (a->thick.any) UN_TRY(un_state_take(in, "viscous_pressure", a->node.p[1], nodes, 8));
    UN_TRY(load_emitted(a, in));
    UN_TRY(un_adaptive_sort(a)); /* they are sorted; this finds the ranges */
    UN_TRY(un_adaptive_gather(a));
    UN_TRY(un_adaptive_level_set(a));
    UN_TRY(un_adaptive_measure(a, &a->core.last));
    UN_TRY(un_state_number(in, "rate_max", &a->rate_max));
    return un_load_hash(a->core.ctx, in, found_hash(a));
}
