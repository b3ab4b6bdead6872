/* Projection with normal velocities on faces and one pressure per tet [Chentanez07; Batty11 after
 * Batty, Xenos & Houston 2010].
 *
 * For every tet in the liquid, summed over its faces, velocities outwards,
 *
 *     sum_f A_f [theta_f u_f + (1 - theta_f) u_solid . n] = wanted divergence * open volume,
 *     u_f <- u_f - dt/rho (p_b - p_a) / d_f,
 *
 * theta_f is the open share of the face, d_f the distance between the two barycentres along the
 * normal. At the surface, a share f = phi_a / (phi_a - phi_b) of the distance, p is zero.
 *
 * We use barycentres, not circumcentres. In BCC tets both are the same point, the line between two
 * of them is perpendicular to the face, and the scheme is of second order. Where sizes change,
 * circumcentres coincide or lie in the wrong order; barycentres do not, but their lines are oblique
 * and a linear pressure no longer has the right gradient. So that liquid at rest stays at rest all
 * the same, the weight is taken out of the pressure: with p = p' + rho g.x gravity acts on the
 * surface alone, where p' = -rho g.x, and under a flat surface p' is constant, on any mesh. Where
 * density varies, rho is the reference, and lighter or heavier liquid is driven by the difference.
 *
 * The unknown is p all the same, and the slopes of rho g.x between barycentres go to the right-hand
 * side. With p' it would have p'_surface / d_f of tets that all but touch the surface, ten thousand
 * times what flows anywhere: the solver stops at a share of its norm, and left still water in a
 * tilted tub at 0.7 m/s.
 *
 * The surface may have a pressure P, given at nodes. It is taken out of the unknown: p' is zero
 * there except for the weight, and faces get -dt/rho times the mean slope of P in their two tets,
 * which is exact for a linear P on any mesh.
 *
 * Walls push and do not pull: a tet that has let go of a wall has p = 0 (release.c), and the closed
 * faces between them are not known. */
#include "pressure/coupling.h"
#include "pressure/system.h"

/* A tet with a face less open than this is next to a wall. */
#define WALL_OPEN 0.98

/* Shortest distance to the surface, as a share of that to the next tet: bounds the matrix. */
#define NEAREST 1e-4
/* Most oblique line between barycentres that is used unchanged: cosine with the normal. */
#define OBLIQUE 0.3

typedef struct args {
    un_pressure *pr;
    const un_face_projection *in;
} args;

/* A face as seen from one of its tets. */
typedef struct link {
    int32_t other;   /* tet, -1 none */
    double area;     /* m2 */
    double open;     /* share */
    double outwards; /* 1: the face's normal points out of this tet; -1: into it */
    un_vec3 normal;  /* the face's */
    un_vec3 way;     /* from here to the other barycentre, or to the face's centre */
    double distance; /* along the normal */
} link;

static double phi_of(const args *s, int32_t t)
{
    const int32_t *n = s->in->mesh->tet[t];
    const float *phi = s->in->phi;
    return 0.25 * ((double)phi[n[0]] + phi[n[1]] + phi[n[2]] + phi[n[3]]);
}

/* The side of the brick that a boundary face lies in. */
static int side_of(un_vec3 normal)
{
    double n[3] = {normal.x, normal.y, normal.z};
    int axis = fabs(n[0]) > 0.5 ? 0 : fabs(n[1]) > 0.5 ? 1 : 2;
    return 2 * axis + (n[axis] > 0);
}

static link make_link(const args *s, int32_t t, int i)
{
    const un_face_projection *in = s->in;
    const un_faces *faces = in->faces;
    int32_t f = faces->of_tet[t][i], first = un_face_tet(faces, f), n[3];
    link l = {.other = first == t ? faces->other[f] : first, .outwards = first == t ? 1 : -1};
    un_vec3 area = un_face_area(faces, in->mesh, f);
    l.area = un_length(area);
    l.normal = un_scale(area, 1 / l.area);
    l.open = 1;
    if (in->walls && in->walls->cut) {
        un_face_nodes(faces, in->mesh, f, n);
        double v[3] = {in->walls->cut[n[0]], in->walls->cut[n[1]], in->walls->cut[n[2]]};
        l.open = un_triangle_fraction(v);
    }
    un_vec3 to =
        l.other >= 0 ? un_tets_center(in->mesh, l.other) : un_face_center(faces, in->mesh, f);
    if (l.other < 0 && !(in->open_sides && in->open_sides[side_of(l.normal)])) l.open = 0;
    l.way = un_sub(to, un_tets_center(in->mesh, t));
    double along = l.outwards * un_dot(l.way, l.normal);
    l.distance = fmax(along, OBLIQUE * un_length(l.way));
    return l;
}

/* Reference density over density at a face; that of the liquid tet alone if the other is not
 * liquid. */
static double lightness_of(const args *s, int32_t t, int32_t other)
{
    const float *lightness = s->in->lightness;
    if (!lightness) return 1;
    return other >= 0 ? 0.5 * ((double)lightness[t] + lightness[other]) : (double)lightness[t];
}

/* dt/rho times the surface's pressure at the centre of a tet. */
static double surface_mean(const args *s, int32_t t)
{
    const int32_t *n = s->in->mesh->tet[t];
    const double *p = s->in->surface;
    return 0.25 * (p[n[0]] + p[n[1]] + p[n[2]] + p[n[3]]) * s->in->dt / s->in->density;
}

/* The slope of the surface's pressure along the face's normal: the mean over its tets. */
static double surface_slope(const args *s, int32_t t, const link *l)
{
    int32_t tets[2] = {t, l->other};
    int count = l->other >= 0 ? 2 : 1;
    double sum = 0;
    for (int k = 0; k < count; k++) {
        double p[4];
        for (int i = 0; i < 4; i++) p[i] = s->in->surface[s->in->mesh->tet[tets[k]][i]];
        sum += un_dot(un_tets_gradient(s->in->mesh, tets[k], p), l->normal);
    }
    return sum / count;
}

/* Velocity that a face gains in dt along its normal, from liquid lighter or heavier than the
 * reference and from the surface's pressure. */
static double push_of(const args *s, int32_t t, const link *l, double lightness)
{
    double u = s->in->dt * (1 - lightness) * un_dot(s->in->gravity, l->normal);
    if (s->in->surface) u -= lightness * s->in->dt / s->in->density * surface_slope(s, t, l);
    return u;
}

/* Velocity, along the face's normal, of the solid that closes it. */
static double solid_speed(const args *s, int32_t t, const link *l)
{
    const un_tet_walls *w = s->in->walls;
    if (!w || !w->u_solid) return 0;
    if (l->other < 0) return w->mesh->parted ? un_dot(w->u_solid[t], l->normal) : 0;
    return 0.5 * un_dot(un_add(w->u_solid[t], w->u_solid[l->other]), l->normal);
}

/* dt/rho times what the weight takes off p' along a way. */
static double weight_along(const args *s, un_vec3 way)
{
    return -s->in->dt * un_dot(s->in->gravity, way);
}

/* Between a liquid tet and one in the air: p' at the surface less that of no pressure in the tet,
 * and the distance. An open side lies at the face. */
typedef struct ghost {
    double value, distance;
} ghost;

static ghost make_ghost(const args *s, int32_t t, const link *l)
{
    double share = 1;
    if (l->other >= 0) {
        double a = phi_of(s, t), b = phi_of(s, l->other);
        if (b > 0) share = a / (a - b);
    }
    return (ghost){share * weight_along(s, l->way), fmax(share, NEAREST) * l->distance};
}

/* ---- which tets ---- */

static void find_wet(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t t = begin; t < end; t++) {
        bool open = !s->in->walls || s->in->walls->open[t] > 0;
        double way = 0;
        bool wet = open && phi_of(s, (int32_t)t) < 0;
        for (int i = 0; wet && i < 4; i++) way += make_link(s, (int32_t)t, i).open;
        s->pr->index[t] = wet && way > 0 ? 0 : -1;
    }
}

static un_status number_tets(args *s)
{
    un_pressure *pr = s->pr;
    int64_t tets = s->in->mesh->tet_count;
    UN_TRY(un_pressure_need_places(pr, tets));
    un_parallel_for(pr->ctx, tets, 4096, find_wet, s);
    return un_pressure_number(pr, tets);
}

/* ---- matrix ---- */

static int gather_row(const args *s, int32_t t, int32_t col[5], double val[5], double *rhs)
{
    const un_face_projection *in = s->in;
    int count = 1;
    double open = in->walls ? in->walls->open[t] : 1, b = 0;
    if (in->source)
        for (int i = 0; i < 4; i++) b += 0.25 * in->source[in->mesh->tet[t][i]];
    b *= open * un_tets_volume(in->mesh, t);
    col[0] = s->pr->index[t];
    val[0] = 0;
    for (int i = 0; i < 4; i++) {
        link l = make_link(s, t, i);
        int32_t other = l.other >= 0 ? s->pr->index[l.other] : -1;
        double light = lightness_of(s, t, other >= 0 ? l.other : -1);
        double u = in->u[in->faces->of_tet[t][i]] + push_of(s, t, &l, light);
        b -= l.outwards * l.area * (l.open * u + (1 - l.open) * solid_speed(s, t, &l));
        if (!(l.open > 0)) continue;
        double k = light * l.open * l.area / l.distance;
        if (other < 0) {
            ghost surface = make_ghost(s, t, &l);
            k = light * l.open * l.area / surface.distance;
            b += k * surface.value;
        } else {
            b += k * weight_along(s, l.way);
            col[count] = other;
            val[count++] = -k;
        }
        val[0] += k;
    }
    *rhs = b;
    return count;
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t r = begin; r < end; r++) {
        int32_t t = s->pr->place[r], count = 1;
        for (int i = 0; i < 4; i++) {
            link l = make_link(s, t, i);
            count += l.open > 0 && l.other >= 0 && s->pr->index[l.other] >= 0;
        }
        s->pr->matrix.row[r + 1] = count;
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_pressure *pr = s->pr;
    for (int64_t r = begin; r < end; r++) {
        int32_t col[5], t = pr->place[r], at = pr->matrix.row[r];
        double val[5];
        int count = gather_row(s, t, col, val, &pr->rhs[r]);
        for (int k = 0; k < count; k++) {
            int rank = un_row_rank(col, count, k);
            pr->matrix.col[at + rank] = col[k];
            pr->matrix.val[at + rank] = val[k];
        }
        pr->x[r] = s->in->p[t] * s->in->dt / s->in->density;
        if (s->in->surface) pr->x[r] -= surface_mean(s, t);
    }
}

static un_status assemble(args *s)
{
    un_pressure *pr = s->pr;
    un_csr *m = &pr->matrix;
    UN_TRY(un_pressure_need_rows(pr, m->n));
    un_parallel_for(pr->ctx, m->n, 4096, count_entries, s);
    UN_TRY(un_rows_start(pr->ctx, m->row, m->n, "liquid tets"));
    UN_TRY(un_pressure_need_entries(pr, (size_t)m->row[m->n]));
    un_parallel_for(pr->ctx, m->n, 4096, fill_rows, s);
    return UN_OK;
}

/* ---- bodies ---- */

/* Adds what the body's part in tet `in` takes through a face, as solid_speed has it. */
static void add_push(double push[6], const args *s, int32_t in, un_vec3 normal, un_vec3 centre,
                     double flux)
{
    un_vec3 turn = un_cross(un_sub(un_tets_center(s->in->mesh, in), centre), normal);
    const double sum[6] = {normal.x, normal.y, normal.z, turn.x, turn.y, turn.z};
    for (int m = 0; m < 6; m++) push[m] += flux * sum[m];
}

/* What a body's motion adds to the outflow of a tet, as the right-hand side has it. */
static bool push_of_body(const void *arg, int32_t t, int32_t body, double push[6])
{
    const args *s = arg;
    const un_tet_walls *w = s->in->walls;
    const un_body *b = &s->in->bodies->body[body];
    if (un_body_box_distance(b, un_tets_center(s->in->mesh, t)) > 2 * un_tets_size(s->in->mesh, t))
        return false;
    un_vec3 centre = un_pose_apply(&b->to, b->centre);
    bool here = un_tet_walls_free_body(w, t) == body, any = false;
    for (int m = 0; m < 6; m++) push[m] = 0;
    for (int i = 0; i < 4; i++) {
        link l = make_link(s, t, i);
        if (!(l.open < 1) || (l.other < 0 && !w->mesh->parted)) continue;
        bool there = l.other >= 0 && un_tet_walls_free_body(w, l.other) == body;
        double flux = l.outwards * l.area * (1 - l.open) * (l.other < 0 ? 1 : 0.5);
        if (here) add_push(push, s, t, l.normal, centre, flux);
        if (there) add_push(push, s, l.other, l.normal, centre, flux);
        any |= here || there;
    }
    return any;
}

static int32_t body_rows(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const args *s = arg;
    return un_coupling_collect(s->pr, body, push_of_body, s, row, push);
}

/* Columns for the bodies, and what the surface's pressure, which the unknown is without, does to
 * them. */
static un_status couple(args *s)
{
    un_pressure *pr = s->pr;
    const un_face_projection *in = s->in;
    pr->coupling.columns.count = 0;
    if (!in->bodies) return UN_OK;
    UN_TRY(un_coupling_build(pr, in->bodies, in->density, in->density, body_rows, s));
    if (!un_coupling_any(pr) || !in->surface) return UN_OK;
    double *given;
    UN_ALLOC(pr->ctx, given, pr->matrix.n);
    for (int32_t r = 0; r < pr->matrix.n; r++) given[r] = surface_mean(s, pr->place[r]);
    un_coupling_push_given(pr, in->bodies, given);
    un_free(pr->ctx, given);
    return UN_OK;
}

/* ---- walls that let go ---- */

/* Tets with closed faces may let go of the walls there. */
static bool limit_tet(const void *arg, int32_t row, double *least, double *slack)
{
    const args *s = arg;
    int32_t t = s->pr->place[row];
    *least = s->in->surface ? -surface_mean(s, t) : 0;
    if (s->in->before) *least -= s->in->before[t] * s->in->dt / s->in->density;
    double open = 1, speed = 0;
    for (int i = 0; i < 4; i++) {
        open = fmin(open, make_link(s, t, i).open);
        speed = fmax(speed, fabs(s->in->u[s->in->faces->of_tet[t][i]]));
    }
    *slack = un_release_slack(s->in->let_go, speed, un_tets_size(s->in->mesh, t));
    return open < WALL_OPEN;
}

static bool has_let_go(const args *s, int32_t t)
{
    return t >= 0 && s->pr->index[t] >= 0 && un_pressure_is_free(s->pr, s->pr->index[t]);
}

/* ---- velocities ---- */

static void update_faces(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_face_projection *in = s->in;
    const int32_t *index = s->pr->index;
    const double *q = s->pr->x;
    for (int64_t f = begin; f < end; f++) {
        int32_t corner = in->faces->corner[f], a = corner / 4, b = in->faces->other[f];
        bool wet = index[a] >= 0, behind = b >= 0 && index[b] >= 0;
        in->known[f] = wet || behind;
        if (!wet && !behind) continue;
        link l = make_link(s, a, corner & 3);
        double light = lightness_of(s, wet ? a : b, wet && behind ? b : -1);
        in->u[f] += push_of(s, a, &l, light);
        if (!(l.open > 0)) {
            in->u[f] = solid_speed(s, a, &l);
            if (has_let_go(s, a) || has_let_go(s, b)) in->known[f] = 0;
        } else if (wet && behind) {
            double slope = q[index[b]] - q[index[a]] + weight_along(s, l.way);
            in->u[f] -= light * slope / l.distance;
        } else {
            int32_t liquid = wet ? a : b;
            if (!wet) l.other = a, l.way = un_scale(l.way, -1);
            ghost surface = make_ghost(s, liquid, &l);
            double slope = light * (surface.value - q[index[liquid]]) / surface.distance;
            in->u[f] -= wet ? slope : -slope;
        }
    }
}

static void store_pressure(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    double to_pascal = s->in->density / s->in->dt;
    for (int64_t t = begin; t < end; t++) {
        int32_t r = s->pr->index[t];
        double surface = s->in->surface ? surface_mean(s, (int32_t)t) : 0;
        s->in->p[t] = r >= 0 ? (s->pr->x[r] + surface) * to_pascal : 0;
        if (has_let_go(s, (int32_t)t)) s->in->p[t] = -0.0;
    }
}

static double divergence_rows(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    const un_face_projection *in = s->in;
    double most = 0;
    for (int64_t r = begin; r < end; r++) {
        int32_t t = s->pr->place[r];
        double sum = 0, wanted = 0;
        if (has_let_go(s, t)) continue;
        for (int i = 0; i < 4; i++) {
            link l = make_link(s, t, i);
            double u = in->u[in->faces->of_tet[t][i]];
            sum += l.outwards * l.area * (l.open * u + (1 - l.open) * solid_speed(s, t, &l));
            if (in->source) wanted += 0.25 * in->source[in->mesh->tet[t][i]];
        }
        double volume = un_tets_volume(in->mesh, t) * (in->walls ? in->walls->open[t] : 1);
        most = fmax(most, fabs(sum / volume - wanted));
    }
    return most;
}

un_status un_face_pressure_project(un_pressure *pressure, const un_face_projection *in,
                                   un_face_projection_report *report)
{
    args s = {.pr = pressure, .in = in};
    *report = (un_face_projection_report){0};
    UN_TRY(number_tets(&s));
    if (in->bodies) un_tet_walls_find_velocities(in->walls);
    UN_TRY(assemble(&s));
    UN_TRY(couple(&s));
    report->tet_count = pressure->matrix.n;
    un_release release = {&s, limit_tet, INFINITY, in->before ? in->before : in->p, in->let_go > 0};
    UN_TRY(un_pressure_solve(pressure, NULL, in->tolerance, in->iteration_limit, &release,
                             &report->solve));
    if (in->bodies && report->solve.finite) {
        un_coupling_push(pressure, in->bodies);
        un_tet_walls_find_velocities(in->walls);
    }
    un_parallel_for(pressure->ctx, in->faces->count, 4096, update_faces, &s);
    un_parallel_for(pressure->ctx, in->mesh->tet_count, 8192, store_pressure, &s);
    if (pressure->matrix.n > 0)
        report->max_divergence =
            un_parallel_max(pressure->ctx, pressure->matrix.n, divergence_rows, &s);
    return UN_OK;
}
