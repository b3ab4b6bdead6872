/* Films: as many frames as were given, in place only when complete; a missing or failing ffmpeg is
 * reported with its reason. */
#include "check.h"

#include "../../app/film.c"

#include <dirent.h>
#include <sys/stat.h>

#define WIDTH 66
#define HEIGHT 35 /* odd: must be padded */
#define FRAMES 7

static char folder[] = "/tmp/undine-film-XXXXXX";
static char path[128], message[600], old_path[4096];
static uint8_t rgb[WIDTH * HEIGHT * 3];

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a film: -1.mp4", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char fake[160];
    unlink(path);
    snprintf(fake, sizeof fake, "%s/ffmpeg", folder);
    unlink(fake);
    return rmdir(folder); /* fails when anything was left behind */
}

static bool exists(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0;
}

/* Nothing but the film and the false ffmpeg may lie in the folder. */
static void check_nothing_left(void)
{
    DIR *listing = opendir(folder);
    for (struct dirent *e = readdir(listing); e; e = readdir(listing))
        if (strstr(e->d_name, "part")) fail_msg("%s was left behind", e->d_name);
    closedir(listing);
}

/* Stands for ffmpeg; only it is found. */
static void install(const char *script)
{
    char fake[160];
    snprintf(fake, sizeof fake, "%s/ffmpeg", folder);
    unlink(fake);
    FILE *file = script ? fopen(fake, "w") : NULL;
    if (file) {
        fprintf(file, "#!/bin/sh\n%s\n", script);
        fclose(file);
        chmod(fake, 0755);
    }
    setenv("PATH", folder, 1);
}

static void every_frame_is_in_the_film(void **state)
{
    (void)state;
    if (system("command -v ffmpeg ffprobe >/dev/null") != 0) skip();
    film *f = film_open(path, WIDTH, HEIGHT, 24, message, sizeof message);
    assert_non_null(f);
    for (int k = 0; k < FRAMES; k++) {
        for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(40 * k + (int)i / 90);
        assert_true(film_frame(f, rgb));
    }
    assert_false(exists(path));
    if (!film_close(f, true, message, sizeof message)) fail_msg("%s", message);
    assert_true(exists(path));
    check_nothing_left();
    char command[400], answer[200] = "";
    snprintf(command, sizeof command,
             "ffprobe -v error -count_frames -select_streams v -show_entries "
             "stream=width,height,pix_fmt,r_frame_rate,nb_read_frames -of csv=p=0 'file:%s'",
             path);
    FILE *probe = popen(command, "r");
    assert_non_null(fgets(answer, sizeof answer, probe));
    pclose(probe);
    assert_string_equal(answer, "66,36,yuv420p,24/1,7\n");
}

static void an_abandoned_film_leaves_nothing(void **state)
{
    (void)state;
    if (system("command -v ffmpeg >/dev/null") != 0) skip();
    unlink(path);
    film *f = film_open(path, WIDTH, HEIGHT, 24, message, sizeof message);
    assert_non_null(f);
    assert_true(film_frame(f, rgb));
    /* Until it has begun to write there is nothing to leave behind. */
    for (int k = 0; k < 200 && !exists(f->aside); k++) assert_true(film_frame(f, rgb));
    assert_true(film_close(f, false, message, sizeof message));
    assert_false(exists(path));
    check_nothing_left();
}

static void a_missing_ffmpeg_has_a_remedy(void **state)
{
    (void)state;
    install(NULL);
    assert_null(film_open(path, WIDTH, HEIGHT, 24, message, sizeof message));
    assert_non_null(strstr(message, "apt install ffmpeg"));
    setenv("PATH", old_path, 1);
}

static void a_failing_ffmpeg_gives_its_reason(void **state)
{
    (void)state;
    const char *scripts[] = {
        "echo first >&2; echo 'the disk is made of cheese' >&2; exit 3",
        "while read -r line; do :; done; echo 'the disk is made of cheese' >&2; exit 1"};
    for (int i = 0; i < 2; i++) {
        install(scripts[i]);
        film *f = film_open(path, WIDTH, HEIGHT, 24, message, sizeof message);
        assert_non_null(f);
        bool all = true;
        for (int k = 0; k < 100 && all; k++) all = film_frame(f, rgb);
        assert_true(i == 1 || !all); /* the pipe breaks, and we live */
        assert_false(film_close(f, true, message, sizeof message));
        assert_non_null(strstr(message, "the disk is made of cheese"));
        assert_false(exists(path));
    }
    install("exit 0"); /* claims success without a film */
    film *f = film_open(path, WIDTH, HEIGHT, 24, message, sizeof message);
    assert_non_null(f);
    assert_false(film_close(f, true, message, sizeof message));
    setenv("PATH", old_path, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_is_in_the_film),
        cmocka_unit_test(an_abandoned_film_leaves_nothing),
        cmocka_unit_test(a_missing_ffmpeg_has_a_remedy),
        cmocka_unit_test(a_failing_ffmpeg_gives_its_reason),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
