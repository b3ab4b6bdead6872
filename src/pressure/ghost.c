/* Ghost pressures: p = 0 where phi = 0, inside the tets that the surface cuts.
 *
 * In such a tet some nodes are wet (unknown p_n, phi_n < 0) and some dry. The rows of the wet nodes
 * need the tet's pressure gradient, and that needs values at the dry nodes. For each dry node d
 * [Ando13 eq. 6 to 12]:
 *
 *     p_d = phi_d sum_n theta_n p_n / sum_n theta_n phi_n                                  (eq. 8)
 *
 * with any weights theta: where phi is linear and p = c phi, p_d = c phi_d, and a hydrostatic
 * pressure under a flat surface is met exactly. With k_n the entries between d and n of the tet's
 * stiffness K_ij = V grad_i . grad_j, the row of n gets k_n p_d, so that the wet block becomes
 *
 *     K_nm + k_n phi_d theta_m / sum theta phi,
 *
 * symmetric only if theta is proportional to k (appendix A). Substituted, d adds the matrix
 *
 *     (phi_d / sum_n k_n phi_n) k k^T,                                                    (eq. 12)
 *
 * which is positive semi-definite while no k is positive: k_n phi_n >= 0 throughout. Two cases go
 * beyond the paper.
 *
 * Zero couplings. Two nodes of one sublattice have k = 0 in a BCC tet. A dry node without any
 * coupling adds nothing to the matrix, but the velocity still needs its p_d: theta_n = -phi_n, the
 * least-squares slope, in which the deepest node weighs most.
 *
 * Positive couplings. Half-pyramids have an angle of 120 degrees and one k > 0. The sum in eq. 12
 * may then vanish or change its sign; eq. 13 scales the ghosts down until the matrix is safe, which
 * puts the surface elsewhere and moves still water by many g dt. Here instead each row uses its own
 * ghost, p_d = p_n phi_d / phi_n in the row of n. That adds
 *
 *     sum_d k_dn phi_d / phi_n    to the diagonal alone,
 *
 * symmetric whatever the signs, and still exact for p = c phi. The gradient must agree with all of
 * these rows at once, or divergence would be left over: the vector g with
 *
 *     grad_n . g = grad_n . (sum_m grad_m p_m + sum_d grad_d phi_d p_n / phi_n)   for all wet n.
 *
 * Since grad_i . (x_j - x_d) is 1 for i = j and 0 for other i, j != d,
 *
 *     g = sum_m grad_m p_m + sum_d phi_d sum_{j != d} (x_j - x_d) (grad_j . grad_d) s_j
 *
 * is one, with the slope s_j = p_j / phi_j at wet j; dry j, which no row sees, get the
 * least-squares slope. With equal slopes the inner sum is grad_d s, an ordinary gradient.
 * (A prototype put equal-weight ghosts of these tets on the right-hand side, lagged over outer
 * solves: they gain a factor of 4 per solve, and end no more accurate.)
 *
 * The diagonal gets a negative share where k > 0. In the interior of a mesh the other tets of the
 * node make up for it; tets.c handles nodes where they do not.
 *
 * Ghosts by row may also be used in all tets. Orders and errors in a sphere are the same; where phi
 * is noisy, velocities in cut tets are smaller (RMS by 12 %, the largest by half), and the matrix
 * has only entries that K has. */
#include "pressure/ghost.h"

un_ghost un_ghost_make(const un_tet_shape *shape, const double phi[4], uint32_t wet, uint32_t mode)
{
    un_ghost g = {.shape = shape, .wet = wet, .mode = mode};
    memcpy(g.phi, phi, sizeof g.phi);
    if (mode & UN_GHOST_NONE) return g;
    g.by_row = mode & UN_GHOST_BY_ROW;
    for (int d = 0; d < 4; d++) {
        if (wet >> d & 1) continue;
        double sum = 0;
        /* A dry node below the surface is one that was left out; its share is negative too. */
        g.by_row |= phi[d] < 0;
        for (int n = 0; n < 4; n++) {
            if (!(wet >> n & 1)) continue;
            double k = shape->stiffness[d][n];
            g.by_row |= k > 0;
            sum += k * phi[n];
            g.row[n] += k * phi[d] / phi[n];
        }
        g.a[d] = sum != 0 ? phi[d] / sum : 0;
    }
    if (mode & UN_GHOST_CAUTIOUS)
        for (int n = 0; n < 4; n++)
            if (g.row[n] < 0) g.row[n] = 0;
    return g;
}

static bool is_wet(const un_ghost *g, int i)
{
    return g->wet >> i & 1;
}

void un_ghost_gradient(double gradient[3], const un_ghost *g, const double p[4])
{
    const un_tet_shape *s = g->shape;
    double v[4] = {0}, over = 0, under = 0;
    for (int n = 0; n < 4; n++) {
        if (!is_wet(g, n)) continue;
        v[n] = p[n];
        over += g->phi[n] * p[n];
        under += g->phi[n] * g->phi[n];
    }
    double slope = over / under;
    if (!(g->mode & UN_GHOST_NONE) && !g->by_row)
        for (int d = 0; d < 4; d++) {
            if (is_wet(g, d)) continue;
            double sum = 0;
            for (int n = 0; n < 4; n++)
                if (is_wet(g, n)) sum += s->stiffness[d][n] * p[n];
            v[d] = g->a[d] != 0 ? g->a[d] * sum : g->phi[d] * slope;
        }
    for (int i = 0; i < 3; i++)
        gradient[i] = s->gradient[0][i] * v[0] + s->gradient[1][i] * v[1] +
                      s->gradient[2][i] * v[2] + s->gradient[3][i] * v[3];
    if (!g->by_row) return;

    double slopes[4], x[4][3] = {{0}};
    for (int j = 0; j < 4; j++) {
        slopes[j] = is_wet(g, j) ? p[j] / g->phi[j] : slope;
        if (j > 0)
            for (int i = 0; i < 3; i++) x[j][i] = 0.5 * s->edge[j - 1][i];
        /* The row has left its ghosts out, and so must the gradient. */
        if (g->mode & UN_GHOST_CAUTIOUS && is_wet(g, j) && g->row[j] == 0) slopes[j] = 0;
    }
    for (int d = 0; d < 4; d++) {
        if (is_wet(g, d)) continue;
        for (int j = 0; j < 4; j++) {
            double c = g->phi[d] * s->stiffness[j][d] / s->volume * slopes[j];
            if (j != d)
                for (int i = 0; i < 3; i++) gradient[i] += (x[j][i] - x[d][i]) * c;
        }
    }
}
