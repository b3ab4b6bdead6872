# Called by cases.py under `blender --background --python ... -- RUN LOADER`: compares what the
# loader reads, frame by frame, with the run's own files.
import csv
import importlib.util
import os
import sys

import bpy
import numpy as np

directory, loader, picture = sys.argv[sys.argv.index("--") + 1 :]
spec = importlib.util.spec_from_file_location("undine_loader", loader)
undine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(undine)
failures = 0


def expect(what, found, wanted):
    global failures
    if found != wanted:
        failures += 1
        print(f"FAILED: {what}: found {found}, wanted {wanted}")


def values(mesh, name, width):
    out = np.empty(width * len(mesh.vertices), np.float32)
    mesh.attributes[name].data.foreach_get("vector" if width == 3 else "value", out)
    return out.reshape(-1, width)


with open(f"{directory}/stats.csv") as file:
    rows = {int(row["frame"]): row for row in csv.DictReader(file)}

undine.register()  # as an add-on
bpy.ops.import_scene.undine(filepath=f"{directory}/run.json")
scene = bpy.context.scene
surface = next(o for o in scene.objects if o.get("undine_kind") == "surface")
particles = next(o for o in scene.objects if o.get("undine_kind") == "particles")
expect("frames", (scene.frame_start, scene.frame_end), (1, 4))
expect("rate", scene.render.fps / scene.render.fps_base, 24.0)
expect("motion blur", scene.render.use_motion_blur, True)
seen = []
for frame in (0, 3, 1, 2):
    scene.frame_set(scene.frame_start + frame)
    position, velocity, faces = undine.read_surface(f"{directory}/frames/{frame:04d}/surface.ply")
    mesh = surface.data
    expect(f"surface {frame}: vertices", len(mesh.vertices), len(position))
    expect(f"surface {frame}: triangles", len(mesh.polygons), len(faces))
    expect(f"surface {frame}: sound", mesh.validate(), False)
    co = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", co)
    co = co.reshape(-1, 3)
    expect(f"surface {frame}: z is up", bool(np.allclose(co[:, 2], position[:, 1])), True)
    expect(f"surface {frame}: y is back", bool(np.allclose(co[:, 1], -position[:, 2])), True)
    found = values(mesh, "velocity", 3)
    expect(f"surface {frame}: velocity", bool(np.allclose(found[:, 2], velocity[:, 1])), True)
    points = particles.data
    expect(f"particles {frame}: count", len(points.vertices), int(rows[frame]["particles"]))
    radius = values(points, "radius", 1)
    _, _, wanted = undine.read_particles(f"{directory}/frames/{frame:04d}/particles.vtp")
    expect(f"particles {frame}: radius", bool(np.allclose(radius[:, 0], wanted)) and float(radius.min()) > 0, True)
    expect(f"particles {frame}: velocity", values(points, "velocity", 3).shape, (len(wanted), 3))
    seen.append(co.copy())
expect("frames differ", len({a.tobytes() for a in seen}), 4)

# the points as a renderer sees them
graph = bpy.context.evaluated_depsgraph_get()
points = particles.evaluated_get(graph)
expect("particles are points to render", bool(points.modifiers), True)

# two pictures: with motion blur water in fall is smeared, without it is not
bpy.ops.wm.read_factory_settings(use_empty=True)
undine.stage_scene(directory)
scene = bpy.context.scene
scene.frame_set(3)
scene.render.engine = "CYCLES"
scene.cycles.samples, scene.cycles.use_denoising = 4, False
scene.render.resolution_x, scene.render.resolution_y = 160, 90
pictures = []
for blur in (False, True):
    scene.render.use_motion_blur = blur
    scene.render.motion_blur_shutter = 2.0
    scene.render.filepath = f"{picture}{'-blur' if blur else ''}.png"
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(scene.render.filepath)
    pictures.append(np.array(image.pixels[:]).reshape(-1, 4)[:, :3])
expect("a picture", float(pictures[0].std()) > 0.03, True)
difference = float(np.abs(pictures[0] - pictures[1]).mean())
expect("motion blur shows", difference > 0.002, True)
print(f"motion blur changes the picture by {difference:.4f} in the mean")
print("Blender agrees" if failures == 0 else f"{failures} disagreements")
sys.stdout.flush()
os._exit(1 if failures else 0)
