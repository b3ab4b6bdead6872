#!/usr/bin/env bash
# A 2D run from end to end: files, tables, pictures, exports, new surfaces, resuming after an
# interruption, any number of threads.
#   flat.sh PROGRAM
set -eu
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
cat >"$scratch/flat.lua" <<'LUA'
scene {
  domain = { size = {2, 1}, open = {"right"} },
  detail = { finest = 40 },
  frames = { count = 12, rate = 24 },
  liquid = { box { min = {0, 0}, max = {0.5, 0.7} } },
  solids = { sphere { center = {1.3, 0.05}, radius = 0.12 },
    solid { box { min = {0.8, 0.3}, max = {0.9, 0.6} }, pose = function(t)
      return { by = {0, -0.2 * t}, rotate = {0, 0, 90 * t}, about = {0.85, 0.45} } end } },
  sources = { emitter { shape = box { min = {0.1, 0.8}, max = {0.2, 0.9} }, velocity = {1, 0} } },
  probes = { front { axis = "x" }, height { at = {0.05} }, pressure { at = {0.02, 0.02} } },
  output = { mesh = true },
}
LUA
run="$scratch/run"
"$program" run "$scratch/flat.lua" -o "$run" --quiet --threads 1
"$program" run "$scratch/flat.lua" -o "$scratch/two" --quiet --threads 2
for file in surface.ply surface.vtp particles.vtp mesh.vtu; do
    cmp "$run/frames/0012/$file" "$scratch/two/frames/0012/$file" || fail "threads change $file"
done
# half of it, then the rest
"$program" run "$scratch/flat.lua" -o "$scratch/half" --quiet --frames 6
"$program" run "$scratch/flat.lua" -o "$scratch/half" --quiet --resume >/dev/null
cmp "$run/frames/0012/surface.ply" "$scratch/half/frames/0012/surface.ply" || fail "resume"
cmp "$run/probes.csv" "$scratch/half/probes.csv" || fail "probes after resume"

grep -q 'NumberOfLines="0"' "$run/frames/0012/surface.vtp" && fail "the outline has no lines"
grep -q 'NumberOfPolys="0"' "$run/frames/0012/surface.vtp" || fail "the outline has triangles"
"$program" info "$run" >"$scratch/info"
grep -q "40 x 20 cells" "$scratch/info" || fail "info: cells"
grep -q "m2 at the start" "$scratch/info" || fail "info: areas"
"$program" check "$scratch/flat.lua" >"$scratch/check"
grep -q "flat.lua: fine" "$scratch/check" || fail "check warns"
if "$program" check "$scratch/flat.lua" --method tet 2>"$scratch/error"; then fail "tet takes 2D"; fi
grep -q 'flat.lua:2: domain.size has two numbers.*method = "uniform"' "$scratch/error" ||
    fail "what tet says: $(cat "$scratch/error")"

for format in ply obj vtk usd glb; do
    "$program" export "$run" --to $format --frames 10:12 -o "$scratch/$format" >/dev/null
    [ -n "$(find "$scratch/$format" -type f -size +100c)" ] || fail "export to $format"
done
if "$program" export "$run" --to vdb -o "$scratch/vdb" 2>"$scratch/error"; then fail "vdb"; fi
grep -q "2D" "$scratch/error" || fail "vdb: $(cat "$scratch/error")"
"$program" surface "$run" --frames 12:12 --resolution 320 -o "$scratch/again" >/dev/null
[ -s "$scratch/again/frames/0012/surface.ply" ] || fail "surface"
if "$program" surface "$run" --with hulls -o "$scratch/hulls" 2>"$scratch/error"; then
    fail "hulls in 2D"
fi
grep -q "2D" "$scratch/error" || fail "hulls: $(cat "$scratch/error")"
if "$program" render "$run" --frames 12 --width 200 --height 100 >"$scratch/log" 2>&1; then
    python3 - "$run/render/0012.png" <<'PY' || fail "the picture"
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
width, height = struct.unpack(">II", data[16:24])
assert (width, height) == (200, 100)
at, packed = 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    if kind == b"IDAT": packed += data[at + 8:at + 8 + size]
    at += 12 + size
raw, rows, before = zlib.decompress(packed), [], bytes(3 * width)
for j in range(height):
    kind, line = raw[j * (3 * width + 1)], bytearray(raw[j * (3 * width + 1) + 1:(j + 1) * (3 * width + 1)])
    for i in range(3 * width):
        a = line[i - 3] if i >= 3 else 0
        b, c = before[i], before[i - 3] if i >= 3 else 0
        p = a + b - c
        near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        line[i] = (line[i] + (0, a, b, (a + b) // 2, near)[kind]) & 255
    rows.append(bytes(line))
    before = rows[-1]
pixel = lambda x, y: rows[y][3 * x:3 * x + 3]
r, g, b = pixel(24, 90)   # water, at the left of the floor
assert b > g > r, (r, g, b)
r, g, b = pixel(180, 10)  # air
assert min(r, g, b) > 250, (r, g, b)
r, g, b = pixel(125, 88)  # the ball
assert max(r, g, b) - min(r, g, b) < 30 and r < 200, (r, g, b)
PY
else
    grep -q "cannot render" "$scratch/log" || fail "render: $(cat "$scratch/log")"
fi
"$program" compare "$run" "$scratch/two" -o "$scratch/compare.html" >/dev/null
grep -q "40 × 20 of" "$scratch/compare.html" || fail "compare: cells"
if ! "$program" view "$run" --save "$scratch/page.html" >"$scratch/log" 2>&1; then
    grep -q "this build" "$scratch/log" || fail "view: $(cat "$scratch/log")"
fi
echo "ok: a run in 2D"
