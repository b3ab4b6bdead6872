/* Pictures of 2D runs (flat.c). Private to src/render. */
#ifndef UN_RENDER_FLAT_H
#define UN_RENDER_FLAT_H

#include "particles/particles.h"
#include "render/render.h"
#include "surface/surface.h"

typedef struct un_flat_picture {
    const un_render_def *def;      /* size of the picture, colours, camera, samples */
    un_vec3 size;                  /* of the domain, m */
    const bool *open;              /* its sides */
    const un_trimesh *water;       /* flat; NULL: not drawn */
    const un_particles *particles; /* NULL: not drawn */
    double fastest;                /* m/s, for their colours */
    const un_bodies *bodies;       /* where they are in this frame */
} un_flat_picture;

/* rgb: width * height * 3 bytes, top row first. */
un_status un_flat_draw(un_context *ctx, const un_flat_picture *picture, uint8_t *rgb);

#endif
