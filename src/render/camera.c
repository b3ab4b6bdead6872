/* The camera, and the default view. */
#include "render/render.h"

/* Three-quarter view: degrees from +z towards +x, and above the floor. */
#define AZIMUTH 32.0
#define ELEVATION 21.0
/* Fraction of the picture's half width and half height that the domain may fill. */
#define FILL 0.95

/* Looks along -back and moves until all corners of the domain just fit. The distance depends on the
 * target and the target on the distance, so it iterates a few times. */
static void fit(un_vec3 *eye, un_vec3 *target, un_vec3 back, un_vec3 size, double tan_x,
                double tan_y)
{
    un_vec3 right = un_normalize(un_cross(un_v3(0, 1, 0), back)), up = un_cross(back, right);
    *target = un_scale(size, 0.5);
    double distance = un_length(size);
    for (int round = 0; round < 12; round++) {
        *eye = un_mad(*target, back, distance);
        double lo_x = 1e9, hi_x = -1e9, lo_y = 1e9, hi_y = -1e9, nearest = 1e9, grow = 0;
        for (int c = 0; c < 8; c++) {
            un_vec3 corner = un_v3(c & 1 ? size.x : 0, c & 2 ? size.y : 0, c & 4 ? size.z : 0);
            un_vec3 v = un_sub(corner, *eye);
            double depth = fmax(-un_dot(v, back), 1e-3 * distance);
            double x = un_dot(v, right) / (depth * tan_x), y = un_dot(v, up) / (depth * tan_y);
            lo_x = fmin(lo_x, x), hi_x = fmax(hi_x, x);
            lo_y = fmin(lo_y, y), hi_y = fmax(hi_y, y);
            nearest = fmin(nearest, depth);
        }
        grow = fmax(hi_x - lo_x, hi_y - lo_y) / (2 * FILL);
        *target = un_mad(*target, right, 0.5 * (lo_x + hi_x) * tan_x * distance);
        *target = un_mad(*target, up, 0.5 * (lo_y + hi_y) * tan_y * distance);
        /* Sizes in the picture are proportional to 1 / depth; the near side counts most. */
        distance += (grow - 1) * nearest;
    }
    *eye = un_mad(*target, back, distance);
}

un_camera un_camera_make(const un_render_def *def, un_vec3 size, double unit)
{
    double tan_y = tan(def->fov * UN_PI / 360), tan_x = tan_y * def->width / def->height;
    double azimuth = AZIMUTH * UN_PI / 180, elevation = ELEVATION * UN_PI / 180;
    un_vec3 back =
        un_v3(sin(azimuth) * cos(elevation), sin(elevation), cos(azimuth) * cos(elevation));
    un_vec3 eye, target;
    fit(&eye, &target, back, un_v3(size.x, 0.92 * size.y, size.z), tan_x, tan_y);
    if (def->has_target) {
        un_vec3 moved = un_v3(def->target[0], def->target[1], def->target[2]);
        eye = un_add(eye, un_sub(moved, target));
        target = moved;
    }
    if (def->has_eye) eye = un_v3(def->eye[0], def->eye[1], def->eye[2]);
    un_vec3 forward = un_normalize(un_sub(target, eye));
    un_vec3 right = un_cross(forward, un_v3(0, 1, 0));
    /* Straight up or down: any direction works for the horizon. */
    if (un_length(right) < 1e-6) right = un_v3(1, 0, 0);
    right = un_normalize(right);
    un_vec3 up = un_cross(right, forward);
    return (un_camera){.eye = un_f3_of(eye, 1 / unit),
                       .right = un_f3_of(right, tan_x),
                       .up = un_f3_of(up, tan_y),
                       .forward = un_f3_of(forward, 1),
                       .pixel = (float)(2 * tan_y / def->height)};
}

/* ---- settings of the scene ---- */

static void take(bool *has, double to[3], bool given, un_vec3 value)
{
    if (*has || !given) return;
    *has = true;
    to[0] = value.x, to[1] = value.y, to[2] = value.z;
}

void un_render_complete(un_render_def *def, const un_scene_def *scene)
{
    take(&def->has_water_colour, def->water_colour, scene->render.has_water, scene->render.water);
    take(&def->has_solid_colour, def->solid_colour, scene->render.has_solid, scene->render.solid);
    take(&def->has_background, def->background, scene->render.has_background,
         scene->render.background);
    if (def->has_light || !scene->render.has_light) return;
    def->has_light = true;
    def->light_azimuth = scene->render.light.azimuth;
    def->light_elevation = scene->render.light.elevation;
}

un_status un_render_complete_camera(un_render_def *def, const un_scene *scene, double t)
{
    un_viewpoint at;
    if (def->scene_camera) {
        UN_TRY(un_scene_camera(scene, t, &at));
        def->has_eye = def->has_target = false;
        def->fov = un_clamp(at.fov, 1, 150);
        take(&def->has_eye, def->eye, true, at.eye);
        take(&def->has_target, def->target, true, at.target);
        return UN_OK;
    }
    const un_camera_keys *keys = &scene->def.render.camera;
    UN_TRY(un_scene_render_camera(scene, t, &at));
    take(&def->has_eye, def->eye, keys->has_eye, at.eye);
    take(&def->has_target, def->target, keys->has_target, at.target);
    if (!def->has_fov && keys->has_fov) def->fov = at.fov;
    if (def->has_eye && def->has_target && def->eye[0] == def->target[0] &&
        def->eye[1] == def->target[1] && def->eye[2] == def->target[2])
        return un_fail(scene->ctx, UN_ERROR_ARGUMENT,
                       "eye and target are the same point; move one of them");
    return UN_OK;
}
