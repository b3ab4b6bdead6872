#!/usr/bin/env python3
"""Times every linear solver on the same pressure systems, dumped by runs of bench/pool.lua, and PETSc
and hypre beside them where they are built in.

  bench/solvers.py BUILD [--cells tet=46,256 uniform=64] [--repeat 3] [--threads 1 2]
                   [--kinds jacobi,ic,...] [--folder out/bench/solvers] [--petsc BUILD] [--keep]

Systems: `tet` graded, finest at the surface; `even` tets of one size; `uniform` the grid's. Numbers
are detail.finest. `made_tet` and `made_grid` are of the same kinds, made by bench/solvers.c without
particles, for sizes whose runs would take long. Systems that the folder holds already are not made
again. Writes FOLDER/solvers.csv and FOLDER/solvers.md. Set-up and solve from zero to a residual of
1e-4, best of `repeat`; with --keep also of what solvers.csv holds, for machines that are rarely idle.
"""
import argparse
import csv
import io
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# about 32 thousand, 250 thousand, 1 and 4 million unknowns
CELLS = {"tet": [46, 128, 256], "even": [132], "made_tet": [430], "uniform": [54, 107, 170],
         "made_grid": [180]}


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return done.stdout


def make_system(build, name, cells, folder):
    """Dumps the first step's system, unless it is there."""
    dump = os.path.join(folder, f"{name}-{cells}")
    if os.path.exists(f"{dump}/000001.mtx"):
        return f"{dump}/1"
    if name.startswith("made_"):
        os.makedirs(dump, exist_ok=True)
        output_of([f"{build}/test/bench_solvers", "--systems", name[5:], "--cells", str(cells),
                   "--write", dump])
    else:
        sizing = ["--set", "sizing.custom=nil"] if name == "uniform" else []
        if name == "even":
            sizing = ["--set", "sizing.custom=function() return 1e-6 end"]
        print(f"{dump}: running", file=sys.stderr)
        output_of([f"{build}/undine", "run", f"{HERE}/pool.lua", "--quiet", "-o", f"{folder}/run", "--method",
                   "uniform" if name == "uniform" else "tet", "--frames", "1",
                   "--set", f"detail.finest={cells}", "--set", "frames.rate=500",
                   "--set", f"solver.dump={dump}", "--set", "solver.dump_every=1"] + sizing)
    return f"{dump}/1"


def better(rows, new):
    """Each system, kind and thread count once, with the least time; new ones last."""
    best = {}
    for row in rows + new:
        key = (row["system"], row["kind"], row["threads"])
        old = best.get(key)
        if old:
            cpu = min(float(old["seconds_cpu"]), float(row["seconds_cpu"]))
            row = dict(min(old, row, key=lambda r: float(r["seconds"])), seconds_cpu=cpu)
        best[key] = row
    return list(best.values())


def table(rows):
    """Markdown, a table per system; times in seconds, set-up included."""
    out = io.StringIO()
    systems = []
    for row in rows:
        if row["system"] not in systems:
            systems.append(row["system"])
    for system in systems:
        own = [row for row in rows if row["system"] == system]
        out.write(f"\n**{system}**, {int(own[0]['unknowns']):,} unknowns, "
                  f"{int(own[0]['entries']) / int(own[0]['unknowns']):.1f} entries per row\n\n"
                  "| solver | iterations | set-up, 1 | all, 1 | processor, 1 | set-up, 2 | all, 2 "
                  "| µs per unknown, 2 | bytes per unknown |\n|---|---|---|---|---|---|---|---|---|\n")
        kinds = []
        for row in own:
            if row["kind"] not in kinds:
                kinds.append(row["kind"])
        for kind in kinds:
            cells = {row["threads"]: row for row in own if row["kind"] == kind}
            one, two = cells.get("1"), cells.get("2")
            last = two or one
            show = lambda row, key: f"{float(row[key]):.3f}" if row else ""
            out.write(f"| `{kind}` | {last['iterations']} | {show(one, 'seconds_setup')} "
                      f"| {show(one, 'seconds')} | {show(one, 'seconds_cpu')} | {show(two, 'seconds_setup')} "
                      f"| {show(two, 'seconds')} | {show(two, 'us_per_unknown')} "
                      f"| {last['bytes_per_unknown']} |\n")
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--petsc", help="a build with -DUNDINE_PETSC=ON")
    parser.add_argument("--cells", nargs="*", help="tet=46,256 uniform=64")
    parser.add_argument("--threads", nargs="*", default=["1", "2"])
    parser.add_argument("--repeat", default="3")
    parser.add_argument("--kinds", default="jacobi,ic,mic,amg,sa,chentanez,geometric")
    parser.add_argument("--folder", default="out/bench/solvers")
    parser.add_argument("--keep", action="store_true", help="the best of before and now")
    given = parser.parse_args()
    cells = CELLS
    if given.cells:
        cells = {part.split("=")[0]: part.split("=")[1].split(",") for part in given.cells}
    os.makedirs(given.folder, exist_ok=True)
    systems = [make_system(given.build, name, size, given.folder)
               for name, sizes in cells.items() for size in sizes]
    rows = []
    if given.keep and os.path.exists(f"{given.folder}/solvers.csv"):
        with open(f"{given.folder}/solvers.csv", newline="") as file:
            rows = list(csv.DictReader(file))
    for system in systems:
        new = []
        text = output_of([f"{given.build}/test/bench_solvers", "--kinds", given.kinds, "--repeat",
                          given.repeat, "--threads", ",".join(given.threads), system])
        new += csv.DictReader(io.StringIO(text))
        head = text.splitlines()[0]
        for ranks in given.threads if given.petsc else []:
            text = output_of(["mpirun", "--allow-run-as-root", "-n", ranks,
                              f"{given.petsc}/test/bench_solvers_petsc", "--repeat", given.repeat,
                              system])
            new += csv.DictReader(io.StringIO(head + "\n" + text))
        rows = better(rows, new)
        with open(f"{given.folder}/solvers.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        with open(f"{given.folder}/solvers.md", "w") as file:
            file.write(table(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
