/* The level set beyond walls on tets: the mirror image, sheared to the contact angle, as on the
 * grid (contact.c). Solids have nodes in them that take it; sides of the domain have none, and only
 * the slope across them is given. */
#include "tension/tet_contact.h"

/* Cells into a wall. */
#define DEPTH 4.0
/* Steeper angles, degrees, are taken for this one, and a shear moves no point by more cells. */
#define STEEPEST 12.0
#define SHEAR_MAX 8.0
/* As in contact.c. */
#define MEETS 0.2
/* Cells from a wall within which a node counts as lying on it. */
#define ON_WALL 0.3

static double size_at(const un_tension_tets *in, int64_t n)
{
    return un_octree_size(in->mesh->tree, in->mesh->node_level[n]);
}

/* Nearer to a solid than to a side. */
static bool is_at_solid(const un_tension_tets *in, int64_t n)
{
    const un_tet_walls *w = in->walls;
    return w && w->phi_solid && w->body[n] >= 0 &&
           w->phi_solid[n] <= w->phi[n] + 1e-6f * (float)size_at(in, n);
}

static double angle_at(const un_tension_tets *in, int64_t n)
{
    const un_scene_def *def = in->def;
    return is_at_solid(in, n) ? def->solids[in->walls->body[n]].contact_angle
                              : def->domain.contact_angle;
}

double un_contact_cosine(const un_tension_tets *in, int32_t n)
{
    double degrees = angle_at(in, n);
    return degrees == 90 ? 0 : cos(degrees * UN_PI / 180);
}

static double cot_at(const un_tension_tets *in, int64_t n)
{
    double degrees = angle_at(in, n);
    if (degrees == 90) return 0;
    double theta = un_clamp(degrees, STEEPEST, 180 - STEEPEST) * UN_PI / 180;
    return cos(theta) / sin(theta);
}

/* Away from the wall next to node n. */
static un_vec3 normal_at(const un_tension_tets *in, int64_t n)
{
    un_vec3 x = in->mesh->x[n], size = in->mesh->tree->size;
    if (is_at_solid(in, n))
        return un_body_normal(&in->walls->walls->bodies->body[in->walls->body[n]], x);
    const double low[3] = {x.x, x.y, x.z}, high[3] = {size.x - x.x, size.y - x.y, size.z - x.z};
    un_vec3 normal = {0, 0, 0};
    double least = INFINITY;
    for (int side = 0; side < 6; side++) {
        double d = side % 2 ? high[side / 2] : low[side / 2], sign = side % 2 ? -1 : 1;
        if (in->def->domain.open[side] || d >= least) continue;
        least = d;
        normal =
            un_v3(side / 2 == 0 ? sign : 0, side / 2 == 1 ? sign : 0, side / 2 == 2 ? sign : 0);
    }
    return normal;
}

static double sample(const un_tension_tets *in, un_vec3 x, un_vec3 *slope)
{
    un_tets_place place;
    un_tets_locate(in->mesh, x, &place);
    const int32_t *n = in->mesh->tet[place.tet];
    double v[4], sum = 0;
    for (int i = 0; i < 4; i++) {
        v[i] = in->phi[n[i]];
        sum += place.w[i] * v[i];
    }
    *slope = un_tets_gradient(in->mesh, place.tet, v);
    return sum;
}

static un_vec3 tangent(un_vec3 slope, un_vec3 normal)
{
    return un_mad(slope, normal, -un_dot(slope, normal));
}

static double depth_at(const un_tension_tets *in, int64_t n)
{
    return in->walls && in->walls->cut && !in->mesh->parted ? -(double)in->walls->cut[n] : 0;
}

bool un_contact_may_matter(const un_tension_tets *in, int64_t n, double h)
{
    double depth = depth_at(in, n);
    return depth > 0 && depth < DEPTH * h && fabs((double)in->phi[n]) < SHEAR_MAX * h;
}

/* The mirror image of node n, if it is in a solid. */
static bool find_image(const un_tension_tets *in, int32_t n, un_vec3 *x)
{
    double h = size_at(in, n), depth = depth_at(in, n);
    if (!(depth > 0 && depth < DEPTH * h)) return false;
    un_vec3 normal = normal_at(in, n);
    *x = un_mad(in->mesh->x[n], normal, 2 * depth);
    return un_dot(normal, normal) > 0;
}

/* The image sheared to the contact angle, by the slope there. */
static un_vec3 shear(const un_tension_tets *in, int32_t n, un_vec3 x, un_vec3 slope)
{
    double h = size_at(in, n), cot = cot_at(in, n);
    if (cot == 0) return x;
    un_vec3 along = tangent(slope, normal_at(in, n));
    double way = un_clamp(2 * depth_at(in, n) * cot, -SHEAR_MAX * h, SHEAR_MAX * h);
    return un_mad(x, along, -way / fmax(un_length(along), MEETS));
}

float un_contact_value(const un_tension_tets *in, int32_t n)
{
    un_vec3 x, slope;
    if (!find_image(in, n, &x)) return in->phi[n];
    double value = sample(in, x, &slope);
    if (cot_at(in, n) == 0) return (float)value;
    return (float)sample(in, shear(in, n, x, slope), &slope);
}

/* ---- over ranks ---- */

un_status un_contact_values_ranks(un_context *ctx, un_arena *arena, const un_tension_tets *in,
                                  const int32_t *node, float *value, un_part own)
{
    size_t room = (size_t)(own.end - own.begin) + 1;
    un_vec3 *x = un_arena_alloc(arena, room, sizeof *x);
    int64_t *which = un_arena_alloc(arena, room, sizeof *which), count = 0;
    un_tets_sampled *answers = un_arena_alloc(arena, room, sizeof *answers);
    UN_TRY(un_ranks_agree(ctx, x && which && answers ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t q = own.begin; q < own.end; q++)
        if (find_image(in, node[q], &x[count])) which[count++] = q;
    UN_TRY(un_tets_ask(in->mesh, in->phi, x, count, answers));
    for (int64_t k = 0; k < count; k++) x[k] = shear(in, node[which[k]], x[k], answers[k].slope);
    UN_TRY(un_tets_ask(in->mesh, in->phi, x, count, answers));
    for (int64_t k = 0; k < count; k++) value[which[k]] = (float)answers[k].value;
    return UN_OK;
}

static bool is_on_wall(const un_tension_tets *in, int32_t n)
{
    return in->walls && (double)in->walls->phi[n] < ON_WALL * size_at(in, n);
}

bool un_contact_is_in_solid(const un_tension_tets *in, int32_t n)
{
    return is_on_wall(in, n) && is_at_solid(in, n);
}

un_vec3 un_contact_slope(const un_tension_tets *in, int32_t n, un_vec3 slope)
{
    if (!is_on_wall(in, n)) return slope;
    un_vec3 normal = normal_at(in, n), along = tangent(slope, normal);
    return un_mad(along, normal, cot_at(in, n) * un_length(along));
}
