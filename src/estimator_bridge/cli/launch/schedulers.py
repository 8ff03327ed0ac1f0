"""``estimator-bridge launch --engine``: the options of each engine, and the input of a scheduler."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping

from estimator_bridge.cli.launch.options import JOBS
from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.errors import BridgeError

_NOT_PASSED_ON = {*JOBS, "hosts", "task", "engine", "image", "module", "script", "args", "execute"}


def scheduler_input(arguments: argparse.Namespace, counts: Mapping[str, int]) -> str:
    """Returns the manifest or the script that the scheduler of ``--engine`` takes.

    Args:
        arguments: Parsed command line.
        counts: Number of tasks of each job.

    Raises:
        BridgeError: Options do not go with the engine, or the user has not allowed a network that others can reach.
    """
    from estimator_bridge.launcher.layout import list_tasks, make_layout
    from estimator_bridge.launcher.request_checks import check_evaluator, check_network
    from estimator_bridge.launcher.schedulers.kubeflow import manifest
    from estimator_bridge.launcher.schedulers.slurm import batch_script

    tasks = list_tasks(counts)
    layout = make_layout({task: "a node of the scheduler" for task in tasks if task.serves}, tasks)
    check_network(layout, arguments.trusted_network)
    check_evaluator(layout, arguments.rendezvous)
    command = [*_task_options(arguments), arguments.script, *arguments.args]
    if arguments.engine == "slurm":
        return batch_script(counts, command)
    return json.dumps(manifest(counts, arguments.image, command), indent=2) + "\n"


def check_engine(arguments: argparse.Namespace, context: TaskContext | None) -> None:
    """Refuses options that do not go with the engine.

    Args:
        arguments: Parsed command line.
        context: TF_CONFIG of this process, if it is set.

    Raises:
        BridgeError: Two options exclude each other.
    """
    if bool(arguments.image) != (arguments.engine == "kubeflow"):
        raise BridgeError(
            "--image is required with --engine kubeflow, and only allowed there.",
            expected="--engine kubeflow --image IMAGE: its pods run a container image",
            received=f"--engine {arguments.engine}" + (f" --image {arguments.image}" if arguments.image else ""),
        )
    if arguments.engine != "local" and (arguments.hosts or arguments.task):
        raise BridgeError(
            f"--engine {arguments.engine} and --hosts exclude each other.",
            expected="the scheduler's addresses, or your own",
            fix="Leave out --hosts.",
        )
    if arguments.engine == "ray" and context:
        raise BridgeError(
            "TF_CONFIG is set: this process is one task of a cluster, and starts no other.",
            expected="--engine ray without TF_CONFIG",
            fix="Unset TF_CONFIG.",
        )


def _task_options(arguments: argparse.Namespace) -> Iterator[str]:
    """Yields the options that the launcher of each task needs: all but those of the cluster and the engine."""
    for name, value in vars(arguments).items():
        if name in _NOT_PASSED_ON or value is None or value is False:  # 0 is a value
            continue
        option = "--" + name.replace("_", "-")
        for each in value if isinstance(value, list) else [value]:
            yield from [option] if each is True else [option, str(each)]
    if arguments.module:
        yield "-m"
