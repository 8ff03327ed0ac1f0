"""``estimator-bridge convert``: the pieces of a pipeline on their own, one kind a file."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from typing import Any

KINDS = ("config", "checkpoint", "source")
"""Each is a module ``<kind>`` beside this one, with an ``add_parser`` of its own."""


def add_parser(verbs: Any) -> None:
    """Adds the verb and its kinds."""
    parser = verbs.add_parser(
        "convert",
        help="convert a config or a checkpoint, both directions",
        description="Converts one piece of a pipeline from the legacy to the modern side, or back.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    for kind in KINDS:
        module = f"estimator_bridge.cli.convert.{kind}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).add_parser(kinds)
