#!/usr/bin/env bash
# Installs the Debian packages of the named groups that are not there yet; says nothing when none
# is missing. As root, or with sudo; where neither works, prints what to install and fails.
#   tools/packages.sh core film test
set -u

# a|b: either will do; the first one known to apt is installed
core="gcc libc6-dev make cmake ninja-build pkg-config|pkgconf liblua5.4-dev libpng-dev zlib1g-dev libembree-dev libmicrohttpd-dev"
film="ffmpeg"
viewer="npm"
test="libcmocka-dev clang libclang-rt-dev python3 npm chromium iproute2"
validate="python3 paraview python3-paraview blender"
bench="python3 blender"
mpi="libopenmpi-dev|libmpich-dev openmpi-bin|mpich"
petsc="python3 libpetsc-real-dev libhypre-dev libopenmpi-dev openmpi-bin"

wanted=""
for group in "$@"; do
    case $group in
    core | film | viewer | test | validate | bench | mpi | petsc) wanted="$wanted ${!group}" ;;
    *)
        echo "packages: unknown group $group; there are core film viewer test validate bench mpi petsc" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "packages: not a Debian system; these (or what stands for them here) are needed:" >&2
    echo "   $wanted" >&2
    exit 0 # they may well be there: the build tells
fi

# "ii" in the two status letters: wanted and installed
installed() {
    [ "$1" = npm ] && command -v npm >/dev/null && return # some packages of nodejs bring their own
    [ "$(dpkg-query -W -f '${db:Status-Abbrev}\n' "$1" 2>/dev/null | grep -c '^.i')" -gt 0 ]
}

missing=""
for entry in $wanted; do
    found=no
    for name in ${entry//|/ }; do
        if installed "$name"; then found=yes; fi
    done
    [ $found = yes ] || missing="$missing $entry"
done
[ -n "$missing" ] || exit 0

give_up() {
    echo "packages: $1. Please install, then try again:" >&2
    echo "    apt-get install --no-install-recommends$(sed 's/|[^ ]*//g' <<<"$missing")" >&2
    exit 1
}

command -v apt-get >/dev/null || give_up "no apt-get here"
root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up "not root, and no sudo here"
    root="sudo"
    [ -t 0 ] || root="sudo -n" # nobody there to type a password
    $root true 2>/dev/null || give_up "not root, and sudo refuses"
fi

# the first alternative that apt knows
choose() {
    local name
    for name in ${1//|/ }; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    echo "${1%%|*}"
}

install() {
    local names=""
    for entry in $missing; do names="$names $(choose "$entry")"; done
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $names
}

echo "packages: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# package lists are fetched only when there are none or what they name is gone
if install >"$log" 2>&1; then exit 0; fi
$root apt-get update >>"$log" 2>&1
if install >>"$log" 2>&1; then exit 0; fi
tail -n 15 "$log" >&2
give_up "apt-get failed"
