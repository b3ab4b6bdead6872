# Called by huppert.sh: HERE SCRATCH
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

print("  slump          time      theory     measured    error")
worst = 0
for kind in "plane", "round":
    for cells in "graded", "uniform":
        probes = run_files.table(f"{scratch}/{kind}_{cells}/probes.csv")
        for time in 1, 10:
            at = min(range(len(probes["time"])), key=lambda i: abs(probes["time"][i] - time))
            assert abs(probes["time"][at] - time) < 1e-6
            columns = ["front"] if kind == "plane" else ["x", "z"]
            front = sum(probes[c][at] for c in columns) / len(columns)
            error = front / THEORY[kind](time) - 1
            worst = max(worst, abs(error))
            print(f"  {kind:5s} {cells:7s} {time:4d} s {THEORY[kind](time):9.4f} m {front:9.4f} m "
                  f"{100 * error:+7.2f} %")
good = worst <= BOUND
print(f"{'ok' if good else 'FAILED'}: fronts are off by {100 * worst:.2f} % at most, "
      f"{100 * BOUND:.0f} % are allowed")
sys.exit(not good)
