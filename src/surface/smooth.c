/* Fairing by Taubin's lambda|mu steps, volume, vertex normals.
 *
 * One pass is x += lambda L x, then x += mu L x, with the umbrella operator
 *     L x_v = mean of v's neighbours - x_v
 * and mu slightly stronger than lambda, of the other sign: wavelengths of many edges pass
 * unchanged, short ones fade (G. Taubin, A signal processing approach to fair surface design,
 * SIGGRAPH 1995). All steps are Jacobi: read one array, write another.
 *
 * At the lattice's boundary planes ("walls") the mesh has creases, which must neither leave their
 * planes nor be pulled to one side:
 *   free surface        all neighbours
 *   cap, in one wall    all neighbours; they lie in the wall too
 *   contact line        the two neighbours on the line only: a straight line stays straight
 *   edge of two walls   the two neighbours on that edge
 *   corner of the box   fixed
 *   contact line at an edge of two walls: along the edge, half way to where the lines in the two
 *                       walls, extended straight from their last two vertices, meet the edge.
 * Every rule reproduces linear functions, so that a plane stays a plane at any tilt.
 *
 * Afterwards each connected piece is offset by a distance of its own along the free surface's
 * normals, so that a drop keeps its volume just as the sea does. With directions u fixed, the
 * volume is exactly a cubic in the distance d:
 *     V(d) = 1/6 sum over triangles of (x0 + d u0) . ((x1 + d u1) x (x2 + d u2)). */
#include "surface/contour.h"

/* Taubin's own pair, pass band 1/lambda + 1/mu = 0.1. */
#define LAMBDA 0.6307
#define MU (-0.6732)

/* A line is extended by at most this many times its own length: beyond that, noise in the last
 * segment would swing the end. */
#define EXTEND_MAX 2.0

#define VERTEX_GRAIN 4096

typedef struct walls {
    double low[3], high[3];           /* the boundary planes */
    double free_low[3], free_high[3]; /* how near other vertices may come */
} walls;

static walls find_walls(const un_lattice *lattice)
{
    const int32_t *n = lattice->n;
    un_vec3 at[4] = {un_lattice_point(lattice, 0, 0, 0),
                     un_lattice_point(lattice, n[0] - 1, n[1] - 1, n[2] - 1),
                     un_lattice_point(lattice, UN_SURFACE_HAIR, UN_SURFACE_HAIR, UN_SURFACE_HAIR),
                     un_lattice_point(lattice, n[0] - 1 - UN_SURFACE_HAIR,
                                      n[1] - 1 - UN_SURFACE_HAIR, n[2] - 1 - UN_SURFACE_HAIR)};
    walls w;
    double *to[4] = {w.low, w.high, w.free_low, w.free_high};
    for (int32_t s = 0; s < 4; s++) to[s][0] = at[s].x, to[s][1] = at[s].y, to[s][2] = at[s].z;
    return w;
}

/* Bit axis: in the low wall of the axis; bit 3 + axis: in the high one. */
static uint8_t walls_at(const walls *w, un_vec3 position)
{
    double x[3] = {position.x, position.y, position.z};
    int32_t mask = 0;
    for (int32_t axis = 0; axis < 3; axis++)
        mask |= (x[axis] == w->low[axis]) << axis | (x[axis] == w->high[axis]) << (3 + axis);
    return (uint8_t)mask;
}

/* Contours never have a free triangle with all vertices in one wall: it would need a diagonal in a
 * cube's face. */
static bool is_cap(const un_trimesh *mesh, const uint8_t *wall, int64_t t)
{
    const int32_t *v = mesh->triangle[t];
    return wall[v[0]] & wall[v[1]] & wall[v[2]];
}

/* A connected piece: V(d) = v0 + v1 d + v2 d2 + v3 d3 about its first vertex, and its target
 * volume; all times six. */
typedef struct volume_piece {
    un_vec3 anchor;
    double volume, v[4];
    double distance;
    bool failed;
} volume_piece;

typedef struct smoother {
    un_trimesh *mesh;
    walls walls;
    un_vec3 *from, *to; /* of a Jacobi step */
    double factor;
    uint8_t *wall;   /* of each vertex, as walls_at */
    int32_t *degree; /* neighbours that count; EXTEND: an end of contact lines */
    int64_t *first;  /* [vertex + 1] into neighbour */
    int32_t *neighbour;
    /* volume */
    un_vec3 *direction; /* of each vertex's offset; zero: stays */
    int32_t *component;
    int32_t component_count;
    volume_piece *piece;
    double (*term)[4]; /* of TERM_BLOCK triangles */
    int64_t term_begin;
} smoother;

#define EXTEND (-1)

static void find_wall_masks(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    for (int64_t v = begin; v < end; v++) s->wall[v] = walls_at(&s->walls, s->mesh->position[v]);
}

/* ---- neighbours ---- */

static int32_t corner_of(const int32_t *triangle, int32_t v)
{
    return triangle[0] == v ? 0 : triangle[1] == v ? 1 : 2;
}

/* Neighbours of v on the contact line: the ends of its fan of free triangles. Returns false where
 * there is no such fan. */
static bool find_contact(const smoother *s, int32_t v, const int32_t *fan, int32_t count,
                         int32_t ends[2])
{
    const un_trimesh *mesh = s->mesh;
    ends[0] = ends[1] = -1;
    for (int32_t a = 0; a < count; a++) {
        const int32_t *triangle = mesh->triangle[fan[a]];
        if (is_cap(mesh, s->wall, fan[a])) continue;
        int32_t c = corner_of(triangle, v);
        int32_t next = triangle[(c + 1) % 3], last = triangle[(c + 2) % 3];
        bool starts = true, stops = true;
        for (int32_t b = 0; b < count; b++) {
            const int32_t *other = mesh->triangle[fan[b]];
            if (b == a || is_cap(mesh, s->wall, fan[b])) continue;
            int32_t d = corner_of(other, v);
            starts &= other[(d + 2) % 3] != next;
            stops &= other[(d + 1) % 3] != last;
        }
        if (starts) ends[0] = next;
        if (stops) ends[1] = last;
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

/* Turns each vertex's list of triangles into its list of neighbours that count. On a closed mesh
 * every neighbour is the next vertex in exactly one triangle. */
static void choose_neighbours(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    for (int64_t i = begin; i < end; i++) {
        int32_t v = (int32_t)i, *row = s->neighbour + s->first[i], ends[2];
        int32_t count = (int32_t)(s->first[i + 1] - s->first[i]), kept = 0;
        uint8_t wall = s->wall[i];
        int32_t planes = __builtin_popcount(wall);
        if (planes > 0 && find_contact(s, v, row, count, ends)) {
            row[0] = ends[0], row[1] = ends[1];
            kept = planes == 1 ? 2 : planes == 2 ? EXTEND : 0;
        } else if (planes < 3) {
            for (int32_t a = 0; a < count; a++) {
                const int32_t *triangle = s->mesh->triangle[row[a]];
                int32_t next = triangle[(corner_of(triangle, v) + 1) % 3];
                if (planes < 2 || (s->wall[next] & wall) == wall) row[kept++] = next;
            }
        }
        s->degree[i] = kept;
    }
}

static un_status build_neighbours(un_context *ctx, smoother *s)
{
    const un_trimesh *mesh = s->mesh;
    int64_t vertex_count = mesh->vertex_count, corner_count = 3 * (int64_t)mesh->triangle_count;
    UN_ALLOC(ctx, s->wall, vertex_count);
    UN_ALLOC(ctx, s->degree, vertex_count);
    UN_ALLOC(ctx, s->neighbour, corner_count);
    s->first = un_alloc_zero(ctx, (size_t)vertex_count + 2, sizeof *s->first);
    if (!s->first) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, vertex_count, VERTEX_GRAIN, find_wall_masks, s);
    for (int64_t e = 0; e < corner_count; e++) s->first[mesh->triangle[e / 3][e % 3] + 2]++;
    for (int64_t v = 2; v < vertex_count + 2; v++) s->first[v] += s->first[v - 1];
    for (int64_t e = 0; e < corner_count; e++)
        s->neighbour[s->first[mesh->triangle[e / 3][e % 3] + 1]++] = (int32_t)(e / 3);
    un_parallel_for(ctx, vertex_count, VERTEX_GRAIN, choose_neighbours, s);
    return UN_OK;
}

/* ---- steps ---- */

static void unpack(double a[3], un_vec3 x)
{
    a[0] = x.x, a[1] = x.y, a[2] = x.z;
}

/* How far the end v of contact lines in two walls is from where the lines would meet the edge of
 * the walls, along that edge. Half of that distance: with all of it, end and last vertex would
 * overshoot each other. */
static un_vec3 extend_lines(const smoother *s, int64_t v)
{
    double x[3], move[3] = {0};
    unpack(x, s->from[v]);
    int32_t axes = (s->wall[v] | s->wall[v] >> 3) & 7, used = 0;
    int32_t along = axes == 6 ? 0 : axes == 5 ? 1 : 2;
    for (int32_t side = 0; side < 2; side++) {
        int32_t p = s->neighbour[s->first[v] + side];
        if (s->degree[p] != 2) continue;
        const int32_t *line = s->neighbour + s->first[p];
        double near[3], far[3];
        unpack(near, s->from[p]);
        unpack(far, s->from[line[line[0] == v]]);
        /* The axis along which the line leaves the edge: not the edge's, not its own wall's. */
        int32_t across = (axes & ~(s->wall[p] | s->wall[p] >> 3)) >> 1;
        if (across == 3) continue;
        double reach = near[across] - x[across], length = far[across] - near[across];
        if (reach * length <= 0 || fabs(reach) > EXTEND_MAX * fabs(length)) continue;
        move[along] += near[along] + (near[along] - far[along]) * (reach / length) - x[along];
        used++;
    }
    double share = used ? 0.5 / used : 0;
    return un_v3(share * move[0], share * move[1], share * move[2]);
}

/* Vertices in a wall keep its coordinate to the last bit, others stay off the walls. */
static un_vec3 keep_walls(const smoother *s, int64_t v, un_vec3 was, un_vec3 now)
{
    double a[3], b[3];
    unpack(a, was);
    unpack(b, now);
    for (int32_t axis = 0; axis < 3; axis++)
        b[axis] = s->wall[v] & (9 << axis)
                      ? a[axis]
                      : un_clamp(b[axis], s->walls.free_low[axis], s->walls.free_high[axis]);
    return un_v3(b[0], b[1], b[2]);
}

static void step(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = s->from[v], move = {0};
        if (s->degree[v] == EXTEND) {
            move = extend_lines(s, v);
        } else if (s->degree[v] > 0) {
            /* Sums differences, not positions: if all are zero, nothing moves. */
            const int32_t *neighbour = s->neighbour + s->first[v];
            for (int32_t a = 0; a < s->degree[v]; a++)
                move = un_add(move, un_sub(s->from[neighbour[a]], x));
            move = un_scale(move, 1.0 / s->degree[v]);
        }
        s->to[v] = keep_walls(s, v, x, un_mad(x, move, s->factor));
    }
}

/* ---- volume ---- */

/* Triangles whose terms are computed in parallel and then added in order. */
#define TERM_BLOCK 65536

static void compute_terms(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    for (int64_t i = begin; i < end; i++) {
        const int32_t *v = s->mesh->triangle[s->term_begin + i];
        un_vec3 anchor = s->piece[s->component[v[0]]].anchor, x[3], u[3];
        for (int32_t c = 0; c < 3; c++) {
            x[c] = un_sub(s->mesh->position[v[c]], anchor);
            u[c] = s->direction[v[c]];
        }
        un_vec3 xx = un_cross(x[1], x[2]), uu = un_cross(u[1], u[2]);
        un_vec3 xu = un_add(un_cross(x[1], u[2]), un_cross(u[1], x[2]));
        s->term[i][0] = un_dot(x[0], xx);
        s->term[i][1] = un_dot(u[0], xx) + un_dot(x[0], xu);
        s->term[i][2] = un_dot(u[0], xu) + un_dot(x[0], uu);
        s->term[i][3] = un_dot(u[0], uu);
    }
}

static void compute_volumes(un_context *ctx, smoother *s)
{
    const un_trimesh *mesh = s->mesh;
    for (int32_t c = 0; c < s->component_count; c++) memset(s->piece[c].v, 0, sizeof s->piece[c].v);
    for (int64_t begin = 0; begin < mesh->triangle_count; begin += TERM_BLOCK) {
        int64_t count = un_min64(TERM_BLOCK, mesh->triangle_count - begin);
        s->term_begin = begin;
        un_parallel_for(ctx, count, VERTEX_GRAIN, compute_terms, s);
        for (int64_t i = 0; i < count; i++) {
            double *v = s->piece[s->component[mesh->triangle[begin + i][0]]].v;
            for (int32_t a = 0; a < 4; a++) v[a] += s->term[i][a];
        }
    }
}

/* The distance that gives the piece its volume: Newton from zero, which for a round drop overshoots
 * once and then comes down steadily. */
static void solve_distance(volume_piece *piece, double reach)
{
    const double *v = piece->v;
    double d = 0, scale = fabs(v[0]) + fabs(piece->volume);
    for (int32_t round = 0; round < 60; round++) {
        double f = v[0] - piece->volume + d * (v[1] + d * (v[2] + d * v[3]));
        double slope = v[1] + d * (2 * v[2] + d * 3 * v[3]);
        if (fabs(f) <= 8 * DBL_EPSILON * scale) {
            piece->distance = d;
            return;
        }
        if (!(slope > 0)) break; /* turned inside out, or nothing can move */
        d = un_clamp(d - f / slope, -reach, reach);
    }
    piece->distance = 0;
    piece->failed = true;
}

/* Mean square length of the edges. */
static double mean_square_edge(const un_trimesh *mesh)
{
    double sum = 0;
    for (int64_t e = 0; e < 3 * (int64_t)mesh->triangle_count; e++) {
        const int32_t *v = mesh->triangle[e / 3];
        un_vec3 edge = un_sub(mesh->position[v[(e + 1) % 3]], mesh->position[v[e % 3]]);
        sum += un_dot(edge, edge);
    }
    return mesh->triangle_count > 0 ? sum / (3.0 * mesh->triangle_count) : 0;
}

/* Adds the normals of cap triangles, or of all others, to their vertices, except those marked in
 * `skip` (may be NULL). A corner between edges a and b counts by a x b / (|a|^2 |b|^2), which is
 * exact on spheres (N. Max, Weights for computing vertex normals from facet normals, 1999); a tenth
 * of an edge is added to the lengths, so that slivers do not outweigh everything. On a sphere of 17
 * cells radius, smoothed twice: 0.29 degrees rms, by area 0.67, by angle 0.49. */
static void add_normals(un_vec3 *normal, const un_trimesh *mesh, const uint8_t *wall, bool caps,
                        const uint8_t *skip)
{
    const un_vec3 *x = mesh->position;
    double least = 0.01 * mean_square_edge(mesh) + DBL_MIN;
    for (int64_t t = 0; t < mesh->triangle_count; t++) {
        if (is_cap(mesh, wall, t) != caps) continue;
        const int32_t *v = mesh->triangle[t];
        un_vec3 e[3]; /* e[c] leaves corner c */
        double square[3];
        for (int32_t c = 0; c < 3; c++) {
            e[c] = un_sub(x[v[(c + 1) % 3]], x[v[c]]);
            square[c] = un_dot(e[c], e[c]) + least;
        }
        un_vec3 area = un_cross(e[0], e[1]);
        for (int32_t c = 0; c < 3; c++)
            if (!skip || !skip[v[c]])
                normal[v[c]] = un_mad(normal[v[c]], area, 1 / (square[c] * square[(c + 2) % 3]));
    }
}

/* Directions in which a unit offset moves the free surface by one along its normal: in a wall the
 * contact line slides along with the surface that ends there, but no further than twice the
 * distance where the surface is nearly tangent to the wall. */
static void choose_directions(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    for (int64_t v = begin; v < end; v++) {
        double u[3];
        unpack(u, un_normalize(s->direction[v]));
        for (int32_t axis = 0; axis < 3; axis++)
            if (s->wall[v] & (9 << axis)) u[axis] = 0;
        un_vec3 slide = un_v3(u[0], u[1], u[2]);
        s->direction[v] = un_scale(slide, 1 / fmax(un_dot(slide, slide), 0.25));
    }
}

static double offset_vertices(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    double stopped = 0;
    for (int64_t v = begin; v < end; v++) {
        const volume_piece *piece = s->piece + s->component[v];
        un_vec3 *x = s->mesh->position + v;
        if (piece->failed) {
            *x = s->from[v];
            s->direction[v] = un_v3(0, 0, 0);
            continue;
        }
        un_vec3 wanted = un_mad(*x, s->direction[v], piece->distance);
        un_vec3 got = keep_walls(s, v, *x, wanted);
        if (got.x != wanted.x || got.y != wanted.y || got.z != wanted.z) {
            s->direction[v] = un_v3(0, 0, 0);
            stopped++;
        }
        *x = got;
    }
    return stopped;
}

/* A vertex that meets a wall stops there; another round lets the others make up for it. */
#define OFFSET_ROUNDS 4

static void restore_volumes(un_context *ctx, smoother *s, double reach)
{
    un_trimesh *mesh = s->mesh;
    memset(s->direction, 0, (size_t)mesh->vertex_count * sizeof *s->direction);
    add_normals(s->direction, mesh, s->wall, false, NULL);
    un_parallel_for(ctx, mesh->vertex_count, VERTEX_GRAIN, choose_directions, s);
    for (int32_t round = 0; round < OFFSET_ROUNDS; round++) {
        compute_volumes(ctx, s);
        for (int32_t c = 0; c < s->component_count; c++) solve_distance(&s->piece[c], reach);
        if (un_parallel_sum(ctx, mesh->vertex_count, offset_vertices, s) == 0) break;
    }
}

/* ---- crowds ---- */

/* A vertex with an edge shorter than this part of its mean edge is in a crowd. */
#define CROWDED 0.2
/* How far it moves to the middle of its neighbours. */
#define SPREAD 0.5

/* Like a Jacobi step, but only crowded vertices move. */
static void spread_step(void *arg, int64_t begin, int64_t end)
{
    smoother *s = arg;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = s->from[v], move = {0};
        double sum = 0, least = INFINITY;
        const int32_t *neighbour = s->neighbour + s->first[v];
        for (int32_t a = 0; a < s->degree[v]; a++) {
            un_vec3 edge = un_sub(s->from[neighbour[a]], x);
            double length = un_length(edge);
            move = un_add(move, edge);
            sum += length;
            least = fmin(least, length);
        }
        bool crowded = s->degree[v] > 0 && least * s->degree[v] < CROWDED * sum;
        s->to[v] = crowded ? keep_walls(s, v, x, un_mad(x, move, SPREAD / s->degree[v])) : x;
    }
}

un_status un_surface_smooth(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh,
                            int32_t passes)
{
    return un_surface_fair(ctx, lattice, mesh, 0, passes);
}

un_status un_surface_fair(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh,
                          int32_t spread_passes, int32_t passes)
{
    if ((passes <= 0 && spread_passes <= 0) || mesh->vertex_count == 0) return UN_OK;
    un_status status = UN_OK;
    smoother s = {.mesh = mesh, .walls = find_walls(lattice)};
    size_t vertices = (size_t)mesh->vertex_count, bytes = vertices * sizeof *mesh->position;
    un_vec3 *original = NULL, *other = NULL;
    UN_ALLOC_DONE(ctx, original, vertices);
    UN_ALLOC_DONE(ctx, other, vertices);
    UN_ALLOC_DONE(ctx, s.component, vertices);
    UN_ALLOC_DONE(ctx, s.term, un_min64(TERM_BLOCK, mesh->triangle_count));
    UN_TRY_DONE(un_surface_components(ctx, mesh, s.component, &s.component_count));
    UN_TRY_DONE(build_neighbours(ctx, &s));
    s.piece = un_alloc_zero(ctx, (size_t)s.component_count, sizeof *s.piece);
    if (!s.piece) {
        status = UN_ERROR_MEMORY;
        goto done;
    }
    memcpy(original, mesh->position, bytes);
    for (size_t v = vertices; v-- > 0;) s.piece[s.component[v]].anchor = original[v];
    s.direction = other;
    memset(s.direction, 0, bytes);
    compute_volumes(ctx, &s);
    for (int32_t c = 0; c < s.component_count; c++) s.piece[c].volume = s.piece[c].v[0];

    for (int32_t pass = 0; pass < spread_passes; pass++) {
        s.from = mesh->position, s.to = other;
        un_parallel_for(ctx, mesh->vertex_count, VERTEX_GRAIN, spread_step, &s);
        memcpy(mesh->position, other, bytes);
    }
    for (int32_t pass = 0; pass < passes; pass++) {
        s.from = mesh->position, s.to = other, s.factor = LAMBDA;
        un_parallel_for(ctx, mesh->vertex_count, VERTEX_GRAIN, step, &s);
        s.from = other, s.to = mesh->position, s.factor = MU;
        un_parallel_for(ctx, mesh->vertex_count, VERTEX_GRAIN, step, &s);
    }
    s.from = original;
    restore_volumes(ctx, &s, fmax(lattice->h[0], fmax(lattice->h[1], lattice->h[2])));
done:
    un_free(ctx, original);
    un_free(ctx, other);
    un_free(ctx, s.component);
    un_free(ctx, s.term);
    un_free(ctx, s.piece);
    un_free(ctx, s.wall);
    un_free(ctx, s.degree);
    un_free(ctx, s.first);
    un_free(ctx, s.neighbour);
    return status;
}

/* ---- normals ---- */

un_status un_surface_normals(un_context *ctx, un_trimesh *mesh)
{
    return un_surface_normals_at_walls(ctx, NULL, mesh);
}

/* lattice may be NULL: no walls. */
un_status un_surface_normals_at_walls(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh)
{
    un_status status = UN_OK;
    size_t vertices = (size_t)mesh->vertex_count;
    uint8_t *wall = un_alloc_zero(ctx, vertices, 1), *settled = un_alloc_zero(ctx, vertices, 1);
    if (!wall || !settled) {
        status = UN_ERROR_MEMORY;
        goto done;
    }
    if (!mesh->normal) UN_ALLOC_DONE(ctx, mesh->normal, vertices);
    if (lattice) {
        walls w = find_walls(lattice);
        for (size_t v = 0; v < vertices; v++) wall[v] = walls_at(&w, mesh->position[v]);
    }
    memset(mesh->normal, 0, vertices * sizeof *mesh->normal);
    add_normals(mesh->normal, mesh, wall, false, NULL);
    for (size_t v = 0; v < vertices; v++) settled[v] = un_dot(mesh->normal[v], mesh->normal[v]) > 0;
    add_normals(mesh->normal, mesh, wall, true, settled);
    for (size_t v = 0; v < vertices; v++) {
        un_vec3 normal = un_normalize(mesh->normal[v]);
        /* If triangles cancel out there is no direction, but programs that read the file need a
         * unit vector. */
        mesh->normal[v] = un_dot(normal, normal) > 0.5 ? normal : un_v3(0, 1, 0);
    }
done:
    un_free(ctx, wall);
    un_free(ctx, settled);
    return status;
}
