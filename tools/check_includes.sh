#!/usr/bin/env bash
# Folders of src/ are listed in the order data flows; each may include itself and those above it,
# and of another folder only the header that bears its name, or base/lanes.h, which few need and
# which is slow to compile. The command line includes only the public header. Prints what breaks
# this; fails if anything does.
#   tools/check_includes.sh [ROOT]
set -u
root=${1:-.}
order="base ranks geometry linalg scene bodies mesh sources particles surface sizing transfer tension pressure viscosity advect
       state method output render export view run"

cd "$root" || exit 2
files=$(find src app include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "check_includes: no sources under $root" >&2; exit 2; }

# shellcheck disable=SC2086
awk -v order="$order" '
function wrong(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what
    failures++
}
BEGIN {
    count = split(order, names)
    for (i = 1; i <= count; i++) rank[names[i]] = i
}
FNR == 1 {
    split(FILENAME, part, "/")
    top = part[1]
    folder = part[2]
    if (top == "src" && !(folder in rank)) wrong("src/" folder " is not in the list of folders")
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    match($0, /["<][^">]*[">]/)
    quoted = substr($0, RSTART, 1) == "\""
    name = substr($0, RSTART + 1, RLENGTH - 2)
    slash = index(name, "/")
    from = slash ? substr(name, 1, slash - 1) : ""
    rest = slash ? substr(name, slash + 1) : name
    if (!quoted && !(from in rank)) next # of the system or a library
    if (name ~ /\.\./) wrong("\"" name "\" climbs out of its folder")
    if (top == "include") {
        wrong("the public header includes \"" name "\"; it stands alone")
    } else if (top == "app") {
        if (name == "undine.h") next
        if (slash || system("test -f app/" name) != 0)
            wrong("app/ includes \"" name "\"; it may use undine.h only")
    } else if (name != "undine.h") {
        if (!slash)
            wrong("\"" name "\" lacks its folder: write \"" folder "/" name "\"")
        else if (!(from in rank))
            wrong("\"" name "\" is in no folder of src/")
        else if (rank[from] > rank[folder])
            wrong(folder "/ includes \"" name "\", but " from "/ comes after it")
        else if (from != folder && rest != from ".h" && name != "base/lanes.h")
            wrong(folder "/ includes \"" name "\", which is private to " from "/")
    }
}
END { exit failures > 0 }
' $files
