/* Checkpoints as files. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/output.h"
#include "ranks/ranks.h"

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

static un_status write_alone(un_context *ctx, const char *path, const un_state *state)
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

/* ---- by all ranks ---- */

/* Reads back what came from this rank, whichever rank has written it. */
static un_status check_pieces(un_context *ctx, const char *path, const char *name,
                              const un_state_piece *pieces, int32_t count)
{
    size_t room = 0;
    for (int32_t k = 0; k < count; k++) room = pieces[k].count > room ? pieces[k].count : room;
    char *bytes = un_alloc(ctx, room + 1, 1);
    if (!bytes) return UN_ERROR_MEMORY;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    un_status status = fd < 0 ? un_file_fail(ctx, "read", name, errno) : UN_OK;
    for (int32_t k = 0; k < count && status == UN_OK; k++) {
        if (lseek(fd, (off_t)pieces[k].offset, SEEK_SET) < 0)
            status = un_file_fail(ctx, "read", name, errno);
        else if (!from_file(&fd, bytes, pieces[k].count))
            status =
                un_fail(ctx, UN_ERROR_FILE, "%s is damaged: it cannot be read to its end", name);
        else if (!un_state_piece_is(&pieces[k], bytes))
            status = un_fail(ctx, UN_ERROR_FILE, "%s is damaged: a checksum is wrong", name);
    }
    if (fd >= 0) close(fd);
    un_free(ctx, bytes);
    return status;
}

static un_status write_together(un_context *ctx, const char *path, const un_state *state)
{
    un_ranks_file *file;
    un_state_piece *pieces;
    int32_t count;
    const char *aside;
    UN_TRY(un_ranks_file_create(ctx, path, &file));
    un_status status = un_state_encode_ranks(state, file, &pieces, &count);
    if (status == UN_OK) status = un_ranks_file_sync(file, &aside);
    if (status == UN_OK)
        status = un_ranks_agree(ctx, check_pieces(ctx, aside, path, pieces, count));
    un_free(ctx, pieces);
    if (status == UN_OK) return un_ranks_file_commit(file);
    un_ranks_file_discard(file);
    return status;
}

un_status un_checkpoint_write(un_context *ctx, const char *path, const un_state *state)
{
    return un_rank_count(ctx) == 1 ? write_alone(ctx, path, state)
                                   : write_together(ctx, path, state);
}

un_status un_checkpoint_read(un_state *state, const char *path)
{
    return read_checkpoint(state->ctx, state, path, path, NULL);
}

un_status un_checkpoint_read_some(un_state *state, const char *path, const un_sieve *sieve)
{
    return read_checkpoint(state->ctx, state, path, path, sieve);
}
