/* Particles on one mesh twice (pair_tets.h): all of them, and those that a rank needs. */
#ifndef UN_TEST_PAIR_PARTICLES_H
#define UN_TEST_PAIR_PARTICLES_H

#include "particles/particles.h"

#include "pair_tets.h"

/* Particles sorted by tet; the rank has those in tets around its own nodes. */
typedef struct pair_particles {
    un_particles all, mine;
    un_tet_bins bins, own;
    int32_t *id; /* by particle here: its number on one rank */
} pair_particles;

static inline un_vec3 pair_velocity(un_vec3 x)
{
    double calm = 0.5 + 0.5 * sin(9 * x.x); /* still in places */
    return un_scale(un_v3(sin(50 * x.x + 3 * x.y), cos(40 * x.y + x.z), sin(30 * x.z) - 2), calm);
}

static inline void pair_copy_particle(un_particles *to, int32_t n, const un_particles *p, int32_t q)
{
    for (int a = 0; a < 3; a++) to->x[a][n] = p->x[a][q], to->v[a][n] = p->v[a][q];
    to->volume[n] = p->volume[q];
    to->flags[n] = p->flags[q];
    to->fall[n] = p->fall[q];
    to->size[n] = p->size[q];
}

/* As large as their cells want, below the height `top`. */
static inline void pair_fill(pair *p, pair_particles *m, int32_t count, double top)
{
    un_context *ctx = p->s.ctx;
    un_vec3 size = p->tree.size;
    const un_tets *mesh = &p->s.mesh;
    *m = (pair_particles){.id = malloc((size_t)count * sizeof *m->id)};
    int32_t *node = malloc(((size_t)mesh->node_count + 1) * sizeof *node);
    int32_t *tet = malloc(((size_t)mesh->tet_count + 1) * sizeof *tet);
    int32_t *here = malloc(((size_t)p->mesh.tet_count + 1) * sizeof *here);
    m->all.sized = m->mine.sized = true;
    check_ok(p->alone, un_particles_reserve(p->alone, &m->all, count));
    check_ok(ctx, un_particles_reserve(ctx, &m->mine, count));
    m->all.count = count;
    m->all.lead = m->mine.lead = un_v3(0, -0.01, 0);
    for (int32_t q = 0; q < count; q++) {
        uint64_t k = (uint64_t)q;
        un_vec3 x = {size.x * un_random(k, 1), top * un_random(k, 2), size.z * un_random(k, 3)};
        un_vec3 v = pair_velocity(x);
        un_tets_place place;
        un_tets_locate(&p->mesh, x, &place);
        double half = 0.5 * un_tets_size(&p->mesh, place.tet);
        m->all.x[0][q] = x.x, m->all.x[1][q] = x.y, m->all.x[2][q] = x.z;
        m->all.v[0][q] = v.x, m->all.v[1][q] = v.y, m->all.v[2][q] = v.z;
        m->all.volume[q] = (float)(half * half * half);
        m->all.flags[q] = 0;
        m->all.fall[q] = (uint8_t)(q % 129);
        m->all.size[q] = FLT_MAX;
    }
    check_ok(p->alone, un_tet_bins_sort(p->alone, &p->arena, &m->bins, &m->all, &p->mesh));
    pair_number(p, node, tet);
    for (int32_t t = 0; t < p->mesh.tet_count; t++) here[t] = -1;
    for (int32_t t = 0; t < mesh->tet_count; t++)
        if (tet[t] >= 0) here[tet[t]] = t;
    m->own.tet = un_alloc(ctx, (size_t)count + 1, sizeof *m->own.tet);
    m->own.begin = un_alloc(ctx, (size_t)mesh->tet_count + 1, sizeof *m->own.begin);
    memset(m->own.begin, 0, ((size_t)mesh->tet_count + 1) * sizeof *m->own.begin);
    for (int32_t q = 0; q < count; q++) {
        int32_t t = here[m->bins.tet[q]], n = m->mine.count;
        if (t < 0) continue;
        pair_copy_particle(&m->mine, n, &m->all, q);
        m->own.tet[n] = t;
        m->own.begin[t + 1]++;
        m->id[n] = q;
        m->mine.count++;
    }
    for (int32_t t = 0; t < mesh->tet_count; t++) m->own.begin[t + 1] += m->own.begin[t];
    free(node), free(tet), free(here);
    un_arena_reset(&p->arena);
}

static inline void pair_empty(pair *p, pair_particles *m)
{
    un_particles_free(p->alone, &m->all);
    un_particles_free(p->s.ctx, &m->mine);
    un_tet_bins_free(p->alone, &m->bins);
    un_tet_bins_free(p->s.ctx, &m->own);
    free(m->id);
}

#endif
