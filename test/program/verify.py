# Checks that every file in a run's directory is whole: sizes match headers, JSON is valid, tables
# have whole rows (--killed allows a last row that was cut short).
#   python3 verify.py DIR STATUS [--killed]
import glob
import json
import os
import re
import struct
import sys

directory, status = sys.argv[1:3]
killed = "--killed" in sys.argv
problems = []


def check(good, what):
    if not good:
        problems.append(what)


with open(f"{directory}/run.json", encoding="utf-8") as file:
    record = json.load(file)
for key in "version command method status message frames resolution seconds stages machine".split():
    check(key in record, f"run.json has no {key}")
check(record["status"] == status, f"run.json says {record['status']}, not {status}")
check(record["machine"]["cores"] >= 1, "run.json: no cores")

COLUMNS = ("step,frame,time,dt,particles,ballistic,cells,nodes,volume,volume_error,energy_kinetic,"
           "energy_potential,momentum_x,momentum_y,momentum_z,max_speed,max_divergence,"
           "pressure_iterations,pressure_residual,bytes,seconds").split(",")
for name in ("stats.csv", "probes.csv", "bodies.csv"):
    path = f"{directory}/{name}"
    if not os.path.exists(path):
        check(name != "stats.csv" or killed, f"no {name}")
        continue
    lines = open(path).read().split("\n")
    check(lines[-1] == "" or killed, f"{name}: the last line is cut short")
    head = lines[0].split(",")
    if name == "stats.csv":
        check(head[:len(COLUMNS)] == COLUMNS, f"{name}: head {head}")
        check(all(h.startswith("seconds_") or h in ("viscous_iterations", "volume_particles")
                  for h in head[len(COLUMNS):]), f"{name}: head {head}")
    else:
        check(head[0] == "time", f"{name}: head {head}")
    for number, line in enumerate(lines[1:-1], 2):
        fields = line.split(",")
        check(len(fields) == len(head), f"{name}:{number}: {len(fields)} fields")
        for field in fields:
            float(field)
    if name == "stats.csv":
        steps = [int(line.split(",")[0]) for line in lines[1:-1]]
        check(steps == list(range(steps[0], steps[0] + len(steps))) if steps else True,
              f"{name}: steps are not consecutive")


def check_ply(path):
    data = open(path, "rb").read()
    head, body = data.split(b"end_header\n", 1)
    vertices = int(re.search(rb"element vertex (\d+)", head)[1])
    faces = int(re.search(rb"element face (\d+)", head)[1])
    check(re.findall(rb"property float (\w+)", head) == b"x y z nx ny nz vx vy vz".split(),
          f"{path}: properties")
    check(len(body) == 36 * vertices + 13 * faces, f"{path}: {len(body)} bytes of data")
    for i in range(faces):
        count, *corners = struct.unpack_from("<B3i", body, 36 * vertices + 13 * i)
        if count != 3 or not all(0 <= c < vertices for c in corners):
            check(False, f"{path}: face {i}")
            break


def check_vtk(path):
    data = open(path, "rb").read()
    check(data.endswith(b"\n</AppendedData>\n</VTKFile>\n"), f"{path}: no end")
    head, body = data.split(b'<AppendedData encoding="raw">\n_', 1)
    place = 0
    for offset in map(int, re.findall(rb'offset="(\d+)"', head)):
        check(offset == place, f"{path}: an array at {place}, not {offset}")
        place += 8 + struct.unpack_from("<Q", body, place)[0]
    check(len(body) == place + len(b"\n</AppendedData>\n</VTKFile>\n"), f"{path}: size")


frames = sorted(glob.glob(f"{directory}/frames/*"))
for frame in frames:
    for path in glob.glob(f"{frame}/*.ply"):
        check_ply(path)
    for path in glob.glob(f"{frame}/*.vt[pu]"):
        check_vtk(path)
for path in glob.glob(f"{directory}/*.pvd"):
    for name in re.findall(r'file="([^"]*)"', open(path).read()):
        check(os.path.exists(f"{directory}/{name}"), f"{path} names {name}, which is not there")
for frame in range(int(record["frames"]["finished"]) + 1):
    check(os.path.exists(f"{directory}/frames/{frame:04d}/surface.ply"), f"no surface of frame {frame}")
if not killed:
    left = glob.glob(f"{directory}/**/*.tmp", recursive=True)
    check(not left, f"left behind: {left}")

for problem in problems[:10]:
    print("FAILED:", problem)
sys.exit(bool(problems))
