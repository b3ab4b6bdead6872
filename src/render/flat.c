/* Pictures of 2D runs: the plane seen from the front.
 *
 * Water is the triangles of the mesh, sampled on a raster finer than the pixels; a triangle owns
 * the samples from its left side up to its right side, so that neighbours leave no gap. Solids,
 * discs and lines are drawn by their distance from a pixel's centre, softened over a pixel. */
#include "render/flat.h"

/* Margin around the domain, relative to the picture's shorter side. */
#define MARGIN 0.05
/* Half the width of lines, relative to the picture's height: outline, sides of the domain. */
#define OUTLINE 0.0013
#define SIDE 0.0016
/* How much of what is behind it glass hides. */
#define GLASS 0.55
/* Rows of pixels that a thread takes at once. */
#define BAND 8

typedef struct colour {
    float c[3]; /* as on the screen, 0..1 */
} colour;

static const colour paper = {{0.945f, 0.953f, 0.961f}}, air = {{1, 1, 1}};
static const colour water_top = {{0.30f, 0.62f, 0.86f}}, water_bottom = {{0.13f, 0.42f, 0.71f}};
static const colour grey = {{0.60f, 0.62f, 0.65f}}, side_grey = {{0.36f, 0.39f, 0.43f}};

static float to_screen(double linear)
{
    double x = un_clamp(linear, 0, 1);
    return (float)(x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055);
}

static colour chosen(bool has, const double linear[3], colour otherwise)
{
    if (!has) return otherwise;
    return (colour){{to_screen(linear[0]), to_screen(linear[1]), to_screen(linear[2])}};
}

static colour mix(colour a, colour b, float s)
{
    for (int c = 0; c < 3; c++) a.c[c] += (b.c[c] - a.c[c]) * s;
    return a;
}

static colour darker(colour a, float share)
{
    return mix(a, (colour){{0, 0, 0}}, share);
}

typedef struct flat_view {
    const un_flat_picture *in;
    un_vec3 centre;
    double pixel; /* m */
    int32_t fine; /* samples along a pixel */
    uint8_t *rgb;
    un_outline outline;
    colour top, bottom, solid, around;
} flat_view;

/* The plane at column x and row y of the picture, in pixels from its upper left corner. */
static un_vec3 place_of(const flat_view *v, double x, double y)
{
    return un_v3(v->centre.x + (x - 0.5 * v->in->def->width) * v->pixel,
                 v->centre.y - (y - 0.5 * v->in->def->height) * v->pixel, 0);
}

static double column_of(const flat_view *v, double x)
{
    return (x - v->centre.x) / v->pixel + 0.5 * v->in->def->width;
}

static double row_of(const flat_view *v, double y)
{
    return (v->centre.y - y) / v->pixel + 0.5 * v->in->def->height;
}

static void paint(colour *to, colour with, double cover)
{
    if (cover > 0) *to = mix(*to, with, (float)fmin(cover, 1));
}

/* Fraction of a pixel that is inside; its centre is `pixels` outside the edge. */
static double soft(double pixels)
{
    return un_clamp(0.5 - pixels, 0, 1);
}

/* ---- water ---- */

/* Where an edge crosses a row of samples: the same number from both of its triangles. */
static double crossing(un_vec3 a, un_vec3 b, double y)
{
    if (a.y > b.y) {
        un_vec3 swap = a;
        a = b;
        b = swap;
    }
    return a.x + (b.x - a.x) * ((y - a.y) / (b.y - a.y));
}

/* Samples of the band that the triangle covers; corners in samples of the picture. */
static void cover(uint8_t *mask, const un_vec3 p[3], int64_t first, int64_t rows, int64_t width)
{
    double low = fmin(p[0].y, fmin(p[1].y, p[2].y)), high = fmax(p[0].y, fmax(p[1].y, p[2].y));
    int64_t begin = (int64_t)ceil(fmax(low - 0.5, (double)first));
    int64_t end = (int64_t)ceil(fmin(high - 0.5, (double)(first + rows)));
    for (int64_t row = begin; row < end; row++) {
        double y = (double)row + 0.5, left = INFINITY, right = -INFINITY;
        for (int e = 0; e < 3; e++) {
            un_vec3 a = p[e], b = p[(e + 1) % 3];
            if ((a.y <= y) == (b.y <= y)) continue;
            double x = crossing(a, b, y);
            left = fmin(left, x);
            right = fmax(right, x);
        }
        int64_t from = (int64_t)ceil(fmax(left - 0.5, 0));
        int64_t to = (int64_t)ceil(fmin(right - 0.5, (double)width));
        if (from < to) memset(mask + (row - first) * width + from, 1, (size_t)(to - from));
    }
}

static void cover_band(const flat_view *v, uint8_t *mask, int64_t first, int64_t rows)
{
    const un_trimesh *mesh = v->in->water;
    int64_t width = (int64_t)v->in->def->width * v->fine;
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        un_vec3 p[3];
        double low = INFINITY, high = -INFINITY;
        for (int c = 0; c < 3; c++) {
            un_vec3 x = mesh->position[mesh->triangle[t][c]];
            p[c] = un_v3(v->fine * column_of(v, x.x), v->fine * row_of(v, x.y), 0);
            low = fmin(low, p[c].y);
            high = fmax(high, p[c].y);
        }
        if (high < (double)first || low > (double)(first + rows)) continue;
        cover(mask, p, first, rows, width);
    }
}

/* ---- lines and discs ---- */

typedef struct un_band {
    colour *pixel;
    int64_t first, rows, width;
} un_band;

static double segment_distance(un_vec3 x, un_vec3 a, un_vec3 b)
{
    un_vec3 d = un_sub(b, a), to = un_sub(x, a);
    double t = un_clamp(un_dot(to, d) / fmax(un_dot(d, d), 1e-300), 0, 1);
    return un_length(un_mad(to, d, -t));
}

/* From a to b, in pixels of the picture; a == b is a disc. */
static void draw_line(const un_band *band, un_vec3 a, un_vec3 b, double half, colour with)
{
    double low = fmin(a.y, b.y) - half - 1, high = fmax(a.y, b.y) + half + 1;
    double left = fmin(a.x, b.x) - half - 1, right = fmax(a.x, b.x) + half + 1;
    if (!(high > (double)band->first && low < (double)(band->first + band->rows))) return;
    int64_t j0 = (int64_t)fmax(low, (double)band->first);
    int64_t j1 = (int64_t)fmin(high, (double)(band->first + band->rows - 1));
    int64_t i0 = (int64_t)un_clamp(left, 0, (double)band->width);
    int64_t i1 = (int64_t)un_clamp(right, -1, (double)(band->width - 1));
    for (int64_t j = j0; j <= j1; j++)
        for (int64_t i = i0; i <= i1; i++) {
            un_vec3 x = un_v3((double)i + 0.5, (double)j + 0.5, 0);
            paint(&band->pixel[(j - band->first) * band->width + i], with,
                  soft(segment_distance(x, a, b) - half));
        }
}

static un_vec3 in_pixels(const flat_view *v, un_vec3 x)
{
    return un_v3(column_of(v, x.x), row_of(v, x.y), 0);
}

/* Along a side of the domain the wall's line replaces the outline. */
static bool along_side(const flat_view *v, un_vec3 a, un_vec3 b)
{
    un_vec3 size = v->in->size;
    double near = 1e-6 * fmax(size.x, size.y);
    return (a.x < near && b.x < near) || (a.y < near && b.y < near) ||
           (a.x > size.x - near && b.x > size.x - near) ||
           (a.y > size.y - near && b.y > size.y - near);
}

static void draw_outline(const flat_view *v, const un_band *band)
{
    const un_outline *o = &v->outline;
    double half = fmax(0.6, OUTLINE * v->in->def->height);
    colour with = darker(v->bottom, 0.35f);
    for (int32_t l = 0; l < o->loop_count; l++)
        for (int32_t n = o->first[l]; n < o->first[l + 1]; n++) {
            int32_t next = n + 1 < o->first[l + 1] ? n + 1 : o->first[l];
            un_vec3 a = v->in->water->position[o->vertex[n]];
            un_vec3 b = v->in->water->position[o->vertex[next]];
            if (!along_side(v, a, b)) draw_line(band, in_pixels(v, a), in_pixels(v, b), half, with);
        }
}

static void draw_particles(const flat_view *v, const un_band *band)
{
    const un_particles *p = v->in->particles;
    for (int32_t q = 0; p && q < p->count; q++) {
        uint8_t rgb[3];
        un_render_ramp(un_length(un_particle_velocity(p, q)) / v->in->fastest, rgb);
        colour with = {{rgb[0] / 255.0f, rgb[1] / 255.0f, rgb[2] / 255.0f}};
        un_vec3 x = in_pixels(v, un_particle_position(p, q));
        draw_line(band, x, x, fmax(0.7, un_particle_ball(p, q) / v->pixel), with);
    }
}

static void draw_sides(const flat_view *v, const un_band *band)
{
    un_vec3 s = v->in->size;
    un_vec3 corner[4] = {un_v3(0, 0, 0), un_v3(s.x, 0, 0), un_v3(s.x, s.y, 0), un_v3(0, s.y, 0)};
    static const int side[4] = {UN_SIDE_BOTTOM, UN_SIDE_RIGHT, UN_SIDE_TOP, UN_SIDE_LEFT};
    double half = fmax(0.7, SIDE * v->in->def->height);
    for (int n = 0; n < 4; n++)
        if (!v->in->open[side[n]])
            draw_line(band, in_pixels(v, corner[n]), in_pixels(v, corner[(n + 1) % 4]), half,
                      side_grey);
}

/* ---- pixels ---- */

/* The domain, the water in it, and the solids in front. */
static void fill_pixels(const flat_view *v, const un_band *band, const uint8_t *mask)
{
    const un_flat_picture *in = v->in;
    int64_t fine = v->fine, row = band->width * fine;
    double edge = fmax(1.2, 2 * OUTLINE * in->def->height);
    for (int64_t j = 0; j < band->rows; j++)
        for (int64_t i = 0; i < band->width; i++) {
            colour *to = &band->pixel[j * band->width + i];
            un_vec3 x = place_of(v, (double)i + 0.5, (double)(band->first + j) + 0.5);
            double out = fmax(fmax(-x.x, x.x - in->size.x), fmax(-x.y, x.y - in->size.y));
            double inside = soft(out / v->pixel);
            *to = v->around;
            paint(to, air, inside);
            int32_t wet = 0;
            for (int64_t s = 0; s < fine; s++)
                for (int64_t t = 0; t < fine; t++) wet += mask[(j * fine + s) * row + i * fine + t];
            if (wet) {
                float depth = (float)un_clamp(1 - x.y / in->size.y, 0, 1);
                paint(to, mix(v->top, v->bottom, depth), (double)wet / (double)(fine * fine));
            }
            for (int32_t n = 0; n < in->bodies->count && inside > 0; n++) {
                double d = un_body_distance(&in->bodies->body[n], x) / v->pixel;
                bool glass = un_solid_is_glass(&in->bodies->scene->def.solids[n]);
                paint(to, glass ? air : v->solid, (glass ? GLASS : 1) * inside * soft(d));
                paint(to, darker(v->solid, 0.4f), inside * soft(fabs(d + 0.5 * edge) - 0.5 * edge));
            }
        }
}

static void draw_band(const flat_view *v, int64_t number, colour *pixel, uint8_t *mask)
{
    int64_t width = v->in->def->width, first = number * BAND;
    int64_t rows = un_min64(BAND, v->in->def->height - first);
    un_band band = {pixel, first, rows, width};
    memset(mask, 0, (size_t)(rows * width * v->fine * v->fine));
    if (v->in->water) cover_band(v, mask, first * v->fine, rows * v->fine);
    fill_pixels(v, &band, mask);
    if (v->in->water) draw_outline(v, &band);
    draw_particles(v, &band);
    draw_sides(v, &band);
    for (int64_t n = 0; n < rows * width; n++)
        for (int c = 0; c < 3; c++)
            v->rgb[3 * (first * width + n) + c] = (uint8_t)lroundf(255 * pixel[n].c[c]);
}

/* Each band has its own pixels and samples, so threads share nothing. */
typedef struct bands {
    const flat_view *view;
    colour *pixel;
    uint8_t *mask;
} bands;

static void draw_bands(void *arg, int64_t begin, int64_t end)
{
    const bands *b = arg;
    const flat_view *v = b->view;
    int64_t pixels = (int64_t)BAND * v->in->def->width;
    for (int64_t n = begin; n < end; n++)
        draw_band(v, n, b->pixel + n * pixels, b->mask + n * pixels * v->fine * v->fine);
}

/* The part of the plane that the camera sees: its centre and its size. */
static void choose_view(flat_view *v)
{
    const un_render_def *def = v->in->def;
    un_vec3 size = v->in->size;
    double room = 2 * MARGIN * fmin(def->width, def->height);
    v->centre = un_scale(size, 0.5);
    v->pixel = fmax(size.x / fmax(def->width - room, 1), size.y / fmax(def->height - room, 1));
    if (def->has_eye) {
        v->centre = un_v3(def->eye[0], def->eye[1], 0);
        v->pixel = 2 * fabs(def->eye[2]) * tan(def->fov * UN_PI / 360) / def->height;
    }
    if (def->has_target) v->centre = un_v3(def->target[0], def->target[1], 0);
    v->pixel = fmax(v->pixel, 1e-9 * fmax(size.x, size.y));
}

un_status un_flat_draw(un_context *ctx, const un_flat_picture *in, uint8_t *rgb)
{
    const un_render_def *def = in->def;
    flat_view v = {.in = in, .rgb = rgb, .fine = 2};
    while (v.fine * v.fine < def->samples && v.fine < 8) v.fine++;
    choose_view(&v);
    v.bottom = chosen(def->has_water_colour, def->water_colour, water_bottom);
    v.top = def->has_water_colour ? mix(v.bottom, air, 0.25f) : water_top;
    v.solid = chosen(def->has_solid_colour, def->solid_colour, grey);
    v.around = chosen(def->has_background, def->background, paper);
    if (in->water) UN_TRY(un_outline_create(ctx, in->water, &v.outline));
    int64_t count = (def->height + BAND - 1) / BAND, pixels = count * BAND * def->width;
    bands b = {.view = &v};
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, b.pixel, pixels);
    UN_ALLOC_DONE(ctx, b.mask, pixels * v.fine * v.fine);
    un_parallel_for(ctx, count, 1, draw_bands, &b);
done:
    un_free(ctx, b.pixel);
    un_free(ctx, b.mask);
    un_outline_free(ctx, &v.outline);
    return status;
}
