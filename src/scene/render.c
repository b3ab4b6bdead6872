/* Cameras, used by sizing and by pictures, and the key `render`: how pictures of a run look. */
#include "scene/loader.h"

#include <stdio.h>

/* A camera's path may come from tables; a formula takes hundreds of instructions. */
#define CAMERA_STEPS 1000000

/* ---- cameras ---- */

/* The reference of the function under the key, -1 if there is another value or none. */
static int32_t take_function(const un_place *place, int t, const char *key)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return -1;
    if (lua_isfunction(L, -1)) return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return -1;
}

bool un_read_camera(un_place *place, int t, bool whole, un_bounds fov, un_camera_keys *keys)
{
    static const char *const known[] = {"eye", "target", "fov", "aspect", NULL};
    static const char usage[] = "{ eye = {2, 1, 2}, target = {0, 0, 0}, fov = 40 }";
    un_viewpoint *still = &keys->still;
    int camera = un_open_table(place, t, "camera", usage);
    if (!camera) return false;
    un_check_keys(place, camera, known, false);
    keys->eye = take_function(place, camera, "eye");
    keys->target = take_function(place, camera, "target");
    keys->fov = take_function(place, camera, "fov");
    keys->has_eye = keys->eye >= 0 || un_read_vec3(place, camera, "eye", &still->eye);
    if (whole && !keys->has_eye) un_place_fail(place, NULL, "needs eye, as in %s", usage);
    keys->has_target = keys->target >= 0 || un_read_vec3(place, camera, "target", &still->target);
    if (whole && !keys->has_target) un_place_fail(place, NULL, "needs target, as in %s", usage);
    keys->has_fov = keys->fov >= 0 || un_read_number(place, camera, "fov", fov, &still->fov);
    un_read_number(place, camera, "aspect", (un_bounds){0.01, 100, false}, &still->aspect);
    un_close_table(place, camera);
    return true;
}

un_status un_add_circumstance(const un_scene *scene, un_status status, const char *text)
{
    if (status != UN_ERROR_SCENE) return status;
    char message[800];
    snprintf(message, sizeof message, "%s", un_context_message(scene->ctx));
    return un_fail(scene->ctx, status, "%s (%s)", message, text);
}

typedef struct camera_call {
    const un_camera_keys *keys;
    const char *path;
    un_bounds fov;
    double t;
    un_viewpoint *camera;
} camera_call;

/* Sets table[key] to what the function returns. */
static void call_part(const un_place *place, int table, int32_t function, const char *key, double t)
{
    lua_State *L = place->L;
    if (function < 0) return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    lua_pushnumber(L, t);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) un_place_fail(place, key, "returned nothing");
    lua_setfield(L, table, key);
}

static void call_camera(lua_State *L, void *arg)
{
    camera_call *c = arg;
    const un_camera_keys *keys = c->keys;
    un_place place = {.L = L, .root = "scene", .line = un_sandbox_of(L)->scene_line};
    snprintf(place.path, sizeof place.path, "%s", c->path);
    lua_createtable(L, 0, 3);
    call_part(&place, 1, keys->eye, "eye", c->t);
    call_part(&place, 1, keys->target, "target", c->t);
    call_part(&place, 1, keys->fov, "fov", c->t);
    un_read_vec3(&place, 1, "eye", &c->camera->eye);
    un_read_vec3(&place, 1, "target", &c->camera->target);
    un_read_number(&place, 1, "fov", c->fov, &c->camera->fov);
    if (keys->has_eye && keys->has_target &&
        !(un_length(un_sub(c->camera->target, c->camera->eye)) > 0))
        un_place_fail(&place, "target", "must be another point than eye");
}

un_status un_call_camera(const un_scene *scene, const un_camera_keys *keys, const char *path,
                         un_bounds fov, double t, un_viewpoint *camera)
{
    const un_limits limits = {"the camera's function", "is there an endless loop?", CAMERA_STEPS,
                              1};
    camera_call c = {keys, path, fov, t, camera};
    char text[64];
    *camera = keys->still;
    snprintf(text, sizeof text, "in %s at t = %g s", path, t);
    return un_add_circumstance(scene, un_sandbox_call(scene->sandbox, call_camera, &c, &limits),
                               text);
}

/* ---- pictures ---- */

/* The range that the renderer can draw. */
static const un_bounds render_fov = {1, 150, false};

static bool read_colour(const un_place *place, int t, const char *key, un_vec3 *colour)
{
    if (!un_read_vec3(place, t, key, colour)) return false;
    const double parts[3] = {colour->x, colour->y, colour->z};
    for (int c = 0; c < 3; c++) {
        char item[32];
        snprintf(item, sizeof item, "%s.%d", key, c + 1);
        if (!(parts[c] >= 0 && parts[c] <= 1))
            un_place_fail(place, item,
                          "must be between 0 and 1: a colour is {red, green, blue}, got %g",
                          parts[c]);
    }
    return true;
}

void un_read_render(un_place *place, int t, un_scene_def *def)
{
    static const char *const keys[] = {"camera", "light", "water", "solid", "background", NULL};
    static const char *const light_keys[] = {"azimuth", "elevation", NULL};
    int render = un_open_table(place, t, "render",
                               "{ camera = { eye = {2, 1, 2} }, water = {0.2, 0.5, 0.6} }");
    if (!render) return;
    un_check_keys(place, render, keys, false);
    un_read_camera(place, render, false, render_fov, &def->render.camera);
    int light = un_open_table(place, render, "light", "{ azimuth = 230, elevation = 55 }");
    if (light) {
        un_check_keys(place, light, light_keys, false);
        un_read_number(place, light, "azimuth", (un_bounds){-360, 360, false},
                       &def->render.light.azimuth);
        un_read_number(place, light, "elevation", (un_bounds){5, 90, false},
                       &def->render.light.elevation);
        def->render.has_light = true;
        un_close_table(place, light);
    }
    def->render.has_water = read_colour(place, render, "water", &def->render.water);
    def->render.has_solid = read_colour(place, render, "solid", &def->render.solid);
    def->render.has_background = read_colour(place, render, "background", &def->render.background);
    un_close_table(place, render);
}

un_status un_scene_render_camera(const un_scene *scene, double t, un_viewpoint *camera)
{
    return un_call_camera(scene, &scene->def.render.camera, "render.camera", render_fov, t, camera);
}

un_status un_check_render(const un_scene *scene)
{
    un_viewpoint camera;
    UN_TRY(un_scene_render_camera(scene, 0, &camera));
    return un_scene_render_camera(scene, scene->def.frames.count / scene->def.frames.rate, &camera);
}
