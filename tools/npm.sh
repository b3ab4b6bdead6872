#!/usr/bin/env bash
# Brings FOLDER/node_modules up to what FOLDER/package-lock.json names, if it is not; says nothing
# when it is. Fails when there is no npm or it cannot.
#   tools/npm.sh FOLDER
set -u
cd "$1" || exit 1
# npm leaves its own list behind when it is done
[ node_modules/.package-lock.json -nt package-lock.json ] && exit 0
command -v npm >/dev/null || { echo "npm: not installed (Debian: npm)" >&2; exit 1; }
exec 9>.npm.lock && flock 9 # builds of several presets at once
[ node_modules/.package-lock.json -nt package-lock.json ] && exit 0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
npm ci --ignore-scripts --no-audit --no-fund --prefer-offline >"$log" 2>&1 && exit 0
tail -n 5 "$log" >&2
exit 1
