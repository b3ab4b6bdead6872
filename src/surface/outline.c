/* The outline of a flat mesh: sides that belong to only one triangle, joined into loops. */
#include "surface/surface.h"

/* A side of a triangle, listed by its lesser vertex. */
typedef struct side {
    int32_t from, to, later; /* later: another side of the same lesser vertex, -1 none */
} side;

void un_outline_free(un_context *ctx, un_outline *outline)
{
    un_free(ctx, outline->vertex);
    un_free(ctx, outline->first);
    un_free(ctx, outline->normal);
    *outline = (un_outline){0};
}

bool un_surface_is_flat(const un_trimesh *mesh)
{
    for (int32_t v = 0; v < mesh->vertex_count; v++)
        if (mesh->position[v].z != 0) return false;
    return mesh->vertex_count > 0;
}

/* next[v]: the vertex after v along the outline, -1 where v is inside. */
static void find_next(const un_trimesh *mesh, side *sides, int32_t *head, int32_t *next)
{
    for (int32_t v = 0; v < mesh->vertex_count; v++) head[v] = next[v] = -1;
    for (int32_t t = 0; t < mesh->triangle_count; t++)
        for (int c = 0; c < 3; c++) {
            int32_t from = mesh->triangle[t][c], to = mesh->triangle[t][(c + 1) % 3];
            int32_t *link = &head[from < to ? from : to];
            while (*link >= 0 && !(sides[*link].from == to && sides[*link].to == from))
                link = &sides[*link].later;
            if (*link >= 0) {
                *link = sides[*link].later; /* shared with another triangle: not outline */
            } else {
                sides[3 * t + c] = (side){from, to, -1};
                *link = 3 * t + c;
            }
        }
    for (int32_t v = 0; v < mesh->vertex_count; v++)
        for (int32_t s = head[v]; s >= 0; s = sides[s].later) next[sides[s].from] = sides[s].to;
}

/* Normals of a loop: at each vertex the mean of its two lines' normals. */
static void find_normals(un_outline *o, const un_trimesh *mesh, int32_t begin, int32_t end)
{
    const un_vec3 *x = mesh->position;
    for (int32_t n = begin; n < end; n++) {
        un_vec3 at = x[o->vertex[n]], after = x[o->vertex[n + 1 < end ? n + 1 : begin]];
        un_vec3 before = x[o->vertex[n > begin ? n - 1 : end - 1]];
        un_vec3 in = un_normalize(un_sub(at, before)), out = un_normalize(un_sub(after, at));
        o->normal[n] = un_normalize(un_v3(in.y + out.y, -in.x - out.x, 0));
    }
}

un_status un_outline_create(un_context *ctx, const un_trimesh *mesh, un_outline *o)
{
    side *sides = NULL;
    int32_t *head = NULL, *next = NULL;
    un_status status = UN_OK;
    *o = (un_outline){0};
    size_t vertices = (size_t)mesh->vertex_count + 1;
    UN_ALLOC_DONE(ctx, sides, 3 * (size_t)mesh->triangle_count + 1);
    UN_ALLOC_DONE(ctx, head, vertices);
    UN_ALLOC_DONE(ctx, next, vertices);
    find_next(mesh, sides, head, next);
    for (int32_t v = 0; v < mesh->vertex_count; v++) o->vertex_count += next[v] >= 0;
    UN_ALLOC_DONE(ctx, o->vertex, o->vertex_count + 1);
    UN_ALLOC_DONE(ctx, o->normal, o->vertex_count + 1);
    UN_ALLOC_DONE(ctx, o->first, o->vertex_count + 1);
    int32_t at = 0;
    for (int32_t v = 0; v < mesh->vertex_count; v++) {
        if (next[v] < 0) continue;
        o->first[o->loop_count] = at;
        for (int32_t w = v; next[w] >= 0;) {
            int32_t after = next[w];
            o->vertex[at++] = w;
            next[w] = -1;
            w = after;
        }
        find_normals(o, mesh, o->first[o->loop_count++], at);
    }
    o->first[o->loop_count] = at;
done:
    un_free(ctx, sides);
    un_free(ctx, head);
    un_free(ctx, next);
    if (status != UN_OK) un_outline_free(ctx, o);
    return status;
}
