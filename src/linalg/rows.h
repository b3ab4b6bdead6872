/* Rows of sparse matrices, from the elements around each unknown. Included through linalg.h.
 *
 * An unknown belongs to a place of a mesh, such as a node. Its row is gathered from the elements
 * that meet there, twice: to count entries and to fill them in. So rows are independent of each
 * other, and the matrix is the same for any number of threads. */
#ifndef UN_LINALG_ROWS_H
#define UN_LINALG_ROWS_H

#include "base/base.h"
#include "ranks/ranks.h"

/* Checks that rows start at 0 and follow each other, that columns ascend and are in range, and that
 * every row has a diagonal. NULL, or what is wrong. */
const char *un_rows_validate(int32_t n, const int32_t *row, const int32_t *col);

/* Numbers the places where index is not negative, in their order; `place` lists them. */
un_status un_unknowns_number(un_context *ctx, int32_t *index, int64_t place_count, int32_t **place,
                             size_t *capacity, int32_t *count);
/* row[i + 1] holds the number of entries of row i, and afterwards their end. Fails if the total
 * exceeds 32 bits; what: "liquid nodes". */
un_status un_rows_start(un_context *ctx, int32_t *row, int32_t n, const char *what);
/* The same where ranks share the rows: of this rank's, numbered over all, and row[n]. */
un_status un_rows_start_own(un_context *ctx, int32_t *row, un_range rows, const char *what);

/* The most neighbours of a place, and itself. A node has at most 48 tets, in a closed or an open
 * fan. */
#define UN_ROW_MAX 64

/* A row while it is gathered: places in the order they are met, found again through a small hash
 * table. (A search among the 8 to 14 of them mispredicts its end nearly every time.) */
typedef struct un_row {
    int32_t place[UN_ROW_MAX];
    uint8_t slot[2 * UN_ROW_MAX];
    int count;
} un_row;
#define UN_ROW_FREE 255

static inline void un_row_begin(un_row *r)
{
    r->count = 0;
    memset(r->slot, UN_ROW_FREE, sizeof r->slot);
}

/* The position of a place in the row; a new place is added. */
static inline int un_row_find(un_row *r, int32_t place)
{
    uint32_t s = (uint32_t)place * 0x9e3779b1u >> 25;
    while (r->slot[s] != UN_ROW_FREE && r->place[r->slot[s]] != place)
        s = (s + 1) % (2 * UN_ROW_MAX);
    if (r->slot[s] != UN_ROW_FREE) return r->slot[s];
    UN_ASSERT(r->count < UN_ROW_MAX);
    r->slot[s] = (uint8_t)r->count;
    r->place[r->count] = place;
    return r->count++;
}

/* The values of a place in the row, `width` each; zero if it is new. */
static inline double *un_row_at(un_row *r, double *val, int width, int32_t place)
{
    int count = r->count, k = un_row_find(r, place);
    if (k == count) memset(val + (ptrdiff_t)width * k, 0, (size_t)width * sizeof *val);
    return val + (ptrdiff_t)width * k;
}

/* How many of the columns are smaller than column k. */
static inline int un_row_rank(const int32_t *col, int count, int k)
{
    int rank = 0;
    for (int l = 0; l < count; l++) rank += col[l] < col[k];
    return rank;
}

/* The row with ascending columns. */
static inline void un_row_store(const un_row *r, const double *from, int width,
                                const int32_t *index, int32_t *col, double *val)
{
    int32_t number[UN_ROW_MAX];
    for (int k = 0; k < r->count; k++) number[k] = index[r->place[k]];
    for (int k = 0; k < r->count; k++) {
        int rank = un_row_rank(number, r->count, k);
        col[rank] = number[k];
        memcpy(val + (ptrdiff_t)width * rank, from + (ptrdiff_t)width * k,
               (size_t)width * sizeof *val);
    }
}

#endif
