/* Nodes of tets: lists of neighbours, and derivatives of fields that are linear in each tet.
 *
 * grad phi is constant in a tet. The divergence of m = grad phi / |grad phi| at a node is that of
 * the linear elements, lumped,
 *
 *     kappa_n = - sum_t V_t grad(lambda_n) . (m_t - m_n) / sum_t V_t / 4,
 *
 * where m_n is the mean of the m_t around the node: it changes nothing inside the mesh and makes
 * flat surfaces flat at its boundary. The strain at a node is the mean over its tets that are all
 * liquid.
 *
 * Each neighbour of a node belongs to four to six of its tets. Loops over neighbours are faster
 * with each of them listed once. */
#include "sizing/sizing.h"

/* A node inside the mesh with T tets has T / 2 + 2 neighbours (its link is a sphere of T
 * triangles), one in the boundary some more. The lists of the few that do not fit go elsewhere. */
#define SPARE 5
#define SEEN 1024

typedef struct tet_nodes {
    const un_tets *mesh;
    float (*normal)[3];                    /* at tets; NULL until needed */
    uint8_t edge[UN_TET_SHAPES_MAX][4][4]; /* squared lengths between corners, half leaf edges */
    int32_t
        odd; /* 1 if the own nodes' tets come one later in the lists of one rank, or three, ... */
    double volume[UN_LEVELS_MAX + 1]; /* of leaves */
} tet_nodes;

static inline double volume_of(const tet_nodes *t, int32_t tet)
{
    return un_tets_shape(t->mesh, tet)->volume * t->volume[t->mesh->level[tet]];
}

/* ---- neighbours ---- */

typedef struct list_args {
    const tet_nodes *tets;
    const uint8_t *used;
    int32_t *first, *near;
    uint8_t *count, *code;
    float *length; /* NULL: no node was moved, codes tell */
} list_args;

/* The code of the edge between corners i and j: level * 16 + its squared length in half leaf edges.
 */
static inline uint8_t code_of(const tet_nodes *t, int32_t tet, int i, int j)
{
    return (uint8_t)(t->mesh->level[tet] << 4 | t->edge[t->mesh->shape[tet]][i][j]);
}

/* Where a node's list begins. There is as much room for it as on one rank. */
static inline int64_t first_of(const tet_nodes *t, int64_t n)
{
    return (t->mesh->first[n] + t->odd) / 2 + SPARE * n;
}

static bool is_listed(const int32_t *near, int64_t count, int32_t m)
{
    for (int64_t k = 0; k < count; k++)
        if (near[k] == m) return true;
    return false;
}

static void list_neighbours(void *arg, int64_t begin, int64_t end)
{
    const list_args *a = arg;
    const un_tets *mesh = a->tets->mesh;
    un_part own = un_tets_own_nodes(mesh);
    /* The pairs that were met last, by the neighbour's number; another of this node's pairs may
     * have taken the place of one, then the list tells. */
    uint64_t seen[SEEN];
    for (int s = 0; s < SEEN; s++) seen[s] = UINT64_MAX;
    for (int64_t n = begin; n < end; n++) {
        int64_t from = first_of(a->tets, n), room = first_of(a->tets, n + 1) - from, count = 0;
        a->first[n] = (int32_t)from;
        a->count[n] = 0;
        if (!a->used[n] || n < own.begin || n >= own.end) continue;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] >> 2, i = mesh->corner[k] & 3;
            for (int e = 1; e < 4; e++) {
                int32_t j = (i + e) & 3, m = mesh->tet[t][j];
                uint64_t pair = (uint64_t)n << 32 | (uint32_t)m, last = seen[m % SEEN];
                if (last == pair || !a->used[m]) continue;
                if (last >> 32 == (uint64_t)n &&
                    is_listed(a->near + from, un_min64(count, room), m))
                    continue;
                seen[m % SEEN] = pair;
                if (count < room) {
                    a->near[from + count] = m;
                    if (a->length)
                        a->length[from + count] = (float)un_length(un_sub(mesh->x[m], mesh->x[n]));
                    else
                        a->code[from + count] = code_of(a->tets, t, i, j);
                }
                count++;
            }
        }
        a->count[n] = count <= room && count < UN_NEAR_MANY ? (uint8_t)count : UN_NEAR_MANY;
    }
}

static const uint8_t *next_many(const uint8_t *from, const uint8_t *end)
{
    return memchr(from, UN_NEAR_MANY, (size_t)(end - from));
}

/* Complete lists of the nodes whose neighbours do not fit. */
static un_status list_many(un_arena *arena, un_sizing_nodes *nodes, const tet_nodes *tets)
{
    const un_tets *mesh = tets->mesh;
    const uint8_t *end = nodes->near_count + nodes->count;
    int64_t count = 0, room = 0;
    for (const uint8_t *at = nodes->near_count; (at = next_many(at, end)) != NULL; at++) {
        int64_t n = at - nodes->near_count;
        count++;
        room += 3 * (int64_t)(mesh->first[n + 1] - mesh->first[n]);
    }
    int32_t *many = un_arena_alloc(arena, (size_t)count + 1, sizeof *many);
    int32_t *first = un_arena_alloc(arena, (size_t)count + 1, sizeof *first);
    int32_t *near = un_arena_alloc(arena, (size_t)room + 1, sizeof *near);
    float *length = un_arena_alloc(arena, (size_t)room + 1, sizeof *length);
    if (!many || !first || !near || !length) return UN_ERROR_MEMORY;
    int32_t c = 0, k = 0;
    for (const uint8_t *at = nodes->near_count; (at = next_many(at, end)) != NULL; at++) {
        int64_t n = at - nodes->near_count;
        many[c] = (int32_t)n;
        first[c++] = k;
        for (int32_t e = mesh->first[n]; e < mesh->first[n + 1]; e++) {
            int32_t t = mesh->corner[e] >> 2, i = mesh->corner[e] & 3;
            for (int j = 0; j < 4; j++) {
                int32_t m = mesh->tet[t][j];
                if (j == i || !nodes->used[m]) continue;
                near[k] = m;
                length[k++] = mesh->own_count > 0 ? (float)un_length(un_sub(mesh->x[m], mesh->x[n]))
                                                  : nodes->length[code_of(tets, t, i, j)];
            }
        }
    }
    first[c] = k;
    nodes->many_count = c;
    nodes->many = many;
    nodes->many_first = first;
    nodes->many_near = near;
    nodes->many_length = length;
    return UN_OK;
}

static void measure_edges(tet_nodes *tets)
{
    const un_tets *mesh = tets->mesh;
    for (int32_t s = 0; s < mesh->shape_count; s++) {
        int8_t corner[4][3] = {{0}};
        memcpy(corner[1], mesh->shapes[s].edge, sizeof mesh->shapes[s].edge);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                int d2 = 0;
                for (int axis = 0; axis < 3; axis++) {
                    int d = corner[i][axis] - corner[j][axis];
                    d2 += d * d;
                }
                UN_ASSERT(d2 < 16);
                tets->edge[s][i][j] = (uint8_t)d2;
            }
    }
}

/* ---- curvature ---- */

typedef struct curve_args {
    const tet_nodes *tets;
    const un_sizing_nodes *nodes;
    const float *phi;
    const uint8_t *band;
    float *kappa;
} curve_args;

/* Unit normals of the tets that touch a node in the band. */
static void find_normals(void *arg, int64_t begin, int64_t end)
{
    const curve_args *a = arg;
    const un_tets *mesh = a->tets->mesh;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = mesh->tet[t];
        if (!a->band[n[0]] && !a->band[n[1]] && !a->band[n[2]] && !a->band[n[3]]) continue;
        /* phi may be infinite on one side of a coarse cell */
        double v[4], most = 4 * a->nodes->cell[mesh->level[t]];
        for (int i = 0; i < 4; i++) v[i] = un_clamp(a->phi[n[i]], -most, most);
        un_vec3 m = un_normalize(un_tets_gradient(mesh, (int32_t)t, v));
        a->tets->normal[t][0] = (float)m.x;
        a->tets->normal[t][1] = (float)m.y;
        a->tets->normal[t][2] = (float)m.z;
    }
}

static void find_curvature(void *arg, int64_t begin, int64_t end)
{
    const curve_args *a = arg;
    const un_tets *mesh = a->tets->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->kappa[n] = 0;
        if (!a->band[n]) continue;
        double m[3] = {0}, g[3] = {0}, flux = 0, whole = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] >> 2;
            const double *gradient = un_tets_shape(mesh, t)->gradient[mesh->corner[k] & 3];
            const float *normal = a->tets->normal[t];
            double v = volume_of(a->tets, t), w = v / a->nodes->cell[mesh->level[t]];
            whole += v;
            for (int axis = 0; axis < 3; axis++) {
                m[axis] += v * normal[axis];
                g[axis] += w * gradient[axis];
                flux -= w * gradient[axis] * normal[axis];
            }
        }
        if (!(whole > 0)) continue;
        for (int axis = 0; axis < 3; axis++) flux += g[axis] * m[axis] / whole;
        a->kappa[n] = (float)(4 * flux / whole);
    }
}

static un_status tets_curvature(un_context *ctx, un_arena *arena, float *kappa,
                                const un_sizing_nodes *nodes, const float *phi, const uint8_t *band)
{
    tet_nodes *tets = nodes->mesh;
    curve_args a = {tets, nodes, phi, band, kappa};
    if (!tets->normal)
        tets->normal =
            un_arena_alloc(arena, (size_t)tets->mesh->tet_count + 1, sizeof *tets->normal);
    if (!tets->normal) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, tets->mesh->tet_count, 4096, find_normals, &a);
    un_parallel_part(ctx, un_sizing_own(nodes), 1024, find_curvature, &a);
    return UN_OK;
}

/* ---- strain ---- */

typedef struct strain_args {
    const tet_nodes *tets;
    const un_sizing_nodes *nodes;
    const un_sizing_flow *flow;
    float *norm; /* at tets: |e|, < 0 where it is not known */
    float *length;
} strain_args;

static void find_strain(void *arg, int64_t begin, int64_t end)
{
    const strain_args *a = arg;
    const un_tets *mesh = a->tets->mesh;
    const un_vec3 *u = a->flow->u;
    const float *phi = a->flow->phi;
    double reach = a->flow->deep;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = mesh->tet[t];
        bool wet = phi[n[0]] < 0 && phi[n[1]] < 0 && phi[n[2]] < 0 && phi[n[3]] < 0;
        bool deep =
            phi[n[0]] < -reach && phi[n[1]] < -reach && phi[n[2]] < -reach && phi[n[3]] < -reach;
        a->norm[t] = -1;
        if (!wet || deep) continue;
        const un_tet_shape *s = un_tets_shape(mesh, (int32_t)t);
        double g[3][3] = {{0}};
        for (int i = 0; i < 4; i++) {
            un_vec3 v = u[n[i]];
            for (int axis = 0; axis < 3; axis++) {
                g[0][axis] += v.x * s->gradient[i][axis];
                g[1][axis] += v.y * s->gradient[i][axis];
                g[2][axis] += v.z * s->gradient[i][axis];
            }
        }
        double xy = g[0][1] + g[1][0], yz = g[1][2] + g[2][1], zx = g[2][0] + g[0][2];
        double e2 = g[0][0] * g[0][0] + g[1][1] * g[1][1] + g[2][2] * g[2][2] +
                    0.5 * (xy * xy + yz * yz + zx * zx);
        a->norm[t] = (float)(sqrt(e2) / a->nodes->cell[mesh->level[t]]);
    }
}

static void average_strain(void *arg, int64_t begin, int64_t end)
{
    const strain_args *a = arg;
    const un_tets *mesh = a->tets->mesh;
    const float *phi = a->flow->phi;
    for (int64_t n = begin; n < end; n++) {
        a->length[n] = INFINITY;
        if (!(phi[n] < 0 && phi[n] >= -a->flow->deep)) continue;
        double sum = 0, weight = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] >> 2;
            if (!(a->norm[t] >= 0)) continue;
            double v = volume_of(a->tets, t);
            sum += v * a->norm[t];
            weight += v;
        }
        a->length[n] = (float)(a->flow->speed * weight / sum);
    }
}

static un_status tets_strain(un_context *ctx, un_arena *arena, float *length,
                             const un_sizing_nodes *nodes, const un_sizing_flow *flow)
{
    const tet_nodes *tets = nodes->mesh;
    strain_args a = {tets, nodes, flow, NULL, length};
    a.norm = un_arena_alloc(arena, (size_t)tets->mesh->tet_count + 1, sizeof *a.norm);
    if (!a.norm) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, tets->mesh->tet_count, 4096, find_strain, &a);
    un_parallel_part(ctx, un_sizing_own(nodes), 1024, average_strain, &a);
    return UN_OK;
}

/* ---- direction ---- */

/* The mean over the node's tets. */
static un_vec3 tets_direction(const un_sizing_nodes *nodes, int32_t n, const float *field)
{
    const tet_nodes *tets = nodes->mesh;
    const un_tets *mesh = tets->mesh;
    un_vec3 sum = {0, 0, 0};
    double most = 4 * nodes->cell[mesh->node_level[n]];
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] >> 2;
        double v[4];
        for (int i = 0; i < 4; i++) v[i] = un_clamp(field[mesh->tet[t][i]] - field[n], -most, most);
        sum = un_mad(sum, un_tets_gradient(mesh, t, v), volume_of(tets, t));
    }
    return un_normalize(sum);
}

static const un_sizing_slopes tets_slopes = {tets_curvature, tets_strain, tets_direction};

/* ---- all ---- */

/* Lists are as long as half of a node's tets, rounded up or down as tets before it are counted. */
static int32_t find_odd(un_context *ctx, const un_tets *mesh)
{
    if (!mesh->share) return 0;
    un_part own = un_tets_own_nodes(mesh);
    un_range corners = un_ranks_range(ctx, mesh->first[own.end] - mesh->first[own.begin]);
    return (corners.begin - mesh->first[own.begin]) % 2 != 0;
}

static un_status find_nodes(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                            const un_tets *mesh, const float *phi, int32_t odd)
{
    const un_octree *tree = mesh->tree;
    tet_nodes *tets = un_arena_alloc(arena, 1, sizeof *tets);
    if (!tets) return UN_ERROR_MEMORY;
    *tets = (tet_nodes){.mesh = mesh, .odd = odd};
    *nodes = (un_sizing_nodes){.count = mesh->node_count,
                               .dim = 3,
                               .x = mesh->x,
                               .level = mesh->node_level,
                               .cell = tree->edge,
                               .finest = tree->h,
                               .coarsest = un_octree_size(tree, 0),
                               .slopes = &tets_slopes,
                               .mesh = tets,
                               .shared = mesh->share ? mesh : NULL};
    measure_edges(tets);
    for (int32_t l = 0; l <= tree->level_max; l++)
        tets->volume[l] = tree->edge[l] * tree->edge[l] * tree->edge[l];
    for (int32_t code = 0; code < 16 * (tree->level_max + 1) && code < 256; code++)
        nodes->length[code] = (float)(0.5 * sqrt(code & 15) * un_octree_size(tree, code >> 4));
    UN_TRY(un_sizing_choose(ctx, arena, nodes, phi));
    size_t room = (size_t)first_of(tets, mesh->node_count) + 1, count = (size_t)mesh->node_count;
    list_args a = {.tets = tets,
                   .used = nodes->used,
                   .first = un_arena_alloc(arena, count + 1, sizeof *a.first),
                   .near = un_arena_alloc(arena, room, sizeof *a.near),
                   .count = un_arena_alloc(arena, count + 1, 1)};
    if (!a.first || !a.near || !a.count) return UN_ERROR_MEMORY;
    if (mesh->own_count > 0)
        a.length = un_arena_alloc(arena, room, sizeof *a.length);
    else
        a.code = un_arena_alloc(arena, room, 1);
    if (!a.length && !a.code) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, 1024, list_neighbours, &a);
    a.first[count] = (int32_t)(room - 1);
    nodes->near_first = a.first;
    nodes->near_count = a.count;
    nodes->near = a.near;
    nodes->near_code = a.code;
    nodes->near_length = a.length;
    return list_many(arena, nodes, tets);
}

un_status un_sizing_nodes_tets(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                               const un_tets *mesh, const float *phi)
{
    un_status status = find_nodes(ctx, arena, nodes, mesh, phi, find_odd(ctx, mesh));
    return mesh->share ? un_ranks_agree(ctx, status) : status;
}
