/* Light along a ray.
 *
 * Water splits a ray, without random choices: the reflected and the refracted part are both
 * followed as long as they matter, and the rest is estimated from its direction. The light on the
 * floor comes from the light map. So a few rays per pixel make a picture without noise; only the
 * penumbra on solids is sampled. */
#include "render/embree.h"

/* A ray that counts for less than CUTOFF is estimated, and so is one that has met water DEPTH_MAX
 * times; from SPLIT_DEPTH on only the larger part is followed. Half the cutoff and twice the depth
 * take twice as long in spray and can hardly be told apart. */
#define CUTOFF 0.03f
#define SPLIT_DEPTH 2
#define DEPTH_MAX 5
#define ESTIMATED_LENGTH 0.1f /* of water still ahead of an estimated ray, internal lengths */

typedef struct path {
    int32_t depth;
    bool inside;  /* water */
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
    return un_fmix3(light * (1 / (float)UN_PI), s->haze, un_studio_haze(s, p[0], p[2]));
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

static un_fvec through_water(const un_studio *s, un_fvec light, float length)
{
    un_fvec kept = un_absorb(s, length);
    return light * kept + s->scatter * (1 - kept);
}

/* Estimate for a direction that is not followed, as if there were only floor and sky. */
static un_fvec estimate(const un_renderer *r, un_fvec o, un_fvec d, bool inside, float width)
{
    const un_studio *s = &r->studio;
    bool up = d[1] >= 0;
    float t = up ? ESTIMATED_LENGTH : fmaxf(-o[1] / d[1], 0);
    un_fvec light =
        up ? un_studio_sky(s, d) : floor_light(r, d, o + d * t, width + t * r->camera.pixel);
    return inside ? through_water(s, light, fminf(t, ESTIMATED_LENGTH)) : light;
}

static un_fvec follow(const un_renderer *r, un_fvec o, un_fvec d, path at, bool *busy);

static un_fvec water_light(const un_renderer *r, const un_hit *hit, un_fvec d, const path *at)
{
    bool inside = hit->from_inside;
    un_fvec through = d, mirror = un_mirror(d, hit->n);
    float f = un_fresnel(d, hit->n, inside ? UN_WATER_IOR : 1 / UN_WATER_IOR, &through);
    /* The reflected ray must stay on its side of the triangle. */
    float away = un_fdot(mirror, hit->ng);
    if (away < 1e-3f) mirror = un_fnormalize(mirror + hit->ng * (1e-3f - away));
    bool split = at->depth < SPLIT_DEPTH;
    path next = *at;
    next.depth++;
    un_fvec light = un_f3(0, 0, 0);
    next.weight = at->weight * f;
    next.inside = inside;
    if (f >= 1 || (next.weight > CUTOFF && (split || f > 0.5f)))
        light += follow(r, hit->p + hit->ng * UN_RAY_OFFSET, mirror, next, NULL) * f;
    else
        light += estimate(r, hit->p, mirror, inside, at->width) * f;
    if (f >= 1) return light;
    next.weight = at->weight * (1 - f);
    next.inside = !inside;
    if (next.weight > CUTOFF && (split || f <= 0.5f))
        light += follow(r, hit->p - hit->ng * UN_RAY_OFFSET, through, next, NULL) * (1 - f);
    else
        light += estimate(r, hit->p, through, !inside, at->width) * (1 - f);
    return light;
}

static un_fvec follow(const un_renderer *r, un_fvec o, un_fvec d, path at, bool *busy)
{
    const un_studio *s = &r->studio;
    un_hit hit = un_world_hit(r, o, d);
    if (busy) *busy = hit.kind == UN_HIT_WATER || hit.kind == UN_HIT_SOLID;
    if (hit.kind == UN_HIT_SKY) return un_studio_sky(s, d);
    at.width += hit.t * r->camera.pixel;
    /* The mesh tells more reliably than the path whether this was water: meshes may have gaps. */
    bool inside = hit.kind == UN_HIT_WATER ? hit.from_inside : at.inside;
    un_fvec light;
    if (hit.kind == UN_HIT_FLOOR)
        light = floor_light(r, d, hit.p, at.width);
    else if (hit.kind == UN_HIT_SOLID)
        light = solid_light(r, &hit, at.sun);
    else if (at.depth >= DEPTH_MAX)
        light = estimate(r, hit.p, d, inside, at.width);
    else
        light = water_light(r, &hit, d, &at);
    return inside ? through_water(s, light, hit.t) : light;
}

un_fvec un_trace(const un_renderer *r, un_fvec o, un_fvec d, un_fvec sun, bool *busy)
{
    return follow(r, o, d, (path){.weight = 1, .sun = sun}, busy);
}
