"""Rewrites Python 2 source as Python 3, with the same meaning and line numbers; the file is never touched.

fissix, the maintained fork of lib2to3, rewrites syntax, names and lists. Division becomes a call that floors
whole numbers as Python 2 did, unless the file asks for true division itself. Not rewritten: text that is bytes, comparisons of numbers with None or text,
the order of dictionaries, and ``0777L``, which fissix cannot read.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Any, NamedTuple

# types.StringType and similar names are patched as names that Python removed; the others need no change today.
_LEFT_OUT = frozenset({"buffer", "future", "idioms", "set_literal", "sorted", "types", "ws_comma"})
_FUTURE_DIVISION = re.compile(r"^from\s+__future__\s+import\s.*?\bdivision\b", re.MULTILINE)


class Idiom(NamedTuple):
    """One rewritten place.

    Attributes:
        line: Line of the original file, from 1.
        name: Name of the rewriting in lib2to3: "print", "except", "has_key".
    """

    line: int
    name: str


class Mended(NamedTuple):
    """A Python 2 source in Python 3.

    Attributes:
        text: Source in Python 3; lines may have moved.
        lines: Original line of each line of ``text``.
        idioms: Rewritten places by line.
        true_division: True if the file asks for Python 3's division.
    """

    text: str
    lines: tuple[int, ...]
    idioms: tuple[Idiom, ...]
    true_division: bool

    def tree(self) -> ast.Module:
        """Returns the syntax tree, with line numbers of the original.

        Raises:
            SyntaxError: The rewritten text is not Python 3.
        """
        tree = ast.parse(self.text)
        for node in ast.walk(tree):
            if isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias, ast.pattern)):
                node.lineno = self.lines[node.lineno - 1]
                node.end_lineno = max(node.lineno, self.lines[(node.end_lineno or 1) - 1])
        return tree


def mend(source: bytes, package_file: str = "") -> Mended:
    r"""Rewrites source in Python 3.

    Args:
        source: Content of a file, in the encoding that it names or in Python 2's default.
        package_file: Path of the file if it is in a package: its imports of modules beside it become relative, as in Python 2.

    Returns:
        The same program, which Python 3 parses.

    Raises:
        SyntaxError: The source is not Python 2 either.

    Example:
        >>> mended = mend(b"print 'a'")
        >>> mended.text, mended.idioms
        ("print('a')\n", (Idiom(line=1, name='print'),))
    """
    text = _with_spaces(decoded(source))
    failure: Exception | None = None
    for print_function in (False, True):  # a file for both Pythons may call print() with keywords without importing it
        tool, idioms = _tool(print_function, bool(package_file))
        idioms.clear()
        try:
            tree = tool.refactor_string(text, package_file)
            mended = Mended(str(tree), _lines(tree), tuple(sorted(set(idioms))), bool(_FUTURE_DIVISION.search(text)))
            ast.parse(mended.text)
        except RecursionError:
            raise SyntaxError("nested too deeply") from None
        except Exception as error:  # noqa: BLE001 -- fissix raises errors of several kinds for text that does not parse
            failure = failure or error
        else:
            return mended
    raise SyntaxError(f"neither Python 3 nor Python 2: {failure}")


def decoded(source: bytes) -> str:
    """Decodes source, and ends its lines with newlines.

    Args:
        source: Content of a file, in the encoding that it names; otherwise each byte becomes a character.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        text = source.decode("latin-1")  # as Python 2 took bytes in strings: as they came
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\f", "")
    return text if text.endswith("\n") else f"{text}\n"


def _with_spaces(text: str) -> str:
    """Expands leading tabs as Python 2 counted them, to the next multiple of eight; lines inside strings stay."""
    if "\t" not in text:
        return text
    inside = set(_rows_inside_strings(text))
    lines = text.split("\n")
    for row, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if "\t" in indent and row not in inside:
            lines[row - 1] = indent.expandtabs(8) + line[len(indent) :]
    return "\n".join(lines)


def _rows_inside_strings(text: str) -> Iterator[int]:
    from fissix.pgen2 import token
    from fissix.pgen2 import tokenize as tokenizer

    with contextlib.suppress(tokenizer.TokenError, IndentationError):
        for kind, _, (first, _), (last, _), _ in tokenizer.generate_tokens(io.StringIO(text).readline):
            if kind == token.STRING:
                yield from range(first + 1, last + 1)


def _lines(tree: Any) -> tuple[int, ...]:
    """Returns the original line of each line of the rewritten text; leaves of the tree know their line."""
    known: dict[int, int] = {1: 1}
    line = 1
    for leaf in tree.leaves():
        line += leaf.prefix.count("\n")
        if leaf.lineno and leaf.value.strip():
            known.setdefault(line, leaf.lineno)
        line += leaf.value.count("\n")
    firsts = sorted(known)
    nearest = [firsts[bisect.bisect_right(firsts, row) - 1] for row in range(1, line + 1)]
    return tuple(known[first] + row - first for row, first in enumerate(nearest, 1))


@functools.cache
def _tool(print_function: bool, in_package: bool) -> tuple[Any, list[Idiom]]:
    """Returns a rewriting tool, and the list to which it adds each rewritten place."""
    from fissix.refactor import RefactoringTool, get_fixers_from_package

    left_out = _LEFT_OUT if in_package else _LEFT_OUT | {"import"}
    names = [name for name in get_fixers_from_package("fissix.fixes") if name.partition("fix_")[2] not in left_out]
    idioms: list[Idiom] = []

    class Tool(RefactoringTool):  # type: ignore[misc, unused-ignore]
        def get_fixers(self) -> Any:
            several = super().get_fixers()
            for fixer in (one for some in several for one in some):
                fixer.transform = _recorded(fixer.transform, type(fixer).__name__.removeprefix("Fix").lower(), idioms)
            return several

        def log_error(self, msg: str, *args: Any, **options: Any) -> None:
            raise SyntaxError(msg % args)

    return Tool(names, {"print_function": print_function}), idioms


def _recorded(transform: Any, name: str, idioms: list[Idiom]) -> Any:
    def recorded(node: Any, results: Any) -> Any:
        line, before = node.get_lineno() or 1, str(node)
        new = transform(node, results)
        if (new is not None and str(new) != before) or str(node) != before:
            idioms.append(Idiom(line, name))
        return new

    return recorded
