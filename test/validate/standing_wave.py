# Called by standing_wave.sh: HERE SCRATCH METHOD NAME...
import math
import os
import re
import sys

sys.dont_write_bytecode = True
here, scratch, method, *names = sys.argv[1:]
sys.path.append(os.path.join(here, "../program"))
import run_files

BOUND = {"uniform": 0.03, "tet": 0.02}[method]
reference = run_files.table(f"{here}/standing_wave.csv")
rows = {(l, h, m): t for l, h, m, t in zip(reference["L_m"], reference["h_m"], reference["mode"],
                                          reference["T_s"])}


def measure(times, heights, depth):
    """Period from the mean distance of zero crossings, and the share of amplitude a period takes."""
    crossings, peaks, best = [], [], 0
    for i in range(1, len(times)):
        a, b = heights[i - 1] - depth, heights[i] - depth
        best = max(best, abs(b))
        if a * b < 0:
            crossings.append(times[i - 1] + (times[i] - times[i - 1]) * a / (a - b))
            peaks.append(best)
            best = 0
    # a shift of the level moves rising and falling crossings apart: whole periods only
    whole = (len(crossings) - 1) // 2
    if whole < 1:
        return math.nan, math.nan, 0
    period = (crossings[2 * whole] - crossings[0]) / whole
    decay = 1 - (peaks[2 * whole] / peaks[2]) ** (1 / (whole - 1)) if whole > 1 else math.nan
    return period, decay, whole


print("  length  depth  mode  cells   periods      theory    measured   error   amplitude lost a period")
error = math.nan
for number, name in enumerate(names):
    text = open(f"{scratch}/{name}.lua").read()
    length, depth, mode = map(float, re.search(r"mode = ([\d.]+), ([\d.]+), (\d+)", text).groups())
    probes = run_files.table(f"{scratch}/{name}/probes.csv")
    period, decay, whole = measure(probes["time"], probes["h"], depth)
    theory = rows[length, depth, mode]
    cells = max(run_files.record(f"{scratch}/{name}")["resolution"]["cells"])
    print(f"  {length:6g} {depth:6g} {mode:5g} {cells:6d} {whole:9d} {theory:9.4f} s {period:9.4f} s "
          f"{100 * (period / theory - 1):+6.2f} % {100 * decay:10.1f} %")
    if number == 0:
        error = abs(period / theory - 1)
        enough = probes["time"][-1] >= 3 and whole >= 2
good = error <= BOUND and enough
print(f"{'ok' if good else 'FAILED'}: the first wave's period is off by {100 * error:.2f} %, "
      f"{100 * BOUND:.0f} % are allowed")
sys.exit(not good)
