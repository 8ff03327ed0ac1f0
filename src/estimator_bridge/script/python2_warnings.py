"""Says, before a script runs, what of it is Python 2: refuses what does not parse, and points at what would go wrong in silence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from estimator_bridge.compat.source.checking import judge_python2
from estimator_bridge.compat.source.own_files import own_sources
from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.verdicts import SourceFinding
from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.warn_once import warn_once

_SHOWN = 12


def tell_python2(target: str, is_module: bool, mended: bool) -> None:
    """Prints what of a script and of its own modules is Python 2; nothing is imported.

    Args:
        target: the script's path or the module's name.
        is_module: ``target`` is a module.
        mended: it runs with ``--py2``.

    Raises:
        BridgeError: a file is Python 2 by its syntax, and ``--py2`` was not given.
    """
    found = _file_and_root(target, is_module)
    if found is None:
        return
    for source in own_sources(*found):
        findings = sorted(judge_python2(source, mended))
        if not findings:
            continue
        if source.error is not None and not mended:
            raise _unparsable(source, findings)
        if mended:
            warn_once(f"Python 2, mended in memory in {len(findings)} places", source.path)
        else:
            for what, lines in _grouped(findings).items():
                also = ", ".join(map(str, dict.fromkeys(lines[1:])))
                warn_once(f"{what} (also on line {also})" if also else what, f"{source.path}:{lines[0]}")


def _file_and_root(target: str, is_module: bool) -> tuple[Path, Path] | None:
    if not is_module:
        path = Path(target)
        return (path, path.resolve().parent) if path.is_file() else None  # a pipe can be read once
    base = Path.cwd().joinpath(*target.split("."))
    files = (base.with_suffix(".py"), base / "__main__.py")
    return next(((file, Path.cwd()) for file in files if file.is_file()), None)


def _unparsable(source: Source, findings: list[SourceFinding]) -> BridgeError:
    shown = [f"line {finding.line}: {finding.symbol}" for finding in findings[:_SHOWN]]
    more = len(findings) - len(shown)
    received = f"{source.path}: " + ", ".join([*shown, *([f"and {more} more"] if more else [])])
    return BridgeError(
        "The script is written for Python 2.",
        expected="source that Python 3 parses",
        received=received,
        fix="Add --py2 before the script: it is mended in memory, and the file stays as it is.",
    )


def _grouped(findings: Iterable[SourceFinding]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for finding in findings:
        groups.setdefault(f"{finding.symbol}: {finding.message}", []).append(finding.line)
    return groups
