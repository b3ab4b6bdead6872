/* Fitting the initial surface.
 *
 * The particles' level set differs from a shape's surface by a few hundredths of a cell, and
 * differently for each size of cell: the steps of millimetres between them would slosh for seconds.
 * A few rounds of moving the particles below the surface remove that, where it is flat and away
 * from its edges. */
#include "surface/fit.h"

/* ---- on any mesh ---- */

#define FIT_ERROR 0.25  /* cells: larger errors have another cause */
#define FIT_ALIGNED 0.9 /* least cosine between the two normals */
#define FIT_STEEP 0.1   /* largest difference of |grad| of the shape's distance from 1 */

bool un_fit_is_near(const un_fit *f, int64_t q, double h)
{
    return f->markers->depth[q] > -UN_FIT_DEPTH * h;
}

/* Samples of the level set on the way to its surface. */
#define WAY_SAMPLES 2

static bool in_domain(un_vec3 size, un_vec3 x)
{
    bool inside = x.x > 0 && x.y > 0 && x.x < size.x && x.y < size.y;
    return inside && (!(size.z > 0) || (x.z > 0 && x.z < size.z));
}

/* How far the level set lies below the shape's surface near x; m: the direction. */
static double surface_error(const un_fit *f, un_vec3 x, un_vec3 m)
{
    for (int i = 0; i < WAY_SAMPLES; i++) {
        if (!in_domain(f->size, x)) return INFINITY;
        x = un_mad(x, m, -f->sample(f->arg, x));
    }
    return -un_shape_distance(f->shape, x);
}

/* Is the shape's surface flat here, and the level set along it? */
static bool is_flat(un_vec3 m, un_vec3 g)
{
    double steep = un_length(g);
    return fabs(steep - 1) < FIT_STEEP && un_dot(m, g) > FIT_ALIGNED * steep;
}

/* From its place to the level set's surface, nearly. */
static un_vec3 to_surface(const un_fit *f, int64_t q, un_vec3 m)
{
    return un_mad(un_particle_position(&f->markers->particles, q), m, -f->markers->depth[q]);
}

static void move_by(const un_fit *f, int64_t q, double h, un_vec3 g, double error)
{
    un_particles *p = &f->markers->particles;
    un_vec3 x = un_particle_position(p, q);
    double depth = f->markers->depth[q], steep = un_length(g);
    if (!(fabs(error) < FIT_ERROR * h)) return;
    un_vec3 to = un_mad(x, g, error * fmin(1, 1 + depth / (UN_FIT_DEPTH * h)) / steep);
    if (!un_open_move(f->walls, x, to, 0.1 * (double)f->markers->radius[q])) return;
    /* in the wedge between surface and a slope the level set is lower whatever the particles do */
    double near = h;
    if (un_shape_distance(f->shape, to) > 0 && un_bodies_nearest(f->walls->bodies, to, &near) >= 0)
        return;
    un_particle_set_position(p, q, to);
}

void un_fit_move(const un_fit *f, int64_t q, double h, un_vec3 m, un_vec3 g)
{
    if (!is_flat(m, g)) return;
    move_by(f, q, h, g, surface_error(f, to_surface(f, q, m), m));
}

/* ---- on tets ---- */

/* Largest change of the gradient of the shape's distance between tets that share a node. In a ball
 * of few cells the level set lies below the ball's surface whatever its particles do, and moving
 * them would only inflate it. */
#define FIT_BENT 0.35

static void measure_shape(void *arg, int64_t begin, int64_t end)
{
    un_surface_fit *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        double reach = (UN_FIT_DEPTH + 2) * un_octree_size(mesh->tree, mesh->node_level[n]);
        a->distance[n] = fabsf(a->phi[n]) < (float)reach
                             ? (float)un_shape_distance(a->shape, mesh->x[n])
                             : INFINITY;
    }
}

static void measure_bend(void *arg, int64_t begin, int64_t end)
{
    un_surface_fit *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 lo = un_v3(INFINITY, INFINITY, INFINITY), hi = un_scale(lo, -1);
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double d[4];
            for (int i = 0; i < 4; i++) d[i] = a->distance[mesh->tet[t][i]];
            un_vec3 g = un_tets_gradient(mesh, t, d);
            if (!un_finite3(g)) continue;
            lo = un_min3(lo, g);
            hi = un_max3(hi, g);
        }
        a->bent[n] = (float)un_length(un_sub(hi, lo));
    }
}

static double sample_tets(const void *arg, un_vec3 x)
{
    const un_surface_fit *a = arg;
    un_tets_place place;
    un_tets_locate(a->mesh, x, &place);
    return un_tet_sample(a->mesh, a->phi, &place);
}

static un_fit fit_on(const un_surface_fit *a)
{
    return (un_fit){a->markers, a->walls, a->shape, a->mesh->tree->size, sample_tets, a};
}

/* True if particle q may be moved. h: of its cell; m, g: as in un_fit_move. */
static bool find_way(const un_surface_fit *a, const un_fit *fit, int64_t q, double *h, un_vec3 *m,
                     un_vec3 *g)
{
    int32_t t = a->markers->bins.tet[q];
    const int32_t *n = a->mesh->tet[t];
    double now[4], wanted[4];
    *h = un_tets_size(a->mesh, t);
    if (!un_fit_is_near(fit, q, *h)) return false;
    bool known = true;
    for (int i = 0; i < 4; i++) {
        now[i] = a->phi[n[i]];
        wanted[i] = a->distance[n[i]];
        known &= wanted[i] < INFINITY && a->bent[n[i]] < FIT_BENT;
    }
    if (!known) return false;
    *m = un_normalize(un_tets_gradient(a->mesh, t, now));
    *g = un_tets_gradient(a->mesh, t, wanted);
    return true;
}

static void fit_particles(void *arg, int64_t begin, int64_t end)
{
    un_surface_fit *a = arg;
    un_fit fit = fit_on(a);
    for (int64_t q = begin; q < end; q++) {
        double h;
        un_vec3 m, g;
        if (find_way(a, &fit, q, &h, &m, &g)) un_fit_move(&fit, q, h, m, g);
    }
}

un_status un_surface_fit_begin(un_context *ctx, un_surface_fit *fit)
{
    size_t count = (size_t)fit->mesh->node_count + 1;
    fit->distance = un_alloc(ctx, 2 * count, sizeof *fit->distance);
    UN_TRY(un_tets_agree(fit->mesh, fit->distance ? UN_OK : UN_ERROR_MEMORY));
    fit->bent = fit->distance + count;
    un_parallel_for(ctx, fit->mesh->node_count, 4096, measure_shape, fit);
    un_parallel_for(ctx, fit->mesh->node_count, 4096, measure_bend, fit);
    un_field field = {"bent", fit->bent, NULL, sizeof *fit->bent};
    return un_tets_share(fit->mesh, &field, 1);
}

/* ---- over ranks ---- */

/* Particles on their way to the surface, where other ranks may have it. */
typedef struct ways {
    un_surface_fit *fit;
    int64_t count;
    int32_t *particle;
    un_vec3 *x, *m, *g;
    double *h;
    un_tets_sampled *level;
} ways;

static void ways_free(un_context *ctx, ways *w)
{
    void *blocks[] = {w->particle, w->x, w->m, w->g, w->h, w->level};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
}

static un_status list_ways(un_context *ctx, ways *w)
{
    un_surface_fit *a = w->fit;
    un_part own = un_markers_own(a->markers);
    un_fit fit = fit_on(a);
    int64_t room = own.end - own.begin + 1;
    UN_ALLOC(ctx, w->particle, room);
    UN_ALLOC(ctx, w->x, room);
    UN_ALLOC(ctx, w->m, room);
    UN_ALLOC(ctx, w->g, room);
    UN_ALLOC(ctx, w->h, room);
    UN_ALLOC(ctx, w->level, room);
    for (int64_t q = own.begin; q < own.end; q++) {
        int64_t k = w->count;
        if (!find_way(a, &fit, q, &w->h[k], &w->m[k], &w->g[k])) continue;
        if (!is_flat(w->m[k], w->g[k])) continue;
        w->particle[k] = (int32_t)q;
        w->x[k] = to_surface(&fit, q, w->m[k]);
        w->count++;
    }
    return UN_OK;
}

/* Those that leave the domain go no farther. */
static void keep_inside(ways *w)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < w->count; k++) {
        if (!in_domain(w->fit->mesh->tree->size, w->x[k])) continue;
        w->particle[kept] = w->particle[k];
        w->x[kept] = w->x[k], w->m[kept] = w->m[k], w->g[kept] = w->g[k];
        w->h[kept++] = w->h[k];
    }
    w->count = kept;
}

static un_status fit_ranks(un_context *ctx, ways *w)
{
    un_surface_fit *a = w->fit;
    un_fit fit = fit_on(a);
    UN_TRY(un_ranks_agree(ctx, list_ways(ctx, w)));
    for (int i = 0; i < WAY_SAMPLES; i++) {
        keep_inside(w);
        UN_TRY(un_tets_ask(a->mesh, a->phi, w->x, w->count, w->level));
        for (int64_t k = 0; k < w->count; k++)
            w->x[k] = un_mad(w->x[k], w->m[k], -w->level[k].value);
    }
    for (int64_t k = 0; k < w->count; k++)
        move_by(&fit, w->particle[k], w->h[k], w->g[k], -un_shape_distance(a->shape, w->x[k]));
    return UN_OK;
}

un_status un_surface_fit_move(un_context *ctx, un_surface_fit *fit)
{
    if (!fit->mesh->share) {
        un_parallel_for(ctx, fit->markers->particles.count, 4096, fit_particles, fit);
        return UN_OK;
    }
    ways w = {.fit = fit};
    un_status status = fit_ranks(ctx, &w);
    ways_free(ctx, &w);
    return status;
}

void un_surface_fit_end(un_context *ctx, un_surface_fit *fit)
{
    un_free(ctx, fit->distance);
    fit->distance = fit->bent = NULL;
}
