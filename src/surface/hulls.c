/* The union of the hulls of near particles [Ando13 section 5]: points, tree, distance.
 *
 * Only particles near the surface matter: those less than OWN radii deep in the last step have
 * hulls, and those down to HELP radii take part in the tests (hulls_prune.c), otherwise the lower
 * side of the kept layer would count as outside. Drops that fly, or have just landed among much
 * larger particles, are spheres by themselves, and do not count once they are inside: joined to
 * large particles they would be the tips of cones. Next to walls particles are mirrored, so that
 * hulls continue into the wall and the surface meets it as if there were no wall.
 *
 * The exposed hulls are stored in blocks of eight, evaluated side by side, under a tree of boxes.
 * Frames and slopes are computed once; the distance itself is that of hull.c. */
#include "surface/hulls.h"

/* Depths in radii. Particles move by less than one radius relative to the surface in a step. */
#define OWN 4.0f
#define HELP 8.5f
#define POINT_GRAIN 4096
#define BLOCK_GRAIN 512

/* ---- points ---- */

/* Six sides and at most one solid. */
#define IMAGES_MAX 7

typedef struct point_args {
    const un_hulls_def *def;
    un_hull_points *points;
    int32_t *first; /* by particle: its first point; first holds counts, shifted by one */
} point_args;

static const un_slim_entry *slim_entry(const un_hulls_def *def, int64_t q)
{
    return def->slim && def->slim->place[q] >= 0 ? &def->slim->entry[def->slim->place[q]] : NULL;
}

static uint8_t find_role(const un_hulls_def *def, int64_t q)
{
    const un_groups *g = def->groups;
    float r = def->radius[q];
    if (!isfinite(g->x[0][q]) || !isfinite(g->x[1][q]) || !isfinite(g->x[2][q])) return 0;
    if (!isfinite(r) || r < 0) return 0;
    uint8_t flags = def->flags ? def->flags[q] : 0;
    const un_slim_entry *e = slim_entry(def, q);
    if (e && e->joined) return UN_HULL_OWNER | UN_HULL_HELPER;
    bool drowned = flags & UN_PARTICLE_LANDED && def->depth && def->depth[q] < 0;
    if (flags & UN_PARTICLE_APART) return drowned ? 0 : UN_HULL_ALONE;
    if (!def->depth || !(def->depth[q] <= -OWN * r)) return UN_HULL_OWNER | UN_HULL_HELPER;
    return def->depth[q] <= -HELP * r ? 0 : UN_HULL_HELPER;
}

/* Spheres grow by up to so many radii to touch the surface: a gap in the layer at the surface
 * exposes particles more than two radii deep, and in draining water, along walls, such gaps showed
 * as rows of dips up to half a cell deep. */
#define GROW 1.5f

/* It is a continuous function of the depth: r itself outside, where depth says nothing
 * about drops and sheets, and r again OWN radii inside. */
float un_hull_touching(float r, float depth, float touch)
{
    float d = -depth / r;
    if (!(touch > 0) || !isfinite(d)) return r;
    if (d < 0) return r * (1 - touch * fmaxf(0, 1 + d));
    if (d < 1 + GROW) return r * fmaxf(d, 1 - touch);
    return r * (1 + GROW * fmaxf(0, (OWN - d) / (OWN - 1 - GROW)));
}

static un_vec3 point_position(const un_hulls_def *def, int64_t q)
{
    const un_slim_entry *e = slim_entry(def, q);
    return e ? e->x : un_v3(def->groups->x[0][q], def->groups->x[1][q], def->groups->x[2][q]);
}

static float point_radius(const un_hulls_def *def, int64_t q, uint8_t role)
{
    const un_slim_entry *e = slim_entry(def, q);
    float r = def->radius[q];
    if (e) return e->radius;
    if (role == UN_HULL_ALONE) return r * UN_HULL_DROP;
    return def->depth ? un_hull_touching(r, def->depth[q], (float)def->touch) : r;
}

/* Mirror images in those walls that are close enough to join the particle to its own image. */
static int32_t find_images(const un_hulls_def *def, int64_t q, un_vec3 image[IMAGES_MAX])
{
    const un_walls *walls = def->walls;
    if (!walls) return 0;
    un_vec3 x = point_position(def, q);
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
    double d = reach;
    int32_t nearest = un_bodies_nearest(walls->bodies, x, &d);
    if (nearest >= 0 && d >= 0)
        image[count++] = un_mad(x, un_body_normal(&walls->bodies->body[nearest], x), -2 * d);
    return count;
}

int32_t un_hull_points_of(const un_hulls_def *def, int64_t q)
{
    un_vec3 image[IMAGES_MAX];
    uint8_t role = find_role(def, q);
    return role == 0 ? 0 : role == UN_HULL_ALONE ? 1 : 1 + find_images(def, q, image);
}

static void count_points(void *arg, int64_t begin, int64_t end)
{
    point_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->first[q + 1] = un_hull_points_of(a->def, q);
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
        const un_slim_entry *e = slim_entry(a->def, q);
        x[0] = point_position(a->def, q);
        if (count > 1) find_images(a->def, q, x + 1);
        float radius = point_radius(a->def, q, role), size = e ? e->size : a->def->radius[q];
        for (int32_t i = 0; i < count; i++) {
            p->x[0][first + i] = x[i].x, p->x[1][first + i] = x[i].y, p->x[2][first + i] = x[i].z;
            p->size[first + i] = size;
            p->radius[first + i] = radius;
            p->particle[first + i] = (int32_t)q;
            if (p->number) p->number[first + i] = a->def->number[q] + (uint32_t)i;
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
    /* reads go to the end of the last group */
    size_t room = (size_t)points->count + UN_GROUP;
    points->radius = un_arena_alloc(arena, room, sizeof *points->radius);
    points->size = un_arena_alloc(arena, room, sizeof *points->size);
    points->role = un_arena_alloc(arena, room, 1);
    points->particle = un_arena_alloc(arena, room, sizeof *points->particle);
    if (def->number) {
        points->number = un_arena_alloc(arena, room, sizeof *points->number);
        if (!points->number) return UN_ERROR_MEMORY;
    }
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

typedef struct block_args {
    un_hulls *hulls;
    const un_hull_shape *shape; /* of hulls from `first` on */
    int64_t first;
} block_args;

static void build_blocks(void *arg, int64_t begin, int64_t end)
{
    block_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        un_hull_block *block = a->hulls->blocks + n;
        for (int32_t l = 0; l < 8; l++) {
            /* an incomplete block repeats the last hull */
            int64_t i = un_min64(8 * n + l, a->hulls->count - 1);
            const un_hull_shape *shape = a->shape + (i - a->first);
            un_box3 box = {un_min3(shape->x[0], un_min3(shape->x[1], shape->x[2])),
                           un_max3(shape->x[0], un_max3(shape->x[1], shape->x[2]))};
            un_hull_block_set(block, l, shape);
            if (i == 8 * n + l)
                un_boxes_set(&a->hulls->boxes, i, box,
                             fmax(shape->r[0], fmax(shape->r[1], shape->r[2])));
        }
    }
}

static void plan_blocks(un_hulls *h, int64_t count)
{
    h->count = count;
    h->block_count = (count + 7) / 8;
    h->own = (un_range){0, h->block_count, h->block_count};
}

/* Own blocks, of hulls of these shapes. */
static un_status fill_blocks(un_hulls *h, const un_hull_shape *shape)
{
    un_context *ctx = h->ctx;
    int64_t nodes = un_boxes_plan(&h->boxes, h->count);
    UN_ALLOC(ctx, h->blocks, h->block_count + 1);
    UN_ALLOC(ctx, h->boxes.nodes, nodes + 1);
    block_args a = {h, shape, 8 * h->own.begin};
    un_parallel_part(ctx, (un_part){h->own.begin, h->own.end}, BLOCK_GRAIN, build_blocks, &a);
    return UN_OK;
}

static un_status build_tree(un_hulls *h, const un_hull_shape *shape, int64_t count)
{
    plan_blocks(h, count);
    UN_TRY(fill_blocks(h, shape));
    un_boxes_build(h->ctx, &h->boxes);
    return UN_OK;
}

/* ---- depth ---- */

static un_hull_shape shape_of(const un_hull_points *p, const un_hull_entry *entry)
{
    un_hull_shape s;
    for (int32_t c = 0; c < 3; c++) {
        int32_t i = entry->corner[c];
        s.x[c] = un_v3(p->x[0][i], p->x[1][i], p->x[2][i]);
        s.r[c] = p->radius[i];
    }
    return s;
}

/* The part of an exposed face that touches the spheres, as a hull without thickness. */
static un_hull_shape sheet_of(const un_hull_shape *hull, double side)
{
    un_vec3 d1 = un_sub(hull->x[1], hull->x[0]), d2 = un_sub(hull->x[2], hull->x[0]);
    un_vec3 e3 = un_cross(d1, d2);
    double area2 = un_dot(e3, e3);
    un_hull_shape sheet = *hull;
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

/* True if no other particle faces the sheet across a narrow gap: within two radii, less than 60
 * degrees off its normal. */
static bool is_open(const un_hull_points *p, const un_hull_shape *hull, const un_hull_shape *sheet)
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
        un_hull_shape hull = shape_of(a->points, entry);
        a->open[n] = 0;
        for (int32_t side = 0; side < 2; side++) {
            if (!(entry->sides >> side & 1)) continue;
            un_hull_shape sheet = sheet_of(&hull, side ? -1 : 1);
            if (is_open(a->points, &hull, &sheet)) a->open[n] |= (uint8_t)(1 << side);
        }
    }
}

/* Particles on the outside are one radius deep; the others as deep as their distance from it, but
 * no deeper than needed. */
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

/* Measures the particles' distances from the exposed faces, except faces that only line gaps inside
 * the liquid or at walls. */
static un_status measure_depth(un_arena *arena, un_hulls *h, const un_hulls_def *def,
                               const un_hull_points *points, const un_hull_list *list)
{
    un_context *ctx = h->ctx;
    un_hulls sheets = {.ctx = ctx};
    size_t particles = (size_t)def->groups->count + 1;
    depth_args a = {.def = def, .points = points, .list = list, .sheets = &sheets};
    un_hull_shape *shape = un_arena_alloc(arena, 2 * (size_t)list->count + 1, sizeof *shape);
    a.open = un_arena_alloc(arena, (size_t)list->count + 1, 1);
    a.at_surface = un_arena_alloc(arena, particles, 1);
    bool able = shape && a.open && a.at_surface;
    UN_TRY(un_hulls_agree(ctx, def->shared, able ? UN_OK : UN_ERROR_MEMORY));
    memset(a.at_surface, 0, particles);
    un_parallel_part(ctx, un_hulls_part(ctx, def->shared, list->count), BLOCK_GRAIN, find_open, &a);
    un_hulls_spread(ctx, def->shared, list->count, a.open, 1);
    int64_t sheet_count = 0;
    for (int64_t n = 0; n < list->count; n++) {
        const un_hull_entry *entry = list->entry + n;
        un_hull_shape hull = shape_of(points, entry);
        if (a.open[n] & 1) shape[sheet_count++] = sheet_of(&hull, 1);
        if (a.open[n] & 2) shape[sheet_count++] = sheet_of(&hull, -1);
        if (a.open[n] || !entry->sides)
            for (int32_t c = 0; c < 3; c++) a.at_surface[points->particle[entry->corner[c]]] = 1;
    }
    un_status status = build_tree(&sheets, shape, sheet_count);
    a.depth = h->depth = un_alloc(ctx, particles, sizeof *h->depth);
    if (!h->depth) status = UN_ERROR_MEMORY;
    status = un_hulls_agree(ctx, def->shared, status);
    if (status == UN_OK) {
        int64_t count = def->groups->count;
        un_parallel_part(ctx, un_hulls_part(ctx, def->shared, count), POINT_GRAIN / 8, find_depths,
                         &a);
        un_hulls_spread(ctx, def->shared, count, h->depth, sizeof *h->depth);
    }
    un_free(ctx, sheets.blocks);
    un_free(ctx, sheets.boxes.nodes);
    return status;
}

/* The largest leaf that draws a hull of a thread or sheet; 0 for others. */
static float slim_leaf(const un_hulls_def *def, const un_hull_points *points,
                       const un_hull_entry *entry)
{
    float leaf = INFINITY;
    for (int32_t c = 0; c < 3; c++) {
        const un_slim_entry *e = slim_entry(def, points->particle[entry->corner[c]]);
        leaf = fminf(leaf, e && e->joined ? e->leaf : 0);
    }
    return leaf;
}

static un_status keep_sheets(un_hulls *h, const un_hulls_def *def, const un_hull_points *points,
                             const un_hull_list *list)
{
    int64_t begin = 8 * h->own.begin, end = un_min64(8 * h->own.end, list->count);
    h->sheets = un_alloc(h->ctx, 2 * (size_t)(end - begin) + 1, sizeof *h->sheets);
    if (!h->sheets) return UN_ERROR_MEMORY;
    for (int64_t n = begin; n < end; n++) {
        const un_hull_entry *entry = list->entry + n;
        un_hull_shape hull = shape_of(points, entry);
        const float *size = points->size;
        float least =
            fminf(size[entry->corner[0]], fminf(size[entry->corner[1]], size[entry->corner[2]]));
        for (int32_t side = 0; side < 2; side++) {
            bool axis = !entry->sides && side == 0;
            if (!axis && !(entry->sides >> side & 1)) continue;
            un_hull_shape sheet = axis ? hull : sheet_of(&hull, side ? -1 : 1);
            un_hull_sheet *to = &h->sheets[h->sheet_count++];
            for (int32_t c = 0; c < 3; c++) {
                to->x[c][0] = (float)sheet.x[c].x;
                to->x[c][1] = (float)sheet.x[c].y;
                to->x[c][2] = (float)sheet.x[c].z;
            }
            to->size = least;
            to->radius = axis ? (float)fmax(hull.r[0], hull.r[1]) : 0;
            to->leaf = slim_leaf(def, points, entry);
        }
    }
    return UN_OK;
}

/* ---- pieces ---- */

static int32_t find_first(int32_t *piece, int32_t q)
{
    while (piece[q] != q) q = piece[q] = piece[piece[q]];
    return q;
}

static void join_pieces(int32_t *piece, int32_t q, int32_t r)
{
    q = find_first(piece, q), r = find_first(piece, r);
    piece[q > r ? q : r] = q > r ? r : q;
}

/* The nearest other particle that point i is joined to, -1: none. */
static int32_t find_joined(const un_hull_points *p, int32_t i)
{
    int32_t near[256], best = -1;
    un_vec3 x = un_v3(p->x[0][i], p->x[1][i], p->x[2][i]);
    double reach = p->reach * p->size[i], least = INFINITY;
    int32_t count = un_groups_near(&p->groups, (un_box3){x, x}, reach, p->reach, near, 256);
    if (count < 0) count = 256;
    for (int32_t g = 0; g < count; g++)
        for (int32_t j = UN_GROUP * near[g]; j < UN_GROUP * (near[g] + 1) && j < p->count; j++) {
            if (!(p->role[j] & UN_HULL_OWNER) || p->particle[j] == p->particle[i]) continue;
            double d = un_length(un_sub(un_v3(p->x[0][j], p->x[1][j], p->x[2][j]), x));
            if (!(d < reach + p->reach * p->size[j]) || d >= least) continue;
            least = d;
            best = p->particle[j];
        }
    return best;
}

/* Particles that others hide have no hull of their own: they belong to the nearest one. */
static un_status join_hidden(un_hulls *h, const un_hulls_def *def, const un_hull_points *points,
                             const un_hull_list *list)
{
    uint8_t *shown = un_alloc_zero(h->ctx, (size_t)def->groups->count + 1, 1);
    if (!shown) return UN_ERROR_MEMORY;
    for (int64_t n = 0; n < list->count; n++)
        for (int32_t c = 0; c < 3; c++) shown[points->particle[list->entry[n].corner[c]]] = 1;
    for (int32_t i = 0; i < points->count; i++) {
        const un_slim_entry *e = slim_entry(def, points->particle[i]);
        if (!e || !e->joined || shown[points->particle[i]]) continue;
        if (def->own && !def->own[points->particle[i]]) continue;
        int32_t other = find_joined(points, i);
        if (other >= 0) join_pieces(h->piece, points->particle[i], other);
    }
    un_free(h->ctx, shown);
    return UN_OK;
}

/* Connects particles through their hulls. All that are not thin are one piece: the body. */
static un_status find_pieces(un_hulls *h, const un_hulls_def *def, const un_hull_points *points,
                             const un_hull_list *list)
{
    int32_t count = (int32_t)def->groups->count, body = -1;
    UN_ALLOC(h->ctx, h->piece, count + 1);
    for (int32_t q = 0; q < count; q++) {
        h->piece[q] = q;
        int32_t at = def->slim->place[q];
        if (at >= 0 && !def->slim->entry[at].body) continue;
        if (body < 0) body = q;
        h->piece[q] = body;
    }
    for (int64_t n = 0; n < list->count; n++) {
        const int32_t *c = list->entry[n].corner; /* the first is where it was judged */
        if (def->own && !def->own[points->particle[c[0]]]) continue;
        join_pieces(h->piece, points->particle[c[0]], points->particle[c[1]]);
        join_pieces(h->piece, points->particle[c[0]], points->particle[c[2]]);
    }
    UN_TRY(join_hidden(h, def, points, list));
    for (int32_t q = 0; q < count; q++) h->piece[q] = find_first(h->piece, q);
    return UN_OK;
}

/* ---- the whole ---- */

typedef struct shape_args {
    const un_hull_points *points;
    const un_hull_list *list;
    un_hull_shape *shape;
    int64_t first; /* hull that shapes begin with */
} shape_args;

static void copy_shapes(void *arg, int64_t begin, int64_t end)
{
    shape_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        a->shape[n - a->first] = shape_of(a->points, a->list->entry + n);
}

/* Own blocks of the list, and of their boxes the lowest level. bounds: over ranks, room for all
 * blocks. */
static un_status fill_hulls(un_hulls *h, un_arena *arena, const un_hulls_def *def,
                            const un_hull_points *points, const un_hull_list *list,
                            un_box_bound **bounds)
{
    un_context *ctx = h->ctx;
    plan_blocks(h, list->count);
    un_part own = un_hulls_part(ctx, def->shared, h->block_count);
    h->own = (un_range){own.begin, own.end, h->block_count};
    un_part part = {8 * own.begin, un_min64(8 * own.end, list->count)};
    shape_args a = {points, list, NULL, part.begin};
    a.shape = un_arena_alloc(arena, (size_t)(part.end - part.begin) + 1, sizeof *a.shape);
    *bounds = un_arena_alloc(arena, def->shared ? (size_t)h->block_count + 1 : 1, sizeof **bounds);
    if (!a.shape || !*bounds) return UN_ERROR_MEMORY;
    un_parallel_part(ctx, part, BLOCK_GRAIN, copy_shapes, &a);
    UN_TRY(fill_blocks(h, a.shape));
    if (def->shared) {
        h->here = un_alloc_zero(ctx, (size_t)h->block_count + 1, 1);
        if (!h->here) return UN_ERROR_MEMORY;
    }
    if (def->sheets) UN_TRY(keep_sheets(h, def, points, list));
    bool pieces = def->slim && def->slim->count > 0 && !(def->shared && un_rank(ctx) > 0);
    return pieces ? find_pieces(h, def, points, list) : UN_OK;
}

/* Over ranks: all get the levels above the lowest. */
static void join_boxes(un_hulls *h, un_box_bound *bounds)
{
    if (h->own.end == h->block_count && h->own.begin < h->own.end)
        for (int64_t leaf = h->count; leaf % 8; leaf++) un_boxes_set_empty(&h->boxes, leaf);
    for (int64_t b = h->own.begin; b < h->own.end; b++) {
        bounds[b] = un_boxes_bound(&h->boxes, b);
        h->here[b] = 1;
    }
    un_ranks_spread_even(h->ctx, h->block_count, bounds, sizeof *bounds);
    un_boxes_build_above(h->ctx, &h->boxes, bounds);
}

un_status un_hulls_create(un_context *ctx, un_arena *arena, const un_hulls_def *def,
                          un_hulls **hulls, un_hulls_report *report)
{
    un_hulls_report local;
    un_hull_points points;
    un_hull_list list;
    *hulls = NULL;
    UN_TRY(un_hulls_agree(ctx, def->shared, find_points(ctx, arena, def, &points)));
    UN_TRY(un_hulls_prune(ctx, arena, &points, def->shared, &list, report ? report : &local));
    un_hulls *h = un_alloc_zero(ctx, 1, sizeof *h);
    if (h) h->ctx = ctx;
    un_box_bound *bounds = NULL;
    un_status status = h ? fill_hulls(h, arena, def, &points, &list, &bounds) : UN_ERROR_MEMORY;
    status = un_hulls_agree(ctx, def->shared, status);
    if (status == UN_OK && def->shared) join_boxes(h, bounds);
    if (status == UN_OK && !def->shared) un_boxes_build(ctx, &h->boxes);
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
    un_free(hulls->ctx, hulls->here);
    un_free(hulls->ctx, hulls->sheets);
    un_free(hulls->ctx, hulls->depth);
    un_free(hulls->ctx, hulls->piece);
    un_free(hulls->ctx, hulls);
}
