"""``estimator-bridge cluster``: the state of a running cluster."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import FILE, add_format, seconds
from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import read_object

_EPILOG = """examples:
  estimator-bridge cluster status
  estimator-bridge cluster status tf_config.json
  estimator-bridge cluster status '{"cluster": {"chief": ["host1:2222"], "ps": ["host2:2222"]}}' --format json

exit code: 0 every server is ready, 1 a server is missing or a different task answers, 2 TF_CONFIG is missing or wrong.
"""


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser("cluster", help="ask the servers of a running cluster for their state")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    status = actions.add_parser(
        "status",
        help="show each server's devices, round-trip time and incarnation, a number that changes when the server restarts",
        description="Asks the TensorFlow server of every task in a TF_CONFIG for its state, all at the same time.",
        epilog=_EPILOG,
    )
    given = status.add_argument(
        "tf_config",
        metavar="TF_CONFIG",
        nargs="?",
        help="a file with a TF_CONFIG, or the JSON itself (default: the environment variable TF_CONFIG)",
    )
    given.complete = FILE
    status.add_argument(
        "--timeout", type=seconds, default=5.0, metavar="SECONDS", help="seconds to wait for each answer (default: %(default)g)"
    )
    add_format(status, "print a table or one JSON object (default: %(default)s)")
    status.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Asks the servers, and prints their answers."""
    from estimator_bridge.cluster.server_status import Health, ask

    answers = ask(_read(arguments.tf_config).servers(), arguments.timeout)
    if arguments.format == "json":
        tasks = [dataclasses.asdict(answer) | {"task": str(answer.task), "health": answer.health.value} for answer in answers]
        sys.stdout.write(json.dumps({"tasks": tasks}, indent=1) + "\n")
    else:
        from estimator_bridge.launcher.display import answer_table

        make_console().print(answer_table(answers))
    return 0 if all(answer.health is Health.READY for answer in answers) else 1


def _read(given: str | None) -> TaskContext:
    from estimator_bridge.compat.config.cluster.tf_config import EXPECTED, from_environment

    if given is None:
        return TaskContext(from_environment())
    try:
        is_json = given.lstrip().startswith("{")
        text, source = (given, "TF_CONFIG") if is_json else (Path(given).read_text(encoding="utf-8"), given)
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(
            "The TF_CONFIG cannot be read.", expected=EXPECTED, received=f"{given}: {error}", fix="Check the path of the file."
        ) from None
    return TaskContext(read_object(text, source, EXPECTED))
