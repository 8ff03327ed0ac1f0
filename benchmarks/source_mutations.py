"""Damages Python scripts so that most of them still parse: statements and expressions are lost, doubled, moved, wrapped and renamed."""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Callable, Sequence

KEPT = re.compile(r'print\("kept (\d+)"\)')
"""The statement that each damaged script has at a random place, and that a conversion must not lose."""
_HOSTILE = (
    b"None",
    b"-1",
    b'""',
    b"1e999",
    b"[]",
    b"{}",
    b"lambda: 0",
    b"not tf",
    b"(yield)",
    b"*x",
    b"x := 1",
    b"tf.train",
    b"f'{x}'",
)
_WRAPPERS = (
    b"if x:",
    b"for x in range(2):",
    b"while x:",
    b"with tf.name_scope('x'):",
    b"def x():",
    b"class x:",
    b"with tf.variable_scope('x', reuse=tf.AUTO_REUSE):",
)
Span = tuple[int, int]
Change = Callable[[bytes, ast.Module, random.Random, bytes], bytes]


def mutated(data: bytes, generator: random.Random, other: bytes) -> bytes:
    """Returns a damaged script, with the statement that must not get lost if it parses.

    Args:
        data: Script.
        generator: Source of all choices.
        other: Another script, of which parts are taken.
    """
    try:
        for _ in range(generator.randint(1, 4)):
            data = generator.choice(_CHANGES)(data, ast.parse(data), generator, other)
    except (SyntaxError, ValueError, RecursionError, IndexError):
        return data  # it does not parse any more, or has no expression left
    return _with_kept(data, generator)


def _with_kept(data: bytes, generator: random.Random) -> bytes:
    try:
        start, _ = _place(data, generator.choice(_statements(ast.parse(data))))
    except (SyntaxError, ValueError, RecursionError, IndexError):
        return data
    found = _inserted(data, start, b'print("kept %d")' % generator.randrange(10**6))
    return found if _parses(found) else data  # e.g. not above a docstring's "from __future__"


def _parses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "train.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _lose(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    return _replaced(data, _place(data, generator.choice(_statements(tree))), b"pass")


def _double(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    start, end = _place(data, generator.choice(_statements(tree)))
    return _inserted(data, start, data[start:end])


def _swap(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    first, second = sorted(_place(data, one) for one in generator.choices(_statements(tree), k=2))
    if first[1] > second[0]:
        return data
    found = _replaced(data, second, data[slice(*first)])
    return _replaced(found, first, data[slice(*second)])


def _wrap(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    start, end = _place(data, generator.choice(_statements(tree)))
    indent = b" " * (start - data.rfind(b"\n", 0, start) - 1)
    body = data[start:end].replace(b"\n", b"\n    ")
    return _replaced(data, (start, end), generator.choice(_WRAPPERS) + b"\n" + indent + b"    " + body)


def _exchange(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    source = other if generator.random() < 0.3 else data
    taken = _place(source, generator.choice(_expressions(ast.parse(source))))
    return _replaced(data, _place(data, generator.choice(_expressions(tree))), source[slice(*taken)])


def _spoil(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    return _replaced(data, _place(data, generator.choice(_expressions(tree))), generator.choice(_HOSTILE))


def _rename(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    old, new = (generator.choice(names).encode() for _ in range(2))
    return re.sub(rb"\b" + old + rb"\b", new, data, count=generator.choice((0, 1)))


def _graft(data: bytes, tree: ast.Module, generator: random.Random, other: bytes) -> bytes:
    start, _ = _place(data, generator.choice(_statements(tree)))
    taken = _place(other, generator.choice([one for one in ast.parse(other).body if not isinstance(one, ast.ClassDef)]))
    return _inserted(data, start, other[slice(*taken)])


_CHANGES: tuple[Change, ...] = (_lose, _double, _swap, _wrap, _exchange, _exchange, _spoil, _rename, _graft)


def _statements(tree: ast.Module) -> Sequence[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _expressions(tree: ast.Module) -> Sequence[ast.expr]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.expr)]


def _place(data: bytes, node: ast.stmt | ast.expr) -> Span:
    lines = data.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
    first = min([node.lineno, *decorators])
    return starts[first - 1] + node.col_offset, starts[(node.end_lineno or first) - 1] + (node.end_col_offset or 0)


def _replaced(data: bytes, span: Span, new: bytes) -> bytes:
    return data[: span[0]] + new + data[span[1] :]


def _inserted(data: bytes, start: int, new: bytes) -> bytes:
    indent = data[data.rfind(b"\n", 0, start) + 1 : start]
    return _replaced(data, (start, start), new + b"\n" + (indent if not indent.strip() else b""))
