"""Completion scripts for shells: shtab's, and one for fish, which shtab does not know."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Returns the completion script of a shell.

    Args:
        parser: Parser of the whole command line.
        shell: ``bash``, ``zsh``, ``tcsh`` or ``fish``.

    Example:
        >>> print(completion(argparse.ArgumentParser("tool"), "fish"))
        complete -c tool -n __fish_use_subcommand -s h -l help -d 'show this help message and exit'
    """
    if shell == "fish":
        return "\n".join(shlex.join(["complete", "-c", parser.prog, *line]) for line in _fish(parser, []))
    import shtab

    script: str = shtab.complete(parser, shell=shell)
    return script


def _fish(parser: argparse.ArgumentParser, commands: Sequence[str]) -> Iterator[list[str]]:
    """Yields the arguments of ``complete`` for each option and each command that may follow some commands."""
    seen = [f"__fish_seen_subcommand_from {command}" for command in commands] or ["__fish_use_subcommand"]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            none_yet = [f"not __fish_seen_subcommand_from {' '.join(action.choices)}"] if commands else []
            helps = {one.dest: one.help for one in action._choices_actions}
            for name, command in action.choices.items():
                yield ["-n", "; and ".join([*seen, *none_yet]), "-f", "-a", name, "-d", helps.get(name) or ""]
                yield from _fish(command, [*commands, name])
        elif action.option_strings and action.help is not argparse.SUPPRESS:
            names = [
                word
                for option in action.option_strings
                for word in (("-l", option[2:]) if option[:2] == "--" else ("-s", option[1:]))
            ]
            choices = (
                ["-x", "-a", " ".join(map(str, action.choices))] if action.choices else ["-r"] if action.nargs != 0 else []
            )
            text = parser._get_formatter()._expand_help(action) if action.help else ""
            yield ["-n", "; and ".join(seen), *names, *choices, "-d", text.partition(";")[0]]
