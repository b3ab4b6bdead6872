# Called by cases.py under pvpython: what ParaView finds in a run's directory.
import csv
import json
import math
import os
import sys

from paraview import servermanager, simple

directory = sys.argv[1]
failures = 0
# VTK's numbers of the cells that each method has: tets, cubes, hexahedra
KIND = {"uniform": 11, "octree": 11, "tet": 10, "staggered": 10, "conforming": 10, "warp": 12}
with open(f"{directory}/run.json") as file:
    method = json.load(file)["method"]
with_particles = os.path.exists(f"{directory}/particles.pvd")


def expect(what, found, wanted):
    global failures
    if found != wanted:
        failures += 1
        print(f"FAILED: {what}: found {found}, wanted {wanted}")


def arrays(data):
    return {data.GetArrayName(i): data.GetArray(i) for i in range(data.GetNumberOfArrays())}


def within(what, array, low, high):
    for c in range(array.GetNumberOfComponents()):
        a, b = array.GetRange(c)
        expect(f"{what}[{c}] in [{low}, {high}]", low <= a <= b <= high, True)


def ply_counts(path):
    counts = {}
    with open(path, "rb") as file:
        for line in file:
            words = line.split()
            if words[0] == b"element":
                counts[words[1]] = int(words[2])
            if words[0] == b"end_header":
                return counts[b"vertex"], counts[b"face"]


def frames(name):
    reader = simple.PVDReader(FileName=f"{directory}/{name}")
    reader.UpdatePipelineInformation()
    times = list(reader.TimestepValues)
    expect(f"{name}: times", [round(t * 24, 9) for t in times], [0, 1, 2, 3])
    for frame, time in enumerate(times):
        reader.UpdatePipeline(time)
        yield frame, servermanager.Fetch(reader)


with open(f"{directory}/stats.csv") as file:
    rows = {int(row["frame"]): row for row in csv.DictReader(file)}  # the last row of each frame

for frame, data in frames("surface.pvd"):
    vertices, faces = ply_counts(f"{directory}/frames/{frame:04d}/surface.ply")
    expect(f"surface {frame}: points as in the PLY", data.GetNumberOfPoints(), vertices)
    expect(f"surface {frame}: triangles as in the PLY", data.GetNumberOfCells(), faces)
    expect(f"surface {frame}: not empty", faces > 100, True)
    found = arrays(data.GetPointData())
    expect(f"surface {frame}: arrays", sorted(found), ["normal", "velocity"])
    expect(f"surface {frame}: normals known as such", data.GetPointData().GetNormals() is not None, True)
    within("normal", found["normal"], -1.0001, 1.0001)
    within("velocity", found["velocity"], -20, 20)
    if frame == 0:
        expect("at rest at first", found["velocity"].GetRange(-1)[1], 0.0)
    n = [found["normal"].GetTuple(0)[c] for c in range(3)]
    expect("unit normals", abs(math.hypot(*n) - 1) < 1e-3, True)
    bounds = data.GetBounds()
    expect(f"surface {frame}: in the domain", min(bounds) >= -0.1 and max(bounds) <= 1.1, True)

expect("particles there", with_particles, method != "conforming")
for frame, data in frames("particles.pvd") if with_particles else ():
    expect(f"particles {frame}: as in stats.csv", data.GetNumberOfPoints(), int(rows[frame]["particles"]))
    expect(f"particles {frame}: a cell each", data.GetNumberOfCells(), data.GetNumberOfPoints())
    found = arrays(data.GetPointData())
    expect(f"particles {frame}: arrays", {"ballistic", "radius", "velocity", "volume"} <= set(found), True)
    within("ballistic", found["ballistic"], 0, 1)
    volume = sum(found["volume"].GetValue(i) for i in range(data.GetNumberOfPoints()))
    expect(f"particles {frame}: volume near the ledger's",
           abs(volume / float(rows[frame]["volume"]) - 1) < 0.15, True)
    within("position", data.GetPoints().GetData(), -1e-6, 1 + 1e-6)

for where, frame, kind in [(directory, frame, KIND[method]) for frame in range(4)]:
    reader = simple.XMLUnstructuredGridReader(FileName=[f"{where}/frames/{frame:04d}/mesh.vtu"])
    reader.UpdatePipeline()
    data = servermanager.Fetch(reader)
    found = arrays(data.GetCellData())
    expect(f"mesh {frame}: arrays", sorted(found), ["level", "pressure", "velocity"])
    expect(f"mesh {frame}: cells", data.GetNumberOfCells() > 100, True)
    expect(f"mesh {frame}: corners are shared", data.GetNumberOfPoints() < 3 * data.GetNumberOfCells(), True)
    expect(f"mesh {frame}: kind of cells", {data.GetCellType(c) for c in range(data.GetNumberOfCells())}, {kind})

# what `undine export --to vtk` made is the same
for name, file in (("surface", "surface.vtp"), ("particles", "particles.vtp"), ("mesh", "mesh.vtu")):
    if name == "particles" and not with_particles:
        continue
    copy = simple.PVDReader(FileName=f"{directory}/export/vtk/{name}.pvd")
    copy.UpdatePipelineInformation()
    times = list(copy.TimestepValues)
    expect(f"export {name}: times", [round(t * 24, 9) for t in times], [0, 1, 2, 3])
    for frame, time in enumerate(times):
        copy.UpdatePipeline(time)
        found = servermanager.Fetch(copy)
        kind = simple.XMLUnstructuredGridReader if name == "mesh" else simple.XMLPolyDataReader
        own = kind(FileName=[f"{directory}/frames/{frame:04d}/{file}"])
        own.UpdatePipeline()
        wanted = servermanager.Fetch(own)
        for what in ("GetNumberOfPoints", "GetNumberOfCells", "GetBounds"):
            expect(f"export {name} {frame}: {what}", getattr(found, what)(), getattr(wanted, what)())
        data = "GetCellData" if name == "mesh" else "GetPointData"
        a, b = arrays(getattr(found, data)()), arrays(getattr(wanted, data)())
        expect(f"export {name} {frame}: arrays", sorted(a), sorted(b))
        for array in b:
            expect(f"export {name} {frame}: {array}", a[array].GetRange(-1), b[array].GetRange(-1))

print("ParaView agrees" if failures == 0 else f"{failures} disagreements")
sys.exit(failures > 0)
