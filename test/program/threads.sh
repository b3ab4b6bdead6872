#!/usr/bin/env bash
# The same bits for any number of threads: surfaces, particles and every number of the tables that
# is not a time, with a solid, a moving paddle, an emitter, a drain and an open top.
#   threads.sh PROGRAM
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

cat >busy.lua <<'LUA'
scene {
  domain  = { size = {1, 0.8, 0.6}, open = {"top"} },
  detail  = { finest = 24 },
  frames  = { count = 6, rate = 24 },
  liquid  = { box { min = {0, 0, 0}, max = {0.35, 0.6, 0.6} }, box { min = {0, 0, 0}, max = {1, 0.15, 0.6} } },
  solids  = {
    sphere { center = {0.6, 0.15, 0.3}, radius = 0.12, friction = 0.2 },
    solid { box { min = {0.76, 0.02, 0.1}, max = {0.84, 0.4, 0.5} }, pose = function(t)
      return { rotate = {0, 200 * t, 0}, about = {0.8, 0, 0.3} } end },
  },
  sources = {
    emitter { shape = sphere { center = {0.5, 0.65, 0.3}, radius = 0.08 }, velocity = {1, -1, 0.2} },
    drain { shape = box { min = {0.9, 0, 0}, max = {1, 0.08, 0.6} } },
  },
  probes  = { front {}, height { at = {0.2, 0.3} }, pressure { at = {0.1, 0.05, 0.3} } },
  output  = { mesh = true },
}
LUA

failed=0
for threads in 1 2 3 4; do
    "$program" run busy.lua -o "$threads" --threads $threads --quiet || failed=1
    python3 - "$threads" "$here" <<'PY' || failed=1
import sys
sys.dont_write_bytecode = True
sys.path.append(sys.argv[2])
import run_files
stats = run_files.table(f"{sys.argv[1]}/stats.csv")
with open(f"{sys.argv[1]}/steps.txt", "w") as file:
    for name, values in stats.items():
        if not name.startswith("seconds"):
            print(name, *map(float.hex, values), file=file)
assert len(stats["step"]) > 6 and max(stats["ballistic"]) > 0, "the scene is not busy enough"
PY
    for file in steps.txt probes.csv $(cd 1 && find frames -name '*.ply' -o -name '*.vt?'); do
        cmp "1/$file" "$threads/$file" || failed=1
    done
done
[ $failed = 0 ] && echo "1, 2, 3 and 4 threads: $(find 1/frames -name '*.*' | wc -l) files and all steps are the same"
exit $failed
