/* A solid in 2D as flat triangles: its cross-section with the plane z = 0. */
#include "output/solid.h"

#include "surface/surface.h"

/* Steps of the lattice along the section's longest side. Corners are cut by less than one. */
#define STEPS 128
/* Relative to the longest side: nodes this close to the boundary count as inside, so that a shape
 * that fills its bounding box, such as a box, is filled up to the sides and corners of the
 * lattice. */
#define SNAP 1e-6

typedef struct section {
    const un_shape *shape;
    un_lattice lattice;
    double snap; /* m */
} section;

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    section *s = arg;
    const un_lattice *l = &s->lattice;
    for (int64_t j = begin; j < end; j++)
        for (int32_t i = 0; i < l->n[0]; i++) {
            un_vec3 x = un_v3(l->origin.x + i * l->h[0], l->origin.y + (double)j * l->h[1], 0);
            l->phi[j * l->n[0] + i] = (float)(un_shape_distance(s->shape, x) - s->snap);
        }
}

/* A solid at rest is cut off at the domain; false: nothing is left. */
static bool lay_out(section *s, bool moves, un_vec3 domain)
{
    un_box3 box = un_shape_bounds(s->shape);
    bool bounded =
        isfinite(box.min.x) && isfinite(box.min.y) && isfinite(box.max.x) && isfinite(box.max.y);
    if (!moves || !bounded) {
        box.min = un_max3(box.min, un_v3(0, 0, 0));
        box.max = un_min3(box.max, domain);
    }
    double side[2] = {box.max.x - box.min.x, box.max.y - box.min.y};
    if (!(side[0] > 0 && side[1] > 0)) return false;
    un_lattice *l = &s->lattice;
    s->snap = SNAP * fmax(side[0], side[1]);
    l->origin = un_v3(box.min.x, box.min.y, 0);
    l->n[2] = 1;
    l->h[2] = 0;
    for (int a = 0; a < 2; a++) {
        int32_t steps = (int32_t)ceil(STEPS * side[a] / fmax(side[0], side[1]));
        l->n[a] = un_clampi(steps, 8, STEPS) + 1;
        l->h[a] = side[a] / (l->n[a] - 1);
    }
    return true;
}

un_status un_flat_solid(un_context *ctx, const un_shape *shape, bool moves, un_vec3 domain,
                        un_body_mesh *mesh)
{
    section s = {.shape = shape};
    un_trimesh area = {0};
    un_status status = UN_OK;
    *mesh = (un_body_mesh){0};
    if (!lay_out(&s, moves, domain)) return UN_OK;
    UN_ALLOC(ctx, s.lattice.phi, (int64_t)s.lattice.n[0] * s.lattice.n[1]);
    un_parallel_for(ctx, s.lattice.n[1], 8, sample_rows, &s);
    UN_TRY_DONE(un_surface_area(ctx, &s.lattice, 0, &area));
    UN_TRY_DONE(un_body_mesh_init(ctx, mesh, area.vertex_count, area.triangle_count));
    for (int32_t v = 0; v < area.vertex_count; v++) {
        float *x = mesh->position[v], *n = mesh->normal[v];
        x[0] = (float)area.position[v].x;
        x[1] = (float)area.position[v].y;
        x[2] = n[0] = n[1] = 0;
        n[2] = 1;
        mesh->sky[v] = 255;
    }
    for (int32_t t = 0; t < area.triangle_count; t++)
        for (int c = 0; c < 3; c++) mesh->triangle[t][c] = (uint32_t)area.triangle[t][c];
done:
    if (status != UN_OK) un_body_mesh_free(ctx, mesh);
    un_free(ctx, s.lattice.phi);
    un_trimesh_free(ctx, &area);
    return status;
}
