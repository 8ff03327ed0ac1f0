"""The parts of the command line that several commands share: the script and its arguments, paths, times."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator_bridge.script.run import Script


# Completions of arguments in shells; shtab.FILE and shtab.DIRECTORY, without importing it to answer --help.
FILE = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
DIRECTORY = {"bash": "_shtab_compgen_dirs", "zsh": "_files -/", "tcsh": "d"}


def add_script(parser: argparse.ArgumentParser) -> None:
    """Adds SCRIPT [ARGS...] and -m MODULE [ARGS...]; all arguments after the script belong to it."""
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    script = parser.add_argument("script", metavar="SCRIPT", help="a TensorFlow 1 script, unmodified")
    script.complete = FILE  # type: ignore[attr-defined]
    args = parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the script's own arguments")
    args.required = False  # else argparse names it as missing together with SCRIPT
    args.complete = FILE  # type: ignore[attr-defined]


def add_path(parser: argparse.ArgumentParser) -> None:
    """Adds --path, which selects the side that executes the script."""
    parser.add_argument(
        "--path",
        choices=("legacy", "modern"),
        default="legacy",
        help="legacy: tensorflow-estimator executes the script; modern: tf_keras and tf.distribute do (default: %(default)s)",
    )


def add_python2(parser: argparse.ArgumentParser) -> None:
    """Adds --py2, for scripts written for Python 2."""
    parser.add_argument(
        "--py2",
        action="store_true",
        help="the script and its own modules are Python 2: rewrite them for Python 3 in memory; no file changes",
    )


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Adds --verbose, which shows what TensorFlow prints of its own accord."""
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also show TensorFlow's start-up messages and deprecation warnings",
    )


def add_replicas(parser: argparse.ArgumentParser) -> None:
    """Adds --replicas N of the modern path."""
    parser.add_argument(
        "--replicas",
        type=_replicas,
        default=1,
        metavar="N",
        help="modern path: split each batch over N devices with MirroredStrategy (GPUs, else virtual CPUs); default %(default)s",
    )


def _replicas(text: str) -> int:
    with contextlib.suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number of 1 or more, received {text!r}")


def seconds(text: str) -> float:
    """Returns a time limit of the command line as a number."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number of seconds, 0 or more, received {text!r}")


def script_of(arguments: argparse.Namespace) -> Script:
    """Returns the script that the command line names."""
    from estimator_bridge.script.run import Script

    return Script(
        arguments.script,
        tuple(arguments.args),
        arguments.module,
        python2=arguments.py2,
        verbose=getattr(arguments, "verbose", False),
    )
