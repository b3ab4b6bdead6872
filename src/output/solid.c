/* Triangles for a solid: those of its file, or by dual contouring of its distance.
 *
 * Each lattice cell that the boundary crosses gets one vertex, where the tangent planes at the
 * crossings of its edges meet best (least squares, held to the crossings' mean by a little
 * damping, so that flat places stay even); each crossed lattice edge gets a quad between its four
 * cells. Edges and corners of boxes and cylinders come out sharp, which contouring by marching
 * would bevel. */
#include "output/solid.h"

#include <stdlib.h>

#define CELLS 96     /* along the longest side of the solid */
#define CELLS_MIN 12 /* along any side, so that plates keep their two faces */
#define PAD 2        /* cells around */
#define BLOCK 8      /* nodes along the side of a block that is skipped as a whole */
#define DAMPING 0.02 /* of the least squares, relative to one crossing */
#define SLACK                                                                                      \
    0.3 /* cells by which a vertex may leave its own, towards an edge that crosses no lattice edge \
         */

typedef struct lattice {
    const un_shape *shape;
    bool clipped;   /* at clip */
    bool container; /* and the sides of clip are left out */
    un_box3 clip;
    int32_t n[3]; /* nodes */
    double h[3];
    un_vec3 origin;
    float *phi;
    int32_t *cell_vertex; /* per node as lower corner, -1 none */
    un_vec3 *vertex;
    int32_t (*quad)[4];
    int32_t quad_count;
    size_t quad_capacity;
    un_body_mesh *mesh;
} lattice;

/* ---- the distance, cut off at the clip box ---- */

static double clip_distance(const lattice *l, un_vec3 x, un_vec3 *normal)
{
    double lo[3] = {l->clip.min.x - x.x, l->clip.min.y - x.y, l->clip.min.z - x.z};
    double hi[3] = {x.x - l->clip.max.x, x.y - l->clip.max.y, x.z - l->clip.max.z};
    double best = -INFINITY;
    for (int a = 0; a < 3; a++)
        for (int high = 0; high < 2; high++) {
            double d = high ? hi[a] : lo[a], s = high ? 1 : -1;
            if (d <= best) continue;
            best = d;
            *normal = un_v3(a == 0 ? s : 0, a == 1 ? s : 0, a == 2 ? s : 0);
        }
    return best;
}

static double distance(const lattice *l, un_vec3 x)
{
    un_vec3 ignored;
    double d = un_shape_distance(l->shape, x);
    return l->clipped ? fmax(d, clip_distance(l, x, &ignored)) : d;
}

static un_vec3 normal_at(const lattice *l, un_vec3 x)
{
    un_vec3 normal;
    if (l->clipped && clip_distance(l, x, &normal) > un_shape_distance(l->shape, x)) return normal;
    return un_shape_normal(l->shape, x);
}

static int64_t node_index(const lattice *l, int32_t i, int32_t j, int32_t k)
{
    return i + (int64_t)l->n[0] * (j + (int64_t)l->n[1] * k);
}

static un_vec3 node_position(const lattice *l, int32_t i, int32_t j, int32_t k)
{
    return un_v3(l->origin.x + i * l->h[0], l->origin.y + j * l->h[1], l->origin.z + k * l->h[2]);
}

/* ---- sampling ---- */

static void sample_blocks(void *arg, int64_t begin, int64_t end)
{
    lattice *l = arg;
    int32_t blocks_x = (l->n[0] + BLOCK - 1) / BLOCK, blocks_y = (l->n[1] + BLOCK - 1) / BLOCK;
    for (int64_t b = begin; b < end; b++) {
        int32_t i0 = (int32_t)(b % blocks_x) * BLOCK,
                j0 = (int32_t)(b / blocks_x % blocks_y) * BLOCK;
        int32_t k0 = (int32_t)(b / blocks_x / blocks_y) * BLOCK;
        int32_t i1 = (int32_t)un_min64(i0 + BLOCK, l->n[0]),
                j1 = (int32_t)un_min64(j0 + BLOCK, l->n[1]);
        int32_t k1 = (int32_t)un_min64(k0 + BLOCK, l->n[2]);
        un_vec3 low = node_position(l, i0, j0, k0), high = node_position(l, i1, j1, k1);
        un_vec3 centre = un_scale(un_add(low, high), 0.5);
        /* |distance| never exceeds the true one: beyond the block's radius the sign is certain. */
        double middle = distance(l, centre);
        bool skip = fabs(middle) > 0.5 * un_length(un_sub(high, low));
        for (int32_t k = k0; k < k1; k++)
            for (int32_t j = j0; j < j1; j++)
                for (int32_t i = i0; i < i1; i++) {
                    double d = skip ? middle : distance(l, node_position(l, i, j, k));
                    l->phi[node_index(l, i, j, k)] = (float)d;
                }
    }
}

/* ---- one vertex for each crossed cell ---- */

/* Where the boundary crosses the edge from a to b: regula falsi, halving the weight of an end that
 * stays (Illinois). */
static un_vec3 crossing(const lattice *l, un_vec3 a, un_vec3 b, double da, double db)
{
    un_vec3 from = a, way = un_sub(b, a);
    double sa = 0, sb = 1, s = 0;
    for (int round = 0, kept = 0; round < 20; round++) {
        s = (sa * db - sb * da) / (db - da);
        double d = distance(l, un_mad(from, way, s));
        if (fabs(d) < 1e-4 * un_length(way)) break;
        if ((d < 0) == (da < 0)) {
            sa = s, da = d;
            if (kept > 0) db *= 0.5;
            kept = 1;
        } else {
            sb = s, db = d;
            if (kept < 0) da *= 0.5;
            kept = -1;
        }
    }
    return un_mad(from, way, s);
}

/* Solves the symmetric positive definite m x = b by elimination; damping keeps pivots positive. */
static un_vec3 solve3(double m[3][3], double b[3])
{
    for (int p = 0; p < 3; p++)
        for (int row = p + 1; row < 3; row++) {
            double factor = m[row][p] / m[p][p];
            for (int c = p; c < 3; c++) m[row][c] -= factor * m[p][c];
            b[row] -= factor * b[p];
        }
    double z = b[2] / m[2][2], y = (b[1] - m[1][2] * z) / m[1][1];
    return un_v3((b[0] - m[0][1] * y - m[0][2] * z) / m[0][0], y, z);
}

static un_vec3 place_vertex(const lattice *l, int32_t i, int32_t j, int32_t k)
{
    un_vec3 point[12], normal[12], mean = {0, 0, 0};
    int32_t count = 0;
    for (int e = 0; e < 12; e++) {
        int axis = e / 4, u = (axis + 1) % 3, v = (axis + 2) % 3, at[2][3];
        for (int end = 0; end < 2; end++) {
            at[end][axis] = end, at[end][u] = e & 1, at[end][v] = e >> 1 & 1;
            at[end][0] += i, at[end][1] += j, at[end][2] += k;
        }
        double da = l->phi[node_index(l, at[0][0], at[0][1], at[0][2])];
        double db = l->phi[node_index(l, at[1][0], at[1][1], at[1][2])];
        if ((da < 0) == (db < 0)) continue;
        point[count] = crossing(l, node_position(l, at[0][0], at[0][1], at[0][2]),
                                node_position(l, at[1][0], at[1][1], at[1][2]), da, db);
        normal[count] = normal_at(l, point[count]);
        mean = un_add(mean, point[count++]);
    }
    mean = un_scale(mean, 1.0 / (count > 0 ? count : 1));
    double m[3][3] = {{DAMPING, 0, 0}, {0, DAMPING, 0}, {0, 0, DAMPING}}, b[3] = {0, 0, 0};
    for (int32_t c = 0; c < count; c++) {
        double n[3] = {normal[c].x, normal[c].y, normal[c].z};
        double offset = un_dot(normal[c], un_sub(point[c], mean));
        for (int p = 0; p < 3; p++) {
            for (int q = 0; q < 3; q++) m[p][q] += n[p] * n[q];
            b[p] += n[p] * offset;
        }
    }
    un_vec3 x = un_add(mean, solve3(m, b)), low = node_position(l, i, j, k);
    un_vec3 high = node_position(l, i + 1, j + 1, k + 1);
    if (!un_finite3(x)) x = mean;
    un_vec3 slack = un_scale(un_sub(high, low), SLACK);
    return un_max3(un_sub(low, slack), un_min3(un_add(high, slack), x));
}

static bool is_crossed(const lattice *l, int32_t i, int32_t j, int32_t k)
{
    int32_t inside = 0;
    for (int c = 0; c < 8; c++)
        inside += l->phi[node_index(l, i + (c & 1), j + (c >> 1 & 1), k + (c >> 2))] < 0;
    return inside > 0 && inside < 8;
}

static void place_slabs(void *arg, int64_t begin, int64_t end)
{
    lattice *l = arg;
    for (int64_t k = begin; k < end; k++)
        for (int32_t j = 0; j + 1 < l->n[1]; j++)
            for (int32_t i = 0; i + 1 < l->n[0]; i++) {
                int32_t v = l->cell_vertex[node_index(l, i, j, (int32_t)k)];
                if (v >= 0) l->vertex[v] = place_vertex(l, i, j, (int32_t)k);
            }
}

/* ---- quads ---- */

/* Across a sharp edge one diagonal of a quad follows the edge and the other cuts through it: the
 * one whose triangles stay nearer the boundary is taken. */
static double off_boundary(const lattice *l, un_vec3 a, un_vec3 b, un_vec3 c)
{
    return fabs(distance(l, un_scale(un_add(a, un_add(b, c)), 1.0 / 3)));
}

/* How open the surface is to the sky around x, 0..1: free distance over distance walked. */
static float openness(const lattice *l, un_vec3 x, un_vec3 n)
{
    double side = fmax(l->n[0] * l->h[0], fmax(l->n[1] * l->h[1], l->n[2] * l->h[2]));
    double reach = 0.02 * side, dark = 0, weight = 0.5;
    for (int step = 0; step < 4; step++, reach *= 2, weight *= 0.6)
        dark += weight * un_clamp(1 - distance(l, un_mad(x, n, reach)) / reach, 0, 1);
    return (float)un_clamp(1 - dark, 0, 1);
}

/* Corners are not shared: at a sharp edge each face has its own normal. Triangles without area are
 * harmless. */
static void set_triangle(const lattice *l, const un_vec3 x[3], int64_t t)
{
    un_body_mesh *m = l->mesh;
    un_vec3 g = un_normalize(un_cross(un_sub(x[1], x[0]), un_sub(x[2], x[0])));
    un_vec3 centre = un_scale(un_add(x[0], un_add(x[1], x[2])), 1.0 / 3);
    for (int c = 0; c < 3; c++) {
        /* Sampled slightly inside the triangle, off the edge. */
        un_vec3 n = normal_at(l, un_mad(x[c], un_sub(centre, x[c]), 0.2));
        if (un_dot(n, g) < 0.5) n = g;
        int64_t v = 3 * t + c;
        float position[3] = {(float)x[c].x, (float)x[c].y, (float)x[c].z};
        float normal[3] = {(float)n.x, (float)n.y, (float)n.z};
        memcpy(m->position[v], position, sizeof position);
        memcpy(m->normal[v], normal, sizeof normal);
        m->sky[v] = (uint8_t)(255 * openness(l, x[c], n) + 0.5f);
        m->triangle[t][c] = (uint32_t)v;
    }
}

static void set_quads(void *arg, int64_t begin, int64_t end)
{
    lattice *l = arg;
    for (int64_t q = begin; q < end; q++) {
        un_vec3 x[4];
        for (int c = 0; c < 4; c++) x[c] = l->vertex[l->quad[q][c]];
        double straight = off_boundary(l, x[0], x[1], x[2]) + off_boundary(l, x[0], x[2], x[3]);
        double other = off_boundary(l, x[1], x[2], x[3]) + off_boundary(l, x[1], x[3], x[0]);
        int s = other < straight;
        un_vec3 first[3] = {x[s], x[s + 1], x[s + 2]}, second[3] = {x[s], x[s + 2], x[(s + 3) % 4]};
        set_triangle(l, first, 2 * q);
        set_triangle(l, second, 2 * q + 1);
    }
}

/* In one of the container's outer sides, except its bottom. */
static bool is_outside(const lattice *l, const int32_t quad[4])
{
    for (int side = 0; side < 6 && l->container; side++) {
        int axis = side / 2;
        bool all = side != 2;
        for (int c = 0; c < 4 && all; c++) {
            un_vec3 x = l->vertex[quad[c]];
            un_vec3 end = side & 1 ? un_sub(l->clip.max, x) : un_sub(x, l->clip.min);
            double gap[3] = {end.x, end.y, end.z};
            all = fabs(gap[axis]) < 0.05 * l->h[axis];
        }
        if (all) return true;
    }
    return false;
}

/* The four cells around every crossed lattice edge, counter-clockwise from outside. */
static un_status find_quads(un_context *ctx, lattice *l)
{
    static const int around[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    for (int32_t k = 1; k + 1 < l->n[2]; k++)
        for (int32_t j = 1; j + 1 < l->n[1]; j++)
            for (int32_t i = 1; i + 1 < l->n[0]; i++)
                for (int axis = 0; axis < 3; axis++) {
                    int u = (axis + 1) % 3, v = (axis + 2) % 3, next[3] = {i, j, k};
                    next[axis]++;
                    bool in = l->phi[node_index(l, i, j, k)] < 0;
                    if (in == (l->phi[node_index(l, next[0], next[1], next[2])] < 0)) continue;
                    UN_TRY(un_array_reserve(ctx, (void **)&l->quad, &l->quad_capacity,
                                            (size_t)l->quad_count + 1, sizeof *l->quad));
                    int32_t *quad = l->quad[l->quad_count++];
                    for (int c = 0; c < 4; c++) {
                        int cell[3] = {i, j, k};
                        cell[u] -= 1 - around[c][0];
                        cell[v] -= 1 - around[c][1];
                        quad[in ? c : 3 - c] =
                            l->cell_vertex[node_index(l, cell[0], cell[1], cell[2])];
                    }
                    if (is_outside(l, quad)) l->quad_count--;
                }
    return UN_OK;
}

/* ---- solids from a file ---- */

/* Faces that meet at a smaller angle than this are one smooth surface: cosine of 40 degrees. */
#define SMOOTH 0.766
/* More triangles than this are replaced by the lattice's. */
#define TRIANGLES_MAX 300000

typedef struct file_corner {
    float x[3];
    int32_t corner;
} file_corner;

static int compare_corners(const void *one, const void *other)
{
    const file_corner *a = one, *b = other;
    for (int i = 0; i < 3; i++)
        if (a->x[i] != b->x[i]) return a->x[i] < b->x[i] ? -1 : 1;
    return (a->corner > b->corner) - (a->corner < b->corner);
}

typedef struct file_args {
    lattice *l;
    file_corner *corners; /* sorted by place */
    int32_t count;
    un_vec3 *face; /* normals of triangles, as long as twice their area */
} file_args;

static bool is_same_place(const file_corner *a, const file_corner *b)
{
    return a->x[0] == b->x[0] && a->x[1] == b->x[1] && a->x[2] == b->x[2];
}

/* The mean normal of the faces around a corner that its own face goes on into. */
static void set_corners(void *arg, int64_t begin, int64_t end)
{
    const file_args *a = arg;
    un_body_mesh *m = a->l->mesh;
    for (int64_t k = begin; k < end; k++) {
        const file_corner *own = &a->corners[k];
        int64_t first = k, last = k;
        while (first > 0 && is_same_place(&a->corners[first - 1], own)) first--;
        while (last < a->count && is_same_place(&a->corners[last], own)) last++;
        un_vec3 face = un_normalize(a->face[own->corner / 3]), n = {0, 0, 0};
        for (int64_t i = first; i < last; i++) {
            un_vec3 other = a->face[a->corners[i].corner / 3];
            if (un_dot(face, other) >= SMOOTH * un_length(other)) n = un_add(n, other);
        }
        n = un_normalize(un_dot(n, n) > 0 ? n : face);
        float normal[3] = {(float)n.x, (float)n.y, (float)n.z};
        un_vec3 x = un_v3(own->x[0], own->x[1], own->x[2]);
        memcpy(m->position[own->corner], own->x, sizeof own->x);
        memcpy(m->normal[own->corner], normal, sizeof normal);
        m->sky[own->corner] = (uint8_t)(255 * openness(a->l, x, n) + 0.5f);
        m->triangle[own->corner / 3][own->corner % 3] = (uint32_t)own->corner;
    }
}

static un_status take_triangles(un_context *ctx, lattice *l, int32_t count)
{
    file_args a = {.l = l, .count = 3 * count};
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, a.corners, a.count);
    UN_ALLOC_DONE(ctx, a.face, count);
    UN_TRY_DONE(un_body_mesh_init(ctx, l->mesh, a.count, count));
    for (int32_t t = 0; t < count; t++) {
        un_vec3 x[3];
        un_shape_triangle(l->shape, t, x);
        a.face[t] = un_cross(un_sub(x[1], x[0]), un_sub(x[2], x[0]));
        for (int c = 0; c < 3; c++)
            a.corners[3 * t + c] =
                (file_corner){{(float)x[c].x, (float)x[c].y, (float)x[c].z}, 3 * t + c};
    }
    qsort(a.corners, (size_t)a.count, sizeof *a.corners, compare_corners);
    un_parallel_for(ctx, a.count, 256, set_corners, &a);
done:
    un_free(ctx, a.corners);
    un_free(ctx, a.face);
    return status;
}

/* ---- the whole ---- */

static bool is_finite_box(un_box3 box)
{
    return un_finite3(box.min) && un_finite3(box.max);
}

/* Most of the domain's boundary is inside it: from outside it would hide everything. */
static bool hides_inside(const un_shape *shape, un_vec3 domain)
{
    enum { POINTS = 64 };
    int32_t inside = 0;
    for (int k = 0; k < POINTS; k++) {
        double s = (k % (POINTS / 4) + 0.5) / (POINTS / 4), end = k & 1 ? 0.999 : 0.001;
        un_vec3 x = k < POINTS / 2 ? un_v3(s, 0.98, end) : un_v3(end, 0.98, s);
        x = un_v3(x.x * domain.x, x.y * domain.y, x.z * domain.z);
        inside += un_shape_distance(shape, x) < 0;
    }
    return 2 * inside > POINTS;
}

static bool lay_out(lattice *l, bool moves, un_vec3 domain)
{
    un_box3 box = un_shape_bounds(l->shape);
    bool around =
        box.min.x <= 0 && box.min.z <= 0 && box.max.x >= domain.x && box.max.z >= domain.z;
    if (!is_finite_box(box) || (around && !moves)) {
        l->clipped = true;
        l->clip = (un_box3){un_v3(0, 0, 0), domain};
        l->container = !moves && hides_inside(l->shape, domain);
        box.min = un_max3(box.min, l->clip.min);
        box.max = un_min3(box.max, l->clip.max);
    }
    un_vec3 extent = un_sub(box.max, box.min);
    double side[3] = {extent.x, extent.y, extent.z};
    double longest = fmax(side[0], fmax(side[1], side[2]));
    if (!(side[0] > 0 && side[1] > 0 && side[2] > 0) || !isfinite(longest)) return false;
    double start[3] = {box.min.x, box.min.y, box.min.z};
    for (int a = 0; a < 3; a++) {
        int32_t cells = un_clampi((int32_t)ceil(side[a] / longest * CELLS), CELLS_MIN, CELLS);
        l->h[a] = side[a] / cells;
        l->n[a] = cells + 2 * PAD + 2;
        /* Offset from the bounds by an odd fraction of a cell: faces through nodes have no clear
         * sign. */
        start[a] -= (PAD + 0.37) * l->h[a];
    }
    l->origin = un_v3(start[0], start[1], start[2]);
    return true;
}

void un_body_mesh_free(un_context *ctx, un_body_mesh *mesh)
{
    un_free(ctx, mesh->position);
    un_free(ctx, mesh->normal);
    un_free(ctx, mesh->sky);
    un_free(ctx, mesh->triangle);
    *mesh = (un_body_mesh){0};
}

un_status un_body_mesh_init(un_context *ctx, un_body_mesh *mesh, int32_t vertex_count,
                            int32_t triangle_count)
{
    mesh->vertex_count = vertex_count;
    mesh->triangle_count = triangle_count;
    UN_ALLOC(ctx, mesh->position, mesh->vertex_count + 1);
    UN_ALLOC(ctx, mesh->normal, mesh->vertex_count + 1);
    UN_ALLOC(ctx, mesh->sky, mesh->vertex_count + 1);
    UN_ALLOC(ctx, mesh->triangle, mesh->triangle_count + 1);
    return UN_OK;
}

un_status un_body_mesh_build(un_context *ctx, const un_shape *shape, bool moves, un_vec3 domain,
                             un_body_mesh *mesh)
{
    if (domain.z == 0) return un_flat_solid(ctx, shape, moves, domain, mesh);
    *mesh = (un_body_mesh){0};
    lattice l = {.shape = shape, .mesh = mesh};
    if (!lay_out(&l, moves, domain)) return UN_OK;
    un_status status = UN_OK;
    int32_t triangles = un_shape_triangle_count(shape);
    if (triangles > 0 && triangles <= TRIANGLES_MAX && !l.clipped) {
        UN_TRY_DONE(take_triangles(ctx, &l, triangles));
        goto done;
    }
    int64_t nodes = (int64_t)l.n[0] * l.n[1] * l.n[2], blocks = 1;
    for (int a = 0; a < 3; a++) blocks *= (l.n[a] + BLOCK - 1) / BLOCK;
    UN_ALLOC_DONE(ctx, l.phi, nodes);
    UN_ALLOC_DONE(ctx, l.cell_vertex, nodes);
    un_parallel_for(ctx, blocks, 1, sample_blocks, &l);
    int32_t count = 0;
    memset(l.cell_vertex, -1, (size_t)nodes * sizeof *l.cell_vertex);
    for (int32_t k = 0; k + 1 < l.n[2]; k++)
        for (int32_t j = 0; j + 1 < l.n[1]; j++)
            for (int32_t i = 0; i + 1 < l.n[0]; i++)
                if (is_crossed(&l, i, j, k)) l.cell_vertex[node_index(&l, i, j, k)] = count++;
    UN_ALLOC_DONE(ctx, l.vertex, count + 1);
    un_parallel_for(ctx, l.n[2] - 1, 1, place_slabs, &l);
    UN_TRY_DONE(find_quads(ctx, &l));
    mesh->container = l.container;
    UN_TRY_DONE(un_body_mesh_init(ctx, mesh, 6 * l.quad_count, 2 * l.quad_count));
    un_parallel_for(ctx, l.quad_count, 64, set_quads, &l);
done:
    un_free(ctx, l.phi);
    un_free(ctx, l.cell_vertex);
    un_free(ctx, l.vertex);
    un_free(ctx, l.quad);
    if (status != UN_OK) un_body_mesh_free(ctx, mesh);
    return status;
}
