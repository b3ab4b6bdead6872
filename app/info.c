/* undine info DIR: summarizes a run. */
#include "app.h"

#include <string.h>

static void print_info(const char *directory, const un_info *info)
{
    printf("%s: %s", directory, info->status[0] ? info->status : "of unknown status");
    if (strcmp(info->status, "running") == 0) printf(", or was killed");
    printf("%s%s\n", info->message[0] ? ": " : "", info->message);
    if (info->suspect[0]) printf("  suspect     %s\n", info->suspect);
    printf("  method      %s (undine %s)\n", info->method, info->version);
    printf("  frames      %d of %d, %g per second\n", info->frames_finished, info->frames_planned,
           info->rate);
    const char *unit = info->cells[0] > 0 && info->cells[2] == 0 ? "m2" : "m3"; /* 2D: areas */
    if (info->cells[0] > 0)
        printf("  resolution  %s cells of %s\n", app_cells(info->cells).text,
               app_length(info->cell_size).text);
    printf("  steps       %s, %.4g s simulated", app_count(info->steps).text, info->time);
    if (info->frames_finished > 0)
        printf(", %.1f steps per frame", (double)info->steps / info->frames_finished);
    printf("\n");
    if (info->particles_max > 0)
        printf("  particles   %s at the start, %s at the end, %s at most\n",
               app_count((double)info->particles_first).text,
               app_count((double)info->particles_last).text,
               app_count((double)info->particles_max).text);
    printf("  volume      %.6g %s at the start, %.6g %s at the end; error %s, %s at worst\n",
           info->volume_first, unit, info->volume_last, unit,
           app_percent(info->volume_error_last).text, app_percent(info->volume_error_max).text);
    printf("  speed       %.3g m/s at most\n", info->max_speed);
    printf("  memory      %s at most\n", app_bytes(info->bytes_max).text);
    printf("  time        %s", app_seconds(info->seconds).text);
    if (info->frames_finished > 0)
        printf(", %s a frame", app_seconds(info->seconds / info->frames_finished).text);
    printf("\n");
    double rest = info->seconds;
    for (int32_t s = 0; s < info->stage_count; s++) {
        double share = info->seconds > 0 ? 100 * info->stages[s].seconds / info->seconds : 0;
        printf("    %-16s %5.1f %%  %s\n", info->stages[s].name, share,
               app_seconds(info->stages[s].seconds).text);
        rest -= info->stages[s].seconds;
    }
    if (info->stage_count > 0 && rest > 0 && info->seconds > 0)
        printf("    %-16s %5.1f %%  %s\n", "(the rest)", 100 * rest / info->seconds,
               app_seconds(rest).text);
}

int app_info(int argc, char **argv)
{
    static const app_option options[] = {{0}};
    static const app_command command = {
        "info", "DIR",
        "Summarizes the directory of a run: frames, resolution, volume error, time by stage.",
        options};
    const char *directory;
    int exit_status = app_options_parse(&command, argc, argv, &directory);
    if (exit_status >= 0) return exit_status;
    un_context_def def = un_context_def_default();
    def.threads = 1;
    un_context *ctx = un_context_create(&def);
    if (!ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    un_info info;
    un_status status = un_info_read(ctx, directory, &info);
    if (status == UN_OK)
        print_info(directory, &info);
    else
        exit_status = app_fail(ctx, status);
    un_context_destroy(ctx);
    if (status == UN_ERROR_FILE) return APP_WRONG; /* the command named no run */
    return status == UN_OK ? APP_DONE : exit_status;
}
