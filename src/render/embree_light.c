/* Light that reaches the floor.
 *
 * Sun: every texel of the floor sends out the light rays that would reach it if nothing were in
 * between; what they meet deflects them, so that they land elsewhere. This one pass gives caustics,
 * shadows and their colours, and leaves the open floor exactly even.
 * Sky: rays from the floor upwards, straight through water, on coarser texels. */
#include "render/embree.h"

/* Texels per internal length: enough for the sharpest caustics at this picture height. */
#define TEXELS_PER_LINE 0.36
#define TEXELS_MIN 48
#define TEXELS_MAX 768
#define PHOTONS_SIDE 2 /* a square of this many photons for each texel */
#define PHOTONS (PHOTONS_SIDE * PHOTONS_SIDE)
#define PHOTON_DEPTH 6
#define PANES_MAX 12 /* faces of glass that light is followed through */
#define INTERLEAVE 4 /* a square of this many texels shares out the disc of the sun */
#define SKY_COARSE 4 /* texels of sun along the side of a texel of sky */
#define SKY_RAYS 20
#define MARGIN 0.15f /* around the shadow of the domain, for light that water deflects */
#define STRAIGHT_DEPTH 6
#define SURFACE_LOSS 0.04f /* at each surface on a straight way: Fresnel's, averaged */

un_status un_light_create(un_renderer *r)
{
    un_light_map *m = &r->light;
    un_fvec l = r->studio.sun;
    /* The domain's box and its shadow. */
    float sx = -l[0] / l[1] * r->size[1], sz = -l[2] / l[1] * r->size[1];
    float x1 = r->size[0] + fmaxf(0, sx) + MARGIN, z1 = r->size[2] + fmaxf(0, sz) + MARGIN;
    m->x0 = fminf(0, sx) - MARGIN;
    m->z0 = fminf(0, sz) - MARGIN;
    m->texel =
        1.0f / (float)un_clampi((int32_t)(r->def.height * TEXELS_PER_LINE), TEXELS_MIN, TEXELS_MAX);
    m->sky_nx = (int32_t)ceilf((x1 - m->x0) / m->texel / SKY_COARSE);
    m->sky_nz = (int32_t)ceilf((z1 - m->z0) / m->texel / SKY_COARSE);
    m->nx = m->sky_nx * SKY_COARSE;
    m->nz = m->sky_nz * SKY_COARSE;
    size_t texels = (size_t)m->nx * (size_t)m->nz;
    UN_ALLOC(r->ctx, m->sun, texels);
    UN_ALLOC(r->ctx, m->scratch, texels);
    UN_ALLOC(r->ctx, m->sky, (size_t)m->sky_nx * (size_t)m->sky_nz);
    UN_ALLOC(r->ctx, m->photons, texels * PHOTONS);
    return UN_OK;
}

void un_light_destroy(un_renderer *r)
{
    un_free(r->ctx, r->light.sun);
    un_free(r->ctx, r->light.scratch);
    un_free(r->ctx, r->light.sky);
    un_free(r->ctx, r->light.photons);
    r->light = (un_light_map){0};
}

/* ---- sun ---- */

/* Follows light down to the floor, if it gets there. It passes the domain's sides as if glass and
 * water were behind them: as a boundary between water and air they would reflect it, and the
 * shadow of a tank would be black. */
static void follow_photon(const un_renderer *r, un_fvec o, un_fvec d, float photon[5])
{
    un_fvec power = un_f3(1, 1, 1);
    un_medium in = {0};
    for (int32_t depth = 0, panes = 0; depth < PHOTON_DEPTH && panes < PANES_MAX;) {
        un_hit hit = un_world_hit(r, o, d, in.glass > 0);
        in = un_medium_before(&hit, in);
        power *= un_medium_absorb(&r->studio, in, hit.t);
        if (hit.kind == UN_HIT_FLOOR) {
            photon[0] = hit.p[0];
            photon[1] = hit.p[2];
            for (int c = 0; c < 3; c++) photon[2 + c] = power[c];
            return;
        }
        un_fvec through = d;
        un_medium beyond = {.water = !hit.from_inside};
        float f = 0, eta = hit.from_inside ? UN_WATER_IOR : 1 / UN_WATER_IOR;
        if (hit.kind == UN_HIT_GLASS) {
            beyond = un_medium_beyond(&hit, in, &eta);
            if (eta != 1) f = un_fresnel(d, hit.n, eta, &through);
            panes++;
        } else if (hit.kind == UN_HIT_WATER) {
            if (!hit.flat) f = un_fresnel(d, hit.n, eta, &through);
            depth++;
        } else {
            return;
        }
        in = f >= 1 ? in : beyond;
        o = hit.p + hit.ng * (f >= 1 ? UN_RAY_OFFSET : -UN_RAY_OFFSET);
        d = f >= 1 ? un_mirror(d, hit.n) : through;
        if (f < 1) power *= 1 - f;
    }
}

static void sun_rows(void *arg, int64_t begin, int64_t end)
{
    un_renderer *r = arg;
    un_light_map *m = &r->light;
    struct RTCBounds b;
    rtcGetSceneBounds(r->world, &b);
    float top = b.upper_y + 0.01f;
    for (int64_t p = begin * m->nx * PHOTONS; p < end * m->nx * PHOTONS; p++) {
        int32_t k = (int32_t)(p % PHOTONS), i = (int32_t)(p / PHOTONS % m->nx);
        int32_t j = (int32_t)(p / PHOTONS / m->nx);
        float *photon = m->photons[p];
        photon[0] =
            m->x0 + ((float)i + ((float)(k % PHOTONS_SIDE) + 0.5f) / PHOTONS_SIDE) * m->texel;
        photon[1] =
            m->z0 + ((float)j + ((float)(k / PHOTONS_SIDE) + 0.5f) / PHOTONS_SIDE) * m->texel;
        photon[2] = photon[3] = photon[4] = 1;
        /* Golden-ratio points over a square of texels: the blur afterwards sees all the disc. */
        int32_t place =
            (i % INTERLEAVE * INTERLEAVE + j % INTERLEAVE) * 7 % (INTERLEAVE * INTERLEAVE);
        float n = (float)(place * PHOTONS + k);
        float u = 0.5f + n * 0.7548776662f, v = 0.5f + n * 0.5698402910f;
        un_fvec l = un_studio_sun(&r->studio, u - floorf(u), v - floorf(v));
        /* Light that cannot meet anything lands where it aims. */
        float rise = top / l[1], x = photon[0] + l[0] * rise, z = photon[1] + l[2] * rise;
        if (!(b.upper_y > 0) || fmaxf(photon[0], x) < b.lower_x ||
            fminf(photon[0], x) > b.upper_x || fmaxf(photon[1], z) < b.lower_z ||
            fminf(photon[1], z) > b.upper_z)
            continue;
        photon[2] = photon[3] = photon[4] = 0;
        follow_photon(r, un_f3(x, top, z), -l, photon);
    }
}

/* Shares each photon among the four nearest texels, in the photons' order. */
static void splat(un_fvec *sun, const un_light_map *m)
{
    int64_t texels = (int64_t)m->nx * m->nz;
    memset(sun, 0, (size_t)texels * sizeof *sun);
    for (int64_t p = 0; p < texels * PHOTONS; p++) {
        const float *photon = m->photons[p];
        float u = (photon[0] - m->x0) / m->texel - 0.5f, v = (photon[1] - m->z0) / m->texel - 0.5f;
        if (!(u >= 0 && v >= 0 && u < (float)(m->nx - 1) && v < (float)(m->nz - 1))) continue;
        int32_t i = (int32_t)u, j = (int32_t)v;
        float a = u - (float)i, b = v - (float)j;
        un_fvec power = un_f3(photon[2], photon[3], photon[4]) * (1.0f / PHOTONS);
        un_fvec *texel = sun + (int64_t)j * m->nx + i;
        texel[0] += power * ((1 - a) * (1 - b));
        texel[1] += power * (a * (1 - b));
        texel[m->nx] += power * ((1 - a) * b);
        texel[m->nx + 1] += power * (a * b);
    }
}

/* ---- sky ---- */

un_fvec un_light_straight(const un_renderer *r, un_fvec o, un_fvec d)
{
    un_fvec power = un_f3(1, 1, 1);
    un_medium in = {0};
    for (int32_t depth = 0, panes = 0; depth < STRAIGHT_DEPTH && panes < PANES_MAX;) {
        un_hit hit = un_world_hit(r, o, d, in.glass > 0);
        if (hit.kind == UN_HIT_SKY) return power;
        if (hit.kind != UN_HIT_WATER && hit.kind != UN_HIT_GLASS) return un_f3(0, 0, 0);
        float eta;
        in = un_medium_before(&hit, in);
        power *= un_medium_absorb(&r->studio, in, hit.t) * (1 - SURFACE_LOSS);
        if (hit.kind == UN_HIT_GLASS) {
            in = un_medium_beyond(&hit, in, &eta);
            panes++;
        } else {
            in = (un_medium){.water = !hit.from_inside};
            depth++;
        }
        o = hit.p - hit.ng * UN_RAY_OFFSET;
    }
    return power;
}

static void sky_rows(void *arg, int64_t begin, int64_t end)
{
    un_renderer *r = arg;
    un_light_map *m = &r->light;
    float texel = m->texel * SKY_COARSE;
    for (int64_t t = begin * m->sky_nx; t < end * m->sky_nx; t++) {
        float x = m->x0 + ((float)(t % m->sky_nx) + 0.5f) * texel;
        float z = m->z0 + ((float)(t / m->sky_nx) + 0.5f) * texel;
        /* Neighbours rotate by different fractions of a step; the blur combines them. */
        int32_t place =
            (int32_t)(t % m->sky_nx % INTERLEAVE * INTERLEAVE + t / m->sky_nx % INTERLEAVE);
        float turn = (float)(place * 7 % (INTERLEAVE * INTERLEAVE)) / (INTERLEAVE * INTERLEAVE);
        un_fvec sum = un_f3(0, 0, 0);
        /* Directions in a sunflower pattern, with a density proportional to the cosine. */
        for (int32_t k = 0; k < SKY_RAYS; k++) {
            float q = ((float)k + 0.5f) / SKY_RAYS,
                  angle = 2 * (float)UN_PI * ((float)k * 0.61803399f + turn);
            un_fvec d = un_f3(sqrtf(q) * cosf(angle), sqrtf(1 - q), sqrtf(q) * sinf(angle));
            sum += un_light_straight(r, un_f3(x, UN_RAY_OFFSET, z), d);
        }
        m->sky[t] = sum * (1.0f / SKY_RAYS);
    }
}

/* ---- both ---- */

typedef struct blur_task {
    un_fvec *to;
    const un_fvec *from;
    int32_t nx, nz;
} blur_task;

/* Binomial, 5 by 5; the rim is the open floor. */
static void blur_rows(void *arg, int64_t begin, int64_t end)
{
    static const float binomial[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
    blur_task *b = arg;
    for (int64_t j = begin; j < end; j++)
        for (int32_t i = 0; i < b->nx; i++) {
            bool rim = i < 3 || j < 3 || i >= b->nx - 3 || j >= b->nz - 3;
            un_fvec sum = rim ? un_f3(1, 1, 1) : un_f3(0, 0, 0);
            for (int dj = -2; dj <= 2 && !rim; dj++)
                for (int di = -2; di <= 2; di++)
                    sum +=
                        b->from[(j + dj) * b->nx + i + di] * (binomial[di + 2] * binomial[dj + 2]);
            b->to[j * b->nx + i] = sum;
        }
}

void un_light_build(un_renderer *r)
{
    un_light_map *m = &r->light;
    un_parallel_for(r->ctx, m->nz, 4, sun_rows, r);
    splat(m->scratch, m);
    blur_task sun = {m->sun, m->scratch, m->nx, m->nz};
    un_parallel_for(r->ctx, m->nz, 16, blur_rows, &sun);
    un_parallel_for(r->ctx, m->sky_nz, 1, sky_rows, r);
    memcpy(m->scratch, m->sky, (size_t)m->sky_nx * (size_t)m->sky_nz * sizeof *m->sky);
    blur_task sky = {m->sky, m->scratch, m->sky_nx, m->sky_nz};
    un_parallel_for(r->ctx, m->sky_nz, 16, blur_rows, &sky);
}

static un_fvec bilinear(const un_fvec *map, int32_t nx, int32_t nz, float u, float v)
{
    if (!(u > 0 && v > 0 && u < (float)(nx - 1) && v < (float)(nz - 1))) return un_f3(1, 1, 1);
    int32_t i = (int32_t)u, j = (int32_t)v;
    const un_fvec *texel = map + (int64_t)j * nx + i;
    float a = u - (float)i;
    return un_fmix3(un_fmix3(texel[0], texel[1], a), un_fmix3(texel[nx], texel[nx + 1], a),
                    v - (float)j);
}

void un_light_floor(const un_renderer *r, float x, float z, un_fvec *sun, un_fvec *sky)
{
    const un_light_map *m = &r->light;
    float u = (x - m->x0) / m->texel, v = (z - m->z0) / m->texel;
    *sun = bilinear(m->sun, m->nx, m->nz, u - 0.5f, v - 0.5f);
    *sky = bilinear(m->sky, m->sky_nx, m->sky_nz, u / SKY_COARSE - 0.5f, v / SKY_COARSE - 0.5f);
}
