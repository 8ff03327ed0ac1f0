"""``estimator-bridge launch``: runs a script as a cluster of ``estimator-bridge run``, one process a task."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.launch import options
from estimator_bridge.cli.launch.schedulers import check_engine, scheduler_input
from estimator_bridge.cli.parallel_plan import add_plan, beside_chief, plan_flags, plan_of
from estimator_bridge.cli.script_arguments import add_options, add_script, script_of
from estimator_bridge.cluster.audit_records import EVERY
from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:  # each command of the program would wait for the launcher
    from estimator_bridge.launcher.audit.audit import AuditRequest
    from estimator_bridge.launcher.layout import Layout
    from estimator_bridge.launcher.machines import Machines
    from estimator_bridge.launcher.monitors.resizing import ElasticSize
    from estimator_bridge.launcher.processes.spawner import Spawner
    from estimator_bridge.modern.parallel.plans.plan import ParallelPlan

_logger = logging.getLogger(__name__)
_EPILOG = """examples:
  estimator-bridge launch --chief 1 --worker 2 --ps 2 --evaluator 1 train.py --model_dir=/tmp/model
  estimator-bridge launch --worker 1 --ps 1 --log-dir /tmp/logs train.py
  estimator-bridge launch --worker 1 --ps 1 --format json train.py > result.json
  TF_CONFIG=... estimator-bridge launch train.py
  estimator-bridge launch --path modern --elastic 1:4 --micro 4 train.py --model_dir=/tmp/model
  estimator-bridge launch --hosts a:2222,b:2222,c:2222 --worker 1 --ps 1 --task worker:0 --trusted-network train.py

exit code: that of the chief, or of the first task that failed; 1 if the cluster was not ready or did not end in time;
2 if the request cannot be carried out; 130 after Ctrl-C, 143 after SIGTERM.
Every process that a task starts ends with the launcher. By default launch starts all tasks on this machine, at addresses that no other
machine can reach. If TF_CONFIG is set, launch runs only the task that TF_CONFIG names; with --hosts, only the task that --task names.
Start a launcher for each of the other tasks, too.
"""


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser(
        "launch",
        help="run a script as a cluster on this machine: chief, workers, parameter servers, evaluator",
        description="Starts a script once for each task of a cluster, with its TF_CONFIG, checks that the tasks find each other, and ends "
        "them together.",
        epilog=_EPILOG,
    )
    add_options(parser, "--path", "--py2", "--tf-version", "--fetch-contrib")
    add_plan(parser)
    for add_group in (*options.GROUPS, add_script):
        add_group(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Runs the cluster until it ends."""
    context = TaskContext.of_this_process()
    check_engine(arguments, context)
    audit, plan = _audit(arguments, context), plan_of(arguments)
    given = _plan_flags(arguments)
    size = _elastic_size(arguments, context, plan)
    if arguments.worker and arguments.chief is None and size is None:
        arguments.worker = beside_chief(plan, arguments.worker)
    if arguments.engine in options.PRINTED:
        sys.stdout.write(scheduler_input(arguments, _counts(arguments)))
        return 0
    from estimator_bridge.launcher.launch import launch
    from estimator_bridge.launcher.outcome import Timeouts

    script_of(arguments).check_syntax()
    flags = ["--path", arguments.path, *(["--py2"] if arguments.py2 else []), *(["-m"] if arguments.module else [])]
    flags += ["--tf-version", arguments.tf_version] if arguments.tf_version else []
    flags += given
    timeouts = Timeouts(
        arguments.ready_timeout,
        arguments.finish_timeout,
        arguments.grace,
        arguments.stall_timeout,
        arguments.max_restarts,
        Timeouts.lost if arguments.return_timeout is None else arguments.return_timeout,
    )
    with _cluster(arguments, context) as (layouts, spawner):
        result = launch(
            layouts,
            ["-m", "estimator_bridge", "run", *flags, arguments.script, *arguments.args],
            arguments.log_dir,
            timeouts,
            sys.stdout if arguments.format == "text" else sys.stderr,
            preload="estimator_bridge.script.preloaded",
            audit=audit,
            shared_folder=arguments.rendezvous,
            spawner=spawner,
            size=size,
        )
    if arguments.format == "json":
        sys.stdout.write(json.dumps(result.to_json(), indent=1) + "\n")
        sys.stdout.flush()
    if result.outcome.problem is not None:
        _logger.error("%s", result.outcome.problem.with_help)
    return result.outcome.code


def _plan_flags(arguments: argparse.Namespace) -> list[str]:
    """Returns the options of a plan for each task.

    Raises:
        BridgeError: The plan cannot be carried out by these tasks.
    """
    flags = plan_flags(arguments)
    if flags and arguments.path != "modern":
        raise BridgeError(
            f"{flags[0]} works only on the modern path.",
            expected=f"--path modern {flags[0]}",
            received=f"--path {arguments.path} {flags[0]}",
            fix="Add --path modern, or leave out the plan.",
        )
    return flags


def _elastic_size(
    arguments: argparse.Namespace, context: TaskContext | None, plan: ParallelPlan
) -> ElasticSize | Machines | None:
    """Returns the numbers of workers of an elastic plan, and sets how many begin; for several machines, those that can take part.

    Raises:
        BridgeError: The tasks do not suit the plan.
    """
    from estimator_bridge.launcher.machines import Machines
    from estimator_bridge.launcher.monitors.resizing import elastic_size
    from estimator_bridge.launcher.outcome import Timeouts

    if not plan.elastic or context or arguments.engine != "local":
        return None  # a scheduler has one task a machine, which takes part in every size that the plan allows
    counts = _counts(arguments)
    size, number = elastic_size(counts, arguments.worker is not None or bool(arguments.hosts), plan.workers)
    arguments.worker = number - 1
    if not arguments.hosts:
        return size
    if not arguments.rendezvous:
        _logger.warning("Without --rendezvous the machines stay those that begin: no launcher learns of the others.")
        return None
    if counts["evaluator"] or arguments.task == "evaluator:0":
        raise BridgeError(
            "An evaluator cannot follow an elastic training on several machines.",
            expected="a chief and workers",
            received="an evaluator",
            fix="Leave it out, and evaluate the checkpoints with estimator-bridge run, without the plan.",
        )
    layout = next(iter(_layouts(arguments, context)))
    own = next(iter(layout.tf_configs))
    hosts = [*layout.addresses.values()]
    lost = Timeouts.lost if arguments.return_timeout is None else arguments.return_timeout
    return Machines(arguments.rendezvous, hosts, layout.addresses[own], plan.workers, ready=arguments.ready_timeout, lost=lost)


def _audit(arguments: argparse.Namespace, context: TaskContext | None) -> AuditRequest | None:
    """Returns the audit that the command line asks for, if any.

    Raises:
        BridgeError: An option of the audit lacks another option.
    """
    from estimator_bridge.launcher.audit.audit import AuditRequest

    if not arguments.audit:
        given = [f"--audit-{name}" for name in ("every", "allow") if getattr(arguments, f"audit_{name}")]
        if given:
            raise BridgeError(
                f"{' '.join(given)} works only with --audit.", fix="Add --audit, without which nothing is audited."
            )
        return None
    if (context or arguments.hosts or arguments.engine in options.PRINTED) and not arguments.rendezvous:
        raise BridgeError(
            "Workers on several machines cannot be compared without a shared folder.",
            expected="--rendezvous DIR, a folder that all machines of the cluster share",
            fix="Choose a new folder for each training, e.g. beside model_dir.",
        )
    return AuditRequest(arguments.audit_every or EVERY, arguments.audit_allow or ())


def _given_counts(arguments: argparse.Namespace) -> dict[str, int]:
    return {job: number for job in options.JOBS if (number := getattr(arguments, job)) is not None}


def _counts(arguments: argparse.Namespace) -> dict[str, int]:
    return {job: default for job, (_, default) in options.JOBS.items()} | _given_counts(arguments)


def _cluster(
    arguments: argparse.Namespace, context: TaskContext | None
) -> contextlib.AbstractContextManager[tuple[Iterable[Layout], Spawner | None]]:
    """Returns the layouts to try, and the spawner of tasks that do not all run on this machine."""
    if arguments.engine != "ray":
        return contextlib.nullcontext((_layouts(arguments, context), None))
    from estimator_bridge.launcher.schedulers.ray import open_cluster

    return open_cluster(_counts(arguments), arguments.rendezvous, arguments.ready_timeout, arguments.trusted_network)


def _layouts(arguments: argparse.Namespace, context: TaskContext | None) -> Iterable[Layout]:
    """Returns the layout of the one task that TF_CONFIG or --hosts names, or layouts of a whole cluster on this machine."""
    from estimator_bridge.launcher.launch import local_layouts
    from estimator_bridge.launcher.layout import check_trainers, given_layout, hosted_layout
    from estimator_bridge.launcher.request_checks import check_evaluator, check_network, check_ports

    _check_sources(arguments, context)
    if arguments.hosts:
        layout = hosted_layout(arguments.hosts, _counts(arguments), arguments.task)
    elif context:
        layout = given_layout(context)
    else:
        return local_layouts(_counts(arguments))
    check_trainers(layout.addresses)
    check_network(layout, arguments.trusted_network)
    check_evaluator(layout, arguments.rendezvous)
    if arguments.ready_timeout:  # else the task may start no server
        check_ports(layout)
    return [layout]


def _check_sources(arguments: argparse.Namespace, context: TaskContext | None) -> None:
    """Refuses more than one description of the cluster: TF_CONFIG, --hosts, or numbers of tasks."""
    given = [f"--{job} {number}" for job, number in _given_counts(arguments).items()] + (["--hosts"] if arguments.hosts else [])
    if context and given:
        raise BridgeError(
            "TF_CONFIG is set: this process is one task of a cluster, and starts no other.",
            expected="no number of tasks and no --hosts, or no TF_CONFIG",
            received=" ".join(given),
            fix="Drop these options, or unset TF_CONFIG to start a cluster on this machine.",
        )
    if bool(arguments.hosts) != bool(arguments.task):
        raise BridgeError(
            "--hosts and --task must be given together.",
            expected="both, or neither",
            fix="Name this machine's task with --task.",
        )
    if arguments.rendezvous and not (arguments.hosts or context):
        raise BridgeError(
            "--rendezvous is only for clusters on several machines.",
            expected="--hosts and --task, or TF_CONFIG",
            fix="Leave out --rendezvous.",
        )
