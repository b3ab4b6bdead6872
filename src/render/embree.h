/* Private to the renderer; only embree*.c include this. */
#ifndef UN_RENDER_EMBREE_H
#define UN_RENDER_EMBREE_H

#include <embree3/rtcore.h>

#include "mesh/mesh.h"
#include "render/render.h"

/* What a ray meets; WATER and SOLID are also Embree's numbers of their meshes. POINT and CELL are
 * only such numbers: a ray that meets a particle or a cell meets a SOLID of its colour. GLASS is a
 * part of the mesh of solids. */
enum {
    UN_HIT_SKY,
    UN_HIT_FLOOR,
    UN_HIT_WATER,
    UN_HIT_SOLID,
    UN_HIT_POINT,
    UN_HIT_CELL,
    UN_HIT_GLASS
};

/* Distance of a ray's start from the surface it leaves, internal lengths: a few hundred rounding
 * errors of a float near 1. */
#define UN_RAY_OFFSET 2e-5f

/* Light that reaches the floor, relative to the open floor, on texels that stay fixed as long as
 * the renderer exists, so that nothing crawls from frame to frame. */
typedef struct un_light_map {
    float x0, z0, texel;
    int32_t nx, nz;         /* texels of sun */
    int32_t sky_nx, sky_nz; /* texels of sky, coarser */
    un_fvec *sun, *sky;
    un_fvec *scratch;    /* as long as sun */
    float (*photons)[5]; /* x, z, red, green, blue */
} un_light_map;

/* Polygons of cells, as fans of triangles; internal lengths. */
typedef struct un_cut_faces {
    un_slice slice;       /* m */
    float (*corner)[3];   /* points of the slice; one more */
    uint8_t (*colour)[3]; /* by polygon */
    float *edge;          /* by polygon: half the width of its dark edge */
    uint32_t (*triangle)[3];
    int32_t *of_triangle; /* the polygon */
    int32_t triangle_count;
} un_cut_faces;

struct un_renderer {
    un_context *ctx;
    un_scene *scene;
    char *directory;
    un_render_def def;
    double unit; /* m per internal length */
    un_fvec size;
    float reach; /* water this close to a solid or the floor touches it */
    un_camera camera;
    un_studio studio;
    RTCDevice device;
    RTCScene world;
    RTCScene liquid; /* the water alone, to ask where it touches glass; NULL: no glass */
    bool glass;      /* a solid is of glass */
    bool warned;     /* that a frame has no surface */
    char embree_message[200];
    un_body_mesh *rest; /* solids as they were made, m */
    un_bodies *bodies;  /* where they are at the frame */
    un_motion *motion;
    un_render_mesh solids; /* all of them, posed */
    un_render_mesh water;
    un_light_map light;
    /* particles as spheres, and the polygons where the cut meets cells (embree_extra.c) */
    int32_t sphere_count;
    float (*sphere)[4]; /* place and radius; one more */
    uint8_t (*sphere_colour)[3];
    un_cut_faces faces;
    double fastest; /* of the run, m/s, for colours */
    /* per pixel */
    un_fvec *film; /* sums of weighted samples */
    float *film_weight;
    float *brightness; /* on the film so far, 0..1 */
    uint8_t *busy;     /* its samples met water or a solid */
    uint8_t *mark;     /* it gets more samples */
};

typedef struct un_hit {
    int32_t kind;
    float t;
    un_fvec p, ng, n; /* ng: of the triangle, n: for shading; both against the ray */
    float ambient;    /* of solids */
    un_fvec colour;   /* of solids */
    bool from_inside; /* of water or glass */
    bool wet;         /* of glass: water touches it there */
    bool flat;        /* in a side of the domain's box */
} un_hit;

/* ---- the world (embree_scene.c) ---- */

un_status un_world_create(un_renderer *r);
void un_world_destroy(un_renderer *r);
/* Water and posed solids of a frame. */
un_status un_world_build(un_renderer *r);
/* The nearest thing along a ray of unit direction; in_glass: it starts in glass, where meshes may
 * overlap, so it meets no water. */
un_hit un_world_hit(const un_renderer *r, un_fvec o, un_fvec d, bool in_glass);

/* Where a ray is: in water, or in how many solids of glass. */
typedef struct un_medium {
    bool water;
    int32_t glass;
} un_medium;
/* What the ray has gone through on its way to the hit; meshes may have gaps, so what it met tells
 * more reliably than the path. */
un_medium un_medium_before(const un_hit *hit, un_medium at);
/* Where the ray is beyond a face of glass, and the ratio of indices there; 1: it goes straight on,
 * as between two overlapping solids of glass. */
un_medium un_medium_beyond(const un_hit *hit, un_medium at, float *eta);
/* The fraction of light that this way leaves. */
un_fvec un_medium_absorb(const un_studio *s, un_medium at, float length);

/* ---- particles and cells (embree_extra.c) ---- */

/* particles, cells: to be drawn. */
un_status un_extra_load(un_renderer *r, int32_t frame, bool particles, bool cells);
void un_extra_free(un_renderer *r);
void un_extra_attach(un_renderer *r);
/* Colour of the thing that a ray meets at p; edges of cells are dark. */
un_fvec un_extra_colour(const un_renderer *r, unsigned kind, unsigned number, un_fvec p);
/* Removes the water beyond the cut. */
void un_extra_cut(un_renderer *r);

/* ---- light on the floor (embree_light.c) ---- */

un_status un_light_create(un_renderer *r);
void un_light_destroy(un_renderer *r);
void un_light_build(un_renderer *r);
void un_light_floor(const un_renderer *r, float x, float z, un_fvec *sun, un_fvec *sky);
/* The fraction of light that arrives straight along d, attenuated by water, stopped by solids and
 * the floor. */
un_fvec un_light_straight(const un_renderer *r, un_fvec o, un_fvec d);

/* ---- light along a ray (embree_trace.c) ---- */

/* sun: towards the point of the light that this sample represents. *busy: the ray met something
 * other than floor and sky. */
un_fvec un_trace(const un_renderer *r, un_fvec o, un_fvec d, un_fvec sun, bool *busy);

#endif
