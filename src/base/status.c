/* The context: messages, log, create and destroy. */
#include "base/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *un_version(void)
{
    return UN_VERSION;
}

un_context_def un_context_def_default(void)
{
    return (un_context_def){0};
}

un_context *un_context_create(const un_context_def *def)
{
    un_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) return NULL;
    if (def) ctx->def = *def;
    if (ctx->def.threads <= 0) ctx->def.threads = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    ctx->def.threads = un_clampi(ctx->def.threads, 1, UN_THREADS_MAX);
    if (!un_pool_start(ctx)) {
        free(ctx);
        return NULL;
    }
    return ctx;
}

void un_context_destroy(un_context *ctx)
{
    if (!ctx) return;
    un_pool_stop(ctx);
    free(ctx);
}

const char *un_context_message(const un_context *ctx)
{
    return ctx->message;
}
int32_t un_context_threads(const un_context *ctx)
{
    return ctx->def.threads;
}
un_ranks *un_context_ranks(const un_context *ctx)
{
    return ctx->def.ranks;
}

un_status un_fail(un_context *ctx, un_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ctx->message, sizeof ctx->message, format, arguments);
    va_end(arguments);
    return status;
}

un_status un_fail_memory(un_context *ctx, size_t bytes)
{
    if (ctx->def.memory_cap)
        return un_fail(
            ctx, UN_ERROR_MEMORY,
            "out of memory: %.1f MB more would pass the cap of %.1f MB (%.1f MB in use); "
            "lower detail.finest or raise the cap",
            (double)bytes / 1e6, (double)ctx->def.memory_cap / 1e6,
            (double)un_context_bytes(ctx) / 1e6);
    return un_fail(ctx, UN_ERROR_MEMORY,
                   "out of memory: the machine refused %.1f MB more (%.1f MB in use); "
                   "lower detail.finest",
                   (double)bytes / 1e6, (double)un_context_bytes(ctx) / 1e6);
}

void un_log(un_context *ctx, un_log_level level, const char *format, ...)
{
    if (!ctx->def.log) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ctx->def.log(ctx->def.user, level, text);
}
