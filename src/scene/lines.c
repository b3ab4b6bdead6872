/* Finding the line of a key in the text of a scene file.
 *
 * Lua tables do not remember where their keys were written, so if a value is wrong, the text is
 * scanned again: a small tokenizer follows brackets, blocks and table fields, and reports where the
 * wanted path was written. It only has to be right for files that Lua has accepted. */
#include "scene/loader.h"

#include <ctype.h>
#include <stdio.h>

typedef enum token_kind { END, NAME, STRING, NUMBER, MARK } token_kind;

typedef struct token {
    token_kind kind;
    const char *text; /* of a STRING: inside the quotes */
    size_t length;
    int32_t line;
} token;

typedef struct scanner {
    const char *at;
    int32_t line;
} scanner;

static bool is(const token *t, const char *text)
{
    return t->kind != STRING && t->length == strlen(text) && memcmp(t->text, text, t->length) == 0;
}

/* At "[[" or "[==[": skips to the end of the long bracket and returns its inside. */
static bool long_bracket(scanner *s, token *inside)
{
    const char *at = s->at + 1;
    while (*at == '=') at++;
    if (*s->at != '[' || *at != '[') return false;
    size_t level = (size_t)(at - s->at) - 1;
    int32_t line = s->line;
    const char *start = ++at;
    for (; *at; at++) {
        if (*at == '\n') line++;
        if (*at != ']') continue;
        size_t n = 0;
        while (at[1 + n] == '=') n++;
        if (n == level && at[1 + n] == ']') break;
    }
    *inside = (token){STRING, start, (size_t)(at - start), s->line};
    s->at = *at ? at + level + 2 : at;
    s->line = line;
    return true;
}

static void skip_blank(scanner *s)
{
    for (;;) {
        if (*s->at == '\n') s->line++;
        if (isspace((unsigned char)*s->at)) {
            s->at++;
        } else if (s->at[0] == '-' && s->at[1] == '-') {
            token comment;
            s->at += 2;
            if (*s->at == '[' && long_bracket(s, &comment)) continue;
            while (*s->at && *s->at != '\n') s->at++;
        } else {
            return;
        }
    }
}

static token next_token(scanner *s)
{
    skip_blank(s);
    token t = {END, s->at, 0, s->line};
    unsigned char c = (unsigned char)*s->at;
    if (!c) return t;
    if (isalpha(c) || c == '_') {
        t.kind = NAME;
        while (isalnum((unsigned char)*s->at) || *s->at == '_') s->at++;
    } else if (isdigit(c) || (c == '.' && isdigit((unsigned char)s->at[1]))) {
        t.kind = NUMBER;
        while (isalnum((unsigned char)*s->at) || *s->at == '.' ||
               ((*s->at == '-' || *s->at == '+') && strchr("eEpP", s->at[-1])))
            s->at++;
    } else if (c == '"' || c == '\'') {
        t.kind = STRING;
        t.text = ++s->at;
        while (*s->at && *s->at != (char)c && *s->at != '\n') {
            if (*s->at == '\\' && s->at[1]) {
                if (s->at[1] == '\n') s->line++;
                s->at++;
            }
            s->at++;
        }
        t.length = (size_t)(s->at - t.text);
        if (*s->at == (char)c) s->at++;
        return t;
    } else if (c == '[' && long_bracket(s, &t)) {
        return t;
    } else {
        t.kind = MARK;
        s->at++;
        /* So that a comparison is not taken for the = of a field. */
        if (strchr("=~<>", c) && *s->at == '=') s->at++;
    }
    t.length = (size_t)(s->at - t.text);
    return t;
}

/* ---- the path ---- */

#define DEPTH_MAX 64
#define PARTS_MAX 8

typedef struct path_parts {
    const char *text[PARTS_MAX];
    size_t length[PARTS_MAX];
    int32_t count;
} path_parts;

static path_parts split(const char *path)
{
    path_parts parts = {.count = 0};
    while (*path && parts.count < PARTS_MAX) {
        size_t n = strcspn(path, ".");
        parts.text[parts.count] = path;
        parts.length[parts.count++] = n;
        path += n;
        if (*path == '.') path++;
    }
    return parts;
}

typedef struct level {
    char open;       /* '{', '(', '[' or 'f' for a block that ends with `end` */
    int32_t matched; /* parts of the path that lead to this table; -1: it is not on the path */
    int32_t items;   /* entries without a key, so far */
    bool at_field;   /* the next token starts a field */
    bool inside;     /* in the value of the field that the path goes through */
} level;

typedef struct search {
    path_parts parts;
    level levels[DEPTH_MAX];
    int32_t depth;
    int32_t lost; /* brackets too deep to follow */
} search;

static void push(search *q, char open, int32_t matched)
{
    if (q->lost || q->depth == DEPTH_MAX)
        q->lost++;
    else
        q->levels[q->depth++] = (level){.open = open, .matched = matched, .at_field = open == '{'};
}

static void pop(search *q)
{
    if (q->lost)
        q->lost--;
    else if (q->depth)
        q->depth--;
}

static bool key_matches(const search *q, const level *l, const char *key, size_t length)
{
    if (l->matched < 0 || l->matched >= q->parts.count) return false;
    return q->parts.length[l->matched] == length &&
           memcmp(q->parts.text[l->matched], key, length) == 0;
}

/* How much of the path a bracket opened now has matched. */
static int32_t inherited(const search *q)
{
    if (q->lost || q->depth == 0) return -1;
    const level *l = &q->levels[q->depth - 1];
    if (l->open == '(') return l->matched;
    return l->open == '{' && l->inside ? l->matched + 1 : -1;
}

/* The start of a field in the table l: its key, if the file gives one, or its number. */
static bool field_is_wanted(search *q, level *l, const token *t, scanner ahead)
{
    token second = next_token(&ahead);
    bool wanted;
    l->at_field = false;
    if (t->kind == NAME && is(&second, "=")) {
        wanted = key_matches(q, l, t->text, t->length);
    } else if (is(t, "[") && second.kind == STRING) {
        wanted = key_matches(q, l, second.text, second.length);
    } else {
        char number[16];
        int n = snprintf(number, sizeof number, "%d", (int)++l->items);
        wanted = key_matches(q, l, number, (size_t)n);
    }
    l->inside = wanted;
    return wanted && l->matched == q->parts.count - 1;
}

static bool opens_block(const token *t)
{
    return is(t, "function") || is(t, "do") || is(t, "if") || is(t, "repeat");
}

/* Finds the path in the table given to `root`, by nesting. */
static int32_t find_nested(const char *text, const char *root, int32_t root_line, const char *path)
{
    search q = {.parts = split(path)};
    scanner s = {text, 1};
    token before = {MARK, "", 0, 0}, last = before;
    for (;;) {
        token t = next_token(&s);
        if (t.kind == END) return 0;
        level *l = q.depth && !q.lost ? &q.levels[q.depth - 1] : NULL;
        if (l && l->open == '{' && l->at_field && !is(&t, "}") && field_is_wanted(&q, l, &t, s))
            return t.line;
        if (is(&t, "{") || is(&t, "(")) {
            bool called = last.kind == NAME && is(&last, root) && !is(&before, ".") &&
                          !is(&before, ":") && !is(&before, "function");
            bool on_line = root_line == 0 || root_line == last.line || root_line == t.line;
            push(&q, t.text[0], called && on_line ? 0 : inherited(&q));
        } else if (is(&t, "[")) {
            push(&q, '[', -1);
        } else if (t.kind == NAME && opens_block(&t)) {
            push(&q, 'f', -1);
        } else if (is(&t, "}") || is(&t, ")") || is(&t, "]") || is(&t, "end") || is(&t, "until")) {
            pop(&q);
        } else if (l && l->open == '{' && (is(&t, ",") || is(&t, ";"))) {
            l->at_field = true;
            l->inside = false;
        }
        before = last;
        last = t;
    }
}

/* The first place where the name is given a value, for tables made in pieces. */
static int32_t find_assigned(const char *text, const char *name)
{
    scanner s = {text, 1};
    for (token t = next_token(&s); t.kind != END; t = next_token(&s)) {
        scanner ahead = s;
        token second = next_token(&ahead);
        if (t.kind == NAME && is(&t, name) && is(&second, "=")) return t.line;
    }
    return 0;
}

int32_t un_lines_find(const char *text, const char *root, int32_t root_line, const char *path)
{
    if (!text || !*path) return 0;
    int32_t line = find_nested(text, root, root_line, path);
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
    if (line || isdigit((unsigned char)*name) || strcmp(root, "scene") != 0) return line;
    return find_assigned(text, name);
}

int32_t un_lines_find_name(const char *text, const char *name)
{
    scanner s = {text, 1};
    for (token t = next_token(&s); t.kind != END; t = next_token(&s))
        if (t.kind == NAME && is(&t, name)) return t.line;
    return 0;
}

/* ---- nearest words ---- */

#define WORD_MAX 64

int32_t un_edit_distance(const char *a, const char *b)
{
    size_t m = strnlen(a, WORD_MAX), n = strnlen(b, WORD_MAX);
    if (m >= WORD_MAX || n >= WORD_MAX) return INT32_MAX;
    int32_t rows[3][WORD_MAX];
    for (size_t j = 0; j <= n; j++) rows[0][j] = (int32_t)j;
    for (size_t i = 1; i <= m; i++) {
        int32_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = (int32_t)i;
        for (size_t j = 1; j <= n; j++) {
            int32_t d = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < d) d = above[j] + 1;
            if (row[j - 1] + 1 < d) d = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && above2[j - 2] + 1 < d) d = above2[j - 2] + 1;
            row[j] = d;
        }
    }
    return rows[m % 3][n];
}

const char *un_nearest(const char *word, const char *const *known)
{
    const char *best = NULL;
    int32_t best_distance = 1 + (int32_t)(strnlen(word, WORD_MAX) / 4);
    for (; *known; known++) {
        int32_t distance = un_edit_distance(word, *known);
        if (distance < best_distance || (!best && distance == best_distance)) {
            best = *known;
            best_distance = distance;
        }
    }
    return best;
}
