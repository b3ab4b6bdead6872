/* Options: --name value, --name=value, -o value, -ovalue; `--` ends them. */
#include "app.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void app_list_free(app_list *list)
{
    for (int32_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
    *list = (app_list){0};
}

static bool list_append(app_list *list, const char *prefix, const char *value)
{
    char **items = realloc(list->items, (size_t)(list->count + 1) * sizeof *items);
    if (!items) return false;
    list->items = items;
    size_t room = strlen(prefix) + strlen(value) + 1;
    char *item = malloc(room);
    if (!item) return false;
    snprintf(item, room, "%s%s", prefix, value);
    items[list->count++] = item;
    return true;
}

/* ---- the nearest word ---- */

#define WORD_MAX 64

/* Levenshtein's distance, with a swap of neighbours as one change. */
static size_t word_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b), rows[3][WORD_MAX + 1];
    if (m > WORD_MAX || n > WORD_MAX) return WORD_MAX;
    for (size_t j = 0; j <= n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[m % 3][n];
}

const char *app_nearest(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    size_t best = WORD_MAX;
    for (; *words; words++) {
        size_t distance = word_distance(word, *words), length = strlen(*words);
        if (strlen(word) > 3 && strncmp(word, *words, strlen(word)) == 0) distance = 1;
        if (distance < best && distance <= (length + 1) / 3) {
            best = distance;
            nearest = *words;
        }
    }
    return nearest;
}

/* ---- values ---- */

static bool read_count(const char *text, int32_t least, int32_t *count)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > INT32_MAX) return false;
    *count = (int32_t)value;
    return true;
}

static bool read_bytes(const char *text, size_t *bytes)
{
    static const char units[] = "kmgt";
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value <= 0) return false;
    const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        value *= pow(1024, (double)(unit - units + 1));
        end++;
    }
    if (*end == 'i' && unit) end++;
    if (*end == 'B' || *end == 'b') end++;
    if (*end || value < 1 || value >= 0x1p62) return false;
    *bytes = (size_t)value;
    return true;
}

static int take_value(const app_command *command, const app_option *option, const char *value)
{
    const char *wanted = NULL;
    char *end;
    int32_t count;
    double number;
    switch (option->kind) {
    case APP_TEXT:
        if (!*value) wanted = "a name";
        *(const char **)option->to = value;
        break;
    case APP_COUNT:
        if (!read_count(value, 1, option->to)) wanted = "a whole number, 1 or more";
        break;
    case APP_INDEX:
        if (!read_count(value, 0, option->to)) wanted = "a whole number, 0 or more";
        break;
    case APP_NUMBER:
        number = strtod(value, &end);
        if (end == value || *end || !isfinite(number)) wanted = "a number";
        *(double *)option->to = number;
        break;
    case APP_BYTES:
        if (!read_bytes(value, option->to)) wanted = "a size such as 8G or 512M";
        break;
    case APP_LIST_INDEX:
        if (!read_count(value, 0, &count)) wanted = "a whole number, 0 or more";
        /* fall through */
    case APP_LIST:
        if (!*value || (!option->prefix && !strchr(value, '='))) wanted = "key=value";
        if (!wanted && !list_append(option->to, option->prefix ? option->prefix : "", value)) {
            app_error("out of memory");
            return APP_FAILED;
        }
        break;
    default:
        break;
    }
    if (!wanted) return -1;
    app_error("%s: %s needs %s, not `%s`", command->name, option->name, wanted, value);
    return APP_WRONG;
}

/* ---- help ---- */

static void print_help(const app_command *command)
{
    printf("usage: undine %s %s [options]\n\n%s\n\n", command->name, command->operand,
           command->summary);
    static const app_option help = {
        .name = "--help", .letter = "-h", .kind = APP_SWITCH, .help = "this text"};
    for (const app_option *o = command->options;; o++) {
        const app_option *shown = o->name ? o : &help;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", shown->letter ? shown->letter : "  ",
                 shown->letter ? ", " : "  ", shown->name, shown->value ? " " : "",
                 shown->value ? shown->value : "");
        printf("  %-22s  %s\n", left, shown->help);
        if (!o->name) break;
    }
}

/* ---- the loop ---- */

static bool is_name(const char *argument, size_t length, const char *name)
{
    return name && strlen(name) == length && strncmp(argument, name, length) == 0;
}

static int unknown_option(const app_command *command, const char *argument, size_t length)
{
    const char *names[64];
    int count = 0;
    for (const app_option *o = command->options; o->name && count < 62; o++)
        names[count++] = o->name;
    names[count++] = "--help";
    names[count] = NULL;
    char word[WORD_MAX + 2];
    snprintf(word, sizeof word, "%.*s", (int)length, argument);
    const char *near = app_nearest(word, names);
    if (near)
        app_error("%s: unknown option %.*s; did you mean %s?", command->name, (int)length, argument,
                  near);
    else
        app_error("%s: unknown option %.*s; `undine %s -h` lists the options", command->name,
                  (int)length, argument, command->name);
    return APP_WRONG;
}

/* The option that argument names; *value: the value in the same argument, or NULL. */
static const app_option *find_option(const app_command *command, const char *argument,
                                     const char **value)
{
    size_t length = argument[1] == '-' ? strcspn(argument, "=") : 2;
    *value = NULL;
    for (const app_option *o = command->options; o->name; o++) {
        if (!is_name(argument, length, o->name) && !is_name(argument, length, o->letter)) continue;
        if (argument[1] == '-' && argument[length] == '=') *value = argument + length + 1;
        if (argument[1] != '-' && argument[2]) *value = argument + 2;
        return o;
    }
    return NULL;
}

int app_options_parse_many(const app_command *command, int argc, char **argv, const char **operands,
                           int32_t most, int32_t *count)
{
    bool options_ended = false;
    *count = 0;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i], *value;
        if (options_ended || argument[0] != '-' || !argument[1]) {
            if (*count == most) {
                if (most == 1)
                    app_error("%s: takes one %s; `%s` is one too many", command->name,
                              command->operand, argument);
                else
                    app_error("%s: takes at most %d; `%s` is one too many", command->name, most,
                              argument);
                return APP_WRONG;
            }
            operands[(*count)++] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            options_ended = true;
            continue;
        }
        if (strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0) {
            print_help(command);
            return APP_DONE;
        }
        const app_option *option = find_option(command, argument, &value);
        if (!option) return unknown_option(command, argument, strcspn(argument, "="));
        if (option->kind == APP_SWITCH) {
            if (value) {
                app_error("%s: %s takes no value", command->name, option->name);
                return APP_WRONG;
            }
            *(bool *)option->to = true;
            continue;
        }
        if (!value && i + 1 == argc) {
            app_error("%s: %s needs a value: %s %s", command->name, option->name, option->name,
                      option->value);
            return APP_WRONG;
        }
        int status = take_value(command, option, value ? value : argv[++i]);
        if (status >= 0) return status;
    }
    return -1;
}

int app_options_parse(const app_command *command, int argc, char **argv, const char **operand)
{
    int32_t count;
    *operand = NULL;
    int status = app_options_parse_many(command, argc, argv, operand, 1, &count);
    if (status >= 0 || (count == 1 && **operand)) return status;
    app_error("%s: %s is missing; see `undine %s -h`", command->name, command->operand,
              command->name);
    return APP_WRONG;
}
