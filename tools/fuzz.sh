#!/usr/bin/env bash
# Fuzzes each target for a while, one after the other, sanitizers on. What it finds is left in
# build/fuzz/found; mend it, and move the file to fuzz/found/<target>, which `make check` replays.
#   tools/fuzz.sh SECONDS [TARGET...]
set -u
seconds=$1
shift
cmake --preset fuzz >/dev/null || exit 1
cmake --build build/fuzz >/dev/null || exit 1
failed=0
for program in build/fuzz/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    name=${program##*/fuzz_}
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    mkdir -p "build/fuzz/corpus/$name" build/fuzz/found "fuzz/found/$name"
    echo "== $name, $seconds s"
    words=()
    [ -f "fuzz/$name.dict" ] && words=("-dict=fuzz/$name.dict")
    seeds=()
    for folder in "fuzz/seeds/$name" "build/fuzz/fuzz/seeds/$name"; do
        [ -d "$folder" ] && seeds+=("$folder")
    done
    if ! nice -n 19 "$program" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 "${words[@]}" \
        -artifact_prefix="build/fuzz/found/$name-" -print_final_stats=1 \
        "build/fuzz/corpus/$name" "${seeds[@]}" "fuzz/found/$name" \
        >"build/fuzz/$name.log" 2>&1; then
        failed=1
        tail -n 40 "build/fuzz/$name.log"
    fi
    grep -E 'number_of_executed_units|new_units_added|peak_rss' "build/fuzz/$name.log"
    rmdir "fuzz/found/$name" 2>/dev/null
done
exit $failed
