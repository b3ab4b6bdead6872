/* Bodies that the liquid moves, as tets see them. */
#include "mesh/mesh.h"

int32_t un_tet_walls_free_body(const un_tet_walls *tw, int32_t t)
{
    const int32_t *n = tw->mesh->tet[t];
    if (tw->open[t] >= 1) return -1;
    int32_t nearest = n[0];
    for (int i = 1; i < 4; i++)
        if (tw->cut[n[i]] < tw->cut[nearest]) nearest = n[i];
    int32_t body = tw->body[nearest];
    if (body < 0 || tw->phi_solid[nearest] > tw->cut[nearest]) return -1;
    return tw->walls->bodies->body[body].free ? body : -1;
}

static void velocities(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    for (int64_t t = begin; t < end; t++) {
        int32_t body = un_tet_walls_free_body(tw, (int32_t)t);
        if (body >= 0)
            tw->u_solid[t] = un_body_velocity(&tw->walls->bodies->body[body],
                                              un_tets_center(tw->mesh, (int32_t)t));
    }
}

void un_tet_walls_find_velocities(un_tet_walls *tw)
{
    un_parallel_for(tw->ctx, tw->mesh->tet_count, 8192, velocities, tw);
}
