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

/* Share of a film's leaves that are thick: `cells` deep, over a floor that cuts its lowest leaves
 * so that this share of them is open. */
static double thick_film(double open, double cells)
{
    un_context *ctx = check_context();
    un_arena arena;
    un_octree tree;
    un_leaves leaves = {0};
    un_arena_init(&arena, ctx);
    un_octree_init(ctx, &tree, un_v3(1, 1, 1), 16, 16);
    check_ok(ctx, un_octree_build(&tree, &arena, &(un_octree_request){0}));
    check_ok(ctx, un_leaves_build(&leaves, ctx, &tree));
    un_leaf_walls walls = {.volume = un_alloc(ctx, (size_t)leaves.count, sizeof(float))};
    float *phi = un_alloc(ctx, (size_t)leaves.count, sizeof *phi);
    double h = tree.h, floor = (4 - open) * h;
    for (int32_t c = 0; c < leaves.count; c++) {
        double low = leaves.x[c].y - 0.5 * h;
        phi[c] = (float)(leaves.x[c].y - floor - cells * h);
        walls.volume[c] = (float)un_clamp((low + h - floor) / h, 0, 1);
    }
    un_leaf_level_set def = {.phi = phi, .leaves = &leaves, .walls = &walls};
    uint8_t *thick;
    double wet = 0, found = 0;
    check_ok(ctx, un_surface_thick_leaves(ctx, &arena, &thick, &def));
    for (int32_t c = 0; c < leaves.count; c++) {
        if (!(walls.volume[c] > 0) || !(phi[c] < 0)) continue;
        wet++;
        found += thick[c];
    }
    un_free(ctx, phi);
    un_free(ctx, walls.volume);
    un_leaves_free(&leaves);
    un_octree_free(&tree);
    un_arena_free(&arena);
    check_context_end(ctx);
    return found / wet;
}

/* Wherever the floor lies in its leaves: a sheet that shoots over it must not change from thick to
 * thin with that. */
static void films_on_floors_between_leaves_are_not_thick(void **state)
{
    (void)state;
    for (double open = 0.05; open <= 1; open += 0.05) {
        check_near(thick_film(open, 0.95), 0, 0);
        check_near(thick_film(open, 2.05), 1, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_thick_and_sheets_are_not),
        cmocka_unit_test(films_on_floors_between_leaves_are_not_thick)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
