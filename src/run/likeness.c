/* Is it the same scene? Lists what results depend on as lines "key=value": numbers directly, shapes
 * and functions by their values at a few hundred points. So comments, layout and spelling may
 * change, and a changed mesh file is noticed. Keys that begin with ~ only control the solver: a run
 * may continue with other values, with a message. */
#include <stdio.h>

#include "run/loop.h"

/* Values are compared to this fraction of the domain: other builds round differently. */
#define SHARE 1e-7
#define SHAPE_POINTS 512
#define SIZE_POINTS 64
#define TIMES 16
#define TIME_STEP 0.37 /* s */

typedef struct lines {
    un_context *ctx;
    const un_scene *scene;
    char *text;
    size_t used, capacity;
    un_status status; /* of the first failure */
} lines;

static void add(lines *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(lines *out, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof text) length = sizeof text - 1;
    if (out->status == UN_OK)
        out->status = un_array_reserve(out->ctx, (void **)&out->text, &out->capacity,
                                       out->used + (size_t)length + 1, 1);
    if (out->status != UN_OK) return;
    memcpy(out->text + out->used, text, (size_t)length + 1);
    out->used += (size_t)length;
}

static void add_numbers(lines *out, const char *key, const double *values, int count)
{
    char number[UN_NUMBER_CHARS];
    add(out, "%s=", key);
    for (int i = 0; i < count; i++) {
        un_number_format(number, values[i]);
        add(out, i ? " %s" : "%s", number);
    }
    add(out, "\n");
}

static void add_number(lines *out, const char *key, double value)
{
    add_numbers(out, key, &value, 1);
}

static void add_vector(lines *out, const char *key, un_vec3 v)
{
    add_numbers(out, key, (double[3]){v.x, v.y, v.z}, 3);
}

/* ---- shapes and functions ---- */

static double longest(const lines *out)
{
    un_vec3 size = out->scene->def.domain.size;
    return fmax(size.x, fmax(size.y, size.z));
}

static uint64_t mix(uint64_t hash, double value, double unit)
{
    double steps = un_clamp(value / unit, -1e15, 1e15); /* NaN stays what it is */
    return un_hash64(hash ^ (isnan(steps) ? 1u : (uint64_t)llround(steps)));
}

static uint64_t mix_pose(uint64_t hash, const un_pose *pose, double unit)
{
    for (int i = 0; i < 9; i++) hash = mix(hash, pose->rotation[i / 3][i % 3], SHARE);
    hash = mix(hash, pose->translation.x, unit);
    hash = mix(hash, pose->translation.y, unit);
    hash = mix(hash, pose->translation.z, unit);
    return mix(hash, pose->scale, SHARE);
}

/* Half of the points are in the domain, half around the shape. */
static uint64_t shape_hash(const lines *out, const un_shape *shape)
{
    uint64_t hash = 0;
    un_box3 domain = {un_v3(0, 0, 0), out->scene->def.domain.size}, box = un_shape_bounds(shape);
    un_vec3 side = un_sub(box.max, box.min);
    double unit = SHARE * longest(out), reach = un_length(side);
    bool bounded = isfinite(reach) && reach < 1e3 * longest(out);
    for (uint64_t i = 0; i < SHAPE_POINTS; i++) {
        un_box3 b = i % 2 && bounded ? box : domain;
        un_vec3 s = un_sub(b.max, b.min);
        double r[3];
        for (uint64_t a = 0; a < 3; a++) r[a] = 1.2 * un_random(3 * i + a, 77) - 0.1;
        un_vec3 x = un_v3(b.min.x + s.x * r[0], b.min.y + s.y * r[1], b.min.z + s.z * r[2]);
        hash = mix(hash, un_shape_distance(shape, x), unit);
    }
    return hash;
}

/* A function may fail at these times only; the result is then "no value". */
static uint64_t pose_hash(const lines *out, int32_t solid)
{
    uint64_t hash = 0;
    for (int i = 0; i < TIMES; i++) {
        un_pose pose;
        if (un_scene_pose(out->scene, solid, TIME_STEP * i, &pose) != UN_OK)
            hash = un_hash64(hash);
        else
            hash = mix_pose(hash, &pose, SHARE * longest(out));
    }
    return hash;
}

static uint64_t camera_hash(const lines *out)
{
    uint64_t hash = 0;
    double unit = SHARE * longest(out);
    for (int i = 0; i < TIMES; i++) {
        un_viewpoint v = {0};
        if (un_scene_camera(out->scene, TIME_STEP * i, &v) != UN_OK) v = (un_viewpoint){0};
        const double values[] = {v.eye.x,    v.eye.y,    v.eye.z, v.target.x,
                                 v.target.y, v.target.z, v.fov,   v.aspect};
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            hash = mix(hash, values[k], k < 6 ? unit : SHARE);
    }
    return hash;
}

static uint64_t custom_hash(const lines *out)
{
    uint64_t hash = 0;
    un_vec3 x[SIZE_POINTS], size = out->scene->def.domain.size;
    float found[SIZE_POINTS];
    for (uint64_t i = 0; i < SIZE_POINTS; i++)
        x[i] = un_v3(size.x * un_random(3 * i, 78), size.y * un_random(3 * i + 1, 78),
                     size.z * un_random(3 * i + 2, 78));
    for (int t = 0; t < 4; t++) {
        bool known =
            un_scene_custom_sizes(out->scene, TIME_STEP * t, x, SIZE_POINTS, found) == UN_OK;
        for (int i = 0; i < SIZE_POINTS; i++)
            hash = mix(hash, known ? (double)found[i] : -1, SHARE * longest(out));
    }
    return hash;
}

/* ---- the scene ---- */

static void add_matter(lines *out, const char *whose, const un_matter *m)
{
    uint64_t hash = 0;
    un_vec3 size = out->scene->def.domain.size;
    for (uint64_t i = 0; i < SIZE_POINTS; i++) {
        un_vec3 x = un_v3(size.x * un_random(3 * i, 79), size.y * un_random(3 * i + 1, 79),
                          size.z * un_random(3 * i + 2, 79));
        float density = -1, viscosity = -1;
        if (un_scene_matter(out->scene, m, &x, 1, &density, &viscosity) != UN_OK)
            density = viscosity = -1;
        hash = mix(mix(hash, (double)density, SHARE), (double)viscosity, SHARE * 1e-3);
    }
    add(out, "density and viscosity of %s=#%016llx\n", whose, (unsigned long long)hash);
}

static void add_solids(lines *out)
{
    const un_scene_def *def = &out->scene->def;
    int32_t moving = 0;
    char usual[64];
    add(out, "the number of solids=%d\n", def->solid_count);
    for (int32_t i = 0; i < def->solid_count; i++) {
        const un_solid *s = &def->solids[i];
        add(out, "the friction of ");
        add_number(out, s->label, s->friction);
        add(out, "the slip of ");
        add_number(out, s->label, s->slip);
        if (def->fluid.surface_tension > 0) { /* otherwise of no effect */
            add(out, "the contact angle of ");
            add_number(out, s->label, s->contact_angle);
        }
        add(out, "the shape of %s=#%016llx\n", s->label,
            (unsigned long long)shape_hash(out, s->shape));
        add(out, "the motion of %s=#%016llx\n", s->label,
            s->moves ? (unsigned long long)pose_hash(out, i) : 0);
        if (s->density > 0) {
            const double values[] = {s->density, s->velocity.x, s->velocity.y, s->velocity.z,
                                     s->spin.x,  s->spin.y,     s->spin.z,     s->restitution,
                                     s->grip,    s->hold};
            add(out, "density, velocity, spin, restitution, friction and hold of ");
            add_numbers(out, s->label, values, sizeof values / sizeof *values);
        }
        /* Heading of columns in bodies.csv. Checkpoints of earlier versions have no names. */
        moving += s->moves;
        snprintf(usual, sizeof usual, UN_BODY_NAME, moving);
        if (s->moves && strcmp(s->name, usual) != 0)
            add(out, "the name of %s=%s\n", s->label, s->name);
    }
}

static void add_sources(lines *out)
{
    const un_scene_def *def = &out->scene->def;
    add(out, "the number of sources=%d\n", def->source_count);
    for (int32_t i = 0; i < def->source_count; i++) {
        const un_source *s = &def->sources[i];
        const double values[] = {(double)s->kind, s->velocity.x, s->velocity.y,
                                 s->velocity.z,   s->from,       s->to};
        add(out, "kind, velocity, from and to of ");
        add_numbers(out, s->name, values, 6);
        if (s->kind == UN_SOURCE_EMITTER) add_matter(out, s->name, &s->matter);
        add(out, "the shape of %s=#%016llx\n", s->name,
            (unsigned long long)shape_hash(out, s->shape));
    }
}

static void add_probes(lines *out)
{
    const un_scene_def *def = &out->scene->def;
    add(out, "the number of probes=%d\n", def->probe_count);
    for (int32_t i = 0; i < def->probe_count; i++) {
        const un_probe *p = &def->probes[i];
        const double values[] = {(double)p->kind, (double)p->axis, p->sign, p->at.x,
                                 p->at.y,         p->at.z,         p->to.x, p->to.y,
                                 p->to.z,         (double)p->solid};
        add(out, "probe %d, named ", i + 1);
        for (const char *c = p->name; *c; c++) add(out, "%c", *c == '=' || *c == '\n' ? '_' : *c);
        add_numbers(out, "", values, 10);
    }
}

static void add_sizing(lines *out)
{
    const un_scene_def *def = &out->scene->def;
    add_number(out, "sizing.depth", def->sizing.depth);
    add_number(out, "sizing.curvature", def->sizing.curvature);
    add_number(out, "sizing.solid_curvature", def->sizing.solid_curvature);
    add_number(out, "sizing.strain", def->sizing.strain);
    add_number(out, "sizing.film", def->sizing.film);
    add_number(out, "sizing.deformability", def->sizing.deformability);
    add_number(out, "sizing.sources", def->sizing.sources);
    add(out, "sizing.camera=#%016llx\n",
        def->sizing.has_camera ? (unsigned long long)camera_hash(out) : 0);
    add(out, "sizing.custom=#%016llx\n",
        def->sizing.has_custom ? (unsigned long long)custom_hash(out) : 0);
}

/* Of methods whose cells gather: the terms that they know. */
static void add_warping(lines *out)
{
    const un_scene_def *def = &out->scene->def;
    bool carried = strcmp(def->solver.surface, "level-set") == 0;
    add(out, "sizing.warp=%s\n", def->sizing.warp);
    add(out, "solver.surface=%s\n", carried ? "level-set" : "colour");
    add_number(out, "sizing.strength", def->sizing.strength);
    add(out, "sizing.follow=%d\n", def->sizing.follow);
    add_number(out, "sizing.depth", def->sizing.depth);
    add_number(out, "sizing.solid_curvature", def->sizing.solid_curvature);
    add_number(out, "sizing.strain", def->sizing.strain);
    add(out, "sizing.camera=#%016llx\n",
        def->sizing.has_camera ? (unsigned long long)camera_hash(out) : 0);
    add(out, "sizing.custom=#%016llx\n",
        def->sizing.has_custom ? (unsigned long long)custom_hash(out) : 0);
}

un_status un_likeness(un_context *ctx, const un_scene *scene, const un_method *method, char **text)
{
    const un_scene_def *def = &scene->def;
    lines out = {.ctx = ctx, .scene = scene};
    double open[6];
    for (int side = 0; side < 6; side++) open[side] = def->domain.open[side];
    add(&out, "method=%s\n", method->traits.name);
    add_vector(&out, "domain.size", def->domain.size);
    add_numbers(&out, "domain.open", open, 6);
    add_number(&out, "detail.finest", def->detail.finest);
    add_number(&out, "frames.rate", def->frames.rate);
    add_vector(&out, "gravity", def->gravity);
    add_number(&out, "fluid.density", def->fluid.density);
    add_number(&out, "fluid.viscosity", def->fluid.viscosity);
    add_matter(&out, "fluid", &def->fluid.matter);
    add_numbers(&out, "domain.slip", def->domain.slip, 6);
    if (def->fluid.surface_tension > 0)
        add_number(&out, "domain.contact_angle", def->domain.contact_angle);
    add(&out, "solver.stress=%s\nsolver.coupling=%s\n", def->solver.stress, def->solver.coupling);
    add_number(&out, "fluid.surface_tension", def->fluid.surface_tension);
    add(&out, "the shape of liquid=#%016llx\n",
        def->liquid.shape ? (unsigned long long)shape_hash(&out, def->liquid.shape) : 0);
    add_vector(&out, "liquid.velocity", def->liquid.velocity);
    add_solids(&out);
    add_sources(&out);
    add_probes(&out);
    if (method->traits.graded) add_number(&out, "sizing", def->sizing.given);
    if (method->traits.adaptive || method->traits.graded) {
        add_number(&out, "detail.coarsest", def->detail.coarsest);
        add_sizing(&out);
    }
    if (method->traits.adaptive) {
        add(&out, "solver.surface=%s\n", def->solver.surface);
        add_number(&out, "~budget.particles", def->budget.particles);
        add_number(&out, "~budget.memory", def->budget.memory);
    }
    if (method->traits.warps) add_warping(&out);
    add(&out, "~solver.kind=%s\n", def->solver.kind);
    add_number(&out, "~solver.tolerance", def->solver.tolerance);
    add_number(&out, "~solver.cfl", def->solver.cfl);
    add_number(&out, "~solver.pic", def->solver.pic);
    add_number(&out, "~solver.sheets", def->solver.sheets);
    add_number(&out, "~solver.suction", def->solver.suction);
    add_number(&out, "~solver.thickening", def->solver.thickening);
    add_number(&out, "~solver.band", def->solver.band);
    add(&out, "~solver.interpolation=%s\n", def->solver.interpolation);
    add_number(&out, "~solver.maccormack", def->solver.maccormack);
    if (out.status != UN_OK) un_free(ctx, out.text);
    *text = out.status == UN_OK ? out.text : NULL;
    return out.status;
}

/* ---- comparing ---- */

/* The line with this key, up to `=`; NULL when there is none. */
static const char *find_line(const char *text, const char *key, size_t length)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (strncmp(text, key, length) == 0 && text[length] == '=') return text;
    return NULL;
}

static un_status differs(un_context *ctx, const char *key, int length, const char *was,
                         const char *is)
{
    static const char remedy[] = "undo that change, or run without --resume to start again";
    int was_length = (int)strcspn(was, "\n"), is_length = (int)strcspn(is, "\n");
    if (*key == '~') {
        un_log(ctx, UN_LOG_WARNING,
               "%.*s was %.*s and is %.*s from here on: results differ from those of an "
               "uninterrupted run",
               length - 1, key + 1, was_length, was, is_length, is);
        return UN_OK;
    }
    if (*was == '#' || *is == '#')
        return un_fail(ctx, UN_ERROR_SCENE,
                       "cannot resume: %.*s is not what it was when the checkpoint was written; %s",
                       length, key, remedy);
    return un_fail(ctx, UN_ERROR_SCENE,
                   "cannot resume: %.*s was %.*s when the checkpoint was written and is now %.*s; "
                   "%s",
                   length, key, was_length, was, is_length, is, remedy);
}

un_status un_likeness_compare(un_context *ctx, const char *was, const char *is)
{
    for (const char *line = is; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "=\n");
        const char *other = find_line(was, line, length);
        const char *value = line[length] == '=' ? line + length + 1 : "";
        const char *before = other ? other + length + 1 : "nothing";
        size_t count = strcspn(value, "\n");
        if (strncmp(before, value, count) == 0 && (!before[count] || before[count] == '\n'))
            continue;
        UN_TRY(differs(ctx, line, (int)length, before, value));
    }
    return UN_OK;
}
