/* Distances to many hulls: eight side by side, under a tree, or the few near a box.
 *
 * Each hull lies in the frame of its triangle, computed once, with its slopes; the distance is that
 * of hull.c, in single precision from a corner of the triangle on. */
#include "base/lanes.h"
#include "surface/hulls.h"

/* ---- eight hulls ---- */

/* Sets the cone's slopes; the bigger sphere alone if it contains the other. */
static void set_side(un_hull_block *b, int32_t l, int32_t side, double du, double dv, double from,
                     double to)
{
    double length = hypot(du, dv), k = 0, w = 0;
    if (length > 0) {
        k = (to - from) / length;
        w = fabs(k) < 1 ? k / sqrt(1 - k * k) : copysign(1e30, k);
    }
    b->dir[side][0][l] = (float)(length > 0 ? du / length : 1);
    b->dir[side][1][l] = (float)(length > 0 ? dv / length : 0);
    b->length[side][l] = (float)length;
    b->r[side][l] = (float)(length > 0 ? from : fmax(from, to));
    b->k[side][l] = (float)k;
    b->w[side][l] = (float)un_clamp(w, -1e30, 1e30);
}

void un_hull_block_set(un_hull_block *b, int32_t l, const un_hull_shape *shape)
{
    const un_vec3 *x = shape->x;
    const double *r = shape->r;
    un_vec3 d1 = un_sub(x[1], x[0]), d2 = un_sub(x[2], x[0]);
    double u1 = un_length(d1);
    un_vec3 e1 = u1 > 0 ? un_scale(d1, 1 / u1) : un_v3(1, 0, 0);
    double u2 = un_dot(d2, e1);
    un_vec3 across = un_mad(d2, e1, -u2);
    double v2 = un_length(across);
    bool flat = v2 > 1e-6 * (u1 + fabs(u2));
    if (!flat) {
        /* collinear: any frame about the line will do */
        un_vec3 least = fabs(e1.x) < 0.6 ? un_v3(1, 0, 0) : un_v3(0, 1, 0);
        across = un_cross(e1, least);
        v2 = 0;
    }
    un_vec3 e2 = un_normalize(across), e3 = un_cross(e1, e2);
    double gu = u1 > 0 ? (r[1] - r[0]) / u1 : 0, gv = flat ? (r[2] - r[0] - gu * u2) / v2 : 0;
    double rest = 1 - gu * gu - gv * gv;
    bool face = flat && rest > 0;
    b->origin[0][l] = x[0].x, b->origin[1][l] = x[0].y, b->origin[2][l] = x[0].z;
    b->e1[0][l] = (float)e1.x, b->e1[1][l] = (float)e1.y, b->e1[2][l] = (float)e1.z;
    b->e2[0][l] = (float)e2.x, b->e2[1][l] = (float)e2.y, b->e2[2][l] = (float)e2.z;
    b->e3[0][l] = (float)e3.x, b->e3[1][l] = (float)e3.y, b->e3[2][l] = (float)e3.z;
    b->u1[l] = (float)u1;
    b->u2[l] = (float)u2;
    b->v2[l] = (float)v2;
    b->b1[l] = face ? (float)(1 / u1) : NAN;
    b->c2[l] = face ? (float)(u2 / (u1 * v2)) : 0;
    b->b2[l] = face ? (float)(1 / v2) : 0;
    b->r0[l] = (float)r[0];
    b->gu[l] = (float)gu;
    b->gv[l] = (float)gv;
    b->slide[l] = face ? (float)(1 / sqrt(rest)) : 0;
    set_side(b, l, 0, u1, 0, r[0], r[1]);
    set_side(b, l, 1, u2, v2, r[0], r[2]);
    set_side(b, l, 2, u2 - u1, v2, r[1], r[2]);
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}
static inline float smaller(float a, float b)
{
    return a < b ? a : b;
}

/* The least distance of the block's eight hulls. */
static float block_distance(const un_hull_block *b, un_vec3 x)
{
    float u[8], v[8], h[8], best[8];
    for (int32_t l = 0; l < 8; l++) {
        float dx = (float)(x.x - b->origin[0][l]), dy = (float)(x.y - b->origin[1][l]);
        float dz = (float)(x.z - b->origin[2][l]);
        u[l] = dx * b->e1[0][l] + dy * b->e1[1][l] + dz * b->e1[2][l];
        v[l] = dx * b->e2[0][l] + dy * b->e2[1][l] + dz * b->e2[2][l];
        h[l] = fabsf(dx * b->e3[0][l] + dy * b->e3[1][l] + dz * b->e3[2][l]);
    }
    for (int32_t l = 0; l < 8; l++) {
        float slide = h[l] * b->slide[l];
        float fu = u[l] + b->gu[l] * slide, fv = v[l] + b->gv[l] * slide;
        float b2 = b->b2[l] * fv, b1 = b->b1[l] * fu - b->c2[l] * fv;
        float du = u[l] - fu, dv = v[l] - fv;
        float value =
            sqrtf(du * du + dv * dv + h[l] * h[l]) - (b->r0[l] + b->gu[l] * fu + b->gv[l] * fv);
        float least = smaller(smaller(b1, b2), 1 - b1 - b2);
        best[l] = least >= 0 ? value : INFINITY;
    }
    for (int32_t s = 0; s < 3; s++)
        for (int32_t l = 0; l < 8; l++) {
            float pu = s == 2 ? u[l] - b->u1[l] : u[l], pv = v[l];
            float cu = b->dir[s][0][l], cv = b->dir[s][1][l];
            float along = pu * cu + pv * cv, across = pu * cv - pv * cu;
            float across2 = across * across + h[l] * h[l];
            float t = along + b->w[s][l] * sqrtf(across2);
            t = smaller(larger(t, 0), b->length[s][l]);
            float off = along - t;
            float value = sqrtf(off * off + across2) - (b->r[s][l] + b->k[s][l] * t);
            best[l] = smaller(value, best[l]);
        }
    float least = best[0];
    for (int32_t l = 1; l < 8; l++) least = smaller(best[l], least);
    return least;
}

/* The unit vector to x from the nearest hull of the block: the gradient of the distance. Zero
 * exactly at the centres. */
static un_vec3 block_direction(const un_hull_block *b, un_vec3 x)
{
    double least = INFINITY;
    un_vec3 way = {0, 0, 0};
    for (int32_t l = 0; l < 8; l++) {
        un_vec3 d = un_v3(x.x - b->origin[0][l], x.y - b->origin[1][l], x.z - b->origin[2][l]);
        un_vec3 e1 = un_v3(b->e1[0][l], b->e1[1][l], b->e1[2][l]);
        un_vec3 e2 = un_v3(b->e2[0][l], b->e2[1][l], b->e2[2][l]);
        un_vec3 e3 = un_v3(b->e3[0][l], b->e3[1][l], b->e3[2][l]);
        double u = un_dot(d, e1), v = un_dot(d, e2), h = un_dot(d, e3), fu[4], fv[4], r[4];
        /* the least of the face, if it has one, and of the sides */
        double slide = fabs(h) * b->slide[l];
        fu[3] = u + b->gu[l] * slide, fv[3] = v + b->gv[l] * slide;
        double b2 = b->b2[l] * fv[3], b1 = b->b1[l] * fu[3] - b->c2[l] * fv[3];
        bool face = b1 >= 0 && b2 >= 0 && b1 + b2 <= 1;
        r[3] = b->r0[l] + b->gu[l] * fu[3] + b->gv[l] * fv[3];
        for (int32_t s = 0; s < 3; s++) {
            double pu = s == 2 ? u - b->u1[l] : u, cu = b->dir[s][0][l], cv = b->dir[s][1][l];
            double along = pu * cu + v * cv, off = pu * cv - v * cu;
            double across = sqrt(off * off + h * h);
            double t = un_clamp(along + b->w[s][l] * across, 0, b->length[s][l]);
            fu[s] = u - pu + t * cu, fv[s] = t * cv;
            r[s] = b->r[s][l] + b->k[s][l] * t;
        }
        for (int32_t s = 0; s < 3 + face; s++) {
            double du = u - fu[s], dv = v - fv[s];
            double distance = sqrt(du * du + dv * dv + h * h) - r[s];
            if (!(distance < least)) continue;
            least = distance;
            way = un_add(un_add(un_scale(e1, du), un_scale(e2, dv)), un_scale(e3, h));
        }
    }
    return un_normalize(way);
}

typedef struct asking {
    const un_hulls *hulls;
    un_vec3 x;
    un_lanes8 at[3];
    float best;
    float enough; /* the search stops below this */
    int64_t block;
} asking;

static void ask(asking *a, int32_t level, int64_t node)
{
    const un_hulls *h = a->hulls;
    const un_group_box *box = h->boxes.nodes + h->boxes.level_first[level] + node;
    /* boxes within best of a sphere of their largest radius */
    un_lanes8 gap2 = un_boxes_gaps(box, a->at, a->at);
    un_lanes8 reach = un_lanes8_load(box->radius) + (a->best + h->boxes.room);
    reach = un_lanes8_max(reach, un_lanes8_all(0));
    reach *= reach;
    uint32_t left = un_lanes8_less(gap2, reach);
    if (level == 0) {
        if (!left) return;
        UN_ASSERT(!h->here || h->here[node]);
        float distance = block_distance(h->blocks + node, a->x);
        if (distance < a->best) a->best = distance, a->block = node;
        return;
    }
    while (left) {
        int32_t nearest = __builtin_ctz(left);
        for (uint32_t rest = left & (left - 1); rest; rest &= rest - 1) {
            int32_t c = __builtin_ctz(rest);
            if (gap2[c] < gap2[nearest]) nearest = c;
        }
        left &= ~(1u << nearest);
        float within = larger(a->best + h->boxes.room + box->radius[nearest], 0);
        if (!(gap2[nearest] < within * within)) continue;
        ask(a, level - 1, 8 * node + nearest);
        if (a->best <= a->enough) return;
    }
}

static asking ask_all(const un_hulls *hulls, un_vec3 x, double bound, double enough)
{
    asking a = {.hulls = hulls, .x = x, .best = (float)bound, .enough = (float)enough, .block = -1};
    if (hulls->boxes.level_count == 0 || !un_finite3(x)) return a;
    a.at[0] = un_lanes8_all((float)x.x);
    a.at[1] = un_lanes8_all((float)x.y);
    a.at[2] = un_lanes8_all((float)x.z);
    ask(&a, hulls->boxes.level_count - 1, 0);
    return a;
}

double un_hulls_distance(const un_hulls *hulls, un_vec3 x, double bound)
{
    asking a = ask_all(hulls, x, bound, -INFINITY);
    return a.block >= 0 ? a.best : bound;
}

double un_hulls_sign(const un_hulls *hulls, un_vec3 x, double bound, un_vec3 *direction)
{
    asking a = ask_all(hulls, x, bound, -FLT_MIN);
    if (direction)
        *direction = a.block >= 0 && a.best >= 0 ? block_direction(hulls->blocks + a.block, x)
                                                 : un_v3(0, 0, 0);
    return a.block >= 0 ? a.best : bound;
}

/* ---- the hulls near a box ---- */

typedef struct gathering {
    const un_hulls *hulls;
    un_lanes8 lo[3], hi[3];
    float reach;
    un_hull_local *local;
} gathering;

static void copy_lane(un_hull_block *to, int32_t t, const un_hull_block *from, int32_t f)
{
    for (int32_t x = 0; x < 3; x++) to->origin[x][t] = from->origin[x][f];
    /* the rest is rows of eight floats */
    size_t begin = offsetof(un_hull_block, e1), rows = (sizeof *to - begin) / (8 * sizeof(float));
    float *a = (float *)((char *)to + begin) + t;
    const float *b = (const float *)((const char *)from + begin) + f;
    for (size_t r = 0; r < rows; r++) a[8 * r] = b[8 * r];
}

static void gather(gathering *g, int32_t level, int64_t node)
{
    const un_hulls *h = g->hulls;
    const un_group_box *box = h->boxes.nodes + h->boxes.level_first[level] + node;
    un_lanes8 gap2 = un_boxes_gaps(box, g->lo, g->hi);
    un_lanes8 reach = un_lanes8_load(box->radius) + g->reach;
    reach *= reach;
    for (uint32_t left = un_lanes8_less(gap2, reach); left; left &= left - 1) {
        int32_t c = __builtin_ctz(left);
        if (level > 0) {
            gather(g, level - 1, 8 * node + c);
            continue;
        }
        un_hull_local *local = g->local;
        UN_ASSERT(!h->here || h->here[node]);
        if (local->count < UN_HULL_LOCAL_MAX)
            copy_lane(&local->block[local->count / 8], local->count % 8, h->blocks + node, c);
        local->count++;
    }
}

void un_hulls_gather(const un_hulls *hulls, un_box3 box, double reach, un_hull_local *local)
{
    gathering g = {.hulls = hulls, .local = local};
    double lo[3] = {box.min.x, box.min.y, box.min.z}, hi[3] = {box.max.x, box.max.y, box.max.z};
    for (int32_t x = 0; x < 3; x++) {
        g.lo[x] = un_lanes8_all((float)lo[x]);
        g.hi[x] = un_lanes8_all((float)hi[x]);
    }
    /* never zero: hulls without thickness are within a reach of zero, and its square must not
     * underflow */
    g.reach = (float)reach + hulls->boxes.room + 1e-18f;
    local->hulls = hulls;
    local->count = 0;
    if (hulls->boxes.level_count > 0 && un_finite3(box.min) && un_finite3(box.max))
        gather(&g, hulls->boxes.level_count - 1, 0);
    for (int32_t l = local->count; l % 8 && l < UN_HULL_LOCAL_MAX; l++)
        copy_lane(&local->block[l / 8], l % 8, &local->block[l / 8], 0);
}

double un_hull_local_distance(const un_hull_local *local, un_vec3 x, double bound,
                              un_vec3 *direction)
{
    if (local->count > UN_HULL_LOCAL_MAX) return un_hulls_sign(local->hulls, x, bound, direction);
    float best = (float)bound;
    int32_t found = -1;
    for (int32_t b = 0; 8 * b < local->count; b++) {
        float distance = block_distance(&local->block[b], x);
        if (distance < best) best = distance, found = b;
    }
    if (direction)
        *direction =
            found >= 0 && best >= 0 ? block_direction(&local->block[found], x) : un_v3(0, 0, 0);
    return found >= 0 ? best : bound;
}
