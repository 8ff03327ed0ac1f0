"""``estimator-bridge explain``: prints what a message means and what to do, from the file that the messages' source makes."""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge.cli.script_arguments import add_format
from estimator_bridge.errors import BridgeError

Message = Mapping[str, Sequence[str]]
"""What happened, what was expected, and what to do; each has the texts of which one is printed, with … for what differs."""

_EPILOG = """examples:
  estimator-bridge explain
  estimator-bridge explain script-run-check-file
  estimator-bridge explain There is no such script
  estimator-bridge explain --replicas is for one process
  estimator-bridge explain --format json script-run-check-file

A message names its anchor in the last line. … stands for what differs from case to case. TensorFlow is not needed.

exit code: 0 printed, 2 no message has this anchor or these words.
"""
_SOURCE = Path(__file__).with_name("messages.json")
_LEAST_FIXED = 12
"""Characters of a message that must stand in a text for it to be that message."""


def add_parser(verbs: Any) -> None:
    """Adds the parser of ``explain``."""
    parser = verbs.add_parser(
        "explain",
        help="print what a message means and what to do",
        description="Prints the messages of an anchor, or those that contain some words, with what to do; without either, all anchors.",
        epilog=_EPILOG,
    )
    parser.add_argument("words", metavar="ANCHOR", nargs="*", help="anchor from a message's last line, or words of a message")
    parser.has_options_as_words = True
    add_format(parser, "print text or one JSON object of anchors and messages (default: %(default)s)")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Prints the messages that are asked for."""
    sections: dict[str, list[Message]] = json.loads(_SOURCE.read_text(encoding="utf-8"))
    asked = " ".join(" ".join(arguments.words).split())
    found = _find(sections, asked) if asked else sections
    if arguments.format == "json":
        sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n".join(itertools.starmap(_section, found.items())) if asked else _contents(found))
    return 0


def _find(sections: Mapping[str, list[Message]], asked: str) -> dict[str, list[Message]]:
    """Returns the messages of an anchor, else those that contain a text, else those that a text can be.

    Raises:
        BridgeError: There are none.
    """
    if asked in sections:
        return {asked: sections[asked]}
    all_messages = [(anchor, message) for anchor, messages in sections.items() for message in messages]
    found = [row for row in all_messages if any(asked.casefold() in text.casefold() for text in _texts(row[1]))]
    if not found:
        fixed = [max((_fixed(text, asked) for text in message["what"]), default=0) for _, message in all_messages]
        most = max(_LEAST_FIXED, *fixed)
        found = [row for row, number in zip(all_messages, fixed, strict=True) if number == most]
    if not found:
        near = [anchor for anchor in sections if asked in anchor] or difflib.get_close_matches(asked, sections)
        raise BridgeError(
            "No message has this anchor or these words.",
            expected="an anchor from the last line of a message, or words of a message",
            received=asked,
            fix=f"Try {' or '.join(near[:3])}." if near else "Run estimator-bridge explain, which lists all anchors.",
        )
    return {anchor: [message for other, message in found if other == anchor] for anchor, _ in found}


def _texts(message: Message) -> Iterator[str]:
    for texts in message.values():
        yield from texts


def _fixed(text: str, printed: str) -> int:
    """Returns the number of a message's characters that a printed text contains in their order; 0 if some are missing."""
    pieces, end = text.casefold().split("…"), 0
    for piece in pieces:
        start = printed.casefold().find(piece, end)
        if start < 0:
            return 0
        end = start + len(piece)
    return sum(map(len, pieces))


def _section(anchor: str, messages: Sequence[Message]) -> str:
    return "\n\n".join([anchor, *map(_paragraph, messages)]) + "\n"


def _paragraph(message: Message) -> str:
    rows = (("", "what"), ("  expected: ", "expected"), ("  to do:    ", "fix"))
    return "\n".join(label + "\n  or:       ".join(message[name]) for label, name in rows if message[name])


def _contents(sections: Mapping[str, Sequence[Message]]) -> str:
    """Returns a line for each anchor: its first message, and the number of the others."""
    width = max(map(len, sections))
    lines = [
        f"{anchor:<{width}}  {' or '.join(first['what'])}" + (f" (and {len(others)} more)" if others else "")
        for anchor, (first, *others) in sections.items()
    ]
    return "\n".join(lines) + "\n"
