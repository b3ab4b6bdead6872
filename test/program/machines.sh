#!/usr/bin/env bash
# Two machines: network namespaces with a cable between them, each with a host name of its own, whose
# processes reach each other by TCP alone. Runs on both have the bytes of one process; a machine that
# does not share the folder is named; one that dies ends the run, and --resume goes on. Needs root,
# iproute2 and Open MPI.
# test-labels: once slow
#   machines.sh PROGRAM
set -u
program=$(realpath "$1")
mpi=$(dirname "$program")/test/undine_mpi
[ "$(id -u)" = 0 ] && [ -x "$mpi" ] && command -v ip unshare >/dev/null || exit 77
mpirun --version 2>/dev/null | grep -q "Open MPI" || exit 77
here=una$$
there=unb$$
scratch=$(mktemp -d)
clean() {
    local machine
    for machine in $here $there; do
        ip netns pids $machine 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del $machine 2>/dev/null
    done
    rm -rf "$scratch"
}
trap clean EXIT
cd "$scratch" || exit 1
{ ip netns add $here && ip netns add $there &&
    ip link add a$$ netns $here type veth peer name b$$ netns $there; } 2>/dev/null || exit 77
ip -n $here address add 10.77.0.1/24 dev a$$
ip -n $there address add 10.77.0.2/24 dev b$$
for end in "$here a$$" "$there b$$"; do
    ip -n ${end% *} link set lo up
    ip -n ${end% *} link set ${end#* } up
done

failed=0
complain() {
    echo "FAILED: $1"
    failed=1
}
# What mpirun calls instead of ssh. A machine without the folder has one of its own in its place.
cat >login.sh <<EOF
#!/bin/sh
case \$1 in 10.77.0.1) name=$here ;; *) name=$there ;; esac
shift
exec ip netns exec \$name unshare --uts --mount sh -c "hostname \$name
    [ -e '$scratch/apart' ] && [ \$name = $there ] && mkdir -p away && mount --bind away shared
    cd '$scratch' && \$*"
EOF
chmod +x login.sh
mkdir shared
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_plm_rsh_agent="$scratch/login.sh" OMPI_MCA_btl=tcp,vader,self \
    OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
on_both() { # ARGUMENT...; three processes, two of them here
    timeout 120 ip netns exec $here unshare --uts sh -c 'hostname $0; exec mpirun "$@"' $here \
        --host 10.77.0.1:2,10.77.0.2:2 -n 3 "$mpi" "$@" --threads 1 --quiet >out.txt 2>&1
}
same() { # DIRECTORY: its frames are those of one process
    diff -r one/frames "$1/frames" >diff.txt || complain "$1: $(cat diff.txt)"
}

cat >dam.lua <<'EOF'
scene { domain = { size = {1, 1, 1} }, detail = { coarsest = 8, finest = 16 },
        frames = { count = 4, rate = 24 }, liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } },
        solids = { sphere { center = {0.7, 0.1, 0.4}, radius = 0.15 } } }
EOF
for method in uniform tet octree; do
    "$program" run dam.lua -o one --method $method --threads 1 --quiet || complain "one process"
    on_both run dam.lua -o shared/$method --method $method || complain "$method: $(cat out.txt)"
    same shared/$method
done
grep -q "BYTES" <(ip -n $here -s link show a$$ | awk '/TX/ { getline; if ($1 > 100000) print "BYTES" }') ||
    complain "nothing went through the cable"

# ---- a machine dies ----
on_both run dam.lua -o shared/killed --method octree --frames 400 &
run=$!
for ((i = 0; i < 600; i++)); do
    [ -e shared/killed/frames/0002/surface.ply ] && break
    sleep 0.1
done
began=$SECONDS
ip netns pids $there | xargs -r kill -9
wait $run && complain "it went on without a machine"
[ $((SECONDS - began)) -le 10 ] || complain "it took $((SECONDS - began)) s to notice"
on_both run dam.lua -o shared/killed --method octree --resume || complain "resume: $(cat out.txt)"
for frame in 0 1 2 3 4; do
    cmp one/frames/000$frame/surface.ply shared/killed/frames/000$frame/surface.ply ||
        complain "resumed, frame $frame"
done

# ---- a folder that only one of them has ----
touch apart
on_both run dam.lua -o shared/apart --method tet && complain "it ran without a shared folder"
grep -q "$there.*share\|share.*$there" out.txt || complain "no shared folder: $(cat out.txt)"

[ $failed = 0 ] && echo "machines: two make the files of one, and a dead one ends both"
exit $failed
