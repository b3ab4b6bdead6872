# The dam break of bench/dam.py in Blender's Mantaflow, with its defaults.
#   blender -b --factory-startup -t THREADS -P mantaflow_dam.py -- CELLS FRAMES CACHE
# Prints "MANTAFLOW data SECONDS mesh SECONDS processor SECONDS", the last one of all threads. With
# CELLS FRAMES CACHE --no-mesh the liquid is not meshed. Blender's z is our y.
import os
import shutil
import sys
import time

import bpy

cells, frames, cache, *options = sys.argv[sys.argv.index("--") + 1:]
meshes = "--no-mesh" not in options
cells, frames = int(cells), int(frames)
shutil.rmtree(cache, ignore_errors=True)
os.makedirs(cache)

for thing in list(bpy.data.objects):
    bpy.data.objects.remove(thing)
scene = bpy.context.scene
scene.render.fps = 24
scene.frame_start, scene.frame_end = 1, frames + 1  # frame 1 is the initial state
scene.frame_set(1)
scene.gravity = (0, 0, -9.81)


def box(low, high):
    bpy.ops.mesh.primitive_cube_add(size=1, location=[(a + b) / 2 for a, b in zip(low, high)])
    thing = bpy.context.object
    thing.scale = [b - a for a, b in zip(low, high)]
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    return thing


margin = 1e-3  # so that the column touches the walls
column = box((-margin, -margin, -margin), (0.4, 1 + margin, 0.8))
flow = column.modifiers.new("fluid", "FLUID")
flow.fluid_type = "FLOW"
flow.flow_settings.flow_type = "LIQUID"
flow.flow_settings.flow_behavior = "GEOMETRY"

tank = box((0, 0, 0), (1, 1, 1))
modifier = tank.modifiers.new("fluid", "FLUID")
modifier.fluid_type = "DOMAIN"
domain = modifier.domain_settings
domain.domain_type = "LIQUID"
domain.cache_directory = cache
domain.cache_type = "MODULAR"
domain.cache_frame_start, domain.cache_frame_end = 1, frames + 1
domain.resolution_max = cells
domain.use_mesh = meshes

bpy.context.view_layer.objects.active = tank
tank.select_set(True)
start, processor = time.monotonic(), time.process_time()
bpy.ops.fluid.bake_data()
middle = time.monotonic()
if meshes:
    bpy.ops.fluid.bake_mesh()
end, processor = time.monotonic(), time.process_time() - processor
print(f"MANTAFLOW data {middle - start:.3f} mesh {end - middle:.3f} processor {processor:.3f}", flush=True)
