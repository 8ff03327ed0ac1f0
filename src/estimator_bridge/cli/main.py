"""The ``estimator-bridge`` command: runs one of the commands, and turns a user's mistake into one message and exit code 2."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from estimator_bridge import __version__
from estimator_bridge.cli import check, cluster, compare, contrib, inspect, plan, run
from estimator_bridge.cli.closed_streams import dropping_streams, open_closed_streams
from estimator_bridge.cli.completion.scripts import completion
from estimator_bridge.cli.convert import command as convert
from estimator_bridge.cli.explain import command as explain
from estimator_bridge.cli.fleet import command as fleet
from estimator_bridge.cli.launch import command as launch
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.log_output import log_to_stderr

COMMANDS = (run, compare, launch, cluster, plan, check, convert, inspect, contrib, fleet, explain)

_EPILOG = """examples:
  estimator-bridge run train.py --model_dir=/tmp/model
  estimator-bridge run --path modern train.py --model_dir=/tmp/model
  estimator-bridge compare train.py
  estimator-bridge launch --worker 2 --ps 1 train.py
  estimator-bridge check train.py

The options of estimator-bridge come before the script's name, the script's own options after it.
Tab completion: estimator-bridge --print-completion bash > ~/.local/share/bash-completion/completions/estimator-bridge
For fish:       estimator-bridge --print-completion fish > ~/.config/fish/completions/estimator-bridge.fish
"""


class _Verb(argparse.ArgumentParser):
    """A command's parser, with the settings of all commands.

    It suggests its nearest option or command for an unknown one; argparse leaves options to the parent, which lacks them.

    Attributes:
        tell_error: Function of (arguments, message) that is called before a mistake ends the command; None for none.
        has_options_as_words: True if an unknown option is a word among others, e.g. of a message.
    """

    tell_error: Callable[[list[str], str], None] | None = None
    has_options_as_words = False
    _words: Sequence[str] = ()

    def __init__(self, **settings: Any) -> None:
        shared: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(**(shared | settings))

    def error(self, message: str) -> NoReturn:
        """Ends with a message, which suggests the nearest of the words that would have been accepted."""
        refused = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        near = difflib.get_close_matches(refused[1], re.findall(r"[\w-]+", refused[2]), n=1) if refused else []
        message += "".join(f"; did you mean {word}?" for word in near)
        if self.tell_error:
            self.tell_error(list(self._words), message)
        super().error(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parses as argparse does, but refuses unknown arguments, or takes them as words."""
        if self.has_options_as_words:
            # To argparse a word that begins with a space is no option.
            args = [f" {word}" if self._is_unknown_option(word) else word for word in args]
        self._words = args or ()
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = difflib.get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, n=1)
            self.error(f"unrecognized arguments: {' '.join(unknown)}" + "".join(f"; did you mean {option}?" for option in near))
        return known, unknown

    def _is_unknown_option(self, word: str) -> bool:
        """Returns True for an option that this command does not have; ``--`` is none, but ends the options."""
        return word.startswith("-") and word != "--" and word.partition("=")[0] not in self._option_string_actions


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command line without importing anything heavy."""
    parser = _Verb(
        prog="estimator-bridge",
        description="Keep TensorFlow 1 Estimator pipelines running, move them to Keras, and prove the accuracy is the same.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    shells = ("bash", "zsh", "tcsh", "fish")
    parser.add_argument("--print-completion", metavar="SHELL", choices=shells, help="print a completion script: %(choices)s")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: Arguments without the program's name; those of ``sys.argv`` by default.

    Returns:
        The exit code: 0 success, 1 the comparison or the script failed, 2 a mistake in the request, 130 interrupted.
    """
    open_closed_streams()
    with dropping_streams(), log_to_stderr():
        return _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = parser.parse_args(["--version"] if words == ["version"] else words)
    if arguments.print_completion:
        sys.stdout.write(completion(parser, arguments.print_completion) + "\n")
        return 0
    if not hasattr(arguments, "execute"):
        parser.print_help(sys.stderr)
        return 2
    try:
        code: int = arguments.execute(arguments)
        return code
    except BridgeError as error:  # printed, not logged: a script may have switched logging off
        sys.stderr.write(f"estimator-bridge: {error.with_help}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("estimator-bridge: interrupted\n")
        return 130  # what a shell reports for a program that ended by Ctrl-C
