"""``estimator-bridge convert``: the pieces of a pipeline on their own."""

from typing import Any

from estimator_bridge.cli.convert import checkpoint, config, source


def add_parser(verbs: Any) -> None:
    """Adds the command and the kinds of pieces that it converts."""
    parser = verbs.add_parser(
        "convert",
        help="convert a config or a checkpoint, in either direction, or a script to Keras",
        description="Converts a part of a pipeline from the legacy to the modern path, or back.",
    )
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    for kind in (config, checkpoint, source):
        kind.add_parser(kinds)
