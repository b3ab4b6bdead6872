/* The checkpoint's bytes: what goes in comes out, and damage is always seen. */
#include "state/bytes.h"

static const int32_t widths[] = {1, 2, 4, 8};

/* Arrays of every kind: noise, runs, numbers as they occur; shorter and longer than a chunk. */
static void fill(un_state *state, int64_t count)
{
    char name[UN_STATE_NAME];
    un_state_init(state, state->ctx);
    for (int w = 0; w < 4; w++)
        for (int kind = 0; kind < 3; kind++) {
            void *data;
            snprintf(name, sizeof name, "w%d.%d", widths[w], kind);
            check_ok(state->ctx, un_state_add_own(state, name, count, widths[w], &data));
            uint8_t *byte = data;
            for (int64_t i = 0; i < count * widths[w]; i++)
                byte[i] = (uint8_t)(kind == 0   ? (int64_t)un_hash64((uint64_t)i)
                                    : kind == 1 ? i / 5000 * 17
                                                : 42);
        }
    void *data;
    check_ok(state->ctx, un_state_add_own(state, "positions", count, 8, &data));
    for (int64_t i = 0; i < count; i++)
        ((double *)data)[i] = 1e-4 * (double)i + 1e-5 * un_random((uint64_t)i, 1);
    check_ok(state->ctx, un_state_add_number(state, "time", 0.1 + 0.2));
    check_ok(state->ctx, un_state_add_integer(state, "step", -7));
    check_ok(state->ctx, un_state_add(state, "none", NULL, 0, 8));
}

static void same(const un_state *a, const un_state *b)
{
    assert_int_equal(a->count, b->count);
    for (int32_t i = 0; i < a->count; i++) {
        const un_section *s = &a->sections[i], *t = &b->sections[i];
        assert_string_equal(s->name, t->name);
        assert_int_equal(s->count, t->count);
        assert_int_equal(s->width, t->width);
        if (s->count)
            assert_memory_equal(un_section_data(s), un_section_data(t),
                                (size_t)(s->count * s->width));
    }
}

static void copies_take_what_is_picked(void **arg)
{
    (void)arg;
    un_context *ctx = check_context_threads(2);
    un_state in, copy;
    const double x[5] = {0, 1, 2, 3, 4};
    const float v[5] = {0, 10, 20, 30, 40};
    const uint8_t flag[5] = {5, 6, 7, 8, 9};
    const int32_t whole[5] = {1, 2, 3, 4, 5}, pick[3] = {1, 2, 4};
    un_state_init(&in, ctx);
    un_state_init(&copy, ctx);
    check_ok(ctx, un_state_add(&in, "whole", whole, 5, 4));
    check_ok(ctx, un_state_add(&in, "x", x, 5, 8));
    check_ok(ctx, un_state_add(&in, "v", v, 5, 4));
    check_ok(ctx, un_state_add(&in, "flag", flag, 5, 1));
    un_state_pick(&in, 1, pick, 3);
    check_ok(ctx, un_state_copy(&copy, &in));
    double got_x[3];
    float got_v[3];
    uint8_t got_flag[3];
    int32_t got[5];
    check_ok(ctx, un_state_take(&copy, "whole", got, 5, 4));
    check_ok(ctx, un_state_take(&copy, "x", got_x, 3, 8));
    check_ok(ctx, un_state_take(&copy, "v", got_v, 3, 4));
    check_ok(ctx, un_state_take(&copy, "flag", got_flag, 3, 1));
    assert_memory_equal(got, whole, sizeof whole);
    for (int k = 0; k < 3; k++)
        assert_true(got_x[k] == x[pick[k]] && got_v[k] == v[pick[k]] &&
                    got_flag[k] == flag[pick[k]]);
    un_state_free(&in);
    un_state_free(&copy);
    check_context_end(ctx);
}

static void what_goes_in_comes_out(void **arg)
{
    (void)arg;
    static const int64_t counts[] = {0, 1, 2, 16383, 16384, 16385, 100001};
    bytes first = {0};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int32_t threads = 1; threads <= 3; threads++) {
            un_context *ctx = check_context_threads(threads);
            un_state in = {.ctx = ctx}, out, copy;
            bytes b = {0};
            fill(&in, counts[c]);
            check_ok(ctx, un_state_encode(&in, bytes_sink, &b));
            un_state_init(&out, ctx);
            un_state_init(&copy, ctx);
            check_ok(ctx, bytes_decode(&out, &b));
            same(&in, &out);
            check_ok(ctx, un_state_copy(&copy, &out));
            check_ok(ctx, un_state_copy(&copy, &in)); /* over what was there */
            same(&in, &copy);
            bytes source = {b.at, b.count, 0, 0};
            check_ok(ctx, un_state_verify(ctx, bytes_source, &source, b.count, "test"));
            double time;
            int64_t step;
            check_ok(ctx, un_state_number(&out, "time", &time));
            check_ok(ctx, un_state_integer(&out, "step", -7, -7, &step));
            assert_true(time == 0.1 + 0.2 && step == -7);
            assert_int_equal(un_state_integer(&out, "step", 0, 9, &step), UN_ERROR_FILE);
            assert_int_equal(un_state_number(&out, "w8.0", &time) == UN_OK, counts[c] == 1);
            assert_int_equal(un_state_number(&out, "nosuch", &time), UN_ERROR_FILE);
            assert_int_equal(un_state_take(&out, "time", &time, 1, 4), UN_ERROR_FILE);
            if (threads == 1) {
                free(first.at);
                first = b;
            } else { /* the same bytes, whatever the threads */
                assert_int_equal(first.count, b.count);
                assert_memory_equal(first.at, b.at, b.count);
                free(b.at);
            }
            un_state_free(&in);
            un_state_free(&out);
            un_state_free(&copy);
            check_context_end(ctx);
        }
    free(first.at);
}

static void packing_pays(void **arg)
{
    (void)arg;
    un_context *ctx = check_context();
    un_state in = {.ctx = ctx};
    bytes b = {0};
    fill(&in, 100000);
    check_ok(ctx, un_state_encode(&in, bytes_sink, &b));
    size_t raw = 0;
    for (int32_t i = 0; i < in.count; i++)
        raw += (size_t)(in.sections[i].count * in.sections[i].width);
    /* noise stays, a third of it all; the rest nearly vanishes but for positions' last digits */
    check_below((double)b.count, 0.45 * (double)raw);
    un_state_free(&in);
    free(b.at);
    check_context_end(ctx);
}

/* Any byte changed, any byte missing, anything added. */
static void damage_is_seen(void **arg)
{
    (void)arg;
    un_context *ctx = check_context();
    un_state in = {.ctx = ctx};
    bytes b = {0};
    fill(&in, 300);
    check_ok(ctx, un_state_encode(&in, bytes_sink, &b));
    un_state_free(&in);
    un_state out;
    un_state_init(&out, ctx);
    for (size_t i = 0; i < b.count; i++) {
        uint8_t kept = b.at[i];
        b.at[i] ^= (uint8_t)(1u << i % 8);
        if (bytes_decode(&out, &b) != UN_ERROR_FILE) fail_msg("byte %zu changed: not seen", i);
        un_state_clear(&out);
        b.at[i] = kept;
        bytes cut = {b.at, i, 0, 0};
        if (bytes_decode(&out, &cut) != UN_ERROR_FILE) fail_msg("cut at %zu: not seen", i);
        un_state_clear(&out);
        /* the length is what the disk says, the bytes are not there */
        bytes shorter = {b.at, i, 0, 0};
        if (un_state_decode(&out, bytes_source, &shorter, b.count, "test") != UN_ERROR_FILE)
            fail_msg("unreadable from %zu: not seen", i);
        un_state_clear(&out);
    }
    bytes longer = {calloc(b.count + 5, 1), b.count + 5, 0, 0};
    memcpy(longer.at, b.at, b.count);
    assert_int_equal(bytes_decode(&out, &longer), UN_ERROR_FILE);
    un_state_clear(&out);
    check_ok(ctx, bytes_decode(&out, &b));
    un_state_free(&out);
    free(longer.at);
    free(b.at);
    check_context_end(ctx);
}

static un_status there_and_back(un_context *ctx, void *arg)
{
    un_state in, out;
    bytes b = {0};
    (void)arg;
    un_state_init(&in, ctx);
    un_state_init(&out, ctx);
    static const double data[100];
    un_status status = un_state_add(&in, "data", data, 100, 8);
    if (status == UN_OK) status = un_state_add_number(&in, "time", 1);
    if (status == UN_OK) status = un_state_encode(&in, bytes_sink, &b);
    if (status == UN_OK) status = bytes_decode(&out, &b);
    un_state_clear(&out);
    if (status == UN_OK) status = un_state_copy(&out, &in);
    if (status == UN_OK) {
        bytes source = {b.at, b.count, 0, 0};
        status = un_state_verify(ctx, bytes_source, &source, b.count, "test");
    }
    un_state_free(&in);
    un_state_free(&out);
    free(b.at);
    return status;
}

static void every_allocation_may_fail(void **arg)
{
    (void)arg;
    check_allocation_failures(there_and_back, NULL, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(copies_take_what_is_picked),
        cmocka_unit_test(packing_pays),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
