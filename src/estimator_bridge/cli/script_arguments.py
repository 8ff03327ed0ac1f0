"""The parts of the command line that several commands share: the script and its arguments, paths, times."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estimator_bridge.script.run import Script


# Completions of arguments in shells; shtab.FILE and shtab.DIRECTORY, without importing it to answer --help.
FILE = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
DIRECTORY = {"bash": "_shtab_compgen_dirs", "zsh": "_files -/", "tcsh": "d"}


def add_script(parser: argparse.ArgumentParser) -> None:
    """Adds SCRIPT [ARGS...] and -m MODULE [ARGS...]; all arguments after the script belong to it."""
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    script = parser.add_argument(
        "script", metavar="SCRIPT", help="a TensorFlow 1 script or Jupyter notebook (.ipynb), unmodified"
    )
    script.complete = FILE  # type: ignore[attr-defined]
    args = parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the script's own arguments")
    args.required = False  # else argparse names it as missing together with SCRIPT
    args.complete = FILE  # type: ignore[attr-defined]


def add_format(parser: argparse._ActionsContainer, explanation: str, *others: str) -> None:
    """Adds --format, which selects output for readers or for programs.

    Args:
        parser: Parser of the command.
        explanation: Help of the option.
        others: Formats beside text and json.
    """
    parser.add_argument("--format", choices=("text", "json", *others), default="text", help=explanation)


def number(kind: Callable[[str], float], expected: str, least: float = 0, most: float = float("inf")) -> Callable[[str], Any]:
    """Returns the type of an argument that is a number.

    Args:
        kind: Class of the number, int or float.
        expected: Accepted numbers, for the message about any other argument.
        least: Smallest accepted number.
        most: Largest accepted number.
    """

    def parse(text: str) -> Any:
        with contextlib.suppress(ValueError):
            if least <= kind(text) <= most:
                return kind(text)
        raise argparse.ArgumentTypeError(f"expected {expected}, received {text!r}")

    return parse


seconds = number(float, "a number of seconds, 0 or more", most=sys.float_info.max)
"""The type of a time limit."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "--path": {
        "choices": ("legacy", "modern"),
        "default": "legacy",
        "help": "legacy: tensorflow-estimator executes the script; modern: tf_keras and tf.distribute do (default: %(default)s)",
    },
    "--replicas": {
        "type": number(int, "a whole number of 1 or more", 1),
        "default": 1,
        "metavar": "N",
        "help": "modern path: split each batch over N devices with MirroredStrategy (GPUs, else virtual CPUs); default %(default)s",
    },
    "--py2": {
        "action": "store_true",
        "help": "the script and its own modules are Python 2: rewrite them for Python 3 in memory; no file changes",
    },
    "--fetch-contrib": {
        "action": "store_true",
        "help": "fetch the real tf.contrib first, if it is not there yet (222 MB, once)",
    },
    "--tf-version": {
        "default": "",
        "metavar": "X.Y.Z",
        "help": "value of tf.__version__ for the script (default: 1.15.5 for scripts that refuse TensorFlow 2 or do something else "
        "on it, else the installed version)",
    },
    "--verbose": {
        "action": "store_true",
        "help": "also show TensorFlow's start-up messages and deprecation warnings",
    },
}


def add_options(parser: argparse.ArgumentParser, *flags: str) -> None:
    """Adds options that several commands have.

    Args:
        parser: Parser of the command.
        flags: Names of the options, e.g. ``--path``.
    """
    for flag in flags:
        parser.add_argument(flag, **_OPTIONS[flag])


def script_of(arguments: argparse.Namespace) -> Script:
    """Returns the script that the command line names; fetches tf.contrib first if that is asked for."""
    from estimator_bridge.script.run import Script

    if arguments.fetch_contrib:
        from estimator_bridge.legacy.upstream_contrib.fetch import fetch

        fetch()
    return Script(
        arguments.script,
        tuple(arguments.args),
        arguments.module,
        python2=arguments.py2,
        v2_behavior=getattr(arguments, "v2_behavior", False),
        verbose=getattr(arguments, "verbose", False),
        tf_version=arguments.tf_version,
    )
