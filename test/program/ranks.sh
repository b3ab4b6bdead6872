#!/usr/bin/env bash
# More than one process: a command that does not share its work is refused before it writes anything;
# `run`, `surface` and `render` make the same bytes on any number of ranks; a rank that fails or is
# killed ends all, with a message, and leaves no half-written file.
# test-labels: once slow
#   ranks.sh PROGRAM
set -u
program=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
complain() {
    echo "FAILED: $1"
    failed=1
}
cd "$scratch" || exit 1

cat >scene.lua <<'EOF'
scene { domain = { size = {1, 1, 1} }, detail = { finest = 12, surface = 24 },
        frames = { count = 7, rate = 24 }, liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } } }
EOF

# ---- refused, whichever launcher says so, in every build ----
refused() { # COUNT_NAME RANK_NAME WORDS ARGUMENT...
    local count=$1 rank=$2 words=$3 message status
    shift 3
    message=$(env "$count=2" "$rank=0" "$program" "$@" 2>&1)
    status=$?
    [ $status = 2 ] && [[ $message == *"$words"* ]] || complain "$count=2 undine $*: $status $message"
    message=$(env "$count=2" "$rank=1" "$program" "$@" 2>&1)
    status=$?
    [ $status = 0 ] && [ -z "$message" ] || complain "$count=2 $rank=1 undine $*: $status $message"
    [ -e out ] && complain "$count=2 undine $* wrote files"
}
refused OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK "works in one process" export out --to ply
refused PMI_SIZE PMI_RANK "works in one process" export out --to ply
refused SLURM_STEP_NUM_TASKS SLURM_PROCID "works in one process" export out --to ply
refused PMI_SIZE PMI_RANK "is without MPI" run scene.lua -o out
# the script of a job is one process, whatever it may start later
SLURM_NTASKS=16 SLURM_PROCID=0 OMPI_COMM_WORLD_SIZE=1 PMI_SIZE=8 "$program" run scene.lua -o run \
    --threads 1 --quiet || complain "a single process was refused"

# what several would need: less each, down to bars of rows
"$program" check scene.lua --method uniform --ranks 2 >two.txt || complain "check --ranks 2"
grep -q '2 processes' two.txt && grep -q 'at most about' two.txt || complain "check: $(cat two.txt)"
"$program" check scene.lua --method uniform --ranks 9 | grep -q 'only 4 of them have work' ||
    complain "check --ranks 9 finds work for all"
# and of a part of a curve: less than one process, more than an even part
"$program" check scene.lua --method tet --set detail.finest=64 --ranks 4 >four.txt || complain "check of tet"
awk '/^ *memory/ { of[n++] = $(NF - 1) * ($NF == "GB" ? 1000 : 1) }
     END { exit !(n == 2 && of[1] < 0.6 * of[0] && of[1] > 0.25 * of[0]) }' four.txt ||
    complain "check of tet on 4: $(cat four.txt)"
"$program" check scene.lua --method warp --ranks 2 >two.txt 2>&1 && complain "check of warp on 2"
grep -q 'warp works in one process only' two.txt || complain "check of warp: $(cat two.txt)"

# ---- with MPI ----
mpi=$(dirname "$program")/test/undine_mpi
if ! [ -x "$mpi" ] || ! command -v mpirun >/dev/null; then
    [ $failed = 0 ] && echo "ranks: refused where they should be; no MPI here"
    exit $failed
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
on() { # RANKS ARGUMENT...; standard output and error in out.txt
    local ranks=$1
    shift
    timeout 60 mpirun -n "$ranks" "$mpi" "$@" >out.txt 2>&1
    set -- $?
    grep 'rounds otherwise' out.txt && complain "a checkpoint is not what one process would save"
    return $1
}
no_parts() { # DIRECTORY: what is there was written whole
    local file
    for file in "$1"/frames/*/surface.ply; do
        [ -e "$file" ] || continue
        cmp -s "$file" "one/${file#"$1"/}" || complain "$file is not that of one process"
    done
}

"$program" surface run -o one --threads 1 --quiet || complain "surface"
for ranks in 1 3; do
    on $ranks surface run -o many$ranks --threads 1 || complain "surface on $ranks: $(cat out.txt)"
    diff -r one many$ranks >diff.txt || complain "surface on $ranks: $(cat diff.txt)"
    [ "$(grep -c 'done: 8 surfaces' out.txt)" = 1 ] || complain "on $ranks it says: $(cat out.txt)"
done
cp -r one two
picture=(--width 64 --height 36 --samples 1 --threads 1)
"$program" render one "${picture[@]}" --frames 0:2 --quiet || complain "render"
on 3 render two "${picture[@]}" --frames 0:2 || complain "render on 3: $(cat out.txt)"
diff -r one/render two/render || complain "pictures differ"
cmp one/movie.mp4 two/movie.mp4 || complain "the films differ"

# what all ranks find is said once
on 3 surface nowhere && complain "it made surfaces of nothing"
[ "$(grep -c '^undine: .*has no frames' out.txt)" = 1 ] || complain "no frames: $(cat out.txt)"
on 3 run nowhere.lua && complain "it ran without a scene"
[ "$(grep -c '^undine: .*nowhere.lua' out.txt)" = 1 ] || complain "no scene: $(cat out.txt)"
on 3 surface run --resolution 9999 && complain "9999 cells were accepted"
[ "$(grep -c '^undine: the resolution' out.txt)" = 1 ] || complain "resolution: $(cat out.txt)"
on 2 run scene.lua -o out --method warp && complain "run by warp on 2 ranks was not refused"
[ "$(grep -c '^undine: this version simulates by method warp in one process' out.txt)" = 1 ] ||
    complain "run on 2: $(cat out.txt)"
[ -e out ] && complain "run on 2 ranks wrote files"

# ---- ranks that would not compute alike ----
apart() { # WORDS COMMAND...: rank 1 is started as that
    local words=$1
    shift
    timeout 60 mpirun -n 1 "$mpi" run scene.lua -o out --threads 1 : \
        -n 1 "$@" run scene.lua -o out --threads 1 >out.txt 2>&1 && complain "$words: it ran"
    [ "$(grep -c "^undine: run: rank 1, on .*$words" out.txt)" = 1 ] || complain "$words: $(cat out.txt)"
    [ -e out ] && complain "$words: it wrote files"
}
if readelf -n "$mpi" 2>/dev/null | grep -q "Build ID"; then
    python3 - "$mpi" "$(readelf -n "$mpi" | sed -n 's/.*Build ID: *//p')" <<'EOF'
import sys
build = bytes.fromhex(sys.argv[2])
with open(sys.argv[1], "rb") as file:
    program = file.read()
with open("another", "wb") as file:
    file.write(program.replace(build, build[::-1]))
EOF
    chmod +x another
    apart "another build" ./another
fi
# GNU's C library takes other functions on processors without fused multiplication
if grep -qw fma /proc/cpuinfo && getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    apart "last bits" env GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4 "$mpi"
fi

# Open MPI gives rank 0 a terminal even where a job's output goes to a file
export TERM=${TERM:-xterm}
on 2 run scene.lua -o lines --frames 2 --threads 1 || complain "lines: $(cat out.txt)"
grep -q $'\033' out.txt && complain "a bar in a file"
[ "$(grep -c '^frame' out.txt)" = 3 ] || complain "not a line a frame in a file: $(cat out.txt)"
script -qec "timeout 60 mpirun -n 2 $mpi run scene.lua -o bar --frames 2 --threads 1" bar.txt >/dev/null
if mpirun --version 2>/dev/null | grep -q "Open MPI"; then
    grep -q $'\r' bar.txt || complain "no bar on a terminal: $(cat bar.txt)"
fi

# ---- a run, as one process makes it: frames, probes, and all of stats.csv but bytes and seconds ----
cat >tank.lua <<'EOF'
scene { method = "uniform", domain = { size = {1, 0.6, 1.4}, open = {"top"} },
        detail = { finest = 24, surface = 16 }, frames = { count = 4, rate = 20 },
        liquid = { box { min = {0, 0, 0}, max = {0.15, 0.5, 1.4} } },
        solids = { cylinder { from = {0.5, 0, 0.6}, to = {0.5, 1, 0.6}, radius = 0.12, friction = 0.3 },
                   box { min = {0.7, 0.05, 0.2}, max = {0.72, 0.4, 1.2}, velocity = {-0.5, 0, 0.4} } },
        sources = { emitter { shape = sphere { center = {0.2, 0.4, 0.7}, radius = 0.07 },
                              velocity = {1, 0, 2.5}, to = 0.15 },
                    drain { shape = box { min = {0.3, 0, 0}, max = {1, 0.1, 1.4} } } },
        probes = { front { axis = "x" }, height { at = {0.1, 0.5} }, wet { axis = "x" },
                   pressure { at = {0.05, 0.05, 0.7} } },
        output = { mesh = true } }
EOF
cat >flat.lua <<'EOF'
scene { method = "uniform", domain = { size = {1, 1} }, detail = { finest = 40, surface = 30 },
        frames = { count = 6, rate = 24 }, liquid = { box { min = {0, 0}, max = {0.4, 0.8} } },
        solids = { sphere { center = {0.7, 0.1}, radius = 0.1 } },
        probes = { front { axis = "x" }, flux { min = {0.5, 0}, max = {0.5, 1} } } }
EOF
cat >stream.lua <<'EOF'
scene { method = "uniform", domain = { size = {1, 1, 1} }, detail = { finest = 16, surface = 16 },
        frames = { count = 2, rate = 60 }, -- nothing at first
        sources = { emitter { shape = sphere { center = {0.5, 0.5, 0.5}, radius = 0.15 },
                              velocity = {0, -1, 0} } } }
EOF
cat >pillar.lua <<'EOF'
scene { method = "uniform", domain = { size = {0.8, 1, 2} }, detail = { finest = 56 },
        frames = { count = 2, rate = 40 }, -- 20 thousand rows, which all ranks solve
        liquid = { box { min = {0, 0, 0}, max = {0.7, 0.9, 1.8} } },
        solids = { cylinder { from = {0.4, 0, 1}, to = {0.4, 1, 1}, radius = 0.1 } },
        output = { surface = false } }
EOF
cat >along.lua <<'EOF'
scene { method = "uniform", domain = { size = {0.05, 0.25, 2} }, detail = { finest = 160 },
        frames = { count = 10, rate = 20 }, -- runs along z, from bar to bar
        liquid = { box { min = {0, 0, 0}, max = {0.05, 0.2, 0.5} } },
        probes = { pressure { at = {0.02, 0.02, 0.7} }, velocity { at = {0.02, 0.02, 0.6}, axis = "z" } },
        output = { surface = false } }
EOF
cat >deep.lua <<'EOF'
scene { method = "uniform", domain = { size = {0.5, 0.6, 1.2} }, detail = { finest = 36 },
        frames = { count = 3, rate = 24 }, solver = { band = 3 }, -- the grid carries deep liquid
        liquid = { box { min = {0, 0, 0}, max = {0.5, 0.45, 0.7} } },
        solids = { sphere { center = {0.25, 0.1, 0.9}, radius = 0.1 } },
        sources = { emitter { shape = sphere { center = {0.25, 0.5, 0.9}, radius = 0.05 },
                              velocity = {0, -1, -1} } },
        output = { surface = false } }
EOF
cat >afloat.lua <<'EOF'
scene { method = "uniform", domain = { size = {0.06, 0.06, 0.1} }, detail = { finest = 28, surface = 16 },
        frames = { count = 3, rate = 60 }, fluid = { surface_tension = 0.07 },
        liquid = { union { box { min = {0, 0, 0}, max = {0.06, 0.02, 0.1} },
                           sphere { center = {0.03, 0.04, 0.06}, radius = 0.012 } },
                   velocity = {0, 0, 0.1} },
        solids = { solid { sphere { center = {0.03, 0.02, 0.03}, radius = 0.01 }, density = 30,
                           contact_angle = 110 },
                   solid { box { min = {0.02, 0.025, 0.07}, max = {0.04, 0.03, 0.09} }, density = 2000 } } }
EOF
cat >honey.lua <<'EOF'
scene { method = "uniform", domain = { size = {0.6, 0.6, 1} }, detail = { finest = 24, surface = 16 },
        frames = { count = 3, rate = 30 },
        fluid = { viscosity = function(x, y, z) return z < 0.3 and 10 or 0 end,
                  density = function(x, y, z) return z < 0.3 and 1400 or 1000 end },
        liquid = { box { min = {0, 0, 0}, max = {0.6, 0.3, 0.5} } },
        solids = { solid { sphere { center = {0.3, 0.4, 0.3}, radius = 0.12 }, density = 700 } },
        sources = { emitter { shape = sphere { center = {0.3, 0.5, 0.7}, radius = 0.1 },
                              velocity = {0, -1, 0}, viscosity = 5, density = 1200 } },
        probes = { pressure { at = {0.1, 0.05, 0.3} } } }
EOF
# adaptive: sheets, drops, solids that stand and move, what comes and goes
cat >splash.lua <<'EOF'
scene { method = "tet", domain = { size = {1, 0.8, 0.7}, open = {"top"} },
        detail = { coarsest = 5, finest = 32, surface = 24 }, frames = { count = 3, rate = 20 },
        liquid = { union { box { min = {0, 0, 0}, max = {0.3, 0.6, 0.7} },
                           box { min = {0, 0, 0}, max = {1, 0.08, 0.7} } } },
        solids = { sphere { center = {0.6, 0.1, 0.3}, radius = 0.12, friction = 0.3 },
                   box { min = {0.8, 0.1, 0.2}, max = {0.9, 0.5, 0.6}, velocity = {-0.5, 0, 0.1} } },
        sources = { emitter { shape = sphere { center = {0.5, 0.5, 0.35}, radius = 0.06 },
                              velocity = {1, -1, 0}, to = 0.15 },
                    drain { shape = box { min = {0.9, 0, 0}, max = {1, 0.05, 0.7} } } },
        sizing = { custom = function(x, y, z, t) return x > 0.5 and 0.05 or 0.2 end },
        probes = { front { axis = "x" }, front { name = "top", axis = "y" }, height { at = {0.1, 0.5} },
                   pressure { at = {0.2, 0.1, 0.4} }, -- those that ranks find together
                   velocity { at = {0.2, 0.1, 0.4}, axis = "x" }, wet { axis = "z" },
                   flux { min = {0.35, 0, 0}, max = {0.35, 0.8, 0.7} } },
        output = { mesh = true } }
EOF
# viscous liquid that differs from place to place, sticks to one side and slides along the others, and
# an emitter that is below the surface once it has begun; bodies that the liquid moves, two of which
# touch
cat >syrup.lua <<'EOF'
scene { method = "tet", domain = { size = {0.6, 0.5, 0.8}, slip = { left = 0.02, right = 0.02 } },
        detail = { coarsest = 6, finest = 20, surface = 16 }, frames = { count = 2, rate = 30 },
        fluid = { viscosity = function(x, y, z) return z < 0.3 and 10 or 0 end,
                  density = function(x, y, z) return z < 0.3 and 1400 or 1000 end },
        liquid = { box { min = {0, 0, 0}, max = {0.6, 0.25, 0.5} } },
        solids = { solid { box { min = {0.15, 0.15, 0.05}, max = {0.35, 0.3, 0.35} }, density = 800 },
                   solid { sphere { center = {0.47, 0.15, 0.25}, radius = 0.1 }, density = 2000,
                           spin = {0, 2, 1} } },
        sources = { emitter { shape = sphere { center = {0.3, 0.4, 0.6}, radius = 0.08 },
                              velocity = {0, -1, 0}, viscosity = 5, density = 1200 } } }
EOF
# surface tension at solids of several angles, one of which the liquid moves
cat >bob.lua <<'EOF'
scene { method = "tet", domain = { size = {0.06, 0.06, 0.1}, contact_angle = 60 },
        detail = { coarsest = 5, finest = 20, surface = 16 }, frames = { count = 2, rate = 60 },
        fluid = { surface_tension = 0.07 },
        liquid = { union { box { min = {0, 0, 0}, max = {0.06, 0.02, 0.1} },
                           sphere { center = {0.03, 0.04, 0.06}, radius = 0.012 } },
                   velocity = {0, 0, 0.1} },
        solids = { solid { sphere { center = {0.03, 0.02, 0.03}, radius = 0.012 }, density = 400,
                           contact_angle = 110 },
                   box { min = {0.01, 0, 0.07}, max = {0.05, 0.03, 0.09}, contact_angle = 40 } },
        probes = { front { axis = "x" } } }
EOF
# the same with the level set of hulls
sed 's/probes = {/solver = { surface = "hulls" }, probes = {/' bob.lua >hulls.lua
# a vessel thinner than its cells is moved, tilted and filled in liquid, among small cells and large
cat >vessel.lua <<'EOF'
scene { method = "tet", domain = { size = {0.8, 0.8, 0.8}, open = {"top"} },
        detail = { coarsest = 4, finest = 20, surface = 16 }, frames = { count = 2, rate = 20 },
        liquid = { union { box { min = {0, 0, 0}, max = {0.8, 0.2, 0.8} },
                           box { min = {0.3, 0.4, 0.3}, max = {0.5, 0.6, 0.5} } } },
        solids = { solid { subtract { box { min = {0.18, 0.15, 0.18}, max = {0.62, 0.5, 0.62} },
                                      box { min = {0.2, 0.17, 0.2}, max = {0.6, 0.9, 0.6} } },
                           pose = function(t) return { rotate = {0, 20, 15 + 40 * t}, about = {0.4, 0.3, 0.4},
                                                       by = {0.3 * t, 0, 0} } end,
                           name = "vessel" } },
        sources = { emitter { shape = sphere { center = {0.4, 0.32, 0.4}, radius = 0.05 },
                              velocity = {0.5, -2, 0.3} } },
        sizing = { custom = function(x, y, z, t) return x > 0.4 and 0.04 or 0.2 end },
        probes = { force { body = "vessel" }, front { axis = "x" }, velocity { at = {0.4, 0.25, 0.4}, axis = "y" } } }
EOF
# the same on leaves, viscous and with surface tension
sed -e 's/"tet"/"octree"/' -e 's/finest = 32/finest = 24/' -e 's/count = 3/count = 2/' \
    -e 's/probes = {/fluid = { surface_tension = 0.07, viscosity = 2 }, probes = { wet { name = "along", axis = "x" },/' \
    splash.lua >spill.lua
# on leaves, of which each rank knows a part: solids that move, what comes and goes, cells for mesh.vtu;
# a thin vessel; surface tension, bodies that the liquid moves
sed -e 's/"tet"/"octree"/' -e 's/finest = 32/finest = 24/' -e 's/count = 3/count = 2/' splash.lua >swash.lua
sed 's/"tet"/"octree"/' vessel.lua >cup.lua
sed 's/"tet"/"octree"/' bob.lua >buoy.lua
# viscous: a sheet from an emitter that folds onto a layer, a block that sinks around a pillar, a body
# that floats
cat >fold.lua <<'EOF'
scene { method = "octree", domain = { size = {1, 0.8, 0.6} }, detail = { coarsest = 6, finest = 24, surface = 16 },
        frames = { count = 2, rate = 20 }, fluid = { viscosity = 5 },
        liquid = { union { box { min = {0, 0, 0}, max = {0.35, 0.4, 0.6} },
                           box { min = {0, 0, 0}, max = {1, 0.1, 0.6} } }, velocity = {0.5, 0, 0} },
        solids = { cylinder { from = {0.4, 0, 0.15}, to = {0.4, 0.8, 0.15}, radius = 0.08 },
                   solid { sphere { center = {0.8, 0.12, 0.4}, radius = 0.1 }, density = 600 } },
        sources = { emitter { shape = box { min = {0.47, 0.42, 0.1}, max = {0.54, 0.5, 0.5} }, velocity = {0, -3, 0} } },
        probes = { pressure { at = {0.2, 0.1, 0.3} }, velocity { at = {0.5, 0.05, 0.3}, axis = "y" } },
        output = { mesh = true } }
EOF
same_run() { # DIRECTORY DIRECTORY
    diff -r "$1/frames" "$2/frames" >diff.txt && cmp "$1/probes.csv" "$2/probes.csv" >>diff.txt &&
        { ! [ -e "$1/bodies.csv" ] || cmp "$1/bodies.csv" "$2/bodies.csv"; } >>diff.txt 2>&1 &&
        diff <(cut -d, -f-19 "$1/stats.csv") <(cut -d, -f-19 "$2/stats.csv") >>diff.txt ||
        complain "$2 is not $1: $(head -c 600 diff.txt)"
}
on_ranks() { # SCENE RANKS
    [ -e $1 ] || "$program" run $1.lua -o $1 --threads 1 --quiet || complain "run $1.lua"
    on $2 run $1.lua -o $1$2 --threads 1 || complain "$1 on $2: $(cat out.txt)"
    [ "$(grep -c '^done: ' out.txt)" = 1 ] || complain "$1 on $2 says: $(cat out.txt)"
    same_run $1 $1$2
}
on_ranks pillar 3
# each rank has written a third of the particles of frames 0 and 1 and of a checkpoint, in blocks of 1 MiB
awk -F, 'NR == 1 { next } { wrote[$3] += $17; all += $17 }
    END { for (r = 0; r < 3; r++) { print r, wrote[r]; if (!(wrote[r] > all / 5 && wrote[r] > 4e6)) bad = 1 }
          exit bad }' pillar3/ranks.csv >written.txt || complain "ranks write unevenly: $(cat written.txt)"
awk -F, 'NR > 2 && $7 < 17000 { exit 1 }' pillar/stats.csv || complain "rank 0 solves pillar.lua alone"
on_ranks tank 3
on_ranks flat 2
on_ranks stream 3
# bars are cut again while the liquid runs across them: no rank has much more work than the mean
# (particles and half as many cells; 1.8 times as much where they are not), and no particle is lost
on_ranks along 3
[ -e along/ranks.csv ] && complain "one process has a ranks.csv"
awk -F, 'NR == 1 { next } $3 == 0 { sum = most = all = 0 }
    { work = $4 + $5 / 2; sum += work; all += $4; moved += $7; cuts = $13; if (work > most) most = work }
    $3 == 2 && all != 20480 { print "particles: " all; bad = 1 }
    $3 == 2 && most > 1.35 * sum / 3 { print "step " $1 ": " 3 * most / sum " times the mean"; bad = 1 }
    END { if (cuts < 2 || moved < 1000) print cuts " cuts, " moved " moved"
          exit bad || cuts < 2 || moved < 1000 }' along3/ranks.csv || complain "along.lua on 3 is uneven"
# a narrow band of particles, whose checkpoint of 3 ranks goes on with 2
on_ranks deep 3
awk -F, 'NR == 2 { all = $5 } END { exit $5 > all / 2 }' deep/stats.csv || complain "deep.lua has no band"
on 3 run deep.lua -o band --threads 1 --frames 1 || complain "half a band: $(cat out.txt)"
on 2 run deep.lua -o band --threads 1 --resume || complain "2 ranks go on: $(cat out.txt)"
same_run deep band
# surface tension and bodies; viscous liquid that differs from place to place
on_ranks afloat 2
on_ranks honey 3
on 3 run honey.lua -o sticky --threads 1 --frames 1 || complain "some honey: $(cat out.txt)"
on 2 run honey.lua -o sticky --threads 1 --resume || complain "2 ranks go on: $(cat out.txt)"
same_run honey sticky
# the adaptive method, and its checkpoint of 2 ranks goes on with 5 and alone
on_ranks splash 3
awk -F, 'NR > 1 { moved += $7; copies += $6 } END { exit moved < 1000 || copies < 10000 }' \
    splash3/ranks.csv || complain "hardly anything passes between ranks: $(head -4 splash3/ranks.csv)"
on 2 run splash.lua -o split --threads 1 --frames 1 || complain "half a splash: $(cat out.txt)"
cp -r split lone
on 5 run splash.lua -o split --threads 1 --resume || complain "5 ranks go on: $(cat out.txt)"
same_run splash split
"$program" run splash.lua -o lone --threads 1 --resume >out.txt 2>&1 || complain "one goes on"
grep 'rounds otherwise' out.txt && complain "a checkpoint is not what one process would save"
same_run splash lone
on_ranks bob 3
on_ranks hulls 3
cmp -s bob/stats.csv hulls/stats.csv && complain "hulls.lua has the level set of bob.lua"
on_ranks vessel 3
on_ranks syrup 3
awk -F, 'NR > 2 && !($38 > 0) { exit 1 }' syrup/stats.csv || complain "syrup.lua is not viscous"
for scene in spill swash fold; do
    on_ranks $scene 3
    awk -F, 'NR > 1 { moved += $7; copies += $6 } END { exit moved < 500 || copies < 5000 }' \
        ${scene}3/ranks.csv || complain "$scene: hardly anything passes between ranks: $(head -4 ${scene}3/ranks.csv)"
    on 2 run $scene.lua -o part_$scene --threads 1 --frames 1 || complain "half a $scene: $(cat out.txt)"
    on 5 run $scene.lua -o part_$scene --threads 1 --resume || complain "5 ranks go on: $(cat out.txt)"
    same_run $scene part_$scene
done
on_ranks cup 3
on_ranks buoy 3

# a checkpoint of 3 ranks goes on with 5, of which one has nothing to do, and alone
on 3 run tank.lua -o half --threads 1 --frames 2 || complain "half a run: $(cat out.txt)"
cp -r half alone
on 5 run tank.lua -o half --threads 1 --resume || complain "5 ranks go on: $(cat out.txt)"
same_run tank half
"$program" run tank.lua -o alone --threads 1 --resume >out.txt 2>&1 || complain "one goes on"
grep 'rounds otherwise' out.txt && complain "a checkpoint is not what one process would save"
same_run tank alone
# rank 0 cannot write a frame: all end, and the run can be resumed
mkdir -p stuck/frames
echo "in the way" >stuck/frames/0004
start=$SECONDS
on 2 run flat.lua -o stuck --threads 1 && complain "a frame that cannot be written was"
grep -q 'undine: .*stuck/frames/0004' out.txt || complain "no word of frame 4: $(cat out.txt)"
[ $((SECONDS - start)) -le 10 ] || complain "it took $((SECONDS - start)) s to end"
rm stuck/frames/0004
"$program" run flat.lua -o stuck --threads 1 --resume --quiet || complain "resuming"
same_run flat stuck

# a full disk, and no memory on one rank, in the second half of a run: all end with a message, and
# the run goes on
limited() { # RANK LIMIT DIRECTORY: pillar.lua goes on with a limit on one rank
    (
        trap '' XFSZ
        timeout 60 mpirun -n 3 bash -c "[ \$OMPI_COMM_WORLD_RANK = $1 ] && ulimit $2; exec \"\$@\"" - \
            "$mpi" run pillar.lua -o $3 --threads 1 --resume >out.txt 2>&1
    )
}
on 3 run pillar.lua -o first --threads 1 --frames 1 || complain "half of pillar.lua: $(cat out.txt)"
for rank in 0 2; do
    cp -r first full$rank
    start=$SECONDS
    # KB, more than MPI itself needs; particles.vtp takes 9 MB, of which each rank writes every third
    limited $rank "-f 5000" full$rank && complain "a full disk of rank $rank went unnoticed"
    [ "$(grep -c "^undine: cannot write full$rank/frames/0002/particles.vtp" out.txt)" = 1 ] ||
        complain "no word of a full disk: $(cat out.txt)"
    [ $((SECONDS - start)) -le 10 ] || complain "it took $((SECONDS - start)) s to end"
    [ -z "$(ls full$rank/frames/0002)" ] || complain "half a file is left: $(ls full$rank/frames/0002)"
done
# how much memory is too little depends on the machine
for limit in 320000 300000 280000 260000 240000 none; do # KB
    rm -rf short
    cp -r first short
    start=$SECONDS
    [ $limit = none ] || limited 1 "-v $limit" short || break
done
[ $limit = none ] && complain "no memory on one rank was never too little"
grep -q 'undine: .*out of memory' out.txt || complain "no word of memory, $limit KB: $(cat out.txt)"
[ $((SECONDS - start)) -le 10 ] || complain "it took $((SECONDS - start)) s to end"
for run in full0 full2 short; do
    on 2 run pillar.lua -o $run --threads 1 --resume || complain "$run does not go on: $(cat out.txt)"
    same_run pillar $run
done

# one rank cannot write its frame; the others are told within seconds
mkdir -p bad/frames
echo "in the way" >bad/frames/0004
start=$SECONDS
on 3 surface run -o bad --threads 1 && complain "a frame that cannot be written was"
grep -q '^undine: .*bad/frames/0004' out.txt || complain "no word of frame 4: $(cat out.txt)"
[ $((SECONDS - start)) -le 10 ] || complain "it took $((SECONDS - start)) s to end"
no_parts bad

# one rank gets a signal while all are busy
end_one() { # SIGNAL WORDS ARGUMENT...
    local signal=$1 words=$2 job children process killed
    shift 2
    timeout 60 mpirun -n 3 "$mpi" "$@" >out.txt 2>&1 &
    job=$!
    for _ in $(seq 100); do
        children=()
        for process in $(pgrep -x undine_mpi); do # those of this test: others may run beside it
            [ "$(readlink "/proc/$process/cwd")" = "$(pwd -P)" ] && children+=("$process")
        done
        [ ${#children[@]} = 3 ] && break
        sleep 0.1
    done
    if [ ${#children[@]} = 3 ]; then
        sleep 0.5
        kill -$signal "${children[1]}"
        killed=$SECONDS
        wait $job && complain "all is well without rank 1"
        [ $((SECONDS - killed)) -le 10 ] || complain "it took $((SECONDS - killed)) s to end"
        grep -qi "$words" out.txt || complain "$signal: no \"$words\" in $(cat out.txt)"
        pgrep -P $job >/dev/null && complain "ranks are left"
    else
        complain "found ${#children[@]} ranks, not 3"
        wait $job
    fi
}
end_one KILL killed surface run -o killed --resolution 400 --threads 1
end_one KILL killed run tank.lua -o killed_run --set frames.count=9000 --threads 1
end_one TERM "interrupted after frame" run tank.lua -o stopped --set frames.count=9000 --threads 1
grep -q '"status": "interrupted"' stopped/run.json || complain "stopped: $(grep status stopped/run.json)"

[ $failed = 0 ] && echo "ranks: refused where they should be; same bytes on 1, 2, 3 and 5; failures end all"
exit $failed
