#!/usr/bin/env bash
# Blender itself, without a display, loads a small run by tools/blender/undine_loader.py: counts,
# velocity and radius of every frame, and pictures with and without motion blur.
#   blender.sh PROGRAM
set -eu
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/drop.lua" <<'LUA'
scene {
  method = "uniform",
  domain = { size = {1, 1, 1} },
  detail = { finest = 16, surface = 24 },
  frames = { count = 3, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.2, 1} },
             sphere { center = {0.5, 0.6, 0.5}, radius = 0.2 }, velocity = {0, -3, 0} },
}
LUA
"$program" run "$scratch/drop.lua" -o "$scratch/run" --quiet
here=$(dirname "$0")
blender --background --factory-startup --python-exit-code 1 --python "$here/blender_reads.py" -- \
    "$scratch/run" tools/blender/undine_loader.py "$scratch/picture" >"$scratch/said" 2>&1 ||
    { tail -n 25 "$scratch/said"; exit 1; }
grep -E "motion blur changes|agrees" "$scratch/said"
# the loader by itself
blender --background --factory-startup --python-exit-code 1 --python tools/blender/undine_loader.py -- \
    "$scratch/run" --frame 2 --save "$scratch/run.blend" --render "$scratch/out.png" --samples 2 --width 96 \
    >"$scratch/said" 2>&1 || { tail -n 25 "$scratch/said"; exit 1; }
[ -s "$scratch/run.blend" ] && [ -s "$scratch/out.png" ]
