/* Velocities at eight points at once are those at each of them. */
#include "check.h"
#include "mesh/mesh.h"

static void eight_points_have_the_bits_of_one(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (int dim = 2; dim <= 3; dim++) {
        un_grid g = un_grid_make(un_v3(1, 0.7, dim == 3 ? 0.9 : 0), 13);
        double *u[3] = {NULL, NULL, NULL};
        for (int a = 0; a < dim; a++) {
            u[a] = un_alloc(ctx, (size_t)g.cell_count, sizeof *u[a]);
            for (int64_t n = 0; n < g.cell_count; n++)
                u[a][n] = un_random((uint64_t)n, (uint64_t)a) - 0.5;
        }
        for (uint64_t round = 0; round < 500; round++) {
            un_eight x, v;
            for (int n = 0; n < 8; n++)
                for (int a = 0; a < 3; a++) /* outside the domain too, and on faces of cells */
                    x.of[a][n] =
                        n == 0    ? round * g.h / 16
                        : a < dim ? 1.4 * un_random(8 * round + (uint64_t)n, 9 + (uint64_t)a) - 0.2
                                  : 0;
            un_faces_sample_eight(&v, &g, u, &x);
            for (int n = 0; n < 8; n++) {
                un_vec3 one = un_faces_sample(&g, u, un_v3(x.of[0][n], x.of[1][n], x.of[2][n]));
                assert_true(one.x == v.of[0][n] && one.y == v.of[1][n] && one.z == v.of[2][n]);
            }
        }
        for (int a = 0; a < dim; a++) un_free(ctx, u[a]);
    }
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_points_have_the_bits_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
