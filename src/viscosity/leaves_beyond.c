/* Velocities at nodes beyond the surface, after a viscous step on the faces of leaves (leaves.c).
 *
 * Nodes go on as those beside them do, along the mean gradient there; two layers of them. Over
 * ranks each finds gradients and velocities at its own nodes, and gets those of others. */
#include "viscosity/leaves.h"

/* Nodes beyond the surface that go on as those in the liquid do, in tets. Without, a turning drop
 * loses a fifth of its spin in half a second, not a tenth (test_method octree_viscous): particles
 * at the surface take part of the velocity of faces beyond it. */
#define LAYERS 2

/* The gradient around a node: the mean over the tets there whose velocities are all told. False if
 * there are none. */
static bool gradient_at(const un_stress_leaves *s, int32_t n, un_vec3 gradient[3])
{
    const un_tets *m = s->step->solve.mesh;
    double total = 0;
    for (int a = 0; a < 3; a++) gradient[a] = un_v3(0, 0, 0);
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++) {
        int32_t t = m->corner[e] / 4;
        const int32_t *k = m->tet[t];
        if (!s->told[k[0]] || !s->told[k[1]] || !s->told[k[2]] || !s->told[k[3]]) continue;
        double volume = un_tets_volume(m, t);
        total += volume;
        for (int a = 0; a < 3; a++) {
            double v[4];
            for (int i = 0; i < 4; i++) v[i] = un_fit_component(s->u[k[i]], a);
            gradient[a] = un_mad(gradient[a], un_tets_gradient(m, t, v), volume);
        }
    }
    for (int a = 0; a < 3 && total > 0; a++) gradient[a] = un_scale(gradient[a], 1 / total);
    return total > 0;
}

static bool sticks(const un_stress_leaves *s, int32_t n)
{
    const un_viscous_walls *w = s->step->solve.walls;
    return w && w->kind[n] == UN_WALL_STICKS;
}

/* Is a node beside it still without velocity? */
static bool is_last(const un_stress_leaves *s, int32_t n)
{
    const un_tets *m = s->step->solve.mesh;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++)
        for (int i = 0; i < 4; i++)
            if (!s->told[m->tet[m->corner[e] / 4][i]]) return true;
    return false;
}

/* Where nodes beside will ask for it: not in walls. */
static void find_gradients(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    for (int64_t k = begin; k < end; k++) {
        int32_t n = (int32_t)k;
        bool asked = s->told[n] && !sticks(s, n) && is_last(s, n);
        s->mark[n] = asked && gradient_at(s, n, s->gradient[n].of);
    }
}

static void begin_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    for (int64_t n = begin; n < end; n++) s->told[n] = un_stress_leaves_tells(s, (int32_t)n);
}

/* The mean of what those beside it say; false if none does. */
static bool extend_node(un_stress_leaves *s, int32_t n)
{
    const un_tets *m = s->step->solve.mesh;
    un_vec3 sum = {0, 0, 0};
    double count = 0;
    for (int32_t e = m->first[n]; e < m->first[n + 1]; e++)
        for (int i = 0; i < 4; i++) {
            int32_t k = m->tet[m->corner[e] / 4][i];
            if (!s->told[k] || !s->mark[k]) continue;
            const un_vec3 *gradient = s->gradient[k].of;
            un_vec3 way = un_sub(m->x[n], m->x[k]);
            un_vec3 change =
                un_v3(un_dot(gradient[0], way), un_dot(gradient[1], way), un_dot(gradient[2], way));
            sum = un_add(sum, un_add(s->u[k], change));
            count++;
        }
    if (count > 0) s->u[n] = un_scale(sum, 1 / count);
    return count > 0;
}

/* Nodes that are told stay as they are: others read them meanwhile. */
enum { EXTENDED = 2 };

static void extend_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    for (int64_t n = begin; n < end; n++)
        if (!s->told[n]) s->mark[n] = extend_node(s, (int32_t)n) ? EXTENDED : 0;
}

static void tell_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stress_leaves *s = arg;
    for (int64_t n = begin; n < end; n++) s->told[n] |= s->mark[n] == EXTENDED;
}

static un_status extend(un_stress_leaves *s)
{
    un_field gradient = {"gradient", s->gradient, NULL, sizeof *s->gradient};
    un_field mark = {"mark", s->mark, NULL, 1};
    un_field u = {"u", s->u, NULL, sizeof *s->u}, told = {"told", s->told, NULL, 1};
    un_parallel_for(s->v->ctx, s->step->solve.mesh->node_count, 8192, begin_nodes, s);
    for (int pass = 0; pass < LAYERS; pass++) {
        un_stress_leaves_over_nodes(s, 1024, find_gradients);
        UN_TRY(un_stress_leaves_share_nodes(s, gradient, mark));
        un_stress_leaves_over_nodes(s, 1024, extend_nodes);
        un_stress_leaves_over_nodes(s, 8192, tell_nodes);
        UN_TRY(un_stress_leaves_share_nodes(s, u, told));
    }
    return UN_OK;
}

/* Not from the arena, which what is touched of it would fill for good. */
un_status un_stress_leaves_extend(un_stress_leaves *s)
{
    const un_tets *mesh = s->step->solve.mesh;
    s->gradient = un_alloc(s->v->ctx, (size_t)mesh->node_count + 1, sizeof *s->gradient);
    un_status status = un_tets_agree(mesh, s->gradient ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = extend(s);
    un_free(s->v->ctx, s->gradient);
    return status;
}
