# Called by huppert.sh: HERE SCRATCH
import math
import os
import sys

sys.dont_write_bytecode = True
here, scratch = sys.argv[1:]
sys.path.append(os.path.join(here, "../program"))
import run_files

BOUND = 0.05
G, NU, A, V = 9.81, 0.01, 0.01, 0.001
THEORY = {"plane": lambda t: 1.4112 * (G * A**3 / (3 * NU)) ** 0.2 * t**0.2,
          "round": lambda t: 0.8939 * (G * V**3 / (3 * NU)) ** 0.125 * t**0.125}


def footprint(path):
    """Area of the floor that is wet, m2: of the surface's triangles on it."""
    vertices, faces = run_files.surface(path)
    area = 0
    for triangle in faces:
        p, q, r = (vertices[i] for i in triangle)
        if max(p[1], q[1], r[1]) < 1e-4:
            area += abs((q[0] - p[0]) * (r[2] - p[2]) - (q[2] - p[2]) * (r[0] - p[0])) / 2
    return area


# The probe's front is that of liquid two cells high, up to 5 % behind.
print("  slump          time      theory     measured    error    probe")
worst = 0
for kind in "plane", "round":
    for cells in "graded", "uniform":
        probes = run_files.table(f"{scratch}/{kind}_{cells}/probes.csv")
        for time in 1, 10:
            at = min(range(len(probes["time"])), key=lambda i: abs(probes["time"][i] - time))
            assert abs(probes["time"][at] - time) < 1e-6
            columns = ["front"] if kind == "plane" else ["x", "z"]
            probe = sum(probes[c][at] for c in columns) / len(columns)
            area = footprint(f"{scratch}/{kind}_{cells}/frames/{time:04d}/surface.ply")
            front = area / 0.04 if kind == "plane" else math.sqrt(4 * area / math.pi)
            error = front / THEORY[kind](time) - 1
            worst = max(worst, abs(error))
            print(f"  {kind:5s} {cells:7s} {time:4d} s {THEORY[kind](time):9.4f} m {front:9.4f} m "
                  f"{100 * error:+7.2f} % {probe:8.4f} m")
good = worst <= BOUND
print(f"{'ok' if good else 'FAILED'}: fronts are off by {100 * worst:.2f} % at most, "
      f"{100 * BOUND:.0f} % are allowed")
sys.exit(not good)
