/* STL, text and binary. A binary file is recognised by its length, since many begin with "solid"
 * too. */
#include "geometry/meshfile.h"

#define HEAD 84  /* bytes: 80 arbitrary, then the count */
#define FACET 50 /* bytes: normal, three corners, two arbitrary */

static uint32_t little32(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static float little_float(const char *at)
{
    uint32_t bits = little32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool mesh_is_binary_stl(const mesh_file *file)
{
    return file->size >= HEAD &&
           (uint64_t)file->size == HEAD + (uint64_t)FACET * little32(file->bytes + 80);
}

static un_status read_binary(mesh_file *file)
{
    if (file->size < HEAD)
        return mesh_fail_byte(file, file->size,
                              "the file ends within its head; copy or export it again");
    uint32_t count = little32(file->bytes + 80);
    if (count > (file->size - HEAD) / FACET)
        return mesh_fail_byte(file, file->size,
                              "the file ends after %zu of %u triangles; it was cut off or is no "
                              "STL file, copy or export it again",
                              (file->size - HEAD) / FACET, count);
    for (uint32_t t = 0; t < count; t++) {
        size_t byte = HEAD + (size_t)FACET * t;
        const char *at = file->bytes + byte + 12;
        for (int corner = 0; corner < 3; corner++, at += 12) {
            un_vec3 p = un_v3(little_float(at), little_float(at + 4), little_float(at + 8));
            if (!mesh_coordinate_ok(p))
                return mesh_fail_byte(file, (size_t)(at - file->bytes),
                                      "triangle %u has a coordinate that is not a finite number; "
                                      "clean the mesh in a modelling program",
                                      t + 1);
            UN_TRY(mesh_file_add_vertex(file, p));
        }
        int64_t v = (int64_t)file->vertex_count;
        UN_TRY(mesh_file_add_triangle(file, v - 3, v - 2, v - 1));
    }
    return UN_OK;
}

static un_status read_vertex(mesh_file *file, mesh_text *text)
{
    double x[3];
    for (int i = 0; i < 3; i++)
        if (!mesh_text_space(text, false) || !mesh_text_number(text, &x[i]))
            return mesh_fail_expected(file, text, "a coordinate");
    return mesh_text_add_vertex(file, text, x);
}

/* The corners between "outer loop" and "endloop". */
static un_status read_loop(mesh_file *file, mesh_text *text)
{
    int64_t first = (int64_t)file->vertex_count;
    while (mesh_text_space(text, false)) {
        if (mesh_text_word(text, "endloop")) return UN_OK;
        if (!mesh_text_word(text, "vertex")) break;
        UN_TRY(read_vertex(file, text));
        int64_t v = (int64_t)file->vertex_count;
        if (v - first >= 3) UN_TRY(mesh_file_add_triangle(file, first, v - 2, v - 1));
    }
    return mesh_fail_expected(file, text, "vertex or endloop");
}

/* facet normal x y z / outer loop / ... / endloop / endfacet. Normals follow from the corners. */
static un_status read_facet(mesh_file *file, mesh_text *text)
{
    while (mesh_text_space(text, false)) {
        if (mesh_text_word(text, "endfacet")) return UN_OK;
        if (mesh_text_word(text, "outer")) {
            if (!mesh_text_space(text, false) || !mesh_text_word(text, "loop"))
                return mesh_fail_expected(file, text, "loop");
            UN_TRY(read_loop(file, text));
        } else if (mesh_text_word(text, "normal")) {
            mesh_text_next_line(text);
        } else {
            break;
        }
    }
    return mesh_fail_expected(file, text, "normal, outer loop or endfacet");
}

static un_status read_text(mesh_file *file)
{
    mesh_text text = mesh_text_start(file);
    bool open = false;
    while (mesh_text_space(&text, false)) {
        if (mesh_text_word(&text, "facet")) {
            UN_TRY(read_facet(file, &text));
        } else if (mesh_text_word(&text, "solid")) {
            open = true;
            mesh_text_next_line(&text);
        } else if (mesh_text_word(&text, "endsolid")) {
            open = false;
            mesh_text_next_line(&text);
        } else {
            return mesh_fail_expected(file, &text, "solid, facet or endsolid");
        }
    }
    if (open)
        return mesh_fail_line(file, text.line,
                              "the file ends before endsolid; it was cut off, copy or export it "
                              "again");
    return UN_OK;
}

/* Text begins with "solid" and has no control characters; a binary file's numbers do. */
static bool is_text(const mesh_file *file)
{
    mesh_text text = mesh_text_start(file);
    if (!mesh_text_space(&text, false) || !mesh_text_word(&text, "solid")) return false;
    size_t head = file->size < 1024 ? file->size : 1024;
    for (size_t i = 0; i < head; i++) {
        unsigned char c = (unsigned char)file->bytes[i];
        if (c < 32 && !(c >= '\t' && c <= '\r')) return false;
    }
    return true;
}

un_status mesh_read_stl(mesh_file *file)
{
    return is_text(file) ? read_text(file) : read_binary(file);
}
