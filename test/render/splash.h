/* Test data: a closed, splashy water mesh from an implicit field, written in the layout of
 * frames/NNNN/surface.ply. */
#ifndef UN_TEST_SPLASH_H
#define UN_TEST_SPLASH_H

#include "check.h"

#include <sys/stat.h>

typedef double splash_field(const void *arg, un_vec3 x);

typedef struct splash_mesh {
    un_vec3 *position, *normal;
    int32_t (*triangle)[3];
    int32_t vertex_count, triangle_count;
    size_t vertex_capacity, triangle_capacity;
} splash_mesh;

static inline void splash_free(splash_mesh *m)
{
    free(m->position);
    free(m->normal);
    free(m->triangle);
    *m = (splash_mesh){0};
}

static inline void *splash_grow(void *array, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity) return array;
    *capacity = count + count / 2 + 64;
    array = realloc(array, *capacity * size);
    assert_non_null(array);
    return array;
}

/* Marching tetrahedra, six to a cell, on a lattice with one more layer of nodes all around that
 * counts as air, so that the mesh is closed, exactly flat, in the planes of the box. */
static inline void splash_march(splash_mesh *m, splash_field *field, const void *arg, un_vec3 size,
                                double h)
{
    *m = (splash_mesh){0};
    double side[3] = {size.x, size.y, size.z};
    int32_t n[3];
    for (int a = 0; a < 3; a++) n[a] = (int32_t)lround(side[a] / h) + 3;
    size_t count = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    float *phi = malloc(count * sizeof *phi);
    int32_t *edge = malloc(8 * count * sizeof *edge);
    assert_true(phi && edge);
    memset(edge, -1, 8 * count * sizeof *edge);
#define SPLASH_NODE(i, j, k)                                                                       \
    ((size_t)(i) + (size_t)n[0] * ((size_t)(j) + (size_t)n[1] * (size_t)(k)))
    for (int32_t k = 0; k < n[2]; k++)
        for (int32_t j = 0; j < n[1]; j++)
            for (int32_t i = 0; i < n[0]; i++) {
                bool out = !i || !j || !k || i == n[0] - 1 || j == n[1] - 1 || k == n[2] - 1;
                un_vec3 x = un_v3((i - 1) * h, (j - 1) * h, (k - 1) * h);
                float value = out ? 1e9f : (float)field(arg, x);
                phi[SPLASH_NODE(i, j, k)] = value == 0 ? 1e-9f : value;
            }
    static const int order[6][3] = {{1, 3, 7}, {3, 2, 7}, {2, 6, 7},
                                    {6, 4, 7}, {4, 5, 7}, {5, 1, 7}};
    for (int32_t k = 0; k + 1 < n[2]; k++)
        for (int32_t j = 0; j + 1 < n[1]; j++)
            for (int32_t i = 0; i + 1 < n[0]; i++)
                for (int t = 0; t < 6; t++) {
                    int corner[4] = {0, order[t][0], order[t][1], order[t][2]}, in[4], air[4];
                    int in_count = 0, air_count = 0;
                    for (int c = 0; c < 4; c++) {
                        int b = corner[c];
                        if (phi[SPLASH_NODE(i + (b & 1), j + (b >> 1 & 1), k + (b >> 2))] < 0)
                            in[in_count++] = b;
                        else
                            air[air_count++] = b;
                    }
                    if (!in_count || !air_count) continue;
                    int pairs[4][2], pair_count = 0;
                    if (in_count == 2) {
                        int quad[4][2] = {
                            {in[0], air[0]}, {in[0], air[1]}, {in[1], air[1]}, {in[1], air[0]}};
                        memcpy(pairs, quad, sizeof quad);
                        pair_count = 4;
                    } else {
                        for (int a = 0; a < in_count; a++)
                            for (int b = 0; b < air_count; b++, pair_count++) {
                                pairs[pair_count][0] = in[a];
                                pairs[pair_count][1] = air[b];
                            }
                    }
                    int32_t v[4];
                    for (int p = 0; p < pair_count; p++) {
                        int lo = pairs[p][0] & pairs[p][1], step = pairs[p][0] ^ pairs[p][1];
                        size_t base = SPLASH_NODE(i + (lo & 1), j + (lo >> 1 & 1), k + (lo >> 2));
                        int32_t *slot = &edge[8 * base + (size_t)step];
                        if (*slot < 0) {
                            int at[3];
                            double x[2][3], value[2];
                            for (int e = 0; e < 2; e++) {
                                int b = pairs[p][e];
                                at[0] = i + (b & 1), at[1] = j + (b >> 1 & 1), at[2] = k + (b >> 2);
                                for (int a = 0; a < 3; a++) x[e][a] = (at[a] - 1) * h;
                                value[e] = phi[SPLASH_NODE(at[0], at[1], at[2])];
                            }
                            double s = value[0] / (value[0] - value[1]), y[3];
                            for (int a = 0; a < 3; a++)
                                y[a] = un_clamp(x[0][a] + s * (x[1][a] - x[0][a]), 0, side[a]);
                            m->position = splash_grow(m->position, &m->vertex_capacity,
                                                      (size_t)m->vertex_count + 1, sizeof(un_vec3));
                            *slot = m->vertex_count++;
                            m->position[*slot] = un_v3(y[0], y[1], y[2]);
                        }
                        v[p] = *slot;
                    }
                    un_vec3 out = {0, 0, 0}; /* from water to air */
                    for (int c = 0; c < 4; c++) {
                        double sign = c < in_count ? -1.0 / in_count : 1.0 / air_count;
                        int b = c < in_count ? in[c] : air[c - in_count];
                        out = un_mad(out, un_v3(b & 1, b >> 1 & 1, b >> 2), sign);
                    }
                    for (int q = 0; q + 2 < pair_count; q++) {
                        int32_t tri[3] = {v[0], v[q + 1], v[q + 2]};
                        /* Clamped edges make slivers of no area; they carry nothing. */
                        un_vec3 a = m->position[tri[0]], b = m->position[tri[1]],
                                c = m->position[tri[2]];
                        un_vec3 g = un_cross(un_sub(b, a), un_sub(c, a));
                        if (un_length(g) < 1e-9 * h * h) continue;
                        if (un_dot(g, out) < 0) {
                            int32_t swap = tri[1];
                            tri[1] = tri[2];
                            tri[2] = swap;
                        }
                        m->triangle =
                            splash_grow(m->triangle, &m->triangle_capacity,
                                        (size_t)m->triangle_count + 1, sizeof *m->triangle);
                        memcpy(m->triangle[m->triangle_count++], tri, sizeof tri);
                    }
                }
#undef SPLASH_NODE
    free(phi);
    free(edge);
    m->normal = calloc((size_t)m->vertex_count + 1, sizeof *m->normal);
    for (int32_t t = 0; t < m->triangle_count; t++) {
        int32_t *tri = m->triangle[t];
        un_vec3 a = m->position[tri[0]];
        un_vec3 g = un_cross(un_sub(m->position[tri[1]], a), un_sub(m->position[tri[2]], a));
        for (int c = 0; c < 3; c++) m->normal[tri[c]] = un_add(m->normal[tri[c]], g);
    }
    for (int32_t v = 0; v < m->vertex_count; v++) m->normal[v] = un_normalize(m->normal[v]);
}

static inline void splash_write(const splash_mesh *m, const char *path)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "ply\nformat binary_little_endian 1.0\ncomment splash\nelement vertex %d\n",
            m->vertex_count);
    const char *names[9] = {"x", "y", "z", "nx", "ny", "nz", "vx", "vy", "vz"};
    for (int a = 0; a < 9; a++) fprintf(file, "property float %s\n", names[a]);
    fprintf(file, "element face %d\nproperty list uchar int vertex_indices\nend_header\n",
            m->triangle_count);
    for (int32_t v = 0; v < m->vertex_count; v++) {
        un_vec3 x = m->position[v], g = m->normal[v];
        float row[9] = {(float)x.x, (float)x.y, (float)x.z, (float)g.x, (float)g.y,
                        (float)g.z, 0,          0,          0};
        fwrite(row, sizeof row, 1, file);
    }
    for (int32_t t = 0; t < m->triangle_count; t++) {
        fputc(3, file);
        fwrite(m->triangle[t], sizeof m->triangle[t], 1, file);
    }
    assert_int_equal(fclose(file), 0);
}

/* Below a plane at the given height. */
static inline double splash_tank(const void *arg, un_vec3 x)
{
    return x.y - *(const double *)arg;
}

#endif
