/* A guarded step. The state is copied before it, which takes about a hundredth of the step. If
 * numbers go bad the copy is loaded and shorter steps are tried. If memory runs out the step is
 * tried once more after loading, which frees spare room. */
#include <stdio.h>

#include "ranks/ranks.h"
#include "run/loop.h"

#define TRIES 3
#define SHORTER 0.25
/* No liquid is this many times faster than gravity, the domain and the last step suggest. */
#define EXPLODING 100.0
/* Solids and sides this close to the fastest particle are named in the message. */
#define WALL_CELLS 4.0

static void copy_state(un_loop *l)
{
    bool alone = un_rank_count(l->ctx) == 1;
    if (!alone && !l->method->keep) l->no_copies = true;
    if (l->no_copies) return;
    un_state_clear(&l->seen);
    un_status status =
        alone ? l->method->save(l->state, &l->seen) : l->method->keep(l->state, &l->seen);
    if (status == UN_OK) status = un_state_copy(&l->before, &l->seen);
    status = un_ranks_agree(l->ctx, status); /* all go back, or none */
    if (status == UN_OK) return;
    /* Then without a copy: the step itself needs the memory more. */
    un_ranks_recover(l->ctx);
    un_state_free(&l->before);
    l->no_copies = true;
}

static bool is_finite(const un_step *s)
{
    return isfinite(s->volume) && isfinite(s->volume_error) && isfinite(s->energy_kinetic) &&
           isfinite(s->energy_potential) && un_finite3(s->momentum) && isfinite(s->max_speed);
}

static un_status watch(const un_loop *l, const un_step *s)
{
    un_vec3 size = l->def->domain.size;
    double longest = fmax(size.x, fmax(size.y, size.z));
    double usual = l->max_speed + longest * l->def->frames.rate +
                   sqrt(2 * un_length(l->def->gravity) * longest);
    if (is_finite(s) && s->max_speed <= EXPLODING * usual) return UN_OK;
    return un_fail(l->ctx, UN_ERROR_NUMERIC,
                   "step %d (t = %.6g s) leaves the liquid with a speed of %.3g m/s", s->step,
                   s->time, s->max_speed);
}

typedef struct neighbour {
    double distance;
    char name[160];
} neighbour;

/* Keeps the two nearest, the nearest first. */
static void keep_nearest(neighbour near[2], double distance, const char *label, const char *name)
{
    if (!(distance < near[1].distance)) return;
    neighbour *n = &near[1];
    if (distance < near[0].distance) near[1] = near[0], n = &near[0];
    n->distance = distance;
    snprintf(n->name, sizeof n->name, "%s%s%s%s", label, *name ? " \"" : "", name,
             *name ? "\"" : "");
}

/* The solids and sides that a place lies between. */
static void describe_walls(const un_loop *l, un_vec3 x, char *text, size_t size)
{
    static const char *const sides[] = {"the left side", "the right side", "the bottom",
                                        "the top",       "the back side",  "the front side"};
    neighbour near[2] = {{.distance = INFINITY}, {.distance = INFINITY}};
    const un_bodies *bodies = un_method_bodies(l->state);
    const double at[3] = {x.x, x.y, x.z};
    const double top[3] = {l->def->domain.size.x, l->def->domain.size.y, l->def->domain.size.z};
    double reach = WALL_CELLS * l->estimate.cell_size;
    for (int32_t i = 0; i < bodies->count; i++)
        keep_nearest(near, un_body_distance(&bodies->body[i], x), l->def->solids[i].label,
                     bodies->body[i].name);
    for (int s = 0; s < 2 * l->def->domain.dim; s++)
        if (!l->def->domain.open[s])
            keep_nearest(near, s & 1 ? top[s / 2] - at[s / 2] : at[s / 2], sides[s], "");
    size_t used = 0;
    for (int i = 0; i < 2 && near[i].distance < reach && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " and " : ", next to ",
                                 near[i].name);
}

/* The fastest particle, for the message. */
static void describe_place(const un_loop *l, char *text, size_t size)
{
    const un_particles *p = l->method->particles ? l->method->particles(l->state) : NULL;
    int32_t worst = -1;
    double fastest = -1;
    *text = 0;
    if (!p) return;
    for (int32_t q = 0; q < p->count; q++) {
        un_vec3 v = un_particle_velocity(p, q);
        double speed = un_dot(v, v);
        if (!un_finite3(un_particle_position(p, q))) continue;
        if (!(speed <= fastest)) worst = q, fastest = speed;
        if (!isfinite(speed)) break;
    }
    if (worst < 0) return;
    un_vec3 x = un_particle_position(p, worst);
    int used =
        snprintf(text, size, "; the fastest particle is at (%.4g, %.4g, %.4g)", x.x, x.y, x.z);
    if (used > 0 && (size_t)used < size) describe_walls(l, x, text + used, size - (size_t)used);
}

un_status un_loop_go_back(un_loop *l)
{
    un_ranks_recover(l->ctx);
    un_method_destroy(l->method, l->state);
    l->state = NULL;
    return un_method_create(l->method, l->ctx, l->scene, &l->before, &l->state);
}

/* A state loaded from a copy has no spare room in its arrays, and gives the same results. */
un_status un_loop_make_room(un_loop *l)
{
    if (un_rank_count(l->ctx) > 1) return UN_ERROR_MEMORY; /* the others do not know */
    if (l->before.count == 0) copy_state(l);
    if (l->before.count == 0) return UN_ERROR_MEMORY;
    UN_TRY(un_loop_go_back(l));
    return UN_OK;
}

un_status un_loop_step(un_loop *l, double dt, un_step *step)
{
    copy_state(l);
    un_status status = l->method->step(l->state, dt, step);
    if (status == UN_ERROR_MEMORY && l->before.count > 0 && un_loop_make_room(l) == UN_OK)
        status = l->method->step(l->state, dt, step);
    if (status == UN_OK) status = watch(l, step);
    if (status != UN_ERROR_NUMERIC || l->before.count == 0) return status;
    char cause[512], place[480];
    snprintf(cause, sizeof cause, "%s", un_context_message(l->ctx));
    describe_place(l, place, sizeof place);
    for (int tries = 0; tries < TRIES && status == UN_ERROR_NUMERIC; tries++) {
        dt *= SHORTER;
        un_log(l->ctx, UN_LOG_WARNING, "%s%s; trying again with a step of %.3g s", cause, place,
               dt);
        UN_TRY(un_loop_go_back(l));
        status = l->method->step(l->state, dt, step);
        if (status == UN_OK) status = watch(l, step);
    }
    if (status != UN_ERROR_NUMERIC) return status;
    return un_fail(l->ctx, status,
                   "%s%s. Shorter steps, down to %.3g s, do not help; the state before it, step "
                   "%d, is kept and can be resumed",
                   cause, place, dt, l->step);
}
