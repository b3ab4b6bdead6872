# Called by cases.py under `blender --background --python ... -- RUN LOADER SCRATCH`: a .blend file
# that is saved and opened, a run that goes on, is made anew or is moved, and motion blur.
import importlib.util
import json
import os
import shutil
import sys

import bpy
import numpy as np

directory, loader, scratch = sys.argv[sys.argv.index("--") + 1 :]
spec = importlib.util.spec_from_file_location("undine_loader", loader)
undine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(undine)
failures = 0


def expect(what, found, wanted=True):
    global failures
    if found != wanted:
        failures += 1
        print(f"FAILED: {what}: found {found}, wanted {wanted}")


def surface():
    return next(o for o in bpy.context.scene.objects if o.get("undine_kind") == "surface")


def file_of(run, frame):
    return f"{run}/frames/{frame:04d}/surface.ply"


def places():
    mesh = surface().data
    co = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", co)
    return co


def shows(path):
    found, wanted = places(), np.ravel(undine.to_blender(undine.read_surface(path)[0]))
    return found.shape == wanted.shape and bool(np.allclose(found, wanted))


def go_to(frame):
    scene = bpy.context.scene
    scene.frame_set(scene.frame_start + frame)


def record(run, finished, status):
    with open(f"{run}/run.json") as file:
        told = json.load(file)
    told["status"], told["frames"]["finished"] = status, finished
    with open(f"{run}/run.json", "w") as file:
        json.dump(told, file)


shutil.rmtree(scratch, ignore_errors=True)
run, blend = f"{scratch}/run", f"{scratch}/film.blend"
shutil.copytree(directory, run)
reads = []
for kind, (name, fill) in list(undine.FILES.items()):

    def counted(mesh, path, scale, fill=fill):
        reads.append(path)
        fill(mesh, path, scale)

    undine.FILES[kind] = (name, counted)

# the .blend holds no mesh, and the frame is there again when it is opened
undine.register()
bpy.ops.wm.save_as_mainfile(filepath=blend)
bare = os.path.getsize(blend)
bpy.ops.import_scene.undine(filepath=f"{run}/run.json")
go_to(2)
bpy.ops.wm.save_as_mainfile(filepath=blend)
expect("the mesh is not saved", os.path.getsize(blend) - bare < min(100000, os.path.getsize(file_of(run, 2)) // 2))
expect("the mesh is there after saving", shows(file_of(run, 2)))
bpy.ops.wm.open_mainfile(filepath=blend)
expect("the mesh is there after opening", shows(file_of(run, 2)))
bpy.ops.wm.read_factory_settings(use_empty=True)  # a file without a run

# a run that goes on: frames that are not finished show the last one that is
record(run, 1, "running")
os.rename(f"{run}/frames/0003", f"{run}/later")
os.rename(file_of(run, 2), f"{run}/surface.ply")
bpy.ops.import_scene.undine(filepath=f"{run}/run.json")
expect("the range of a run that goes on", bpy.context.scene.frame_end - bpy.context.scene.frame_start, 3)
for frame in range(4):
    go_to(frame)
    expect(f"frame {frame} of a run that goes on", shows(file_of(run, min(frame, 1))))
os.rename(f"{run}/surface.ply", file_of(run, 2))
os.rename(f"{run}/later", f"{run}/frames/0003")
record(run, 3, "done")
go_to(2)
expect("a frame that was finished since", shows(file_of(run, 2)))

# other data under the same number
shutil.copy(file_of(run, 3), file_of(run, 2))
go_to(2)
expect("a run made anew", shows(file_of(run, 3)))
shutil.copy(file_of(directory, 2), file_of(run, 2))

# a run that has moved: told, then found beside the .blend, or where the user says
bpy.ops.wm.save_as_mainfile(filepath=blend)
os.makedirs(f"{scratch}/elsewhere")
os.rename(run, f"{scratch}/elsewhere/run")
bpy.ops.wm.open_mainfile(filepath=blend)
expect("a moved run is told", "not there" in surface().get("undine_error", ""))
expect("a moved run shows nothing", len(surface().data.vertices), 0)
for item in bpy.context.scene.objects:
    if "undine_kind" in item:
        item["undine_directory"] = f"{scratch}/elsewhere/run"
bpy.context.view_layer.objects.active = surface()
bpy.ops.object.undine_reload()
expect("the run where the user says", (surface()["undine_error"], shows(file_of(f"{scratch}/elsewhere/run", 2))), ("", True))
shutil.copy(blend, f"{scratch}/elsewhere/film.blend")
bpy.ops.wm.open_mainfile(filepath=f"{scratch}/elsewhere/film.blend")
expect("a run that has moved with its .blend", shows(file_of(f"{scratch}/elsewhere/run", 2)))
os.rename(f"{scratch}/elsewhere/run", run)

# motion blur: no frame is read for the times around it, and slow motion has the same blur per frame
bpy.ops.wm.read_factory_settings(use_empty=True)
undine.stage_scene(run)
scene = bpy.context.scene
scene.render.engine = "CYCLES"
scene.cycles.samples, scene.cycles.use_denoising = 4, False
scene.render.resolution_x, scene.render.resolution_y = 96, 54
pictures = []
for blur, rate in ((False, 24), (True, 24), (True, 6)):
    scene.render.use_motion_blur, scene.render.motion_blur_shutter = blur, 2.0
    scene.render.fps, scene.render.fps_base = rate, 1
    scene.frame_set(2)
    reads.clear()
    scene.render.filepath = f"{scratch}/blur.png"
    bpy.ops.render.render(write_still=True)
    expect(f"files read for blur at {rate} frames a second", reads, [])
    image = bpy.data.images.load(scene.render.filepath)
    pictures.append(np.array(image.pixels[:]).reshape(-1, 4)[:, :3])
    bpy.data.images.remove(image)
sharp, usual, slow = pictures
difference, rest = float(np.abs(usual - sharp).mean()), float(np.abs(usual - slow).mean())
print(f"blur {difference:.4f}, of slow motion against it {rest:.4f}")
expect("motion blur shows", difference > 0.002)
expect("slow motion has the same blur", rest < 0.1 * difference)
undine.unregister()
print("Blender agrees" if failures == 0 else f"{failures} disagreements")
sys.stdout.flush()
os._exit(1 if failures else 0)
