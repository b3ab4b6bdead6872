/* Promises of every method: the output surface encloses the liquid that there is, in a splash too.
 */
#include "promises/promise.h"
#include "surface/surface.h"

/* A column falls and meets a post and the far wall. */
static void a_splash_keeps_its_volume(const un_method *method)
{
    world w;
    promise_begin(&w, method, CHECK_THREADS,
                  "scene { domain = { size = {1, 0.6, 0.3} }, detail = { coarsest = 4, finest = 20 "
                  "}, liquid = { box { min = {0, 0, 0}, max = {0.35, 0.4, 0.3} } }, solids = { box "
                  "{ min = {0.6, 0, 0.1}, max = {0.66, 0.6, 0.2} } } }");
    for (int32_t look = 1; look <= 4; look++) {
        un_trimesh mesh;
        world_run(&w, 0.15 * look);
        const un_particles *p = method->particles(w.state);
        check_ok(w.ctx, method->surface(w.state, &mesh));
        double flying = 0, ratio = un_surface_volume(&mesh) / un_particles_volume(w.ctx, p);
        for (int32_t q = 0; q < p->count; q++) flying += p->flags[q] & UN_PARTICLE_BALLISTIC;
        print_message("%s: %.1f %% fly, volume %.4f\n", method->traits.name,
                      100 * flying / p->count, ratio);
        check_near(ratio, 1, 0.02);
        un_trimesh_free(w.ctx, &mesh);
    }
    world_end(&w);
}

int main(void)
{
    static const promise promises[] = {
        {"a_splash_keeps_its_volume", a_splash_keeps_its_volume, method_has_particles, false},
    };
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
