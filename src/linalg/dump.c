/* Systems as Matrix Market files [Boisvert, Pozo & Remington 1996], to be read by other programs
 * and by bench/solvers.c.
 *
 * Text, numbers with 17 digits, so that what is read back has the same bits. Comment lines that
 * begin with %undine hold what sites have beside its places. */
#include "linalg/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define BUFFER_BYTES ((size_t)1 << 18)
#define LINE_BYTES 128 /* more than a line of ours takes */

static un_status fail(un_context *ctx, const char *verb, const char *path, int error)
{
    char reason[128];
    const char *remedy = "set solver.dump to another folder";
    if (error == ENOSPC || error == EDQUOT)
        remedy = "free some space there, raise solver.dump_every, or set solver.dump to another "
                 "folder";
    if (error == EACCES || error == EPERM)
        remedy = "make the folder writable for you (chmod, chown) or set solver.dump to another";
    return un_fail(ctx, UN_ERROR_FILE, "cannot %s %s: %s; %s", verb, path,
                   strerror_r(error, reason, sizeof reason), remedy);
}

un_status un_system_folder(un_context *ctx, const char *folder)
{
    char path[PATH_BYTES];
    size_t length = strlen(folder);
    if (length == 0 || length >= sizeof path - 64)
        return un_fail(ctx, UN_ERROR_FILE,
                       "solver.dump must name a folder, with a path of at most "
                       "4000 characters");
    for (size_t i = 1; i <= length; i++) {
        if (folder[i] != '/' && folder[i] != 0) continue;
        memcpy(path, folder, i);
        path[i] = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return fail(ctx, "create the folder", path, errno);
    }
    struct stat found;
    if (stat(folder, &found) != 0) return fail(ctx, "use the folder", folder, errno);
    if (!S_ISDIR(found.st_mode)) return fail(ctx, "use the folder", folder, ENOTDIR);
    if (access(folder, W_OK | X_OK) != 0) return fail(ctx, "write into", folder, errno);
    return UN_OK;
}

/* ---- writing: aside, synced, renamed ---- */

typedef struct writer {
    un_context *ctx;
    char path[PATH_BYTES], aside[PATH_BYTES + 32];
    int fd, error;
    size_t used;
    char *buffer;
} writer;

static void flush(writer *w)
{
    for (size_t at = 0; at < w->used && !w->error;) {
        ssize_t count = write(w->fd, w->buffer + at, w->used - at);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            w->error = count < 0 ? errno : EIO;
        else
            at += (size_t)count;
    }
    w->used = 0;
}

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...)
{
    if (w->used + LINE_BYTES > BUFFER_BYTES) flush(w);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(w->buffer + w->used, LINE_BYTES, format, arguments);
    va_end(arguments);
    UN_ASSERT(length >= 0 && length < LINE_BYTES);
    w->used += (size_t)length;
}

static un_status begin(writer *w, const char *folder, int32_t number, const char *suffix)
{
    snprintf(w->path, sizeof w->path, "%s/%06d%s.mtx", folder, (int)number, suffix);
    snprintf(w->aside, sizeof w->aside, "%s.%ld.tmp", w->path, (long)getpid());
    w->used = 0;
    w->error = 0;
    unlink(w->aside);
    w->fd = open(w->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return w->fd < 0 ? fail(w->ctx, "write", w->path, errno) : UN_OK;
}

static un_status end(writer *w)
{
    flush(w);
    if (!w->error && fsync(w->fd) != 0 && errno != EINVAL) w->error = errno;
    if (close(w->fd) != 0 && !w->error && errno != EINTR) w->error = errno;
    if (!w->error && rename(w->aside, w->path) != 0) w->error = errno;
    if (!w->error) return UN_OK;
    unlink(w->aside);
    return fail(w->ctx, "write", w->path, w->error);
}

static un_status write_matrix(writer *w, const char *folder, int32_t number, const un_csr *a)
{
    UN_TRY(begin(w, folder, number, ""));
    int64_t lower = 0;
    for (int32_t i = 0; i < a->n; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++) lower += a->col[k] <= i;
    put(w, "%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %lld\n", a->n, a->n,
        (long long)lower);
    for (int32_t i = 0; i < a->n && !w->error; i++)
        for (int32_t k = a->row[i]; k < a->row[i + 1]; k++)
            if (a->col[k] <= i) put(w, "%d %d %.17g\n", i + 1, a->col[k] + 1, a->val[k]);
    return end(w);
}

static un_status write_vector(writer *w, const char *folder, int32_t number, const char *suffix,
                              const double *v, int32_t n)
{
    UN_TRY(begin(w, folder, number, suffix));
    put(w, "%%%%MatrixMarket matrix array real general\n%d 1\n", n);
    for (int32_t i = 0; i < n && !w->error; i++) put(w, "%.17g\n", v[i]);
    return end(w);
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

/* An array by columns: x of all, y, z, and with BCC the levels. */
static un_status write_places(writer *w, const char *folder, int32_t number, const un_sites *sites,
                              int32_t n)
{
    bool bcc = sites->kind == UN_SITES_BCC;
    UN_TRY(begin(w, folder, number, "_places"));
    put(w, "%%%%MatrixMarket matrix array integer general\n");
    put(w, "%%undine %s size %d %d %d level_max %d\n", bcc ? "bcc" : "grid", sites->size[0],
        sites->size[1], sites->size[2], sites->level_max);
    put(w, "%d %d\n", n, bcc ? 4 : 3);
    for (int column = 0; column < (bcc ? 4 : 3); column++)
        for (int32_t i = 0; i < n && !w->error; i++) {
            int32_t at[3];
            place_of(sites, i, at);
            put(w, "%d\n", column < 3 ? at[column] : sites->level[sites->site[i]]);
        }
    return end(w);
}

un_status un_system_write(un_context *ctx, const char *folder, int32_t number, const un_csr *a,
                          const double *b, const double *x, const un_sites *sites)
{
    writer *w = un_alloc(ctx, 1, sizeof *w);
    if (!w) return UN_ERROR_MEMORY;
    w->ctx = ctx;
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, w->buffer, BUFFER_BYTES);
    UN_TRY_DONE(write_vector(w, folder, number, "_b", b, a->n));
    UN_TRY_DONE(write_vector(w, folder, number, "_x", x, a->n));
    if (sites && sites->kind != UN_SITES_NONE)
        UN_TRY_DONE(write_places(w, folder, number, sites, a->n));
    /* last: whoever finds the matrix finds the others */
    UN_TRY_DONE(write_matrix(w, folder, number, a));
done:
    un_free(ctx, w->buffer);
    un_free(ctx, w);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    un_context *ctx;
    char path[PATH_BYTES];
    char comment[LINE_BYTES];
    char *text, *at; /* all of the file, ended by 0 */
} reader;

static un_status broken(const reader *r)
{
    return un_fail(r->ctx, UN_ERROR_FILE,
                   "%s is not a Matrix Market file as solver.dump writes them, or not whole; write "
                   "it again",
                   r->path);
}

/* Reads the file, and its first line; absent: UN_OK and text NULL where that is allowed. */
static un_status load(reader *r, const char *folder, int32_t number, const char *suffix,
                      const char *head, bool optional)
{
    un_free(r->ctx, r->text);
    r->text = NULL;
    r->comment[0] = 0;
    snprintf(r->path, sizeof r->path, "%s/%06d%s.mtx", folder, (int)number, suffix);
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        if (optional && errno == ENOENT) return UN_OK;
        return un_fail(r->ctx, UN_ERROR_FILE, "cannot read %s: %s; check the path", r->path,
                       strerror(errno));
    }
    struct stat found;
    size_t size = fstat(fd, &found) == 0 && found.st_size > 0 ? (size_t)found.st_size : 0, have = 0;
    r->text = un_alloc(r->ctx, size + 1, 1);
    if (!r->text) {
        close(fd);
        return UN_ERROR_MEMORY;
    }
    while (have < size) {
        ssize_t count = read(fd, r->text + have, size - have);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        have += (size_t)count;
    }
    close(fd);
    r->text[have] = 0;
    r->at = r->text;
    if (strncmp(r->at, head, strlen(head)) != 0) return broken(r);
    while (*r->at == '%') {
        if (strncmp(r->at, "%undine ", 8) == 0) snprintf(r->comment, LINE_BYTES, "%.100s", r->at);
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
    /* Entry (i, j) stands before all entries (i, k > j) and (k > i, .) in the file, so filling both
     * halves in its order leaves columns ascending. */
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

static un_status read_places(reader *r, int32_t n, un_system *s)
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
        if (size[a] < 1 || size[a] > 0x1fffff) return broken(r);
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
    for (int32_t i = 1; i < n; i++)
        if (bcc ? s->key[i] <= s->key[i - 1] : s->site[i] <= s->site[i - 1]) return broken(r);
    for (int32_t i = 0; i < n && bcc; i++)
        if (s->level[i] > sites->level_max) return broken(r);
    sites->kind = bcc ? UN_SITES_BCC : UN_SITES_GRID;
    sites->site = s->site;
    sites->key = s->key;
    sites->level = s->level;
    return UN_OK;
}

un_status un_system_read(un_context *ctx, const char *folder, int32_t number, un_system *s)
{
    static const char matrix[] = "%%MatrixMarket matrix coordinate real symmetric\n";
    static const char array[] = "%%MatrixMarket matrix array real general\n";
    static const char integers[] = "%%MatrixMarket matrix array integer general\n";
    reader *r = un_alloc_zero(ctx, 1, sizeof *r);
    *s = (un_system){0};
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
done:
    un_free(ctx, r->text);
    un_free(ctx, r);
    if (status != UN_OK) un_system_free(ctx, s);
    return status;
}

void un_system_free(un_context *ctx, un_system *s)
{
    void *blocks[] = {s->a.row, s->a.col, s->a.val, s->b, s->x, s->site, s->key, s->level};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    *s = (un_system){0};
}
