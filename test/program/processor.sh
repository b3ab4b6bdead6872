#!/usr/bin/env bash
# A program that was built for newer processors says so on an older one, instead of ending with
# "illegal instruction"; the ranks of a run do, too. An old processor is one that qemu-x86_64
# (package qemu-user) pretends to be; without it the test is skipped.
# test-labels: once
#   processor.sh PROGRAM
set -u
program=$(realpath "$1")
command -v qemu-x86_64 >/dev/null && [ "$(uname -m)" = x86_64 ] || exit 77
"$program" --version >/dev/null || exit 1
failed=0
complain() {
    echo "FAILED: $1"
    failed=1
}

# where this processor is as old itself, the program is built for it and has nothing to say
grep -qw avx2 /proc/cpuinfo || exit 77
said=$(qemu-x86_64 -cpu Nehalem "$program" --version 2>&1)
status=$?
[ $status = 1 ] || complain "an old processor: status $status: $said"
grep -q "undine: this processor lacks avx.*make ARCH=" <<<"$said" || complain "an old processor: $said"
[ "$(wc -l <<<"$said")" = 1 ] || complain "more than a sentence: $said"

[ $failed = 0 ] && echo "processor: an old one is told apart"
exit $failed
