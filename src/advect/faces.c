/* Velocities on faces, carried from one mesh to the next [Batty11 section 3]. */
#include "advect/advect.h"

typedef struct face_args {
    const un_face_advection *in;
    double *u;
} face_args;

static bool is_liquid(const un_face_advection *in, const un_tets_place *place)
{
    const int32_t *n = in->old_mesh->tet[place->tet];
    return in->old_liquid[n[0]] == 1 || in->old_liquid[n[1]] == 1 || in->old_liquid[n[2]] == 1 ||
           in->old_liquid[n[3]] == 1;
}

static void trace_faces(void *arg, int64_t begin, int64_t end)
{
    face_args *a = arg;
    const un_face_advection *in = a->in;
    for (int64_t i = begin; i < end; i++) {
        int32_t f = (int32_t)i, n[3];
        un_face_nodes(in->faces, in->mesh, f, n);
        double h = un_tets_size(in->mesh, un_face_tet(in->faces, f));
        a->u[f] = 0;
        if (fminf(in->phi[n[0]], fminf(in->phi[n[1]], in->phi[n[2]])) > in->reach * h) continue;
        un_vec3 x = un_face_center(in->faces, in->mesh, f);
        un_tets_place place;
        un_tets_locate_closed(in->old_mesh, x, &place);
        un_vec3 here = un_tet_field_at(&in->old, in->old_mesh, &place);
        un_tets_locate_closed(in->old_mesh, un_mad(x, here, -0.5 * in->dt), &place);
        un_vec3 middle = un_tet_field_at(&in->old, in->old_mesh, &place);
        un_tets_locate_closed(in->old_mesh, un_mad(x, middle, -in->dt), &place);
        un_vec3 u = un_tet_field_at(&in->old, in->old_mesh, &place);
        bool thin = in->thick && !in->thick[un_face_tet(in->faces, f)];
        if (thin || !is_liquid(in, &place)) {
            un_vec3 sum = {0, 0, 0};
            int known = 0;
            for (int k = 0; k < 3; k++) {
                if (in->drops_known[n[k]] != 1) continue;
                sum = un_add(sum, in->drops[n[k]]);
                known++;
            }
            if (known > 0) u = un_scale(sum, 1.0 / known);
        }
        a->u[f] = un_dot(u, un_normalize(un_face_area(in->faces, in->mesh, f)));
    }
}

void un_advect_faces(un_context *ctx, double *u, const un_face_advection *advection)
{
    face_args a = {advection, u};
    un_parallel_for(ctx, advection->faces->count, 2048, trace_faces, &a);
}
