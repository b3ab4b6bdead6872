/* The probes `front`, `wet` and `height` of a carried surface, and its places for checkpoints. */
#include "surface/surface.h"

typedef struct front_args {
    const un_track *t;
    const float *solid;
    int axis;
    double sign, depth;
    bool lying;
    int64_t below;      /* from a node to the next one down */
    int down, down_end; /* the axis, and the box's last node along it */
} front_args;

/* Is the next node down in a wall? */
static bool lies(const front_args *f, int64_t n, const int32_t at[3])
{
    return at[f->down] == f->down_end || (f->solid && f->solid[n + f->below] < 0);
}

/* A node that is d below the surface reaches d further. */
static double front_rows(void *arg, int64_t begin, int64_t end)
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
            if (!(l->phi[n] < -f->depth) || (f->solid && f->solid[n] < 0)) continue;
            if (f->lying && !lies(f, n, (int32_t[]){i, j, k})) continue;
            un_vec3 x = un_track_node(t, i, j, k);
            double at = f->axis == 0 ? x.x : f->axis == 1 ? x.y : x.z;
            most = fmax(most, f->sign * at - l->phi[n]);
        }
    }
    return most;
}

static double find_front(front_args *f)
{
    const un_track *t = f->t;
    int64_t rows = (int64_t)(t->cells[1] + 1) * (t->cells[2] + 1);
    double front = un_parallel_max(t->ctx, rows, front_rows, f);
    double size = t->cells[f->axis] * t->lattice.h[f->axis];
    return isfinite(front) ? un_clamp(f->sign * front, 0, size) : NAN;
}

double un_track_front(const un_track *t, const float *solid, int axis, double sign, double depth)
{
    front_args f = {.t = t, .solid = solid, .axis = axis, .sign = sign, .depth = depth};
    return find_front(&f);
}

double un_track_wet(const un_track *t, const float *solid, un_vec3 gravity, int axis, double sign)
{
    const int32_t *n = t->lattice.n;
    double g[3] = {gravity.x, gravity.y, gravity.z};
    int64_t stride[3] = {1, n[0], (int64_t)n[0] * n[1]};
    front_args f = {.t = t, .solid = solid, .axis = axis, .sign = sign, .lying = true, .down = 1};
    for (int a = 0; a < 3; a++)
        if (fabs(g[a]) > fabs(g[f.down])) f.down = a;
    bool up = g[f.down] > 0;
    f.below = up ? stride[f.down] : -stride[f.down];
    f.down_end = UN_TRACK_MARGIN + (up ? t->cells[f.down] : 0);
    return find_front(&f);
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
