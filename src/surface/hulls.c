/* The union of the hulls of near particles [Ando13 section 5]: points, tree, distance.
 *
 * Only particles near the surface matter: those that were less than OWN radii deep have hulls,
 * those down to HELP radii take part in the tests (hulls_prune.c), else the lower side of the kept
 * layer would count as outside. Next to walls particles are mirrored, so that hulls go on into the
 * wall and the surface meets it as it would without it.
 *
 * The exposed hulls lie in blocks of eight, asked side by side, under a tree of boxes. Frames and
 * slopes are computed once; the distance itself is that of hull.c. */
#include "surface/hulls.h"

/* A sphere of a particle's volume, in its radii: cbrt(6 / pi). */
#define DROP 1.2407009817988f
/* In radii. Particles move by less than one radius relative to the surface in a step. */
#define OWN 4.0f
#define HELP 8.5f
#define POINT_GRAIN 4096
#define BLOCK_GRAIN 512

/* ---- points ---- */

/* Sides and at most one solid. */
#define IMAGES_MAX 7

typedef struct point_args {
    const un_hulls_def *def;
    un_hull_points *points;
    int32_t *first; /* by particle: its points; counts at first, shifted by one */
} point_args;

static uint8_t find_role(const un_hulls_def *def, int64_t q)
{
    const un_groups *g = def->groups;
    float r = def->radius[q];
    if (!isfinite(g->x[0][q]) || !isfinite(g->x[1][q]) || !isfinite(g->x[2][q])) return 0;
    if (!isfinite(r) || r < 0) return 0;
    if (def->flags && def->flags[q] & UN_PARTICLE_BALLISTIC) return UN_HULL_ALONE;
    if (!def->depth || !(def->depth[q] <= -OWN * r)) return UN_HULL_OWNER | UN_HULL_HELPER;
    return def->depth[q] <= -HELP * r ? 0 : UN_HULL_HELPER;
}

/* Touching the surface at this depth, in radii, or as near to it as `touch` allows. The radius is a
 * continuous function of the depth: from its own outside, where depth says nothing about drops and
 * sheets, to its own again well inside. */
static float touching_radius(float r, float depth, float touch)
{
    float d = -depth / r;
    if (!(touch > 0) || !isfinite(d)) return r;
    if (d < 0) return r * (1 - touch * fmaxf(0, 1 + d));
    if (d < 2) return r * fminf(fmaxf(d, 1 - touch), 1 + touch);
    return r * (1 + touch * fmaxf(0, 3 - d));
}

/* Images in the walls that the particle could be joined to its own image through. */
static int32_t find_images(const un_hulls_def *def, int64_t q, un_vec3 image[IMAGES_MAX])
{
    const un_walls *walls = def->walls;
    if (!walls) return 0;
    un_vec3 x = un_v3(def->groups->x[0][q], def->groups->x[1][q], def->groups->x[2][q]);
    double reach = def->reach * def->radius[q];
    const bool *open = walls->scene->def.domain.open;
    double at[3] = {x.x, x.y, x.z};
    double size[3] = {walls->grid->size.x, walls->grid->size.y, walls->grid->size.z};
    int32_t count = 0;
    for (int32_t s = 0; s < 6; s++) {
        double d = s & 1 ? size[s / 2] - at[s / 2] : at[s / 2];
        if (open[s] || !(d >= 0 && d < reach)) continue;
        double to[3] = {at[0], at[1], at[2]};
        to[s / 2] += s & 1 ? 2 * d : -2 * d;
        image[count++] = un_v3(to[0], to[1], to[2]);
    }
    double least = reach;
    int32_t nearest = -1;
    for (int32_t b = 0; b < walls->body_count; b++) {
        const un_body *body = &walls->bodies[b];
        un_vec3 lo = un_sub(body->bounds.min, x), hi = un_sub(x, body->bounds.max);
        if (fmax(fmax(fmax(lo.x, hi.x), fmax(lo.y, hi.y)), fmax(lo.z, hi.z)) > least) continue;
        un_vec3 local = body->moves ? un_pose_invert(&body->to, x) : x;
        double d = un_shape_distance(body->shape, local) * (body->moves ? body->to.scale : 1);
        if (d < least) least = d, nearest = b;
    }
    if (nearest >= 0 && least >= 0) {
        const un_body *body = &walls->bodies[nearest];
        un_vec3 local = body->moves ? un_pose_invert(&body->to, x) : x;
        un_vec3 n = un_shape_normal(body->shape, local);
        if (body->moves) n = un_pose_rotate(&body->to, n);
        image[count++] = un_mad(x, n, -2 * least);
    }
    return count;
}

static void count_points(void *arg, int64_t begin, int64_t end)
{
    point_args *a = arg;
    un_vec3 image[IMAGES_MAX];
    for (int64_t q = begin; q < end; q++) {
        uint8_t role = find_role(a->def, q);
        a->first[q + 1] = role == 0               ? 0
                          : role == UN_HULL_ALONE ? 1
                                                  : 1 + find_images(a->def, q, image);
    }
}

static void write_points(void *arg, int64_t begin, int64_t end)
{
    point_args *a = arg;
    un_hull_points *p = a->points;
    for (int64_t q = begin; q < end; q++) {
        int32_t first = a->first[q], count = a->first[q + 1] - first;
        if (count == 0) continue;
        un_vec3 x[IMAGES_MAX + 1];
        uint8_t role = find_role(a->def, q);
        x[0] = un_v3(a->def->groups->x[0][q], a->def->groups->x[1][q], a->def->groups->x[2][q]);
        if (count > 1) find_images(a->def, q, x + 1);
        float radius = a->def->radius[q];
        if (role == UN_HULL_ALONE)
            radius *= DROP;
        else if (a->def->depth)
            radius = touching_radius(radius, a->def->depth[q], (float)a->def->touch);
        for (int32_t i = 0; i < count; i++) {
            p->x[0][first + i] = x[i].x, p->x[1][first + i] = x[i].y, p->x[2][first + i] = x[i].z;
            p->size[first + i] = a->def->radius[q];
            p->radius[first + i] = radius;
            p->particle[first + i] = (int32_t)q;
            p->role[first + i] = (uint8_t)(i ? role | UN_HULL_IMAGE : role);
        }
    }
}

static un_status find_points(un_context *ctx, un_arena *arena, const un_hulls_def *def,
                             un_hull_points *points)
{
    int64_t count = def->groups->count;
    *points = (un_hull_points){.reach = def->reach};
    point_args a = {.def = def, .points = points};
    a.first = un_arena_alloc(arena, (size_t)count + 1, sizeof *a.first);
    if (!a.first) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, count, POINT_GRAIN, count_points, &a);
    a.first[0] = 0;
    for (int64_t q = 0; q < count; q++) a.first[q + 1] += a.first[q];
    points->count = a.first[count];
    /* whole groups are read */
    size_t room = (size_t)points->count + UN_GROUP;
    points->radius = un_arena_alloc(arena, room, sizeof *points->radius);
    points->size = un_arena_alloc(arena, room, sizeof *points->size);
    points->role = un_arena_alloc(arena, room, 1);
    points->particle = un_arena_alloc(arena, room, sizeof *points->particle);
    for (int32_t axis = 0; axis < 3; axis++) {
        points->x[axis] = un_arena_alloc(arena, room, sizeof *points->x[axis]);
        if (!points->x[axis]) return UN_ERROR_MEMORY;
    }
    if (!points->radius || !points->size || !points->role || !points->particle)
        return UN_ERROR_MEMORY;
    for (size_t i = (size_t)points->count; i < room; i++)
        points->x[0][i] = points->x[1][i] = points->x[2][i] = points->size[i] = 0;
    un_parallel_for(ctx, count, POINT_GRAIN, write_points, &a);
    return un_groups_build(ctx, arena, &points->groups,
                           (const double *const[3]){points->x[0], points->x[1], points->x[2]},
                           points->size, points->count);
}

/* ---- blocks ---- */

typedef struct hull_shape {
    un_vec3 x[3];
    double r[3];
} hull_shape;

typedef struct block_args {
    un_hulls *hulls;
    const hull_shape *shape;
} block_args;

/* The cone's slopes; the bigger sphere alone where it holds the other. */
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

static void set_hull(un_hull_block *b, int32_t l, const un_vec3 x[3], const double r[3])
{
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

static void build_blocks(void *arg, int64_t begin, int64_t end)
{
    block_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        un_hull_block *block = a->hulls->blocks + n;
        for (int32_t l = 0; l < 8; l++) {
            /* a block that is not full repeats the last hull */
            int64_t i = un_min64(8 * n + l, a->hulls->count - 1);
            const hull_shape *shape = a->shape + i;
            un_box3 box = {un_min3(shape->x[0], un_min3(shape->x[1], shape->x[2])),
                           un_max3(shape->x[0], un_max3(shape->x[1], shape->x[2]))};
            set_hull(block, l, shape->x, shape->r);
            if (i == 8 * n + l)
                un_boxes_set(&a->hulls->boxes, i, box,
                             fmax(shape->r[0], fmax(shape->r[1], shape->r[2])));
        }
    }
}

static un_status build_tree(un_hulls *h, const hull_shape *shape, int64_t count)
{
    un_context *ctx = h->ctx;
    h->count = count;
    h->block_count = (count + 7) / 8;
    int64_t nodes = un_boxes_plan(&h->boxes, count);
    UN_ALLOC(ctx, h->blocks, h->block_count + 1);
    UN_ALLOC(ctx, h->boxes.nodes, nodes + 1);
    block_args a = {h, shape};
    un_parallel_for(ctx, h->block_count, BLOCK_GRAIN, build_blocks, &a);
    un_boxes_build(ctx, &h->boxes);
    return UN_OK;
}

/* ---- depth ---- */

static hull_shape shape_of(const un_hull_points *p, const un_hull_entry *entry)
{
    hull_shape s;
    for (int32_t c = 0; c < 3; c++) {
        int32_t i = entry->corner[c];
        s.x[c] = un_v3(p->x[0][i], p->x[1][i], p->x[2][i]);
        s.r[c] = p->radius[i];
    }
    return s;
}

/* The part of an exposed face that touches the spheres, as a hull without thickness. */
static hull_shape sheet_of(const hull_shape *hull, double side)
{
    un_vec3 d1 = un_sub(hull->x[1], hull->x[0]), d2 = un_sub(hull->x[2], hull->x[0]);
    un_vec3 e3 = un_cross(d1, d2);
    double area2 = un_dot(e3, e3);
    hull_shape sheet = *hull;
    if (area2 > 0) {
        /* the gradient of the radius in the plane of the centres */
        un_vec3 g = un_scale(un_add(un_scale(un_cross(d2, e3), hull->r[1] - hull->r[0]),
                                    un_scale(un_cross(e3, d1), hull->r[2] - hull->r[0])),
                             1 / area2);
        double rest = sqrt(fmax(0, 1 - un_dot(g, g)));
        un_vec3 n = un_sub(un_scale(e3, side * rest / sqrt(area2)), g);
        for (int32_t c = 0; c < 3; c++) sheet.x[c] = un_mad(hull->x[c], n, hull->r[c]);
    }
    for (int32_t c = 0; c < 3; c++) sheet.r[c] = 0;
    return sheet;
}

/* Whether no other particle faces the sheet across a narrow gap: within two radii, less than 60
 * degrees off its normal. */
static bool is_open(const un_hull_points *p, const hull_shape *hull, const hull_shape *sheet)
{
    un_vec3 c = un_scale(un_add(sheet->x[0], un_add(sheet->x[1], sheet->x[2])), 1.0 / 3);
    un_vec3 from = un_scale(un_add(hull->x[0], un_add(hull->x[1], hull->x[2])), 1.0 / 3);
    un_vec3 n = un_normalize(un_sub(c, from));
    double gap = 2 * fmax(hull->r[0], fmax(hull->r[1], hull->r[2]));
    int32_t near[256], count = un_groups_near(&p->groups, (un_box3){c, c}, gap, 1, near, 256);
    if (count < 0) count = 256;
    for (int32_t g = 0; g < count; g++)
        for (int32_t q = UN_GROUP * near[g]; q < UN_GROUP * (near[g] + 1) && q < p->count; q++) {
            un_vec3 to = un_sub(un_v3(p->x[0][q], p->x[1][q], p->x[2][q]), c);
            double d = un_length(to);
            if (p->role[q] & UN_HULL_HELPER && d - p->radius[q] < gap && un_dot(to, n) > 0.5 * d)
                return false;
        }
    return true;
}

typedef struct depth_args {
    const un_hulls_def *def;
    const un_hull_points *points;
    const un_hull_list *list;
    const un_hulls *sheets;
    uint8_t *open;       /* by hull: its open sides, bits as in un_hull_entry */
    uint8_t *at_surface; /* by particle */
    float *depth;
} depth_args;

static void find_open(void *arg, int64_t begin, int64_t end)
{
    depth_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        const un_hull_entry *entry = a->list->entry + n;
        hull_shape hull = shape_of(a->points, entry);
        a->open[n] = 0;
        for (int32_t side = 0; side < 2; side++) {
            if (!(entry->sides >> side & 1)) continue;
            hull_shape sheet = sheet_of(&hull, side ? -1 : 1);
            if (is_open(a->points, &hull, &sheet)) a->open[n] |= (uint8_t)(1 << side);
        }
    }
}

/* Particles that have a part in the outside are a radius deep, those under it as far as they lie
 * from it, but no deeper than is asked for. */
static void find_depths(void *arg, int64_t begin, int64_t end)
{
    depth_args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        uint8_t role = find_role(a->def, q);
        double r = a->def->radius[q];
        const un_groups *g = a->def->groups;
        a->depth[q] = 0;
        if (role == 0 || role == UN_HULL_ALONE) continue;
        double depth = r;
        if (!a->at_surface[q])
            depth = fmax(r, un_hulls_distance(a->sheets, un_v3(g->x[0][q], g->x[1][q], g->x[2][q]),
                                              HELP * r));
        a->depth[q] = (float)-depth;
    }
}

/* Distances of the particles from the exposed faces, without those that only line gaps inside the
 * liquid or at walls. */
static un_status measure_depth(un_arena *arena, un_hulls *h, const un_hulls_def *def,
                               const un_hull_points *points, const un_hull_list *list)
{
    un_context *ctx = h->ctx;
    un_hulls sheets = {.ctx = ctx};
    size_t particles = (size_t)def->groups->count + 1;
    depth_args a = {.def = def, .points = points, .list = list, .sheets = &sheets};
    hull_shape *shape = un_arena_alloc(arena, 2 * (size_t)list->count + 1, sizeof *shape);
    a.open = un_arena_alloc(arena, (size_t)list->count + 1, 1);
    a.at_surface = un_arena_alloc(arena, particles, 1);
    if (!shape || !a.open || !a.at_surface) return UN_ERROR_MEMORY;
    memset(a.at_surface, 0, particles);
    un_parallel_for(ctx, list->count, BLOCK_GRAIN, find_open, &a);
    int64_t sheet_count = 0;
    for (int64_t n = 0; n < list->count; n++) {
        const un_hull_entry *entry = list->entry + n;
        hull_shape hull = shape_of(points, entry);
        if (a.open[n] & 1) shape[sheet_count++] = sheet_of(&hull, 1);
        if (a.open[n] & 2) shape[sheet_count++] = sheet_of(&hull, -1);
        if (a.open[n] || !entry->sides)
            for (int32_t c = 0; c < 3; c++) a.at_surface[points->particle[entry->corner[c]]] = 1;
    }
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, h->depth, particles);
    UN_TRY_DONE(build_tree(&sheets, shape, sheet_count));
    a.depth = h->depth;
    un_parallel_for(ctx, def->groups->count, POINT_GRAIN / 8, find_depths, &a);
done:
    un_free(ctx, sheets.blocks);
    un_free(ctx, sheets.boxes.nodes);
    return status;
}

static un_status find_exposed(un_hulls *h, const un_hulls_def *def, const un_hull_points *points,
                              const un_hull_list *list)
{
    h->exposed = un_alloc_zero(h->ctx, (size_t)def->groups->count + 1, 1);
    if (!h->exposed) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < list->count; n++)
        for (int32_t c = 0; c < 3; c++) {
            uint8_t *exposed = &h->exposed[points->particle[list->entry[n].corner[c]]];
            uint8_t kind = list->entry[n].sides ? 1 : UN_HULL_THIN;
            *exposed = *exposed > kind ? *exposed : kind;
        }
    return UN_OK;
}

/* ---- the whole ---- */

typedef struct shape_args {
    const un_hull_points *points;
    const un_hull_list *list;
    hull_shape *shape;
} shape_args;

static void copy_shapes(void *arg, int64_t begin, int64_t end)
{
    shape_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->shape[n] = shape_of(a->points, a->list->entry + n);
}

un_status un_hulls_create(un_context *ctx, un_arena *arena, const un_hulls_def *def,
                          un_hulls **hulls, un_hulls_report *report)
{
    un_hulls_report local;
    un_hull_points points;
    un_hull_list list;
    *hulls = NULL;
    UN_TRY(find_points(ctx, arena, def, &points));
    UN_TRY(un_hulls_prune(ctx, arena, &points, &list, report ? report : &local));
    shape_args a = {&points, &list, NULL};
    a.shape = un_arena_alloc(arena, (size_t)list.count + 1, sizeof *a.shape);
    un_hulls *h = a.shape ? un_alloc_zero(ctx, 1, sizeof *h) : NULL;
    if (!h) return UN_ERROR_MEMORY;
    h->ctx = ctx;
    un_parallel_for(ctx, list.count, BLOCK_GRAIN, copy_shapes, &a);
    un_status status = build_tree(h, a.shape, list.count);
    if (status == UN_OK) status = find_exposed(h, def, &points, &list);
    if (status == UN_OK && !def->depth) status = measure_depth(arena, h, def, &points, &list);
    if (status != UN_OK)
        un_hulls_destroy(h);
    else
        *hulls = h;
    return status;
}

void un_hulls_destroy(un_hulls *hulls)
{
    if (!hulls) return;
    un_free(hulls->ctx, hulls->blocks);
    un_free(hulls->ctx, hulls->boxes.nodes);
    un_free(hulls->ctx, hulls->exposed);
    un_free(hulls->ctx, hulls->depth);
    un_free(hulls->ctx, hulls);
}

/* ---- distance ---- */

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

/* The unit vector from the hull that is nearest of the block's to x: the gradient of the distance.
 * Zero at the very centres. */
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
    lanes at[3];
    float best;
    float enough; /* no need to go below */
    int64_t block;
} asking;

static void ask(asking *a, int32_t level, int64_t node)
{
    const un_hulls *h = a->hulls;
    const un_group_box *box = h->boxes.nodes + h->boxes.level_first[level] + node;
    /* boxes within best of a sphere of their largest radius */
    lanes gap2, reach = *(const lanes *)box->radius + (a->best + h->boxes.room), zero;
    lanes_gaps(&gap2, box->lo, box->hi, a->at, a->at);
    lanes_set(&zero, 0);
    lanes_raise(&reach, &zero);
    reach *= reach;
    uint32_t left = lanes_less(&gap2, &reach);
    if (level == 0) {
        if (!left) return;
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
    lanes_set(&a.at[0], (float)x.x);
    lanes_set(&a.at[1], (float)x.y);
    lanes_set(&a.at[2], (float)x.z);
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
