/* Promises of every method: scenes that are merely extreme run, and leave sound numbers.
 * test-labels: memory slow */
#include "promises/promise.h"

typedef struct extreme {
    const char *name, *text;
    double end; /* s */
    int steps;  /* at most */
} extreme;

static const extreme extremes[] = {
    {"liquid inside a solid",
     "scene { detail = { coarsest = 4, finest = 8 }, liquid = { sphere { center = {0.5, 0.4, 0},"
     " radius = 0.25 } }, solids = { sphere { center = {0.5, 0.4, 0}, radius = 0.35 } } }",
     0.1, 6},
    {"a solid that fills the domain",
     "scene { detail = { coarsest = 4, finest = 8 }, liquid = { box { min = {0, 0, -1}, max = {1,"
     " 0.5, 1} } }, solids = { box { min = {-1, -1, -1}, max = {2, 2, 2} } } }",
     0.1, 6},
    {"a thimble",
     "scene { domain = { size = {1e-3, 1e-3, 1e-3} }, detail = { coarsest = 4, finest = 8 },"
     " liquid = { box { min = {0, 0, -1}, max = {0.4e-3, 0.8e-3, 1e-3} } } }",
     0.01, 12},
    {"an ocean",
     "scene { domain = { size = {1e5, 1e5, 1e5} }, detail = { coarsest = 4, finest = 8 },"
     " liquid = { box { min = {0, 0, -1}, max = {0.4e5, 0.8e5, 1e5} } } }",
     40, 12},
    {"a thousand metres a second",
     "scene { detail = { coarsest = 4, finest = 8 }, liquid = { box { min = {0, 0, -1}, max = {0.4,"
     " 0.6, 1} }, velocity = {1000, 0, 0} }, solids = { sphere { center = {0.7, 0.3, 0},"
     " radius = 0.15 } } }",
     0.005, 24},
    {"a thousand times gravity",
     "scene { gravity = {0, -1e4, 0}, fluid = { density = 1e6 }, detail = { coarsest = 4, finest ="
     " 8 }, liquid = { box { min = {0, 0.3, -1}, max = {0.4, 0.9, 1} } } }",
     0.01, 24},
    {"little more than one cell across",
     "scene { domain = { size = {1, 0.26, 0.26} }, detail = { coarsest = 4, finest = 4 },"
     " liquid = { box { min = {0, 0, -1}, max = {0.5, 0.2, 0.25} } } }",
     0.1, 12},
    {"one cell of liquid",
     "scene { detail = { coarsest = 4, finest = 8 }, liquid = { box { min = {0.5, 0, -1}, max ="
     " {0.62, 0.12, 0.62} } } }",
     0.1, 12},
    {"an open box",
     "scene { domain = { open = {'left', 'right', 'bottom', 'top'} }, detail = {"
     " coarsest = 4, finest = 8 }, liquid = { box { min = {0.1, 0.1, -1}, max = {0.6, 0.6, 0.6} }"
     " } }",
     0.8, 60},
    {"a plate much thinner than a cell",
     "scene { domain = { size = {1, 0.6, 0.4} }, detail = { coarsest = 6, finest = 12 }, liquid = {"
     " box { min = {0, 0, -1}, max = {0.45, 0.5, 0.4} }, velocity = {4, 0, 0} }, solids = { box {"
     " min = {0.5, -1, -1}, max = {0.5008, 2, 2} } } }",
     0.2, 30},
    {"a floor of a sixteenth of a cell under a fast fall",
     "scene { detail = { coarsest = 6, finest = 12 }, liquid = { box { min = {0.2, 0.6, -1}, max ="
     " {0.8, 0.9, 0.8} }, velocity = {0, -100, 0} }, solids = { box { min = {-1, 0.295, -1}, max ="
     " {2, 0.3, 2} } } }",
     0.05, 24},
    {"gravity that points sideways",
     "scene { detail = { coarsest = 4, finest = 8 }, gravity = {9.81, 0, 0}, liquid = { box { min ="
     " {0, 0, 0}, max = {1, 0.4, 1} } } }",
     0.3, 24},
    {"an emitter of 300 m/s",
     "scene { detail = { coarsest = 6, finest = 12 }, sources = { emitter { shape = sphere { center"
     " = {0.2, 0.5, 0}, radius = 0.1 }, velocity = {300, 0, 0} } } }",
     0.01, 24},
    {"a ball that jumps to and fro",
     "scene { detail = { coarsest = 6, finest = 12 }, liquid = { box { min = {0, 0, -1}, max = {1,"
     " 0.4, 1} } }, solids = { sphere { center = {0.5, 0.2, 0}, radius = 0.1, pose = function(t)"
     " return { by = {0.3 * math.sin(1e6 * t), 0, 0} } end } } }",
     0.1, 12},
    {"a ball of 20 m/s that goes through the tank",
     "scene { domain = { size = {1, 0.6, 0.6} }, detail = { coarsest = 6, finest = 12 }, liquid = {"
     " box { min = {0, 0, -1}, max = {1, 0.3, 0.6} } }, solids = { sphere { center = {-0.3, 0.15,"
     " 0}, radius = 0.12, velocity = {20, 0, 0} } } }",
     0.08, 24},
};

static void soundly(const un_method *method, const extreme *e)
{
    world w, again;
    un_trimesh mesh;
    un_cells cells;
    un_state read;
    promise_begin(&w, method, CHECK_THREADS, e->text);
    promise_finite(&w, e->name);
    int steps = CHECK_SHORT ? (e->steps + 2) / 3 : e->steps;
    for (int step = 0; step < steps && e->end - w.time > 1e-9; step++) {
        world_step(&w, e->end);
        promise_finite(&w, e->name);
        promise_inside(&w);
    }
    const un_particles *p = method->particles ? method->particles(w.state) : NULL;
    for (int64_t q = 0; p && q < p->count; q++) {
        un_vec3 x = un_particle_position(p, q);
        for (int32_t s = 0; s < w.scene->def.solid_count; s++)
            if (!w.scene->def.solids[s].moves)
                assert_true(un_shape_distance(w.scene->def.solids[s].shape, x) >= -1e-6);
        if (strstr(e->name, "plate") && x.x > 0.5008)
            fail_msg("%s: a particle at x = %g", e->name, x.x);
    }
    un_vec3 size = w.scene->def.domain.size;
    check_ok(w.ctx, method->surface(w.state, &mesh));
    for (int32_t v = 0; v < mesh.vertex_count; v++) {
        un_vec3 x = mesh.position[v];
        double hair = 1e-6 * size.x;
        assert_true(x.x >= -hair && x.y >= -hair && x.z >= -hair);
        assert_true(x.x <= size.x + hair && x.y <= size.y + hair && x.z <= size.z + hair);
        assert_true(!mesh.velocity || isfinite(un_length(mesh.velocity[v])));
    }
    un_trimesh_free(w.ctx, &mesh);
    check_ok(w.ctx, method->cells(w.state, &cells));
    for (int64_t c = 0; c < cells.count; c++)
        assert_true(isfinite(cells.pressure[c]) && isfinite(un_length(cells.velocity[c])));
    un_cells_free(w.ctx, &cells);
    for (int kind = 0; kind < 3; kind++) {
        un_probe probe = {.kind = (un_probe_kind)kind, .sign = 1, .at = un_scale(size, 0.1)};
        assert_false(isinf(method->probe(w.state, &probe)));
    }
    /* and what it has saved can be loaded */
    bytes b = promise_save(&w);
    promise_load(&again, method, 1, e->text);
    un_state_init(&read, again.ctx);
    check_ok(again.ctx, bytes_decode(&read, &b));
    check_ok(again.ctx, un_method_create(method, again.ctx, again.scene, &read, &again.state));
    un_state_free(&read);
    free(b.at);
    world_end(&again);
    world_end(&w);
}

static void extremes_run_soundly(const un_method *method)
{
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
        if (getenv("VERBOSE")) print_message("%s: %s\n", method->traits.name, extremes[i].name);
        soundly(method, &extremes[i]);
    }
}

int main(void)
{
    static const promise promises[] = {{"extremes_run_soundly", extremes_run_soundly, NULL, true}};
    check_races_in("none: small scenes of one thread each");
    return promises_run(promises, sizeof promises / sizeof *promises, NULL, NULL);
}
