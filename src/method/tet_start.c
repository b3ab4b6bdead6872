/* The first state of method `tet`. */
#include "method/tet.h"

/* The liquid is first sampled evenly, as finely as this many particles or the memory allow, then
 * refined and coarsened to S a level at a time. */
#define START_PARTICLES 1e6
/* The peak of that, per particle. */
#define START_BYTES 560.0
/* Drops and sheets thinner than those samples would start far too large: leaves are halved where
 * the shape's distance at the corners is off that in the middle by this share of their size. */
#define SHAPE_BENT 0.15
#define SHAPE_PARTICLES 2e6 /* as many as the leaves may hold then */
#define ROUNDS_MAX 24

typedef struct wish_args {
    const un_tet *s;
    uint8_t *level, *reach;
} wish_args;

/* Counts particles whose leaf is not of the level they want. */
static double wish(void *arg, int64_t begin, int64_t end)
{
    wish_args *a = arg;
    const un_tet *s = a->s;
    double changes = 0;
    for (int64_t q = begin; q < end; q++) {
        int32_t now = s->mesh.level[s->bins.tet[q]];
        int32_t want = un_octree_level(&s->tree, s->particles.size[q] * 1.41421356237);
        a->level[q] = (uint8_t)un_clampi(want, now - 1, now + 1);
        a->reach[q] = (s->particles.flags[q] & UN_PARTICLE_SURFACE) != 0;
        changes += want > now;
    }
    return changes;
}

static un_status seed(un_tet *s)
{
    un_seed_leaves_def def = {.tree = &s->tree,
                              .shape = s->def->liquid.shape,
                              .walls = s->walls,
                              .velocity = s->def->liquid.velocity};
    s->particles.count = 0;
    UN_TRY(un_particles_seed_leaves(s->ctx, &s->particles, &def, &s->sources.volume_start));
    UN_TRY(un_sources_give_matter(&s->sources, &s->particles, 0, &s->def->fluid.matter));
    memset(s->particles.flags, UN_PARTICLE_CALM, (size_t)s->particles.count);
    UN_TRY(un_tets_build(&s->mesh, &s->arena, &s->tree));
    un_arena_reset(&s->arena);
    UN_TRY(un_tet_need_fields(s));
    for (int k = 0; k < un_tet_pressures(s); k++)
        memset(s->p[k], 0, (size_t)s->mesh.node_count * sizeof **s->p);
    UN_TRY(un_tet_walls_sample(&s->tet_walls, &s->mesh));
    UN_TRY(un_tet_sort(s));
    UN_TRY(un_tet_level_set(s));
    for (int32_t q = 0; q < s->particles.count; q++) s->particles.size[q] = FLT_MAX;
    return un_tet_sizes(s, 0);
}

static double particle_limit(const un_tet *s, double most)
{
    double room = s->def->budget.memory - UN_TET_FIXED_BYTES;
    return s->def->budget.memory > 0 ? fmin(most, room / START_BYTES) : most;
}

/* Even leaves over the liquid's box. */
static un_status even_tree(un_tet *s)
{
    un_box3 box = un_shape_bounds(s->def->liquid.shape);
    un_vec3 lo = un_max3(box.min, un_v3(0, 0, 0)), hi = un_min3(box.max, s->def->domain.size);
    un_vec3 side = un_max3(un_sub(hi, lo), un_v3(0, 0, 0));
    int32_t level = s->tree.level_max;
    double h = un_octree_size(&s->tree, level), volume = side.x * side.y * side.z;
    double most = particle_limit(s, START_PARTICLES);
    while (level > 0 && 8 * volume / (h * h * h) > most) h = un_octree_size(&s->tree, --level);
    int64_t n[3] = {(int64_t)(side.x / h) + 2, (int64_t)(side.y / h) + 2,
                    (int64_t)(side.z / h) + 2};
    int64_t count = n[0] * n[1] * n[2];
    double *x[3];
    uint8_t *levels = un_arena_alloc(&s->arena, (size_t)count, 1);
    for (int a = 0; a < 3; a++) x[a] = un_arena_alloc(&s->arena, (size_t)count, sizeof(double));
    if (!levels || !x[0] || !x[1] || !x[2]) return UN_ERROR_MEMORY;
    memset(levels, level, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        x[0][i] = fmin(lo.x + h * (double)(i % n[0]), hi.x);
        x[1][i] = fmin(lo.y + h * (double)(i / n[0] % n[1]), hi.y);
        x[2][i] = fmin(lo.z + h * (double)(i / (n[0] * n[1])), hi.z);
    }
    un_octree_request all = {.count = count, .x = {x[0], x[1], x[2]}, .level = levels};
    UN_TRY(un_octree_build(&s->tree, &s->arena, &all));
    un_arena_reset(&s->arena);
    return UN_OK;
}

typedef struct bend_args {
    const un_tet *s;
    double *x[3]; /* middles of the leaves */
    uint8_t *level;
} bend_args;

/* Counts leaves that are to be halved. */
static double bends(void *arg, int64_t begin, int64_t end)
{
    bend_args *a = arg;
    const un_octree *tree = &a->s->tree;
    const un_shape *shape = a->s->def->liquid.shape;
    double count = 0;
    for (int64_t leaf = begin; leaf < end; leaf++) {
        double h = un_octree_size(tree, tree->level[leaf]), around = 0;
        un_vec3 corner = un_octree_corner(tree, (int32_t)leaf);
        un_vec3 middle = un_add(corner, un_v3(0.5 * h, 0.5 * h, 0.5 * h));
        a->x[0][leaf] = middle.x;
        a->x[1][leaf] = middle.y;
        a->x[2][leaf] = middle.z;
        a->level[leaf] = tree->level[leaf];
        if (tree->level[leaf] == tree->level_max) continue;
        double d = un_shape_distance(shape, middle);
        if (fabs(d) > 0.87 * h) continue; /* no surface here */
        for (int c = 0; c < 8; c++)
            around += 0.125 *
                      un_shape_distance(shape, un_mad(corner, un_v3(c & 1, c >> 1 & 1, c >> 2), h));
        if (fabs(around - d) < SHAPE_BENT * h) continue;
        a->level[leaf]++;
        count++;
    }
    return count;
}

static un_status follow_shape(un_tet *s)
{
    for (;;) {
        int64_t leaves = s->tree.leaf_count;
        bend_args a = {.s = s, .level = un_arena_alloc(&s->arena, (size_t)leaves, 1)};
        for (int i = 0; i < 3; i++)
            a.x[i] = un_arena_alloc(&s->arena, (size_t)leaves, sizeof(double));
        if (!a.level || !a.x[0] || !a.x[1] || !a.x[2]) return UN_ERROR_MEMORY;
        double count = un_parallel_sum(s->ctx, leaves, bends, &a);
        bool done =
            count == 0 || 8 * ((double)leaves + 7 * count) > particle_limit(s, SHAPE_PARTICLES);
        un_octree_request all = {.count = leaves, .x = {a.x[0], a.x[1], a.x[2]}, .level = a.level};
        un_status status = done ? UN_OK : un_octree_build(&s->tree, &s->arena, &all);
        un_arena_reset(&s->arena);
        if (done || status) return status;
    }
}

un_status un_tet_first_mesh(un_tet *s)
{
    UN_TRY(even_tree(s));
    UN_TRY(follow_shape(s));
    for (int round = 0;; round++) {
        UN_TRY(seed(s));
        size_t count = (size_t)s->particles.count;
        wish_args a = {s, un_arena_alloc(&s->arena, count + 1, 1),
                       un_arena_alloc(&s->arena, count + 1, 1)};
        if (!a.level || !a.reach) return UN_ERROR_MEMORY;
        double changes = un_parallel_sum(s->ctx, s->particles.count, wish, &a);
        /* Coarsening alone takes as many rounds as there are levels. */
        bool done = (changes == 0 && round >= s->tree.level_max) || round >= ROUNDS_MAX;
        un_octree_request wanted = {.count = s->particles.count,
                                    .x = {s->particles.x[0], s->particles.x[1], s->particles.x[2]},
                                    .level = a.level,
                                    .reach = a.reach};
        un_status status = done ? UN_OK : un_octree_build(&s->tree, &s->arena, &wanted);
        un_arena_reset(&s->arena);
        UN_TRY(status);
        if (done) return UN_OK;
    }
}

/* ---- the surface of the shape ---- */

/* What the particles' level set makes of a surface differs from it by a few hundredths of a cell,
 * otherwise for each size of cell: steps of millimetres between them would slosh for seconds. A few
 * rounds of moving the particles under it take that away, where the surface is flat enough to be
 * told from its edges. */
#define FIT_ROUNDS 4
#define FIT_DEPTH 3.0   /* cells: the move fades out */
#define FIT_ERROR 0.25  /* cells: beyond it something else is wrong */
#define FIT_ALIGNED 0.9 /* cosine between both normals */
#define FIT_STEEP 0.1   /* |grad| of the shape's distance off 1 */
/* Between tets that share a node. In a ball of few cells the level set lies deeper than its surface
 * whatever its particles do, and moving them would only blow it up. */
#define FIT_BENT 0.35

typedef struct fit_args {
    un_tet *s;
    float *shape; /* at nodes: its distance, m */
    float *bent;  /* at nodes: how much that distance's gradient varies around them */
} fit_args;

static void measure_shape(void *arg, int64_t begin, int64_t end)
{
    fit_args *a = arg;
    const un_tet *s = a->s;
    for (int64_t n = begin; n < end; n++) {
        double reach = (FIT_DEPTH + 2) * un_octree_size(&s->tree, s->mesh.node_level[n]);
        a->shape[n] = fabsf(s->phi[n]) < (float)reach
                          ? (float)un_shape_distance(s->def->liquid.shape, s->mesh.x[n])
                          : INFINITY;
    }
}

static void measure_bend(void *arg, int64_t begin, int64_t end)
{
    fit_args *a = arg;
    const un_tets *mesh = &a->s->mesh;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 lo = un_v3(INFINITY, INFINITY, INFINITY), hi = un_scale(lo, -1);
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double d[4];
            for (int i = 0; i < 4; i++) d[i] = a->shape[mesh->tet[t][i]];
            un_vec3 g = un_tets_gradient(mesh, t, d);
            if (!un_finite3(g)) continue;
            lo = un_min3(lo, g);
            hi = un_max3(hi, g);
        }
        a->bent[n] = (float)un_length(un_sub(hi, lo));
    }
}

/* How far the level set is below the shape's surface, near x; m: its direction. */
static double surface_error(const un_tet *s, un_vec3 x, un_vec3 m)
{
    un_vec3 top = s->def->domain.size;
    for (int i = 0; i < 2; i++) {
        un_tets_place place;
        if (!(x.x > 0 && x.y > 0 && x.z > 0 && x.x < top.x && x.y < top.y && x.z < top.z))
            return INFINITY;
        un_tets_locate(&s->mesh, x, &place);
        x = un_mad(x, m, -un_tet_sample(&s->mesh, s->phi, &place));
    }
    return -un_shape_distance(s->def->liquid.shape, x);
}

static void fit_particles(void *arg, int64_t begin, int64_t end)
{
    fit_args *a = arg;
    un_tet *s = a->s;
    un_particles *p = &s->particles;
    for (int64_t q = begin; q < end; q++) {
        int32_t t = s->bins.tet[q];
        const int32_t *n = s->mesh.tet[t];
        un_vec3 x = un_particle_position(p, q);
        double h = un_tets_size(&s->mesh, t), depth = s->depth[q], now[4], wanted[4];
        if (!(depth > -FIT_DEPTH * h)) continue;
        bool known = true;
        for (int i = 0; i < 4; i++) {
            now[i] = s->phi[n[i]];
            wanted[i] = a->shape[n[i]];
            known &= wanted[i] < INFINITY && a->bent[n[i]] < FIT_BENT;
        }
        if (!known) continue;
        un_vec3 m = un_normalize(un_tets_gradient(&s->mesh, t, now));
        un_vec3 g = un_tets_gradient(&s->mesh, t, wanted);
        double steep = un_length(g);
        if (!(fabs(steep - 1) < FIT_STEEP && un_dot(m, g) > FIT_ALIGNED * steep)) continue;
        double error = surface_error(s, un_mad(x, m, -depth), m);
        if (!(fabs(error) < FIT_ERROR * h)) continue;
        un_vec3 to = un_mad(x, g, error * fmin(1, 1 + depth / (FIT_DEPTH * h)) / steep);
        if (!un_open_move(s->walls, x, to, 0.1 * (double)s->radius[q])) continue;
        un_particle_set_position(p, q, to);
    }
}

un_status un_tet_fit_surface(un_tet *s)
{
    size_t count = (size_t)s->mesh.node_count + 1;
    fit_args a = {.s = s};
    UN_ALLOC(s->ctx, a.shape, 2 * count);
    a.bent = a.shape + count;
    un_parallel_for(s->ctx, s->mesh.node_count, 4096, measure_shape, &a);
    un_parallel_for(s->ctx, s->mesh.node_count, 4096, measure_bend, &a);
    un_status status = UN_OK;
    for (int round = 0; round < FIT_ROUNDS && status == UN_OK; round++) {
        un_parallel_for(s->ctx, s->particles.count, 4096, fit_particles, &a);
        status = un_tet_sort(s);
        if (status == UN_OK) status = un_tet_level_set(s);
    }
    un_free(s->ctx, a.shape);
    return status;
}
