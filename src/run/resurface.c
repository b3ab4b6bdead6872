/* Makes surfaces again from the saved particles of a run: finer, smoother, or with the algorithm of
 * another method. bodies.csv places the solids. A method whose cells gather finds them again first,
 * unless a way or a smoothing is named. A method without particles makes them itself, from
 * the run's checkpoints: finer or coarser.
 *
 * Ranks share the frames. Each prepares for itself; rank 0 alone writes what is not of one frame.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "output/output.h"
#include "ranks/ranks.h"
#include "run/loop.h"
#include "surface/surface.h"
#include "transfer/transfer.h"

#define PATH_ROOM 4200
#define RESOLUTION_MAX 4096

un_resurface_def un_resurface_def_default(void)
{
    return (un_resurface_def){.last = -1, .smoothing = -1};
}

typedef struct work {
    un_context *ctx;
    const un_resurface_def *def;
    un_scene *scene;
    const un_method *method;
    un_checkpoint *frames; /* to be made; without particles, the checkpoints they are made from */
    int32_t frame_count, last; /* last: the frame made last */
    bool hulls, restored;
    int32_t resolution, smoothing;
    un_grid grid;
    un_bodies *bodies;
    un_motion *motion;
    un_walls *walls;
    un_arena arena;
    /* for `grid` only */
    un_bins *bins;
    float *phi, *colour, *normalizer;
    double *u[3], *weight[3];
} work;

/* Rounding to single precision may have put positions outside: they are put back. */
static void keep_inside(un_particles *p, un_vec3 size)
{
    double top[3] = {size.x, size.y, size.z};
    for (int a = 0; a < 3; a++)
        for (int32_t i = 0; i < p->count; i++)
            p->x[a][i] = un_clamp(p->x[a][i], 1e-9 * top[a], (1 - 1e-9) * top[a]);
}

static un_status mesh_hulls(work *w, un_particles *p, un_trimesh *mesh)
{
    float *radius;
    UN_ALLOC(w->ctx, radius, p->count + 1);
    un_particles_radii(radius, p->volume, p->count, false);
    un_hulls_report report;
    un_hull_mesher mesher = {.particles = p,
                             .radius = radius,
                             .depth = p->depth,
                             .walls = w->walls,
                             .size = w->scene->def.domain.size,
                             .coarsest = w->scene->def.detail.coarsest,
                             .resolution = w->resolution,
                             .smoothing = w->smoothing};
    un_status status = un_surface_mesh_hulls(w->ctx, mesh, &mesher, &report);
    un_free(w->ctx, radius);
    return status;
}

static un_status grid_arrays(work *w)
{
    size_t cells = (size_t)w->grid.cell_count;
    UN_TRY(un_bins_create(w->ctx, &w->grid, &w->bins));
    UN_ALLOC(w->ctx, w->phi, cells);
    UN_ALLOC(w->ctx, w->colour, cells);
    UN_ALLOC(w->ctx, w->normalizer, cells);
    for (int a = 0; a < w->grid.dim; a++) {
        UN_ALLOC(w->ctx, w->u[a], cells);
        UN_ALLOC(w->ctx, w->weight[a], cells);
    }
    return UN_OK;
}

static un_status mesh_grid(work *w, un_particles *p, un_trimesh *mesh)
{
    if (!w->bins) UN_TRY(grid_arrays(w));
    UN_TRY(un_bins_sort(w->bins, &w->arena, p));
    UN_TRY(un_colour_normalizer(w->ctx, w->normalizer, &w->grid, w->walls));
    UN_TRY(un_colour_level_set(w->ctx, w->phi, w->colour, &w->grid, w->bins, p, w->walls,
                               w->normalizer));
    un_transfer_to_faces(w->ctx, w->u, w->weight, &w->grid, w->bins, p);
    un_mesher mesher = {.grid = &w->grid,
                        .bins = w->bins,
                        .particles = p,
                        .walls = w->walls,
                        .phi = w->phi,
                        .u = w->u,
                        .resolution = w->resolution,
                        .smoothing = w->smoothing};
    return un_surface_mesh(w->ctx, mesh, &mesher);
}

typedef struct frame_place {
    const un_motion *motion;
    int32_t frame;
} frame_place;

static un_status place_bodies(void *arg, un_bodies *bodies)
{
    const frame_place *p = arg;
    return un_motion_place(p->motion, bodies, p->frame);
}

/* With the method's own cells, found again from the particles. */
static un_status mesh_restored(work *w, const un_particles *p, int32_t frame, un_trimesh *mesh)
{
    frame_place place = {w->motion, frame};
    un_saved_particles saved = {p, place_bodies, &place};
    void *state;
    UN_TRY(un_method_restore(w->method, w->ctx, w->scene, &saved, &state));
    un_status status = w->method->surface(state, mesh);
    un_method_destroy(w->method, state);
    return status;
}

static un_status mesh_particles(work *w, int32_t frame, un_trimesh *mesh)
{
    char path[PATH_ROOM];
    un_particles p;
    snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", w->def->directory, frame);
    UN_TRY(un_output_read_particles(w->ctx, path, &p));
    keep_inside(&p, w->scene->def.domain.size);
    if (w->restored) {
        un_status made = mesh_restored(w, &p, frame, mesh);
        un_particles_free(w->ctx, &p);
        return made;
    }
    un_status status = un_motion_place(w->motion, w->bodies, frame);
    if (status == UN_OK) status = un_walls_update(w->walls);
    if (status == UN_OK) status = w->hulls ? mesh_hulls(w, &p, mesh) : mesh_grid(w, &p, mesh);
    un_arena_reset(&w->arena);
    un_particles_free(w->ctx, &p);
    return status;
}

/* The method's own surface of a state that was saved. */
static un_status mesh_state(work *w, const un_checkpoint *from, un_trimesh *mesh)
{
    char path[UN_PATH_MAX];
    void *state = NULL;
    un_state in;
    un_run_def run = {.directory = w->def->directory};
    un_loop_checkpoint_path(path, &(un_loop){.run = &run}, from);
    un_state_init(&in, w->ctx);
    un_status status = un_checkpoint_read(&in, path);
    if (status == UN_OK) status = un_method_create(w->method, w->ctx, w->scene, &in, &state);
    un_state_free(&in);
    if (status == UN_OK) status = w->method->surface(state, mesh);
    un_method_destroy(w->method, state);
    return status;
}

static un_status mesh_frame(work *w, const un_checkpoint *from)
{
    char path[PATH_ROOM];
    const char *to = w->def->output ? w->def->output : w->def->directory;
    int32_t frame = from->frame;
    un_trimesh mesh = {0};
    un_status status =
        w->method->traits.particles ? mesh_particles(w, frame, &mesh) : mesh_state(w, from, &mesh);
    if (status == UN_OK) {
        snprintf(path, sizeof path, "%s/frames/%04d", to, frame);
        status = un_directory_create(w->ctx, path);
    }
    if (status == UN_OK) {
        snprintf(path, sizeof path, "%s/frames/%04d/surface.ply", to, frame);
        status = un_output_surface(w->ctx, path, &mesh);
    }
    if (status == UN_OK) {
        snprintf(path, sizeof path, "%s/frames/%04d/surface.vtp", to, frame);
        status = un_output_surface_vtp(w->ctx, path, &mesh);
    }
    un_trimesh_free(w->ctx, &mesh);
    return status;
}

/* ---- which frames ---- */

static int32_t last_frame(const char *directory)
{
    char path[PATH_ROOM];
    struct stat found;
    for (int32_t frame = 0;; frame++) {
        snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", directory, frame);
        if (frame == 1000000 || stat(path, &found) != 0) return frame - 1;
    }
}

static un_status find_particles(work *w)
{
    const un_resurface_def *def = w->def;
    int32_t there = last_frame(def->directory), last = def->last < 0 ? there : def->last;
    if (there < 0)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "%s has no particles; run the scene with output.particles = true",
                       def->directory);
    if (def->first < 0 || def->first > last || last > there)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT, "%s has particles of frames 0 to %d",
                       def->directory, there);
    UN_ALLOC(w->ctx, w->frames, last - def->first + 1);
    for (int32_t frame = def->first; frame <= last; frame++)
        w->frames[w->frame_count++] = (un_checkpoint){.frame = frame};
    return UN_OK;
}

/* "0, 25, 48", as far as there is room. */
static void list_frames(char *text, size_t size, const un_checkpoint *list, int32_t count)
{
    size_t used = 0;
    *text = 0;
    for (int32_t i = 0; i < count; i++) {
        if (used + 24 > size) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, used ? ", %d" : "%d", list[i].frame);
    }
}

/* Those frames in the range that have a checkpoint at their end, and a word on the others. */
static un_status find_states(work *w)
{
    const un_resurface_def *def = w->def;
    un_run_def run = {.directory = def->directory};
    char frames[200];
    int32_t count, whole = 0;
    UN_TRY(un_loop_checkpoints(&(un_loop){.ctx = w->ctx, .run = &run}, &w->frames, &count));
    for (int32_t i = 0; i < count; i++)
        if (!w->frames[i].between) w->frames[whole++] = w->frames[i];
    list_frames(frames, sizeof frames, w->frames, whole);
    for (int32_t i = 0; i < whole; i++)
        if (w->frames[i].frame >= def->first && (def->last < 0 || w->frames[i].frame <= def->last))
            w->frames[w->frame_count++] = w->frames[i];
    int32_t last = def->last < 0 ? un_frame_count(w->ctx, def->directory) - 1 : def->last;
    if (w->frame_count == last - def->first + 1) return UN_OK;
    if (w->frame_count > 0) {
        un_log(w->ctx, UN_LOG_WARNING,
               "method %s makes surfaces again from checkpoints, and %s holds those of frames %s "
               "only; `undine run --keep 1` keeps one of each frame",
               w->method->traits.name, def->directory, frames);
        return UN_OK;
    }
    return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                   "method %s makes surfaces again from checkpoints, and %s holds %s%s; "
                   "`undine run --keep 1` keeps one of each frame",
                   w->method->traits.name, def->directory, whole ? "those of frames " : "none",
                   frames);
}

/* ---- around the frames ---- */

/* What makes a folder a run: so that view, render and compare accept it. */
static un_status copy_record(work *w)
{
    static const char *const names[] = {"scene.lua", "run.json", "stats.csv", "probes.csv",
                                        "bodies.csv"};
    for (int i = 0; i < 5; i++) {
        char path[PATH_ROOM], *text;
        size_t size;
        struct stat found;
        un_file *file;
        snprintf(path, sizeof path, "%s/%s", w->def->directory, names[i]);
        if (stat(path, &found) != 0) continue;
        UN_TRY(un_file_read(w->ctx, path, &text, &size));
        snprintf(path, sizeof path, "%s/%s", w->def->output, names[i]);
        un_status status = un_file_create(w->ctx, path, &file);
        if (status == UN_OK) {
            un_file_write(file, text, size);
            status = un_file_commit(file);
        }
        un_free(w->ctx, text);
        UN_TRY(status);
    }
    return UN_OK;
}

static un_status check_def(un_context *ctx, const un_resurface_def *def)
{
    if (strlen(def->directory) > 3900 || (def->output && strlen(def->output) > 3900))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "the path is too long");
    if (def->resolution < 0 || def->resolution > RESOLUTION_MAX)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "the resolution must be from 1 to %d cells, not %d",
                       RESOLUTION_MAX, def->resolution);
    if (def->smoothing < -1 || def->smoothing > 1000)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "smoothing must be from 0 to 1000 passes, not %d",
                       def->smoothing);
    if (def->kind && strcmp(def->kind, "hulls") != 0 && strcmp(def->kind, "grid") != 0)
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "unknown way `%s` to make a surface; choose hulls or grid", def->kind);
    return UN_OK;
}

static un_status load_scene(work *w)
{
    char path[PATH_ROOM];
    struct stat found;
    un_info info;
    snprintf(path, sizeof path, "%s/scene.lua", w->def->directory);
    if (stat(path, &found) != 0)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "%s: %s; give the directory of a run, as `undine run SCENE -o DIR` makes it",
                       path, strerror(errno));
    UN_TRY(un_scene_load(w->ctx, path, NULL, 0, &w->scene));
    un_scene_def *scene = &w->scene->def;
    UN_TRY(un_run_method(w->ctx, w->scene, &w->method));
    w->resolution = w->def->resolution ? w->def->resolution : scene->detail.surface;
    scene->detail.surface = w->resolution; /* what a method goes by */
    /* the cells of the run, which a budget may have made larger than the scene's */
    if (un_info_read(w->ctx, w->def->directory, &info) == UN_OK && info.cells[0] > 0)
        scene->detail.finest =
            (int32_t)un_max64(info.cells[0], un_max64(info.cells[1], info.cells[2]));
    if (!w->method->traits.particles && (w->def->kind || w->def->smoothing >= 0))
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "method %s has no particles and one way only to make its surface; leave "
                       "out the way and the smoothing",
                       w->method->traits.name);
    return UN_OK;
}

static un_status prepare_particles(work *w)
{
    const un_scene_def *scene = &w->scene->def;
    w->hulls = w->def->kind ? strcmp(w->def->kind, "hulls") == 0
                            : w->method->traits.adaptive && scene->domain.dim == 3;
    if (w->hulls && scene->domain.dim == 2)
        return un_fail(w->ctx, UN_ERROR_ARGUMENT,
                       "%s is a 2D run, whose surface cannot be made of hulls; leave out --with "
                       "or name grid",
                       w->def->directory);
    w->smoothing = w->def->smoothing;
    if (w->smoothing < 0)
        w->smoothing = w->hulls && un_scene_viscous(scene) ? UN_SMOOTHING_THICK : UN_SMOOTHING;
    w->grid = un_grid_make(scene->domain.size, scene->detail.finest);
    w->restored = w->method->restore && !w->def->kind && w->def->smoothing < 0;
    UN_TRY(un_motion_read(w->ctx, w->def->directory, w->scene, &w->motion));
    UN_TRY(un_bodies_create(w->ctx, w->scene, &w->bodies));
    return un_walls_create(w->ctx, &w->grid, w->bodies, !w->hulls, &w->walls);
}

static un_status prepare(work *w)
{
    UN_TRY(load_scene(w));
    if (!w->method->traits.particles) return find_states(w);
    UN_TRY(find_particles(w));
    return prepare_particles(w);
}

static un_status begin_folder(work *w)
{
    if (!w->def->output) return UN_OK;
    UN_TRY(un_directory_create(w->ctx, w->def->output));
    return copy_record(w);
}

static un_status end_folder(work *w)
{
    char path[PATH_ROOM];
    /* a collection begins with frame 0 and has no gaps */
    if (!w->def->output || w->frames[w->frame_count - 1].frame != w->frame_count - 1) return UN_OK;
    snprintf(path, sizeof path, "%s/surface.pvd", w->def->output);
    return un_output_pvd(w->ctx, path, "surface.vtp", w->frame_count, w->scene->def.frames.rate);
}

static un_status mesh_piece(void *arg, int32_t index)
{
    work *w = arg;
    w->last = w->frames[index].frame;
    return mesh_frame(w, &w->frames[index]);
}

static un_status mesh_all(work *w)
{
    un_context *ctx = w->ctx;
    bool first = un_rank(ctx) == 0;
    UN_TRY(un_ranks_agree(ctx, prepare(w)));
    UN_TRY(un_ranks_agree(ctx, first ? begin_folder(w) : UN_OK));
    un_share_def share = {.count = w->frame_count,
                          .piece = mesh_piece,
                          .arg = w,
                          .progress = w->def->progress,
                          .user = w->def->user};
    un_status status = un_share(ctx, &share);
    if (status == UN_INTERRUPTED && un_rank_count(ctx) > 1)
        return un_fail(ctx, status, "interrupted; the surfaces made so far are complete");
    if (status == UN_INTERRUPTED)
        return un_fail(ctx, status, "interrupted after frame %d, which is complete", w->last);
    UN_TRY(status);
    return un_ranks_agree(ctx, first ? end_folder(w) : UN_OK);
}

un_status un_resurface(un_context *ctx, const un_resurface_def *def)
{
    UN_TRY(un_ranks_agree(ctx, check_def(ctx, def)));
    work w = {.ctx = ctx, .def = def};
    un_arena_init(&w.arena, ctx);
    un_status status = mesh_all(&w);
    un_arena_free(&w.arena);
    un_free(ctx, w.frames);
    un_bins_destroy(w.bins);
    un_free(ctx, w.phi);
    un_free(ctx, w.colour);
    un_free(ctx, w.normalizer);
    for (int a = 0; a < 3; a++) {
        un_free(ctx, w.u[a]);
        un_free(ctx, w.weight[a]);
    }
    un_walls_destroy(w.walls);
    un_bodies_destroy(w.bodies);
    un_motion_destroy(w.motion);
    if (w.scene) un_scene_destroy(w.scene);
    return status;
}
