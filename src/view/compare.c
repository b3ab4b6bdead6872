/* One page of several runs: pictures at matching times, charts, what each run cost. Plain HTML and
 * SVG without a script, so that it can be mailed, printed and put anywhere. */
#include "view/view.h"
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 4200
#define CHART_W 520
#define CHART_H 220
#define CHART_POINTS 600 /* more than there are pixels */

un_compare_def un_compare_def_default(void)
{
    return (un_compare_def){.path = "compare.html", .picture_count = 4, .width = 560, .samples = 6};
}

typedef struct series {
    double *x, *y;
    int32_t count;
} series;

typedef struct compared_run {
    const char *directory;
    char name[128];
    un_info info;
    char *stats, *probes; /* whole tables */
    int32_t frames;
} compared_run;

typedef struct page {
    un_context *ctx;
    const un_compare_def *def;
    un_file *file;
    compared_run runs[UN_VIEW_RUNS_MAX];
    int32_t run_count;
    int32_t done, total;
} page;

/* ---- text ---- */

static void put_escaped(un_file *file, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '<':
            un_file_printf(file, "&lt;");
            break;
        case '>':
            un_file_printf(file, "&gt;");
            break;
        case '&':
            un_file_printf(file, "&amp;");
            break;
        case '"':
            un_file_printf(file, "&quot;");
            break;
        default:
            if ((unsigned char)*text < 0x20 || un_view_character(text) == 0)
                un_file_write(file, "?", 1);
            else
                un_file_write(file, text, (size_t)un_view_character(text));
            text += un_view_character(text) > 1 ? un_view_character(text) - 1 : 0;
        }
}

static const char style[] =
    ":root{color-scheme:light dark;--b:#fff;--p:#f3f6f8;--t:#16202a;--s:#5a6b7a;--l:#d9e0e6}"
    "@media(prefers-color-scheme:dark){:root{--b:#0e1318;--p:#172029;--t:#e6edf3;--s:#93a4b3;--l:"
    "#2a3540}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1500px;padding:28px;background:var(--b);"
    "color:var(--t);font:15px/1.5 system-ui,sans-serif}h1{font-size:24px;margin:0 0 4px}h2{"
    "font-size:17px;margin:34px 0 10px}p{color:var(--s);margin:0 0 12px}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    ".wide{overflow-x:auto}td,th{padding:6px 12px;border-bottom:1px solid var(--l);text-align:"
    "right;white-space:nowrap}th:first-child,td:first-child{text-align:left;color:var(--s);"
    "font-weight:400}thead th{font-weight:600}i{display:inline-block;width:11px;height:11px;"
    "border-radius:3px;margin-right:7px}"
    ".grid{display:grid;gap:12px;align-items:start}.grid "
    "img{width:100%;display:block;border-radius:"
    "8px}.time{color:var(--s);margin:14px 0 6px}figure{margin:0}figcaption{font-size:14px;padding:"
    "4px 0;overflow-wrap:anywhere}.charts{display:grid;grid-template-columns:repeat(auto-fill,"
    "minmax(min(440px,100%),1fr));gap:18px}.charts figure{background:var(--p);border-radius:10px;"
    "padding:12px}svg{width:100%;height:auto;display:block}svg text{fill:var(--s);font:11px "
    "system-ui,sans-serif}svg .axis{stroke:var(--l)}";

static const char *const colours[UN_VIEW_RUNS_MAX] = {"#2b8cc4", "#d9822b", "#3aa15c", "#a25bb0",
                                                      "#b59a17", "#d05454", "#5b6ee0", "#17998c"};

/* ---- tables ---- */

/* The column with this name over time, thinned to what a chart can show; empty if there is none.
 * Each bin keeps the value farthest from zero, so that peaks stay. */
static un_status read_column(un_context *ctx, const char *table, const char *name, double scale,
                             series *out)
{
    *out = (series){0};
    int32_t time = -1, column = -1, lines = 0, index = 0;
    if (!table) return UN_OK;
    const char *at = table, *end = strchr(table, '\n');
    if (!end) return UN_OK;
    for (const char *word = at; word < end; index++) {
        size_t length = strcspn(word, ",\n");
        if (length == 4 && strncmp(word, "time", 4) == 0) time = index;
        if (length == strlen(name) && strncmp(word, name, length) == 0) column = index;
        word += length + 1;
    }
    if (time < 0 || column < 0) return UN_OK;
    for (const char *c = end + 1; *c; c++) lines += *c == '\n';
    if (lines == 0) return UN_OK;
    int32_t each = lines / CHART_POINTS + 1;
    out->x = un_alloc(ctx, (size_t)lines / (size_t)each + 2, sizeof *out->x);
    out->y = un_alloc(ctx, (size_t)lines / (size_t)each + 2, sizeof *out->y);
    if (!out->x || !out->y) {
        un_free(ctx, out->x);
        un_free(ctx, out->y);
        *out = (series){0};
        return UN_ERROR_MEMORY;
    }
    int32_t line = 0;
    for (at = end + 1; line < lines; line++) {
        double t = NAN, value = NAN;
        for (int32_t k = 0; *at && *at != '\n'; k++) {
            const char *stop;
            double number = un_number_parse(at, &stop);
            if (k == time) t = number;
            if (k == column) value = scale * number;
            at += strcspn(at, ",\n");
            if (*at == ',') at++;
        }
        if (*at) at++;
        if (!isfinite(t)) continue;
        if (line % each == 0 || out->count == 0) {
            out->x[out->count] = t;
            out->y[out->count++] = value;
        } else if (fabs(value) > fabs(out->y[out->count - 1])) {
            out->x[out->count - 1] = t;
            out->y[out->count - 1] = value;
        }
    }
    return UN_OK;
}

/* ---- charts ---- */

static double nice_step(double span, int32_t most)
{
    double rough = span / most, power = pow(10, floor(log10(rough)));
    double m = rough / power;
    return power * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}

static void draw_axes(page *p, const double lo[2], const double hi[2], const char *unit)
{
    double left = 58, right = CHART_W - 8, top = 10, bottom = CHART_H - 24;
    double step = nice_step(hi[1] - lo[1], 4);
    for (double v = ceil(lo[1] / step) * step; v <= hi[1] + 1e-9 * step; v += step) {
        double y = bottom - (v - lo[1]) / (hi[1] - lo[1]) * (bottom - top);
        un_file_printf(p->file,
                       "<path class=\"axis\" d=\"M%.0f %.1fH%.0f\"/><text x=\"%.0f\" y=\"%.1f\" "
                       "text-anchor=\"end\">%.5g</text>",
                       left, y, right, left - 6, y + 4, fabs(v) < 1e-9 * step ? 0 : v);
    }
    step = nice_step(hi[0] - lo[0], 6);
    for (double v = ceil(lo[0] / step) * step; v <= hi[0] + 1e-9 * step; v += step) {
        double x = left + (v - lo[0]) / (hi[0] - lo[0]) * (right - left);
        if (x < right - 20)
            un_file_printf(p->file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>",
                           x, CHART_H - 6, fabs(v) < 1e-9 * step ? 0 : v);
    }
    un_file_printf(p->file, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"end\">s</text>", right,
                   CHART_H - 6);
    un_file_printf(p->file, "<text x=\"4\" y=\"14\">%s</text>", unit);
}

static un_status draw_chart(page *p, const char *title, const char *unit, const char *column,
                            double scale, bool probe)
{
    series lines[UN_VIEW_RUNS_MAX] = {0};
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
    un_status status = UN_OK;
    for (int32_t r = 0; r < p->run_count; r++) {
        UN_TRY_DONE(read_column(p->ctx, probe ? p->runs[r].probes : p->runs[r].stats, column, scale,
                                &lines[r]));
        for (int32_t i = 0; i < lines[r].count; i++) {
            if (!isfinite(lines[r].y[i])) continue;
            lo[0] = fmin(lo[0], lines[r].x[i]), hi[0] = fmax(hi[0], lines[r].x[i]);
            lo[1] = fmin(lo[1], lines[r].y[i]), hi[1] = fmax(hi[1], lines[r].y[i]);
        }
    }
    if (!(hi[0] > lo[0])) goto done; /* nothing to draw */
    if (!(hi[1] > lo[1])) hi[1] = lo[1] + fmax(fabs(lo[1]) * 0.1, 1e-12);
    double room = 0.05 * (hi[1] - lo[1]);
    lo[1] -= room, hi[1] += room;
    un_file_printf(p->file, "<figure><figcaption>");
    put_escaped(p->file, title);
    un_file_printf(p->file, "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\">", CHART_W,
                   CHART_H);
    draw_axes(p, lo, hi, unit);
    for (int32_t r = 0; r < p->run_count; r++) {
        bool pen = false;
        un_file_printf(p->file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.7\" d=\"",
                       colours[r]);
        for (int32_t i = 0; i < lines[r].count; i++) {
            if (!isfinite(lines[r].y[i])) {
                pen = false;
                continue;
            }
            un_file_printf(p->file, "%c%.1f %.1f", pen ? 'L' : 'M',
                           58 + (lines[r].x[i] - lo[0]) / (hi[0] - lo[0]) * (CHART_W - 66),
                           CHART_H - 24 -
                               (lines[r].y[i] - lo[1]) / (hi[1] - lo[1]) * (CHART_H - 34));
            pen = true;
        }
        un_file_printf(p->file, "\"/>");
    }
    un_file_printf(p->file, "</svg></figure>\n");
done:
    for (int32_t r = 0; r < p->run_count; r++) {
        un_free(p->ctx, lines[r].x);
        un_free(p->ctx, lines[r].y);
    }
    return status;
}

/* ---- figures ---- */

static void row_begin(page *p, const char *name)
{
    un_file_printf(p->file, "<tr><td>%s</td>", name);
}

static void row_numbers(page *p, const char *name, double (*value)(const compared_run *),
                        const char *format)
{
    row_begin(p, name);
    for (int32_t r = 0; r < p->run_count; r++) {
        char text[64];
        double v = value(&p->runs[r]);
        snprintf(text, sizeof text, format, v);
        un_file_printf(p->file, "<td>%s</td>", isfinite(v) ? text : "–");
    }
    un_file_printf(p->file, "</tr>\n");
}

static double seconds_of(const compared_run *r)
{
    return r->info.seconds;
}
static double per_frame(const compared_run *r)
{
    return r->info.frames_finished > 0 ? r->info.seconds / r->info.frames_finished : NAN;
}
static double per_second(const compared_run *r)
{
    return r->info.time > 0 ? r->info.seconds / r->info.time : NAN;
}
static double steps_of(const compared_run *r)
{
    return r->info.steps;
}
static double particles_of(const compared_run *r)
{
    return (double)r->info.particles_max;
}
static double memory_of(const compared_run *r)
{
    return r->info.bytes_max * 1e-6;
}
static double worst_volume(const compared_run *r)
{
    return 100 * r->info.volume_error_max;
}
static double last_volume(const compared_run *r)
{
    return 100 * r->info.volume_error_last;
}
static double speed_of(const compared_run *r)
{
    return r->info.max_speed;
}

static void put_table(page *p)
{
    un_file_printf(p->file, "<h2>Cost and accuracy</h2><div class=\"wide\"><table><thead><tr><th>"
                            "</th>");
    for (int32_t r = 0; r < p->run_count; r++) {
        un_file_printf(p->file, "<th><i style=\"background:%s\"></i>", colours[r]);
        put_escaped(p->file, p->runs[r].name);
        un_file_printf(p->file, "</th>");
    }
    un_file_printf(p->file, "</tr></thead><tbody>\n");
    row_begin(p, "method");
    for (int32_t r = 0; r < p->run_count; r++) {
        un_file_printf(p->file, "<td>");
        put_escaped(p->file, p->runs[r].info.method);
        un_file_printf(p->file, "</td>");
    }
    un_file_printf(p->file, "</tr>\n");
    row_begin(p, "status");
    for (int32_t r = 0; r < p->run_count; r++) {
        un_file_printf(p->file, "<td>");
        put_escaped(p->file, p->runs[r].info.status);
        un_file_printf(p->file, ", %d of %d frames</td>", p->runs[r].info.frames_finished,
                       p->runs[r].info.frames_planned);
    }
    un_file_printf(p->file, "</tr>\n");
    row_begin(p, "finest cells");
    for (int32_t r = 0; r < p->run_count; r++) {
        const int32_t *cells = p->runs[r].info.cells;
        un_file_printf(p->file, "<td>%d × %d", cells[0], cells[1]);
        if (cells[2] > 0) un_file_printf(p->file, " × %d", cells[2]);
        un_file_printf(p->file, " of %.3g mm</td>", 1e3 * p->runs[r].info.cell_size);
    }
    un_file_printf(p->file, "</tr>\n");
    row_numbers(p, "particles at most", particles_of, "%.0f");
    row_numbers(p, "steps", steps_of, "%.0f");
    row_numbers(p, "time, s", seconds_of, "%.4g");
    row_numbers(p, "time per frame, s", per_frame, "%.3g");
    row_numbers(p, "time per simulated second, s", per_second, "%.4g");
    row_begin(p, "relative to the first");
    for (int32_t r = 0; r < p->run_count; r++)
        un_file_printf(p->file, "<td>%.3g ×</td>",
                       per_second(&p->runs[r]) / per_second(&p->runs[0]));
    un_file_printf(p->file, "</tr>\n");
    row_numbers(p, "memory at most, MB", memory_of, "%.4g");
    row_numbers(p, "volume error at worst, %", worst_volume, "%+.3f");
    row_numbers(p, "volume error at the end, %", last_volume, "%+.3f");
    row_numbers(p, "fastest particle, m/s", speed_of, "%.3g");
    un_file_printf(p->file, "</tbody></table></div>\n");
}

/* ---- pictures ---- */

static un_status put_picture(page *p, un_renderer *renderer, int32_t run, int32_t frame,
                             uint8_t *rgb, int32_t width, int32_t height)
{
    char path[PATH_ROOM + 32], *bytes;
    size_t size;
    un_text t = {.ctx = p->ctx};
    UN_TRY(un_renderer_frame(renderer, frame, rgb));
    snprintf(path, sizeof path, "%.4000s.%ld.picture.tmp", p->def->path, (long)getpid());
    UN_TRY(un_png_write(p->ctx, path, rgb, width, height));
    un_status status = un_file_read(p->ctx, path, &bytes, &size);
    unlink(path);
    UN_TRY(status);
    un_view_add_base64(&t, (const uint8_t *)bytes, size);
    un_free(p->ctx, bytes);
    un_file_printf(p->file, "<figure><img alt=\"frame %d\" src=\"data:image/png;base64,", frame);
    if (t.status == UN_OK) un_file_write(p->file, t.bytes, t.used);
    un_file_printf(p->file, "\"><figcaption><i style=\"background:%s\"></i>", colours[run]);
    put_escaped(p->file, p->runs[run].name);
    un_file_printf(p->file, "</figcaption></figure>\n");
    un_free(p->ctx, t.bytes);
    return t.status;
}

static un_status put_pictures(page *p)
{
    un_render_def def = un_render_def_default();
    un_renderer *renderers[UN_VIEW_RUNS_MAX] = {0};
    uint8_t *rgb = NULL;
    un_status status = UN_OK;
    def.width = p->def->width;
    def.height = (int32_t)un_max64(1, (int64_t)p->def->width * 9 / 16);
    def.samples = p->def->samples;
    /* as long as the shortest run */
    double end = INFINITY;
    for (int32_t r = 0; r < p->run_count; r++) {
        double rate = p->runs[r].info.rate > 0 ? p->runs[r].info.rate : 24;
        end = fmin(end, (p->runs[r].frames - 1) / rate);
        UN_TRY_DONE(un_renderer_create(p->ctx, p->runs[r].directory, &def, &renderers[r]));
    }
    UN_ALLOC_DONE(p->ctx, rgb, (size_t)def.width * (size_t)def.height * 3);
    un_file_printf(p->file, "<h2>Pictures</h2>\n");
    for (int32_t k = 0; k < p->def->picture_count; k++) {
        double time = end * (k + 1) / p->def->picture_count;
        un_file_printf(p->file,
                       "<div class=\"time\">%.3g s</div><div class=\"grid\" style=\"grid-template-"
                       "columns:repeat(%d,minmax(0,1fr))\">\n",
                       time, p->run_count < 4 ? p->run_count : 4);
        for (int32_t r = 0; r < p->run_count; r++) {
            double rate = p->runs[r].info.rate > 0 ? p->runs[r].info.rate : 24;
            int32_t frame = un_clampi((int32_t)lround(time * rate), 0, p->runs[r].frames - 1);
            UN_TRY_DONE(put_picture(p, renderers[r], r, frame, rgb, def.width, def.height));
            p->done++;
            if (p->def->progress && !p->def->progress(p->def->user, p->done, p->total)) {
                status = un_fail(p->ctx, UN_INTERRUPTED, "interrupted; %s was not written",
                                 p->def->path);
                goto done;
            }
        }
        un_file_printf(p->file, "</div>\n");
        UN_TRY_DONE(un_file_status(p->file));
    }
done:
    for (int32_t r = 0; r < p->run_count; r++) un_renderer_destroy(renderers[r]);
    un_free(p->ctx, rgb);
    return status;
}

/* ---- the page ---- */

static un_status read_table(un_context *ctx, const char *directory, const char *name, char **text)
{
    char path[PATH_ROOM];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    *text = NULL;
    return stat(path, &found) == 0 ? un_file_read(ctx, path, text, NULL) : UN_OK;
}

static un_status open_run(page *p, const char *directory)
{
    compared_run *run = &p->runs[p->run_count++];
    run->directory = directory;
    const char *end = directory + strlen(directory);
    while (end > directory + 1 && end[-1] == '/') end--;
    const char *begin = end;
    while (begin > directory && begin[-1] != '/') begin--;
    snprintf(run->name, sizeof run->name, "%.*s", (int)(end - begin), begin);
    run->frames = un_frame_count(p->ctx, directory);
    if (run->frames == 0)
        return un_fail(p->ctx, UN_ERROR_ARGUMENT,
                       "%s has no frames; `undine run SCENE -o DIR` makes them", directory);
    UN_TRY(un_info_read(p->ctx, directory, &run->info));
    UN_TRY(read_table(p->ctx, directory, "stats.csv", &run->stats));
    return read_table(p->ctx, directory, "probes.csv", &run->probes);
}

static un_status put_charts(page *p)
{
    un_file_printf(p->file, "<h2>Over time</h2><div class=\"charts\">\n");
    UN_TRY(draw_chart(p, "Volume error", "%", "volume_error", 100, false));
    UN_TRY(draw_chart(p, "Kinetic energy", "J", "energy_kinetic", 1, false));
    UN_TRY(draw_chart(p, "Potential energy", "J", "energy_potential", 1, false));
    UN_TRY(draw_chart(p, "Particles", "", "particles", 1, false));
    UN_TRY(draw_chart(p, "Fastest particle", "m/s", "max_speed", 1, false));
    UN_TRY(draw_chart(p, "Time per step", "s", "seconds", 1, false));
    /* probes of the first run that has some; names have no quotes in them */
    const char *table = NULL;
    for (int32_t r = 0; r < p->run_count && !table; r++) table = p->runs[r].probes;
    size_t length = table ? strcspn(table, "\n") : 0;
    for (size_t at = 0; at < length;) {
        size_t word = strcspn(table + at, ",\n");
        char name[128], title[160];
        snprintf(name, sizeof name, "%.*s", (int)un_min64((int64_t)word, 100), table + at);
        snprintf(title, sizeof title, "Probe %s", name);
        if (strcmp(name, "time") != 0) UN_TRY(draw_chart(p, title, "", name, 1, true));
        at += word + 1;
    }
    un_file_printf(p->file, "</div>\n");
    return UN_OK;
}

static un_status put_page(page *p)
{
    const un_compare_def *def = p->def;
    un_file_printf(p->file, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta "
                            "name=\"viewport\" content=\"width=device-width\"><title>");
    for (int32_t r = 0; r < p->run_count; r++) {
        if (r) un_file_printf(p->file, ", ");
        put_escaped(p->file, p->runs[r].name);
    }
    un_file_printf(p->file, " – Undine</title><style>%s</style>\n<h1>", style);
    for (int32_t r = 0; r < p->run_count; r++) {
        if (r) un_file_printf(p->file, " beside ");
        put_escaped(p->file, p->runs[r].name);
    }
    un_file_printf(p->file,
                   "</h1><p>Made by undine %s compare. Times are of the machines that ran, "
                   "files included.</p>\n",
                   un_version());
    if (def->picture_count > 0) UN_TRY(put_pictures(p));
    put_table(p);
    return put_charts(p);
}

un_status un_compare(un_context *ctx, const un_compare_def *def)
{
    UN_TRY(un_ranks_refuse(ctx, "a comparison"));
    if (def->directory_count < 1 || def->directory_count > UN_VIEW_RUNS_MAX ||
        def->picture_count < 0 || def->picture_count > 1000 || def->width < 16 ||
        def->width > 8192 || strlen(def->path) > 3900)
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "a comparison is of 1 to %d runs, of at most 1000 pictures from 16 to 8192 "
                       "pixels wide",
                       UN_VIEW_RUNS_MAX);
    page p = {.ctx = ctx, .def = def, .total = def->picture_count * def->directory_count};
    un_status status = UN_OK;
    for (int32_t r = 0; r < def->directory_count && status == UN_OK; r++)
        status = open_run(&p, def->directories[r]);
    if (status == UN_OK) status = un_file_create(ctx, def->path, &p.file);
    if (status == UN_OK) {
        status = put_page(&p);
        if (status == UN_OK)
            status = un_file_commit(p.file);
        else
            un_file_discard(p.file);
    }
    for (int32_t r = 0; r < p.run_count; r++) {
        un_free(ctx, p.runs[r].stats);
        un_free(ctx, p.runs[r].probes);
    }
    return status;
}
