/* Lattices and fields that the tests of contouring and smoothing share. */
#ifndef UN_TEST_SURFACE_FIELDS_H
#define UN_TEST_SURFACE_FIELDS_H

#include "check.h"
#include "surface/contour.h"

typedef double field(un_vec3 x, const double *parameter);

static inline un_lattice make_lattice(un_context *ctx, int32_t n0, int32_t n1, int32_t n2,
                                      un_vec3 origin, un_vec3 size)
{
    un_lattice lattice = {.n = {n0, n1, n2}, .origin = origin};
    lattice.h[0] = size.x / (n0 > 1 ? n0 - 1 : 1);
    lattice.h[1] = size.y / (n1 > 1 ? n1 - 1 : 1);
    lattice.h[2] = size.z / (n2 > 1 ? n2 - 1 : 1);
    lattice.phi = un_alloc(ctx, (size_t)n0 * (size_t)n1 * (size_t)n2, sizeof *lattice.phi);
    assert_non_null(lattice.phi);
    return lattice;
}

static inline void fill(un_lattice *lattice, field *value, const double *parameter)
{
    float *phi = lattice->phi;
    for (int32_t k = 0; k < lattice->n[2]; k++)
        for (int32_t j = 0; j < lattice->n[1]; j++)
            for (int32_t i = 0; i < lattice->n[0]; i++)
                *phi++ = (float)value(un_lattice_point(lattice, i, j, k), parameter);
}

/* Must be closed, manifold, oriented; returns the rest of the report. */
static inline un_surface_topology check_closed(un_context *ctx, const un_trimesh *mesh)
{
    un_surface_topology topology;
    check_ok(ctx, un_surface_examine(ctx, mesh, &topology));
    assert_int_equal(topology.open_edges, 0);
    assert_int_equal(topology.nonmanifold_edges, 0);
    assert_int_equal(topology.misoriented_edges, 0);
    return topology;
}

static inline un_vec3 area_vector(const un_trimesh *mesh, int32_t t)
{
    const un_vec3 *x = mesh->position;
    const int32_t *v = mesh->triangle[t];
    return un_scale(un_cross(un_sub(x[v[1]], x[v[0]]), un_sub(x[v[2]], x[v[0]])), 0.5);
}

static inline double sphere(un_vec3 x, const double *p)
{
    return un_length(un_sub(x, un_v3(p[0], p[1], p[2]))) - p[3];
}

static inline double plane(un_vec3 x, const double *p)
{
    return p[0] * x.x + p[1] * x.y + p[2] * x.z - p[3];
}

static inline void fill_noise(un_lattice *lattice, uint64_t seed, double liquid)
{
    int64_t count = (int64_t)lattice->n[0] * lattice->n[1] * lattice->n[2];
    for (int64_t n = 0; n < count; n++)
        lattice->phi[n] = (float)(un_random((uint64_t)n, seed) - liquid);
}

#endif
