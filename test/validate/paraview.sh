#!/usr/bin/env bash
# ParaView itself opens surface.pvd, particles.pvd and mesh.vtu of a small run, with every
# attribute, and counts what stats.csv and the PLY files count.
#   paraview.sh PROGRAM
set -eu
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/drop.lua" <<'LUA'
scene {
  method = "uniform",
  domain = { size = {1, 1, 1} },
  detail = { finest = 16, surface = 16 },
  frames = { count = 3, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.3, 1} },
             sphere { center = {0.5, 0.6, 0.5}, radius = 0.15 } },
  output = { mesh = true },
}
LUA
"$program" run "$scratch/drop.lua" -o "$scratch/run" --quiet
"$program" run "$scratch/drop.lua" -o "$scratch/tets" --method tet --frames 1 --quiet
"$program" export "$scratch/run" --to vtk --quiet
pvpython --force-offscreen-rendering "$(dirname "$0")/paraview_reads.py" "$scratch/run" "$scratch/tets"
