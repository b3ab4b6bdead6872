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
 */
#include "mesh/tets_internal.h"

static void number_places(un_tets_work *w)
{
    static const int32_t step[3] = {1, 3, 9};
    for (int32_t along = 0; along < 3; along++)
        for (int32_t k = 0; k < 4; k++) {
            int32_t u = (along + 1) % 3, v = (along + 2) % 3,
                    e = un_leaf_edge(along, k & 1, k >> 1);
            int32_t du = (k & 1 ? 1 : -1) * step[u], dv = (k & 2 ? 1 : -1) * step[v];
            w->edge_place[e] = (uint8_t)(UN_PLACE_CENTER + du + dv);
            w->edge_beside[e] = 1u << (UN_BESIDE_SELF + du) | 1u << (UN_BESIDE_SELF + dv) |
                                1u << (UN_BESIDE_SELF + du + dv);
        }
    for (int32_t f = 0; f < 6; f++) {
        int32_t a, u, v, side = f % 2;
        un_face_axes(f, &a, &u, &v);
        for (int32_t e = 0; e < 4; e++) {
            int32_t edge = e < 2 ? un_leaf_edge(v, side, e % 2) : un_leaf_edge(u, e % 2, side);
            w->face_edge[f][e] = (uint8_t)edge;
            w->face_edges[f] |= 1u << edge;
        }
    }
    un_family_steps_init(&w->steps);
    un_tet_templates(w->templates);
}

/* ---- a leaf's nodes ---- */

typedef struct leaf_nodes {
    int32_t id[UN_PLACE_BEYOND + 1];
    int32_t behind[6]; /* by face: the leaf behind upper faces, if there is one */
} leaf_nodes;

static inline int32_t center_of(const un_tets_work *w, int32_t c)
{
    return un_leaf_node(w, c, UN_CODE_CENTER);
}

/* Corners, from the leaves whose boxes they are in. */
static inline void find_corners(const un_tets_work *w, const un_family *family, int32_t k,
                                int32_t c, const un_leaf_place *p, leaf_nodes *nodes)
{
    const un_octree *tree = w->tree;
    nodes->id[0] = w->first_node[c];
    nodes->id[UN_PLACE_CENTER] = center_of(w, c);
    for (int32_t corner = 1; corner < 8; corner++) {
        int32_t x = corner & 1, y = corner >> 1 & 1, z = corner >> 2, s = 2 * p->size;
        int32_t d = UN_BESIDE_SELF + x + 3 * y + 9 * z, place = 2 * x + 6 * y + 18 * z;
        if (p->outside >> d & 1) {
            nodes->id[place] = un_tets_node_at(w, 2 * p->at[0] + s * x, 2 * p->at[1] + s * y,
                                               2 * p->at[2] + s * z);
            continue;
        }
        int32_t m = un_family_neighbour(tree, family, &w->steps, k, p, d);
        if (corner == 1) nodes->behind[1] = m;
        if (corner == 2) nodes->behind[3] = m;
        if (corner == 4) nodes->behind[5] = m;
        int32_t id = w->first_node[m];
        if (tree->level[m] < tree->level[c]) {
            uint64_t key = un_beside_key(p->at, p->size, d);
            uint32_t octant = key >> 3 * (tree->level_max - tree->level[m] - 1) & 7;
            id = un_leaf_node(w, m, octant << 3);
        }
        nodes->id[place] = id;
    }
}

/* Midpoints of edges and middles of faces. */
static void find_middles(const un_tets_work *w, int32_t c, const un_leaf_place *p, uint32_t mids,
                         uint32_t fan, leaf_nodes *nodes)
{
    uint32_t places = 0;
    for (int32_t f = 0; f < 6; f++) places |= fan & 1u << un_face_beside(f);
    for (; mids; mids &= mids - 1) places |= 1u << w->edge_place[__builtin_ctz(mids)];
    for (; places; places &= places - 1) {
        int32_t place = __builtin_ctz(places), x = place % 3, y = place / 3 % 3, z = place / 9;
        if (x < 2 && y < 2 && z < 2)
            nodes->id[place] = un_leaf_node(w, c, un_place_code(x, y, z));
        else
            nodes->id[place] =
                un_tets_node_at(w, 2 * p->at[0] + p->size * x, 2 * p->at[1] + p->size * y,
                                2 * p->at[2] + p->size * z);
    }
}

/* ---- tets ---- */

typedef struct tet_writer {
    const un_tets_work *w;
    const int32_t *id;
    int32_t t;
    uint8_t level;
} tet_writer;

static inline void write_tet(tet_writer *out, int32_t shape)
{
    un_tets *mesh = out->w->mesh;
    const uint8_t *place = out->w->templates[shape].place;
    for (int i = 0; i < 4; i++) mesh->tet[out->t][i] = out->id[place[i]];
    mesh->shape[out->t] = (uint8_t)shape;
    mesh->level[out->t++] = out->level;
}

/* The triangles of a face, by edge and half. */
static inline void write_fan(tet_writer *out, uint32_t halved, int32_t whole_shape,
                             int32_t half_shape)
{
    for (int32_t e = 0; e < 4; e++)
        if (halved >> e & 1) {
            write_tet(out, half_shape + 2 * e);
            write_tet(out, half_shape + 2 * e + 1);
        } else
            write_tet(out, whole_shape + e);
}

static void fill_leaf(const un_tets_work *w, const un_family *family, int32_t k, int32_t c)
{
    un_tets *mesh = w->mesh;
    un_leaf_place p = un_leaf_place_of(w->tree, c);
    un_leaf_info info = w->info[c];
    uint32_t mids = un_leaf_midpoints(w, info.finer), fan = info.finer | p.outside;
    leaf_nodes nodes;
    find_corners(w, family, k, c, &p, &nodes);
    if (fan) find_middles(w, c, &p, mids, fan, &nodes);
    tet_writer out = {w, nodes.id, w->first_tet[c], w->tree->level[c]};
    for (int32_t f = 0; f < 6; f++) {
        int32_t a, u, v, first = out.t;
        un_face_axes(f, &a, &u, &v);
        uint32_t behind = 1u << un_face_beside(f), code, halved = 0;
        for (int32_t e = 0; mids && e < 4; e++) halved |= (mids >> w->face_edge[f][e] & 1) << e;
        if (info.larger & behind) {
            /* The middle of the larger face is the corner towards the leaf's siblings. */
            uint32_t diagonal = ((p.at[u] ^ p.at[v]) & p.size) != 0;
            int32_t shape = UN_SHAPE_CUT + (2 * f + (int32_t)diagonal) * 2;
            write_tet(&out, shape);
            write_tet(&out, shape + 1);
            code = UN_FACE_CUT | diagonal;
        } else if (fan & behind) {
            int32_t half = info.finer & behind ? UN_SHAPE_FINER_HALF : UN_SHAPE_WALL_HALF;
            write_fan(&out, halved, UN_SHAPE_WALL + 4 * f, half + 8 * f);
            code = UN_FACE_FAN | halved;
        } else if (f % 2) {
            int32_t m = nodes.behind[f];
            nodes.id[UN_PLACE_BEYOND] = center_of(w, m);
            write_fan(&out, halved, UN_SHAPE_SAME + 4 * a, UN_SHAPE_SAME_HALF + 8 * a);
            code = UN_FACE_OWN | halved;
            /* The entry of a lower face of the same size is written here and nowhere else. */
            mesh->face_tet[m][f - 1] = first;
            mesh->face_code[m][f - 1] = (uint8_t)(UN_FACE_OTHER | halved);
        } else
            continue;
        mesh->face_tet[c][f] = first;
        mesh->face_code[c][f] = (uint8_t)code;
    }
    UN_ASSERT(out.t == w->first_tet[c + 1]);
}

static void fill_tets(void *arg, int64_t begin, int64_t end)
{
    un_tets_work *w = arg;
    int64_t c = un_family_begin(w->tree, begin);
    while (c < end) {
        un_family family;
        int32_t count = un_family_look(w->tree, (int32_t)c, UN_BESIDE_UPPER, &family) ? 8 : 1;
        for (int32_t k = 0; k < count; k++)
            if (!w->use || w->use[c + k] == UN_LEAF_TETS) fill_leaf(w, &family, k, (int32_t)c + k);
        c += count;
    }
}

/* Until they get tets. */
static void clear_faces(void *arg, int64_t begin, int64_t end)
{
    const un_tets_work *w = arg;
    for (int64_t c = begin; c < end; c++)
        for (int f = 0; f < 6; f++) {
            w->mesh->face_tet[c][f] = w->mesh->tet_count;
            w->mesh->face_code[c][f] = UN_FACE_OWN;
        }
}

/* The node that is nowhere, and the tets. */
static void add_nowhere(un_tets *mesh)
{
    int32_t n = mesh->node_count++, corner = 4 * mesh->tet_count;
    mesh->node_key[n] = mesh->end_key;
    mesh->x[n] = un_tets_home(mesh, mesh->end_key);
    mesh->node_level[n] = 0;
    for (int32_t k = 0; k < UN_NOWHERE_TETS; k++) {
        int32_t t = mesh->tet_count++;
        for (int i = 0; i < 4; i++) mesh->tet[t][i] = n;
        mesh->shape[t] = UN_SHAPE_SAME;
        mesh->level[t] = 0;
    }
    for (; corner < 4 * mesh->tet_count; corner++) mesh->corner[corner] = corner;
    mesh->first[mesh->node_count] = corner;
}

un_status un_tets_build(un_tets *mesh, un_arena *arena, const un_octree *tree)
{
    UN_ASSERT(tree->leaf_count > 0);
    un_tets_work w = {.mesh = mesh, .tree = tree};
    mesh->tree = tree;
    mesh->share = NULL;
    mesh->end_key = un_morton((uint32_t)(2 * tree->n[0]), (uint32_t)(2 * tree->n[1]),
                              (uint32_t)(2 * tree->n[2]));
    mesh->node_count = mesh->tet_count = mesh->own_count = 0;
    mesh->parted = false;
    number_places(&w);
    UN_TRY(un_tets_number(&w, arena));
    if (w.use) un_parallel_for(mesh->ctx, tree->leaf_count, UN_TETS_GRAIN, clear_faces, &w);
    un_parallel_for(mesh->ctx, tree->leaf_count, UN_TETS_GRAIN, fill_tets, &w);
    un_status status = un_tets_incidence(&w, arena);
    if (status != UN_OK) mesh->node_count = mesh->tet_count = 0;
    if (status == UN_OK && w.use) add_nowhere(mesh);
    mesh->plain_nodes = mesh->node_count;
    mesh->plain_tets = mesh->tet_count;
    return status;
}

void un_tets_strip(un_tets *mesh)
{
    un_free(mesh->ctx, mesh->shape);
    un_free(mesh->ctx, mesh->level);
    un_free(mesh->ctx, mesh->face_tet);
    un_free(mesh->ctx, mesh->face_code);
    un_free(mesh->ctx, mesh->first);
    un_free(mesh->ctx, mesh->corner);
    un_free(mesh->ctx, mesh->own_first);
    un_free(mesh->ctx, mesh->own);
    un_free(mesh->ctx, mesh->part);
    un_free(mesh->ctx, mesh->origin);
    un_free(mesh->ctx, mesh->side);
    mesh->shape = mesh->level = NULL;
    mesh->face_tet = NULL;
    mesh->face_code = NULL;
    mesh->first = mesh->corner = mesh->own_first = NULL;
    mesh->own = NULL;
    mesh->own_count = 0;
    mesh->part = mesh->origin = NULL;
    mesh->side = NULL;
    mesh->parted = false;
    for (int32_t array = 4; array < 15; array++) mesh->capacity[array] = 0;
}

void un_tets_free(un_tets *mesh)
{
    un_tets_strip(mesh);
    un_free(mesh->ctx, mesh->node_key);
    un_free(mesh->ctx, mesh->x);
    un_free(mesh->ctx, mesh->node_level);
    un_free(mesh->ctx, mesh->tet);
    un_tets_init(mesh->ctx, mesh);
}
