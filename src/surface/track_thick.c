/* Liquid that is too thin for the lattice of a carried surface [Chentanez07 section 3.2].
 *
 * A lattice keeps liquid that is a bit thicker than its cells. Thinner liquid is thickened: its
 * surface moves outwards until it is LEAST cells to the middle. What it gains so is no liquid. Each
 * vertex knows the share of the liquid below it that is, its `fill` f: the flow carries it, and
 * volumes count by it. Thickening from half the thickness d to d + m makes it f (d / (d + m))^k,
 * where k is 1 in sheets, 2 in threads and 3 in drops. Where the flow makes liquid thick again, and
 * where it meets thick liquid, the surface moves back until f = 1.
 *
 * The paper thickens and lets the volume grow: by 21 to 43 % in Enright's test. To thicken only
 * while volume is missing keeps the volume, but then sheets thinner than half a cell tear. */
#include "surface/surface.h"

/* From a vertex inwards, distances grow up to the middle, and beyond it shrink as much. The first
 * sample, this deep in cells, tells thick liquid; the next ones, by shares of it, what is thin. */
#define DEEP 1.5
#define SAMPLES 3
#define THICK 0.8 /* of the depth */
#define PAST 0.9  /* of the depth: less is beyond the middle */
/* Half of the thickness that thin liquid gets, in cells. A sheet of 1.1 cells is whole; a spreading
 * one may lose a quarter of its thickness in a step. */
#define LEAST 0.75
/* Liquid of less fill is left to vanish. */
#define LEAST_FILL 0.1
#define NEAR 2.0     /* cells: nearer to solids nothing is thickened */
#define STILL 0.02   /* cells: less is not worth moving the surface */
#define SIDEWAYS 0.7 /* of half the thickness: how far the shape is felt */

static double half_at(const un_track *t, int64_t v, int32_t *hint)
{
    un_vec3 x = t->mesh.position[v], n = t->mesh.normal[v];
    double deep = DEEP * t->h, last = un_track_distance(t, un_mad(x, n, -deep), hint);
    if (last < -THICK * deep) return INFINITY;
    for (int i = 1; i < SAMPLES; i++) {
        double s = deep * i / SAMPLES, phi = un_track_distance(t, un_mad(x, n, -s), hint);
        if (phi > -PAST * s) return fmax(0, 0.5 * (s - phi));
    }
    return fmax(0, 0.5 * (deep - last));
}

static void find_half(void *arg, int64_t begin, int64_t end)
{
    un_track *t = arg;
    int32_t hint = -1;
    for (int64_t v = begin; v < end; v++) t->half[v] = (float)half_at(t, v, &hint);
}

void un_track_find_half(un_track *t)
{
    un_parallel_for(t->ctx, t->mesh.vertex_count, 512, find_half, t);
}

/* 1 in sheets, 2 in threads, 3 in drops: by how much nearer the surface is beside the middle. */
static double shape_at(const un_track *t, int64_t v, double half, int32_t *hint)
{
    un_vec3 n = t->mesh.normal[v], middle = un_mad(t->mesh.position[v], n, -half);
    un_vec3 away = fabs(n.x) < 0.6 ? un_v3(1, 0, 0) : un_v3(0, 1, 0);
    un_vec3 side = un_normalize(un_cross(n, away)), axis[2] = {side, un_cross(n, side)};
    double k = 1;
    for (int a = 0; a < 2; a++) {
        double near = 0;
        for (int s = -1; s <= 1; s += 2)
            near -= 0.5 * un_track_distance(t, un_mad(middle, axis[a], s * SIDEWAYS * half), hint);
        double slope = un_clamp((1 - near / half) / SIDEWAYS, 0, 1);
        k += slope * slope;
    }
    return k;
}

/* Less than 1 at the rim of a sheet, where its thickness inwards does not lead to the other side.
 * Rims that grow as sheets do draw these out: a ball drawn out and back had 8 % too much to show.
 * Rims that grow less leave holes open: Savart's sheet is covered to 99, 95, 87 and 88 %, where a
 * quarter of a cell thick, with 0, 0.25, 0.5 and 1. */
#define RIM 0.25
static double growth_at(const un_track *t, int64_t v, double half, int32_t *hint)
{
    un_vec3 across = un_mad(t->mesh.position[v], t->mesh.normal[v], -2 * half);
    return 1 - RIM * un_clamp(-un_track_distance(t, across, hint) / half, 0, 1);
}

typedef struct planning {
    const un_track *t;
    un_track_growth *growth;
    const float *solid;
    double most;
} planning;

/* 1 in the open, 0 near solids. In walls that part liquid and air the surface has an edge, which is
 * not thin: grown, it stirred water at rest in thin tubs at 0.16 m/s. */
static double openness(const planning *p, int64_t v)
{
    return p->solid ? un_clamp(p->solid[p->t->edge[v] / 3] / p->t->h - NEAR, 0, 1) : 1;
}

static void plan_vertices(void *arg, int64_t begin, int64_t end)
{
    planning *p = arg;
    const un_track *t = p->t;
    double least = LEAST * t->h;
    int32_t hint = -1;
    for (int64_t v = begin; v < end; v++) {
        double half = t->half[v], fill = t->fill[v], more = 0, most = p->most * openness(p, v);
        p->growth->more[v] = 0;
        p->growth->fill[v] = (float)fill;
        bool thick = isinf(half), whole = fill >= 1;
        if (half >= least ? whole : fill < LEAST_FILL) continue;
        if (fabs(half - least) < STILL * t->h) continue;
        /* A sheet that has met thick liquid brought that much which is none. */
        half = thick ? least : fmax(half, 0.1 * t->h);
        double k = thick ? 1 : shape_at(t, v, half, &hint);
        if (half < least)
            more = growth_at(t, v, half, &hint) * fmin(least - half, most);
        else
            more = -fmin(thick ? most : fmin(half - least, most), half * (1 - pow(fill, 1 / k)));
        p->growth->more[v] = (float)more;
        p->growth->fill[v] = (float)fmin(1, fill * pow(half / (half + more), k));
        if (thick && most == 0) p->growth->fill[v] = 1;
    }
}

un_status un_track_plan_growth(const un_track *t, un_arena *arena, const float *solid, double most,
                               un_track_growth *growth)
{
    size_t count = (size_t)t->mesh.vertex_count + 1;
    growth->more = un_arena_alloc(arena, count, sizeof *growth->more);
    growth->fill = un_arena_alloc(arena, count, sizeof *growth->fill);
    if (!growth->more || !growth->fill) return UN_ERROR_MEMORY;
    planning p = {t, growth, solid, most};
    un_parallel_for(t->ctx, t->mesh.vertex_count, 512, plan_vertices, &p);
    return UN_OK;
}
