#!/usr/bin/env python3
"""Says how fast a thread of viscous liquid coils, and by which forces [Ribe 2004].

    coil.py --run PROGRAM -o OUT       runs scenes/coil.lua with other viscosities and heights
    coil.py DIR...

DIR is a run like scenes/coil.lua: a thread that pours straight down.
The turn is that of the thread's middle, two of its diameters above the pile; `round` is 1 where it
goes round and round and 0 where it folds to and fro. a and U are the thread's radius and speed
there, R = U / omega the coil's radius, H the height from the pile's top to the emitter's mouth. Where one force bends the thread alone, omega is
proportional to

    viscous         Q / (H a^2)
    gravitational   (g Q^3 / (nu a^8))^(1/4)
    inertial        (Q^4 / (nu a^10))^(1/3)

and the shares tell the forces of weight and inertia over that of viscous bending, per length:
g R^4 / (nu a^2 U) and U R^3 / (nu a^2).
"""
import argparse
import math
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../test/program"))
import run_files

G = 9.81


SCENE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenes/coil.lua")
# viscosity, Pa s, and the mouth's height, m
VARIANTS = ([(mu, 0.245) for mu in (150, 1500, 500, 50)] +
            [(1500, mouth) for mouth in (0.178, 0.211)] + [(5000, 0.245)])


def run_variants(program, out, cells, seconds, jobs):
    """Each by one thread, `jobs` at a time."""
    waiting, going = list(VARIANTS), []
    os.makedirs(out, exist_ok=True)
    text = open(SCENE).read()
    while waiting or going:
        while waiting and len(going) < jobs:
            mu, mouth = waiting.pop(0)
            name = f"{out}/coil_{mu}_{1000 * mouth:.0f}"
            with open(f"{name}.lua", "w") as file:
                file.write(text.replace("viscosity = 150", f"viscosity = {mu}")
                           .replace("0.245", f"{mouth:.3f}").replace("0.275", f"{mouth + 0.03:.3f}"))
            going.append(subprocess.Popen(
                [program, "run", f"{name}.lua", "-o", name, "--threads", "1", "--quiet",
                 "--frames", str(int(48 * seconds)), "--set", "frames.rate=48",
                 "--set", f"detail.finest={cells}", "--set", f"detail.coarsest={cells // 8}",
                 "--set", "output.surface=false"]))
        if going.pop(0).wait() != 0:
            sys.exit(f"{program} failed")
    return [f"{out}/coil_{mu}_{1000 * mouth:.0f}" for mu, mouth in VARIANTS]


def number(text, name):
    return float(re.search(rf"\b{name}\s*=\s*([-+.\deE]+)", text)[1])


def triple(text, name):
    found = re.search(rf"\b{name}\s*=\s*{{([^}}]*)}}", text)[1]
    return [float(v) for v in found.split(",")[:3]]


def thread_at(points, volumes, axis, mouth, radius):
    """Height of the pile's top, area of the thread above it and its middle there, or None."""
    step = radius
    rows = [[0.0, 0.0, 0.0] for _ in range(int(mouth / step) + 1)]
    for (x, y, z), v in zip(points, volumes):
        if y < mouth:
            row = rows[int(y / step)]
            row[0] += v
            row[1] += v * (x - axis[0])
            row[2] += v * (z - axis[1])
    least = math.pi * radius * radius * step
    # from the mouth down to where there is much more than the thread
    for i in range(len(rows) - 2, -1, -1):
        if rows[i][0] > 2 * least:
            break
        if rows[i][0] < 0.1 * least:
            return None
        least = min(least, rows[i][0])
    else:
        return None
    above = rows[min(i + 4, len(rows) - 2)]
    return (i + 1) * step, above[0] / step, above[1] / above[0], above[2] / above[0]


def measure(run, begin):
    text = open(f"{run}/scene.lua").read()
    axis_from, radius = triple(text, "from"), number(text, "radius")
    axis, mouth = (axis_from[0], axis_from[2]), axis_from[1]
    speed = abs(float(re.search(r"velocity\s*=\s*{[^,]*,\s*([-+.\deE]+)", text)[1]))
    nu = number(text, "viscosity") / number(text, "density")
    rate = run_files.record(run)["frames"]["rate"]
    found = []
    for frame in sorted(os.listdir(f"{run}/frames")):
        path = f"{run}/frames/{frame}/particles.vtp"
        if not os.path.exists(path) or int(frame) / rate < begin:
            continue
        p = run_files.particles(path)
        at = thread_at(p["Points"], p["volume"], axis, mouth, radius)
        if at:
            found.append((int(frame) / rate,) + at)
    return found, dict(radius=radius, mouth=mouth, flow=math.pi * radius * radius * speed, nu=nu)


def frequency(found):
    """Of the strongest oscillation, Hz: that frequency whose sines and cosines, with a constant and a
    drift, leave least of the thread's way. And how round that is: 1 a circle, 0 to and fro."""
    time = found[-1][0] - found[0][0]
    best = None
    for step in range(int(1.2 / time / 0.02), 500):
        w = 2 * math.pi * 0.02 * step
        rows = [(1.0, f[0], math.cos(w * f[0]), math.sin(w * f[0])) for f in found]
        normal = [[sum(r[i] * r[j] for r in rows) for j in range(4)] for i in range(4)]
        fits = [solve(normal, [sum(r[i] * f[k] for r, f in zip(rows, found)) for i in range(4)])
                for k in (3, 4)]
        left = sum((f[k] - sum(c * v for c, v in zip(fit, r))) ** 2
                   for k, fit in zip((3, 4), fits) for r, f in zip(rows, found))
        if best is None or left < best[0]:
            best = left, 0.02 * step, fits
    (a, b), (c, d) = (fit[2:] for fit in best[2])
    whole, turned = a * a + b * b + c * c + d * d, 2 * abs(a * d - b * c)
    return best[1], math.sqrt(max(0, whole - math.sqrt(max(0, whole**2 - turned**2)))) / \
        math.sqrt(whole + math.sqrt(max(0, whole**2 - turned**2)))


def solve(matrix, right):
    rows = [list(m) + [r] for m, r in zip(matrix, right)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    for i in reversed(range(n)):
        rows[i][n] = (rows[i][n] - sum(rows[i][k] * rows[k][n] for k in range(i + 1, n))) / rows[i][i]
    return [row[n] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="DIR")
    parser.add_argument("--run", metavar="PROGRAM")
    parser.add_argument("-o", "--output", default="out/coil")
    parser.add_argument("--cells", type=int, default=64, help="detail.finest of those runs")
    parser.add_argument("--seconds", type=float, default=2.5, help="their length")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--begin", type=float, default=1, help="leave out what is earlier, s")
    parser.add_argument("--end", type=float, default=math.inf, help="and later")
    parser.add_argument("--list", action="store_true", help="where the thread is, every frame")
    args = parser.parse_args()
    if args.run:
        args.runs += run_variants(args.run, args.output, args.cells, args.seconds, args.jobs)
    print("run                  nu      H       a      U  turns round     Hz  omega "
          "viscous gravit. inertial  weight inertia")
    for run in args.runs:
        found, s = measure(run, args.begin)
        found = [f for f in found if f[0] <= args.end]
        if args.list:
            for f in found:
                print("  %.4f s  top %.4f m  area %.3g m2  off %+.4f %+.4f m" % f)
        if len(found) < 12:
            print(f"{run:20s} has no thread, or too few frames")
            continue
        hertz, circle = frequency(found)
        omega = 2 * math.pi * hertz
        area = sum(f[2] for f in found) / len(found)
        height = s["mouth"] - sum(f[1] for f in found) / len(found)
        a, u, q, nu = math.sqrt(area / math.pi), s["flow"] / area, s["flow"], s["nu"]
        bend = u / omega
        print(f"{os.path.basename(run):18s} {nu:6.3f} {height:6.3f} {a:7.4f} {u:6.3f} "
              f"{hertz * (found[-1][0] - found[0][0]):5.1f} {circle:5.2f} {hertz:6.2f} {omega:6.1f} {q / (height * a * a):7.1f} "
              f"{(G * q**3 / (nu * a**8))**0.25:7.1f} {(q**4 / (nu * a**10))**(1 / 3):7.1f} "
              f"{G * bend**4 / (nu * a * a * u):7.2f} {u * bend**3 / (nu * a * a):7.2f}")


if __name__ == "__main__":
    main()
