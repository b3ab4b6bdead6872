/* The liquid's area on a quadtree, and probes of the level set on leaves.
 *
 * The level set of the simulation is sampled on a lattice; particles that it leaves outside are
 * discs of their own area. */
#include "surface/surface.h"

static double phi_at(const un_leaves *m, const float *phi, un_vec3 x)
{
    x = un_min3(un_max3(x, un_v3(0, 0, 0)), m->tree->size);
    return un_leaves_sample(m, phi, un_octree_find(m->tree, x), x);
}

typedef struct flat_args {
    const un_leaf_flat *in;
    un_lattice lattice;
    un_trimesh *mesh;
} flat_args;

static inline un_vec3 node_at(const un_lattice *l, int64_t i, int64_t j)
{
    return un_v3(l->h[0] * (double)i, l->h[1] * (double)j, 0);
}

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    const flat_args *a = arg;
    const un_lattice *l = &a->lattice;
    for (int64_t j = begin; j < end; j++)
        for (int64_t i = 0; i < l->n[0]; i++)
            l->phi[i + j * l->n[0]] = (float)phi_at(a->in->leaves, a->in->phi, node_at(l, i, j));
}

/* One thread: there are few of them. */
static void add_discs(flat_args *a)
{
    const un_markers *mk = a->in->markers;
    const un_particles *p = &mk->particles;
    un_lattice *l = &a->lattice;
    for (int32_t q = 0; q < p->count; q++) {
        double r = un_particle_ball(p, q);
        /* those at the surface are in the level set, though their discs stand out */
        bool flies = p->flags[q] & UN_PARTICLE_BALLISTIC;
        if (!(mk->depth[q] > (float)(flies ? -r : r))) continue;
        un_vec3 x = un_particle_position(p, q);
        r = fmax(r, 0.71 * l->h[0]); /* or a lattice point might miss it */
        int32_t lo[2], hi[2];
        double at[2] = {x.x, x.y};
        for (int k = 0; k < 2; k++) {
            lo[k] = un_clampi((int32_t)((at[k] - r) / l->h[k]) - 1, 0, l->n[k] - 1);
            hi[k] = un_clampi((int32_t)((at[k] + r) / l->h[k]) + 2, 0, l->n[k] - 1);
        }
        for (int32_t j = lo[1]; j <= hi[1]; j++)
            for (int32_t i = lo[0]; i <= hi[0]; i++) {
                float *v = &l->phi[i + (int64_t)j * l->n[0]];
                *v = fminf(*v, (float)(un_length(un_sub(node_at(l, i, j), x)) - r));
            }
    }
}

static void cut_rows(void *arg, int64_t begin, int64_t end)
{
    const flat_args *a = arg;
    const un_lattice *l = &a->lattice;
    for (int64_t j = begin; j < end; j++)
        for (int64_t i = 0; i < l->n[0]; i++) {
            float *v = &l->phi[i + j * l->n[0]];
            double d = 4 * l->h[0];
            if (*v > 0) continue;
            un_bodies_nearest(a->in->walls->bodies, node_at(l, i, j), &d);
            *v = fmaxf(*v, (float)-d);
        }
}

static void vertex_velocities(void *arg, int64_t begin, int64_t end)
{
    const flat_args *a = arg;
    const un_octree *tree = a->in->leaves->tree;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = a->mesh->position[v];
        a->mesh->velocity[v] = un_leaves_flow_at(a->in->flow, un_octree_find(tree, x), x);
    }
}

un_status un_surface_mesh_flat(un_context *ctx, un_trimesh *mesh, const un_leaf_flat *in)
{
    un_vec3 size = in->leaves->tree->size;
    flat_args a = {.in = in, .mesh = mesh, .lattice = {.n = {0, 0, 1}}};
    un_lattice *l = &a.lattice;
    double step = fmax(size.x, size.y) / in->resolution, side[2] = {size.x, size.y};
    *mesh = (un_trimesh){0};
    for (int k = 0; k < 2; k++) {
        int32_t cells = (int32_t)fmax(1, round(side[k] / step));
        l->n[k] = cells + 1;
        l->h[k] = side[k] / cells;
    }
    UN_ALLOC(ctx, l->phi, (size_t)l->n[0] * (size_t)l->n[1]);
    un_parallel_for(ctx, l->n[1], 8, sample_rows, &a);
    add_discs(&a);
    if (in->walls->bodies->count > 0) un_parallel_for(ctx, l->n[1], 8, cut_rows, &a);
    un_status status = un_surface_area(ctx, l, in->smoothing, mesh);
    un_free(ctx, l->phi);
    UN_TRY(status);
    mesh->velocity = un_alloc(ctx, (size_t)mesh->vertex_count + 1, sizeof *mesh->velocity);
    if (!mesh->velocity) {
        un_trimesh_free(ctx, mesh);
        return UN_ERROR_MEMORY;
    }
    un_parallel_for(ctx, mesh->vertex_count, 512, vertex_velocities, &a);
    return UN_OK;
}

/* ---- probes ---- */

typedef struct front_args {
    const un_leaves *m;
    const float *phi;
    int axis;
    double sign;
} front_args;

/* As on tets: the farthest point that a cube of two finest cells reaches while it lies entirely in
 * the liquid. */
static double front_leaves(void *arg, int64_t begin, int64_t end)
{
    const front_args *f = arg;
    const un_leaves *m = f->m;
    double h = m->tree->h, best = -INFINITY;
    double top[3] = {m->tree->size.x, m->tree->size.y, m->tree->size.z};
    for (int64_t c = begin; c < end; c++) {
        double size = un_leaf_size(m, c);
        if (!(f->phi[c] <= -0.5 * h)) continue;
        double x[3] = {m->x[c].x, m->x[c].y, m->x[c].z};
        x[f->axis] += f->sign * (0.5 * size - 0.5 * h); /* the far end of a large leaf */
        for (int a = 0; a < m->dim; a++)
            x[a] = top[a] > 2 * h ? un_clamp(x[a], h, top[a] - h) : 0.5 * top[a];
        if (f->sign * x[f->axis] + 2 * h <= best) continue;
        double reach = h;
        for (int k = 0; k < 1 << m->dim && reach >= 0; k++) {
            un_vec3 corner = un_v3(x[0] + (k & 1 ? h : -h), x[1] + (k & 2 ? h : -h),
                                   m->dim == 2 ? 0 : x[2] + (k & 4 ? h : -h));
            double phi = phi_at(m, f->phi, corner);
            if (phi > 0) reach = -1;
            if (f->sign * ((k >> f->axis & 1) ? 1 : -1) > 0) reach = fmin(reach, -phi);
        }
        if (reach >= 0) best = fmax(best, f->sign * x[f->axis] + h + reach);
    }
    return best;
}

double un_probe_front_leaves(un_context *ctx, const float *phi, const un_leaves *m, int axis,
                             double sign)
{
    front_args f = {m, phi, axis, sign};
    double best = un_parallel_max(ctx, m->count, front_leaves, &f);
    return isfinite(best) ? un_clamp(sign * best, 0, un_vec3_at(m->tree->size, axis)) : NAN;
}

double un_probe_height_leaves(const float *phi, const un_leaves *m, double x, double z)
{
    double step = 0.5 * m->tree->h, top = m->tree->size.y, above = INFINITY;
    int32_t count = (int32_t)ceil(top / step);
    for (int32_t j = count; j >= 0; j--) {
        double y = fmin(top, step * j), here = phi_at(m, phi, un_v3(x, y, z));
        if (here < 0) return isfinite(above) ? fmin(top, y + step * here / (here - above)) : top;
        above = here;
    }
    return 0;
}
