/* Marching cubes with generated cases, closed at the lattice's boundary.
 *
 * A lattice edge whose ends have different signs carries one vertex, where phi interpolates to
 * zero. In every cube the cut edges are joined face by face into closed loops. A face with four
 * cuts is ambiguous; it is always read as two separate liquid corners, which both cubes of the
 * face see alike, so every loop segment is shared by exactly two cubes. Loops are cut into
 * triangles by diagonals that lie in no cube face: a diagonal between two edges that share no face
 * belongs to one cube only, so each edge of the mesh has exactly two triangles, whatever the
 * signs. All 256 cases have such diagonals (build_cases asserts it), so no vertex is ever needed
 * inside a cube.
 *
 * Beyond the lattice is air. Each liquid node of the boundary carries one vertex at its own
 * position, and the liquid part of each boundary square is filled: node vertices where the corners
 * are liquid, the cut vertices of its sides elsewhere. That is a virtual layer of cubes of zero
 * height in which all virtual edges of a node share their vertex. Sides of such polygons are either
 * the segment shared with the cube behind, or lie on a boundary lattice edge, which always has two
 * boundary squares: the mesh stays closed and manifold, caps are flat, their rims sharp.
 *
 * Signs are kept as one bit per node. The vertices of 64 nodes in a row follow each other: cuts of
 * x-edges, y-edges, z-edges, boundary nodes. The number of any vertex is thus one stored base per
 * 64 nodes and a few bit counts: no edge map, 1.5 bits of scratch per node, and an order that does
 * not depend on threads. */
#include "surface/contour.h"

/* Triangles of one cube and of one boundary square. */
#define CUBE_TRIANGLES 5
#define CAP_TRIANGLES 3

/* Corner c of a cube lies at (c & 1, c >> 1 & 1, c >> 2 & 1). Edge e runs along axis e / 4 from the
 * corner with bits e & 1 along the next axis and e >> 1 & 1 along the one after it. */
typedef struct contour_cases {
    uint8_t count[256]; /* triangles; case bit c: corner c is liquid */
    uint8_t edge[256][3 * CUBE_TRIANGLES];
    /* Case bit u + 2 v: the corner at (u, v) of a square is liquid. Entries 0..3 are the corners
     * in turn about the square from (0, 0) along u, 4..7 the cuts of the sides after them;
     * counter-clockwise in (u, v). */
    uint8_t cap_count[16];
    uint8_t cap[16][3 * CAP_TRIANGLES];
} contour_cases;

/* Corner bits of a square, in turn about it. */
static const uint8_t ring[4] = {0, 1, 3, 2};

static int32_t edge_base(int32_t e)
{
    int32_t axis = e / 4;
    return (e & 1) << (axis + 1) % 3 | (e >> 1 & 1) << (axis + 2) % 3;
}

static int32_t edge_between(int32_t a, int32_t b)
{
    int32_t axis = (a ^ b) >> 1, base = a & b;
    return 4 * axis + (base >> (axis + 1) % 3 & 1) + 2 * (base >> (axis + 2) % 3 & 1);
}

/* Corner q, in turn, of the face on the low or high side of an axis; counter-clockwise seen from
 * the high side. */
static int32_t face_corner(int32_t axis, int32_t side, int32_t q)
{
    int32_t c = ring[q & 3];
    return side << axis | (c & 1) << (axis + 1) % 3 | (c >> 1) << (axis + 2) % 3;
}

static bool share_face(int32_t e, int32_t f)
{
    for (int32_t axis = 0; axis < 3; axis++)
        if (axis != e / 4 && axis != f / 4 &&
            (edge_base(e) >> axis & 1) == (edge_base(f) >> axis & 1))
            return true;
    return false;
}

/* Squared distance of the edges' middles, in halves of a cube. */
static int32_t middle_distance(int32_t e, int32_t f)
{
    int32_t sum = 0;
    for (int32_t axis = 0; axis < 3; axis++) {
        int32_t d = (axis == e / 4 ? 1 : 2 * (edge_base(e) >> axis & 1)) -
                    (axis == f / 4 ? 1 : 2 * (edge_base(f) >> axis & 1));
        sum += d * d;
    }
    return sum;
}

/* Cuts the polygon loop[0..count) by the diagonals of least total square length that lie in no
 * face, and appends its triangles. */
static void triangulate(contour_cases *cases, int32_t signs, const int32_t *loop, int32_t count)
{
    enum { FORBIDDEN = 1 << 20 };
    int32_t cost[12][12] = {{0}}, split[12][12] = {{0}};
    for (int32_t span = 2; span < count; span++)
        for (int32_t a = 0; a + span < count; a++) {
            int32_t b = a + span;
            cost[a][b] = INT32_MAX;
            for (int32_t m = a + 1; m < b; m++)
                if (cost[a][m] + cost[m][b] < cost[a][b]) {
                    cost[a][b] = cost[a][m] + cost[m][b];
                    split[a][b] = m;
                }
            if (span < count - 1)
                cost[a][b] +=
                    share_face(loop[a], loop[b]) ? FORBIDDEN : middle_distance(loop[a], loop[b]);
        }
    UN_ASSERT(cost[0][count - 1] < FORBIDDEN);
    int32_t stack[12][2] = {{0, count - 1}}, depth = 1;
    while (depth > 0) {
        depth--;
        int32_t a = stack[depth][0], b = stack[depth][1], m = split[a][b];
        if (b - a < 2) continue;
        uint8_t *triangle = cases->edge[signs] + 3 * cases->count[signs]++;
        triangle[0] = (uint8_t)loop[a];
        triangle[1] = (uint8_t)loop[m];
        triangle[2] = (uint8_t)loop[b];
        stack[depth][0] = a, stack[depth++][1] = m;
        stack[depth][0] = m, stack[depth++][1] = b;
    }
}

/* Joins the cuts of the case over the six faces: going about a face counter-clockwise seen from
 * outside the cube, each cut that enters liquid is followed by the cut that leaves it. */
static void build_case(contour_cases *cases, int32_t signs)
{
    int32_t next[12];
    for (int32_t e = 0; e < 12; e++) next[e] = -1;
    for (int32_t face = 0; face < 6; face++) {
        int32_t axis = face / 2, side = face & 1, turn = side ? 1 : -1;
        for (int32_t q = 0; q < 4; q++) {
            int32_t before = face_corner(axis, side, q), at = face_corner(axis, side, q + turn);
            if ((signs >> before & 1) || !(signs >> at & 1)) continue;
            int32_t enter = edge_between(before, at), last = q + turn, after;
            for (;; last += turn) {
                after = face_corner(axis, side, last + turn);
                if (!(signs >> after & 1)) break;
            }
            next[enter] = edge_between(face_corner(axis, side, last), after);
        }
    }
    for (int32_t e = 0; e < 12; e++) {
        int32_t loop[12], count = 0;
        for (int32_t f = e; next[f] >= 0;) {
            loop[count++] = f;
            int32_t g = next[f];
            next[f] = -1;
            f = g;
        }
        if (count > 0) triangulate(cases, signs, loop, count);
    }
}

/* Each run of liquid corners with the cuts before and after it is one convex polygon, fanned from
 * the corner that gives the best shapes; a full square is always split the same way. */
static void build_cap(contour_cases *cases, int32_t signs)
{
    for (int32_t q = 0; q < 4; q++) {
        bool full = signs == 15;
        if (full ? q > 0 : (signs >> ring[(q + 3) & 3] & 1) || !(signs >> ring[q] & 1)) continue;
        int32_t polygon[5], count = 0, liquid = 0;
        while (liquid < 4 && (signs >> ring[(q + liquid) & 3] & 1))
            polygon[count++] = (q + liquid++) & 3;
        if (!full) {
            polygon[count++] = 4 + ((q + liquid - 1) & 3);
            polygon[count++] = 4 + ((q + 3) & 3);
        }
        int32_t apex = liquid == 3;
        for (int32_t m = 1; m + 1 < count; m++) {
            uint8_t *triangle = cases->cap[signs] + 3 * cases->cap_count[signs]++;
            triangle[0] = (uint8_t)polygon[apex];
            triangle[1] = (uint8_t)polygon[(apex + m) % count];
            triangle[2] = (uint8_t)polygon[(apex + m + 1) % count];
        }
    }
}

static void build_cases(contour_cases *cases)
{
    memset(cases, 0, sizeof *cases);
    for (int32_t signs = 0; signs < 256; signs++) build_case(cases, signs);
    for (int32_t signs = 0; signs < 16; signs++) build_cap(cases, signs);
}

typedef struct contour {
    const un_lattice *lattice;
    contour_cases cases;
    int32_t n[3];
    bool open;                          /* no caps in the lattice's boundary */
    int64_t word_count;                 /* per row of nodes */
    uint64_t *liquid;                   /* [row][word]: bit i & 63 of word i >> 6 of row j + n1 k */
    int32_t *base;                      /* [row][word]: its first vertex */
    int64_t *row_vertex, *row_triangle; /* first of each row; first holds counts, shifted by one */
    un_trimesh *mesh;
    /* of several ranks */
    const un_contour_part *part;
    int64_t *at_vertex, *at_triangle; /* the same among this rank's own */
} contour;

static inline bool is_own(const contour *c, int64_t row)
{
    return !c->part || c->part->rows[row] == UN_ROW_OWN;
}
static inline bool is_known(const contour *c, int64_t row)
{
    return !c->part || c->part->rows[row];
}

/* Rows per task. */
#define ROW_GRAIN 32

/* Minus infinity is not liquid: an invalid value must not flood the lattice. */
static inline bool is_liquid(float phi)
{
    return phi < 0 && phi >= -FLT_MAX;
}

static void find_liquid(void *arg, int64_t begin, int64_t end)
{
    contour *c = arg;
    int32_t n0 = c->n[0];
    for (int64_t row = begin; row < end; row++)
        for (int64_t w = 0; w < c->word_count && is_known(c, row); w++) {
            const float *phi = c->lattice->phi + row * n0 + 64 * w;
            int32_t count = (int32_t)un_min64(64, n0 - 64 * w);
            uint64_t word = 0;
            for (int32_t b = 0; b < count; b++) word |= (uint64_t)is_liquid(phi[b]) << b;
            c->liquid[row * c->word_count + w] = word;
        }
}

/* Bits of the positions below `count` of word w. */
static inline uint64_t first_bits(int64_t count, int64_t w)
{
    int64_t left = count - 64 * w;
    return left >= 64 ? ~(uint64_t)0 : left > 0 ? ((uint64_t)1 << left) - 1 : 0;
}

/* The liquid bits of the next nodes along x. */
static inline uint64_t next_bits(const contour *c, int64_t at, int64_t w)
{
    uint64_t carry = w + 1 < c->word_count ? c->liquid[at + 1] << 63 : 0;
    return c->liquid[at] >> 1 | carry;
}

/* Which of 64 positions of a row, out of count in all, are the first or the last, or all of them
 * when the row itself lies on a wall. */
static inline uint64_t wall_bits(bool row_on_wall, int64_t count, int64_t w)
{
    if (row_on_wall) return ~(uint64_t)0;
    uint64_t bits = w == 0;
    if (w == (count - 1) >> 6) bits |= (uint64_t)1 << ((count - 1) & 63);
    return bits;
}

enum { CUT_X, CUT_Y, CUT_Z, NODE, KINDS };

/* Which of the 64 nodes of word w of row (j, k) carry a vertex of each kind. */
static inline void find_vertices(const contour *c, int32_t j, int32_t k, int64_t w,
                                 uint64_t has[KINDS])
{
    int64_t row_words = c->word_count, slice_words = c->n[1] * row_words;
    int64_t at = k * slice_words + j * row_words + w;
    uint64_t liquid = c->liquid[at];
    bool wall = j == 0 || j == c->n[1] - 1 || k == 0 || k == c->n[2] - 1;
    has[CUT_X] = (liquid ^ next_bits(c, at, w)) & first_bits(c->n[0] - 1, w);
    has[CUT_Y] = j < c->n[1] - 1 ? liquid ^ c->liquid[at + row_words] : 0;
    has[CUT_Z] = k < c->n[2] - 1 ? liquid ^ c->liquid[at + slice_words] : 0;
    has[NODE] = c->open ? 0 : liquid & wall_bits(wall, c->n[0], w);
}

static inline int32_t vertex_number(const contour *c, int32_t kind, int32_t i, int32_t j, int32_t k)
{
    uint64_t has[KINDS];
    int64_t w = i >> 6;
    find_vertices(c, j, k, w, has);
    int32_t number = c->base[(k * (int64_t)c->n[1] + j) * c->word_count + w];
    for (int32_t before = 0; before < kind; before++) number += __builtin_popcountll(has[before]);
    return number + __builtin_popcountll(has[kind] & (((uint64_t)1 << (i & 63)) - 1));
}

/* Where phi crosses zero between a and b, one of which is liquid. Half way if a value is
 * invalid. */
static double crossing(float a, float b)
{
    if (!isfinite(a) || !isfinite(b)) return 0.5;
    return un_clamp((double)a / ((double)a - (double)b), UN_SURFACE_HAIR, 1 - UN_SURFACE_HAIR);
}

static void write_vertices(void *arg, int64_t begin, int64_t end)
{
    contour *c = arg;
    const un_lattice *lattice = c->lattice;
    int64_t step[3] = {1, c->n[0], (int64_t)c->n[0] * c->n[1]};
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % c->n[1]), k = (int32_t)(row / c->n[1]);
        if (!is_known(c, row)) continue;
        int64_t number = c->row_vertex[row], at_row = c->at_vertex[row];
        un_vec3 *position = c->mesh->position + at_row;
        for (int64_t w = 0; w < c->word_count; w++) {
            c->base[row * c->word_count + w] = (int32_t)number;
            uint64_t has[KINDS];
            find_vertices(c, j, k, w, has);
            for (int32_t kind = 0; kind < KINDS; kind++) {
                number += __builtin_popcountll(has[kind]);
                if (!is_own(c, row)) continue;
                for (uint64_t left = has[kind]; left; left &= left - 1) {
                    int64_t i = 64 * w + __builtin_ctzll(left), node = row * c->n[0] + i;
                    double at[3] = {(double)i, j, k};
                    if (kind != NODE)
                        at[kind] += crossing(lattice->phi[node], lattice->phi[node + step[kind]]);
                    *position++ = un_lattice_point(lattice, at[0], at[1], at[2]);
                }
            }
        }
    }
}

/* The liquid corners of a cube's face as a case of caps; 0 when the face is inside the lattice. */
static inline int32_t cap_case(const contour *c, int32_t signs, const int32_t at[3], int32_t face)
{
    int32_t axis = face / 2, side = face & 1, square = 0;
    if (c->open || at[axis] != (side ? c->n[axis] - 2 : 0)) return 0;
    for (int32_t q = 0; q < 4; q++) square |= (signs >> face_corner(axis, side, q) & 1) << ring[q];
    return square;
}

static void write_cube(const contour *c, int32_t signs, const int32_t at[3], int32_t (*triangle)[3])
{
    int32_t cut[12] = {0};
    for (int32_t e = 0; e < 12; e++) {
        int32_t base = edge_base(e), axis = e / 4;
        if ((signs >> base & 1) != (signs >> (base | 1 << axis) & 1))
            cut[e] = vertex_number(c, axis, at[0] + (base & 1), at[1] + (base >> 1 & 1),
                                   at[2] + (base >> 2));
    }
    for (int32_t t = 0; t < c->cases.count[signs]; t++, triangle++)
        for (int32_t v = 0; v < 3; v++) (*triangle)[v] = cut[c->cases.edge[signs][3 * t + v]];
    for (int32_t face = 0; face < 6; face++) {
        int32_t axis = face / 2, side = face & 1, square = cap_case(c, signs, at, face);
        if (!square) continue;
        int32_t number[8];
        for (int32_t q = 0; q < 4; q++) {
            int32_t corner = face_corner(axis, side, q);
            number[4 + q] = cut[edge_between(corner, face_corner(axis, side, q + 1))];
            if (signs >> corner & 1)
                number[q] = vertex_number(c, NODE, at[0] + (corner & 1), at[1] + (corner >> 1 & 1),
                                          at[2] + (corner >> 2));
        }
        for (int32_t t = 0; t < c->cases.cap_count[square]; t++, triangle++)
            for (int32_t v = 0; v < 3; v++)
                (*triangle)[side ? v : 2 - v] = number[c->cases.cap[square][3 * t + v]];
    }
}

/* Counts the triangles of the cubes whose low corners are row (j, k), and writes them where
 * `triangle` points, unless NULL. */
static int64_t march_row(const contour *c, int32_t j, int32_t k, int32_t (*triangle)[3])
{
    if (j == c->n[1] - 1 || k == c->n[2] - 1) return 0;
    int64_t row_words = c->word_count, slice_words = c->n[1] * row_words, total = 0;
    bool wall = j == 0 || j == c->n[1] - 2 || k == 0 || k == c->n[2] - 2;
    for (int64_t w = 0; w < row_words; w++) {
        uint64_t liquid[8], any = 0, all = ~(uint64_t)0;
        for (int32_t corner = 0; corner < 8; corner += 2) {
            int64_t at =
                (k + (corner >> 2)) * slice_words + (j + (corner >> 1 & 1)) * row_words + w;
            liquid[corner] = c->liquid[at];
            liquid[corner + 1] = next_bits(c, at, w);
            any |= liquid[corner] | liquid[corner + 1];
            all &= liquid[corner] & liquid[corner + 1];
        }
        uint64_t busy = any & (~all | wall_bits(wall, c->n[0] - 1, w)) & first_bits(c->n[0] - 1, w);
        for (; busy; busy &= busy - 1) {
            int32_t b = __builtin_ctzll(busy), signs = 0;
            for (int32_t corner = 0; corner < 8; corner++)
                signs |= (int32_t)(liquid[corner] >> b & 1) << corner;
            int32_t at[3] = {(int32_t)(64 * w + b), j, k}, count = c->cases.count[signs];
            for (int32_t face = 0; face < 6; face++)
                count += c->cases.cap_count[cap_case(c, signs, at, face)];
            if (triangle) write_cube(c, signs, at, triangle + total);
            total += count;
        }
    }
    return total;
}

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    contour *c = arg;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % c->n[1]), k = (int32_t)(row / c->n[1]);
        int64_t vertex_count = 0;
        c->row_vertex[row + 1] = c->row_triangle[row + 1] = 0;
        if (!is_own(c, row)) continue;
        for (int64_t w = 0; w < c->word_count; w++) {
            uint64_t has[KINDS];
            find_vertices(c, j, k, w, has);
            for (int32_t kind = 0; kind < KINDS; kind++)
                vertex_count += __builtin_popcountll(has[kind]);
        }
        c->row_vertex[row + 1] = vertex_count;
        c->row_triangle[row + 1] = march_row(c, j, k, NULL);
    }
}

static void write_triangles(void *arg, int64_t begin, int64_t end)
{
    contour *c = arg;
    for (int64_t row = begin; row < end; row++)
        if (is_own(c, row))
            march_row(c, (int32_t)(row % c->n[1]), (int32_t)(row / c->n[1]),
                      c->mesh->triangle + c->at_triangle[row]);
}

un_status un_surface_number_rows(un_context *ctx, int64_t *vertex, int64_t *triangle, int64_t rows)
{
    vertex[0] = triangle[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        vertex[row + 1] += vertex[row];
        triangle[row + 1] += triangle[row];
    }
    if (vertex[rows] <= INT32_MAX && triangle[rows] <= INT32_MAX) return UN_OK;
    return un_fail(ctx, UN_ERROR_MEMORY,
                   "the surface has %.3g vertices and %.3g triangles, more than 2.1e9 can be "
                   "numbered; lower detail.surface",
                   (double)vertex[rows], (double)triangle[rows]);
}

/* Own rows follow one another in this rank's mesh; all of them have their numbers among all. */
static un_status unite_rows(un_context *ctx, contour *c, int64_t rows)
{
    const un_contour_part *part = c->part;
    double *counts = NULL;
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, c->at_vertex, rows + 1);
    UN_ALLOC_DONE(ctx, c->at_triangle, rows + 1);
    UN_ALLOC_DONE(ctx, counts, 2 * rows + 1);
done:
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK) {
        c->at_vertex[0] = c->at_triangle[0] = 0;
        for (int64_t row = 0; row < rows; row++) {
            counts[row] = (double)c->row_vertex[row + 1];
            counts[rows + row] = (double)c->row_triangle[row + 1];
            c->at_vertex[row + 1] = c->at_vertex[row] + c->row_vertex[row + 1];
            c->at_triangle[row + 1] = c->at_triangle[row] + c->row_triangle[row + 1];
        }
        un_ranks_add(ctx, counts, 2 * rows);
        for (int64_t row = 0; row < rows; row++) {
            part->vertices[row] = (int32_t)counts[row];
            part->triangles[row] = (int32_t)counts[rows + row];
            c->row_vertex[row + 1] = (int64_t)counts[row];
            c->row_triangle[row + 1] = (int64_t)counts[rows + row];
        }
    }
    un_free(ctx, counts);
    return status;
}

/* A failure before the ranks add up their rows is one of all. */
static un_status begin_rows(un_context *ctx, contour *c, int64_t rows)
{
    un_status status = UN_OK;
    size_t words = (size_t)rows * (size_t)c->word_count;
    c->liquid = un_alloc_zero(ctx, words, sizeof *c->liquid);
    if (!c->liquid) return UN_ERROR_MEMORY;
    UN_ALLOC_DONE(ctx, c->base, words);
    UN_ALLOC_DONE(ctx, c->row_vertex, rows + 1);
    UN_ALLOC_DONE(ctx, c->row_triangle, rows + 1);
    un_parallel_for(ctx, rows, ROW_GRAIN, find_liquid, c);
    un_parallel_for(ctx, rows, ROW_GRAIN, count_rows, c);
done:
    return status;
}

/* A lattice without extent along an axis encloses nothing and gives an empty mesh. */
static un_status contour_lattice(un_context *ctx, const un_lattice *lattice, bool open,
                                 const un_contour_part *part, un_trimesh *mesh)
{
    *mesh = (un_trimesh){0};
    contour c = {.lattice = lattice, .open = open, .mesh = mesh, .part = part};
    int64_t row_count = 0;
    if (lattice->n[0] >= 2 && lattice->n[1] >= 2 && lattice->n[2] >= 2) {
        memcpy(c.n, lattice->n, sizeof c.n);
        row_count = (int64_t)c.n[1] * c.n[2];
        c.word_count = (c.n[0] + (int64_t)63) / 64;
    }
    build_cases(&c.cases);
    un_status status = begin_rows(ctx, &c, row_count);
    if (part) status = un_ranks_agree(ctx, status);
    if (part && status == UN_OK) status = unite_rows(ctx, &c, row_count);
    if (status == UN_OK)
        status = un_surface_number_rows(ctx, c.row_vertex, c.row_triangle, row_count);
    if (status != UN_OK) goto done;
    if (!part) c.at_vertex = c.row_vertex, c.at_triangle = c.row_triangle;
    int64_t vertex_count = c.at_vertex[row_count], triangle_count = c.at_triangle[row_count];
    UN_ALLOC_DONE(ctx, mesh->position, vertex_count);
    UN_ALLOC_DONE(ctx, mesh->triangle, triangle_count);
    mesh->vertex_count = (int32_t)vertex_count;
    mesh->triangle_count = (int32_t)triangle_count;
    un_parallel_for(ctx, row_count, ROW_GRAIN, write_vertices, &c);
    un_parallel_for(ctx, row_count, ROW_GRAIN, write_triangles, &c);
done:
    un_free(ctx, c.liquid);
    un_free(ctx, c.base);
    un_free(ctx, c.row_vertex);
    un_free(ctx, c.row_triangle);
    if (part) un_free(ctx, c.at_vertex);
    if (part) un_free(ctx, c.at_triangle);
    if (status != UN_OK) {
        un_free(ctx, mesh->position);
        un_free(ctx, mesh->triangle);
        *mesh = (un_trimesh){0};
    }
    return status;
}

un_status un_surface_contour(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh)
{
    return contour_lattice(ctx, lattice, false, NULL, mesh);
}

un_status un_surface_contour_open(un_context *ctx, const un_lattice *lattice, un_trimesh *mesh)
{
    return contour_lattice(ctx, lattice, true, NULL, mesh);
}

un_status un_surface_contour_part(un_context *ctx, const un_lattice *lattice,
                                  const un_contour_part *part, un_trimesh *mesh)
{
    return un_ranks_agree(ctx, contour_lattice(ctx, lattice, false, part, mesh));
}
