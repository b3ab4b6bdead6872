"""Run by Blender: opens a run's export in USD and glTF, and holds the places and turns of its bodies
against bodies.csv.
    blender --background --python blender_bodies.py -- RUN"""
import csv
import glob
import math
import sys

import bpy
import numpy
from mathutils import Quaternion

if not hasattr(numpy, "bool"):
    numpy.bool = bool  # Blender 3.4's importer of glTF was written for an older numpy

run = sys.argv[sys.argv.index("--") + 1]
with open(f"{run}/bodies.csv") as file:
    rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
RATE = 24
failed = 0


def check(what, good):
    global failed
    print(("ok      " if good else "FAILED  ") + what)
    failed += not good


def middle(thing):
    """Of the thing's corners and of those below it, in the world."""
    graph = bpy.context.evaluated_depsgraph_get()
    points = []
    for part in [thing, *thing.children_recursive]:
        if part.type == "MESH":
            seen = part.evaluated_get(graph)
            points += [seen.matrix_world @ v.co for v in seen.data.vertices]
    low, high = ([f(p[a] for p in points) for a in range(3)] for f in (min, max))
    return [(a + b) / 2 for a, b in zip(low, high)]


def look(kind):
    """Blender's z is up: (x, y, z) of the run is (x, -z, y)."""
    for number, name in (1, "crate"), (2, "ball"):
        found = [o for o in bpy.data.objects if o.name.replace("_", " ") == f"solid {number}"]
        check(f"{kind}: {name} is there", bool(found))
        if not found:
            continue
        thing = found[0]
        turns = []
        for frame in (0, 6):
            bpy.context.scene.frame_set(frame)
            row = min(rows, key=lambda r: abs(r["time"] - frame / RATE))
            x, y, z = (row[f"{name}_{a}"] for a in "xyz")
            off = math.dist(middle(thing), (x, -z, y))
            check(f"{kind}: {name} in frame {frame} is {1000 * off:.2f} mm off", off < 0.01)
            turns.append(thing.matrix_world.to_quaternion())
        row = min(rows, key=lambda r: abs(r["time"] - 6 / RATE))
        turn = Quaternion([row[f"{name}_q{a}"] for a in "wxyz"]).angle
        seen = (turns[1] @ turns[0].inverted()).angle
        check(f"{kind}: {name} turns by {seen:.3f}, {turn:.3f} rad in the table", abs(seen - turn) < 0.01)


for kind in "usd", "glb":
    if kind == "usd" and not hasattr(bpy.types, "WM_OT_usd_import"):
        print("left out: this Blender has no USD")
        continue
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = RATE
    if kind == "usd":
        files = glob.glob(f"{run}/export/usd/*.usd*")
        bpy.ops.wm.usd_import(filepath=files[0])
    else:
        files = [f for f in glob.glob(f"{run}/export/glb/*.glb") if "surface." not in f and "particles." not in f]
        bpy.ops.import_scene.gltf(filepath=files[0])
    print(kind, files, [o.name for o in bpy.data.objects][:20])
    look(kind)
sys.exit(1 if failed else 0)
