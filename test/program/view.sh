#!/usr/bin/env bash
# `undine view` in headless Chromium, driven by playwright-core from npm.
# test-labels: once slow
#   view.sh PROGRAM [PICTURES]
set -eu
program=$(realpath "$1")
pictures=${2:+$(realpath "$2")}
node=$(realpath test/node)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! tools/npm.sh test/node; then
    echo "skipped: what drives the browser comes from npm"
    exit 77
fi
command -v chromium chromium-browser google-chrome >/dev/null || { echo "skipped: no Chromium"; exit 77; }
cat >"$scratch/drop.lua" <<'LUA'
scene {
  domain = { size = {1, 1, 1} },
  detail = { finest = 12, surface = 16 },
  frames = { count = 6, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } },
  solids = { sphere { center = {0.75, 0.2, 0.5}, radius = 0.12 },
             box { min = {0.5, 0, 0.3}, max = {0.55, 0.2, 0.7}, velocity = {0.3, 0, 0}, material = "glass" } },
  probes = { front { axis = "x" }, height { name = "h1", at = {0.2, 0.5} } },
  output = { mesh = true },
  render = { camera = { eye = function(t) return {2.2, 1.2 + t, 2.4} end, target = {0.5, 0.3, 0.5}, fov = 27 } },
}
LUA
cd "$scratch"
"$program" run drop.lua -o "$scratch/coarse" --quiet
"$program" run drop.lua -o "$scratch/fine" --quiet --set detail.finest=16 --method tet
if "$program" view "$scratch/coarse" --save page.html --quiet 2>&1 | grep -q "has no page"; then
    echo "skipped: built without npm"
    exit 77
fi
timeout 600 node "$node/view.mjs" "$program" "$scratch/coarse" "$scratch/fine" $pictures
echo "viewer: draws, plays, cuts, charts, follows, compares and saves"
