/* The sizing function [Ando13 section 4, eq. 15]
 *
 *     S = max(d, V(min(C / |kappa|, C_s / (W |kappa_s|), U / |e|)))
 *
 * as cell edges: the paper speaks of radii of particles, of which a cell's edge holds four. d grows
 * with the distance |phi| from the liquid's surface, kappa = div(grad phi / |grad phi|) is its
 * curvature (2/R for a ball, 1/R for a ridge), kappa_s that of solids, W = (1 - phi_s^2 / s^2)^3
 * fades their influence within one coarsest surface cell s, e is the strain tensor, V gives way to
 * s where the camera does not look.
 *
 * kappa is computed at nodes within BAND cells of the surface and averaged over neighbours twice.
 * Derivatives are the mesh's business: tets.c has those of linear elements, slopes.c those of any
 * nodes and neighbours.
 *
 * Departures from the paper. (1) It multiplies by W where only a division makes sense: its size
 * would shrink to nothing away from solids. (2) Its curvature is that of an extracted mesh, carried
 * along; ours also sees where grad phi changes sign inside a band: sheets and films thinner than
 * about three cells, however flat, are refined before they tear. (3) Its factors 0.8 and 30 have no
 * stated units or are far too lenient for edges: CURVATURE and STRAIN below. (4) d = |phi| as a
 * radius lets cells grow as fast as a balanced tree can and leaves fine liquid beside coarse cells,
 * where particles get stuck; here d = GRADE |phi|, and the same bound holds along the surface
 * (un_sizing_limit). The bound also carries sizes from the surface to the nodes around it, for
 * which the paper extrapolates. (5) Shallow liquid over a wall has a term of its own, FILM, and so
 * have emitters and drains, SOURCE. (6) Liquid beside a body that it moves is as fine as at the
 * surface: d is the distance from whichever is nearer. */
#include "sizing/sizing.h"

/* A cell's edge times the curvature: a ridge of radius R has cells of R / 2, a ball cells of R / 4.
 * On cells of edge h the curvature above shows as 0.72 / h at a right-angled edge, 1.2 / h or more
 * in sheets of up to three cells, 0.85 / h on a ball of three cells' radius: all ask for cells
 * below h / sqrt(2), so the mesh goes on halving them until they are resolved or finest. Noise in
 * phi of a tenth of a cell shows as 0.09 / h, 0.2 / h at the brick's boundary, and lets cells
 * double (test_sizing.c). The paper's 0.8 as a radius, 3.2 as an edge, would never ask for finer
 * cells than those that show the curvature. */
#define CURVATURE 0.5
/* Of solids: their cells may be twice as large, as in the paper. */
#define SOLID_CURVATURE 1.0
/* Times a cell's edge: curvature above which cells do not resolve the solid. A plate shows as
 * 1.05 / h up to a thickness of three quarters of a cell, as 0.98 / h at one and a half, and as
 * 0.72 / h at three, like any right-angled edge. So cells at plates thinner than one and a half
 * cells are halved, down to the finest: liquid on one side must not feel what is on the other. */
#define SOLID_UNRESOLVED 0.95
/* In cells: where curvature is taken. */
#define BAND 1.5
#define SMOOTHINGS 2
/* Difference of velocity across a cell that needs no refinement, over sqrt(g H), H the domain's
 * height. A dam break of 8 to 64 cells has at most 39 thousand particles at 0.15, 24 at 0.3 and 23
 * at 0.6 (94 thousand without sizing), and at 0.6 fewer in its front; the kinetic energies differ
 * by 5 %. */
#define STRAIN 0.3
/* A cell's edge over the thickness of liquid between its surface and a wall along it: four
 * particles deep, however coarse the scene's cells may be. But never below FILM_LEAST finest cells,
 * or all liquid that runs down a wall would be fine. Without, a basin at rest of 0.75 m in cells of
 * 1 m moved at 0.7 m/s. */
#define FILM 0.5
#define FILM_LEAST 4.0
#define FILM_ALONG 0.7 /* cosine between the directions away from both */
/* A cell's edge over the thickness of the solid next to it: larger ones see little of the space at
 * its edges and corners. */
#define THIN 0.5
/* A cell's edge over the width of an emitter or a drain, in it. Liquid that a drain takes from
 * larger cells leaves no hole that the level set could see, and nothing flows after it. */
#define SOURCE 0.25
/* In its widths: how far around it. A pool far below an emitter is none of its business; its stream
 * brings cells of its own. */
#define SOURCE_REACH 2.0
/* Growth of cells per distance: two to three layers of each size. */
#define GRADE 0.3
/* The coarsest surface cell over the coarsest cell; the paper's Table 1 has 1/2 to 1/4. At 1/2 a
 * wave a fiftieth as high as the tank is long loses up to a quarter of its height in a period. */
#define SURFACE_SHARE 0.25
/* Cells along the domain's shortest side, at least: a flat tank is not one cell thick. */
#define SIDE_CELLS 2.0
/* The camera sees a tenth more than the picture on each side, and fades out over three more. */
#define VIEW_MARGIN 1.1
#define VIEW_FADE 0.3
/* In cells: how far outside the liquid sizes matter. */
#define AIR_REACH 2.0

typedef struct view {
    un_vec3 eye, forward, right, up; /* right and up over the tangents of half the angles */
} view;

typedef struct sizing_args {
    const un_sizing_def *def;
    const un_sizing_nodes *nodes;
    const un_sizing_slopes *slopes;
    const float *phi; /* of the surface whose curvature is computed */
    double h, coarsest, surface;
    double depth, curvature, solid, strain; /* edges: times |phi|, over kappa, kappa_s, |e| */
    double film, mouth;                     /* times thickness; times a source's width */
    double reach;                           /* |phi| beyond which only depth counts */
    uint8_t *band;                          /* nodes where curvature is computed */
    float *kappa[2];                        /* at nodes */
    float *share;                           /* of the size that depth allows; NULL: all of it */
    float *size;
    view view;
} sizing_args;

/* ---- nodes ---- */

typedef struct choose_args {
    const un_sizing_nodes *nodes;
    const float *phi;
    uint8_t *used;
} choose_args;

static void choose(void *arg, int64_t begin, int64_t end)
{
    const choose_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        a->used[n] = a->phi[n] < AIR_REACH * a->nodes->cell[a->nodes->level[n]];
}

un_status un_sizing_choose(un_context *ctx, un_arena *arena, un_sizing_nodes *nodes,
                           const float *phi)
{
    choose_args a = {nodes, phi, un_arena_alloc(arena, (size_t)nodes->count + 1, 1)};
    if (!a.used) return UN_ERROR_MEMORY;
    un_sizing_each(ctx, nodes, 2048, choose, &a);
    nodes->used = a.used;
    return UN_OK;
}

static void start(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    for (int64_t n = begin; n < end; n++) a->size[n] = (float)a->surface;
}

/* ---- curvature ---- */

static void find_band(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_sizing_nodes *nodes = a->nodes;
    for (int64_t n = begin; n < end; n++)
        a->band[n] = nodes->used[n] && fabs(a->phi[n]) < BAND * nodes->cell[nodes->level[n]];
}

/* The mean with the neighbours, as far as they are in the band. */
static void smooth_curvature(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_sizing_nodes *nodes = a->nodes;
    for (int64_t n = begin; n < end; n++) {
        a->kappa[1][n] = 0;
        if (!a->band[n]) continue;
        double sum = a->kappa[0][n], weight = 1;
        const int32_t *near = nodes->near + nodes->near_first[n];
        int32_t count = un_sizing_listed(nodes, n);
        for (int32_t j = 0; j < count; j++) {
            if (!a->band[near[j]]) continue;
            sum += a->kappa[0][near[j]];
            weight++;
        }
        a->kappa[1][n] = (float)(sum / weight);
    }
}

static un_status take_curvature(sizing_args *a, un_context *ctx, un_arena *arena, const float *phi)
{
    const un_sizing_nodes *nodes = a->nodes;
    a->phi = phi;
    un_sizing_each(ctx, nodes, 2048, find_band, a);
    un_status status = a->slopes->curvature(ctx, arena, a->kappa[0], nodes, phi, a->band);
    UN_TRY(un_sizing_agree(ctx, nodes, status));
    for (int i = 0; i < SMOOTHINGS; i++) {
        UN_TRY(un_sizing_share(nodes, a->kappa[0]));
        un_parallel_part(ctx, un_sizing_own(nodes), 512, smooth_curvature, a);
        float *swap = a->kappa[0];
        a->kappa[0] = a->kappa[1];
        a->kappa[1] = swap;
    }
    return UN_OK;
}

static void use_curvature(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        double kappa = fabs(a->kappa[0][n]), size = a->curvature / kappa;
        if (size < a->size[n]) a->size[n] = (float)size;
    }
}

static void use_solid_curvature(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        double d = a->phi[n] / a->surface, w = fmax(0, 1 - d * d);
        double kappa = fabs(a->kappa[0][n]), h = a->nodes->cell[a->nodes->level[n]];
        double size = a->solid / (w * w * w * kappa);
        bool close = fabs(a->phi[n]) < 0.75 * h; /* and not on the middle of something thick */
        if (close && kappa * h > SOLID_UNRESOLVED) size = fmin(size, CURVATURE / kappa);
        if (size < a->size[n]) a->size[n] = (float)size;
    }
}

/* ---- strain ---- */

static void use_strain(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->kappa[0][n] < a->size[n]) a->size[n] = a->kappa[0][n];
}

/* ---- film ---- */

static void use_film(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const float *phi = a->def->phi, *wall = a->def->wall;
    for (int64_t n = begin; n < end; n++) {
        if (!(phi[n] < 0)) continue;
        double size = a->film * a->def->scale * (fabs(phi[n]) + fmax(wall[n], 0));
        size = fmax(size, FILM_LEAST * a->h);
        if (!(size < a->size[n])) continue;
        un_vec3 up = a->slopes->direction(a->nodes, (int32_t)n, phi);
        un_vec3 away = a->slopes->direction(a->nodes, (int32_t)n, wall);
        if (un_dot(up, away) > FILM_ALONG) a->size[n] = (float)size;
    }
}

/* A typical speed of the scene: of a fall through the domain, or what its liquid starts with. */
static double scene_speed(const un_scene_def *scene)
{
    un_vec3 g = scene->gravity, size = scene->domain.size;
    double speed = sqrt(fabs(g.x) * size.x + fabs(g.y) * size.y + fabs(g.z) * size.z);
    speed = fmax(speed, un_length(scene->liquid.velocity));
    for (int32_t s = 0; s < scene->source_count; s++)
        speed = fmax(speed, un_length(scene->sources[s].velocity));
    return speed;
}

/* ---- camera and depth ---- */

static view make_view(const un_viewpoint *camera)
{
    double tan_y = tan(camera->fov * UN_PI / 360), tan_x = tan_y * camera->aspect;
    view v = {.eye = camera->eye};
    v.forward = un_normalize(un_sub(camera->target, camera->eye));
    un_vec3 right = un_cross(v.forward, un_v3(0, 1, 0));
    if (un_length(right) < 1e-6) right = un_v3(1, 0, 0); /* straight up or down */
    right = un_normalize(right);
    v.right = un_scale(right, 1 / tan_x);
    v.up = un_scale(un_cross(right, v.forward), 1 / tan_y);
    return v;
}

/* 0 in the picture .. 1 well outside it or behind the camera. */
static double hidden(const view *v, un_vec3 x)
{
    un_vec3 d = un_sub(x, v->eye);
    double depth = un_dot(d, v->forward);
    double side = fmax(fabs(un_dot(d, v->right)), fabs(un_dot(d, v->up)));
    if (!(depth > 0)) return 1;
    return un_clamp((side / depth - VIEW_MARGIN) / VIEW_FADE, 0, 1);
}

/* How far a place is from the bodies that the liquid moves, or `far` if they are farther. What
 * moves with such a body is the liquid around it: its mass is the body's as much as its own. */
static double way_to_bodies(const un_bodies *bodies, un_vec3 x, double far)
{
    for (int32_t b = 0; b < bodies->count; b++) {
        const un_body *body = &bodies->body[b];
        if (!body->free || un_body_box_distance(body, x) >= far) continue;
        far = fmin(far, fmax(0, un_body_distance(body, x)));
    }
    return far;
}

static void combine(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_scene_def *scene = &a->def->scene->def;
    double scale = a->def->scale;
    for (int64_t n = begin; n < end; n++) {
        double size = a->size[n];
        if (!a->nodes->used[n]) {
            a->size[n] = (float)a->coarsest;
            continue;
        }
        if (scene->sizing.has_camera && size < a->surface)
            size += (a->surface - size) * hidden(&a->view, a->nodes->x[n]);
        /* an infinite phi is far, one that is no number too */
        double depth = a->depth * fabs(a->def->phi[n]);
        if (a->def->bodies && a->nodes->used[n] && depth > size)
            depth = a->depth * way_to_bodies(a->def->bodies, a->nodes->x[n],
                                             fmin(depth, a->coarsest) / a->depth);
        if (a->share) depth = (double)a->share[n] * fmin(depth, a->coarsest);
        if (a->depth > 0 && !(depth <= size)) size = depth <= a->coarsest ? depth : a->coarsest;
        a->size[n] = (float)un_clamp(scale * size, a->h, a->coarsest);
    }
}

/* ---- thin walls ---- */

static void use_narrow(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        double size = fmax(a->def->scale * THIN * (double)a->def->narrow[n], a->h);
        if (a->nodes->used[n] && size < (double)a->size[n]) a->size[n] = (float)size;
    }
}

/* ---- sources ---- */

static double box_distance(const un_box3 *box, un_vec3 x)
{
    un_vec3 out = un_max3(un_sub(box->min, x), un_sub(x, box->max));
    return un_length(un_max3(out, un_v3(0, 0, 0)));
}

/* Open sources, and the sizes they ask for. */
typedef struct mouths {
    sizing_args *sizing;
    int32_t count;
    struct mouth {
        const un_shape *shape;
        un_box3 box;
        double size, reach;
        bool drain;
    } * mouth;
} mouths;

static void use_mouths(void *arg, int64_t begin, int64_t end)
{
    const mouths *m = arg;
    sizing_args *a = m->sizing;
    for (int64_t n = begin; n < end; n++) {
        if (!(a->def->phi[n] < 0)) continue;
        un_vec3 x = a->nodes->x[n];
        double cell = a->nodes->cell[a->nodes->level[n]];
        for (int32_t s = 0; s < m->count; s++) {
            const struct mouth *mouth = &m->mouth[s];
            /* a drain may lie between the nodes of large cells */
            double reach = mouth->drain ? fmax(mouth->reach, cell) : mouth->reach;
            double box = box_distance(&mouth->box, x);
            if (box > reach || mouth->size + GRADE * box >= a->size[n]) continue;
            double d = fmax(0, un_shape_distance(mouth->shape, x));
            double size = mouth->size + GRADE * d;
            if (d <= reach && size < a->size[n]) a->size[n] = (float)size;
        }
    }
}

static un_status use_sources(sizing_args *a, un_context *ctx, un_arena *arena)
{
    const un_sources *sources = a->def->sources;
    const un_scene_def *scene = &a->def->scene->def;
    mouths m = {.sizing = a};
    m.mouth = un_arena_alloc(arena, (size_t)scene->source_count + 1, sizeof *m.mouth);
    if (!m.mouth) return UN_ERROR_MEMORY;
    for (int32_t s = 0; s < scene->source_count; s++) {
        const un_source *source = &scene->sources[s];
        double size = fmax(a->def->scale * a->mouth * sources->emission[s].width, a->h);
        if (!un_source_active(source, a->def->time) || size >= a->coarsest) continue;
        m.mouth[m.count++] = (struct mouth){source->shape, un_shape_bounds(source->shape), size,
                                            SOURCE_REACH * sources->emission[s].width,
                                            source->kind == UN_SOURCE_DRAIN};
    }
    if (m.count > 0) un_parallel_part(ctx, un_sizing_own(a->nodes), 1024, use_mouths, &m);
    return UN_OK;
}

/* ---- custom ---- */

static un_status use_custom(sizing_args *a, un_arena *arena)
{
    const un_sizing_def *def = a->def;
    const un_sizing_nodes *nodes = a->nodes;
    un_part own = un_sizing_own(nodes);
    int64_t count = 0, k = 0;
    for (int64_t n = own.begin; n < own.end; n++) count += nodes->used[n];
    un_vec3 *x = un_arena_alloc(arena, (size_t)count + 1, sizeof *x);
    float *size = un_arena_alloc(arena, (size_t)count + 1, sizeof *size);
    if (!x || !size) return UN_ERROR_MEMORY;
    for (int64_t n = own.begin; n < own.end; n++)
        if (nodes->used[n]) x[k++] = nodes->x[n];
    UN_TRY(un_scene_custom_sizes(def->scene, def->time, x, count, size));
    k = 0;
    for (int64_t n = own.begin; n < own.end; n++) {
        if (!nodes->used[n]) continue;
        double wanted = fmax(def->scale * size[k++], a->h);
        if (wanted < a->size[n]) a->size[n] = (float)wanted;
    }
    return UN_OK;
}

/* ---- all ---- */

static un_status need_room(sizing_args *a, un_arena *arena, bool curved, bool strained)
{
    size_t room = (size_t)a->nodes->count + 1;
    if (curved || strained) {
        a->kappa[0] = un_arena_alloc(arena, room, sizeof *a->kappa[0]);
        if (!a->kappa[0]) return UN_ERROR_MEMORY;
    }
    if (curved) {
        a->kappa[1] = un_arena_alloc(arena, room, sizeof *a->kappa[1]);
        a->band = un_arena_alloc(arena, room, 1);
        if (!a->kappa[1] || !a->band) return UN_ERROR_MEMORY;
    }
    if (a->def->scene->def.sizing.deformability > 0 && a->def->velocity) {
        a->share = un_arena_alloc(arena, room, sizeof *a->share);
        if (!a->share) return UN_ERROR_MEMORY;
    }
    return UN_OK;
}

static un_status use_terms(sizing_args *a, un_context *ctx, un_arena *arena)
{
    const un_sizing_def *def = a->def;
    un_part own = un_sizing_own(a->nodes);
    bool curved = a->curvature > 0, solids = a->solid > 0 && def->solid;
    bool strained = a->strain > 0 && def->velocity;
    un_status status = need_room(a, arena, curved || solids, strained);
    UN_TRY(un_sizing_agree(ctx, a->nodes, status));
    if (curved) {
        UN_TRY(take_curvature(a, ctx, arena, def->phi));
        un_parallel_part(ctx, own, 2048, use_curvature, a);
    }
    if (solids) {
        UN_TRY(take_curvature(a, ctx, arena, def->solid));
        un_parallel_part(ctx, own, 2048, use_solid_curvature, a);
    }
    if (strained) {
        un_sizing_flow flow = {def->velocity, def->phi, a->reach, a->strain};
        status = a->slopes->strain(ctx, arena, a->kappa[0], a->nodes, &flow);
        UN_TRY(un_sizing_agree(ctx, a->nodes, status));
        un_parallel_part(ctx, own, 2048, use_strain, a);
    }
    if (a->share) un_sizing_deformability(ctx, a->share, def, def->scene->def.sizing.deformability);
    return UN_OK;
}

static un_status use_others(sizing_args *a, un_context *ctx, un_arena *arena)
{
    const un_sizing_def *def = a->def;
    un_part own = un_sizing_own(a->nodes);
    un_parallel_part(ctx, own, 1024, combine, a);
    if (a->film > 0 && def->wall) un_parallel_part(ctx, own, 1024, use_film, a);
    if (a->solid > 0 && def->narrow) un_parallel_part(ctx, own, 2048, use_narrow, a);
    if (a->mouth > 0 && def->sources) UN_TRY(use_sources(a, ctx, arena));
    return def->scene->def.sizing.has_custom ? use_custom(a, arena) : UN_OK;
}

un_status un_sizing_evaluate(un_context *ctx, un_arena *arena, float *size,
                             const un_sizing_def *def)
{
    const un_sizing_nodes *nodes = def->nodes;
    const un_scene_def *scene = &def->scene->def;
    un_vec3 sides = scene->domain.size;
    double narrow = fmin(sides.x, sides.y);
    if (nodes->dim == 3) narrow = fmin(sides.x, fmin(sides.y, sides.z));
    sizing_args args = {.def = def,
                        .nodes = nodes,
                        .slopes = nodes->slopes ? nodes->slopes : &un_sizing_slopes_near,
                        .size = size,
                        .h = nodes->finest,
                        .coarsest = fmax(fmin(nodes->coarsest, narrow / SIDE_CELLS), nodes->finest),
                        .depth = GRADE * scene->sizing.depth,
                        .curvature = CURVATURE * scene->sizing.curvature,
                        .solid = SOLID_CURVATURE * scene->sizing.solid_curvature,
                        .strain = STRAIN * scene_speed(scene) * scene->sizing.strain,
                        .film = FILM * scene->sizing.film,
                        .mouth = SOURCE * scene->sizing.sources};
    sizing_args *a = &args;
    bool any = scene->sizing.depth > 0 || scene->sizing.curvature > 0 ||
               scene->sizing.solid_curvature > 0 || scene->sizing.strain > 0 ||
               scene->sizing.film > 0;
    /* With all of these off the sizes are those of custom and sources alone. */
    a->surface = any ? fmax(SURFACE_SHARE * a->coarsest, a->h) : a->coarsest;
    a->reach = a->depth > 0 ? a->surface / a->depth : INFINITY;
    if (scene->sizing.has_camera) {
        un_viewpoint camera;
        un_status status = un_scene_camera(def->scene, def->time, &camera);
        UN_TRY(un_sizing_agree(ctx, nodes, status));
        a->view = make_view(&camera);
    }
    un_parallel_part(ctx, un_sizing_own(nodes), 2048, start, a);
    UN_TRY(use_terms(a, ctx, arena));
    UN_TRY(un_sizing_agree(ctx, nodes, use_others(a, ctx, arena)));
    double grade = fmin(1, GRADE * fmax(1, scene->sizing.depth));
    return un_sizing_limit(ctx, arena, size, nodes, grade);
}
