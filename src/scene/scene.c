/* Loading a scene file, saving it as run, and the poses of its solids. */
#include "scene/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A thousand times the size of a usual scene; limited because Lua's parser may need quadratic
 * time. */
#define FILE_MAX ((size_t)1 << 20)
#define FILE_USUAL ((size_t)1 << 14)
#define OVERRIDES_MAX 1000
/* Far more than any honest script needs; takes a second or two. */
#define SCRIPT_STEPS 200000000
#define SCRIPT_SECONDS 3
#define POSE_STEPS 1000000

/* The last lines of a saved scene: comments for Lua, instructions for us. */
static const char saved_marker[] = "-- undine: added when this scene was run:";
static const char saved_folder[] = "-- undine: folder ";
static const char saved_set[] = "-- undine: set ";

/* ---- the file ---- */

static un_status read_file(un_context *ctx, const char *path, char **text, size_t *length)
{
    char shown[200];
    un_clean_text(shown, sizeof shown, path, strlen(path));
    un_status status = UN_OK;
    char *data = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return un_fail(ctx, UN_ERROR_FILE, "%s: cannot be opened: %s; check the name", shown,
                       strerror(errno));
    size_t n = 0, room = 0;
    for (;;) {
        status = un_array_reserve(ctx, (void **)&data, &room, n + FILE_USUAL, 1);
        if (status != UN_OK) goto done;
        ssize_t got = read(file, data + n, room - n - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = un_fail(ctx, UN_ERROR_FILE, "%s: cannot be read: %s", shown, strerror(errno));
            goto done;
        }
        n += (size_t)got;
        if (got == 0 || n > FILE_MAX) break;
    }
    if (n > FILE_MAX) {
        status = un_fail(ctx, UN_ERROR_SCENE,
                         "%s: larger than %d KB, which no scene needs; keep data in mesh files",
                         shown, (int)(FILE_MAX >> 10));
        goto done;
    }
    data[n] = 0;
    *length = n;
    *text = un_realloc(ctx, data, n + 1, 1);
    if (*text)
        data = NULL;
    else
        status = UN_ERROR_MEMORY;
done:
    un_free(ctx, data);
    close(file);
    return status;
}

/* Errors that Lua would report in its own words, or not at all. */
static un_status check_text(un_context *ctx, const char *name, const char *text, size_t length)
{
    const char *zero = memchr(text, 0, length);
    if (text[0] == '\x1b')
        return un_fail(ctx, UN_ERROR_SCENE,
                       "%s: this is compiled Lua, which is not accepted; give the source text",
                       name);
    if (zero) {
        int line = 1;
        for (const char *c = text; c < zero; c++) line += *c == '\n';
        return un_fail(ctx, UN_ERROR_SCENE,
                       "%s:%d: this is not a text file; save the scene as plain UTF-8 text", name,
                       line);
    }
    if (strspn(text, " \t\r\n") == length)
        return un_fail(ctx, UN_ERROR_SCENE,
                       "%s: the file is empty; write scene { liquid = { box { ... } } }", name);
    int32_t line = un_lines_find_name(text, "_ENV");
    if (line)
        return un_fail(ctx, UN_ERROR_SCENE, "%s:%d: _ENV is not available in a scene file", name,
                       (int)line);
    return UN_OK;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/* The line after which a saved scene holds its additions; NULL if it has none. */
static const char *find_marker(const char *text)
{
    for (const char *line = text; *line; line = next_line(line))
        if (starts_with(line, saved_marker)) return line;
    return NULL;
}

static bool is_addition(const char *line)
{
    return starts_with(line, saved_marker) || starts_with(line, saved_folder) ||
           starts_with(line, saved_set);
}

static un_status add_override(un_scene *scene, const char *text, size_t length)
{
    if (scene->override_count >= OVERRIDES_MAX)
        return un_fail(scene->ctx, UN_ERROR_SCENE, "more than %d values are set with --set",
                       OVERRIDES_MAX);
    char **grown =
        un_realloc(scene->ctx, scene->overrides, (size_t)scene->override_count + 1, sizeof *grown);
    if (!grown) return UN_ERROR_MEMORY;
    scene->overrides = grown;
    char *copy = un_alloc(scene->ctx, length + 1, 1);
    if (!copy) return UN_ERROR_MEMORY;
    memcpy(copy, text, length);
    copy[length] = 0;
    scene->overrides[scene->override_count++] = copy;
    return UN_OK;
}

/* Line breaks and % of a folder's name are saved as %0A and %25. */
static void decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        char hex[3] = {from[0] == '%' ? from[1] : 0, 0, 0};
        if (hex[0]) hex[1] = from[2];
        char *end = hex;
        long code = strtol(hex, &end, 16);
        if (hex[0] && end == hex + 2) {
            *to++ = (char)code;
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

static un_status read_additions(un_scene *scene)
{
    const char *line = find_marker(scene->text);
    for (; line && *line; line = next_line(line)) {
        size_t length = strcspn(line, "\r\n");
        if (starts_with(line, saved_set)) {
            size_t skip = strlen(saved_set);
            UN_TRY(add_override(scene, line + skip, length - skip));
        } else if (starts_with(line, saved_folder)) {
            size_t skip = strlen(saved_folder);
            char *folder = un_alloc(scene->ctx, length - skip + 1, 1);
            if (!folder) return UN_ERROR_MEMORY;
            memcpy(folder, line + skip, length - skip);
            folder[length - skip] = 0;
            decode(folder);
            un_free(scene->ctx, scene->folder);
            scene->folder = folder;
        }
    }
    return UN_OK;
}

static un_status set_folder(un_scene *scene)
{
    const char *slash = strrchr(scene->path, '/');
    scene->folder = un_strdup(scene->ctx, slash ? scene->path : ".");
    if (!scene->folder) return UN_ERROR_MEMORY;
    /* "/dam.lua" lies in "/" */
    if (slash) scene->folder[slash == scene->path ? 1 : slash - scene->path] = 0;
    return UN_OK;
}

/* ---- loading ---- */

static void run_script(lua_State *L, void *arg)
{
    un_scene *scene = arg;
    un_sandbox *s = scene->sandbox;
    const char *text = scene->text;
    if (starts_with(text, "\xef\xbb\xbf"))
        text += 3; /* the byte order mark that some editors write */
    const char *chunk = lua_pushfstring(L, "@%s", s->name);
    if (luaL_loadbufferx(L, text, strlen(text), chunk, "t") != LUA_OK) lua_error(L);
    lua_call(L, 0, 0);
    if (s->scene_ref == LUA_NOREF) {
        lua_pushfstring(L, "%s: scene { ... } is never called; the file must end with it", s->name);
        lua_error(L);
    }
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->scene_ref);
    un_apply_overrides(L, scene, 1);
}

static void build_scene(lua_State *L, void *arg)
{
    un_scene *scene = arg;
    un_read_scene(L, scene);
    luaL_unref(L, LUA_REGISTRYINDEX, scene->sandbox->scene_ref);
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, "undine meshes");
    lua_settop(L, 0);
    lua_gc(L,
           LUA_GCCOLLECT); /* only the functions of poses, formulas, sizing and cameras are kept */
}

static un_status check_poses(const un_scene *scene)
{
    double end = scene->def.frames.count / scene->def.frames.rate;
    for (int32_t i = 0; i < scene->def.solid_count; i++) {
        un_pose pose;
        UN_TRY(un_scene_pose(scene, i, 0, &pose));
        UN_TRY(un_scene_pose(scene, i, end, &pose));
    }
    return UN_OK;
}

static un_status load(un_scene *scene, const char *const *overrides, int32_t override_count)
{
    un_context *ctx = scene->ctx;
    size_t length = 0;
    UN_TRY(set_folder(scene));
    UN_TRY(read_file(ctx, scene->path, &scene->text, &length));
    UN_TRY(un_sandbox_create(ctx, scene, &scene->sandbox));
    UN_TRY(check_text(ctx, scene->sandbox->name, scene->text, length));
    UN_TRY(read_additions(scene));
    for (int32_t i = 0; i < override_count; i++)
        UN_TRY(add_override(scene, overrides[i], strlen(overrides[i])));
    scene->shapes = un_shape_set_create(ctx);
    if (!scene->shapes) return UN_ERROR_MEMORY;
    const un_limits script = {"the script", "is there an endless loop?", SCRIPT_STEPS,
                              SCRIPT_SECONDS};
    const un_limits build = {"a field's function",
                             "is there an endless loop? If not, simplify it or lower "
                             "detail.finest",
                             SCRIPT_STEPS, 120};
    UN_TRY(un_sandbox_call(scene->sandbox, run_script, scene, &script));
    UN_TRY(un_sandbox_call(scene->sandbox, build_scene, scene, &build));
    UN_TRY(check_poses(scene));
    UN_TRY(un_check_fluid(scene));
    UN_TRY(un_check_sizing(scene));
    return un_check_render(scene);
}

const un_traits *un_traits_find(const un_traits *const *methods, size_t trait)
{
    for (; *methods; methods++)
        if (*(const bool *)((const char *)*methods + trait)) return *methods;
    return NULL;
}

un_status un_scene_read(un_context *ctx, const char *path, const char *const *overrides,
                        int32_t override_count, const un_traits *const *methods, un_scene **scene)
{
    *scene = NULL;
    if (!path || !*path)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "no scene file given; name one, as in dam.lua");
    un_scene *s = un_alloc_zero(ctx, 1, sizeof *s);
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->def = un_scene_def_default();
    s->methods = methods;
    s->path = un_strdup(ctx, path);
    un_status status = s->path ? load(s, overrides, override_count) : UN_ERROR_MEMORY;
    if (status != UN_OK) {
        un_scene_destroy(s);
        return status;
    }
    *scene = s;
    return UN_OK;
}

void un_scene_destroy(un_scene *scene)
{
    if (!scene) return;
    un_context *ctx = scene->ctx;
    un_sandbox_destroy(scene->sandbox);
    un_shape_set_destroy(scene->shapes);
    for (int32_t i = 0; i < scene->override_count; i++) un_free(ctx, scene->overrides[i]);
    un_free(ctx, scene->overrides);
    un_free(ctx, scene->def.solids);
    un_free(ctx, scene->def.sources);
    un_free(ctx, scene->def.probes);
    un_free(ctx, scene->notes);
    un_free(ctx, scene->text);
    un_free(ctx, scene->folder);
    un_free(ctx, scene->path);
    un_free(ctx, scene);
}

/* ---- saving ---- */

typedef struct writer {
    char *text; /* NULL: only counts */
    size_t length;
} writer;

static void put(writer *w, const char *text, size_t length)
{
    if (w->text) memcpy(w->text + w->length, text, length);
    w->length += length;
}

static void put_text(writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_folder(writer *w, const char *folder)
{
    for (; *folder; folder++) {
        if (*folder == '\n')
            put_text(w, "%0A");
        else if (*folder == '\r')
            put_text(w, "%0D");
        else if (*folder == '%')
            put_text(w, "%25");
        else
            put(w, folder, 1);
    }
}

static void put_scene(writer *w, const un_scene *scene, const char *folder)
{
    const char *marker = find_marker(scene->text);
    const char *line = scene->text;
    for (; *line; line = next_line(line)) {
        bool skip = marker && line >= marker && is_addition(line);
        if (!skip) put(w, line, (size_t)(next_line(line) - line));
    }
    if (scene->override_count == 0 && !scene->reads_files) return;
    if (line > scene->text && line[-1] != '\n') put_text(w, "\n");
    put_text(w, saved_marker);
    put_text(w, "\n");
    if (scene->reads_files) {
        put_text(w, saved_folder);
        put_folder(w, folder);
        put_text(w, "\n");
    }
    for (int32_t i = 0; i < scene->override_count; i++) {
        put_text(w, saved_set);
        put_text(w, scene->overrides[i]);
        put_text(w, "\n");
    }
}

un_status un_scene_text(const un_scene *scene, char **text)
{
    char *real = realpath(scene->folder, NULL);
    const char *folder = real ? real : scene->folder;
    writer w = {NULL, 0};
    put_scene(&w, scene, folder);
    w.text = un_alloc(scene->ctx, w.length + 1, 1);
    if (w.text) {
        w.length = 0;
        put_scene(&w, scene, folder);
        w.text[w.length] = 0;
    }
    free(real);
    *text = w.text;
    return w.text ? UN_OK : UN_ERROR_MEMORY;
}

/* ---- poses ---- */

typedef struct pose_call {
    const un_solid *solid;
    double t;
    un_pose *pose;
} pose_call;

/* The function returns { by, rotate, about }, or by and rotate as two values. */
static void call_pose(lua_State *L, void *arg)
{
    static const char *const keys[] = {"by", "rotate", "about", NULL};
    pose_call *c = arg;
    un_place place = {.L = L, .root = "pose"};
    lua_Debug ar;
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->solid->pose);
    lua_pushvalue(L, 1);
    if (lua_getinfo(L, ">S", &ar) && ar.linedefined > 0) place.line = ar.linedefined;
    lua_pushnumber(L, c->t);
    lua_call(L, 1, 2);
    if (lua_type(L, 1) != LUA_TTABLE)
        un_place_fail(&place, NULL,
                      "must return a table, as in { by = {x, y, z}, rotate = {x, y, z} }, got %s",
                      un_describe(L, 1).text);
    if (lua_rawlen(L, 1) > 0 || !lua_isnil(L, 2)) {
        lua_createtable(L, 0, 2);
        lua_insert(L, 1);
        lua_setfield(L, 1, "rotate");
        lua_setfield(L, 1, "by");
    }
    lua_settop(L, 1);
    un_check_keys(&place, 1, keys, false);
    un_read_motion(&place, 1, false, c->pose);
}

un_status un_scene_pose(const un_scene *scene, int32_t solid, double t, un_pose *pose)
{
    UN_ASSERT(solid >= 0 && solid < scene->def.solid_count);
    const un_solid *s = &scene->def.solids[solid];
    *pose = un_pose_identity();
    if (s->density > 0) return UN_OK; /* where it starts; the rest is the liquid's to say */
    if (s->pose < 0) {
        pose->translation = un_scale(s->velocity, t);
        return UN_OK;
    }
    const un_limits limits = {"the pose function", "is there an endless loop?", POSE_STEPS, 1};
    pose_call c = {s, t, pose};
    un_status status = un_sandbox_call(scene->sandbox, call_pose, &c, &limits);
    char text[120];
    snprintf(text, sizeof text, "in the pose of %s at t = %g s", s->label, t);
    return un_add_circumstance(scene, status, text);
}
