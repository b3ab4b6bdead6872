/* Method `tet` to a checkpoint and back.
 *
 * Saved: the particles, with the flags that the mesh and the level set were made with and not those
 * that the level set then gave them; the pressures at nodes (the next guess); what was emitted
 * inside the liquid and waits for the next projection; the ledger, the scale of sizes, the rate
 * that limits the step. Found again, by the same calls as at the end of a step: octree, tets,
 * walls, groups, level set, velocity at nodes, depths and flags. */
#include "method/saving.h"
#include "method/tet.h"

static uint64_t found_hash(const un_tet *s)
{
    size_t nodes = (size_t)s->mesh.node_count;
    uint64_t hash = un_saving_hash((uint64_t)s->particles.count, s->phi, nodes * sizeof *s->phi);
    hash = un_saving_hash(hash, s->u_node, nodes * sizeof *s->u_node);
    return un_saving_hash(hash, s->particles.flags, (size_t)s->particles.count);
}

un_status un_tet_save(const void *state, un_state *out)
{
    const un_tet *s = state;
    UN_TRY(un_save_particles(out, &s->particles, s->flags_before));
    UN_TRY(un_save_sources(out, &s->sources));
    UN_TRY(un_save_bodies(out, s->bodies));
    UN_TRY(un_state_add(out, "pressure", s->p[0], s->mesh.node_count, 8));
    if (s->viscous) UN_TRY(un_state_add(out, "viscous_pressure", s->p[1], s->mesh.node_count, 8));
    UN_TRY(un_state_add(out, "emitted", s->emitted, s->has_emitted ? s->mesh.node_count : 0, 8));
    UN_TRY(un_state_add_number(out, "time", s->time));
    UN_TRY(un_state_add_integer(out, "step", s->step_count));
    UN_TRY(un_state_add_number(out, "scale", s->scale));
    UN_TRY(un_state_add_integer(out, "scaled", s->scaled));
    UN_TRY(un_state_add_number(out, "most", s->most));
    UN_TRY(un_state_add_number(out, "rate_max", s->rate_max));
    return un_save_hash(out, found_hash(s));
}

static un_status load_emitted(un_tet *s, const un_state *in)
{
    const un_section *emitted;
    UN_TRY(un_state_array(in, "emitted", 8, &emitted));
    if (emitted->count == 0) return UN_OK;
    size_t nodes = (size_t)s->mesh.node_count;
    UN_TRY(un_array_need(s->ctx, (void **)&s->emitted, &s->emitted_capacity, nodes + 1,
                         sizeof *s->emitted));
    UN_TRY(un_state_take(in, "emitted", s->emitted, s->mesh.node_count, 8));
    s->has_emitted = true;
    return UN_OK;
}

static un_status load(un_tet *s, const un_state *in)
{
    int64_t step, scaled;
    UN_TRY(un_state_number(in, "time", &s->time));
    UN_TRY(un_state_integer(in, "step", 0, INT32_MAX, &step));
    UN_TRY(un_state_number(in, "scale", &s->scale));
    UN_TRY(un_state_integer(in, "scaled", 0, 1, &scaled));
    UN_TRY(un_state_number(in, "most", &s->most));
    s->step_count = (int32_t)step;
    s->scaled = scaled;
    UN_TRY(un_load_bodies(in, s->bodies));
    UN_TRY(un_load_particles(s->ctx, in, &s->particles, s->def->domain.size));
    UN_TRY(un_load_sources(in, &s->sources));
    UN_TRY(un_tet_build_tree(s)); /* drops are known by their flags */
    UN_TRY(un_tet_build_mesh(s));
    UN_TRY(un_state_take(in, "pressure", s->p[0], s->mesh.node_count, 8));
    if (s->viscous) UN_TRY(un_state_take(in, "viscous_pressure", s->p[1], s->mesh.node_count, 8));
    UN_TRY(load_emitted(s, in));
    UN_TRY(un_tet_sort(s)); /* they are sorted; this finds the ranges */
    UN_TRY(un_tet_level_set(s));
    UN_TRY(un_tet_measure(s, &s->last));
    UN_TRY(un_state_number(in, "rate_max", &s->rate_max));
    return un_load_hash(s->ctx, in, found_hash(s));
}

un_status un_tet_load(un_context *ctx, const un_scene *scene, const un_state *in, void **state)
{
    un_tet *s;
    UN_TRY(un_tet_begin(ctx, scene, &s));
    un_status status = load(s, in);
    if (status != UN_OK) {
        un_method_tet.destroy(s);
        return status;
    }
    *state = s;
    return UN_OK;
}
