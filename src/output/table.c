/* Tables that grow by a row per step: stats.csv, probes.csv and bodies.csv. */
#include "output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct un_table {
    un_context *ctx;
    char *path;
    char *line; /* room for a whole row */
    int fd;
    int32_t column_count;
    off_t length; /* of the whole rows written; -1: not a regular file */
};

static int32_t count_columns(const char *header)
{
    int32_t count = 1;
    bool quoted = false;
    for (const char *c = header; *c; c++) {
        if (*c == '"') quoted = !quoted;
        if (*c == ',' && !quoted) count++;
    }
    return count;
}

static void table_free(un_table *table)
{
    un_context *ctx = table->ctx;
    if (table->fd >= 0) close(table->fd);
    un_free(ctx, table->line);
    un_free(ctx, table->path);
    un_free(ctx, table);
}

static un_status open_table(un_context *ctx, const char *path, const char *header, un_table **out)
{
    un_table *table = un_alloc_zero(ctx, 1, sizeof *table);
    if (!table) return UN_ERROR_MEMORY;
    table->ctx = ctx;
    table->fd = -1;
    table->column_count = count_columns(header);
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, table->line, (size_t)table->column_count * UN_NUMBER_CHARS);
    table->path = un_strdup(ctx, path);
    if (!table->path) {
        status = UN_ERROR_MEMORY;
        goto done;
    }
    table->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    struct stat found;
    if (table->fd < 0 || fstat(table->fd, &found) != 0) {
        status = un_file_fail(ctx, "write", path, errno);
        goto done;
    }
    table->length = S_ISREG(found.st_mode) ? found.st_size : -1;
done:
    if (status == UN_OK)
        *out = table;
    else
        table_free(table);
    return status;
}

un_status un_table_create(un_context *ctx, const char *path, const char *header, un_table **out)
{
    *out = NULL;
    un_file *file;
    UN_TRY(un_file_create(ctx, path, &file));
    un_file_printf(file, "%s\n", header);
    UN_TRY(un_file_commit(file));
    return open_table(ctx, path, header, out);
}

/* The header, and a line's end just before `length`. */
static un_status check_contents(un_context *ctx, const char *path, const char *header,
                                int64_t length)
{
    size_t head = strlen(header);
    char *found;
    UN_ALLOC(ctx, found, head + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    un_status status = UN_OK;
    char end = 0;
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0)
        status = un_file_fail(ctx, "read", path, errno);
    else if (!S_ISREG(file.st_mode) || file.st_size < length)
        status =
            un_fail(ctx, UN_ERROR_FILE, "%s has lost rows since then: %lld bytes of %lld are left",
                    path, (long long)file.st_size, (long long)length);
    else if (length < (int64_t)head + 1 || pread(fd, found, head + 1, 0) != (ssize_t)head + 1 ||
             memcmp(found, header, head) != 0 || found[head] != '\n')
        status = un_fail(ctx, UN_ERROR_FILE,
                         "%s has other columns than this run writes: other probes, other names of "
                         "solids, or another version of the program",
                         path);
    else if (pread(fd, &end, 1, (off_t)length - 1) != 1 || end != '\n')
        status = un_fail(ctx, UN_ERROR_FILE, "%s was changed since then: no row ends at byte %lld",
                         path, (long long)length);
    if (fd >= 0) close(fd);
    un_free(ctx, found);
    return status;
}

un_status un_table_open(un_context *ctx, const char *path, const char *header, int64_t length,
                        un_table **out)
{
    *out = NULL;
    UN_TRY(check_contents(ctx, path, header, length));
    UN_TRY(open_table(ctx, path, header, out));
    (*out)->length = (off_t)length;
    return UN_OK;
}

un_status un_table_cut(un_table *table)
{
    if (ftruncate(table->fd, table->length) == 0 && (fsync(table->fd) == 0 || errno == EINVAL))
        return UN_OK;
    return un_file_fail(table->ctx, "write", table->path, errno);
}

int64_t un_table_length(const un_table *table)
{
    return table->length;
}

static un_status create_or_open(un_context *ctx, const char *path, const char *header,
                                int64_t length, un_table **table)
{
    return length < 0 ? un_table_create(ctx, path, header, table)
                      : un_table_open(ctx, path, header, length, table);
}

un_status un_table_row(un_table *table, const double *values, int32_t count)
{
    UN_ASSERT(count == table->column_count);
    size_t used = 0;
    for (int32_t i = 0; i < count; i++) {
        un_number_format(table->line + used, values[i]);
        used += strlen(table->line + used);
        table->line[used++] = i + 1 < count ? ',' : '\n';
    }
    for (size_t done = 0; done < used;) {
        ssize_t written = write(table->fd, table->line + done, used - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            int error = written < 0 ? errno : EIO;
            /* remove the partial row; if that fails too, readers ignore it */
            if (table->length >= 0 && ftruncate(table->fd, table->length) != 0) error = errno;
            return un_file_fail(table->ctx, "write", table->path, error);
        }
        done += (size_t)written;
    }
    if (table->length >= 0) table->length += (off_t)used;
    return UN_OK;
}

un_status un_table_sync(un_table *table)
{
    if (table->length < 0) return UN_OK;
    struct stat found;
    if (fsync(table->fd) != 0 && errno != EINVAL)
        return un_file_fail(table->ctx, "write", table->path, errno);
    if (fstat(table->fd, &found) == 0 && found.st_nlink == 0)
        return un_fail(table->ctx, UN_ERROR_FILE,
                       "cannot write %s: it was removed during the run; run again and leave "
                       "the output folder in place",
                       table->path);
    return UN_OK;
}

un_status un_table_close(un_table *table)
{
    if (!table) return UN_OK;
    un_status status = un_table_sync(table);
    table_free(table);
    return status;
}

/* ---- stats.csv ---- */

/* Newer columns are at the end, for methods that have them. */
static bool is_viscous(const un_method *method)
{
    return method->traits.viscous;
}
static const char viscous_header[] = ",viscous_iterations";
static const char volume_header[] = ",volume_particles";

static const char stats_header[] =
    "step,frame,time,dt,particles,ballistic,cells,nodes,volume,volume_error,energy_kinetic,"
    "energy_potential,momentum_x,momentum_y,momentum_z,max_speed,max_divergence,"
    "pressure_iterations,pressure_residual,bytes,seconds";
#define STATS_COLUMNS 21

un_status un_stats_create(un_context *ctx, const char *path, const un_method *method,
                          int64_t length, un_table **table)
{
    size_t room = sizeof stats_header + sizeof viscous_header + sizeof volume_header;
    for (const char *const *stage = method->stages; *stage; stage++)
        room += strlen(",seconds_") + strlen(*stage);
    char *header;
    UN_ALLOC(ctx, header, room);
    size_t used = sizeof stats_header - 1;
    memcpy(header, stats_header, sizeof stats_header);
    for (const char *const *stage = method->stages; *stage; stage++)
        used += (size_t)snprintf(header + used, room - used, ",seconds_%s", *stage);
    if (is_viscous(method))
        used += (size_t)snprintf(header + used, room - used, "%s", viscous_header);
    snprintf(header + used, room - used, "%s", volume_header);
    un_status status = create_or_open(ctx, path, header, length, table);
    un_free(ctx, header);
    return status;
}

un_status un_stats_row(un_table *table, const un_method *method, const un_step *s)
{
    double values[STATS_COLUMNS + UN_STAGE_COUNT_MAX + 2] = {s->step,
                                                             s->frame,
                                                             s->time,
                                                             s->dt,
                                                             (double)s->particles,
                                                             (double)s->ballistic,
                                                             (double)s->cells,
                                                             (double)s->nodes,
                                                             s->volume,
                                                             s->volume_error,
                                                             s->energy_kinetic,
                                                             s->energy_potential,
                                                             s->momentum.x,
                                                             s->momentum.y,
                                                             s->momentum.z,
                                                             s->max_speed,
                                                             s->max_divergence,
                                                             s->pressure_iterations,
                                                             s->pressure_residual,
                                                             s->bytes,
                                                             s->seconds};
    int32_t count = STATS_COLUMNS;
    for (int32_t i = 0; method->stages[i]; i++) {
        UN_ASSERT(i < UN_STAGE_COUNT_MAX);
        values[count++] = s->stage_seconds[i];
    }
    if (is_viscous(method)) values[count++] = s->viscous_iterations;
    values[count++] = s->volume_particles;
    return un_table_row(table, values, count);
}

/* ---- probes.csv ---- */

/* A name with a comma, a quote or a line end is quoted, its quotes doubled (RFC 4180). */
static size_t append_name(char *to, const char *name)
{
    size_t used = 0;
    bool quote = strpbrk(name, ",\"\r\n") != NULL;
    if (quote) to[used++] = '"';
    for (; *name; name++) {
        if (*name == '"') to[used++] = '"';
        to[used++] = *name;
    }
    if (quote) to[used++] = '"';
    to[used] = 0;
    return used;
}

un_status un_probes_create(un_context *ctx, const char *path, const un_probe *probes,
                           int32_t probe_count, int64_t length, un_table **table)
{
    char *header;
    UN_ALLOC(ctx, header, 8 + (size_t)probe_count * (2 * sizeof probes->name + 4));
    size_t used = append_name(header, "time");
    for (int32_t i = 0; i < probe_count; i++) {
        header[used++] = ',';
        used += append_name(header + used, probes[i].name);
    }
    un_status status = create_or_open(ctx, path, header, length, table);
    un_free(ctx, header);
    return status;
}
