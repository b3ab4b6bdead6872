#!/usr/bin/env bash
# A tank at rest, its surface between two layers of cells: for 2 s no particle may reach 2 cm/s, the
# surface written must stay flat within a tenth of a cell, and the volume what it was. Then the tank
# of scenes/rest_mixed.lua with method tet, whose cells are from 1/64 to 1/16 m along the surface:
# 1 cm/s, and flat within 5 % of the finest cell in the mean.
#   rest.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/rest.lua" <<'LUA'
scene {
  domain = { size = {1, 1, 1} },
  detail = { finest = 32 },
  frames = { count = 48, rate = 24 },
  liquid = { plane { point = {0, 0.437, 0}, normal = {0, 1, 0} } },
  probes = { pressure { name = "floor", at = {0.5, 0, 0.5} } },
}
LUA
"$program" run "$scratch/rest.lua" -o "$scratch/rest" --quiet
python3 - "$here" "$scratch/rest" <<'PY'
import sys

sys.dont_write_bytecode = True
here, run = sys.argv[1:]
sys.path.append(f"{here}/../program")
import run_files

DEPTH, SPEED, FLAT, VOLUME = 0.437, 0.02, 0.1, 0.005
stats = run_files.table(f"{run}/stats.csv")
h = run_files.record(run)["resolution"]["cell_size"]
failed = False


def report(what, found, bound, unit):
    global failed
    bad = not found <= bound
    failed |= bad
    print(f"  {what:<44} {found:10.4f} {unit:<6} {bound:g} allowed{'   FAILED' if bad else ''}")


print(f"  {int(stats['step'][-1])} steps, {stats['time'][-1]:g} s, {int(1 / h + 0.5)} cells")
speed = max(stats["max_speed"])
step = stats["max_speed"].index(speed)
report(f"fastest particle (step {step}, t = {stats['time'][step]:.2f} s)", speed, SPEED, "m/s")
for frame in (0, 12, 24, 48):
    vertices, _ = run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")
    # the caps on walls and floor are no free surface; a cell and a half from the walls on is
    top = [v[1] for v in vertices if v[1] > DEPTH / 2 and all(1.5 * h < v[a] < 1 - 1.5 * h for a in (0, 2))]
    rim = [v[1] for v in vertices if v[1] > DEPTH - h and v[4] > 0.5]
    mean = sum(top) / len(top)
    report(f"frame {frame}: unevenness", (max(top) - min(top)) / 2 / h, FLAT, "cells")
    report(f"frame {frame}: unevenness up to the walls", (max(rim) - min(rim)) / 2 / h, FLAT, "cells")
    report(f"frame {frame}: height off by", abs(mean - DEPTH) / h, FLAT, "cells")
report("volume error, at worst", 100 * max(map(abs, stats["volume_error"])), 100 * VOLUME, "%")
floor = run_files.table(f"{run}/probes.csv")["floor"][-1]
report("pressure on the floor off by", 100 * abs(floor / (1000 * 9.81 * DEPTH) - 1), 1, "%")
sys.exit(failed)
PY
"$program" run "$here/../../scenes/rest_mixed.lua" -o "$scratch/mixed" --quiet
python3 - "$here" "$scratch/mixed" <<'PY'
import math
import sys

sys.dont_write_bytecode = True
here, run = sys.argv[1:]
sys.path.append(f"{here}/../program")
import run_files

DEPTH, SPEED, FLAT, VOLUME = 0.437, 0.01, 0.05, 0.001
stats = run_files.table(f"{run}/stats.csv")
h = run_files.record(run)["resolution"]["cell_size"]
failed = False


def report(what, found, bound, unit):
    global failed
    bad = not found <= bound
    failed |= bad
    print(f"  {what:<44} {found:10.4f} {unit:<6} {bound:g} allowed{'   FAILED' if bad else ''}")


print(f"  tet, {int(stats['particles'][-1])} particles, {stats['time'][-1]:g} s")
report("fastest particle", max(stats["max_speed"]), SPEED, "m/s")
for frame in (0, 24, 48):
    vertices, _ = run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")
    top = [v[1] for v in vertices if v[1] > DEPTH / 2 and all(3 * h < v[a] < 1 - 3 * h for a in (0, 2))]
    mean = sum(top) / len(top)
    report(f"frame {frame}: unevenness, root of mean square",
           math.sqrt(sum((y - mean) ** 2 for y in top) / len(top)) / h, FLAT, "cells")
    report(f"frame {frame}: height off by", abs(mean - DEPTH) / h, FLAT, "cells")
report("volume error, at worst", 100 * max(map(abs, stats["volume_error"])), 100 * VOLUME, "%")
sys.exit(failed)
PY
