/* What lies beyond the faces of tets that conform to surface and walls, and pressures from mesh to
 * mesh. */
#include "pressure/stuffed_bodies.h"
#include "pressure/system.h"

/* In leaves: how far outside the surface a face may be that follows it. */
#define OUTSIDE 0.1
/* And how deep in a solid one at the air may be. */
#define INSIDE 0.05

typedef struct boundary {
    un_stuffed_rim *rim;
    const un_stuffing *mesh;
    const un_track *track;
} boundary;

/* The body whose wall a face is; -1 none. A face in the middle of a wall too thin for the mesh is
 * one of its own, whatever the mesh takes it for. */
static int32_t wall_of(const boundary *s, int32_t f)
{
    double d = INFINITY;
    int behind = s->mesh->face_behind[f];
    const un_bodies *bodies = s->rim->bodies;
    if (bodies->count == 0 || (behind != UN_BEHIND_WALL && behind != UN_BEHIND_AIR)) return -1;
    int32_t body = un_bodies_nearest(bodies, s->mesh->center[f], &d);
    return behind == UN_BEHIND_WALL || d < -INSIDE * un_stuffing_leaf(s->mesh, f) ? body : -1;
}

static void set_wall(un_stuffed_rim *rim, int64_t b, int32_t body, double speed)
{
    rim->foot[b].x = NAN;
    rim->wall[b] = speed;
    if (rim->body && body >= 0 && rim->bodies->body[body].free) rim->body[b] = body;
}

static void find_boundary(void *arg, int64_t begin, int64_t end)
{
    boundary *s = arg;
    un_stuffed_rim *rim = s->rim;
    int32_t hint = -1;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = s->mesh->boundary[b], body = wall_of(s, f);
        un_vec3 x = s->mesh->center[f];
        rim->foot[b] = x;
        rim->wall[b] = 0;
        if (rim->body) rim->body[b] = -1;
        if (body >= 0) {
            const un_body *solid = &rim->bodies->body[body];
            un_vec3 u = solid->free ? un_v3(0, 0, 0) : un_body_velocity(solid, x);
            set_wall(rim, b, body, un_dot(u, un_normalize(s->mesh->area[f])));
        } else if (s->mesh->face_behind[f] == UN_BEHIND_AIR &&
                   un_track_distance(s->track, x, &hint) < OUTSIDE * un_stuffing_leaf(s->mesh, f)) {
            /* faces farther outside belong to thickened liquid and have their own place */
            rim->foot[b] = un_track_foot(s->track, x, &hint);
        }
    }
}

void un_stuffed_find_rim(un_context *ctx, un_stuffed_rim *rim, const un_stuffing *mesh,
                         const un_track *track)
{
    boundary s = {rim, mesh, track};
    un_parallel_for(ctx, mesh->boundary_count, 512, find_boundary, &s);
}

double un_stuffed_wall_speed(const un_stuffed_rim *rim, const un_stuffing *mesh, int64_t b)
{
    int32_t body = rim->body ? rim->body[b] : -1;
    double m[6];
    if (body < 0) return rim->wall[b];
    const un_body *of = &rim->bodies->body[body];
    un_stuffed_motion(m, of, mesh, mesh->boundary[b]);
    return rim->wall[b] + m[0] * of->velocity.x + m[1] * of->velocity.y + m[2] * of->velocity.z +
           m[3] * of->spin.x + m[4] * of->spin.y + m[5] * of->spin.z;
}

/* ---- walls ahead ---- */

/* Liquid this much farther on its way than the wall, in leaves, meets it; its face looks at the
 * wall by this cosine or more, so that fronts running along walls do not count. */
#define BEYOND 0.1
#define FACING 0.8

typedef struct meeting {
    un_stuffed_rim *rim;
    const un_stuffing *mesh;
    const double *u;
    const un_track_walls *walls;
    double dt;
} meeting;

/* How far the wall is along n, m, its velocity there, and whose it is; -1: a side's. */
static double wall_ahead(const meeting *s, un_vec3 x, un_vec3 n, double *speed, int32_t *body)
{
    const un_track_walls *w = s->walls;
    double at[3] = {x.x, x.y, x.z}, size[3] = {w->size.x, w->size.y, w->size.z};
    double along[3] = {n.x, n.y, n.z}, gap = INFINITY, d = INFINITY;
    *speed = 0;
    *body = -1;
    for (int side = 0; side < 6; side++) {
        int a = side / 2;
        double cosine = side % 2 ? along[a] : -along[a];
        if (cosine < FACING || (w->open && w->open[side])) continue;
        gap = fmin(gap, (side % 2 ? size[a] - at[a] : at[a]) / cosine);
    }
    int32_t b = w->bodies->count > 0 ? un_bodies_nearest(w->bodies, x, &d) : -1;
    if (b < 0) return gap;
    double cosine = -un_dot(n, un_body_normal(&w->bodies->body[b], x));
    if (cosine < FACING || d / cosine > gap) return gap;
    *speed = un_dot(un_body_velocity(&w->bodies->body[b], x), n);
    *body = b;
    return d / cosine;
}

static double find_meetings(void *arg, int64_t begin, int64_t end)
{
    meeting *s = arg;
    double count = 0;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = s->mesh->boundary[b], body;
        if (s->mesh->face_behind[f] != UN_BEHIND_AIR || isnan(s->rim->foot[b].x)) continue;
        if (!(s->u[f] * s->dt > BEYOND * un_stuffing_leaf(s->mesh, f))) continue;
        double speed,
            gap = wall_ahead(s, s->mesh->center[f], un_normalize(s->mesh->area[f]), &speed, &body);
        if (!((s->u[f] - speed) * s->dt > fmax(0, gap) + BEYOND * un_stuffing_leaf(s->mesh, f)))
            continue;
        if (body >= 0 && s->walls->bodies->body[body].free) speed = 0; /* its own is added */
        set_wall(s->rim, b, body, speed + fmax(0, gap) / s->dt);
        count++;
    }
    return count;
}

int64_t un_stuffed_meet_walls(un_context *ctx, un_stuffed_rim *rim, const un_stuffing *mesh,
                              const double *u, const un_track_walls *walls, double dt)
{
    meeting s = {rim, mesh, u, walls, dt};
    return (int64_t)un_parallel_sum(ctx, mesh->boundary_count, find_meetings, &s);
}

/* ---- walls that let go ---- */

/* A mesh with fewer faces at the air may be all but closed: its pressure is known up to a constant
 * only. */
#define AIR_FACES 16

static double count_air(void *arg, int64_t begin, int64_t end)
{
    const un_stuffing *m = arg;
    double count = 0;
    for (int64_t b = begin; b < end; b++) count += m->face_behind[m->boundary[b]] == UN_BEHIND_AIR;
    return count;
}

static double find_releases(void *arg, int64_t begin, int64_t end)
{
    const un_stuffed_release *s = arg;
    const un_stuffing *m = s->mesh;
    double count = 0;
    for (int64_t b = begin; b < end; b++) {
        int32_t f = m->boundary[b], t = m->face_tet[f][0];
        int behind = m->face_behind[f];
        if (behind < UN_BEHIND_WALL ||
            (behind >= UN_BEHIND_SIDE && s->open_sides[behind - UN_BEHIND_SIDE]))
            continue;
        double speed = 0, h = un_octree_size(&m->tree, m->level[t]);
        for (int i = 0; i < 4; i++) speed = fmax(speed, fabs(s->u[m->tet_face[t][i]]));
        bool pulls = s->p[t] * s->scale < -un_release_slack(s->let_go, speed, h);
        bool runs = s->u[f] > un_stuffed_wall_speed(s->rim, m, b);
        if (s->gone[b] ? !runs : !pulls) continue;
        s->gone[b] = !s->gone[b];
        s->rim->foot[b] = m->center[f];
        count++;
    }
    return count;
}

int64_t un_stuffed_let_go(un_context *ctx, const un_stuffed_release *s)
{
    int32_t faces = s->mesh->boundary_count;
    if (!(s->let_go > 0) || un_parallel_sum(ctx, faces, count_air, (void *)s->mesh) < AIR_FACES)
        return 0;
    return (int64_t)un_parallel_sum(ctx, faces, find_releases, (void *)s);
}

un_box3 un_stuffed_gone_in(const un_stuffing *mesh, const uint8_t *gone, double margin)
{
    un_vec3 more = un_v3(margin, margin, margin);
    un_box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (int32_t b = 0; b < mesh->boundary_count; b++) {
        if (!gone[b]) continue;
        un_vec3 x = mesh->center[mesh->boundary[b]];
        box.min = un_min3(box.min, un_sub(x, more));
        box.max = un_max3(box.max, un_add(x, more));
    }
    return box;
}

typedef struct carry {
    double *p;
    const un_stuffing *mesh;
    const double *p_old;
    const un_vec3 *slope;
    const un_stuffing *old;
} carry;

static void carry_tets(void *arg, int64_t begin, int64_t end)
{
    carry *c = arg;
    un_tets_place place = {.tet = -1};
    for (int64_t t = begin; t < end; t++) {
        un_vec3 x = un_stuffing_center(c->mesh, (int32_t)t);
        un_stuffing_locate(c->old, x, -1, &place);
        double p = c->p_old[place.tet];
        un_vec3 way = un_sub(x, un_stuffing_center(c->old, place.tet));
        c->p[t] = p + un_dot(c->slope[place.tet], way);
    }
}

void un_stuffed_pressure_carry(un_context *ctx, double *p, const un_stuffing *mesh,
                               const double *p_old, const un_vec3 *slope, const un_stuffing *old)
{
    carry c = {p, mesh, p_old, slope, old};
    if (old->tet_count == 0)
        memset(p, 0, (size_t)mesh->tet_count * sizeof *p);
    else
        un_parallel_for(ctx, mesh->tet_count, 1024, carry_tets, &c);
}

typedef struct total {
    double *total;
    const un_stuffing *mesh;
    const double *p, *node;
    const un_stuffing *old;
} total;

static void add_tets(void *arg, int64_t begin, int64_t end)
{
    total *a = arg;
    un_tets_place place;
    for (int64_t t = begin; t < end; t++) {
        a->total[t] = a->p[t];
        if (a->old->tet_count == 0) continue;
        un_stuffing_locate(a->old, un_stuffing_center(a->mesh, (int32_t)t), -1, &place);
        const int32_t *n = a->old->tet[place.tet];
        for (int i = 0; i < 4; i++) a->total[t] += place.w[i] * a->node[n[i]];
    }
}

void un_stuffed_pressure_total(un_context *ctx, double *sum, const un_stuffing *mesh,
                               const double *p, const double *node, const un_stuffing *old)
{
    total a = {sum, mesh, p, node, old};
    un_parallel_for(ctx, mesh->tet_count, 1024, add_tets, &a);
}

double un_stuffed_pressure_at(const un_stuffing *mesh, const double *p, un_vec3 x, un_vec3 weight,
                              bool *wet)
{
    un_tets_place place;
    *wet = mesh->tet_count > 0 && un_stuffing_locate(mesh, x, -1, &place);
    if (!*wet) return 0;
    return p[place.tet] + un_dot(weight, un_sub(x, un_stuffing_center(mesh, place.tet)));
}
