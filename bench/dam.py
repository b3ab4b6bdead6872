#!/usr/bin/env python3
"""Times the dam break: our methods, and Mantaflow's in the same go, since only ratios on one machine
count.

  bench/dam.py PROGRAM [--cells 64 128] [--frames 24 8] [--methods uniform tet] [--repeat 2]
               [--threads 2] [--no-mantaflow] [--no-surface] [--set solver.band=4]

With --no-surface neither program makes a surface. Processor seconds are those of all threads: on a
busy machine their ratios hold, those of seconds do not.

Of `repeat` runs the best time counts, per stage and in all. Writes out/bench/dam.csv: a row per
program and size, then a row per stage. Peak memory is the process's largest resident set; of
Mantaflow's, what an idle Blender takes is told apart.
"""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time

RATE = 24
HERE = os.path.dirname(os.path.abspath(__file__))


def measure(command):
    """Wall seconds, processor seconds, peak resident bytes and output of a command."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {process.returncode}\n{output[-2000:]}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output


def run_ours(program, method, cells, frames, options, folder):
    shutil.rmtree(folder, ignore_errors=True)
    sets = [f"detail.finest={cells}", f"detail.surface={cells}", *options.set]
    if options.no_surface:
        sets.append("output.surface=false")
    words = [word for each in sets for word in ("--set", each)]
    seconds, processor, peak, _ = measure([program, "run", f"{HERE}/dam.lua", "-o", folder, "--quiet",
                                           "--method", method, "--threads", str(options.threads),
                                           "--frames", str(frames), *words])
    with open(f"{folder}/stats.csv") as file:
        rows = list(csv.DictReader(file))
    steps = [row for row in rows if float(row["dt"]) > 0]
    with open(f"{folder}/run.json") as file:
        stages = json.load(file)["stages"]
    return {
        "seconds": seconds,
        "processor": processor,
        "peak_bytes": peak,
        "substeps": len(steps),
        "particles": max(int(row["particles"]) for row in rows),
        "particle_substeps": sum(int(row["particles"]) for row in steps),
        "stepping": sum(float(row["seconds"]) for row in steps),
        "stages": stages,
    }


def run_mantaflow(cells, frames, options, folder):
    _, _, peak, output = measure(["blender", "-b", "--factory-startup", "-t", str(options.threads), "-P",
                                  f"{HERE}/mantaflow_dam.py", "--", str(cells), str(frames), folder,
                                  *(["--no-mesh"] if options.no_surface else [])])
    found = re.search(r"MANTAFLOW data ([\d.]+) mesh ([\d.]+) processor ([\d.]+)", output)
    if not found:
        sys.exit("Mantaflow did not bake:\n" + output[-2000:])
    data, mesh, processor = map(float, found.groups())
    return {"seconds": data + mesh, "processor": processor, "peak_bytes": peak, "stages": {"data": data, "mesh": mesh}}


def best_of(runs):
    """The fastest run, with each stage's own best."""
    best = min(runs, key=lambda run: run["seconds"])
    best["processor"] = min(run["processor"] for run in runs)
    best["stages"] = {name: min(run["stages"][name] for run in runs) for name in best["stages"]}
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cells", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--frames", type=int, nargs="+", default=[24, 8])
    parser.add_argument("--methods", nargs="+", default=["uniform", "tet"])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--no-mantaflow", action="store_true")
    parser.add_argument("--no-surface", action="store_true")
    parser.add_argument("--set", nargs="+", default=[])
    options = parser.parse_args()
    with_mantaflow = not options.no_mantaflow and shutil.which("blender")
    idle = measure(["blender", "-b", "--factory-startup"])[2] if with_mantaflow else 0
    folder = "out/bench"
    os.makedirs(folder, exist_ok=True)
    table = []
    for cells, frames in zip(options.cells, options.frames):
        ours, theirs = {method: [] for method in options.methods}, []
        for _ in range(options.repeat):
            for method in options.methods:
                ours[method].append(run_ours(options.program, method, cells, frames, options,
                                             f"{folder}/dam{cells}-{method}"))
            if with_mantaflow:
                theirs.append(run_mantaflow(cells, frames, options, f"{folder}/manta{cells}"))
        simulated = frames / RATE
        results = []
        print(f"{cells} cells, {frames} frames, {options.threads} threads, best of {options.repeat}")
        for method in options.methods:
            best = best_of(ours[method])
            results.append((method, best))
            print(f"  {method:10} {best['seconds'] / simulated:8.2f} s per simulated second, "
                  f"{best['peak_bytes'] / 1e6:6.0f} MB, {best['substeps']} substeps, "
                  f"{best['particles']:,} particles at most, "
                  f"{best['particle_substeps'] / best['stepping'] / 1e6:.2f} M particle-substeps/s")
            for name, seconds in best["stages"].items():
                print(f"    {name:16} {seconds:8.2f} s  {100 * seconds / best['seconds']:5.1f} %")
            rest = best["seconds"] - sum(best["stages"].values())
            print(f"    {'(the rest)':16} {rest:8.2f} s  {100 * rest / best['seconds']:5.1f} %")
        if theirs:
            other = best_of(theirs)
            print(f"  mantaflow  {other['seconds'] / simulated:8.2f} s per simulated second, "
                  f"{other['peak_bytes'] / 1e6:6.0f} MB, {idle / 1e6:.0f} MB of it idle (data {other['stages']['data']:.2f} s, "
                  f"mesh {other['stages']['mesh']:.2f} s)")
            for method, best in results:
                print(f"  {method:10} {best['seconds'] / other['seconds']:8.2f} of Mantaflow's time "
                      f"({best['processor'] / other['processor']:.2f} of its processor time), "
                      f"{best['peak_bytes'] / (other['peak_bytes'] - idle):.2f} of its memory above idle")
            results.append(("mantaflow", other))
        first = results[0][1]
        for method, best in results[1:len(options.methods)]:
            print(f"  {method:10} {best['seconds'] / first['seconds']:8.2f} of {options.methods[0]}'s time, "
                  f"{best['peak_bytes'] / first['peak_bytes']:.2f} of its memory")
        for name, run in results:
            row = [name, cells, options.threads, frames]
            table.append(row + ["all", run["seconds"], run["seconds"] / simulated, run["peak_bytes"],
                                run.get("substeps", ""), run.get("particles", "")])
            for stage, seconds in run["stages"].items():
                table.append(row + [stage, seconds, seconds / simulated, "", "", ""])
    with open(f"{folder}/dam.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow("program cells threads frames stage seconds seconds_per_simulated_second "
                        "peak_bytes substeps particles".split())
        writer.writerows(table)
    print(f"written to {folder}/dam.csv")
    if not with_mantaflow:
        print("without Mantaflow: blender is not installed, or was not wanted")


main()
