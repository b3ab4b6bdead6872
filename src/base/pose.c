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

/* Starts from the largest of the four components, so that none is a small difference of large
 * numbers [Shepperd]. */
void un_pose_quaternion(const un_pose *pose, double q[4])
{
    const double(*r)[3] = pose->rotation;
    double trace = r[0][0] + r[1][1] + r[2][2];
    int k = 0; /* the largest of the diagonal's entries; 3: the trace is larger */
    for (int i = 1; i < 3; i++)
        if (r[i][i] > r[k][k]) k = i;
    if (trace > r[k][k]) k = 3;
    if (k == 3) {
        q[0] = 1 + trace;
        q[1] = r[2][1] - r[1][2];
        q[2] = r[0][2] - r[2][0];
        q[3] = r[1][0] - r[0][1];
    } else {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        q[0] = r[j][i] - r[i][j];
        q[1 + k] = 1 + r[k][k] - r[i][i] - r[j][j];
        q[1 + i] = r[i][k] + r[k][i];
        q[1 + j] = r[j][k] + r[k][j];
    }
    double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (q[0] < 0) length = -length;
    for (int i = 0; i < 4; i++) q[i] /= length;
}

un_pose un_pose_of_quaternion(const double q[4], un_vec3 translation)
{
    double s = 2 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    double w = q[0], x = q[1], y = q[2], z = q[3];
    return (un_pose){
        .rotation = {{1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)},
                     {s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)},
                     {s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)}},
        .translation = translation,
        .scale = 1};
}
