#!/usr/bin/env python3
"""Draws what the steps of a run cost against their particles, like figures 8 and 9 of [Ando13].

    cost.py DIR -o FILE.svg

DIR is a run's directory; each step of its stats.csv is a dot for the whole and one for each of the
largest stages. Prints the straight line through the origin that fits best, and the largest stage's
share of all time.
"""
import argparse
import csv

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 420, 70, 50, 20, 180
COLOURS = ["#222222", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]


def nice(top):
    """A round number at or above top, and a step that divides it."""
    step = 10.0 ** len(str(int(top))) if top >= 1 else 1.0
    while step > top:
        step /= 10
    for factor in (0.2, 0.25, 0.5, 1, 2):
        if top / (factor * step) <= 6:
            step *= factor
            break
    ticks = int(top / step + 0.999999)
    return ticks * step, step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("-o", "--output", default="cost.svg")
    args = parser.parse_args()
    with open(f"{args.run}/stats.csv", newline="") as file:
        rows = [r for r in csv.DictReader(file) if int(r["step"]) > 0]
    particles = [float(r["particles"]) for r in rows]
    total = [float(r["seconds"]) for r in rows]
    stages = [c for c in rows[0] if c.startswith("seconds_")]
    sums = {c: sum(float(r[c] or 0) for r in rows) for c in stages}
    largest = sorted(stages, key=lambda c: -sums[c])[:5]
    series = [("all", total)] + [(c[len("seconds_"):], [float(r[c] or 0) for r in rows]) for c in largest]

    slope = sum(n * s for n, s in zip(particles, total)) / sum(n * n for n in particles)
    mean = sum(total) / len(total)
    left = sum((s - slope * n) ** 2 for n, s in zip(particles, total))
    r2 = 1 - left / sum((s - mean) ** 2 for s in total)
    print(f"{len(rows)} steps, {min(particles):,.0f} to {max(particles):,.0f} particles")
    print(f"seconds = {1e6 * slope:.2f}e-6 particles, R2 = {r2:.3f}")
    print(f"largest stage: {series[1][0]}, {100 * sums[largest[0]] / sum(total):.0f} % of the time")

    right, step_x = nice(max(particles))
    top, step_y = nice(max(total))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(n, s):
        return LEFT + wide * n / right, TOP + high * (1 - s / top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for k in range(int(right / step_x + 1.5)):
        x, y = at(k * step_x, 0)
        out.append(f'<path d="M{x:.1f} {y:.1f}V{TOP}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{k * step_x:,.0f}</text>')
    for k in range(int(top / step_y + 1.5)):
        x, y = at(0, k * step_y)
        out.append(f'<path d="M{x:.1f} {y:.1f}H{LEFT + wide}" stroke="#ddd"/>'
                   f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{k * step_y:g}</text>')
    out.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 10}" text-anchor="middle">particles</text>'
               f'<text x="16" y="{TOP + high / 2}" text-anchor="middle" '
               f'transform="rotate(-90 16 {TOP + high / 2})">seconds a step</text>')
    (x0, y0), (x1, y1) = at(0, 0), at(min(right, top / slope), min(top, slope * right))
    out.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="#888" stroke-dasharray="5 4"/>')
    for i, (name, values) in enumerate(series):
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>'
                       for x, y in (at(n, s) for n, s in zip(particles, values)))
        out.append(f'<g fill="{COLOURS[i]}" fill-opacity="0.7">{dots}</g>'
                   f'<circle cx="{LEFT + wide + 20}" cy="{TOP + 12 + 22 * i}" r="5" fill="{COLOURS[i]}"/>'
                   f'<text x="{LEFT + wide + 32}" y="{TOP + 17 + 22 * i}">{name}</text>')
    out.append("</svg>\n")
    with open(args.output, "w") as file:
        file.write("\n".join(out))


if __name__ == "__main__":
    main()
