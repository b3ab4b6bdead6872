#!/usr/bin/env python3
"""Writes wineglass.obj, the mesh of scenes/wineglass.lua: a profile turned around the y axis.

    wineglass.py > wineglass.obj"""
import math

SECTORS = 36
WALL = 0.0025  # m, of the bowl
STEPS = 3      # between two points of the curve

# (radius, height) of the outside from the foot up, and the inside from the rim down, m; curves run through them.
FOOT = [(0.034, 0.0), (0.0345, 0.002), (0.022, 0.0045), (0.008, 0.009), (0.0042, 0.018), (0.0038, 0.035), (0.0042, 0.056),
        (0.0075, 0.066)]
BOWL = [(0.019, 0.0720), (0.0335, 0.0850), (0.0415, 0.1040), (0.0420, 0.1230), (0.0385, 0.1430), (0.0345, 0.1620)]


def curve(points):
    """Catmull-Rom splines through the points."""
    found = []
    for i in range(len(points) - 1):
        a, b, c, d = (points[min(max(i + k, 0), len(points) - 1)] for k in (-1, 0, 1, 2))
        for s in range(STEPS):
            t = s / STEPS
            found.append(tuple(0.5 * (2 * q + t * (r - p) + t * t * (2 * p - 5 * q + 4 * r - u)
                                      + t ** 3 * (3 * q - p - 3 * r + u)) for p, q, r, u in zip(a, b, c, d)))
    return found + [points[-1]]


def inwards(points):
    """The points, a wall further in."""
    found = []
    for i, (r, y) in enumerate(points):
        (r0, y0), (r1, y1) = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
        length = math.hypot(r1 - r0, y1 - y0)
        found.append((r - WALL * (y1 - y0) / length, y + WALL * (r1 - r0) / length))
    return found


def profile():
    outside = curve(FOOT + BOWL)
    bowl = outside[len(outside) - STEPS * (len(BOWL) - 1) - 1:]
    inside = inwards(bowl)
    inside[-1] = (inside[-1][0], bowl[-1][1])
    lip = (0.5 * (bowl[-1][0] + inside[-1][0]), bowl[-1][1] + 0.4 * WALL)
    bottom = curve([inside[0], (0.0095, 0.0707), (0, 0.0693)])[1:]
    return [(0, 0.001), (0.02, 0.001)] + outside + [lip] + inside[::-1] + bottom


points, number = profile(), []
count = 0
for radius, height in points:
    number.append(count + 1)
    for i in range(SECTORS if radius > 0 else 1):
        angle = 2 * math.pi * i / SECTORS
        print(f"v {radius * math.cos(angle):.5f} {height:.5f} {radius * math.sin(angle):.5f}")
        count += 1
for (r0, _), (r1, _), a, b in zip(points, points[1:], number, number[1:]):
    for i in range(SECTORS):
        j = (i + 1) % SECTORS
        if r0 == 0:
            print("f", a, b + i, b + j)
        elif r1 == 0:
            print("f", a + i, b, a + j)
        else:
            print("f", a + i, b + i, b + j, a + j)
