#!/usr/bin/env bash
# All that `make check` does once the packages are there: every build, every test under each build
# that can find something of its own, and one line at the end that sums up.
#   gcc       as released, warnings being errors: all tests but those labelled timing
#             (`make bench-parts`) or memory (hostile input, failing allocations: asan sees more)
#   asan      clang, warnings being errors too, with the address and undefined-behaviour
#             sanitizers: the same tests but those labelled once (nothing to do with the build).
#             Null pointers and bounds are the address sanitizer's; leaving out what the other one
#             does for them (UNDINE_SANITIZE_LESS) halves the time to compile. `make fuzz` has all
#   tsan      thread sanitizer, the same tests where there are threads
#   petsc     where PETSc is installed: the linear solvers with it
# CHECK="gcc asan" runs only those.
set -u
jobs=$(nproc)
passed=0
failed=0
report=""

# What LIST names, a line a folder, as a pattern for ctest, whose patterns may have ten groups at
# most: folder/ for all of it, else folder/test test ...
pattern() { # LIST
    local folder names name all=""
    while read -r folder names; do
        [ -z "$folder" ] && continue
        [ -z "$names" ] && all+="|^$folder/"
        for name in $names; do all+="|^$folder/$name"; done
    done <<<"$1"
    echo "${all#|}"
}

# scenes and files are one thread's business, and some of their tests watch the clock; promises/bits
# takes the rest through their threads, with every method; tests of ranks have one thread each
skip_tsan=$(pattern '
scene
output
fuzz
view
export
state
sizing
tension
bodies
run bare faults resume likeness
program kill hostile cli again render flat plates
method conforming octree warp uniform_viscous tet_viscous staggered_viscous tet_physics uniform_physics
method uniform_band
promises runs glass vessels fall scale memory flow sheets surface rest
pressure
viscosity
linalg block amg
mesh warp tet_walls
surface tet_distance marching hulls cluster hull_level_set track
geometry meshshape meshsides
render touch
particles correct_sized
advect collide
ranks
')
# physics of code that other tests take through every branch; promises take each method through all
# of its own
skip_asan=$(pattern '
method tet uniform_viscous staggered octree conforming warp$ tet_physics uniform_physics
program again plates kill
promises glass vessels fall scale flow sheets surface rest
tension
linalg block amg
state soak
bodies free
viscosity grid
')
only_petsc='^(linalg|pressure)/'

# The programs of the tests that PRESET runs, where it does not run all: test_mesh for mesh/, and
# test_run_faults for what has one of its own.
targets() { # PRESET
    local select
    case $1 in
    tsan) select=(-v -E "$skip_tsan") && echo undine_app ;;
    petsc) select=(-E "$only_petsc") ;;
    *) return ;;
    esac
    cmake --build --preset "$1" --target help |
        sed -n 's/^test_\([a-z]*\)_*\([a-z_0-9]*\): phony$/\1\/\2/p' | grep "${select[@]}" |
        sed 's/^\([a-z]*\)\//test_\1_/; s/_$//'
}

build() { # PRESET [cmake option...]
    cmake --preset "$@" >"$log" || return
    local names
    mapfile -t names < <(targets "$1")
    cmake --build --preset "$1" -j "$jobs" ${names[0]:+--target "${names[@]}"} >"$log"
}

run_tests() { # PRESET FOLDER [ctest option...]
    local name=$1 folder=$2 start=$SECONDS built=$((SECONDS - began))
    shift 2
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure "$@" | tee "$log" |
        grep -v '^ *Start\|^Internal\|^Test project' || true
    # "98% tests passed, 1 tests failed out of 42"
    local counts bad all
    counts=$(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\).*/\1 \2/p' "$log")
    read -r bad all <<<"${counts:-1 1}"
    passed=$((passed + all - bad))
    failed=$((failed + bad))
    report="$report$(printf '  %-8s %4d passed %4d failed  built in %3d s, tested in %3d s' "$name" \
        $((all - bad)) "$bad" "$built" $((SECONDS - start)))"$'\n'
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for step in ${CHECK:-gcc asan tsan petsc}; do
    echo "== $step"
    began=$SECONDS
    if [ "$step" = petsc ] && ! pkg-config --exists petsc mpi-c; then
        report="$report  petsc    not installed, not tested"$'\n'
        continue
    fi
    if ! build "$step" -DUNDINE_TESTS=ON; then
        cat "$log"
        report="$report$(printf '  %-8s does not build' "$step")"$'\n'
        failed=$((failed + 1))
        continue
    fi
    case $step in
    # one more at once than there are cores: some wait for a browser or a clock
    gcc) run_tests gcc build/gcc -LE 'timing|memory' -j $((jobs + 1)) ;;
    asan) run_tests asan build/asan -LE 'timing|once' -E "$skip_asan" -j $((jobs + 1)) ;;
    petsc) run_tests petsc build/petsc -R "$only_petsc" -LE timing ;;
    tsan) run_tests tsan build/tsan -LE 'timing|once' -E "$skip_tsan" ;;
    esac
done

printf '\n%s%d passed, %d failed\n' "$report" "$passed" "$failed"
[ "$failed" -eq 0 ]
