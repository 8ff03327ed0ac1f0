"""Time of ``check`` and ``fleet check`` over a folder of repositories, in times of Python's own compilation of the same files.

    python benchmarks/fleet.py FOLDER [--runs 3]

FOLDER contains the repositories, e.g., clones of those in a list of one's own. A turn runs, over a copy of it, ``check``, ``fleet check``
for the rows that ``fleet init`` writes, and ``python -m compileall``. The exit code is 1 if ``fleet check`` takes more than 60 seconds.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import judge, ratio

LIMIT = 60.0
"""Seconds for the whole folder."""
BRIDGE = (sys.executable, "-m", "estimator_bridge")
COMMANDS = {
    "check": (*BRIDGE, "check", "."),
    "fleet check": (*BRIDGE, "fleet", "check"),
    "compileall": (sys.executable, "-m", "compileall", "-q", "-f", "."),
}


def run(command: tuple[str, ...], folder: Path) -> tuple[float, str]:
    """Runs a command in a folder; returns its seconds and what it printed. Findings, and files that cannot be read, are no failure."""
    started = time.perf_counter()
    done = subprocess.run(command, check=False, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode not in (0, 1, 2) or not (done.stdout or "compileall" in command):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return time.perf_counter() - started, done.stdout


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as aside:
        copy = Path(aside) / "repositories"
        shutil.copytree(arguments.folder, copy, symlinks=True)
        rows = run((*BRIDGE, "fleet", "init", "."), copy)[1]
        (copy / "fleet.toml").write_text(rows)
        files = sum(1 for _ in copy.rglob("*.py"))
        for turn in range(arguments.runs):
            for name in COMMANDS if turn % 2 == 0 else reversed(COMMANDS):
                found[name].append(run(COMMANDS[name], copy)[0])
                print(f"run {turn + 1} {name}: {found[name][-1]:.1f} s", file=sys.stderr)
    print("| command | files | pipelines | s | times of compileall |")
    print("|---" * 5 + "|")
    bounds: dict[str, bool] = {}
    for name in ("check", "fleet check"):
        compared = ratio(found[name], found["compileall"])
        line = f"| {name} | {files} | {rows.count('[[pipeline]]')} | {max(found[name]):.1f} | {compared} |"
        bounds[line] = name == "check" or max(found[name]) <= LIMIT
        print(line)
    judge(bounds)


if __name__ == "__main__":
    main()
