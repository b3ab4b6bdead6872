/* undine view [DIR...]: runs in the browser. */
#include "app.h"

#include <dirent.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct view_options {
    const char *directories[UN_VIEW_RUNS_MAX];
    int32_t directory_count;
    const char *save;
    int32_t port, frames;
    size_t size;
    bool no_open, quiet;
} view_options;

/* The run in out/ that was written to last; "" if there is none. */
static void newest_run(char path[APP_PATH])
{
    struct stat found;
    time_t newest = 0;
    path[0] = 0;
    DIR *folder = opendir("out");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char file[APP_PATH];
        snprintf(file, sizeof file, "out/%s/run.json", entry->d_name);
        if (entry->d_name[0] == '.' || stat(file, &found) != 0 || found.st_mtime < newest) continue;
        newest = found.st_mtime;
        snprintf(path, APP_PATH, "out/%s", entry->d_name);
    }
    closedir(folder);
}

/* Only if there is a desktop. */
static void open_browser(const char *address)
{
    if (!isatty(STDOUT_FILENO) || !(getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))) return;
    char *const arguments[] = {"xdg-open", (char *)(uintptr_t)address, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
    if (posix_spawnp(&child, "xdg-open", &actions, NULL, arguments, environ) == 0)
        waitpid(child, NULL, WNOHANG);
    posix_spawn_file_actions_destroy(&actions);
}

static int save(un_context *ctx, const view_options *o)
{
    app_report report = app_report_make("frame", 0, o->quiet);
    un_view_save_def def = un_view_save_def_default();
    def.directories = o->directories;
    def.directory_count = o->directory_count;
    def.path = o->save;
    if (o->frames) def.frame_count = o->frames;
    if (o->size) def.bytes = o->size;
    def.progress = app_report_progress;
    def.user = &report;
    un_status status = un_view_save(ctx, &def);
    app_report_clear(&report);
    if (status != UN_OK) return app_fail(ctx, status);
    struct stat found;
    if (!o->quiet && stat(o->save, &found) == 0)
        printf("done: %s, %s, %d frame%s; open it in any browser\n", o->save,
               app_bytes((double)found.st_size).text, report.total, report.total == 1 ? "" : "s");
    return APP_DONE;
}

static int serve(un_context *ctx, const view_options *o)
{
    un_viewer_def def = {
        .directories = o->directories, .directory_count = o->directory_count, .port = o->port};
    un_viewer *viewer;
    un_status status = un_viewer_create(ctx, &def, &viewer);
    if (status != UN_OK) return app_fail(ctx, status);
    char address[64];
    snprintf(address, sizeof address, "http://127.0.0.1:%d/", un_viewer_port(viewer));
    if (!o->quiet) printf("viewing at %s (Ctrl-C to stop)\n", address);
    fflush(stdout);
    if (!o->no_open) open_browser(address);
    while (status == UN_OK && !app_interrupted()) status = un_viewer_serve(viewer, 0.2);
    un_viewer_destroy(viewer);
    return status == UN_OK ? APP_DONE : app_fail(ctx, status);
}

static int view(const view_options *o)
{
    un_context_def context = un_context_def_default();
    context.log = app_print_warning;
    un_context *ctx = un_context_create(&context);
    if (!ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    app_catch_signals();
    int exit_status = o->save ? save(ctx, o) : serve(ctx, o);
    un_context_destroy(ctx);
    return exit_status;
}

int app_view(int argc, char **argv)
{
    view_options o = {0};
    char newest[APP_PATH];
    const app_option options[] = {
        {"--save", NULL, APP_TEXT, &o.save, "PAGE.html",
         "write one file to send to somebody, instead of serving", NULL},
        {"--frames", NULL, APP_COUNT, &o.frames, "N", "with --save: at most N frames; default: 60",
         NULL},
        {"--size", NULL, APP_BYTES, &o.size, "40M", "with --save: approximate size of the page",
         NULL},
        {"--port", NULL, APP_COUNT, &o.port, "N", "port; default: the first free one from 8080",
         NULL},
        {"--no-open", NULL, APP_SWITCH, &o.no_open, NULL, "do not open a browser", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {0}};
    const app_command command = {
        "view", "[DIR...]",
        "Shows runs in the browser: play, orbit, particles, a cut through the cells, charts; live\n"
        "during a run. Several runs are shown side by side. Without DIR it shows the newest run\n"
        "in out/. It only answers programs on this machine.",
        options};
    int exit_status = app_options_parse_many(&command, argc, argv, o.directories, UN_VIEW_RUNS_MAX,
                                             &o.directory_count);
    if (exit_status >= 0) return exit_status;
    if (o.directory_count == 0) {
        newest_run(newest);
        if (!newest[0]) {
            app_error("view: DIR is missing, and out/ has no run; `undine run SCENE` makes one");
            return APP_WRONG;
        }
        o.directories[o.directory_count++] = newest;
    }
    if (!app_check_output("view", o.save)) return APP_WRONG;
    for (int32_t r = 0; r < o.directory_count; r++) {
        char path[APP_PATH];
        struct stat found;
        snprintf(path, sizeof path, "%.4000s/frames", o.directories[r]);
        if (o.save) {
            if (app_count_frames("view", o.directories[r]) == 0) return APP_WRONG;
        } else if (strlen(o.directories[r]) > 3900 || stat(path, &found) != 0) {
            app_error("view: %s has no frames; `undine run SCENE -o DIR` makes them",
                      o.directories[r]);
            return APP_WRONG;
        }
    }
    return view(&o);
}
