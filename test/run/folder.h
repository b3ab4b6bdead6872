/* Runs in a folder in memory, and whether two of them left the same files. */
#ifndef UN_TEST_RUN_FOLDER_H
#define UN_TEST_RUN_FOLDER_H

#include "output/scratch.h"
#include "run/run.h"

/* In memory where there is such a place: runs sync every file, and the tests start hundreds. */
static inline int folder_begin(void **state)
{
    strcpy(scratch, "/dev/shm/undine_test_XXXXXX");
    return mkdtemp(scratch) ? 0 : scratch_begin(state);
}

#define FOLDER_TEST(f) cmocka_unit_test_setup_teardown(f, folder_begin, scratch_end)

/* A small scene with all that has a memory: a moving solid, an emitter in the liquid, a drain. */
#define FOLDER_SCENE                                                                               \
    "scene { method = 'uniform', domain = { size = {1, 1, 1}, open = {'top'} },\n"                 \
    "detail = { coarsest = 3, finest = 6, surface = 6 }, frames = { count = 3, rate = 12 },\n"     \
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.5, 1} } },\n"                                 \
    "solids = { solid { sphere { center = {0.7, 0.3, 0.5}, radius = 0.2 },\n"                      \
    "  velocity = {-0.3, 0, 0} } },\n"                                                             \
    "sources = { emitter { shape = box { min = {0.2, 0.1, 0.2}, max = {0.5, 0.4, 0.6} },\n"        \
    "  velocity = {1, 0, 0} }, drain { shape = box { min = {0, 0, 0}, max = {0.2, 0.1, 0.2} } } "  \
    "},\n"                                                                                         \
    "probes = { front { axis = 'x' }, height { at = {0.2, 0.5} } } }\n"

typedef struct folder_run {
    const char *name; /* of the directory in scratch */
    const char *overrides[4];
    int32_t override_count, threads;
    int stop_after; /* reports of progress; 0: not */
    int64_t fail_allocation;
    size_t memory_cap;
    un_run_def def; /* resume, from_frame, keep_every */
    char log[4096]; /* what was said */
    char message[1024];
    double peak; /* bytes */
} folder_run;

static inline bool folder_progress(void *user, const un_progress *progress)
{
    folder_run *r = user;
    (void)progress;
    return r->stop_after == 0 || --r->stop_after > 0;
}

static inline void folder_log(void *user, un_log_level level, const char *message)
{
    folder_run *r = user;
    (void)level;
    size_t used = strlen(r->log);
    snprintf(r->log + used, sizeof r->log - used, "%s\n", message);
}

static inline un_status folder_go(folder_run *r)
{
    char directory[256];
    un_context_def context = un_context_def_default();
    context.threads = r->threads ? r->threads : 1;
    context.log = folder_log;
    context.user = r;
    context.fail_allocation = r->fail_allocation;
    context.memory_cap = r->memory_cap;
    un_context *ctx = un_context_create(&context);
    un_scene *scene;
    snprintf(directory, sizeof directory, "%s", scratch_path(r->name));
    un_run_def def = r->def;
    def.directory = directory;
    def.progress = folder_progress;
    def.user = r;
    r->log[0] = 0;
    un_status status =
        un_scene_load(ctx, scratch_path("scene.lua"), r->overrides, r->override_count, &scene);
    if (status == UN_OK) {
        status = un_run(ctx, scene, &def);
        un_scene_destroy(scene);
    }
    snprintf(r->message, sizeof r->message, "%s", un_context_message(ctx));
    r->peak = (double)un_context_peak_bytes(ctx);
    check_context_end(ctx);
    return status;
}

static inline void folder_ok(folder_run *r)
{
    un_status status = folder_go(r);
    if (status != UN_OK) fail_msg("%s: status %d: %s", r->name, (int)status, r->message);
}

static inline char *folder_read(const char *name, size_t *size)
{
    FILE *file = fopen(scratch_path(name), "rb");
    *size = 0;
    if (!file) return NULL;
    char *text = malloc(1 << 22);
    *size = fread(text, 1, (1 << 22) - 1, file);
    text[*size] = 0;
    fclose(file);
    return text;
}

/* stats.csv without bytes and seconds: from the 20th column on. */
static inline void folder_strip(char *text)
{
    char *to = text;
    int column = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\n') column = 0;
        if (column < 19 || *c == '\n') *to++ = *c;
        if (*c == ',') column++;
    }
    *to = 0;
}

/* Every frame and every row. Particles may be missing, from both. */
static inline void folder_same(const char *a, const char *b, int frames)
{
    static const char *const files[] = {"surface.ply", "surface.vtp", "particles.vtp"};
    char names[2][128];
    for (int frame = -4; frame <= frames; frame++)
        for (int f = 0; f < (frame < 0 ? 1 : 3); f++) {
            char *text[2];
            size_t size[2] = {0, 0};
            for (int i = 0; i < 2; i++) {
                const char *directory = i ? b : a;
                if (frame < 0)
                    snprintf(names[i], sizeof names[i], "%s/%s", directory,
                             frame == -4   ? "bodies.csv"
                             : frame == -3 ? "stats.csv"
                             : frame == -2 ? "probes.csv"
                                           : "surface.pvd");
                else
                    snprintf(names[i], sizeof names[i], "%s/frames/%04d/%s", directory, frame,
                             files[f]);
                text[i] = folder_read(names[i], &size[i]);
                if (!text[i] && f != 2) fail_msg("%s is missing", names[i]);
                if (frame == -3) {
                    folder_strip(text[i]);
                    size[i] = strlen(text[i]);
                }
            }
            if (!text[0] && !text[1]) continue;
            if (size[0] != size[1] || memcmp(text[0], text[1], size[0]) != 0)
                fail_msg("%s and %s differ", names[0], names[1]);
            free(text[0]);
            free(text[1]);
        }
    snprintf(names[0], sizeof names[0], "%s/frames/%04d/surface.ply", b, frames + 1);
    assert_int_not_equal(access(scratch_path(names[0]), F_OK), 0);
}

/* Names of checkpoints, newest first; up to `most`. */
static inline int folder_checkpoints(const char *directory, char (*names)[160], int most)
{
    char path[128];
    struct dirent **list;
    snprintf(path, sizeof path, "%s/state", directory);
    int count = scandir(scratch_path(path), &list, NULL, alphasort), found = 0;
    for (int i = count - 1; i >= 0; i--) {
        size_t length = strlen(list[i]->d_name);
        if (found < most && length > 6 && strcmp(list[i]->d_name + length - 6, ".state") == 0)
            snprintf(names[found++], 160, "%.60s/%.80s", path, list[i]->d_name);
        free(list[i]);
    }
    if (count >= 0) free(list);
    return found;
}

#endif
