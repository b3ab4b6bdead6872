/* run.json: what ran, on which machine, and how it went. */
#include "output/output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- JSON ---- */

/* Length of the well-formed UTF-8 sequence at text, 0 where there is none. */
static int utf8_length(const unsigned char *text)
{
    unsigned char a = text[0];
    int length = a < 0x80                ? 1
                 : a >= 0xc2 && a < 0xe0 ? 2
                 : a >= 0xe0 && a < 0xf0 ? 3
                 : a >= 0xf0 && a < 0xf5 ? 4
                                         : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool overlong = (a == 0xe0 && text[1] < 0xa0) || (a == 0xf0 && text[1] < 0x90);
    bool beyond = (a == 0xed && text[1] >= 0xa0) || (a == 0xf4 && text[1] >= 0x90);
    return length > 1 && (overlong || beyond) ? 0 : length;
}

/* Bytes that are not UTF-8 (a path in another encoding) become U+FFFD, since JSON cannot hold
 * them. */
static void put_string(un_file *file, const char *string)
{
    const unsigned char *text = (const unsigned char *)(string ? string : "");
    un_file_printf(file, "\"");
    while (*text) {
        int length = utf8_length(text);
        if (length == 0)
            un_file_printf(file, "\\ufffd");
        else if (*text == '"' || *text == '\\')
            un_file_printf(file, "\\%c", *text);
        else if (*text == '\n')
            un_file_printf(file, "\\n");
        else if (*text < 0x20 || *text == 0x7f)
            un_file_printf(file, "\\u%04x", *text);
        else
            un_file_write(file, text, (size_t)length);
        text += length ? length : 1;
    }
    un_file_printf(file, "\"");
}

static void put_number(un_file *file, double value)
{
    char text[UN_NUMBER_CHARS];
    un_number_format(text, value);
    un_file_printf(file, "%s", isfinite(value) ? text : "null");
}

static void field_string(un_file *file, const char *indent, const char *key, const char *value)
{
    un_file_printf(file, "%s\"%s\": ", indent, key);
    put_string(file, value);
}

static void field_number(un_file *file, const char *indent, const char *key, double value)
{
    un_file_printf(file, "%s\"%s\": ", indent, key);
    put_number(file, value);
}

/* ---- the machine ---- */

static void cpu_model(char *model, size_t size)
{
    snprintf(model, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[512];
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = 0;
        snprintf(model, size, "%s", colon);
        break;
    }
    fclose(file);
}

static void put_machine(un_context *ctx, un_file *file)
{
    char cpu[256], system[512];
    struct utsname name;
    cpu_model(cpu, sizeof cpu);
    if (uname(&name) != 0) memset(&name, 0, sizeof name);
    snprintf(system, sizeof system, "%s %s %s", name.sysname, name.release, name.machine);
    un_file_printf(file, ",\n  \"machine\": {");
    field_string(file, "\n    ", "cpu", cpu);
    field_number(file, ",\n    ", "cores", (double)sysconf(_SC_NPROCESSORS_ONLN));
    field_number(file, ",\n    ", "threads", un_context_threads(ctx));
    field_number(file, ",\n    ", "memory",
                 (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    field_string(file, ",\n    ", "system", system);
    un_file_printf(file, "\n  }");
}

un_status un_output_run_json(un_context *ctx, const char *path, const un_run_record *r)
{
    un_file *file;
    UN_TRY(un_file_create(ctx, path, &file));
    char written[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%SZ", &utc);

    field_string(file, "{\n  ", "version", un_version());
    field_string(file, ",\n  ", "command", r->command);
    field_string(file, ",\n  ", "method", r->method);
    field_string(file, ",\n  ", "status", r->status);
    field_string(file, ",\n  ", "message", r->message);
    field_string(file, ",\n  ", "suspect", r->suspect);
    field_string(file, ",\n  ", "written", written);
    field_number(file, ",\n  \"frames\": {\n    ", "finished", r->frames_finished);
    field_number(file, ",\n    ", "planned", r->frames_planned);
    field_number(file, ",\n    ", "rate", r->rate);
    un_file_printf(file, "\n  },\n  \"resolution\": {\n    \"cells\": [%d, %d", r->cells[0],
                   r->cells[1]);
    if (r->cells[2] > 0) un_file_printf(file, ", %d", r->cells[2]); /* not in 2D */
    un_file_printf(file, "]");
    field_number(file, ",\n    ", "cell_size", r->cell_size);
    field_number(file, "\n  },\n  ", "bytes_peak", r->bytes_peak);
    field_number(file, ",\n  ", "seconds", r->seconds);
    un_file_printf(file, ",\n  \"stages\": {");
    for (int32_t i = 0; r->stages && r->stages[i]; i++) {
        un_file_printf(file, "%s\n    ", i ? "," : "");
        put_string(file, r->stages[i]);
        un_file_printf(file, ": ");
        put_number(file, r->stage_seconds[i]);
    }
    un_file_printf(file, "\n  }");
    put_machine(ctx, file);
    un_file_printf(file, "\n}\n");
    return un_file_commit(file);
}
