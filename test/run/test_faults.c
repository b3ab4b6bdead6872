/* Every call to the disk may fail: nothing crashes, no finished frame is lost, and the run can be
 * resumed to the files it would have written.
 * test-wrap: write fsync rename open ftruncate pread read unlink mkdir */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "run/folder.h"

typedef enum fault { NONE, FAILING, SHORT } fault;

static struct {
    fault kind;
    int at, error; /* the call that fails, counted from 1; all of one kind count together */
    bool for_good; /* and all calls after it, as on a full disk */
    int calls;
} plan;

static bool hit(bool writes)
{
    if (plan.kind == NONE || (plan.kind == SHORT && !writes)) return false;
    plan.calls++;
    return plan.calls == plan.at || (plan.for_good && plan.calls > plan.at);
}

#define FAIL_IF_HIT(writes)                                                                        \
    do {                                                                                           \
        if (hit(writes)) {                                                                         \
            errno = plan.error;                                                                    \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
int __real_fsync(int fd), __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to), __wrap_rename(const char *, const char *);
int __real_ftruncate(int fd, off_t length), __wrap_ftruncate(int fd, off_t length);
int __real_unlink(const char *path), __wrap_unlink(const char *path);
int __real_mkdir(const char *path, mode_t mode), __wrap_mkdir(const char *path, mode_t mode);
int __real_open(const char *path, int flags, ...), __wrap_open(const char *path, int flags, ...);
ssize_t __real_pread(int fd, void *to, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t count, off_t at);
ssize_t __real_read(int fd, void *to, size_t count), __wrap_read(int fd, void *to, size_t count);

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    if (plan.kind == SHORT && hit(true)) return __real_write(fd, bytes, count > 1 ? count / 2 : 1);
    if (plan.kind == FAILING) FAIL_IF_HIT(true);
    return __real_write(fd, bytes, count);
}
int __wrap_fsync(int fd)
{
    FAIL_IF_HIT(false);
    (void)fd;
    return 0; /* in memory there is nothing to sync */
}
int __wrap_rename(const char *from, const char *to)
{
    FAIL_IF_HIT(false);
    return __real_rename(from, to);
}
int __wrap_ftruncate(int fd, off_t length)
{
    FAIL_IF_HIT(false);
    return __real_ftruncate(fd, length);
}
int __wrap_unlink(const char *path)
{
    FAIL_IF_HIT(false);
    return __real_unlink(path);
}
int __wrap_mkdir(const char *path, mode_t mode)
{
    FAIL_IF_HIT(false);
    return __real_mkdir(path, mode);
}
int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
    va_end(arguments);
    FAIL_IF_HIT(false);
    return __real_open(path, flags, mode);
}
ssize_t __wrap_pread(int fd, void *to, size_t count, off_t at)
{
    FAIL_IF_HIT(false);
    return __real_pread(fd, to, count, at);
}
ssize_t __wrap_read(int fd, void *to, size_t count)
{
    FAIL_IF_HIT(false);
    return __real_read(fd, to, count);
}

static const char scene[] =
    "scene { method = 'uniform', domain = { size = {1, 1, 1} },\n"
    "detail = { finest = 4, surface = 4 }, frames = { count = 3, rate = 24 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.5, 1} } },\n"
    "solids = { sphere { center = {0.7, 0.5, 0.5}, radius = 0.2, velocity = {-1, 0, 0} } } }\n";

static void remove_folder(const char *name)
{
    char command[320];
    snprintf(command, sizeof command, "rm -rf %s", scratch_path(name));
    assert_int_equal(system(command), 0);
}

/* The scene file is read before the run's own calls count. */
static un_status go(folder_run *r, fault kind, int at, int error, bool for_good)
{
    plan.kind = kind;
    plan.at = at;
    plan.error = error;
    plan.for_good = for_good;
    plan.calls = 0;
    un_status status = folder_go(r);
    plan.kind = NONE;
    return status;
}

/* Frames that run.json calls finished are there and stay as they are. */
static int finished_frames(void)
{
    un_context *ctx = check_context();
    un_info info;
    int frames =
        un_info_read(ctx, scratch_path("again"), &info) == UN_OK ? info.frames_finished : 0;
    check_context_end(ctx);
    return frames;
}

static void check_frames(int count)
{
    char names[2][64];
    for (int frame = 1; frame <= count; frame++) {
        size_t size[2];
        snprintf(names[0], sizeof names[0], "whole/frames/%04d/surface.ply", frame);
        snprintf(names[1], sizeof names[1], "again/frames/%04d/surface.ply", frame);
        char *a = folder_read(names[0], &size[0]), *b = folder_read(names[1], &size[1]);
        if (!b || size[0] != size[1] || memcmp(a, b, size[0]) != 0)
            fail_msg("frame %d is lost", frame);
        free(a);
        free(b);
    }
}

static void walk(fault kind, int error, bool for_good, int stride)
{
    scratch_write("scene.lua", scene, sizeof scene - 1);
    folder_run whole = {.name = "whole", .def = {.keep_every = 2}};
    assert_int_equal(go(&whole, kind, INT32_MAX, error, for_good), UN_OK);
    int calls = plan.calls;
    assert_true(calls > (kind == SHORT ? 30 : 200));
    for (int at = 1; at <= calls; at += stride) {
        folder_run run = {.name = "again", .def = {.keep_every = 2}};
        remove_folder("again");
        un_status status = go(&run, kind, at, error, for_good);
        if (kind == SHORT && status != UN_OK)
            fail_msg("a short write (call %d) ends the run: %s", at, run.message);
        if (status != UN_OK && (status != UN_ERROR_FILE || !*run.message) &&
            !(status == UN_ERROR_SCENE && at <= 3))
            fail_msg("call %d: status %d: %s", at, (int)status, run.message);
        int frames = finished_frames();
        check_frames(frames);
        run.def.resume = true;
        un_status resumed = folder_go(&run);
        if (resumed != UN_OK) fail_msg("call %d: cannot be resumed: %s", at, run.message);
        folder_same("whole", "again", 3);
    }
    /* and while resuming: a second try always succeeds */
    for (int at = 1; at <= calls; at += stride) {
        folder_run run = {
            .name = "again",
            .def = {.keep_every = 2, .resume = true, .has_from_frame = true, .from_frame = 2}};
        un_status status = go(&run, kind, at, error, for_good);
        if (status == UN_OK && plan.calls < at) break;
        if (status == UN_OK) continue;
        run.def.has_from_frame = false;
        if (folder_go(&run) != UN_OK) fail_msg("resuming, call %d: %s", at, run.message);
        folder_same("whole", "again", 3);
    }
}

static bool every; /* call, or some of them */

static void failing_calls(void **state)
{
    (void)state;
    walk(FAILING, EIO, false, every ? 1 : 7);
}

static void a_full_disk(void **state)
{
    (void)state;
    walk(FAILING, ENOSPC, true, every ? 1 : 19);
}

static void short_writes(void **state)
{
    (void)state;
    walk(SHORT, 0, false, every ? 1 : 9);
}

int main(int argc, char **argv)
{
    every = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(failing_calls),
        FOLDER_TEST(a_full_disk),
        FOLDER_TEST(short_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
