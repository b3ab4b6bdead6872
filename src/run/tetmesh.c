/* Fills a closed surface, or the liquid or a solid of a scene, with tets: isosurface stuffing of
 * the shape's distance (mesh/stuffing.h), written as one file. */
#include "mesh/mesh.h"
#include "output/output.h"
#include "ranks/ranks.h"
#include "run/loop.h"

/* Leaves along the longest side of what is meshed. */
#define LEAVES_DEFAULT 32
#define LEAVES_MAX 4096
#define GRADING_DEFAULT 8
/* Leaves of room around a shape, so that its surface stays clear of the domain's sides. */
#define MARGIN 2
/* Volume that a mesh may lose or gain before a warning, as a share. */
#define VOLUME_WARNING 0.1

un_tetmesh_def un_tetmesh_def_default(void)
{
    return (un_tetmesh_def){.grading = GRADING_DEFAULT};
}

typedef struct work {
    un_context *ctx;
    const un_tetmesh_def *def;
    un_scene *scene;
    un_shape_set *shapes;            /* of a surface, and of solids where they start */
    const un_shape *inside, *solids; /* solids may be NULL */
    un_vec3 origin;                  /* of the mesher's domain */
    un_vec3 size;
    double inset; /* of points where the liquid is asked for, from the sides; 0: none */
    int32_t coarsest, finest;
    double volume; /* of the surface; 0: unknown */
} work;

/* Liquid that ends at a side of the domain goes on beyond it. */
static un_vec3 inset(const work *w, un_vec3 x)
{
    un_vec3 d = un_v3(w->inset, w->inset, w->inset);
    return w->inset > 0 ? un_max3(d, un_min3(x, un_sub(w->size, d))) : x;
}

static void evaluate(void *arg, int64_t count, const un_vec3 *x, double *liquid, double *solid)
{
    const work *w = arg;
    enum { BATCH = 256 };
    un_vec3 at[BATCH];
    for (int64_t base = 0; base < count; base += BATCH) {
        int32_t n = (int32_t)un_min64(count - base, BATCH);
        for (int32_t i = 0; i < n; i++) at[i] = un_add(x[base + i], w->origin);
        if (solid) un_shape_distances(w->solids, at, n, solid + base);
        for (int32_t i = 0; i < n; i++) at[i] = inset(w, at[i]);
        un_shape_distances(w->inside, at, n, liquid + base);
    }
}

/* ---- what is meshed ---- */

static un_status load_surface(work *w)
{
    un_trimesh mesh = {0};
    un_trimesh_report report;
    un_shape *shape = NULL;
    const char *path = w->def->input;
    UN_TRY(un_trimesh_load(w->ctx, path, &mesh));
    un_status status = un_shape_mesh(w->shapes, &mesh, &shape, &report);
    un_trimesh_free(w->ctx, &mesh);
    UN_TRY(status);
    w->inside = shape;
    if (report.open_edges > 0)
        un_log(w->ctx, UN_LOG_WARNING,
               "%s has %d open edges, so what is inside is a guess there; close the surface", path,
               report.open_edges);
    else
        w->volume = fabs(report.volume);
    return UN_OK;
}

/* Solid k where it starts. */
static un_status solid_shape(work *w, int32_t k, un_shape **shape)
{
    un_pose pose;
    UN_TRY(un_scene_pose(w->scene, k, 0, &pose));
    return un_shape_move(w->shapes, w->scene->def.solids[k].shape, &pose, shape);
}

static un_status no_such_part(work *w)
{
    const un_scene_def *scene = &w->scene->def;
    un_text names = {.ctx = w->ctx};
    int32_t count = 0;
    for (int32_t k = 0; k < scene->solid_count; k++)
        if (scene->solids[k].name[0])
            un_text_add(&names, "%s%s", count++ ? ", " : "", scene->solids[k].name);
    un_status status =
        names.status != UN_OK ? names.status
        : count > 0
            ? un_fail(w->ctx, UN_ERROR_ARGUMENT, "%s has no solid named %s; it has %s",
                      w->def->input, w->def->part, names.bytes)
            : un_fail(w->ctx, UN_ERROR_ARGUMENT,
                      "%s has no solid with a name; give the one to mesh a name in the scene",
                      w->def->input);
    un_free(w->ctx, names.bytes);
    return status;
}

static un_status choose_solid(work *w)
{
    const un_scene_def *scene = &w->scene->def;
    un_shape *shape;
    int32_t k = 0;
    while (k < scene->solid_count && strcmp(scene->solids[k].name, w->def->part) != 0) k++;
    if (k == scene->solid_count) return no_such_part(w);
    UN_TRY(solid_shape(w, k, &shape));
    w->inside = shape;
    return UN_OK;
}

static un_status choose_liquid(work *w)
{
    const un_scene_def *scene = &w->scene->def;
    if (!scene->liquid.shape)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "%s starts without liquid; name a solid to mesh instead", w->def->input);
    w->inside = scene->liquid.shape;
    if (scene->solid_count == 0) return UN_OK;
    un_shape **parts, *all;
    un_status status = UN_OK;
    UN_ALLOC(w->ctx, parts, scene->solid_count);
    for (int32_t k = 0; k < scene->solid_count; k++) UN_TRY_DONE(solid_shape(w, k, &parts[k]));
    UN_TRY_DONE(un_shape_union(w->shapes, parts, scene->solid_count, &all));
    w->solids = all;
done:
    un_free(w->ctx, parts);
    return status;
}

static bool is_scene(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".lua") == 0;
}

static un_status load_scene(work *w)
{
    const un_tetmesh_def *def = w->def;
    UN_TRY(un_scene_load(w->ctx, def->input, def->overrides, def->override_count, &w->scene));
    if (w->scene->def.domain.dim == 2)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "%s is flat and has no tets; give domain.size a third number", def->input);
    return def->part ? choose_solid(w) : choose_liquid(w);
}

/* ---- the lattice ---- */

static un_status too_fine(work *w, double longest, double size)
{
    return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                   "a size of %g is too fine for %s, which is %g long; take at least %.3g", size,
                   w->def->input, longest, 1.05 * longest / LEAVES_MAX);
}

static double longest_of(un_vec3 size)
{
    return fmax(size.x, fmax(size.y, size.z));
}

static int32_t grading_of(const work *w)
{
    int32_t grading = 1;
    while (2 * grading <= w->def->grading && grading < 1 << 12) grading *= 2;
    return grading;
}

/* The domain of the scene, whose sides bound the liquid. */
static un_status fit_domain(work *w)
{
    const un_scene_def *scene = &w->scene->def;
    double longest = longest_of(scene->domain.size);
    double size = w->def->size > 0 ? w->def->size : longest / scene->detail.finest;
    if (!(longest / size <= LEAVES_MAX)) return too_fine(w, longest, size);
    w->size = scene->domain.size;
    w->finest = (int32_t)un_max64((int64_t)(longest / size + 0.5), 1);
    w->coarsest = (int32_t)un_max64(w->finest / grading_of(w), 1);
    double narrow = fmin(w->size.x, fmin(w->size.y, w->size.z));
    w->inset = fmin(0.5 * longest / w->finest, 0.25 * narrow);
    return UN_OK;
}

/* A box around the shape, of whole coarsest leaves. */
static un_status fit_box(work *w)
{
    un_box3 box = un_shape_bounds(w->inside);
    un_vec3 extent = un_sub(box.max, box.min);
    double longest = longest_of(extent);
    if (!un_finite3(extent))
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "%s in %s is endless; intersect it with a box in the scene", w->def->part,
                       w->def->input);
    if (!(longest > 0))
        return un_fail(w->ctx, UN_ERROR_ARGUMENT, "%s has no inside to fill", w->def->input);
    double h = w->def->size > 0 ? w->def->size : longest / LEAVES_DEFAULT;
    if (!(longest / h <= LEAVES_MAX)) return too_fine(w, longest, h);
    int32_t grading = grading_of(w), n[3];
    double side[3] = {extent.x, extent.y, extent.z};
    w->finest = 0;
    for (int a = 0; a < 3; a++) {
        n[a] = (int32_t)ceil(side[a] / h) + 2 * MARGIN;
        n[a] = (n[a] + grading - 1) / grading * grading;
        if (n[a] > w->finest) w->finest = n[a];
    }
    w->coarsest = w->finest / grading;
    w->size = un_v3(h * n[0], h * n[1], h * n[2]);
    un_vec3 room = un_scale(un_sub(w->size, extent), 0.5);
    w->origin = un_sub(box.min, room);
    return UN_OK;
}

/* ---- making and writing ---- */

static un_status describe(work *w, const un_stuffing *mesh, un_arena *arena, un_tetmesh_report *r)
{
    un_stuffing_report found;
    UN_TRY(un_stuffing_validate(mesh, arena, &found));
    *r = (un_tetmesh_report){.node_count = mesh->node_count,
                             .tet_count = mesh->tet_count,
                             .surface_count = found.behind_count[UN_BEHIND_AIR],
                             .wall_count = found.behind_count[UN_BEHIND_WALL],
                             .volume = found.volume,
                             .size = mesh->tree.h,
                             .min_angle = found.min_angle,
                             .max_angle = found.max_angle,
                             .unmatched_faces = found.unmatched_faces,
                             .misoriented_tets = found.misoriented_tets};
    for (int side = 0; side < 6; side++) r->side_count += found.behind_count[UN_BEHIND_SIDE + side];
    uint8_t coarsest = mesh->level[0];
    for (int32_t t = 0; t < mesh->tet_count; t++)
        if (mesh->level[t] < coarsest) coarsest = mesh->level[t];
    r->largest = un_octree_size(&mesh->tree, coarsest);
    un_stuffing_common_angles(mesh, 0.01, &r->common_min, &r->common_max);
    if (w->volume > 0 && fabs(r->volume / w->volume - 1) > VOLUME_WARNING)
        un_log(w->ctx, UN_LOG_WARNING,
               "the tets fill %.3g of the surface's %.3g m3: parts thinner than the size are lost; "
               "take a smaller one",
               r->volume, w->volume);
    return UN_OK;
}

static un_status make_mesh(work *w, un_stuffing *mesh, un_arena *arena, un_tetmesh_report *report)
{
    un_stuffing_def def = un_stuffing_default();
    un_cells cells;
    def.field = evaluate;
    def.arg = w;
    def.solids = w->solids != NULL;
    UN_TRY(un_stuffing_build(mesh, arena, &def));
    if (mesh->tet_count == 0)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "nothing of %s is as thick as a size of %g; take a smaller one",
                       w->def->input, mesh->tree.h);
    UN_TRY(describe(w, mesh, arena, report));
    UN_TRY(un_cells_tagged(w->ctx, &cells, mesh, w->origin));
    un_status status = un_output_cells(w->ctx, w->def->output, &cells);
    un_cells_free(w->ctx, &cells);
    return status;
}

static un_status check_def(un_context *ctx, const un_tetmesh_def *def)
{
    if (!def->input || !def->output)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "tetmesh needs an input and an output");
    if (!(def->size >= 0) || !isfinite(def->size))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "the size of tets must be a positive number, not %g",
                       def->size);
    if (!(def->grading >= 1))
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "grading must be at least 1, tets of one size, not %g", def->grading);
    if (def->part && !is_scene(def->input))
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "%s is a surface and has no parts; only a scene (.lua) has", def->input);
    return UN_OK;
}

un_status un_tetmesh(un_context *ctx, const un_tetmesh_def *def, un_tetmesh_report *report)
{
    UN_TRY(un_ranks_refuse(ctx, "meshing"));
    un_status status = UN_OK;
    work w = {.ctx = ctx, .def = def};
    un_stuffing mesh = {.ctx = ctx};
    un_arena arena;
    bool scene = def->input && is_scene(def->input);
    *report = (un_tetmesh_report){0};
    un_arena_init(&arena, ctx);
    UN_TRY_DONE(check_def(ctx, def));
    w.shapes = un_shape_set_create(ctx);
    if (!w.shapes) {
        status = UN_ERROR_MEMORY;
        goto done;
    }
    UN_TRY_DONE(scene ? load_scene(&w) : load_surface(&w));
    UN_TRY_DONE(scene && !def->part ? fit_domain(&w) : fit_box(&w));
    un_stuffing_init(ctx, &mesh, w.size, w.coarsest, w.finest);
    status = make_mesh(&w, &mesh, &arena, report);
done:
    un_stuffing_free(&mesh);
    un_arena_free(&arena);
    un_scene_destroy(w.scene);
    un_shape_set_destroy(w.shapes);
    return status;
}
