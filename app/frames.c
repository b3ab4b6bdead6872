/* Shared by commands that work through the frames of a run: choice of frames, progress,
 * interruption. */
#include "app.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- interruption: the first signal stops after the current piece, the second at once ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    if (interrupted) _exit(APP_INTERRUPTED);
    interrupted = 1;
}

void app_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* the reader of our output may exit */
    signal(SIGXFSZ, SIG_IGN); /* a file size limit: the write fails with a message */
}

bool app_interrupted(void)
{
    return interrupted;
}

/* ---- which frames ---- */

/* The largest number among the folders of frames; -1: none. */
static int32_t largest_frame(const char *directory)
{
    char path[APP_PATH];
    int32_t largest = -1;
    snprintf(path, sizeof path, "%.4000s/frames", directory);
    DIR *folder = opendir(path);
    if (!folder) return -1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        bool plain = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && !*end;
        if (plain && number > largest && number < INT32_MAX) largest = (int32_t)number;
    }
    closedir(folder);
    return largest;
}

static bool has_frame(const char *directory, int32_t frame)
{
    char path[APP_PATH];
    struct stat found;
    snprintf(path, sizeof path, "%.4000s/frames/%04d", directory, frame);
    return stat(path, &found) == 0;
}

int32_t app_count_frames(const char *command, const char *directory)
{
    un_context_def def = un_context_def_default();
    def.threads = 1;
    un_context *ctx = un_context_create(&def);
    if (!ctx) return 0;
    int32_t count = un_frame_count(ctx, directory), largest = largest_frame(directory);
    un_context_destroy(ctx);
    if (largest >= count && !has_frame(directory, count))
        app_error("%s: warning: %s has no frame %d, so those after it, up to %d, are left "
                  "out%s",
                  command, directory, count, largest,
                  count == 0 ? " unless --frames names them" : "");
    else if (count == 0)
        app_error("%s: %s has no frames; `undine run SCENE -o DIR` makes them", command, directory);
    return count;
}

/* "a:b" or "a", if all these frames exist, whatever others are missing. */
static bool names_present(const char *text, const char *directory, int32_t *first, int32_t *last)
{
    char rest;
    int given = sscanf(text, "%9d:%9d%c", first, last, &rest);
    if (given == 1 && sscanf(text, "%9d%c", first, &rest) == 1) *last = *first, given = 2;
    if (given != 2 || *first < 0 || *last < *first) return false;
    for (int32_t frame = *first; frame <= *last; frame++)
        if (!has_frame(directory, frame)) return false;
    return true;
}

bool app_choose_frames(const char *command, const char *text, const char *directory,
                       int32_t *first_frame, int32_t *last_frame)
{
    if (text && !has_frame(directory, 0) && names_present(text, directory, first_frame, last_frame))
        return true;
    int32_t count = app_count_frames(command, directory);
    if (count == 0) return false;
    *first_frame = 0;
    *last_frame = count - 1;
    if (!text) return true;
    const char *colon = strchr(text, ':'), *second = colon ? colon + 1 : text;
    char *end = NULL;
    errno = 0;
    long first = 0, last = count - 1;
    bool good = text[0] != 0;
    if (text[0] != ':') {
        first = strtol(text, &end, 10);
        good = good && end != text && (*end == ':' || !*end);
    }
    if (*second) {
        last = strtol(second, &end, 10);
        good = good && end != second && !*end;
    }
    if (!good || errno || first < 0 || last < first) {
        app_error("%s: --frames needs a range such as 10:40, not `%s`", command, text);
        return false;
    }
    if (last >= count) {
        app_error("%s: %s has frames 0 to %d, not %s", command, directory, count - 1, text);
        return false;
    }
    *first_frame = (int32_t)first;
    *last_frame = (int32_t)last;
    return true;
}

bool app_share_frames(const char *command, const char *text, const char *directory,
                      int32_t *first_frame, int32_t *last_frame)
{
    int32_t found[3] = {0};
    if (app_first()) found[0] = app_choose_frames(command, text, directory, &found[1], &found[2]);
    un_ranks_tell(app_ranks(), found, sizeof found);
    *first_frame = found[1];
    *last_frame = found[2];
    return found[0];
}

bool app_read_point(const char *command, const char *name, const char *text, bool *has,
                    double point[3])
{
    if (!text) return true;
    const char *at = text;
    for (int a = 0; a < 3; a++) {
        char *end;
        point[a] = strtod(at, &end);
        if (end == at || !isfinite(point[a]) || *end != (a < 2 ? ',' : 0)) {
            app_error("%s: %s needs three numbers such as 2,1.5,3, not `%s`", command, name, text);
            return false;
        }
        at = end + 1;
    }
    *has = true;
    return true;
}

bool app_check_output(const char *command, const char *path)
{
    struct stat found;
    if (!path || stat(path, &found) != 0 || S_ISREG(found.st_mode)) return true;
    app_error("%s: %s is a %s, not a file; choose another name", command, path,
              S_ISDIR(found.st_mode)    ? "folder"
              : S_ISFIFO(found.st_mode) ? "pipe"
              : S_ISSOCK(found.st_mode) ? "socket"
                                        : "device");
    return false;
}

/* ---- progress ---- */

double app_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

app_report app_report_make(const char *noun, int32_t total, bool quiet)
{
    bool shared = un_ranks_count(app_ranks()) > 1;
    return (app_report){.noun = noun,
                        .quiet = quiet || !app_first(),
                        .shared = shared,
                        /* mpirun gives its processes a terminal even if it writes to a file */
                        .bar = isatty(STDOUT_FILENO) && !shared,
                        .total = total,
                        .start = app_now()};
}

static double frame_bytes(const app_report *p, int32_t frame)
{
    char path[APP_PATH];
    struct stat found;
    snprintf(path, sizeof path, "%.4000s/frames/%04d/%.100s", p->directory, frame, p->file);
    return stat(path, &found) == 0 ? (double)found.st_size : 0;
}

void app_report_weigh(app_report *p, const char *directory, const char *file, int32_t first,
                      int32_t last)
{
    p->directory = directory;
    p->file = file;
    p->made_bytes = p->left_bytes = 0;
    for (int32_t frame = first; frame <= last; frame++) p->left_bytes += frame_bytes(p, frame);
}

void app_report_frame(app_report *p, int32_t frame, bool made)
{
    double bytes = p->file ? frame_bytes(p, frame) : 0;
    p->left_bytes -= bytes;
    p->done++;
    if (!made) return;
    p->made++;
    p->made_bytes += bytes;
}

/* The rest takes as long as the pieces made so far: per byte if sizes are known, else per piece. */
static double seconds_left(const app_report *p)
{
    if (!p->made) return 0;
    if (p->made_bytes > 0) return p->seconds * fmax(p->left_bytes, 0) / p->made_bytes;
    return p->seconds * (p->total - p->done) / p->made;
}

void app_report_show(const app_report *p, int32_t frame)
{
    if (p->quiet) return;
    app_text left = app_seconds(seconds_left(p));
    app_text one = app_seconds(p->made ? p->seconds / p->made : 0);
    if (!p->bar) {
        bool any = p->shared && p->done > 0;
        if (any)
            printf("%s %d of %d", p->noun, p->done, p->total);
        else if (frame >= 0)
            printf("frame %d (%d/%d)", frame, p->done, p->total);
        any = any || frame >= 0;
        if (any && p->made && p->done < p->total) printf(", %s left", left.text);
        if (any) printf("\n");
        fflush(stdout);
        return;
    }
    struct winsize window = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    char line[256], bar[31];
    int filled = p->total ? (int)(30.0 * p->done / p->total) : 0;
    for (int i = 0; i < 30; i++) bar[i] = i < filled ? '#' : '.';
    bar[30] = 0;
    if (p->made && p->done < p->total)
        snprintf(line, sizeof line, "%s %d/%d  [%s]  %s each  %s left", p->noun, p->done, p->total,
                 bar, one.text, left.text);
    else
        snprintf(line, sizeof line, "%s %d/%d  [%s]", p->noun, p->done, p->total, bar);
    printf("\r\033[K%.*s", window.ws_col > 1 ? window.ws_col - 1 : 79, line);
    fflush(stdout);
}

void app_report_clear(const app_report *p)
{
    if (p->bar && !p->quiet) fputs("\r\033[K", stdout);
    fflush(stdout);
}

bool app_report_progress(void *user, int32_t done, int32_t total)
{
    app_report *report = user;
    report->done = report->made = done;
    report->total = total;
    report->seconds = app_now() - report->start;
    if (report->bar) app_report_show(report, -1);
    return !app_interrupted();
}
