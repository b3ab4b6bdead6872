/* A stuffed mesh as cells for a file. */
#include "mesh/mesh.h"

typedef struct cells_args {
    un_cells *out;
    const un_stuffing *mesh;
    un_vec3 offset;
} cells_args;

static void write_points(void *arg, int64_t begin, int64_t end)
{
    cells_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->out->point[n] = un_add(a->mesh->x[n], a->offset);
}

static void write_cell(un_cells *out, int64_t c, un_cell_type type, int64_t first,
                       const int32_t *corner)
{
    int32_t corners = un_cell_corners((int32_t)type);
    memcpy(out->corner + first, corner, (size_t)corners * sizeof *corner);
    out->first[c + 1] = (int32_t)first + corners;
    out->type[c] = (uint8_t)type;
}

static void write_tets(void *arg, int64_t begin, int64_t end)
{
    cells_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        write_cell(a->out, t, UN_CELL_TETRA, 4 * t, a->mesh->tet[t]);
        a->out->level[t] = a->mesh->level[t];
        a->out->tag[t] = UN_BEHIND_TET;
    }
}

static void write_boundary(void *arg, int64_t begin, int64_t end)
{
    cells_args *a = arg;
    const un_stuffing *mesh = a->mesh;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = mesh->boundary[b];
        int64_t c = mesh->tet_count + b;
        write_cell(a->out, c, UN_CELL_TRIANGLE, 4 * (int64_t)mesh->tet_count + 3 * b,
                   mesh->face[f]);
        a->out->level[c] = mesh->level[mesh->face_tet[f][0]];
        a->out->tag[c] = mesh->face_behind[f];
    }
}

un_status un_cells_tagged(un_context *ctx, un_cells *cells, const un_stuffing *mesh, un_vec3 offset)
{
    cells_args a = {cells, mesh, offset};
    int64_t tets = mesh->tet_count, triangles = mesh->boundary_count,
            corners = 4 * tets + 3 * triangles;
    if (corners > INT32_MAX)
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "a mesh of %lld tets is too large to write; make its size larger",
                       (long long)tets);
    UN_TRY(un_cells_alloc_tagged(ctx, cells, mesh->node_count, tets + triangles, corners));
    un_parallel_for(ctx, mesh->node_count, 16384, write_points, &a);
    un_parallel_for(ctx, tets, 16384, write_tets, &a);
    un_parallel_for(ctx, triangles, 16384, write_boundary, &a);
    return UN_OK;
}
