/* Gives each piece of the output surface the volume of its particles.
 *
 * A piece is a set of particles that hulls connect, with the closed surfaces around them. Which
 * surface belongs to which particles is known from the particle nearest to each vertex; where
 * hulls overlap without being joined, surfaces and particles form one piece together.
 *
 * Its vertices move along given directions d_v by one number for the piece. The volume is a cubic
 * in that number a,
 *     6 V(a) = sum over triangles of det(x_0 + a d_0, x_1 + a d_1, x_2 + a d_2),
 * which Newton's iteration solves. */
#include "surface/contour.h"
#include "surface/offset.h"

/* Pieces are joined by linking their first members; surfaces come first, then particles. */
static int32_t find_first(int32_t *link, int32_t i)
{
    while (link[i] != i) i = link[i] = link[link[i]];
    return i;
}

static un_status link_pieces(un_context *ctx, un_pieces *p, int32_t **link)
{
    int32_t surfaces;
    UN_TRY(un_surface_components(ctx, p->mesh, p->of_vertex, &surfaces));
    int64_t count = (int64_t)surfaces + p->particles->count;
    UN_ALLOC(ctx, *link, count + 1);
    for (int64_t i = 0; i < count; i++) (*link)[i] = (int32_t)i;
    for (int32_t v = 0; v < p->mesh->vertex_count; v++) {
        if (p->nearest[v] < 0) continue;
        int32_t a = find_first(*link, p->of_vertex[v]);
        int32_t b = find_first(*link, surfaces + p->of_particle[p->nearest[v]]);
        (*link)[a > b ? a : b] = a > b ? b : a;
    }
    for (int32_t v = 0; v < p->mesh->vertex_count; v++)
        p->of_vertex[v] = find_first(*link, p->of_vertex[v]);
    p->surface_count = surfaces;
    return UN_OK;
}

/* What the particles of each piece weigh. number: of pieces, by their first members among the
 * surfaces. */
static un_status weigh(un_context *ctx, un_pieces *p, int32_t *link, const int32_t *number)
{
    const un_particles *in = p->particles;
    int32_t *of_particle = NULL;
    if (p->weigh) UN_ALLOC(ctx, of_particle, in->count + 1);
    for (int32_t q = 0; q < in->count; q++) {
        int32_t first = find_first(link, p->surface_count + p->of_particle[q]);
        int32_t piece = first < p->surface_count ? number[first] : -1;
        p->wanting[q] = piece < 0;
        if (of_particle)
            of_particle[q] = piece;
        else if (piece >= 0)
            p->piece[piece].wanted += in->volume[q];
    }
    un_status status = p->weigh ? p->weigh(p->weigh_arg, p, of_particle) : UN_OK;
    un_free(ctx, of_particle);
    return status;
}

/* Numbers the pieces that have a surface; the body, if there is one, is piece 0. */
static un_status number_pieces(un_context *ctx, un_pieces *p, int32_t *link)
{
    int32_t surfaces = p->surface_count, *number;
    UN_ALLOC(ctx, number, surfaces + 1);
    for (int32_t c = 0; c < surfaces; c++) number[c] = -1;
    p->count = 0;
    int32_t body = p->body >= 0 ? find_first(link, surfaces + p->of_particle[p->body]) : -1;
    if (body >= 0 && body < surfaces) number[body] = p->count++;
    p->has_body = p->count > 0;
    for (int32_t v = 0; v < p->mesh->vertex_count; v++) {
        int32_t first = p->of_vertex[v];
        if (number[first] < 0) number[first] = p->count++;
        p->of_vertex[v] = number[first];
    }
    p->piece = un_alloc_zero(ctx, (size_t)p->count + 1, sizeof *p->piece);
    un_status status = p->piece ? weigh(ctx, p, link, number) : UN_ERROR_MEMORY;
    un_free(ctx, number);
    return status;
}

un_status un_pieces_find(un_context *ctx, un_pieces *p)
{
    int32_t *link = NULL;
    UN_ALLOC(ctx, p->of_vertex, p->mesh->vertex_count + 1);
    UN_ALLOC(ctx, p->wanting, p->particles->count + 1);
    un_status status = link_pieces(ctx, p, &link);
    if (status == UN_OK) status = number_pieces(ctx, p, link);
    un_free(ctx, link);
    return status;
}

void un_pieces_free(un_context *ctx, un_pieces *p)
{
    un_free(ctx, p->of_vertex);
    un_free(ctx, p->piece);
    un_free(ctx, p->wanting);
    *p = (un_pieces){0};
}

un_status un_pieces_remove(un_context *ctx, un_pieces *p, un_trimesh *mesh, const uint8_t *gone)
{
    int32_t *to, vertices = 0, triangles = 0;
    UN_ALLOC(ctx, to, mesh->vertex_count + 1);
    for (int32_t v = 0; v < mesh->vertex_count; v++) {
        to[v] = vertices;
        if (gone[p->of_vertex[v]]) continue;
        mesh->position[vertices] = mesh->position[v];
        mesh->normal[vertices] = mesh->normal[v];
        mesh->velocity[vertices++] = mesh->velocity[v];
    }
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        const int32_t *v = mesh->triangle[t];
        if (gone[p->of_vertex[v[0]]]) continue;
        int32_t kept[3] = {to[v[0]], to[v[1]], to[v[2]]};
        memcpy(mesh->triangle[triangles++], kept, sizeof kept);
    }
    mesh->vertex_count = vertices;
    mesh->triangle_count = triangles;
    un_free(ctx, to);
    un_free(ctx, p->of_vertex);
    p->of_vertex = NULL;
    return UN_OK;
}

/* Six times the volume as a polynomial, measured from a vertex of the piece. */
static void add_triangles(un_pieces *p)
{
    const un_trimesh *mesh = p->mesh;
    for (int32_t v = mesh->vertex_count; v-- > 0;)
        p->piece[p->of_vertex[v]].origin = mesh->position[v];
    for (int64_t t = 0; t < mesh->triangle_count; t++) {
        const int32_t *v = mesh->triangle[t];
        un_piece *piece = &p->piece[p->of_vertex[v[0]]];
        un_vec3 x[3], d[3];
        for (int32_t c = 0; c < 3; c++) {
            x[c] = un_sub(mesh->position[v[c]], piece->origin);
            d[c] = p->direction[v[c]];
        }
        un_vec3 xx = un_cross(x[1], x[2]), dd = un_cross(d[1], d[2]);
        un_vec3 xd = un_add(un_cross(x[1], d[2]), un_cross(d[1], x[2]));
        piece->v[0] += un_dot(x[0], xx);
        piece->v[1] += un_dot(d[0], xx) + un_dot(x[0], xd);
        piece->v[2] += un_dot(d[0], xd) + un_dot(x[0], dd);
        piece->v[3] += un_dot(d[0], dd);
    }
}

static double solve_offset(const un_piece *piece, double most, double slack)
{
    const double *v = piece->v;
    double a = 0, least = 6 * (1 - slack) * piece->wanted,
           largest = 6 * (1 + slack) * piece->wanted;
    double wanted = un_clamp(v[0], least, largest);
    for (int32_t round = 0; round < 30; round++) {
        double f = v[0] - wanted + a * (v[1] + a * (v[2] + a * v[3]));
        double slope = v[1] + a * (2 * v[2] + a * 3 * v[3]);
        if (!(slope < 0)) break; /* turned inside out, or nothing can move */
        double next = un_clamp(a - f / slope, -most, most);
        if (fabs(next - a) < 1e-9) return next;
        a = next;
    }
    return a;
}

void un_pieces_solve(un_pieces *p, double body, double most, double slack)
{
    for (int32_t i = 0; i < p->count; i++) memset(p->piece[i].v, 0, sizeof p->piece[i].v);
    add_triangles(p);
    for (int32_t i = 0; i < p->count; i++) {
        bool is_body = p->has_body && i == 0;
        p->piece[i].offset = solve_offset(&p->piece[i], is_body ? body : most, is_body ? slack : 0);
    }
}
