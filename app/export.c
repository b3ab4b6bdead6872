/* undine export DIR --to FORMAT: a run in the formats of other programs. */
#include "app.h"

#include <string.h>

typedef struct export_options {
    const char *directory, *frames, *what;
    un_export_def def;
    bool quiet;
} export_options;

/* "surface,particles" */
static bool read_what(export_options *o)
{
    if (!o->what) return true;
    o->def.surface = o->def.particles = o->def.cells = false;
    for (const char *at = o->what;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 7 && strncmp(at, "surface", 7) == 0)
            o->def.surface = true;
        else if (length == 9 && strncmp(at, "particles", 9) == 0)
            o->def.particles = true;
        else if (length == 5 && strncmp(at, "cells", 5) == 0)
            o->def.cells = true;
        else {
            app_error("export: --what takes surface, particles and cells, separated by commas, "
                      "not `%s`",
                      o->what);
            return false;
        }
        at += length;
        if (!*at) return true;
    }
}

static int export_run(export_options *o)
{
    un_context_def context = un_context_def_default();
    un_context *ctx = un_context_create(&context);
    if (!ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    app_catch_signals();
    app_report report = app_report_make("piece", 0, o->quiet);
    o->def.progress = app_report_progress;
    o->def.user = &report;
    un_export_report found;
    un_status status = un_export(ctx, &o->def, &found);
    app_report_clear(&report);
    int exit_status = status == UN_OK ? APP_DONE : app_fail(ctx, status);
    if (status == UN_OK && !o->quiet)
        printf("done: %d frame%s in %d file%s, %s, in %s, %s\n", found.frame_count,
               found.frame_count == 1 ? "" : "s", found.file_count,
               found.file_count == 1 ? "" : "s", app_bytes(found.bytes).text, found.folder,
               app_seconds(app_now() - report.start).text);
    un_context_destroy(ctx);
    return exit_status;
}

int app_export(int argc, char **argv)
{
    export_options o = {.def = un_export_def_default()};
    const app_option options[] = {
        {"--to", NULL, APP_TEXT, &o.def.format, "FORMAT", "ply, obj, vtk, usd, glb or vdb", NULL},
        {"--output", "-o", APP_TEXT, &o.def.output, "FOLDER",
         "output folder; default: DIR/export/FORMAT", NULL},
        {"--frames", NULL, APP_TEXT, &o.frames, "A:B", "only these frames; default: all", NULL},
        {"--every", NULL, APP_COUNT, &o.def.every, "N", "only every N-th of them", NULL},
        {"--what", NULL, APP_TEXT, &o.what, "LIST",
         "any of surface,particles,cells; default: all that the format supports", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {0}};
    const app_command command = {
        "export", "DIR",
        "Writes the frames of a run for other programs, with the names, units and axes\n"
        "that they expect; docs/export.md says which format suits which program.",
        options};
    int exit_status = app_options_parse(&command, argc, argv, &o.directory);
    if (exit_status >= 0) return exit_status;
    if (!o.def.format) {
        app_error("export: --to FORMAT is missing: ply, obj, vtk, usd, glb or vdb");
        return APP_WRONG;
    }
    if (!read_what(&o) ||
        !app_choose_frames("export", o.frames, o.directory, &o.def.first, &o.def.last))
        return APP_WRONG;
    o.def.directory = o.directory;
    return export_run(&o);
}
