/* Sums over the particles of method `uniform` on several ranks, with the bits of one rank.
 *
 * One rank sums in blocks of ids, each from its first particle to its last. Where the particles of
 * a block lie on several ranks, it passes from one to the next: a stretch of ids on one rank is
 * added in a round, and all ranks know the sums so far after each. */
#include "method/uniform.h"

/* What a particle is weighed for (un_transfer_note_ballistic), after the sums of particles. */
enum { VOLUME = UN_PARTICLE_SUMS, BALLISTIC, INSIDE, SUMS };
#define WIDTH_MAX 16

/* A stretch of ids on this rank. */
typedef struct piece {
    int32_t first, count; /* particles here */
    int32_t block, round;
} piece;

typedef struct summing {
    const un_uniform *s;
    un_parallel_values *values;
    void *arg;
    int32_t width;
    piece *piece; /* this rank's, by block and by round */
    int32_t piece_count, round;
    int32_t *begin; /* by block: its first piece; one more */
    double *so_far, *now;
} summing;

static void add_pieces(void *arg, int64_t begin, int64_t end)
{
    const summing *a = arg;
    for (int64_t b = begin; b < end; b++)
        for (int32_t i = a->begin[b]; i < a->begin[b + 1]; i++) {
            const piece *p = &a->piece[i];
            double *sums = a->now + b * a->width;
            if (p->round != a->round) continue;
            if (i == a->begin[b] || p[-1].round != p->round)
                memcpy(sums, a->so_far + b * a->width, (size_t)a->width * sizeof *sums);
            a->values(a->arg, p->first, (int64_t)p->first + p->count, sums);
        }
}

/* Lists this rank's pieces; returns the number of rounds. Every rank finds the same rounds. copies:
 * they still lie between own particles. */
static int32_t list_pieces(const un_uniform *s, summing *a, int64_t grain, int32_t *rounds,
                           bool copies)
{
    const un_bins *b = s->bins;
    const un_uniform_ranks *r = &s->ranks;
    int32_t me = un_rank(s->core.ctx), most = 0, last_owner = -1;
    int64_t last_block = -1, before = 0;
    a->piece_count = 0;
    for (int32_t n = 0; n < b->block_count; n++) {
        int32_t owner = r->block_owner[n];
        int64_t first = copies ? b->begin[(int64_t)b->rank[b->order[n]] * b->block_cells] : before;
        for (int64_t id = r->block_first[n], end = r->block_first[n + 1], to; id < end; id = to) {
            int64_t block = id / grain;
            to = un_min64((block + 1) * grain, end);
            for (; last_block < block; last_block++) {
                a->begin[last_block + 1] = a->piece_count;
                rounds[last_block + 1] = 0;
                last_owner = -1;
            }
            if (owner != last_owner) rounds[block]++;
            last_owner = owner;
            most = rounds[block] > most ? rounds[block] : most;
            if (owner != me) continue;
            a->piece[a->piece_count++] =
                (piece){(int32_t)(first + id - r->block_first[n]), (int32_t)(to - id),
                        (int32_t)block, rounds[block] - 1};
        }
        if (owner == me) before += r->block_first[n + 1] - r->block_first[n];
    }
    a->begin[last_block + 1] = a->piece_count;
    return most;
}

static un_status find_sums(un_uniform *s, summing *a, bool copies, double *sums)
{
    un_context *ctx = s->core.ctx;
    un_uniform_ranks *r = &s->ranks;
    double so_far[UN_BLOCKS_MAX * WIDTH_MAX] = {0}, now[UN_BLOCKS_MAX * WIDTH_MAX];
    int32_t begin[UN_BLOCKS_MAX + 1], rounds[UN_BLOCKS_MAX], width = a->width;
    int64_t grain = un_block_grain(r->total), blocks = (r->total + grain - 1) / grain;
    size_t most = (size_t)s->bins->block_count + UN_BLOCKS_MAX, bytes = (size_t)width * sizeof *now;
    UN_ASSERT(width <= WIDTH_MAX);
    a->piece = un_arena_alloc(&s->core.arena, most, sizeof *a->piece);
    if (!a->piece) return UN_ERROR_MEMORY;
    a->begin = begin;
    a->so_far = so_far;
    a->now = now;
    int32_t count = blocks > 0 ? list_pieces(s, a, grain, rounds, copies) : 0;
    for (a->round = 0; a->round < count; a->round++) {
        memset(now, 0, sizeof now);
        un_parallel_for(ctx, blocks, 1, add_pieces, a);
        un_ranks_add(ctx, now, blocks * width); /* all but one of the numbers are 0 */
        for (int64_t b = 0; b < blocks; b++)
            if (a->round < rounds[b]) memcpy(so_far + b * width, now + b * width, bytes);
    }
    for (int n = 0; n < width; n++) sums[n] = 0;
    for (int64_t b = 0; b < blocks; b++)
        for (int n = 0; n < width; n++) sums[n] += so_far[b * width + n];
    return UN_OK;
}

/* Between the transfer to the grid and what removes or adds particles. */
un_status un_uniform_ranks_sum(void *state, int32_t width, un_parallel_values *values, void *arg,
                               double *sums)
{
    un_uniform *s = state;
    summing a = {.s = s, .values = values, .arg = arg, .width = width};
    return find_sums(s, &a, false, sums);
}

/* ---- after sorting ---- */

un_status un_uniform_ranks_sum_sorted(void *state, int32_t width, un_parallel_values *values,
                                      void *arg, double *sums)
{
    un_uniform *s = state;
    summing a = {.s = s, .values = values, .arg = arg, .width = width};
    UN_TRY(find_sums(s, &a, true, sums));
    un_arena_reset(&s->core.arena);
    return UN_OK;
}

typedef struct weighing {
    const un_uniform *s;
    const un_particles *particles; /* `what` is in place of the flags */
} weighing;

static void weigh(void *arg, int64_t begin, int64_t end, double *sums)
{
    const weighing *w = arg;
    const un_particles *p = w->particles;
    un_particles_add_sums(p, begin, end, w->s->core.def->gravity, sums);
    for (int64_t q = begin; q < end; q++) {
        sums[VOLUME] += p->volume[q];
        if (p->flags[q] == UN_MARKED_BALLISTIC) sums[BALLISTIC] += 1;
        if (p->flags[q] == UN_MARKED_INSIDE) sums[INSIDE] += p->volume[q];
    }
}

un_status un_uniform_ranks_weigh(un_uniform *s, const uint8_t *thick, const un_cling *cling,
                                 double *total, double *inside)
{
    un_context *ctx = s->core.ctx;
    double sums[SUMS], fastest;
    uint8_t *what = un_arena_alloc(&s->core.arena, (size_t)s->particles.count + 1, 1);
    un_particles view = s->particles;
    weighing w = {s, &view};
    summing a = {.s = s, .values = weigh, .arg = &w, .width = SUMS};
    if (!what) return UN_ERROR_MEMORY;
    un_transfer_note_ballistic(ctx, what, &s->particles, s->phi, &s->core.grid, thick, cling);
    view.flags = what;
    UN_TRY(find_sums(s, &a, true, sums));
    s->ballistic = (int64_t)sums[BALLISTIC];
    *inside = sums[INSIDE];
    *total = sums[VOLUME];
    fastest = un_ranks_max(ctx, un_particles_fastest(ctx, &s->particles));
    un_particles_set_sums(&s->ranks.sums, sums, fastest,
                          s->particles.mixed ? 1 : s->core.def->fluid.density);
    return UN_OK;
}
