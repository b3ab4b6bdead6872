#!/usr/bin/env bash
# A dam break for 3 s, in an empty box at 64 cells and around the pillar of scenes/dam.lua: the
# liquid's volume must stay within 1 % of what the ledger expects, at every step.
#   dam_volume.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for method in uniform tet; do
    for name in bench scenes; do
        "$program" run "$here/../../$name/dam.lua" -o "$scratch/$method-$name" --quiet --frames 72 \
            --method $method --set output.surface=false --set output.particles=false
    done
done
python3 - "$here" "$scratch"/{uniform,tet}-{bench,scenes} <<'PY'
import sys

sys.dont_write_bytecode = True
here, *runs = sys.argv[1:]
sys.path.append(f"{here}/../program")
import run_files

BOUND = 0.01
failed = False
names = [f"{method}, {what}" for method in ("uniform", "tet") for what in ("empty box", "pillar")]
for run, name in zip(runs, names):
    stats = run_files.table(f"{run}/stats.csv")
    assert stats["time"][-1] > 2.999
    print(f"  {name}: time   volume error   ballistic of particles")
    last = -1
    for i, t in enumerate(stats["time"]):
        if int(t * 4 + 1e-9) != last:
            last = int(t * 4 + 1e-9)
            print(f"  {t:6.2f} s {100 * stats['volume_error'][i]:+12.3f} % "
                  f"{100 * stats['ballistic'][i] / stats['particles'][i]:9.2f} %")
    sizes = [abs(e) for e in stats["volume_error"]]
    worst = sizes.index(max(sizes))
    good = max(sizes) < BOUND
    failed |= not good
    print(f"{'ok' if good else 'FAILED'}: at worst {100 * stats['volume_error'][worst]:+.3f} % at "
          f"{stats['time'][worst]:.2f} s (step {worst}), {100 * sum(sizes) / len(sizes):.3f} % in "
          f"the mean; {100 * BOUND:g} % are allowed")
sys.exit(failed)
PY
