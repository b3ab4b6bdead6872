/* Wavefront OBJ: v and f; everything else describes appearance and is skipped. */
#include "geometry/meshfile.h"

typedef struct obj_reader {
    mesh_file *file;
    mesh_text text;
    int64_t largest; /* vertex that a face uses, and its line: checked at the end, since faces may
                        come before their vertices */
    int64_t largest_line;
} obj_reader;

static un_status fail_here(obj_reader *r, const char *wanted)
{
    return mesh_fail_expected(r->file, &r->text, wanted);
}

/* A backslash at the end of a line continues it. */
static void blanks(obj_reader *r)
{
    for (;;) {
        mesh_text_blanks(&r->text);
        const char *at = r->text.at;
        if (at >= r->text.end || *at != '\\') return;
        at++;
        if (at < r->text.end && *at == '\r') at++;
        if (at >= r->text.end || *at != '\n') return;
        r->text.at = at + 1;
        r->text.line++;
    }
}

static un_status read_vertex(obj_reader *r)
{
    double x[3];
    for (int i = 0; i < 3; i++) {
        blanks(r);
        if (!mesh_text_number(&r->text, &x[i])) return fail_here(r, "a coordinate");
    }
    return mesh_text_add_vertex(r->file, &r->text, x);
}

/* One corner, v, v/vt, v//vn or v/vt/vn; *v counts from 0. */
static un_status read_corner(obj_reader *r, int64_t *v)
{
    mesh_text *text = &r->text;
    int64_t other, index;
    if (!mesh_text_integer(text, &index)) return fail_here(r, "a vertex number");
    for (int i = 0; i < 2 && text->at < text->end && *text->at == '/'; i++) {
        text->at++;
        mesh_text_integer(text, &other);
    }
    mesh_text after = *text;
    mesh_text_blanks(&after);
    if (after.at == text->at && !mesh_text_at_line_end(text) && *text->at != '#' &&
        *text->at != '\\')
        return fail_here(r, "a corner like 7, 7/1, 7//3 or 7/1/3");
    int64_t count = (int64_t)r->file->vertex_count;
    *v = index < 0 ? count + index : index - 1;
    if (index == 0 || *v < 0)
        return mesh_fail_line(r->file, text->line,
                              "vertex %lld does not exist (%lld so far, counted from 1); export "
                              "the mesh again",
                              (long long)index, (long long)count);
    if (*v > r->largest) {
        r->largest = *v;
        r->largest_line = text->line;
    }
    return UN_OK;
}

static un_status read_face(obj_reader *r)
{
    int64_t first = 0, last = 0, v = 0;
    for (int64_t corner = 0;; corner++) {
        blanks(r);
        if (mesh_text_at_line_end(&r->text) || *r->text.at == '#') return UN_OK;
        UN_TRY(read_corner(r, &v));
        if (corner == 0) first = v;
        if (corner >= 2) UN_TRY(mesh_file_add_triangle(r->file, first, last, v));
        last = v;
    }
}

/* Skips a line, and those that continue it. */
static void skip_line(obj_reader *r)
{
    for (;;) {
        mesh_text_next_line(&r->text);
        const char *end = r->text.at - 2; /* before the newline */
        if (r->text.at >= r->text.end) return;
        if (end >= r->file->bytes && *end == '\r') end--;
        if (end < r->file->bytes || *end != '\\') return;
    }
}

un_status mesh_read_obj(mesh_file *file)
{
    obj_reader r = {.file = file, .text = mesh_text_start(file), .largest = -1};
    while (mesh_text_space(&r.text, true)) {
        if (mesh_text_word(&r.text, "v"))
            UN_TRY(read_vertex(&r));
        else if (mesh_text_word(&r.text, "f"))
            UN_TRY(read_face(&r));
        skip_line(&r);
    }
    if (r.largest >= (int64_t)file->vertex_count)
        return mesh_fail_line(file, r.largest_line,
                              "vertex %lld does not exist, the file has %zu; export the mesh again",
                              (long long)r.largest + 1, file->vertex_count);
    return UN_OK;
}
