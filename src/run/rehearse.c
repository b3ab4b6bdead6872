/* Rehearsal of a run. The scene is simulated from start to end at a size that takes seconds. This
 * predicts the number of steps per frame, the number of particles of an adaptive method, and how
 * much more a step costs in a splash than at the start. The cost of a step per particle, or per
 * cell if there are none, is then measured on a few steps at a larger size. Times are those of
 * processors, so that other programs on the machine do not count. */
#include "run/run.h"

/* If all had the finest size; with fewer an adaptive method has no room to adapt. */
#define SMALL_PARTICLES 12e3
#define SMALL_PARTICLES_ADAPTIVE 30e3
#define SMALL_SURFACES 8
#define SMALL_STEPS 150
#define LARGE_PARTICLES 1.5e5
#define LARGE_STEPS 3
/* Particles of an adaptive method scale with this power of the number in a uniform filling: between
 * a surface and a volume. If they do not grow by this factor there is no splash, and the initial
 * state decides. */
#define GROWTH_POWER 0.75
#define GROWTH_LEAST 1.15
/* Work of the first steps that tells the cost of all, as a fraction of the mean. */
#define START_LEAST 0.4
/* Shorter than this, clocks do not tell how many processors work. */
#define BUSY_SECONDS 2e-3

typedef struct rehearsal {
    un_context *ctx;
    un_scene *scene;
    const un_method *method;
    double h;              /* of the cells of the run itself, m */
    double finer;          /* how many of them fit along one of the rehearsal's */
    int32_t frames, steps; /* steps that the run itself would need for these frames */
    double time;           /* simulated, s */
    double work, count;    /* sums over the rehearsal's steps; work as in un_step */
    double work_first, work_max, bytes_max;
    /* of processors, all threads together; busy: as many of them as worked at once, at best */
    double seconds, surface_seconds, busy;
    int32_t surfaces;
    double each_first; /* cost per unit of work of the first steps, s */
} rehearsal;

/* Sets the scene to a size with about this many particles and the same number of cell levels; a
 * rehearsal writes nothing and ignores the budget. */
static void shrink(rehearsal *r, double even, double wanted)
{
    un_scene_def *def = &r->scene->def;
    int32_t finest = def->detail.finest, surface = def->detail.surface;
    double times = wanted / fmax(even, 1);
    double share = fmin(1, def->domain.dim == 2 ? sqrt(times) : cbrt(times));
    double levels = (double)finest / def->detail.coarsest;
    if (r->method->traits.adaptive && share < 1) {
        def->detail.coarsest = (int32_t)fmax(1, round(def->detail.coarsest * share));
        share = def->detail.coarsest * levels / finest;
    }
    def->detail.finest = (int32_t)fmax(UN_FINEST_MIN, floor(finest * share + 1e-9));
    def->detail.surface =
        (int32_t)fmax(UN_FINEST_MIN, floor((double)surface * def->detail.finest / finest));
    if (def->detail.coarsest > def->detail.finest) def->detail.coarsest = def->detail.finest;
    r->finer = (double)finest / def->detail.finest;
    def->solver.dump[0] = 0;
    def->budget.memory = def->budget.particles = 0;
}

/* Processor time since a moment, and how many processors that were. */
static double used_since(rehearsal *r, double clock, double processor)
{
    double wall = un_seconds() - clock, used = un_processor_seconds() - processor;
    if (wall > BUSY_SECONDS) r->busy = fmax(r->busy, used / wall);
    return used;
}

static un_status take_step(rehearsal *r, void *state, double dt, un_step *step)
{
    double clock = un_seconds(), processor = un_processor_seconds();
    UN_TRY(r->method->step(state, dt, step));
    r->time = step->time;
    if (r->count++ == 0) r->work_first = step->work;
    r->work += step->work;
    r->work_max = fmax(r->work_max, step->work);
    r->seconds += used_since(r, clock, processor);
    if (r->method->bytes) r->bytes_max = fmax(r->bytes_max, r->method->bytes(state));
    if (r->count <= LARGE_STEPS) r->each_first = r->seconds / fmax(r->work, 1);
    return UN_OK;
}

/* Steps of the run itself for one of the rehearsal's of length dt, which could be `limit`. */
static double finer_steps(const rehearsal *r, double dt, double limit)
{
    const un_scene_def *def = &r->scene->def;
    bool by_speed = limit < un_step_limit(def, r->h * r->finer, 0);
    double rate = by_speed ? def->solver.cfl / limit : 0;
    return dt / un_step_limit(def, r->h, rate * r->finer);
}

static un_status play(rehearsal *r, void *state)
{
    const un_scene_def *def = &r->scene->def;
    un_step step;
    for (int32_t frame = 1; frame <= def->frames.count && r->count < SMALL_STEPS; frame++) {
        double end = frame / def->frames.rate, steps = 0;
        while (end - r->time > 1e-9 / def->frames.rate) {
            double limit = r->method->step_limit(state);
            double dt = (end - r->time) / fmax(1, ceil((end - r->time) / limit - 1e-9));
            if (r->count >= 10 * SMALL_STEPS) return UN_OK; /* something else is wrong here */
            steps += finer_steps(r, dt, limit);
            UN_TRY(take_step(r, state, dt, &step));
        }
        r->steps += (int32_t)fmin(fmax(1, ceil(steps - 1e-9)), 1e6);
        r->frames++;
        int32_t every = (def->frames.count + SMALL_SURFACES - 1) / SMALL_SURFACES;
        if (!def->output.surface || frame % every) continue;
        un_trimesh mesh = {0};
        double clock = un_seconds(), processor = un_processor_seconds();
        UN_TRY(r->method->surface(state, &mesh));
        r->surface_seconds += used_since(r, clock, processor);
        r->surfaces++;
        un_trimesh_free(r->ctx, &mesh);
    }
    return UN_OK;
}

static un_status take_steps(rehearsal *r, void *state)
{
    un_step step;
    for (int i = 0; i < LARGE_STEPS; i++) {
        double limit = r->method->step_limit(state);
        UN_TRY(take_step(r, state, fmin(limit, 1 / r->scene->def.frames.rate), &step));
    }
    return UN_OK;
}

/* Runs at another size, and restores it. */
static un_status perform(rehearsal *r, double even, double wanted,
                         un_status (*act)(rehearsal *, void *))
{
    un_scene_def was = r->scene->def;
    shrink(r, even, wanted);
    void *state = NULL;
    un_status status = un_method_create(r->method, r->ctx, r->scene, NULL, &state);
    if (status == UN_OK) status = act(r, state);
    un_method_destroy(r->method, state);
    r->scene->def = was;
    return status;
}

un_status un_run_rehearse(un_context *ctx, un_scene *scene, const un_method *method,
                          un_check *check)
{
    const un_scene_def *def = &scene->def;
    rehearsal small = {.ctx = ctx, .scene = scene, .method = method, .h = check->cell_size};
    rehearsal large = small;
    un_estimate even;
    UN_TRY(un_uniform_estimate(ctx, scene, &even));
    double filled = (double)even.particle_count_max;
    UN_TRY(perform(&small, filled,
                   method->traits.adaptive ? SMALL_PARTICLES_ADAPTIVE : SMALL_PARTICLES, play));
    if (small.count == 0) return UN_OK; /* no frames */
    bool particles = method->traits.particles;
    double more = pow(small.finer, def->domain.dim), mean = small.work / small.count;
    if (method->traits.adaptive) {
        bool grows = small.work_max > GROWTH_LEAST * small.work_first;
        double first = (double)(particles ? check->particle_count : check->cell_count);
        more = grows ? pow(more, GROWTH_POWER) : first / fmax(small.work_first, 1);
        double most = fmax(small.work_max * more, first), bytes = small.bytes_max * more;
        if (def->budget.particles > 0) most = fmin(most, fmax(def->budget.particles, first));
        if (def->budget.memory > 0) bytes = fmin(bytes, def->budget.memory);
        if (particles) check->particle_count_max = (int64_t)most;
        check->bytes = fmax(check->bytes, bytes);
    }
    mean *= more;
    if (particles) mean = fmin(mean, (double)check->particle_count_max);
    double wanted =
        method->traits.adaptive ? LARGE_PARTICLES * filled / fmax(mean, 1) : LARGE_PARTICLES;
    UN_TRY(perform(&large, filled, fmin(wanted, LARGE_PARTICLES * 8), take_steps));
    double each = small.seconds / fmax(small.work, 1), slower = each / small.each_first;
    /* Where emitters have yet to bring most of the liquid, the first steps at a larger size tell
     * the cost of an empty domain. */
    bool alike = large.work / fmax(large.count, 1) > START_LEAST * mean;
    if (small.finer > 1 && alike) each = large.seconds / fmax(large.work, 1) * fmax(slower, 1);
    double surface = small.surface_seconds / fmax(small.surfaces, 1);
    surface *= method->traits.adaptive ? more : more / small.finer;
    double seconds = (double)small.steps / small.frames * mean * each + surface;
    check->seconds_per_frame = seconds / fmax(1, fmax(small.busy, large.busy));
    return UN_OK;
}
