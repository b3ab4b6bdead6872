/* Reading fields of the script's tables, with messages that name line, key, range and remedy. */
#include "scene/loader.h"

#include <stdio.h>

/* Sensible coordinates, speeds and times are smaller; this keeps products finite. */
#define NUMBER_MAX 1e9

un_place un_place_of_caller(lua_State *L, const char *root)
{
    un_place place = {.L = L, .root = root};
    lua_Debug ar;
    if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "l", &ar) && ar.currentline > 0)
        place.line = ar.currentline;
    return place;
}

static bool is_scene(const un_place *place)
{
    return strcmp(place->root, "scene") == 0;
}

static void join(char *to, size_t size, const char *path, const char *key)
{
    bool both = *path && key;
    snprintf(to, size, "%s%s%s", path, both ? "." : "", key ? key : "");
}

/* "solids.2.name" reads solids[2].name. */
static void show_path(char *to, size_t size, const char *root, const char *path)
{
    size_t n = (size_t)snprintf(to, size, "%s", root);
    while (*path && n + 1 < size) {
        size_t length = strcspn(path, ".");
        bool number = *path >= '0' && *path <= '9';
        n += (size_t)snprintf(to + n, size - n,
                              number ? "[%.*s]"
                              : n    ? ".%.*s"
                                     : "%.*s",
                              (int)length, path);
        path += length + (path[length] == '.');
    }
}

/* For an entry of a list that a function returned: the line of its key. */
static int32_t line_of_list(const un_place *place, const char *path)
{
    const char *dot = strrchr(path, '.');
    char list[160];
    if (!dot || dot[1] < '0' || dot[1] > '9') return 0;
    snprintf(list, sizeof list, "%.*s", (int)(dot - path), path);
    return un_lines_find(un_sandbox_of(place->L)->scene->text, place->root, place->line, list);
}

static void show_place(const un_place *place, const char *path, char *to, size_t size)
{
    un_sandbox *s = un_sandbox_of(place->L);
    const char *override = is_scene(place) ? un_override_of(s->scene, path) : NULL;
    int32_t line = override ? 0 : un_lines_find(s->scene->text, place->root, place->line, path);
    if (!line && !override) line = line_of_list(place, path);
    if (!line && !override && is_scene(place)) override = un_override_below(s->scene, path);
    if (!line) line = place->line;
    if (override) {
        char clean[80];
        un_clean_text(clean, sizeof clean, override, strlen(override));
        snprintf(to, size, "--set %s", clean);
    } else if (line) {
        snprintf(to, size, "%s:%d", s->name, (int)line);
    } else {
        snprintf(to, size, "%s", s->name);
    }
}

void un_place_show(const un_place *place, const char *key, char *to, size_t size)
{
    char path[160];
    join(path, sizeof path, place->path, key);
    show_place(place, path, to, size);
}

static _Noreturn void raise_at(const un_place *place, const char *path, const char *text)
{
    char at[120];
    show_place(place, path, at, sizeof at);
    lua_pushfstring(place->L, "%s: %s", at, text);
    lua_error(place->L);
    __builtin_unreachable();
}

void un_place_fail(const un_place *place, const char *key, const char *format, ...)
{
    char path[160], label[200], text[640];
    join(path, sizeof path, place->path, key);
    bool bare = is_scene(place) && *path;
    show_path(label, sizeof label, bare ? "" : place->root, path);
    int n = snprintf(text, sizeof text, "%s ", label);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, arguments);
    va_end(arguments);
    raise_at(place, path, text);
}

void un_place_say(const un_place *place, const char *key, const char *format, ...)
{
    char path[160], text[640];
    join(path, sizeof path, place->path, key);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    raise_at(place, path, text);
}

un_description un_describe(lua_State *L, int index)
{
    un_description d;
    switch (lua_type(L, index)) {
    case LUA_TNIL:
    case LUA_TNONE:
        snprintf(d.text, sizeof d.text, "nothing");
        break;
    case LUA_TBOOLEAN:
        snprintf(d.text, sizeof d.text, "%s", lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TNUMBER: {
        double number = lua_tonumber(L, index);
        if (isnan(number))
            snprintf(d.text, sizeof d.text, "nan"); /* whatever its sign */
        else
            snprintf(d.text, sizeof d.text, "%.10g", number);
        break;
    }
    case LUA_TSTRING: {
        size_t length;
        char clean[40];
        const char *text = lua_tolstring(L, index, &length);
        un_clean_text(clean, sizeof clean, text, length);
        snprintf(d.text, sizeof d.text, "\"%s\"", clean);
        break;
    }
    default: {
        const un_value *value = un_value_at(L, index);
        const char *name = value ? value->kind : luaL_typename(L, index);
        bool vowel = strchr("aeio", name[0]) != NULL;
        snprintf(d.text, sizeof d.text, "%s %s", vowel ? "an" : "a", name);
    }
    }
    return d;
}

bool un_get_field(const un_place *place, int t, const char *key)
{
    lua_State *L = place->L;
    lua_pushstring(L, key);
    if (lua_rawget(L, t) != LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

/* Raw reads would miss inherited keys, and ignoring them silently is worse than an error. */
static void check_plain(const un_place *place, int index, const char *key)
{
    if (lua_getmetatable(place->L, index))
        un_place_fail(place, key, "must be a table without a metatable");
}

static void check_range(const un_place *place, const char *key, un_bounds range, double value)
{
    un_description d = un_describe(place->L, -1);
    const char *got = d.text;
    if (!isfinite(value)) un_place_fail(place, key, "must be a finite number, got %s", got);
    bool low = range.above ? value <= range.min : value < range.min;
    if (!low && value <= range.max) return;
    const char *from = range.above ? "above" : "at least";
    if (isfinite(range.max) && range.above)
        un_place_fail(place, key, "must be above %.10g and at most %.10g, got %s", range.min,
                      range.max, got);
    if (isfinite(range.max))
        un_place_fail(place, key, "must be between %.10g and %.10g, got %s", range.min, range.max,
                      got);
    un_place_fail(place, key, "must be %s %.10g, got %s", from, range.min, got);
}

bool un_read_number(const un_place *place, int t, const char *key, un_bounds range, double *value)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return false;
    if (lua_type(L, -1) != LUA_TNUMBER)
        un_place_fail(place, key, "must be a number, got %s", un_describe(L, -1).text);
    double number = lua_tonumber(L, -1);
    check_range(place, key, range, number);
    lua_pop(L, 1);
    *value = number;
    return true;
}

bool un_read_integer(const un_place *place, int t, const char *key, un_bounds range, int32_t *value)
{
    UN_ASSERT(range.min >= INT32_MIN && range.max <= INT32_MAX);
    double number;
    if (!un_read_number(place, t, key, range, &number)) return false;
    if (number != floor(number))
        un_place_fail(place, key, "must be a whole number, got %.10g", number);
    *value = (int32_t)number;
    return true;
}

static const char *const number_words[] = {"no", "one", "two", "three"};

bool un_read_numbers(const un_place *place, int t, const char *key, int count, double *values)
{
    const char *const *words = number_words;
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return false;
    if (!lua_istable(L, -1))
        un_place_fail(place, key, "needs %s numbers, as in {%s}, got %s", words[count],
                      count == 2 ? "1, 2" : "1, 2, 3", un_describe(L, -1).text);
    int list = lua_gettop(L), entries = 0;
    check_plain(place, list, key);
    for (lua_pushnil(L); lua_next(L, list); lua_pop(L, 1)) entries++;
    if ((int)lua_rawlen(L, list) != count || entries != count)
        un_place_fail(place, key, "needs %s numbers, got %d", words[count], entries);
    for (int i = 0; i < count; i++) {
        char item[80];
        snprintf(item, sizeof item, "%s.%d", key, i + 1);
        lua_rawgeti(L, list, i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            un_place_fail(place, item, "must be a number, got %s", un_describe(L, -1).text);
        values[i] = lua_tonumber(L, -1);
        check_range(place, item, (un_bounds){-NUMBER_MAX, NUMBER_MAX, false}, values[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return true;
}

bool un_read_vec3(const un_place *place, int t, const char *key, un_vec3 *value)
{
    double v[3];
    if (!un_read_numbers(place, t, key, 3, v)) return false;
    *value = un_v3(v[0], v[1], v[2]);
    return true;
}

static void fail_flat(const un_place *place, const char *key, int count)
{
    un_place_fail(place, key, "needs %s numbers, got %d; {%s} is for 2D, a domain of two sides",
                  number_words[count + 1], count, count == 1 ? "x" : "x, y");
}

void un_need_flat(const un_place *place, const char *key, int count)
{
    un_sandbox *s = un_sandbox_of(place->L);
    if (s->dim == 2) return;
    if (s->dim == 3) fail_flat(place, key, count);
    if (s->flat.line) return;
    s->flat.root = place->root;
    s->flat.line = place->line;
    snprintf(s->flat.path, sizeof s->flat.path, "%s", place->path);
    snprintf(s->flat.key, sizeof s->flat.key, "%s", key);
    s->flat.count = count;
}

void un_check_flat(lua_State *L)
{
    const un_sandbox *s = un_sandbox_of(L);
    if (s->dim == 2 || !s->flat.line) return;
    un_place place = {.L = L, .root = s->flat.root, .line = s->flat.line};
    memcpy(place.path, s->flat.path, sizeof place.path);
    fail_flat(&place, s->flat.key, s->flat.count);
}

bool un_read_point(const un_place *place, int t, const char *key, un_vec3 *value, bool *flat)
{
    lua_State *L = place->L;
    double v[3] = {0, 0, 0};
    if (!un_get_field(place, t, key)) return false;
    bool two = lua_istable(L, -1) && lua_rawlen(L, -1) == 2;
    lua_pop(L, 1);
    if (two) un_need_flat(place, key, 2);
    un_read_numbers(place, t, key, two ? 2 : 3, v);
    *value = un_v3(v[0], v[1], v[2]);
    if (flat) *flat = two;
    return true;
}

bool un_read_bool(const un_place *place, int t, const char *key, bool *value)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return false;
    if (!lua_isboolean(L, -1))
        un_place_fail(place, key, "must be true or false, got %s", un_describe(L, -1).text);
    *value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return true;
}

static bool among(const char *word, const char *const *words)
{
    for (; words && *words; words++)
        if (strcmp(word, *words) == 0) return true;
    return false;
}

static void list_words(char *to, size_t size, const char *const *words)
{
    size_t n = 0;
    to[0] = 0;
    for (; *words && n < size; words++)
        n += (size_t)snprintf(to + n, size - n, "%s%s", n ? ", " : "", *words);
}

bool un_read_word(const un_place *place, int t, const char *key, const char *const *known,
                  const char *const *unavailable, char *value, size_t size)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return false;
    char all[240];
    list_words(all, sizeof all, known);
    un_description got = un_describe(L, -1);
    if (lua_type(L, -1) != LUA_TSTRING)
        un_place_fail(place, key, "must be a word in quotes (%s), got %s", all, got.text);
    const char *word = lua_tostring(L, -1);
    if (among(word, unavailable))
        un_place_fail(place, key, "= %s is not available in this version; use %s", got.text, all);
    if (!among(word, known)) {
        const char *near = un_nearest(word, known);
        if (!near && unavailable) near = un_nearest(word, unavailable);
        if (near)
            un_place_fail(place, key, "= %s is unknown; did you mean \"%s\"?", got.text, near);
        un_place_fail(place, key, "= %s is unknown; known are %s", got.text, all);
    }
    snprintf(value, size, "%s", word);
    lua_pop(L, 1);
    return true;
}

int un_open_table(un_place *place, int t, const char *key, const char *usage)
{
    lua_State *L = place->L;
    luaL_checkstack(L, 20, NULL);
    if (!un_get_field(place, t, key)) return 0;
    if (!lua_istable(L, -1))
        un_place_fail(place, key, "must be a table, as in %s, got %s", usage,
                      un_describe(L, -1).text);
    check_plain(place, lua_gettop(L), key);
    size_t n = strlen(place->path);
    snprintf(place->path + n, sizeof place->path - n, "%s%s", n ? "." : "", key);
    return lua_gettop(L);
}

void un_close_table(un_place *place, int opened)
{
    lua_settop(place->L, opened - 1);
    char *dot = strrchr(place->path, '.');
    *(dot ? dot : place->path) = 0;
}

void un_check_keys(const un_place *place, int t, const char *const *known, bool items)
{
    lua_State *L = place->L;
    check_plain(place, t, NULL);
    lua_Integer item_count = (lua_Integer)lua_rawlen(L, t);
    const char *unknown = NULL; /* the first in the alphabet, since Lua's own order is random */
    for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING) {
            const char *key = lua_tostring(L, -2);
            if (!among(key, known) && (!unknown || strcmp(key, unknown) < 0)) unknown = key;
        } else if (!items) {
            un_place_fail(place, NULL, "holds %s without a key; write key = value",
                          un_describe(L, -1).text);
        } else if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 ||
                   lua_tointeger(L, -2) > item_count) {
            un_place_fail(place, NULL, "has a gap: one of its entries is nil");
        }
    }
    if (!unknown) return;
    char clean[48], shown[160], label[200], all[240];
    un_clean_text(clean, sizeof clean, unknown, strlen(unknown));
    join(shown, sizeof shown, place->path, NULL);
    show_path(label, sizeof label, is_scene(place) && *shown ? "" : place->root, shown);
    const char *near = un_nearest(unknown, known);
    if (near)
        un_place_say(place, clean, "unknown key \"%s\" in %s; did you mean \"%s\"?", clean, label,
                     near);
    list_words(all, sizeof all, known);
    un_place_say(place, clean, "unknown key \"%s\" in %s; known keys are %s", clean, label, all);
}
