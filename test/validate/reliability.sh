#!/usr/bin/env bash
# What docs/reliability.md promises, in full: a hundred kills, every disk call and every allocation
# of a run failing once, 10,000 steps of a stirred tank, what checkpoints cost and how large they are.
#   reliability.sh PROGRAM
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
root=$(realpath "$here/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

python3 "$here/../program/kill.py" "$program" 100 || failed=1

if cmake --build "$root/build" --target test_run_faults test_run_resume test_state_soak >"$scratch/log" 2>&1; then
    for test in run_faults run_resume state_soak; do
        "$root/build/test/test_$test" all >"$scratch/log" 2>&1 || { failed=1; tail -n 20 "$scratch/log"; }
        grep -E 'steps,|allocations|PASSED' "$scratch/log"
    done
else
    echo "the tests cannot be built here (cmocka?)"
    failed=1
fi

# cost: the share of the run's time, with checkpoints as they come
cat >"$scratch/dam.lua" <<'LUA'
scene {
  domain = { size = {1, 1, 1} },
  detail = { coarsest = 8, finest = 64, surface = 64 },
  frames = { count = 24, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } },
}
LUA
for method in uniform tet; do
    "$program" run "$scratch/dam.lua" -o "$scratch/$method" --method $method --quiet || failed=1
    python3 - "$scratch/$method" <<'PY' || failed=1
import csv, glob, json, os, sys
directory = sys.argv[1]
record = json.load(open(f"{directory}/run.json"))
stages = record["stages"]
stages = {s["name"]: s["seconds"] for s in stages} if isinstance(stages, list) else stages
share = stages["checkpoint"] / record["seconds"]
newest = max(glob.glob(f"{directory}/state/*.state"))
rows = list(csv.DictReader(open(f"{directory}/stats.csv")))
each = 53 if record["method"] == "uniform" else 57
size = os.path.getsize(newest) / (each * float(rows[-1]["particles"]))
count = len(glob.glob(f"{directory}/state/*.state"))
print(f"{record['method']}: checkpoints took {100 * share:.2f} % of {record['seconds']:.1f} s; the last is "
      f"{size:.2f} times its {float(rows[-1]['particles']):.0f} particles; {count} left")
sys.exit(share > 0.03 or size > 1.5)
PY
done
exit $failed
