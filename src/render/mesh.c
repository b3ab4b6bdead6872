/* Reads the surface of a frame and makes it ready for tracing. */
#include "render/render.h"

#include <errno.h>
#include <sys/stat.h>

#include "output/output.h"

/* A vertex this close to a side of the domain is on it; internal lengths. Files are in float. */
#define ON_SIDE 2e-5f

un_status un_render_mesh_init(un_context *ctx, un_render_mesh *mesh, int32_t vertex_count,
                              int32_t triangle_count)
{
    *mesh = (un_render_mesh){.vertex_count = vertex_count, .triangle_count = triangle_count};
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, mesh->position, vertex_count + 1);
    UN_ALLOC_DONE(ctx, mesh->normal, vertex_count + 1);
    UN_ALLOC_DONE(ctx, mesh->triangle, triangle_count + 1);
    UN_ALLOC_DONE(ctx, mesh->face, triangle_count + 1);
    memset(mesh->position[vertex_count], 0, sizeof *mesh->position);
done:
    if (status != UN_OK) un_render_mesh_free(ctx, mesh);
    return status;
}

void un_render_mesh_free(un_context *ctx, un_render_mesh *mesh)
{
    un_free(ctx, mesh->position);
    un_free(ctx, mesh->normal);
    un_free(ctx, mesh->triangle);
    un_free(ctx, mesh->face);
    *mesh = (un_render_mesh){0};
}

/* The octahedron |x| + |y| + |z| = 1 seen from above, its lower half folded outwards. */
void un_normal_pack(un_fvec n, int16_t packed[2])
{
    float sum = fabsf(n[0]) + fabsf(n[1]) + fabsf(n[2]);
    float x = sum > 0 ? n[0] / sum : 0, z = sum > 0 ? n[2] / sum : 0;
    if (n[1] < 0) {
        float folded = (1 - fabsf(z)) * (x >= 0 ? 1 : -1);
        z = (1 - fabsf(x)) * (z >= 0 ? 1 : -1);
        x = folded;
    }
    packed[0] = (int16_t)lrintf(x * 32767);
    packed[1] = (int16_t)lrintf(z * 32767);
}

static void pack_faces(void *arg, int64_t begin, int64_t end)
{
    un_render_mesh *m = arg;
    for (int64_t t = begin; t < end; t++)
        for (int c = 0; c < 3; c++) {
            const float *n = m->normal[m->triangle[t][c]];
            un_normal_pack(un_f3(n[0], n[1], n[2]), m->face[t].normal[c]);
        }
}

void un_render_mesh_pack(un_context *ctx, un_render_mesh *mesh)
{
    un_parallel_for(ctx, mesh->triangle_count, 4096, pack_faces, mesh);
}

static un_fvec vertex(const un_render_mesh *m, uint32_t v)
{
    return un_f3(m->position[v][0], m->position[v][1], m->position[v][2]);
}

static un_fvec cross_of(const un_render_mesh *m, const uint32_t corner[3])
{
    un_fvec a = vertex(m, corner[0]);
    return un_fcross(vertex(m, corner[1]) - a, vertex(m, corner[2]) - a);
}

/* Is the whole triangle in one side of the domain's box? */
static bool is_on_side(const un_render_mesh *m, const uint32_t corner[3], un_fvec size)
{
    for (int a = 0; a < 3; a++)
        for (int high = 0; high < 2; high++) {
            float plane = high ? size[a] : 0;
            bool on = true;
            for (int c = 0; c < 3; c++)
                on = on && fabsf(m->position[corner[c]][a] - plane) <= ON_SIDE;
            if (on) return true;
        }
    return false;
}

/* Bottom of water that is on the floor, or nearly so. */
static bool is_on_floor(const un_render_mesh *m, const uint32_t corner[3], float reach)
{
    for (int c = 0; c < 3; c++)
        if (m->position[corner[c]][1] > reach) return false;
    un_fvec g = cross_of(m, corner);
    return g[1] <= -0.7f * un_flength(g);
}

/* ---- contact with solids ---- */

typedef struct contact {
    const un_render_mesh *mesh;
    const un_bodies *bodies;
    double unit, reach;
    un_fvec *away; /* per vertex: outward from the nearest solid and distance; 0: none in reach */
    bool *glass;   /* per vertex: that solid is of glass */
} contact;

static void find_contact(void *arg, int64_t begin, int64_t end)
{
    contact *c = arg;
    for (int64_t v = begin; v < end; v++) {
        const float *p = c->mesh->position[v];
        un_vec3 x = un_scale(un_v3((double)p[0], (double)p[1], (double)p[2]), c->unit);
        un_vec3 away = {0, 0, 0};
        double distance = c->reach;
        int32_t nearest = un_bodies_nearest(c->bodies, x, &distance);
        if (nearest >= 0) away = un_body_normal(&c->bodies->body[nearest], x);
        c->glass[v] = nearest >= 0 && un_solid_is_glass(&c->bodies->scene->def.solids[nearest]);
        c->away[v] = (un_fvec){(float)away.x, (float)away.y, (float)away.z, (float)distance};
    }
}

/* TOUCH or WET if all three corners are near a solid, and the triangle faces it or is inside it;
 * otherwise PLAIN. */
static uint8_t contact_kind(const contact *c, const uint32_t corner[3], bool *inside)
{
    un_fvec sum = un_f3(0, 0, 0);
    bool glass = true;
    *inside = c->away;
    if (!c->away) return UN_FACE_PLAIN;
    for (int k = 0; k < 3; k++) {
        un_fvec a = c->away[corner[k]];
        if (un_fdot(a, a) == 0) {
            *inside = false;
            return UN_FACE_PLAIN;
        }
        *inside = *inside && a[3] <= 0;
        glass = glass && c->glass[corner[k]];
        sum += a;
    }
    un_fvec g = cross_of(c->mesh, corner);
    if (!*inside && un_fdot(un_fnormalize(sum), g) > -0.3f * un_flength(g)) return UN_FACE_PLAIN;
    return glass ? UN_FACE_WET : UN_FACE_TOUCH;
}

/* Where water touches a solid its normal is the solid's. */
static void pack_contacts(const contact *c, un_render_mesh *m)
{
    for (int32_t t = 0; c->away && t < m->triangle_count; t++)
        for (int k = 0;
             k < 3 && (m->face[t].kind == UN_FACE_TOUCH || m->face[t].kind == UN_FACE_WET); k++)
            un_normal_pack(-c->away[m->triangle[t][k]], m->face[t].normal[k]);
}

un_status un_render_mesh_prepare(un_context *ctx, un_render_mesh *m, un_fvec size, double unit,
                                 float reach, const un_bodies *bodies)
{
    if (!m->position) return UN_OK;
    contact c = {.mesh = m, .bodies = bodies, .unit = unit};
    c.reach = (double)reach * unit;
    un_status status = UN_OK;
    if (bodies && bodies->count > 0) {
        UN_ALLOC_DONE(ctx, c.away, m->vertex_count + 1);
        UN_ALLOC_DONE(ctx, c.glass, m->vertex_count + 1);
        un_parallel_for(ctx, m->vertex_count, 1024, find_contact, &c);
    }
    int32_t kept = 0;
    memset(m->normal, 0, (size_t)(m->vertex_count + 1) * sizeof *m->normal);
    for (int32_t t = 0; t < m->triangle_count; t++) {
        uint32_t corner[3] = {m->triangle[t][0], m->triangle[t][1], m->triangle[t][2]};
        bool flat = is_on_side(m, corner, size), inside = false;
        uint8_t touch = contact_kind(&c, corner, &inside);
        if (is_on_floor(m, corner, reach) || (flat && inside)) continue;
        memcpy(m->triangle[kept], corner, sizeof corner);
        m->face[kept] = (un_render_face){.kind = flat ? UN_FACE_FLAT : touch};
        bool plain = m->face[kept++].kind == UN_FACE_PLAIN;
        un_fvec g = cross_of(m, corner);
        for (int k = 0; k < 3 && plain; k++)
            for (int a = 0; a < 3; a++) m->normal[corner[k]][a] += g[a];
    }
    m->triangle_count = kept;
    for (int32_t v = 0; v < m->vertex_count; v++) {
        un_fvec n = un_fnormalize(un_f3(m->normal[v][0], m->normal[v][1], m->normal[v][2]));
        for (int a = 0; a < 3; a++) m->normal[v][a] = n[a];
    }
    un_render_mesh_pack(ctx, m);
    pack_contacts(&c, m);
done:
    un_free(ctx, c.away);
    un_free(ctx, c.glass);
    return status;
}

un_status un_render_mesh_load(un_context *ctx, const char *path, double unit, un_render_mesh *mesh)
{
    un_trimesh surface;
    struct stat found;
    *mesh = (un_render_mesh){0};
    if (stat(path, &found) != 0 && errno == ENOENT) return UN_OK;
    UN_TRY(un_output_read_surface(ctx, path, &surface));
    un_status status = un_render_mesh_init(ctx, mesh, surface.vertex_count, surface.triangle_count);
    for (int32_t v = 0; status == UN_OK && v < surface.vertex_count; v++) {
        un_vec3 x = surface.position[v];
        mesh->position[v][0] = (float)(x.x / unit);
        mesh->position[v][1] = (float)(x.y / unit);
        mesh->position[v][2] = (float)(x.z / unit);
    }
    for (int32_t t = 0; status == UN_OK && t < surface.triangle_count; t++)
        for (int c = 0; c < 3; c++) mesh->triangle[t][c] = (uint32_t)surface.triangle[t][c];
    un_trimesh_free(ctx, &surface);
    return status;
}
