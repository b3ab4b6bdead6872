/* A checkpoint in memory. */
#ifndef UN_TEST_STATE_BYTES_H
#define UN_TEST_STATE_BYTES_H

#include "check.h"

#include "state/state.h"

typedef struct bytes {
    uint8_t *at;
    size_t count, room, read;
} bytes;

static inline void bytes_sink(void *arg, const void *from, size_t count)
{
    bytes *b = arg;
    if (b->count + count > b->room) {
        b->room = 2 * (b->count + count);
        b->at = realloc(b->at, b->room);
        assert_non_null(b->at);
    }
    memcpy(b->at + b->count, from, count);
    b->count += count;
}

static inline bool bytes_source(void *arg, void *to, size_t count)
{
    bytes *b = arg;
    if (count > b->count - b->read) return false;
    memcpy(to, b->at + b->read, count);
    b->read += count;
    return true;
}

static inline un_status bytes_decode(un_state *state, const bytes *b)
{
    bytes source = {b->at, b->count, 0, 0};
    return un_state_decode(state, bytes_source, &source, b->count, "test.state");
}

#endif
