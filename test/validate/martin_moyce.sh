#!/usr/bin/env bash
# Collapse of a column of water a = 0.05715 m wide and 2a high: where the front is, against the
# measurements of Martin & Moyce (1952, tables 2 and 6). With 24 cells over the column's height the
# front must be within 10 % in the mean (uniform), 7 % (tet); 24 cells over its width, and the
# height left at the wall, are printed to compare.
#   martin_moyce.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/column.lua" <<'LUA'
local a = 0.05715
scene {
  domain = { size = {5 * a, 3 * a, a} },
  detail = { coarsest = 15, finest = 60 },
  frames = { count = 114, rate = 200 },
  liquid = { box { min = {0, 0, 0}, max = {a, 2 * a, a} } },
  probes = { front { axis = "x" }, height { at = {0, a / 2} } },
  output = { surface = false, particles = false },
}
LUA
failed=0
for method in uniform tet; do
    "$program" run "$scratch/column.lua" -o "$scratch/60" --quiet --method $method
    # the front is at the far wall after 0.25 s
    "$program" run "$scratch/column.lua" -o "$scratch/120" --quiet --method $method \
        --set detail.finest=120 --set detail.coarsest=15 --frames 40
    echo "  $method"
    python3 "$here/martin_moyce.py" "$here" $method "$scratch/60" "$scratch/120" || failed=1
done
exit $failed
