/* Method `octree` on several ranks.
 *
 * Every rank has the particles in its own leaves, those in its part of the curve
 * (mesh/leaves_ranks.c, particles/ranks.c), and knows these leaves and some around them, where
 * liquid is viscous with tets on its own and those that touch them. Copies of others' particles
 * come where they are needed: around own leaves, for velocities and volume
 * (transfer/leaves_ranks.c), and around own particles, where these are spread, split or merged.
 * What each rank finds at its leaves goes to those who know them. The curve is cut anew with every
 * mesh, so work stays even.
 *
 * Of the first state, a rank seeds its own leaves. Of a checkpoint it reads a part of the
 * particles. */
#include "method/octree.h"

void un_octree_ranks_free(un_octree_flip *s)
{
    un_octree_ranks *r = &s->ranks;
    un_context *ctx = s->core.ctx;
    if (!r->any) return;
    un_octree_show_nothing(s);
    un_free(s->core.ctx, s->ranks.probed);
    un_particle_share_free(&r->particles);
    un_tet_share_free(&r->tets);
    un_leaf_share_free(&r->leaves);
    un_tree_share_free(&r->tree);
    un_free(ctx, r->fetched);
    *r = (un_octree_ranks){0};
}

void un_octree_begin_share(un_octree_flip *s)
{
    un_octree_ranks *r = &s->ranks;
    if (!r->wanted) return;
    r->any = true; /* from here on this is one of several */
    r->tree.ctx = r->leaves.ctx = r->tets.ctx = r->particles.ctx = s->core.ctx;
    r->tree.whole = r->tets.wide = true;
    s->markers.share = &r->particles;
}

/* ---- parts of the step ---- */

/* Rings around own leaves: as far as the level set, pressure and sizes look; while the first state
 * is made, particles are moved by values around them, too. */
#define RINGS 2
#define FIRST_RINGS 4

un_status un_octree_share_leaves(un_octree_flip *s)
{
    if (!s->ranks.any) return UN_OK;
    UN_TRY(un_leaves_build_ranks(&s->leaves, s->core.ctx, &s->tree, &s->ranks.leaves,
                                 &s->ranks.tree, s->core.step_count > 0 ? RINGS : FIRST_RINGS));
    if (!s->thick.any) return UN_OK;
    return un_ranks_agree(s->core.ctx,
                          un_halo_reserve(s->ranks.leaves.near_faces, sizeof *s->thick.centre));
}

un_status un_octree_number(un_octree_flip *s)
{
    if (!s->ranks.any || s->ranks.particles.own.total == 0) return UN_OK; /* or resized already */
    return un_particle_share_number(&s->ranks.particles, &s->markers.particles);
}

un_status un_octree_number_new(un_octree_flip *s)
{
    un_particle_share *share = &s->ranks.particles;
    if (!s->ranks.any) return UN_OK;
    share->own = un_ranks_range(s->core.ctx, s->markers.particles.count);
    return un_particle_share_number(share, &s->markers.particles);
}

static un_status sum_all(void *arg, int32_t width, un_parallel_values *values, void *values_arg,
                         double *sums)
{
    un_octree_flip *s = arg;
    return un_markers_sums(s->core.ctx, &s->markers, width, values, values_arg, sums);
}

un_status un_octree_settle(un_octree_flip *s, const un_vec3 *was, double kick)
{
    const un_scene_def *def = s->core.def;
    if (!s->ranks.any) {
        un_core_settle(&s->core, &s->markers.particles, was, &s->impulse, kick);
        return UN_OK;
    }
    if (!was) return UN_OK;
    un_settling settling = {.was = was,
                            .mesh = &s->impulse,
                            .gravity = un_scale(def->gravity, kick),
                            .density = def->fluid.density,
                            .sum = sum_all,
                            .arg = s};
    return un_particles_keep_all(s->core.ctx, &s->markers.particles, &settling);
}

un_status un_octree_push_bodies(un_octree_flip *s, const un_hit *hits)
{
    un_particles *p = &s->markers.particles;
    if (!s->ranks.any || !hits) return un_core_push_bodies(&s->core, p, hits);
    uint32_t *id = un_arena_alloc(&s->core.arena, (size_t)p->count + 1, sizeof *id);
    UN_TRY(un_ranks_agree(s->core.ctx, id ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t q = 0; q < p->count; q++) id[q] = (uint32_t)(s->ranks.particles.own.begin + q);
    return un_advect_push_bodies(s->core.ctx, p, hits, id, s->core.bodies,
                                 s->core.def->fluid.density);
}

/* A rank knows what is around its own leaves. */
static un_status find_levels(void *arg, const un_vec3 *from, double *phi, int64_t count)
{
    const un_octree_flip *s = arg;
    un_part own = un_leaves_own(&s->leaves);
    for (int64_t k = 0; k < count; k++) {
        int32_t c = un_octree_find(&s->tree, from[k]);
        bool mine = c >= own.begin && c < own.end;
        phi[k] = mine ? un_leaves_sample(&s->leaves, s->at.phi, c, from[k]) : 0;
    }
    return UN_OK;
}

static bool settle(void *arg, int32_t q, double phi, bool first_filling)
{
    return un_octree_settle_emitted(arg, q, phi, first_filling);
}

un_status un_octree_emit_ranks(un_octree_flip *s, double dt)
{
    un_emit_ranks how = {find_levels, settle, s};
    return un_core_emit_ranks(&s->core, &s->markers, dt, &how);
}

void un_octree_make_room(un_octree_flip *s)
{
    if (!s->ranks.any) return;
    un_arena_free(&s->core.arena);
    un_particles_free(s->core.ctx, &s->ranks.particles.arrived);
}

void un_octree_forget_system(un_octree_flip *s)
{
    if (un_leaves_in_parts(&s->leaves)) un_solver_release(s->pressure->solver);
}

void un_octree_forget_flow(un_octree_flip *s)
{
    if (!un_leaves_in_parts(&s->leaves)) return;
    un_leaves_flow_free(s->core.ctx, &s->now);
    un_leaves_flow_free(s->core.ctx, &s->before);
}

/* ---- what this rank does ---- */

void un_octree_begin_step(un_octree_flip *s)
{
    un_particle_share *share = &s->ranks.particles;
    un_octree_show_nothing(s);
    if (un_leaves_in_parts(&s->leaves)) {
        un_arena_rest(&s->core.arena);
        un_markers_rest(&s->markers); /* there were copies */
        un_free(s->core.ctx, share->room);
        share->room = NULL;
        share->capacity_room = 0;
    }
    share->moved = share->copied = 0;
    share->move_bytes = share->halo_bytes = 0;
}

void un_octree_portion(const void *state, un_portion *out)
{
    const un_octree_flip *s = state;
    const un_particle_share *share = &s->ranks.particles;
    un_part leaves = un_leaves_own(&s->leaves);
    *out = (un_portion){.particles = s->markers.particles.count,
                        .cells = leaves.end - leaves.begin,
                        .copies = share->copied,
                        .migrated = share->moved,
                        .migrated_bytes = (int64_t)share->move_bytes,
                        .cuts = s->core.step_count};
}
