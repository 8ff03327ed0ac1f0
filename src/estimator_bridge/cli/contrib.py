"""``estimator-bridge contrib``: fetches, shows and removes the real ``tf.contrib``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from estimator_bridge.cli.script_arguments import DIRECTORY, add_format
from estimator_bridge.errors import BridgeError

_EPILOG = """examples:
  estimator-bridge contrib fetch
  estimator-bridge contrib fetch --from wheels/
  estimator-bridge contrib status --format json
  estimator-bridge contrib remove

fetch downloads the official wheels of TensorFlow 1.15.5 and 1.14.0 and of tensorflow-estimator 1.15.1 with pip (222 MB, sha256 pinned)
and keeps their Python files and tables of tf.contrib alone: 9 MB, licence Apache-2.0. No compiled library of them is kept or loaded.
An interrupted fetch goes on where it was. Without a network, --from takes the wheels from a folder.
The files are kept in ~/.cache/estimator-bridge/contrib, or in the folder that the variable ESTIMATOR_BRIDGE_CONTRIB names.

exit code: 0 done, 2 a wheel is missing or is not the official one.
"""


def add_parser(verbs: Any) -> None:
    """Adds the command."""
    parser = verbs.add_parser(
        "contrib",
        help="fetch the real tf.contrib of TensorFlow 1.15, for scripts that use more of it than is included",
        description="Fetches, shows or removes the Python files of TensorFlow 1.15's tf.contrib, which run, compare, launch and check use.",
        epilog=_EPILOG,
    )
    parser.add_argument("action", metavar="ACTION", choices=("fetch", "status", "remove"), help="%(choices)s")
    source = parser.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="fetch: folder with the wheels, or one of them; default: pip"
    )
    source.complete = DIRECTORY
    add_format(parser, "print text or one JSON object (default: %(default)s)")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Fetches or removes the files if that is asked for, and prints what is there."""
    from estimator_bridge.legacy.upstream_contrib import cache
    from estimator_bridge.legacy.upstream_contrib.fetch import fetch

    source: Path | None = arguments.source
    if source is not None and (arguments.action != "fetch" or not source.exists()):
        raise BridgeError(
            "--from names nothing to fetch from.",
            expected="contrib fetch --from FOLDER, where FOLDER holds the wheels",
            received=f"contrib {arguments.action} --from {source}",
        )
    if arguments.action == "fetch":
        fetch(source)
    elif arguments.action == "remove":
        cache.remove()
    files = len(cache.manifest(cache.folder())) if cache.is_fetched() else 0
    if arguments.format == "json":
        sys.stdout.write(json.dumps({"folder": str(cache.folder()), "fetched": bool(files), "files": files}) + "\n")
    elif files:
        sys.stdout.write(f"tf.contrib: {files} files of TensorFlow 1.15.5 and 1.14.0 in {cache.folder()}\n")
    else:
        sys.stdout.write(
            "tf.contrib: not fetched; scripts get the included part. estimator-bridge contrib fetch fetches the whole.\n"
        )
    return 0
