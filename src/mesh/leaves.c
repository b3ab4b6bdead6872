/* Neighbours and faces of an octree's leaves.
 *
 * A face belongs to the smaller of its leaves, or, of two of one size, to the upper one: a leaf
 * owns its lower faces unless smaller leaves lie there, and its upper faces towards larger leaves
 * and the brick's boundary. So faces are counted and numbered by leaf, in parallel, along the
 * curve. */
#include "mesh/mesh.h"

void un_leaves_free(un_leaves *m)
{
    void *arrays[] = {m->x,    m->near,  m->coarse, m->even, m->face_side, m->face_other,
                      m->side, m->group, m->thin,   m->seat, m->word};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(m->ctx, arrays[i]);
    *m = (un_leaves){0};
}

typedef struct build_args {
    un_leaves *m;
    int32_t *faces, *groups; /* by leaf: how many it has, then its first */
} build_args;

static inline void place_of(const un_octree *tree, int64_t c, int32_t at[3], int32_t *size)
{
    uint64_t k = tree->key[c];
    at[0] = (int32_t)un_morton_gather(k);
    at[1] = (int32_t)un_morton_gather(k >> 1);
    at[2] = (int32_t)un_morton_gather(k >> 2);
    *size = 1 << (tree->level_max - tree->level[c]);
}

/* ---- neighbours ---- */

static inline void set_coarse(un_leaves *m, int64_t c, uint8_t coarse)
{
    const un_octree *tree = m->tree;
    int level = tree->level[c], child = (int)(tree->key[c] >> 3 * (tree->level_max - level)) & 7;
    m->coarse[c] = coarse;
    m->word[c] = level | child << UN_LEAF_CHILD | coarse << UN_LEAF_COARSE;
}

/* Whether leaves around c have its size, from what is near. */
UN_KERNEL void compare_near(un_leaves *m, int64_t c, int dim)
{
    const un_octree *tree = m->tree;
    const int32_t *near = un_leaf_near(m, c);
    /* by bit: cubes beyond the brick or of another size, in larger leaves; at the lowest corner */
    uint32_t other = 0, larger = 0, corner = dim == 2 ? 0x1bu : 0x361bu;
    int level = tree->level[c];
    for (int n = 0; n < (dim == 2 ? 9 : 27); n++) {
        int there = near[n] < 0 ? UN_LEVELS_MAX + 1 : tree->level[near[n]];
        other |= (uint32_t)(there != level) << n;
        larger |= (uint32_t)(there < level) << n;
    }
    uint8_t coarse = 0;
    for (int k = 0; k < 1 << dim && larger; k++)
        if (larger & corner << ((k & 1) + 3 * (k >> 1 & 1) + 9 * (k >> 2)))
            coarse |= (uint8_t)(1 << k);
    m->even[c] = !other;
    set_coarse(m, c, coarse);
}

/* The leaves that hold the cubes of its own size around leaf c, x fastest; -1 beyond the brick. */
UN_KERNEL void find_cubes(const un_leaves *m, int64_t c, int32_t *out, int dim)
{
    const un_octree *tree = m->tree;
    int32_t at[3], s;
    uint64_t part[3][3];
    bool in[3][3];
    place_of(tree, c, at, &s);
    for (int a = 0; a < dim; a++)
        for (int d = 0; d < 3; d++) {
            int32_t i = at[a] + (d - 1) * s;
            in[a][d] = i >= 0 && i < tree->n[a];
            part[a][d] = un_morton_spread((uint64_t)(uint32_t)i) << a;
        }
    for (int z = 0; z < (dim == 2 ? 1 : 3); z++)
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 3; x++) {
                bool inside = in[0][x] && in[1][y] && (dim == 2 || in[2][z]);
                bool own = x == 1 && y == 1 && (dim == 2 || z == 1);
                uint64_t key = part[0][x] | part[1][y] | (dim == 2 ? 0 : part[2][z]);
                *out++ = own ? (int32_t)c : inside ? un_octree_find_key(tree, key) : -1;
            }
}

/* The same for the 4^dim cubes around the leaves c, c + 1, ... that one parent is divided into. The
 * cubes next to them belong to the 3^dim - 1 parents beside theirs: one search finds the leaf in
 * the lower corner of each, and mostly leads to all of its children. */
UN_KERNEL void find_cubes_family(const un_leaves *m, int64_t c, int32_t *out, int dim)
{
    const un_octree *tree = m->tree;
    int level = tree->level[c], shift = 3 * (tree->level_max - level);
    int32_t at[3], s, first[27];
    uint64_t part[3][3];
    bool in[3][3];
    place_of(tree, c, at, &s);
    for (int a = 0; a < dim; a++)
        for (int d = 0; d < 3; d++) {
            int32_t i = at[a] + (d - 1) * 2 * s;
            in[a][d] = i >= 0 && i < tree->n[a];
            part[a][d] = un_morton_spread((uint64_t)(uint32_t)i) << a;
        }
    for (int n = 0; n < (dim == 2 ? 9 : 27); n++) first[n] = -2; /* not sought yet */
    for (int z = 0; z < (dim == 2 ? 1 : 4); z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 4; x++) {
                int px = (x + 1) / 2, py = (y + 1) / 2, pz = dim == 2 ? 0 : (z + 1) / 2;
                /* places 0 .. 3 are upper, lower, upper, lower in their parents */
                int child = (~x & 1) + 2 * (~y & 1) + (dim == 2 ? 0 : 4 * (~z & 1));
                int n = px + 3 * py + 9 * pz;
                if (px == 1 && py == 1 && (dim == 2 || pz == 1)) {
                    *out++ = (int32_t)c + child;
                    continue;
                }
                if (!in[0][px] || !in[1][py] || (dim == 3 && !in[2][pz])) {
                    *out++ = -1;
                    continue;
                }
                uint64_t key = part[0][px] | part[1][py] | (dim == 2 ? 0 : part[2][pz]);
                if (first[n] == -2) first[n] = un_octree_find_key(tree, key);
                int32_t there = first[n];
                key += (uint64_t)child << shift;
                if (tree->level[there] >= level && child > 0) {
                    there += child;
                    if (there >= m->count || tree->key[there] != key)
                        there = un_octree_find_key(tree, key);
                }
                *out++ = there;
            }
}

void un_leaves_list_around(const un_leaves *m, int32_t c, int32_t out[UN_LEAVES_AROUND])
{
    UN_BY_DIM(m->dim, find_cubes(m, c, out, dim));
}

/* Is c the first of the leaves that its parent is divided into, and no other? */
UN_KERNEL bool is_family(const un_leaves *m, int64_t c, int64_t end, int dim)
{
    const un_octree *tree = m->tree;
    int level = tree->level[c], shift = 3 * (tree->level_max - level), count = 1 << dim;
    if (level == 0 || (tree->key[c] >> shift & 7) || c + count > end) return false;
    for (int k = 1; k < count; k++)
        if (tree->level[c + k] != level) return false;
    /* in 2D keys of siblings leave out those above */
    return tree->key[c + count - 1] >> (shift + 3) == tree->key[c] >> (shift + 3);
}

/* Of 4^dim cubes: those around the child in the lower corner, and those that touch its lower
 * corner; for other children and corners they are shifted by so much. */
#define AROUND_FIRST (UINT64_C(0x777) | UINT64_C(0x777) << 16 | UINT64_C(0x777) << 32)
#define CORNER_FIRST (UINT64_C(0x33) | UINT64_C(0x33) << 16)
static inline int shift_in_cubes(int k)
{
    return (k & 1) + 4 * (k >> 1 & 1) + 16 * (k >> 2);
}

/* compare_near for the leaves c, c + 1, ... of a family, from the cubes around it. */
UN_KERNEL void compare_family(un_leaves *m, int64_t c, const int32_t *cube, int dim)
{
    const un_octree *tree = m->tree;
    uint64_t other = 0, larger = 0;
    uint64_t around = dim == 2 ? 0x777 : AROUND_FIRST, corner = dim == 2 ? 0x33 : CORNER_FIRST;
    int level = tree->level[c];
    for (int n = 0; n < (dim == 2 ? 16 : 64); n++) {
        int there = cube[n] < 0 ? UN_LEVELS_MAX + 1 : tree->level[cube[n]];
        other |= (uint64_t)(there != level) << n;
        larger |= (uint64_t)(there < level) << n;
    }
    for (int k = 0; k < 1 << dim; k++) {
        uint64_t of = larger >> shift_in_cubes(k) & around;
        uint8_t coarse = 0;
        for (int i = 0; i < 1 << dim && of; i++)
            if (of & corner << shift_in_cubes(i)) coarse |= (uint8_t)(1 << i);
        m->even[c + k] = !(other >> shift_in_cubes(k) & around);
        set_coarse(m, c + k, coarse);
    }
}

/* A family shares what is around it: 4^dim cubes instead of 3^dim for each. Returns how many leaves
 * it was for. */
UN_KERNEL int find_near_in(un_leaves *m, int64_t c, int64_t end, int dim)
{
    int32_t *near = m->near + (ptrdiff_t)m->near_count * c, cube[64];
    if (!is_family(m, c, end, dim)) {
        find_cubes(m, c, near, dim);
        compare_near(m, c, dim);
        return 1;
    }
    find_cubes_family(m, c, cube, dim);
    for (int k = 0; k < 1 << dim; k++) {
        const int32_t *first = cube + shift_in_cubes(k);
        for (int n = 0; n < (dim == 2 ? 9 : 27); n++)
            *near++ = first[n % 3 + 4 * (n / 3 % 3) + 16 * (n / 9)];
    }
    compare_family(m, c, cube, dim);
    return 1 << dim;
}

static bool owns(const un_leaves *m, int64_t c, int side)
{
    int32_t other = un_leaf_beyond(m, c, side);
    if (other < 0) return true;
    int own = m->tree->level[c], level = m->tree->level[other];
    return level < own || (level == own && !(side & 1));
}

static void count_faces(void *arg, int64_t begin, int64_t end)
{
    build_args *a = arg;
    un_leaves *m = a->m;
    const un_octree *tree = m->tree;
    for (int64_t c = begin; c < end;) UN_BY_DIM(m->dim, c += find_near_in(m, c, end, dim));
    for (int64_t c = begin; c < end; c++) {
        m->x[c] = un_leaf_centre(tree, (int32_t)c);
        int32_t faces = 0, groups = 0;
        for (int side = 0; side < 2 * m->dim; side++) {
            int32_t other = un_leaf_beyond(m, c, side);
            faces += owns(m, c, side);
            groups += other >= 0 && tree->level[other] > tree->level[c];
        }
        a->faces[c] = faces;
        a->groups[c] = groups;
    }
}

static void number_own(void *arg, int64_t begin, int64_t end)
{
    build_args *a = arg;
    un_leaves *m = a->m;
    for (int64_t c = begin; c < end; c++) {
        int32_t f = a->faces[c], g = a->groups[c];
        for (int side = 0; side < 2 * m->dim; side++) {
            int32_t other = un_leaf_beyond(m, c, side);
            if (owns(m, c, side)) {
                m->face_side[f] = (int32_t)(6 * c) + side;
                m->face_other[f] = other;
                m->side[c][side] = f++;
            } else if (m->tree->level[other] > m->tree->level[c]) {
                m->side[c][side] = ~g++;
            } else if (!un_leaves_knows(m, other, 0)) {
                m->side[c][side] = m->face_count; /* nobody tells */
            }
        }
    }
}

/* Which of a group's faces the face of a small leaf is. */
static int part_of(const un_leaves *m, int64_t c, int axis)
{
    int32_t at[3], s;
    int part = 0, bit = 0;
    place_of(m->tree, c, at, &s);
    for (int a = 0; a < m->dim; a++)
        if (a != axis) part |= (at[a] / s & 1) << bit++;
    return part;
}

/* Each face tells the leaf beyond it. */
static void tell_others(void *arg, int64_t begin, int64_t end)
{
    build_args *a = arg;
    un_leaves *m = a->m;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, other = m->face_other[f];
        if (other < 0 || !un_leaves_knows(m, other, 0)) continue;
        if (m->tree->level[other] == m->tree->level[c])
            m->side[other][side ^ 1] = (int32_t)f;
        else
            m->group[~m->side[other][side ^ 1]][part_of(m, c, side / 2)] = (int32_t)f;
    }
}

#define NEED(array, which, number)                                                                 \
    UN_TRY(un_array_need(ctx, (void **)&(array), &m->capacity[which], (size_t)(number) + 1,        \
                         sizeof *(array)))

/* The cubes around a leaf, parent by parent and along the curve in each, so that what lies one
 * after the other in memory is asked for so. */
static void order_cubes(un_leaves *m)
{
    for (int child = 0; child < 8; child++) {
        int rank[UN_LEAVES_AROUND];
        for (int n = 0; n < m->near_count; n++) {
            int d[3] = {n % 3, n / 3 % 3, m->dim == 2 ? 1 : n / 9}, parent = 0, place = 0;
            for (int a = 2; a >= 0; a--) {
                int at = (child >> a & 1) + d[a] + 1; /* 1 .. 4, those of the own parent 2 and 3 */
                parent = 3 * parent + at / 2;
                place = 2 * place + (at & 1);
            }
            rank[n] = 8 * parent + place;
            int k = n;
            for (; k > 0 && rank[m->order[child][k - 1]] > rank[n]; k--)
                m->order[child][k] = m->order[child][k - 1];
            m->order[child][k] = (uint8_t)n;
        }
        m->run_count = 0;
        for (int i = 0; i < m->near_count; i++) {
            const uint8_t *order = m->order[child];
            bool follows = i > 0 && rank[order[i]] == rank[order[i - 1]] + 1 && rank[order[i]] % 8;
            if (follows) {
                m->run[child][m->run_count - 1][1]++;
                continue;
            }
            m->run[child][m->run_count][0] = order[i];
            m->run[child][m->run_count++][1] = 1;
        }
    }
}

static un_status begin_build(un_leaves *m, un_context *ctx, const un_octree *tree, build_args *a)
{
    int32_t n = tree->leaf_count;
    *a = (build_args){.m = m};
    m->ctx = ctx;
    m->tree = tree;
    m->dim = tree->dim;
    m->count = n;
    m->near_count = tree->dim == 2 ? 9 : 27;
    m->parted = false;
    order_cubes(m);
    NEED(m->x, 0, n);
    NEED(m->near, 1, (size_t)n * (size_t)m->near_count);
    NEED(m->coarse, 2, n);
    NEED(m->even, 3, n);
    NEED(m->side, 4, n);
    NEED(m->word, 10, n);
    UN_ALLOC(ctx, a->faces, n + 1);
    UN_ALLOC(ctx, a->groups, n + 1);
    return UN_OK;
}

static void end_build(un_leaves *m, build_args *a)
{
    un_free(m->ctx, a->faces);
    un_free(m->ctx, a->groups);
}

static un_status need_faces(un_leaves *m)
{
    un_context *ctx = m->ctx;
    NEED(m->face_side, 5, m->face_count);
    NEED(m->face_other, 6, m->face_count);
    NEED(m->group, 7, m->group_count);
    return UN_OK;
}

static un_status build(un_leaves *m, build_args *a)
{
    un_context *ctx = m->ctx;
    un_parallel_for(ctx, m->count, 1024, count_faces, a);
    m->face_count = (int32_t)un_parallel_scan(ctx, a->faces, m->count);
    m->group_count = (int32_t)un_parallel_scan(ctx, a->groups, m->count);
    UN_TRY(need_faces(m));
    un_parallel_for(ctx, m->count, 4096, number_own, a);
    un_parallel_for(ctx, m->face_count, 8192, tell_others, a);
    return UN_OK;
}

un_status un_leaves_build(un_leaves *m, un_context *ctx, const un_octree *tree)
{
    build_args a;
    m->share = NULL;
    un_status status = begin_build(m, ctx, tree, &a);
    if (status == UN_OK) status = build(m, &a);
    end_build(m, &a);
    return status;
}

/* ---- over ranks ---- */

/* Elements of runs that are not in the own part, ascending. */
static un_status list_others(un_context *ctx, const un_part *run, int32_t run_count, un_part own,
                             int32_t **ids, int64_t *count)
{
    int64_t n = 0;
    for (int32_t k = 0; k < run_count; k++) n += run[k].end - run[k].begin;
    *ids = un_alloc(ctx, (size_t)n + 1, sizeof **ids);
    *count = 0;
    if (!*ids) return UN_ERROR_MEMORY;
    for (int32_t k = 0; k < run_count; k++)
        for (int64_t i = run[k].begin; i < run[k].end; i++) {
            if (i == own.begin) i = un_min64(own.end, run[k].end);
            if (i < run[k].end) (*ids)[(*count)++] = (int32_t)i;
        }
    return UN_OK;
}

static un_status find_halo(un_context *ctx, const int64_t *first, const un_part *run,
                           int32_t run_count, un_halo **halo)
{
    int32_t rank = un_rank(ctx), *ids = NULL;
    int64_t count = 0;
    un_part own = {first[rank], first[rank + 1]};
    un_status status = un_ranks_agree(ctx, list_others(ctx, run, run_count, own, &ids, &count));
    if (status == UN_OK) status = un_halo_create_agreed(ctx, first, ids, count, halo);
    un_free(ctx, ids);
    return status;
}

static int32_t count_own_faces(const un_leaves *m, int64_t c)
{
    int32_t count = 0;
    for (int side = 0; side < 2 * m->dim; side++) count += owns(m, c, side);
    return count;
}

/* Faces are numbered by their owners, groups for this rank alone. */
static un_status number_known(un_leaves *m, un_leaf_share *s, build_args *a, un_part own)
{
    un_context *ctx = s->ctx;
    int32_t groups = 0;
    int64_t count = un_parallel_scan(ctx, a->faces + own.begin, own.end - own.begin);
    un_range range = un_ranks_range(ctx, count);
    for (int64_t c = own.begin; c < own.end; c++) a->faces[c] += (int32_t)range.begin;
    m->face_count = (int32_t)range.total;
    UN_TRY(un_ranks_begins(ctx, range.begin, range.total, &s->face));
    un_halo_share(s->near, a->faces, sizeof *a->faces);
    s->face_at[0] = 0;
    for (int32_t k = 0; k < s->run_count; k++) {
        int64_t last = s->run[k].end - 1;
        s->face_run[k].begin = a->faces[s->run[k].begin];
        s->face_run[k].end = a->faces[last] + count_own_faces(m, last);
        s->face_at[k + 1] = s->face_at[k] + s->face_run[k].end - s->face_run[k].begin;
        for (int64_t c = s->run[k].begin; c <= last; c++) {
            int32_t more = a->groups[c];
            a->groups[c] = groups;
            groups += more;
        }
    }
    m->group_count = groups;
    return UN_OK;
}

static void forget_others(un_leaves *m)
{
    un_leaves_forget(m, m->x, sizeof *m->x);
    un_leaves_forget(m, m->near, (size_t)m->near_count * sizeof *m->near);
    un_leaves_forget(m, m->coarse, 1);
    un_leaves_forget(m, m->even, 1);
    un_leaves_forget(m, m->word, sizeof *m->word);
    un_leaves_forget(m, m->side, sizeof *m->side);
    un_leaves_forget_faces(m, m->face_side, sizeof *m->face_side);
    un_leaves_forget_faces(m, m->face_other, sizeof *m->face_other);
}

/* Stands in for faces that this rank does not know. */
static void make_stand_in(un_leaves *m)
{
    m->face_side[m->face_count] = 0;
    m->face_other[m->face_count] = -1;
    for (int32_t g = 0; g < m->group_count; g++)
        for (int k = 0; k < 4; k++) m->group[g][k] = m->face_count;
}

un_status un_leaves_build_ranks(un_leaves *m, un_context *ctx, const un_octree *tree,
                                un_leaf_share *s, const un_tree_share *part, int32_t rings)
{
    build_args a;
    un_part own = {part->begin, part->end};
    un_leaf_share_free(s);
    s->rings = rings;
    m->share = s;
    un_status status = un_leaf_share_mark(s, tree, own);
    a = (build_args){.m = m};
    if (status == UN_OK) status = begin_build(m, ctx, tree, &a);
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK) {
        un_leaves_each(m, 1024, count_faces, &a);
        status = un_ranks_begins(ctx, own.begin, m->count, &s->leaf);
    }
    if (status == UN_OK) status = find_halo(ctx, s->leaf, s->run, s->run_count, &s->near);
    if (status == UN_OK) status = number_known(m, s, &a, own);
    if (status == UN_OK) status = un_ranks_agree(ctx, need_faces(m));
    if (status == UN_OK)
        status = find_halo(ctx, s->face, s->face_run, s->run_count, &s->near_faces);
    if (status == UN_OK) {
        forget_others(m);
        make_stand_in(m);
        un_leaves_each(m, 4096, number_own, &a);
        un_leaves_each_face(m, 8192, tell_others, &a);
    }
    m->ctx = ctx;
    end_build(m, &a);
    return status;
}

void un_leaves_range(const un_leaves *m, int32_t c, int n, int32_t *first, int32_t *end)
{
    const un_octree *tree = m->tree;
    int32_t leaf = un_leaf_near(m, c)[n];
    *first = leaf < 0 ? 0 : leaf;
    *end = *first;
    if (leaf < 0) return;
    *end = leaf + 1;
    if (tree->level[leaf] <= tree->level[c]) return;
    int shift = 3 * (tree->level_max - tree->level[c]), all = 1 << m->dim;
    uint64_t cube = tree->key[leaf] >> shift;
    if (leaf + all < m->count && tree->key[leaf + all - 1] >> shift == cube) *end = leaf + all;
    while (*end < m->count && tree->key[*end] >> shift == cube) ++*end;
}

int un_leaves_around(const un_leaves *m, const int32_t *begin, int32_t c,
                     int32_t range[UN_LEAVES_AROUND][2])
{
    const un_octree *tree = m->tree;
    const int32_t *near = un_leaf_near(m, c);
    int level = tree->level[c], larger_count = 0, count = 0;
    const uint8_t *order = m->order[tree->key[c] >> 3 * (tree->level_max - level) & 7];
    int32_t larger[UN_LEAVES_AROUND];
    bool even = m->even[c] && !m->parted; /* all have its size */
    const uint8_t(*run)[2] = m->run[tree->key[c] >> 3 * (tree->level_max - level) & 7];
    for (int i = 0; i < (even ? m->run_count : m->near_count); i++) {
        int32_t leaf = near[even ? run[i][0] : order[i]], end = leaf + 1;
        if (leaf < 0) continue;
        if (even) {
            end = leaf + run[i][1];
        } else if (tree->level[leaf] < level) {
            int k = larger_count;
            while (k > 0 && larger[k - 1] != leaf) k--;
            if (k > 0) continue;
            larger[larger_count++] = leaf;
        } else if (tree->level[leaf] > level) {
            un_leaves_range(m, c, order[i], &leaf, &end);
        }
        if (begin[leaf] == begin[end]) continue;
        if (count > 0 && range[count - 1][1] == begin[leaf]) {
            range[count - 1][1] = begin[end];
            continue;
        }
        range[count][0] = begin[leaf];
        range[count++][1] = begin[end];
    }
    return count;
}

int64_t un_leaves_wet_count(const un_leaves *m, const float *phi)
{
    un_part own = un_leaves_own(m);
    int64_t count = 0;
    for (int64_t c = own.begin; c < own.end; c++) count += phi[c] < 0;
    return m->share ? un_ranks_total(m->share->ctx, count) : count;
}

/* ---- checks ---- */

static const char *check_side(const un_leaves *m, int32_t c, int side)
{
    int32_t f = m->side[c][side];
    int size = un_leaves_group_size(m);
    for (int k = 0; k < (f < 0 ? size : 1); k++) {
        int32_t face = f < 0 ? m->group[~f][k] : f;
        if (face < 0 || face >= m->face_count) return "a side without a face";
        int32_t own = m->face_side[face] / 6, other = m->face_other[face];
        if (own != c && other != c) return "a side with another leaf's face";
        if (f < 0 && (other != c || m->tree->level[own] != m->tree->level[c] + 1))
            return "a group of faces that are not half as large";
        if (m->face_side[face] % 6 / 2 != side / 2) return "a face along the wrong axis";
        if (other >= 0 && (own == c) == ((m->face_side[face] & 1) != (side & 1)))
            return "a face on the wrong side";
    }
    return NULL;
}

const char *un_leaves_validate(const un_leaves *m)
{
    for (int32_t c = 0; c < m->count; c++)
        for (int side = 0; side < 2 * m->dim; side++) {
            const char *wrong = check_side(m, c, side);
            if (wrong) return wrong;
        }
    return NULL;
}
