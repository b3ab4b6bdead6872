/* Particles of many sizes on tets or leaves, and the per-particle data that lasts until they are
 * sorted again. */
#include "particles/particles.h"

#include "base/lanes.h"

void un_markers_init(un_context *ctx, un_markers *m)
{
    *m = (un_markers){0};
    un_arena_init(&m->lists, ctx);
}

void un_markers_release(un_context *ctx, un_markers *m)
{
    void **arrays[] = {(void **)&m->radius,      (void **)&m->depth,     (void **)&m->normal[0],
                       (void **)&m->normal[1],   (void **)&m->normal[2], (void **)&m->wall,
                       (void **)&m->flags_before};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        un_free(ctx, *arrays[i]);
        *arrays[i] = NULL;
    }
    memset(m->capacity, 0, sizeof m->capacity);
    un_tet_bins_free(ctx, &m->bins);
    un_arena_free(&m->lists);
}

void un_markers_rest(un_markers *m)
{
    float *arrays[6] = {m->radius, m->depth, m->normal[0], m->normal[1], m->normal[2], m->wall};
    un_particles_rest(&m->particles);
    for (int i = 0; i < 6; i++)
        un_give_back(arrays[i], (size_t)m->particles.count * sizeof *arrays[i],
                     m->capacity[i] * sizeof *arrays[i]);
}

void un_markers_free(un_context *ctx, un_markers *m)
{
    un_markers_release(ctx, m);
    un_particles_free(ctx, &m->particles);
}

void un_particles_radii(float *radius, const float *volume, int64_t count, bool flat)
{
    for (int64_t q = 0; q < count; q += 8) {
        size_t bytes = (size_t)un_min64(count - q, 8) * sizeof *radius;
        un_lanes8 v = {0};
        memcpy(&v, volume + q, bytes);
        v = 0.5f * (flat ? un_lanes8_sqrt(v) : un_lanes8_cbrt(v));
        memcpy(radius + q, &v, bytes);
    }
}

static void find_radius(void *arg, int64_t begin, int64_t end)
{
    un_markers *m = arg;
    un_particles_radii(m->radius + begin, m->particles.volume + begin, end - begin,
                       m->particles.flat);
}

un_status un_markers_regroup(un_context *ctx, un_markers *m)
{
    const double *x[3] = {m->particles.x[0], m->particles.x[1], m->particles.x[2]};
    un_arena_reset(&m->lists);
    return un_groups_build(ctx, &m->lists, &m->groups, x, m->radius, m->particles.count);
}

static un_status find_radii(un_context *ctx, un_markers *m)
{
    float **arrays[6] = {&m->radius,    &m->depth,     &m->normal[0],
                         &m->normal[1], &m->normal[2], &m->wall};
    for (int i = 0; i < 6; i++)
        UN_TRY(un_array_need(ctx, (void **)arrays[i], &m->capacity[i],
                             (size_t)m->particles.count + 1, sizeof **arrays));
    un_parallel_for(ctx, m->particles.count, 4096, find_radius, m);
    return UN_OK;
}

un_status un_markers_group(un_context *ctx, un_markers *m)
{
    UN_TRY(find_radii(ctx, m));
    return un_markers_regroup(ctx, m);
}

un_status un_markers_sort(un_context *ctx, un_arena *arena, un_markers *m, const un_tets *mesh)
{
    UN_TRY(un_tet_bins_sort(ctx, arena, &m->bins, &m->particles, mesh));
    if (mesh->parted) UN_TRY(un_tet_bins_find_seats(ctx, arena, &m->bins, &m->particles, mesh));
    un_arena_reset(arena);
    return un_markers_group(ctx, m);
}

un_status un_markers_sort_leaves(un_context *ctx, un_arena *arena, un_markers *m,
                                 const un_leaves *leaves, const un_bodies *bodies)
{
    UN_TRY(un_leaf_bins_sort(ctx, arena, &m->bins, &m->particles, leaves, bodies));
    un_arena_reset(arena);
    return find_radii(ctx, m); /* groups are not needed in every step */
}

un_status un_markers_keep_flags(un_context *ctx, un_markers *m)
{
    size_t count = (size_t)m->particles.count;
    UN_TRY(un_array_need(ctx, (void **)&m->flags_before, &m->capacity[6], count + 1, 1));
    memcpy(m->flags_before, m->particles.flags, count);
    return UN_OK;
}

/* ---- sums ---- */

typedef struct shift_args {
    un_parallel_values *values;
    void *arg;
    int64_t shift; /* from numbers on one rank to indices here */
} shift_args;

static void sum_shifted(void *arg, int64_t begin, int64_t end, double *sums)
{
    const shift_args *a = arg;
    a->values(a->arg, begin + a->shift, end + a->shift, sums);
}

un_status un_markers_sums(un_context *ctx, const un_markers *m, int32_t width,
                          un_parallel_values *values, void *arg, double *sums)
{
    const un_particle_share *s = m->share;
    if (!s) {
        un_parallel_sums(ctx, m->particles.count, width, values, arg, sums);
        return UN_OK;
    }
    if (s->own.total > 0) {
        shift_args a = {values, arg, s->begin - s->own.begin};
        un_ranks_sums(ctx, s->own, width, sum_shifted, &a, sums);
        return UN_OK;
    }
    un_numbers numbers = {s->id, m->particles.count, s->id_total};
    return un_ranks_listed_sums(ctx, &numbers, width, values, arg, sums);
}

static void add_volumes(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_particles *p = arg;
    double sum = *sums;
    for (int64_t i = begin; i < end; i++) sum += p->volume[i];
    *sums = sum;
}

un_status un_markers_volume(un_context *ctx, const un_markers *m, double *volume)
{
    return un_markers_sums(ctx, m, 1, add_volumes, (void *)&m->particles, volume);
}
