/* Scripts that want to hang, eat the machine or get out: each ends within seconds, with the status
 * of a wrong scene and one sentence.
 * test-labels: memory */
#include "files.h"
#include "scene/loader.h"

typedef struct attack {
    const char *text, *message; /* message: part of it */
} attack;

#define LOOP "the script takes more than"
#define MEMORY "the script needs more than 64 MB of memory; keep its tables and strings smaller"
#define NEVER "scene { ... } is never called"

static void judge(un_context *ctx, const attack *a, un_status status, double seconds)
{
    const char *message = un_context_message(ctx);
    if (status != UN_ERROR_SCENE || !strstr(message, a->message) || seconds > 5 ||
        strncmp(message, "dam.lua", 7) != 0 || strchr(message, '\n'))
        fail_msg("\nfile:     %.300s\nstatus:   %d\nmessage:  %s\nexpected: %s\nseconds:  %.2f",
                 a->text, (int)status, message, a->message, seconds);
    assert_true(un_context_peak_bytes(ctx) < (100u << 20));
    check_context_end(ctx);
}

static double cpu(void)
{
    return (double)clock() / CLOCKS_PER_SEC; /* the machine may be busy with other things */
}

static void check_attack(const attack *a)
{
    un_context *ctx = check_context_threads(1);
    un_scene *scene = NULL;
    write_text("dam.lua", a->text);
    double began = cpu();
    un_status status = un_scene_load(ctx, "dam.lua", NULL, 0, &scene);
    judge(ctx, a, status, cpu() - began);
}

static void run_text(lua_State *L, void *arg)
{
    const char *text = arg;
    if (luaL_loadbufferx(L, text, strlen(text), "@dam.lua", "t") != LUA_OK) lua_error(L);
    lua_call(L, 0, 0);
}

/* The same in a sandbox with a fraction of a script's limits, to save time. */
static void check_attack_soon(const attack *a)
{
    un_context *ctx = check_context_threads(1);
    char path[] = "dam.lua";
    un_scene scene = {.ctx = ctx, .path = path};
    un_sandbox *sandbox;
    const un_limits limits = {"the script", "is there an endless loop?", 5000000, 0.2};
    check_ok(ctx, un_sandbox_create(ctx, &scene, &sandbox));
    double began = cpu();
    un_status status = un_sandbox_call(sandbox, run_text, (void *)(uintptr_t)a->text, &limits);
    double seconds = cpu() - began;
    un_sandbox_destroy(sandbox);
    judge(ctx, a, status, seconds * 5); /* must end within a second */
}

#define CHECK_ATTACKS(check, list)                                                                 \
    for (size_t i = 0; i < sizeof(list) / sizeof *(list); i++) check(&(list)[i])

static void endless_loops(void **state)
{
    (void)state;
    const attack list[] = {
        {"\nwhile true do end",
         "dam.lua:2: the script takes more than 200 million instructions; is "
         "there an endless loop?"},
        {"scene { liquid = { field(function()\n while true do end end) } }",
         "dam.lua:2: a field's function takes more than 20000 instructions; is there an endless "
         "loop?"},
        {"scene { liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } }, solids = { sphere {\n"
         "  center = {0, 0, 0}, radius = 1, pose = function()\n while true do end end } } }",
         "dam.lua:3: the pose function takes more than 1 million instructions"},
    };
    CHECK_ATTACKS(check_attack, list);
    const attack dodges[] = {
        {"while true do end", LOOP},
        {"while true do pcall(function() while true do end end) end", LOOP},
        {"xpcall(function() while true do end end, function() while true do end end)", LOOP},
        {"local t = setmetatable({}, { __index = function() while true do end end }) print(t.x)",
         LOOP},
        {"local f f = function()\n"
         "  local a <close> = setmetatable({}, { __close = f })\n"
         "  local b <close> = setmetatable({}, { __close = f })\n"
         "end f()",
         LOOP},
        {"table.sort({3, 2, 1, 5, 4}, function() while true do end end)", LOOP},
        {"string.gsub('abc', '.', function() while true do end end)", LOOP},
    };
    CHECK_ATTACKS(check_attack_soon, dodges);
}

/* Work that hides in C functions and in single instructions. */
static void hidden_loops(void **state)
{
    (void)state;
    const attack list[] = {
        {"string.rep('a', 1e5):find(('a*'):rep(50) .. 'b')",
         "dam.lua:1: this pattern could take too "
         "long on a text of 100000 characters; "
         "shorten the text or use fewer "
         "repetitions"},
        {"for w in string.rep('a', 1e5):gmatch(('a?'):rep(50) .. ('a'):rep(50)) do end",
         "this pattern could take too long"},
        {"string.rep('a', 1e5):gsub('(a*)%1%1b', '')", "this pattern could take too long"},
        {"local s = ('a'):rep(2e7) s:find(('a'):rep(1e7) .. 'b', 1, true)",
         "this pattern could take too long"},
        {"local s = (''):rep(1e15)", NEVER},
        {"table.move({}, 1, 1e15, 2)", "table.move of more than 10 million elements"},
        {"table.insert(setmetatable({}, { __len = function() return 1e15 end }), 1, 1)",
         "the table functions work on tables without a metatable only"},
        {"table.concat(setmetatable({}, { __index = type, __len = function() return 1e15 end }))",
         "the table functions work on tables without a metatable only"},
        {"setmetatable({}, { __gc = function() while true do end end })",
         "__gc is not available in a scene file"},
        {"setmetatable({}, { __mode = 'k' })", "__mode is not available in a scene file"},
        {"table.unpack({}, 1, 1e7)", "too many results to unpack"},
    };
    CHECK_ATTACKS(check_attack, list);
    const attack slow[] = {
        {"local s = ('x'):rep(2e7) while true do local x = s .. 'a' end", LOOP},
        {"local s = ('x'):rep(2e7) while true do s:upper() end", LOOP},
        {"local a = ('x'):rep(1e7) .. 'a' local b = ('x'):rep(1e7) .. 'b' local t = {}\n"
         "for i = 1, 1e5 do t[i] = i % 2 == 0 and a or b end table.sort(t)",
         LOOP},
        {"local s = ('a'):rep(110) while true do s:find('a*a*a*b') end", LOOP},
        {"local t = {} for i = 1, 1e5 do t[i + .5] = 1 end for i = 1, 1e5 do t[i + .5] = nil end\n"
         "while true do next(t) end",
         LOOP},
    };
    CHECK_ATTACKS(check_attack_soon, slow);
}

static void memory_bombs(void **state)
{
    (void)state;
    const attack list[] = {
        {"local t = {}\nwhile true do t[#t + 1] = {} end", "dam.lua:2: " MEMORY},
        {"local s = 'x' while true do s = s .. s end", MEMORY},
        {"local s = 'x' while true do pcall(function() s = s .. s end) end", MEMORY},
        {"local s = ('x'):rep(1e9)", MEMORY},
        {"local s = ('x'):rep(1e12)", "resulting string too large"},
        {"local t = {} for i = 1, 1e9 do t[i] = i end", MEMORY},
        {"local ball = { center = {0, 0, 0}, radius = 1 } local t = {}\n"
         "while true do t[#t + 1] = sphere(ball) end",
         MEMORY},
    };
    CHECK_ATTACKS(check_attack, list);
}

static void depth(void **state)
{
    (void)state;
    char *brackets = malloc(200001);
    memset(brackets, '(', 200000);
    brackets[200000] = 0;
    memcpy(brackets, "x=", 2);
    const attack list[] = {
        {"local function f()\n return 1 + f() end f()",
         "dam.lua:2: functions call each other more than 20000 deep; is there an endless "
         "recursion?"},
        {"local function f() return pcall(f) end f()", NEVER},
        {"local function f() error(f()) end f()", "functions call each other"},
        {"local m = {} m.__index = function(t, k) return t[k] end local x = setmetatable({}, m).y",
         "dam.lua:1: brackets or calls nest too deeply; is there an endless recursion?"},
        {brackets, "dam.lua: brackets or calls nest too deeply; is there an endless recursion?"},
        {"local s = sphere { center = {0, 0, 0}, radius = 1 }\nfor i = 1, 60 do s = union(s, s) "
         "end",
         "dam.lua:2: union holds more than 100000 shapes"},
        {"local a = sphere { center = {0, 0, 0}, radius = 1 }\nlocal s = a\n"
         "for i = 1, 300 do s = union(s, a) end",
         "dam.lua:3: union nests shapes more than 200 deep; collect the parts in a table and join "
         "them once, as in union(parts)"},
    };
    CHECK_ATTACKS(check_attack, list);
    free(brackets);
}

static void ways_out(void **state)
{
    (void)state;
    const attack list[] = {
        {"\x1bLua\x54\x01\x19\x93", "this is compiled Lua, which is not accepted"},
        {"local f = load('return 1')", "load is not available in a scene file"},
        {"dofile('/etc/passwd')", "dofile is not available in a scene file"},
        {"require 'os'", "require is not available in a scene file"},
        {"io.open('/etc/passwd')", "io is not available in a scene file"},
        {"debug.getregistry()", "debug is not available in a scene file"},
        {"coroutine.wrap(function() end)", "coroutine is not available in a scene file"},
        {"collectgarbage('stop')", "collectgarbage is not available in a scene file"},
        {"string.dump(function() end)", "attempt to call a nil value (field 'dump')"},
        {"local _ENV <const> = nil\nx", "dam.lua:1: _ENV is not available in a scene file"},
        {"getmetatable('').__index.rep = nil", "attempt to index a boolean value"},
        {"setmetatable(_G, {})", "cannot change a protected metatable"},
        {"getmetatable(sphere { center = {0, 0, 0}, radius = 1 }).__index = 1",
         "attempt to index a boolean value"},
        {"local s = sphere { center = {0, 0, 0}, radius = 1 } s.radius = 2",
         "attempt to index a undine value value (local 's')"},
    };
    CHECK_ATTACKS(check_attack, list);
}

/* A field that would take minutes is refused after a second, not after minutes. */
static void slow_fields(void **state)
{
    (void)state;
    const attack slow = {"scene { detail = { finest = 128 }, liquid = {\n field(function(x, y, z)\n"
                         "  local s = 0 for i = 1, 5000 do s = s + i * x end return s end) } }",
                         "dam.lua:2: field would take about "};
    check_attack(&slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_loops), cmocka_unit_test(hidden_loops),
        cmocka_unit_test(memory_bombs),  cmocka_unit_test(depth),
        cmocka_unit_test(ways_out),      cmocka_unit_test(slow_fields),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
