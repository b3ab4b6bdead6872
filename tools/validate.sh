#!/usr/bin/env bash
# Runs the cases of test/validate: comparisons too slow, or with programs too large, for `make check`.
#   tools/validate.sh PROGRAM [CASE...] [--method M]
exec python3 -B "$(dirname "$0")/../test/validate/validate.py" "$@"
