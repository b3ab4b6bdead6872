/* The distance to the hull of three spheres against brute force, and its degenerate cases. */
#include "check.h"
#include "surface/surface.h"

static double random_in(uint64_t index, uint64_t seed, double lo, double hi)
{
    return lo + (hi - lo) * un_random(index, seed);
}

static double value(const un_vec3 x[3], const double r[3], un_vec3 at, double b1, double b2)
{
    double b0 = 1 - b1 - b2;
    un_vec3 c = un_add(un_scale(x[0], b0), un_add(un_scale(x[1], b1), un_scale(x[2], b2)));
    return un_length(un_sub(at, c)) - (b0 * r[0] + b1 * r[1] + b2 * r[2]);
}

#define GOLDEN 0.61803398874989484820

/* Nested golden sections: f is convex. */
static double best_b2(const un_vec3 x[3], const double r[3], un_vec3 at, double b1)
{
    double lo = 0, hi = 1 - b1, best = fmin(value(x, r, at, b1, lo), value(x, r, at, b1, hi));
    double a = hi - GOLDEN * (hi - lo), c = lo + GOLDEN * (hi - lo);
    double fa = value(x, r, at, b1, a), fc = value(x, r, at, b1, c);
    for (int n = 0; n < 60; n++) {
        best = fmin(best, fmin(fa, fc));
        if (fa < fc) {
            hi = c, c = a, fc = fa;
            a = hi - GOLDEN * (hi - lo), fa = value(x, r, at, b1, a);
        } else {
            lo = a, a = c, fa = fc;
            c = lo + GOLDEN * (hi - lo), fc = value(x, r, at, b1, c);
        }
    }
    return best;
}

static double brute_force(const un_vec3 x[3], const double r[3], un_vec3 at)
{
    double lo = 0, hi = 1, best = fmin(best_b2(x, r, at, 0), best_b2(x, r, at, 1));
    double a = hi - GOLDEN * (hi - lo), c = lo + GOLDEN * (hi - lo);
    double fa = best_b2(x, r, at, a), fc = best_b2(x, r, at, c);
    for (int n = 0; n < 60; n++) {
        best = fmin(best, fmin(fa, fc));
        if (fa < fc) {
            hi = c, c = a, fc = fa;
            a = hi - GOLDEN * (hi - lo), fa = best_b2(x, r, at, a);
        } else {
            lo = a, a = c, fa = fc;
            c = lo + GOLDEN * (hi - lo), fc = best_b2(x, r, at, c);
        }
    }
    return best;
}

static un_vec3 random_point(uint64_t index, uint64_t seed, double reach)
{
    return un_v3(random_in(index, 3 * seed, -reach, reach),
                 random_in(index, 3 * seed + 1, -reach, reach),
                 random_in(index, 3 * seed + 2, -reach, reach));
}

/* Every seventh case is of one kind: plain, equal radii, zero radii, collinear, sliver, one sphere
 * holding others, two centres in one place. */
static void make_case(uint64_t n, un_vec3 x[3], double r[3], un_vec3 *at)
{
    for (uint64_t i = 0; i < 3; i++) {
        x[i] = random_point(n, 10 + i, 1);
        r[i] = random_in(n, 50 + i, 0, 0.8);
    }
    *at = random_point(n, 20, n % 2 ? 3 : 1);
    double t = random_in(n, 60, -0.5, 1.5), thin = pow(10, random_in(n, 61, -16, -2));
    switch (n % 7) {
    case 1:
        r[1] = r[2] = r[0];
        break;
    case 2:
        r[0] = r[1] = r[2] = 0;
        break;
    case 3:
        x[2] = un_mad(x[0], un_sub(x[1], x[0]), t);
        break;
    case 4:
        x[2] = un_mad(un_mad(x[0], un_sub(x[1], x[0]), t), x[2], thin);
        break;
    case 5:
        r[n / 7 % 3] = random_in(n, 62, 1, 4);
        break;
    case 6:
        x[n / 7 % 3] = x[(n / 7 + 1) % 3];
        break;
    default:
        break;
    }
}

static void meets_brute_force(void **state)
{
    (void)state;
    double worst = 0;
    int inside = 0, faces = 0;
    for (uint64_t n = 0; n < 7000; n++) {
        un_vec3 x[3], at;
        double r[3];
        make_case(n, x, r, &at);
        double found = un_hull_distance(x, r, at), wanted = brute_force(x, r, at);
        if (!(found <= wanted + 1e-13 && found >= wanted - 1e-13))
            fail_msg("case %d: %.17g, by brute force %.17g", (int)n, found, wanted);
        worst = fmax(worst, fabs(found - wanted));
        inside += found < 0;
        double sides = INFINITY;
        for (int i = 0; i < 3; i++) {
            un_vec3 y[3] = {x[i], x[(i + 1) % 3], x[i]};
            double s[3] = {r[i], r[(i + 1) % 3], r[i]};
            sides = fmin(sides, un_hull_distance(y, s, at));
        }
        faces += found < sides - 1e-9;
    }
    assert_true(inside > 500 && faces > 200); /* all regions are met */
    check_below(worst, 1e-13);
}

static void knows_simple_hulls(void **state)
{
    (void)state;
    /* a slab of thickness 2: the face, its edge, its corner */
    un_vec3 x[3] = {{0, 0, 0}, {4, 0, 0}, {0, 0, 4}};
    double r[3] = {1, 1, 1};
    check_near(un_hull_distance(x, r, un_v3(1, 3, 1)), 2, 1e-15);
    check_near(un_hull_distance(x, r, un_v3(1, -3, 1)), 2, 1e-15);
    check_near(un_hull_distance(x, r, un_v3(1, 0.25, 1)), -0.75, 1e-15);
    check_near(un_hull_distance(x, r, un_v3(2, 0, -3)), 2, 1e-15);
    check_near(un_hull_distance(x, r, un_v3(-3, 0, -4)), 4, 1e-15);
    check_near(un_hull_distance(x, r, un_v3(1, 0, 1)), -1, 1e-15);
    /* one sphere alone, given three times */
    un_vec3 same[3] = {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}};
    double sizes[3] = {0.5, 2, 1};
    check_near(un_hull_distance(same, sizes, un_v3(1, 2, 8)), 3, 1e-15);
    /* a sphere that holds the other two */
    un_vec3 held[3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    double big[3] = {5, 0.5, 0.1};
    check_near(un_hull_distance(held, big, un_v3(-7, 0, 0)), 2, 1e-15);
    check_near(un_hull_distance(held, big, un_v3(3, 4, 0)), 0, 1e-15);
    /* touching from inside: |g| = 1 exactly */
    double tangent[3] = {5, 4, 4};
    check_near(un_hull_distance(held, tangent, un_v3(0, 0, 7)), 2, 1e-15);
    /* two points: a segment */
    un_vec3 ends[3] = {{0, 0, 0}, {2, 0, 0}, {1, 0, 0}};
    double none[3] = {0, 0, 0};
    check_near(un_hull_distance(ends, none, un_v3(1.5, 1, 0)), 1, 1e-15);
    check_near(un_hull_distance(ends, none, un_v3(5, 4, 0)), 5, 1e-15);
}

/* A distance changes by no more than the way gone, and not with the order of the spheres. */
static void is_a_distance(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 20000; n++) {
        un_vec3 x[3], at;
        double r[3];
        make_case(n, x, r, &at);
        un_vec3 other = un_mad(at, random_point(n, 30, 1), pow(10, random_in(n, 63, -6, 0)));
        double a = un_hull_distance(x, r, at), b = un_hull_distance(x, r, other);
        check_below(fabs(a - b), un_length(un_sub(at, other)) + 1e-14);
        un_vec3 y[3] = {x[2], x[0], x[1]}, z[3] = {x[1], x[0], x[2]};
        double s[3] = {r[2], r[0], r[1]}, t[3] = {r[1], r[0], r[2]};
        check_near(un_hull_distance(y, s, at), a, 1e-14);
        check_near(un_hull_distance(z, t, at), a, 1e-14);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meets_brute_force),
        cmocka_unit_test(knows_simple_hulls),
        cmocka_unit_test(is_a_distance),
    };
    return cmocka_run_group_tests_name("hull", tests, NULL, NULL);
}
