/* Non-uniform liquids: density and viscosity at nodes and tets, from particles that carry their
 * own. */
#include "transfer/transfer.h"

typedef struct matter_args {
    un_mixture *mix;
    const un_tets *mesh;
    const un_vec3 *matter;
    const uint8_t *known;
} matter_args;

static void store_matter(void *arg, int64_t begin, int64_t end)
{
    matter_args *a = arg;
    un_mixture *m = a->mix;
    for (int64_t n = begin; n < end; n++) {
        m->density[n] = (float)(a->known[n] ? a->matter[n].x : m->density_all);
        m->viscosity[n] = (float)(a->known[n] ? a->matter[n].y : 0);
    }
}

static void find_lightness(void *arg, int64_t begin, int64_t end)
{
    matter_args *a = arg;
    const float *density = a->mix->density;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->mesh->tet[t];
        double mean =
            0.25 * ((double)density[n[0]] + density[n[1]] + density[n[2]] + density[n[3]]);
        a->mix->lightness[t] = (float)(a->mix->density_all / mean);
    }
}

static un_status need_mixture(un_context *ctx, un_mixture *m, const un_tets *mesh)
{
    size_t nodes = (size_t)mesh->node_count + 1, tets = (size_t)mesh->tet_count + 1;
    UN_TRY(un_array_need(ctx, (void **)&m->density, &m->capacity[0], nodes, sizeof(float)));
    UN_TRY(un_array_need(ctx, (void **)&m->viscosity, &m->capacity[1], nodes, sizeof(float)));
    return un_array_need(ctx, (void **)&m->lightness, &m->capacity[2], tets, sizeof(float));
}

un_status un_transfer_mix(un_context *ctx, un_arena *arena, un_mixture *m, const un_tets *mesh,
                          const un_tet_bins *bins, const un_particles *particles)
{
    size_t nodes = (size_t)mesh->node_count + 1;
    UN_TRY(un_tets_agree(mesh, need_mixture(ctx, m, mesh)));
    un_vec3 *matter = un_arena_alloc(arena, nodes, sizeof *matter);
    uint8_t *known = un_arena_alloc(arena, nodes, 1);
    UN_TRY(un_tets_agree(mesh, matter && known ? UN_OK : UN_ERROR_MEMORY));
    UN_TRY(un_transfer_matter_to_nodes(ctx, arena, matter, known, mesh, bins, particles));
    UN_TRY(un_transfer_extrapolate_nodes(ctx, arena, matter, NULL, known, mesh, 2));
    matter_args a = {m, mesh, matter, known};
    un_parallel_for(ctx, mesh->node_count, 16384, store_matter, &a);
    un_parallel_for(ctx, mesh->tet_count, 16384, find_lightness, &a);
    un_arena_reset(arena);
    return UN_OK;
}

void un_mixture_free(un_context *ctx, un_mixture *m)
{
    un_free(ctx, m->density);
    un_free(ctx, m->viscosity);
    un_free(ctx, m->lightness);
    m->density = m->viscosity = m->lightness = NULL;
    memset(m->capacity, 0, sizeof m->capacity);
}

/* ---- velocities at nodes of viscous liquid ---- */

typedef struct centre_args {
    const un_mixture *mix;
    const un_tets *mesh;
    un_vec3 *out;
    const un_vec3 *centre, *u;
    const uint8_t *known;
} centre_args;

static void move_to_nodes(void *arg, int64_t begin, int64_t end)
{
    centre_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        if (!a->known[n] || !(un_mixture_viscosity(a->mix, n) > 0)) continue;
        un_vec3 sum = {0, 0, 0}, off = a->centre[n];
        double total = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            const int32_t *m = mesh->tet[t];
            if (!(a->known[m[0]] && a->known[m[1]] && a->known[m[2]] && a->known[m[3]])) continue;
            const un_tet_shape *shape = un_tets_shape(mesh, t);
            double over = 1 / un_tets_size(mesh, t), w = un_tets_volume(mesh, t);
            for (int i = 0; i < 4; i++) {
                /* change of N_i from node n to the centre of its mean */
                const double *g = shape->gradient[i];
                double along = over * (g[0] * off.x + g[1] * off.y + g[2] * off.z);
                sum = un_mad(sum, a->u[m[i]], w * along);
            }
            total += w;
        }
        if (total > 0) a->out[n] = un_mad(a->u[n], sum, -1 / total);
    }
}

un_status un_transfer_move_to_nodes(un_context *ctx, un_arena *arena, un_vec3 *u_node,
                                    const un_mixture *mix, const un_tets *mesh,
                                    const un_tet_bins *bins, const un_particles *particles)
{
    size_t nodes = (size_t)mesh->node_count + 1;
    un_vec3 *centre = un_arena_alloc(arena, nodes, sizeof *centre);
    un_vec3 *u = un_arena_alloc(arena, nodes, sizeof *u);
    uint8_t *known = un_arena_alloc(arena, nodes, 1);
    UN_TRY(un_tets_agree(mesh, centre && u && known ? UN_OK : UN_ERROR_MEMORY));
    UN_TRY(un_transfer_centres(ctx, arena, centre, known, mesh, bins, particles));
    memcpy(u, u_node, nodes * sizeof *u - sizeof *u);
    centre_args a = {mix, mesh, u_node, centre, u, known};
    un_parallel_part(ctx, un_tets_own_nodes(mesh), 1024, move_to_nodes, &a);
    un_arena_reset(arena);
    un_field field = {"u", u_node, NULL, sizeof *u_node};
    return un_tets_share(mesh, &field, 1);
}
