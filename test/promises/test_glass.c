/* Promises of every method that parts thin walls: water stays in vessels that have them, and rests
 * there. Others warn of such walls. test-labels: slow */
#include "promises/promise.h"

/* Of a method without particles: its surface ends in the wall. */
static void surface_holds(world *w, bool (*holds)(un_vec3))
{
    un_trimesh mesh;
    check_ok(w->ctx, w->method->surface(w->state, &mesh));
    for (int32_t v = 0; v < mesh.vertex_count; v++) {
        double d = INFINITY;
        un_bodies_nearest(un_method_bodies(w->state), mesh.position[v], &d);
        if (!holds(mesh.position[v]))
            check_below(d, 0.003); /* its cells are half as wide as those of the mesh */
    }
    un_trimesh_free(w->ctx, &mesh);
}

/* Runs a vessel with a wall of so many cells; no particle is on the other side of its wall. */
static void rests(const un_method *method, const char *shape, double wall, bool (*holds)(un_vec3))
{
    char text[1200];
    world w;
    snprintf(
        text, sizeof text,
        "local w = %g * 0.012\nlocal vessel, water\n%s\nscene { domain = { size = {0.24, 0.24, "
        "0.24} }, detail = { coarsest = 5, finest = 20 }, liquid = { water }, solids = { "
        "vessel } }",
        wall, shape);
    promise_begin(&w, method, CHECK_THREADS, text);
    world_run(&w, 0.4);
    check_below(w.max_speed, 0.4); /* where the surface meets the wall it finds its place first */
    w.max_speed = 0;
    world_run(&w, 0.5);
    check_below(w.max_speed, 0.02);
    check_below(fabs(w.step.volume_error), 0.01);
    const un_particles *p = method->particles ? method->particles(w.state) : NULL;
    for (int64_t q = 0; p && q < p->count; q++) assert_true(holds(un_particle_position(p, q)));
    if (!p) surface_holds(&w, holds);
    world_end(&w);
}

static bool in_glass(un_vec3 x)
{
    double r = hypot(x.x - 0.12, x.z - 0.12);
    return r < 0.08 + 1e-6 && x.y > 0.04 - 1e-6;
}

static const char glass[] =
    "vessel = subtract { cylinder { from = {0.12, 0.04 - w, 0.12}, to = {0.12, 0.2, 0.12}, radius "
    "= 0.08 + w }, cylinder { from = {0.12, 0.04, 0.12}, to = {0.12, 0.3, 0.12}, radius = 0.08 } } "
    "water = cylinder { from = {0.12, 0.04, 0.12}, to = {0.12, 0.13, 0.12}, radius = 0.08 }";

static void glasses_hold_water(const un_method *method)
{
    rests(method, glass, 0.5, in_glass); /* of a cell: test_vessels.c */
}

static bool in_tub(un_vec3 x)
{
    double c = cos(25 * UN_PI / 180), s = sin(25 * UN_PI / 180);
    double a = c * (x.x - 0.12) + s * (x.y - 0.11), b = c * (x.y - 0.11) - s * (x.x - 0.12);
    return fabs(a) < 0.06 + 1e-6 && b > -0.06 - 1e-6 && fabs(x.z - 0.12) < 0.06 + 1e-6;
}

static const char tub[] =
    "local function tub(d, top) return move { box { min = {-0.06 - d, -0.06 - d, -0.06 - d}, max = "
    "{0.06 + d, top, 0.06 + d} }, by = {0.12, 0.11, 0.12}, rotate = { axis = {0, 0, 1}, angle = 25 "
    "} } end vessel = subtract { tub(w, 0.07), tub(0, 0.2) } water = intersect { tub(0, 0.2), box "
    "{ min = {0, 0, 0}, max = {0.24, 0.12, 0.24} } }";

/* A wall of one cell, and one that the mesh sees as any other solid. */
static void tilted_tubs_hold_water(const un_method *method)
{
    rests(method, tub, 1, in_tub); /* others: make validate VALIDATE=glass */
}

int main(void)
{
    static const promise promises[] = {
        {"glasses_hold_water", glasses_hold_water, method_parts_thin_walls, false},
        {"tilted_tubs_hold_water", tilted_tubs_hold_water, method_parts_thin_walls, false},
    };
    check_races_in("none: other promises have them");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
