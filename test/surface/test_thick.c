/* Where liquid is thick: pools up to their edges, and no sheet. */
#include "surface/vessel.h"

#include "check.h"
#include "surface/fields.h"

/* Shares of the liquid cells that are thick in a box of liquid with this floor and top. */
static double thick_share(un_vec3 size, double floor, double top)
{
    vessel v;
    vessel_begin(&v, 2, size, 16);
    vessel_build(&v);
    vessel_pour(&v, tank_box(&v.tank, un_v3(-1, floor, -1), un_v3(2, top, 2)), un_v3(0, 0, 0));
    const un_grid *g = &v.tank.grid;
    uint8_t *thick;
    double wet = 0, found = 0;
    check_ok(v.tank.ctx,
             un_surface_thick_grid(v.tank.ctx, &v.arena, &thick, v.phi, g, v.tank.walls));
    for (int64_t c = 0; c < g->cell_count; c++) {
        if (!(v.tank.walls->volume[c] > 0)) continue;
        wet += v.phi[c] < 0;
        found += v.phi[c] < 0 && thick[c];
    }
    double part = un_colour_volume(v.tank.ctx, v.phi, g, v.tank.walls, thick);
    double whole = un_colour_volume(v.tank.ctx, v.phi, g, v.tank.walls, NULL);
    assert_true(wet > 0);
    check_near(part, found == wet ? whole : 0, 1e-12);
    vessel_end(&v);
    return found / wet;
}

static void pools_are_thick_and_sheets_are_not(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        un_vec3 size = un_v3(1, 1, flat ? 0 : 1);
        check_near(thick_share(size, -1, 0.5), 1, 0);
        check_near(thick_share(size, -1, 0.13), 1, 0); /* two cells over the floor */
        check_near(thick_share(size, -1, 0.07), 0, 0); /* one */
        check_near(thick_share(size, 0.4, 0.62), 1, 0);
        check_near(thick_share(size, 0.5, 0.6), 0, 0); /* a sheet in the air */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pools_are_thick_and_sheets_are_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
