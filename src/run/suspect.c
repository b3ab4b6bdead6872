/* Is a run to be trusted? A step whose volume, speed or energy is beyond what the scene can explain
 * makes it suspect: it goes on, but a warning says so, and run.json keeps it. */
#include <stdio.h>

#include "run/loop.h"

/* Mean of the relative volume error over the last VOLUME_STEPS steps. An impact of several cells in
 * a step reads up to 0.12, for a few steps. */
#define VOLUME_BOUND 0.15
#define VOLUME_STEPS 8.0
/* Times the speed of a fall through the domain plus the fastest of liquid, sources and solids. Jets
 * of a dam break reach 3. */
#define SPEED_BOUND 4.0
/* Of the energy that the liquid would have at the speed of such a fall: what may appear from
 * nothing. Slumping particles and the ledger bring up to 0.02. */
#define ENERGY_BOUND 0.1

static double fall_speed(const un_scene_def *def)
{
    un_vec3 g = def->gravity, size = def->domain.size;
    return sqrt(2 * (fabs(g.x) * size.x + fabs(g.y) * size.y + fabs(g.z) * size.z));
}

static double fastest_body(const un_bodies *bodies, un_vec3 size)
{
    double fastest = 0;
    for (int32_t i = 0; bodies && i < bodies->count; i++) {
        const un_body *b = &bodies->body[i];
        if (!b->moves) continue;
        /* in the domain, where the liquid is */
        un_vec3 at = un_pose_apply(&b->to, b->centre);
        un_vec3 low = un_max3(b->bounds.min, un_v3(0, 0, 0)), high = un_min3(b->bounds.max, size);
        un_vec3 far = un_max3(un_sub(high, at), un_sub(at, low));
        double reach = un_length(un_max3(far, un_v3(0, 0, 0)));
        fastest = fmax(fastest, un_length(b->velocity) + un_length(b->spin) * reach);
    }
    return fastest;
}

/* Nothing brings or takes energy. */
static bool is_left_alone(const un_loop *l)
{
    bool open = false;
    for (int side = 0; side < 6; side++) open |= l->def->domain.open[side];
    return !open && l->def->source_count == 0 && !un_method_bodies(l->state)->moving;
}

static void warn(un_loop *l, int kind, const un_step *s, const char *what)
{
    size_t used = strlen(l->suspect.text);
    if (l->suspect.warned & 1 << kind) return;
    l->suspect.warned |= 1 << kind;
    un_log(l->ctx, UN_LOG_WARNING, "suspect from step %d (t = %.4g s) on: %s", s->step, s->time,
           what);
    snprintf(l->suspect.text + used, sizeof l->suspect.text - used,
             "%sfrom step %d (t = %.4g s): %s", used ? "; " : "", s->step, s->time, what);
}

void un_loop_suspect(un_loop *l, const un_step *s)
{
    const un_scene_def *def = l->def;
    char what[256];
    l->suspect.volume += (s->volume_error - l->suspect.volume) / VOLUME_STEPS;
    if (fabs(l->suspect.volume) > VOLUME_BOUND) {
        snprintf(what, sizeof what,
                 "the liquid has %.0f %% %s volume than it should; look for a solid that presses "
                 "on enclosed liquid, or walls thinner than a cell",
                 100 * fabs(l->suspect.volume), l->suspect.volume < 0 ? "less" : "more");
        warn(l, 0, s, what);
    }

    double fall = fall_speed(def), given = un_length(def->liquid.velocity);
    for (int32_t n = 0; n < def->source_count; n++)
        given = fmax(given, un_length(def->sources[n].velocity));
    l->suspect.body_speed =
        fmax(l->suspect.body_speed, fastest_body(un_method_bodies(l->state), def->domain.size));
    double explained = SPEED_BOUND * (fall + fmax(given, l->suspect.body_speed));
    if (s->max_speed > explained && explained > 0) {
        snprintf(what, sizeof what,
                 "a speed of %.3g m/s, where gravity, sources and solids explain %.3g m/s",
                 s->max_speed, explained);
        warn(l, 1, s, what);
    }

    double energy = s->energy_kinetic + s->energy_potential;
    if (!l->suspect.has_energy) l->suspect.energy = energy;
    l->suspect.has_energy = true;
    if (!is_left_alone(l)) return;
    double mass = def->fluid.density * s->volume_particles, u = fmax(fall, given);
    double scale = 0.5 * mass * u * u, rise = energy - l->suspect.energy;
    if (rise > ENERGY_BOUND * scale && scale > 0) {
        snprintf(what, sizeof what, "the energy has risen by %.3g J, and nothing has brought any",
                 rise);
        warn(l, 2, s, what);
    }
}
