#!/usr/bin/env bash
# Viscous slumps over a floor, plane and round, against the similarity solutions of Huppert (1982):
# the front at 1 and 10 s must be within 5 %, on cells of several sizes and of one.
#   huppert.sh PROGRAM
set -eu
program=$1
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
run() { # NAME SCENE [OPTION...]
    name=$1 scene=$2
    shift 2
    "$program" run "$here/../../scenes/$scene.lua" -o "$scratch/$name" --quiet \
        --set output.particles=false "$@"
}
run plane_graded huppert_plane
run plane_uniform huppert_plane --set detail.coarsest=112
run round_graded huppert_round
run round_uniform huppert_round --set detail.coarsest=56 --set detail.finest=56
python3 "$here/huppert.py" "$here" "$scratch"
