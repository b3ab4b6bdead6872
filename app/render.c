/* undine render DIR: pictures of a run, and a film. */
#include "app.h"
#include "film.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- options ---- */

typedef struct render_options {
    const char *directory, *movie, *eye, *target, *frames, *show, *cut, *light, *water, *solid,
        *background;
    un_render_def def;
    double fov;
    int32_t threads, sheet;
    int32_t first, last;
    bool reuse, quiet;
} render_options;

/* "water,particles" */
static bool read_show(render_options *o)
{
    if (!o->show) return true;
    o->def.water = o->def.particles = o->def.cells = false;
    for (const char *at = o->show;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 5 && strncmp(at, "water", 5) == 0)
            o->def.water = true;
        else if (length == 9 && strncmp(at, "particles", 9) == 0)
            o->def.particles = true;
        else if (length == 5 && strncmp(at, "cells", 5) == 0)
            o->def.cells = true;
        else {
            app_error("render: --show takes water, particles and cells, separated by commas, not "
                      "`%s`",
                      o->show);
            return false;
        }
        at += length;
        if (!*at) return true;
    }
}

/* "z=0.5" */
static bool read_cut(render_options *o)
{
    if (!o->cut) return true;
    char *end = NULL;
    const char *axis = strchr("xyz", o->cut[0]);
    if (axis && *axis && o->cut[1] == '=') o->def.cut_at = strtod(o->cut + 2, &end);
    if (!end || end == o->cut + 2 || *end) {
        app_error("render: --cut needs a plane such as z=0.5, not `%s`", o->cut);
        return false;
    }
    o->def.cut_axis = (int32_t)(axis - "xyz");
    return true;
}

/* "azimuth,elevation" */
static bool read_light(render_options *o)
{
    if (!o->light) return true;
    char *end;
    o->def.light_azimuth = strtod(o->light, &end);
    bool good = end != o->light && *end == ',';
    const char *second = good ? end + 1 : o->light;
    o->def.light_elevation = strtod(second, &end);
    if (!good || end == second || *end) {
        app_error("render: --light needs two angles such as 230,55, not `%s`", o->light);
        return false;
    }
    return o->def.has_light = true;
}

/* ---- the work ---- */

typedef struct job {
    const render_options *options;
    un_context *ctx;
    un_renderer *renderer;
    film *film;
    char *movie;
    uint8_t *rgb;
    app_report report;
    bool film_failed;
} job;

/* Reports a failed film once; the pictures go on. */
static void give_up_film(job *j, const char *message)
{
    app_report_clear(&j->report);
    app_error("%s; the pictures are in %s/render", message, j->options->directory);
    j->film_failed = true;
}

static void start_film(job *j)
{
    const render_options *o = j->options;
    un_info info;
    double rate = 24;
    char message[600];
    if (un_info_read(j->ctx, o->directory, &info) == UN_OK && info.rate > 0) rate = info.rate;
    j->film = film_open(j->movie, o->def.width, o->def.height, rate, message, sizeof message);
    if (!j->film) give_up_film(j, message);
}

static void add_to_film(job *j)
{
    char message[600];
    if (!j->film || film_frame(j->film, j->rgb)) return;
    if (film_close(j->film, true, message, sizeof message))
        snprintf(message, sizeof message, "no film: ffmpeg stopped reading");
    j->film = NULL;
    give_up_film(j, message);
}

static un_status make_picture(job *j, int32_t frame, bool *made)
{
    const render_options *o = j->options;
    char path[APP_PATH];
    snprintf(path, sizeof path, "%s/render/%04d.png", o->directory, frame);
    *made = !o->reuse || un_png_read(j->ctx, path, j->rgb, o->def.width, o->def.height) != UN_OK;
    if (!*made) return UN_OK;
    double start = app_now();
    un_status status = un_renderer_frame(j->renderer, frame, j->rgb);
    if (status == UN_OK) status = un_png_write(j->ctx, path, j->rgb, o->def.width, o->def.height);
    j->report.seconds += app_now() - start;
    return status;
}

/* ---- by several processes: the pictures, then the film of them by the first ---- */

static un_status share_picture(void *arg, int32_t index)
{
    job *j = arg;
    bool made;
    return make_picture(j, j->options->first + index, &made);
}

static bool on_shared(void *user, int32_t done, int32_t total)
{
    app_report *report = user;
    (void)total;
    report->done = report->made = done;
    report->seconds = app_now() - report->start;
    app_report_show(report, -1);
    return !app_interrupted();
}

static un_status share_pictures(job *j, bool wants_film)
{
    const render_options *o = j->options;
    un_share_def share = {.count = j->report.total,
                          .piece = share_picture,
                          .arg = j,
                          .progress = on_shared,
                          .user = &j->report};
    un_status status = un_share(j->ctx, &share);
    if (status == UN_INTERRUPTED) return UN_OK; /* told from the number of pictures */
    if (status != UN_OK || !wants_film || !app_first()) return status;
    start_film(j);
    for (int32_t frame = o->first; frame <= o->last && j->film && status == UN_OK; frame++) {
        char path[APP_PATH];
        snprintf(path, sizeof path, "%s/render/%04d.png", o->directory, frame);
        status = un_png_read(j->ctx, path, j->rgb, o->def.width, o->def.height);
        if (status == UN_OK) add_to_film(j);
    }
    return status;
}

static un_status make_all(job *j, bool wants_film)
{
    const render_options *o = j->options;
    un_status status = UN_OK;
    if (j->report.shared) return share_pictures(j, wants_film);
    if (wants_film) start_film(j);
    app_report_show(&j->report, -1);
    for (int32_t frame = o->first; frame <= o->last && !app_interrupted() && status == UN_OK;
         frame++) {
        bool made;
        status = make_picture(j, frame, &made);
        if (status != UN_OK) break;
        add_to_film(j);
        app_report_frame(&j->report, frame, made);
        app_report_show(&j->report, frame);
    }
    return status;
}

static int make_pictures(job *j)
{
    const render_options *o = j->options;
    bool one = o->first == o->last && !o->movie;
    app_report_weigh(&j->report, o->directory, "surface.ply", o->first, o->last);
    un_status status = make_all(j, !one);
    if (!app_first()) return status == UN_OK ? APP_DONE : app_fail(j->ctx, status);
    bool whole = status == UN_OK && j->report.done == j->report.total;
    char message[600];
    if (j->film && !film_close(j->film, whole, message, sizeof message)) give_up_film(j, message);
    j->film = NULL;
    app_report_clear(&j->report);
    if (status != UN_OK) return app_fail(j->ctx, status);
    if (!whole) {
        if (!o->quiet)
            printf(
                "interrupted: %d of %d pictures are in %s/render; --reuse continues from there\n",
                j->report.done, j->report.total, o->directory);
        return APP_INTERRUPTED;
    }
    if (!o->quiet) {
        printf("done: %d picture%s in %s/render, %s", j->report.total,
               j->report.total == 1 ? "" : "s", o->directory,
               app_seconds(app_now() - j->report.start).text);
        if (!one && !j->film_failed) printf("; the film is %s", j->movie);
        printf("\n");
    }
    return j->film_failed ? APP_FAILED : APP_DONE;
}

/* ---- one picture of many frames ---- */

#define SHEET_GAP 6

/* Three to six, with as few empty places as possible, best four. */
static int32_t sheet_columns(int32_t count)
{
    static const int32_t choice[] = {4, 5, 3, 6};
    int32_t best = count, least = INT32_MAX;
    for (int i = 0; i < 4 && count > 4; i++) {
        int32_t c = choice[i], empty = (count + c - 1) / c * c - count;
        if (empty < least) best = c, least = empty;
    }
    return best;
}

static int make_sheet(job *j)
{
    const render_options *o = j->options;
    int32_t available = o->last - o->first + 1, count = o->sheet < available ? o->sheet : available;
    int32_t columns = sheet_columns(count);
    int32_t rows = (count + columns - 1) / columns, w = o->def.width, h = o->def.height;
    int64_t width = (int64_t)columns * (w + SHEET_GAP) + SHEET_GAP;
    int64_t height = (int64_t)rows * (h + SHEET_GAP) + SHEET_GAP;
    if (width * height > 1 << 27) {
        app_error("render: a sheet of %lld x %lld pixels is too large; use fewer frames or a "
                  "smaller --width",
                  (long long)width, (long long)height);
        return APP_WRONG;
    }
    uint8_t *sheet = malloc((size_t)(width * height * 3));
    if (!sheet) {
        app_error("out of memory");
        return APP_FAILED;
    }
    memset(sheet, 255, (size_t)(width * height * 3));
    un_status status = UN_OK;
    j->report.total = count;
    for (int32_t k = 0; k < count && status == UN_OK && !app_interrupted(); k++) {
        int32_t frame =
            o->first + (count > 1 ? (int32_t)((int64_t)k * (available - 1) / (count - 1)) : 0);
        double start = app_now();
        status = un_renderer_frame(j->renderer, frame, j->rgb);
        int32_t in_row = k / columns + 1 < rows ? columns : count - (rows - 1) * columns;
        int64_t left =
            (int64_t)(columns - in_row) * (w + SHEET_GAP) / 2; /* the last row's middle */
        int64_t x = SHEET_GAP + left + (int64_t)(k % columns) * (w + SHEET_GAP);
        int64_t y = SHEET_GAP + (int64_t)(k / columns) * (h + SHEET_GAP);
        for (int32_t row = 0; row < h; row++)
            memcpy(sheet + 3 * ((y + row) * width + x), j->rgb + 3 * (size_t)row * (size_t)w,
                   3 * (size_t)w);
        j->report.seconds += app_now() - start;
        app_report_frame(&j->report, frame, true);
        app_report_show(&j->report, frame);
    }
    app_report_clear(&j->report);
    char path[APP_PATH];
    snprintf(path, sizeof path, "%s/render/sheet.png", o->directory);
    const char *to = o->movie ? o->movie : path;
    if (status == UN_OK && !app_interrupted())
        status = un_png_write(j->ctx, to, sheet, (int32_t)width, (int32_t)height);
    free(sheet);
    if (status != UN_OK) return app_fail(j->ctx, status);
    if (app_interrupted()) return APP_INTERRUPTED;
    if (!o->quiet) printf("done: %d frames on %s\n", count, to);
    return APP_DONE;
}

static int prepare_folder(const job *j)
{
    const render_options *o = j->options;
    char path[APP_PATH];
    if (!app_check_output("render", j->movie)) return APP_WRONG;
    snprintf(path, sizeof path, "%s/render", o->directory);
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return APP_DONE;
    app_error("render: cannot create %s: %s", path, strerror(errno));
    return APP_FAILED;
}

static int prepare(job *j)
{
    const render_options *o = j->options;
    size_t movie_room = strlen(o->directory) + 16;
    j->rgb = malloc((size_t)o->def.width * (size_t)o->def.height * 3);
    j->movie = o->movie ? strdup(o->movie) : malloc(movie_room);
    if (!j->rgb || !j->movie) return app_fail_memory();
    if (!o->movie) snprintf(j->movie, movie_room, "%s/movie.mp4", o->directory);
    int exit_status = app_first() ? prepare_folder(j) : APP_DONE;
    un_ranks_tell(app_ranks(), &exit_status, sizeof exit_status);
    if (exit_status != APP_DONE) return exit_status;
    return o->sheet ? make_sheet(j) : make_pictures(j);
}

static int render(const render_options *o)
{
    un_context_def def = un_context_def_default();
    def.threads = o->threads ? o->threads : un_ranks_threads(app_ranks());
    def.log = app_print_warning;
    def.ranks = app_ranks();
    job j = {.options = o, .ctx = un_context_create(&def)};
    if (!j.ctx) return app_fail_memory();
    app_catch_signals();
    j.report = app_report_make("picture", o->last - o->first + 1, o->quiet);
    un_status status =
        un_ranks_agree(j.ctx, un_renderer_create(j.ctx, o->directory, &o->def, &j.renderer));
    int exit_status = status == UN_OK ? prepare(&j) : app_fail(j.ctx, status);
    if (status == UN_ERROR_FILE) exit_status = APP_WRONG; /* the command named no run */
    un_renderer_destroy(j.renderer);
    free(j.rgb);
    free(j.movie);
    un_context_destroy(j.ctx);
    return exit_status;
}

int app_render(int argc, char **argv)
{
    render_options o = {.def = un_render_def_default(), .fov = NAN};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &o.movie, "FILM", "the film; default: DIR/movie.mp4", NULL},
        {"--frames", NULL, APP_TEXT, &o.frames, "A:B",
         "only these frames; one number: only that picture", NULL},
        {"--width", NULL, APP_COUNT, &o.def.width, "N", "width of the pictures; default: 1280",
         NULL},
        {"--height", NULL, APP_COUNT, &o.def.height, "N", "height of the pictures; default: 720",
         NULL},
        {"--samples", NULL, APP_COUNT, &o.def.samples, "N",
         "most samples per pixel; more is smoother and slower; default: 8", NULL},
        {"--eye", NULL, APP_TEXT, &o.eye, "X,Y,Z",
         "position of the camera, m; default: the scene's", NULL},
        {"--target", NULL, APP_TEXT, &o.target, "X,Y,Z", "point it looks at, m", NULL},
        {"--fov", NULL, APP_NUMBER, &o.fov, "DEGREES", "vertical field of view; default: 30", NULL},
        {"--scene-camera", NULL, APP_SWITCH, &o.def.scene_camera, NULL,
         "use the scene's sizing.camera, with its motion", NULL},
        {"--show", NULL, APP_TEXT, &o.show, "LIST", "any of water,particles,cells; default: water",
         NULL},
        {"--cut", NULL, APP_TEXT, &o.cut, "z=0.5",
         "hide the water beyond this plane; cells are shown at the cut", NULL},
        {"--light", NULL, APP_TEXT, &o.light, "A,E",
         "direction of the light: degrees from +z to +x, and above the floor", NULL},
        {"--water", NULL, APP_TEXT, &o.water, "R,G,B", "colour of deep water, each 0 to 1", NULL},
        {"--solid", NULL, APP_TEXT, &o.solid, "R,G,B", "colour of solids", NULL},
        {"--background", NULL, APP_TEXT, &o.background, "R,G,B", "colour of the horizon", NULL},
        {"--sheet", NULL, APP_COUNT, &o.sheet, "N",
         "N frames on one picture, DIR/render/sheet.png, and no film", NULL},
        {"--reuse", NULL, APP_SWITCH, &o.reuse, NULL, "keep existing pictures", NULL},
        {"--threads", NULL, APP_COUNT, &o.threads, "N",
         "number of threads; default: all processors", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "print only errors", NULL},
        {0}};
    const app_command command = {
        "render", "DIR",
        "Renders the frames of a run to DIR/render/NNNN.png and joins them into a film with "
        "ffmpeg.\n"
        "It needs neither a display nor a graphics card. Options override the camera, light "
        "and\n"
        "colours of the scene's `render`.",
        options};
    int exit_status = app_options_parse(&command, argc, argv, &o.directory);
    if (exit_status >= 0) return exit_status;
    if (!app_read_point("render", "--eye", o.eye, &o.def.has_eye, o.def.eye) ||
        !app_read_point("render", "--target", o.target, &o.def.has_target, o.def.target))
        return APP_WRONG;
    if (!app_read_point("render", "--water", o.water, &o.def.has_water_colour,
                        o.def.water_colour) ||
        !app_read_point("render", "--solid", o.solid, &o.def.has_solid_colour,
                        o.def.solid_colour) ||
        !app_read_point("render", "--background", o.background, &o.def.has_background,
                        o.def.background) ||
        !read_show(&o) || !read_cut(&o) || !read_light(&o))
        return APP_WRONG;
    if (!isnan(o.fov)) o.def.fov = o.fov, o.def.has_fov = true;
    if (o.sheet && o.def.width == 1280 && o.def.height == 720)
        o.def.width = 480, o.def.height = 270;
    if (strlen(o.directory) > APP_PATH - 100) {
        app_error("render: the path is too long");
        return APP_WRONG;
    }
    if (o.sheet && un_ranks_count(app_ranks()) > 1) {
        app_error("render: --sheet works in one process; start it without mpirun or srun");
        return APP_WRONG;
    }
    if (!app_share_frames("render", o.frames, o.directory, &o.first, &o.last)) return APP_WRONG;
    return render(&o);
}
