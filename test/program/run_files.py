"""Reads the files of a run with Python's standard library only; the tests measure with it."""
import array
import csv
import json
import os
import re
import struct
import subprocess
import sys
import tempfile


def methods(program):
    """Names of the program's methods, as it lists them itself."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write('scene { method = "?" }')
        file.flush()
        said = subprocess.run([program, "check", file.name], capture_output=True, text=True).stderr
    return re.search(r"known are (.*)", said)[1].split(", ")


def floats(data, begin, count):
    values = array.array("f")
    values.frombytes(data[begin:begin + 4 * count])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def triples(values):
    return list(zip(values[0::3], values[1::3], values[2::3]))


def particles(path):
    """{"Points": [(x, y, z)...], "velocity": [...], "volume": [...], ...} of a particles.vtp."""
    data = open(path, "rb").read()
    head, body = data.split(b'<AppendedData encoding="raw">\n_', 1)
    found = {}
    for kind, name, rest in re.findall(rb'<DataArray type="(\w+)" Name="(\w+)" ([^>]*)/>', head):
        place = int(re.search(rb'offset="(\d+)"', rest)[1])
        size = struct.unpack_from("<Q", body, place)[0]
        if kind == b"Float32":
            values = floats(body, place + 8, size // 4)
            found[name.decode()] = triples(values) if b'Components="3"' in rest else values
        elif kind == b"UInt8":
            found[name.decode()] = body[place + 8:place + 8 + size]
    return found


def surface(path):
    """Vertices as tuples of x y z nx ny nz vx vy vz, and triangles, of a surface.ply."""
    head, body = open(path, "rb").read().split(b"end_header\n", 1)
    vertex_count = int(re.search(rb"element vertex (\d+)", head)[1])
    face_count = int(re.search(rb"element face (\d+)", head)[1])
    values = floats(body, 0, 9 * vertex_count)
    vertices = list(zip(*(values[i::9] for i in range(9))))
    faces = [f[1:] for f in struct.iter_unpack("<B3i", body[36 * vertex_count:])]
    assert len(faces) == face_count
    return vertices, faces


def table(path):
    """A column per name, of a stats.csv or probes.csv."""
    with open(path) as file:
        rows = list(csv.reader(file))
    return {name: [float(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}


def record(directory):
    with open(f"{directory}/run.json") as file:
        return json.load(file)


def steps(path):
    """Rows of a stats.csv without what a clock or the history of arrays decides."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    kept = [i for i, name in enumerate(rows[0]) if name != "bytes" and not name.startswith("seconds")]
    return [[row[i] for i in kept] for row in rows]


def files(directory):
    """All that a run has written and that must not depend on how it came about, by name."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, directory)
            if inside.startswith("state") or inside == "run.json":
                continue
            with open(path, "rb") as file:
                found[inside] = file.read()
    found["stats.csv"] = steps(f"{directory}/stats.csv")
    return found


def compare(wanted, directory):
    """Ends the program at the first file that is not as in `wanted`, which files() gave."""
    got = files(directory)
    for name in sorted(wanted.keys() | got.keys()):
        if wanted.get(name) != got.get(name):
            what = "differs" if name in wanted and name in got else \
                "is missing" if name in wanted else "should not be there"
            sys.exit(f"{directory}/{name} {what}")
