/* Drops as ready-made spheres, a little stretched along their motion: an icosahedron, with each
 * face cut into four unless the drop is small.
 *
 * Spray is thousands of particles that touch nothing. Meshing each through a level set takes some
 * hundred nodes; a sphere only needs to be copied. */
#include "surface/hulls.h"

enum { CORNERS = 12, VERTICES_MAX = 42, TRIANGLES_MAX = 80 };

typedef struct ball {
    un_vec3 x[VERTICES_MAX]; /* of a unit sphere */
    int32_t triangle[TRIANGLES_MAX][3];
    double scale; /* so that the flat triangles enclose the sphere's volume */
    int32_t vertex_count, triangle_count;
} ball;

/* The vertex between two others, created on first use. */
static int32_t middle(ball *b, int32_t i, int32_t j, int32_t between[CORNERS][CORNERS])
{
    int32_t *m = &between[i < j ? i : j][i < j ? j : i];
    if (*m < 0) {
        *m = b->vertex_count;
        b->x[b->vertex_count++] = un_normalize(un_add(b->x[i], b->x[j]));
    }
    return *m;
}

/* Corners (0, +-1, +-g) and their rotations, g the golden ratio; faces join corners at distance
 * two. */
static void make_ball(ball *b, bool fine)
{
    double g = 0.5 * (1 + sqrt(5));
    int32_t between[CORNERS][CORNERS];
    memset(between, -1, sizeof between);
    *b = (ball){.vertex_count = CORNERS};
    for (int32_t i = 0; i < CORNERS; i++) {
        double one = i & 1 ? 1 : -1, long_one = i & 2 ? g : -g;
        b->x[i] = i / 4 == 0   ? un_v3(0, one, long_one)
                  : i / 4 == 1 ? un_v3(one, long_one, 0)
                               : un_v3(long_one, 0, one);
    }
    double near = 4 + 1e-9;
    un_vec3 corner[CORNERS];
    memcpy(corner, b->x, sizeof corner);
    for (int32_t i = 0; i < CORNERS; i++) b->x[i] = un_normalize(b->x[i]);
    for (int32_t i = 0; i < CORNERS; i++)
        for (int32_t j = i + 1; j < CORNERS; j++)
            for (int32_t k = j + 1; k < CORNERS; k++) {
                un_vec3 ij = un_sub(corner[j], corner[i]), ik = un_sub(corner[k], corner[i]);
                un_vec3 jk = un_sub(ik, ij);
                if (un_dot(ij, ij) > near || un_dot(ik, ik) > near || un_dot(jk, jk) > near)
                    continue;
                bool outward = un_dot(un_cross(ij, ik), corner[i]) > 0;
                int32_t p = i, q = outward ? j : k, r = outward ? k : j;
                if (!fine) {
                    int32_t *one = b->triangle[b->triangle_count++];
                    one[0] = p, one[1] = q, one[2] = r;
                    continue;
                }
                int32_t pq = middle(b, p, q, between), qr = middle(b, q, r, between);
                int32_t rp = middle(b, r, p, between);
                int32_t four[4][3] = {{p, pq, rp}, {pq, q, qr}, {rp, qr, r}, {pq, qr, rp}};
                memcpy(b->triangle[b->triangle_count], four, sizeof four);
                b->triangle_count += 4;
            }
    UN_ASSERT(b->vertex_count == (fine ? 42 : 12) && b->triangle_count == (fine ? 80 : 20));
    double volume = 0;
    for (int32_t t = 0; t < b->triangle_count; t++) {
        const int32_t *v = b->triangle[t];
        volume += un_dot(b->x[v[0]], un_cross(b->x[v[1]], b->x[v[2]])) / 6;
    }
    b->scale = cbrt(4.0 / 3 * UN_PI / volume);
    UN_ASSERT(b->scale < UN_SPHERE_CORNER);
}

typedef struct drop_args {
    un_trimesh *mesh;
    const un_drop *drops;
    int32_t (*first)[2]; /* by drop: first vertex, first triangle */
    double small;
    ball balls[2]; /* coarse, fine */
} drop_args;

static const ball *ball_for(const drop_args *a, const un_drop *drop)
{
    return &a->balls[drop->radius >= a->small];
}

static void write_drops(void *arg, int64_t begin, int64_t end)
{
    drop_args *a = arg;
    for (int64_t i = begin; i < end; i++) {
        const un_drop *drop = &a->drops[i];
        int32_t v = a->first[i][0], t = a->first[i][1];
        const ball *b = ball_for(a, drop);
        un_vec3 way = un_normalize(drop->velocity);
        double stretch = un_dot(way, way) > 0 ? drop->stretch : 0;
        double along = 1 + stretch * (UN_DROP_LONGEST - 1), across = 1 / sqrt(along);
        double radius = drop->radius * b->scale;
        for (int32_t n = 0; n < b->vertex_count; n++) {
            un_vec3 x = b->x[n];
            double part = un_dot(x, way);
            un_vec3 out = un_mad(un_scale(x, across), way, part * (along - across));
            un_vec3 normal = un_mad(un_scale(x, 1 / across), way, part * (1 / along - 1 / across));
            a->mesh->position[v + n] = un_mad(drop->x, out, radius);
            a->mesh->normal[v + n] = un_normalize(normal);
            a->mesh->velocity[v + n] = drop->velocity;
        }
        for (int32_t n = 0; n < b->triangle_count; n++)
            for (int32_t c = 0; c < 3; c++) a->mesh->triangle[t + n][c] = v + b->triangle[n][c];
    }
}

static un_status grow(un_context *ctx, void **array, size_t count, size_t size)
{
    void *moved = un_realloc(ctx, *array, count, size);
    if (!moved) return UN_ERROR_MEMORY;
    *array = moved;
    return UN_OK;
}

un_status un_surface_add_drops(un_context *ctx, un_arena *arena, un_trimesh *mesh,
                               const un_drop *drops, int32_t count, double small)
{
    if (count == 0) return UN_OK;
    drop_args a = {.mesh = mesh, .drops = drops, .small = small};
    make_ball(&a.balls[0], false);
    make_ball(&a.balls[1], true);
    a.first = un_arena_alloc(arena, (size_t)count, sizeof *a.first);
    if (!a.first) return UN_ERROR_MEMORY;
    int64_t vertices = mesh->vertex_count, triangles = mesh->triangle_count;
    for (int32_t i = 0; i < count; i++) {
        const ball *b = ball_for(&a, &drops[i]);
        a.first[i][0] = (int32_t)vertices, a.first[i][1] = (int32_t)triangles;
        vertices += b->vertex_count;
        triangles += b->triangle_count;
        if (triangles > INT32_MAX)
            return un_fail(ctx, UN_ERROR_MEMORY,
                           "the surface has more than 2.1e9 triangles, which cannot be numbered; "
                           "lower detail.surface or detail.finest");
    }
    size_t n = (size_t)vertices;
    UN_TRY(grow(ctx, (void **)&mesh->position, n, sizeof *mesh->position));
    UN_TRY(grow(ctx, (void **)&mesh->normal, n, sizeof *mesh->normal));
    UN_TRY(grow(ctx, (void **)&mesh->velocity, n, sizeof *mesh->velocity));
    UN_TRY(grow(ctx, (void **)&mesh->triangle, (size_t)triangles, sizeof *mesh->triangle));
    un_parallel_for(ctx, count, 256, write_drops, &a);
    mesh->vertex_count = (int32_t)vertices;
    mesh->triangle_count = (int32_t)triangles;
    return UN_OK;
}
