#!/usr/bin/env bash
# A standing wave in a box: its period against linear theory, w^2 = g k tanh(k h), k = n pi / L.
# The first row of each method, at 48 cells, must be within 3 % (uniform) and 2 % (tet); the others,
# coarser, are printed to compare, and how much of the amplitude a period takes away. Of the table, long waves in shallow water are left out: there an amplitude that the grid can see is
# not small, and linear theory does not hold.
#   standing_wave.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# wave NAME METHOD LENGTH DEPTH MODE CELLS FRAMES: amplitude a fiftieth of the length
wave() {
    cat >"$scratch/$1.lua" <<LUA
local length, depth, mode = $3, $4, $5
local amplitude = 0.02 * length
local k = mode * math.pi / length
scene {
  method = "$2",
  domain = { size = {length, math.min(2 * depth, depth + length / 2), length / 4} },
  detail = { coarsest = $6 / 8, finest = $6 },
  frames = { count = $7, rate = 60 },
  liquid = { field(function(x, y, z) return y - depth - amplitude * math.cos(k * x) end) },
  probes = { height { name = "h", at = {0, length / 8} } },
  output = { surface = false, particles = false },
}
LUA
    "$program" run "$scratch/$1.lua" -o "$scratch/$1" --quiet
}
failed=0
for method in uniform tet; do
    wave first $method 1 0.5 1 48 240
    wave second $method 1 0.5 2 48 120
    wave deep $method 1 1 2 40 120
    wave short $method 0.6 0.3 1 32 150
    echo "  $method"
    python3 "$here/standing_wave.py" "$here" "$scratch" $method first second deep short || failed=1
done
exit $failed
