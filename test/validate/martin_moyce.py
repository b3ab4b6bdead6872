# Called by martin_moyce.sh: HERE METHOD RUN RUN_FINE
import math
import os
import sys

sys.dont_write_bytecode = True
here, method, *runs = sys.argv[1:]
sys.path.append(os.path.join(here, "../program"))
import run_files

A, G, BOUND = 0.05715, 9.81, {"uniform": 0.10, "tet": 0.07}[method]


def at(times, values, t):
    for i in range(1, len(times)):
        if times[i] >= t:
            share = (t - times[i - 1]) / (times[i] - times[i - 1])
            return values[i - 1] + share * (values[i] - values[i - 1])
    return math.nan


def compare(title, reference, scale, probes, column, unit):
    """Mean and worst relative error of each run; time is t sqrt(scale)."""
    table = run_files.table(f"{here}/{reference}")
    times, wanted = table.values()
    print(title)
    print("    time   measured " + "".join(f"{name:>18}" for name in ("12 cells a width", "24 cells")[:len(probes)]))
    errors = [[] for _ in probes]
    for time, value in zip(times, wanted):
        line = f"  {time:6.2f} {value:10.2f} "
        for run, found in enumerate(probes):
            ours = at(found["time"], found[column], time / math.sqrt(scale)) / unit
            errors[run].append(ours / value - 1)
            line += f"{ours:8.3f} {100 * errors[run][-1]:+7.1f} %"
        print(line)
    known = [[e for e in run if not math.isnan(e)] for run in errors]
    means = [sum(map(abs, run)) / len(run) for run in known]
    print("  mean " + " " * 12 + "".join(f"{100 * mean:16.1f} %" for mean in means))
    return means


probes = [run_files.table(f"{run}/probes.csv") for run in runs]
front = compare("front, x / a, against t sqrt(2 g / a)", "martin_moyce_front.csv", 2 * G / A,
                probes, "front", A)
compare("height at the wall, h / 2a, against t sqrt(g / a)", "martin_moyce_height.csv", G / A,
        probes[:1], "height", 2 * A)
good = front[0] <= BOUND
print(f"{'ok' if good else 'FAILED'}: the front's mean error is {100 * front[0]:.1f} %, "
      f"{100 * BOUND:.0f} % are allowed; {100 * front[1]:.1f} % with twice the cells")
sys.exit(not good)
