#!/usr/bin/env bash
# Two processes under sanitizers: a short run by each method that shares one, sources, solids and a
# narrow band among them. Open MPI's own leaks are not looked for; the library counts its bytes.
# test-labels: memory
#   ranks_sound.sh PROGRAM
set -u
mpi=$(dirname "$(realpath "$1")")/test/undine_mpi
[ -x "$mpi" ] && command -v mpirun >/dev/null || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 ASAN_OPTIONS=detect_leaks=0

cat >tank.lua <<'EOS'
scene { domain = { size = {0.6, 0.6, 1.2} }, detail = { coarsest = 6, finest = 20 },
        frames = { count = 1, rate = 24 },
        liquid = { box { min = {0, 0, 0}, max = {0.6, 0.4, 0.6} } },
        solids = { sphere { center = {0.3, 0.1, 0.9}, radius = 0.15 } },
        sources = { emitter { shape = sphere { center = {0.3, 0.5, 0.8}, radius = 0.08 },
                              velocity = {0, -1, -1} },
                    drain { shape = box { min = {0, 0, 1.1}, max = {0.6, 0.1, 1.2} } } },
        output = { surface = false } }
EOS
failed=0
try() { # DIRECTORY ARGUMENT...
    timeout 300 mpirun -n 2 "$mpi" run tank.lua --threads 1 --quiet -o "$@" >out.txt 2>&1 && return
    echo "FAILED: run -o $*: $(head -c 2000 out.txt)"
    failed=1
}
try uniform --method uniform --set solver.band=3
try uniform --method uniform --set solver.band=3 --resume --frames 2
try tet --method tet
try octree --method octree
[ $failed = 0 ] && echo "ranks_sound: nothing found in runs of two processes"
exit $failed
