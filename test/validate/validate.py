"""Comparisons with experiments, theory and other programs, too slow for `make check`: the cases of
cases.py with every method of the program. Results are kept in results.json, so a single case can be run
again; docs/validation.md and its plots are rewritten from them after each case.
    validate.py PROGRAM [CASE...] [--method M]... [--list] [--page]
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(f"{HERE}/../..")
sys.path[:0] = [HERE, f"{HERE}/../program"]
import plot
import run_files
from cases import CASES

RESULTS = f"{HERE}/results.json"
PAGE = f"{ROOT}/docs/validation.md"
IMAGES = f"{ROOT}/docs/images/validation"
POINTS = 120 # of a line that is kept


class Refused(Exception):
    """The scene is not for this method."""


class Bench:
    """Runs scenes with a method for a case, and keeps what the case found."""

    def __init__(self, program, method, scratch):
        self.program, self.method, self.scratch = program, method, scratch
        self.rows, self.points, self.count = [], None, 0

    def scene(self, scene):
        """The path of a scene of the repository, or of a file with this text."""
        if "{" not in scene:
            return f"{ROOT}/{scene}"
        path = f"{self.scratch}/scene{self.count}.lua"
        with open(path, "w") as file:
            file.write(scene)
        return path

    def call(self, words):
        # Debian's programs bring Debian's Python along, and must not find another one first.
        where = {**os.environ, "PATH": f"/usr/bin:{os.environ.get('PATH', '')}"}
        return subprocess.run(words, capture_output=True, text=True, errors="replace", cwd=ROOT, env=where)

    def ask(self, words):
        method = [] if "--method" in words or not self.method else ["--method", self.method]
        said = self.call([self.program, *words, *method])
        if said.returncode == 2:
            raise Refused(said.stderr.strip())
        if said.returncode != 0:
            raise RuntimeError(said.stderr.strip()[-300:])
        return said.stdout

    def run(self, scene, *options):
        """The directory of a run."""
        self.count += 1
        directory = f"{self.scratch}/run{self.count}"
        self.ask(["run", self.scene(scene), "-o", directory, "--quiet", *options])
        if not self.method:
            self.method = run_files.record(directory)["method"]
        return directory

    def check(self, scene, *options):
        self.count += 1
        return self.ask(["check", self.scene(scene), *options])

    def row(self, name, value, unit, bound=None, least=None, note=""):
        """What was found. bound: the most that is allowed, least: the least; neither: it is not judged."""
        if isinstance(bound, dict):
            bound = bound.get(self.method, bound[""])
        good = None
        if bound is not None or least is not None:
            good = math.isfinite(value) and (bound is None or value <= bound) and (least is None or value >= least)
        value = float(f"{value:.4g}") if math.isfinite(value) else None
        self.rows.append({"name": name, "value": value, "unit": unit, "bound": bound, "least": least, "good": good,
                          "note": note[:300]})

    def line(self, x, y):
        """For the case's plot."""
        every = max(1, -(-len(x) // POINTS))
        self.points = [[float(f"{v:.4g}") for v in values[::every]] for values in (x, y)]


# ---- running ----

def run_case(case, program, method, force):
    """The method that ran, and its results; refused where the scene is not for it."""
    scratch = tempfile.mkdtemp(prefix="undine_validate_")
    bench, start = Bench(program, method, scratch), time.monotonic()
    result = {}
    try:
        case["run"](bench)
    except Refused as refused:
        if force:
            print(f"    refused: {refused}")
        return bench.method, {"rows": [], "refused": True, "seconds": 0}
    except Exception as error: # pylint: disable=broad-except
        bench.rows.append({"name": "ran to its end", "value": None, "unit": "", "bound": None, "least": None,
                           "good": False, "note": f"{type(error).__name__}: {error}"[:300]})
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    result.update(rows=bench.rows, seconds=round(time.monotonic() - start, 1))
    if bench.points:
        result["line"] = bench.points
    return bench.method, result


def load():
    try:
        with open(RESULTS) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def save(path, text):
    with open(path + ".tmp", "w") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def show(row):
    if row["value"] is None:
        return "none"
    return f"{row['value']:.3g} {row['unit']}".strip()


def allowed(row):
    if row["bound"] is not None:
        return f"≤ {row['bound']:g}"
    return f"≥ {row['least']:g}" if row["least"] is not None else ""


# ---- the page ----

def cell(row):
    if row is None:
        return "–"
    bound = f" ({allowed(row)})" if allowed(row) else ""
    verdict = "" if row["good"] is None else " ok" if row["good"] else " **fails**"
    return show(row) + bound + verdict


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def section(case, found, methods):
    out = [f"## {case['title']}", "", case["about"], ""]
    found = {m: one for m, one in found.items() if "refused" not in one}
    if not found:
        return []
    columns = [m for m in methods if m in found] + [m for m in found if m not in methods]
    names = []
    for method in columns:
        names.extend(row["name"] for row in found[method]["rows"] if row["name"] not in names)
    heads = ["all" if m == "" else f"`{m}`" for m in columns]
    out += ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(columns)]
    for name in names:
        cells = []
        for method in columns:
            rows = [row for row in found[method]["rows"] if row["name"] == name]
            cells.append(cell(rows[0] if rows else None))
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    out.append("| it took | " + " | ".join(duration(found[m]["seconds"]) for m in columns) + " |")
    notes = [f"- {f'`{m}`, ' if m else ''}{row['name']}: {' '.join(row['note'].split())}" for m in columns
             for row in found[m]["rows"] if row["good"] is False and row["note"]]
    if notes:
        out += ["", *notes]
    out += ["", f"`make validate VALIDATE=\"{case['name']}\"`", ""]
    series = [{"name": m, "style": "line", "colour": methods.index(m) if m in methods else None,
               "x": found[m]["line"][0], "y": found[m]["line"][1]} for m in columns if found[m].get("line")]
    if series:
        reference = case["reference"]() if case["reference"] else []
        picture = plot.svg(case["title"], case["x"], case["y"], reference + series)
        if picture:
            os.makedirs(IMAGES, exist_ok=True)
            save(f"{IMAGES}/{case['name']}.svg", picture)
            out += [f"![{case['title']}](images/validation/{case['name']}.svg)", ""]
    return out


def verdict(one):
    """Of a case with a method, in a word or two."""
    if not one:
        return "not run"
    if "refused" in one:
        return "–"
    judged = [row["good"] for row in one["rows"] if row["good"] is not None]
    return "ok" if all(judged) else f"**{judged.count(False)} of {len(judged)} fail**"


def name(method):
    return f"`{method}`, " if method else ""


def page(results, methods):
    judged = [row for found in results.values() for one in found.values() for row in one["rows"]
              if row["good"] is not None]
    failing = [row for row in judged if not row["good"]]
    out = ["# Validation", "",
           "Written by `make validate`; edit `test/validate/cases.py` instead. Every method is run through the same "
           "cases. A cell holds what was found, what is allowed, and the verdict; what has no bound is there to "
           "compare. A dash: the method does not do this. Times depend on the machine and on what else it does.", "",
           "`make validate VALIDATE=\"standing_wave --method tet\"` runs one case with one method and keeps the other "
           "results; `VALIDATE=--list` names the cases.", "",
           f"{len(judged)} numbers are judged, {len(judged) - len(failing)} of them are within their bounds.", "",
           "| case | " + " | ".join(f"`{m}`" for m in methods) + " |", "|---|" + "---|" * len(methods)]
    for case in CASES:
        found, cells = results.get(case["name"], {}), []
        for method in methods:
            one = found.get(method) or found.get("")
            cells.append("–" if case["of"] not in (None, method) else verdict(one))
        anchor = "".join(c for c in case["title"].lower().replace(" ", "-") if c.isalnum() or c in "-_")
        shown = any("refused" not in one for one in found.values())
        title = f"[{case['title']}](#{anchor})" if shown else case["title"]
        out.append(f"| {title} | " + " | ".join(cells) + " |")
    out.append("")
    for case in CASES:
        out += section(case, results.get(case["name"], {}), methods)
    save(PAGE, "\n".join(out))


# ---- the command ----

def main():
    parser = argparse.ArgumentParser(prog="validate.py")
    parser.add_argument("program")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--method", action="append", default=[])
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--page", action="store_true", help="write the page from the results there are, run nothing")
    options = parser.parse_args()
    names = [case["name"] for case in CASES]
    for wanted in options.case:
        if wanted not in names:
            sys.exit(f"no case {wanted}; there are {', '.join(names)}")
    if options.list:
        for case in CASES:
            print(f"{case['name']:20} {case['about']}")
        return 0
    program = os.path.realpath(options.program)
    methods = run_files.methods(program)
    for method in options.method:
        if method not in methods:
            sys.exit(f"no method {method}; there are {', '.join(methods)}")
    passed = failed = 0
    for case in [] if options.page else CASES:
        if options.case and case["name"] not in options.case:
            continue
        print(f"== {case['name']}", flush=True)
        if case["needs"] and not shutil.which(case["needs"]):
            print(f"    skipped: there is no {case['needs']} here")
            continue
        wanted = {"all": options.method or methods, "own": options.method or [None], "none": [""]}[case["methods"]]
        for method in wanted:
            method, result = run_case(case, program, method, bool(options.method))
            results = load() # another may have been at work beside this one
            results.setdefault(case["name"], {})[method] = result
            print(f"  {method or 'all'}, " + ("not for it" if "refused" in result else duration(result["seconds"])))
            for row in result["rows"]:
                mark = "" if row["good"] is None else "   ok" if row["good"] else "   FAILED"
                print(f"    {row['name']:<58} {show(row):>14} {allowed(row):>10}{mark}"
                      + (f"\n      {row['note']}" if row["good"] is False and row["note"] else ""), flush=True)
                passed += row["good"] is True
                failed += row["good"] is False
            save(RESULTS, json.dumps(results, indent=1, sort_keys=True) + "\n")
            page(results, methods)
    if options.page:
        page(load(), methods)
    print(f"{passed} passed, {failed} failed; docs/validation.md has it all")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
