/* undine tetmesh INPUT -o FILE: fills a closed surface with tets. */
#include "app.h"

typedef struct tetmesh_options {
    un_tetmesh_def def;
    app_list set;
    int32_t threads;
    size_t memory;
    bool quiet;
} tetmesh_options;

static void describe(const tetmesh_options *o, const un_tetmesh_report *r)
{
    printf("%s tets, %s nodes; leaves of %g to %g\n", app_count((double)r->tet_count).text,
           app_count((double)r->node_count).text, r->size, r->largest);
    printf("boundary: %s triangles of the surface", app_count((double)r->surface_count).text);
    if (r->wall_count) printf(", %s of solids", app_count((double)r->wall_count).text);
    if (r->side_count) printf(", %s of the domain's sides", app_count((double)r->side_count).text);
    printf("; volume %.6g\n", r->volume);
    printf("dihedral angles: %.1f to %.1f degrees, %.1f to %.1f for 99 %% of the tets\n",
           r->min_angle, r->max_angle, r->common_min, r->common_max);
    printf("written to %s\n", o->def.output);
}

static int make_mesh(tetmesh_options *o)
{
    un_context_def context = un_context_def_default();
    context.threads = o->threads;
    context.memory_cap = o->memory;
    context.log = app_print_warning;
    un_context *ctx = un_context_create(&context);
    if (!ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    un_tetmesh_report report;
    un_status status = un_tetmesh(ctx, &o->def, &report);
    int exit_status = status == UN_OK ? APP_DONE : app_fail(ctx, status);
    if (status == UN_OK && !o->quiet) describe(o, &report);
    un_context_destroy(ctx);
    return exit_status;
}

int app_tetmesh(int argc, char **argv)
{
    tetmesh_options o = {.def = un_tetmesh_def_default()};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &o.def.output, "FILE", "the mesh, a .vtu file", NULL},
        {"--size", NULL, APP_NUMBER, &o.def.size, "LENGTH",
         "size of cells along the surface; default: 1/32 of the longest side, or a scene's finest",
         NULL},
        {"--grading", NULL, APP_NUMBER, &o.def.grading, "G",
         "how many times larger cells may be deep inside; default: 8", NULL},
        {"--part", NULL, APP_TEXT, &o.def.part, "NAME",
         "of a scene: fill this solid; default: the liquid at the start", NULL},
        {"--set", NULL, APP_LIST, &o.set, "KEY=VALUE", "of a scene: override a value", ""},
        {"--threads", NULL, APP_COUNT, &o.threads, "N",
         "number of threads; default: all processors", NULL},
        {"--memory", NULL, APP_BYTES, &o.memory, "8G", "use no more memory than this", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {0}};
    const app_command command = {
        "tetmesh", "INPUT",
        "Fills a closed surface (PLY, OBJ, STL or OFF) with tetrahedra of good quality. INPUT may\n"
        "also be a scene: then the liquid around its solids is filled, or one solid. The file\n"
        "holds the tets and the triangles of their boundary, tagged: 0 tet, 1 surface, 2 solid,\n"
        "3 to 8 sides of the domain.",
        options};
    int exit_status = app_options_parse(&command, argc, argv, &o.def.input);
    if (exit_status < 0 && !o.def.output) {
        app_error("tetmesh: where to? add -o FILE.vtu");
        exit_status = APP_WRONG;
    }
    if (exit_status < 0 && !app_check_output("tetmesh", o.def.output)) exit_status = APP_WRONG;
    o.def.overrides = (const char *const *)o.set.items;
    o.def.override_count = o.set.count;
    if (exit_status < 0) exit_status = make_mesh(&o);
    app_list_free(&o.set);
    return exit_status;
}
