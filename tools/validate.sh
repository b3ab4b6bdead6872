#!/usr/bin/env bash
# Runs test/validate/*.sh: comparisons too slow, or with programs too large, for `make check`.
#   tools/validate.sh PROGRAM [NAME...]
set -u
program=$(realpath "$1")
shift
passed=0
failed=0
for script in test/validate/*.sh; do
    name=$(basename "$script" .sh)
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    echo "== $name"
    if bash "$script" "$program"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
