/* Tet meshes, uniform and graded, for the tests of level sets on them. */
#ifndef UN_TEST_SURFACE_MESHES_H
#define UN_TEST_SURFACE_MESHES_H

#include "mesh/trees.h"
#include "surface/fields.h"

typedef struct mesh_case {
    un_context *ctx;
    un_arena arena;
    un_octree tree;
    un_tets mesh;
    float *phi;
} mesh_case;

/* points: where the finest leaves shall be, with two more leaves around; none: everywhere. */
static inline void case_begin(mesh_case *c, int32_t threads, un_vec3 size, int32_t coarsest,
                              int32_t finest, const un_vec3 *point, int64_t point_count)
{
    memset(c, 0, sizeof *c);
    c->ctx = check_context_threads(threads);
    un_arena_init(&c->arena, c->ctx);
    un_octree_init(c->ctx, &c->tree, size, point_count ? coarsest : finest, finest);
    size_t n = (size_t)point_count + 1;
    double *x[3];
    for (int a = 0; a < 3; a++) x[a] = un_arena_alloc(&c->arena, n, sizeof(double));
    uint8_t *reach = un_arena_alloc(&c->arena, n, 1);
    for (int64_t i = 0; i < point_count; i++) {
        x[0][i] = point[i].x, x[1][i] = point[i].y, x[2][i] = point[i].z;
        reach[i] = 2;
    }
    un_octree_request request = {point_count, {x[0], x[1], x[2]}, NULL, reach};
    check_ok(c->ctx, un_octree_build(&c->tree, &c->arena, &request));
    un_tets_init(c->ctx, &c->mesh);
    check_ok(c->ctx, un_tets_build(&c->mesh, &c->arena, &c->tree));
    c->phi = un_alloc(c->ctx, (size_t)c->mesh.node_count, sizeof *c->phi);
    assert_non_null(c->phi);
    un_arena_reset(&c->arena);
}

static inline void case_fill(mesh_case *c, field *value, const double *parameter)
{
    for (int32_t n = 0; n < c->mesh.node_count; n++)
        c->phi[n] = (float)value(c->mesh.x[n], parameter);
}

static inline un_trimesh case_contour(mesh_case *c)
{
    un_trimesh surface;
    check_ok(c->ctx, un_tets_contour(c->ctx, &c->arena, c->phi, &c->mesh, &surface));
    un_arena_reset(&c->arena);
    return surface;
}

static inline void case_redistance(mesh_case *c)
{
    check_ok(c->ctx, un_tets_redistance(c->ctx, &c->arena, c->phi, &c->mesh));
    un_arena_reset(&c->arena);
}

static inline void case_end(mesh_case *c)
{
    un_free(c->ctx, c->phi);
    un_tets_free(&c->mesh);
    un_octree_free(&c->tree);
    un_arena_free(&c->arena);
    check_context_end(c->ctx);
}

/* Points all over a sphere, dense enough for leaves of edge h. Returns how many; free() them. */
static inline un_vec3 *points_on_sphere(const double p[4], double h, int64_t *count)
{
    *count = (int64_t)(64 * p[3] * p[3] / (h * h)) + 64;
    un_vec3 *x = malloc((size_t)*count * sizeof *x);
    for (int64_t i = 0; i < *count; i++) {
        double z = 1 - (2 * (double)i + 1) / (double)*count, angle = 2.399963229728653 * (double)i;
        double r = p[3] * sqrt(1 - z * z);
        x[i] = un_v3(p[0] + r * cos(angle), p[1] + r * sin(angle), p[2] + p[3] * z);
    }
    return x;
}

static inline void case_sphere(mesh_case *c, int32_t threads, int32_t coarsest, int32_t finest,
                               const double p[4])
{
    int64_t count = 0;
    un_vec3 *x = coarsest ? points_on_sphere(p, 1.0 / finest, &count) : NULL;
    case_begin(c, threads, un_v3(1, 1, 1), coarsest, finest, x, count);
    free(x);
    case_fill(c, sphere, p);
}

#endif
