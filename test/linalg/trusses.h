/* Block systems for tests: lattices of springs with masses at their nodes. Springs resist neither
 * shifts nor turns of the whole, so that rigid motions are what is left for the masses alone. */
#ifndef UN_TEST_TRUSSES_H
#define UN_TEST_TRUSSES_H

#include <stdlib.h>

#include "linalg/linalg.h"

typedef struct test_truss {
    un_block_csr a;
    un_vec3 *b, *x, *place;
    double (*free)[9];
} test_truss;

typedef struct test_truss_def {
    int32_t m;        /* cells along each side of a body-centred lattice */
    double stiffness; /* over the mass of a node */
    bool held;        /* the lowest layer stands still */
    double soft;      /* stiffness of the upper half, relative */
} test_truss_def;

static inline void test_truss_free(test_truss *t)
{
    void *blocks[] = {t->a.row, t->a.col, t->a.val, t->b, t->x, t->place, t->free};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Springs join each node to the eight of the other sublattice and six of its own. */
static inline test_truss test_truss_make(test_truss_def def)
{
    int32_t side = 2 * def.m + 1, n = 0;
    int32_t *number = malloc((size_t)side * side * side * sizeof *number);
    for (int32_t k = 0; k < side; k++)
        for (int32_t j = 0; j < side; j++)
            for (int32_t i = 0; i < side; i++) {
                bool site = i % 2 == j % 2 && i % 2 == k % 2 && !(def.held && j == 0);
                number[(k * side + j) * side + i] = site ? n++ : -1;
            }
    test_truss t = {.a = {.n = n}};
    t.a.row = calloc((size_t)n + 1, sizeof *t.a.row);
    t.a.col = malloc((size_t)n * 15 * sizeof *t.a.col);
    t.a.val = calloc((size_t)n * 15, sizeof *t.a.val);
    t.b = malloc((size_t)n * sizeof *t.b);
    t.x = calloc((size_t)n, sizeof *t.x);
    t.place = malloc((size_t)n * sizeof *t.place);
    int32_t at = 0;
    for (int32_t k = 0; k < side; k++)
        for (int32_t j = 0; j < side; j++)
            for (int32_t i = 0; i < side; i++) {
                int32_t r = number[(k * side + j) * side + i];
                if (r < 0) continue;
                double d[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
                int32_t diagonal = -1;
                t.place[r] = un_v3(i, j, k);
                t.b[r] = un_v3(un_random((uint64_t)r, 1) - 0.5, un_random((uint64_t)r, 2) - 0.3,
                               un_random((uint64_t)r, 3) - 0.5);
                for (int32_t dk = -2; dk <= 2; dk++)
                    for (int32_t dj = -2; dj <= 2; dj++)
                        for (int32_t di = -2; di <= 2; di++) {
                            int32_t steps = di * di + dj * dj + dk * dk;
                            bool centre = steps == 3, along = steps == 4;
                            if (steps == 0) diagonal = at++;
                            if (along && di % 2 + dj % 2 + dk % 2 != 0) along = false;
                            if (!centre && !along) continue;
                            int32_t x = i + di, y = j + dj, z = k + dk;
                            if (x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side)
                                continue;
                            double s = def.stiffness * (centre ? 1 : 0.5) / steps;
                            if (def.soft > 0 && j + y > side) s *= def.soft;
                            double v[3] = {di, dj, dk};
                            int32_t c = number[(z * side + y) * side + x];
                            for (int e = 0; e < 9; e++) d[e] += s * v[e / 3] * v[e % 3];
                            if (c < 0) continue;
                            for (int e = 0; e < 9; e++) t.a.val[at][e] = -s * v[e / 3] * v[e % 3];
                            t.a.col[at++] = c;
                        }
                t.a.col[diagonal] = r;
                memcpy(t.a.val[diagonal], d, sizeof d);
                t.a.row[r + 1] = at;
            }
    free(number);
    return t;
}

#endif
