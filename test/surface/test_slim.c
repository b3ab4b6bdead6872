/* Liquid thinner than a cell: sheets without holes and threads without beads, of their volume;
 * drops of many sizes. */
#include "surface/bath.h"
#include "surface/vessel.h"

/* Cells of the simulation along the tank, and the radius of their particles. */
#define CELLS 32
#define RADIUS (0.25 / CELLS)
#define VOLUME (8 * RADIUS * RADIUS * RADIUS)

typedef struct frame {
    un_vec3 at, u, v, n;
} frame;

/* Turned about two axes by `turn`, around the middle of the tank. */
static frame turned(double turn, double shift)
{
    double c = cos(turn), s = sin(turn);
    frame f = {.at = un_v3(0.5, 0.5 + shift, 0.5 + shift)};
    f.u = un_v3(c, s, 0);
    f.v = un_v3(-s * s, s * c, c);
    f.n = un_cross(f.v, f.u);
    return f;
}

static un_vec3 place(const frame *f, double u, double v, double n)
{
    return un_add(un_mad(un_mad(f->at, f->u, u), f->v, v), un_scale(f->n, n));
}

static void add_flying(bath *b, un_vec3 x)
{
    drops_add(&b->drops, x, RADIUS, 0.5 / CELLS);
    b->drops.flags[b->drops.count - 1] = UN_PARTICLE_BALLISTIC;
}

static int32_t sheet_side(double half, double cells)
{
    return (int32_t)(2 * half / sqrt(VOLUME / (cells / CELLS)));
}

/* A square sheet, `cells` thick: a lattice, each particle moved by up to `jitter` spacings, and
 * anywhere across the sheet. */
static un_vec3 sheet_place(const frame *f, double half, double cells, double jitter, int32_t i)
{
    int32_t n = sheet_side(half, cells);
    double t = cells / CELLS, step = 2 * half / n;
    uint64_t q = (uint64_t)i;
    double u = (i % n + 0.5 + 2 * jitter * (un_random(q, 1) - 0.5)) * step - half;
    double v = (i / n + 0.5 + 2 * jitter * (un_random(q, 2) - 0.5)) * step - half;
    return place(f, u, v, 0.8 * t * (un_random(q, 3) - 0.5));
}

static void add_sheet(bath *b, const frame *f, double half, double cells, double jitter)
{
    int32_t n = sheet_side(half, cells);
    for (int32_t i = 0; i < n * n; i++) add_flying(b, sheet_place(f, half, cells, jitter, i));
}

/* Share of the middle of the sheet that the surface covers. */
#define LOOK 160
static double find_cover(const un_trimesh *mesh, const frame *f, double half)
{
    static uint8_t seen[LOOK][LOOK];
    memset(seen, 0, sizeof seen);
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        double x[3], y[3], lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
        for (int32_t c = 0; c < 3; c++) {
            un_vec3 d = un_sub(mesh->position[mesh->triangle[t][c]], f->at);
            x[c] = (un_dot(d, f->u) / half + 1) * LOOK / 2;
            y[c] = (un_dot(d, f->v) / half + 1) * LOOK / 2;
            lo[0] = fmin(lo[0], x[c]), hi[0] = fmax(hi[0], x[c]);
            lo[1] = fmin(lo[1], y[c]), hi[1] = fmax(hi[1], y[c]);
        }
        for (int32_t j = (int32_t)fmax(0, ceil(lo[1])); j <= fmin(LOOK - 1, hi[1]); j++)
            for (int32_t i = (int32_t)fmax(0, ceil(lo[0])); i <= fmin(LOOK - 1, hi[0]); i++) {
                int32_t left = 0, right = 0;
                for (int32_t c = 0; c < 3; c++) {
                    int32_t d = (c + 1) % 3;
                    double side = (x[d] - x[c]) * (j - y[c]) - (y[d] - y[c]) * (i - x[c]);
                    left += side >= 0;
                    right += side <= 0;
                }
                seen[j][i] |= left == 3 || right == 3;
            }
    }
    double sum = 0;
    for (int32_t i = 0; i < LOOK * LOOK; i++) sum += seen[i / LOOK][i % LOOK];
    return sum / (LOOK * LOOK);
}

static void sheets_have_no_holes(void **state)
{
    (void)state;
    const double cells[3] = {0.5, 1.0 / 3, 0.25};
    for (int32_t kind = 0; kind < 9; kind++) {
        bath b;
        frame f = turned(kind / 3 * UN_PI / 12, 0.3 * kind / CELLS);
        bath_begin(&b, 2, un_v3(1, 1, 1));
        add_sheet(&b, &f, 0.2, cells[kind % 3], 0.3);
        bath_build(&b);
        un_trimesh mesh = bath_mesh(&b, 2 * CELLS, true);
        check_closed(b.tank.ctx, &mesh);
        double cover = find_cover(&mesh, &f, 0.17), volume = un_surface_volume(&mesh) / b.volume;
        check_below(0.999, cover);
        check_near(volume, 1, 0.01);
        un_trimesh_free(b.tank.ctx, &mesh);
        bath_end(&b);
    }
}

/* The same on the grid, where parts of thicker sheets are wet: the level set shows them. */
static void sheets_on_the_grid_have_no_holes(void **state)
{
    (void)state;
    const double cells[4] = {0.7, 0.5, 1.0 / 3, 0.25}, least[4] = {0.999, 0.999, 0.99, 0.97};
    for (int32_t kind = 0; kind < 12; kind++) {
        vessel v;
        double thick = cells[kind % 4], inside, volume = 0;
        frame f = turned(kind / 4 * UN_PI / 12, 0.3 * kind / CELLS);
        vessel_begin(&v, 2, un_v3(1, 1, 1), CELLS);
        vessel_build(&v);
        un_particles *p = &v.particles;
        p->count = 0;
        int32_t n = sheet_side(0.2, thick);
        check_ok(v.tank.ctx, un_particles_reserve(v.tank.ctx, p, n * n));
        for (int32_t q = 0; q < n * n; q++) {
            un_particle_set_position(p, q, sheet_place(&f, 0.2, thick, 0.3, q));
            un_particle_set_velocity(p, q, un_v3(1, 2, 3));
            p->volume[q] = (float)VOLUME;
            p->flags[q] = 0;
            volume += VOLUME;
        }
        p->count = n * n;
        vessel_refresh(&v);
        un_transfer_mark_ballistic(v.tank.ctx, p, v.phi, &v.tank.grid, NULL, NULL, &inside);
        un_mesher in = vessel_mesher(&v, 2 * CELLS);
        un_trimesh mesh;
        check_ok(v.tank.ctx, un_surface_mesh(v.tank.ctx, &mesh, &in));
        check_closed(v.tank.ctx, &mesh);
        check_below(least[kind % 4], find_cover(&mesh, &f, 0.17));
        check_near(un_surface_volume(&mesh) / volume, 1, 0.01);
        un_trimesh_free(v.tank.ctx, &mesh);
        vessel_end(&v);
    }
}

/* Two particles that fly side by side are two drops, not a crystal of the lattice. */
static void pairs_are_round(void **state)
{
    (void)state;
    for (int32_t kind = 0; kind < 8; kind++) {
        vessel v;
        frame f = turned(kind * UN_PI / 16, 0.1 * kind / CELLS);
        vessel_begin(&v, 1, un_v3(1, 1, 1), CELLS);
        vessel_build(&v);
        vessel_add(&v, place(&f, -1.4 * RADIUS, 0, 0), VOLUME);
        vessel_add(&v, place(&f, 1.4 * RADIUS, 0, 0), VOLUME);
        for (int32_t q = 0; q < 2; q++) v.particles.flags[q] = UN_PARTICLE_BALLISTIC;
        un_mesher in = vessel_mesher(&v, 2 * CELLS);
        un_trimesh mesh;
        check_ok(v.tank.ctx, un_surface_mesh(v.tank.ctx, &mesh, &in));
        assert_int_equal(check_closed(v.tank.ctx, &mesh).component_count, 2);
        check_near(un_surface_volume(&mesh) / (2 * VOLUME), 1, 1e-3);
        for (int32_t n = 0; n < mesh.vertex_count; n++) {
            double u = un_dot(un_sub(mesh.position[n], f.at), f.u);
            un_vec3 middle = place(&f, u < 0 ? -1.4 * RADIUS : 1.4 * RADIUS, 0, 0);
            double r = un_length(un_sub(mesh.position[n], middle)) / (1.2407 * RADIUS);
            check_near(r, 1, 0.25);
        }
        un_trimesh_free(v.tank.ctx, &mesh);
        vessel_end(&v);
    }
}

/* An arc of particles, `spacing` radii apart. */
#define ARC 0.3
static void add_thread(bath *b, const frame *f, double spacing, double jitter)
{
    int32_t n = (int32_t)(1.5 / spacing / RADIUS * ARC);
    for (int32_t i = 0; i < n; i++) {
        uint64_t q = (uint64_t)i;
        double angle = (i + 2 * jitter * (un_random(q, 1) - 0.5)) * spacing * RADIUS / ARC;
        double out = ARC + 2 * jitter * RADIUS * (un_random(q, 2) - 0.5);
        add_flying(b, place(f, out * cos(angle) - 0.15, out * sin(angle) - 0.2,
                            2 * jitter * RADIUS * (un_random(q, 3) - 0.5)));
    }
}

static void threads_have_no_beads(void **state)
{
    (void)state;
    const double spacing[3] = {1.5, 2, 2.8};
    for (int32_t kind = 0; kind < 6; kind++) {
        bath b;
        frame f = turned(kind / 3 * UN_PI / 9, 0.3 * kind / CELLS);
        double wanted = sqrt(8 / spacing[kind % 3] / UN_PI) * RADIUS, sum = 0, square = 0, mean;
        int32_t count = 0;
        bath_begin(&b, 2, un_v3(1, 1, 1));
        add_thread(&b, &f, spacing[kind % 3], 0.25);
        bath_build(&b);
        un_trimesh mesh = bath_mesh(&b, 2 * CELLS, true);
        un_surface_topology topology = check_closed(b.tank.ctx, &mesh);
        for (int32_t v = 0; v < mesh.vertex_count; v++) {
            un_vec3 d = un_sub(mesh.position[v], place(&f, -0.15, -0.2, 0));
            double x = un_dot(d, f.u), y = un_dot(d, f.v), angle = atan2(y, x);
            if (angle < 0.15 || angle > 1.35) continue; /* its ends */
            double out = hypot(hypot(x, y) - ARC, un_dot(d, f.n));
            sum += out, square += out * out, count++;
        }
        mean = sum / count;
        double uneven = sqrt(fmax(0, square / count - mean * mean)) / mean;
        double volume = un_surface_volume(&mesh) / b.volume;
        assert_int_equal(topology.component_count, 1);
        check_near(mean / wanted, 1, 0.13);
        check_below(uneven, 0.13);
        check_near(volume, 1, 0.01);
        un_trimesh_free(b.tank.ctx, &mesh);
        bath_end(&b);
    }
}

/* The volume of each piece of a surface, in the order of their vertices. */
static int32_t piece_volumes(const un_trimesh *mesh, double *volume, int32_t room)
{
    int32_t count = 0;
    for (int32_t v = 0, last; v < mesh->vertex_count; v = last) {
        /* drops follow one another, each with all its vertices */
        int32_t first = v, t = 0;
        double sum = 0;
        last = v + 1;
        for (bool grows = true; grows;) {
            grows = false;
            for (t = 0; t < mesh->triangle_count; t++)
                for (int32_t c = 0; c < 3; c++) {
                    int32_t a = mesh->triangle[t][c], b = mesh->triangle[t][(c + 1) % 3];
                    if (a >= first && a < last && b >= last) last = b + 1, grows = true;
                }
        }
        for (t = 0; t < mesh->triangle_count; t++) {
            const int32_t *c = mesh->triangle[t];
            if (c[0] < first || c[0] >= last) continue;
            un_vec3 x = un_sub(mesh->position[c[0]], mesh->position[first]);
            un_vec3 y = un_sub(mesh->position[c[1]], mesh->position[first]);
            sum += un_dot(x, un_cross(y, un_sub(mesh->position[c[2]], mesh->position[first]))) / 6;
        }
        assert_true(count < room);
        volume[count++] = sum;
    }
    return count;
}

/* A row of particles that fly apart: drops of many sizes, which stay as they are in flight, and
 * together have the particles' volume. */
#define ROW 16
static void drops_in_a_row_differ(void **state)
{
    (void)state;
    double volume[2][ROW], sum = 0, square = 0;
    for (int32_t later = 0; later < 2; later++) {
        bath b;
        un_trimesh mesh;
        un_hulls_report report;
        bath_begin(&b, 2, un_v3(1, 1, 1));
        for (int32_t i = 0; i < ROW; i++)
            add_flying(&b, un_v3(0.1 + 0.05 * i, later ? 0.7 : 0.5, 0.4));
        bath_build(&b);
        for (int32_t i = 0; i < ROW; i++) {
            b.particles.v[0][i] = 1 + 1e-3 * un_random((uint64_t)i, 1);
            b.particles.v[1][i] = later ? 1 : 2;
        }
        un_hull_mesher in = bath_mesher(&b, 2 * CELLS, true);
        check_ok(b.tank.ctx, un_surface_mesh_hulls(b.tank.ctx, &mesh, &in, &report));
        check_near(un_surface_volume(&mesh) / b.volume, 1, 1e-5);
        assert_int_equal(piece_volumes(&mesh, volume[later], ROW), ROW);
        un_trimesh_free(b.tank.ctx, &mesh);
        bath_end(&b);
    }
    for (int32_t i = 0; i < ROW; i++) {
        check_near(volume[1][i] / volume[0][i], 1, 1e-5);
        double r = cbrt(volume[0][i] / VOLUME);
        sum += r, square += r * r;
    }
    double mean = sum / ROW;
    check_below(0.15, sqrt(square / ROW - mean * mean) / mean);
}

/* Spray, sheets and threads at once. */
static void fill_splash(bath *b, int32_t threads)
{
    frame f = turned(0.4, 0);
    bath_begin(b, threads, un_v3(1, 1, 1));
    add_sheet(b, &f, 0.12, 0.3, 0.4);
    add_thread(b, &f, 2.2, 0.3);
    for (uint64_t i = 0; i < 200; i++)
        add_flying(b, un_v3(un_random(i, 5), un_random(i, 6), 0.25 * un_random(i, 7)));
    bath_build(b);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    un_trimesh mesh[2];
    bath b[2];
    for (int32_t i = 0; i < 2; i++) {
        fill_splash(&b[i], i ? 3 : 1);
        mesh[i] = bath_mesh(&b[i], 2 * CELLS, true);
        check_near(un_surface_volume(&mesh[i]) / b[i].volume, 1, 0.02);
    }
    size_t n = (size_t)mesh[0].vertex_count;
    assert_int_equal(mesh[1].vertex_count, mesh[0].vertex_count);
    assert_int_equal(mesh[1].triangle_count, mesh[0].triangle_count);
    assert_memory_equal(mesh[1].position, mesh[0].position, n * sizeof *mesh[0].position);
    assert_memory_equal(mesh[1].normal, mesh[0].normal, n * sizeof *mesh[0].normal);
    assert_memory_equal(mesh[1].triangle, mesh[0].triangle,
                        (size_t)mesh[0].triangle_count * sizeof *mesh[0].triangle);
    for (int32_t i = 0; i < 2; i++) {
        un_trimesh_free(b[i].tank.ctx, &mesh[i]);
        bath_end(&b[i]);
    }
}

static un_status mesh_once(un_context *ctx, void *arg)
{
    un_trimesh mesh;
    un_hulls_report report;
    un_status status = un_surface_mesh_hulls(ctx, &mesh, arg, &report);
    if (status == UN_OK) un_trimesh_free(ctx, &mesh);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    bath b;
    frame f = turned(0.4, 0);
    bath_begin(&b, 1, un_v3(1, 1, 1));
    add_sheet(&b, &f, 0.06, 0.4, 0.3);
    for (uint64_t i = 0; i < 20; i++)
        add_flying(&b, un_v3(un_random(i, 5), un_random(i, 6), 0.25 * un_random(i, 7)));
    bath_build(&b);
    un_hull_mesher in = bath_mesher(&b, 2 * CELLS, true);
    check_allocation_failures(mesh_once, &in, 400);
    bath_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sheets_have_no_holes),
        cmocka_unit_test(sheets_on_the_grid_have_no_holes),
        cmocka_unit_test(pairs_are_round),
        cmocka_unit_test(threads_have_no_beads),
        cmocka_unit_test(drops_in_a_row_differ),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(survives_lack_of_memory),
    };
    check_races_in("threads_do*");
    return cmocka_run_group_tests_name("slim", tests, NULL, NULL);
}
