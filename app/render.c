/* undine render DIR: pictures of a run, and a film. */
#include "app.h"
#include "film.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_ROOM 4200

/* ---- interruption: the first signal ends after the picture under way, the second at once ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    if (interrupted) _exit(APP_INTERRUPTED);
    interrupted = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* ffmpeg may go away */
}

/* ---- options ---- */

typedef struct render_options {
    const char *directory, *movie, *eye, *target, *frames;
    un_render_def def;
    int32_t threads;
    int32_t first, last;
    bool reuse, quiet;
} render_options;

static bool read_point(const char *name, const char *text, bool *has, double point[3])
{
    if (!text) return true;
    const char *at = text;
    for (int a = 0; a < 3; a++) {
        char *end;
        point[a] = strtod(at, &end);
        if (end == at || !isfinite(point[a]) || *end != (a < 2 ? ',' : 0)) {
            app_error("render: %s needs three numbers such as 2,1.5,3, not `%s`", name, text);
            return false;
        }
        at = end + 1;
    }
    *has = true;
    return true;
}

/* "a:b", "a:", ":b" or "a"; the run holds frames 0..count-1. */
static bool read_range(render_options *o, int32_t count)
{
    o->first = 0;
    o->last = count - 1;
    if (!o->frames) return true;
    const char *colon = strchr(o->frames, ':'), *second = colon ? colon + 1 : o->frames;
    char *end = NULL;
    errno = 0;
    long first = 0, last = count - 1;
    bool good = o->frames[0] != 0;
    if (o->frames[0] != ':') {
        first = strtol(o->frames, &end, 10);
        good = good && end != o->frames && (*end == ':' || !*end);
    }
    if (*second) {
        last = strtol(second, &end, 10);
        good = good && end != second && !*end;
    }
    if (!good || errno || first < 0 || last < first) {
        app_error("render: --frames needs a range such as 10:40, not `%s`", o->frames);
        return false;
    }
    if (last >= count) {
        app_error("render: %s holds frames 0 to %d, not %s", o->directory, count - 1, o->frames);
        return false;
    }
    o->first = (int32_t)first;
    o->last = (int32_t)last;
    return true;
}

static int32_t count_frames(const char *directory)
{
    char path[PATH_ROOM];
    struct stat found;
    int32_t count = 0;
    for (;; count++) {
        snprintf(path, sizeof path, "%s/frames/%04d", directory, count);
        if (count == INT32_MAX || stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) return count;
    }
}

/* ---- progress ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct report {
    bool quiet, bar;
    int32_t done, total, rendered; /* rendered: not taken from an earlier time */
    double start, seconds;         /* spent on those rendered */
} report;

static void show(report *p, int32_t frame)
{
    if (p->quiet) return;
    /* What is left to render takes as long as what was rendered did. */
    double each = p->rendered ? p->seconds / p->rendered : 0;
    app_text left = app_seconds(each * (p->total - p->done)), one = app_seconds(each);
    if (!p->bar) {
        if (frame >= 0) printf("frame %d (%d/%d)", frame, p->done, p->total);
        if (frame >= 0 && p->rendered && p->done < p->total) printf(", %s left", left.text);
        if (frame >= 0) printf("\n");
        fflush(stdout);
        return;
    }
    struct winsize window = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    char line[256], bar[31];
    int filled = p->total ? (int)(30.0 * p->done / p->total) : 0;
    for (int i = 0; i < 30; i++) bar[i] = i < filled ? '#' : '.';
    bar[30] = 0;
    if (p->rendered && p->done < p->total)
        snprintf(line, sizeof line, "picture %d/%d  [%s]  %s each  %s left", p->done, p->total, bar,
                 one.text, left.text);
    else
        snprintf(line, sizeof line, "picture %d/%d  [%s]", p->done, p->total, bar);
    printf("\r\033[K%.*s", window.ws_col > 1 ? window.ws_col - 1 : 79, line);
    fflush(stdout);
}

static void clear_line(const report *p)
{
    if (p->bar && !p->quiet) fputs("\r\033[K", stdout);
    fflush(stdout);
}

/* ---- the work ---- */

typedef struct job {
    const render_options *options;
    un_context *ctx;
    un_renderer *renderer;
    film *film;
    char *movie;
    uint8_t *rgb;
    report report;
    bool film_failed;
} job;

/* Says what happened to the film once, without ending the pictures. */
static void give_up_film(job *j, const char *message)
{
    clear_line(&j->report);
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

static un_status make_picture(job *j, int32_t frame)
{
    const render_options *o = j->options;
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/render/%04d.png", o->directory, frame);
    if (o->reuse && un_png_read(j->ctx, path, j->rgb, o->def.width, o->def.height) == UN_OK)
        return UN_OK;
    double start = now();
    un_status status = un_renderer_frame(j->renderer, frame, j->rgb);
    if (status == UN_OK) status = un_png_write(j->ctx, path, j->rgb, o->def.width, o->def.height);
    j->report.seconds += now() - start;
    j->report.rendered++;
    return status;
}

static int make_pictures(job *j)
{
    const render_options *o = j->options;
    un_status status = UN_OK;
    bool one = o->first == o->last && !o->movie;
    if (!one) start_film(j);
    show(&j->report, -1);
    for (int32_t frame = o->first; frame <= o->last && !interrupted && status == UN_OK; frame++) {
        status = make_picture(j, frame);
        if (status != UN_OK) break;
        add_to_film(j);
        j->report.done++;
        show(&j->report, frame);
    }
    bool whole = status == UN_OK && j->report.done == j->report.total;
    char message[600];
    if (j->film && !film_close(j->film, whole, message, sizeof message)) give_up_film(j, message);
    j->film = NULL;
    clear_line(&j->report);
    if (status != UN_OK) return app_fail(j->ctx, status);
    if (!whole) {
        if (!o->quiet)
            printf("interrupted: %d of %d pictures are in %s/render; --reuse goes on from there\n",
                   j->report.done, j->report.total, o->directory);
        return APP_INTERRUPTED;
    }
    if (!o->quiet) {
        printf("done: %d picture%s in %s/render, %s", j->report.total,
               j->report.total == 1 ? "" : "s", o->directory,
               app_seconds(now() - j->report.start).text);
        if (!one && !j->film_failed) printf("; the film is %s", j->movie);
        printf("\n");
    }
    return j->film_failed ? APP_FAILED : APP_DONE;
}

static int prepare(job *j)
{
    const render_options *o = j->options;
    char path[PATH_ROOM];
    size_t movie_room = strlen(o->directory) + 16;
    j->rgb = malloc((size_t)o->def.width * (size_t)o->def.height * 3);
    j->movie = o->movie ? strdup(o->movie) : malloc(movie_room);
    if (!j->rgb || !j->movie) {
        app_error("out of memory");
        return APP_FAILED;
    }
    if (!o->movie) snprintf(j->movie, movie_room, "%s/movie.mp4", o->directory);
    snprintf(path, sizeof path, "%s/render", o->directory);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        app_error("render: cannot create %s: %s", path, strerror(errno));
        return APP_FAILED;
    }
    return make_pictures(j);
}

static int render(const render_options *o)
{
    un_context_def def = un_context_def_default();
    def.threads = o->threads;
    job j = {.options = o, .ctx = un_context_create(&def)};
    if (!j.ctx) {
        app_error("out of memory");
        return APP_FAILED;
    }
    catch_signals();
    j.report = (report){.quiet = o->quiet, .total = o->last - o->first + 1, .start = now()};
    j.report.bar = isatty(STDOUT_FILENO);
    un_status status = un_renderer_create(j.ctx, o->directory, &o->def, &j.renderer);
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
    render_options o = {.def = un_render_def_default()};
    const app_option options[] = {
        {"--output", "-o", APP_TEXT, &o.movie, "FILM", "the film; otherwise DIR/movie.mp4", NULL},
        {"--frames", NULL, APP_TEXT, &o.frames, "A:B", "only these; one number: only that picture",
         NULL},
        {"--width", NULL, APP_COUNT, &o.def.width, "N", "of the pictures; otherwise 1280", NULL},
        {"--height", NULL, APP_COUNT, &o.def.height, "N", "otherwise 720", NULL},
        {"--samples", NULL, APP_COUNT, &o.def.samples, "N",
         "rays for a pixel that shows water; more: smoother and slower", NULL},
        {"--eye", NULL, APP_TEXT, &o.eye, "X,Y,Z", "where the camera is, m; otherwise chosen",
         NULL},
        {"--target", NULL, APP_TEXT, &o.target, "X,Y,Z", "what it looks at, m", NULL},
        {"--fov", NULL, APP_NUMBER, &o.def.fov, "DEGREES", "vertical field of view; otherwise 30",
         NULL},
        {"--reuse", NULL, APP_SWITCH, &o.reuse, NULL, "keep pictures that are there already", NULL},
        {"--threads", NULL, APP_COUNT, &o.threads, "N", "otherwise all processors", NULL},
        {"--quiet", NULL, APP_SWITCH, &o.quiet, NULL, "say nothing but errors", NULL},
        {0}};
    const app_command command = {
        "render", "DIR",
        "Renders the frames of a run to DIR/render/NNNN.png and joins them to a film by ffmpeg.\n"
        "Neither a display nor a graphics card is needed.",
        options};
    int exit_status = app_options_parse(&command, argc, argv, &o.directory);
    if (exit_status >= 0) return exit_status;
    if (!read_point("--eye", o.eye, &o.def.has_eye, o.def.eye) ||
        !read_point("--target", o.target, &o.def.has_target, o.def.target))
        return APP_WRONG;
    if (strlen(o.directory) > PATH_ROOM - 100) {
        app_error("render: the path is too long");
        return APP_WRONG;
    }
    int32_t count = count_frames(o.directory);
    if (count == 0) {
        app_error("render: %s holds no frames; `undine run SCENE -o DIR` makes them", o.directory);
        return APP_WRONG;
    }
    if (!read_range(&o, count)) return APP_WRONG;
    return render(&o);
}
