#!/usr/bin/env python3
"""Compares two builds of Undine stage by stage: has a change made a step slower?

    stages.py BEFORE AFTER [--method uniform tet ...] [--scene FILE] [--cells N] [--frames N]
              [--set KEY=VALUE ...] [--set-after KEY=VALUE ...] [--repeat N]

BEFORE and AFTER are two `undine` programs. Both run the same scene on one thread, in turn, REPEAT
times; each stage counts with its fastest run. Prints milliseconds a step of every stage of at least
2 % of a step and AFTER's over BEFORE's. --set-after is for what BEFORE does not know yet
(solver.sheets=0).
"""
import argparse
import csv
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent


def run(program, args, method, extra, folder):
    """The seconds a step of each stage, and of all."""
    command = [program, "run", args.scene, "-o", folder, "--method", method, "--threads", "1",
               "--frames", str(args.frames), "--quiet", "--set", f"detail.finest={args.cells}",
               "--set", f"detail.surface={args.cells}"]
    for setting in extra:
        command += ["--set", setting]
    subprocess.run(command, check=True)
    with open(f"{folder}/stats.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) > 0]
    return {name: sum(float(row[name] or 0) for row in rows) / len(rows)
            for name in rows[0] if name.startswith("seconds")}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--method", nargs="+", default=["uniform", "tet"])
    parser.add_argument("--scene", default=str(HERE / "dam.lua"))
    parser.add_argument("--cells", type=int, default=48)
    parser.add_argument("--frames", type=int, default=6)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--set-after", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    for method in args.method:
        best = ({}, {})
        for _ in range(args.repeat):
            for which, program in enumerate((args.before, args.after)):
                extra = args.set + (args.set_after if which else [])
                with tempfile.TemporaryDirectory() as folder:
                    times = run(program, args, method, extra, folder + "/run")
                for name, seconds in times.items():
                    best[which][name] = min(seconds, best[which].get(name, seconds))
        print(f"{method:<14} {'before':>9} {'after':>9}   after / before")
        for name in sorted(best[1], key=lambda n: -best[1][n]):
            before, after = best[0].get(name, 0.0), best[1][name]
            if max(before, after) < 0.02 * best[1]["seconds"]:
                continue
            ratio = f"{after / before:14.3f}" if before > 0 else "           new"
            label = "all" if name == "seconds" else name[len("seconds_"):]
            print(f"  {label:<12} {1e3 * before:9.2f} {1e3 * after:9.2f} {ratio}")


if __name__ == "__main__":
    main()
