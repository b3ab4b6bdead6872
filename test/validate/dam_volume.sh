#!/usr/bin/env bash
# The dam break of scenes/dam.lua for 3 s at 64 cells: the liquid's volume must stay within 1 % of
# what the ledger expects, at every step.
#   dam_volume.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$program" run "$here/../../scenes/dam.lua" -o "$scratch/dam" --quiet --frames 72 \
    --set detail.finest=64 --set output.surface=false --set output.particles=false
python3 - "$here" "$scratch/dam" <<'PY'
import sys

sys.dont_write_bytecode = True
here, run = sys.argv[1:]
sys.path.append(f"{here}/../program")
import run_files

BOUND = 0.01
stats = run_files.table(f"{run}/stats.csv")
assert stats["time"][-1] > 2.999
print("      time   volume error   ballistic of particles")
last = -1
for i, t in enumerate(stats["time"]):
    if int(t * 4 + 1e-9) != last:
        last = int(t * 4 + 1e-9)
        print(f"  {t:6.2f} s {100 * stats['volume_error'][i]:+12.3f} % "
              f"{100 * stats['ballistic'][i] / stats['particles'][i]:9.2f} %")
sizes = [abs(e) for e in stats["volume_error"]]
worst = sizes.index(max(sizes))
good = max(sizes) < BOUND
print(f"{'ok' if good else 'FAILED'}: at worst {100 * stats['volume_error'][worst]:+.3f} % at "
      f"{stats['time'][worst]:.2f} s (step {worst}), {100 * sum(sizes) / len(sizes):.3f} % in the mean; "
      f"{100 * BOUND:g} % are allowed")
sys.exit(not good)
PY
