/* Method `uniform` on several ranks.
 *
 * A rank computes bars of rows of cells (un_grid.bars), columns of blocks of the bins, and holds
 * the particles in them: its own. From sorting to the transfer to the grid it also holds copies of
 * those in two rows beside them, which lie among its own in the order of the curve through the
 * blocks. The order of all its particles is that of one rank, so kernels add the same numbers in
 * the same order, and every bit is that of one rank.
 *
 * Each particle has its number among all particles of all ranks in that order, its id. From
 * sorting to the transfer it follows from the place in the bins; then ids are listed, until the
 * next sort, which goes by cell and, within a cell, by id. */
#include "method/uniform.h"

/* ---- what a rank holds ---- */

void un_uniform_ranks_free(un_uniform *s)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    un_bars_destroy(r->bars);
    un_exchange_destroy(r->halo);
    un_particles_free(ctx, &r->arrived);
    un_particles_free(ctx, &r->whole);
    un_particles_free(ctx, &r->window);
    un_free(ctx, r->shown_index);
    un_free(ctx, r->shown_id);
    un_free(ctx, r->fetched);
    un_free(ctx, r->probed);
    un_bins_destroy(r->whole_bins);
    un_free(ctx, r->inner);
    un_free(ctx, r->held);
    un_free(ctx, r->takers);
    un_free(ctx, r->id);
    un_free(ctx, r->arrived_id);
    un_free(ctx, r->block_first);
    un_free(ctx, r->block_owner);
    un_free(ctx, r->slot);
}

/* ---- sorting ---- */

/* Serial numbers of the first particles of blocks, by their place along the curve. */
static un_status number_blocks(un_uniform *s)
{
    const un_bins *b = s->bins;
    un_uniform_ranks *r = &s->ranks;
    double *count = un_arena_alloc(&s->core.arena, (size_t)b->block_count + 1, sizeof *count);
    if (!count) return UN_ERROR_MEMORY;
    memset(count, 0, ((size_t)b->block_count + 1) * sizeof *count);
    for (int32_t n = 0; n < b->block_count; n++) {
        const int32_t *first = b->begin + (int64_t)b->rank[b->order[n]] * b->block_cells;
        if (un_bins_owns(b, b->order[n])) count[n] = first[b->block_cells] - first[0];
    }
    un_ranks_add_list(s->core.ctx, count, b->block_count);
    r->block_first[0] = 0;
    for (int32_t n = 0; n < b->block_count; n++)
        r->block_first[n + 1] = r->block_first[n] + (int64_t)count[n];
    r->total = r->block_first[b->block_count];
    r->counted = true;
    return UN_OK;
}

/* Which side of its bar a particle in this row is at, as others ask for copies. */
static inline int32_t side_of(const un_grid *g, double x, double origin, int32_t row)
{
    int32_t in = row % UN_BAR;
    if (in < UN_UNIFORM_ABOVE) return -1;
    if (in < UN_BAR - UN_UNIFORM_BELOW) return 0;
    double place = (x - origin) * g->inverse_h;
    return (double)(row - in + UN_BAR) - place <= UN_UNIFORM_REACH;
}

/* The rank of a particle, first, and those that have copies: whose bars are within reach. */
static const un_uniform_takers *takers_of(const un_uniform *s, int64_t q)
{
    const un_grid *g = &s->core.grid;
    const un_particles *p = &s->particles;
    int32_t j, k;
    un_uniform_row_of(g, p, q, &j, &k);
    int32_t y = side_of(g, p->x[1][q], g->origin.y, j), z = side_of(g, p->x[2][q], g->origin.z, k);
    int64_t bar = un_bar_of(&s->ranks.bars->curve, j, k);
    return &s->ranks.takers[UN_UNIFORM_SIDES * bar + (y + 1) + 3 * (z + 1)];
}

/* Calls for all particles of some blocks, in the order of the curve: of own rows that others may
 * have copies of, or of blocks of others that are here. */
typedef void each_particle(void *arg, int32_t q, int32_t owner);
static void for_rows(const un_uniform *s, bool own, each_particle *call, void *arg)
{
    const un_bins *b = s->bins;
    const un_grid *g = b->grid;
    int32_t me = un_rank(s->core.ctx), rows = b->block_cells / UN_BLOCK;
    for (int32_t n = 0; n < b->block_count; n++) {
        int32_t owner = s->ranks.block_owner[n], bar = un_bins_bar(b, b->order[n]);
        int32_t place = b->rank[b->order[n]];
        if ((owner == me) != own || place == b->held_count) continue;
        const int32_t *first = b->begin + (int64_t)place * b->block_cells;
        for (int32_t r = 0; r < rows; r++, first += UN_BLOCK) {
            if (first[0] == first[UN_BLOCK]) continue;
            int64_t j = bar % b->blocks[1] * UN_BLOCK + r % UN_BLOCK;
            int64_t k = bar / b->blocks[1] * UN_BLOCK + r / UN_BLOCK;
            if (own && s->ranks.inner[j + k * g->n[1]]) continue;
            for (int32_t q = first[0]; q < first[UN_BLOCK]; q++) call(arg, q, owner);
        }
    }
}

/* The plan to bring copies up to date: who has which, and where they lie here. */
typedef struct halo_plan {
    un_uniform_list l;
    const un_uniform *s;
    int64_t count;
    int32_t *next; /* by rank: the place of its next copy here */
    int32_t *slot;
} halo_plan;

static void count_one(void *arg, int32_t q, int32_t owner)
{
    halo_plan *h = arg;
    (void)q, (void)owner;
    h->count++;
}
static void list_takers(void *arg, int32_t q, int32_t owner)
{
    halo_plan *h = arg;
    const un_uniform_takers *takers = takers_of(h->s, q);
    (void)owner;
    for (int n = takers->count - 1; n > 0; n--) un_uniform_add_to_list(&h->l, q, takers->rank[n]);
}
static void count_slot(void *arg, int32_t q, int32_t owner)
{
    halo_plan *h = arg;
    (void)q;
    h->next[owner + 1]++;
}
static void add_slot(void *arg, int32_t q, int32_t owner)
{
    halo_plan *h = arg;
    h->slot[h->next[owner]++] = q;
}

/* Copies arrive by rank, those of each in the order of the curve: all particles here that are not
 * this rank's. */
static un_status plan_halo(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    int32_t ranks = un_rank_count(s->core.ctx);
    halo_plan h = {.s = s};
    for_rows(s, true, count_one, &h);
    UN_TRY(un_uniform_begin_list(s, &h.l, (UN_UNIFORM_TAKERS - 1) * h.count));
    for_rows(s, true, list_takers, &h);
    h.next = un_arena_alloc(&s->core.arena, (size_t)ranks + 1, sizeof *h.next);
    if (!h.next) return UN_ERROR_MEMORY;
    memset(h.next, 0, ((size_t)ranks + 1) * sizeof *h.next);
    for_rows(s, false, count_slot, &h);
    for (int32_t n = 0; n < ranks; n++) h.next[n + 1] += h.next[n];
    r->slot_count = h.next[ranks];
    UN_TRY(un_array_need(s->core.ctx, (void **)&r->slot, &r->slot_room, (size_t)r->slot_count + 1,
                         sizeof *r->slot));
    h.slot = r->slot;
    for_rows(s, false, add_slot, &h);
    un_exchange_destroy(r->halo);
    r->halo = NULL;
    UN_TRY(un_exchange_create_copies(s->core.ctx, h.l.index, h.l.to, h.l.count, &r->halo));
    UN_ASSERT(un_exchange_count(r->halo) == r->slot_count);
    return UN_OK;
}

/* Sends what is listed; what arrives comes after those that are here. */
static un_status take_in(un_uniform *s, const un_uniform_list *l)
{
    un_context *ctx = s->core.ctx;
    un_particles *p = &s->particles;
    un_exchange *e = NULL;
    UN_TRY(un_exchange_create_copies(ctx, l->index, l->to, l->count, &e));
    int64_t count = p->count + un_exchange_count(e);
    un_status status = un_particles_reserve(ctx, p, un_max64(count, 1));
    if (status == UN_OK) status = un_uniform_need_ids(s, count);
    if (status == UN_OK) status = un_uniform_send(e, p, s->ranks.id, p, s->ranks.id);
    un_exchange_destroy(e);
    return status;
}

typedef struct leave_args {
    const un_uniform *s;
    uint8_t *leaves;
    int32_t me;
} leave_args;

/* What becomes of a particle: it stays, alone or with copies elsewhere, or is gone. */
enum { STAYS, IS_COPIED, IS_GONE };

static uint8_t leaves(const leave_args *a, int64_t q)
{
    const un_uniform_takers *t = takers_of(a->s, q);
    bool here = false;
    for (int n = 0; n < t->count; n++) here |= t->rank[n] == a->me;
    return !here ? IS_GONE : t->rank[0] == a->me && t->count == 1 ? STAYS : IS_COPIED;
}

/* Nearly all stay: their rows tell. */
static void find_leaving(void *arg, int64_t begin, int64_t end)
{
    const leave_args *a = arg;
    const un_particles *p = &a->s->particles;
    const un_grid *g = &a->s->core.grid;
    const uint8_t *inner = a->s->ranks.inner;
    for (int64_t q = begin; q < end; q++) {
        int32_t j, k;
        un_uniform_row_of(g, p, q, &j, &k);
        a->leaves[q] = inner[j + (int64_t)g->n[1] * k] ? STAYS : leaves(a, q);
    }
}

/* The next particle from q on that does not stay as it is. */
static int32_t next_leaving(const uint8_t *leaves, int32_t q, int32_t count)
{
    uint64_t eight;
    for (; q + 8 <= count; q += 8) {
        memcpy(&eight, leaves + q, sizeof eight);
        if (eight) break;
    }
    while (q < count && leaves[q] == STAYS) q++;
    return q;
}

/* The list of what goes to other ranks, and of what is gone from here. */
static un_status list_leaving(un_uniform *s, un_uniform_list *l, un_bins_gone *gone)
{
    const un_particles *p = &s->particles;
    int32_t me = un_rank(s->core.ctx), count = 0, *list_gone;
    int64_t moved = 0;
    leave_args a = {s, un_arena_alloc(&s->core.arena, (size_t)p->count + 1, 1), me};
    if (!a.leaves) return UN_ERROR_MEMORY;
    un_parallel_for(s->core.ctx, p->count, 16384, find_leaving, &a);
    *gone = (un_bins_gone){0};
    for (int32_t q = 0; (q = next_leaving(a.leaves, q, p->count)) < p->count; q++) {
        count++;
        gone->count += a.leaves[q] == IS_GONE;
    }
    UN_TRY(un_uniform_begin_list(s, l, UN_UNIFORM_TAKERS * (int64_t)count));
    gone->list = list_gone =
        un_arena_alloc(&s->core.arena, (size_t)gone->count + 1, sizeof *list_gone);
    if (!list_gone) return UN_ERROR_MEMORY;
    for (int32_t q = 0; (q = next_leaving(a.leaves, q, p->count)) < p->count; q++) {
        const un_uniform_takers *takers = takers_of(s, q);
        for (int n = 0; n < takers->count; n++)
            if (takers->rank[n] != me) un_uniform_add_to_list(l, q, takers->rank[n]);
        if (takers->rank[0] != me) moved++;
        if (a.leaves[q] == IS_GONE) *list_gone++ = q;
    }
    s->ranks.portion.migrated = moved;
    s->ranks.portion.migrated_bytes =
        moved * (UN_UNIFORM_SENT_BYTES + (p->mixed ? UN_UNIFORM_SENT_MATTER_BYTES : 0));
    s->ranks.portion.copies = l->count - moved;
    return UN_OK;
}

un_status un_uniform_ranks_sort(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    un_bins_gone gone;
    un_uniform_list l;
    UN_TRY(un_uniform_recut(s));
    UN_TRY(list_leaving(s, &l, &gone));
    UN_TRY(take_in(s, &l));
    UN_TRY(un_bins_sort_by_id(s->bins, &s->core.arena, &s->particles, r->id, &gone));
    un_arena_reset(&s->core.arena);
    UN_TRY(number_blocks(s));
    UN_TRY(plan_halo(s));
    un_arena_rest(&s->core.arena);
    return UN_OK;
}

/* After own particles have moved within the step. */
un_status un_uniform_ranks_refresh(un_uniform *s)
{
    un_uniform_ranks *r = &s->ranks;
    un_particles *p = &s->particles;
    static const char *const names[3] = {"x", "y", "z"};
    un_field fields[3];
    for (int a = 0; a < 3; a++) {
        double *to = un_arena_alloc(&s->core.arena, (size_t)r->slot_count + 1, sizeof *to);
        if (!to) return UN_ERROR_MEMORY;
        fields[a] = (un_field){names[a], p->x[a], to, sizeof *to};
    }
    UN_TRY(un_exchange_run(r->halo, fields, 3));
    for (int a = 0; a < 3; a++)
        for (int32_t i = 0; i < r->slot_count; i++)
            p->x[a][r->slot[i]] = ((const double *)fields[a].to)[i];
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

void un_uniform_portion(const void *state, un_portion *out)
{
    const un_uniform *s = state;
    const un_bins *b = s->bins;
    *out = s->ranks.portion;
    out->cells = un_runs_count(un_grid_own_cells(&s->core.grid, 0));
    out->particles = 0;
    for (int32_t n = 0; n < b->block_count; n++)
        if (s->ranks.block_owner[n] == un_rank(s->core.ctx))
            out->particles += s->ranks.block_first[n + 1] - s->ranks.block_first[n];
}

un_status un_uniform_list_own(un_uniform *s, int32_t **order, int32_t *count)
{
    const un_bins *b = s->bins;
    un_uniform_ranks *r = &s->ranks;
    int32_t me = un_rank(s->core.ctx);
    *order = un_arena_alloc(&s->core.arena, (size_t)s->particles.count + 1, sizeof **order);
    if (!*order) return UN_ERROR_MEMORY;
    *count = 0;
    for (int32_t n = 0; n < b->block_count; n++) {
        const int32_t *first = b->begin + (int64_t)b->rank[b->order[n]] * b->block_cells;
        if (r->block_owner[n] != me) continue;
        for (int32_t q = first[0]; q < first[b->block_cells]; q++) {
            r->id[*count] = (uint32_t)(r->block_first[n] + q - first[0]);
            (*order)[(*count)++] = q;
        }
    }
    return UN_OK;
}

/* Particles of the n-th block along the curve; none if it is not here. */
static un_part particles_of(const un_bins *b, int32_t n)
{
    int32_t block = b->order[n];
    if (b->rank[block] == b->held_count) return (un_part){0, 0};
    const int32_t *first = b->begin + (int64_t)b->rank[block] * b->block_cells;
    return (un_part){first[0], first[b->block_cells]};
}

/* The last particles go to the places of copies: blocks of other ranks. */
static void fill_places_of_copies(un_uniform *s)
{
    const un_bins *b = s->bins;
    un_uniform_ranks *r = &s->ranks;
    un_particles *p = &s->particles;
    int32_t me = un_rank(s->core.ctx), own = 0, last = b->block_count - 1;
    for (int32_t n = 0; n < b->block_count; n++) {
        un_part in = particles_of(b, n);
        if (r->block_owner[n] != me) continue;
        for (int64_t q = in.begin; q < in.end; q++)
            r->id[q] = (uint32_t)(r->block_first[n] + q - in.begin);
        own += (int32_t)(in.end - in.begin);
    }
    un_part from = {0, 0}; /* own particles that are left of the last blocks */
    for (int32_t n = 0; n < b->block_count; n++) {
        un_part to = particles_of(b, n);
        if (r->block_owner[n] == me) continue;
        for (int64_t q = to.begin; q < un_min64(to.end, own); q++) {
            for (; from.begin == from.end; last--)
                if (r->block_owner[last] == me) from = particles_of(b, last);
            un_particle_copy(p, (int32_t)q, (int32_t)--from.end);
            r->id[q] = r->id[from.end];
        }
    }
    p->count = own;
}

un_status un_uniform_ranks_drop(un_uniform *s)
{
    int32_t *order, count;
    if (s->core.bodies->free_count > 0) { /* sums are made in the order of ids */
        UN_TRY(un_uniform_list_own(s, &order, &count));
        un_particles_take(s->core.ctx, &s->particles, order, count);
        un_arena_reset(&s->core.arena);
    } else
        fill_places_of_copies(s);
    s->ranks.id_end = (uint32_t)s->ranks.total;
    un_exchange_destroy(s->ranks.halo); /* messages take room */
    s->ranks.halo = NULL;
    return UN_OK;
}

/* Of the faster component of those along y and z. */
typedef struct speed_args {
    const double *u;
} speed_args;

static double fastest(void *arg, int64_t begin, int64_t end)
{
    const speed_args *a = arg;
    double max = 0;
    for (int64_t f = begin; f < end; f++) max = fabs(a->u[f]) > max ? fabs(a->u[f]) : max;
    return max;
}

/* Velocities as far as particles go. */
un_status un_uniform_ranks_reach(un_uniform *s, double dt)
{
    const un_grid *g = &s->core.grid;
    un_layered now[3], before[3];
    double speed = 0, most = g->n[1] + g->n[2];
    for (int n = 1; n < g->dim; n++)
        speed = fmax(speed, un_runs_max(s->core.ctx, un_grid_own_cells(g, 0), fastest,
                                        &(speed_args){s->u[n]}));
    speed = un_ranks_max(s->core.ctx, speed);
    double far = fmin(ceil(speed * dt / g->h), most);
    for (int n = 0; n < g->dim; n++) {
        now[n] = (un_layered){s->u[n], sizeof *s->u[n]};
        before[n] = (un_layered){s->u_old[n], sizeof *s->u_old[n]};
    }
    s->ranks.reach = (int32_t)far;
    if (s->band.width > 0) { /* cubics, and faces that other ranks' liquid comes from */
        UN_TRY(un_grid_share(g, now, g->dim, (int32_t)far + 4));
        return un_grid_share(g, before, g->dim, (int32_t)far + 4);
    }
    UN_TRY(un_grid_share(g, now, g->dim, (int32_t)far + 2));
    return un_grid_share(g, before, g->dim, 2);
}

int32_t un_uniform_ranks_stray(const un_uniform *s)
{
    const un_particles *p = &s->particles;
    int32_t far = s->ranks.reach;
    if (!s->ranks.bars) return 0;
    for (int32_t q = 0; q < p->count; q++) {
        int32_t j, k;
        un_uniform_row_of(&s->core.grid, p, q, &j, &k);
        int32_t rows = s->ranks.bars->far[j + (int64_t)s->core.grid.n[1] * k];
        far = rows > far ? rows : far;
    }
    return (int32_t)un_ranks_max(s->core.ctx, far);
}
