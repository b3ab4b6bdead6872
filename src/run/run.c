/* The run: steps to frames, frames to files.
 *
 * Steps of a frame are of equal length and end exactly on it. After each frame its files are
 * complete, the tables synced and run.json up to date, so whatever ends the run ends it there. */
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "output/output.h"

typedef struct run_state {
    un_context *ctx;
    un_scene *scene;
    const un_scene_def *def;
    const un_run_def *run;
    const un_method *method;
    void *state;
    un_estimate estimate;
    un_table *stats, *probes;
    int32_t frame; /* finished */
    double time;
    double started;
    double frame_seconds;                /* smoothed cost of a frame, 0: not known yet */
    double stage_seconds[UN_STAGES_MAX]; /* the method's, then surface and output */
    const char *stage_names[UN_STAGES_MAX + 1];
    int32_t stage_count;
} run_state;

un_run_def un_run_def_default(void)
{
    return (un_run_def){0};
}

static void path_of(char *path, size_t size, const run_state *r, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void path_of(char *path, size_t size, const run_state *r, const char *format, ...)
{
    int n = snprintf(path, size, "%s/", r->run->directory);
    if (n < 0 || (size_t)n >= size) return; /* the length was checked at the start */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + n, size - (size_t)n, format, arguments);
    va_end(arguments);
}

#define PATH_MAX_OURS 2048

/* ---- the directory ---- */

static bool is_ours(const char *name)
{
    static const char *const files[] = {"surface.ply", "surface.vtp", "particles.vtp", "mesh.vtu"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        size_t length = strlen(files[f]), all = strlen(name);
        if (strncmp(name, files[f], length) != 0) continue;
        /* itself, or left aside by a run that was killed: surface.ply.<pid>.tmp */
        if (all == length || (all > length + 4 && strcmp(name + all - 4, ".tmp") == 0)) return true;
    }
    return false;
}

static void remove_frame(const run_state *r, const char *number)
{
    char path[PATH_MAX_OURS];
    path_of(path, sizeof path, r, "frames/%.9s", number);
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!is_ours(entry->d_name)) continue;
        path_of(path, sizeof path, r, "frames/%.9s/%.255s", number, entry->d_name);
        unlink(path);
    }
    closedir(folder);
    path_of(path, sizeof path, r, "frames/%.9s", number);
    rmdir(path); /* stays if it holds something that is not ours */
}

/* A new run replaces the frames of an earlier one in the same place, its own files only. */
static void remove_old_frames(const run_state *r)
{
    char path[PATH_MAX_OURS];
    path_of(path, sizeof path, r, "frames");
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t digits = strspn(entry->d_name, "0123456789");
        if (digits < 4 || digits > 9 || entry->d_name[digits]) continue;
        remove_frame(r, entry->d_name);
    }
    closedir(folder);
}

static un_status write_record(run_state *r, const char *status, const char *message)
{
    char path[PATH_MAX_OURS];
    un_run_record record = {.command = r->run->command,
                            .method = r->def->method,
                            .status = status,
                            .message = message,
                            .frames_finished = r->frame,
                            .frames_planned = r->def->frames.count,
                            .rate = r->def->frames.rate,
                            .cell_size = r->estimate.cell_size,
                            .bytes_peak = (double)un_context_peak_bytes(r->ctx),
                            .seconds = un_seconds() - r->started,
                            .stages = r->stage_names,
                            .stage_seconds = r->stage_seconds};
    memcpy(record.cells, r->estimate.cells, sizeof record.cells);
    path_of(path, sizeof path, r, "run.json");
    return un_output_run_json(r->ctx, path, &record);
}

static un_status open_directory(run_state *r)
{
    char path[PATH_MAX_OURS], *text;
    if (!r->run->directory || !*r->run->directory)
        return un_fail(r->ctx, UN_ERROR_ARGUMENT,
                       "a run needs an output directory; name one with -o");
    if (strlen(r->run->directory) > PATH_MAX_OURS - 128)
        return un_fail(r->ctx, UN_ERROR_ARGUMENT, "the name of the output directory is too long");
    path_of(path, sizeof path, r, "frames");
    UN_TRY(un_directory_create(r->ctx, path));
    UN_TRY(write_record(r, "running", "")); /* first of all: the old run is no more */
    remove_old_frames(r);
    UN_TRY(un_scene_text(r->scene, &text));
    path_of(path, sizeof path, r, "scene.lua");
    un_file *file;
    un_status status = un_file_create(r->ctx, path, &file);
    if (status == UN_OK) {
        un_file_write(file, text, strlen(text));
        status = un_file_commit(file);
    }
    un_free(r->ctx, text);
    UN_TRY(status);
    path_of(path, sizeof path, r, "stats.csv");
    UN_TRY(un_stats_create(r->ctx, path, r->method, &r->stats));
    path_of(path, sizeof path, r, "probes.csv");
    return un_probes_create(r->ctx, path, r->def->probes, r->def->probe_count, &r->probes);
}

/* ---- frames ---- */

static un_status write_surface(run_state *r, int32_t frame)
{
    char path[PATH_MAX_OURS];
    double clock = un_seconds();
    un_trimesh mesh = {0};
    UN_TRY(r->method->surface(r->state, &mesh));
    r->stage_seconds[r->stage_count - 2] += un_seconds() - clock;
    clock = un_seconds();
    path_of(path, sizeof path, r, "frames/%04d/surface.ply", frame);
    un_status status = un_output_surface(r->ctx, path, &mesh);
    if (status == UN_OK) {
        path_of(path, sizeof path, r, "frames/%04d/surface.vtp", frame);
        status = un_output_surface_vtp(r->ctx, path, &mesh);
    }
    un_trimesh_free(r->ctx, &mesh);
    r->stage_seconds[r->stage_count - 1] += un_seconds() - clock;
    return status;
}

static un_status write_cells(run_state *r, int32_t frame)
{
    char path[PATH_MAX_OURS];
    un_cells cells;
    UN_TRY(r->method->cells(r->state, &cells));
    path_of(path, sizeof path, r, "frames/%04d/mesh.vtu", frame);
    un_status status = un_output_cells(r->ctx, path, &cells);
    un_cells_free(r->ctx, &cells);
    return status;
}

static un_status write_collection(run_state *r, const char *name, const char *file, int32_t frame)
{
    char path[PATH_MAX_OURS];
    path_of(path, sizeof path, r, "%s.pvd", name);
    return un_output_pvd(r->ctx, path, file, frame + 1, r->def->frames.rate);
}

static un_status write_frame(run_state *r, int32_t frame)
{
    char path[PATH_MAX_OURS];
    path_of(path, sizeof path, r, "frames/%04d", frame);
    UN_TRY(un_directory_create(r->ctx, path));
    if (r->def->output.surface) UN_TRY(write_surface(r, frame));
    double clock = un_seconds();
    if (r->def->output.particles) {
        path_of(path, sizeof path, r, "frames/%04d/particles.vtp", frame);
        UN_TRY(un_output_particles(r->ctx, path, r->method->particles(r->state)));
    }
    if (r->def->output.mesh) UN_TRY(write_cells(r, frame));
    if (r->def->output.surface) UN_TRY(write_collection(r, "surface", "surface.vtp", frame));
    if (r->def->output.particles) UN_TRY(write_collection(r, "particles", "particles.vtp", frame));
    if (r->def->output.mesh) UN_TRY(write_collection(r, "mesh", "mesh.vtu", frame));
    UN_TRY(un_table_sync(r->stats));
    UN_TRY(un_table_sync(r->probes));
    r->stage_seconds[r->stage_count - 1] += un_seconds() - clock;
    r->frame = frame;
    return write_record(r, "running", "");
}

/* ---- steps ---- */

#define PROBES_MAX 256

static un_status write_rows(run_state *r, const un_step *step)
{
    double values[PROBES_MAX + 1] = {step->time};
    int32_t count = r->def->probe_count < PROBES_MAX ? r->def->probe_count : PROBES_MAX;
    UN_TRY(un_stats_row(r->stats, r->method, step));
    for (int32_t p = 0; p < count; p++)
        values[p + 1] = r->method->probe(r->state, &r->def->probes[p]);
    return un_table_row(r->probes, values, count + 1);
}

/* Time left by what recent frames cost, the one under way counted by its share. */
static bool report_progress(run_state *r, const un_step *step, double fraction,
                            double frame_started)
{
    if (!r->run->progress) return true;
    double now = un_seconds(), cost = r->frame_seconds;
    double so_far = now - frame_started;
    if (fraction > 0 && (cost <= 0 || so_far > cost)) cost = so_far / fraction;
    double left = r->def->frames.count - r->frame - fraction;
    un_progress progress = {.frame = r->frame,
                            .frame_count = r->def->frames.count,
                            .step = step->step,
                            .time = step->time,
                            .frame_fraction = fraction,
                            .particles = step->particles,
                            .volume_error = step->volume_error,
                            .seconds = now - r->started,
                            .seconds_left = cost > 0 ? cost * left : -1};
    return r->run->progress(r->run->user, &progress);
}

static un_status simulate_frame(run_state *r, int32_t frame)
{
    double rate = r->def->frames.rate, begin = (frame - 1) / rate, end = frame / rate;
    double started = un_seconds();
    un_step step;
    while (end - r->time > 1e-9 / rate) {
        double limit = r->method->step_limit(r->state);
        double count = ceil((end - r->time) / limit - 1e-9);
        if (!(count < 1e6))
            return un_fail(r->ctx, UN_ERROR_NUMERIC,
                           "frame %d would need more than a million steps: the liquid moves at %g "
                           "cells a frame; look for extreme velocities in the scene",
                           frame, count);
        UN_TRY(r->method->step(r->state, (end - r->time) / fmax(count, 1), &step));
        r->time = step.time;
        step.frame = frame;
        for (int32_t s = 0; s < r->stage_count - 2; s++)
            r->stage_seconds[s] += step.stage_seconds[s];
        UN_TRY(write_rows(r, &step));
        double fraction = un_clamp((r->time - begin) * rate, 0, 1);
        bool last = end - r->time <= 1e-9 / rate; /* reported with the frame, once it is written */
        if (!last && !report_progress(r, &step, fraction, started))
            return un_fail(r->ctx, UN_INTERRUPTED,
                           "interrupted in frame %d; frames up to %d are "
                           "complete",
                           frame, r->frame);
    }
    UN_TRY(write_frame(r, frame));
    double seconds = un_seconds() - started;
    r->frame_seconds = r->frame_seconds > 0 ? 0.7 * r->frame_seconds + 0.3 * seconds : seconds;
    if (!report_progress(r, &step, 0, un_seconds()) && frame < r->def->frames.count)
        return un_fail(r->ctx, UN_INTERRUPTED, "interrupted after frame %d, which is complete",
                       frame);
    return UN_OK;
}

static un_status simulate(run_state *r)
{
    un_step step;
    UN_TRY(r->method->create(r->ctx, r->scene, &r->state));
    r->method->first(r->state, &step);
    step.bytes = (double)un_context_bytes(r->ctx);
    UN_TRY(write_rows(r, &step));
    UN_TRY(write_frame(r, 0));
    if (!report_progress(r, &step, 0, un_seconds()))
        return un_fail(r->ctx, UN_INTERRUPTED, "interrupted after frame 0");
    for (int32_t frame = 1; frame <= r->def->frames.count; frame++)
        UN_TRY(simulate_frame(r, frame));
    return UN_OK;
}

static void name_stages(run_state *r)
{
    for (int32_t s = 0; r->method->stages[s] && s < UN_STAGES_MAX - 2; s++)
        r->stage_names[r->stage_count++] = r->method->stages[s];
    r->stage_names[r->stage_count++] = "surface";
    r->stage_names[r->stage_count++] = "output";
}

un_status un_run(un_context *ctx, un_scene *scene, const un_run_def *def)
{
    run_state r = {
        .ctx = ctx, .scene = scene, .def = &scene->def, .run = def, .started = un_seconds()};
    UN_TRY(un_run_method(ctx, scene, &r.method));
    UN_TRY(un_run_fit_budget(ctx, scene, &r.estimate));
    name_stages(&r);
    for (int32_t n = 0; n < scene->note_count; n++)
        un_log(ctx, UN_LOG_WARNING, "%s", scene->notes[n]);
    un_status status = open_directory(&r);
    bool opened = status == UN_OK;
    if (status == UN_OK) status = simulate(&r);
    if (r.state) r.method->destroy(r.state);
    /* What went wrong first is what the caller hears of, even if closing fails too. */
    char message[1024];
    snprintf(message, sizeof message, "%s", status == UN_OK ? "" : un_context_message(ctx));
    un_status closing = un_table_close(r.stats), probes_closing = un_table_close(r.probes);
    if (closing == UN_OK) closing = probes_closing;
    if (opened) {
        const char *word = status == UN_OK            ? "done"
                           : status == UN_INTERRUPTED ? "interrupted"
                                                      : "failed";
        un_status recording = write_record(&r, word, message);
        if (closing == UN_OK) closing = recording;
    }
    if (status != UN_OK) return un_fail(ctx, status, "%s", message);
    return closing;
}
