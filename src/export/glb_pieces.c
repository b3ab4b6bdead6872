/* Pieces of a glTF file: their bytes and their JSON. */
#include "export/glb.h"
#include "render/render.h"

#define VERTEX_BYTES 36
#define POINT_BYTES 32

/* ---- content ---- */

un_status un_glb_content_read(const un_exporter *e, int32_t frame, bool points, int32_t most,
                              un_glb_content *c)
{
    *c = (un_glb_content){.points = points};
    if (!points) return un_export_surface(e, frame, &c->mesh);
    UN_TRY(un_export_particles(e, frame, &c->particles));
    c->count = c->particles.count < most ? c->particles.count : most;
    return UN_OK;
}

void un_glb_content_free(const un_exporter *e, un_glb_content *c)
{
    un_trimesh_free(e->ctx, &c->mesh);
    un_particles_free(e->ctx, &c->particles);
    *c = (un_glb_content){0};
}

/* Index of the k-th chosen particle. */
static int32_t taken(const un_glb_content *c, int32_t k)
{
    return (int32_t)((int64_t)k * c->particles.count / c->count);
}

/* Rounded to single precision: readers compare bounds exactly. JSON has no NaN. */
static un_vec3 rounded(un_vec3 a)
{
    a = un_v3((double)(float)a.x, (double)(float)a.y, (double)(float)a.z);
    return un_finite3(a) ? a : un_v3(0, 0, 0);
}

un_glb_piece un_glb_measure(const un_glb_content *c)
{
    un_glb_piece p = {.points = c->points};
    p.triangle_count = c->points ? 0 : c->mesh.triangle_count;
    if (c->points)
        p.vertex_count = c->count;
    else if (p.triangle_count > 0)
        p.vertex_count = c->mesh.vertex_count;
    for (int32_t i = 0; i < p.vertex_count; i++) {
        un_vec3 a = rounded(c->points ? un_particle_position(&c->particles, taken(c, i))
                                      : c->mesh.position[i]);
        p.lo = i ? un_min3(p.lo, a) : a;
        p.hi = i ? un_max3(p.hi, a) : a;
    }
    return p;
}

void un_glb_measure_solids(const un_exporter *e, un_glb_piece *pieces, int32_t *which,
                           int32_t *count)
{
    *count = 0;
    for (int32_t s = 0; s < e->scene->def.solid_count; s++) {
        const un_body_mesh *m = &e->solids[s];
        if (m->triangle_count == 0) continue;
        un_glb_piece *p = &pieces[*count];
        *p = (un_glb_piece){.glass = un_solid_is_glass(&e->scene->def.solids[s]),
                            .vertex_count = m->vertex_count,
                            .triangle_count = m->triangle_count};
        for (int32_t i = 0; i < m->vertex_count; i++) {
            un_vec3 a = un_v3((double)m->position[i][0], (double)m->position[i][1],
                              (double)m->position[i][2]);
            p->lo = i ? un_min3(p->lo, a) : a;
            p->hi = i ? un_max3(p->hi, a) : a;
        }
        which[(*count)++] = s;
    }
}

uint64_t un_glb_place(un_glb_piece *pieces, int32_t count)
{
    uint64_t at = 0;
    for (int32_t p = 0; p < count; p++) {
        pieces[p].offset = at;
        at += (uint64_t)pieces[p].vertex_count * (pieces[p].points ? POINT_BYTES : VERTEX_BYTES) +
              (uint64_t)pieces[p].triangle_count * 12;
    }
    return at;
}

/* ---- bytes ---- */

/* Normals must have length 1 in glTF. */
static un_vec3 unit(un_vec3 n)
{
    double length = un_length(n);
    return length > 1e-6 && isfinite(length) ? un_scale(n, 1 / length) : un_v3(0, 1, 0);
}

static void put_vector(un_file *file, un_vec3 a)
{
    a = rounded(a);
    float v[3] = {(float)a.x, (float)a.y, (float)a.z};
    un_file_write_little(file, v, 3, sizeof *v);
}

static void put_surface(un_file *file, const un_trimesh *m)
{
    un_vec3 none = un_v3(0, 0, 0);
    for (int32_t i = 0; i < m->vertex_count; i++) put_vector(file, m->position[i]);
    for (int32_t i = 0; i < m->vertex_count; i++)
        put_vector(file, unit(m->normal ? m->normal[i] : none));
    for (int32_t i = 0; i < m->vertex_count; i++)
        put_vector(file, m->velocity ? m->velocity[i] : none);
    un_file_write_little(file, m->triangle, 3 * (size_t)m->triangle_count, sizeof(int32_t));
}

/* glTF's colours are linear, those of the colour scale are sRGB. */
static void put_colour(un_file *file, double t)
{
    uint8_t rgb[3], linear[4] = {0, 0, 0, 255};
    un_render_ramp(t, rgb);
    for (int c = 0; c < 3; c++) linear[c] = (uint8_t)lround(255 * pow(rgb[c] / 255.0, 2.2));
    un_file_write(file, linear, sizeof linear);
}

static void put_points(un_file *file, const un_glb_content *c, double fastest)
{
    const un_particles *p = &c->particles;
    for (int32_t k = 0; k < c->count; k++) put_vector(file, un_particle_position(p, taken(c, k)));
    for (int32_t k = 0; k < c->count; k++)
        put_colour(file, un_length(un_particle_velocity(p, taken(c, k))) / fastest);
    for (int32_t k = 0; k < c->count; k++) put_vector(file, un_particle_velocity(p, taken(c, k)));
    for (int32_t k = 0; k < c->count; k++) {
        float radius = (float)un_particle_ball(p, taken(c, k));
        if (!isfinite(radius)) radius = 0;
        un_file_write_little(file, &radius, 1, sizeof radius);
    }
}

void un_glb_put(un_file *file, const un_glb_content *c, double fastest)
{
    if (c->points)
        put_points(file, c, fastest);
    else
        put_surface(file, &c->mesh);
}

un_status un_glb_put_solid(un_exporter *e, un_file *file, const un_body_mesh *m)
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

/* ---- JSON ---- */

void un_glb_add_head(un_text *t, const un_exporter *e, bool points)
{
    bool glass = false;
    for (int32_t s = 0; s < e->scene->def.solid_count; s++)
        glass = glass || un_solid_is_glass(&e->scene->def.solids[s]);
    un_text_add(t, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"Undine %s\"},\"scene\":0,",
                un_version());
    if (points || glass)
        un_text_add(t, "\"extensionsUsed\":[%s%s%s],", points ? "\"KHR_materials_unlit\"" : "",
                    points && glass ? "," : "", glass ? "\"KHR_materials_transmission\"" : "");
    un_text_add(t, "\"materials\":[");
    if (points) /* unlit: points have no normal, and their colour is their speed */
        un_text_add(t, "{\"name\":\"particles\",\"pbrMetallicRoughness\":{\"metallicFactor\":0},"
                       "\"extensions\":{\"KHR_materials_unlit\":{}}},");
    else
        un_text_add(t, "{\"name\":\"water\",\"doubleSided\":true,\"pbrMetallicRoughness\":{"
                       "\"baseColorFactor\":[0.16,0.42,0.52,1],\"metallicFactor\":0.1,"
                       "\"roughnessFactor\":0.12}},");
    un_text_add(t, "{\"name\":\"solid\",\"pbrMetallicRoughness\":{\"baseColorFactor\":"
                   "[0.7,0.68,0.65,1],\"metallicFactor\":0,\"roughnessFactor\":0.8}}");
    if (glass)
        un_text_add(t, ",{\"name\":\"glass\",\"pbrMetallicRoughness\":{\"baseColorFactor\":"
                       "[0.94,0.98,0.97,1],\"metallicFactor\":0,\"roughnessFactor\":0},"
                       "\"extensions\":{\"KHR_materials_transmission\":{"
                       "\"transmissionFactor\":0.95}}}");
    un_text_add(t, "],");
}

void un_glb_add_views(un_text *t, const un_glb_piece *pieces, int32_t count)
{
    static const uint64_t bytes[2][UN_GLB_ARRAYS] = {{12, 12, 12, 0}, {12, 4, 12, 4}};
    un_text_add(t, "\"bufferViews\":[");
    for (int32_t p = 0; p < count; p++) {
        const un_glb_piece *q = &pieces[p];
        uint64_t at = q->offset;
        for (int a = 0; a < UN_GLB_ARRAYS; a++) {
            bool indices = a == 3 && !q->points;
            uint64_t length = indices ? (uint64_t)q->triangle_count * 12
                                      : (uint64_t)q->vertex_count * bytes[q->points][a];
            un_text_add(t, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu,\"target\":%d}",
                        p + a ? "," : "", (unsigned long long)at, (unsigned long long)length,
                        indices ? 34963 : 34962);
            at += length;
        }
    }
}

static void add_accessor(un_text *t, int32_t view, int kind, int64_t count, const char *type)
{
    un_text_add(t, ",{\"bufferView\":%d,\"componentType\":%d,\"count\":%lld,\"type\":\"%s\"%s}",
                view, kind, (long long)count, type, kind == 5121 ? ",\"normalized\":true" : "");
}

void un_glb_add_accessors(un_text *t, const un_glb_piece *pieces, int32_t count)
{
    un_text_add(t, "\"accessors\":[");
    for (int32_t p = 0; p < count; p++) {
        const un_glb_piece *q = &pieces[p];
        int32_t view = UN_GLB_ARRAYS * p;
        un_text_add(t,
                    "%s{\"bufferView\":%d,\"componentType\":5126,\"count\":%d,\"type\":\"VEC3\","
                    "\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]}",
                    p ? "," : "", view, q->vertex_count, q->lo.x, q->lo.y, q->lo.z, q->hi.x,
                    q->hi.y, q->hi.z);
        if (q->points)
            add_accessor(t, view + 1, 5121, q->vertex_count, "VEC4");
        else
            add_accessor(t, view + 1, 5126, q->vertex_count, "VEC3");
        add_accessor(t, view + 2, 5126, q->vertex_count, "VEC3");
        if (q->points)
            add_accessor(t, view + 3, 5126, q->vertex_count, "SCALAR");
        else
            add_accessor(t, view + 3, 5125, 3 * (int64_t)q->triangle_count, "SCALAR");
    }
}

void un_glb_add_meshes(un_text *t, const un_glb_piece *pieces, int32_t count, int32_t shown_count)
{
    un_text_add(t, "\"meshes\":[");
    for (int32_t p = 0; p < count; p++) {
        int32_t a = UN_GLB_ARRAYS * p;
        un_text_add(t, "%s{\"primitives\":[{\"attributes\":{\"POSITION\":%d,\"_VELOCITY\":%d,",
                    p ? "," : "", a, a + 2);
        if (pieces[p].points)
            un_text_add(t, "\"COLOR_0\":%d,\"_RADIUS\":%d},\"mode\":0", a + 1, a + 3);
        else
            un_text_add(t, "\"NORMAL\":%d},\"indices\":%d", a + 1, a + 3);
        un_text_add(t, ",\"material\":%d}]}", pieces[p].glass ? 2 : p >= shown_count);
    }
    un_text_add(t, "],");
}
