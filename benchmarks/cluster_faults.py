"""Fault tolerance of clusters: ``python benchmarks/cluster_faults.py [--strategies async ...] [--events ...]``.

Real clusters of ``estimator-bridge launch`` on this machine train jobs/cluster_training.py; each event happens at a random step. The cells of
the table in docs/reference/cluster-faults.md that were run are replaced, the others stay. All cells take about half an hour. A cut network
needs Linux and the right to make network namespaces (root, or ``unshare -rn python benchmarks/cluster_faults.py``).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from clusters import POLL_SECONDS, Machines, Run

TABLE = Path(__file__).parent.parent / "docs" / "reference" / "cluster-faults.md"
STRATEGIES = {
    "async": ("parameter servers, asynchronous", "legacy", "async", {"worker": 2, "ps": 2, "evaluator": 1}),
    "sync": ("parameter servers, SyncReplicasOptimizer", "legacy", "sync", {"worker": 2, "ps": 1}),
    "mirrored": ("MultiWorkerMirroredStrategy", "legacy", "mirrored", {"worker": 1}),
    "pss": ("ParameterServerStrategy V2, modern path", "modern", "async", {"worker": 2, "ps": 2}),
    "in-step": ("MultiWorkerMirroredStrategy, modern path", "modern", "mirrored", {"worker": 1}),
}
"""Mapping from a name to its heading, the path, the job's --strategy, and the tasks beside the chief."""
STOPPED_SECONDS = CUT_SECONDS = 30.0
WAITING_SECONDS = 5.0
DEADLINE = 300.0
STEPS = 100_000  # more than any event takes; events about the end use fewer
Cell = Callable[["Cluster"], str]


class Cluster:
    """Starter of runs of one strategy in one model_dir.

    Args:
        strategy: Key of STRATEGIES.
        folder: Folder for logs and the model.
    """

    def __init__(self, strategy: str, folder: Path) -> None:
        _, self.path, self.job, self.counts = STRATEGIES[strategy]
        self.folder = folder
        self.tell = 1 if self.path == "modern" and "ps" in self.counts else 1 + self.counts["worker"]
        """Number of tasks that report their steps: all that train, or the one that coordinates the others."""

    def command(self, steps: int = STEPS, late: str = "") -> list[str]:
        """Returns the arguments of ``run`` for each task."""
        flags = [
            f"--model_dir={self.folder / 'model'}",
            f"--steps={steps}",
            f"--strategy={self.job}",
            "--pace=0.02",
            f"--late={late}",
        ]
        return ["--path", self.path, str(Path(__file__).parent / "jobs" / "cluster_training.py"), *flags]

    def start(self, steps: int = STEPS, late: str = "", **counts: int) -> Run:
        """Starts a cluster on this machine."""
        asked = {"chief": 1} | self.counts | counts
        numbers = [word for job, number in asked.items() for word in (f"--{job}", str(number))]
        return Run([*numbers, "--max-restarts", "10", "--stall-timeout", "60", *self.command(steps, late)], self.folder)


def killed(task: str) -> Cell:
    """Sends SIGKILL to the task's process."""

    def cell(cluster: Cluster) -> str:
        with cluster.start() as run:
            if not (number := training(cluster, run, task)):
                return no_start(run)
            happened, highest = time.time(), run.step()
            os.kill(number, signal.SIGKILL)
            back = run.wait(lambda: run.pids.get(task, number) != number and run.goes_on(happened, task), DEADLINE)
            again = run.goes_on(happened, task)
            return f"back after {again - happened:.0f} s, {resumed(run, happened, again, highest)}" if back else ended(run)

    return cell


def stopped(task: str) -> Cell:
    """Sends SIGSTOP to the task's process, and SIGCONT after 30 s."""

    def cell(cluster: Cluster) -> str:
        with cluster.start() as run:
            if not (number := training(cluster, run, task)):
                return no_start(run)
            happened = time.time()
            psutil.Process(number).suspend()
            run.wait(lambda: False, STOPPED_SECONDS)
            if run.pids[task] != number:
                run.wait(lambda: bool(run.goes_on(happened, task)), DEADLINE)
                return f"it and the others end and start again, back after {run.goes_on(happened, task) - happened:.0f} s"
            meanwhile = "the others go on" if run.stepped_after(happened + 5) else "all wait"
            went_on = time.time()
            psutil.Process(number).resume()
            back = run.wait(lambda: bool(run.goes_on(went_on, task)), DEADLINE)
            return f"{meanwhile}; goes on {run.goes_on(went_on, task) - went_on:.1f} s after SIGCONT" if back else ended(run)

    return cell


def lost_with_its_step(cluster: Cluster) -> str:
    """Stops the only worker, so that tasks that need its step wait for it, and then kills it; training has to make all its steps."""
    last = 500
    cluster.tell = min(cluster.tell, 2)
    with cluster.start(steps=last, worker=1) as run:
        if not (number := training(cluster, run, "worker 0")):
            return no_start(run)
        psutil.Process(number).suspend()
        run.wait(lambda: False, WAITING_SECONDS)
        os.kill(number, signal.SIGKILL)
        run.wait(lambda: run.process.poll() is not None, DEADLINE)
        return f"ends at step {run.saved()} of {last}" if run.process.returncode == 0 else ended(run)


def late(task: str) -> Cell:
    """Starts the task's script 20 s after the others."""

    def cell(cluster: Cluster) -> str:
        with cluster.start(late=f"{task.replace(' ', ':')}:20") as run:
            if not run.wait(lambda: len(run.first_steps) == cluster.tell, DEADLINE):
                return no_start(run)
            first = min(run.first_steps.values()) - run.born[task]
            return (
                f"no task trains before it; first step {first - 20:.0f} s after it" if first > 20 else "the others do not wait"
            )

    return cell


def preempted(cluster: Cluster) -> str:
    """Sends SIGTERM to the launcher and looks at its exit code and its checkpoint."""
    with cluster.start() as run:
        if not training(cluster, run, "chief 0"):
            return no_start(run)
        last, happened = run.step(), time.time()
        run.process.send_signal(signal.SIGTERM)
        run.process.wait(60)
        took, saved = time.time() - happened, run.saved()
    lost = max(last - saved, 0)
    return f"exit code {run.process.returncode} after {took:.1f} s, " + ("saved at once" if not lost else f"{lost} steps lost")


def started_again(workers: int) -> Cell:
    """Kills the whole cluster with its launcher and starts it again, with ``workers`` more workers."""

    def cell(cluster: Cluster) -> str:
        with cluster.start() as run:
            if not training(cluster, run, "chief 0"):
                return no_start(run)
            run.wait(lambda: run.saved() > 0, DEADLINE)
            left = [psutil.Process(number) for number in run.pids.values()]
            run.process.kill()
            psutil.wait_procs(left, DEADLINE)  # a checkpoint that they save while they end counts
        saved, counts = run.saved(), {"worker": cluster.counts["worker"] + workers}
        with cluster.start(steps=saved + 100, **counts) as again:
            again.wait(lambda: again.process.poll() is not None, DEADLINE)
            first = min((step for _, _, step, _ in again.steps), default=-1)
            if again.process.returncode != 0:
                return ended(again)
            return f"goes on at step {first} from the checkpoint of {saved}, and ends at {again.saved()}"

    return cell


def cut(cluster: Cluster) -> str:
    """Cuts the network of a worker's machine for 30 s; each task has a launcher in a separate network namespace."""
    with Machines({job: 1 for job in ("chief", *cluster.counts) if job != "evaluator"}, cluster.folder) as machines:
        machines.start(cluster.command())
        worker = machines.runs["worker 0" if cluster.tell > 1 else "chief 0"]
        if not worker.wait(lambda: bool(worker.steps), DEADLINE):
            return no_start(worker)
        happened = time.time()
        with machines.cut("worker 0"):
            worker.wait(lambda: False, CUT_SECONDS)
            meanwhile = "the others go on" if machines.runs["chief 0"].stepped_after(happened + 10) else "all wait"
        mended = time.time()
        back = worker.wait(lambda: worker.stepped_after(mended), DEADLINE)
        return (
            f"{meanwhile}; goes on {worker.steps_after(mended)[0][0] - mended:.0f} s after the cut" if back else ended(worker)
        )


def training(cluster: Cluster, run: Run, task: str) -> int:
    """Waits for a random step of a cluster in which all tasks train. Returns the task's process number, or 0 if that step never comes."""
    has_started = run.wait(lambda: len(run.first_steps) >= cluster.tell and task in run.pids, DEADLINE)
    target = run.step() + random.randint(120, 250)  # past the first checkpoint, at 100
    return run.pids[task] if has_started and run.wait(lambda: run.step() >= target, DEADLINE) else 0


def resumed(run: Run, happened: float, again: float, highest: int) -> str:
    """Describes the step at which training goes on, and reports a loss that shows that training began again from the start."""
    before = [(step, loss) for at, _, step, loss in run.steps if at < happened]
    after = [(step, loss) for _, _, step, loss in run.steps_after(again - POLL_SECONDS)][:10]
    begun = min(step for step, _ in after)
    there = [loss for step, loss in before if abs(step - begun) < 25] or [before[-1][1]]
    expected, now, drop = sum(there) / len(there), sum(loss for _, loss in after) / len(after), before[0][1] - before[-1][1]
    kept = "" if now - expected < drop / 3 else f", THE LOSS DOES NOT: {expected:.2f} there before, {now:.2f} now"
    return f"from step {begun} of {highest}{kept}"


def no_start(run: Run) -> str:
    """Describes a cluster that failed before the event."""
    return "NO START: " + run.problem()


def ended(run: Run) -> str:
    """Describes a cluster that did not come back."""
    return "ENDS: " + run.problem() if run.process.poll() is not None else f"HANGS (no end within {DEADLINE:.0f} s)"


EVENTS: dict[str, Cell] = {
    **{f"SIGKILL {task}": killed(f"{task} 0") for task in ("chief", "worker", "ps", "evaluator")},
    **{f"SIGSTOP {task} for 30 s": stopped(f"{task} 0") for task in ("chief", "worker", "ps", "evaluator")},
    "SIGKILL of a stopped worker, the only one": lost_with_its_step,
    **{f"{task} 20 s late": late(f"{task} 0") for task in ("chief", "worker", "ps")},
    "network of a worker cut for 30 s": cut,
    "SIGTERM": preempted,
    "kill -9 of the launcher, started again": started_again(0),
    "the same with a worker more": started_again(1),
}


def run_cell(event: str, strategy: str) -> str:
    """Runs one cell; returns a dash if the strategy has no such task."""
    job = next((word for word in event.split() if word in ("ps", "evaluator")), "chief")
    if job not in {"chief", *STRATEGIES[strategy][3]}:
        return "-"
    with tempfile.TemporaryDirectory() as folder:
        return EVENTS[event](Cluster(strategy, Path(folder)))


def read_table() -> dict[tuple[str, str], str]:
    """Returns the cells of the existing table."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")] if TABLE.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(row[0], strategy): cell for row in rows[1:] for strategy, cell in zip(STRATEGIES, row[1:], strict=False)}


def write_table(cells: dict[tuple[str, str], str]) -> None:
    """Writes the whole page aside and moves it into place."""
    heading = " | ".join(("Event", *(heading for heading, *_ in STRATEGIES.values())))
    rows = [" | ".join((event, *(cells.get((event, strategy), "not run") for strategy in STRATEGIES))) for event in EVENTS]
    text = f"""# Fault tolerance

For anyone who wants to know what happens when a task of a cluster is killed, stopped, late or cut off. Written by

```sh
python benchmarks/cluster_faults.py
```

which starts real clusters by `estimator-bridge launch --stall-timeout 60` on one machine. Each event happens at a random step of a
training that waits 20 ms a step. Times run from the event to the next step of the task that it happened to, or of any task if that one
makes none, and include the restart. On a busy machine they are longer.

"From step n of m" means that training goes on at step n after it had been at step m, with the loss that it had at n. If other tasks went
on meanwhile, n is higher. Why each strategy restarts as it does: [](../how-to/clusters/failures-and-restarts.md).

| {heading} |
{"|---" * (len(STRATEGIES) + 1)}|
""" + "".join(f"| {row} |\n" for row in rows)
    aside = TABLE.with_suffix(".new")
    aside.write_text(text)
    aside.replace(TABLE)


def main() -> None:
    """Runs cells and writes the table after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--events", nargs="+", choices=EVENTS, default=list(EVENTS), metavar="EVENT")
    arguments = parser.parse_args()
    for strategy in arguments.strategies:
        for event in arguments.events:
            cell = run_cell(event, strategy)
            print(f"{strategy}, {event}: {cell}", file=sys.stderr, flush=True)
            write_table(read_table() | {(event, strategy): cell})


if __name__ == "__main__":
    main()
