/* A checkpoint: read, loaded by the method it is of, and stepped once. Checksums are set right
 * first, as far as the bytes make sense, for nobody guesses them. */
#include "checkpoint.h"
#include "state/format.h"

typedef struct input {
    const uint8_t *bytes;
    size_t count, at;
} input;

static bool from_input(void *arg, void *to, size_t count)
{
    input *in = arg;
    if (count > in->count - in->at) return false;
    memcpy(to, in->bytes + in->at, count);
    in->at += count;
    return true;
}

/* The parts as decode.c goes through them; stops where they do not fit. */
static void set_checksums(uint8_t *b, size_t count)
{
    size_t at = UN_HEAD_BYTES;
    if (count < at) return;
    un_put32(b + 16, un_crc(0, b, 16));
    uint32_t sections = un_get32(b + 12), crc = un_crc(0, b, UN_HEAD_BYTES);
    for (uint32_t s = 0; s < sections && count - at >= UN_SECTION_BYTES; s++) {
        un_put32(b + at + 44, un_crc(0, b + at, 44));
        crc = un_crc(crc, b + at, UN_SECTION_BYTES);
        uint32_t width = un_get32(b + at + 32);
        uint64_t elements = un_get64(b + at + 36);
        at += UN_SECTION_BYTES;
        if (width > 8) return;
        for (uint64_t done = 0; done < elements; done += UN_CHUNK) {
            uint64_t length = 4 * width;
            if (count - at < length) return;
            for (uint32_t p = 0; p < width; p++)
                length += un_get32(b + at + 4 * p) & ((1u << UN_PLANE_CODE_SHIFT) - 1);
            if (count - at < length + 4) return;
            un_put32(b + at + length, un_crc(0, b + at, (size_t)length));
            crc = un_crc(crc, b + at + length, 4);
            at += (size_t)length + 4;
        }
    }
    if (count - at >= UN_TAIL_BYTES) un_put32(b + at + 8, un_crc(crc, b + at, 8));
}

static const un_method *method_of(const un_state *state)
{
    if (!un_state_find(state, "scale")) return &un_method_uniform;
    return un_state_find(state, "face_velocity") ? &un_method_staggered : &un_method_tet;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    un_context *ctx = fuzz_context();
    uint8_t *repaired = malloc(count + 1);
    FUZZ_REQUIRE(repaired);
    if (count > 0) memcpy(repaired, bytes, count);
    set_checksums(repaired, count);
    un_state state;
    un_state_init(&state, ctx);
    input in = {repaired, count, 0}, again = in;
    un_status status = un_state_decode(&state, from_input, &in, count, "fuzz");
    if (status == UN_OK) FUZZ_REQUIRE(un_state_verify(ctx, from_input, &again, count, "fuzz") == 0);
    if (status == UN_OK) {
        const un_method *m = method_of(&state);
        const char *text = un_state_find(&state, "particles.viscosity") ? fuzz_thick : fuzz_thin;
        un_scene *scene = fuzz_scene(ctx, text);
        void *loaded = NULL;
        un_step step;
        if (un_method_create(m, ctx, scene, &state, &loaded) == UN_OK) {
            double limit = m->step_limit(loaded);
            if (limit > 1e-6) (void)m->step(loaded, fmin(limit, 0.01), &step);
            un_method_destroy(m, loaded);
        }
        un_scene_destroy(scene);
    }
    un_state_free(&state);
    free(repaired);
    fuzz_context_end(ctx);
    return 0;
}
