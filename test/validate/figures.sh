#!/usr/bin/env bash
# The four figures of [Ando13] as the small variants that the heads of their scenes name: no
# particle or surface leaves the domain, no particle enters a solid, every number is finite, what
# the particles hold stays to round-off. What the level set takes for liquid is off by more where
# sheets and holes are a few cells wide, as in figures 3 and 7 at this size.
#   figures.sh PROGRAM
set -u
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

figure() { # NAME X,Y,Z VOLUME% CELLS FRAMES [sound.py option...]
    local name=$1 size=$2 volume=$3 cells=$4 frames=$5
    shift 5
    "$program" run "$here/../../scenes/$name.lua" -o "$scratch/$name" --quiet \
        --set detail.finest="$cells" --set frames.count="$frames" || failed=1
    python3 -B "$here/../program/sound.py" "$scratch/$name" "$size" --least 1000 "$@" || failed=1
    python3 -B - "$here/../program" "$scratch/$name" "$volume" <<'PY' || failed=1
import os
import sys

sys.path.append(sys.argv[1])
import run_files

run, allowed = sys.argv[2], float(sys.argv[3])
stats, record = run_files.table(f"{run}/stats.csv"), run_files.record(run)
worst = 100 * max(map(abs, stats["volume_error"]))
held = [sum(run_files.particles(f"{run}/frames/{frame:04d}/particles.vtp")["volume"])
        for frame in (0, record["frames"]["finished"])]
sources = "emitter" in open(f"{run}/scene.lua").read()
lost = 0 if sources else abs(held[1] / held[0] - 1)
print(f"  {os.path.basename(run)}: {stats['time'][-1]:.2f} s, {max(stats['particles']):.0f} particles "
      f"at most, volume error {worst:.2f} % at worst, {allowed:g} allowed"
      + ("" if sources else f"; in particles {lost:.1e}, 1e-5 allowed"))
sys.exit(not (worst <= allowed and lost <= 1e-5))
PY
    rm -rf "${scratch:?}/$name"
}

shell='abs(hypot(x - 0.5, y - 0.6, z - 0.5) - 0.25) - 0.0175'
w='2 * pi / 0.13'
gyroid="sin($w * (x - 0.5)) * cos($w * (y - 0.6)) + sin($w * (y - 0.6)) * cos($w * (z - 0.5))"
gyroid+=" + sin($w * (z - 0.5)) * cos($w * (x - 0.5))"
# the field is sampled at the spacing of cells, so its edges are round by up to 0.4 of one
bowl="0.4 / 64 + max($shell, ($gyroid - 0.3) / (1.6 * $w), y - 0.6)"
between='max(x - 1.5, 0.5 - z, z - 0.7)'
figure figure1 16,4,16 1 256 48
figure figure3 1,1,1 3 64 60
figure figure6 2,0.8,1.2 1 64 60 --solid "$between"
figure figure7 1,1,1 8 64 60 --solid "$bowl"
exit $failed
