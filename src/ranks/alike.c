/* Whether ranks compute alike.
 *
 * Ranks work out some things each for itself and rely on the others to get the same bits: where
 * solids are, which cubes there are. That takes the same build, and machines on which the C library
 * works alike: it chooses functions by the processor (with fused multiplication or without), and
 * other versions of it have other last bits. Reciprocal square roots begin with an estimate that
 * each maker's processors have of their own. */
#include "base/lanes.h"
#include "ranks/link.h"

#include <link.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (const unsigned char *b = bytes; count > 0; b++, count--) hash = un_hash64(hash ^ *b);
    return hash;
}

/* Notes of the program or library that has this code: the linker puts a number of the build there.
 * Where it does not, all builds are the same. */
typedef struct search {
    uintptr_t code;
    uint64_t hash;
} search;

static int find_notes(struct dl_phdr_info *object, size_t size, void *arg)
{
    search *s = arg;
    bool has_code = false;
    (void)size;
    for (int k = 0; k < object->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[k];
        uintptr_t begin = object->dlpi_addr + p->p_vaddr;
        has_code |= p->p_type == PT_LOAD && s->code >= begin && s->code - begin < p->p_memsz;
    }
    for (int k = 0; has_code && k < object->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[k];
        if (p->p_type == PT_NOTE)
            s->hash = hash_bytes(s->hash, (const char *)object->dlpi_addr + p->p_vaddr, p->p_memsz);
    }
    return has_code;
}

static uint64_t find_build(void)
{
    search s = {.code = (uintptr_t)find_build};
    dl_iterate_phdr(find_notes, &s);
    return s.hash;
}

#define TRIES 500

static uint64_t find_maths(void)
{
    uint64_t hash = 0;
    for (uint64_t k = 0; k < TRIES; k++) {
        volatile double random = un_random(1, k); /* volatile: the compiler knows these, too */
        double x = 8 * random;
        double y[] = {sin(x),  cos(x),      tan(x),        exp(x),      exp2(x),     log(x + 1),
                      cbrt(x), pow(x, 0.3), atan2(x, 2.1), hypot(x, 1), acos(x / 8), log2(x + 1)};
        volatile float narrow = (float)x;
        float z[] = {sinf(narrow), cosf(narrow), expf(narrow), logf(narrow + 1),
                     powf(narrow, 0.3f)};
        un_lanes8 estimate = un_lanes8_rsqrt(un_lanes8_all(narrow + 0.1f));
        hash = hash_bytes(hash_bytes(hash, y, sizeof y), z, sizeof z);
        hash = hash_bytes(hash, &estimate, sizeof estimate);
    }
    return hash;
}

un_alike un_alike_find(void)
{
    char host[256] = {0};
    gethostname(host, sizeof host - 1);
    un_alike mine = {
        .bound = hash_bytes(0, host, sizeof host), .build = find_build(), .maths = find_maths()};
    snprintf(mine.host, sizeof mine.host, "%.63s", host);
    return mine;
}

void un_alike_compare(char *unlike, size_t size, const un_alike *all, int32_t count)
{
    *unlike = 0;
    for (int32_t r = 1; r < count && !*unlike; r++) {
        const char *host = all[r].host, *first = all[0].host;
        if (all[r].build != all[0].build)
            snprintf(unlike, size,
                     "rank %d, on %s, runs another build than rank 0, on %s; install the same one "
                     "on all machines",
                     r, host, first);
        else if (all[r].maths != all[0].maths)
            snprintf(unlike, size,
                     "rank %d, on %s, does not compute the same last bits as rank 0, on %s; take "
                     "machines with the same C library and processors of one kind",
                     r, host, first);
    }
}
