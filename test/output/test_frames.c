/* Surfaces, particles and cells read back to what was written. ParaView itself is asked by
 * test/program/paraview.sh. */
#include "room.h"
#include "scratch.h"

static un_vec3 positions[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1.5}};
static un_vec3 normals[] = {{-1, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
static un_vec3 velocities[] = {{0.125, 0, 0}, {1, 2, 3}, {0, -9.81, 0}, {0, 0, NAN}};
static int32_t triangles[][3] = {{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};

static un_trimesh tetrahedron(void)
{
    return (un_trimesh){.vertex_count = 4,
                        .triangle_count = 4,
                        .position = positions,
                        .normal = normals,
                        .velocity = velocities,
                        .triangle = triangles};
}

static const char *behind(const char *text, const char *mark)
{
    const char *found = strstr(text, mark);
    assert_non_null(found);
    return found + strlen(mark);
}

static void ply(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh mesh = tetrahedron();
    char *text;
    size_t size;
    check_ok(ctx, un_output_surface(ctx, scratch_path("s.ply"), &mesh));
    check_ok(ctx, un_file_read(ctx, scratch_path("s.ply"), &text, &size));
    const char *body = behind(text, "end_header\n");
    assert_int_equal(text + size - body, 4 * 36 + 4 * 13);
    behind(text, "element vertex 4\nproperty float x\n");
    behind(text, "property float vz\nelement face 4\nproperty list uchar int vertex_indices\n");
    float vertex[9];
    memcpy(vertex, body + 36, sizeof vertex);
    float expected[9] = {1, 0, 0, 1, 0, 0, 1, 2, 3};
    assert_memory_equal(vertex, expected, sizeof vertex);
    assert_int_equal(body[4 * 36 + 13], 3);
    assert_memory_equal(body + 4 * 36 + 14, triangles[1], 12);
    un_free(ctx, text);

    mesh.normal = mesh.velocity = NULL; /* the layout stays */
    check_ok(ctx, un_output_surface(ctx, scratch_path("s.ply"), &mesh));
    check_ok(ctx, un_file_read(ctx, scratch_path("s.ply"), &text, &size));
    body = behind(text, "end_header\n");
    assert_int_equal(text + size - body, 4 * 36 + 4 * 13);
    memcpy(vertex, body + 36, sizeof vertex);
    float bare[9] = {1, 0, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(vertex, bare, sizeof vertex);
    un_free(ctx, text);
    check_context_end(ctx);
}

/* The bytes of a named array of a VTK XML file, found the way a reader does. */
static const void *vtk_array(const char *text, size_t size, const char *name, uint64_t expected)
{
    char mark[80];
    snprintf(mark, sizeof mark, "Name=\"%s\"", name);
    const char *data = behind(text, "<AppendedData encoding=\"raw\">\n_");
    unsigned long long offset = strtoull(behind(behind(text, mark), "offset=\""), NULL, 10);
    uint64_t bytes;
    assert_true(data + offset + sizeof bytes <= text + size);
    memcpy(&bytes, data + offset, sizeof bytes);
    assert_int_equal(bytes, expected);
    assert_true(data + offset + sizeof bytes + bytes <= text + size);
    return data + offset + sizeof bytes;
}

static float float_at(const void *array, int i)
{
    float value;
    memcpy(&value, (const char *)array + 4 * i, 4);
    return value;
}
static int32_t int_at(const void *array, int i)
{
    int32_t value;
    memcpy(&value, (const char *)array + 4 * i, 4);
    return value;
}

static void particles(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double x[3][3] = {{0.1, 0.2, 0.3}, {1, 2, 3}, {-1, -2, -3}};
    double v[3][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
    float volume[3] = {1e-6f, 2e-6f, 0};
    uint8_t flags[3] = {0, UN_PARTICLE_BALLISTIC, 0xff ^ UN_PARTICLE_APART};
    un_particles set = {.count = 3,
                        .x = {x[0], x[1], x[2]},
                        .v = {v[0], v[1], v[2]},
                        .volume = volume,
                        .flags = flags};
    char *text;
    size_t size;
    check_ok(ctx, un_output_particles(ctx, scratch_path("p.vtp"), &set, NULL));
    check_ok(ctx, un_file_read(ctx, scratch_path("p.vtp"), &text, &size));
    behind(text, "header_type=\"UInt64\"");
    behind(text, "NumberOfPoints=\"3\" NumberOfVerts=\"3\"");
    const void *points = vtk_array(text, size, "Points", 36);
    assert_true(float_at(points, 3) == 0.2f && float_at(points, 5) == -2);
    const void *velocity = vtk_array(text, size, "velocity", 36);
    assert_true(float_at(velocity, 0) == 1 && float_at(velocity, 1) == 4);
    assert_true(float_at(vtk_array(text, size, "volume", 12), 1) == 2e-6f);
    const void *radius = vtk_array(text, size, "radius", 12);
    check_near(4 * UN_PI / 3 * pow(float_at(radius, 0), 3), 1e-6, 1e-12);
    assert_true(float_at(radius, 2) == 0);
    assert_memory_equal(vtk_array(text, size, "ballistic", 3), "\0\1\0", 3);
    const void *connectivity = vtk_array(text, size, "connectivity", 12);
    const void *offsets = vtk_array(text, size, "offsets", 12);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(int_at(connectivity, i), i);
        assert_int_equal(int_at(offsets, i), i + 1);
    }
    assert_string_equal(text + size - 28, "\n</AppendedData>\n</VTKFile>\n");
    un_free(ctx, text);
    check_context_end(ctx);
}

/* Depths come back, and with them what has landed; so does what mixed liquid carries. */
static void particles_with_more(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    double zero[3] = {0};
    float volume[3] = {1, 1, 1}, depth[3] = {-0.5f, 0.25f, -0.125f};
    uint8_t flags[3] = {0, UN_PARTICLE_BALLISTIC, UN_PARTICLE_LANDED};
    un_particles set = {.count = 3,
                        .x = {zero, zero, zero},
                        .v = {zero, zero, zero},
                        .volume = volume,
                        .flags = flags},
                 found;
    check_ok(ctx, un_output_particles(ctx, scratch_path("p.vtp"), &set, depth));
    check_ok(ctx, un_output_read_particles(ctx, scratch_path("p.vtp"), &found));
    assert_memory_equal(found.depth, depth, sizeof depth);
    assert_memory_equal(found.flags, flags, sizeof flags);
    un_particles_free(ctx, &found);
    check_ok(ctx, un_output_particles(ctx, scratch_path("p.vtp"), &set, NULL));
    check_ok(ctx, un_output_read_particles(ctx, scratch_path("p.vtp"), &found));
    assert_null(found.depth);
    assert_null(found.density);
    un_particles_free(ctx, &found);
    float density[3] = {1000, 900, 800}, viscosity[3] = {0, 0.5f, 100};
    set.density = density, set.viscosity = viscosity;
    check_ok(ctx, un_output_particles(ctx, scratch_path("p.vtp"), &set, depth));
    check_ok(ctx, un_output_read_particles(ctx, scratch_path("p.vtp"), &found));
    assert_memory_equal(found.density, density, sizeof density);
    assert_memory_equal(found.viscosity, viscosity, sizeof viscosity);
    assert_memory_equal(found.depth, depth, sizeof depth);
    un_particles_free(ctx, &found);
    check_context_end(ctx);
}

static void surface_vtp(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh mesh = tetrahedron();
    char *text;
    size_t size;
    check_ok(ctx, un_output_surface_vtp(ctx, scratch_path("s.vtp"), &mesh));
    check_ok(ctx, un_file_read(ctx, scratch_path("s.vtp"), &text, &size));
    assert_true(float_at(vtk_array(text, size, "Points", 48), 11) == 1.5f);
    assert_true(float_at(vtk_array(text, size, "normal", 48), 0) == -1);
    assert_true(float_at(vtk_array(text, size, "velocity", 48), 7) == -9.81f);
    assert_memory_equal(vtk_array(text, size, "connectivity", 48), triangles, 48);
    assert_int_equal(int_at(vtk_array(text, size, "offsets", 16), 3), 12);
    un_free(ctx, text);
    check_context_end(ctx);
}

/* A voxel, a hexahedron on top of it, a tet beside it and the quad between the first two: of every
 * number of corners. */
static un_status make_cells(un_context *ctx, un_cells *cells)
{
    static const int32_t corners[] = {0, 1, 2,  3,  4, 5, 6, 7,  4, 5, 7, 6,
                                      8, 9, 11, 10, 1, 3, 5, 12, 4, 5, 7, 6};
    static const int32_t first[] = {0, 8, 16, 20, 24};
    static const uint8_t types[] = {UN_CELL_VOXEL, UN_CELL_HEXAHEDRON, UN_CELL_TETRA, UN_CELL_QUAD};
    UN_TRY(un_cells_alloc(ctx, cells, 13, 4, 24));
    for (int i = 0; i < 13; i++)
        cells->point[i] = i < 12
                              ? un_v3(0.3 + 0.1 * (i & 1), 0.7 + 0.1 * (i >> 1 & 1), 0.1 * (i >> 2))
                              : un_v3(0.5, 0.75, 0);
    memcpy(cells->corner, corners, sizeof corners);
    memcpy(cells->first, first, sizeof first);
    memcpy(cells->type, types, sizeof types);
    for (int c = 0; c < 4; c++) {
        cells->level[c] = 3 - c;
        cells->pressure[c] = 1000.0 * c;
        cells->velocity[c] = un_v3(c, 0, -c);
    }
    return UN_OK;
}

static void cells_of_any_kind(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_cells cells, again;
    check_ok(ctx, make_cells(ctx, &cells));
    char *text;
    size_t size;
    check_ok(ctx, un_output_cells(ctx, scratch_path("m.vtu"), &cells));
    check_ok(ctx, un_file_read(ctx, scratch_path("m.vtu"), &text, &size));
    behind(text, "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\"");
    behind(text, "NumberOfPoints=\"13\" NumberOfCells=\"4\"");
    const void *points = vtk_array(text, size, "Points", 13 * 12);
    for (int i = 0; i < 13; i++) check_near(float_at(points, 3 * i), cells.point[i].x, 1e-6);
    assert_memory_equal(vtk_array(text, size, "connectivity", 24 * 4), cells.corner, 24 * 4);
    assert_memory_equal(vtk_array(text, size, "offsets", 16), cells.first + 1, 16);
    assert_memory_equal(vtk_array(text, size, "types", 4), "\x0b\x0c\x0a\x09", 4);
    assert_int_equal(int_at(vtk_array(text, size, "level", 16), 1), 2);
    assert_true(float_at(vtk_array(text, size, "pressure", 16), 3) == 3000);
    assert_true(float_at(vtk_array(text, size, "velocity", 48), 5) == -1);
    un_free(ctx, text);
    check_ok(ctx, un_output_read_cells(ctx, scratch_path("m.vtu"), &again));
    assert_int_equal(again.count, 4);
    assert_int_equal(again.point_count, 13);
    assert_memory_equal(again.corner, cells.corner, 24 * 4);
    assert_memory_equal(again.first, cells.first, 5 * 4);
    assert_memory_equal(again.type, cells.type, 4);
    assert_memory_equal(again.level, cells.level, 16);
    check_near(again.velocity[3].z, -3, 0);
    check_near(again.point[12].y, 0.75, 0);
    un_cells_free(ctx, &again);
    /* what is no cell is not read */
    cells.type[2] = 7;
    check_ok(ctx, un_output_cells(ctx, scratch_path("m.vtu"), &cells));
    assert_int_equal(un_output_read_cells(ctx, scratch_path("m.vtu"), &again), UN_ERROR_FILE);
    check_message(ctx, "m.vtu: a cell is of an unknown type");
    un_cells_free(ctx, &cells);
    check_context_end(ctx);
}

static void nothing_at_all(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    char *text;
    size_t size;
    check_ok(ctx, un_output_surface(ctx, scratch_path("e.ply"), &(un_trimesh){0}));
    check_ok(ctx, un_output_surface_vtp(ctx, scratch_path("e.vtp"), &(un_trimesh){0}));
    check_ok(ctx, un_output_particles(ctx, scratch_path("p.vtp"), &(un_particles){0}, NULL));
    check_ok(ctx, un_output_cells(ctx, scratch_path("m.vtu"), &(un_cells){0}));
    check_ok(ctx, un_file_read(ctx, scratch_path("p.vtp"), &text, &size));
    vtk_array(text, size, "offsets", 0);
    un_free(ctx, text);
    check_ok(ctx, un_output_pvd(ctx, scratch_path("e.pvd"), "surface.vtp", 0, 24));
    check_context_end(ctx);
}

static void collection(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    char *text;
    check_ok(ctx, un_output_pvd(ctx, scratch_path("s.pvd"), "surface.vtp", 12001, 24));
    check_ok(ctx, un_file_read(ctx, scratch_path("s.pvd"), &text, NULL));
    behind(text, "timestep=\"0\" group=\"\" part=\"0\" file=\"frames/0000/surface.vtp\"");
    behind(text, "timestep=\"0.5\" group=\"\" part=\"0\" file=\"frames/0012/surface.vtp\"");
    behind(text, "timestep=\"500\" group=\"\" part=\"0\" file=\"frames/12000/surface.vtp\"");
    un_free(ctx, text);
    check_context_end(ctx);
}

static void full_disk(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh mesh = tetrahedron();
    const char *path = scratch_path("full");
    un_particles none = {0};
    un_cells no_cells = {0};
    room_for_files(10);
    un_status status[] = {
        un_output_surface(ctx, path, &mesh), un_output_surface_vtp(ctx, path, &mesh),
        un_output_cells(ctx, path, &no_cells), un_output_particles(ctx, path, &none, NULL),
        un_output_pvd(ctx, path, "a", 3, 24)};
    room_for_files(RLIM_INFINITY);
    for (int i = 0; i < 5; i++) assert_int_equal(status[i], UN_ERROR_FILE);
    check_message(ctx, "/full: File too large; ");
    assert_int_equal(scratch_entries(), 0);
    assert_int_equal(un_output_surface(ctx, scratch_path("gone/s.ply"), &mesh), UN_ERROR_FILE);
    check_context_end(ctx);
}

static un_status whole_frame(un_context *ctx, void *arg)
{
    (void)arg;
    un_trimesh mesh = tetrahedron();
    un_cells cells;
    UN_TRY(un_output_surface(ctx, scratch_path("s.ply"), &mesh));
    UN_TRY(un_output_surface_vtp(ctx, scratch_path("s.vtp"), &mesh));
    UN_TRY(un_output_particles(ctx, scratch_path("p.vtp"), &(un_particles){0}, NULL));
    UN_TRY(make_cells(ctx, &cells));
    un_status status = un_output_cells(ctx, scratch_path("m.vtu"), &cells);
    un_cells_free(ctx, &cells);
    UN_TRY(status);
    return un_output_pvd(ctx, scratch_path("s.pvd"), "surface.vtp", 3, 24);
}

static void failing_allocations(void **state)
{
    (void)state;
    check_allocation_failures(whole_frame, NULL, 60);
    assert_int_equal(scratch_entries(), 5);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_begin, scratch_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ply),         TEST(particles),         TEST(particles_with_more),
        TEST(surface_vtp), TEST(cells_of_any_kind), TEST(nothing_at_all),
        TEST(collection),  TEST(full_disk),         TEST(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
