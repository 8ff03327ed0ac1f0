"""Peak memory where a large table is trained on two parameter servers, and exported: ``python benchmarks/large_variables.py``.

Each path runs jobs/large_variables.py by ``estimator-bridge launch``, once with a tiny table and once with the large one, resumes it, and
exports the last checkpoint. The table has 64 columns in four slices and Adagrad's slot, 512 bytes a row. Printed are the peaks of chief and
worker in MiB, and the memory that the export takes on top of its start. On the modern path the chief may take 800 MB and the export 1.2
slices, and checkpoint and export have two data files at least; else the exit code is 1. There the system lets the chief allocate
no more than 1.6 GB, of which TensorFlow's threads take 1.4 GB, and the export no more than 0.9 GB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from turns import judge

JOB = Path(__file__).parent / "jobs" / "large_variables.py"
TINY = 1000
TASKS = ("chief", "worker")
GOAL = 800e6
ALLOWED = 1_600_000_000
ALLOWED_IN_EXPORT = 900_000_000
GOAL_OF_EXPORT = 1.2
LEAST_FILES = 2
SLICE_BYTES_PER_ROW = 64 * 4 / 4


def peaks(path: str, rows: int, steps: int) -> dict[str, float]:
    """Trains, resumes and exports once. Returns the peak memory of the tasks and what the export takes, in MiB, and the least data files."""
    with tempfile.TemporaryDirectory() as folder:
        limits = [[f"--limit={allowed}"] if path == "modern" else [] for allowed in (ALLOWED, ALLOWED_IN_EXPORT)]
        bridge, job = [sys.executable, "-m", "estimator_bridge"], [str(JOB), f"--model_dir={folder}/model", f"--rows={rows}"]
        launch = [*bridge, "launch", "--worker", "1", "--ps", "2", "--path", path, *job, *limits[0]]
        for command in (
            [*launch, f"--steps={steps}"],
            [*launch, f"--steps={2 * steps}"],
            [*bridge, "run", "--path", path, *job, *limits[1], f"--export={folder}/export"],
        ):
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        last = Path(folder, "model", "checkpoint").read_text().split('"')[1]  # trainers may go beyond ``steps``
        numbers = []
        for files in (f"model/{last}", "export/*/variables/variables"):
            data = sorted(Path(folder).glob(f"{files}.data-*"))
            numbers.append(len(data))
            size = sum(file.stat().st_size for file in data) / 1e9
            sys.stdout.write(f"{path}, {rows:,} rows, {files}: {len(data)} data files of {size:.2f} GB\n")
        found = {task: float(Path(folder, "model", f"peak-{task}-0").read_text()) for task in TASKS}
        (peak,) = Path(folder, "export").glob("*/peak")
        return found | {"export": float(peak.read_text()), "files": min(numbers)}


def main() -> None:
    """Measures both paths and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--path", choices=["legacy", "modern"], action="append")
    flags = parser.parse_args()
    lines = ["| path | rows | chief | worker | export |", "|---|---|---|---|---|"]
    bounds: dict[str, bool] = {}
    for path in flags.path or ["legacy", "modern"]:
        for rows in (TINY, flags.rows):
            found = peaks(path, rows, flags.steps)
            columns = " | ".join(f"{found[name]:.0f} MiB" for name in (*TASKS, "export"))
            lines.append(f"| {path} | {rows:,} | {columns} |")
        if path == "modern":
            bounds = bounds_of(found, found["export"] * 2**20 / (rows * SLICE_BYTES_PER_ROW))
    sys.stdout.write("\n".join([*lines, ""]))
    judge(bounds)


def bounds_of(found: Mapping[str, float], slices: float) -> dict[str, bool]:
    """Returns what the modern path has to keep to, given the figures of the large table."""
    return {
        f"{found['chief']:.0f} MiB in the chief, at most {GOAL / 1e6:.0f} MB": found["chief"] * 2**20 <= GOAL,
        f"{slices:.2f} slices in an export, at most {GOAL_OF_EXPORT}": slices <= GOAL_OF_EXPORT,
        f"{found['files']:.0f} data files, at least {LEAST_FILES}": found["files"] >= LEAST_FILES,
    }


if __name__ == "__main__":
    main()
