/* Shapes against points scattered on their surfaces, slopes, combinations, placement. */
#include "check.h"
#include "geometry/geometry.h"

typedef struct fixture {
    un_context *ctx;
    un_shape_set *set;
} fixture;

static fixture start(void)
{
    fixture f = {.ctx = check_context()};
    f.set = un_shape_set_create(f.ctx);
    assert_non_null(f.set);
    return f;
}

static void finish(fixture *f)
{
    un_shape_set_destroy(f->set);
    check_context_end(f->ctx);
}

/* The i-th random number of this file's tests. */
static double uniform(uint64_t *i, double lo, double hi)
{
    return lo + (hi - lo) * un_random((*i)++, 77);
}

static un_vec3 random_point(uint64_t *i, double side)
{
    double x = uniform(i, -side, side), y = uniform(i, -side, side), z = uniform(i, -side, side);
    return un_v3(x, y, z);
}

static un_vec3 random_unit(uint64_t *i)
{
    for (;;) {
        un_vec3 v = random_point(i, 1);
        double l = un_length(v);
        if (l > 0.1 && l < 1) return un_scale(v, 1 / l);
    }
}

static bool is_unit(un_vec3 n)
{
    return fabs(un_length(n) - 1) < 1e-12;
}

/* A surface point for parameters u, v in [0, 1), and whether x is inside, by other formulas than
 * the library's. */
typedef struct reference {
    un_vec3 (*surface)(double u, double v, int piece);
    bool (*inside)(un_vec3 x);
    int piece_count;
    bool convex;
} reference;

/* Frame of the slanted solids: axis A, and P, Q across it. */
static const un_vec3 A = {2.0 / 3, 1.0 / 3, 2.0 / 3}, P = {1.0 / 3, 2.0 / 3, -2.0 / 3},
                     Q = {-2.0 / 3, 2.0 / 3, 1.0 / 3}, C = {0.1, -0.2, 0.3};

static un_vec3 frame(double a, double r, double angle)
{
    un_vec3 x = un_mad(C, A, a);
    x = un_mad(x, P, r * cos(angle));
    return un_mad(x, Q, r * sin(angle));
}

static void unframe(un_vec3 x, double *a, double *r)
{
    un_vec3 d = un_sub(x, C);
    *a = un_dot(d, A);
    *r = hypot(un_dot(d, P), un_dot(d, Q));
}

static un_vec3 box_surface(double u, double v, int piece)
{
    double lo[3] = {-0.5, -0.4, -0.3}, size[3] = {1.2, 0.9, 0.6}, x[3];
    int a = piece / 2, b = (a + 1) % 3, c = (a + 2) % 3;
    x[a] = lo[a] + (piece % 2 ? size[a] : 0);
    x[b] = lo[b] + u * size[b];
    x[c] = lo[c] + v * size[c];
    return un_v3(x[0], x[1], x[2]);
}
static bool box_inside(un_vec3 x)
{
    return x.x > -0.5 && x.x < 0.7 && x.y > -0.4 && x.y < 0.5 && x.z > -0.3 && x.z < 0.3;
}

static un_vec3 sphere_surface(double u, double v, int piece)
{
    (void)piece;
    double c = 2 * u - 1;
    return frame(0.6 * c, 0.6 * sqrt(1 - c * c), 2 * UN_PI * v);
}
static bool sphere_inside(un_vec3 x)
{
    un_vec3 d = un_sub(x, C);
    return d.x * d.x + d.y * d.y + d.z * d.z < 0.36;
}

static un_vec3 cylinder_surface(double u, double v, int piece)
{
    if (piece == 0) return frame(-0.5 + u, 0.35, 2 * UN_PI * v);
    return frame(piece == 1 ? -0.5 : 0.5, 0.35 * sqrt(u), 2 * UN_PI * v);
}
static bool cylinder_inside(un_vec3 x)
{
    double a, r;
    unframe(x, &a, &r);
    return fabs(a) < 0.5 && r < 0.35;
}

static un_vec3 capsule_surface(double u, double v, int piece)
{
    if (piece == 0) return frame(-0.5 + u, 0.35, 2 * UN_PI * v);
    double end = piece == 1 ? -1 : 1;
    return frame(end * (0.5 + 0.35 * u), 0.35 * sqrt(1 - u * u), 2 * UN_PI * v);
}
static bool capsule_inside(un_vec3 x)
{
    double a, r;
    unframe(x, &a, &r);
    double e = fabs(a) > 0.5 ? fabs(a) - 0.5 : 0;
    return e * e + r * r < 0.35 * 0.35;
}

static un_vec3 torus_surface(double u, double v, int piece)
{
    (void)piece;
    double around = 2 * UN_PI * u;
    return frame(0.25 * sin(around), 0.6 + 0.25 * cos(around), 2 * UN_PI * v);
}
static bool torus_inside(un_vec3 x)
{
    double a, r;
    unframe(x, &a, &r);
    return a * a + (r - 0.6) * (r - 0.6) < 0.0625;
}

/* Scatters points on the surface: none may be nearer than |d|, and the nearest only a little
 * farther; they lie on the zero set and inside the bounds; the sign is the reference's; a step
 * along the normal changes the distance by the step. */
static void check_against(const un_shape *shape, const reference *ref)
{
    enum { SIDE = 64, QUERIES = 600 };
    uint64_t r = 0;
    un_box3 b = un_shape_bounds(shape);
    un_box3 reached = {{9, 9, 9}, {-9, -9, -9}};
    static un_vec3 points[6 * SIDE * SIDE];
    int count = 0;
    for (int piece = 0; piece < ref->piece_count; piece++)
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++) {
                un_vec3 x = ref->surface((i + 0.5) / SIDE, (j + 0.5) / SIDE, piece);
                check_near(un_shape_distance(shape, x), 0, 1e-14);
                assert_true(is_unit(un_shape_normal(shape, x)));
                reached.min = un_min3(reached.min, x);
                reached.max = un_max3(reached.max, x);
                points[count++] = x;
            }
    /* Bounds contain the surface and are tight. */
    un_vec3 low = un_sub(reached.min, b.min), high = un_sub(b.max, reached.max);
    assert_true(low.x > -1e-14 && low.y > -1e-14 && low.z > -1e-14);
    assert_true(high.x > -1e-14 && high.y > -1e-14 && high.z > -1e-14);
    assert_true(low.x < 0.02 && low.y < 0.02 && low.z < 0.02);
    assert_true(high.x < 0.02 && high.y < 0.02 && high.z < 0.02);
    for (int q = 0; q < QUERIES; q++) {
        un_vec3 x = un_add(C, random_point(&r, 1.2));
        double d = un_shape_distance(shape, x), nearest = INFINITY;
        for (int i = 0; i < count; i++) {
            un_vec3 s = un_sub(points[i], x);
            nearest = fmin(nearest, un_dot(s, s));
        }
        nearest = sqrt(nearest);
        assert_true(fabs(d) <= nearest + 1e-14);
        check_below(nearest - fabs(d), 0.04);
        assert_int_equal(d < 0, ref->inside(x));
        un_vec3 n = un_shape_normal(shape, x);
        assert_true(is_unit(n));
        double step = ref->convex ? 0.3 : 1e-3;
        if (d > 0) check_near(un_shape_distance(shape, un_mad(x, n, step)), d + step, 1e-13);
        /* The foot point lies on the surface, from either side. */
        check_near(un_shape_distance(shape, un_mad(x, n, -d)), 0, 1e-13);
    }
    for (int q = 0; q < 20000; q++) {
        un_vec3 x = un_add(C, random_point(&r, 1.5));
        un_vec3 y = un_mad(x, random_unit(&r), pow(10, uniform(&r, -8, 0.3)));
        double slope = fabs(un_shape_distance(shape, x) - un_shape_distance(shape, y));
        assert_true(slope <= un_length(un_sub(x, y)) * (1 + 1e-12) + 1e-15);
    }
}

static void primitives_are_exact(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *s;
    un_vec3 from = un_mad(C, A, -0.5), to = un_mad(C, A, 0.5);
    check_ok(f.ctx, un_shape_box(f.set, un_v3(-0.5, -0.4, -0.3), un_v3(0.7, 0.5, 0.3), &s));
    check_against(s, &(reference){box_surface, box_inside, 6, true});
    check_ok(f.ctx, un_shape_sphere(f.set, C, 0.6, &s));
    check_against(s, &(reference){sphere_surface, sphere_inside, 1, true});
    check_ok(f.ctx, un_shape_cylinder(f.set, from, to, 0.35, &s));
    check_against(s, &(reference){cylinder_surface, cylinder_inside, 3, true});
    check_ok(f.ctx, un_shape_capsule(f.set, from, to, 0.35, &s));
    check_against(s, &(reference){capsule_surface, capsule_inside, 3, true});
    check_ok(f.ctx, un_shape_torus(f.set, C, un_scale(A, 7), 0.6, 0.25, &s));
    check_against(s, &(reference){torus_surface, torus_inside, 1, false});
    finish(&f);
}

static void known_values(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *s;
    check_ok(f.ctx, un_shape_box(f.set, un_v3(0, 0, 0), un_v3(0.1, 0.3, 0.7), &s));
    assert_true(un_shape_distance(s, un_v3(0.1, 0.15, 0.2)) == 0);
    assert_true(un_shape_distance(s, un_v3(0.05, 0.3, 0.7)) == 0);
    check_near(un_shape_distance(s, un_v3(0.1 + 3, 0.3 + 4, 0.7 + 12)), 13, 1e-14);
    check_near(un_shape_distance(s, un_v3(0.05, 0.15, 0.35)), -0.05, 1e-16);
    assert_true(un_shape_normal(s, un_v3(0.05, 0.15, 0.69)).z == 1);
    assert_true(un_shape_normal(s, un_v3(0.05, -4, 0.3)).y == -1);
    check_ok(f.ctx, un_shape_plane(f.set, un_v3(0, 2, 0), un_v3(0, 5, 0), &s));
    check_near(un_shape_distance(s, un_v3(9, 5, -3)), 3, 1e-15);
    check_near(un_shape_distance(s, un_v3(9, -1, -3)), -3, 1e-15);
    assert_true(un_shape_normal(s, un_v3(1, 2, 3)).y == 1);
    un_box3 b = un_shape_bounds(s);
    assert_true(b.max.y == 2 && b.min.y == -INFINITY && b.max.x == INFINITY);
    check_ok(f.ctx, un_shape_plane(f.set, un_v3(0, 2, 0), un_v3(-1, 0, 0), &s));
    b = un_shape_bounds(s);
    assert_true(b.min.x == 0 && b.max.x == INFINITY && b.max.y == INFINITY);
    check_ok(f.ctx, un_shape_plane(f.set, un_v3(1, 1, 1), un_v3(1, 1, 1), &s));
    check_near(un_shape_distance(s, un_v3(0, 0, 0)), -sqrt(3), 1e-15);
    finish(&f);
}

/* Centres, axes, edges and corners have no gradient: any unit vector will do, NaN will not. */
static void normals_exist_everywhere(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *s[6];
    un_vec3 zero = {0, 0, 0}, up = {0, 1, 0};
    check_ok(f.ctx, un_shape_box(f.set, un_v3(-1, -1, -1), un_v3(1, 1, 1), &s[0]));
    check_ok(f.ctx, un_shape_sphere(f.set, zero, 1, &s[1]));
    check_ok(f.ctx, un_shape_cylinder(f.set, un_v3(0, -1, 0), up, 1, &s[2]));
    check_ok(f.ctx, un_shape_capsule(f.set, un_v3(0, -1, 0), up, 1, &s[3]));
    check_ok(f.ctx, un_shape_torus(f.set, zero, up, 1, 0.25, &s[4]));
    check_ok(f.ctx, un_shape_capsule(f.set, zero, zero, 1, &s[5]));
    const double at[] = {-2, -1, -1e-170, 0, 1e-320, 1e-9, 1, 1 + 1e-16, 1 + 4e-16, 2};
    enum { N = sizeof at / sizeof *at };
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < N * N * N; i++) {
            un_vec3 x = un_v3(at[i % N], at[i / N % N], at[i / N / N]);
            assert_true(is_unit(un_shape_normal(s[k], x)));
            assert_true(isfinite(un_shape_distance(s[k], x)));
        }
    finish(&f);
}

static void combinations(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *a, *b, *c, *u, *i, *d;
    check_ok(f.ctx, un_shape_sphere(f.set, un_v3(0, 0, 0), 0.5, &a));
    check_ok(f.ctx, un_shape_box(f.set, un_v3(0, -0.3, -0.3), un_v3(1, 0.3, 0.3), &b));
    check_ok(f.ctx, un_shape_plane(f.set, un_v3(0, 0.1, 0), un_v3(0, 1, 0), &c));
    un_shape *parts[3] = {a, b, c};
    check_ok(f.ctx, un_shape_union(f.set, parts, 2, &u));
    check_ok(f.ctx, un_shape_intersect(f.set, parts, 3, &i));
    check_ok(f.ctx, un_shape_subtract(f.set, parts, 3, &d));
    un_box3 bu = un_shape_bounds(u), bi = un_shape_bounds(i), bd = un_shape_bounds(d);
    assert_true(bu.min.x == -0.5 && bu.max.x == 1 && bu.max.y == 0.5);
    assert_true(bi.min.x == 0 && bi.max.x == 0.5 && bi.min.y == -0.3 && bi.max.y == 0.1);
    assert_true(bd.min.x == -0.5 && bd.max.x == 0.5);
    uint64_t r = 0;
    un_shape *all[3] = {u, i, d};
    for (int q = 0; q < 20000; q++) {
        un_vec3 x = random_point(&r, 1.2);
        bool in[3], in_a = un_length(x) < 0.5, in_c = x.y < 0.1;
        bool in_b = x.x > 0 && x.x < 1 && fabs(x.y) < 0.3 && fabs(x.z) < 0.3;
        in[0] = in_a || in_b;
        in[1] = in_a && in_b && in_c;
        in[2] = in_a && !in_b && !in_c;
        un_vec3 y = un_mad(x, random_unit(&r), pow(10, uniform(&r, -6, 0)));
        for (int k = 0; k < 3; k++) {
            double dx = un_shape_distance(all[k], x), dy = un_shape_distance(all[k], y);
            assert_int_equal(dx < 0, in[k]);
            assert_true(fabs(dx - dy) <= un_length(un_sub(x, y)) * (1 + 1e-12));
            un_vec3 n = un_shape_normal(all[k], x);
            assert_true(is_unit(n));
            /* Steepest: a short step along the normal gains the whole step, away from edges. */
            double gain = un_shape_distance(all[k], un_mad(x, n, 1e-7)) - dx;
            if (q < 1000 && fabs(gain - 1e-7) > 1e-9) {
                double back = dx - un_shape_distance(all[k], un_mad(x, n, -1e-7));
                check_near(back, 1e-7, 1e-9);
            }
        }
    }
    /* Parts that miss each other leave nothing, within bounds that can be looped over. */
    check_ok(f.ctx, un_shape_sphere(f.set, un_v3(5, 0, 0), 0.5, &parts[1]));
    check_ok(f.ctx, un_shape_intersect(f.set, parts, 2, &i));
    bi = un_shape_bounds(i);
    assert_true(bi.min.x <= bi.max.x && bi.min.y <= bi.max.y && bi.min.z <= bi.max.z);
    assert_true(un_shape_distance(i, un_v3(2.5, 0, 0)) > 0);
    finish(&f);
}

static void placement(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *box, *once, *twice, *plane;
    check_ok(f.ctx, un_shape_box(f.set, un_v3(-1, -0.5, -0.2), un_v3(1, 0.5, 0.3), &box));
    un_pose p = un_pose_axis(un_v3(1, 2, 3), 50), q = un_pose_axis(un_v3(-1, 0, 2), 20);
    p.translation = un_v3(3, -2, 1);
    p.scale = 2.5;
    q.translation = un_v3(0.5, 0.5, 0);
    q.scale = 0.3;
    check_ok(f.ctx, un_shape_move(f.set, box, &p, &once));
    check_ok(f.ctx, un_shape_move(f.set, once, &q, &twice));
    uint64_t r = 0;
    un_box3 b1 = un_shape_bounds(once), b2 = un_shape_bounds(twice);
    for (int k = 0; k < 5000; k++) {
        un_vec3 x = random_point(&r, 1.5);
        un_vec3 y = un_pose_apply(&p, x), z = un_pose_apply(&q, y);
        double d = un_shape_distance(box, x);
        check_near(un_shape_distance(once, y), d * 2.5, 1e-12);
        check_near(un_shape_distance(twice, z), d * 0.75, 1e-12);
        un_vec3 n = un_pose_rotate(&p, un_shape_normal(box, x));
        check_near(un_dot(n, un_shape_normal(once, y)), 1, 1e-9);
        assert_true(is_unit(un_shape_normal(twice, z)));
        if (d >= 0) continue;
        assert_true(y.x >= b1.min.x && y.y >= b1.min.y && y.z >= b1.min.z);
        assert_true(y.x <= b1.max.x && y.y <= b1.max.y && y.z <= b1.max.z);
        assert_true(z.x >= b2.min.x && z.y >= b2.min.y && z.z >= b2.min.z);
        assert_true(z.x <= b2.max.x && z.y <= b2.max.y && z.z <= b2.max.z);
    }
    /* A floor turned by a right angle is a wall, and ends where the wall does. */
    check_ok(f.ctx, un_shape_plane(f.set, un_v3(0, 2, 0), un_v3(0, 1, 0), &plane));
    un_pose turn = un_pose_axis(un_v3(0, 0, 1), 90);
    turn.translation = un_v3(1, 0, 0);
    check_ok(f.ctx, un_shape_move(f.set, plane, &turn, &once));
    un_box3 b = un_shape_bounds(once);
    check_near(b.min.x, -1, 1e-14);
    assert_true(b.max.x == INFINITY && b.max.y == INFINITY && b.min.y == -INFINITY);
    finish(&f);
}

/* Runs answer exactly as single questions do, through every kind of node. */
static void runs_equal_single_answers(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *a, *b, *u, *m, *d;
    check_ok(f.ctx, un_shape_sphere(f.set, un_v3(0, 0, 0), 0.5, &a));
    check_ok(f.ctx, un_shape_torus(f.set, un_v3(0, 0, 0), un_v3(0, 1, 0), 0.5, 0.2, &b));
    check_ok(f.ctx, un_shape_union(f.set, (un_shape *[]){a, b}, 2, &u));
    un_pose p = un_pose_euler(un_v3(10, 20, 30));
    p.scale = 1.5;
    check_ok(f.ctx, un_shape_move(f.set, u, &p, &m));
    check_ok(f.ctx, un_shape_subtract(f.set, (un_shape *[]){m, a, b}, 3, &d));
    enum { N = 1000 };
    un_vec3 x[N];
    double distance[N + 1];
    uint64_t r = 0;
    for (int k = 0; k < N; k++) x[k] = random_point(&r, 1.5);
    for (int count = 0; count <= N; count = count * 3 + 1) {
        distance[count] = 42;
        un_shape_distances(d, x, count, distance);
        assert_true(distance[count] == 42);
        for (int k = 0; k < count; k++) assert_true(distance[k] == un_shape_distance(d, x[k]));
    }
    finish(&f);
}

/* What a part's bounds alone say of its distance. */
static double signed_box_distance(const un_shape *part, un_vec3 x)
{
    un_box3 b = un_shape_bounds(part);
    un_vec3 q = un_max3(un_sub(b.min, x), un_sub(x, b.max));
    return fmin(fmax(q.x, fmax(q.y, q.z)), 0) + un_length(un_max3(q, un_v3(0, 0, 0)));
}

/* Unions of many parts search a tree: the same answers, from every part that could matter. */
static void large_unions(void **state)
{
    (void)state;
    enum { N = 400 };
    fixture f = start();
    un_shape *parts[N], *u;
    uint64_t r = 0;
    for (int i = 0; i < N; i++) {
        un_vec3 c = random_point(&r, 2);
        check_ok(f.ctx, un_shape_sphere(f.set, c, uniform(&r, 0.02, 0.3), &parts[i]));
        if (i % 10 != 7) continue;
        /* Off its edges, the distance of crossed bars falls short. */
        un_shape *halves[2];
        un_vec3 tall = un_v3(0.1, 2, 0.1), wide = un_v3(2, 0.1, 0.1);
        check_ok(f.ctx, un_shape_box(f.set, un_sub(c, tall), un_add(c, tall), &halves[0]));
        check_ok(f.ctx, un_shape_box(f.set, un_sub(c, wide), un_add(c, wide), &halves[1]));
        check_ok(f.ctx, un_shape_intersect(f.set, halves, 2, &parts[i]));
    }
    check_ok(f.ctx, un_shape_plane(f.set, un_v3(0, -1.5, 0), un_v3(0.1, 1, 0), &parts[3]));
    for (int count = 15; count <= N; count = count == 15 ? 17 : count * 2) {
        check_ok(f.ctx, un_shape_union(f.set, parts, count, &u));
        un_vec3 x[500];
        double d[500];
        for (int q = 0; q < 500; q++) x[q] = random_point(&r, 2.5);
        un_shape_distances(u, x, 500, d);
        for (int q = 0; q < 500; q++) {
            double least = INFINITY, bounded = INFINITY;
            int which = -1;
            for (int i = 0; i < count; i++) {
                double e = un_shape_distance(parts[i], x[q]);
                bounded = fmin(bounded, fmax(e, signed_box_distance(parts[i], x[q])));
                if (e < least) which = i;
                least = fmin(least, e);
            }
            assert_true(d[q] == un_shape_distance(u, x[q]));
            /* Exact, except that crossed bars may do better than their own answer. */
            check_near(d[q], count < 17 ? least : bounded, 1e-15);
            assert_int_equal(d[q] < 0, least < 0);
            un_vec3 n = un_shape_normal(u, x[q]);
            assert_true(is_unit(n));
            if (which % 10 == 7) continue;
            check_near(d[q], least, 1e-15);
            check_near(un_dot(n, un_shape_normal(parts[which], x[q])), 1, 1e-12);
        }
    }
    un_shape_normal(u, un_v3(NAN, 0, 0)); /* ends */
    for (int i = 0; i < 20; i++) parts[i] = parts[3];
    check_ok(f.ctx, un_shape_union(f.set, parts, 20, &u)); /* nothing to make a tree of */
    assert_true(un_shape_distance(u, un_v3(0, 0, 0)) > 1);
    finish(&f);
}

/* Scenes are programs: endless wrapping and doubling end in a sentence. */
static void nesting_is_bounded(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *s, *t;
    check_ok(f.ctx, un_shape_sphere(f.set, un_v3(0, 0, 0), 0.5, &t));
    un_status status = UN_OK;
    int levels = 0;
    for (s = t; status == UN_OK && levels < 100000; levels++)
        status = un_shape_union(f.set, (un_shape *[]){s, t}, 2, &s);
    assert_int_equal(status, UN_ERROR_SCENE);
    assert_non_null(strstr(un_context_message(f.ctx), "nested"));
    assert_in_range(levels, 100, 1000); /* calls, on any thread's stack */
    check_near(un_shape_distance(s, un_v3(1, 0, 0)), 0.5, 1e-15);
    status = UN_OK;
    levels = 0;
    for (s = t; status == UN_OK && levels < 100000; levels++)
        status = un_shape_union(f.set, (un_shape *[]){s, s}, 2, &s);
    assert_int_equal(status, UN_ERROR_SCENE);
    assert_non_null(strstr(un_context_message(f.ctx), "parts"));
    finish(&f);
}

/* ---- sampled ---- */

static void sample(double *v, const int32_t n[3], un_vec3 origin, double h, double (*f)(un_vec3 x))
{
    for (int32_t k = 0; k < n[2]; k++)
        for (int32_t j = 0; j < n[1]; j++)
            for (int32_t i = 0; i < n[0]; i++)
                *v++ = f(un_v3(origin.x + h * i, origin.y + h * j, origin.z + h * k));
}

static double ball(un_vec3 x)
{
    return un_length(x) - 0.5;
}
static double steep_ball(un_vec3 x)
{
    return 7 * (un_dot(x, x) - 0.25);
}
static double slope(un_vec3 x)
{
    return 0.6 * x.x + 0.8 * x.y - 0.1;
}
static double cliff(un_vec3 x)
{
    return 50 * slope(x);
}

static void sampled_shapes(void **state)
{
    (void)state;
    fixture f = start();
    const int32_t n[3] = {41, 37, 33};
    un_vec3 origin = un_v3(-1, -0.9, -0.8);
    double h = 0.05;
    double *v = un_alloc(f.ctx, 41 * 37 * 33, sizeof *v);
    double (*functions[4])(un_vec3) = {ball, steep_ball, slope, cliff};
    uint64_t r = 0;
    for (int k = 0; k < 4; k++) {
        un_shape *s;
        sample(v, n, origin, h, functions[k]);
        check_ok(f.ctx, un_shape_sampled(f.set, v, n, origin, h, &s));
        un_box3 b = un_shape_bounds(s);
        for (int q = 0; q < 20000; q++) {
            un_vec3 x = random_point(&r, 1.6);
            un_vec3 y = un_mad(x, random_unit(&r), pow(10, uniform(&r, -6, 0)));
            double dx = un_shape_distance(s, x), dy = un_shape_distance(s, y);
            double limit = k == 2 ? 1 + 1e-9 : 1.1;
            assert_true(fabs(dx - dy) <= un_length(un_sub(x, y)) * limit);
            un_vec3 normal = un_shape_normal(s, x);
            assert_true(is_unit(normal));
            if (dx < 0) assert_true(x.x >= b.min.x && x.y <= b.max.y && x.z <= b.max.z);
            un_vec3 foot = un_mad(x, un_v3(0.6, 0.8, 0), -slope(x));
            if (k == 3 && fabs(x.x) < 1 && fabs(x.y) < 0.9 && fabs(foot.x) < 1 &&
                fabs(foot.y) < 0.9) { /* not moved, and not flattened */
                assert_true((dx < 0) == (slope(x) < 0) || fabs(slope(x)) < 0.01 * h);
                assert_true(fabs(dx) <= fabs(slope(x)) + 0.2 * h);
                assert_true(fabs(dx) >= 0.9 * fabs(slope(x)) - 0.01 * h);
            }
            if (k >= 2) continue;
            double true_d = ball(x);
            assert_true(fabs(dx) <= fabs(true_d) + (k == 0 ? 0.05 : 0.2) * h);
            if (fabs(true_d) > 0.003) assert_int_equal(dx < 0, true_d < 0);
            /* Well inside the grid: about as exact as a sampled distance, and not much shorter
             * where a steep function had to be lowered. */
            if (fabs(x.x) > 0.9 || fabs(x.y) > 0.8 || fabs(x.z) > 0.7 || un_length(x) < 0.25)
                continue;
            if (k == 0 && true_d > 0) check_near(dx, true_d, h * h);
            assert_true(fabs(dx) > 0.93 * fabs(true_d) - 0.3 * h);
            check_below(1 - un_dot(normal, un_normalize(x)), 0.03);
        }
        if (k == 2) { /* meets the sides: goes on beyond them */
            check_near(un_shape_distance(s, un_v3(0.3, 0.2, 5)), 0.24, 1e-12);
            assert_true(b.max.z == INFINITY && b.min.x == -INFINITY);
            un_vec3 inner = un_shape_normal(s, un_v3(0.31, 0.22, 0.1));
            check_near(inner.x, 0.6, 1e-12);
            check_near(inner.y, 0.8, 1e-12);
        } else if (k < 2) {
            check_near(b.max.x, 0.525, 0.03);
            assert_true(un_shape_distance(s, un_v3(0, 9, 0)) > 8);
        }
    }
    un_free(f.ctx, v);
    finish(&f);
}

/* Grids without thickness, jumps, nothing inside, everything inside, and what is no number. */
static void odd_samples(void **state)
{
    (void)state;
    fixture f = start();
    un_shape *s;
    un_vec3 zero = {0, 0, 0};
    check_ok(f.ctx, un_shape_sampled(f.set, (double[]){1}, (int32_t[]){1, 1, 1}, zero, 0.1, &s));
    assert_true(un_shape_distance(s, un_v3(3, 0, 0)) >= 1);
    assert_true(un_shape_bounds(s).max.x <= un_shape_bounds(s).min.x);
    check_ok(f.ctx, un_shape_sampled(f.set, (double[]){-1}, (int32_t[]){1, 1, 1}, zero, 0.1, &s));
    assert_true(un_shape_distance(s, un_v3(3, 0, 0)) == -1);
    assert_true(un_shape_bounds(s).max.x == INFINITY);
    const double jump[] = {-1e9, -1e9, -1e9, 1e9, 1e9, 1e9};
    for (int axis = 0; axis < 3; axis++) {
        int32_t n[3] = {1, 1, 1};
        n[axis] = 6;
        check_ok(f.ctx, un_shape_sampled(f.set, jump, n, zero, 2, &s));
        for (double at = 0; at <= 10; at += 0.25) {
            un_vec3 x = un_v3(axis == 0 ? at : 7, axis == 1 ? at : 7, axis == 2 ? at : 7);
            double d = un_shape_distance(s, x);
            assert_true(fabs(d) <= fabs(at - 5) + 1e-12);
            assert_true(fabs(d) >= 0.96 * fabs(at - 5) - 1e-12 && (d < 0) == (at < 5));
        }
    }
    assert_int_equal(
        un_shape_sampled(f.set, (double[]){1, NAN}, (int32_t[]){1, 2, 1}, un_v3(1, 2, 3), 0.5, &s),
        UN_ERROR_SCENE);
    assert_non_null(strstr(un_context_message(f.ctx), "{1, 2.5, 3}"));
    finish(&f);
}

static un_status make_all(un_context *ctx, void *arg)
{
    (void)arg;
    un_shape_set *set = un_shape_set_create(ctx);
    if (!set) return UN_ERROR_MEMORY;
    un_status status;
    un_shape *a, *b, *c;
    un_pose pose = un_pose_identity();
    un_vec3 zero = {0, 0, 0}, one = {1, 1, 1};
    UN_TRY_DONE(un_shape_box(set, zero, one, &a));
    UN_TRY_DONE(un_shape_sphere(set, zero, 1, &b));
    UN_TRY_DONE(un_shape_cylinder(set, zero, one, 1, &c));
    UN_TRY_DONE(un_shape_capsule(set, zero, one, 1, &c));
    UN_TRY_DONE(un_shape_torus(set, zero, one, 1, 0.1, &c));
    UN_TRY_DONE(un_shape_plane(set, zero, one, &c));
    UN_TRY_DONE(un_shape_union(set, (un_shape *[]){a, b}, 2, &c));
    UN_TRY_DONE(un_shape_intersect(set, (un_shape *[]){a, b}, 2, &c));
    UN_TRY_DONE(un_shape_subtract(set, (un_shape *[]){a, b}, 2, &c));
    UN_TRY_DONE(un_shape_union(set, (un_shape *[]){a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b},
                               16, &c));
    UN_TRY_DONE(un_shape_move(set, c, &pose, &a));
    UN_TRY_DONE(un_shape_sampled(set, (double[]){-9, 9}, (int32_t[]){1, 2, 1}, zero, 1, &b));
done:
    un_shape_set_destroy(set);
    return status;
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    check_allocation_failures(make_all, NULL, 100);
}

/* The shadow of a ball is a disc, of a box what the direction makes of it; both are cut to the
 * domain, and lines in 2D. */
static void shadows_and_depths(void **state)
{
    (void)state;
    fixture f = start();
    un_vec3 room = un_v3(1, 1, 1), plane = un_v3(1, 1, 0);
    un_shape *ball, *box;
    check_ok(f.ctx, un_shape_sphere(f.set, un_v3(0.5, 0.4, 0.3), 0.2, &ball));
    check_ok(f.ctx, un_shape_box(f.set, un_v3(0.2, 0.3, -0.5), un_v3(0.4, 0.6, 0.5), &box));
    double disc = UN_PI * 0.04;
    check_near(un_shape_shadow(f.ctx, ball, un_v3(0, -3, 0), room), disc, 2e-3 * disc);
    check_near(un_shape_shadow(f.ctx, ball, un_v3(1, 2, -2), room), disc, 2e-3 * disc);
    check_near(un_shape_shadow(f.ctx, box, un_v3(1, 0, 0), room), 0.3 * 0.5, 1e-3);
    check_near(un_shape_shadow(f.ctx, box, un_v3(0, 0, 1), room), 0.06, 6e-4);
    check_near(un_shape_shadow(f.ctx, box, un_v3(3, 4, 0), room), 0.5 * (0.16 + 0.18), 2e-3);
    check_near(un_shape_shadow(f.ctx, box, un_v3(3, 4, 0), plane), 0.16 + 0.18, 4e-3);
    check_near(un_shape_shadow(f.ctx, ball, un_v3(1, 0, 0), un_v3(0.2, 1, 1)), 0, 0);
    check_near(2 * un_shape_depth(f.ctx, ball, NULL, room, 32), 0.4, 0.03);
    check_near(2 * un_shape_depth(f.ctx, box, NULL, room, 32), 0.2, 0.01);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primitives_are_exact),
        cmocka_unit_test(known_values),
        cmocka_unit_test(normals_exist_everywhere),
        cmocka_unit_test(combinations),
        cmocka_unit_test(placement),
        cmocka_unit_test(runs_equal_single_answers),
        cmocka_unit_test(large_unions),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(sampled_shapes),
        cmocka_unit_test(odd_samples),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(shadows_and_depths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
