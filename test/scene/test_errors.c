/* Every kind of mistake: one sentence with the file, the line of the key, and what to do. */
#include "files.h"

#define WATER "liquid = { box { min = {0, 0, 0}, max = {1, 1, 1} } }"
#define BALL "sphere { center = {0, 0, 0}, radius = 1 }"

typedef struct mistake {
    const char *text, *message;
} mistake;

static void check_all(const mistake *list, size_t count)
{
    for (size_t i = 0; i < count; i++) check_message(list[i].text, list[i].message);
}

#define CHECK_ALL(list) check_all(list, sizeof(list) / sizeof *(list))

static void files(void **state)
{
    (void)state;
    const mistake list[] = {
        {"", "dam.lua: the file is empty; write scene { liquid = { box { ... } } }"},
        {" \n\t\r\n", "dam.lua: the file is empty; write scene { liquid = { box { ... } } }"},
        {"-- only a comment", "dam.lua: scene { ... } is never called; the file must end with it"},
        {"return { liquid = {} }",
         "dam.lua: scene { ... } is never called; the file must end with it"},
        {"scene { " WATER " }\n\nscene { " WATER " }",
         "dam.lua:3: scene is called a second time, after line 1; a file describes one scene"},
        {"scene()",
         "dam.lua:1: scene needs a table, as in scene { domain = { ... }, liquid = { ... "
         "} }, got nothing"},
        {"scene { " WATER "\n  domain = {} }",
         "dam.lua:2: '}' expected (to close '{' at line 1) near 'domain'"},
        {"x = = 1", "dam.lua:1: unexpected symbol near '='"},
        {"local a\nprint(a.b)", "dam.lua:2: attempt to index a nil value (local 'a')"},
        {"error('too\\27[31m \\n bad')", "dam.lua:1: too?[31m   bad"},
        {"error({})", "dam.lua: the script raised an error without a text"},
        {"\n\nspere { radius = 1 }", "dam.lua:3: unknown name \"spere\"; did you mean \"sphere\"?"},
        {"os.exit(1)", "dam.lua:1: os is not available in a scene file, which may use base, math, "
                       "string and table only"},
        {"\x1bLua", "dam.lua: this is compiled Lua, which is not accepted; give the source text"},
    };
    CHECK_ALL(list);

    un_context *ctx = check_context_threads(1);
    un_scene *scene;
    write_bytes("dam.lua", "x = 1\n\0", 7);
    assert_int_equal(un_scene_load(ctx, "dam.lua", NULL, 0, &scene), UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx),
                        "dam.lua:2: this is not a text file; save the scene "
                        "as plain UTF-8 text");
    assert_int_equal(un_scene_load(ctx, "no/dam\n.lua", NULL, 0, &scene), UN_ERROR_FILE);
    assert_string_equal(un_context_message(ctx),
                        "no/dam .lua: cannot be opened: No such file or directory; check the name");
    assert_null(scene);
    assert_int_equal(un_scene_load(ctx, ".", NULL, 0, &scene), UN_ERROR_FILE);
    assert_string_equal(un_context_message(ctx), ".: cannot be read: Is a directory");
    assert_int_equal(un_scene_load(ctx, "", NULL, 0, &scene), UN_ERROR_ARGUMENT);
    char *large = calloc(2 << 20, 1);
    memset(large, ' ', (2 << 20) - 1);
    write_text("dam.lua", large);
    free(large);
    assert_int_equal(un_scene_load(ctx, "dam.lua", NULL, 0, &scene), UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx),
                        "dam.lua: larger than 1024 KB, which no scene needs; "
                        "keep data in mesh files");
    check_context_end(ctx);
}

static void keys(void **state)
{
    (void)state;
    const mistake list[] = {
        {"scene {\n  fluid = {\n    density = 1000,\n    desnity = 1,\n  },\n}",
         "dam.lua:4: unknown key \"desnity\" in fluid; did you mean \"density\"?"},
        {"scene {\n  " WATER ",\n  grvity = {0, 0, 0} }",
         "dam.lua:3: unknown key \"grvity\" in scene; did you mean \"gravity\"?"},
        {"scene {\n  fluid = { colour = 1 } }", "dam.lua:2: unknown key \"colour\" in fluid; known "
                                                "keys are density, viscosity, surface_tension"},
        {"scene {\n  fluid = { 1000 } }",
         "dam.lua:2: fluid holds 1000 without a key; write key = value"},
        {"scene { 3 }", "dam.lua:1: scene holds 3 without a key; write key = value"},
        {"scene {\n [true] = 1 }", "dam.lua:1: scene holds 1 without a key; write key = value"},
        {"scene {\n  solids = {\n    sphere {\n      center = {0, 0, 0},\n      raduis = 1 } } }",
         "dam.lua:5: unknown key \"raduis\" in sphere; did you mean \"radius\"?"},
        /* Keys of the same name elsewhere, strings and comments do not mislead. */
        {"-- finest = 3\nlocal t = { finest = 9, detail = { finest = 8 } }\n"
         "local text = [[ detail = { finest = 7 } ]] --[[ detail = {\n finest = 6 } ]]\n"
         "scene {\n  [\"detail\"] = {\n    ['finest'] = 2 } }",
         "dam.lua:7: detail.finest must be between 4 and 4096, got 2"},
        {"scene {\n  solids = { solid { " BALL ", pose = function(t)\n"
         "    local frames, rate = 1, 2 if t > 1 then rate = 3 end return { by = {t, 0, 0} } end } "
         "},\n  frames = {\n    rate = 'x' } }",
         "dam.lua:5: frames.rate must be a number, got \"x\""},
        {"local s = {}\ns.detail = {\n  finest = 2 }\nscene(s)",
         "dam.lua:3: detail.finest must be between 4 and 4096, got 2"},
        {"local s = {}\ns.detail = { ['fin' .. 'est'] = 2 }\n\nscene(s)",
         "dam.lua:4: detail.finest must be between 4 and 4096, got 2"},
        {"local function make(t)\n  scene(t)\nend\nmake {\n  frames = { rate = 0 } }",
         "dam.lua:5: frames.rate must be between 0.001 and 1000000, got 0"},
        {"local function equal(finest) return finest == 3 end\nlocal s = {}\n"
         "s.detail = {\n  finest = 2 }\nscene(s)",
         "dam.lua:4: detail.finest must be between 4 and 4096, got 2"},
        /* Of several calls, the one that failed. */
        {"sphere { center = {0, 0, 0}, radius = 1 }\nsphere {\n  center = {0, 0, 0},\n"
         "  radius = -1 }",
         "dam.lua:4: sphere.radius must be above 0 and at most 1000000000, got -1"},
        {"local function ball(r)\n  return sphere { center = {0, 0, 0}, radius = r }\nend\n"
         "ball(1)\nball(-1)",
         "dam.lua:2: sphere.radius must be above 0 and at most 1000000000, got -1"},
        {"local t = { radius = -1, center = {0, 0, 0} }\nsphere(t)",
         "dam.lua:2: sphere.radius must be above 0 and at most 1000000000, got -1"},
        {"pcall(sphere, {})\nscene { a = 1 }",
         "dam.lua:2: unknown key \"a\" in scene; known keys are method, domain, detail, frames, "
         "gravity, fluid, liquid, solids, sources, sizing, probes, budget, solver, output, render"},
        {"scene(setmetatable({}, {}))", "dam.lua:1: scene must be a table without a metatable"},
        {"scene { " WATER ", frames = setmetatable({}, {}) }",
         "dam.lua:1: frames must be a table without a metatable"},
    };
    CHECK_ALL(list);
}

static void values(void **state)
{
    (void)state;
    const mistake list[] = {
        {"scene { domain = 1 }",
         "dam.lua:1: domain must be a table, as in { size = {1, 1, 1} }, got 1"},
        {"scene {\n domain = { size = {1} } }",
         "dam.lua:2: domain.size needs three numbers, got 1"},
        {"scene { domain = { size = {1, 1, 1, 1} } }",
         "dam.lua:1: domain.size needs three numbers, got 4"},
        {"scene { domain = { size = {x = 1, y = 1, z = 1} } }",
         "dam.lua:1: domain.size needs three numbers, got 3"},
        {"scene { domain = { size = 3 } }",
         "dam.lua:1: domain.size needs three numbers, as in {1, 2, 3}, got 3"},
        {"scene { domain = {\n size = {1,\n 'a', 1} } }",
         "dam.lua:3: domain.size[2] must be a number, got \"a\""},
        {"scene { domain = { size = {0/0, 1, 1} } }",
         "dam.lua:1: domain.size[1] must be a finite number, got nan"},
        {"scene { domain = { size = {1, math.huge, 1} } }",
         "dam.lua:1: domain.size[2] must be a finite number, got inf"},
        {"scene { domain = { size = {1, 1, -1} } }",
         "dam.lua:1: domain.size[3] must be between 1e-06 and 1e+06 (m), got -1"},
        {"scene { domain = { size = {1e300, 1, 1} } }",
         "dam.lua:1: domain.size[1] must be between -1000000000 and 1000000000, got 1e+300"},
        {"scene { domain = { size = {1, 0.001, 1} } }",
         "dam.lua:1: domain.size is thinner than a cell along y: 0.001 m, while a cell is 0.015625 "
         "m; raise detail.finest or the size"},
        {"scene { domain = { size = {1, 1, 1 / 64} } }",
         "dam.lua:1: domain.size is one cell thick along z, and method = \"uniform\" needs more "
         "than one; raise detail.finest to 128, or give two numbers for a scene in 2D"},
        {"scene { domain = { open = {'tpo'} } }",
         "dam.lua:1: domain.open[1] = \"tpo\" is no side; did you mean \"top\"?"},
        {"scene { domain = { open = {'top', 3} } }",
         "dam.lua:1: domain.open[2] = 3 is no side; use left, right, bottom, top, back, front"},
        {"scene { domain = { open = 'top' } }",
         "dam.lua:1: domain.open must be a table, as in {\"top\"}, got \"top\""},
        {"scene { detail = { finest = 1e9 } }",
         "dam.lua:1: detail.finest must be between 4 and 4096, got 1000000000"},
        {"scene { detail = { finest = 40.5 } }",
         "dam.lua:1: detail.finest must be a whole number, got 40.5"},
        {"scene { detail = { finest = '40' } }",
         "dam.lua:1: detail.finest must be a number, got \"40\""},
        {"scene { detail = {\n finest = 4096 } }",
         "dam.lua:2: detail.finest = 4096 makes 6.88e+10 cells of this domain, more than 1e+09; "
         "lower it or use method = \"tet\""},
        {"scene { detail = { finest = 32, coarsest = 64 } }",
         "dam.lua:1: detail.coarsest must not exceed finest = 32, got 64"},
        {"scene { detail = { surface = 0 } }",
         "dam.lua:1: detail.surface must be between 4 and 8192, got 0"},
        {"scene { frames = { count = -1 } }",
         "dam.lua:1: frames.count must be between 0 and 1000000, got -1"},
        {"scene { gravity = {0, -1e8, 0} }",
         "dam.lua:1: gravity must be at most 1e4 m/s2 strong, got 1e+08"},
        {"scene { fluid = { density = 0 } }",
         "dam.lua:1: fluid.density must be above 0 and at most 1000000, got 0"},
        {"scene { fluid = { density = 0/0 } }",
         "dam.lua:1: fluid.density must be a finite number, got nan"},
        {"scene { budget = { memory = '8 apples' } }",
         "dam.lua:1: budget.memory must be like \"8G\", \"512M\" or a number of bytes, got \"8 "
         "apples\""},
        {"scene { budget = { memory = 'infG' } }",
         "dam.lua:1: budget.memory must be like \"8G\", \"512M\" or a number of bytes, got "
         "\"infG\""},
        {"scene { budget = { memory = 3 } }",
         "dam.lua:1: budget.memory must be between 1M and 900T, got 3"},
        {"scene { budget = { memory = '1.1.1G' } }",
         "dam.lua:1: budget.memory must be like \"8G\", \"512M\" or a number of bytes, got "
         "\"1.1.1G\""},
        {"scene { budget = { particles = 0/0 } }",
         "dam.lua:1: budget.particles must be a finite number, got nan"},
        {"scene { solver = { tolerance = 1 } }",
         "dam.lua:1: solver.tolerance must be between 1e-12 and 0.1, got 1"},
        {"scene { solver = { kind = 'jacoby' } }",
         "dam.lua:1: solver.kind = \"jacoby\" is unknown; did you mean \"jacobi\"?"},
        {"scene { solver = { dump = 3 } }",
         "dam.lua:1: solver.dump must be the name of a folder in quotes, got 3"},
        {"scene { solver = { dump = '' } }",
         "dam.lua:1: solver.dump must be the name of a folder in quotes, got \"\""},
        {"scene { solver = { dump = 'a\\0b' } }",
         "dam.lua:1: solver.dump must be the name of a folder in quotes, got \"a?b\""},
        {"scene { solver = {\n dump = ('x'):rep(512) } }",
         "dam.lua:2: solver.dump must be shorter than 512 characters"},
        {"scene { solver = { dump_every = 0 } }",
         "dam.lua:1: solver.dump_every must be between 1 and 1000000000, got 0"},
        {"scene { output = { surface = 1 } }",
         "dam.lua:1: output.surface must be true or false, got 1"},
        {"scene { method = 3 }", "dam.lua:1: method must be a word in quotes (uniform, tet, "
                                 "staggered, octree, conforming, warp), got 3"},
        {"scene { method = 'unifrm' }",
         "dam.lua:1: method = \"unifrm\" is unknown; did you mean \"uniform\"?"},
        {"scene { method = 'octre' }",
         "dam.lua:1: method = \"octre\" is unknown; did you mean \"octree\"?"},
        {"scene { method = 'sph\\27\\n" /* a name with control characters, cut short */
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }",
         "dam.lua:1: method = \"sph? aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is unknown; known are "
         "uniform, tet, staggered, octree, conforming, warp"},
        {"scene { domain = {} }",
         "dam.lua:1: the scene has no liquid; add liquid = { box { ... } } "
         "or an emitter to sources"},
    };
    CHECK_ALL(list);
}

static void not_available(void **state)
{
    (void)state;
    const mistake list[] = {
        {"scene {\n method = \"warb\" }",
         "dam.lua:2: method = \"warb\" is unknown; did you mean \"warp\"?"},
        {"scene { solver = { surface = 'level-set' } }",
         "dam.lua:1: solver.surface = \"level-set\" is for grids that warp; use method = \"warp\", "
         "or colour"},
        {"scene { method = 'warp', solver = { surface = 'level-set' }, fluid = { surface_tension = "
         "0.07 } }",
         "dam.lua:1: solver.surface = \"level-set\" does not hold still under surface_tension; "
         "leave "
         "one of them out"},
        {"scene { method = 'warp', fluid = { viscosity = 0.1 } }",
         "dam.lua:1: fluid.viscosity is not available with method \"warp\"; use method = "
         "\"uniform\", or leave it out"},
        {"scene { method = 'octree', domain = { size = {1, 1} },\n fluid = { viscosity = 0.1 } }",
         "dam.lua:2: fluid.viscosity is not available in 2D with method \"octree\"; use method = "
         "\"uniform\", or give domain.size three numbers"},
        {"scene { method = 'octree', fluid = {\n viscosity = function() return 1 end } }",
         "dam.lua:2: fluid.viscosity as a function is not available with method \"octree\"; use "
         "method = \"uniform\", or give a number"},
        {"scene { method = 'octree', fluid = {\n density = function() return 1 end } }",
         "dam.lua:2: fluid.density as a function is not available with method \"octree\"; use "
         "method = \"uniform\", or give a number"},
        {"scene { method = 'tet', fluid = { viscosity = -1 } }",
         "dam.lua:1: fluid.viscosity must be between 0 and 1000000000, got -1"},
        {"scene { method = 'tet', fluid = { viscosity = 'thick' } }",
         "dam.lua:1: fluid.viscosity must be a number or a function(x, y, z), got \"thick\""},
        {"scene { method = 'tet', " WATER ", fluid = {\n viscosity = function() return -1 end } }",
         "dam.lua:2: fluid.viscosity must return a number from 0 and at most 1e+09, got -1 (in "
         "fluid.viscosity at x, y, z = 0.43, 0.29, 0.58)"},
        {"scene { method = 'tet', " WATER ", fluid = {\n density = function() return 0 end } }",
         "dam.lua:2: fluid.density must return a number above 0 and at most 1e+06, got 0 (in "
         "fluid.density at x, y, z = 0.43, 0.29, 0.58)"},
        {"scene { domain = { slip = { botom = 1 } } }",
         "dam.lua:1: unknown key \"botom\" in domain.slip; did you mean \"bottom\"?"},
        {"scene { domain = { slip = -1 } }",
         "dam.lua:1: domain.slip must be between 0 and 1000000000, got -1"},
        {"scene { solver = { stress = 'half' } }",
         "dam.lua:1: solver.stress = \"half\" is unknown; known are full, split, laplacian"},
        {"scene { fluid = { surface_tension = -1 } }",
         "dam.lua:1: fluid.surface_tension must be between 0 and 1000, got -1"},
        {"scene { domain = { contact_angle = 181 } }",
         "dam.lua:1: domain.contact_angle must be between 0 and 180, got 181"},
#ifndef UN_WITH_PETSC
        {"scene { solver = { kind = 'petsc' } }",
         "dam.lua:1: solver.kind = \"petsc\" is not part of this build; configure it with "
         "-DUNDINE_PETSC=ON (Debian: libpetsc-real-dev), or use auto"},
#endif
    };
    CHECK_ALL(list);
}

/* Solids with a density. */
static void bodies(void **state)
{
    (void)state;
    write_text("open.off", "OFF\n4 3 0\n.4 .4 .4\n.6 .4 .4\n.4 .6 .4\n.4 .4 .6\n"
                           "3 0 2 1\n3 0 1 3\n3 0 3 2\n");
    const mistake list[] = {
        {"scene { " WATER ", solids = {\n solid { box { min = {0, 0, 0}, max = {1, 1, 1} },\n"
         "  density = -5 } } }",
         "dam.lua:3: solid.density must be above 0 and at most 1000000, got -5"},
        {"scene { " WATER ", solids = {\n solid { mesh { file = 'open.off' },\n"
         "  density = 5 } } }",
         "dam.lua:3: solid.density needs a closed shape of a finite size, and this one is open, "
         "endless or empty; close the mesh's holes, or leave density out"},
        {"scene { " WATER ", solids = { plane { point = {0, 0, 0}, normal = {0, 1, 0}, density = 5 "
         "} } }",
         "dam.lua:1: plane.density needs a closed shape of a finite size, and this one is open, "
         "endless or empty; close the mesh's holes, or leave density out"},
        {"scene { " WATER
         ", solids = {\n box { min = {0, 0, 0}, max = {2, 1, 1}, density = 5 } } }",
         "dam.lua:2: solids[1] (box): the body is larger than the domain: 2 m along x, where there "
         "are 1 m; shrink it or enlarge domain.size"},
        {"scene { " WATER ", solids = {\n sphere { center = {.5, .1, .5}, radius = .2, density = 5 "
         "} } }",
         "dam.lua:2: solids[1] (sphere): the body reaches 0.1 m beyond the bottom of the domain; "
         "move it inside"},
        {"scene { " WATER ", solids = { box { min = {.4, .4, .4}, max = {.6, .5, .6} },\n"
         "  box { min = {.4, .45, .4}, max = {.6, .6, .6}, density = 5 } } }",
         "dam.lua:2: solids[2] (box): the body overlaps solids[1] (box) by 0.05 m at the start; "
         "move them apart"},
        {"scene { " WATER ", solids = { sphere { center = {.5, .5, .5}, radius = .1,\n"
         "  density = 5, pose = function(t) return { by = {t, 0, 0} } end } } }",
         "dam.lua:2: sphere.density and pose exclude each other: a solid with a pose moves as the "
         "scene says, one with a density as the liquid does; keep one of them"},
        {"sphere { center = {.5, .5, .5}, radius = .1, spin = {1, 0, 0} }",
         "dam.lua:1: sphere.spin is for bodies that the liquid moves; give the solid a density "
         "(kg/m3) too, or a pose function instead"},
        {"sphere { center = {.5, .5, .5}, radius = .1, density = 5,\n hold = 'x w' }",
         "dam.lua:2: sphere.hold must name axes that the body keeps, as in \"x z\" (along x and "
         "z) or \"rx rz\" (about x and z), got \"x w\""},
        {"sphere { center = {.5, .5, .5}, radius = .1, density = 5,\n restitution = 2 }",
         "dam.lua:2: sphere.restitution must be between 0 and 1, got 2"},
        {"scene { liquid = { box { min = {0, 0, 0}, max = {1, 1, 1}, density = 5 } } }",
         "dam.lua:1: liquid[1] has a density, spin, restitution or hold, which is for solids; "
         "remove it"},
    };
    CHECK_ALL(list);
}

static void shapes(void **state)
{
    (void)state;
    const mistake list[] = {
        {"local a = 1\nlocal b = sphere(3)",
         "dam.lua:2: sphere needs a table, as in sphere { center "
         "= {0.5, 0.5, 0.5}, radius = 0.1 }, got 3"},
        {"sphere { center = {0, 0, 0} }",
         "dam.lua:1: sphere needs radius, as in sphere { center = {0.5, 0.5, 0.5}, radius = 0.1 }"},
        {"sphere {\n  center = {0, 0, 0},\n  radius = -1 }",
         "dam.lua:3: sphere.radius must be above 0 and at most 1000000000, got -1"},
        {"sphere {\n  center = {0},\n  radius = 1 }",
         "dam.lua:2: sphere.center needs three numbers, got 1"},
        {"sphere({ center = {0, 0, 0}, radius = 1 }, 2)",
         "dam.lua:1: sphere takes one table, as in sphere { center = {0.5, 0.5, 0.5}, radius = 0.1 "
         "}, got 2 arguments"},
        {"box { min = {0, 0, 0},\n max = {1, 0, 1} }",
         "dam.lua:2: box.max must be above min along x, y and z, got min = {0, 0, 0}, max = {1, 0, "
         "1}"},
        {"cylinder { from = {0, 0, 0}, to = {0, 0, 0}, radius = 1 }",
         "dam.lua:1: cylinder.to must be another point than from"},
        {"capsule { from = {0, 0, 0}, radius = 1 }",
         "dam.lua:1: capsule needs to, as in capsule { "
         "from = {0, 0, 0}, to = {0, 1, 0}, radius = 0.1 "
         "}"},
        {"torus { center = {0, 0, 0}, radius = 1, tube = 2 }",
         "dam.lua:1: torus.tube must be below radius = 1, got 2"},
        {"torus { center = {0, 0, 0}, axis = {0, 0, 0}, radius = 1, tube = .5 }",
         "dam.lua:1: torus.axis must not be zero"},
        {"plane { point = {0, 0, 0}, normal = {0, 0, 0} }",
         "dam.lua:1: plane.normal must not be zero"},
        {"mesh { file = 3 }", "dam.lua:1: mesh.file must be the name of a file in quotes, got 3"},
        {"mesh {}", "dam.lua:1: mesh needs file, as in mesh { file = \"ship.ply\" }"},
        {"scene { liquid = {\n mesh { file = 'no.ply' } } }",
         "dam.lua:2: mesh.file ./no.ply cannot be read: No such file or directory"},
        {"scene { liquid = { mesh { file = '/dev/zero' } } }",
         "dam.lua:1: mesh.file /dev/zero is not a file of triangles"},
        {"field(3)",
         "dam.lua:1: field needs one function, as in field(function(x, y, z) return y - "
         "0.1 end), with negative values inside, got 3"},
        {"scene { liquid = {\n field(function(x, y, z) return 0/0 end) } }",
         "dam.lua:2: field returned nan at x, y, z = -0.03125, -0.03125, -0.03125; it must return "
         "a "
         "finite number, negative inside"},
        {"scene { liquid = {\n field(function(x, y, z) end) } }",
         "dam.lua:2: field returned nothing at x, y, z = -0.03125, -0.03125, -0.03125; it must "
         "return a finite number, negative inside"},
        {"scene { liquid = {\n field(function(x, y, z)\n  return x.y end) } }",
         "dam.lua:3: attempt to index a number value (local 'x')"},
        {"union()", "dam.lua:1: union needs shapes, as in union { sphere { ... }, box { ... } }"},
        {"union { " BALL ", 3 }",
         "dam.lua:1: union needs shapes, such as sphere { ... }, but part 2 is 3"},
        {"union { " BALL ", nil, " BALL " }",
         "dam.lua:1: union needs shapes, such as sphere { ... }, but part 2 is nothing"},
        {"union(" BALL ", front {})",
         "dam.lua:1: union needs shapes, such as sphere { ... }, but part 2 is a front"},
        {"subtract { " BALL ", sphere { center = {0, 0, 0}, radius = 1, friction = 1 } }",
         "dam.lua:1: subtract cannot hold a sphere with velocity, pose, friction, slip, "
         "contact_angle, density or "
         "material of its own; give them to the whole"},
        {"move { by = {1, 0, 0} }",
         "dam.lua:1: move needs one shape, as in move { sphere { ... }, by = {1, 0, 0} }, got 0"},
        {"move { " BALL ",\n rotate = 90 }", "dam.lua:2: move.rotate must be a table, as in {0, "
                                             "90, 0} (degrees) or { axis = {0, 1, 0}, "
                                             "angle = 90 }, got 90"},
        {"move { " BALL ", rotate = { axis = {0, 1, 0} } }",
         "dam.lua:1: move.rotate needs three angles {x, y, z} in degrees, or axis and angle, as in "
         "{ "
         "axis = {0, 1, 0}, angle = 90 }"},
        {"move { " BALL ", scale = 0 }",
         "dam.lua:1: move.scale must be above 0 and at most 1000000000, got 0"},
        {"sphere { center = {0, 0, 0}, radius = 1, pose = 3 }",
         "dam.lua:1: sphere.pose must be a function, as in function(t) return { by = {t, 0, 0} } "
         "end, got 3"},
        {"solid { " BALL ", velocity = {0, 0, 0}, pose = function() end }",
         "dam.lua:1: solid.pose and velocity exclude each other; keep one of them"},
        {"solid { " BALL ", friction = 2 }",
         "dam.lua:1: solid.friction must be between 0 and 1, got 2"},
        {"solid { " BALL ", material = 'glas' }",
         "dam.lua:1: solid.material = \"glas\" is unknown; did you mean \"glass\"?"},
    };
    CHECK_ALL(list);
}

static void lists(void **state)
{
    (void)state;
    const mistake list[] = {
        {"scene { liquid = " BALL " }", "dam.lua:1: liquid must be a table, as in { box { min = "
                                        "{0, 0, 0}, max = {1, 1, 1} } }, got "
                                        "a sphere"},
        {"scene { liquid = {\n " BALL ",\n 7 } }",
         "dam.lua:3: liquid[2] must be a shape, such as box { ... }, got 7"},
        {"scene { liquid = { sphere { center = {0, 0, 0}, radius = 1, friction = 1 } } }",
         "dam.lua:1: liquid[1] has friction, which is for solids; remove it"},
        {"scene { liquid = { solid { " BALL " } } }",
         "dam.lua:1: liquid[1] is a solid; move it to solids"},
        {"scene { liquid = { sphere { center = {0, 0, 0}, radius = 1, velocity = {1, 0, 0} } } }",
         "dam.lua:1: liquid[1] has a velocity; the liquid starts with one for all: liquid = { ..., "
         "velocity = {x, y, z} }"},
        {"scene { " WATER ", solids = { " BALL ",\n emitter { " BALL " } } }",
         "dam.lua:2: solids[2] must be a shape, such as sphere { ... } or solid { sphere { ... }, "
         "velocity = ... }, got an emitter"},
        {"scene { " WATER ", solids = { nil, " BALL " } }",
         "dam.lua:1: solids[1] must be a shape, such as sphere { ... } or solid { sphere { ... }, "
         "velocity = ... }, got nothing"},
        {"scene { " WATER ", solids = { [3] = " BALL " } }",
         "dam.lua:1: solids has a gap: one of its entries is nil"},
        {"scene { " WATER ", sources = { " BALL " } }",
         "dam.lua:1: sources[1] must be emitter { ... } or drain { ... }, got a sphere"},
        {"emitter { velocity = {1, 0, 0} }", "dam.lua:1: emitter needs one shape, as in emitter { "
                                             "shape = sphere { ... }, velocity = {1, 0, 0} }, got "
                                             "0"},
        {"emitter { " BALL ",\n flow = 1 }", "dam.lua:2: emitter.flow needs a velocity for its "
                                             "direction, as in flow = 1, velocity = {0, -1, 0}; "
                                             "the speed is found from the flow"},
        {"emitter { " BALL ",\n velocity = {1, 0, 0}, flow = 0 }",
         "dam.lua:2: emitter.flow must be above 0 and at most 1e+12, got 0"},
        {"emitter { " BALL ",\n from = 2, to = 1 }",
         "dam.lua:2: emitter.to must be later than from = 2, got 1"},
        {"drain { " BALL ", velocity = {1, 0, 0} }",
         "dam.lua:1: unknown key \"velocity\" in drain; known keys are shape, from, to"},
        {"scene { " WATER ", probes = { " BALL " } }",
         "dam.lua:1: probes[1] must be front { ... }, height { ... } or another probe, got a "
         "sphere"},
        {"scene { " WATER ", probes = { force { body = 'gate' } } }",
         "dam.lua:1: probes[1] (force) is on a solid named \"gate\", and there is none; give one "
         "name = \"gate\""},
        {"flux { min = {0, 0, 0}, max = {1, 1, 1} }",
         "dam.lua:1: flux needs a rectangle across an axis, as in flux { min = {0.5, 0, 0}, max = "
         "{0.5, 1, 1} }"},
        {"scene { " WATER ", probes = { front {},\n front { axis = 'z' } } }",
         "dam.lua:2: probes[2] has the name \"front\" of probes[1]; give it another: name = "
         "\"front2\""},
        {"front { axis = 'w' }", "dam.lua:1: front.axis = \"w\" is unknown; did you mean \"x\"?"},
        {"height { at = {1, 2, 3} }", "dam.lua:1: height.at needs two numbers, got 3"},
        {"pressure {}", "dam.lua:1: pressure needs at, as in pressure { at = {x, y, z} }"},
        {"pressure { at = {0, 0, 0}, name = 'a,b' }",
         "dam.lua:1: pressure.name must be a short word in quotes of letters, digits, _ . and -, "
         "got "
         "\"a,b\""},
        {"sphere { center = {0, 0, 0}, radius = 1,\n name = 'a\\nb' }",
         "dam.lua:2: sphere.name must be a short word in quotes of letters, digits, _ . and -, got "
         "\"a b\""},
        {"box { min = {0, 0, 0}, max = {1, 1, 1}, name = '' }",
         "dam.lua:1: box.name must be a short word in quotes of letters, digits, _ . and -, got "
         "\"\""},
        {"solid { " BALL ", name = 7 }", "dam.lua:1: solid.name must be a short word in quotes of "
                                         "letters, digits, _ . and -, got 7"},
        {"scene { " WATER ", solids = { solid { " BALL ", name = 'a' },\n solid { " BALL
         ", name = 'a' } } }",
         "dam.lua:2: solids[2] has the name \"a\", which is the name of solids[1]; give one of "
         "them "
         "another: name = \"a_2\""},
        {"scene { " WATER ", solids = { solid { " BALL ", name = 'body1' },\n solid { " BALL
         ", velocity = {1, 0, 0} } } }",
         "dam.lua:2: solids[2] would be called \"body1\", which is the name of solids[1]; give one "
         "of them another: name = \"body1_2\""},
        {"scene { liquid = { sphere { center = {0, 0, 0}, radius = 1, name = 'sea' } } }",
         "dam.lua:1: liquid[1] has a name, which is for solids; remove it"},
        {"scene { liquid = { sphere { center = {0, 0, 0}, radius = 1, material = 'glass' } } }",
         "dam.lua:1: liquid[1] has a material, which is for solids; remove it"},
        {"front { name = 'time' }",
         "dam.lua:1: front.name = \"time\" is taken by the first column; choose another"},
        {"scene { " WATER ", probes = { pressure { at = {0.5, 2, 0.5} } } }",
         "dam.lua:1: probes[1] (pressure) lies outside the domain: y = 2 is not between 0 and 1"},
    };
    CHECK_ALL(list);
}

/* A long path is cut at its start, and Lua's own messages use the same name. */
static void long_names(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_scene *scene;
    const char *path = "./././././././././././././././././././././././././././././dam.lua";
    write_text("dam.lua", "\nx = 1 +");
    assert_int_equal(un_scene_load(ctx, path, NULL, 0, &scene), UN_ERROR_SCENE);
    assert_string_equal(un_context_message(ctx), "...././././././././././././././././././././././"
                                                 "dam.lua:2: unexpected symbol near <eof>");
    write_text("dam.lua", "\nscene { a = 1 }");
    assert_int_equal(un_scene_load(ctx, path, NULL, 0, &scene), UN_ERROR_SCENE);
    assert_non_null(strstr(un_context_message(ctx), "./dam.lua:2: unknown key \"a\" in scene"));
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),         cmocka_unit_test(keys),       cmocka_unit_test(values),
        cmocka_unit_test(not_available), cmocka_unit_test(bodies),     cmocka_unit_test(shapes),
        cmocka_unit_test(lists),         cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
