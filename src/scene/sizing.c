/* The key `sizing`: reading it, and calling its functions during a run. */
#include "scene/loader.h"

#include <stdio.h>

#define CUSTOM_STEPS 20000
/* For all nodes of a mesh at once. */
#define CUSTOM_SECONDS 120

/* ---- reading ---- */

/* true and false switch it, a number scales it. */
static void read_term(const un_place *place, int t, const char *key, double *factor)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return;
    int type = lua_type(L, -1);
    if (type == LUA_TBOOLEAN) {
        *factor = lua_toboolean(L, -1);
        lua_pop(L, 1);
        return;
    }
    if (type != LUA_TNUMBER)
        un_place_fail(place, key,
                      "must be true, false or a factor (2: cells twice as large), got %s",
                      un_describe(L, -1).text);
    lua_pop(L, 1);
    un_read_number(place, t, key, (un_bounds){0, 1e6, true}, factor);
}

void un_read_sizing(un_place *place, int t, un_scene *scene)
{
    static const char *const keys[] = {"warp",      "strength",        "follow", "depth",
                                       "curvature", "solid_curvature", "strain", "film",
                                       "sources",   "deformability",   "camera", "custom",
                                       NULL};
    const int of_warps = 3; /* the first of them are for methods that warp */
    static const char *const warps[] = {"monge-ampere", "poisson", NULL};
    lua_State *L = place->L;
    un_scene_def *def = &scene->def;
    int sizing = un_open_table(place, t, "sizing", "{ depth = true, curvature = true }");
    if (!sizing) return;
    def->sizing.given = true;
    un_check_keys(place, sizing, def->traits->warps ? keys : keys + of_warps, false);
    read_term(place, sizing, "depth", &def->sizing.depth);
    read_term(place, sizing, "curvature", &def->sizing.curvature);
    read_term(place, sizing, "solid_curvature", &def->sizing.solid_curvature);
    read_term(place, sizing, "strain", &def->sizing.strain);
    read_term(place, sizing, "film", &def->sizing.film);
    read_term(place, sizing, "sources", &def->sizing.sources);
    read_term(place, sizing, "deformability", &def->sizing.deformability);
    def->sizing.has_camera =
        un_read_camera(place, sizing, true, (un_bounds){1, 170, false}, &def->sizing.camera);
    if (un_get_field(place, sizing, "custom")) {
        if (!lua_isfunction(L, -1))
            un_place_fail(place, "custom",
                          "must be a function, as in function(x, y, z, t) return 0.02 end, got %s",
                          un_describe(L, -1).text);
        def->sizing.custom = luaL_ref(L, LUA_REGISTRYINDEX);
        def->sizing.has_custom = true;
    }
    un_read_word(place, sizing, "warp", warps, NULL, def->sizing.warp, sizeof def->sizing.warp);
    un_read_number(place, sizing, "strength", (un_bounds){0, 100, false}, &def->sizing.strength);
    un_read_bool(place, sizing, "follow", &def->sizing.follow);
    un_close_table(place, sizing);
    if (!def->traits->adaptive && !def->traits->graded && !def->traits->warps) {
        char at[120];
        const un_traits *other = un_traits_find(scene->methods, offsetof(un_traits, adaptive));
        un_place_show(place, "sizing", at, sizeof at);
        un_scene_note(L, scene,
                      "%s: sizing has no effect with method \"%s\", whose cells are all alike; use "
                      "method = \"%s\" or remove it",
                      at, def->method, other ? other->name : "another");
    }
}

/* ---- calling ---- */

un_status un_scene_camera(const un_scene *scene, double t, un_viewpoint *camera)
{
    UN_ASSERT(scene->def.sizing.has_camera);
    return un_call_camera(scene, &scene->def.sizing.camera, "sizing.camera",
                          (un_bounds){1, 170, false}, t, camera);
}

typedef struct custom_call {
    int32_t function;
    int64_t count, n; /* n: the current place */
    const un_vec3 *x;
    double t;
    float *size;
} custom_call;

static void call_custom(lua_State *L, void *arg)
{
    custom_call *c = arg;
    un_sandbox *s = un_sandbox_of(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->function);
    for (c->n = 0; c->n < c->count; c->n++) {
        double size = un_call_at(L, CUSTOM_STEPS, c->x[c->n], &c->t);
        if (lua_isnil(L, 2)) {
            size = INFINITY;
        } else if (!(size > 0 && isfinite(size))) {
            un_place place = {.L = L, .root = "scene", .line = s->scene_line, .path = "sizing"};
            un_place_fail(&place, "custom",
                          "must return a cell's edge in m, above 0, or nil where it has no "
                          "opinion, got %s",
                          un_describe(L, 2).text);
        }
        c->size[c->n] = (float)size;
        lua_settop(L, 1);
    }
}

un_status un_scene_custom_sizes(const un_scene *scene, double t, const un_vec3 *x, int64_t count,
                                float *size)
{
    UN_ASSERT(scene->def.sizing.has_custom);
    const un_limits limits = {"sizing.custom", "is there an endless loop?", CUSTOM_STEPS,
                              CUSTOM_SECONDS};
    custom_call c = {scene->def.sizing.custom, count, 0, x, t, size};
    un_status status = un_sandbox_call(scene->sandbox, call_custom, &c, &limits);
    if (status == UN_OK) return status;
    char text[160];
    un_vec3 at = c.n < count ? x[c.n] : un_v3(0, 0, 0);
    snprintf(text, sizeof text, "in sizing.custom at x, y, z, t = %g, %g, %g, %g", at.x, at.y, at.z,
             t);
    return un_add_circumstance(scene, status, text);
}

/* Finds most mistakes before a run, at its start and end. The place is not a likely centre, where a
 * formula may be singular. */
un_status un_check_sizing(const un_scene *scene)
{
    const un_scene_def *def = &scene->def;
    const double times[2] = {0, def->frames.count / def->frames.rate};
    un_vec3 x =
        un_v3(0.43 * def->domain.size.x, 0.29 * def->domain.size.y, 0.58 * def->domain.size.z);
    for (int i = 0; i < 2; i++) {
        un_viewpoint camera;
        float size;
        if (def->sizing.has_camera) UN_TRY(un_scene_camera(scene, times[i], &camera));
        if (def->sizing.has_custom) UN_TRY(un_scene_custom_sizes(scene, times[i], &x, 1, &size));
    }
    return UN_OK;
}
