/* The output surface of hulls, made by several ranks.
 *
 * Every rank has what a surface is made from: particles with their places in single precision's
 * digits, volumes, radii, depths and flags, 41 bytes each, and their velocities while it finds thin
 * liquid. So each does its part of a loop over particles as one rank would, and the parts are
 * joined. Of the hulls a rank has an even part, and then those around its part of the mesh. The
 * mesh is shared out along its curve, with work as requests for leaves have it (hull_mesher.c);
 * rank 0 gets the contour and finishes it. */
#include "surface/hulls.h"
#include "surface/hulls_ranks.h"

/* ---- whole blocks ---- */

un_status un_blocks_create(un_context *ctx, un_blocks *b, un_range own, int64_t grain)
{
    *b = (un_blocks){.ctx = ctx, .own = own, .begin = own.begin, .end = own.end};
    if (own.begin < own.end) {
        b->begin = own.begin / grain * grain;
        b->end = un_min64((own.end + grain - 1) / grain * grain, own.total);
    }
    int64_t count = (b->end - b->begin) - (own.end - own.begin), k = 0;
    int64_t *wanted = un_alloc(ctx, (size_t)count + 1, sizeof *wanted);
    un_status status = un_ranks_agree(ctx, wanted ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) {
        for (int64_t i = b->begin; i < own.begin; i++) wanted[k++] = i;
        for (int64_t i = own.end; i < b->end; i++) wanted[k++] = i;
        status = un_exchange_create_halo(ctx, own, wanted, count, &b->halo);
    }
    un_free(ctx, wanted);
    return status;
}

void un_blocks_free(un_blocks *b)
{
    if (!b->ctx) return;
    un_exchange_destroy(b->halo);
    un_free(b->ctx, b->arrived);
    *b = (un_blocks){0};
}

un_status un_blocks_share(un_blocks *b, const un_field *fields, int32_t count)
{
    un_field sent[UN_FIELDS_MAX];
    size_t before = (size_t)(b->own.begin - b->begin), after = (size_t)(b->end - b->own.end);
    size_t own = (size_t)(b->own.end - b->begin), bytes = 0, at = 0;
    UN_ASSERT(count <= UN_FIELDS_MAX);
    for (int32_t f = 0; f < count; f++) bytes += (before + after) * fields[f].size;
    UN_TRY(un_ranks_agree(b->ctx,
                          un_array_need(b->ctx, (void **)&b->arrived, &b->room, bytes + 1, 1)));
    for (int32_t f = 0; f < count; at += (before + after) * fields[f].size, f++)
        sent[f] = (un_field){fields[f].name, (const char *)fields[f].from + before * fields[f].size,
                             b->arrived + at, fields[f].size};
    UN_TRY(un_exchange_run(b->halo, sent, count));
    for (int32_t f = 0; f < count; f++) {
        size_t size = fields[f].size;
        char *array = (char *)(uintptr_t)fields[f].from;
        const char *arrived = sent[f].to;
        memcpy(array, arrived, before * size);
        memcpy(array + own * size, arrived + before * size, after * size);
    }
    return UN_OK;
}

/* ---- particles ---- */

static un_status need_all(un_arena *arena, un_arena *motion, un_all_particles *all, size_t count)
{
    un_particles *p = &all->particles;
    bool able = true;
    for (int a = 0; a < 3; a++) {
        p->x[a] = un_arena_alloc(arena, count + 1, sizeof *p->x[a]);
        p->v[a] = un_arena_alloc(motion, count + 1, sizeof *p->v[a]);
        able = able && p->x[a] && p->v[a];
    }
    p->volume = un_arena_alloc(arena, count + 1, sizeof *p->volume);
    p->flags = un_arena_alloc(arena, count + 1, 1);
    all->radius = un_arena_alloc(arena, count + 1, sizeof *all->radius);
    all->depth = un_arena_alloc(arena, count + 1, sizeof *all->depth);
    able = able && p->volume && p->flags && all->radius && all->depth;
    return able ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_all_particles_get(un_context *ctx, un_arena *arena, un_arena *motion,
                               un_all_particles *all, const un_hull_mesher *in)
{
    const un_particles *from = in->particles;
    un_particles *p = &all->particles;
    *p = (un_particles){.count = (int32_t)in->range.total};
    UN_TRY(un_ranks_agree(ctx, need_all(arena, motion, all, (size_t)in->range.total)));
    int64_t count = in->own.end - in->own.begin;
    for (int64_t i = 0; i < count; i++) {
        int64_t q = in->own.begin + i, to = in->range.begin + i;
        for (int a = 0; a < 3; a++) {
            p->x[a][to] = (double)(float)from->x[a][q];
            p->v[a][to] = (double)(float)from->v[a][q];
        }
        p->volume[to] = from->volume[q];
        p->flags[to] = from->flags[q];
        all->radius[to] = in->radius[q];
        all->depth[to] = in->depth[q];
    }
    un_layered fields[10] = {{p->volume, sizeof *p->volume},
                             {p->flags, 1},
                             {all->radius, sizeof *all->radius},
                             {all->depth, sizeof *all->depth}};
    for (int a = 0; a < 3; a++) {
        fields[4 + a] = (un_layered){p->x[a], sizeof *p->x[a]};
        fields[7 + a] = (un_layered){p->v[a], sizeof *p->v[a]};
    }
    return un_ranks_join(ctx, in->range, fields, 10);
}

un_status un_all_velocities_get(un_context *ctx, un_arena *arena, un_all_particles *all,
                                const un_hull_mesher *in)
{
    int64_t count = in->own.end - in->own.begin, room = un_rank(ctx) == 0 ? in->range.total : 0;
    double *mine = un_arena_alloc(arena, (size_t)count + 1, sizeof *mine);
    bool able = mine;
    for (int a = 0; a < 3; a++) {
        all->particles.v[a] = un_arena_alloc(arena, (size_t)room + 1, sizeof *mine);
        able = able && all->particles.v[a];
    }
    UN_TRY(un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY));
    for (int a = 0; a < 3; a++) {
        const double *from = in->particles->v[a] + in->own.begin;
        for (int64_t i = 0; i < count; i++) mine[i] = (double)(float)from[i];
        un_ranks_own_window(ctx, in->range, mine, sizeof *mine, 0, in->range.total,
                            all->particles.v[a]);
    }
    return UN_OK;
}

un_status un_all_markers_get(un_context *ctx, un_arena *arena, un_all_markers *all,
                             const un_markers *m)
{
    un_range range = m->share->own;
    un_part own = un_markers_own(m);
    size_t count = (size_t)range.total + 1, mine = (size_t)(own.end - own.begin);
    double *x[3];
    float *radius = un_arena_alloc(arena, count, sizeof *radius);
    uint8_t *flags = un_arena_alloc(arena, count, 1);
    bool able = radius && flags;
    for (int a = 0; a < 3; a++) {
        all->x[a] = x[a] = un_arena_alloc(arena, count, sizeof *x[a]);
        able = able && x[a];
    }
    UN_TRY(un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY));
    for (int a = 0; a < 3; a++)
        memcpy(x[a] + range.begin, m->particles.x[a] + own.begin, mine * sizeof *x[a]);
    memcpy(radius + range.begin, m->radius + own.begin, mine * sizeof *radius);
    memcpy(flags + range.begin, m->particles.flags + own.begin, mine);
    all->radius = radius;
    all->flags = flags;
    un_layered fields[5] = {{x[0], sizeof *x[0]},
                            {x[1], sizeof *x[1]},
                            {x[2], sizeof *x[2]},
                            {radius, sizeof *radius},
                            {flags, 1}};
    UN_TRY(un_ranks_join(ctx, range, fields, 5));
    return un_ranks_agree(ctx,
                          un_groups_build(ctx, arena, &all->groups, all->x, radius, range.total));
}

/* ---- the mesh ---- */

un_status un_hulls_build_tree(un_octree *tree, un_tree_share *part, un_arena *arena,
                              const un_octree_request *request)
{
    un_context *ctx = tree->ctx;
    int32_t bits = 1;
    size_t count = (size_t)request->count;
    uint64_t *cut = un_arena_alloc(arena, (size_t)un_rank_count(ctx), sizeof *cut);
    uint64_t *key = un_arena_alloc(arena, count + 1, sizeof *key);
    un_status status = cut && key ? UN_OK : UN_ERROR_MEMORY;
    for (int axis = 0; axis < 3; axis++)
        while ((tree->n[axis] - 1) >> bits) bits++;
    for (size_t i = 0; status == UN_OK && i < count; i++)
        key[i] = un_morton((uint32_t)un_octree_index(tree, request->x[0][i], 0),
                           (uint32_t)un_octree_index(tree, request->x[1][i], 1),
                           (uint32_t)un_octree_index(tree, request->x[2][i], 2));
    if (status == UN_OK) status = un_parallel_sort_keys(ctx, arena, key, (int64_t)count, 3 * bits);
    UN_TRY(un_ranks_agree(ctx, status));
    UN_TRY(un_ranks_cut(ctx, cut, key, NULL, (int64_t)count, 3 * bits));
    return un_octree_build_ranks(tree, part, arena, request, cut);
}
