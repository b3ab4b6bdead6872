/* The run: steps make frames, frames make files.
 *
 * Steps of a frame are of equal length and end exactly on it. After each frame its files are
 * complete, the tables synced and run.json up to date; then comes a checkpoint. So however the
 * run ends, its files are whole and it can be resumed from the last checkpoint. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "ranks/ranks.h"
#include "run/loop.h"

#define OWN_STAGES 3 /* surface, output, checkpoint: after the method's */

un_run_def un_run_def_default(void)
{
    return (un_run_def){0};
}

/* ---- beginning ---- */

/* A new run replaces the files of an earlier one in the same directory, and only those: first the
 * checkpoints, so that old states never meet new frames. */
static un_status begin(un_loop *l)
{
    char path[UN_PATH_MAX];
    if (!l->writes) return un_loop_begin_portions(l);
    UN_TRY(un_loop_remove_checkpoints(l, -1));
    UN_TRY(un_loop_record(l, "running", ""));
    un_loop_remove_frames(l, -1);
    UN_TRY(un_loop_write_scene(l));
    un_loop_path(path, l, "stats.csv");
    UN_TRY(un_stats_create(l->ctx, path, l->method, -1, &l->stats));
    UN_TRY(un_loop_begin_portions(l));
    un_loop_path(path, l, "probes.csv");
    return un_probes_create(l->ctx, path, l->def->probes, l->def->probe_count, -1, &l->probes);
}

/* ---- several ranks ---- */

/* What is not shared out yet is refused. */
static un_status allow_ranks(un_loop *l)
{
    int32_t count = un_rank_count(l->ctx);
    if (count == 1 || l->method->traits.ranks) return UN_OK;
    return un_ranks_agree(
        l->ctx, un_fail(l->ctx, UN_ERROR_UNAVAILABLE,
                        "this version simulates by method %s in one process, and %d were "
                        "started; start it without mpirun or srun, on all processors of one "
                        "machine",
                        l->method->traits.name, count));
}

un_status un_loop_gather(un_loop *l, unsigned what)
{
    if (un_rank_count(l->ctx) == 1 || what == 0) return UN_OK;
    return l->method->gather(l->state, what);
}

static unsigned probe_shows(un_probe_kind kind)
{
    switch (kind) {
    case UN_PROBE_FRONT:
    case UN_PROBE_HEIGHT:
        return UN_SHOW_LEVEL;
    case UN_PROBE_VELOCITY:
        return UN_SHOW_LEVEL | UN_SHOW_VELOCITY;
    case UN_PROBE_PRESSURE:
    case UN_PROBE_FORCE:
        return UN_SHOW_LEVEL | UN_SHOW_PRESSURE;
    case UN_PROBE_WET:
    case UN_PROBE_FLUX:
        return UN_SHOW_PARTICLES;
    }
    return UN_SHOW_ALL;
}

static unsigned probes_show(const un_loop *l)
{
    unsigned what = 0;
    for (int32_t i = 0; i < l->def->probe_count; i++) what |= probe_shows(l->def->probes[i].kind);
    return what;
}

static unsigned frame_shows(const un_loop *l)
{
    unsigned what = 0;
    for (int32_t i = 0; i < l->def->probe_count; i++) /* watch_fronts */
        if (l->def->probes[i].kind == UN_PROBE_FRONT) what |= UN_SHOW_FRONTS;
    if (l->def->output.mesh) what |= UN_SHOW_LEVEL | UN_SHOW_PRESSURE | UN_SHOW_VELOCITY;
    return l->def->output.surface ? what | UN_SHOW_SURFACE : what;
}

/* All stop where one rank was told to; rank 0 knows whether a checkpoint is due. */
static void decide(un_loop *l, bool *stop, bool *save)
{
    enum { GO_ON, SAVE, STOP };
    bool due = l->writes && un_loop_save_is_due(l);
    double most = un_ranks_max(l->ctx, *stop ? STOP : due ? SAVE : GO_ON);
    *stop = most >= STOP;
    *save = most >= SAVE;
}

/* ---- frames ---- */

/* Of several ranks, which all call this, rank 0 gets it. */
static un_status make_surface(un_loop *l, un_trimesh *mesh)
{
    double clock = un_seconds();
    *mesh = (un_trimesh){0};
    un_status status = l->method->surface(l->state, mesh);
    if (status == UN_ERROR_MEMORY && un_loop_make_room(l) == UN_OK) {
        un_state_free(&l->before);
        status = l->method->surface(l->state, mesh);
    }
    l->stage_seconds[l->stage_count - 3] += un_seconds() - clock;
    return status;
}

static un_status write_surface(un_loop *l, int32_t frame)
{
    char path[UN_PATH_MAX];
    un_trimesh mesh;
    UN_TRY(make_surface(l, &mesh));
    double clock = un_seconds();
    un_loop_path(path, l, "frames/%04d/surface.ply", frame);
    un_status status = un_output_surface(l->ctx, path, &mesh);
    if (status == UN_OK) {
        un_loop_path(path, l, "frames/%04d/surface.vtp", frame);
        status = un_output_surface_vtp(l->ctx, path, &mesh);
    }
    un_trimesh_free(l->ctx, &mesh);
    l->stage_seconds[l->stage_count - 2] += un_seconds() - clock;
    return status;
}

static un_status write_cells(un_loop *l, int32_t frame)
{
    char path[UN_PATH_MAX];
    un_cells cells;
    UN_TRY(l->method->cells(l->state, &cells));
    un_loop_path(path, l, "frames/%04d/mesh.vtu", frame);
    un_status status = un_output_cells(l->ctx, path, &cells);
    un_cells_free(l->ctx, &cells);
    return status;
}

static un_status write_collection(un_loop *l, const char *name, const char *file, int32_t frame)
{
    char path[UN_PATH_MAX];
    un_loop_path(path, l, "%s.pvd", name);
    return un_output_pvd(l->ctx, path, file, frame + 1, l->def->frames.rate);
}

static bool shows_particles(const un_loop *l)
{
    return l->def->output.particles && l->method->particles;
}

static un_status write_collections(un_loop *l, int32_t frame)
{
    if (l->def->output.surface) UN_TRY(write_collection(l, "surface", "surface.vtp", frame));
    if (shows_particles(l)) UN_TRY(write_collection(l, "particles", "particles.vtp", frame));
    return l->def->output.mesh ? write_collection(l, "mesh", "mesh.vtu", frame) : UN_OK;
}

/* A front probe that finds no liquid two cells thick, or lags far behind the wet floor: in finest
 * cells, and as a share of the domain. */
#define FRONT_CELLS 6.0
#define FRONT_SHARE 0.1

static void watch_fronts(un_loop *l)
{
    un_vec3 g = l->def->gravity;
    const double side[3] = {l->def->domain.size.x, l->def->domain.size.y, l->def->domain.size.z};
    const double pull[3] = {fabs(g.x), fabs(g.y), fabs(g.z)};
    for (int32_t i = 0; i < l->def->probe_count && !l->front_warned; i++) {
        un_probe probe = l->def->probes[i];
        /* along gravity there is no floor */
        if (probe.kind != UN_PROBE_FRONT || pull[probe.axis] > 0.5 * un_length(g)) continue;
        double front = l->method->probe(l->state, &probe);
        probe.kind = UN_PROBE_WET;
        double wet = l->method->probe(l->state, &probe), ahead = probe.sign * (wet - front);
        double most = fmax(FRONT_CELLS * l->estimate.cell_size, FRONT_SHARE * side[probe.axis]);
        if (isnan(wet) || ahead <= most) continue;
        l->front_warned = true;
        un_log(
            l->ctx, UN_LOG_WARNING,
            "t = %.4g s: probe \"%s\" sees only liquid that is two cells thick, and the floor is "
            "wet up to %.3g m; use wet { axis = \"%s%c\" }",
            l->time, probe.name, wet, probe.sign < 0 ? "-" : "", "xyz"[probe.axis]);
    }
}

/* Of several ranks, which all call this. */
static un_status write_stream(un_loop *l, const char *path)
{
    un_particle_stream stream;
    UN_TRY(l->method->stream(l->state, &stream));
    return un_output_particle_stream(l->ctx, path, &stream);
}

static un_status write_particles(un_loop *l, const char *path)
{
    const float *depth = l->method->depth ? l->method->depth(l->state) : NULL;
    if (un_rank_count(l->ctx) > 1) return write_stream(l, path);
    return un_output_particles(l->ctx, path, l->method->particles(l->state), depth);
}

static un_status write_frame(un_loop *l, int32_t frame)
{
    char path[UN_PATH_MAX];
    UN_TRY(un_loop_gather(l, frame_shows(l)));
    if (!l->writes) {
        un_trimesh none;
        if (l->def->output.surface) UN_TRY(make_surface(l, &none));
        un_loop_path(path, l, "frames/%04d/particles.vtp", frame);
        if (shows_particles(l)) UN_TRY(write_stream(l, path));
        l->frame = frame;
        l->between = false;
        return UN_OK;
    }
    un_loop_path(path, l, "frames/%04d", frame);
    UN_TRY(un_directory_create(l->ctx, path));
    if (l->def->output.surface) UN_TRY(write_surface(l, frame));
    double clock = un_seconds();
    if (shows_particles(l)) {
        un_loop_path(path, l, "frames/%04d/particles.vtp", frame);
        UN_TRY(write_particles(l, path));
    }
    if (l->def->output.mesh) UN_TRY(write_cells(l, frame));
    UN_TRY(write_collections(l, frame));
    UN_TRY(un_table_sync(l->stats));
    UN_TRY(un_table_sync(l->probes));
    if (l->bodies) UN_TRY(un_table_sync(l->bodies));
    l->stage_seconds[l->stage_count - 2] += un_seconds() - clock;
    l->frame = frame;
    l->between = false;
    watch_fronts(l);
    return un_loop_record(l, "running", "");
}

/* ---- steps ---- */

static un_status write_probes(un_loop *l, double time)
{
    int32_t count = l->def->probe_count;
    double *values = un_alloc(l->ctx, (size_t)count + 1, sizeof *values);
    if (!values) return UN_ERROR_MEMORY;
    values[0] = time;
    for (int32_t p = 0; p < count; p++)
        values[p + 1] = l->method->probe(l->state, &l->def->probes[p]);
    un_status status = un_table_row(l->probes, values, count + 1);
    un_free(l->ctx, values);
    return status;
}

static un_status write_rows(un_loop *l, const un_step *step)
{
    UN_TRY(un_loop_gather(l, l->def->probe_count > 0 ? probes_show(l) | UN_SHOW_PROBES : 0));
    if (!l->writes) return UN_OK;
    UN_TRY(un_stats_row(l->stats, l->method, step));
    UN_TRY(write_probes(l, step->time));
    if (!l->bodies) return UN_OK;
    return un_bodies_table_row(l->ctx, l->bodies, un_method_bodies(l->state), step->time);
}

/* A run that is suspended, by Ctrl-Z or SIGSTOP, has a long gap with next to no processor time in
 * it. Counting it would make the time left look like days. */
#define GAP_SECONDS 5.0
#define GAP_SHARE 0.02

static double work_seconds(un_loop *l)
{
    double now = un_seconds(), processor = un_processor_seconds();
    double gap = now - l->work_clock, used = processor - l->work_processor;
    l->work += gap > GAP_SECONDS && used < GAP_SHARE * gap ? used : gap;
    l->work_clock = now;
    l->work_processor = processor;
    return l->work;
}

/* Time left, from the cost of recent frames; the current one counts by its fraction. */
static bool report_progress(un_loop *l, const un_step *step, double fraction, double frame_started)
{
    if (!l->run->progress) return true;
    double now = un_seconds(), cost = l->frame_seconds;
    double so_far = work_seconds(l) - frame_started;
    if (fraction > 0 && (cost <= 0 || so_far > cost)) cost = so_far / fraction;
    double left = l->def->frames.count - l->frame - fraction;
    un_progress progress = {.frame = l->frame,
                            .frame_count = l->def->frames.count,
                            .step = step->step,
                            .time = step->time,
                            .frame_fraction = fraction,
                            .particles = step->particles,
                            .volume_error = step->volume_error,
                            .seconds = now - l->started,
                            .seconds_left = cost > 0 ? cost * left : -1,
                            .suspect = l->suspect.text[0] != 0};
    return l->run->progress(l->run->user, &progress);
}

static un_status simulate_frame(un_loop *l, int32_t frame)
{
    double rate = l->def->frames.rate, begin = (frame - 1) / rate, end = frame / rate;
    double started = work_seconds(l);
    un_step step = {.step = l->step, .time = l->time}; /* when a frame lacks only its files */
    while (end - l->time > 1e-9 / rate) {
        double limit = l->method->step_limit(l->state);
        double count = ceil((end - l->time) / limit - 1e-9);
        if (!(count < 1e6))
            return un_fail(l->ctx, UN_ERROR_NUMERIC,
                           "frame %d would need more than a million steps: the liquid moves at %g "
                           "cells per frame; look for extreme velocities in the scene",
                           frame, count);
        un_loop_mark_portions(l);
        UN_TRY(un_loop_step(l, (end - l->time) / fmax(count, 1), &step));
        l->time = step.time;
        l->step = step.step;
        l->between = true;
        l->max_speed = step.max_speed;
        step.frame = frame;
        UN_TRY(un_loop_write_portions(l, &step));
        for (int32_t s = 0; s < l->stage_count - OWN_STAGES; s++)
            l->stage_seconds[s] += step.stage_seconds[s];
        UN_TRY(write_rows(l, &step));
        un_loop_suspect(l, &step);
        double fraction = un_clamp((l->time - begin) * rate, 0, 1);
        bool last = end - l->time <= 1e-9 / rate; /* reported with the frame, once it is written */
        if (last) break;
        bool stop = !report_progress(l, &step, fraction, started), save;
        decide(l, &stop, &save);
        if (save) UN_TRY(un_loop_save(l, false));
        if (stop)
            return un_fail(
                l->ctx, UN_INTERRUPTED,
                "interrupted in frame %d; frames up to %d are complete, --resume continues", frame,
                l->frame);
    }
    un_state_free(&l->before); /* the output surface may need the room */
    UN_TRY(write_frame(l, frame));
    double seconds = work_seconds(l) - started;
    l->frame_seconds = l->frame_seconds > 0 ? 0.7 * l->frame_seconds + 0.3 * seconds : seconds;
    bool stop = !report_progress(l, &step, 0, work_seconds(l)), save;
    decide(l, &stop, &save);
    if (save) UN_TRY(un_loop_save(l, false));
    if (stop && frame < l->def->frames.count)
        return un_fail(l->ctx, UN_INTERRUPTED,
                       "interrupted after frame %d, which is complete; --resume continues", frame);
    return UN_OK;
}

/* Removes a table of an earlier run in the same directory. */
static un_status begin_bodies(un_loop *l)
{
    char path[UN_PATH_MAX];
    const un_bodies *bodies = un_method_bodies(l->state);
    if (!l->writes) return UN_OK;
    un_loop_path(path, l, "bodies.csv");
    if (bodies->moving) return un_bodies_table_create(l->ctx, path, bodies, -1, &l->bodies);
    if (unlink(path) != 0 && errno != ENOENT) return un_file_fail(l->ctx, "remove", path, errno);
    return UN_OK;
}

static un_status first_frame(un_loop *l)
{
    un_step step;
    UN_TRY(begin(l));
    UN_TRY(un_method_create(l->method, l->ctx, l->scene, NULL, &l->state));
    UN_TRY(begin_bodies(l));
    un_method_first(l->state, &step);
    step.bytes = (double)un_context_bytes(l->ctx);
    l->max_speed = step.max_speed;
    UN_TRY(write_rows(l, &step));
    un_loop_suspect(l, &step);
    UN_TRY(write_frame(l, 0));
    bool stop = !report_progress(l, &step, 0, work_seconds(l)), save;
    decide(l, &stop, &save);
    UN_TRY(un_loop_save(l, false));
    return stop ? un_fail(l->ctx, UN_INTERRUPTED, "interrupted after frame 0; --resume continues")
                : UN_OK;
}

/* What the record says of the part before, unless the run goes back to before that. */
static void recall_suspicion(un_loop *l)
{
    un_info *info = un_alloc_zero(l->ctx, 1, sizeof *info);
    if (!info) return;
    int step = 0;
    if (un_info_read(l->ctx, l->run->directory, info) == UN_OK &&
        sscanf(info->suspect, "from step %d", &step) == 1 && step <= l->step) {
        snprintf(l->suspect.text, sizeof l->suspect.text, "%.599s", info->suspect);
        l->suspect.warned = UINT32_MAX;
    }
    un_free(l->ctx, info);
}

/* The collections must name the remaining frames. */
static un_status go_on(un_loop *l)
{
    l->saved_at = un_seconds();
    UN_TRY(un_loop_begin_portions(l));
    if (!l->writes) return UN_OK;
    recall_suspicion(l);
    UN_TRY(un_loop_record(l, "running", ""));
    UN_TRY(un_loop_write_scene(l));
    return write_collections(l, l->frame);
}

static un_status simulate(un_loop *l)
{
    bool resumed = false;
    if (l->writes) un_loop_remove_asides(l);
    if (l->run->resume) UN_TRY(un_loop_resume(l, &resumed));
    l->opened = true;
    UN_TRY(resumed ? go_on(l) : first_frame(l));
    while (l->frame < l->def->frames.count) UN_TRY(simulate_frame(l, l->frame + 1));
    return UN_OK;
}

static void name_stages(un_loop *l)
{
    for (int32_t s = 0; l->method->stages[s] && s < UN_STAGES_MAX - OWN_STAGES; s++)
        l->stage_names[l->stage_count++] = l->method->stages[s];
    l->stage_names[l->stage_count++] = "surface";
    l->stage_names[l->stage_count++] = "output";
    l->stage_names[l->stage_count++] = "checkpoint";
}

/* A failed step leaves the state from before it, from which the run can be resumed. */
static void save_last_state(un_loop *l, un_status status)
{
    if (l->before.count == 0 || (status != UN_ERROR_NUMERIC && status != UN_ERROR_MEMORY)) return;
    int64_t step;
    if (un_state_integer(&l->before, "step", l->step, l->step, &step) != UN_OK) return;
    if (un_rank_count(l->ctx) > 1) { /* each has a part of it */
        if (status == UN_ERROR_NUMERIC && un_loop_go_back(l) == UN_OK) un_loop_save(l, false);
        return;
    }
    un_method_destroy(l->method, l->state); /* its memory may be what is missing */
    l->state = NULL;
    if (un_loop_save(l, true) != UN_OK) return; /* then from the checkpoint before */
}

un_status un_run(un_context *ctx, un_scene *scene, const un_run_def *def)
{
    un_loop l = {.ctx = ctx,
                 .scene = scene,
                 .def = &scene->def,
                 .run = def,
                 .lock = -1,
                 .writes = un_rank(ctx) == 0,
                 .started = un_seconds(),
                 .work_clock = un_seconds(),
                 .work_processor = un_processor_seconds()};
    UN_TRY(un_run_method(ctx, scene, &l.method));
    UN_TRY(allow_ranks(&l));
    UN_TRY(un_run_fit_budget(ctx, scene, &l.estimate));
    name_stages(&l);
    un_state_init(&l.seen, ctx);
    un_state_init(&l.before, ctx);
    for (int32_t n = 0; n < scene->note_count; n++)
        un_log(ctx, UN_LOG_WARNING, "%s", scene->notes[n]);
    un_status status = un_likeness(ctx, scene, l.method, &l.likeness);
    if (status == UN_OK) status = un_ranks_agree(ctx, l.writes ? un_loop_claim(&l) : UN_OK);
    if (status == UN_OK) status = simulate(&l);
    /* The caller gets the first error, even if closing fails too. */
    char message[1024];
    snprintf(message, sizeof message, "%s", status == UN_OK ? "" : un_context_message(ctx));
    if ((l.stats && l.probes) || !l.writes) save_last_state(&l, status);
    un_method_destroy(l.method, l.state);
    un_state_free(&l.seen);
    un_state_free(&l.before);
    un_free(ctx, l.likeness);
    un_status closing = UN_OK;
    un_table *tables[] = {l.stats, l.probes, l.bodies, l.portions};
    for (int i = 0; i < 4; i++) {
        un_status table_closing = un_table_close(tables[i]);
        if (closing == UN_OK) closing = table_closing;
    }
    if (l.opened && l.writes) {
        const char *word = status == UN_OK            ? "done"
                           : status == UN_INTERRUPTED ? "interrupted"
                                                      : "failed";
        un_status recording = un_loop_record(&l, word, message);
        if (closing == UN_OK) closing = recording;
    }
    un_loop_release(&l);
    if (status != UN_OK) un_fail(ctx, status, "%s", message);
    /* these come to all ranks alike, others to one, which then ends all */
    bool shared = status == UN_OK || status == UN_ERROR_NUMERIC || status == UN_INTERRUPTED;
    if (shared) status = un_ranks_agree(ctx, status == UN_OK ? closing : status);
    return status;
}
