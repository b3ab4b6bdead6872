#!/usr/bin/env bash
# test-labels: once slow
# Plates far thinner than a cell, upright, tilted and fast, divide a tank: nothing gets through.
#   plates.sh PROGRAM
python3 - "$(realpath "$1")" "$(realpath "$(dirname "$0")")" <<'PY'
import math
import os
import subprocess
import sys
import tempfile

program, here = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.append(here)
import run_files

SCENE = """scene { method = "%s", domain = { size = {1, 0.6, 0.4} },
  detail = { coarsest = 4, finest = 16, surface = 16 }, frames = { count = 5, rate = 24 },
  liquid = { box { min = {%s, 0, 0}, max = {%s, %s, 0.4} }, velocity = {%s, 0, 0} },
  solids = { %s }, output = { surface = false } }"""
PLATE = "box { min = {0.5, -1, -1}, max = {%s, 2, 2} }"
TILT = math.radians(30)

# name, liquid from and to, its height and speed, the solid, how far beyond the plate a place is at a time
CASES = [
    ("a fifth of a cell", 0, 0.45, 0.5, 4, PLATE % 0.508, lambda x, y, t: x - 0.508),
    ("a fiftieth", 0, 0.45, 0.5, 4, PLATE % 0.5008, lambda x, y, t: x - 0.5008),
    ("tilted", 0, 0.3, 0.5, 4,
     "move { box { min = {-0.002, -2, -1}, max = {0.002, 2, 2} }, rotate = {0, 0, -30}, by = {0.5, 0.1, 0} }",
     lambda x, y, t: (x - 0.5) * math.cos(TILT) - (y - 0.1) * math.sin(TILT) - 0.002),
    ("six metres a second", 0.2, 1, 0.3, 0,
     "solid { box { min = {0.1, -1, -1}, max = {0.104, 2, 2} }, pose = function(t)"
     " return { by = {math.min(0.4, 6 * t), 0, 0} } end }",
     lambda x, y, t: 0.1 + min(0.4, 6 * t) - x),
]
failed = total = 0
with tempfile.TemporaryDirectory() as scratch:
    for method in run_files.methods(program):
        for name, low, high, top, speed, solid, beyond in CASES:
            with open(f"{scratch}/scene.lua", "w") as file:
                file.write(SCENE % (method, low, high, top, speed, solid))
            subprocess.run([program, "run", f"{scratch}/scene.lua", "-o", f"{scratch}/out", "--quiet"],
                           check=True, stderr=subprocess.DEVNULL)
            if not os.path.exists(f"{scratch}/out/frames/0000/particles.vtp"):
                break  # a method without particles
            worst = 0
            for frame in range(6):
                places = run_files.particles(f"{scratch}/out/frames/{frame:04d}/particles.vtp")["Points"]
                worst = max(worst, sum(beyond(x, y, frame / 24) > 1e-5 for x, y, _ in places))
                total += len(places)
            if worst or len(places) < 300:
                print(f"FAILED: {method}, {name}: {worst} of {len(places)} particles got through")
                failed = 1
print(f"plates: {total} places of particles, {'some' if failed else 'none'} beyond a plate")
sys.exit(failed)
PY
