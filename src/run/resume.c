/* Resuming: finds the newest checkpoint that is intact and fits, loads it, and removes everything
 * after it. Nothing on the disk changes before the state is loaded. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "ranks/ranks.h"
#include "run/loop.h"

static un_status take_text(const un_state *in, const char *name, char *to, size_t size)
{
    const un_section *s;
    UN_TRY(un_state_array(in, name, 1, &s));
    if ((uint64_t)s->count >= size)
        return un_fail(in->ctx, UN_ERROR_FILE, "the checkpoint's \"%s\" is too long", name);
    memcpy(to, un_section_data(s), (size_t)s->count);
    to[s->count] = 0;
    return UN_OK;
}

/* The scene that it was written for must agree with ours in all that matters. */
static un_status compare_scene(un_loop *l, const un_state *in)
{
    char method[64], *was;
    const un_section *s;
    UN_TRY(take_text(in, "run.method", method, sizeof method));
    if (strcmp(method, l->method->traits.name) != 0)
        return un_fail(l->ctx, UN_ERROR_SCENE,
                       "cannot resume: the checkpoint is of method %s and the scene asks for %s; "
                       "use --method %s, or run without --resume to start again",
                       method, l->method->traits.name, method);
    UN_TRY(un_state_array(in, "run.scene", 1, &s));
    UN_ALLOC(l->ctx, was, s->count + 1);
    un_status status = take_text(in, "run.scene", was, (size_t)s->count + 1);
    if (status == UN_OK) status = un_likeness_compare(l->ctx, was, l->likeness);
    un_free(l->ctx, was);
    return status;
}

/* Bytes of the tables that a checkpoint relies on; bodies: -1 if there is no such table. */
typedef struct lengths {
    int64_t stats, probes, bodies;
} lengths;

static un_status take_run(un_loop *l, const un_state *in, lengths *tables)
{
    int64_t frame, step, between;
    double seconds;
    const un_section *stages;
    UN_TRY(un_state_integer(in, "run.frame", 0, INT32_MAX, &frame));
    UN_TRY(un_state_integer(in, "run.step", 0, INT32_MAX, &step));
    UN_TRY(un_state_integer(in, "run.between", 0, 1, &between));
    UN_TRY(un_state_number(in, "run.time", &l->time));
    UN_TRY(un_state_number(in, "run.max_speed", &l->max_speed));
    UN_TRY(un_state_number(in, "run.seconds", &seconds));
    UN_TRY(un_state_number(in, "run.frame_seconds", &l->frame_seconds));
    UN_TRY(un_state_array(in, "run.stage_seconds", 8, &stages));
    UN_TRY(un_state_integer(in, "run.stats", 0, INT64_MAX, &tables->stats));
    UN_TRY(un_state_integer(in, "run.probes", 0, INT64_MAX, &tables->probes));
    tables->bodies = -1;
    if (un_state_find(in, "run.bodies"))
        UN_TRY(un_state_integer(in, "run.bodies", 0, INT64_MAX, &tables->bodies));
    l->frame = (int32_t)frame;
    l->step = (int32_t)step;
    l->between = between;
    l->started = un_seconds() - fmax(0, seconds);
    if (stages->count == l->stage_count) /* for run.json only */
        memcpy(l->stage_seconds, un_section_data(stages), (size_t)stages->count * sizeof(double));
    return UN_OK;
}

static bool is_wanted(const un_loop *l, const un_checkpoint *c)
{
    if (!l->run->has_from_frame) return true;
    return c->frame < l->run->from_frame || (c->frame == l->run->from_frame && !c->between);
}

/* Opens the tables at the rows that the checkpoint relies on. A run of an earlier version without
 * bodies.csv continues without: readers of such a run ask the scene. */
static un_status open_tables(un_loop *l, const lengths *tables)
{
    char path[UN_PATH_MAX];
    const un_bodies *bodies = un_method_bodies(l->state);
    un_loop_path(path, l, "stats.csv");
    UN_TRY(un_stats_create(l->ctx, path, l->method, tables->stats, &l->stats));
    un_loop_path(path, l, "probes.csv");
    UN_TRY(un_probes_create(l->ctx, path, l->def->probes, l->def->probe_count, tables->probes,
                            &l->probes));
    un_loop_path(path, l, "bodies.csv");
    if (!bodies->moving || tables->bodies < 0) return UN_OK;
    return un_bodies_table_create(l->ctx, path, bodies, tables->bodies, &l->bodies);
}

static un_status reread(void *arg, un_state *state, const un_sieve *sieve)
{
    return un_checkpoint_read_some(state, arg, sieve);
}

/* All of it, or this rank's part. */
static un_status read_checkpoint(un_loop *l, un_state *in, char *path)
{
    if (un_rank_count(l->ctx) > 1 && l->method->sift)
        return l->method->sift(l->ctx, l->scene, in, reread, path);
    return un_checkpoint_read(in, path);
}

/* Reads one checkpoint, loads the state, opens the tables at the rows it relies on. */
static un_status load(un_loop *l, const un_checkpoint *c)
{
    char path[UN_PATH_MAX];
    lengths tables;
    un_state in;
    un_state_init(&in, l->ctx);
    un_loop_checkpoint_path(path, l, c);
    un_status status = read_checkpoint(l, &in, path);
    if (status == UN_OK) status = compare_scene(l, &in);
    if (status == UN_OK) status = take_run(l, &in, &tables);
    if (status == UN_OK && l->frame > l->def->frames.count)
        status = un_fail(l->ctx, UN_ERROR_SCENE,
                         "cannot resume: frame %d is finished, and only %d are requested; request "
                         "more with --frames, or go back with --from-frame %d",
                         l->frame, l->def->frames.count, l->def->frames.count);
    status = un_ranks_agree(l->ctx, status);
    if (status == UN_OK) status = un_method_create(l->method, l->ctx, l->scene, &in, &l->state);
    un_state_free(&in);
    if (status == UN_OK)
        status = un_ranks_agree(l->ctx, l->writes ? open_tables(l, &tables) : UN_OK);
    if (status == UN_OK) return status;
    un_method_destroy(l->method, l->state);
    un_table_close(l->stats);
    un_table_close(l->probes);
    l->state = NULL;
    l->stats = l->probes = NULL;
    return status;
}

/* Is there a frame after the first, which would be lost? */
static bool has_frames(const un_loop *l)
{
    char path[UN_PATH_MAX];
    bool found = false;
    un_loop_path(path, l, "frames");
    DIR *entries = opendir(path);
    if (!entries) return false;
    for (struct dirent *entry; (entry = readdir(entries));)
        found |= strtol(entry->d_name, NULL, 10) > 0;
    closedir(entries);
    return found;
}

static un_status nothing_found(const un_loop *l, int32_t tried, const char *why)
{
    if (tried > 0)
        return un_fail(l->ctx, UN_ERROR_FILE,
                       "cannot resume: none of the %d checkpoints in %s/state can be used: %s; run "
                       "without --resume to start again",
                       tried, l->run->directory, why);
    if (l->run->has_from_frame || has_frames(l))
        return un_fail(l->ctx, UN_ERROR_FILE,
                       "cannot resume: %s/state has no checkpoint%s; run without --resume to start "
                       "again",
                       l->run->directory, l->run->has_from_frame ? " of that frame or before" : "");
    un_log(l->ctx, UN_LOG_NOTE, "nothing to resume in %s: starting", l->run->directory);
    return UN_OK;
}

un_status un_loop_resume(un_loop *l, bool *found)
{
    char path[UN_PATH_MAX], why[800] = "";
    un_checkpoint *list;
    int32_t count, tried = 0;
    *found = false;
    UN_TRY(un_loop_checkpoints(l, &list, &count));
    un_status status = UN_OK;
    for (int32_t i = count - 1; i >= 0 && !*found && status == UN_OK; i--) {
        if (!is_wanted(l, &list[i])) continue;
        tried++;
        status = load(l, &list[i]);
        *found = status == UN_OK;
        if (status != UN_ERROR_FILE) continue;
        /* damaged, or rows that it relies on are gone: an older one may work */
        status = UN_OK;
        un_ranks_recover(l->ctx);
        if (!*why) snprintf(why, sizeof why, "%s", un_context_message(l->ctx));
        un_log(l->ctx, UN_LOG_WARNING, "%s; trying the one before", un_context_message(l->ctx));
    }
    if (status == UN_OK && !*found) status = nothing_found(l, tried, why);
    un_free(l->ctx, list);
    if (status != UN_OK || !*found) return status;
    un_checkpoint from = {l->frame, l->step, l->between};
    un_loop_checkpoint_path(path, l, &from);
    un_log(l->ctx, UN_LOG_NOTE, "resuming from %s: frame %d%s, step %d, t = %.6g s", path, l->frame,
           l->between ? " and part of the next" : "", l->step, l->time);
    if (!l->writes) return UN_OK;
    UN_TRY(un_loop_remove_checkpoints(l, l->step));
    UN_TRY(un_table_cut(l->stats));
    UN_TRY(un_table_cut(l->probes));
    if (l->bodies) UN_TRY(un_table_cut(l->bodies));
    un_loop_remove_frames(l, l->frame);
    return UN_OK;
}
