#!/usr/bin/env bash
# Scenes that try to hang, fill the machine or escape the sandbox end within seconds with status 2 and
# one message; scenes that are merely extreme run to their end with valid numbers.
# test/promises/test_hostile.c has more of the latter, for every method.
# test-labels: memory slow
#   hostile.sh PROGRAM
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PYTHONDONTWRITEBYTECODE=1
failed=0
count=0
TIMEFORMAT="%U %S"

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# refused NAME: the scene on standard input is wrong, and that is said soon, in one line
refused() {
    cat >"$1.lua"
    refuse_file "$1.lua"
}
refuse_file() {
    count=$((count + 1))
    local got seconds
    { time timeout 60 "$program" run "$1" -o refused --quiet >out.txt 2>err.txt </dev/null; } 2>time.txt
    got=$?
    seconds=$(awk '{ printf "%d", $1 + $2 }' time.txt)
    [ $got = 2 ] || fail "$1: status $got, not 2: $(head -c 300 err.txt)"
    # processor time, since the machine may be busy with other things
    [ "$seconds" -le 5 ] || fail "$1: took $seconds s to refuse"
    [ "$(wc -l <err.txt)" = 1 ] || fail "$1: not one line but: $(head -c 600 err.txt)"
    [ "$(wc -c <err.txt)" -lt 500 ] || fail "$1: a long sentence: $(head -c 600 err.txt)"
    [ ! -s out.txt ] || fail "$1: on standard output: $(head -c 300 out.txt)"
    [ ! -e refused ] || fail "$1: made an output directory"
}

# runs NAME X,Y,Z [sound.py's options]: the scene on standard input runs to its end, soundly
runs() {
    local name=$1
    shift
    cat >"$name.lua"
    count=$((count + 1))
    timeout 300 "$program" run "$name.lua" -o "$name" --quiet >out.txt 2>err.txt </dev/null ||
        fail "$name: status $?: $(head -c 300 err.txt)"
    [ -e "$name/run.json" ] || return
    [ ! -s out.txt ] || fail "$name: on standard output: $(head -c 300 out.txt)"
    python3 "$here/verify.py" "$name" done || fail "$name: files"
    python3 "$here/sound.py" "$name" "$@" || fail "$name: not sound"
    timeout 60 "$program" check "$name.lua" >out.txt 2>err.txt || fail "$name: check: $(cat err.txt)"
    timeout 60 "$program" info "$name" >out.txt 2>err.txt || fail "$name: info: $(cat err.txt)"
    if grep -qiE '(^|[^a-z])(nan|inf)([^a-z]|$)' out.txt; then fail "$name: info: $(cat out.txt)"; fi
}

# ---- what must be refused ----
refused empty </dev/null
refused blank <<<$'\n\n   \n'
refused comment <<<'-- nothing'
refused noscene <<<'local x = 1'
refused twice <<<'scene { liquid = { box { min = {0,0,0}, max = {1,1,1} } } } scene {}'
refused loop <<<'while true do end'
refused caught <<<'while true do pcall(function() while true do end end) end'
refused recursion <<<'local function f() return 1 + f() end f()'
refused calls <<<'local m = {} m.__index = function(t, k) return t[k] end local x = setmetatable({}, m).y'
refused strings <<<"local s = 'x' while true do s = s .. s end"
refused tables <<<'local t = {} while true do t[#t + 1] = {} end'
refused shapes <<<'local s = sphere { center = {0,0,0}, radius = 1 } for i = 1, 60 do s = union(s, s) end'
refused pattern <<<"string.rep('a', 1e5):find(('a*'):rep(50) .. 'b')"
refused slowfield <<<'scene { detail = { finest = 128 }, liquid = { field(function(x, y, z) local s = 0 for i = 1, 5000 do s = s + i * x end return s end) } }'
refused nanfield <<<'scene { liquid = { field(function() return 0 / 0 end) } }'
refused badpose <<<'scene { liquid = { box { min = {0,0,0}, max = {1,.5,1} } }, solids = { sphere { center = {0,0,0}, radius = .2, pose = function() while true do end end } } }'
refused nansize <<<'scene { domain = { size = {0/0, 1, 1} }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused infsize <<<'scene { domain = { size = {math.huge, 1, 1} }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused zerosize <<<'scene { domain = { size = {1, 0, 1} }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused negative <<<'scene { domain = { size = {1, -1, 1} }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused nanball <<<'scene { liquid = { sphere { center = {0, 0/0, 0}, radius = 1 } } }'
refused nanspeed <<<'scene { liquid = { box { min = {0,0,0}, max = {1,1,1} }, velocity = {0/0, 0, 0} } }'
refused fine <<<'scene { detail = { finest = 1e9 }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused cells <<<'scene { detail = { finest = 4096 }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused frames <<<'scene { frames = { count = 1e12 }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused rate <<<'scene { frames = { rate = 0 }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused thin <<<'scene { domain = { size = {1, 1, 0.02} }, detail = { finest = 16 }, liquid = { box { min = {0,0,0}, max = {.4,.8,1} } } }'
refused needle <<<'scene { domain = { size = {1, 1e-5, 1} }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused dry <<<'scene { domain = { size = {1, 1, 1} } }'
refused budget <<<'scene { budget = { particles = 1 }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused later <<<'scene { fluid = { surface_tension = 1e4 }, liquid = { box { min = {0,0,0}, max = {1,1,1} } } }'
refused escape <<<"io.open('/etc/passwd')"
refused system <<<"os.execute('touch escaped')"
refused missing <<<'scene { liquid = { mesh { file = "nowhere.ply" } } }'
printf 'solid nothing\nendsolid nothing\n' >none.stl
refused nomesh <<<'scene { liquid = { mesh { file = "none.stl" } } }'
printf '\033Lua\124\001\031\223' >bytecode.lua
refuse_file bytecode.lua
head -c 2000000 /dev/zero >zeros.lua
refuse_file zeros.lua
head -c 4000 /dev/urandom >noise.lua
refuse_file noise.lua
{ printf 'x='; head -c 200000 /dev/zero | tr '\0' '('; } >brackets.lua
refuse_file brackets.lua

# ---- what must run ----
# parting crowded particles stirs it a little
runs weightless 1,1,1 --least 100 --still 0.02 <<'LUA'
scene {
  domain = { size = {1, 1, 1} }, detail = { finest = 12, surface = 12 }, frames = { count = 4 },
  gravity = {0, 0, 0},
  liquid = { sphere { center = {0.5, 0.5, 0.5}, radius = 0.3 } },
}
LUA
# closed and full: the pressure is fixed only up to a constant, and nothing can move
runs full 1,1,1 --least 100 --still 0.02 <<'LUA'
scene {
  domain = { size = {1, 1, 1} }, detail = { finest = 12, surface = 12 }, frames = { count = 12 },
  liquid = { box { min = {-1, -1, -1}, max = {2, 2, 2} } },
  probes = { front {}, height { at = {0.1, 0.1} }, pressure { at = {0.5, 0.1, 0.5} } },
}
LUA
runs inside 1,1,1 --solid 'sqrt((x-.5)**2 + (y-.4)**2 + (z-.5)**2) - 0.35' <<'LUA'
scene {
  domain = { size = {1, 1, 1} }, detail = { finest = 12, surface = 12 }, frames = { count = 4 },
  liquid = { sphere { center = {0.5, 0.4, 0.5}, radius = 0.3 } },
  solids = { sphere { center = {0.5, 0.4, 0.5}, radius = 0.35 } },
  probes = { front {}, height { at = {0.5, 0.5} }, pressure { at = {0.5, 0.1, 0.5} } },
}
LUA
runs flat 1,1,0.021 --least 100 <<'LUA'
scene {
  domain = { size = {1, 1, 0.021} }, detail = { finest = 50, surface = 50 }, frames = { count = 6 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } },
  probes = { front {}, height { at = {0.1, 0.01} }, pressure { at = {0.1, 0.1, 0.01} } },
}
LUA
runs drop 1,1,1 --least 100 <<'LUA'
scene {
  domain = { size = {1, 1, 1} }, detail = { finest = 16, surface = 16 }, frames = { count = 12 },
  liquid = { sphere { center = {0.5, 0.8, 0.5}, radius = 0.15 } },
}
LUA
runs splash 1,0.5,1 --least 100 <<'LUA'
scene {
  domain = { size = {1, 0.5, 1}, open = {"top", "left"} }, detail = { finest = 16, surface = 16 },
  frames = { count = 12 },
  liquid = { box { min = {0.2, 0, 0}, max = {1, 0.2, 1} }, sphere { center = {0.5, 0.4, 0.5}, radius = 0.15 },
             velocity = {-2, 2, 0} },
}
LUA
runs sieve 1,1,1 <<'LUA'
scene {
  domain = { size = {1, 1, 1}, open = {"left", "right", "bottom", "top", "back", "front"} },
  detail = { finest = 12, surface = 12 }, frames = { count = 24 },
  liquid = { box { min = {0.1, 0.1, 0.1}, max = {0.6, 0.6, 0.6} } },
  probes = { front {}, height { at = {0.1, 0.1} }, pressure { at = {0.1, 0.1, 0.1} } },
}
LUA
runs balance 1,0.5,0.5 --least 100 <<'LUA'
scene {
  domain = { size = {1, 0.5, 0.5} }, detail = { finest = 16, surface = 16 }, frames = { count = 18 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.2, 0.5} } },
  sources = { emitter { shape = box { min = {0, 0.05, 0.1}, max = {0.15, 0.15, 0.4} }, velocity = {0.5, 0, 0} },
              drain { shape = box { min = {0.85, 0, 0}, max = {1, 0.15, 0.5} } } },
}
LUA
# goes through the tank from end to end; what it catches against the far side has nowhere to go
runs piston 1,0.6,0.6 --least 100 --squeezed --solid 'max(abs(x - .05 - t) - .1, -y)' <<'LUA'
scene {
  domain = { size = {1, 0.6, 0.6}, open = {"top"} }, detail = { finest = 16, surface = 16 }, frames = { count = 24 },
  liquid = { box { min = {0.15, 0, 0}, max = {1, 0.2, 0.6} } },
  solids = { box { min = {-0.05, -0.1, -0.1}, max = {0.15, 0.8, 0.7}, velocity = {1, 0, 0} } },
}
LUA
runs cannonball 1,0.6,0.6 --least 100 --squeezed --solid 'sqrt((x + .3 - 20*t)**2 + (y-.15)**2 + (z-.3)**2) - 0.12' <<'LUA'
scene {
  domain = { size = {1, 0.6, 0.6} }, detail = { finest = 16, surface = 16 }, frames = { count = 4, rate = 48 },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.3, 0.6} } },
  solids = { sphere { center = {-0.3, 0.15, 0.3}, radius = 0.12, velocity = {20, 0, 0} } },
}
LUA
runs tunnel 1,1,1 --least 10 --solid 'abs(y - .3) - .005' <<'LUA'
scene {
  domain = { size = {1, 1, 1} }, detail = { finest = 12, surface = 12 }, frames = { count = 6 },
  liquid = { box { min = {0.2, 0.6, 0.2}, max = {0.8, 0.9, 0.8} }, velocity = {0, -100, 0} },
  solids = { box { min = {-1, 0.295, -1}, max = {2, 0.305, 2} } },
}
LUA
# frames.count = 0: only the start
runs still 1,1,1 --least 100 <<'LUA'
scene {
  domain = { size = {1, 1, 1} }, detail = { finest = 8, surface = 8 }, frames = { count = 0 },
  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.6, 1} } },
}
LUA

[ ! -e escaped ] || fail "a scene reached the system"
[ $failed = 0 ] && echo "hostile scenes: $count of them end as they should"
[ $failed = 0 ]
