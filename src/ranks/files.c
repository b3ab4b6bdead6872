/* One file that all ranks write.
 *
 * Who has bytes need not be who writes them: a file is made of blocks, which belong to the ranks in
 * turn, and bytes go to the ranks of their blocks. So no two machines write to one page, which
 * network file systems get wrong (the Linux client of NFS writes whole pages, with zeros where
 * others wrote), and few to one stripe of a parallel one. Each rank syncs what it wrote, since only
 * its machine may have it; then all agree, and rank 0 renames the file. */
#include "ranks/link.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BLOCK ((uint64_t)1 << 20) /* bytes: a multiple of pages, and the usual stripe */

/* How long a rank looks for the file that rank 0 has made: some file systems tell other machines of
 * it a little later. */
#define LOOKS 20
#define LOOK_NANOSECONDS 100000000

typedef struct span {
    uint64_t begin, end; /* bytes of the file */
} span;

struct un_ranks_file {
    un_context *ctx;
    un_file *file;
    char *path;    /* of the temporary file */
    uint64_t end;  /* of what was appended */
    span *spans;   /* by rank: what it has */
    size_t *sizes; /* by rank: bytes for it */
    un_mail *out, *in;
    char *packed, *arrived;
    size_t packed_room, arrived_room;
};

static void file_free(un_ranks_file *f)
{
    un_context *ctx = f->ctx;
    un_free(ctx, f->path);
    un_free(ctx, f->spans);
    un_free(ctx, f->sizes);
    un_free(ctx, f->out);
    un_free(ctx, f->in);
    un_free(ctx, f->packed);
    un_free(ctx, f->arrived);
    un_free(ctx, f);
}

static un_status make(un_context *ctx, const char *path, un_ranks_file **out)
{
    size_t ranks = (size_t)un_rank_count(ctx), length = strlen(path) + UN_FILE_ENDING;
    un_ranks_file *f = un_alloc_zero(ctx, 1, sizeof *f);
    if (!f) return UN_ERROR_MEMORY;
    f->ctx = ctx;
    f->path = un_alloc(ctx, length, 1);
    f->spans = un_alloc(ctx, ranks, sizeof *f->spans);
    f->sizes = un_alloc(ctx, ranks, sizeof *f->sizes);
    f->out = un_alloc(ctx, ranks, sizeof *f->out);
    f->in = un_alloc(ctx, ranks, sizeof *f->in);
    if (!f->path || !f->spans || !f->sizes || !f->out || !f->in) {
        file_free(f);
        return UN_ERROR_MEMORY;
    }
    *out = f;
    return UN_OK;
}

/* Opens the file that rank 0 has made. */
static un_status join(un_ranks_file *f, const char *path, const char *ending)
{
    const struct timespec moment = {0, LOOK_NANOSECONDS};
    char host[256] = {0};
    for (int look = 0; access(f->path, F_OK) != 0; look++) {
        if (look < LOOKS) {
            nanosleep(&moment, NULL);
            continue;
        }
        gethostname(host, sizeof host - 1);
        return un_fail(f->ctx, UN_ERROR_FILE,
                       "rank %d, on %s, does not find the file that rank 0 has begun to write "
                       "there: %s; all machines need the run's directory under the same path, on "
                       "a disk that they share",
                       un_rank(f->ctx), host, path);
    }
    return un_file_join(f->ctx, path, ending, &f->file);
}

un_status un_ranks_file_create(un_context *ctx, const char *path, un_ranks_file **file)
{
    char ending[UN_FILE_ENDING] = "";
    un_ranks_file *f = NULL;
    bool first = un_rank(ctx) == 0;
    *file = NULL;
    un_status status = make(ctx, path, &f);
    if (status == UN_OK && first) status = un_file_create_shared(ctx, path, ending, &f->file);
    status = un_ranks_agree(ctx, status);
    un_ranks_tell(un_context_ranks(ctx), ending, sizeof ending);
    if (status == UN_OK) {
        snprintf(f->path, strlen(path) + UN_FILE_ENDING, "%s%s", path, ending);
        status = un_ranks_agree(ctx, first ? UN_OK : join(f, path, ending));
    }
    if (status == UN_OK)
        *file = f;
    else
        un_ranks_file_discard(f);
    return status;
}

un_file *un_ranks_file_first(un_ranks_file *f)
{
    return un_rank(f->ctx) == 0 ? f->file : NULL;
}

/* ---- bytes to the ranks of their blocks ---- */

/* The next piece of a span that lies in one block; false: there is none. */
static bool next_piece(span *piece, span all, uint64_t from)
{
    if (from >= all.end) return false;
    uint64_t end = (from / BLOCK + 1) * BLOCK;
    *piece = (span){from, end < all.end ? end : all.end};
    return true;
}

/* The same of the pieces that belong to one rank; from: where the last one ended. */
static bool next_piece_of(span *piece, span all, uint64_t from, uint64_t rank, uint64_t ranks)
{
    uint64_t block = from / BLOCK, ahead = (rank + ranks - block % ranks) % ranks;
    return next_piece(piece, all, ahead == 0 ? from : (block + ahead) * BLOCK);
}

/* What this rank has of the blocks of others, in the order of ranks. */
static un_status pack(un_ranks_file *f, const char *bytes, int32_t *count)
{
    uint64_t ranks = (uint64_t)un_rank_count(f->ctx), rank = (uint64_t)un_rank(f->ctx);
    span mine = f->spans[rank], piece;
    size_t total = 0;
    memset(f->sizes, 0, ranks * sizeof *f->sizes);
    for (uint64_t at = mine.begin; next_piece(&piece, mine, at); at = piece.end) {
        uint64_t r = piece.begin / BLOCK % ranks;
        if (r != rank) f->sizes[r] += piece.end - piece.begin;
        if (r != rank) total += piece.end - piece.begin;
    }
    UN_TRY(un_array_need(f->ctx, (void **)&f->packed, &f->packed_room, total + 1, 1));
    char *to = f->packed;
    *count = 0;
    for (uint64_t r = 0; r < ranks; r++) {
        if (f->sizes[r] == 0) continue;
        f->out[(*count)++] = (un_mail){(int32_t)r, f->sizes[r], to};
        for (uint64_t at = mine.begin; next_piece_of(&piece, mine, at, r, ranks); at = piece.end) {
            memcpy(to, bytes + (piece.begin - mine.begin), piece.end - piece.begin);
            to += piece.end - piece.begin;
        }
    }
    return UN_OK;
}

/* Room for what others have of this rank's blocks. */
static un_status expect(un_ranks_file *f, int32_t *count)
{
    uint64_t ranks = (uint64_t)un_rank_count(f->ctx), rank = (uint64_t)un_rank(f->ctx);
    span piece;
    size_t total = 0;
    *count = 0;
    for (uint64_t r = 0; r < ranks; r++) {
        size_t bytes = 0;
        for (uint64_t at = f->spans[r].begin;
             r != rank && next_piece_of(&piece, f->spans[r], at, rank, ranks); at = piece.end)
            bytes += piece.end - piece.begin;
        if (bytes > 0) f->in[(*count)++] = (un_mail){(int32_t)r, bytes, NULL};
        total += bytes;
    }
    UN_TRY(un_array_need(f->ctx, (void **)&f->arrived, &f->arrived_room, total + 1, 1));
    total = 0;
    for (int32_t k = 0; k < *count; total += f->in[k++].bytes) f->in[k].data = f->arrived + total;
    return UN_OK;
}

/* Writes the pieces of a rank's span that belong to this one; whole: the span's bytes, of which
 * these pieces are some. Else bytes has these pieces only. */
static void write_pieces(un_ranks_file *f, span all, const char *bytes, bool whole)
{
    uint64_t ranks = (uint64_t)un_rank_count(f->ctx), rank = (uint64_t)un_rank(f->ctx);
    span piece;
    for (uint64_t at = all.begin; next_piece_of(&piece, all, at, rank, ranks); at = piece.end) {
        size_t count = piece.end - piece.begin;
        un_file_write_at(f->file, piece.begin, whole ? bytes + (piece.begin - all.begin) : bytes,
                         count);
        if (!whole) bytes += count;
        un_context_ranks(f->ctx)->sent.written += (double)count;
    }
}

/* All spans are known. */
static un_status put(un_ranks_file *f, const void *bytes)
{
    un_ranks *ranks = un_context_ranks(f->ctx);
    int32_t out_count, in_count;
    UN_TRY(pack(f, bytes, &out_count));
    UN_TRY(expect(f, &in_count));
    un_link_trade(f->in, in_count, f->out, out_count);
    ranks->sent.messages += out_count;
    for (int32_t k = 0; k < out_count; k++) ranks->sent.filed += (double)f->out[k].bytes;
    write_pieces(f, f->spans[ranks->rank], bytes, true);
    for (int32_t k = 0; k < in_count; k++)
        write_pieces(f, f->spans[f->in[k].rank], f->in[k].data, false);
    return UN_OK;
}

un_status un_ranks_file_write(un_ranks_file *f, uint64_t offset, const void *bytes, size_t count)
{
    span mine = {offset, offset + count};
    if (un_rank_count(f->ctx) == 1) {
        un_file_write_at(f->file, offset, bytes, count);
        return UN_OK;
    }
    un_ranks_gather(f->ctx, f->spans, &mine, sizeof mine);
    return put(f, bytes);
}

un_status un_ranks_file_append(un_ranks_file *f, const void *bytes, size_t count, bool *more,
                               uint64_t *offset)
{
    /* more is told where the span would begin */
    span mine = {*more, count};
    int32_t ranks = un_rank_count(f->ctx);
    if (ranks == 1) {
        *offset = f->end;
        f->end += count;
        un_file_write_at(f->file, *offset, bytes, count);
        return UN_OK;
    }
    un_ranks_gather(f->ctx, f->spans, &mine, sizeof mine);
    *more = f->spans[0].begin;
    for (int32_t r = 0; r < ranks; r++) {
        uint64_t begin = f->end;
        f->end += f->spans[r].end;
        f->spans[r] = (span){begin, f->end};
    }
    *offset = f->spans[un_rank(f->ctx)].begin;
    return put(f, bytes);
}

/* ---- the end ---- */

un_status un_ranks_file_sync(un_ranks_file *f, const char **aside)
{
    *aside = f->path;
    return un_ranks_agree(f->ctx, un_file_sync(f->file));
}

un_status un_ranks_file_commit(un_ranks_file *f)
{
    un_context *ctx = f->ctx;
    bool first = un_rank(ctx) == 0;
    un_status status = first ? un_file_sync(f->file) : un_file_leave(f->file);
    if (!first) f->file = NULL;
    status = un_ranks_agree(ctx, status);
    if (status == UN_OK) {
        if (first) status = un_file_commit(f->file);
        f->file = NULL;
        status = un_ranks_agree(ctx, status);
    }
    un_ranks_file_discard(f);
    return status;
}

void un_ranks_file_discard(un_ranks_file *f)
{
    if (!f) return;
    un_file_discard(f->file);
    file_free(f);
}
