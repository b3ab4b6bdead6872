/* A page that contains runs: the answers of the server, as blocks of data that the page looks for
 * first. */
#include "view/view.h"
#include "ranks/ranks.h"

#include <stdio.h>
#include <sys/stat.h>

/* Particles per frame in the page. */
#define PARTICLES_MAX 20000
/* Bytes of the page that a triangle takes, measured on splashes: quantised, deflated, in base64. */
#define TRIANGLE_BYTES 9.0
/* Polygons of each of the three cuts in the page, and their share of its size: a polygon takes as
 * much as a triangle. */
#define CELLS_MAX 12000
#define CELLS_LEAST 1500
#define CELLS_SHARE 0.1
#define TEXT_MAX ((size_t)4 << 20) /* of a table */

un_view_save_def un_view_save_def_default(void)
{
    return (un_view_save_def){.frame_count = 60, .bytes = (size_t)40 << 20};
}

typedef struct saver {
    un_context *ctx;
    const un_view_save_def *def;
    un_file *file;
    int32_t done, total;
    un_vec3 domain; /* of the current run */
} saver;

/* A block that no browser executes. Its content has no "<". */
static void block_begin(saver *s, const char *id)
{
    un_file_printf(s->file, "<script type=\"text/plain\" id=\"%s\">", id);
}
static void block_end(saver *s)
{
    un_file_printf(s->file, "</script>\n");
}

/* A file of the run, as a JSON string. Tables beyond TEXT_MAX are left out. */
static un_status save_text(saver *s, int32_t run, const char *name)
{
    char path[4200], id[64], *text;
    size_t size;
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", s->def->directories[run], name);
    if (stat(path, &found) != 0 || (size_t)found.st_size > TEXT_MAX) return UN_OK;
    UN_TRY(un_file_read(s->ctx, path, &text, &size));
    un_text t = {.ctx = s->ctx};
    un_view_add_string(&t, text);
    snprintf(id, sizeof id, "undine-%d-%s", run, name);
    block_begin(s, id);
    if (t.status == UN_OK) un_file_write(s->file, t.bytes, t.used);
    block_end(s);
    un_free(s->ctx, t.bytes);
    un_free(s->ctx, text);
    return t.status;
}

static un_status save_block(saver *s, const char *id, un_text *t)
{
    block_begin(s, id);
    un_file_write(s->file, t->bytes, t->used);
    block_end(s);
    un_free(s->ctx, t->bytes);
    *t = (un_text){.ctx = s->ctx};
    return un_file_status(s->file);
}

/* Coarsens by the square root of the excess until it fits. */
static un_status coarsen(saver *s, un_trimesh *mesh, double triangles)
{
    un_vec3 lo = un_v3(0, 0, 0), hi = lo;
    for (int32_t v = 0; v < mesh->vertex_count; v++) {
        lo = v ? un_min3(lo, mesh->position[v]) : mesh->position[v];
        hi = v ? un_max3(hi, mesh->position[v]) : mesh->position[v];
    }
    double extent = un_length(un_sub(hi, lo)), cell = extent / 400;
    for (int pass = 0; pass < 8 && mesh->triangle_count > triangles; pass++) {
        UN_TRY(un_view_simplify(s->ctx, mesh, cell));
        cell *= fmax(1.1, sqrt(mesh->triangle_count / triangles));
    }
    return UN_OK;
}

static un_status save_frame(saver *s, int32_t run, int32_t frame, double triangles)
{
    char path[4200], id[64];
    struct stat found;
    un_text t = {.ctx = s->ctx};
    un_status status = UN_OK;
    snprintf(path, sizeof path, "%s/frames/%04d/surface.ply", s->def->directories[run], frame);
    if (stat(path, &found) == 0) {
        un_trimesh mesh;
        UN_TRY(un_output_read_surface(s->ctx, path, &mesh));
        status = coarsen(s, &mesh, triangles);
        if (status == UN_OK) status = un_view_pack_surface(&t, &mesh);
        un_trimesh_free(s->ctx, &mesh);
        snprintf(id, sizeof id, "undine-%d-surface-%d", run, frame);
        if (status == UN_OK) status = save_block(s, id, &t);
    }
    snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", s->def->directories[run], frame);
    if (status == UN_OK && stat(path, &found) == 0) {
        un_particles particles;
        status = un_output_read_particles(s->ctx, path, &particles);
        if (status == UN_OK) {
            int32_t most = (int32_t)un_min64(PARTICLES_MAX, (int64_t)triangles);
            status = un_view_pack_particles(&t, &particles, most);
            un_particles_free(s->ctx, &particles);
        }
        snprintf(id, sizeof id, "undine-%d-particles-%d", run, frame);
        if (status == UN_OK) status = save_block(s, id, &t);
    }
    snprintf(path, sizeof path, "%s/frames/%04d/mesh.vtu", s->def->directories[run], frame);
    if (status == UN_OK && stat(path, &found) == 0) {
        un_cells cells;
        status = un_output_read_cells(s->ctx, path, &cells);
        if (status == UN_OK) {
            int32_t most = (int32_t)un_clamp(CELLS_SHARE * triangles, CELLS_LEAST, CELLS_MAX);
            for (int32_t axis = 0; axis < 3 && status == UN_OK; axis++) {
                double at = un_view_cut_at(s->domain, axis, UN_VIEW_MIDDLE);
                status = un_view_pack_cut(&t, &cells, axis, at, most);
                snprintf(id, sizeof id, "undine-%d-cut/%c-%d", run, "xyz"[axis], frame);
                if (status == UN_OK) status = save_block(s, id, &t);
            }
            un_cells_free(s->ctx, &cells);
        }
    }
    un_free(s->ctx, t.bytes);
    UN_TRY(status);
    s->done++;
    if (s->def->progress && !s->def->progress(s->def->user, s->done, s->total))
        return un_fail(s->ctx, UN_INTERRUPTED, "interrupted; %s was not written", s->def->path);
    return un_file_status(s->file);
}

static un_status save_scene(saver *s, int32_t run)
{
    un_view_scene scene;
    un_text t = {.ctx = s->ctx};
    char id[64];
    UN_TRY(un_view_scene_make(s->ctx, s->def->directories[run], true, &scene));
    un_status status = UN_OK;
    s->domain = scene.domain;
    un_text_add(&t, "%s", scene.json);
    snprintf(id, sizeof id, "undine-%d-scene.json", run);
    if (t.status == UN_OK) status = save_block(s, id, &t);
    for (int32_t k = 0; k < scene.solid_count && status == UN_OK && t.status == UN_OK; k++) {
        /* a mesh like any other: positions and normals, then triangles */
        uint32_t counts[2];
        memcpy(counts, scene.solids[k].bytes, sizeof counts);
        const float *x = (const float *)(scene.solids[k].bytes + sizeof counts);
        un_trimesh m = {0};
        m.position = un_alloc(s->ctx, counts[0] + 1, sizeof *m.position);
        m.normal = un_alloc(s->ctx, counts[0] + 1, sizeof *m.normal);
        m.triangle = un_alloc(s->ctx, counts[1] + 1, sizeof *m.triangle);
        if (m.position && m.normal && m.triangle) {
            m.vertex_count = (int32_t)counts[0];
            m.triangle_count = (int32_t)counts[1];
            const float *n = x + 3 * (size_t)counts[0];
            for (uint32_t i = 0; i < counts[0]; i++) {
                m.position[i] = un_v3((double)x[3 * i], (double)x[3 * i + 1], (double)x[3 * i + 2]);
                m.normal[i] = un_v3((double)n[3 * i], (double)n[3 * i + 1], (double)n[3 * i + 2]);
            }
            memcpy(m.triangle, n + 3 * (size_t)counts[0], 12 * (size_t)counts[1]);
            status = un_view_pack_surface(&t, &m);
            snprintf(id, sizeof id, "undine-%d-solid-%d", run, k);
            if (status == UN_OK) status = save_block(s, id, &t);
        } else {
            status = UN_ERROR_MEMORY;
        }
        un_trimesh_free(s->ctx, &m);
    }
    un_free(s->ctx, t.bytes);
    un_view_scene_free(s->ctx, &scene);
    return status == UN_OK ? t.status : status;
}

static un_status save_run(saver *s, int32_t run, int32_t frames, int32_t every, double triangles)
{
    static const char *const texts[] = {"run.json", "stats.csv", "probes.csv", "scene.lua"};
    for (int i = 0; i < 4; i++) UN_TRY(save_text(s, run, texts[i]));
    UN_TRY(save_scene(s, run));
    for (int32_t frame = 0; frame < frames; frame += every)
        UN_TRY(save_frame(s, run, frame, triangles));
    return UN_OK;
}

static un_status save_all(saver *s)
{
    const un_view_save_def *def = s->def;
    int32_t frames[UN_VIEW_RUNS_MAX], every[UN_VIEW_RUNS_MAX];
    for (int32_t r = 0; r < def->directory_count; r++) {
        frames[r] = un_frame_count(s->ctx, def->directories[r]);
        if (frames[r] == 0)
            return un_fail(s->ctx, UN_ERROR_ARGUMENT,
                           "%s has no frames; `undine run SCENE -o DIR` makes them",
                           def->directories[r]);
        every[r] = (frames[r] + def->frame_count - 1) / def->frame_count;
        s->total += (frames[r] + every[r] - 1) / every[r];
    }
    un_text t = {.ctx = s->ctx};
    un_text_add(&t, "{\"version\":\"%s\",\"saved\":true,\"runs\":[", un_version());
    for (int32_t r = 0; r < def->directory_count; r++) {
        un_text_add(&t, "%s{\"every\":%d,\"frames\":%d,\"about\":", r ? "," : "", every[r],
                    frames[r]);
        un_view_describe(&t, def->directories[r]);
        un_text_add(&t, "}");
    }
    un_text_add(&t, "]}");
    un_status status = t.status;
    if (status == UN_OK) status = save_block(s, "undine-runs", &t);
    un_free(s->ctx, t.bytes);
    UN_TRY(status);
    double triangles =
        fmax(500, (1 - CELLS_SHARE) * (double)def->bytes / s->total / TRIANGLE_BYTES);
    for (int32_t r = 0; r < def->directory_count; r++)
        UN_TRY(save_run(s, r, frames[r], every[r], triangles));
    return UN_OK;
}

un_status un_view_save(un_context *ctx, const un_view_save_def *def)
{
    UN_TRY(un_ranks_refuse(ctx, "saving a page"));
    static const char mark[] = "<!--undine-data-->";
    size_t size;
    if (def->directory_count < 1 || def->directory_count > UN_VIEW_RUNS_MAX || def->frame_count < 1)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "a page has 1 to %d runs and at least one frame",
                       UN_VIEW_RUNS_MAX);
    const char *page = un_view_page(ctx, &size);
    if (!page) return UN_ERROR_UNAVAILABLE;
    const char *at = memmem(page, size, mark, sizeof mark - 1);
    if (!at) return un_fail(ctx, UN_ERROR_UNAVAILABLE, "the viewer's page has no place for data");
    saver s = {.ctx = ctx, .def = def};
    UN_TRY(un_file_create(ctx, def->path, &s.file));
    un_file_write(s.file, page, (size_t)(at - page));
    un_status status = save_all(&s);
    if (status != UN_OK) {
        un_file_discard(s.file);
        return status;
    }
    un_file_write(s.file, at, size - (size_t)(at - page));
    return un_file_commit(s.file);
}
