/* Merges vertices that marching tetrahedra leave close together.
 *
 * Some fourteen edges meet in a node, and a surface that passes near it cuts half of them: this
 * leaves many small and needle-like triangles. Regularised marching tetrahedra [G. Treece, R.
 * Prager, A. Gee, Computers & Graphics 23, 1999] replace all vertices that are nearer to the same
 * node than to the other ends of their edges by one vertex in their middle. A third of the
 * triangles remain, and those are well shaped.
 *
 * The paper decides from a table of a regular lattice's edges where this keeps the topology of the
 * surface. On graded meshes we test instead: the vertices of a cluster must be one piece of the
 * surface without holes, and the triangles around the vertex that stands for them must form one
 * ring and face one way. Clusters that fail are taken apart, and their neighbours tested again,
 * until all pass. */
#include "surface/contour.h"
#include "surface/cut.h"

/* ---- which vertices belong together ---- */

int32_t un_cut_nearest(const un_cut *cut, int32_t v, un_vec3 x)
{
    const un_tets *mesh = cut->mesh;
    int32_t a = cut->from[v], b = cut->to[v];
    if (un_cut_sides(mesh, a) & un_cut_sides(mesh, b)) return -1;
    un_vec3 from_a = un_sub(x, mesh->x[a]), from_b = un_sub(x, mesh->x[b]);
    return un_dot(from_a, from_a) < un_dot(from_b, from_b) ? a : b;
}

static void join(int32_t *of, int32_t *first, int32_t v)
{
    if (*first < 0) *first = v;
    of[v] = *first;
}

static un_status clusters_ranks(un_context *ctx, un_arena *arena, const un_cut *cut,
                                int32_t vertex_count, int32_t **same)
{
    uint32_t *nearest;
    int64_t nodes = cut->mesh->share->nodes.total;
    UN_TRY(un_cut_gather_nearest(ctx, arena, cut, &nearest));
    if (un_rank(ctx) > 0) return UN_OK;
    int32_t *of = un_arena_alloc(arena, (size_t)vertex_count + 1, sizeof *of), *first;
    if (!of) return UN_ERROR_MEMORY;
    *same = of;
    UN_ALLOC(ctx, first, nodes + 1);
    for (int64_t n = 0; n < nodes; n++) first[n] = -1;
    for (int32_t v = 0; v < vertex_count; v++) {
        of[v] = v;
        if (v < cut->vertex_count && nearest[v] <= INT32_MAX) join(of, &first[nearest[v]], v);
    }
    un_free(ctx, first);
    return UN_OK;
}

un_status un_cut_clusters(un_context *ctx, un_arena *arena, const un_cut *cut, int32_t vertex_count,
                          int32_t **same)
{
    if (cut->mesh->share)
        return un_ranks_agree(ctx, clusters_ranks(ctx, arena, cut, vertex_count, same));
    int32_t *of = un_arena_alloc(arena, (size_t)vertex_count + 1, sizeof *of), *first;
    if (!of) return UN_ERROR_MEMORY;
    *same = of;
    UN_ALLOC(ctx, first, cut->node_count + 1);
    for (int32_t p = 0; p < cut->node_count; p++) first[p] = -1;
    for (int32_t v = 0; v < vertex_count; v++) {
        of[v] = v;
        /* vertices in a side of the brick are not merged */
        int32_t node = v < cut->vertex_count ? un_cut_nearest(cut, v, cut->x[v]) : -1;
        if (node >= 0) join(of, &first[cut->place[node]], v);
    }
    un_free(ctx, first);
    return UN_OK;
}

/* ---- what may be merged ---- */

typedef struct merger {
    un_trimesh *mesh;
    int32_t *same;   /* by vertex: the one that stands for it, the first of its cluster */
    int32_t *size;   /* by vertex: how many it stands for */
    un_vec3 *x;      /* by vertex: the middle of those */
    uint8_t *look;   /* by vertex: stands for several and must be tested */
    uint8_t *wrong;  /* by vertex: failed the test */
    int64_t *first;  /* by vertex to test: offset into around */
    int32_t *around; /* triangles */
} merger;

/* Finds a triangle's corners after merging; false if it collapses. */
static bool find_corners(const merger *m, int64_t t, int32_t v[3])
{
    for (int32_t c = 0; c < 3; c++) v[c] = m->same[m->mesh->triangle[t][c]];
    return v[0] != v[1] && v[1] != v[2] && v[2] != v[0];
}

static void find_middles(merger *m)
{
    const un_trimesh *mesh = m->mesh;
    memset(m->size, 0, (size_t)mesh->vertex_count * sizeof *m->size);
    memset(m->x, 0, (size_t)mesh->vertex_count * sizeof *m->x);
    for (int32_t v = 0; v < mesh->vertex_count; v++) {
        int32_t to = m->same[v];
        m->size[to]++;
        m->x[to] = un_add(m->x[to], mesh->position[v]);
    }
    for (int32_t v = 0; v < mesh->vertex_count; v++)
        m->x[v] = m->size[v] == 1 ? mesh->position[v] : un_scale(m->x[v], 1.0 / m->size[v]);
}

/* Puts every triangle into the list of each cluster that it touches. */
static void list_triangles(merger *m)
{
    const un_trimesh *mesh = m->mesh;
    memset(m->first, 0, ((size_t)mesh->vertex_count + 2) * sizeof *m->first);
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < mesh->triangle_count; t++) {
            int32_t v[3];
            find_corners(m, t, v);
            for (int32_t c = 0; c < 3; c++) {
                if (!m->look[v[c]] || (c > 0 && v[c] == v[0]) || (c > 1 && v[c] == v[1])) continue;
                if (pass == 0)
                    m->first[v[c] + 2]++;
                else
                    m->around[m->first[v[c] + 1]++] = (int32_t)t;
            }
        }
        for (int64_t i = 2; pass == 0 && i < (int64_t)mesh->vertex_count + 2; i++)
            m->first[i] += m->first[i - 1];
    }
}

/* Far more than a node of a balanced mesh has edges. */
enum { MEMBERS_MAX = 128, RING_MAX = 512 };

/* A cluster after merging and before. */
typedef struct star {
    int32_t ring[RING_MAX][2]; /* edges opposite the merged vertex, as its triangles have them */
    int32_t ring_count;
    int32_t member[MEMBERS_MAX], piece[MEMBERS_MAX], member_count, piece_count;
    int32_t faces, half_edges; /* between members */
} star;

static int32_t member_place(star *s, int32_t vertex)
{
    int32_t i = 0;
    while (i < s->member_count && s->member[i] != vertex) i++;
    if (i == s->member_count && i < MEMBERS_MAX) {
        s->member[i] = vertex;
        s->piece[i] = i;
        s->member_count++;
        s->piece_count++;
    }
    return i < MEMBERS_MAX ? i : MEMBERS_MAX - 1;
}

static void join_members(star *s, int32_t v, int32_t w)
{
    int32_t a = s->piece[member_place(s, v)], b = s->piece[member_place(s, w)];
    if (a == b) return;
    for (int32_t i = 0; i < s->member_count; i++)
        if (s->piece[i] == b) s->piece[i] = a;
    s->piece_count--;
}

/* False if too large to decide. */
static bool collect_star(const merger *m, int32_t v, star *s)
{
    s->ring_count = s->member_count = s->piece_count = s->faces = s->half_edges = 0;
    for (int64_t k = m->first[v]; k < m->first[v + 1]; k++) {
        const int32_t *was = m->mesh->triangle[m->around[k]];
        int32_t is[3], inside = 0, apart = 0, last = 0;
        find_corners(m, m->around[k], is);
        for (int32_t c = 0; c < 3; c++) {
            if (is[c] == v)
                inside++, last = c;
            else
                apart = c;
        }
        int32_t next = (last + 1) % 3, before = (last + 2) % 3;
        member_place(s, was[last]);
        if (inside == 3) {
            s->faces++;
            s->half_edges += 3;
            join_members(s, was[0], was[1]);
            join_members(s, was[1], was[2]);
        } else if (inside == 2) {
            s->half_edges++;
            join_members(s, was[(apart + 1) % 3], was[(apart + 2) % 3]);
        } else if (is[next] != is[before]) {
            if (s->ring_count == RING_MAX) return false;
            s->ring[s->ring_count][0] = is[next];
            s->ring[s->ring_count++][1] = is[before];
        }
    }
    return s->member_count < MEMBERS_MAX;
}

/* True if the members were one piece without holes. If all clusters were, the surface keeps its
 * topology. */
static bool is_disc(const star *s)
{
    return s->piece_count == 1 && 2 * (s->member_count + s->faces) - s->half_edges == 2;
}

static bool is_ring(const star *s)
{
    if (s->ring_count < 3) return false;
    int32_t at = s->ring[0][0], steps = 0;
    do {
        int32_t found = 0, next = -1;
        for (int32_t i = 0; i < s->ring_count; i++)
            if (s->ring[i][0] == at) next = s->ring[i][1], found++;
        if (found != 1) return false;
        at = next;
        steps++;
    } while (at != s->ring[0][0] && steps < s->ring_count);
    return steps == s->ring_count && at == s->ring[0][0];
}

static bool faces_one_way(const merger *m, int32_t v, const star *s)
{
    un_vec3 sum = {0};
    for (int32_t round = 0; round < 2; round++)
        for (int32_t i = 0; i < s->ring_count; i++) {
            un_vec3 a = un_sub(m->x[s->ring[i][0]], m->x[v]);
            un_vec3 b = un_sub(m->x[s->ring[i][1]], m->x[v]), area = un_cross(a, b);
            if (round == 0)
                sum = un_add(sum, area);
            else if (!(un_dot(sum, area) > 0))
                return false;
        }
    return true;
}

static double find_wrong(void *arg, int64_t begin, int64_t end)
{
    merger *m = arg;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        star s;
        m->wrong[i] = 0;
        if (!m->look[i]) continue;
        m->wrong[i] = !collect_star(m, (int32_t)i, &s) || !is_disc(&s) || !is_ring(&s) ||
                      !faces_one_way(m, (int32_t)i, &s);
        sum += m->wrong[i];
    }
    return sum;
}

/* Takes failed clusters apart and marks those next to them for testing. */
static void part_wrong(merger *m)
{
    const un_trimesh *mesh = m->mesh;
    memset(m->look, 0, (size_t)mesh->vertex_count);
    for (int64_t t = 0; t < mesh->triangle_count; t++) {
        int32_t v[3];
        find_corners(m, t, v);
        if (m->wrong[v[0]] || m->wrong[v[1]] || m->wrong[v[2]])
            for (int32_t c = 0; c < 3; c++) m->look[v[c]] = m->size[v[c]] > 1 && !m->wrong[v[c]];
    }
    for (int32_t v = 0; v < mesh->vertex_count; v++)
        if (m->wrong[m->same[v]]) m->same[v] = v;
}

/* ---- the merged mesh ---- */

static void write_merged(merger *m)
{
    un_trimesh *mesh = m->mesh;
    int32_t vertices = 0, triangles = 0, v[3];
    int32_t *number = m->size;
    for (int32_t i = 0; i < mesh->vertex_count; i++) {
        if (m->same[i] != i) continue;
        number[i] = vertices;
        mesh->position[vertices++] = m->x[i];
    }
    for (int64_t t = 0; t < mesh->triangle_count; t++)
        if (find_corners(m, t, v)) {
            for (int32_t c = 0; c < 3; c++) mesh->triangle[triangles][c] = number[v[c]];
            triangles++;
        }
    mesh->vertex_count = vertices;
    mesh->triangle_count = triangles;
}

static void shrink(un_context *ctx, un_trimesh *mesh)
{
    void *x = un_realloc(ctx, mesh->position, (size_t)mesh->vertex_count, sizeof *mesh->position);
    if (x) mesh->position = x;
    x = un_realloc(ctx, mesh->triangle, (size_t)mesh->triangle_count, sizeof *mesh->triangle);
    if (x) mesh->triangle = x;
}

un_status un_surface_merge(un_context *ctx, un_trimesh *mesh, int32_t *same)
{
    un_status status = UN_OK;
    merger m = {.mesh = mesh, .same = same};
    size_t vertices = (size_t)mesh->vertex_count;
    if (vertices == 0) return UN_OK;
    UN_ALLOC_DONE(ctx, m.size, vertices);
    UN_ALLOC_DONE(ctx, m.x, vertices);
    UN_ALLOC_DONE(ctx, m.look, vertices);
    UN_ALLOC_DONE(ctx, m.wrong, vertices);
    UN_ALLOC_DONE(ctx, m.first, vertices + 2);
    UN_ALLOC_DONE(ctx, m.around, 3 * (size_t)mesh->triangle_count + 1);
    find_middles(&m);
    for (size_t v = 0; v < vertices; v++) m.look[v] = m.size[v] > 1;
    for (;;) {
        list_triangles(&m);
        if (un_parallel_sum(ctx, mesh->vertex_count, find_wrong, &m) == 0) break;
        part_wrong(&m);
        find_middles(&m);
    }
    write_merged(&m);
    shrink(ctx, mesh);
done:
    un_free(ctx, m.size);
    un_free(ctx, m.x);
    un_free(ctx, m.look);
    un_free(ctx, m.wrong);
    un_free(ctx, m.first);
    un_free(ctx, m.around);
    return status;
}
