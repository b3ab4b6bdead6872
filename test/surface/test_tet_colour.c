/* The level set of tets from volumes at nodes: where it is flat, what is a bubble and what is not.
 */
#include "surface/meshes.h"

typedef struct colour_case {
    mesh_case c;
    un_tet_walls walls;
    float *volume, *colour;
} colour_case;

/* Liquid up to y = 0.7, beside a solid up to x = wall, of which a ball is filled only in part. */
static void begin(colour_case *k, double wall, double x_ball, double radius, double fill)
{
    case_begin(&k->c, 2, un_v3(1, 1, 1), 4, 16, NULL, 0);
    const un_tets *mesh = &k->c.mesh;
    size_t nodes = (size_t)mesh->node_count;
    k->walls = (un_tet_walls){0};
    k->walls.open = malloc((size_t)mesh->tet_count * sizeof *k->walls.open);
    k->walls.node_open = calloc(nodes, sizeof *k->walls.node_open);
    k->volume = malloc(nodes * sizeof *k->volume);
    k->colour = malloc(nodes * sizeof *k->colour);
    for (int32_t t = 0; t < mesh->tet_count; t++) {
        k->walls.open[t] = un_tets_center(mesh, t).x > wall;
        double share = 0.25 * un_tets_volume(mesh, t) * k->walls.open[t];
        for (int i = 0; i < 4; i++) k->walls.node_open[mesh->tet[t][i]] += (float)share;
    }
    for (int32_t n = 0; n < mesh->node_count; n++) {
        un_vec3 x = mesh->x[n];
        double away = un_length(un_sub(x, un_v3(x_ball, 0.35, 0.5))), c = x.y < 0.7 ? 1 : 0;
        if (away < radius) c = fill;
        k->volume[n] = (float)(c * k->walls.node_open[n]);
    }
    check_ok(k->c.ctx, un_colour_tets(k->c.ctx, &k->c.arena, k->c.phi, k->colour, k->volume, mesh,
                                      &k->walls));
}

static void end(colour_case *k)
{
    free(k->walls.open);
    free(k->walls.node_open);
    free(k->volume);
    free(k->colour);
    case_end(&k->c);
}

/* Nodes of air below the surface, and the least c there. */
static int32_t air_below(const colour_case *k, double *least)
{
    int32_t count = 0;
    *least = 1;
    for (int32_t n = 0; n < k->c.mesh.node_count; n++) {
        if (k->c.mesh.x[n].y > 0.6 || !(k->walls.node_open[n] > 0)) continue;
        *least = fmin(*least, k->colour[n]);
        count += k->c.phi[n] >= 0;
    }
    return count;
}

static void gaps_are_no_bubbles(void **state)
{
    (void)state;
    double least;
    colour_case k;
    for (int32_t beside = 0; beside < 2; beside++) {
        double wall = 0.25 * beside;
        begin(&k, wall, beside ? wall : 0.5, 0.15, 0.35);
        assert_int_equal(air_below(&k, &least), 0);
        check_below(least, 0.48); /* it would have been one */
        end(&k);
    }
}

static void bubbles_are(void **state)
{
    (void)state;
    double least;
    colour_case k;
    begin(&k, 0, 0.5, 0.2, 0);
    int32_t found = air_below(&k, &least);
    double wanted = 4.0 / 3 * UN_PI * 0.2 * 0.2 * 0.2 * 16 * 16 * 16 * 2; /* nodes */
    check_near(found, wanted, 0.3 * wanted);
    end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_are_no_bubbles),
        cmocka_unit_test(bubbles_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
