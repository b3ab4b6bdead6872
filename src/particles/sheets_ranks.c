/* Sheets and threads over ranks.
 *
 * Every rank gets all thin particles in the order of one rank, 64 bytes each, and evens those that
 * are its own: it finds the lay of these and of their neighbours, so all but the sorting of thin
 * particles is shared out. */
#include "particles/particles.h"

/* All that evening asks of a particle. */
typedef struct thin_copy {
    double x[3], v[3];
    float volume, density, wall;
} thin_copy;

/* Own thin particles: their places here, and copies. */
typedef struct thin_own {
    int64_t count;
    int32_t *place;
    thin_copy *copy;
} thin_own;

static un_status list_own(un_arena *arena, thin_own *thin, const un_markers *m, const float *wall)
{
    const un_particles *p = &m->particles;
    un_part own = un_markers_own(m);
    for (int64_t q = own.begin; q < own.end; q++)
        thin->count += (p->flags[q] & UN_PARTICLE_THIN) != 0;
    thin->place = un_arena_alloc(arena, (size_t)thin->count + 1, sizeof *thin->place);
    thin->copy = un_arena_alloc(arena, (size_t)thin->count + 1, sizeof *thin->copy);
    if (!thin->place || !thin->copy) return UN_ERROR_MEMORY;
    for (int64_t q = own.begin, n = 0; q < own.end; q++) {
        if (!(p->flags[q] & UN_PARTICLE_THIN)) continue;
        thin_copy *c = &thin->copy[n];
        *c = (thin_copy){.volume = p->volume[q],
                         .density = p->density ? p->density[q] : 0,
                         .wall = wall ? wall[q] : 0};
        for (int a = 0; a < 3; a++) c->x[a] = p->x[a][q], c->v[a] = p->v[a][q];
        thin->place[n++] = (int32_t)q;
    }
    return UN_OK;
}

/* As particles, with arrays from the arena. */
static un_status unpack(un_arena *arena, un_particles *to, float **wall, const thin_copy *all,
                        int64_t count, const un_particles *like)
{
    size_t n = (size_t)count + 1;
    *to = (un_particles){.count = (int32_t)count, .flat = like->flat};
    to->volume = un_arena_alloc(arena, n, sizeof *to->volume);
    to->flags = un_arena_alloc(arena, n, 1);
    *wall = un_arena_alloc(arena, n, sizeof **wall);
    if (like->density) to->density = un_arena_alloc(arena, n, sizeof *to->density);
    bool able = to->volume && to->flags && *wall && (to->density || !like->density);
    for (int a = 0; a < 3; a++) {
        to->x[a] = un_arena_alloc(arena, n, sizeof(double));
        to->v[a] = un_arena_alloc(arena, n, sizeof(double));
        able = able && to->x[a] && to->v[a];
    }
    if (!able) return UN_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const thin_copy *c = &all[i];
        for (int a = 0; a < 3; a++) to->x[a][i] = c->x[a], to->v[a][i] = c->v[a];
        to->volume[i] = c->volume;
        to->flags[i] = UN_PARTICLE_THIN;
        if (to->density) to->density[i] = c->density;
        (*wall)[i] = c->wall;
    }
    return UN_OK;
}

/* What was found for own particles, from number `first` of all thin ones on. */
static un_status take_back(un_context *ctx, un_markers *m, un_sheets *to, const thin_own *own,
                           const un_particles *all, const un_sheets *found, int64_t first)
{
    size_t n = (size_t)m->particles.count + 1;
    if (found->any) {
        UN_TRY(un_array_need(ctx, (void **)&to->gap, &to->capacity[0], n, sizeof *to->gap));
        for (int a = 0; a < 3; a++)
            UN_TRY(un_array_need(ctx, (void **)&to->axis[a], &to->capacity[1 + a], n,
                                 sizeof **to->axis));
        memset(to->gap, 0, n * sizeof *to->gap);
    }
    for (int64_t k = 0; k < own->count; k++) {
        int32_t q = own->place[k];
        un_particle_set_position(&m->particles, q, un_particle_position(all, first + k));
        un_particle_set_velocity(&m->particles, q, un_particle_velocity(all, first + k));
        if (!found->any || found->gap[first + k] == 0) continue;
        to->gap[q] = found->gap[first + k];
        for (int a = 0; a < 3; a++) to->axis[a][q] = found->axis[a][first + k];
    }
    to->any = found->any;
    return UN_OK;
}

un_status un_markers_even_sheets(un_context *ctx, un_arena *arena, un_markers *m,
                                 const un_sheets_def *def, un_sheets *sheets)
{
    if (!m->share) return un_particles_even_sheets(ctx, arena, &m->particles, def, sheets);
    sheets->any = false;
    if (!(def->strength > 0)) return UN_OK;
    thin_own own = {0};
    un_sheets_def here = *def;
    un_sheets found = {0};
    un_particles all;
    void *copies;
    float *wall;
    int64_t count;
    UN_TRY(un_ranks_agree(ctx, list_own(arena, &own, m, def->wall)));
    int64_t first = un_ranks_range(ctx, own.count).begin;
    UN_TRY(un_ranks_list(ctx, own.copy, own.count, sizeof *own.copy, &copies, &count));
    un_status status = unpack(arena, &all, &wall, copies, count, &m->particles);
    un_free(ctx, copies);
    here.wall = def->wall ? wall : NULL;
    uint8_t *mine = un_arena_alloc(arena, (size_t)count + 1, 1);
    here.own = mine;
    if (!mine) status = UN_ERROR_MEMORY;
    if (status == UN_OK) {
        memset(mine, 0, (size_t)count);
        memset(mine + first, 1, (size_t)own.count);
    }
    if (status == UN_OK && own.count > 0)
        status = un_particles_even_sheets(ctx, arena, &all, &here, &found);
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK) {
        found.any = un_ranks_max(ctx, found.any) > 0;
        status = un_ranks_agree(ctx, take_back(ctx, m, sheets, &own, &all, &found, first));
    }
    un_sheets_free(ctx, &found);
    return status;
}
