# Checks that a finished run is valid: all numbers in the tables are finite, the volume is right, no
# particle is outside the domain or in a solid.
#   python3 sound.py DIR X,Y,Z [--solid 'distance of x y z t'] [--squeezed] [--least N]
#                    [--still SPEED]
# X,Y,Z: size of the domain; squeezed: particles that a solid presses against a side of the domain
# may be in it; least: fewest particles in any frame; still: no particle is ever faster.
import argparse
import math
import os
import sys

import run_files

parser = argparse.ArgumentParser()
parser.add_argument("directory")
parser.add_argument("size")
parser.add_argument("--solid", action="append", default=[])
parser.add_argument("--squeezed", action="store_true")
parser.add_argument("--least", type=int, default=0)
parser.add_argument("--still", type=float)
options = parser.parse_args()
size = [float(s) for s in options.size.split(",")]
solids = [eval("lambda x, y, z, t: " + text, vars(math)) for text in options.solid]
problems = []


def check(good, what):
    if not good:
        problems.append(what)


record = run_files.record(options.directory)
check(record["status"] == "done", f"status {record['status']}")
rate, count = record["frames"]["rate"], record["frames"]["finished"]
h = record["resolution"]["cell_size"]

stats = run_files.table(f"{options.directory}/stats.csv")
for name, values in stats.items():
    bad = [i for i, value in enumerate(values) if not math.isfinite(value)]
    check(not bad, f"stats.csv: {name} of step {bad[:1]} is {values[bad[0]] if bad else 0}")
check(min(stats["volume"]) >= 0, "a negative volume")
if options.still is not None:
    worst = max(stats["max_speed"])
    check(worst <= options.still, f"it should stay at rest, but moves at {worst:.3g} m/s")

# Files are in single precision: a hair of the domain's size is no fault.
hair = 1e-6 * max(size)
for frame in range(count + 1):
    found = run_files.particles(f"{options.directory}/frames/{frame:04d}/particles.vtp")
    points = found["Points"]
    check(len(points) >= options.least, f"frame {frame}: only {len(points)} particles")
    check(all(math.isfinite(c) for v in found["velocity"] for c in v), f"frame {frame}: velocity")
    outside = [p for p in points
               if not all(-hair <= c <= s + hair for c, s in zip(p, size))]
    check(not outside, f"frame {frame}: {len(outside)} particles outside, the first at {outside[:1]}")
    if options.squeezed: # collisions end a hundredth of a cell before a side
        points = [p for p in points if all(0.02 * h < c < s - 0.02 * h for c, s in zip(p, size))]
    for number, solid in enumerate(solids):
        inside = [(solid(*p, frame / rate), p) for p in points if solid(*p, frame / rate) < -hair]
        check(not inside, f"frame {frame}: {len(inside)} particles in solid {number}, the deepest "
                          f"{-min(inside)[0] / h if inside else 0:.3g} cells, at {min(inside)[1] if inside else 0}")
    vertices, _ = run_files.surface(f"{options.directory}/frames/{frame:04d}/surface.ply")
    check(all(math.isfinite(c) for v in vertices for c in v), f"frame {frame}: surface not finite")
    check(all(-hair <= c <= s + hair for v in vertices for c, s in zip(v, size)),
          f"frame {frame}: surface outside the domain")

name = os.path.basename(options.directory)
for problem in problems[:6]:
    print(f"FAILED: {name}: {problem}")
sys.exit(bool(problems))
