/* A mesh file, read and asked for distances. */
#include "fuzz.h"
#include "geometry/geometry.h"

static inline int fuzz_mesh(const uint8_t *bytes, size_t count, const char *extension)
{
    un_context *ctx = fuzz_context();
    const char *path = fuzz_file(bytes, count, extension);
    un_trimesh mesh;
    un_status status = un_trimesh_load(ctx, path, &mesh);
    unlink(path);
    if (status == UN_OK) {
        for (int32_t t = 0; t < mesh.triangle_count; t++)
            for (int c = 0; c < 3; c++)
                FUZZ_REQUIRE(mesh.triangle[t][c] >= 0 && mesh.triangle[t][c] < mesh.vertex_count);
        for (int32_t v = 0; v < mesh.vertex_count; v++) FUZZ_REQUIRE(un_finite3(mesh.position[v]));
        un_trimesh_free(ctx, &mesh);
    } else {
        FUZZ_REQUIRE(*un_context_message(ctx));
    }
    fuzz_context_end(ctx);
    return 0;
}
