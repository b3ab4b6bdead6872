/* bodies.csv: poses of the moving solids after each step, written and read back.
 *
 * The reader trusts nothing, as with the other tables: a last line that was cut short is ignored;
 * anything else that cannot be read is an error that names the line. Unknown columns are ignored.
 */
#include "output/output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* For each body; the first POSE_COLUMNS are its pose. */
static const char *const columns[] = {"x",  "y",  "z",  "qw", "qx", "qy", "qz",
                                      "vx", "vy", "vz", "wx", "wy", "wz"};
#define COLUMNS 13
#define POSE_COLUMNS 7

static void column_name(char *to, size_t size, const char *body, int column)
{
    snprintf(to, size, "%s_%s", body, columns[column]);
}

#define COLUMN_CHARS (sizeof((un_solid *)0)->name + 4)

/* ---- writing ---- */

un_status un_bodies_table_create(un_context *ctx, const char *path, const un_bodies *bodies,
                                 int64_t length, un_table **table)
{
    char *header;
    size_t room = 8 + (size_t)bodies->count * COLUMNS * COLUMN_CHARS, used = 0;
    UN_ALLOC(ctx, header, room);
    used += (size_t)snprintf(header, room, "time");
    for (int32_t b = 0; b < bodies->count; b++)
        for (int c = 0; bodies->body[b].moves && c < COLUMNS; c++) {
            header[used++] = ',';
            column_name(header + used, room - used, bodies->body[b].name, c);
            used += strlen(header + used);
        }
    un_status status = length < 0 ? un_table_create(ctx, path, header, table)
                                  : un_table_open(ctx, path, header, length, table);
    un_free(ctx, header);
    return status;
}

un_status un_bodies_table_row(un_context *ctx, un_table *table, const un_bodies *bodies,
                              double time)
{
    double *values;
    int32_t count = 0;
    UN_ALLOC(ctx, values, 1 + bodies->count * COLUMNS);
    values[count++] = time;
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *body = &bodies->body[b];
        if (!body->moves) continue;
        un_vec3 x = un_pose_apply(&body->to, body->centre), v = body->velocity, w = body->spin;
        double q[4];
        un_pose_quaternion(&body->to, q);
        const double row[COLUMNS] = {x.x, x.y, x.z, q[0], q[1], q[2], q[3],
                                     v.x, v.y, v.z, w.x,  w.y,  w.z};
        memcpy(values + count, row, sizeof row);
        count += COLUMNS;
    }
    un_status status = un_table_row(table, values, count);
    un_free(ctx, values);
    return status;
}

/* ---- reading ---- */

struct un_motion {
    un_context *ctx;
    const un_scene *scene;
    char *path;    /* of the table; NULL: there is none, and the scene places the solids */
    int32_t *slot; /* by solid: its index among the moving ones, -1: at rest */
    int32_t moving_count, row_count;
    double *time;                  /* by row, ascending */
    double (*place)[POSE_COLUMNS]; /* by row and mover */
};

typedef struct reader {
    un_motion *motion;
    const char *at;
    int32_t line, cell_count;
    int32_t *meaning; /* by cell: mover * POSE_COLUMNS + column, TIME or NOTHING */
} reader;

enum { NOTHING = -1, TIME = -2 };

/* The column with this name, up to `length`. */
static int32_t find_meaning(const un_motion *m, const char *name, size_t length)
{
    char known[COLUMN_CHARS];
    if (length == 4 && strncmp(name, "time", 4) == 0) return TIME;
    for (int32_t s = 0; s < m->scene->def.solid_count; s++)
        for (int c = 0; m->slot[s] >= 0 && c < POSE_COLUMNS; c++) {
            column_name(known, sizeof known, m->scene->def.solids[s].name, c);
            if (strlen(known) == length && strncmp(known, name, length) == 0)
                return m->slot[s] * POSE_COLUMNS + c;
        }
    return NOTHING;
}

static un_status check_header(const reader *r)
{
    const un_motion *m = r->motion;
    char name[COLUMN_CHARS] = "time";
    for (int32_t wanted = -1; wanted < m->moving_count * POSE_COLUMNS; wanted++) {
        bool found = false;
        for (int32_t k = 0; k < r->cell_count; k++)
            found |= r->meaning[k] == (wanted < 0 ? TIME : wanted);
        if (found) continue;
        for (int32_t s = 0; wanted >= 0 && s < m->scene->def.solid_count; s++)
            if (m->slot[s] == wanted / POSE_COLUMNS)
                column_name(name, sizeof name, m->scene->def.solids[s].name, wanted % POSE_COLUMNS);
        return un_fail(
            m->ctx, UN_ERROR_FILE,
            "%s:1: column %s is missing; the table is damaged, or belongs to another scene than "
            "the scene.lua beside it: run again",
            m->path, name);
    }
    return UN_OK;
}

static un_status read_header(reader *r)
{
    un_motion *m = r->motion;
    size_t length = strcspn(r->at, "\n");
    r->cell_count = 1;
    for (size_t i = 0; i < length; i++) r->cell_count += r->at[i] == ',';
    UN_ALLOC(m->ctx, r->meaning, r->cell_count);
    for (int32_t k = 0; k < r->cell_count; k++) {
        size_t cell = strcspn(r->at, ",\r\n");
        r->meaning[k] = find_meaning(m, r->at, cell);
        r->at += cell + (r->at[cell] == ',');
    }
    r->at += strcspn(r->at, "\n");
    r->line = 1;
    return check_header(r);
}

static un_status bad_row(const reader *r, const char *what)
{
    return un_fail(r->motion->ctx, UN_ERROR_FILE,
                   "%s:%d: %s; the table is damaged: run again, or resume from an earlier frame",
                   r->motion->path, r->line, what);
}

/* Reads the row at r->at into the next row of the motion. */
static un_status read_row(reader *r)
{
    un_motion *m = r->motion;
    int32_t row = m->row_count;
    double(*place)[POSE_COLUMNS] = m->place + (int64_t)row * m->moving_count;
    for (int32_t k = 0; k < r->cell_count; k++) {
        const char *end;
        double value = un_number_parse(r->at, &end);
        if (end == r->at || (r->meaning[k] != NOTHING && !isfinite(value)))
            return bad_row(r, "a number is missing");
        if (*end != (k + 1 < r->cell_count ? ',' : '\n') && *end != '\r')
            return bad_row(r, "the row and the header differ in length");
        r->at = end + (*end == ',');
        if (r->meaning[k] == TIME) m->time[row] = value;
        if (r->meaning[k] >= 0)
            place[r->meaning[k] / POSE_COLUMNS][r->meaning[k] % POSE_COLUMNS] = value;
    }
    if (row > 0 && !(m->time[row] > m->time[row - 1]))
        return bad_row(r, "time does not increase from the row before");
    for (int32_t k = 0; k < m->moving_count; k++) {
        const double *q = place[k] + 3;
        double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        if (!(fabs(length - 1) < 1e-3)) return bad_row(r, "a quaternion is not of unit length");
    }
    m->row_count++;
    return UN_OK;
}

static un_status read_table(un_motion *m, const char *text)
{
    reader r = {.motion = m, .at = text};
    un_status status = UN_OK;
    size_t lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    if (lines == 0) return un_fail(m->ctx, UN_ERROR_FILE, "%s: is empty; run again", m->path);
    UN_ALLOC_DONE(m->ctx, m->time, lines);
    UN_ALLOC_DONE(m->ctx, m->place, lines * (size_t)m->moving_count);
    UN_TRY_DONE(read_header(&r));
    for (size_t line = 1; line < lines; line++) {
        r.at += strcspn(r.at, "\n") + 1;
        r.line++;
        UN_TRY_DONE(read_row(&r));
    }
done:
    un_free(m->ctx, r.meaning);
    return status;
}

un_status un_motion_read(un_context *ctx, const char *directory, const un_scene *scene,
                         un_motion **out)
{
    *out = NULL;
    un_motion *m = un_alloc_zero(ctx, 1, sizeof *m);
    if (!m) return UN_ERROR_MEMORY;
    char path[4200], *text = NULL;
    struct stat found;
    un_status status = UN_OK;
    m->ctx = ctx;
    m->scene = scene;
    UN_ALLOC_DONE(ctx, m->slot, scene->def.solid_count + 1);
    for (int32_t s = 0; s < scene->def.solid_count; s++)
        m->slot[s] = scene->def.solids[s].moves ? m->moving_count++ : -1;
    snprintf(path, sizeof path, "%s/bodies.csv", directory);
    if (m->moving_count == 0 || (stat(path, &found) != 0 && errno == ENOENT)) goto done;
    m->path = un_strdup(ctx, path);
    if (!m->path) status = UN_ERROR_MEMORY;
    if (status == UN_OK) status = un_file_read(ctx, path, &text, NULL);
    if (status == UN_OK) status = read_table(m, text);
done:
    un_free(ctx, text);
    if (status == UN_OK)
        *out = m;
    else
        un_motion_destroy(m);
    return status;
}

void un_motion_destroy(un_motion *m)
{
    if (!m) return;
    un_free(m->ctx, m->slot);
    un_free(m->ctx, m->path);
    un_free(m->ctx, m->time);
    un_free(m->ctx, m->place);
    un_free(m->ctx, m);
}

bool un_motion_is_recorded(const un_motion *m)
{
    return m->path != NULL;
}

un_status un_motion_pose(const un_motion *m, int32_t solid, int32_t frame, un_pose *pose)
{
    double rate = m->scene->def.frames.rate, t = frame / rate, slack = 1e-6 / rate;
    *pose = un_pose_identity();
    if (m->slot[solid] < 0) return UN_OK;
    if (!m->path) return un_scene_pose(m->scene, solid, t, pose);
    int32_t lo = 0, hi = m->row_count; /* the first row at or after the frame */
    while (lo < hi) {
        int32_t middle = lo + (hi - lo) / 2;
        if (m->time[middle] < t - slack)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == m->row_count || m->time[lo] > t + slack)
        return un_fail(m->ctx, UN_ERROR_FILE,
                       "%s has no row for frame %d (t = %g s); the table was cut short: resume the "
                       "run from an earlier frame, or run again",
                       m->path, frame, t);
    const double *place = m->place[(int64_t)lo * m->moving_count + m->slot[solid]];
    *pose = un_pose_of_quaternion(place + 3, un_v3(0, 0, 0));
    un_vec3 centre = un_body_reference(&m->scene->def.solids[solid]);
    pose->translation = un_sub(un_v3(place[0], place[1], place[2]), un_pose_rotate(pose, centre));
    return UN_OK;
}

un_status un_motion_place(const un_motion *m, un_bodies *bodies, int32_t frame)
{
    for (int32_t b = 0; b < bodies->count; b++) {
        un_pose pose;
        if (!bodies->body[b].moves) continue;
        UN_TRY(un_motion_pose(m, b, frame, &pose));
        un_body_place(&bodies->body[b], &pose);
    }
    return UN_OK;
}
