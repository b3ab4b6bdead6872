/* What a carried surface encloses, and how it is shown. */
#include "surface/surface.h"

#include "surface/contour.h"

#define ROW_GRAIN 32

/* ---- samples ---- */

typedef struct sampling {
    const un_track *t;
    float *value;
    un_track_shape *shape;
    const void *arg;
} sampling;

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    sampling *s = arg;
    const un_lattice *l = &s->t->lattice;
    double most = 3 * s->t->h;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < l->n[0]; i++) {
            un_vec3 x = un_track_node(s->t, i, (int32_t)(row % l->n[1]), (int32_t)(row / l->n[1]));
            s->value[row * l->n[0] + i] = (float)un_clamp(s->shape(s->arg, x), -most, most);
        }
}

void un_track_sample(const un_track *t, float *value, un_track_shape *shape, const void *arg)
{
    sampling s = {t, value, shape, arg};
    un_parallel_for(t->ctx, (int64_t)t->lattice.n[1] * t->lattice.n[2], ROW_GRAIN, sample_rows, &s);
}

/* ---- volume and area ---- */

typedef struct measuring {
    const un_track *t;
    const float *solid;
} measuring;

/* A cube of the lattice, its lower corner the origin. */
typedef struct cube {
    double h[3];
    uint8_t liquid;   /* bit c: corner c */
    double cut[3][4]; /* by axis and by the corner's bits along the next two: how far along the edge
                         its vertex lies */
} cube;

/* The liquid part of the cube's face at the upper end of an axis. */
static double face_area(const cube *c, int axis)
{
    static const uint8_t ring[4] = {0, 1, 3, 2};
    int u = (axis + 1) % 3, v = (axis + 2) % 3;
    double area = 0, px[8], py[8];
    bool wet[4];
    int all = 0;
    for (int q = 0; q < 4; q++) {
        int corner = 1 << axis | (ring[q] & 1) << u | (ring[q] >> 1) << v;
        wet[q] = c->liquid >> corner & 1;
        all += wet[q];
    }
    if (all == 4) return c->h[u] * c->h[v];
    for (int q = 0; q < 4; q++) {
        if (!wet[q] || wet[(q + 3) & 3]) continue;
        int count = 0;
        /* From the cut before the first liquid corner to the one behind the last. */
        for (int r = q + 3; r < q + 8; r++) {
            int a = ring[r & 3], b = ring[(r + 1) & 3], side = (a ^ b) >> 1; /* 0: along u */
            /* An edge along u has its corner's bits along v and the axis, one along v along the
             * axis and u. */
            int bits = side == 0 ? (a >> 1) | 2 : 1 | (a & 1) << 1;
            double at = c->cut[side == 0 ? u : v][bits];
            bool from = wet[r & 3], to = wet[(r + 1) & 3];
            if (from != to) {
                px[count] = side == 0 ? at : c->h[u] * (a & 1);
                py[count++] = side == 0 ? c->h[v] * (a >> 1) : at;
            }
            if (from && !to) break;
            if (to) {
                px[count] = c->h[u] * (b & 1);
                py[count++] = c->h[v] * (b >> 1);
            }
        }
        for (int p = 0; p < count; p++) {
            int n = (p + 1) % count;
            area += 0.5 * (px[p] * py[n] - px[n] * py[p]);
        }
    }
    return area;
}

/* The mean of the vertices of triangles first to last. */
static double mean_fill(const un_track *t, int32_t first, int32_t last)
{
    double sum = 0;
    for (int32_t i = first; i < last; i++)
        for (int k = 0; k < 3; k++) sum += t->fill[t->mesh.triangle[i][k]];
    return last > first ? sum / (3.0 * (last - first)) : 1;
}

/* Finds where triangles first to last cut the cube's edges, and returns their part of its volume by
 * the divergence theorem about its lower corner. */
static double cut_edges(const un_track *t, cube *c, un_vec3 corner, int64_t node, int32_t first,
                        int32_t last)
{
    const un_lattice *l = &t->lattice;
    double sum = 0;
    for (int32_t i = first; i < last; i++) {
        const int32_t *v = t->mesh.triangle[i];
        un_vec3 x[3];
        for (int k = 0; k < 3; k++) {
            x[k] = un_sub(t->mesh.position[v[k]], corner);
            int64_t way = t->edge[v[k]] / 3 - node;
            int axis = (int)(t->edge[v[k]] % 3), high = way >= (int64_t)l->n[0] * l->n[1];
            way -= high * (int64_t)l->n[0] * l->n[1];
            int bit[3] = {(int)(way % l->n[0]), (int)(way / l->n[0]), high};
            double at[3] = {x[k].x, x[k].y, x[k].z};
            c->cut[axis][bit[(axis + 1) % 3] | bit[(axis + 2) % 3] << 1] = at[axis];
        }
        sum += un_dot(x[0], un_cross(un_sub(x[1], x[0]), un_sub(x[2], x[0]))) / 6;
    }
    return sum;
}

/* The liquid in a cube with these triangles: the faces through its lower corner add nothing. */
static double cut_volume(const un_track *t, cube *c, un_vec3 corner, int64_t node, int32_t first,
                         int32_t last)
{
    double sum = cut_edges(t, c, corner, node, first, last);
    for (int a = 0; a < 3; a++) sum += face_area(c, a) * c->h[a] / 3;
    return sum;
}

/* The share of a cube where both the liquid and open space are, by six tets along its diagonal. */
static double open_share(const double v[8])
{
    static const uint8_t path[6][2] = {{1, 3}, {1, 5}, {2, 3}, {2, 6}, {4, 5}, {4, 6}};
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += un_tet_fraction((double[4]){-v[0], -v[path[i][0]], -v[path[i][1]], -v[7]}) / 6;
    return sum;
}

static double sum_rows(void *arg, int64_t begin, int64_t end)
{
    measuring *m = arg;
    const un_track *t = m->t;
    const un_lattice *l = &t->lattice;
    double sum = 0, whole = l->h[0] * l->h[1] * l->h[2];
    un_vec3 half = un_v3(0.5 * l->h[0], 0.5 * l->h[1], 0.5 * l->h[2]);
    for (int64_t r = begin; r < end; r++) {
        int32_t j = UN_TRACK_MARGIN + (int32_t)(r % t->cells[1]);
        int32_t k = UN_TRACK_MARGIN + (int32_t)(r / t->cells[1]);
        int64_t row = j + (int64_t)l->n[1] * k;
        int32_t at = t->stretch[un_track_stretch(t, row, 0)];
        int32_t end_at = t->stretch[un_track_stretch(t, row + 1, 0)];
        for (int32_t i = UN_TRACK_MARGIN; i < UN_TRACK_MARGIN + t->cells[0]; i++) {
            while (at < end_at && t->column[at] < i) at++;
            int32_t last = at;
            while (last < end_at && t->column[last] == i) last++;
            cube c = {.h = {l->h[0], l->h[1], l->h[2]}};
            int64_t node = row * l->n[0] + i;
            double most[8], deepest = 0, share = mean_fill(t, at, last);
            bool shut = m->solid, touched = false;
            for (int q = 0; q < 8; q++) {
                int64_t n = node + (q & 1) + l->n[0] * ((q >> 1 & 1) + (int64_t)l->n[1] * (q >> 2));
                c.liquid |= (uint8_t)((l->phi[n] < 0) << q);
                most[q] = m->solid ? fmax(l->phi[n], -m->solid[n]) : l->phi[n];
                touched |= m->solid && m->solid[n] < 0;
                deepest = fmin(deepest, l->phi[n]);
                shut &= m->solid && m->solid[n] < 0;
            }
            un_vec3 corner = un_track_node(t, i, j, k);
            if (shut || c.liquid == 0) continue;
            /* Only in thin liquid a cube without surface has no corner a cell below it. */
            if (last == at && deepest > -t->h) share = un_track_fill(t, un_mad(corner, half, 1));
            if (touched)
                sum += share * whole * open_share(most);
            else if (last == at)
                sum += share * whole;
            else
                sum += share * cut_volume(t, &c, corner, node, at, last);
        }
    }
    return sum;
}

double un_track_volume(const un_track *t, const float *solid)
{
    measuring m = {t, solid};
    return un_parallel_sum(t->ctx, (int64_t)t->cells[1] * t->cells[2], sum_rows, &m);
}

static double sum_triangles(void *arg, int64_t begin, int64_t end)
{
    measuring *m = arg;
    const un_track *t = m->t;
    const un_lattice *l = &t->lattice;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) {
        const int32_t *v = t->mesh.triangle[i];
        const un_vec3 *x = t->mesh.position;
        un_vec3 mean = un_scale(un_add(un_add(x[v[0]], x[v[1]]), x[v[2]]), 1.0 / 3);
        un_vec3 p = un_sub(mean, l->origin);
        int64_t a[3] = {(int64_t)(p.x / l->h[0]), (int64_t)(p.y / l->h[1]),
                        (int64_t)(p.z / l->h[2])};
        bool inside = true;
        for (int c = 0; c < 3; c++)
            inside &= a[c] >= UN_TRACK_MARGIN && a[c] < UN_TRACK_MARGIN + t->cells[c];
        if (!inside) continue;
        if (m->solid && m->solid[a[0] + l->n[0] * (a[1] + l->n[1] * a[2])] < 0) continue;
        double area = 0.5 * un_length(un_cross(un_sub(x[v[1]], x[v[0]]), un_sub(x[v[2]], x[v[0]])));
        sum += area * (t->fill[v[0]] + t->fill[v[1]] + t->fill[v[2]]) / 3;
    }
    return sum;
}

double un_track_area(const un_track *t, const float *solid)
{
    measuring m = {t, solid};
    return un_parallel_sum(t->ctx, t->mesh.triangle_count, sum_triangles, &m);
}

/* ---- what flows out ---- */

typedef struct leaving {
    const un_track *t;
    const float *solid;
    int axis, sign;
    un_track_velocity *velocity;
    const void *arg;
} leaving;

/* The triangles of a cube. */
static void find_cube(const un_track *t, const int32_t at[3], int32_t *first, int32_t *last)
{
    int64_t row = at[1] + (int64_t)t->lattice.n[1] * at[2];
    int64_t stretch = un_track_stretch(t, row, at[0]);
    int32_t i = t->stretch[stretch], end = t->stretch[stretch + 1];
    while (i < end && t->column[i] < at[0]) i++;
    *first = i;
    while (i < end && t->column[i] == at[0]) i++;
    *last = i;
}

static double sum_squares(void *arg, int64_t begin, int64_t end)
{
    leaving *s = arg;
    const un_track *t = s->t;
    const un_lattice *l = &t->lattice;
    int a = s->axis, u = (a + 1) % 3, v = (a + 2) % 3;
    double sum = 0;
    for (int64_t q = begin; q < end; q++) {
        int32_t at[3], first, last;
        /* the cube whose upper face lies in the side */
        at[a] = UN_TRACK_MARGIN - 1 + (s->sign > 0 ? t->cells[a] : 0);
        at[u] = UN_TRACK_MARGIN + (int32_t)(q % t->cells[u]);
        at[v] = UN_TRACK_MARGIN + (int32_t)(q / t->cells[u]);
        int64_t node = at[0] + l->n[0] * (at[1] + (int64_t)l->n[1] * at[2]);
        cube c = {.h = {l->h[0], l->h[1], l->h[2]}};
        bool shut = false;
        for (int b = 0; b < 8; b++) {
            int64_t n = node + (b & 1) + l->n[0] * ((b >> 1 & 1) + (int64_t)l->n[1] * (b >> 2));
            c.liquid |= (uint8_t)((l->phi[n] < 0) << b);
            shut |= s->solid && (b >> a & 1) && s->solid[n] < 0;
        }
        if (c.liquid == 0 || shut) continue;
        find_cube(t, at, &first, &last);
        un_vec3 corner = un_track_node(t, at[0], at[1], at[2]);
        cut_edges(t, &c, corner, node, first, last);
        double area = face_area(&c, a) * mean_fill(t, first, last);
        double way[3] = {0.5 * l->h[0], 0.5 * l->h[1], 0.5 * l->h[2]};
        way[a] *= 2;
        un_vec3 flow = s->velocity(s->arg, un_add(corner, un_v3(way[0], way[1], way[2])));
        sum += area * s->sign * (a == 0 ? flow.x : a == 1 ? flow.y : flow.z);
    }
    return sum;
}

double un_track_outflow(const un_track *t, const float *solid, int side,
                        un_track_velocity *velocity, const void *arg)
{
    int a = side / 2, u = (a + 1) % 3, v = (a + 2) % 3;
    leaving s = {t, solid, a, side % 2 ? 1 : -1, velocity, arg};
    return un_parallel_sum(t->ctx, (int64_t)t->cells[u] * t->cells[v], sum_squares, &s);
}

/* ---- output ---- */

typedef struct showing {
    const un_track *t;
    const float *solid;
    un_lattice box;
    un_trimesh *mesh;
    const uint64_t *edge;  /* sorted, */
    const int32_t *vertex; /* and whose they are */
} showing;

static int64_t outer_node(const showing *s, int64_t i, int64_t j, int64_t k)
{
    const un_lattice *l = &s->t->lattice;
    return i + UN_TRACK_MARGIN + l->n[0] * (j + UN_TRACK_MARGIN + l->n[1] * (k + UN_TRACK_MARGIN));
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    showing *s = arg;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < s->box.n[0]; i++) {
            int64_t n = outer_node(s, i, row % s->box.n[1], row / s->box.n[1]);
            float phi = s->t->lattice.phi[n];
            s->box.phi[row * s->box.n[0] + i] = s->solid ? fmaxf(phi, -s->solid[n]) : phi;
        }
}

/* Vertices between two nodes outside solids go where the carried mesh has them. */
static void place_vertices(void *arg, int64_t begin, int64_t end)
{
    showing *s = arg;
    const un_lattice *b = &s->box;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = s->mesh->position[v];
        double at[3] = {x.x / b->h[0], x.y / b->h[1], x.z / b->h[2]}, most = -1;
        int axis = 0;
        for (int a = 0; a < 3; a++) {
            double off = fabs(at[a] - rint(at[a]));
            if (off > most) most = off, axis = a;
        }
        if (most < 0.5 * UN_SURFACE_HAIR) continue; /* a corner in the boundary */
        int64_t n[3];
        for (int a = 0; a < 3; a++) n[a] = (int64_t)(a == axis ? floor(at[a]) : rint(at[a]));
        int64_t low = outer_node(s, n[0], n[1], n[2]);
        n[axis]++;
        int64_t high = outer_node(s, n[0], n[1], n[2]);
        if (s->solid && (s->solid[low] < 0 || s->solid[high] < 0)) continue;
        uint64_t key = (uint64_t)(3 * low + axis);
        int64_t found = un_lower_bound(s->edge, s->t->mesh.vertex_count, key);
        if (found < s->t->mesh.vertex_count && s->edge[found] == key)
            s->mesh->position[v] = s->t->mesh.position[s->vertex[found]];
    }
}

static un_status show(showing *s, un_arena *arena)
{
    const un_track *t = s->t;
    un_context *ctx = t->ctx;
    int64_t count = t->mesh.vertex_count;
    uint64_t *sorted = un_arena_alloc(arena, (size_t)count + 1, sizeof *sorted);
    int32_t *order = un_arena_alloc(arena, (size_t)count + 1, sizeof *order);
    if (!sorted || !order) return UN_ERROR_MEMORY;
    UN_TRY(un_parallel_sort64(ctx, arena, order, (const uint64_t *)t->edge, count, 48));
    for (int64_t v = 0; v < count; v++) sorted[v] = (uint64_t)t->edge[order[v]];
    s->edge = sorted;
    s->vertex = order;
    un_parallel_for(ctx, (int64_t)s->box.n[1] * s->box.n[2], ROW_GRAIN, fill_rows, s);
    UN_TRY(un_surface_contour(ctx, &s->box, s->mesh));
    un_parallel_for(ctx, s->mesh->vertex_count, 4096, place_vertices, s);
    return un_surface_normals_at_walls(ctx, &s->box, s->mesh);
}

un_status un_track_output(const un_track *t, un_arena *arena, const float *solid, un_trimesh *mesh)
{
    showing s = {.t = t, .solid = solid, .mesh = mesh};
    *mesh = (un_trimesh){0};
    int64_t count = 1;
    for (int a = 0; a < 3; a++) {
        s.box.n[a] = t->cells[a] + 1;
        s.box.h[a] = t->lattice.h[a];
        count *= s.box.n[a];
    }
    UN_ALLOC(t->ctx, s.box.phi, count);
    un_status status = show(&s, arena);
    un_free(t->ctx, s.box.phi);
    if (status != UN_OK) un_trimesh_free(t->ctx, mesh);
    return status;
}
