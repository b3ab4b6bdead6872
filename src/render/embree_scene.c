/* The world that rays meet: Embree holds the triangles, the floor is the plane y = 0. */
#include "render/embree.h"

#include <stdio.h>

#define FAR 1e9f
#define FACES_MAX 8  /* of water that is_wet looks at */
#define STANDS 1e-4f /* glass this near the floor stands on it, internal lengths */

static void on_error(void *user, enum RTCError code, const char *text)
{
    un_renderer *r = user;
    snprintf(r->embree_message, sizeof r->embree_message, "%s (error %d)", text ? text : "", code);
}

/* The first error since the last call. */
static un_status embree_status(un_renderer *r)
{
    enum RTCError code = rtcGetDeviceError(r->device);
    if (code == RTC_ERROR_NONE) return UN_OK;
    if (code == RTC_ERROR_OUT_OF_MEMORY)
        return un_fail(r->ctx, UN_ERROR_MEMORY,
                       "out of memory: Embree cannot allocate what it needs to trace a frame; "
                       "lower detail.surface");
    return un_fail(r->ctx, UN_ERROR_UNAVAILABLE, "Embree cannot trace on this machine: %s",
                   r->embree_message);
}

un_status un_world_create(un_renderer *r)
{
    /* One thread: with several the tree depends on chance, and with it which of two triangles a ray
     * through their common edge meets. Nothing is read from the environment. */
    r->device = rtcNewDevice("ignore_config_files=1,threads=1,verbose=0");
    if (r->device) rtcSetDeviceErrorFunction(r->device, on_error, r);
    return embree_status(r);
}

void un_world_destroy(un_renderer *r)
{
    if (r->world) rtcReleaseScene(r->world);
    if (r->liquid) rtcReleaseScene(r->liquid);
    if (r->device) rtcReleaseDevice(r->device);
    r->world = r->liquid = NULL;
    r->device = NULL;
}

/* What a ray brings along. */
typedef struct ray_context {
    struct RTCIntersectContext embree; /* first */
    bool in_glass;
} ray_context;

/* Embree asks for every face on the way; 0 in valid: the ray goes straight on. Faces of water and
 * of a solid may coincide: a ray that was stopped at one and started again behind it could miss the
 * other. */
static void let_pass(const struct RTCFilterFunctionNArguments *a)
{
    const un_render_mesh *m = a->geometryUserPtr;
    const ray_context *context = (const ray_context *)a->context;
    const struct RTCRay *ray = (const struct RTCRay *)a->ray;
    const struct RTCHit *hit = (const struct RTCHit *)a->hit;
    uint8_t kind = m->face[hit->primID].kind;
    bool from_behind = ray->dir_x * hit->Ng_x + ray->dir_y * hit->Ng_y + ray->dir_z * hit->Ng_z > 0;
    if (kind == UN_FACE_WET || (context->in_glass && hit->geomID == UN_HIT_WATER) ||
        (from_behind && (kind == UN_FACE_TOUCH || kind == UN_FACE_CUTAWAY)))
        a->valid[0] = 0;
}

static void attach(un_renderer *r, RTCScene scene, const un_render_mesh *m, unsigned id)
{
    RTCGeometry g =
        m->triangle_count ? rtcNewGeometry(r->device, RTC_GEOMETRY_TYPE_TRIANGLE) : NULL;
    if (!g) return;
    rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, m->position, 0,
                               sizeof *m->position, (size_t)m->vertex_count);
    rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, m->triangle, 0,
                               sizeof *m->triangle, (size_t)m->triangle_count);
    rtcSetGeometryUserData(g, (void *)(uintptr_t)m);
    if (scene == r->world) rtcSetGeometryIntersectFilterFunction(g, let_pass);
    rtcCommitGeometry(g);
    rtcAttachGeometryByID(scene, g, id);
    rtcReleaseGeometry(g);
}

static un_status new_scene(un_renderer *r, RTCScene *scene)
{
    if (*scene) rtcReleaseScene(*scene);
    *scene = rtcNewScene(r->device);
    UN_TRY(embree_status(r));
    /* Without it rays slip between neighbouring triangles and are lost inside water. */
    rtcSetSceneFlags(*scene, RTC_SCENE_FLAG_ROBUST);
    return UN_OK;
}

un_status un_world_build(un_renderer *r)
{
    if (r->glass) {
        UN_TRY(new_scene(r, &r->liquid));
        attach(r, r->liquid, &r->water, UN_HIT_WATER);
        rtcCommitScene(r->liquid);
    }
    UN_TRY(new_scene(r, &r->world));
    attach(r, r->world, &r->water, UN_HIT_WATER);
    attach(r, r->world, &r->solids, UN_HIT_SOLID);
    un_extra_attach(r);
    rtcCommitScene(r->world);
    return embree_status(r);
}

/* The normal for shading: interpolated, unless the triangle is flat, and never far from the
 * triangle's own, as it might be in a crumpled mesh. */
static un_fvec shading_normal(const un_render_face *f, const float w[3], un_fvec ng)
{
    if (f->kind == UN_FACE_FLAT) return ng;
    un_fvec n = un_f3(0, 0, 0);
    for (int c = 0; c < 3; c++) n += un_fnormalize(un_normal_unpack(f->normal[c])) * w[c];
    float length = un_flength(n);
    if (length < 0.1f) return ng;
    n /= length;
    float along = un_fdot(n, ng);
    return along < 0 ? ng : along < 0.3f ? un_fnormalize(n + ng * (0.3f - along)) : n;
}

/* A particle or a cell. */
static un_hit extra_hit(const un_renderer *r, const struct RTCRayHit *q, un_fvec o, un_fvec d)
{
    un_hit hit = {.kind = UN_HIT_SOLID, .t = q->ray.tfar, .ambient = 1};
    hit.p = o + d * hit.t;
    hit.ng = un_fnormalize(un_f3(q->hit.Ng_x, q->hit.Ng_y, q->hit.Ng_z));
    if (un_fdot(d, hit.ng) > 0) hit.ng = -hit.ng;
    hit.n = hit.ng;
    hit.colour = un_extra_colour(r, q->hit.geomID, q->hit.primID, hit.p);
    return hit;
}

static struct RTCRayHit ray_query(un_fvec o, un_fvec d)
{
    return (struct RTCRayHit){.ray = {.org_x = o[0],
                                      .org_y = o[1],
                                      .org_z = o[2],
                                      .dir_x = d[0],
                                      .dir_y = d[1],
                                      .dir_z = d[2],
                                      .mask = ~0u}};
}

/* The next face of water along a ray up to `far`; *leaves: the ray leaves water there. */
static bool next_water(const un_renderer *r, struct RTCRayHit *q, float far, bool *leaves)
{
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    q->ray.tfar = far;
    q->hit.geomID = q->hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
    rtcIntersect1(r->liquid, &context, q);
    *leaves =
        q->ray.dir_x * q->hit.Ng_x + q->ray.dir_y * q->hit.Ng_y + q->ray.dir_z * q->hit.Ng_z > 0;
    return q->hit.geomID != RTC_INVALID_GEOMETRY_ID;
}

/* Whether water touches glass at p; n: out of the glass. The meshes overlap there or leave a gap,
 * so the water's face is searched on both sides; water on the other side of a thin wall shows it
 * its back. Where there is none, the place is deep in water or far from it. */
static bool is_wet(const un_renderer *r, un_fvec p, un_fvec n)
{
    bool leaves;
    struct RTCRayHit q = ray_query(p - n * r->reach, n);
    for (int32_t pass = 0; pass < FACES_MAX && next_water(r, &q, 2 * r->reach, &leaves); pass++) {
        if (!leaves || q.ray.tfar > r->reach) return true;
        q.ray.tnear = q.ray.tfar + UN_RAY_OFFSET;
    }
    q = ray_query(p + n * r->reach, un_f3(0, 1, 0));
    return next_water(r, &q, FAR, &leaves) && leaves;
}

un_medium un_medium_before(const un_hit *hit, un_medium at)
{
    if (hit->kind == UN_HIT_GLASS)
        return hit->from_inside ? (un_medium){false, at.glass > 1 ? at.glass : 1}
                                : (un_medium){!at.glass && hit->wet, at.glass};
    if (hit->kind == UN_HIT_WATER) return (un_medium){.water = hit->from_inside};
    return at;
}

un_medium un_medium_beyond(const un_hit *hit, un_medium at, float *eta)
{
    float outside = hit->wet ? UN_WATER_IOR : 1;
    int32_t glass = at.glass + (hit->from_inside ? -1 : 1);
    *eta = hit->from_inside ? UN_GLASS_IOR / outside : outside / UN_GLASS_IOR;
    if (at.glass > 0 && glass > 0) *eta = 1;
    return (un_medium){glass == 0 && hit->wet, glass};
}

un_fvec un_medium_absorb(const un_studio *s, un_medium at, float length)
{
    if (at.glass) return un_absorb(s->glass, length);
    return at.water ? un_absorb(s->absorption, length) : un_f3(1, 1, 1);
}

un_hit un_world_hit(const un_renderer *r, un_fvec o, un_fvec d, bool in_glass)
{
    un_hit hit = {.kind = UN_HIT_SKY, .t = FAR, .n = {0, 1, 0}, .ng = {0, 1, 0}};
    if (d[1] < 0) {
        hit.kind = UN_HIT_FLOOR;
        hit.t = fminf(fmaxf(-o[1] / d[1], 0), FAR);
    }
    struct RTCRayHit q = ray_query(o, d);
    ray_context context = {.in_glass = in_glass};
    rtcInitIntersectContext(&context.embree);
    q.ray.tfar = hit.t;
    q.hit.geomID = q.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
    rtcIntersect1(r->world, &context.embree, &q);
    if (q.hit.geomID == RTC_INVALID_GEOMETRY_ID) {
        hit.p = o + d * hit.t;
        return hit;
    }
    if (q.hit.geomID > UN_HIT_SOLID) return extra_hit(r, &q, o, d);
    const un_render_mesh *m = q.hit.geomID == UN_HIT_WATER ? &r->water : &r->solids;
    const un_render_face *face = &m->face[q.hit.primID];
    un_fvec ng = un_fnormalize(un_f3(q.hit.Ng_x, q.hit.Ng_y, q.hit.Ng_z));
    float w[3] = {1 - q.hit.u - q.hit.v, q.hit.u, q.hit.v};
    un_fvec n = shading_normal(face, w, ng);
    hit.kind = (int32_t)q.hit.geomID;
    hit.colour = r->studio.solid;
    hit.t = q.ray.tfar;
    hit.p = o + d * hit.t;
    hit.flat = face->kind == UN_FACE_FLAT;
    hit.from_inside = un_fdot(d, ng) > 0;
    if (face->kind == UN_FACE_GLASS) {
        /* Glass that stands on the floor does not end before it. */
        hit.kind = hit.from_inside && hit.p[1] < STANDS ? UN_HIT_FLOOR : UN_HIT_GLASS;
        hit.wet = hit.kind == UN_HIT_GLASS && is_wet(r, hit.p, ng);
    }
    if (hit.from_inside) {
        ng = -ng;
        n = -n;
    }
    /* A ray that sees the front of the triangle must see the front of its normal too. */
    float facing = -un_fdot(d, n);
    if (facing < 1e-3f) n = un_fnormalize(n + d * (facing - 1e-3f));
    hit.ng = ng;
    hit.n = n;
    for (int c = 0; c < 3; c++) hit.ambient += w[c] * (float)face->ambient[c] * (1 / 255.0f);
    return hit;
}
