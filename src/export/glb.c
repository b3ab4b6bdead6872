/* Binary glTF 2.0: a file per frame and an animation of all frames, for surfaces and for particles
 * as points.
 *
 * glTF animates nodes and not topology, so in the animation every frame is a node that is scaled to
 * 1 while it is shown and to 0 at all other times, with step interpolation: viewers on the web
 * understand this without an extension. Axes and units are the same in glTF: metres, y up.
 * Velocities and radii are called _VELOCITY and _RADIUS, since glTF wants an underscore before
 * custom names. */
#include "export/glb.h"

#include <stdio.h>

#define GLB_HEAD 12
#define CHUNK_HEAD 8
/* Particles per frame in the animation, which the web must play; the file of a frame has all. */
#define FILM_PARTICLES_MAX 100000

/* All frames of one kind. */
typedef struct film {
    un_exporter *e;
    bool points;          /* particles, not surfaces */
    double fastest;       /* m/s, upper end of the colour scale */
    un_glb_piece *pieces; /* frames that are not empty, then solids */
    int32_t *kept;        /* of these frames: which of the export */
    int32_t count;        /* of these frames */
    int32_t *which;       /* solids */
    int32_t solids;
    int32_t moving;
    uint64_t keys; /* where animation data begins */
    uint64_t binary;
} film;

/* By columns; none for solids at rest. */
static void add_matrix(un_text *t, const un_pose *p)
{
    un_pose still = un_pose_identity();
    if (memcmp(p, &still, sizeof still) == 0) return;
    un_text_add(t, ",\"matrix\":[");
    for (int c = 0; c < 3; c++)
        un_text_add(t, "%.9g,%.9g,%.9g,0,", p->scale * p->rotation[0][c],
                    p->scale * p->rotation[1][c], p->scale * p->rotation[2][c]);
    un_text_add(t, "%.9g,%.9g,%.9g,1]", p->translation.x, p->translation.y, p->translation.z);
}

/* ---- a file: head, JSON, binary ---- */

static un_status write_head(un_exporter *e, un_file *file, un_text *json, uint64_t binary)
{
    UN_TRY(json->status);
    while (json->status == UN_OK && json->used % 4) un_text_add(json, " ");
    uint64_t all = GLB_HEAD + CHUNK_HEAD + json->used + (binary ? CHUNK_HEAD + binary : 0);
    if (all > UINT32_MAX)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                       "an animation of %.1f GB exceeds the 4 GB of a .glb file; "
                       "use fewer frames (--frames, --every)",
                       (double)all * 1e-9);
    uint32_t head[] = {0x46546c67, 2, (uint32_t)all, (uint32_t)json->used, 0x4e4f534a};
    un_file_write_little(file, head, 5, sizeof *head);
    un_file_write(file, json->bytes, json->used);
    uint32_t chunk[] = {(uint32_t)binary, 0x004e4942};
    if (binary) un_file_write_little(file, chunk, 2, sizeof *chunk);
    return UN_OK;
}

static void add_roots(un_text *t, int32_t count)
{
    un_text_add(t, "\"scenes\":[{");
    for (int32_t n = 0; n < count; n++) un_text_add(t, n ? ",%d" : "\"nodes\":[%d", n);
    un_text_add(t, count ? "]}]," : "}],");
}

/* ---- a file per frame ---- */

static un_status frame_json(un_exporter *e, un_text *t, const un_glb_piece *pieces, int32_t shown,
                            const int32_t *which, int32_t solids, int32_t frame, uint64_t binary,
                            bool points)
{
    int32_t nodes = shown + solids;
    un_glb_add_head(t, e, points);
    add_roots(t, nodes);
    if (nodes == 0) { /* an empty frame is an empty scene */
        un_text_add(t, "\"extras\":{\"frame\":%d}}", frame);
        return t->status;
    }
    un_text_add(t, "\"nodes\":[");
    if (shown) un_text_add(t, "{\"name\":\"%s\",\"mesh\":0}", points ? "particles" : "surface");
    for (int32_t s = 0; s < solids; s++) {
        un_pose pose;
        UN_TRY(un_motion_pose(e->motion, which[s], frame, &pose));
        un_text_add(t, "%s{\"name\":\"solid %d\",\"mesh\":%d", s + shown ? "," : "", which[s] + 1,
                    s + shown);
        add_matrix(t, &pose);
        un_text_add(t, "}");
    }
    un_text_add(t, "],");
    un_glb_add_meshes(t, pieces, nodes, shown);
    un_glb_add_accessors(t, pieces, nodes);
    un_text_add(t, "],");
    un_glb_add_views(t, pieces, nodes);
    un_text_add(t, "],\"buffers\":[{\"byteLength\":%llu}],\"extras\":{\"frame\":%d,\"time\":%.9g}}",
                (unsigned long long)binary, frame, frame / e->rate);
    return t->status;
}

static un_status write_frame(film *f, un_glb_piece *pieces, int32_t frame, un_glb_piece *measured)
{
    un_exporter *e = f->e;
    un_glb_content content;
    un_file *file = NULL;
    un_text json = {.ctx = e->ctx};
    un_status status = UN_OK;
    int32_t solids;
    UN_TRY(un_glb_content_read(e, frame, f->points, INT32_MAX, &content));
    pieces[0] = un_glb_measure(&content);
    int32_t shown = pieces[0].vertex_count > 0;
    un_glb_measure_solids(e, pieces + shown, f->which, &solids);
    uint64_t binary = un_glb_place(pieces, shown + solids);
    UN_TRY_DONE(frame_json(e, &json, pieces, shown, f->which, solids, frame, binary, f->points));
    UN_TRY_DONE(
        un_export_create(e, &file, "%s.%04d.glb", f->points ? "particles" : "surface", frame));
    UN_TRY_DONE(write_head(e, file, &json, binary));
    if (shown) un_glb_put(file, &content, f->fastest);
    for (int32_t s = 0; s < solids; s++)
        UN_TRY_DONE(un_glb_put_solid(e, file, &e->solids[f->which[s]]));
    status = un_export_commit(e, file);
    file = NULL;
    /* as in the animation */
    if (content.count > FILM_PARTICLES_MAX) content.count = FILM_PARTICLES_MAX;
    *measured = un_glb_measure(&content);
done:
    un_file_discard(file);
    un_free(e->ctx, json.bytes);
    un_glb_content_free(e, &content);
    return status;
}

/* ---- the animation ---- */

/* After the pieces: for each frame its times (up to 4 floats) and scales (4 x 3); for each moving
 * solid the shared times, translations and rotations. */
#define KEYS 4
#define KEY_BYTES (KEYS * 16) /* a time and a scale for each key */

/* A frame shows from its time to the next one's. */
static void frame_keys(const film *f, int32_t i, float times[KEYS], float scales[KEYS])
{
    const un_exporter *e = f->e;
    int32_t k = f->kept[i];
    double step = e->every / e->rate, at = k * step;
    /* always four keys: before, start, end, last */
    float end = (float)(e->frame_count * step);
    times[0] = 0, times[1] = (float)at, times[2] = (float)(at + step), times[3] = end + 1e-3f;
    scales[0] = 0, scales[1] = 1, scales[2] = 0, scales[3] = 0;
    if (k == 0) { /* times must rise */
        times[0] = 0, times[1] = (float)(0.5 * step);
        scales[0] = scales[1] = 1;
    }
    if (k == e->frame_count - 1) scales[2] = 1, scales[3] = 1;
}

static void add_animation(un_text *t, const film *f)
{
    const un_exporter *e = f->e;
    int32_t count = f->count, base = UN_GLB_ARRAYS * (count + f->solids);
    bool first = true;
    if (count + f->moving == 0) return;
    un_text_add(t, "\"animations\":[{\"name\":\"liquid\",\"samplers\":[");
    for (int32_t k = 0; k < count; k++) {
        un_text_add(t, "%s{\"input\":%d,\"output\":%d,\"interpolation\":\"STEP\"}",
                    first ? "" : ",", base + 2 * k, base + 2 * k + 1);
        first = false;
    }
    for (int32_t m = 0; m < f->moving; m++)
        for (int c = 0; c < 2; c++) {
            un_text_add(t, "%s{\"input\":%d,\"output\":%d,\"interpolation\":\"LINEAR\"}",
                        first ? "" : ",", base + 2 * count, base + 2 * count + 1 + 2 * m + c);
            first = false;
        }
    un_text_add(t, "],\"channels\":[");
    int32_t sampler = 0;
    for (int32_t k = 0; k < count; k++, sampler++)
        un_text_add(t, "%s{\"sampler\":%d,\"target\":{\"node\":%d,\"path\":\"scale\"}}",
                    sampler ? "," : "", sampler, k);
    for (int32_t s = 0; s < f->solids; s++) {
        if (!e->scene->def.solids[f->which[s]].moves) continue;
        for (int c = 0; c < 2; c++) {
            un_text_add(t, "%s{\"sampler\":%d,\"target\":{\"node\":%d,\"path\":\"%s\"}}",
                        sampler ? "," : "", sampler, count + s, c ? "rotation" : "translation");
            sampler++;
        }
    }
    un_text_add(t, "]}],");
}

static void add_key_accessors(un_text *t, const film *f)
{
    const un_exporter *e = f->e;
    int32_t frames = e->frame_count, view = UN_GLB_ARRAYS * (f->count + f->solids);
    for (int32_t k = 0; k < f->count; k++) {
        float times[KEYS], scales[KEYS];
        frame_keys(f, k, times, scales);
        un_text_add(t,
                    ",{\"bufferView\":%d,\"componentType\":5126,\"count\":%d,\"type\":\"SCALAR\","
                    "\"min\":[%.9g],\"max\":[%.9g]},{\"bufferView\":%d,\"componentType\":5126,"
                    "\"count\":%d,\"type\":\"VEC3\"}",
                    view, KEYS, (double)times[0], (double)times[KEYS - 1], view + 1, KEYS);
        view += 2;
    }
    if (f->moving == 0) return;
    un_text_add(
        t,
        ",{\"bufferView\":%d,\"componentType\":5126,\"count\":%d,\"type\":\"SCALAR\",\"min\":[0],"
        "\"max\":[%.9g]}",
        view++, frames, (double)(float)((frames - 1) * e->every / e->rate));
    for (int32_t m = 0; m < f->moving; m++)
        for (int c = 0; c < 2; c++)
            un_text_add(
                t, ",{\"bufferView\":%d,\"componentType\":5126,\"count\":%d,\"type\":\"VEC%d\"}",
                view++, frames, 3 + c);
}

static void add_key_views(un_text *t, const film *f)
{
    uint64_t at = f->keys;
    int32_t frames = f->e->frame_count;
    for (int32_t k = 0; k < f->count; k++, at += KEY_BYTES)
        un_text_add(
            t,
            ",{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%d},{\"buffer\":0,\"byteOffset\":"
            "%llu,\"byteLength\":%d}",
            (unsigned long long)at, 4 * KEYS, (unsigned long long)(at + 4 * KEYS), 12 * KEYS);
    if (f->moving == 0) return;
    uint64_t each[] = {12 * (uint64_t)frames, 16 * (uint64_t)frames};
    un_text_add(t, ",{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu}",
                (unsigned long long)at, 4ull * (unsigned long long)frames);
    at += 4 * (uint64_t)frames;
    for (int32_t m = 0; m < f->moving; m++)
        for (int c = 0; c < 2; c++) {
            un_text_add(t, ",{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu}",
                        (unsigned long long)at, (unsigned long long)each[c]);
            at += each[c];
        }
}

static un_status film_json(un_text *t, const film *f)
{
    un_exporter *e = f->e;
    int32_t count = f->count;
    un_glb_add_head(t, e, f->points);
    add_roots(t, count + f->solids);
    un_text_add(t, "\"nodes\":[");
    for (int32_t k = 0; k < count; k++)
        un_text_add(t, "%s{\"name\":\"frame %d\",\"mesh\":%d%s}", k ? "," : "",
                    un_export_frame(e, f->kept[k]), k, f->kept[k] ? ",\"scale\":[0,0,0]" : "");
    for (int32_t s = 0; s < f->solids; s++) {
        un_pose pose;
        UN_TRY(un_motion_pose(e->motion, f->which[s], e->first, &pose));
        un_text_add(t, "%s{\"name\":\"solid %d\",\"mesh\":%d", count + s ? "," : "",
                    f->which[s] + 1, count + s);
        if (e->scene->def.solids[f->which[s]].moves)
            un_text_add(t, ",\"scale\":[%.9g,%.9g,%.9g]}", pose.scale, pose.scale, pose.scale);
        else {
            add_matrix(t, &pose);
            un_text_add(t, "}");
        }
    }
    un_text_add(t, "],");
    un_glb_add_meshes(t, f->pieces, count + f->solids, count);
    add_animation(t, f);
    un_glb_add_accessors(t, f->pieces, count + f->solids);
    add_key_accessors(t, f);
    un_text_add(t, "],");
    un_glb_add_views(t, f->pieces, count + f->solids);
    add_key_views(t, f);
    un_text_add(t, "],\"buffers\":[{\"byteLength\":%llu}]}", (unsigned long long)f->binary);
    return t->status;
}

static un_status put_keys(un_file *file, const film *f)
{
    const un_exporter *e = f->e;
    int32_t frames = e->frame_count;
    for (int32_t k = 0; k < f->count; k++) {
        float times[KEYS], scales[KEYS];
        frame_keys(f, k, times, scales);
        un_file_write_little(file, times, KEYS, sizeof *times);
        for (int i = 0; i < KEYS; i++)
            for (int a = 0; a < 3; a++) un_file_write_little(file, &scales[i], 1, sizeof *scales);
    }
    if (f->moving == 0) return UN_OK;
    for (int32_t k = 0; k < frames; k++) {
        float time = (float)(k * e->every / e->rate);
        un_file_write_little(file, &time, 1, sizeof time);
    }
    for (int32_t s = 0; s < f->solids; s++) {
        if (!e->scene->def.solids[f->which[s]].moves) continue;
        for (int c = 0; c < 2; c++)
            for (int32_t k = 0; k < frames; k++) {
                un_pose pose;
                double q[4];
                UN_TRY(un_motion_pose(e->motion, f->which[s], un_export_frame(e, k), &pose));
                un_pose_quaternion(&pose, q);
                float x[4] = {(float)pose.translation.x, (float)pose.translation.y,
                              (float)pose.translation.z};
                for (int a = 0; c == 1 && a < 4; a++) x[a] = (float)q[(a + 1) % 4];
                un_file_write_little(file, x, 3 + (size_t)c, sizeof *x);
            }
    }
    return UN_OK;
}

static un_status put_frame(const film *f, un_file *file, int32_t frame, const un_glb_piece *piece)
{
    un_glb_content content;
    UN_TRY(un_glb_content_read(f->e, frame, f->points, FILM_PARTICLES_MAX, &content));
    un_glb_piece now = un_glb_measure(&content);
    bool same =
        now.vertex_count == piece->vertex_count && now.triangle_count == piece->triangle_count;
    if (same) un_glb_put(file, &content, f->fastest);
    un_glb_content_free(f->e, &content);
    if (same) return UN_OK;
    return un_fail(f->e->ctx, UN_ERROR_FILE,
                   "frame %d of %s changed during the export; export again when the run is done",
                   frame, f->e->def->directory);
}

static un_status write_film(film *f)
{
    un_exporter *e = f->e;
    un_file *file = NULL;
    un_text json = {.ctx = e->ctx};
    un_status status = UN_OK;
    un_glb_measure_solids(e, f->pieces + f->count, f->which, &f->solids);
    if (f->count + f->solids == 0) goto done; /* all frames are empty */
    for (int32_t s = 0; s < f->solids; s++) f->moving += e->scene->def.solids[f->which[s]].moves;
    f->keys = un_glb_place(f->pieces, f->count + f->solids);
    f->binary = f->keys + (uint64_t)f->count * KEY_BYTES;
    if (f->moving) f->binary += (uint64_t)e->frame_count * (4 + 28 * (uint64_t)f->moving);
    UN_TRY_DONE(film_json(&json, f));
    UN_TRY_DONE(un_export_create(e, &file, "%s%s.glb", e->name, f->points ? "_particles" : ""));
    UN_TRY_DONE(write_head(e, file, &json, f->binary));
    for (int32_t k = 0; k < f->count; k++) {
        int32_t frame = un_export_frame(e, f->kept[k]);
        UN_TRY_DONE(put_frame(f, file, frame, &f->pieces[k]));
        UN_TRY_DONE(un_file_status(file));
        UN_TRY_DONE(un_export_step(e));
    }
    for (int32_t s = 0; s < f->solids; s++)
        UN_TRY_DONE(un_glb_put_solid(e, file, &e->solids[f->which[s]]));
    UN_TRY_DONE(put_keys(file, f));
    status = un_export_commit(e, file);
    file = NULL;
done:
    un_file_discard(file);
    un_free(e->ctx, json.bytes);
    return status;
}

static un_status write_kind(un_exporter *e, bool points)
{
    int32_t solids = e->scene->def.solid_count;
    un_status status = UN_OK;
    film f = {.e = e, .points = points, .fastest = 1};
    un_glb_piece *scratch = NULL;
    un_info info;
    /* the same colours as in rendered pictures */
    if (un_info_read(e->ctx, e->def->directory, &info) == UN_OK && info.max_speed > 0)
        f.fastest = 0.75 * info.max_speed;
    UN_ALLOC_DONE(e->ctx, f.pieces, e->frame_count + solids + 1);
    UN_ALLOC_DONE(e->ctx, f.kept, e->frame_count);
    UN_ALLOC_DONE(e->ctx, f.which, solids + 1);
    UN_ALLOC_DONE(e->ctx, scratch, solids + 1);
    for (int32_t k = 0; k < e->frame_count; k++) {
        un_glb_piece *measured = &f.pieces[f.count];
        UN_TRY_DONE(write_frame(&f, scratch, un_export_frame(e, k), measured));
        if (measured->vertex_count > 0) f.kept[f.count++] = k;
        UN_TRY_DONE(un_export_step(e));
    }
    status = write_film(&f);
done:
    un_free(e->ctx, f.pieces);
    un_free(e->ctx, f.kept);
    un_free(e->ctx, f.which);
    un_free(e->ctx, scratch);
    return status;
}

un_status un_export_glb(un_exporter *e)
{
    if (e->surface && e->particles) e->total *= 2;
    if (e->surface) UN_TRY(write_kind(e, false));
    return e->particles ? write_kind(e, true) : UN_OK;
}
