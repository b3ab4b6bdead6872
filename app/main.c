/* The program: finds the command and calls it. */
#include "app.h"

#include <errno.h>
#include <string.h>

typedef struct entry {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    bool shares; /* its work among several processes */
} entry;

static const entry commands[] = {
    {"run", app_run, "simulate a scene into a directory", true},
    {"check", app_check, "validate a scene without simulating; estimate its cost", false},
    {"info", app_info, "summarize the directory of a run", false},
    {"render", app_render, "make pictures and a film of a run", true},
    {"surface", app_surface, "make the surfaces of a run again, finer or smoother", true},
    {"export", app_export, "write a run in other formats", false},
    {"view", app_view, "view runs in the browser", false},
    {"compare", app_compare, "compare several runs on one page", false},
    {"tetmesh", app_tetmesh, "fill a closed surface with tetrahedra", false},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_usage(FILE *file)
{
    fputs("usage: undine COMMAND ...\n\n", file);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(file, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    fputs("\n`undine help COMMAND` explains a command; `undine --version` prints the version.\n",
          file);
}

static int unknown_command(const char *name)
{
    const char *names[COMMAND_COUNT + 1] = {NULL};
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    const char *near = app_nearest(name, names);
    if (near)
        app_error("unknown command `%s`; did you mean `%s`?", name, near);
    else
        app_error("unknown command `%s`; `undine -h` lists the commands", name);
    return APP_WRONG;
}

static int run_command(int argc, char **argv)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[0], commands[i].name) != 0) continue;
        int exit_status = app_launch(argv[0], commands[i].shares, argc, argv);
        if (exit_status >= 0) return exit_status;
        exit_status = commands[i].run(argc, argv);
        app_land();
        return exit_status;
    }
    return unknown_command(argv[0]);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return APP_WRONG;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("undine %s\n", un_version());
        return APP_DONE;
    }
    if (strcmp(name, "help") == 0 && argc > 2) {
        char option[] = "-h", *arguments[] = {argv[2], option, NULL};
        return run_command(2, arguments);
    }
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return APP_DONE;
    }
    if (name[0] == '-') {
        app_error("unknown option %s; see `undine -h`", name);
        return APP_WRONG;
    }
    return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    if (!app_processor_fits()) return APP_FAILED;
    int status = dispatch(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == APP_DONE && errno != EPIPE) {
        app_error("cannot write to standard output: %s", strerror(errno));
        status = APP_FAILED;
    }
    return status;
}
