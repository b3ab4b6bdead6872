#!/usr/bin/env python3
"""Processor time of a step over its particles and over its liquid cells, methods side by side.

    bench/particle.py PROGRAM [--scene bench/dam.lua] [--cells 48] [--frames 9] [--repeat 2]
                      [--methods uniform octree] [--bound 2]

One thread, user time, no frames written; runs of the methods alternate, and of `repeat` the best
counts. What a run of no frames takes is taken off: the start of an adaptive method is as long as
several steps and is printed apart. Adaptive methods have fewer particles and cells by design, so
both quotients are printed, and the whole time beside them. With a bound the program fails if a
method takes more times as long for a particle and step as the first one.
"""
import argparse
import csv
import resource
import subprocess
import sys
import tempfile


def user_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--scene", default="bench/dam.lua")
    parser.add_argument("--cells", default="48")
    parser.add_argument("--frames", default="9")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--bound", type=float, default=float("inf"))
    parser.add_argument("--methods", nargs="+", default=["uniform", "octree"])
    args = parser.parse_args()
    best, start, counts = {}, {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(args.repeat):
            for method in args.methods:
                run = f"{scratch}/{method}"
                command = [args.program, "run", args.scene, "-o", run, "--method", method, "--threads", "1",
                           "--quiet", "--set", f"detail.finest={args.cells}",
                           "--set", "output.surface=false", "--set", "output.particles=false", "--frames"]
                before = user_time(command + ["0"])
                time = user_time(command + [args.frames]) - before
                start[method] = min(start.get(method, before), before)
                best[method] = min(best.get(method, time), time)
                with open(f"{run}/stats.csv", newline="") as file:
                    rows = [r for r in csv.DictReader(file) if int(r["step"]) > 0]
                counts[method] = [len(rows)] + [sum(float(r[c]) for r in rows) for c in ("particles", "cells")]
    first, missed = args.methods[0], []
    for method in args.methods:
        steps, particles, cells = counts[method]
        each, ratio = best[method] / particles, best[first] / counts[first][1]
        print(f"{method}: {best[method]:.2f} s, {steps} steps, start {start[method]:.2f} s; {particles / steps:,.0f} particles, "
              f"{1e6 * each:.2f} us each and step ({each / ratio:.2f} of {first}); "
              f"{cells / steps:,.0f} liquid cells, {1e6 * best[method] / cells:.2f} us")
        if each > args.bound * ratio:
            missed.append(method)
    if missed:
        sys.exit(f"more than {args.bound:g} times the time of {first}: {', '.join(missed)}")


if __name__ == "__main__":
    main()
