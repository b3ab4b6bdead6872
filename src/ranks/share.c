/* Pieces of work, shared out one by one.
 *
 * Rank 0 hands them out and works too. It answers only between two pieces of its own, so a rank
 * asks for its next piece when it begins one: while pieces take about equally long, the answer is
 * there before it is needed. A piece that fails ends the call on its rank at once, and the program
 * is expected to end the others: they may be far from their next message. */
#include "ranks/link.h"

enum { NOTE_ASK, NOTE_LEAVE, NOTE_PIECE };
enum { NO_MORE = -1, STOPPED = -2 };

typedef struct desk {
    const un_share_def *def;
    int32_t next, done, others; /* others: ranks that have not left */
    bool stopped;
} desk;

static void report(desk *d, int32_t more)
{
    const un_share_def *def = d->def;
    d->done += more;
    if (more > 0 && def->progress && !def->progress(def->user, d->done, def->count))
        d->stopped = true;
}

static int32_t take(desk *d)
{
    if (d->stopped) return STOPPED;
    return d->next < d->def->count ? d->next++ : NO_MORE;
}

/* A note's number is that of the pieces its sender has finished since its last one. */
static bool answer(desk *d, bool wait)
{
    un_note note;
    int32_t from;
    if (!un_link_receive(&from, &note, wait)) return false;
    report(d, note.number);
    if (note.what == NOTE_LEAVE)
        d->others--;
    else
        un_link_send(from, (un_note){NOTE_PIECE, take(d)});
    return true;
}

static un_status hand_out(desk *d)
{
    for (;;) {
        while (d->others > 0 && answer(d, false)) continue;
        int32_t piece = take(d);
        if (piece < 0) break;
        UN_TRY(d->def->piece(d->def->arg, piece));
        report(d, 1);
    }
    while (d->others > 0) answer(d, true);
    return d->stopped && d->done < d->def->count ? UN_INTERRUPTED : UN_OK;
}

static un_status receive_pieces(const un_share_def *def)
{
    un_note note;
    int32_t from, finished = 0;
    un_link_send(0, (un_note){NOTE_ASK, 0});
    un_link_receive(&from, &note, true);
    while (note.number >= 0) {
        int32_t piece = note.number;
        un_link_send(0, (un_note){NOTE_ASK, finished});
        UN_TRY(def->piece(def->arg, piece));
        finished = 1;
        un_link_receive(&from, &note, true);
    }
    un_link_send(0, (un_note){NOTE_LEAVE, finished});
    return note.number == STOPPED ? UN_INTERRUPTED : UN_OK;
}

un_status un_share(un_context *ctx, const un_share_def *def)
{
    un_ranks *ranks = un_context_ranks(ctx);
    desk d = {.def = def, .others = un_ranks_count(ranks) - 1};
    un_fail(ctx, UN_OK, "%s", "");
    if (d.others == 0) return hand_out(&d);
    ranks->apart = true;
    ranks->agreed = false;
    un_status status = ranks->rank == 0 ? hand_out(&d) : receive_pieces(def);
    if (status != UN_OK && status != UN_INTERRUPTED) return status; /* and stays apart */
    ranks->apart = false;
    /* the others may have had all they asked for when it was stopped */
    if (ranks->rank > 0) status = UN_OK;
    return un_ranks_agree(ctx, status);
}
