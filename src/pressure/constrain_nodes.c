/* Velocities at nodes on closed sides and in solids: for tets what constrain.c is for the grid. */
#include "pressure/pressure.h"

/* free: liquid has let go of the side and may move away from it. */
static void stop_at_side(double *u, double *d, double x, double top, bool low_closed,
                         bool high_closed, double snap, bool free)
{
    if (low_closed && x < snap && !(free && *u > 0)) *u = *d = 0;
    if (high_closed && x > top - snap && !(free && *u < 0)) *u = *d = 0;
}

/* Removes a velocity's part into the solid. */
static un_vec3 slide(un_vec3 u, un_vec3 solid, un_vec3 normal)
{
    double into = un_dot(un_sub(u, solid), normal);
    return into < 0 ? un_mad(u, normal, -into) : u;
}

/* Nodes on closed sides and in solids do not move into them. This holds before and after the
 * projection, because particles get the difference and it must not push them off the wall. */
static void constrain(void *arg, int64_t begin, int64_t end)
{
    const un_node_constraint *a = arg;
    const un_tets *mesh = a->mesh;
    const un_tet_walls *walls = a->walls;
    const bool *open = a->open_sides;
    un_vec3 top = mesh->tree->size;
    double snap = 1e-6 * mesh->tree->h;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 *u = &a->u[n], *d = &a->change[n], x = mesh->x[n];
        if (!a->known[n]) continue;
        if (a->held && a->held[n]) {
            un_vec3 before = un_sub(*u, *d);
            *u = a->u_held[n];
            *d = a->held[n] == 2 ? un_sub(*u, before) : un_v3(0, 0, 0);
            continue;
        }
        bool free = a->p && un_pressure_let_go(a->p[n]);
        stop_at_side(&u->x, &d->x, x.x, top.x, !open[0], !open[1], snap, free);
        stop_at_side(&u->y, &d->y, x.y, top.y, !open[2], !open[3], snap, free);
        stop_at_side(&u->z, &d->z, x.z, top.z, !open[4], !open[5], snap, free);
        double h = un_octree_size(mesh->tree, mesh->node_level[n]);
        if (!walls->phi_solid || walls->phi_solid[n] > 0.5 * h) continue;
        const un_body *body = &walls->walls->bodies->body[walls->body[n]];
        un_vec3 solid = un_body_velocity(body, x), old = un_sub(*u, *d);
        if (walls->phi_solid[n] <= 0) {
            un_vec3 normal = un_tet_walls_normal(walls, n);
            *u = slide(*u, solid, normal);
            old = slide(old, solid, normal);
        }
        *u = un_mad(solid, un_sub(*u, solid), un_body_slip_left(body, a->dt));
        *d = un_sub(*u, old);
    }
}

un_status un_pressure_constrain_nodes(un_context *ctx, un_node_constraint *def)
{
    un_field fields[2] = {{"u", def->u, NULL, sizeof *def->u},
                          {"change", def->change, NULL, sizeof *def->change}};
    un_parallel_part(ctx, un_tets_own_nodes(def->mesh), 4096, constrain, def);
    return un_tets_share(def->mesh, fields, 2); /* normals need all tets around a node */
}
