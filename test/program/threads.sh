#!/usr/bin/env bash
# test-labels: once
# The same bits for any number of threads: surfaces, particles and every number of the tables that
# is not a time, with a solid, a moving paddle, an emitter, a drain and an open top, of each method.
#   threads.sh PROGRAM
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

for method in uniform tet staggered; do
    size=$([ $method = uniform ] && echo 24 --frames 6 || echo 20 --frames 3)
    for threads in 1 2 3 4; do
        "$program" run "$here/busy.lua" --method $method --set detail.finest=$size \
            -o "$method/$threads" --threads $threads --quiet || exit 1
    done
done
python3 - "$here" <<'PY'
import sys
sys.dont_write_bytecode = True
sys.path.append(sys.argv[1])
import run_files
for method in ("uniform", "tet", "staggered"):
    wanted, stats = run_files.files(f"{method}/1"), run_files.table(f"{method}/1/stats.csv")
    for threads in "234":
        run_files.compare(wanted, f"{method}/{threads}")
        assert run_files.table(f"{method}/{threads}/stats.csv")["bytes"] == stats["bytes"], "memory differs"
    assert len(stats["step"]) > 4 and max(stats["ballistic"]) > 0, f"{method}: the scene is not busy enough"
    print(f"{method}: with 1, 2, 3 and 4 threads {len(wanted)} files are the same")
PY
