#!/usr/bin/env bash
# Runs in every condition: still going, killed, with a missing frame, without liquid, one cell thick,
# with all kinds of names. Each command says what is wrong or makes whole files.
# test-labels: once
#   frames.sh PROGRAM
set -eu
undine=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $*" >&2; exit 1; }
# expect STATUS WORDS command...
expect() {
    local status=$1 words=$2 got=0
    shift 2
    "$@" >said 2>&1 || got=$?
    [ "$got" = "$status" ] || fail "exit status $got instead of $status: $* said: $(cat said)"
    grep -q -- "$words" said || fail "$* did not say '$words' but: $(cat said)"
}
small="--width 32 --height 18 --samples 1"
has() { ! "$undine" "$@" 2>&1 | grep -q "UNDINE_RENDER\|has no page\|libmicrohttpd"; }

cat >late.lua <<'LUA'
scene { domain = { size = {1, 1, 1} }, detail = { finest = 8, surface = 12 },
  frames = { count = 3, rate = 24 }, output = { mesh = true },
  sources = { emitter { shape = sphere { center = {.5, .7, .5}, radius = .2 }, velocity = {0, -1, 0},
    from = 0.05, to = 1 } } }
LUA
cat >thin.lua <<'LUA'
scene { domain = { size = {1, 0.6, 0.0625} }, detail = { finest = 16, surface = 32 },
  frames = { count = 1, rate = 24 }, output = { mesh = true },
  liquid = { box { min = {0, 0, 0}, max = {.4, .4, 1} } },
  solids = { cylinder { from = {.7, .1, -1}, to = {.7, .1, 1}, radius = .05 } } }
LUA
"$undine" run late.lua -o late --quiet
"$undine" run thin.lua -o thin --quiet --method tet
for run in late thin; do
    [ -e $run/frames/0001/surface.ply ] || fail "$run has no surface"
    for format in ply obj vtk usd glb; do expect 0 "done" "$undine" export $run --to $format; done
    expect 0 "done" "$undine" surface $run -o $run.again
    has render $run --frames 0 $small &&
        for frame in 0 1; do # one at a time: a film would need ffmpeg
            expect 0 "done" "$undine" render $run $small --show water,particles,cells --cut z=0.03 --frames $frame
        done
    has view $run --save page.html && expect 0 "done" "$undine" view $run --save page.html
    expect 0 "done" "$undine" compare $run -o page.html --no-pictures
done
head -c 300 late/frames/0000/surface.ply | grep -q -a "element face 0" || fail "late has liquid at once"
grep -q "^v " late/export/obj/surface.0000.obj && fail "an empty surface with vertices"
grep -q "^f " late/export/obj/surface.0003.obj || fail "a surface without faces"

# still going on, or killed: the frame under way is left out
cp -r late going
sed -i 's/"status": "done"/"status": "running"/; s/"finished": 3/"finished": 2/' going/run.json
rm going/frames/0003/surface.ply
expect 0 "3 frames" "$undine" export going --to obj
expect 0 "3 surfaces" "$undine" surface going -o again
expect 2 "has frames 0 to 2" "$undine" export going --to obj --frames 3

# a gap
cp -r late gap
rm -r gap/frames/0002 gap/export
for command in "export --to obj" "surface -o gap2" "compare -o page.html --no-pictures"; do
    expect 0 "has no frame 2, so those after it, up to 3, are left out" "$undine" ${command%% *} gap ${command#* }
done
[ ! -e gap/export/obj/surface.0002.obj ] || fail "a frame that is not there was exported"

# without surfaces: particles are drawn, and without those too it is said
if has render late --frames 0 $small; then
    for dim in thin flat; do
        [ $dim = thin ] || sed 's/0.6, 0.0625}/0.6}/; s/output = { mesh = true },//; s/solids.*/}/' thin.lua >flat.lua
        "$undine" run $dim.lua -o bare --quiet --method uniform --set output.surface=false --set detail.finest=32
        expect 0 "has no surface: its particles are drawn" "$undine" render bare $small --frames 0
        cp bare/render/0000.png drawn.png
        expect 0 "has no surface: its particles are drawn" "$undine" compare bare -o page.html --pictures 1
        rm bare/frames/*/particles.vtp
        expect 0 "neither a surface nor particles" "$undine" render bare $small --frames 0
        cmp -s drawn.png bare/render/0000.png && fail "particles of $dim.lua are not drawn"
        rm -r bare
    done
fi

# names
odd=$'a "b" \'c\' – ß <i>&$x\n\xff'
cp -r late "$odd"
rm -r "$odd/export"
for format in ply obj vtk usd glb; do expect 0 "done" "$undine" export "$odd" --to $format; done
expect 0 "done" "$undine" surface "$odd" -o "$odd 2"
expect 0 "done" "$undine" compare "$odd" late -o "$odd.html" --no-pictures
has view late --save page.html && expect 0 "done" "$undine" view "$odd" --save "$odd.html"

left=$(find . -name '*.tmp')
[ -z "$left" ] || fail "left behind: $left"
echo "frames: runs of all kinds are read"
