"""Options of ``estimator-bridge launch``: one function a group."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from estimator_bridge.cli.script_arguments import DIRECTORY, add_format, number, seconds
from estimator_bridge.cluster.audit_records import EVERY, KINDS

JOBS = {"chief": (1, 1), "worker": (1000, 0), "ps": (1000, 0), "evaluator": (1, 0)}
"""Largest and default number of tasks of each job."""
PRINTED = ("kubeflow", "slurm")
"""Engines that start nothing here: launch prints the input of the scheduler."""


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds the number of tasks, and the machines they run on."""
    group = parser.add_argument_group("cluster")
    for job, (most, default) in JOBS.items():
        limit = ", 0 or 1" if most == 1 else ""
        group.add_argument(
            f"--{job}", type=_count(most), metavar="N", help=f"number of {job} tasks{limit} (default: {default})"
        )
    group.add_argument(
        "--hosts",
        type=lambda text: text.split(","),
        metavar="HOST:PORT,...",
        help="addresses of a cluster on several machines: chief, workers, parameter servers; the same list on each machine",
    )
    group.add_argument("--task", metavar="JOB:INDEX", help="task that this machine runs, e.g. worker:0; needs --hosts")
    rendezvous = group.add_argument(
        "--rendezvous",
        type=Path,
        metavar="DIR",
        help="folder that all machines of a cluster share; choose a new folder for each training; needs --hosts or TF_CONFIG. The launchers "
        "use it to compare TensorFlow versions, to report failures and the end of the training, to restart synchronous workers together, and "
        "to audit",
    )
    rendezvous.complete = DIRECTORY  # type: ignore[attr-defined]
    group.add_argument(
        "--trusted-network",
        action="store_true",
        help="allow addresses that other machines can reach: TensorFlow's servers ask for no password and execute what they are sent",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the places of the tasks' output."""
    group = parser.add_argument_group("output")
    logs = group.add_argument(
        "--log-dir",
        type=Path,
        default=Path("launch-logs"),
        metavar="DIR",
        help="folder for the tasks' output, one file for each task; existing files are appended to (default: %(default)s)",
    )
    logs.complete = DIRECTORY  # type: ignore[attr-defined]
    add_format(
        group,
        "text: print all output on stdout, each line with its task; json: print it on stderr, and one JSON object on stdout at the end "
        "(default: %(default)s)",
    )


def add_timeouts(parser: argparse.ArgumentParser) -> None:
    """Adds time limits, and the limit of restarts."""
    group = parser.add_argument_group("time limits and restarts")
    limits: dict[str, tuple[float, str]] = {
        "ready-timeout": (120, "seconds to wait for every task's server to answer; 0 skips the check"),
        "finish-timeout": (600, "seconds that other tasks may still run after the chief has ended"),
        "stall-timeout": (
            120,
            (
                "seconds without a step before the task that holds up the others is restarted; the first step may take ten times as long; "
                "0 skips the check"
            ),
        ),
        "grace": (20, "seconds after SIGTERM or Ctrl-C for tasks to save and end before they are killed"),
    }
    for name, (default, text) in limits.items():
        group.add_argument(f"--{name}", type=seconds, default=default, metavar="SECONDS", help=f"{text} (default: %(default)g)")
    group.add_argument(
        "--return-timeout",
        type=seconds,
        metavar="SECONDS",
        help="seconds without a heartbeat from another machine's launcher before its task counts as lost; a training that needs the task then "
        "ends. A loss is noticed after 40 seconds at the earliest. Needs --rendezvous (default: 45; kubeflow: 300)",
    )
    group.add_argument(
        "--max-restarts",
        type=_count(1000),
        default=3,
        metavar="N",
        help="number of restarts of a task that fails; if the strategy requires it, all tasks restart with it (default: %(default)s)",
    )


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Adds the audit."""
    group = parser.add_argument_group("audit")
    group.add_argument(
        "--audit",
        action="store_true",
        help="check the running training, and end it with exit code 1 if workers get the same data, only one of them trains, updates are lost "
        "or replicas diverge",
    )
    group.add_argument(
        "--audit-every",
        type=_count(10**9, 1),
        metavar="N",
        help=f"number of steps from one audited step to the next (default: {EVERY})",
    )
    group.add_argument(
        "--audit-allow",
        action="append",
        choices=KINDS,
        help="fault to ignore because the script does it on purpose; may be given several times (default: none)",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Adds the engine, and what only one engine needs."""
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine",
        choices=("local", "ray", *PRINTED),
        default="local",
        help="local: start the tasks on this machine; ray: start them as actors, in the Ray cluster of RAY_ADDRESS or a new one on this "
        "machine; kubeflow: print a TFJob as JSON; slurm: print a script for sbatch (default: %(default)s)",
    )
    group.add_argument("--image", help="container image with this package and the script; only for --engine kubeflow")


def _count(most: int, least: int = 0) -> Callable[[str], int]:
    return number(int, f"a whole number from {least} to {most}", least, most)


GROUPS = (add_cluster, add_output, add_timeouts, add_audit, add_engine)
