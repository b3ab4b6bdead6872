/* What flies, over ranks: sheets, threads and drops of method `uniform`'s output surface, and their
 * hulls.
 *
 * How a particle is drawn follows from all particles within some radii of it, in their order, so
 * its rank gets those of other ranks around it, cell by cell. Which particles are joined then
 * follows from how others are drawn: entries go to all ranks near them. Each rank makes the hulls
 * of what it has. At the rim of that they are not those of one rank; hulls that it asks for are. */
#include "surface/mesher.h"

#include "particles/particles.h"

/* l of the hulls. */
#define REACH 2.0
/* In sizes of the largest particle: the longest distance of two that are joined; how far a particle
 * is from its image behind a wall; the largest sphere, or more. */
#define JOINED (2 * REACH * UN_SLIM_SIZE_MOST)
#define IMAGE (2 * REACH)
#define SPHERE 2.0

un_slim_def un_mesher_slim_def(const un_mesher_region *r)
{
    const un_mesher *in = r->in;
    return (un_slim_def){.particles = in->particles,
                         .radius = r->size,
                         .walls = in->walls,
                         .size = in->grid->size,
                         .gravity = in->walls->scene->def.gravity,
                         .reach = REACH,
                         .drawn = UN_MESHER_DRAWN * r->lattice.h[0],
                         .drawn_all = true};
}

/* ---- which ---- */

typedef struct mark_args {
    const un_slim_def *def;
    const uint8_t *own;
    uint8_t *mark;
} mark_args;

static void mark_slim(void *arg, int64_t begin, int64_t end)
{
    const mark_args *a = arg;
    for (int64_t q = begin; q < end; q++) a->mark[q] = a->own[q] && un_slim_is(a->def, q);
}

/* mark: by particle here. */
static un_status list_slim(un_mesher_region *r, un_arena *scratch, uint8_t **mark)
{
    const un_particles *p = r->in->particles;
    un_lattice_mesher s = {.ctx = r->ctx, .in = r->in};
    un_slim_def def = un_mesher_slim_def(r);
    size_t count = (size_t)p->count + 1;
    *mark = un_arena_alloc(&r->arena, count, 1);
    def.thin = un_arena_alloc(scratch, count, 1);
    if (!*mark || !def.thin) return UN_ERROR_MEMORY;
    un_arena_init(&s.arena, r->ctx);
    un_status status = un_mesher_find_thin(&s, def.thin);
    un_arena_free(&s.arena);
    UN_TRY(status);
    mark_args a = {&def, r->own, *mark};
    un_parallel_for(r->ctx, p->count, 1024, mark_slim, &a);
    UN_TRY(un_cut_list(r->ctx, &r->arena, *mark, p->count, &r->slim, &r->slim_count));
    r->entry = un_arena_alloc(&r->arena, (size_t)r->slim_count + 1, sizeof *r->entry);
    return r->entry ? UN_OK : UN_ERROR_MEMORY;
}

/* ---- how they are drawn ---- */

/* Cells whose particles are asked for. */
typedef struct cell_marks {
    uint8_t *cells, *rows;
} cell_marks;

static un_status begin_marks(un_mesher_region *r, cell_marks *m)
{
    const un_grid *g = r->in->grid;
    m->cells = un_alloc_zero(r->ctx, (size_t)g->cell_count, 1);
    m->rows = un_alloc_zero(r->ctx, (size_t)g->n[1] * (size_t)g->n[2], 1);
    return m->cells && m->rows ? UN_OK : UN_ERROR_MEMORY;
}

static void mark_around(const un_grid *g, cell_marks *m, un_vec3 x, double reach)
{
    int32_t lo[3], hi[3];
    un_mesher_cells(g, x, reach, lo, hi);
    for (int32_t k = lo[2]; k <= hi[2]; k++)
        for (int32_t j = lo[1]; j <= hi[1]; j++) {
            m->rows[j + (int64_t)g->n[1] * k] = 1;
            memset(m->cells + un_grid_cell(g, lo[0], j, k), 1, (size_t)(hi[0] - lo[0] + 1));
        }
}

static un_status end_marks(un_mesher_region *r, cell_marks *m, un_near_cells *near)
{
    const un_mesher *in = r->in;
    un_status status = un_near_cells_get(r->ctx, near, in->bins, in->share, in->particles, r->id,
                                         m->cells, m->rows);
    un_free(r->ctx, m->cells);
    un_free(r->ctx, m->rows);
    *m = (cell_marks){0};
    return status;
}

/* Sizes and groups of particles from other ranks and this one. */
static un_status group_near(un_mesher_region *r, un_arena *scratch, const un_near_cells *near,
                            float **size, un_groups *groups)
{
    const un_particles *p = &near->particles;
    *size = un_arena_alloc(scratch, (size_t)p->count + 1, sizeof **size);
    if (!*size) return UN_ERROR_MEMORY;
    for (int32_t q = 0; q < p->count; q++) (*size)[q] = (float)un_particle_radius(p->volume[q]);
    return un_groups_build(r->ctx, scratch, groups,
                           (const double *const[3]){p->x[0], p->x[1], p->x[2]}, *size, p->count);
}

typedef struct shape_args {
    const un_slim_def *def;
    const int32_t *at; /* by entry: its particle among those near */
    un_slim_entry *entry;
} shape_args;

static void shape_entries(void *arg, int64_t begin, int64_t end)
{
    const shape_args *a = arg;
    for (int64_t i = begin; i < end; i++) un_slim_shape(a->def, a->at[i], &a->entry[i]);
}

static un_status shape_near(un_mesher_region *r, un_arena *scratch, const un_near_cells *near)
{
    un_slim_def def = un_mesher_slim_def(r);
    un_groups groups;
    float *size;
    int32_t *at = un_arena_alloc(scratch, (size_t)r->slim_count + 1, sizeof *at), next = 0;
    if (!at) return UN_ERROR_MEMORY;
    UN_TRY(group_near(r, scratch, near, &size, &groups));
    for (int32_t n = 0; n < near->particles.count && next < r->slim_count; n++)
        if (near->own[n] == r->slim[next]) at[next++] = n;
    UN_ASSERT(next == r->slim_count);
    def.particles = &near->particles;
    def.groups = &groups;
    def.radius = size;
    shape_args a = {&def, at, r->entry};
    un_parallel_for(r->ctx, r->slim_count, 64, shape_entries, &a);
    return UN_OK;
}

static un_status shape_all(un_mesher_region *r, un_arena *scratch)
{
    cell_marks m = {0};
    un_near_cells near = {0};
    un_status status = begin_marks(r, &m);
    for (int32_t i = 0; status == UN_OK && i < r->slim_count; i++)
        mark_around(r->in->grid, &m, un_particle_position(r->in->particles, r->slim[i]),
                    UN_SLIM_REACH * (double)r->size[r->slim[i]]);
    status = un_ranks_agree(r->ctx, status);
    if (status == UN_OK)
        status = end_marks(r, &m, &near);
    else
        un_free(r->ctx, m.cells), un_free(r->ctx, m.rows);
    UN_TRY(status);
    status = un_ranks_agree(r->ctx, shape_near(r, scratch, &near));
    un_near_cells_free(&near);
    un_arena_reset(scratch);
    return status;
}

/* ---- entries of all ranks, where they are near ---- */

/* As they arrive, and in the order of their numbers. */
typedef struct entries {
    un_exchange *plan;
    int32_t count, *order;
    uint32_t *id;
    float *size;
    un_slim_entry *entry;
} entries;

static void free_entries(un_context *ctx, entries *e)
{
    un_exchange_destroy(e->plan);
    un_free(ctx, e->id);
    un_free(ctx, e->size);
    un_free(ctx, e->entry);
    un_free(ctx, e->order);
}

/* How far from a rank's blocks an entry may matter to it: as that of a particle that it has, and of
 * hulls that it asks for, where these are to be those of one rank. */
static double entry_reach(const un_mesher_region *r)
{
    const un_lattice *l = &r->lattice;
    double h = r->in->grid->h, step = fmax(l->h[0], fmax(l->h[1], l->h[2]));
    double particles = h * (r->reach + 2) + r->largest * UN_SLIM_REACH;
    double hulls = 2 * step + h + r->largest * (SPHERE + 2 * JOINED + 2 * IMAGE);
    return fmax(particles, fmax(hulls, r->largest * (UN_SLIM_REACH + JOINED)));
}

/* Ranks that have blocks near x; `seen`: by rank, the last x that it was listed for. */
static int32_t list_takers(const un_mesher_region *r, un_vec3 x, double reach, int32_t *takers,
                           int32_t *seen, int32_t mark)
{
    const un_bins *b = r->in->bins;
    int32_t lo[3], hi[3], count = 0;
    un_mesher_cells(r->in->grid, x, reach, lo, hi);
    for (int32_t k = lo[2] / UN_BLOCK; k <= hi[2] / UN_BLOCK; k++)
        for (int32_t j = lo[1] / UN_BLOCK; j <= hi[1] / UN_BLOCK; j++)
            for (int32_t i = lo[0] / UN_BLOCK; i <= hi[0] / UN_BLOCK; i++) {
                int32_t owner = r->owner[i + b->blocks[0] * (j + b->blocks[1] * k)];
                if (seen[owner] == mark) continue;
                seen[owner] = mark;
                takers[count++] = owner;
            }
    return count;
}

static un_status plan_entries(un_mesher_region *r, un_arena *scratch, int32_t **index, int32_t **to,
                              int64_t *count)
{
    int32_t ranks = un_rank_count(r->ctx);
    int32_t *takers = un_arena_alloc(scratch, (size_t)ranks + 1, sizeof *takers);
    int32_t *seen = un_arena_alloc(scratch, (size_t)ranks + 1, sizeof *seen);
    double reach = entry_reach(r);
    if (!takers || !seen) return UN_ERROR_MEMORY;
    *count = 0;
    for (int32_t n = 0; n < ranks; n++) seen[n] = -1;
    for (int32_t i = 0; i < r->slim_count; i++)
        *count += list_takers(r, r->entry[i].x, reach, takers, seen, i);
    *index = un_arena_alloc(scratch, (size_t)*count + 1, sizeof **index);
    *to = un_arena_alloc(scratch, (size_t)*count + 1, sizeof **to);
    if (!*index || !*to) return UN_ERROR_MEMORY;
    *count = 0;
    for (int32_t n = 0; n < ranks; n++) seen[n] = -1;
    for (int32_t i = 0; i < r->slim_count; i++) {
        int32_t some = list_takers(r, r->entry[i].x, reach, takers, seen, i);
        for (int32_t n = 0; n < some; n++) {
            (*index)[*count] = i;
            (*to)[(*count)++] = takers[n];
        }
    }
    return UN_OK;
}

static un_status need_entries(un_context *ctx, entries *e)
{
    UN_ALLOC(ctx, e->id, e->count + 1);
    UN_ALLOC(ctx, e->size, e->count + 1);
    UN_ALLOC(ctx, e->entry, e->count + 1);
    UN_ALLOC(ctx, e->order, e->count + 1);
    return UN_OK;
}

static un_status list_own(const un_mesher_region *r, un_arena *scratch, uint32_t **id, float **size)
{
    *id = un_arena_alloc(scratch, (size_t)r->slim_count + 1, sizeof **id);
    *size = un_arena_alloc(scratch, (size_t)r->slim_count + 1, sizeof **size);
    if (!*id || !*size) return UN_ERROR_MEMORY;
    for (int32_t i = 0; i < r->slim_count; i++) {
        (*id)[i] = r->id[r->slim[i]];
        (*size)[i] = r->size[r->slim[i]];
    }
    return UN_OK;
}

static un_status share_entries(un_mesher_region *r, un_arena *scratch, entries *e)
{
    un_context *ctx = r->ctx;
    int32_t *index = NULL, *to = NULL;
    uint32_t *id = NULL;
    float *size = NULL;
    int64_t count = 0;
    un_status status = plan_entries(r, scratch, &index, &to, &count);
    if (status == UN_OK) status = list_own(r, scratch, &id, &size);
    UN_TRY(un_ranks_agree(ctx, status));
    UN_TRY(un_exchange_create_copies(ctx, index, to, count, &e->plan));
    e->count = (int32_t)un_exchange_count(e->plan);
    UN_TRY(un_ranks_agree(ctx, need_entries(ctx, e)));
    un_field fields[3] = {{"id", id, e->id, sizeof *id},
                          {"size", size, e->size, sizeof *size},
                          {"entry", r->entry, e->entry, sizeof *e->entry}};
    UN_TRY(un_exchange_run(e->plan, fields, 3));
    return un_ranks_agree(ctx, un_parallel_sort(ctx, scratch, e->order, e->id, e->count, 32));
}

/* ---- which are joined ---- */

#define NEAR_MAX 1024

/* Entries, or particles that are none, under groups. */
typedef struct crowd {
    const un_groups *groups;
    const uint32_t *id;  /* entries' numbers; NULL: particles */
    const uint8_t *skip; /* particles that do not count */
} crowd;

static bool touches(const crowd *c, const un_slim_entry *e, uint32_t id, int32_t group)
{
    const un_groups *g = c->groups;
    int64_t last = un_min64(g->count, UN_GROUP * ((int64_t)group + 1));
    for (int64_t j = UN_GROUP * (int64_t)group; j < last; j++) {
        if (c->id ? c->id[j] == id : c->skip[j]) continue;
        un_vec3 x = un_v3(g->x[0][j], g->x[1][j], g->x[2][j]);
        if (un_slim_touches(e, REACH, x, g->radius[j])) return true;
    }
    return false;
}

static bool is_joined(const crowd *c, const un_slim_entry *e, uint32_t id)
{
    int32_t near[NEAR_MAX];
    int32_t count =
        un_groups_near(c->groups, (un_box3){e->x, e->x}, REACH * e->size, REACH, near, NEAR_MAX);
    if (count < 0) { /* a crowd: all are looked at */
        for (int32_t g = 0; g < c->groups->group_count; g++)
            if (touches(c, e, id, g)) return true;
        return false;
    }
    for (int32_t g = 0; g < count; g++)
        if (touches(c, e, id, near[g])) return true;
    return false;
}

typedef struct join_args {
    un_mesher_region *r;
    const crowd *crowd;
} join_args;

static void join_entries(void *arg, int64_t begin, int64_t end)
{
    const join_args *a = arg;
    for (int64_t i = begin; i < end; i++) {
        un_slim_entry *e = &a->r->entry[i];
        if (!e->joined) e->joined = is_joined(a->crowd, e, a->r->id[a->r->slim[i]]);
    }
}

static un_status join_to_entries(un_mesher_region *r, un_arena *scratch, const entries *e)
{
    size_t room = (size_t)e->count + 1;
    double *x[3];
    float *size = un_arena_alloc(scratch, room, sizeof *size);
    uint32_t *id = un_arena_alloc(scratch, room, sizeof *id);
    un_groups groups;
    for (int a = 0; a < 3; a++) {
        x[a] = un_arena_alloc(scratch, room, sizeof *x[a]);
        if (!x[a]) return UN_ERROR_MEMORY;
    }
    if (!size || !id) return UN_ERROR_MEMORY;
    for (int32_t n = 0; n < e->count; n++) {
        const un_slim_entry *from = &e->entry[e->order[n]];
        x[0][n] = from->x.x, x[1][n] = from->x.y, x[2][n] = from->x.z;
        size[n] = from->size;
        id[n] = e->id[e->order[n]];
    }
    UN_TRY(un_groups_build(r->ctx, scratch, &groups, (const double *const[3]){x[0], x[1], x[2]},
                           size, e->count));
    crowd c = {&groups, id, NULL};
    join_args a = {r, &c};
    un_parallel_for(r->ctx, r->slim_count, 256, join_entries, &a);
    return UN_OK;
}

/* To particles that are none of thin liquid. */
static un_status join_to_others(un_mesher_region *r, un_arena *scratch, const un_near_cells *near,
                                const uint8_t *mark)
{
    const un_particles *p = &near->particles;
    un_groups groups;
    float *size = NULL;
    uint8_t *skip = un_alloc(r->ctx, (size_t)p->count + 1, 1);
    un_status status = skip ? group_near(r, scratch, near, &size, &groups) : UN_ERROR_MEMORY;
    status = un_ranks_agree(r->ctx, status);
    if (status == UN_OK) status = un_near_cells_values(near, "slim", skip, mark, 1);
    if (status == UN_OK) {
        for (int32_t q = 0; q < p->count; q++)
            skip[q] = skip[q] || p->flags[q] & UN_PARTICLE_LANDED || !(size[q] > 0) ||
                      !isfinite(size[q]) || !un_finite3(un_particle_position(p, q));
        crowd c = {&groups, NULL, skip};
        join_args a = {r, &c};
        un_parallel_for(r->ctx, r->slim_count, 256, join_entries, &a);
    }
    un_free(r->ctx, skip);
    return status;
}

static un_status join_all(un_mesher_region *r, un_arena *scratch, const entries *e,
                          const uint8_t *mark)
{
    cell_marks m = {0};
    un_near_cells near = {0};
    for (int32_t i = 0; i < r->slim_count; i++)
        r->entry[i].joined = !un_slim_flies(r->in->particles, r->slim[i]);
    un_status status = join_to_entries(r, scratch, e);
    if (status == UN_OK) status = begin_marks(r, &m);
    for (int32_t i = 0; status == UN_OK && i < r->slim_count; i++)
        if (!r->entry[i].joined)
            mark_around(r->in->grid, &m, r->entry[i].x, REACH * (r->entry[i].size + r->largest));
    status = un_ranks_agree(r->ctx, status);
    if (status == UN_OK)
        status = end_marks(r, &m, &near);
    else
        un_free(r->ctx, m.cells), un_free(r->ctx, m.rows);
    if (status == UN_OK) status = join_to_others(r, scratch, &near, mark);
    un_near_cells_free(&near);
    return status;
}

/* ---- drops ---- */

typedef struct drop_term {
    uint32_t id;
    float volume;
    double radius;
} drop_term;

/* Rank 0 adds up all drops, in their order. */
static un_status add_drops(un_context *ctx, un_arena *scratch, const drop_term *term, int64_t count,
                           float *scale)
{
    int32_t *order = un_arena_alloc(scratch, (size_t)count + 1, sizeof *order);
    uint32_t *id = un_arena_alloc(scratch, (size_t)count + 1, sizeof *id);
    un_slim_drops drops = {0, 0};
    if (!order || !id) return UN_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++) id[i] = term[i].id;
    UN_TRY(un_parallel_sort(ctx, scratch, order, id, count, 32));
    for (int64_t i = 0; i < count; i++)
        un_slim_add_drop(&drops, term[order[i]].volume, term[order[i]].radius);
    *scale = un_slim_scale(&drops);
    return UN_OK;
}

static un_status size_drops(un_mesher_region *r, un_arena *scratch)
{
    un_context *ctx = r->ctx;
    un_slim_def def = un_mesher_slim_def(r);
    drop_term *mine = un_arena_alloc(scratch, (size_t)r->slim_count + 1, sizeof *mine);
    int32_t *to = un_arena_alloc(scratch, (size_t)r->slim_count + 1, sizeof *to), count = 0;
    void *all = NULL;
    int64_t all_count;
    float scale = 1;
    UN_TRY(un_ranks_agree(ctx, mine && to ? UN_OK : UN_ERROR_MEMORY));
    for (int32_t i = 0; i < r->slim_count; i++) {
        int32_t q = r->slim[i];
        if (r->entry[i].joined) continue;
        to[count] = 0;
        mine[count++] =
            (drop_term){r->id[q], r->in->particles->volume[q], un_slim_drop(&def, q, &r->entry[i])};
    }
    UN_TRY(un_exchange_send(ctx, "drops", mine, to, count, sizeof *mine, &all, &all_count));
    un_status status = add_drops(ctx, scratch, all, all_count, &scale);
    un_free(ctx, all);
    UN_TRY(un_ranks_agree(ctx, status));
    un_ranks_tell(un_context_ranks(ctx), &scale, sizeof scale);
    un_lattice_mesher s = {.ctx = ctx, .in = r->in};
    for (int32_t i = 0; i < r->slim_count; i++) {
        un_slim_entry *e = &r->entry[i];
        if (e->joined) continue;
        e->radius *= scale;
        r->drop[r->slim[i]] =
            un_mesher_is_clear(&s, e->x, UN_SPHERE_CORNER * UN_DROP_LONGEST * (double)e->radius);
    }
    return UN_OK;
}

/* ---- hulls ---- */

/* The joined ones of a list, and how many points they make. */
static un_hulls_def hulls_of(const un_mesher_region *r, const un_groups *groups, const float *size,
                             const float *depth, const un_slim *slim)
{
    return (un_hulls_def){.groups = groups,
                          .radius = size,
                          .depth = depth,
                          .reach = REACH,
                          .walls = r->in->walls,
                          .slim = slim};
}

/* Numbers of the first points of own entries among those of all. */
static un_status number_points(un_mesher_region *r, un_arena *scratch, uint32_t *number)
{
    const un_bins *b = r->in->bins;
    size_t room = (size_t)r->slim_count + 1;
    int32_t *place = un_arena_alloc(scratch, room, sizeof *place);
    float *size = un_arena_alloc(scratch, room, sizeof *size);
    double *x[3], *sum = un_arena_alloc(scratch, (size_t)b->block_count + 1, sizeof *sum);
    for (int a = 0; a < 3; a++) x[a] = un_arena_alloc(scratch, room, sizeof *x[a]);
    bool able = place && size && sum && x[0] && x[1] && x[2];
    UN_TRY(un_ranks_agree(r->ctx, able ? UN_OK : UN_ERROR_MEMORY));
    memset(sum, 0, ((size_t)b->block_count + 1) * sizeof *sum);
    for (int32_t i = 0; i < r->slim_count; i++) {
        un_vec3 at = un_particle_position(r->in->particles, r->slim[i]);
        x[0][i] = at.x, x[1][i] = at.y, x[2][i] = at.z;
        place[i] = i;
        size[i] = r->size[r->slim[i]];
    }
    un_slim slim = {r->slim_count, place, place, r->entry};
    un_groups groups = {.count = r->slim_count, .x = {x[0], x[1], x[2]}};
    un_hulls_def def = hulls_of(r, &groups, size, NULL, &slim);
    for (int pass = 0; pass < 2; pass++) {
        int32_t i = 0;
        for (int32_t n = 0; n < b->block_count; n++) {
            const int32_t *first = b->begin + (int64_t)b->rank[b->order[n]] * b->block_cells;
            if (r->owner[b->order[n]] != un_rank(r->ctx)) continue;
            for (; i < r->slim_count && r->slim[i] < first[b->block_cells]; i++) {
                if (pass == 1) number[i] = (uint32_t)sum[n];
                if (r->entry[i].joined) sum[n] += un_hull_points_of(&def, i);
            }
        }
        if (pass == 1) break;
        un_ranks_add(r->ctx, sum, b->block_count);
        double so_far = 0;
        for (int32_t n = 0; n < b->block_count; n++) {
            double count = sum[n];
            sum[n] = so_far;
            so_far += count;
        }
    }
    return UN_OK;
}

/* What has arrived of the joined ones, in order. */
typedef struct joined_list {
    float *size, *depth;
    uint32_t *number;
    uint8_t *own;
    double *x[3];
} joined_list;

static un_status keep_joined(un_mesher_region *r, un_arena *scratch, const entries *e,
                             const uint8_t *joined, const uint32_t *number, joined_list *l)
{
    int32_t count = 0, me = un_rank(r->ctx);
    for (int32_t n = 0; n < e->count; n++) count += joined[n];
    size_t room = (size_t)count + 1;
    r->near.entry = un_arena_alloc(&r->arena, room, sizeof *r->near.entry);
    r->near.place = un_arena_alloc(&r->arena, room, sizeof *r->near.place);
    r->near_id = un_arena_alloc(&r->arena, room, sizeof *r->near_id);
    l->size = un_arena_alloc(scratch, room, sizeof *l->size);
    l->depth = un_arena_alloc(scratch, room, sizeof *l->depth);
    l->number = un_arena_alloc(scratch, room, sizeof *l->number);
    l->own = un_arena_alloc(scratch, room, 1);
    bool able = r->near.entry && r->near.place && r->near_id;
    able = able && l->size && l->depth && l->number && l->own;
    for (int a = 0; a < 3; a++) {
        l->x[a] = un_arena_alloc(scratch, room, sizeof *l->x[a]);
        able = able && l->x[a];
    }
    if (!able) return UN_ERROR_MEMORY;
    r->near.particle = r->near.place;
    for (int32_t n = 0; n < e->count; n++) {
        int32_t from = e->order[n], i = r->near.count;
        if (!joined[from]) continue;
        un_slim_entry *to = &r->near.entry[i];
        *to = e->entry[from];
        to->joined = true;
        r->near.place[i] = i;
        r->near_id[i] = e->id[from];
        l->x[0][i] = to->x.x, l->x[1][i] = to->x.y, l->x[2][i] = to->x.z;
        l->size[i] = e->size[from];
        l->depth[i] = 0;
        l->number[i] = number[from];
        l->own[i] = un_mesher_owner(r, to->x) == me;
        r->near.count++;
    }
    return UN_OK;
}

static un_status make_hulls(un_mesher_region *r, const joined_list *l)
{
    un_groups groups = {.count = r->near.count, .x = {l->x[0], l->x[1], l->x[2]}};
    un_hulls_def def = hulls_of(r, &groups, l->size, l->depth, &r->near);
    un_hulls_report report;
    un_arena scratch;
    un_arena_init(&scratch, r->ctx);
    def.number = l->number;
    def.own = l->own;
    un_status status = un_hulls_create(r->ctx, &scratch, &def, &r->hulls, &report);
    un_arena_free(&scratch);
    UN_TRY(un_ranks_agree(r->ctx, status));
    /* what one rank allows for rounding */
    r->hulls->boxes.room = (float)un_ranks_max(r->ctx, r->hulls->boxes.room);
    return UN_OK;
}

static un_status join_slim(un_mesher_region *r, un_arena *scratch, const entries *e)
{
    un_context *ctx = r->ctx;
    uint32_t *number = un_arena_alloc(scratch, (size_t)r->slim_count + 1, sizeof *number);
    uint8_t *joined = un_arena_alloc(scratch, (size_t)r->slim_count + 1, 1);
    uint32_t *their_number = un_arena_alloc(scratch, (size_t)e->count + 1, sizeof *their_number);
    uint8_t *their_joined = un_arena_alloc(scratch, (size_t)e->count + 1, 1);
    joined_list l;
    bool able = number && joined && their_number && their_joined;
    UN_TRY(un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY));
    UN_TRY(number_points(r, scratch, number));
    for (int32_t i = 0; i < r->slim_count; i++) joined[i] = r->entry[i].joined;
    un_field fields[2] = {{"number", number, their_number, sizeof *number},
                          {"joined", joined, their_joined, 1}};
    UN_TRY(un_exchange_run(e->plan, fields, 2));
    UN_TRY(un_ranks_agree(ctx, keep_joined(r, scratch, e, their_joined, their_number, &l)));
    return make_hulls(r, &l);
}

void un_mesher_place_near(const un_mesher_region *r, int32_t *place, const uint32_t *id,
                          int32_t count)
{
    int32_t next = 0;
    for (int32_t q = 0; q < count; q++) {
        while (next < r->near.count && r->near_id[next] < id[q]) next++;
        place[q] = next < r->near.count && r->near_id[next] == id[q] ? next : -1;
    }
}

/* ---- all of it ---- */

un_status un_mesher_find_flying(un_mesher_region *r)
{
    un_context *ctx = r->ctx;
    un_arena scratch;
    entries e = {0};
    uint8_t *mark;
    un_arena_init(&scratch, ctx);
    un_status status = un_ranks_agree(ctx, list_slim(r, &scratch, &mark));
    un_arena_reset(&scratch);
    if (status == UN_OK) r->slim_total = un_ranks_total(ctx, r->slim_count);
    if (status == UN_OK && r->slim_total > 0) {
        status = shape_all(r, &scratch);
        if (status == UN_OK) status = share_entries(r, &scratch, &e);
        if (status == UN_OK) status = join_all(r, &scratch, &e, mark);
        if (status == UN_OK) status = size_drops(r, &scratch);
        if (status == UN_OK) status = join_slim(r, &scratch, &e);
        if (status == UN_OK) status = un_bins_share_copies(ctx, r->in->share, "drop", r->drop, 1);
    }
    free_entries(ctx, &e);
    un_arena_free(&scratch);
    return status;
}
