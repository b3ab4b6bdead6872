/* P^T A P coupling by coupling, and P and P^T as pairs, against what they stand for. */
#include "check.h"
#include "linalg/amg.h"

enum { ROWS = 9000, COARSE = 2200, NEAR = 40 }; /* three blocks */

/* A row's parents: two, one, one half, none, or odd ones; near it, and some far away. */
static void row_of(const void *arg, int32_t i, un_amg_parents *parents)
{
    const un_amg_level *level = arg;
    uint64_t k = (uint64_t)i * 64;
    double kind = un_random(k, 1);
    if (level->aggregate[i] >= 0) {
        parents->id[0] = level->aggregate[i];
        parents->weight[0] = 1;
        parents->count = 1;
        return;
    }
    int32_t count = kind < 0.6 ? 2 : kind < 0.7 ? 1 : kind < 0.75 ? 0 : 3 + (kind > 0.9) * 4;
    int32_t first = (int32_t)((int64_t)i * COARSE / ROWS);
    for (int32_t q = 0; q < count; q++) {
        double u = un_random(k + 2 + (uint64_t)q, 2);
        int32_t id = un_random(k + 32, 3) < 0.02 ? (int32_t)(u * COARSE)
                                                 : first + (int32_t)((u - 0.5) * NEAR);
        id = (int32_t)un_clampi(id, 0, COARSE - 1);
        bool twice = false;
        for (int32_t m = 0; m < parents->count; m++) twice |= parents->id[m] == id;
        if (twice) continue;
        parents->id[parents->count] = id;
        parents->weight[parents->count++] = count < 3 ? 0.5f : 0.125f;
    }
}

/* Rows on a line with couplings to some before them; a few lean on the air. */
static un_csr make_matrix(void)
{
    un_csr a = {.n = ROWS};
    double(*value)[4] = calloc(ROWS, sizeof *value), *diagonal = calloc(ROWS, sizeof *diagonal);
    static const int32_t back[4] = {1, 2, 17, 300};
    a.row = malloc((ROWS + 1) * sizeof *a.row);
    a.col = malloc(9 * ROWS * sizeof *a.col);
    a.val = malloc(9 * ROWS * sizeof *a.val);
    for (int32_t i = 0; i < ROWS; i++) {
        if (i % 50 == 0) diagonal[i] += 0.3;
        for (int q = 0; q < 4; q++) {
            if (i < back[q]) continue;
            value[i][q] = un_random((uint64_t)(4 * i + q), 7) + 0.1;
            diagonal[i] += value[i][q];
            diagonal[i - back[q]] += value[i][q];
        }
    }
    int32_t at = 0;
    for (int32_t i = 0; i < ROWS; i++) {
        a.row[i] = at;
        for (int q = 3; q >= 0; q--)
            if (i >= back[q]) a.col[at] = i - back[q], a.val[at++] = -value[i][q];
        a.col[at] = i, a.val[at++] = diagonal[i];
        for (int q = 0; q < 4; q++)
            if (i + back[q] < ROWS) a.col[at] = i + back[q], a.val[at++] = -value[i + back[q]][q];
    }
    a.row[ROWS] = at;
    free(value);
    free(diagonal);
    return a;
}

static un_status build(un_context *ctx, un_amg *amg, const un_csr *a, un_amg_graph *coarse)
{
    un_amg_graph g = {.n = ROWS, .row = a->row, .col = a->col, .val_a = a->val, .scale = 1};
    un_amg_level *level = &amg->level[0];
    amg->ctx = ctx;
    amg->scheme = UN_AMG_GEOMETRIC;
    UN_TRY(un_amg_build_level(amg, level, &g, true));
    int32_t next = 0;
    level->first[0] = 0;
    for (int32_t i = 0; i < ROWS; i++) {
        bool survives = (int64_t)i * COARSE / ROWS != (int64_t)(i + 1) * COARSE / ROWS;
        level->aggregate[i] = survives ? next++ : UN_AMG_FREE;
        level->first[i / level->grain + 1] = next;
    }
    assert_int_equal(next, COARSE);
    UN_TRY(un_amg_build_means(amg, level, &amg->means[0], NULL, row_of, level));
    return un_amg_build_edges(amg, level, &amg->means[0], level->x, COARSE, 0, coarse);
}

static void random_vector(float *v, int32_t n, uint64_t seed)
{
    for (int32_t i = 0; i < n; i++) v[i] = (float)(un_random((uint64_t)i, seed) - 0.5);
}

static void destroy(un_context *ctx, un_amg *amg)
{
    un_preconditioner m;
    check_ok(ctx, un_geometric_create(ctx, &m));
    un_amg *own = m.state;
    *own = *amg; /* what it holds goes with it */
    m.destroy(own);
}

/* y.(P^T A P) z = (P y).A (P z), rows that sum to zero, and P^T P as it should be. */
static void products_agree(void **state)
{
    (void)state;
    un_csr a = make_matrix();
    uint64_t first = 0;
    for (int32_t threads = 1; threads <= 3; threads++) {
        un_context *ctx = check_context_threads(threads);
        un_amg amg = {0};
        un_amg_graph c;
        check_ok(ctx, build(ctx, &amg, &a, &c));
        const un_amg_level *level = &amg.level[0];
        assert_true(un_amg_blocks(level) > 2);
        assert_int_equal(c.n, COARSE);
        float *y = malloc(COARSE * sizeof *y), *z = malloc(COARSE * sizeof *z);
        float *back = malloc(COARSE * sizeof *back);
        float *py = calloc(ROWS, sizeof *py), *pz = calloc(ROWS, sizeof *pz);
        random_vector(y, COARSE, 11);
        random_vector(z, COARSE, 12);
        for (int32_t i = 0; i < ROWS; i++) {
            un_amg_parents parents = {0};
            row_of(level, i, &parents);
            for (int32_t q = 0; q < parents.count; q++)
                py[i] += parents.weight[q] * y[parents.id[q]];
        }
        un_amg_prolong_means(ctx, level, &amg.means[0], pz, y);
        for (int32_t i = 0; i < ROWS; i++) check_near(pz[i], py[i], 1e-6);
        memset(pz, 0, ROWS * sizeof *pz);
        un_amg_prolong_means(ctx, level, &amg.means[0], pz, z);
        double fine = 0, coarse = 0, dot = 0, dot_coarse = 0;
        for (int32_t i = 0; i < ROWS; i++) {
            for (int32_t k = a.row[i]; k < a.row[i + 1]; k++)
                fine += (double)py[i] * a.val[k] * pz[a.col[k]];
            dot += (double)py[i] * pz[i];
        }
        for (int32_t i = 0; i < COARSE; i++) {
            coarse += (double)y[i] * c.excess[i] * z[i];
            for (int32_t k = c.row[i]; k < c.row[i + 1]; k++) {
                assert_true(c.col[k] != i);
                coarse += (double)y[i] * c.val[k] * ((double)z[c.col[k]] - z[i]);
            }
        }
        un_amg_restrict_means(ctx, level, &amg.means[0], back, py);
        for (int32_t i = 0; i < COARSE; i++) dot_coarse += (double)back[i] * z[i];
        check_near(coarse, fine, 1e-3 * fabs(fine) + 1e-3);
        check_near(dot_coarse, dot, 1e-4 * fabs(dot) + 1e-4);
        uint64_t hash = 0;
        for (int32_t k = 0; k < c.row[COARSE]; k++) {
            uint32_t bits;
            memcpy(&bits, &c.val[k], sizeof bits);
            hash = un_hash64(hash ^ bits);
        }
        if (threads == 1) first = hash;
        assert_true(hash == first);
        void *blocks[] = {y, z, back, py, pz};
        for (int i = 0; i < 5; i++) free(blocks[i]);
        destroy(ctx, &amg);
        check_context_end(ctx);
    }
    free(a.row);
    free(a.col);
    free(a.val);
}

/* Rows with seven couplings to rows before them: more than a level makes room for at first. Without
 * those that are zero it has enough. */
static void levels_hold_all_of_wide_rows(void **state)
{
    (void)state;
    enum { WIDTH = 7 };
    for (int32_t kept = 3; kept <= WIDTH; kept += 4) {
        un_csr a = {.n = ROWS};
        a.row = malloc((ROWS + 1) * sizeof *a.row);
        a.col = malloc((2 * WIDTH + 1) * ROWS * sizeof *a.col);
        a.val = malloc((2 * WIDTH + 1) * ROWS * sizeof *a.val);
        int32_t at = 0;
        for (int32_t i = 0; i < ROWS; i++) {
            a.row[i] = at;
            for (int32_t j = i > WIDTH ? i - WIDTH : 0; j <= i + WIDTH && j < ROWS; j++) {
                a.col[at] = j;
                a.val[at++] = j == i ? 2 * WIDTH : abs(j - i) <= kept ? -1 : 0;
            }
        }
        a.row[ROWS] = at;
        un_context *ctx = check_context();
        un_amg amg = {.ctx = ctx, .scheme = UN_AMG_GEOMETRIC};
        un_amg_graph g = {.n = ROWS, .row = a.row, .col = a.col, .val_a = a.val, .scale = 1};
        check_ok(ctx, un_amg_build_level(&amg, &amg.level[0], &g, true));
        const un_amg_level *level = &amg.level[0];
        for (int32_t i = 0; i < ROWS; i++) {
            const int32_t *row = level->row + i / level->grain;
            int32_t begin = (int32_t)(i / level->grain * level->grain);
            int32_t first = i - kept > begin ? i - kept : begin;
            assert_int_equal(row[i + 1] - row[i], i - first);
            for (int32_t k = row[i]; k < row[i + 1]; k++) {
                assert_int_equal(level->col[k], first + k - row[i]);
                assert_true(level->val[k] == -1);
            }
        }
        destroy(ctx, &amg);
        check_context_end(ctx);
        free(a.row);
        free(a.col);
        free(a.val);
    }
}

int main(void)
{
    check_races_in("products*");
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_agree),
                                       cmocka_unit_test(levels_hold_all_of_wide_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
