/* undine run SCENE: simulates a scene into a directory. */
#include "app.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- interruption: the first signal stops the run after the current step, the second at once.
 * Files are renamed into place only when complete, so stopping at once damages nothing. ---- */

static volatile sig_atomic_t interrupted;
static bool speaks; /* of several processes one does */
static const char farewell[] =
    "\nundine: interrupted, finishing this step; press again to quit now\n";
static const char *farewell_at = farewell + 1; /* on a terminal, below the bar and the ^C */

static void on_signal(int number)
{
    (void)number;
    if (interrupted) _exit(APP_INTERRUPTED);
    interrupted = 1;
    if (!speaks) return;
    ssize_t ignored = write(STDERR_FILENO, farewell_at, strlen(farewell_at));
    (void)ignored;
}

static void catch_signals(void)
{
    speaks = app_first();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* not under nohup */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* the reader of the progress may exit */
    signal(SIGXFSZ, SIG_IGN); /* a file size limit: the write fails with a message */
}

static bool on_progress(void *user, const un_progress *now)
{
    app_progress_step(user, now);
    return !interrupted;
}

/* ---- names ---- */

/* out/<name of the scene>: "scenes/dam.lua" goes to "out/dam". */
static char *default_directory(const char *scene)
{
    const char *name = strrchr(scene, '/') ? strrchr(scene, '/') + 1 : scene;
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".lua") == 0) length -= 4;
    char *directory = malloc(length + 5);
    if (directory) snprintf(directory, length + 5, "out/%.*s", (int)length, name);
    return directory;
}

/* The command as one would type it, for run.json. */
static char *command_line(int argc, char **argv)
{
    size_t room = sizeof "undine";
    for (int i = 0; i < argc; i++) room += 4 * strlen(argv[i]) + 3;
    char *line = malloc(room), *to = line;
    if (!line) return NULL;
    to += snprintf(to, room, "undine");
    for (int i = 0; i < argc; i++) {
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                    "_-+=./,:@%";
        bool quote = !*argv[i] || argv[i][strspn(argv[i], plain)];
        *to++ = ' ';
        if (quote) *to++ = '\'';
        for (const char *c = argv[i]; *c; c++) {
            if (*c == '\'') {
                memcpy(to, "'\\''", 4);
                to += 4;
            } else {
                *to++ = *c;
            }
        }
        if (quote) *to++ = '\'';
    }
    *to = 0;
    return line;
}

/* ---- the command ---- */

typedef struct run_options {
    const char *scene, *directory, *command;
    app_list overrides;
    int32_t threads;
    size_t memory;
    bool quiet, json, resume;
    int32_t from_frame, keep; /* from_frame: -1 none */
} run_options;

static int run_scene(un_context *ctx, un_scene *scene, app_progress *progress,
                     const run_options *options)
{
    /* of several processes others may not know of it yet: after frame 0 they do */
    if (interrupted && !app_ranks()) return APP_INTERRUPTED;
    un_run_def run = un_run_def_default();
    run.directory = options->directory;
    run.command = options->command;
    run.progress = on_progress;
    run.user = progress;
    run.resume = options->resume;
    run.has_from_frame = options->from_frame >= 0;
    run.from_frame = options->from_frame;
    run.keep_every = options->keep;
    app_progress_start(progress, options->scene, options->directory);
    un_status status = un_run(ctx, scene, &run);
    app_progress_end(progress, status, options->directory,
                     status == UN_OK ? "" : un_context_message(ctx));
    if (status == UN_OK) return APP_DONE;
    return status == UN_INTERRUPTED ? APP_INTERRUPTED : app_fail(ctx, status);
}

static int simulate(const run_options *options)
{
    app_progress progress;
    app_progress_init(&progress, options->quiet || !app_first(), options->json && app_first());
    un_context_def def = un_context_def_default();
    def.threads = options->threads ? options->threads : un_ranks_threads(app_ranks());
    def.ranks = app_ranks();
    def.memory_cap = options->memory;
    def.log = app_progress_log;
    def.user = &progress;
    un_context *ctx = un_context_create(&def);
    if (!ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    catch_signals();
    int exit_status = APP_WRONG; /* also if the scene cannot be read */
    un_scene *scene;
    un_status loaded =
        un_scene_load(ctx, options->scene, (const char *const *)options->overrides.items,
                      options->overrides.count, &scene);
    un_status status = un_ranks_agree(ctx, loaded); /* of what all find, one tells */
    if (loaded == UN_OK && status != UN_OK) un_scene_destroy(scene);
    if (status == UN_OK) {
        exit_status = run_scene(ctx, scene, &progress, options);
        un_scene_destroy(scene);
    } else {
        app_fail(ctx, status);
        if (status == UN_ERROR_MEMORY) exit_status = APP_FAILED;
    }
    un_context_destroy(ctx);
    return exit_status;
}

int app_run(int argc, char **argv)
{
    run_options o = {.from_frame = -1};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &o.directory, "DIR",
         "output directory; default: out/<name of the scene>", NULL},
        {"--method", NULL, APP_LIST, &o.overrides, "M", "method, instead of the scene's",
         "method="},
        {"--frames", NULL, APP_LIST_INDEX, &o.overrides, "N",
         "number of frames, instead of the scene's; 0: only the start", "frames.count="},
        {"--threads", NULL, APP_COUNT, &o.threads, "N",
         "number of threads; default: all processors", NULL},
        {"--set", NULL, APP_LIST, &o.overrides, "KEY=VALUE",
         "override a value of the scene, e.g. fluid.density=800 or solids[1].friction=0.2; "
         "repeatable",
         NULL},
        {"--memory", NULL, APP_BYTES, &o.memory, "8G", "use no more memory than this", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {"--json", NULL, APP_SWITCH, &o.json, NULL, "progress as JSON lines on standard output",
         NULL},
        {"--resume", NULL, APP_SWITCH, &o.resume, NULL,
         "continue where the run in the directory stopped, with the same bits", NULL},
        {"--from-frame", NULL, APP_INDEX, &o.from_frame, "N",
         "with --resume: go back to frame N and continue from there", NULL},
        {"--keep", NULL, APP_COUNT, &o.keep, "N",
         "keep the checkpoint of every N-th frame; default: 5", NULL},
        {0}};
    const app_command command = {
        "run", "SCENE",
        "Simulates a scene file and writes frames, statistics and probes to a directory.\n"
        "Ctrl-C stops it after the current step and saves its state; --resume continues from "
        "there.",
        options};
    int exit_status = app_options_parse(&command, argc, argv, &o.scene);
    if (exit_status < 0 && o.from_frame >= 0 && !o.resume) {
        app_error("run: --from-frame needs --resume");
        exit_status = APP_WRONG;
    }
    if (exit_status < 0) {
        char *made = o.directory ? NULL : default_directory(o.scene);
        char *line = command_line(argc, argv);
        if (!o.directory) o.directory = made;
        o.command = line;
        if (o.directory && line) {
            exit_status = simulate(&o);
        } else {
            app_error("out of memory");
            exit_status = APP_FAILED;
        }
        free(line);
        free(made);
    }
    app_list_free(&o.overrides);
    return exit_status;
}
