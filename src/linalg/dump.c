/* Systems as Matrix Market files [Boisvert, Pozo & Remington 1996], to be read by other programs
 * and by bench/solvers.c.
 *
 * The files are text, with numbers of 17 digits, so that reading them back gives the same bits.
 * Comment lines that begin with %undine hold the data of sites other than their places. */
#include "linalg/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define COMMENT_BYTES 128

/* Adds to the message where the folder's name came from. */
static un_status tell(un_context *ctx, un_status status)
{
    char message[1024];
    if (status != UN_ERROR_FILE) return status;
    snprintf(message, sizeof message, "%s", un_context_message(ctx));
    return un_fail(ctx, status, "%s (solver.dump names the folder)", message);
}

un_status un_system_folder(un_context *ctx, const char *folder)
{
    size_t length = strlen(folder);
    if (length == 0 || length >= PATH_BYTES - 64)
        return un_fail(ctx, UN_ERROR_FILE,
                       "solver.dump must name a folder, with a path of at most "
                       "4000 characters");
    UN_TRY(tell(ctx, un_directory_create(ctx, folder)));
    if (access(folder, W_OK | X_OK) != 0)
        return tell(ctx, un_file_fail(ctx, "write into", folder, errno));
    return UN_OK;
}

static un_status begin(un_context *ctx, const char *folder, int32_t number, const char *suffix,
                       un_file **file)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%06d%s.mtx", folder, (int)number, suffix);
    return un_file_create(ctx, path, file);
}

static un_status write_matrix(un_context *ctx, const char *folder, int32_t number, const un_csr *a)
{
    un_file *file;
    UN_TRY(begin(ctx, folder, number, "", &file));
    int64_t lower = 0;
    for (int32_t i = 0; i < a->n; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) lower += a->col[k] <= i;
    un_file_printf(file, "%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %lld\n", a->n,
                   a->n, (long long)lower);
    for (int32_t i = 0; i < a->n && un_file_status(file) == UN_OK; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] <= i)
                un_file_printf(file, "%d %d %.17g\n", i + 1, a->col[k] + 1, a->val[k]);
    return un_file_commit(file);
}

static un_status write_vector(un_context *ctx, const char *folder, int32_t number,
                              const char *suffix, const double *v, int32_t n)
{
    un_file *file;
    UN_TRY(begin(ctx, folder, number, suffix, &file));
    un_file_printf(file, "%%%%MatrixMarket matrix array real general\n%d 1\n", n);
    for (int32_t i = 0; i < n && un_file_status(file) == UN_OK; i++)
        un_file_printf(file, "%.17g\n", v[i]);
    return un_file_commit(file);
}

/* Column by column. */
static un_status write_columns(un_context *ctx, const char *folder, int32_t number, int32_t n,
                               const un_columns *c)
{
    un_file *file;
    UN_TRY(begin(ctx, folder, number, "_columns", &file));
    un_file_printf(file, "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", n, c->count,
                   c->first[c->count]);
    for (int32_t k = 0; k < c->count && un_file_status(file) == UN_OK; k++)
        for (int32_t e = c->first[k]; e < c->first[k + 1]; e++)
            un_file_printf(file, "%d %d %.17g\n", c->row[e] + 1, k + 1, c->val[e]);
    return un_file_commit(file);
}

static void place_of(const un_sites *sites, int32_t i, int32_t at[3])
{
    int32_t site = sites->site[i];
    if (sites->kind == UN_SITES_BCC) {
        uint64_t key = sites->key[site];
        for (int a = 0; a < 3; a++) at[a] = (int32_t)un_morton_gather(key >> a);
        return;
    }
    at[0] = site % sites->size[0];
    at[1] = site / sites->size[0] % sites->size[1];
    at[2] = site / sites->size[0] / sites->size[1];
}

/* An array by columns: all x, y, z and, with BCC, the levels. */
static un_status write_places(un_context *ctx, const char *folder, int32_t number,
                              const un_sites *sites, int32_t n)
{
    bool bcc = sites->kind == UN_SITES_BCC;
    un_file *file;
    UN_TRY(begin(ctx, folder, number, "_places", &file));
    un_file_printf(file, "%%%%MatrixMarket matrix array integer general\n");
    un_file_printf(file, "%%undine %s size %d %d %d level_max %d\n", bcc ? "bcc" : "grid",
                   sites->size[0], sites->size[1], sites->size[2], sites->level_max);
    un_file_printf(file, "%d %d\n", n, bcc ? 4 : 3);
    for (int column = 0; column < (bcc ? 4 : 3); column++)
        for (int32_t i = 0; i < n && un_file_status(file) == UN_OK; i++) {
            int32_t at[3];
            place_of(sites, i, at);
            un_file_printf(file, "%d\n", column < 3 ? at[column] : sites->level[sites->site[i]]);
        }
    return un_file_commit(file);
}

un_status un_system_write(un_context *ctx, const char *folder, int32_t number,
                          const un_system *system, const double *x)
{
    const un_sites *sites = system->sites;
    const un_columns *columns = system->columns;
    int32_t n = system->a->n;
    UN_TRY(tell(ctx, write_vector(ctx, folder, number, "_b", system->b, n)));
    UN_TRY(tell(ctx, write_vector(ctx, folder, number, "_x", x, n)));
    if (sites && sites->kind != UN_SITES_NONE)
        UN_TRY(tell(ctx, write_places(ctx, folder, number, sites, n)));
    if (columns && columns->count > 0)
        UN_TRY(tell(ctx, write_columns(ctx, folder, number, n, columns)));
    /* last: if the matrix is there, so are the others */
    return tell(ctx, write_matrix(ctx, folder, number, system->a));
}

/* ---- reading ---- */

typedef struct reader {
    un_context *ctx;
    char path[PATH_BYTES];
    char comment[COMMENT_BYTES];
    char *text, *at; /* the whole file, with a 0 at the end */
} reader;

static un_status broken(const reader *r)
{
    return un_fail(r->ctx, UN_ERROR_FILE,
                   "%s is not a Matrix Market file of solver.dump, or is incomplete; write "
                   "it again",
                   r->path);
}

/* Reads the file, and its first line. A file that may be absent, and is: UN_OK and text NULL. */
static un_status load(reader *r, const char *folder, int32_t number, const char *suffix,
                      const char *head, bool optional)
{
    un_free(r->ctx, r->text);
    r->text = NULL;
    r->comment[0] = 0;
    snprintf(r->path, sizeof r->path, "%s/%06d%s.mtx", folder, (int)number, suffix);
    if (optional && access(r->path, F_OK) != 0 && errno == ENOENT) return UN_OK;
    UN_TRY(un_file_read(r->ctx, r->path, &r->text, NULL));
    r->at = r->text;
    if (strncmp(r->at, head, strlen(head)) != 0) return broken(r);
    while (*r->at == '%') {
        if (strncmp(r->at, "%undine ", 8) == 0)
            snprintf(r->comment, COMMENT_BYTES, "%.100s", r->at);
        char *next = strchr(r->at, '\n');
        if (!next) return broken(r);
        r->at = next + 1;
    }
    return UN_OK;
}

static bool next_int(reader *r, int64_t min, int64_t max, int32_t *value)
{
    char *stop;
    long long v = strtoll(r->at, &stop, 10);
    if (stop == r->at || v < min || v > max) return false;
    r->at = stop;
    *value = (int32_t)v;
    return true;
}

static bool next_number(reader *r, double *value)
{
    char *stop;
    *value = strtod(r->at, &stop);
    if (stop == r->at) return false;
    r->at = stop;
    return true;
}

/* The lower half, row by row with ascending columns, becomes both halves. */
static un_status read_matrix(reader *r, un_csr *a)
{
    int32_t n, columns, entries;
    if (!next_int(r, 0, INT32_MAX - 1, &n) || !next_int(r, n, n, &columns) ||
        !next_int(r, n, INT32_MAX / 2, &entries))
        return broken(r);
    char *start = r->at;
    a->row = un_alloc_zero(r->ctx, (size_t)n + 1, sizeof *a->row);
    a->col = un_alloc(r->ctx, 2 * (size_t)entries + 1, sizeof *a->col);
    a->val = un_alloc(r->ctx, 2 * (size_t)entries + 1, sizeof *a->val);
    if (!a->row || !a->col || !a->val) return UN_ERROR_MEMORY;
    a->n = n;
    /* Entry (i, j) comes before all entries (i, k > j) and (k > i, .) in the file, so filling both
     * halves in the file's order leaves columns ascending. */
    for (int pass = 0; pass < 2; pass++) {
        int64_t before = -1;
        r->at = start;
        for (int32_t e = 0; e < entries; e++) {
            int32_t i, j;
            double v;
            if (!next_int(r, 1, n, &i) || !next_int(r, 1, i, &j) || !next_number(r, &v))
                return broken(r);
            i--, j--;
            int64_t place = (int64_t)i * n + j;
            if (place <= before) return broken(r);
            before = place;
            if (pass == 0) {
                a->row[i + 1]++;
                if (i != j) a->row[j + 1]++;
                continue;
            }
            a->col[a->row[i]] = j;
            a->val[a->row[i]++] = v;
            if (i == j) continue;
            a->col[a->row[j]] = i;
            a->val[a->row[j]++] = v;
        }
        if (pass == 0)
            for (int32_t i = 0; i < n; i++) a->row[i + 1] += a->row[i];
    }
    for (int32_t i = n; i > 0; i--) a->row[i] = a->row[i - 1];
    a->row[0] = 0;
    return UN_OK;
}

static un_status read_vector(reader *r, int32_t n, double **v)
{
    int32_t rows, columns;
    if (!next_int(r, n, n, &rows) || !next_int(r, 1, 1, &columns)) return broken(r);
    UN_ALLOC(r->ctx, *v, (size_t)n + 1);
    for (int32_t i = 0; i < n; i++)
        if (!next_number(r, *v + i)) return broken(r);
    return UN_OK;
}

static un_status read_columns(reader *r, int32_t n, un_system_file *s)
{
    int32_t rows, count, entries, last = 0, before = -1;
    if (!next_int(r, n, n, &rows) || !next_int(r, 1, INT32_MAX - 1, &count) ||
        !next_int(r, 0, INT32_MAX - 1, &entries))
        return broken(r);
    UN_ALLOC(r->ctx, s->column_first, (size_t)count + 1);
    UN_ALLOC(r->ctx, s->column_row, (size_t)entries + 1);
    UN_ALLOC(r->ctx, s->column_val, (size_t)entries + 1);
    s->column_first[0] = 0;
    for (int32_t e = 0; e < entries; e++) {
        int32_t i, k;
        if (!next_int(r, 1, n, &i) || !next_int(r, last + 1, count, &k) ||
            !next_number(r, &s->column_val[e]))
            return broken(r);
        while (last < k - 1) {
            s->column_first[++last] = e;
            before = -1;
        }
        if (--i <= before) return broken(r);
        s->column_row[e] = before = i;
    }
    while (last < count) s->column_first[++last] = entries;
    s->columns = (un_columns){count, s->column_first, s->column_row, s->column_val};
    return UN_OK;
}

/* Are unknowns in the order of their sites, or in that of the curve? */
static bool ascend(const un_system_file *s, int32_t n)
{
    const un_sites *sites = &s->sites;
    const int32_t *size = sites->size;
    uint64_t ends = un_morton((uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2]), last = 0;
    for (int32_t i = 0; i < n; i++) {
        uint64_t order = sites->kind == UN_SITES_BCC ? un_morton_order(s->key[i], ends)
                                                     : un_sites_order_of(sites, s->site[i]);
        if (i > 0 && order <= last) return false;
        last = order;
    }
    return true;
}

static un_status read_places(reader *r, int32_t n, un_system_file *s)
{
    un_sites *sites = &s->sites;
    int32_t rows, columns, *size = sites->size;
    char kind[8];
    if (sscanf(r->comment, "%%undine %7s size %d %d %d level_max %d", kind, &size[0], &size[1],
               &size[2], &sites->level_max) != 5 ||
        !next_int(r, n, n, &rows))
        return broken(r);
    bool bcc = strcmp(kind, "bcc") == 0;
    if (!next_int(r, bcc ? 4 : 3, bcc ? 4 : 3, &columns)) return broken(r);
    for (int a = 0; a < 3; a++)
        if (size[a] < 1 || size[a] > 1 << 20) return broken(r);
    UN_ALLOC(r->ctx, s->site, (size_t)n + 1);
    UN_ALLOC(r->ctx, s->key, (size_t)n + 1);
    UN_ALLOC(r->ctx, s->level, (size_t)n + 1);
    memset(s->key, 0, (size_t)n * sizeof *s->key);
    for (int column = 0; column < columns; column++)
        for (int32_t i = 0; i < n; i++) {
            int32_t v;
            if (!next_int(r, 0, column < 3 ? size[column] : 255, &v)) return broken(r);
            if (column == 3)
                s->level[i] = (uint8_t)v;
            else
                s->key[i] |= un_morton_spread((uint64_t)v) << column;
        }
    for (int32_t i = 0; i < n; i++) {
        uint64_t key = s->key[i];
        s->site[i] =
            bcc ? i
                : (int32_t)(un_morton_gather(key) +
                            (int64_t)size[0] * (un_morton_gather(key >> 1) +
                                                (int64_t)size[1] * un_morton_gather(key >> 2)));
    }
    sites->kind = bcc ? UN_SITES_BCC : UN_SITES_GRID;
    if (!ascend(s, n)) {
        if (bcc || (double)size[0] * size[1] * size[2] > INT32_MAX) return broken(r);
        UN_TRY(un_curve_init(&s->curve, r->ctx, size[1], size[2]));
        sites->curve = &s->curve;
        if (!ascend(s, n)) return broken(r);
    }
    for (int32_t i = 0; i < n && bcc; i++)
        if (s->level[i] > sites->level_max) return broken(r);
    sites->site = s->site;
    sites->key = s->key;
    sites->level = s->level;
    return UN_OK;
}

un_status un_system_read(un_context *ctx, const char *folder, int32_t number, un_system_file *s)
{
    static const char matrix[] = "%%MatrixMarket matrix coordinate real symmetric\n";
    static const char array[] = "%%MatrixMarket matrix array real general\n";
    static const char general[] = "%%MatrixMarket matrix coordinate real general\n";
    static const char integers[] = "%%MatrixMarket matrix array integer general\n";
    reader *r = un_alloc_zero(ctx, 1, sizeof *r);
    *s = (un_system_file){0};
    if (!r) return UN_ERROR_MEMORY;
    r->ctx = ctx;
    un_status status = UN_OK;
    UN_TRY_DONE(load(r, folder, number, "", matrix, false));
    UN_TRY_DONE(read_matrix(r, &s->a));
    UN_TRY_DONE(load(r, folder, number, "_b", array, false));
    UN_TRY_DONE(read_vector(r, s->a.n, &s->b));
    UN_TRY_DONE(load(r, folder, number, "_x", array, false));
    UN_TRY_DONE(read_vector(r, s->a.n, &s->x));
    UN_TRY_DONE(load(r, folder, number, "_places", integers, true));
    if (r->text) UN_TRY_DONE(read_places(r, s->a.n, s));
    UN_TRY_DONE(load(r, folder, number, "_columns", general, true));
    if (r->text) UN_TRY_DONE(read_columns(r, s->a.n, s));
done:
    un_free(ctx, r->text);
    un_free(ctx, r);
    if (status != UN_OK) un_system_free(ctx, s);
    return status;
}

void un_system_free(un_context *ctx, un_system_file *s)
{
    void *blocks[] = {s->a.row, s->a.col, s->a.val,        s->b,          s->x,         s->site,
                      s->key,   s->level, s->column_first, s->column_row, s->column_val};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    un_curve_free(ctx, &s->curve);
    *s = (un_system_file){0};
}
