/* Cut tets, cut edges and the triangles between them.
 *
 * A tet with liquid and air among its nodes holds a triangle, or a quad as two triangles; cut edges
 * carry one vertex each. Since the mesh conforms, the segment that the surface has in a face is the
 * same from both sides, and a quad's diagonal lies inside its tet: each edge of the surface has
 * exactly two triangles, except those in the brick's boundary.
 *
 * Everything is numbered along the mesh (tets, nodes, and the edges by their lesser node), so the
 * order does not depend on threads. */
#include "surface/cut.h"

#define TET_GRAIN 4096
#define NODE_GRAIN 4096
#define CUT_GRAIN 128

/* ---- lists ---- */

typedef struct list_args {
    const uint8_t *keep;
    int32_t *list;
    int64_t grain;
    int32_t first[UN_BLOCKS_MAX + 1];
} list_args;

static void count_kept(void *arg, int64_t begin, int64_t end)
{
    list_args *a = arg;
    int32_t count = 0;
    for (int64_t i = begin; i < end; i++) count += a->keep[i] != 0;
    a->first[begin / a->grain + 1] = count;
}

static void write_kept(void *arg, int64_t begin, int64_t end)
{
    list_args *a = arg;
    int32_t *list = a->list + a->first[begin / a->grain];
    for (int64_t i = begin; i < end; i++) {
        uint64_t eight;
        if (i + 8 <= end && (memcpy(&eight, a->keep + i, 8), !eight))
            i += 7;
        else if (a->keep[i])
            *list++ = (int32_t)i;
    }
}

static int32_t begin_list(un_context *ctx, list_args *a, const uint8_t *keep, int64_t count)
{
    *a = (list_args){.keep = keep, .grain = un_block_grain(count)};
    int64_t blocks = (count + a->grain - 1) / a->grain;
    un_parallel_for(ctx, count, a->grain, count_kept, a);
    for (int64_t b = 0; b < blocks; b++) a->first[b + 1] += a->first[b];
    return a->first[blocks];
}

un_status un_cut_list(un_context *ctx, un_arena *arena, const uint8_t *keep, int64_t count,
                      int32_t **list, int32_t *list_count)
{
    list_args a;
    *list_count = begin_list(ctx, &a, keep, count);
    *list = a.list = un_arena_alloc(arena, (size_t)*list_count + 1, sizeof *a.list);
    if (!a.list) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, count, a.grain, write_kept, &a);
    return UN_OK;
}

int32_t un_cut_list_into(un_context *ctx, int32_t *list, const uint8_t *keep, int64_t count)
{
    list_args a;
    int32_t kept = begin_list(ctx, &a, keep, count);
    a.list = list;
    un_parallel_for(ctx, count, a.grain, write_kept, &a);
    return kept;
}

/* ---- cut tets ---- */

typedef struct find_args {
    un_cut *cut;
    const float *phi;
    const un_tet_graph *graph;
    uint8_t *flag; /* by tet, later by node */
    double hair;
} find_args;

static void find_liquid(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->cut->liquid[n] = un_cut_liquid(a->phi[n]);
}

static bool is_own(un_part own, const int32_t n[4])
{
    for (int32_t c = 0; c < 4; c++)
        if (n[c] >= own.begin && n[c] < own.end) return true;
    return false;
}

/* Of the tets around own nodes. */
static void find_tets(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    const un_tets *mesh = a->cut->mesh;
    const uint8_t *liquid = a->cut->liquid;
    un_part own = un_tets_own_nodes(mesh);
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = mesh->tet[t];
        int32_t sum = liquid[n[0]] + liquid[n[1]] + liquid[n[2]] + liquid[n[3]];
        a->flag[t] = sum != 0 && sum != 4 && is_own(own, n);
    }
}

static void clear_places(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->cut->place[n] = -1;
}

/* ---- cut edges ---- */

/* Enough for any node of a balanced mesh; nodes have some 14 neighbours, rarely 40. */
#define NEIGHBOURS_MAX 128

/* Adds m, keeping the row ascending, if it is a greater neighbour of the other sign and not there
 * yet. */
static inline int32_t add_to_row(const un_cut *cut, int32_t n, int32_t m, int32_t *row,
                                 int32_t count)
{
    int32_t at = count;
    if (m <= n || cut->liquid[m] == cut->liquid[n]) return count;
    while (at > 0 && row[at - 1] > m) at--;
    if (at > 0 && row[at - 1] == m) return count;
    UN_ASSERT(count < NEIGHBOURS_MAX);
    memmove(row + at + 1, row + at, (size_t)(count - at) * sizeof *row);
    row[at] = m;
    return count + 1;
}

static int32_t find_row(const find_args *a, int32_t n, int32_t row[NEIGHBOURS_MAX])
{
    const un_cut *cut = a->cut;
    const un_tets *mesh = cut->mesh;
    int32_t count = 0;
    if (a->graph) {
        for (int32_t q = a->graph->first[n]; q < a->graph->first[n + 1]; q++)
            count = add_to_row(cut, n, a->graph->to[q], row, count);
        return count;
    }
    for (int32_t q = mesh->first[n]; q < mesh->first[n + 1]; q++) {
        const int32_t *tet = mesh->tet[mesh->corner[q] / 4];
        for (int32_t c = 0; c < 4; c++) count = add_to_row(cut, n, tet[c], row, count);
    }
    return count;
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    un_cut *cut = a->cut;
    int32_t row[NEIGHBOURS_MAX];
    for (int64_t p = begin; p < end; p++) {
        cut->place[cut->node[p]] = (int32_t)p;
        cut->first[p] = find_row(a, cut->node[p], row);
    }
}

static void write_rows(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    un_cut *cut = a->cut;
    int32_t row[NEIGHBOURS_MAX];
    for (int64_t p = begin; p < end; p++) {
        int32_t count = find_row(a, cut->node[p], row), first = cut->first[p];
        for (int32_t e = 0; e < count; e++) {
            cut->from[first + e] = cut->node[p];
            cut->to[first + e] = row[e];
        }
    }
}

/* The indices of list elements in [begin, end). */
static un_part find_part(const int32_t *list, int32_t count, un_part part)
{
    un_part found = {0, 0};
    while (found.begin < count && list[found.begin] < part.begin) found.begin++;
    for (found.end = found.begin; found.end < count && list[found.end] < part.end;) found.end++;
    return found;
}

/* Of cut tets. Others may write the same meanwhile. */
static void flag_nodes(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    for (int64_t i = begin; i < end; i++)
        for (int32_t c = 0; c < 4; c++)
            __atomic_store_n(&a->flag[a->cut->mesh->tet[a->cut->tet[i]][c]], 1, __ATOMIC_RELAXED);
}

un_status un_cut_find(un_context *ctx, un_arena *arena, un_cut *cut, const float *phi,
                      const un_tets *mesh, const un_tet_graph *graph)
{
    *cut = (un_cut){.mesh = mesh};
    size_t nodes = (size_t)mesh->node_count, tets = (size_t)mesh->tet_count;
    find_args a = {.cut = cut, .phi = phi, .graph = graph};
    cut->liquid = un_arena_alloc(arena, nodes + 1, 1);
    cut->place = un_arena_alloc(arena, nodes + 1, sizeof *cut->place);
    a.flag = un_arena_alloc(arena, (tets > nodes ? tets : nodes) + 8, 1);
    if (!cut->liquid || !cut->place || !a.flag) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, find_liquid, &a);
    un_parallel_for(ctx, mesh->node_count, NODE_GRAIN, clear_places, &a);
    un_parallel_for(ctx, mesh->tet_count, TET_GRAIN, find_tets, &a);
    UN_TRY(un_cut_list(ctx, arena, a.flag, mesh->tet_count, &cut->tet, &cut->tet_count));

    memset(a.flag, 0, nodes + 1);
    un_parallel_for(ctx, cut->tet_count, TET_GRAIN, flag_nodes, &a);
    UN_TRY(un_cut_list(ctx, arena, a.flag, mesh->node_count, &cut->node, &cut->node_count));
    cut->first = un_arena_alloc(arena, (size_t)cut->node_count + 1, sizeof *cut->first);
    if (!cut->first) return UN_ERROR_MEMORY;

    un_parallel_for(ctx, cut->node_count, CUT_GRAIN, count_rows, &a);
    cut->vertex_count = (int32_t)un_parallel_scan(ctx, cut->first, cut->node_count);
    cut->first[cut->node_count] = cut->vertex_count;
    size_t vertices = (size_t)cut->vertex_count + 1;
    cut->from = un_arena_alloc(arena, vertices, sizeof *cut->from);
    cut->to = un_arena_alloc(arena, vertices, sizeof *cut->to);
    cut->x = un_arena_alloc(arena, vertices, sizeof *cut->x);
    if (!cut->from || !cut->to || !cut->x) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, cut->node_count, CUT_GRAIN, write_rows, &a);
    cut->own = mesh->share ? find_part(cut->node, cut->node_count, un_tets_own_nodes(mesh))
                           : (un_part){0, cut->node_count};
    return UN_OK;
}

static void interpolate(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    un_cut *cut = a->cut;
    const un_vec3 *x = cut->mesh->x;
    for (int64_t v = begin; v < end; v++) {
        double p = a->phi[cut->from[v]], q = a->phi[cut->to[v]], t = 0.5;
        if (isfinite(p) && isfinite(q)) t = un_clamp(p / (p - q), a->hair, 1 - a->hair);
        un_vec3 y = x[cut->from[v]], z = x[cut->to[v]];
        /* from the nearer end, so that planes of nodes keep their coordinate */
        cut->x[v] = t < 0.5 ? un_mad(y, un_sub(z, y), t) : un_mad(z, un_sub(y, z), 1 - t);
    }
}

void un_cut_interpolate(un_context *ctx, un_cut *cut, const float *phi, double hair)
{
    find_args a = {.cut = cut, .phi = phi, .hair = hair};
    un_parallel_for(ctx, cut->vertex_count, CUT_GRAIN, interpolate, &a);
}

static void keep_off(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    un_cut *cut = a->cut;
    const un_vec3 *x = cut->mesh->x;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 y = x[cut->from[v]], edge = un_sub(x[cut->to[v]], y);
        double t = un_dot(un_sub(cut->x[v], y), edge) / un_dot(edge, edge);
        if (t < a->hair) cut->x[v] = un_mad(y, edge, a->hair);
        if (t > 1 - a->hair) cut->x[v] = un_mad(x[cut->to[v]], edge, -a->hair);
    }
}

void un_cut_keep_off(un_context *ctx, un_cut *cut, double hair)
{
    find_args a = {.cut = cut, .hair = hair};
    un_parallel_for(ctx, cut->vertex_count, CUT_GRAIN, keep_off, &a);
}

/* Vertices nearer to an edge's end than this share of the edge are moved there. */
#define NEXT_TO 1e-6

int32_t un_cut_next_to(const un_cut *cut, int32_t v)
{
    const un_vec3 *x = cut->mesh->x;
    un_vec3 a = x[cut->from[v]], b = x[cut->to[v]], edge = un_sub(b, a);
    un_vec3 da = un_sub(cut->x[v], a), db = un_sub(cut->x[v], b);
    double next_to = NEXT_TO * NEXT_TO * un_dot(edge, edge);
    if (un_dot(da, da) >= next_to && un_dot(db, db) >= next_to) return -1;
    return un_dot(da, da) < next_to ? cut->from[v] : cut->to[v];
}

un_status un_cut_merge(un_arena *arena, un_cut *cut)
{
    cut->same = un_arena_alloc(arena, (size_t)cut->vertex_count + 1, sizeof *cut->same);
    int32_t *first = un_arena_alloc(arena, (size_t)cut->node_count + 1, sizeof *first);
    if (!cut->same || !first) return UN_ERROR_MEMORY;
    for (int32_t p = 0; p < cut->node_count; p++) first[p] = -1;
    for (int32_t v = 0; v < cut->vertex_count; v++) {
        int32_t node = un_cut_next_to(cut, v);
        cut->same[v] = v;
        if (node < 0) continue;
        int32_t *stands = &first[cut->place[node]];
        cut->x[v] = cut->mesh->x[node];
        if (*stands < 0) *stands = v;
        cut->same[v] = *stands;
    }
    return UN_OK;
}

/* ---- triangles ---- */

static int32_t liquid_mask(const un_cut *cut, const int32_t *tet)
{
    const uint8_t *liquid = cut->liquid;
    return liquid[tet[0]] | liquid[tet[1]] << 1 | liquid[tet[2]] << 2 | liquid[tet[3]] << 3;
}

static double square_distance(const un_cut *cut, int32_t v, int32_t w)
{
    un_vec3 d = un_sub(cut->x[v], cut->x[w]);
    return un_dot(d, d);
}

/* Node a differs in sign from b, c, d: the triangle on ab, ac, ad faces away from a. */
static void cut_corner(const un_cut *cut, const int32_t *tet, int32_t corner, bool liquid,
                       int32_t triangle[3])
{
    int32_t order[4];
    un_tet_corner_first(corner, order);
    for (int32_t c = 1; c < 4; c++)
        triangle[liquid ? c - 1 : 3 - c] = un_cut_vertex(cut, tet[corner], tet[order[c]]);
}

/* Liquid a, b and air c, d: the quad ac, ad, bd, bc faces c and d when a, b, c, d are positively
 * oriented; cut along its shorter diagonal. */
static void cut_middle(const un_cut *cut, const int32_t *tet, int32_t mask, int32_t (*triangle)[3])
{
    /* by mask: an even order, liquid first */
    static const uint8_t orders[16][4] = {
        [3] = {0, 1, 2, 3}, [5] = {0, 2, 3, 1},  [9] = {0, 3, 1, 2},
        [6] = {1, 2, 0, 3}, [10] = {1, 3, 2, 0}, [12] = {2, 3, 0, 1}};
    const uint8_t *o = orders[mask];
    int32_t a = tet[o[0]], b = tet[o[1]], c = tet[o[2]], d = tet[o[3]];
    int32_t quad[4] = {un_cut_vertex(cut, a, c), un_cut_vertex(cut, a, d), un_cut_vertex(cut, b, d),
                       un_cut_vertex(cut, b, c)};
    int32_t s = square_distance(cut, quad[1], quad[3]) < square_distance(cut, quad[0], quad[2]);
    for (int32_t half = 0; half < 2; half++) {
        triangle[half][0] = quad[s + 2 * half];
        triangle[half][1] = quad[(s + 1 + 2 * half) & 3];
        triangle[half][2] = quad[(s + 2 + 2 * half) & 3];
    }
}

static void count_triangles(void *arg, int64_t begin, int64_t end)
{
    un_cut *cut = arg;
    int32_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        int32_t mask = liquid_mask(cut, cut->mesh->tet[cut->tet[i]]);
        count += __builtin_popcount((uint32_t)mask) == 2 ? 2 : 1;
    }
    cut->triangle_first[begin / un_block_grain(cut->tet_count) + 1] = count;
}

void un_cut_count_triangles(un_context *ctx, un_cut *cut)
{
    int64_t grain = un_block_grain(cut->tet_count), blocks = (cut->tet_count + grain - 1) / grain;
    un_parallel_for(ctx, cut->tet_count, grain, count_triangles, cut);
    cut->triangle_first[0] = 0;
    for (int64_t b = 0; b < blocks; b++) cut->triangle_first[b + 1] += cut->triangle_first[b];
    cut->triangle_count = cut->triangle_first[blocks];
}

static void write_triangles(void *arg, int64_t begin, int64_t end)
{
    un_cut *cut = arg;
    int64_t block = begin / un_block_grain(cut->tet_count);
    int32_t(*triangle)[3] = cut->triangle + cut->triangle_first[block];
    for (int64_t i = begin; i < end; i++) {
        const int32_t *tet = cut->mesh->tet[cut->tet[i]];
        int32_t mask = liquid_mask(cut, tet), liquid = __builtin_popcount((uint32_t)mask);
        if (liquid == 2) {
            cut_middle(cut, tet, mask, triangle);
            triangle += 2;
        } else {
            int32_t apart = liquid == 1 ? mask : ~mask & 15;
            cut_corner(cut, tet, __builtin_ctz((uint32_t)apart), liquid == 1, *triangle);
            triangle++;
        }
    }
}

void un_cut_write_triangles(un_context *ctx, un_cut *cut)
{
    un_parallel_for(ctx, cut->tet_count, un_block_grain(cut->tet_count), write_triangles, cut);
}

un_status un_cut_triangulate(un_context *ctx, un_arena *arena, un_cut *cut)
{
    un_cut_count_triangles(ctx, cut);
    cut->triangle = un_arena_alloc(arena, (size_t)cut->triangle_count + 1, sizeof *cut->triangle);
    if (!cut->triangle) return UN_ERROR_MEMORY;
    un_cut_write_triangles(ctx, cut);
    return UN_OK;
}
