/* The liquid: density and viscosity as numbers or formulas, of the initial liquid and of each
 * emitter, and the slip of viscous liquid at walls. */
#include "scene/loader.h"

#include <stdio.h>

#define FORMULA_STEPS 20000
/* For all particles that are seeded at once. */
#define FORMULA_SECONDS 120

static const un_bounds density_range = {0, 1e6, true}, viscosity_range = {0, 1e9, false},
                      tension_range = {0, 1e3, false};

/* Reads a number into value, or the reference of a function into formula, which is -1 otherwise. */
static bool read_formula(const un_place *place, int t, const char *key, un_bounds range,
                         double *value, int32_t *formula)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return false;
    int type = lua_type(L, -1);
    if (type == LUA_TFUNCTION) {
        *formula = luaL_ref(L, LUA_REGISTRYINDEX);
        return true;
    }
    if (type != LUA_TNUMBER)
        un_place_fail(place, key, "must be a number or a function(x, y, z), got %s",
                      un_describe(L, -1).text);
    lua_pop(L, 1);
    *formula = -1;
    return un_read_number(place, t, key, range, value);
}

/* A method that has the trait, to suggest in a message. */
static const char *method_with(const un_place *place, size_t trait)
{
    const un_traits *found = un_traits_find(un_sandbox_of(place->L)->scene->methods, trait);
    return found ? found->name : "another";
}

/* Not every method has viscosity or liquids of several densities. */
static void refuse_matter(const un_place *place, const un_scene_def *def, const un_matter *m)
{
    if (!def->traits->viscous && (m->viscosity > 0 || m->viscosity_formula >= 0))
        un_place_fail(place, "viscosity",
                      "is not available with method \"%s\"; use method = \"%s\", or leave it out",
                      def->method, method_with(place, offsetof(un_traits, viscous)));
    if (def->domain.dim == 2 && !def->traits->syrup_flat &&
        (m->viscosity > 0 || m->viscosity_formula >= 0))
        un_place_fail(place, "viscosity",
                      "is not available in 2D with method \"%s\"; use method = \"%s\", or give "
                      "domain.size three numbers",
                      def->method, method_with(place, offsetof(un_traits, syrup_flat)));
    if (!def->traits->mixed && (m->density_formula >= 0 || m->viscosity_formula >= 0))
        un_place_fail(place, m->density_formula >= 0 ? "density" : "viscosity",
                      "as a function is not available with method \"%s\"; use method = \"%s\", or "
                      "give a number",
                      def->method, method_with(place, offsetof(un_traits, mixed)));
}

void un_read_fluid(un_place *place, int t, un_scene_def *def)
{
    static const char *const keys[] = {"density", "viscosity", "surface_tension", NULL};
    un_matter *m = &def->fluid.matter;
    int fluid = un_open_table(place, t, "fluid", "{ density = 1000 }");
    if (!fluid) return;
    un_check_keys(place, fluid, keys, false);
    read_formula(place, fluid, "density", density_range, &m->density, &m->density_formula);
    read_formula(place, fluid, "viscosity", viscosity_range, &m->viscosity, &m->viscosity_formula);
    un_read_number(place, fluid, "surface_tension", tension_range, &def->fluid.surface_tension);
    if (!def->traits->tension && def->fluid.surface_tension > 0)
        un_place_fail(place, "surface_tension",
                      "is not available with method \"%s\"; use method = \"%s\", or leave it out",
                      def->method, method_with(place, offsetof(un_traits, tension)));
    refuse_matter(place, def, m);
    un_close_table(place, fluid);
}

void un_read_emitted(const un_place *place, int t, un_source *source)
{
    un_matter *m = &source->matter;
    *m = (un_matter){.density_formula = -1, .viscosity_formula = -1};
    source->has_density =
        read_formula(place, t, "density", density_range, &m->density, &m->density_formula);
    source->has_viscosity =
        read_formula(place, t, "viscosity", viscosity_range, &m->viscosity, &m->viscosity_formula);
}

void un_complete_source(const un_place *place, un_source *source, const un_scene_def *def)
{
    const un_matter *all = &def->fluid.matter;
    un_matter *m = &source->matter;
    if (!def->traits->mixed && (source->has_density || source->has_viscosity))
        un_place_fail(place, NULL,
                      "%s: density and viscosity of its own are not available with method "
                      "\"%s\"; use method = \"%s\"",
                      source->name, def->method, method_with(place, offsetof(un_traits, mixed)));
    if (!source->has_density) {
        m->density = all->density;
        m->density_formula = all->density_formula;
    }
    if (!source->has_viscosity) {
        m->viscosity = all->viscosity;
        m->viscosity_formula = all->viscosity_formula;
    }
}

/* ---- slip ---- */

bool un_read_slip(const un_place *place, int t, const char *key, double *slip)
{
    lua_State *L = place->L;
    if (!un_get_field(place, t, key)) return false;
    bool free = lua_type(L, -1) == LUA_TNUMBER && lua_tonumber(L, -1) == INFINITY;
    lua_pop(L, 1);
    *slip = INFINITY;
    return free || un_read_number(place, t, key, (un_bounds){0, 1e9, false}, slip);
}

void un_read_slips(un_place *place, int t, const char *const *side_names, double slip[6])
{
    lua_State *L = place->L;
    double all;
    if (!un_get_field(place, t, "slip")) return;
    bool number = lua_type(L, -1) == LUA_TNUMBER;
    lua_pop(L, 1);
    if (number) {
        un_read_slip(place, t, "slip", &all);
        for (int side = 0; side < 6; side++) slip[side] = all;
        return;
    }
    int sides = un_open_table(place, t, "slip", "{ front = math.huge, back = math.huge }");
    un_check_keys(place, sides, side_names, false);
    for (int side = 0; side < 6 && side_names[side]; side++) /* in 2D there are four */
        un_read_slip(place, sides, side_names[side], &slip[side]);
    un_close_table(place, sides);
}

/* ---- questions about the liquid ---- */

bool un_scene_viscous(const un_scene_def *def)
{
    bool viscous = def->fluid.matter.viscosity > 0 || def->fluid.matter.viscosity_formula >= 0;
    for (int32_t i = 0; i < def->source_count; i++) {
        const un_matter *m = &def->sources[i].matter;
        if (def->sources[i].kind != UN_SOURCE_EMITTER) continue;
        viscous |= m->viscosity > 0 || m->viscosity_formula >= 0;
    }
    return viscous;
}

bool un_scene_mixed(const un_scene_def *def)
{
    const un_matter *all = &def->fluid.matter;
    bool mixed = all->density_formula >= 0 || all->viscosity_formula >= 0;
    for (int32_t i = 0; i < def->source_count; i++) {
        const un_matter *m = &def->sources[i].matter;
        if (def->sources[i].kind != UN_SOURCE_EMITTER) continue;
        mixed |= m->density_formula >= 0 || m->viscosity_formula >= 0 ||
                 m->density != all->density || m->viscosity != all->viscosity;
    }
    return mixed;
}

/* ---- calling ---- */

typedef struct formula_call {
    int32_t function;
    const char *key;
    un_bounds range;
    int64_t count, n; /* n: the current place */
    const un_vec3 *x;
    float *value;
} formula_call;

static void call_formula(lua_State *L, void *arg)
{
    formula_call *c = arg;
    un_sandbox *s = un_sandbox_of(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, c->function);
    for (c->n = 0; c->n < c->count; c->n++) {
        double value = un_call_at(L, FORMULA_STEPS, c->x[c->n], NULL);
        bool low = c->range.above ? !(value > c->range.min) : !(value >= c->range.min);
        if (low || !(value <= c->range.max)) {
            un_place place = {.L = L, .root = "scene", .line = s->scene_line};
            snprintf(place.path, sizeof place.path, "fluid");
            un_place_fail(&place, c->key, "must return a number %s %g and at most %g, got %s",
                          c->range.above ? "above" : "from", c->range.min, c->range.max,
                          un_describe(L, 2).text);
        }
        c->value[c->n] = (float)value;
        lua_settop(L, 1);
    }
}

static un_status evaluate(const un_scene *scene, formula_call *c, double number)
{
    if (c->function < 0) {
        for (int64_t i = 0; i < c->count; i++) c->value[i] = (float)number;
        return UN_OK;
    }
    char activity[32], text[160];
    snprintf(activity, sizeof activity, "fluid.%s", c->key);
    const un_limits limits = {activity, "is there an endless loop?", FORMULA_STEPS,
                              FORMULA_SECONDS};
    un_status status = un_sandbox_call(scene->sandbox, call_formula, c, &limits);
    un_vec3 at = c->n < c->count ? c->x[c->n] : un_v3(0, 0, 0);
    snprintf(text, sizeof text, "in %s at x, y, z = %g, %g, %g", activity, at.x, at.y, at.z);
    return un_add_circumstance(scene, status, text);
}

un_status un_scene_matter(const un_scene *scene, const un_matter *matter, const un_vec3 *x,
                          int64_t count, float *density, float *viscosity)
{
    formula_call d = {matter->density_formula, "density", density_range, count, 0, x, density};
    formula_call v = {
        matter->viscosity_formula, "viscosity", viscosity_range, count, 0, x, viscosity};
    UN_TRY(evaluate(scene, &d, matter->density));
    return evaluate(scene, &v, matter->viscosity);
}

/* Finds most mistakes before a run starts. */
un_status un_check_fluid(const un_scene *scene)
{
    const un_scene_def *def = &scene->def;
    un_vec3 size = def->domain.size, x = un_v3(0.43 * size.x, 0.29 * size.y, 0.58 * size.z);
    float density, viscosity;
    UN_TRY(un_scene_matter(scene, &def->fluid.matter, &x, 1, &density, &viscosity));
    for (int32_t i = 0; i < def->source_count; i++)
        if (def->sources[i].kind == UN_SOURCE_EMITTER)
            UN_TRY(un_scene_matter(scene, &def->sources[i].matter, &x, 1, &density, &viscosity));
    return UN_OK;
}
