/* Which tet holds a point.
 *
 * The leaf comes from the octree. Its faces are joined to its centre, so the face is that of the
 * largest offset from the centre, and the triangle in it follows from the signs and order of the
 * other two offsets. All comparisons are of the offsets from which the weights are computed, so
 * round-off cannot put a point far outside the chosen tet. */
#include "mesh/tets_internal.h"
#include "mesh/thin.h"

/* Tolerance of the weights, for points in a guessed tet. */
#define INSIDE_TOLERANCE 1e-10
/* Points deeper than this behind a thin wall, in cells, as the side of their tet sees it, may be on
 * another side. Walls are half a finest cell thick and more. */
#define BEYOND 0.3

static inline double power_of_two(int32_t exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t magnitude(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT64_MAX;
}

static inline uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline double clamp_axis(double x, double top)
{
    x = x > 0 ? x : 0; /* NaN: 0 */
    return x < top ? x : top;
}

/* Like un_octree_index, but with the round-off of the product: for a point that close to a face,
 * the leaf on the other side is as good. */
static inline uint32_t index_near(const un_octree *tree, double x, int axis)
{
    int32_t i = (int32_t)(x * tree->inverse_h), last = tree->n[axis] - 1;
    return (uint32_t)(i < last ? i : last);
}

static inline un_vec3 clamp_place(const un_octree *tree, un_vec3 x)
{
    return un_v3(clamp_axis(x.x, tree->h * tree->n[0]), clamp_axis(x.y, tree->h * tree->n[1]),
                 clamp_axis(x.z, tree->h * tree->n[2]));
}

static inline uint64_t key_near(const un_octree *tree, un_vec3 x)
{
    return un_morton(index_near(tree, x.x, 0), index_near(tree, x.y, 1), index_near(tree, x.z, 2));
}

uint64_t un_tets_place_key(const un_tets *mesh, un_vec3 x)
{
    return key_near(mesh->tree, clamp_place(mesh->tree, x));
}

/* Of the tet and its copies up to `end`, the one on whose side of the wall the point is. */
static void choose_part(const un_tets *mesh, un_tets_place *place, int32_t end)
{
    un_tets_place part = *place;
    double open = un_tet_sample(mesh, mesh->side, place);
    while (++part.tet < end) {
        double other = un_tet_sample(mesh, mesh->side, &part);
        if (!(other > open)) continue;
        open = other;
        place->tet = part.tet;
    }
}

void un_tets_locate_closed(const un_tets *mesh, un_vec3 x, un_tets_place *place)
{
    const un_octree *tree = mesh->tree;
    x = clamp_place(tree, x);
    int32_t c = un_octree_find_key(tree, key_near(tree, x));
    int32_t depth = tree->level_max - tree->level[c];
    uint64_t key = tree->key[c];
    uint32_t size = 1u << depth;
    double unit = tree->unit, d[3] = {x.x - unit * (2 * un_morton_gather(key) + size),
                                      x.y - unit * (2 * un_morton_gather(key >> 1) + size),
                                      x.z - unit * (2 * un_morton_gather(key >> 2) + size)};
    /* The processor cannot predict the choices below, and a wrong guess costs as much as ten of
     * these lines: hence integers instead of branches. Magnitudes compare like their bits. */
    uint64_t far_x = magnitude(d[0]), far_y = magnitude(d[1]), far_z = magnitude(d[2]);
    uint32_t y = far_y > far_x, z = far_z > greater(far_x, far_y), a = (y & ~z) | z << 1;
    uint64_t far[5] = {far_x, far_y, far_z, far_x, far_y};
    uint32_t upper = (d[0] > 0) | (d[1] > 0) << 1 | (d[2] > 0) << 2;
    upper |= upper << 3;
    uint32_t face = 2 * a + (upper >> a & 1), by_v = far[a + 2] > far[a + 1];
    uint32_t code = mesh->face_code[c][face], kind = code & UN_FACE_KIND;
    uint32_t e = 2 * by_v + (upper >> (a + 1 + by_v) & 1), half = upper >> (a + 2 - by_v) & 1;
    uint32_t step = e + (uint32_t)__builtin_popcount(code & ((1u << e) - 1)) + (half & code >> e);
    if (kind == UN_FACE_CUT) {
        double du = d[(a + 1) % 3], dv = d[(a + 2) % 3];
        step = !(code & 1 ? du + dv > 0 : du > dv);
    }
    int32_t t = mesh->face_tet[c][face] + (int32_t)step, end = t + 1;
    if (mesh->parted) {
        end = mesh->part[end];
        t = mesh->part[t];
    }
    /* From here on, the offset is from the centre of the leaf that owns the tet. */
    d[a] += tree->h * (size * (kind == UN_FACE_OTHER));
    double scale = power_of_two(-depth) * tree->inverse_h;
    const un_tet_shape *s = &mesh->shapes[mesh->shape[t]];
    double w[3];
    for (int i = 0; i < 3; i++)
        w[i] = scale *
               (s->gradient[i][0] * d[0] + s->gradient[i][1] * d[1] + s->gradient[i][2] * d[2]);
    *place = (un_tets_place){t, {w[0], w[1], w[2], 1 - w[0] - w[1] - w[2]}};
    if (mesh->own_count > 0) un_tets_walk(mesh, x, place);
    if (end - t > 1) choose_part(mesh, place, end);
}

static bool is_closed(const un_tets *mesh, int32_t t)
{
    const int32_t *n = mesh->tet[t];
    const float *side = mesh->side;
    double most = fmaxf(fmaxf(side[n[0]], side[n[1]]), fmaxf(side[n[2]], side[n[3]]));
    return most <= UN_SNAP * mesh->tree->h;
}

/* Does x, at distance d from the solids, see an open node of the tet? */
static bool sees_side(const un_tets *mesh, int32_t t, un_vec3 x, double d)
{
    for (int i = 0; i < 4; i++) {
        int32_t n = mesh->tet[t][i];
        if (mesh->side[n] > (float)(UN_SNAP * mesh->tree->h) &&
            un_thin_sees(mesh->bodies, x, mesh->x[n], d))
            return true;
    }
    return false;
}

/* Along the inner edges of a vessel there may be room in tets that have no open node in it, only
 * nodes in the walls and, behind a thin wall, open ones outside (tets_parts.c): liquid there
 * belongs to the open tet next to it, away from the wall or beside it. The distance that the tet's
 * side interpolates cannot tell this room from its own, which may be as far behind the line between
 * two walls: hence the look at the nodes. */
bool un_tets_in_crack(const un_tets *mesh, un_vec3 x, const un_tets_place *place,
                      un_tets_crack *crack)
{
    double d = 1e30, h = un_tets_size(mesh, place->tet);
    bool closed = is_closed(mesh, place->tet);
    if (!closed && !(un_tet_sample(mesh, mesh->side, place) < -BEYOND * h)) return false;
    int32_t b = un_bodies_nearest(mesh->bodies, x, &d);
    if (b < 0 || !(d > 0) || (!closed && sees_side(mesh, place->tet, x, d))) return false;
    *crack = (un_tets_crack){x, un_body_normal(&mesh->bodies->body[b], x), d, h};
    return true;
}

un_vec3 un_tets_crack_way(const un_tets_crack *crack, int k)
{
    un_vec3 way =
        k < 2 ? un_scale(crack->out, 0.5 * (k + 1)) : un_v3(k / 2 == 1, k / 2 == 2, k / 2 == 3);
    return un_mad(crack->x, way, k >= 2 && k & 1 ? -crack->h : crack->h);
}

bool un_tets_crack_opens(const un_tets *mesh, const un_tets_crack *crack,
                         const un_tets_place *beside)
{
    return !is_closed(mesh, beside->tet) && sees_side(mesh, beside->tet, crack->x, crack->d);
}

void un_tets_locate(const un_tets *mesh, un_vec3 x, un_tets_place *place)
{
    un_tets_crack crack;
    un_tets_locate_closed(mesh, x, place);
    if (!mesh->parted || !un_tets_in_crack(mesh, x, place, &crack)) return;
    for (int k = 0; k < UN_TETS_CRACK_WAYS; k++) {
        un_tets_place beside;
        un_tets_locate_closed(mesh, un_tets_crack_way(&crack, k), &beside);
        if (!un_tets_crack_opens(mesh, &crack, &beside)) continue;
        *place = beside;
        return;
    }
}

bool un_tets_locate_in(const un_tets *mesh, int32_t tet, un_vec3 x, un_tets_place *place)
{
    const un_tet_shape *s = un_tets_shape(mesh, tet);
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
