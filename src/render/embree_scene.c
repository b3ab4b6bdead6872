/* The world that rays meet: Embree holds the triangles, the floor is the plane y = 0. */
#include "render/embree.h"

#include <stdio.h>

#define FAR 1e9f
#define PASSES_MAX 8 /* faces that a ray passes straight on its way */

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
    if (r->device) rtcReleaseDevice(r->device);
    r->world = NULL;
    r->device = NULL;
}

static void attach(un_renderer *r, const un_render_mesh *m, unsigned id)
{
    RTCGeometry g =
        m->triangle_count ? rtcNewGeometry(r->device, RTC_GEOMETRY_TYPE_TRIANGLE) : NULL;
    if (!g) return;
    rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, m->position, 0,
                               sizeof *m->position, (size_t)m->vertex_count);
    rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, m->triangle, 0,
                               sizeof *m->triangle, (size_t)m->triangle_count);
    rtcCommitGeometry(g);
    rtcAttachGeometryByID(r->world, g, id);
    rtcReleaseGeometry(g);
}

un_status un_world_build(un_renderer *r)
{
    if (r->world) rtcReleaseScene(r->world);
    r->world = rtcNewScene(r->device);
    UN_TRY(embree_status(r));
    /* Without it rays slip between neighbouring triangles and are lost inside water. */
    rtcSetSceneFlags(r->world, RTC_SCENE_FLAG_ROBUST);
    attach(r, &r->water, UN_HIT_WATER);
    attach(r, &r->solids, UN_HIT_SOLID);
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

/* Whether a ray goes straight on through a face that it meets from behind. */
static bool lets_pass(const un_render_face *face, bool from_behind)
{
    return from_behind && (face->kind == UN_FACE_TOUCH || face->kind == UN_FACE_CUTAWAY);
}

un_hit un_world_hit(const un_renderer *r, un_fvec o, un_fvec d)
{
    un_hit hit = {.kind = UN_HIT_SKY, .t = FAR, .n = {0, 1, 0}, .ng = {0, 1, 0}};
    if (d[1] < 0) {
        hit.kind = UN_HIT_FLOOR;
        hit.t = fminf(fmaxf(-o[1] / d[1], 0), FAR);
    }
    struct RTCRayHit q = {.ray = {.org_x = o[0],
                                  .org_y = o[1],
                                  .org_z = o[2],
                                  .dir_x = d[0],
                                  .dir_y = d[1],
                                  .dir_z = d[2],
                                  .mask = ~0u}};
    struct RTCIntersectContext context;
    rtcInitIntersectContext(&context);
    const un_render_mesh *m;
    const un_render_face *face;
    un_fvec ng;
    for (int32_t pass = 0;; pass++) {
        q.ray.tfar = hit.t;
        q.hit.geomID = q.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
        rtcIntersect1(r->world, &context, &q);
        if (q.hit.geomID == RTC_INVALID_GEOMETRY_ID) {
            hit.p = o + d * hit.t;
            return hit;
        }
        if (q.hit.geomID > UN_HIT_SOLID) return extra_hit(r, &q, o, d);
        m = q.hit.geomID == UN_HIT_WATER ? &r->water : &r->solids;
        face = &m->face[q.hit.primID];
        ng = un_fnormalize(un_f3(q.hit.Ng_x, q.hit.Ng_y, q.hit.Ng_z));
        if (pass >= PASSES_MAX || !lets_pass(face, un_fdot(d, ng) > 0)) break;
        q.ray.tnear = q.ray.tfar + UN_RAY_OFFSET;
    }
    float w[3] = {1 - q.hit.u - q.hit.v, q.hit.u, q.hit.v};
    un_fvec n = shading_normal(face, w, ng);
    hit.kind = (int32_t)q.hit.geomID;
    hit.colour = r->studio.solid;
    hit.t = q.ray.tfar;
    hit.p = o + d * hit.t;
    hit.flat = face->kind == UN_FACE_FLAT;
    hit.from_inside = un_fdot(d, ng) > 0;
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
