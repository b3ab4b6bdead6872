#include "linalg/linalg.h"

typedef struct numbering {
    int32_t *index, *place;
    int64_t count[UN_BLOCKS_MAX + 1]; /* by block; then the number of its first unknown */
    int64_t grain;
} numbering;

static void count_block(void *arg, int64_t begin, int64_t end)
{
    numbering *a = arg;
    int64_t count = 0;
    for (int64_t n = begin; n < end; n++) count += a->index[n] >= 0;
    a->count[begin / a->grain] = count;
}

static void number_block(void *arg, int64_t begin, int64_t end)
{
    numbering *a = arg;
    int32_t number = (int32_t)a->count[begin / a->grain];
    for (int64_t n = begin; n < end; n++)
        if (a->index[n] >= 0) {
            a->place[number] = (int32_t)n;
            a->index[n] = number++;
        }
}

un_status un_unknowns_number(un_context *ctx, int32_t *index, int64_t place_count, int32_t **place,
                             size_t *capacity, int32_t *count)
{
    numbering a = {.index = index, .grain = un_block_grain(place_count)};
    int64_t total = 0;
    un_parallel_for(ctx, place_count, a.grain, count_block, &a);
    for (int64_t b = 0; b * a.grain < place_count; b++) {
        int64_t here = a.count[b];
        a.count[b] = total;
        total += here;
    }
    UN_TRY(un_array_need(ctx, (void **)place, capacity, (size_t)total + 1, sizeof **place));
    a.place = *place;
    un_parallel_for(ctx, place_count, a.grain, number_block, &a);
    *count = (int32_t)total;
    return UN_OK;
}

static un_status fail_size(un_context *ctx, int64_t n, const char *what)
{
    return un_fail(ctx, UN_ERROR_MEMORY,
                   "%.1f million %s are too many for one system; lower detail.finest",
                   (double)n / 1e6, what);
}

un_status un_rows_start(un_context *ctx, int32_t *row, int32_t n, const char *what)
{
    int64_t entries = 0;
    row[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        entries += row[i + 1];
        if (entries > INT32_MAX) return fail_size(ctx, n, what);
        row[i + 1] = (int32_t)entries;
    }
    return UN_OK;
}

un_status un_rows_start_own(un_context *ctx, int32_t *row, un_range rows, const char *what)
{
    int64_t count = 0;
    for (int64_t i = rows.begin; i < rows.end; i++) count += row[i + 1];
    un_range entries = un_ranks_range(ctx, count);
    if (entries.total > INT32_MAX) return fail_size(ctx, rows.total, what);
    row[rows.begin] = (int32_t)entries.begin;
    for (int64_t i = rows.begin; i < rows.end; i++) row[i + 1] += row[i];
    row[rows.total] = (int32_t)entries.total;
    return UN_OK;
}

const char *un_rows_validate(int32_t n, const int32_t *row, const int32_t *col)
{
    if (row[0] != 0) return "the first row does not start at 0";
    for (int32_t i = 0; i < n; i++)
        if (row[i + 1] < row[i]) return "row starts descend";
    for (int32_t i = 0; i < n; i++) {
        bool diagonal = false;
        for (int32_t s = row[i]; s < row[i + 1]; s++) {
            if (col[s] < 0 || col[s] >= n) return "a column is out of range";
            if (s > row[i] && col[s - 1] >= col[s]) return "columns do not ascend";
            diagonal |= col[s] == i;
        }
        if (!diagonal) return "a row has no diagonal";
    }
    return NULL;
}
