/* VTK XML files with raw appended data, as ParaView and VTK read them: an XML header that names the
 * arrays and their offsets, then "_", then each array as a byte count (UInt64) and its bytes.
 * Everything is little-endian and single precision: 1e-7 of the domain is far below a cell. */
#include "output/output.h"

#include <stdio.h>

#include "ranks/ranks.h"
#include "surface/surface.h"

/* ---- the XML header and the arrays after it ---- */

typedef struct vtk_writer {
    un_file *file;   /* several ranks: NULL but on rank 0, which writes the header */
    uint64_t offset; /* of the next array in the appended data */
} vtk_writer;

static void head_begin(vtk_writer *w, const char *type)
{
    un_file_printf(w->file,
                   "<?xml version=\"1.0\"?>\n<VTKFile type=\"%s\" version=\"1.0\" "
                   "byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<%s>\n",
                   type, type);
}

/* Declares an array of `count` tuples; its data must follow in the order of declaration. */
static void head_array(vtk_writer *w, const char *type, const char *name, int32_t components,
                       int64_t count, size_t size)
{
    un_file_printf(w->file, "<DataArray type=\"%s\" Name=\"%s\" ", type, name);
    if (components > 1) un_file_printf(w->file, "NumberOfComponents=\"%d\" ", components);
    un_file_printf(w->file, "format=\"appended\" offset=\"%llu\"/>\n",
                   (unsigned long long)w->offset);
    w->offset += sizeof(uint64_t) + (uint64_t)components * (uint64_t)count * size;
}

static void head_end(vtk_writer *w, const char *type)
{
    un_file_printf(w->file, "</Piece>\n</%s>\n<AppendedData encoding=\"raw\">\n_", type);
}

static void data_begin(vtk_writer *w, int32_t components, int64_t count, size_t size)
{
    uint64_t bytes = (uint64_t)components * (uint64_t)count * size;
    un_file_write_little(w->file, &bytes, 1, sizeof bytes);
}

static const char tail[] = "\n</AppendedData>\n</VTKFile>\n";

static un_status data_end(vtk_writer *w)
{
    un_file_printf(w->file, "%s", tail);
    return un_file_commit(w->file);
}

static void put_vector(un_file *file, un_vec3 a)
{
    float values[3] = {(float)a.x, (float)a.y, (float)a.z};
    un_file_write_little(file, values, 3, sizeof *values);
}
static void put_float(un_file *file, double value)
{
    float single = (float)value;
    un_file_write_little(file, &single, 1, sizeof single);
}
static void put_int(un_file *file, int32_t value)
{
    un_file_write_little(file, &value, 1, sizeof value);
}

static void data_vectors(vtk_writer *w, const un_vec3 *values, int64_t count)
{
    data_begin(w, 3, count, sizeof(float));
    for (int64_t i = 0; i < count; i++) put_vector(w->file, values ? values[i] : un_v3(0, 0, 0));
}

/* first, first + step, ...: connectivity of single points, offsets of equal cells. */
static void data_sequence(vtk_writer *w, int32_t first, int32_t step, int64_t count)
{
    data_begin(w, 1, count, sizeof(int32_t));
    for (int64_t i = 0; i < count; i++) put_int(w->file, (int32_t)(first + step * i));
}

/* ---- particles ---- */

/* A window of the particles at hand. */
static un_status view_window(void *arg, unsigned fields, int64_t begin, int64_t end,
                             un_particles *view)
{
    (void)fields;
    *view = un_particles_part(arg, (un_part){begin, end});
    return UN_OK;
}

/* Particles at a time. */
#define WINDOW ((int64_t)1 << 16)

/* One array of a window, to `to`; first: the number of its first particle. */
typedef void form(void *to, const un_particles *window, int64_t first, const void *arg);

static void form_vector(float *to, un_vec3 a)
{
    to[0] = (float)a.x;
    to[1] = (float)a.y;
    to[2] = (float)a.z;
}
static void form_velocities(void *to, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++)
        form_vector((float *)to + 3 * (size_t)q, un_particle_velocity(p, q));
}
static void form_places(void *to, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++)
        form_vector((float *)to + 3 * (size_t)q, un_particle_position(p, q));
}
static void form_floats(void *to, const float *from, int32_t count)
{
    if (count > 0) memcpy(to, from, (size_t)count * sizeof *from);
}
static void form_volumes(void *to, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    form_floats(to, p->volume, p->count);
}
static void form_radii(void *to, const un_particles *p, int64_t first, const void *arg)
{
    float *radius = to;
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++) radius[q] = (float)un_particle_ball(p, q);
}
static void form_flights(void *to, const un_particles *p, int64_t first, const void *arg)
{
    uint8_t *ballistic = to;
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++) ballistic[q] = (p->flags[q] & UN_PARTICLE_APART) != 0;
}
static void form_depths(void *to, const un_particles *p, int64_t first, const void *depth)
{
    form_floats(to, (const float *)depth + first, p->count);
}
static void form_own_depths(void *to, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    form_floats(to, p->depth, p->count);
}
static void form_densities(void *to, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    form_floats(to, p->density, p->count);
}
static void form_viscosities(void *to, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    form_floats(to, p->viscosity, p->count);
}
/* Numbers from *arg on. */
static void form_numbers(void *to, const un_particles *p, int64_t first, const void *arg)
{
    int32_t *number = to, from = *(const int32_t *)arg;
    for (int32_t q = 0; q < p->count; q++) number[q] = (int32_t)(from + first + q);
}

/* Writes arrays of particles: one rank the windows one after the other, several each its part. */
typedef struct particle_writer {
    vtk_writer w;
    const un_particle_stream *stream;
    un_ranks_file *shared; /* NULL: one rank */
    uint64_t at;           /* in the shared file: where the next array begins */
    int64_t rounds;        /* of windows, the same on all ranks */
    char *bytes;           /* room for an array of a window */
} particle_writer;

/* An array begins with its length, which rank 0 writes. A rank with fewer windows than others takes
 * part in the rest with empty ones. */
static un_status data_particles(particle_writer *pw, unsigned fields, int32_t components,
                                size_t size, form *put, const void *arg)
{
    const un_particle_stream *s = pw->stream;
    size_t each = (size_t)components * size;
    bool first_rank = pw->w.file != NULL;
    if (first_rank && !pw->shared) data_begin(&pw->w, components, s->count, size);
    for (int64_t k = 0; k < pw->rounds; k++) {
        int64_t begin = un_min64(s->part.begin + k * WINDOW, s->part.end);
        int64_t end = un_min64(begin + WINDOW, s->part.end);
        un_particles view = {.count = (int32_t)(end - begin)};
        uint64_t length = (uint64_t)s->count * each;
        size_t ahead = k == 0 && first_rank && pw->shared ? sizeof length : 0;
        if (fields) UN_TRY(s->window(s->arg, fields, begin, end, &view));
        put(pw->bytes + sizeof length, &view, begin, arg);
        size_t bytes = (size_t)(end - begin) * each;
        un_to_little(pw->bytes + sizeof length, bytes / size, size);
        if (!pw->shared) {
            un_file_write(pw->w.file, pw->bytes + sizeof length, bytes);
            continue;
        }
        un_to_little(&length, 1, sizeof length);
        memcpy(pw->bytes, &length, sizeof length);
        uint64_t to = pw->at + sizeof length + (uint64_t)begin * each - ahead;
        UN_TRY(
            un_ranks_file_write(pw->shared, to, pw->bytes + sizeof length - ahead, ahead + bytes));
    }
    pw->at += sizeof(uint64_t) + (uint64_t)s->count * each;
    return UN_OK;
}

static void head_particles(vtk_writer *w, int64_t count, bool depth, bool mixed)
{
    head_begin(w, "PolyData");
    un_file_printf(w->file,
                   "<Piece NumberOfPoints=\"%lld\" NumberOfVerts=\"%lld\" NumberOfLines=\"0\" "
                   "NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n"
                   "<PointData Scalars=\"radius\" Vectors=\"velocity\">\n",
                   (long long)count, (long long)count);
    head_array(w, "Float32", "velocity", 3, count, sizeof(float));
    head_array(w, "Float32", "volume", 1, count, sizeof(float));
    head_array(w, "Float32", "radius", 1, count, sizeof(float));
    head_array(w, "UInt8", "ballistic", 1, count, sizeof(uint8_t));
    if (depth) head_array(w, "Float32", "depth", 1, count, sizeof(float));
    if (mixed) {
        head_array(w, "Float32", "density", 1, count, sizeof(float));
        head_array(w, "Float32", "viscosity", 1, count, sizeof(float));
    }
    un_file_printf(w->file, "</PointData>\n<Points>\n");
    head_array(w, "Float32", "Points", 3, count, sizeof(float));
    /* one cell per point, so that thresholds and selections see single particles */
    un_file_printf(w->file, "</Points>\n<Verts>\n");
    head_array(w, "Int32", "connectivity", 1, count, sizeof(int32_t));
    head_array(w, "Int32", "offsets", 1, count, sizeof(int32_t));
    un_file_printf(w->file, "</Verts>\n");
    head_end(w, "PolyData");
}

static un_status data_of_stream(particle_writer *pw, const float *depth, bool mixed)
{
    size_t size = sizeof(float);
    const int32_t from_0 = 0, from_1 = 1;
    UN_TRY(data_particles(pw, UN_VELOCITIES, 3, size, form_velocities, NULL));
    UN_TRY(data_particles(pw, UN_VOLUMES, 1, size, form_volumes, NULL));
    UN_TRY(data_particles(pw, UN_VOLUMES, 1, size, form_radii, NULL));
    UN_TRY(data_particles(pw, UN_FLAGS, 1, 1, form_flights, NULL));
    if (depth) UN_TRY(data_particles(pw, 0, 1, size, form_depths, depth));
    if (pw->stream->depth) UN_TRY(data_particles(pw, UN_DEPTHS, 1, size, form_own_depths, NULL));
    if (mixed) {
        UN_TRY(data_particles(pw, UN_MATTER, 1, size, form_densities, NULL));
        UN_TRY(data_particles(pw, UN_MATTER, 1, size, form_viscosities, NULL));
    }
    UN_TRY(data_particles(pw, UN_PLACES, 3, size, form_places, NULL));
    UN_TRY(data_particles(pw, 0, 1, sizeof(int32_t), form_numbers, &from_0));
    return data_particles(pw, 0, 1, sizeof(int32_t), form_numbers, &from_1);
}

/* Room for the widest array, and a length before it. */
#define WINDOW_BYTES ((size_t)WINDOW * 3 * sizeof(float) + sizeof(uint64_t))

static un_status write_shared(un_context *ctx, const char *path, particle_writer *pw)
{
    const un_particle_stream *s = pw->stream;
    UN_TRY(un_ranks_file_create(ctx, path, &pw->shared));
    pw->w.file = un_ranks_file_first(pw->shared);
    if (pw->w.file) {
        head_particles(&pw->w, s->count, s->depth, s->mixed);
        pw->at = un_file_size(pw->w.file);
    }
    un_ranks_tell(un_context_ranks(ctx), &pw->at, sizeof pw->at);
    un_status status = data_of_stream(pw, NULL, s->mixed);
    if (status == UN_OK)
        status = un_ranks_file_write(pw->shared, pw->at, tail, pw->w.file ? sizeof tail - 1 : 0);
    if (status == UN_OK) return un_ranks_file_commit(pw->shared);
    un_ranks_file_discard(pw->shared);
    return status;
}

un_status un_output_particle_stream(un_context *ctx, const char *path,
                                    const un_particle_stream *stream)
{
    int64_t most = (int64_t)un_ranks_max(ctx, (double)(stream->part.end - stream->part.begin));
    particle_writer pw = {.stream = stream, .rounds = un_max64((most + WINDOW - 1) / WINDOW, 1)};
    pw.bytes = un_alloc(ctx, WINDOW_BYTES, 1);
    un_status status = un_ranks_agree(ctx, pw.bytes ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = write_shared(ctx, path, &pw);
    un_free(ctx, pw.bytes);
    return status;
}

un_status un_output_particles(un_context *ctx, const char *path, const un_particles *particles,
                              const float *depth)
{
    int64_t count = particles->count;
    un_particle_stream stream = {.count = count,
                                 .part = {0, count},
                                 .arg = (void *)particles,
                                 .window = view_window,
                                 .mixed = particles->density != NULL};
    particle_writer pw = {.stream = &stream, .rounds = (count + WINDOW - 1) / WINDOW};
    UN_ALLOC(ctx, pw.bytes, WINDOW_BYTES);
    un_status status = un_file_create(ctx, path, &pw.w.file);
    if (status == UN_OK) {
        head_particles(&pw.w, count, depth != NULL, stream.mixed);
        data_of_stream(&pw, depth, stream.mixed); /* views do not fail */
        status = data_end(&pw.w);
    }
    un_free(ctx, pw.bytes);
    return status;
}

/* ---- surfaces ---- */

/* By place in the outline: a vector of its vertices. */
static void data_outline(vtk_writer *w, const un_outline *o, const un_vec3 *of_vertex)
{
    data_begin(w, 3, o->vertex_count, sizeof(float));
    for (int32_t n = 0; n < o->vertex_count; n++) put_vector(w->file, of_vertex[o->vertex[n]]);
}

static un_status write_outline(un_context *ctx, const char *path, const un_trimesh *mesh)
{
    un_outline o;
    vtk_writer w = {0};
    UN_TRY(un_outline_create(ctx, mesh, &o));
    un_status status = un_file_create(ctx, path, &w.file);
    if (status == UN_OK) {
        int64_t entries = (int64_t)o.vertex_count + o.loop_count;
        head_begin(&w, "PolyData");
        un_file_printf(w.file,
                       "<Piece NumberOfPoints=\"%d\" NumberOfVerts=\"0\" NumberOfLines=\"%d\" "
                       "NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n"
                       "<PointData Normals=\"normal\" Vectors=\"velocity\">\n",
                       o.vertex_count, o.loop_count);
        head_array(&w, "Float32", "normal", 3, o.vertex_count, sizeof(float));
        head_array(&w, "Float32", "velocity", 3, o.vertex_count, sizeof(float));
        un_file_printf(w.file, "</PointData>\n<Points>\n");
        head_array(&w, "Float32", "Points", 3, o.vertex_count, sizeof(float));
        un_file_printf(w.file, "</Points>\n<Lines>\n");
        head_array(&w, "Int32", "connectivity", 1, entries, sizeof(int32_t));
        head_array(&w, "Int32", "offsets", 1, o.loop_count, sizeof(int32_t));
        un_file_printf(w.file, "</Lines>\n");
        head_end(&w, "PolyData");

        data_vectors(&w, o.normal, o.vertex_count);
        data_outline(&w, &o, mesh->velocity);
        data_outline(&w, &o, mesh->position);
        /* a loop's first point closes it */
        data_begin(&w, 1, entries, sizeof(int32_t));
        for (int32_t l = 0; l < o.loop_count; l++)
            for (int32_t n = o.first[l]; n <= o.first[l + 1]; n++) {
                int32_t point = n < o.first[l + 1] ? n : o.first[l];
                un_file_write_little(w.file, &point, 1, sizeof point);
            }
        data_begin(&w, 1, o.loop_count, sizeof(int32_t));
        for (int32_t l = 0; l < o.loop_count; l++)
            un_file_write_little(w.file, &(int32_t){o.first[l + 1] + l + 1}, 1, sizeof(int32_t));
        status = data_end(&w);
    }
    un_outline_free(ctx, &o);
    return status;
}

un_status un_output_surface_vtp(un_context *ctx, const char *path, const un_trimesh *mesh)
{
    if (un_surface_is_flat(mesh)) return write_outline(ctx, path, mesh);
    if (mesh->triangle_count > INT32_MAX / 3)
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "%s: a surface of %d triangles is too large; lower detail.surface", path,
                       mesh->triangle_count);
    vtk_writer w = {0};
    UN_TRY(un_file_create(ctx, path, &w.file));
    head_begin(&w, "PolyData");
    un_file_printf(w.file,
                   "<Piece NumberOfPoints=\"%d\" NumberOfVerts=\"0\" NumberOfLines=\"0\" "
                   "NumberOfStrips=\"0\" NumberOfPolys=\"%d\">\n"
                   "<PointData Normals=\"normal\" Vectors=\"velocity\">\n",
                   mesh->vertex_count, mesh->triangle_count);
    head_array(&w, "Float32", "normal", 3, mesh->vertex_count, sizeof(float));
    head_array(&w, "Float32", "velocity", 3, mesh->vertex_count, sizeof(float));
    un_file_printf(w.file, "</PointData>\n<Points>\n");
    head_array(&w, "Float32", "Points", 3, mesh->vertex_count, sizeof(float));
    un_file_printf(w.file, "</Points>\n<Polys>\n");
    head_array(&w, "Int32", "connectivity", 1, 3 * (int64_t)mesh->triangle_count, sizeof(int32_t));
    head_array(&w, "Int32", "offsets", 1, mesh->triangle_count, sizeof(int32_t));
    un_file_printf(w.file, "</Polys>\n");
    head_end(&w, "PolyData");

    data_vectors(&w, mesh->normal, mesh->vertex_count);
    data_vectors(&w, mesh->velocity, mesh->vertex_count);
    data_vectors(&w, mesh->position, mesh->vertex_count);
    data_begin(&w, 3, mesh->triangle_count, sizeof(int32_t));
    un_file_write_little(w.file, mesh->triangle, 3 * (size_t)mesh->triangle_count, sizeof(int32_t));
    data_sequence(&w, 3, 3, mesh->triangle_count);
    return data_end(&w);
}

/* ---- cells ---- */

un_status un_output_cells(un_context *ctx, const char *path, const un_cells *cells)
{
    vtk_writer w = {0};
    int64_t count = cells->count, corners = count > 0 ? cells->first[count] : 0;
    UN_TRY(un_file_create(ctx, path, &w.file));
    head_begin(&w, "UnstructuredGrid");
    un_file_printf(w.file, "<Piece NumberOfPoints=\"%d\" NumberOfCells=\"%lld\">\n",
                   cells->point_count, (long long)count);
    un_file_printf(w.file, cells->tag ? "<CellData Scalars=\"tag\">\n"
                                      : "<CellData Scalars=\"pressure\" Vectors=\"velocity\">\n");
    head_array(&w, "Int32", "level", 1, count, sizeof(int32_t));
    if (cells->tag)
        head_array(&w, "Int32", "tag", 1, count, sizeof(int32_t));
    else {
        head_array(&w, "Float32", "pressure", 1, count, sizeof(float));
        head_array(&w, "Float32", "velocity", 3, count, sizeof(float));
    }
    un_file_printf(w.file, "</CellData>\n<Points>\n");
    head_array(&w, "Float32", "Points", 3, cells->point_count, sizeof(float));
    un_file_printf(w.file, "</Points>\n<Cells>\n");
    head_array(&w, "Int32", "connectivity", 1, corners, sizeof(int32_t));
    head_array(&w, "Int32", "offsets", 1, count, sizeof(int32_t));
    head_array(&w, "UInt8", "types", 1, count, sizeof(uint8_t));
    un_file_printf(w.file, "</Cells>\n");
    head_end(&w, "UnstructuredGrid");

    data_begin(&w, 1, count, sizeof(int32_t));
    un_file_write_little(w.file, cells->level, (size_t)count, sizeof(int32_t));
    if (cells->tag) {
        data_begin(&w, 1, count, sizeof(int32_t));
        un_file_write_little(w.file, cells->tag, (size_t)count, sizeof(int32_t));
    } else {
        data_begin(&w, 1, count, sizeof(float));
        for (int64_t c = 0; c < count; c++) put_float(w.file, cells->pressure[c]);
        data_vectors(&w, cells->velocity, count);
    }
    data_vectors(&w, cells->point, cells->point_count);
    data_begin(&w, 1, corners, sizeof(int32_t));
    un_file_write_little(w.file, cells->corner, (size_t)corners, sizeof(int32_t));
    data_begin(&w, 1, count, sizeof(int32_t)); /* VTK's offsets are where cells end */
    if (count > 0) un_file_write_little(w.file, cells->first + 1, (size_t)count, sizeof(int32_t));
    data_begin(&w, 1, count, sizeof(uint8_t));
    un_file_write(w.file, cells->type, (size_t)count);
    return data_end(&w);
}

/* ---- collections ---- */

un_status un_output_pvd(un_context *ctx, const char *path, const char *name, int32_t frame_count,
                        double rate)
{
    un_file *file;
    UN_TRY(un_file_create(ctx, path, &file));
    un_file_printf(file, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\" "
                         "byte_order=\"LittleEndian\">\n<Collection>\n");
    for (int32_t frame = 0; frame < frame_count; frame++) {
        char time[UN_NUMBER_CHARS];
        un_number_format(time, frame / rate);
        un_file_printf(file,
                       "<DataSet timestep=\"%s\" group=\"\" part=\"0\" file=\"frames/%04d/%s\"/>\n",
                       time, frame, name);
    }
    un_file_printf(file, "</Collection>\n</VTKFile>\n");
    return un_file_commit(file);
}
