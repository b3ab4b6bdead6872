/* A grid that warps: one regular grid whose nodes slide towards what matters [Ibayashi18 section
 * 4]. Included through mesh.h.
 *
 * Reference space is a box of cubic cells, a whole number of them along each side of the domain.
 * A potential at their centres moves the nodes:
 *
 *     x(xi) = S (xi + grad potential),
 *
 * S stretches the reference box to the domain; nodes on its sides slide along them.
 *
 * Fields live at cell centres, and so does the map that locates points and interpolates: x is
 * linear between the centres, and centres of the padding are mirror images, so that the sides of
 * the domain are those of the reference box. A field that is linear in space is then interpolated
 * exactly. */
#ifndef UN_MESH_WARP_H
#define UN_MESH_WARP_H

/* Wanted density of cells at the nodes of a lattice over the domain, x fastest; 1 where nothing
 * matters. */
typedef struct un_monitor {
    int32_t n[3];      /* nodes; 1 along z in 2D */
    double spacing[3]; /* m */
    float *density;
} un_monitor;
double un_monitor_at(const un_monitor *monitor, un_vec3 x);

/* Multigrid for the potential; private to warp_solve.c. */
typedef struct un_warp_level {
    int32_t n[3];
    int64_t count;
    double *width[3];          /* of cells along each axis, in finest cells */
    double *link[3];           /* at their sides: 1 over the distance of the centres, 0 at ends */
    double *x, *b, *r;         /* at cells; r: the residual */
    int32_t *low[3], *high[3]; /* along each axis: coarser cells that a cell lies between, */
    double *share[3];          /* and its share of the second */
} un_warp_level;
#define UN_WARP_LEVELS_MAX 24

typedef struct un_warp {
    un_context *ctx;
    un_grid grid;    /* reference space */
    un_vec3 size;    /* of the domain */
    un_vec3 stretch; /* S */
    un_vec3 *node;   /* at nodes of the domain: where they are; others are not set */
    un_vec3 *centre; /* at cells: the mean of the corners; padding: mirror images */
    float *jacobian; /* at cells: volume over that in reference space; 0 in the padding */
    /* At cells, m2: where the grid wants to be; where it is, and was a step ago. */
    double *target, *potential, *before;
    double certificate; /* the smallest eigenvalue of sym(dx/dxi) / S anywhere: above 0, no cell is
                         * inverted and no two points share a place */
    un_warp_level level[UN_WARP_LEVELS_MAX];
    int32_t level_count;
} un_warp;

/* size: of the domain; finest: cells along the longest side. The grid is at rest. */
un_status un_warp_init(un_warp *warp, un_context *ctx, un_vec3 size, int32_t finest);
void un_warp_free(un_warp *warp);
/* Finds nodes, centres and jacobians for `potential`, which is scaled down where the certificate
 * would fall below UN_WARP_LEAST. */
#define UN_WARP_LEAST 0.1
void un_warp_place(un_warp *warp);

typedef enum un_warp_kind { UN_WARP_MONGE_AMPERE, UN_WARP_POISSON } un_warp_kind;
typedef struct un_warp_step {
    const un_monitor *monitor;
    un_warp_kind kind;
    double strength;   /* the largest density is 1 + strength */
    int32_t rounds;    /* iterations of the target */
    double dt, settle; /* s: the grid follows its target within `settle`; 0: at once */
} un_warp_step;
/* Moves the target towards the monitor, the potential towards the target, and places the grid. */
void un_warp_move(un_warp *warp, const un_warp_step *step);
/* Solves the Poisson equation of the potential, for tests: x at inner cells, x fastest; b has no
 * mean. */
void un_warp_solve(un_warp *warp, double *x, const double *b, int32_t cycles);

/* ---- the map ---- */

/* Where xi is, and the derivative of the map: columns are dx/dxi_a. */
typedef struct un_warp_point {
    un_stencil at; /* among the cell centres */
    un_vec3 x, column[3];
} un_warp_point;
UN_KERNEL double un_warp_weight(const un_stencil *t, int m, int dim)
{
    double w = (m & 1 ? t->f[0] : 1 - t->f[0]) * (m >> 1 & 1 ? t->f[1] : 1 - t->f[1]);
    return dim == 2 ? w : w * (m >> 2 ? t->f[2] : 1 - t->f[2]);
}
/* The weight's derivative along an axis, per cell. */
UN_KERNEL double un_warp_slope(const un_stencil *t, int m, int axis, int dim)
{
    double w = m >> axis & 1 ? 1 : -1;
    for (int a = 0; a < dim; a++)
        if (a != axis) w *= m >> a & 1 ? t->f[a] : 1 - t->f[a];
    return w;
}
UN_KERNEL int64_t un_warp_corner(const un_grid *g, int64_t base, int m, int dim)
{
    int64_t c = base + (m & 1) + (m >> 1 & 1) * g->stride[1];
    return dim == 2 ? c : c + (m >> 2) * g->stride[2];
}
/* A field at cells at a place among the centres, and its change along each axis there, per cell. */
UN_KERNEL un_vec3 un_warp_blend_in(const un_grid *g, const un_vec3 *field, const un_stencil *t,
                                   un_vec3 slope[3], int dim)
{
    const un_vec3 *v = field + t->base;
    int64_t sy = g->stride[1], sz = g->stride[2];
    un_vec3 x = {0, 0, 0}, along[2][2]; /* z; x, y */
    for (int k = 0; k < dim - 1; k++, v += sz) {
        un_vec3 low = un_sub(v[1], v[0]), high = un_sub(v[sy + 1], v[sy]);
        un_vec3 from = un_mad(v[0], low, t->f[0]), to = un_mad(v[sy], high, t->f[0]);
        un_vec3 y = un_sub(to, from), here = un_mad(from, y, t->f[1]);
        along[k][0] = un_mad(low, un_sub(high, low), t->f[1]);
        along[k][1] = y;
        if (k == 0) {
            x = here;
            continue;
        }
        slope[2] = un_sub(here, x);
        x = un_mad(x, slope[2], t->f[2]);
    }
    for (int a = 0; a < 2; a++)
        slope[a] =
            dim == 2 ? along[0][a] : un_mad(along[0][a], un_sub(along[1][a], along[0][a]), t->f[2]);
    return x;
}
UN_KERNEL un_warp_point un_warp_point_in(const un_warp *w, un_vec3 xi, int dim)
{
    const un_grid *g = &w->grid;
    un_warp_point p = {.at = un_grid_stencil_in(g, xi, 0.5, dim)};
    p.x = un_warp_blend_in(g, w->centre, &p.at, p.column, dim);
    for (int a = 0; a < dim; a++) p.column[a] = un_scale(p.column[a], g->inverse_h);
    if (dim == 2) p.column[2] = un_v3(0, 0, 1);
    return p;
}
UN_KERNEL double un_warp_det(const un_warp_point *p)
{
    return un_dot(p->column[0], un_cross(p->column[1], p->column[2]));
}
/* J^-1 v and J^-T v. */
UN_KERNEL un_vec3 un_warp_pull(const un_warp_point *p, un_vec3 v)
{
    const un_vec3 *c = p->column;
    un_vec3 r0 = un_cross(c[1], c[2]), r1 = un_cross(c[2], c[0]), r2 = un_cross(c[0], c[1]);
    double inverse = 1 / un_dot(c[0], r0);
    return un_scale(un_v3(un_dot(r0, v), un_dot(r1, v), un_dot(r2, v)), inverse);
}
UN_KERNEL un_vec3 un_warp_gradient(const un_warp_point *p, un_vec3 v)
{
    const un_vec3 *c = p->column;
    un_vec3 r0 = un_cross(c[1], c[2]), r1 = un_cross(c[2], c[0]), r2 = un_cross(c[0], c[1]);
    double inverse = 1 / un_dot(c[0], r0);
    return un_scale(un_mad(un_mad(un_scale(r0, v.x), r1, v.y), r2, v.z), inverse);
}
UN_KERNEL un_vec3 un_warp_inside(const un_grid *g, un_vec3 xi)
{
    return un_min3(un_max3(xi, un_v3(0, 0, 0)), g->size);
}

/* The inverse map: Newton across cells, kept inside the box. Steps are limited once it has not
 * converged for a while, so that it cannot jump to and fro. x must lie in the domain. */
#define UN_WARP_NEWTON 40
#define UN_WARP_FREE 8
#define UN_WARP_STEP 0.7
/* A point that goes over the grid, and where it is. */
typedef struct un_warp_walker {
    un_vec3 xi;
    un_warp_point at;
} un_warp_walker;
UN_KERNEL un_warp_walker un_warp_walker_in(const un_warp *w, un_vec3 xi, int dim)
{
    un_warp_walker k = {.xi = un_warp_inside(&w->grid, xi)};
    k.at = un_warp_point_in(w, k.xi, dim);
    return k;
}
/* Goes to within `near` cells of x. Returns the step that is left, in reference space: taken along
 * slopes, it leaves an error of near squared where it does not lead across a centre. */
UN_KERNEL un_vec3 un_warp_walk_in(const un_warp *w, un_warp_walker *k, un_vec3 x, double near,
                                  int dim)
{
    const un_grid *g = &w->grid;
    un_vec3 step = {0, 0, 0};
    for (int i = 0; i < UN_WARP_NEWTON; i++) {
        step = un_warp_pull(&k->at, un_sub(x, k->at.x));
        double length = un_length(step), most = UN_WARP_STEP * g->h;
        if (length <= near * g->h) return step;
        if (i >= UN_WARP_FREE && length > most) step = un_scale(step, most / length);
        k->xi = un_warp_inside(g, un_add(k->xi, step));
        k->at = un_warp_point_in(w, k->xi, dim);
    }
    return un_v3(0, 0, 0);
}
/* *xi: a guess at first. */
#define UN_WARP_EXACT 1e-12
UN_KERNEL un_warp_point un_warp_locate_in(const un_warp *w, un_vec3 x, un_vec3 *xi, int dim)
{
    un_warp_walker k = un_warp_walker_in(w, *xi, dim);
    (void)un_warp_walk_in(w, &k, x, UN_WARP_EXACT, dim);
    *xi = k.xi;
    return k.at;
}
/* The same, for the place alone: the last step stays between the same centres, so its square is
 * exact enough. */
#define UN_WARP_LAST 1e-6
UN_KERNEL un_vec3 un_warp_find_in(const un_warp *w, un_vec3 x, un_vec3 xi, int dim)
{
    un_warp_walker k = un_warp_walker_in(w, xi, dim);
    un_vec3 step = un_warp_walk_in(w, &k, x, UN_WARP_LAST, dim);
    un_vec3 to = un_warp_inside(&w->grid, un_add(k.xi, step));
    if (un_grid_stencil_in(&w->grid, to, 0.5, dim).base == k.at.at.base) return to;
    (void)un_warp_walk_in(w, &k, x, UN_WARP_EXACT, dim);
    return k.xi;
}
/* xi: a guess at first. */
un_vec3 un_warp_locate(const un_warp *warp, un_vec3 x, un_vec3 xi);
un_vec3 un_warp_map(const un_warp *warp, un_vec3 xi);

/* The same at eight points, a quarter of the time for each (warp_eight.c). */
typedef struct un_warp_eight {
    un_eight xi;
    int64_t base[8]; /* among the cell centres, as un_stencil */
    un_eight f;
    un_eight x, column[3];
} un_warp_eight;
/* From xi, in the box. */
void un_warp_eight_at(const un_warp *warp, un_warp_eight *e);
/* As un_warp_walk_in; step: what is left. */
void un_warp_eight_walk(const un_warp *warp, un_warp_eight *e, const un_eight *x, double near,
                        un_eight *step);
/* As un_warp_locate. */
void un_warp_eight_find(const un_warp *warp, const un_eight *x, un_eight *xi);
void un_warp_eight_det(const un_warp_eight *e, double det[8]);
/* Fields at cells. slope: by axis of the cells, per cell; gradient: by component of the field, in
 * space; a slope times `scale` is per m of reference space. */
void un_warp_eight_blend(const un_grid *g, const un_vec3 *field, const un_warp_eight *e,
                         un_eight *v, un_eight slope[3]);
void un_warp_eight_sample(const un_grid *g, const float *field, const un_warp_eight *e,
                          double out[8]);
void un_warp_eight_gradient(const un_warp_eight *e, const un_eight slope[3], double scale,
                            un_eight row[3]);

/* Where a node is; those of the padding count as the nearest of the domain. */
static inline un_vec3 un_warp_node(const un_warp *w, int32_t i, int32_t j, int32_t k)
{
    const un_grid *g = &w->grid;
    return w->node[un_grid_node(g, un_clampi(i, 1, g->n[0] - 1), un_clampi(j, 1, g->n[1] - 1),
                                g->dim == 2 ? 0 : un_clampi(k, 1, g->n[2] - 1))];
}
/* The longest edge of cells at a node, about. */
static inline double un_warp_edge(const un_warp *w, int32_t i, int32_t j, int32_t k)
{
    double most = 0;
    for (int a = 0; a < w->grid.dim; a++) {
        int x = a == 0, y = a == 1, z = a == 2;
        un_vec3 here = un_warp_node(w, i, j, k);
        most = fmax(most, un_length(un_sub(un_warp_node(w, i + x, j + y, k + z), here)));
        most = fmax(most, un_length(un_sub(un_warp_node(w, i - x, j - y, k - z), here)));
    }
    return most;
}
/* Probes of a level set at cells, as un_grid_front and un_grid_height (warp_probe.c); fields at
 * cells, at x. */
double un_warp_front(un_context *ctx, const float *phi, const un_warp *warp, int32_t axis,
                     double sign);
double un_warp_height(const float *phi, const un_warp *warp, un_vec3 at);
double un_warp_sample(const float *field, const un_warp *warp, un_vec3 x);
un_vec3 un_warp_sample3(const un_vec3 *field, const un_warp *warp, un_vec3 x);
/* Places of nodal values where thin walls part the grid (warp_parts.c): the nodes, and beyond them
 * a copy of a node for each further side of a wall. */
typedef struct un_warp_side {
    int64_t node, place;
    uint8_t cells; /* around the node, by bit x + 2 y + 4 z: those on this side */
    double value;  /* see un_warp_parts_keep */
} un_warp_side;
typedef struct un_warp_parts {
    int64_t place_count;
    un_warp_side *side; /* by node: all sides of nodes that have several; the first has the node */
    int64_t side_count;
    int64_t *copy;        /* by copy: its node */
    int32_t *at;          /* at cells: number among those with a copy as a corner, -1 */
    int64_t (*corner)[8]; /* of these: the places of their corners */
    int64_t cell_count;
    size_t side_capacity, copy_capacity, corner_capacity;
} un_warp_parts;

/* Where x would be if the grid were at rest: a guess for any point. */
static inline un_vec3 un_warp_guess(const un_warp *w, un_vec3 x)
{
    return un_v3(x.x / w->stretch.x, x.y / w->stretch.y, x.z / w->stretch.z);
}

/* Of node n. */
static inline void un_warp_node_indices(const un_grid *g, int64_t n, int32_t at[3])
{
    at[0] = (int32_t)(n % (g->n[0] + 1));
    at[1] = (int32_t)(n / (g->n[0] + 1) % (g->n[1] + 1));
    at[2] = g->dim == 2 ? 0 : (int32_t)(n / g->node_stride[2]);
}

#endif
