/* What a scene file can call: shapes, sources and scene itself; probes are in probes.c.
 *
 * Constructors check their table at once, so that errors name the line of the call, and return a
 * description; shapes are made from it when the whole scene is known (build.c). */
#include "scene/loader.h"

#include <stdio.h>

#define VALUE_TYPE "undine value"
/* Deeper or costlier shapes would exhaust the stack or take too long. */
#define DEPTH_MAX 200
#define COST_MAX 100000

#define SOLID_KEYS                                                                                 \
    "velocity", "pose", "friction", "slip", "contact_angle", "density", "spin", "restitution",     \
        "hold", "name", "material"

un_value *un_value_at(lua_State *L, int index)
{
    return luaL_testudata(L, index, VALUE_TYPE);
}

/* The registry's name for the constructors. */
#define CONSTRUCTORS "undine constructors"

void *un_value_new(lua_State *L, size_t size, un_value_tag tag, const un_place *place)
{
    un_value *value = lua_newuserdatauv(L, size, UN_VALUE_TABLE);
    memset(value, 0, size);
    *value = (un_value){tag, place->line, place->root};
    luaL_setmetatable(L, VALUE_TYPE);
    if (lua_istable(L, 1)) {
        lua_pushvalue(L, 1);
        lua_setiuservalue(L, -2, UN_VALUE_TABLE);
    }
    return value;
}

bool un_value_remake(lua_State *L, int index)
{
    const un_value *value = un_value_at(L, index);
    int32_t line = value->line;
    lua_getfield(L, LUA_REGISTRYINDEX, CONSTRUCTORS);
    lua_getfield(L, -1, value->kind);
    lua_remove(L, -2);
    lua_insert(L, -2);
    int lua_status = lua_pcall(L, 1, 1, 0);
    if (lua_status != LUA_OK) {
        un_sandbox_check_final(L, lua_status);
        return false;
    }
    un_value_at(L, -1)->line = line;
    return true;
}

void un_check_argument(const un_place *place, const char *usage)
{
    lua_State *L = place->L;
    if (lua_type(L, 1) != LUA_TTABLE)
        un_place_fail(place, NULL, "needs a table, as in %s, got %s", usage,
                      un_describe(L, 1).text);
    if (lua_gettop(L) > 1)
        un_place_fail(place, NULL, "takes one table, as in %s, got %d arguments", usage,
                      lua_gettop(L));
}

_Noreturn void un_place_missing(const un_place *place, const char *key, const char *usage)
{
    un_place_fail(place, NULL, "needs %s, as in %s", key, usage);
}

un_vec3 un_need_point(const un_place *place, const char *key, const char *usage)
{
    un_vec3 value;
    if (!un_read_point(place, 1, key, &value, NULL)) un_place_missing(place, key, usage);
    return value;
}

static double need_length(const un_place *place, const char *key, const char *usage)
{
    double value;
    if (!un_read_number(place, 1, key, (un_bounds){0, 1e9, true}, &value))
        un_place_missing(place, key, usage);
    return value;
}

bool un_read_name(const un_place *place, char *name, size_t size)
{
    lua_State *L = place->L;
    if (!un_get_field(place, 1, "name")) return false;
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t length = 0;
    const char *word = "";
    if (lua_type(L, -1) == LUA_TSTRING) word = lua_tolstring(L, -1, &length);
    if (length == 0 || length >= size || strspn(word, allowed) != length)
        un_place_fail(place, "name",
                      "must be a short word in quotes of letters, digits, _ . and -, got %s",
                      un_describe(L, -1).text);
    snprintf(name, size, "%s", word);
    lua_pop(L, 1);
    return true;
}

/* ---- shapes ---- */

/* Pushes a new node with the properties that the table gives it as a solid. */
static un_node *new_node(const un_place *place, un_node_kind kind, bool from_table)
{
    static const char *const materials[] = {"matte", "glass", NULL};
    lua_State *L = place->L;
    un_node *node = un_value_new(L, sizeof *node, UN_VALUE_SHAPE, place);
    int index = lua_gettop(L);
    node->kind = kind;
    node->depth = 1;
    node->cost = 1;
    if (!from_table) return node;
    node->has_velocity = un_read_point(place, 1, "velocity", &node->velocity, NULL);
    node->has_friction =
        un_read_number(place, 1, "friction", (un_bounds){0, 1, false}, &node->friction);
    node->has_slip = un_read_slip(place, 1, "slip", &node->slip);
    node->has_contact_angle =
        un_read_number(place, 1, "contact_angle", UN_CONTACT_RANGE, &node->contact_angle);
    un_read_name(place, node->name, sizeof node->name);
    un_read_word(place, 1, "material", materials, NULL, node->material, sizeof node->material);
    un_read_body(place, node);
    if (un_get_field(place, 1, "pose")) {
        if (!lua_isfunction(L, -1))
            un_place_fail(
                place, "pose",
                "must be a function, as in function(t) return { by = {t, 0, 0} } end, got "
                "%s",
                un_describe(L, -1).text);
        if (node->has_velocity)
            un_place_fail(place, "pose", "and velocity exclude each other; keep one of them");
        lua_setiuservalue(L, index, 2);
        node->has_pose = true;
    }
    return node;
}

/* min and max of a box or a field. */
static void read_corners(const un_place *place, un_node *node, const char *usage)
{
    bool flat = false;
    if (!un_read_point(place, 1, "min", &node->a, &node->flat))
        un_place_missing(place, "min", usage);
    if (!un_read_point(place, 1, "max", &node->b, &flat)) un_place_missing(place, "max", usage);
    if (flat != node->flat) un_place_fail(place, "max", "must have as many numbers as min");
    if (flat) {
        if (!(node->a.x < node->b.x && node->a.y < node->b.y))
            un_place_fail(place, "max",
                          "must be above min along x and y, got min = {%g, %g}, max = {%g, %g}",
                          node->a.x, node->a.y, node->b.x, node->b.y);
        return;
    }
    if (!(node->a.x < node->b.x && node->a.y < node->b.y && node->a.z < node->b.z))
        un_place_fail(place, "max",
                      "must be above min along x, y and z, got min = {%g, %g, %g}, max = {%g, %g, "
                      "%g}",
                      node->a.x, node->a.y, node->a.z, node->b.x, node->b.y, node->b.z);
}

static int make_box(lua_State *L)
{
    static const char usage[] = "box { min = {0, 0, 0}, max = {1, 1, 1} }";
    static const char *const keys[] = {"min", "max", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "box");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_node *node = new_node(&place, UN_NODE_BOX, true);
    read_corners(&place, node, usage);
    return 1;
}

static int make_sphere(lua_State *L)
{
    static const char usage[] = "sphere { center = {0.5, 0.5, 0.5}, radius = 0.1 }";
    static const char *const keys[] = {"center", "radius", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "sphere");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_node *node = new_node(&place, UN_NODE_SPHERE, true);
    node->a = un_need_point(&place, "center", usage);
    node->radius = need_length(&place, "radius", usage);
    return 1;
}

static int make_rod(lua_State *L, un_node_kind kind, const char *name, const char *usage)
{
    static const char *const keys[] = {"from", "to", "radius", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, name);
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_node *node = new_node(&place, kind, true);
    node->a = un_need_point(&place, "from", usage);
    node->b = un_need_point(&place, "to", usage);
    node->radius = need_length(&place, "radius", usage);
    if (!(un_length(un_sub(node->b, node->a)) > 0))
        un_place_fail(&place, "to", "must be another point than from");
    return 1;
}

static int make_cylinder(lua_State *L)
{
    return make_rod(L, UN_NODE_CYLINDER, "cylinder",
                    "cylinder { from = {0, 0, 0}, to = {0, 1, 0}, radius = 0.1 }");
}

static int make_capsule(lua_State *L)
{
    return make_rod(L, UN_NODE_CAPSULE, "capsule",
                    "capsule { from = {0, 0, 0}, to = {0, 1, 0}, radius = 0.1 }");
}

static int make_torus(lua_State *L)
{
    static const char usage[] =
        "torus { center = {0, 0, 0}, axis = {0, 1, 0}, radius = 0.3, tube = "
        "0.1 }";
    static const char *const keys[] = {"center", "axis", "radius", "tube", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "torus");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_node *node = new_node(&place, UN_NODE_TORUS, true);
    node->a = un_need_point(&place, "center", usage);
    node->b = un_v3(0, 1, 0);
    un_read_vec3(&place, 1, "axis", &node->b);
    node->radius = need_length(&place, "radius", usage);
    node->tube = need_length(&place, "tube", usage);
    if (!(un_length(node->b) > 0)) un_place_fail(&place, "axis", "must not be zero");
    if (node->tube >= node->radius)
        un_place_fail(&place, "tube", "must be below radius = %g, got %g", node->radius,
                      node->tube);
    return 1;
}

static int make_plane(lua_State *L)
{
    static const char usage[] = "plane { point = {0, 0.1, 0}, normal = {0, 1, 0} }";
    static const char *const keys[] = {"point", "normal", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "plane");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_node *node = new_node(&place, UN_NODE_PLANE, true);
    node->a = un_need_point(&place, "point", usage);
    node->b = un_need_point(&place, "normal", usage);
    if (!(un_length(node->b) > 0)) un_place_fail(&place, "normal", "must not be zero");
    return 1;
}

static int make_mesh(lua_State *L)
{
    static const char usage[] = "mesh { file = \"ship.ply\" }";
    static const char *const keys[] = {"file", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "mesh");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    new_node(&place, UN_NODE_MESH, true);
    if (!un_get_field(&place, 1, "file")) un_place_missing(&place, "file", usage);
    size_t length = 0;
    if (lua_type(L, -1) == LUA_TSTRING) lua_tolstring(L, -1, &length);
    if (length == 0 || strlen(lua_tostring(L, -1)) != length)
        un_place_fail(&place, "file", "must be the name of a file in quotes, got %s",
                      un_describe(L, -1).text);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

/* min and max of a field: both or none. */
static void read_bounds(const un_place *place, un_node *node)
{
    node->has_bounds = un_get_field(place, 1, "min");
    if (un_get_field(place, 1, "max") != node->has_bounds)
        un_place_fail(place, NULL, "needs both min and max, or none of them");
    if (!node->has_bounds) return;
    lua_pop(place->L, 2);
    read_corners(place, node, "");
}

static int make_field(lua_State *L)
{
    static const char usage[] =
        "field(function(x, y, z) return y - 0.1 end), with negative values inside";
    static const char *const keys[] = {"min", "max", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "field");
    bool from_table = lua_istable(L, 1);
    if (from_table) un_check_keys(&place, 1, keys, true);
    un_node *node = new_node(&place, UN_NODE_FIELD, from_table);
    if (from_table) read_bounds(&place, node);
    if (from_table)
        lua_rawgeti(L, 1, 1);
    else
        lua_pushvalue(L, 1);
    if (!lua_isfunction(L, -1) || (from_table && lua_rawlen(L, 1) > 1))
        un_place_fail(&place, NULL, "needs one function, as in %s, got %s", usage,
                      un_describe(L, -1).text);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

/* Checks the shape at index as a part of another one: `what` names it in messages. */
static const un_node *check_part(const un_place *place, int index, const char *what)
{
    lua_State *L = place->L;
    const un_value *value = un_value_at(L, index);
    if (!value || value->tag != UN_VALUE_SHAPE)
        un_place_fail(place, NULL, "needs shapes, such as sphere { ... }, but %s is %s", what,
                      un_describe(L, index).text);
    const un_node *part = (const un_node *)value;
    if (part->kind == UN_NODE_SOLID || part->has_velocity || part->has_pose || part->has_friction ||
        part->has_slip || part->has_contact_angle || part->has_body || *part->material)
        un_place_fail(
            place, NULL,
            "cannot hold %s with velocity, pose, friction, slip, contact_angle, density or "
            "material of its own; give them to the whole",
            un_describe(L, index).text);
    return part;
}

static void add_part(const un_place *place, un_node *node, const un_node *part)
{
    if (node->part_count == 0) node->cost = 0;
    node->part_count++;
    node->cost += part->cost;
    if (part->depth + 1 > node->depth) node->depth = part->depth + 1;
    if (node->depth > DEPTH_MAX)
        un_place_fail(place, NULL,
                      "nests shapes more than %d deep; collect the parts in a table and join them "
                      "once, as in union(parts)",
                      DEPTH_MAX);
    if (node->cost > COST_MAX)
        un_place_fail(place, NULL, "holds more than %d shapes; use fewer, or a mesh", COST_MAX);
}

static int combine(lua_State *L, un_node_kind kind, const char *name, const char *usage)
{
    static const char *const keys[] = {SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, name);
    bool from_table = lua_istable(L, 1);
    if (from_table) {
        un_check_argument(&place, usage);
        un_check_keys(&place, 1, keys, true);
    } else {
        int count = lua_gettop(L);
        lua_createtable(L, count, 0);
        lua_insert(L, 1);
        for (int i = count; i >= 1; i--) lua_rawseti(L, 1, i);
    }
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    if (count == 0) un_place_fail(&place, NULL, "needs shapes, as in %s", usage);
    un_node *node = new_node(&place, kind, from_table);
    lua_createtable(L, (int)un_min64(count, COST_MAX), 0);
    for (lua_Integer i = 1; i <= count; i++) {
        char what[32];
        snprintf(what, sizeof what, "part %d", (int)i);
        lua_rawgeti(L, 1, i);
        add_part(&place, node, check_part(&place, -1, what));
        lua_rawseti(L, -2, i);
    }
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static int make_union(lua_State *L)
{
    return combine(L, UN_NODE_UNION, "union", "union { sphere { ... }, box { ... } }");
}

static int make_intersect(lua_State *L)
{
    return combine(L, UN_NODE_INTERSECT, "intersect", "intersect { sphere { ... }, box { ... } }");
}

static int make_subtract(lua_State *L)
{
    return combine(L, UN_NODE_SUBTRACT, "subtract", "subtract { box { ... }, sphere { ... } }");
}

/* Pushes the one shape of the table, given first or as shape = ... */
static const un_node *take_shape(const un_place *place, const char *usage)
{
    lua_State *L = place->L;
    lua_Integer items = (lua_Integer)lua_rawlen(L, 1);
    bool named = un_get_field(place, 1, "shape");
    if (items + named != 1)
        un_place_fail(place, NULL, "needs one shape, as in %s, got %d", usage,
                      (int)(items + named));
    if (!named) lua_rawgeti(L, 1, 1);
    return check_part(place, -1, "its shape");
}

/* Makes the shape on top of the stack the only part of the node below it. */
static void set_part(const un_place *place, un_node *node, const un_node *part)
{
    lua_State *L = place->L;
    add_part(place, node, part);
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_setiuservalue(L, -2, 1);
}

static void read_rotation(const un_place *outer, int t, un_pose *pose)
{
    static const char *const keys[] = {"axis", "angle", NULL};
    lua_State *L = outer->L;
    un_place place = *outer;
    if (!un_get_field(&place, t, "rotate")) return;
    bool list = lua_istable(L, -1) && lua_rawlen(L, -1) > 0;
    lua_pop(L, 1);
    un_vec3 angles;
    if (list) {
        un_read_vec3(&place, t, "rotate", &angles);
        *pose = un_pose_euler(angles);
        return;
    }
    int rotate = un_open_table(&place, t, "rotate",
                               "{0, 90, 0} (degrees) or { axis = {0, 1, 0}, angle = 90 }");
    un_vec3 axis;
    double angle;
    un_check_keys(&place, rotate, keys, false);
    if (!un_read_vec3(&place, rotate, "axis", &axis) ||
        !un_read_number(&place, rotate, "angle", (un_bounds){-1e9, 1e9, false}, &angle))
        un_place_fail(&place, NULL,
                      "needs three angles {x, y, z} in degrees, or axis and angle, as in { axis = "
                      "{0, 1, 0}, angle = 90 }");
    if (!(un_length(axis) > 0)) un_place_fail(&place, "axis", "must not be zero");
    *pose = un_pose_axis(axis, angle);
    un_close_table(&place, rotate);
}

/* x -> by + about + scale R (x - about) */
void un_read_motion(const un_place *place, int t, bool with_scale, un_pose *pose)
{
    un_vec3 by = {0, 0, 0}, about = {0, 0, 0};
    *pose = un_pose_identity();
    read_rotation(place, t, pose);
    un_read_point(place, t, "by", &by, NULL);
    un_read_point(place, t, "about", &about, NULL);
    if (with_scale) un_read_number(place, t, "scale", (un_bounds){0, 1e9, true}, &pose->scale);
    un_vec3 turned = un_scale(un_pose_rotate(pose, about), pose->scale);
    pose->translation = un_add(by, un_sub(about, turned));
}

static int make_move(lua_State *L)
{
    static const char usage[] = "move { sphere { ... }, by = {1, 0, 0} }";
    static const char *const keys[] = {"shape", "by", "rotate", "about", "scale", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "move");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, true);
    un_node *node = new_node(&place, UN_NODE_MOVE, true);
    un_read_motion(&place, 1, true, &node->pose);
    set_part(&place, node, take_shape(&place, usage));
    return 1;
}

static int make_solid(lua_State *L)
{
    static const char usage[] = "solid { sphere { ... }, friction = 0.5 }";
    static const char *const keys[] = {"shape", SOLID_KEYS, NULL};
    un_place place = un_place_of_caller(L, "solid");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, true);
    un_node *node = new_node(&place, UN_NODE_SOLID, true);
    set_part(&place, node, take_shape(&place, usage));
    return 1;
}

/* ---- sources ---- */

static int make_source(lua_State *L, un_source_kind kind)
{
    static const char *const emitter_keys[] = {"shape", "velocity", "flow",      "from",
                                               "to",    "density",  "viscosity", NULL};
    static const char *const drain_keys[] = {"shape", "from", "to", NULL};
    bool emits = kind == UN_SOURCE_EMITTER;
    const char *usage = emits ? "emitter { shape = sphere { ... }, velocity = {1, 0, 0} }"
                              : "drain { shape = box { ... } }";
    un_place place = un_place_of_caller(L, emits ? "emitter" : "drain");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, emits ? emitter_keys : drain_keys, true);
    un_source_value *value = un_value_new(L, sizeof *value, UN_VALUE_SOURCE, &place);
    int index = lua_gettop(L);
    un_source *source = &value->source;
    source->kind = kind;
    source->to = INFINITY;
    un_read_point(&place, 1, "velocity", &source->velocity, NULL);
    if (un_read_number(&place, 1, "flow", (un_bounds){0, 1e12, true}, &source->flow) &&
        !(un_length(source->velocity) > 0))
        un_place_fail(&place, "flow",
                      "needs a velocity for its direction, as in flow = %g, velocity = {0, -1, 0}; "
                      "the speed is found from the flow",
                      source->flow);
    if (emits) un_read_emitted(&place, 1, source);
    un_read_number(&place, 1, "from", (un_bounds){0, 1e9, false}, &source->from);
    /* math.huge is the same as leaving it out. */
    bool forever = un_get_field(&place, 1, "to") && lua_type(L, -1) == LUA_TNUMBER &&
                   lua_tonumber(L, -1) == INFINITY;
    if (!forever) un_read_number(&place, 1, "to", (un_bounds){0, 1e9, false}, &source->to);
    if (source->to <= source->from)
        un_place_fail(&place, "to", "must be later than from = %g, got %g", source->from,
                      source->to);
    take_shape(&place, usage);
    lua_setiuservalue(L, index, 1);
    lua_settop(L, index);
    return 1;
}

static int make_emitter(lua_State *L)
{
    return make_source(L, UN_SOURCE_EMITTER);
}

static int make_drain(lua_State *L)
{
    return make_source(L, UN_SOURCE_DRAIN);
}

/* ---- scene ---- */

static int take_scene(lua_State *L)
{
    un_sandbox *s = un_sandbox_of(L);
    un_place place = un_place_of_caller(L, "scene");
    un_check_argument(&place, "scene { domain = { ... }, liquid = { ... } }");
    if (s->scene_ref != LUA_NOREF)
        un_place_say(&place, NULL,
                     "scene is called a second time, after line %d; a file describes one scene",
                     (int)s->scene_line);
    s->scene_line = place.line;
    s->scene_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

void un_values_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"box", make_box},
        {"sphere", make_sphere},
        {"cylinder", make_cylinder},
        {"capsule", make_capsule},
        {"torus", make_torus},
        {"plane", make_plane},
        {"mesh", make_mesh},
        {"field", make_field},
        {"union", make_union},
        {"intersect", make_intersect},
        {"subtract", make_subtract},
        {"move", make_move},
        {"solid", make_solid},
        {"emitter", make_emitter},
        {"drain", make_drain},
        {"scene", take_scene},
        {NULL, NULL},
    };
    luaL_newmetatable(L, VALUE_TYPE);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pushglobaltable(L);
    luaL_setfuncs(L, functions, 0);
    luaL_setfuncs(L, un_probe_functions, 0);
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    luaL_setfuncs(L, un_probe_functions, 0);
    lua_setfield(L, LUA_REGISTRYINDEX, CONSTRUCTORS);
    lua_settop(L, 0);
}
