/* undine surface DIR: makes the surfaces of a run again from its particles or checkpoints. */
#include "app.h"

typedef struct surface_options {
    un_resurface_def def;
    const char *frames;
    int32_t threads;
    bool quiet;
    app_report report;
} surface_options;

static bool on_progress(void *user, int32_t done, int32_t total)
{
    surface_options *o = user;
    /* frames of a method without particles need not be in a row */
    bool all = !o->report.shared && total == o->def.last - o->def.first + 1;
    int32_t frame = all ? o->def.first + done - 1 : -1;
    o->report.total = total;
    o->report.seconds = app_now() - o->report.start;
    app_report_frame(&o->report, frame, true);
    app_report_show(&o->report, frame);
    return !app_interrupted();
}

static int make_surfaces(surface_options *o)
{
    un_context_def context = un_context_def_default();
    context.threads = o->threads ? o->threads : un_ranks_threads(app_ranks());
    context.log = app_print_warning;
    context.ranks = app_ranks();
    un_context *ctx = un_context_create(&context);
    if (!ctx) return app_fail_memory();
    app_catch_signals();
    o->report = app_report_make("frame", o->def.last - o->def.first + 1, o->quiet);
    app_report_weigh(&o->report, o->def.directory, "particles.vtp", o->def.first, o->def.last);
    o->def.progress = on_progress;
    o->def.user = o;
    un_status status = un_resurface(ctx, &o->def);
    app_report_clear(&o->report);
    int exit_status = status == UN_OK ? APP_DONE : app_fail(ctx, status);
    if (status == UN_OK && !o->quiet && app_first())
        printf("done: %d surface%s in %s, %s\n", o->report.total, o->report.total == 1 ? "" : "s",
               o->def.output ? o->def.output : o->def.directory,
               app_seconds(app_now() - o->report.start).text);
    un_context_destroy(ctx);
    return exit_status;
}

int app_surface(int argc, char **argv)
{
    surface_options o = {.def = un_resurface_def_default()};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &o.def.output, "DIR2",
         "new directory; default: replace the run's surfaces", NULL},
        {"--resolution", NULL, APP_COUNT, &o.def.resolution, "N",
         "cells along the longest side; default: the scene's detail.surface", NULL},
        {"--smoothing", NULL, APP_INDEX, &o.def.smoothing, "N",
         "passes of fairing; default: as in the run", NULL},
        {"--with", NULL, APP_TEXT, &o.def.kind, "WAY",
         "hulls (for particles of many sizes) or grid; default: as in the run", NULL},
        {"--frames", NULL, APP_TEXT, &o.frames, "A:B", "only these frames; default: all", NULL},
        {"--threads", NULL, APP_COUNT, &o.threads, "N",
         "number of threads; default: all processors", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {0}};
    const app_command command = {
        "surface", "DIR",
        "Makes surfaces again from the saved particles of a run: finer, smoother or with another\n"
        "algorithm, without simulating. The particles are kept, so this can be repeated. A method\n"
        "without particles makes them from the run's checkpoints.",
        options};
    int exit_status = app_options_parse(&command, argc, argv, &o.def.directory);
    if (exit_status >= 0) return exit_status;
    if (!app_share_frames("surface", o.frames, o.def.directory, &o.def.first, &o.def.last))
        return APP_WRONG;
    return make_surfaces(&o);
}
