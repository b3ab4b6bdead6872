/* The libraries base, math, string and table as a scene file may use them.
 *
 * Functions that reach files, bytecode or the collector are removed. Functions that could run for
 * very long inside C, where no instruction is counted, are wrapped: patterns that may backtrack,
 * string.rep of an empty string, table functions on tables with a wrong __len. Finalizers are
 * refused, since they run with hooks off, and so are weak tables, which can keep the collector busy
 * for very long. The same file gives the same scene every time: random numbers start from a fixed
 * seed, and pairs visits keys in sorted order. */
#include "scene/loader.h"

#include <stdio.h>
#include <stdlib.h>

/* Steps of the pattern matcher that one call may need at worst, about a fifth of a second. */
#define PATTERN_STEPS 2e8
#define PRINT_LINES 100

/* Calls the wrapped function (upvalue 1) with all arguments. Its errors would name no line, since
 * its caller is C: the line is added here. */
static int forward(lua_State *L)
{
    un_sandbox *s = un_sandbox_of(L);
    un_sandbox_tick(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    int lua_status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    if (lua_status == LUA_OK) return lua_gettop(L);
    un_sandbox_check_final(L, lua_status);
    size_t length = strlen(s->name);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (text && !(strncmp(text, s->name, length) == 0 && text[length] == ':')) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

/* ---- base ---- */

/* pcall; with an upvalue, xpcall, whose handler runs after the call has ended (during the call, it
 * would run with hooks off if a hook raised the error). */
static int protected_call(lua_State *L)
{
    bool handled = lua_toboolean(L, lua_upvalueindex(1));
    luaL_checkany(L, 1);
    if (handled) {
        luaL_checktype(L, 2, LUA_TFUNCTION);
        lua_pushvalue(L, 2);
        lua_remove(L, 2);
        lua_insert(L, 1); /* handler, function, arguments */
    }
    int first = handled ? 2 : 1;
    int lua_status = lua_pcall(L, lua_gettop(L) - first, LUA_MULTRET, 0);
    if (lua_status == LUA_OK) {
        lua_pushboolean(L, true);
        lua_insert(L, first);
        return lua_gettop(L) - first + 1;
    }
    un_sandbox_check_final(L, lua_status);
    if (handled) {
        lua_pushvalue(L, 1);
        lua_insert(L, -2);
        lua_call(L, 1, 1);
    }
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

static int set_metatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnil(L, 2)) luaL_checktype(L, 2, LUA_TTABLE);
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    static const char *const refused[] = {"__gc", "__mode"};
    for (int i = 0; i < 2 && lua_istable(L, 2); i++) {
        lua_pushstring(L, refused[i]);
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "%s is not available in a scene file; leave it out", refused[i]);
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

static int print_line(lua_State *L)
{
    un_sandbox *s = un_sandbox_of(L);
    if (s->print_count >= PRINT_LINES) return 0;
    s->print_count++;
    int count = lua_gettop(L);
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (int i = 1; i <= count; i++) {
        if (i > 1) luaL_addchar(&buffer, ' ');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&buffer);
    }
    luaL_pushresult(&buffer);
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    char clean[400];
    un_clean_text(clean, sizeof clean, text, length);
    luaL_where(L, 1);
    un_log(s->ctx, UN_LOG_NOTE, "%s%s", lua_tostring(L, -1), clean);
    return 0;
}

typedef struct sort_key {
    int type;
    double number;
    const char *text;
    size_t length;
    int64_t index;
} sort_key;

static int compare_keys(const void *pa, const void *pb)
{
    const sort_key *a = pa, *b = pb;
    if (a->type != b->type) return a->type < b->type ? -1 : 1;
    if (a->type == LUA_TNUMBER && a->number != b->number) return a->number < b->number ? -1 : 1;
    if (a->type == LUA_TSTRING) {
        int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
        if (order) return order;
        if (a->length != b->length) return a->length < b->length ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

static int next_sorted(lua_State *L)
{
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));
    for (;;) {
        i++;
        lua_settop(L, 0);
        if (lua_rawgeti(L, lua_upvalueindex(2), i) == LUA_TNIL) return 1;
        lua_pushvalue(L, -1);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) break;
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    return 2;
}

/* Numbers first, in order, then strings in order, then the rest in any order. */
static int sorted_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    un_sandbox_tick(L);
    int64_t count = 0;
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) count++;
    sort_key *keys = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *keys, 0);
    lua_createtable(L, (int)count, 0);
    int64_t k = 0;
    for (lua_pushnil(L); k < count && lua_next(L, 1); k++, lua_pop(L, 1)) {
        keys[k] = (sort_key){.type = lua_type(L, -2), .index = k};
        if (keys[k].type == LUA_TNUMBER) keys[k].number = lua_tonumber(L, -2);
        if (keys[k].type == LUA_TSTRING) keys[k].text = lua_tolstring(L, -2, &keys[k].length);
        lua_pushvalue(L, -2);
        lua_rawseti(L, 3, k + 1);
    }
    lua_settop(L, 3);
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    lua_pushvalue(L, 1);
    lua_createtable(L, (int)count, 0);
    for (k = 0; k < count; k++) {
        lua_rawgeti(L, 3, keys[k].index + 1);
        lua_rawseti(L, 5, k + 1);
    }
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_sorted, 3);
    return 1;
}

/* Called when a name is read that was never set: most likely a typo. */
static int unknown_name(lua_State *L)
{
    static const char *const absent[] = {
        "collectgarbage", "coroutine", "debug", "dofile", "io", "load", "loadfile", "os",
        "package",        "require",   "utf8",  "warn",   NULL};
    if (lua_type(L, 2) != LUA_TSTRING) return 0;
    const char *name = lua_tostring(L, 2);
    for (int i = 0; absent[i]; i++)
        if (strcmp(name, absent[i]) == 0)
            return luaL_error(L,
                              "%s is not available in a scene file, which may use base, math, "
                              "string and table only",
                              name);
    char best[64] = "";
    int32_t best_distance = 1 + (int32_t)un_min64((int64_t)strlen(name), 64) / 4;
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) continue;
        const char *other = lua_tostring(L, -2);
        int32_t distance = un_edit_distance(name, other);
        if (strlen(other) >= sizeof best || distance > best_distance) continue;
        if (distance == best_distance && best[0] && strcmp(other, best) > 0) continue;
        best_distance = distance;
        snprintf(best, sizeof best, "%s", other);
    }
    char clean[48];
    un_clean_text(clean, sizeof clean, name, strlen(name));
    if (best[0]) return luaL_error(L, "unknown name \"%s\"; did you mean \"%s\"?", clean, best);
    return luaL_error(L, "unknown name \"%s\"; set it before it is used", clean);
}

/* ---- string ---- */

/* An upper bound of the matcher's steps: every repetition may try every length. */
static double pattern_steps(size_t text_length, const char *pattern, size_t length)
{
    double n = (double)text_length + 1, steps = pattern[0] == '^' ? 1 : n;
    for (size_t i = 0; i < length; i++) {
        char c = pattern[i];
        if (c == '%' && i + 1 < length) {
            i++;
            if (pattern[i] == 'b' || (pattern[i] >= '0' && pattern[i] <= '9')) steps *= n;
        } else if (c == '*' || c == '+' || c == '-') {
            steps *= n;
        } else if (c == '?') {
            steps *= 2;
        }
    }
    /* A set is searched from end to end at every step. */
    return strchr(pattern, '[') ? steps * (double)length : steps;
}

static int match_pattern(lua_State *L)
{
    size_t text_length, length;
    luaL_checklstring(L, 1, &text_length);
    const char *pattern = luaL_checklstring(L, 2, &length);
    double steps = pattern_steps(text_length, pattern, length);
    /* Plain searches compare the whole pattern at every place. */
    double plain = (double)text_length * (double)length / 16;
    if (fmax(steps, plain) > PATTERN_STEPS)
        return luaL_error(L,
                          "this pattern could take too long on a text of %d characters; shorten "
                          "the text or use fewer repetitions",
                          (int)text_length);
    return forward(L);
}

static int repeat_string(lua_State *L)
{
    size_t length, separator_length;
    luaL_checklstring(L, 1, &length);
    lua_Integer count = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &separator_length);
    if (count <= 0 || length + separator_length == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    return forward(L);
}

/* ---- table ---- */

static void check_plain_table(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    if (lua_getmetatable(L, index))
        luaL_error(L, "the table functions work on tables without a metatable only");
}

static int use_table(lua_State *L)
{
    check_plain_table(L, 1);
    return forward(L);
}

static int move_table(lua_State *L)
{
    check_plain_table(L, 1);
    if (!lua_isnoneornil(L, 5)) check_plain_table(L, 5);
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    if (last >= first && (lua_Unsigned)last - (lua_Unsigned)first > 10000000)
        return luaL_error(L, "table.move of more than 10 million elements");
    return forward(L);
}

/* Upvalue 1: the script's own comparison, or nil. */
static int compare_less(lua_State *L)
{
    un_sandbox_tick(L);
    lua_settop(L, 2);
    if (lua_isnil(L, lua_upvalueindex(1))) {
        lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
}

static int sort_table(lua_State *L)
{
    check_plain_table(L, 1);
    if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    lua_pushcclosure(L, compare_less, 1);
    return forward(L);
}

/* ---- math ---- */

static int seed_random(lua_State *L)
{
    /* Without a number Lua would take the time of day. */
    if (lua_gettop(L) == 0) lua_pushinteger(L, 0);
    luaL_checknumber(L, 1);
    return forward(L) * 0;
}

/* ---- putting it together ---- */

typedef struct wrapper {
    const char *library, *name;
    lua_CFunction function; /* NULL: removed */
} wrapper;

static const wrapper wrappers[] = {
    {"string", "dump", NULL},
    {"string", "pack", NULL},
    {"string", "packsize", NULL},
    {"string", "unpack", NULL},
    {"string", "find", match_pattern},
    {"string", "match", match_pattern},
    {"string", "gmatch", match_pattern},
    {"string", "gsub", match_pattern},
    {"string", "rep", repeat_string},
    {"table", "concat", use_table},
    {"table", "insert", use_table},
    {"table", "move", move_table},
    {"table", "remove", use_table},
    {"table", "sort", sort_table},
    {"table", "unpack", use_table},
    {"math", "randomseed", seed_random},
};

void un_library_open(lua_State *L)
{
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    lua_settop(L, 0);
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        const wrapper *w = &wrappers[i];
        lua_getglobal(L, w->library);
        lua_getfield(L, -1, w->name);
        if (w->function)
            lua_pushcclosure(L, w->function, 1);
        else
            lua_pushnil(L);
        lua_setfield(L, 1, w->name);
        lua_settop(L, 0);
    }
    lua_getglobal(L, "math");
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, 0);
    lua_call(L, 1, 0);

    static const char *const removed[] = {"collectgarbage", "dofile", "load", "loadfile", "warn"};
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        lua_pushnil(L);
        lua_setglobal(L, removed[i]);
    }
    lua_register(L, "setmetatable", set_metatable);
    lua_register(L, "print", print_line);
    lua_register(L, "pairs", sorted_pairs);
    for (int handled = 0; handled < 2; handled++) {
        lua_pushboolean(L, handled);
        lua_pushcclosure(L, protected_call, 1);
        lua_setglobal(L, handled ? "xpcall" : "pcall");
    }

    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");

    lua_pushglobaltable(L);
    lua_newtable(L);
    lua_pushcfunction(L, unknown_name);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_settop(L, 0);
}
