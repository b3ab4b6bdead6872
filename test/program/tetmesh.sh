#!/usr/bin/env bash
# undine tetmesh: meshes of files and of scenes, their tags, and what is refused.
# test-labels: once
#   tetmesh.sh PROGRAM
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

# A cube of eight corners and twelve triangles, and the same without two of them.
cat >cube.obj <<'OBJ'
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
v 0 0 1
v 1 0 1
v 1 1 1
v 0 1 1
f 1 3 2
f 1 4 3
f 5 6 7
f 5 7 8
f 1 2 6
f 1 6 5
f 2 3 7
f 2 7 6
f 3 4 8
f 3 8 7
f 4 1 5
f 4 5 8
OBJ
head -n 18 cube.obj >open.obj
cat >pool.lua <<'LUA'
scene {
  domain = { size = {1, 1, 1} },
  detail = { finest = 24 },
  frames = { count = 1, rate = 24 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.6, 1} } },
  solids = {
    sphere { name = "ball", center = {0.5, 0.5, 0.5}, radius = 0.2 },
    plane { name = "floor", point = {0, 0.05, 0}, normal = {0, 1, 0} },
  },
}
LUA

# refuse STATUS WORDS ARGUMENT...: a sentence on standard error and no file
refuse() {
    local wanted=$1 words=$2
    shift 2
    rm -f none.vtu
    "$program" tetmesh "$@" >out.txt 2>err.txt
    local got=$?
    [ $got = "$wanted" ] || fail "tetmesh $*: status $got, not $wanted"
    grep -qF -- "$words" err.txt || fail "tetmesh $*: no \"$words\" in: $(cat err.txt)"
    [ "$(wc -l <err.txt)" = 1 ] || fail "tetmesh $*: more than a sentence: $(cat err.txt)"
    [ ! -e none.vtu ] || fail "tetmesh $*: wrote a file"
}

# check FILE LOW HIGH TAGS: reads the file; volume between LOW and HIGH, tags as listed
check() {
    python3 - "$@" <<'PY' || fail "$1"
import re, struct, sys
name, low, high, tags = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
data = open(name, 'rb').read()
start = data.index(b'<AppendedData encoding="raw">\n_') + len(b'<AppendedData encoding="raw">\n_')
head = data[:start].decode()
kinds = {'Int32': 'i', 'Float32': 'f', 'UInt8': 'B'}
arrays = {}
for kind, array, offset in re.findall(r'type="(\w+)" Name="(\w+)".*?offset="(\d+)"', head):
    at = start + int(offset)
    size = struct.unpack_from('<Q', data, at)[0]
    letter = kinds[kind]
    arrays[array] = struct.unpack_from('<%d%s' % (size // struct.calcsize(letter), letter), data, at + 8)
x, ends, corner = arrays['Points'], arrays['offsets'], arrays['connectivity']
types, tag = arrays['types'], arrays['tag']
volume = flux = 0
seen = set()
for c, end in enumerate(ends):
    begin = ends[c - 1] if c else 0
    p = [x[3 * n:3 * n + 3] for n in corner[begin:end]]
    if types[c] == 10:
        a, b, d = ([p[i][k] - p[0][k] for k in range(3)] for i in (1, 2, 3))
        cross = [b[1] * d[2] - b[2] * d[1], b[2] * d[0] - b[0] * d[2], b[0] * d[1] - b[1] * d[0]]
        part = sum(a[k] * cross[k] for k in range(3)) / 6
        assert part > 0 and tag[c] == 0
        volume += part
    else: # a triangle, seen from outside
        assert types[c] == 5 and tag[c] > 0
        seen.add(tag[c])
        u, v, w = p
        flux += (u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2])
                 + u[2] * (v[0] * w[1] - v[1] * w[0])) / 6
assert low < volume < high, volume
assert abs(flux - volume) < 1e-4 * volume, (flux, volume)
assert ','.join(map(str, sorted(seen))) == tags, seen
PY
}

"$program" tetmesh cube.obj -o cube.vtu --size 0.1 >out.txt 2>err.txt || fail "cube: $(cat err.txt)"
[ -s err.txt ] && fail "cube: says $(cat err.txt)"
grep -q "dihedral angles: [1-9][0-9]" out.txt || fail "no angles in: $(cat out.txt)"
check cube.vtu 0.97 1.001 1
"$program" tetmesh pool.lua -o pool.vtu --quiet >out.txt 2>&1 || fail "pool: $(cat out.txt)"
[ -s out.txt ] && fail "pool is not quiet: $(cat out.txt)"
check pool.vtu 0.5 0.53 1,2,3,4,7,8
"$program" tetmesh pool.lua --part ball -o ball.vtu --grading 1 >out.txt 2>&1 || fail "ball: $(cat out.txt)"
check ball.vtu 0.0325 0.0336 1
"$program" tetmesh pool.lua --set "liquid={sphere{center={0.5,0.88,0.5},radius=0.1}}" -o drop.vtu >out.txt 2>&1 ||
    fail "drop: $(cat out.txt)"
check drop.vtu 0.0038 0.0043 1
"$program" tetmesh open.obj -o open.vtu >out.txt 2>err.txt || fail "open: $(cat err.txt)"
grep -q "open edges" err.txt || fail "nothing is said of open edges: $(cat err.txt)"

refuse 2 "where to" cube.obj
refuse 2 "folder" cube.obj -o .
refuse 2 "no solid named bal" pool.lua --part bal -o none.vtu
refuse 2 "endless" pool.lua --part floor -o none.vtu
refuse 2 "only a scene" cube.obj --part ball -o none.vtu
refuse 1 "cannot open" missing.obj -o none.vtu
refuse 2 "positive" cube.obj --size -1 -o none.vtu
refuse 2 "too fine" cube.obj --size 1e-6 -o none.vtu
refuse 2 "as thick" cube.obj --size 8 -o none.vtu
refuse 2 "grading" cube.obj --grading 0.5 -o none.vtu
refuse 1 "memory" cube.obj --size 0.01 --memory 8M -o none.vtu
[ $failed = 0 ] && echo "tetmesh: meshes and refusals are right"
exit $failed
