/* Named arrays. */
#include "state/state.h"

void un_state_init(un_state *state, un_context *ctx)
{
    *state = (un_state){.ctx = ctx};
}

void un_state_free(un_state *state)
{
    for (size_t s = 0; s < state->capacity; s++) un_free(state->ctx, state->sections[s].own);
    un_free(state->ctx, state->sections);
    *state = (un_state){.ctx = state->ctx};
}

void un_state_clear(un_state *state)
{
    state->count = 0;
}

/* Adds a section without contents; memory that its slot owned before is reused. */
static un_status new_section(un_state *state, const char *name, int64_t count, int32_t width,
                             un_section **out)
{
    UN_ASSERT(strlen(name) < UN_STATE_NAME && !un_state_find(state, name));
    UN_ASSERT(width == 1 || width == 2 || width == 4 || width == 8);
    size_t old = state->capacity;
    UN_TRY(un_array_reserve(state->ctx, (void **)&state->sections, &state->capacity,
                            (size_t)state->count + 1, sizeof *state->sections));
    if (state->capacity > old)
        memset(state->sections + old, 0, (state->capacity - old) * sizeof *state->sections);
    un_section *s = &state->sections[state->count++];
    memset(s->name, 0, sizeof s->name);
    memcpy(s->name, name, strlen(name));
    s->count = count;
    s->width = width;
    s->data = NULL;
    s->fetch = NULL;
    s->pick = NULL;
    *out = s;
    return UN_OK;
}

un_status un_state_add(un_state *state, const char *name, const void *data, int64_t count,
                       int32_t width)
{
    un_section *s;
    UN_TRY(new_section(state, name, count, width, &s));
    s->data = data;
    return UN_OK;
}

void un_state_fetch_from(un_state *state, int32_t first, int64_t count, un_state_fetch *fetch,
                         void *arg)
{
    for (int32_t i = first; i < state->count; i++) {
        un_section *s = &state->sections[i];
        s->count = count;
        s->fetch = fetch;
        s->fetch_arg = arg;
    }
}

/* The data pointer of a single number stays NULL and section_data finds its value: the list of
 * sections may move. */
un_status un_state_add_number(un_state *state, const char *name, double value)
{
    un_section *s;
    UN_TRY(new_section(state, name, 1, 8, &s));
    memcpy(s->value, &value, 8);
    return UN_OK;
}

un_status un_state_add_integer(un_state *state, const char *name, int64_t value)
{
    un_section *s;
    UN_TRY(new_section(state, name, 1, 8, &s));
    memcpy(s->value, &value, 8);
    return UN_OK;
}

const void *un_section_data(const un_section *s)
{
    return s->data || s->count != 1 ? s->data : s->value;
}

static un_status own(un_state *state, un_section *s)
{
    size_t bytes = (size_t)s->count * (size_t)s->width;
    if (s->own_bytes < bytes || !s->own) {
        size_t room = s->own_bytes ? bytes + bytes / 8 : bytes;
        un_free(state->ctx, s->own);
        s->own_bytes = 0;
        s->own = un_alloc(state->ctx, room + 1, 1);
        if (!s->own) return UN_ERROR_MEMORY;
        s->own_bytes = room;
    }
    s->data = s->own;
    return UN_OK;
}

un_status un_state_add_own(un_state *state, const char *name, int64_t count, int32_t width,
                           void **data)
{
    un_section *s;
    UN_TRY(new_section(state, name, count, width, &s));
    UN_TRY(own(state, s));
    *data = s->own;
    return UN_OK;
}

void un_state_pick(un_state *state, int32_t first, const int32_t *index, int64_t count)
{
    for (int32_t i = first; i < state->count; i++) {
        state->sections[i].pick = index;
        state->sections[i].count = count;
    }
}

typedef struct copy_args {
    uint8_t *to;
    const uint8_t *from;
    const int32_t *pick;
    size_t width;
} copy_args;

/* Elements that follow one another are copied at once, so many at a time. */
#define RUN 32

static void copy_picked(void *arg, int64_t begin, int64_t end)
{
    const copy_args *a = arg;
    uint8_t *to = a->to + (size_t)begin * a->width;
    for (int64_t k = begin; k < end; k++, to += a->width) {
        while (k + RUN <= end && a->pick[k + RUN - 1] - a->pick[k] == RUN - 1) {
            memcpy(to, a->from + (size_t)a->pick[k] * a->width, RUN * a->width);
            to += RUN * a->width;
            k += RUN;
        }
        if (k == end) return;
        const uint8_t *from = a->from + (size_t)a->pick[k] * a->width;
        if (a->width == 8)
            memcpy(to, from, 8);
        else if (a->width == 4)
            memcpy(to, from, 4);
        else
            memcpy(to, from, a->width);
    }
}

un_status un_state_copy(un_state *to, const un_state *from)
{
    un_state_clear(to);
    for (int32_t i = 0; i < from->count; i++) {
        const un_section *s = &from->sections[i];
        void *data;
        UN_ASSERT(!s->fetch);
        un_status status = un_state_add_own(to, s->name, s->count, s->width, &data);
        if (status != UN_OK) {
            un_state_clear(to);
            return status;
        }
        copy_args a = {data, un_section_data(s), s->pick, (size_t)s->width};
        if (s->pick)
            un_parallel_for(to->ctx, s->count, 1 << 17, copy_picked, &a);
        else
            un_parallel_copy(to->ctx, data, a.from, (size_t)(s->count * s->width));
    }
    return UN_OK;
}

un_status un_state_append(un_state *to, const un_state *from)
{
    for (int32_t i = 0; i < from->count; i++) {
        const un_section *s = &from->sections[i];
        UN_TRY(un_state_add(to, s->name, un_section_data(s), s->count, s->width));
        to->sections[to->count - 1].fetch = s->fetch;
        to->sections[to->count - 1].fetch_arg = s->fetch_arg;
    }
    return UN_OK;
}

/* ---- taking out ---- */

const un_section *un_state_find(const un_state *state, const char *name)
{
    for (int32_t i = 0; i < state->count; i++)
        if (strcmp(state->sections[i].name, name) == 0) return &state->sections[i];
    return NULL;
}

static un_status unfit(const un_state *state, const char *name, const char *why)
{
    return un_fail(state->ctx, UN_ERROR_FILE,
                   "the checkpoint %s \"%s\": it belongs to another version or another scene; go "
                   "on with the program that wrote it, or run without --resume",
                   why, name);
}

un_status un_state_array(const un_state *state, const char *name, int32_t width,
                         const un_section **section)
{
    *section = un_state_find(state, name);
    if (!*section) return unfit(state, name, "lacks");
    if ((*section)->width != width) return unfit(state, name, "has another kind of");
    return UN_OK;
}

un_status un_state_take(const un_state *state, const char *name, void *to, int64_t count,
                        int32_t width)
{
    const un_section *s;
    UN_TRY(un_state_array(state, name, width, &s));
    if (s->count != count) return unfit(state, name, "has another number of");
    if (count > 0) memcpy(to, un_section_data(s), (size_t)count * (size_t)width);
    return UN_OK;
}

un_status un_state_take_finite(const un_state *state, const char *name, double *to, int64_t count)
{
    UN_TRY(un_state_take(state, name, to, count, 8));
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(to[i])) return unfit(state, name, "holds what is no number in");
    return UN_OK;
}

un_status un_state_number(const un_state *state, const char *name, double *value)
{
    UN_TRY(un_state_take(state, name, value, 1, 8));
    return isfinite(*value) ? UN_OK : unfit(state, name, "has no number for");
}

un_status un_state_integer(const un_state *state, const char *name, int64_t least, int64_t most,
                           int64_t *value)
{
    UN_TRY(un_state_take(state, name, value, 1, 8));
    return *value >= least && *value <= most ? UN_OK : unfit(state, name, "has no use for");
}
