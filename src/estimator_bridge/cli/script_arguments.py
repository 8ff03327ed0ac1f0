"""The part of the command line that names a script and its arguments, shared by the verbs that run one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator_bridge.legacy.script import Script


def add_script(parser: argparse.ArgumentParser) -> None:
    """SCRIPT [ARGS...] or -m MODULE [ARGS...]; everything from the script on belongs to it."""
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT", help="a TensorFlow 1 script, unmodified")
    parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the script's own arguments")


def add_replicas(parser: argparse.ArgumentParser) -> None:
    """--replicas N of the modern path."""
    parser.add_argument(
        "--replicas",
        type=int,
        default=1,
        metavar="N",
        help="modern path: split each batch over N devices with MirroredStrategy (GPUs, else virtual CPUs); default %(default)s",
    )


def script_of(arguments: argparse.Namespace) -> Script:
    """The script that the command line names."""
    from estimator_bridge.legacy.script import Script

    return Script(arguments.script, tuple(arguments.args), arguments.module)
