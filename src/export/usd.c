/* USD as text, one file: the surface as a Mesh whose topology changes, the particles as Points,
 * the solids as Meshes with a transform, all with time samples by frame number. Up axis, metres and
 * frame rate are in the header; velocities are in metres per second, from which renderers make
 * motion blur when topology changes.
 *
 * The samples of an attribute are stored together, so frames are read once per attribute; only one
 * frame is in memory. */
#include "export/export.h"

#include <stdio.h>

typedef struct usd_writer {
    un_exporter *e;
    un_file *file;
    int32_t particle_attributes; /* how many of them; 0: no particles */
} usd_writer;

/* "(1, 2, 3)"; values that are not finite become 0, since text USD cannot express them. */
static void put_vector(un_file *file, un_vec3 a)
{
    if (!un_finite3(a)) a = un_v3(0, 0, 0);
    un_file_printf(file, "(%.7g, %.7g, %.7g)", a.x, a.y, a.z);
}

static void put_vectors(un_file *file, const un_vec3 *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (i) un_file_write(file, ", ", 2);
        put_vector(file, values ? values[i] : un_v3(0, 0, 0));
    }
}

/* ---- the surface: one function per attribute ---- */

static void put_extent(un_file *file, const un_trimesh *m)
{
    un_vec3 lo = un_v3(0, 0, 0), hi = lo;
    for (int32_t i = 0; i < m->vertex_count; i++) {
        lo = i ? un_min3(lo, m->position[i]) : m->position[i];
        hi = i ? un_max3(hi, m->position[i]) : m->position[i];
    }
    put_vectors(file, (const un_vec3[]){lo, hi}, 2);
}
static void put_counts(un_file *file, const un_trimesh *m)
{
    for (int32_t t = 0; t < m->triangle_count; t++)
        un_file_write(file, "3, ", t + 1 < m->triangle_count ? 3 : 1);
}
static void put_indices(un_file *file, const un_trimesh *m)
{
    for (int32_t t = 0; t < m->triangle_count; t++)
        un_file_printf(file, "%s%d, %d, %d", t ? ", " : "", m->triangle[t][0], m->triangle[t][1],
                       m->triangle[t][2]);
}
static void put_points(un_file *file, const un_trimesh *m)
{
    put_vectors(file, m->position, m->vertex_count);
}
static void put_normals(un_file *file, const un_trimesh *m)
{
    put_vectors(file, m->normal, m->vertex_count);
}
static void put_velocities(un_file *file, const un_trimesh *m)
{
    put_vectors(file, m->velocity, m->vertex_count);
}

static const struct {
    const char *declaration;
    void (*put)(un_file *file, const un_trimesh *mesh);
} surface_attributes[] = {
    {"float3[] extent", put_extent},          {"int[] faceVertexCounts", put_counts},
    {"int[] faceVertexIndices", put_indices}, {"point3f[] points", put_points},
    {"normal3f[] normals", put_normals},      {"vector3f[] velocities", put_velocities}};
#define SURFACE_ATTRIBUTES (int)(sizeof surface_attributes / sizeof *surface_attributes)

static un_status write_surface(usd_writer *w)
{
    un_exporter *e = w->e;
    un_file_printf(w->file, "    def Mesh \"surface\"\n    {\n"
                            "        uniform token subdivisionScheme = \"none\"\n"
                            "        uniform token orientation = \"rightHanded\"\n"
                            "        color3f[] primvars:displayColor = [(0.16, 0.42, 0.52)]\n"
                            "        normal3f[] normals (\n"
                            "            interpolation = \"vertex\"\n        )\n");
    for (int a = 0; a < SURFACE_ATTRIBUTES; a++) {
        un_file_printf(w->file, "        %s.timeSamples = {\n", surface_attributes[a].declaration);
        for (int32_t k = 0; k < e->frame_count; k++) {
            un_trimesh mesh;
            UN_TRY(un_export_surface(e, un_export_frame(e, k), &mesh));
            un_file_printf(w->file, "            %d: [", un_export_frame(e, k));
            surface_attributes[a].put(w->file, &mesh);
            un_file_printf(w->file, "],\n");
            un_trimesh_free(e->ctx, &mesh);
            UN_TRY(un_file_status(w->file));
            UN_TRY(un_export_step(e));
        }
        un_file_printf(w->file, "        }\n");
    }
    un_file_printf(w->file, "    }\n");
    return UN_OK;
}

/* ---- particles ---- */

static void put_particle_extent(un_file *file, const un_particles *p)
{
    un_vec3 lo = un_v3(0, 0, 0), hi = lo;
    for (int32_t i = 0; i < p->count; i++) {
        un_vec3 x = un_particle_position(p, i);
        double r = un_particle_ball(p, i);
        un_vec3 a = un_sub(x, un_v3(r, r, r)), b = un_add(x, un_v3(r, r, r));
        lo = i ? un_min3(lo, a) : a;
        hi = i ? un_max3(hi, b) : b;
    }
    put_vectors(file, (const un_vec3[]){lo, hi}, 2);
}
static void put_particle_points(un_file *file, const un_particles *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        if (i) un_file_write(file, ", ", 2);
        put_vector(file, un_particle_position(p, i));
    }
}
static void put_particle_widths(un_file *file, const un_particles *p)
{
    for (int32_t i = 0; i < p->count; i++)
        un_file_printf(file, "%s%.5g", i ? ", " : "", 2 * un_particle_ball(p, i));
}
static void put_particle_velocities(un_file *file, const un_particles *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        if (i) un_file_write(file, ", ", 2);
        put_vector(file, un_particle_velocity(p, i));
    }
}

static void put_floats(un_file *file, const float *value, int32_t count)
{
    for (int32_t i = 0; value && i < count; i++)
        un_file_printf(file, "%s%.6g", i ? ", " : "", (double)value[i]);
}
static void put_particle_densities(un_file *file, const un_particles *p)
{
    put_floats(file, p->density, p->count);
}
static void put_particle_viscosities(un_file *file, const un_particles *p)
{
    put_floats(file, p->viscosity, p->count);
}

static const struct {
    const char *declaration;
    void (*put)(un_file *file, const un_particles *particles);
} particle_attributes[] = {{"float3[] extent", put_particle_extent},
                           {"point3f[] points", put_particle_points},
                           {"float[] widths", put_particle_widths},
                           {"vector3f[] velocities", put_particle_velocities},
                           /* if they differ within the liquid */
                           {"float[] primvars:density", put_particle_densities},
                           {"float[] primvars:viscosity", put_particle_viscosities}};
enum { PARTICLE_ATTRIBUTES = 4, MIXED_ATTRIBUTES = 6 };

static un_status count_particle_attributes(usd_writer *w)
{
    un_particles particles;
    if (!w->e->particles) return UN_OK;
    UN_TRY(un_export_particles(w->e, w->e->first, &particles));
    w->particle_attributes = particles.density ? MIXED_ATTRIBUTES : PARTICLE_ATTRIBUTES;
    un_particles_free(w->e->ctx, &particles);
    return UN_OK;
}

static un_status write_particles(usd_writer *w)
{
    un_exporter *e = w->e;
    un_file_printf(w->file, "    def Points \"particles\"\n    {\n"
                            "        color3f[] primvars:displayColor = [(0.3, 0.6, 0.8)]\n"
                            "        float[] widths (\n"
                            "            interpolation = \"vertex\"\n        )\n");
    for (int a = PARTICLE_ATTRIBUTES; a < w->particle_attributes; a++)
        un_file_printf(w->file, "        %s (\n            interpolation = \"vertex\"\n        )\n",
                       particle_attributes[a].declaration);
    for (int a = 0; a < w->particle_attributes; a++) {
        un_file_printf(w->file, "        %s.timeSamples = {\n", particle_attributes[a].declaration);
        for (int32_t k = 0; k < e->frame_count; k++) {
            un_particles particles;
            UN_TRY(un_export_particles(e, un_export_frame(e, k), &particles));
            un_file_printf(w->file, "            %d: [", un_export_frame(e, k));
            particle_attributes[a].put(w->file, &particles);
            un_file_printf(w->file, "],\n");
            un_particles_free(e->ctx, &particles);
            UN_TRY(un_file_status(w->file));
            UN_TRY(un_export_step(e));
        }
        un_file_printf(w->file, "        }\n");
    }
    un_file_printf(w->file, "    }\n");
    return UN_OK;
}

/* ---- solids ---- */

/* USD multiplies row vectors: the matrix is the transpose of ours. */
static void put_pose(un_file *file, const un_pose *p)
{
    un_file_write(file, "(", 1);
    for (int c = 0; c < 3; c++)
        un_file_printf(file, "(%.9g, %.9g, %.9g, 0), ", p->scale * p->rotation[0][c],
                       p->scale * p->rotation[1][c], p->scale * p->rotation[2][c]);
    un_file_printf(file, "(%.9g, %.9g, %.9g, 1))", p->translation.x, p->translation.y,
                   p->translation.z);
}

static un_status write_solid(usd_writer *w, int32_t s)
{
    un_exporter *e = w->e;
    const un_body_mesh *m = &e->solids[s];
    un_pose pose;
    un_file_printf(w->file,
                   "    def Mesh \"solid_%d\"\n    {\n"
                   "        uniform token subdivisionScheme = \"none\"\n"
                   "        color3f[] primvars:displayColor = [(0.7, 0.68, 0.65)]\n"
                   "        int[] faceVertexCounts = [",
                   s + 1);
    for (int32_t t = 0; t < m->triangle_count; t++) un_file_printf(w->file, t ? ", 3" : "3");
    un_file_printf(w->file, "]\n        int[] faceVertexIndices = [");
    for (int32_t t = 0; t < m->triangle_count; t++)
        un_file_printf(w->file, "%s%u, %u, %u", t ? ", " : "", m->triangle[t][0], m->triangle[t][1],
                       m->triangle[t][2]);
    un_file_printf(w->file, "]\n        point3f[] points = [");
    for (int32_t i = 0; i < m->vertex_count; i++)
        un_file_printf(w->file, "%s(%.7g, %.7g, %.7g)", i ? ", " : "", (double)m->position[i][0],
                       (double)m->position[i][1], (double)m->position[i][2]);
    un_file_printf(w->file, "]\n        normal3f[] normals = [");
    for (int32_t i = 0; i < m->vertex_count; i++)
        un_file_printf(w->file, "%s(%.5g, %.5g, %.5g)", i ? ", " : "", (double)m->normal[i][0],
                       (double)m->normal[i][1], (double)m->normal[i][2]);
    un_file_printf(w->file, "] (\n            interpolation = \"vertex\"\n        )\n");
    if (e->scene->def.solids[s].moves) {
        un_file_printf(w->file, "        matrix4d xformOp:transform.timeSamples = {\n");
        for (int32_t k = 0; k < e->frame_count; k++) {
            UN_TRY(un_motion_pose(e->motion, s, un_export_frame(e, k), &pose));
            un_file_printf(w->file, "            %d: ", un_export_frame(e, k));
            put_pose(w->file, &pose);
            un_file_printf(w->file, ",\n");
        }
        un_file_printf(w->file, "        }\n"
                                "        uniform token[] xformOpOrder = [\"xformOp:transform\"]\n");
    }
    un_file_printf(w->file, "    }\n");
    return un_file_status(w->file);
}

/* ---- the camera of the scene's pictures ---- */

/* 16:9 of a film 36 mm wide; only proportions matter. */
#define APERTURE_X 36.0
#define APERTURE_Y 20.25

/* Cameras of USD look along -z, with y up. */
static un_pose pose_of_view(const un_viewpoint *at)
{
    un_vec3 back = un_normalize(un_sub(at->eye, at->target));
    un_vec3 right = un_cross(un_v3(0, 1, 0), back);
    if (un_length(right) < 1e-6) right = un_v3(1, 0, 0); /* straight up or down, as in pictures */
    right = un_normalize(right);
    un_vec3 up = un_cross(back, right);
    return (un_pose){
        .rotation = {{right.x, up.x, back.x}, {right.y, up.y, back.y}, {right.z, up.z, back.z}},
        .translation = at->eye,
        .scale = 1};
}

static un_status write_camera(usd_writer *w)
{
    un_exporter *e = w->e;
    un_viewpoint at;
    un_file_printf(
        w->file,
        "    def Camera \"camera\"\n    {\n"
        "        float horizontalAperture = %.9g\n        float verticalAperture = %.9g\n"
        "        float2 clippingRange = (0.001, 1000000)\n"
        "        float focalLength.timeSamples = {\n",
        APERTURE_X, APERTURE_Y);
    for (int32_t k = 0; k < e->frame_count; k++) {
        UN_TRY(un_scene_render_camera(e->scene, un_export_frame(e, k) / e->rate, &at));
        un_file_printf(w->file, "            %d: %.9g,\n", un_export_frame(e, k),
                       0.5 * APERTURE_Y / tan(at.fov * UN_PI / 360));
    }
    un_file_printf(w->file, "        }\n        matrix4d xformOp:transform.timeSamples = {\n");
    for (int32_t k = 0; k < e->frame_count; k++) {
        UN_TRY(un_scene_render_camera(e->scene, un_export_frame(e, k) / e->rate, &at));
        un_pose pose = pose_of_view(&at);
        un_file_printf(w->file, "            %d: ", un_export_frame(e, k));
        put_pose(w->file, &pose);
        un_file_printf(w->file, ",\n");
    }
    un_file_printf(w->file, "        }\n"
                            "        uniform token[] xformOpOrder = [\"xformOp:transform\"]\n"
                            "    }\n");
    return un_file_status(w->file);
}

/* ---- the file ---- */

static un_status write_stage(usd_writer *w)
{
    un_exporter *e = w->e;
    un_file_printf(w->file, "#usda 1.0\n(\n    defaultPrim = \"%s\"\n    doc = \"Undine %s\"\n",
                   e->name, un_version());
    un_file_printf(w->file,
                   "    startTimeCode = %d\n    endTimeCode = %d\n    timeCodesPerSecond = %.9g\n"
                   "    framesPerSecond = %.9g\n    metersPerUnit = 1\n    upAxis = \"Y\"\n)\n\n",
                   e->first, un_export_frame(e, e->frame_count - 1), e->rate, e->rate);
    un_file_printf(w->file, "def Xform \"%s\" (\n    kind = \"component\"\n)\n{\n", e->name);
    if (e->surface) UN_TRY(write_surface(w));
    if (e->particles) UN_TRY(write_particles(w));
    for (int32_t s = 0; s < e->scene->def.solid_count; s++)
        if (e->solids[s].triangle_count > 0) UN_TRY(write_solid(w, s));
    const un_camera_keys *camera = &e->scene->def.render.camera;
    if (camera->has_eye && camera->has_target) UN_TRY(write_camera(w));
    un_file_printf(w->file, "}\n");
    return un_file_status(w->file);
}

un_status un_export_usd(un_exporter *e)
{
    usd_writer w = {.e = e};
    UN_TRY(count_particle_attributes(&w));
    e->total = e->frame_count * ((e->surface ? SURFACE_ATTRIBUTES : 0) + w.particle_attributes);
    UN_TRY(un_export_create(e, &w.file, "%s.usda", e->name));
    un_status status = write_stage(&w);
    if (status == UN_OK) return un_export_commit(e, w.file);
    un_file_discard(w.file);
    return status;
}
