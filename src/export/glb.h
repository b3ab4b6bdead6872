/* Private to the glTF export: surfaces, particles and solids as pieces of a file. */
#ifndef UN_GLB_H
#define UN_GLB_H

#include "export/export.h"

/* What the JSON needs to know about a piece before its bytes are written. Every piece has four
 * arrays: triangles those of POSITION, NORMAL, _VELOCITY and the indices, points those of POSITION,
 * COLOR_0, _VELOCITY and _RADIUS. */
#define UN_GLB_ARRAYS 4

typedef struct un_glb_piece {
    bool points, glass;
    int32_t vertex_count, triangle_count;
    un_vec3 lo, hi;
    uint64_t offset; /* in the binary chunk */
} un_glb_piece;

/* What a frame shows: its surface, or `count` of its particles, evenly chosen. */
typedef struct un_glb_content {
    bool points;
    un_trimesh mesh;
    un_particles particles;
    int32_t count;
} un_glb_content;

/* most: maximum number of particles. */
un_status un_glb_content_read(const un_exporter *e, int32_t frame, bool points, int32_t most,
                              un_glb_content *content);
void un_glb_content_free(const un_exporter *e, un_glb_content *content);
/* vertex_count is 0 if there is nothing to show. */
un_glb_piece un_glb_measure(const un_glb_content *content);
/* fastest: m/s, upper end of the colour scale. */
void un_glb_put(un_file *file, const un_glb_content *content, double fastest);
/* The solids that have a mesh; which: their numbers. */
void un_glb_measure_solids(const un_exporter *e, un_glb_piece *pieces, int32_t *which,
                           int32_t *count);
un_status un_glb_put_solid(un_exporter *e, un_file *file, const un_body_mesh *mesh);
/* Sets the offsets and returns the total number of bytes. */
uint64_t un_glb_place(un_glb_piece *pieces, int32_t count);

/* JSON: from the opening brace to the materials; arrays of all pieces in order, not closed if
 * more may follow. */
void un_glb_add_head(un_text *t, const un_exporter *e, bool points);
void un_glb_add_meshes(un_text *t, const un_glb_piece *pieces, int32_t count, int32_t shown_count);
void un_glb_add_accessors(un_text *t, const un_glb_piece *pieces, int32_t count);
void un_glb_add_views(un_text *t, const un_glb_piece *pieces, int32_t count);

#endif
