#!/usr/bin/env bash
# The documents are right: links lead somewhere, and whole scenes in them and in scenes/ are accepted.
# test-labels: once slow
#   docs.sh PROGRAM
set -u
program=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
count=0

for file in README.md docs/*.md; do
    for link in $(grep -o '](\([^)#]*\)' "$file" | sed 's/^](//'); do
        case $link in
        http*) ;;
        *) [ -e "$(dirname "$file")/$link" ] || { echo "FAILED: $file: no $link"; failed=1; } ;;
        esac
    done
    awk -v to="$scratch/$(basename "$file")" '
        /^```lua/ { inside = 1; text = ""; next }
        /^```/ { if (inside && text ~ /(^|\n)scene \{/) printf "%s", text >(to "." ++n ".lua"); inside = 0 }
        inside { text = text $0 "\n" }' "$file"
done
for scene in scenes/*.lua "$scratch"/*.lua; do
    count=$((count + 1))
    # two frames: what a scene costs is not asked here
    "$program" check "$scene" --set detail.finest=16 --set frames.count=2 >"$scratch/out.txt" 2>&1 ||
        { echo "FAILED: $scene: $(cat "$scratch/out.txt")"; failed=1; }
done
[ $count -ge 7 ] || { echo "FAILED: only $count scenes found"; failed=1; }
[ $failed = 0 ] && echo "documents: links and $count scenes are fine"
exit $failed
