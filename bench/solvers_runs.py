#!/usr/bin/env python3
"""What a solver makes of whole runs: the first steps of the dam break, solver.kind by solver.kind.

  bench/solvers_runs.py PROGRAM [--cells 128 256] [--methods tet uniform] [--kinds ic auto]
                        [--frames 8] [--rate 24] [--threads 2] [--folder out/bench/solvers_runs]

Seconds of a step on average, all of it and its pressure stage: assembly, solve and projection. Each
run is made once. Adds to FOLDER/runs.md row by row.
"""
import argparse
import csv
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = ("| method | finest | nodes | steps | solver | iterations | pressure | step |\n"
        "|---|---|---|---|---|---|---|---|\n")


def run(given, method, cells, kind):
    folder = f"{given.folder}/run"
    shutil.rmtree(folder, ignore_errors=True)
    command = [given.program, "run", f"{HERE}/dam.lua", "--quiet", "-o", folder, "--method", method,
               "--frames", str(given.frames), "--threads", str(given.threads), "--set",
               f"detail.finest={cells}", "--set", f"frames.rate={given.rate}", "--set",
               f'solver.kind="{kind}"', "--set", "output.surface=false", "--set",
               "output.particles=false"]
    status = subprocess.run(command).returncode
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    with open(f"{folder}/stats.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) > 0]
    shutil.rmtree(folder)
    mean = lambda key: sum(float(row[key]) for row in rows) / len(rows)
    return (f"| `{method}` | {cells} | {mean('nodes'):,.0f} | {len(rows)} | `{kind}` "
            f"| {mean('pressure_iterations'):.0f} | {mean('seconds_pressure'):.2f} "
            f"| {mean('seconds'):.2f} |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cells", nargs="*", type=int, default=[128, 256])
    parser.add_argument("--methods", nargs="*", default=["tet", "uniform"])
    parser.add_argument("--kinds", nargs="*", default=["ic", "auto"])
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--rate", type=float, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="out/bench/solvers_runs")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    path = f"{given.folder}/runs.md"
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write(HEAD)
    print(HEAD, end="")
    for method in given.methods:
        for cells in given.cells:
            for kind in given.kinds:
                row = run(given, method, cells, kind)
                print(row, end="", flush=True)
                with open(path, "a") as file:
                    file.write(row)


if __name__ == "__main__":
    main()
