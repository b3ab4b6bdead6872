#!/usr/bin/env bash
# Folders include only folders above them, and the script that checks this notices violations.
# test-labels: once
set -u
check=tools/check_includes.sh
failed=0

$check . || { echo "FAILED: the include order is broken"; failed=1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# expect FILE LINE WORD: with LINE in FILE the script must fail and say WORD
expect() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/$(dirname "$1")"
    cp -r src app include "$scratch/tree/"
    mkdir -p "$scratch/tree/$(dirname "$1")"
    printf '%s\n' "$2" >>"$scratch/tree/$1"
    if output=$($check "$scratch/tree"); then
        echo "FAILED: '$2' in $1 went unnoticed"
        failed=1
    elif ! grep -qF -- "$3" <<<"$output" || ! grep -qF "$1" <<<"$output"; then
        echo "FAILED: '$2' in $1 gave: $output"
        failed=1
    fi
}

expect src/base/base.h '#include "scene/scene.h"' "scene/ comes after it"
expect src/scene/scene.h '  #  include <output/output.h>' "output/ comes after it"
expect src/output/file.c '#include "base/context.h"' "private to base/"
expect src/output/file.c '#include "output.h"' "lacks its folder"
expect src/output/file.c '#include "../base/base.h"' "climbs out"
expect src/output/file.c '#include "nowhere/nowhere.h"' "in no folder"
expect src/nowhere/new.c '#include "base/base.h"' "not in the list"
expect app/main.c '#include "base/base.h"' "undine.h only"
expect app/main.c '#include "base.h"' "undine.h only"
expect include/undine.h '#include "base/base.h"' "stands alone"

[ $failed = 0 ] && echo "include order: fine, and 10 ways to break it are noticed"
exit $failed
