/* Output surface from particles.
 *
 * The body of the liquid is the half-way level of the same colour function that the simulation
 * uses (colour.c), sampled on a finer lattice whose outer nodes lie in the domain's sides: at rest
 * it is flat, right up to the walls. Drops and sheets thinner than 0.7 of a simulation cell, which
 * the colour cannot represent, are added as averaged spheres [Zhu & Bridson 2005] around the loose
 * particles only: those that the colour's surface leaves outside, or nearly so. A particle's sphere
 * grows smoothly from nothing as it comes loose, so nothing pops.
 *
 * What flies, and fast liquid outside thick liquid (thick.c), is sheets, threads and drops
 * (slim.c). Drops by themselves are ready-made spheres; spheres of sheets and threads move to the
 * middle of those, and are joined by hulls [Ando13 section 5], because averages of spheres leave
 * holes. Every piece of the surface then gets its particles' volume (offset.c); the body of the
 * liquid moves only where particles are loose.
 *
 * Only a band around the simulation's surface is sampled; elsewhere the simulation's own sign is
 * used.
 *
 * In 2D the lattice is one layer of nodes, spheres are discs, and the result is the liquid's area
 * (flat.c). */
#include "surface/mesher.h"
#include "surface/offset.h"

/* Reach of the velocity average at vertices. */
#define VELOCITY_REACH UN_MESHER_REACH

/* Largest offsets of pieces, and of loose parts of the body, in radii of particles: a quarter of a
 * cell. */
#define PIECE_MOST 1.2
#define SHEET_MOST 0.8
/* The same of the rest of the body, which stays unless its volume is wrong by more than a share: at
 * rest the colour is right. */
#define BODY_MOST 0.4
#define BODY_SLACK 0.004
/* Pieces below this volume, in cubes of the lattice, are drawn as drops. */
#define SPECK 2.5
/* Solids hold vertices that are this near. */
#define AT_SOLID 0.25

/* ---- velocities ---- */

/* What the particles of sheets and threads near a vertex say: sums with their weights. */
typedef struct slim_sums {
    double weight, radius, inset;
} slim_sums;

/* How far a vertex of a sheet or thread still has to move inwards, and how far it will then be from
 * the middle. Fairing has moved those of rims and thin threads already; by all of the inset their
 * sides would pass each other. */
static double excess_at(const un_lattice_mesher *s, un_vec3 x, const slim_sums *sums, double *left)
{
    *left = 0;
    if (!(sums->weight > 0)) return 0;
    double radius = sums->radius / sums->weight, inset = sums->inset / sums->weight;
    double d = un_hulls_distance(s->hulls, x, s->in->grid->h);
    *left = un_clamp(radius + d, 0, radius - inset);
    return un_clamp(inset + d, 0, inset);
}

static void vertex_velocities(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    const un_mesher *in = s->in;
    const un_grid *g = in->grid;
    const un_particles *p = in->particles;
    double reach = VELOCITY_REACH * g->h;
    for (int64_t v = begin; v < end; v++) {
        un_vec3 x = s->mesh->position[v], sum = {0, 0, 0};
        double weight = 0, loose = 0, held = 0, least = INFINITY;
        slim_sums sums = {0, 0, 0};
        int32_t nearest = -1;
        int32_t lo[3], hi[3];
        un_mesher_cells(g, x, reach, lo, hi);
        for (int32_t k = lo[2]; k <= hi[2]; k++)
            for (int32_t j = lo[1]; j <= hi[1]; j++)
                for (int32_t i = lo[0]; i <= hi[0]; i++) {
                    uint32_t cell = un_bins_cell(in->bins, i, j, k);
                    for (int32_t q = in->bins->begin[cell]; q < in->bins->begin[cell + 1]; q++) {
                        un_vec3 to = un_sub(un_particle_position(p, q), x);
                        double t = 1 - un_dot(to, to) / (reach * reach);
                        if (t <= 0) continue;
                        double w = t * t * t;
                        weight += w;
                        sum = un_mad(sum, un_particle_velocity(p, q), w);
                        if (!s->loose) continue;
                        const un_slim_entry *e = un_mesher_slim(s, q);
                        double away = un_length(un_sub(un_mesher_sphere(s, q), x)) - s->radius[q];
                        bool slim = e && e->joined;
                        double share = slim ? 1 : s->radius[q] / un_mesher_radius(s, q);
                        if (slim) {
                            sums.weight += w;
                            sums.radius += w * e->radius;
                            sums.inset += w * e->inset;
                        } else {
                            loose += w * s->size[q];
                        }
                        held += w * s->size[q] * (1 - share);
                        if (away < least && !s->drop[q]) least = away, nearest = q;
                    }
                }
        if (s->loose) {
            double left, share = weight > 0 ? sums.weight / weight : 0;
            s->too_thick[v] = (float)(share * excess_at(s, x, &sums, &left));
            s->loose[v] = weight > 0 ? (float)(loose / weight + share * left) : 0;
            s->held[v] = weight > 0 ? (float)(held / weight) : 0;
            s->nearest[v] = nearest;
            s->still[v] =
                in->walls->bodies->count && un_mesher_solid(in->walls, x) < AT_SOLID * g->h;
        }
        s->mesh->velocity[v] =
            weight > 0 ? un_scale(sum, 1 / weight) : un_faces_sample(g, in->u, x);
    }
}

static un_status vertex_arrays(un_lattice_mesher *s)
{
    size_t vertices = (size_t)s->mesh->vertex_count + 1;
    s->loose = un_arena_alloc(&s->arena, vertices, sizeof *s->loose);
    s->held = un_arena_alloc(&s->arena, vertices, sizeof *s->held);
    s->too_thick = un_arena_alloc(&s->arena, vertices, sizeof *s->too_thick);
    s->still = un_arena_alloc(&s->arena, vertices, 1);
    s->nearest = un_arena_alloc(&s->arena, vertices, sizeof *s->nearest);
    bool all = s->loose && s->held && s->too_thick && s->still && s->nearest;
    return all ? UN_OK : UN_ERROR_MEMORY;
}

un_status un_mesher_look_around(un_lattice_mesher *s)
{
    un_trimesh *mesh = s->mesh;
    mesh->velocity = un_alloc(s->ctx, (size_t)mesh->vertex_count + 1, sizeof *mesh->velocity);
    if (!mesh->velocity) return UN_ERROR_MEMORY;
    if (s->in->grid->dim == 3) UN_TRY(vertex_arrays(s));
    un_parallel_for(s->ctx, mesh->vertex_count, 1024, vertex_velocities, s);
    return UN_OK;
}

/* ---- what flies ---- */

bool un_mesher_is_clear(const un_lattice_mesher *s, un_vec3 x, double radius)
{
    un_vec3 far = un_sub(s->in->grid->size, x);
    double side = fmin(fmin(x.x, fmin(x.y, x.z)), fmin(far.x, fmin(far.y, far.z)));
    return side >= radius &&
           !(s->in->walls->bodies->count && un_mesher_solid(s->in->walls, x) < radius);
}

/* Finds drops. Sizes by how lonely they are keep them from touching anything. */
static void find_drops(void *arg, int64_t begin, int64_t end)
{
    un_lattice_mesher *s = arg;
    for (int64_t i = begin; i < end; i++) {
        const un_slim_entry *e = &s->slim.entry[i];
        double reach = UN_SPHERE_CORNER * UN_DROP_LONGEST * e->radius;
        if (!e->joined && un_mesher_is_clear(s, e->x, reach)) s->drop[s->slim.particle[i]] = 1;
    }
}

/* Particles outside thick liquid. */
un_status un_mesher_find_thin(un_lattice_mesher *s, uint8_t *thin)
{
    const un_mesher *in = s->in;
    uint8_t *thick;
    UN_TRY(un_surface_thick_grid(s->ctx, &s->arena, &thick, in->phi, in->grid, in->walls));
    for (int32_t q = 0; q < in->particles->count; q++)
        thin[q] = !thick[un_grid_cell_at(in->grid, un_particle_position(in->particles, q))];
    return UN_OK;
}

/* Hulls of the sheets' and threads' particles. All others are too deep to take part. */
static un_status join_slim(un_lattice_mesher *s)
{
    const un_particles *p = s->in->particles;
    un_hulls_report report;
    un_arena scratch;
    un_arena_init(&scratch, s->ctx);
    float *depth = un_arena_alloc(&scratch, (size_t)p->count + 1, sizeof *depth);
    for (int32_t q = 0; depth && q < p->count; q++) {
        const un_slim_entry *e = un_mesher_slim(s, q);
        depth[q] = e && e->joined ? 0 : -FLT_MAX;
    }
    un_hulls_def def = {.groups = &s->groups,
                        .radius = s->size,
                        .depth = depth,
                        .reach = 2,
                        .walls = s->in->walls,
                        .slim = &s->slim};
    un_status status =
        depth ? un_hulls_create(s->ctx, &scratch, &def, &s->hulls, &report) : UN_ERROR_MEMORY;
    un_arena_free(&scratch);
    return status;
}

static un_status find_flying(un_lattice_mesher *s)
{
    const un_particles *p = s->in->particles;
    size_t count = (size_t)p->count + 1;
    s->size = un_arena_alloc(&s->arena, count, sizeof *s->size);
    s->drop = un_arena_alloc(&s->arena, count, 1);
    if (!s->size || !s->drop) return UN_ERROR_MEMORY;
    memset(s->drop, 0, count);
    for (int32_t q = 0; q < p->count; q++) s->size[q] = (float)un_particle_radius(p->volume[q]);
    UN_TRY(un_groups_build(s->ctx, &s->arena, &s->groups,
                           (const double *const[3]){p->x[0], p->x[1], p->x[2]}, s->size, p->count));
    un_slim_def def = {.particles = p,
                       .groups = &s->groups,
                       .radius = s->size,
                       .walls = s->in->walls,
                       .size = s->in->grid->size,
                       .gravity = s->in->walls->scene->def.gravity,
                       .reach = 2,
                       .drawn = UN_MESHER_DRAWN * s->lattice.h[0],
                       .drawn_all = true};
    def.thin = un_arena_alloc(&s->arena, count, 1);
    if (!def.thin) return UN_ERROR_MEMORY;
    UN_TRY(un_mesher_find_thin(s, def.thin));
    UN_TRY(un_slim_find(s->ctx, &s->arena, &s->slim, &def));
    un_parallel_for(s->ctx, s->slim.count, 256, find_drops, s);
    return s->slim.count ? join_slim(s) : UN_OK;
}

static bool flies_clear(const un_lattice_mesher *s, int64_t q)
{
    const un_slim_entry *e = q >= 0 ? un_mesher_slim(s, q) : NULL;
    if (!e || (s->in->particles->flags[q] & UN_PARTICLE_APART) != UN_PARTICLE_BALLISTIC)
        return false;
    return un_mesher_is_clear(s, e->x, UN_SPHERE_CORNER * UN_HULL_DROP * s->size[q]);
}

static double drop_radius(const un_lattice_mesher *s, const un_slim_entry *e, int32_t q)
{
    return e->joined ? cbrt(0.75 / UN_PI * s->in->particles->volume[q]) : (double)e->radius;
}

/* Pieces of a few steps of the lattice would be octahedra: their particles become drops, if there
 * is room for all of them. speck: by piece. */
static un_status find_specks(un_lattice_mesher *s, const un_pieces *pieces, uint8_t **speck)
{
    const un_particles *p = s->in->particles;
    size_t count = (size_t)p->count + 1;
    enum { IN_SPECK = 1, NO_ROOM };
    uint8_t *with =
        un_arena_alloc(&s->arena, count, 1); /* by hull: has a drop at a wall, a speck */
    *speck = un_arena_alloc(&s->arena, (size_t)pieces->count + 1, 1);
    if (!with || !*speck) return UN_ERROR_MEMORY;
    memset(with, 0, count);
    double most = SPECK * s->lattice.h[0] * s->lattice.h[1] * s->lattice.h[2];
    for (int32_t i = 0; i < pieces->count; i++)
        (*speck)[i] = pieces->piece[i].wanted < most && !(pieces->has_body && i == 0);
    for (int32_t i = 0; i < s->slim.count; i++) {
        const un_slim_entry *e = &s->slim.entry[i];
        int32_t q = s->slim.particle[i];
        double reach = UN_SPHERE_CORNER * UN_DROP_LONGEST * drop_radius(s, e, q);
        if (!un_mesher_is_clear(s, e->x, reach)) with[s->hulls->piece[q]] = NO_ROOM;
    }
    for (int32_t v = 0; v < s->mesh->vertex_count; v++) {
        uint8_t *mark = &(*speck)[pieces->of_vertex[v]];
        *mark = *mark && flies_clear(s, s->nearest[v]) &&
                with[s->hulls->piece[s->nearest[v]]] != NO_ROOM;
    }
    for (int32_t v = 0; v < s->mesh->vertex_count; v++)
        if ((*speck)[pieces->of_vertex[v]]) with[s->hulls->piece[s->nearest[v]]] = IN_SPECK;
    for (int32_t q = 0; q < p->count; q++)
        if (un_mesher_slim(s, q) && with[s->hulls->piece[q]] == IN_SPECK) s->drop[q] = 1;
    return UN_OK;
}

/* Adds the drops, and what the lattice has missed. */
static un_status add_drops(un_lattice_mesher *s, const un_pieces *pieces)
{
    const un_particles *p = s->in->particles;
    un_drop *drops = un_arena_alloc(&s->arena, (size_t)s->slim.count + 1, sizeof *drops);
    int32_t count = 0;
    if (!drops) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < s->slim.count; i++) {
        const un_slim_entry *e = &s->slim.entry[i];
        int32_t q = s->slim.particle[i];
        bool lost = pieces->wanting[q] && !e->joined &&
                    un_mesher_is_clear(s, e->x, UN_SPHERE_CORNER * UN_DROP_LONGEST * e->radius);
        if (!s->drop[q] && !lost) continue;
        drops[count++] = (un_drop){.x = e->x,
                                   .velocity = un_particle_velocity(p, q),
                                   .radius = drop_radius(s, e, q),
                                   .stretch = e->stretch};
    }
    return un_surface_add_drops(s->ctx, &s->arena, s->mesh, drops, count,
                                UN_DROP_FINE * s->lattice.h[0]);
}

/* Sheets that run into the body are inside its surface and have none of their own. */
static void give_hidden_to_body(const un_lattice_mesher *s, un_pieces *pieces)
{
    if (!pieces->has_body) return;
    for (int32_t i = 0; i < s->slim.count; i++) {
        int32_t q = s->slim.particle[i];
        if (pieces->wanting[q] && s->slim.entry[i].joined)
            pieces->piece[0].wanted += s->in->particles->volume[q];
    }
}

un_status un_mesher_fit_volume(un_lattice_mesher *s)
{
    const un_particles *p = s->in->particles;
    int32_t *piece = un_arena_alloc(&s->arena, (size_t)p->count + 1, sizeof *piece), body = -1;
    un_vec3 *direction =
        un_arena_alloc(&s->arena, (size_t)s->mesh->vertex_count + 1, sizeof *direction);
    if (!piece || !direction) return UN_ERROR_MEMORY;
    for (int32_t q = 0; q < p->count; q++) {
        if (!un_mesher_slim(s, q) && body < 0) body = q;
        piece[q] = s->hulls ? s->hulls->piece[q] : un_mesher_slim(s, q) ? q : body;
    }
    un_pieces pieces = {.mesh = s->mesh,
                        .particles = p,
                        .of_particle = piece,
                        .nearest = s->nearest,
                        .body = body,
                        .weigh = s->weigh,
                        .weigh_arg = s->weigh_arg};
    un_offset offset = {.mesh = s->mesh,
                        .lattice = &s->lattice,
                        .pieces = &pieces,
                        .still = s->still,
                        .radius = s->held,
                        .near_radius = s->loose,
                        .too_thick = s->too_thick,
                        .direction = direction,
                        .body = BODY_MOST,
                        .sheets = SHEET_MOST,
                        .most = PIECE_MOST,
                        .slack = BODY_SLACK};
    un_status status = un_pieces_find(s->ctx, &pieces);
    if (status == UN_OK) give_hidden_to_body(s, &pieces);
    if (status == UN_OK) un_offset_pieces(s->ctx, &offset);
    uint8_t *speck = NULL;
    if (status == UN_OK && s->hulls) status = find_specks(s, &pieces, &speck);
    if (status == UN_OK && speck) status = un_pieces_remove(s->ctx, &pieces, s->mesh, speck);
    if (status == UN_OK) status = add_drops(s, &pieces);
    un_pieces_free(s->ctx, &pieces);
    return status;
}

/* ---- the recipe ---- */

void un_mesher_lattice(un_lattice *l, const un_grid *g, int32_t resolution)
{
    double size[3] = {g->size.x, g->size.y, g->size.z};
    /* keeps the nodes along a kernel within SPLINE_NODES_MAX; the scene's limit on `surface` is
     * stricter */
    double step = fmax(fmax(size[0], fmax(size[1], size[2])) / resolution, g->h / 16);
    l->origin = un_v3(0, 0, 0);
    l->n[2] = 1;
    l->h[2] = 0;
    for (int a = 0; a < g->dim; a++) {
        int32_t cells = (int32_t)fmax(1, round(size[a] / step));
        l->n[a] = cells + 1;
        l->h[a] = size[a] / cells;
    }
}

/* Of every particle, for the sheets and threads of a splash: groups of all, hulls of a tenth.
 * Measured in dam breaks. */
#define SLIM_BYTES 54

double un_surface_mesh_bytes(const un_grid *grid, int32_t resolution, double particles)
{
    un_lattice l;
    un_mesher_lattice(&l, grid, resolution);
    double nodes = (double)l.n[0] * l.n[1] * l.n[2];
    double each = 5 * sizeof(float) + 1 + (grid->dim == 2 ? 0 : SLIM_BYTES);
    return nodes * (sizeof(float) + 1) + (double)grid->cell_count + particles * each;
}

un_status un_mesher_smooth(un_lattice_mesher *s)
{
    UN_TRY(un_surface_smooth(s->ctx, &s->lattice, s->mesh, s->in->smoothing));
    return un_surface_normals_at_walls(s->ctx, &s->lattice, s->mesh);
}

void un_mesher_free(un_lattice_mesher *s)
{
    un_free(s->ctx, s->band);
    un_free(s->ctx, s->touched);
    un_free(s->ctx, s->lattice.phi);
    un_free(s->ctx, s->radius);
    un_hulls_destroy(s->hulls);
    un_arena_free(&s->arena);
}

/* What sampled it is given back as soon as it has served. */
static un_status contour(un_lattice_mesher *s)
{
    bool flat = s->in->grid->dim == 2;
    un_free(s->ctx, s->band);
    un_free(s->ctx, s->touched);
    s->band = s->touched = NULL;
    un_status status = flat ? un_surface_area(s->ctx, &s->lattice, s->in->smoothing, s->mesh)
                            : un_surface_contour(s->ctx, &s->lattice, s->mesh);
    un_free(s->ctx, s->lattice.phi);
    s->lattice.phi = NULL;
    return status;
}

un_status un_surface_mesh(un_context *ctx, un_trimesh *mesh, const un_mesher *in)
{
    if (in->share) return un_surface_mesh_ranks(ctx, mesh, in);
    un_lattice_mesher s = {.ctx = ctx, .in = in, .mesh = mesh};
    bool flat = in->grid->dim == 2;
    *mesh = (un_trimesh){0};
    un_arena_init(&s.arena, ctx);
    un_mesher_lattice(&s.lattice, in->grid, in->resolution);
    un_status status = flat ? UN_OK : find_flying(&s);
    if (status == UN_OK) status = un_mesher_sample(&s);
    if (status == UN_OK) status = contour(&s);
    if (status == UN_OK && !flat) status = un_mesher_smooth(&s);
    if (status == UN_OK) status = un_mesher_look_around(&s);
    if (status == UN_OK && !flat) status = un_mesher_fit_volume(&s);
    un_mesher_free(&s);
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    return status;
}
