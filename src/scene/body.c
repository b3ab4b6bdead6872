/* Solids with a density: bodies that the liquid moves. */
#include "scene/loader.h"

#include <stdio.h>

/* Bodies may overlap at the start by this share of the smaller one's size; contacts part them. */
#define OVERLAP 0.02
/* How they hold without friction of their own. */
#define GRIP 0.5

/* The words of hold, by bit. */
static const char *const axes[] = {"x", "y", "z", "rx", "ry", "rz", NULL};

static void read_hold(const un_place *place, un_node *node)
{
    lua_State *L = place->L;
    if (!un_get_field(place, 1, "hold")) return;
    const char *at = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    while (*at) {
        size_t length = strcspn(at, " ,");
        int axis = 0;
        while (axes[axis] &&
               !(strlen(axes[axis]) == length && strncmp(axes[axis], at, length) == 0))
            axis++;
        if (length > 0 && !axes[axis]) break;
        if (length > 0) node->hold |= 1u << axis;
        at += length + (at[length] != 0);
    }
    if (*at || !node->hold)
        un_place_fail(place, "hold",
                      "must name axes that the body keeps, as in \"x z\" (along x and z) or \"rx "
                      "rz\" (about x and z), got %s",
                      un_describe(L, -1).text);
    lua_pop(L, 1);
}

/* In 2D a number will do. */
static bool read_spin(const un_place *place, un_node *node)
{
    lua_State *L = place->L;
    if (!un_get_field(place, 1, "spin")) return false;
    bool number = lua_type(L, -1) == LUA_TNUMBER;
    lua_pop(L, 1);
    if (!number) return un_read_vec3(place, 1, "spin", &node->spin);
    un_need_flat(place, "spin", 1);
    return un_read_number(place, 1, "spin", (un_bounds){-1e6, 1e6, false}, &node->spin.z);
}

void un_read_body(const un_place *place, un_node *node)
{
    bool given = un_read_number(place, 1, "density", (un_bounds){0, 1e6, true}, &node->density);
    bool spins = read_spin(place, node);
    bool bounces =
        un_read_number(place, 1, "restitution", (un_bounds){0, 1, false}, &node->restitution);
    read_hold(place, node);
    node->has_body = given || spins || bounces || node->hold;
    if (!given && spins)
        un_place_fail(place, "spin",
                      "is for bodies that the liquid moves; give the solid a density (kg/m3) too, "
                      "or a pose function instead");
    if (!given && node->hold)
        un_place_fail(place, "hold",
                      "is for bodies that the liquid moves; give the solid a density (kg/m3) too");
}

/* ---- when the whole scene is known ---- */

void un_take_body(const un_place *own, const un_scene *scene, un_solid *solid, const un_node *node)
{
    const un_scene_def *def = &scene->def;
    solid->restitution = node->restitution;
    solid->grip = node->has_friction ? node->friction : -1;
    solid->line = own->line;
    if (!(node->density > 0)) return;
    if (!def->traits->bodies) {
        const un_traits *other = un_traits_find(scene->methods, offsetof(un_traits, bodies));
        un_place_fail(own, "density",
                      "(a body that the liquid moves) is not available with method = \"%s\"; use "
                      "method = \"%s\", or move the solid by velocity or pose",
                      def->method, other ? other->name : "another");
    }
    if (node->has_pose)
        un_place_fail(own, "density",
                      "and pose exclude each other: a solid with a pose moves as the scene says, "
                      "one with a density as the liquid does; keep one of them");
    if (!un_shape_is_closed(solid->shape) ||
        !un_shape_mass(solid->shape, def->domain.dim, &solid->sums))
        un_place_fail(own, "density",
                      "needs a closed shape of a finite size, and this one is open, endless or empty; "
                      "close the mesh's holes, or leave density out");
    if (def->domain.dim == 2 && (node->spin.x != 0 || node->spin.y != 0))
        un_place_fail(own, "spin", "must be about z in 2D, as in spin = 2");
    solid->density = node->density;
    solid->spin = node->spin;
    solid->hold = node->hold;
    if (!node->has_friction) solid->grip = GRIP;
    if (def->domain.dim == 2) solid->hold |= 1u << 2 | 1u << 3 | 1u << 4;
}

static _Noreturn void fail_at(lua_State *L, const un_solid *solid, const char *text)
{
    un_place own = {.L = L, .root = "solid", .line = solid->line};
    un_place_say(&own, NULL, "%s: %s", solid->label, text);
}

static void check_inside(lua_State *L, const un_scene_def *def, const un_solid *solid)
{
    static const char *const names[] = {"left side", "right side", "bottom",
                                        "top",       "back side",  "front side"};
    un_box3 b = un_shape_bounds(solid->shape);
    const double low[3] = {b.min.x, b.min.y, b.min.z}, high[3] = {b.max.x, b.max.y, b.max.z};
    const double size[3] = {def->domain.size.x, def->domain.size.y, def->domain.size.z};
    char text[240];
    for (int a = 0; a < def->domain.dim; a++) {
        double slack = 1e-6 * size[a];
        if (high[a] - low[a] > size[a] + slack) {
            snprintf(text, sizeof text,
                     "the body is larger than the domain: %.4g m along %c, where there are %.4g m; "
                     "shrink it or enlarge domain.size",
                     high[a] - low[a], 'x' + a, size[a]);
            fail_at(L, solid, text);
        }
        for (int side = 0; side < 2; side++) {
            double beyond = side ? high[a] - size[a] : -low[a];
            if (beyond <= slack || def->domain.open[2 * a + side]) continue;
            snprintf(text, sizeof text,
                     "the body reaches %.4g m beyond the %s of the domain; move it inside", beyond,
                     names[2 * a + side]);
            fail_at(L, solid, text);
        }
    }
}

/* How deep points of one solid's surface lie in the other. */
static double overlap(const un_solid *a, const un_solid *b, int32_t dim, un_vec3 *points)
{
    double deepest = 0;
    int32_t count = un_shape_points(a->shape, dim, points, UN_SHAPE_POINTS);
    for (int32_t i = 0; i < count; i++)
        deepest = fmax(deepest, -un_shape_distance(b->shape, points[i]));
    return deepest;
}

static double shape_size(const un_shape *shape, int32_t dim)
{
    un_box3 b = un_shape_bounds(shape);
    un_vec3 side = un_sub(b.max, b.min);
    return fmin(fmin(side.x, side.y), dim == 2 ? INFINITY : side.z);
}

static bool boxes_touch(const un_shape *a, const un_shape *b)
{
    un_box3 p = un_shape_bounds(a), q = un_shape_bounds(b);
    return p.min.x <= q.max.x && q.min.x <= p.max.x && p.min.y <= q.max.y && q.min.y <= p.max.y &&
           p.min.z <= q.max.z && q.min.z <= p.max.z;
}

void un_check_bodies(lua_State *L, const un_scene *scene)
{
    const un_scene_def *def = &scene->def;
    un_vec3 *points = NULL;
    for (int32_t i = 0; i < def->solid_count; i++) {
        const un_solid *a = &def->solids[i];
        if (!(a->density > 0)) continue;
        if (!points) points = lua_newuserdatauv(L, UN_SHAPE_POINTS * sizeof *points, 0);
        check_inside(L, def, a);
        for (int32_t j = 0; j < def->solid_count; j++) {
            const un_solid *b = &def->solids[j];
            if (j == i || (b->density > 0 && j < i) || !boxes_touch(a->shape, b->shape)) continue;
            if (b->pose >= 0) continue; /* it starts where its pose puts it */
            double deep = fmax(overlap(a, b, def->domain.dim, points),
                               overlap(b, a, def->domain.dim, points));
            double size =
                fmin(shape_size(a->shape, def->domain.dim), shape_size(b->shape, def->domain.dim));
            if (deep <= OVERLAP * size) continue;
            char text[240];
            snprintf(text, sizeof text,
                     "the body overlaps %s by %.3g m at the start; move them apart", b->label,
                     deep);
            fail_at(L, a, text);
        }
    }
}
