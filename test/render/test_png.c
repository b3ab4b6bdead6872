/* PNG files: what was written is read back; unwritable and damaged ones are said to be so. */
#include "check.h"

#include <unistd.h>

#define WIDTH 37
#define HEIGHT 23

static char folder[] = "/tmp/undine-png-XXXXXX";
static char path[64];
static uint8_t picture[WIDTH * HEIGHT * 3], back[WIDTH * HEIGHT * 3];

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof picture; i++) picture[i] = (uint8_t)un_hash64(i / 5);
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.png", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void reads_what_was_written(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    check_ok(ctx, un_png_write(ctx, path, picture, WIDTH, HEIGHT));
    check_ok(ctx, un_png_read(ctx, path, back, WIDTH, HEIGHT));
    assert_memory_equal(back, picture, sizeof picture);
    assert_int_equal(un_png_read(ctx, path, back, WIDTH + 1, HEIGHT), UN_ERROR_FILE);
    assert_non_null(strstr(un_context_message(ctx), "another size"));
    check_context_end(ctx);
}

static void refuses_what_cannot_be_written(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    assert_int_equal(un_png_write(ctx, "/dev/full", picture, WIDTH, HEIGHT), UN_ERROR_FILE);
    assert_non_null(strstr(un_context_message(ctx), "/dev/full"));
    assert_int_equal(un_png_write(ctx, "/nowhere/at/all.png", picture, WIDTH, HEIGHT),
                     UN_ERROR_FILE);
    assert_int_equal(un_png_write(ctx, path, picture, 0, HEIGHT), UN_ERROR_ARGUMENT);
    assert_int_equal(un_png_write(ctx, path, NULL, WIDTH, HEIGHT), UN_ERROR_ARGUMENT);
    check_context_end(ctx);
}

static void refuses_damaged_files(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    check_ok(ctx, un_png_write(ctx, path, picture, WIDTH, HEIGHT));
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[1 << 14];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 100 && size < sizeof bytes);
    for (size_t cut = 0; cut < size - 12; cut += 7) {
        file = fopen(path, "wb");
        fwrite(bytes, 1, cut, file);
        fclose(file);
        assert_int_equal(un_png_read(ctx, path, back, WIDTH, HEIGHT), UN_ERROR_FILE);
    }
    for (size_t at = 0; at < size; at += 11) {
        bytes[at] ^= 0x55;
        file = fopen(path, "wb");
        fwrite(bytes, 1, size, file);
        fclose(file);
        un_status status = un_png_read(ctx, path, back, WIDTH, HEIGHT);
        assert_true(status == UN_OK || status == UN_ERROR_FILE);
        bytes[at] ^= 0x55;
    }
    unlink(path);
    assert_int_equal(un_png_read(ctx, path, back, WIDTH, HEIGHT), UN_ERROR_FILE);
    check_context_end(ctx);
}

static un_status write_and_read(un_context *ctx, void *arg)
{
    (void)arg;
    UN_TRY(un_png_write(ctx, path, picture, WIDTH, HEIGHT));
    return un_png_read(ctx, path, back, WIDTH, HEIGHT);
}

static void survives_allocation_failures(void **state)
{
    (void)state;
    check_allocation_failures(write_and_read, NULL, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(refuses_what_cannot_be_written),
        cmocka_unit_test(refuses_damaged_files),
        cmocka_unit_test(survives_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
