"""Judges uses of names that NumPy and Python removed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.removed_names import RESTORED, Removed
from estimator_bridge.compat.source.removed_names.methods import METHODS
from estimator_bridge.compat.source.removed_names.numpy import CHANGED, REMOVED
from estimator_bridge.compat.source.removed_names.python import ATTRIBUTES, MODULES
from estimator_bridge.compat.source.scopes import Place
from estimator_bridge.compat.source.surface import prefixes
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_TYPE_TESTS = frozenset({"builtins.isinstance", "builtins.issubclass"})


def judge_removed_names(source: Source) -> Iterator[SourceFinding]:
    """Yields a finding for each removed name.

    Args:
        source: Parsed file.
    """
    names = source.names
    for dotted, statement, place in names.imports:
        yield from _judge(dotted, statement, place)
    for chain, place in names.nodes(ast.Attribute):
        dotted = names.resolve(chain, place.scope) or ""
        top = dotted.partition(".")[0]
        if top not in MODULES or not (MODULES[top].target or place.guarded):  # else its import has been judged
            yield from _judge(dotted, chain, place)
        yield from _method(source, chain, dotted)
    yield from _type_tests(source)


def _judge(dotted: str, node: ast.AST, place: Place) -> Iterator[SourceFinding]:
    known = _known(dotted)
    if known is None:
        return
    symbol, removed, kind = known
    if removed.target:
        own = removed.target.startswith(RESTORED)
        today = "its own version" if own else removed.target.removeprefix("builtins.").replace("numpy.", "np.", 1)
        note = f"; {removed.note}" if removed.note else ""
        yield SourceFinding.at(node, symbol, kind, Verdict.MENDED, f"no longer exists; run uses {today} instead{note}")
    elif isinstance(node, ast.Import) and not place.guarded:
        yield SourceFinding.at(
            node, symbol, kind, Verdict.MENDED, f"no longer exists; run imports an empty module instead. {removed.note}"
        )
    elif place.guarded:
        yield SourceFinding.at(node, symbol, kind, Verdict.RUNS, "no longer exists, and the file handles that itself")
    else:
        yield SourceFinding.at(node, symbol, kind, Verdict.HUMAN, f"No longer exists. {removed.note}")


def _known(dotted: str) -> tuple[str, Removed, Kind] | None:
    parts = dotted.split(".")
    if parts[0] == "numpy" and len(parts) > 1:
        gone = parts[1] in REMOVED and parts[1] not in CHANGED
        return (f"np.{parts[1]}", REMOVED[parts[1]], Kind.NUMPY) if gone else None
    for prefix in reversed(prefixes(dotted)):
        found = MODULES.get(prefix) or ATTRIBUTES.get(prefix)
        if found is not None:
            return prefix, found, Kind.PYTHON
    return None


def _method(source: Source, chain: ast.Attribute, dotted: str) -> Iterator[SourceFinding]:
    """Yields a finding for the name of a removed method, unless it is read from a module or the file defines one."""
    method = METHODS.get(chain.attr)
    if method is None or (dotted and not dotted.startswith("builtins.")):
        return
    if any(node.name == chain.attr for node, _ in source.names.nodes(ast.FunctionDef)):
        return
    where = chain.end_lineno or chain.lineno, chain.col_offset + 1
    owners = " or ".join(owner.replace("numpy.", "np.", 1) for owner in method.owners)
    message = f"no longer exists in {owners}, but works under run; write {method.today}"
    yield SourceFinding(*where, f".{chain.attr}", Kind.NUMPY if "numpy" in owners else Kind.PYTHON, Verdict.MENDED, message)


def _type_tests(source: Source) -> Iterator[SourceFinding]:
    for call, place in source.names.nodes(ast.Call):
        if len(call.args) == 2 and source.names.resolve(call.func, place.scope) in _TYPE_TESTS:
            second = call.args[1]
            for kind in second.elts if isinstance(second, ast.Tuple) else [second]:
                name = (source.names.resolve(kind, place.scope) or "").removeprefix("numpy.")
                if name in CHANGED and isinstance(kind, ast.Attribute):
                    yield SourceFinding.at(kind, f"np.{name}", Kind.NUMPY, Verdict.HUMAN, CHANGED[name])
