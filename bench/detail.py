#!/usr/bin/env python3
"""What detail at the surface costs: `warp` beside `uniform` with twice the cells along a side
([Ibayashi18], table 1).

  bench/detail.py PROGRAM [--scene bench/drop.lua] [--cells 48] [--frames 16] [--repeat 2]
                  [--set key=value ...]

Runs take turns, on one thread, without output; of `repeat` runs the best counts. Prints processor
time of the steps (the process's, less that of a run of no frames), memory at most, and how wide
`warp`'s cells are across the surface, over those of a regular grid: the median over faces of liquid
cells to the air, volume over area.
"""
import argparse
import array
import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SIDES = [(0, 3, 7, 4), (1, 2, 6, 5), (0, 1, 5, 4), (3, 2, 6, 7), (0, 1, 2, 3), (4, 5, 6, 7)]


def run(program, scene, method, cells, frames, sets, folder):
    """Processor seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    words = [program, "run", scene, "-o", folder, "--quiet", "--method", method, "--threads", "1",
             "--frames", str(frames), "--set", f"detail.finest={cells}", "--set", f"detail.surface={cells}"]
    for one in sets:
        words += ["--set", one]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)}: status {process.returncode}\n{said[-1000:]}")
    return usage.ru_utime + usage.ru_stime


def read_hexahedra(path):
    """Corners of the cells, and the cells."""
    with open(path, "rb") as file:
        data = file.read()
    head, start = data[:data.index(b"<AppendedData")].decode(), data.index(b"_", data.index(b"<AppendedData")) + 1
    found = {}
    for name, kind in (("Points", "f"), ("connectivity", "i")):
        offset = start + int(re.search(rf'Name="{name}"[^>]* offset="(\d+)"', head).group(1))
        count = int.from_bytes(data[offset:offset + 8], "little")
        found[name] = array.array(kind, data[offset + 8:offset + 8 + count])
    x, c = found["Points"], found["connectivity"]
    return [x[i:i + 3] for i in range(0, len(x), 3)], [tuple(c[i:i + 8]) for i in range(0, len(c), 8)]


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def widths(folder, frame, size):
    points, cells = read_hexahedra(f"{folder}/frames/{frame:04d}/mesh.vtu")
    count = {}
    for cell in cells:
        for side in SIDES:
            key = tuple(sorted(cell[i] for i in side))
            count[key] = count.get(key, 0) + 1
    found = []
    for cell in cells:
        corner = [points[i] for i in cell]
        along = [[sum(corner[i][a] for i in high) / 4 - sum(corner[i][a] for i in low) / 4 for a in range(3)]
                 for low, high in zip(SIDES[::2], SIDES[1::2])]
        volume = abs(sum(p * q for p, q in zip(along[0], cross(along[1], along[2]))))
        for side in SIDES:
            at = [corner[i] for i in side]
            if count[tuple(sorted(cell[i] for i in side))] > 1:
                continue
            if any(all(abs(p[a] - wall) < 1e-4 * size[a] for p in at) for a in range(3) for wall in (0, size[a])):
                continue
            diagonals = [[q - p for p, q in zip(at[i], at[i + 2])] for i in (0, 1)]
            area = sum(v * v for v in cross(*diagonals)) ** 0.5 / 2
            found.append(volume / area)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--scene", default=f"{os.path.dirname(os.path.abspath(__file__))}/drop.lua")
    parser.add_argument("--cells", type=int, default=48)
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="undine_detail_")
    quiet = args.set + ["output.surface=false", "output.particles=false"]
    kinds = [("warp", args.cells), ("uniform", 2 * args.cells)]
    best, memory, steps = {}, {}, {}
    for _ in range(args.repeat):
        for kind in kinds:
            idle = run(args.program, args.scene, *kind, 0, quiet, folder)
            used = run(args.program, args.scene, *kind, args.frames, quiet, folder) - idle
            best[kind] = min(used, best.get(kind, used))
            with open(f"{folder}/run.json") as file:
                memory[kind] = json.load(file)["bytes_peak"]
            with open(f"{folder}/stats.csv", newline="") as file:
                steps[kind] = sum(1 for row in csv.DictReader(file) if float(row["dt"]) > 0)
    run(args.program, args.scene, *kinds[0], args.frames, quiet + ["output.mesh=true"], folder)
    with open(f"{folder}/run.json") as file:
        resolution = json.load(file)["resolution"]
    size = [n * resolution["cell_size"] for n in resolution["cells"]]
    found = [w for frame in range(args.frames + 1) for w in widths(folder, frame, size)]
    for kind in kinds:
        print(f"{kind[0]:8} {kind[1]:4} cells  {best[kind]:7.2f} s  {steps[kind]:4} steps  "
              f"{1e3 * best[kind] / steps[kind]:7.1f} ms a step  {memory[kind] / 1e6:7.1f} MB")
    warp, uniform = kinds
    print(f"times faster: {best[uniform] / best[warp]:.2f}, a step "
          f"{best[uniform] / steps[uniform] * steps[warp] / best[warp]:.2f}; memory {memory[uniform] / memory[warp]:.2f}")
    print(f"cells across the surface: {statistics.median(found) / resolution['cell_size']:.2f} of a regular grid's")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
