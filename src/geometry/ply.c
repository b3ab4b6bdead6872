/* PLY, text and both binary orders: any elements, any properties, in any order. Used are x y z, nx
 * ny nz and vx vy vz of vertices, and vertex_indices of faces. */
#include "geometry/meshfile.h"

typedef enum ply_type { I8, U8, I16, U16, I32, U32, F32, F64, TYPE_COUNT } ply_type;
static const size_t TYPE_SIZE[TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 8};
static const char *const TYPE_NAME[TYPE_COUNT][2] = {
    {"char", "int8"}, {"uchar", "uint8"}, {"short", "int16"},   {"ushort", "uint16"},
    {"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"double", "float64"}};

/* Where a property goes: 0..8 into a vertex's nine numbers, or the face's corners, or nowhere. */
static const char *const VERTEX_PROPERTY[9] = {"x", "y", "z", "nx", "ny", "nz", "vx", "vy", "vz"};
enum { CORNERS = 9, NOWHERE = -1 };

typedef struct ply_property {
    ply_type type, count_type;
    bool list;
    int32_t target;
} ply_property;

typedef enum ply_element_kind { OTHER, VERTEX, FACE } ply_element_kind;

typedef struct ply_element {
    ply_element_kind kind;
    int64_t count;
    int32_t first, property_count; /* of the properties */
} ply_element;

#define ELEMENTS_MAX 64
#define PROPERTIES_MAX 1024

typedef struct ply_reader {
    mesh_file *file;
    mesh_text text; /* the head, and a text body */
    bool binary, swap;
    ply_element elements[ELEMENTS_MAX];
    ply_property properties[PROPERTIES_MAX];
    int32_t element_count, property_count;
    int64_t vertex_count;
    bool has_normal, has_velocity;
} ply_reader;

/* ---- head ---- */

static un_status fail_here(ply_reader *r, const char *wanted)
{
    return mesh_fail_expected(r->file, &r->text, wanted);
}

static un_status read_type(ply_reader *r, ply_type *type)
{
    mesh_text_blanks(&r->text);
    for (int t = 0; t < TYPE_COUNT; t++)
        if (mesh_text_word(&r->text, TYPE_NAME[t][0]) ||
            mesh_text_word(&r->text, TYPE_NAME[t][1])) {
            *type = (ply_type)t;
            return UN_OK;
        }
    return fail_here(r, "a type like float or int");
}

static un_status read_format(ply_reader *r)
{
    const uint16_t probe = 1;
    bool little_machine = *(const unsigned char *)&probe == 1;
    mesh_text_blanks(&r->text);
    if (mesh_text_word(&r->text, "ascii")) {
        r->binary = false;
    } else if (mesh_text_word(&r->text, "binary_little_endian")) {
        r->binary = true;
        r->swap = !little_machine;
    } else if (mesh_text_word(&r->text, "binary_big_endian")) {
        r->binary = true;
        r->swap = little_machine;
    } else {
        return fail_here(r, "ascii, binary_little_endian or binary_big_endian");
    }
    return UN_OK;
}

static un_status read_element(ply_reader *r)
{
    if (r->element_count == ELEMENTS_MAX)
        return mesh_fail_line(r->file, r->text.line, "more than %d elements; export a plain mesh",
                              ELEMENTS_MAX);
    ply_element *e = &r->elements[r->element_count++];
    *e = (ply_element){.first = r->property_count};
    mesh_text_blanks(&r->text);
    if (mesh_text_word(&r->text, "vertex"))
        e->kind = VERTEX;
    else if (mesh_text_word(&r->text, "face"))
        e->kind = FACE;
    else
        while (!mesh_text_at_line_end(&r->text) && *r->text.at != ' ' && *r->text.at != '\t')
            r->text.at++;
    mesh_text_blanks(&r->text);
    if (!mesh_text_integer(&r->text, &e->count) || e->count < 0)
        return fail_here(r, "a count of elements");
    if (e->kind != VERTEX) return UN_OK;
    if (r->vertex_count > 0)
        return mesh_fail_line(r->file, r->text.line, "vertices twice; export the mesh again");
    r->vertex_count = e->count;
    return UN_OK;
}

static int32_t find_target(ply_reader *r, ply_element_kind kind, bool list)
{
    if (kind == FACE && list &&
        (mesh_text_word(&r->text, "vertex_indices") || mesh_text_word(&r->text, "vertex_index")))
        return CORNERS;
    if (kind == VERTEX && !list)
        for (int32_t i = 0; i < 9; i++)
            if (mesh_text_word(&r->text, VERTEX_PROPERTY[i])) return i;
    return NOWHERE;
}

static un_status read_property(ply_reader *r)
{
    if (r->element_count == 0) return fail_here(r, "an element before its properties");
    if (r->property_count == PROPERTIES_MAX)
        return mesh_fail_line(r->file, r->text.line, "more than %d properties; export a plain mesh",
                              PROPERTIES_MAX);
    ply_element *e = &r->elements[r->element_count - 1];
    ply_property *p = &r->properties[r->property_count++];
    *p = (ply_property){0};
    mesh_text_blanks(&r->text);
    p->list = mesh_text_word(&r->text, "list");
    if (p->list) {
        mesh_text at = r->text;
        UN_TRY(read_type(r, &p->count_type));
        if (p->count_type >= F32) {
            r->text = at;
            return fail_here(r, "an integer type for the length of a list");
        }
    }
    UN_TRY(read_type(r, &p->type));
    mesh_text_blanks(&r->text);
    if (mesh_text_at_line_end(&r->text)) return fail_here(r, "the name of a property");
    p->target = find_target(r, e->kind, p->list);
    e->property_count++;
    return UN_OK;
}

static bool has_target(const ply_reader *r, const ply_element *e, int32_t target)
{
    for (int32_t i = 0; i < e->property_count; i++)
        if (r->properties[e->first + i].target == target) return true;
    return false;
}

/* Vertices need a place and faces need corners; normals and velocities are used only if
 * complete. */
static un_status check_head(ply_reader *r)
{
    for (int32_t i = 0; i < r->element_count; i++) {
        ply_element *e = &r->elements[i];
        if (e->kind == FACE && e->count > 0 && !has_target(r, e, CORNERS))
            return mesh_fail_line(r->file, r->text.line,
                                  "faces have no vertex_indices; export the mesh again");
        if (e->kind != VERTEX) continue;
        bool has[9];
        for (int32_t k = 0; k < 9; k++) has[k] = has_target(r, e, k);
        if (e->count > 0 && !(has[0] && has[1] && has[2]))
            return mesh_fail_line(r->file, r->text.line,
                                  "vertices lack x, y or z; export the mesh again");
        r->has_normal = has[3] && has[4] && has[5];
        r->has_velocity = has[6] && has[7] && has[8];
    }
    return UN_OK;
}

/* A line ends as the first one did: a lone CR, or LF with or without CR. */
static void next_line(ply_reader *r, char newline)
{
    const char *at = memchr(r->text.at, newline, (size_t)(r->text.end - r->text.at));
    r->text.at = at ? at + 1 : r->text.end;
    r->text.line++;
}

static un_status read_head(ply_reader *r)
{
    mesh_text *text = &r->text;
    if (!mesh_text_word(text, "ply")) return fail_here(r, "ply");
    const char *lf = memchr(text->at, '\n', (size_t)(text->end - text->at));
    const char *cr = memchr(text->at, '\r', (size_t)(text->end - text->at));
    bool lone_cr = cr && (!lf || cr + 1 < lf);
    bool has_format = false;
    for (;;) {
        next_line(r, lone_cr ? '\r' : '\n');
        mesh_text_blanks(text);
        if (text->at >= text->end) return fail_here(r, "end_header");
        if (mesh_text_word(text, "format")) {
            UN_TRY(read_format(r));
            has_format = true;
        } else if (mesh_text_word(text, "element")) {
            UN_TRY(read_element(r));
        } else if (mesh_text_word(text, "property")) {
            UN_TRY(read_property(r));
        } else if (mesh_text_word(text, "end_header")) {
            if (!has_format) return fail_here(r, "a line with the format before end_header");
            UN_TRY(check_head(r));
            next_line(r, lone_cr ? '\r' : '\n');
            return UN_OK;
        } else if (!mesh_text_word(text, "comment") && !mesh_text_word(text, "obj_info") &&
                   !mesh_text_at_line_end(text)) {
            return fail_here(r, "a line of a PLY head");
        }
    }
}

/* ---- body ---- */

static un_status fail_cut(ply_reader *r)
{
    if (r->binary)
        return mesh_fail_byte(r->file, r->file->size,
                              "the file ends before its last element; it was cut off, copy or "
                              "export it again");
    return mesh_fail_line(r->file, r->text.line,
                          "the file ends before its last element; it was cut off, copy or export "
                          "it again");
}

static double decode(const char *at, ply_type type, bool swap)
{
    size_t size = TYPE_SIZE[type];
    unsigned char b[8];
    memcpy(b, at, size);
    if (swap)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char held = b[i];
            b[i] = b[size - 1 - i];
            b[size - 1 - i] = held;
        }
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        float f32;
        double f64;
    } v;
    memcpy(&v, b, size);
    switch (type) {
    case I8:
        return v.i8;
    case U8:
        return v.u8;
    case I16:
        return v.i16;
    case U16:
        return v.u16;
    case I32:
        return v.i32;
    case U32:
        return v.u32;
    case F32:
        return (double)v.f32;
    default:
        return v.f64;
    }
}

static un_status read_value(ply_reader *r, ply_type type, double *value)
{
    mesh_text *text = &r->text;
    if (r->binary) {
        if ((size_t)(text->end - text->at) < TYPE_SIZE[type]) return fail_cut(r);
        *value = decode(text->at, type, r->swap);
        text->at += TYPE_SIZE[type];
        return UN_OK;
    }
    if (!mesh_text_space(text, false)) return fail_cut(r);
    return mesh_text_number(text, value) ? UN_OK : fail_here(r, "a number");
}

static un_status fail_body(ply_reader *r, const char *element, int64_t index, const char *what)
{
    if (r->binary)
        return mesh_fail_byte(r->file, (size_t)(r->text.at - r->file->bytes), "%s %lld %s", element,
                              (long long)index, what);
    return mesh_fail_line(r->file, r->text.line, "%s %lld %s", element, (long long)index, what);
}

static un_status read_list(ply_reader *r, const ply_property *p, int64_t index)
{
    double length, value;
    UN_TRY(read_value(r, p->count_type, &length));
    if (!(length >= 0 && length <= UINT32_MAX) || length != floor(length))
        return fail_body(r, "element", index, "has a list of impossible length; export it again");
    int64_t count = (int64_t)length, first = 0, last = 0;
    if (r->binary && p->target == NOWHERE) {
        if (count > (r->text.end - r->text.at) / (int64_t)TYPE_SIZE[p->type]) return fail_cut(r);
        r->text.at += count * (int64_t)TYPE_SIZE[p->type];
        return UN_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        UN_TRY(read_value(r, p->type, &value));
        if (p->target == NOWHERE) continue;
        if (!(value >= 0 && value < (double)r->vertex_count) || value != floor(value))
            return fail_body(r, "face", index,
                             "names a vertex that does not exist; export the mesh again");
        if (i == 0) first = (int64_t)value;
        if (i >= 2) UN_TRY(mesh_file_add_triangle(r->file, first, last, (int64_t)value));
        last = (int64_t)value;
    }
    return UN_OK;
}

static un_status add_vertex(ply_reader *r, int64_t index, const double x[9])
{
    mesh_file *file = r->file;
    un_vec3 p = un_v3(x[0], x[1], x[2]), n = un_v3(x[3], x[4], x[5]), v = un_v3(x[6], x[7], x[8]);
    if (!mesh_coordinate_ok(p))
        return fail_body(r, "vertex", index,
                         "has a coordinate that is not a finite number; clean the mesh in a "
                         "modelling program");
    UN_TRY(mesh_file_add_vertex(file, p));
    if (r->has_normal) {
        UN_TRY(un_array_reserve(file->ctx, (void **)&file->normal, &file->normal_capacity,
                                file->vertex_capacity, sizeof *file->normal));
        file->normal[index] = un_finite3(n) ? n : un_v3(0, 0, 0);
    }
    if (r->has_velocity) {
        UN_TRY(un_array_reserve(file->ctx, (void **)&file->velocity, &file->velocity_capacity,
                                file->vertex_capacity, sizeof *file->velocity));
        file->velocity[index] = un_finite3(v) ? v : un_v3(0, 0, 0);
    }
    return UN_OK;
}

static un_status read_elements(ply_reader *r, const ply_element *e)
{
    if (e->property_count == 0) return UN_OK; /* a count may be billions of nothing */
    for (int64_t index = 0; index < e->count; index++) {
        double values[9] = {0}, value;
        for (int32_t i = 0; i < e->property_count; i++) {
            const ply_property *p = &r->properties[e->first + i];
            if (p->list) {
                UN_TRY(read_list(r, p, index));
            } else {
                UN_TRY(read_value(r, p->type, &value));
                if (p->target >= 0) values[p->target] = value;
            }
        }
        if (e->kind == VERTEX) UN_TRY(add_vertex(r, index, values));
    }
    return UN_OK;
}

static un_status read_all(ply_reader *r)
{
    UN_TRY(read_head(r));
    for (int32_t i = 0; i < r->element_count; i++) UN_TRY(read_elements(r, &r->elements[i]));
    if (!r->binary && mesh_text_space(&r->text, false))
        return mesh_fail_line(r->file, r->text.line,
                              "more follows than the head declares; export the mesh again");
    return UN_OK;
}

un_status mesh_read_ply(mesh_file *file)
{
    ply_reader *r = un_alloc_zero(file->ctx, 1, sizeof *r);
    if (!r) return UN_ERROR_MEMORY;
    r->file = file;
    r->text = mesh_text_start(file);
    un_status status = read_all(r);
    un_free(file->ctx, r);
    return status;
}
