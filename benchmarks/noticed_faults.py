"""Plants faults in two trees, one at a time, and counts how many the tests nearest to each notice.

    git worktree add ../before 1b6b329
    python benchmarks/noticed_faults.py draw --before ../before --now . --out faults.json
    python benchmarks/noticed_faults.py run --tree . --faults faults.json --out now.json
    python benchmarks/noticed_faults.py run --tree ../before --tests-of . --faults faults.json --out before.json

A fault changes one expression that both trees have once, in a function of the same name: another comparison, ``and`` for ``or``, a number
that is one larger, branches exchanged. Faults are drawn by a fixed seed, one a module. The tests are the file of the module's name or, if
there is none, its folder; in the tree before, the tests of the same function names, wherever they stood. ``run`` goes on where it was
interrupted. An expression that is equivalent after the change survives in both trees.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("legacy", "modern", "compat", "parity")
EXCHANGED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
SEED = 20261122
Places = dict[tuple[str, str], list[tuple[str, ast.expr]]]


def main() -> None:
    """Draws faults, or plants them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    drawing = actions.add_parser("draw", help="choose the faults")
    drawing.add_argument("--before", type=Path, required=True)
    drawing.add_argument("--now", type=Path, required=True)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--each", type=int, default=10, help="faults a package (default: %(default)s)")
    drawing.set_defaults(act=lambda given: draw(given.before, given.now, given.out, given.each))
    running = actions.add_parser("run", help="plant the faults and run tests")
    running.add_argument("--tree", type=Path, required=True)
    running.add_argument(
        "--tests-of", type=Path, help="tree whose tests' names choose those of --tree (default: --tree itself)"
    )
    running.add_argument("--faults", type=Path, required=True)
    running.add_argument("--out", type=Path, required=True)
    running.set_defaults(act=lambda given: run(given.tree.resolve(), given.tests_of, given.faults, given.out))
    given = parser.parse_args()
    given.act(given)


def sources(tree: Path) -> Iterator[Path]:
    """Yields the product's files, each once."""
    for base in ("legacy", "modern", "compat", "src/estimator_bridge"):
        for path in sorted((tree / base).rglob("*.py")):
            if not any(part.is_symlink() for part in (path, *path.parents)) and "contrib" not in str(path.relative_to(tree)):
                yield path


def places(tree: Path) -> Places:
    """Returns the expressions of each function, by the function's name and the expression's text."""
    found: Places = collections.defaultdict(list)
    for path in sources(tree):
        for function in ast.walk(ast.parse(path.read_bytes())):
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                expression = (
                    getattr(node, "test", None) if isinstance(node, ast.If | ast.While) else getattr(node, "value", None)
                )
                if isinstance(node, ast.If | ast.While | ast.Return | ast.Assign | ast.AugAssign) and expression is not None:
                    text = ast.unparse(expression)
                    if len(text) > 12 and not any(isinstance(one, ast.JoinedStr | ast.Lambda) for one in ast.walk(expression)):
                        found[function.name, text].append((str(path.relative_to(tree)), expression))
    return found


def faulty(expression: ast.expr) -> Iterator[str]:
    """Yields texts of an expression with one fault each."""
    for index in range(len(list(ast.walk(expression)))):
        changed = copy.deepcopy(expression)
        node = list(ast.walk(changed))[index]
        if isinstance(node, ast.Compare) and type(node.ops[0]) in EXCHANGED:
            node.ops[0] = EXCHANGED[type(node.ops[0])]()
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in EXCHANGED:
            node.op = EXCHANGED[type(node.op)]()
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
            node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        elif isinstance(node, ast.IfExp):
            node.body, node.orelse = node.orelse, node.body
        else:
            continue
        yield ast.unparse(changed)


def draw(before: Path, now: Path, out: Path, each: int) -> None:
    """Writes the faults that both trees have a place for."""
    old, new = places(before), places(now)
    common = sorted(key for key in new if len(new[key]) == 1 and len(old.get(key, ())) == 1)
    chance = random.Random(SEED)
    chance.shuffle(common)
    chosen: dict[str, list[dict[str, str]]] = {package: [] for package in PACKAGES}
    used: set[str] = set()
    for function, text in common:
        file, expression = new[function, text][0]
        package = next((part for part in Path(file).parts if part in PACKAGES), "")
        options = list(faulty(expression))
        if options and package and file not in used and len(chosen[package]) < each:
            used.add(file)
            chosen[package].append({"file": file, "function": function, "text": text, "fault": chance.choice(options)})
    out.write_text(json.dumps([fault for package in PACKAGES for fault in chosen[package]], indent=1))
    print({package: len(faults) for package, faults in chosen.items()})


def run(tree: Path, tests_of: Path | None, faults: Path, out: Path) -> None:
    """Plants each fault and runs the tests nearest to it."""
    results: dict[str, str] = json.loads(out.read_text()) if out.exists() else {}
    found = places(tree)
    for fault in json.loads(faults.read_text()):
        key = f"{fault['file']}: {fault['text']} -> {fault['fault']}"
        hits = found.get((fault["function"], fault["text"]), [])
        if key not in results and len(hits) == 1:
            file, expression = hits[0]
            tests = nearest(tree, file) if tests_of is None else by_name(tree, nearest(tests_of.resolve(), fault["file"]))
            results[key] = verdict(tree, tree / file, expression, fault["fault"], tests)
            out.write_text(json.dumps(results, indent=1))
            print(results[key], key, flush=True)
    print(collections.Counter(results.values()))


def nearest(tree: Path, file: str) -> list[str]:
    """Returns the test file of a module, or the innermost folder of tests that there is."""
    parts = Path(file).with_suffix("").parts[2 if file.startswith("src") else 0 :]
    folder = tree.joinpath("tests", *parts[:-1])
    if (folder / f"test_{parts[-1]}.py").exists():
        return [str(folder / f"test_{parts[-1]}.py")]
    return [str(next(place for place in (folder, *folder.parents) if place.is_dir() and list(place.glob("test_*.py"))))]


def tests_in(path: Path) -> set[str]:
    """Returns the names of the test functions in a file or folder."""
    files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_bytes())))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test")}


def by_name(tree: Path, others: list[str]) -> list[str]:
    """Returns the tests of a tree that have the names of other tests."""
    names = set().union(*(tests_in(Path(other)) for other in others))
    return [
        f"{file}::{name}" for file in sorted((tree / "tests").rglob("test_*.py")) for name in sorted(tests_in(file) & names)
    ]


def verdict(tree: Path, path: Path, expression: ast.expr, fault: str, tests: list[str]) -> str:
    """Returns whether the tests notice a fault; the file is as before in the end."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    first = starts[expression.lineno - 1] + expression.col_offset
    last = starts[(expression.end_lineno or 0) - 1] + (expression.end_col_offset or 0)
    path.write_bytes(source[:first] + f"({fault})".encode() + source[last:])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree / "src")},
            capture_output=True,
            timeout=1200,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "noticed"
    finally:
        path.write_bytes(source)
    return "survived" if done.returncode == 0 else "noticed"


if __name__ == "__main__":
    main()
