#!/usr/bin/env python3
"""Random scenes, run by several processes and by one: all files must be the same bytes.

    ranks.py PROGRAM MPI_PROGRAM [--seed N] [--count N] [--limit S] [--keep DIR]

Both programs are the same, one of them built with MPI. Scenes are small and have a random choice of
what a scene may have: solids that stand, move or float, thin walls, emitters and drains, open sides,
viscosity, surface tension, budgets, probes, two dimensions. Some runs stop after a frame and go on
with another number of processes. Scenes that are refused, or take one process longer than the limit,
are left out. One that differs is kept, and the command that runs it printed.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../test/program"))
import run_files

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
           OMPI_MCA_mpi_yield_when_idle="1")


class Scene:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.method = self.r.choice(["uniform", "tet", "octree"])
        self.flat = self.method != "tet" and self.r.random() < 0.2
        d = 2 if self.flat else 3
        self.size = [self.r.choice([0.6, 1, 1, 1.3]) for _ in range(d)]
        longest = max(self.size)
        if self.flat:
            self.cells = self.r.choice([24, 40, 64])
        else:
            self.cells = self.r.choice([12, 16, 20, 24] if self.method == "uniform" else [12, 16, 24, 32])
        self.h = longest / self.cells
        self.text = self.scene()

    def chance(self, p):
        return self.r.random() < p

    def number(self, low, high):
        return float(f"{self.r.uniform(low, high):.4g}")

    def point(self, low=0.1, high=0.9):
        return [self.number(low, high) * s for s in self.size]

    def vector(self, most):
        return [self.number(-most, most) for _ in self.size]

    @staticmethod
    def list(values):
        return "{" + ", ".join(f"{v:.5g}" if isinstance(v, float) else str(v) for v in values) + "}"

    def box(self, low, high):
        return f"box {{ min = {self.list(low)}, max = {self.list(high)} }}"

    def shape(self, most=0.25):
        r = self.number(1.2 * self.h, max(most * min(self.size), 1.5 * self.h))
        at = self.point()
        kind = self.r.choice(["box", "sphere", "cylinder", "capsule", "tilted"])
        if self.flat and kind in ("cylinder", "capsule"):
            kind = "sphere"
        if kind == "sphere":
            return f"sphere {{ center = {self.list(at)}, radius = {r} }}"
        if kind in ("cylinder", "capsule"):
            to = [a + b for a, b in zip(at, self.vector(0.4))]
            return f"{kind} {{ from = {self.list(at)}, to = {self.list(to)}, radius = {0.6 * r:.4g} }}"
        box = self.box([a - r * self.number(0.4, 1.5) for a in at],
                       [a + r * self.number(0.4, 1.5) for a in at])
        if kind == "box" or self.flat:
            return box
        return f"move {{ {box}, rotate = {self.list(self.vector(60))}, about = {self.list(at)} }}"

    def liquid(self):
        shapes = []
        kind = self.r.choice(["dam", "pool", "drops", "all"])
        s = self.size
        if kind in ("dam", "all"):
            side = self.r.randrange(len(s))
            side = 0 if side == 1 else side
            high = list(s)
            high[side] *= self.number(0.2, 0.5)
            high[1] *= self.number(0.4, 0.9)
            shapes.append(self.box([0] * len(s), high))
        if kind in ("pool", "all"):
            high = list(s)
            high[1] *= self.number(0.1, 0.5)
            shapes.append(self.box([0] * len(s), high))
        if kind in ("drops", "all"):
            for _ in range(self.r.randint(1, 4)):
                r = self.number(1.5 * self.h, 0.2 * min(s))
                shapes.append(f"sphere {{ center = {self.list(self.point(0.2, 0.9))}, radius = {r} }}")
        if self.chance(0.4):
            shapes.append(f"velocity = {self.list(self.vector(1.5))}")
        return "liquid = { " + ", ".join(shapes) + " }"

    def solids(self):
        found = []
        for _ in range(self.r.choice([0, 0, 1, 1, 2, 3])):
            kind = self.r.choice(["still", "still", "moving", "pose", "body", "thin"])
            more = ""
            if self.chance(0.3):
                more += f", friction = {self.number(0, 1)}"
            shape = self.shape()
            if kind == "moving":
                more += f", velocity = {self.list(self.vector(0.8))}"
            if kind == "pose":
                v = self.vector(1.0)
                turn = (f"rotate = {{0, 0, {self.number(-200, 200)} * t}}" if self.flat else
                        f"rotate = {{0, {self.number(-200, 200)} * t, 0}}")
                by = ", ".join(f"{a} * t" for a in v)
                more += (f", pose = function(t) return {{ by = {{{by}}}, {turn}, "
                         f"about = {self.list(self.point())} }} end")
            if kind == "body":
                more += f", density = {self.r.choice([30, 200, 500, 900, 2500])}"
                if self.chance(0.3):
                    more += f", velocity = {self.list(self.vector(0.8))}"
            if kind == "thin":
                t = self.number(0.6, 1.4) * self.h
                at, axis = self.point(0.3, 0.7), self.r.randrange(len(self.size))
                low, high = self.point(0.0, 0.3), self.point(0.6, 1.0)
                low[axis], high[axis] = at[axis] - t / 2, at[axis] + t / 2
                shape = self.box(low, high)
                if self.chance(0.4) and not self.flat:
                    shape = (f"move {{ {shape}, rotate = {self.list(self.vector(30))}, "
                             f"about = {self.list(at)} }}")
                if self.chance(0.3):
                    more += f", velocity = {self.list(self.vector(0.5))}"
            found.append(f"solid {{ {shape}{more} }}")
        return "solids = { " + ", ".join(found) + " }" if found else None

    def sources(self):
        found = []
        for _ in range(self.r.choice([0, 0, 0, 1, 1, 2])):
            if self.chance(0.7):
                more = f", velocity = {self.list(self.vector(1.5))}" if self.chance(0.85) else ""
                if more and self.chance(0.3):
                    more += f", flow = {self.number(0.001, 0.03)}"
                if self.chance(0.3):
                    more += f", from = {self.number(0, 0.05)}, to = {self.number(0.06, 0.2)}"
                found.append(f"emitter {{ {self.shape(0.15)}{more} }}")
            else:
                found.append(f"drain {{ {self.shape(0.2)} }}")
        return "sources = { " + ", ".join(found) + " }" if found else None

    def probes(self):
        if not self.chance(0.5):
            return None
        at = self.list(self.point())
        low, high = [0] * len(self.size), list(self.size)
        low[0] = high[0] = self.number(0.2, 0.8) * self.size[0]
        level = self.point()
        level = [level[0]] if self.flat else [level[0], level[2]]
        return ('probes = { front { axis = "x" }, height { at = ' + self.list(level) + " }, pressure { at = "
                + at + " }, wet { axis = \"x\" }, velocity { at = " + at + " }, flux { min = "
                + self.list(low) + ", max = " + self.list(high) + " } }")

    def scene(self):
        r = self.r
        parts = [f'method = "{self.method}"']
        domain = f"size = {self.list(self.size)}"
        if self.chance(0.25):
            names = ["left", "right", "top"] + ([] if self.flat else ["back", "front"])
            domain += ", open = {" + ", ".join(f'"{n}"' for n in r.sample(names, r.randint(1, 2))) + "}"
        fluid = []
        tension = self.chance(0.2)
        thick = not tension and not (self.flat and self.method == "octree") and self.chance(0.25)
        if tension:
            fluid.append(f"surface_tension = {r.choice([0.07, 1, 10])}")
            if self.chance(0.5):
                domain += f", contact_angle = {r.choice([40, 90, 140])}"
        if thick:
            value = str(r.choice([0.1, 5, 200]))
            if self.method != "octree" and self.chance(0.3):
                value = f"function(x, y, z) return {value} * (0.1 + x) end"
            fluid.append(f"viscosity = {value}")
        if self.method != "octree" and self.chance(0.15):
            fluid.append("density = function(x, y, z) return x > 0.5 and 1500 or 800 end")
        parts.append(f"domain = {{ {domain} }}")
        detail = f"finest = {self.cells}"
        if self.method != "uniform":
            detail += f", coarsest = {self.cells // r.choice([1, 2, 4])}"
        if self.chance(0.5):
            detail += f", surface = {r.choice([self.cells, 2 * self.cells])}"
        parts.append(f"detail = {{ {detail} }}")
        self.frames = r.choice([1, 2, 4, 8])
        parts.append(f"frames = {{ count = {self.frames}, rate = {r.choice([24, 40, 80])} }}")
        if self.chance(0.15):
            parts.append(f"gravity = {self.list(self.vector(9))}")
        if fluid:
            parts.append("fluid = { " + ", ".join(fluid) + " }")
        solver = []
        if self.chance(0.1):
            solver.append("suction = true")
        if self.chance(0.15):
            solver.append(f"sheets = {r.choice([0, 2])}")
        if self.method == "uniform" and not thick and self.chance(0.2):
            solver.append("band = 4")
        if self.method == "tet" and self.chance(0.15):
            solver.append('surface = "hulls"')
        if self.chance(0.15):
            solver.append(f"cfl = {r.choice([1, 6])}")
        if self.chance(0.15):
            solver.append(f"pic = {r.choice([0, 30])}")
        if solver:
            parts.append("solver = { " + ", ".join(solver) + " }")
        if self.method != "uniform":
            if self.chance(0.25):
                terms = ["depth", "curvature", "strain", "solid_curvature", "film"]
                parts.append("sizing = { " + ", ".join(f"{t} = {r.choice(['false', '2', '0.5'])}" for t in
                                                       r.sample(terms, 2)) + " }")
            if self.chance(0.2):
                parts.append(f"budget = {{ particles = {r.choice([3000, 10000, 40000])} }}")
        parts.append(self.liquid())
        parts += [p for p in (self.solids(), self.sources(), self.probes()) if p]
        output = []
        if self.chance(0.3):
            output.append("surface = false")
        if self.chance(0.2):
            output.append("mesh = true")
        if output:
            parts.append("output = { " + ", ".join(output) + " }")
        return "scene {\n  " + ",\n  ".join(parts) + "\n}\n"


def start(command, limit):
    try:
        done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, "takes too long"
    return done.returncode, done.stderr


def different(one, several):
    """The first file that is not the same."""
    wanted, got = run_files.files(one), run_files.files(several)
    got.pop("ranks.csv", None)
    for name in sorted(wanted.keys() | got.keys()):
        if name == "stats.csv":
            for x, y in zip(wanted[name][1:], got[name][1:]):
                for column, p, q in zip(wanted[name][0], x, y):
                    if p != q:
                        return f"stats.csv, step {x[0]}, {column}: {p} and {q}"
        if wanted.get(name) != got.get(name):
            return name
    return None


def try_scene(args, seed, scratch):
    """What is not as it should be, "" for a scene that is left out, None if all is well; the command;
    the method, or why it is left out."""
    scene = Scene(seed)
    r = random.Random(seed + 1)
    path, one, several = (os.path.join(scratch, n) for n in ("scene.lua", "one", "several"))
    for directory in (one, several):
        shutil.rmtree(directory, ignore_errors=True)
    with open(path, "w") as file:
        file.write(scene.text)
    code, said = start([args.program, "run", path, "-o", one, "--quiet", "--threads", "2"], args.limit)
    if code is None:
        return "", "", said
    ranks = r.choice([2, 3, 3, 4, 5, 7])
    command = ["mpirun", "-n", str(ranks), args.mpi_program, "run", path, "-o", several, "--quiet",
               "--threads", "1"]
    words = " ".join(command)
    if code == 0 and scene.frames > 1 and r.random() < 0.3:  # go on with others
        code2, said2 = start(command + ["--frames", "1"], 20 * args.limit)
        if code2 != 0:
            return f"first half: {code2} {said2}", words, scene.method
        command[2] = str(r.choice([1, 2, 3, 5]))
        command[4:] = ["run", path, "-o", several, "--quiet", "--threads", "1", "--resume"]
        words += " --frames 1; " + " ".join(command)
    code2, said2 = start(command, 20 * args.limit)
    if (code == 0) != (code2 == 0):
        return f"one says {code} {said}, {ranks} say {code2} {said2}", words, scene.method
    if code != 0:  # refused; -N: signal N
        return f"exit {code}: {said}" if code < 0 else "", words, said
    return different(one, several), words, scene.method


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("mpi_program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--limit", type=float, default=20, help="seconds of one process for a scene")
    parser.add_argument("--keep", default=".", help="where scenes go that differ")
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(args.seed, args.seed + args.count):
            began = time.time()
            what, command, about = try_scene(args, seed, scratch)
            if what:
                bad += 1
                kept = os.path.join(args.keep, f"ranks-{seed}.lua")
                shutil.copy(os.path.join(scratch, "scene.lua"), kept)
                print(f"{seed}: {what}\n  {kept}: {command}", flush=True)
            else:
                word = "same" if what is None else "left out"
                print(f"{seed}: {word}, {time.time() - began:.1f} s, {about.strip()[:150]}", flush=True)
    sys.exit(bad > 0)


main()
