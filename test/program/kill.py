"""Kills runs at random moments, resumes them with other thread counts, and compares every file with
those of a run that nobody disturbed.
    kill.py PROGRAM KILLS [SEED]
"""
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCENE = """
scene {
  domain  = { size = {1, 0.8, 0.6}, open = {"top"} },
  detail  = { coarsest = 5, finest = %(finest)d, surface = 20 },
  frames  = { count = %(frames)d, rate = 24 },
  liquid  = { box { min = {0, 0, 0}, max = {0.35, 0.6, 0.6} },
              box { min = {0, 0, 0}, max = {1, 0.15, 0.6} } },
  solids  = {
    sphere { center = {0.6, 0.15, 0.3}, radius = 0.12, friction = 0.2 },
    solid { box { min = {0.76, 0.02, 0.1}, max = {0.84, 0.4, 0.5} }, pose = function(t)
      return { rotate = {0, 200 * t, 0}, about = {0.8, 0, 0.3} } end },
  },
  sources = {
    emitter { shape = sphere { center = {0.5, 0.65, 0.3}, radius = 0.08 }, velocity = {1, -1, 0.2} },
    drain { shape = box { min = {0.9, 0, 0}, max = {1, 0.08, 0.6} } },
  },
  probes  = { front {}, height { at = {0.2, 0.3} }, pressure { at = {0.1, 0.05, 0.3} } },
  output  = { mesh = true },
}
"""


def command(program, method, directory, threads, *more):
    return [program, "run", "scene.lua", "-o", directory, "--method", method, "--quiet", "--resume",
            "--threads", str(threads), *more]


def steps(path):
    """Rows without what a clock or the history of arrays decides."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    kept = [i for i, name in enumerate(rows[0]) if name != "bytes" and not name.startswith("seconds")]
    return [[row[i] for i in kept] for row in rows]


def files(directory):
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
    got = files(directory)
    for name in sorted(wanted.keys() | got.keys()):
        if wanted.get(name) != got.get(name):
            what = "differs" if name in wanted and name in got else \
                "is missing" if name in wanted else "should not be there"
            sys.exit(f"{directory}/{name} {what}")


def disturb(program, method, directory, seconds, kills):
    """Until the run has come to its end by itself. Returns how often it was killed."""
    killed = 0
    while True:
        child = subprocess.Popen(command(program, method, directory, random.randint(1, 3)),
                                 stderr=subprocess.PIPE)
        try:
            wait = random.uniform(0, 0.5 * seconds) if killed < kills else None
            _, said = child.communicate(timeout=wait)
            if child.returncode != 0:
                sys.exit(f"{directory}: status {child.returncode}: {said.decode()}")
            return killed
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            killed += 1


def main():
    program, kills = os.path.realpath(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    random.seed(seed)
    long = kills > 30
    scratch = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        os.chdir(scratch)
        with open("scene.lua", "w") as file:
            file.write(SCENE % {"finest": 20 if long else 14, "frames": 12 if long else 5})
        total = runs = 0
        for method in ("uniform", "tet"):
            start = time.monotonic()
            subprocess.run(command(program, method, "whole", 2), check=True)
            seconds = time.monotonic() - start
            wanted, here = files("whole"), 0
            while here < kills // 2:
                here += disturb(program, method, "again", seconds, min(12, kills // 2 - here))
                compare(wanted, "again")
                shutil.rmtree("again")
                runs += 1
            total += here
            shutil.rmtree("whole")
        print(f"{total} kills in {runs} runs (seed {seed}): every file as if nothing had happened")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


main()
