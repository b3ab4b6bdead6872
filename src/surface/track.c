/* Semi-Lagrangian contouring [Chentanez07 section 3.2, after Strain and Bargteil].
 *
 * After a step
 *     phi(x) = phi_old(x - u dt, traced back) - shift,
 * where phi_old is the exact distance to the old mesh (track_query.c). It is evaluated at nodes of
 * the lattice near the paths of the old vertices, the others keep their sign; contoured; and the
 * new vertices are found on their edges as roots of the same function. Along an edge the foot of
 * the path is linear between the feet of its ends.
 *
 * Where this departs from the paper: vertices are roots and distances are curved, both of which
 * keep small things from shrinking; and a shift keeps the volume, which is found again if the new
 * surface turns out to lack some: fronts that run into walls or into each other in a long step, and
 * drops that no node is left in, lose theirs at once. */
#include "surface/surface.h"

#define REACH 2.5       /* cells */
#define BAND 3          /* cells around the vertices that are evaluated: more than REACH */
#define NEAR 3          /* cells around the vertices whose nodes know that it is near */
#define KNOWN 0.999f    /* of the reach: the most that phi is there */
#define ROOTS 4         /* evaluations for a root, at most */
#define ROOT_ERROR 1e-3 /* cells, before the last step */
/* In cells: nodes nearer to the surface are outside. Else round-off decides from node to node where
 * a level surface lies on the lattice, and folds it: in a tilted tub it then moved at 0.1 m/s. */
#define ON_NODE 1e-6
#define SHIFTS 2  /* more of them in a step, at most */
#define HAIR 1e-4 /* of an edge between vertex and node, as contouring leaves it */

#define NODE_GRAIN 128
#define ROW_GRAIN 32

un_status un_track_init(un_track *t, un_context *ctx, un_vec3 size, int32_t cells)
{
    double side[3] = {size.x, size.y, size.z}, h = fmax(fmax(size.x, size.y), size.z) / cells;
    double origin[3];
    *t = (un_track){.ctx = ctx, .h = INFINITY};
    un_lattice *l = &t->lattice;
    int64_t count = 1;
    for (int a = 0; a < 3; a++) {
        t->cells[a] = (int32_t)fmax(1, rint(side[a] / h));
        l->n[a] = t->cells[a] + 1 + 2 * UN_TRACK_MARGIN;
        l->h[a] = side[a] / t->cells[a];
        origin[a] = -UN_TRACK_MARGIN * l->h[a];
        t->h = fmin(t->h, l->h[a]);
        count *= l->n[a];
        t->blocks[a] = (l->n[a] - 1) / UN_TRACK_BLOCK + 1;
    }
    l->origin = un_v3(origin[0], origin[1], origin[2]);
    t->reach = (float)(REACH * t->h); /* as phi can say it */
    UN_ALLOC(ctx, l->phi, count);
    UN_ALLOC(ctx, t->spare, count);
    UN_ALLOC(ctx, t->far, (int64_t)t->blocks[0] * t->blocks[1] * t->blocks[2]);
    UN_ALLOC(ctx, t->stretch, un_track_stretch_count(t) + 1);
    return UN_OK;
}

static void drop_mesh(un_track *t)
{
    un_trimesh_free(t->ctx, &t->mesh);
    un_free(t->ctx, t->edge);
    un_free(t->ctx, t->column);
    un_free(t->ctx, t->half);
    un_free(t->ctx, t->fill);
    t->half = t->fill = NULL;
    t->edge = NULL;
    t->column = NULL;
}

void un_track_free(un_track *t)
{
    if (!t->ctx) return;
    drop_mesh(t);
    un_free(t->ctx, t->lattice.phi);
    un_free(t->ctx, t->spare);
    un_free(t->ctx, t->far);
    un_free(t->ctx, t->stretch);
    *t = (un_track){0};
}

/* ---- the mesh of a lattice ---- */

typedef struct sorting {
    un_track *t;
    un_trimesh *mesh;
    int64_t *edge;
    int32_t *column;
} sorting;

/* Each vertex lies inside a lattice edge: along two axes its place is a whole number. */
static void find_edges(void *arg, int64_t begin, int64_t end)
{
    sorting *s = arg;
    const un_lattice *l = &s->t->lattice;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = un_sub(s->mesh->position[v], l->origin);
        double at[3] = {x.x / l->h[0], x.y / l->h[1], x.z / l->h[2]}, most = -1;
        int64_t node[3];
        int axis = 0;
        for (int a = 0; a < 3; a++) {
            double off = fabs(at[a] - rint(at[a]));
            if (off > most) most = off, axis = a;
        }
        for (int a = 0; a < 3; a++) node[a] = (int64_t)(a == axis ? floor(at[a]) : rint(at[a]));
        s->edge[v] = 3 * (node[0] + l->n[0] * (node[1] + l->n[1] * node[2])) + axis;
    }
}

/* The stretch of the cube that holds triangle i, and its column; their count beyond the end. */
static int64_t cube_of(const un_track *t, const un_trimesh *mesh, int64_t i, int32_t *column)
{
    const un_lattice *l = &t->lattice;
    if (i < 0) return -1;
    if (i >= mesh->triangle_count) return un_track_stretch_count(t);
    const int32_t *c = mesh->triangle[i];
    un_vec3 sum = un_add(un_add(mesh->position[c[0]], mesh->position[c[1]]), mesh->position[c[2]]);
    un_vec3 x = un_sub(un_scale(sum, 1.0 / 3), l->origin);
    *column = un_clampi((int32_t)(x.x / l->h[0]), 0, l->n[0] - 2);
    int64_t j = un_clampi((int32_t)(x.y / l->h[1]), 0, l->n[1] - 2);
    int64_t k = un_clampi((int32_t)(x.z / l->h[2]), 0, l->n[2] - 2);
    return un_track_stretch(t, j + l->n[1] * k, *column);
}

/* Entry i of the stretches' table is written by the first triangle at or after stretch i. */
static void find_stretches(void *arg, int64_t begin, int64_t end)
{
    sorting *s = arg;
    int32_t column = 0;
    int64_t last = cube_of(s->t, s->mesh, begin - 1, &column);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = cube_of(s->t, s->mesh, i, &column);
        if (i < s->mesh->triangle_count) s->column[i] = column;
        for (int64_t r = last + 1; r <= at; r++) s->t->stretch[r] = (int32_t)i;
        last = at > last ? at : last;
    }
}

/* Contours phi, and replaces the mesh. The vertices are still where phi is linear. */
static un_status contour(un_track *t)
{
    un_trimesh mesh = {0};
    int64_t *edge = NULL;
    int32_t *column = NULL;
    float *half = NULL, *fill = NULL;
    un_status status = un_surface_contour_open(t->ctx, &t->lattice, &mesh);
    if (status != UN_OK) return status;
    UN_ALLOC_DONE(t->ctx, edge, (int64_t)mesh.vertex_count + 1);
    UN_ALLOC_DONE(t->ctx, column, (int64_t)mesh.triangle_count + 1);
    UN_ALLOC_DONE(t->ctx, half, (int64_t)mesh.vertex_count + 1);
    UN_ALLOC_DONE(t->ctx, fill, (int64_t)mesh.vertex_count + 1);
    for (int32_t v = 0; v < mesh.vertex_count; v++) fill[v] = 1;
    sorting s = {t, &mesh, edge, column};
    un_parallel_for(t->ctx, mesh.vertex_count, 4096, find_edges, &s);
    un_parallel_for(t->ctx, (int64_t)mesh.triangle_count + 1, 4096, find_stretches, &s);
    drop_mesh(t);
    t->mesh = mesh;
    t->edge = edge;
    t->column = column;
    t->half = half;
    t->fill = fill;
    return UN_OK;
done:
    un_trimesh_free(t->ctx, &mesh);
    un_free(t->ctx, edge);
    un_free(t->ctx, column);
    un_free(t->ctx, half);
    return status;
}

/* A lattice edge: its lower node by place, and the way to the upper one. */
typedef struct edge_place {
    int64_t node, step;
    int axis;
    un_vec3 x;
} edge_place;

static edge_place place_of(const un_lattice *l, int64_t edge)
{
    edge_place p = {.node = edge / 3, .axis = (int)(edge % 3)};
    int64_t step[3] = {1, l->n[0], (int64_t)l->n[0] * l->n[1]};
    int64_t i = p.node % l->n[0], j = p.node / l->n[0] % l->n[1], k = p.node / step[2];
    p.step = step[p.axis];
    p.x = un_v3(l->origin.x + l->h[0] * (double)i, l->origin.y + l->h[1] * (double)j,
                l->origin.z + l->h[2] * (double)k);
    return p;
}

static un_vec3 along(const un_lattice *l, const edge_place *p, double s)
{
    un_vec3 x = p->x;
    *(p->axis == 0 ? &x.x : p->axis == 1 ? &x.y : &x.z) += s * l->h[p->axis];
    return x;
}

/* A zero of f between 0 and 1, where it is a and b with different signs: false position, in which
 * an end that stays has its value halved. A last step needs no value: its error is that of the
 * value before squared, so that a flat surface stays flat to round-off. */
typedef double edge_value(const void *arg, double s);
static double root(edge_value *f, const void *arg, double a, double b, double error)
{
    double lo = 0, hi = 1, s = a / (a - b);
    for (int32_t n = 0, side = 0; n <= ROOTS; n++) {
        s = un_clamp(lo + (hi - lo) * a / (a - b), HAIR, 1 - HAIR);
        if (n == ROOTS || error < 0) break;
        double v = f(arg, s);
        if (v == 0) break;
        if (fabs(v) < error) error = -1;
        if ((v < 0) == (a < 0)) {
            lo = s, a = v;
            if (side == -1 && error > 0) b *= 0.5;
            side = -1;
        } else {
            hi = s, b = v;
            if (side == 1 && error > 0) a *= 0.5;
            side = 1;
        }
    }
    return s;
}

/* ---- from a function ---- */

typedef struct beginning {
    un_track *t;
    un_track_shape *shape;
    const void *arg;
} beginning;

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    beginning *b = arg;
    const un_lattice *l = &b->t->lattice;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < l->n[0]; i++) {
            un_vec3 x = un_track_node(b->t, i, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            double phi = un_clamp(b->shape(b->arg, x), -b->t->reach, b->t->reach);
            l->phi[row * l->n[0] + i] =
                (float)(fabs(phi) < ON_NODE * b->t->h ? ON_NODE * b->t->h : phi);
        }
}

typedef struct shape_edge {
    const beginning *b;
    edge_place place;
} shape_edge;

static double shape_along(const void *arg, double s)
{
    const shape_edge *e = arg;
    return e->b->shape(e->b->arg, along(&e->b->t->lattice, &e->place, s));
}

static void find_shape_roots(void *arg, int64_t begin, int64_t end)
{
    beginning *b = arg;
    un_track *t = b->t;
    for (int64_t v = begin; v < end; v++) {
        shape_edge e = {b, place_of(&t->lattice, t->edge[v])};
        double lo = t->lattice.phi[e.place.node], hi = t->lattice.phi[e.place.node + e.place.step];
        double s = root(shape_along, &e, lo, hi, ROOT_ERROR * t->h);
        t->mesh.position[v] = along(&t->lattice, &e.place, s);
    }
}

typedef struct distances {
    un_track *t;
    float *phi;
} distances;

/* phi becomes the distance to the mesh, with the sign that it has. */
static void measure_rows(void *arg, int64_t begin, int64_t end)
{
    distances *d = arg;
    const un_track *t = d->t;
    const un_lattice *l = &t->lattice;
    for (int64_t row = begin; row < end; row++) {
        int32_t hint = -1;
        for (int32_t i = 0; i < l->n[0]; i++) {
            int64_t n = row * l->n[0] + i;
            un_vec3 x = un_track_node(t, i, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            double phi = fabs(un_track_distance(t, x, &hint));
            d->phi[n] = copysignf((float)fmin(phi, t->reach), l->phi[n]);
        }
    }
}

static void swap_phi(un_track *t)
{
    float *phi = t->lattice.phi;
    t->lattice.phi = t->spare;
    t->spare = phi;
}

un_status un_track_begin(un_track *t, un_track_shape *shape, const void *arg)
{
    beginning b = {t, shape, arg};
    int64_t rows = (int64_t)t->lattice.n[1] * t->lattice.n[2];
    un_parallel_for(t->ctx, rows, ROW_GRAIN, sample_rows, &b);
    UN_TRY(contour(t));
    un_parallel_for(t->ctx, t->mesh.vertex_count, NODE_GRAIN, find_shape_roots, &b);
    UN_TRY(un_surface_normals(t->ctx, &t->mesh));
    un_track_find_far(t);
    un_track_find_half(t);
    distances d = {t, t->spare};
    un_parallel_for(t->ctx, rows, ROW_GRAIN, measure_rows, &d);
    swap_phi(t);
    return UN_OK;
}

typedef struct restoring {
    un_track *t;
    const double *at;
} restoring;

static void restore_vertices(void *arg, int64_t begin, int64_t end)
{
    restoring *r = arg;
    for (int64_t v = begin; v < end; v++) {
        edge_place p = place_of(&r->t->lattice, r->t->edge[v]);
        *(p.axis == 0 ? &p.x.x : p.axis == 1 ? &p.x.y : &p.x.z) = r->at[v];
        r->t->mesh.position[v] = p.x;
    }
}

un_status un_track_restore(un_track *t, const double *at, const float *fill, int64_t count)
{
    restoring r = {t, at};
    UN_TRY(contour(t));
    if (count != t->mesh.vertex_count)
        return un_fail(t->ctx, UN_ERROR_FILE,
                       "the checkpoint's surface does not fit its level set");
    for (int64_t v = 0; v < count; v++)
        if (!isfinite(at[v]) || !(fill[v] >= 0 && fill[v] <= 1))
            return un_fail(t->ctx, UN_ERROR_FILE,
                           "the checkpoint's surface has places that are no numbers");
    un_parallel_for(t->ctx, count, 4096, restore_vertices, &r);
    memcpy(t->fill, fill, (size_t)count * sizeof *fill);
    un_track_find_far(t);
    UN_TRY(un_surface_normals(t->ctx, &t->mesh));
    un_track_find_half(t);
    return UN_OK;
}

/* ---- a step ---- */

typedef struct advance {
    un_track *t;
    const un_track_motion *motion;
    uint8_t *marked; /* by node */
    int32_t *row;    /* by row of nodes: the first of its marked nodes; one more at the end */
    int64_t count;   /* marked nodes: */
    int64_t *node;
    un_vec3 *foot;
    float *phi;   /* before shift and change; NAN: out of bounds */
    double shift; /* m */
    un_track_growth growth;
} advance;

/* Marks nodes up to `reach` cells from x. All threads write the same. */
static void mark_around(const advance *a, un_vec3 x, int32_t reach)
{
    const un_lattice *l = &a->t->lattice;
    un_vec3 d = un_sub(x, l->origin);
    double at[3] = {d.x / l->h[0], d.y / l->h[1], d.z / l->h[2]};
    int32_t lo[3], hi[3];
    for (int c = 0; c < 3; c++) {
        lo[c] = (int32_t)un_clamp(floor(at[c]) - reach + 1, 0, l->n[c] - 1);
        hi[c] = (int32_t)un_clamp(floor(at[c]) + reach, 0, l->n[c] - 1);
    }
    for (int64_t k = lo[2]; k <= hi[2]; k++)
        for (int64_t j = lo[1]; j <= hi[1]; j++) {
            uint8_t *row = a->marked + l->n[0] * (j + l->n[1] * k);
            for (int32_t i = lo[0]; i <= hi[0]; i++) __atomic_store_n(&row[i], 1, __ATOMIC_RELAXED);
        }
}

static void mark_paths(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 from = a->t->mesh.position[v], to = a->motion->ahead(a->motion->arg, from);
        un_vec3 way = un_sub(to, from);
        double length = un_length(way);
        int32_t steps = (int32_t)un_clamp(ceil(length / a->t->h), 1, 1024);
        /* The path widens it: rounding a corner the surface may leave the straight way. */
        for (int32_t s = 0; s <= steps; s++)
            mark_around(a, un_mad(from, way, (double)s / steps), BAND);
    }
}

static void mark_boxes(advance *a)
{
    const un_lattice *l = &a->t->lattice;
    const un_track_motion *m = a->motion;
    for (int32_t b = 0; b < m->change_count; b++) {
        double lo[3] = {m->change_in[b].min.x, m->change_in[b].min.y, m->change_in[b].min.z};
        double hi[3] = {m->change_in[b].max.x, m->change_in[b].max.y, m->change_in[b].max.z};
        double origin[3] = {l->origin.x, l->origin.y, l->origin.z};
        int32_t first[3], last[3];
        for (int c = 0; c < 3; c++) {
            double low = floor((lo[c] - origin[c]) / l->h[c]) - BAND;
            double high = ceil((hi[c] - origin[c]) / l->h[c]) + BAND;
            first[c] = (int32_t)un_clamp(low, 0, l->n[c] - 1);
            last[c] = (int32_t)un_clamp(high, 0, l->n[c] - 1);
        }
        for (int64_t k = first[2]; k <= last[2]; k++)
            for (int64_t j = first[1]; j <= last[1]; j++)
                memset(a->marked + l->n[0] * (j + l->n[1] * k) + first[0], 1,
                       (size_t)(last[0] - first[0] + 1));
    }
}

static void mark_vertices(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    for (int64_t v = begin; v < end; v++) mark_around(a, a->t->mesh.position[v], NEAR);
}

static void bring_near(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    const un_lattice *l = &a->t->lattice;
    float most = KNOWN * (float)a->t->reach;
    for (int64_t n = begin * l->n[0]; n < end * l->n[0]; n++)
        if (a->marked[n] && fabsf(l->phi[n]) > most) l->phi[n] = copysignf(most, l->phi[n]);
}

/* Distances are exact only around nodes where phi is within reach. A flow that presses the surface
 * together leaves some of those near it beyond: their phi is the distance at their foot. */
static void find_near(advance *a)
{
    const un_lattice *l = &a->t->lattice;
    int64_t rows = (int64_t)l->n[1] * l->n[2];
    memset(a->marked, 0, (size_t)(rows * l->n[0]));
    un_parallel_for(a->t->ctx, a->t->mesh.vertex_count, 1024, mark_vertices, a);
    un_parallel_for(a->t->ctx, rows, ROW_GRAIN, bring_near, a);
}

static void count_marked(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    int32_t n0 = a->t->lattice.n[0];
    for (int64_t row = begin; row < end; row++) {
        int32_t count = 0;
        for (int32_t i = 0; i < n0; i++) count += a->marked[row * n0 + i];
        a->row[row] = count;
    }
}

static void list_marked(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    int32_t n0 = a->t->lattice.n[0];
    for (int64_t row = begin; row < end; row++) {
        int64_t at = a->row[row];
        for (int32_t i = 0; i < n0; i++)
            if (a->marked[row * n0 + i]) a->node[at++] = row * n0 + i;
    }
}

/* At x, which was at foot. */
static double distance_at(const advance *a, un_vec3 x, un_vec3 foot, int32_t *hint, double *fill)
{
    const un_track_motion *m = a->motion;
    double phi = m->thicken > 0 ? un_track_grown(a->t, foot, hint, &a->growth, fill)
                                : un_track_distance(a->t, foot, hint);
    return m->emptied ? fmax(phi, m->emptied(m->arg, x, foot)) : phi;
}

/* phi after the step at x, with that distance at its foot. */
static double changed(const advance *a, un_vec3 x, double distance)
{
    const un_track_motion *m = a->motion;
    double phi = distance - a->shift;
    return m->change ? m->change(m->arg, x, phi) : phi;
}

static void trace_nodes(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    const un_lattice *l = &a->t->lattice;
    int32_t hint = -1;
    for (int64_t b = begin; b < end; b++) {
        int64_t n = a->node[b], row = n / l->n[0];
        un_vec3 x = un_track_node(a->t, (int32_t)(n % l->n[0]), (int32_t)(row % l->n[1]),
                                  (int32_t)(row / l->n[1]));
        a->phi[b] = NAN;
        if (!a->motion->back(a->motion->arg, x, &a->foot[b])) continue;
        a->phi[b] = (float)distance_at(a, x, a->foot[b], &hint, NULL);
    }
}

static void write_rows(void *arg, int64_t begin, int64_t end)
{
    advance *a = arg;
    const un_lattice *l = &a->t->lattice;
    double most = a->t->reach;
    float reach = (float)most;
    for (int64_t n = begin * l->n[0]; n < end * l->n[0]; n++)
        a->t->spare[n] = a->marked[n] ? l->phi[n] : copysignf(reach, l->phi[n]);
    for (int64_t row = begin; row < end; row++)
        for (int64_t b = a->row[row]; b < a->row[row + 1]; b++) {
            if (isnan(a->phi[b])) continue;
            un_vec3 x = un_track_node(a->t, (int32_t)(a->node[b] % l->n[0]),
                                      (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            double phi = changed(a, x, a->phi[b]);
            a->t->spare[a->node[b]] = (float)un_clamp(phi, -most, most);
        }
}

typedef struct traced_edge {
    const advance *a;
    edge_place place;
    un_vec3 from, to; /* feet of its ends */
    int32_t *hint;
    double *fill; /* where it was last asked for */
} traced_edge;

static double value_along(const void *arg, double s)
{
    const traced_edge *e = arg;
    un_vec3 foot = un_add(un_scale(e->from, 1 - s), un_scale(e->to, s));
    un_vec3 x = along(&e->a->t->lattice, &e->place, s);
    double phi = distance_at(e->a, x, foot, e->hint, e->fill), then = changed(e->a, x, phi);
    if (then < phi - e->a->shift) *e->fill = 1; /* a source's */
    return then;
}

/* The place of a node among the marked ones; -1 if it is none of them or out of bounds. */
static int64_t find_marked(const advance *a, int64_t node)
{
    int64_t row = node / a->t->lattice.n[0], lo = a->row[row], hi = a->row[row + 1];
    while (hi - lo > 0) {
        int64_t mid = lo + (hi - lo) / 2;
        if (a->node[mid] == node) return isnan(a->phi[mid]) ? -1 : mid;
        if (a->node[mid] < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

typedef struct settling {
    const advance *a;
    const un_trimesh *mesh;
    const int64_t *edge;
    float *fill;
} settling;

/* The old mesh is still in the track; the new one is the settling's. */
static void find_roots(void *arg, int64_t begin, int64_t end)
{
    settling *s = arg;
    const advance *a = s->a;
    const un_track *t = a->t;
    int32_t hint = -1;
    for (int64_t v = begin; v < end; v++) {
        double fill = 1;
        traced_edge e = {
            .a = a, .place = place_of(&t->lattice, s->edge[v]), .hint = &hint, .fill = &fill};
        int64_t lo = find_marked(a, e.place.node);
        int64_t hi = find_marked(a, e.place.node + e.place.step);
        if (lo < 0 || hi < 0) continue;
        e.from = a->foot[lo];
        e.to = a->foot[hi];
        double low = t->spare[e.place.node], high = t->spare[e.place.node + e.place.step];
        double at = root(value_along, &e, low, high, ROOT_ERROR * t->h);
        s->mesh->position[v] = along(&t->lattice, &e.place, at);
        s->fill[v] = (float)fill;
    }
}

static void *scratch(un_arena *arena, int64_t count, size_t size)
{
    return un_arena_alloc(arena, (size_t)count + 1, size);
}

static un_status trace(advance *a, un_arena *arena)
{
    un_track *t = a->t;
    const un_lattice *l = &t->lattice;
    int64_t rows = (int64_t)l->n[1] * l->n[2];
    a->marked = scratch(arena, rows * l->n[0], 1);
    a->row = scratch(arena, rows, sizeof *a->row);
    if (!a->marked || !a->row) return UN_ERROR_MEMORY;
    memset(a->marked, 0, (size_t)(rows * l->n[0]));
    un_parallel_for(t->ctx, t->mesh.vertex_count, 1024, mark_paths, a);
    mark_boxes(a);
    un_parallel_for(t->ctx, rows, ROW_GRAIN, count_marked, a);
    a->count = un_parallel_scan(t->ctx, a->row, rows);
    a->row[rows] = (int32_t)a->count;
    a->node = scratch(arena, a->count, sizeof *a->node);
    a->foot = scratch(arena, a->count, sizeof *a->foot);
    a->phi = scratch(arena, a->count, sizeof *a->phi);
    if (!a->node || !a->foot || !a->phi) return UN_ERROR_MEMORY;
    un_parallel_for(t->ctx, rows, ROW_GRAIN, list_marked, a);
    un_parallel_for(t->ctx, a->count, NODE_GRAIN, trace_nodes, a);
    return UN_OK;
}

/* The new surface, beside the old one, whose distances its roots need. */
static un_status settle(const advance *a, un_track *next)
{
    un_context *ctx = a->t->ctx;
    int64_t rows = (int64_t)a->t->lattice.n[1] * a->t->lattice.n[2];
    un_parallel_for(ctx, rows, ROW_GRAIN, write_rows, (void *)a);
    UN_TRY(contour(next));
    settling s = {a, &next->mesh, next->edge, next->fill};
    un_parallel_for(ctx, next->mesh.vertex_count, NODE_GRAIN, find_roots, &s);
    return un_surface_normals(ctx, &next->mesh);
}

un_status un_track_advance(un_track *t, un_arena *arena, const un_track_motion *motion)
{
    advance a = {.t = t, .motion = motion, .shift = motion->shift};
    if (motion->thicken > 0)
        UN_TRY(un_track_plan_growth(t, arena, motion->solid, motion->thicken, &a.growth));
    UN_TRY(trace(&a, arena));
    un_track next = *t;
    next.mesh = (un_trimesh){0};
    next.edge = NULL;
    next.half = next.fill = NULL;
    next.column = NULL;
    next.lattice.phi = t->spare;
    next.stretch = un_alloc(t->ctx, (size_t)un_track_stretch_count(t) + 1, sizeof *next.stretch);
    if (!next.stretch) return UN_ERROR_MEMORY;
    un_status status = settle(&a, &next);
    for (int32_t n = 0; n < SHIFTS && status == UN_OK && motion->missing; n++) {
        double more = motion->missing(motion->arg, &next, a.shift);
        if (more == 0) break;
        a.shift += more;
        status = settle(&a, &next);
    }
    if (status != UN_OK) {
        drop_mesh(&next);
        un_free(t->ctx, next.stretch);
        return status;
    }
    drop_mesh(t);
    un_free(t->ctx, t->stretch);
    next.spare = t->lattice.phi;
    *t = next;
    find_near(&a);
    un_track_find_far(t);
    un_track_find_half(t);
    return UN_OK;
}
