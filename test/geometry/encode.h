/* Meshes as files of every format, in memory. */
#ifndef UN_TEST_GEOMETRY_ENCODE_H
#define UN_TEST_GEOMETRY_ENCODE_H

#include "meshes.h"

typedef struct text_buffer {
    char *bytes;
    size_t size, capacity;
} text_buffer;

static inline void put(text_buffer *b, const void *bytes, size_t size)
{
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->bytes = realloc(b->bytes, b->capacity);
        assert_non_null(b->bytes);
    }
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

__attribute__((format(printf, 2, 3))) static inline void print(text_buffer *b, const char *format,
                                                               ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(b, text, (size_t)size);
}

static inline void put_number(text_buffer *b, const void *number, size_t size, bool swap)
{
    char bytes[8];
    for (size_t i = 0; i < size; i++) bytes[i] = ((const char *)number)[swap ? size - 1 - i : i];
    put(b, bytes, size);
}

typedef enum format {
    OBJ,
    OFF,
    STL_TEXT,
    STL_BINARY,
    STL_SOLID,
    PLY_TEXT,
    PLY_LITTLE,
    PLY_BIG,
    PLY_FLOAT,
    FORMATS
} format;

static inline text_buffer encode_stl(const un_trimesh *m, format f)
{
    text_buffer b = {0};
    if (f == STL_TEXT) {
        print(&b, "solid test\n");
    } else {
        char head[80] = {0};
        snprintf(head, sizeof head, f == STL_SOLID ? "solid exported by something" : "binary");
        put(&b, head, 80);
        put(&b, &m->triangle_count, 4);
    }
    for (int32_t t = 0; t < m->triangle_count; t++) {
        float normal[3] = {0, 0, 1};
        if (f == STL_TEXT)
            print(&b, " facet normal 0 0 1\n  outer loop\n");
        else
            put(&b, normal, 12);
        for (int i = 0; i < 3; i++) {
            un_vec3 x = m->position[m->triangle[t][i]];
            float p[3] = {(float)x.x, (float)x.y, (float)x.z};
            if (f == STL_TEXT)
                print(&b, "   vertex %.17g %.17g %.17g\n", x.x, x.y, x.z);
            else
                put(&b, p, 12);
        }
        if (f == STL_TEXT)
            print(&b, "  endloop\n endfacet\n");
        else
            put(&b, "\0", 2);
    }
    if (f == STL_TEXT) print(&b, "endsolid test\n");
    return b;
}

static inline text_buffer encode_ply(const un_trimesh *m, format f)
{
    static const char *formats[] = {"ascii", "binary_little_endian", "binary_big_endian",
                                    "binary_little_endian"};
    text_buffer b = {0};
    bool swap = f == PLY_BIG;
    const char *type = f == PLY_FLOAT ? "float" : "double";
    print(&b, "ply\nformat %s 1.0\nelement vertex %d\n", formats[f - PLY_TEXT], m->vertex_count);
    print(&b, "property %s x\nproperty %s y\nproperty %s z\n", type, type, type);
    if (f == PLY_FLOAT)
        print(&b, "property float nx\nproperty float ny\nproperty float nz\nproperty float vx\n"
                  "property float vy\nproperty float vz\n");
    print(&b, "element face %d\nproperty list %s int vertex_indices\nend_header\n",
          m->triangle_count, f == PLY_BIG ? "ushort" : "uchar");
    for (int32_t n = 0; n < m->vertex_count; n++) {
        const double x[3] = {m->position[n].x, m->position[n].y, m->position[n].z};
        if (f == PLY_TEXT) print(&b, "%.17g %.17g %.17g\n", x[0], x[1], x[2]);
        for (int i = 0; i < 3 && f != PLY_TEXT; i++) {
            float single = (float)x[i];
            if (f == PLY_FLOAT)
                put(&b, &single, 4);
            else
                put_number(&b, &x[i], 8, swap);
        }
        for (int i = 0; i < 6 && f == PLY_FLOAT; i++) {
            float extra = (float)(n + i);
            put(&b, &extra, 4);
        }
    }
    for (int32_t t = 0; t < m->triangle_count; t++) {
        const int32_t *v = m->triangle[t];
        uint8_t three = 3;
        uint16_t wide = 3;
        if (f == PLY_TEXT)
            print(&b, "3 %d %d %d\n", v[0], v[1], v[2]);
        else if (swap)
            put_number(&b, &wide, 2, true);
        else
            put(&b, &three, 1);
        for (int i = 0; i < 3 && f != PLY_TEXT; i++) put_number(&b, &v[i], 4, swap);
    }
    return b;
}

static inline text_buffer encode(const un_trimesh *m, format f)
{
    if (f >= PLY_TEXT) return encode_ply(m, f);
    if (f >= STL_TEXT) return encode_stl(m, f);
    text_buffer b = {0};
    if (f == OFF) print(&b, "OFF\n%d %d 0\n", m->vertex_count, m->triangle_count);
    for (int32_t n = 0; n < m->vertex_count; n++)
        print(&b, "%s%.17g %.17g %.17g\n", f == OBJ ? "v " : "", m->position[n].x, m->position[n].y,
              m->position[n].z);
    int32_t base = f == OBJ;
    for (int32_t t = 0; t < m->triangle_count; t++)
        print(&b, "%s %d %d %d\n", f == OBJ ? "f" : "3", m->triangle[t][0] + base,
              m->triangle[t][1] + base, m->triangle[t][2] + base);
    return b;
}

static const char *const FORMAT_NAME[FORMATS] = {"a.obj", "a.off", "a.stl", "a.stl", "a.stl",
                                                 "a.ply", "a.ply", "a.ply", "a.ply"};

static const char *const FORMAT_LABEL[FORMATS] = {
    "OBJ", "OFF", "STL text", "STL", "STL", "PLY text", "PLY 64 bit", "PLY big endian", "PLY"};

#endif
