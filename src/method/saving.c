/* Particles and the core of a method to a state and back. */
#include "method/core.h"

/* How far an emitter's stream may have come, cells: more than any run takes it, and less than what
 * a double resolves. */
#define SHIFT_MAX 0x1p40

static const char *const axes_x[3] = {"particles.x", "particles.y", "particles.z"};
static const char *const axes_v[3] = {"particles.vx", "particles.vy", "particles.vz"};
static const char *const axes_xi[3] = {"particles.xi", "particles.eta", "particles.zeta"};
static const char *const affine[9] = {"particles.vxx", "particles.vxy", "particles.vxz",
                                      "particles.vyx", "particles.vyy", "particles.vyz",
                                      "particles.vzx", "particles.vzy", "particles.vzz"};

un_status un_save_particles(un_state *out, const un_particles *p, const uint8_t *flags)
{
    for (int a = 0; a < 3; a++) UN_TRY(un_state_add(out, axes_x[a], p->x[a], p->count, 8));
    for (int a = 0; a < 3; a++) UN_TRY(un_state_add(out, axes_v[a], p->v[a], p->count, 8));
    UN_TRY(un_state_add(out, "particles.volume", p->volume, p->count, 4));
    UN_TRY(un_state_add(out, "particles.flags", flags ? flags : p->flags, p->count, 1));
    UN_TRY(un_state_add(out, "particles.fall", p->fall, p->count, 1));
    for (int a = 0; a < 3 && p->warped; a++)
        UN_TRY(un_state_add(out, axes_xi[a], p->xi[a], p->count, 8));
    for (int a = 0; a < 9 && p->warped; a++)
        UN_TRY(un_state_add(out, affine[a], p->affine[a], p->count, 4));
    if (p->mixed) {
        UN_TRY(un_state_add(out, "particles.density", p->density, p->count, 4));
        UN_TRY(un_state_add(out, "particles.viscosity", p->viscosity, p->count, 4));
    }
    return p->sized ? un_state_add(out, "particles.size", p->size, p->count, 4) : UN_OK;
}

un_status un_load_particles(const un_core *c, const un_state *in, un_particles *p)
{
    un_context *ctx = c->ctx;
    const un_section *first;
    UN_TRY(un_state_array(in, axes_x[0], 8, &first));
    if (first->count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_FILE, "the checkpoint has too many particles");
    UN_TRY(un_particles_reserve(ctx, p, un_max64(1, first->count)));
    for (int a = 0; a < 3; a++) UN_TRY(un_state_take(in, axes_x[a], p->x[a], first->count, 8));
    for (int a = 0; a < 3; a++) UN_TRY(un_state_take(in, axes_v[a], p->v[a], first->count, 8));
    UN_TRY(un_state_take(in, "particles.volume", p->volume, first->count, 4));
    UN_TRY(un_state_take(in, "particles.flags", p->flags, first->count, 1));
    UN_TRY(un_state_take(in, "particles.fall", p->fall, first->count, 1));
    for (int a = 0; a < 3 && p->warped; a++)
        UN_TRY(un_state_take(in, axes_xi[a], p->xi[a], first->count, 8));
    for (int a = 0; a < 9 && p->warped; a++)
        UN_TRY(un_state_take(in, affine[a], p->affine[a], first->count, 4));
    if (p->sized) UN_TRY(un_state_take(in, "particles.size", p->size, first->count, 4));
    if (p->mixed) {
        UN_TRY(un_state_take(in, "particles.density", p->density, first->count, 4));
        UN_TRY(un_state_take(in, "particles.viscosity", p->viscosity, first->count, 4));
    }
    p->count = (int32_t)first->count;
    p->lead = un_scale(c->def->gravity, 0.5 * c->dt);
    int64_t bad = un_particles_unsound(ctx, p, c->def->domain.size);
    if (bad == 0) return UN_OK;
    return un_fail(ctx, UN_ERROR_FILE,
                   "the checkpoint has %lld particles outside the domain or without a finite "
                   "velocity and volume; resume from an earlier one with --from-frame",
                   (long long)bad);
}

un_status un_save_inflow(un_state *out, const un_inflow *inflow)
{
    UN_TRY(un_state_add(out, "emitted.cell", inflow->cell, inflow->count, 4));
    return un_state_add(out, "emitted.volume", inflow->volume, inflow->count, 8);
}

un_status un_load_inflow(un_context *ctx, const un_state *in, un_inflow *inflow, int64_t cell_count)
{
    const un_section *cells;
    UN_TRY(un_state_array(in, "emitted.cell", 4, &cells));
    if (cells->count > INT32_MAX)
        return un_fail(ctx, UN_ERROR_FILE, "the checkpoint has too many sources");
    UN_TRY(un_inflow_need(ctx, inflow, (int32_t)cells->count));
    UN_TRY(un_state_take(in, "emitted.cell", inflow->cell, cells->count, 4));
    UN_TRY(un_state_take(in, "emitted.volume", inflow->volume, cells->count, 8));
    if (un_inflow_validate(inflow, cell_count)) return UN_OK;
    return un_fail(ctx, UN_ERROR_FILE, "the checkpoint has a source outside the grid");
}

/* ---- sources ---- */

_Static_assert(sizeof(un_vec3) == 3 * sizeof(double), "saved as three numbers");

static un_status save_sources(un_state *out, const un_sources *s)
{
    double ledger[4] = {s->ledger.start, s->ledger.in, s->ledger.out, s->ledger.rate};
    void *to;
    UN_TRY(un_state_add_own(out, "sources.ledger", 4, 8, &to));
    memcpy(to, ledger, sizeof ledger);
    int32_t count = s->def->source_count;
    UN_TRY(un_state_add_own(out, "sources.shift", 3 * (int64_t)count, 8, &to));
    for (int32_t n = 0; n < count; n++)
        memcpy((double *)to + 3 * n, &s->emission[n].shift, sizeof(un_vec3));
    UN_TRY(un_state_add_own(out, "sources.started", count, 1, &to));
    for (int32_t n = 0; n < count; n++) ((uint8_t *)to)[n] = s->emission[n].started;
    return UN_OK;
}

static un_status load_sources(const un_state *in, un_sources *s)
{
    double ledger[4];
    int32_t count = s->def->source_count;
    const un_section *shift, *started;
    UN_TRY(un_state_take(in, "sources.ledger", ledger, 4, 8));
    UN_TRY(un_state_array(in, "sources.shift", 8, &shift));
    UN_TRY(un_state_array(in, "sources.started", 1, &started));
    if (shift->count != 3 * (int64_t)count || started->count != count)
        return un_fail(s->ctx, UN_ERROR_FILE,
                       "the checkpoint has another number of sources than the scene");
    for (int32_t n = 0; n < count; n++) {
        const double *from = un_section_data(shift);
        memcpy(&s->emission[n].shift, from + 3 * n, sizeof(un_vec3));
        if (!(un_length(s->emission[n].shift) < SHIFT_MAX * s->grid->h))
            return un_fail(s->ctx, UN_ERROR_FILE, "the checkpoint has an emitter that is nowhere");
        s->emission[n].started = ((const uint8_t *)un_section_data(started))[n] != 0;
    }
    s->ledger.start = ledger[0];
    s->ledger.in = ledger[1];
    s->ledger.out = ledger[2];
    s->ledger.rate = ledger[3];
    return UN_OK;
}

/* ---- bodies that the liquid moves ---- */

static un_status save_bodies(un_state *out, const un_bodies *bodies)
{
    void *to;
    if (bodies->free_count == 0) return UN_OK;
    UN_TRY(un_state_add_own(out, "bodies", un_bodies_save(bodies, NULL), 8, &to));
    un_bodies_save(bodies, to);
    return UN_OK;
}

static un_status load_bodies(const un_state *in, un_bodies *bodies)
{
    const un_section *from;
    bool sound;
    if (bodies->free_count == 0) return UN_OK;
    UN_TRY(un_state_array(in, "bodies", 8, &from));
    UN_TRY(un_bodies_load(bodies, un_section_data(from), from->count, &sound));
    if (sound) return UN_OK;
    return un_fail(bodies->ctx, UN_ERROR_FILE,
                   "the checkpoint has other bodies than the scene, or bodies that are nowhere; "
                   "resume from an earlier one with --from-frame");
}

/* ---- time, walls, sources ---- */

/* The solids are placed again for the step that placed them last. */
un_status un_core_save(const un_core *c, un_state *out)
{
    UN_TRY(save_sources(out, &c->sources));
    UN_TRY(save_bodies(out, c->bodies));
    UN_TRY(un_state_add_number(out, "walls.time", c->bodies->time));
    UN_TRY(un_state_add_number(out, "walls.dt", c->bodies->dt));
    UN_TRY(un_state_add_number(out, "time", c->time));
    UN_TRY(un_state_add_number(out, "dt", c->dt));
    return un_state_add_integer(out, "step", c->step_count);
}

un_status un_core_load(un_core *c, const un_state *in)
{
    int64_t step;
    double time, dt;
    UN_TRY(un_state_number(in, "time", &c->time));
    UN_TRY(un_state_number(in, "dt", &c->dt));
    UN_TRY(un_state_integer(in, "step", 0, INT32_MAX, &step));
    c->step_count = (int32_t)step;
    UN_TRY(un_state_number(in, "walls.time", &time));
    UN_TRY(un_state_number(in, "walls.dt", &dt));
    UN_TRY(un_bodies_update(c->bodies, time, dt));
    UN_TRY(load_bodies(in, c->bodies));
    return load_sources(in, &c->sources);
}

/* ---- a rank's part of a checkpoint ---- */

typedef struct sifting {
    un_context *ctx;
    const char *const *shared;
    un_part own;       /* of the section that is read */
    int64_t particles; /* of this rank */
} sifting;

static int64_t count_own(void *arg, const char *name, int64_t count, int32_t width)
{
    sifting *s = arg;
    (void)width;
    bool particles = strncmp(name, "particles.", 10) == 0, parted = particles;
    for (int k = 0; s->shared[k]; k++) parted |= strcmp(name, s->shared[k]) == 0;
    if (!parted) return UN_SIEVE_ALL;
    s->own = un_ranks_even(s->ctx, count);
    if (particles) s->particles = s->own.end - s->own.begin;
    return s->own.end - s->own.begin;
}

static int64_t keep_own(void *arg, const char *name, void *elements, int64_t first, int64_t count,
                        int32_t width)
{
    const sifting *s = arg;
    char *p = elements;
    (void)name;
    int64_t begin = un_max64(s->own.begin - first, 0), end = un_min64(s->own.end - first, count);
    if (end <= begin) return 0;
    memmove(p, p + begin * width, (size_t)((end - begin) * width));
    return end - begin;
}

un_status un_sift_evenly(un_context *ctx, un_state *in, un_reread *read, void *arg,
                         const char *const *shared)
{
    sifting s = {.ctx = ctx, .shared = shared};
    un_sieve own = {&s, count_own, keep_own};
    UN_TRY(read(arg, in, &own));
    return un_state_add_integer(in, "ranks.own", s.particles);
}

/* ---- the same? ---- */

static uint64_t hash_word(uint64_t hash, const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

void un_hashing_add(un_hashing *h, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    while (h->left_count > 0 && count > 0) {
        h->left[h->left_count++] = *at++;
        count--;
        if (h->left_count < 8) continue;
        h->hash = hash_word(h->hash, h->left);
        h->left_count = 0;
    }
    for (; count >= 8; count -= 8, at += 8) h->hash = hash_word(h->hash, at);
    if (count > 0) memcpy(h->left, at, count);
    h->left_count += (int32_t)count;
}

uint64_t un_hashing_end(un_hashing *h)
{
    uint64_t word = 0;
    memcpy(&word, h->left, (size_t)h->left_count);
    h->left_count = 0;
    return h->hash = un_hash64(h->hash ^ word);
}

void un_hashing_part(un_context *ctx, bool shared, un_hashing *h, const void *bytes, size_t count)
{
    if (shared) un_ranks_begin_turn(ctx, h, sizeof *h);
    un_hashing_add(h, bytes, count);
    if (shared) un_ranks_end_turn(ctx, h, sizeof *h);
    un_hashing_end(h);
}

uint64_t un_saving_hash(uint64_t hash, const void *bytes, size_t count)
{
    un_hashing h = {.hash = hash};
    un_hashing_add(&h, bytes, count);
    return un_hashing_end(&h);
}

un_status un_save_hash(un_state *out, uint64_t hash)
{
    return un_state_add_integer(out, "found.hash", (int64_t)hash);
}

un_status un_load_hash(un_context *ctx, const un_state *in, uint64_t hash)
{
    int64_t was;
    UN_TRY(un_state_integer(in, "found.hash", INT64_MIN, INT64_MAX, &was));
    if ((uint64_t)was != hash)
        un_log(ctx, UN_LOG_WARNING,
               "this program rounds otherwise than the one that wrote the checkpoint (another "
               "machine, compiler or version): the run goes on soundly, but not bit for bit as it "
               "would have there");
    return UN_OK;
}
