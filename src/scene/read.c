/* Makes the definition from the table given to scene{}: every key is read, checked or refused. */
#include "scene/loader.h"

#include <stdio.h>
#include <stdlib.h>

#include "linalg/linalg.h"

/* The most cells of the uniform grid, whose ids are int32; a billion already need a quarter of a
 * terabyte. */
#define CELLS_MAX 1e9
#define LIST_MAX 4096

static const char *const side_names[] = {"left", "right", "bottom", "top", "back", "front", NULL};

un_scene_def un_scene_def_default(void)
{
    return (un_scene_def){
        .method = "uniform",
        .domain = {.dim = 3, .size = {1, 1, 1}, .contact_angle = 90},
        .detail = {.coarsest = 8, .finest = 64, .surface = 128},
        .frames = {.count = 72, .rate = 24},
        .gravity = {0, -9.81, 0},
        .fluid.matter = {.density = 1000, .density_formula = -1, .viscosity_formula = -1},
        .solver = {.kind = "auto",
                   .dump_every = 10,
                   .tolerance = 1e-4,
                   .cfl = 3,
                   .pic = -1, /* until the pace is known */
                   .sheets = 1,
                   .thickening = 1,
                   .surface = "colour",
                   .interpolation = "cubic",
                   .stress = "full",
                   .coupling = "flip"},
        .sizing = {.depth = 1,
                   .curvature = 1,
                   .solid_curvature = 1,
                   .strain = 1,
                   .film = 1,
                   .sources = 1,
                   .camera = {.still = {.fov = 30, .aspect = 16.0 / 9},
                              .eye = -1,
                              .target = -1,
                              .fov = -1},
                   .custom = -1,
                   .warp = "monge-ampere",
                   .strength = 4,
                   .follow = true},
        .render = {.camera = {.still = {.fov = 30, .aspect = 16.0 / 9},
                              .eye = -1,
                              .target = -1,
                              .fov = -1},
                   .light = {.azimuth = 231, .elevation = 53}},
        .output = {.surface = true, .particles = true, .mesh = false},
    };
}

/* Not every method can compute in 2D. */
static void check_dim(const un_place *place, const un_scene *scene)
{
    const un_scene_def *def = &scene->def;
    const un_traits *other = un_traits_find(scene->methods, offsetof(un_traits, flat));
    if (def->domain.dim == 2 && !def->traits->flat)
        un_place_fail(place, "domain.size",
                      "has two numbers, a scene in 2D, which method = \"%s\" cannot compute; use "
                      "method = \"%s\", or give three numbers",
                      def->method, other ? other->name : "another");
}

static void read_size(const un_place *place, int domain, un_scene_def *def)
{
    bool flat = false;
    un_sandbox *s = un_sandbox_of(place->L);
    s->dim = 2; /* because there are two numbers */
    if (un_read_point(place, domain, "size", &def->domain.size, &flat)) {
        const double sides[3] = {def->domain.size.x, def->domain.size.y, def->domain.size.z};
        def->domain.dim = flat ? 2 : 3;
        for (int a = 0; a < def->domain.dim; a++) {
            char item[24];
            snprintf(item, sizeof item, "size.%d", a + 1);
            if (!(sides[a] >= 1e-6 && sides[a] <= 1e6))
                un_place_fail(place, item, "must be between 1e-06 and 1e+06 (m), got %g", sides[a]);
        }
    }
    s->dim = def->domain.dim;
}

static void read_domain(un_place *place, int t, un_scene_def *def)
{
    static const char *const flat_names[] = {"left", "right", "bottom", "top", NULL};
    static const char *const keys[] = {"size", "open", "slip", "contact_angle", NULL};
    lua_State *L = place->L;
    un_sandbox_of(L)->dim = def->domain.dim;
    int domain = un_open_table(place, t, "domain", "{ size = {1, 1, 1} }");
    if (!domain) return;
    un_check_keys(place, domain, keys, false);
    read_size(place, domain, def);
    const char *const *sides = def->domain.dim == 2 ? flat_names : side_names;
    int open = un_open_table(place, domain, "open", "{\"top\"}");
    if (open) {
        static const char *const none[] = {NULL};
        un_check_keys(place, open, none, true);
        for (int i = 1; i <= (int)lua_rawlen(L, open); i++) {
            char number[16];
            snprintf(number, sizeof number, "%d", i);
            lua_rawgeti(L, open, i);
            const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
            int side = 0;
            while (sides[side] && strcmp(name, sides[side]) != 0) side++;
            if (!sides[side]) {
                const char *near = un_nearest(name, sides);
                un_place_fail(place, number, "= %s is no side%s; %s%s%s", un_describe(L, -1).text,
                              def->domain.dim == 2 ? " in 2D" : "",
                              near                   ? "did you mean \""
                              : def->domain.dim == 2 ? "use left, right, bottom, top"
                                                     : "use left, right, bottom, top, back, front",
                              near ? near : "", near ? "\"?" : "");
            }
            def->domain.open[side] = true;
            lua_pop(L, 1);
        }
        un_close_table(place, open);
    }
    un_read_slips(place, domain, sides, def->domain.slip);
    un_read_number(place, domain, "contact_angle", UN_CONTACT_RANGE, &def->domain.contact_angle);
    un_close_table(place, domain);
}

static void read_detail(un_place *place, int t, un_scene_def *def)
{
    static const char *const keys[] = {"coarsest", "finest", "surface", NULL};
    int detail = un_open_table(place, t, "detail", "{ finest = 64 }");
    un_vec3 size = def->domain.size;
    double longest = fmax(size.x, fmax(size.y, size.z));
    int32_t times = def->domain.dim == 2 ? 4 : 2; /* in 2D it costs little to resolve every drop */
    def->detail.surface = times * def->detail.finest;
    if (detail) {
        un_check_keys(place, detail, keys, false);
        un_read_integer(place, detail, "finest", (un_bounds){4, 4096, false}, &def->detail.finest);
        def->detail.surface = times * def->detail.finest;
        un_read_integer(place, detail, "surface", (un_bounds){4, 8192, false},
                        &def->detail.surface);
        if (def->detail.surface > 8192) def->detail.surface = 8192;
        if (def->detail.coarsest > def->detail.finest) def->detail.coarsest = def->detail.finest;
        if (un_read_integer(place, detail, "coarsest", (un_bounds){1, 4096, false},
                            &def->detail.coarsest) &&
            def->detail.coarsest > def->detail.finest)
            un_place_fail(place, "coarsest", "must not exceed finest = %d, got %d",
                          (int)def->detail.finest, (int)def->detail.coarsest);
        un_close_table(place, detail);
    }
    double h = longest / def->detail.finest;
    const double sides[3] = {size.x, size.y, size.z};
    double cells = 1;
    for (int a = 0; a < def->domain.dim; a++) {
        cells *= ceil(sides[a] / h - 1e-6) + 2;
        if (sides[a] < h * (1 - 1e-6))
            un_place_fail(place, "domain.size",
                          "is thinner than a cell along %c: %g m, while a cell is %g m; raise "
                          "detail.finest or the size",
                          "xyz"[a], sides[a], h);
        /* both its sides are walls, and the grid would have no open node */
        if (!def->traits->adaptive && sides[a] < h * (1 + 1e-6))
            un_place_fail(place, "domain.size",
                          "is one cell thick along %c, and method = \"%s\" needs more than one; "
                          "raise detail.finest to %d%s",
                          "xyz"[a], def -> method, 2 * def -> detail.finest,
                          a == 2 ? ", or give two numbers for a scene in 2D" : "");
    }
    if (!def->traits->adaptive && cells > CELLS_MAX)
        un_place_fail(place, "detail.finest",
                      "= %d makes %.3g cells of this domain, more than %.0e; lower it or use "
                      "method = \"tet\"",
                      (int)def->detail.finest, cells, CELLS_MAX);
}

static void read_frames(un_place *place, int t, un_scene_def *def)
{
    static const char *const keys[] = {"count", "rate", NULL};
    int frames = un_open_table(place, t, "frames", "{ count = 72, rate = 24 }");
    if (!frames) return;
    un_check_keys(place, frames, keys, false);
    un_read_integer(place, frames, "count", (un_bounds){0, 1000000, false}, &def->frames.count);
    un_read_number(place, frames, "rate", (un_bounds){0.001, 1e6, false}, &def->frames.rate);
    un_close_table(place, frames);
}

/* Pushes item i of the list, one of our values with the given tag; anything else is an error. */
static un_value *take_item(const un_place *place, int list, int i, un_value_tag tag,
                           const char *what)
{
    lua_State *L = place->L;
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    lua_rawgeti(L, list, i);
    un_value *value = un_value_at(L, -1);
    if (!value || value->tag != tag)
        un_place_fail(place, number, "must be %s, got %s", what, un_describe(L, -1).text);
    return value;
}

/* The number of items of the list `key`, which is left open at *list. */
static int32_t open_list(un_place *place, int t, const char *key, const char *usage,
                         const char *const *keys, int *list)
{
    *list = un_open_table(place, t, key, usage);
    if (!*list) return 0;
    un_check_keys(place, *list, keys, true);
    lua_Unsigned count = lua_rawlen(place->L, *list);
    if (count > LIST_MAX)
        un_place_fail(place, NULL, "holds %d entries, more than %d; join shapes with union",
                      (int)un_min64((int64_t)count, INT32_MAX), LIST_MAX);
    return (int32_t)count;
}

static const char *const no_keys[] = {NULL};

/* In 2D nothing moves along z. */
static void check_in_plane(const un_place *place, const char *key, const un_scene_def *def,
                           un_vec3 v)
{
    if (def->domain.dim == 2 && v.z != 0)
        un_place_fail(place, key, "must not point along z in 2D, got {%g, %g, %g}", v.x, v.y, v.z);
}

static void read_liquid(un_place *place, int t, un_scene *scene)
{
    static const char *const keys[] = {"velocity", NULL};
    lua_State *L = place->L;
    un_scene_def *def = &scene->def;
    int liquid;
    int32_t count = open_list(place, t, "liquid", "{ box { min = {0, 0, 0}, max = {1, 1, 1} } }",
                              keys, &liquid);
    if (!liquid) return;
    un_read_point(place, liquid, "velocity", &def->liquid.velocity, NULL);
    check_in_plane(place, "velocity", def, def->liquid.velocity);
    un_shape **parts = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *parts, 0);
    for (int32_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)i + 1);
        const un_node *node = (un_node *)take_item(place, liquid, i + 1, UN_VALUE_SHAPE,
                                                   "a shape, such as box { ... }");
        if (node->kind == UN_NODE_SOLID)
            un_place_fail(place, number, "is a solid; move it to solids");
        if (node->has_pose || node->has_friction || node->has_slip || node->has_contact_angle ||
            node->has_body || *node->name || *node->material)
            un_place_fail(place, number, "has %s, which is for solids; remove it",
                          node->has_pose            ? "a pose"
                          : node->has_friction      ? "friction"
                          : node->has_slip          ? "slip"
                          : node->has_contact_angle ? "a contact angle"
                          : node->has_body          ? "a density, spin, restitution or hold"
                          : *node->name             ? "a name"
                                                    : "a material");
        if (node->has_velocity)
            un_place_fail(place, number,
                          "has a velocity; the liquid starts with one for all: liquid = { ..., "
                          "velocity = {x, y, z} }");
        parts[i] = un_build_shape(L, scene, lua_gettop(L));
        lua_pop(L, 1);
    }
    un_shape *shape = count ? parts[0] : NULL;
    if (count > 1) {
        un_status status = un_shape_union(scene->shapes, parts, count, &shape);
        if (status != UN_OK) un_sandbox_raise(L, status);
    }
    def->liquid.shape = shape;
    un_close_table(place, liquid);
}

static void *new_list(lua_State *L, un_scene *scene, int32_t count, size_t size)
{
    void *list = un_alloc_zero(scene->ctx, (size_t)count, size);
    if (!list) un_sandbox_raise(L, UN_ERROR_MEMORY);
    return list;
}

/* "solids[2] (sphere)": a solid {} gets the name of its shape. */
static void name_item(lua_State *L, char *name, size_t size, const char *list, int32_t i,
                      const un_value *value)
{
    const char *kind = value->kind;
    if (value->tag == UN_VALUE_SHAPE && ((const un_node *)value)->kind == UN_NODE_SOLID) {
        lua_getiuservalue(L, -1, 1);
        lua_rawgeti(L, -1, 1);
        kind = un_value_at(L, -1)->kind;
        lua_pop(L, 2);
    }
    snprintf(name, size, "%s[%d] (%s)", list, (int)i + 1, kind);
}

/* Names are column heads of bodies.csv, so no two solids may have the same one. */
static void name_solid(const un_place *place, un_scene_def *def, int32_t i, const char *given,
                       int32_t moving)
{
    un_solid *solid = &def->solids[i];
    char number[16];
    if (*given)
        snprintf(solid->name, sizeof solid->name, "%s", given);
    else if (solid->moves)
        snprintf(solid->name, sizeof solid->name, UN_BODY_NAME, moving);
    snprintf(number, sizeof number, "%d", (int)i + 1);
    for (int32_t other = 0; *solid->name && other < i; other++)
        if (strcmp(def->solids[other].name, solid->name) == 0)
            un_place_fail(place, number,
                          "%s \"%s\", which is the name of solids[%d]; give one of them another: "
                          "name = \"%s_2\"",
                          *given ? "has the name" : "would be called", solid->name, (int)other + 1,
                          solid->name);
}

static void read_solids(un_place *place, int t, un_scene *scene)
{
    lua_State *L = place->L;
    un_scene_def *def = &scene->def;
    int list;
    int32_t moving = 0;
    int32_t count = open_list(
        place, t, "solids", "{ sphere { center = {0.5, 0, 0.5}, radius = 0.1 } }", no_keys, &list);
    if (!list) return;
    if (count) def->solids = new_list(L, scene, count, sizeof *def->solids);
    for (int32_t i = 0; i < count; i++) {
        un_solid *solid = &def->solids[i];
        const un_node *node = (un_node *)take_item(
            place, list, i + 1, UN_VALUE_SHAPE,
            "a shape, such as sphere { ... } or solid { sphere { ... }, velocity = ... }");
        name_item(L, solid->label, sizeof solid->label, "solids", i, &node->head);
        solid->shape = un_build_shape(L, scene, lua_gettop(L));
        solid->friction = node->friction;
        solid->slip = node->slip;
        solid->contact_angle = node->has_contact_angle ? node->contact_angle : 90;
        solid->velocity = node->velocity;
        snprintf(solid->material, sizeof solid->material, "%s",
                 *node->material ? node->material : "matte");
        un_place own = {.L = L, .root = node->head.kind, .line = node->head.line};
        check_in_plane(&own, "velocity", def, node->velocity);
        un_take_body(&own, scene, solid, node);
        solid->pose = -1;
        solid->moves = node->has_pose || solid->density > 0 || un_length(node->velocity) > 0;
        moving += solid->moves;
        name_solid(place, def, i, node->name, moving);
        if (node->has_pose) {
            lua_getiuservalue(L, -1, 2);
            solid->pose = luaL_ref(L, LUA_REGISTRYINDEX);
        }
        def->solid_count = i + 1;
        lua_pop(L, 1);
    }
    un_check_bodies(L, scene);
    un_close_table(place, list);
}

/* The speed at which a flow leaves the cross-section of its emitter. */
static void find_speed(const un_place *place, const un_scene *scene, un_source *source)
{
    un_vec3 size = scene->def.domain.size;
    double area = un_shape_shadow(scene->ctx, source->shape, source->velocity, size);
    if (!(area > 0)) un_place_fail(place, "flow", "leads nowhere: the shape is outside the domain");
    source->velocity = un_scale(un_normalize(source->velocity), source->flow / area);
}

static void read_sources(un_place *place, int t, un_scene *scene)
{
    lua_State *L = place->L;
    un_scene_def *def = &scene->def;
    int list;
    int32_t count =
        open_list(place, t, "sources", "{ emitter { ... }, drain { ... } }", no_keys, &list);
    if (!list) return;
    if (count) def->sources = new_list(L, scene, count, sizeof *def->sources);
    for (int32_t i = 0; i < count; i++) {
        const un_source_value *value = (un_source_value *)take_item(
            place, list, i + 1, UN_VALUE_SOURCE, "emitter { ... } or drain { ... }");
        un_source *source = &def->sources[i];
        *source = value->source;
        name_item(L, source->name, sizeof source->name, "sources", i, &value->head);
        un_complete_source(place, source, def);
        un_place own = {.L = L, .root = value->head.kind, .line = value->head.line};
        check_in_plane(&own, "velocity", def, source->velocity);
        lua_getiuservalue(L, -1, 1);
        source->shape = un_build_shape(L, scene, lua_gettop(L));
        if (source->flow > 0) find_speed(&own, scene, source);
        def->source_count = i + 1;
        lua_pop(L, 2);
    }
    un_close_table(place, list);
}

static void check_inside(const un_place *place, const char *number, const un_probe *probe,
                         un_vec3 size)
{
    const double at[3] = {probe->at.x, probe->at.y, probe->at.z};
    const double sides[3] = {size.x, size.y, size.z};
    bool along = probe->kind == UN_PROBE_FRONT || probe->kind == UN_PROBE_WET;
    bool whole = along || probe->kind == UN_PROBE_FORCE;
    if (probe->kind != UN_PROBE_HEIGHT && probe->kind != UN_PROBE_PRESSURE && probe->axis == 2 &&
        size.z == 0)
        un_place_fail(place, number, "(%s) looks along z, which does not exist in 2D; use x or y",
                      probe->name);
    if (whole || probe->kind == UN_PROBE_FLUX) return;
    for (int a = 0; a < 3; a++)
        if (at[a] < 0 || at[a] > sides[a])
            un_place_fail(place, number,
                          "(%s) lies outside the domain: %c = %g is not between 0 "
                          "and %g",
                          probe->name, "xyz"[a], at[a], sides[a]);
}

static void find_body(const un_place *place, const char *number, const un_scene_def *def,
                      un_probe *probe)
{
    for (int32_t s = 0; s < def->solid_count; s++)
        if (strcmp(def->solids[s].name, probe->body) == 0) {
            probe->solid = s;
            return;
        }
    un_place_fail(place, number,
                  "(%s) is on a solid named \"%s\", and there is none; give one name = \"%s\"",
                  probe->name, probe->body, probe->body);
}

static void read_probes(un_place *place, int t, un_scene *scene)
{
    lua_State *L = place->L;
    un_scene_def *def = &scene->def;
    int list;
    int32_t count = open_list(place, t, "probes", "{ front { axis = \"x\" } }", no_keys, &list);
    if (!list) return;
    if (count) def->probes = new_list(L, scene, count, sizeof *def->probes);
    for (int32_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)i + 1);
        const un_probe_value *value = (un_probe_value *)take_item(
            place, list, i + 1, UN_VALUE_PROBE, "front { ... }, height { ... } or another probe");
        def->probes[i] = value->probe;
        if (value->probe.kind == UN_PROBE_FORCE) find_body(place, number, def, &def->probes[i]);
        for (int32_t other = 0; other < i; other++)
            if (strcmp(def->probes[other].name, value->probe.name) == 0)
                un_place_fail(place, number,
                              "has the name \"%s\" of probes[%d]; give it another: name = "
                              "\"%s2\"",
                              value->probe.name, (int)other + 1, value->probe.name);
        check_inside(place, number, &def->probes[i], def->domain.size);
        def->probe_count = i + 1;
        lua_pop(L, 1);
    }
    un_close_table(place, list);
}

/* "8G", "512M", "1.5T", or a number of bytes. */
static void read_memory(const un_place *place, int t, double *bytes)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, "memory")) return;
    un_description got = un_describe(L, -1);
    if (lua_type(L, -1) == LUA_TSTRING) {
        const char *text = lua_tostring(L, -1);
        static const char units[] = "KMGT";
        char *end = NULL;
        /* strtod alone would take "0x1p3G", "infG" and leading blanks. */
        bool digits = text[0] && strspn(text, "0123456789.") > 0;
        double number = digits ? strtod(text, &end) : 0;
        const char *unit = end && *end ? strchr(units, *end) : NULL;
        if (!digits || !unit || end[1])
            un_place_fail(place, "memory",
                          "must be like \"8G\", \"512M\" or a number of bytes, got "
                          "%s",
                          got.text);
        *bytes = number * pow(1024, (double)(unit - units) + 1);
    } else if (lua_type(L, -1) == LUA_TNUMBER) {
        *bytes = lua_tonumber(L, -1);
    } else {
        un_place_fail(place, "memory", "must be like \"8G\", \"512M\" or a number of bytes, got %s",
                      got.text);
    }
    if (!(*bytes >= 1 << 20 && *bytes <= 1e15))
        un_place_fail(place, "memory", "must be between 1M and 900T, got %s", got.text);
    lua_pop(L, 1);
}

static void read_budget(un_place *place, int t, un_scene *scene)
{
    un_scene_def *def = &scene->def;
    static const char *const keys[] = {"particles", "memory", NULL};
    int budget = un_open_table(place, t, "budget", "{ particles = 2e6, memory = \"8G\" }");
    if (!budget) return;
    un_check_keys(place, budget, keys, false);
    un_read_number(place, budget, "particles", (un_bounds){1, 2e9, false}, &def->budget.particles);
    read_memory(place, budget, &def->budget.memory);
    if (def->budget.particles > 0 && !def->traits->particles) {
        char at[120];
        un_place_show(place, "budget.particles", at, sizeof at);
        un_scene_note(place->L, scene,
                      "%s: budget.particles has no effect with method \"%s\", which has no "
                      "particles; use budget.memory",
                      at, def->method);
    }
    un_close_table(place, budget);
}

static void read_dump(const un_place *place, int t, un_scene_def *def)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, "dump")) return;
    size_t length = 0;
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
    if (!text || length == 0 || strlen(text) != length)
        un_place_fail(place, "dump", "must be the name of a folder in quotes, got %s",
                      un_describe(L, -1).text);
    if (length >= sizeof def->solver.dump)
        un_place_fail(place, "dump", "must be shorter than %d characters",
                      (int)sizeof def->solver.dump);
    memcpy(def->solver.dump, text, length + 1);
    lua_pop(L, 1);
}

static void read_solver(un_place *place, int t, un_scene_def *def)
{
    static const char *const keys[] = {"kind",     "dump",          "dump_every", "tolerance",
                                       "cfl",      "pic",           "surface",    "stress",
                                       "coupling", "suction",       "sheets",     "thickening",
                                       "band",     "interpolation", "maccormack", NULL};
    static const char *const stresses[] = {"full", "split", "laplacian", NULL};
    static const char *const couplings[] = {"flip", "pic", "implicit", NULL};
    static const char *const surfaces[] = {"hulls", "colour", "level-set", NULL};
    static const char *const interpolations[] = {"cubic", "linear", "weno6", NULL};
    int solver = un_open_table(place, t, "solver", "{ kind = \"auto\", tolerance = 1e-4 }");
    if (!solver) return;
    un_check_keys(place, solver, keys, false);
    un_read_word(place, solver, "kind", un_solver_kind_names, NULL, def->solver.kind,
                 sizeof def->solver.kind);
    if (!un_solver_kind_available(un_solver_kind_find(def->solver.kind)))
        un_place_fail(place, "kind",
                      "= \"%s\" is not part of this build; configure it with -DUNDINE_PETSC=ON "
                      "(Debian: libpetsc-real-dev), or use auto",
                      def->solver.kind);
    read_dump(place, solver, def);
    un_read_integer(place, solver, "dump_every", (un_bounds){1, 1e9, false},
                    &def->solver.dump_every);
    un_read_number(place, solver, "tolerance", (un_bounds){1e-12, 0.1, false},
                   &def->solver.tolerance);
    un_read_number(place, solver, "cfl", (un_bounds){0.1, 20, false}, &def->solver.cfl);
    un_read_bool(place, solver, "suction", &def->solver.suction);
    un_read_number(place, solver, "pic", (un_bounds){0, 1e6, false}, &def->solver.pic);
    un_read_number(place, solver, "sheets", (un_bounds){0, 10, false}, &def->solver.sheets);
    un_read_number(place, solver, "band", (un_bounds){0, 50, false}, &def->solver.band);
    un_read_number(place, solver, "thickening", (un_bounds){0, 10, false}, &def->solver.thickening);
    un_read_word(place, solver, "stress", stresses, NULL, def->solver.stress,
                 sizeof def->solver.stress);
    un_read_word(place, solver, "coupling", couplings, NULL, def->solver.coupling,
                 sizeof def->solver.coupling);
    if (strcmp(def->solver.coupling, "implicit") == 0 && !def->traits->faces)
        un_place_fail(place, "coupling",
                      "= \"implicit\" is for velocities on faces; use method = \"staggered\", or "
                      "flip or pic");
    un_read_word(place, solver, "surface", surfaces, NULL, def->solver.surface,
                 sizeof def->solver.surface);
    if (strcmp(def->solver.surface, "level-set") == 0 && !def->traits->warps)
        un_place_fail(place, "surface",
                      "= \"level-set\" is for grids that warp; use method = \"warp\", or colour");
    else if (strcmp(def->solver.surface, "level-set") == 0 && def->fluid.surface_tension > 0)
        un_place_fail(
            place, "surface",
            "= \"level-set\" does not hold still under surface_tension; leave one of them "
            "out");
    un_read_word(place, solver, "interpolation", interpolations, NULL, def->solver.interpolation,
                 sizeof def->solver.interpolation);
    un_read_bool(place, solver, "maccormack", &def->solver.maccormack);
    un_close_table(place, solver);
}

static void read_output(un_place *place, int t, un_scene_def *def)
{
    static const char *const keys[] = {"surface", "particles", "mesh", NULL};
    int output = un_open_table(place, t, "output", "{ surface = true }");
    if (!output) return;
    un_check_keys(place, output, keys, false);
    un_read_bool(place, output, "surface", &def->output.surface);
    un_read_bool(place, output, "particles", &def->output.particles);
    un_read_bool(place, output, "mesh", &def->output.mesh);
    un_close_table(place, output);
}

#define METHODS_MAX 16

/* Of all words that scenes may use one day, the known ones are those with a method. */
static void read_method(un_place *place, int t, un_scene *scene)
{
    static const char *const all[] = {"uniform", "tet",  "staggered", "conforming",
                                      "octree",  "warp", NULL};
    const char *known[METHODS_MAX + 1] = {NULL}, *later[METHODS_MAX + 1] = {NULL};
    const un_traits *const *methods = scene->methods;
    un_scene_def *def = &scene->def;
    int count = 0, missing = 0;
    for (; methods[count] && count < METHODS_MAX; count++) known[count] = methods[count]->name;
    for (int i = 0; all[i]; i++) {
        bool there = false;
        for (int k = 0; k < count; k++) there |= strcmp(known[k], all[i]) == 0;
        if (!there) later[missing++] = all[i];
    }
    un_read_word(place, t, "method", known, later, def->method, sizeof def->method);
    for (int k = 0; k < count; k++)
        if (strcmp(known[k], def->method) == 0) def->traits = methods[k];
}

void un_read_scene(lua_State *L, un_scene *scene)
{
    static const char *const keys[] = {"method", "domain", "detail",  "frames", "gravity", "fluid",
                                       "liquid", "solids", "sources", "sizing", "probes",  "budget",
                                       "solver", "output", "render",  NULL};
    const un_sandbox *s = un_sandbox_of(L);
    un_scene_def *def = &scene->def;
    un_place root = {.L = L, .root = "scene", .line = s->scene_line}, *place = &root;
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->scene_ref);
    const int t = 1;
    un_check_keys(place, t, keys, false);
    read_method(place, t, scene);
    read_domain(place, t, def);
    un_check_flat(L);
    check_dim(place, scene);
    un_read_point(place, t, "gravity", &def->gravity, NULL);
    if (un_length(def->gravity) > 1e4)
        un_place_fail(place, "gravity", "must be at most 1e4 m/s2 strong, got %g",
                      un_length(def->gravity));
    check_in_plane(place, "gravity", def, def->gravity);
    read_detail(place, t, def);
    read_frames(place, t, def);
    un_read_fluid(place, t, def);
    read_budget(place, t, scene);
    read_solver(place, t, def);
    un_read_sizing(place, t, scene);
    read_output(place, t, def);
    un_read_render(place, t, def);
    read_liquid(place, t, scene);
    read_solids(place, t, scene);
    read_sources(place, t, scene);
    read_probes(place, t, scene); /* after the solids they are on */
    if (def->solver.pic < 0) def->solver.pic = un_scene_pic(def);
    bool pours = false;
    for (int32_t i = 0; i < def->source_count; i++)
        pours |= def->sources[i].kind == UN_SOURCE_EMITTER;
    if (!def->liquid.shape && !pours)
        un_place_say(
            place, NULL,
            "the scene has no liquid; add liquid = { box { ... } } or an emitter to sources");
}
