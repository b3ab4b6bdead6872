/* The renderer: from a run's directory to pictures. */
#include "render/embree.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "output/output.h"
#include "render/flat.h"

/* Samples go where they matter. Every pixel gets FIRST; those near water or a solid get SECOND; of
 * these, the ones that differ from a neighbour by CONTRAST or more, of the brightness on the film,
 * get all. */
#define FIRST 2
#define SECOND 4
#define CONTRAST 0.03f
#define TILE 16
#define PIXELS_MAX ((int64_t)1 << 27)

/* ---- sampling ---- */

static float part(float x)
{
    return x - floorf(x);
}

/* Maps [0, 1) to (-1, 1), denser in the middle: the tent filter. */
static float tent(float u)
{
    return u < 0.5f ? sqrtf(2 * u) - 1 : 1 - sqrtf(2 - 2 * u);
}

static void sample_pixel(un_renderer *r, int32_t i, int32_t j, int32_t first, int32_t last)
{
    int64_t pixel = (int64_t)j * r->def.width + i;
    float turn_u = (float)un_random((uint64_t)pixel, 0),
          turn_v = (float)un_random((uint64_t)pixel, 1);
    for (int32_t k = first; k < last; k++) {
        /* The same golden-ratio positions in every pixel, and the same rotation of the light's
         * disc in every frame: noise does not flicker. */
        float u = (float)k * 0.7548776662f + 0.5f, v = (float)k * 0.5698402910f + 0.5f;
        float x = ((float)i + 0.5f + tent(part(u))) * 2 / (float)r->def.width - 1;
        float y = 1 - ((float)j + 0.5f + tent(part(v))) * 2 / (float)r->def.height;
        un_fvec sun = un_studio_sun(&r->studio, part(v + turn_u), part(u + turn_v));
        bool busy = false;
        un_fvec light = un_trace(r, r->camera.eye, un_camera_ray(&r->camera, x, y), sun, &busy);
        /* Bright samples count less, as they will on the film: edges of highlights stay smooth. */
        float weight = 1 / (1 + un_fluma(light));
        if (!isfinite(weight) || !(weight > 0)) light = r->studio.haze, weight = 0.5f;
        r->film[pixel] += light * weight;
        r->film_weight[pixel] += weight;
        if (busy) r->busy[pixel] = 1;
    }
}

static un_fvec pixel_light(const un_renderer *r, int64_t pixel)
{
    return r->film[pixel] / r->film_weight[pixel];
}

/* Samples first..last - 1 of the marked pixels, or of all when first is 0. In tiles, since
 * neighbours meet the same triangles. */
typedef struct sample_pass {
    un_renderer *r;
    int32_t first, last;
} sample_pass;

static int64_t tiles_across(const un_renderer *r)
{
    return ((int64_t)r->def.width + TILE - 1) / TILE;
}

static void sample_tiles(void *arg, int64_t begin, int64_t end)
{
    const sample_pass *pass = arg;
    un_renderer *r = pass->r;
    int64_t width = r->def.width, height = r->def.height, across = tiles_across(r);
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t i0 = tile % across * TILE, j0 = tile / across * TILE;
        for (int64_t j = j0; j < un_min64(j0 + TILE, height); j++)
            for (int64_t i = i0; i < un_min64(i0 + TILE, width); i++) {
                int64_t pixel = j * width + i;
                if (pass->first > 0 && !r->mark[pixel]) continue;
                if (pass->first == 0) {
                    r->film[pixel] = un_f3(0, 0, 0);
                    r->film_weight[pixel] = 0;
                    r->busy[pixel] = 0;
                }
                sample_pixel(r, (int32_t)i, (int32_t)j, pass->first, pass->last);
            }
    }
}

static void take_samples(un_renderer *r, int32_t first, int32_t last)
{
    sample_pass pass = {r, first, (int32_t)un_min64(last, r->def.samples)};
    int64_t tiles = tiles_across(r) * (((int64_t)r->def.height + TILE - 1) / TILE);
    if (first < pass.last) un_parallel_for(r->ctx, tiles, 1, sample_tiles, &pass);
}

/* After the first samples: pixels near water or a solid. */
static void mark_near(void *arg, int64_t begin, int64_t end)
{
    un_renderer *r = arg;
    int32_t width = r->def.width, height = r->def.height;
    for (int64_t j = begin; j < end; j++)
        for (int64_t i = 0; i < width; i++) {
            bool near = false;
            for (int64_t y = un_max64(j - 1, 0); y <= un_min64(j + 1, height - 1); y++)
                for (int64_t x = un_max64(i - 1, 0); x <= un_min64(i + 1, width - 1); x++)
                    near = near || r->busy[y * width + x];
            r->mark[j * width + i] = near;
        }
}

/* After the second ones: those of them that differ from a neighbour. */
static void mark_contrast(void *arg, int64_t begin, int64_t end)
{
    un_renderer *r = arg;
    int32_t width = r->def.width, height = r->def.height;
    for (int64_t j = begin; j < end; j++)
        for (int64_t i = 0; i < width; i++) {
            float low = 1, high = 0;
            for (int64_t y = un_max64(j - 1, 0); y <= un_min64(j + 1, height - 1); y++)
                for (int64_t x = un_max64(i - 1, 0); x <= un_min64(i + 1, width - 1); x++) {
                    low = fminf(low, r->brightness[y * width + x]);
                    high = fmaxf(high, r->brightness[y * width + x]);
                }
            if (high - low < CONTRAST) r->mark[j * width + i] = 0;
        }
}

static void brightness_rows(void *arg, int64_t begin, int64_t end)
{
    un_renderer *r = arg;
    for (int64_t pixel = begin * r->def.width; pixel < end * r->def.width; pixel++)
        r->brightness[pixel] = un_studio_brightness(pixel_light(r, pixel));
}

static void sample_picture(un_renderer *r)
{
    int32_t height = r->def.height;
    take_samples(r, 0, FIRST);
    un_parallel_for(r->ctx, height, 16, mark_near, r);
    take_samples(r, FIRST, SECOND);
    un_parallel_for(r->ctx, height, 16, brightness_rows, r);
    un_parallel_for(r->ctx, height, 16, mark_contrast, r);
    take_samples(r, SECOND, r->def.samples);
}

typedef struct develop_task {
    const un_renderer *r;
    uint8_t *rgb;
} develop_task;

static void develop_rows(void *arg, int64_t begin, int64_t end)
{
    develop_task *t = arg;
    int32_t width = t->r->def.width;
    for (int64_t pixel = begin * width; pixel < end * width; pixel++)
        un_studio_develop(pixel_light(t->r, pixel), (uint64_t)pixel, t->rgb + 3 * pixel);
}

/* ---- solids ---- */

static un_status create_solids(un_renderer *r)
{
    const un_scene_def *def = &r->scene->def;
    int64_t vertices = 0, triangles = 0;
    r->rest = un_alloc_zero(r->ctx, (size_t)def->solid_count + 1, sizeof *r->rest);
    if (!r->rest) return UN_ERROR_MEMORY;
    for (int32_t s = 0; s < def->solid_count; s++) {
        const un_solid *solid = &def->solids[s];
        UN_TRY(
            un_body_mesh_build(r->ctx, solid->shape, solid->moves, def->domain.size, &r->rest[s]));
        r->glass = r->glass || un_solid_is_glass(solid);
        vertices += r->rest[s].vertex_count;
        triangles += r->rest[s].triangle_count;
    }
    if (vertices > INT32_MAX - 1)
        return un_fail(r->ctx, UN_ERROR_SCENE, "too many solids to draw: %d", def->solid_count);
    UN_TRY(un_render_mesh_init(r->ctx, &r->solids, (int32_t)vertices, (int32_t)triangles));
    int32_t v = 0, t = 0;
    for (int32_t s = 0; s < def->solid_count; s++) {
        const un_body_mesh *rest = &r->rest[s];
        for (int32_t k = 0; k < rest->triangle_count; k++, t++) {
            un_render_face *face = &r->solids.face[t];
            *face = (un_render_face){.kind = un_solid_is_glass(&def->solids[s]) ? UN_FACE_GLASS
                                             : rest->container                  ? UN_FACE_CUTAWAY
                                                                                : UN_FACE_PLAIN};
            for (int c = 0; c < 3; c++) {
                face->ambient[c] = rest->sky[rest->triangle[k][c]];
                r->solids.triangle[t][c] = (uint32_t)v + rest->triangle[k][c];
            }
        }
        v += rest->vertex_count;
    }
    return UN_OK;
}

static un_status pose_solids(un_renderer *r, int32_t frame)
{
    int32_t v = 0;
    UN_TRY(un_motion_place(r->motion, r->bodies, frame));
    for (int32_t s = 0; s < r->scene->def.solid_count; s++) {
        const un_body_mesh *rest = &r->rest[s];
        const un_pose *pose = &r->bodies->body[s].to;
        for (int32_t k = 0; k < rest->vertex_count; k++, v++) {
            const float *p = rest->position[k], *q = rest->normal[k];
            un_vec3 x = un_pose_apply(pose, un_v3((double)p[0], (double)p[1], (double)p[2]));
            un_vec3 n = un_pose_rotate(pose, un_v3((double)q[0], (double)q[1], (double)q[2]));
            un_fvec at = un_f3_of(x, 1 / r->unit), up = un_f3_of(n, 1);
            for (int a = 0; a < 3; a++) {
                r->solids.position[v][a] = at[a];
                r->solids.normal[v][a] = up[a];
            }
        }
    }
    un_render_mesh_pack(r->ctx, &r->solids);
    return UN_OK;
}

/* The scene's own camera may move. */
static un_status place_camera(un_renderer *r, double time)
{
    un_render_def def = r->def;
    UN_TRY(un_render_complete_camera(&def, r->scene, time));
    r->camera = un_camera_make(&def, r->scene->def.domain.size, r->unit);
    return UN_OK;
}

/* ---- the renderer ---- */

static bool is_finite_point(const double p[3])
{
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

static un_status check_def(un_context *ctx, const un_render_def *d)
{
    if (d->width < 1 || d->height < 1 || (int64_t)d->width * d->height > PIXELS_MAX)
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "cannot make a picture of %d x %d; both sides must be at least 1 and all "
                       "pixels at most %lld",
                       d->width, d->height, (long long)PIXELS_MAX);
    if (d->samples < 1 || d->samples > 65536)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "samples must be from 1 to 65536, not %d",
                       d->samples);
    if (!(d->fov >= 1 && d->fov <= 150))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "fov must be from 1 to 150 degrees, not %g", d->fov);
    if ((d->has_eye && !is_finite_point(d->eye)) || (d->has_target && !is_finite_point(d->target)))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "eye and target must be finite numbers");
    if (d->cut_axis < -1 || d->cut_axis > 2 || !isfinite(d->cut_at))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "a cut is across x, y or z");
    if (d->cells && d->cut_axis < 0)
        return un_fail(
            ctx, UN_ERROR_ARGUMENT,
            "cells are drawn where they are cut; choose the plane with --cut, e.g. z=0.5");
    if (d->has_light &&
        !(d->light_elevation >= 5 && d->light_elevation <= 90 && isfinite(d->light_azimuth)))
        return un_fail(ctx, UN_ERROR_ARGUMENT, "the light must be 5 to 90 degrees above the floor");
    const double *colours[] = {d->has_water_colour ? d->water_colour : NULL,
                               d->has_solid_colour ? d->solid_colour : NULL,
                               d->has_background ? d->background : NULL};
    for (int i = 0; i < 9; i++)
        if (colours[i / 3] && !(colours[i / 3][i % 3] >= 0 && colours[i / 3][i % 3] <= 1))
            return un_fail(ctx, UN_ERROR_ARGUMENT,
                           "a colour is red, green and blue, each 0 to 1, not %g",
                           colours[i / 3][i % 3]);
    return UN_OK;
}

/* Whether a frame's particles are drawn: if they are asked for, or if water is and the frame has no
 * surface. */
static bool shows_particles(un_renderer *r, int32_t frame)
{
    char path[4200];
    struct stat found;
    if (r->def.particles || !r->def.water) return r->def.particles;
    snprintf(path, sizeof path, "%s/frames/%04d/surface.ply", r->directory, frame);
    if (stat(path, &found) == 0) return false;
    snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", r->directory, frame);
    bool particles = stat(path, &found) == 0;
    if (!r->warned)
        un_log(r->ctx, UN_LOG_WARNING,
               particles ? "frame %d of %s has no surface: its particles are drawn; `undine "
                           "surface` makes surfaces from them"
                         : "frame %d of %s has neither a surface nor particles, so its liquid is "
                           "not drawn; run the scene with output.surface or output.particles",
               frame, r->directory);
    r->warned = true;
    return particles;
}

/* ---- 2D ---- */

static un_status refuse_cuts(un_renderer *r)
{
    if (r->def.cells || r->def.cut_axis >= 0)
        return un_fail(r->ctx, UN_ERROR_ARGUMENT,
                       "%s is a 2D run: there is nothing to cut, and cells are not drawn; leave "
                       "out --cut and `cells` of --show",
                       r->directory);
    return UN_OK;
}

static un_status draw_flat(un_renderer *r, int32_t frame, uint8_t *rgb)
{
    char path[4200];
    const un_scene_def *scene = &r->scene->def;
    un_trimesh water = {0};
    un_particles particles = {0};
    struct stat found;
    un_render_def def = r->def;
    double time = frame / scene->frames.rate;
    def.particles = shows_particles(r, frame);
    un_status status = un_motion_place(r->motion, r->bodies, frame);
    if (status == UN_OK) status = un_render_complete_camera(&def, r->scene, time);
    snprintf(path, sizeof path, "%s/frames/%04d/surface.ply", r->directory, frame);
    if (status == UN_OK && def.water && stat(path, &found) == 0)
        status = un_output_read_surface(r->ctx, path, &water);
    snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", r->directory, frame);
    if (status == UN_OK && def.particles)
        status = un_output_read_particles(r->ctx, path, &particles);
    un_flat_picture picture = {.def = &def,
                               .size = scene->domain.size,
                               .open = scene->domain.open,
                               .water = water.triangle_count ? &water : NULL,
                               .particles = def.particles ? &particles : NULL,
                               .fastest = r->fastest > 0 ? 0.75 * r->fastest : 1,
                               .bodies = r->bodies};
    if (status == UN_OK) status = un_flat_draw(r->ctx, &picture, rgb);
    un_trimesh_free(r->ctx, &water);
    un_particles_free(r->ctx, &particles);
    return status;
}

static un_status fill(un_renderer *r, const char *directory, const un_render_def *def)
{
    char path[4096];
    r->directory = un_strdup(r->ctx, directory);
    if (!r->directory) return UN_ERROR_MEMORY;
    if (snprintf(path, sizeof path, "%s/scene.lua", directory) >= (int)sizeof path)
        return un_fail(r->ctx, UN_ERROR_FILE, "%s: the path is too long", directory);
    struct stat found;
    if (stat(path, &found) != 0)
        return un_fail(r->ctx, UN_ERROR_FILE,
                       "%s: %s; give the directory of a run, as `undine run SCENE -o DIR` makes it",
                       path, strerror(errno));
    UN_TRY(un_scene_load(r->ctx, path, NULL, 0, &r->scene));
    const un_scene_def *scene = &r->scene->def;
    un_vec3 size = scene->domain.size;
    r->def = *def;
    un_render_complete(&r->def, scene);
    r->unit = fmax(size.x, fmax(size.y, size.z));
    r->size = un_f3_of(size, 1 / r->unit);
    r->reach = 0.75f / (float)(scene->detail.surface > 0 ? scene->detail.surface : 128);
    r->studio = un_studio_make(r->size);
    un_studio_change(&r->studio, &r->def);
    if (def->scene_camera && !scene->sizing.has_camera)
        return un_fail(r->ctx, UN_ERROR_ARGUMENT,
                       "%s has no sizing.camera; use --eye and --target instead", path);
    UN_TRY(place_camera(r, 0)); /* reports errors of the camera at once */
    un_info info;
    r->fastest = un_info_read(r->ctx, directory, &info) == UN_OK ? info.max_speed : 0;
    UN_TRY(un_bodies_create(r->ctx, r->scene, &r->bodies));
    UN_TRY(un_motion_read(r->ctx, r->directory, r->scene, &r->motion));
    if (scene->domain.dim == 2) return refuse_cuts(r);
    UN_TRY(un_world_create(r));
    UN_TRY(create_solids(r));
    UN_TRY(un_light_create(r));
    int64_t pixels = (int64_t)def->width * def->height;
    UN_ALLOC(r->ctx, r->film, pixels);
    UN_ALLOC(r->ctx, r->film_weight, pixels);
    UN_ALLOC(r->ctx, r->busy, pixels);
    UN_ALLOC(r->ctx, r->mark, pixels);
    UN_ALLOC(r->ctx, r->brightness, pixels);
    return UN_OK;
}

un_status un_renderer_create(un_context *ctx, const char *directory, const un_render_def *def,
                             un_renderer **renderer)
{
    *renderer = NULL;
    UN_TRY(check_def(ctx, def));
    un_renderer *r = un_alloc_zero(ctx, 1, sizeof *r);
    if (!r) return UN_ERROR_MEMORY;
    r->ctx = ctx;
    un_status status = fill(r, directory, def);
    if (status != UN_OK) {
        un_renderer_destroy(r);
        return status;
    }
    *renderer = r;
    return UN_OK;
}

void un_renderer_destroy(un_renderer *r)
{
    if (!r) return;
    un_context *ctx = r->ctx;
    un_world_destroy(r);
    un_light_destroy(r);
    for (int32_t s = 0; r->rest && s < r->scene->def.solid_count; s++)
        un_body_mesh_free(ctx, &r->rest[s]);
    un_free(ctx, r->rest);
    un_bodies_destroy(r->bodies);
    un_motion_destroy(r->motion);
    un_render_mesh_free(ctx, &r->solids);
    un_render_mesh_free(ctx, &r->water);
    un_extra_free(r);
    un_free(ctx, r->film);
    un_free(ctx, r->film_weight);
    un_free(ctx, r->busy);
    un_free(ctx, r->mark);
    un_free(ctx, r->brightness);
    if (r->scene) un_scene_destroy(r->scene);
    un_free(ctx, r->directory);
    un_free(ctx, r);
}

un_status un_renderer_frame(un_renderer *r, int32_t frame, uint8_t *rgb)
{
    char path[4200];
    if (frame < 0 || !rgb) return un_fail(r->ctx, UN_ERROR_ARGUMENT, "there is no frame %d", frame);
    if (r->scene->def.domain.dim == 2) return draw_flat(r, frame, rgb);
    snprintf(path, sizeof path, "%s/frames/%04d/surface.ply", r->directory, frame);
    un_render_mesh_free(r->ctx, &r->water);
    UN_TRY(pose_solids(r, frame));
    UN_TRY(place_camera(r, frame / r->scene->def.frames.rate));
    if (r->def.water) {
        UN_TRY(un_render_mesh_load(r->ctx, path, r->unit, &r->water));
        UN_TRY(un_render_mesh_prepare(r->ctx, &r->water, r->size, r->unit, r->reach, r->bodies));
        un_extra_cut(r);
    }
    UN_TRY(un_extra_load(r, frame, shows_particles(r, frame), r->def.cells));
    UN_TRY(un_world_build(r));
    un_light_build(r);
    sample_picture(r);
    develop_task task = {r, rgb};
    un_parallel_for(r->ctx, r->def.height, 16, develop_rows, &task);
    return UN_OK;
}
