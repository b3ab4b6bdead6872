/* What the fuzz targets share. Whatever the bytes: no crash, no leak, an answer. */
#ifndef UN_FUZZ_H
#define UN_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static inline un_context *fuzz_context(void)
{
    un_context_def def = un_context_def_default();
    def.threads = 1;
    def.memory_cap = (size_t)256 << 20;
    un_context *ctx = un_context_create(&def);
    FUZZ_REQUIRE(ctx);
    return ctx;
}

static inline void fuzz_context_end(un_context *ctx)
{
    FUZZ_REQUIRE(un_context_bytes(ctx) == 0);
    un_context_destroy(ctx);
}

/* The bytes as a file of this kind; the name is good until the next call. */
static inline const char *fuzz_file(const uint8_t *bytes, size_t count, const char *extension)
{
    static char path[64];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/undine_fuzz_%ld.%s", folder, (long)getpid(), extension);
    FILE *file = fopen(path, "wb");
    FUZZ_REQUIRE(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
    return path;
}

#endif
