/* Graded BCC tetrahedra from a balanced octree [Labelle & Shewchuk 2007].
 *
 * By the leaf behind each face:
 *   finer       the face's middle f is a node, and so are its edges' midpoints m: (P, m, f, c),
 *               (m, Q, f, c) for each edge PQ, quadrisected
 *   none        likewise, but m is a node only where finer leaves meet the edge: without it
 *               (P, Q, f, c). A diagonal would do where no edge has a midpoint, but its obtuse
 *               tets couple pressures with the wrong sign along every wall
 *   same size   once per pair, by the lower leaf, c' behind: (P, Q, c', c), BCC; where the edge has
 *               a midpoint (P, m, c', c), (m, Q, c', c), bisected
 *   larger      the face is cut by the diagonal through the larger face's middle: half-pyramids
 *
 * Nodes are numbered without sorting them. All nodes in the half-open box of a leaf follow each
 * other on the Morton curve, as boxes do, and only eight places in it can be nodes: the lower
 * corners of its octants. The lower corner and the centre always are, the others if a finer leaf
 * behind a lower face or edge makes them one. So a node's number is its leaf's first number plus
 * how many of the lower places of an 8-bit mask are set. Nodes in the upper faces of the brick lie
 * in no such box; they are few, get sorted and merged. */
#include "mesh/tets_internal.h"

#include "mesh/collect.h"

#define LEAF_GRAIN 2048

typedef struct leaf_info {
    uint32_t finer, larger; /* neighbours across faces and edges, by bits */
} leaf_info;

typedef struct build {
    un_tets *mesh;
    const un_octree *tree;
    leaf_info *info;
    uint8_t *mask;       /* by leaf: octants whose lower corner is a node */
    int32_t *first_node; /* by leaf, and one more; only those in boxes until merged */
    int32_t *first_tet;  /* by leaf, and one more */
    uint64_t *upper_key; /* nodes in the brick's upper faces */
    int32_t *upper_id;
    int64_t upper_count;
    uint32_t edge_beside[12]; /* by edge: the neighbours that meet there */
    uint32_t face_edges[6];   /* by face: its edges, as bits; in order of the face's own numbers */
    uint8_t face_edge[6][4];
    un_tet_template templates[UN_SHAPE_COUNT];
} build;

/* A leaf's edge along axis a is numbered 4 a + its side along a + 1 + twice that along a + 2. */
static int32_t edge_number(int32_t along, int32_t side_u, int32_t side_v)
{
    return 4 * along + side_u + 2 * side_v;
}

static void number_edges(build *b)
{
    static const int32_t step[3] = {1, 3, 9};
    for (int32_t along = 0; along < 3; along++)
        for (int32_t k = 0; k < 4; k++) {
            int32_t u = (along + 1) % 3, v = (along + 2) % 3;
            int32_t du = (k & 1 ? 1 : -1) * step[u], dv = (k & 2 ? 1 : -1) * step[v];
            b->edge_beside[4 * along + k] = 1u << (UN_PLACE_CENTER + du) |
                                            1u << (UN_PLACE_CENTER + dv) |
                                            1u << (UN_PLACE_CENTER + du + dv);
        }
    for (int32_t f = 0; f < 6; f++) {
        int32_t a, u, v, side = f % 2;
        un_face_axes(f, &a, &u, &v);
        b->face_edges[f] = 0;
        for (int32_t e = 0; e < 4; e++) {
            /* Edges at the ends of u go along v; to them, a is the next axis but one ... */
            int32_t number = e < 2 ? edge_number(v, side, e % 2) : edge_number(u, e % 2, side);
            b->face_edge[f][e] = (uint8_t)number;
            b->face_edges[f] |= 1u << number;
        }
    }
}

/* ---- which neighbours a leaf has ---- */

typedef struct leaf_place {
    int32_t at[3], size; /* in finest leaves */
    uint32_t outside;    /* neighbours beyond the brick */
} leaf_place;

static inline leaf_place place_leaf(const un_octree *tree, int32_t c)
{
    static const uint32_t lower[3] = {0x1249249, 0x1c0e07, 0x1ff};
    static const int32_t shift[3] = {2, 6, 18};
    leaf_place p = {.size = 1 << (tree->level_max - tree->level[c])};
    for (int a = 0; a < 3; a++) {
        p.at[a] = (int32_t)un_morton_gather(tree->key[c] >> a);
        if (p.at[a] == 0) p.outside |= lower[a];
        if (p.at[a] + p.size == tree->n[a]) p.outside |= lower[a] << shift[a];
    }
    return p;
}

/* Midpoints of a leaf's edges that are nodes. */
static inline uint32_t midpoints(const build *b, uint32_t finer)
{
    uint32_t mids = 0;
    if (finer)
        for (int32_t e = 0; e < 12; e++)
            if (finer & b->edge_beside[e]) mids |= 1u << e;
    return mids;
}

static const uint32_t FACE_BIT[6] = {1u << 12, 1u << 14, 1u << 10, 1u << 16, 1u << 4, 1u << 22};

static void examine_leaves(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    const un_octree *tree = b->tree;
    for (int64_t c = begin; c < end; c++) {
        leaf_place p = place_leaf(tree, (int32_t)c);
        leaf_info info = {0, 0};
        uint64_t lane[3][3];
        for (int a = 0; a < 3; a++)
            for (int k = 0; k < 3; k++)
                lane[a][k] = un_morton_spread((uint64_t)(p.at[a] + (k - 1) * p.size)) << a;
        for (int32_t d = 0; d < 27; d++) {
            int32_t x = d % 3, y = d / 3 % 3, z = d / 9;
            if (d == UN_PLACE_CENTER || (x != 1 && y != 1 && z != 1) || (p.outside >> d & 1))
                continue;
            int32_t m = un_octree_find_key(tree, lane[0][x] | lane[1][y] | lane[2][z]);
            if (tree->level[m] > tree->level[c]) info.finer |= 1u << d;
            if (tree->level[m] < tree->level[c]) info.larger |= 1u << d;
        }
        b->info[c] = info;
        uint32_t mids = midpoints(b, info.finer), fan = info.finer | p.outside;
        int32_t tet_count = 0;
        for (int32_t f = 0; f < 6; f++)
            if (info.larger & FACE_BIT[f])
                tet_count += 2;
            else if (f % 2 || (fan & FACE_BIT[f]))
                tet_count += 4 + __builtin_popcount(mids & b->face_edges[f]);
        uint32_t mask = 0x81;
        if (mids & 1u << edge_number(0, 0, 0)) mask |= 1u << 1;
        if (mids & 1u << edge_number(1, 0, 0)) mask |= 1u << 2;
        if (mids & 1u << edge_number(2, 0, 0)) mask |= 1u << 4;
        if (fan & FACE_BIT[0]) mask |= 1u << 6;
        if (fan & FACE_BIT[2]) mask |= 1u << 5;
        if (fan & FACE_BIT[4]) mask |= 1u << 3;
        b->mask[c] = (uint8_t)mask;
        b->first_node[c] = __builtin_popcount(mask);
        b->first_tet[c] = tet_count;
    }
}

/* ---- nodes in the brick's upper faces ---- */

/* Each belongs to the leaf whose box holds it when coordinates at the brick's upper end are taken
 * one unit lower. */
static int64_t upper_nodes(const void *arg, int64_t begin, int64_t end, uint64_t *out)
{
    const build *b = arg;
    int64_t n = 0;
    for (int64_t c = begin; c < end; c++) {
        leaf_place p = place_leaf(b->tree, (int32_t)c);
        if (!(p.outside & (FACE_BIT[1] | FACE_BIT[3] | FACE_BIT[5]))) continue;
        uint32_t mids = midpoints(b, b->info[c].finer);
        int32_t top[3];
        for (int a = 0; a < 3; a++) top[a] = p.outside & FACE_BIT[2 * a + 1] ? 2 : 1;
        for (int32_t z = 0; z <= top[2]; z++)
            for (int32_t y = 0; y <= top[1]; y++)
                for (int32_t x = 0; x <= top[0]; x++) {
                    int32_t at[3] = {x, y, z}, middles = (x == 1) + (y == 1) + (z == 1);
                    if (x < 2 && y < 2 && z < 2) continue;
                    if (middles == 1) {
                        int32_t a = x == 1 ? 0 : y == 1 ? 1 : 2;
                        int32_t e = edge_number(a, at[(a + 1) % 3] / 2, at[(a + 2) % 3] / 2);
                        if (!(mids >> e & 1)) continue;
                    }
                    if (out)
                        out[n] = un_morton((uint32_t)(2 * p.at[0] + x * p.size),
                                           (uint32_t)(2 * p.at[1] + y * p.size),
                                           (uint32_t)(2 * p.at[2] + z * p.size));
                    n++;
                }
    }
    return n;
}

static int64_t lower_bound(const uint64_t *keys, int64_t count, uint64_t key)
{
    int64_t lo = 0, hi = count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (keys[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void number_upper(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    for (int64_t r = begin; r < end; r++) {
        int64_t c = lower_bound(b->tree->key, b->tree->leaf_count, b->upper_key[r] >> 3);
        b->upper_id[r] = (int32_t)(r + b->first_node[c]);
    }
}

static void shift_by_upper(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    int64_t r = lower_bound(b->upper_key, b->upper_count, b->tree->key[begin] << 3);
    for (int64_t c = begin; c < end; c++) {
        while (r < b->upper_count && b->upper_key[r] < b->tree->key[c] << 3) r++;
        b->first_node[c] += (int32_t)r;
    }
}

/* ---- nodes ---- */

static void set_node(un_tets *mesh, int32_t n, uint64_t key)
{
    double unit = mesh->tree->unit;
    mesh->node_key[n] = key;
    mesh->x[n] = un_v3(unit * un_morton_gather(key), unit * un_morton_gather(key >> 1),
                       unit * un_morton_gather(key >> 2));
}

static void fill_nodes(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    const un_octree *tree = b->tree;
    for (int64_t c = begin; c < end; c++) {
        leaf_place p = place_leaf(tree, (int32_t)c);
        /* Where the lower corner meets the leaves below, only the one across the corner may differ
         * by more than a level. */
        const uint32_t below = 1u << 12 | 1u << 10 | 1u << 4 | 1u << 9 | 1u << 3 | 1u << 1;
        int32_t level = tree->level[c], corner_level = level + (b->info[c].finer & below ? 1 : 0);
        int32_t diagonal = un_octree_find_at(tree, p.at[0] - 1, p.at[1] - 1, p.at[2] - 1);
        if (diagonal >= 0 && tree->level[diagonal] > corner_level)
            corner_level = tree->level[diagonal];
        int32_t n = b->first_node[c];
        for (uint32_t mask = b->mask[c]; mask; mask &= mask - 1, n++) {
            uint32_t octant = (uint32_t)__builtin_ctz(mask);
            set_node(b->mesh, n,
                     tree->key[c] << 3 | (uint64_t)octant << 3 * (tree->level_max - level));
            bool wall = (octant == 6 && (p.outside & FACE_BIT[0])) ||
                        (octant == 5 && (p.outside & FACE_BIT[2])) ||
                        (octant == 3 && (p.outside & FACE_BIT[4]));
            int32_t node_level = octant == 0           ? corner_level
                                 : octant == 7 || wall ? level
                                                       : level + 1;
            b->mesh->node_level[n] = (uint8_t)node_level;
        }
    }
}

static void fill_upper_nodes(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    const un_octree *tree = b->tree;
    for (int64_t r = begin; r < end; r++) {
        uint64_t key = b->upper_key[r];
        int32_t n = b->upper_id[r], level = 0, at[3];
        set_node(b->mesh, n, key);
        for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(key >> a);
        for (int k = 0; k < 8; k++) {
            int32_t m = un_octree_find_at(tree, (at[0] - (k & 1)) >> 1, (at[1] - (k >> 1 & 1)) >> 1,
                                          (at[2] - (k >> 2)) >> 1);
            if (m >= 0 && tree->level[m] > level) level = tree->level[m];
        }
        b->mesh->node_level[n] = (uint8_t)level;
    }
}

/* The number of the node at `at`, in units. */
static int32_t node_at(const build *b, int32_t x, int32_t y, int32_t z)
{
    const un_octree *tree = b->tree;
    uint64_t key = un_morton((uint32_t)x, (uint32_t)y, (uint32_t)z);
    if (x == 2 * tree->n[0] || y == 2 * tree->n[1] || z == 2 * tree->n[2]) {
        int64_t r = lower_bound(b->upper_key, b->upper_count, key);
        UN_ASSERT(r < b->upper_count && b->upper_key[r] == key);
        return b->upper_id[r];
    }
    int32_t m = un_octree_find_key(tree, key >> 3);
    uint32_t octant = key >> 3 * (tree->level_max - tree->level[m]) & 7;
    UN_ASSERT(b->mask[m] >> octant & 1);
    return b->first_node[m] + __builtin_popcount(b->mask[m] & ((1u << octant) - 1));
}

/* ---- tets ---- */

typedef struct tet_writer {
    const build *b;
    int32_t t;
    uint8_t level;
    int32_t id[UN_PLACE_BEYOND + 1]; /* of the nodes around the leaf */
} tet_writer;

static inline void write_tet(tet_writer *w, int32_t shape)
{
    un_tets *mesh = w->b->mesh;
    const uint8_t *place = w->b->templates[shape].place;
    for (int i = 0; i < 4; i++) mesh->tet[w->t][i] = w->id[place[i]];
    mesh->shape[w->t] = (uint8_t)shape;
    mesh->level[w->t++] = w->level;
}

/* The triangles of a face, by edge and half. */
static inline void write_fan(tet_writer *w, uint32_t halved, int32_t whole_shape,
                             int32_t half_shape)
{
    for (int32_t e = 0; e < 4; e++)
        if (halved >> e & 1) {
            write_tet(w, half_shape + 2 * e);
            write_tet(w, half_shape + 2 * e + 1);
        } else
            write_tet(w, whole_shape + e);
}

static void fill_tets(void *arg, int64_t begin, int64_t end)
{
    build *b = arg;
    un_tets *mesh = b->mesh;
    const un_octree *tree = b->tree;
    for (int64_t c = begin; c < end; c++) {
        leaf_place p = place_leaf(tree, (int32_t)c);
        leaf_info info = b->info[c];
        tet_writer w = {.b = b, .t = b->first_tet[c], .level = tree->level[c]};
        uint32_t mids = midpoints(b, info.finer), fan = info.finer | p.outside;
        uint32_t places = 0;
        for (int32_t k = 0; k < 27; k++) {
            int32_t at[3] = {k % 3, k / 3 % 3, k / 9};
            int32_t middles = (at[0] == 1) + (at[1] == 1) + (at[2] == 1);
            bool node = middles == 0 || middles == 3;
            if (middles == 1) {
                int32_t a = at[0] == 1 ? 0 : at[1] == 1 ? 1 : 2;
                node = mids >> edge_number(a, at[(a + 1) % 3] / 2, at[(a + 2) % 3] / 2) & 1;
            } else if (middles == 2)
                node = fan >> k & 1;
            if (node) places |= 1u << k;
        }
        for (; places; places &= places - 1) {
            int32_t k = __builtin_ctz(places), s = p.size;
            w.id[k] = node_at(b, 2 * p.at[0] + s * (k % 3), 2 * p.at[1] + s * (k / 3 % 3),
                              2 * p.at[2] + s * (k / 9));
        }
        for (int32_t f = 0; f < 6; f++) {
            int32_t a, u, v;
            un_face_axes(f, &a, &u, &v);
            uint32_t halved = 0;
            for (int32_t e = 0; e < 4; e++) halved |= (mids >> b->face_edge[f][e] & 1) << e;
            if (info.larger & FACE_BIT[f]) {
                /* The larger face's middle is the corner away from the parent's own corner. */
                int32_t diagonal = ((p.at[u] ^ p.at[v]) & p.size) != 0;
                mesh->face_tet[c][f] = w.t;
                mesh->face_code[c][f] = (uint8_t)(UN_FACE_CUT | diagonal);
                write_tet(&w, UN_SHAPE_CUT + (2 * f + diagonal) * 2);
                write_tet(&w, UN_SHAPE_CUT + (2 * f + diagonal) * 2 + 1);
            } else if (fan & FACE_BIT[f]) {
                bool finer = info.finer & FACE_BIT[f];
                mesh->face_tet[c][f] = w.t;
                mesh->face_code[c][f] = (uint8_t)(UN_FACE_FAN | halved);
                write_fan(&w, halved, UN_SHAPE_WALL + 4 * f,
                          (finer ? UN_SHAPE_FINER_HALF : UN_SHAPE_WALL_HALF) + 8 * f);
            } else if (f % 2) {
                int32_t at[3] = {p.at[0], p.at[1], p.at[2]};
                at[a] += p.size;
                int32_t m = un_octree_find_at(tree, at[0], at[1], at[2]);
                w.id[UN_PLACE_BEYOND] = b->first_node[m] + __builtin_popcount(b->mask[m] & 0x7f);
                /* Also for the leaf behind: each entry is written once. */
                mesh->face_tet[c][f] = mesh->face_tet[m][f - 1] = w.t;
                mesh->face_code[c][f] = (uint8_t)(UN_FACE_OWN | halved);
                mesh->face_code[m][f - 1] = (uint8_t)(UN_FACE_OTHER | halved);
                write_fan(&w, halved, UN_SHAPE_SAME + 4 * a, UN_SHAPE_SAME_HALF + 8 * a);
            }
        }
        UN_ASSERT(w.t == b->first_tet[c + 1]);
    }
}

/* ---- all of it ---- */

static un_status too_many(un_context *ctx, const char *what, double count)
{
    return un_fail(ctx, UN_ERROR_MEMORY,
                   "the mesh would have %.3g %s, more than 32-bit indices can count; make "
                   "detail.finest smaller, or sizes coarser",
                   count, what);
}

static un_status need(un_tets *mesh, int32_t array, void *pointer, int64_t count, size_t size)
{
    return un_array_need(mesh->ctx, pointer, &mesh->capacity[array], (size_t)count, size);
}

static un_status number_nodes_and_tets(build *b, un_arena *arena)
{
    un_tets *mesh = b->mesh;
    const un_octree *tree = b->tree;
    size_t room = (size_t)tree->leaf_count + 1;
    b->info = un_arena_alloc(arena, room, sizeof *b->info);
    b->mask = un_arena_alloc(arena, room, sizeof *b->mask);
    b->first_node = un_arena_alloc(arena, room, sizeof *b->first_node);
    b->first_tet = un_arena_alloc(arena, room, sizeof *b->first_tet);
    if (!b->info || !b->mask || !b->first_node || !b->first_tet) return UN_ERROR_MEMORY;
    un_parallel_for(mesh->ctx, tree->leaf_count, LEAF_GRAIN, examine_leaves, b);
    UN_TRY(un_collect(mesh->ctx, arena, upper_nodes, b, tree->leaf_count, &b->upper_key,
                      &b->upper_count, 0));
    UN_TRY(un_parallel_sort_keys(mesh->ctx, arena, b->upper_key, b->upper_count, 63));
    b->upper_id = un_arena_alloc(arena, (size_t)b->upper_count + 1, sizeof *b->upper_id);
    if (!b->upper_id) return UN_ERROR_MEMORY;
    int64_t node_count = un_parallel_scan(mesh->ctx, b->first_node, tree->leaf_count);
    int64_t tet_count = un_parallel_scan(mesh->ctx, b->first_tet, tree->leaf_count);
    if (4 * tet_count > INT32_MAX) return too_many(mesh->ctx, "tets", (double)tet_count);
    b->first_node[tree->leaf_count] = (int32_t)node_count;
    b->first_tet[tree->leaf_count] = (int32_t)tet_count;
    un_parallel_for(mesh->ctx, b->upper_count, LEAF_GRAIN, number_upper, b);
    un_parallel_for(mesh->ctx, tree->leaf_count, LEAF_GRAIN, shift_by_upper, b);
    node_count += b->upper_count;
    b->first_node[tree->leaf_count] = (int32_t)node_count;
    UN_TRY(need(mesh, 0, &mesh->node_key, node_count, sizeof *mesh->node_key));
    UN_TRY(need(mesh, 1, &mesh->x, node_count, sizeof *mesh->x));
    UN_TRY(need(mesh, 2, &mesh->node_level, node_count, sizeof *mesh->node_level));
    UN_TRY(need(mesh, 3, &mesh->tet, tet_count, sizeof *mesh->tet));
    UN_TRY(need(mesh, 4, &mesh->shape, tet_count, sizeof *mesh->shape));
    UN_TRY(need(mesh, 5, &mesh->level, tet_count, sizeof *mesh->level));
    UN_TRY(need(mesh, 6, &mesh->face_tet, tree->leaf_count, sizeof *mesh->face_tet));
    UN_TRY(need(mesh, 7, &mesh->face_code, tree->leaf_count, sizeof *mesh->face_code));
    UN_TRY(need(mesh, 8, &mesh->first, node_count + 1, sizeof *mesh->first));
    UN_TRY(need(mesh, 9, &mesh->corner, 4 * tet_count, sizeof *mesh->corner));
    mesh->node_count = (int32_t)node_count;
    mesh->tet_count = (int32_t)tet_count;
    return UN_OK;
}

un_status un_tets_build(un_tets *mesh, un_arena *arena, const un_octree *tree)
{
    UN_ASSERT(tree->leaf_count > 0);
    build b = {.mesh = mesh, .tree = tree};
    mesh->tree = tree;
    mesh->node_count = mesh->tet_count = 0;
    number_edges(&b);
    un_tet_templates(b.templates);
    UN_TRY(number_nodes_and_tets(&b, arena));
    un_parallel_for(mesh->ctx, tree->leaf_count, LEAF_GRAIN, fill_nodes, &b);
    un_parallel_for(mesh->ctx, b.upper_count, LEAF_GRAIN, fill_upper_nodes, &b);
    un_parallel_for(mesh->ctx, tree->leaf_count, LEAF_GRAIN, fill_tets, &b);
    un_status status = un_tets_incidence(mesh, arena, b.first_node, b.first_tet);
    if (status != UN_OK) mesh->node_count = mesh->tet_count = 0;
    return status;
}

void un_tets_free(un_tets *mesh)
{
    un_free(mesh->ctx, mesh->node_key);
    un_free(mesh->ctx, mesh->x);
    un_free(mesh->ctx, mesh->node_level);
    un_free(mesh->ctx, mesh->tet);
    un_free(mesh->ctx, mesh->shape);
    un_free(mesh->ctx, mesh->level);
    un_free(mesh->ctx, mesh->face_tet);
    un_free(mesh->ctx, mesh->face_code);
    un_free(mesh->ctx, mesh->first);
    un_free(mesh->ctx, mesh->corner);
    un_tets_init(mesh->ctx, mesh);
}
