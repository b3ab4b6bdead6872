/* Render: pictures of a run.
 *
 * Inside, lengths are in units of the domain's longest side, so that tolerances and the look of
 * the water do not depend on the size of the scene, and everything is float. Files named embree*.c
 * need Embree 3 and are left out when UNDINE_RENDER is off. */
#ifndef UN_RENDER_H
#define UN_RENDER_H

#include "base/base.h"
#include "bodies/bodies.h"
#include "geometry/geometry.h"
#include "output/output.h"
#include "scene/scene.h"

/* ---- float vectors: points, directions and linear RGB; the fourth lane is 0 or ignored ---- */

typedef float un_fvec __attribute__((vector_size(16)));

static inline un_fvec un_f3(float x, float y, float z)
{
    return (un_fvec){x, y, z, 0};
}
static inline un_fvec un_f3_of(un_vec3 a, double scale)
{
    return un_f3((float)(a.x * scale), (float)(a.y * scale), (float)(a.z * scale));
}
static inline float un_fdot(un_fvec a, un_fvec b)
{
    un_fvec p = a * b;
    return p[0] + p[1] + p[2];
}
static inline un_fvec un_fcross(un_fvec a, un_fvec b)
{
    return un_f3(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
}
static inline float un_flength(un_fvec a)
{
    return sqrtf(un_fdot(a, a));
}
static inline un_fvec un_fnormalize(un_fvec a)
{
    float l = un_flength(a);
    return l > 0 ? a / l : a;
}
static inline float un_fclamp(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}
static inline float un_fmix(float a, float b, float s)
{
    return a + (b - a) * s;
}
static inline un_fvec un_fmix3(un_fvec a, un_fvec b, float s)
{
    return a + (b - a) * s;
}
/* 0 below lo, 1 above hi, smooth between. */
static inline float un_fsmooth(float lo, float hi, float x)
{
    float s = un_fclamp((x - lo) / (hi - lo), 0, 1);
    return s * s * (3 - 2 * s);
}
static inline float un_fluma(un_fvec c)
{
    return 0.2126f * c[0] + 0.7152f * c[1] + 0.0722f * c[2];
}

/* ---- camera (camera.c) ---- */

typedef struct un_camera {
    un_fvec eye, right, up, forward; /* right and up span half the picture at distance 1 */
    float pixel;                     /* angle of one pixel, radians */
} un_camera;

/* size: of the domain, m; unit: m per internal length. */
un_camera un_camera_make(const un_render_def *def, un_vec3 size, double unit);
/* Takes light and colours that the user has not set from the scene. */
void un_render_complete(un_render_def *def, const un_scene_def *scene);
/* The same for the camera at time t. Fails if eye and target coincide. */
un_status un_render_complete_camera(un_render_def *def, const un_scene *scene, double t);
/* x, y in [-1, 1] across the picture, y up. */
static inline un_fvec un_camera_ray(const un_camera *c, float x, float y)
{
    return un_fnormalize(c->forward + c->right * x + c->up * y);
}

/* ---- the studio: sky, light, floor, water's colour, film (studio.c) ---- */

#define UN_WATER_IOR 1.33f
#define UN_GLASS_IOR 1.5f

typedef struct un_studio {
    un_fvec sun;                    /* direction towards the light */
    float sun_radius;               /* of its disc seen from the floor, radians */
    un_fvec sun_power;              /* irradiance on a surface that faces it */
    un_fvec fill;                   /* where the sky that lights solids is brightest */
    un_fvec sky_power;              /* irradiance on an open floor from everything else */
    un_fvec horizon, zenith, panel; /* radiance of the sky and of the light seen in reflections */
    un_fvec haze;                   /* radiance of the horizon */
    un_fvec tile[2], joint;         /* colours of the floor */
    un_fvec absorption;             /* of water, 1 / internal length */
    un_fvec scatter;                /* radiance that deep water scatters back */
    un_fvec solid;                  /* colour */
    un_fvec glass;                  /* its absorption, 1 / internal length */
    un_fvec centre;                 /* of the domain's floor; the floor fades away from it */
} un_studio;

un_studio un_studio_make(un_fvec size);
/* Replaces light and colours by those of the user. */
void un_studio_change(un_studio *s, const un_render_def *def);
/* The direction towards a point of the light's disc; u, v in [0, 1). */
un_fvec un_studio_sun(const un_studio *s, float u, float v);
/* Radiance from direction d, above the horizon. */
un_fvec un_studio_sky(const un_studio *s, un_fvec d);
/* Colour of the floor, averaged over a patch of the given width. */
un_fvec un_studio_floor(const un_studio *s, float x, float z, float width);
/* How much of the floor is lost in the haze, 0..1. */
float un_studio_haze(const un_studio *s, float x, float z);
/* Brightness of radiance on the film, 0..1. */
float un_studio_brightness(un_fvec radiance);
/* Linear radiance to sRGB bytes, dithered by the pixel's index so that gradients show no bands. */
void un_studio_develop(un_fvec radiance, uint64_t pixel, uint8_t rgb[3]);

/* The colour of a quantity, from 0 to 1, on the screen. */
void un_render_ramp(double t, uint8_t rgb[3]);

/* Reflectance of a surface for unpolarised light that travels along d and meets the side that n
 * points out of; eta: index there over index beyond. 1: total reflection; otherwise *transmitted is
 * set.
 */
float un_fresnel(un_fvec d, un_fvec n, float eta, un_fvec *transmitted);
/* The fraction of light that is left after a way of this length. */
static inline un_fvec un_absorb(un_fvec absorption, float length)
{
    un_fvec a = absorption * -length;
    return un_f3(expf(a[0]), expf(a[1]), expf(a[2]));
}
static inline un_fvec un_mirror(un_fvec d, un_fvec n)
{
    return un_fnormalize(d - n * (2 * un_fdot(d, n)));
}

/* ---- meshes made ready for tracing (mesh.c) ---- */

/* What shading needs to know about a triangle, together: a ray that ends here costs one access. */
typedef struct un_render_face {
    int16_t normal[3][2]; /* of its corners, octahedral: un_normal_pack */
    uint8_t ambient[3];   /* of its corners: how much of the sky they see, of 255 */
    uint8_t kind;         /* UN_FACE_ */
} un_render_face;

/* FLAT: in a side of the domain's box, shaded with the triangle's own normal. TOUCH: water that
 * touches a solid; rays from inside go on to the solid. WET: water that touches glass; rays go on
 * to the glass from both sides. CUTAWAY: of a container, visible only from its front, so that one
 * can look into it from outside. GLASS: of a solid of glass. */
enum { UN_FACE_PLAIN, UN_FACE_FLAT, UN_FACE_TOUCH, UN_FACE_WET, UN_FACE_CUTAWAY, UN_FACE_GLASS };

typedef struct un_render_mesh {
    int32_t vertex_count, triangle_count;
    float (*position)[3]; /* room for one more than vertex_count: the tracer reads 16 bytes at a
                             time */
    float (*normal)[3];
    uint32_t (*triangle)[3];
    un_render_face *face;
} un_render_mesh;

/* A unit vector folded onto a square; good to 0.005 degrees. */
void un_normal_pack(un_fvec n, int16_t packed[2]);
static inline un_fvec un_normal_unpack(const int16_t packed[2]) /* not of unit length */
{
    float x = (float)packed[0] * (1 / 32767.0f), z = (float)packed[1] * (1 / 32767.0f);
    float y = 1 - fabsf(x) - fabsf(z), fold = fmaxf(-y, 0);
    return un_f3(x + (x >= 0 ? -fold : fold), y, z + (z >= 0 ? -fold : fold));
}

/* Allocates room without setting it. */
un_status un_render_mesh_init(un_context *ctx, un_render_mesh *mesh, int32_t vertex_count,
                              int32_t triangle_count);
/* Packs the normals of the corners into the faces. */
void un_render_mesh_pack(un_context *ctx, un_render_mesh *mesh);
void un_render_mesh_free(un_context *ctx, un_render_mesh *mesh);
/* Reads the layout of frames/NNNN/surface.ply, in units of `unit` metres. A missing file gives
 * UN_OK and an empty mesh. Normals are not set. */
un_status un_render_mesh_load(un_context *ctx, const char *path, double unit, un_render_mesh *mesh);

/* Prepares water. Triangles that face the floor closer than `reach` are left out, those that face a
 * solid as close are TOUCH or WET: water touches it there, and the film of air between the two
 * meshes is not real. Those in a side of the domain's box are FLAT; normals come from the others
 * only, so that the edge of a wall stays sharp. size and reach: internal lengths; bodies: NULL if
 * there are none; their solids have the materials. */
un_status un_render_mesh_prepare(un_context *ctx, un_render_mesh *mesh, un_fvec size, double unit,
                                 float reach, const un_bodies *bodies);

#endif
