# SPDX-License-Identifier: MIT
"""Brings a run of Undine into Blender 3.4 and later: surface and particles as an animated sequence,
with velocities for motion blur.

As an add-on: Edit > Preferences > Add-ons > Install..., choose this file, tick "Import: Undine run";
then File > Import > Undine run, and choose run.json of the run's directory.

From the command line, as a scene to render or save:

    blender --background --python undine_loader.py -- out/dam --save dam.blend
    blender --background --python undine_loader.py -- out/dam --render dam.png --frame 24

Frames are read from the run's own files when Blender goes to them; nothing is saved in the .blend.
A run that goes on can be loaded already, and a run made anew is read anew. The add-on must be on
where the .blend is opened. Object properties > Undine run show where the run is and what is wrong.
Undine has y up and Blender z: the point (x, y, z) becomes (x, -z, y).
"""

bl_info = {
    "name": "Import: Undine run",
    "author": "Undine",
    "version": (1, 0, 0),
    "blender": (3, 4, 0),
    "location": "File > Import > Undine run",
    "description": "Surface and particles of a run, frame by frame, with motion blur",
    "category": "Import-Export",
}

import csv
import json
import os
import re
import sys

import bpy
import numpy as np
from bpy.app.handlers import persistent

# ---- files of a run ----


def read_surface(path):
    """Positions, velocities and triangles of a surface.ply, in Undine's axes."""
    with open(path, "rb") as file:
        data = file.read()
    head, mark, body = data.partition(b"end_header\n")
    counts = {m[1]: int(m[2]) for m in re.finditer(rb"element (\w+) (\d+)", head)}
    vertices, faces = counts.get(b"vertex"), counts.get(b"face")
    if not mark or vertices is None or faces is None or len(body) < 36 * vertices + 13 * faces:
        raise ValueError(f"{path} is not a surface as `undine run` writes it")
    v = np.frombuffer(body, "<f4", 9 * vertices).reshape(-1, 9)
    f = np.frombuffer(body, np.dtype([("n", "u1"), ("abc", "<i4", 3)]), faces, 36 * vertices)["abc"]
    return v[:, 0:3], v[:, 6:9], f


def read_particles(path):
    """Positions, velocities and radii of a particles.vtp."""
    with open(path, "rb") as file:
        data = file.read()
    head, mark, body = data.partition(b'<AppendedData encoding="raw">\n_')
    if not mark:
        raise ValueError(f"{path} is not a file of particles as `undine run` writes it")

    def array(name, components):
        found = re.search(rb'Name="' + name + rb'"[^>]*offset="(\d+)"', head)
        at = int(found[1])
        length = int(np.frombuffer(body, "<u8", 1, at)[0])
        return np.frombuffer(body, "<f4", length // 4, at + 8).reshape(-1, components)

    return array(b"Points", 3), array(b"velocity", 3), array(b"radius", 1)[:, 0]


def to_blender(vectors):
    """y up to z up."""
    out = np.empty((len(vectors), 3), np.float32)
    out[:, 0], out[:, 1], out[:, 2] = vectors[:, 0], -vectors[:, 2], vectors[:, 1]
    return out


def read_record(directory):
    """What run.json says: finished frames, planned frames, rate, and whether the run goes on."""
    try:
        with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
            record = json.load(file)
        frames = record["frames"]
        return int(frames["finished"]), int(frames["planned"]), float(frames["rate"]), record["status"] == "running"
    except (OSError, ValueError, KeyError, TypeError):
        return None


def frame_folder(directory, frame):
    return os.path.join(directory, "frames", f"{frame:04d}")


def frame_count(directory):
    """Frames that are complete. Without a run.json, those that have a folder."""
    record = read_record(directory)
    if record is None:
        count = 0
        while os.path.isdir(frame_folder(directory, count)):
            count += 1
        return count
    finished, _, _, goes_on = record
    if finished == 0 and goes_on and not any(
        os.path.exists(os.path.join(frame_folder(directory, 0), name)) for name, _ in FILES.values()
    ):
        return 0
    return finished + 1


def frame_rate(directory):
    record = read_record(directory)
    return record[2] if record and record[2] > 0 else 24.0


def read_bodies(directory):
    """Poses of the solids that move, from bodies.csv: {name: [(frame, place, quaternion), ...]}."""
    path, rate, poses = os.path.join(directory, "bodies.csv"), frame_rate(directory), {}
    if not os.path.exists(path):
        return poses
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                numbers = {key: float(value) for key, value in row.items() if key}
            except (TypeError, ValueError):
                break  # the last line of a run that was cut short
            frame = numbers["time"] * rate
            if abs(frame - round(frame)) > 1e-4:
                continue
            for name in (key[:-3] for key in numbers if key.endswith("_qw")):
                place = [numbers[f"{name}_{axis}"] for axis in "xyz"]
                turn = [numbers[f"{name}_q{axis}"] for axis in "wxyz"]
                poses.setdefault(name, []).append((round(frame), place, turn))
    return poses


# ---- into meshes ----


def set_attribute(mesh, name, kind, values):
    attribute = mesh.attributes.get(name)
    if attribute is None or len(attribute.data) != len(mesh.vertices):
        if attribute is not None:
            mesh.attributes.remove(attribute)
        attribute = mesh.attributes.new(name, kind, "POINT")
    attribute.data.foreach_set("vector" if kind == "FLOAT_VECTOR" else "value", np.ravel(values))


def fill_surface(mesh, path, scale):
    """The mesh becomes that of a file; velocities are multiplied by scale."""
    position, velocity, faces = read_surface(path)
    mesh.clear_geometry()
    if len(faces) == 0:
        return
    mesh.vertices.add(len(position))
    mesh.vertices.foreach_set("co", np.ravel(to_blender(position)))
    mesh.loops.add(3 * len(faces))
    mesh.loops.foreach_set("vertex_index", np.ravel(faces).astype(np.int32))
    mesh.polygons.add(len(faces))
    mesh.polygons.foreach_set("loop_start", np.arange(0, 3 * len(faces), 3, dtype=np.int32))
    if bpy.app.version < (4, 1, 0):
        mesh.polygons.foreach_set("loop_total", np.full(len(faces), 3, np.int32))
    mesh.polygons.foreach_set("use_smooth", np.ones(len(faces), bool))
    mesh.update(calc_edges=True)
    # The name that Cycles looks for where topology changes.
    set_attribute(mesh, "velocity", "FLOAT_VECTOR", scale * to_blender(velocity))


def fill_particles(mesh, path, scale):
    position, velocity, radius = read_particles(path)
    mesh.clear_geometry()
    mesh.vertices.add(len(position))
    mesh.vertices.foreach_set("co", np.ravel(to_blender(position)))
    mesh.update()
    set_attribute(mesh, "velocity", "FLOAT_VECTOR", scale * to_blender(velocity))
    set_attribute(mesh, "radius", "FLOAT", radius)


FILES = {"surface": ("surface.ply", fill_surface), "particles": ("particles.vtp", fill_particles)}


# ---- the scene's frame ----

rendered = {}  # by the name of a scene that is being rendered: the frame that its picture shows


def run_directory(item):
    """Where the run is: where the object says, or beside the .blend file."""
    directory = bpy.path.abspath(item["undine_directory"])
    name = os.path.basename(directory.rstrip("/\\"))
    beside = bpy.path.abspath(f"//{name}") if bpy.data.filepath else directory
    for place in (directory, beside):
        if os.path.isdir(os.path.join(place, "frames")):
            return place
    raise ValueError(f"{directory}: the run is not there; set its directory in Object properties > Undine run")


def show_frame(item, scene):
    """Fills an object that the loader made with the frame that the scene is at, if it does not hold
    it already. Frames that the run has not reached show its last one."""
    mesh = item.data
    directory = run_directory(item)
    count = frame_count(directory)
    if count == 0:
        raise ValueError(f"{directory}: the run has no frames yet")
    # Cycles goes to other times within and beyond the frame for motion blur, which comes from the
    # velocities: the mesh stays.
    at = rendered.get(scene.name, round(scene.frame_current_final))
    frame = min(max(at - item["undine_first"], 0), count - 1)
    name, fill = FILES[item["undine_kind"]]
    path = os.path.join(frame_folder(directory, frame), name)
    # Velocities are distances per second of the film: those of slow motion are smaller.
    scale = scene.render.fps / scene.render.fps_base / frame_rate(directory)
    if not os.path.exists(path):
        if not os.path.isdir(os.path.dirname(path)):
            raise ValueError(f"{path}: the frame is not there")
        key = f"{path} empty"
        if mesh.get("undine_key") != key:
            mesh.clear_geometry()
    else:
        found = os.stat(path)
        key = f"{path} {found.st_mtime_ns} {found.st_size} {scale:.9g}"
        if mesh.get("undine_key") != key:
            fill(mesh, path, scale)
    mesh["undine_key"] = key


def tell(item, message):
    """An error stays with its object until it is mended, and is told once."""
    if item.get("undine_error", "") == message:
        return
    item["undine_error"] = message
    if not message:
        return
    print(f"undine: {message}", file=sys.stderr)
    if not bpy.app.background:
        text = f"{item.name}: {message}"
        bpy.context.window_manager.popup_menu(lambda menu, _: menu.layout.label(text=text), title="Undine", icon="ERROR")


def undine_objects(scene):
    return [item for item in scene.objects if "undine_kind" in item and item.data is not None]


@persistent
def on_frame(scene, _depsgraph=None):
    for item in undine_objects(scene):
        try:
            show_frame(item, scene)
            tell(item, "")
        except (OSError, ValueError) as error:
            empty(item)
            tell(item, str(error))


@persistent
def on_load(_file=None, _depsgraph=None):
    """After a file is opened, saved, or the run has moved."""
    for scene in bpy.data.scenes:
        on_frame(scene)


def empty(item):
    item.data.clear_geometry()
    item.data["undine_key"] = ""


@persistent
def before_save(_file=None, _depsgraph=None):
    for scene in bpy.data.scenes:
        for item in undine_objects(scene):
            empty(item)


@persistent
def before_render(scene, _depsgraph=None):
    rendered[scene.name] = scene.frame_current


@persistent
def after_render(scene, _depsgraph=None):
    rendered.pop(scene.name, None)


# ---- objects ----


def water_material():
    material = bpy.data.materials.get("Undine water")
    if material:
        return material
    material = bpy.data.materials.new("Undine water")
    material.use_nodes = True
    nodes, links = material.node_tree.nodes, material.node_tree.links
    shader = nodes.get("Principled BSDF")
    shader.inputs["Roughness"].default_value = 0.0
    shader.inputs["IOR"].default_value = 1.33
    for name in ("Transmission", "Transmission Weight"):  # before and since 4.0
        if name in shader.inputs:
            shader.inputs[name].default_value = 1.0
    shader.inputs["Base Color"].default_value = (1, 1, 1, 1)
    absorb = nodes.new("ShaderNodeVolumeAbsorption")
    absorb.inputs["Color"].default_value = (0.25, 0.72, 0.82, 1)
    absorb.inputs["Density"].default_value = 1.5
    links.new(absorb.outputs[0], nodes.get("Material Output").inputs["Volume"])
    return material


def points_modifier(item):
    """Vertices become spheres of the attribute `radius`, by geometry nodes."""
    group = bpy.data.node_groups.get("Undine points")
    if group is None:
        group = bpy.data.node_groups.new("Undine points", "GeometryNodeTree")
        if hasattr(group, "interface"):  # since 4.0
            group.interface.new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
            group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
        else:
            group.inputs.new("NodeSocketGeometry", "Geometry")
            group.outputs.new("NodeSocketGeometry", "Geometry")
        nodes, links = group.nodes, group.links
        start, end = nodes.new("NodeGroupInput"), nodes.new("NodeGroupOutput")
        points, radius = nodes.new("GeometryNodeMeshToPoints"), nodes.new("GeometryNodeInputNamedAttribute")
        radius.data_type = "FLOAT"
        radius.inputs[0].default_value = "radius"
        links.new(start.outputs[0], points.inputs["Mesh"])
        links.new(next(o for o in radius.outputs if o.enabled), points.inputs["Radius"])
        links.new(points.outputs[0], end.inputs[0])
    item.modifiers.new("Undine points", "NODES").node_group = group


def load_bodies(directory, name, first, context):
    """An empty for each solid that moves, with keys at the frames: parent a model to it."""
    for body, poses in read_bodies(directory).items():
        item = bpy.data.objects.new(f"{name} {body}", None)
        item.empty_display_size = 0.1
        item.rotation_mode = "QUATERNION"
        context.collection.objects.link(item)
        for frame, (x, y, z), (qw, qx, qy, qz) in poses:
            item.location = (x, -z, y)
            item.rotation_quaternion = (qw, qx, -qz, qy)
            item.keyframe_insert("location", frame=first + frame)
            item.keyframe_insert("rotation_quaternion", frame=first + frame)


def load(directory, surface=True, particles=True, first=None, set_range=True, context=None):
    """Makes the objects; first: the scene's frame that shows frame 0000. Returns them by kind."""
    context = context or bpy.context
    scene = context.scene
    directory = os.path.abspath(bpy.path.abspath(directory))
    count = frame_count(directory)
    if count == 0:
        raise ValueError(f"{directory} has no frames; name the directory of a run")
    first = scene.frame_start if first is None else first
    name = os.path.basename(directory.rstrip("/\\")) or "undine"
    made = {}
    for kind, wanted in (("surface", surface), ("particles", particles)):
        file = FILES[kind][0]
        if not wanted or not os.path.exists(os.path.join(frame_folder(directory, 0), file)):
            continue
        mesh = bpy.data.meshes.new(f"{name} {kind}")
        item = bpy.data.objects.new(f"{name} {kind}", mesh)
        item["undine_kind"], item["undine_directory"], item["undine_first"] = kind, directory, first
        context.collection.objects.link(item)
        mesh.materials.append(water_material())
        if kind == "particles":
            points_modifier(item)
        made[kind] = item
    if "surface" in made and "particles" in made:
        made["particles"].hide_render = True  # one or the other
    load_bodies(directory, name, first, context)
    if set_range:
        record = read_record(directory)
        last = record[1] if record and record[3] else count - 1  # all that is planned of a run that goes on
        scene.frame_start, scene.frame_end = first, first + last
        rate = frame_rate(directory)
        scene.render.fps, scene.render.fps_base = max(1, round(rate)), max(1, round(rate)) / rate
        scene.render.use_motion_blur = True
    register_handlers()
    on_frame(scene)
    return made


HANDLERS = {
    "frame_change_pre": on_frame,
    "load_post": on_load,
    "save_pre": before_save,
    "save_post": on_load,
    "render_pre": before_render,
    "render_post": after_render,
    "render_cancel": after_render,
}


def register_handlers():
    for name, handler in HANDLERS.items():
        if handler not in getattr(bpy.app.handlers, name):
            getattr(bpy.app.handlers, name).append(handler)


# ---- the add-on ----


class ImportUndine(bpy.types.Operator):
    """Import a run of Undine as an animated sequence"""

    bl_idname = "import_scene.undine"
    bl_label = "Import Undine run"
    bl_options = {"REGISTER", "UNDO"}

    filepath: bpy.props.StringProperty(subtype="FILE_PATH")
    filter_glob: bpy.props.StringProperty(default="run.json;*.pvd", options={"HIDDEN"})
    surface: bpy.props.BoolProperty(name="Surface", default=True)
    particles: bpy.props.BoolProperty(name="Particles", default=True)
    set_range: bpy.props.BoolProperty(name="Set frame range and rate", default=True)

    def invoke(self, context, _event):
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context):
        directory = self.filepath if os.path.isdir(self.filepath) else os.path.dirname(self.filepath)
        try:
            load(directory, self.surface, self.particles, set_range=self.set_range, context=context)
        except (OSError, ValueError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}


class ReloadUndine(bpy.types.Operator):
    """Read the frame again from the run's directory"""

    bl_idname = "object.undine_reload"
    bl_label = "Read again"

    def execute(self, context):
        item = context.object
        if item is None or "undine_kind" not in item:
            self.report({"ERROR"}, "the object is not of an Undine run")
            return {"CANCELLED"}
        item.data["undine_key"] = ""
        on_frame(context.scene)
        if item.get("undine_error"):
            self.report({"ERROR"}, item["undine_error"])
            return {"CANCELLED"}
        return {"FINISHED"}


class UndinePanel(bpy.types.Panel):
    bl_idname = "OBJECT_PT_undine"
    bl_label = "Undine run"
    bl_space_type, bl_region_type, bl_context = "PROPERTIES", "WINDOW", "object"

    @classmethod
    def poll(cls, context):
        return context.object is not None and "undine_kind" in context.object

    def draw(self, context):
        item = context.object
        self.layout.prop(item, '["undine_directory"]', text="Directory")
        self.layout.prop(item, '["undine_first"]', text="First frame")
        if item.get("undine_error"):
            self.layout.label(text=item["undine_error"], icon="ERROR")
        self.layout.operator(ReloadUndine.bl_idname)


def menu(self, _context):
    self.layout.operator(ImportUndine.bl_idname, text="Undine run (run.json)")


CLASSES = (ImportUndine, ReloadUndine, UndinePanel)


def register():
    for item in CLASSES:
        bpy.utils.register_class(item)
    bpy.types.TOPBAR_MT_file_import.append(menu)
    register_handlers()


def unregister():
    bpy.types.TOPBAR_MT_file_import.remove(menu)
    for item in reversed(CLASSES):
        bpy.utils.unregister_class(item)
    for name, handler in HANDLERS.items():
        if handler in getattr(bpy.app.handlers, name):
            getattr(bpy.app.handlers, name).remove(handler)


# ---- the command line ----


def film_bounds(directory, made):
    """Of what the first, the middle and the last frame hold, in Blender's axes."""
    from mathutils import Vector

    last = frame_count(directory) - 1
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for frame in {0, last // 2, last}:
        for kind in made:
            path = os.path.join(frame_folder(directory, frame), FILES[kind][0])
            if not os.path.exists(path):
                continue
            places = to_blender((read_surface if kind == "surface" else read_particles)(path)[0])
            if len(places):
                low, high = np.minimum(low, places.min(0)), np.maximum(high, places.max(0))
    if not np.all(np.isfinite(low)):
        low, high = np.zeros(3), np.ones(3)
    return Vector(low.tolist()), Vector(high.tolist())


def stage_scene(directory):
    """A floor, a light and a camera around the domain, for a picture at once."""
    from mathutils import Vector

    scene = bpy.context.scene
    for item in list(scene.objects):
        bpy.data.objects.remove(item)
    made = load(directory, first=0)
    low, high = film_bounds(directory, made)
    middle, size = (low + high) / 2, (high - low).length
    bpy.ops.mesh.primitive_plane_add(size=20 * size, location=(middle.x, middle.y, low.z - 1e-3 * size))
    floor = bpy.data.materials.new("Floor")
    floor.diffuse_color = (0.5, 0.5, 0.5, 1)
    bpy.context.object.data.materials.append(floor)
    light = bpy.data.objects.new("Light", bpy.data.lights.new("Light", "AREA"))
    light.data.energy, light.data.size = 120 * size * size, size
    light.location = middle + Vector((-0.8, 0.6, 1.6)) * size
    light.rotation_euler = (middle - light.location).to_track_quat("-Z", "Y").to_euler()
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.location = middle + Vector((0.55, -1.5, 0.75)) * size
    camera.rotation_euler = (middle - camera.location).to_track_quat("-Z", "Y").to_euler()
    scene.collection.objects.link(light)
    scene.collection.objects.link(camera)
    scene.camera = camera
    world = scene.world or bpy.data.worlds.new("World")
    scene.world = world
    world.use_nodes = True
    world.node_tree.nodes["Background"].inputs[0].default_value = (0.7, 0.8, 0.9, 1)
    world.node_tree.nodes["Background"].inputs[1].default_value = 0.6
    return made


def main(arguments):
    import argparse

    parser = argparse.ArgumentParser(prog="undine_loader.py", description="A run of Undine in Blender")
    parser.add_argument("directory")
    parser.add_argument("--save", metavar="FILE.blend", help="save the scene")
    parser.add_argument("--render", metavar="FILE.png", help="render a frame with Cycles")
    parser.add_argument("--frame", type=int, default=0)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--width", type=int, default=960)
    parser.add_argument("--no-motion-blur", action="store_true")
    options = parser.parse_args(arguments)
    try:
        stage_scene(options.directory)
    except (OSError, ValueError) as error:
        print(f"undine: {error}", file=sys.stderr)
        sys.exit(2)
    scene = bpy.context.scene
    scene.frame_set(options.frame)
    scene.render.engine = "CYCLES"
    scene.cycles.samples = options.samples
    scene.cycles.use_denoising = False
    scene.render.resolution_x, scene.render.resolution_y = options.width, options.width * 9 // 16
    scene.render.use_motion_blur = not options.no_motion_blur
    if options.save:
        bpy.ops.wm.save_as_mainfile(filepath=os.path.abspath(options.save))
    if options.render:
        scene.render.filepath = os.path.abspath(options.render)
        bpy.ops.render.render(write_still=True)


if __name__ == "__main__":
    if "--" in sys.argv:
        main(sys.argv[sys.argv.index("--") + 1 :])
    else:
        register()
