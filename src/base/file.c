/* Files that appear only when complete.
 *
 * A file is written beside its place as <path>.<process>.tmp, synced and renamed over <path>, and
 * the folder is synced. So a reader finds the old file or the new one and never a part of it, even
 * after a power cut. Files that a killed run leaves behind end in .tmp; nothing reads them, and
 * they may be deleted. Devices and pipes are refused: renaming over them would replace them. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 18)

struct un_file {
    un_context *ctx;
    char *path;
    char *aside; /* the temporary file */
    int fd;
    bool joined;      /* another process renames it */
    un_status status; /* of the first failure; the context's message explains it */
    uint64_t size;    /* of what has been written in sequence */
    size_t used;
    char buffer[BUFFER_BYTES];
};

static const char *remedy(int error, bool reading)
{
    if (reading) switch (error) {
        case ENOENT:
            return "check the path";
        case EACCES:
        case EPERM:
            return "make it readable for you (chmod, chown)";
        case EISDIR:
            return "name a file, not a folder";
        default:
            return "check the path and the disk";
        }
    switch (error) {
    case ENOENT:
        return "its folder does not exist or was removed meanwhile; create it and run again";
    case ENOSPC:
    case EDQUOT:
        return "free some space there or choose another output folder";
    case EACCES:
    case EPERM:
        return "make the folder writable for you (chmod, chown) or choose another one";
    case EROFS:
        return "that disk is mounted read-only; choose another output folder";
    case ENOTDIR:
        return "a part of the path is a file, not a folder; choose another output folder";
    case EISDIR:
        return "a folder has that name; move it away or choose another output folder";
    case ENAMETOOLONG:
        return "choose a shorter path";
    case EMFILE:
    case ENFILE:
        return "too many files are open; close some programs or raise `ulimit -n`";
    case EFBIG:
        return "files may not grow that large there; raise `ulimit -f` or choose another disk";
    case EIO:
        return "the disk itself fails; choose another one";
    default:
        return "choose another output folder";
    }
}

un_status un_file_fail(un_context *ctx, const char *verb, const char *path, int error)
{
    char reason[128];
    return un_fail(ctx, UN_ERROR_FILE, "cannot %s %s: %s; %s", verb, path,
                   strerror_r(error, reason, sizeof reason),
                   remedy(error, strcmp(verb, "read") == 0));
}

/* Makes the entries of the folder that holds path durable. Some file systems cannot sync a folder
 * and return EINVAL, and some folders may be written but not read; there nothing more can be
 * done. */
static int sync_folder(const char *path)
{
    char folder[4096];
    size_t length = strlen(path);
    if (length >= sizeof folder) return 0;
    memcpy(folder, path, length + 1);
    while (length > 1 && folder[length - 1] == '/') folder[--length] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    return error == EINVAL || error == ENOTSUP || error == EACCES ? 0 : error;
}

/* ---- writing ---- */

static void file_free(un_file *file)
{
    un_context *ctx = file->ctx;
    if (file->fd >= 0) close(file->fd);
    un_free(ctx, file->aside);
    un_free(ctx, file->path);
    un_free(ctx, file);
}

/* Only a regular file may be replaced. */
static un_status check_place(un_context *ctx, const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0 || S_ISREG(found.st_mode)) return UN_OK;
    if (S_ISDIR(found.st_mode)) return un_file_fail(ctx, "write", path, EISDIR);
    return un_fail(ctx, UN_ERROR_FILE,
                   "cannot write %s: it is a %s, not a file; choose another name", path,
                   S_ISFIFO(found.st_mode)   ? "pipe"
                   : S_ISSOCK(found.st_mode) ? "socket"
                                             : "device");
}

static un_status make(un_context *ctx, const char *path, const char *ending, bool join,
                      un_file **out)
{
    *out = NULL;
    UN_TRY(check_place(ctx, path));
    un_file *file;
    UN_ALLOC(ctx, file, 1);
    file->ctx = ctx;
    file->fd = -1;
    file->joined = join;
    file->size = 0;
    file->used = 0;
    file->status = UN_OK;
    size_t length = strlen(path) + strlen(ending) + 1;
    file->path = un_strdup(ctx, path);
    file->aside = un_alloc(ctx, length, 1);
    if (!file->path || !file->aside) {
        file_free(file);
        return UN_ERROR_MEMORY;
    }
    snprintf(file->aside, length, "%s%s", path, ending);
    if (!join) unlink(file->aside); /* left by an earlier process with our number */
    file->fd = open(file->aside, O_WRONLY | (join ? 0 : O_CREAT | O_EXCL) | O_CLOEXEC, 0666);
    if (file->fd < 0) {
        un_status status = un_file_fail(ctx, "write", path, errno);
        file_free(file);
        return status;
    }
    *out = file;
    return UN_OK;
}

un_status un_file_create(un_context *ctx, const char *path, un_file **out)
{
    char ending[UN_FILE_ENDING];
    snprintf(ending, sizeof ending, ".%ld.tmp", (long)getpid());
    return make(ctx, path, ending, false, out);
}

un_status un_file_create_shared(un_context *ctx, const char *path, char ending[UN_FILE_ENDING],
                                un_file **out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t mark = un_hash64((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec);
    memset(ending, 0, UN_FILE_ENDING);
    snprintf(ending, UN_FILE_ENDING, ".%ld.%016llx.tmp", (long)getpid(), (unsigned long long)mark);
    return make(ctx, path, ending, false, out);
}

un_status un_file_join(un_context *ctx, const char *path, const char *ending, un_file **out)
{
    return make(ctx, path, ending, true, out);
}

static void write_through(un_file *file, const char *bytes, size_t count)
{
    while (count > 0 && file->status == UN_OK) {
        ssize_t written = write(file->fd, bytes, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            file->status = un_file_fail(file->ctx, "write", file->path, written < 0 ? errno : EIO);
            return;
        }
        bytes += written;
        count -= (size_t)written;
    }
}

static void flush(un_file *file)
{
    write_through(file, file->buffer, file->used);
    file->used = 0;
}

void un_file_write_at(un_file *file, uint64_t offset, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0 && file->status == UN_OK;) {
        ssize_t written = pwrite(file->fd, at, count, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            file->status = un_file_fail(file->ctx, "write", file->path, written < 0 ? errno : EIO);
            return;
        }
        at += written;
        offset += (uint64_t)written;
        count -= (size_t)written;
    }
}

uint64_t un_file_size(const un_file *file)
{
    return file->size;
}

void un_file_write(un_file *file, const void *bytes, size_t count)
{
    if (file->status != UN_OK || count == 0) return;
    file->size += count;
    if (file->used + count > BUFFER_BYTES) flush(file);
    if (count > BUFFER_BYTES) {
        write_through(file, bytes, count);
        return;
    }
    memcpy(file->buffer + file->used, bytes, count);
    file->used += count;
}

void un_file_printf(un_file *file, const char *format, ...)
{
    if (file->status != UN_OK) return;
    char text[512], *long_text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof text) {
        long_text = un_alloc(file->ctx, (size_t)length + 1, 1);
        if (!long_text) {
            file->status = UN_ERROR_MEMORY;
            return;
        }
        va_start(arguments, format);
        vsnprintf(long_text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    UN_ASSERT(length >= 0);
    un_file_write(file, long_text ? long_text : text, (size_t)length);
    un_free(file->ctx, long_text);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
void un_file_write_little(un_file *file, const void *values, size_t count, size_t size)
{
    (void)size;
    un_file_write(file, values, count * size);
}
void un_to_little(void *values, size_t count, size_t size)
{
    (void)values, (void)count, (void)size;
}
#else
void un_to_little(void *values, size_t count, size_t size)
{
    unsigned char *bytes = values;
    for (size_t i = 0; i < count; i++, bytes += size)
        for (size_t b = 0; b < size / 2; b++) {
            unsigned char kept = bytes[b];
            bytes[b] = bytes[size - 1 - b];
            bytes[size - 1 - b] = kept;
        }
}
void un_file_write_little(un_file *file, const void *values, size_t count, size_t size)
{
    const unsigned char *bytes = values;
    for (size_t i = 0; i < count; i++)
        for (size_t b = size; b-- > 0;) un_file_write(file, bytes + i * size + b, 1);
}
#endif

const char *un_file_aside(un_file *file)
{
    flush(file);
    return file->aside;
}

un_status un_file_status(const un_file *file)
{
    return file->status;
}

un_status un_file_sync(un_file *file)
{
    flush(file);
    if (file->status == UN_OK && fsync(file->fd) != 0 && errno != EINVAL)
        file->status = un_file_fail(file->ctx, "write", file->path, errno);
    return file->status;
}

un_status un_file_leave(un_file *file)
{
    UN_ASSERT(file->joined);
    un_status status = un_file_sync(file);
    if (close(file->fd) != 0 && status == UN_OK && errno != EINTR)
        status = un_file_fail(file->ctx, "write", file->path, errno);
    file->fd = -1;
    file_free(file);
    return status;
}

un_status un_file_commit(un_file *file)
{
    un_context *ctx = file->ctx;
    UN_ASSERT(!file->joined);
    un_file_sync(file);
    if (file->status == UN_OK && rename(file->aside, file->path) != 0)
        file->status = un_file_fail(ctx, "write", file->path, errno);
    if (file->status != UN_OK) unlink(file->aside);
    /* network file systems report a full disk here */
    if (close(file->fd) != 0 && file->status == UN_OK && errno != EINTR)
        file->status = un_file_fail(ctx, "write", file->path, errno);
    file->fd = -1;
    if (file->status == UN_OK) {
        int error = sync_folder(file->path);
        if (error) file->status = un_file_fail(ctx, "write", file->path, error);
    }
    un_status status = file->status;
    file_free(file);
    return status;
}

void un_file_discard(un_file *file)
{
    if (!file) return;
    if (!file->joined) unlink(file->aside);
    file_free(file);
}

/* ---- folders ---- */

static un_status make_folder(un_context *ctx, const char *path)
{
    if (mkdir(path, 0777) == 0) {
        int error = sync_folder(path);
        return error ? un_file_fail(ctx, "create the folder", path, error) : UN_OK;
    }
    int error = errno;
    struct stat found;
    if (stat(path, &found) == 0) {
        if (S_ISDIR(found.st_mode)) return UN_OK;
        return un_fail(ctx, UN_ERROR_FILE,
                       "cannot create the folder %s: a file has that name; move it away or choose "
                       "another output folder",
                       path);
    }
    return un_file_fail(ctx, "create the folder", path, error);
}

un_status un_directory_create(un_context *ctx, const char *path)
{
    if (!*path)
        return un_fail(ctx, UN_ERROR_FILE, "cannot create a folder without a name; name one");
    char *part = un_strdup(ctx, path);
    if (!part) return UN_ERROR_MEMORY;
    un_status status = UN_OK;
    for (char *end = part + 1; status == UN_OK; end++) {
        if (*end && *end != '/') continue;
        char kept = *end;
        *end = 0;
        status = make_folder(ctx, part);
        *end = kept;
        if (!kept) break;
    }
    un_free(ctx, part);
    return status;
}

/* ---- reading ---- */

un_status un_file_read(un_context *ctx, const char *path, char **text, size_t *size)
{
    *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0) return un_file_fail(ctx, "read", path, errno);
    un_status status = UN_OK;
    char *bytes = NULL;
    size_t used = 0;
    struct stat found;
    if (fstat(fd, &found) != 0) {
        status = un_file_fail(ctx, "read", path, errno);
        goto done;
    }
    if (!S_ISREG(found.st_mode)) {
        if (S_ISDIR(found.st_mode))
            status = un_file_fail(ctx, "read", path, EISDIR);
        else
            status = un_fail(ctx, UN_ERROR_FILE, "cannot read %s: not a regular file; name a file",
                             path);
        goto done;
    }
    /* bytes added meanwhile by another program are not read */
    size_t whole = (size_t)found.st_size;
    UN_ALLOC_DONE(ctx, bytes, whole + 1);
    while (used < whole) {
        ssize_t count = read(fd, bytes + used, whole - used);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            status = un_file_fail(ctx, "read", path, errno);
            goto done;
        }
        if (count == 0) break;
        used += (size_t)count;
    }
    bytes[used] = 0;
    *text = bytes;
    bytes = NULL;
    if (size) *size = used;
done:
    un_free(ctx, bytes);
    close(fd);
    return status;
}
