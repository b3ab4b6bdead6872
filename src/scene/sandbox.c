/* The sandbox: a Lua state with bounded instructions, processor time and memory.
 *
 * A hook counts instructions, but C functions and single costly instructions (joining strings of
 * many megabytes) trigger it less often than they cost; so the processor time of the thread is the
 * second bound. A script must not survive either bound by catching the error, so once a limit is
 * passed it is final: the hook then fires at every instruction, and the library's pcall passes the
 * error on. */
#include "scene/loader.h"

#include <stdio.h>
#include <time.h>

/* Instructions between two checks of the limits: few, since each may process all memory. */
#define HOOK_STEPS 100
#define LARGE_BLOCK ((size_t)1 << 20)
#define MEMORY_LIMIT ((size_t)64 << 20)
/* Depth of nested calls; Lua's own limit comes only after half of the memory is used. */
#define CALL_DEPTH 20000

double un_sandbox_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

un_sandbox *un_sandbox_of(lua_State *L)
{
    return *(un_sandbox **)lua_getextraspace(L);
}

/* Processor time is slow to read and never ahead of the wall clock. */
static bool time_is_up(un_sandbox *s)
{
    double now = un_seconds();
    if (now < s->next_look) return false;
    double left = s->cpu_start + s->cpu_limit - un_sandbox_cpu();
    s->next_look = now + left;
    return left <= 0;
}

static void pass_limit(un_sandbox *s, const char *place, const char *limit)
{
    s->fatal = UN_ERROR_SCENE;
    snprintf(s->message, sizeof s->message, "%s: %s takes more than %s; %s", place, s->activity,
             limit, s->remedy);
}

static void pass_time(un_sandbox *s, const char *place)
{
    char limit[64];
    snprintf(limit, sizeof limit, "%g s of computing", s->cpu_limit);
    pass_limit(s, place, limit);
}

static void *allocate(void *user, void *block, size_t old, size_t size)
{
    un_sandbox *s = user;
    if (!block) old = 0; /* then Lua passes the kind of object */
    if (size == 0) {
        un_free(s->ctx, block);
        s->bytes -= old;
        return NULL;
    }
    if (size > old && size - old > MEMORY_LIMIT - s->bytes) {
        s->refused_by_context = false;
        return NULL;
    }
    /* String functions are slow on large strings, and up to a hundred run between two hooks. */
    if (size > old && size >= LARGE_BLOCK && time_is_up(s)) {
        pass_time(s, s->name);
        return NULL;
    }
    void *moved = un_realloc(s->ctx, block, size, 1);
    if (!moved) {
        if (!block || size > old) {
            s->refused_by_context = true;
            return NULL;
        }
        moved = block; /* shrinking never fails */
    }
    s->bytes = s->bytes - old + size;
    return moved;
}

/* ---- limits ---- */

static void hook(lua_State *L, lua_Debug *ar);

static _Noreturn void stop(lua_State *L)
{
    lua_sethook(L, hook, LUA_MASKCOUNT, 1);
    lua_pushliteral(L, "stopped");
    lua_error(L);
    __builtin_unreachable();
}

static void where(lua_State *L, char *text, size_t size)
{
    un_sandbox *s = un_sandbox_of(L);
    snprintf(text, size, "%s", s->name);
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0) continue;
        if (strcmp(ar.short_src, UN_OVERRIDE_NAME) == 0)
            snprintf(text, size, "%s", ar.short_src);
        else
            snprintf(text, size, "%s:%d", s->name, ar.currentline);
        return;
    }
}

void un_sandbox_tick(lua_State *L)
{
    un_sandbox *s = un_sandbox_of(L);
    if (s->fatal) stop(L);
    if (!time_is_up(s)) return;
    char place[80];
    where(L, place, sizeof place);
    pass_time(s, place);
    stop(L);
}

static void check_depth(lua_State *L)
{
    lua_Debug ar;
    if (!lua_getstack(L, CALL_DEPTH, &ar)) return;
    char place[80];
    where(L, place, sizeof place);
    lua_pushfstring(L,
                    "%s: functions call each other more than %d deep; is there an endless "
                    "recursion?",
                    place, CALL_DEPTH);
    lua_error(L);
}

static void hook(lua_State *L, lua_Debug *ar)
{
    un_sandbox *s = un_sandbox_of(L);
    if (s->fatal) stop(L);
    s->steps += HOOK_STEPS;
    if (s->steps > s->step_limit) {
        char limit[64], place[80];
        if (s->step_limit >= 1000000)
            snprintf(limit, sizeof limit, "%g million instructions", (double)s->step_limit / 1e6);
        else
            snprintf(limit, sizeof limit, "%d instructions", (int)s->step_limit);
        where(L, place, sizeof place);
        pass_limit(s, place, limit);
        stop(L);
    }
    if (s->bytes > MEMORY_LIMIT / 2) {
        lua_getinfo(L, "l", ar);
        s->heavy_line = ar->currentline;
    }
    check_depth(L);
    un_sandbox_tick(L);
}

static void allow_steps(un_sandbox *s, int64_t steps)
{
    s->steps = 0;
    s->step_limit = steps;
}

void un_sandbox_raise(lua_State *L, un_status status)
{
    un_sandbox *s = un_sandbox_of(L);
    s->fatal = status;
    s->message[0] = 0; /* the context has the message */
    stop(L);
}

static void out_of_memory(un_sandbox *s)
{
    if (s->fatal) return;
    s->fatal = UN_ERROR_MEMORY;
    s->message[0] = 0;
    if (s->refused_by_context) return;
    char line[16] = "";
    if (s->heavy_line > 0) snprintf(line, sizeof line, ":%d", (int)s->heavy_line);
    s->fatal = UN_ERROR_SCENE;
    snprintf(s->message, sizeof s->message,
             "%s%s: %s needs more than %d MB of memory; keep its tables and strings smaller",
             s->name, line, s->activity, (int)(MEMORY_LIMIT >> 20));
}

void un_sandbox_check_final(lua_State *L, int lua_status)
{
    un_sandbox *s = un_sandbox_of(L);
    if (lua_status == LUA_ERRMEM) out_of_memory(s);
    if (s->fatal) stop(L);
}

void un_sandbox_limit(un_sandbox *s, const un_limits *limits)
{
    s->activity = limits->activity;
    s->remedy = limits->remedy;
    allow_steps(s, limits->steps);
    s->cpu_start = un_sandbox_cpu();
    s->cpu_limit = limits->seconds;
    s->next_look = un_seconds() + limits->seconds;
}

/* ---- calls ---- */

double un_call_at(lua_State *L, int64_t steps, un_vec3 x, const double *t)
{
    allow_steps(un_sandbox_of(L), steps);
    lua_pushvalue(L, -1);
    lua_pushnumber(L, x.x);
    lua_pushnumber(L, x.y);
    lua_pushnumber(L, x.z);
    if (t) lua_pushnumber(L, *t);
    lua_call(L, t ? 4 : 3, 1);
    return lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : NAN;
}

typedef struct call {
    un_sandbox_body *body;
    void *arg;
} call;

static int run_body(lua_State *L)
{
    call *c = lua_touserdata(L, 1);
    lua_settop(L, 0);
    c->body(L, c->arg);
    return 0;
}

/* Turns the error on top of the stack into a message. */
static un_status explain(un_sandbox *s)
{
    lua_State *L = s->L;
    /* Only strings: converting a number to a string may run out of memory. */
    if (lua_type(L, -1) != LUA_TSTRING)
        return un_fail(s->ctx, UN_ERROR_SCENE, "%s: %s raised an error without a text", s->name,
                       s->activity);
    size_t length, name_length = strlen(s->name);
    const char *error = lua_tolstring(L, -1, &length);
    char text[700];
    un_clean_text(text, sizeof text, error, length);
    bool placed = strncmp(text, s->name, name_length) == 0 || strncmp(text, "--set", 5) == 0;
    const char *overflow = strstr(text, "C stack overflow");
    if (overflow) {
        *(char *)overflow = 0;
        return un_fail(s->ctx, UN_ERROR_SCENE,
                       "%s%s%sbrackets or calls nest too deeply; is there an endless recursion?",
                       placed ? "" : s->name, placed ? "" : ": ", text);
    }
    return un_fail(s->ctx, UN_ERROR_SCENE, "%s%s%s", placed ? "" : s->name, placed ? "" : ": ",
                   text);
}

un_status un_sandbox_call(un_sandbox *s, un_sandbox_body *body, void *arg, const un_limits *limits)
{
    lua_State *L = s->L;
    s->fatal = UN_OK;
    s->heavy_line = 0;
    un_sandbox_limit(s, limits);
    lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_STEPS);
    call c = {body, arg};
    lua_settop(L, 0);
    lua_pushcfunction(L, run_body);
    lua_pushlightuserdata(L, &c);
    int lua_status = lua_pcall(L, 1, 0, 0);
    if (lua_status == LUA_ERRMEM) out_of_memory(s);
    un_status status = s->fatal;
    if (s->fatal && s->message[0]) un_fail(s->ctx, status, "%s", s->message);
    if (!s->fatal && lua_status != LUA_OK) status = explain(s);
    lua_settop(L, 0);
    un_free(s->ctx, s->scratch);
    s->scratch = NULL;
    return status;
}

static void open_all(lua_State *L, void *arg)
{
    (void)arg;
    un_library_open(L);
    un_values_open(L);
}

un_status un_sandbox_create(un_context *ctx, const un_scene *scene, un_sandbox **sandbox)
{
    un_sandbox *s = un_alloc_zero(ctx, 1, sizeof *s);
    *sandbox = s;
    if (!s) return UN_ERROR_MEMORY;
    s->ctx = ctx;
    s->scene = scene;
    s->scene_ref = LUA_NOREF;
    /* Lua cuts chunk names at 60 bytes: the end of a long path tells more than its start. */
    size_t length = strlen(scene->path);
    char cut[52];
    size_t cut_length = length < sizeof cut ? length : sizeof cut - 1;
    const char *tail = scene->path + length - cut_length;
    while ((*tail & 0xc0) == 0x80) tail++;
    bool shortened = tail != scene->path;
    un_clean_text(cut, sizeof cut, tail, strlen(tail));
    snprintf(s->name, sizeof s->name, "%s%s", shortened ? "..." : "", cut);

    s->L = lua_newstate(allocate, s);
    if (!s->L) return un_fail_memory(ctx, 0);
    *(un_sandbox **)lua_getextraspace(s->L) = s;
    un_limits limits = {"the library", "", 1000000, 10};
    return un_sandbox_call(s, open_all, NULL, &limits);
}

void un_sandbox_destroy(un_sandbox *s)
{
    if (!s) return;
    un_context *ctx = s->ctx;
    if (s->L) lua_close(s->L);
    un_free(ctx, s);
}

/* ---- text for messages ---- */

/* Length in bytes of the well-formed, printable UTF-8 character at `at`, 0 if there is none. */
static size_t printable(const unsigned char *at, size_t left)
{
    unsigned char c = at[0];
    if (c < 0x80) return c >= 0x20 && c != 0x7f;
    size_t length = c >= 0xc2 && c < 0xe0   ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if (length == 0 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool control = c == 0xc2 && at[1] < 0xa0;
    return control ? 0 : length;
}

void un_clean_text(char *to, size_t size, const char *from, size_t length)
{
    UN_ASSERT(size > 4);
    const unsigned char *at = (const unsigned char *)from;
    size_t written = 0, fits = 0; /* fits: where "..." could still follow */
    for (size_t i = 0; i < length;) {
        size_t n = printable(at + i, length - i), put = n ? n : 1;
        if (written + put >= size) {
            memcpy(to + fits, "...", 4);
            return;
        }
        if (n)
            memcpy(to + written, at + i, n);
        else
            to[written] = at[i] == '\n' || at[i] == '\t' ? ' ' : '?';
        written += put;
        if (written + 4 <= size) fits = written;
        i += put;
    }
    to[written] = 0;
}
