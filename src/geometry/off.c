/* Object File Format, as text: one vertex or face per line. The data after the coordinates
 * (colours, normals, texture) has no fixed length, so the rest of each line is skipped. */
#include "geometry/meshfile.h"

typedef struct off_reader {
    mesh_file *file;
    mesh_text text;
} off_reader;

static un_status fail_here(off_reader *r, const char *wanted)
{
    return mesh_fail_expected(r->file, &r->text, wanted);
}

static un_status read_head(off_reader *r, int64_t *vertex_count, int64_t *face_count)
{
    mesh_text *text = &r->text;
    if (!mesh_text_space(text, true)) return fail_here(r, "OFF");
    const char *key = text->at;
    while (text->at < text->end && *text->at != 'O') {
        if (!strchr("STCN4n", *text->at)) return fail_here(r, "OFF");
        if (*text->at == '4' || *text->at == 'n')
            return mesh_fail_line(r->file, text->line,
                                  "has other than three dimensions; export it as plain OFF");
        text->at++;
    }
    if (text->end - text->at < 3 || memcmp(text->at, "OFF", 3) != 0) {
        text->at = key;
        return fail_here(r, "OFF");
    }
    text->at += 3;
    mesh_text_blanks(text);
    if (mesh_text_word(text, "BINARY"))
        return mesh_fail_line(r->file, text->line,
                              "binary OFF is not read; export it as text, PLY or STL");
    int64_t *counts[2] = {vertex_count, face_count};
    for (int i = 0; i < 2; i++)
        if (!mesh_text_space(text, true) || !mesh_text_integer(text, counts[i]) || *counts[i] < 0)
            return fail_here(r, "the counts of vertices and faces");
    mesh_text_next_line(text);
    return UN_OK;
}

static un_status read_vertex(off_reader *r)
{
    double x[3];
    if (!mesh_text_space(&r->text, true)) return fail_here(r, "a vertex");
    for (int i = 0; i < 3; i++) {
        mesh_text_blanks(&r->text);
        if (!mesh_text_number(&r->text, &x[i])) return fail_here(r, "a coordinate");
    }
    UN_TRY(mesh_text_add_vertex(r->file, &r->text, x));
    mesh_text_next_line(&r->text);
    return UN_OK;
}

static un_status read_face(off_reader *r)
{
    int64_t corner_count, first = 0, last = 0, v;
    if (!mesh_text_space(&r->text, true)) return fail_here(r, "a face");
    if (!mesh_text_integer(&r->text, &corner_count) || corner_count < 0)
        return fail_here(r, "the count of a face's corners");
    for (int64_t corner = 0; corner < corner_count; corner++) {
        mesh_text_blanks(&r->text);
        if (!mesh_text_integer(&r->text, &v)) return fail_here(r, "a vertex number");
        if (v < 0 || v >= (int64_t)r->file->vertex_count)
            return mesh_fail_line(r->file, r->text.line,
                                  "vertex %lld does not exist (%zu, counted from 0); export the "
                                  "mesh again",
                                  (long long)v, r->file->vertex_count);
        if (corner == 0) first = v;
        if (corner >= 2) UN_TRY(mesh_file_add_triangle(r->file, first, last, v));
        last = v;
    }
    mesh_text_next_line(&r->text);
    return UN_OK;
}

un_status mesh_read_off(mesh_file *file)
{
    off_reader r = {file, mesh_text_start(file)};
    int64_t vertex_count, face_count;
    UN_TRY(read_head(&r, &vertex_count, &face_count));
    for (int64_t n = 0; n < vertex_count; n++) UN_TRY(read_vertex(&r));
    for (int64_t f = 0; f < face_count; f++) UN_TRY(read_face(&r));
    return UN_OK;
}
