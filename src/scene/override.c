/* Values from outside the file: --set key.sub=value, and the last lines of a saved scene. */
#include "scene/loader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static size_t key_length(const char *override)
{
    return strcspn(override, "=");
}

const char *un_override_below(const un_scene *scene, const char *path)
{
    size_t n = strlen(path);
    for (int32_t i = scene->override_count - 1; i >= 0 && n; i--)
        if (strncmp(scene->overrides[i], path, n) == 0 && scene->overrides[i][n] == '.')
            return scene->overrides[i];
    return NULL;
}

const char *un_override_of(const un_scene *scene, const char *path)
{
    const char *found = NULL; /* the last one wins */
    for (int32_t i = 0; i < scene->override_count; i++) {
        size_t n = key_length(scene->overrides[i]);
        if (strncmp(scene->overrides[i], path, n) == 0 && (path[n] == 0 || path[n] == '.'))
            found = scene->overrides[i];
    }
    return found;
}

static _Noreturn void fail(lua_State *L, const char *override, const char *text)
{
    char clean[80];
    un_clean_text(clean, sizeof clean, override, strlen(override));
    lua_pushfstring(L, "--set %s: %s", clean, text);
    lua_error(L);
    __builtin_unreachable();
}

static bool is_name(const char *text, size_t length)
{
    if (length == 0 || isdigit((unsigned char)text[0])) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
    return true;
}

/* Words that are not Lua, like 8G, or that would be undefined names, like uniform, are strings. */
static bool is_word(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_.-+", *text)) return false;
    return true;
}

/* out/systems is not Lua; 1/2 and math.pi/2 are, and never get here. */
static bool is_path(const char *text)
{
    if (!strchr(text, '/')) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_.-+/", *text)) return false;
    return true;
}

static bool is_constant(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "nil") == 0;
}

/* Pushes the value of the text after '='. */
static void push_value(lua_State *L, const char *override, const char *text)
{
    if (!*text) fail(L, override, "no value; write key=value");
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c)) fail(L, override, "the value must be one line of text");
    if (un_lines_find_name(text, "_ENV")) fail(L, override, "_ENV is not available");
    if (is_name(text, strlen(text)) && !is_constant(text)) {
        lua_pushstring(L, text);
        return;
    }
    const char *chunk = lua_pushfstring(L, "return %s", text);
    if (luaL_loadbufferx(L, chunk, strlen(chunk), "=" UN_OVERRIDE_NAME, "t") != LUA_OK) {
        if (is_word(text) || is_path(text)) {
            lua_pushstring(L, text);
            return;
        }
        const char *reason = lua_tostring(L, -1);
        const char *after = strstr(reason, ": ");
        fail(L, override, lua_pushfstring(L, "not a Lua value: %s", after ? after + 2 : reason));
    }
    int lua_status = lua_pcall(L, 0, 1, 0);
    if (lua_status != LUA_OK) {
        un_sandbox_check_final(L, lua_status);
        if (is_path(text)) {
            lua_pushstring(L, text);
            return;
        }
        const char *reason = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "error";
        const char *after = strncmp(reason, UN_OVERRIDE_NAME ":", strlen(UN_OVERRIDE_NAME) + 1) == 0
                                ? strstr(reason, ": ")
                                : NULL;
        fail(L, override, lua_pushfstring(L, "%s", after ? after + 2 : reason));
    }
}

/* Pushes the next part of a key, a name or the number of an entry as in solids[1], and moves on. */
static void push_part(lua_State *L, const char *override, const char **key)
{
    if (**key == '[') {
        char *end;
        long number = strtol(*key + 1, &end, 10);
        if (*end != ']' || !strchr(".[=", end[1]) || number < 1)
            fail(L, override, "no entry; write solids[1].friction=0.2, counting from 1");
        lua_pushinteger(L, number);
        *key = end + 1;
    } else {
        size_t n = strcspn(*key, ".[=");
        if (!is_name(*key, n)) fail(L, override, "no key; write key=value, as in detail.finest=64");
        lua_pushlstring(L, *key, n);
        *key += n;
    }
    if (**key == '.') ++*key;
}

/* Pushes a copy of the table that the value at index was made from. */
static void push_table_of(lua_State *L, int index)
{
    lua_getiuservalue(L, index, UN_VALUE_TABLE);
    int from = lua_gettop(L);
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, from);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, from + 1);
    }
    lua_remove(L, from);
}

/* Sets what `key` names inside the value on top of the stack, and leaves the result in its place: a
 * table is changed, a shape, source or probe made once more from its changed table. */
static void set_inside(lua_State *L, const char *override, const char *key, const char *path)
{
    luaL_checkstack(L, 16, NULL);
    int index = lua_gettop(L);
    bool made = un_value_at(L, index) != NULL;
    if (made) {
        if (lua_getiuservalue(L, index, UN_VALUE_TABLE) != LUA_TTABLE)
            fail(L, override, lua_pushfstring(L, "%s holds no keys", path));
        lua_pop(L, 1);
        push_table_of(L, index);
    } else if (lua_istable(L, index)) {
        lua_pushvalue(L, index);
    } else {
        fail(L, override, lua_pushfstring(L, "%s holds no keys", path));
    }
    int table = lua_gettop(L);
    push_part(L, override, &key);
    bool entry = lua_isinteger(L, table + 1);
    if (entry)
        lua_pushfstring(L, "%s[%I]", path, lua_tointeger(L, table + 1));
    else
        lua_pushvalue(L, table + 1);
    const char *part = lua_tostring(L, table + 2);
    lua_pushvalue(L, table + 1);
    int type = lua_rawget(L, table);
    if (entry && type == LUA_TNIL)
        fail(L, override, lua_pushfstring(L, "%s has %d entries", path, (int)lua_rawlen(L, table)));
    if (*key == '=') {
        lua_pop(L, 1);
        push_value(L, override, key + 1);
    } else {
        if (type == LUA_TNIL) {
            lua_pop(L, 1);
            lua_newtable(L);
        }
        set_inside(L, override, key, part);
    }
    lua_pushvalue(L, table + 1);
    lua_insert(L, -2);
    lua_rawset(L, table);
    lua_settop(L, table);
    if (made && !un_value_remake(L, index)) {
        const char *reason = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "error";
        const char *after = strstr(reason, ": ");
        fail(L, override, lua_pushfstring(L, "%s", after ? after + 2 : reason));
    }
    lua_replace(L, index);
    lua_settop(L, index);
}

static void apply(lua_State *L, const char *override, int t)
{
    size_t length = key_length(override);
    if (override[length] != '=') fail(L, override, "no value; write key=value");
    lua_pushvalue(L, t);
    set_inside(L, override, override, "scene");
}

void un_apply_overrides(lua_State *L, const un_scene *scene, int t)
{
    for (int32_t i = 0; i < scene->override_count; i++) {
        apply(L, scene->overrides[i], t);
        lua_settop(L, t);
    }
}
