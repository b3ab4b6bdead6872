#!/usr/bin/env bash
# Other programs read the exports of a small run: Khronos' glTF validator and TinyUSDZ, through npm.
# `make validate` does the same with ParaView and Blender.
# test-labels: once slow
#   export.sh PROGRAM
set -eu
program=$(realpath "$1")
node=$(realpath test/node)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! tools/npm.sh test/node; then
    echo "skipped: the readers come from npm"
    exit 77
fi
cat >"$scratch/drop.lua" <<'LUA'
scene {
  domain = { size = {1, 1, 1} },
  detail = { finest = 12, surface = 16 },
  frames = { count = 3, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.3, 1} },
             sphere { center = {0.5, 0.6, 0.5}, radius = 0.15 } },
  solids = { sphere { center = {0.75, 0.2, 0.5}, radius = 0.12, material = "glass" },
             box { min = {0.1, 0.1, 0.3}, max = {0.2, 0.5, 0.7}, velocity = {0.3, 0, 0} } },
  render = { camera = { eye = function(t) return {2, 1 + t, 2} end, target = {0.5, 0.3, 0.5} } },
}
LUA
cd "$scratch"
"$program" run drop.lua -o drop --quiet
"$program" export drop --to glb >said
grep -q "4 frames in 10 files" said || { cat said; exit 1; }
node "$node/gltf.mjs" 4 drop/export/glb/*.glb
# the reader shows the first sample of a file: a file for each frame, then all of them
counts() { head -c 400 "drop/frames/000$1/surface.ply" | grep -a -o '^element [a-z]* [0-9]*' | grep -o '[0-9]*$'; }
for frame in 0 2; do
    "$program" export drop --to usd --frames $frame -o "usd$frame" --quiet
    node "$node/usd.mjs" "usd$frame/drop.usda" $(counts $frame) 2
done
"$program" export drop --to usd --quiet
node "$node/usd.mjs" drop/export/usd/drop.usda $(counts 0) 2
# without liquid, at first or at all: nothing to see is valid too
for to in 0.03 9; do
    sed "s/liquid = .*/sources = { emitter { shape = sphere { center = {0.5, 0.6, 0.5}, radius = 0.2 }, from = $to } },/; /sphere { center = {0.5, 0.6/{/sources/!d}" drop.lua >late.lua
    "$program" run late.lua -o late --quiet --set solids=nil
    "$program" export late --to glb --quiet
    node "$node/gltf.mjs" 0 late/export/glb/*.glb
    rm -r late
done
echo "exports: glTF and USD are read as they were meant"
