"""``estimator-bridge contrib``: fetches, shows and removes the real ``tf.contrib``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from estimator_bridge.cli.script_arguments import DIRECTORY, add_format
from estimator_bridge.errors import BridgeError

_FETCH = """examples:
  estimator-bridge contrib fetch
  estimator-bridge contrib fetch --from wheels/     # without a network: the folder with the downloaded wheels

Downloads the official wheels of TensorFlow 1.15.5 and 1.14.0 and of tensorflow-estimator 1.15.1 with pip (222 MB, sha256 pinned), and
keeps only the Python files of tf.contrib, 9 MB, licence Apache-2.0. No compiled library of them is kept or loaded. An interrupted fetch goes on where it was.
The files are kept in ~/.cache/estimator-bridge/contrib, or in the folder that the variable ESTIMATOR_BRIDGE_CONTRIB names.

exit code: 0 the files are there, 2 a wheel is missing or is not the official one.
"""


def add_parser(verbs: Any) -> None:
    """Adds the command and its actions."""
    parser = verbs.add_parser(
        "contrib",
        help="fetch the real tf.contrib of TensorFlow 1.15, for scripts that use more of it than is included",
        description="Fetches, shows and removes the Python files of TensorFlow 1.15's tf.contrib.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    fetch = actions.add_parser(
        "fetch", help="fetch the files", description="Fetches the Python files of tf.contrib.", epilog=_FETCH
    )
    source = fetch.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="WHEEL_OR_FOLDER",
        help="take the wheels from here instead of pip's package index",
    )
    source.complete = DIRECTORY
    fetch.set_defaults(execute=_fetch)
    status = actions.add_parser(
        "status", help="show whether and where the files are", description="Shows what has been fetched."
    )
    add_format(status, "print text or one JSON object (default: %(default)s)")
    status.set_defaults(execute=_status)
    remove = actions.add_parser(
        "remove", help="remove the files", description="Removes what was fetched, and what was compiled from it."
    )
    remove.set_defaults(execute=_remove)


def _fetch(arguments: argparse.Namespace) -> int:
    from estimator_bridge.legacy.upstream_contrib import cache
    from estimator_bridge.legacy.upstream_contrib.fetch import fetch

    if arguments.source is not None and not arguments.source.exists():
        raise BridgeError(
            "There is nothing to fetch from.", expected="a folder with the wheels, or one of them", received=arguments.source
        )
    fetch(arguments.source)
    return _show(cache.folder(), "text")


def _status(arguments: argparse.Namespace) -> int:
    from estimator_bridge.legacy.upstream_contrib import cache

    return _show(cache.folder(), arguments.format)


def _show(folder: Path, form: str) -> int:
    from estimator_bridge.legacy.upstream_contrib import cache

    files = len(cache.manifest(folder)) if cache.is_fetched() else 0
    if form == "json":
        sys.stdout.write(json.dumps({"folder": str(folder), "fetched": bool(files), "files": files}) + "\n")
    elif files:
        sys.stdout.write(
            f"tf.contrib: {files} files of TensorFlow 1.15.5, 1.14.0 and tensorflow-estimator 1.15.1 in {folder}\n"
        )
    else:
        sys.stdout.write(
            "tf.contrib: not fetched; scripts get the included part. estimator-bridge contrib fetch fetches the whole.\n"
        )
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from estimator_bridge.legacy.upstream_contrib import cache

    cache.remove()
    return _show(cache.folder(), "text")
