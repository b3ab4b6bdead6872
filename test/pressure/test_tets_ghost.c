/* Ghost pressures in single tets: every shape of the mesh, every choice of wet nodes. */
#include "check.h"
#include "pressure/ghost.h"

static un_tets mesh; /* only its table of shapes */

typedef void tet_case(const un_tet_shape *shape, uint32_t wet, uint64_t seed);

static void each_tet(tet_case *body)
{
    for (int32_t k = 0; k < mesh.shape_count; k++)
        for (uint32_t wet = 1; wet < 15; wet++)
            for (uint64_t seed = 0; seed < 4; seed++) body(&mesh.shapes[k], wet, seed);
}

static bool is_wet(uint32_t wet, int i)
{
    return wet >> i & 1;
}

/* Any values of the right signs, some of them tiny. */
static void random_phi(double phi[4], uint32_t wet, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        double r = un_random((uint64_t)i, seed + 100 * wet);
        phi[i] = (is_wet(wet, i) ? -1 : 1) * (r < 0.2 ? 1e-6 : r);
    }
}

static void random_pressure(double p[4], uint64_t seed)
{
    for (int i = 0; i < 4; i++) p[i] = un_random((uint64_t)i, seed + 999) - 0.5;
}

static void node_at(const un_tet_shape *shape, int i, double x[3])
{
    for (int a = 0; a < 3; a++) x[a] = i == 0 ? 0 : 0.5 * shape->edge[i - 1][a];
}

static bool has_positive(const un_tet_shape *shape, uint32_t wet)
{
    for (int d = 0; d < 4; d++)
        for (int n = 0; n < 4; n++)
            if (!is_wet(wet, d) && is_wet(wet, n) && shape->stiffness[d][n] > 0) return true;
    return false;
}

/* ---- eq. 12 against its definition ---- */

/* Eq. 6 and 8 with theta = k / sum k, substituted into eq. 11 as it stands there. */
static void substituted(const un_tet_shape *shape, uint32_t wet, uint64_t seed)
{
    if (has_positive(shape, wet)) return;
    double phi[4], block[4][4];
    random_phi(phi, wet, seed);
    un_ghost g = un_ghost_make(shape, phi, wet, 0);
    assert_false(g.by_row);
    memcpy(block, shape->stiffness, sizeof block);
    for (int d = 0; d < 4; d++) {
        if (is_wet(wet, d)) continue;
        double total = 0, depth = 0;
        for (int n = 0; n < 4; n++)
            if (is_wet(wet, n)) total += shape->stiffness[d][n];
        if (total == 0) continue;
        for (int n = 0; n < 4; n++)
            if (is_wet(wet, n)) depth += shape->stiffness[d][n] / total * phi[n];
        for (int n = 0; n < 4; n++)
            for (int m = 0; m < 4; m++) {
                double w = shape->stiffness[d][m] / total * phi[d] / depth; /* eq. 9 */
                block[n][m] += shape->stiffness[n][d] * w;
            }
    }
    for (int n = 0; n < 4; n++)
        for (int m = 0; m < 4; m++)
            if (is_wet(wet, n) && is_wet(wet, m)) {
                double entry = shape->stiffness[n][m] + un_ghost_entry(&g, n, m);
                check_near(entry, block[n][m], 1e-12 * (1 + fabs(block[n][m])));
            }
}

static void eq_12_is_eq_8_substituted(void **state)
{
    (void)state;
    each_tet(substituted);
}

/* ---- a flat surface ---- */

static void flat(const un_tet_shape *shape, uint32_t wet, uint64_t seed)
{
    /* A linear phi with the wanted signs, if one of a few tries has them: phi = s . (x - y). */
    double slope[3], y[3], phi[4], p[4] = {0};
    bool found = false;
    for (uint64_t k = 0; k < 400 && !found; k++) {
        double b[4], sum = 0;
        for (int i = 0; i < 4; i++) sum += b[i] = un_random(10 * k + (uint64_t)i, seed);
        memset(y, 0, sizeof y);
        for (int i = 0; i < 4; i++) {
            double x[3];
            node_at(shape, i, x);
            for (int a = 0; a < 3; a++) y[a] += b[i] / sum * x[a];
        }
        for (int a = 0; a < 3; a++) slope[a] = un_random(10 * k + 5 + (uint64_t)a, seed) - 0.5;
        found = true;
        for (int i = 0; i < 4; i++) {
            double x[3];
            node_at(shape, i, x);
            phi[i] = slope[0] * (x[0] - y[0]) + slope[1] * (x[1] - y[1]) + slope[2] * (x[2] - y[2]);
            found &= (phi[i] < 0) == is_wet(wet, i) && fabs(phi[i]) > 1e-3;
        }
    }
    if (!found) return;
    for (int i = 0; i < 4; i++)
        if (is_wet(wet, i)) p[i] = -7 * phi[i];
    un_ghost g = un_ghost_make(shape, phi, wet, 0);
    double gradient[3];
    un_ghost_gradient(gradient, &g, p);
    for (int a = 0; a < 3; a++) check_near(gradient[a], -7 * slope[a], 1e-9);
    un_ghost none = un_ghost_make(shape, phi, wet, UN_GHOST_NONE);
    double error = 0;
    un_ghost_gradient(gradient, &none, p);
    for (int a = 0; a < 3; a++) error = fmax(error, fabs(gradient[a] + 7 * slope[a]));
    check_below(1e-3, error); /* the comparison is one */
}

static void linear_pressure_under_a_flat_surface_is_exact(void **state)
{
    (void)state;
    each_tet(flat);
}

/* ---- rows and gradient ---- */

/* V grad_n . g is what the row of n says, for any pressure: no divergence is left over. */
static void agrees(const un_tet_shape *shape, uint32_t wet, uint64_t seed)
{
    double phi[4], p[4], gradient[3];
    random_phi(phi, wet, seed);
    random_pressure(p, seed);
    if (seed == 3) /* a node that was left out: dry, but below the surface */
        for (int i = 0; i < 4; i++)
            if (!is_wet(wet, i)) phi[i] = -0.01;
    for (uint32_t mode = 0; mode <= UN_GHOST_NONE; mode++) {
        un_ghost g = un_ghost_make(shape, phi, wet, mode);
        un_ghost_gradient(gradient, &g, p);
        for (int n = 0; n < 4; n++) {
            if (!is_wet(wet, n)) continue;
            double row = 0, size = 1, flux = 0;
            for (int m = 0; m < 4; m++)
                if (is_wet(wet, m)) {
                    double entry = shape->stiffness[n][m] + un_ghost_entry(&g, n, m);
                    row += entry * p[m];
                    size = fmax(size, fabs(entry));
                    assert_true(un_ghost_entry(&g, n, m) == un_ghost_entry(&g, m, n));
                }
            for (int a = 0; a < 3; a++) flux += shape->volume * shape->gradient[n][a] * gradient[a];
            check_near(flux, row, 1e-11 * size);
        }
    }
}

static void rows_and_gradient_agree(void **state)
{
    (void)state;
    each_tet(agrees);
}

/* ---- definiteness ---- */

/* Without positive couplings, and in cautious mode, a cut tet is positive definite. */
static void positive(const un_tet_shape *shape, uint32_t wet, uint64_t seed)
{
    double phi[4];
    random_phi(phi, wet, seed);
    for (uint32_t mode = 0; mode <= UN_GHOST_NONE; mode++) {
        un_ghost g = un_ghost_make(shape, phi, wet, mode);
        bool by_row = has_positive(shape, wet) || mode & UN_GHOST_BY_ROW;
        assert_int_equal(g.by_row, !(mode & UN_GHOST_NONE) && by_row);
        if (!(mode & UN_GHOST_CAUTIOUS) && has_positive(shape, wet)) continue;
        for (uint64_t k = 0; k < 20; k++) {
            double v[4], sum = 0, norm = 0;
            random_pressure(v, 1000 * seed + k);
            for (int n = 0; n < 4; n++)
                for (int m = 0; m < 4; m++)
                    if (is_wet(wet, n) && is_wet(wet, m)) {
                        sum += v[n] * v[m] * (shape->stiffness[n][m] + un_ghost_entry(&g, n, m));
                        norm += n == m ? v[n] * v[n] : 0;
                    }
            check_below(1e-4 * norm, sum);
        }
    }
}

static void cut_tets_are_positive_definite(void **state)
{
    (void)state;
    each_tet(positive);
    /* half-pyramids are what has positive couplings */
    for (int32_t k = 0; k < mesh.shape_count; k++) {
        bool any = false;
        for (uint32_t wet = 1; wet < 15; wet++) any |= has_positive(&mesh.shapes[k], wet);
        assert_int_equal(any, mesh.shapes[k].kind == UN_TET_HALF_PYRAMID);
    }
}

int main(void)
{
    un_tets_init(NULL, &mesh);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eq_12_is_eq_8_substituted),
        cmocka_unit_test(linear_pressure_under_a_flat_surface_is_exact),
        cmocka_unit_test(rows_and_gradient_agree),
        cmocka_unit_test(cut_tets_are_positive_definite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
