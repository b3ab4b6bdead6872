/* Particles as spheres and cells as polygons in the plane that cuts them; colours show the speed of
 * particles and the level of cells. */
#include <stdio.h>
#include <sys/stat.h>

#include "output/output.h"
#include "render/embree.h"

#define EDGE 0.045 /* half the width of a polygon's dark edge, by the root of its area */

/* ---- colours ---- */

static const uint8_t level_colours[10][3] = {
    {39, 64, 139},  {47, 111, 176}, {56, 160, 184}, {87, 192, 154}, {166, 207, 106},
    {236, 201, 86}, {238, 154, 77}, {221, 97, 80},  {184, 52, 107}, {125, 42, 128}};

/* sRGB bytes to linear. */
static un_fvec linear(const uint8_t rgb[3])
{
    un_fvec out = un_f3(0, 0, 0);
    for (int c = 0; c < 3; c++) {
        float x = (float)rgb[c] / 255;
        out[c] = x <= 0.04045f ? x / 12.92f : powf((x + 0.055f) / 1.055f, 2.4f);
    }
    return out;
}

un_fvec un_extra_colour(const un_renderer *r, unsigned kind, unsigned number, un_fvec p)
{
    if (kind == UN_HIT_POINT) return linear(r->sphere_colour[number]);
    const un_cut_faces *f = &r->faces;
    int b = (r->def.cut_axis + 1) % 3, c = (r->def.cut_axis + 2) % 3;
    int32_t i = f->of_triangle[number], first = f->slice.first[i], end = f->slice.first[i + 1];
    bool edge = false;
    for (int32_t k = first; k < end && !edge; k++) {
        const float *from = f->corner[f->slice.corner[k]];
        const float *to = f->corner[f->slice.corner[k + 1 < end ? k + 1 : first]];
        float u = to[b] - from[b], v = to[c] - from[c];
        float off = u * (p[c] - from[c]) - v * (p[b] - from[b]);
        edge = fabsf(off) < f->edge[i] * sqrtf(u * u + v * v);
    }
    return linear(f->colour[i]) * (edge ? 0.25f : 1.0f);
}

/* ---- loading ---- */

static double axis_of(un_vec3 x, int axis)
{
    return axis == 0 ? x.x : axis == 1 ? x.y : x.z;
}

static un_status load_particles(un_renderer *r, const char *path)
{
    un_particles p;
    un_status status = UN_OK;
    UN_TRY(un_output_read_particles(r->ctx, path, &p));
    UN_ALLOC_DONE(r->ctx, r->sphere, p.count + 1);
    UN_ALLOC_DONE(r->ctx, r->sphere_colour, p.count + 1);
    double fastest = r->fastest > 0 ? 0.75 * r->fastest : 1;
    int axis = r->def.cut_axis;
    for (int32_t i = 0; i < p.count; i++) {
        un_vec3 x = un_particle_position(&p, i);
        if (axis >= 0 && axis_of(x, axis) > r->def.cut_at) continue;
        float *to = r->sphere[r->sphere_count];
        to[0] = (float)(x.x / r->unit), to[1] = (float)(x.y / r->unit);
        to[2] = (float)(x.z / r->unit);
        to[3] = (float)(un_particle_ball(&p, i) / r->unit);
        un_render_ramp(un_length(un_particle_velocity(&p, i)) / fastest,
                       r->sphere_colour[r->sphere_count]);
        r->sphere_count++;
    }
    memset(r->sphere[r->sphere_count], 0, sizeof *r->sphere);
done:
    un_particles_free(r->ctx, &p);
    return status;
}

static double polygon_area(const un_slice *s, int32_t i)
{
    un_vec3 sum = {0, 0, 0}, o = s->point[s->corner[s->first[i]]];
    for (int32_t k = s->first[i] + 2; k < s->first[i + 1]; k++)
        sum = un_add(sum, un_cross(un_sub(s->point[s->corner[k - 1]], o),
                                   un_sub(s->point[s->corner[k]], o)));
    return 0.5 * un_length(sum);
}

static void colour_faces(un_renderer *r, const un_cells *cells)
{
    un_cut_faces *f = &r->faces;
    int32_t lowest = INT32_MAX, highest = INT32_MIN, triangles = 0;
    for (int64_t c = 0; c < cells->count; c++) {
        lowest = cells->level[c] < lowest ? cells->level[c] : lowest;
        highest = cells->level[c] > highest ? cells->level[c] : highest;
    }
    for (int32_t i = 0; i < f->slice.point_count; i++) {
        un_vec3 x = f->slice.point[i];
        f->corner[i][0] = (float)(x.x / r->unit), f->corner[i][1] = (float)(x.y / r->unit);
        f->corner[i][2] = (float)(x.z / r->unit);
    }
    memset(f->corner[f->slice.point_count], 0, sizeof *f->corner);
    for (int32_t i = 0; i < f->slice.count; i++) {
        int32_t c = f->slice.cell[i], first = f->slice.first[i];
        double t = highest > lowest ? (double)(cells->level[c] - lowest) / (highest - lowest) : 0;
        memcpy(f->colour[i], level_colours[lround(9 * t)], sizeof *f->colour);
        f->edge[i] = (float)(EDGE * sqrt(polygon_area(&f->slice, i)) / r->unit);
        for (int32_t k = first + 2; k < f->slice.first[i + 1]; k++, triangles++) {
            f->triangle[triangles][0] = (uint32_t)f->slice.corner[first];
            f->triangle[triangles][1] = (uint32_t)f->slice.corner[k - 1];
            f->triangle[triangles][2] = (uint32_t)f->slice.corner[k];
            f->of_triangle[triangles] = i;
        }
    }
    f->triangle_count = triangles;
}

static un_status load_cells(un_renderer *r, const char *path)
{
    un_cells cells;
    un_cut_faces *f = &r->faces;
    UN_TRY(un_output_read_cells(r->ctx, path, &cells));
    un_status status = un_cells_cut(r->ctx, &f->slice, &cells, r->def.cut_axis, r->def.cut_at);
    if (status != UN_OK) goto done;
    int64_t triangles = f->slice.first[f->slice.count]; /* of a fan: two less than corners */
    UN_ALLOC_DONE(r->ctx, f->corner, f->slice.point_count + 1);
    UN_ALLOC_DONE(r->ctx, f->colour, f->slice.count + 1);
    UN_ALLOC_DONE(r->ctx, f->edge, f->slice.count + 1);
    UN_ALLOC_DONE(r->ctx, f->triangle, triangles + 1);
    UN_ALLOC_DONE(r->ctx, f->of_triangle, triangles + 1);
    colour_faces(r, &cells);
done:
    un_cells_free(r->ctx, &cells);
    return status;
}

un_status un_extra_load(un_renderer *r, int32_t frame, bool particles, bool cells)
{
    char path[4200];
    un_extra_free(r);
    if (particles) {
        snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", r->directory, frame);
        UN_TRY(load_particles(r, path));
    }
    if (cells) {
        struct stat found;
        snprintf(path, sizeof path, "%s/frames/%04d/mesh.vtu", r->directory, frame);
        if (stat(path, &found) != 0)
            return un_fail(r->ctx, UN_ERROR_ARGUMENT,
                           "%s has no cells; run the scene with --set output.mesh=true",
                           r->directory);
        UN_TRY(load_cells(r, path));
    }
    return UN_OK;
}

void un_extra_free(un_renderer *r)
{
    un_free(r->ctx, r->sphere);
    un_free(r->ctx, r->sphere_colour);
    un_slice_free(r->ctx, &r->faces.slice);
    un_free(r->ctx, r->faces.corner);
    un_free(r->ctx, r->faces.colour);
    un_free(r->ctx, r->faces.edge);
    un_free(r->ctx, r->faces.triangle);
    un_free(r->ctx, r->faces.of_triangle);
    r->sphere = NULL, r->sphere_colour = NULL;
    r->sphere_count = 0;
    r->faces = (un_cut_faces){0};
}

/* ---- the world ---- */

void un_extra_cut(un_renderer *r)
{
    un_render_mesh *m = &r->water;
    int axis = r->def.cut_axis;
    if (axis < 0) return;
    float at = (float)(r->def.cut_at / r->unit);
    int32_t kept = 0;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        bool beyond = false;
        for (int c = 0; c < 3; c++) beyond = beyond || m->position[m->triangle[t][c]][axis] > at;
        if (beyond) continue;
        memcpy(m->triangle[kept], m->triangle[t], sizeof *m->triangle);
        m->face[kept++] = m->face[t];
    }
    m->triangle_count = kept;
}

void un_extra_attach(un_renderer *r)
{
    if (r->sphere_count > 0) {
        RTCGeometry g = rtcNewGeometry(r->device, RTC_GEOMETRY_TYPE_SPHERE_POINT);
        if (!g) return;
        rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT4, r->sphere, 0,
                                   sizeof *r->sphere, (size_t)r->sphere_count);
        rtcCommitGeometry(g);
        rtcAttachGeometryByID(r->world, g, UN_HIT_POINT);
        rtcReleaseGeometry(g);
    }
    const un_cut_faces *f = &r->faces;
    if (f->triangle_count > 0) {
        RTCGeometry g = rtcNewGeometry(r->device, RTC_GEOMETRY_TYPE_TRIANGLE);
        if (!g) return;
        rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, f->corner, 0,
                                   sizeof *f->corner, (size_t)f->slice.point_count);
        rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, f->triangle, 0,
                                   sizeof *f->triangle, (size_t)f->triangle_count);
        rtcCommitGeometry(g);
        rtcAttachGeometryByID(r->world, g, UN_HIT_CELL);
        rtcReleaseGeometry(g);
    }
}
