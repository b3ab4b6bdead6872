/* Probes as a scene file calls them: front, wet, height, pressure, velocity, flux, force. */
#include "scene/loader.h"

#include <stdio.h>

/* Names are column heads of probes.csv, next to "time". */
static void name_probe(const un_place *place, un_probe_value *value)
{
    char *name = value->probe.name;
    if (!un_read_name(place, name, sizeof value->probe.name))
        snprintf(name, sizeof value->probe.name, "%s", place->root);
    if (strcmp(name, "time") == 0)
        un_place_fail(place, "name", "= \"time\" is taken by the first column; choose another");
}

/* A probe along an axis of the domain. */
static un_probe *new_axis_probe(lua_State *L, const un_place *place, un_probe_kind kind)
{
    static const char *const axes[] = {"x", "y", "z", "-x", "-y", "-z", NULL};
    un_probe_value *value = un_value_new(L, sizeof *value, UN_VALUE_PROBE, place);
    char axis[4] = "x";
    un_read_word(place, 1, "axis", axes, NULL, axis, sizeof axis);
    value->probe.kind = kind;
    value->probe.sign = axis[0] == '-' ? -1 : 1;
    value->probe.axis = axis[axis[0] == '-'] - 'x';
    name_probe(place, value);
    return &value->probe;
}

static int make_front(lua_State *L)
{
    static const char *const keys[] = {"axis", "name", NULL};
    un_place place = un_place_of_caller(L, "front");
    un_check_argument(&place, "front { axis = \"x\" }");
    un_check_keys(&place, 1, keys, false);
    new_axis_probe(L, &place, UN_PROBE_FRONT);
    return 1;
}

static int make_wet(lua_State *L)
{
    static const char *const keys[] = {"axis", "name", NULL};
    un_place place = un_place_of_caller(L, "wet");
    un_check_argument(&place, "wet { axis = \"x\" }");
    un_check_keys(&place, 1, keys, false);
    new_axis_probe(L, &place, UN_PROBE_WET);
    return 1;
}

static int make_height(lua_State *L)
{
    static const char usage[] = "height { at = {x, z} }";
    static const char *const keys[] = {"at", "name", NULL};
    un_place place = un_place_of_caller(L, "height");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_probe_value *value = un_value_new(L, sizeof *value, UN_VALUE_PROBE, &place);
    double at[2] = {0, 0};
    if (!un_get_field(&place, 1, "at")) un_place_missing(&place, "at", usage);
    bool flat = lua_istable(L, -1) && lua_rawlen(L, -1) == 1;
    lua_pop(L, 1);
    if (flat) un_need_flat(&place, "at", 1);
    un_read_numbers(&place, 1, "at", flat ? 1 : 2, at);
    value->probe.kind = UN_PROBE_HEIGHT;
    value->probe.at = un_v3(at[0], 0, at[1]);
    name_probe(&place, value);
    return 1;
}

static int make_pressure(lua_State *L)
{
    static const char usage[] = "pressure { at = {x, y, z} }";
    static const char *const keys[] = {"at", "name", NULL};
    un_place place = un_place_of_caller(L, "pressure");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_probe_value *value = un_value_new(L, sizeof *value, UN_VALUE_PROBE, &place);
    value->probe.kind = UN_PROBE_PRESSURE;
    value->probe.at = un_need_point(&place, "at", usage);
    name_probe(&place, value);
    return 1;
}

/* "x", "y" or "z"; false: there is none. */
static bool read_axis(const un_place *place, int32_t *axis)
{
    static const char *const axes[] = {"x", "y", "z", NULL};
    char word[4];
    if (!un_read_word(place, 1, "axis", axes, NULL, word, sizeof word)) return false;
    *axis = word[0] - 'x';
    return true;
}

static int make_velocity(lua_State *L)
{
    static const char usage[] = "velocity { at = {x, y, z}, axis = \"x\" }";
    static const char *const keys[] = {"at", "axis", "name", NULL};
    un_place place = un_place_of_caller(L, "velocity");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_probe_value *value = un_value_new(L, sizeof *value, UN_VALUE_PROBE, &place);
    value->probe.kind = UN_PROBE_VELOCITY;
    value->probe.at = un_need_point(&place, "at", usage);
    if (!read_axis(&place, &value->probe.axis)) value->probe.axis = -1;
    name_probe(&place, value);
    return 1;
}

static int make_flux(lua_State *L)
{
    static const char usage[] = "flux { min = {0.5, 0, 0}, max = {0.5, 1, 1} }";
    static const char *const keys[] = {"min", "max", "name", NULL};
    un_place place = un_place_of_caller(L, "flux");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_probe_value *value = un_value_new(L, sizeof *value, UN_VALUE_PROBE, &place);
    un_probe *probe = &value->probe;
    probe->kind = UN_PROBE_FLUX;
    probe->at = un_need_point(&place, "min", usage);
    probe->to = un_need_point(&place, "max", usage);
    const double side[3] = {probe->to.x - probe->at.x, probe->to.y - probe->at.y,
                            probe->to.z - probe->at.z};
    int same = 0;
    for (int a = 2; a >= 0; a--) {
        if (side[a] < 0) un_place_fail(&place, "max", "must not be below min");
        if (side[a] != 0) continue;
        if (a < 2 || same == 0) probe->axis = a; /* in 2D z is 0 for both */
        same++;
    }
    if (same == 0 || same > 2)
        un_place_fail(&place, NULL, "needs a rectangle across an axis, as in %s", usage);
    name_probe(&place, value);
    return 1;
}

static int make_force(lua_State *L)
{
    static const char usage[] = "force { body = \"gate\", axis = \"x\" }";
    static const char *const keys[] = {"body", "axis", "name", NULL};
    un_place place = un_place_of_caller(L, "force");
    un_check_argument(&place, usage);
    un_check_keys(&place, 1, keys, false);
    un_probe_value *value = un_value_new(L, sizeof *value, UN_VALUE_PROBE, &place);
    value->probe.kind = UN_PROBE_FORCE;
    value->probe.axis = 1;
    read_axis(&place, &value->probe.axis);
    if (!un_get_field(&place, 1, "body")) un_place_missing(&place, "body", usage);
    if (lua_type(L, -1) != LUA_TSTRING)
        un_place_fail(&place, "body", "must be the name of a solid in quotes, got %s",
                      un_describe(L, -1).text);
    snprintf(value->probe.body, sizeof value->probe.body, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    name_probe(&place, value);
    return 1;
}

const luaL_Reg un_probe_functions[] = {
    {"front", make_front},       {"wet", make_wet},
    {"height", make_height},     {"pressure", make_pressure},
    {"velocity", make_velocity}, {"flux", make_flux},
    {"force", make_force},       {NULL, NULL},
};
