/* Values from outside the file: --set key.sub=value, and the last lines of a saved scene. */
#include "scene/loader.h"

#include <ctype.h>
#include <stdio.h>

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

static void apply(lua_State *L, const char *override, int t)
{
    size_t length = key_length(override);
    if (override[length] != '=') fail(L, override, "no value; write key=value");
    lua_pushvalue(L, t);
    const char *key = override;
    for (;;) {
        luaL_checkstack(L, 12, NULL);
        size_t n = strcspn(key, ".=");
        if (!is_name(key, n)) fail(L, override, "no key; write key=value, as in detail.finest=64");
        lua_pushlstring(L, key, n);
        key += n;
        if (*key++ == '=') break;
        lua_pushvalue(L, -1);
        int type = lua_rawget(L, -3);
        if (type == LUA_TNIL) {
            lua_pop(L, 1);
            lua_newtable(L);
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, -5);
        } else if (type != LUA_TTABLE) {
            fail(L, override, lua_pushfstring(L, "%s holds no keys", lua_tostring(L, -2)));
        }
    }
    int table = lua_gettop(L) - 1;
    push_value(L, override, key);
    lua_pushvalue(L, table + 1);
    lua_insert(L, -2);
    lua_rawset(L, table);
}

void un_apply_overrides(lua_State *L, const un_scene *scene, int t)
{
    for (int32_t i = 0; i < scene->override_count; i++) {
        apply(L, scene->overrides[i], t);
        lua_settop(L, t);
    }
}
