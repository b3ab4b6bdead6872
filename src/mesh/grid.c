#include "mesh/mesh.h"

un_grid un_grid_make(un_vec3 size, int32_t finest)
{
    un_grid g = {.dim = size.z > 0 ? 3 : 2, .size = size};
    g.h = fmax(size.x, fmax(size.y, size.z)) / finest;
    g.inverse_h = 1 / g.h;
    double sides[3] = {size.x, size.y, size.z};
    for (int a = 0; a < g.dim; a++) {
        /* A side that is a whole number of cells up to round-off gets no extra layer. */
        g.n[a] = (int32_t)ceil(sides[a] / g.h - 1e-6) + 2;
        if (g.n[a] < 3) g.n[a] = 3;
        g.half[a] = 0.5;
    }
    g.origin = un_v3(-g.h, -g.h, g.dim == 2 ? 0 : -g.h);
    g.volume = g.dim == 2 ? g.h * g.h : g.h * g.h * g.h;
    if (g.dim == 2) g.n[2] = 1;
    g.stride[0] = g.node_stride[0] = 1;
    g.stride[1] = g.n[0];
    g.stride[2] = (int64_t)g.n[0] * g.n[1];
    g.node_stride[1] = g.n[0] + 1;
    g.node_stride[2] = (int64_t)(g.n[0] + 1) * (g.n[1] + 1);
    g.cell_count = g.stride[2] * g.n[2];
    g.node_count = g.node_stride[2] * (g.dim == 2 ? 1 : g.n[2] + 1);
    return g;
}
