/* Particles of many sizes in a tank, and their output surface. */
#ifndef UN_TEST_SURFACE_BATH_H
#define UN_TEST_SURFACE_BATH_H

#include "mesh/tank.h"
#include "surface/drops.h"
#include "surface/fields.h"
#include "surface/hulls.h"

typedef struct bath {
    tank tank;
    drops drops;
    un_particles particles;
    double volume;
} bath;

static inline void bath_begin(bath *b, int32_t threads, un_vec3 size)
{
    memset(b, 0, sizeof *b);
    tank_begin(&b->tank, threads, size, 16);
}

/* The drops that lie in the domain and in no solid, as particles. */
static inline void bath_build(bath *b)
{
    tank_build(&b->tank);
    un_context *ctx = b->tank.ctx;
    drops *d = &b->drops, kept = {0};
    un_vec3 s = b->tank.grid.size;
    for (int64_t q = 0; q < d->count; q++) {
        un_vec3 x = un_v3(d->x[0][q], d->x[1][q], d->x[2][q]);
        if (x.x < 0 || x.y < 0 || x.z < 0 || x.x > s.x || x.y > s.y || x.z > s.z) continue;
        if (un_walls_distance_exact(b->tank.walls, x) < 0) continue;
        drops_add(&kept, x, d->radius[q], d->depth[q]);
        kept.flags[kept.count - 1] = d->flags[q];
    }
    drops_free(d);
    *d = kept;
    check_ok(ctx, un_particles_reserve(ctx, &b->particles, d->count));
    b->particles.count = (int32_t)d->count;
    b->volume = 0;
    for (int64_t q = 0; q < d->count; q++) {
        for (int a = 0; a < 3; a++) {
            b->particles.x[a][q] = d->x[a][q];
            b->particles.v[a][q] = a + 1;
        }
        b->particles.volume[q] = 8 * d->radius[q] * d->radius[q] * d->radius[q];
        b->particles.flags[q] = d->flags[q];
        b->volume += b->particles.volume[q];
    }
}

static inline un_hull_mesher bath_mesher(const bath *b, int32_t resolution, bool deep)
{
    return (un_hull_mesher){.particles = &b->particles,
                            .radius = b->drops.radius,
                            .depth = deep ? b->drops.depth : NULL,
                            .walls = b->tank.walls,
                            .size = b->tank.grid.size,
                            .coarsest = 4,
                            .resolution = resolution,
                            .smoothing = 4};
}

static inline un_trimesh bath_mesh(const bath *b, int32_t resolution, bool deep)
{
    un_trimesh mesh;
    un_hull_mesher in = bath_mesher(b, resolution, deep);
    un_hulls_report report;
    check_ok(b->tank.ctx, un_surface_mesh_hulls(b->tank.ctx, &mesh, &in, &report));
    for (int32_t n = 0; n < mesh.vertex_count; n++) {
        assert_true(un_finite3(mesh.position[n]) && un_finite3(mesh.velocity[n]));
        check_near(un_length(mesh.normal[n]), 1, 1e-5);
        un_vec3 x = mesh.position[n], s = b->tank.grid.size;
        assert_true(x.x >= 0 && x.y >= 0 && x.z >= 0);
        assert_true(x.x <= s.x + 1e-15 && x.y <= s.y + 1e-15 && x.z <= s.z + 1e-15);
        check_near(mesh.velocity[n].x, 1, 1e-6);
        check_near(mesh.velocity[n].z, 3, 1e-6);
    }
    return mesh;
}

static inline void bath_end(bath *b)
{
    un_particles_free(b->tank.ctx, &b->particles);
    drops_free(&b->drops);
    tank_end(&b->tank);
}

#endif
