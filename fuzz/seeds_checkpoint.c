/* Writes the checkpoints that fuzzing them begins with: of every method, as it saves them now. A
 * method refuses those of an earlier version of itself, and fuzzing would end there.
 *     seeds_checkpoint FOLDER */
#include "checkpoint.h"

typedef struct bytes {
    uint8_t at[1 << 16];
    size_t count, read;
} bytes;

static void to_bytes(void *arg, const void *from, size_t count)
{
    bytes *b = arg;
    FUZZ_REQUIRE(count <= sizeof b->at - b->count);
    memcpy(b->at + b->count, from, count);
    b->count += count;
}

static bool from_bytes(void *arg, void *to, size_t count)
{
    bytes *b = arg;
    if (count > b->count - b->read) return false;
    memcpy(to, b->at + b->read, count);
    b->read += count;
    return true;
}

static void save(un_context *ctx, const un_method *method, const un_scene *scene, bytes *b)
{
    void *state;
    un_step step;
    un_state saved;
    un_state_init(&saved, ctx);
    FUZZ_REQUIRE(un_method_create(method, ctx, scene, NULL, &state) == UN_OK);
    FUZZ_REQUIRE(method->step(state, 0.01, &step) == UN_OK);
    FUZZ_REQUIRE(method->save(state, &saved) == UN_OK);
    FUZZ_REQUIRE(un_state_encode(&saved, to_bytes, b) == UN_OK);
    un_state_free(&saved);
    un_method_destroy(method, state);
}

static void load(un_context *ctx, const un_method *method, const un_scene *scene, bytes *b)
{
    void *state;
    un_state saved;
    un_state_init(&saved, ctx);
    FUZZ_REQUIRE(un_state_decode(&saved, from_bytes, b, b->count, "seed") == UN_OK);
    FUZZ_REQUIRE(un_method_create(method, ctx, scene, &saved, &state) == UN_OK);
    un_state_free(&saved);
    un_method_destroy(method, state);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        const un_method *method;
        const char *scene;
    } seeds[] = {
        {"uniform", &un_method_uniform, fuzz_thin},
        {"tet", &un_method_tet, fuzz_thin},
        {"tet_thick", &un_method_tet, fuzz_thick},
        {"staggered", &un_method_staggered, fuzz_thin},
        {"staggered_thick", &un_method_staggered, fuzz_thick},
    };
    FUZZ_REQUIRE(argc == 2);
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        static bytes b;
        b = (bytes){.count = 0};
        un_context *ctx = fuzz_context();
        un_scene *scene = fuzz_scene(ctx, seeds[i].scene);
        save(ctx, seeds[i].method, scene, &b);
        load(ctx, seeds[i].method, scene, &b);
        un_scene_destroy(scene);
        fuzz_context_end(ctx);
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.state", argv[1], seeds[i].name);
        FILE *file = fopen(path, "wb");
        FUZZ_REQUIRE(file && fwrite(b.at, 1, b.count, file) == b.count && fclose(file) == 0);
    }
    return 0;
}
