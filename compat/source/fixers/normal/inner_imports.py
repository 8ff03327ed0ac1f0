"""Imports of TensorFlow and NumPy inside of functions: the new script has them at its top, where all of its functions read them."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, PositionProvider, ScopeProvider

from estimator_bridge.compat.source.fixers.script import code, nodes

_PACKAGES = ("tensorflow", "numpy")
_WHOLE = re.compile(rf"import ({'|'.join(_PACKAGES)}|tensorflow\.compat\.v1)( as \w+)?")
_IMPORTS = cst.Import | cst.ImportFrom


def with_imports_above(text: str) -> tuple[str, Sequence[int]]:
    r"""Returns a script with the imports of TensorFlow and NumPy above its functions, and the line of each of its lines in the old one.

    An import stays in its function if its name means something else at another place, or one of Python's own functions.

    Args:
        text: Script.

    Example:
        >>> with_imports_above("import os\ndef f():\n    import numpy as np\n    return np.e\n")
        ('import os\nimport numpy as np\ndef f():\n\n    return np.e\n', [1, 3, 2, 3, 4, 5])
    """
    lines = text.split("\n")
    numbers = list(range(1, len(lines) + 1))
    if not re.search(rf"^[ \t]+(import|from) ({'|'.join(_PACKAGES)})\b", text, re.MULTILINE):
        return text, numbers
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    places, scopes = wrapper.resolve(PositionProvider), {*wrapper.resolve(ScopeProvider).values()}
    if next(nodes(wrapper.module, cst.ImportStar, cst.Del), None) is not None:
        return text, numbers
    bound = dict[str, set[str]]()  # what each name means somewhere; "" for values of the script
    for one in (each for scope in scopes if scope is not None for each in scope.assignments):
        meanings = dict(_names(one.node)) if isinstance(one, ImportAssignment) else {}
        bound.setdefault(one.name, set()).add(meanings.get(one.name, ""))
    here = set[str]()  # what the script imports above the first of those functions
    moved, first = dict[str, int](), None
    for statement in wrapper.module.body:
        if first is None and isinstance(statement, cst.SimpleStatementLine):
            here |= {code(part).strip() for part in statement.body}
        for line in _in_functions(statement):
            names, where = dict(_names(line.body[0])), places[line.body[0]]
            of_packages = all(meaning.split(".")[0] in _PACKAGES for meaning in names.values())
            is_same = all(bound[name] == {meaning} and not hasattr(builtins, name) for name, meaning in names.items())
            if not names or not of_packages or not is_same or where.start.line != where.end.line:
                continue
            text_of_line = lines[where.start.line - 1]
            lines[where.start.line - 1] = (
                text_of_line[: where.start.column] + text_of_line[where.end.column :].lstrip()
            ).rstrip()
            decorators = getattr(statement, "decorators", ())
            begin = places[decorators[0] if decorators else statement].start.line
            first = first or begin - len(getattr(statement, "leading_lines", ()))
            moved.setdefault(code(line.body[0]).strip(), where.start.line)
    if first is None:
        return text, numbers
    above = first - 1
    moved = {one: line for one, line in moved.items() if one not in here}
    return "\n".join([*lines[:above], *moved, *lines[above:]]), [*numbers[:above], *moved.values(), *numbers[above:]]


def _in_functions(statement: cst.CSTNode) -> Iterator[cst.SimpleStatementLine]:
    """Yields the lines of functions that are one import each, beside others.

    Where it is not sure that the function is called, only those of a whole package, which exists wherever the script runs.
    """
    for function in nodes(statement, cst.FunctionDef):
        body = cst.ensure_type(function, cst.FunctionDef).body.body
        is_called = "EstimatorSpec" in code(function)
        imports = [one for one in body if isinstance(one, cst.SimpleStatementLine) and isinstance(one.body[0], _IMPORTS)]
        alone = (one for one in imports if len(one.body) == 1 and ";" not in code(one) and len(imports) < len(body))
        yield from (one for one in alone if is_called or _WHOLE.fullmatch(code(one.body[0]).strip()))


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
