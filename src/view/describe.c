/* What the page gets to know about a run. */
#include "view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- text ---- */

int un_view_character(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (*c < 0x80) return 1;
    int more = *c >= 0xf0 && *c < 0xf5 ? 3 : *c >= 0xe0 && *c < 0xf0 ? 2 : *c >= 0xc2 && *c < 0xe0;
    int good = 0;
    while (good < more && (c[1 + good] & 0xc0) == 0x80) good++;
    /* no overlong forms, no surrogates, nothing beyond the last code point */
    if (more == 0 || good < more || (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
        (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f))
        return 0;
    return more + 1;
}

/* Bytes that are not UTF-8 are taken as Latin-1; < is escaped so that the string may be in HTML. */
void un_view_add_string(un_text *t, const char *string)
{
    un_text_add(t, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        int length = un_view_character((const char *)c);
        if (length > 1) {
            un_text_add(t, "%.*s", length, (const char *)c);
            c += length - 1;
        } else if (*c < 0x20 || *c >= 0x7f || strchr("\"\\<>&", *c)) {
            un_text_add(t, "\\u%04x", *c);
        } else {
            un_text_add(t, "%c", *c);
        }
    }
    un_text_add(t, "\"");
}

/* ---- files ---- */

int un_view_open(const char *directory, const char *name, int64_t *size)
{
    int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char part[64];
    while (folder >= 0) {
        size_t length = strcspn(name, "/");
        if (length == 0 || length >= sizeof part) break;
        memcpy(part, name, length);
        part[length] = 0;
        bool last = !name[length];
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
        int next = openat(folder, part, flags);
        close(folder);
        folder = next;
        if (folder < 0 || !last) {
            name += length + 1;
            continue;
        }
        struct stat found;
        if (fstat(folder, &found) != 0 || !S_ISREG(found.st_mode)) break;
        *size = found.st_size;
        return folder;
    }
    if (folder >= 0) close(folder);
    return -1;
}

un_status un_view_read_cells(un_context *ctx, const char *directory, const char *name,
                             un_cells *cells)
{
    int64_t size;
    *cells = (un_cells){0};
    int file = un_view_open(directory, name, &size);
    if (file < 0) return un_fail(ctx, UN_ERROR_FILE, "%s: no such file", name);
    char *text = un_alloc(ctx, (size_t)size + 1, 1);
    int64_t used = 0;
    while (text && used < size) {
        ssize_t length = read(file, text + used, (size_t)(size - used));
        if (length <= 0) break;
        used += length;
    }
    close(file);
    if (!text) return UN_ERROR_MEMORY;
    text[used] = 0;
    un_status status = un_output_parse_cells(ctx, name, text, (size_t)used, cells);
    un_free(ctx, text);
    return status;
}

static int64_t size_of(const char *directory, const char *name)
{
    int64_t size;
    int file = un_view_open(directory, name, &size);
    if (file < 0) return -1;
    close(file);
    return size;
}

/* Is the process that holds the run's lock alive? Its id is in the lock file; trying to take the
 * lock would disturb a run that is starting. */
static bool is_live(const char *directory)
{
    char text[32] = "";
    int64_t size;
    int file = un_view_open(directory, "state/lock", &size);
    if (file < 0) return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return false;
    long process = strtol(text, NULL, 10);
    return process > 1 && (kill((pid_t)process, 0) == 0 || errno == EPERM);
}

static int32_t count_frames(const char *directory)
{
    char path[4200];
    struct stat found;
    for (int32_t frame = 0;; frame++) {
        snprintf(path, sizeof path, "%s/frames/%04d", directory, frame);
        if (frame == 1000000 || stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) return frame;
    }
}

void un_view_describe(un_text *t, const char *directory)
{
    int32_t frames = count_frames(directory);
    const char *end = directory + strlen(directory);
    while (end > directory + 1 && end[-1] == '/') end--;
    const char *begin = end;
    while (begin > directory && begin[-1] != '/') begin--;
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
    un_text_add(t, "{\"name\":");
    un_view_add_string(t, name);
    un_text_add(t, ",\"path\":");
    un_view_add_string(t, directory);
    un_text_add(t, ",\"frames\":%d,\"live\":%s", frames, is_live(directory) ? "true" : "false");
    static const char *const files[] = {"surface.ply", "particles.vtp", "mesh.vtu"};
    static const char *const names[] = {"surface", "particles", "cells"};
    for (int i = 0; i < 3; i++) {
        char file[64];
        snprintf(file, sizeof file, "frames/0000/%s", files[i]);
        un_text_add(t, ",\"%s\":%s", names[i], size_of(directory, file) >= 0 ? "true" : "false");
    }
    static const char *const tables[] = {"stats", "probes", "bodies"};
    for (int i = 0; i < 3; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.csv", tables[i]);
        un_text_add(t, ",\"%s\":%lld", tables[i], (long long)size_of(directory, file));
    }
    struct stat record;
    char path[4200];
    snprintf(path, sizeof path, "%s/run.json", directory);
    if (stat(path, &record) == 0)
        un_text_add(t, ",\"record\":%.6f",
                    (double)record.st_mtim.tv_sec + 1e-9 * (double)record.st_mtim.tv_nsec);
    un_text_add(t, "}");
}

/* ---- the scene ---- */

/* Poses of a moving solid are sent for this many frames; in longer films it stops after that. */
#define POSES_MAX 20000

static un_status pack_solid(un_context *ctx, const un_body_mesh *m, char **bytes, size_t *size)
{
    uint32_t counts[2] = {(uint32_t)m->vertex_count, (uint32_t)m->triangle_count};
    size_t vectors = (size_t)m->vertex_count * 12, indices = (size_t)m->triangle_count * 12;
    *size = sizeof counts + 2 * vectors + indices;
    UN_ALLOC(ctx, *bytes, *size);
    char *to = *bytes;
    memcpy(to, counts, sizeof counts);
    memcpy(to + sizeof counts, m->position, vectors);
    memcpy(to + sizeof counts + vectors, m->normal, vectors);
    memcpy(to + sizeof counts + 2 * vectors, m->triangle, indices);
    return UN_OK;
}

/* A scene and its description. */
typedef struct description {
    un_context *ctx;
    un_text text;
    un_scene *scene;
    un_motion *motion;
    int32_t pose_count; /* frames whose poses are sent */
    un_view_scene *out;
} description;

static un_status add_poses(description *d, int32_t s)
{
    un_text *t = &d->text;
    un_text_add(t, ",\"poses\":[");
    for (int32_t f = 0; f < d->pose_count && f < POSES_MAX; f++) {
        un_pose p;
        UN_TRY(un_motion_pose(d->motion, s, f, &p));
        un_text_add(t, "%s[", f ? "," : "");
        for (int r = 0; r < 3; r++)
            un_text_add(t, "%.7g,%.7g,%.7g,%.7g%s", p.scale * p.rotation[r][0],
                        p.scale * p.rotation[r][1], p.scale * p.rotation[r][2],
                        r == 0   ? p.translation.x
                        : r == 1 ? p.translation.y
                                 : p.translation.z,
                        r < 2 ? "," : "]");
    }
    un_text_add(t, "]");
    return t->status;
}

static un_status add_solid(description *d, int32_t s)
{
    un_context *ctx = d->ctx;
    un_text *t = &d->text;
    const un_solid *solid = &d->scene->def.solids[s];
    un_body_mesh mesh;
    UN_TRY(un_body_mesh_build(ctx, solid->shape, solid->moves, d->scene->def.domain.size, &mesh));
    un_status status = un_body_mesh_weld(ctx, &mesh);
    if (status == UN_OK)
        status = pack_solid(ctx, &mesh, &d->out->solids[s].bytes, &d->out->solids[s].size);
    un_text_add(t, "%s{\"name\":", s ? "," : "");
    un_view_add_string(t, solid->label);
    un_text_add(t, ",\"triangles\":%d,\"material\":\"%s\",\"moves\":%s", mesh.triangle_count,
                solid->material, solid->moves ? "true" : "false");
    un_body_mesh_free(ctx, &mesh);
    UN_TRY(status);
    if (solid->moves) {
        un_vec3 centre = un_body_reference(solid);
        un_text_add(t, ",\"body\":\"%s\",\"centre\":[%.9g,%.9g,%.9g]", solid->name, centre.x,
                    centre.y, centre.z);
        if (d->pose_count > 0) UN_TRY(add_poses(d, s));
    }
    un_text_add(t, "}");
    return t->status;
}

/* The scene's render.camera at the start; what the scene does not set is left out. */
static un_status add_camera(un_text *t, const un_scene *scene)
{
    const un_camera_keys *keys = &scene->def.render.camera;
    un_viewpoint at;
    UN_TRY(un_scene_render_camera(scene, 0, &at));
    un_text_add(t, ",\"camera\":{\"fov\":%.9g", at.fov);
    if (keys->has_eye) un_text_add(t, ",\"eye\":[%.9g,%.9g,%.9g]", at.eye.x, at.eye.y, at.eye.z);
    if (keys->has_target)
        un_text_add(t, ",\"target\":[%.9g,%.9g,%.9g]", at.target.x, at.target.y, at.target.z);
    un_text_add(t, "}");
    return t->status;
}

static un_status describe_scene(description *d)
{
    un_context *ctx = d->ctx;
    un_text *t = &d->text;
    un_scene *scene = d->scene;
    un_view_scene *out = d->out;
    const un_scene_def *def = &scene->def;
    un_vec3 size = out->domain = def->domain.size;
    un_text_add(t, "{\"domain\":[%.9g,%.9g,%.9g],\"rate\":%.9g,\"count\":%d,\"method\":", size.x,
                size.y, size.z, def->frames.rate, def->frames.count);
    un_view_add_string(t, def->method);
    un_text_add(t, ",\"finest\":%d,\"surface\":%d,\"density\":%.9g", def->detail.finest,
                def->detail.surface, def->fluid.density);
    UN_TRY(add_camera(t, scene));
    un_text_add(t, ",\"solids\":[");
    out->solids = un_alloc_zero(ctx, (size_t)def->solid_count + 1, sizeof *out->solids);
    if (!out->solids) return UN_ERROR_MEMORY;
    out->solid_count = def->solid_count;
    for (int32_t s = 0; s < def->solid_count; s++) UN_TRY(add_solid(d, s));
    un_text_add(t, "]}");
    return t->status;
}

/* The page reads bodies.csv, which may grow; for runs without one the poses are sent here. */
static un_status read_motion(description *d, const char *directory, bool saved)
{
    UN_TRY(un_motion_read(d->ctx, directory, d->scene, &d->motion));
    if (saved)
        d->pose_count = un_frame_count(d->ctx, directory);
    else if (!un_motion_is_recorded(d->motion))
        d->pose_count = d->scene->def.frames.count + 1;
    return UN_OK;
}

un_status un_view_scene_make(un_context *ctx, const char *directory, bool saved, un_view_scene *out)
{
    *out = (un_view_scene){.domain = {1, 1, 1}};
    description d = {.ctx = ctx, .text = {.ctx = ctx}, .out = out};
    char path[4200];
    snprintf(path, sizeof path, "%s/scene.lua", directory);
    un_status status = un_scene_load(ctx, path, NULL, 0, &d.scene);
    if (status == UN_OK) status = read_motion(&d, directory, saved);
    if (status == UN_OK) status = describe_scene(&d);
    un_motion_destroy(d.motion);
    if (d.scene) un_scene_destroy(d.scene);
    un_text t = d.text;
    if (status != UN_OK && status != UN_ERROR_MEMORY) {
        un_log(ctx, UN_LOG_WARNING, "%s; shown without domain and solids", un_context_message(ctx));
        un_view_scene_free(ctx, out);
        t.used = 0;
        un_text_add(&t, "{\"solids\":[]}");
        status = t.status;
    }
    out->json = t.bytes;
    if (status != UN_OK) un_view_scene_free(ctx, out);
    return status;
}

void un_view_scene_free(un_context *ctx, un_view_scene *scene)
{
    for (int32_t s = 0; scene->solids && s < scene->solid_count; s++)
        un_free(ctx, scene->solids[s].bytes);
    un_free(ctx, scene->solids);
    un_free(ctx, scene->json);
    *scene = (un_view_scene){.domain = {1, 1, 1}};
}
