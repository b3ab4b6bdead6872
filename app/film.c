#include "film.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct film {
    pid_t child;
    int pipe;     /* to its standard input; -1 when closed */
    FILE *errors; /* its standard error: a file, so that it can never block on us */
    size_t frame_bytes;
    char *path, *aside;
};

/* DIR/name.mp4 is made as DIR/.name.part.mp4: ffmpeg takes the format from the extension. */
static char *aside_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t room = strlen(path) + 16;
    char *aside = malloc(room);
    if (!dot || dot == name) dot = name + strlen(name);
    if (aside)
        snprintf(aside, room, "%.*s.%.*s.part%s", (int)(name - path), path, (int)(dot - name), name,
                 *dot ? dot : ".mp4");
    return aside;
}

static void film_free(film *f)
{
    if (f->pipe >= 0) close(f->pipe);
    if (f->errors) fclose(f->errors);
    free(f->path);
    free(f->aside);
    free(f);
}

/* Starts ffmpeg with our pipe as input; 0 or an error number. */
static int spawn(film *f, int input, char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults, none;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(f->errors), STDERR_FILENO);
    /* In its own process group: Ctrl-C is for us, and we end ffmpeg by closing its input. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    int error = posix_spawnp(&f->child, "ffmpeg", &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

film *film_open(const char *path, int32_t width, int32_t height, double rate, char *message,
                int32_t size)
{
    film *f = calloc(1, sizeof *f);
    if (f) {
        f->pipe = -1;
        f->frame_bytes = (size_t)width * (size_t)height * 3;
        f->path = strdup(path);
        f->aside = aside_name(path);
        f->errors = tmpfile();
    }
    int ends[2];
    if (!f || !f->path || !f->aside || !f->errors || pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(message, (size_t)size, "cannot start ffmpeg: %s", strerror(errno));
        if (f) film_free(f);
        return NULL;
    }
    f->pipe = ends[1];
    fcntl(fileno(f->errors), F_SETFD, FD_CLOEXEC);
    char picture[32], frequency[40], target[4200];
    snprintf(picture, sizeof picture, "%dx%d", width, height);
    snprintf(frequency, sizeof frequency, "%.10g", rate);
    snprintf(target, sizeof target, "file:%s", f->aside);
    /* Chroma at half resolution needs even sides; the colour space is written to the file. */
    char *arguments[] = {"ffmpeg",
                         "-y",
                         "-hide_banner",
                         "-loglevel",
                         "error",
                         "-nostdin",
                         "-f",
                         "rawvideo",
                         "-pixel_format",
                         "rgb24",
                         "-video_size",
                         picture,
                         "-framerate",
                         frequency,
                         "-i",
                         "pipe:0",
                         "-an",
                         "-vf",
                         "pad=ceil(iw/2)*2:ceil(ih/2)*2,scale=out_color_matrix=bt709:out_range=tv",
                         "-c:v",
                         "libx264",
                         "-preset",
                         "medium",
                         "-crf",
                         "18",
                         "-pix_fmt",
                         "yuv420p",
                         "-colorspace",
                         "bt709",
                         "-color_primaries",
                         "bt709",
                         "-color_trc",
                         "bt709",
                         "-movflags",
                         "+faststart",
                         target,
                         NULL};
    int error = spawn(f, ends[0], arguments);
    close(ends[0]);
    if (error == 0) return f;
    if (error == ENOENT)
        snprintf(message, (size_t)size,
                 "no film: ffmpeg is not installed; install it (Debian: `sudo apt install ffmpeg`) "
                 "and repeat with --reuse");
    else
        snprintf(message, (size_t)size, "no film: cannot start ffmpeg: %s", strerror(error));
    film_free(f);
    return NULL;
}

bool film_frame(film *f, const uint8_t *rgb)
{
    size_t done = 0;
    while (done < f->frame_bytes) {
        ssize_t n = write(f->pipe, rgb + done, f->frame_bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* The last line of ffmpeg's complaints. */
static void last_complaint(film *f, char *line, size_t size)
{
    char next[512];
    line[0] = 0;
    rewind(f->errors);
    while (fgets(next, sizeof next, f->errors)) {
        next[strcspn(next, "\r\n")] = 0;
        if (next[0]) snprintf(line, size, "%.390s", next);
    }
}

static bool put_in_place(const film *f)
{
    int fd = open(f->aside, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    return good && rename(f->aside, f->path) == 0;
}

bool film_close(film *f, bool keep, char *message, int32_t size)
{
    int ended = 0;
    close(f->pipe);
    f->pipe = -1;
    if (!keep) kill(f->child, SIGKILL);
    while (waitpid(f->child, &ended, 0) < 0 && errno == EINTR) {
    }
    bool good = !keep || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    if (!good) {
        char line[400];
        last_complaint(f, line, sizeof line);
        if (WIFSIGNALED(ended))
            snprintf(message, (size_t)size, "no film: ffmpeg was ended by signal %d",
                     WTERMSIG(ended));
        else
            snprintf(message, (size_t)size, "no film: ffmpeg failed: %s",
                     line[0] ? line : "it gave no reason");
    } else if (keep && !put_in_place(f)) {
        good = false;
        snprintf(message, (size_t)size, "no film: cannot write %s: %s", f->path, strerror(errno));
    }
    if (!good || !keep) unlink(f->aside);
    film_free(f);
    return good;
}
