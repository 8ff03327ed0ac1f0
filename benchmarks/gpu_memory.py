"""Peak memory and speed on a GPU of a training in micro-batches, against one whole batch.

    python benchmarks/gpu_memory.py [--micro 2 4 8] [--width 512] [--rows 16384] [--layers 24]

Trains jobs/wide_layers.py by ``estimator-bridge run --path modern`` once for each number of micro-batches, and reads the peak that TensorFlow
counts on the GPU. Prints a Markdown table: the peak in MiB, its part of a whole batch's, the most that it may be (1/K + 15 %), and the
steps per second. Exit code 1 if a peak is above its bound.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from turns import judge, logged_steps_per_second

JOB = Path(__file__).parent / "jobs" / "wide_layers.py"
TOLERANCE = 0.15
"""Part of a whole batch's peak that a peak may be above 1/K: parameters, slots and the batch itself are not divided."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--micro", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    flags = [f"--{name}={getattr(arguments, name)}" for name in ("width", "rows", "layers", "steps")]
    print("| micro-batches | peak, MiB | part | at most | steps/s | |\n|---|---|---|---|---|---|")
    whole, bounds = 0.0, {}
    for micro in (1, *arguments.micro):
        with tempfile.TemporaryDirectory() as folder:
            rate = logged_steps_per_second(JOB, [*flags, f"--model_dir={folder}"], ["--micro", str(micro)], gpu=True)
            peak = float(Path(folder, "memory-alone-0").read_text())
        whole = whole or peak
        limit = 1 / micro + TOLERANCE
        line = f"| {micro} | {peak:.0f} | {peak / whole:.2f} | {limit:.2f} | {rate:.1f} |"
        bounds[line] = micro == 1 or peak / whole <= limit
        print(f"{line} {'met' if bounds[line] else 'missed'} |", flush=True)
    judge(bounds)


if __name__ == "__main__":
    main()
