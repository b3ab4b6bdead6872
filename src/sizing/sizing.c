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
 * Discretely: grad phi is constant in a tet; the divergence at a node is that of the linear
 * elements, lumped,
 *
 *     kappa_n = - sum_t V_t grad(lambda_n) . (m_t - m_n) / sum_t V_t / 4,   m = grad phi/|grad
 * phi|,
 *
 * m_n the mean of the m_t around the node, which changes nothing inside the mesh and makes flat
 * surfaces flat at its boundary. kappa is taken at nodes within BAND cells of the surface and
 * averaged over neighbours twice. The strain of a node is the mean of its tets that are all liquid.
 *
 * Departures from the paper. (1) It multiplies by W where only a division makes sense: its size
 * would shrink to nothing away from solids. (2) Its curvature is that of an extracted mesh, carried
 * along; ours also sees where grad phi flips inside a band, that is sheets and films thinner than
 * about three cells, however flat, and refines them before they tear. (3) Its factors 0.8 and 30
 * have no stated units or are far too lenient for edges: CURVATURE and STRAIN below. (4) d = |phi|
 * as a radius lets cells grow as fast as a balanced tree can and leaves fine liquid beside coarse
 * cells, where particles get stuck; here d = GRADE |phi|, and the same bound holds along the
 * surface (un_sizing_limit). It replaces extrapolation: what the surface asks for reaches the nodes
 * around it through the bound. (5) Shallow liquid over a wall has a term of its own, FILM. */
#include "sizing/near.h"

/* A cell's edge times the curvature: a ridge of radius R has cells of R / 2, a ball cells of R / 4.
 * On cells of edge h the curvature above shows as 0.72 / h at a right-angled edge, 1.2 / h or more
 * in sheets of up to three cells, 0.85 / h on a ball of three cells' radius: all ask for cells
 * below h / sqrt(2), so the mesh goes on halving them until they are resolved or finest. Noise in
 * phi of a tenth of a cell shows as 0.09 / h, 0.2 / h at the brick's boundary, and lets cells
 * double (test_sizing.c). The paper's 0.8 as a radius, 3.2 as an edge, would never ask for finer
 * cells than those that show the curvature. */
#define CURVATURE 0.5
/* For solids, which do not move and bear less: twice as large, as in the paper. */
#define SOLID_CURVATURE 1.0
/* But where solids are so thin, or curved so much, that cells cannot tell: a plate shows as 1.05 /
 * h up to three quarters of a cell's thickness, as 0.98 / h at one and a half, 0.72 / h at three
 * like any right-angled edge. Below one and a half cells are halved, down to the finest: liquid on
 * one side must not feel what is on the other. */
#define SOLID_UNRESOLVED 0.95
/* In cells: where curvature is taken. */
#define BAND 1.5
#define SMOOTHINGS 2
/* Difference of speed across a cell that is still calm, as a share of sqrt(g H), H the domain's
 * height. A dam break of 8 to 64 cells has at most 39 thousand particles at 0.15, 24 at 0.3 and 23
 * at 0.6 (94 thousand without sizing), and at 0.6 fewer in its front; the kinetic energies differ
 * by 5 %. */
#define STRAIN 0.3
/* Cells over the thickness of liquid between its surface and a wall along it: four particles deep,
 * however coarse the scene's cells may be; but never below FILM_LEAST finest cells, for liquid that
 * runs down a wall would be all fine. A basin of 0.75 m in cells of 1 m moved at 0.7 m/s. */
#define FILM 0.5
#define FILM_LEAST 4.0
#define FILM_ALONG 0.7 /* cosine between the directions away from both */
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
    const un_tets *mesh;
    const float *phi; /* of the surface whose curvature is computed */
    double h, coarsest, surface;
    double depth, curvature, solid, strain; /* edges: times |phi|, over kappa, kappa_s, |e| */
    double film;                            /* times thickness */
    double reach;                           /* |phi| beyond which only depth counts */
    float (*normal)[3];                     /* at tets, of phi */
    float *norm;                            /* at tets: |e|, < 0 where it is not known */
    float *kappa[2];                        /* at nodes */
    float *size;
    uint8_t *used; /* nodes that matter */
    near_nodes near;
    double edge[UN_LEVELS_MAX], volume[UN_LEVELS_MAX]; /* of leaves */
    view view;
} sizing_args;

static inline bool in_band(const sizing_args *a, int32_t n)
{
    return a->used[n] && fabs(a->phi[n]) < BAND * a->edge[a->mesh->node_level[n]];
}

static void choose_nodes(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        a->used[n] = a->def->phi[n] < AIR_REACH * a->edge[a->mesh->node_level[n]];
        a->size[n] = (float)a->surface;
    }
}

static inline double volume_of(const sizing_args *a, int32_t t)
{
    return un_tets_shape(a->mesh, t)->volume * a->volume[a->mesh->level[t]];
}

/* ---- curvature ---- */

/* Unit normals of the tets that touch a node in the band. */
static void find_normals(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = mesh->tet[t];
        if (!in_band(a, n[0]) && !in_band(a, n[1]) && !in_band(a, n[2]) && !in_band(a, n[3]))
            continue;
        /* phi may be infinite on one side of a coarse cell */
        double v[4], most = 4 * a->edge[mesh->level[t]];
        for (int i = 0; i < 4; i++) v[i] = un_clamp(a->phi[n[i]], -most, most);
        un_vec3 m = un_normalize(un_tets_gradient(mesh, (int32_t)t, v));
        a->normal[t][0] = (float)m.x;
        a->normal[t][1] = (float)m.y;
        a->normal[t][2] = (float)m.z;
    }
}

static void find_curvature(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->kappa[0][n] = 0;
        if (!in_band(a, (int32_t)n)) continue;
        double m[3] = {0}, g[3] = {0}, flux = 0, whole = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] >> 2;
            const double *gradient = un_tets_shape(mesh, t)->gradient[mesh->corner[k] & 3];
            double v = volume_of(a, t), w = v / a->edge[mesh->level[t]];
            whole += v;
            for (int axis = 0; axis < 3; axis++) {
                m[axis] += v * a->normal[t][axis];
                g[axis] += w * gradient[axis];
                flux -= w * gradient[axis] * a->normal[t][axis];
            }
        }
        if (!(whole > 0)) continue;
        for (int axis = 0; axis < 3; axis++) flux += g[axis] * m[axis] / whole;
        a->kappa[0][n] = (float)(4 * flux / whole);
    }
}

/* The mean with the neighbours, as far as they are in the band. */
static void smooth_curvature(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const near_nodes *near = &a->near;
    for (int64_t n = begin; n < end; n++) {
        a->kappa[1][n] = 0;
        if (!in_band(a, (int32_t)n)) continue;
        double sum = a->kappa[0][n], weight = 1;
        int64_t from = near_first(near, n), room = near_first(near, n + 1) - from;
        int64_t count = un_min64(near->count[n], room); /* of too many, those that are listed */
        for (int64_t j = from; j < from + count; j++) {
            int32_t m = near->node[j];
            if (!in_band(a, m)) continue;
            sum += a->kappa[0][m];
            weight++;
        }
        a->kappa[1][n] = (float)(sum / weight);
    }
}

static void take_curvature(sizing_args *a, un_context *ctx, const float *phi)
{
    const un_tets *mesh = a->mesh;
    a->phi = phi;
    un_parallel_for(ctx, mesh->tet_count, 4096, find_normals, a);
    un_parallel_for(ctx, mesh->node_count, 1024, find_curvature, a);
    for (int i = 0; i < SMOOTHINGS; i++) {
        un_parallel_for(ctx, mesh->node_count, 1024, smooth_curvature, a);
        float *swap = a->kappa[0];
        a->kappa[0] = a->kappa[1];
        a->kappa[1] = swap;
    }
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
        double kappa = fabs(a->kappa[0][n]), h = a->edge[a->mesh->node_level[n]];
        double size = a->solid / (w * w * w * kappa);
        bool close = fabs(a->phi[n]) < 0.75 * h; /* and not on the middle of something thick */
        if (close && kappa * h > SOLID_UNRESOLVED) size = fmin(size, CURVATURE / kappa);
        if (size < a->size[n]) a->size[n] = (float)size;
    }
}

/* ---- strain ---- */

static void find_strain(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_tets *mesh = a->mesh;
    const un_vec3 *u = a->def->velocity;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = mesh->tet[t];
        const float *phi = a->def->phi;
        bool wet = phi[n[0]] < 0 && phi[n[1]] < 0 && phi[n[2]] < 0 && phi[n[3]] < 0;
        bool deep = phi[n[0]] < -a->reach && phi[n[1]] < -a->reach && phi[n[2]] < -a->reach &&
                    phi[n[3]] < -a->reach;
        a->norm[t] = -1;
        if (!wet || deep) continue;
        const un_tet_shape *s = un_tets_shape(mesh, (int32_t)t);
        double g[3][3] = {{0}};
        for (int i = 0; i < 4; i++) {
            un_vec3 v = u[n[i]];
            for (int axis = 0; axis < 3; axis++) {
                g[0][axis] += v.x * s->gradient[i][axis];
                g[1][axis] += v.y * s->gradient[i][axis];
                g[2][axis] += v.z * s->gradient[i][axis];
            }
        }
        double xy = g[0][1] + g[1][0], yz = g[1][2] + g[2][1], zx = g[2][0] + g[0][2];
        double e2 = g[0][0] * g[0][0] + g[1][1] * g[1][1] + g[2][2] * g[2][2] +
                    0.5 * (xy * xy + yz * yz + zx * zx);
        a->norm[t] = (float)(sqrt(e2) / a->edge[mesh->level[t]]);
    }
}

static void use_strain(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        if (!(a->def->phi[n] < 0 && a->def->phi[n] >= -a->reach)) continue;
        double sum = 0, weight = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] >> 2;
            if (!(a->norm[t] >= 0)) continue;
            double v = volume_of(a, t);
            sum += v * a->norm[t];
            weight += v;
        }
        double size = a->strain * weight / sum;
        if (size < a->size[n]) a->size[n] = (float)size;
    }
}

/* ---- film ---- */

/* The direction of a field at a node: the mean over its tets. */
static un_vec3 direction_at(const sizing_args *a, int32_t n, const float *field)
{
    const un_tets *mesh = a->mesh;
    un_vec3 sum = {0, 0, 0};
    double most = 4 * a->edge[mesh->node_level[n]];
    for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
        int32_t t = mesh->corner[k] >> 2;
        double v[4];
        for (int i = 0; i < 4; i++) v[i] = un_clamp(field[mesh->tet[t][i]] - field[n], -most, most);
        sum = un_mad(sum, un_tets_gradient(mesh, t, v), volume_of(a, t));
    }
    return un_normalize(sum);
}

static void use_film(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const float *phi = a->def->phi, *wall = a->def->walls->phi;
    for (int64_t n = begin; n < end; n++) {
        if (!(phi[n] < 0)) continue;
        double size = a->film * a->def->scale * (fabs(phi[n]) + fmax(wall[n], 0));
        size = fmax(size, FILM_LEAST * a->h);
        if (!(size < a->size[n])) continue;
        un_vec3 up = direction_at(a, (int32_t)n, phi), away = direction_at(a, (int32_t)n, wall);
        if (un_dot(up, away) > FILM_ALONG) a->size[n] = (float)size;
    }
}

/* A speed that the scene makes of itself: of a fall through the domain, or what it is given. */
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

static void combine(void *arg, int64_t begin, int64_t end)
{
    sizing_args *a = arg;
    const un_scene_def *scene = &a->def->scene->def;
    double scale = a->def->scale;
    for (int64_t n = begin; n < end; n++) {
        double size = a->size[n];
        if (!a->used[n]) {
            a->size[n] = (float)a->coarsest;
            continue;
        }
        if (scene->sizing.has_camera && size < a->surface)
            size += (a->surface - size) * hidden(&a->view, a->mesh->x[n]);
        /* an infinite phi is far, one that is no number too */
        double depth = a->depth * fabs(a->def->phi[n]);
        if (a->depth > 0 && !(depth <= size)) size = depth <= a->coarsest ? depth : a->coarsest;
        a->size[n] = (float)un_clamp(scale * size, a->h, a->coarsest);
    }
}

/* ---- custom ---- */

static un_status use_custom(sizing_args *a, un_arena *arena)
{
    const un_sizing_def *def = a->def;
    const un_tets *mesh = a->mesh;
    int64_t count = 0, k = 0;
    for (int32_t n = 0; n < mesh->node_count; n++) count += a->used[n];
    un_vec3 *x = un_arena_alloc(arena, (size_t)count + 1, sizeof *x);
    float *size = un_arena_alloc(arena, (size_t)count + 1, sizeof *size);
    if (!x || !size) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < mesh->node_count; n++)
        if (a->used[n]) x[k++] = mesh->x[n];
    UN_TRY(un_scene_custom_sizes(def->scene, def->time, x, count, size));
    k = 0;
    for (int32_t n = 0; n < mesh->node_count; n++) {
        if (!a->used[n]) continue;
        double wanted = fmax(def->scale * size[k++], a->h);
        if (wanted < a->size[n]) a->size[n] = (float)wanted;
    }
    return UN_OK;
}

/* ---- all ---- */

static un_status use_terms(sizing_args *a, un_context *ctx, un_arena *arena)
{
    const un_sizing_def *def = a->def;
    const un_tets *mesh = a->mesh;
    size_t nodes = (size_t)mesh->node_count + 1, tets = (size_t)mesh->tet_count + 1;
    const float *solid = def->walls ? def->walls->phi_solid : NULL;
    bool curved = a->curvature > 0, solids = a->solid > 0 && solid;
    if (curved || solids) {
        a->normal = un_arena_alloc(arena, tets, sizeof *a->normal);
        a->kappa[0] = un_arena_alloc(arena, nodes, sizeof *a->kappa[0]);
        a->kappa[1] = un_arena_alloc(arena, nodes, sizeof *a->kappa[1]);
        if (!a->normal || !a->kappa[0] || !a->kappa[1]) return UN_ERROR_MEMORY;
    }
    if (curved) {
        take_curvature(a, ctx, def->phi);
        un_parallel_for(ctx, mesh->node_count, 8192, use_curvature, a);
    }
    if (solids) {
        take_curvature(a, ctx, solid);
        un_parallel_for(ctx, mesh->node_count, 8192, use_solid_curvature, a);
    }
    if (a->strain > 0 && def->velocity) {
        a->norm = un_arena_alloc(arena, tets, sizeof *a->norm);
        if (!a->norm) return UN_ERROR_MEMORY;
        un_parallel_for(ctx, mesh->tet_count, 4096, find_strain, a);
        un_parallel_for(ctx, mesh->node_count, 1024, use_strain, a);
    }
    return UN_OK;
}

un_status un_sizing_evaluate(un_context *ctx, un_arena *arena, float *size,
                             const un_sizing_def *def)
{
    const un_tets *mesh = def->mesh;
    const un_octree *tree = mesh->tree;
    const un_scene_def *scene = &def->scene->def;
    un_vec3 sides = scene->domain.size;
    double narrow = fmin(sides.x, fmin(sides.y, sides.z));
    sizing_args *a = un_arena_alloc(arena, 1, sizeof *a);
    if (!a) return UN_ERROR_MEMORY;
    *a =
        (sizing_args){.def = def,
                      .mesh = mesh,
                      .size = size,
                      .h = tree->h,
                      .coarsest = fmax(fmin(un_octree_size(tree, 0), narrow / SIDE_CELLS), tree->h),
                      .depth = GRADE * scene->sizing.depth,
                      .curvature = CURVATURE * scene->sizing.curvature,
                      .solid = SOLID_CURVATURE * scene->sizing.solid_curvature,
                      .strain = STRAIN * scene_speed(scene) * scene->sizing.strain,
                      .film = FILM * scene->sizing.film};
    bool any = scene->sizing.depth > 0 || scene->sizing.curvature > 0 ||
               scene->sizing.solid_curvature > 0 || scene->sizing.strain > 0 ||
               scene->sizing.film > 0;
    /* With every term off the sizes are the custom formula's alone. */
    a->surface = any ? fmax(SURFACE_SHARE * a->coarsest, a->h) : a->coarsest;
    a->reach = a->depth > 0 ? a->surface / a->depth : INFINITY;
    for (int32_t l = 0; l <= tree->level_max; l++) {
        a->edge[l] = un_octree_size(tree, l);
        a->volume[l] = a->edge[l] * a->edge[l] * a->edge[l];
    }
    if (scene->sizing.has_camera) {
        un_viewpoint camera;
        UN_TRY(un_scene_camera(def->scene, def->time, &camera));
        a->view = make_view(&camera);
    }
    a->used = un_arena_alloc(arena, (size_t)mesh->node_count + 1, 1);
    if (!a->used) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->node_count, 8192, choose_nodes, a);
    UN_TRY(un_near_build(ctx, arena, &a->near, mesh, a->used));
    UN_TRY(use_terms(a, ctx, arena));
    un_parallel_for(ctx, mesh->node_count, 4096, combine, a);
    if (a->film > 0 && def->walls && def->walls->phi)
        un_parallel_for(ctx, mesh->node_count, 1024, use_film, a);
    if (scene->sizing.has_custom) UN_TRY(use_custom(a, arena));
    double grade = fmin(1, GRADE * fmax(1, scene->sizing.depth));
    return un_sizing_limit(ctx, arena, size, &a->near, grade);
}
