"""Peak memory where a large table is trained on two parameter servers, and exported: ``python benchmarks/large_variables.py``.

Each path runs jobs/large_variables.py by ``estimator-bridge launch``, once with a tiny table and once with the large one, resumes it, and
exports the last checkpoint. The table has 64 columns in four slices and Adagrad's slot, 512 bytes a row. Printed are the peaks of chief and
worker in MiB, and the memory that the export takes on top of its start. The goals are at most 800 MB in the chief, and 1.2 slices for the
export, on the modern path. There the system lets neither allocate more than 1.6 GB, of which TensorFlow's threads take 1.4 GB in the chief.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = Path(__file__).parent / "jobs" / "large_variables.py"
TINY = 1000
TASKS = ("chief", "worker")
GOAL = 800e6
ALLOWED = 1_600_000_000
GOAL_OF_EXPORT = 1.2
SLICE_BYTES_PER_ROW = 64 * 4 / 4


def peaks(path: str, rows: int, steps: int) -> dict[str, float]:
    """Trains, resumes and exports once. Returns the peak memory of the tasks and what the export takes, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        bridge, job = [sys.executable, "-m", "estimator_bridge"], [str(JOB), f"--model_dir={folder}/model", f"--rows={rows}"]
        if path == "modern":
            job.append(f"--limit={ALLOWED}")
        launch = [*bridge, "launch", "--worker", "1", "--ps", "2", "--path", path, *job]
        for command in (
            [*launch, f"--steps={steps}"],
            [*launch, f"--steps={2 * steps}"],
            [*bridge, "run", "--path", path, *job, f"--export={folder}/export"],
        ):
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        last = Path(folder, "model", "checkpoint").read_text().split('"')[1]  # trainers may go beyond ``steps``
        for files in (f"model/{last}", "export/*/variables/variables"):
            data = sorted(Path(folder).glob(f"{files}.data-*"))
            size = sum(file.stat().st_size for file in data) / 1e9
            sys.stdout.write(f"{path}, {rows:,} rows, {files}: {len(data)} data files of {size:.2f} GB\n")
        found = {task: float(Path(folder, "model", f"peak-{task}-0").read_text()) for task in TASKS}
        (peak,) = Path(folder, "export").glob("*/peak")
        return found | {"export": float(peak.read_text())}


def main() -> None:
    """Measures both paths and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--path", choices=["legacy", "modern"], action="append")
    flags = parser.parse_args()
    lines = ["| path | rows | chief | worker | export |", "|---|---|---|---|---|"]
    for path in flags.path or ["legacy", "modern"]:
        for rows in (TINY, flags.rows):
            found = peaks(path, rows, flags.steps)
            columns = " | ".join(f"{found[name]:.0f} MiB" for name in (*TASKS, "export"))
            lines.append(f"| {path} | {rows:,} | {columns} |")
    slices = found["export"] * 2**20 / (rows * SLICE_BYTES_PER_ROW)
    for goal, is_met in (
        (f"{GOAL / 1e6:.0f} MB in the chief", found["chief"] * 2**20 <= GOAL),
        (f"{GOAL_OF_EXPORT} slices in an export, {slices:.2f} measured", slices <= GOAL_OF_EXPORT),
    ):
        lines.append(f"goal of the last row: at most {goal}: {'met' if is_met else 'missed'}")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
