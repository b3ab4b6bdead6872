/* Words and numbers of text mesh files, read quickly and in any locale. */
#include "geometry/meshfile.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

mesh_text mesh_text_start(const mesh_file *file)
{
    mesh_text text = {file->bytes, file->bytes + file->size, 1, file->locale};
    if (file->size >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0) text.at += 3;
    return text;
}

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_end(const mesh_text *text, const char *at)
{
    return at >= text->end || is_blank(*at) || *at == '\n';
}

void mesh_text_blanks(mesh_text *text)
{
    while (text->at < text->end && is_blank(*text->at)) text->at++;
}

void mesh_text_next_line(mesh_text *text)
{
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    text->at = newline ? newline + 1 : text->end;
    if (newline) text->line++;
}

bool mesh_text_space(mesh_text *text, bool comments)
{
    for (; text->at < text->end; text->at++) {
        if (*text->at == '\n') {
            text->line++;
        } else if (*text->at == '#' && comments) {
            while (text->at + 1 < text->end && text->at[1] != '\n') text->at++;
        } else if (!is_blank(*text->at)) {
            return true;
        }
    }
    return false;
}

bool mesh_text_word(mesh_text *text, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(text->end - text->at) < length) return false;
    if (strncasecmp(text->at, word, length) != 0 || !is_end(text, text->at + length)) return false;
    text->at += length;
    return true;
}

bool mesh_text_at_line_end(const mesh_text *text)
{
    return text->at >= text->end || *text->at == '\n';
}

/* Powers of ten that a double holds exactly. */
static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* "nan" or "inf". */
static bool read_name(mesh_text *text, const char *at, double *value)
{
    size_t left = (size_t)(text->end - at);
    if (left < 3 || (strncasecmp(at, "nan", 3) != 0 && strncasecmp(at, "inf", 3) != 0))
        return false;
    while (!is_end(text, at)) at++;
    text->at = at;
    *value = NAN;
    return true;
}

/* Digits are collected in an integer. If it and the power of ten are both exact in a double, one
 * product or quotient is correctly rounded; strtod reads the others. */
bool mesh_text_number(mesh_text *text, double *value)
{
    const char *at = text->at, *start = at;
    uint64_t digits = 0;
    int64_t exponent = 0, count = 0;
    bool negative = at < text->end && *at == '-';
    if (at < text->end && (*at == '-' || *at == '+')) at++;
    const char *first = at;
    for (; is_digit(*at); at++) {
        digits = digits * 10 + (uint64_t)(*at - '0');
        count++;
    }
    if (*at == '.') {
        const char *point = at++;
        for (; is_digit(*at); at++) digits = digits * 10 + (uint64_t)(*at - '0');
        exponent = point + 1 - at;
        count += at - point - 1;
    }
    if (count == 0) return read_name(text, first, value);
    if (*at == 'e' || *at == 'E') {
        const char *e = at + 1;
        bool down = *e == '-';
        if (*e == '-' || *e == '+') e++;
        if (!is_digit(*e)) return false;
        int64_t power = 0;
        for (; is_digit(*e); e++)
            if (power < 100000) power = power * 10 + (*e - '0');
        exponent += down ? -power : power;
        at = e;
    }
    if (!is_end(text, at)) return false;
    if (count <= 19 && digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        double v = (double)digits;
        v = exponent < 0 ? v / POWERS[-exponent] : v * POWERS[exponent];
        *value = negative ? -v : v;
    } else {
        *value = strtod_l(start, NULL, text->locale);
    }
    text->at = at;
    return true;
}

bool mesh_text_integer(mesh_text *text, int64_t *value)
{
    const char *at = text->at;
    bool negative = at < text->end && *at == '-';
    if (at < text->end && (*at == '-' || *at == '+')) at++;
    if (at >= text->end || !is_digit(*at)) return false;
    int64_t v = 0;
    for (; at < text->end && is_digit(*at); at++)
        if (v < INT64_MAX / 20) v = v * 10 + (*at - '0');
    *value = negative ? -v : v;
    text->at = at;
    return true;
}

const char *mesh_text_quote(const mesh_text *text, char quote[48])
{
    if (text->at >= text->end) return "the end of the file";
    if (*text->at == '\n') return "the end of the line";
    size_t n = 0;
    quote[n++] = '"';
    for (const char *at = text->at; n < 41 && at < text->end && *at != '\n' && *at != '\r'; at++)
        quote[n++] = isprint((unsigned char)*at) ? *at : '?';
    quote[n++] = '"';
    quote[n] = 0;
    return quote;
}

un_status mesh_fail_expected(const mesh_file *file, const mesh_text *text, const char *wanted)
{
    char quote[48];
    return mesh_fail_line(file, text->line, "%s expected, not %s; export the mesh again", wanted,
                          mesh_text_quote(text, quote));
}

un_status mesh_text_add_vertex(mesh_file *file, const mesh_text *text, const double x[3])
{
    un_vec3 p = un_v3(x[0], x[1], x[2]);
    if (!mesh_coordinate_ok(p))
        return mesh_fail_line(file, text->line,
                              "the vertex has a coordinate that is not a finite number; clean the "
                              "mesh in a modelling program");
    return mesh_file_add_vertex(file, p);
}
