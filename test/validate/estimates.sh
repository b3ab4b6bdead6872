#!/usr/bin/env bash
# What `undine check` foretells against what the run then takes: particles at the start and at the
# most, and memory, within 20 %; with tet, whose splash is only rehearsed, within 40 %.
#   estimates.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# foretell NAME SCENE [OPTION...]
foretell() {
    local name=$1 scene="$here/../../$2.lua"
    shift 2
    "$program" check "$scene" "$@" >"$scratch/$name.txt"
    "$program" run "$scene" -o "$scratch/$name" --quiet "$@"
}
foretell box32 bench/dam --set detail.finest=32 --set detail.surface=64 --set frames.count=48
foretell box64 bench/dam --set detail.finest=64 --set detail.surface=128 --set frames.count=36
foretell pillar scenes/dam --set detail.finest=64
foretell pour scenes/pour --set detail.finest=48
foretell stir scenes/stir --set detail.finest=40 --set frames.count=24
foretell tet scenes/dam --method tet --set detail.finest=64 --set frames.count=36
python3 - "$here" "$scratch" box32 box64 pillar pour stir tet <<'PY'
import re
import sys

sys.dont_write_bytecode = True
here, scratch, *names = sys.argv[1:]
sys.path.append(f"{here}/../program")
import run_files

BOUND, BOUND_ADAPTIVE = 0.2, 0.4
failed = False
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1}
print("             foretold       found   error")


def row(name, what, foretold, found, bound):
    global failed
    bad = bound and abs(foretold / found - 1) > bound
    failed |= bool(bad)
    print(f"  {name:<6} {foretold:12.5g} {found:11.5g} {100 * (foretold / found - 1):+6.1f} %  {what}"
          f"{'   FAILED' if bad else ''}")


for name in names:
    text = open(f"{scratch}/{name}.txt").read()
    first, last = re.search(r"particles   about ([\d,]+)(?: at first, ([\d,]+) at last)?", text).groups()
    number, unit = re.search(r"memory      about ([\d.]+) (\w+)", text).groups()
    stats = run_files.table(f"{scratch}/{name}/stats.csv")
    record = run_files.record(f"{scratch}/{name}")
    peak = record["bytes_peak"]
    bound = BOUND if record["method"] == "uniform" else BOUND_ADAPTIVE
    particles = int(first.replace(",", ""))
    row(name, "particles at first", particles, stats["particles"][0], bound)
    drained = "drain" in open(f"{scratch}/{name}/scene.lua").read()
    # what a drain will take cannot be foretold: the estimate is an upper bound there
    row(name, "particles at most", int((last or first).replace(",", "")), max(stats["particles"]),
        None if drained else bound)
    row(name, "memory, bytes", float(number) * UNITS[unit], peak, bound)
    found = re.search(r"time        about ([\d.]+) (us|ms|s) a frame", text)
    if found:
        row(name, "seconds a frame (not judged: the machine may be busy)",
            float(found[1]) * TIMES[found[2]], record["seconds"] / record["frames"]["finished"], None)
print("FAILED" if failed else f"ok: within {100 * BOUND:.0f} %, tet {100 * BOUND_ADAPTIVE:.0f} %")
sys.exit(failed)
PY
