/* Numbers as text: the shortest form that reads back to the same bits, and always with a decimal
 * point, whatever locale the calling program has chosen. */
#include "output/output.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

void un_number_format(char text[UN_NUMBER_CHARS], double value)
{
    if (!isfinite(value)) {
        strcpy(text, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, UN_NUMBER_CHARS, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    const char *point = localeconv()->decimal_point;
    char *found = strcmp(point, ".") != 0 ? strstr(text, point) : NULL;
    if (found) {
        size_t length = strlen(point);
        *found = '.';
        memmove(found + 1, found + length, strlen(found + length) + 1);
    }
}

/* Digits are collected with the decimal point of the locale, which strtod expects. */
double un_number_parse(const char *text, const char **end)
{
    char copy[2 * UN_NUMBER_CHARS];
    const char *point = localeconv()->decimal_point;
    size_t used = 0, taken = 0;
    for (; used < UN_NUMBER_CHARS && text[taken]; taken++) {
        if (text[taken] == '.') {
            for (const char *p = point; *p; p++) copy[used++] = *p;
        } else if (strchr("+-0123456789eEinfaINFA", text[taken])) {
            copy[used++] = text[taken];
        } else {
            break;
        }
    }
    copy[used] = 0;
    char *stop;
    double value = strtod(copy, &stop);
    /* all or nothing: what follows a number cannot be part of one */
    *end = stop == copy + used && used > 0 ? text + taken : text;
    return value;
}
