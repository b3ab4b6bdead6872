/* A viscous step for velocities at tets, or on the faces between them, solved at nodes [Batty11
 * sections 4 and 5.2].
 *
 * Nodes get the step's change so far, the solve happens there, and tets or faces get the change
 * that the solve made. This departs from the paper: the sub-nodal velocity of a tet or a face is
 * not kept whole but decays at the viscous rate (un_viscous_rest), or thin layers would boil. */
#include "viscosity/viscosity.h"

typedef struct step_args {
    const un_viscous_step *step;
    un_vec3 *u_tet;
    const uint8_t *known_tet;
    const un_vec3 *u_node;
    un_vec3 *u;         /* at nodes: with the change so far, then the solution */
    un_vec3 *before;    /* at nodes: a copy of u from before the solve */
    const un_vec3 *was; /* the same; for faces the caller's copy */
    uint8_t *reached;
    const un_viscous_faces *on;
} step_args;

static void add_change(void *arg, int64_t begin, int64_t end)
{
    step_args *a = arg;
    const un_viscous_walls *walls = a->step->solve.walls;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 u = un_add(a->u_node[n], a->u[n]);
        /* At a body that the liquid moves, liquid has its own momentum: the solve shares it out. */
        a->u[n] = a->before[n] = walls->held[n] == 1 ? walls->u[n] : u;
    }
}

static void change_tets(void *arg, int64_t begin, int64_t end)
{
    step_args *a = arg;
    const un_tets *mesh = a->step->solve.mesh;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = mesh->tet[t];
        un_vec3 u = {0, 0, 0}, was = {0, 0, 0};
        double nu = 0;
        int reached = 0;
        if (a->known_tet[t] != 1) continue;
        for (int i = 0; i < 4; i++) {
            if (!a->reached[n[i]]) continue;
            reached++;
            u = un_mad(u, a->u[n[i]], 0.25);
            was = un_mad(was, a->was[n[i]], 0.25);
            nu += 0.25 * un_mixture_thickness(a->step->mix, n[i]);
        }
        double h = un_tets_size(mesh, (int32_t)t);
        double own = reached < 4 ? 1 : a->step->pic ? 0 : un_viscous_rest(nu, h, a->step->solve.dt);
        a->u_tet[t] = un_mad(u, un_sub(a->u_tet[t], was), own);
    }
}

un_status un_viscosity_step_tets(un_viscosity *viscosity, un_arena *arena, un_viscous_step *step,
                                 un_vec3 *u_tet, const un_vec3 *was_tet, const uint8_t *known_tet,
                                 const un_vec3 *u_node, un_viscous_report *report)
{
    un_context *ctx = viscosity->ctx;
    const un_tets *mesh = step->solve.mesh;
    size_t nodes = (size_t)mesh->node_count + 1, tets = (size_t)mesh->tet_count + 1;
    un_vec3 *change = un_arena_alloc(arena, tets, sizeof *change);
    step_args a = {.step = step,
                   .u_tet = u_tet,
                   .known_tet = known_tet,
                   .u_node = u_node,
                   .u = un_arena_alloc(arena, nodes, sizeof *a.u),
                   .before = un_arena_alloc(arena, nodes, sizeof *a.before),
                   .reached = un_arena_alloc(arena, nodes, 1)};
    bool able = change && a.u && a.before && a.reached;
    UN_TRY(un_tets_agree(mesh, able ? UN_OK : UN_ERROR_MEMORY));
    a.was = a.before;
    un_transfer_change(ctx, change, u_tet, was_tet, known_tet, mesh->tet_count);
    UN_TRY(un_transfer_tets_to_nodes(ctx, a.u, a.reached, change, known_tet, mesh,
                                     step->solve.tet_walls->open));
    un_parallel_for(ctx, mesh->node_count, 16384, add_change, &a);
    step->solve.u = a.u;
    step->solve.reached = a.reached;
    UN_TRY(un_viscosity_solve(viscosity, arena, &step->solve, report));
    if (report->solve.finite) un_parallel_for(ctx, mesh->tet_count, 8192, change_tets, &a);
    return UN_OK;
}

/* Adds the mean change of a face's three nodes, or takes their mean velocity itself. */
static void change_faces(void *arg, int64_t begin, int64_t end)
{
    step_args *a = arg;
    const un_viscous_faces *on = a->on;
    const un_tets *mesh = a->step->solve.mesh;
    for (int64_t f = begin; f < end; f++) {
        int32_t n[3];
        if (on->known[f] != 1) continue;
        un_face_nodes(on->faces, mesh, (int32_t)f, n);
        un_vec3 u = {0, 0, 0}, was = {0, 0, 0};
        double nu = 0;
        int reached = 0;
        for (int k = 0; k < 3; k++) {
            if (!a->reached[n[k]]) continue;
            reached++;
            u = un_add(u, a->u[n[k]]);
            was = un_add(was, a->was[n[k]]);
            nu += un_mixture_thickness(a->step->mix, n[k]) / 3;
        }
        un_vec3 normal = un_normalize(un_face_area(on->faces, mesh, (int32_t)f));
        double h = un_tets_size(mesh, un_face_tet(on->faces, (int32_t)f));
        double own = reached < 3 ? 1 : a->step->pic ? 0 : un_viscous_rest(nu, h, a->step->solve.dt);
        on->u[f] = un_dot(u, normal) / 3 + own * (on->u[f] - un_dot(was, normal) / 3);
    }
}

un_status un_viscosity_step_faces(un_viscosity *viscosity, un_arena *arena, un_viscous_step *step,
                                  const un_viscous_faces *on, un_vec3 *u_node,
                                  const un_vec3 *was_node, bool implicit, un_viscous_report *report)
{
    uint8_t *reached = un_arena_alloc(arena, (size_t)step->solve.mesh->node_count + 1, 1);
    if (!reached) return UN_ERROR_MEMORY;
    step->solve.u = u_node;
    step->solve.reached = reached;
    if (implicit) return un_viscosity_solve_faces(viscosity, arena, &step->solve, on, report);
    UN_TRY(un_viscosity_solve(viscosity, arena, &step->solve, report));
    step_args a = {.step = step, .u = u_node, .was = was_node, .reached = reached, .on = on};
    if (report->solve.finite)
        un_parallel_for(viscosity->ctx, on->faces->count, 4096, change_faces, &a);
    return UN_OK;
}
