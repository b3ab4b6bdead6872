/* Particles as spheres and cells as squares in the plane that cuts them, in colours that say
 * something: of particles the speed, of cells the level. */
#include <stdio.h>
#include <sys/stat.h>

#include "output/output.h"
#include "render/embree.h"

typedef struct un_square {
    float min[2], size; /* in the plane, internal lengths */
    uint8_t colour[3];
} un_square;

#define EDGE 0.045f /* of a cell: half the width of its dark edge */

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
    const un_square *s = &r->square[number / 2];
    int axis = r->def.cut_axis;
    float u = (p[(axis + 1) % 3] - s->min[0]) / s->size,
          v = (p[(axis + 2) % 3] - s->min[1]) / s->size;
    float from = fminf(fminf(u, 1 - u), fminf(v, 1 - v));
    return linear(s->colour) * (from < EDGE ? 0.25f : 1.0f);
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

static void add_square(un_renderer *r, un_vec3 min, double size, const uint8_t colour[3])
{
    int axis = r->def.cut_axis, b = (axis + 1) % 3, c = (axis + 2) % 3;
    int32_t n = r->square_count++;
    float lo[3] = {(float)(min.x / r->unit), (float)(min.y / r->unit), (float)(min.z / r->unit)};
    float s = (float)(size / r->unit);
    r->square[n] = (un_square){{lo[b], lo[c]}, s, {colour[0], colour[1], colour[2]}};
    for (uint32_t k = 0; k < 4; k++) {
        float *to = r->square_corner[4 * n + (int32_t)k];
        to[axis] = (float)(r->def.cut_at / r->unit);
        to[b] = lo[b] + (k == 1 || k == 2 ? s : 0);
        to[c] = lo[c] + (k > 1 ? s : 0);
    }
    static const uint32_t corners[2][3] = {{0, 1, 2}, {0, 2, 3}};
    for (int t = 0; t < 2; t++)
        for (int k = 0; k < 3; k++)
            r->square_triangle[2 * n + t][k] = 4 * (uint32_t)n + corners[t][k];
}

static un_status load_cells(un_renderer *r, const char *path)
{
    un_cells cells;
    un_status status = UN_OK;
    int axis = r->def.cut_axis, lowest = INT32_MAX, highest = INT32_MIN;
    int64_t cut = 0;
    UN_TRY(un_output_read_cells(r->ctx, path, &cells));
    for (int64_t i = 0; i < cells.count; i++) {
        double lo = axis_of(cells.min[i], axis);
        cut += lo <= r->def.cut_at && r->def.cut_at < lo + cells.size[i];
        lowest = cells.level[i] < lowest ? cells.level[i] : lowest;
        highest = cells.level[i] > highest ? cells.level[i] : highest;
    }
    UN_ALLOC_DONE(r->ctx, r->square, cut + 1);
    UN_ALLOC_DONE(r->ctx, r->square_corner, 4 * cut + 1);
    UN_ALLOC_DONE(r->ctx, r->square_triangle, 2 * cut + 1);
    for (int64_t i = 0; i < cells.count; i++) {
        double lo = axis_of(cells.min[i], axis);
        if (!(lo <= r->def.cut_at && r->def.cut_at < lo + cells.size[i])) continue;
        double t = highest > lowest ? (double)(cells.level[i] - lowest) / (highest - lowest) : 0;
        add_square(r, cells.min[i], cells.size[i], level_colours[lround(9 * t)]);
    }
    memset(r->square_corner[4 * r->square_count], 0, sizeof *r->square_corner);
done:
    un_cells_free(r->ctx, &cells);
    return status;
}

un_status un_extra_load(un_renderer *r, int32_t frame)
{
    char path[4200];
    un_extra_free(r);
    if (r->def.particles) {
        snprintf(path, sizeof path, "%s/frames/%04d/particles.vtp", r->directory, frame);
        UN_TRY(load_particles(r, path));
    }
    if (r->def.cells) {
        struct stat found;
        snprintf(path, sizeof path, "%s/frames/%04d/mesh.vtu", r->directory, frame);
        if (stat(path, &found) != 0)
            return un_fail(r->ctx, UN_ERROR_ARGUMENT,
                           "%s holds no cells; run the scene with --set output.mesh=true",
                           r->directory);
        UN_TRY(load_cells(r, path));
    }
    return UN_OK;
}

void un_extra_free(un_renderer *r)
{
    un_free(r->ctx, r->sphere);
    un_free(r->ctx, r->sphere_colour);
    un_free(r->ctx, r->square);
    un_free(r->ctx, r->square_corner);
    un_free(r->ctx, r->square_triangle);
    r->sphere = NULL, r->sphere_colour = NULL, r->square = NULL;
    r->square_corner = NULL, r->square_triangle = NULL;
    r->sphere_count = r->square_count = 0;
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
    if (r->square_count > 0) {
        RTCGeometry g = rtcNewGeometry(r->device, RTC_GEOMETRY_TYPE_TRIANGLE);
        if (!g) return;
        rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3,
                                   r->square_corner, 0, sizeof *r->square_corner,
                                   4 * (size_t)r->square_count);
        rtcSetSharedGeometryBuffer(g, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3,
                                   r->square_triangle, 0, sizeof *r->square_triangle,
                                   2 * (size_t)r->square_count);
        rtcCommitGeometry(g);
        rtcAttachGeometryByID(r->world, g, UN_HIT_CELL);
        rtcReleaseGeometry(g);
    }
}
