/* The mesh around the particles: octree and tets, walls, sorting, level set, sizes. */
#include "method/tet.h"

/* A leaf's edge over that of a particle, between sizes the nearer one: cells of the size that S
 * asks for hold eight particles, and most of them have such cells. Calm ones, slower than sqrt(g
 * h), share larger leaves: with few particles to a leaf the level set is uneven, and what is uneven
 * moves. rest_mixed reaches 1.2 cm/s in half a second at 2.5 and 0.98 at 3.2. A dam break of 128
 * cells takes 126 s to t = 0.6 s at 2.5, 53 at 2.8 and 34 at 3.2: sheets and spray fill
 * their leaves badly, most hold one or two. */
#define LEAF_WIDTH 2.8
#define LEAF_WIDTH_CALM 3.2
/* Calm particles this close to the surface, in leaves, keep one layer of
 * leaves of their size around them: where the liquid is calm the surface then runs through cells of
 * one size. In a splash that would double the number of nodes, most of them in the air. */
#define SURFACE_DEPTH 1.5
/* Drops in a leaf this many times wider than their own stay drops (tet_drops.c). */
#define LANDED_WIDTH 2.0
/* Time in which a particle's wanted size may double, s. It shrinks at once: detail appears where it
 * is needed and fades where it was, and what lies at a threshold does not flicker. */
#define COARSEN_TIME 0.15

/* l of [Ando13 section 5]: particles within l (r_i + r_j) are joined. */
#define HULL_REACH 2.0

/* ---- fields ---- */

un_status un_tet_need_fields(un_tet *s)
{
    size_t nodes = (size_t)s->mesh.node_count + 1, tets = (size_t)s->mesh.tet_count + 1;
    struct {
        void *array;
        size_t size;
    } node[] = {{&s->volume, sizeof *s->volume},
                {&s->colour, sizeof *s->colour},
                {&s->phi, sizeof *s->phi},
                {&s->size, sizeof *s->size},
                {&s->source, sizeof *s->source},
                {&s->p[0], sizeof **s->p},
                {&s->u_node, sizeof *s->u_node},
                {&s->d_node, sizeof *s->d_node},
                {&s->known_node, 1},
                {&s->sharp, sizeof *s->sharp},
                {&s->quiet, sizeof *s->quiet}},
      tet[] = {{&s->u_tet, sizeof *s->u_tet}, {&s->d_tet, sizeof *s->d_tet}, {&s->known_tet, 1}};
    if (s->viscous)
        UN_TRY(
            un_array_need(s->ctx, (void **)&s->p[1], &s->viscous_capacity, nodes, sizeof **s->p));
    for (size_t i = 0; i < sizeof node / sizeof *node; i++)
        UN_TRY(un_array_need(s->ctx, node[i].array, &s->node_capacity[i], nodes, node[i].size));
    for (size_t i = 0; i < sizeof tet / sizeof *tet; i++)
        UN_TRY(un_array_need(s->ctx, tet[i].array, &s->tet_capacity[i], tets, tet[i].size));
    return UN_OK;
}

/* ---- 7: octree and tets ---- */

typedef struct request_args {
    const un_tet *s;
    uint8_t *level, *reach;
} request_args;

int32_t un_tet_leaf_level(const un_tet *s, int64_t q)
{
    bool calm = s->particles.flags[q] & UN_PARTICLE_CALM;
    double width = (calm ? LEAF_WIDTH_CALM : LEAF_WIDTH) * cbrt(s->particles.volume[q]);
    return un_octree_level(&s->tree, width);
}

static void request(void *arg, int64_t begin, int64_t end)
{
    request_args *a = arg;
    const un_particles *p = &a->s->particles;
    for (int64_t q = begin; q < end; q++) {
        bool flies = p->flags[q] & UN_PARTICLE_APART;
        a->level[q] = flies ? 0 : (uint8_t)un_tet_leaf_level(a->s, q);
        const uint8_t both = UN_PARTICLE_CALM | UN_PARTICLE_SURFACE;
        a->reach[q] = !flies && (p->flags[q] & both) == both;
    }
}

un_status un_tet_keep_pressure(un_tet *s)
{
    size_t count = (size_t)s->mesh.node_count;
    if (count == 0) return UN_OK; /* a new mesh; or its owner has kept it before */
    s->old_count = 0;
    UN_TRY(un_array_need(s->ctx, (void **)&s->old_key, &s->old_capacity[0], count + 1,
                         sizeof *s->old_key));
    memcpy(s->old_key, s->mesh.node_key, count * sizeof *s->old_key);
    for (int k = 0; k < un_tet_pressures(s); k++) {
        UN_TRY(un_array_need(s->ctx, (void **)&s->old_p[k], &s->old_capacity[1 + k], count + 1,
                             sizeof **s->old_p));
        memcpy(s->old_p[k], s->p[k], count * sizeof **s->old_p);
    }
    s->old_count = (int32_t)count;
    return UN_OK;
}

/* The pressure at nodes that stay is the guess for the next solve, and what outputs show. */
static void recall_pressure(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    const uint64_t *key = s->mesh.node_key;
    int32_t lo = 0, hi = s->old_count;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (s->old_key[mid] < key[begin])
            lo = mid + 1;
        else
            hi = mid;
    }
    for (int64_t n = begin; n < end; n++) {
        while (lo < s->old_count && s->old_key[lo] < key[n]) lo++;
        s->known_node[n] = lo < s->old_count && s->old_key[lo] == key[n];
        for (int k = 0; k < un_tet_pressures(s); k++)
            s->p[k][n] = s->known_node[n] ? s->old_p[k][lo] : 0;
    }
}

/* New nodes take the mean of those around them. */
static void guess_pressure(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    const un_tets *mesh = &s->mesh;
    for (int64_t n = begin; n < end; n++) {
        if (s->known_node[n]) continue;
        double sum[2] = {0, 0};
        int32_t count = 0;
        for (int32_t e = mesh->first[n]; e < mesh->first[n + 1]; e++) {
            const int32_t *m = mesh->tet[mesh->corner[e] / 4];
            for (int i = 0; i < 4; i++) {
                if (!s->known_node[m[i]]) continue;
                for (int k = 0; k < un_tet_pressures(s); k++) sum[k] += s->p[k][m[i]];
                count++;
            }
        }
        for (int k = 0; k < un_tet_pressures(s); k++)
            if (count > 0) s->p[k][n] = sum[k] / count;
    }
}

un_status un_tet_build_tree(un_tet *s)
{
    size_t count = (size_t)s->particles.count;
    request_args a = {s, un_arena_alloc(&s->arena, count + 1, 1),
                      un_arena_alloc(&s->arena, count + 1, 1)};
    if (!a.level || !a.reach) return UN_ERROR_MEMORY;
    un_parallel_for(s->ctx, s->particles.count, 8192, request, &a);
    un_octree_request wanted = {.count = s->particles.count, .level = a.level, .reach = a.reach};
    for (int axis = 0; axis < 3; axis++) wanted.x[axis] = s->particles.x[axis];
    UN_TRY(un_octree_build(&s->tree, &s->arena, &wanted));
    un_arena_reset(&s->arena);
    return UN_OK;
}

un_status un_tet_build_mesh(un_tet *s)
{
    UN_TRY(un_tet_keep_pressure(s));
    UN_TRY(un_tets_build(&s->mesh, &s->arena, &s->tree));
    un_arena_reset(&s->arena);
    UN_TRY(un_tet_need_fields(s));
    un_parallel_for(s->ctx, s->mesh.node_count, 8192, recall_pressure, s);
    un_parallel_for(s->ctx, s->mesh.node_count, 4096, guess_pressure, s);
    return un_tet_walls_sample(&s->tet_walls, &s->mesh);
}

/* ---- sorting ---- */

static void find_radius(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    for (int64_t q = begin; q < end; q++)
        s->radius[q] = (float)un_particle_radius(s->particles.volume[q]);
}

un_status un_tet_group(un_tet *s)
{
    float **arrays[6] = {&s->radius,    &s->depth,     &s->normal[0],
                         &s->normal[1], &s->normal[2], &s->wall};
    for (int i = 0; i < 6; i++)
        UN_TRY(un_array_need(s->ctx, (void **)arrays[i], &s->particle_capacity[i],
                             (size_t)s->particles.count + 1, sizeof **arrays));
    un_parallel_for(s->ctx, s->particles.count, 16384, find_radius, s);
    un_arena_reset(&s->lists);
    const double *x[3] = {s->particles.x[0], s->particles.x[1], s->particles.x[2]};
    return un_groups_build(s->ctx, &s->lists, &s->groups, x, s->radius, s->particles.count);
}

un_status un_tet_sort(un_tet *s)
{
    UN_TRY(un_tet_bins_sort(s->ctx, &s->arena, &s->bins, &s->particles, &s->mesh));
    un_arena_reset(&s->arena);
    return un_tet_group(s);
}

/* ---- 2, 3: level set ---- */

/* Nodes on or beyond an open side are air: liquid leaves through it. */
static void open_sides(void *arg, int64_t begin, int64_t end)
{
    un_tet *s = arg;
    const bool *open = s->def->domain.open;
    un_vec3 top = s->def->domain.size;
    double snap = 1e-6 * s->tree.h;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = s->mesh.x[n];
        bool out = (open[UN_SIDE_LEFT] && x.x < snap) || (open[UN_SIDE_BOTTOM] && x.y < snap) ||
                   (open[UN_SIDE_BACK] && x.z < snap) ||
                   (open[UN_SIDE_RIGHT] && x.x > top.x - snap) ||
                   (open[UN_SIDE_TOP] && x.y > top.y - snap) ||
                   (open[UN_SIDE_FRONT] && x.z > top.z - snap);
        double least = 1e-2 * un_octree_size(&s->tree, s->mesh.node_level[n]);
        if (out && s->phi[n] < least) s->phi[n] = (float)least;
    }
}

static void mark_particles(void *arg, int64_t begin, int64_t end, double *sums)
{
    un_tet *s = arg;
    un_particles *p = &s->particles;
    const un_tets *mesh = &s->mesh;
    double gravity = un_length(s->def->gravity);
    for (int64_t q = begin; q < end; q++) {
        int32_t t = s->bins.tet[q];
        const int32_t *n = mesh->tet[t];
        un_tets_place place;
        un_vec3 x = un_particle_position(p, q);
        if (!un_tets_locate_in(mesh, t, x, &place)) un_tets_locate(mesh, x, &place);
        double v[4], wall = INFINITY;
        bool wet = false;
        for (int i = 0; i < 4; i++) {
            v[i] = s->phi[n[i]];
            wet |= v[i] < 0;
            wall = fmin(wall, s->tet_walls.phi[n[i]] - un_length(un_sub(x, mesh->x[n[i]])));
        }
        double depth = un_tet_sample(mesh, s->phi, &place), h = un_tets_size(mesh, t);
        bool clings = un_tet_clings(s, q, depth);
        wet = wet || clings;
        un_vec3 g = un_normalize(un_tets_gradient(mesh, t, v));
        s->depth[q] = (float)depth;
        s->normal[0][q] = (float)g.x;
        s->normal[1][q] = (float)g.y;
        s->normal[2][q] = (float)g.z;
        s->wall[q] = (float)wall;
        un_vec3 u = un_particle_velocity(p, q);
        int calm = un_dot(u, u) < gravity * h ? UN_PARTICLE_CALM : 0;
        int near = depth > -SURFACE_DEPTH * h ? UN_PARTICLE_SURFACE : 0;
        bool small = h > LANDED_WIDTH * LEAF_WIDTH * cbrt(p->volume[q]);
        /* where it has no cells of its own it flies until it meets the surface itself */
        if (small && !clings && depth > (double)s->radius[q]) wet = false;
        bool landed = small && p->flags[q] & UN_PARTICLE_APART;
        int halved = p->flags[q] & UN_PARTICLE_HALVED_MASK;
        int of_liquid = near | calm | halved | (landed ? UN_PARTICLE_LANDED : 0);
        p->flags[q] = (uint8_t)(wet ? of_liquid : UN_PARTICLE_BALLISTIC);
        if (!wet)
            sums[0] += 1;
        else if (depth < 0)
            sums[1] += p->volume[q];
    }
}

typedef struct hull_args {
    un_tet *s;
    const float *hull;
} hull_args;

/* In walls there are no particles; phi goes on there as the volume fraction carries it. */
static void take_hulls(void *arg, int64_t begin, int64_t end)
{
    hull_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->s->tet_walls.phi[n] >= 0) a->s->phi[n] = a->hull[n];
}

/* The paper's own level set, the union of hulls of triplets [Ando13 section 5]: to compare. */
static un_status hull_level_set(un_tet *s)
{
    un_hulls_def def = {.groups = &s->groups,
                        .radius = s->radius,
                        .flags = s->particles.flags,
                        .reach = HULL_REACH};
    un_hulls *hulls = NULL;
    un_hulls_report report;
    float *hull = un_arena_alloc(&s->arena, (size_t)s->mesh.node_count + 1, sizeof *hull);
    if (!hull) return UN_ERROR_MEMORY;
    un_status status = un_hulls_create(s->ctx, &s->arena, &def, &hulls, &report);
    if (status == UN_OK)
        status = un_hulls_level_set(s->ctx, &s->arena, hull, &s->mesh, hulls, &s->groups, s->radius,
                                    NULL);
    un_hulls_destroy(hulls);
    hull_args a = {s, hull};
    if (status == UN_OK) un_parallel_for(s->ctx, s->mesh.node_count, 16384, take_hulls, &a);
    un_arena_reset(&s->arena);
    return status;
}

un_status un_tet_level_set(un_tet *s)
{
    bool open = false;
    for (int side = 0; side < 6; side++) open |= s->def->domain.open[side];
    UN_TRY(un_transfer_to_nodes(s->ctx, &s->arena, s->volume, s->u_node, s->known_node, &s->mesh,
                                &s->bins, &s->particles));
    un_arena_reset(&s->arena);
    UN_TRY(
        un_colour_tets(s->ctx, &s->arena, s->phi, s->colour, s->volume, &s->mesh, &s->tet_walls));
    un_arena_reset(&s->arena);
    if (strcmp(s->def->solver.surface, "hulls") == 0) UN_TRY(hull_level_set(s));
    if (open) un_parallel_for(s->ctx, s->mesh.node_count, 8192, open_sides, s);
    UN_TRY(un_tets_redistance(s->ctx, &s->arena, s->phi, &s->mesh));
    un_arena_reset(&s->arena);
    double sums[2];
    size_t count = (size_t)s->particles.count;
    UN_TRY(un_array_need(s->ctx, (void **)&s->flags_before, &s->flags_capacity, count + 1, 1));
    memcpy(s->flags_before, s->particles.flags, count);
    un_parallel_sums(s->ctx, s->particles.count, 2, mark_particles, s, sums);
    s->ballistic = (int64_t)sums[0];
    /* As in method `uniform`: where phi < 0, and outside it every particle its own. */
    double expected = un_sources_expected(&s->sources);
    double total = un_particles_volume(s->ctx, &s->particles);
    s->volume_now =
        un_tets_liquid_volume(s->ctx, s->phi, &s->mesh, s->tet_walls.open) + total - sums[1];
    s->volume_error = expected > 0 ? (s->volume_now - expected) / expected : 0;
    return UN_OK;
}

/* ---- 6: sizes ---- */

typedef struct sizes_args {
    un_tet *s;
    double growth;
} sizes_args;

static void particle_sizes(void *arg, int64_t begin, int64_t end)
{
    sizes_args *a = arg;
    un_tet *s = a->s;
    un_particles *p = &s->particles;
    for (int64_t q = begin; q < end; q++) {
        un_tets_place place;
        un_vec3 x = un_particle_position(p, q);
        if (!un_tets_locate_in(&s->mesh, s->bins.tet[q], x, &place))
            un_tets_locate(&s->mesh, x, &place);
        double size = un_tet_sample(&s->mesh, s->size, &place);
        p->size[q] = (float)fmin(size, p->size[q] * a->growth);
    }
}

un_status un_tet_sizes(un_tet *s, double dt)
{
    un_sizing_def def = {.scene = s->scene,
                         .mesh = &s->mesh,
                         .phi = s->phi,
                         .walls = &s->tet_walls,
                         .velocity = s->u_node,
                         .time = s->time,
                         .scale = s->scale};
    UN_TRY(un_sizing_evaluate(s->ctx, &s->arena, s->size, &def));
    un_arena_reset(&s->arena);
    sizes_args a = {s, exp2(dt / COARSEN_TIME)};
    un_parallel_for(s->ctx, s->particles.count, 8192, particle_sizes, &a);
    un_tet_keep_budget(s);
    return UN_OK;
}
