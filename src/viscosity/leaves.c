/* Viscosity of velocities on the faces of an octree's leaves, by the stress of nodes.
 *
 * The corners and centres of leaves are the nodes of graded tets, where nodes.c has the full stress
 * with walls, bodies and volume kept. Faces and nodes are solved for together: with u on faces, v
 * at nodes, and (N v)_f the mean of v at a face, along its normal,
 *
 *     u, v minimise  1/2 |u - u_old|^2_M + 1/2 |u - N v|^2_S + dt/2 v.K v,
 *
 * S = M (1 - r) / r. Without u that is
 *
 *     (N^T W N + dt K) v = N^T W u_old,   W = (1 - r) M,   u = r u_old + (1 - r) N v.
 *
 * N is exact for linear velocities, and so is the stress of tets: a rigid motion costs nothing,
 * wherever the surface is, and linear and angular momentum are kept to the solver's tolerance. What
 * is finer than nodes resolve decays by r in a step, the rate of viscosity at the size of a cell
 * (un_viscous_rest): no motion of faces escapes, which is why nodes are solved for by least squares
 * [cf. Batty11 section 5.1, where they are means of faces and what these do not see stays]. In
 * thick liquid r is 0 and u = N v.
 *
 * Rejected: strains straight from the faces, as on the grid (grid.c). Where leaves of two sizes
 * meet in a corner, shears of both axes stand for different volumes, and no weights were found with
 * which a constant stress leaves all faces alone.
 *
 * N is half the mean of the face's corners and half that of both leaves' centres; where the leaves
 * differ in size, or one is missing, that of the corners. The mass of a face is that of the liquid
 * in the halves of its leaves; what leaves outside the liquid hold of it counts with those beside.
 * Nodes that stick to walls have their velocity; where the wall is a body that the liquid moves,
 * the body feels their stress but not their share of the mass, which is little where stress is
 * strong (r near 0) as well as where it is weak (W near 0). */
#include "viscosity/leaves.h"

/* Leaves up to this far outside the liquid, in edges, have faces that may follow it. */
#define BESIDE 1.8
/* ---- nodes of faces ---- */

/* The node at a place in units of the octree, -1: there is none. Of copies on the sides of a thin
 * wall: the one that is open, or that shares a tet with the node `with` (-1: any). */
static int32_t node_at(const un_tets *mesh, const int32_t at[3], int32_t with)
{
    uint64_t key = un_morton((uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
    uint64_t order = un_morton_order(key, mesh->end_key);
    int32_t low = 0, high = mesh->node_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (un_tets_order(mesh, middle) < order)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == mesh->node_count || mesh->node_key[low] != key) return -1;
    for (high = low + 1; high < mesh->node_count && mesh->node_key[high] == key; high++)
        ;
    if (high == low + 1) return low;
    for (int32_t n = low; n < high; n++)
        if (mesh->side[n] > 0) return n;
    for (int32_t n = low; n < high; n++)
        for (int32_t e = mesh->first[n]; with >= 0 && e < mesh->first[n + 1]; e++)
            for (int i = 0; i < 4; i++)
                if (mesh->tet[mesh->corner[e] / 4][i] == with) return n;
    return low;
}

/* Lower corner and edge of a leaf, in units. */
static int32_t corner_of(const un_octree *tree, int32_t c, int32_t at[3])
{
    for (int a = 0; a < 3; a++) at[a] = 2 * (int32_t)un_morton_gather(tree->key[c] >> a);
    return 2 << (tree->level_max - tree->level[c]);
}

static int32_t centre_of(const un_stress_leaves *s, int32_t c)
{
    int32_t at[3], edge = corner_of(s->step->leaves->tree, c, at);
    for (int a = 0; a < 3; a++) at[a] += edge / 2;
    return node_at(s->step->solve.mesh, at, -1);
}

static bool near_liquid(const un_stress_leaves *a, int32_t c)
{
    return c >= 0 && (double)a->step->phi[c] < BESIDE * un_leaf_size(a->step->leaves, c);
}

static void find_nodes(void *arg, int64_t begin, int64_t end)
{
    const un_stress_leaves *s = arg;
    const un_leaves *m = s->step->leaves;
    const un_octree *tree = m->tree;
    const un_tets *mesh = s->step->solve.mesh;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, other = m->face_other[f];
        int32_t *node = s->fit.node[f], low[3], edge, axis = side / 2;
        s->axis[f] = (uint8_t)axis;
        for (int k = 0; k < UN_FIT_NODES; k++) node[k] = -1;
        for (int k = 0; k < 4; k++) s->beyond[f][k] = -1;
        if (s->step->known[f] != 1 && !near_liquid(s, c) && !near_liquid(s, other)) continue;
        edge = corner_of(tree, c, low);
        int32_t with = centre_of(s, c);
        bool all = true;
        for (int k = 0; k < 4; k++) {
            int32_t at[3] = {low[0], low[1], low[2]};
            at[axis] += side & 1 ? edge : 0;
            at[(axis + 1) % 3] += k & 1 ? edge : 0;
            at[(axis + 2) % 3] += k >> 1 ? edge : 0;
            node[k] = node_at(mesh, at, with);
            all &= node[k] >= 0;
        }
        if (other >= 0 && tree->level[other] == tree->level[c]) {
            node[4] = with;
            node[5] = centre_of(s, other);
            if (node[4] < 0 || node[5] < 0) node[4] = node[5] = -1;
        }
        memcpy(s->beyond[f], node, sizeof s->beyond[f]);
        if (!all) node[0] = -1;
    }
}

/* ---- mass ---- */

/* The share of a leaf that is liquid, from the depths at its corners and its centre: the mean over
 * the tets from the centre to three corners of a side. The stress has the liquid of tets, and what
 * drives it should weigh as much. */
static double liquid_share(const double corner[8], double centre)
{
    static const int square[4] = {0, 1, 3, 2}; /* around it */
    double sum = 0;
    for (int side = 0; side < 6; side++)
        for (int leave = 0; leave < 4; leave++) {
            double depth[4] = {centre};
            for (int k = 0, n = 1; k < 4; k++) {
                int a = side / 2, c = square[k];
                if (k == leave) continue;
                int at = (side & 1) << a | (c & 1) << (a + 1) % 3 | (c >> 1) << (a + 2) % 3;
                depth[n++] = corner[at];
            }
            sum += un_tet_fraction(depth) / 24;
        }
    return sum;
}

static void weigh_leaves(void *arg, int64_t begin, int64_t end)
{
    const un_stress_leaves *s = arg;
    const un_viscous_def *in = &s->step->solve;
    const un_leaves *m = s->step->leaves;
    for (int64_t c = begin; c < end; c++) {
        double open = s->step->walls->volume[c], depth[8], centre = -(double)s->step->phi[c];
        int32_t low[3], edge = corner_of(m->tree, (int32_t)c, low);
        bool wet = centre > 0, dry = !wet;
        s->mass[c] = 0;
        if (!near_liquid(s, (int32_t)c) || !(open > 0)) continue;
        for (int k = 0; k < 8; k++) {
            int32_t at[3] = {low[0] + (k & 1 ? edge : 0), low[1] + (k >> 1 & 1 ? edge : 0),
                             low[2] + (k >> 2 ? edge : 0)};
            int32_t n = node_at(in->mesh, at, -1);
            depth[k] = n >= 0 ? -(double)in->phi[n] : centre;
            wet |= depth[k] > 0;
            dry |= !(depth[k] > 0);
        }
        double share = !wet ? 0 : !dry ? 1 : liquid_share(depth, centre);
        s->mass[c] = (float)(in->density_all * open * share * un_leaf_volume(m, c));
    }
}

/* The leaves at the sides of a leaf that are liquid, or that are not but hold some. */
static int list_beside(const un_stress_leaves *s, int32_t c, bool liquid, int32_t beside[24])
{
    const un_leaves *m = s->step->leaves;
    int count = 0;
    for (int side = 0; side < 6; side++) {
        int32_t f = m->side[c][side];
        for (int k = 0; k < (f < 0 ? un_leaves_group_size(m) : 1); k++) {
            int32_t face = f < 0 ? m->group[~f][k] : f, own = m->face_side[face] / 6;
            int32_t there = own == c ? m->face_other[face] : own;
            if (there < 0 || (s->step->phi[there] < 0) != liquid) continue;
            if (liquid || s->mass[there] > 0) beside[count++] = there;
        }
    }
    return count;
}

/* What a leaf outside the liquid holds goes to the liquid ones at its sides, whose faces move:
 * stress acts in it, and must not find less inertia than there is. */
static void hand_over(void *arg, int64_t begin, int64_t end)
{
    const un_stress_leaves *s = arg;
    int32_t beside[24], takers[24];
    for (int64_t c = begin; c < end; c++) {
        double sum = 0;
        if (s->step->phi[c] < 0) {
            sum = (double)s->mass[c];
            int count = list_beside(s, (int32_t)c, false, beside);
            for (int k = 0; k < count; k++)
                sum += (double)s->mass[beside[k]] / list_beside(s, beside[k], true, takers);
        }
        s->moved[c] = (float)sum;
    }
}

static double half_mass(const un_stress_leaves *s, int32_t c, int side)
{
    const un_leaves *m = s->step->leaves;
    if (c < 0) return 0;
    return 0.5 * (double)s->moved[c] / (m->side[c][side] < 0 ? un_leaves_group_size(m) : 1);
}

/* The share of its own velocity that a face keeps. */
static double rest_of(const un_stress_leaves *s, int64_t f)
{
    const un_viscous_def *in = &s->step->solve;
    double h = un_leaf_face_size(s->step->leaves, f);
    return s->step->pic ? 0 : un_viscous_rest(in->viscosity_all / in->density_all, h, in->dt);
}

static void weigh_faces(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    const un_leaves *m = s->step->leaves;
    for (int64_t f = begin; f < end; f++) {
        int32_t c = m->face_side[f] / 6, side = m->face_side[f] % 6, *node = s->fit.node[f];
        bool any = false;
        s->fit.mass[f] = 0;
        for (int k = 0; node[0] >= 0 && k < un_fit_count(&s->fit, f); k++) {
            if (un_stress_leaves_tells(s, node[k])) {
                any |= s->reached[node[k]] > 0;
                continue;
            }
            node[0] = -1;
        }
        if (!any) node[0] = -1;
        if (node[0] < 0 || s->step->known[f] != 1) continue;
        double mass = half_mass(s, c, side) + half_mass(s, m->face_other[f], side ^ 1);
        s->fit.mass[f] = (1 - rest_of(s, f)) * mass;
    }
}

/* ---- rows ---- */

void un_fit_row(const un_stress_nodes *s, int64_t n, un_row *r, double (*val)[9], un_vec3 *b)
{
    const un_viscous_fit *fit = s->in->fit;
    for (int32_t e = fit->first[n]; e < fit->first[n + 1]; e++) {
        int32_t f = fit->entry[e] / 8, a = fit->axis[f];
        double own = fit->mass[f] * un_fit_weight(fit, f, fit->entry[e] % 8),
               at_b = own * fit->u[f];
        for (int k = 0; k < un_fit_count(fit, f); k++) {
            int32_t j = fit->node[f][k];
            double w = own * un_fit_weight(fit, f, k);
            if (s->v->index[j] < 0) {
                if (val) at_b -= w * un_fit_component(s->in->u[j], a);
            } else if (val) {
                un_row_at(r, val[0], 9, j)[4 * a] += w;
            } else {
                un_row_find(r, j);
            }
        }
        if (val) *(a == 0 ? &b->x : a == 1 ? &b->y : &b->z) += at_b;
    }
}

/* Faces by node. */
static un_status list_faces(un_stress_leaves *s, un_arena *arena)
{
    const un_leaves *m = s->step->leaves;
    int64_t nodes = s->step->solve.mesh->node_count, total = 0;
    un_viscous_fit *fit = &s->fit;
    int32_t *first = fit->first;
    memset(first, 0, ((size_t)nodes + 1) * sizeof *first);
    for (int32_t r = 0; r < un_leaves_runs(m); r++)
        for (int64_t f = un_leaves_face_run(m, r).begin; f < un_leaves_face_run(m, r).end; f++)
            for (int k = 0; fit->mass[f] > 0 && k < un_fit_count(fit, f); k++) {
                first[fit->node[f][k] + 1]++;
                total++;
            }
    fit->entry = un_arena_alloc(arena, (size_t)total + 1, sizeof *fit->entry);
    if (!fit->entry) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < nodes; n++) {
        s->cursor[n] = first[n];
        first[n + 1] += first[n];
    }
    for (int32_t r = 0; r < un_leaves_runs(m); r++)
        for (int64_t f = un_leaves_face_run(m, r).begin; f < un_leaves_face_run(m, r).end; f++)
            for (int k = 0; fit->mass[f] > 0 && k < un_fit_count(fit, f); k++)
                fit->entry[s->cursor[fit->node[f][k]]++] = (int32_t)(8 * f + k);
    return UN_OK;
}

/* ---- velocities ---- */

/* A first guess at nodes: means of the faces around. */
static void guess_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    const un_viscous_fit *fit = &s->fit;
    const un_viscous_walls *w = s->step->solve.walls;
    for (int64_t n = begin; n < end; n++) {
        double sum[3] = {0}, total[3] = {0};
        s->u[n] = w ? w->u[n] : un_v3(0, 0, 0);
        s->mark[n] = fit->first[n + 1] > fit->first[n];
        if (w && w->kind[n] == UN_WALL_STICKS) continue;
        for (int32_t e = fit->first[n]; e < fit->first[n + 1]; e++) {
            int32_t f = fit->entry[e] / 8, a = fit->axis[f];
            double weight = fit->mass[f] * un_fit_weight(fit, f, fit->entry[e] % 8);
            sum[a] += weight * fit->u[f];
            total[a] += weight;
        }
        for (int a = 0; a < 3; a++)
            if (total[a] > 0) sum[a] /= total[a];
        s->u[n] = un_v3(sum[0], sum[1], sum[2]);
    }
}

/* Nodes without faces, in specks of liquid beside that of faces, begin with the mean of those
 * around them that have some. */
static void guess_alone(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    const un_tets *m = s->step->solve.mesh;
    const un_viscous_walls *w = s->step->solve.walls;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 sum = {0, 0, 0};
        double count = 0;
        if (!s->reached[n] || s->mark[n]) continue;
        if (w && w->kind[n] == UN_WALL_STICKS) continue;
        for (int32_t e = m->first[n]; e < m->first[n + 1]; e++)
            for (int i = 0; i < 4; i++) {
                int32_t k = m->tet[m->corner[e] / 4][i];
                if (!s->mark[k]) continue;
                sum = un_add(sum, s->u[k]);
                count++;
            }
        if (count > 0) s->u[n] = un_scale(sum, 1 / count);
    }
}

/* ---- what faces get ---- */

/* Faces beyond the surface whose nodes all have a velocity now. */
static bool is_beyond(const un_stress_leaves *s, int64_t f)
{
    const int32_t *node = s->beyond[f];
    if (s->step->known[f] == 1) return false;
    for (int k = 0; k < 4; k++)
        if (node[k] < 0 || !s->told[node[k]]) return false;
    return true;
}

static void change_faces(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    for (int64_t f = begin; f < end; f++) {
        s->step->solved[f] = 0;
        if (s->fit.node[f][0] < 0 && is_beyond(s, f)) {
            double sum = 0;
            for (int k = 0; k < 4; k++)
                sum += 0.25 * un_fit_component(s->u[s->beyond[f][k]], s->axis[f]);
            s->step->u[f] = sum;
            s->step->solved[f] = 1;
        }
        if (s->fit.node[f][0] < 0) continue;
        double u = un_fit_value(&s->fit, f, s->u);
        bool own = s->fit.mass[f] > 0 || s->step->known[f] == 1;
        double rest = own ? rest_of(s, f) : 0;
        s->step->solved[f] = !own;
        s->step->u[f] = rest * s->step->u[f] + (1 - rest) * u;
    }
}

/* Does a node stick to a body that the liquid moves? */
static bool is_moved(const un_stress_leaves *s, int32_t n)
{
    const un_viscous_walls *w = s->step->solve.walls;
    return w && w->body && w->body[n] >= 0 && w->kind[n] == UN_WALL_STICKS;
}

/* What nodes get of the faces' change that stick to no body, as their rows have it: with the
 * bodies' velocities from before the solve. */
static void sum_change(void *arg, int64_t begin, int64_t end, double *sums)
{
    const un_stress_leaves *s = arg;
    const un_viscous_fit *fit = &s->fit;
    const un_viscous_walls *w = s->step->solve.walls;
    for (int64_t f = begin; f < end; f++) {
        if (!(fit->mass[f] > 0)) continue;
        double u = 0, share = 0;
        int a = fit->axis[f];
        for (int k = 0; k < un_fit_count(fit, f); k++) {
            int32_t n = fit->node[f][k];
            bool moved = is_moved(s, n);
            double weight = un_fit_weight(fit, f, k);
            u += weight * un_fit_component(moved ? w->u[n] : s->u[n], a);
            if (!moved) share += weight;
        }
        sums[a] += share * fit->mass[f] * (u - fit->u[f]);
    }
}

/* Nodes that the solve will have unknowns for, and those on walls beside them: those of tets with
 * liquid (nodes.c weighs them again). */
static void find_reached(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    const un_viscous_def *in = &s->step->solve;
    const un_tets *m = in->mesh;
    for (int64_t n = begin; n < end; n++) {
        s->reached[n] = 0;
        for (int32_t e = m->first[n]; e < m->first[n + 1] && !s->reached[n]; e++)
            s->reached[n] = un_viscous_has_stress(in, m->corner[e] / 4);
    }
}

/* ---- the step ---- */

static un_status begin_step(un_stress_leaves *s, un_arena *arena)
{
    const un_leaves *m = s->step->leaves;
    size_t leaves = (size_t)m->count + 1, faces = (size_t)m->face_count + 1;
    size_t nodes = (size_t)s->step->solve.mesh->node_count + 1;
    s->mass = un_arena_alloc(arena, leaves, sizeof *s->mass);
    s->moved = un_arena_alloc(arena, leaves, sizeof *s->moved);
    s->axis = un_arena_alloc(arena, faces, 1);
    s->beyond = un_arena_alloc(arena, faces, sizeof *s->beyond);
    s->cursor = un_arena_alloc(arena, nodes, sizeof *s->cursor);
    s->reached = un_arena_alloc(arena, nodes, 1);
    s->told = un_arena_alloc(arena, nodes, 1);
    s->mark = un_arena_alloc(arena, nodes, 1);
    s->fit.node = un_arena_alloc(arena, faces, sizeof *s->fit.node);
    s->fit.mass = un_arena_alloc(arena, faces, sizeof *s->fit.mass);
    s->fit.first = un_arena_alloc(arena, nodes, sizeof *s->fit.first);
    s->fit.u = s->step->u;
    s->fit.axis = s->axis;
    bool able = s->mass && s->moved && s->axis && s->beyond && s->cursor && s->reached && s->told &&
                s->mark && s->fit.node && s->fit.mass && s->fit.first;
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    return un_stress_leaves_share_input(s);
}

/* What own leaves and nodes hold, and the faces that nodes are fitted to. */
static un_status find_fit(un_stress_leaves *s, un_arena *arena)
{
    un_context *ctx = s->v->ctx;
    const un_leaves *m = s->step->leaves;
    un_part own = un_leaves_own(m);
    un_field reached = {"reached", s->reached, NULL, 1};
    un_stress_leaves_over_faces(s, 1024, find_nodes);
    un_parallel_part(ctx, own, 1024, weigh_leaves, s);
    un_leaves_spread(m, s->mass, sizeof *s->mass);
    un_parallel_part(ctx, own, 1024, hand_over, s);
    un_leaves_spread(m, s->moved, sizeof *s->moved);
    un_stress_leaves_over_nodes(s, 1024, find_reached);
    UN_TRY(un_tets_share(s->step->solve.mesh, &reached, 1));
    un_stress_leaves_over_faces(s, 4096, weigh_faces);
    un_stress_leaves_share_faces(s);
    return un_leaves_agree(m, list_faces(s, arena));
}

static un_status guess(un_stress_leaves *s)
{
    un_field u = {"u", s->u, NULL, sizeof *s->u}, mark = {"mark", s->mark, NULL, 1};
    un_stress_leaves_over_nodes(s, 4096, guess_nodes);
    UN_TRY(un_stress_leaves_share_nodes(s, u, mark));
    un_stress_leaves_over_nodes(s, 4096, guess_alone);
    return UN_OK;
}

un_status un_viscosity_step_leaves(un_viscosity *v, un_arena *arena, un_viscous_leaves *step,
                                   un_vec3 *u_node, un_viscous_report *report)
{
    un_stress_leaves s = {.v = v, .step = step, .u = u_node};
    UN_TRY(begin_step(&s, arena));
    UN_TRY(find_fit(&s, arena));
    UN_TRY(guess(&s));
    step->solve.u = u_node;
    step->solve.reached = NULL;
    step->solve.fit = &s.fit;
    UN_TRY(un_viscosity_solve(v, arena, &step->solve, report));
    if (!report->solve.finite) return UN_OK;
    if (step->solve.bodies) {
        double sums[3];
        un_stress_leaves_sums(&s, 3, sum_change, sums);
        report->impulse = un_add(report->impulse, un_v3(sums[0], sums[1], sums[2]));
    }
    UN_TRY(un_stress_leaves_extend(&s));
    un_stress_leaves_over_faces(&s, 4096, change_faces);
    un_leaves_spread_faces(step->leaves, step->u, sizeof *step->u);
    un_leaves_spread_faces(step->leaves, step->solved, 1);
    return UN_OK;
}
