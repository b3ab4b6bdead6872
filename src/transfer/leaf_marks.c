/* What the leaves of an octree tell about particles, and particles about leaves: depths and flags,
 * where emitted volume is, which leaves paths may reach, how fast the liquid crosses them. */
#include "transfer/leaves.h"

/* Particles this close to the surface, in cells, count as near it. */
#define SURFACE_DEPTH 1.5
/* Drops in a leaf this many times wider than their own stay drops (particles/drops.c). */
#define LANDED_WIDTH 2.0

typedef struct mark_args {
    un_markers *markers;
    const un_leaves *m;
    const float *phi, *wall;
    const uint8_t *thick;
    const un_cling *cling;
} mark_args;

/* Is there liquid in any of the leaves around x, those whose centres surround it? */
static bool touches_liquid(const mark_args *a, int32_t c, un_vec3 x)
{
    const un_leaves *m = a->m;
    const int32_t *near = un_leaf_near(m, c);
    un_vec3 d = un_sub(x, m->x[c]);
    int way[3] = {d.x < 0 ? -1 : 1, d.y < 0 ? -3 : 3, d.z < 0 ? -9 : 9};
    for (int k = 0; k < 1 << m->dim; k++) {
        int n = m->near_count / 2;
        for (int b = 0; b < m->dim; b++) n += k >> b & 1 ? way[b] : 0;
        if (near[n] >= 0 && a->phi[near[n]] < 0) return true;
    }
    return false;
}

/* Where the level set slopes by less, deep in the liquid, there is no direction to the surface:
 * what is left of it would be that of noise. */
#define SLOPE_MIN 0.1
/* In leaves whose centres are this far from the surface, in edges, depths need not be exact. Slopes
 * matter for 8 radii (particles/correct_sized.c), two edges. */
#define DEEP 3.0
/* Particles whose depth is found in one go. */
#define MARK_BATCH 256

static void mark_batch(mark_args *a, int64_t begin, int64_t end, double *sums)
{
    un_markers *s = a->markers;
    un_particles *p = &s->particles;
    const un_leaves *m = a->m;
    double gravity = a->cling->gravity, depths[MARK_BATCH];
    un_vec3 slopes[MARK_BATCH];
    const double *const places[3] = {p->x[0] + begin, p->x[1] + begin, p->x[2] + begin};
    un_leaves_sample_points(m, a->phi, DEEP, end - begin, s->bins.tet + begin, places, depths,
                            slopes);
    for (int64_t q = begin; q < end; q++) {
        int32_t c = s->bins.tet[q];
        un_vec3 x = un_particle_position(p, q);
        double h = un_leaf_size(m, c), depth = depths[q - begin];
        bool deep = depth < -h, clings = !deep && un_cling_holds(a->cling, s, q, depth);
        bool wet = deep || clings || touches_liquid(a, c, x);
        double steep = un_length(slopes[q - begin]);
        un_vec3 g = un_scale(slopes[q - begin], 1 / (steep > SLOPE_MIN ? steep : SLOPE_MIN));
        s->depth[q] = (float)depth;
        s->normal[0][q] = (float)g.x;
        s->normal[1][q] = (float)g.y;
        s->normal[2][q] = (float)g.z;
        s->wall[q] = (float)(a->wall[c] - un_length(un_sub(x, m->x[c])));
        un_vec3 u = un_particle_velocity(p, q);
        bool calm = un_dot(u, u) < gravity * h + a->cling->tension / h;
        double most = LANDED_WIDTH * UN_LEAF_WIDTH; /* the root is taken where it may matter */
        bool small = h > most * 1.99 * (double)s->radius[q] &&
                     h > most * un_particles_spacing(p, p->volume[q]);
        /* a particle without cells of its own flies until it meets the surface itself */
        if (small && !clings && depth > (double)s->radius[q]) wet = false;
        bool landed = small && p->flags[q] & UN_PARTICLE_APART;
        bool thin = a->thick && !a->thick[c];
        int flags = p->flags[q] & UN_PARTICLE_HALVED_MASK;
        flags |= (depth > -SURFACE_DEPTH * h ? UN_PARTICLE_SURFACE : 0) |
                 (calm ? UN_PARTICLE_CALM : 0) | (landed ? UN_PARTICLE_LANDED : 0);
        p->flags[q] =
            (uint8_t)((wet ? flags : UN_PARTICLE_BALLISTIC) | (thin ? UN_PARTICLE_THIN : 0));
        sums[0] += !wet;
        sums[1] += (wet & (depth < 0) & !thin) ? p->volume[q] : 0; /* a toss-up */
    }
}

static void mark_particles(void *arg, int64_t begin, int64_t end, double *sums)
{
    for (int64_t q = begin; q < end; q += MARK_BATCH)
        mark_batch(arg, q, q + MARK_BATCH < end ? q + MARK_BATCH : end, sums);
}

double un_transfer_mark_leaves(un_context *ctx, un_markers *markers, const un_leaves *leaves,
                               const float *phi, const float *wall, const uint8_t *thick,
                               const un_cling *cling)
{
    double sums[2] = {0};
    mark_args a = {markers, leaves, phi, wall, thick, cling};
    un_markers_sums(ctx, markers, 2, mark_particles, &a, sums); /* between sorting and resizing */
    markers->ballistic = (int64_t)sums[0];
    return sums[1];
}

un_status un_emitted_place_leaves(un_context *ctx, un_emitted *emitted, const un_octree *tree,
                                  const un_markers *markers)
{
    const un_particles *p = &markers->particles;
    un_status status = un_emitted_need(ctx, emitted, tree->leaf_count);
    if (markers->share) return un_emitted_place_ranks(ctx, emitted, tree, markers, status);
    UN_TRY(status);
    memset(emitted->volume, 0, (size_t)tree->leaf_count * sizeof *emitted->volume);
    for (int32_t q = 0; q < p->count; q++)
        if (p->flags[q] & UN_PARTICLE_EMITTED)
            emitted->volume[un_octree_find(tree, un_particle_position(p, q))] += p->volume[q];
    return UN_OK;
}

typedef struct reached_args {
    uint8_t *reached;
    const un_leaves *m;
    const int32_t *first;
} reached_args;

static void find_reached(void *arg, int64_t begin, int64_t end)
{
    const reached_args *a = arg;
    for (int64_t c = begin; c < end; c++) {
        const int32_t *near = un_leaf_near(a->m, c);
        bool any = false, looked_at = un_leaves_knows(a->m, c, 1); /* by particles of this rank */
        for (int n = 0; looked_at && n < a->m->near_count && !any; n++)
            any = near[n] >= 0 && a->first[near[n]] < a->first[near[n] + 1];
        a->reached[c] = any;
    }
}

void un_transfer_reached_leaves(un_context *ctx, uint8_t *reached, const un_leaves *leaves,
                                const un_tet_bins *bins)
{
    reached_args a = {reached, leaves, bins->begin};
    (void)ctx;
    if (un_leaves_in_parts(leaves)) memset(reached, 0, (size_t)leaves->count);
    un_leaves_each(leaves, 4096, find_reached, &a);
}

/* ---- the fastest ---- */

typedef struct rate_args {
    const double *u;
    const uint8_t *known;
    const int32_t *first; /* by leaf: its first particle */
    const un_leaves *m;
    int64_t begin; /* the first face */
} rate_args;

/* Faces of leaves without particles may have any velocity. */
static double rate_block(void *arg, int64_t begin, int64_t end)
{
    const rate_args *a = arg;
    const int32_t *first = a->first;
    double max = 0;
    for (int64_t f = a->begin + begin; f < a->begin + end; f++) {
        int32_t c = a->m->face_side[f] / 6, other = a->m->face_other[f];
        bool holds = first[c] < first[c + 1] || (other >= 0 && first[other] < first[other + 1]);
        if (a->known[f] != 1 || !holds) continue;
        double rate = fabs(a->u[f]) / un_leaf_face_size(a->m, f);
        if (!(rate <= max)) max = rate;
    }
    return max;
}

double un_transfer_rate_leaves(un_context *ctx, const double *u, const uint8_t *known,
                               const un_tet_bins *bins, const un_leaves *leaves)
{
    un_part own = un_leaves_own_faces(leaves);
    rate_args a = {u, known, bins->all ? bins->all : bins->begin, leaves, own.begin};
    double max = un_parallel_max(ctx, own.end - own.begin, rate_block, &a);
    return leaves->share ? un_ranks_max(ctx, max) : max;
}
