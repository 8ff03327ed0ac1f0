"""Finds docstring lines that are fragments: ``python tests/style/plain_english.py FILE...`` prints each as FILE:LINE: TEXT.

A docstring's first line is a sentence or a noun phrase about its own object; an entry of ``Args:`` or ``Attributes:`` starts with
a noun. A line that starts with one of ``OPENINGS`` is neither: it only continues a sentence that the reader has to guess.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OPENINGS = frozenset(
    ["as", "how", "of", "than", "that", "until", "what", "where", "wherever", "whether", "which", "who", "whom", "whose"]
)
SECTIONS = frozenset({"Args:", "Attributes:"})
ENTRY = re.compile(r" {4}\S[^:]*: (?P<text>.*)")


class Line(NamedTuple):
    """A docstring line that the rules are about.

    Attributes:
        number: Line number in the file, from 1.
        text: Line without its indent.
        words: Part of it that the rules judge.
    """

    number: int
    text: str
    words: str

    @property
    def is_fragment(self) -> bool:
        """True if the words only continue a sentence."""
        first = re.match(r"[a-z]+\b", self.words.lower())
        return first is not None and first[0] in OPENINGS


def judged_lines(tree: ast.Module) -> Iterator[Line]:
    """Yields the first line of each docstring in a module, and each entry of its arguments and attributes."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        text = ast.get_docstring(node)
        if not text or not isinstance(node.body[0], ast.Expr):
            continue
        start = node.body[0].lineno
        first, *others = text.splitlines()
        yield Line(start, first, first)
        section = ""
        for number, line in enumerate(others, start + 1):
            if line and not line.startswith(" "):
                section = line
            entry = ENTRY.fullmatch(line) if section in SECTIONS else None
            if entry:
                yield Line(number, line.strip(), entry["text"])


def fragments(tree: ast.Module) -> list[Line]:
    """Returns the judged lines that are fragments."""
    return [line for line in judged_lines(tree) if line.is_fragment]


def main(names: list[str]) -> int:
    """Prints the fragments of files; returns 1 if there are any, else 0."""
    found = [f"{name}:{line.number}: {line.text}" for name in names for line in fragments(ast.parse(Path(name).read_text()))]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
