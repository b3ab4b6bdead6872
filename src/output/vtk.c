/* VTK XML files with raw appended data, as ParaView and VTK read them: an XML header that names the
 * arrays and their offsets, then "_", then each array as a byte count (UInt64) and its bytes.
 * Everything is little-endian and single precision: 1e-7 of the domain is far below a cell. */
#include "output/output.h"

#include <stdio.h>

#include "surface/surface.h"

/* ---- the XML header and the arrays after it ---- */

typedef struct vtk_writer {
    un_file *file;
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

static un_status data_end(vtk_writer *w)
{
    un_file_printf(w->file, "\n</AppendedData>\n</VTKFile>\n");
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
    const un_particles *p = arg;
    (void)fields;
    *view = *p;
    for (int a = 0; a < 3; a++) {
        view->x[a] = p->x[a] + begin;
        view->v[a] = p->v[a] + begin;
    }
    view->volume = p->volume + begin;
    view->flags = p->flags + begin;
    if (p->density) view->density = p->density + begin;
    if (p->density) view->viscosity = p->viscosity + begin;
    view->count = (int32_t)(end - begin);
    return UN_OK;
}

/* Particles at a time. */
#define WINDOW ((int64_t)1 << 18)

/* Puts one array of a window; first: the number of its first particle. */
typedef void put_window(un_file *file, const un_particles *window, int64_t first, const void *arg);

static void put_velocities(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++) put_vector(file, un_particle_velocity(p, q));
}
static void put_places(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++) put_vector(file, un_particle_position(p, q));
}
static void put_volumes(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    un_file_write_little(file, p->volume, (size_t)p->count, sizeof(float));
}
static void put_radii(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++) put_float(file, un_particle_ball(p, q));
}
static void put_flights(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    for (int32_t q = 0; q < p->count; q++) {
        uint8_t ballistic = (p->flags[q] & UN_PARTICLE_APART) != 0;
        un_file_write(file, &ballistic, 1);
    }
}
static void put_depths(un_file *file, const un_particles *p, int64_t first, const void *depth)
{
    un_file_write_little(file, (const float *)depth + first, (size_t)p->count, sizeof(float));
}
static void put_own_depths(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    un_file_write_little(file, p->depth, (size_t)p->count, sizeof(float));
}
static void put_densities(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    un_file_write_little(file, p->density, (size_t)p->count, sizeof(float));
}
static void put_viscosities(un_file *file, const un_particles *p, int64_t first, const void *arg)
{
    (void)first, (void)arg;
    un_file_write_little(file, p->viscosity, (size_t)p->count, sizeof(float));
}

/* An array of all particles, window by window. A rank that does not write takes part. */
static un_status data_particles(vtk_writer *w, const un_particle_stream *stream, unsigned fields,
                                int32_t components, size_t size, put_window *put, const void *arg)
{
    un_particles view;
    if (w->file) data_begin(w, components, stream->count, size);
    for (int64_t at = 0; at < stream->count; at += WINDOW) {
        int64_t end = un_min64(at + WINDOW, stream->count);
        UN_TRY(stream->window(stream->arg, fields, at, end, &view));
        if (w->file) put(w->file, &view, at, arg);
    }
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

static un_status data_of_stream(vtk_writer *w, const un_particle_stream *s, const float *depth,
                                bool mixed)
{
    size_t size = sizeof(float);
    UN_TRY(data_particles(w, s, UN_VELOCITIES, 3, size, put_velocities, NULL));
    UN_TRY(data_particles(w, s, UN_VOLUMES, 1, size, put_volumes, NULL));
    UN_TRY(data_particles(w, s, UN_VOLUMES, 1, size, put_radii, NULL));
    UN_TRY(data_particles(w, s, UN_FLAGS, 1, 1, put_flights, NULL));
    if (depth) UN_TRY(data_particles(w, s, 0, 1, size, put_depths, depth));
    if (s->depth) UN_TRY(data_particles(w, s, UN_DEPTHS, 1, size, put_own_depths, NULL));
    if (mixed) {
        UN_TRY(data_particles(w, s, UN_MATTER, 1, size, put_densities, NULL));
        UN_TRY(data_particles(w, s, UN_MATTER, 1, size, put_viscosities, NULL));
    }
    return data_particles(w, s, UN_PLACES, 3, size, put_places, NULL);
}

static un_status write_stream(un_context *ctx, const char *path, const un_particle_stream *s,
                              const float *depth, bool mixed)
{
    vtk_writer w = {0};
    if (!path) return data_of_stream(&w, s, depth, mixed);
    UN_TRY(un_file_create(ctx, path, &w.file));
    head_particles(&w, s->count, depth || s->depth, mixed);
    un_status status = data_of_stream(&w, s, depth, mixed);
    if (status != UN_OK) {
        un_file_discard(w.file);
        return status;
    }
    data_sequence(&w, 0, 1, s->count);
    data_sequence(&w, 1, 1, s->count);
    return data_end(&w);
}

un_status un_output_particle_stream(un_context *ctx, const char *path,
                                    const un_particle_stream *stream)
{
    return write_stream(ctx, path, stream, NULL, stream->mixed);
}

un_status un_output_particles(un_context *ctx, const char *path, const un_particles *particles,
                              const float *depth)
{
    bool mixed = particles->density != NULL;
    un_particle_stream stream = {particles->count, (void *)particles, view_window, mixed, false};
    return write_stream(ctx, path, &stream, depth, mixed);
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
