/* Reads frames: surface.ply, particles.vtp and mesh.vtu as a run writes them. The reader trusts
 * nothing: it checks every count and offset against the file's size before use. */
#include "output/output.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct frame_reader {
    un_context *ctx;
    const char *path;
    char *text;       /* the whole file */
    const char *data; /* after the underscore */
    size_t data_size;
} frame_reader;

static un_status malformed(const frame_reader *r, const char *what)
{
    return un_fail(r->ctx, UN_ERROR_FILE,
                   "%s: %s; this is not a file that `undine run` wrote: run the scene again or "
                   "remove the file",
                   r->path, what);
}

/* Finds the data after the header of this size. */
static un_status reader_begin(frame_reader *r, size_t size)
{
    static const char mark[] = "<AppendedData encoding=\"raw\">\n_";
    char *found = memmem(r->text, size, mark, sizeof mark - 1);
    if (!found || memchr(r->text, 0, (size_t)(found - r->text)))
        return malformed(r, "no appended data");
    *found = 0; /* ends the header for strstr */
    r->data = found + sizeof mark - 1;
    r->data_size = size - (size_t)(r->data - r->text);
    return UN_OK;
}

static un_status reader_open(frame_reader *r, un_context *ctx, const char *path)
{
    *r = (frame_reader){.ctx = ctx, .path = path};
    size_t size;
    UN_TRY(un_file_read(ctx, path, &r->text, &size));
    return reader_begin(r, size);
}

static void reader_close(frame_reader *r)
{
    un_free(r->ctx, r->text);
}

static un_status read_count(const frame_reader *r, const char *name, int64_t *count)
{
    const char *found = strstr(r->text, name);
    if (!found) return malformed(r, "a count is missing");
    *count = strtoll(found + strlen(name), NULL, 10);
    if (*count < 0 || *count > INT32_MAX) return malformed(r, "a count is impossible");
    return UN_OK;
}

/* The bytes of an array of exactly this type and size; they need not be aligned. */
static un_status read_array(const frame_reader *r, const char *declaration, int64_t count,
                            size_t size, const char **bytes)
{
    const char *found = strstr(r->text, declaration);
    if (!found) return malformed(r, "an array is missing");
    const char *end = strchr(found, '>'), *offset_at = strstr(found, "offset=\"");
    if (!end || !offset_at || offset_at > end) return malformed(r, "an array has no offset");
    uint64_t offset = strtoull(offset_at + 8, NULL, 10), length, wanted = (uint64_t)count * size;
    if (offset > r->data_size || r->data_size - offset < sizeof length)
        return malformed(r, "the file is cut short");
    memcpy(&length, r->data + offset, sizeof length);
    if (length != wanted) return malformed(r, "an array is not as long as its header says");
    if (r->data_size - offset - sizeof length < wanted)
        return malformed(r, "the file is cut short");
    *bytes = r->data + offset + sizeof length;
    return UN_OK;
}

static float float_at(const char *bytes, int64_t index)
{
    float value;
    memcpy(&value, bytes + 4 * index, sizeof value);
    return value;
}

static un_vec3 vector_at(const char *bytes, int64_t index)
{
    float v[3];
    memcpy(v, bytes + 12 * index, sizeof v);
    return un_v3((double)v[0], (double)v[1], (double)v[2]);
}

#define DEPTH "type=\"Float32\" Name=\"depth\""
#define DENSITY "type=\"Float32\" Name=\"density\""
#define VISCOSITY "type=\"Float32\" Name=\"viscosity\""

static un_status fill_particles(const frame_reader *r, un_particles *p)
{
    int64_t count = 0;
    const char *x, *v, *volume, *ballistic, *depth = NULL, *density = NULL, *viscosity = NULL;
    UN_TRY(read_count(r, "NumberOfPoints=\"", &count));
    UN_TRY(
        read_array(r, "type=\"Float32\" Name=\"Points\" NumberOfComponents=\"3\"", count, 12, &x));
    UN_TRY(read_array(r, "type=\"Float32\" Name=\"velocity\" NumberOfComponents=\"3\"", count, 12,
                      &v));
    UN_TRY(read_array(r, "type=\"Float32\" Name=\"volume\"", count, 4, &volume));
    UN_TRY(read_array(r, "type=\"UInt8\" Name=\"ballistic\"", count, 1, &ballistic));
    p->mixed = strstr(r->text, DENSITY) != NULL;
    if (p->mixed) {
        UN_TRY(read_array(r, DENSITY, count, 4, &density));
        UN_TRY(read_array(r, VISCOSITY, count, 4, &viscosity));
    }
    UN_TRY(un_particles_reserve(r->ctx, p, count));
    if (strstr(r->text, DEPTH)) {
        UN_TRY(read_array(r, DEPTH, count, 4, &depth));
        UN_ALLOC(r->ctx, p->depth, count + 1);
    }
    p->count = (int32_t)count;
    p->flat = count > 0; /* unless one is outside the plane */
    for (int64_t i = 0; i < count; i++) {
        un_vec3 at = vector_at(x, i), u = vector_at(v, i);
        float size = float_at(volume, i);
        if (!un_finite3(at) || !un_finite3(u) || !(size >= 0) || !isfinite(size))
            return malformed(r, "a particle is not a finite number");
        p->flat = p->flat && at.z == 0;
        un_particle_set_position(p, i, at);
        un_particle_set_velocity(p, i, u);
        p->volume[i] = size;
        p->flags[i] = ballistic[i] ? UN_PARTICLE_BALLISTIC : 0;
        if (p->mixed) {
            p->density[i] = float_at(density, i);
            p->viscosity[i] = float_at(viscosity, i);
            if (!isfinite(p->density[i]) || !isfinite(p->viscosity[i]))
                return malformed(r, "a particle is not a finite number");
        }
        if (!depth) continue;
        p->depth[i] = float_at(depth, i);
        /* flying particles are outside; those inside have landed among much larger particles */
        if (ballistic[i] && p->depth[i] < 0) p->flags[i] = UN_PARTICLE_LANDED;
    }
    return UN_OK;
}

un_status un_output_read_particles(un_context *ctx, const char *path, un_particles *particles)
{
    frame_reader r;
    *particles = (un_particles){0};
    un_status status = reader_open(&r, ctx, path);
    if (status == UN_OK) status = fill_particles(&r, particles);
    if (status != UN_OK) un_particles_free(ctx, particles);
    reader_close(&r);
    return status;
}

static int32_t int_at(const char *bytes, int64_t index)
{
    int32_t value;
    memcpy(&value, bytes + 4 * index, sizeof value);
    return value;
}

static un_status fill_cells(const frame_reader *r, un_cells *cells)
{
    int64_t points = 0, count = 0;
    const char *x, *end, *corner, *type, *level, *pressure, *velocity, *reason;
    UN_TRY(read_count(r, "NumberOfPoints=\"", &points));
    UN_TRY(read_count(r, "NumberOfCells=\"", &count));
    UN_TRY(read_array(r, "Name=\"Points\" NumberOfComponents=\"3\"", points, 12, &x));
    UN_TRY(read_array(r, "type=\"Int32\" Name=\"offsets\"", count, 4, &end));
    int64_t corners = count > 0 ? int_at(end, count - 1) : 0;
    if (corners < 0) return malformed(r, "an offset is impossible");
    UN_TRY(read_array(r, "type=\"Int32\" Name=\"connectivity\"", corners, 4, &corner));
    UN_TRY(read_array(r, "type=\"UInt8\" Name=\"types\"", count, 1, &type));
    UN_TRY(read_array(r, "type=\"Int32\" Name=\"level\"", count, 4, &level));
    UN_TRY(read_array(r, "type=\"Float32\" Name=\"pressure\"", count, 4, &pressure));
    UN_TRY(read_array(r, "type=\"Float32\" Name=\"velocity\" NumberOfComponents=\"3\"", count, 12,
                      &velocity));
    UN_TRY(un_cells_alloc(r->ctx, cells, points, count, corners));
    for (int64_t i = 0; i < points; i++) cells->point[i] = vector_at(x, i);
    memcpy(cells->corner, corner, 4 * (size_t)corners);
    memcpy(cells->first + 1, end, 4 * (size_t)count);
    memcpy(cells->type, type, (size_t)count);
    memcpy(cells->level, level, 4 * (size_t)count);
    for (int64_t c = 0; c < count; c++) {
        cells->pressure[c] = (double)float_at(pressure, c);
        cells->velocity[c] = vector_at(velocity, c);
    }
    return un_cells_validate(cells, &reason) ? UN_OK : malformed(r, reason);
}

un_status un_output_parse_cells(un_context *ctx, const char *path, char *text, size_t size,
                                un_cells *cells)
{
    frame_reader r = {.ctx = ctx, .path = path, .text = text};
    *cells = (un_cells){0};
    un_status status = reader_begin(&r, size);
    if (status == UN_OK) status = fill_cells(&r, cells);
    if (status != UN_OK) un_cells_free(ctx, cells);
    return status;
}

un_status un_output_read_cells(un_context *ctx, const char *path, un_cells *cells)
{
    char *text;
    size_t size;
    *cells = (un_cells){0};
    UN_TRY(un_file_read(ctx, path, &text, &size));
    un_status status = un_output_parse_cells(ctx, path, text, size, cells);
    un_free(ctx, text);
    return status;
}

/* ---- surfaces ---- */

#define PLY_VERTEX_BYTES 36
#define PLY_FACE_BYTES 13

/* Only the layout that un_output_surface writes. un_trimesh_load reads any other, but refuses
 * surfaces without triangles, which frames without liquid have. */
static un_status read_ply_head(const frame_reader *r, size_t size, int64_t *vertices,
                               int64_t *faces, size_t *body)
{
    static const char *const properties =
        "property float x\nproperty float y\nproperty float z\nproperty float nx\n"
        "property float ny\nproperty float nz\nproperty float vx\nproperty float vy\n"
        "property float vz\nelement face ";
    static const char end[] = "\nproperty list uchar int vertex_indices\nend_header\n";
    static const char begin[] = "ply\nformat binary_little_endian 1.0\n";
    char *at = r->text, *stop;
    if (strncmp(at, begin, sizeof begin - 1) != 0)
        return malformed(r, "not a PLY file written by Undine");
    at += sizeof begin - 1;
    while (strncmp(at, "comment", 7) == 0 && strchr(at, '\n')) at = strchr(at, '\n') + 1;
    if (strncmp(at, "element vertex ", 15) != 0)
        return malformed(r, "unexpected line in the header");
    *vertices = strtoll(at + 15, &stop, 10);
    if (*stop != '\n' || strncmp(stop + 1, properties, strlen(properties)) != 0)
        return malformed(r, "unexpected line in the header");
    *faces = strtoll(stop + 1 + strlen(properties), &stop, 10);
    if (strncmp(stop, end, sizeof end - 1) != 0)
        return malformed(r, "unexpected line in the header");
    *body = (size_t)(stop - r->text) + sizeof end - 1;
    if (*vertices < 0 || *vertices > INT32_MAX || *faces < 0 || *faces > INT32_MAX)
        return malformed(r, "a count is impossible");
    if (size - *body < (uint64_t)*vertices * PLY_VERTEX_BYTES + (uint64_t)*faces * PLY_FACE_BYTES)
        return malformed(r, "the file is cut short");
    return UN_OK;
}

static un_status fill_surface(const frame_reader *r, size_t size, un_trimesh *m)
{
    int64_t vertices = 0, faces = 0;
    size_t body = 0;
    UN_TRY(read_ply_head(r, size, &vertices, &faces, &body));
    UN_ALLOC(r->ctx, m->position, vertices + 1);
    UN_ALLOC(r->ctx, m->normal, vertices + 1);
    UN_ALLOC(r->ctx, m->velocity, vertices + 1);
    UN_ALLOC(r->ctx, m->triangle, faces + 1);
    const char *at = r->text + body;
    for (int64_t v = 0; v < vertices; v++, at += PLY_VERTEX_BYTES) {
        m->position[v] = vector_at(at, 0);
        m->normal[v] = vector_at(at, 1);
        m->velocity[v] = vector_at(at, 2);
        if (!un_finite3(m->position[v])) return malformed(r, "a vertex is not a finite number");
        if (!un_finite3(m->normal[v])) m->normal[v] = un_v3(0, 0, 0);
        if (!un_finite3(m->velocity[v])) m->velocity[v] = un_v3(0, 0, 0);
    }
    for (int64_t t = 0; t < faces; t++, at += PLY_FACE_BYTES) {
        memcpy(m->triangle[t], at + 1, sizeof *m->triangle);
        for (int c = 0; c < 3; c++)
            if (*at != 3 || m->triangle[t][c] < 0 || m->triangle[t][c] >= vertices)
                return malformed(r, "a face is not a triangle of the vertices");
    }
    m->vertex_count = (int32_t)vertices;
    m->triangle_count = (int32_t)faces;
    return UN_OK;
}

un_status un_output_read_surface(un_context *ctx, const char *path, un_trimesh *mesh)
{
    frame_reader r = {.ctx = ctx, .path = path};
    size_t size;
    *mesh = (un_trimesh){0};
    un_status status = un_file_read(ctx, path, &r.text, &size);
    if (status == UN_OK) status = fill_surface(&r, size, mesh);
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    reader_close(&r);
    return status;
}
