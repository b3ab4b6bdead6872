/* The table of tet shapes. */
#include "mesh/tets_internal.h"

static void place_at(int32_t place, int32_t axis, int32_t at[3])
{
    if (place == UN_PLACE_BEYOND) {
        at[0] = at[1] = at[2] = 0;
        at[axis] = 2; /* only used from the lower leaf */
        return;
    }
    at[0] = place % 3 - 1;
    at[1] = place / 3 % 3 - 1;
    at[2] = place / 9 - 1;
}

static int32_t place_of(const int32_t at[3])
{
    return at[0] + 1 + 3 * (at[1] + 1) + 9 * (at[2] + 1);
}

/* Six times the volume, in half leaf edges cubed. */
static int32_t determinant(const int8_t e[3][3])
{
    return e[0][0] * (e[1][1] * e[2][2] - e[1][2] * e[2][1]) -
           e[0][1] * (e[1][0] * e[2][2] - e[1][2] * e[2][0]) +
           e[0][2] * (e[1][0] * e[2][1] - e[1][1] * e[2][0]);
}

static void edges_of(const un_tet_template *t, int32_t axis, int8_t edge[3][3])
{
    int32_t at[4][3];
    for (int i = 0; i < 4; i++) place_at(t->place[i], axis, at[i]);
    for (int i = 0; i < 3; i++)
        for (int a = 0; a < 3; a++) edge[i][a] = (int8_t)(at[i + 1][a] - at[0][a]);
}

static void set(un_tet_template *t, int32_t axis, int32_t p, int32_t q, int32_t apex)
{
    int8_t edge[3][3];
    *t = (un_tet_template){{(uint8_t)p, (uint8_t)q, (uint8_t)apex, UN_PLACE_CENTER}};
    edges_of(t, axis, edge);
    if (determinant(edge) < 0)
        *t = (un_tet_template){{(uint8_t)q, (uint8_t)p, (uint8_t)apex, UN_PLACE_CENTER}};
}

/* The axis of the face that a shape belongs to. */
static int32_t shape_axis(int32_t shape)
{
    if (shape < UN_SHAPE_SAME_HALF) return (shape - UN_SHAPE_SAME) / 4;
    if (shape < UN_SHAPE_FINER_HALF) return (shape - UN_SHAPE_SAME_HALF) / 8;
    if (shape < UN_SHAPE_WALL) return (shape - UN_SHAPE_FINER_HALF) / 16;
    if (shape < UN_SHAPE_WALL_HALF) return (shape - UN_SHAPE_WALL) / 8;
    if (shape < UN_SHAPE_CUT) return (shape - UN_SHAPE_WALL_HALF) / 16;
    return (shape - UN_SHAPE_CUT) / 8;
}

static un_tet_kind shape_kind(int32_t shape)
{
    if (shape < UN_SHAPE_SAME_HALF) return UN_TET_BCC;
    if (shape < UN_SHAPE_FINER_HALF) return UN_TET_BISECTED;
    if (shape < UN_SHAPE_WALL) return UN_TET_QUADRISECTED;
    if (shape < UN_SHAPE_CUT) return UN_TET_BOUNDARY;
    return UN_TET_HALF_PYRAMID;
}

void un_tet_templates(un_tet_template templates[UN_SHAPE_COUNT])
{
    for (int32_t f = 0; f < 6; f++) {
        int32_t a, u, v, side = f % 2 ? 1 : -1, at[3];
        un_face_axes(f, &a, &u, &v);
        at[a] = side, at[u] = at[v] = 0;
        int32_t middle = place_of(at);
        for (int32_t e = 0; e < 4; e++) {
            int32_t across = e < 2 ? u : v, along = e < 2 ? v : u, end[3];
            at[across] = e % 2 ? 1 : -1;
            for (int32_t i = 0; i < 3; i++) {
                at[along] = i - 1;
                end[i] = place_of(at);
            }
            for (int32_t half = 0; half < 2; half++) {
                int32_t p = end[half], q = end[half + 1], k = (4 * f + e) * 2 + half;
                set(&templates[UN_SHAPE_FINER_HALF + k], a, p, q, middle);
                set(&templates[UN_SHAPE_WALL_HALF + k], a, p, q, middle);
                if (side > 0)
                    set(&templates[UN_SHAPE_SAME_HALF + (4 * a + e) * 2 + half], a, p, q,
                        UN_PLACE_BEYOND);
            }
            set(&templates[UN_SHAPE_WALL + 4 * f + e], a, end[0], end[2], middle);
            if (side > 0)
                set(&templates[UN_SHAPE_SAME + 4 * a + e], a, end[0], end[2], UN_PLACE_BEYOND);
        }
        for (int32_t diagonal = 0; diagonal < 2; diagonal++)
            for (int32_t low = 0; low < 2; low++) {
                int32_t p, q, r, w = diagonal ? -1 : 1;
                at[u] = -1, at[v] = -w, p = place_of(at);
                at[u] = 1, at[v] = w, q = place_of(at);
                at[u] = low ? -1 : 1, at[v] = low ? w : -w, r = place_of(at);
                set(&templates[UN_SHAPE_CUT + (2 * f + diagonal) * 2 + low], a, p, q, r);
            }
    }
}

static void cross(double out[3], const double a[3], const double b[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

/* In the table all numbers are exact except the thirds in the volume: determinants are powers of
 * two. */
void un_tet_shape_measure(un_tet_shape *shape, const double edge[3][3])
{
    double normal[3][3];
    for (int i = 0; i < 3; i++) cross(normal[i], edge[(i + 1) % 3], edge[(i + 2) % 3]);
    double det = edge[0][0] * normal[0][0] + edge[0][1] * normal[0][1] + edge[0][2] * normal[0][2];
    shape->volume = det / 6;
    for (int i = 0; i < 3; i++)
        for (int a = 0; a < 3; a++) shape->gradient[i + 1][a] = normal[i][a] / det;
    for (int a = 0; a < 3; a++)
        shape->gradient[0][a] =
            -shape->gradient[1][a] - shape->gradient[2][a] - shape->gradient[3][a];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const double *p = shape->gradient[i], *q = shape->gradient[j];
            shape->stiffness[i][j] = shape->volume * (p[0] * q[0] + p[1] * q[1] + p[2] * q[2]);
        }
}

void un_tets_init(un_context *ctx, un_tets *mesh)
{
    un_tet_template templates[UN_SHAPE_COUNT];
    memset(mesh, 0, sizeof *mesh);
    mesh->ctx = ctx;
    mesh->shape_count = UN_SHAPE_COUNT;
    un_tet_templates(templates);
    for (int32_t k = 0; k < UN_SHAPE_COUNT; k++) {
        un_tet_shape *shape = &mesh->shapes[k];
        shape->kind = shape_kind(k);
        edges_of(&templates[k], shape_axis(k), shape->edge);
        UN_ASSERT(determinant(shape->edge) > 0);
        double edge[3][3];
        for (int i = 0; i < 3; i++)
            for (int a = 0; a < 3; a++) edge[i][a] = 0.5 * shape->edge[i][a];
        un_tet_shape_measure(shape, edge);
    }
}
