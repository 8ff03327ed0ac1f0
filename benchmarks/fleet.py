"""Time of ``fleet check`` over a folder of repositories against that of ``tf_upgrade_v2``, which judges scripts without running any, too.

    python benchmarks/fleet.py FOLDER [--runs 3]

FOLDER contains the repositories, e.g., clones of those in a list of one's own. A turn runs ``check FOLDER``, ``fleet check`` over the
rows that ``fleet init`` writes for it, and ``tf_upgrade_v2 --intree FOLDER``. Reported are the numbers of files and pipelines, the median
seconds, and their ratio to those of ``tf_upgrade_v2``. The exit code is 1 if ``fleet check`` takes more than 60 seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import judge, ratio

LIMIT = 60.0
"""Seconds for the whole folder."""
BRIDGE = (sys.executable, "-m", "estimator_bridge")


def seconds_of(command: list[str], folder: Path) -> tuple[float, str]:
    """Runs a command in a folder; returns its seconds and what it printed. Findings in the scripts are no failure."""
    started = time.perf_counter()
    done = subprocess.run(command, check=False, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stdout[-3000:]}")
    return time.perf_counter() - started, done.stdout


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    files = sorted(arguments.folder.resolve().rglob("*.py"))
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as aside:
        rows = Path(aside) / "fleet.toml"
        rows.write_text(seconds_of([*BRIDGE, "fleet", "init", str(arguments.folder.resolve())], Path(aside))[1])
        upgrade = [str(Path(sys.executable).with_name("tf_upgrade_v2")), "--intree", str(arguments.folder.resolve())]
        for run in range(arguments.runs):
            commands = {
                "check": [*BRIDGE, "check", str(arguments.folder.resolve())],
                "fleet check": [*BRIDGE, "fleet", "check", str(rows)],
                "tf_upgrade_v2": [
                    *upgrade,
                    "--outtree",
                    f"{aside}/{run}",
                    "--reportfile",
                    f"{aside}/report",
                    "--copyotherfiles",
                    "False",
                ],
            }
            for name, command in list(commands.items())[:: 1 if run % 2 == 0 else -1]:
                found.setdefault(name, []).append(seconds_of(command, Path(aside))[0])
                print(f"run {run + 1} {name}: {found[name][-1]:.1f} s", file=sys.stderr)
        pipelines = rows.read_text().count("[[pipeline]]")
    print("| command | files | pipelines | s | times of tf_upgrade_v2 |")
    print("|---" * 5 + "|")
    bounds: dict[str, bool] = {}
    for name in ("check", "fleet check"):
        compared = ratio(found[name], found["tf_upgrade_v2"])
        line = f"| {name} | {len(files)} | {pipelines} | {sorted(found[name])[len(found[name]) // 2]:.1f} | {compared} |"
        bounds[line] = max(found[name]) <= LIMIT
        print(line)
    judge(bounds)


if __name__ == "__main__":
    main()
