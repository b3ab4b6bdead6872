/* The force of the liquid's pressure on a solid.
 *
 *     F = - integral of p n over the solid's surface, n out of the solid
 *
 * in cubes of half the finest cell's edge: with whole ones a ball of four cells' radius would lose
 * 1.7 % of its lift to corners cut off, with halves 0.4 %. The faces of a cube that the surface
 * cuts are open by a part f; what is left of a closed surface is the solid's: n A = sum of f_i n_i
 * over the cube's faces. Both cubes of a face see the same part, so that areas sum to nothing
 * around a solid, and a pressure that is the same everywhere moves nothing.
 *
 * Over ranks each looks at an even part of the rows of cubes around the solid, and asks for the
 * pressures there; the sum has the bits of one rank. */
#include "pressure/pressure.h"

/* Cubes along a cell's edge. */
#define CUBES 2
/* Where pressures are taken, in cells from the surface; the wall's is extrapolated from both. */
#define NEAR 0.5
#define FAR 1.0

typedef struct force_args {
    const un_force *in;
    int32_t lo[3], n[3]; /* cubes to visit */
} force_args;

/* The open part of a face with these distances at its corners, in order around it. */
static double open_part(const double v[4], int dim)
{
    if (dim == 2) { /* an edge: v[0] and v[1] */
        double low = fmin(v[0], v[1]), high = fmax(v[0], v[1]);
        return low >= 0 ? high > 0 : high <= 0 ? 0 : high / (high - low);
    }
    double mid = 0.25 * (v[0] + v[1] + v[2] + v[3]), sum = 0;
    for (int i = 0; i < 4; i++) sum += un_triangle_fraction((double[3]){v[i], v[(i + 1) & 3], mid});
    return 0.25 * sum;
}

/* The solid's surface in the cube: its area along each axis, out of the solid. */
static un_vec3 surface_in(const double d[8], double h, int dim)
{
    double open[3][2];
    for (int a = 0; a < dim; a++)
        for (int side = 0; side < 2; side++) {
            int b = 1 << (a + 1) % dim, c = dim == 3 ? 1 << (a + 2) % 3 : 0;
            int base = side << a;
            const double v[4] = {d[base], d[base + b], d[base + b + c], d[base + c]};
            open[a][side] = open_part(v, dim);
        }
    double area = dim == 2 ? h : h * h;
    return un_v3(area * (open[0][1] - open[0][0]), area * (open[1][1] - open[1][0]),
                 dim == 3 ? area * (open[2][1] - open[2][0]) : 0);
}

/* A piece of the solid's surface. */
typedef struct piece {
    double along;     /* its area along the axis of the force */
    un_vec3 x, at[2]; /* where it is, and the places near and far from it */
} piece;

/* In cube i of a row; false: there is none that counts. */
static bool find_piece(const force_args *a, int64_t row, int32_t i, piece *out)
{
    const un_force *in = a->in;
    int dim = in->grid->dim;
    double h = in->grid->h / CUBES;
    int32_t j = a->lo[1] + (int32_t)(row % a->n[1]), k = a->lo[2] + (int32_t)(row / a->n[1]);
    un_vec3 low = un_v3((a->lo[0] + i) * h, j * h, dim == 3 ? k * h : 0);
    un_vec3 mid = un_add(low, un_v3(0.5 * h, 0.5 * h, dim == 3 ? 0.5 * h : 0));
    double d[8], here = un_body_distance(in->body, mid);
    if (fabs(here) > 0.87 * h) return false;
    for (int c = 0; c < 1 << dim; c++)
        d[c] = un_body_distance(in->body,
                                un_add(low, un_v3(c & 1 ? h : 0, c & 2 ? h : 0, c & 4 ? h : 0)));
    un_vec3 area = surface_in(d, h, dim), n = un_body_normal(in->body, mid);
    out->along = in->axis == 0 ? area.x : in->axis == 1 ? area.y : area.z;
    out->x = un_mad(mid, n, -here);
    out->at[0] = un_mad(out->x, n, NEAR * in->grid->h);
    out->at[1] = un_mad(out->x, n, FAR * in->grid->h);
    return out->along != 0;
}

/* The wall's pressure from that near it and, unless it is dry there, far from it. */
static double extrapolate(const un_force *in, const piece *s, double near, double far, bool wet)
{
    if (wet) return near + (near - far) * NEAR / (FAR - NEAR);
    return near + in->density * un_dot(in->gravity, un_sub(s->x, s->at[0]));
}

static double pressure_on(const un_force *in, const piece *s)
{
    bool near = false, far = false;
    double p = in->pressure(in->state, s->at[0], &near);
    if (!near) return 0;
    double beyond = in->pressure(in->state, s->at[1], &far);
    return extrapolate(in, s, p, beyond, far);
}

static double force_rows(void *arg, int64_t begin, int64_t end)
{
    const force_args *a = arg;
    double sum = 0;
    piece s;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < a->n[0]; i++)
            if (find_piece(a, row, i, &s)) sum -= s.along * pressure_on(a->in, &s);
    return sum;
}

/* The cubes around the solid; false: there are none. */
static bool find_cubes(force_args *a, const un_force *in)
{
    const un_grid *g = in->grid;
    const un_box3 *box = &in->body->bounds;
    *a = (force_args){.in = in, .n = {1, 1, 1}};
    const double low[3] = {box->min.x, box->min.y, box->min.z};
    const double high[3] = {box->max.x, box->max.y, box->max.z};
    for (int axis = 0; axis < g->dim; axis++) {
        double most = CUBES * (g->n[axis] - 2), h = g->h / CUBES; /* cubes of the domain */
        a->lo[axis] = (int32_t)un_clamp(floor(low[axis] / h) - 1, 0, most);
        a->n[axis] = (int32_t)un_clamp(ceil(high[axis] / h) + 1, 0, most) - a->lo[axis];
        if (a->n[axis] <= 0) return false;
    }
    return true;
}

double un_pressure_force(un_context *ctx, const un_force *in)
{
    force_args a;
    return find_cubes(&a, in) ? un_parallel_sum(ctx, (int64_t)a.n[1] * a.n[2], force_rows, &a) : 0;
}

/* ---- over ranks ---- */

typedef struct shared_force {
    const un_force *in;
    piece *pieces;
    size_t room;
    int64_t *first; /* by row of this rank's: its first piece; one more at the end */
    un_range rows;
    un_vec3 *at;            /* places to ask for */
    un_pressure_seen *seen; /* by piece: near and far */
    un_pressure_seen *answers;
} shared_force;

static un_status list_pieces(un_context *ctx, shared_force *f, const force_args *a)
{
    int64_t count = 0;
    UN_ALLOC(ctx, f->first, f->rows.end - f->rows.begin + 1);
    for (int64_t row = f->rows.begin; row < f->rows.end; row++) {
        f->first[row - f->rows.begin] = count;
        for (int32_t i = 0; i < a->n[0]; i++) {
            UN_TRY(un_array_reserve(ctx, (void **)&f->pieces, &f->room, (size_t)count + 1,
                                    sizeof *f->pieces));
            count += find_piece(a, row, i, &f->pieces[count]);
        }
    }
    f->first[f->rows.end - f->rows.begin] = count;
    UN_ALLOC(ctx, f->at, 2 * count + 1);
    UN_ALLOC(ctx, f->seen, 2 * count + 1);
    UN_ALLOC(ctx, f->answers, 2 * count + 1);
    return UN_OK;
}

static un_status ask(shared_force *f, const un_force_ranks *with)
{
    const void *state = f->in->state;
    int64_t count = 2 * f->first[f->rows.end - f->rows.begin], asked = 0;
    for (int64_t k = 0; k < count; k++) {
        un_vec3 x = f->pieces[k / 2].at[k % 2];
        f->seen[k] = (un_pressure_seen){0};
        f->seen[k].wet = with->is_open(state, x);
        if (f->seen[k].wet) f->at[asked++] = x;
    }
    UN_TRY(with->ask(state, f->at, asked, f->answers));
    for (int64_t k = count; k-- > 0;)
        if (f->seen[k].wet) f->seen[k] = f->answers[--asked];
    return UN_OK;
}

static void sum_rows(void *arg, int64_t begin, int64_t end, double *sum)
{
    const shared_force *f = arg;
    for (int64_t k = f->first[begin - f->rows.begin]; k < f->first[end - f->rows.begin]; k++) {
        const un_pressure_seen *near = &f->seen[2 * k], *far = near + 1;
        double p = near->wet ? extrapolate(f->in, &f->pieces[k], near->p, far->p, far->wet) : 0;
        *sum -= f->pieces[k].along * p;
    }
}

un_status un_pressure_force_ranks(un_context *ctx, const un_force *in, const un_force_ranks *with,
                                  double *value)
{
    force_args a;
    *value = 0;
    if (!find_cubes(&a, in)) return UN_OK; /* on no rank */
    int64_t rows = (int64_t)a.n[1] * a.n[2];
    un_part own = un_ranks_even(ctx, rows);
    shared_force f = {.in = in, .rows = {own.begin, own.end, rows}};
    un_status status = un_ranks_agree(ctx, list_pieces(ctx, &f, &a));
    if (status == UN_OK) status = ask(&f, with);
    if (status == UN_OK) un_ranks_sums(ctx, f.rows, 1, sum_rows, &f, value);
    void *blocks[] = {f.pieces, f.first, f.at, f.seen, f.answers};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
    return status;
}
