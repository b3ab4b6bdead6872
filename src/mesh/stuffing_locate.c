/* Which tet holds a point, or is nearest to it.
 *
 * The octree finds the tet of the lattice, and that names the tets made from it. Nodes move less
 * than the stars of the lattice's tets are wide, so the tet that holds a point is made from a tet
 * that shares a node with that one: looking through these is exact. Outside, a tree of boxes around
 * the faces of the boundary is searched, the nearer ones first. Leaves follow the Morton curve, so
 * joining them in pairs makes good boxes. */
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

static void look_at_face(nearest *s, int32_t f)
{
    const un_stuffing *mesh = s->mesh;
    const int32_t *n = mesh->face[f];
    un_vec3 p[3] = {mesh->x[n[0]], mesh->x[n[1]], mesh->x[n[2]]};
    double w[3], square = nearest_in_triangle(p, s->x, w);
    if (!(square < s->square)) return;
    int32_t t = mesh->face_tet[f][0];
    s->square = square;
    s->place->tet = t;
    for (int i = 0; i < 4; i++) {
        s->place->w[i] = 0;
        for (int k = 0; k < 3; k++)
            if (mesh->tet[t][i] == n[k]) s->place->w[i] = w[k];
    }
}

/* The square of the distance from x to a box of the tree. */
static double box_distance(const nearest *s, int32_t i)
{
    const un_box3 *box = &s->mesh->rim_box[i];
    un_vec3 d = un_max3(un_max3(un_sub(box->min, s->x), un_sub(s->x, box->max)), un_v3(0, 0, 0));
    return un_dot(d, d);
}

/* Depth first, the nearer child first. */
static void look_at_boundary(nearest *s)
{
    const un_stuffing *mesh = s->mesh;
    int32_t width = un_stuffing_rim_width(mesh), waiting[64], count = 0;
    double distance[64];
    waiting[count] = 1;
    distance[count++] = box_distance(s, 1);
    while (count > 0) {
        int32_t i = waiting[--count];
        if (!(distance[count] < s->square)) continue;
        if (i >= width) {
            int32_t r = i - width;
            for (int32_t b = mesh->rim_first[r]; b < mesh->rim_first[r + 1]; b++)
                look_at_face(s, mesh->boundary[b]);
            continue;
        }
        double lower = box_distance(s, 2 * i), upper = box_distance(s, 2 * i + 1);
        bool swap = upper < lower;
        waiting[count] = 2 * i + !swap;
        distance[count++] = swap ? lower : upper;
        waiting[count] = 2 * i + swap;
        distance[count++] = swap ? upper : lower;
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
    look_at_boundary(&s);
    return false;
}
