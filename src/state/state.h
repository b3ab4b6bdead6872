/* State: what a run needs to go on, as named arrays, and the bytes they become in a checkpoint.
 *
 * A method describes its state by adding arrays, which are not copied; they are read when the state
 * is encoded or copied, before the next step. A state that was decoded owns its arrays. */
#ifndef UN_STATE_H
#define UN_STATE_H

#include "base/base.h"
#include "ranks/ranks.h"

#define UN_STATE_NAME 32 /* with its terminating zero */

typedef struct un_section un_section;
/* Elements [begin, end) of a section that several ranks hold; called by all of them, each for a
 * window of its own. data: valid until the next call. */
typedef un_status un_state_fetch(void *arg, const un_section *section, int64_t begin, int64_t end,
                                 const void **data);

struct un_section {
    char name[UN_STATE_NAME];
    int32_t width; /* bytes of an element: 1, 2, 4 or 8 */
    int64_t count;
    const void *data; /* NULL: value */
    void *own;        /* memory that the section owns, whether data lies there or not */
    size_t own_bytes;
    const int32_t *pick;   /* elements of data that count; NULL: the first `count` */
    uint8_t value[8];      /* of single numbers, which need no memory of their own */
    un_state_fetch *fetch; /* NULL: all of it is in data */
    void *fetch_arg;
};

typedef struct un_state {
    un_context *ctx;
    un_section *sections;
    int32_t count;
    size_t capacity;
} un_state;

void un_state_init(un_state *state, un_context *ctx);
void un_state_free(un_state *state);
/* Removes the sections and keeps their memory for the next copy. */
void un_state_clear(un_state *state);

/* ---- putting in ---- */

/* The array is not copied. Names must be unique. */
un_status un_state_add(un_state *state, const char *name, const void *data, int64_t count,
                       int32_t width);
un_status un_state_add_number(un_state *state, const char *name, double value);
un_status un_state_add_integer(un_state *state, const char *name, int64_t value);
/* Adds a section with memory of its own, for the caller to fill. */
un_status un_state_add_own(un_state *state, const char *name, int64_t count, int32_t width,
                           void **data);
/* Sections from number `first` on are this rank's part of `count` elements, which are fetched when
 * the state is encoded. */
void un_state_fetch_from(un_state *state, int32_t first, int64_t count, un_state_fetch *fetch,
                         void *arg);
/* Of sections from number `first` on, these elements count; the list ascends and is not copied.
 * Only for states that are copied. */
void un_state_pick(un_state *state, int32_t first, const int32_t *index, int64_t count);
/* `to` then owns copies of all arrays; its memory is reused. */
un_status un_state_copy(un_state *to, const un_state *from);
/* Adds the sections of `from`, which keeps its arrays. */
un_status un_state_append(un_state *to, const un_state *from);

/* ---- taking out ---- */

const void *un_section_data(const un_section *section);
/* NULL if there is none. */
const un_section *un_state_find(const un_state *state, const char *name);
/* These fail with a message if there is no such section or it is of another kind. */
un_status un_state_array(const un_state *state, const char *name, int32_t width,
                         const un_section **section);
un_status un_state_take(const un_state *state, const char *name, void *to, int64_t count,
                        int32_t width);
/* Doubles; fails unless all are finite. */
un_status un_state_take_finite(const un_state *state, const char *name, double *to, int64_t count);
un_status un_state_number(const un_state *state, const char *name, double *value);
/* Fails unless the value lies in [least, most]. */
un_status un_state_integer(const un_state *state, const char *name, int64_t least, int64_t most,
                           int64_t *value);

/* ---- as bytes (encode.c, decode.c) ---- */

/* Takes the bytes, in order. A sink records its own failures. */
typedef void un_state_sink(void *arg, const void *bytes, size_t count);
un_status un_state_encode(const un_state *state, un_state_sink *sink, void *arg);

/* The same bytes by all ranks, to a file of theirs. Rank 0 has all sections; others need those that
 * are fetched. *pieces: what came from this rank, to be read back; the caller frees them. */
typedef struct un_state_piece {
    uint64_t offset;
    uint32_t count, crc; /* of bytes */
} un_state_piece;
un_status un_state_encode_ranks(const un_state *state, un_ranks_file *file, un_state_piece **pieces,
                                int32_t *count);
bool un_state_piece_is(const un_state_piece *piece, const void *bytes);

/* Reads exactly `count` bytes; false if there are fewer. */
typedef bool un_state_source(void *arg, void *bytes, size_t count);
/* `size`: total bytes; name: used in messages. The state must be empty. Any bytes are safe: fails
 * with UN_ERROR_FILE if un_state_encode did not write them, and never takes more memory than they
 * could represent. */
un_status un_state_decode(un_state *state, un_state_source *source, void *arg, uint64_t size,
                          const char *name);
/* What to keep of a state while it is read, where a part of it is wanted. */
typedef struct un_sieve {
    void *arg;
    /* Of a section with `count` elements: how many will be kept; UN_SIEVE_ALL. */
    int64_t (*count)(void *arg, const char *name, int64_t count, int32_t width);
    /* Of sections of which not all are kept: elements first, first + 1, ... of it. Moves those that
     * are kept to the front, and returns how many. */
    int64_t (*keep)(void *arg, const char *name, void *elements, int64_t first, int64_t count,
                    int32_t width);
} un_sieve;
#define UN_SIEVE_ALL (-1)
un_status un_state_decode_some(un_state *state, un_state_source *source, void *arg, uint64_t size,
                               const char *name, const un_sieve *sieve);
/* Checks the bytes as un_state_decode does, without keeping the contents. */
un_status un_state_verify(un_context *ctx, un_state_source *source, void *arg, uint64_t size,
                          const char *name);

#endif
