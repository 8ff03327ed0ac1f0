"""Peak memory of the tasks that train a large table on two parameter servers: ``python benchmarks/large_variables.py [--rows 4000000]``.

Each path runs jobs/large_variables.py by ``estimator-bridge launch``, once with a tiny table and once with the large one. The table has
64 columns and Adagrad's slot, 512 bytes a row. Printed are the peaks of chief and worker in MiB. The goal is at most 800 MB in the chief.
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


def peaks(path: str, rows: int, steps: int) -> dict[str, float]:
    """Trains once and returns the peak memory of the tasks in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "estimator_bridge", "launch", "--worker", "1", "--ps", "2", "--path", path, str(JOB)]
        command += [f"--model_dir={folder}/model", f"--rows={rows}", f"--steps={steps}"]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = sorted(Path(folder, "model").glob(f"model.ckpt-{steps}*.data-*"))
        sys.stdout.write(
            f"{path}, {rows:,} rows: {len(data)} data files of {sum(file.stat().st_size for file in data) / 1e9:.2f} GB\n"
        )
        return {task: float(Path(folder, "model", f"peak-{task}-0").read_text()) for task in TASKS}


def main() -> None:
    """Measures both paths and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--path", choices=["legacy", "modern"], action="append")
    flags = parser.parse_args()
    lines = ["| path | rows | chief | worker |", "|---|---|---|---|"]
    met = True
    for path in flags.path or ["legacy", "modern"]:
        for rows in (TINY, flags.rows):
            found = peaks(path, rows, flags.steps)
            met = met and found["chief"] * 2**20 <= GOAL
            lines.append(f"| {path} | {rows:,} | {found['chief']:.0f} MiB | {found['worker']:.0f} MiB |")
    sys.stdout.write("\n".join([*lines, f"goal: at most {GOAL / 1e6:.0f} MB in the chief: {'met' if met else 'missed'}\n"]))


if __name__ == "__main__":
    main()
