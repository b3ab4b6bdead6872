# Pictures and a film of a handmade directory: frames, exit statuses, remaining files.
set -eu
undine=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run=$folder/run
mkdir -p "$run"/frames/000{0,1,2}
cat >"$run/scene.lua" <<'LUA'
scene {
  domain = { size = {1, 0.5, 0.5} },
  detail = { finest = 16 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.3, 0.5} } },
  solids = { sphere { center = {0.7, 0.1, 0.2}, radius = 0.1 } },
}
LUA
small="--width 64 --height 36 --samples 2"

fail() { echo "$*" >&2; exit 1; }
# expect STATUS WORDS command...: the exit status, and words that must be said
expect() {
    local status=$1 words=$2 got=0
    shift 2
    "$@" >"$folder/said" 2>&1 || got=$?
    [ "$got" = "$status" ] || fail "exit status $got instead of $status: $* said: $(cat "$folder/said")"
    grep -q -- "$words" "$folder/said" || fail "$* did not say '$words' but: $(cat "$folder/said")"
}

expect 0 usage "$undine" render -h
if "$undine" render "$run" $small --frames 0 2>&1 | grep -q UNDINE_RENDER; then exit 0; fi
expect 2 "no frames" "$undine" render "$folder/nothing"
expect 2 "frames 0 to 2" "$undine" render "$run" --frames 1:9
expect 2 "a range" "$undine" render "$run" --frames 2:1
expect 2 "three numbers" "$undine" render "$run" --eye 1,2
expect 2 "same point" "$undine" render "$run" --eye 1,2,3 --target 1,2,3

# One picture is no film.
expect 0 "1 picture" "$undine" render "$run" $small --frames 1
[ -s "$run/render/0001.png" ] && [ ! -e "$run/movie.mp4" ] || fail "one picture and no film wanted"

# Without ffmpeg the pictures stay.
expect 1 "apt install ffmpeg" env PATH=/nowhere "$undine" render "$run" $small
[ -s "$run/render/0002.png" ] && [ ! -e "$run/movie.mp4" ] || fail "pictures and no film wanted"

# A damaged frame is named.
echo ply >"$run/frames/0001/surface.ply"
expect 1 "0001/surface.ply" "$undine" render "$run" $small
rm "$run/frames/0001/surface.ply"

# How pictures look is no part of the simulation: a run goes on with another camera, and is shown by
# it; options win.
tiny="--set detail.finest=8 --set render.water={0.1,0.2,0.9} --quiet"
"$undine" run "$run/scene.lua" -o "$folder/again" $tiny --frames 1
"$undine" run "$run/scene.lua" -o "$folder/again" $tiny --frames 2 --resume --set 'render.camera={ eye = {3, 2, 4} }'
"$undine" render "$folder/again" $small --frames 2 --quiet
cp "$folder/again/render/0002.png" "$folder/one.png"
"$undine" render "$folder/again" $small --frames 2 --eye 3,2,4 --water 0.1,0.2,0.9 --quiet
cmp -s "$folder/again/render/0002.png" "$folder/one.png" || fail "the scene's camera is not taken"
"$undine" render "$folder/again" $small --frames 2 --eye 3,3,4 --quiet
! cmp -s "$folder/again/render/0002.png" "$folder/one.png" || fail "an option must win over the scene"
expect 2 "each 0 to 1" "$undine" render "$run" --background 2,0,0

command -v ffmpeg ffprobe >/dev/null || exit 0
before=$(stat -c %i "$run/render/0000.png")
expect 0 "movie.mp4" "$undine" render "$run" $small --reuse
[ "$(stat -c %i "$run/render/0000.png")" = "$before" ] || fail "--reuse made a picture anew"
frames=$(ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 "$run/movie.mp4")
[ "$frames" = 3 ] || fail "$frames frames in the film instead of 3"
expect 0 "film is $folder/other.mkv" "$undine" render "$run" $small --frames 1:2 -o "$folder/other.mkv"
expect 1 "ffmpeg failed: .*nodir" "$undine" render "$run" $small --reuse -o "$folder/nodir/a.mp4"

# Interrupted: what is finished stays, and nothing half done.
rm "$run/movie.mp4" "$run"/render/*
for n in $(seq 3 60); do mkdir "$run/frames/$(printf %04d "$n")"; done
"$undine" render "$run" $small >"$folder/said" 2>&1 &
child=$!
while [ ! -e "$run/render/0001.png" ]; do kill -0 $child 2>/dev/null || break; sleep 0.02; done
kill -INT $child
status=0
wait $child || status=$?
[ $status = 130 ] || fail "exit status $status instead of 130 when interrupted"
grep -q "interrupted" "$folder/said" || fail "the interruption was not mentioned"
left=$(find "$run" -name '*.tmp' -o -name '*part*' -o -name movie.mp4)
[ -z "$left" ] || fail "left behind: $left"
