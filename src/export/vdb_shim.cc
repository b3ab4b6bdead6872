/* OpenVDB is C++ only; all C++ code is here. The level set is the distance to the exported surface.
 * Velocities are means over the particles of a voxel, or over the surface's vertices if it
 * has none; voxels of the narrow band that have neither take the mean of their neighbours. */
#include "export/vdb_shim.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <vector>

#include <openvdb/openvdb.h>
#include <openvdb/tools/MeshToVolume.h>

namespace
{

constexpr float HALF_WIDTH = 3; /* of the narrow band, voxels: what level set tools expect */
constexpr int SPREAD_PASSES = 4;

void add_velocity(openvdb::Vec3SGrid::Accessor &sum, openvdb::FloatGrid::Accessor &count,
                  const openvdb::math::Transform &to, const openvdb::Vec3d &x,
                  const openvdb::Vec3s &v)
{
    openvdb::Coord ijk = to.worldToIndexCellCentered(x);
    sum.setValue(ijk, sum.getValue(ijk) + v);
    count.setValue(ijk, count.getValue(ijk) + 1);
}

openvdb::Vec3SGrid::Ptr velocities(const un_vdb_frame &f, const openvdb::FloatGrid &band,
                                   const openvdb::math::Transform::Ptr &to)
{
    auto vel = openvdb::Vec3SGrid::create(openvdb::Vec3s(0));
    auto count = openvdb::FloatGrid::create(0);
    auto v = vel->getAccessor();
    auto n = count->getAccessor();
    for (int32_t p = 0; p < f.particle_count; p++)
        add_velocity(v, n, *to, {f.x[0][p], f.x[1][p], f.x[2][p]},
                     openvdb::Vec3s(float(f.v[0][p]), float(f.v[1][p]), float(f.v[2][p])));
    if (f.velocity && f.particle_count == 0)
        for (int32_t i = 0; i < f.vertex_count; i++) {
            const double *x = f.position + 3 * size_t(i), *u = f.velocity + 3 * size_t(i);
            add_velocity(v, n, *to, {x[0], x[1], x[2]},
                         openvdb::Vec3s(float(u[0]), float(u[1]), float(u[2])));
        }
    for (auto it = vel->beginValueOn(); it; ++it) it.setValue(*it / n.getValue(it.getCoord()));
    /* into voxels of the band without a velocity */
    auto b = band.getConstAccessor();
    for (int pass = 0; pass < SPREAD_PASSES; pass++) {
        std::vector<std::pair<openvdb::Coord, openvdb::Vec3s>> found;
        for (auto it = band.cbeginValueOn(); it; ++it) {
            openvdb::Coord c = it.getCoord();
            if (v.isValueOn(c)) continue;
            openvdb::Vec3s sum(0);
            int near = 0;
            for (int a = 0; a < 6; a++) {
                openvdb::Coord d = c;
                d[a / 2] += a % 2 ? 1 : -1;
                if (!v.isValueOn(d)) continue;
                sum += v.getValue(d);
                near++;
            }
            if (near) found.emplace_back(c, sum / float(near));
        }
        for (const auto &one : found) v.setValue(one.first, one.second);
    }
    vel->setTransform(to->copy());
    vel->setName("vel");
    vel->setVectorType(openvdb::VEC_CONTRAVARIANT_RELATIVE);
    return vel;
}

openvdb::FloatGrid::Ptr level_set(const un_vdb_frame &f, const openvdb::math::Transform::Ptr &to)
{
    std::vector<openvdb::Vec3s> points;
    std::vector<openvdb::Vec3I> triangles;
    for (size_t i = 0; i < size_t(f.vertex_count); i++)
        points.emplace_back(float(f.position[3 * i]), float(f.position[3 * i + 1]),
                            float(f.position[3 * i + 2]));
    for (size_t t = 0; t < size_t(f.triangle_count); t++)
        triangles.emplace_back(f.triangle[3 * t], f.triangle[3 * t + 1], f.triangle[3 * t + 2]);
    auto surface = openvdb::createLevelSet<openvdb::FloatGrid>(f.voxel, HALF_WIDTH);
    if (!triangles.empty()) /* of none it makes a grid without a transform */
        surface =
            openvdb::tools::meshToLevelSet<openvdb::FloatGrid>(*to, points, triangles, HALF_WIDTH);
    surface->setName("surface");
    return surface;
}

/* As io::File, but with a stream that reports a full disk: its own ignores it. */
class writer : public openvdb::io::Archive
{
public:
    void put(const char *path, const openvdb::GridCPtrVec &grids, const openvdb::MetaMap &about)
    {
        std::ofstream stream;
        stream.exceptions(std::ios::failbit | std::ios::badbit);
        stream.open(path, std::ios::out | std::ios::binary | std::ios::trunc);
        write(stream, grids, true, about);
        stream.close();
    }
};

} // namespace

extern "C" bool un_vdb_write(const un_vdb_frame *f, const char *path, char *message, size_t size)
{
    try {
        openvdb::initialize();
        auto to = openvdb::math::Transform::createLinearTransform(f->voxel);
        auto surface = level_set(*f, to);
        openvdb::GridCPtrVec grids;
        if (f->surface) grids.push_back(surface);
        grids.push_back(velocities(*f, *surface, to));
        openvdb::MetaMap about;
        about.insertMeta("frame", openvdb::Int32Metadata(f->frame));
        about.insertMeta("creator", openvdb::StringMetadata("Undine"));
        errno = 0;
        writer().put(path, grids, about);
        return true;
    } catch (const std::ios::failure &e) {
        char reason[128];
        std::snprintf(message, size, "%s",
                      errno ? strerror_r(errno, reason, sizeof reason) : e.what());
    } catch (const std::exception &e) {
        std::snprintf(message, size, "%s", e.what());
    } catch (...) {
        std::snprintf(message, size, "OpenVDB failed");
    }
    return false;
}
