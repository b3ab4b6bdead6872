/* Pressures from nodes to tets and back: nodes persist from mesh to mesh, tets do not. */
#include "pressure/pressure.h"

typedef struct pressure_args {
    double *node, *tet;
    const un_tets *mesh;
    const int32_t *index; /* at tets: 0 or more in the liquid */
    const float *phi;
    un_vec3 weight; /* density times gravity */
} pressure_args;

static void guess_tets(void *arg, int64_t begin, int64_t end)
{
    pressure_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->mesh->tet[t];
        a->tet[t] = 0.25 * (a->node[n[0]] + a->node[n[1]] + a->node[n[2]] + a->node[n[3]]);
        int let_go = 0;
        for (int i = 0; i < 4; i++) let_go += un_pressure_let_go(a->node[n[i]]);
        if (let_go >= 3) a->tet[t] = -0.0; /* a face at a wall */
    }
}

void un_face_pressure_guess(un_context *ctx, double *p_tet, double *p_node, const un_tets *mesh)
{
    pressure_args a = {.node = p_node, .tet = p_tet, .mesh = mesh};
    un_parallel_for(ctx, mesh->tet_count, 8192, guess_tets, &a);
}

static void find_nodes(void *arg, int64_t begin, int64_t end)
{
    pressure_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        double sum = 0, total = 0;
        bool let_go = false;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            double w = a->index[t] >= 0 ? un_tets_volume(mesh, t) : 0;
            un_vec3 way = un_sub(mesh->x[n], un_tets_center(mesh, t));
            sum += w * (a->tet[t] + un_dot(a->weight, way));
            total += w;
            let_go |= w > 0 && un_pressure_let_go(a->tet[t]);
        }
        a->node[n] = a->phi[n] < 0 && total > 0 ? sum / total : 0;
        if (let_go) a->node[n] = -0.0;
    }
}

void un_face_pressure_to_nodes(const un_pressure *pressure, double *p_node, double *p_tet,
                               const un_tets *mesh, const float *phi, un_vec3 weight)
{
    pressure_args a = {p_node, p_tet, mesh, pressure->index, phi, weight};
    un_parallel_for(pressure->ctx, mesh->node_count, 4096, find_nodes, &a);
}
