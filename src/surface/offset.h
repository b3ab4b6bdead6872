/* The last step of an output surface: each piece of it is moved until it has its particles' volume.
 */
#ifndef UN_SURFACE_OFFSET_H
#define UN_SURFACE_OFFSET_H

#include "surface/surface.h"

/* ---- pieces of the surface and their volume (pieces.c) ---- */

typedef struct un_piece {
    double wanted; /* volume of its particles */
    double v[4];   /* six times its volume, as a polynomial in the offset */
    un_vec3 origin;
    double offset;
} un_piece;
typedef struct un_pieces un_pieces;
/* Adds the volumes of particles to what their pieces want. number: by particle; -1: its piece has
 * no surface. */
typedef un_status un_pieces_weigh(void *arg, un_pieces *pieces, const int32_t *number);
struct un_pieces {
    const un_trimesh *mesh;
    const un_particles *particles;
    const int32_t *of_particle; /* as un_hulls.piece */
    const int32_t *nearest;     /* by vertex: the particle it belongs to; -1: unknown */
    const un_vec3 *direction;   /* by vertex: the way that a unit of offset moves it, inwards */
    int32_t body;               /* a particle of the body; -1: there is none */
    un_pieces_weigh *weigh;     /* where these are not all particles of the body; NULL: they are */
    void *weigh_arg;
    /* found */
    int32_t count, surface_count;
    bool has_body;      /* piece 0 is the body */
    int32_t *of_vertex; /* by vertex: its piece */
    uint8_t *wanting;   /* by particle: 1 if its piece has no surface */
    un_piece *piece;
};
un_status un_pieces_find(un_context *ctx, un_pieces *pieces);
void un_pieces_free(un_context *ctx, un_pieces *pieces);
/* Takes pieces out of the mesh, which has normals and velocities. gone: by piece. Pieces of
 * vertices are no longer known. */
un_status un_pieces_remove(un_context *ctx, un_pieces *pieces, un_trimesh *mesh,
                           const uint8_t *gone);
/* Finds the offset that gives each piece its volume: at most `body` either way for the body, and
 * `most` for the others. The body's volume may differ by the share `slack`. */
void un_pieces_solve(un_pieces *pieces, double body, double most, double slack);

/* ---- moving the vertices (offset.c) ---- */

typedef struct un_offset {
    un_trimesh *mesh;
    const un_lattice *lattice; /* its outer planes are the domain's sides */
    un_pieces *pieces;
    const uint8_t *still;      /* by vertex: 1 if it is at a solid and does not move */
    const float *radius;       /* by vertex: of particles there, 0 for those of thin liquid */
    const float *near_radius;  /* by vertex: of all particles there */
    const float *too_thick;    /* by vertex: how far it must move in any case, m; NULL: not */
    un_vec3 *direction;        /* room by vertex */
    double body, sheets, most; /* largest offsets either way, in radii: of the body, of thin liquid
                                  that hangs together with it, of other pieces */
    double slack;              /* the body, without thin liquid, stays if its error is below this
                                  share */
    /* inside */
    int32_t stage;
    double inset;
} un_offset;
/* One offset for all of the surface, in radii within the bounds. */
void un_offset_even(un_context *ctx, un_offset *offset, double wanted, double least, double most);
/* One for each piece; needs pieces. */
void un_offset_pieces(un_context *ctx, un_offset *offset);

#endif
