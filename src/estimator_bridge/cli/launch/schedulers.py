"""``estimator-bridge launch --engine``: what a scheduler is given, printed."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping

_VALUES = (
    "path",
    "format",
    "log_dir",
    "ready_timeout",
    "finish_timeout",
    "stall_timeout",
    "return_timeout",
    "max_restarts",
    "grace",
    "rendezvous",
    "audit_every",
)
_FLAGS = ("py2", "trusted_network", "audit")
PRINTED = ("kubeflow", "slurm")
"""Engines that start nothing here: what they are given is printed."""


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Adds --engine and what belongs to it."""
    parser.add_argument(
        "--engine",
        choices=("local", "ray", *PRINTED),
        default="local",
        help="local: start the tasks; ray: start them as actors, in the Ray cluster of RAY_ADDRESS or one on this machine; kubeflow, "
        "slurm: print a TFJob as JSON, or a script for sbatch, that starts each task by launch",
    )
    parser.add_argument("--image", help="with --engine kubeflow: the container image, with this package and the script in it")


def for_engine(arguments: argparse.Namespace, counts: Mapping[str, int]) -> str:
    """What the engine takes.

    Args:
        arguments: of the command line.
        counts: tasks of each job.

    Returns:
        A manifest, or a script.

    Raises:
        BridgeError: for options that do not go with the engine, and without consent to a network that others may reach.
    """
    from estimator_bridge.cluster.tasks import TaskId
    from estimator_bridge.launcher.layout import check_trained, laid_out
    from estimator_bridge.launcher.request_checks import check_evaluator, check_network
    from estimator_bridge.launcher.schedulers.kubeflow import manifest
    from estimator_bridge.launcher.schedulers.slurm import batch_script

    check_trained(counts)
    tasks = [TaskId(job, index) for job, number in counts.items() for index in range(number)]
    servers = [task for task in tasks if task.job != "evaluator"]
    layout = laid_out(dict.fromkeys(servers, "a node of the scheduler's"), tasks)
    check_network(layout, arguments.trusted_network)
    check_evaluator(layout, arguments.rendezvous)
    handed_on = [*_options(arguments), arguments.script, *arguments.args]
    if arguments.engine == "slurm":
        return batch_script(counts, handed_on)
    return json.dumps(manifest(counts, arguments.image, handed_on), indent=2) + "\n"


def check_engine(arguments: argparse.Namespace) -> None:
    """Refuses options that do not go with the engine.

    Raises:
        BridgeError: for such options.
    """
    from estimator_bridge.errors import BridgeError

    if bool(arguments.image) != (arguments.engine == "kubeflow"):
        raise BridgeError(
            "--engine kubeflow goes with --image, and no other engine does.",
            expected="--engine kubeflow --image IMAGE: its pods run a container image",
            received=f"--engine {arguments.engine}" + (f" --image {arguments.image}" if arguments.image else ""),
        )
    if arguments.engine != "local" and (arguments.hosts or arguments.task):
        raise BridgeError(
            f"--engine {arguments.engine} and --hosts exclude each other.",
            expected="the scheduler's addresses, or your own",
            fix="Leave one of them out.",
        )
    if arguments.engine == "ray" and os.environ.get("TF_CONFIG"):
        raise BridgeError(
            "TF_CONFIG is set: this process is one task of a cluster, and starts no other.",
            expected="--engine ray without TF_CONFIG",
            fix="Unset TF_CONFIG.",
        )
    if arguments.engine in PRINTED and arguments.audit and not arguments.rendezvous:
        raise BridgeError(
            "Workers on several machines cannot be compared with each other from one.",
            expected="--rendezvous DIR, a folder that all machines of the cluster share",
        )


def _options(arguments: argparse.Namespace) -> Iterator[str]:
    """Those of ``launch`` that each task's launcher has to know."""
    for name in _VALUES:
        if (value := getattr(arguments, name)) is not None:
            yield from (_option(name), str(value))
    for name in _FLAGS:
        if getattr(arguments, name):
            yield _option(name)
    for kind in arguments.audit_allow or ():
        yield from ("--audit-allow", kind)
    if arguments.module:
        yield "-m"


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
