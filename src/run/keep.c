/* Checkpoints: DIR/state/frame0012.step00000345.state, with .part before .state if frame 12 is
 * finished and the next has begun. The two newest and those of every n-th frame are kept. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/loop.h"

/* At the end of a frame a checkpoint may take this fraction of the time since the last one; within
 * a frame one is due after this many seconds. */
#define COST_SHARE 0.02
#define BETWEEN_SECONDS 300.0
#define KEEP_EVERY 5

/* ---- names ---- */

void un_loop_checkpoint_path(char path[UN_PATH_MAX], const un_loop *l, const un_checkpoint *c)
{
    un_loop_path(path, l, "state/frame%04d.step%08d%s.state", c->frame, c->step,
                 c->between ? ".part" : "");
}

static bool parse_name(const char *name, un_checkpoint *c)
{
    int length = 0;
    if (strlen(name) > 64 || sscanf(name, "frame%9d.step%9d%n", &c->frame, &c->step, &length) != 2)
        return false;
    c->between = strcmp(name + length, ".part.state") == 0;
    return c->frame >= 0 && c->step >= 0 && (c->between || strcmp(name + length, ".state") == 0);
}

static int by_step(const void *a, const void *b)
{
    int32_t s = ((const un_checkpoint *)a)->step, t = ((const un_checkpoint *)b)->step;
    return (s > t) - (s < t);
}

un_status un_loop_checkpoints(const un_loop *l, un_checkpoint **list, int32_t *count)
{
    char path[UN_PATH_MAX];
    *count = 0;
    UN_ALLOC(l->ctx, *list, UN_CHECKPOINTS_MAX);
    un_loop_path(path, l, "state");
    DIR *entries = opendir(path);
    if (!entries) return UN_OK; /* there are none */
    for (struct dirent *entry; (entry = readdir(entries)) && *count < UN_CHECKPOINTS_MAX;)
        *count += parse_name(entry->d_name, &(*list)[*count]);
    closedir(entries);
    qsort(*list, (size_t)*count, sizeof **list, by_step);
    return UN_OK;
}

un_status un_loop_remove_checkpoints(const un_loop *l, int32_t last_step)
{
    char path[UN_PATH_MAX];
    un_checkpoint *list;
    int32_t count;
    un_status status = UN_OK;
    UN_TRY(un_loop_checkpoints(l, &list, &count));
    /* newest first: an interruption leaves no gaps */
    for (int32_t i = count - 1; i >= 0 && status == UN_OK; i--) {
        if (list[i].step <= last_step) continue;
        un_loop_checkpoint_path(path, l, &list[i]);
        if (unlink(path) != 0 && errno != ENOENT)
            status = un_file_fail(l->ctx, "remove", path, errno);
    }
    un_free(l->ctx, list);
    return status;
}

/* ---- writing ---- */

/* What the run itself needs to continue. */
static un_status add_run(const un_loop *l, un_state *out)
{
    UN_TRY(un_state_add(out, "run.scene", l->likeness, (int64_t)strlen(l->likeness), 1));
    UN_TRY(un_state_add(out, "run.method", l->method->traits.name,
                        (int64_t)strlen(l->method->traits.name), 1));
    UN_TRY(un_state_add(out, "run.version", un_version(), (int64_t)strlen(un_version()), 1));
    UN_TRY(un_state_add_integer(out, "run.frame", l->frame));
    UN_TRY(un_state_add_integer(out, "run.between", l->between));
    UN_TRY(un_state_add_integer(out, "run.step", l->step));
    UN_TRY(un_state_add_number(out, "run.time", l->time));
    UN_TRY(un_state_add_number(out, "run.max_speed", l->max_speed));
    UN_TRY(un_state_add_number(out, "run.seconds", un_seconds() - l->started));
    UN_TRY(un_state_add_number(out, "run.frame_seconds", l->frame_seconds));
    UN_TRY(un_state_add(out, "run.stage_seconds", l->stage_seconds, l->stage_count, 8));
    UN_TRY(un_state_add_integer(out, "run.stats", un_table_length(l->stats)));
    UN_TRY(un_state_add_integer(out, "run.probes", un_table_length(l->probes)));
    return l->bodies ? un_state_add_integer(out, "run.bodies", un_table_length(l->bodies)) : UN_OK;
}

static void prune(const un_loop *l)
{
    char path[UN_PATH_MAX];
    un_checkpoint *list;
    int32_t count, every = l->run->keep_every > 0 ? l->run->keep_every : KEEP_EVERY;
    if (un_loop_checkpoints(l, &list, &count) != UN_OK) return; /* one more does no harm */
    for (int32_t i = 0; i + 2 < count; i++) {
        if (!list[i].between && list[i].frame % every == 0) continue;
        un_loop_checkpoint_path(path, l, &list[i]);
        unlink(path);
    }
    un_free(l->ctx, list);
}

/* What rank 0 adds to the method's arrays. */
static un_status begin_save(un_loop *l, un_state *all)
{
    if (!l->writes) return UN_OK;
    /* The rows that the checkpoint relies on are on the disk before it is. */
    UN_TRY(un_table_sync(l->stats));
    UN_TRY(un_table_sync(l->probes));
    if (l->bodies) UN_TRY(un_table_sync(l->bodies));
    return add_run(l, all);
}

un_status un_loop_save(un_loop *l, bool before)
{
    char path[UN_PATH_MAX];
    double clock = un_seconds();
    un_checkpoint name = {l->frame, l->step, l->between};
    un_state all;
    un_state_clear(&l->seen);
    un_state_init(&all, l->ctx);
    un_status status = begin_save(l, &all);
    if (status == UN_OK && !before) status = l->method->save(l->state, &l->seen);
    if (status == UN_OK) status = un_state_append(&all, before ? &l->before : &l->seen);
    un_loop_checkpoint_path(path, l, &name);
    if (status == UN_OK) status = un_checkpoint_write(l->ctx, path, &all);
    un_state_free(&all);
    if (!l->writes) return status;
    if (status == UN_OK) prune(l);
    l->saved_at = un_seconds();
    l->save_cost = l->saved_at - clock;
    l->stage_seconds[l->stage_count - 1] += l->save_cost;
    return status;
}

bool un_loop_save_is_due(const un_loop *l)
{
    double since = un_seconds() - l->saved_at;
    if (since * COST_SHARE < l->save_cost && since >= 0) {
        int32_t every = l->run->keep_every > 0 ? l->run->keep_every : KEEP_EVERY;
        return !l->between && (l->frame % every == 0 || l->frame == l->def->frames.count);
    }
    return !l->between || since > BETWEEN_SECONDS;
}
