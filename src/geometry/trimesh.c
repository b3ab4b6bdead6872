/* Triangle meshes: reading files of any format. */
#include "geometry/meshfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

void un_trimesh_free(un_context *ctx, un_trimesh *mesh)
{
    un_free(ctx, mesh->position);
    un_free(ctx, mesh->normal);
    un_free(ctx, mesh->velocity);
    un_free(ctx, mesh->triangle);
    *mesh = (un_trimesh){0};
}

/* ---- shared by the readers ---- */

static un_status fail_at(const mesh_file *file, const char *where, const char *format,
                         va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    return un_fail(file->ctx, UN_ERROR_FILE, "%s%s: %s", file->path, where, text);
}

un_status mesh_fail_line(const mesh_file *file, int64_t line, const char *format, ...)
{
    char where[32];
    snprintf(where, sizeof where, ":%lld", (long long)line);
    va_list arguments;
    va_start(arguments, format);
    un_status status = fail_at(file, where, format, arguments);
    va_end(arguments);
    return status;
}

un_status mesh_fail_byte(const mesh_file *file, size_t byte, const char *format, ...)
{
    char where[40];
    snprintf(where, sizeof where, ": byte %zu", byte);
    va_list arguments;
    va_start(arguments, format);
    un_status status = fail_at(file, where, format, arguments);
    va_end(arguments);
    return status;
}

bool mesh_coordinate_ok(un_vec3 x)
{
    return fabs(x.x) <= MESH_COORDINATE_MAX && fabs(x.y) <= MESH_COORDINATE_MAX &&
           fabs(x.z) <= MESH_COORDINATE_MAX;
}

static un_status fail_size(const mesh_file *file, const char *what)
{
    return un_fail(file->ctx, UN_ERROR_FILE,
                   "%s: more than %d %s; reduce the mesh in a modelling program", file->path,
                   INT32_MAX, what);
}

un_status mesh_file_add_vertex(mesh_file *file, un_vec3 x)
{
    if (file->vertex_count >= INT32_MAX) return fail_size(file, "vertices");
    if (file->vertex_count == file->vertex_capacity)
        UN_TRY(un_array_reserve(file->ctx, (void **)&file->position, &file->vertex_capacity,
                                file->vertex_count + 256, sizeof *file->position));
    file->position[file->vertex_count++] = x;
    return UN_OK;
}

un_status mesh_file_add_triangle(mesh_file *file, int64_t a, int64_t b, int64_t c)
{
    if (file->triangle_count >= INT32_MAX) return fail_size(file, "triangles");
    if (file->triangle_count == file->triangle_capacity)
        UN_TRY(un_array_reserve(file->ctx, (void **)&file->triangle, &file->triangle_capacity,
                                file->triangle_count + 256, sizeof *file->triangle));
    int32_t *t = file->triangle[file->triangle_count++];
    t[0] = (int32_t)a;
    t[1] = (int32_t)b;
    t[2] = (int32_t)c;
    return UN_OK;
}

/* ---- bytes ---- */

static un_status fail_errno(const mesh_file *file, const char *what)
{
    return un_fail(file->ctx, UN_ERROR_FILE, "%s: cannot %s: %s; check the name and permissions",
                   file->path, what, strerror(errno));
}

static un_status read_open_file(mesh_file *file, int fd, char **bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return fail_errno(file, "look at it");
    if (S_ISDIR(info.st_mode))
        return un_fail(file->ctx, UN_ERROR_FILE, "%s: is a folder; name a mesh file in it",
                       file->path);
    if (!S_ISREG(info.st_mode))
        return un_fail(file->ctx, UN_ERROR_FILE, "%s: is not a regular file; name a mesh file",
                       file->path);
    size_t size = (size_t)info.st_size, done = 0;
    *bytes = un_alloc(file->ctx, size + 1, 1);
    if (!*bytes) return UN_ERROR_MEMORY;
    while (done < size) {
        ssize_t got = read(fd, *bytes + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(file, "read");
        if (got == 0) break; /* the file became shorter: the readers notice */
        done += (size_t)got;
    }
    (*bytes)[done] = 0;
    file->bytes = *bytes;
    file->size = done;
    if (done == 0)
        return un_fail(file->ctx, UN_ERROR_FILE, "%s: is empty; export the mesh again", file->path);
    return UN_OK;
}

static un_status read_bytes(mesh_file *file, char **bytes)
{
    /* Do not wait for the other end of a pipe. */
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_errno(file, "open");
    un_status status = read_open_file(file, fd, bytes);
    close(fd);
    return status;
}

/* ---- formats ---- */

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcasecmp(path + n - m, suffix) == 0;
}

static bool is_ply(const mesh_file *file)
{
    return file->size >= 4 && memcmp(file->bytes, "ply", 3) == 0 &&
           (file->bytes[3] == '\n' || file->bytes[3] == '\r' || file->bytes[3] == ' ');
}

/* OFF, with any of the prefixes ST, C, N, 4, n. */
static bool is_off(const mesh_file *file)
{
    mesh_text text = mesh_text_start(file);
    if (!mesh_text_space(&text, true)) return false;
    if (text.end - text.at >= 2 && memcmp(text.at, "ST", 2) == 0) text.at += 2;
    while (text.at < text.end && strchr("CN4n", *text.at) && *text.at) text.at++;
    return text.end - text.at >= 3 && memcmp(text.at, "OFF", 3) == 0;
}

static bool is_ascii_stl(const mesh_file *file)
{
    mesh_text text = mesh_text_start(file);
    return mesh_text_space(&text, false) && mesh_text_word(&text, "solid");
}

/* Is the first line with content a line of OBJ? */
static bool is_obj(const mesh_file *file)
{
    static const char *words[] = {"v", "vt", "vn", "vp",     "f",      "o",
                                  "g", "s",  "l",  "mtllib", "usemtl", "p"};
    mesh_text text = mesh_text_start(file);
    if (!mesh_text_space(&text, true)) return false;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (mesh_text_word(&text, words[w])) return true;
    return false;
}

typedef un_status mesh_reader(mesh_file *file);

static mesh_reader *find_reader(const mesh_file *file)
{
    if (is_ply(file)) return mesh_read_ply;
    if (mesh_is_binary_stl(file)) return mesh_read_stl;
    if (is_off(file)) return mesh_read_off;
    if (is_ascii_stl(file)) return mesh_read_stl;
    if (is_obj(file)) return mesh_read_obj;
    if (has_suffix(file->path, ".ply")) return mesh_read_ply;
    if (has_suffix(file->path, ".obj")) return mesh_read_obj;
    if (has_suffix(file->path, ".stl")) return mesh_read_stl;
    if (has_suffix(file->path, ".off")) return mesh_read_off;
    return NULL;
}

static un_status read_mesh(mesh_file *file)
{
    mesh_reader *read = find_reader(file);
    if (!read)
        return un_fail(file->ctx, UN_ERROR_FILE,
                       "%s: is not a mesh file by its contents or its name; export it as PLY, "
                       "OBJ, STL or OFF",
                       file->path);
    UN_TRY(read(file));
    if (file->triangle_count == 0)
        return un_fail(file->ctx, UN_ERROR_FILE,
                       "%s: holds no triangles (%zu vertices); export a surface, not a point cloud",
                       file->path, file->vertex_count);
    return UN_OK;
}

un_status un_trimesh_load(un_context *ctx, const char *path, un_trimesh *mesh)
{
    *mesh = (un_trimesh){0};
    mesh_file file = {.ctx = ctx, .path = path};
    char *bytes = NULL;
    file.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!file.locale) return un_fail_memory(ctx, 0);
    un_status status = read_bytes(&file, &bytes);
    if (status == UN_OK) status = read_mesh(&file);
    freelocale(file.locale);
    un_free(ctx, bytes);
    *mesh = (un_trimesh){(int32_t)file.vertex_count,
                         (int32_t)file.triangle_count,
                         file.position,
                         file.normal,
                         file.velocity,
                         file.triangle};
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    return status;
}
