/* Probes of the level set on tets. */
#include "surface/surface.h"

static double phi_at(const un_tets *mesh, const float *phi, un_vec3 x)
{
    un_tets_place place;
    un_tets_locate(mesh, un_min3(un_max3(x, un_v3(0, 0, 0)), mesh->tree->size), &place);
    return un_tet_sample(mesh, phi, &place);
}

typedef struct front_args {
    const un_tets *mesh;
    const float *phi;
    int axis;
    double sign;
} front_args;

/* As in method `uniform`: the farthest point that a cube of two finest cells reaches while it lies
 * entirely in the liquid. */
static double front_nodes(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_octree *tree = f->mesh->tree;
    double h = tree->h, best = -INFINITY;
    double top[3] = {tree->size.x, tree->size.y, tree->size.z};
    for (int64_t n = begin; n < end; n++) {
        if (!(f->phi[n] <= -0.5 * h)) continue;
        double x[3] = {f->mesh->x[n].x, f->mesh->x[n].y, f->mesh->x[n].z};
        /* the cube lies in the domain */
        for (int a = 0; a < 3; a++)
            x[a] = top[a] > 2 * h ? un_clamp(x[a], h, top[a] - h) : 0.5 * top[a];
        if (f->sign * x[f->axis] + 2 * h <= best) continue;
        double reach = h; /* how far the cube may extend; beyond a cell another node decides */
        for (int c = 0; c < 8 && reach >= 0; c++) {
            un_vec3 corner =
                un_v3(x[0] + (c & 1 ? h : -h), x[1] + (c & 2 ? h : -h), x[2] + (c & 4 ? h : -h));
            double phi = phi_at(f->mesh, f->phi, corner);
            if (phi > 0) reach = -1;
            if (f->sign * ((c >> f->axis & 1) ? 1 : -1) > 0) reach = fmin(reach, -phi);
        }
        if (reach >= 0) best = fmax(best, f->sign * x[f->axis] + h + reach);
    }
    return best;
}

double un_probe_front_tets(un_context *ctx, const float *phi, const un_tets *mesh, int axis,
                           double sign)
{
    front_args f = {mesh, phi, axis, sign};
    un_vec3 size = mesh->tree->size;
    double top = axis == 0 ? size.x : axis == 1 ? size.y : size.z;
    double best = un_parallel_max(ctx, mesh->node_count, front_nodes, &f);
    if (!isfinite(best)) return NAN;
    return un_clamp(sign * best, 0, top);
}

double un_probe_height_tets(const float *phi, const un_tets *mesh, double x, double z)
{
    double step = 0.5 * mesh->tree->h, top = mesh->tree->size.y, above = INFINITY;
    int32_t count = (int32_t)ceil(top / step);
    for (int32_t j = count; j >= 0; j--) {
        double y = fmin(top, step * j), here = phi_at(mesh, phi, un_v3(x, y, z));
        if (here < 0) return isfinite(above) ? fmin(top, y + step * here / (here - above)) : top;
        above = here;
    }
    return 0;
}
