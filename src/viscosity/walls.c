/* Walls for viscous liquid: nodes on or inside solids and closed sides stick to them [Batty11
 * section 4], or slide along them. */
#include "viscosity/viscosity.h"

void un_viscous_walls_free(un_context *ctx, un_viscous_walls *w)
{
    un_free(ctx, w->kind);
    un_free(ctx, w->u);
    un_free(ctx, w->body);
    un_free(ctx, w->free);
    un_free(ctx, w->held);
    *w = (un_viscous_walls){0};
}

un_vec3 un_viscous_given(const un_viscous_walls *w, int64_t n)
{
    return un_sub(w->u[n], un_block_times(w->free[n], w->u[n]));
}

void un_viscous_free_row(const un_viscous_walls *w, int64_t node_count, int64_t n, const un_row *r,
                         double (*val)[9], un_vec3 *b)
{
    bool here = w->kind[n] == UN_WALL_SLIDES;
    double scale = (val[0][0] + val[0][4] + val[0][8]) / 3, product[9];
    for (int k = 0; k < r->count; k++) {
        int32_t j = r->place[k];
        if (j < node_count && w->kind[j] == UN_WALL_SLIDES) {
            *b = un_sub(*b, un_block_times(val[k], un_viscous_given(w, j)));
            un_block_product(product, val[k], w->free[j]);
            memcpy(val[k], product, sizeof product);
        }
        if (here) {
            un_block_product(product, w->free[n], val[k]);
            memcpy(val[k], product, sizeof product);
        }
    }
    if (!here) return;
    *b = un_block_times(w->free[n], *b);
    for (int c = 0; c < 9; c++) val[0][c] += scale * ((c % 4 == 0) - w->free[n][c]);
}

typedef struct find_args {
    un_viscous_walls *w;
    const un_tet_walls *tw;
    double snap;
} find_args;

/* The sides that x lies on or beyond, as a bit mask by UN_SIDE_. */
static uint32_t sides_at(const un_tet_walls *tw, un_vec3 x, double snap)
{
    const un_scene_def *def = &tw->walls->scene->def;
    double at[3] = {x.x, x.y, x.z},
           top[3] = {def->domain.size.x, def->domain.size.y, def->domain.size.z};
    uint32_t sides = 0;
    for (int a = 0; a < 3; a++) {
        if (!def->domain.open[2 * a] && at[a] < snap) sides |= 1u << 2 * a;
        if (!def->domain.open[2 * a + 1] && at[a] > top[a] - snap) sides |= 2u << 2 * a;
    }
    return sides;
}

/* Removes a direction from the free ones. */
static void hold(double free[9], un_vec3 n)
{
    /* the part of n that is still free */
    un_vec3 m = un_v3(free[0] * n.x + free[1] * n.y + free[2] * n.z,
                      free[3] * n.x + free[4] * n.y + free[5] * n.z,
                      free[6] * n.x + free[7] * n.y + free[8] * n.z);
    if (un_length(m) < 1e-3) return;
    m = un_normalize(m);
    double v[3] = {m.x, m.y, m.z};
    for (int c = 0; c < 9; c++) free[c] -= v[c / 3] * v[c % 3];
}

static void find_nodes(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    un_viscous_walls *w = a->w;
    const un_tet_walls *tw = a->tw;
    const un_scene_def *def = &tw->walls->scene->def;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 x = tw->mesh->x[n];
        w->kind[n] = UN_WALL_NONE;
        w->u[n] = un_v3(0, 0, 0);
        if (w->body) w->body[n] = -1;
        if (tw->phi[n] > 0) continue;
        uint32_t sides = sides_at(tw, x, a->snap);
        bool solid = tw->phi_solid && tw->phi_solid[n] <= a->snap;
        const un_body *body = solid ? &tw->walls->bodies->body[tw->body[n]] : NULL;
        double slip = INFINITY;
        for (int side = 0; side < 6; side++)
            if (sides >> side & 1) slip = fmin(slip, def->domain.slip[side]);
        if (body) slip = fmin(slip, body->slip);
        if (body)
            w->u[n] = body->free ? un_body_velocity_before(body, x) : un_body_velocity(body, x);
        if (body && body->free) w->body[n] = tw->body[n];
        w->kind[n] = slip > 0 ? UN_WALL_SLIDES : UN_WALL_STICKS;
        if (w->kind[n] == UN_WALL_STICKS || !w->slides) continue;
        double *free = w->free[n];
        memset(free, 0, sizeof w->free[n]);
        for (int c = 0; c < 9; c += 4) free[c] = 1;
        for (int axis = 0; axis < 3; axis++)
            if (sides >> 2 * axis & 3) hold(free, un_v3(axis == 0, axis == 1, axis == 2));
        if (body) hold(free, un_tet_walls_normal(tw, n));
    }
}

static un_status need(un_context *ctx, un_viscous_walls *w, const un_tet_walls *tw)
{
    size_t nodes = (size_t)tw->mesh->node_count + 1;
    const un_scene_def *def = &tw->walls->scene->def;
    w->slides = false;
    for (int side = 0; side < 6; side++)
        w->slides |= !def->domain.open[side] && def->domain.slip[side] > 0;
    const un_bodies *bodies = tw->walls->bodies;
    for (int32_t b = 0; b < bodies->count; b++) w->slides |= bodies->body[b].slip > 0;
    UN_TRY(un_array_need(ctx, (void **)&w->kind, &w->capacity[0], nodes, sizeof *w->kind));
    UN_TRY(un_array_need(ctx, (void **)&w->held, &w->capacity[3], nodes, sizeof *w->held));
    UN_TRY(un_array_need(ctx, (void **)&w->u, &w->capacity[1], nodes, sizeof *w->u));
    if (bodies->free_count > 0)
        UN_TRY(un_array_need(ctx, (void **)&w->body, &w->capacity[4], nodes, sizeof *w->body));
    if (!w->slides) return UN_OK;
    return un_array_need(ctx, (void **)&w->free, &w->capacity[2], nodes, sizeof *w->free);
}

un_status un_viscous_walls_find(un_context *ctx, un_viscous_walls *w, const un_tet_walls *tw)
{
    find_args a = {w, tw, 1e-6 * tw->mesh->tree->h};
    UN_TRY(un_tets_agree(tw->mesh, need(ctx, w, tw)));
    un_parallel_for(ctx, tw->mesh->node_count, 2048, find_nodes, &a);
    if (!w->slides) return UN_OK;
    un_field field = {"free", w->free, NULL, sizeof *w->free};
    return un_tets_share(tw->mesh, &field, 1); /* normals need all tets around a node */
}

static void follow(void *arg, int64_t begin, int64_t end)
{
    find_args *a = arg;
    const un_body *bodies = a->tw->walls->bodies->body;
    for (int64_t n = begin; n < end; n++) {
        int32_t b = a->w->body[n];
        if (b >= 0) a->w->u[n] = un_body_velocity(&bodies[b], a->tw->mesh->x[n]);
    }
}

void un_viscous_walls_follow(un_context *ctx, un_viscous_walls *w, const un_tet_walls *tw)
{
    find_args a = {.w = w, .tw = tw};
    if (w->body) un_parallel_for(ctx, tw->mesh->node_count, 8192, follow, &a);
}

/* Area of the tet's face opposite corner k, m2: 3 V |grad N_k|. */
static double face_area(const un_tets *mesh, int32_t t, int k)
{
    const double *g = un_tets_shape(mesh, t)->gradient[k];
    double length = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) / un_tets_size(mesh, t);
    return 3 * un_tets_volume(mesh, t) * length;
}

double un_viscous_wall_drag(const un_tet_walls *tw, int32_t t, int i)
{
    const un_tets *mesh = tw->mesh;
    const int32_t *n = mesh->tet[t];
    const double *slip = tw->walls->scene->def.domain.slip;
    double snap = 1e-6 * mesh->tree->h, drag = 0;
    uint32_t sides[4];
    for (int k = 0; k < 4; k++) sides[k] = sides_at(tw, mesh->x[n[k]], snap);
    for (int k = 0; k < 4; k++) {
        uint32_t face = sides[(k + 1) % 4] & sides[(k + 2) % 4] & sides[(k + 3) % 4];
        for (int side = 0; side < 6 && k != i; side++)
            if (face >> side & 1) drag += face_area(mesh, t, k) / (3 * slip[side]);
    }
    /* The area of a cut inside the tet: how fast the open volume grows as the wall recedes. It is
     * divided among the nodes in the wall. */
    double v[4], more[4], less[4], step = 1e-4 * un_tets_size(mesh, t);
    int inside = 0;
    for (int k = 0; k < 4; k++) {
        v[k] = tw->cut ? tw->cut[n[k]] : 1;
        more[k] = v[k] + step;
        less[k] = v[k] - step;
        inside += v[k] <= 0;
    }
    if (inside == 0 || inside == 4 || v[i] > 0) return drag;
    bool solid = tw->phi_solid && tw->phi_solid[n[i]] <= snap;
    double length = solid ? tw->walls->bodies->body[tw->body[n[i]]].slip : INFINITY;
    for (int side = 0; side < 6 && !solid; side++)
        if (sides[i] >> side & 1) length = fmin(length, slip[side]);
    double slope = un_length(un_tets_gradient(mesh, t, v));
    double rate = (un_tet_fraction(more) - un_tet_fraction(less)) / (2 * step);
    return drag + rate * slope * un_tets_volume(mesh, t) / (inside * length);
}

/* ---- held by walls and emitters ---- */

typedef struct hold_args {
    un_viscous_walls *w;
    const un_tets *mesh;
    const un_mixture *mix;
    const un_scene_def *def;
    double time;
    un_vec3 *u;     /* at nodes */
    uint8_t *known; /* at nodes */
} hold_args;

static void hold_emitters(void *arg, int64_t begin, int64_t end)
{
    hold_args *a = arg;
    for (int32_t i = 0; i < a->def->source_count; i++) {
        const un_source *source = &a->def->sources[i];
        bool active = un_source_active(source, a->time);
        if (source->kind != UN_SOURCE_EMITTER || !active) continue;
        un_box3 box = un_shape_bounds(source->shape);
        for (int64_t n = begin; n < end; n++) {
            un_vec3 x = a->mesh->x[n];
            bool near = x.x > box.min.x && x.y > box.min.y && x.z > box.min.z && x.x < box.max.x &&
                        x.y < box.max.y && x.z < box.max.z;
            if (!near || !(un_shape_distance(source->shape, x) < 0)) continue;
            a->w->kind[n] = UN_WALL_STICKS;
            a->w->u[n] = source->velocity;
            if (a->w->body) a->w->body[n] = -1;
        }
    }
}

static void hold_nodes(void *arg, int64_t begin, int64_t end)
{
    hold_args *a = arg;
    un_viscous_walls *w = a->w;
    for (int64_t n = begin; n < end; n++) {
        w->held[n] = w->kind[n] == UN_WALL_STICKS && un_mixture_viscosity(a->mix, n) > 0;
        if (!w->held[n]) continue;
        if (w->body && w->body[n] >= 0) w->held[n] = 2;
        a->u[n] = w->u[n];
        a->known[n] = 1;
    }
}

void un_viscous_walls_hold(un_context *ctx, un_viscous_walls *walls, un_vec3 *u_node,
                           uint8_t *known_node, const un_tets *mesh, const un_mixture *mix,
                           const un_scene_def *def, double time)
{
    hold_args a = {.w = walls,
                   .mesh = mesh,
                   .mix = mix,
                   .def = def,
                   .time = time,
                   .u = u_node,
                   .known = known_node};
    un_parallel_for(ctx, mesh->node_count, 8192, hold_emitters, &a);
    un_parallel_for(ctx, mesh->node_count, 8192, hold_nodes, &a);
}

typedef struct stick_args {
    const un_viscous_walls *w;
    un_vec3 *u, *was; /* at nodes */
} stick_args;

static void stick(void *arg, int64_t begin, int64_t end)
{
    stick_args *a = arg;
    for (int64_t n = begin; n < end; n++) {
        if (a->w->held[n] == 1) a->u[n] = a->w->u[n];
        a->was[n] = a->u[n];
    }
}

void un_viscous_walls_stick(un_context *ctx, const un_viscous_walls *walls, un_vec3 *u_node,
                            un_vec3 *was, int64_t nodes)
{
    stick_args a = {walls, u_node, was};
    un_parallel_for(ctx, nodes, 8192, stick, &a);
}
