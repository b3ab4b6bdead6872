/* Method `octree` to a checkpoint and back.
 *
 * Saved: the particles, with the flags that the mesh and the level set were made with; the pressure
 * at leaves (the next guess), that of viscous stress at nodes; what was emitted inside the liquid;
 * the ledger, the scale of sizes, the rate that limits the step. Found again, by the calls that end
 * a step: octree, leaves, walls, velocities at faces, level set, depths and flags. */
#include "method/octree.h"

/* All but particles. whole: the sections of all ranks, for a checkpoint. */
static un_status save_rest(const un_octree_flip *s, bool whole, un_state *out)
{
    int64_t leaves = s->leaves.count;
    UN_TRY(un_core_save(&s->core, out));
    UN_TRY(un_state_add(out, "pressure", s->at.p, leaves, 8));
    if (whole) un_octree_fetch_leaves(s, out, out->count - 1);
    UN_TRY(un_state_add(out, "emitted", s->emitted.volume, s->emitted.any ? leaves : 0, 8));
    if (s->thick.any) {
        const un_node_memory *kept = &s->thick.memory;
        int32_t first = out->count;
        UN_TRY(un_state_add(out, "viscous_nodes", kept->order, kept->count, 8));
        UN_TRY(un_state_add(out, "viscous_pressure", kept->value[0], kept->count, 8));
        if (whole) un_octree_fetch_kept(s, out, first);
    }
    UN_TRY(un_state_add_number(out, "scale", s->budget.scale));
    UN_TRY(un_state_add_integer(out, "scaled", s->budget.warned));
    UN_TRY(un_state_add_number(out, "most", s->budget.most));
    return un_state_add_number(out, "rate_max", s->rate_max);
}

un_status un_octree_save(const void *state, un_state *out)
{
    const un_octree_flip *s = state;
    UN_TRY(un_octree_save_particles(s, out));
    UN_TRY(save_rest(s, true, out));
    return un_save_hash(out, un_octree_hash(s));
}

/* For one of several ranks: its own particles, which follow those of the ranks before. */
un_status un_octree_keep(void *state, un_state *out)
{
    const un_octree_flip *s = state;
    UN_TRY(un_save_particles(out, &s->markers.particles, s->markers.flags_before));
    UN_TRY(save_rest(s, false, out));
    return un_state_add_integer(out, "ranks.own", s->markers.particles.count);
}

un_status un_octree_sift(un_context *ctx, const un_scene *scene, un_state *in, un_reread *read,
                         void *arg)
{
    /* what is at leaves is read by all */
    static const char *const shared[] = {"viscous_nodes", "viscous_pressure", NULL};
    (void)scene;
    return un_sift_evenly(ctx, in, read, arg, shared);
}

static un_status load_emitted(un_octree_flip *s, const un_state *in)
{
    const un_section *emitted;
    s->emitted.any = false;
    UN_TRY(un_state_array(in, "emitted", 8, &emitted));
    if (emitted->count == 0) return UN_OK;
    UN_TRY(un_emitted_need(s->core.ctx, &s->emitted, s->leaves.count));
    return un_state_take(in, "emitted", s->emitted.volume, s->leaves.count, 8);
}

static un_status load_viscous(un_octree_flip *s, const un_state *in)
{
    un_node_memory *kept = &s->thick.memory;
    const un_section *nodes;
    if (!s->thick.any) return UN_OK;
    UN_TRY(un_state_array(in, "viscous_nodes", 8, &nodes));
    size_t count = (size_t)nodes->count;
    UN_TRY(un_array_need(s->core.ctx, (void **)&kept->order, &kept->capacity[0], count + 1,
                         sizeof *kept->order));
    UN_TRY(un_array_need(s->core.ctx, (void **)&kept->value[0], &kept->capacity[1], count + 1,
                         sizeof **kept->value));
    UN_TRY(un_state_take(in, "viscous_nodes", kept->order, nodes->count, 8));
    UN_TRY(un_state_take(in, "viscous_pressure", kept->value[0], nodes->count, 8));
    kept->count = (int32_t)nodes->count;
    kept->width = 1;
    return UN_OK;
}

static un_status load_particles(un_octree_flip *s, const un_state *in)
{
    int64_t warned;
    UN_TRY(un_state_number(in, "scale", &s->budget.scale));
    UN_TRY(un_state_integer(in, "scaled", 0, 1, &warned));
    UN_TRY(un_state_number(in, "most", &s->budget.most));
    s->budget.warned = warned;
    UN_TRY(un_core_load(&s->core, in));
    return un_load_particles(&s->core, in, &s->markers.particles);
}

un_status un_octree_load(void *state, const un_state *in)
{
    un_octree_flip *s = state;
    un_status status = load_particles(s, in);
    UN_TRY(s->ranks.wanted ? un_ranks_agree(s->core.ctx, status) : status);
    un_octree_begin_share(s);
    UN_TRY(un_octree_number_new(s));
    UN_TRY(un_octree_build_tree(s)); /* drops are known by their flags */
    UN_TRY(un_octree_build_leaves(s));
    status = un_state_take(in, "pressure", s->at.p, s->leaves.count, 8);
    if (status == UN_OK) status = load_emitted(s, in);
    if (status == UN_OK) status = load_viscous(s, in);
    UN_TRY(un_octree_agree(s, status));
    UN_TRY(un_octree_sort(s)); /* they are sorted; this finds the ranges */
    UN_TRY(un_octree_gather(s));
    UN_TRY(un_octree_level_set(s));
    UN_TRY(un_octree_measure(s, &s->core.last));
    UN_TRY(un_state_number(in, "rate_max", &s->rate_max));
    if (s->ranks.any && !un_state_find(in, "found.hash")) return UN_OK; /* kept by this run */
    return un_load_hash(s->core.ctx, in, un_octree_hash(s));
}
