/* Checkpoints as files. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/output.h"

static void to_file(void *arg, const void *bytes, size_t count)
{
    un_file_write(arg, bytes, count);
}

static bool from_file(void *arg, void *bytes, size_t count)
{
    int fd = *(int *)arg;
    for (char *at = bytes; count > 0;) {
        ssize_t got = read(fd, at, count);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        count -= (size_t)got;
    }
    return true;
}

/* state: NULL to check only. path: what is opened; name: what messages call it. */
static un_status read_checkpoint(un_context *ctx, un_state *state, const char *path,
                                 const char *name, const un_sieve *sieve)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return un_file_fail(ctx, "read", name, errno);
    struct stat found;
    un_status status;
    if (fstat(fd, &found) != 0)
        status = un_file_fail(ctx, "read", name, errno);
    else if (!S_ISREG(found.st_mode))
        status = un_fail(ctx, UN_ERROR_FILE, "%s is not a file", name);
    else if (state)
        status = un_state_decode_some(state, from_file, &fd, (uint64_t)found.st_size, name, sieve);
    else
        status = un_state_verify(ctx, from_file, &fd, (uint64_t)found.st_size, name);
    close(fd);
    return status;
}

un_status un_checkpoint_write(un_context *ctx, const char *path, const un_state *state)
{
    un_file *file;
    UN_TRY(un_file_create(ctx, path, &file));
    un_status status = un_state_encode(state, to_file, file);
    const char *aside = un_file_aside(file);
    /* Commit reports a failed write, more clearly than a short file would. */
    if (status == UN_OK && un_file_status(file) == UN_OK)
        status = read_checkpoint(ctx, NULL, aside, path, NULL);
    if (status == UN_OK) return un_file_commit(file);
    un_file_discard(file);
    return status;
}

un_status un_checkpoint_read(un_state *state, const char *path)
{
    return read_checkpoint(state->ctx, state, path, path, NULL);
}

un_status un_checkpoint_read_some(un_state *state, const char *path, const un_sieve *sieve)
{
    return read_checkpoint(state->ctx, state, path, path, sieve);
}
