/* How a grid that warps interpolates what it carries: shared by warp_carry.c and warp_band.c.
 *
 * The places of the centres and the fields at them are interpolated by one kernel, so that a field
 * that is linear in space is read exactly (mesh/warp.h says so of the linear kernel): places are
 * found on the map that cubics make. WENO6 weighs its polynomials by the data, for each field in
 * another way; it gets the field without its linear part, which no weights change. */
#ifndef UN_ADVECT_CARRY_H
#define UN_ADVECT_CARRY_H

#include "advect/advect.h"

/* Liquid does not come from farther outside the domain than this, in cells. */
#define UN_CARRY_OUTSIDE 1e-3
#define UN_CARRY_FIELDS 4

/* Values at cells, `count` of them at each. */
typedef struct un_carry_field {
    const double *value;
    int count;
} un_carry_field;

/* ---- along a line ---- */

/* Weights of a cubic through four cells, from the one below; a line where the fourth is missing. */
UN_KERNEL void un_carry_cubic_weights(double f, bool whole, double w[4])
{
    if (!whole) {
        w[0] = w[3] = 0;
        w[1] = 1 - f;
        w[2] = f;
        return;
    }
    w[0] = f * (-0.5 + f * (1 - 0.5 * f));
    w[1] = 1 + f * f * (-2.5 + 1.5 * f);
    w[2] = f * (0.5 + f * (2 - 1.5 * f));
    w[3] = f * f * (-0.5 + 0.5 * f);
}

UN_KERNEL double un_carry_square(double x)
{
    return x * x;
}

/* WENO6 [Macdonald & Ruuth 2008]: of six values in a row, between the third and the fourth. Three
 * cubics, each through four of them, are weighed by how smooth they are; where all are, the result
 * is the polynomial through all six. */
#define UN_WENO_EPSILON 1e-6
UN_KERNEL double un_carry_weno(const double v[6], double f)
{
    double size = 0;
    for (int i = 0; i < 6; i++) size = fmax(size, fabs(v[i] - v[2]));
    if (!(size > 0)) return v[2];
    double a = (v[0] - v[2]) / size, b = (v[1] - v[2]) / size, d = (v[3] - v[2]) / size,
           e = (v[4] - v[2]) / size, g = (v[5] - v[2]) / size; /* the third is 0 */
    double rough[3] = {
        (814 * d * d + 2976 * b * b + 244 * a * a + 2634 * d * b - 683 * d * a - 1659 * b * a) /
            180,
        (1986 * d * d + 244 * b * b + 244 * e * e + 1074 * d * b - 1269 * e * d - 293 * e * b) /
            180,
        (4326 * d * d + 2976 * e * e + 244 * g * g - 6927 * d * e + 1854 * d * g - 1659 * e * g) /
            180};
    double ideal[3] = {(2 - f) * (3 - f) / 20, (3 - f) * (f + 2) / 10, (f + 2) * (f + 1) / 20};
    /* Lagrange's cubics through the values at -2 to 1, -1 to 2 and 0 to 3 */
    double cubic[3] = {a * (f + 1) * f * (f - 1) / -6 + b * (f + 2) * f * (f - 1) / 2 +
                           d * (f + 2) * (f + 1) * f / 6,
                       b * f * (f - 1) * (f - 2) / -6 + d * (f + 1) * f * (f - 2) / -2 +
                           e * (f + 1) * f * (f - 1) / 6,
                       d * f * (f - 2) * (f - 3) / 2 + e * f * (f - 1) * (f - 3) / -2 +
                           g * f * (f - 1) * (f - 2) / 6};
    double sum = 0, weight = 0;
    for (int i = 0; i < 3; i++) {
        double w = ideal[i] / un_carry_square(UN_WENO_EPSILON + rough[i]);
        sum += w * cubic[i];
        weight += w;
    }
    return v[2] + size * sum / weight;
}

/* ---- in space ---- */

UN_KERNEL void un_carry_cubics_in(const un_grid *g, const un_carry_field *field, un_vec3 xi,
                                  double *out, int dim)
{
    un_stencil t = un_grid_stencil_in(g, xi, 0.5, dim);
    int64_t at[3] = {t.base % g->n[0], t.base / g->n[0] % g->n[1], t.base / g->stride[2]};
    double w[3][4];
    bool whole[3] = {false, false, false};
    for (int d = 0; d < dim; d++) {
        whole[d] = at[d] >= 1 && at[d] + 2 < g->n[d];
        un_carry_cubic_weights(t.f[d], whole[d], w[d]);
    }
    for (int k = 0; k < field->count; k++) out[k] = 0;
    for (int z = dim == 2 || !whole[2] ? 1 : 0; z < (dim == 2 ? 2 : whole[2] ? 4 : 3); z++)
        for (int y = !whole[1]; y < (whole[1] ? 4 : 3); y++)
            for (int x = !whole[0]; x < (whole[0] ? 4 : 3); x++) {
                double weight = w[0][x] * w[1][y] * (dim == 2 ? 1 : w[2][z]);
                int64_t c = t.base + (x - 1) + (y - 1) * g->stride[1];
                if (dim == 3) c += (z - 1) * g->stride[2];
                for (int k = 0; k < field->count; k++)
                    out[k] += weight * field->value[c * field->count + k];
            }
}

/* The place of y by the map that cubics through the centres make: velocities that are linear in
 * space are then carried exactly. With the linear map a standing wave grew by 5 % in a period. */
#define UN_CARRY_STEPS 24
#define UN_CARRY_EXACT 1e-12 /* cells */
UN_KERNEL un_vec3 un_carry_place_in(const un_warp *w, un_vec3 y, un_vec3 xi, int dim)
{
    const un_carry_field centre = {&w->centre->x, 3};
    for (int i = 0; i < UN_CARRY_STEPS; i++) {
        un_warp_point at = un_warp_point_in(w, xi, dim);
        double x[3];
        un_carry_cubics_in(&w->grid, &centre, xi, x, dim);
        un_vec3 left = un_sub(y, un_v3(x[0], x[1], x[2]));
        un_vec3 step = un_warp_pull(&at, left);
        xi = un_warp_inside(&w->grid, un_add(xi, step));
        if (un_dot(step, step) < UN_CARRY_EXACT * UN_CARRY_EXACT * w->grid.h * w->grid.h) break;
    }
    return xi;
}

/* By WENO6 at y, whose place is xi; by cubics and lines where the grid ends. */
UN_KERNEL void un_carry_weno_in(const un_warp *w, const un_carry_field *field, un_vec3 y,
                                un_vec3 xi, double *out, int dim)
{
    const un_grid *g = &w->grid;
    un_warp_point p = un_warp_point_in(w, xi, dim);
    const un_stencil *t = &p.at;
    int64_t at[3] = {t->base % g->n[0], t->base / g->n[0] % g->n[1], t->base / g->stride[2]};
    double weight[3][4];
    int from[3] = {0, 0, 0}, to[3] = {0, 0, 0};
    bool six[3] = {false, false, false};
    for (int d = 0; d < dim; d++) {
        bool four = at[d] >= 1 && at[d] + 2 < g->n[d];
        six[d] = at[d] >= 2 && at[d] + 3 < g->n[d];
        from[d] = six[d] ? -2 : four ? -1 : 0;
        to[d] = six[d] ? 3 : four ? 2 : 1;
        un_carry_cubic_weights(t->f[d], four, weight[d]);
    }
    for (int k = 0; k < field->count; k++) {
        double slope[3] = {0};
        for (int m = 0; m < 1 << dim; m++) {
            double v = field->value[un_warp_corner(g, t->base, m, dim) * field->count + k];
            for (int d = 0; d < dim; d++)
                slope[d] += v * un_warp_slope(t, m, d, dim) * g->inverse_h;
        }
        un_vec3 gradient = un_warp_gradient(&p, un_v3(slope[0], slope[1], slope[2]));
        double plane[6] = {0};
        for (int z = from[2]; z <= to[2]; z++) {
            double line[6] = {0};
            for (int j = from[1]; j <= to[1]; j++) {
                double v[6] = {0};
                for (int i = from[0]; i <= to[0]; i++) {
                    int64_t c = t->base + i + j * g->stride[1] + z * g->stride[2];
                    v[i + 2] = field->value[c * field->count + k] -
                               un_dot(gradient, un_sub(w->centre[c], y));
                }
                if (six[0]) {
                    line[j + 2] = un_carry_weno(v, t->f[0]);
                } else {
                    for (int i = 0; i < 4; i++) line[j + 2] += weight[0][i] * v[i + 1];
                }
            }
            if (six[1]) {
                plane[z + 2] = un_carry_weno(line, t->f[1]);
            } else {
                for (int i = 0; i < 4; i++) plane[z + 2] += weight[1][i] * line[i + 1];
            }
        }
        if (dim == 2) {
            out[k] = plane[2];
        } else if (six[2]) {
            out[k] = un_carry_weno(plane, t->f[2]);
        } else {
            out[k] = 0;
            for (int i = 0; i < 4; i++) out[k] += weight[2][i] * plane[i + 1];
        }
    }
}

UN_KERNEL void un_carry_lines_in(const un_grid *g, const un_carry_field *field, un_vec3 xi,
                                 double *out, int dim)
{
    un_stencil t = un_grid_stencil_in(g, xi, 0.5, dim);
    for (int k = 0; k < field->count; k++) out[k] = 0;
    for (int m = 0; m < 1 << dim; m++)
        for (int k = 0; k < field->count; k++)
            out[k] += un_warp_weight(&t, m, dim) *
                      field->value[un_warp_corner(g, t.base, m, dim) * field->count + k];
}

/* A field at y, which is at xi on the linear map. */
UN_KERNEL void un_carry_sample_in(const un_warp *w, const un_carry_field *field,
                                  un_interpolation kind, un_vec3 y, un_vec3 xi, double *out,
                                  int dim)
{
    if (kind == UN_INTERPOLATE_LINEAR) {
        un_carry_lines_in(&w->grid, field, xi, out, dim);
        return;
    }
    xi = un_carry_place_in(w, y, xi, dim);
    if (kind == UN_INTERPOLATE_WENO6)
        un_carry_weno_in(w, field, y, xi, out, dim);
    else
        un_carry_cubics_in(&w->grid, field, xi, out, dim);
}

/* ---- in time ---- */

/* Where the liquid at x was dt ago on the grid w, *foot in space; from a guess. Less than no time:
 * where it will be. */
UN_KERNEL un_vec3 un_carry_foot_in(const un_warp *w, const un_vec3 *u, double dt, un_vec3 x,
                                   un_vec3 guess, un_vec3 *foot, bool *outside, int dim)
{
    un_warp_walker k = un_warp_walker_in(w, guess, dim);
    un_vec3 half = un_advect_velocity_in(u, w, x, &k, dim);
    half = un_mad(x, half, -0.5 * dt);
    un_vec3 v = un_advect_velocity_in(u, w, half, &k, dim);
    un_vec3 from = un_mad(x, v, -dt);
    un_vec3 y = un_min3(un_max3(from, un_v3(0, 0, 0)), w->size);
    *outside = un_length(un_sub(from, y)) > UN_CARRY_OUTSIDE * w->grid.h;
    *foot = y;
    return un_warp_find_in(w, y, k.xi, dim);
}

#endif
