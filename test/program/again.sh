#!/usr/bin/env bash
# Commands on a finished run: new surfaces, comparisons, pictures of particles and cells, a contact
# sheet.
#   again.sh PROGRAM
set -u
program=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}
# expect STATUS WORDS ARGUMENT...
expect() {
    local status=$1 words=$2 got=0
    shift 2
    "$program" "$@" >said 2>&1 || got=$?
    [ "$got" = "$status" ] || fail "undine $*: status $got, not $status: $(cat said)"
    grep -q -- "$words" said || fail "undine $*: no '$words' in: $(cat said)"
}
cat >drop.lua <<'LUA'
scene {
  domain = { size = {1, 0.8, 0.6} },
  detail = { finest = 16, surface = 24 },
  frames = { count = 2, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.2, 0.6} },
             sphere { center = {0.4, 0.5, 0.3}, radius = 0.15 } },
  solids = { sphere { center = {0.7, 0.2, 0.3}, radius = 0.1, velocity = {0.5, 0, 0} } },
  sizing = { camera = { eye = {0.5, 0.5, 3}, target = {0.5, 0.2, 0}, fov = 30 } },
  output = { mesh = true },
}
LUA
"$program" run drop.lua -o run --quiet || exit 1
"$program" run drop.lua -o tet --method tet --set detail.finest=32 --set detail.coarsest=8 --quiet || exit 1

# volume of a surface, and its triangles
measure() {
    python3 - "$1" <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
head, body = data.split(b"end_header\n", 1)
v, f = [int(l.split()[-1]) for l in head.splitlines() if l.startswith(b"element")]
x = [struct.unpack_from("<3f", body, 36 * i) for i in range(v)]
volume = 0
for t in range(f):
    a, b, c = (x[i] for i in struct.unpack_from("<3i", body, 36 * v + 13 * t + 1))
    volume += (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])) / 6
print(f, int(1e6 * volume))
PY
}
# near A B PERCENT
near() { [ $((100 * ($1 > $2 ? $1 - $2 : $2 - $1))) -le $(($3 * $2)) ]; }

# ---- surfaces again ----
for run in run tet; do
    read -r triangles volume < <(measure $run/frames/0002/surface.ply)
    before=$(cksum <$run/frames/0002/surface.ply)
    expect 0 "3 surfaces in $run.same" surface $run -o $run.same
    read -r t v < <(measure $run.same/frames/0002/surface.ply)
    near "$t" "$triangles" 30 || fail "$run: $t triangles where the run had $triangles"
    near "$v" "$volume" 3 || fail "$run: a volume of $v where the run had $volume"
    expect 0 "1 surface in" surface $run -o $run.fine --resolution 64 --frames 2
    read -r t v < <(measure $run.fine/frames/0002/surface.ply)
    [ "$t" -gt $((2 * triangles)) ] || [ $run = tet ] || fail "$run: finer, but $t triangles of $triangles"
    near "$v" "$volume" 6 || fail "$run: finer, a volume of $v where the run had $volume"
    [ "$before" = "$(cksum <$run/frames/0002/surface.ply)" ] || fail "-o changed the run itself"
    # a folder that has only that frame: it must be named
    expect 2 "no frame 0, .* unless --frames names them" export $run.fine --to obj
    expect 0 "" export $run.fine --to obj --frames 2
    [ -s $run.fine/export/obj/surface.0002.obj ] || fail "$run: frame 2 by itself was not exported"
    expect 0 "frames      2 of 2" info $run.same
done
# with tet it rests on the depths that particles.vtp has, not on the particles alone
read -r triangles volume < <(measure tet/frames/0002/surface.ply)
read -r t v < <(measure tet.same/frames/0002/surface.ply)
near "$((100 * t))" "$((100 * triangles))" 1 || fail "tet: $t triangles where the run had $triangles"
[ $((v > volume ? v - volume : volume - v)) -le $((volume / 2000)) ] || fail "tet: a volume of $v, not $volume"
# Solids are where bodies.csv says: in the middle of the liquid, a ball takes its volume from it.
for run in run tet; do
    cp -r $run $run.moved
    awk -F, -v OFS=, 'NR > 1 { $2 = 0.25; $3 = 0.1 } { print }' $run/bodies.csv >$run.moved/bodies.csv
    expect 0 "1 surface in" surface $run.moved --frames 2
    read -r _ before < <(measure $run.same/frames/0002/surface.ply)
    read -r _ after < <(measure $run.moved/frames/0002/surface.ply)
    [ $((before - after)) -gt 1500 ] || fail "$run: solids are not where bodies.csv says: $before $after"
    cmp -s $run/bodies.csv $run.same/bodies.csv || fail "$run: bodies.csv was not copied"
    sed -i '$d' $run.moved/bodies.csv
    expect 1 "bodies.csv has no row for frame 2" surface $run.moved
    # without the table, as older versions left it, the scene's own motion
    rm $run.moved/bodies.csv
    expect 0 "1 surface in" surface $run.moved --frames 2
    read -r _ after < <(measure $run.moved/frames/0002/surface.ply)
    near $after $before 1 || fail "$run: without bodies.csv: $before $after"
done
expect 0 "done" surface run -o hulls --with hulls --smoothing 20
read -r t v < <(measure hulls/frames/0000/surface.ply)
read -r triangles volume < <(measure run/frames/0000/surface.ply)
near "$v" "$volume" 12 || fail "hulls: a volume of $v where the run had $volume"
# thick liquid is faired more often, and again as often
"$program" run drop.lua -o thick --method tet --set fluid.viscosity=50 --frames 1 --quiet || fail "thick"
for passes in "" 8 64; do
    expect 0 "done" surface thick -o thick.same$passes ${passes:+--smoothing $passes}
done
cmp -s thick.same{,64}/frames/0000/surface.ply || fail "thick liquid is not faired 64 times"
! cmp -s thick.same{8,64}/frames/0000/surface.ply || fail "fairing changes nothing"
cp -r run inplace
expect 0 "1 surface in inplace" surface inplace --frames 1 --smoothing 0
! cmp -s run/frames/0001/surface.ply inplace/frames/0001/surface.ply || fail "in place: nothing changed"
expect 2 "choose hulls or grid" surface run --with magic
expect 2 "frames 0 to 2" surface run --frames 7
expect 2 "resolution must be" surface run --resolution 99999
expect 2 "has no frames" surface nothing
rm inplace/frames/*/particles.vtp
expect 2 "has no particles" surface inplace

# ---- comparisons ----
expect 0 "compare.html" compare run tet --no-pictures
for word in "<td>uniform</td>" "<td>tet</td>" "Volume error" "<svg"; do
    grep -q "$word" compare.html || fail "compare: no $word"
done
! grep -q "<script\|<img" compare.html || fail "compare: more than asked for"
expect 2 "DIR is missing" compare
expect 2 "has no frames" compare run nothing
expect 1 "cannot write" compare run -o nowhere/page.html --no-pictures
if "$program" render run --frames 0 --width 32 --height 18 2>&1 | grep -q UNDINE_RENDER; then exit $failed; fi
expect 0 "two.html" compare run tet -o two.html --pictures 2 --width 64
[ "$(grep -o 'data:image/png' two.html | wc -l)" = 4 ] || fail "compare: not four pictures"
[ -z "$(ls | grep tmp)" ] || fail "compare leaves $(ls | grep tmp)"

# ---- pictures ----
picture() { # NAME OPTION...: made, and not one that was there before
    local name=$1
    shift
    expect 0 "1 picture" render run --frames 2 --width 96 --height 54 --samples 2 "$@"
    cp run/render/0002.png "$name.png"
    cksum <"$name.png" >>sums
}
picture water
picture particles --show particles
picture cells --show cells --cut z=0.3
picture all --show water,particles,cells --cut x=0.5
picture light --light 60,30
picture tea --water 0.8,0.3,0.1
picture red --solid 0.8,0.1,0.1
picture camera --scene-camera
[ "$(sort -u sums | wc -l)" = 8 ] || fail "two pictures are the same"
expect 0 "3 frames on" render run --sheet 3 --width 64 --height 36
[ "$(od -An -j16 -N8 -tu1 run/render/sheet.png | tr -s ' ')" = " 0 0 0 216 0 0 0 48" ] ||
    fail "the sheet is not 216 x 48: $(od -An -j16 -N8 -tu1 run/render/sheet.png)"
"$program" run run/scene.lua -o six --frames 5 --set detail.finest=4 --set detail.surface=4 --quiet
expect 0 "6 frames on" render six --sheet 6 --width 64 --height 36
[ "$(od -An -j16 -N8 -tu1 six/render/sheet.png | tr -s ' ')" = " 0 0 0 216 0 0 0 90" ] ||
    fail "six frames are not three by two: $(od -An -j16 -N8 -tu1 six/render/sheet.png)"
expect 2 "a plane such as" render run --cut w=1
expect 2 "choose the plane with --cut" render run --show cells
expect 2 "two angles" render run --light 1
expect 2 "degrees above" render run --light 0,0
expect 2 "--show takes" render run --show air
expect 2 "output.mesh=true" render hulls --show cells --cut z=0.3
[ $failed = 0 ] && echo "surfaces again, comparisons and pictures are fine"
exit $failed
