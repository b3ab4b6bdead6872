/* Shared by all exports: choice of frames, output folder, progress. */
#include "export/export.h"
#include "ranks/ranks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

un_export_def un_export_def_default(void)
{
    return (un_export_def){
        .surface = true, .particles = true, .cells = true, .last = -1, .every = 1};
}

typedef struct format {
    const char *name;
    un_status (*write)(un_exporter *e);
    bool particles, cells, solids; /* what it supports besides surfaces */
    int32_t passes;                /* over the frames */
    bool volumes;                  /* holds volumes, not surfaces: no 2D */
} format;

static const format formats[] = {
    {"ply", un_export_ply, true, false, false, 1, false},
    {"obj", un_export_obj, false, false, false, 1, false},
    {"vtk", un_export_vtk, true, true, false, 1, false},
    {"usd", un_export_usd, true, false, true, 9, false},
    {"glb", un_export_glb, true, false, true, 2, false},
    {"vdb", un_export_vdb, true, false, false, 1, true},
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

/* ---- frames ---- */

static void frame_path(const un_exporter *e, char path[UN_EXPORT_PATH], int32_t frame,
                       const char *file)
{
    snprintf(path, UN_EXPORT_PATH, "%s/frames/%04d/%s", e->def->directory, frame, file);
}

static bool is_there(const un_exporter *e, int32_t frame, const char *file)
{
    char path[UN_EXPORT_PATH];
    struct stat found;
    frame_path(e, path, frame, file);
    return stat(path, &found) == 0;
}

un_status un_export_surface(const un_exporter *e, int32_t frame, un_trimesh *mesh)
{
    char path[UN_EXPORT_PATH];
    *mesh = (un_trimesh){0};
    if (!is_there(e, frame, "surface.ply")) return UN_OK;
    frame_path(e, path, frame, "surface.ply");
    return un_output_read_surface(e->ctx, path, mesh);
}

un_status un_export_particles(const un_exporter *e, int32_t frame, un_particles *particles)
{
    char path[UN_EXPORT_PATH];
    *particles = (un_particles){0};
    if (!is_there(e, frame, "particles.vtp")) return UN_OK;
    frame_path(e, path, frame, "particles.vtp");
    return un_output_read_particles(e->ctx, path, particles);
}

un_status un_export_create(un_exporter *e, un_file **file, const char *words, ...)
{
    char path[UN_EXPORT_PATH];
    int n = snprintf(path, sizeof path, "%s/", e->report->folder);
    va_list arguments;
    va_start(arguments, words);
    vsnprintf(path + n, sizeof path - (size_t)n, words, arguments);
    va_end(arguments);
    return un_file_create(e->ctx, path, file);
}

un_status un_export_commit(un_exporter *e, un_file *file)
{
    const char *aside = un_file_aside(file);
    struct stat found;
    double bytes = stat(aside, &found) == 0 ? (double)found.st_size : 0;
    UN_TRY(un_file_commit(file));
    e->report->file_count++;
    e->report->bytes += bytes;
    return UN_OK;
}

un_status un_export_step(un_exporter *e)
{
    e->done++;
    if (!e->def->progress || e->def->progress(e->def->user, e->done, e->total)) return UN_OK;
    return un_fail(e->ctx, UN_INTERRUPTED, "interrupted; files finished so far are in %s",
                   e->report->folder);
}

un_status un_export_solids(un_exporter *e)
{
    const un_scene_def *def = &e->scene->def;
    e->solids = un_alloc_zero(e->ctx, (size_t)def->solid_count + 1, sizeof *e->solids);
    if (!e->solids) return UN_ERROR_MEMORY;
    for (int32_t s = 0; s < def->solid_count; s++) {
        UN_TRY(un_body_mesh_build(e->ctx, def->solids[s].shape, def->solids[s].moves,
                                  def->domain.size, &e->solids[s]));
        UN_TRY(un_body_mesh_weld(e->ctx, &e->solids[s]));
    }
    return un_motion_read(e->ctx, e->def->directory, e->scene, &e->motion);
}

/* ---- what there is ---- */

static const format *find_format(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (name && strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

static un_status check_def(un_context *ctx, const un_export_def *def)
{
    if (!find_format(def->format))
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "unknown format `%s`; choose ply, obj, vtk, usd, glb or vdb",
                       def->format ? def->format : "");
    if (def->first < 0 || def->every < 1)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "frames start at 0, and `every` is at least 1");
    if (!def->directory || !*def->directory || strlen(def->directory) > 1900 ||
        (def->output && strlen(def->output) > 1900))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "a path is missing or too long");
    return UN_OK;
}

static un_status find_frames(un_exporter *e, const format *f)
{
    const un_export_def *def = e->def;
    int32_t last = un_frame_count(e->ctx, def->directory) - 1;
    /* without frame 0, as after `undine surface --frames`, any existing frame may be named */
    if (last < 0)
        for (int32_t k = def->first; k <= def->last && is_there(e, k, "."); k++) last = k;
    if (last < 0)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                       "%s has no frames; `undine run SCENE -o DIR` makes them", def->directory);
    e->first = def->first;
    e->last = def->last < 0 ? last : def->last;
    e->every = def->every;
    if (e->last > last || e->first > e->last)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT, "%s has frames 0 to %d, not %d to %d",
                       def->directory, last, e->first, e->last);
    e->frame_count = (e->last - e->first) / e->every + 1;
    for (int32_t k = 0; k < e->frame_count; k++) {
        int32_t frame = un_export_frame(e, k);
        if (def->surface && is_there(e, frame, "surface.ply")) e->surface = true;
        if (def->particles && f->particles && is_there(e, frame, "particles.vtp"))
            e->particles = true;
        if (def->cells && f->cells && is_there(e, frame, "mesh.vtu")) e->cells = true;
    }
    if (!e->surface && !e->particles && !e->cells)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                       "%s has nothing of the requested kind that %s supports; output.surface, "
                       "output.particles and output.mesh of the scene choose what a run writes",
                       def->directory, def->format);
    return UN_OK;
}

/* The last part of the directory's name; characters not allowed in identifiers become "_". */
static void name_run(un_exporter *e)
{
    const char *directory = e->def->directory, *end = directory + strlen(directory);
    while (end > directory && end[-1] == '/') end--;
    const char *begin = end;
    while (begin > directory && begin[-1] != '/') begin--;
    size_t used = 0;
    if (begin < end && isdigit((unsigned char)*begin)) e->name[used++] = '_';
    for (; begin < end && used + 1 < sizeof e->name; begin++)
        e->name[used++] = isalnum((unsigned char)*begin) ? *begin : '_';
    e->name[used] = 0;
    if (strspn(e->name, "_") == used) snprintf(e->name, sizeof e->name, "run");
}

static un_status prepare(un_exporter *e, const format *f)
{
    char path[UN_EXPORT_PATH];
    struct stat found;
    snprintf(path, sizeof path, "%s/scene.lua", e->def->directory);
    if (stat(path, &found) != 0)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                       "%s: %s; give the directory of a run, as `undine run SCENE -o DIR` makes it",
                       path, strerror(errno));
    UN_TRY(find_frames(e, f));
    UN_TRY(un_scene_load(e->ctx, path, NULL, 0, &e->scene));
    if (f->volumes && e->scene->def.domain.dim == 2)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                       "%s is a 2D run, and %s holds volumes; export it as ply, obj, vtk, usd or "
                       "glb",
                       e->def->directory, f->name);
    e->rate = e->scene->def.frames.rate;
    e->total = f->passes * e->frame_count;
    name_run(e);
    e->report->frame_count = e->frame_count;
    if (e->def->output)
        snprintf(e->report->folder, sizeof e->report->folder, "%s", e->def->output);
    else
        snprintf(e->report->folder, sizeof e->report->folder, "%.1900s/export/%s",
                 e->def->directory, f->name);
    UN_TRY(un_directory_create(e->ctx, e->report->folder));
    return f->solids ? un_export_solids(e) : UN_OK;
}

un_status un_export(un_context *ctx, const un_export_def *def, un_export_report *report)
{
    memset(report, 0, sizeof *report);
    UN_TRY(un_ranks_refuse(ctx, "an export"));
    UN_TRY(check_def(ctx, def));
    const format *f = find_format(def->format);
    un_exporter e = {.ctx = ctx, .def = def, .report = report};
    un_status status = prepare(&e, f);
    if (status == UN_OK) status = f->write(&e);
    for (int32_t s = 0; e.solids && s < e.scene->def.solid_count; s++)
        un_body_mesh_free(ctx, &e.solids[s]);
    un_free(ctx, e.solids);
    un_motion_destroy(e.motion);
    if (e.scene) un_scene_destroy(e.scene);
    return status;
}
