/* Progress of a run: a line that is redrawn on a terminal, a line per frame elsewhere, or JSON. */
#include "app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_SECONDS 0.1

void app_progress_init(app_progress *progress, bool quiet, bool json)
{
    const char *term = getenv("TERM");
    bool terminal = app_on_terminal() && term && strcmp(term, "dumb") != 0;
    *progress = (app_progress){.frame = -1, .shown = -1};
    progress->style = json ? APP_JSON : quiet ? APP_QUIET : terminal ? APP_BAR : APP_LINES;
}

/* A reader that has exited must not end a run of hours. */
static void flush_out(app_progress *progress)
{
    if (fflush(stdout) != 0) progress->deaf = true;
    if (progress->deaf) clearerr(stdout);
}

static void clear_bar(app_progress *progress)
{
    if (progress->drawn) fputs("\r\033[K", stdout);
    progress->drawn = false;
}

/* ---- JSON lines ---- */

static void json_text(const char *key, const char *value)
{
    printf("\"%s\":", key);
    app_json_string(stdout, value);
}

static void json_field(const char *key, double value)
{
    printf(",\"%s\":", key);
    app_json_number(stdout, value);
}

static void json_state(const un_progress *p)
{
    json_field("frame", p->frame);
    json_field("frame_count", p->frame_count);
    json_field("step", p->step);
    json_field("time", p->time);
    json_field("particles", (double)p->particles);
    json_field("volume_error", p->volume_error);
    json_field("seconds", p->seconds);
    printf(",\"suspect\":%s", p->suspect ? "true" : "false");
}

/* ---- the bar ---- */

static double done_fraction(const un_progress *p)
{
    double fraction = p->frame_count > 0 ? (p->frame + p->frame_fraction) / p->frame_count : 1;
    return fraction >= 0 ? (fraction < 1 ? fraction : 1) : 0;
}

/* Tenths of a second are meaningless in an estimate. */
static app_text time_left(const un_progress *p)
{
    app_text text = {"time left unknown"};
    if (p->seconds_left >= 0)
        snprintf(text.text, sizeof text.text, "%.48s left",
                 p->seconds_left < 1 ? "under 1 s" : app_seconds(round(p->seconds_left)).text);
    return text;
}

static app_text short_count(double count)
{
    app_text text = app_count(count);
    if (count >= 1e6) snprintf(text.text, sizeof text.text, "%.2f M", count / 1e6);
    return text;
}

static void draw_bar(app_progress *progress, const un_progress *p)
{
    struct winsize window = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    int columns = window.ws_col > 0 ? window.ws_col : 80;
    char left[64], right[200], bar[41];
    snprintf(left, sizeof left, "frame %d/%d", p->frame, p->frame_count);
    bool finished = p->frame >= p->frame_count;
    int length = snprintf(right, sizeof right, "%sstep %d  %s particles  volume %s  %s",
                          p->suspect ? "SUSPECT  " : "", p->step,
                          short_count((double)p->particles).text, app_percent(p->volume_error).text,
                          finished ? app_seconds(p->seconds).text : time_left(p).text);
    int room = columns - 1 - (int)strlen(left) - length - 6;
    int width = room > 40 ? 40 : room;
    fputs("\r", stdout);
    if (width >= 4) {
        int full = (int)(done_fraction(p) * width + 0.5);
        memset(bar, '#', (size_t)full);
        memset(bar + full, '.', (size_t)(width - full));
        bar[width] = 0;
        printf("%s [%s]  %s\033[K", left, bar, right);
    } else {
        char line[300];
        snprintf(line, sizeof line, "%s  %s", left, right);
        printf("%.*s\033[K", columns - 1, line);
    }
    progress->drawn = true;
}

static void print_line(const un_progress *p)
{
    printf("frame %d of %d, step %d, %.4g s simulated, %s particles, volume %s, %s so far",
           p->frame, p->frame_count, p->step, p->time, app_count((double)p->particles).text,
           app_percent(p->volume_error).text, app_seconds(p->seconds).text);
    if (p->seconds_left >= 0 && p->frame < p->frame_count) printf(", %s", time_left(p).text);
    printf("%s\n", p->suspect ? ", suspect" : "");
}

/* ---- events ---- */

void app_progress_start(app_progress *progress, const char *scene, const char *directory)
{
    if (progress->style == APP_QUIET) return;
    if (progress->style == APP_JSON) {
        printf("{\"event\":\"start\",");
        json_text("scene", scene);
        printf(",");
        json_text("directory", directory);
        printf(",");
        json_text("version", un_version());
        printf("}\n");
    } else {
        printf("%s -> %s\n", scene, directory);
    }
    flush_out(progress);
}

void app_progress_step(app_progress *progress, const un_progress *now)
{
    bool new_frame = now->frame != progress->frame;
    progress->frame = now->frame;
    progress->last = *now;
    if (progress->deaf || progress->style == APP_QUIET) return;
    switch (progress->style) {
    case APP_JSON:
        printf("{\"event\":\"%s\"", new_frame ? "frame" : "step");
        json_state(now);
        json_field("frame_fraction", now->frame_fraction);
        printf(",\"seconds_left\":");
        if (now->seconds_left >= 0)
            app_json_number(stdout, now->seconds_left);
        else
            fputs("null", stdout);
        printf("}\n");
        break;
    case APP_BAR:
        if (now->seconds - progress->shown < REDRAW_SECONDS && now->seconds >= progress->shown &&
            now->frame < now->frame_count)
            return;
        progress->shown = now->seconds;
        draw_bar(progress, now);
        break;
    default:
        if (!new_frame) return;
        print_line(now);
    }
    flush_out(progress);
}

void app_progress_log(void *user, un_log_level level, const char *message)
{
    app_progress *progress = user;
    if (progress->style == APP_QUIET) return;
    if (progress->style == APP_JSON) {
        if (progress->deaf) return;
        printf("{\"event\":\"%s\",", level == UN_LOG_WARNING ? "warning" : "note");
        json_text("message", message);
        printf("}\n");
        flush_out(progress);
        return;
    }
    clear_bar(progress);
    flush_out(progress);
    app_error("%s%s", level == UN_LOG_WARNING ? "warning: " : "", message);
}

void app_progress_end(app_progress *progress, un_status status, const char *directory,
                      const char *message)
{
    const un_progress *p = &progress->last;
    if (progress->style == APP_QUIET || progress->deaf) return;
    if (progress->style == APP_JSON) {
        printf("{\"event\":\"%s\"", status == UN_OK            ? "done"
                                    : status == UN_INTERRUPTED ? "interrupted"
                                                               : "failed");
        json_state(p);
        printf(",");
        json_text("directory", directory);
        printf(",");
        json_text("message", message);
        printf("}\n");
    } else {
        if (progress->style == APP_BAR && status == UN_OK) draw_bar(progress, p);
        if (progress->drawn) fputs("\n", stdout); /* the last state stays readable */
        progress->drawn = false;
        if (p->suspect) printf("suspect: see the warnings above, or `undine info %s`\n", directory);
        if (status == UN_OK)
            printf("done: %d frames, %s steps in %s. `undine info %s` says more, `undine render "
                   "%s` makes a film.\n",
                   p->frame, app_count(p->step).text, app_seconds(p->seconds).text, directory,
                   directory);
        else if (status == UN_INTERRUPTED)
            printf(
                "interrupted after frame %d of %d; finished frames are in %s, --resume continues\n",
                p->frame, p->frame_count, directory);
    }
    flush_out(progress);
}
