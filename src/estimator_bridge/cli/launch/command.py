"""``estimator-bridge launch``: a cluster of ``estimator-bridge run`` on this machine, one process a task."""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.launch.schedulers import PRINTED, add_engine, check_engine, for_engine
from estimator_bridge.cli.script_arguments import DIRECTORY, add_path, add_python2, add_script, script_of, seconds
from estimator_bridge.cluster.audit_records import EVERY, KINDS

if TYPE_CHECKING:
    from estimator_bridge.launcher.audit.audit import AuditRequest
    from estimator_bridge.launcher.layout import Layout
    from estimator_bridge.launcher.processes.spawner import Spawner

_logger = logging.getLogger(__name__)
_EPILOG = """examples:
  estimator-bridge launch --chief 1 --worker 2 --ps 2 --evaluator 1 train.py --model_dir=/tmp/model
  estimator-bridge launch --worker 1 --ps 1 --log-dir /tmp/logs train.py
  estimator-bridge launch --worker 1 --ps 1 --format json train.py > result.json
  TF_CONFIG=... estimator-bridge launch train.py
  estimator-bridge launch --hosts a:2222,b:2222,c:2222 --worker 1 --ps 1 --task worker:0 --trusted-network train.py

exit code: the chief's; that of the first task that failed; 1 when the cluster was not ready or did not end in time;
2 when the request cannot be carried out; 130 after Ctrl-C, 143 after SIGTERM.
Whatever the tasks started ends with them. Where TF_CONFIG is set already, the one task that it names is run, and with --hosts the one
that --task names, among the others that somebody else runs; else addresses are of this machine alone.
"""

_JOBS = {"chief": (1, 1), "worker": (1000, 0), "ps": (1000, 0), "evaluator": (1, 0)}  # most, default


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser(
        "launch",
        help="run a script as a cluster on this machine: chief, workers, parameter servers, evaluator",
        description="Runs a script once a task of a cluster, each with its TF_CONFIG, checks that they find each other, and ends them all.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for job, (most, default) in _JOBS.items():
        allowed = "0 or 1" if most == 1 else "how many"
        parser.add_argument(f"--{job}", type=_count(most), metavar="N", help=f"{allowed} (default: {default})")
    parser.add_argument(
        "--hosts",
        type=lambda text: text.split(","),
        metavar="HOST:PORT,...",
        help="a cluster on several machines: addresses of the chief, the workers, the parameter servers; the same on each of them",
    )
    parser.add_argument("--task", metavar="JOB:INDEX", help="with --hosts: which task this machine runs, worker:0 for example")
    shared = parser.add_argument(
        "--rendezvous",
        type=Path,
        metavar="DIR",
        help="with --hosts or TF_CONFIG: a folder that all machines share, a new one for each training; launchers compare their TensorFlow "
        "there, tell that training has ended or failed, start together what trains in step, and audit",
    )
    shared.complete = DIRECTORY
    add_path(parser)
    add_python2(parser)
    logs = parser.add_argument(
        "--log-dir",
        type=Path,
        default=Path("launch-logs"),
        metavar="DIR",
        help="folder of the tasks' output, a file each, appended to (default: %(default)s)",
    )
    logs.complete = DIRECTORY
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text: all output on stdout, each line with its task; json: that on stderr, and one JSON object on stdout at the end",
    )
    parser.add_argument(
        "--ready-timeout",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="within which the server of every task has to answer; 0: none is asked (default: %(default)g)",
    )
    parser.add_argument(
        "--finish-timeout",
        type=seconds,
        default=600.0,
        metavar="SECONDS",
        help="from the chief's end to the others' (default: %(default)g)",
    )
    parser.add_argument(
        "--stall-timeout",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="without a step of any task while they train, after which who holds them up is named and started again; the first step may "
        "take ten times as long; 0: never (default: %(default)g)",
    )
    parser.add_argument(
        "--return-timeout",
        type=seconds,
        metavar="SECONDS",
        help="for the launcher of another machine that is lost, from its last sign of life in --rendezvous until it is there again; then who "
        "cannot train without its task ends; a loss is not seen before 40 (default: 45; with --engine kubeflow 300)",
    )
    parser.add_argument(
        "--max-restarts",
        type=_count(1000),
        default=3,
        metavar="N",
        help="how often a task that fails is started again, alone or with all others, as its strategy needs (default: %(default)s)",
    )
    parser.add_argument(
        "--grace",
        type=seconds,
        default=20.0,
        metavar="SECONDS",
        help="after SIGTERM or Ctrl-C, for tasks to save and end before they are killed (default: %(default)g)",
    )
    parser.add_argument(
        "--trusted-network",
        action="store_true",
        help="allow addresses that other machines reach: TensorFlow's servers ask for no password and run what they are sent",
    )
    _add_audit(parser)
    add_engine(parser)
    add_script(parser)
    parser.set_defaults(execute=execute)


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audit",
        action="store_true",
        help="end with exit code 1 when workers see the same data, one trains alone, updates are lost or replicas diverge",
    )
    parser.add_argument(
        "--audit-every",
        type=_count(10**9, 1),
        metavar="N",
        help=f"steps from one that is audited to the next (default: {EVERY})",
    )
    parser.add_argument(
        "--audit-allow",
        action="append",
        choices=KINDS,
        help="what the script means to do; may be given several times",
    )


def _count(most: int, least: int = 0) -> Any:
    def count(text: str) -> int:
        with contextlib.suppress(ValueError):
            if least <= int(text) <= most:
                return int(text)
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} to {most}, received {text!r}")

    return count


def execute(arguments: argparse.Namespace) -> int:
    """Runs the cluster to its end."""
    check_engine(arguments)
    _check_audit(arguments)
    if arguments.engine in PRINTED:
        sys.stdout.write(for_engine(arguments, _counts(arguments)))
        return 0
    from estimator_bridge.launcher.launch import launch
    from estimator_bridge.launcher.outcome import Timeouts

    script_of(arguments).check()
    options = ["--path", arguments.path, *(["--py2"] if arguments.py2 else []), *(["-m"] if arguments.module else [])]
    with _cluster(arguments) as (layouts, starter):
        launched = launch(
            layouts,
            ["-m", "estimator_bridge", "run", *options, arguments.script, *arguments.args],
            arguments.log_dir,
            Timeouts(
                arguments.ready_timeout,
                arguments.finish_timeout,
                arguments.grace,
                arguments.stall_timeout,
                arguments.max_restarts,
                Timeouts.lost if arguments.return_timeout is None else arguments.return_timeout,
            ),
            sys.stdout if arguments.format == "text" else sys.stderr,
            preload="estimator_bridge.script.preloaded",
            audit=_audit(arguments),
            rendezvous=arguments.rendezvous,
            starter=starter,
        )
    if arguments.format == "json":
        sys.stdout.write(json.dumps(launched.to_json(), indent=1) + "\n")
        sys.stdout.flush()
    if launched.outcome.problem is not None:
        _logger.error("%s", launched.outcome.problem)
    return launched.outcome.code


def _check_audit(arguments: argparse.Namespace) -> None:
    from estimator_bridge.errors import BridgeError

    given = [f"--audit-{name}" for name in ("every", "allow") if getattr(arguments, f"audit_{name}")]
    if given and not arguments.audit:
        raise BridgeError(f"{' '.join(given)} without --audit.", fix="Add --audit, or nothing is audited.")


def _audit(arguments: argparse.Namespace) -> AuditRequest | None:
    """How to audit; None where that is not asked for."""
    from estimator_bridge.errors import BridgeError
    from estimator_bridge.launcher.audit.audit import AuditRequest

    if not arguments.audit:
        return None
    if (os.environ.get("TF_CONFIG") or arguments.hosts) and not arguments.rendezvous:
        raise BridgeError(
            "Workers on several machines cannot be compared with each other from one.",
            expected="--rendezvous DIR, a folder that all machines of the cluster share",
            fix="Choose a new one for each training, beside model_dir for example.",
        )
    return AuditRequest(arguments.audit_every or EVERY, arguments.audit_allow or ())


def _counts(arguments: argparse.Namespace) -> dict[str, int]:
    given = {job: getattr(arguments, job) for job in _JOBS}
    return {job: default if given[job] is None else given[job] for job, (_, default) in _JOBS.items()}


@contextlib.contextmanager
def _cluster(arguments: argparse.Namespace) -> Iterator[tuple[Iterable[Layout], Spawner | None]]:
    """Where tasks run, and what starts them where that is not this machine alone."""
    if arguments.engine != "ray":
        yield _layouts(arguments), None
        return
    from estimator_bridge.launcher.schedulers.ray import cluster

    with cluster(_counts(arguments), arguments.rendezvous, arguments.ready_timeout, arguments.trusted_network) as placed:
        yield placed


def _layouts(arguments: argparse.Namespace) -> Iterable[Layout]:
    """The one task of the environment's TF_CONFIG or of --hosts, or a cluster of our own."""
    from estimator_bridge.compat.config.cluster.tf_config import from_environment
    from estimator_bridge.launcher.launch import local_layouts
    from estimator_bridge.launcher.layout import check_trained, given_layout, hosted_layout
    from estimator_bridge.launcher.request_checks import check_evaluator, check_network, check_ports

    counts = _counts(arguments)
    _check_places(arguments, {job: number for job in _JOBS if (number := getattr(arguments, job)) is not None})
    if arguments.hosts:
        layout = hosted_layout(arguments.hosts, counts, arguments.task)
    elif os.environ.get("TF_CONFIG"):
        layout = given_layout(from_environment())
    else:
        return local_layouts(counts)
    check_trained(collections.Counter(task.job for task in layout.addresses))
    check_network(layout, arguments.trusted_network)
    check_evaluator(layout, arguments.rendezvous)
    if arguments.ready_timeout:  # else it may start no server
        check_ports(layout)
    return [layout]


def _check_places(arguments: argparse.Namespace, asked: dict[str, int]) -> None:
    """Who lays the cluster out is one: TF_CONFIG, --hosts, or we."""
    from estimator_bridge.errors import BridgeError

    if os.environ.get("TF_CONFIG") and (asked or arguments.hosts):
        raise BridgeError(
            "TF_CONFIG is set: this process is one task of a cluster, and starts no other.",
            expected="no number of tasks, no --hosts, or no TF_CONFIG",
            received=" ".join(
                [f"--{job} {number}" for job, number in asked.items()] + (["--hosts"] if arguments.hosts else [])
            ),
            fix="Unset TF_CONFIG for a cluster on this machine.",
        )
    if bool(arguments.hosts) != bool(arguments.task):
        raise BridgeError(
            "--hosts and --task belong together.", expected="both, or neither", fix="Name the task of this machine."
        )
    if arguments.rendezvous and not (arguments.hosts or os.environ.get("TF_CONFIG")):
        raise BridgeError("--rendezvous is for clusters on several machines.", expected="--hosts and --task, or TF_CONFIG")
