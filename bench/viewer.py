"""How long the viewer takes for the next frame: from a file on disk to arrays ready to draw, and to
the picture, in headless Chromium that renders by software.

    python3 bench/viewer.py build/undine [--triangles 500000] [--frames 8]
"""
import argparse
import array
import math
import os
import subprocess
import tempfile

HEAD = """ply
format binary_little_endian 1.0
element vertex %d
property float x
property float y
property float z
property float nx
property float ny
property float nz
property float vx
property float vy
property float vz
element face %d
property list uchar int vertex_indices
end_header
"""


def wave(n, frame):
    """A square of n x n cells with waves on it: 2 n n triangles."""
    vertices = array.array("f")
    for j in range(n + 1):
        for i in range(n + 1):
            x, z = i / n, j / n
            y = 0.4 + 0.05 * math.sin(20 * x + frame) * math.cos(17 * z - frame)
            vertices.extend((x, y, z, 0, 1, 0, 0.1, 0, 0.1))
    faces = bytearray()
    for j in range(n):
        for i in range(n):
            a = j * (n + 1) + i
            for t in ((a, a + n + 1, a + 1), (a + 1, a + n + 1, a + n + 2)):
                faces += b"\x03" + array.array("i", t).tobytes()
    return (HEAD % ((n + 1) ** 2, 2 * n * n)).encode() + vertices.tobytes() + bytes(faces)


parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--triangles", type=int, default=500000)
parser.add_argument("--frames", type=int, default=8)
options = parser.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
subprocess.run([f"{here}/../tools/npm.sh", f"{here}/../test/node"], check=True)
with tempfile.TemporaryDirectory() as run:
    n = round(math.sqrt(options.triangles / 2))
    with open(f"{run}/scene.lua", "w") as file:
        file.write("scene { domain = { size = {1, 1, 1} }, liquid = { box { min = {0, 0, 0}, max = {1, 0.4, 1} } } }\n")
    with open(f"{run}/run.json", "w") as file:
        file.write('{"status": "done", "frames": {"finished": %d, "planned": %d, "rate": 24}}' % (options.frames - 1, options.frames - 1))
    for frame in range(options.frames):
        os.makedirs(f"{run}/frames/{frame:04d}")
        with open(f"{run}/frames/{frame:04d}/surface.ply", "wb") as file:
            file.write(wave(n, frame))
    subprocess.run(["node", f"{here}/../test/node/speed.mjs", options.program, run], check=True)
