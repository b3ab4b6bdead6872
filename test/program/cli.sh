#!/usr/bin/env bash
# The command line for users and scripts: exit statuses, help, wrong arguments, interruption, full
# disks, and files that are whole whatever happens.
#   cli.sh PROGRAM
set -u
program=$(realpath "$1")
verify="$(realpath "$(dirname "$0")")/verify.py"
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0
count=0

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# expect STATUS WORD ARGUMENT...: the exit status, and WORD somewhere in the output
expect() {
    local wanted=$1 word=$2
    shift 2
    count=$((count + 1))
    "$program" "$@" >out.txt 2>err.txt </dev/null
    local got=$?
    [ $got = "$wanted" ] || fail "undine $*: status $got, not $wanted: $(tail -n 3 err.txt)"
    grep -qF -- "$word" out.txt err.txt || fail "undine $*: no \"$word\" in: $(cat out.txt err.txt)"
    if [ "$wanted" = 0 ] && [ -s err.txt ]; then fail "undine $*: says $(cat err.txt)"; fi
    if [ "$wanted" != 0 ] && [ -s out.txt ]; then fail "undine $*: on standard output: $(cat out.txt)"; fi
    if [ "$wanted" != 0 ] && [ $# -gt 0 ] && [ "$(wc -l <err.txt)" -gt 1 ]; then
        fail "undine $*: more than a sentence: $(cat err.txt)"
    fi
}

cat >drop.lua <<'LUA'
scene {
  method = "uniform",
  domain = { size = {1, 1, 1} },
  detail = { finest = 8, surface = 8 },
  frames = { count = 3, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } },
  probes = { front { axis = "x" }, height { name = "h1", at = {0.2, 0.5} } },
}
LUA
printf 'scene {\n  domain = { size = {1, 1, 1} },\n  detial = { finest = 8 },\n}\n' >typo.lua
printf 'scene {' >broken.lua
mkdir plain

# ---- words ----
expect 2 "usage: undine"
expect 0 "undine 0." --version
expect 0 "usage: undine" -h
expect 0 "usage: undine" --help
expect 0 "usage: undine run SCENE" help run
expect 2 "did you mean" help rnu
for command in run check info render export surface tetmesh; do
    expect 0 "usage: undine $command" $command -h
    expect 0 "usage: undine $command" $command --help
    expect 2 "did you mean --help" $command --hlep
    expect 2 "$command" $command
done
expect 0 "usage: undine compare" compare -h
expect 2 "from-frame needs --resume" run drop.lua --from-frame 3
expect 2 "0 or more" run drop.lua --resume --from-frame -1
expect 2 "did you mean \`run\`" rnu
expect 2 "undine -h" fly
expect 2 "undine -h" --fly
expect 2 "did you mean --frames" run drop.lua --frame 3
expect 2 "did you mean --threads" run drop.lua --thraeds=3
expect 2 "undine run -h" run drop.lua --zzz
expect 2 "undine run -h" run drop.lua -z
expect 2 "needs a value" run drop.lua --frames
expect 2 "a whole number" run drop.lua --frames many
expect 2 "a whole number" run drop.lua --frames=-1
expect 2 "a whole number" run drop.lua --frames 99999999999999999999
expect 2 "a whole number" run drop.lua --threads 1.5
expect 2 "8G or 512M" run drop.lua --memory lots
expect 2 "8G or 512M" run drop.lua --memory -1G
expect 2 "key=value" run drop.lua --set frames
expect 2 "takes no value" run drop.lua --quiet=yes
expect 2 "one too many" run drop.lua drop.lua
expect 2 "SCENE is missing" run ""

# ---- wrong scenes ----
expect 2 "none.lua" run none.lua
expect 2 "plain" run plain
expect 2 "broken.lua" run broken.lua
expect 2 "typo.lua:3" run typo.lua
expect 2 "detail" check typo.lua
expect 2 "none.lua" check none.lua
expect 2 "nosuch" run drop.lua --method nosuch
expect 2 "nosuch" check drop.lua --method nosuch
expect 2 "fluid" run drop.lua --set fluid.nosuch=3
expect 0 "particles" check drop.lua
expect 0 "16 x 16 x 16" check drop.lua --set detail.finest=16
[ ! -e out ] || fail "a wrong command made out/"

# ---- runs ----
expect 0 "frame 3 of 3" run drop.lua
python3 "$verify" out/drop done || fail "out/drop"
head -n 1 out/drop/probes.csv | grep -qx "time,front,h1" || fail "probes.csv: $(head -n 1 out/drop/probes.csv)"
for file in scene.lua run.json stats.csv probes.csv surface.pvd particles.pvd \
    frames/0000/surface.ply frames/0003/surface.ply frames/0003/particles.vtp; do
    [ -s out/drop/$file ] || fail "no out/drop/$file"
done
expect 0 "frames      3 of 3" info out/drop
expect 0 "8 x 8 x 8" info out/drop
expect 0 "frame 2 of 2" run drop.lua -o set --frames 2 --threads 1 --set detail.finest=10 --memory 1G
grep -q '"cells": \[10, 10, 10\]' set/run.json || fail "--set was not heard"
expect 0 "frame 1 of 1" run set/scene.lua -oagain --frames=1
expect 0 "done: 0 frames" run drop.lua -o start --frames 0
[ -s start/frames/0000/surface.ply ] && [ ! -e start/frames/0001 ] || fail "--frames 0 is the start alone"
grep -q '"cells": \[10, 10, 10\]' again/run.json || fail "scene.lua forgot an override"
"$program" run drop.lua -o quiet --quiet >out.txt 2>&1 || fail "--quiet"
[ ! -s out.txt ] || fail "--quiet says $(cat out.txt)"
"$program" run drop.lua -o json --json >out.txt 2>err.txt || fail "--json"
python3 - out.txt <<'PY' || fail "--json: $(head -n 3 out.txt)"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
names = [e["event"] for e in events]
assert names[0] == "start" and names[-1] == "done", names
assert [e["frame"] for e in events if e["event"] == "frame"][-3:] == [1, 2, 3], names
assert events[-1]["frame"] == 3 and events[-1]["particles"] > 0, events[-1]
PY
"$program" run drop.lua -o deaf --json 2>err.txt | head -n 1 >out.txt
[ "${PIPESTATUS[0]}" = 0 ] || fail "a reader that leaves ends the run"
python3 "$verify" deaf done || fail "deaf"
"$program" info out/drop >/dev/full 2>err.txt && fail "info to a full disk is no success"

# --from-frame starts near: every fifth frame has its checkpoint
"$program" run drop.lua -o near --frames 11 --quiet || fail "eleven frames"
for frame in 0000 0005 0010 0011; do
    ls near/state/frame$frame.step*.state >/dev/null 2>&1 || fail "no checkpoint of frame $frame: $(ls near/state)"
done

# ---- outputs that are no files ----
ln -s /dev/null device
mkfifo pipe
mkdir folder
for place in device pipe folder; do
    expect 2 "is a $place, not a file" render out/drop -o $place --width 16 --height 9
    expect 2 "is a $place, not a file" render out/drop -o $place --width 16 --height 9 --frames 1
    expect 2 "is a $place, not a file" render out/drop -o $place --width 16 --height 9 --sheet 2
    expect 2 "is a $place, not a file" compare out/drop -o $place
    expect 2 "is a $place, not a file" view out/drop --save $place
done
for place in device pipe; do
    expect 1 "$place" run drop.lua -o $place --frames 0 --quiet
    expect 1 "$place" export out/drop --to ply -o $place
    expect 1 "$place" surface out/drop -o $place
done
ln -s /dev/null out/drop/export && expect 1 "export" export out/drop --to obj && rm out/drop/export
[ -c device ] && [ -p pipe ] && [ -d folder ] || fail "an output took the place of a device, pipe or folder"

# ---- the viewer ----
expect 0 "usage: undine view" view -h
expect 2 "has no frames" view plain
expect 2 "at most 8" view 1 2 3 4 5 6 7 8 9
expect 2 "a whole number" view out/drop --port many
mkdir empty && (cd empty && "$program" view >out.txt 2>err.txt)
[ $? = 2 ] || fail "view of nothing"
grep -q "out/ has no run" empty/err.txt || fail "view of nothing: $(cat empty/err.txt)"
if ! "$program" view out/drop --save page.html 2>&1 | grep -q "has no page"; then
    expect 0 "page.html" view out/drop --save page.html --frames 2
    grep -q "undine-0-surface-2" page.html || fail "view --save: no frames in the page"
    expect 1 "cannot write" view out/drop --save nowhere/page.html
    "$program" view --no-open >view.txt 2>&1 &
    child=$!
    for _ in $(seq 100); do grep -qs 127.0.0.1 view.txt && break; sleep 0.05; done
    kill -INT $child
    wait $child || fail "view: $(cat view.txt)"
fi

# ---- exports ----
expect 2 "ply, obj, vtk, usd, glb" export out/drop
expect 2 "unknown format" export out/drop --to abc
expect 2 "frames 0 to 3" export out/drop --to ply --frames 2:9
expect 2 "has no frames" export plain --to ply
expect 2 "--what takes" export out/drop --to ply --what water
for format in ply obj vtk usd glb; do
    expect 0 "2 frames in" export out/drop --to $format --frames 1:2
    [ -n "$(ls out/drop/export/$format)" ] || fail "export to $format left nothing"
done
expect 0 "2 frames in 2 files" export out/drop --to ply --every 3 --what surface -o elsewhere
[ -s elsewhere/surface.0003.ply ] || fail "export -o: $(ls elsewhere)"
(ulimit -f 8 && "$program" export out/drop --to usd -o full_export --quiet) >out.txt 2>err.txt
[ $? = 1 ] || fail "export to a full disk: $(cat err.txt)"
grep -q "cannot write full_export/.*; " err.txt || fail "export to a full disk: $(cat err.txt)"
[ -z "$(ls full_export)" ] || fail "export to a full disk leaves $(ls full_export)"

# ---- places that cannot be written, disks that fill up, memory that does not suffice ----
expect 2 "No such file" info nowhere
expect 2 "has no run.json" info plain
touch file
expect 1 "a file has that name" run drop.lua -o file --quiet
expect 1 "cannot create the folder" run drop.lua -o /proc/undine --quiet
(ulimit -f 8 && "$program" run drop.lua -o full --quiet --set detail.finest=16) >out.txt 2>err.txt
[ $? = 1 ] || fail "a full disk: $(cat err.txt)"
grep -q "cannot write full/.*; " err.txt || fail "a full disk: $(cat err.txt)"
expect 1 "cap" run drop.lua -o small --quiet --memory 100k
# a small cap lowers the resolution and is kept, or is refused at once with what is needed
for method in uniform tet staggered; do
    for memory in 2M 3M 5M 8M; do
        said=$("$program" run drop.lua -o small --quiet --memory $memory --method $method --frames 2 \
            --set detail.finest=64 --set detail.surface=128 2>&1)
        case $?:$method:$memory:$said in
        0:*) ;;
        1:uniform:* | 1:*:8M:*) fail "$method in $memory: $said" ;;
        *"too small for method"*) [ ! -e small/frames/0000/surface.ply ] || fail "$method in $memory: not at once" ;;
        *) fail "$method in $memory: $said" ;;
        esac
        rm -rf small
    done
done

# ---- interruption ----
# begin DIR: starts a long run there and waits for its second frame
begin() {
    "$program" run drop.lua -o "$1" --frames 100000 >out.txt 2>err.txt &
    child=$!
    for _ in $(seq 600); do
        [ -e "$1/frames/0002/surface.ply" ] && return
        kill -0 $child 2>/dev/null || break
        sleep 0.05
    done
    fail "$1 does not get on: $(cat out.txt err.txt)"
}
for signal in INT TERM; do
    begin $signal
    kill -$signal $child
    wait $child
    got=$?
    [ $got = 130 ] || fail "SIG$signal: status $got"
    python3 "$verify" $signal interrupted || fail "SIG$signal"
    expect 0 "interrupted" info $signal
done
begin twice
kill -INT $child && kill -INT $child 2>/dev/null
wait $child
got=$?
[ $got = 130 ] || fail "two signals: status $got"
python3 "$verify" twice interrupted --killed >/dev/null || python3 "$verify" twice running --killed ||
    fail "two signals"
begin killed
kill -KILL $child
wait $child 2>/dev/null
python3 "$verify" killed running --killed || fail "SIGKILL"
expect 0 "running" info killed
begin locked
count=$((count + 1))
"$program" run drop.lua -o locked >out2.txt 2>err2.txt && fail "two runs in one directory"
grep -q "another run is writing to locked (process $child)" err2.txt || fail "a lock: $(cat err2.txt)"
kill -INT $child
wait $child
[ $? = 130 ] || fail "a locked run ends otherwise"
python3 "$verify" locked interrupted || fail "locked"

# ---- going on ----
mkdir -p begun
"$program" run drop.lua -o begun --resume --quiet || fail "--resume of nothing"
python3 "$verify" begun done || fail "begun"
rm -r begun/state
expect 1 "has no checkpoint" run drop.lua -o begun --resume --quiet
frames=$(($(ls INT/frames | tail -n 1 | sed 's/^0*//') + 2))
"$program" run drop.lua -o INT --resume --frames $frames >out.txt 2>err.txt || fail "resume: $(cat err.txt)"
grep -q "resuming from INT/state/frame" err.txt || fail "resume does not say from where: $(cat err.txt)"
python3 "$verify" INT done || fail "resumed"
expect 0 "frames      $frames of $frames" info INT
"$program" run drop.lua -o INT --resume --frames $frames >out.txt 2>err.txt || fail "nothing left to do: $(cat err.txt)"
"$program" run drop.lua -o INT --resume --frames $((frames + 2)) --quiet || fail "more frames"
expect 0 "frames      $((frames + 2)) of $((frames + 2))" info INT
expect 2 "go back with --from-frame 1" run drop.lua -o INT --resume --frames 1 --quiet
"$program" run drop.lua -o INT --resume --from-frame 1 --frames 2 --quiet || fail "--from-frame"
expect 0 "frames      2 of 2" info INT
[ ! -e INT/frames/0003 ] || fail "frames after --from-frame are left"
expect 2 "gravity was 0 -9.81 0" run drop.lua -o INT --resume --set 'gravity={0,-5,0}' --quiet
expect 2 "the shape of liquid is not" run drop.lua -o INT --resume --set 'liquid={box{min={0,0,0},max={.5,.5,1}}}' --quiet
expect 2 "use --method uniform" run drop.lua -o INT --resume --method tet --quiet
expect 0 "frames      2 of 2" info INT
expect 0 "frame 3 of 3" run drop.lua -o killed
grep -q '"status": "done"' killed/run.json || fail "a run over a killed one"

[ $failed = 0 ] && echo "command line: $count commands and what they leave behind are fine"
[ $failed = 0 ]
