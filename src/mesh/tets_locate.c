/* Which tet holds a point.
 *
 * The leaf comes from the octree. Its faces are coned to its centre, so the face is that of the
 * largest offset from the centre, and the triangle in it follows from the signs and order of the
 * other two offsets: all comparisons of the offsets the weights are computed from, so that
 * round-off cannot put a point far outside the tet that is chosen. */
#include "mesh/tets_internal.h"

/* Of the weights, for points in a guessed tet. */
#define INSIDE_TOLERANCE 1e-10

static inline double clamp_axis(double x, double top)
{
    return x > 0 ? (x < top ? x : top) : 0; /* NaN: 0 */
}

void un_tets_locate(const un_tets *mesh, un_vec3 x, un_place *place)
{
    const un_octree *tree = mesh->tree;
    x.x = clamp_axis(x.x, tree->h * tree->n[0]);
    x.y = clamp_axis(x.y, tree->h * tree->n[1]);
    x.z = clamp_axis(x.z, tree->h * tree->n[2]);
    int32_t c = un_octree_find(tree, x);
    uint64_t key = tree->key[c];
    uint32_t size = 1u << (tree->level_max - tree->level[c]);
    double edge = tree->h * size, unit = tree->unit;
    double d[3] = {x.x - unit * (2 * un_morton_gather(key) + size),
                   x.y - unit * (2 * un_morton_gather(key >> 1) + size),
                   x.z - unit * (2 * un_morton_gather(key >> 2) + size)};
    double far[3] = {fabs(d[0]), fabs(d[1]), fabs(d[2])};
    int32_t a = far[1] > far[0] ? 1 : 0, u, v;
    if (far[2] > far[a]) a = 2;
    int32_t face = 2 * a + (d[a] > 0);
    un_face_axes(face, &a, &u, &v);
    uint32_t code = mesh->face_code[c][face], kind = code & UN_FACE_KIND;
    int32_t t = mesh->face_tet[c][face];
    if (kind == UN_FACE_CUT)
        t += !(code & 1 ? d[u] + d[v] > 0 : d[u] > d[v]);
    else {
        int32_t e = far[u] >= far[v] ? d[u] > 0 : 2 + (d[v] > 0);
        int32_t upper = d[e < 2 ? v : u] > 0;
        t += e + __builtin_popcount(code & ((1u << e) - 1)) + (upper & (int32_t)(code >> e));
        if (kind == UN_FACE_OTHER) d[a] += edge; /* from the centre of the leaf that owns the tet */
    }
    const un_tet_shape *s = &mesh->shapes[mesh->shape[t]];
    double scale = 1 / edge;
    place->tet = t;
    place->w[3] = 1;
    for (int i = 0; i < 3; i++) {
        const double *g = s->gradient[i];
        place->w[i] = (g[0] * d[0] + g[1] * d[1] + g[2] * d[2]) * scale;
        place->w[3] -= place->w[i];
    }
}

bool un_tets_locate_in(const un_tets *mesh, int32_t tet, un_vec3 x, un_place *place)
{
    const un_tet_shape *s = &mesh->shapes[mesh->shape[tet]];
    un_vec3 d = un_sub(x, mesh->x[mesh->tet[tet][3]]);
    double scale = 1 / un_tets_size(mesh, tet), w[4] = {0, 0, 0, 1};
    for (int i = 0; i < 3; i++) {
        const double *g = s->gradient[i];
        w[i] = (g[0] * d.x + g[1] * d.y + g[2] * d.z) * scale;
        w[3] -= w[i];
    }
    for (int i = 0; i < 4; i++)
        if (!(w[i] >= -INSIDE_TOLERANCE)) return false;
    place->tet = tet;
    memcpy(place->w, w, sizeof w);
    return true;
}
