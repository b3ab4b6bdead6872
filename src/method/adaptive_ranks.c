/* Methods with particles on graded tets on several ranks.
 *
 * A rank has a part of the curve: the leaves, nodes and tets in it (mesh/octree_ranks.c,
 * tets_ranks.c), and the particles in these tets, with copies of others around them
 * (particles/ranks.c). Calls are those of one rank; kernels know from the mesh and the particles
 * what is theirs. The curve is cut anew with every mesh, so work stays even.
 *
 * Every rank seeds the first particles of its part. Of a checkpoint it reads a range of the
 * particles and of what is at nodes. What rank 0 shows stands in adaptive_whole.c. */
#include "method/adaptive.h"

#include <stdlib.h>

void un_adaptive_ranks_free(un_adaptive *a)
{
    un_adaptive_ranks *r = &a->ranks;
    un_context *ctx = a->core.ctx;
    if (!r->any) return;
    un_adaptive_show_nothing(a);
    un_particle_share_free(&r->particles);
    un_tet_share_free(&r->tets);
    un_tree_share_free(&r->tree);
    un_free(ctx, r->fetched);
    un_free(ctx, r->probed);
    *r = (un_adaptive_ranks){0};
}

void un_adaptive_want_ranks(un_adaptive *a)
{
    a->ranks.wanted = un_rank_count(a->core.ctx) > 1;
}

void un_adaptive_begin_share(un_adaptive *a)
{
    un_adaptive_ranks *r = &a->ranks;
    un_context *ctx = a->core.ctx;
    if (!r->wanted) return;
    r->any = true;
    r->tree.ctx = r->tets.ctx = r->particles.ctx = ctx;
    a->markers.share = &r->particles;
}

/* ---- the first state ---- */

un_status un_adaptive_number(un_adaptive *a)
{
    un_particle_share *s = a->markers.share;
    if (!s) return UN_OK;
    s->own = un_ranks_range(a->core.ctx, a->markers.particles.count);
    return un_particle_share_number(s, &a->markers.particles);
}

un_status un_adaptive_unshare(un_adaptive *a)
{
    un_markers_drop_copies(&a->markers, NULL, 0);
    return un_adaptive_number(a);
}

/* ---- the mesh ---- */

un_status un_adaptive_share_mesh(un_adaptive *a)
{
    if (!a->ranks.any) return UN_OK;
    UN_TRY(un_tet_share_find(&a->ranks.tets, &a->core.arena, &a->mesh.tets, &a->ranks.tree));
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

/* ---- particles ---- */

/* Copies get the places and flags of their owners. */
un_status un_adaptive_refresh_places(un_adaptive *a)
{
    const un_particles *p = &a->markers.particles;
    un_field fields[3] = {
        {"x", p->x[0], NULL, 8}, {"y", p->x[1], NULL, 8}, {"z", p->x[2], NULL, 8}};
    return un_particle_refresh(a->markers.share, fields, 3);
}

un_status un_adaptive_refresh_flags(un_adaptive *a)
{
    un_field field = {"flags", a->markers.particles.flags, NULL, 1};
    return un_particle_refresh(a->markers.share, &field, 1);
}

/* ---- bodies that the liquid moves ---- */

static un_status sum_particles(void *arg, int32_t width, un_parallel_values *values,
                               void *values_arg, double *sums)
{
    const un_adaptive *a = arg;
    return un_markers_sums(a->core.ctx, &a->markers, width, values, values_arg, sums);
}

un_status un_adaptive_settle_ranks(un_adaptive *a, const un_vec3 *was, const un_impulse *impulse,
                                   double kick)
{
    un_settling def = {.was = was,
                       .mesh = impulse,
                       .gravity = un_scale(a->core.def->gravity, kick),
                       .density = a->core.def->fluid.density,
                       .sum = sum_particles,
                       .arg = a};
    if (!was) return UN_OK;
    return un_particles_keep_all(a->core.ctx, &a->markers.particles, &def);
}

un_status un_adaptive_push_bodies_ranks(un_adaptive *a, const un_hit *hits)
{
    un_context *ctx = a->core.ctx;
    const un_particle_share *s = a->markers.share;
    un_part own = un_markers_own(&a->markers);
    un_particles mine = un_particles_part(&a->markers.particles, own);
    if (!hits) return UN_OK;
    uint32_t *id = un_arena_alloc(&a->core.arena, (size_t)mine.count + 1, sizeof *id);
    UN_TRY(un_ranks_agree(ctx, id ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t q = 0; q < mine.count; q++) id[q] = (uint32_t)(s->own.begin + q);
    return un_advect_push_bodies(ctx, &mine, hits + own.begin, id, a->core.bodies,
                                 a->core.def->fluid.density);
}

/* ---- sources ---- */

static un_status find_levels(void *arg, const un_vec3 *from, double *phi, int64_t count)
{
    un_adaptive *a = arg;
    const un_tets *mesh = &a->mesh.tets;
    un_context *ctx = a->core.ctx;
    int32_t me = un_rank(ctx), ranks = un_rank_count(ctx);
    un_vec3 *x = un_arena_alloc(&a->core.arena, (size_t)count + 1, sizeof *x);
    un_tets_sampled *level = un_arena_alloc(&a->core.arena, (size_t)count + 1, sizeof *level);
    int64_t *which = un_arena_alloc(&a->core.arena, (size_t)count + 1, sizeof *which), asked = 0;
    UN_TRY(un_ranks_agree(ctx, x && level && which ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t k = 0; k < count; k++) {
        phi[k] = 0;
        if (un_ranks_owner(a->ranks.tree.first, ranks, un_tets_place_key(mesh, from[k])) != me)
            continue;
        x[asked] = from[k];
        which[asked++] = k;
    }
    UN_TRY(un_tets_ask(mesh, a->node.phi, x, asked, level));
    for (int64_t k = 0; k < asked; k++) phi[which[k]] = level[k].value;
    un_arena_reset(&a->core.arena);
    return UN_OK;
}

static bool settle(void *arg, int32_t q, double phi, bool first_filling)
{
    return un_adaptive_settle(arg, q, phi, first_filling);
}

un_status un_adaptive_emit_ranks(un_adaptive *a, double dt)
{
    un_emit_ranks how = {find_levels, settle, a};
    return un_core_emit_ranks(&a->core, &a->markers, dt, &how);
}

typedef struct brought {
    un_vec3 x; /* its seat */
    uint32_t id;
    float volume;
} brought;

static int brought_by_id(const void *a, const void *b)
{
    uint32_t i = ((const brought *)a)->id, j = ((const brought *)b)->id;
    return (i > j) - (i < j);
}

static un_status list_brought(un_adaptive *a, brought *mine, int64_t count)
{
    const un_particles *p = &a->markers.particles;
    un_vec3 *x = un_arena_alloc(&a->core.arena, 2 * (size_t)count + 1, sizeof *x);
    UN_TRY(un_ranks_agree(a->core.ctx, x ? UN_OK : UN_ERROR_MEMORY));
    int64_t k = 0;
    for (int32_t q = 0; q < p->count; q++) {
        if (!(p->flags[q] & UN_PARTICLE_EMITTED)) continue;
        x[k] = un_particle_position(p, q);
        mine[k] = (brought){x[k], a->markers.share->id[q], p->volume[q]};
        k++;
    }
    UN_TRY(un_tets_seats(&a->mesh.tets, x, count, x + count, NULL));
    for (k = 0; k < count; k++) mine[k].x = x[count + k];
    return UN_OK;
}

/* Particles are not yet with the ranks of their tets: all get to know what was emitted inside the
 * liquid, and add it up in the order of one rank. A rank's own nodes get all of theirs, because it
 * knows the tets around them. */
un_status un_adaptive_place_emitted_ranks(un_adaptive *a)
{
    un_context *ctx = a->core.ctx;
    const un_particles *p = &a->markers.particles;
    brought *mine = NULL, *all = NULL;
    int64_t count = 0, all_count = 0;
    for (int32_t q = 0; q < p->count; q++) count += (p->flags[q] & UN_PARTICLE_EMITTED) != 0;
    mine = un_arena_alloc(&a->core.arena, (size_t)count + 1, sizeof *mine);
    un_status status = un_emitted_need(ctx, &a->emitted, a->mesh.tets.node_count);
    UN_TRY(un_ranks_agree(ctx, mine ? status : UN_ERROR_MEMORY));
    UN_TRY(list_brought(a, mine, count));
    UN_TRY(un_ranks_list(ctx, mine, count, sizeof *mine, (void **)&all, &all_count));
    un_arena_reset(&a->core.arena);
    if (all_count > 0) qsort(all, (size_t)all_count, sizeof *all, brought_by_id);
    memset(a->emitted.volume, 0, (size_t)a->mesh.tets.node_count * sizeof *a->emitted.volume);
    for (int64_t k = 0; k < all_count; k++) {
        un_tets_place place;
        un_tets_locate_closed(&a->mesh.tets, all[k].x, &place);
        un_emitted_add(&a->emitted, &a->mesh.tets, &place, (double)all[k].volume);
    }
    un_free(ctx, all);
    return UN_OK;
}

/* ---- what this rank does ---- */

void un_adaptive_begin_step(un_adaptive *a)
{
    un_particle_share *s = &a->ranks.particles;
    un_adaptive_show_nothing(a);
    s->moved = s->copied = 0;
    s->move_bytes = s->halo_bytes = 0;
}

void un_adaptive_portion(const void *state, un_portion *out)
{
    const un_adaptive *a = state;
    const un_particle_share *s = &a->ranks.particles;
    un_part own = un_markers_own(&a->markers), tets = un_tets_own(&a->mesh.tets);
    *out = (un_portion){.particles = own.end - own.begin,
                        .cells = tets.end - tets.begin,
                        .copies = s->copied,
                        .migrated = s->moved,
                        .migrated_bytes = (int64_t)s->move_bytes,
                        .cuts = a->core.step_count};
}
