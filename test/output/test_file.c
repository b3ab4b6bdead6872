/* A name only ever stands for a complete file, failures are told in full, and numbers keep their
 * bits. */
#include "room.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/wait.h>

static void appears_only_when_complete(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    const char *path = scratch_path("a.txt");
    scratch_write("a.txt", "old", 3);
    un_file *file;
    check_ok(ctx, un_file_create(ctx, path, &file));
    for (int i = 0; i < 100000; i++) un_file_printf(file, "%d\n", i); /* several buffers full */
    char *text;
    size_t size;
    check_ok(ctx, un_file_read(ctx, path, &text, &size));
    assert_string_equal(text, "old");
    un_free(ctx, text);
    assert_int_equal(scratch_entries(), 2);
    check_ok(ctx, un_file_commit(file));
    assert_int_equal(scratch_entries(), 1);
    check_ok(ctx, un_file_read(ctx, path, &text, &size));
    assert_int_equal(size, 588890);
    assert_memory_equal(text, "0\n1\n2\n", 6);
    assert_memory_equal(text + size - 6, "99999\n", 6);
    un_free(ctx, text);
    check_context_end(ctx);
}

static void discards(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_file *file;
    check_ok(ctx, un_file_create(ctx, scratch_path("a.txt"), &file));
    un_file_printf(file, "never");
    un_file_discard(file);
    un_file_discard(NULL);
    assert_int_equal(scratch_entries(), 0);
    check_context_end(ctx);
}

/* A process that dies while writing leaves an aside file; a later one with the same number must
 * neither fail on it nor take its bytes over. */
static void survives_leftovers(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    char name[64];
    snprintf(name, sizeof name, "a.txt.%ld.tmp", (long)getpid());
    scratch_write(name, "leftover of a killed run", 24);
    chmod(scratch_path(name), 0400);
    un_file *file;
    check_ok(ctx, un_file_create(ctx, scratch_path("a.txt"), &file));
    un_file_printf(file, "new");
    check_ok(ctx, un_file_commit(file));
    char *text;
    check_ok(ctx, un_file_read(ctx, scratch_path("a.txt"), &text, NULL));
    assert_string_equal(text, "new");
    un_free(ctx, text);
    assert_int_equal(scratch_entries(), 1);
    check_context_end(ctx);
}

static void long_lines_and_large_blocks(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    size_t count = 1000003;
    char *big = malloc(count + 1), *text;
    for (size_t i = 0; i < count; i++) big[i] = (char)('a' + i % 23);
    big[count] = 0;
    un_file *file;
    check_ok(ctx, un_file_create(ctx, scratch_path("big"), &file));
    un_file_printf(file, "x");
    un_file_write(file, big, count);
    un_file_printf(file, "%s", big);
    un_file_write(file, NULL, 0);
    check_ok(ctx, un_file_commit(file));
    size_t size;
    check_ok(ctx, un_file_read(ctx, scratch_path("big"), &text, &size));
    assert_int_equal(size, 1 + 2 * count);
    assert_memory_equal(text + 1, big, count);
    assert_memory_equal(text + 1 + count, big, count);
    un_free(ctx, text);
    free(big);
    check_context_end(ctx);
}

static void full_disk(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_file *file;
    room_for_files(4);
    check_ok(ctx, un_file_create(ctx, scratch_path("a"), &file));
    un_file_printf(file, "a little"); /* found out at commit only */
    un_status status = un_file_commit(file);
    room_for_files(RLIM_INFINITY);
    assert_int_equal(status, UN_ERROR_FILE);
    assert_int_equal(scratch_entries(), 0);
    assert_int_equal(un_file_fail(ctx, "write", "/full", ENOSPC), UN_ERROR_FILE);
    check_message(ctx, "/full: No space left");
    check_message(ctx, "free some space");
    check_context_end(ctx);
}

/* Renaming over a device would replace it, and opening a pipe waits for its reader. */
static void devices_and_pipes_stay(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_file *file;
    struct stat found;
    assert_int_equal(symlink("/dev/full", scratch_path("device")), 0);
    assert_int_equal(un_file_create(ctx, scratch_path("device"), &file), UN_ERROR_FILE);
    check_message(ctx, "/device: it is a device, not a file; choose another name");
    assert_int_equal(mkfifo(scratch_path("pipe"), 0666), 0);
    assert_int_equal(un_file_create(ctx, scratch_path("pipe"), &file), UN_ERROR_FILE);
    check_message(ctx, "/pipe: it is a pipe, not a file");
    assert_null(file);
    assert_int_equal(stat(scratch_path("device"), &found), 0);
    assert_true(S_ISCHR(found.st_mode));
    assert_int_equal(stat(scratch_path("pipe"), &found), 0);
    assert_true(S_ISFIFO(found.st_mode));
    assert_int_equal(scratch_entries(), 2);
    check_context_end(ctx);
}

/* A limit on file size stands in for a disk that fills up half way: nothing may be left. */
static void fills_up_half_way(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    room_for_files(300000);
    un_file *file;
    check_ok(ctx, un_file_create(ctx, scratch_path("a"), &file));
    for (int i = 0; i < 100000; i++) un_file_printf(file, "0123456789");
    un_status status = un_file_commit(file);
    room_for_files(RLIM_INFINITY);
    assert_int_equal(status, UN_ERROR_FILE);
    check_message(ctx, "ulimit");
    assert_int_equal(scratch_entries(), 0);
    check_context_end(ctx);
}

static void wrong_places(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_file *file;
    assert_int_equal(un_file_create(ctx, scratch_path("no/such/a"), &file), UN_ERROR_FILE);
    check_message(ctx, "no/such/a: No such file or directory; its folder does not exist");
    assert_null(file);
    scratch_write("plain", "x", 1);
    assert_int_equal(un_file_create(ctx, scratch_path("plain/a"), &file), UN_ERROR_FILE);
    check_message(ctx, "Not a directory; a part of the path is a file");
    mkdir(scratch_path("folder"), 0777);
    assert_int_equal(un_file_create(ctx, scratch_path("folder"), &file), UN_ERROR_FILE);
    check_message(ctx, "a folder has that name");

    char *text;
    assert_int_equal(un_file_read(ctx, scratch_path("none"), &text, NULL), UN_ERROR_FILE);
    check_message(ctx, "cannot read");
    check_message(ctx, "none: No such file");
    assert_int_equal(un_file_read(ctx, scratch, &text, NULL), UN_ERROR_FILE);
    assert_int_equal(un_file_read(ctx, "/dev/zero", &text, NULL), UN_ERROR_FILE);
    mkfifo(scratch_path("pipe"), 0666);
    assert_int_equal(un_file_read(ctx, scratch_path("pipe"), &text, NULL), UN_ERROR_FILE);
    assert_null(text);
    check_context_end(ctx);
}

static void folder_removed_meanwhile(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_file *file;
    un_table *table;
    check_ok(ctx, un_directory_create(ctx, scratch_path("run")));
    check_ok(ctx, un_table_create(ctx, scratch_path("run/t.csv"), "a,b", &table));
    check_ok(ctx, un_file_create(ctx, scratch_path("run/a"), &file));
    un_file_printf(file, "text");
    nftw(scratch_path("run"), scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(un_file_commit(file), UN_ERROR_FILE);
    check_message(ctx, "removed meanwhile");
    check_ok(ctx, un_table_row(table, (double[]){1, 2}, 2));
    assert_int_equal(un_table_sync(table), UN_ERROR_FILE);
    check_message(ctx, "removed during the run");
    assert_int_equal(un_table_close(table), UN_ERROR_FILE);
    check_context_end(ctx);
}

/* Root may write anywhere, so this runs as nobody in a child. */
static void unwritable_folder(void **state)
{
    (void)state;
    chmod(scratch, 0555);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && setuid(65534) != 0) _exit(0);
        un_context_def def = un_context_def_default();
        def.threads = 1;
        un_context *ctx = un_context_create(&def);
        un_file *file;
        bool refused = un_file_create(ctx, scratch_path("a"), &file) == UN_ERROR_FILE &&
                       strstr(un_context_message(ctx), "make the folder writable") &&
                       un_directory_create(ctx, scratch_path("sub/sub")) == UN_ERROR_FILE &&
                       strstr(un_context_message(ctx), "Permission denied");
        un_context_destroy(ctx);
        _exit(refused ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    chmod(scratch, 0755);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void folders(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    check_ok(ctx, un_directory_create(ctx, scratch_path("a/b//c/")));
    check_ok(ctx, un_directory_create(ctx, scratch_path("a/b/c")));
    struct stat found;
    assert_int_equal(stat(scratch_path("a/b/c"), &found), 0);
    assert_true(S_ISDIR(found.st_mode));
    check_ok(ctx, un_directory_create(ctx, "/"));
    check_ok(ctx, un_directory_create(ctx, "."));
    scratch_write("plain", "x", 1);
    assert_int_equal(un_directory_create(ctx, scratch_path("plain")), UN_ERROR_FILE);
    check_message(ctx, "a file has that name");
    assert_int_equal(un_directory_create(ctx, scratch_path("plain/sub")), UN_ERROR_FILE);
    assert_int_equal(un_directory_create(ctx, ""), UN_ERROR_FILE);
    char name[400];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    assert_int_equal(un_directory_create(ctx, name), UN_ERROR_FILE);
    check_message(ctx, "shorter");
    check_context_end(ctx);
}

static void numbers_keep_their_bits(void **state)
{
    (void)state;
    char text[UN_NUMBER_CHARS];
    const char *end;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t bits = un_hash64(i);
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        un_number_format(text, value);
        back = un_number_parse(text, &end);
        assert_memory_equal(&value, &back, sizeof value);
        assert_int_equal(*end, 0);
    }
    const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {0.1, "0.1"},
                 {1e6, "1000000"},
                 {-0.25, "-0.25"},
                 {NAN, "nan"},
                 {-NAN, "nan"},
                 {INFINITY, "inf"},
                 {-INFINITY, "-inf"},
                 {1e300, "1e+300"},
                 {123456789012345, "123456789012345"},
                 {1.0 / 3, "0.3333333333333333"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        un_number_format(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
    const char *bad[] = {"", "x", ",", "-", "1.2.3", "1e", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        un_number_parse(bad[i], &end);
        assert_ptr_equal(end, bad[i]);
    }
    char endless[1000];
    memset(endless, '.', sizeof endless);
    endless[999] = 0;
    un_number_parse(endless, &end);
    assert_ptr_equal(end, endless);
}

/* A program that embeds the library may have set a locale with a decimal comma. */
static void numbers_ignore_the_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) return;
    char text[UN_NUMBER_CHARS];
    const char *end;
    un_number_format(text, 0.5);
    double back = un_number_parse("2.25,", &end);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "0.5");
    assert_true(back == 2.25 && *end == ',');
}

static un_status whole_life(un_context *ctx, void *arg)
{
    (void)arg;
    un_file *file;
    un_table *table;
    char *text = NULL, big[2000];
    memset(big, 'b', sizeof big);
    big[sizeof big - 1] = 0;
    UN_TRY(un_directory_create(ctx, scratch_path("walk/deep")));
    UN_TRY(un_file_create(ctx, scratch_path("walk/a"), &file));
    un_file_printf(file, "%s", big);
    UN_TRY(un_file_commit(file));
    UN_TRY(un_file_read(ctx, scratch_path("walk/a"), &text, NULL));
    assert_string_equal(text, big);
    un_free(ctx, text);
    UN_TRY(un_table_create(ctx, scratch_path("walk/t.csv"), "a,b", &table));
    un_status status = un_table_row(table, (double[]){1, 2}, 2);
    un_status close_status = un_table_close(table);
    return status ? status : close_status;
}

static void failing_allocations(void **state)
{
    (void)state;
    check_allocation_failures(whole_life, NULL, 30);
    assert_int_equal(scratch_entries(), 1); /* no aside file stays */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_begin, scratch_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(appears_only_when_complete),
        TEST(discards),
        TEST(survives_leftovers),
        TEST(long_lines_and_large_blocks),
        TEST(full_disk),
        TEST(devices_and_pipes_stay),
        TEST(fills_up_half_way),
        TEST(wrong_places),
        TEST(folder_removed_meanwhile),
        TEST(unwritable_folder),
        TEST(folders),
        TEST(numbers_keep_their_bits),
        TEST(numbers_ignore_the_locale),
        TEST(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
