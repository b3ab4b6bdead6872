#!/usr/bin/env bash
# A tank at rest, its surface between two layers of cells: for 2 s no particle may reach 2 cm/s, the
# surface written must stay flat within a tenth of a cell, and the volume what it was. Then the tank
# of scenes/rest_mixed.lua with method tet, whose cells are from 1/64 to 1/16 m along the surface:
# 1 cm/s, and flat within 5 % of the finest cell.
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
"$program" run "$here/../../scenes/rest_mixed.lua" -o "$scratch/mixed" --quiet
python3 - "$here" "$scratch/rest" "$scratch/mixed" <<'PY'
import math
import sys

sys.dont_write_bytecode = True
here, even, mixed = sys.argv[1:]
sys.path.append(f"{here}/../program")
import run_files

DEPTH = 0.437
failed = False


def report(what, found, bound, unit):
    global failed
    bad = not found <= bound
    failed |= bad
    print(f"  {what:<44} {found:10.4f} {unit:<6} {bound:g} allowed{'   FAILED' if bad else ''}")


def look(run, speed, volume):
    """Says what it is and judges what both tanks have to keep; the cell's size."""
    stats = run_files.table(f"{run}/stats.csv")
    record = run_files.record(run)
    h = record["resolution"]["cell_size"]
    print(f"  {record['method']}, {int(1 / h + 0.5)} cells, {int(stats['particles'][-1])} particles, "
          f"{int(stats['step'][-1])} steps, {stats['time'][-1]:g} s")
    fastest = max(stats["max_speed"])
    step = stats["max_speed"].index(fastest)
    report(f"fastest particle (step {step}, t = {stats['time'][step]:.2f} s)", fastest, speed, "m/s")
    report("volume error, at worst", 100 * max(map(abs, stats["volume_error"])), 100 * volume, "%")
    return h


def top_of(run, frame, rim):
    """Heights of the free surface from `rim` off the walls on, their mean, and all vertices: the caps
    on walls and floor are no free surface."""
    vertices, _ = run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")
    top = [v[1] for v in vertices if v[1] > DEPTH / 2 and all(rim < v[a] < 1 - rim for a in (0, 2))]
    return top, sum(top) / len(top), vertices


h = look(even, 0.02, 0.005)
for frame in (0, 12, 24, 48):
    top, mean, vertices = top_of(even, frame, 1.5 * h)
    rim = [v[1] for v in vertices if v[1] > DEPTH - h and v[4] > 0.5]
    report(f"frame {frame}: unevenness", (max(top) - min(top)) / 2 / h, 0.1, "cells")
    report(f"frame {frame}: unevenness up to the walls", (max(rim) - min(rim)) / 2 / h, 0.1, "cells")
    report(f"frame {frame}: height off by", abs(mean - DEPTH) / h, 0.1, "cells")
floor = run_files.table(f"{even}/probes.csv")["floor"][-1]
report("pressure on the floor off by", 100 * abs(floor / (1000 * 9.81 * DEPTH) - 1), 1, "%")

h = look(mixed, 0.01, 0.001)
for frame in (0, 24, 48):
    top, mean, _ = top_of(mixed, frame, 3 * h)
    report(f"frame {frame}: unevenness, root of mean square",
           math.sqrt(sum((y - mean) ** 2 for y in top) / len(top)) / h, 0.01, "cells")
    report(f"frame {frame}: unevenness, at most", max(abs(y - mean) for y in top) / h, 0.05, "cells")
    report(f"frame {frame}: height off by", abs(mean - DEPTH) / h, 0.05, "cells")
sys.exit(failed)
PY
