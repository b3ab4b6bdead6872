/* The liquid's area and outline in 2D. */
#include "check.h"
#include "surface/surface.h"

typedef double field(un_vec3 x);

static double disc(un_vec3 x)
{
    return hypot(x.x - 0.5, x.y - 0.5) - 0.31;
}
static double ring(un_vec3 x)
{
    return fabs(hypot(x.x - 0.5, x.y - 0.5) - 0.3) - 0.1;
}
static double pool(un_vec3 x)
{
    return x.y - 0.437 - 0.1 * x.x;
}
static double noise(un_vec3 x)
{
    uint64_t at = (uint64_t)lround(1000 * x.x) * 4096 + (uint64_t)lround(1000 * x.y);
    return un_random(at, 5) - 0.5;
}

static un_lattice sampled(un_context *ctx, field *phi, int32_t n)
{
    un_lattice l = {.n = {n + 1, n + 1, 1}, .h = {1.0 / n, 1.0 / n, 0}};
    l.phi = un_alloc(ctx, (size_t)(n + 1) * (size_t)(n + 1), sizeof *l.phi);
    for (int32_t j = 0; l.phi && j <= n; j++)
        for (int32_t i = 0; i <= n; i++)
            l.phi[i + (n + 1) * j] = (float)phi(un_v3(i / (double)n, j / (double)n, 0));
    return l;
}

/* By Green's theorem, from the outline alone. */
static double enclosed(const un_trimesh *mesh, const un_outline *o)
{
    double sum = 0;
    for (int32_t l = 0; l < o->loop_count; l++)
        for (int32_t n = o->first[l]; n < o->first[l + 1]; n++) {
            int32_t next = n + 1 < o->first[l + 1] ? n + 1 : o->first[l];
            un_vec3 a = mesh->position[o->vertex[n]], b = mesh->position[o->vertex[next]];
            sum += 0.5 * (a.x * b.y - a.y * b.x);
        }
    return sum;
}

/* All triangles face +z, the outline is closed and goes around them; returns the area. */
static double examine(field *phi, int32_t cells, int32_t passes, int32_t loops)
{
    un_context *ctx = check_context();
    un_lattice l = sampled(ctx, phi, cells);
    un_trimesh mesh;
    un_outline o;
    check_ok(ctx, un_surface_area(ctx, &l, passes, &mesh));
    assert_true(un_surface_is_flat(&mesh));
    for (int32_t t = 0; t < mesh.triangle_count; t++) {
        const int32_t *n = mesh.triangle[t];
        un_vec3 a = mesh.position[n[0]], b = mesh.position[n[1]], c = mesh.position[n[2]];
        assert_true((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x) > 0);
    }
    check_ok(ctx, un_outline_create(ctx, &mesh, &o));
    if (loops >= 0) assert_int_equal(o.loop_count, loops);
    assert_int_equal(o.first[o.loop_count], o.vertex_count);
    double area = un_surface_flat_area(&mesh);
    check_near(enclosed(&mesh, &o), area, 1e-12);
    for (int32_t n = 0; n < o.vertex_count; n++) check_near(un_length(o.normal[n]), 1, 1e-9);
    if (phi == disc)
        for (int32_t n = 0; n < o.vertex_count; n++) {
            un_vec3 away = un_sub(mesh.position[o.vertex[n]], un_v3(0.5, 0.5, 0));
            assert_true(un_dot(un_normalize(away), o.normal[n]) > 0.97);
            check_near(un_length(away), 0.31, 0.03 / cells);
        }
    un_outline_free(ctx, &o);
    un_trimesh_free(ctx, &mesh);
    un_free(ctx, l.phi);
    check_context_end(ctx);
    return area;
}

static void areas_are_those_of_the_shapes(void **state)
{
    (void)state;
    for (int32_t passes = 0; passes <= 8; passes += 8) {
        check_near(examine(disc, 64, passes, 1), UN_PI * 0.31 * 0.31, 3e-4);
        check_near(examine(ring, 64, passes, 2), UN_PI * 0.4 * 0.3, 6e-4);
        check_near(examine(pool, 64, passes, 1), 0.437 + 0.05, 1e-6); /* up to the walls */
    }
}

/* Any signs, ambiguous squares and all: closed, and no triangle turns over when it is faired. */
static void noise_stays_closed(void **state)
{
    (void)state;
    double before = examine(noise, 60, 0, -1), after = examine(noise, 60, 8, -1);
    check_near(after, before, 0.02 * before);
}

/* Fairing takes waves as short as a step off, and keeps what is long. */
static double rippled(un_vec3 x)
{
    return x.y - 0.5 - 0.003 * cos(UN_PI * 64 * x.x) - 0.05 * cos(UN_PI * x.x);
}

static void ripples_go_and_waves_stay(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_lattice l = sampled(ctx, rippled, 64);
    double sum[2] = {0}, count[2] = {0};
    for (int faired = 0; faired < 2; faired++) {
        un_trimesh mesh;
        un_outline o;
        check_ok(ctx, un_surface_area(ctx, &l, 8 * faired, &mesh));
        check_ok(ctx, un_outline_create(ctx, &mesh, &o));
        for (int32_t n = 0; n < o.vertex_count; n++) {
            un_vec3 x = mesh.position[o.vertex[n]];
            double off = x.y - 0.5 - 0.05 * cos(UN_PI * x.x);
            if (!(x.y > 0.1 && x.x > 0.1 && x.x < 0.9)) continue;
            sum[faired] += off * off;
            count[faired]++;
        }
        un_outline_free(ctx, &o);
        un_trimesh_free(ctx, &mesh);
    }
    double before = sqrt(sum[0] / count[0]), after = sqrt(sum[1] / count[1]);
    assert_true(before > 0.0015);
    check_below(after, 0.5 * before); /* what lies across a node from its place cannot pass it */
    un_free(ctx, l.phi);
    check_context_end(ctx);
}

static un_status make(un_context *ctx, void *arg)
{
    (void)arg;
    un_trimesh mesh = {0};
    un_outline o = {0};
    un_lattice l = sampled(ctx, disc, 16);
    un_status status = l.phi ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK) status = un_surface_area(ctx, &l, 2, &mesh);
    if (status == UN_OK) status = un_outline_create(ctx, &mesh, &o);
    un_outline_free(ctx, &o);
    un_trimesh_free(ctx, &mesh);
    un_free(ctx, l.phi);
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    check_allocation_failures(make, NULL, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_are_those_of_the_shapes),
        cmocka_unit_test(noise_stays_closed),
        cmocka_unit_test(ripples_go_and_waves_stay),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
