/* View: a run in the browser. The server sends the page, the files of runs as they are, and the
 * polygons where a plane cuts their cells; the page (viewer/) does the rest. It listens on the
 * loopback address and answers only GET and HEAD, and only the paths that un_view_route knows. */
#ifndef UN_VIEW_H
#define UN_VIEW_H

#include "base/base.h"
#include "output/output.h"
#include "scene/scene.h"

/* ---- requests (route.c) ---- */

typedef enum un_route_kind {
    UN_ROUTE_NONE,
    UN_ROUTE_PAGE,  /* / */
    UN_ROUTE_RUNS,  /* /api/runs */
    UN_ROUTE_SCENE, /* /run/N/scene.json */
    UN_ROUTE_SOLID, /* /run/N/solid/K */
    UN_ROUTE_FILE,  /* /run/N/<one of the files of a run> */
    UN_ROUTE_CUT    /* /run/N/frames/F/cut/<x, y or z>/<millionths of the domain's side> */
} un_route_kind;

typedef struct un_route {
    un_route_kind kind;
    int32_t run, solid;
    int32_t axis, millionths; /* of a cut */
    char file[64];            /* below the run's directory; of a cut its frame's mesh.vtu */
    const char *type;
} un_route;

/* Takes any text; only exact paths give anything but UN_ROUTE_NONE. */
void un_view_route(const char *path, un_route *route);
/* Is this Host ours? A foreign page whose name points at this machine is not. */
bool un_view_host_is_local(const char *host);

/* ---- description of a run for the page (describe.c) ---- */

void un_view_add_string(un_text *text, const char *string); /* a JSON string */
/* Bytes of the UTF-8 character that starts here; 0: none does. */
int un_view_character(const char *text);

void un_view_add_base64(un_text *text, const uint8_t *bytes, size_t count);

/* What does not change during a run: the domain and the solids at rest, as JSON; meshes as
 * bytes: two counts (uint32), positions and normals (float), triangles. */
typedef struct un_view_scene {
    char *json;
    un_vec3 domain; /* m; 1 along each axis if the scene cannot be read */
    int32_t solid_count;
    struct {
        char *bytes;
        size_t size;
    } * solids;
} un_view_scene;
/* A scene that cannot be read gives an empty one and a warning: frames can be shown without it.
 * saved: includes the poses of solids at each frame, for a page that cannot request bodies.csv. */
un_status un_view_scene_make(un_context *ctx, const char *directory, bool saved,
                             un_view_scene *scene);
void un_view_scene_free(un_context *ctx, un_view_scene *scene);

/* {"name": ..., "frames": how many folders, "live": ..., sizes of tables, ...} */
void un_view_describe(un_text *text, const char *directory);
/* Opens DIR/name without ever following a link below DIR, regular files only; -1: no. */
int un_view_open(const char *directory, const char *name, int64_t *size);
/* The cells of such a file. UN_ERROR_FILE: they cannot be read. */
un_status un_view_read_cells(un_context *ctx, const char *directory, const char *name,
                             un_cells *cells);

/* ---- the page (page.c) ---- */

/* NULL if the build had no npm; the message says what to do. */
const char *un_view_page(un_context *ctx, size_t *size);

/* ---- compact surfaces, particles and cuts (pack.c) ---- */

/* Vertices in the same cell of this width are merged; triangles that vanish are dropped.
 * cell 0: as it is. */
un_status un_view_simplify(un_context *ctx, un_trimesh *mesh, double cell);
/* Quantised to 16 bits of the bounds, differences, deflated, in base64; appended to text. viewer/
 * src/unpack.js reads it. */
un_status un_view_pack_surface(un_text *text, const un_trimesh *mesh);
/* At most `most` particles, evenly thinned. */
un_status un_view_pack_particles(un_text *text, const un_particles *particles, int32_t most);
/* Position of the middle cut of a page: just below the middle, where no faces of cells are. */
#define UN_VIEW_MIDDLE 499950
static inline double un_view_cut_at(un_vec3 domain, int32_t axis, int32_t millionths)
{
    return 1e-6 * millionths * (axis == 0 ? domain.x : axis == 1 ? domain.y : domain.z);
}

/* Ranges of the values of all cells, so that colours do not depend on the position of the cut. */
typedef struct un_cell_ranges {
    int32_t level[2];
    double size[2], pressure[2], speed;
} un_cell_ranges;
un_cell_ranges un_view_ranges(const un_cells *cells);
/* Points in the same square of this width are merged; polygons that vanish are dropped. */
un_status un_view_simplify_cut(un_context *ctx, un_slice *slice, int32_t axis, double width);
/* The polygons of a cut as bytes, quantised as above but not deflated; free with un_free. */
un_status un_view_encode_cut(un_context *ctx, const un_slice *slice, int32_t axis, double at,
                             const un_cells *cells, const un_cell_ranges *ranges, uint8_t **bytes,
                             size_t *size);
/* The same, deflated, in base64; at most `most` polygons. */
un_status un_view_pack_cut(un_text *text, const un_cells *cells, int32_t axis, double at,
                           int32_t most);

#endif
