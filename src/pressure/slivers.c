/* Velocities of slivers: faces and tets that solids leave open by less than SLIVER.
 *
 * All that flows through such a face must pass its opening, with a speed that goes as 1 / A. The
 * projection needs it, but it is no velocity of the liquid around: where a dam broke over a torus,
 * water flowing into a cell whose lid is open by a thousandth left it at 64 m/s, and extrapolation
 * carried that to its neighbours.
 *
 *  - Where all solids stand still, slivers count as not known, and get the velocity of the liquid
 *    next to them, along the wall. Faces of tets have normal components only: those that are open
 *    by less, but open, are left out where nodes and tets fit theirs.
 *  - A solid that moves displaces liquid, u = u_solid + (flux - u_solid) / A, also without any
 *    liquid nearby. There particles follow what moves through the whole face, liquid and solid
 *    together. They do not take its change for their own: that would give liquid next to a body the
 *    body's momentum anew in each step (a ball in a drop: +24 % of what both had, in 12 steps).
 *  - Velocities on the faces of tets are the liquid's momentum. They never follow a body that the
 *    liquid moves. */
#include "pressure/pressure.h"

static bool moves(const un_bodies *bodies, int32_t body)
{
    return body >= 0 && bodies->body[body].moves;
}

/* The share of the velocity against the solid that is left. */
static inline double share_left(double open)
{
    return open < UN_SLIVER ? open / UN_SLIVER : 1;
}

/* ---- the grid ---- */

typedef struct grid_args {
    double *const *u;
    uint8_t *const *known;
    const un_walls *walls;
    uint8_t *const *changed;
} grid_args;

/* Is a moving solid nearest to any node of the two cells at face (i, j, k)? */
static bool near_moving(const un_walls *w, int axis, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = w->grid;
    int32_t lo[3] = {i, j, k};
    if (lo[axis] > 0) lo[axis]--;
    for (int32_t z = lo[2]; z <= k + (g->dim == 3); z++)
        for (int32_t y = lo[1]; y <= j + 1; y++)
            for (int32_t x = lo[0]; x <= i + 1; x++)
                if (moves(w->bodies, w->body[un_grid_node(g, x, y, z)])) return true;
    return false;
}

static void calm_grid(void *arg, int64_t begin, int64_t end)
{
    const grid_args *a = arg;
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++)
        for (int axis = 0; axis < g->dim; axis++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
                int64_t f = un_grid_cell(g, i, j, k);
                double open = w->area[axis][f];
                if (!(open < UN_SLIVER) || a->known[axis][f] != 1) continue;
                if (w->bodies->moving && near_moving(w, axis, i, j, k)) {
                    double solid = w->velocity[axis][f];
                    a->u[axis][f] = solid + (a->u[axis][f] - solid) * share_left(open);
                } else if (open > 0) {
                    a->known[axis][f] = 0;
                }
            }
}

static void find_changed(void *arg, int64_t begin, int64_t end)
{
    const grid_args *a = arg;
    const un_walls *w = a->walls;
    const un_grid *g = w->grid;
    for (int64_t row = begin; row < end; row++)
        for (int axis = 0; axis < g->dim; axis++)
            for (int32_t i = 0; i < g->n[0]; i++) {
                int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
                int64_t f = un_grid_cell(g, i, j, k);
                a->changed[axis][f] = a->known[axis][f];
                if (a->known[axis][f] && w->area[axis][f] < UN_SLIVER &&
                    near_moving(w, axis, i, j, k))
                    a->changed[axis][f] = 0;
            }
}

void un_pressure_find_changed(un_context *ctx, uint8_t *const changed[3], uint8_t *const known[3],
                              const un_walls *walls)
{
    grid_args a = {.known = known, .walls = walls, .changed = changed};
    un_parallel_runs(ctx, un_grid_own_rows(walls->grid, 0), 64, find_changed, &a);
}

void un_pressure_calm_grid(un_context *ctx, double *const u[3], uint8_t *const known[3],
                           const un_walls *walls)
{
    grid_args a = {.u = u, .known = known, .walls = walls};
    un_runs rows = un_grid_own_rows(walls->grid, 0);
    if (walls->bodies->count > 0) un_parallel_runs(ctx, rows, 64, calm_grid, &a);
}

/* ---- leaves ---- */

typedef struct leaf_args {
    double *u;
    uint8_t *known, *changed;
    const un_leaves *leaves;
    const un_leaf_walls *walls;
    const double *p;
} leaf_args;

/* Has the wall at the leaf let go? Then nothing is pressed through its slivers. */
static bool is_free(const leaf_args *a, int32_t c)
{
    return c >= 0 && un_pressure_let_go(a->p[c]);
}

/* Is a moving solid nearest to any face of the leaf? */
static bool leaf_near_moving(const un_leaf_walls *w, const un_leaves *m, int32_t c)
{
    for (int side = 0; c >= 0 && side < 2 * m->dim; side++) {
        int32_t g = m->side[c][side];
        for (int k = 0; k < (g < 0 ? un_leaves_group_size(m) : 1); k++)
            if (moves(w->walls->bodies, w->body[g < 0 ? m->group[~g][k] : g])) return true;
    }
    return false;
}

static void calm_leaves(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaf_walls *w = a->walls;
    const un_leaves *m = a->leaves;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, other = m->face_other[f];
        double open = w->area[f];
        if (!(open < UN_SLIVER) || a->known[f] != 1 || is_free(a, c) || is_free(a, other)) continue;
        if (w->walls->bodies->moving &&
            (leaf_near_moving(w, m, c) || leaf_near_moving(w, m, other)))
            a->u[f] = w->velocity[f] + (a->u[f] - w->velocity[f]) * share_left(open);
        else if (open > 0)
            a->known[f] = 0;
    }
}

static void find_changed_leaves(void *arg, int64_t begin, int64_t end)
{
    const leaf_args *a = arg;
    const un_leaf_walls *w = a->walls;
    const un_leaves *m = a->leaves;
    for (int64_t f = begin; f < end; f++)
        a->changed[f] = a->known[f] &&
                        !(w->area[f] < UN_SLIVER && (leaf_near_moving(w, m, m->face_side[f] / 6) ||
                                                     leaf_near_moving(w, m, m->face_other[f])));
}

void un_pressure_find_changed_leaves(un_context *ctx, uint8_t *changed, const uint8_t *known,
                                     const un_leaves *leaves, const un_leaf_walls *walls)
{
    leaf_args a = {
        .known = (uint8_t *)(uintptr_t)known, .changed = changed, .leaves = leaves, .walls = walls};
    un_parallel_part(ctx, un_leaves_own_faces(leaves), 4096, find_changed_leaves, &a);
    un_leaves_spread_faces(leaves, changed, 1);
}

void un_pressure_calm_leaves(un_context *ctx, double *u, uint8_t *known, const un_leaves *leaves,
                             const un_leaf_walls *walls, const double *p)
{
    leaf_args a = {.u = u, .known = known, .leaves = leaves, .walls = walls, .p = p};
    if (walls->walls->bodies->count == 0) return;
    un_parallel_part(ctx, un_leaves_own_faces(leaves), 4096, calm_leaves, &a);
    un_leaves_spread_faces(leaves, u, sizeof *u);
    un_leaves_spread_faces(leaves, known, sizeof *known);
}

/* ---- tets ---- */

typedef struct tet_args {
    un_vec3 *u;
    uint8_t *known, *changed;
    const un_tet_walls *walls;
} tet_args;

static bool is_near_moving(const un_tet_walls *w, const int32_t *n, int count)
{
    for (int i = 0; i < count; i++)
        if (moves(w->walls->bodies, w->body[n[i]])) return true;
    return false;
}

/* Of those, the ones that the liquid moves. */
static bool is_near_free(const un_tet_walls *w, const int32_t *n, int count)
{
    for (int i = 0; i < count; i++)
        if (w->body[n[i]] >= 0 && w->walls->bodies->body[w->body[n[i]]].free) return true;
    return false;
}

static void calm_tets(void *arg, int64_t begin, int64_t end)
{
    const tet_args *a = arg;
    const un_tet_walls *w = a->walls;
    for (int64_t t = begin; t < end; t++) {
        a->changed[t] = a->known[t];
        if (!(w->open[t] < UN_SLIVER) || !a->known[t]) continue;
        a->changed[t] = 0;
        if (!w->u_solid || !is_near_moving(w, w->mesh->tet[t], 4)) {
            a->known[t] = 0;
            continue;
        }
        un_vec3 slip = un_sub(a->u[t], w->u_solid[t]);
        a->u[t] = un_mad(w->u_solid[t], slip, share_left(w->open[t]));
    }
}

void un_pressure_calm_tets(un_context *ctx, un_vec3 *u, uint8_t *known, uint8_t *changed,
                           const un_tet_walls *walls)
{
    tet_args a = {u, known, changed, walls};
    if (walls->walls->bodies->count > 0)
        un_parallel_for(ctx, walls->mesh->tet_count, 8192, calm_tets, &a);
    else
        memcpy(changed, known, (size_t)walls->mesh->tet_count);
}

/* ---- faces ---- */

typedef struct face_args {
    double *u;
    uint8_t *known;
    const un_faces *faces;
    const un_tet_walls *walls;
} face_args;

static void calm_faces(void *arg, int64_t begin, int64_t end)
{
    const face_args *a = arg;
    const un_tet_walls *w = a->walls;
    for (int64_t i = begin; i < end; i++) {
        int32_t f = (int32_t)i, t = un_face_tet(a->faces, f), other = a->faces->other[f], n[3];
        if (!a->known[f] || other < 0) continue;
        un_face_nodes(a->faces, w->mesh, f, n);
        double open = un_triangle_fraction((double[]){w->cut[n[0]], w->cut[n[1]], w->cut[n[2]]});
        if (!(open < UN_SLIVER)) continue;
        if (!w->u_solid || (!is_near_moving(w, w->mesh->tet[t], 4) &&
                            !is_near_moving(w, w->mesh->tet[other], 4))) {
            if (open > 0) a->known[f] = 0;
            continue;
        }
        if (is_near_free(w, w->mesh->tet[t], 4) || is_near_free(w, w->mesh->tet[other], 4)) {
            a->known[f] = 0;
            continue;
        }
        un_vec3 solid = un_scale(un_add(w->u_solid[t], w->u_solid[other]), 0.5);
        double speed = un_dot(solid, un_normalize(un_face_area(a->faces, w->mesh, f)));
        a->u[f] = speed + (a->u[f] - speed) * share_left(open);
    }
}

void un_pressure_calm_faces(un_context *ctx, double *u, uint8_t *known, const un_faces *faces,
                            const un_tet_walls *walls)
{
    face_args a = {u, known, faces, walls};
    if (walls->cut) un_parallel_for(ctx, faces->count, 4096, calm_faces, &a);
}
