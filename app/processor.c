/* Whether this processor can run what was built: a build is tuned to the machine that makes it, and
 * on an older one would end with "illegal instruction". */
#include "app.h"

#include <string.h>

#if defined(__x86_64__)
static bool has(const char *feature)
{
    __builtin_cpu_init();
#define ASK(NAME)                                                                                  \
    if (strcmp(feature, NAME) == 0) return __builtin_cpu_supports(NAME);
    ASK("sse3")
    ASK("ssse3")
    ASK("sse4.2")
    ASK("popcnt")
    ASK("avx")
    ASK("avx2")
    ASK("fma")
    ASK("bmi")
    ASK("bmi2")
    ASK("avx512f")
    ASK("avx512vl")
    ASK("avx512bw")
    ASK("avx512dq")
    ASK("avx512cd")
    ASK("avx512ifma")
    ASK("avx512vbmi")
    ASK("avx512vbmi2")
    ASK("avx512vnni")
    ASK("avx512bitalg")
    ASK("avx512vpopcntdq")
#undef ASK
    return true;
}
#else
static bool has(const char *feature)
{
    (void)feature;
    return true;
}
#endif

bool app_processor_fits(void)
{
    for (int i = 0; app_built_for[i]; i++) {
        if (has(app_built_for[i])) continue;
        app_error("this processor lacks %s, which the one that undine was built for has; build "
                  "undine here, or for all of these processors with `make ARCH=x86-64-v3`, or "
                  "ARCH=x86-64 if some are from before 2015",
                  app_built_for[i]);
        return false;
    }
    return true;
}
