/* The liquid's area in 2D: marching squares, filled.
 *
 * Every liquid node carries a vertex, and so does every lattice edge that the surface cuts, where
 * phi interpolates to zero. A square is filled with the polygons of its runs of liquid corners and
 * the cuts beside them; two liquid corners across from each other stay apart. Neighbouring squares
 * see the same cuts, so triangles share their vertices, and each cut has one segment of outline on
 * either side, or lies on the domain's boundary.
 *
 * Fairing slides the cuts along their lattice edges and never off them: polygons stay convex, and
 * no triangle can turn over. The outline moves as Taubin's steps would move it along its normal
 * [Taubin 1995]; then each piece is offset until it encloses its original area. */
#include "surface/contour.h"

#define LAMBDA 0.6307
#define MU (-0.6732)
/* A cut on an edge almost parallel to the outline would have to slide far: the edge's component
 * across the outline counts as at least this. */
#define ACROSS_MIN 0.5
#define OFFSET_ROUNDS 3
#define ROW_GRAIN 32
#define VERTEX_GRAIN 4096

enum { CUT_X, CUT_Y, NODE };

typedef struct area_args {
    const un_lattice *lattice;
    int32_t n[2];
    int32_t *base;                      /* by node: its first vertex: cut of x, of y, the node */
    int64_t *row_vertex, *row_triangle; /* first of each row */
    un_trimesh *mesh;
    /* by vertex */
    uint8_t *kind;
    double *t, *t_new;    /* cuts: place along the edge, 0..1 */
    int32_t *next, *prev; /* along the outline, the liquid to the left; -1: none */
    un_vec3 *was;
    double factor; /* of the current step */
} area_args;

static bool liquid_at(const area_args *a, int32_t i, int32_t j)
{
    float phi = a->lattice->phi[i + (int64_t)a->n[0] * j];
    return phi < 0 && phi >= -FLT_MAX;
}

/* Which of the three kinds of vertices node (i, j) carries. */
static int32_t vertices_of(const area_args *a, int32_t i, int32_t j, bool has[3])
{
    bool liquid = liquid_at(a, i, j);
    has[CUT_X] = i < a->n[0] - 1 && liquid_at(a, i + 1, j) != liquid;
    has[CUT_Y] = j < a->n[1] - 1 && liquid_at(a, i, j + 1) != liquid;
    has[NODE] = liquid;
    return has[CUT_X] + has[CUT_Y] + has[NODE];
}

static int32_t vertex_number(const area_args *a, int kind, int32_t i, int32_t j)
{
    bool has[3];
    vertices_of(a, i, j, has);
    int32_t number = a->base[i + (int64_t)a->n[0] * j];
    for (int before = 0; before < kind; before++) number += has[before];
    return number;
}

/* Corners of a square in turn; side q leads from corner q to the next. */
static const int8_t corner[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};

static int32_t cut_number(const area_args *a, int32_t i, int32_t j, int side)
{
    side &= 3;
    return side == 0   ? vertex_number(a, CUT_X, i, j)
           : side == 1 ? vertex_number(a, CUT_Y, i + 1, j)
           : side == 2 ? vertex_number(a, CUT_X, i, j + 1)
                       : vertex_number(a, CUT_Y, i, j);
}

/* A run of liquid corners: the first of them, and how many. */
typedef struct run {
    int first, count;
} run;

static int runs_of(const area_args *a, int32_t i, int32_t j, run runs[2])
{
    bool wet[4];
    int sum = 0, count = 0;
    for (int q = 0; q < 4; q++) sum += wet[q] = liquid_at(a, i + corner[q][0], j + corner[q][1]);
    if (sum == 4) {
        runs[0] = (run){0, 4};
        return 1;
    }
    for (int q = 0; q < 4; q++) {
        if (!wet[q] || wet[(q + 3) & 3]) continue;
        int length = 1;
        while (wet[(q + length) & 3]) length++;
        runs[count++] = (run){q, length};
    }
    return count;
}

static int32_t triangles_of(run r)
{
    return r.count == 4 ? 2 : r.count;
}

static void write_run(const area_args *a, int32_t i, int32_t j, run r, int32_t (*triangle)[3])
{
    int32_t polygon[5], count = 0;
    for (int c = 0; c < r.count; c++) {
        const int8_t *at = corner[(r.first + c) & 3];
        polygon[count++] = vertex_number(a, NODE, i + at[0], j + at[1]);
    }
    if (r.count < 4) {
        int32_t after = cut_number(a, i, j, r.first + r.count - 1);
        int32_t before = cut_number(a, i, j, r.first + 3);
        polygon[count++] = after;
        polygon[count++] = before;
        a->next[after] = before;
        a->prev[before] = after;
    }
    int32_t apex = r.count == 3; /* the corner in the middle gives the best shapes */
    for (int32_t m = 1; m + 1 < count; m++, triangle++) {
        (*triangle)[0] = polygon[apex];
        (*triangle)[1] = polygon[(apex + m) % count];
        (*triangle)[2] = polygon[(apex + m + 1) % count];
    }
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    area_args *a = arg;
    for (int64_t row = begin; row < end; row++) {
        int64_t vertices = 0, triangles = 0;
        for (int32_t i = 0; i < a->n[0]; i++) {
            bool has[3];
            run runs[2];
            vertices += vertices_of(a, i, (int32_t)row, has);
            if (i == a->n[0] - 1 || row == a->n[1] - 1) continue;
            int count = runs_of(a, i, (int32_t)row, runs);
            for (int r = 0; r < count; r++) triangles += triangles_of(runs[r]);
        }
        a->row_vertex[row + 1] = vertices;
        a->row_triangle[row + 1] = triangles;
    }
}

static double crossing(float a, float b)
{
    if (!isfinite(a) || !isfinite(b)) return 0.5;
    return un_clamp((double)a / ((double)a - (double)b), UN_SURFACE_HAIR, 1 - UN_SURFACE_HAIR);
}

static void write_vertices(void *arg, int64_t begin, int64_t end)
{
    area_args *a = arg;
    const un_lattice *l = a->lattice;
    int64_t step[2] = {1, a->n[0]};
    for (int64_t row = begin; row < end; row++) {
        int64_t number = a->row_vertex[row];
        for (int32_t i = 0; i < a->n[0]; i++) {
            int64_t node = row * a->n[0] + i;
            bool has[3];
            a->base[node] = (int32_t)number;
            vertices_of(a, i, (int32_t)row, has);
            for (int kind = 0; kind < 3; kind++) {
                if (!has[kind]) continue;
                double t = kind == NODE ? 0 : crossing(l->phi[node], l->phi[node + step[kind]]);
                a->kind[number] = (uint8_t)kind;
                a->t[number] = t;
                a->next[number] = a->prev[number] = -1;
                a->mesh->normal[number] = un_v3(0, 0, 1);
                a->mesh->position[number++] = un_lattice_point(
                    l, i + (kind == CUT_X ? t : 0), (double)row + (kind == CUT_Y ? t : 0), 0);
            }
        }
    }
}

static void write_triangles(void *arg, int64_t begin, int64_t end)
{
    area_args *a = arg;
    for (int64_t row = begin; row < end; row++) {
        int32_t(*triangle)[3] = a->mesh->triangle + a->row_triangle[row];
        for (int32_t i = 0; i < a->n[0] - 1 && row < a->n[1] - 1; i++) {
            run runs[2];
            int count = runs_of(a, i, (int32_t)row, runs);
            for (int r = 0; r < count; r++) {
                write_run(a, i, (int32_t)row, runs[r], triangle);
                triangle += triangles_of(runs[r]);
            }
        }
    }
}

/* ---- fairing ---- */

/* The outward normal at a vertex of the outline: to the right of its direction. */
static un_vec3 outwards(const area_args *a, int64_t v)
{
    const un_vec3 *x = a->mesh->position;
    un_vec3 from = x[a->prev[v] >= 0 ? a->prev[v] : v], to = x[a->next[v] >= 0 ? a->next[v] : v];
    return un_normalize(un_v3(to.y - from.y, from.x - to.x, 0));
}

/* Slides v so that the outline there moves by `distance` along its normal. */
static double slide(const area_args *a, int64_t v, un_vec3 normal, double distance)
{
    int axis = a->kind[v];
    double along = axis == CUT_X ? normal.x : normal.y;
    double move = distance * along / fmax(along * along, ACROSS_MIN * ACROSS_MIN);
    return un_clamp(a->t[v] + move / a->lattice->h[axis], UN_SURFACE_HAIR, 1 - UN_SURFACE_HAIR);
}

static bool on_outline(const area_args *a, int64_t v)
{
    return a->next[v] >= 0 || a->prev[v] >= 0;
}

/* Moves the outline towards the middle of the neighbours; at a wall it continues straight. */
static void fair(void *arg, int64_t begin, int64_t end)
{
    area_args *a = arg;
    const un_vec3 *x = a->mesh->position;
    for (int64_t v = begin; v < end; v++) {
        a->t_new[v] = a->t[v];
        if (!on_outline(a, v)) continue;
        int32_t next = a->next[v], prev = a->prev[v];
        un_vec3 aim;
        if (next >= 0 && prev >= 0) {
            aim = un_scale(un_add(x[next], x[prev]), 0.5);
        } else {
            int32_t near = next >= 0 ? next : prev;
            int32_t far = next >= 0 ? a->next[near] : a->prev[near];
            if (far < 0) continue;
            aim = un_sub(un_scale(x[near], 2), x[far]);
        }
        un_vec3 normal = outwards(a, v);
        a->t_new[v] = slide(a, v, normal, a->factor * un_dot(un_sub(aim, x[v]), normal));
    }
}

static void place(void *arg, int64_t begin, int64_t end)
{
    area_args *a = arg;
    un_vec3 *x = a->mesh->position;
    for (int64_t v = begin; v < end; v++) {
        if (!on_outline(a, v)) continue;
        double step = (a->t_new[v] - a->t[v]) * a->lattice->h[a->kind[v]];
        if (a->kind[v] == CUT_X)
            x[v].x += step;
        else
            x[v].y += step;
        a->t[v] = a->t_new[v];
    }
}

/* A piece of outline is closed or runs from wall to wall. It is offset by the area that fairing has
 * swept, divided by its length. */
static void restore_piece(area_args *a, int32_t start)
{
    const un_vec3 *x = a->mesh->position;
    double swept = 0, length = 0;
    int32_t v = start;
    for (int32_t w = a->next[v]; w >= 0; v = w, w = v == start ? -1 : a->next[v]) {
        un_vec3 p = un_sub(x[w], a->was[v]), q = un_sub(x[v], a->was[w]);
        /* area of the quad was v, was w, w, v: half the cross product of its diagonals */
        swept += 0.5 * (p.x * q.y - p.y * q.x);
        length += un_length(un_sub(x[w], x[v]));
    }
    if (!(length > 0)) return;
    double offset = swept / length;
    for (v = start; v >= 0;) {
        a->t_new[v] = slide(a, v, outwards(a, v), offset);
        v = a->next[v] == start ? -1 : a->next[v];
    }
}

/* Calls restore_piece for every piece, with its first vertex. seen: by vertex, all zero. */
static void restore_pieces(area_args *a, uint8_t *seen)
{
    int32_t count = a->mesh->vertex_count;
    for (int closed = 0; closed < 2; closed++) /* pieces that start at a wall first */
        for (int32_t start = 0; start < count; start++) {
            if (seen[start] || a->next[start] < 0 || (!closed && a->prev[start] >= 0)) continue;
            for (int32_t v = start; v >= 0 && !seen[v]; v = a->next[v]) seen[v] = 1;
            restore_piece(a, start);
        }
}

static un_status fair_outline(un_context *ctx, area_args *a, int32_t passes)
{
    int64_t count = a->mesh->vertex_count;
    uint8_t *seen = un_alloc(ctx, (size_t)count + 1, 1);
    if (!seen) return UN_ERROR_MEMORY;
    memcpy(a->was, a->mesh->position, (size_t)count * sizeof *a->was);
    for (int32_t pass = 0; pass < 2 * passes; pass++) {
        a->factor = pass % 2 ? MU : LAMBDA;
        un_parallel_for(ctx, count, VERTEX_GRAIN, fair, a);
        un_parallel_for(ctx, count, VERTEX_GRAIN, place, a);
    }
    for (int round = 0; round < OFFSET_ROUNDS && passes > 0; round++) {
        memset(seen, 0, (size_t)count + 1);
        memcpy(a->t_new, a->t, (size_t)count * sizeof *a->t);
        restore_pieces(a, seen);
        un_parallel_for(ctx, count, VERTEX_GRAIN, place, a);
    }
    un_free(ctx, seen);
    return UN_OK;
}

/* ---- the recipe ---- */

un_status un_surface_area(un_context *ctx, const un_lattice *lattice, int32_t passes,
                          un_trimesh *mesh)
{
    *mesh = (un_trimesh){0};
    area_args a = {.lattice = lattice, .mesh = mesh, .n = {lattice->n[0], lattice->n[1]}};
    un_status status = UN_OK;
    int64_t rows = a.n[1], nodes = (int64_t)a.n[0] * a.n[1];
    UN_ALLOC_DONE(ctx, a.base, nodes + 1);
    UN_ALLOC_DONE(ctx, a.row_vertex, rows + 1);
    UN_ALLOC_DONE(ctx, a.row_triangle, rows + 1);
    un_parallel_for(ctx, rows, ROW_GRAIN, count_rows, &a);
    status = un_surface_number_rows(ctx, a.row_vertex, a.row_triangle, rows);
    if (status != UN_OK) goto done;
    int64_t vertices = a.row_vertex[rows], triangles = a.row_triangle[rows];
    UN_ALLOC_DONE(ctx, mesh->position, vertices + 1);
    UN_ALLOC_DONE(ctx, mesh->normal, vertices + 1);
    UN_ALLOC_DONE(ctx, mesh->triangle, triangles + 1);
    UN_ALLOC_DONE(ctx, a.kind, vertices + 1);
    UN_ALLOC_DONE(ctx, a.t, vertices + 1);
    UN_ALLOC_DONE(ctx, a.t_new, vertices + 1);
    UN_ALLOC_DONE(ctx, a.next, vertices + 1);
    UN_ALLOC_DONE(ctx, a.prev, vertices + 1);
    UN_ALLOC_DONE(ctx, a.was, vertices + 1);
    mesh->vertex_count = (int32_t)vertices;
    mesh->triangle_count = (int32_t)triangles;
    un_parallel_for(ctx, rows, ROW_GRAIN, write_vertices, &a);
    un_parallel_for(ctx, rows, ROW_GRAIN, write_triangles, &a);
    status = fair_outline(ctx, &a, passes);
done:;
    void *blocks[] = {a.base,  a.row_vertex, a.row_triangle, a.kind, a.t,
                      a.t_new, a.next,       a.prev,         a.was};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    return status;
}

double un_surface_flat_area(const un_trimesh *mesh)
{
    double sum = 0;
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        const int32_t *n = mesh->triangle[t];
        un_vec3 a = mesh->position[n[0]], b = mesh->position[n[1]], c = mesh->position[n[2]];
        sum += 0.5 * ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x));
    }
    return sum;
}
