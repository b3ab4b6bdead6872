/* Cells of any kind: sound ones and damaged ones, those of grid and tets, and cuts through them. */
#include "cells.h"
#include "trees.h"

static void damage_is_seen(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int i = 0; i < 9; i++) {
        un_cells cells;
        const char *reason;
        check_make_cubes(ctx, &cells, 2, UN_CELL_VOXEL);
        if (i == 1) cells.corner[9] = 27;
        if (i == 2) cells.corner[9] = -1;
        if (i == 3) cells.type[3] = 13;
        if (i == 4) cells.type[3] = UN_CELL_TETRA;
        if (i == 5) cells.first[4] = 33;
        if (i == 6) cells.first[8] = 40; /* the last cells lie beyond the corners */
        if (i == 7) cells.point[5].y = NAN;
        if (i == 8)
            for (int k = 0; k < 8; k++) cells.corner[k] = 0;
        assert_int_equal(un_cells_validate(&cells, &reason), i == 0);
        assert_true((reason == NULL) == (i == 0));
        un_cells_free(ctx, &cells);
    }
    check_context_end(ctx);
}

/* ---- from the grid ---- */

typedef struct tank {
    un_grid grid;
    float *phi, *open;
    double *p, *u[3];
} tank;

/* A ball of liquid; the lower half of x is closed. */
static tank make_tank(un_context *ctx)
{
    tank t = {.grid = un_grid_make(un_v3(1, 0.8, 0.6), 20)};
    size_t count = (size_t)t.grid.cell_count;
    t.phi = un_alloc(ctx, count, sizeof *t.phi);
    t.open = un_alloc(ctx, count, sizeof *t.open);
    t.p = un_alloc(ctx, count, sizeof *t.p);
    for (int a = 0; a < 3; a++) t.u[a] = un_alloc(ctx, count, sizeof *t.u[a]);
    for (int32_t k = 0; k < t.grid.n[2]; k++)
        for (int32_t j = 0; j < t.grid.n[1]; j++)
            for (int32_t i = 0; i < t.grid.n[0]; i++) {
                int64_t c = un_grid_cell(&t.grid, i, j, k);
                un_vec3 x = un_grid_center(&t.grid, i, j, k);
                t.phi[c] = (float)(un_length(un_sub(x, un_v3(0.5, 0.4, 0.3))) - 0.25);
                t.open[c] = x.x > 0.5;
                t.p[c] = x.x + 2 * x.y + 3 * x.z;
                t.u[0][c] = x.x - 0.5 * t.grid.h, t.u[1][c] = 5, t.u[2][c] = x.z;
            }
    return t;
}

static void free_tank(un_context *ctx, tank *t)
{
    un_free(ctx, t->phi);
    un_free(ctx, t->open);
    un_free(ctx, t->p);
    for (int a = 0; a < 3; a++) un_free(ctx, t->u[a]);
}

static un_vec3 center_of(const un_cells *cells, int64_t c)
{
    un_vec3 sum = {0, 0, 0};
    int32_t corners = cells->first[c + 1] - cells->first[c];
    for (int32_t k = cells->first[c]; k < cells->first[c + 1]; k++)
        sum = un_mad(sum, cells->point[cells->corner[k]], 1.0 / corners);
    return sum;
}

/* Sound, and every point is used and there once. */
static void check_cells(un_context *ctx, const un_cells *cells)
{
    const char *reason;
    if (!un_cells_validate(cells, &reason)) fail_msg("%s", reason);
    uint8_t *used = un_alloc_zero(ctx, (size_t)cells->point_count + 1, 1);
    for (int32_t k = 0; k < cells->first[cells->count]; k++) used[cells->corner[k]] = 1;
    for (int32_t i = 0; i < cells->point_count; i++) {
        assert_true(used[i]);
        for (int32_t j = 0; j < i && i < 2000; j++)
            assert_true(un_length(un_sub(cells->point[i], cells->point[j])) > 1e-9);
    }
    un_free(ctx, used);
}

static void cubes_of_the_grid(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    tank t = make_tank(ctx);
    un_cells cells;
    un_grid_cells in = {.grid = &t.grid, .phi = t.phi, .open = t.open, .p = t.p, .u = t.u};
    int64_t wanted = 0;
    for (int64_t c = 0; c < t.grid.cell_count; c++) wanted += t.phi[c] < 0 && t.open[c] > 0;
    check_ok(ctx, un_cells_from_grid(ctx, &cells, &in));
    assert_true(wanted > 100);
    assert_int_equal(cells.count, wanted);
    check_cells(ctx, &cells);
    for (int64_t c = 0; c < cells.count; c++) {
        un_vec3 x = center_of(&cells, c);
        assert_int_equal(cells.type[c], UN_CELL_VOXEL);
        check_near(un_cells_size(&cells, c), t.grid.h, 1e-12);
        check_near(cells.pressure[c], x.x + 2 * x.y + 3 * x.z, 1e-12);
        check_near(cells.velocity[c].x, x.x, 1e-12);
        check_near(cells.velocity[c].y, 5, 0);
        assert_true(x.x > 0.5 && un_length(un_sub(x, un_v3(0.5, 0.4, 0.3))) < 0.25);
    }
    un_cells_free(ctx, &cells);
    free_tank(ctx, &t);
    check_context_end(ctx);
}

/* ---- from tets ---- */

typedef struct pond {
    un_octree tree;
    un_tets mesh;
    float *phi, *walls;
    double *p[2];
    un_vec3 *u;
} pond;

static void make_pond(un_context *ctx, pond *t, const check_tree_def *def)
{
    un_arena arena;
    check_build_tree(ctx, &t->tree, def, 7);
    un_arena_init(&arena, ctx);
    un_tets_init(ctx, &t->mesh);
    check_ok(ctx, un_tets_build(&t->mesh, &arena, &t->tree));
    un_arena_free(&arena);
    size_t nodes = (size_t)t->mesh.node_count;
    t->phi = un_alloc(ctx, nodes, sizeof *t->phi);
    t->walls = un_alloc(ctx, nodes, sizeof *t->walls);
    for (int k = 0; k < 2; k++) t->p[k] = un_alloc(ctx, nodes, sizeof *t->p[k]);
    t->u = un_alloc(ctx, nodes, sizeof *t->u);
    for (size_t n = 0; n < nodes; n++) {
        un_vec3 x = t->mesh.x[n];
        t->phi[n] = (float)(x.y - 0.61 * def->size.y);
        t->walls[n] = (float)(x.x - 0.23 * def->size.x);
        t->p[0][n] = x.x, t->p[1][n] = 10 * x.y;
        t->u[n] = un_v3(x.z, 2 * x.y, -x.x);
    }
}

static void free_pond(un_context *ctx, pond *t)
{
    un_free(ctx, t->phi);
    un_free(ctx, t->walls);
    un_free(ctx, t->p[0]);
    un_free(ctx, t->p[1]);
    un_free(ctx, t->u);
    un_tets_free(&t->mesh);
    un_octree_free(&t->tree);
}

static un_tets_cells pond_cells(const pond *t)
{
    return (un_tets_cells){&t->mesh, t->phi, t->walls, 2, t->p, t->u};
}

static void tets_of_the_liquid(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int i = 0; i < CHECK_TREE_COUNT; i++) {
        pond t;
        un_cells cells;
        make_pond(ctx, &t, &check_trees[i]);
        un_tets_cells in = pond_cells(&t);
        check_ok(ctx, un_cells_from_tets(ctx, &cells, &in));
        check_cells(ctx, &cells);
        int64_t c = 0;
        for (int32_t n = 0; n < t.mesh.tet_count; n++) {
            un_vec3 x = un_tets_center(&t.mesh, n);
            double depth = x.y - 0.61 * check_trees[i].size.y;
            double off = x.x - 0.23 * check_trees[i].size.x;
            assert_true(fabs(depth) > 1e-7 && fabs(off) > 1e-7); /* or both ways are right */
            if (depth > 0 || off < 0) continue;
            assert_true(c < cells.count);
            assert_int_equal(cells.type[c], UN_CELL_TETRA);
            assert_int_equal(cells.level[c], t.mesh.level[n]);
            check_near(un_length(un_sub(center_of(&cells, c), x)), 0, 1e-12);
            check_near(cells.pressure[c], x.x + 10 * x.y, 1e-12);
            check_near(un_length(un_sub(cells.velocity[c], un_v3(x.z, 2 * x.y, -x.x))), 0, 1e-12);
            double h = un_tets_size(&t.mesh, n), size = un_cells_size(&cells, c);
            assert_true(fabs(size - h) < 1e-9 * h || fabs(size - 0.5 * h) < 1e-9 * h);
            c++;
        }
        assert_int_equal(c, cells.count);
        un_cells_free(ctx, &cells);
        free_pond(ctx, &t);
    }
    check_context_end(ctx);
}

/* ---- cuts ---- */

static double along(un_vec3 x, int axis)
{
    return axis == 0 ? x.x : axis == 1 ? x.y : x.z;
}

static double polygon_area(const un_slice *s, int32_t i, int axis)
{
    double area = 0;
    un_vec3 o = s->point[s->corner[s->first[i]]];
    for (int32_t k = s->first[i] + 2; k < s->first[i + 1]; k++)
        area += 0.5 * along(un_cross(un_sub(s->point[s->corner[k - 1]], o),
                                     un_sub(s->point[s->corner[k]], o)),
                            axis);
    return area;
}

/* Polygons lie in the plane and in their cells, turn the right way and cover what they should; and
 * each of their edges has one polygon on each side, unless it is at the end of the cells. */
static void check_slice(un_context *ctx, const un_slice *s, const un_cells *cells, int axis,
                        double at, double wanted)
{
    double area = 0;
    for (int32_t i = 0; i < s->point_count; i++) assert_true(along(s->point[i], axis) == at);
    for (int32_t i = 0; i < s->count; i++) {
        int32_t c = s->cell[i];
        un_vec3 lo = cells->point[cells->corner[cells->first[c]]], hi = lo;
        for (int32_t k = cells->first[c]; k < cells->first[c + 1]; k++) {
            lo = un_min3(lo, cells->point[cells->corner[k]]);
            hi = un_max3(hi, cells->point[cells->corner[k]]);
        }
        assert_true(i == 0 || c > s->cell[i - 1]);
        assert_true(s->first[i + 1] - s->first[i] >= 3);
        for (int32_t k = s->first[i]; k < s->first[i + 1]; k++)
            for (int a = 0; a < 3; a++) {
                double x = along(s->point[s->corner[k]], a);
                assert_true(x >= along(lo, a) - 1e-12 && x <= along(hi, a) + 1e-12);
            }
        double own = polygon_area(s, i, axis);
        assert_true(own > -1e-15);
        area += own;
    }
    check_near(area, wanted, 1e-12 + 1e-9 * wanted);
    /* edges, as pairs of points */
    int32_t count = s->count > 0 ? s->first[s->count] : 0, inner = 0, kept = 0;
    uint64_t *edge = un_alloc(ctx, (size_t)count + 1, sizeof *edge);
    un_arena arena;
    un_arena_init(&arena, ctx);
    for (int32_t i = 0; i < s->count; i++)
        for (int32_t k = s->first[i]; k < s->first[i + 1]; k++) {
            uint64_t p = (uint64_t)s->corner[k];
            uint64_t q = (uint64_t)s->corner[k + 1 < s->first[i + 1] ? k + 1 : s->first[i]];
            un_vec3 x = un_scale(un_add(s->point[p], s->point[q]), 0.5);
            bool border = false; /* of the unit cube */
            for (int a = 0; a < 3; a++)
                if (a != axis) border |= along(x, a) < 1e-12 || along(x, a) > 1 - 1e-12;
            if (!border) edge[kept++] = p < q ? p << 32 | q : q << 32 | p;
        }
    check_ok(ctx, un_parallel_sort_keys(ctx, &arena, edge, kept, 64));
    for (int32_t k = 0; k < kept; k += 2, inner++) {
        assert_true(k + 1 < kept && edge[k] == edge[k + 1]);
        assert_true(k + 2 >= kept || edge[k + 2] != edge[k]);
    }
    un_arena_free(&arena);
    un_free(ctx, edge);
}

static void cuts_cover_the_plane(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const check_tree_def def = {{1, 1, 1}, 2, 16, 12, 0, false};
    for (int kind = 0; kind < 3; kind++) {
        un_cells cells;
        if (kind < 2) {
            check_make_cubes(ctx, &cells, 8, kind ? UN_CELL_HEXAHEDRON : UN_CELL_VOXEL);
        } else {
            pond t;
            make_pond(ctx, &t, &def);
            for (int32_t n = 0; n < t.mesh.node_count; n++) t.phi[n] = -1, t.walls[n] = 1;
            un_tets_cells in = pond_cells(&t);
            check_ok(ctx, un_cells_from_tets(ctx, &cells, &in));
            assert_int_equal(cells.count, t.mesh.tet_count);
            free_pond(ctx, &t);
        }
        /* anywhere, through nodes and faces, through the ends */
        static const double places[] = {0.4371, 0.5 - 1e-9, 0.5, 0.25, 0.03125, 0.375, 0, 1, -0.1};
        for (int axis = 0; axis < 3; axis++)
            for (int i = 0; i < 9; i++) {
                un_slice slice;
                check_ok(ctx, un_cells_cut(ctx, &slice, &cells, axis, places[i]));
                check_slice(ctx, &slice, &cells, axis, places[i],
                            places[i] >= 0 && places[i] < 1 ? 1 : 0);
                if (kind < 2 && i < 7) assert_int_equal(slice.count, 64);
                if (kind < 2 && i < 7) assert_int_equal(slice.point_count, 81);
                un_slice_free(ctx, &slice);
            }
        un_cells_free(ctx, &cells);
    }
    check_context_end(ctx);
}

/* In two dimensions the cells are the polygons. */
static void flat_cells_in_their_plane(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    static const un_vec3 points[] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {2, 0.5, 0}};
    static const int32_t corners[] = {0, 1, 2, 3, 1, 4, 2};
    un_cells cells;
    un_slice slice;
    const char *reason;
    check_ok(ctx, un_cells_alloc(ctx, &cells, 5, 2, 7));
    memcpy(cells.point, points, sizeof points);
    memcpy(cells.corner, corners, sizeof corners);
    cells.type[0] = UN_CELL_QUAD, cells.type[1] = UN_CELL_TRIANGLE;
    cells.first[1] = 4, cells.first[2] = 7;
    assert_true(un_cells_validate(&cells, &reason));
    check_ok(ctx, un_cells_cut(ctx, &slice, &cells, 2, 0));
    assert_int_equal(slice.count, 2);
    assert_int_equal(slice.point_count, 5);
    check_near(polygon_area(&slice, 0, 2), 1, 1e-15);
    check_near(polygon_area(&slice, 1, 2), 0.5, 1e-15);
    un_slice_free(ctx, &slice);
    check_ok(ctx, un_cells_cut(ctx, &slice, &cells, 2, 0.1));
    assert_int_equal(slice.count, 0);
    un_slice_free(ctx, &slice);
    check_ok(ctx, un_cells_cut(ctx, &slice, &cells, 0, 0.5));
    assert_int_equal(slice.count, 0);
    un_slice_free(ctx, &slice);
    un_cells_free(ctx, &cells);
    check_ok(ctx, un_cells_cut(ctx, &slice, &cells, 0, 0.5)); /* none at all */
    assert_int_equal(slice.point_count, 0);
    un_slice_free(ctx, &slice);
    check_context_end(ctx);
}

static void has_the_same_bits_for_any_threads(void **state)
{
    (void)state;
    un_cells cells[2];
    un_slice slice[2];
    un_context *ctx[2];
    for (int i = 0; i < 2; i++) {
        ctx[i] = check_context_threads(i ? 4 : 1);
        pond t;
        make_pond(ctx[i], &t, &check_trees[8]);
        un_tets_cells in = pond_cells(&t);
        check_ok(ctx[i], un_cells_from_tets(ctx[i], &cells[i], &in));
        check_ok(ctx[i], un_cells_cut(ctx[i], &slice[i], &cells[i], 2, 0.21));
        free_pond(ctx[i], &t);
    }
    assert_true(cells[0].count > 10000 && slice[0].count > 500);
    assert_int_equal(cells[0].count, cells[1].count);
    assert_int_equal(cells[0].point_count, cells[1].point_count);
    assert_memory_equal(cells[0].corner, cells[1].corner, 16 * (size_t)cells[0].count);
    assert_int_equal(slice[0].count, slice[1].count);
    assert_int_equal(slice[0].point_count, slice[1].point_count);
    assert_memory_equal(slice[0].corner, slice[1].corner,
                        4 * (size_t)slice[0].first[slice[0].count]);
    assert_memory_equal(slice[0].point, slice[1].point,
                        sizeof(un_vec3) * (size_t)slice[0].point_count);
    for (int i = 0; i < 2; i++) {
        un_slice_free(ctx[i], &slice[i]);
        un_cells_free(ctx[i], &cells[i]);
        check_context_end(ctx[i]);
    }
}

static un_status cut_once(un_context *ctx, void *arg)
{
    const pond *t = arg;
    un_cells cells;
    un_slice slice = {0};
    un_tets_cells in = pond_cells(t);
    un_status status = un_cells_from_tets(ctx, &cells, &in);
    if (status == UN_OK) status = un_cells_cut(ctx, &slice, &cells, 1, 0.3);
    un_slice_free(ctx, &slice);
    un_cells_free(ctx, &cells);
    return status;
}

static un_status fill_once(un_context *ctx, void *arg)
{
    const tank *t = arg;
    un_cells cells;
    un_grid_cells in = {.grid = &t->grid, .phi = t->phi, .open = t->open, .p = t->p, .u = t->u};
    un_status status = un_cells_from_grid(ctx, &cells, &in);
    un_cells_free(ctx, &cells);
    return status;
}

static void survives_no_memory(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    pond t;
    make_pond(ctx, &t, &check_trees[2]);
    check_allocation_failures(cut_once, &t, 100);
    free_pond(ctx, &t);
    tank grid = make_tank(ctx);
    check_allocation_failures(fill_once, &grid, 100);
    free_tank(ctx, &grid);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(cubes_of_the_grid),
        cmocka_unit_test(tets_of_the_liquid),
        cmocka_unit_test(cuts_cover_the_plane),
        cmocka_unit_test(flat_cells_in_their_plane),
        cmocka_unit_test(has_the_same_bits_for_any_threads),
        cmocka_unit_test(survives_no_memory),
    };
    check_races_in("has_the_same*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
