/* Output surface of particles of many sizes: the union of hulls [Ando13 section 5] on a tet mesh of
 * its own.
 *
 * The mesh is fine where the surface is: leaves of some two particle radii, or of the wanted
 * resolution where that is coarser, wherever an exposed face passes. It is
 * stretched a little along each axis, so that its brick is the domain: liquid that meets a side is
 * closed exactly there, with sharp edges. The surface itself is the hulls', cut to solids; each
 * crowd of vertices is merged (cluster.c), because marching tetrahedra leave needles; then the
 * surface is faired, and moved inwards by as much as hulls of scattered particles stand out too
 * far.
 *
 * The output surface keeps the liquid's volume, not the particles' exact positions: hulls rest on
 * the outermost particles and enclose up to a few per cent more. The surplus is removed by an
 * offset in proportion to the particles' radii, at most INSET of them. Sheets, threads and drops
 * are drawn as slim.c says, and each connected piece gets its own volume (offset.c). */
#include "surface/contour.h"
#include "surface/hulls.h"
#include "surface/hulls_ranks.h"
#include "surface/offset.h"

/* l of the paper. */
#define REACH 2.0
/* Spheres near the surface of the simulation are made to touch it. They shrink by up to this share
 * of their radius, and may grow by more (hulls.c). Depths in one layer of settled liquid vary by
 * some 0.1 radii, most where sizes change, and the eye sees that; a gap in the layer exposes
 * spheres more than two radii deep. A tank of mixed sizes at rest has a roughness of 0.05 of a
 * finest cell rms without this, 0.006 with it, and dips of at most 0.04. */
#define TOUCH 0.8
/* Largest edge of leaves at the surface, in radii. Eight particles fill a cube of four radii, so
 * these leaves are about half as wide as the simulation's cells, and fairing by passes over edges
 * works on the same scale for all sizes; drops and threads need finer ones to be seen at all. */
#define LEAF 2.5
#define LEAF_THIN 1.25
/* Largest offsets inwards and outwards, in radii. Settled liquid needs 0.05 to 0.09 inwards. */
#define INSET 0.12
#define OUTSET 0.06
/* The same, both ways, for pieces of thin liquid. */
#define PIECE_MOST 0.8
/* The same for sheets and drops that hang together with the body. */
#define SHEET_MOST 0.5
/* Radius, in leaves, of spheres whose sheet has no holes even where it lies between the nodes: half
 * of the longest edge, and a little. */
#define DRAWN 0.58
/* Reach of the velocity average at vertices, in radii of the particles. */
#define VELOCITY_REACH 3.0
#define NEAR_MAX 512
#define SPREAD_PASSES 4

typedef struct mesher_state {
    un_context *ctx;
    const un_hull_mesher *in;
    un_hull_mesher as_saved; /* of particles, rounded; over ranks, of all */
    un_all_particles all;
    bool shared;
    un_tree_share tree_share;
    un_tet_share tet_share;
    int32_t resolution;
    un_arena arena; /* lives to the end */
    un_arena cut;   /* the cut that the contour is made from */
    un_arena scratch;
    un_arena motion; /* over ranks: velocities */
    un_groups groups;
    un_hulls *hulls;
    un_octree tree;
    un_tets tets;
    un_lattice lattice; /* the mesh's finest leaves: planes of the sides, steps */
    double stretch[3];  /* from the tree's space to the domain */
    un_trimesh *mesh;
    int32_t *same;     /* at vertices of the contour: see un_cut_clusters */
    float *joining;    /* at particles: radius; NaN if the particle is a sphere by itself */
    uint8_t *detached; /* at particles: 1 if it is such a sphere */
    int32_t *spheres, sphere_count;
    un_slim slim;       /* sheets, threads and drops */
    int32_t *piece;     /* at particles: see un_hulls */
    int32_t level_base; /* finest level of the resolution; threads may have one more */
    double leaf;        /* edge of the leaves of that level */
    float *radius;      /* at vertices: of the particles there, without thin ones */
    float *near_radius; /* at vertices: with them */
    float *too_thick;   /* at vertices: see un_slim_entry.inset */
    int32_t *nearest;   /* at vertices: the particle they belong to */
    un_pieces pieces;
    uint8_t *still;     /* at vertices: 1 next to a solid */
    un_vec3 *direction; /* at vertices: direction in which the free surface moves inwards */
} mesher_state;

static un_status agree(const mesher_state *s, un_status status)
{
    return un_hulls_agree(s->ctx, s->shared, status);
}

/* ---- drops ---- */

/* True if a solid is nearer to x than `near`. */
static bool is_near_solid(const mesher_state *s, un_vec3 x, double near)
{
    const un_walls *walls = s->in->walls;
    return walls && un_bodies_nearest(walls->bodies, x, &near) >= 0;
}

static bool is_clear_of_walls(const mesher_state *s, un_vec3 x, double radius)
{
    un_vec3 far = un_sub(s->in->size, x);
    double side = fmin(fmin(x.x, fmin(x.y, x.z)), fmin(far.x, fmin(far.y, far.z)));
    return side >= radius && !is_near_solid(s, x, radius);
}

/* No point of a hull is farther from the nearest of its particles than 2.31 of their sizes, 4 /
 * sqrt(3) to the middle of the widest triangle, and their sphere. */
#define HULL_REACH 2.31
/* Largest size or radius of a thin particle's sphere, in radii. */
#define SLIM_MOST 2.0

static const un_slim_entry *slim_entry(const mesher_state *s, int64_t q)
{
    return s->slim.place[q] >= 0 ? &s->slim.entry[s->slim.place[q]] : NULL;
}

/* True if a particle is drawn as a sphere by itself. */
static bool is_drop(const mesher_state *s, int64_t q)
{
    const un_slim_entry *e = slim_entry(s, q);
    return e ? !e->joined : (s->in->particles->flags[q] & UN_PARTICLE_APART) != 0;
}

/* Largest distance of the drop's mesh from its middle. */
static double drop_reach(const mesher_state *s, int64_t q)
{
    const un_slim_entry *e = slim_entry(s, q);
    double r = e && !e->joined ? e->radius : UN_HULL_DROP * s->in->radius[q];
    return UN_SPHERE_CORNER * (e ? 1 + e->stretch * (UN_DROP_LONGEST - 1) : 1) * r;
}

/* How far the surface that a particle takes part in is from it, at most. */
static double surface_reach(const mesher_state *s, int64_t q)
{
    const un_slim_entry *e = slim_entry(s, q);
    if (is_drop(s, q)) return drop_reach(s, q);
    if (e) return HULL_REACH * e->size + e->radius;
    return (HULL_REACH + 1) * s->in->radius[q];
}

/* Finds drops whose sphere meets neither a wall nor another particle's hull: they need no mesh. */
static void find_detached(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    const un_particles *p = s->in->particles;
    for (int64_t i = begin; i < end; i++) {
        un_vec3 x = un_particle_position(p, i);
        s->joining[i] = s->in->radius[i];
        s->detached[i] = 0;
        if (!is_drop(s, i) || !un_finite3(x) || !(s->in->radius[i] > 0)) continue;
        double radius = drop_reach(s, i);
        int32_t near[NEAR_MAX];
        int32_t count = un_groups_near(&s->groups, (un_box3){x, x}, radius,
                                       (HULL_REACH + 1) * SLIM_MOST, near, NEAR_MAX);
        bool alone = count >= 0 && is_clear_of_walls(s, x, radius);
        for (int32_t g = 0; g < count && alone; g++) {
            int64_t last = un_min64(p->count, UN_GROUP * ((int64_t)near[g] + 1));
            for (int64_t q = UN_GROUP * (int64_t)near[g]; q < last && alone; q++) {
                const un_slim_entry *e = slim_entry(s, q);
                un_vec3 to = un_sub(e ? e->x : un_particle_position(p, q), x);
                double reach = radius + surface_reach(s, q);
                alone = q == i || !(un_dot(to, to) < reach * reach);
            }
        }
        if (!alone) continue;
        s->detached[i] = 1;
        s->joining[i] = NAN;
    }
}

static double longest_side(const mesher_state *s)
{
    return fmax(s->in->size.x, fmax(s->in->size.y, s->in->size.z));
}

static un_status set_drops_apart(mesher_state *s)
{
    const un_hull_mesher *in = s->in;
    int64_t count = in->particles->count;
    s->joining = un_arena_alloc(&s->arena, (size_t)count + 1, sizeof *s->joining);
    s->detached = un_arena_alloc(&s->arena, (size_t)count + 1, 1);
    UN_TRY(agree(s, s->joining && s->detached ? UN_OK : UN_ERROR_MEMORY));
    un_slim_def def = {.particles = in->particles,
                       .groups = &s->groups,
                       .radius = in->radius,
                       .depth = in->depth,
                       .walls = in->walls,
                       .size = in->size,
                       .gravity = in->walls ? in->walls->scene->def.gravity : un_v3(0, 0, 0),
                       .reach = REACH,
                       .touch = TOUCH,
                       .leaf = longest_side(s) / s->resolution,
                       .shared = s->shared};
    def.drawn = DRAWN * def.leaf;
    UN_TRY(un_slim_find(s->ctx, &s->arena, &s->slim, &def));
    un_parallel_part(s->ctx, un_hulls_part(s->ctx, s->shared, count), 1024, find_detached, s);
    un_hulls_spread(s->ctx, s->shared, count, s->joining, sizeof *s->joining);
    un_hulls_spread(s->ctx, s->shared, count, s->detached, 1);
    return agree(s,
                 un_cut_list(s->ctx, &s->arena, s->detached, count, &s->spheres, &s->sphere_count));
}

static un_status add_drops(mesher_state *s)
{
    const un_particles *p = s->in->particles;
    un_drop *drops = un_arena_alloc(&s->arena, (size_t)s->sphere_count + 1, sizeof *drops);
    if (!drops) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < s->sphere_count; i++) {
        int32_t q = s->spheres[i];
        const un_slim_entry *e = slim_entry(s, q);
        drops[i] =
            (un_drop){.x = un_particle_position(p, q),
                      .velocity = un_particle_velocity(p, q),
                      .radius = e && !e->joined ? e->radius : cbrt(0.75 / UN_PI * p->volume[q]),
                      .stretch = e ? e->stretch : 0};
    }
    return un_surface_add_drops(s->ctx, &s->arena, s->mesh, drops, s->sphere_count,
                                UN_DROP_FINE * s->leaf);
}

/* ---- the mesh ---- */

/* True if a thread is too thin for the leaves of the resolution. */
static bool needs_finer(const mesher_state *s)
{
    bool finer = false;
    for (int64_t i = 0; i < s->hulls->sheet_count; i++)
        finer |= s->hulls->sheets[i].leaf > 0 && s->hulls->sheets[i].leaf < s->leaf;
    return s->shared ? un_ranks_max(s->ctx, finer) > 0 : finer;
}

/* The brick has a whole number of coarsest leaves along each axis, as close as possible to the
 * domain's side. */
static void plan_tree(mesher_state *s)
{
    const un_hull_mesher *in = s->in;
    double side[3] = {in->size.x, in->size.y, in->size.z};
    double longest = longest_side(s);
    double least = fmin(side[0], fmin(side[1], side[2]));
    int32_t resolution = s->resolution > 1 ? s->resolution : 1, levels = 0;
    int32_t coarsest = un_clampi(in->coarsest, 1, resolution);
    /* in thin domains the coarsest leaves fit across, so that none is squeezed much */
    while ((int64_t)coarsest << (levels + 1) <= resolution && levels + 1 < UN_LEVELS_MAX &&
           longest / resolution * ldexp(1, levels + 1) <= 0.75 * least)
        levels++;
    int32_t along = (int32_t)((resolution + (1ll << levels) - 1) >> levels);
    s->level_base = levels;
    s->leaf = longest / ((double)along * (1 << levels));
    if (needs_finer(s) && levels + 1 < UN_LEVELS_MAX) levels++;
    double root = longest / along, virtual[3];
    for (int32_t a = 0; a < 3; a++) {
        int32_t cubes = (int32_t)fmax(1, round(side[a] / root));
        virtual[a] = cubes * root;
        s->lattice.n[a] = (cubes << levels) + 1;
        s->lattice.h[a] = side[a] / (cubes << levels);
        s->stretch[a] = side[a] / virtual[a];
    }
    un_octree_init(s->ctx, &s->tree, un_v3(virtual[0], virtual[1], virtual[2]), along,
                   along << levels);
}

/* Computes positions as the lattice does, so that the sides have the same bits. From here on only
 * the nodes' positions and neighbours are used; the tets' shapes no longer fit and are stripped
 * before the cut. */
static void stretch_nodes(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    for (int64_t n = begin; n < end; n++) {
        uint64_t key = s->tets.node_key[n];
        s->tets.x[n] =
            un_lattice_point(&s->lattice, 0.5 * un_morton_gather(key),
                             0.5 * un_morton_gather(key >> 1), 0.5 * un_morton_gather(key >> 2));
    }
}

/* Spacing of the sample points on a sheet, in leaves: each leaf that the sheet passes through
 * should get one. */
#define STEP 0.5

typedef struct request_args {
    mesher_state *s;
    int64_t *first; /* by sheet */
    double *x[3];
    uint8_t *level, *reach;
    uint8_t *at_solid; /* by particle */
    int32_t *solid;    /* particles at solids; their requests follow those of the sheets */
    int64_t solid_first;
} request_args;

static int32_t sheet_level(const mesher_state *s, const un_hull_sheet *sheet)
{
    double leaf = (sheet->radius > 0 ? LEAF_THIN : LEAF) * sheet->size;
    int32_t level = un_octree_level(&s->tree, leaf);
    int32_t fine = sheet->leaf > 0 ? un_octree_level(&s->tree, sheet->leaf) : 0;
    return un_clampi(level, fine, fine > s->level_base ? fine : s->level_base);
}

/* Number n of steps along each side of a sheet, which then has (n + 1) (n + 2) / 2 points; an axis
 * has n + 1. */
static int32_t sheet_steps(const mesher_state *s, const un_hull_sheet *sheet)
{
    double longest = 0, leaf = un_octree_size(&s->tree, sheet_level(s, sheet));
    for (int32_t c = 0; c < 3; c++) {
        const float *a = sheet->x[c], *b = sheet->x[(c + 1) % 3];
        longest = fmax(longest, hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]));
    }
    return (int32_t)un_clamp(ceil(longest / (STEP * leaf)), longest > 0 ? 1 : 0, 64);
}

static int64_t sheet_points(const mesher_state *s, const un_hull_sheet *sheet)
{
    int64_t n = sheet_steps(s, sheet);
    return sheet->radius > 0 ? n + 1 : (n + 1) * (n + 2) / 2;
}

static void request_leaves(void *arg, int64_t begin, int64_t end)
{
    request_args *a = arg;
    mesher_state *s = a->s;
    for (int64_t i = begin; i < end; i++) {
        const un_hull_sheet *sheet = &s->hulls->sheets[i];
        int32_t n = sheet_steps(s, sheet), level = sheet_level(s, sheet);
        double scale = n > 0 ? 1.0 / n : 0, leaf = un_octree_size(&s->tree, level);
        int64_t to = a->first[i];
        for (int32_t u = 0; u <= n; u++)
            for (int32_t v = 0; v <= (sheet->radius > 0 ? 0 : n - u); v++) {
                double wu = u * scale, wv = v * scale;
                for (int32_t d = 0; d < 3; d++)
                    a->x[d][to] = (sheet->x[0][d] * (1 - wu - wv) + sheet->x[1][d] * wu +
                                   sheet->x[2][d] * wv) /
                                  s->stretch[d];
                a->level[to] = (uint8_t)level;
                a->reach[to] = (uint8_t)un_clamp(ceil(sheet->radius / leaf), 0, 8);
                to++;
            }
    }
}

static void find_at_solids(void *arg, int64_t begin, int64_t end)
{
    request_args *a = arg;
    const mesher_state *s = a->s;
    for (int64_t q = begin; q < end; q++)
        a->at_solid[q] =
            is_near_solid(s, un_particle_position(s->in->particles, q), LEAF * s->in->radius[q]);
}

static void request_at_solids(void *arg, int64_t begin, int64_t end)
{
    request_args *a = arg;
    const mesher_state *s = a->s;
    for (int64_t i = begin; i < end; i++) {
        int64_t q = a->solid[i], to = a->solid_first + i;
        for (int32_t d = 0; d < 3; d++) a->x[d][to] = s->in->particles->x[d][q] / s->stretch[d];
        a->level[to] = (uint8_t)un_clampi(un_octree_level(&s->tree, LEAF * s->in->radius[q]), 0,
                                          s->level_base);
        a->reach[to] = 1;
    }
}

/* Asks for leaves where an exposed face passes and where liquid touches a solid; over ranks, each
 * for some of these. */
static un_status list_requests(mesher_state *s, request_args *a, un_octree_request *request)
{
    const un_particles *p = s->in->particles;
    un_part particles = un_hulls_part(s->ctx, s->shared, p->count);
    int64_t sheets = s->hulls->sheet_count, count = 0;
    int32_t solid_count = 0;
    if (s->in->walls && s->in->walls->bodies->count) {
        a->at_solid = un_arena_alloc(&s->scratch, (size_t)p->count + 1, 1);
        if (!a->at_solid) return UN_ERROR_MEMORY;
        memset(a->at_solid, 0, (size_t)p->count);
        un_parallel_part(s->ctx, particles, 1024, find_at_solids, a);
        UN_TRY(un_cut_list(s->ctx, &s->scratch, a->at_solid, p->count, &a->solid, &solid_count));
    }
    a->first = un_arena_alloc(&s->scratch, (size_t)sheets + 1, sizeof *a->first);
    if (!a->first) return UN_ERROR_MEMORY;
    for (int64_t i = 0; i < sheets; i++) {
        a->first[i] = count;
        count += sheet_points(s, &s->hulls->sheets[i]);
    }
    a->solid_first = count;
    count += solid_count;
    for (int32_t d = 0; d < 3; d++) {
        a->x[d] = un_arena_alloc(&s->scratch, (size_t)count + 1, sizeof *a->x[d]);
        if (!a->x[d]) return UN_ERROR_MEMORY;
    }
    a->level = un_arena_alloc(&s->scratch, (size_t)count + 1, 1);
    a->reach = un_arena_alloc(&s->scratch, (size_t)count + 1, 1);
    if (!a->level || !a->reach) return UN_ERROR_MEMORY;
    un_parallel_for(s->ctx, sheets, 512, request_leaves, a);
    un_parallel_for(s->ctx, solid_count, 4096, request_at_solids, a);
    *request = (un_octree_request){count, {a->x[0], a->x[1], a->x[2]}, a->level, a->reach};
    return UN_OK;
}

/* Builds a tree that is fine where the surface is. */
static un_status build_tree(mesher_state *s)
{
    request_args a = {.s = s};
    un_octree_request request;
    UN_TRY(agree(s, list_requests(s, &a, &request)));
    if (s->shared) return un_hulls_build_tree(&s->tree, &s->tree_share, &s->scratch, &request);
    return un_octree_build(&s->tree, &s->scratch, &request);
}

/* Peak memory per leaf, measured. */
#define LEAF_BYTES 1050.0
#define COARSER 0.84 /* five such steps make slightly more than a factor of two */

/* Builds the mesh as fine as memory allows. */
static un_status build_mesh(mesher_state *s)
{
    double most = s->in->bytes_max > 0 ? s->in->bytes_max / LEAF_BYTES : INFINITY;
    for (;;) {
        plan_tree(s);
        UN_TRY(build_tree(s));
        int64_t leaves = s->shared ? s->tree_share.leaves.total : s->tree.leaf_count;
        if ((double)leaves <= most || s->resolution <= s->in->coarsest) break;
        un_arena_reset(&s->scratch);
        un_octree_free(&s->tree);
        s->resolution = (int32_t)fmax(s->in->coarsest, floor(COARSER * s->resolution));
    }
    un_arena_free(&s->scratch);
    UN_TRY(agree(s, un_tets_build(&s->tets, &s->scratch, &s->tree)));
    if (s->shared) UN_TRY(un_tet_share_find(&s->tet_share, &s->scratch, &s->tets, &s->tree_share));
    un_parallel_for(s->ctx, s->tets.node_count, 8192, stretch_nodes, s);
    return UN_OK;
}

/* ---- particles at vertices ---- */

/* Vertices evaluated together; they are consecutive along the curve. */
#define BUNCH 16

typedef struct mean {
    double weight, radius, near_radius, too_thick;
    un_vec3 velocity;
    double least; /* distance from a sphere */
    int32_t nearest;
} mean;

static void add_near(const mesher_state *s, mean *m, un_vec3 x, int32_t group, double factor)
{
    const un_particles *p = s->in->particles;
    int64_t last = un_min64(p->count, UN_GROUP * ((int64_t)group + 1));
    for (int64_t q = UN_GROUP * (int64_t)group; q < last; q++) {
        un_vec3 to = un_sub(un_particle_position(p, q), x);
        double r = s->in->radius[q], reach = factor * r, t = 1 - un_dot(to, to) / (reach * reach);
        if (!(t > 0)) continue;
        double w = t * t * t;
        const un_slim_entry *e = slim_entry(s, q);
        m->weight += w;
        m->near_radius += w * r;
        m->too_thick += e ? w * e->inset : 0;
        m->radius += (e && !e->body) || p->flags[q] & UN_PARTICLE_APART
                         ? 0
                         : w * r; /* see find_directions */
        double away = (e ? un_length(un_sub(e->x, x)) : un_length(to)) - (e ? e->radius : r);
        if (away < m->least && !s->detached[q]) m->least = away, m->nearest = (int32_t)q;
        m->velocity = un_mad(m->velocity, un_particle_velocity(p, q), w);
    }
}

/* Mean velocity and radius of the particles near a vertex, weighted by nearness; the search widens
 * until it finds some. */
static void sample_particles(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    for (int64_t first = begin; first < end; first += BUNCH) {
        int64_t last = un_min64(first + BUNCH, end);
        un_box3 box = {s->mesh->position[first], s->mesh->position[first]};
        for (int64_t v = first; v < last; v++) {
            box.min = un_min3(box.min, s->mesh->position[v]);
            box.max = un_max3(box.max, s->mesh->position[v]);
        }
        int32_t near[NEAR_MAX];
        int32_t common = un_groups_near(&s->groups, box, 0, VELOCITY_REACH, near, NEAR_MAX);
        for (int64_t v = first; v < last; v++) {
            un_vec3 x = s->mesh->position[v];
            mean m = {.least = INFINITY, .nearest = -1};
            for (int32_t g = 0; g < common; g++) add_near(s, &m, x, near[g], VELOCITY_REACH);
            double factor = common < 0 ? VELOCITY_REACH : 2 * VELOCITY_REACH;
            for (int32_t round = 0; round < 8 && !(m.weight > 0); round++, factor *= 2) {
                int32_t own[NEAR_MAX];
                int32_t count =
                    un_groups_near(&s->groups, (un_box3){x, x}, 0, factor, own, NEAR_MAX);
                if (count < 0) count = NEAR_MAX;
                for (int32_t g = 0; g < count; g++) add_near(s, &m, x, own[g], factor);
            }
            double scale = m.weight > 0 ? 1 / m.weight : 0;
            s->mesh->velocity[v] = un_scale(m.velocity, scale);
            s->radius[v] = (float)(m.radius * scale);
            s->near_radius[v] = (float)(m.near_radius * scale);
            s->too_thick[v] = (float)(m.too_thick * scale);
            s->nearest[v] = m.nearest;
        }
    }
}

/* ---- offset ---- */

/* What no leaf has seen is drawn as drops, too. */
static un_status find_lost(mesher_state *s)
{
    int32_t count = s->in->particles->count;
    for (int32_t i = 0; i < s->slim.count; i++) {
        int32_t q = s->slim.particle[i];
        un_vec3 x = un_particle_position(s->in->particles, q);
        if (s->pieces.wanting[q] && is_clear_of_walls(s, x, drop_reach(s, q))) s->detached[q] = 1;
    }
    return un_cut_list(s->ctx, &s->arena, s->detached, count, &s->spheres, &s->sphere_count);
}

static void find_still(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    for (int64_t v = begin; v < end; v++)
        s->still[v] = is_near_solid(s, s->mesh->position[v], 0.5 * s->leaf);
}

static un_status take_off_surplus(mesher_state *s)
{
    const un_particles *p = s->in->particles;
    un_offset offset = {.mesh = s->mesh,
                        .lattice = &s->lattice,
                        .pieces = &s->pieces,
                        .still = s->still,
                        .radius = s->radius,
                        .near_radius = s->near_radius,
                        .too_thick = s->too_thick,
                        .direction = s->direction,
                        .body = INSET,
                        .sheets = SHEET_MOST,
                        .most = PIECE_MOST};
    un_parallel_for(s->ctx, s->mesh->vertex_count, 4096, find_still, s);
    s->pieces = (un_pieces){.mesh = s->mesh,
                            .particles = p,
                            .of_particle = s->piece,
                            .nearest = s->nearest,
                            .body = -1};
    if (s->slim.count == 0) {
        double wanted = un_particles_volume(s->ctx, p);
        for (int32_t i = 0; i < s->sphere_count; i++) wanted -= p->volume[s->spheres[i]];
        un_offset_even(s->ctx, &offset, wanted, -OUTSET, INSET);
        return UN_OK;
    }
    for (int32_t q = 0; q < p->count && s->pieces.body < 0; q++)
        if (!slim_entry(s, q) || slim_entry(s, q)->body) s->pieces.body = q;
    UN_TRY(un_pieces_find(s->ctx, &s->pieces));
    UN_TRY(find_lost(s));
    un_offset_pieces(s->ctx, &offset);
    return UN_OK;
}

/* ---- the recipe ---- */

static un_status make_hulls(mesher_state *s, un_hulls_report *report)
{
    const un_hull_mesher *in = s->in;
    const un_particles *p = in->particles;
    UN_TRY(agree(s, un_groups_build(s->ctx, &s->arena, &s->groups,
                                    (const double *const[3]){p->x[0], p->x[1], p->x[2]}, in->radius,
                                    p->count)));
    UN_TRY(set_drops_apart(s));
    un_arena_free(&s->motion);
    un_hulls_def def = {.groups = &s->groups,
                        .radius = s->joining,
                        .flags = p->flags,
                        .depth = in->depth,
                        .reach = REACH,
                        .touch = TOUCH,
                        .sheets = true,
                        .walls = in->walls,
                        .slim = &s->slim,
                        .shared = s->shared};
    UN_TRY(agree(s, un_hulls_create(s->ctx, &s->scratch, &def, &s->hulls, report)));
    s->piece = s->hulls->piece; /* outlives the hulls */
    s->hulls->piece = NULL;
    return UN_OK;
}

static un_status contour_hulls(mesher_state *s)
{
    const un_hull_mesher *in = s->in;
    un_cut cut;
    un_tet_graph graph;
    un_hulls_cut_def def = {.mesh = &s->tets,
                            .graph = &graph,
                            .hulls = s->hulls,
                            .groups = &s->groups,
                            .radius = s->joining,
                            .depth = in->depth,
                            .walls = in->walls};
    float *phi = un_arena_alloc(&s->scratch, (size_t)s->tets.node_count + 1, sizeof *phi);
    un_status status =
        phi ? un_tet_graph_build(s->ctx, &s->scratch, &graph, &s->tets) : UN_ERROR_MEMORY;
    UN_TRY(agree(s, status));
    un_tets_strip(&s->tets);
    UN_TRY(un_hulls_cut(s->ctx, &s->cut, &s->scratch, &def, phi, &cut));
    un_arena_free(&s->scratch);
    un_hulls_destroy(s->hulls);
    s->hulls = NULL;
    un_cut_keep_off(s->ctx, &cut, UN_SURFACE_HAIR);
    UN_TRY(un_cut_contour(s->ctx, &s->cut, &cut, s->mesh));
    return un_cut_clusters(s->ctx, &s->arena, &cut, s->mesh->vertex_count, &s->same);
}

static un_status finish_mesh(mesher_state *s)
{
    un_context *ctx = s->ctx;
    un_trimesh *mesh = s->mesh;
    UN_TRY(un_surface_merge(ctx, mesh, s->same));
    size_t vertices = (size_t)mesh->vertex_count + 1;
    UN_TRY(un_surface_fair(ctx, &s->lattice, mesh, SPREAD_PASSES, s->in->smoothing));
    UN_TRY(un_surface_normals_at_walls(ctx, &s->lattice, mesh));
    UN_ALLOC(ctx, mesh->velocity, vertices);
    s->radius = un_arena_alloc(&s->arena, vertices, sizeof *s->radius);
    s->near_radius = un_arena_alloc(&s->arena, vertices, sizeof *s->near_radius);
    s->too_thick = un_arena_alloc(&s->arena, vertices, sizeof *s->too_thick);
    s->nearest = un_arena_alloc(&s->arena, vertices, sizeof *s->nearest);
    s->still = un_arena_alloc(&s->arena, vertices, 1);
    s->direction = un_arena_alloc(&s->arena, vertices, sizeof *s->direction);
    if (!s->radius || !s->near_radius || !s->too_thick || !s->nearest || !s->still || !s->direction)
        return UN_ERROR_MEMORY;
    un_parallel_for(ctx, mesh->vertex_count, 256, sample_particles, s);
    UN_TRY(take_off_surplus(s));
    return add_drops(s);
}

/* ---- as particles.vtp holds them ---- */

static void round_numbers(void *arg, int64_t begin, int64_t end)
{
    mesher_state *s = arg;
    const un_particles *p = s->in->particles;
    for (int a = 0; a < 3; a++)
        for (int64_t q = begin; q < end; q++) {
            s->all.particles.x[a][q] = (double)(float)p->x[a][q];
            s->all.particles.v[a][q] = (double)(float)p->v[a][q];
        }
}

/* Places and velocities in single precision: whether two particles are joined must not depend on
 * digits that the file has lost, or a surface made again from it would be another one. */
static un_status take_as_saved(mesher_state *s)
{
    const un_particles *p = s->in->particles;
    un_particles *mine = &s->all.particles;
    size_t count = (size_t)p->count + 1;
    s->as_saved = *s->in;
    s->as_saved.particles = mine;
    if (s->shared) {
        UN_TRY(un_all_particles_get(s->ctx, &s->arena, &s->motion, &s->all, s->in));
        s->as_saved.radius = s->all.radius;
        s->as_saved.depth = s->all.depth;
        s->in = &s->as_saved;
        return UN_OK;
    }
    *mine = *p;
    for (int a = 0; a < 3; a++) {
        mine->x[a] = un_arena_alloc(&s->arena, count, sizeof **p->x);
        mine->v[a] = un_arena_alloc(&s->arena, count, sizeof **p->v);
        if (!mine->x[a] || !mine->v[a]) return UN_ERROR_MEMORY;
    }
    un_parallel_for(s->ctx, p->count, 16384, round_numbers, s);
    s->in = &s->as_saved;
    return UN_OK;
}

un_status un_surface_mesh_hulls(un_context *ctx, un_trimesh *mesh, const un_hull_mesher *mesher,
                                un_hulls_report *report)
{
    mesher_state s = {.ctx = ctx, .in = mesher, .resolution = mesher->resolution, .mesh = mesh};
    s.shared = mesher->shared && un_rank_count(ctx) > 1;
    s.tree_share.ctx = s.tet_share.ctx = ctx;
    *mesh = (un_trimesh){0};
    un_arena_init(&s.arena, ctx);
    un_arena_init(&s.cut, ctx);
    un_arena_init(&s.scratch, ctx);
    un_arena_init(&s.motion, ctx);
    un_tets_init(ctx, &s.tets);
    un_status status = take_as_saved(&s);
    if (status == UN_OK) status = make_hulls(&s, report);
    un_arena_free(&s.scratch);
    if (status == UN_OK) status = build_mesh(&s);
    report->resolution = s.resolution;
    un_arena_free(&s.scratch);
    if (status == UN_OK) status = contour_hulls(&s);
    un_hulls_destroy(s.hulls);
    un_tet_share_free(&s.tet_share);
    un_tree_share_free(&s.tree_share);
    un_tets_free(&s.tets);
    un_octree_free(&s.tree);
    un_arena_free(&s.scratch);
    un_arena_free(&s.cut);
    un_arena_free(&s.motion);
    if (status == UN_OK && s.shared) status = un_all_velocities_get(ctx, &s.arena, &s.all, mesher);
    if (status == UN_OK) status = agree(&s, s.shared && un_rank(ctx) > 0 ? UN_OK : finish_mesh(&s));
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    un_pieces_free(ctx, &s.pieces);
    un_free(ctx, s.piece);
    un_arena_free(&s.arena);
    return status;
}
