/* The studio that water is photographed in: a tiled floor that fades into haze, a pale sky with
 * one large soft light, and the film's response. */
#include "render/render.h"

#define TILE 0.125f    /* internal lengths: eight along the domain */
#define JOINT 0.006f   /* width of the joint between tiles */
#define HAZE_NEAR 1.6f /* from the centre of the domain */
#define HAZE_FAR 6.0f

un_studio un_studio_make(un_fvec size)
{
    return (un_studio){.sun = un_fnormalize(un_f3(-0.55f, 0.95f, -0.45f)),
                       .sun_radius = 0.035f,
                       .sun_power = un_f3(3.1f, 2.92f, 2.65f),
                       .sky_power = un_f3(1.0f, 1.09f, 1.18f),
                       .fill = un_fnormalize(un_f3(0.8f, 0.3f, 0.3f)),
                       .horizon = un_f3(0.95f, 1.0f, 1.05f),
                       .zenith = un_f3(0.30f, 0.42f, 0.58f),
                       .panel = un_f3(5.0f, 4.9f, 4.7f),
                       .haze = un_f3(0.62f, 0.68f, 0.72f),
                       .tile = {un_f3(0.44f, 0.44f, 0.44f), un_f3(0.50f, 0.495f, 0.485f)},
                       .joint = un_f3(0.57f, 0.565f, 0.56f),
                       .absorption = un_f3(2.9f, 0.62f, 0.34f),
                       .scatter = un_f3(0.03f, 0.17f, 0.23f),
                       .solid = un_f3(0.70f, 0.68f, 0.65f),
                       .glass = un_f3(0.9f, 0.35f, 0.5f),
                       .centre = un_f3(0.5f * size[0], 0, 0.5f * size[2])};
}

/* White light has this colour after a quarter of the domain in water; some of it also comes back
 * out of deep water. */
#define COLOUR_DEPTH 0.25f
#define COLOUR_SCATTER 0.22f

void un_studio_change(un_studio *s, const un_render_def *def)
{
    if (def->has_light) {
        double a = def->light_azimuth * UN_PI / 180, e = def->light_elevation * UN_PI / 180;
        s->sun = un_f3((float)(sin(a) * cos(e)), (float)sin(e), (float)(cos(a) * cos(e)));
    }
    if (def->has_background) {
        un_studio usual = un_studio_make(un_f3(0, 0, 0));
        for (int c = 0; c < 3; c++) {
            float back = un_fclamp((float)def->background[c], 0, 1);
            s->haze[c] = back;
            s->horizon[c] = back * usual.horizon[c] / usual.haze[c];
            s->zenith[c] = back * usual.zenith[c] / usual.haze[c];
        }
    }
    for (int c = 0; c < 3; c++) {
        float water = un_fclamp((float)def->water_colour[c], 0.02f, 0.98f);
        if (def->has_water_colour) {
            s->absorption[c] = -logf(water) / COLOUR_DEPTH;
            s->scatter[c] = COLOUR_SCATTER * water;
        }
        if (def->has_solid_colour) s->solid[c] = un_fclamp((float)def->solid_colour[c], 0, 1);
    }
}

un_fvec un_studio_sun(const un_studio *s, float u, float v)
{
    un_fvec a = un_fnormalize(un_fcross(s->sun, un_f3(0, 0, 1))), b = un_fcross(s->sun, a);
    float radius = s->sun_radius * sqrtf(u), angle = 2 * (float)UN_PI * v;
    return un_fnormalize(s->sun + a * (radius * cosf(angle)) + b * (radius * sinf(angle)));
}

un_fvec un_studio_sky(const un_studio *s, un_fvec d)
{
    float up = un_fclamp(d[1], 0, 1);
    un_fvec sky = un_fmix3(s->horizon, s->zenith, sqrtf(up));
    sky = un_fmix3(s->haze, sky, un_fsmooth(0, 0.1f, up));
    float c = un_fdot(d, s->sun);
    /* The light itself: a wide panel with soft edges, and its glow. */
    float glow = un_fclamp(c, 0, 1);
    glow *= glow;
    glow *= glow;
    return sky + s->panel * (un_fsmooth(0.86f, 0.93f, c) + 0.14f * glow);
}

float un_fresnel(un_fvec d, un_fvec n, float eta, un_fvec *transmitted)
{
    float c = -un_fdot(d, n), k = 1 - eta * eta * (1 - c * c);
    if (k <= 0) return 1;
    float ct = sqrtf(k);
    *transmitted = un_fnormalize(d * eta + n * (eta * c - ct));
    float s = (eta * c - ct) / (eta * c + ct), p = (c - eta * ct) / (c + eta * ct);
    return 0.5f * (s * s + p * p);
}

/* The mean over [x - width/2, x + width/2] of a wave that is 1 on [0, duty) and 0 on [duty, 1). */
static float square_wave(float x, float duty, float width)
{
    float w = un_fclamp(width, 1e-4f, 64);
    float a = x - 0.5f * w, b = x + 0.5f * w, fa = floorf(a), fb = floorf(b);
    float ia = fa * duty + fminf(a - fa, duty), ib = fb * duty + fminf(b - fb, duty);
    return (ib - ia) / w;
}

un_fvec un_studio_floor(const un_studio *s, float x, float z, float width)
{
    float w = width / TILE, u = x / TILE, v = z / TILE;
    float a = 2 * square_wave(0.5f * u, 0.5f, 0.5f * w) - 1;
    float b = 2 * square_wave(0.5f * v, 0.5f, 0.5f * w) - 1;
    float joint = JOINT / TILE;
    float tile = (1 - square_wave(u + 0.5f * joint, joint, w)) *
                 (1 - square_wave(v + 0.5f * joint, joint, w));
    un_fvec color = un_fmix3(s->tile[0], s->tile[1], 0.5f + 0.5f * a * b);
    return un_fmix3(s->joint, color, tile);
}

float un_studio_haze(const un_studio *s, float x, float z)
{
    float dx = x - s->centre[0], dz = z - s->centre[2];
    return un_fsmooth(HAZE_NEAR, HAZE_FAR, sqrtf(dx * dx + dz * dz));
}

/* Linear up to the knee, then a shoulder that reaches 1 only at infinity. */
static float shoulder(float x)
{
    const float knee = 0.65f;
    return x < knee ? x : knee + (1 - knee) * (1 - expf(-(x - knee) / (1 - knee)));
}

static float srgb(float x)
{
    return x <= 0.0031308f ? 12.92f * x : 1.055f * powf(x, 1 / 2.4f) - 0.055f;
}

float un_studio_brightness(un_fvec radiance)
{
    return srgb(shoulder(fmaxf(un_fluma(radiance), 0)));
}

void un_studio_develop(un_fvec radiance, uint64_t pixel, uint8_t rgb[3])
{
    float dither = (float)un_random(pixel, 0);
    for (int c = 0; c < 3; c++) {
        float x = radiance[c];
        rgb[c] = (uint8_t)fminf(255 * srgb(shoulder(x > 0 ? x : 0)) + dither, 255);
    }
}

static const uint8_t ramp[7][3] = {{28, 33, 97},   {33, 71, 148},   {26, 115, 168}, {38, 156, 168},
                                   {92, 191, 153}, {166, 219, 135}, {237, 237, 153}};

void un_render_ramp(double t, uint8_t rgb[3])
{
    double x = 6 * un_clamp(isfinite(t) ? t : 0, 0, 1);
    int i = x < 5 ? (int)x : 5;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)lround(ramp[i][c] + (x - i) * (ramp[i + 1][c] - ramp[i][c]));
}
