"""``estimator-bridge cluster``: what a running cluster says of itself."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.script_arguments import FILE, seconds

if TYPE_CHECKING:
    from estimator_bridge.cluster.server_status import Answer

_EPILOG = """examples:
  estimator-bridge cluster status
  estimator-bridge cluster status tf_config.json
  estimator-bridge cluster status '{"cluster": {"chief": ["host1:2222"], "ps": ["host2:2222"]}}' --format json

exit code: 0 every server is ready, 1 one is missing or another task answers, 2 no TF_CONFIG, or a wrong one.
"""


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser("cluster", help="ask the servers of a running cluster how they are", allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    status = actions.add_parser(
        "status",
        help="who is there: devices, incarnation, round-trip time",
        description="Asks the TensorFlow server of every task in a TF_CONFIG how it is, all at the same time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    given = status.add_argument(
        "tf_config", metavar="TF_CONFIG", nargs="?", help="a file, or the JSON itself; the environment's by default"
    )
    given.complete = FILE
    status.add_argument(
        "--timeout", type=seconds, default=5.0, metavar="SECONDS", help="for each answer (default: %(default)g)"
    )
    status.add_argument("--format", choices=("text", "json"), default="text", help="a table, or one JSON object")
    status.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Asks and shows."""
    from estimator_bridge.cluster.server_status import Health, ask
    from estimator_bridge.launcher.layout import servers_of

    answers = ask(servers_of(_document(arguments.tf_config)), arguments.timeout)
    if arguments.format == "json":
        sys.stdout.write(json.dumps({"tasks": [_as_json(answer) for answer in answers]}, indent=1) + "\n")
    else:
        from rich.console import Console

        from estimator_bridge.launcher.display import answer_table

        Console(emoji=False).print(answer_table(answers))
    return 0 if all(answer.health is Health.READY for answer in answers) else 1


def _document(given: str | None) -> Any:
    from estimator_bridge.compat.config.cluster.tf_config import EXPECTED, from_environment
    from estimator_bridge.errors import BridgeError
    from estimator_bridge.runtime.json_positions import read_object

    if given is None:
        return from_environment()
    if given.lstrip().startswith("{"):
        return read_object(given, "TF_CONFIG", EXPECTED)
    try:
        return read_object(Path(given).read_text(encoding="utf-8"), given, EXPECTED)
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError("The TF_CONFIG cannot be read.", expected=EXPECTED, received=f"{given}: {error}") from None


def _as_json(answer: Answer) -> dict[str, Any]:
    return dataclasses.asdict(answer) | {"task": str(answer.task), "health": answer.health.value}
