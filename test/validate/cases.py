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

import run_files

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(f"{HERE}/../..")
CASES = []


def case(title, about, x="", y="", reference=None, methods="all", needs=None):
    """methods: all; own: that of the scene, others only when asked for; none: it is not about
    methods. needs: a program that must be there."""
    def add(function):
        CASES.append({"name": function.__name__, "title": title, "about": about, "x": x, "y": y,
                      "reference": reference, "methods": methods, "needs": needs, "run": function})
        return function
    return add


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
    for kind in "plane", "round":
        for cells, options in (("graded", []), ("even", ["--set", f"detail.coarsest={112 if kind == 'plane' else 56}"])):
            if kind == "round" and cells == "even":
                options = options + ["--set", "detail.finest=56"]
            run = bench.run(f"scenes/huppert_{kind}.lua", "--set", "output.particles=false", *options)
            rate = run_files.record(run)["frames"]["rate"]
            for time in 1, 10:
                front = front_of(kind, run, round(time * rate))
                bench.row(f"{kind}, {cells} cells, {time} s: front off by",
                          100 * abs(front / SLUMPS[kind](time) - 1), "%", 5)
            if kind == "plane" and cells == "graded":
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


DROP = """scene { domain = { size = {1, 1, 1} }, detail = { coarsest = 8, finest = 16, surface = 24 },
  frames = { count = 3, rate = 24 }, output = { mesh = true },
  liquid = { box { min = {0, 0, 0}, max = {1, 0.3, 1} }, sphere { center = {0.5, 0.6, 0.5}, radius = 0.15 }, %s } }"""


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
    zeros = [t0 + (t1 - t0) * w0 / (w0 - w1) for t0, t1, w0, w1 in zip(times, times[1:], wide, wide[1:])
             if (w0 > 0) != (w1 > 0)]
    found = 2 * (zeros[2] - zeros[0]) / 2
    bench.row("period off by", 100 * abs(found / period - 1), "%", 3)
    bench.line(times, wide)


@case("ParaView", "ParaView itself opens surface.pvd, particles.pvd and mesh.vtu with every attribute, and counts what "
      "stats.csv and the PLY files count.", needs="pvpython")
def paraview(bench):
    run = bench.run(DROP % "")
    subprocess.run([bench.program, "export", run, "--to", "vtk", "--quiet"], check=True)
    said = bench.call(["pvpython", "--force-offscreen-rendering", f"{HERE}/paraview_reads.py", run,
                       bench.run(DROP % "", "--method", "tet", "--frames", "1")])
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
