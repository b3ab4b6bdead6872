/* Moves nodes in the sides of the domain onto the contact line, where the liquid's surface meets
 * the side. A side's wet nodes are zeros of the level set; without this the surface would end at
 * the last of them, with a chamfer up to a leaf wide. Of an edge in the side with one wet end, the
 * end that is nearer to the contact line moves there, along the edge: it stays in its sides. */
#include "mesh/stuffing_internal.h"

/* The share of an edge that a node may move. Sides inside the brick have no nodes in the middles of
 * faces that could give way. */
#define ALPHA_SIDE 0.5
#define ALPHA_INSIDE 0.3
#define ROOT_STEPS 3

static bool is_open(const un_stuffing_work *w, int64_t n)
{
    return (!w->solid || w->solid[n] > 0) &&
           un_stuffing_sides(w, w->lattice->x[n]) > -1e-9 * w->mesh->tree.h;
}

/* Is one of the sides inside the brick? */
static bool lies_inside(const un_stuffing_work *w, uint8_t sides)
{
    for (int a = 0; a < 3; a++)
        if (w->cuts_cells[a] && (sides & UN_ON_SIDE << (2 * a + 1))) return true;
    return false;
}

static bool is_wet(const un_stuffing_work *w, int64_t n)
{
    return w->liquid[n] < 0;
}

/* Do the nodes differ along one axis alone? Edges from the middles of faces do not. */
static bool is_straight(const un_tets *lattice, int64_t n, int32_t m)
{
    const uint64_t axis = 0x9249249249249249u; /* every third bit */
    uint64_t d = lattice->node_key[n] ^ lattice->node_key[m];
    return ((d & axis) != 0) + ((d & axis << 1) != 0) + ((d & axis << 2) != 0) == 1;
}

/* Where the liquid ends between a wet and a dry node, as a share from a: false position. */
static double contact(const un_stuffing_work *w, int32_t a, int32_t b)
{
    un_vec3 from = w->lattice->x[a], along = un_sub(w->lattice->x[b], from);
    double lo = 0, hi = 1, f_lo = w->liquid[a], f_hi = w->liquid[b], t = f_lo / (f_lo - f_hi);
    for (int step = 0; step < ROOT_STEPS && !w->def->linear; step++) {
        double liquid, solid;
        un_vec3 x = un_mad(from, along, t);
        w->def->field(w->def->arg, 1, &x, &liquid, w->solid ? &solid : NULL);
        if ((liquid < 0) == (f_lo < 0))
            lo = t, f_lo = liquid, f_hi *= 0.7;
        else
            hi = t, f_hi = liquid, f_lo *= 0.7;
        t = lo + (hi - lo) * f_lo / (f_lo - f_hi);
    }
    return un_clamp(t, 0, 1);
}

static void slide_node(un_stuffing_work *w, int64_t n)
{
    const un_tets *lattice = w->lattice;
    uint8_t sides = un_stuffing_sides_of(w, n);
    if (!sides || w->held[n] || !is_open(w, n)) return;
    if (w->sign[n] == 0 && !is_wet(w, n)) return; /* it lies on the surface */
    double nearest = INFINITY, alpha = lies_inside(w, sides) ? ALPHA_INSIDE : ALPHA_SIDE;
    for (int32_t k = lattice->first[n]; k < lattice->first[n + 1]; k++)
        for (int i = 0; i < 4; i++) {
            int32_t m = lattice->tet[lattice->corner[k] / 4][i];
            if (is_wet(w, m) == is_wet(w, n) || !is_open(w, m) || !is_straight(lattice, n, m) ||
                (un_stuffing_sides_of(w, m) & sides) != sides)
                continue;
            double linear = w->liquid[n] / (w->liquid[n] - w->liquid[m]);
            if (!(linear < 0.75)) continue;
            /* Both ends find the same place: from the wet one. */
            double t = is_wet(w, n) ? contact(w, (int32_t)n, m) : 1 - contact(w, m, (int32_t)n);
            un_vec3 along = un_sub(lattice->x[m], lattice->x[n]);
            double distance = t * un_length(along);
            if (!(is_wet(w, n) ? t <= alpha : t < alpha) || !(distance < nearest)) continue;
            nearest = distance;
            w->x[n] = un_mad(lattice->x[n], along, t);
        }
    if (nearest == INFINITY) return;
    w->sign[n] = 0;
    w->on[n] = sides | UN_ON_SURFACE;
    w->moved[n] = 1;
}

static void slide_nodes(void *arg, int64_t begin, int64_t end)
{
    for (int64_t n = begin; n < end; n++) slide_node(arg, n);
}

/* The middle of a leaf's face in the brick's side is node 2 of the four tets there. */
static void center_node(un_stuffing_work *w, int64_t n)
{
    const un_tets *lattice = w->lattice;
    un_vec3 sum = un_v3(0, 0, 0);
    int32_t count = 0, moved = 0;
    for (int32_t k = lattice->first[n]; k < lattice->first[n + 1]; k++) {
        int32_t c = lattice->corner[k], t = c / 4, shape = lattice->shape[t];
        if (shape < UN_SHAPE_WALL || shape >= UN_SHAPE_WALL_HALF || (c & 3) != 2) continue;
        for (int i = 0; i < 2; i++) {
            int32_t m = lattice->tet[t][i];
            sum = un_add(sum, w->x[m]);
            moved += w->moved[m];
            count++;
        }
    }
    if (count < 8 || moved == 0) return;
    w->x[n] = un_scale(sum, 0.125);
    w->moved[n] = 1;
}

static void center_nodes(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    for (int64_t n = begin; n < end; n++)
        if (w->sign[n] == 0 && !w->moved[n] && !w->held[n] && un_stuffing_sides_of(w, n))
            center_node(w, n);
}

void un_stuffing_slide(un_stuffing_work *w)
{
    un_parallel_for(w->mesh->ctx, w->lattice->node_count, 4096, slide_nodes, w);
    un_parallel_for(w->mesh->ctx, w->lattice->node_count, 4096, center_nodes, w);
}

/* ---- tets that are too flat ---- */

/* Has corner i of tet t moved along a side? */
static bool has_slid(const un_stuffing_work *w, int64_t t, int i)
{
    const un_stuffing *mesh = w->mesh;
    int32_t id = mesh->tet[t][i];
    return mesh->on[id] >= UN_ON_SIDE && id < mesh->lattice_node_count &&
           w->moved[mesh->node_source[id]];
}

static bool is_flat(const un_stuffing_work *w, int64_t t)
{
    bool slid = false;
    un_vec3 p[4];
    double least, greatest;
    for (int i = 0; i < 4; i++) slid |= has_slid(w, t, i);
    if (!slid) return false;
    for (int i = 0; i < 4; i++) p[i] = w->mesh->x[w->mesh->tet[t][i]];
    if (!(w->mesh->volume[t] > 0)) return true;
    un_stuffing_angles(p, &least, &greatest);
    return !(least > UN_STUFFING_ANGLE_MIN && greatest < UN_STUFFING_ANGLE_MAX);
}

static double count_flat(void *arg, int64_t begin, int64_t end)
{
    int64_t count = 0;
    for (int64_t t = begin; t < end; t++) count += is_flat(arg, t);
    return (double)count;
}

int32_t un_stuffing_hold(un_stuffing_work *w)
{
    const un_stuffing *mesh = w->mesh;
    int32_t count = 0;
    if (un_parallel_sum(mesh->ctx, mesh->tet_count, count_flat, w) == 0) return 0;
    for (int32_t t = 0; t < mesh->tet_count; t++) {
        if (!is_flat(w, t)) continue;
        for (int i = 0; i < 4; i++) {
            if (!has_slid(w, t, i)) continue;
            uint8_t *held = &w->held[mesh->node_source[mesh->tet[t][i]]];
            count += !*held;
            *held = 1;
        }
    }
    return count;
}

/* Does tet T of the lattice make one? Parts of a tet that is not turned inside out are neither. */
static bool makes_flat(const un_stuffing_work *w, int64_t T)
{
    const un_stuffing *mesh = w->mesh;
    const int32_t *n = w->lattice->tet[T];
    un_vec3 p[4];
    if (mesh->source_tet[T + 1] == mesh->source_tet[T]) return false;
    for (int i = 0; i < 4; i++) p[i] = w->x[n[i]];
    un_vec3 a = un_sub(p[1], p[0]), b = un_sub(p[2], p[0]), c = un_sub(p[3], p[0]);
    if (!(un_dot(a, un_cross(b, c)) > 0)) return true;
    if (!w->mixed[T] && !(w->moved[n[0]] | w->moved[n[1]] | w->moved[n[2]] | w->moved[n[3]]))
        return false;
    for (int32_t t = mesh->source_tet[T]; t < mesh->source_tet[T + 1]; t++) {
        double least, greatest;
        for (int i = 0; i < 4; i++) p[i] = mesh->x[mesh->tet[t][i]];
        un_stuffing_angles(p, &least, &greatest);
        if (!(least > UN_STUFFING_ANGLE_MIN && greatest < UN_STUFFING_ANGLE_MAX)) return true;
    }
    return false;
}

static double mark_flat(void *arg, int64_t begin, int64_t end)
{
    un_stuffing_work *w = arg;
    int64_t count = 0;
    for (int64_t T = begin; T < end; T++) {
        if (!w->flat[T]) w->flat[T] = makes_flat(w, T);
        count += w->flat[T];
    }
    return (double)count;
}

void un_stuffing_find_flat(un_stuffing_work *w)
{
    w->bad = (int64_t)un_parallel_sum(w->mesh->ctx, w->lattice->tet_count, mark_flat, w);
}
