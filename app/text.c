/* Messages and numbers for people, and JSON for programs. */
#include "app.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* In one piece: several processes may write at once. */
static void print_error(const char *format, va_list arguments)
{
    char text[2400];
    int32_t rank = un_ranks_rank(app_ranks());
    size_t used =
        (size_t)snprintf(text, sizeof text, rank > 0 ? "undine: rank %d: " : "undine: ", rank);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    fflush(stdout);
    fprintf(stderr, "%s\n", text);
}

void app_error(const char *format, ...)
{
    if (!app_first() && !un_ranks_apart(app_ranks())) return;
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
}

/* What only this process knows. */
static void error_of_one(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
}

void app_print_warning(void *user, un_log_level level, const char *message)
{
    (void)user;
    if (level == UN_LOG_WARNING) app_error("warning: %s", message);
}

static int exit_status_of(un_status status)
{
    switch (status) {
    case UN_INTERRUPTED:
        return APP_INTERRUPTED;
    case UN_ERROR_SCENE:
    case UN_ERROR_ARGUMENT:
    case UN_ERROR_UNAVAILABLE:
        return APP_WRONG;
    default:
        return APP_FAILED;
    }
}

int app_fail(const un_context *ctx, un_status status)
{
    int exit_status = exit_status_of(status);
    if (un_ranks_agreed(app_ranks())) {
        app_error("%s", un_context_message(ctx));
        return exit_status;
    }
    error_of_one("%s", un_context_message(ctx));
    return app_abandon(exit_status);
}

int app_fail_memory(void)
{
    error_of_one("out of memory");
    return app_abandon(APP_FAILED);
}

app_text app_seconds(double seconds)
{
    app_text out;
    char *text = out.text;
    size_t size = sizeof out.text;
    if (!(seconds >= 0) || seconds > 1e9)
        snprintf(text, size, "unknown");
    else if (seconds < 1e-3)
        snprintf(text, size, "%.0f us", seconds * 1e6);
    else if (seconds < 0.9995)
        snprintf(text, size, "%.3g ms", seconds * 1e3);
    else if (seconds < 9.95)
        snprintf(text, size, seconds == floor(seconds) ? "%.0f s" : "%.1f s", seconds);
    else if (seconds < 59.5)
        snprintf(text, size, "%.0f s", seconds);
    else if (seconds < 3599.5)
        snprintf(text, size, "%d min %d s", (int)(seconds + 0.5) / 60, (int)(seconds + 0.5) % 60);
    else if (seconds < 48 * 3600.0)
        snprintf(text, size, "%d h %d min", (int)(seconds / 60 + 0.5) / 60,
                 (int)(seconds / 60 + 0.5) % 60);
    else
        snprintf(text, size, "%d days %d h", (int)(seconds / 3600 + 0.5) / 24,
                 (int)(seconds / 3600 + 0.5) % 24);
    return out;
}

app_text app_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    app_text out;
    int unit = 0;
    while (bytes >= 999.5 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(out.text, sizeof out.text, unit && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes,
             units[unit]);
    return out;
}

app_text app_count(double count)
{
    app_text out;
    char digits[32];
    if (!(fabs(count) < 1e15)) {
        snprintf(out.text, sizeof out.text, "%g", count);
        return out;
    }
    snprintf(digits, sizeof digits, "%.0f", count);
    size_t used = 0, length = strlen(digits);
    for (size_t i = 0; i < length; i++) {
        bool third = i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0;
        if (third) out.text[used++] = ',';
        out.text[used++] = digits[i];
    }
    out.text[used] = 0;
    return out;
}

app_text app_percent(double fraction)
{
    app_text out;
    snprintf(out.text, sizeof out.text, "%+.2f %%", 100 * fraction);
    return out;
}

app_text app_cells(const int32_t cells[3])
{
    app_text out;
    int n = snprintf(out.text, sizeof out.text, "%d x %d", cells[0], cells[1]);
    if (cells[2] > 0) snprintf(out.text + n, sizeof out.text - (size_t)n, " x %d", cells[2]);
    return out;
}

app_text app_length(double meters)
{
    app_text out;
    double size = fabs(meters);
    if (size >= 1 || size == 0)
        snprintf(out.text, sizeof out.text, "%.3g m", meters);
    else if (size >= 0.1)
        snprintf(out.text, sizeof out.text, "%.3g cm", meters * 1e2);
    else
        snprintf(out.text, sizeof out.text, "%.3g mm", meters * 1e3);
    return out;
}

/* Bytes that are not UTF-8 are taken as Latin-1, so that the line stays valid JSON. */
void app_json_string(FILE *file, const char *string)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(file, "\\u%04x", *c);
        else if (*c < 0x80)
            fputc(*c, file);
        else {
            int more = *c >= 0xf0 && *c < 0xf5   ? 3
                       : *c >= 0xe0 && *c < 0xf0 ? 2
                                                 : *c >= 0xc2 && *c < 0xe0;
            int good = 0;
            while (good < more && (c[1 + good] & 0xc0) == 0x80) good++;
            bool wrong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] >= 0xa0) ||
                         (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] >= 0x90);
            if (more == 0 || good < more || wrong) {
                fprintf(file, "\\u%04x", *c);
            } else {
                fwrite(c, 1, (size_t)more + 1, file);
                c += more;
            }
        }
    }
    fputc('"', file);
}

void app_json_number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, "%.17g", value);
    else
        fputs("null", file);
}
