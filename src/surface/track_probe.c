/* The probes `front`, `wet` and `height` of a carried surface, and its places for checkpoints. */
#include "surface/surface.h"

typedef struct front_args {
    const un_track *t;
    const float *solid;
    int axis;
    double sign;
    int64_t stride[3];
    int64_t below;      /* from a node to the next one down */
    int down, down_end; /* the axis, and the box's last node along it */
} front_args;

static front_args make_args(const un_track *t, const float *solid, int axis, double sign)
{
    const int32_t *n = t->lattice.n;
    return (front_args){t, solid, axis, sign, {1, n[0], (int64_t)n[0] * n[1]}, 0, 1, 0};
}

static double within_box(const front_args *f, double front)
{
    double size = f->t->cells[f->axis] * f->t->lattice.h[f->axis];
    return isfinite(front) ? un_clamp(f->sign * front, 0, size) : NAN;
}

/* ---- front ---- */

/* As with other methods (mesh/probe.c), liquid counts where a cube of two of the mesh's cells, so
 * four of the track's, is inside it: where its eight cells' centres are half a cell deep. Walls do
 * not count as liquid here, though the surface goes on in them. */
#define CUBE 2 /* half of the cube, in cells of the track */

static double cube_phi(const front_args *f, int64_t node)
{
    double most = -INFINITY;
    for (int n = 0; n < 8; n++) {
        int64_t m = node;
        for (int a = 0; a < 3; a++) m += (n >> a & 1 ? 1 : -1) * f->stride[a];
        if (f->solid && f->solid[m] < 0) return INFINITY;
        most = fmax(most, f->t->lattice.phi[m]);
    }
    return most + f->t->h;
}

/* Places for a cube's middle along an axis, from the box's lower side. */
static int32_t margin_of(const front_args *f, int axis)
{
    return un_clampi(f->t->cells[axis] / 2, 0, CUBE);
}

static double front_rows(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_track *t = f->t;
    int a = f->axis, b = (a + 1) % 3, c = (a + 2) % 3, step = f->sign > 0 ? -1 : 1;
    int32_t edge = margin_of(f, a), first = step < 0 ? t->cells[a] - edge : edge;
    int32_t last = t->cells[a] - first;
    double front = -INFINITY;
    for (int64_t row = begin; row < end; row++) {
        int64_t j = row % (t->cells[b] + 1), k = row / (t->cells[b] + 1);
        int32_t mb = margin_of(f, b), mc = margin_of(f, c);
        if (j < mb || j > t->cells[b] - mb || k < mc || k > t->cells[c] - mc) continue;
        int64_t start = (j + UN_TRACK_MARGIN) * f->stride[b] + (k + UN_TRACK_MARGIN) * f->stride[c];
        double beyond = t->h; /* as if the surface were on the side itself */
        for (int32_t n = first; step < 0 ? n >= last : n <= last; n += step) {
            if (f->sign * t->lattice.h[a] * (n - (CUBE + 1) * step) < front) break;
            double phi = cube_phi(f, start + (n + UN_TRACK_MARGIN) * f->stride[a]);
            if (phi < 0) {
                double share = isfinite(beyond) ? phi / (phi - beyond) : 0;
                front = fmax(front, f->sign * t->lattice.h[a] * (n - step * (share + edge)));
                break;
            }
            beyond = phi;
        }
    }
    return front;
}

double un_track_front(const un_track *t, const float *solid, int axis, double sign)
{
    front_args f = make_args(t, solid, axis, sign);
    int64_t rows = (int64_t)(t->cells[(axis + 1) % 3] + 1) * (t->cells[(axis + 2) % 3] + 1);
    return within_box(&f, un_parallel_max(t->ctx, rows, front_rows, &f));
}

/* ---- wet ---- */

/* Is the next node down in a wall? */
static bool lies(const front_args *f, int64_t n, const int32_t at[3])
{
    return at[f->down] == f->down_end || (f->solid && f->solid[n + f->below] < 0);
}

/* A node that is d below the surface reaches d further. */
static double wet_rows(void *arg, int64_t begin, int64_t end)
{
    front_args *f = arg;
    const un_track *t = f->t;
    const un_lattice *l = &t->lattice;
    double most = -INFINITY;
    for (int64_t r = begin; r < end; r++) {
        int32_t j = UN_TRACK_MARGIN + (int32_t)(r % (t->cells[1] + 1));
        int32_t k = UN_TRACK_MARGIN + (int32_t)(r / (t->cells[1] + 1));
        for (int32_t i = UN_TRACK_MARGIN; i <= UN_TRACK_MARGIN + t->cells[0]; i++) {
            int64_t n = i + l->n[0] * (j + (int64_t)l->n[1] * k);
            if (!(l->phi[n] < 0) || (f->solid && f->solid[n] < 0)) continue;
            if (!lies(f, n, (int32_t[]){i, j, k})) continue;
            un_vec3 x = un_track_node(t, i, j, k);
            double at = f->axis == 0 ? x.x : f->axis == 1 ? x.y : x.z;
            most = fmax(most, f->sign * at - l->phi[n]);
        }
    }
    return most;
}

double un_track_wet(const un_track *t, const float *solid, un_vec3 gravity, int axis, double sign)
{
    double g[3] = {gravity.x, gravity.y, gravity.z};
    front_args f = make_args(t, solid, axis, sign);
    for (int a = 0; a < 3; a++)
        if (fabs(g[a]) > fabs(g[f.down])) f.down = a;
    bool up = g[f.down] > 0;
    f.below = up ? f.stride[f.down] : -f.stride[f.down];
    f.down_end = UN_TRACK_MARGIN + (up ? t->cells[f.down] : 0);
    int64_t rows = (int64_t)(t->cells[1] + 1) * (t->cells[2] + 1);
    return within_box(&f, un_parallel_max(t->ctx, rows, wet_rows, &f));
}

double un_track_height(const un_track *t, const un_bodies *bodies, double x, double z)
{
    double size = t->cells[1] * t->lattice.h[1], above = NAN;
    int32_t hint = -1;
    for (int32_t j = t->cells[1]; j >= 0; j--) {
        double y = t->lattice.h[1] * j;
        un_vec3 at = un_v3(x, fmin(y, size), z);
        bool shut = bodies->count > 0 && un_track_solid(bodies, at) < 0;
        double phi = shut ? NAN : un_track_distance(t, at, &hint);
        if (phi < 0) {
            if (isnan(above)) return at.y;
            /* between the two, as far as the distance is linear */
            double s = phi / (phi - above),
                   up = un_track_distance(t, un_v3(x, y + s * t->lattice.h[1], z), &hint);
            return y + t->lattice.h[1] * un_clamp(s - up / (above - phi), 0, 1);
        }
        above = phi;
    }
    return 0;
}

typedef struct places {
    const un_track *t;
    double *at;
} places;

static void find_places(void *arg, int64_t begin, int64_t end)
{
    places *p = arg;
    for (int64_t v = begin; v < end; v++) {
        int axis = (int)(p->t->edge[v] % 3);
        un_vec3 x = p->t->mesh.position[v];
        p->at[v] = axis == 0 ? x.x : axis == 1 ? x.y : x.z;
    }
}

void un_track_places(const un_track *t, double *at)
{
    places p = {t, at};
    un_parallel_for(t->ctx, t->mesh.vertex_count, 4096, find_places, &p);
}
