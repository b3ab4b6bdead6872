/* The output directory: names, the lock, files of earlier runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "run/loop.h"

void un_loop_path(char path[UN_PATH_MAX], const un_loop *l, const char *format, ...)
{
    int n = snprintf(path, UN_PATH_MAX, "%s/", l->run->directory);
    if (n < 0 || n >= UN_PATH_MAX) return; /* the length was checked at the start */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + n, UN_PATH_MAX - (size_t)n, format, arguments);
    va_end(arguments);
}

/* ---- the lock ---- */

/* Held by the open file, so it is released however the process ends. */
static un_status lock(un_loop *l)
{
    char path[UN_PATH_MAX], text[32] = "";
    un_loop_path(path, l, "state/lock");
    l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (l->lock < 0) return un_file_fail(l->ctx, "write", path, errno);
    if (flock(l->lock, LOCK_EX | LOCK_NB) == 0) {
        int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
        /* the process id is for messages only */
        if (ftruncate(l->lock, 0) != 0 || pwrite(l->lock, text, (size_t)length, 0) < 0)
            return UN_OK;
        return UN_OK;
    }
    int error = errno;
    ssize_t length = pread(l->lock, text, sizeof text - 1, 0);
    close(l->lock);
    l->lock = -1;
    if (error != EWOULDBLOCK) return UN_OK; /* a file system without locks */
    text[length > 0 ? length : 0] = 0;
    long process = strtol(text, NULL, 10);
    return un_fail(
        l->ctx, UN_ERROR_FILE,
        "another run is writing to %s (process %ld); wait for it to finish, or choose another "
        "directory with -o",
        l->run->directory, process);
}

un_status un_loop_claim(un_loop *l)
{
    char path[UN_PATH_MAX];
    if (!l->run->directory || !*l->run->directory)
        return un_fail(l->ctx, UN_ERROR_ARGUMENT,
                       "a run needs an output directory; give one with -o");
    if (strlen(l->run->directory) > UN_DIRECTORY_MAX)
        return un_fail(l->ctx, UN_ERROR_ARGUMENT, "the name of the output directory is too long");
    un_loop_path(path, l, "frames");
    UN_TRY(un_directory_create(l->ctx, path));
    un_loop_path(path, l, "state");
    UN_TRY(un_directory_create(l->ctx, path));
    return lock(l);
}

void un_loop_release(un_loop *l)
{
    if (l->lock >= 0) close(l->lock);
    l->lock = -1;
}

/* ---- what is ours ---- */

static bool is_aside(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".tmp") == 0;
}

/* One of these files, or the temporary file of a killed run: surface.ply.<pid>.tmp */
static bool is_one_of(const char *name, const char *const *files, bool aside_only)
{
    for (; *files; files++) {
        size_t length = strlen(*files);
        if (strncmp(name, *files, length) != 0) continue;
        if (!name[length] && !aside_only) return true;
        if (name[length] == '.' && is_aside(name + length)) return true;
    }
    return false;
}

static void remove_files(const un_loop *l, const char *folder, const char *const *files,
                         bool aside_only)
{
    char path[UN_PATH_MAX];
    un_loop_path(path, l, "%s", folder);
    DIR *entries = opendir(path);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!is_one_of(entry->d_name, files, aside_only)) continue;
        un_loop_path(path, l, "%s/%.255s", folder, entry->d_name);
        unlink(path);
    }
    closedir(entries);
}

static const char *const frame_files[] = {"surface.ply", "surface.vtp", "particles.vtp", "mesh.vtu",
                                          NULL};

void un_loop_remove_frames(const un_loop *l, int32_t last)
{
    char path[UN_PATH_MAX], folder[64];
    un_loop_path(path, l, "frames");
    DIR *entries = opendir(path);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        size_t digits = strspn(entry->d_name, "0123456789");
        if (digits < 4 || digits > 9 || entry->d_name[digits]) continue;
        snprintf(folder, sizeof folder, "frames/%.9s", entry->d_name);
        bool gone = strtol(entry->d_name, NULL, 10) > last;
        remove_files(l, folder, frame_files, !gone);
        un_loop_path(path, l, "%s", folder);
        if (gone) rmdir(path); /* stays if it contains other files */
    }
    closedir(entries);
}

void un_loop_remove_asides(const un_loop *l)
{
    static const char *const files[] = {"scene.lua",   "run.json",      "stats.csv",
                                        "probes.csv",  "bodies.csv",    "mesh.pvd",
                                        "surface.pvd", "particles.pvd", NULL};
    char path[UN_PATH_MAX];
    remove_files(l, ".", files, true);
    un_loop_path(path, l, "state");
    DIR *entries = opendir(path);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strncmp(entry->d_name, "frame", 5) != 0 || !is_aside(entry->d_name)) continue;
        un_loop_path(path, l, "state/%.255s", entry->d_name);
        unlink(path);
    }
    closedir(entries);
}

/* ---- run.json and scene.lua ---- */

un_status un_loop_record(un_loop *l, const char *status, const char *message)
{
    char path[UN_PATH_MAX];
    un_run_record record = {.command = l->run->command,
                            .method = l->def->method,
                            .status = status,
                            .message = message,
                            .suspect = l->suspect.text,
                            .frames_finished = l->frame,
                            .frames_planned = l->def->frames.count,
                            .rate = l->def->frames.rate,
                            .cell_size = l->estimate.cell_size,
                            .bytes_peak = (double)un_context_peak_bytes(l->ctx),
                            .seconds = un_seconds() - l->started,
                            .stages = l->stage_names,
                            .stage_seconds = l->stage_seconds};
    memcpy(record.cells, l->estimate.cells, sizeof record.cells);
    un_loop_path(path, l, "run.json");
    return un_output_run_json(l->ctx, path, &record);
}

un_status un_loop_write_scene(un_loop *l)
{
    char path[UN_PATH_MAX], *text;
    un_file *file;
    UN_TRY(un_scene_text(l->scene, &text));
    un_loop_path(path, l, "scene.lua");
    un_status status = un_file_create(l->ctx, path, &file);
    if (status == UN_OK) {
        un_file_write(file, text, strlen(text));
        status = un_file_commit(file);
    }
    un_free(l->ctx, text);
    return status;
}
