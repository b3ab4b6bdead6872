/* undine check SCENE: what is wrong with a scene, how to fix it, and what it will cost. */
#include "app.h"

static void print_check(const char *path, const un_check *check)
{
    int32_t shown = check->warning_count < UN_WARNINGS_MAX ? check->warning_count : UN_WARNINGS_MAX;
    if (check->warning_count == 0)
        printf("%s: fine\n", path);
    else
        printf("%s: %d warning%s\n", path, check->warning_count,
               check->warning_count == 1 ? "" : "s");
    for (int32_t i = 0; i < shown; i++) printf("  - %s\n", check->warnings[i]);
    if (shown < check->warning_count) printf("  - and %d more\n", check->warning_count - shown);
    printf("  method      %s\n", check->method);
    printf("  cells       %s of %s: %s\n", app_cells(check->cells).text,
           app_length(check->cell_size).text, app_count((double)check->cell_count).text);
    if (check->particle_count_max > 0)
        printf("  particles   about %s", app_count((double)check->particle_count).text);
    if (check->particle_count_max > check->particle_count)
        printf(" at the start, %s at most", app_count((double)check->particle_count_max).text);
    if (check->particle_count_max > 0) printf("\n");
    printf("  memory      about %s\n", app_bytes(check->bytes).text);
    if (check->seconds_per_frame > 0)
        printf("  time        about %s per frame on this machine\n",
               app_seconds(check->seconds_per_frame).text);
}

static void print_share(int32_t ranks, const un_check_share *share)
{
    printf("  %d processes, each on a machine like this one:\n", ranks);
    printf("    memory    at most about %s\n", app_bytes(share->bytes).text);
    if (share->seconds_per_frame > 0)
        printf("    time      about %s per frame\n", app_seconds(share->seconds_per_frame).text);
    if (share->busy < ranks)
        printf("    only %d of them have work: the grid has no more bars of rows\n",
               share->busy);
}

int app_check(int argc, char **argv)
{
    app_list overrides = {0};
    int32_t threads = 0, ranks = 0;
    const app_option options[] = {
        {"--method", NULL, APP_LIST, &overrides, "M", "method, instead of the scene's", "method="},
        {"--threads", NULL, APP_COUNT, &threads, "N", "number of threads; default: all processors",
         NULL},
        {"--ranks", NULL, APP_COUNT, &ranks, "N",
         "also memory and time of each of N processes that share it", NULL},
        {"--set", NULL, APP_LIST, &overrides, "KEY=VALUE",
         "override a value of the scene, e.g. fluid.density=800 or solids[1].friction=0.2; "
         "repeatable",
         NULL},
        {0}};
    const app_command command = {"check", "SCENE",
                                 "Validates a scene without simulating it: says what is wrong and "
                                 "how to fix it, and predicts\n"
                                 "cells, particles, memory and time.",
                                 options};
    const char *path;
    int exit_status = app_options_parse(&command, argc, argv, &path);
    if (exit_status >= 0) {
        app_list_free(&overrides);
        return exit_status;
    }
    un_context_def def = un_context_def_default();
    def.threads = threads;
    def.log = app_print_warning;
    un_context *ctx = un_context_create(&def);
    un_scene *scene = NULL;
    un_check check = {0};
    if (!ctx) {
        app_error("out of memory");
        exit_status = APP_FAILED;
    } else if (un_scene_load(ctx, path, (const char *const *)overrides.items, overrides.count,
                             &scene) != UN_OK) {
        app_fail(ctx, UN_ERROR_SCENE);
        exit_status = APP_WRONG;
    } else {
        un_status status = un_scene_check(ctx, scene, &check);
        un_check_share share;
        if (status == UN_OK) print_check(path, &check);
        if (status == UN_OK && ranks > 0) {
            status = un_scene_check_ranks(ctx, scene, &check, ranks, &share);
            if (status == UN_OK) print_share(ranks, &share);
        }
        exit_status = status == UN_OK ? APP_DONE : app_fail(ctx, status);
        un_scene_destroy(scene);
    }
    un_context_destroy(ctx);
    app_list_free(&overrides);
    return exit_status;
}
