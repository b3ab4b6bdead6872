/* Figure 4 of [Ando13]: what several methods make of particles of mixed sizes that all touch one
 * plane from below.
 *
 *     build/test/bench_reconstruct [DIR]
 *
 * writes DIR/zhu_bridson.ply, yu_turk.ply, adams.ply, hulls.ply and DIR/figure4.png (particles,
 * then the four in this order), and prints a row of CSV for each: how far the surface is from the
 * plane, in radii of the smallest particles.
 *
 * The three older methods were made for even sizes; here their kernels reach four radii of each
 * particle, and r is half the spacing.
 *
 * [Zhu & Bridson 2005]: |x - sum w x_i| - sum w r_i with w = (1 - (d / 4 r_i)^2)^3 over their sum.
 *
 * [Adams et al. 2007]: the same with each particle's distance to the surface in place of r_i.
 *
 * [Yu & Turk 2010]: 0.5 - the sum of volumes times kernels, stretched along the spread of the
 * neighbours and moved by 0.9 of the way to their centre; kr = 4, kn = 0.5, at least 25 neighbours,
 * ks so that whole neighbourhoods scale by one. */
#include <stdio.h>
#include <stdlib.h>

#include "output/output.h"
#include "render/render.h"
#include "surface/surface.h"

#define TOP 0.5
#define CELLS 192 /* of the lattice that is contoured */
#define BAND 0.08 /* of it, around the plane */
#define SMALLEST 0.0078125
#define NEAR_MAX 2048

typedef struct sample {
    un_context *ctx;
    int64_t count, capacity;
    double *x[3];
    float *radius, *depth;
    un_vec3 *center;         /* smoothed [Yu & Turk 2010] */
    double (*stretch)[3][3]; /* its G */
    un_groups groups;
    un_hulls *hulls;
    un_lattice lattice;
    float (*value)(const struct sample *s, un_vec3 x);
} sample;

static void must(un_context *ctx, un_status status)
{
    if (status == UN_OK) return;
    fprintf(stderr, "%s\n", ctx ? un_context_message(ctx) : "no memory");
    exit(1);
}

static void *need(void *block)
{
    if (!block) must(NULL, UN_ERROR_MEMORY);
    return block;
}

/* ---- particles ---- */

/* Columns of cubes, an eighth wide, halved none to three times by chance. */
static void fill(sample *s, un_vec3 corner, double edge, int32_t halvings)
{
    if (corner.y >= TOP) return;
    if (edge <= 0.125 && halvings < 0)
        halvings =
            (int32_t)(4 * un_random((uint64_t)(corner.x * 8) + 8 * (uint64_t)(corner.z * 8), 7));
    if (edge > 0.125 || edge > 0.125 / (1 << halvings)) {
        for (int c = 0; c < 8; c++)
            fill(s,
                 un_v3(corner.x + edge / 2 * (c & 1), corner.y + edge / 2 * (c >> 1 & 1),
                       corner.z + edge / 2 * (c >> 2)),
                 edge / 2, edge / 2 > 0.125 ? -1 : halvings);
        return;
    }
    if (s->count == s->capacity) {
        s->capacity = 2 * s->capacity + 1024;
        size_t n = (size_t)s->capacity + 8;
        for (int a = 0; a < 3; a++) s->x[a] = need(realloc(s->x[a], n * sizeof(double)));
        s->radius = need(realloc(s->radius, n * sizeof(float)));
        s->depth = need(realloc(s->depth, n * sizeof(float)));
    }
    int64_t q = s->count++;
    s->x[0][q] = corner.x + edge / 2;
    s->x[1][q] = corner.y + edge / 2;
    s->x[2][q] = corner.z + edge / 2;
    s->radius[q] = (float)(edge / 2);
    s->depth[q] = (float)(s->x[1][q] - TOP);
}

static un_vec3 place(const sample *s, int64_t q)
{
    return un_v3(s->x[0][q], s->x[1][q], s->x[2][q]);
}

/* Particles j within reach + factor r_j of x. */
static int32_t find_near(const sample *s, un_vec3 x, double reach, double factor, int32_t *near)
{
    int32_t count = un_groups_near(&s->groups, (un_box3){x, x}, reach, factor, near, NEAR_MAX);
    return count < 0 ? NEAR_MAX : count;
}

/* ---- the methods ---- */

static float averaged(const sample *s, un_vec3 x, const float *size, double sign)
{
    int32_t near[NEAR_MAX], count = find_near(s, x, 0, 4, near);
    double sum = 0, radius = 0;
    un_vec3 mean = {0, 0, 0};
    for (int32_t g = 0; g < count; g++)
        for (int64_t q = 8 * (int64_t)near[g]; q < 8 * (int64_t)near[g] + 8 && q < s->count; q++) {
            un_vec3 to = un_sub(place(s, q), x);
            double t = 1 - un_dot(to, to) / (16.0 * s->radius[q] * s->radius[q]);
            if (t <= 0) continue;
            double w = t * t * t;
            sum += w;
            radius += w * sign * size[q];
            mean = un_mad(mean, to, w);
        }
    return sum > 0 ? (float)((un_length(mean) - radius) / sum) : 1;
}

static float zhu_bridson(const sample *s, un_vec3 x)
{
    return averaged(s, x, s->radius, 1);
}

static float adams(const sample *s, un_vec3 x)
{
    return averaged(s, x, s->depth, -1);
}

/* Eigenvectors of a symmetric matrix by Jacobi rotations; columns of v. */
static void eigen(double a[3][3], double v[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) v[i][j] = i == j;
    for (int sweep = 0; sweep < 32; sweep++)
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++) {
                if (fabs(a[p][q]) < 1e-300) continue;
                double angle = 0.5 * atan2(2 * a[p][q], a[q][q] - a[p][p]);
                double c = cos(angle), n = sin(angle);
                for (int k = 0; k < 3; k++) {
                    double x = a[k][p], y = a[k][q];
                    a[k][p] = c * x - n * y, a[k][q] = n * x + c * y;
                }
                for (int k = 0; k < 3; k++) {
                    double x = a[p][k], y = a[q][k];
                    a[p][k] = c * x - n * y, a[q][k] = n * x + c * y;
                    x = v[k][p], y = v[k][q];
                    v[k][p] = c * x - n * y, v[k][q] = n * x + c * y;
                }
            }
}

/* Kernels of radius 4 r, from neighbours as near, by volume. The spread of a whole, even
 * neighbourhood has eigenvalues of 0.15 times the square of that reach: the integral of
 * d^4 (1 - d^3) over three times that of d^2 (1 - d^3). */
static void stretch(void *arg, int64_t begin, int64_t end)
{
    sample *s = arg;
    for (int64_t i = begin; i < end; i++) {
        un_vec3 x = place(s, i), mean = {0, 0, 0};
        double reach = 4 * s->radius[i], sum = 0, c[3][3] = {{0}}, v[3][3];
        int32_t near[NEAR_MAX], count = find_near(s, x, reach, 0, near), found = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int32_t g = 0; g < count; g++)
                for (int64_t q = 8 * (int64_t)near[g]; q < 8 * (int64_t)near[g] + 8 && q < s->count;
                     q++) {
                    un_vec3 to = un_sub(place(s, q), x);
                    double d = un_length(to) / reach, w = 1 - d * d * d;
                    if (w <= 0) continue;
                    w *= pow(s->radius[q], 3);
                    if (pass == 0) {
                        mean = un_mad(mean, to, w);
                        sum += w;
                        found++;
                        continue;
                    }
                    double e[3] = {to.x - mean.x, to.y - mean.y, to.z - mean.z};
                    for (int k = 0; k < 9; k++) c[k / 3][k % 3] += w / sum * e[k / 3] * e[k % 3];
                }
            if (pass == 0) mean = un_scale(mean, 1 / sum);
        }
        s->center[i] = un_mad(x, mean, 0.9);
        eigen(c, v);
        double largest = fmax(c[0][0], fmax(c[1][1], c[2][2])), scale[3];
        for (int k = 0; k < 3; k++) {
            double spread = fmax(c[k][k], largest / 4) / (0.15 * reach * reach);
            scale[k] = 1 / (4 * s->radius[i] * (found > 25 ? spread : 0.5));
        }
        for (int k = 0; k < 9; k++) {
            double g = 0;
            for (int m = 0; m < 3; m++) g += v[k / 3][m] * scale[m] * v[k % 3][m];
            s->stretch[i][k / 3][k % 3] = g;
        }
    }
}

static float yu_turk(const sample *s, un_vec3 x)
{
    /* centres move by less than four radii, and kernels grow to no more than some eight */
    int32_t near[NEAR_MAX], count = find_near(s, x, 0, 12, near);
    double colour = 0;
    for (int32_t g = 0; g < count; g++)
        for (int64_t q = 8 * (int64_t)near[g]; q < 8 * (int64_t)near[g] + 8 && q < s->count; q++) {
            un_vec3 to = un_sub(x, s->center[q]);
            double e[3] = {to.x, to.y, to.z}, d2 = 0;
            const double(*m)[3] = s->stretch[q];
            for (int k = 0; k < 3; k++) {
                double y = m[k][0] * e[0] + m[k][1] * e[1] + m[k][2] * e[2];
                d2 += y * y;
            }
            if (d2 >= 1) continue;
            double det = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
            double t = 1 - d2, r = s->radius[q];
            colour += 8 * r * r * r * det * 315 / (64 * UN_PI) * t * t * t;
        }
    return (float)(0.5 - colour);
}

/* As the library does: the hulls, and spheres inside. */
static float hulls(const sample *s, un_vec3 x)
{
    double best = un_hulls_distance(s->hulls, x, BAND);
    int32_t near[NEAR_MAX], count = find_near(s, x, 0, 4, near);
    for (int32_t g = 0; g < count; g++)
        for (int64_t q = 8 * (int64_t)near[g]; q < 8 * (int64_t)near[g] + 8 && q < s->count; q++)
            if (s->depth[q] < -1.4f * s->radius[q])
                best = fmin(best, un_length(un_sub(place(s, q), x)) + 0.75 * s->depth[q]);
    return (float)best;
}

static void sample_rows(void *arg, int64_t begin, int64_t end)
{
    sample *s = arg;
    un_lattice *l = &s->lattice;
    for (int64_t n = begin; n < end; n++) {
        int32_t i = (int32_t)(n % l->n[0]), j = (int32_t)(n / l->n[0] % l->n[1]);
        int32_t k = (int32_t)(n / l->n[0] / l->n[1]);
        l->phi[n] = s->value(s, un_v3(l->origin.x + l->h[0] * i, l->origin.y + l->h[1] * j,
                                      l->origin.z + l->h[2] * k));
    }
}

/* ---- the picture: seen from above at a slant, under a low light ---- */

enum { WIDE = 320, HIGH = 240, PANELS = 5 };

typedef struct picture {
    uint8_t *rgb;
    float *height; /* of what a pixel shows */
} picture;

/* Across the middle of the plane. */
static void project(un_vec3 x, int32_t panel, double out[3])
{
    double c = cos(0.6), n = sin(0.6), scale = WIDE / 0.62;
    out[0] = panel * WIDE + WIDE / 2 + scale * (x.x - 0.5);
    out[1] = HIGH / 2 + scale * (n * (x.z - 0.5) - c * (x.y - TOP));
    out[2] = scale * (c * (x.z - 0.5) + n * (x.y - TOP));
}

static void shade(picture *p, int32_t panel, int32_t i, int32_t j, double height, un_vec3 n)
{
    if (i < panel * WIDE + 2 || i >= (panel + 1) * WIDE - 2 || j < 0 || j >= HIGH) return;
    int64_t at = i + (int64_t)j * WIDE * PANELS;
    if (height <= p->height[at]) return;
    p->height[at] = (float)height;
    un_vec3 light = un_normalize(un_v3(-0.8, 0.45, 0.25)), eye = un_v3(0, sin(0.6), cos(0.6));
    un_vec3 half = un_normalize(un_add(light, eye));
    double diffuse = fmax(0, un_dot(n, light)), shine = pow(fmax(0, un_dot(n, half)), 60);
    double colour[3] = {0.12 + 0.35 * diffuse, 0.25 + 0.62 * diffuse, 0.36 + 0.72 * diffuse};
    for (int c = 0; c < 3; c++)
        p->rgb[3 * at + c] = (uint8_t)(255 * fmin(1, colour[c] + 0.5 * shine));
}

static void draw_mesh(picture *p, int32_t panel, const un_trimesh *mesh)
{
    for (int32_t t = 0; t < mesh->triangle_count; t++) {
        double at[3][3];
        un_vec3 n[3];
        for (int c = 0; c < 3; c++) {
            project(mesh->position[mesh->triangle[t][c]], panel, at[c]);
            n[c] = mesh->normal[mesh->triangle[t][c]];
        }
        double area = (at[1][0] - at[0][0]) * (at[2][1] - at[0][1]) -
                      (at[1][1] - at[0][1]) * (at[2][0] - at[0][0]);
        if (area == 0) continue;
        int32_t lo[2], hi[2];
        for (int a = 0; a < 2; a++) {
            lo[a] = (int32_t)floor(fmin(at[0][a], fmin(at[1][a], at[2][a])));
            hi[a] = (int32_t)ceil(fmax(at[0][a], fmax(at[1][a], at[2][a])));
        }
        for (int32_t j = lo[1]; j <= hi[1]; j++)
            for (int32_t i = lo[0]; i <= hi[0]; i++) {
                double w1 = ((i - at[0][0]) * (at[2][1] - at[0][1]) -
                             (j - at[0][1]) * (at[2][0] - at[0][0])) /
                            area;
                double w2 = ((at[1][0] - at[0][0]) * (j - at[0][1]) -
                             (at[1][1] - at[0][1]) * (i - at[0][0])) /
                            area;
                double w0 = 1 - w1 - w2;
                if (w0 < 0 || w1 < 0 || w2 < 0) continue;
                un_vec3 m =
                    un_add(un_scale(n[0], w0), un_add(un_scale(n[1], w1), un_scale(n[2], w2)));
                shade(p, panel, i, j, w0 * at[0][2] + w1 * at[1][2] + w2 * at[2][2],
                      un_normalize(m));
            }
    }
}

static void draw_particles(picture *p, int32_t panel, const sample *s)
{
    double scale = WIDE / 0.62;
    un_vec3 eye = un_v3(0, sin(0.6), cos(0.6)), up = un_v3(0, cos(0.6), -sin(0.6));
    for (int64_t q = 0; q < s->count; q++) {
        if (s->depth[q] < -1.5f * s->radius[q]) continue;
        double at[3], r = scale * s->radius[q];
        project(place(s, q), panel, at);
        for (int32_t j = (int32_t)(at[1] - r); j <= (int32_t)(at[1] + r + 1); j++)
            for (int32_t i = (int32_t)(at[0] - r); i <= (int32_t)(at[0] + r + 1); i++) {
                double u = (i - at[0]) / r, v = (at[1] - j) / r, w = 1 - u * u - v * v;
                if (w < 0) continue;
                un_vec3 n = un_add(un_v3(u, 0, 0), un_add(un_scale(up, v), un_scale(eye, sqrt(w))));
                shade(p, panel, i, j, at[2] + r * sqrt(w), n);
            }
    }
}

/* ---- */

static void report(const char *name, const un_trimesh *mesh)
{
    double sum = 0, squares = 0, most = 0;
    int64_t count = 0;
    for (int32_t v = 0; v < mesh->vertex_count; v++) {
        un_vec3 x = mesh->position[v];
        if (fabs(x.x - 0.5) > 0.3 || fabs(x.z - 0.5) > 0.3 || x.y < TOP - 0.9 * BAND) continue;
        double off = (x.y - TOP) / SMALLEST;
        sum += off;
        squares += off * off;
        most = fmax(most, fabs(off));
        count++;
    }
    double mean = sum / (double)count;
    printf("%s,%.6f,%.6f,%.6f\n", name, mean, sqrt(fmax(0, squares / (double)count - mean * mean)),
           most);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        float (*value)(const sample *s, un_vec3 x);
    } methods[] = {
        {"zhu_bridson", zhu_bridson}, {"yu_turk", yu_turk}, {"adams", adams}, {"hulls", hulls}};
    const char *directory = argc > 1 ? argv[1] : ".";
    sample s = {.ctx = need(un_context_create(NULL))};
    un_context *ctx = s.ctx;
    un_arena arena;
    un_arena_init(&arena, ctx);
    fill(&s, un_v3(0, 0, 0), 1, -1);
    must(ctx, un_groups_build(ctx, &arena, &s.groups,
                              (const double *const[3]){s.x[0], s.x[1], s.x[2]}, s.radius, s.count));
    un_hulls_def def = {.groups = &s.groups, .radius = s.radius, .depth = s.depth, .reach = 2};
    un_hulls_report kept;
    must(ctx, un_hulls_create(ctx, &arena, &def, &s.hulls, &kept));
    s.center = need(malloc((size_t)s.count * sizeof *s.center));
    s.stretch = need(malloc((size_t)s.count * sizeof *s.stretch));
    un_parallel_for(ctx, s.count, 256, stretch, &s);

    un_lattice *l = &s.lattice;
    *l = (un_lattice){.n = {CELLS + 1, (int32_t)(2 * BAND * CELLS) + 2, CELLS + 1},
                      .origin = {0, TOP - BAND, 0}};
    for (int a = 0; a < 3; a++) l->h[a] = 1.0 / CELLS;
    int64_t nodes = (int64_t)l->n[0] * l->n[1] * l->n[2];
    l->phi = need(un_alloc(ctx, (size_t)nodes, sizeof *l->phi));
    picture p = {need(calloc((size_t)WIDE * HIGH * PANELS, 3)),
                 need(malloc((size_t)WIDE * HIGH * PANELS * sizeof(float)))};
    for (int64_t i = 0; i < (int64_t)WIDE * HIGH * PANELS; i++) {
        p.height[i] = -1e30f;
        memset(p.rgb + 3 * i, 255, 3);
    }
    draw_particles(&p, 0, &s);
    fprintf(stderr, "%lld particles, %lld triplets near the surface, %lld kept\n",
            (long long)s.count, (long long)kept.triplet_count, (long long)kept.face_count);
    printf("method,mean,rms,max\n");
    for (int m = 0; m < 4; m++) {
        un_trimesh mesh;
        char path[4096];
        s.value = methods[m].value;
        un_parallel_for(ctx, nodes, 1024, sample_rows, &s);
        must(ctx, un_surface_contour(ctx, l, &mesh));
        must(ctx, un_surface_normals(ctx, &mesh));
        report(methods[m].name, &mesh);
        draw_mesh(&p, m + 1, &mesh);
        snprintf(path, sizeof path, "%s/%s.ply", directory, methods[m].name);
        must(ctx, un_output_surface(ctx, path, &mesh));
        un_trimesh_free(ctx, &mesh);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/figure4.png", directory);
    must(ctx, un_png_write(ctx, path, p.rgb, WIDE * PANELS, HIGH));
    un_hulls_destroy(s.hulls);
    un_free(ctx, l->phi);
    un_arena_free(&arena);
    un_context_destroy(ctx);
    for (int a = 0; a < 3; a++) free(s.x[a]);
    free(s.radius);
    free(s.depth);
    free(s.center);
    free(s.stretch);
    free(p.rgb);
    free(p.height);
    return 0;
}
