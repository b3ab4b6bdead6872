/* Moves the vertices of an output surface along their normals, so that it encloses the volume of
 * the particles. */
#include "surface/contour.h"
#include "surface/offset.h"

/* Sheets that were drawn too thick get thin; all pieces get their volume; and so do the sheets of
 * the body, if an offset of the rest of it was not enough. */
enum { THIN, OFFSET, REST };

static bool in_body(const un_offset *s, int64_t v)
{
    return s->pieces->has_body && s->pieces->of_vertex[v] == 0;
}

static double find_way(const un_offset *s, int64_t v)
{
    if (s->still[v]) return 0;
    if (s->stage == THIN) return s->too_thick[v];
    if (s->stage == REST) return in_body(s, v) ? s->near_radius[v] - s->radius[v] : 0;
    return s->pieces->count && !in_body(s, v) ? s->near_radius[v] : s->radius[v];
}

/* Vertices in a side stay there; those in its edge slide along it. */
static void find_directions(void *arg, int64_t begin, int64_t end)
{
    un_offset *s = arg;
    const un_lattice *l = s->lattice;
    un_vec3 top = un_lattice_point(l, l->n[0] - 1, l->n[1] - 1, l->n[2] - 1);
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = s->mesh->position[v], n = un_scale(s->mesh->normal[v], -1);
        if (x.x == 0 || x.x == top.x) n.x = 0;
        if (x.y == 0 || x.y == top.y) n.y = 0;
        if (x.z == 0 || x.z == top.z) n.z = 0;
        /* as far as the surface itself moves, where it is not nearly tangent to the side */
        s->direction[v] = un_scale(n, find_way(s, v) / fmax(un_dot(n, n), 0.25));
    }
}

/* Change of the volume per unit of inset, from area and displacement. */
static double inset_rate(void *arg, int64_t begin, int64_t end)
{
    un_offset *s = arg;
    double sum = 0;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *v = s->mesh->triangle[t];
        const un_vec3 *x = s->mesh->position;
        un_vec3 area = un_cross(un_sub(x[v[1]], x[v[0]]), un_sub(x[v[2]], x[v[0]]));
        for (int32_t c = 0; c < 3; c++) sum += un_dot(area, s->direction[v[c]]) / 6;
    }
    return sum;
}

/* Vertices that are not in a side keep this share of their distance to it in each stage: a film
 * that wets it stays a film. */
#define FILM_LEFT 0.6

static double keep_off_side(const un_lattice *l, int32_t axis, double from, double to)
{
    double h = l->h[axis], top = (l->n[axis] - 1) * h, hair = UN_SURFACE_HAIR * h;
    if (to == from) return to;
    return un_clamp(to, fmax(hair, FILM_LEFT * from), top - fmax(hair, FILM_LEFT * (top - from)));
}

static void move_inwards(void *arg, int64_t begin, int64_t end)
{
    un_offset *s = arg;
    const un_lattice *l = s->lattice;
    for (int64_t v = begin; v < end; v++) {
        double inset = s->inset;
        if (s->pieces->count && s->stage != THIN)
            inset = s->pieces->piece[s->pieces->of_vertex[v]].offset;
        un_vec3 from = s->mesh->position[v], to = un_mad(from, s->direction[v], inset);
        s->mesh->position[v] =
            un_v3(keep_off_side(l, 0, from.x, to.x), keep_off_side(l, 1, from.y, to.y),
                  keep_off_side(l, 2, from.z, to.z));
    }
}

static void begin_stage(un_context *ctx, un_offset *s, int32_t stage)
{
    s->stage = stage;
    un_parallel_for(ctx, s->mesh->vertex_count, 4096, find_directions, s);
}

static void end_stage(un_context *ctx, un_offset *s)
{
    un_parallel_for(ctx, s->mesh->vertex_count, 4096, move_inwards, s);
}

void un_offset_even(un_context *ctx, un_offset *s, double wanted, double least, double most)
{
    begin_stage(ctx, s, OFFSET);
    double rate = un_parallel_sum(ctx, s->mesh->triangle_count, inset_rate, s);
    if (!(rate < 0)) return;
    s->inset = un_clamp((wanted - un_surface_volume(s->mesh)) / rate, least, most);
    end_stage(ctx, s);
}

void un_offset_pieces(un_context *ctx, un_offset *s)
{
    s->pieces->direction = s->direction;
    if (s->too_thick) {
        begin_stage(ctx, s, THIN);
        s->inset = 1;
        end_stage(ctx, s);
    }
    begin_stage(ctx, s, OFFSET);
    un_pieces_solve(s->pieces, s->body, s->most, s->slack);
    end_stage(ctx, s);
    begin_stage(ctx, s, REST);
    un_pieces_solve(s->pieces, s->sheets, 0, 0);
    end_stage(ctx, s);
}
