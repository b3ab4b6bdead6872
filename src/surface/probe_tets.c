/* Probes of the level set on tets. */
#include "surface/surface.h"

static double phi_at(const un_tets *mesh, const float *phi, un_vec3 x)
{
    un_tets_place place;
    un_tets_locate(mesh, un_min3(un_max3(x, un_v3(0, 0, 0)), mesh->tree->size), &place);
    return un_tet_sample(mesh, phi, &place);
}

typedef struct front_args {
    const un_tets *mesh;
    const float *phi;
    int axis;
    double sign;
    un_part own; /* nodes of this rank */
} front_args;

/* The cube of two finest cells around node n, moved into the domain. */
static void cube_at(const front_args *f, int64_t n, double x[3])
{
    const un_octree *tree = f->mesh->tree;
    const double top[3] = {tree->size.x, tree->size.y, tree->size.z}, h = tree->h;
    const double at[3] = {f->mesh->x[n].x, f->mesh->x[n].y, f->mesh->x[n].z};
    for (int a = 0; a < 3; a++)
        x[a] = top[a] > 2 * h ? un_clamp(at[a], h, top[a] - h) : 0.5 * top[a];
}

static un_vec3 corner_of(const front_args *f, const double x[3], int c)
{
    double h = f->mesh->tree->h;
    un_vec3 at = un_v3(x[0] + (c & 1 ? h : -h), x[1] + (c & 2 ? h : -h), x[2] + (c & 4 ? h : -h));
    return un_min3(un_max3(at, un_v3(0, 0, 0)), f->mesh->tree->size);
}

/* How far the cube may extend, after corner c with its level; negative: it is not in the liquid. */
static double extend(const front_args *f, double reach, int c, double phi)
{
    if (phi > 0) reach = -1;
    return f->sign * ((c >> f->axis & 1) ? 1 : -1) > 0 ? fmin(reach, -phi) : reach;
}

/* Over ranks: does this one know the level set at all corners? */
static bool knows_cube(const front_args *f, const double x[3])
{
    for (int c = 0; c < 8 && f->mesh->share; c++) {
        un_tets_place place;
        if (!un_tets_locate_here(f->mesh, corner_of(f, x, c), &place)) return false;
    }
    return true;
}

/* As in method `uniform`: the farthest point that a cube of two finest cells reaches while it lies
 * entirely in the liquid. */
static double front_nodes(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    double h = f->mesh->tree->h, best = -INFINITY, x[3];
    for (int64_t n = begin + f->own.begin; n < end + f->own.begin; n++) {
        if (!(f->phi[n] <= -0.5 * h)) continue;
        cube_at(f, n, x);
        if (f->sign * x[f->axis] + 2 * h <= best || !knows_cube(f, x)) continue;
        double reach = h; /* beyond a cell another node decides */
        for (int c = 0; c < 8 && reach >= 0; c++)
            reach = extend(f, reach, c, phi_at(f->mesh, f->phi, corner_of(f, x, c)));
        if (reach >= 0) best = fmax(best, f->sign * x[f->axis] + h + reach);
    }
    return best;
}

static double place_of(const front_args *f, double best)
{
    un_vec3 size = f->mesh->tree->size;
    double top = f->axis == 0 ? size.x : f->axis == 1 ? size.y : size.z;
    return isfinite(best) ? un_clamp(f->sign * best, 0, top) : NAN;
}

double un_probe_front_tets(un_context *ctx, const float *phi, const un_tets *mesh, int axis,
                           double sign)
{
    front_args f = {mesh, phi, axis, sign, {0, mesh->node_count}};
    return place_of(&f, un_parallel_max(ctx, mesh->node_count, front_nodes, &f));
}

/* ---- over ranks ---- */

/* Cubes that may be ahead of `best`, and of which another rank knows a corner. */
static un_status list_doubtful(un_context *ctx, const front_args *f, double best,
                               double (**cube)[3], int64_t *count)
{
    double h = f->mesh->tree->h, x[3];
    size_t capacity = 0;
    for (int64_t n = f->own.begin; n < f->own.end; n++) {
        if (!(f->phi[n] <= -0.5 * h)) continue;
        cube_at(f, n, x);
        if (f->sign * x[f->axis] + 2 * h <= best || knows_cube(f, x)) continue;
        UN_TRY(un_array_reserve(ctx, (void **)cube, &capacity, (size_t)*count + 1, sizeof **cube));
        memcpy((*cube)[(*count)++], x, sizeof x);
    }
    return UN_OK;
}

static un_status ask_doubtful(un_context *ctx, const front_args *f, const double (*cube)[3],
                              int64_t count, double *best)
{
    double h = f->mesh->tree->h;
    un_vec3 *corner = un_alloc(ctx, 8 * (size_t)count + 1, sizeof *corner);
    un_tets_sampled *level = un_alloc(ctx, 8 * (size_t)count + 1, sizeof *level);
    un_status status = un_ranks_agree(ctx, corner && level ? UN_OK : UN_ERROR_MEMORY);
    for (int64_t k = 0; status == UN_OK && k < 8 * count; k++)
        corner[k] = corner_of(f, cube[k / 8], (int)(k % 8));
    if (status == UN_OK) status = un_tets_ask(f->mesh, f->phi, corner, 8 * count, level);
    for (int64_t k = 0; status == UN_OK && k < count; k++) {
        double reach = h;
        for (int c = 0; c < 8 && reach >= 0; c++)
            reach = extend(f, reach, c, level[8 * k + c].value);
        if (reach >= 0) *best = fmax(*best, f->sign * cube[k][f->axis] + h + reach);
    }
    un_free(ctx, corner);
    un_free(ctx, level);
    return status;
}

un_status un_probe_front_ranks(un_context *ctx, const float *phi, const un_tets *mesh, int axis,
                               double sign, double *front)
{
    front_args f = {mesh, phi, axis, sign, un_tets_own_nodes(mesh)};
    int64_t nodes = f.own.end - f.own.begin, count = 0;
    double(*cube)[3] = NULL, best = -INFINITY;
    if (nodes > 0) best = un_parallel_max(ctx, nodes, front_nodes, &f);
    best = un_ranks_max(ctx, best);
    un_status status = un_ranks_agree(ctx, list_doubtful(ctx, &f, best, &cube, &count));
    if (status == UN_OK) status = ask_doubtful(ctx, &f, (const double(*)[3])cube, count, &best);
    un_free(ctx, cube);
    UN_TRY(status);
    *front = place_of(&f, un_ranks_max(ctx, best));
    return UN_OK;
}

/* The height where the level is that of place j along the line, from its top on. */
typedef double level_of(const void *arg, int32_t j);

static double place_on_line(const un_tets *mesh, int32_t j)
{
    return fmin(mesh->tree->size.y, 0.5 * mesh->tree->h * j);
}

static int32_t places_on_line(const un_tets *mesh)
{
    return (int32_t)ceil(mesh->tree->size.y / (0.5 * mesh->tree->h));
}

static double height_of(const un_tets *mesh, level_of *level, const void *arg)
{
    double step = 0.5 * mesh->tree->h, top = mesh->tree->size.y, above = INFINITY;
    for (int32_t j = places_on_line(mesh); j >= 0; j--) {
        double y = place_on_line(mesh, j), here = level(arg, j);
        if (here < 0) return isfinite(above) ? fmin(top, y + step * here / (here - above)) : top;
        above = here;
    }
    return 0;
}

typedef struct line {
    const un_tets *mesh;
    const float *phi;
    double x, z;
    const un_tets_sampled *level; /* over ranks */
} line;

static double level_here(const void *arg, int32_t j)
{
    const line *l = arg;
    return phi_at(l->mesh, l->phi, un_v3(l->x, place_on_line(l->mesh, j), l->z));
}

double un_probe_height_tets(const float *phi, const un_tets *mesh, double x, double z)
{
    line l = {mesh, phi, x, z, NULL};
    return height_of(mesh, level_here, &l);
}

static double level_told(const void *arg, int32_t j)
{
    return ((const line *)arg)->level[j].value;
}

un_status un_probe_height_ranks(un_context *ctx, const float *phi, const un_tets *mesh, double x,
                                double z, double *height)
{
    int32_t count = places_on_line(mesh) + 1;
    un_vec3 *at = un_alloc(ctx, (size_t)count, sizeof *at), size = mesh->tree->size;
    un_tets_sampled *level = un_alloc(ctx, (size_t)count, sizeof *level);
    line l = {mesh, phi, x, z, level};
    un_status status = un_ranks_agree(ctx, at && level ? UN_OK : UN_ERROR_MEMORY);
    for (int32_t j = 0; status == UN_OK && j < count; j++)
        at[j] = un_min3(un_max3(un_v3(x, place_on_line(mesh, j), z), un_v3(0, 0, 0)), size);
    /* rank 0 asks and knows; for the others it need not be right */
    if (status == UN_OK) status = un_tets_ask(mesh, phi, at, un_rank(ctx) == 0 ? count : 0, level);
    *height = status == UN_OK && un_rank(ctx) == 0 ? height_of(mesh, level_told, &l) : 0;
    un_free(ctx, at);
    un_free(ctx, level);
    return status;
}
