/* Method `octree` over ranks: after every step each rank has what one rank has, bit by bit: the
 * tree, what is known at leaves and faces, its own particles, and the sums over all. */
#include "base/context.h"
#include "method/octree.h"
#include "output/scratch.h"

#include "group.h"

#include <sys/mman.h>
#include <unistd.h>

/* Solids that stand, move and float; what comes and goes; a thin wall; a budget. */
static const char deep_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7}, open = {'top'} },\n"
    "detail = { coarsest = 4, finest = 16 }, frames = { count = 3, rate = 20 },\n"
    "fluid = { surface_tension = 0.07 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.3, 0.6, 0.7} },\n"
    "                   box { min = {0, 0, 0}, max = {1, 0.1, 0.7} } }, velocity = {0.5, 0, 0.2} "
    "},\n"
    "solids = { sphere { center = {0.6, 0.1, 0.3}, radius = 0.12, friction = 0.3 },\n"
    "  box { min = {0.8, 0.1, 0.2}, max = {0.9, 0.5, 0.6}, velocity = {-0.5, 0, 0.1} },\n"
    "  box { min = {0.45, 0, 0}, max = {0.455, 0.3, 0.5} },\n"
    "  solid { sphere { center = {0.15, 0.55, 0.35}, radius = 0.1 }, density = 400 } },\n"
    "sources = { emitter { shape = sphere { center = {0.2, 0.3, 0.35}, radius = 0.1 },\n"
    "                      velocity = {1, -1, 0}, to = 0.15 },\n"
    "  drain { shape = box { min = {0.9, 0, 0}, max = {1, 0.05, 0.7} } } },\n"
    "budget = { particles = 3000 } }\n";

static const char flat_text[] =
    "scene { method = 'octree', domain = { size = {1, 1} }, detail = { coarsest = 8, finest = 48 "
    "},\n"
    "frames = { count = 3, rate = 20 }, liquid = { box { min = {0, 0}, max = {0.4, 0.8} } },\n"
    "solids = { sphere { center = {0.6, 0.1}, radius = 0.1 } } }\n";

/* Small, and viscous. */
static const char thick_text[] =
    "scene { method = 'octree', domain = { size = {1, 1, 0.5} }, detail = { coarsest = 4, finest = "
    "12 },\n"
    "frames = { count = 3, rate = 20 }, fluid = { viscosity = 5 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.4, 0.5, 0.5} } },\n"
    "solids = { sphere { center = {0.6, 0.1, 0.25}, radius = 0.15 } } }\n";

/* Thin walls, one of which moves, a disc that floats, an emitter. */
static const char plates_text[] =
    "scene { method = 'octree', domain = { size = {1, 1} }, detail = { coarsest = 8, finest = 48 "
    "},\n"
    "frames = { count = 3, rate = 20 }, liquid = { box { min = {0, 0}, max = {0.4, 0.6} } },\n"
    "solids = { box { min = {0.4, 0}, max = {0.405, 0.7} },\n"
    "  box { min = {0.2, 0.1}, max = {0.21, 0.5}, velocity = {-0.5, 0, 0} },\n"
    "  solid { sphere { center = {0.3, 0.55}, radius = 0.06 }, density = 400 } },\n"
    "sources = { emitter { shape = sphere { center = {0.1, 0.6}, radius = 0.05 }, velocity = {1, "
    "-1} "
    "} } }\n";

/* Far from the thin wall a thick one moves: where leaves are parted, it does so for all. */
static const char apart_text[] =
    "scene { method = 'octree', domain = { size = {1, 1} }, detail = { coarsest = 8, finest = 48 "
    "},\n"
    "frames = { count = 3, rate = 20 }, liquid = { box { min = {0, 0}, max = {1, 0.8} } },\n"
    "solids = { box { min = {0.1, 0}, max = {0.105, 0.3} },\n"
    "  sphere { center = {0.75, 0.7}, radius = 0.15, velocity = {-1, 0, 0} } } }\n";

/* Ranks know some of the leaves only. Liquid that hits a wall and parts from it. */
static const char plain_text[] =
    "scene { method = 'octree', domain = { size = {1, 1, 0.5} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "solver = { cfl = 2 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.3, 0.6, 0.5} },\n"
    "                   sphere { center = {0.7, 0.6, 0.3}, radius = 0.1 } }, velocity = {2, 0.5, "
    "0} } }\n";

/* Much air. */
static const char wide_text[] =
    "scene { method = 'octree', domain = { size = {1, 1, 1} }, detail = { coarsest = 32, finest = "
    "32 }, frames = { count = 3, rate = 20 }, liquid = { box { min = {0, 0, 0}, max = {0.25, 0.3, "
    "0.25} }, velocity = {2, 0, 0} } }\n";

static const char plain_flat_text[] =
    "scene { method = 'octree', domain = { size = {1, 1} }, detail = { coarsest = 16, finest = 128 "
    "},\n"
    "frames = { count = 3, rate = 20 }, sizing = { strain = 1, film = 1 },\n"
    "liquid = { union { box { min = {0, 0}, max = {0.4, 0.7} },\n"
    "                   sphere { center = {0.7, 0.5}, radius = 0.1 } }, velocity = {3, 0} } }\n";

/* Solids that stand, that stand askew, and that move, among leaves of all sizes. */
static const char solid_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7}, open = {'top'} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.3, 0.6, 0.7} },\n"
    "                   box { min = {0, 0, 0}, max = {1, 0.15, 0.7} } }, velocity = {1.5, 0, 0.3} "
    "},\n"
    "solids = { sphere { center = {0.6, 0.15, 0.3}, radius = 0.14, friction = 0.3 },\n"
    "  move { box { min = {0.3, 0, 0.4}, max = {0.6, 0.3, 0.7} }, rotate = {10, 25, 15},\n"
    "         about = {0.4, 0.1, 0.5} },\n"
    "  solid { box { min = {0.75, 0.05, 0.1}, max = {0.95, 0.4, 0.6} },\n"
    "          pose = function(t) return { rotate = {0, 200 * t, 20}, about = {0.8, 0.2, 0.3},\n"
    "                                      by = {-0.5 * t, 0, 0.1 * t} } end } } }\n";

/* A tank with a thin wall across, askew, and a plate that moves through fast liquid. */
static const char thin_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.6, 0.5} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.4, 0.5, 0.5} },\n"
    "                   box { min = {0, 0, 0}, max = {1, 0.12, 0.5} } }, velocity = {2, 0, 0.2} "
    "},\n"
    "solids = { move { box { min = {0.45, 0, -0.1}, max = {0.46, 0.35, 0.6} }, rotate = {0, 20, "
    "10},\n"
    "                  about = {0.45, 0, 0.25} },\n"
    "  solid { box { min = {0.7, 0.05, 0.1}, max = {0.71, 0.4, 0.4} }, velocity = {-0.8, 0, 0.1} } "
    "} }\n";

/* Thin plates far ahead of liquid that flies. */
static const char flying_text[] =
    "scene { method = 'octree', domain = { size = {1, 1, 1} }, detail = { coarsest = 24, finest = "
    "24 "
    "}, frames = { count = 3, rate = 20 },\n"
    "liquid = { box { min = {0.3, 0.3, 0.2}, max = {0.7, 0.7, 0.5} }, velocity = {0.2, 0.3, 4} },\n"
    "solids = { box { min = {0.2, 0.2, 0.67}, max = {0.5, 0.8, 0.68} },\n"
    "           box { min = {0.5, 0.2, 0.55}, max = {0.8, 0.8, 0.56} },\n"
    "           box { min = {0.2, 0.49, 0.55}, max = {0.8, 0.5, 0.9} } } }\n";

/* The same in small, at rest, with walls that stand still. */
static const char still_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.5, 0.5} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.5, 0.3, 0.5} } },\n"
    "solids = { box { min = {0.48, 0, 0}, max = {0.5, 0.45, 0.3} },\n"
    "  cylinder { from = {0.75, 0, 0.25}, to = {0.75, 0.5, 0.25}, radius = 0.08, friction = 1 } } "
    "}\n";

/* Emitters in the liquid, in the air and in both, in parts of several ranks; a drain; a budget. */
static const char source_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7}, open = {'top', 'right'} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {0.7, 0.3, 0.7} }, velocity = {0.5, 0, 0.2} },\n"
    "solids = { sphere { center = {0.6, 0.1, 0.3}, radius = 0.12 } },\n"
    "sources = { emitter { shape = sphere { center = {0.2, 0.3, 0.35}, radius = 0.1 },\n"
    "                      velocity = {1, -1, 0}, to = 0.06 },\n"
    "  emitter { shape = cylinder { from = {0.45, 0.15, 0.2}, to = {0.55, 0.15, 0.2}, radius = "
    "0.08 "
    "}, velocity = {2, 0, 0} },\n"
    "  emitter { shape = sphere { center = {0.5, 0.6, 0.5}, radius = 0.08 }, velocity = {0, -1.5, "
    "1} "
    "},\n"
    "  drain { shape = box { min = {0.3, 0, 0.5}, max = {0.6, 0.08, 0.7} } } },\n"
    "budget = { particles = 30000 } }\n";

/* Viscous liquid is to come: a step has everything but systems. */
static const char dry_text[] =
    "scene { method = 'octree', domain = { size = {1, 1, 0.5}, slip = { left = 0.1 } },\n"
    "detail = { coarsest = 8, finest = 16 }, frames = { count = 3, rate = 20 }, fluid = { "
    "viscosity "
    "= 5 },\n"
    "sources = { emitter { shape = sphere { center = {0.5, 0.7, 0.25}, radius = 0.1 }, from = 0.1 "
    "} "
    "},\n"
    "solids = { box { min = {0.4, 0, 0}, max = {0.41, 0.7, 0.4} },\n"
    "  solid { sphere { center = {0.8, 0.3, 0.25}, radius = 0.1 }, density = 500 } } }\n";

/* Viscous liquid, with all that goes with it. */
static const char viscous_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7}, open = {'top'} },\n"
    "detail = { coarsest = 4, finest = 16 }, frames = { count = 3, rate = 20 },\n"
    "fluid = { surface_tension = 0.07, viscosity = 2 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.3, 0.6, 0.7} },\n"
    "                   box { min = {0, 0, 0}, max = {1, 0.15, 0.7} } }, velocity = {0.5, 0, 0.2} "
    "},\n"
    "solids = { sphere { center = {0.6, 0.1, 0.3}, radius = 0.12 },\n"
    "  box { min = {0.8, 0.1, 0.2}, max = {0.9, 0.5, 0.6}, velocity = {-0.5, 0, 0.1} },\n"
    "  solid { sphere { center = {0.15, 0.55, 0.35}, radius = 0.1 }, density = 400 } },\n"
    "sources = { emitter { shape = sphere { center = {0.2, 0.3, 0.35}, radius = 0.1 },\n"
    "                      velocity = {1, -1, 0}, to = 0.15 } } }\n";

/* Viscous liquid among leaves of all sizes: a sheet from an emitter that folds, over the borders of
 * parts; a drop; a pillar that liquid sticks to and a ramp that it slides on. */
static const char syrup_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7}, open = {'top'}, slip = { left = "
    "0.02 } },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "fluid = { viscosity = 3 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.4, 0.4, 0.7} },\n"
    "                   box { min = {0, 0, 0}, max = {1, 0.12, 0.7} },\n"
    "                   sphere { center = {0.75, 0.45, 0.3}, radius = 0.12 } }, velocity = {1, 0, "
    "0.2} },\n"
    "solids = { cylinder { from = {0.6, 0, 0.45}, to = {0.6, 0.8, 0.45}, radius = 0.07 },\n"
    "  solid { sphere { center = {0.3, 0, 0.2}, radius = 0.2 }, slip = 0.05 } },\n"
    "sources = { emitter { shape = box { min = {0.47, 0.42, 0.1}, max = {0.54, 0.5, 0.6} },\n"
    "                      velocity = {0, -3, 0} } } }\n";

/* Bodies that viscous liquid moves, light and heavy, and a wall that moves through it. */
static const char dragged_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "fluid = { viscosity = 20 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {1, 0.35, 0.7} }, velocity = {0.6, 0, 0.2} },\n"
    "solids = { solid { sphere { center = {0.45, 0.35, 0.4}, radius = 0.13 }, density = 100 },\n"
    "  solid { box { min = {0.585, 0.25, 0.35}, max = {0.85, 0.4, 0.65} }, density = 600, spin = "
    "{0, "
    "2, 1} },\n"
    "  solid { sphere { center = {0.2, 0.15, 0.4}, radius = 0.1 }, density = 2500 },\n"
    "  box { min = {0.9, 0.1, 0}, max = {0.97, 0.5, 0.7}, velocity = {-0.8, 0, 0} } } }\n";

/* Viscous liquid on both sides of thin walls, of which one stands askew and one moves. */
static const char sticky_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.6, 0.5} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "fluid = { viscosity = 2 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.7, 0.4, 0.5} },\n"
    "                   box { min = {0, 0, 0}, max = {1, 0.2, 0.5} } }, velocity = {1.5, 0, 0.2} "
    "},\n"
    "solids = { move { box { min = {0.45, 0, -0.1}, max = {0.46, 0.35, 0.6} }, rotate = {0, 20, "
    "10},\n"
    "                  about = {0.45, 0, 0.25} },\n"
    "  box { min = {0.25, 0, 0}, max = {0.255, 0.5, 0.27} },\n"
    "  solid { box { min = {0.7, 0.05, 0.1}, max = {0.71, 0.4, 0.4} }, velocity = {-0.8, 0, 0.1} } "
    "} }\n";

/* Bodies that the liquid moves: light and heavy, one of which turns; two touch, and a wall that
 * moves touches them. */
static const char body_text[] =
    "scene { method = 'octree', domain = { size = {1, 0.8, 0.7} },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 20 },\n"
    "liquid = { box { min = {0, 0, 0}, max = {1, 0.35, 0.7} }, velocity = {0.6, 0, 0.2} },\n"
    "solids = { solid { sphere { center = {0.45, 0.37, 0.4}, radius = 0.13 }, density = 30 },\n"
    "  solid { box { min = {0.585, 0.3, 0.35}, max = {0.85, 0.45, 0.65} }, density = 600, spin = "
    "{0, "
    "2, 1} },\n"
    "  solid { sphere { center = {0.2, 0.15, 0.4}, radius = 0.1 }, density = 2500 },\n"
    "  box { min = {0.9, 0.1, 0}, max = {0.97, 0.5, 0.7}, velocity = {-0.8, 0, 0} } } }\n";

/* Surface tension at solids of several angles, one of which floats, among cells of all sizes. */
static const char drops_text[] =
    "scene { method = 'octree', domain = { size = {0.06, 0.06, 0.1}, contact_angle = 60 },\n"
    "detail = { coarsest = 8, finest = 32 }, frames = { count = 3, rate = 60 },\n"
    "fluid = { surface_tension = 0.07 },\n"
    "liquid = { union { box { min = {0, 0, 0}, max = {0.06, 0.02, 0.1} },\n"
    "                   sphere { center = {0.03, 0.045, 0.06}, radius = 0.012 } },\n"
    "           velocity = {0.2, -0.3, 0.1} },\n"
    "solids = { solid { sphere { center = {0.03, 0.02, 0.03}, radius = 0.012 }, density = 400,\n"
    "                   contact_angle = 110 },\n"
    "  box { min = {0.01, 0, 0.07}, max = {0.05, 0.03, 0.09}, contact_angle = 40 } } }\n";

static un_scene *load(un_context *ctx, const char *text)
{
    un_scene *scene;
    scratch_write("scene.lua", text, strlen(text));
    check_ok(ctx, un_scene_load(ctx, scratch_path("scene.lua"), NULL, 0, &scene));
    return scene;
}

#define SAME(a, b, count) assert_memory_equal(a, b, (size_t)(count) * sizeof *(a))

/* What is known of leaves that this rank knows, of which others may have told. */
static void compare_known(const un_octree_flip *mine, const un_octree_flip *all)
{
    const un_leaves *m = &mine->leaves, *n = &all->leaves;
    assert_int_equal(m->face_count, n->face_count);
    for (int32_t k = 0; k < un_leaves_runs(m); k++) {
        un_part run = un_leaves_run(m, k), faces = un_leaves_face_run(m, k);
        int64_t count = run.end - run.begin;
        SAME(m->x + run.begin, n->x + run.begin, count);
        SAME(m->near + run.begin * m->near_count, n->near + run.begin * m->near_count,
             count * m->near_count);
        for (int64_t c = run.begin; c < run.end; c++)
            for (int side = 0; side < 2 * m->dim && un_leaves_knows(m, c, 1); side++) {
                int32_t f = m->side[c][side], g = n->side[c][side];
                assert_int_equal(f < 0, g < 0);
                if (f >= 0)
                    assert_int_equal(f, g);
                else
                    SAME(m->group[~f], n->group[~g], un_leaves_group_size(m));
            }
        SAME(mine->at.phi + run.begin, all->at.phi + run.begin, count);
        SAME(m->face_side + faces.begin, n->face_side + faces.begin, faces.end - faces.begin);
        SAME(m->face_other + faces.begin, n->face_other + faces.begin, faces.end - faces.begin);
        SAME(mine->at.u + faces.begin, all->at.u + faces.begin, faces.end - faces.begin);
        SAME(mine->at.known + faces.begin, all->at.known + faces.begin, faces.end - faces.begin);
    }
}

static int forgotten, kept; /* how often pages were looked for; pages that were there */

/* Whole pages of leaves that this rank does not know take up no memory. They do from then on: the
 * next step is to give them back. */
static void check_forgotten(const un_leaves *m)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)m->near;
    size_t each = (size_t)m->near_count * sizeof *m->near;
    int64_t known = 0, pages = 0;
    for (int32_t k = 0; un_leaves_in_parts(m) && k <= un_leaves_runs(m); k++) {
        int64_t next = k < un_leaves_runs(m) ? un_leaves_run(m, k).begin : m->count;
        uintptr_t from = (begin + (size_t)known * each + page - 1) & ~(page - 1);
        uintptr_t to = (begin + (size_t)next * each) & ~(page - 1);
        for (; next - known >= 1024 && from < to; from += page, pages++) {
            unsigned char there;
            assert_int_equal(mincore((void *)from, page, &there), 0);
            kept += there & 1;
            memset((void *)from, 0, page);
        }
        if (k < un_leaves_runs(m)) known = un_leaves_run(m, k).end;
    }
    forgotten += pages > 0;
}

static void compare_bodies(const un_bodies *a, const un_bodies *b)
{
    for (int32_t k = 0; k < a->count; k++) {
        SAME(&a->body[k].to, &b->body[k].to, 1);
        SAME(&a->body[k].velocity, &b->body[k].velocity, 1);
        SAME(&a->body[k].spin, &b->body[k].spin, 1);
    }
}

/* Velocities are prepared only where all that they are made from is known. */
static void check_reached(const un_octree_flip *s)
{
    const un_leaves *m = &s->leaves;
    uint8_t *reached = malloc((size_t)m->count + 1);
    assert_non_null(reached);
    un_transfer_reached_leaves(s->core.ctx, reached, m, &s->markers.bins);
    for (int32_t c = 0; c < m->count; c++) assert_true(!reached[c] || un_leaves_knows(m, c, 1));
    free(reached);
}

/* mine: of this rank; all: of one. */
static void compare(const un_octree_flip *mine, const un_octree_flip *all)
{
    const un_particles *p = &mine->markers.particles, *q = &all->markers.particles;
    const un_particle_share *s = mine->markers.share;
    int64_t first = s->own.begin;
    assert_int_equal(s->own.total, q->count);
    assert_int_equal(s->own.end - first, p->count);
    assert_int_equal(mine->tree.leaf_count, all->tree.leaf_count);
    SAME(mine->tree.key, all->tree.key, all->tree.leaf_count);
    un_part leaves = un_leaves_own(&mine->leaves);
    SAME(mine->at.colour + leaves.begin, all->at.colour + leaves.begin, leaves.end - leaves.begin);
    SAME(mine->at.p + leaves.begin, all->at.p + leaves.begin, leaves.end - leaves.begin);
    SAME(un_octree_pressure(mine) + leaves.begin, un_octree_pressure(all) + leaves.begin,
         leaves.end - leaves.begin);
    compare_known(mine, all);
    for (int a = 0; a < 3; a++) {
        SAME(p->x[a], q->x[a] + first, p->count);
        SAME(p->v[a], q->v[a] + first, p->count);
    }
    SAME(p->volume, q->volume + first, p->count);
    SAME(p->size, q->size + first, p->count);
    SAME(p->flags, q->flags + first, p->count);
    SAME(p->fall, q->fall + first, p->count);
    SAME(mine->markers.depth, all->markers.depth + first, p->count);
    SAME(mine->markers.bins.tet, all->markers.bins.tet + first, p->count);
    if (mine->core.step_count > 0) check_forgotten(&mine->leaves);
    compare_bodies(mine->core.bodies, all->core.bodies);
    check_reached(mine);
    leaves = un_leaves_own(&mine->leaves);
    for (int32_t k = 0; k < p->count; k++)
        assert_in_range(mine->markers.bins.tet[k], leaves.begin, leaves.end - 1);
}

static void compare_reports(const un_step *a, const un_step *b)
{
    assert_int_equal(a->particles, b->particles);
    assert_int_equal(a->ballistic, b->ballistic);
    assert_int_equal(a->cells, b->cells);
    assert_true(a->volume == b->volume && a->volume_error == b->volume_error);
    assert_true(a->energy_kinetic == b->energy_kinetic && a->momentum.x == b->momentum.x);
    assert_true(a->max_speed == b->max_speed && a->max_divergence == b->max_divergence);
    assert_int_equal(a->pressure_iterations, b->pressure_iterations);
    assert_int_equal(a->viscous_iterations, b->viscous_iterations);
}

static void follow(const char *text, int steps, double dt)
{
    un_context *alone = check_context(), *ctx = group_context();
    const un_method *method = &un_method_octree;
    void *one, *many;
    un_scene *scene = load(alone, text);
    check_ok(alone, un_method_create(method, alone, scene, NULL, &one));
    check_ok(ctx, un_method_create(method, ctx, scene, NULL, &many));
    if (un_ranks_count(group) > 1) compare(many, one);
    for (int step = 0; step < steps; step++) {
        un_step a, b;
        check_ok(alone, method->step(one, dt, &a));
        check_ok(ctx, method->step(many, dt, &b));
        compare_reports(&a, &b);
        assert_true(a.viscous_iterations > 0 || !((un_octree_flip *)one)->thick.any);
        if (un_ranks_count(group) == 1) continue;
        assert_true(un_leaves_in_parts(&((un_octree_flip *)many)->leaves));
        compare(many, one);
    }
    assert_true(method->step_limit(one) == method->step_limit(many));
    check_ok(ctx, method->gather(many, UN_SHOW_ALL | UN_SHOW_SURFACE));
    if (un_ranks_rank(group) == 0 && ((un_octree_flip *)one)->tree.dim == 2) { /* for the surface */
        const un_particles *p = method->particles(many), *q = method->particles(one);
        assert_int_equal(p->count, q->count);
        SAME(p->x[0], q->x[0], q->count);
        SAME(method->depth(many), method->depth(one), q->count);
    }
    un_method_destroy(method, one);
    un_method_destroy(method, many);
    un_scene_destroy(scene);
    un_context_destroy(ctx);
    check_context_end(alone);
}

static void steps_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(deep_text, 7, 0.02);
    follow(viscous_text, 4, 0.02);
}

static void steps_in_parts_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(plain_text, 5, 0.012);
    follow(plain_flat_text, 9, 0.01);
    follow(plain_flat_text, 3, 0.05); /* paths lead beyond what ranks know */
}

static void steps_beside_solids_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(solid_text, 7, 0.015);
    follow(thin_text, 7, 0.015);
    follow(thin_text, 3, 0.06); /* paths lead beyond what ranks know */
    follow(flying_text, 2, 0.06);
    follow(still_text, 5, 0.02);
}

static void steps_with_sources_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(source_text, 9, 0.012);
}

static void steps_with_bodies_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(body_text, 7, 0.015);
}

static void viscous_steps_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(syrup_text, 6, 0.012);
    follow(dragged_text, 6, 0.012);
    follow(sticky_text, 6, 0.012);
}

/* Leaves show the viscous pressure of the last node before them, which may be another rank's: here
 * one node has it, the first of all. */
static void keep_first(un_octree_flip *s, bool here)
{
    un_node_memory *memory = &s->thick.memory;
    memory->count = here && memory->count > 0;
    if (memory->count > 0) memory->value[0][0] = 123;
    check_ok(s->core.ctx, un_octree_show_pressure(s));
}

static void pressures_are_those_of_nodes_before(void **state)
{
    (void)state;
    un_context *alone = check_context(), *ctx = group_context();
    const un_method *method = &un_method_octree;
    void *one, *many;
    un_step report;
    un_scene *scene = load(alone, thick_text);
    check_ok(alone, un_method_create(method, alone, scene, NULL, &one));
    check_ok(ctx, un_method_create(method, ctx, scene, NULL, &many));
    check_ok(alone, method->step(one, 0.02, &report));
    check_ok(ctx, method->step(many, 0.02, &report));
    keep_first(one, true);
    keep_first(many, un_ranks_rank(group) == 0);
    un_part own = un_leaves_own(&((un_octree_flip *)many)->leaves);
    SAME(un_octree_pressure(many) + own.begin, un_octree_pressure(one) + own.begin,
         own.end - own.begin);
    un_method_destroy(method, one);
    un_method_destroy(method, many);
    un_scene_destroy(scene);
    un_context_destroy(ctx);
    check_context_end(alone);
}

static void steps_with_tension_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(drops_text, 6, 0.002);
}

static void leaves_far_away_take_no_memory(void **state)
{
    (void)state;
    forgotten = kept = 0;
    follow(wide_text, 2, 0.03);
    if (un_ranks_count(group) > 1 && un_ranks_rank(group) == 0) assert_int_equal(forgotten, 2);
    assert_int_equal(kept, 0);
}

static void flat_steps_are_those_of_one_rank(void **state)
{
    (void)state;
    follow(flat_text, 5, 0.02);
    follow(apart_text, 5, 0.02);
}

/* Memory that fails on one rank fails the step on all, but for that of systems: a rank that has
 * none for these ends all. */
static un_status step_around_pressure(un_octree_flip *s, un_context *ctx, int64_t n, double dt)
{
    un_leaf_projection_report projection;
    int32_t iterations;
    check_ok(ctx, un_octree_move_walls(s, dt));
    check_ok(ctx, un_octree_accelerate(s, dt));
    check_ok(ctx, un_octree_project(s, dt, &projection));
    if (s->thick.any) check_ok(ctx, un_octree_apply_viscosity(s, dt, &projection, &iterations));
    if (un_rank(ctx) == n % un_rank_count(ctx)) ctx->def.fail_allocation = ctx->allocations + n;
    UN_TRY(un_octree_agree(s, un_core_touch_bodies(&s->core, dt)));
    UN_TRY(un_octree_extend(s, dt));
    UN_TRY(un_octree_agree(s, un_octree_move_free(s, dt)));
    UN_TRY(un_octree_to_particles(s, dt));
    UN_TRY(un_octree_correct(s, dt));
    UN_TRY(un_octree_advect(s, dt));
    un_core_tick(&s->core, dt);
    UN_TRY(un_octree_resize(s));
    UN_TRY(un_octree_remove(s));
    UN_TRY(un_octree_emit(s, dt));
    UN_TRY(un_octree_build_tree(s));
    UN_TRY(un_octree_build_leaves(s));
    UN_TRY(un_octree_sort(s));
    UN_TRY(un_octree_gather(s));
    UN_TRY(un_octree_level_set(s));
    return un_octree_sizes(s, dt);
}

static bool fails_in_parts(const un_scene *scene, int64_t n, bool first)
{
    const un_method *method = &un_method_octree;
    void *many = NULL;
    un_context *ctx = group_context_failing(1, first ? n : 0, (int32_t)(n % un_ranks_count(group)));
    un_status status = un_method_create(method, ctx, scene, NULL, &many);
    if (!first) {
        check_ok(ctx, status);
        assert_true(un_ranks_count(group) == 1 ||
                    un_leaves_in_parts(&((un_octree_flip *)many)->leaves));
        status = step_around_pressure(many, ctx, n, 0.01);
    }
    un_ranks_recover(ctx);
    bool failed = status != UN_OK;
    assert_true(un_ranks_max(ctx, failed) == (failed ? 1.0 : 0.0));
    if (failed) assert_int_equal(status, UN_ERROR_MEMORY);
    if (many) un_method_destroy(method, many);
    un_context_destroy(ctx);
    return failed;
}

static void *begin_viscous_step(un_context *ctx, const un_scene *scene)
{
    un_leaf_projection_report projection;
    void *many;
    check_ok(ctx, un_method_create(&un_method_octree, ctx, scene, NULL, &many));
    check_ok(ctx, un_octree_move_walls(many, 0.01));
    check_ok(ctx, un_octree_accelerate(many, 0.01));
    check_ok(ctx, un_octree_project(many, 0.01, &projection));
    return many;
}

/* Allocations of the viscous part of a step, less those of the projection that ends it. */
static int64_t count_viscous(const un_scene *scene)
{
    un_context *ctx = group_context();
    un_octree_flip *s = begin_viscous_step(ctx, scene);
    double *none = calloc((size_t)s->leaves.count + 1, sizeof *none);
    un_leaf_projection_report projection;
    int32_t iterations;
    assert_non_null(none);
    int64_t first = ctx->allocations;
    check_ok(ctx, un_octree_apply_viscosity(s, 0.01, &projection, &iterations));
    int64_t count = ctx->allocations - first;
    first = ctx->allocations;
    check_ok(ctx, un_octree_apply_pressure(s, 0.01, none, s->at.u, &projection));
    count = -(int64_t)un_ranks_max(ctx, (double)(ctx->allocations - first - count)); /* the least */
    un_method_destroy(&un_method_octree, s);
    un_context_destroy(ctx);
    free(none);
    return count;
}

static void viscous_memory_fails_on_all(void **state)
{
    (void)state;
    un_context *alone = check_context();
    un_scene *scene = load(alone, dry_text);
    int64_t count = count_viscous(scene);
    assert_true(count > 30);
    for (int64_t n = 1; n < count; n++) {
        un_context *ctx = group_context();
        un_leaf_projection_report projection;
        int32_t iterations;
        void *many = begin_viscous_step(ctx, scene);
        if (un_rank(ctx) == n % un_rank_count(ctx)) ctx->def.fail_allocation = ctx->allocations + n;
        un_status status = un_octree_apply_viscosity(many, 0.01, &projection, &iterations);
        un_ranks_recover(ctx);
        assert_int_equal(status, UN_ERROR_MEMORY);
        un_method_destroy(&un_method_octree, many);
        un_context_destroy(ctx);
    }
    un_scene_destroy(scene);
    check_context_end(alone);
}

static void fail_in_parts(const char *text)
{
    un_context *alone = check_context();
    un_scene *scene = load(alone, text);
    for (int k = 0; k < 2; k++) {
        int failures = 0;
        for (int64_t n = k == 0 ? 8 : 1; fails_in_parts(scene, n, k == 0); n += 1 + n / 8)
            failures++;
        assert_true(failures > 10);
    }
    un_scene_destroy(scene);
    check_context_end(alone);
}

static void memory_fails_on_all(void **state)
{
    (void)state;
    fail_in_parts(plates_text);
    fail_in_parts(thick_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_are_those_of_one_rank, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(steps_in_parts_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(steps_beside_solids_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(steps_with_sources_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(steps_with_bodies_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(steps_with_tension_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(viscous_steps_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(pressures_are_those_of_nodes_before, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(leaves_far_away_take_no_memory, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(flat_steps_are_those_of_one_rank, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(memory_fails_on_all, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(viscous_memory_fails_on_all, scratch_begin, scratch_end),
    };
    group_run(tests);
}
