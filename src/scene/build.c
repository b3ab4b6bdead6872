/* Makes shapes from the script's descriptions: loads meshes and samples fields. */
#include "scene/loader.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* A field is sampled at the spacing of the finest cells, unless that takes more samples than
 * this. */
#define SAMPLES_MAX 20e6
/* Instructions for one sample: a formula needs hundreds, a noise function thousands. */
#define SAMPLE_STEPS 20000
#define FIELD_SECONDS 60
#define NOTES_MAX 100

static void try_build(lua_State *L, un_status status)
{
    if (status != UN_OK) un_sandbox_raise(L, status);
}

void un_scene_note(lua_State *L, un_scene *scene, const char *format, ...)
{
    if (scene->note_count >= NOTES_MAX) return;
    size_t count = (size_t)scene->note_count + 1;
    void *notes = un_realloc(scene->ctx, scene->notes, count, sizeof *scene->notes);
    if (!notes) un_sandbox_raise(L, UN_ERROR_MEMORY);
    scene->notes = notes;
    char *note = scene->notes[scene->note_count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, sizeof *scene->notes, format, arguments);
    va_end(arguments);
}

/* ---- meshes ---- */

/* Pushes the file's path: names are relative to the scene's folder. */
static const char *mesh_path(lua_State *L, const un_scene *scene, int index)
{
    lua_getiuservalue(L, index, 1);
    const char *file = lua_tostring(L, -1);
    if (file[0] == '/') return file;
    return lua_pushfstring(L, "%s/%s", scene->folder, file);
}

static void note_defects(lua_State *L, un_scene *scene, const char *at,
                         const un_trimesh_report *report)
{
    if (report->open_edges)
        un_scene_note(L, scene,
                      "%s has %d open edges; what is inside is judged by its winding number, close "
                      "the holes to be sure of it",
                      at, (int)report->open_edges);
    if (report->nonmanifold_edges)
        un_scene_note(L, scene,
                      "%s has %d edges where its triangles disagree about the outside; check its "
                      "orientation",
                      at, (int)report->nonmanifold_edges);
    if (report->volume < 0)
        un_scene_note(L, scene, "%s is inside out (its triangles face inwards) and was turned", at);
}

static un_shape *build_mesh(lua_State *L, un_scene *scene, int index, const un_node *node)
{
    un_sandbox *s = un_sandbox_of(L);
    un_place place = {.L = L, .root = "mesh", .line = node->head.line};
    const char *path = mesh_path(L, scene, index);
    /* A file that is used again is the same shape. */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "undine meshes");
    if (lua_getfield(L, -1, path) == LUA_TLIGHTUSERDATA) return lua_touserdata(L, -1);
    lua_pop(L, 1);
    scene->reads_files = true;

    char shown[160];
    un_clean_text(shown, sizeof shown, path, strlen(path));
    struct stat file;
    if (stat(path, &file) != 0)
        un_place_fail(&place, "file", "%s cannot be read: %s", shown, strerror(errno));
    if (!S_ISREG(file.st_mode))
        un_place_fail(&place, "file", "%s is not a file of triangles", shown);

    un_trimesh mesh = {0};
    un_trimesh_report report = {0};
    un_shape *shape = NULL;
    double began = un_sandbox_cpu();
    un_status status = un_trimesh_load(s->ctx, path, &mesh);
    if (status == UN_OK) {
        status = un_shape_mesh(scene->shapes, &mesh, &shape, &report);
        un_trimesh_free(s->ctx, &mesh);
    }
    s->cpu_start += un_sandbox_cpu() - began; /* the time to load a large mesh does not count */
    if (status == UN_ERROR_MEMORY) un_sandbox_raise(L, status);
    if (status != UN_OK) {
        char reason[400];
        const char *message = un_context_message(s->ctx);
        un_clean_text(reason, sizeof reason, message, strlen(message));
        un_place_say(&place, "file", "mesh: %s", reason);
    }
    char at[240];
    const char *slash = strrchr(shown, '/');
    snprintf(at, sizeof at, "%s:%d: mesh %s", s->name, (int)node->head.line,
             slash ? slash + 1 : shown);
    note_defects(L, scene, at, &report);
    lua_pushlightuserdata(L, shape);
    lua_setfield(L, -2, path);
    return shape;
}

/* ---- shapes in 2D ---- */

/* Boxes, and cylinders along z, that reach the plane z = 0 are extended far beyond it. Their
 * section there stays the same; without this, their ends could be nearer than their sides, or lie
 * in the plane. */
#define FLAT_REACH 1e3 /* longest sides of the domain */

static double flat_reach(const un_scene_def *def)
{
    return FLAT_REACH * fmax(def->domain.size.x, def->domain.size.y);
}

static void extend(const un_scene_def *def, un_node *node)
{
    double reach = flat_reach(def), *a = &node->a.z, *b = &node->b.z;
    bool along = node->kind == UN_NODE_BOX || node->kind == UN_NODE_FIELD ||
                 (node->a.x == node->b.x && node->a.y == node->b.y);
    if (def->domain.dim == 3 || !along || fmin(*a, *b) > 0 || fmax(*a, *b) < 0) return;
    bool upwards = *a <= *b;
    *a = upwards ? -reach : reach;
    *b = upwards ? reach : -reach;
}

/* ---- fields ---- */

typedef struct samples {
    int32_t n[3];
    un_vec3 origin;
    double h;
    size_t count;
} samples;

/* Covers the domain, or the field's bounds where they are narrower, with two extra cells on each
 * side. */
static samples place_samples(const un_scene_def *def, const un_node *node)
{
    un_vec3 size = def->domain.size, from = un_v3(0, 0, 0), to = size;
    if (node->has_bounds) {
        from = un_min3(un_max3(node->a, from), size);
        to = un_max3(un_min3(node->b, size), from);
    }
    un_vec3 extent = un_sub(to, from);
    double sides[3] = {extent.x, extent.y, extent.z};
    samples g = {.h = fmax(size.x, fmax(size.y, size.z)) / def->detail.finest};
    for (;; g.h *= 1.02) {
        double count = 1;
        for (int a = 0; a < 3; a++) count *= ceil(sides[a] / g.h - 1e-6) + 5;
        if (count <= SAMPLES_MAX) break;
    }
    g.count = 1;
    for (int a = 0; a < 3; a++) {
        g.n[a] = (int32_t)ceil(sides[a] / g.h - 1e-6) + 5;
        g.count *= (size_t)g.n[a];
    }
    g.origin = un_mad(from, un_v3(-2, -2, -2), g.h);
    return g;
}

/* The function is at the top of the stack. */
static double sample(lua_State *L, const un_place *place, un_vec3 x)
{
    double value = un_call_at(L, SAMPLE_STEPS, x, NULL);
    if (!isfinite(value))
        un_place_fail(
            place, NULL,
            "returned %s at x, y, z = %g, %g, %g; it must return a finite number, negative "
            "inside",
            un_describe(L, -1).text, x.x, x.y, x.z);
    lua_pop(L, 1);
    return value;
}

/* Reports early that a field takes too long, not after a minute. */
static void check_pace(const un_place *place, const samples *g, double seconds, size_t done)
{
    if (seconds < 1) return;
    double whole = seconds * (double)g->count / (double)done;
    if (whole > FIELD_SECONDS)
        un_place_fail(
            place, NULL,
            "would take about %.0f s to be sampled at %.3g points; simplify its formula or "
            "lower detail.finest",
            whole, (double)g->count);
}

static un_shape *build_field(lua_State *L, un_scene *scene, int index, un_node *node)
{
    un_sandbox *s = un_sandbox_of(L);
    un_place place = {.L = L, .root = "field", .line = node->head.line};
    samples g = place_samples(&scene->def, node);
    double *values = s->scratch = un_alloc(s->ctx, g.count, sizeof *values);
    if (!values) un_sandbox_raise(L, UN_ERROR_MEMORY);
    lua_getiuservalue(L, index, 1);
    double least = INFINITY, began = un_sandbox_cpu();
    size_t at = 0;
    for (int32_t k = 0; k < g.n[2]; k++) {
        check_pace(&place, &g, un_sandbox_cpu() - began, at);
        for (int32_t j = 0; j < g.n[1]; j++)
            for (int32_t i = 0; i < g.n[0]; i++) {
                un_vec3 x = un_mad(g.origin, un_v3(i, j, k), g.h);
                values[at] = sample(L, &place, x);
                least = fmin(least, values[at++]);
            }
    }
    un_shape *shape = NULL;
    try_build(L, un_shape_sampled(scene->shapes, values, g.n, g.origin, g.h, &shape));
    un_free(s->ctx, values);
    s->scratch = NULL;
    if (node->has_bounds) {
        un_shape *parts[2] = {shape};
        extend(&scene->def, node);
        try_build(L, un_shape_box(scene->shapes, node->a, node->b, &parts[1]));
        try_build(L, un_shape_intersect(scene->shapes, parts, 2, &shape));
    }
    if (least >= 0)
        un_scene_note(L, scene,
                      "%s:%d: field is nowhere negative in the domain, so it has no inside",
                      s->name, (int)node->head.line);
    return shape;
}

/* ---- all shapes ---- */

static un_shape *build_parts(lua_State *L, un_scene *scene, int index, const un_node *node)
{
    lua_getiuservalue(L, index, 1);
    int list = lua_gettop(L);
    un_shape **parts = lua_newuserdatauv(L, (size_t)node->part_count * sizeof *parts, 0);
    for (int32_t i = 0; i < node->part_count; i++) {
        lua_rawgeti(L, list, i + 1);
        parts[i] = un_build_shape(L, scene, lua_gettop(L));
        lua_pop(L, 1);
    }
    un_shape *shape = NULL;
    switch (node->kind) {
    case UN_NODE_UNION:
        try_build(L, un_shape_union(scene->shapes, parts, node->part_count, &shape));
        break;
    case UN_NODE_INTERSECT:
        try_build(L, un_shape_intersect(scene->shapes, parts, node->part_count, &shape));
        break;
    case UN_NODE_SUBTRACT:
        try_build(L, un_shape_subtract(scene->shapes, parts, node->part_count, &shape));
        break;
    case UN_NODE_MOVE:
        try_build(L, un_shape_move(scene->shapes, parts[0], &node->pose, &shape));
        break;
    default:
        shape = parts[0];
    }
    return shape;
}

un_shape *un_build_shape(lua_State *L, un_scene *scene, int index)
{
    un_node *node = (un_node *)un_value_at(L, index);
    UN_ASSERT(node && node->head.tag == UN_VALUE_SHAPE);
    if (node->built) return node->built;
    un_shape_set *set = scene->shapes;
    int top = lua_gettop(L);
    luaL_checkstack(L, 12, NULL);
    un_shape *shape = NULL;
    switch (node->kind) {
    case UN_NODE_BOX:
        extend(&scene->def, node);
        try_build(L, un_shape_box(set, node->a, node->b, &shape));
        break;
    case UN_NODE_SPHERE:
        try_build(L, un_shape_sphere(set, node->a, node->radius, &shape));
        break;
    case UN_NODE_CYLINDER:
        extend(&scene->def, node);
        try_build(L, un_shape_cylinder(set, node->a, node->b, node->radius, &shape));
        break;
    case UN_NODE_CAPSULE:
        try_build(L, un_shape_capsule(set, node->a, node->b, node->radius, &shape));
        break;
    case UN_NODE_TORUS:
        try_build(L, un_shape_torus(set, node->a, node->b, node->radius, node->tube, &shape));
        break;
    case UN_NODE_PLANE:
        try_build(L, un_shape_plane(set, node->a, node->b, &shape));
        break;
    case UN_NODE_MESH:
        shape = build_mesh(L, scene, index, node);
        break;
    case UN_NODE_FIELD:
        shape = build_field(L, scene, index, node);
        break;
    default:
        shape = build_parts(L, scene, index, node);
    }
    node->built = shape;
    lua_settop(L, top);
    return shape;
}
