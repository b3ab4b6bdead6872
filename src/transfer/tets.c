/* Particles to tets and back.
 *
 *     M_n = sum_p M_p N_n(x_p),   u_n = sum_p M_p N_n(x_p) v_p / M_n,   u_t = mean of u_n
 *
 * with the hat functions N_n and M the mass, or the volume where the density is uniform. [Ando13
 * section 6] maps with a kernel max(v (4 r^2 / d^2 - 1), 0) to the centres of tets, which is
 * unbounded where a particle meets a centre: there one tiny particle outweighs all others and gives
 * the tet many times its momentum. Hat functions are bounded, give every particle's momentum away
 * exactly once, need no search, and leave the velocities of tets as smooth as the pressure that
 * corrects them. Velocities of nodes with almost no liquid are not used (KNOWN): some momentum of
 * drops flying past is lost there.
 *
 * Back to particles, and along their paths, velocities are those of section 3: exact at tet
 * centres, with nodal values in between. Sums are formed per tet, then gathered by node: no two
 * threads write to the same place, and the order is fixed. */
#include "transfer/transfer.h"

/* ---- particles to nodes ---- */

/* A particle fills a cube whose edge is the cube root of its volume; eight fill a cell. A particle
 * whose edge exceeds the cell's expected one by this ratio is spread over its cube. So are calm
 * particles in tets between cells of different sizes and at the boundary, whose hat functions are
 * lopsided: single points sample them badly (10 % off in the mean, 6 % when spread), and still
 * water would show it. */
#define LARGE 1.5
/* The share of a cell's volume that a node needs for its velocity to count: tets take the mean of
 * their nodes' velocities, whatever their masses, and a drop of half a gram flying past calm water
 * in cells of half a metre would move tens of litres. A particle of the cell's own size distributes
 * 0.05. */
#define KNOWN 1e-3

/* Parts of a large particle, sorted by tet like the particles themselves. */
typedef struct part {
    un_vec3 x;
    int32_t particle, tet;
    float share;
} part;

typedef struct nodes_args {
    float *volume;
    un_vec3 *u;
    uint8_t *known;
    const un_tets *mesh;
    const un_tet_bins *bins;
    const un_particles *particles;
    const un_vec3 *field; /* at nodes: used as the particles' velocity; NULL: their own */
    bool matter;          /* density and viscosity instead of velocity */
    bool centre;          /* position relative to the node instead of velocity */
    double least;         /* volume at a node that makes it known, in cells */
    const float *where;   /* at nodes: only sums at nodes where this is above 0; NULL: all */
    float (*sums)[4][4];  /* by tet: volume and momentum at its nodes */
    float (*mass)[4];     /* by tet, at its nodes; NULL: the volume is used */
    uint8_t *large;       /* by particle: parts along an edge, 1: none */
    part *parts;
    uint32_t *keys;
    int32_t *part_order, *part_begin; /* by tet */
    int64_t part_count;
    int64_t *block_begin; /* by block of particles: number of parts, then offsets */
    un_vec3 *sought,
        *seat; /* of parts, over ranks where thin walls part the tets; NULL elsewhere */
} nodes_args;

/* Is the edge of the particle's cube more than `ratio` times the edge that the cell expects? */
static inline bool exceeds(const un_particles *p, int64_t q, const un_tets *mesh, int32_t t,
                           double ratio)
{
    double edge = 0.5 * ratio * un_tets_size(mesh, t);
    return p->volume[q] > edge * edge * edge;
}

static int spread_over(const un_particles *p, int64_t q, const un_tets *mesh, int32_t t)
{
    if (exceeds(p, q, mesh, t, 2 * LARGE)) return exceeds(p, q, mesh, t, 4 * LARGE) ? 8 : 4;
    bool graded = un_tets_shape(mesh, t)->kind != UN_TET_BCC;
    bool large = exceeds(p, q, mesh, t, LARGE);
    return large || (graded && p->flags[q] & UN_PARTICLE_CALM) ? 2 : 1;
}

/* Offset of part k of n along an edge, from the middle, in edges. Two parts lie at the middles of
 * the halves. More represent a hat function two edges wide, in equal shares: cubes around
 * irregularly placed particles leave gaps, which much smaller cells would take for a surface; hats
 * do not. */
static double part_offset(int k, int n)
{
    if (n == 2) return 0.5 * k - 0.25;
    double share = (k + 0.5) / n, from_end = sqrt(2 * fmin(share, 1 - share));
    return share < 0.5 ? from_end - 1 : 1 - from_end;
}

/* Reflects x into [0, top]. */
static double fold(double x, double top)
{
    if (x < 0) x = -x;
    if (x > top) x = 2 * top - x;
    return un_clamp(x, 0, top);
}

/* The i-th of n^3 parts of a particle at x, a cube with this edge. */
static un_vec3 part_at(un_vec3 x, double edge, int n, int i, const un_tets *mesh)
{
    un_vec3 top = mesh->tree->size;
    return un_v3(fold(x.x + edge * part_offset(i % n, n), top.x),
                 fold(x.y + edge * part_offset(i / n % n, n), top.y),
                 fold(x.z + edge * part_offset(i / (n * n), n), top.z));
}

#define PART_BLOCK 512

static bool is_wanted(const nodes_args *a, int64_t t)
{
    const int32_t *n = a->mesh->tet[t];
    const float *w = a->where;
    return !w || w[n[0]] > 0 || w[n[1]] > 0 || w[n[2]] > 0 || w[n[3]] > 0;
}

static void find_large(void *arg, int64_t begin, int64_t end)
{
    nodes_args *a = arg;
    for (int64_t q = begin; q < end; q++) {
        int32_t t = a->bins->tet[q];
        a->large[q] =
            is_wanted(a, t) ? (uint8_t)spread_over(a->particles, q, a->mesh, t) : (uint8_t)1;
    }
}

static void count_parts(void *arg, int64_t begin, int64_t end)
{
    nodes_args *a = arg;
    int64_t count = 0;
    for (int64_t q = begin; q < end; q++) {
        int n = a->large[q];
        if (n > 1) count += n * n * n;
    }
    a->block_begin[begin / PART_BLOCK] = count;
}

/* Over ranks: where thin walls part the tets, a part may lie beside the tet it belongs to. */
static void seek_parts(void *arg, int64_t begin, int64_t end)
{
    nodes_args *a = arg;
    const un_particles *p = a->particles;
    int64_t k = a->block_begin[begin / PART_BLOCK];
    for (int64_t q = begin; q < end; q++) {
        int n = a->large[q];
        double edge = cbrt(p->volume[q]);
        for (int i = 0; n > 1 && i < n * n * n; i++)
            a->sought[k++] = part_at(un_particle_position(p, q), edge, n, i, a->mesh);
    }
}

static un_status find_part_seats(un_context *ctx, un_arena *arena, nodes_args *a)
{
    size_t room = (size_t)a->part_count + 1;
    if (!a->bins->share || !a->mesh->parted) return UN_OK;
    a->sought = un_arena_alloc(arena, room, sizeof *a->sought);
    a->seat = un_arena_alloc(arena, room, sizeof *a->seat);
    UN_TRY(un_ranks_agree(ctx, a->sought && a->seat ? UN_OK : UN_ERROR_MEMORY));
    un_parallel_for(ctx, a->particles->count, PART_BLOCK, seek_parts, a);
    return un_tets_seats(a->mesh, a->sought, a->part_count, a->seat, NULL);
}

static void place_parts(void *arg, int64_t begin, int64_t end)
{
    nodes_args *a = arg;
    const un_particles *p = a->particles;
    int64_t k = a->block_begin[begin / PART_BLOCK];
    for (int64_t q = begin; q < end; q++) {
        int n = a->large[q];
        if (n == 1) continue;
        double edge = cbrt(p->volume[q]);
        for (int i = 0; i < n * n * n; i++) {
            un_vec3 x = part_at(un_particle_position(p, q), edge, n, i, a->mesh);
            un_tets_place place;
            if (a->seat)
                un_tets_locate_closed(a->mesh, a->seat[k], &place);
            else
                un_tets_locate(a->mesh, x, &place);
            a->keys[k] = (uint32_t)place.tet;
            a->parts[k++] = (part){x, (int32_t)q, place.tet, 1.0f / (float)(n * n * n)};
        }
    }
}

/* Over ranks, all know of a failure before the next message. */
static un_status agree(un_context *ctx, const nodes_args *a, un_status status)
{
    return a->bins->share ? un_ranks_agree(ctx, status) : status;
}

static un_status make_parts(un_context *ctx, un_arena *arena, nodes_args *a)
{
    int64_t particles = a->particles->count, tets = a->mesh->tet_count;
    int64_t blocks = (particles + PART_BLOCK - 1) / PART_BLOCK;
    a->block_begin = un_arena_alloc(arena, (size_t)blocks + 1, sizeof *a->block_begin);
    UN_TRY(agree(ctx, a, a->block_begin ? UN_OK : UN_ERROR_MEMORY));
    un_parallel_part(ctx, un_particle_own(a->bins->share, particles), PART_BLOCK, find_large, a);
    un_field field = {"parts", a->large, NULL, 1}; /* of copies, owners know the tets */
    UN_TRY(un_particle_refresh(a->bins->share, &field, 1));
    un_parallel_for(ctx, particles, PART_BLOCK, count_parts, a);
    int64_t total = un_bins_offsets(a->block_begin, blocks, 0);
    a->part_count = total;
    un_status status = UN_OK;
    if (total > INT32_MAX) status = un_fail_memory(ctx, (size_t)total * sizeof *a->parts);
    UN_TRY(agree(ctx, a, status));
    UN_TRY(find_part_seats(ctx, arena, a));
    if (total == 0) return UN_OK;
    a->parts = un_arena_alloc(arena, (size_t)total, sizeof *a->parts);
    a->keys = un_arena_alloc(arena, (size_t)total, sizeof *a->keys);
    a->part_order = un_arena_alloc(arena, (size_t)total, sizeof *a->part_order);
    a->part_begin = un_arena_alloc(arena, (size_t)tets + 1, sizeof *a->part_begin);
    if (!a->parts || !a->keys || !a->part_order || !a->part_begin) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, particles, PART_BLOCK, place_parts, a);
    return un_bins_order(ctx, arena, a->part_order, a->part_begin, a->keys, total, tets);
}

static void add(double sum[4][5], const nodes_args *a, int32_t t, un_vec3 x, int32_t q,
                double volume)
{
    const un_tets *mesh = a->mesh;
    un_tets_place place;
    if (!un_tets_locate_in(mesh, t, x, &place))
        for (int i = 0; i < 4; i++)
            place.w[i] = 0.25; /* cannot happen: particles were sorted on this mesh */
    un_vec3 v = {0, 0, 0};
    if (a->field)
        for (int i = 0; i < 4; i++) v = un_mad(v, a->field[mesh->tet[t][i]], place.w[i]);
    else if (a->matter)
        v = un_v3((double)a->particles->density[q], (double)a->particles->viscosity[q], 0);
    else
        v = un_particle_middle(a->particles, q);
    double density = a->mass ? (double)a->particles->density[q] : 1;
    for (int i = 0; i < 4; i++) {
        double w = volume * place.w[i], m = w * density;
        if (a->centre) v = un_sub(x, mesh->x[mesh->tet[t][i]]);
        sum[i][0] += w;
        sum[i][1] += m * v.x;
        sum[i][2] += m * v.y;
        sum[i][3] += m * v.z;
        sum[i][4] += m;
    }
}

static void sum_tets(void *arg, int64_t begin, int64_t end)
{
    nodes_args *a = arg;
    const un_particles *p = a->particles;
    bool ranks = a->bins->share != NULL; /* ranges may hold others then */
    for (int64_t t = begin; t < end; t++) {
        double sum[4][5] = {{0}};
        bool wanted = is_wanted(a, t);
        if (ranks && !un_tets_knows(a->mesh, (int32_t)t)) continue; /* nobody asks */
        for (int32_t q = a->bins->begin[t]; wanted && q < a->bins->begin[t + 1]; q++)
            if (a->large[q] == 1 && (!ranks || a->bins->tet[q] == (int32_t)t))
                add(sum, a, (int32_t)t, un_particle_position(p, q), q, p->volume[q]);
        if (wanted && a->part_count > 0)
            for (int32_t k = a->part_begin[t]; k < a->part_begin[t + 1]; k++) {
                const part *s = &a->parts[a->part_order[k]];
                add(sum, a, (int32_t)t, s->x, s->particle,
                    (double)s->share * p->volume[s->particle]);
            }
        for (int i = 0; i < 4; i++) {
            for (int c = 0; c < 4; c++) a->sums[t][i][c] = (float)sum[i][c];
            if (a->mass) a->mass[t][i] = (float)sum[i][4];
        }
    }
}

static void sum_nodes(void *arg, int64_t begin, int64_t end)
{
    nodes_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        double sum[4] = {0}, mass = 0;
        if (a->where && !(a->where[n] > 0)) continue;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            const float *s = a->sums[mesh->corner[k] / 4][mesh->corner[k] % 4];
            for (int c = 0; c < 4; c++) sum[c] += s[c];
            mass += a->mass ? a->mass[mesh->corner[k] / 4][mesh->corner[k] % 4] : s[0];
        }
        if (a->volume) a->volume[n] = (float)sum[0];
        double h = un_octree_size(mesh->tree, mesh->node_level[n]);
        if (a->known) a->known[n] = sum[0] > a->least * h * h * h;
        if (a->field && !(sum[0] > 0)) continue;
        double inverse = mass > 0 ? 1 / mass : 0;
        a->u[n] = un_v3(sum[1] * inverse, sum[2] * inverse, sum[3] * inverse);
    }
}

/* Ghosts get what their owners found. */
static un_status share_sums(const nodes_args *a)
{
    un_field fields[3];
    int32_t count = 0;
    if (!a->mesh->share) return UN_OK;
    if (a->volume) fields[count++] = (un_field){"volume", a->volume, NULL, sizeof *a->volume};
    if (a->known) fields[count++] = (un_field){"known", a->known, NULL, 1};
    fields[count++] = (un_field){"u", a->u, NULL, sizeof *a->u};
    return un_tets_share(a->mesh, fields, count);
}

static un_status sum_up(un_context *ctx, un_arena *arena, nodes_args *a)
{
    a->sums = un_arena_alloc(arena, (size_t)a->mesh->tet_count + 1, sizeof *a->sums);
    a->large = un_arena_alloc(arena, (size_t)a->particles->count + 1, 1);
    un_status status = a->sums && a->large ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK && a->particles->density && !a->matter) {
        a->mass = un_arena_alloc(arena, (size_t)a->mesh->tet_count + 1, sizeof *a->mass);
        if (!a->mass) status = UN_ERROR_MEMORY;
    }
    UN_TRY(agree(ctx, a, status));
    UN_TRY(agree(ctx, a, make_parts(ctx, arena, a)));
    un_parallel_for(ctx, a->mesh->tet_count, 1024, sum_tets, a);
    un_parallel_part(ctx, un_tets_own_nodes(a->mesh), 256, sum_nodes, a);
    return share_sums(a);
}

un_status un_transfer_to_nodes(un_context *ctx, un_arena *arena, float *volume, un_vec3 *u,
                               uint8_t *known, const un_tets *mesh, const un_tet_bins *bins,
                               const un_particles *particles)
{
    nodes_args a = {.volume = volume,
                    .u = u,
                    .known = known,
                    .least = KNOWN,
                    .mesh = mesh,
                    .bins = bins,
                    .particles = particles};
    return sum_up(ctx, arena, &a);
}

un_status un_transfer_matter_to_nodes(un_context *ctx, un_arena *arena, un_vec3 *matter,
                                      uint8_t *known, const un_tets *mesh, const un_tet_bins *bins,
                                      const un_particles *particles)
{
    nodes_args a = {.u = matter,
                    .known = known,
                    .matter = true,
                    .mesh = mesh,
                    .bins = bins,
                    .particles = particles};
    return sum_up(ctx, arena, &a);
}

un_status un_transfer_centres(un_context *ctx, un_arena *arena, un_vec3 *centre, uint8_t *known,
                              const un_tets *mesh, const un_tet_bins *bins,
                              const un_particles *particles)
{
    nodes_args a = {.u = centre,
                    .known = known,
                    .centre = true,
                    .mesh = mesh,
                    .bins = bins,
                    .particles = particles};
    return sum_up(ctx, arena, &a);
}

un_status un_transfer_blur(un_context *ctx, un_arena *arena, un_vec3 *out, const un_vec3 *u,
                           const float *where, const un_tets *mesh, const un_tet_bins *bins,
                           const un_particles *particles)
{
    nodes_args a = {
        .u = out, .field = u, .where = where, .mesh = mesh, .bins = bins, .particles = particles};
    un_parallel_copy(ctx, out, u, (size_t)mesh->node_count * sizeof *out);
    return sum_up(ctx, arena, &a);
}

/* ---- nodes and tets ---- */

typedef struct spread_args {
    un_vec3 *u, *w;
    uint8_t *known, *fresh;
    const un_tets *mesh;
    uint8_t mark;
} spread_args;

static void spread(void *arg, int64_t begin, int64_t end)
{
    spread_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        a->fresh[n] = 0;
        if (a->known[n]) continue;
        un_vec3 u = {0, 0, 0}, w = {0, 0, 0};
        int32_t count = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            const int32_t *near = mesh->tet[mesh->corner[k] / 4];
            for (int i = 0; i < 4; i++) {
                if (!a->known[near[i]]) continue;
                u = un_add(u, a->u[near[i]]);
                if (a->w) w = un_add(w, a->w[near[i]]);
                count++;
            }
        }
        if (count == 0) continue;
        a->u[n] = un_scale(u, 1.0 / count);
        if (a->w) a->w[n] = un_scale(w, 1.0 / count);
        a->fresh[n] = 1;
    }
}

static void adopt(void *arg, int64_t begin, int64_t end)
{
    spread_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->fresh[n]) a->known[n] = a->mark;
}

un_status un_transfer_extrapolate_nodes(un_context *ctx, un_arena *arena, un_vec3 *u, un_vec3 *w,
                                        uint8_t *known, const un_tets *mesh, int32_t layers)
{
    spread_args a = {.u = u, .w = w, .known = known, .mesh = mesh};
    a.fresh = un_arena_alloc(arena, (size_t)mesh->node_count + 1, 1);
    un_status status = a.fresh ? UN_OK : UN_ERROR_MEMORY;
    UN_TRY(mesh->share ? un_ranks_agree(ctx, status) : status);
    un_part own = un_tets_own_nodes(mesh);
    un_field fields[3] = {
        {"known", known, NULL, 1}, {"u", u, NULL, sizeof *u}, {"w", w, NULL, sizeof *w}};
    for (int32_t layer = 0; layer < layers; layer++) {
        a.mark = (uint8_t)(layer + 2);
        un_parallel_part(ctx, own, 512, spread, &a);
        un_parallel_part(ctx, own, 4096, adopt, &a);
        UN_TRY(un_tets_share(mesh, fields, w ? 3 : 2)); /* the next layer may begin at ghosts */
    }
    return UN_OK;
}

typedef struct mean_args {
    un_vec3 *out;
    const un_vec3 *in;
    const uint8_t *known_in;
    uint8_t *known_out;
    const un_tets *mesh;
    const uint8_t *keep;
    const float *open;
} mean_args;

static void mean_of_nodes(void *arg, int64_t begin, int64_t end)
{
    mean_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        if (a->keep && a->keep[t] == 1) continue;
        const int32_t *n = a->mesh->tet[t];
        un_vec3 sum = {0, 0, 0};
        int count = 0;
        for (int i = 0; i < 4; i++) {
            if (!a->known_in[n[i]]) continue;
            sum = un_add(sum, a->in[n[i]]);
            count++;
        }
        a->out[t] = un_scale(sum, count ? 1.0 / count : 0);
    }
}

void un_transfer_nodes_to_tets(un_context *ctx, un_vec3 *u_tet, const un_vec3 *u_node,
                               const uint8_t *known, const un_tets *mesh, const uint8_t *keep)
{
    mean_args a = {.out = u_tet, .in = u_node, .known_in = known, .mesh = mesh, .keep = keep};
    un_parallel_for(ctx, mesh->tet_count, 2048, mean_of_nodes, &a);
}

static void mean_of_tets(void *arg, int64_t begin, int64_t end)
{
    mean_args *a = arg;
    const un_tets *mesh = a->mesh;
    for (int64_t n = begin; n < end; n++) {
        un_vec3 sum = {0, 0, 0};
        double total = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1]; k++) {
            int32_t t = mesh->corner[k] / 4;
            if (a->known_in[t] != 1) continue;
            double w = un_tets_volume(mesh, t) * (a->open ? a->open[t] : 1);
            sum = un_mad(sum, a->in[t], w);
            total += w;
        }
        a->known_out[n] = total > 0;
        a->out[n] = un_scale(sum, total > 0 ? 1 / total : 0);
    }
}

un_status un_transfer_tets_to_nodes(un_context *ctx, un_vec3 *u_node, uint8_t *known_node,
                                    const un_vec3 *u_tet, const uint8_t *known_tet,
                                    const un_tets *mesh, const float *open)
{
    mean_args a = {.out = u_node,
                   .in = u_tet,
                   .known_in = known_tet,
                   .known_out = known_node,
                   .mesh = mesh,
                   .open = open};
    un_field fields[2] = {{"u", u_node, NULL, sizeof *u_node}, {"known", known_node, NULL, 1}};
    un_parallel_part(ctx, un_tets_own_nodes(mesh), 512, mean_of_tets, &a);
    return un_tets_share(mesh, fields, 2);
}

/* ---- nodes and tets to particles ---- */

typedef struct update_args {
    un_particles *particles;
    const un_tet_bins *bins;
    const un_tets *mesh;
    const un_tet_field *u, *change;
    const un_vec3 *sharp;
    const un_flip *flip;
    double radius_min;
    un_vec3 fall_unit;
    uint8_t *unsure; /* over ranks: 1 where this one does not know enough */
} update_args;

/* Drag rate, 1/s, of a drop in liquid whose cells do not resolve it: it stops within some radii, as
 * a sphere with a drag coefficient of 1 does. Without drag it would fly on through the liquid for
 * metres. */
static double drag(un_vec3 slip, double volume)
{
    return 0.375 * un_length(slip) / un_particle_radius(volume);
}

typedef struct gathered {
    un_vec3 now, change;
} gathered;

/* Gathering mirrors spreading: a large particle among small cells takes the mean over its parts.
 * Taking one cell's change for the whole particle would multiply that cell's momentum. Parts in the
 * air beyond the extrapolated velocities have none and do not count. */
typedef struct parts_sum {
    gathered sum;
    int count;
} parts_sum;

static void add_part(parts_sum *s, un_vec3 now, un_vec3 change)
{
    if (now.x == 0 && now.y == 0 && now.z == 0) return;
    s->sum.now = un_add(s->sum.now, now);
    s->sum.change = un_add(s->sum.change, change);
    s->count++;
}

static gathered mean_of_parts(const parts_sum *s, gathered otherwise)
{
    if (s->count == 0) return otherwise;
    return (gathered){un_scale(s->sum.now, 1.0 / s->count),
                      un_scale(s->sum.change, 1.0 / s->count)};
}

static gathered gather_at(const update_args *a, const un_tets_place *place)
{
    return (gathered){un_tet_field_at(a->u, a->mesh, place),
                      un_tet_field_at(a->change, a->mesh, place)};
}

/* false: a part lies where another rank knows the velocity. */
static bool gather(gathered *g, const update_args *a, int64_t q, const un_tets_place *place)
{
    const un_particles *p = a->particles;
    const un_tets *mesh = a->mesh;
    *g = gather_at(a, place);
    if (!exceeds(p, q, mesh, place->tet, LARGE)) return true;
    int n = spread_over(p, q, mesh, place->tet);
    double edge = cbrt(p->volume[q]);
    parts_sum parts = {0};
    for (int i = 0; i < n * n * n; i++) {
        un_tets_place there;
        un_vec3 x = part_at(un_particle_position(p, q), edge, n, i, mesh);
        if (!un_tets_locate_here(mesh, x, &there)) return false;
        gathered of = gather_at(a, &there);
        add_part(&parts, of.now, of.change);
    }
    *g = mean_of_parts(&parts, *g);
    return true;
}

static void find_place(un_tets_place *place, const update_args *a, int64_t q)
{
    un_tet_bins_place(a->bins, a->mesh, q, un_particle_position(a->particles, q), place);
}

static void update_one(const update_args *a, int64_t q, const un_tets_place *place, gathered g)
{
    un_particles *p = a->particles;
    const un_flip *flip = a->flip;
    double quiet = flip->quiet_speed * flip->quiet_speed;
    double least = 8 * a->radius_min * a->radius_min * a->radius_min;
    un_vec3 was = un_particle_middle(p, q), now = g.now, v = un_add(was, g.change);
    double coarse = 1;
    if (p->volume[q] > least) coarse = un_particle_radius(p->volume[q]) / a->radius_min;
    double stir = un_dot(now, now) / (quiet * coarse);
    double rate = flip->pic / (coarse * coarse);
    double nu = p->viscosity ? (double)p->viscosity[q] / (double)p->density[q] : flip->thickness;
    double h = un_tets_size(a->mesh, place->tet);
    double noise = nu > 0 ? un_noise_share(nu, h, flip->quiet_speed) : 1;
    rate += noise * (flip->pic_quiet - rate) / (1 + stir * stir);
    rate += UN_VISCOUS_PIC * nu / (h * h);
    if (p->flags[q] & UN_PARTICLE_LANDED) rate += drag(un_sub(v, now), p->volume[q]);
    double pic = un_flip_share(1 - exp(-rate * flip->dt), un_sub(v, now), flip->dt,
                               un_flip_way(v, now, flip, h));
    const int32_t *n = a->mesh->tet[place->tet];
    if (a->sharp && spread_over(p, q, a->mesh, place->tet) == 1)
        for (int i = 0; i < 4; i++) now = un_mad(now, a->sharp[n[i]], place->w[i]);
    v = un_mad(v, un_sub(now, v), pic);
    un_particle_set_velocity(p, q, v);
    p->fall[q] = un_particle_fall(un_sub(v, was), a->fall_unit);
}

static void update(void *arg, int64_t begin, int64_t end)
{
    update_args *a = arg;
    un_particles *p = a->particles;
    const un_flip *flip = a->flip;
    for (int64_t q = begin; q < end; q++) {
        if (a->unsure) a->unsure[q] = 0;
        if (p->flags[q] & UN_PARTICLE_BALLISTIC) {
            un_particle_set_velocity(p, q,
                                     un_mad(un_particle_middle(p, q), flip->gravity, flip->dt));
            p->fall[q] = UN_FALL_FREE;
            continue;
        }
        un_tets_place place;
        gathered g;
        find_place(&place, a, q);
        if (gather(&g, a, q, &place))
            update_one(a, q, &place, g);
        else
            a->unsure[q] = 1;
    }
}

/* Large particles whose parts lie where other ranks know the velocity. */
static un_status update_unsure(un_context *ctx, un_arena *arena, const update_args *a, un_part own)
{
    const un_particles *p = a->particles;
    const un_tets *mesh = a->mesh;
    const un_tet_field fields[2] = {*a->u, *a->change};
    int64_t count = 0, k = 0;
    un_tets_place place;
    for (int64_t q = own.begin; q < own.end; q++) {
        if (!a->unsure[q]) continue;
        find_place(&place, a, q);
        int n = spread_over(p, q, mesh, place.tet);
        count += n * n * n;
    }
    if (un_ranks_total(ctx, count) == 0) return UN_OK;
    un_tet_question *at = un_arena_alloc(arena, (size_t)count + 1, sizeof *at);
    UN_TRY(un_ranks_agree(ctx, at ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t q = own.begin; q < own.end; q++) {
        if (!a->unsure[q]) continue;
        find_place(&place, a, q);
        int n = spread_over(p, q, mesh, place.tet);
        double edge = cbrt(p->volume[q]);
        for (int i = 0; i < n * n * n; i++)
            at[k++] = (un_tet_question){.x = part_at(un_particle_position(p, q), edge, n, i, mesh),
                                        .tet = -1};
    }
    UN_TRY(un_tet_ask(ctx, arena, mesh, fields, 2, at, count));
    for (int64_t q = own.begin; q < own.end; q++) {
        if (!a->unsure[q]) continue;
        find_place(&place, a, q);
        int n = spread_over(p, q, mesh, place.tet);
        parts_sum parts = {0};
        for (int i = 0; i < n * n * n; i++, at++) add_part(&parts, at->value[0], at->value[1]);
        update_one(a, q, &place, mean_of_parts(&parts, gather_at(a, &place)));
    }
    return UN_OK;
}

un_status un_transfer_tets_to_particles(un_context *ctx, un_arena *arena, un_particles *particles,
                                        const un_tet_bins *bins, const un_tets *mesh,
                                        const un_tet_field *u, const un_tet_field *change,
                                        const un_vec3 *sharp, const un_flip *flip,
                                        double radius_min)
{
    update_args a = {particles, bins,       mesh,
                     u,         change,     sharp,
                     flip,      radius_min, un_particle_fall_unit(flip->gravity, flip->dt),
                     NULL};
    un_part own = un_particle_own(bins->share, particles->count);
    if (bins->share) {
        a.unsure = un_arena_alloc(arena, (size_t)particles->count + 1, 1);
        UN_TRY(un_ranks_agree(ctx, a.unsure ? UN_OK : UN_ERROR_MEMORY));
    }
    un_parallel_part(ctx, own, 512, update, &a);
    return bins->share ? update_unsure(ctx, arena, &a, own) : UN_OK;
}
