/* Merging of vertices: fewer and better triangles, the same surface; whatever is proposed, the mesh
 * stays closed and of the same shape. */
#include "surface/cut.h"
#include "surface/meshes.h"

static un_trimesh contour_case(mesh_case *c, un_arena *arena, int32_t **same)
{
    un_cut cut;
    un_trimesh surface;
    check_ok(c->ctx, un_cut_find(c->ctx, arena, &cut, c->phi, &c->mesh, NULL));
    un_cut_interpolate(c->ctx, &cut, c->phi, UN_SURFACE_HAIR);
    check_ok(c->ctx, un_cut_contour(c->ctx, arena, &cut, &surface));
    check_ok(c->ctx, un_cut_clusters(c->ctx, arena, &cut, surface.vertex_count, same));
    return surface;
}

/* Of the triangles with angles below ten degrees. */
static double needles(const un_trimesh *m)
{
    int32_t count = 0;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        double least = UN_PI;
        for (int c = 0; c < 3; c++) {
            un_vec3 x = m->position[m->triangle[t][c]];
            un_vec3 a = un_sub(m->position[m->triangle[t][(c + 1) % 3]], x);
            un_vec3 b = un_sub(m->position[m->triangle[t][(c + 2) % 3]], x);
            least = fmin(least, acos(un_dot(un_normalize(a), un_normalize(b))));
        }
        count += least < 10 * UN_PI / 180;
    }
    return (double)count / m->triangle_count;
}

static void a_ball_takes_a_third(void **state)
{
    (void)state;
    double p[4] = {0.51, 0.49, 0.52, 0.4};
    for (int graded = 0; graded < 2; graded++) {
        mesh_case c;
        un_arena arena;
        int32_t *same;
        case_sphere(&c, 2, graded ? 8 : 0, 32, p);
        un_arena_init(&arena, c.ctx);
        un_trimesh m = contour_case(&c, &arena, &same);
        double volume = un_surface_volume(&m), before = needles(&m);
        int32_t triangles = m.triangle_count;
        check_ok(c.ctx, un_surface_merge(c.ctx, &m, same));
        assert_int_equal(check_closed(c.ctx, &m).euler, 2);
        print_message("%d of %d triangles; needles %.3f of them, before %.3f\n", m.triangle_count,
                      triangles, needles(&m), before);
        check_below(m.triangle_count, 0.4 * triangles);
        check_below(needles(&m), 0.01);
        check_near(un_surface_volume(&m), volume, 0.01 * volume);
        for (int32_t v = 0; v < m.vertex_count; v++) {
            un_vec3 d = un_sub(m.position[v], un_v3(p[0], p[1], p[2]));
            check_near(un_length(d), p[3], 0.1 / 32);
        }
        un_trimesh_free(c.ctx, &m);
        un_arena_free(&arena);
        case_end(&c);
    }
}

/* Noise, which has sheets, threads and tunnels of one cell, with the clusters of its nodes; and a
 * ball with clusters at random, most of which must not be. */
static void whatever_is_proposed(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        double p[4] = {0.5, 0.5, 0.5, 0.4};
        mesh_case c;
        un_arena arena;
        int32_t *same;
        case_sphere(&c, 2, seed & 1 ? 4 : 0, 16, p);
        un_arena_init(&arena, c.ctx);
        for (int32_t n = 0; n < c.mesh.node_count && seed < 6; n++)
            c.phi[n] = (float)(un_random((uint64_t)n, seed) - 0.1 - 0.15 * (double)seed);
        un_trimesh m = contour_case(&c, &arena, &same);
        uint64_t groups = (uint64_t)m.vertex_count / 3;
        int32_t *first = un_arena_alloc(&arena, groups + 1, sizeof *first);
        for (uint64_t g = 0; g <= groups; g++) first[g] = -1;
        for (int32_t v = 0; v < m.vertex_count && seed >= 6; v++) {
            /* any, or such as follow each other in the order of the mesh */
            uint64_t at = seed & 2 ? (uint64_t)v / 3 : un_hash64((uint64_t)v + seed);
            int32_t *stands = &first[at % (groups + 1)];
            if (*stands < 0) *stands = v;
            same[v] = *stands;
        }
        un_surface_topology was = check_closed(c.ctx, &m), is;
        check_ok(c.ctx, un_surface_merge(c.ctx, &m, same));
        is = check_closed(c.ctx, &m);
        assert_int_equal(is.euler, was.euler);
        assert_int_equal(is.component_count, was.component_count);
        /* the ball's triangles still face outwards, but for slivers on edge */
        for (int32_t t = 0; t < m.triangle_count && seed >= 6; t++) {
            un_vec3 out = un_sub(m.position[m.triangle[t][0]], un_v3(p[0], p[1], p[2]));
            un_vec3 area = area_vector(&m, t);
            check_below(-0.2 * un_length(area) * un_length(out), un_dot(area, out));
        }
        un_trimesh_free(c.ctx, &m);
        un_arena_free(&arena);
        case_end(&c);
    }
}

static un_status merge_once(un_context *ctx, void *arg)
{
    const un_trimesh *m = arg;
    un_trimesh copy = {.vertex_count = m->vertex_count, .triangle_count = m->triangle_count};
    int32_t *same = NULL;
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, copy.position, m->vertex_count);
    UN_ALLOC_DONE(ctx, copy.triangle, m->triangle_count);
    UN_ALLOC_DONE(ctx, same, m->vertex_count);
    memcpy(copy.position, m->position, (size_t)m->vertex_count * sizeof *m->position);
    memcpy(copy.triangle, m->triangle, (size_t)m->triangle_count * sizeof *m->triangle);
    for (int32_t v = 0; v < m->vertex_count; v++) same[v] = v & ~1;
    UN_TRY_DONE(un_surface_merge(ctx, &copy, same));
done:
    un_free(ctx, same);
    un_trimesh_free(ctx, &copy);
    return status;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    double p[4] = {0.5, 0.5, 0.5, 0.4};
    mesh_case c;
    un_arena arena;
    int32_t *same;
    case_sphere(&c, 1, 0, 8, p);
    un_arena_init(&arena, c.ctx);
    un_trimesh m = contour_case(&c, &arena, &same);
    check_allocation_failures(merge_once, &m, 100);
    un_trimesh_free(c.ctx, &m);
    un_arena_free(&arena);
    case_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ball_takes_a_third),
        cmocka_unit_test(whatever_is_proposed),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
