/* Binary glTF 2.0: a file per frame, and one of all frames that plays.
 *
 * glTF animates nodes and not topology, so in the animated file every frame is a node of its own
 * that is scaled to 1 while it is due and to 0 at all other times, by steps: what viewers on the
 * web understand without an extension. Axes and units are glTF's already: metres, y up. Velocities
 * go under _VELOCITY, as glTF wants names of one's own. */
#include "export/export.h"

#include <stdio.h>

#define GLB_HEAD 12
#define CHUNK_HEAD 8
#define VERTEX_BYTES 36

/* What the JSON must know of a mesh before its bytes are written. */
typedef struct piece {
    int32_t vertex_count, triangle_count;
    un_vec3 lo, hi;
    uint64_t offset; /* in the binary chunk: vertices, then indices */
} piece;

static uint64_t piece_bytes(const piece *p)
{
    return (uint64_t)p->vertex_count * VERTEX_BYTES + (uint64_t)p->triangle_count * 12;
}

/* Bounds as single precision will have them: readers compare exactly. */
static void measure(piece *p, const un_vec3 *x, int32_t vertex_count, int32_t triangle_count)
{
    *p = (piece){.vertex_count = vertex_count, .triangle_count = triangle_count};
    for (int32_t i = 0; i < vertex_count; i++) {
        un_vec3 a = un_v3((double)(float)x[i].x, (double)(float)x[i].y, (double)(float)x[i].z);
        p->lo = i ? un_min3(p->lo, a) : a;
        p->hi = i ? un_max3(p->hi, a) : a;
    }
}

/* ---- bytes ---- */

/* Normals must have length 1 in glTF. */
static un_vec3 unit(un_vec3 n)
{
    double length = un_length(n);
    return length > 1e-6 && isfinite(length) ? un_scale(n, 1 / length) : un_v3(0, 1, 0);
}

static void put_vectors(un_file *file, const un_vec3 *values, int32_t count, bool normals)
{
    for (int32_t i = 0; i < count; i++) {
        un_vec3 a = values ? values[i] : un_v3(0, 0, 0);
        if (normals) a = unit(a);
        if (!un_finite3(a)) a = un_v3(0, 0, 0);
        float v[3] = {(float)a.x, (float)a.y, (float)a.z};
        un_file_write_little(file, v, 3, sizeof *v);
    }
}

static void put_surface(un_file *file, const un_trimesh *m)
{
    put_vectors(file, m->position, m->vertex_count, false);
    put_vectors(file, m->normal, m->vertex_count, true);
    put_vectors(file, m->velocity, m->vertex_count, false);
    un_file_write_little(file, m->triangle, 3 * (size_t)m->triangle_count, sizeof(int32_t));
}

/* ---- JSON ---- */

static void begin_json(un_text *t)
{
    un_text_add(
        t,
        "{\"asset\":{\"version\":\"2.0\",\"generator\":\"Undine %s\"},\"scene\":0,"
        "\"materials\":[{\"name\":\"water\",\"doubleSided\":true,\"pbrMetallicRoughness\":{"
        "\"baseColorFactor\":[0.16,0.42,0.52,1],\"metallicFactor\":0.1,\"roughnessFactor\":0.12}},"
        "{\"name\":\"solid\",\"pbrMetallicRoughness\":{\"baseColorFactor\":[0.7,0.68,0.65,1],"
        "\"metallicFactor\":0,\"roughnessFactor\":0.8}}],",
        un_version());
}

/* A buffer view for each attribute and the indices: four of each piece, in order. */
static void add_views(un_text *t, const piece *pieces, int32_t count)
{
    un_text_add(t, "\"bufferViews\":[");
    for (int32_t p = 0; p < count; p++) {
        uint64_t at = pieces[p].offset, each = (uint64_t)pieces[p].vertex_count * 12;
        for (int a = 0; a < 3; a++)
            un_text_add(t,
                        "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu,\"target\":34962}",
                        p + a ? "," : "", (unsigned long long)(at + (uint64_t)a * each),
                        (unsigned long long)each);
        un_text_add(t, ",{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu,\"target\":34963}",
                    (unsigned long long)(at + 3 * each),
                    (unsigned long long)((uint64_t)pieces[p].triangle_count * 12));
    }
}

static void add_accessors(un_text *t, const piece *pieces, int32_t count)
{
    un_text_add(t, "\"accessors\":[");
    for (int32_t p = 0; p < count; p++) {
        const piece *q = &pieces[p];
        un_text_add(t,
                    "%s{\"bufferView\":%d,\"componentType\":5126,\"count\":%d,\"type\":\"VEC3\","
                    "\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]}",
                    p ? "," : "", 4 * p, q->vertex_count, q->lo.x, q->lo.y, q->lo.z, q->hi.x,
                    q->hi.y, q->hi.z);
        for (int a = 1; a < 3; a++)
            un_text_add(
                t, ",{\"bufferView\":%d,\"componentType\":5126,\"count\":%d,\"type\":\"VEC3\"}",
                4 * p + a, q->vertex_count);
        un_text_add(
            t, ",{\"bufferView\":%d,\"componentType\":5125,\"count\":%lld,\"type\":\"SCALAR\"}",
            4 * p + 3, 3 * (long long)q->triangle_count);
    }
}

static void add_meshes(un_text *t, int32_t surface_count, int32_t solid_count)
{
    un_text_add(t, "\"meshes\":[");
    for (int32_t p = 0; p < surface_count + solid_count; p++)
        un_text_add(
            t,
            "%s{\"primitives\":[{\"attributes\":{\"POSITION\":%d,\"NORMAL\":%d,\"_VELOCITY\":%d},"
            "\"indices\":%d,\"material\":%d}]}",
            p ? "," : "", 4 * p, 4 * p + 1, 4 * p + 2, 4 * p + 3, p >= surface_count);
    un_text_add(t, "],");
}

/* Column by column; none for what stands where it was made. */
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

static void quaternion(const un_pose *p, float q[4])
{
    const double(*r)[3] = p->rotation;
    double trace = r[0][0] + r[1][1] + r[2][2], w, x, y, z;
    if (trace > 0) {
        double s = 2 * sqrt(trace + 1);
        w = 0.25 * s, x = (r[2][1] - r[1][2]) / s, y = (r[0][2] - r[2][0]) / s;
        z = (r[1][0] - r[0][1]) / s;
    } else {
        int i = r[0][0] > r[1][1] ? (r[0][0] > r[2][2] ? 0 : 2) : (r[1][1] > r[2][2] ? 1 : 2);
        int j = (i + 1) % 3, k = (i + 2) % 3;
        double s = 2 * sqrt(1 + r[i][i] - r[j][j] - r[k][k]), v[3];
        v[i] = 0.25 * s, v[j] = (r[j][i] + r[i][j]) / s, v[k] = (r[k][i] + r[i][k]) / s;
        w = (r[k][j] - r[j][k]) / s, x = v[0], y = v[1], z = v[2];
    }
    double length = sqrt(w * w + x * x + y * y + z * z);
    q[0] = (float)(x / length), q[1] = (float)(y / length), q[2] = (float)(z / length);
    q[3] = (float)(w / length);
}

/* ---- a file: head, JSON, binary ---- */

static un_status write_head(un_exporter *e, un_file *file, un_text *json, uint64_t binary)
{
    UN_TRY(json->status);
    while (json->status == UN_OK && json->used % 4) un_text_add(json, " ");
    uint64_t all = GLB_HEAD + CHUNK_HEAD + json->used + CHUNK_HEAD + binary;
    if (all > UINT32_MAX)
        return un_fail(e->ctx, UN_ERROR_ARGUMENT,
                       "an animation of %.1f GB is more than a .glb can hold, which is 4 GB; "
                       "take fewer frames (--frames, --every)",
                       (double)all * 1e-9);
    uint32_t head[] = {0x46546c67, 2, (uint32_t)all, (uint32_t)json->used, 0x4e4f534a};
    un_file_write_little(file, head, 5, sizeof *head);
    un_file_write(file, json->bytes, json->used);
    uint32_t chunk[] = {(uint32_t)binary, 0x004e4942};
    un_file_write_little(file, chunk, 2, sizeof *chunk);
    return UN_OK;
}

static un_status put_solid(un_exporter *e, un_file *file, const un_render_mesh *m)
{
    float(*n)[3];
    UN_ALLOC(e->ctx, n, m->vertex_count + 1);
    un_file_write_little(file, m->position, 3 * (size_t)m->vertex_count, sizeof(float));
    for (int32_t i = 0; i < m->vertex_count; i++) {
        un_vec3 u =
            unit(un_v3((double)m->normal[i][0], (double)m->normal[i][1], (double)m->normal[i][2]));
        n[i][0] = (float)u.x, n[i][1] = (float)u.y, n[i][2] = (float)u.z;
    }
    un_file_write_little(file, n, 3 * (size_t)m->vertex_count, sizeof(float));
    memset(n, 0, (size_t)m->vertex_count * sizeof *n);
    un_file_write_little(file, n, 3 * (size_t)m->vertex_count, sizeof(float));
    un_file_write_little(file, m->triangle, 3 * (size_t)m->triangle_count, sizeof(uint32_t));
    un_free(e->ctx, n);
    return UN_OK;
}

/* The solids that have triangles: their pieces behind the surfaces', their numbers in `which`. */
static un_status measure_solids(un_exporter *e, piece *pieces, int32_t *which, int32_t *count)
{
    *count = 0;
    for (int32_t s = 0; s < e->scene->def.solid_count; s++) {
        const un_render_mesh *m = &e->solids[s];
        if (m->triangle_count == 0) continue;
        piece *p = &pieces[*count];
        *p = (piece){.vertex_count = m->vertex_count, .triangle_count = m->triangle_count};
        for (int32_t i = 0; i < m->vertex_count; i++) {
            un_vec3 a = un_v3((double)m->position[i][0], (double)m->position[i][1],
                              (double)m->position[i][2]);
            p->lo = i ? un_min3(p->lo, a) : a;
            p->hi = i ? un_max3(p->hi, a) : a;
        }
        which[(*count)++] = s;
    }
    return UN_OK;
}

static uint64_t place_pieces(piece *pieces, int32_t count)
{
    uint64_t at = 0;
    for (int32_t p = 0; p < count; p++) {
        pieces[p].offset = at;
        at += piece_bytes(&pieces[p]);
    }
    return at;
}

static void add_roots(un_text *t, int32_t count)
{
    un_text_add(t, "\"scenes\":[{");
    for (int32_t n = 0; n < count; n++) un_text_add(t, n ? ",%d" : "\"nodes\":[%d", n);
    un_text_add(t, count ? "]}]," : "}],");
}

/* ---- a file per frame ---- */

static un_status frame_json(un_exporter *e, un_text *t, const piece *pieces, int32_t surfaces,
                            const int32_t *which, int32_t solids, int32_t frame, uint64_t binary)
{
    begin_json(t);
    int32_t nodes = surfaces + solids;
    add_roots(t, nodes);
    if (nodes == 0) { /* an empty frame is an empty scene */
        un_text_add(t, "\"extras\":{\"frame\":%d}}", frame);
        return t->status;
    }
    un_text_add(t, "\"nodes\":[");
    if (surfaces) un_text_add(t, "{\"name\":\"surface\",\"mesh\":0}");
    for (int32_t s = 0; s < solids; s++) {
        un_pose pose;
        UN_TRY(un_scene_pose(e->scene, which[s], frame / e->rate, &pose));
        un_text_add(t, "%s{\"name\":\"solid %d\",\"mesh\":%d", s + surfaces ? "," : "",
                    which[s] + 1, s + surfaces);
        add_matrix(t, &pose);
        un_text_add(t, "}");
    }
    un_text_add(t, "],");
    add_meshes(t, surfaces, solids);
    add_accessors(t, pieces, nodes);
    un_text_add(t, "],");
    add_views(t, pieces, nodes);
    un_text_add(t, "],\"buffers\":[{\"byteLength\":%llu}],\"extras\":{\"frame\":%d,\"time\":%.9g}}",
                (unsigned long long)binary, frame, frame / e->rate);
    return t->status;
}

static un_status write_frame(un_exporter *e, piece *pieces, int32_t *which, int32_t frame,
                             piece *measured)
{
    un_trimesh mesh;
    un_file *file = NULL;
    un_text json = {.ctx = e->ctx};
    un_status status = UN_OK;
    int32_t solids;
    UN_TRY(un_export_surface(e, frame, &mesh));
    int32_t surfaces = mesh.triangle_count > 0;
    measure(measured, mesh.position, mesh.vertex_count, mesh.triangle_count);
    pieces[0] = *measured;
    UN_TRY_DONE(measure_solids(e, pieces + surfaces, which, &solids));
    uint64_t binary = place_pieces(pieces, surfaces + solids);
    UN_TRY_DONE(frame_json(e, &json, pieces, surfaces, which, solids, frame, binary));
    UN_TRY_DONE(un_export_create(e, &file, "surface.%04d.glb", frame));
    UN_TRY_DONE(write_head(e, file, &json, binary));
    if (surfaces) put_surface(file, &mesh);
    for (int32_t s = 0; s < solids; s++) UN_TRY_DONE(put_solid(e, file, &e->solids[which[s]]));
    status = un_export_commit(e, file);
    file = NULL;
done:
    un_file_discard(file);
    un_free(e->ctx, json.bytes);
    un_trimesh_free(e->ctx, &mesh);
    return status;
}

/* ---- the animation ---- */

/* Behind the pieces: for each frame its times (up to 4 floats) and scales (4 x 3); for each moving
 * solid the shared times, translations and rotations. */
typedef struct film {
    un_exporter *e;
    piece *pieces;  /* the surfaces that are not empty, then the solids */
    int32_t *kept;  /* of these surfaces: which frame of the export */
    int32_t count;  /* surfaces */
    int32_t *which; /* solids */
    int32_t solids;
    int32_t moving;
    uint64_t keys; /* where animation data begins */
    uint64_t binary;
} film;

#define KEYS 4
#define KEY_BYTES (KEYS * 16) /* a time and a scale for each key */

/* A frame shows from its time to the next one's. */
static void frame_keys(const film *f, int32_t i, float times[KEYS], float scales[KEYS])
{
    const un_exporter *e = f->e;
    int32_t k = f->kept[i];
    double step = e->every / e->rate, at = k * step;
    /* four keys always: before, when due, when over, at the end */
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
    int32_t count = f->count, base = 4 * (count + f->solids);
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
    int32_t frames = e->frame_count, view = 4 * (f->count + f->solids);
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
    begin_json(t);
    add_roots(t, count + f->solids);
    un_text_add(t, "\"nodes\":[");
    for (int32_t k = 0; k < count; k++)
        un_text_add(t, "%s{\"name\":\"frame %d\",\"mesh\":%d%s}", k ? "," : "",
                    un_export_frame(e, f->kept[k]), k, f->kept[k] ? ",\"scale\":[0,0,0]" : "");
    for (int32_t s = 0; s < f->solids; s++) {
        un_pose pose;
        UN_TRY(un_scene_pose(e->scene, f->which[s], e->first / e->rate, &pose));
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
    add_meshes(t, count, f->solids);
    add_animation(t, f);
    add_accessors(t, f->pieces, count + f->solids);
    add_key_accessors(t, f);
    un_text_add(t, "],");
    add_views(t, f->pieces, count + f->solids);
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
                UN_TRY(
                    un_scene_pose(e->scene, f->which[s], un_export_frame(e, k) / e->rate, &pose));
                float x[4] = {(float)pose.translation.x, (float)pose.translation.y,
                              (float)pose.translation.z};
                if (c == 1) quaternion(&pose, x);
                un_file_write_little(file, x, 3 + (size_t)c, sizeof *x);
            }
    }
    return UN_OK;
}

static un_status write_film(film *f)
{
    un_exporter *e = f->e;
    un_file *file = NULL;
    un_text json = {.ctx = e->ctx};
    un_status status = UN_OK;
    UN_TRY_DONE(measure_solids(e, f->pieces + f->count, f->which, &f->solids));
    if (f->count + f->solids == 0) goto done; /* nothing to see in any frame */
    for (int32_t s = 0; s < f->solids; s++) f->moving += e->scene->def.solids[f->which[s]].moves;
    f->keys = place_pieces(f->pieces, f->count + f->solids);
    f->binary = f->keys + (uint64_t)f->count * KEY_BYTES;
    if (f->moving) f->binary += (uint64_t)e->frame_count * (4 + 28 * (uint64_t)f->moving);
    UN_TRY_DONE(film_json(&json, f));
    UN_TRY_DONE(un_export_create(e, &file, "%s.glb", e->name));
    UN_TRY_DONE(write_head(e, file, &json, f->binary));
    for (int32_t k = 0; k < f->count; k++) {
        un_trimesh mesh;
        int32_t frame = un_export_frame(e, f->kept[k]);
        UN_TRY_DONE(un_export_surface(e, frame, &mesh));
        bool same = mesh.vertex_count == f->pieces[k].vertex_count &&
                    mesh.triangle_count == f->pieces[k].triangle_count;
        if (same) put_surface(file, &mesh);
        un_trimesh_free(e->ctx, &mesh);
        if (!same) {
            status = un_fail(e->ctx, UN_ERROR_FILE,
                             "frame %d of %s changed meanwhile; export again when the run is done",
                             frame, e->def->directory);
            goto done;
        }
        UN_TRY_DONE(un_file_status(file));
        UN_TRY_DONE(un_export_step(e));
    }
    for (int32_t s = 0; s < f->solids; s++)
        UN_TRY_DONE(put_solid(e, file, &e->solids[f->which[s]]));
    UN_TRY_DONE(put_keys(file, f));
    status = un_export_commit(e, file);
    file = NULL;
done:
    un_file_discard(file);
    un_free(e->ctx, json.bytes);
    return status;
}

un_status un_export_glb(un_exporter *e)
{
    int32_t solids = e->scene->def.solid_count;
    un_status status = UN_OK;
    film f = {.e = e};
    piece *scratch = NULL;
    UN_ALLOC_DONE(e->ctx, f.pieces, e->frame_count + solids + 1);
    UN_ALLOC_DONE(e->ctx, f.kept, e->frame_count);
    UN_ALLOC_DONE(e->ctx, f.which, solids + 1);
    UN_ALLOC_DONE(e->ctx, scratch, solids + 1);
    for (int32_t k = 0; k < e->frame_count; k++) {
        piece *measured = &f.pieces[f.count];
        UN_TRY_DONE(write_frame(e, scratch, f.which, un_export_frame(e, k), measured));
        if (measured->triangle_count > 0) f.kept[f.count++] = k;
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
