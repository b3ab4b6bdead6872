/* Rigid motions with uniform scale. */
#include "base/base.h"

un_pose un_pose_identity(void)
{
    return (un_pose){{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0, 0, 0}, 1};
}

/* Rodrigues: R = I + sin a [k] + (1 - cos a) [k]^2. */
un_pose un_pose_axis(un_vec3 axis, double degrees)
{
    un_pose pose = un_pose_identity();
    un_vec3 k = un_normalize(axis);
    double s = sin(degrees * UN_PI / 180), c = cos(degrees * UN_PI / 180), v = 1 - c;
    double rotation[3][3] = {{c + v * k.x * k.x, v * k.x * k.y - s * k.z, v * k.x * k.z + s * k.y},
                             {v * k.y * k.x + s * k.z, c + v * k.y * k.y, v * k.y * k.z - s * k.x},
                             {v * k.z * k.x - s * k.y, v * k.z * k.y + s * k.x, c + v * k.z * k.z}};
    if (un_dot(k, k) > 0) memcpy(pose.rotation, rotation, sizeof rotation);
    return pose;
}

un_pose un_pose_euler(un_vec3 degrees)
{
    un_pose x = un_pose_axis(un_v3(1, 0, 0), degrees.x);
    un_pose y = un_pose_axis(un_v3(0, 1, 0), degrees.y);
    un_pose z = un_pose_axis(un_v3(0, 0, 1), degrees.z);
    un_pose yx = un_pose_compose(&y, &x);
    return un_pose_compose(&z, &yx);
}

un_pose un_pose_compose(const un_pose *outer, const un_pose *inner)
{
    un_pose pose;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double sum = 0;
            for (int k = 0; k < 3; k++) sum += outer->rotation[i][k] * inner->rotation[k][j];
            pose.rotation[i][j] = sum;
        }
    pose.scale = outer->scale * inner->scale;
    pose.translation = un_pose_apply(outer, inner->translation);
    return pose;
}
