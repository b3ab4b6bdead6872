/* Viscosity of normal velocities on faces, solved as one implicit system [Batty11 section 5.1]:
 *
 *     (M + dt H^T K H) u = M u_old                                             (eq. 10, 11)
 *
 * H turns face velocities into nodal ones by least squares, v = (N^T N)^-1 N^T u (eq. 9), K is the
 * nodal stress of nodes.c, and H^T returns forces on nodes to faces. The solver is conjugate
 * gradients with the diagonal as preconditioner; H^T K H, whose rows have hundreds of entries, is
 * never formed.
 *
 * M: a face has three quarters of the liquid in each of its tets, because then sum_f m_f n n^T is
 * their mass. With a quarter, as masses are usually lumped, liquid would be three times as light
 * for viscosity as for gravity.
 *
 * Tets with a little liquid, mostly beyond the faces that the pressure treats as liquid, may have
 * nodes that no such face touches: H has no row for them. Such tets are left out of K; a row of
 * zeros would hold the surface fast there. */
#include "viscosity/viscosity.h"

typedef struct args {
    un_context *ctx;
    const un_viscosity *v;
    const un_viscous_def *in;
    const un_viscous_faces *on;
    un_vec3 *normal;          /* at faces */
    double (*fit)[9];         /* of unknowns: (N^T N)^-1 */
    double *mass, *inverse;   /* at faces; 0: not part of the system */
    un_cg cg;                 /* at faces */
    un_vec3 *node_u, *node_f; /* of unknowns */
    const double *from;       /* of the current operation */
    double *to;
    uint8_t *told; /* at nodes */
    bool given;    /* node_f is given as a force; else it is (M + dt K) node_u */
} args;

static void find_normals(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t f = begin; f < end; f++)
        a->normal[f] = un_normalize(un_face_area(a->on->faces, a->in->mesh, (int32_t)f));
}

static bool slides(const args *a)
{
    return a->in->walls && a->in->walls->slides;
}

static void fit_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_tets *m = a->in->mesh;
    for (int64_t r = begin; r < end; r++) {
        int32_t n = a->v->node[r];
        double *fit = a->fit[r];
        memset(fit, 0, 9 * sizeof *fit);
        for (int32_t k = m->first[n]; k < m->first[n + 1]; k++)
            for (int c = 1; c < 4; c++) { /* faces of the tet at the node */
                int32_t t = m->corner[k] / 4;
                int32_t f = a->on->faces->of_tet[t][(m->corner[k] + c) & 3];
                if (a->on->known[f] != 1) continue;
                /* visited from both its tets */
                double weight = a->on->faces->other[f] >= 0 ? 0.5 : 1;
                un_vec3 normal = a->normal[f];
                double w[3] = {normal.x, normal.y, normal.z};
                for (int e = 0; e < 9; e++) fit[e] += weight * w[e / 3] * w[e % 3];
            }
        un_small_inverse(fit, 3, 1e-3);
    }
}

/* Finds nodes of a face in the liquid. Such a face belongs to a tet in the liquid, so the node has
 * three faces whose normals span space. */
static void find_told(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_tets *m = a->in->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->told[n] = 0;
        for (int32_t k = m->first[n]; k < m->first[n + 1]; k++)
            for (int c = 1; c < 4; c++) {
                int32_t f = a->on->faces->of_tet[m->corner[k] / 4][(m->corner[k] + c) & 3];
                a->told[n] |= a->on->known[f] == 1;
            }
    }
}

static double tet_mass(const args *a, int32_t t)
{
    const int32_t *n = a->in->mesh->tet[t];
    const float *rho = a->in->density;
    double depth[4], density = a->in->density_all;
    for (int i = 0; i < 4; i++) depth[i] = -(double)a->in->phi[n[i]];
    if (rho) density = 0.25 * ((double)rho[n[0]] + rho[n[1]] + rho[n[2]] + rho[n[3]]);
    double open = a->in->tet_walls ? (double)a->in->tet_walls->open[t] : 1;
    return density * un_tet_fraction(depth) * open * un_tets_volume(a->in->mesh, t);
}

static void weigh_faces(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_block_csr *m = &a->v->matrix;
    for (int64_t f = begin; f < end; f++) {
        int32_t other = a->on->faces->other[f], nodes[3];
        double mass = tet_mass(a, un_face_tet(a->on->faces, (int32_t)f));
        if (other >= 0) mass += tet_mass(a, other);
        a->mass[f] = a->on->known[f] == 1 ? 0.75 * mass : 0;
        double diagonal = a->mass[f];
        un_face_nodes(a->on->faces, a->in->mesh, (int32_t)f, nodes);
        for (int k = 0; k < 3 && diagonal > 0; k++) {
            int32_t r = a->v->index[nodes[k]];
            if (r < 0) continue;
            un_vec3 w = un_block_times(a->fit[r], a->normal[f]);
            for (int32_t e = m->row[r]; e < m->row[r + 1]; e++)
                if (m->col[e] == r)
                    diagonal +=
                        un_dot(w, un_block_times(m->val[e], w)) - a->v->mass[r] * un_dot(w, w);
        }
        a->inverse[f] = diagonal > 0 ? 1 / diagonal : 0;
    }
}

/* node_u = H from. */
static void to_nodes(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    const un_tets *m = a->in->mesh;
    for (int64_t r = begin; r < end; r++) {
        int32_t n = a->v->node[r];
        un_vec3 sum = {0, 0, 0};
        for (int32_t k = m->first[n]; k < m->first[n + 1]; k++)
            for (int c = 1; c < 4; c++) {
                int32_t t = m->corner[k] / 4;
                int32_t f = a->on->faces->of_tet[t][(m->corner[k] + c) & 3];
                if (a->on->known[f] != 1) continue;
                double weight = a->on->faces->other[f] >= 0 ? 0.5 : 1;
                sum = un_mad(sum, a->normal[f], weight * a->from[f]);
            }
        un_vec3 u = un_block_times(a->fit[r], sum);
        a->node_u[r] = slides(a) ? un_block_times(a->v->free[r], u) : u;
    }
}

/* node_f = (N^T N)^-1 node_f; the factor N follows at the faces. */
static void fit_forces(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t r = begin; r < end; r++) {
        un_vec3 force = a->node_f[r];
        if (!a->given) force = un_mad(force, a->node_u[r], -a->v->mass[r]);
        if (slides(a)) force = un_block_times(a->v->free[r], force);
        a->node_f[r] = un_block_times(a->fit[r], force);
    }
}

/* to = M from + N node_f, and from.to. */
static double to_faces(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    double product = 0;
    for (int64_t f = begin; f < end; f++) {
        int32_t nodes[3];
        a->to[f] = 0;
        if (!(a->inverse[f] > 0)) continue;
        un_face_nodes(a->on->faces, a->in->mesh, (int32_t)f, nodes);
        double sum = a->mass[f] * a->from[f];
        for (int k = 0; k < 3; k++) {
            int32_t r = a->v->index[nodes[k]];
            if (r >= 0) sum += un_dot(a->normal[f], a->node_f[r]);
        }
        a->to[f] = sum;
        product += sum * a->from[f];
    }
    return product;
}

static double apply(void *state, double *to, const double *from)
{
    args *a = state;
    a->from = from;
    a->to = to;
    a->given = false;
    un_parallel_for(a->ctx, a->v->matrix.n, 1024, to_nodes, a);
    un_block_csr_apply(a->ctx, a->node_f, &a->v->matrix, a->node_u);
    un_parallel_for(a->ctx, a->v->matrix.n, 4096, fit_forces, a);
    return un_parallel_sum(a->ctx, a->on->faces->count, to_faces, a);
}

/* Forces of nodes at walls on the others. */
static void wall_forces(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t r = begin; r < end; r++)
        a->node_f[r] = un_mad(a->v->b[r], a->v->x[r], -a->v->mass[r]);
}

static double norm_rows(void *arg, int64_t begin, int64_t end)
{
    const double *r = ((args *)arg)->cg.r;
    double sum = 0;
    for (int64_t f = begin; f < end; f++) sum += r[f] * r[f];
    return sum;
}

/* r -= q, and |r|^2. */
static double start_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    double sum = 0, *r = a->cg.r;
    for (int64_t f = begin; f < end; f++) {
        r[f] -= a->cg.q[f];
        sum += r[f] * r[f];
    }
    return sum;
}

static void divide_rows(void *arg, int64_t begin, int64_t end)
{
    args *a = arg;
    for (int64_t f = begin; f < end; f++) a->to[f] = a->inverse[f] * a->from[f];
}

static void precondition(void *state, double *z, const double *r)
{
    args *a = state;
    a->from = r;
    a->to = z;
    un_parallel_for(a->ctx, a->cg.n, 8192, divide_rows, a);
}

static void iterate(args *a, un_block_report *report)
{
    int64_t faces = a->on->faces->count;
    double tolerance = a->in->tolerance;
    un_cg *cg = &a->cg;
    *report = (un_block_report){.kind = UN_BLOCK_JACOBI, .converged = true};
    /* r = b = M u + H^T of the walls' forces */
    un_parallel_for(a->ctx, a->v->matrix.n, 4096, wall_forces, a);
    a->given = true;
    un_parallel_for(a->ctx, a->v->matrix.n, 4096, fit_forces, a);
    a->from = a->on->u;
    a->to = cg->r;
    un_parallel_sum(a->ctx, faces, to_faces, a);
    double b_norm = sqrt(un_parallel_sum(a->ctx, faces, norm_rows, a));
    report->finite = isfinite(b_norm);
    if (!(b_norm > 0) || !report->finite) return;
    apply(a, cg->q, a->on->u);
    report->residual = sqrt(un_parallel_sum(a->ctx, faces, start_rows, a)) / b_norm;
    cg->ctx = a->ctx;
    cg->n = a->on->faces->count;
    cg->width = 1;
    cg->x = a->on->u;
    cg->state = a;
    cg->apply = apply;
    cg->precondition = precondition;
    if (report->residual > tolerance)
        un_cg_iterate(cg, b_norm, tolerance, a->in->iteration_limit, &report->iterations,
                      &report->residual);
    report->converged = report->residual <= tolerance;
    report->finite = isfinite(report->residual);
}

un_status un_viscosity_solve_faces(un_viscosity *v, un_arena *arena, const un_viscous_def *in,
                                   const un_viscous_faces *on, un_viscous_report *report)
{
    args a = {.ctx = v->ctx, .v = v, .in = in, .on = on};
    un_viscous_def def = *in;
    def.bodies = NULL; /* H has no rows for them */
    def.told = a.told = un_arena_alloc(arena, (size_t)in->mesh->node_count + 1, 1);
    if (!a.told) return UN_ERROR_MEMORY;
    un_parallel_for(v->ctx, in->mesh->node_count, 4096, find_told, &a);
    UN_TRY(un_viscosity_assemble(v, arena, &def, report));
    size_t faces = (size_t)on->faces->count + 1, rows = (size_t)v->matrix.n + 1;
    double **vectors[] = {&a.mass, &a.inverse, &a.cg.r, &a.cg.z, &a.cg.p, &a.cg.q};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = un_arena_alloc(arena, faces, sizeof(double));
        if (!*vectors[i]) return UN_ERROR_MEMORY;
    }
    a.normal = un_arena_alloc(arena, faces, sizeof *a.normal);
    a.fit = un_arena_alloc(arena, rows, sizeof *a.fit);
    a.node_u = un_arena_alloc(arena, rows, sizeof *a.node_u);
    a.node_f = un_arena_alloc(arena, rows, sizeof *a.node_f);
    if (!a.normal || !a.fit || !a.node_u || !a.node_f) return UN_ERROR_MEMORY;
    un_parallel_for(v->ctx, on->faces->count, 4096, find_normals, &a);
    un_parallel_for(v->ctx, v->matrix.n, 1024, fit_rows, &a);
    un_parallel_for(v->ctx, on->faces->count, 1024, weigh_faces, &a);
    iterate(&a, &report->solve);
    return UN_OK;
}
