/* undine compare DIR DIR...: several runs on one page. */
#include "app.h"

#include <sys/stat.h>

typedef struct compare_options {
    const char *directories[UN_VIEW_RUNS_MAX];
    un_compare_def def;
    int32_t threads;
    bool quiet;
    app_report report;
} compare_options;

static int compare(compare_options *o)
{
    un_context_def context = un_context_def_default();
    context.threads = o->threads;
    context.log = app_print_warning;
    un_context *ctx = un_context_create(&context);
    if (!ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    app_catch_signals();
    o->report = app_report_make("picture", 0, o->quiet);
    o->def.progress = app_report_progress;
    o->def.user = &o->report;
    un_status status = un_compare(ctx, &o->def);
    app_report_clear(&o->report);
    int exit_status = status == UN_OK ? APP_DONE : app_fail(ctx, status);
    struct stat found;
    if (status == UN_OK && !o->quiet && stat(o->def.path, &found) == 0)
        printf("done: %s, %s; open it in any browser\n", o->def.path,
               app_bytes((double)found.st_size).text);
    un_context_destroy(ctx);
    return exit_status;
}

int app_compare(int argc, char **argv)
{
    compare_options o = {.def = un_compare_def_default()};
    bool no_pictures = false;
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &o.def.path, "PAGE.html", "output page; default: compare.html",
         NULL},
        {"--pictures", NULL, APP_COUNT, &o.def.picture_count, "N",
         "number of times with pictures; default: 4", NULL},
        {"--no-pictures", NULL, APP_SWITCH, &no_pictures, NULL, "charts and figures only", NULL},
        {"--width", NULL, APP_COUNT, &o.def.width, "N", "width of a picture; default: 560", NULL},
        {"--threads", NULL, APP_COUNT, &o.threads, "N",
         "number of threads; default: all processors", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {0}};
    const app_command command = {
        "compare", "DIR DIR...",
        "Makes one page of several runs, for example of a scene with several methods "
        "or resolutions: pictures\n"
        "at matching times, charts, and what each run cost.",
        options};
    int exit_status = app_options_parse_many(&command, argc, argv, o.directories, UN_VIEW_RUNS_MAX,
                                             &o.def.directory_count);
    if (exit_status >= 0) return exit_status;
    if (o.def.directory_count < 1) {
        app_error("compare: DIR is missing; see `undine compare -h`");
        return APP_WRONG;
    }
    for (int32_t r = 0; r < o.def.directory_count; r++)
        if (app_count_frames("compare", o.directories[r]) == 0) return APP_WRONG;
    if (!app_check_output("compare", o.def.path)) return APP_WRONG;
    if (no_pictures) o.def.picture_count = 0;
    o.def.directories = o.directories;
    return compare(&o);
}
