"""How often ``check`` foresees what ``run`` does: ``python benchmarks/foreseen.py LIST``.

LIST has one JSON object a line, each for a script that was run: ``{"script": "train.py", "arguments": ["--steps=10"], "outcome": "runs"}``. Optional
are ``"path"`` (``legacy`` or ``modern``; default legacy), ``"folder"`` (the working directory; default this one), ``"environment"`` (variables
that are added) and ``"module": true`` for ``run -m``. The outcome is ``runs``, or anything else for a script that did not run to its end. ``data``
is for one that ended for data, arguments or devices that it lacks: as its source shows no such thing, it counts as one that runs, and the number
of them is printed.

Printed are the confusion matrix of the verdict of ``check`` against the outcome, the share that agrees, the share of scripts that ``check`` called
good though they failed, and each script on which they differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

LEAST_AGREEMENT = 0.95
MOST_FALSE_RUNS = 0.02


def foresees_run(row: dict[str, Any]) -> bool:
    """Returns True if ``check`` finds nothing that stops a script."""
    script = f"{row['script'].replace('.', '/')}.py" if row.get("module") else row["script"]
    command = [sys.executable, "-m", "estimator_bridge", "check", "--path", row.get("path", "legacy"), script]
    environment = os.environ | row.get("environment", {})
    done = subprocess.run(command, cwd=row.get("folder"), env=environment, capture_output=True, check=False)
    return done.returncode == 0


def matrix(counts: Counter[tuple[bool, bool]]) -> str:
    """Returns the confusion matrix as text: rows are verdicts of ``check``, columns outcomes of ``run``."""
    lines = [f"{'':16}{'run: runs':>12}{'run: fails':>12}"]
    for verdict, name in ((True, "check: runs"), (False, "check: stops")):
        lines.append(f"{name:16}{counts[verdict, True]:>12}{counts[verdict, False]:>12}")
    return "\n".join(lines)


def main() -> int:
    """Judges every script and prints the matrix; returns 0 if it keeps the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path, metavar="LIST", help="scripts with the outcomes of run, one JSON object a line")
    rows = [json.loads(line) for line in parser.parse_args().list.read_text(encoding="utf-8").splitlines() if line.strip()]
    counts: Counter[tuple[bool, bool]] = Counter()
    differing = []
    for row in rows:
        pair = foresees_run(row), row["outcome"] in {"runs", "data"}
        counts[pair] += 1
        if pair[0] != pair[1]:
            differing.append(f"{row.get('path', 'legacy')} {row.get('folder', '.')} {row['script']}: {row['outcome']}")
    agreement = (counts[True, True] + counts[False, False]) / max(len(rows), 1)
    false_runs = counts[True, False] / max(len(rows), 1)
    lacking = sum(row["outcome"] == "data" for row in rows)
    print(matrix(counts))
    print(f"{len(rows)} scripts, {agreement:.1%} agree, {false_runs:.1%} called good though they failed")
    print(f"{lacking} of them reached data, arguments or devices that they lack")
    print(*differing, sep="\n")
    return 0 if agreement >= LEAST_AGREEMENT and false_runs <= MOST_FALSE_RUNS else 1


if __name__ == "__main__":
    sys.exit(main())
