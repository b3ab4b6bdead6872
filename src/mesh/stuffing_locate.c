/* Which tet holds a point, or is nearest to it.
 *
 * The octree finds the tet of the lattice, and that names the tets made from it. Nodes move less
 * than the stars of the lattice's tets are wide, so the tet that holds a point is made from a tet
 * that shares a node with that one: looking through these is exact. Outside, the octree is searched
 * for the nearest face of the boundary, nearest cubes first. */
#include "mesh/stuffing_internal.h"

/* Tolerance of the weights of points inside. */
#define INSIDE_TOLERANCE 1e-10

static bool holds(const un_stuffing *mesh, int32_t t, un_vec3 x, un_tets_place *place)
{
    double w[4];
    un_stuffing_weights(mesh, t, x, w);
    for (int i = 0; i < 4; i++)
        if (!(w[i] >= -INSIDE_TOLERANCE)) return false;
    place->tet = t;
    memcpy(place->w, w, sizeof w);
    return true;
}

static bool find_in(const un_stuffing *mesh, int32_t source, un_vec3 x, un_tets_place *place)
{
    for (int32_t t = mesh->source_tet[source]; t < mesh->source_tet[source + 1]; t++)
        if (holds(mesh, t, x, place)) return true;
    return false;
}

static bool find_around(const un_stuffing *mesh, int32_t source, un_vec3 x, un_tets_place *place)
{
    const un_tets *lattice = &mesh->lattice;
    if (find_in(mesh, source, x, place)) return true;
    for (int i = 0; i < 4; i++) {
        int32_t n = lattice->tet[source][i];
        for (int32_t k = lattice->first[n]; k < lattice->first[n + 1]; k++)
            if (find_in(mesh, lattice->corner[k] / 4, x, place)) return true;
    }
    return false;
}

/* ---- outside ---- */

/* The point of a triangle nearest to x, by its weights; returns the distance squared [Ericson05,
 * 5.1.5]. */
static double nearest_in_triangle(const un_vec3 p[3], un_vec3 x, double w[3])
{
    un_vec3 ab = un_sub(p[1], p[0]), ac = un_sub(p[2], p[0]), ax = un_sub(x, p[0]);
    double d1 = un_dot(ab, ax), d2 = un_dot(ac, ax), bb = un_dot(ab, ab), cc = un_dot(ac, ac),
           bc = un_dot(ab, ac);
    double d3 = d1 - bb, d4 = d2 - bc, d5 = d1 - bc, d6 = d2 - cc;
    double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    double v, u; /* weights of p[1] and p[2] */
    if (d1 <= 0 && d2 <= 0)
        v = u = 0;
    else if (d3 >= 0 && d4 <= d3)
        v = 1, u = 0;
    else if (vc <= 0 && d1 >= 0 && d3 <= 0)
        v = d1 / (d1 - d3), u = 0;
    else if (d6 >= 0 && d5 <= d6)
        v = 0, u = 1;
    else if (vb <= 0 && d2 >= 0 && d6 <= 0)
        v = 0, u = d2 / (d2 - d6);
    else if (va <= 0 && d4 >= d3 && d5 >= d6)
        u = (d4 - d3) / ((d4 - d3) + (d5 - d6)), v = 1 - u;
    else
        v = vb / (va + vb + vc), u = vc / (va + vb + vc);
    w[0] = 1 - v - u, w[1] = v, w[2] = u;
    un_vec3 d = un_sub(ax, un_add(un_scale(ab, v), un_scale(ac, u)));
    return un_dot(d, d);
}

typedef struct nearest {
    const un_stuffing *mesh;
    un_vec3 x;
    double square; /* of the distance so far */
    un_tets_place *place;
} nearest;

static void look_in_leaf(nearest *s, int32_t leaf)
{
    const un_stuffing *mesh = s->mesh;
    for (int32_t t = mesh->leaf_tet[leaf]; t < mesh->leaf_tet[leaf + 1]; t++)
        for (int i = 0; i < 4; i++) {
            if (mesh->face_tet[mesh->tet_face[t][i]][1] >= 0) continue;
            un_vec3 p[3];
            double w[3];
            for (int k = 0; k < 3; k++) p[k] = mesh->x[mesh->tet[t][(i + 1 + k) & 3]];
            double square = nearest_in_triangle(p, s->x, w);
            if (!(square < s->square)) continue;
            s->square = square;
            s->place->tet = t;
            s->place->w[i] = 0;
            for (int k = 0; k < 3; k++) s->place->w[(i + 1 + k) & 3] = w[k];
        }
}

/* The first of the rim's leaves from..to whose key is not below `key`. */
static int32_t rim_from(const un_stuffing *mesh, int32_t from, int32_t to, uint64_t key)
{
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if (mesh->tree.key[mesh->rim[middle]] < key)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The square of the distance from x to a cube of finest leaves that is widened on each side: tets
 * reach half a leaf beyond their leaf, and nodes move less than that. */
static double cube_distance(const nearest *s, uint64_t key, int32_t edge, double widened)
{
    double h = s->mesh->tree.h, x[3] = {s->x.x, s->x.y, s->x.z}, square = 0;
    for (int a = 0; a < 3; a++) {
        double lo = h * un_morton_gather(key >> a), hi = lo + h * edge;
        double d = fmax(fmax(lo - widened - x[a], x[a] - hi - widened), 0);
        square += d * d;
    }
    return square;
}

/* Leaves from..to of the rim lie in the cube. */
static void look_in_cube(nearest *s, uint64_t key, int32_t depth, int32_t from, int32_t to)
{
    const un_stuffing *mesh = s->mesh;
    const un_octree *tree = &mesh->tree;
    if (to - from == 1 || depth == 0) {
        for (int32_t r = from; r < to; r++) {
            int32_t leaf = mesh->rim[r], edge = 1 << (tree->level_max - tree->level[leaf]);
            if (cube_distance(s, tree->key[leaf], edge, tree->h * edge) < s->square)
                look_in_leaf(s, leaf);
        }
        return;
    }
    int32_t edge = 1 << (depth - 1), first[9], order[8];
    double distance[8];
    first[0] = from;
    for (uint64_t k = 0; k < 8; k++) {
        first[k + 1] =
            k == 7 ? to : rim_from(mesh, first[k], to, key + ((k + 1) << 3 * (depth - 1)));
        distance[k] = cube_distance(s, key + (k << 3 * (depth - 1)), edge, tree->h * edge);
        int32_t at = (int32_t)k;
        for (; at > 0 && distance[order[at - 1]] > distance[k]; at--) order[at] = order[at - 1];
        order[at] = (int32_t)k;
    }
    for (int i = 0; i < 8; i++) {
        int32_t k = order[i];
        if (first[k + 1] > first[k] && distance[k] < s->square)
            look_in_cube(s, key + ((uint64_t)k << 3 * (depth - 1)), depth - 1, first[k],
                         first[k + 1]);
    }
}

static double number_or_zero(double x, double limit)
{
    return x > -limit ? x < limit ? x : limit : x == x ? -limit : 0;
}

bool un_stuffing_locate(const un_stuffing *mesh, un_vec3 x, int32_t guess, un_tets_place *place)
{
    UN_ASSERT(mesh->tet_count > 0);
    const un_octree *tree = &mesh->tree;
    /* Far away, squares of distances would be infinite. */
    double far = 1e3 * tree->h * (tree->n[0] + tree->n[1] + tree->n[2]);
    x = un_v3(number_or_zero(x.x, far), number_or_zero(x.y, far), number_or_zero(x.z, far));
    if (guess >= 0 && guess < mesh->tet_count && holds(mesh, guess, x, place)) return true;
    un_vec3 top = un_v3(tree->h * tree->n[0], tree->h * tree->n[1], tree->h * tree->n[2]);
    if (x.x >= 0 && x.y >= 0 && x.z >= 0 && x.x <= top.x && x.y <= top.y && x.z <= top.z) {
        un_tets_place lattice;
        un_tets_locate(&mesh->lattice, x, &lattice);
        if (find_around(mesh, lattice.tet, x, place)) return true;
    }
    nearest s = {mesh, x, INFINITY, place};
    int32_t depth = 0, cells = tree->n[0];
    for (int a = 1; a < 3; a++)
        if (tree->n[a] > cells) cells = tree->n[a];
    while (1 << depth < cells) depth++;
    look_in_cube(&s, 0, depth, 0, mesh->rim_count);
    return false;
}
