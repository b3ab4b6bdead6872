/* Pressure systems for tests and benchmarks: water in a box with a wavy surface, walls elsewhere.
 * Surface cells and nodes are tied to the pressure of the air at the true distance, down to `near`
 * of the spacing: their diagonals grow up to 1 / near times the others'. */
#ifndef UN_TEST_SYSTEMS_H
#define UN_TEST_SYSTEMS_H

#include <stdlib.h>

#include "linalg/linalg.h"

typedef struct test_system {
    un_csr a;
    double *b, *x;
    un_sites sites; /* where the numbering is one that solvers know */
    int32_t *site;
    uint64_t *key;
    uint8_t *level;
} test_system;

static inline void test_system_free(test_system *s)
{
    void *blocks[] = {s->a.row, s->a.col, s->a.val, s->b, s->x, s->site, s->key, s->level};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* Height of the water in units of the box. */
static inline double test_depth(double x, double z)
{
    return 0.7 + 0.06 * sin(7 * x + 1) + 0.05 * cos(9 * z + 4 * x);
}

/* Nodes of a lattice in half spacings: m cells along each side. */
typedef struct test_lattice {
    int32_t m;
    bool bcc; /* corners and centres; else cell centres alone */
    double near;
    bool closed; /* no surface: water everywhere, fixed up to a constant */
} test_lattice;

static inline double test_phi(const test_lattice *t, const int32_t at[3])
{
    double h = 0.5 / t->m;
    if (t->closed) return -1;
    return (at[1] * h - test_depth(at[0] * h, at[2] * h));
}

/* Number of a lattice site, -1 none: a table over the grid of half spacings. */
static inline int32_t *test_site(const test_lattice *t, int32_t *table, const int32_t at[3])
{
    int32_t side = 2 * t->m + 1;
    for (int a = 0; a < 3; a++)
        if (at[a] < 0 || at[a] >= side) return NULL;
    if (!t->bcc && (at[0] % 2 == 0 || at[1] % 2 == 0 || at[2] % 2 == 0)) return NULL;
    if (t->bcc && (at[0] % 2 != at[1] % 2 || at[0] % 2 != at[2] % 2)) return NULL;
    /* sites of both sublattices, densely: half of the places of a row */
    return table + ((size_t)at[2] * side + at[1]) * (t->m + 1) + at[0] / 2;
}

static inline int test_compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

typedef struct test_ordered {
    uint64_t order;
    int32_t at[3];
} test_ordered;
static inline int test_compare_order(const void *a, const void *b)
{
    uint64_t x = ((const test_ordered *)a)->order, y = ((const test_ordered *)b)->order;
    return (x > y) - (x < y);
}
static inline void test_sort_sites(int32_t (*site)[3], int32_t n, uint64_t size)
{
    test_ordered *all = malloc((size_t)n * sizeof *all + 1);
    for (int32_t i = 0; i < n; i++) {
        memcpy(all[i].at, site[i], sizeof all[i].at);
        uint64_t place =
            un_morton((uint32_t)site[i][0], (uint32_t)site[i][1], (uint32_t)site[i][2]);
        all[i].order = un_morton_order(place, size);
    }
    qsort(all, (size_t)n, sizeof *all, test_compare_order);
    for (int32_t i = 0; i < n; i++) memcpy(site[i], all[i].at, sizeof all[i].at);
    free(all);
}

/* Numbered along the Morton curve, as nodes of an octree are, or x fastest. Of the BCC lattice the
 * six neighbours on the same sublattice are stored though their coupling is zero. */
static inline test_system test_system_make(test_lattice t, bool morton)
{
    int32_t side = 2 * t.m + 1, n = 0;
    size_t places = (size_t)side * side * (t.m + 1);
    int32_t *table = malloc(places * sizeof *table);
    for (size_t k = 0; k < places; k++) table[k] = -1;
    int32_t(*site)[3] = NULL;
    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (int64_t k = 0; k < (int64_t)side * side * side; k++) {
            int32_t at[3] = {(int32_t)(k % side), (int32_t)(k / side % side),
                             (int32_t)(k / ((int64_t)side * side))};
            if (!test_site(&t, table, at) || test_phi(&t, at) >= 0) continue;
            if (pass == 1)
                for (int a = 0; a < 3; a++) site[n][a] = at[a];
            n++;
        }
        if (pass == 0) site = malloc((size_t)n * sizeof *site + 1);
    }
    uint64_t side_code =
        un_morton((uint32_t)(side - 1), (uint32_t)(side - 1), (uint32_t)(side - 1));
    if (morton) test_sort_sites(site, n, side_code);
    for (int32_t i = 0; i < n; i++) *test_site(&t, table, site[i]) = i;
    test_system s = {.a = {.n = n}};
    s.a.row = malloc(((size_t)n + 1) * sizeof *s.a.row);
    s.a.col = malloc(15 * (size_t)n * sizeof *s.a.col);
    s.a.val = malloc(15 * (size_t)n * sizeof *s.a.val);
    s.b = malloc((size_t)n * sizeof *s.b);
    s.x = calloc((size_t)(n > 0 ? n : 1), sizeof *s.x);
    int32_t entry = 0;
    for (int32_t i = 0; i < n; i++) {
        s.a.row[i] = entry;
        double diagonal = 0, phi = test_phi(&t, site[i]);
        int32_t neighbour[15];
        int32_t neighbours = 0;
        for (int d = 0; d < 14; d++) {
            int32_t at[3];
            for (int a = 0; a < 3; a++) at[a] = site[i][a];
            if (d < 6)
                at[d / 2] += d % 2 ? 2 : -2;
            else
                for (int a = 0; a < 3; a++) at[a] += (d - 6) >> a & 1 ? 1 : -1;
            int32_t *place = test_site(&t, table, at);
            if (!place || (d >= 6 && !t.bcc)) continue;
            double w = d >= 6 || !t.bcc ? 1 : 0;
            if (*place >= 0) {
                neighbour[neighbours++] = *place;
                diagonal += w;
            } else
                diagonal += w / fmax(phi / (phi - test_phi(&t, at)), t.near);
        }
        neighbour[neighbours++] = i;
        qsort(neighbour, (size_t)neighbours, sizeof *neighbour, test_compare);
        for (int q = 0; q < neighbours; q++) {
            int32_t j = neighbour[q];
            bool same = t.bcc && site[j][0] % 2 == site[i][0] % 2;
            s.a.col[entry] = j;
            s.a.val[entry++] = j == i ? diagonal : same ? 0 : -1;
        }
        s.b[i] = 1 + 2 * (un_random((uint64_t)i, 5) - 0.5);
    }
    s.a.row[n] = entry;
    if (t.bcc == morton) {
        int32_t size = t.bcc ? 2 * t.m : t.m;
        s.site = malloc((size_t)n * sizeof *s.site + 1);
        s.key = malloc((size_t)n * sizeof *s.key + 1);
        s.level = calloc((size_t)n + 1, 1);
        for (int32_t i = 0; i < n; i++) {
            const int32_t *at = site[i];
            s.site[i] = t.bcc ? i : at[0] / 2 + size * (at[1] / 2 + size * (at[2] / 2));
            s.key[i] = un_morton((uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
        }
        s.sites = (un_sites){.kind = t.bcc ? UN_SITES_BCC : UN_SITES_GRID,
                             .size = {size, size, size},
                             .site = s.site,
                             .key = s.key,
                             .level = s.level};
    }
    free(table);
    free(site);
    return s;
}

#endif
