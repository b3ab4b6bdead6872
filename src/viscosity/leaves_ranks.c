/* A viscous step on the faces of leaves over ranks.
 *
 * A rank finds what there is at its own leaves, their faces and its own nodes, and the rows of
 * these nodes (nodes_ranks.c). A row has the faces around its node, some of which belong to leaves
 * of others: the rank of a face says what mass it has and which nodes are its, by their numbers on
 * one rank, and those who have one of these nodes know them all (un_tet_share.wide). */
#include "viscosity/leaves.h"

un_status un_stress_leaves_share_input(const un_stress_leaves *s)
{
    const un_viscous_leaves *step = s->step;
    if (!step->leaves->share) return UN_OK;
    un_leaves_spread_faces(step->leaves, step->u, sizeof *step->u);
    return un_leaves_agree(step->leaves,
                           un_halo_reserve(step->leaves->share->near_faces, sizeof *s->fit.node));
}

static void number_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    const un_tet_share *part = s->step->solve.mesh->share;
    for (int64_t f = begin; f < end; f++)
        for (int k = 0; k < UN_FIT_NODES; k++) {
            int32_t n = s->fit.node[f][k];
            if (n >= 0) s->fit.node[f][k] = (int32_t)un_tet_share_number(part, n);
        }
}

/* Faces with a node that is not here have none of this rank's, and are left out. */
static void find_numbers(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    const un_tet_share *part = s->step->solve.mesh->share;
    for (int64_t f = begin; f < end; f++) {
        int32_t *node = s->fit.node[f];
        bool all = node[0] >= 0;
        s->axis[f] = (uint8_t)un_leaf_face_axis(s->step->leaves, f);
        for (int k = 0; k < UN_FIT_NODES; k++) {
            if (node[k] < 0) continue;
            node[k] = un_tet_share_node(part, (uint32_t)node[k]);
            all &= node[k] >= 0;
        }
        if (all) continue;
        node[0] = -1;
        s->fit.mass[f] = 0;
    }
}

void un_stress_leaves_share_faces(un_stress_leaves *s)
{
    const un_leaves *m = s->step->leaves;
    if (!m->share) return;
    un_stress_leaves_over_faces(s, 4096, number_nodes);
    un_leaves_spread_faces(m, s->fit.node, sizeof *s->fit.node);
    un_leaves_spread_faces(m, s->fit.mass, sizeof *s->fit.mass);
    un_leaves_each_face(m, 4096, find_numbers, s);
}

un_status un_stress_leaves_share_nodes(const un_stress_leaves *s, un_field a, un_field b)
{
    un_field fields[2] = {a, b};
    return un_tets_share(s->step->solve.mesh, fields, 2);
}

void un_stress_leaves_sums(un_stress_leaves *s, int32_t width, un_parallel_values *values,
                           double *sums)
{
    const un_leaves *m = s->step->leaves;
    un_part own = un_leaves_own_faces(m);
    un_range range = {own.begin, own.end, m->face_count};
    if (m->share)
        un_ranks_sums(s->v->ctx, range, width, values, s, sums);
    else
        un_parallel_sums(s->v->ctx, m->face_count, width, values, s, sums);
}
