/* Meshes that the geometry tests share. */
#ifndef UN_TEST_GEOMETRY_MESHES_H
#define UN_TEST_GEOMETRY_MESHES_H

#include "check.h"
#include "geometry/geometry.h"

static inline un_trimesh mesh_empty(un_context *ctx, int32_t vertex_count, int32_t triangle_count)
{
    un_trimesh m = {.vertex_count = vertex_count, .triangle_count = triangle_count};
    m.position = un_alloc(ctx, (size_t)vertex_count + 1, sizeof *m.position);
    m.triangle = un_alloc(ctx, (size_t)triangle_count + 1, sizeof *m.triangle);
    assert_true(m.position && m.triangle);
    return m;
}

static inline void mesh_set(un_trimesh *m, int32_t t, int32_t a, int32_t b, int32_t c)
{
    m->triangle[t][0] = a;
    m->triangle[t][1] = b;
    m->triangle[t][2] = c;
}

/* A ball of radius 1 + bumps of height `bump` about the origin, n rings of 2 n vertices. */
static inline un_trimesh mesh_ball(un_context *ctx, int32_t n, double bump)
{
    int32_t columns = 2 * n, v = 0, t = 0;
    un_trimesh m = mesh_empty(ctx, (n - 1) * columns + 2, 2 * columns * (n - 1));
    for (int32_t i = 1; i < n; i++)
        for (int32_t j = 0; j < columns; j++) {
            double a = UN_PI * i / n, b = 2 * UN_PI * j / columns;
            double r = 1 + bump * sin(9 * a) * sin(8 * b);
            m.position[v++] = un_v3(r * sin(a) * cos(b), r * cos(a), -r * sin(a) * sin(b));
        }
    int32_t top = v, bottom = v + 1, last = (n - 2) * columns;
    m.position[top] = un_v3(0, 1, 0);
    m.position[bottom] = un_v3(0, -1, 0);
    for (int32_t j = 0; j < columns; j++) {
        int32_t k = (j + 1) % columns;
        mesh_set(&m, t++, top, j, k);
        mesh_set(&m, t++, bottom, last + k, last + j);
        for (int32_t i = 0; i < n - 2; i++) {
            int32_t a = i * columns + j, b = a + columns, d = i * columns + k, c = d + columns;
            mesh_set(&m, t++, a, b, c);
            mesh_set(&m, t++, a, c, d);
        }
    }
    assert_int_equal(t, m.triangle_count);
    return m;
}

/* The unit cube, moved. */
static inline un_trimesh mesh_cube(un_context *ctx, un_vec3 at)
{
    static const int32_t quads[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                        {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
    un_trimesh m = mesh_empty(ctx, 8, 12);
    for (int i = 0; i < 8; i++) m.position[i] = un_add(at, un_v3(i & 1, i >> 1 & 1, i >> 2));
    for (int f = 0; f < 6; f++) {
        mesh_set(&m, 2 * f, quads[f][0], quads[f][1], quads[f][2]);
        mesh_set(&m, 2 * f + 1, quads[f][0], quads[f][2], quads[f][3]);
    }
    return m;
}

static inline void mesh_turn(un_trimesh *m)
{
    for (int32_t t = 0; t < m->triangle_count; t++)
        mesh_set(m, t, m->triangle[t][0], m->triangle[t][2], m->triangle[t][1]);
}

/* Both meshes in one; both are freed. */
static inline un_trimesh mesh_join(un_context *ctx, un_trimesh *a, un_trimesh *b)
{
    un_trimesh m =
        mesh_empty(ctx, a->vertex_count + b->vertex_count, a->triangle_count + b->triangle_count);
    memcpy(m.position, a->position, (size_t)a->vertex_count * sizeof *m.position);
    memcpy(m.position + a->vertex_count, b->position, (size_t)b->vertex_count * sizeof *m.position);
    memcpy(m.triangle, a->triangle, (size_t)a->triangle_count * sizeof *m.triangle);
    for (int32_t t = 0; t < b->triangle_count; t++)
        for (int i = 0; i < 3; i++)
            m.triangle[a->triangle_count + t][i] = b->triangle[t][i] + a->vertex_count;
    un_trimesh_free(ctx, a);
    un_trimesh_free(ctx, b);
    return m;
}

/* Three vertices of its own for every triangle, as STL has them; m is freed. */
static inline un_trimesh mesh_soup(un_context *ctx, un_trimesh *m)
{
    un_trimesh s = mesh_empty(ctx, 3 * m->triangle_count, m->triangle_count);
    for (int32_t t = 0; t < m->triangle_count; t++) {
        for (int i = 0; i < 3; i++) s.position[3 * t + i] = m->position[m->triangle[t][i]];
        mesh_set(&s, t, 3 * t, 3 * t + 1, 3 * t + 2);
    }
    un_trimesh_free(ctx, m);
    return s;
}

#endif
