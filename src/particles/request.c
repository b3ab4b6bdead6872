/* The octree that particles ask for.
 *
 * A particle asks for a leaf about as wide as two particles of its volume, rounded to the nearer
 * leaf size: cells of the size that S asks for hold eight particles, and most particles have such
 * cells. Ballistic particles ask for nothing. */
#include "particles/particles.h"

/* Ratio of a leaf's edge to that of a calm particle, one slower than sqrt(g h). Calm particles get
 * larger leaves than UN_LEAF_WIDTH: with few particles per leaf the level set is uneven, and
 * unevenness causes motion. rest_mixed reaches 1.2 cm/s in half a second at 2.5 and 0.98 at 3.2. */
#define LEAF_WIDTH_CALM 3.2

static bool is_wide(const un_particles *p, const un_octree *tree, double ratio, float volume,
                    int32_t level)
{
    return un_octree_level(tree, ratio * un_particles_spacing(p, (double)volume)) <= level;
}

/* The least volume that asks for a level or a coarser one; found by bisection, so that no particle
 * needs a cube root. */
static float least_volume(const un_particles *p, const un_octree *tree, double ratio, int32_t level)
{
    uint32_t low = 0, high = 0x7f7fffff; /* positive floats sort as their bits do */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        float volume;
        memcpy(&volume, &middle, sizeof volume);
        if (is_wide(p, tree, ratio, volume, level))
            high = middle;
        else
            low = middle;
    }
    float least;
    memcpy(&least, &high, sizeof least);
    return least;
}

un_leaf_wishes un_leaf_wishes_make(const un_particles *p, const un_octree *tree)
{
    un_leaf_wishes wishes = {.level_max = tree->level_max};
    for (int32_t l = 0; l < tree->level_max; l++) {
        wishes.least[0][l] = least_volume(p, tree, UN_LEAF_WIDTH, l);
        wishes.least[1][l] = least_volume(p, tree, LEAF_WIDTH_CALM, l);
    }
    return wishes;
}

typedef struct request_args {
    const un_particles *particles;
    const un_octree *tree;
    un_leaf_wishes wishes;
    const uint8_t *now; /* levels of the previous round's cells, with the particles' places in it */
    const un_tet_bins *bins;
    uint8_t *level, *reach;
} request_args;

/* Calm particles near the surface keep one layer of leaves of their size around them, so that a
 * calm surface runs through cells of one size. In a splash that would double the number of nodes,
 * most of them in the air. */
static void request(void *arg, int64_t begin, int64_t end)
{
    request_args *a = arg;
    const un_particles *p = a->particles;
    for (int64_t q = begin; q < end; q++) {
        bool flies = p->flags[q] & UN_PARTICLE_APART;
        a->level[q] = flies ? 0 : (uint8_t)un_leaf_wish(&a->wishes, p, q);
        const uint8_t both = UN_PARTICLE_CALM | UN_PARTICLE_SURFACE;
        a->reach[q] = !flies && (p->flags[q] & both) == both;
    }
}

static un_status begin_request(request_args *a, un_arena *arena, un_octree_request *wanted)
{
    const un_particles *p = a->particles;
    a->level = un_arena_alloc(arena, (size_t)p->count + 1, 1);
    a->reach = un_arena_alloc(arena, (size_t)p->count + 1, 1);
    if (!a->level || !a->reach) return UN_ERROR_MEMORY;
    *wanted = (un_octree_request){
        .count = p->count, .x = {p->x[0], p->x[1], p->x[2]}, .level = a->level, .reach = a->reach};
    return UN_OK;
}

un_status un_particles_build_tree(un_context *ctx, un_arena *arena, un_octree *tree,
                                  const un_particles *particles)
{
    request_args a = {
        .particles = particles, .tree = tree, .wishes = un_leaf_wishes_make(particles, tree)};
    un_octree_request wanted;
    UN_TRY(begin_request(&a, arena, &wanted));
    un_parallel_for(ctx, particles->count, 2048, request, &a);
    return un_octree_build(tree, arena, &wanted);
}

/* ---- over ranks ---- */

/* What a leaf costs, in particles: about as much as six in the stages of dam.lua at 48 cells. */
#define LEAF_WORK 6.0
/* A cube as one number: its key, then its level; FLYING for a particle that asks for none. */
#define LEVEL_BITS 5
#define FLYING ((1u << LEVEL_BITS) - 1)

typedef struct cube_args {
    const request_args *request;
    uint64_t *cube;
} cube_args;

/* The cube that each particle asks for. */
static void find_cubes(void *arg, int64_t begin, int64_t end)
{
    const cube_args *a = arg;
    const request_args *r = a->request;
    const un_particles *p = r->particles;
    const un_octree *tree = r->tree;
    for (int64_t q = begin; q < end; q++) {
        uint64_t key = un_morton((uint32_t)un_octree_index(tree, p->x[0][q], 0),
                                 (uint32_t)un_octree_index(tree, p->x[1][q], 1),
                                 (uint32_t)un_octree_index(tree, p->x[2][q], 2));
        bool flies = p->flags[q] & UN_PARTICLE_APART;
        int32_t shift = flies ? 0 : 3 * (tree->level_max - r->level[q]);
        a->cube[q] = key >> shift << shift << LEVEL_BITS | (flies ? FLYING : r->level[q]);
    }
}

/* Work along the curve: every particle is as much work as any other, and every cube that any asks
 * for. Leaves that balance adds are few, or near these. */
static un_status find_work(un_context *ctx, un_arena *arena, const request_args *r, uint64_t **key,
                           double **work, int64_t *count)
{
    int64_t all = r->particles->count, n = 0;
    cube_args a = {r, un_arena_alloc(arena, (size_t)all + 1, sizeof *a.cube)};
    *work = un_arena_alloc(arena, (size_t)all + 1, sizeof **work);
    if (!a.cube || !*work) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, all, 2048, find_cubes, &a);
    /* particles of a cube mostly lie side by side: they are counted before cubes are sorted */
    for (int64_t i = 0; i < all; i++) {
        if (n == 0 || a.cube[i] != a.cube[n - 1]) {
            a.cube[n] = a.cube[i];
            (*work)[n++] = 0;
        }
        (*work)[n - 1] += 1;
    }
    all = n;
    n = 0;
    int32_t *order = un_arena_alloc(arena, (size_t)all + 1, sizeof *order);
    uint64_t *sorted = un_arena_alloc(arena, (size_t)all + 1, sizeof *sorted);
    double *sums = un_arena_alloc(arena, (size_t)all + 1, sizeof *sums);
    if (!order || !sorted || !sums) return UN_ERROR_MEMORY;
    UN_TRY(un_parallel_sort64(ctx, arena, order, a.cube, all, 62));
    for (int64_t i = 0; i < all; i++) {
        uint64_t cube = a.cube[order[i]];
        if (n == 0 || cube != sorted[n - 1]) {
            sorted[n] = cube;
            sums[n++] = (cube & FLYING) == FLYING ? 0 : LEAF_WORK;
        }
        sums[n - 1] += (*work)[order[i]];
    }
    for (int64_t i = 0; i < n; i++) sorted[i] >>= LEVEL_BITS;
    *key = sorted;
    *work = sums;
    *count = n;
    return UN_OK;
}

/* Work on the curve: places, ascending, and how much is there. */
typedef struct curve_work {
    uint64_t *key;
    double *work;
    int64_t count;
} curve_work;

static un_status build_parts(un_arena *arena, un_octree *tree, un_tree_share *part,
                             const un_octree_request *wanted, const curve_work *work)
{
    un_context *ctx = tree->ctx;
    uint64_t *cut = un_arena_alloc(arena, (size_t)un_rank_count(ctx), sizeof *cut);
    int32_t bits = 1;
    UN_TRY(un_ranks_agree(ctx, cut ? UN_OK : UN_ERROR_MEMORY));
    for (int axis = 0; axis < 3; axis++)
        while ((tree->n[axis] - 1) >> bits) bits++;
    UN_TRY(un_ranks_cut(ctx, cut, work->key, work->work, work->count, 3 * bits));
    return un_octree_build_ranks(tree, part, arena, wanted, cut);
}

un_status un_particles_build_tree_ranks(un_context *ctx, un_arena *arena, un_octree *tree,
                                        un_tree_share *part, const un_particles *particles)
{
    request_args a = {
        .particles = particles, .tree = tree, .wishes = un_leaf_wishes_make(particles, tree)};
    un_octree_request wanted;
    curve_work work = {0};
    un_status status = begin_request(&a, arena, &wanted);
    if (status == UN_OK) {
        un_parallel_for(ctx, particles->count, 2048, request, &a);
        status = find_work(ctx, arena, &a, &work.key, &work.work, &work.count);
    }
    UN_TRY(un_ranks_agree(ctx, status));
    return build_parts(arena, tree, part, &wanted, &work);
}

/* ---- before the first step ---- */

/* Asks for leaves at most one level off the present ones; counts particles that want a finer
 * leaf. */
static double wish(void *arg, int64_t begin, int64_t end)
{
    request_args *a = arg;
    double changes = 0;
    for (int64_t q = begin; q < end; q++) {
        int32_t now = a->now[a->bins->tet[q]];
        int32_t want = un_octree_level(a->tree, a->particles->size[q] * 1.41421356237);
        a->level[q] = (uint8_t)un_clampi(want, now - 1, now + 1);
        a->reach[q] = (a->particles->flags[q] & UN_PARTICLE_SURFACE) != 0;
        changes += want > now;
    }
    return changes;
}

un_status un_particles_refine_tree(un_context *ctx, un_arena *arena, un_octree *tree,
                                   const un_markers *markers, const uint8_t *level, bool settled_ok,
                                   bool *done)
{
    request_args a = {
        .particles = &markers->particles, .tree = tree, .now = level, .bins = &markers->bins};
    un_octree_request wanted;
    UN_TRY(begin_request(&a, arena, &wanted));
    double changes = un_parallel_sum(ctx, markers->particles.count, wish, &a);
    *done = *done || (changes == 0 && settled_ok);
    return *done ? UN_OK : un_octree_build(tree, arena, &wanted);
}

un_status un_particles_refine_tree_ranks(un_context *ctx, un_arena *arena, un_octree *tree,
                                         un_tree_share *part, const un_markers *markers,
                                         const uint8_t *level, bool settled_ok, bool *done)
{
    un_part own = un_markers_own(markers);
    un_particles mine = un_particles_part(&markers->particles, own);
    un_tet_bins bins = {.tet = markers->bins.tet + own.begin};
    request_args a = {.particles = &mine, .tree = tree, .now = level, .bins = &bins};
    un_octree_request wanted;
    curve_work work = {0};
    double changes = 0;
    un_status status = begin_request(&a, arena, &wanted);
    if (status == UN_OK) {
        changes = un_parallel_sum(ctx, mine.count, wish, &a);
        status = find_work(ctx, arena, &a, &work.key, &work.work, &work.count);
    }
    UN_TRY(un_ranks_agree(ctx, status));
    *done = *done || (un_ranks_max(ctx, changes) == 0 && settled_ok);
    return *done ? UN_OK : build_parts(arena, tree, part, &wanted, &work);
}

/* Ranks divide the leaves evenly to ask for them, and then by work. */
static un_status ask_for_leaves(un_arena *arena, const un_octree *tree, const un_shape *shape,
                                un_octree_request *wanted, curve_work *work)
{
    un_part leaves = un_ranks_even(tree->ctx, tree->leaf_count);
    int64_t count = leaves.end - leaves.begin;
    UN_TRY(un_octree_request_leaves(wanted, arena, tree, tree->key + leaves.begin,
                                    tree->level + leaves.begin, count));
    *work = (curve_work){un_arena_alloc(arena, (size_t)count + 1, sizeof *work->key),
                         un_arena_alloc(arena, (size_t)count + 1, sizeof *work->work), count};
    if (!work->key || !work->work) return UN_ERROR_MEMORY;
    for (int64_t k = 0; k < count; k++) {
        int32_t leaf = (int32_t)(leaves.begin + k);
        double half = 0.5 * un_octree_size(tree, tree->level[leaf]);
        un_vec3 middle = un_add(un_octree_corner(tree, leaf), un_v3(half, half, half));
        work->key[k] = tree->key[leaf];
        work->work[k] = LEAF_WORK + (un_shape_distance(shape, middle) < 0 ? 8 : 0);
    }
    return UN_OK;
}

un_status un_particles_divide_tree(un_context *ctx, un_arena *arena, un_octree *tree,
                                   un_tree_share *part, const un_shape *shape)
{
    un_octree_request wanted;
    curve_work work = {0};
    UN_TRY(un_ranks_agree(ctx, ask_for_leaves(arena, tree, shape, &wanted, &work)));
    return build_parts(arena, tree, part, &wanted, &work);
}
