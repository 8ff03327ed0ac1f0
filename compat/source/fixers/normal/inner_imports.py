"""Imports of TensorFlow and NumPy inside of functions: the new script has them at its top, where all of its functions read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from estimator_bridge.compat.source.fixers.script import code, nodes

_PACKAGES = ("tensorflow", "numpy")


def with_imports_above(text: str) -> tuple[str, Sequence[int]]:
    r"""Returns a script whose functions import no TensorFlow, and the line of each of its lines in the old one.

    A name that means something else at another place stays where it is.

    Args:
        text: Script.

    Example:
        >>> with_imports_above("import os\ndef f():\n    import numpy as np\n    return np.e\n")
        ('import os\nimport numpy as np\ndef f():\n\n    return np.e\n', [1, 2, 2, 3, 4, 5])
    """
    lines = text.split("\n")
    numbers = list(range(1, len(lines) + 1))
    if not re.search(rf"^[ \t]+(import|from) ({'|'.join(_PACKAGES)})\b", text, re.MULTILINE):
        return text, numbers
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    places = wrapper.resolve(PositionProvider)
    bound = dict[str, set[str]]()
    for one in nodes(wrapper.module, cst.Import, cst.ImportFrom):
        for name, meaning in _names(one):
            bound.setdefault(name, set()).add(meaning)
    others = {one.value for one in _targets(wrapper.module)}
    here = {code(part).strip() for one in wrapper.module.body if isinstance(one, cst.SimpleStatementLine) for part in one.body}
    moved, first = dict[str, None](), None
    for statement in wrapper.module.body:
        for inner in _in_functions(statement):
            names = dict(_names(inner.body[0]))
            of_packages = all(meaning.split(".")[0] in _PACKAGES for meaning in names.values())
            if not names or not of_packages or any(len(bound[name]) > 1 or name in others for name in names):
                continue
            where = places[inner.body[0]]
            if where.start.line != where.end.line:
                continue
            line = lines[where.start.line - 1]
            lines[where.start.line - 1] = (line[: where.start.column] + line[where.end.column :].lstrip()).rstrip()
            first = first or places[statement].start.line - len(getattr(statement, "leading_lines", ()))
            moved[code(inner.body[0]).strip()] = None
    if first is None:
        return text, numbers
    above = first - 1
    moved = {one: None for one in moved if one not in here}
    return "\n".join([*lines[:above], *moved, *lines[above:]]), [*numbers[:above], *[first] * len(moved), *numbers[above:]]


def _in_functions(statement: cst.CSTNode) -> Iterator[cst.SimpleStatementLine]:
    """Yields the lines that are one import each, beside others, at the beginning of a function or below it."""
    for function in nodes(statement, cst.FunctionDef):
        body = cst.ensure_type(function, cst.FunctionDef).body.body
        for line in body if len(body) > 1 else ():
            if (
                isinstance(line, cst.SimpleStatementLine)
                and len(line.body) == 1
                and isinstance(line.body[0], cst.Import | cst.ImportFrom)
            ):
                yield line


def _names(statement: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """Yields each name that an import binds, with what it means; nothing for stars and relative imports."""
    if isinstance(statement, cst.Import):
        for one in statement.names:
            whole = one.evaluated_name
            yield one.evaluated_alias or whole.split(".")[0], whole if one.asname else whole.split(".")[0]
    elif (
        isinstance(statement, cst.ImportFrom)
        and not statement.relative
        and statement.module
        and not isinstance(statement.names, cst.ImportStar)
    ):
        for one in statement.names:
            yield one.evaluated_alias or one.evaluated_name, f"{code(statement.module)}.{one.evaluated_name}"


def _targets(module: cst.Module) -> Iterator[cst.Name]:
    """Yields the names that the script gives other values."""
    for one in nodes(module, cst.AssignTarget, cst.Param, cst.For, cst.FunctionDef, cst.ClassDef, cst.AugAssign):
        target = one.name if isinstance(one, cst.Param | cst.FunctionDef | cst.ClassDef) else one.target  # type: ignore[attr-defined]
        yield from (each for each in (target, *nodes(target, cst.Name)) if isinstance(each, cst.Name))
