"""Kills runs at random moments, resumes them with other thread counts, and compares every file with
those of an undisturbed run.
    kill.py PROGRAM KILLS [SEED [METHOD]]
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.append(HERE)
import run_files

SIZES = []


def command(program, method, directory, threads, *more):
    return [program, "run", f"{HERE}/busy.lua", *SIZES, "-o", directory, "--method", method, "--quiet", "--resume",
            "--threads", str(threads), *more]


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
        for size in f"finest={20 if long else 14}", "surface=20":
            SIZES.extend(["--set", f"detail.{size}"])
        SIZES.extend(["--frames", str(12 if long else 5)])
        total = runs = 0
        methods = sys.argv[4:] or run_files.methods(program)
        each = -(-kills // len(methods))
        for method in methods:
            start = time.monotonic()
            subprocess.run(command(program, method, "whole", 2), check=True)
            seconds = time.monotonic() - start
            wanted, here = run_files.files("whole"), 0
            while here < each:
                here += disturb(program, method, "again", seconds, min(12, each - here))
                run_files.compare(wanted, "again")
                shutil.rmtree("again")
                runs += 1
            total += here
            shutil.rmtree("whole")
        print(f"{total} kills in {runs} runs (seed {seed}): every file as if nothing had happened")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


main()
