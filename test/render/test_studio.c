/* Camera, optics of water, floor and film. */
#include "check.h"
#include "render/render.h"

static void camera_sees_the_whole_domain(void **state)
{
    (void)state;
    un_vec3 sizes[] = {{1, 1, 1}, {4, 1, 1},          {1, 4, 1},
                       {1, 1, 6}, {0.01, 0.02, 0.01}, {90, 10, 40}};
    int32_t pictures[][2] = {{1280, 720}, {720, 1280}, {500, 500}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < 3; p++) {
            un_render_def def = un_render_def_default();
            def.width = pictures[p][0];
            def.height = pictures[p][1];
            un_vec3 size = sizes[s];
            double unit = fmax(size.x, fmax(size.y, size.z));
            un_camera c = un_camera_make(&def, size, unit);
            assert_true(c.eye[1] > 0);
            float most = 0;
            for (int k = 0; k < 4; k++) { /* the floor's corners */
                un_fvec v =
                    un_f3_of(un_v3(k & 1 ? size.x : 0, 0, k & 2 ? size.z : 0), 1 / unit) - c.eye;
                float depth = un_fdot(v, c.forward);
                assert_true(depth > 0);
                float x = un_fdot(v, c.right) / un_fdot(c.right, c.right) / depth;
                float y = un_fdot(v, c.up) / un_fdot(c.up, c.up) / depth;
                most = fmaxf(most, fmaxf(fabsf(x), fabsf(y)));
            }
            assert_true(most < 1 && most > 0.2f);
        }
}

static void camera_goes_where_it_is_told(void **state)
{
    (void)state;
    un_render_def def = un_render_def_default();
    def.has_eye = def.has_target = true;
    def.eye[1] = 7;
    un_camera c = un_camera_make(&def, un_v3(2, 2, 2), 2);
    check_near((double)c.eye[1], 3.5, 1e-6);
    check_near((double)c.forward[1], -1, 1e-6); /* straight down */
    assert_true(isfinite(c.right[0]) && un_flength(c.right) > 0.1f);
}

static void water_reflects_as_fresnel_says(void **state)
{
    (void)state;
    un_fvec n = un_f3(0, 1, 0), t;
    check_near((double)un_fresnel(un_f3(0, -1, 0), n, 1 / 1.33f, &t), 0.02006, 1e-4);
    check_near((double)t[1], -1, 1e-6);
    for (int deg = 1; deg < 90; deg++) {
        float a = (float)(deg * UN_PI / 180);
        un_fvec d = un_f3(sinf(a), -cosf(a), 0);
        float f = un_fresnel(d, n, 1 / 1.33f, &t);
        assert_true(f > 0 && f < 1);
        check_near((double)(t[0] * 1.33f), (double)sinf(a), 1e-5); /* Snell */
        /* The way back is the same. */
        un_fvec back;
        check_near((double)un_fresnel(-t, -n, 1.33f, &back), (double)f, 1e-3);
        check_near((double)back[0], (double)-d[0], 1e-4);
        /* From inside, total beyond asin(1 / 1.33) = 48.75 degrees. */
        assert_true((un_fresnel(d, n, 1.33f, &t) >= 1) == (deg >= 49));
    }
}

static void floor_keeps_its_mean_at_a_distance(void **state)
{
    (void)state;
    un_studio s = un_studio_make(un_f3(1, 1, 1));
    un_fvec fine = un_f3(0, 0, 0);
    int32_t n = 500;
    for (int32_t i = 0; i < n * n; i++)
        fine += un_studio_floor(&s, (float)(i % n) / (float)n, (float)(i / n) / (float)n, 1e-4f);
    un_fvec coarse = un_studio_floor(&s, 0.3f, 0.7f, 40.0f);
    check_near((double)fine[0] / n / n, (double)coarse[0], 0.01);
}

static void film_is_steady(void **state)
{
    (void)state;
    uint8_t last[3] = {0, 0, 0}, rgb[3];
    for (float x = 0; x < 100; x = x * 1.05f + 0.001f) {
        un_studio_develop(un_f3(x, x, x), 7, rgb);
        assert_true(rgb[0] >= last[0] && rgb[1] == rgb[0] && rgb[2] == rgb[0]);
        memcpy(last, rgb, sizeof last);
    }
    assert_int_equal(last[0], 255);
    un_studio_develop(un_f3(-1, NAN, INFINITY), 7, rgb);
    assert_int_equal(rgb[0], 0);
    assert_int_equal(rgb[1], 0);
    assert_int_equal(rgb[2], 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(camera_sees_the_whole_domain),
        cmocka_unit_test(camera_goes_where_it_is_told),
        cmocka_unit_test(water_reflects_as_fresnel_says),
        cmocka_unit_test(floor_keeps_its_mean_at_a_distance),
        cmocka_unit_test(film_is_steady),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
