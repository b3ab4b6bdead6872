#include "vdb_reader.h"

#include <cstdio>
#include <map>
#include <string>

#include <openvdb/openvdb.h>

namespace
{

/* The last file asked for stays in memory: tests look at many voxels. */
std::string held;
std::map<std::string, openvdb::GridBase::Ptr> grids;

bool hold(const char *path)
{
    if (held == path) return true;
    held.clear();
    grids.clear();
    try {
        openvdb::initialize();
        openvdb::io::File file(path);
        file.open(false);
        auto all = file.getGrids();
        for (auto &grid : *all) grids[grid->getName()] = grid;
        held = path;
        return true;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s: %s\n", path, e.what());
        return false;
    }
}

openvdb::GridBase::Ptr find(const char *path, const char *name)
{
    return hold(path) && grids.count(name) ? grids[name] : nullptr;
}

void put(double to[3], const openvdb::Vec3d &v)
{
    for (int a = 0; a < 3; a++) to[a] = v[a];
}

} // namespace

extern "C" int vdb_grid_count(const char *path)
{
    return hold(path) ? int(grids.size()) : -1;
}

extern "C" bool vdb_grid_read(const char *path, const char *name, vdb_grid *out)
{
    auto grid = find(path, name);
    if (!grid) return false;
    *out = vdb_grid{};
    std::snprintf(out->type, sizeof out->type, "%s", grid->valueType().c_str());
    std::snprintf(out->grid_class, sizeof out->grid_class, "%s",
                  openvdb::GridBase::gridClassToString(grid->getGridClass()).c_str());
    put(out->voxel, grid->voxelSize());
    put(out->origin, grid->indexToWorld(openvdb::Vec3d(0)));
    out->active = int64_t(grid->activeVoxelCount());
    auto box = grid->evalActiveVoxelBoundingBox();
    for (int a = 0; a < 3; a++) out->min[a] = box.min()[a], out->max[a] = box.max()[a];
    if (auto scalar = openvdb::gridPtrCast<openvdb::FloatGrid>(grid))
        out->background[0] = scalar->background();
    if (auto vector = openvdb::gridPtrCast<openvdb::Vec3SGrid>(grid))
        put(out->background, openvdb::Vec3d(vector->background()));
    return true;
}

extern "C" bool vdb_value(const char *path, const char *name, const int32_t ijk[3], double value[3])
{
    auto grid = find(path, name);
    openvdb::Coord at(ijk[0], ijk[1], ijk[2]);
    if (auto scalar = openvdb::gridPtrCast<openvdb::FloatGrid>(grid)) {
        value[0] = scalar->tree().getValue(at);
        return scalar->tree().isValueOn(at);
    }
    if (auto vector = openvdb::gridPtrCast<openvdb::Vec3SGrid>(grid)) {
        put(value, openvdb::Vec3d(vector->tree().getValue(at)));
        return vector->tree().isValueOn(at);
    }
    return false;
}
