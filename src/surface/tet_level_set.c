/* The level set of the simulation on tets, from the particles' volume at nodes. */
#include "surface/hulls_ranks.h"

/* l of [Ando13 section 5]: particles within l (r_i + r_j) are joined. */
#define HULL_REACH 2.0

typedef struct phi_args {
    float *phi;
    const float *hull, *wall;
    const un_tets *mesh;
    const bool *open;
    int64_t first; /* tet that counting begins with */
} phi_args;

/* Nodes on or beyond an open side are air: liquid leaves through it. */
static void open_sides(void *arg, int64_t begin, int64_t end)
{
    phi_args *a = arg;
    const bool *open = a->open;
    const un_octree *tree = a->mesh->tree;
    un_vec3 top = tree->size;
    double snap = 1e-6 * tree->h;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = a->mesh->x[n];
        bool out = (open[UN_SIDE_LEFT] && x.x < snap) || (open[UN_SIDE_BOTTOM] && x.y < snap) ||
                   (open[UN_SIDE_BACK] && x.z < snap) ||
                   (open[UN_SIDE_RIGHT] && x.x > top.x - snap) ||
                   (open[UN_SIDE_TOP] && x.y > top.y - snap) ||
                   (open[UN_SIDE_FRONT] && x.z > top.z - snap);
        double least = 1e-2 * un_octree_size(tree, a->mesh->node_level[n]);
        if (out && a->phi[n] < least) a->phi[n] = (float)least;
    }
}

/* In walls there are no particles; phi there stays as extended from the volume fraction. */
static void take_hulls(void *arg, int64_t begin, int64_t end)
{
    phi_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->wall[n] >= 0) a->phi[n] = a->hull[n];
}

/* The paper's own level set, the union of hulls of triplets [Ando13 section 5], for comparison. */
static un_status hull_level_set(un_context *ctx, un_arena *arena, const un_tet_level_set *d)
{
    const un_markers *m = d->markers;
    un_hulls_def def = {.groups = &m->groups,
                        .radius = m->radius,
                        .flags = m->particles.flags,
                        .reach = HULL_REACH,
                        .shared = d->mesh->share != NULL};
    un_hulls *hulls = NULL;
    un_hulls_report report;
    un_all_markers all;
    float *hull = un_arena_alloc(arena, (size_t)d->mesh->node_count + 1, sizeof *hull);
    UN_TRY(un_tets_agree(d->mesh, hull ? UN_OK : UN_ERROR_MEMORY));
    if (def.shared) {
        UN_TRY(un_all_markers_get(ctx, arena, &all, m));
        def.groups = &all.groups;
        def.radius = all.radius;
        def.flags = all.flags;
    }
    un_status status = un_hulls_create(ctx, arena, &def, &hulls, &report);
    if (status == UN_OK)
        status = un_hulls_level_set(ctx, arena, hull, d->mesh, hulls, def.groups, def.radius, NULL);
    un_hulls_destroy(hulls);
    phi_args a = {.phi = d->phi, .hull = hull, .wall = d->walls->phi};
    if (status == UN_OK) un_parallel_for(ctx, d->mesh->node_count, 16384, take_hulls, &a);
    un_arena_reset(arena);
    return status;
}

un_status un_surface_level_set_tets(un_context *ctx, un_arena *arena, const un_tet_level_set *d)
{
    bool open = false;
    for (int side = 0; side < 6; side++) open |= d->open_sides[side];
    UN_TRY(un_colour_tets(ctx, arena, d->phi, d->colour, d->volume, d->mesh, d->walls));
    un_arena_reset(arena);
    if (d->hulls) UN_TRY(hull_level_set(ctx, arena, d));
    phi_args a = {.phi = d->phi, .mesh = d->mesh, .open = d->open_sides};
    if (open) un_parallel_for(ctx, d->mesh->node_count, 8192, open_sides, &a);
    UN_TRY(un_tets_redistance(ctx, arena, d->phi, d->mesh));
    un_arena_reset(arena);
    return UN_OK;
}

/* ---- number of wet tets ---- */

static double wet_block(void *arg, int64_t begin, int64_t end)
{
    phi_args *a = arg;
    const float *phi = a->phi;
    double wet = 0;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->mesh->tet[a->first + t];
        wet += phi[n[0]] < 0 || phi[n[1]] < 0 || phi[n[2]] < 0 || phi[n[3]] < 0;
    }
    return wet;
}

int64_t un_tets_wet_count(un_context *ctx, float *phi, const un_tets *mesh)
{
    un_part own = un_tets_own(mesh);
    phi_args a = {.phi = phi, .mesh = mesh, .first = own.begin};
    int64_t wet = (int64_t)un_parallel_sum(ctx, own.end - own.begin, wet_block, &a);
    return mesh->share ? un_ranks_total(ctx, wet) : wet;
}
