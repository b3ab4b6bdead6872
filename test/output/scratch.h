/* A folder of its own for each test, gone afterwards. */
#ifndef UN_TEST_SCRATCH_H
#define UN_TEST_SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "output/output.h"

static char scratch[64];

static inline int scratch_begin(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/undine_test_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

static inline int scratch_end(void **state)
{
    (void)state;
    nftw(scratch, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* A path in the folder; good until the fourth call after this one. */
static inline const char *scratch_path(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ & 3];
    snprintf(path, sizeof paths[0], "%s/%.180s", scratch, name);
    return path;
}

static inline void scratch_write(const char *name, const void *data, size_t count)
{
    FILE *file = fopen(scratch_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, count, file), count);
    fclose(file);
}

static inline int scratch_entries(void)
{
    DIR *folder = opendir(scratch);
    assert_non_null(folder);
    int count = -2;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

#define check_message(ctx, part)                                                                   \
    do {                                                                                           \
        if (!strstr(un_context_message(ctx), (part)))                                              \
            fail_msg("\"%s\" does not say \"%s\"", un_context_message(ctx), (part));               \
    } while (0)

#endif
