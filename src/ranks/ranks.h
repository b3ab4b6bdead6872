/* Ranks: several processes that work on one thing. The only folder that knows MPI; without it there
 * is one rank, and the calls cost nothing.
 *
 * Calls that need the ranks find them in the context. They are collective, made by all ranks in the
 * same order, and those that return a status return the same one everywhere. */
#ifndef UN_RANKS_H
#define UN_RANKS_H

#include "base/base.h"

/* ---- ranks.c ---- */

static inline int32_t un_rank(const un_context *ctx)
{
    return un_ranks_rank(un_context_ranks(ctx));
}
static inline int32_t un_rank_count(const un_context *ctx)
{
    return un_ranks_count(un_context_ranks(ctx));
}
/* A failure that all ranks knew of has been dealt with. */
void un_ranks_recover(un_context *ctx);
/* UN_ERROR_UNAVAILABLE where there is more than one rank. what: "a run". */
un_status un_ranks_refuse(un_context *ctx, const char *what);

/* What this rank has sent to others so far. */
typedef struct un_traffic {
    double layers;   /* bytes of layers of cells */
    double elements; /* bytes of elements in exchanges: particles */
    double rows;     /* bytes of elements in halos: rows of systems */
    double listed;   /* bytes of lists that all ranks have got */
    double coarse;   /* the same of rows of coarse levels */
    double filed;    /* bytes on their way to files, to the ranks that write them, */
    double written;  /* and bytes that this rank has written to files of all ranks */
    double messages; /* each to one rank */
    double calls;    /* that wait for all ranks: sums, maxima, agreements */
    double seconds;  /* of processor time inside MPI, waiting included */
} un_traffic;
un_traffic un_ranks_traffic(const un_context *ctx);

/* Messages between some ranks, all under way at once. Who sends knows that the other waits for it,
 * and for how much at most: a message may be shorter than the room for it, but not empty. Of two
 * ranks each has one message for the other at most. Not collective: ranks without messages need not
 * call. */
typedef struct un_mail {
    int32_t rank;
    size_t bytes;
    void *data;
} un_mail;
void un_ranks_trade(un_context *ctx, const un_mail *in, int32_t in_count, const un_mail *out,
                    int32_t out_count);

/* ---- sums (sums.c) ---- */

/* Sums over [0, total), of which this rank holds [begin, end); the ranges of the ranks follow one
 * another and cover it. The blocks are those of un_parallel_sums over all of it, so the bits are
 * the same for any number of ranks and threads. For that, values must add its elements to the sums
 * one by one, in order: a block that two ranks hold is begun by the one and finished by the other.
 * Indices are global. */
typedef struct un_range {
    int64_t begin, end, total;
} un_range;
void un_ranks_sums(un_context *ctx, un_range range, int32_t width, un_parallel_values *values,
                   void *arg, double *sums);
/* The same where the elements of ranks do not follow one another, but each has a number: id[k],
 * ascending, of element k here. All ranks together have the numbers 0 to total - 1. values gets
 * indices of elements here. Quick where the numbers of a rank are a few stretches. */
typedef struct un_numbers {
    const uint32_t *id;
    int64_t count, total;
} un_numbers;
un_status un_ranks_listed_sums(un_context *ctx, const un_numbers *numbers, int32_t width,
                               un_parallel_values *values, void *arg, double *sums);
/* Of a number of each rank. */
double un_ranks_max(un_context *ctx, double value);
void un_ranks_most(un_context *ctx, double *values, int32_t count); /* of each of some numbers */
int64_t un_ranks_total(un_context *ctx, int64_t value);
/* This rank's range where it holds `count` elements. */
un_range un_ranks_range(un_context *ctx, int64_t count);

/* One rank after the other: begin waits for what the rank before ended with, of which rank 0 has
 * its own. After the last rank's end, all have what that ended with. */
void un_ranks_begin_turn(un_context *ctx, void *values, size_t bytes);
void un_ranks_end_turn(un_context *ctx, void *values, size_t bytes);

/* Adds up arrays of all ranks, to all. The bits do not depend on the number of ranks where all but
 * one of the numbers that are added are 0, or all are whole. */
void un_ranks_add(un_context *ctx, double *values, int64_t count);
/* The same of lists that grow with the scene, whose bytes count as those of lists. */
void un_ranks_add_list(un_context *ctx, double *values, int64_t count);

/* `bytes` of each rank, in the order of ranks, to all. */
void un_ranks_gather(un_context *ctx, void *all, const void *mine, size_t bytes);

/* ---- a curve divided by work (cuts.c) ---- */

/* Where the part of each rank begins, cut[0] = 0: parts of about the same work. key: places of this
 * rank's elements on the curve, ascending, below 2^bits; the ranks' elements may lie anywhere.
 * work: NULL: all have the same. */
un_status un_ranks_cut(un_context *ctx, uint64_t *cut, const uint64_t *key, const double *work,
                       int64_t count, int32_t bits);
/* The rank whose part holds the key; of parts that begin at the same key, all but the last are
 * empty. */
static inline int32_t un_ranks_owner(const uint64_t *cut, int32_t rank_count, uint64_t key)
{
    int32_t low = 0, high = rank_count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (cut[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- arrays that have their full length on every rank ---- */

/* Each rank knows a part of such an array, and only that part takes up memory: pages that nobody
 * touches do not. Indices are the serial ones. */

typedef struct un_layered {
    void *array;
    size_t size; /* bytes of an element */
} un_layered;

/* The elements of all ranks' ranges, to rank 0. */
void un_ranks_collect(un_context *ctx, un_range range, void *array, size_t size);
/* Elements begin to end of what ranks hold in ranges, to `out` on rank 0. own: this rank's. */
void un_ranks_own_window(un_context *ctx, un_range range, const void *own, size_t size,
                         int64_t begin, int64_t end, void *out);
/* To each rank the elements that it wants (windows.c). A rank that gets no memory for it fails
 * alone, which ends all. */
un_status un_ranks_windows(un_context *ctx, un_range range, const void *own, size_t size,
                           un_part wanted, void *out);
/* The same where ranks list their elements: element id[k], ascending, is array[index[k]]. */
typedef struct un_listed {
    const uint32_t *id;
    const int32_t *index;
    int64_t count;
} un_listed;
un_status un_ranks_listed_windows(un_context *ctx, const un_listed *listed, const void *array,
                                  size_t size, un_part wanted, void *out);
/* Rank 0 gives each rank the elements of its part. */
un_status un_ranks_deal(un_context *ctx, un_part part, void *array, size_t size);

/* What all ranks list, one after the other, to all. *all is allocated; count: of elements in it. */
un_status un_ranks_list(un_context *ctx, const void *mine, int64_t mine_count, size_t size,
                        void **all, int64_t *count);

/* Arrays of full length, of which each rank knows the elements of its range: now all know all. */
un_status un_ranks_join(un_context *ctx, un_range range, const un_layered *fields, int32_t count);

/* By rank: the first element that it holds, and the end; allocated. */
un_status un_ranks_begins(un_context *ctx, int64_t begin, int64_t total, int64_t **begins);
/* Each rank has set its own elements of an array, those from first[rank] up to first[rank + 1], and
 * gets those of all others. */
void un_ranks_spread(un_context *ctx, const int64_t *first, void *array, size_t size);
/* The same where ranks have divided `count` elements evenly: this one's are un_ranks_even. */
un_part un_ranks_even(const un_context *ctx, int64_t count);
void un_ranks_spread_even(un_context *ctx, int64_t count, void *array, size_t size);

/* Copies of elements that others hold (halo.c). */
typedef struct un_halo un_halo;
/* first: by rank, the first element that it holds, and the end; wanted: elements of others,
 * ascending. */
un_status un_halo_create(un_context *ctx, const int64_t *first, const int32_t *wanted,
                         int64_t wanted_count, un_halo **halo);
/* The same, and whether any rank wants something. */
un_status un_halo_create_if_any(un_context *ctx, const int64_t *first, const int32_t *wanted,
                                int64_t wanted_count, un_halo **halo, bool *any);
/* The same, but a rank that has no memory fails it on all. */
un_status un_halo_create_agreed(un_context *ctx, const int64_t *first, const int32_t *wanted,
                                int64_t wanted_count, un_halo **halo);
/* The same where each rank knows what others want of it: those of its elements that go to rank r
 * are the next count[r] of `given`, ascending. Nobody waits, and a rank that has no memory fails
 * alone.
 */
typedef struct un_given {
    const int32_t *given;
    const int64_t *count;
} un_given;
un_status un_halo_create_known(un_context *ctx, const int64_t *first, const int32_t *wanted,
                               int64_t wanted_count, const un_given *given, un_halo **halo);
/* The same where rank r holds elements from first[r] on and wants those from cut[r] on. */
un_status un_halo_create_cut(un_context *ctx, const int64_t *first, const int64_t *cut,
                             un_halo **halo);
void un_halo_destroy(un_halo *halo); /* NULL is fine */
/* Copies the wanted elements into their places. size: at most UN_HALO_SIZE, or what was reserved.
 * NULL: does nothing. */
#define UN_HALO_SIZE 8
void un_halo_share(un_halo *halo, void *array, size_t size);
un_status un_halo_reserve(un_halo *halo, size_t size); /* NULL is fine */
/* Several arrays in one message. */
un_status un_halo_share_fields(un_halo *halo, const un_layered *fields, int32_t count);
/* The same for rows of various lengths: row i has the elements row[i] up to row[i + 1] of
 * `entries`. Sets both for the wanted rows, too. with: arrays of an element by row, UN_HALO_WITH at
 * most. */
#define UN_HALO_WITH 4
un_status un_halo_share_rows(un_halo *halo, int32_t *row, const un_layered *entries, int32_t count,
                             const un_layered *with, int32_t with_count);
/* Rows of all ranks to all: those of rank r are first[r] up to first[r + 1]. */
void un_halo_spread(un_context *ctx, const int64_t *first, void *array, size_t size);
/* Bytes that this rank has sent to others through halos. */
size_t un_halo_sent(const un_context *ctx);

/* ---- the rows of a grid, in bars (curve.c, bars.c, bars_share.c, runs.c) ---- */

/* Rows of cells lie along x and are numbered j + n_y k. A bar is 8 by 8 of them, in 2D 8; at the
 * upper ends of the grid it may be fewer. Bars are numbered as rows are, and follow one another
 * along a curve. */
#define UN_BAR 8
typedef struct un_curve {
    int32_t rows[2], bars[2]; /* along y, along z */
    int32_t count, shift;     /* of bars; log2 of the rows in one */
    int32_t *place, *bar;     /* by bar: its place along the curve; by place: the bar */
} un_curve;
un_status un_curve_init(un_curve *curve, un_context *ctx, int32_t rows_y, int32_t rows_z);
void un_curve_free(un_context *ctx, un_curve *curve);
static inline int32_t un_bar_of(const un_curve *c, int32_t j, int32_t k)
{
    return j / UN_BAR + c->bars[0] * (k / UN_BAR);
}
/* Steps go through all rows, bar by bar along the curve. Bars with fewer rows have steps without a
 * row. */
static inline int64_t un_curve_steps(const un_curve *c)
{
    return (int64_t)c->count << c->shift;
}
static inline int64_t un_curve_step(const un_curve *c, int32_t j, int32_t k)
{
    return ((int64_t)c->place[un_bar_of(c, j, k)] << c->shift) + j % UN_BAR + UN_BAR * (k % UN_BAR);
}
/* The row of a step; false: there is none. */
static inline bool un_curve_row(const un_curve *c, int64_t step, int32_t *j, int32_t *k)
{
    int32_t bar = c->bar[step >> c->shift], in = (int32_t)(step & ((1 << c->shift) - 1));
    *j = bar % c->bars[0] * UN_BAR + in % UN_BAR;
    *k = bar / c->bars[0] * UN_BAR + in / UN_BAR;
    return *j < c->rows[0] && *k < c->rows[1];
}

/* Parts of the curve for so many ranks, of about the same work: first[r] is the place where that of
 * rank r begins, with one more at the end. work: by bar. */
un_status un_curve_cut(const un_curve *curve, un_context *ctx, const double *work, int32_t ranks,
                       int32_t *first);

/* Bars shared out: each rank has a stretch of the curve. */
typedef struct un_bars_way un_bars_way;
#define UN_BARS_FAR 255
#define UN_BARS_WAYS 16
typedef struct un_bars {
    un_context *ctx;
    un_curve curve;
    int32_t row_cells;
    int32_t *first; /* by rank: the place of its first bar; one more at the end */
    int32_t *next;  /* the same, while they are cut again */
    int32_t *owner; /* by bar: its rank */
    uint8_t *far;   /* by row: rows to the nearest own one, the larger of those along y and
                     * z; UN_BARS_FAR: as many or more */
    int32_t low[2],
        high[2]; /* own rows lie in this box along y and z; low = high: there are none */
    un_bars_way *way[UN_BARS_WAYS]; /* by width of a halo: what goes to whom */
    uint8_t *stamp;
    double *sums; /* by bar: room for UN_BARS_WIDTH each */
    size_t *out_bytes, *in_bytes;
    un_mail *out_mail, *in_mail; /* room for one to or from each rank */
    char *out, *in, *packed;
    size_t out_room, in_room, packed_room;
    size_t bytes; /* sent to others so far */
} un_bars;
/* work: by bar. Bars are not divided; ranks may get none. */
un_status un_bars_create(un_context *ctx, int32_t rows_y, int32_t rows_z, int32_t row_cells,
                         const double *work, un_bars **bars);
void un_bars_destroy(un_bars *bars); /* NULL is fine */
/* Cuts them again, if the largest part's work becomes less by the share `least` at least. All ranks
 * have the same work. Fields follow the rows to their new ranks; farther than a bar from a rank's
 * own rows, they are zero afterwards. */
un_status un_bars_recut(un_bars *bars, const double *work, double least, const un_layered *fields,
                        int32_t count, bool *changed);
/* After `first` has been set. */
void un_bars_settle(un_bars *bars);
/* Gives back the pages of a field's rows farther than `wide` from this rank's: what they held is
 * lost. */
void un_bars_forget(const un_bars *bars, const un_layered *field, int32_t wide);
static inline bool un_bars_owns(const un_bars *b, int32_t bar)
{
    return b->owner[bar] == un_rank(b->ctx);
}
/* Copies of the rows within `width` of own ones, along y, z and both, from their ranks; of as many
 * as there are: all rows, to ranks without rows too. */
un_status un_bars_share(un_bars *bars, const un_layered *fields, int32_t count, int32_t width);
/* The same for elements that have just got a mark. Fields come in groups of `group`, the first of
 * which holds the marks, a byte each; what has another mark stays as it is. */
un_status un_bars_share_marked(un_bars *bars, const un_layered *fields, int32_t count,
                               int32_t group, uint8_t mark, int32_t width);
/* All rows to rank 0. */
un_status un_bars_collect(un_bars *bars, const un_layered *fields, int32_t count);
/* To each rank the elements that it wants. A rank that gets no memory for it fails alone. */
un_status un_bars_windows(un_bars *bars, const void *array, size_t size, un_part wanted, void *out);

/* Elements that a rank computes, in runs that follow one another in arrays, ascending:
 *
 *     for (un_part run; un_runs_next(&runs, &run);) ...
 *
 * Where one process has all, one run. */
typedef struct un_runs {
    const un_bars *bars; /* NULL: all */
    int64_t total;
    int64_t each; /* elements of a row */
    int32_t wide, low[2], high[2];
    int64_t at;
} un_runs;
/* Own rows and those within `wide` of them, below UN_BARS_FAR; each: elements of a row. */
un_runs un_bars_runs(const un_bars *bars, int64_t each, int32_t wide);
bool un_runs_next(un_runs *runs, un_part *run);
int64_t un_runs_count(un_runs runs); /* of elements */
/* As un_parallel_for. */
void un_parallel_runs(un_context *ctx, un_runs runs, int64_t grain, un_parallel_body *body,
                      void *arg);
/* The largest value that is not negative, of this rank's elements. */
double un_runs_max(un_context *ctx, un_runs runs, un_parallel_value *value, void *arg);
/* Elements of arrays of full length; to and from one that has them alone, in their order. */
void un_runs_copy(void *to, const void *from, size_t size, un_runs runs);
void un_runs_pack(void *to, const void *from, size_t size, un_runs runs);
void un_runs_unpack(void *to, const void *from, size_t size, un_runs runs);
/* Sums by bars, then over the bars in the order of their numbers: the bits are the same for any
 * number of ranks and threads. values adds to the sums what a bar holds, always in one order. bars
 * NULL: one process has all. */
#define UN_BARS_WIDTH 16
typedef void un_bar_values(void *arg, int32_t bar, double *sums);
void un_bars_sum(un_context *ctx, const un_bars *bars, int32_t bar_count, int32_t width,
                 un_bar_values *values, void *arg, double *sums);
/* The same over all rows, or over `each` elements of each, which values adds one by one, in order.
 */
void un_bars_sums(un_context *ctx, const un_bars *bars, const int32_t rows[2], int64_t each,
                  int32_t width, un_parallel_values *values, void *arg, double *sums);

/* ---- exchange (exchange.c) ---- */

/* Who sends which elements to whom; then any arrays can be sent that way, several at once. What
 * arrives is in the order of ranks, and of each rank in the order in which it was listed. */
typedef struct un_exchange un_exchange;

/* Halo: this rank holds the elements of `range` and wants copies of others, `wanted`: global
 * indices, ascending. They arrive in that order. */
un_status un_exchange_create_halo(un_context *ctx, un_range range, const int64_t *wanted,
                                  int64_t wanted_count, un_exchange **exchange);
/* Migration: element i goes to rank to[i], -1: to none. An element that stays arrives too, in its
 * turn, so elements that were in order everywhere arrive in order. */
un_status un_exchange_create_moves(un_context *ctx, const int32_t *to, int64_t count,
                                   un_exchange **exchange);
/* Copies: element index[k] goes to rank to[k]; one element may go to several. */
un_status un_exchange_create_copies(un_context *ctx, const int32_t *index, const int32_t *to,
                                    int64_t count, un_exchange **exchange);
/* All elements of all ranks to rank 0. */
un_status un_exchange_create_gather(un_context *ctx, int64_t count, un_exchange **exchange);
void un_exchange_destroy(un_exchange *exchange);        /* NULL is fine */
int64_t un_exchange_count(const un_exchange *exchange); /* of elements that arrive here */

typedef struct un_field {
    const char *name; /* the same on all ranks: a different order of calls is found out */
    const void *from; /* elements of this rank */
    void *to;         /* room for those that arrive; no part of `from` that is sent */
    size_t size;      /* bytes of an element */
} un_field;
#define UN_FIELDS_MAX 32
un_status un_exchange_run(un_exchange *exchange, const un_field *fields, int32_t field_count);
/* Room for elements of so many bytes, in all of a run's arrays: then it waits for nobody. All ranks
 * reserve, and agree that they could. */
un_status un_exchange_reserve(un_exchange *exchange, size_t element);
/* Migration of one array, in a call that waits for all and no more: memory that a rank does not get
 * ends all. *in is allocated. */
un_status un_exchange_once(un_context *ctx, const void *from, const int32_t *to, int64_t count,
                           size_t size, void **in, int64_t *in_count);
/* The same, but a rank that gets no memory fails it on all. */
un_status un_exchange_send(un_context *ctx, const char *name, const void *from, const int32_t *to,
                           int64_t count, size_t size, void **in, int64_t *in_count);
/* Elements that go from rank to rank until nobody has any left: in each round, element i goes to
 * rank to[i], -1: to none. One call that waits for all, in which a failure that one rank had before
 * (`status`) becomes one of all. A rank that has no memory for what arrives gets nothing, and fails
 * on all in the next round; who makes no other asks un_exchange_late. `to` must not name a rank
 * that is not there. */
typedef struct un_round {
    const void *from;
    const int32_t *to;
    int64_t count;
    size_t size;      /* bytes of an element */
    bool any;         /* whether this rank has something to do; then, whether any has */
    void *in;         /* what has arrived, until the next round */
    int64_t in_count; /* of these */
    int64_t all;      /* that ranks have sent; after the last round 0 */
} un_round;
un_status un_exchange_create_rounds(un_context *ctx, un_exchange **exchange);
un_status un_exchange_round(un_exchange *exchange, un_status status, un_round *round);
un_status un_exchange_late(const un_exchange *exchange);
/* Answers: element k goes to rank to[k], and one comes from each of the ranks in `from_rank`, in
 * this order, which ascends. *in is allocated. */
un_status un_exchange_reply(un_context *ctx, const void *from, const int32_t *to, int64_t count,
                            size_t size, const int32_t *from_rank, int64_t from_count, void **in);
/* Bytes that this rank has sent to others through it. */
size_t un_exchange_bytes(const un_exchange *exchange);

/* ---- files (files.c) ---- */

/* A file that all ranks write, each bytes that it has. It appears under its name when all have
 * written and synced it. The first failure to write is kept, and sync and commit tell it to all. A
 * rank that gets no memory fails alone, which ends all. */
typedef struct un_ranks_file un_ranks_file;
un_status un_ranks_file_create(un_context *ctx, const char *path, un_ranks_file **file);
/* On rank 0: for its beginning, not more than a million bytes of it; NULL elsewhere. */
un_file *un_ranks_file_first(un_ranks_file *file);
/* This rank's bytes, to their place. */
un_status un_ranks_file_write(un_ranks_file *file, uint64_t offset, const void *bytes,
                              size_t count);
/* This rank's bytes, after those of the ranks before and of earlier calls. *offset: their place.
 * *more: what rank 0 said. */
un_status un_ranks_file_append(un_ranks_file *file, const void *bytes, size_t count, bool *more,
                               uint64_t *offset);
/* What all ranks wrote can then be read under a temporary name. */
un_status un_ranks_file_sync(un_ranks_file *file, const char **aside);
un_status un_ranks_file_commit(un_ranks_file *file); /* frees it in any case */
void un_ranks_file_discard(un_ranks_file *file);     /* by all; NULL is fine */

#endif
