/* Projection on tets that conform to the liquid's surface and to walls [Chentanez07 sections 3.1
 * and 3.3, eq. 5 to 8].
 *
 * Pressures p stand at the barycentres of tets, normal velocities u at faces. For every tet, summed
 * over its faces, velocities outwards,
 *
 *     sum_f A_f u_f = wanted divergence * volume,
 *     u_f <- u_f - dt/rho [(p_b - p_a) / d_f + G.(n - w / d_f)],
 *
 * w leads from one barycentre to the other, at the air to the surface; d_f is its part along the
 * normal n. Bodies that the liquid moves are columns of the system (stuffed_bodies.c).
 *
 * Where this departs from the paper:
 *  - The weight is taken out of the pressure, p = q + rho g.x, and gravity then acts at the surface
 *    alone. There q = -rho g.x is taken at the foot of the face's centre on the liquid's surface,
 *    not at the centre. Under a flat surface q is constant, and liquid at rest stays at rest on any
 *    mesh. The paper's p = 0 at the faces' centres moves it at 0.4 to 2 g dt.
 *  - The paper has no second term in brackets, and its gradients are 5 % wrong at any resolution: w
 *    is oblique to n. G is the gradient by least squares in the tets beside the face, from the last
 *    solve; each further one brings in RELAXED of the change. At walls u is known, and so the
 *    gradient along n is: that is a row of the fit, and without it the corrections diverge. */
#include "pressure/coupling.h"
#include "pressure/stuffed_bodies.h"
#include "pressure/system.h"

#define RELAXED 0.9
/* Most oblique line between barycentres that is used unchanged: cosine with the normal. */
#define OBLIQUE 0.3
/* Neighbours in directions whose normal matrix has a lower determinant, 2.4 at best, tell no
 * gradient: in drops of a few tets it would be noise. */
#define FLAT 0.05
/* The most that a gradient may be, over the steepest slope towards a neighbour. A steeper one comes
 * from neighbours that all lie in nearly one plane, and corrections by it grow from solve to solve:
 * a film on a side that cuts cells was thrown at 200 to 20,000 times its speed after 20 of them, 7
 * times with 2, 5 with 1.5. With 1 gradients in a sphere are 4 % off instead of 1.6. */
#define STEEPEST 1.5
/* The least distance to the foot, in those to the face. */
#define NEAREST 0.5

/* The way from the first tet's barycentre to what is beyond a face. Kernels over tets come by four
 * times a solve: all roots are in here. */
typedef struct un_stuffed_path {
    un_vec3 along;  /* of length 1; at walls the normal */
    double inverse; /* of its length, 1/m; 0 at walls */
    double area;    /* m2 */
} un_stuffed_path;

typedef struct args {
    un_pressure *pr;
    const un_stuffed_projection *in;
    un_vec3 reference;     /* a point of the surface: the weight's origin */
    double scale;          /* dt / rho */
    double *air;           /* by face: q dt / rho at the air, NAN elsewhere */
    int32_t *rim;          /* by face at the air: its place in mesh->boundary */
    double *oblique;       /* by face: the second term */
    double *flux;          /* by face: what it adds to the right side of its first tet */
    un_vec3 *gradient;     /* by tet */
    un_stuffed_path *path; /* by face */
    double relaxed;
    un_stuffed_bodies bodies;
} args;

/* Where the pressure beyond a face stands. At the air that is the foot, unless it lies hardly
 * beyond the tet's own centre, as where sheets meet: then the face's. */
static un_vec3 beyond(const args *s, int32_t f, int32_t other)
{
    const un_stuffing *m = s->in->mesh;
    if (other >= 0) return un_stuffing_center(m, other);
    if (isnan(s->air[f])) return m->center[f];
    un_vec3 from = un_stuffing_center(m, m->face_tet[f][0]), foot = s->in->rim->foot[s->rim[f]];
    double there = un_dot(un_sub(foot, from), m->area[f]);
    return there > NEAREST * un_dot(un_sub(m->center[f], from), m->area[f]) ? foot : m->center[f];
}

static void find_paths(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->in->mesh;
    for (int64_t f = begin; f < end; f++) {
        un_stuffed_path *p = &s->path[f];
        int32_t other = m->face_tet[f][1];
        p->area = un_length(m->area[f]);
        p->along = un_scale(m->area[f], 1 / p->area);
        p->inverse = 0;
        if (other < 0 && isnan(s->air[f])) continue;
        un_vec3 way =
            un_sub(beyond(s, (int32_t)f, other), un_stuffing_center(m, m->face_tet[f][0]));
        p->inverse = 1 / un_length(way);
        p->along = un_scale(way, p->inverse);
    }
}

/* One over the distance d that the first term in brackets divides by; 0 at walls. The normal comes
 * with it, and 1 over the cosine between the two. */
static double per_distance(const args *s, int64_t f, un_vec3 *normal, double *secant)
{
    const un_stuffed_path *p = &s->path[f];
    *normal = un_scale(s->in->mesh->area[f], 1 / p->area);
    *secant = 1 / fmax(un_dot(p->along, *normal), OBLIQUE);
    return p->inverse * *secant;
}

/* ---- what is beyond the boundary ---- */

static double weight_at(const args *s, un_vec3 x)
{
    return s->in->dt * un_dot(s->in->gravity, un_sub(x, s->reference));
}

static bool is_open(const un_stuffed_projection *in, int64_t b)
{
    int behind = in->mesh->face_behind[in->mesh->boundary[b]];
    if (in->gone && in->gone[b]) return true;
    if (behind == UN_BEHIND_AIR) return !isnan(in->rim->foot[b].x);
    return behind >= UN_BEHIND_SIDE && in->open_sides && in->open_sides[behind - UN_BEHIND_SIDE];
}

static void see_boundary(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffed_projection *in = s->in;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = in->mesh->boundary[b];
        if (!is_open(in, b)) continue;
        s->rim[f] = (int32_t)b;
        s->air[f] = -weight_at(s, in->rim->foot[b]);
        if (in->surface && in->mesh->face_behind[f] == UN_BEHIND_AIR)
            s->air[f] += s->scale * in->surface[b];
    }
}

static void see_faces(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t f = begin; f < end; f++) {
        s->air[f] = NAN;
        s->oblique[f] = 0;
    }
}

/* Walls have their own velocity from the start. */
static void set_walls(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffed_projection *in = s->in;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = in->mesh->boundary[b];
        if (isnan(s->air[f]))
            s->oblique[f] = in->u[f] - un_stuffed_wall_speed(in->rim, in->mesh, b);
    }
}

/* ---- matrix ---- */

static double source_of(const args *s, int64_t t)
{
    return (s->in->source ? s->in->source[t] : 0) * s->in->mesh->volume[t];
}

/* Everything but the first term in brackets; at walls `oblique` leaves the wall's velocity. */
static void find_flux(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t f = begin; f < end; f++) {
        double sum = s->in->u[f] - s->oblique[f], secant;
        un_vec3 normal;
        if (s->in->mesh->face_tet[f][1] < 0 && !isnan(s->air[f]))
            sum -= per_distance(s, f, &normal, &secant) * s->air[f];
        s->flux[f] = -s->path[f].area * sum;
    }
}

static void count_entries(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t t = begin; t < end; t++) {
        int32_t count = 1;
        for (int i = 0; i < 4; i++) count += un_stuffing_beside(s->in->mesh, (int32_t)t, i) >= 0;
        s->pr->matrix.row[t + 1] = count;
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    un_csr *m = &s->pr->matrix;
    for (int64_t t = begin; t < end; t++) {
        int32_t col[5] = {(int32_t)t}, count = 1;
        double val[5] = {0};
        for (int i = 0; i < 4; i++) {
            un_vec3 normal;
            double secant;
            int32_t f = s->in->mesh->tet_face[t][i];
            int32_t other = un_stuffing_beside(s->in->mesh, (int32_t)t, i);
            double k = s->path[f].area * per_distance(s, f, &normal, &secant);
            val[0] += k;
            if (other < 0) continue;
            col[count] = other;
            val[count++] = -k;
        }
        for (int k = 0; k < count; k++) {
            int32_t at = m->row[t] + un_row_rank(col, count, k);
            m->col[at] = col[k];
            m->val[at] = val[k];
        }
        un_vec3 x = un_stuffing_center(s->in->mesh, (int32_t)t);
        s->pr->x[t] = s->in->warm ? s->in->p[t] * s->scale - weight_at(s, x) : 0;
    }
}

static void fill_right(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->in->mesh;
    for (int64_t t = begin; t < end; t++) {
        double b = source_of(s, t);
        for (int i = 0; i < 4; i++)
            b += un_stuffing_sign(m, (int32_t)t, i) * s->flux[m->tet_face[t][i]];
        s->pr->rhs[t] = b;
    }
}

static void number_tets(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t t = begin; t < end; t++) s->pr->index[t] = 0;
}

static un_status assemble(args *s)
{
    un_pressure *pr = s->pr;
    int32_t n = s->in->mesh->tet_count;
    UN_TRY(un_pressure_need_places(pr, n));
    un_parallel_for(pr->ctx, n, 16384, number_tets, s);
    UN_TRY(un_pressure_number(pr, n));
    UN_TRY(un_pressure_need_rows(pr, n));
    un_parallel_for(pr->ctx, n, 4096, count_entries, s);
    UN_TRY(un_rows_start(pr->ctx, pr->matrix.row, n, "tets"));
    UN_TRY(un_pressure_need_entries(pr, (size_t)pr->matrix.row[n]));
    un_parallel_for(pr->ctx, n, 4096, fill_rows, s);
    return UN_OK;
}

/* ---- oblique gradients ---- */

static void fit_gradients(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffing *m = s->in->mesh;
    const double *x = s->pr->x;
    for (int64_t t = begin; t < end; t++) {
        double a[6] = {0}, steepest = 0;
        un_vec3 b = {0};
        for (int i = 0; i < 4; i++) {
            int32_t f = m->tet_face[t][i];
            const int32_t *pair = m->face_tet[f];
            un_vec3 d = s->path[f].along;
            double there = pair[1] >= 0 ? x[pair[1]] : s->air[f];
            double slope = isnan(there) ? s->oblique[f] : (there - x[pair[0]]) * s->path[f].inverse;
            a[0] += d.x * d.x, a[1] += d.y * d.y, a[2] += d.z * d.z;
            a[3] += d.x * d.y, a[4] += d.x * d.z, a[5] += d.y * d.z;
            b = un_mad(b, d, slope);
            steepest = fmax(steepest, fabs(slope));
        }
        double xx = a[1] * a[2] - a[5] * a[5], xy = a[4] * a[5] - a[3] * a[2];
        double xz = a[3] * a[5] - a[4] * a[1], yy = a[0] * a[2] - a[4] * a[4];
        double yz = a[3] * a[4] - a[0] * a[5], zz = a[0] * a[1] - a[3] * a[3];
        double det = a[0] * xx + a[3] * xy + a[4] * xz;
        un_vec3 g = {xx * b.x + xy * b.y + xz * b.z, xy * b.x + yy * b.y + yz * b.z,
                     xz * b.x + yz * b.y + zz * b.z};
        s->gradient[t] = det > FLAT ? un_scale(g, 1 / det) : un_v3(0, 0, 0);
        double length = un_length(s->gradient[t]), most = STEEPEST * steepest;
        if (length > most) s->gradient[t] = un_scale(s->gradient[t], most / length);
    }
}

static void correct_faces(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t f = begin; f < end; f++) {
        const int32_t *t = s->in->mesh->face_tet[f];
        if (t[1] < 0 && isnan(s->air[f])) continue;
        un_vec3 normal, g = s->gradient[t[0]];
        double secant;
        per_distance(s, f, &normal, &secant);
        if (t[1] >= 0) g = un_scale(un_add(g, s->gradient[t[1]]), 0.5);
        double wanted = un_dot(g, un_mad(normal, s->path[f].along, -secant));
        s->oblique[f] += s->relaxed * (wanted - s->oblique[f]);
    }
}

/* ---- velocities ---- */

static void update_faces(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    const un_stuffed_projection *in = s->in;
    for (int64_t f = begin; f < end; f++) {
        const int32_t *t = in->mesh->face_tet[f];
        if (t[1] >= 0 || !isnan(s->air[f])) {
            un_vec3 normal;
            double secant, there = t[1] >= 0 ? s->pr->x[t[1]] : s->air[f];
            in->u[f] -= (there - s->pr->x[t[0]]) * per_distance(s, f, &normal, &secant);
        }
        in->u[f] -= s->oblique[f];
    }
}

static void store_pressure(void *arg, int64_t begin, int64_t end)
{
    args *s = arg;
    for (int64_t t = begin; t < end; t++) {
        un_vec3 x = un_stuffing_center(s->in->mesh, (int32_t)t);
        s->in->p[t] = (s->pr->x[t] + weight_at(s, x)) / s->scale;
        if (s->in->slope)
            s->in->slope[t] =
                un_scale(un_mad(s->gradient[t], s->in->gravity, s->in->dt), 1 / s->scale);
    }
}

static double divergence_tets(void *arg, int64_t begin, int64_t end)
{
    const args *s = arg;
    double most = 0;
    for (int64_t t = begin; t < end; t++) {
        double sum = -source_of(s, t);
        for (int i = 0; i < 4; i++) {
            int32_t f = s->in->mesh->tet_face[t][i];
            sum += un_stuffing_sign(s->in->mesh, (int32_t)t, i) * s->in->u[f] * s->path[f].area;
        }
        most = fmax(most, fabs(sum) / s->in->mesh->volume[t]);
    }
    return most;
}

/* Any point of the surface: where that is flat, nothing else is left of the weight. */
static un_vec3 find_reference(const un_stuffed_projection *in)
{
    for (int32_t b = 0; b < in->mesh->boundary_count; b++)
        if (in->mesh->face_behind[in->mesh->boundary[b]] == UN_BEHIND_AIR && is_open(in, b))
            return in->rim->foot[b];
    return in->mesh->x[0];
}

static un_status couple(args *s, un_arena *arena)
{
    s->pr->coupling.columns.count = 0;
    if (!s->in->rim->body) return UN_OK;
    memset(s->gradient, 0, (size_t)s->in->mesh->tet_count * sizeof *s->gradient);
    s->bodies = (un_stuffed_bodies){.pr = s->pr,
                                    .in = s->in,
                                    .reference = s->reference,
                                    .air = s->air,
                                    .gradient = s->gradient};
    return un_stuffed_bodies_couple(&s->bodies, arena);
}

/* Bodies as they are without the pressure q, or with it; walls follow. */
static void move_bodies(args *s, bool pushed)
{
    un_stuffed_bodies *b = &s->bodies;
    if (!un_coupling_any(s->pr)) return;
    if (pushed)
        un_coupling_push(s->pr, s->in->rim->bodies);
    else
        un_stuffed_bodies_lean(b);
    un_parallel_for(s->pr->ctx, s->in->mesh->boundary_count, 4096, set_walls, s);
}

static un_status solve(args *s, un_solve_report *report)
{
    un_context *ctx = s->pr->ctx;
    const un_stuffed_projection *in = s->in;
    int32_t tets = in->mesh->tet_count, iterations = 0;
    un_release release = {.on = false}; /* walls let go by un_stuffed_let_go */
    for (int32_t k = 0; k <= in->corrections; k++) {
        if (k > 0 || in->warm) {
            s->relaxed = k > 0 ? RELAXED : 1;
            un_parallel_for(ctx, tets, 2048, fit_gradients, s);
            un_parallel_for(ctx, in->mesh->face_count, 4096, correct_faces, s);
        }
        move_bodies(s, false);
        un_parallel_for(ctx, in->mesh->face_count, 4096, find_flux, s);
        un_parallel_for(ctx, tets, 4096, fill_right, s);
        s->pr->again = k > 0;
        UN_TRY(
            un_pressure_solve(s->pr, NULL, in->tolerance, in->iteration_limit, &release, report));
        iterations += report->iterations;
        if (!report->finite) break;
        move_bodies(s, true);
    }
    s->pr->again = false;
    report->iterations = iterations;
    return UN_OK;
}

static un_status find_room(args *s, un_arena *arena)
{
    size_t faces = (size_t)s->in->mesh->face_count, tets = (size_t)s->in->mesh->tet_count;
    un_stuffed_room own = {0}, *room = s->in->room ? s->in->room : &own;
    if (!room->path) {
        room->air = un_arena_alloc(arena, faces, sizeof *room->air);
        room->rim = un_arena_alloc(arena, faces, sizeof *room->rim);
        room->oblique = un_arena_alloc(arena, faces, sizeof *room->oblique);
        room->flux = un_arena_alloc(arena, faces, sizeof *room->flux);
        room->gradient = un_arena_alloc(arena, tets, sizeof *room->gradient);
        room->path = un_arena_alloc(arena, faces, sizeof *room->path);
        if (!room->air || !room->rim || !room->oblique || !room->flux || !room->gradient ||
            !room->path)
            return UN_ERROR_MEMORY;
    }
    s->air = room->air;
    s->rim = room->rim;
    s->oblique = room->oblique;
    s->flux = room->flux;
    s->gradient = room->gradient;
    s->path = room->path;
    return UN_OK;
}

un_status un_stuffed_pressure_project(un_pressure *pressure, un_arena *arena,
                                      const un_stuffed_projection *in,
                                      un_stuffed_projection_report *report)
{
    un_context *ctx = pressure->ctx;
    int32_t faces = in->mesh->face_count, tets = in->mesh->tet_count;
    args s = {.pr = pressure, .in = in, .scale = in->dt / in->density};
    *report = (un_stuffed_projection_report){.solve = {.converged = true, .finite = true}};
    if (tets == 0) return UN_OK;
    s.reference = find_reference(in);
    UN_TRY(find_room(&s, arena));
    un_parallel_for(ctx, faces, 16384, see_faces, &s);
    un_parallel_for(ctx, in->mesh->boundary_count, 4096, see_boundary, &s);
    un_parallel_for(ctx, in->mesh->boundary_count, 4096, set_walls, &s);
    un_parallel_for(ctx, faces, 4096, find_paths, &s);
    UN_TRY(assemble(&s));
    UN_TRY(couple(&s, arena));
    UN_TRY(solve(&s, &report->solve));
    un_parallel_for(ctx, tets, 2048, fit_gradients, &s);
    un_parallel_for(ctx, faces, 4096, update_faces, &s);
    un_parallel_for(ctx, tets, 8192, store_pressure, &s);
    report->max_divergence = un_parallel_max(ctx, tets, divergence_tets, &s);
    return UN_OK;
}
