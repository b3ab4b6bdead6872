/* Shared by the readers of mesh files; only geometry/ includes this. */
#ifndef UN_GEOMETRY_MESHFILE_H
#define UN_GEOMETRY_MESHFILE_H

#include <locale.h>

#include "geometry/geometry.h"

/* A file in memory and the mesh being read from it. Arrays grow with the data that the file really
 * holds: counts in a header are never trusted for allocation. */
typedef struct mesh_file {
    un_context *ctx;
    const char *path;
    const char *bytes; /* followed by a NUL */
    size_t size;
    locale_t locale; /* "C", whatever locale the program has set */
    un_vec3 *position, *normal, *velocity;
    int32_t (*triangle)[3];
    size_t vertex_count, triangle_count;
    size_t vertex_capacity, normal_capacity, velocity_capacity, triangle_capacity;
} mesh_file;

/* Coordinates beyond this are rejected like infinite ones: their squares must stay finite. */
#define MESH_COORDINATE_MAX 1e30

bool mesh_coordinate_ok(un_vec3 x);
/* x must be checked before; the reader checks indices, at once or at the end of the file. */
un_status mesh_file_add_vertex(mesh_file *file, un_vec3 x);
un_status mesh_file_add_triangle(mesh_file *file, int64_t a, int64_t b, int64_t c);

/* "path:line: ..." and "path: byte n: ...". */
un_status mesh_fail_line(const mesh_file *file, int64_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
un_status mesh_fail_byte(const mesh_file *file, size_t byte, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- text ---- */

typedef struct mesh_text {
    const char *at, *end;
    int64_t line; /* from 1 */
    locale_t locale;
} mesh_text;

mesh_text mesh_text_start(const mesh_file *file);
/* Skips blanks within a line. */
void mesh_text_blanks(mesh_text *text);
/* Skips to the start of the next line, or to the end. */
void mesh_text_next_line(mesh_text *text);
/* Skips blanks, line ends and, if asked for, comments that start with #. False at the end of the
 * text. */
bool mesh_text_space(mesh_text *text, bool comments);
/* Skips the given word if it is at the cursor, up to a blank or line end; case does not matter. */
bool mesh_text_word(mesh_text *text, const char *word);
bool mesh_text_at_line_end(const mesh_text *text);
/* A decimal number that ends at a blank, a line end or the end, correctly rounded. "nan" and "inf"
 * are read as NaN. False, with the cursor unmoved, where there is none. */
bool mesh_text_number(mesh_text *text, double *value);
/* A decimal integer; stops at the first other character. Saturates. */
bool mesh_text_integer(mesh_text *text, int64_t *value);
/* Up to 40 printable characters of the text at the cursor, for messages. */
const char *mesh_text_quote(const mesh_text *text, char quote[48]);
/* "path:line: <wanted> expected, not <the text at the cursor>; ...". */
un_status mesh_fail_expected(const mesh_file *file, const mesh_text *text, const char *wanted);
/* Adds a vertex with the coordinates x, just read; fails if one is not finite or too large. */
un_status mesh_text_add_vertex(mesh_file *file, const mesh_text *text, const double x[3]);

/* ---- one reader per format: ply.c, obj.c, stl.c, off.c ---- */

un_status mesh_read_ply(mesh_file *file);
un_status mesh_read_obj(mesh_file *file);
un_status mesh_read_off(mesh_file *file);
un_status mesh_read_stl(mesh_file *file);
/* Do the bytes have exactly the length of a binary STL? */
bool mesh_is_binary_stl(const mesh_file *file);

#endif
