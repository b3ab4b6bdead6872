/* Rates of strain of velocities on faces, next to walls.
 *
 * Away from walls, with a at faces across axis a and h the edge of cells,
 *
 *     du_a/da = (u_a[c + a] - u_a[c]) / h                                        in cell c,
 *     du_a/db + du_b/da = (u_a[c] - u_a[c - b] + u_b[c] - u_b[c - a]) / h     at its lower edge.
 *
 * Where one of two faces lies in a wall that liquid sticks to, the difference is that to the wall's
 * own velocity at the point where the wall is, theta h from the other face [Gibou et al. 2002]; the
 * cube between them has that much less liquid. Both together are the exact stress of a linear
 * velocity over a wall at any height, and leave the matrix symmetric.
 *
 * Along a side with a slip length L, where the velocity would be the wall's that far behind it,
 * liquid of the depth d = theta h has the strain
 *
 *     (u_a - u_wall + d du_b/da) / (d + L)
 *
 * and friction at the wall is part of the work: it is that of liquid of the depth d + L.
 *
 * A body that lets liquid slide may lie askew to the grid. Faces in it are solved for like others,
 * without mass, and cells that it cuts have springs: a stiff one for the velocity through its
 * surface, a soft one of mu / L for that along it. */
#include "viscosity/grid.h"

/* The least distance to a wall, in cells. It only keeps the matrix finite. */
#define THETA_MIN 0.02
/* Stiffness against flow into a body that lets liquid slide, in mu / h: a pressure of rho g H then
 * presses a twentieth of a cell over H as much liquid through it as it makes flow, and the
 * projection stops that. */
#define NORMAL_STIFFNESS 20.0
/* Walls smaller than this share of a face are none. */
#define WALL_MIN 1e-3

static inline double component(un_vec3 v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

/* ---- walls at faces ---- */

typedef struct face_wall {
    double distance; /* to it; negative inside */
    int32_t body;    /* -1: a side */
    bool side;       /* of the domain, on or beyond it */
    double slip;
    un_vec3 x; /* the face's centre */
} face_wall;

/* The least slip of the sides that x lies on or beyond. */
static double side_slip(const un_stress_grid *s, un_vec3 x)
{
    const un_scene_def *def = &s->in->walls->scene->def;
    double at[3] = {x.x, x.y, x.z}, size[3] = {s->g->size.x, s->g->size.y, s->g->size.z};
    double slip = INFINITY;
    for (int a = 0; a < s->g->dim; a++) {
        bool low = !def->domain.open[2 * a] && at[a] < s->snap;
        bool high = !def->domain.open[2 * a + 1] && at[a] > size[a] - s->snap;
        if (low) slip = fmin(slip, def->domain.slip[2 * a]);
        if (high) slip = fmin(slip, def->domain.slip[2 * a + 1]);
    }
    return slip;
}

static face_wall look_at_wall(const un_stress_grid *s, int axis, const int32_t at[3], bool measured)
{
    int64_t c = un_grid_cell(s->g, at[0], at[1], at[2]);
    const un_walls *w = s->in->walls;
    const un_grid *g = s->g;
    face_wall f = {.body = -1, .x = un_grid_face_center(g, axis, at[0], at[1], at[2])};
    f.distance = un_walls_sides(w, f.x);
    f.side = f.distance <= s->snap;
    if (f.side) f.slip = side_slip(s, f.x);
    if (!w->body) return f;
    double sum = 0, least = INFINITY;
    int64_t nearest = 0;
    int count = 0;
    for (int m = 0; m < 4; m++) {
        int32_t d[3] = {at[0], at[1], at[2]};
        d[(axis + 1) % 3] += m & 1;
        d[(axis + 2) % 3] += m >> 1;
        if (g->dim == 2 && d[2] != 0) continue;
        int64_t node = un_grid_node(g, d[0], d[1], d[2]);
        double phi = w->phi[node];
        sum += phi;
        count++;
        if (phi < least) least = phi, nearest = node;
    }
    if (w->body[nearest] < 0 || f.side) return f;
    f.body = w->body[nearest];
    f.slip = w->bodies->body[f.body].slip;
    f.distance = fmin(f.distance, measured ? (double)s->wall[axis][c] : sum / count);
    return f;
}

static face_wall find_wall(const un_stress_grid *s, int axis, const int32_t at[3])
{
    return look_at_wall(s, axis, at, true);
}

/* Within this many cells of a body the distance to it is exact. Linear between nodes a ball of two
 * cells' radius is a tenth of a cell too small. */
#define EXACT 1.5

static void measure_wall(const un_stress_grid *s, int axis, const int32_t at[3], int64_t c)
{
    face_wall f = look_at_wall(s, axis, at, false);
    if (f.body >= 0 && fabs(f.distance) < EXACT * s->g->h)
        f.distance = un_body_distance(&s->in->walls->bodies->body[f.body], f.x);
    s->wall[axis][c] = (float)f.distance;
}

static double wall_speed(const un_stress_grid *s, const face_wall *f, int axis, un_vec3 x)
{
    if (f->body < 0) return 0;
    return component(un_body_velocity(&s->in->walls->bodies->body[f->body], x), axis);
}

static uint8_t kind_of(const un_stress_grid *s, int axis, const int32_t at[3], int64_t c)
{
    const un_walls *w = s->in->walls;
    int64_t below = c - s->g->stride[axis];
    bool closed = !(w->area[axis][c] > 0);
    if (at[axis] > 0 && w->volume[c] >= 1 && w->volume[below] >= 1 && !closed) return UN_FACE_OPEN;
    face_wall f = find_wall(s, axis, at);
    if (f.side) {
        double x = component(f.x, axis), size = component(s->g->size, axis);
        const bool *open = w->scene->def.domain.open;
        bool across =
            (x < s->snap && !open[2 * axis]) || (x > size - s->snap && !open[2 * axis + 1]);
        return across || !(f.slip > 0) ? UN_FACE_STICKS : UN_FACE_SLIDES;
    }
    if (f.body < 0) return UN_FACE_OPEN;
    if (w->parted && closed) return UN_FACE_STICKS;
    return f.distance <= s->snap && !(f.slip > 0) ? UN_FACE_STICKS : UN_FACE_OPEN;
}

static void find_kinds(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    const un_grid *g = s->g;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++) {
            int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
            for (int a = 0; a < g->dim && s->near[c]; a++) {
                if (s->wall[a]) measure_wall(s, a, at, c);
                s->kind[a][c] = kind_of(s, a, at, c);
            }
        }
    }
}

/* Thick liquid would hang in an emitter, or pull on it. */
static const un_source *emitter_at(const un_stress_grid *s, un_vec3 x)
{
    const un_scene_def *def = &s->in->walls->scene->def;
    for (int32_t i = def->source_count - 1; i >= 0; i--) {
        const un_source *source = &def->sources[i];
        if (source->kind != UN_SOURCE_EMITTER || !un_source_active(source, s->in->time)) continue;
        un_box3 box = un_shape_bounds(source->shape);
        bool near = x.x > box.min.x && x.y > box.min.y && x.x < box.max.x && x.y < box.max.y;
        if (s->g->dim == 3) near = near && x.z > box.min.z && x.z < box.max.z;
        if (near && un_shape_distance(source->shape, x) < 0) return source;
    }
    return NULL;
}

static void find_emitters(void *arg, int64_t begin, int64_t end)
{
    const un_stress_grid *s = arg;
    const un_grid *g = s->g;
    for (int64_t row = begin; row < end; row++) {
        int32_t at[3] = {0, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1])};
        for (at[0] = 0; at[0] < g->n[0]; at[0]++)
            for (int a = 0; a < g->dim; a++) {
                int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
                if (!s->near[c] || s->kind[a][c] != UN_FACE_OPEN) continue;
                if (emitter_at(s, un_grid_face_center(g, a, at[0], at[1], at[2])))
                    s->kind[a][c] = UN_FACE_EMITS;
            }
    }
}

void un_stress_find_kinds(const un_stress_grid *s)
{
    const un_scene_def *def = &s->in->walls->scene->def;
    bool emits = false;
    for (int32_t i = 0; i < def->source_count; i++)
        emits |= def->sources[i].kind == UN_SOURCE_EMITTER &&
                 un_source_active(&def->sources[i], s->in->time);
    un_stress_over_rows(s, UN_STRESS_KINDS, find_kinds, (void *)(uintptr_t)s);
    if (emits) un_stress_over_rows(s, UN_STRESS_KINDS, find_emitters, (void *)(uintptr_t)s);
}

double un_stress_held(const un_stress_grid *s, int axis, const int32_t at[3])
{
    if (s->kind[axis][un_grid_cell(s->g, at[0], at[1], at[2])] == UN_FACE_EMITS) {
        const un_source *from = emitter_at(s, un_grid_face_center(s->g, axis, at[0], at[1], at[2]));
        return from ? component(from->velocity, axis) : 0;
    }
    face_wall f = find_wall(s, axis, at);
    return wall_speed(s, &f, axis, f.x);
}

/* ---- differences ---- */

/* (u_a at one face less u_a at the face below it along b) over their distance. */
typedef struct difference {
    double lo, hi;   /* coefficients; 0: not solved for */
    double constant; /* of walls */
    double theta;    /* cells between the face and its wall; 1: there is none */
    double slip;     /* of that wall */
    un_push push;    /* of a moved body */
} difference;

/* The difference between an open face and one in a wall; sign: 1 if the wall is below. */
static difference to_wall(const un_stress_grid *s, int a, int b, const int32_t open_at[3],
                          const int32_t wall_at[3], double sign)
{
    double h = s->g->h, speed;
    difference d = {.theta = 1};
    if (s->kind[a][un_grid_cell(s->g, wall_at[0], wall_at[1], wall_at[2])] == UN_FACE_EMITS) {
        speed = un_stress_held(s, a, wall_at);
    } else {
        face_wall open = find_wall(s, a, open_at), wall = find_wall(s, a, wall_at);
        if (wall.side) {
            double plane = sign > 0 ? 0 : component(s->g->size, b);
            d.theta = fabs(component(open.x, b) - plane) / h;
        } else {
            d.theta = open.distance / (open.distance - fmin(wall.distance, 0));
            if (!(wall.distance <= s->snap)) d.theta = 0.5; /* a thin wall */
        }
        d.theta = un_clamp(d.theta, THETA_MIN, 1);
        d.slip = a != b ? wall.slip : 0;
        un_vec3 x = un_mad(open.x, un_sub(wall.x, open.x), d.theta);
        speed = wall_speed(s, &wall, a, x);
        un_push_add(s, &d.push, wall.body, a, x, -sign / (d.theta * h));
    }
    double over = sign / (d.theta * h);
    *(sign > 0 ? &d.hi : &d.lo) = over;
    d.constant = -over * speed;
    return d;
}

un_ghost un_stress_ghost(const un_stress_grid *s, int a, int b, const int32_t open_at[3],
                         const int32_t wall_at[3], int way)
{
    difference d = to_wall(s, a, b, open_at, wall_at, -way);
    return (un_ghost){d.theta, -d.constant / (way > 0 ? d.lo : d.hi)};
}

static difference find_difference(const un_stress_grid *s, int a, int b, const int32_t lo[3],
                                  const int32_t hi[3])
{
    const un_grid *g = s->g;
    uint8_t below = s->kind[a][un_grid_cell(g, lo[0], lo[1], lo[2])];
    uint8_t above = s->kind[a][un_grid_cell(g, hi[0], hi[1], hi[2])];
    if (below == UN_FACE_OPEN && above == UN_FACE_OPEN)
        return (difference){.lo = -g->inverse_h, .hi = g->inverse_h, .theta = 1};
    if (below == UN_FACE_OPEN) return to_wall(s, a, b, lo, hi, -1);
    if (above == UN_FACE_OPEN) return to_wall(s, a, b, hi, lo, 1);
    double rise = un_stress_held(s, a, hi) - un_stress_held(s, a, lo);
    difference d = {.constant = rise * g->inverse_h, .theta = 1};
    if (!s->number) return d;
    face_wall f[2] = {find_wall(s, a, lo), find_wall(s, a, hi)};
    if (below != UN_FACE_EMITS) un_push_add(s, &d.push, f[0].body, a, f[0].x, -g->inverse_h);
    if (above != UN_FACE_EMITS) un_push_add(s, &d.push, f[1].body, a, f[1].x, g->inverse_h);
    return d;
}

/* Takes over what a difference depends on. */
static inline void add_push(un_push *to, const un_push *from)
{
    if (from->body == 0 || (to->body > 0 && to->body != from->body)) return;
    to->body = from->body;
    for (int k = 0; k < 6; k++) to->by[k] += from->by[k];
}

static inline void add_face(un_strain *e, int axis, int64_t c, double coef)
{
    if (coef == 0) return;
    e->cell[e->count] = (int32_t)c;
    e->axis[e->count] = (uint8_t)axis;
    e->coef[e->count++] = coef;
}

/* ---- strains ---- */

/* The volume that a strain stands for, in a cube with these shares of liquid and of open space. At
 * walls that liquid sticks to that is all of the cube up to the wall: what a solid takes away from
 * it beside the faces is not free of stress, and a ball would sink a fifth too fast. */
static double volume_of(const un_stress_grid *s, const int32_t at[3], double share, double open,
                        double theta)
{
    const un_walls *w = s->in->walls;
    int32_t body = w->body ? w->body[un_grid_node(s->g, at[0], at[1], at[2])] : -1;
    bool slides = body >= 0 && w->bodies->body[body].slip > 0;
    return (slides ? fmin(share, theta) : theta * share / open) * s->g->volume;
}

bool un_strain_cell(const un_stress_grid *s, const int32_t at[3], int a, un_strain *out)
{
    const un_viscous_grid *in = s->in;
    int64_t c = un_grid_cell(s->g, at[0], at[1], at[2]);
    double mu = in->viscosity ? (double)in->viscosity[c] : in->viscosity_all;
    double share = un_stress_cell(s, c, NULL, 1);
    if (!(share > 0) || !(mu > 0)) return false;
    int32_t next[3] = {at[0], at[1], at[2]};
    next[a]++;
    difference d = find_difference(s, a, a, at, next);
    *out = (un_strain){.constant = d.constant,
                       .volume = volume_of(s, at, share, un_stress_cell_open(s, c), d.theta)};
    out->weight = (in->laplacian ? 1 : 2) * in->dt * mu * out->volume;
    add_push(&out->push, &d.push);
    add_face(out, a, c, d.lo);
    add_face(out, a, c + s->g->stride[a], d.hi);
    return true;
}

/* On each side of a thin wall across b: the strain between the face there and the wall. */
static int thin_strains(const un_stress_grid *s, const int32_t at[3], int a, int b, double weight,
                        un_strain out[2])
{
    int32_t lo[3] = {at[0], at[1], at[2]};
    lo[b]--;
    face_wall f = find_wall(s, b, at);
    un_vec3 x = un_grid_face_center(s->g, a, at[0], at[1], at[2]);
    *(b == 0 ? &x.x : b == 1 ? &x.y : &x.z) -= 0.5 * s->g->h;
    double speed = wall_speed(s, &f, a, x), depth = 0.5 * s->g->h + f.slip;
    if (!(depth < INFINITY)) return 0;
    for (int side = 0; side < 2; side++) {
        const int32_t *to = side ? at : lo;
        out[side] = (un_strain){.weight = weight * depth / s->g->h,
                                .volume = 0.5 * s->g->volume,
                                .constant = -speed / depth};
        add_face(&out[side], a, un_grid_cell(s->g, to[0], to[1], to[2]), 1 / depth);
        un_push_add(s, &out[side].push, f.body, a, x, -1 / depth);
    }
    return 2;
}

static bool is_thin(const un_stress_grid *s, int axis, int64_t c)
{
    return !(s->in->walls->area[axis][c] > 0);
}

/* Is the face across a beyond an open side across b? Nothing is known about it, and there is no
 * traction. */
static bool is_outside(const un_stress_grid *s, int a, int b, const int32_t at[3])
{
    return (at[b] == 0 || at[b] == s->g->n[b] - 1) &&
           s->kind[a][un_grid_cell(s->g, at[0], at[1], at[2])] == UN_FACE_OPEN;
}

int un_strain_edge(const un_stress_grid *s, const int32_t at[3], int a, int b, un_strain out[2])
{
    const un_viscous_grid *in = s->in;
    const un_grid *g = s->g;
    int64_t c = un_grid_cell(g, at[0], at[1], at[2]), sa = g->stride[a], sb = g->stride[b];
    double share = un_stress_edge(s, c, a, b, NULL, 1);
    double mu = un_stress_edge(s, c, a, b, in->viscosity, in->viscosity_all); /* times share */
    if (!(share > 0) || !(mu > 0)) return 0;
    double weight = in->dt * mu * g->volume;
    if (in->walls->parted) {
        const uint8_t *ka = s->kind[a], *kb = s->kind[b];
        bool a_open = ka[c] == UN_FACE_OPEN && ka[c - sb] == UN_FACE_OPEN;
        bool b_open = kb[c] == UN_FACE_OPEN && kb[c - sa] == UN_FACE_OPEN;
        if (a_open && is_thin(s, b, c) && is_thin(s, b, c - sa))
            return thin_strains(s, at, a, b, weight, out);
        if (b_open && is_thin(s, a, c) && is_thin(s, a, c - sb))
            return thin_strains(s, at, b, a, weight, out);
    }
    int32_t below_a[3] = {at[0], at[1], at[2]}, below_b[3] = {at[0], at[1], at[2]};
    below_a[a]--;
    below_b[b]--;
    if (is_outside(s, a, b, below_b) || is_outside(s, a, b, at) || is_outside(s, b, a, below_a) ||
        is_outside(s, b, a, at))
        return 0;
    difference d[2] = {find_difference(s, a, b, below_b, at),
                       find_difference(s, b, a, below_a, at)};
    double theta = d[0].theta < 1 && d[1].theta < 1 ? fmax(d[0].theta, d[1].theta)
                                                    : fmin(d[0].theta, d[1].theta);
    double volume = volume_of(s, at, share, un_stress_edge_open(s, c, a, b), theta);
    weight *= volume / (share * g->volume);
    int count = in->laplacian ? 2 : 1, made = 0;
    for (int k = 0; k < count; k++) {
        un_strain *e = &out[made];
        *e = (un_strain){.weight = weight, .volume = volume};
        double slip = 0, depth = g->h;
        for (int m = 0; m < 2; m++) {
            if (in->laplacian && m != k) continue;
            e->constant += d[m].constant;
            add_push(&e->push, &d[m].push);
            add_face(e, m ? b : a, c, d[m].hi);
            add_face(e, m ? b : a, m ? c - sa : c - sb, d[m].lo);
            if (d[m].slip > 0) slip = d[m].slip, depth = d[m].theta * g->h;
        }
        if (!(slip < INFINITY)) continue;
        double less = depth / (depth + slip);
        e->weight /= less;
        e->constant *= less;
        for (int m = 0; m < e->count; m++) e->coef[m] *= less;
        for (int m = 0; m < 6; m++) e->push.by[m] *= less;
        made++;
    }
    return made;
}

/* ---- bodies that let liquid slide ---- */

/* Adds `times` the velocity along an axis, linear between both faces of a cell, t from the lower.
 */
static void add_velocity(const un_stress_grid *s, un_strain *e, int axis, const int32_t at[3],
                         double t, double times)
{
    for (int side = 0; side < 2; side++) {
        int32_t f[3] = {at[0], at[1], at[2]};
        f[axis] += side;
        int64_t c = un_grid_cell(s->g, f[0], f[1], f[2]);
        double coef = times * (side ? t : 1 - t);
        if (s->kind[axis][c] == UN_FACE_OPEN)
            add_face(e, axis, c, coef);
        else
            e->constant += coef * un_stress_held(s, axis, f);
    }
}

/* The body that slides nearest to a cell, and the mean of the distances at its corners. */
static int32_t sliding_body(const un_stress_grid *s, const int32_t at[3], double *distance)
{
    const un_walls *w = s->in->walls;
    int32_t body = -1;
    double least = INFINITY, sum = 0;
    for (int m = 0; m < 1 << s->g->dim; m++) {
        int64_t n = un_grid_node(s->g, at[0] + (m & 1), at[1] + (m >> 1 & 1), at[2] + (m >> 2));
        sum += (double)w->phi[n] / (1 << s->g->dim);
        if ((double)w->phi[n] < least) least = w->phi[n], body = w->body[n];
    }
    *distance = sum;
    return body >= 0 && w->bodies->body[body].slip > 0 ? body : -1;
}

int un_strain_wall(const un_stress_grid *s, const int32_t at[3], un_strain out[UN_STRAINS_MAX])
{
    const un_walls *w = s->in->walls;
    const un_grid *g = s->g;
    int64_t c = un_grid_cell(g, at[0], at[1], at[2]);
    double mu = s->in->viscosity ? (double)s->in->viscosity[c] : s->in->viscosity_all;
    double share = un_stress_cell(s, c, NULL, 1), distance, normal[3] = {0}, length = 0, t[3] = {0};
    if (!(share > 0) || !(mu > 0) || w->parted) return 0;
    int32_t b = sliding_body(s, at, &distance);
    if (b < 0) return 0;
    const bool *open = w->scene->def.domain.open;
    /* Open space around the cell closes with the wall: its area and normal are what faces lack. */
    for (int a = 0; a < g->dim; a++) {
        int64_t next = c + g->stride[a];
        bool low = at[a] == 1 && !open[2 * a], high = at[a] == g->n[a] - 2 && !open[2 * a + 1];
        /* a side closes its face whether the body does or not */
        normal[a] = (double)(high ? w->volume[c] : w->area[a][next]) -
                    (double)(low ? w->volume[c] : w->area[a][c]);
        length += normal[a] * normal[a];
    }
    length = sqrt(length);
    if (length < WALL_MIN) return 0;
    un_vec3 x = un_grid_center(g, at[0], at[1], at[2]), n = {0, 0, 0};
    n = un_scale(un_v3(normal[0], normal[1], normal[2]), 1 / length);
    for (int a = 0; a < g->dim; a++) t[a] = un_clamp(0.5 - distance * component(n, a) / g->h, 0, 1);
    un_vec3 speed = un_body_velocity(&w->bodies->body[b], un_mad(x, n, -distance));
    double area = length * g->volume / g->h, slip = w->bodies->body[b].slip;
    double weight = s->in->dt * mu * area * share / fmax((double)w->volume[c], share);
    int count = 0;
    out[count] = (un_strain){.weight = weight * NORMAL_STIFFNESS / g->h};
    for (int a = 0; a < g->dim; a++) {
        out[count].constant -= component(n, a) * component(speed, a);
        un_push_add(s, &out[count].push, b, a, un_mad(x, n, -distance), -component(n, a));
        add_velocity(s, &out[count], a, at, t[a], component(n, a));
    }
    count++;
    for (int a = 0; a < g->dim && slip < INFINITY; a++) {
        out[count] = (un_strain){.weight = weight / slip, .constant = -component(speed, a)};
        un_push_add(s, &out[count].push, b, a, un_mad(x, n, -distance), -1);
        add_velocity(s, &out[count++], a, at, t[a], 1);
    }
    return count;
}
