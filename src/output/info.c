/* Summary of a run's directory, from run.json and stats.csv.
 *
 * The reader trusts neither: the run may be going on or have been killed, or its files edited. A
 * last line that was cut short is ignored; anything else that cannot be read is an error that names
 * the file and the line. Unknown keys and columns are ignored, since later versions add some. */
#include "output/output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- run.json ---- */

#define JSON_DEPTH_MAX 32

typedef struct json_reader {
    const char *at;
    char key[96]; /* dotted path of the value being read, as "frames.finished" or "cells[1]" */
    un_info *info;
} json_reader;

static void json_space(json_reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool json_take(json_reader *r, char c)
{
    json_space(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static int hex4(const char *text)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *found;
        int c = text[i] | 0x20;
        if (!text[i] || !(found = strchr(digits, c))) return -1;
        value = 16 * value + (int)(found - digits);
    }
    return value;
}

/* The string at the cursor, cut to what fits. */
static bool json_string(json_reader *r, char *to, size_t size)
{
    if (!json_take(r, '"')) return false;
    size_t used = 0;
    while (*r->at != '"') {
        char bytes[4];
        size_t count = 1;
        if (!*r->at) return false;
        bytes[0] = *r->at++;
        if (bytes[0] == '\\') {
            static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
            const char *found = *r->at ? strchr(names, *r->at) : NULL;
            int code = *r->at == 'u' ? hex4(r->at + 1) : -1;
            if (found) {
                bytes[0] = meant[found - names];
                r->at++;
            } else if (code < 0) {
                return false;
            } else {
                r->at += 5;
                if (code < 0x80) {
                    bytes[0] = code ? (char)code : '?';
                } else if (code < 0x800) {
                    bytes[0] = (char)(0xc0 | code >> 6);
                    bytes[1] = (char)(0x80 | (code & 0x3f));
                    count = 2;
                } else {
                    bytes[0] = (char)(0xe0 | code >> 12);
                    bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
                    bytes[2] = (char)(0x80 | (code & 0x3f));
                    count = 3;
                }
            }
        }
        if (used + count < size) {
            memcpy(to + used, bytes, count);
            used += count;
        }
    }
    if (size) to[used] = 0;
    r->at++;
    return true;
}

static int32_t to_int(double value)
{
    return value >= INT32_MAX ? INT32_MAX : value >= 0 ? (int32_t)value : 0; /* NaN: 0 */
}

static void keep_number(json_reader *r, double value)
{
    un_info *info = r->info;
    if (strcmp(r->key, "frames.finished") == 0) info->frames_finished = to_int(value);
    if (strcmp(r->key, "frames.planned") == 0) info->frames_planned = to_int(value);
    if (strcmp(r->key, "frames.rate") == 0) info->rate = value;
    if (strcmp(r->key, "resolution.cells[0]") == 0) info->cells[0] = to_int(value);
    if (strcmp(r->key, "resolution.cells[1]") == 0) info->cells[1] = to_int(value);
    if (strcmp(r->key, "resolution.cells[2]") == 0) info->cells[2] = to_int(value);
    if (strcmp(r->key, "resolution.cell_size") == 0) info->cell_size = value;
    if (strcmp(r->key, "bytes_peak") == 0) info->bytes_max = value;
    if (strcmp(r->key, "seconds") == 0) info->seconds = value;
    if (strncmp(r->key, "stages.", 7) == 0 && info->stage_count < UN_STAGES_MAX) {
        snprintf(info->stages[info->stage_count].name, sizeof info->stages->name, "%.31s",
                 r->key + 7);
        info->stages[info->stage_count++].seconds = value;
    }
}

static bool keep_string(json_reader *r)
{
    un_info *info = r->info;
    char *to = NULL;
    size_t size = 0;
    if (strcmp(r->key, "version") == 0) to = info->version, size = sizeof info->version;
    if (strcmp(r->key, "method") == 0) to = info->method, size = sizeof info->method;
    if (strcmp(r->key, "status") == 0) to = info->status, size = sizeof info->status;
    if (strcmp(r->key, "message") == 0) to = info->message, size = sizeof info->message;
    if (strcmp(r->key, "suspect") == 0) to = info->suspect, size = sizeof info->suspect;
    return json_string(r, to, size);
}

static bool json_value(json_reader *r, int depth);

static bool json_members(json_reader *r, int depth, char close)
{
    size_t length = strlen(r->key);
    bool object = close == '}';
    r->at++;
    if (json_take(r, close)) return true;
    for (int index = 0;; index++) {
        char name[64] = "";
        if (object && (!json_string(r, name, sizeof name) || !json_take(r, ':'))) return false;
        if (object)
            snprintf(r->key + length, sizeof r->key - length, "%s%s", length ? "." : "", name);
        else
            snprintf(r->key + length, sizeof r->key - length, "[%d]", index);
        bool good = json_value(r, depth + 1);
        r->key[length] = 0;
        if (!good) return false;
        if (json_take(r, close)) return true;
        if (!json_take(r, ',')) return false;
    }
}

static bool json_value(json_reader *r, int depth)
{
    json_space(r);
    if (depth > JSON_DEPTH_MAX) return false;
    if (*r->at == '{') return json_members(r, depth, '}');
    if (*r->at == '[') return json_members(r, depth, ']');
    if (*r->at == '"') return keep_string(r);
    static const char *const words[] = {"null", "true", "false"};
    for (int i = 0; i < 3; i++)
        if (strncmp(r->at, words[i], strlen(words[i])) == 0) {
            r->at += strlen(words[i]);
            return true;
        }
    const char *end;
    double value = un_number_parse(r->at, &end);
    if (end == r->at || !isfinite(value)) return false;
    r->at = end;
    keep_number(r, value);
    return true;
}

static int32_t line_of(const char *text, const char *at)
{
    int32_t line = 1;
    for (; text < at; text++) line += *text == '\n';
    return line;
}

static un_status read_record(un_context *ctx, const char *path, un_info *info)
{
    char *text;
    UN_TRY(un_file_read(ctx, path, &text, NULL));
    json_reader r = {.at = text, .info = info};
    json_space(&r);
    bool good = *r.at == '{' && json_value(&r, 0);
    json_space(&r);
    un_status status = UN_OK;
    if (!good || *r.at)
        status = un_fail(ctx, UN_ERROR_FILE,
                         "%s:%d: not the record of a run, or damaged; run the scene again", path,
                         line_of(text, r.at));
    un_free(ctx, text);
    return status;
}

/* ---- stats.csv ---- */

enum { STEP, TIME, PARTICLES, VOLUME, VOLUME_ERROR, MAX_SPEED, BYTES, SECONDS, COLUMN_KINDS };
static const char *const column_names[COLUMN_KINDS] = {
    "step", "time", "particles", "volume", "volume_error", "max_speed", "bytes", "seconds"};

#define COLUMNS_MAX 512

typedef struct stats_columns {
    int32_t count;
    bool want_stages;
    int16_t kind[COLUMNS_MAX]; /* meaning of a column: COLUMN_KINDS + s for stage s, -1 unknown */
} stats_columns;

/* False: a column that every version writes is missing. */
static bool read_header(stats_columns *columns, un_info *info, const char *line, const char *end)
{
    bool seen[COLUMN_KINDS] = {false}, all = true;
    for (columns->count = 0; columns->count < COLUMNS_MAX;) {
        const char *stop = memchr(line, ',', (size_t)(end - line));
        int32_t length = (int32_t)((stop ? stop : end) - line), kind = -1;
        for (int32_t k = 0; k < COLUMN_KINDS; k++)
            if ((int32_t)strlen(column_names[k]) == length &&
                strncmp(column_names[k], line, (size_t)length) == 0) {
                kind = k;
                seen[k] = true;
            }
        if (columns->want_stages && length > 8 && strncmp(line, "seconds_", 8) == 0 &&
            info->stage_count < UN_STAGES_MAX) {
            kind = COLUMN_KINDS + info->stage_count;
            snprintf(info->stages[info->stage_count].name, sizeof info->stages->name, "%.*s",
                     length - 8, line + 8);
            info->stage_count++;
        }
        columns->kind[columns->count++] = (int16_t)kind;
        if (!stop) break;
        line = stop + 1;
    }
    for (int32_t k = 0; k < COLUMN_KINDS; k++) all = all && seen[k];
    return all;
}

static int64_t to_count(double value)
{
    return value >= 9e15 ? (int64_t)9e15 : value >= 0 ? (int64_t)value : 0;
}

static void keep_row(un_info *info, const double *value, int32_t stage_columns, bool first,
                     double *seconds)
{
    int64_t particles = to_count(value[PARTICLES]);
    if (first) {
        info->particles_first = particles;
        info->volume_first = value[VOLUME];
    }
    info->steps = to_int(value[STEP]);
    info->time = value[TIME];
    info->particles_last = particles;
    info->particles_max = un_max64(info->particles_max, particles);
    info->volume_last = value[VOLUME];
    info->volume_error_last = value[VOLUME_ERROR];
    if (fabs(value[VOLUME_ERROR]) > fabs(info->volume_error_max))
        info->volume_error_max = value[VOLUME_ERROR];
    info->max_speed = fmax(info->max_speed, value[MAX_SPEED]);
    info->bytes_max = fmax(info->bytes_max, value[BYTES]);
    *seconds += fmax(value[SECONDS], 0);
    for (int32_t s = 0; s < stage_columns; s++)
        info->stages[s].seconds += fmax(value[COLUMN_KINDS + s], 0);
}

/* value: COLUMN_KINDS + stage_count numbers. */
static bool read_row(const stats_columns *columns, double *value, const char *line, const char *end)
{
    for (int32_t i = 0; i < columns->count; i++) {
        const char *stop;
        double number = un_number_parse(line, &stop);
        bool last = i + 1 == columns->count;
        if (stop == line || (last ? stop != end : *stop != ',')) return false;
        if (columns->kind[i] >= 0) value[columns->kind[i]] = number;
        line = stop + 1;
    }
    return true;
}

static un_status read_stats(un_context *ctx, const char *path, un_info *info)
{
    char *text;
    size_t size;
    UN_TRY(un_file_read(ctx, path, &text, &size));
    un_status status = UN_OK;
    /* run.json also has the time between steps, for surfaces and files */
    stats_columns columns = {.want_stages = info->stage_count == 0};
    double value[COLUMN_KINDS + UN_STAGES_MAX] = {0}, seconds = 0;
    bool first = true;
    int32_t number = 0;
    for (char *line = text; line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) break; /* cut short */
        char *next = end + 1;
        if (end > line && end[-1] == '\r') end--;
        *end = 0;
        number++;
        if (number == 1) {
            if (!read_header(&columns, info, line, end)) {
                status = un_fail(ctx, UN_ERROR_FILE,
                                 "%s:1: not the header of stats.csv (step,frame,time,...): "
                                 "the file is damaged; run the scene again",
                                 path);
                break;
            }
        } else if (read_row(&columns, value, line, end)) {
            keep_row(info, value, columns.want_stages ? info->stage_count : 0, first, &seconds);
            first = false;
        } else {
            status = un_fail(ctx, UN_ERROR_FILE,
                             "%s:%d: not a row of %d numbers: the file is damaged; delete that "
                             "line or run the scene again",
                             path, number, columns.count);
            break;
        }
        line = next;
    }
    /* run.json may be older than the table */
    info->seconds = fmax(info->seconds, seconds);
    un_free(ctx, text);
    return status;
}

un_status un_info_read(un_context *ctx, const char *directory, un_info *info)
{
    memset(info, 0, sizeof *info);
    size_t room = strlen(directory) + 16;
    char *path;
    UN_ALLOC(ctx, path, room);
    un_status status = UN_OK;
    struct stat found;
    if (stat(directory, &found) != 0) {
        status = un_file_fail(ctx, "read", directory, errno);
        goto done;
    }
    snprintf(path, room, "%s/run.json", directory);
    if (stat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        status = un_fail(ctx, UN_ERROR_FILE,
                         "%s is not the directory of a run: it has no run.json; give the "
                         "directory that `undine run` wrote",
                         directory);
        goto done;
    }
    UN_TRY_DONE(read_record(ctx, path, info));
    /* a run that has just begun has no table yet */
    snprintf(path, room, "%s/stats.csv", directory);
    if (stat(path, &found) == 0 || errno != ENOENT) status = read_stats(ctx, path, info);
done:
    un_free(ctx, path);
    return status;
}

int32_t un_frame_count(un_context *ctx, const char *directory)
{
    char path[4200];
    struct stat found;
    int32_t count = 0;
    for (; count < 1000001; count++) {
        if (snprintf(path, sizeof path, "%s/frames/%04d", directory, count) >= (int)sizeof path)
            return 0;
        if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) break;
    }
    un_info *info = count > 0 ? un_alloc(ctx, 1, sizeof *info) : NULL;
    if (!info) return count;
    un_info_read(ctx, directory, info); /* use what could be read */
    if (strcmp(info->status, "running") == 0 && info->frames_finished + 1 < count)
        count = info->frames_finished + 1;
    un_free(ctx, info);
    return count;
}
