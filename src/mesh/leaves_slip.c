/* Velocities along the sides of the domain, for liquid that sticks to them.
 *
 * Beyond the brick, faces are as at its boundary: liquid slides there. Along a side with a slip
 * length L, the velocity beyond it is the one at which it would be zero in the depth L, continued
 * linearly: (L - h/2) / (L + h/2) of that at the boundary, h being the edge of the lattice. */
#include "mesh/leaves_patch.h"

/* What the faces of a lattice beyond a side are multiplied by: q, at: of the cube and of one beside
 * it, in finest leaves. */
static double beyond(const un_octree *tree, const double slip[6], int axis, int32_t q, int level)
{
    bool low = q < 0, high = q >= tree->n[axis];
    if (!low && !high) return 1;
    double end = tree->h * tree->n[axis], half = 0.5 * tree->edge[level];
    /* where the brick goes on beyond the domain, faces there are in the wall */
    if (high && end > un_vec3_at(tree->size, axis) + 1e-6 * tree->h) return 1;
    double length = slip[2 * axis + high];
    return length < INFINITY ? (length - half) / (length + half) : 1;
}

void un_patch_slip(const un_leaves *m, const un_siblings *of, const double slip[6], float *value)
{
    const un_octree *tree = m->tree;
    int32_t s = 1 << (tree->level_max - of->level), at[3];
    bool inside = true;
    for (int a = 0; a < 3; a++) {
        at[a] = (int32_t)un_morton_gather(of->parent >> a);
        inside &= at[a] >= 2 * s && at[a] + 4 * s <= tree->n[a];
    }
    if (inside) return;
    for (int axis = 0; axis < 3; axis++) {
        int t1 = axis == 0 ? 1 : 0, t2 = axis == 2 ? 1 : 2;
        for (int n = 0; n < 16; n++) {
            double share = beyond(tree, slip, t1, at[t1] + (n % 4 - 1) * s, of->level) *
                           beyond(tree, slip, t2, at[t2] + (n / 4 - 1) * s, of->level);
            float *v = value + axis * UN_PATCH_AXIS + 2 * n;
            for (int k = 0; share != 1 && k < 4; k++)
                v[(k & 1) + (k > 1 ? UN_PATCH_LAYER : 0)] *= (float)share;
        }
        for (int n = 0; of->level > 0 && n < 9; n++) {
            double share = beyond(tree, slip, t1, at[t1] + (n % 3 - 1) * 2 * s, of->level - 1) *
                           beyond(tree, slip, t2, at[t2] + (n / 3 - 1) * 2 * s, of->level - 1);
            float *v = value + UN_PATCH_PARENT + axis * UN_PATCH_PARENT_AXIS + 2 * n;
            for (int k = 0; share != 1 && k < 2; k++) v[k] *= (float)share;
        }
    }
}
