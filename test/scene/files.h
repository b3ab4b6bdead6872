/* Scene files for tests: written into a folder of their own, which is the working directory. */
#ifndef UN_TEST_SCENE_FILES_H
#define UN_TEST_SCENE_FILES_H

#include "check.h"
#include "scene/scene.h"

#include <time.h>
#include <unistd.h>

static char test_folder[64];

static int enter_folder(void **state)
{
    (void)state;
    snprintf(test_folder, sizeof test_folder, "/tmp/undine_scene_XXXXXX");
    return mkdtemp(test_folder) && chdir(test_folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static inline void write_bytes(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

static inline void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* The text as dam.lua; NULL when it does not load, with the message in the context. */
static inline un_scene *load_text(un_context *ctx, const char *text)
{
    un_scene *scene = NULL;
    write_text("dam.lua", text);
    un_status status = un_scene_load(ctx, "dam.lua", NULL, 0, &scene);
    assert_true((status == UN_OK) == (scene != NULL));
    return scene;
}

static inline un_scene *load_valid(un_context *ctx, const char *text)
{
    un_scene *scene = load_text(ctx, text);
    if (!scene) fail_msg("does not load: %s", un_context_message(ctx));
    return scene;
}

/* The message of a text that must not load. */
static inline void check_message(const char *text, const char *message)
{
    un_context *ctx = check_context_threads(1);
    un_scene *scene = NULL;
    write_text("dam.lua", text);
    un_status status = un_scene_load(ctx, "dam.lua", NULL, 0, &scene);
    if (status != UN_ERROR_SCENE || strcmp(un_context_message(ctx), message) != 0)
        fail_msg("\nfile:     %s\nstatus:   %d\nmessage:  %s\nexpected: %s", text, (int)status,
                 un_context_message(ctx), message);
    check_context_end(ctx);
}

#endif
