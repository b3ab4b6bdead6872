/* Files that all ranks write are those of one rank, each rank writes about the same, and what goes
 * wrong on one rank fails all and leaves nothing. */
#include "output/scratch.h"
#include "room.h"

#include "group.h"

#define MEBI ((uint64_t)1 << 20)

/* ---- a folder of all ranks ---- */

static int begin(void **state)
{
    if (un_ranks_rank(group) == 0 && scratch_begin(state) != 0) return -1;
    un_ranks_tell(group, scratch, sizeof scratch);
    return 0;
}

static int end(void **state)
{
    un_context *ctx = group_context();
    un_ranks_max(ctx, 0); /* all are done */
    un_context_destroy(ctx);
    return un_ranks_rank(group) == 0 ? scratch_end(state) : 0;
}

static uint8_t byte_at(uint64_t at)
{
    return (uint8_t)un_hash64(at / 3);
}

static void check_bytes(un_context *ctx, const char *path, const uint8_t *wanted, size_t count)
{
    char *found;
    size_t size;
    if (un_ranks_rank(group) != 0) return;
    check_ok(ctx, un_file_read(ctx, path, &found, &size));
    assert_int_equal(size, count);
    assert_memory_equal(found, wanted, count);
    un_free(ctx, found);
}

/* ---- bytes ---- */

/* In several calls, each a part of every rank's range; in the last one only rank 0 has any. */
static void bytes_get_to_their_places(void **arg)
{
    (void)arg;
    enum { SIZE = 5 * 1048576 + 12345, CALLS = 3 };
    un_context *ctx = group_context();
    uint8_t *all = malloc(SIZE);
    for (uint64_t at = 0; at < SIZE; at++) all[at] = byte_at(at);
    double least = SIZE, most = 0;
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        un_ranks_file *file;
        un_range mine = group_range(spread, SIZE - 7);
        double before = un_ranks_traffic(ctx).written;
        check_ok(ctx, un_ranks_file_create(ctx, scratch_path("bytes"), &file));
        assert_true((un_ranks_file_first(file) != NULL) == (un_ranks_rank(group) == 0));
        for (int64_t k = 0; k < CALLS; k++) {
            int64_t from = mine.begin + (mine.end - mine.begin) * k / CALLS;
            int64_t to = mine.begin + (mine.end - mine.begin) * (k + 1) / CALLS;
            check_ok(ctx,
                     un_ranks_file_write(file, (uint64_t)from, all + from, (size_t)(to - from)));
        }
        check_ok(ctx, un_ranks_file_write(file, SIZE - 7, all + SIZE - 7,
                                          un_ranks_rank(group) == 0 ? 7 : 0));
        if (un_ranks_rank(group) == 0) {
            struct stat none;
            assert_int_equal(scratch_entries(), spread > 0 ? 2 : 1);
            if (spread == 0) assert_int_equal(stat(scratch_path("bytes"), &none), -1);
        }
        check_ok(ctx, un_ranks_file_commit(file));
        check_bytes(ctx, scratch_path("bytes"), all, SIZE);
        if (un_ranks_rank(group) == 0) assert_int_equal(scratch_entries(), 1);
        double written = un_ranks_traffic(ctx).written - before;
        least = fmin(least, -un_ranks_max(ctx, -written));
        most = fmax(most, un_ranks_max(ctx, written));
    }
    /* six blocks, whoever had the bytes */
    if (un_ranks_count(group) == 3) assert_true(most <= 2 * MEBI && least > MEBI);
    free(all);
    un_context_destroy(ctx);
}

/* Parts of many sizes follow one another; rank 0 sometimes goes on alone. */
static void parts_are_appended_in_order(void **arg)
{
    (void)arg;
    enum { SIZE = 4 * 1048576, ROUNDS = 12 };
    un_context *ctx = group_context();
    int32_t ranks = un_ranks_count(group), rank = un_ranks_rank(group);
    uint8_t *all = malloc(SIZE);
    for (uint64_t at = 0; at < SIZE; at++) all[at] = byte_at(at);
    un_ranks_file *file;
    uint64_t at = 0;
    check_ok(ctx, un_ranks_file_create(ctx, scratch_path("parts"), &file));
    for (uint64_t k = 0; k < ROUNDS; k++) {
        uint64_t first = at;
        for (int32_t r = 0; r < ranks; r++) {
            uint64_t count = un_hash64(k * 16 + (uint64_t)r) % (SIZE / ROUNDS / (uint64_t)ranks);
            if (k % 4 == 3 && r > 0) count = 0;
            if (r == rank) {
                bool more = rank == 0 && k % 4 == 3;
                uint64_t offset;
                check_ok(ctx, un_ranks_file_append(file, all + first, count, &more, &offset));
                assert_int_equal(more, un_ranks_count(group) > 1 ? k % 4 == 3 : more);
                assert_int_equal(offset, first);
            }
            first += count;
        }
        at = first;
    }
    check_ok(ctx, un_ranks_file_commit(file));
    assert_true(at > MEBI);
    check_bytes(ctx, scratch_path("parts"), all, at);
    free(all);
    un_context_destroy(ctx);
}

/* ---- windows ---- */

static void each_rank_gets_its_window(void **arg)
{
    (void)arg;
    enum { COUNT = 1000 };
    un_context *ctx = group_context();
    int32_t ranks = un_ranks_count(group), rank = un_ranks_rank(group), found = 0;
    double value[COUNT], own[COUNT], out[COUNT];
    uint8_t flag[COUNT], flag_out[COUNT];
    uint32_t id[COUNT];
    int32_t index[COUNT];
    for (int64_t i = 0; i < COUNT; i++) value[i] = 1 / (double)(i + 3), flag[i] = (uint8_t)(i % 7);
    for (uint32_t i = 0; i < COUNT; i++) /* scattered over the ranks */
        if (un_hash64(i) % (uint64_t)ranks == (uint64_t)rank) {
            index[found] = (int32_t)(COUNT - 1 - i);
            id[found++] = i;
        }
    double backward[COUNT];
    for (int64_t i = 0; i < COUNT; i++) backward[i] = value[COUNT - 1 - i];
    uint8_t flag_back[COUNT];
    for (int64_t i = 0; i < COUNT; i++) flag_back[i] = flag[COUNT - 1 - i];
    un_listed listed = {id, index, found};
    const un_part windows[4] = {{COUNT * rank / ranks, COUNT * (rank + 1) / ranks},
                                {rank * 10, rank * 10 + 300}, /* some of them to several */
                                {0, rank == ranks - 1 ? COUNT : 0},
                                {rank * 7, rank * 7}};
    for (int spread = 0; spread < SPREAD_COUNT; spread++)
        for (int w = 0; w < 4; w++) {
            un_range mine = group_range(spread, COUNT);
            size_t count = (size_t)(windows[w].end - windows[w].begin);
            for (int64_t i = mine.begin; i < mine.end; i++) own[i - mine.begin] = value[i];
            check_ok(ctx, un_ranks_windows(ctx, mine, own, sizeof *own, windows[w], out));
            assert_memory_equal(out, value + windows[w].begin, count * sizeof *out);
            memset(out, 0, sizeof out);
            check_ok(ctx, un_ranks_listed_windows(ctx, &listed, backward, sizeof *backward,
                                                  windows[w], out));
            assert_memory_equal(out, value + windows[w].begin, count * sizeof *out);
            check_ok(ctx,
                     un_ranks_listed_windows(ctx, &listed, flag_back, 1, windows[w], flag_out));
            assert_memory_equal(flag_out, flag + windows[w].begin, count);
        }
    un_context_destroy(ctx);
}

/* ---- checkpoints ---- */

typedef struct held {
    un_context *ctx;
    un_range range;
    void *room;
} held;

static un_status fetch(void *arg, const un_section *section, int64_t first, int64_t last,
                       const void **data)
{
    held *h = arg;
    *data = h->room;
    return un_ranks_windows(h->ctx, h->range, section->data, (size_t)section->width,
                            (un_part){first, last}, h->room);
}

enum { ELEMENTS = 1234567 }; /* 76 chunks, so that two ranks take more than one round */

/* parts: of this rank; NULL: all there is. */
static void add_sections(un_state *s, const double *x, const uint8_t *flag, const char *text,
                         held *parts)
{
    un_context *ctx = s->ctx;
    if (un_ranks_count(group) == 1) parts = NULL;
    int64_t from = parts ? parts->range.begin : 0,
            count = parts ? parts->range.end - from : ELEMENTS;
    if (!parts || un_ranks_rank(group) == 0) { /* more than rank 0 keeps back */
        check_ok(ctx, un_state_add_integer(s, "run.step", 17));
        check_ok(ctx, un_state_add(s, "run.text", text, ELEMENTS, 1));
        check_ok(ctx, un_state_add(s, "run.more", x, ELEMENTS / 3, 8));
    }
    int32_t first = s->count;
    check_ok(ctx, un_state_add(s, "x", x + from, count, 8));
    check_ok(ctx, un_state_add(s, "flag", flag + from, count, 1));
    if (parts) un_state_fetch_from(s, first, ELEMENTS, fetch, parts);
    check_ok(ctx, un_state_add_number(s, "time", 0.25)); /* rank 0's counts */
    first = s->count;
    check_ok(ctx, un_state_add(s, "none", NULL, 0, 8));
    if (parts) un_state_fetch_from(s, first, 0, fetch, parts);
    first = s->count;
    check_ok(ctx, un_state_add(s, "again", x + from, count, 8));
    if (parts) un_state_fetch_from(s, first, ELEMENTS, fetch, parts);
    check_ok(ctx, un_state_add(s, "end", text, 100000, 1));
}

static void checkpoints_are_those_of_one_rank(void **arg)
{
    (void)arg;
    un_context *ctx = group_context(), *alone = check_context();
    double *x = malloc(ELEMENTS * sizeof *x);
    uint8_t *flag = malloc(ELEMENTS);
    char *text = malloc(ELEMENTS), *wanted = NULL;
    size_t size = 0;
    for (int64_t i = 0; i < ELEMENTS; i++) {
        x[i] = 1e-4 * (double)i + 1e-5 * un_random((uint64_t)i, 1);
        flag[i] = (uint8_t)(i / 1000 % 3);
        text[i] = (char)un_hash64((uint64_t)i);
    }
    un_state whole, back;
    un_state_init(&whole, alone);
    un_state_init(&back, alone);
    add_sections(&whole, x, flag, text, NULL);
    if (un_ranks_rank(group) == 0) {
        check_ok(alone, un_checkpoint_write(alone, scratch_path("one.state"), &whole));
        check_ok(alone, un_file_read(alone, scratch_path("one.state"), &wanted, &size));
    }
    for (int spread = 0; spread < SPREAD_COUNT; spread++) {
        un_state parts;
        held h = {ctx, group_range(spread, ELEMENTS), malloc(16 * 16384 * 8)};
        un_state_init(&parts, ctx);
        add_sections(&parts, x, flag, text, &h);
        double before = un_ranks_traffic(ctx).written;
        check_ok(ctx, un_checkpoint_write(ctx, scratch_path("all.state"), &parts));
        double written = un_ranks_traffic(ctx).written - before;
        if (un_ranks_count(group) > 1)
            assert_true(un_ranks_max(ctx, written) <
                        (double)un_ranks_total(ctx, (int64_t)written) / un_ranks_count(group) +
                            2 * (double)MEBI);
        check_bytes(ctx, scratch_path("all.state"), (uint8_t *)wanted, size);
        un_state_free(&parts);
        free(h.room);
    }
    check_ok(alone, un_checkpoint_read(&back, scratch_path("all.state")));
    assert_memory_equal(un_section_data(un_state_find(&back, "again")), x, ELEMENTS * sizeof *x);
    un_state_free(&back);
    un_state_free(&whole);
    un_free(alone, wanted);
    free(x);
    free(flag);
    free(text);
    check_context_end(alone);
    un_context_destroy(ctx);
}

/* ---- particles ---- */

typedef struct crowd {
    un_particles all;
    int64_t calls;
} crowd;

static un_status window(void *arg, unsigned fields, int64_t first, int64_t last, un_particles *view)
{
    crowd *c = arg;
    (void)fields;
    c->calls++;
    *view = (un_particles){0};
    if (first == last) return UN_OK;
    *view = un_particles_part(&c->all, (un_part){first, last});
    view->depth = c->all.depth + first;
    return UN_OK;
}

static void particles_are_those_of_one_rank(void **arg)
{
    (void)arg;
    enum { COUNT = 150000 };
    un_context *ctx = group_context(), *alone = check_context();
    crowd c = {.all.mixed = true};
    un_particles *p = &c.all;
    check_ok(alone, un_particles_reserve(alone, p, COUNT));
    p->depth = malloc(COUNT * sizeof *p->depth);
    for (int64_t q = 0; q < COUNT; q++) {
        uint64_t i = (uint64_t)q;
        un_particle_set_position(p, q, un_v3(un_random(i, 1), un_random(i, 2), un_random(i, 3)));
        un_particle_set_velocity(p, q, un_v3(un_random(i, 4), un_random(i, 5), un_random(i, 6)));
        p->volume[q] = (float)un_random(i, 7);
        p->flags[q] = (uint8_t)un_hash64(i);
        p->density[q] = (float)un_random(i, 8);
        p->viscosity[q] = (float)un_random(i, 9);
        p->depth[q] = (float)un_random(i, 10);
    }
    for (int spread = 0; spread < SPREAD_COUNT + 1; spread++) {
        int64_t count = spread < SPREAD_COUNT ? COUNT : 0; /* and none at all */
        un_range mine = group_range(spread % SPREAD_COUNT, count);
        un_particle_stream stream = {.count = count,
                                     .part = {mine.begin, mine.end},
                                     .arg = &c,
                                     .window = window,
                                     .mixed = spread != 1,
                                     .depth = spread != 2};
        un_particles view = *p;
        char *wanted = NULL;
        size_t size = 0;
        view.count = (int32_t)count;
        if (!stream.mixed) view.density = view.viscosity = NULL;
        if (un_ranks_rank(group) == 0) {
            check_ok(alone, un_output_particles(alone, scratch_path("one.vtp"), &view,
                                                stream.depth ? p->depth : NULL));
            check_ok(alone, un_file_read(alone, scratch_path("one.vtp"), &wanted, &size));
        }
        check_ok(ctx, un_output_particle_stream(ctx, scratch_path("all.vtp"), &stream));
        check_bytes(ctx, scratch_path("all.vtp"), (uint8_t *)wanted, size);
        un_free(alone, wanted);
    }
    assert_int_equal(un_ranks_max(ctx, (double)c.calls), -un_ranks_max(ctx, -(double)c.calls));
    free(p->depth);
    p->depth = NULL;
    un_particles_free(alone, p);
    check_context_end(alone);
    un_context_destroy(ctx);
}

/* ---- what goes wrong ---- */

/* Each rank in turn has no room left on its disk. */
static void a_full_disk_fails_all(void **arg)
{
    (void)arg;
    enum { SIZE = 9 * 1048576 };
    un_context *ctx = group_context();
    int32_t ranks = un_ranks_count(group), rank = un_ranks_rank(group);
    char *bytes = calloc(SIZE, 1);
    for (int32_t full = 0; full < ranks; full++) {
        un_ranks_file *file;
        un_range mine = group_range(SPREAD_EVEN, SIZE);
        if (rank == full) room_for_files(100000);
        check_ok(ctx, un_ranks_file_create(ctx, scratch_path("a"), &file));
        check_ok(ctx, un_ranks_file_write(file, (uint64_t)mine.begin, bytes,
                                          (size_t)(mine.end - mine.begin)));
        un_status status = un_ranks_file_commit(file);
        room_for_files(RLIM_INFINITY);
        assert_int_equal(status, UN_ERROR_FILE);
        assert_true(un_ranks_agreed(group));
        check_message(ctx, "cannot write ");
        check_message(ctx, "ulimit");
        un_ranks_recover(ctx);
        if (rank == 0) assert_int_equal(scratch_entries(), 0);
        un_ranks_max(ctx, 0);
    }
    free(bytes);
    un_context_destroy(ctx);
}

/* The last rank's disk is another one, where even the folder is. */
static void a_disk_of_its_own_is_told(void **arg)
{
    (void)arg;
    int32_t ranks = un_ranks_count(group), rank = un_ranks_rank(group);
    if (ranks == 1) skip();
    un_context *ctx = group_context();
    un_ranks_file *file;
    char words[32];
    if (rank == ranks - 1) mkdir(scratch_path("own"), 0777);
    snprintf(words, sizeof words, "rank %d, on ", ranks - 1);
    const char *path = scratch_path(rank == ranks - 1 ? "own/a" : "a");
    assert_int_equal(un_ranks_file_create(ctx, path, &file), UN_ERROR_FILE);
    assert_null(file);
    check_message(ctx, words);
    check_message(ctx, "own/a; all machines need the run's directory under the same path");
    un_ranks_recover(ctx);
    if (rank == 0) assert_int_equal(scratch_entries(), 1);
    un_context_destroy(ctx);
}

/* Where rank 0 cannot begin, all say so. */
static void a_wrong_place_fails_all(void **arg)
{
    (void)arg;
    un_context *ctx = group_context();
    un_ranks_file *file;
    assert_int_equal(un_ranks_file_create(ctx, scratch_path("no/such/a"), &file), UN_ERROR_FILE);
    assert_null(file);
    check_message(ctx, "no/such/a: No such file or directory");
    un_ranks_recover(ctx);
    un_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_get_to_their_places, begin, end),
        cmocka_unit_test_setup_teardown(parts_are_appended_in_order, begin, end),
        cmocka_unit_test(each_rank_gets_its_window),
        cmocka_unit_test_setup_teardown(checkpoints_are_those_of_one_rank, begin, end),
        cmocka_unit_test_setup_teardown(particles_are_those_of_one_rank, begin, end),
        cmocka_unit_test_setup_teardown(a_full_disk_fails_all, begin, end),
        cmocka_unit_test_setup_teardown(a_disk_of_its_own_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_wrong_place_fails_all, begin, end),
    };
    group_run(tests);
}
