"""The list of cases. A case is a function that gets a Bench (a method, and how to run scenes with it)
and reports its results by bench.row and bench.line. A bound applies to every method unless a dict
names some: {"": 0.03, "tet": 0.02}."""
import glob
import math
import os
import re
import shutil
import subprocess
import sys

import at_random
import run_files

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(f"{HERE}/../..")
CASES = []


def case(title, about, x="", y="", reference=None, methods="all", needs=None, of=None):
    """methods: all; own: that of the scene, others only when asked for; none: it is not about
    methods, or about the one named by `of`. needs: a program that must be there."""
    def add(function):
        CASES.append({"name": function.__name__, "title": title, "about": about, "x": x, "y": y,
                      "reference": reference, "methods": methods, "needs": needs, "of": of, "run": function})
        return function
    return add


def zero_crossings(times, values):
    return [t0 + (t1 - t0) * v0 / (v0 - v1) for t0, t1, v0, v1 in zip(times, times[1:], values, values[1:])
            if (v0 > 0) != (v1 > 0)]


def worst(values):
    return max(map(abs, values))


# ---- rest ----

DEPTH = 0.437
REST = """scene { domain = { size = {1, 1, 1} }, detail = { finest = 32 },
  frames = { count = 48, rate = 24 }, liquid = { plane { point = {0, %g, 0}, normal = {0, 1, 0} } },
  probes = { pressure { name = "floor", at = {0.5, 0, 0.5} } } }""" % DEPTH


def tops(run, frame, rim):
    """Heights of the free surface from `rim` off the walls on, and their mean: the caps on walls and
    floor are no free surface."""
    vertices, _ = run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")
    top = [v[1] for v in vertices if v[1] > DEPTH / 2 and all(rim < v[a] < 1 - rim for a in (0, 2))]
    return top, sum(top) / len(top)


def rest_rows(bench, run, stats, frames, rim, speed, volume, uneven, height):
    h = run_files.record(run)["resolution"]["cell_size"]
    uneven_found = height_found = 0
    for frame in frames:
        top, mean = tops(run, frame, rim * h)
        uneven_found = max(uneven_found, worst(y - mean for y in top) / h)
        height_found = max(height_found, abs(mean - DEPTH) / h)
    bench.row("fastest particle", max(stats["max_speed"]), "m/s", speed)
    bench.row("volume error at worst", 100 * worst(stats["volume_error"]), "%", volume)
    bench.row("surface uneven by", uneven_found, "cells", uneven)
    bench.row("height off by", height_found, "cells", height)
    bench.line(stats["time"], stats["max_speed"])


@case("Rest", "A tank of water, its surface between two layers of cells, 32 cells, 2 s: nothing should move.",
      "time, s", "fastest particle, m/s")
def rest(bench):
    run = bench.run(REST)
    stats = run_files.table(f"{run}/stats.csv")
    rest_rows(bench, run, stats, (0, 12, 24, 48), 1.5, 0.02, 0.5, 0.1, 0.1)
    h, uneven = run_files.record(run)["resolution"]["cell_size"], 0
    for frame in 0, 48:
        vertices, _ = run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")
        rim = [v[1] for v in vertices if v[1] > DEPTH - h and v[4] > 0.5]
        uneven = max(uneven, (max(rim) - min(rim)) / 2 / h)
    bench.row("surface uneven by, up to the walls", uneven, "cells", {"": None, "uniform": 0.1})
    floor = run_files.table(f"{run}/probes.csv")["floor"][-1]
    bench.row("pressure on the floor off by", 100 * abs(floor / (1000 * 9.81 * DEPTH) - 1), "%", 1)


@case("Rest with cells of many sizes", "scenes/rest_mixed.lua: cells from 1/64 to 1/16 m along the surface, 2 s. "
      "`uniform` has cells of 1/64 m throughout.", "time, s", "fastest particle, m/s")
def rest_mixed(bench):
    run = bench.run("scenes/rest_mixed.lua")
    stats = run_files.table(f"{run}/stats.csv")
    rest_rows(bench, run, stats, (0, 24, 48), 3, {"": 0.02, "tet": 0.01}, {"": 0.5, "tet": 0.1},
              {"": 0.1, "tet": 0.05}, {"": 0.1, "tet": 0.05})


# ---- waves ----

WAVE = """local length, depth, mode = %g, %g, %d
local k = mode * math.pi / length
scene { domain = { size = {length, math.min(2 * depth, depth + length / 2), length / 4} },
  detail = { coarsest = %d, finest = %d }, frames = { count = %d, rate = 60 },
  liquid = { field(function(x, y, z) return y - depth - 0.02 * length * math.cos(k * x) end) },
  probes = { height { name = "h", at = {0, length / 8} } },
  output = { surface = false, particles = false } }"""
# Long waves in shallow water are left out: an amplitude that the grid can see is not small there, and
# linear theory does not hold.
WAVES = [(1, 0.5, 1, 48, 240), (1, 0.5, 2, 48, 120), (1, 1, 2, 40, 120), (0.6, 0.3, 1, 32, 150)]


def period_of(length, depth, mode):
    table = run_files.table(f"{HERE}/standing_wave.csv")
    for row in zip(table["L_m"], table["h_m"], table["mode"], table["T_s"]):
        if row[:3] == (length, depth, mode):
            return row[3]
    raise KeyError("no such wave in standing_wave.csv")


def measure_wave(times, heights, depth):
    """The period from whole periods between zero crossings (a shift of the level moves rising and
    falling ones apart), the share of the amplitude that a period takes, and how many there were."""
    crossings, peaks, best = [], [], 0
    for i in range(1, len(times)):
        a, b = heights[i - 1] - depth, heights[i] - depth
        best = max(best, abs(b))
        if a * b < 0:
            crossings.append(times[i - 1] + (times[i] - times[i - 1]) * a / (a - b))
            peaks.append(best)
            best = 0
    whole = (len(crossings) - 1) // 2
    if whole < 1:
        return math.nan, math.nan, 0
    period = (crossings[2 * whole] - crossings[0]) / whole
    decay = 1 - (peaks[2 * whole] / peaks[2]) ** (1 / (whole - 1)) if whole > 1 else math.nan
    return period, decay, whole


def theory_wave():
    times = [i / 40 for i in range(161)]
    return [{"name": "linear theory", "style": "dashed", "x": times,
             "y": [0.5 + 0.02 * math.cos(2 * math.pi * t / period_of(1, 0.5, 1)) for t in times]}]


@case("Standing wave", "The period of a wave in a box against linear theory, ω² = g k tanh(k h). The first "
      "wave is judged, the others are coarser or shorter and tell how it goes on.",
      "time, s", "height at the wall, m", theory_wave)
def standing_wave(bench):
    for number, (length, depth, mode, cells, frames) in enumerate(WAVES):
        run = bench.run(WAVE % (length, depth, mode, cells // 8, cells, frames))
        probes = run_files.table(f"{run}/probes.csv")
        period, decay, whole = measure_wave(probes["time"], probes["h"], depth)
        error = 100 * (period / period_of(length, depth, mode) - 1)
        name = f"{length:g} m long, {depth:g} m deep, mode {mode}, {cells} cells"
        if number == 0:
            bench.line(probes["time"], probes["h"])
            bench.row(f"period off by: {name}", abs(error), "%", {"": 3, "tet": 2})
            bench.row("amplitude lost in a period", 100 * decay, "%")
            bench.row("periods seen", whole, "", least=2)
        else:
            bench.row(f"period off by: {name}", error, "%")


# ---- two dimensions ----

WAVE_FLAT = """local length, depth = 1, 0.5
local k = math.pi / length
scene { domain = { size = {length, 2 * depth} }, detail = { finest = 48 },
  frames = { count = 240, rate = 60 },
  liquid = { field(function(x, y, z) return y - depth - 0.02 * length * math.cos(k * x) end) },
  probes = { height { name = "h", at = {0} } }, output = { surface = false, particles = false } }"""
REST_FLAT = """scene { domain = { size = {1, 1} }, detail = { finest = 48 }, frames = { count = 48, rate = 24 },
  liquid = { plane { point = {0, %g}, normal = {0, 1} } }, output = { surface = false } }""" % DEPTH


@case("Two dimensions", "Water at rest, a standing wave and a dam break (scenes/dam_2d.lua) in 2D.",
      "time, s", "height at the wall, m", theory_wave)
def two_dimensions(bench):
    stats = run_files.table(f"{bench.run(REST_FLAT)}/stats.csv")
    bench.row("rest: fastest particle", max(stats["max_speed"]), "m/s", 0.02)
    bench.row("rest: volume error at worst", 100 * worst(stats["volume_error"]), "%", 0.5)
    probes = run_files.table(f"{bench.run(WAVE_FLAT)}/probes.csv")
    period, decay, periods = measure_wave(probes["time"], probes["h"], 0.5)
    bench.row("wave: period off by", 100 * abs(period / period_of(1, 0.5, 1) - 1), "%", 1)
    bench.row("wave: amplitude lost in a period", 100 * decay, "%")
    bench.row("wave: periods seen", periods, "", least=2)
    stats = run_files.table(f"{bench.run('scenes/dam_2d.lua')}/stats.csv")
    bench.row("dam break: volume error at worst", 100 * worst(stats["volume_error"]), "%", 1.5)
    bench.line(probes["time"], probes["h"])


# ---- dam breaks ----

A, G = 0.05715, 9.81
COLUMN = """local a = 0.05715
scene { domain = { size = {5 * a, 3 * a, a} }, detail = { coarsest = 15, finest = %d },
  frames = { count = %d, rate = 200 }, liquid = { box { min = {0, 0, 0}, max = {a, 2 * a, a} } },
  probes = { front { axis = "x" }, height { at = {0, a / 2} } },
  output = { surface = false, particles = false } }"""


def interpolate(times, values, t):
    for i in range(1, len(times)):
        if times[i] >= t:
            share = (t - times[i - 1]) / (times[i] - times[i - 1])
            return values[i - 1] + share * (values[i] - values[i - 1])
    return math.nan


def moyce(reference, scale, probes, column, unit):
    """The mean relative difference, %; times of the experiment are t sqrt(scale)."""
    times, wanted = run_files.table(f"{HERE}/{reference}").values()
    errors = [interpolate(probes["time"], probes[column], t / math.sqrt(scale)) / unit / value - 1
              for t, value in zip(times, wanted)]
    known = [abs(e) for e in errors if not math.isnan(e)]
    return 100 * sum(known) / len(known)


def measured_front():
    times, fronts = run_files.table(f"{HERE}/martin_moyce_front.csv").values()
    return [{"name": "Martin & Moyce", "style": "points", "x": times, "y": fronts}]


@case("Collapse of a column", "A column of water a = 5.715 cm wide and 2a high against the measurements of Martin & "
      "Moyce (1952, tables 2 and 6). The front is judged at 24 cells over the column's height; with twice as "
      "many it runs further ahead of the real one, as an ideal front should.", "t sqrt(2 g / a)", "front, x / a",
      measured_front)
def martin_moyce(bench):
    probes = run_files.table(f"{bench.run(COLUMN % (60, 114))}/probes.csv")
    scale = math.sqrt(2 * G / A)
    shown = [i for i, t in enumerate(probes["time"]) if t * scale <= 3.5]
    bench.line([probes["time"][i] * scale for i in shown], [probes["front"][i] / A for i in shown])
    bench.row("front off by, in the mean", moyce("martin_moyce_front.csv", 2 * G / A, probes, "front", A), "%",
              {"": 10, "tet": 7})
    bench.row("height at the wall off by, in the mean",
              moyce("martin_moyce_height.csv", G / A, probes, "height", 2 * A), "%")
    fine = run_files.table(f"{bench.run(COLUMN % (120, 40))}/probes.csv") # at the far wall after 0.25 s
    bench.row("front off by, with twice the cells", moyce("martin_moyce_front.csv", 2 * G / A, fine, "front", A), "%")


@case("Volume of a dam break", "3 s in an empty box at 64 cells and around the pillar of scenes/dam.lua: the liquid's "
      "volume against the ledger at every step.", "time, s", "volume error, %")
def dam_volume(bench):
    for name, scene in ("empty box", "bench/dam.lua"), ("pillar", "scenes/dam.lua"):
        run = bench.run(scene, "--frames", "72", "--set", "output.surface=false", "--set", "output.particles=false")
        stats = run_files.table(f"{run}/stats.csv")
        bench.row(f"at worst, {name}", 100 * worst(stats["volume_error"]), "%", 1)
        if name == "pillar":
            bench.line(stats["time"], [100 * e for e in stats["volume_error"]])


@case("A jet in a corner", "The tongue of scenes/dam.lua runs into the far corners and shoots up, with 60 to 96 cells: its "
      "fastest particle.", "cells", "fastest particle over sqrt(g H)")
def corner_jet(bench):
    cells, found = (60, 72, 80, 88, 96), []
    for finest in cells:
        run = bench.run("scenes/dam.lua", "--frames", "15", "--set", f"detail.finest={finest}",
                        "--set", "output.surface=false", "--set", "output.particles=false")
        found.append(max(run_files.table(f"{run}/stats.csv")["max_speed"]) / math.sqrt(G * 0.65))
    bench.row("fastest", max(found), "sqrt(g H)", 4)
    bench.line(cells, found)


# ---- thin walls ----

# A vessel with a wall of so many cells, in a domain of 24 cells; shapes are functions of what is added to the inside.
VESSEL = """local h = 0.24 / 24
local wall = %g * h
local function glass(d, top)
  return cylinder { from = {0.12, 0.04 - d, 0.12}, to = {0.12, top, 0.12}, radius = 0.08 + d }
end
local function tub(d, top)
  return move { box { min = {-0.06 - d, -0.06 - d, -0.06 - d}, max = {0.06 + d, top - 0.13, 0.06 + d} },
                by = {0.12, 0.11, 0.12}, rotate = { axis = {0, 0, 1}, angle = 25 } }
end
local inside = %s
scene { domain = { size = {0.24, 0.24, 0.24} }, detail = { coarsest = 6, finest = 24 },
  frames = { count = 48, rate = 24 }, solids = { %s }, output = { surface = false },
  liquid = { intersect { inside(0, 0.3), box { min = {0, 0, 0}, max = {0.24, %g, 0.24} } } } }"""
THICKNESSES = [0.5, 0.75, 1, 1.25, 1.5, 2, 3]
SECTORS = 48


def lathe(path, profile, centre):
    """An OBJ of a profile turned around a vertical axis: (radius, height) from the axis and back to it."""
    ring = lambda n, i: 1 + n * SECTORS + i % SECTORS
    around = range(SECTORS)
    with open(path, "w") as file:
        for radius, height in profile:
            for i in around:
                angle = 2 * math.pi * i / SECTORS
                file.write(f"v {centre + radius * math.cos(angle)} {height} {centre + radius * math.sin(angle)}\n")
        for n in range(len(profile) - 1):
            for i in around:
                corners = [ring(n, i), ring(n + 1, i), ring(n + 1, i + 1), ring(n, i + 1)]
                if profile[n][0] == 0:
                    corners = [ring(n, 0), ring(n + 1, i), ring(n + 1, i + 1)]
                if profile[n + 1][0] == 0:
                    corners = [ring(n, i), ring(n + 1, 0), ring(n, i + 1)]
                file.write("f " + " ".join(map(str, corners)) + "\n")


def glass_file(path, wall):
    grow = 1 / math.cos(math.pi / SECTORS) # its flats touch the circle
    outer, inner = (0.08 + wall) * grow, 0.08 * grow
    heights = [0.04 + 0.04 * i for i in range(5)]
    lathe(path, [(0, 0.04 - wall), (outer / 2, 0.04 - wall), (outer, 0.04 - wall)] + [(outer, y) for y in heights[1:]]
          + [(inner, y) for y in heights[::-1]] + [(inner / 2, 0.04), (0, 0.04)], 0.12)


def in_glass(x, y, z):
    return math.hypot(x - 0.12, z - 0.12) < 0.08 / math.cos(math.pi / SECTORS) + 1e-6 and y > 0.04 - 1e-6


def in_tub(x, y, z):
    c, s = math.cos(math.radians(25)), math.sin(math.radians(25))
    along, up = c * (x - 0.12) + s * (y - 0.11), c * (y - 0.11) - s * (x - 0.12)
    return abs(along) < 0.06 + 1e-6 and up > -0.06 - 1e-6 and abs(z - 0.12) < 0.06 + 1e-6


# name, inside, level, walls, who is inside
VESSELS = [("round", "glass", 0.13, THICKNESSES, in_glass), ("tilted", "tub", 0.12, THICKNESSES, in_tub),
           ("from a file", "glass", 0.13, [0.5, 1, 2], in_glass)]


@case("Thin walls", "Still water for 2 s in vessels with walls of half a cell to three cells, 24 cells over 24 cm: a "
      "round glass and a tub tilted by 25 degrees by CSG, and the glass from a mesh file. Speeds and volumes are those "
      "of the second half.", "time, s", "fastest particle in the round glass of one cell, m/s")
def glass(bench):
    for name, inside, level, walls, holds in VESSELS:
        volume = outside = 0
        for wall in walls:
            solid = "subtract { inside(wall, 0.2), inside(0, 0.3) }"
            if name == "from a file":
                glass_file(f"{bench.scratch}/glass.obj", wall * 0.01)
                solid = 'mesh { file = "glass.obj" }'
            run = bench.run(VESSEL % (wall, inside, solid, level))
            stats = run_files.table(f"{run}/stats.csv")
            half = len(stats["time"]) // 2
            bench.row(f"{name}, {wall:g} cells: fastest particle", max(stats["max_speed"][half:]), "m/s", 0.02)
            volume = max(volume, worst(stats["volume_error"][half:]))
            for frame in 24, 48:
                places = run_files.particles(f"{run}/frames/{frame:04d}/particles.vtp")["Points"]
                outside += sum(not holds(*x) for x in places)
            if (name, wall) == ("round", 1):
                bench.line(stats["time"], stats["max_speed"])
        bench.row(f"{name}: volume error at worst", 100 * volume, "%", 1)
        bench.row(f"{name}: particles outside", outside, "", 0)


# A tank with an opening in its floor: the level falls as d sqrt(H) / dt = -C a / A sqrt(g / 2).
SLOT = """local n = %d -- cells across the slot, an eighth of the tank
local h = 0.125 / n
local top = 0.25 + h
local deep = %g
scene { domain = { size = {1, deep + 0.35}, open = {"bottom", "top"} },
  detail = { finest = math.floor(8 * n * math.max(1, deep + 0.35) + 0.5) },
  frames = { count = 21, rate = 30 }, liquid = { box { min = {0, top}, max = {1, top + deep} } },
  solids = { subtract { box { min = {-1, 0.25}, max = {2, top} }, box { min = {0.4375, 0}, max = {0.5625, 1} } } },
  probes = { height { name = "h", at = {0.1} } }, output = { surface = false, particles = false } }"""
ORIFICE = """local d = 0.1
local h = d / 8
local top = 2 * d + h
scene { domain = { size = {5 * d, 6 * d, 5 * d}, open = {"bottom", "top"} }, detail = { coarsest = 12, finest = 48 },
  frames = { count = 18, rate = 30 }, liquid = { box { min = {0, top, 0}, max = {1, top + 3.5 * d, 1} } },
  solids = { subtract { box { min = {-1, 2 * d, -1}, max = {2, top, 2} },
                        cylinder { from = {2.5 * d, 0, 2.5 * d}, to = {2.5 * d, 1, 2.5 * d}, radius = d / 2 } } },
  probes = { height { name = "h", at = {0.6 * d, 0.6 * d} } }, output = { surface = false, particles = false } }"""


def discharge(run, top, ratio, begin):
    """The coefficient from the slope of sqrt(H) after `begin`; ratio: of opening and tank."""
    probes = run_files.table(f"{run}/probes.csv")
    points = [(t, math.sqrt(y - top)) for t, y in zip(probes["time"], probes["h"]) if t >= begin]
    t0, y0 = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    slope = sum((t - t0) * (y - y0) for t, y in points) / sum((t - t0) ** 2 for t, _ in points)
    return -slope / (ratio * math.sqrt(9.81 / 2))


# The stream is narrowest this many widths of the opening below the floor, and H is counted from there.
NARROWEST = 0.6


@case("Torricelli", "How much flows through a sharp-edged opening in a floor of one cell: 0.61 of its area times "
      "sqrt(2 g H), for a slot and for a round hole. Two things make it more. The stream falls while it narrows: H "
      "counts from where it is narrowest, some 0.6 widths below the floor, which is 7 % here; tanks three times as deep "
      "show it. And cells round the lips: the slot acts as if it were a cell wider, whatever its width. 0.63 (1 + h / w) "
      "sqrt(1 + 0.6 w / H) is within 2 % of what was found with 8 to 48 cells. Judged is what is left without cells: "
      "the line a + b h / w through the study.")
def torricelli(bench):
    if bench.method == "uniform":
        width, found = 0.125, {}
        for cells in 8, 12, 16, 24:
            run, top = bench.run(SLOT % (cells, 0.65)), 0.25 + width / cells
            found[cells] = discharge(run, top - NARROWEST * width, width, 0.2)
            bench.row(f"slot of {cells} cells, H from the floor", discharge(run, top, width, 0.2), "")
            bench.row(f"slot of {cells} cells, H from the narrowest place", found[cells], "")
        deep = discharge(bench.run(SLOT % (8, 2.15)), 0.25 + width / 8 - NARROWEST * width, width, 0.2)
        bench.row("slot of 8 cells, three times as deep, off by", 100 * abs(deep / found[8] - 1), "%", 3)
        x, y = [1 / n for n in found], list(found.values())
        x0, y0 = sum(x) / len(x), sum(y) / len(y)
        slope = sum((a - x0) * (b - y0) for a, b in zip(x, y)) / sum((a - x0) ** 2 for a in x)
        bench.row("slot, without cells", y0 - slope * x0, "", 0.67, 0.55)
        bench.row("slot: wider by, in cells", slope / (y0 - slope * x0), "")
    round_hole = discharge(bench.run(ORIFICE), 0.2125 - NARROWEST * 0.1, math.pi / 100, 0.2)
    bench.row("round hole of 8 cells, H from the narrowest place", round_hole, "")


# ---- thin sheets ----

def turned(run, frame, turn, shift):
    """Vertices in the frame of scenes/savart.lua's plate, and triangles, of the surface."""
    vertices, faces = run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")
    c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    places = []
    for v in vertices:
        x, y, z = (v[a] - 0.5 - shift[a] for a in range(3))
        places.append((c * x + s * y, c * y - s * x, z))
    return places, faces


def covered(places, faces, radius, width, points=1500):
    """Share of a ring around the plate that the surface covers, seen along the jet."""
    bins, cell, hit = {}, 0.02, set()
    for n in range(points):
        r = radius + width * (2 * (n * 0.7548776662 % 1) - 1)
        angle = 2 * math.pi * (n * 0.5698402910 % 1)
        p = (r * math.cos(angle), r * math.sin(angle))
        bins.setdefault((int(p[0] // cell), int(p[1] // cell)), []).append((n, p))
    for face in faces:
        a, b, c = ((places[v][0], places[v][2]) for v in face)
        if not radius - 0.1 < math.hypot(*a) < radius + 0.1:
            continue
        double = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
        if abs(double) < 1e-16:
            continue
        low = [int(min(p[k] for p in (a, b, c)) // cell) for k in (0, 1)]
        high = [int(max(p[k] for p in (a, b, c)) // cell) for k in (0, 1)]
        for i in range(low[0], high[0] + 1):
            for j in range(low[1], high[1] + 1):
                for n, (x, z) in bins.get((i, j), ()):
                    u = ((x - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (z - a[1])) / double
                    v = ((b[0] - a[0]) * (z - a[1]) - (x - a[0]) * (b[1] - a[1])) / double
                    if u >= 0 and v >= 0 and u + v <= 1:
                        hit.add(n)
    return len(hit) / points


def largest_piece(places, faces):
    """Share of the surface's volume in its largest connected piece."""
    root = list(range(len(places)))

    def find(v):
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v
    for a, b, c in faces:
        root[find(b)] = find(a)
        root[find(c)] = find(a)
    volume = {}
    for a, b, c in faces:
        p, q, r = places[a], places[b], places[c]
        part = (p[0] * (q[1] * r[2] - q[2] * r[1]) + p[1] * (q[2] * r[0] - q[0] * r[2])
                + p[2] * (q[0] * r[1] - q[1] * r[0])) / 6
        volume[find(a)] = volume.get(find(a), 0) + part
    return max(volume.values()) / sum(volume.values())


SHEETS = [("", 0, (0, 0, 0), ()), ("with cfl = 1: ", 0, (0, 0, 0), ("--set", "solver.cfl=1")),
          ("shifted: ", 0, (0.37 / 64, 0.71 / 64, 0.18 / 64), ()), ("turned by 30 degrees: ", 30, (0, 0, 0), ())]
# Least of the plain case; what is enough for the others if they are not within 3 points of it.
THICK = [("half", 0.2, 97, 99), ("a third of", 0.3, 95, 98), ("a quarter of", 0.4, 85, 95)]


@case("Thin sheet", "A jet meets a round plate and spreads as a sheet (scenes/savart.lua, after Savart), 64 cells: how "
      "much of it the output surface covers where it is so many cells thick; the same with shorter steps, shifted by "
      "parts of a cell and turned.", "distance from the axis, m", "covered, %")
def thin_sheet(bench):
    scene = open(f"{ROOT}/scenes/savart.lua").read()
    count, plain = 0, {}
    for name, turn, shift, options in SHEETS:
        text = scene.replace("local turn, shift = 0, { 0, 0, 0 }", "local turn, shift = %g, { %g, %g, %g }" % (turn, *shift))
        run = bench.run(text, *options)
        frame = 14
        places, faces = turned(run, frame, turn, shift)
        first = not name
        for part, radius, least, enough in THICK:
            share = 100 * covered(places, faces, radius, 1 / 64)
            plain.setdefault(part, share)
            bench.row(f"{name}covered where {part} a cell thick", share, "%",
                      least=least if first else min(enough, plain[part] - 3))
        bench.row(f"{name}largest piece", 100 * largest_piece(places, faces), "%", least=90)
        if first:
            count = run_files.table(f"{run}/stats.csv")["particles"][-1]
            radii = [0.16 + 0.02 * i for i in range(15)]
            bench.line(radii, [100 * covered(places, faces, r, 1 / 64) for r in radii])
        shutil.rmtree(run)
    if count > 0: # methods without particles have none to add
        off = run_files.table(f"{bench.run(scene, '--set', 'solver.sheets=0')}/stats.csv")["particles"][-1]
        bench.row("particles, in those with solver.sheets = 0", count / off, "")


# ---- bodies that the liquid moves ----

AFLOAT = """scene { domain = { size = {1, 1} }, detail = { finest = 48 }, frames = { count = 72, rate = 24 },
  output = { surface = false, particles = false }, liquid = { box { min = {0, 0}, max = {1, 0.5} } },
  solids = { %s, density = 500, name = "body" } } }"""
BOX, BALL = "box { min = {0.35, 0.4}, max = {0.65, 0.6}", "sphere { center = {0.5, 0.5}, radius = 0.15"
# The same in 3D, against the level beside it, for methods that have no two dimensions.
AFLOAT_3D = """scene { domain = { size = {1, 1, 1} }, detail = { coarsest = 12, finest = 24 },
  frames = { count = 72, rate = 24 }, output = { surface = false, particles = false },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.5, 1} } }, probes = { height { name = "level", at = {0.1, 0.1} } },
  solids = { %s, density = 500, name = "body" } } }"""
BOX_3D = "box { min = {0.35, 0.4, 0.35}, max = {0.65, 0.6, 0.65}"
BALL_3D = "sphere { center = {0.5, 0.5, 0.5}, radius = 0.15"
# A ball in a round vessel full of water: exactly (b^3 + 2 a^3) / (b^3 - a^3) / 2 of its volume moves along.
INNER, OUTER = 0.16, 0.46
PUSHED = f"""scene {{ gravity = {{0, 0, 0}}, detail = {{ coarsest = 38, finest = 38 }},
  frames = {{ count = 1, rate = 100 }}, output = {{ surface = false, particles = false }},
  liquid = {{ sphere {{ center = {{.5, .5, .5}}, radius = {OUTER} }} }},
  solids = {{ subtract {{ box {{ min = {{-1, -1, -1}}, max = {{2, 2, 2}} }},
      sphere {{ center = {{.5, .5, .5}}, radius = {OUTER} }} }},
    sphere {{ center = {{.5, .5, .5}}, radius = {INNER}, density = 700, velocity = {{.2, 0, 0}}, name = "body" }} }} }}"""
PLUNGE = """scene { domain = { size = {1, 1, 1} }, detail = { finest = 48 }, frames = { count = 72, rate = 24 },
  output = { surface = false, particles = false }, liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } },
  solids = { sphere { center = {.3, .7, .3}, radius = .12, density = 400 },
    box { min = {.55, .6, .2}, max = {.8, .8, .45}, density = 700, spin = {1, 0, 2} },
    cylinder { from = {.5, .65, .7}, to = {.8, .75, .75}, radius = .09, density = 1500 } } }"""
# A cylinder that floats upright and is let go 0.02 m too high.
BOBBING = """scene { domain = { size = {0.8, 0.7, 0.8} }, detail = { coarsest = 16, finest = 32 },
  frames = { count = 28, rate = 24 }, output = { surface = false, particles = false },
  liquid = { box { min = {0, 0, 0}, max = {0.8, 0.5, 0.8} } },
  solids = { cylinder { from = {0.4, 0.32, 0.4}, to = {0.4, 0.67, 0.4}, radius = 0.12, density = 4000 / 7, name = "body",
    hold = "x z rx ry rz" } } }"""


def bobbing_period():
    """Of the cylinder. What moves along is the water under it, 4/3 r^3 of it as under one side of a disc, and what
    rises beside it; the level falls while it rises."""
    draught, radius, share = 0.2, 0.12, math.pi * 0.12 ** 2 / 0.8 ** 2
    mass = draught + 4 * radius / (3 * math.pi) + draught * share / (1 - share)
    return 2 * math.pi * math.sqrt(mass * (1 - share) / 9.81)


@case("Bodies that the liquid moves", "A box and a ball of half the water's density afloat for 3 s, `uniform` in 2D; a ball that is "
      "pushed in a round vessel full of water; a cylinder that bobs upright; three bodies that fall into a pool.", "time, s", "height of the box, m")
def bodies(bench):
    flat = bench.method == "uniform"
    for name, shape, solid in ("box", BOX, BOX_3D), ("ball", BALL, BALL_3D):
        run = bench.run(AFLOAT % shape if flat else AFLOAT_3D % solid)
        found = run_files.table(f"{run}/bodies.csv")
        level = 0.5 if flat else run_files.table(f"{run}/probes.csv")["level"][-1]
        speed = math.hypot(*(found[f"body_v{axis}"][-1] for axis in "xyz"))
        bench.row(f"draught of a {name} off by", abs(found["body_y"][-1] - level) * (48 if flat else 24), "cells", 0.1)
        bench.row(f"speed of a {name} after 3 s", 1000 * speed, "mm/s", 2)
        if name == "box":
            bench.line(found["time"], found["body_y"])
    after = run_files.table(f"{bench.run(PUSHED)}/bodies.csv")["body_vx"][-1]
    ratio = (OUTER / INNER) ** 3
    bench.row("added mass off by", 100 * abs((0.2 / after - 1) * 0.7 / ((ratio + 2) / (ratio - 1) / 2) - 1), "%", 5)
    found = run_files.table(f"{bench.run(BOBBING)}/bodies.csv")
    turns = zero_crossings(found["time"], found["body_vy"])
    bench.row("bobbing period off by", 100 * abs(2 * (turns[1] - turns[0]) / bobbing_period() - 1), "%", 5)
    stats = run_files.table(f"{bench.run(PLUNGE)}/stats.csv")
    bench.row("volume of a pool at worst", 100 * worst(stats["volume_error"]), "%", 1)


# ---- the paper's figures ----

SHELL = "abs(hypot(x - 0.5, y - 0.6, z - 0.5) - 0.25) - 0.0175"
W = "2 * pi / 0.13"
GYROID = (f"sin({W} * (x - 0.5)) * cos({W} * (y - 0.6)) + sin({W} * (y - 0.6)) * cos({W} * (z - 0.5))"
          f" + sin({W} * (z - 0.5)) * cos({W} * (x - 0.5))")
# The field is sampled at the spacing of cells, so its edges are round by up to 0.4 of one.
BOWL = f"0.4 / 64 + max({SHELL}, ({GYROID} - 0.3) / (1.6 * {W}), y - 0.6)"
# name, domain, volume error allowed in %, cells, frames, solid. Of sheets and holes a few cells wide, as
# in figures 3 and 7 at this size, the level set takes less or more for liquid than there is.
FIGURES = [("figure1", "16,4,16", 1, 256, 48, None), ("figure3", "1,1,1", 3, 64, 60, None),
           ("figure6", "2,0.8,1.2", 1, 64, 60, "max(x - 1.5, 0.5 - z, z - 0.7)"),
           ("figure7", "1,1,1", 8, 64, 60, BOWL)]


@case("Figures of [Ando13], small", "The small variants that the heads of these scenes name. Sound: every number "
      "finite, no particle or surface outside the domain, no particle in a solid.", "time, s",
      "particles, share of the most", methods="own")
def figures(bench):
    for name, size, allowed, cells, frames, solid in FIGURES:
        run = bench.run(f"scenes/{name}.lua", "--set", f"detail.finest={cells}", "--set", f"frames.count={frames}")
        options = ["--solid", solid] if solid else []
        sound = subprocess.run([sys.executable, "-B", f"{HERE}/../program/sound.py", run, size, "--least", "1000",
                                *options], capture_output=True, text=True)
        stats = run_files.table(f"{run}/stats.csv")
        bench.row(f"{name}: sound", 0 if sound.returncode == 0 else 1, "faults", 0, note=sound.stdout.strip())
        bench.row(f"{name}: volume error at worst", 100 * worst(stats["volume_error"]), "%", allowed)
        if "emitter" not in open(f"{run}/scene.lua").read():
            held = [sum(run_files.particles(f"{run}/frames/{frame:04d}/particles.vtp")["volume"])
                    for frame in (0, frames)]
            bench.row(f"{name}: volume of particles lost", abs(held[1] / held[0] - 1), "", 1e-5)
        shutil.rmtree(run)


# ---- thick liquid ----

NU, SLUMP_A, SLUMP_V = 0.01, 0.01, 0.001
SLUMPS = {"plane": lambda t: 1.4112 * (G * SLUMP_A**3 / (3 * NU)) ** 0.2 * t**0.2,
          "round": lambda t: 0.8939 * (G * SLUMP_V**3 / (3 * NU)) ** 0.125 * t**0.125}


def footprint(path):
    """Area of the floor that is wet, m2: of the surface's triangles on it."""
    vertices, faces = run_files.surface(path)
    area = 0
    for triangle in faces:
        p, q, r = (vertices[i] for i in triangle)
        if max(p[1], q[1], r[1]) < 1e-4:
            area += abs((q[0] - p[0]) * (r[2] - p[2]) - (q[2] - p[2]) * (r[0] - p[0])) / 2
    return area


def front_of(kind, run, frame):
    area = footprint(f"{run}/frames/{frame:04d}/surface.ply")
    return area / 0.04 if kind == "plane" else math.sqrt(4 * area / math.pi)


def theory_slump():
    times = [1 + i / 4 for i in range(37)]
    return [{"name": "Huppert, plane", "style": "dashed", "x": times, "y": [SLUMPS["plane"](t) for t in times]}]


@case("Slumps over a floor", "Fronts of thick liquid, plane and round, against the similarity solutions of Huppert "
      "(1982), after 1 and 10 s, on cells of several sizes and of one.", "time, s", "front, m", theory_slump)
def huppert(bench):
    one_size = bench.method == "uniform"
    for kind in "plane", "round":
        for cells, options in (("graded", []), ("even", ["--set", f"detail.coarsest={112 if kind == 'plane' else 56}"])):
            if one_size and cells == "graded":
                continue
            if kind == "round" and cells == "even":
                options = options + ["--set", "detail.finest=56"]
            run = bench.run(f"scenes/huppert_{kind}.lua", "--set", "output.particles=false", *options)
            rate = run_files.record(run)["frames"]["rate"]
            for time in 1, 10:
                front = front_of(kind, run, round(time * rate))
                bench.row(f"{kind}, {cells} cells, {time} s: front off by",
                          100 * abs(front / SLUMPS[kind](time) - 1), "%", 5)
            if kind == "plane" and cells == ("even" if one_size else "graded"):
                frames = range(round(rate), run_files.record(run)["frames"]["finished"] + 1)
                bench.line([f / rate for f in frames], [front_of(kind, run, f) for f in frames])
            shutil.rmtree(run)


# ---- the program ----

FORETOLD = [("empty box", "bench/dam.lua", ["detail.finest=32", "detail.surface=64", "frames.count=48"]),
            ("pillar", "scenes/dam.lua", ["detail.finest=64", "frames.count=36"]),
            ("pour", "scenes/pour.lua", ["detail.finest=48"]),
            ("stir", "scenes/stir.lua", ["detail.finest=40", "frames.count=24"])]
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}
ESTIMATE_BOUND = {"": 40, "uniform": 20}


@case("What `check` foretells", "Particles at the start and at most, and memory, against what the run then takes. "
      "Methods that adapt rehearse the splash, and are held to less.")
def estimates(bench):
    for name, scene, sets in FORETOLD:
        options = [word for one in sets for word in ("--set", one)]
        said = bench.check(scene, *options)
        first, last = re.search(r"particles   about ([\d,]+)(?: at the start, ([\d,]+) at most)?", said).groups()
        number, unit = re.search(r"memory      about ([\d.]+) (\w+)", said).groups()
        run = bench.run(scene, *options)
        stats, record = run_files.table(f"{run}/stats.csv"), run_files.record(run)
        # what a drain will take cannot be foretold: the estimate is an upper bound there
        drained = "drain" in open(f"{run}/scene.lua").read()
        for what, foretold, found, bound in (
                ("particles at first", int(first.replace(",", "")), stats["particles"][0], ESTIMATE_BOUND),
                ("particles at most", int((last or first).replace(",", "")), max(stats["particles"]),
                 None if drained else ESTIMATE_BOUND),
                ("memory", float(number) * UNITS[unit], record["bytes_peak"], ESTIMATE_BOUND)):
            bench.row(f"{name}: {what} off by", 100 * abs(foretold / max(found, 1) - 1), "%", bound)
        shutil.rmtree(run)


DAM = """scene { domain = { size = {1, 1, 1} }, detail = { coarsest = 8, finest = 64, surface = 64 },
  frames = { count = 24, rate = 24 }, liquid = { box { min = {0, 0, 0}, max = {0.4, 0.8, 1} } } }"""


@case("Kills and checkpoints", "Runs killed at random moments and resumed, every file compared with those of a run "
      "that nobody disturbed; and what checkpoints cost in a dam break at 64 cells.")
def reliability(bench):
    killed = bench.call([sys.executable, "-B", f"{HERE}/../program/kill.py", bench.program, "34", "1", bench.method])
    bench.row("34 kills: runs with other files", 0 if killed.returncode == 0 else 1, "", 0, note=killed.stderr.strip())
    run = bench.run(DAM)
    record, stats = run_files.record(run), run_files.table(f"{run}/stats.csv")
    stages = record["stages"]
    stages = {s["name"]: s["seconds"] for s in stages} if isinstance(stages, list) else stages
    newest = max(glob.glob(f"{run}/state/*.state"))
    bench.row("checkpoints, share of the time", 100 * stages["checkpoint"] / record["seconds"], "%", 3)
    # half as much again as the particles' own arrays; staggered saves velocities of faces too
    bench.row("checkpoint, bytes a particle", os.path.getsize(newest) / stats["particles"][-1], "",
              {"": 86, "uniform": 80, "staggered": 120})


@case("Scenes at random", "Twenty-four ordinary scenes made up at random (test/validate/at_random.py): tanks, dams and drops "
      "with pillars, cups, plates, ramps and paddles, streams and drains, 1 cm to 10 m long, 14 to 24 cells. Speeds are "
      "over twice that of a free fall through the domain; still water is measured after 0.7 of a run, over "
      "sqrt(g L).")
def scenes_at_random(bench):
    measure_at_random(bench, at_random.scene)


@case("Scenes at random in 2D", "The same in two dimensions, 24 to 48 cells.")
def flat_scenes_at_random(bench):
    measure_at_random(bench, at_random.flat)


def measure_at_random(bench, scene):
    failed, speeds, volumes, calm = [], [], [], []
    for number in range(24):
        text, bound, still, unit = scene(number)
        try:
            run = bench.run(text)
        except RuntimeError as what:
            failed.append(f"scene {number}: {what}")
            continue
        stats = run_files.table(f"{run}/stats.csv")
        speeds.append((max(stats["max_speed"]) / bound, number))
        volumes.append((abs(stats["volume_error"][-1]), number))
        if still:
            late = [v for t, v in zip(stats["time"], stats["max_speed"]) if t > 0.7 * stats["time"][-1]]
            calm.append((max(late) / unit, number))
        shutil.rmtree(run)
    bench.row("runs that failed", len(failed), "", 0, note="; ".join(failed))
    bench.row("fastest", max(speeds)[0], "", 1, note=f"scene {max(speeds)[1]}")
    bench.row("volume at the end, half of the scenes within", 100 * sorted(volumes)[12][0], "%", 1)
    bench.row("volume at the end, worst", 100 * max(volumes)[0], "%", None, note=f"scene {max(volumes)[1]}")
    bench.row("still water, worst", max(calm)[0], "", 0.05, note=f"scene {max(calm)[1]} of {len(calm)}")


@case("Faults and endurance", "Every disk call and every allocation of a run fails once; 10,000 steps of a stirred "
      "tank by every method, ledger against particles.", methods="none")
def faults(bench):
    programs = ["test_run_faults", "test_run_resume", "test_state"]
    built = bench.call(["cmake", "--build", f"{ROOT}/build", "--target", *programs])
    if built.returncode != 0:
        raise RuntimeError("the tests cannot be built here (cmocka?): " + built.stdout[-200:])
    for name, words in (("faults of disk and memory", ["test_run_faults", "all"]),
                        ("interrupted and damaged runs", ["test_run_resume", "all"]),
                        ("10,000 steps", ["test_state", "soak", "all"])):
        done = bench.call([f"{ROOT}/build/test/{words[0]}", *words[1:]])
        bench.row(name, 0 if done.returncode == 0 else 1, "failures", 0, note=done.stdout[-300:] if done.returncode else "")


@case("Pressure around a source on a warped grid", "Figure 7 of [Ibayashi18]: a point source in a disc of radius 0.4 "
      "on whose rim the pressure is zero, 2D. Mean error at the liquid's nodes of cut cells, over the paper's with "
      "its second-order condition; the order is that from the coarsest grid to the finest.", methods="none", of="warp")
def figure_seven(bench):
    built = bench.call(["cmake", "--build", f"{ROOT}/build", "--target", "test_pressure"])
    if built.returncode != 0:
        raise RuntimeError("the test cannot be built here (cmocka?): " + built.stdout[-200:])
    printed = bench.call([f"{ROOT}/build/test/test_pressure", "warp", "figure7"]).stdout
    paper = {}
    with open(f"{HERE}/ibayashi18_fig7.csv") as file:
        for line in file.read().split()[1:]:
            words = line.split(",")
            paper[words[0], int(words[1])] = float(words[4])
    for grid in "regular", "warped":
        ours = [(int(cells), float(error)) for cells, error in re.findall(rf"^{grid},(\d+),(\S+)$", printed, re.M)]
        for cells, error in ours:
            bench.row(f"{grid}, {cells} cells: error over the paper's", error / paper[grid, cells], "", 1,
                      note=f"{error:.2g}, the paper {paper[grid, cells]:.2g}")
        (first, coarse), (last, fine) = ours[0], ours[-1]
        bench.row(f"{grid}: order", math.log(coarse / fine) / math.log(last / first), "", least=1.8)


@case("Detail at the surface on a warped grid", "Table 1 of [Ibayashi18], smaller: a drop falls into a pool, `warp` with 40 "
      "cells beside `uniform` with 80 (bench/detail.py): processor time on one thread, memory, and how wide the cells at "
      "the surface are, over those of a regular grid of 40. The paper took 10.2 s a step beside 26.4. The share of the "
      "warp in a step and the fastest particle over that of `uniform` are those of scenes/dam.lua with 48 cells.",
      methods="none", of="warp")
def surface_detail(bench):
    said = bench.call([sys.executable, "-B", f"{ROOT}/bench/detail.py", bench.program, "--cells", "40", "--frames", "8",
                       "--repeat", "1"])
    if said.returncode != 0:
        raise RuntimeError(said.stderr[-300:] or said.stdout[-300:])
    for name, pattern, bounds in (("times faster", r"times faster: ([\d.]+)", {"least": 2.6}),
                                  ("times less memory", r"memory ([\d.]+)", {"least": 2.6}),
                                  ("width of cells at the surface", r"surface: ([\d.]+) of", {"bound": 0.5})):
        bench.row(name, float(re.search(pattern, said.stdout).group(1)), "", **bounds)
    fastest = {}
    for method in "uniform", "warp":
        run = bench.run("scenes/dam.lua", "--method", method, "--threads", "1", "--frames", "12", "--set",
                        "detail.finest=48", "--set", "output.surface=false", "--set", "output.particles=false")
        stats = run_files.table(f"{run}/stats.csv")
        fastest[method] = max(stats["max_speed"])
    bench.method = "" # none of its own
    bench.row("share of the warp in a step", 100 * sum(stats["seconds_warp"]) / sum(stats["seconds"]), "%", 10)
    bench.row("fastest particle over that of uniform", fastest["warp"] / fastest["uniform"], "", 2)


# Scene, cells, frames.
IBAYASHI = [("leak, figure 1", "scenes/warp_leak.lua", 32, 16), ("merge, figure 2", "scenes/warp_merge.lua", 32, 16),
            ("comb, figure 3", "scenes/warp_comb.lua", 32, 16), ("dam, figure 5", "scenes/warp_dam.lua", 32, 24),
            ("ripples, figure 6", "scenes/warp_ripples.lua", 32, 16), ("drop, figure 8", "scenes/warp_drop.lua", 32, 16),
            ("drop, 2D", "scenes/warp_drop_2d.lua", 64, 48), ("comb, 2D", "scenes/warp_comb_2d.lua", 80, 48)]


@case("Figures of [Ibayashi18], small", "Its scenes with fewer cells: the liquid's volume at every step, the fastest "
      "particle over 4 sqrt(g H) for a domain H high, and iterations of the pressure solve.", methods="none",
      of="warp")
def figures_warp(bench):
    for name, scene, cells, frames in IBAYASHI:
        run = bench.run(scene, "--threads", "1", "--frames", str(frames), "--set", f"detail.finest={cells}", "--set",
                        "output.surface=false", "--set", "output.particles=false", "--set", "output.mesh=false")
        bench.method = "" # not that of the scene
        stats, size = run_files.table(f"{run}/stats.csv"), run_files.record(run)["resolution"]
        high = size["cells"][1] * size["cell_size"]
        bench.row(f"{name}: volume error at worst", 100 * worst(stats["volume_error"]), "%", 3)
        bench.row(f"{name}: fastest particle", max(stats["max_speed"]) / (4 * math.sqrt(G * high)), "", 1)
        bench.row(f"{name}: iterations at most", max(stats["pressure_iterations"]), "")
        shutil.rmtree(run)


DROP = """scene { domain = { size = {1, 1, 1} }, detail = { coarsest = 8, finest = 16, surface = 24 },
  frames = { count = 3, rate = 24 }, output = { mesh = true },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.3, 1} }, sphere { center = {0.5, 0.6, 0.5}, radius = 0.15 }, %s } }"""

# Two bodies, for blender_bodies.py.
FALLING = """scene { domain = { size = {1, 1, 1} }, detail = { coarsest = 8, finest = 16, surface = 16 },
  frames = { count = 6, rate = 24 }, liquid = { box { min = {0, 0, 0}, max = {1, 0.3, 1} } },
  solids = { box { min = {.3, .5, .3}, max = {.5, .7, .5}, density = 400, spin = {0, 0, 3}, name = "crate" },
    sphere { center = {.7, .7, .6}, radius = .1, density = 1500, name = "ball" } } }"""


# ---- surface tension ----

TENSE = """scene { detail = { coarsest = 8, finest = 32 }, frames = { count = 2, rate = %.9g }, gravity = {0, 0, 0},
  fluid = { density = 1, surface_tension = 1 }, output = { surface = false, particles = false },
  liquid = { field(function(x, y, z)
    local a, b, c = x - 0.5, y - 0.5, z - 0.5
    local r = math.sqrt(a * a + b * b + c * c) + 1e-9
    return r - 0.25 * (1 + %g * (1.5 * a * a / (r * r) - 0.5)) end) },
  probes = { front { name = "right" }, front { name = "left", axis = "-x" }, front { name = "top", axis = "y" },
    front { name = "bottom", axis = "-y" }, pressure { name = "inside", at = {0.5, 0.5, 0.5} } } }"""


@case("A drop under surface tension", "A weightless drop of 8 cells a radius: the pressure in it and its speed in "
      "sqrt(sigma / rho R) after three periods at rest; the period of its second mode, 2 pi sqrt(rho R^3 / 8 sigma) [Lamb].",
      "time, s", "width less height, m")
def drop_tension(bench):
    radius = 0.25
    period = 2 * math.pi * math.sqrt(radius ** 3 / 8)
    run = bench.run(TENSE % (2 / (3 * period), 0))
    stats, probes = run_files.table(f"{run}/stats.csv"), run_files.table(f"{run}/probes.csv")
    inside = probes["inside"][1:]
    bench.row("pressure off by", 100 * abs(sum(inside) / len(inside) * radius / 2 - 1), "%", 1)
    bench.row("speed at rest", stats["max_speed"][-1] * math.sqrt(radius), "", 0.1)
    run = bench.run(TENSE % (1 / period, 0.05))
    probes = run_files.table(f"{run}/probes.csv")
    wide = [r - l - t + b for r, l, t, b in zip(*(probes[n] for n in ("right", "left", "top", "bottom")))]
    times = probes["time"]
    zeros = zero_crossings(times, wide)
    found = 2 * (zeros[2] - zeros[0]) / 2
    bench.row("period off by", 100 * abs(found / period - 1), "%", 3)
    bench.line(times, wide)


@case("A drop of 16 cells a radius", "The same period with cells of one size at the surface, 16 a radius.",
      "time, s", "width less height, m")
def drop_period(bench):
    period = 2 * math.pi * math.sqrt(0.25 ** 3 / 8)
    run = bench.run(TENSE % (2 / (1.4 * period), 0.05), "--set", "detail.coarsest=32", "--set", "detail.finest=64")
    probes = run_files.table(f"{run}/probes.csv")
    wide = [r - l - t + b for r, l, t, b in zip(*(probes[n] for n in ("right", "left", "top", "bottom")))]
    zeros = zero_crossings(probes["time"], wide)
    bench.row("period off by", 100 * abs((zeros[2] - zeros[0]) / period - 1), "%", 1.5)
    bench.line(probes["time"], wide)


RIPPLE = """scene { domain = { size = {1, 0.75%s} }, detail = { coarsest = 16, finest = 32 }, gravity = {0, 0, 0},
  fluid = { density = 1, surface_tension = 1 }, frames = { count = 10, rate = %.9g },
  output = { surface = false, particles = false },
  liquid = { field(function(x, y) return y - 0.4 - 0.02 * math.cos(2 * math.pi * x) end) },
  probes = { height { name = "middle", at = {0.5%s} }, height { name = "end", at = {0.02%s} } } }"""


@case("Capillary wave", "A standing wave of 32 cells under surface tension alone: its period is 2 pi / sqrt(sigma k^3 "
      "tanh(k H) / rho). `uniform` and `warp` in 2D too.", "time, s", "height in the middle less that at the end, m")
def capillary_wave(bench):
    k = 2 * math.pi
    period = 2 * math.pi / math.sqrt(k ** 3 * math.tanh(0.4 * k))
    for name, more in (("2D", ("", "", "")), ("3D", (", 0.25", ", 0.125", ", 0.125"))):
        if name == "2D" and bench.method not in ("uniform", "warp"):
            continue
        probes = run_files.table(f"{bench.run(RIPPLE % (more[0], 10 / (1.9 * period), more[1], more[2]))}/probes.csv")
        high = [m - e for m, e in zip(probes["middle"], probes["end"])]
        zeros = zero_crossings(probes["time"], high)
        bench.row(f"period in {name} off by", 100 * abs((zeros[2] - zeros[0]) / period - 1), "%", 2)
    bench.line(probes["time"], high)


# Half a wave on a thread of radius a, between two sides that are mirrors to it.
THREAD = """scene { domain = { size = {%(long).9g, 0.5, 0.5} }, detail = { coarsest = 18, finest = %(cells)d },
  gravity = {0, 0, 0}, fluid = { density = 1, surface_tension = 1 }, frames = { count = 10, rate = %(rate).9g },
  output = { surface = false, particles = false },
  liquid = { field(function(x, y, z) return math.sqrt((y - 0.25)^2 + (z - 0.25)^2)
    - 0.11 * (1 + 0.03 * math.cos(math.pi * x / %(long).9g)) end) },
  probes = { %(necks)s } }"""


# A long wave leaves a small drop in the middle of its neck, and breaks to both sides of it: per cent of the way there.
NECKS = 70, 76, 82, 88, 94, 98


def thread(bench, ka, time):
    """Kinetic energy at half of the time and at the end; the neck's least radius, in
    the thread's."""
    length = math.pi * 0.11 / ka
    run = bench.run(THREAD % {"long": length, "cells": round(72 * max(length, 0.5)), "rate": 10 / time,
                              "necks": ", ".join(f'height {{ name = "at_{n}", at = {{ {n / 100 * length}, 0.25 }} }}'
                                                 for n in NECKS)})
    stats, probes = run_files.table(f"{run}/stats.csv"), run_files.table(f"{run}/probes.csv")
    half = min(range(len(stats["time"])), key=lambda i: abs(stats["time"][i] - time / 2))
    energy = stats["energy_kinetic"]
    bench.line(stats["time"], energy)
    return energy[half], energy[-1], stats["time"][half], (min(min(probes[f"at_{n}"]) for n in NECKS) - 0.25) / 0.11


@case("A thread breaks into drops", "Rayleigh-Plateau: a thread of 8 cells a radius. From rest the energy of its fastest "
      "mode, k a = 0.697, grows as sinh(s t)^2, s = 0.3433 sqrt(sigma / rho a^3); waves with k a < 1 break it, shorter "
      "ones swing.", "time, s", "kinetic energy, J")
def thread_breaks(bench):
    time, exact = 0.19, 0.3433 / math.sqrt(0.11 ** 3)
    first, last, at, _ = thread(bench, 0.697, time)
    low, high = 0.1 * exact, 4 * exact
    for _ in range(60):
        middle = (low + high) / 2
        grown = (math.sinh(middle * time) / math.sinh(middle * at)) ** 2
        low, high = (middle, high) if grown < last / first else (low, middle)
    bench.row("growth rate off by", 100 * abs(low / exact - 1), "%", 10)
    bench.row("neck of a long wave, in radii of the thread", max(0, thread(bench, 0.5, 0.62)[3]), "", 0.3)
    first, last, _, neck = thread(bench, 1.3, 0.162)
    bench.row("a short wave's energy after half a swing", last / first, "", 0.3)
    bench.row("its neck off by", abs(neck - 1), "radii", 0.05)


BEAD = """scene { domain = { size = {1, 0.75, 1}, contact_angle = %(side)g }, detail = { coarsest = 24, finest = 48 },
  gravity = {0, 0, 0}, fluid = { density = 1, surface_tension = 1 }, frames = { count = 4, rate = %(rate)g },
  output = { particles = false },
  solids = { box { min = {-1, -1, -1}, max = {2, %(floor)g, 2}, contact_angle = %(angle)g } },
  liquid = { sphere { center = {0.503, %(y).9g, 0.497}, radius = %(radius).9g } } }"""


def contact_angle(run, frame, floor, least):
    """Of the ball that the surface above `least` is part of; vertices that lie far off it, drops, do not count."""
    points = [v[:3] for v in run_files.surface(f"{run}/frames/{frame:04d}/surface.ply")[0] if v[1] > least]
    for _ in range(6):
        rows = [(2 * x, 2 * y, 2 * z, 1, x * x + y * y + z * z) for x, y, z in points]
        m = [[sum(r[a] * r[b] for r in rows) for b in range(5)] for a in range(4)]
        for i in range(4):
            m[i] = [v / m[i][i] for v in m[i]]
            m = [row if r == i else [v - row[i] * w for v, w in zip(row, m[i])] for r, row in enumerate(m)]
        centre, radius = [m[i][4] for i in range(3)], math.sqrt(m[3][4] + sum(m[i][4] ** 2 for i in range(3)))
        off = [abs(math.dist(p, centre) - radius) for p in points]
        bound = 4 * sorted(off)[len(off) // 2] + 1e-9
        points = [p for p, o in zip(points, off) if o < bound]
    return math.degrees(math.acos(max(-1, min(1, (floor - centre[1]) / radius))))


@case("Beads at their contact angle", "A bead of 0.02 m3 in 48 cells that begins at its contact angle, on a side of the "
      "domain and on a solid, weightless, after 0.3 s: the mean over the last frames of the ball fitted to its surface.")
def beads(bench):
    for angle in 30, 60, 90, 120, 150:
        c = math.cos(math.radians(angle))
        radius = (0.06 / (math.pi * (2 + c) * (1 - c) ** 2)) ** (1 / 3)
        for place, floor in ("side", 0), ("solid", 0.1):
            run = bench.run(BEAD % {"side": angle if place == "side" else 90, "angle": angle, "rate": 4 / 0.3,
                                    "floor": floor or -0.5, "y": floor - radius * c, "radius": radius})
            found = [contact_angle(run, frame, floor, floor + 1.5 / 48) for frame in (2, 3, 4)]
            bench.row(f"{angle} degrees on a {place} off by", abs(sum(found) / 3 - angle), "degrees", 5)
            speed = run_files.table(f"{run}/stats.csv")["max_speed"][-1] * math.sqrt(radius)
            bench.row(f"its fastest particle at {angle} degrees on a {place}", speed, "sqrt(sigma / rho R)")

@case("ParaView", "ParaView itself opens surface.pvd, particles.pvd and mesh.vtu with every attribute, and counts what "
      "stats.csv and the PLY files count.", needs="pvpython")
def paraview(bench):
    run = bench.run(DROP % "")
    subprocess.run([bench.program, "export", run, "--to", "vtk", "--quiet"], check=True)
    said = bench.call(["pvpython", "--force-offscreen-rendering", f"{HERE}/paraview_reads.py", run])
    bench.row("disagreements", 0 if said.returncode == 0 else said.stdout.count("FAILED") or 1, "", 0,
              note=said.stdout[-300:] if said.returncode else "")


@case("Blender", "Blender without a display loads a run by tools/blender/undine_loader.py: counts, velocity and radius "
      "of every frame, pictures with and without motion blur, the loader by itself; a .blend saved and opened, a run that "
      "goes on, is made anew or moves, blur of slow motion.", needs="blender")
def blender(bench):
    run = bench.run(DROP % "velocity = {0, -3, 0}")
    call = ["blender", "--background", "--factory-startup", "--python-exit-code", "1", "--python"]
    loader = f"{ROOT}/tools/blender/undine_loader.py"
    said = bench.call([*call, f"{HERE}/blender_reads.py", "--", run, loader, f"{run}/picture"])
    bench.row("disagreements", 0 if said.returncode == 0 else said.stdout.count("FAILED") or 1, "", 0,
              note=said.stdout[-300:] if said.returncode else "")
    said = bench.call([*call, f"{HERE}/blender_goes_on.py", "--", run, loader, f"{run}-goes-on"])
    bench.row("saved, going on, moved", 0 if said.returncode == 0 else said.stdout.count("FAILED") or 1, "disagreements", 0,
              note=said.stdout[-300:] if said.returncode else "")
    said = bench.call([*call, loader, "--", run, "--frame", "2", "--save", f"{run}/run.blend", "--render",
                       f"{run}/out.png", "--samples", "2", "--width", "96"])
    good = said.returncode == 0 and os.path.exists(f"{run}/run.blend") and os.path.exists(f"{run}/out.png")
    bench.row("the loader by itself", 0 if good else 1, "failures", 0, note="" if good else said.stdout[-300:])
    run = bench.run(FALLING)
    for kind in "usd", "glb":
        subprocess.run([bench.program, "export", run, "--to", kind, "--quiet"], check=True)
    said = bench.call([*call, f"{HERE}/blender_bodies.py", "--", run])
    bench.row("bodies in its exports", 0 if said.returncode == 0 else said.stdout.count("FAILED") or 1, "disagreements", 0,
              note=said.stdout[-300:] if said.returncode else "")
