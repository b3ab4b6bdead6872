/* Light along a ray.
 *
 * Water and glass split a ray, without random choices: the reflected and the refracted part are
 * both followed as long as they matter, and the rest is estimated from its direction. The light on
 * the floor comes from the light map. So a few rays per pixel make a picture without noise; only
 * the penumbra on solids is sampled. */
#include "render/embree.h"

/* A ray that counts for less than CUTOFF is estimated, and so is one that has met water DEPTH_MAX
 * times; from SPLIT_DEPTH on only the larger part is followed. Half the cutoff and twice the depth
 * take twice as long in spray and can hardly be told apart. */
#define CUTOFF 0.03f
#define SPLIT_DEPTH 2
#define DEPTH_MAX 5
#define PANES_MAX 10          /* faces of glass; a glass of water has four in a row */
#define ESTIMATED_LENGTH 0.1f /* of water still ahead of an estimated ray, internal lengths */

typedef struct path {
    int32_t depth; /* faces of water met */
    int32_t panes; /* of glass */
    un_medium in;
    float weight; /* of this ray in the pixel */
    float width;  /* of the pixel's cone so far, internal lengths */
    un_fvec sun;  /* towards the point of the light that this sample represents */
} path;

static un_fvec floor_light(const un_renderer *r, un_fvec d, un_fvec p, float width)
{
    const un_studio *s = &r->studio;
    un_fvec sun, sky;
    un_light_floor(r, p[0], p[2], &sun, &sky);
    un_fvec color = un_studio_floor(s, p[0], p[2], width / sqrtf(fmaxf(-d[1], 0.05f)));
    un_fvec light = (s->sun_power * s->sun[1] * sun + s->sky_power * sky) * color;
    light *= 1 / (float)UN_PI;
    float haze = un_studio_haze(s, p[0], p[2]);
    if (haze <= 0) return light;
    /* as bright as the sky above it, so that there is no edge at the horizon */
    return un_fmix3(light, un_studio_sky(s, un_fnormalize(un_f3(d[0], 0, d[2]))), haze);
}

static un_fvec solid_light(const un_renderer *r, const un_hit *hit, un_fvec sun)
{
    const un_studio *s = &r->studio;
    un_fvec o = hit->p + hit->ng * UN_RAY_OFFSET, light = un_f3(0, 0, 0);
    float c = un_fdot(hit->n, sun);
    if (c > 0 && un_fdot(hit->ng, sun) > 0) light = s->sun_power * un_light_straight(r, o, sun) * c;
    /* The sky above, brighter to one side so that faces differ, and the lit floor below, which
     * is darker near the ground, where the solid shades it. */
    float up = 0.5f + 0.5f * hit->n[1], fill = 0.5f + 0.5f * un_fdot(hit->n, s->fill);
    float ground = 1 - 0.6f * expf(-hit->p[1] * 12);
    un_fvec bounce = (s->sun_power * s->sun[1] + s->sky_power) * s->tile[0] * (0.7f * ground);
    un_fvec sky = s->sky_power * (up + 0.55f * fill * fill * (0.5f + 0.5f * ground));
    light += (sky + bounce * (1 - up)) * hit->ambient;
    return light * hit->colour * (1 / (float)UN_PI);
}

static un_fvec through_medium(const un_studio *s, un_fvec light, un_medium in, float length)
{
    un_fvec kept = un_medium_absorb(s, in, length);
    return in.water ? light * kept + s->scatter * (1 - kept) : light * kept;
}

/* Estimate for a direction that is not followed, as if there were only floor and sky. */
static un_fvec estimate(const un_renderer *r, un_fvec o, un_fvec d, un_medium in, float width)
{
    const un_studio *s = &r->studio;
    bool up = d[1] >= 0;
    float t = up ? ESTIMATED_LENGTH : fmaxf(-o[1] / d[1], 0);
    un_fvec light =
        up ? un_studio_sky(s, d) : floor_light(r, d, o + d * t, width + t * r->camera.pixel);
    return in.water ? through_medium(s, light, in, fminf(t, ESTIMATED_LENGTH)) : light;
}

static un_fvec follow(const un_renderer *r, un_fvec o, un_fvec d, path at, bool *busy);

/* A face between two media: water, glass and air. beyond: the medium behind it. */
static un_fvec split_light(const un_renderer *r, const un_hit *hit, un_fvec d, const path *at,
                           un_medium beyond, float eta)
{
    un_fvec through = d, mirror = un_mirror(d, hit->n);
    float f = eta == 1 ? 0 : un_fresnel(d, hit->n, eta, &through);
    /* The reflected ray must stay on its side of the triangle. */
    float away = un_fdot(mirror, hit->ng);
    if (away < 1e-3f) mirror = un_fnormalize(mirror + hit->ng * (1e-3f - away));
    bool split = at->depth + at->panes / 2 < SPLIT_DEPTH;
    path next = *at;
    next.depth += hit->kind == UN_HIT_WATER;
    next.panes += hit->kind == UN_HIT_GLASS;
    un_fvec light = un_f3(0, 0, 0);
    next.weight = at->weight * f;
    if (f >= 1 || (next.weight > CUTOFF && (split || f > 0.5f)))
        light += follow(r, hit->p + hit->ng * UN_RAY_OFFSET, mirror, next, NULL) * f;
    else if (f > 0)
        light += estimate(r, hit->p, mirror, at->in, at->width) * f;
    if (f >= 1) return light;
    next.weight = at->weight * (1 - f);
    next.in = beyond;
    if (next.weight > CUTOFF && (split || f <= 0.5f))
        light += follow(r, hit->p - hit->ng * UN_RAY_OFFSET, through, next, NULL) * (1 - f);
    else
        light += estimate(r, hit->p, through, beyond, at->width) * (1 - f);
    return light;
}

static un_fvec follow(const un_renderer *r, un_fvec o, un_fvec d, path at, bool *busy)
{
    const un_studio *s = &r->studio;
    un_hit hit = un_world_hit(r, o, d, at.in.glass > 0);
    if (busy) *busy = hit.kind != UN_HIT_SKY && hit.kind != UN_HIT_FLOOR;
    if (hit.kind == UN_HIT_SKY) return un_studio_sky(s, d);
    at.width += hit.t * r->camera.pixel;
    at.in = un_medium_before(&hit, at.in);
    un_fvec light;
    if (hit.kind == UN_HIT_FLOOR) {
        light = floor_light(r, d, hit.p, at.width);
    } else if (hit.kind == UN_HIT_SOLID) {
        light = solid_light(r, &hit, at.sun);
    } else if (at.depth >= DEPTH_MAX || at.panes >= PANES_MAX) {
        light = estimate(r, hit.p, d, at.in, at.width);
    } else if (hit.kind == UN_HIT_GLASS) {
        float eta;
        un_medium beyond = un_medium_beyond(&hit, at.in, &eta);
        light = split_light(r, &hit, d, &at, beyond, eta);
    } else {
        light = split_light(r, &hit, d, &at, (un_medium){.water = !hit.from_inside},
                            hit.from_inside ? UN_WATER_IOR : 1 / UN_WATER_IOR);
    }
    return through_medium(s, light, at.in, hit.t);
}

un_fvec un_trace(const un_renderer *r, un_fvec o, un_fvec d, un_fvec sun, bool *busy)
{
    return follow(r, o, d, (path){.weight = 1, .sun = sun}, busy);
}
