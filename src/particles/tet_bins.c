/* Particles sorted by the tet, or the leaf, that they lie in. */
#include "particles/ranks.h"

typedef struct bins_args {
    un_tet_bins *bins;
    const un_particles *particles;
    const un_tets *mesh;
    const un_leaves *leaves;
    const un_bodies *bodies;
    uint32_t *keys;
    int32_t *order;
} bins_args;

static void find_tets(void *arg, int64_t begin, int64_t end)
{
    bins_args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        un_tets_place place;
        un_tets_locate(a->mesh, un_particle_position(a->particles, q), &place);
        a->keys[q] = (uint32_t)place.tet;
    }
}

/* Those that bins->tet has. */
static void take_tets(void *arg, int64_t begin, int64_t end)
{
    bins_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->keys[q] = (uint32_t)a->bins->tet[q];
}

static void find_leaves(void *arg, int64_t begin, int64_t end)
{
    bins_args *a = arg;
    /* Particles still lie about as they were sorted, so the last ones' leaves are guesses; not the
     * very last one's, which would have to be waited for. */
    int32_t c[4] = {0};
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x = un_particle_position(a->particles, q);
        c[q & 3] = un_leaves_home(a->leaves, a->bodies, c[q & 3], x);
        a->keys[q] = (uint32_t)c[q & 3];
    }
}

static void sort_tets(void *arg, int64_t begin, int64_t end)
{
    bins_args *a = arg;
    for (int64_t i = begin; i < end; i++) a->bins->tet[i] = (int32_t)a->keys[a->order[i]];
}

void un_tet_bins_free(un_context *ctx, un_tet_bins *bins)
{
    un_free(ctx, bins->tet);
    un_free(ctx, bins->begin);
    un_free(ctx, bins->all);
    un_free(ctx, bins->seat);
    *bins = (un_tet_bins){0};
}

static un_status sort_by(un_context *ctx, un_arena *arena, bins_args *a, un_particles *particles,
                         int64_t places, un_parallel_body *find)
{
    int64_t n = particles->count;
    un_tet_bins *bins = a->bins;
    a->keys = un_arena_alloc(arena, (size_t)n + 1, sizeof *a->keys);
    a->order = un_arena_alloc(arena, (size_t)n + 1, sizeof *a->order);
    if (!a->keys || !a->order) return UN_ERROR_MEMORY;
    UN_TRY(un_array_need(ctx, (void **)&bins->tet, &bins->capacity_tet, (size_t)n + 1,
                         sizeof *bins->tet));
    UN_TRY(un_array_need(ctx, (void **)&bins->begin, &bins->capacity_begin, (size_t)places + 1,
                         sizeof *bins->begin));
    un_parallel_for(ctx, n, 1024, find, a);
    UN_TRY(un_bins_order(ctx, arena, a->order, bins->begin, a->keys, n, places));
    un_parallel_for(ctx, n, 4096, sort_tets, a);
    un_particles_reorder(ctx, particles, a->order);
    return UN_OK;
}

un_status un_tet_bins_sort(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                           un_particles *particles, const un_tets *mesh)
{
    bins_args a = {.bins = bins, .particles = particles, .mesh = mesh};
    return sort_by(ctx, arena, &a, particles, mesh->tet_count, find_tets);
}

un_status un_tet_bins_sort_known(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                                 un_particles *particles, const un_tets *mesh)
{
    bins_args a = {.bins = bins, .particles = particles, .mesh = mesh};
    return sort_by(ctx, arena, &a, particles, mesh->tet_count, take_tets);
}

/* ---- seats ---- */

typedef struct seat_args {
    const un_tet_bins *bins;
    const un_particles *particles;
    const un_tets *mesh;
    uint8_t *beside;
} seat_args;

static void find_beside(void *arg, int64_t begin, int64_t end)
{
    const seat_args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        un_tets_place place;
        a->bins->seat[q] = un_particle_position(a->particles, q);
        a->beside[q] = !un_tets_locate_in(a->mesh, a->bins->tet[q], a->bins->seat[q], &place);
    }
}

un_status un_tet_bins_find_seats(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                                 const un_particles *p, const un_tets *mesh)
{
    un_part own = un_particle_own(bins->share, p->count);
    size_t room = (size_t)p->count + 1;
    un_status status =
        un_array_need(ctx, (void **)&bins->seat, &bins->capacity_seat, room, sizeof *bins->seat);
    seat_args a = {bins, p, mesh, un_arena_alloc(arena, room, 1)};
    UN_TRY(un_tets_agree(mesh, a.beside ? status : UN_ERROR_MEMORY));
    un_parallel_part(ctx, own, 4096, find_beside, &a);
    size_t count = 0;
    for (int64_t q = own.begin; q < own.end; q++) count += a.beside[q];
    un_vec3 *x = un_arena_alloc(arena, 2 * count + 1, sizeof *x);
    UN_TRY(un_tets_agree(mesh, x ? UN_OK : UN_ERROR_MEMORY));
    size_t k = 0;
    for (int64_t q = own.begin; q < own.end; q++)
        if (a.beside[q]) x[k++] = bins->seat[q];
    UN_TRY(un_tets_seats(mesh, x, (int64_t)count, x + count, NULL));
    k = count;
    for (int64_t q = own.begin; q < own.end; q++)
        if (a.beside[q]) bins->seat[q] = x[k++];
    return UN_OK;
}

un_status un_leaf_bins_sort(un_context *ctx, un_arena *arena, un_tet_bins *bins,
                            un_particles *particles, const un_leaves *leaves,
                            const un_bodies *bodies)
{
    bins_args a = {.bins = bins, .particles = particles, .leaves = leaves, .bodies = bodies};
    return sort_by(ctx, arena, &a, particles, leaves->count, find_leaves);
}
