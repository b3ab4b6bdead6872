#!/usr/bin/env python3
"""What ranks send one another, against a model, and what the model says of many ranks.

    ranks.py PROGRAM MPI_PROGRAM -o OUT [--method tet] [--cells N] [--ranks 2,4,8,16] [--repeat N]

Runs a tank whose liquid runs along z, a step a frame, in one process and on several ranks; both are
the same program, one of them built with MPI. From the particles of the one process the model
predicts, for any number of ranks,

    copies     particles in the row above bars of other ranks, or a tenth more than a row below them
    migrated   particles whose way in a step leads to a bar of another rank
    halo       copies: 58 bytes with all they have, 24 for their places after they were moved; and
               rows of cells at borders, whose bytes in each step come from the run on 2 ranks: those
               of a border with liquid count WET times as much as those without

and compares them with ranks.csv. Then it fits the processor time of ranks outside of MPI, in runs of
this tank and of one with half as many cells more along each side,

    busy = a particles + b copies + c

which one size alone does not tell apart: where ranks are more, all of them have fewer particles and
more copies for each. And it predicts the efficiency of many ranks: a particles, over the busy time with copies, uneven work,
and messages. A network's latency, the processor time for a message, and bandwidth are given, not
measured. A rank sends to all its neighbours at once and then waits, so an exchange costs the
latency once, and a message to each of them.

A bar is 8 by 8 rows of cells. Bars follow one another along a curve in the plane of y and z, so a
grid has work for as many ranks as it has bars, and says how much a part's border is: for many ranks
the model takes a square of bars, as long as the grid is, and counts the particles around it.

With `tet`, ranks have parts of a curve of about the same work: a particle and, where it asks for a
cube, a sixth of what that costs. The scene is a dam of liquid that moves. The model cuts the curve
of the one process's particles the same way, and finds

    migrated   particles that another part held before the step
               (and of those that stay, as many for each copy as on 2 ranks: in tets across a border
               particles go to the rank of their place, and back to that of their tet)
    copies     groups of eight that boxes of other parts' particles reach. How many more are sent,
               for nodes and around particles that split or merge, comes from the run on 2 ranks
    halo       copies, with their bytes from the run on 2 ranks

and the processor time is fitted to runs of the scene and of a finer one,

    busy = a particles + b copies + c

Lists that every rank gets of all (listed_bytes) grow with the ranks, and some with the whole scene:
how much is fitted to all runs. The model counts their way to a rank, but not what the rank then does
with them: on processors that others use, times of scenes of two sizes do not tell that from noise.
So with these lists the efficiency is at most the one that is printed; the other is what would be
left without them. Rows of coarse levels (coarse_bytes) are as many in large systems.
"""
import argparse
import csv
import math
import os
import subprocess
import sys

import numpy

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../test/program"))
import run_files

SCENE = """scene {{ method = "uniform", domain = {{ size = {{0.25, 0.25, 1}} }}, detail = {{ finest = {cells} }},
  frames = {{ count = {steps}, rate = {rate} }},
  liquid = {{ box {{ min = {{0, 0, 0}}, max = {{0.25, 0.1, 1}} }}, velocity = {{0, 0, 0.5}} }},
  output = {{ surface = false }} }}
"""
DAM = """scene {{ method = "tet", domain = {{ size = {{1, 1, 1}} }},
  detail = {{ finest = {cells}, coarsest = {coarsest} }}, frames = {{ count = {steps}, rate = {rate} }},
  liquid = {{ box {{ min = {{0, 0, 0}}, max = {{0.4, 0.8, 1}} }}, velocity = {{0.5, 0, 0.3}} }},
  output = {{ surface = false }} }}
"""
BAR = 8          # rows along y and z
WET = 8          # bytes of rows in the liquid, in those of rows without
ABOVE, BELOW = 1, 1.101  # copies, in cells from the bar of another rank
GAIN = 0.05      # bars are cut again for this
CELL_WORK = 0.5  # in particles
ALL_BYTES, PLACE_BYTES = 58, 24
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
           OMPI_MCA_mpi_yield_when_idle="1")


def run(command, directory):
    done = subprocess.run(command + ["--quiet", "--threads", "1", "-o", directory], env=ENV,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")


def best_cut(work, ranks):
    """First units of ranks: the largest work as small as possible, as the program cuts."""
    before = numpy.concatenate([[0.0], numpy.cumsum(work)])
    units = len(work)

    def earliest(most):
        first = [0] * ranks + [units]
        for r in range(ranks - 1, -1, -1):
            end = first[r + 1]
            u = end - 1
            if u < r or before[end] - before[u] > most:
                return None
            while u > r and before[end] - before[u - 1] <= most:
                u -= 1
            first[r] = u
        return first if first[0] == 0 else None

    low, high = before[-1] / ranks, before[-1]
    if earliest(low):
        high = low
    for _ in range(60):
        middle = low + (high - low) / 2
        if earliest(middle):
            high = middle
        else:
            low = middle
    least, first = earliest(high), [0]
    for r in range(1, ranks):
        u = max(least[r], first[-1] + 1)
        while (u < units - ranks + r and before[u + 1] - before[first[-1]] <= high
               and (before[u] + before[u + 1]) / 2 < before[-1] * r / ranks):
            u += 1
        first.append(u)
    first.append(units)
    largest = max(before[b] - before[a] for a, b in zip(first, first[1:]))
    return first, largest, before


def hilbert(side, d):
    at, s = [0, 0], 1
    while s < side:
        right = d // 2 & 1
        up = (d ^ right) & 1
        if not up:
            if right:
                at = [s - 1 - at[0], s - 1 - at[1]]
            at.reverse()
        at[0] += s * right
        at[1] += s * up
        s, d = 2 * s, d // 4
    return at


def curve(bars):
    """The bars in their order, as the program passes them."""
    along = int(bars[1] > bars[0])
    side, order = 1, []
    while side < bars[1 - along]:
        side *= 2
    for begin in range(0, bars[along], side):
        for d in range(side * side):
            at = hilbert(side, d)
            place = [0, 0]
            place[along], place[1 - along] = begin + at[0], at[1]
            if place[0] < bars[0] and place[1] < bars[1]:
                order.append(place[0] + bars[0] * place[1])
    return numpy.array(order)


class Tank:
    """The run of one process: places of particles at the end of each step, and before it."""

    def __init__(self, directory, cells, steps, rate):
        self.h = 1 / cells
        self.rows = numpy.array([round(0.25 * cells) + 2, cells + 2])
        self.row_cells = round(0.25 * cells) + 2
        self.bars = (self.rows + BAR - 1) // BAR
        self.order = curve(self.bars)
        size = [numpy.minimum(BAR, n - BAR * numpy.arange(b)) for n, b in zip(self.rows, self.bars)]
        self.cells = self.row_cells * (size[1][:, None] * size[0]).ravel()
        self.now, self.was = [], []
        stats = run_files.table(f"{directory}/stats.csv")
        if len(stats["step"]) != steps + 1:
            sys.exit("steps are shorter than frames: raise the rate")
        for frame in range(steps + 1):
            found = run_files.particles(f"{directory}/frames/{frame:04d}/particles.vtp")
            x = numpy.array(found["Points"])[:, 1:] / self.h + 1
            v = numpy.array(found["velocity"])[:, 1:] / self.h
            self.now.append(x)
            self.was.append(x - v / rate)
        self.count = len(self.now[0])

    def bar(self, x):
        at = numpy.clip(x.astype(int), 0, self.rows - 1) // BAR
        return at[:, 0] + self.bars[0] * at[:, 1]

    def owners(self, first):
        owner = numpy.empty(len(self.order), int)
        for rank, (a, b) in enumerate(zip(first, first[1:])):
            owner[self.order[a:b]] = rank
        return owner

    def copies(self, x, owner):
        at = numpy.clip(x.astype(int), 0, self.rows - 1) // BAR
        low = x - BAR * at
        way = numpy.where(low < ABOVE, -1, numpy.where(BAR - low <= BELOW, 1, 0))
        way = numpy.where((at + way >= 0) & (at + way < self.bars), way, 0)
        own = owner[at[:, 0] + self.bars[0] * at[:, 1]]
        others = [owner[at[:, 0] + way[:, 0] * y + self.bars[0] * (at[:, 1] + way[:, 1] * z)]
                  for y, z in ((1, 0), (0, 1), (1, 1))]
        count = (others[0] != own).sum() + ((others[1] != own) & (others[1] != others[0])).sum()
        return count + ((others[2] != own) & (others[2] != others[0]) &
                        (others[2] != others[1])).sum()

    def sides(self, owner, wet):
        """Of bars next to those of other ranks: as if all were dry, the wet ones times WET."""
        o, w = (a.reshape(self.bars[1], self.bars[0]) for a in (owner, wet))
        total = 0
        for a, b in ((numpy.s_[1:, :], numpy.s_[:-1, :]), (numpy.s_[:, 1:], numpy.s_[:, :-1])):
            other = o[a] != o[b]
            total += (other * (2 + (WET - 1) * (w[a] + w[b]))).sum()
        return total

    def predict(self, ranks):
        """At the start and by step: copies sent, particles migrated, copies, largest work over the
        mean, borders' sides."""
        first, rows, count = None, [], len(self.order)
        for now, before_it, was in zip(self.now, [self.now[0]] + self.now, self.was):
            # bars are cut by the particles of the step before
            held = numpy.bincount(self.bar(before_it), minlength=count)
            cut, largest, before = best_cut((held + CELL_WORK * self.cells)[self.order], ranks)
            old = first
            if first:
                current = max(before[b] - before[a] for a, b in zip(first, first[1:]))
                if 1 - largest / current >= GAIN:
                    first = cut
            else:
                first = cut
            most = max(before[b] - before[a] for a, b in zip(first, first[1:]))
            owner, owner_was = self.owners(first), self.owners(old or first)
            copies = int(self.copies(now, owner))
            migrated = int((owner[self.bar(now)] != owner_was[self.bar(was)]).sum())
            wet = numpy.minimum(held / (4 * self.cells), 1)
            # one that has just left stays behind as a copy, which nobody sends
            rows.append((copies - migrated, migrated, copies, most / (before[-1] / ranks),
                         self.sides(owner, wet)))
        return rows


def measured(directory):
    with open(f"{directory}/ranks.csv", newline="") as file:
        rows = [{k: float(v) for k, v in r.items()} for r in csv.DictReader(file)]
    steps = {}
    for r in rows:
        steps.setdefault(int(r["step"]), []).append(r)
    return [steps[s] for s in sorted(steps)]


def total(step, name):
    return sum(r[name] for r in step)


def compare(tank, runs):
    """Prints the table; returns the worst error."""
    worst = 0
    layer_bytes = {}
    print("ranks  copies (model)      migrated (model)   halo + migrated, MB a step (model)  off")
    for ranks, steps in runs.items():
        model = tank.predict(ranks)
        copies = migrated = volume = copies_model = migrated_model = volume_model = 0
        for s, (step, (c, m, _, _, sides)) in enumerate(zip(steps, model[1:])):
            refreshed = model[s][2]
            halo = total(step, "halo_bytes")
            if ranks == 2:  # what particles do not explain is layers of cells
                layer_bytes[s] = (halo - c * ALL_BYTES - refreshed * PLACE_BYTES) / sides
            copies += total(step, "copies")
            migrated += total(step, "migrated")
            volume += halo + total(step, "migrated_bytes")
            copies_model += c
            migrated_model += m
            volume_model += (c + m) * ALL_BYTES + refreshed * PLACE_BYTES + layer_bytes[s] * sides
        n, off = len(steps), volume_model / volume - 1
        worst = max(worst, abs(off))
        print(f"{ranks:5d}  {copies / n:8.0f} ({copies_model / n:8.0f})  {migrated / n:7.0f} "
              f"({migrated_model / n:7.0f})  {volume / n / 1e6:14.3f} ({volume_model / n / 1e6:.3f})"
              f"{100 * off:+13.1f} %")
    return worst


def fit_times(matrix, busy):
    """The times that are least off, relative to those measured."""
    x, *_ = numpy.linalg.lstsq(matrix / busy[:, None], numpy.ones(len(busy)), rcond=None)
    if x[2] < 0:  # nothing takes less than no time
        x, *_ = numpy.linalg.lstsq(matrix[:, :2] / busy[:, None], numpy.ones(len(busy)), rcond=None)
        x = numpy.append(x, 0)
    return x, float(numpy.sqrt(numpy.mean((matrix @ x / busy - 1) ** 2)))


def least_busy_steps(runs):
    """The least busy step of each rank: others may use the processors too."""
    return [min((step[n] for step in steps[1:]), key=lambda r: r["busy_seconds"])
            for by in runs for steps in by.values() for n in range(len(steps[0]))]


def fit_busy(runs):
    """a, b, c; runs: a list of runs by number of ranks."""
    rows = least_busy_steps(runs)
    matrix = numpy.array([[r["particles"], r["copies"], 1] for r in rows])
    busy = numpy.array([r["busy_seconds"] for r in rows])
    return fit_times(matrix, busy)


def efficiency(fit, runs, args, ranks, particles, copies, neighbours):
    """Share of the time that goes to own particles, and the times of what else there is."""
    a, b, c = fit
    largest = runs[-1]
    most = largest[max(largest)]
    inner = [r for step in most[1:] for r in step if 0 < r["rank"] < max(largest) - 1]
    mean = {k: sum(r[k] for r in inner) / len(inner) for k in inner[0]}
    scale = copies / mean["copies"]  # bytes go by the area of borders, and so do copies
    sent = scale * (mean["halo_bytes"] + mean["migrated_bytes"] + mean["solve_bytes"])
    # in these runs a rank has some neighbours, to which it sends at once
    exchanges = mean["messages"] / args.had
    by_rank, by_particle = fit_lists(runs)
    times = {"own particles": a * particles,
             "uneven work": a * particles * (args.uneven - 1),
             "copies": b * copies,
             "constant": c,
             "lists": (by_rank * ranks + by_particle * ranks * particles) / args.bandwidth,
             # levels that all ranks get have as many rows in large systems, or fewer
             "bytes": (sent + mean["coarse_bytes"]) / args.bandwidth,
             "messages": exchanges * (args.latency + neighbours * args.overhead),
             "calls": mean["calls"] * args.latency * math.log2(ranks)}
    return a * particles / sum(times.values()), times


class Dam:
    """The run of one process with `tet`: its particles, in the order of the curve."""

    GROUP, BLOCK = 8, 64       # particles
    WIDE = 32                  # radii: of blocks that are told group by group
    LEAF, LEAF_WORK = 2.8, 6.0 # a cube's edge, in that of its particles; its work, in particles

    def __init__(self, directory, cells, coarsest, steps, rate):
        self.h, self.levels, self.rate = 1 / cells, int(math.log2(cells // coarsest)), rate
        self.frames = []
        stats = run_files.table(f"{directory}/stats.csv")
        if len(stats["step"]) != steps + 1:
            sys.exit("steps are shorter than frames: raise the rate")
        for frame in range(steps + 1):
            found = run_files.particles(f"{directory}/frames/{frame:04d}/particles.vtp")
            self.frames.append([numpy.array(found[k]) for k in ("Points", "velocity", "volume")])
        self.count = len(self.frames[0][2])

    def key(self, x):
        index = numpy.clip((x / self.h).astype(numpy.int64), 0, round(1 / self.h) - 1)
        key = numpy.zeros(len(x), numpy.int64)
        for bit in range(12):
            for axis in range(3):
                key |= (index[:, axis] >> bit & 1) << (3 * bit + axis)
        return key

    def cut(self, x, volume, ranks):
        """Keys where parts begin."""
        key = self.key(x)
        up = numpy.floor(numpy.log2(self.LEAF * numpy.cbrt(volume) / self.h * (1 + 1e-6)))
        shift = 3 * numpy.clip(up, 0, self.levels).astype(numpy.int64)
        cube = key >> shift << shift
        place, first = numpy.unique(cube * 64 + shift, return_index=True)
        where = numpy.concatenate([key, cube[first]])
        work = numpy.concatenate([numpy.ones(len(key)), numpy.full(len(first), self.LEAF_WORK)])
        order = numpy.argsort(where, kind="stable")
        sums = numpy.cumsum(work[order])
        at = numpy.searchsorted(sums, sums[-1] * numpy.arange(1, ranks) / ranks)
        return where[order][at]

    @staticmethod
    def boxes(x, r, size):
        """Lower and upper corners and largest radii of every `size` in a row."""
        begin = numpy.arange(0, len(x), size)
        return (numpy.minimum.reduceat(x, begin), numpy.maximum.reduceat(x, begin),
                numpy.maximum.reduceat(r, begin))

    def reached(self, x, r, owner, ranks):
        """How many particles go to other parts: whole groups that boxes there reach."""
        low, high, most = self.boxes(x, r, self.GROUP)
        of = owner[::self.GROUP]
        wide_low, wide_high, wide_most = self.boxes(x, r, self.BLOCK)
        wide = (wide_high - wide_low).max(axis=1) > self.WIDE * wide_most
        in_wide = wide[numpy.arange(len(of)) // (self.BLOCK // self.GROUP)]
        told = [numpy.concatenate([a[~wide], b[in_wide]]) for a, b in
                ((wide_low, low), (wide_high, high), (wide_most, most))]
        told_of = numpy.concatenate([owner[::self.BLOCK][~wide], of[in_wide]])
        count = 0
        for rank in range(ranks):
            mine = told_of == rank
            a, b, c = told[0][mine], told[1][mine], told[2][mine]
            if len(a) == 0:
                continue
            span = (c.max() + most)[:, None]
            near = (of != rank) & ((low - span <= b.max(axis=0)) & (high + span >= a.min(axis=0))).all(axis=1)
            for piece in numpy.array_split(numpy.flatnonzero(near), len(a) * near.sum() // 4000000 + 1):
                gap = numpy.maximum(0, numpy.maximum(low[piece, None] - b[None], a[None] - high[piece, None]))
                hit = (gap ** 2).sum(axis=2) < (most[piece, None] + c[None]) ** 2
                count += self.GROUP * int(hit.any(axis=1).sum())
        return count

    def predict(self, ranks):
        """By step: particles migrated, copies for correction."""
        rows, cut = [], None
        for x, v, volume in self.frames:
            was, cut = cut, self.cut(x, volume, ranks)
            owner = numpy.searchsorted(cut, self.key(x), side="right")
            if was is None:
                continue
            before = numpy.searchsorted(was, self.key(x - v / self.rate), side="right")
            r = 0.5 * numpy.cbrt(volume)
            rows.append((int((owner != before).sum()), self.reached(x, r, owner, ranks)))
        return rows


def compare_dam(dam, runs):
    """Prints the table; returns the worst error."""
    worst, more, each, back = 0, None, None, None
    print("ranks  copies (model)      migrated (model)   halo + migrated, MB a step (model)  off")
    for ranks, steps in runs.items():
        model = dam.predict(ranks)
        n = len(steps)
        copies, migrated = (sum(total(s, k) for s in steps) / n for k in ("copies", "migrated"))
        moved = sum(total(s, "migrated_bytes") for s in steps) / n
        volume = sum(total(s, "halo_bytes") for s in steps) / n + moved
        m_migrated, m_all = (sum(r[k] for r in model) / n for k in range(2))
        if more is None:  # from the first run
            more = copies / m_all
            each = (volume - moved) / copies
            back = (migrated - m_migrated) / copies
        m_copies = more * m_all
        m_migrated += back * m_copies
        m_volume = each * m_copies + m_migrated * moved / migrated
        off = m_volume / volume - 1
        worst = max(worst, abs(off))
        print(f"{ranks:5d}  {copies:8.0f} ({m_copies:8.0f})  {migrated:7.0f} ({m_migrated:7.0f})"
              f"  {volume / 1e6:14.3f} ({m_volume / 1e6:.3f}){100 * off:+13.1f} %")
    print(f"bytes a copy {each:.0f}; copies {more:.2f} of those for correction; "
          f"{back:.4f} a copy go to the rank of their place and back")
    return worst


def fit_dam(runs):
    """a, b, c of ranks' busy time; runs: a list of runs by number of ranks."""
    rows = [r for by in runs for steps in by.values() for step in steps[1:] for r in step]
    matrix = numpy.array([[r["particles"], r["copies"], 1] for r in rows])
    busy = numpy.array([r["busy_seconds"] for r in rows])
    return fit_times(matrix, busy)


def fit_lists(runs):
    """Bytes of lists that every rank gets: by rank, and by particle of the scene."""
    rows, listed = [], []
    for by in runs:
        for ranks, steps in by.items():
            for step in steps[1:]:
                rows.append([ranks, total(step, "particles")])
                listed.append(total(step, "listed_bytes") / ranks)
    matrix, listed = numpy.array(rows, float), numpy.array(listed)
    x, *_ = numpy.linalg.lstsq(matrix / listed[:, None], numpy.ones(len(listed)), rcond=None)
    if x[1] < 0:  # too few to tell
        x = numpy.array([(listed / matrix[:, 0]).mean(), 0])
    return x


def efficiency_dam(fit, runs, args, ranks, particles):
    """Share of the time that goes to own particles, and the times of what else there is."""
    a, b, c = fit
    largest = runs[-1]
    most = max(largest)
    rows = [r for step in largest[most][1:] for r in step]
    mean = {k: sum(r[k] for r in rows) / len(rows) for k in rows[0]}
    # copies and bytes go by the area of parts
    area = (particles / mean["particles"]) ** (2 / 3)
    copies = area * mean["copies"]
    sent = area * (mean["halo_bytes"] + mean["migrated_bytes"] + mean["solve_bytes"])
    by_rank, by_particle = fit_lists(runs)
    listed = by_rank * ranks + by_particle * ranks * particles
    near = max(1, args.neighbours / (most - 1))
    times = {"own particles": a * particles,
             "uneven work": a * particles * (args.uneven - 1),
             "copies": b * copies,
             "constant": c,
             "lists": listed / args.bandwidth,
             "bytes": (sent + mean["coarse_bytes"]) / args.bandwidth,
             "messages": mean["messages"] * near * args.latency,
             "calls": mean["calls"] * args.latency * math.log2(ranks)}
    all_ = sum(times.values())
    return a * particles / all_, a * particles / (all_ - times["lists"]), times


def least_busy(runs, ranks, steps):
    """Others may use the processors, too: of equal runs, each step of a rank where it took least."""
    for step, best in zip(steps, runs.setdefault(ranks, steps)):
        for r, b in zip(step, best):
            b["busy_seconds"] = min(b["busy_seconds"], r["busy_seconds"])


def main_dam(args):
    by_size, dam = [], None
    for cells in (args.cells, args.cells * 3 // 2):
        coarsest, scene = cells // 4, f"{args.output}/dam{cells}.lua"
        with open(scene, "w") as file:
            file.write(DAM.format(cells=cells, coarsest=coarsest, steps=args.steps, rate=args.rate))
        one, runs = f"{args.output}/one{cells}", {}
        if cells == args.cells:
            if not (args.reuse and os.path.exists(one)):
                run([args.program, "run", scene], one)
            dam = Dam(one, cells, coarsest, args.steps, args.rate)
        for repeat in range(args.repeat):
            for ranks in map(int, args.ranks.split(",")):
                directory = f"{args.output}/on{cells}.{ranks}" + (f".{repeat}" if repeat else "")
                if not (args.reuse and os.path.exists(directory)):
                    run(["mpirun", "-n", str(ranks), args.mpi_program, "run", scene, "--set",
                         "output.particles=false"], directory)
                least_busy(runs, ranks, measured(directory))
        by_size.append(runs)
    print(f"{dam.count} particles")
    worst = compare_dam(dam, by_size[0])
    print(f"farthest from the model: {100 * worst:.1f} %")
    fit, off = fit_dam(by_size)
    print(f"busy: {1e6 * fit[0]:.2f} us a particle, {1e6 * fit[1]:.2f} us a copy, "
          f"{1e3 * fit[2]:.2f} ms besides; off by {100 * off:.0f} % (root mean square)")
    uneven = max(max(r["particles"] for r in s) * len(s) / total(s, "particles")
                 for runs in by_size for steps in runs.values() for s in steps)
    print(f"most particles over the mean in these runs: at most {uneven:.2f}")
    print("\nefficiency of 1,000 ranks, at most; particles a rank, ms a step:")
    for particles in (75e3, 300e3, 1.2e6):
        share, without, times = efficiency_dam(fit, by_size, args, 1000, particles)
        print(f"{particles:9.0f}  {100 * share:3.0f} %, without lists {100 * without:3.0f} %:  " +
              ", ".join(f"{k} {1e3 * v:.1f}" for k, v in times.items()))
    sys.exit(worst > 0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("mpi_program")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--method", choices=("uniform", "tet"), default="uniform")
    parser.add_argument("--cells", type=int, help="128, with tet 64; and half as many more")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--ranks", default="2,4,8,16")
    parser.add_argument("--latency", type=float, default=2e-6, help="of a message, s")
    parser.add_argument("--overhead", type=float, default=0.4e-6, help="of sending one message, s")
    parser.add_argument("--bandwidth", type=float, default=2.5e9, help="of a rank, bytes/s")
    parser.add_argument("--uneven", type=float, default=1.1, help="largest work over the mean")
    parser.add_argument("--neighbours", type=float, default=18,
                        help="of a part of a curve through space; with uniform 6")
    parser.add_argument("--had", type=float, default=4, help="neighbours of ranks in these runs")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each kind")
    parser.add_argument("--reuse", action="store_true", help="runs that are there already")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    args.cells = args.cells or (64 if args.method == "tet" else 128)
    if args.method == "tet":
        main_dam(args)
    by_size, tank = [], None
    for cells in (args.cells, args.cells * 3 // 2):
        rate = args.rate * cells / args.cells  # as many cells a step
        scene, one, runs = f"{args.output}/tank{cells}.lua", f"{args.output}/one{cells}", {}
        with open(scene, "w") as file:
            file.write(SCENE.format(cells=cells, steps=args.steps, rate=rate))
        if cells == args.cells:
            if not (args.reuse and os.path.exists(one)):
                run([args.program, "run", scene], one)
            tank = Tank(one, cells, args.steps, rate)
        for repeat in range(args.repeat):
            for ranks in map(int, args.ranks.split(",")):
                directory = f"{args.output}/on{cells}.{ranks}" + (f".{repeat}" if repeat else "")
                if not (args.reuse and os.path.exists(directory)):
                    run(["mpirun", "-n", str(ranks), args.mpi_program, "run", scene, "--set",
                         "output.particles=false"], directory)
                least_busy(runs, ranks, measured(directory))
        by_size.append(runs)
    runs = by_size[0]
    print(f"{tank.count} particles, {len(tank.order)} bars of {tank.row_cells} cells along x")
    worst = compare(tank, runs)
    print(f"farthest from the model: {100 * worst:.1f} %")
    fit, off = fit_busy(by_size)
    print(f"busy: {1e6 * fit[0]:.2f} us a particle, {1e6 * fit[1]:.2f} us a copy, "
          f"{1e3 * fit[2]:.2f} ms besides; off by {100 * off:.0f} % (root mean square)")
    largest = max(x[3] for ranks in runs for x in tank.predict(ranks))
    for cells, by in zip((args.cells, args.cells * 3 // 2), by_size):
        inner = [r for step in by[max(by)][1:] for r in step if 0 < r["rank"] < max(by) - 1]
        print(f"a step, {cells} cells on {max(by)}: " + ", ".join(
            f"{name} {sum(r[name] for r in inner) / len(inner):.0f}" for name in (
                "messages", "calls", "halo_bytes", "migrated_bytes", "solve_bytes",
                "listed_bytes", "coarse_bytes")))
    print(f"largest work over the mean in these runs: at most {largest:.2f}")
    per_cell = 8
    print("\nefficiency of 1,000 ranks; particles a rank, ms a step:")
    for particles in (75e3, 300e3, 1.2e6, 5e6):
        cells = particles / per_cell
        # a cube of liquid; or one whose side along x is as short as that of a rank's part
        for name, side in (("a cube of liquid", (1000 * cells) ** (1 / 3)),
                           ("a layer of liquid", cells ** (1 / 3))):
            wide = (cells / side) ** 0.5  # of a part, in rows
            copies = per_cell * side * ((wide + ABOVE + BELOW) ** 2 - wide ** 2)
            share, times = efficiency(fit, by_size, args, 1000, particles, copies, 6)
            print(f"{particles:9.0f}  {100 * share:3.0f} %  {name}, {side:.0f} cells along x, "
                  f"{wide:.0f} rows wide: " +
                  ", ".join(f"{k} {1e3 * v:.1f}" for k, v in times.items()))
    sys.exit(worst > 0.1)


if __name__ == "__main__":
    main()
