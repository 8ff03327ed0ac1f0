"""Memory and speed of workers that cut the optimizer's state between them, against workers that each have it whole.

    python benchmarks/sharded_state.py [--runs 3] [--width 2048] [--workers 2]

Launches jobs/wide_layers.py (four layers, Adam) with and without ``state = "sharded"``, in turns. Prints a Markdown table: the median of the
workers' peaks of memory, without a tiny model's, in bytes of the model's weights, and the steps per second that the chief
logs. All workers share the cores and the memory of this machine, and send their gradients over its network device.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from turns import logged_steps_per_second, ratio

JOB = Path(__file__).parent / "jobs" / "wide_layers.py"
PLANS = {"replicated": "", "sharded": '[optimizer]\nstate = "sharded"\n'}
TINY = 8


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    flags = parser.parse_args()
    weights = 4 * 4 * (flags.width * flags.width + flags.width) / 2**20
    rates: dict[str, list[float]] = {plan: [] for plan in PLANS}
    lines = [f"| state, {flags.workers} workers, {weights:.0f} MiB of weights | peak / weights | steps/s |", "|---|---|---|"]
    held: dict[str, list[float]] = {plan: [] for plan in PLANS}
    for _ in range(flags.runs):
        for plan in PLANS:
            base, _ = measured(plan, TINY, flags.steps, flags.workers)
            memory, rate = measured(plan, flags.width, flags.steps, flags.workers)
            held[plan].append((memory - base) / weights)
            rates[plan].append(rate)
    lines += [f"| {plan} | {statistics.median(held[plan]):.2f} | {statistics.median(rates[plan]):.2f} |" for plan in PLANS]
    lines.append(f"steps/s, sharded to replicated: {ratio(rates['sharded'], rates['replicated'])}")
    sys.stdout.write("\n".join([*lines, ""]))


def measured(plan: str, width: int, steps: int, workers: int) -> tuple[float, float]:
    """Trains once; returns the mean memory of the workers in MiB, and the chief's steps per second."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plan.toml").write_text(PLANS[plan])
        job = [f"--model_dir={folder}/model", f"--width={width}", f"--steps={steps}"]
        rate = logged_steps_per_second(JOB, job, ["--plan", f"{folder}/plan.toml"], workers)
        found = [float(file.read_text()) for file in Path(folder, "model").glob("memory-*")]
    return statistics.mean(found), rate


if __name__ == "__main__":
    main()
