/* Isosurface stuffing [Labelle & Shewchuk 2007; Chentanez07 section 3.1].
 *
 *   1  octree     fine along the surface, coarse away from it
 *   2  lattice    graded BCC tets on the leaves, tets.h
 *   3  cuts       on edges from inside to outside: roots of the level set
 *   4  warp       a node that a cut is close to moves there: t < ALPHA along the edge
 *   5  stencils   tets with nodes on both sides are cut
 * Nodes in sides of the domain slide onto the contact line before 3; where that makes a tet flat,
 * they are held and 3 to 5 are done again.
 *
 * The level set is max(liquid, -solid); a cut lies where the first of the two passes zero, so walls
 * stay sharp. Nodes in the liquid near a wall are put on it. Sides of the domain lie on planes of
 * the lattice: their nodes count as zeros of the level set where they are in the liquid, and a tet
 * at the brick's side as half a tet whose other half is outside. A side inside the brick is a
 * solid. Along creases, where the surface meets a wall, the mesh has a chamfer up to a leaf wide.
 *
 * Departures: tets with four nodes on the surface stay if the level set is negative in their middle
 * (the paper drops them); without this, sheets thinner than 1.2 leaves lose tets. Where cut or bent
 * tets are not whole ones of leaves of one size, leaves are halved and the build begins again.
 *
 * A graded mesh has leaves of different sizes along the surface, and cuts the tets between them
 * like any others. No angle is proven for these [Labelle & Shewchuk prove 1.66 to 174.7 degrees];
 * where one is beyond those of whole tets, leaves are halved and the build begins again. That is
 * rare: in 60 random balls, planes and waves, 1.13 builds were enough on average. */
#include "mesh/stuffing_internal.h"

un_stuffing_def un_stuffing_default(void)
{
    return (un_stuffing_def){.snap = 0.125};
}

void un_stuffing_init(un_context *ctx, un_stuffing *mesh, un_vec3 size, int32_t coarsest,
                      int32_t finest)
{
    *mesh = (un_stuffing){.ctx = ctx};
    un_octree_init(ctx, &mesh->tree, size, coarsest, finest);
    un_tets_init(ctx, &mesh->lattice);
}

void un_stuffing_free(un_stuffing *mesh)
{
    void *arrays[] = {mesh->x,           mesh->on,         mesh->node_source, mesh->tet,
                      mesh->volume,      mesh->level,      mesh->leaf,        mesh->source,
                      mesh->leaf_tet,    mesh->source_tet, mesh->face,        mesh->face_tet,
                      mesh->face_behind, mesh->area,       mesh->center,      mesh->tet_face,
                      mesh->boundary,    mesh->first,      mesh->corner,      mesh->rim,
                      mesh->rim_first,   mesh->rim_box};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) un_free(mesh->ctx, arrays[i]);
    un_tets_free(&mesh->lattice);
    un_octree_free(&mesh->tree);
    *mesh = (un_stuffing){.ctx = mesh->ctx};
}

static void clear(un_stuffing *mesh)
{
    mesh->node_count = mesh->lattice_node_count = mesh->tet_count = 0;
    mesh->face_count = mesh->boundary_count = mesh->rim_count = 0;
}

/* Cuts the lattice and fills it with tets, again as long as nodes must be held; w->bad tells
 * whether leaves must be halved first. */
static un_status stuff_lattice(un_stuffing_work *w)
{
    size_t nodes = (size_t)w->lattice->node_count;
    w->held = un_arena_alloc(w->arena, nodes, sizeof *w->held);
    if (!w->held) return UN_ERROR_MEMORY;
    memset(w->held, 0, nodes);
    w->bad = 0;
    if (w->def->graded) {
        size_t tets = (size_t)w->lattice->tet_count;
        w->flat = un_arena_alloc(w->arena, tets + 1, sizeof *w->flat);
        if (!w->flat) return UN_ERROR_MEMORY;
        memset(w->flat, 0, tets);
    }
    do {
        UN_TRY(un_stuffing_cut(w));
        un_stuffing_warp(w);
        if (w->bad > 0) return UN_OK;
        UN_TRY(un_stuffing_fill(w));
    } while (un_stuffing_hold(w) > 0);
    if (w->flat) un_stuffing_find_flat(w);
    return UN_OK;
}

static un_status stuff(un_stuffing_work *w)
{
    un_stuffing *mesh = w->mesh;
    UN_TRY(un_stuffing_refine(w));
    for (mesh->passes = 1;; mesh->passes++) {
        UN_TRY(un_tets_build(&mesh->lattice, w->arena, &mesh->tree));
        UN_TRY(stuff_lattice(w));
        if (w->bad == 0) break;
        int32_t leaves = mesh->tree.leaf_count;
        UN_TRY(un_stuffing_refine_bad(w));
        /* What is flat in the finest leaves stays: a field that is no number. */
        if (w->flat && mesh->tree.leaf_count == leaves) break;
    }
    UN_TRY(un_stuffing_number_faces(w));
    return un_stuffing_incidence(w);
}

un_status un_stuffing_build(un_stuffing *mesh, un_arena *arena, const un_stuffing_def *def)
{
    UN_ASSERT(def->field && def->snap >= 0 && def->snap <= 0.2);
    un_stuffing_work w = {.mesh = mesh, .lattice = &mesh->lattice, .arena = arena, .def = def};
    const un_octree *tree = &mesh->tree;
    double size[3] = {tree->size.x, tree->size.y, tree->size.z};
    for (int a = 0; a < 3; a++) w.cuts_cells[a] = tree->h * tree->n[a] > size[a] + 1e-9 * tree->h;
    un_status status = stuff(&w);
    if (status != UN_OK) clear(mesh);
    return status;
}

double un_stuffing_level_set(const un_stuffing_work *w, un_vec3 x)
{
    double liquid, solid = INFINITY;
    w->def->field(w->def->arg, 1, &x, &liquid, w->def->solids ? &solid : NULL);
    return fmax(liquid, -fmin(solid, un_stuffing_sides(w, x)));
}

void un_stuffing_weights(const un_stuffing *mesh, int32_t t, un_vec3 x, double w[4])
{
    const int32_t *n = mesh->tet[t];
    un_vec3 o = mesh->x[n[0]], d = un_sub(x, o), a = un_sub(mesh->x[n[1]], o),
            b = un_sub(mesh->x[n[2]], o), c = un_sub(mesh->x[n[3]], o);
    un_vec3 bc = un_cross(b, c), da = un_cross(d, a);
    double scale = 1 / un_dot(a, bc);
    w[1] = scale * un_dot(d, bc);
    w[2] = -scale * un_dot(c, da);
    w[3] = scale * un_dot(b, da);
    w[0] = 1 - w[1] - w[2] - w[3];
}
